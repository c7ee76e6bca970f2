//! The keys of a scenario file that describe the run and the network: what they are called, may hold, default to and
//! mean. TCP's keys are in `tcp`, those of flows in `traffic`, those of probes in `probes`.

use super::links;
use super::{identity, masque, measurement, nat, programs, quic, real_time, tcp, topology, traffic};
use crate::schema::component::choices;
use crate::schema::{Choice, Field, Kind, Table};
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
        &[
            Field::default("title", Kind::Text, "", "One line for reports."),
            Field::default(
                "duration",
                Kind::INTERVAL,
                "60s",
                "When the run ends at the latest. It ends earlier when nothing is left to happen.",
            ),
            Field::default(
                "seed",
                Kind::integer(0, i64::MAX),
                "1",
                "Seed of every random stream of the run; another seed is another sample of the same scenario.",
            ),
            Field::optional(
                "processing_jitter",
                Kind::DURATION,
                "one packet at the slowest drop-tail link that a host's flows share with others",
                "Longest random time that a host takes before each packet it sends: without it several flows over a drop-tail \
             queue have phase effects (Floyd and Jacobson 1991). `\"0s\"` switches it off.",
            ),
            Field::optional("topology", Kind::Table(&topology::TOPOLOGY), "none", "A common network in a few lines."),
            Field::optional("host", Kind::Tables(&HOST), "none", "The hosts of a network of your own."),
            Field::optional("router", Kind::Tables(&ROUTER), "none", "Its routers."),
            Field::optional("link", Kind::Tables(&LINK), "none", "Its point-to-point links."),
            Field::optional("ethernet", Kind::Tables(&ETHERNET), "none", "Its shared Ethernet segments."),
        ],
        &[
            Field::optional(
                "nat",
                Kind::Tables(&nat::NAT),
                "none",
                "Routers that translate addresses, in any network.",
            ),
            Field::empty("tcp", Kind::Table(&tcp::TCP), "TCP settings of all flows that do not say otherwise."),
            Field::optional(
                "quic",
                Kind::Table(&quic::QUIC),
                "the defaults",
                "QUIC settings of all flows with `protocol = \"quic\"` that do not say otherwise.",
            ),
            Field::optional(
                "masque",
                Kind::Table(&masque::MASQUE),
                "the defaults",
                "Settings of all tunnels, flows with `protocol = \"masque\"`, that do not say otherwise.",
            ),
            Field::optional(
                "flow",
                Kind::Tables(&traffic::FLOW),
                "none; there must be one, or a program",
                "Who talks to whom.",
            ),
            Field::optional(
                "program",
                Kind::Tables(&programs::PROGRAM),
                "none",
                "Real programs at hosts, in real time.",
            ),
            PROBE,
            Field::optional(
                "measurement",
                Kind::Table(&measurement::MEASUREMENT),
                "no link is summed up",
                "What to sum up into `links.csv`.",
            ),
            Field::empty("real_time", Kind::Table(&real_time::REAL_TIME), "How the wall clock is kept in real time."),
        ],
    ],
    later: &["clock", "channel", "proxy", "background", "import"],
    ..Table::EMPTY
};

static HOST: Table = Table {
    name: "host",
    text: "An end system: runs transports and applications, forwards nothing.",
    fields: &[
        &[
            Field::required("name", Kind::Name, "Its name."),
            Field::optional(
                "count",
                Kind::integer(1, MOST as i64),
                "one host, of this name",
                "So many hosts, called by the name and a number from 1: `phone1`, `phone2`, ...",
            )
            .unit("hosts"),
        ],
        identity::ADDRESSES,
        &[Field::optional(
            "interface",
            Kind::Text,
            "a network namespace, if real software stands here",
            "In real time, the interface of this machine that stands for the host, such as `eth0`: whatever is beyond it is \
             the host.",
        )],
    ],
    ..Table::EMPTY
};

static ROUTER: Table = Table {
    name: "router",
    text: "Forwards packets. Routes are static: the fewest hops, ties to the link that the file names first.",
    fields: &[&[Field::required("name", Kind::Name, "Its name.")], identity::ADDRESSES],
    ..Table::EMPTY
};

/// Keys of a link that both directions have.
const LINK_FIELDS: &[Field] = &[
    Field::required("rate", Kind::RATE, "Serialisation rate."),
    Field::required("delay", DELAY, "Propagation delay."),
    Field::default("mtu", MTU, "1500B", "Largest IP packet; larger ones are fragmented."),
    Field::default(
        "framing",
        FRAMING,
        "2B",
        "Bytes that framing adds to each IP packet, on the wire and in queues limited by bytes. The default is what \
         ns-3's point-to-point links (PPP) count; 18B counts like Ethernet.",
    ),
    Field::optional(
        "queue",
        Kind::QueueLimit,
        "`\"1000packets\"`; below a discipline nothing, all wait in it",
        "How much the drop-tail queue holds; the packet in transmission does not count. A limit in time is what the \
         link transmits in that time.",
    ),
    Field::empty(
        "discipline",
        Kind::Table(&DISCIPLINE),
        "A queue discipline above the queue, which then holds packets back instead of dropping them.",
    ),
    Field::optional(
        "reverse",
        Kind::Table(&REVERSE),
        "as the first direction, without what holds for one direction only",
        "What is different in the other direction, for example `reverse = { rate = \"1Mbit/s\" }`.",
    ),
];

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
            Field::optional("queue", Kind::QueueLimit, AS_FIRST, "How much the drop-tail queue holds."),
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

pub(super) const ETHERNET_FIELDS: &[Field] = &[
    Field::required("rate", Kind::RATE, "Rate of every station."),
    Field::required("delay", DELAY, "Propagation delay between any two stations."),
    Field::default("duplex", Kind::Choice(&choices(&DUPLEX)), "half", "Whether stations share the medium."),
    Field::default("mtu", MTU, "1500B", "Largest IP packet; larger ones are fragmented."),
    Field::default("framing", FRAMING, "18B", "Header (14) and frame check sequence (4) around an IP packet."),
    Field::default(
        "min_frame",
        Kind::size(0, 65_535),
        "64B",
        "Smallest frame, header and check sequence counted; shorter ones are padded.",
    ),
    Field::default(
        "interframe_gap",
        Kind::integer(0, 1_000_000),
        "96",
        "How long a station leaves the medium after its own frame.",
    )
    .unit("bit times"),
    Field::default(
        "slot",
        Kind::duration(Duration::from_nanos(1), Duration::from_secs(1)),
        "1us",
        "Slot of the back-off.",
    ),
    Field::default(
        "backoff_ceiling",
        Kind::integer(1, 30),
        "10",
        "Largest exponent of the back-off: before retry k a station waits floor(U[1, 2^min(k, ceiling) - 1)) slots.",
    ),
    Field::default("max_retries", Kind::integer(1, 1_000_000), "1000", "Retries after which a frame is given up."),
    Field::default("queue", Kind::QueueLimit, "100packets", "How much each station's device queue holds."),
    Field::empty("discipline", Kind::Table(&DISCIPLINE), "A queue discipline above each station's device queue."),
    Field::empty("arp", Kind::Table(&ARP), "Address resolution."),
];

static ARP: Table = Table {
    name: "arp",
    text: "Address resolution (RFC 826) on a segment. The defaults are ns-3's, which the study of a shared segment uses; \
           a real host asks without delay (`request_jitter = \"0s\"`).",
    fields: &[&[
        Field::boolean("enabled", true, "Whether addresses must be resolved; otherwise all are known from the start."),
        Field::default(
            "pending",
            Kind::integer(1, 1_000_000),
            "3",
            "Packets that may wait for one address; the rest is dropped.",
        )
        .unit("packets"),
        Field::default("request_jitter", DELAY, "10ms", "A request is delayed by a random time below this..."),
        Field::default(
            "request_jitter_step",
            DELAY,
            "1ms",
            "...drawn as a multiple of this (whole milliseconds, as ns-3 draws); `\"0s\"`: any nanosecond.",
        ),
        Field::default(
            "fixed_delays",
            Kind::List(&DELAY),
            "[]",
            "Delays to use instead of draws, one for each station in order; stations beyond the list draw.",
        ),
        Field::default(
            "reply_timeout",
            Kind::duration(Duration::from_nanos(1), Duration::from_secs(3600)),
            "1s",
            "How long to wait for a reply before asking again.",
        ),
        Field::default(
            "max_requests",
            Kind::integer(1, 1000),
            "4",
            "Requests before the waiting packets are dropped: one and three repetitions.",
        ),
    ]],
    ..Table::EMPTY
};
