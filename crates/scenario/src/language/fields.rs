//! The keys of a scenario file that describe the run and the network: what they are called, may hold, default to and
//! mean. TCP's keys are in `tcp`, those of flows in `traffic`, those of probes in `probes`.

use super::links;
use super::{expect, identity, masque, measurement, nat, programs, quic, real_time, tcp, topology, traffic};
use crate::schema::component::choices;
use crate::schema::{Choice, Field, Kind, Table, keys};
use fullpipe_network::discipline::table::DISCIPLINE;
use fullpipe_network::link::DELAY;
use fullpipe_network::{impairment, rebinding};
use fullpipe_units::Duration;

/// Most hosts and routers, most links, most flows of a scenario.
pub(crate) const MOST: usize = 1_000_000;
/// Most stations of an Ethernet segment, IEEE 802.3's own limit.
pub(super) const MOST_STATIONS: i64 = 1024;

/// A packet's or frame's size.
const FRAMING: Kind = Kind::size(0, 1000);
const MTU: Kind = Kind::size(68, 65_535);

/// Probes, which [`probes::table`](super::probes::table) gives their keys.
pub(super) const PROBE: Field =
    Field::optional("probe", Kind::Tables(&Table::EMPTY), "none", "What to sample into `series.csv`.");

/// The whole file but for access networks, whose keys come between the two groups, and probes.
pub(super) static SCENARIO: Table = Table {
    name: "",
    text: "",
    fields: &[
        keys! {
            /// One line for reports.
            "title": Kind::Text, default "";
            /// When the run ends at the latest. It ends earlier when nothing is left to happen.
            "duration": Kind::INTERVAL, default "60s";
            /// Seed of every random stream of the run; another seed is another sample of the same scenario.
            "seed": Kind::integer(0, i64::MAX), default "1";
            /// Longest random time that a host takes before each packet it sends: without it, flows that share a queue or
            /// a medium have phase effects (Floyd and Jacobson 1991), and replications agree. `"0s"` switches it off.
            "processing_jitter": Kind::DURATION, optional "one packet at the slowest link or medium that a host's flows share with others; none for a single flow";
            /// Each flow starts later by a random part of this many base round-trip times: those of a full packet and a
            /// small one back in an empty network. So runs show whether a result depends on the phase between flows.
            "phase_jitter": Kind::number(0.0, 100.0), optional "none";
            /// A common network in a few lines.
            "topology": Kind::Table(&topology::TOPOLOGY), optional "none";
            /// The hosts of a network of your own.
            "host": Kind::Tables(&HOST), optional "none";
            /// Its routers.
            "router": Kind::Tables(&ROUTER), optional "none";
            /// Its point-to-point links.
            "link": Kind::Tables(&LINK), optional "none";
            /// Its shared Ethernet segments.
            "ethernet": Kind::Tables(&ETHERNET), optional "none";
        },
        keys! {
            /// Routers that translate addresses, in any network.
            "nat": Kind::Tables(&nat::NAT), optional "none";
            /// TCP settings of all flows that do not say otherwise.
            "tcp": Kind::Table(&tcp::TCP), empty;
            /// QUIC settings of all flows with `protocol = "quic"` that do not say otherwise.
            "quic": Kind::Table(&quic::QUIC), optional "the defaults";
            /// Settings of all tunnels, flows with `protocol = "masque"`, that do not say otherwise.
            "masque": Kind::Table(&masque::MASQUE), optional "the defaults";
            /// Who talks to whom.
            "flow": Kind::Tables(&traffic::FLOW), optional "none; there must be one, or a program";
            /// Real programs at hosts, in real time.
            "program": Kind::Tables(&programs::PROGRAM), optional "none";
            PROBE;
            /// What to sum up into `links.csv`.
            "measurement": Kind::Table(&measurement::MEASUREMENT), optional "no link is summed up";
            /// Bounds on metrics of flows, for continuous integration. `fullpipe run` ends with exit status 4 if one is not met.
            "expect": Kind::Tables(&expect::EXPECT), optional "none";
            /// How the wall clock is kept in real time.
            "real_time": Kind::Table(&real_time::REAL_TIME), empty;
        },
    ],
    later: &["clock", "channel", "proxy", "background", "import"],
    ..Table::EMPTY
};

static HOST: Table = Table {
    name: "host",
    text: "An end system: runs transports and applications, forwards nothing.",
    fields: &[
        keys! {
            /// Its name.
            "name": Kind::Name, required;
            /// So many hosts, called by the name and a number from 1: `phone1`, `phone2`, ...
            "count" ["hosts"]: Kind::integer(1, MOST as i64), optional "one host, of this name";
        },
        identity::ADDRESSES,
        keys! {
            /// In real time, the interface of this machine that stands for the host, such as `eth0`: whatever is beyond
            /// it is the host.
            "interface": Kind::Text, optional "a network namespace, if real software stands here";
        },
    ],
    ..Table::EMPTY
};

static ROUTER: Table = Table {
    name: "router",
    text: "Forwards packets. Routes are static: the fewest hops, ties to the link that the file names first.",
    fields: &[&[Field::required("name", Kind::Name, "Its name.")], identity::ADDRESSES],
    ..Table::EMPTY
};

/// The key that limits in BDP are read with.
const BDP_RTT: &str = "Round-trip time of the bandwidth-delay product: a limit of `\"2BDP\"` is twice the link's rate, of a \
                       varying rate the mean, times this.";

/// Keys of a link that both directions have.
const LINK_FIELDS: &[Field] = keys! {
    /// Serialisation rate.
    "rate": Kind::RATE, required;
    /// Propagation delay.
    "delay": DELAY, required;
    /// Largest IP packet; larger ones are fragmented.
    "mtu": MTU, default "1500B";
    /// Bytes that framing adds to each IP packet, on the wire and in queues limited by bytes. The default is what
    /// ns-3's point-to-point links (PPP) count; 18B counts like Ethernet.
    "framing": FRAMING, default "2B";
    /// How much the device's drop-tail queue holds; the packet in transmission does not count. A limit in time is what the
    /// link transmits in that time. `discipline.limit` limits the queue under every discipline, `"none"` included.
    "queue": Kind::LinkQueueLimit, optional "`\"1000packets\"`; below a discipline nothing, all wait in it";
    Field::optional("bdp_rtt", Kind::INTERVAL, BASE_RTT, BDP_RTT);
    /// A queue discipline above the queue, which then holds packets back instead of dropping them.
    "discipline": Kind::Table(&DISCIPLINE), empty;
    /// What is different in the other direction, for example `reverse = { rate = "1Mbit/s" }`.
    "reverse": Kind::Table(&REVERSE), optional "as the first direction, without what holds for one direction only";
};

/// A link of a topology.
pub(super) static LINE: Table = Table {
    name: "topology link",
    text: "A point-to-point link of a topology; where it begins and ends, the topology says.",
    fields: &[LINK_FIELDS, &impairment::KEYS, links::OWN],
    ..Table::EMPTY
};

static LINK: Table = Table {
    name: "link",
    text: "A point-to-point link between two hosts or routers, with two directions. The first has the link's name, the \
           other that name with `.reverse`.",
    fields: &[
        &[
            Field::required("name", Kind::Name, "Its name."),
            Field::required("from", Kind::Name, "Where its first direction begins."),
            Field::required("to", Kind::Name, "Where its first direction ends."),
            rebinding::KEY,
        ],
        LINK_FIELDS,
        &impairment::KEYS,
        links::OWN,
    ],
    ..Table::EMPTY
};

/// The default of [`BDP_RTT`].
const BASE_RTT: &str = "the largest base round-trip time (propagation over all hops, there and back) of the flows through \
                        the link, in either direction";

const AS_FIRST: &str = "as the first direction";

static REVERSE: Table = Table {
    name: "reverse direction",
    text: "The other direction of a link.",
    fields: &[
        &[
            Field::optional("rate", Kind::RATE, AS_FIRST, "Serialisation rate."),
            Field::optional("delay", DELAY, AS_FIRST, "Propagation delay."),
            Field::optional("mtu", MTU, AS_FIRST, "Largest IP packet."),
            Field::optional("framing", FRAMING, AS_FIRST, "Bytes that framing adds."),
            Field::optional("queue", Kind::LinkQueueLimit, AS_FIRST, "How much the device's drop-tail queue holds."),
            Field::optional("bdp_rtt", Kind::INTERVAL, AS_FIRST, "Round-trip time of the bandwidth-delay product."),
            Field::optional("discipline", Kind::Table(&DISCIPLINE), AS_FIRST, "A queue discipline above the queue."),
        ],
        &impairment::KEYS,
        links::OWN,
    ],
    ..Table::EMPTY
};

static ETHERNET: Table = Table {
    name: "ethernet",
    text: "A shared Ethernet segment: carrier sense, half or full duplex, address resolution.",
    fields: &[
        &[
            Field::required("name", Kind::Name, "Its name."),
            Field::required("hosts", Kind::List(&Kind::Name), "The attached hosts, at least two."),
        ],
        ETHERNET_FIELDS,
    ],
    ..Table::EMPTY
};

/// Whether the stations share the medium.
pub(super) const DUPLEX: [(Choice, bool); 2] = [
    (Choice::new("half", "stations share the medium; a frame occupies it until its last bit has arrived."), true),
    (Choice::new("full", "each station has a medium of its own to every other."), false),
];

pub(super) const ETHERNET_FIELDS: &[Field] = keys! {
    /// Rate of every station.
    "rate": Kind::RATE, required;
    /// Propagation delay between any two stations.
    "delay": DELAY, required;
    /// Whether stations share the medium.
    "duplex": Kind::Choice(&choices(&DUPLEX)), default "half";
    /// Largest IP packet; larger ones are fragmented.
    "mtu": MTU, default "1500B";
    /// Header (14) and frame check sequence (4) around an IP packet.
    "framing": FRAMING, default "18B";
    /// Smallest frame, header and check sequence counted; shorter ones are padded.
    "min_frame": Kind::size(0, 65_535), default "64B";
    /// How long a station leaves the medium after its own frame.
    "interframe_gap" ["bit times"]: Kind::integer(0, 1_000_000), default "96";
    /// Slot of the back-off.
    "slot": Kind::duration(Duration::from_nanos(1), Duration::from_secs(1)), default "1us";
    /// Largest exponent of the back-off: before retry k a station waits floor(U[1, 2^min(k, ceiling) - 1)) slots.
    "backoff_ceiling": Kind::integer(1, 30), default "10";
    /// Retries after which a frame is given up.
    "max_retries": Kind::integer(1, 1_000_000), default "1000";
    /// How much each station's device queue holds.
    "queue": Kind::LinkQueueLimit, default "100packets";
    Field::optional("bdp_rtt", Kind::INTERVAL, BASE_RTT, BDP_RTT);
    /// A queue discipline above each station's device queue.
    "discipline": Kind::Table(&DISCIPLINE), empty;
    /// Address resolution.
    "arp": Kind::Table(&ARP), empty;
};

static ARP: Table = Table {
    name: "arp",
    text: "Address resolution (RFC 826) on a segment. The defaults are ns-3's, which the study of a shared segment uses; \
           a real host asks without delay (`request_jitter = \"0s\"`).",
    fields: &[keys! {
        /// Whether addresses must be resolved; otherwise all are known from the start.
        "enabled": Kind::Boolean, default "true";
        /// Packets that may wait for one address; the rest is dropped.
        "pending" ["packets"]: Kind::integer(1, 1_000_000), default "3";
        /// A request is delayed by a random time below this...
        "request_jitter": DELAY, default "10ms";
        /// ...drawn as a multiple of this (whole milliseconds, as ns-3 draws); `"0s"`: any nanosecond.
        "request_jitter_step": DELAY, default "1ms";
        /// Delays to use instead of draws, one for each station in order; stations beyond the list draw.
        "fixed_delays": Kind::List(&DELAY), default "[]";
        /// How long to wait for a reply before asking again.
        "reply_timeout": Kind::duration(Duration::from_nanos(1), Duration::from_secs(3600)), default "1s";
        /// Requests before the waiting packets are dropped: one and three repetitions.
        "max_requests": Kind::integer(1, 1000), default "4";
    }],
    ..Table::EMPTY
};
