//! The keys of an LTE access network.

use super::antenna::ANTENNA;
use super::fading::FADING;
use super::path_loss::PATH_LOSS;
use super::{DECIBELS, DISTANCE};
use crate::bearer::RlcModeSelection;
use crate::config::CqiSource;
use crate::connection::{AttachProcedure, SignalingMode};
use crate::radio::amc::{Amc, BIT_ERROR_RATE};
use crate::radio::errors::InformationGrid;
use crate::radio::power::PowerControlLoop;
use crate::scheduler::{ChannelAwareness, FrequencyMetric, catalogue};
use fullpipe_network::access::StationDeclaration;
use fullpipe_network::filter::FILTER_KEYS;
use fullpipe_schema::component::choices;
use fullpipe_schema::distributions::TIME_OR_RANDOM;
use fullpipe_schema::{Choice, Field, FieldKind, Table, keys, named};
use fullpipe_units::{Duration, Instant, QueueLimit};

/// A coordinate in meters, with a range beyond the size of any cell.
const METRES: FieldKind = FieldKind::number(-1e6, 1e6);
const POWER: FieldKind = FieldKind::number(-100.0, 100.0);
const CHANNEL: FieldKind = FieldKind::integer(0, 70_000);
const BLOCKS: FieldKind = FieldKind::integer(6, 100);
const TOKENS: FieldKind = FieldKind::size(0, 1_000_000_000);
/// A delay of a link of the core network.
const DELAY: FieldKind = FieldKind::duration(Duration::ZERO, Duration::from_secs(3600));
const TIMER: FieldKind = FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(3600));
/// The names of stations.
pub(super) const STATION: StationDeclaration = StationDeclaration { key: "ue", name: "UE" };
/// The keys that define the position of a UE, of which it has exactly one.
pub(super) const PLACES: [&str; 4] = ["distance", "position", "waypoints", "course"];

/// Whether the time of the fading starts with the first packet.
pub(super) static FADING_BEGINS: [(Choice, bool); 2] = named! {
    /// at the start of the run.
    "run" => false;
    /// in the subframe in which the first packet arrives, at the gateway or at a UE. Until then the channel stays as it is at
    /// time 0.
    "first-packet" => true;
};

/// How mutual information is computed.
pub(super) static MUTUAL_INFORMATION: [(Choice, InformationGrid); 2] = [
    (Choice::new("reference", "with the steps of ns-3's tables."), InformationGrid::Reference),
    (Choice::new("smooth", "as the continuous function."), InformationGrid::Smooth),
];

/// How RRC messages are transmitted.
pub(super) static SIGNALLING: [(Choice, SignalingMode); 2] = [
    (Choice::new("ideal", "at once."), SignalingMode::Ideal),
    (Choice::new("radio", "with the delay of the radio of an idle cell."), SignalingMode::Radio),
];

/// The metric of a group in `pss`.
pub(super) static FREQUENCY_METRICS: [(Choice, FrequencyMetric); 2] = named! {
    /// rate in the group over the average of subframes in which the UE was selected.
    "pf-sch" => FrequencyMetric::PfSch;
    /// CQI in the group over the sum of the UE's CQIs.
    "co-it-a" => FrequencyMetric::CoItA;
};

/// The metric of a group in `cqa`.
pub(super) static CHANNEL_AWARENESS: [(Choice, ChannelAwareness); 2] = named! {
    /// CQI in the group over the sum of the UE's CQIs.
    "frequency-selective" => ChannelAwareness::FrequencySelective;
    /// rate in the group over the average throughput.
    "proportional-fair" => ChannelAwareness::ProportionalFair;
};

/// How CQI is computed from SINR.
pub(super) static AMC: [(Choice, Amc); 2] = [
    (Choice::new("error-model", "by the block error model, for 10 % loss."), Amc::ErrorModel),
    (Choice::new("piro", "by the Shannon bound with a gap (Piro 2011)."), Amc::Piro { bit_error_rate: BIT_ERROR_RATE }),
];

/// Where the SINR for CQI is measured.
pub(super) static CQI_SOURCES: [(Choice, CqiSource); 2] = named! {
    /// signal of the control region over interference of the last data region.
    "mixed" => CqiSource::Mixed;
    /// in the control region, in which all cells always send.
    "control" => CqiSource::Control;
};

/// The source of uplink channel estimates.
pub(super) static UPLINK_REPORTS: [(Choice, bool); 2] = [
    (Choice::new("sounding", "sounding signals over the whole band."), true),
    (Choice::new("data", "the last data in the same resource blocks."), false),
];

/// How a UE's bearers are established. The time at which it is switched on is drawn for each run.
pub(super) static ATTACH: [(Choice, AttachProcedure); 3] = named! {
    /// the UE has its bearers at the start of the run.
    "ideal" => AttachProcedure::Ideal;
    /// when switched on, the UE waits for its cell's system information; random access and connection set-up follow.
    "known-cell" => AttachProcedure::KnownCell { switched_on: Instant::ZERO };
    /// as `known-cell`, after 200 ms of cell search; the UE finds its configured cell.
    "cell-search" => AttachProcedure::CellSearch { switched_on: Instant::ZERO };
};

/// The effect of the cell's power commands.
pub(super) static COMMANDS: [(Choice, PowerControlLoop); 3] = [
    (Choice::new("accumulated", "commands are added."), PowerControlLoop::Accumulated),
    (Choice::new("absolute", "each command sets the offset."), PowerControlLoop::Absolute),
    (Choice::new("open", "there are no commands."), PowerControlLoop::Open),
];

/// Modes of RLC.
pub(super) static RLC_MODES: [(Choice, RlcModeSelection); 4] = named! {
    /// unacknowledged: in order; packets lost on the air stay lost.
    "um" => RlcModeSelection::AlwaysUnacknowledged;
    /// acknowledged: RLC retransmits what is lost on the air.
    "am" => RlcModeSelection::AlwaysAcknowledged;
    /// by the class of service: `am` if at most one in 100 000 packets may be lost, otherwise `um`.
    "by-loss-rate" => RlcModeSelection::ByLossRate;
    /// no RLC, but a source with unlimited data, for tests of the radio; packets are lost.
    "sm" => RlcModeSelection::Saturated;
};

/// Presets of the RLC buffer.
pub(super) static BUFFERS: [(Choice, QueueLimit); 2] = named! {
    /// `buffer` sets the size.
    "none" => QueueLimit::Time(Duration::from_millis(100));
    /// 10 240 bytes, ns-3's default: seven packets, 1.1 ms at 100 resource blocks.
    "reference-buffer" => QueueLimit::Bytes(10_240);
};

/// Presets of a network.
pub(super) static PRESETS: [(Choice, Option<&'static Preset>); 2] = named! {
    /// the defaults of this page.
    "none" => None;
    /// the settings of Table I of Scharnitzky et al., Real-time Emulation of MASQUE-based QUIC Proxying in LTE networks using
    /// ns-3: see docs/lte.md.
    "table-i" => Some(&TABLE_I);
};

/// Defaults that replace those of the schema: keys and values of each table as in a file. For a table with variants, the name of
/// the variant.
pub(super) struct Preset {
    pub(super) network: &'static [(&'static str, &'static str)],
    pub(super) cell: &'static [(&'static str, &'static str)],
    pub(super) ue: &'static [(&'static str, &'static str)],
    pub(super) rlc: &'static [(&'static str, &'static str)],
    /// The distance of a UE without a position.
    pub(super) distance: &'static str,
    /// The buffer preset of an RLC without a preset of its own.
    pub(super) buffer: &'static str,
}

/// Table I. `cqi`: PdschForCqi is false there. The paper uses the trace of EPA at 3 km/h; here that fading is generated.
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

pub(super) static NETWORK: Table = Table {
    name: "LTE network",
    text: "An LTE access network (FDD): a gateway, cells and UEs. Packets to a UE enter the network at the gateway, and \
           packets from a UE leave it there. Packets between two UEs pass through the gateway, which must then be a router. \
           Defaults are those of ns-3's `lte` module, except where a key states otherwise. See docs/lte.md.",
    fields: &[keys! {
        /// Name of the network. Its directions for a UE are the links `NAME.downlink` and `NAME.uplink`.
        "name": FieldKind::Name, required;
        /// Node that is the PGW: a router or a host.
        "gateway": FieldKind::Name, required;
        /// Preset of defaults for keys of the network, its cells and its UEs.
        "preset": FieldKind::Choice(&choices(&PRESETS)), default "none";
        /// Bandwidth of the downlink: 6, 15, 25, 50, 75 or 100.
        "resource_blocks" ["RB"]: BLOCKS, default "25";
        /// Bandwidth of the uplink.
        "uplink_resource_blocks" ["RB"]: BLOCKS, optional "as `resource_blocks`";
        /// Channel number of the downlink (3GPP TS 36.101): 100 is 2120 MHz.
        "earfcn": CHANNEL, default "100";
        /// Channel number of the uplink: 18100 is 1930 MHz.
        "uplink_earfcn": CHANNEL, default "18100";
        /// Whether a carrier may be wider or narrower than the channels of its band.
        "allow_nonstandard_bandwidth": FieldKind::Boolean, default "false";
        /// Path loss model between cells and UEs.
        "path_loss": FieldKind::Table(&PATH_LOSS), empty;
        /// Standard deviation of log-normal shadowing, drawn once for each pair of cell and UE.
        "shadowing" ["dB"]: FieldKind::number(0.0, 100.0), default "0.0";
        /// Fading of the downlink.
        "fading": FieldKind::Table(&FADING), empty;
        /// Fading of the uplink.
        "uplink_fading": FieldKind::Table(&FADING), optional "as `fading`";
        /// Start of the time of the fading, in both directions.
        "fading_begins": FieldKind::Choice(&choices(&FADING_BEGINS)), default "run";
        /// Size of the smallest IP packet that counts for `fading_begins`: `"500B"` excludes pings, TCP handshakes and pure
        /// acknowledgments.
        "fading_begins_with": FieldKind::size(1, 65_535), optional "any packet";
        /// Whether transport blocks can be lost.
        "data_errors": FieldKind::Boolean, default "true";
        /// Whether the control region of a subframe can be lost.
        "control_errors": FieldKind::Boolean, default "true";
        /// Values of mutual information in the error model.
        "mutual_information": FieldKind::Choice(&choices(&MUTUAL_INFORMATION)), default "reference";
        /// Transmission of RRC messages, for UEs that attach during the run.
        "signalling": FieldKind::Choice(&choices(&SIGNALLING)), default "ideal";
        /// Rate of each of the two links between gateway, SGW and eNB.
        "core_rate": FieldKind::RATE, default "10Gbit/s";
        /// Delay between gateway and SGW.
        "s5_delay": DELAY, default "0s";
        /// Delay between SGW and eNB.
        "s1_delay": DELAY, default "0s";
        /// Size of the largest IP packet; larger ones are fragmented.
        "mtu": FieldKind::size(68, 65_535), default "1500B";
        /// The cells, at least one: `[[lte.cell]]`.
        "cell": FieldKind::Tables(&CELL), required;
        /// The UEs, at least one: `[[lte.ue]]`.
        "ue": FieldKind::Tables(&UE), required;
    }],
    ..Table::EMPTY
};

const POSITION: FieldKind = FieldKind::List(&METRES);
const HEIGHT: Field = Field::default(
    "height",
    DISTANCE,
    "1.5",
    "Height above ground. By default cells and UEs have the same height; macro cells typically have 30 m.",
)
.with_unit("m");

pub(super) static CELL: Table = Table {
    name: "cell",
    text: "An eNB with one cell.",
    fields: &[keys! {
        /// Name of the cell.
        "name": FieldKind::Name, optional "`cell1`, `cell2`, ... by its place";
        /// Position of the cell: east, north.
        "position" ["m"]: POSITION, optional "[0, 0]";
        HEIGHT;
        /// Antenna of the cell.
        "antenna": FieldKind::Table(&ANTENNA), empty;
        /// Transmission power; macro cells have 43 to 46 dBm.
        "power" ["dBm"]: POWER, default "30.0";
        /// Noise figure.
        "noise_figure" ["dB"]: DECIBELS, default "5.0";
        /// Downlink scheduler; see `fullpipe list schedulers`.
        "scheduler": FieldKind::Choice(&catalogue::choices()), default "pf";
        /// With `fd-tbfq` and `td-tbfq`: largest number of tokens that a UE can save.
        "token_pool": TOKENS, optional "`\"1B\"`";
        /// With `fd-tbfq` and `td-tbfq`: largest number of tokens that a UE can take from the bank in a subframe.
        "token_credit": TOKENS, optional "`\"625kB\"`";
        /// With `fd-tbfq` and `td-tbfq`: largest debt of a UE at the bank, in tokens.
        "token_debt": TOKENS, optional "`\"625kB\"`";
        /// With `pss`: metric of a resource block group for a UE.
        "frequency_metric": FieldKind::Choice(&choices(&FREQUENCY_METRICS)), optional "`\"pf-sch\"`";
        /// With `pss`: number of UEs that are selected for a subframe before groups are assigned.
        "multiplexed_ues": FieldKind::integer(1, 65_534), optional "half of those with data";
        /// With `cqa`: metric of a resource block group for a UE.
        "channel_awareness": FieldKind::Choice(&choices(&CHANNEL_AWARENESS)), optional "`\"frequency-selective\"`";
        /// With `cqa`: unit of the waiting time, in whole milliseconds. UEs that have waited more units are served first.
        "waiting_unit": FieldKind::duration(Duration::from_millis(1), Duration::from_secs(3600)), optional "`\"1s\"`";
        /// First and last resource block group of the downlink that the cell may use, counted from 0. With disjoint groups in
        /// neighboring cells this is hard frequency reuse. A group has 1 resource block of 6, 2 of 15 and 25, 3 of 50, 4 of 75
        /// and 100.
        "groups": FieldKind::List(&FieldKind::integer(0, 31)), optional "all";
        /// Computation of CQI from SINR.
        "amc": FieldKind::Choice(&choices(&AMC)), default "error-model";
        /// Region in which the SINR for CQI is measured.
        "cqi": FieldKind::Choice(&choices(&CQI_SOURCES)), default "mixed";
        /// Subframes between CQI reports.
        "cqi_period" ["ms"]: FieldKind::integer(1, 160), default "2";
        /// Source of the scheduler's uplink channel estimates.
        "uplink_reports": FieldKind::Choice(&choices(&UPLINK_REPORTS)), default "sounding";
        /// Subframes between sounding signals of a UE: 2, 5, 10, 20, 40, 80, 160 or 320.
        "sounding_period" ["ms"]: FieldKind::integer(2, 320), default "40";
        /// Whether HARQ retransmits transport blocks that were not decoded.
        "harq": FieldKind::Boolean, default "true";
        /// Whether outer-loop link adaptation corrects the MCS of both directions by the outcome of transport blocks, so that one
        /// in ten first transmissions is lost. ns-3 does not have it. It has no effect without `data_errors`.
        "outer_loop": FieldKind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

pub(super) static UE: Table = Table {
    name: "UE",
    text: "A UE, or several equal ones. One of `distance`, `position`, `waypoints` and `course` sets its position.",
    fields: &[keys! {
        /// Host (or router) that is the UE, or a pattern such as `phone*`.
        "host": FieldKind::Text, required;
        /// Serving cell.
        "cell": FieldKind::Name, optional "the first";
        /// Distance from the cell on the ground, to the east.
        "distance" ["m"]: DISTANCE, optional "one of the four";
        /// Distance of the last of several UEs; the others are evenly spaced in between.
        "farthest" ["m"]: DISTANCE, optional "`distance`";
        /// Position: east, north.
        "position" ["m"]: POSITION, optional "one of the four";
        /// Positions at given times. The UE moves in a straight line at constant speed between them, and does not move before the
        /// first and after the last.
        "waypoints": FieldKind::Tables(&WAYPOINT), optional "one of the four";
        /// File of positions, as a path relative to the scenario's folder. Each line has seconds, meters east and meters north.
        "course": FieldKind::Text, optional "one of the four";
        HEIGHT;
        /// Transmission power, without power control.
        "power" ["dBm"]: POWER, default "10.0";
        /// Uplink power control (3GPP TS 36.213).
        "power_control": FieldKind::Table(&POWER_CONTROL), empty;
        /// Noise figure.
        "noise_figure" ["dB"]: DECIBELS, default "9.0";
        /// Transmission mode as numbered by 3GPP: 1 one antenna, 2 transmit diversity, 3 and 4 spatial multiplexing, 5
        /// multi-user, 6 closed loop with one layer, 7 one antenna on port 5.
        "transmission_mode": FieldKind::integer(1, 7), default "1";
        /// P_A: power of data relative to that of the control region.
        "data_power_offset" ["dB"]: FieldKind::number(-6.0, 3.0), default "0.0";
        /// Class of service of the default bearer; 1 to 4 have a guaranteed bit rate.
        "qci": FieldKind::integer(1, 9), default "9";
        GUARANTEED_RATE;
        MAXIMUM_RATE;
        /// Establishment of the UE's bearers. Packets from and to the UE are dropped until they exist.
        "attach": FieldKind::Choice(&choices(&ATTACH)), default "ideal";
        /// Time at which the UE is switched on if it attaches, drawn for each UE. If 200 UEs start at once, they connect one
        /// after another. With 300 their preambles always collide, which is an error.
        "switched_on": TIME_OR_RANDOM, optional "`\"0s\"`";
        /// RLC of the default bearer.
        "rlc": FieldKind::Table(&RLC), empty;
        /// Dedicated bearers: `[[lte.ue.bearer]]`. A packet uses the last bearer in the file with a matching filter, otherwise
        /// the default bearer.
        "bearer": FieldKind::Tables(&BEARER), empty;
    }],
    ..Table::EMPTY
};

const GUARANTEED_RATE: Field = Field::optional(
    "guaranteed_rate",
    FieldKind::RATE,
    "none",
    "Guaranteed bit rate of the downlink; the schedulers `pss` and `cqa` use it.",
);
const MAXIMUM_RATE: Field = Field::optional(
    "maximum_rate",
    FieldKind::RATE,
    "no limit",
    "Maximum bit rate of the downlink, from which `fd-tbfq` and `td-tbfq` compute tokens. It is not enforced.",
);

static BEARER: Table = Table {
    name: "bearer",
    text: "A dedicated bearer of a UE, with its own class of service, RLC, buffers and packet filters. Schedulers use the sum of \
           the rates of a UE's bearers. Bearers with data share the resources of their UE equally.",
    fields: &[keys! {
        /// Class of service; 1 to 4 have a guaranteed bit rate.
        "qci": FieldKind::integer(1, 9), required;
        GUARANTEED_RATE;
        MAXIMUM_RATE;
        /// RLC of the bearer.
        "rlc": FieldKind::Table(&RLC), empty;
        /// Filters of the bearer's packets: `[[lte.ue.bearer.filter]]`. A packet matches the bearer if it matches any filter.
        "filter": FieldKind::Tables(&FILTER), required;
    }],
    ..Table::EMPTY
};

static FILTER: Table = Table {
    name: "packet filter",
    text: "A filter for the packets of a bearer (3GPP TS 24.008 section 10.5.6.12). A packet matches if it matches all keys that \
           are given. Addresses are those at the UE.",
    fields: &[FILTER_KEYS],
    later: &["protocol", "type_of_service"],
    ..Table::EMPTY
};

static WAYPOINT: Table = Table {
    name: "waypoint",
    text: "The position of a UE at a given time.",
    fields: &[&[
        Field::required("at", FieldKind::DURATION, "When."),
        Field::required("position", POSITION, "East, north.").with_unit("m"),
    ]],
    ..Table::EMPTY
};

static POWER_CONTROL: Table = Table {
    name: "power control",
    text: "Power control of the uplink.",
    fields: &[keys! {
        /// Whether power control is used. Otherwise the UE sends with `power`.
        "enabled": FieldKind::Boolean, default "true";
        /// Largest transmission power.
        "largest" ["dBm"]: POWER, default "23.0";
        /// Smallest transmission power.
        "smallest" ["dBm"]: POWER, default "-40.0";
        /// P0: target power of a resource block at the cell.
        "target" ["dBm"]: POWER, default "-80.0";
        /// Alpha: fraction of the path loss that is compensated.
        "compensation": FieldKind::PROBABILITY, default "1.0";
        /// Effect of the cell's power commands.
        "commands": FieldKind::Choice(&choices(&COMMANDS)), default "accumulated";
    }],
    ..Table::EMPTY
};

pub(super) static RLC: Table = Table {
    name: "RLC",
    text: "Radio link control of a bearer (3GPP TS 36.322), with the same settings in both directions.",
    fields: &[keys! {
        /// RLC mode.
        "mode": FieldKind::Choice(&choices(&RLC_MODES)), default "um";
        /// Preset of the default for `buffer`.
        "preset": FieldKind::Choice(&choices(&BUFFERS)), default "none";
        /// Size of the buffer of each direction; packets that do not fit are dropped. A packet occupies the buffer until its last
        /// byte is sent. A time is converted to bytes at the downlink's peak rate: 100 ms are 229 to 942 kB at 25 to 100 resource
        /// blocks.
        "buffer": FieldKind::QueueLimit, optional "`\"100ms\"`, or the value of `preset`";
        /// Time after which a packet is discarded if none of it was sent (PDCP).
        "discard": TIMER, optional "never";
        /// t-Reordering: time for which a receiver waits for data that HARQ may still deliver.
        "reordering": TIMER, optional "100ms; 10ms with `am`";
        /// t-PollRetransmit of `am`.
        "poll_retransmit": TIMER, default "20ms";
        /// t-StatusProhibit of `am`.
        "status_prohibit": TIMER, default "10ms";
    }],
    ..Table::EMPTY
};
