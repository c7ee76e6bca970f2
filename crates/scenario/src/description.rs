//! What a scenario file says, checked and with every default filled in: plain values, no positions, no text to parse.
//! One-line topologies have become nodes and links here. `lab` builds a world from it; the auditor reads from it what
//! was promised.

use fullpipe_network::discipline::{
    CoDelSpecification, DualPi2Specification, FairQueueSpecification, PieSpecification, RedSpecification,
    StepMarkerSpecification,
};
use fullpipe_network::impairment::Impairments;
use fullpipe_network::{Course, IpVersion, Limit, NatFilter};
use fullpipe_tcp::Config;
use fullpipe_transport::tls;
use fullpipe_units::{Duration, NodeId, Rate};
use fullpipe_workload::{
    GamingSpec, OnOffSpec, PoissonPacketsSpec, PoissonTransfersSpec, RequestResponseSpec, VideoAbrSpec, VideoCbrSpec,
    VoiceSpec,
};

/// A whole scenario.
#[derive(Clone, Debug, PartialEq)]
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
    /// Shared Ethernet segments.
    pub ethernets: Vec<Ethernet>,
    /// Routers that translate addresses.
    pub nats: Vec<Nat>,
    /// Traffic, in the order of the file.
    pub flows: Vec<Flow>,
    /// Longest random processing time of each host that sends data; `None`: as long as one packet takes at the slowest
    /// drop-tail link that its flows share with others, none where there is no such link.
    pub processing_jitter: Option<Duration>,
    /// What to sample.
    pub probes: Vec<Probe>,
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique.
    pub name: String,
    /// Whether it forwards packets for others (and runs no transport).
    pub router: bool,
}

/// One direction of a point-to-point link.
#[derive(Clone, Debug, PartialEq)]
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
    /// A discipline above the device queue, which then holds packets back instead of dropping them (back-pressure).
    /// `None`: the device queue alone.
    pub discipline: Option<Discipline>,
    /// Loss after transmission.
    pub loss: Option<Loss>,
    /// Rate and delay over time.
    pub course: Course,
    /// What else happens to frames; its seed and name are given when the world is built.
    pub impairments: Impairments,
}

/// How much a drop-tail queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u64),
    /// What the link transmits in this time (bytes = rate x time / 8).
    Time(Duration),
    /// No limit.
    Unlimited,
}

impl QueueLimit {
    /// What it means at a link of this rate.
    pub fn at(self, rate: Rate) -> Limit {
        match self {
            QueueLimit::Packets(packets) => Limit::Packets(u64::from(packets)),
            QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
            QueueLimit::Time(time) => Limit::of_time(time, rate),
            QueueLimit::Unlimited => Limit::Unlimited,
        }
    }
}

/// A queue discipline above a device queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Discipline {
    /// First in, first out.
    Fifo {
        /// How much it holds.
        limit: Limit,
    },
    /// RED and adaptive RED.
    Red(RedSpecification),
    /// CoDel.
    CoDel {
        /// How much it holds.
        limit: Limit,
        /// Its settings.
        settings: CoDelSpecification,
    },
    /// FQ-CoDel.
    FqCodel(FairQueueSpecification),
    /// PIE.
    Pie(PieSpecification),
    /// DualPI2.
    DualPi2(DualPi2Specification),
    /// Drop-tail that marks above a step.
    Step(StepMarkerSpecification),
    /// Strict priority.
    Priority {
        /// How packets are told to bands.
        by: Bands,
        /// The bands, the first served first.
        bands: Vec<Discipline>,
    },
}

/// How strict priority tells packets to bands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bands {
    /// By [`Flow::priority`]; flows without one go to the last band.
    Flow,
    /// UDP and fragments to the first band, TCP to the second.
    Protocol,
    /// ECT(1) and CE to the first band, all others to the second.
    Codepoint,
    /// By size at the IP layer.
    Size {
        /// Largest size of each band but the last, rising.
        largest_bytes: Vec<u32>,
    },
}

/// Loss of frames on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each frame independently.
    Bernoulli {
        /// Probability of loss, 0 to 1.
        probability: f64,
    },
    /// Frame number `offset`, then every `every`-th after it (the first frame is number 1). Frames without transport
    /// payload are not counted and never lost.
    Periodic {
        /// Distance of losses.
        every: u64,
        /// Number of the first lost frame.
        offset: u64,
    },
}

/// A shared Ethernet segment: carrier sense, half or full duplex, with address resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct Ethernet {
    /// Its name, unique among links and segments.
    pub name: String,
    /// Attached hosts, at least two.
    pub hosts: Vec<NodeId>,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay between any two stations.
    pub delay: Duration,
    /// Whether stations share the medium (half duplex) or each has its own to every other (full duplex).
    pub half_duplex: bool,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Bytes of header and trailer around an IP packet (18: header 14, frame check sequence 4).
    pub framing_bytes: u32,
    /// Smallest frame; shorter ones are padded.
    pub min_frame_bytes: u32,
    /// Idle bit times that a station leaves after its own frame.
    pub interframe_gap_bits: u32,
    /// Slot of the back-off.
    pub slot: Duration,
    /// Largest exponent of the back-off: before retry k a station waits floor(U[1, 2^min(k, ceiling) - 1)) slots.
    pub backoff_ceiling: u32,
    /// Retries after which a frame is given up.
    pub max_retries: u32,
    /// Device queue of each station.
    pub device_queue: QueueLimit,
    /// Discipline above each station's device queue.
    pub discipline: Option<Discipline>,
    /// Address resolution.
    pub arp: Arp,
}

/// Address resolution on a shared segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Arp {
    /// Whether addresses must be resolved; otherwise all are known from the start.
    pub enabled: bool,
    /// Packets that may wait for one address; the rest is dropped.
    pub pending_packets: u32,
    /// A request is delayed by this long, drawn uniformly from 0 up to but not including it...
    pub request_jitter: Duration,
    /// ...in steps of this (1 ms: the simulator of the study draws whole milliseconds); 0: any nanosecond.
    pub request_jitter_step: Duration,
    /// Delays to use instead of draws: one per station, in order; stations beyond the list draw.
    pub fixed_delays: Vec<Duration>,
    /// How long to wait for a reply before asking again.
    pub reply_timeout: Duration,
    /// Requests before the waiting packets are dropped.
    pub max_requests: u32,
}

/// A router that translates addresses (see [`fullpipe_network::NatSpecification`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat {
    /// The router.
    pub router: NodeId,
    /// The hosts inside.
    pub inside: Vec<NodeId>,
    /// First port of the pool.
    pub first_port: u16,
    /// Last port of the pool.
    pub last_port: u16,
    /// Which port a mapping gets.
    pub allocation: PortAllocation,
    /// What a mapping lets in.
    pub filter: NatFilter,
    /// Most ports of one protocol that one inside host may hold.
    pub ports_per_host: Option<u32>,
    /// How long a port rests after its mapping has ended.
    pub port_rest: Duration,
    /// Idle time after which a UDP mapping ends.
    pub udp_timeout: Duration,
    /// Whether packets from outside keep a UDP mapping alive too.
    pub udp_inbound_refresh: bool,
    /// Idle time after which an established TCP connection is forgotten.
    pub tcp_established_timeout: Duration,
    /// The same while it is being opened or closed.
    pub tcp_transitory_timeout: Duration,
}

/// Which outside port a mapping gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAllocation {
    /// The inside port where it is free.
    Preserve,
    /// The port after the last that was given out.
    Sequential,
    /// A random one.
    Random,
}

/// One declared conversation, or a group of like ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name, unique: that of the file, with ".N" (N from 1) appended if the file's flow stands for several.
    pub name: String,
    /// Where data come from.
    pub from: NodeId,
    /// Where data go.
    pub to: NodeId,
    /// Version of IP.
    pub ip: IpVersion,
    /// Band of the flow's packets, both ways, where a link serves by strict priority of flows.
    pub priority: Option<u32>,
    /// When it starts.
    pub start: Duration,
    /// What is sent.
    pub workload: Workload,
    /// Over what.
    pub transport: Transport,
}

/// What an application sends. Long descriptions lie apart: a scenario may have 100 000 flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// As much as the transport takes, up to a size.
    Bulk {
        /// Total bytes; `None`: without end.
        size_bytes: Option<u64>,
        /// Bytes per write. A write is made only when the send buffer has room for all of it.
        write_bytes: u64,
    },
    /// Datagrams, or writes, of one size at a constant interval.
    ConstantRate {
        /// Payload bytes of each.
        payload_bytes: u32,
        /// From one to the next.
        interval: Duration,
        /// How many; `None`: without end.
        count: Option<u64>,
    },
    /// A list of transfers one after another on one connection: each starts at its time, or when the one before has
    /// been written if that is later.
    Transfers {
        /// The transfers, in order of time (from the start of the flow).
        transfers: Vec<Transfer>,
    },
    /// Opens the connection and stays silent.
    Idle,
    /// Packets or writes at a rate during on periods.
    OnOff(Box<OnOffSpec>),
    /// Datagrams that come as a Poisson process.
    PoissonPackets(Box<PoissonPacketsSpec>),
    /// Transfers that come as a Poisson process, each on a connection of its own.
    PoissonTransfers(Box<PoissonTransfersSpec>),
    /// Requests and responses.
    RequestResponse(Box<RequestResponseSpec>),
    /// Video at a constant bit rate.
    VideoCbr(Box<VideoCbrSpec>),
    /// Adaptive streaming.
    VideoAbr(Box<VideoAbrSpec>),
    /// A first-person shooter's state updates.
    Gaming(Box<GamingSpec>),
    /// A call.
    Voice(Box<VoiceSpec>),
}

/// One transfer of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When, counted from the start of the flow.
    pub at: Duration,
    /// How much.
    pub size_bytes: u64,
}

/// Over which transport a flow runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP with these settings.
    Tcp(std::sync::Arc<Tcp>),
}

/// TCP settings of a flow (both ends).
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Name of the congestion control.
    pub congestion: String,
    /// HyStart++ (RFC 9406) in controls that have slow start.
    pub hystart: bool,
    /// Whether the client holds a Fast Open cookie from the start (RFC 7413).
    pub fast_open_known: bool,
    /// What protects the stream (RFC 8446); `None`: nothing.
    pub tls: Option<tls::Settings>,
    /// Whether a full receiver closes its side when the sender has closed.
    pub receiver_closes: bool,
    /// Settings of the connections.
    pub connection: Config,
}

/// What to sample, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Of what.
    pub subject: Subject,
    /// Names of metrics as in `series.csv`.
    pub metrics: Vec<String>,
    /// From one sample to the next.
    pub interval: Duration,
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
}
