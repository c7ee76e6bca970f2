//! The keys of a scenario file that describe the run and the network: their names, kinds, defaults and descriptions.
//! The keys of TCP are in `tcp`, those of flows in `traffic`, and those of probes in `probes`.

use super::links;
use super::{
    event_keys, expect, identity, masque, measurement, nat, programs, quic, real_time, tcp, topology, traffic,
};
use crate::schema::component::choices;
use crate::schema::{Choice, Field, FieldKind, Table, keys};
use fullpipe_network::discipline::table::DISCIPLINE;
use fullpipe_network::link::DELAY;
use fullpipe_network::{impairment, rebinding};
use fullpipe_units::Duration;

/// The maximum number of nodes, of links, and of flows in a scenario.
pub(crate) const MOST: usize = 1_000_000;
/// The maximum number of stations of an Ethernet segment (IEEE 802.3).
pub(super) const MOST_STATIONS: i64 = 1024;

/// The size of framing.
const FRAMING: FieldKind = FieldKind::size(0, 1000);
const MTU: FieldKind = FieldKind::size(68, 65_535);

/// Probes. [`probes::table`](super::probes::table) adds their keys.
pub(super) const PROBE: Field =
    Field::optional("probe", FieldKind::Tables(&Table::EMPTY), "none", "Metrics that are sampled into `series.csv`.");

/// The whole file except probes and access networks. The keys of access networks are inserted between the two groups.
pub(super) static SCENARIO: Table = Table {
    name: "",
    text: "",
    fields: &[
        keys! {
            /// One line for reports.
            "title": FieldKind::Text, default "";
            /// Longest duration of the run. It ends earlier if no event is left.
            "duration": FieldKind::INTERVAL, default "60s";
            /// Seed of all random streams of the run.
            "seed": FieldKind::integer(0, i64::MAX), default "1";
            /// Longest random time between a host's decision to send a packet and its transmission. Without it, flows that share a
            /// queue or a medium have phase effects (Floyd and Jacobson 1991), and replications are equal. `"0s"` disables it.
            "processing_jitter": FieldKind::DURATION, optional "one packet at the slowest link or medium that a host's flows share with others; none for a single flow";
            /// Each flow starts later by a random part of this many base round-trip times: those of a full packet
            /// and a small one back in an empty network. Runs then show whether a result depends on the phase between flows.
            "phase_jitter": FieldKind::number(0.0, 100.0), optional "none";
            /// A network of a common shape, instead of `host`, `router`, `link` and `ethernet`.
            "topology": FieldKind::Table(&topology::TOPOLOGY), optional "none";
            /// Hosts of a network without `topology`.
            "host": FieldKind::Tables(&HOST), optional "none";
            /// Routers of a network without `topology`.
            "router": FieldKind::Tables(&ROUTER), optional "none";
            /// Point-to-point links of a network without `topology`.
            "link": FieldKind::Tables(&LINK), optional "none";
            /// Shared Ethernet segments of a network without `topology`.
            "ethernet": FieldKind::Tables(&ETHERNET), optional "none";
        },
        keys! {
            /// Routers that translate addresses, in any network.
            "nat": FieldKind::Tables(&nat::NAT), optional "none";
            /// TCP settings of all flows without their own.
            "tcp": FieldKind::Table(&tcp::TCP), empty;
            /// QUIC settings of all flows with `protocol = "quic"` without their own.
            "quic": FieldKind::Table(&quic::QUIC), optional "the defaults";
            /// Settings of all tunnels, flows with `protocol = "masque"`, without their own.
            "masque": FieldKind::Table(&masque::MASQUE), optional "the defaults";
            /// Traffic between hosts.
            "flow": FieldKind::Tables(&traffic::FLOW), optional "none; there must be one, or a program";
            /// Real programs at hosts, in real time.
            "program": FieldKind::Tables(&programs::PROGRAM), optional "none";
            PROBE;
            /// Changes at times that the run determines, and metrics recorded at such times.
            "event": FieldKind::Tables(&event_keys::EVENT), optional "none";
            /// The measured interval, and the links in `links.csv`.
            "measurement": FieldKind::Table(&measurement::MEASUREMENT), optional "the whole run; no links";
            /// Bounds on metrics of flows, for continuous integration. `fullpipe run` ends with exit status 4 if one is not met.
            "expect": FieldKind::Tables(&expect::EXPECT), optional "none";
            /// Settings of real time.
            "real_time": FieldKind::Table(&real_time::REAL_TIME), empty;
        },
    ],
    later: &["clock", "channel", "proxy", "background", "import"],
    ..Table::EMPTY
};

static HOST: Table = Table {
    name: "host",
    text: "An end system: it runs transports and applications, and does not forward packets.",
    fields: &[
        keys! {
            /// Its name.
            "name": FieldKind::Name, required;
            /// Number of hosts, named by the name and a number from 1: `phone1`, `phone2`, ...
            "count" ["hosts"]: FieldKind::integer(1, MOST as i64), optional "one host, of this name";
        },
        identity::ADDRESSES,
        keys! {
            /// In real time, an interface of this machine, such as `eth0`. The system connected to it takes the place of the
            /// host.
            "interface": FieldKind::Text, optional "a network namespace, if programs or kernel sockets run at the host";
        },
    ],
    ..Table::EMPTY
};

static ROUTER: Table = Table {
    name: "router",
    text: "A node that forwards packets. Routes are static and have the fewest hops; of equal routes, the one over the link that is \
           first in the file is used.",
    fields: &[&[Field::required("name", FieldKind::Name, "Its name.")], identity::ADDRESSES],
    ..Table::EMPTY
};

/// The key with the round-trip time for limits in BDP.
const BDP_RTT: &str = "Round-trip time of the bandwidth-delay product: a limit of `\"2BDP\"` is twice the product of this time \
                       and the link's rate (the mean of a varying rate).";

/// The keys of a link that apply to both directions.
const LINK_FIELDS: &[Field] = keys! {
    /// Bit rate. With a `trace` of delivery opportunities or of rates, the trace determines deliveries, and `rate` only
    /// converts queue limits in time to bytes.
    "rate": FieldKind::RATE, optional "the mean rate of `trace`; required without a trace";
    /// Propagation delay. The delays of a CSV `trace` override it.
    "delay": DELAY, optional "the first delay of a CSV `trace`; required without one";
    /// Largest IP packet; larger ones are fragmented.
    "mtu": MTU, default "1500B";
    /// Bytes that framing adds to each IP packet, on the wire and in queues limited by bytes. The default is
    /// that of ns-3's point-to-point links (PPP); 18B is that of Ethernet.
    "framing": FRAMING, default "2B";
    /// Limit of the device's drop-tail queue; the packet in transmission does not count. A limit in time is what the
    /// link transmits in that time. `discipline.limit` limits the queue under every discipline, `"none"` included.
    "queue": FieldKind::LinkQueueLimit, optional "`\"1000packets\"`; no queue if there is a discipline, in which all packets then wait";
    Field::optional("bdp_rtt", FieldKind::INTERVAL, BASE_RTT, BDP_RTT);
    /// A queue discipline above the device's queue. The device's queue then exerts backpressure on the discipline instead of
    /// dropping packets.
    "discipline": FieldKind::Table(&DISCIPLINE), empty;
    /// Settings of the other direction that differ, for example `reverse = { rate = "1Mbit/s" }`.
    "reverse": FieldKind::Table(&REVERSE), optional "as the first direction, except for schedules, traces and impairments";
};

/// The table of a link in a topology.
pub(super) static LINE: Table = Table {
    name: "topology link",
    text: "A point-to-point link of a topology, which determines its ends.",
    fields: &[LINK_FIELDS, &impairment::KEYS, links::OWN],
    ..Table::EMPTY
};

static LINK: Table = Table {
    name: "link",
    text: "A point-to-point link between two hosts or routers, with two directions. The first has the link's name, the \
           other that name with `.reverse`.",
    fields: &[
        &[
            Field::required("name", FieldKind::Name, "Its name."),
            Field::required("from", FieldKind::Name, "Host or router that sends in the first direction."),
            Field::required("to", FieldKind::Name, "Host or router that receives in the first direction."),
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
            Field::optional("rate", FieldKind::RATE, AS_FIRST, "Bit rate."),
            Field::optional("delay", DELAY, AS_FIRST, "Propagation delay."),
            Field::optional("mtu", MTU, AS_FIRST, "Largest IP packet."),
            Field::optional("framing", FRAMING, AS_FIRST, "Bytes that framing adds."),
            Field::optional("queue", FieldKind::LinkQueueLimit, AS_FIRST, "Limit of the device's drop-tail queue."),
            Field::optional(
                "bdp_rtt",
                FieldKind::INTERVAL,
                AS_FIRST,
                "Round-trip time of the bandwidth-delay product.",
            ),
            Field::optional(
                "discipline",
                FieldKind::Table(&DISCIPLINE),
                AS_FIRST,
                "A queue discipline above the queue.",
            ),
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
            Field::required("name", FieldKind::Name, "Its name."),
            Field::required("hosts", FieldKind::List(&FieldKind::Name), "The attached hosts, at least two."),
        ],
        ETHERNET_FIELDS,
    ],
    ..Table::EMPTY
};

/// Whether the stations share the medium.
pub(super) const DUPLEX: [(Choice, bool); 2] = [
    (Choice::new("half", "stations share the medium; a frame occupies it until its last bit has arrived."), true),
    (Choice::new("full", "each station has a separate medium to each other station."), false),
];

pub(super) const ETHERNET_FIELDS: &[Field] = keys! {
    /// Rate of every station.
    "rate": FieldKind::RATE, required;
    /// Propagation delay between any two stations.
    "delay": DELAY, required;
    /// Whether stations share the medium.
    "duplex": FieldKind::Choice(&choices(&DUPLEX)), default "half";
    /// Largest IP packet; larger ones are fragmented.
    "mtu": MTU, default "1500B";
    /// Header (14) and frame check sequence (4) around an IP packet.
    "framing": FRAMING, default "18B";
    /// Smallest frame, header and check sequence counted; shorter ones are padded.
    "min_frame": FieldKind::size(0, 65_535), default "64B";
    /// Time for which a station does not transmit after its own frame.
    "interframe_gap" ["bit times"]: FieldKind::integer(0, 1_000_000), default "96";
    /// Slot of the back-off.
    "slot": FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(1)), default "1us";
    /// Largest exponent of the back-off: before retry k a station waits floor(U[1, 2^min(k, ceiling) - 1)) slots.
    "backoff_ceiling": FieldKind::integer(1, 30), default "10";
    /// Retries after which a frame is dropped.
    "max_retries": FieldKind::integer(1, 1_000_000), default "1000";
    /// Limit of each station's device queue.
    "queue": FieldKind::LinkQueueLimit, default "100packets";
    Field::optional("bdp_rtt", FieldKind::INTERVAL, BASE_RTT, BDP_RTT);
    /// A queue discipline above each station's device queue.
    "discipline": FieldKind::Table(&DISCIPLINE), empty;
    /// Address resolution.
    "arp": FieldKind::Table(&ARP), empty;
};

static ARP: Table = Table {
    name: "arp",
    text: "Address resolution (RFC 826) on a segment. The defaults are ns-3's, which the study of a shared segment uses; \
           a real host sends requests without delay (`request_jitter = \"0s\"`).",
    fields: &[keys! {
        /// Whether addresses must be resolved. Otherwise all are known from the start.
        "enabled": FieldKind::Boolean, default "true";
        /// Packets that may wait for one address; further ones are dropped.
        "pending" ["packets"]: FieldKind::integer(1, 1_000_000), default "3";
        /// Upper bound of the random delay of a request.
        "request_jitter": DELAY, default "10ms";
        /// Step of the random delay of a request (whole milliseconds, as in ns-3); `"0s"`: any nanosecond.
        "request_jitter_step": DELAY, default "1ms";
        /// Fixed delays instead of random ones, one for each station in order; further stations have random delays.
        "fixed_delays": FieldKind::List(&DELAY), default "[]";
        /// Time after which a request without a reply is repeated.
        "reply_timeout": FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(3600)), default "1s";
        /// Requests after which the waiting packets are dropped: one and three repetitions.
        "max_requests": FieldKind::integer(1, 1000), default "4";
    }],
    ..Table::EMPTY
};
