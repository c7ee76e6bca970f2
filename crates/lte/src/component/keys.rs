//! The keys of an LTE access network.

use super::antenna::ANTENNA;
use super::fading::FADING;
use super::path_loss::PATH_LOSS;
use super::{DECIBELS, DISTANCE};
use crate::bearer::{RlcChoice, Ways};
use crate::config::CqiSource;
use crate::connection::{Attach, Signalling};
use crate::radio::amc::{Amc, BIT_ERROR_RATE};
use crate::radio::errors::Grid;
use crate::radio::power::Loop;
use crate::scheduler::{ChannelAwareness, FrequencyMetric, catalogue};
use fullpipe_network::access::StationDeclaration;
use fullpipe_schema::component::choices;
use fullpipe_schema::distributions::TIME_OR_RANDOM;
use fullpipe_schema::{Choice, Field, Kind, Table, keys, named};
use fullpipe_units::{Duration, Instant, QueueLimit};

/// Metres: no cell is as wide.
const METRES: Kind = Kind::number(-1e6, 1e6);
const POWER: Kind = Kind::number(-100.0, 100.0);
const CHANNEL: Kind = Kind::integer(0, 70_000);
const BLOCKS: Kind = Kind::integer(6, 100);
const TOKENS: Kind = Kind::size(0, 1_000_000_000);
/// A delay of a link of the core.
const DELAY: Kind = Kind::duration(Duration::ZERO, Duration::from_secs(3600));
const TIMER: Kind = Kind::duration(Duration::from_nanos(1), Duration::from_secs(3600));
/// What a station is called.
pub(super) const STATION: StationDeclaration = StationDeclaration { key: "ue", name: "UE" };
/// Keys that say where a UE is; it has one of them.
pub(super) const PLACES: [&str; 4] = ["distance", "position", "waypoints", "course"];

/// Whether the time of the fading waits for a packet.
pub(super) static FADING_BEGINS: [(Choice, bool); 2] = named! {
    /// with the run.
    "run" => false;
    /// with the subframe in which the first packet comes, to the gateway or to a UE; until then the channel stands
    /// still as it is at time 0.
    "first-packet" => true;
};

/// How mutual information is looked up.
pub(super) static MUTUAL_INFORMATION: [(Choice, Grid); 2] = [
    (Choice::new("reference", "in the steps of ns-3's tables."), Grid::Reference),
    (Choice::new("smooth", "as the continuous function."), Grid::Smooth),
];

/// How messages of RRC are carried.
pub(super) static SIGNALLING: [(Choice, Signalling); 2] = [
    (Choice::new("ideal", "at once."), Signalling::Ideal),
    (Choice::new("radio", "in the time that it takes over the radio of an idle cell."), Signalling::Radio),
];

/// What a group is worth in `pss`.
pub(super) static FREQUENCY_METRICS: [(Choice, FrequencyMetric); 2] = named! {
    /// the rate there over the average of subframes in which the UE was among those chosen.
    "pf-sch" => FrequencyMetric::PfSch;
    /// the CQI there over the sum of the UE's CQIs.
    "co-it-a" => FrequencyMetric::CoItA;
};

/// What a group is worth in `cqa`.
pub(super) static CHANNEL_AWARENESS: [(Choice, ChannelAwareness); 2] = named! {
    /// the CQI there over the sum of the UE's CQIs.
    "frequency-selective" => ChannelAwareness::FrequencySelective;
    /// the rate there over the average throughput.
    "proportional-fair" => ChannelAwareness::ProportionalFair;
};

/// How CQI follow from SINR.
pub(super) static AMC: [(Choice, Amc); 2] = [
    (Choice::new("error-model", "by the block error model, for 10 % loss."), Amc::ErrorModel),
    (Choice::new("piro", "by the Shannon bound with a gap (Piro 2011)."), Amc::Piro { bit_error_rate: BIT_ERROR_RATE }),
];

/// Where the SINR for CQI is measured.
pub(super) static CQI_SOURCES: [(Choice, CqiSource); 2] = named! {
    /// the signal of the control region over the interference of the last data region.
    "mixed" => CqiSource::Mixed;
    /// in the control region, in which all cells always send.
    "control" => CqiSource::Control;
};

/// Whether UEs send sounding signals.
pub(super) static UPLINK_REPORTS: [(Choice, bool); 2] = [
    (Choice::new("sounding", "sounding signals over the whole band."), true),
    (Choice::new("data", "the last data in the same resource blocks."), false),
];

/// How a UE comes to its bearers; when it is switched on is drawn for each run.
pub(super) static ATTACH: [(Choice, Attach); 3] = named! {
    /// it has them when the run begins.
    "ideal" => Attach::Ideal;
    /// when it is switched on it waits for its cell's system information, then come random access and connection
    /// set-up.
    "known-cell" => Attach::KnownCell { switched_on: Instant::ZERO };
    /// the same, after 200 ms in which it looks for a cell; it finds the one given.
    "cell-search" => Attach::CellSearch { switched_on: Instant::ZERO };
};

/// Which packets a filter looks at.
pub(super) static DIRECTIONS: [(Choice, Ways); 3] = [
    (Choice::new("both", "both."), Ways::Both),
    (Choice::new("downlink", "to the UE."), Ways::Downlink),
    (Choice::new("uplink", "from the UE."), Ways::Uplink),
];

/// What becomes of the cell's commands.
pub(super) static COMMANDS: [(Choice, Loop); 3] = [
    (Choice::new("accumulated", "they add up."), Loop::Accumulated),
    (Choice::new("absolute", "each stands for itself."), Loop::Absolute),
    (Choice::new("open", "there are none."), Loop::Open),
];

/// Modes of RLC.
pub(super) static RLC_MODES: [(Choice, RlcChoice); 4] = named! {
    /// unacknowledged: in order, what the air loses is lost.
    "um" => RlcChoice::Unacknowledged;
    /// acknowledged: what the air loses is sent again.
    "am" => RlcChoice::Acknowledged;
    /// by the class of service: `am` where at most one in 100 000 may be lost.
    "by-loss-rate" => RlcChoice::ByLossRate;
    /// no RLC, but a source that never runs dry, for tests of the radio; packets are lost.
    "sm" => RlcChoice::Saturated;
};

/// Presets of RLC, and their buffers.
pub(super) static BUFFERS: [(Choice, QueueLimit); 2] = named! {
    /// `buffer` says.
    "none" => QueueLimit::Time(Duration::from_millis(100));
    /// 10 240 bytes, ns-3's default: seven packets, 1.1 ms at 100 resource blocks.
    "reference-buffer" => QueueLimit::Bytes(10_240);
};

/// Presets of a network.
pub(super) static PRESETS: [(Choice, Option<&'static Preset>); 2] = named! {
    /// the defaults of this page.
    "none" => None;
    /// those of Table I of Scharnitzky et al., Real-time Emulation of MASQUE-based QUIC Proxying in LTE networks using
    /// ns-3: see docs/lte.md.
    "table-i" => Some(&TABLE_I);
};

/// Defaults other than the schema's: keys and values of each table, in the words of a file; of a table with variants the
/// variant's name.
pub(super) struct Preset {
    pub(super) network: &'static [(&'static str, &'static str)],
    pub(super) cell: &'static [(&'static str, &'static str)],
    pub(super) ue: &'static [(&'static str, &'static str)],
    pub(super) rlc: &'static [(&'static str, &'static str)],
    /// Of a UE that is nowhere.
    pub(super) distance: &'static str,
    /// Of an RLC that names no preset of its own.
    pub(super) buffer: &'static str,
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

pub(super) static NETWORK: Table = Table {
    name: "LTE network",
    text: "An LTE access network (FDD): a gateway, cells, UEs. What goes to a UE enters at the gateway, and what comes from it \
           leaves there; two UEs talk by way of the gateway, if that is a router. Defaults are those of ns-3's `lte` module, \
           save where a key says otherwise. See docs/lte.md.",
    fields: &[keys! {
        /// Its name; its two ways are links called `NAME.downlink` and `NAME.uplink`.
        "name": Kind::Name, required;
        /// The PGW: a router or a host.
        "gateway": Kind::Name, required;
        /// Other defaults for keys of the network, its cells and its UEs.
        "preset": Kind::Choice(&choices(&PRESETS)), default "none";
        /// Bandwidth of the downlink: 6, 15, 25, 50, 75 or 100.
        "resource_blocks" ["RB"]: BLOCKS, default "25";
        /// Bandwidth of the uplink.
        "uplink_resource_blocks" ["RB"]: BLOCKS, optional "as `resource_blocks`";
        /// Channel number of the downlink (3GPP TS 36.101): 100 is 2120 MHz.
        "earfcn": CHANNEL, default "100";
        /// Channel number of the uplink: 18100 is 1930 MHz.
        "uplink_earfcn": CHANNEL, default "18100";
        /// Whether a carrier may be wider or narrower than the channels of its band.
        "allow_nonstandard_bandwidth": Kind::Boolean, default "false";
        /// Path loss between any cell and any UE.
        "path_loss": Kind::Table(&PATH_LOSS), empty;
        /// Standard deviation of log-normal shadowing, drawn once for each cell and UE.
        "shadowing" ["dB"]: Kind::number(0.0, 100.0), default "0.0";
        /// Fading of the downlink.
        "fading": Kind::Table(&FADING), empty;
        /// Fading of the uplink.
        "uplink_fading": Kind::Table(&FADING), optional "as `fading`";
        /// When the time of the fading begins, of both directions.
        "fading_begins": Kind::Choice(&choices(&FADING_BEGINS)), default "run";
        /// Least IP packet that is the first for `fading_begins`: `"500B"` leaves out pings, TCP's handshake and bare
        /// acknowledgements.
        "fading_begins_with": Kind::size(1, 65_535), optional "any packet";
        /// Whether transport blocks are lost.
        "data_errors": Kind::Boolean, default "true";
        /// Whether the control region of a subframe is.
        "control_errors": Kind::Boolean, default "true";
        /// How the error model looks up mutual information.
        "mutual_information": Kind::Choice(&choices(&MUTUAL_INFORMATION)), default "reference";
        /// How messages of RRC are carried, for UEs that attach in the run.
        "signalling": Kind::Choice(&choices(&SIGNALLING)), default "ideal";
        /// Rate of the two links between gateway, SGW and eNB.
        "core_rate": Kind::RATE, default "10Gbit/s";
        /// Delay between gateway and SGW.
        "s5_delay": DELAY, default "0s";
        /// Delay between SGW and eNB.
        "s1_delay": DELAY, default "0s";
        /// Largest IP packet; larger ones are fragmented.
        "mtu": Kind::size(68, 65_535), default "1500B";
        /// The cells, at least one: `[[lte.cell]]`.
        "cell": Kind::Tables(&CELL), required;
        /// The UEs, at least one: `[[lte.ue]]`.
        "ue": Kind::Tables(&UE), required;
    }],
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

pub(super) static CELL: Table = Table {
    name: "cell",
    text: "An eNB with one cell.",
    fields: &[keys! {
        /// Its name.
        "name": Kind::Name, optional "`cell1`, `cell2`, ... by its place";
        /// Where it stands: east, north.
        "position" ["m"]: POSITION, optional "[0, 0]";
        HEIGHT;
        /// Its antenna.
        "antenna": Kind::Table(&ANTENNA), empty;
        /// Transmission power; macro cells have 43 to 46 dBm.
        "power" ["dBm"]: POWER, default "30.0";
        /// Noise figure.
        "noise_figure" ["dB"]: DECIBELS, default "5.0";
        /// Scheduler of the downlink; `fullpipe list schedulers` says more.
        "scheduler": Kind::Choice(&catalogue::choices()), default "pf";
        /// With `fd-tbfq` and `td-tbfq`: tokens that a UE may keep.
        "token_pool": TOKENS, optional "`\"1B\"`";
        /// With `fd-tbfq` and `td-tbfq`: most that a UE may take from the bank in a subframe.
        "token_credit": TOKENS, optional "`\"625kB\"`";
        /// With `fd-tbfq` and `td-tbfq`: most that a UE may owe the bank.
        "token_debt": TOKENS, optional "`\"625kB\"`";
        /// With `pss`: what a resource block group is worth to a UE.
        "frequency_metric": Kind::Choice(&choices(&FREQUENCY_METRICS)), optional "`\"pf-sch\"`";
        /// With `pss`: UEs that are chosen for a subframe, before groups are given.
        "multiplexed_ues": Kind::integer(1, 65_534), optional "half of those with data";
        /// With `cqa`: what a resource block group is worth to a UE.
        "channel_awareness": Kind::Choice(&choices(&CHANNEL_AWARENESS)), optional "`\"frequency-selective\"`";
        /// With `cqa`: who has waited a unit longer comes first; whole milliseconds.
        "waiting_unit": Kind::duration(Duration::from_millis(1), Duration::from_secs(3600)), optional "`\"1s\"`";
        /// First and last resource block group of the downlink that it may use, counted from 0: hard frequency reuse,
        /// if neighbours have others. A group has 1 resource block of 6, 2 of 15 and 25, 3 of 50, 4 of 75 and 100.
        "groups": Kind::List(&Kind::integer(0, 31)), optional "all";
        /// How CQI follow from SINR.
        "amc": Kind::Choice(&choices(&AMC)), default "error-model";
        /// Where the SINR for CQI is measured.
        "cqi": Kind::Choice(&choices(&CQI_SOURCES)), default "mixed";
        /// Subframes between two reports of CQI.
        "cqi_period" ["ms"]: Kind::integer(1, 160), default "2";
        /// What the scheduler knows of the uplink's channel.
        "uplink_reports": Kind::Choice(&choices(&UPLINK_REPORTS)), default "sounding";
        /// Subframes between two sounding signals of a UE: 2, 5, 10, 20, 40, 80, 160 or 320.
        "sounding_period" ["ms"]: Kind::integer(2, 320), default "40";
        /// Whether what was not decoded is sent again.
        "harq": Kind::Boolean, default "true";
        /// Outer-loop link adaptation: whether the eNB corrects the MCS by the outcome of transport blocks, both ways, so that one
        /// in ten is lost when it is first sent. ns-3 has none. No effect without `data_errors`.
        "outer_loop": Kind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

pub(super) static UE: Table = Table {
    name: "UE",
    text: "A UE, or several alike. Where it is: one of `distance`, `position`, `waypoints` and `course`.",
    fields: &[keys! {
        /// The host that it is (or a router), or a pattern such as `phone*`.
        "host": Kind::Text, required;
        /// The cell that serves it.
        "cell": Kind::Name, optional "the first";
        /// Distance from its cell, on the ground to the east.
        "distance" ["m"]: DISTANCE, optional "one of the four";
        /// The last of several UEs has this distance, the others stand evenly between.
        "farthest" ["m"]: DISTANCE, optional "`distance`";
        /// East, north.
        "position" ["m"]: POSITION, optional "one of the four";
        /// Where it is when: straight and even between, at rest before and after.
        "waypoints": Kind::Tables(&WAYPOINT), optional "one of the four";
        /// The same from a file, by its path from this file's folder: on each line seconds, metres east, metres north.
        "course": Kind::Text, optional "one of the four";
        HEIGHT;
        /// Transmission power, without power control.
        "power" ["dBm"]: POWER, default "10.0";
        /// How its power is controlled (3GPP TS 36.213).
        "power_control": Kind::Table(&POWER_CONTROL), empty;
        /// Noise figure.
        "noise_figure" ["dB"]: DECIBELS, default "9.0";
        /// As 3GPP counts: 1 one antenna, 2 transmit diversity, 3 and 4 spatial multiplexing, 5 multi-user, 6 closed
        /// loop with one layer, 7 one antenna on port 5.
        "transmission_mode": Kind::integer(1, 7), default "1";
        /// P_A: power of data over that of the control region.
        "data_power_offset" ["dB"]: Kind::number(-6.0, 3.0), default "0.0";
        /// Class of service of its default bearer; 1 to 4 are guaranteed.
        "qci": Kind::integer(1, 9), default "9";
        GUARANTEED_RATE;
        MAXIMUM_RATE;
        /// How it comes to its bearers. Packets from and to it are dropped until then.
        "attach": Kind::Choice(&choices(&ATTACH)), default "ideal";
        /// When it is switched on, if it is to attach; drawn for each UE. Two hundred at once get there one after the
        /// other, three hundred are in each other's way for ever, and refused.
        "switched_on": TIME_OR_RANDOM, optional "`\"0s\"`";
        /// RLC of its default bearer.
        "rlc": Kind::Table(&RLC), empty;
        /// Dedicated bearers: `[[lte.ue.bearer]]`. A packet takes the last one in the file that has a filter for it,
        /// else the default one.
        "bearer": Kind::Tables(&BEARER), empty;
    }],
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
    "Maximum bit rate of the downlink, by which `fd-tbfq` and `td-tbfq` give tokens. It is not enforced.",
);

static BEARER: Table = Table {
    name: "bearer",
    text: "A dedicated bearer of a UE: a class of service, an RLC and buffers of its own, and the packets that take it. A scheduler \
           knows the sum of a UE's rates; what a UE is given, its bearers with something to send share alike.",
    fields: &[keys! {
        /// Class of service; 1 to 4 are guaranteed.
        "qci": Kind::integer(1, 9), required;
        GUARANTEED_RATE;
        MAXIMUM_RATE;
        /// Its RLC.
        "rlc": Kind::Table(&RLC), empty;
        /// Which packets take it: those that match any of its filters, `[[lte.ue.bearer.filter]]`.
        "filter": Kind::Tables(&FILTER), required;
    }],
    ..Table::EMPTY
};

const PORTS: Kind = Kind::List(&Kind::integer(0, 65_535));

static FILTER: Table = Table {
    name: "packet filter",
    text: "What packets of a bearer look like (3GPP TS 24.008 section 10.5.6.12); a packet has to agree with all that is given. \
           Addresses are those at the UE.",
    fields: &[keys! {
        /// Which packets it looks at.
        "direction": Kind::Choice(&choices(&DIRECTIONS)), default "both";
        /// Whom the UE speaks to: a host or router, an address, or a prefix such as `"10.0.0.0/8"`.
        "remote": Kind::Text, optional "anybody";
        /// The UE's side, likewise: of use where the UE is a router with hosts behind it.
        "local": Kind::Text, optional "anybody";
        /// Port of whom the UE speaks to, or the first and the last.
        "remote_ports": PORTS, optional "any";
        /// Port of the UE's side, or the first and the last.
        "local_ports": PORTS, optional "any";
    }],
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
    fields: &[keys! {
        /// Whether there is any; otherwise `power` holds.
        "enabled": Kind::Boolean, default "true";
        /// Largest power.
        "largest" ["dBm"]: POWER, default "23.0";
        /// Smallest power.
        "smallest" ["dBm"]: POWER, default "-40.0";
        /// P0: what is to arrive of a resource block.
        "target" ["dBm"]: POWER, default "-80.0";
        /// Alpha: part of the path loss that is made up for.
        "compensation": Kind::PROBABILITY, default "1.0";
        /// What becomes of the cell's commands.
        "commands": Kind::Choice(&choices(&COMMANDS)), default "accumulated";
    }],
    ..Table::EMPTY
};

pub(super) static RLC: Table = Table {
    name: "RLC",
    text: "Radio link control of a bearer (3GPP TS 36.322), both ways alike.",
    fields: &[keys! {
        /// Its mode.
        "mode": Kind::Choice(&choices(&RLC_MODES)), default "um";
        /// Another default for `buffer`.
        "preset": Kind::Choice(&choices(&BUFFERS)), default "none";
        /// How much may wait in either direction; what comes beyond is dropped. A packet waits until its last byte was
        /// sent. A time is what the peak rate of the downlink carries in it: 100 ms are 229 to 942 kB at 25 to 100
        /// resource blocks.
        "buffer": Kind::QueueLimit, optional "`\"100ms\"`, or as `preset` says";
        /// A packet of which nothing was sent for so long is thrown away (PDCP).
        "discard": TIMER, optional "never";
        /// t-Reordering: how long a receiver waits for what HARQ may still bring.
        "reordering": TIMER, optional "100ms; 10ms with `am`";
        /// t-PollRetransmit of `am`.
        "poll_retransmit": TIMER, default "20ms";
        /// t-StatusProhibit of `am`.
        "status_prohibit": TIMER, default "10ms";
    }],
    ..Table::EMPTY
};
