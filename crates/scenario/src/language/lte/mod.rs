//! LTE access networks: their keys, and what depends on other keys. [`describe`] makes the plain description of them.

use super::distributions::TIME_OR_RANDOM;
use super::links;
use crate::description::QueueLimit;
use crate::schema::{Choice, Data, Default, Field, Kind, Place, Table, Tree, Value, Variant, Variants, default_data};
use fullpipe_units::Duration;

mod describe;

pub(super) use describe::networks;

/// Metres: no cell is as wide.
const METRES: Kind = Kind::Number { min: -1e6, max: 1e6 };
const DISTANCE: Kind = Kind::Number { min: 0.0, max: 1e6 };
const DECIBELS: Kind = Kind::Number { min: -200.0, max: 300.0 };
const POWER: Kind = Kind::Number { min: -100.0, max: 100.0 };
const CHANNEL: Kind = Kind::Integer { min: 0, max: 70_000 };
const BLOCKS: Kind = Kind::Integer { min: 6, max: 100 };
const TOKENS: Kind = Kind::Size { min: 0, max: 1_000_000_000 };
const TIMER: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_secs(3600) };
/// Keys that say where a UE is; it has one of them.
const PLACES: [&str; 4] = ["distance", "position", "waypoints", "course"];
/// The buffer that the reference model has.
const REFERENCE_BUFFER_BYTES: u32 = 10_240;

/// What `models` of path loss there are, for lists: name and text.
pub fn path_loss_models() -> impl Iterator<Item = (&'static str, &'static str)> {
    PATH_LOSS.variants.into_iter().flat_map(|variants| variants.list).map(|variant| (variant.name, variant.text))
}

/// What kinds of fading there are, for lists: name and text.
pub fn fading_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    FADING.variants.into_iter().flat_map(|variants| variants.list).map(|variant| (variant.name, variant.text))
}

pub(super) static LTE: Table = Table {
    name: "LTE network",
    text: "An LTE access network (FDD): a gateway, cells, UEs. What goes to a UE enters at the gateway, and what comes from it \
           leaves there; two UEs talk by way of the gateway, if that is a router. Defaults are those of ns-3's `lte` module, \
           save where a key says otherwise. See docs/lte.md.",
    fields: &[&[
        Field::required(
            "name",
            Kind::Name,
            "Its name; its two ways are links called `NAME.downlink` and `NAME.uplink`.",
        ),
        Field::required("gateway", Kind::Name, "The PGW: a router or a host."),
        Field::default(
            "preset",
            Kind::Choice(&[
                Choice::new("none", "the defaults of this page."),
                Choice::new(
                    "table-i",
                    "those of Table I of Scharnitzky et al., Real-time Emulation of MASQUE-based QUIC Proxying in LTE networks \
                     using ns-3: see docs/lte.md.",
                ),
            ]),
            "none",
            "Other defaults for keys of the network, its cells and its UEs.",
        ),
        Field::default("resource_blocks", BLOCKS, "25", "Bandwidth of the downlink: 6, 15, 25, 50, 75 or 100.")
            .unit("RB"),
        Field::optional("uplink_resource_blocks", BLOCKS, "as `resource_blocks`", "Bandwidth of the uplink.")
            .unit("RB"),
        Field::default("earfcn", CHANNEL, "100", "Channel number of the downlink (3GPP TS 36.101): 100 is 2120 MHz."),
        Field::default("uplink_earfcn", CHANNEL, "18100", "Channel number of the uplink: 18100 is 1930 MHz."),
        Field::default(
            "allow_nonstandard_bandwidth",
            Kind::Boolean,
            "false",
            "Whether a carrier may be wider or narrower than the channels of its band.",
        ),
        Field::empty("path_loss", Kind::Table(&PATH_LOSS), "Path loss between any cell and any UE."),
        Field::default(
            "shadowing",
            Kind::Number { min: 0.0, max: 100.0 },
            "0.0",
            "Standard deviation of log-normal shadowing, drawn once for each cell and UE.",
        )
        .unit("dB"),
        Field::empty("fading", Kind::Table(&FADING), "Fading of the downlink."),
        Field::optional("uplink_fading", Kind::Table(&FADING), "as `fading`", "Fading of the uplink."),
        Field::default(
            "fading_begins",
            Kind::Choice(&[
                Choice::new("run", "with the run."),
                Choice::new(
                    "first-packet",
                    "with the subframe in which the first packet comes, to the gateway or to a UE; until then the channel stands \
                     still as it is at time 0.",
                ),
            ]),
            "run",
            "When the time of the fading begins, of both directions.",
        ),
        Field::optional(
            "fading_begins_with",
            Kind::Size { min: 1, max: 65_535 },
            "any packet",
            "Least IP packet that is the first for `fading_begins`: `\"500B\"` leaves out pings, TCP's handshake and bare \
             acknowledgements.",
        ),
        Field::default("data_errors", Kind::Boolean, "true", "Whether transport blocks are lost."),
        Field::default("control_errors", Kind::Boolean, "true", "Whether the control region of a subframe is."),
        Field::default(
            "mutual_information",
            Kind::Choice(&[
                Choice::new("reference", "in the steps of ns-3's tables."),
                Choice::new("smooth", "as the continuous function."),
            ]),
            "reference",
            "How the error model looks up mutual information.",
        ),
        Field::default(
            "signalling",
            Kind::Choice(&[
                Choice::new("ideal", "at once."),
                Choice::new("radio", "in the time that it takes over the radio of an idle cell."),
            ]),
            "ideal",
            "How messages of RRC are carried, for UEs that attach in the run.",
        ),
        Field::default("core_rate", Kind::RATE, "10Gbit/s", "Rate of the two links between gateway, SGW and eNB."),
        Field::default("s5_delay", links::DELAY, "0s", "Delay between gateway and SGW."),
        Field::default("s1_delay", links::DELAY, "0s", "Delay between SGW and eNB."),
        Field::default(
            "mtu",
            Kind::Size { min: 68, max: 65_535 },
            "1500B",
            "Largest IP packet; larger ones are fragmented.",
        ),
        Field::required("cell", Kind::Tables(&CELL), "The cells, at least one: `[[lte.cell]]`."),
        Field::required("ue", Kind::Tables(&UE), "The UEs, at least one: `[[lte.ue]]`."),
    ]],
    ..Table::EMPTY
};

const ENVIRONMENT: Field = Field::default(
    "environment",
    Kind::Choice(&[
        Choice::new("urban", "built up."),
        Choice::new("suburban", "suburban."),
        Choice::new("open", "open areas."),
    ]),
    "urban",
    "Surroundings.",
);
const CITY: Field = Field::default(
    "city",
    Kind::Choice(&[Choice::new("large", "large."), Choice::new("small", "medium or small.")]),
    "large",
    "Size of the city.",
);
const STREET: &[Field] = &[
    Field::default("rooftop", DISTANCE, "20.0", "Height of rooftops.").unit("m"),
    Field::default("street_width", DISTANCE, "20.0", "Width of streets.").unit("m"),
    Field::default("built_up", DISTANCE, "80.0", "Length of the path that is covered by buildings.").unit("m"),
    Field::default("separation", DISTANCE, "50.0", "Distance of neighbouring rows of buildings.").unit("m"),
    Field::default("orientation", Kind::Number { min: 0.0, max: 90.0 }, "45.0", "Angle between street and path.")
        .unit("degrees"),
    CITY,
];

static PATH_LOSS: Table = Table {
    name: "path loss",
    text: "How much weaker a signal gets on its way.",
    variants: Some(&Variants {
        key: "model",
        default: Some("friis"),
        text: "It names the model.",
        list: &[
            Variant {
                name: "friis",
                text: "free space, at the carrier's frequency.",
                fields: &[&[Field::default("smallest", DECIBELS, "0.0", "No smaller loss.").unit("dB")]],
            },
            Variant {
                name: "friis-per-block",
                text: "free space, at the frequency of each resource block, as ns-3's tests have it.",
                fields: &[],
            },
            Variant {
                name: "constant",
                text: "the same everywhere.",
                fields: &[&[Field::required("loss", DECIBELS, "The loss.").unit("dB")]],
            },
            Variant {
                name: "log-distance",
                text: "`reference_loss` + 10 `exponent` log10(distance / `reference_distance`).",
                fields: &[&[
                    Field::default("exponent", Kind::Number { min: 0.0, max: 20.0 }, "3.0", "The exponent."),
                    Field::default(
                        "reference_distance",
                        Kind::Number { min: 1e-3, max: 1e6 },
                        "1.0",
                        "No farther than this, the reference's loss.",
                    )
                    .unit("m"),
                    Field::default("reference_loss", DECIBELS, "46.68", "Loss there: that of free space at 5.15 GHz.")
                        .unit("dB"),
                ]],
            },
            Variant {
                name: "three-log-distance",
                text: "the same in three pieces: exponent 1.9 from 1 m, 3.8 from 200 m, 3.8 from 500 m; 46.68 dB at 1 m.",
                fields: &[],
            },
            Variant {
                name: "two-ray-ground",
                text: "free space near by, beyond the interference with the reflection from flat ground.",
                fields: &[],
            },
            Variant {
                name: "okumura-hata",
                text: "Okumura (1968) and Hata (1980), above 1.5 GHz COST 231. Needs heights: cells of 30 m and more.",
                fields: &[&[ENVIRONMENT, CITY]],
            },
            Variant {
                name: "cost231",
                text: "COST 231 with heights of its own.",
                fields: &[&[
                    Field::default("base_height", DISTANCE, "50.0", "Height of cells.").unit("m"),
                    Field::default("mobile_height", DISTANCE, "3.0", "Height of UEs.").unit("m"),
                    Field::default("constant", DECIBELS, "10.0", "What is added.").unit("dB"),
                    Field::default("smallest_distance", DISTANCE, "0.5", "No loss nearer.").unit("m"),
                ]],
            },
            Variant { name: "itu-r-1411-los", text: "ITU-R P.1411, line of sight in a street canyon.", fields: &[] },
            Variant { name: "itu-r-1411-nlos", text: "ITU-R P.1411, over rooftops.", fields: &[STREET] },
            Variant { name: "kun-2600", text: "measurements at 2.6 GHz: 36 + 26 log10(distance).", fields: &[] },
            Variant {
                name: "buildings",
                text: "ns-3's choice among these for macro cells: beyond 1 km Okumura and Hata, or Kun above 2.3 GHz; nearer \
                       ITU-R P.1411.",
                fields: &[
                    &[
                        ENVIRONMENT,
                        Field::default("line_of_sight", DISTANCE, "200.0", "Line of sight up to this distance.")
                            .unit("m"),
                        Field::default(
                            "wall",
                            Kind::Choice(&[
                                Choice::new("none", "both ends are outdoors."),
                                Choice::new("wood", "4 dB."),
                                Choice::new("concrete-with-windows", "7 dB."),
                                Choice::new("concrete", "15 dB."),
                                Choice::new("stone", "12 dB."),
                            ]),
                            "none",
                            "The wall of the building in which UEs are.",
                        ),
                        Field::default(
                            "floor",
                            Kind::Integer { min: 0, max: 200 },
                            "0",
                            "The floor on which UEs are; 2 dB less for each.",
                        ),
                    ],
                    STREET,
                ],
            },
        ],
        later: &["3gpp-38901"],
    }),
    ..Table::EMPTY
};

const SPEED: &[Field] = &[
    Field::default(
        "speed",
        Kind::Number { min: 0.0, max: 1000.0 },
        "3.0",
        "Speed of UEs, for the Doppler shift only: they move by their own keys.",
    )
    .unit("km/h"),
    Field::optional(
        "repeat",
        Kind::Duration { min: Duration::from_secs(1), max: Duration::from_secs(60) },
        "never",
        "Whole seconds that are generated once, for all pairs, of which each reads from a random place on, again and again; as from \
         a trace, and as fast.",
    ),
];

static FADING: Table = Table {
    name: "fading",
    text: "How the signal of each resource block changes with time, for each pair of cell and UE on its own.",
    variants: Some(&Variants {
        key: "kind",
        default: Some("none"),
        text: "It says where gains come from.",
        list: &[
            Variant { name: "none", text: "no fading.", fields: &[] },
            Variant { name: "epa", text: "generated: Extended Pedestrian A (3GPP TS 36.104).", fields: &[SPEED] },
            Variant { name: "eva", text: "generated: Extended Vehicular A.", fields: &[SPEED] },
            Variant { name: "etu", text: "generated: Extended Typical Urban.", fields: &[SPEED] },
            Variant {
                name: "trace",
                text: "read from a file as ns-3 has them (`.fad`): a line for each resource block, with a gain in dB for each \
                       millisecond.",
                fields: &[&[
                    Field::required("file", Kind::Text, "The file, by its path from this file's folder."),
                    Field::default(
                        "window",
                        Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
                        "500ms",
                        "Whole milliseconds after which all pairs go on at another random place of the trace.",
                    ),
                    Field::default(
                        "continuous",
                        Kind::Boolean,
                        "false",
                        "Whether each pair reads on from its first random place instead.",
                    ),
                ]],
            },
        ],
        later: &["3gpp-38901"],
    }),
    ..Table::EMPTY
};

const POSITION: Kind = Kind::List(&METRES);
const HEIGHT: Field = Field::default(
    "height",
    DISTANCE,
    "1.5",
    "Height above ground. Cells and UEs stand equally high unless the file says so: macro cells have 30 m.",
)
.unit("m");

static CELL: Table = Table {
    name: "cell",
    text: "An eNB with one cell.",
    fields: &[&[
        Field::optional("name", Kind::Name, "`cell1`, `cell2`, ... by its place", "Its name."),
        Field::optional("position", POSITION, "[0, 0]", "Where it stands: east, north.").unit("m"),
        HEIGHT,
        Field::empty("antenna", Kind::Table(&ANTENNA), "Its antenna."),
        Field::default("power", POWER, "30.0", "Transmission power; macro cells have 43 to 46 dBm.").unit("dBm"),
        Field::default("noise_figure", DECIBELS, "5.0", "Noise figure.").unit("dB"),
        Field::default(
            "scheduler",
            Kind::Choice(&[
                Choice::new("pf", "proportional fair."),
                Choice::new("rr", "round robin."),
                Choice::new("fd-mt", "maximum throughput, by groups."),
                Choice::new("td-mt", "maximum throughput, the whole band."),
                Choice::new("tta", "throughput to average."),
                Choice::new("fd-bet", "blind equal throughput, by groups."),
                Choice::new("td-bet", "blind equal throughput, the whole band."),
                Choice::new("fd-tbfq", "token bank fair queueing, by groups."),
                Choice::new("td-tbfq", "token bank fair queueing, the whole band."),
                Choice::new("pss", "priority sets."),
                Choice::new("cqa", "channel and QoS aware."),
            ]),
            "pf",
            "Scheduler of the downlink; `fullpipe list schedulers` says more.",
        ),
        Field::optional("token_pool", TOKENS, "`\"1B\"`", "With `fd-tbfq` and `td-tbfq`: tokens that a UE may keep."),
        Field::optional(
            "token_credit",
            TOKENS,
            "`\"625kB\"`",
            "With `fd-tbfq` and `td-tbfq`: most that a UE may take from the bank in a subframe.",
        ),
        Field::optional(
            "token_debt",
            TOKENS,
            "`\"625kB\"`",
            "With `fd-tbfq` and `td-tbfq`: most that a UE may owe the bank.",
        ),
        Field::optional(
            "frequency_metric",
            Kind::Choice(&[
                Choice::new(
                    "pf-sch",
                    "the rate there over the average of subframes in which the UE was among those chosen.",
                ),
                Choice::new("co-it-a", "the CQI there over the sum of the UE's CQIs."),
            ]),
            "`\"pf-sch\"`",
            "With `pss`: what a resource block group is worth to a UE.",
        ),
        Field::optional(
            "multiplexed_ues",
            Kind::Integer { min: 1, max: 65_534 },
            "half of those with data",
            "With `pss`: UEs that are chosen for a subframe, before groups are given.",
        ),
        Field::optional(
            "channel_awareness",
            Kind::Choice(&[
                Choice::new("frequency-selective", "the CQI there over the sum of the UE's CQIs."),
                Choice::new("proportional-fair", "the rate there over the average throughput."),
            ]),
            "`\"frequency-selective\"`",
            "With `cqa`: what a resource block group is worth to a UE.",
        ),
        Field::optional(
            "waiting_unit",
            Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
            "`\"1s\"`",
            "With `cqa`: who has waited a unit longer comes first; whole milliseconds.",
        ),
        Field::optional(
            "groups",
            Kind::List(&Kind::Integer { min: 0, max: 31 }),
            "all",
            "First and last resource block group of the downlink that it may use, counted from 0: hard frequency reuse, if neighbours \
             have others. A group has 1 resource block of 6, 2 of 15 and 25, 3 of 50, 4 of 75 and 100.",
        ),
        Field::default(
            "amc",
            Kind::Choice(&[
                Choice::new("error-model", "by the block error model, for 10 % loss."),
                Choice::new("piro", "by the Shannon bound with a gap (Piro 2011)."),
            ]),
            "error-model",
            "How CQI follow from SINR.",
        ),
        Field::default(
            "cqi",
            Kind::Choice(&[
                Choice::new("mixed", "the signal of the control region over the interference of the last data region."),
                Choice::new("control", "in the control region, in which all cells always send."),
            ]),
            "mixed",
            "Where the SINR for CQI is measured.",
        ),
        Field::default("cqi_period", Kind::Integer { min: 1, max: 160 }, "2", "Subframes between two reports of CQI.")
            .unit("ms"),
        Field::default(
            "uplink_reports",
            Kind::Choice(&[
                Choice::new("sounding", "sounding signals over the whole band."),
                Choice::new("data", "the last data in the same resource blocks."),
            ]),
            "sounding",
            "What the scheduler knows of the uplink's channel.",
        ),
        Field::default(
            "sounding_period",
            Kind::Integer { min: 2, max: 320 },
            "40",
            "Subframes between two sounding signals of a UE: 2, 5, 10, 20, 40, 80, 160 or 320.",
        )
        .unit("ms"),
        Field::default("harq", Kind::Boolean, "true", "Whether what was not decoded is sent again."),
    ]],
    ..Table::EMPTY
};

/// Parameters of schedulers, and whose they are.
pub(super) const OF_SCHEDULERS: [(&str, &[&str]); 7] = [
    ("token_pool", &["fd-tbfq", "td-tbfq"]),
    ("token_credit", &["fd-tbfq", "td-tbfq"]),
    ("token_debt", &["fd-tbfq", "td-tbfq"]),
    ("frequency_metric", &["pss"]),
    ("multiplexed_ues", &["pss"]),
    ("channel_awareness", &["cqa"]),
    ("waiting_unit", &["cqa"]),
];

static ANTENNA: Table = Table {
    name: "antenna",
    text: "A cell's antenna.",
    variants: Some(&Variants {
        key: "kind",
        default: Some("isotropic"),
        text: "It names the pattern.",
        list: &[
            Variant { name: "isotropic", text: "the same in all directions.", fields: &[] },
            Variant {
                name: "cosine",
                text: "a sector.",
                fields: &[&[
                    Field::default(
                        "orientation",
                        Kind::Number { min: -360.0, max: 360.0 },
                        "0.0",
                        "Its axis, from east to north.",
                    )
                    .unit("degrees"),
                    Field::default(
                        "beam_width",
                        Kind::Number { min: 1.0, max: 359.0 },
                        "65.0",
                        "Angle over which the gain is within 3 dB.",
                    )
                    .unit("degrees"),
                    Field::default("gain", DECIBELS, "0.0", "Gain on the axis.").unit("dB"),
                ]],
            },
        ],
        later: &["parabolic"],
    }),
    ..Table::EMPTY
};

static UE: Table = Table {
    name: "UE",
    text: "A UE, or several alike. Where it is: one of `distance`, `position`, `waypoints` and `course`.",
    fields: &[&[
        Field::required("host", Kind::Text, "The host that it is (or a router), or a pattern such as `phone*`."),
        Field::optional("cell", Kind::Name, "the first", "The cell that serves it."),
        Field::optional("distance", DISTANCE, "one of the four", "Distance from its cell, on the ground to the east.")
            .unit("m"),
        Field::optional(
            "farthest",
            DISTANCE,
            "`distance`",
            "The last of several UEs has this distance, the others stand evenly between.",
        )
        .unit("m"),
        Field::optional("position", POSITION, "one of the four", "East, north.").unit("m"),
        Field::optional(
            "waypoints",
            Kind::Tables(&WAYPOINT),
            "one of the four",
            "Where it is when: straight and even between, at rest before and after.",
        ),
        Field::optional(
            "course",
            Kind::Text,
            "one of the four",
            "The same from a file, by its path from this file's folder: on each line seconds, metres east, metres north.",
        ),
        HEIGHT,
        Field::default("power", POWER, "10.0", "Transmission power, without power control.").unit("dBm"),
        Field::empty("power_control", Kind::Table(&POWER_CONTROL), "How its power is controlled (3GPP TS 36.213)."),
        Field::default("noise_figure", DECIBELS, "9.0", "Noise figure.").unit("dB"),
        Field::default(
            "transmission_mode",
            Kind::Integer { min: 1, max: 7 },
            "1",
            "As 3GPP counts: 1 one antenna, 2 transmit diversity, 3 and 4 spatial multiplexing, 5 multi-user, 6 closed loop \
             with one layer, 7 one antenna on port 5.",
        ),
        Field::default(
            "data_power_offset",
            Kind::Number { min: -6.0, max: 3.0 },
            "0.0",
            "P_A: power of data over that of the control region.",
        )
        .unit("dB"),
        Field::default(
            "qci",
            Kind::Integer { min: 1, max: 9 },
            "9",
            "Class of service of its default bearer; 1 to 4 are guaranteed.",
        ),
        GUARANTEED_RATE,
        MAXIMUM_RATE,
        Field::default(
            "attach",
            Kind::Choice(&[
                Choice::new("ideal", "it has them when the run begins."),
                Choice::new(
                    "known-cell",
                    "when it is switched on it waits for its cell's system information, then come random access and connection \
                     set-up.",
                ),
                Choice::new(
                    "cell-search",
                    "the same, after 200 ms in which it looks for a cell; it finds the one given.",
                ),
            ]),
            "ideal",
            "How it comes to its bearers. Packets from and to it are dropped until then.",
        ),
        Field::optional(
            "switched_on",
            TIME_OR_RANDOM,
            "`\"0s\"`",
            "When it is switched on, if it is to attach; drawn for each UE. Two hundred at once get there one after the other, three \
             hundred are in each other's way for ever, and refused.",
        ),
        Field::empty("rlc", Kind::Table(&RLC), "RLC of its default bearer."),
        Field::empty(
            "bearer",
            Kind::Tables(&BEARER),
            "Dedicated bearers: `[[lte.ue.bearer]]`. A packet takes the last one in the file that has a filter for it, else the \
             default one.",
        ),
    ]],
    ..Table::EMPTY
};

const GUARANTEED_RATE: Field = Field::optional(
    "guaranteed_rate",
    Kind::RATE,
    "none",
    "Guaranteed bit rate of the downlink; schedulers `pss` and `cqa` heed it.",
);
const MAXIMUM_RATE: Field = Field::optional(
    "maximum_rate",
    Kind::RATE,
    "no limit",
    "Maximum bit rate of the downlink, by which `fd-tbfq` and `td-tbfq` give tokens. Nobody polices it.",
);

static BEARER: Table = Table {
    name: "bearer",
    text: "A dedicated bearer of a UE: a class of service, an RLC and buffers of its own, and the packets that take it. A scheduler \
           knows the sum of a UE's rates; what a UE is given, its bearers with something to send share alike.",
    fields: &[&[
        Field::required("qci", Kind::Integer { min: 1, max: 9 }, "Class of service; 1 to 4 are guaranteed."),
        GUARANTEED_RATE,
        MAXIMUM_RATE,
        Field::empty("rlc", Kind::Table(&RLC), "Its RLC."),
        Field::required(
            "filter",
            Kind::Tables(&FILTER),
            "Which packets take it: those that match any of its filters, `[[lte.ue.bearer.filter]]`.",
        ),
    ]],
    ..Table::EMPTY
};

const PORTS: Kind = Kind::List(&Kind::Integer { min: 0, max: 65_535 });

static FILTER: Table = Table {
    name: "packet filter",
    text: "What packets of a bearer look like (3GPP TS 24.008 section 10.5.6.12); a packet has to agree with all that is given. \
           Addresses are those at the UE.",
    fields: &[&[
        Field::default(
            "direction",
            Kind::Choice(&[
                Choice::new("both", "both."),
                Choice::new("downlink", "to the UE."),
                Choice::new("uplink", "from the UE."),
            ]),
            "both",
            "Which packets it looks at.",
        ),
        Field::optional(
            "remote",
            Kind::Text,
            "anybody",
            "Whom the UE speaks to: a host or router, an address, or a prefix such as `\"10.0.0.0/8\"`.",
        ),
        Field::optional(
            "local",
            Kind::Text,
            "anybody",
            "The UE's side, likewise: of use where the UE is a router with hosts behind it.",
        ),
        Field::optional("remote_ports", PORTS, "any", "Port of whom the UE speaks to, or the first and the last."),
        Field::optional("local_ports", PORTS, "any", "Port of the UE's side, or the first and the last."),
    ]],
    later: &["protocol", "type_of_service"],
    ..Table::EMPTY
};

static WAYPOINT: Table = Table {
    name: "waypoint",
    text: "Where a UE is at an instant.",
    fields: &[&[
        Field::required("at", Kind::DURATION, "When."),
        Field::required("position", POSITION, "East, north.").unit("m"),
    ]],
    ..Table::EMPTY
};

static POWER_CONTROL: Table = Table {
    name: "power control",
    text: "Power control of the uplink.",
    fields: &[&[
        Field::default("enabled", Kind::Boolean, "true", "Whether there is any; otherwise `power` holds."),
        Field::default("largest", POWER, "23.0", "Largest power.").unit("dBm"),
        Field::default("smallest", POWER, "-40.0", "Smallest power.").unit("dBm"),
        Field::default("target", POWER, "-80.0", "P0: what is to arrive of a resource block.").unit("dBm"),
        Field::default("compensation", Kind::PROBABILITY, "1.0", "Alpha: part of the path loss that is made up for."),
        Field::default(
            "commands",
            Kind::Choice(&[
                Choice::new("accumulated", "they add up."),
                Choice::new("absolute", "each stands for itself."),
                Choice::new("open", "there are none."),
            ]),
            "accumulated",
            "What becomes of the cell's commands.",
        ),
    ]],
    ..Table::EMPTY
};

static RLC: Table = Table {
    name: "RLC",
    text: "Radio link control of a bearer (3GPP TS 36.322), both ways alike.",
    fields: &[&[
        Field::default(
            "mode",
            Kind::Choice(&[
                Choice::new("um", "unacknowledged: in order, what the air loses is lost."),
                Choice::new("am", "acknowledged: what the air loses is sent again."),
                Choice::new("by-loss-rate", "by the class of service: `am` where at most one in 100 000 may be lost."),
                Choice::new(
                    "sm",
                    "no RLC, but a source that never runs dry, for tests of the radio; packets are lost.",
                ),
            ]),
            "um",
            "Its mode.",
        ),
        Field::default(
            "preset",
            Kind::Choice(&[
                Choice::new("none", "`buffer` says."),
                Choice::new(
                    "reference-buffer",
                    "10 240 bytes, ns-3's default: seven packets, 1.1 ms at 100 resource blocks.",
                ),
            ]),
            "none",
            "Another default for `buffer`.",
        ),
        Field::optional(
            "buffer",
            Kind::QueueLimit,
            "`\"100ms\"`, or as `preset` says",
            "How much may wait in either direction; what comes beyond is dropped. A packet waits until its last byte was sent. \
             A time is what the peak rate of the downlink carries in it: 100 ms are 229 to 942 kB at 25 to 100 resource blocks.",
        ),
        Field::optional(
            "discard",
            TIMER,
            "never",
            "A packet of which nothing was sent for so long is thrown away (PDCP).",
        ),
        Field::optional(
            "reordering",
            TIMER,
            "100ms; 10ms with `am`",
            "t-Reordering: how long a receiver waits for what HARQ may still bring.",
        ),
        Field::default("poll_retransmit", TIMER, "20ms", "t-PollRetransmit of `am`."),
        Field::default("status_prohibit", TIMER, "10ms", "t-StatusProhibit of `am`."),
    ]],
    ..Table::EMPTY
};

// --- Defaults that depend on other keys.

/// Defaults other than the schema's: keys and values of each table, in the words of a file; of a table with variants the
/// variant's name.
struct Preset {
    network: &'static [(&'static str, &'static str)],
    cell: &'static [(&'static str, &'static str)],
    ue: &'static [(&'static str, &'static str)],
    rlc: &'static [(&'static str, &'static str)],
    /// Of a UE that is nowhere.
    distance: &'static str,
    /// Of an RLC that names no preset of its own.
    buffer: &'static str,
}

/// Table I. `cqi`: PdschForCqi is false there. The table has the trace of EPA at 3 km/h; here it is generated.
static TABLE_I: Preset = Preset {
    network: &[
        ("resource_blocks", "25"),
        ("earfcn", "9895"),
        ("uplink_earfcn", "27785"),
        ("allow_nonstandard_bandwidth", "true"),
        ("path_loss", "friis"),
        ("fading", "epa"),
        ("data_errors", "true"),
        ("control_errors", "true"),
    ],
    cell: &[("power", "30.0"), ("noise_figure", "5.0"), ("scheduler", "pf"), ("cqi", "control")],
    ue: &[("power", "10.0"), ("noise_figure", "7.0"), ("transmission_mode", "1")],
    rlc: &[("mode", "um")],
    distance: "99.0",
    buffer: "16packets",
};

impl Preset {
    fn fill_rlc(&self, owner: &mut Tree) {
        let Some(rlc) = rlc_mut(owner) else { return };
        put(rlc, &RLC, self.rlc);
        if !rlc.is_given("preset") {
            put(rlc, &RLC, &[("buffer", self.buffer)]);
        }
    }

    fn fill(&self, network: &mut Tree) {
        put(network, &LTE, self.network);
        for cell in tables_mut(network, "cell") {
            put(cell, &CELL, self.cell);
        }
        for ue in tables_mut(network, "ue") {
            put(ue, &UE, self.ue);
            if PLACES.iter().all(|key| ue.get(key).is_none()) {
                put(ue, &UE, &[("distance", self.distance)]);
            }
            self.fill_rlc(ue);
            for bearer in tables_mut(ue, "bearer") {
                self.fill_rlc(bearer);
            }
        }
    }
}

fn rlc_mut(owner: &mut Tree) -> Option<&mut Tree> {
    match &mut owner.get_mut("rlc")?.data {
        Data::Table(rlc) => Some(rlc),
        _ => None,
    }
}

fn tables_mut<'a>(tree: &'a mut Tree, key: &str) -> &'a mut [Tree] {
    match tree.get_mut(key).map(|value| &mut value.data) {
        Some(Data::Tables(tables)) => tables,
        _ => &mut [],
    }
}

/// Puts values in place of those that the file does not give.
fn put(tree: &mut Tree, schema: &'static Table, values: &[(&str, &str)]) {
    for (key, text) in values {
        let field = schema.common().find(|field| field.key == *key);
        let Field { key, kind, .. } = field.expect("a preset names keys that there are");
        if tree.is_given(key) {
            continue;
        }
        let place = tree.place;
        let data = match kind {
            Kind::Table(table) => Data::Table(variant(table, text, place)),
            kind => default_data(kind, text),
        };
        tree.set(key, Value { data, place, given: false });
    }
}

/// A variant of a table, with its defaults.
fn variant(table: &'static Table, name: &str, place: Place) -> Tree {
    let variants = table.variants.expect("a preset names variants of tables that have some");
    let variant = variants.find(name).expect("a preset names variants that there are");
    let value = |data| Value { data, place, given: false };
    let mut tree = Tree::at(place);
    tree.set(variants.key, value(Data::Choice(variant.name)));
    for field in variant.fields() {
        if let Default::Value(text) = field.default {
            tree.set(field.key, value(default_data(&field.kind, text)));
        }
    }
    tree
}

/// Fills in what depends on other keys.
pub(super) fn fill(root: &mut Tree) {
    for network in tables_mut(root, "lte") {
        if network.choice("preset") == "table-i" {
            TABLE_I.fill(network);
        }
        for (key, like) in [("uplink_resource_blocks", "resource_blocks"), ("uplink_fading", "fading")] {
            if let Some(data) = network.get(like).map(|value| value.data.clone()) {
                network.fill(key, data);
            }
        }
        for (number, cell) in tables_mut(network, "cell").iter_mut().enumerate() {
            cell.fill("name", Data::Text(format!("cell{}", number + 1)));
        }
        for ue in tables_mut(network, "ue") {
            fill_rlc(ue);
            tables_mut(ue, "bearer").iter_mut().for_each(fill_rlc);
        }
    }
}

fn fill_rlc(owner: &mut Tree) {
    let Some(rlc) = rlc_mut(owner) else { return };
    let buffer = match rlc.choice("preset") {
        "reference-buffer" => QueueLimit::Bytes(REFERENCE_BUFFER_BYTES.into()),
        _ => QueueLimit::Time(Duration::from_millis(100)),
    };
    rlc.fill("buffer", Data::QueueLimit(buffer));
}
