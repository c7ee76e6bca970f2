//! What a scenario file says, checked and with every default filled in: plain values, no positions, no text to parse.
//! One-line topologies have become nodes and links here. `lab` builds a world from it; the auditor reads from it what
//! was promised.

use fullpipe_network::access::AccessNetwork;
pub use fullpipe_network::discipline::settings::Discipline;
use fullpipe_network::impairment::Impairments;
use fullpipe_network::routing::{Edge, Routing};
use fullpipe_network::{self as network, Course, EthernetSpecification, NatSpecification, Way};
pub use fullpipe_quic::settings::{Settings as Quic, Stack};
use fullpipe_schema::quantity::format_link_queue_limit;
pub use fullpipe_tcp::Settings as Tcp;
pub use fullpipe_transport::tunnel::Mode as TunnelMode;
pub use fullpipe_transport::tunnel::Settings as Masque;
pub use fullpipe_units::{BdpMultiple, LinkQueueLimit, QueueLimit};
use fullpipe_units::{Duration, LinkId, NodeId, Rate};
use fullpipe_wire::IpVersion;
use fullpipe_workload::Protocol;
pub use fullpipe_workload::Workload;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A whole scenario.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// One line for reports.
    pub title: String,
    /// When the run ends at the latest (it ends earlier when nothing is left to happen).
    pub duration: Duration,
    /// Seed of every random stream.
    pub seed: u64,
    /// Hosts and routers; a [`NodeId`] is an index into this.
    pub nodes: Vec<Node>,
    /// Point-to-point links, one entry per direction; the two directions of a link are neighbours (2k, 2k + 1).
    pub links: Vec<Link>,
    /// The limits of queues that the file states as multiples of a bandwidth-delay product, in bytes already in `links` and
    /// `ethernets`.
    pub bdp_limits: Vec<BdpLimit>,
    /// Shared Ethernet segments.
    pub ethernets: Vec<EthernetSpecification>,
    /// Access networks; the network numbers their media in this order.
    pub access: Vec<AccessNetwork>,
    /// Routers that translate addresses.
    pub nats: Vec<NatSpecification>,
    /// Traffic, in the order of the file.
    pub flows: Vec<Flow>,
    /// Longest random processing time of each host that sends data; `None`: as long as one packet takes at the slowest
    /// link or medium that its flows share with others, none where there is none.
    pub processing_jitter: Option<Duration>,
    /// Each flow starts later by a random part of this many base round-trip times; 0: at its start.
    pub phase_jitter: f64,
    /// What to sample.
    pub probes: Vec<Probe>,
    /// What to sum up of links.
    pub measurement: Measurement,
    /// How the wall clock is kept, when the scenario runs in real time.
    pub real_time: RealTime,
    /// Real programs at hosts, in the order of the file.
    pub programs: Vec<Program>,
}

impl Scenario {
    /// Files that it names and whose content is not in the file with every default written out: traces of connections, in
    /// the order of the flows, which are read while it runs; then traces of fading.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let flows = self.flows.iter().filter_map(|flow| flow.workload.file());
        flows.chain(self.access.iter().flat_map(|access| access.files()))
    }

    /// The routes of its network, without building it.
    #[doc(hidden)]
    pub fn routing(&self) -> Routing {
        routing(&self.nodes, &self.links, &self.ethernets, &self.access)
    }

    /// The ends of a flow that send most of its data, `from` and `to`: see [`main_senders`].
    pub fn main_senders(&self, flow: usize) -> [bool; 2] {
        main_senders(&self.flows, flow)
    }

    /// The part of the run that rates, means and ratios are of: its start, and its end if the run lasts for the whole duration.
    pub fn measured_interval(&self) -> (Duration, Duration) {
        (self.measurement.from, self.duration)
    }

    /// Whether real software stands at a node in real time, instead of our model: a program, a socket of the kernel, or
    /// whatever is beyond an interface.
    pub fn is_real(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|node| node.real)
    }

    /// Why virtual time cannot play this scenario, in words; `None`: it can.
    pub fn needs_real_time(&self) -> Option<String> {
        // Where a program tells figures of a flow, the model can play that flow in its place; those in the background help.
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
        let flow = self.flows.iter().find(|flow| [flow.from_by, flow.to_by].contains(&Player::Program))?;
        Some(format!("a real program is an end of flow {}", flow.name))
    }
}

/// The routes of a network that is not built.
pub(crate) fn routing(
    nodes: &[Node],
    links: &[Link],
    ethernets: &[EthernetSpecification],
    access: &[AccessNetwork],
) -> Routing {
    let mut edges = vec![Vec::new(); nodes.len()];
    for (number, link) in links.iter().enumerate() {
        edges[link.from.index()].push(Edge { to: link.to, by: network::Attachment::Link(LinkId(number as u32)) });
    }
    for (segment, ethernet) in ethernets.iter().enumerate() {
        for from in &ethernet.hosts {
            for (station, to) in ethernet.hosts.iter().enumerate().filter(|(_, to)| *to != from) {
                let by = network::Attachment::Station { segment: segment as u32, station: station as u32 };
                edges[from.index()].push(Edge { to: *to, by });
            }
        }
    }
    for (medium, access) in access.iter().enumerate() {
        for (station, node) in access.stations().iter().enumerate() {
            let by = |way| network::Attachment::Medium { medium: medium as u16, way, station: station as u32 };
            edges[access.hub().index()].push(Edge { to: *node, by: by(Way::Down) });
            edges[node.index()].push(Edge { to: access.hub(), by: by(Way::Up) });
        }
    }
    let forwards: Vec<bool> = nodes.iter().map(|node| node.router).collect();
    Routing::new(&edges, &forwards)
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its name, unique.
    pub name: String,
    /// Whether it forwards packets for others (and runs no transport).
    pub router: bool,
    /// Whether real software stands here in real time (see [`Scenario::is_real`]).
    pub real: bool,
    /// What the file says about its place in the real world; few nodes have that, so it lies apart.
    pub identity: Option<Box<Identity>>,
}

impl Node {
    /// Its IPv4 address; `None`: by its number, [`fullpipe_network::address::ipv4`].
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.identity.as_ref()?.ipv4
    }

    /// Its IPv6 address; `None`: by its number, [`fullpipe_network::address::ipv6`].
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.identity.as_ref()?.ipv6
    }

    /// The interface of this machine that stands for the host in real time; `None`: a host with real software becomes a
    /// network namespace.
    pub fn interface(&self) -> Option<&str> {
        self.identity.as_ref()?.interface.as_deref()
    }
}

/// Addresses of a node and the interface that stands for it, where the file gives any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
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
    /// Name, unique: the file's name for the direction from `from` to `to`, that name + ".reverse" for the other.
    pub name: String,
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Serialisation rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to each IP packet on the wire (and in byte-limited queues).
    pub framing_bytes: u32,
    /// Limit of the drop-tail queue; the packet in transmission does not count.
    pub queue: QueueLimit,
    /// A discipline above the device queue, whose queue then exerts backpressure on the discipline instead of dropping.
    /// `None`: the device queue alone.
    pub discipline: Option<Discipline>,
    /// Rate and delay over time.
    pub course: Course,
    /// What happens to frames after their transmission.
    pub impairments: Impairments,
}

/// A limit of a queue that a file states as a multiple of a bandwidth-delay product.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BdpLimit {
    /// Name of the direction of a link, or of the segment.
    pub link: String,
    /// The key of the link that states it, such as `discipline.limit`.
    pub key: String,
    /// The multiple.
    pub multiple: BdpMultiple,
    /// Rate of the link; of a varying rate the mean.
    pub rate: Rate,
    /// Round-trip time of the product.
    pub round_trip: Duration,
    /// Bytes of the limit.
    pub bytes: u64,
}

impl fmt::Display for BdpLimit {
    /// Formats "bottleneck: queue = 2BDP is 100000 bytes (10Mbit/s x 40ms)".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BdpLimit { link, key, multiple, rate, round_trip, bytes } = self;
        let multiple = format_link_queue_limit(LinkQueueLimit::Bdp(*multiple));
        write!(formatter, "{link}: {key} = {multiple} is {bytes} bytes ({rate} x {round_trip})")
    }
}

/// One declared conversation, or a group of like ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Flow {
    /// Name, unique: that of the file, with ".N" (N from 1) appended if the file's flow stands for several.
    pub name: String,
    /// Who opens it: where data come from, except for a download through a tunnel.
    pub from: NodeId,
    /// Who accepts it: where data go, except for a download through a tunnel.
    pub to: NodeId,
    /// Version of IP.
    pub ip: IpVersion,
    /// Band of the flow's packets, both ways, where a link serves by strict priority of flows.
    pub priority: Option<u32>,
    /// When it starts.
    pub start: Duration,
    /// Longest random time that is added to the start.
    pub start_jitter: Duration,
    /// What is sent.
    pub workload: Workload,
    /// Over what.
    pub transport: Transport,
    /// Number of the flow that is the tunnel which this one goes through; its packets then begin at the tunnel's proxy.
    pub via: Option<usize>,
    /// How its payloads travel through that tunnel; `None`: as the tunnel's settings say.
    pub via_mode: Option<TunnelMode>,
    /// Port of the acceptor, which is at `to`.
    pub port: u16,
    /// Who plays the end at `from` in real time.
    pub from_by: Player,
    /// Who plays the end at `to` in real time.
    pub to_by: Player,
}

/// The ends of a flow that send most of its data, `from` and `to`. The direction from such an end is a main direction of the
/// flow. The workload declares them
/// ([`WorkloadSettings::main_senders`](fullpipe_workload::WorkloadSettings::main_senders)); those of a tunnel are those of the
/// flows that it carries.
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

/// The name of one direction of a flow, or of the end that sends it: that of the flow from `from` (end 0), with `.reverse` from
/// `to` (end 1). `flows.csv` and `series.csv` have it.
pub fn direction_name(flow: &str, end: usize) -> String {
    match end {
        0 => flow.to_owned(),
        _ => format!("{flow}.reverse"),
    }
}

/// Who plays an end of a flow in real time. In virtual time the model plays what the kernel would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// Our model.
    Model,
    /// A socket of this machine's kernel, driven as the workload says.
    Kernel,
    /// A [`Program`] of the host, or whatever is beyond the host's interface.
    Program,
}

/// Over which transport a flow runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP with these settings.
    Tcp(std::sync::Arc<Tcp>),
    /// QUIC with these settings, played by a real stack.
    Quic(std::sync::Arc<Quic>),
    /// A tunnel (CONNECT-UDP) with these settings, which other flows go through; real programs play client and proxy.
    Masque(std::sync::Arc<Masque>),
}

impl Transport {
    /// Which one it is.
    pub fn protocol(&self) -> Protocol {
        match self {
            Transport::Udp => Protocol::Udp,
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Quic(_) => Protocol::Quic,
            Transport::Masque(_) => Protocol::Masque,
        }
    }

    /// Whether it carries streams.
    pub fn is_stream(&self) -> bool {
        matches!(self, Transport::Tcp(_) | Transport::Quic(_))
    }
}

/// What to sample, and how often.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Probe {
    /// Of what.
    pub subject: Subject,
    /// Of a flow: which end (0: `from`, 1: `to`). Packets are those that it sends; a window or the like is its own.
    pub end: usize,
    /// Names of metrics as in `series.csv`.
    pub metrics: Vec<String>,
    /// From one sample to the next.
    pub interval: Duration,
}

impl Probe {
    /// What `series.csv` calls the subject.
    pub fn subject_name(&self, scenario: &Scenario) -> String {
        match self.subject {
            Subject::Flow(flow) => direction_name(&scenario.flows[flow].name, self.end),
            Subject::Link(link) => scenario.links[link].name.clone(),
            Subject::Ethernet(segment) => scenario.ethernets[segment].name.clone(),
            Subject::Station { access, station, way } => {
                station_name(&scenario.nodes[scenario.access[access].stations()[station].index()].name, way)
            }
        }
    }
}

/// What is summed up of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measurement {
    /// From when on; what happens before does not count.
    pub from: Duration,
    /// Of which links: ascending indices into [`Scenario::links`].
    pub links: Vec<usize>,
}

/// What a probe watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A flow: index into [`Scenario::flows`].
    Flow(usize),
    /// A link: index into [`Scenario::links`].
    Link(usize),
    /// A shared segment: index into [`Scenario::ethernets`].
    Ethernet(usize),
    /// One way to or from a station of an access network.
    Station {
        /// Index into [`Scenario::access`].
        access: usize,
        /// The station's number there.
        station: usize,
        /// Which way.
        way: Way,
    },
}

/// What probes call a way to or from a station: the downlink by its host's name.
pub fn station_name(host: &str, way: Way) -> String {
    match way {
        Way::Down => host.to_owned(),
        Way::Up => format!("{host}.{}", way.name()),
    }
}

/// How the wall clock is kept in real time, and what the run then records.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RealTime {
    /// What follows from a verdict "late".
    pub policy: LatenessPolicy,
    /// An event or packet more than this late counts as late.
    pub late_after: Duration,
    /// Largest share of late events or packets with which the verdict is still good, 0 to 1.
    pub late_share: f64,
    /// A gap of the emulator's own loop longer than this is a stall.
    pub stall_after: Duration,
    /// What becomes of the time of a stall.
    pub after_stall: AfterStall,
    /// How the namespaces of hosts are joined to the emulator.
    pub attachment: Attachment,
    /// Whether every arrival is written with its stamp, for replay in virtual time.
    pub record_arrivals: bool,
}

/// What follows from a verdict "late".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatenessPolicy {
    /// The results are marked.
    BestEffort,
    /// The run has failed.
    HardLimit,
}

/// How the namespaces of hosts are joined to the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A pair of virtual Ethernet interfaces and a packet socket.
    Veth,
    /// A TUN device.
    Tun,
}

/// What becomes of the time of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStall {
    /// The model's clock went on: overdue packets leave at once.
    CatchUp,
    /// The model's clock stood still meanwhile.
    Pause,
}

/// A real program at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// Its name, unique among programs.
    pub name: String,
    /// Where it runs.
    pub host: NodeId,
    /// What is executed.
    pub command: Command,
    /// Variables that it has in addition, name and value; each name once.
    pub environment: Vec<(String, String)>,
    /// Where it starts, relative to the folder of the scenario file.
    pub directory: String,
    /// Names of the programs that must be ready before it starts; no program waits for itself, directly or by others.
    pub after: Vec<String>,
    /// When it counts as ready.
    pub ready: Ready,
    /// It must be ready this long after its start.
    pub ready_timeout: Duration,
    /// It does not start before this time of the run.
    pub start: Duration,
    /// So long after its start it is ended, and the run has failed.
    pub timeout: Duration,
    /// Whether it is ended with the run. The run ends when all programs that are not in the background have ended.
    pub background: bool,
    /// What it must end with, 0 to 255; one in the background may end with anything.
    pub exit_status: i32,
    /// Number of the flow whose figures it tells, in the last line of its standard output that is a JSON object.
    pub figures_of: Option<usize>,
}

impl Program {
    /// A program in the foreground that starts with the run, counts as ready once started, and must end with exit status 0 within
    /// a time.
    pub fn new(name: impl Into<String>, host: NodeId, command: Command, timeout: Duration) -> Program {
        Program {
            name: name.into(),
            host,
            command,
            environment: Vec::new(),
            directory: ".".to_owned(),
            after: Vec::new(),
            ready: Ready::Started,
            ready_timeout: timeout,
            start: Duration::ZERO,
            timeout,
            background: false,
            exit_status: 0,
            figures_of: None,
        }
    }
}

/// What a program executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The program and its arguments; at least one word, the first not empty.
    Words(Vec<String>),
    /// A text for the shell.
    Shell(String),
}

impl Command {
    /// The program and its arguments: a shell's text is handed to `/bin/sh -c`.
    pub fn words(&self) -> Vec<String> {
        match self {
            Command::Words(words) => words.clone(),
            Command::Shell(text) => vec!["/bin/sh".into(), "-c".into(), text.clone()],
        }
    }
}

/// When a program counts as ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// As soon as it has started.
    Started,
    /// When it listens at this TCP port.
    TcpPort(u16),
    /// When it has bound this UDP port.
    UdpPort(u16),
    /// When it has written a line with this text.
    Output(String),
    /// When it has ended as it must.
    Exit,
}
