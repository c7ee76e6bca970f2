//! The plain description of a checked scenario: values with all defaults filled in, without positions or text to parse.
//! One-line topologies are expanded into nodes and links. The crate `lab` builds the simulated network from it, and the
//! auditor takes its expected values from it.

use fullpipe_network::access::AccessNetwork;
pub use fullpipe_network::discipline::settings::Discipline;
use fullpipe_network::impairment::{Impairments, LossSchedule, LossStep};
use fullpipe_network::routing::{Edge, RoutingTables};
use fullpipe_network::{
    self as network, EthernetSpecification, LinkProfile, LinkSchedule, MediumDirection, NatSpecification, ScheduleStep,
};
pub use fullpipe_quic::settings::{QuicStack, Settings as Quic};
use fullpipe_schema::quantity::format_link_queue_limit;
pub use fullpipe_tcp::Settings as Tcp;
pub use fullpipe_transport::tunnel::Mode as TunnelMode;
pub use fullpipe_transport::tunnel::Settings as Masque;
pub use fullpipe_units::{BdpMultiple, LinkQueueLimit, QueueLimit};
use fullpipe_units::{Duration, LinkId, NodeId, Rate, words};
use fullpipe_wire::IpVersion;
use fullpipe_workload::Protocol;
pub use fullpipe_workload::{Workload, WriteLimit, WriteRate};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// Title in one line, for reports.
    pub title: String,
    /// Maximum duration of the run. The run ends earlier if no events remain.
    pub duration: Duration,
    /// Seed from which all random streams are derived.
    pub seed: u64,
    /// Hosts and routers. The number in a [`NodeId`] is an index into this list.
    pub nodes: Vec<Node>,
    /// Point-to-point links, one entry per direction. The two directions of a link are adjacent (2k, 2k + 1).
    pub links: Vec<Link>,
    /// The queue limits that the file states as multiples of a bandwidth-delay product. In `links` and `ethernets`
    /// these limits are already in bytes.
    pub bdp_limits: Vec<BdpLimit>,
    /// Shared Ethernet segments.
    pub ethernets: Vec<EthernetSpecification>,
    /// Access networks. The index in this list is the number of the network's medium in the simulation.
    pub access: Vec<AccessNetwork>,
    /// Routers that translate addresses (NATs).
    pub nats: Vec<NatSpecification>,
    /// Flows, in the order of the file.
    pub flows: Vec<Flow>,
    /// Maximum random processing time of each host that sends data. `None` selects the transmission time of one packet
    /// at the slowest link or medium that the host's flows share with others. If they share none, it is zero.
    pub processing_jitter: Option<Duration>,
    /// Maximum random delay of the start of each flow, in base round-trip times of the flow; 0 disables the delay.
    pub phase_jitter: f64,
    /// Metrics to sample.
    pub probes: Vec<Probe>,
    /// Events that happen at times that the run determines, in the order of the file.
    pub events: Vec<Event>,
    /// Links to measure, and the start of the measured interval.
    pub measurement: Measurement,
    /// Settings of runs in real time.
    pub real_time: RealTimeSettings,
    /// Real programs on hosts, in the order of the file.
    pub programs: Vec<Program>,
}

impl Scenario {
    /// Returns the files to which the scenario refers and whose content is not in the resolved file. Connection traces,
    /// which are read during the run, come first, in the order of the flows. Fading traces follow.
    pub fn referenced_files(&self) -> impl Iterator<Item = &Path> {
        let flows = self.flows.iter().filter_map(|flow| flow.workload.file());
        flows.chain(self.access.iter().flat_map(|access| access.files()))
    }

    /// Returns the routes of the network, without building the network.
    #[doc(hidden)]
    pub fn routing(&self) -> RoutingTables {
        routing(&self.nodes, &self.links, &self.ethernets, &self.access)
    }

    /// Returns, for the end at `from` and the end at `to` of a flow, whether this end sends most of the flow's data:
    /// see [`main_senders`].
    pub fn main_senders(&self, flow: usize) -> [bool; 2] {
        main_senders(&self.flows, flow)
    }

    /// Returns the name of a subject in `series.csv`. For a flow, the name also depends on the end (0: `from`, 1:
    /// `to`).
    #[doc(hidden)]
    pub fn subject_name(&self, (subject, end): (ProbeSubject, usize)) -> String {
        match subject {
            ProbeSubject::Flow(flow) => direction_name(&self.flows[flow].name, end),
            ProbeSubject::Link(link) => self.links[link].name.clone(),
            ProbeSubject::Ethernet(segment) => self.ethernets[segment].name.clone(),
            ProbeSubject::Station { access, station, way } => {
                station_name(&self.nodes[self.access[access].stations()[station].index()].name, way)
            }
        }
    }

    /// Returns the start and the end of the measured interval, to which rates, means and ratios apply. The end is that
    /// of a run with the full duration.
    pub fn measured_interval(&self) -> (Duration, Duration) {
        (self.measurement.from, self.duration)
    }

    /// Returns whether real software implements a node in real time, and not the model. Real software is a program, a
    /// kernel socket, or a host that is connected to an interface of this machine.
    pub fn is_real_host(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|node| node.real)
    }

    /// Returns the reason why the scenario cannot run in virtual time; `None` if it can.
    pub fn real_time_reason(&self) -> Option<String> {
        // If a program reports metrics of a flow, the model can run that flow instead. Background programs only support
        // such programs.
        let tells = |program: &Program| program.figures_of.is_some();
        if self.programs.iter().any(tells) && self.programs.iter().all(|program| tells(program) || program.background) {
            return None;
        }
        if let Some(program) = self.programs.iter().find(|program| !tells(program)) {
            return Some(format!("{} is a real program", program.name));
        }
        if self.flows.is_empty() {
            let node = self.nodes.iter().find(|node| node.interface().is_some())?;
            return Some(format!("the scenario has no flow, only the real host {} behind an interface", node.name));
        }
        let flow = self.flows.iter().find(|flow| [flow.from_by, flow.to_by].contains(&EndpointBackend::Program))?;
        Some(format!("a real program is an end of flow {}", flow.name))
    }
}

/// Returns the routes of a network that is not built yet.
pub(crate) fn routing(
    nodes: &[Node],
    links: &[Link],
    ethernets: &[EthernetSpecification],
    access: &[AccessNetwork],
) -> RoutingTables {
    let mut edges = vec![Vec::new(); nodes.len()];
    for (number, link) in links.iter().enumerate() {
        edges[link.from.index()].push(Edge { to: link.to, by: network::NextHop::Link(LinkId(number as u32)) });
    }
    for (segment, ethernet) in ethernets.iter().enumerate() {
        for from in &ethernet.hosts {
            for (station, to) in ethernet.hosts.iter().enumerate().filter(|(_, to)| *to != from) {
                let by = network::NextHop::Station { segment: segment as u32, station: station as u32 };
                edges[from.index()].push(Edge { to: *to, by });
            }
        }
    }
    for (medium, access) in access.iter().enumerate() {
        for (station, node) in access.stations().iter().enumerate() {
            let by = |way| network::NextHop::Medium { medium: medium as u16, way, station: station as u32 };
            edges[access.hub().index()].push(Edge { to: *node, by: by(MediumDirection::Downlink) });
            edges[node.index()].push(Edge { to: access.hub(), by: by(MediumDirection::Uplink) });
        }
    }
    let forwards: Vec<bool> = nodes.iter().map(|node| node.router).collect();
    RoutingTables::new(&edges, &forwards)
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Whether the node forwards packets. A router runs no transport.
    pub router: bool,
    /// Whether real software implements the node in real time (see [`Scenario::is_real_host`]).
    pub real: bool,
    /// Addresses and interface that the file states; `None` if it states none. Few nodes have them, so they are stored
    /// separately.
    pub identity: Option<Box<NodeAddressing>>,
}

impl Node {
    /// Returns the IPv4 address that the file states; `None` if the address follows from the node's number
    /// ([`fullpipe_network::address::ipv4`]).
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.identity.as_ref()?.ipv4
    }

    /// Returns the IPv6 address that the file states; `None` if the address follows from the node's number
    /// ([`fullpipe_network::address::ipv6`]).
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.identity.as_ref()?.ipv6
    }

    /// Returns the interface of this machine to which the host is connected in real time. `None` if there is none; a
    /// host with real software is then a network namespace.
    pub fn interface(&self) -> Option<&str> {
        self.identity.as_ref()?.interface.as_deref()
    }
}

/// Addresses and interface of a node that the file states; `None` for those that it does not state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAddressing {
    /// IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// Name of an interface of this machine.
    pub interface: Option<String>,
}

/// One direction of a point-to-point link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// Unique name: the name in the file for the direction from `from` to `to`, with the suffix `.reverse` for the
    /// other direction.
    pub name: String,
    /// The node that transmits.
    pub from: NodeId,
    /// The node that receives.
    pub to: NodeId,
    /// Serialization rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Maximum size of an IP packet, in bytes.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to each IP packet, on the link and in byte-limited queues.
    pub framing_bytes: u32,
    /// Limit of the drop-tail queue. The packet in transmission does not count toward the limit.
    pub queue: QueueLimit,
    /// Queue discipline, from which the device queue receives its packets. The device queue then exerts backpressure on
    /// the discipline instead of dropping packets. `None`: the link has only the device queue.
    pub discipline: Option<Discipline>,
    /// Changes of rate and delay over time.
    pub course: LinkProfile,
    /// Impairments of frames after their transmission.
    pub impairments: Impairments,
    /// Whether the run starts at a random time of `course` and of the loss schedules that repeat. Both directions of a
    /// link then have the same offset.
    pub random_trace_offset: bool,
}

impl Link {
    /// Returns the longest period of the link's trace or schedules; zero if nothing repeats.
    pub fn trace_period(&self) -> Duration {
        let losses = self.impairments.settings_of::<LossSchedule>().filter_map(|schedule| schedule.repeat);
        losses.chain(self.course.period()).max().unwrap_or(Duration::ZERO)
    }

    /// Changes the trace and the schedules that repeat to those of a run that starts at `offset`, which is then no longer
    /// random.
    pub fn start_trace_at(&mut self, offset: Duration) {
        self.course = self.course.starting_at(offset);
        self.impairments = self.impairments.starting_at(offset);
        self.random_trace_offset = false;
    }
}

/// A queue limit that a file states as a multiple of a bandwidth-delay product.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BdpLimit {
    /// Name of the link direction or the segment.
    pub link: String,
    /// The key of the link that states the limit, such as `discipline.limit`.
    pub key: String,
    /// The multiple of the bandwidth-delay product.
    pub multiple: BdpMultiple,
    /// Rate of the link; the mean if the rate varies.
    pub rate: Rate,
    /// Round-trip time in the bandwidth-delay product.
    pub round_trip: Duration,
    /// The limit in bytes.
    pub bytes: u64,
}

impl fmt::Display for BdpLimit {
    /// Formats "bottleneck: queue = 2BDP is 100 kB (10Mbit/s x 40ms)".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BdpLimit { link, key, multiple, rate, round_trip, bytes } = self;
        let (multiple, bytes) =
            (format_link_queue_limit(LinkQueueLimit::Bdp(*multiple)), words::format_exact_bytes(*bytes));
        write!(formatter, "{link}: {key} = {multiple} is {bytes} ({rate} x {round_trip})")
    }
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Flow {
    /// Unique name: the name in the file. If a `[[flow]]` of the file declares several flows, the suffix is ".N" (N
    /// from 1).
    pub name: String,
    /// The host that opens the flow: the sender of bulk data, or the client of requests. The receiver opens a download
    /// through a tunnel.
    pub from: NodeId,
    /// The host that accepts the flow.
    pub to: NodeId,
    /// Version of IP that the flow uses.
    pub ip: IpVersion,
    /// Priority band of the flow's packets in both directions, at links with strict priority by flow; band 0 is served
    /// first. `None` selects the last band.
    pub priority: Option<u32>,
    /// Start time.
    pub start: Duration,
    /// Maximum random time that is added to the start time.
    pub start_jitter: Duration,
    /// The workload.
    pub workload: Workload,
    /// The transport.
    pub transport: Transport,
    /// Index of the flow that is the tunnel of this flow; `None` without a tunnel. The packets of a flow through a
    /// tunnel begin at the tunnel's proxy.
    pub via: Option<usize>,
    /// How the tunnel carries the payloads of this flow; `None` selects the mode in the tunnel's settings.
    pub via_mode: Option<TunnelMode>,
    /// Port of the acceptor at `to`.
    pub port: u16,
    /// The implementation of the end at `from` in real time.
    pub from_by: EndpointBackend,
    /// The implementation of the end at `to` in real time.
    pub to_by: EndpointBackend,
}

/// Returns, for the end at `from` and the end at `to` of a flow, whether this end sends most of the flow's data. The
/// direction from such an end is a main direction of the flow. The workload declares these ends
/// ([`WorkloadSettings::main_senders`](fullpipe_workload::WorkloadSettings::main_senders)). An end of a tunnel sends
/// most of the tunnel's data if it does so for a flow that the tunnel carries.
pub fn main_senders(flows: &[Flow], flow: usize) -> [bool; 2] {
    let described = &flows[flow];
    let own = described.workload.main_senders();
    if !matches!(described.transport, Transport::Masque(_)) {
        return own;
    }
    let carried = flows.iter().filter(|other| other.via == Some(flow)).map(|other| {
        let [initiator, acceptor] = other.workload.main_senders();
        if other.from == described.from { [initiator, acceptor] } else { [acceptor, initiator] }
    });
    carried.reduce(|all, one| [all[0] || one[0], all[1] || one[1]]).unwrap_or(own)
}

/// Returns the name of one direction of a flow, or of the end that sends in it. For the end at `from` (0) it is the
/// name of the flow; for the end at `to` (1) it has the suffix `.reverse`. `flows.csv` and `series.csv` use these
/// names.
pub fn direction_name(flow: &str, end: usize) -> String {
    match end {
        0 => flow.to_owned(),
        _ => format!("{flow}.reverse"),
    }
}

/// The implementation of an end of a flow in real time. In virtual time, the model replaces kernel sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointBackend {
    /// The model.
    Model,
    /// A socket of this machine's kernel, with the flow's workload.
    Kernel,
    /// A [`Program`] on the host, or software on a host that is connected to an interface of this machine.
    Program,
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP with these settings.
    Tcp(std::sync::Arc<Tcp>),
    /// QUIC with these settings.
    Quic(std::sync::Arc<Quic>),
    /// A tunnel (CONNECT-UDP) with these settings, through which other flows are sent. In real time, the client and the
    /// proxy are real programs.
    Masque(std::sync::Arc<Masque>),
}

impl Transport {
    /// Returns the protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Transport::Udp => Protocol::Udp,
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Quic(_) => Protocol::Quic,
            Transport::Masque(_) => Protocol::Masque,
        }
    }

    /// Returns whether the transport carries byte streams.
    pub fn is_stream(&self) -> bool {
        matches!(self, Transport::Tcp(_) | Transport::Quic(_))
    }
}

/// Metrics to sample, and the sampling interval.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Probe {
    /// The subject.
    pub subject: ProbeSubject,
    /// For a flow, the end (0: `from`, 1: `to`). Packet metrics count the packets that this end sends. Other metrics
    /// describe the state of this end.
    pub end: usize,
    /// Names of metrics, as in `series.csv`.
    pub metrics: Vec<String>,
    /// Sampling interval.
    pub interval: Duration,
}

impl Probe {
    /// Returns the name of the subject in `series.csv`.
    pub fn subject_name(&self, scenario: &Scenario) -> String {
        scenario.subject_name((self.subject, self.end))
    }
}

/// An event at a time that the run determines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Unique name.
    pub name: String,
    /// The flow or link of the condition and of the recorded metrics, and the end of a flow (0: `from`, 1: `to`).
    /// `None` if the event needs no subject.
    pub subject: Option<(ProbeSubject, usize)>,
    /// The condition; `None` if it is always met.
    pub condition: Option<EventCondition>,
    /// Earliest time at which the condition can be met.
    pub from: Duration,
    /// Index of an earlier event that must have happened before the condition can be met; `None` if there is none.
    pub follows: Option<usize>,
    /// Time from the instant at which the condition is met to the event.
    pub delay: EventDelay,
    /// The change that the event makes; `None` if the event only records metrics.
    pub change: Option<EventChange>,
    /// Metrics of the subject whose values are recorded, as in `series.csv`.
    pub records: Vec<String>,
}

/// The condition of an event: a metric of its subject, and the accepted values.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCondition {
    /// Name of the metric, as in `series.csv`.
    pub metric: String,
    /// The accepted values.
    pub test: EventTest,
    /// Whether the condition must first be unmet before it can be met.
    pub entry: bool,
}

/// The values with which a condition is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventTest {
    /// This number.
    Is(f64),
    /// Larger numbers.
    Above(f64),
    /// Smaller numbers.
    Below(f64),
}

impl EventTest {
    /// Returns whether a value is accepted.
    pub fn accepts(self, value: f64) -> bool {
        match self {
            EventTest::Is(number) => value == number,
            EventTest::Above(number) => value > number,
            EventTest::Below(number) => value < number,
        }
    }
}

/// The time from the instant at which a condition is met to its event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventDelay {
    /// A fixed time.
    Fixed(Duration),
    /// A number of smoothed round-trip times of the subject, which is a flow. The smoothed round-trip time is that at
    /// the instant at which the condition is met.
    RoundTrips(f64),
}

/// What an event changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventChange {
    /// Properties of one direction of a link. A property that is `None` is unchanged.
    Link {
        /// Index into [`Scenario::links`].
        link: usize,
        /// The new rate; 0 is an outage.
        rate: Option<Rate>,
        /// The new delay.
        delay: Option<Duration>,
        /// The new probability of additional random loss.
        loss: Option<f64>,
    },
    /// The rate at which the application of a flow writes.
    Writes {
        /// Index into [`Scenario::flows`].
        flow: usize,
        /// The new rate.
        rate: WriteRate,
        /// Time after which the rate is unlimited again; `None` if the new rate applies until the end of the run.
        duration: Option<Duration>,
    },
}

impl Scenario {
    /// Returns a scenario in which each event happens at a known time: its change is part of the schedules of links and
    /// flows. An event without a time has no effect. Every link and flow that an event changes has a schedule, even
    /// without a time. Two runs are therefore equal until the first time that differs.
    #[doc(hidden)]
    #[must_use]
    pub fn with_event_times(&self, times: &[Option<Duration>]) -> Scenario {
        let mut scenario = self.clone();
        for (number, event) in self.events.iter().enumerate() {
            let at = times.get(number).copied().flatten();
            match event.change {
                Some(EventChange::Link { link, rate, delay, loss }) => {
                    let link = &mut scenario.links[link];
                    if rate.is_some() || delay.is_some() {
                        // Without a time, a step at the end that changes nothing.
                        let step = match at {
                            Some(at) => ScheduleStep { at, rate, delay },
                            None => ScheduleStep { at: self.duration, rate: None, delay: None },
                        };
                        link.course = match &link.course {
                            LinkProfile::Steps(schedule) => LinkProfile::Steps(schedule.with_step(step)),
                            _ => LinkSchedule::new(vec![step], None).map_or(LinkProfile::Constant, LinkProfile::Steps),
                        };
                    }
                    if let Some(probability) = loss {
                        link.impairments.insert_loss_step(match at {
                            Some(at) => LossStep { at, probability },
                            None => LossStep { at: Duration::from_nanos(u64::MAX), probability: 0.0 },
                        });
                    }
                }
                Some(EventChange::Writes { flow, rate, duration }) => {
                    let flow = &mut scenario.flows[flow];
                    let mut limits = Vec::new();
                    if let Some(at) = at {
                        limits.push(WriteLimit { at, rate });
                        let until = duration.map(|time| at.saturating_add(time));
                        limits.extend(until.map(|at| WriteLimit { at, rate: WriteRate::Unlimited }));
                    }
                    if let Some(workload) = flow.workload.with_more_write_limits(&limits) {
                        flow.workload = workload;
                    }
                }
                None => {}
            }
        }
        scenario
    }
}

/// The links to measure, and the start of the measured interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measurement {
    /// Start of the measured interval.
    pub from: Duration,
    /// The measured links: ascending indices into [`Scenario::links`].
    pub links: Vec<usize>,
}

/// The subject of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSubject {
    /// A flow, as an index into [`Scenario::flows`].
    Flow(usize),
    /// A link direction, as an index into [`Scenario::links`].
    Link(usize),
    /// A shared segment, as an index into [`Scenario::ethernets`].
    Ethernet(usize),
    /// One direction to or from a station of an access network.
    Station {
        /// Index into [`Scenario::access`].
        access: usize,
        /// Number of the station in the access network.
        station: usize,
        /// The direction.
        way: MediumDirection,
    },
}

/// Returns the name in `series.csv` of a direction to or from a station. It is the name of the station's host, with a
/// suffix for the uplink.
pub fn station_name(host: &str, way: MediumDirection) -> String {
    match way {
        MediumDirection::Downlink => host.to_owned(),
        MediumDirection::Uplink => format!("{host}.{}", way.name()),
    }
}

/// Settings of runs in real time: the handling of lateness and stalls, the interfaces of hosts, and what is recorded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RealTimeSettings {
    /// The reaction to a run that falls behind real time.
    pub policy: LatenessPolicy,
    /// An event or packet is late if its lateness exceeds this time.
    pub late_after: Duration,
    /// Maximum fraction of late events or packets for which the run still counts as on time, from 0 to 1.
    pub late_share: f64,
    /// A gap in the emulator's event loop that is longer than this is a stall.
    pub stall_after: Duration,
    /// How the model's clock treats a stall.
    pub after_stall: StallPolicy,
    /// How the namespaces of hosts are attached to the emulator.
    pub attachment: InterfaceKind,
    /// Whether the run records every arrival with its timestamp, for replay in virtual time.
    pub record_arrivals: bool,
}

/// The reaction to a run that falls behind real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatenessPolicy {
    /// The run continues, and its results are marked.
    BestEffort,
    /// The run fails.
    HardLimit,
}

/// How the namespaces of hosts are attached to the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// A pair of virtual Ethernet interfaces and a packet socket.
    Veth,
    /// A TUN device.
    Tun,
}

/// How the model's clock treats a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallPolicy {
    /// The clock includes the stall, and overdue packets leave immediately.
    CatchUp,
    /// The clock is paused during the stall.
    Pause,
}

/// A real program on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// Name, unique among programs.
    pub name: String,
    /// The host that runs the program.
    pub host: NodeId,
    /// The command line.
    pub command: Command,
    /// Additional environment variables, as names and values. Names are unique.
    pub environment: Vec<(String, String)>,
    /// Working directory, relative to the folder of the scenario file.
    pub directory: String,
    /// Names of the programs that must be ready before this program starts. The dependencies contain no cycle.
    pub after: Vec<String>,
    /// The condition for readiness.
    pub ready: ReadyCondition,
    /// Time limit for readiness, from the start of the program.
    pub ready_timeout: Duration,
    /// Earliest start time, from the start of the run.
    pub start: Duration,
    /// Time limit of a program in the foreground, from the start of the program. When it expires, the program is
    /// terminated and the run fails.
    pub timeout: Duration,
    /// Whether the program runs in the background. The run ends when all programs in the foreground have ended.
    /// Programs in the background are then terminated.
    pub background: bool,
    /// The exit status with which the program must end, 0 to 255. For a program in the background, every exit status is
    /// accepted if the program was ready.
    pub exit_status: i32,
    /// Index of the flow whose metrics the program reports; `None` if it reports none. The report is the last line of
    /// the program's standard output that is a JSON object.
    pub figures_of: Option<usize>,
}

impl Program {
    /// Creates a program in the foreground that starts with the run. It is ready once it has started, and must end with
    /// exit status 0 within `timeout`.
    pub fn new(name: impl Into<String>, host: NodeId, command: Command, timeout: Duration) -> Program {
        Program {
            name: name.into(),
            host,
            command,
            environment: Vec::new(),
            directory: ".".to_owned(),
            after: Vec::new(),
            ready: ReadyCondition::Started,
            ready_timeout: timeout,
            start: Duration::ZERO,
            timeout,
            background: false,
            exit_status: 0,
            figures_of: None,
        }
    }
}

/// The command line of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The program and its arguments: at least one word, and the first word is not empty.
    Arguments(Vec<String>),
    /// A command line for the shell.
    Shell(String),
}

impl Command {
    /// Returns the program and its arguments. A shell command line is the argument of `/bin/sh -c`.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Command::Arguments(words) => words.clone(),
            Command::Shell(text) => vec!["/bin/sh".into(), "-c".into(), text.clone()],
        }
    }
}

/// The condition for the readiness of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyCondition {
    /// The program has started.
    Started,
    /// The program listens on this TCP port.
    TcpPort(u16),
    /// The program has bound this UDP port.
    UdpPort(u16),
    /// The program has written a line that contains this text.
    Output(String),
    /// The program has ended with the required exit status.
    Exit,
}
