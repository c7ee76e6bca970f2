//! The keys of a Wi-Fi network, and their defaults that depend on other keys.

use crate::phy::{AccessCategory, Band, Coding, ErrorModel, Preamble};
use fullpipe_network::access::StationDeclaration;
use fullpipe_network::filter::FILTER_KEYS;
use fullpipe_schema::component::choices;
use fullpipe_schema::{Choice, Field, FieldKind, Table, Tree, ValueData, keys, named};
use fullpipe_units::Duration;

const DECIBELS: FieldKind = FieldKind::number(-200.0, 300.0);
const DISTANCE: FieldKind = FieldKind::number(0.0, 1e6);
const POWER: FieldKind = FieldKind::number(-100.0, 100.0);
const PACKETS: FieldKind = FieldKind::integer(1, 1_000_000);
const MCS: FieldKind = FieldKind::integer(0, 9);
const STREAMS: FieldKind = FieldKind::integer(1, 4);
const WINDOW: FieldKind = FieldKind::integer(0, 32_767);

/// The name of a station in probes and errors.
pub(super) const STATION_DECLARATION: StationDeclaration = StationDeclaration { key: "station", name: "Wi-Fi station" };

/// The amendment, without its band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amendment {
    B,
    A,
    G,
    N,
    Ac,
}

pub(super) static STANDARDS: [(Choice, Amendment); 5] = named! {
    /// 802.11b: 1 to 11 Mbit/s, 2.4 GHz.
    "b" => Amendment::B;
    /// 802.11a: 6 to 54 Mbit/s, 5 GHz.
    "a" => Amendment::A;
    /// 802.11g without stations of 802.11b: 6 to 54 Mbit/s, 2.4 GHz.
    "g" => Amendment::G;
    /// 802.11n (Wi-Fi 4): 20 and 40 MHz, with aggregation.
    "n" => Amendment::N;
    /// 802.11ac (Wi-Fi 5): 20 to 160 MHz in 5 GHz, with aggregation.
    "ac" => Amendment::Ac;
};

pub(super) static BANDS: [(Choice, Band); 2] = named! {
    /// the 2.4 GHz band.
    "2.4GHz" => Band::Ghz2;
    /// the 5 GHz band.
    "5GHz" => Band::Ghz5;
};

pub(super) static PREAMBLES: [(Choice, Preamble); 2] = named! {
    /// 192 µs.
    "long" => Preamble::Long;
    /// 96 µs, except at 1 Mbit/s.
    "short" => Preamble::Short;
};

/// Whether the short guard interval is used.
pub(super) static GUARDS: [(Choice, bool); 2] = named! {
    /// 0.8 µs.
    "long" => false;
    /// 0.4 µs.
    "short" => true;
};

pub(super) static ERROR_MODELS: [(Choice, Option<ErrorModel>); 4] = named! {
    /// tables for an AWGN channel and convolutional codes.
    "table" => Some(ErrorModel::Table(Coding::Bcc));
    /// tables with LDPC for 802.11n and ac.
    "table-ldpc" => Some(ErrorModel::Table(Coding::Ldpc));
    /// the NIST bound of the convolutional code.
    "nist" => Some(ErrorModel::Nist);
    /// no packet errors: only collisions cause losses.
    "none" => None;
};

/// How the rate is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateSelection {
    Constant,
    Ideal,
    MinstrelHt,
}

pub(super) static RATE_CONTROLS: [(Choice, RateSelection); 3] = named! {
    /// always the rate of `mcs` (802.11n and ac) or `rate` (802.11b, a and g).
    "constant" => RateSelection::Constant;
    /// the fastest rate with a bit error rate below 10^-6 at the SNR of the receiver, which the sender knows.
    "ideal" => RateSelection::Ideal;
    /// Minstrel-HT of Linux, for 802.11n and ac.
    "minstrel-ht" => RateSelection::MinstrelHt;
};

/// The queues of the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueKind {
    Fifo,
    PerStation,
    FqCoDel,
}

pub(super) static QUEUES: [(Choice, QueueKind); 3] = named! {
    /// one drop-tail queue per access category in front of the driver.
    "drop-tail" => QueueKind::Fifo;
    /// a drop-tail queue for each station and access category.
    "per-station" => QueueKind::PerStation;
    /// FQ-CoDel for each station and access category, as in Linux.
    "fq-codel" => QueueKind::FqCoDel;
};

pub(super) static CATEGORIES: [(Choice, AccessCategory); 4] = named! {
    /// AC_BK, the lowest priority.
    "background" => AccessCategory::Background;
    /// AC_BE.
    "best-effort" => AccessCategory::BestEffort;
    /// AC_VI.
    "video" => AccessCategory::Video;
    /// AC_VO, the highest priority.
    "voice" => AccessCategory::Voice;
};

/// The nodes to which contention parameters apply: access point, stations.
pub(super) static NODES: [(Choice, [bool; 2]); 3] = named! {
    /// access point and stations.
    "all" => [true, true];
    /// the access point.
    "access-point" => [true, false];
    /// the stations.
    "stations" => [false, true];
};

/// The data rate, in each table that sets it.
const RATE_KEYS: &[Field] = keys! {
    /// Selection of the data rate.
    "rate_control": FieldKind::Choice(&RATE_CONTROL_NAMES), optional "`\"constant\"` with `mcs` or `rate`, otherwise `\"minstrel-ht\"` with 802.11n and ac, and `\"ideal\"`";
    /// Modulation and coding scheme of 802.11n and ac, from 0 for any number of `streams`, for a constant rate over the whole channel.
    /// MCS 15 of 802.11n is 7 with two streams. 8 and 9 are for 802.11ac.
    "mcs": MCS, optional "none";
    /// Constant rate of 802.11b, a and g: 1, 2, 5.5, 11, or 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s.
    "rate": FieldKind::RATE, optional "none";
    /// Spatial streams of 802.11n and ac.
    "streams": STREAMS, optional "2 in the network's table; in a station's table, those of the network";
};

static RATE_CONTROL_NAMES: [Choice; 3] = choices(&RATE_CONTROLS);

pub(super) static NETWORK: Table = Table {
    name: "Wi-Fi network",
    text: "A Wi-Fi network (IEEE 802.11): an access point and its stations on one channel. All nodes are in carrier-sense range of each other. Packets to a \
           station enter the network at the access point, and packets from a station leave it there. Packets between two stations \
           pass through the access point, which must then be a router. See docs/wifi.md.",
    fields: &[
        keys! {
            /// Name of the network. Its directions are the links `NAME.downlink` and `NAME.uplink`.
            "name": FieldKind::Name, required;
            /// Node that is the access point: a router or a host.
            "access_point": FieldKind::Name, required;
            /// IEEE 802.11 amendment of all nodes.
            "standard": FieldKind::Choice(&choices(&STANDARDS)), default "ac";
            /// Frequency band; 802.11n supports both.
            "band": FieldKind::Choice(&choices(&BANDS)), optional "`\"2.4GHz\"` with 802.11b and g, otherwise `\"5GHz\"`";
            /// Width of the channel: 20, 40 (802.11n and ac), 80 or 160 (802.11ac).
            "channel_width" ["MHz"]: FieldKind::integer(20, 160), optional "20; 40 with 802.11n in 5 GHz; 80 with 802.11ac";
            /// Shortest guard interval of 802.11n and ac.
            "guard_interval": FieldKind::Choice(&choices(&GUARDS)), default "short";
            /// Preamble of 802.11b.
            "preamble": FieldKind::Choice(&choices(&PREAMBLES)), default "long";
        },
        RATE_KEYS,
        keys! {
            /// Model of the packet error rate as a function of the SNR.
            "error_model": FieldKind::Choice(&choices(&ERROR_MODELS)), default "table";
            /// Transmit power of every node.
            "power" ["dBm"]: POWER, default "16.0206";
            /// Noise figure of every receiver.
            "noise_figure" ["dB"]: FieldKind::number(0.0, 100.0), default "7.0";
            /// Path loss at 1 m; the default is that of free space at 5.15 GHz.
            "path_loss_at_1m" ["dB"]: DECIBELS, default "46.6777";
            /// Exponent of the path loss: 2 is free space.
            "path_loss_exponent": FieldKind::number(0.0, 10.0), default "3.0";
            /// Maximum number of transmissions of a packet; the packet is then dropped.
            "retry_limit": FieldKind::integer(1, 255), default "7";
            /// Size of a PSDU above which RTS and CTS precede it.
            "rts_threshold": FieldKind::size(0, 10_000_000), optional "never, except as Minstrel-HT demands";
            /// Largest number of packets in an aggregate (A-MPDU) of 802.11n and ac; 1 turns aggregation off.
            "aggregate_packets": FieldKind::integer(1, 64), default "64";
            /// Largest size of an aggregate.
            "aggregate_bytes": FieldKind::size(1, 10_000_000), optional "65 535 B with 802.11n, 1 048 575 B with 802.11ac";
            /// Longest duration of a PPDU.
            "aggregate_duration": FieldKind::duration(Duration::from_micros(100), Duration::from_micros(5484)), default "5484us";
            /// Minimum time between the beginnings of two packets of an aggregate.
            "mpdu_spacing": FieldKind::duration(Duration::ZERO, Duration::from_micros(16)), default "0s";
            /// Queues of the access point.
            "queue": FieldKind::Choice(&choices(&QUEUES)), default "fq-codel";
            /// Limit of a queue of the access point; of `fq-codel`, the limit of all queues together.
            "queue_packets" ["packets"]: PACKETS, optional "1000; 8192 with `fq-codel`";
            /// With `drop-tail`: packets that the driver takes from the queue and sorts by station.
            "driver_packets" ["packets"]: PACKETS, optional "123";
            /// With `fq-codel`: acceptable queueing delay (CoDel's target).
            "codel_target": FieldKind::INTERVAL, optional "`\"20ms\"`";
            /// With `fq-codel`: CoDel's interval.
            "codel_interval": FieldKind::INTERVAL, optional "`\"100ms\"`";
            /// With `fq-codel`: whether ECN-capable packets are marked instead of dropped.
            "codel_ecn": FieldKind::Boolean, optional "true";
            /// Whether the access point gives its stations equal air time; if false, it serves one aggregate per station in turn.
            "airtime_fairness": FieldKind::Boolean, default "true";
            /// With `airtime_fairness`: air time quantum of a station per round.
            "airtime_weight": FieldKind::INTERVAL, default "256us";
            /// Limit of the drop-tail queue of a station per access category.
            "station_packets" ["packets"]: PACKETS, default "1000";
            /// Size of the largest IP packet; larger ones are fragmented.
            "mtu": FieldKind::size(68, 2304), default "1500B";
            /// Contention parameters that differ from those of the standard: `[[wifi.access]]`.
            "access": FieldKind::Tables(&ACCESS), empty;
            /// Access categories of packets (EDCA, 802.11n and ac): `[[wifi.category]]`. A packet has the category of the first table
            /// that it matches, otherwise best effort. Packets carry no DSCP.
            "category": FieldKind::Tables(&CATEGORY), empty;
            /// The stations, at least one: `[[wifi.station]]`.
            "station": FieldKind::Tables(&STATION), required;
        },
    ],
    ..Table::EMPTY
};

pub(super) static STATION: Table = Table {
    name: "Wi-Fi station",
    text: "A station, or several stations with the same parameters.",
    fields: &[
        keys! {
            /// Host (or router) that is the station, or a pattern such as `laptop*`.
            "host": FieldKind::Text, required;
            /// Distance to the access point.
            "distance" ["m"]: DISTANCE, default "5.0";
            /// Distance of the last station of a pattern; the stations are evenly spaced from `distance` to `farthest`.
            "farthest" ["m"]: DISTANCE, optional "`distance`";
            /// Loss in addition to the path loss, such as that of walls.
            "loss" ["dB"]: DECIBELS, default "0.0";
            /// Changes of `loss` during the run: `[[wifi.station.change]]`.
            "change": FieldKind::Tables(&CHANGE), empty;
        },
        RATE_KEYS,
    ],
    ..Table::EMPTY
};

static CHANGE: Table = Table {
    name: "change of a Wi-Fi station",
    text: "A change of a station's additional loss.",
    fields: &[keys! {
        /// Time of the change.
        "at": FieldKind::DURATION, required;
        /// Additional loss from this time on.
        "loss" ["dB"]: DECIBELS, required;
    }],
    ..Table::EMPTY
};

static ACCESS: Table = Table {
    name: "contention parameters",
    text: "Contention parameters of an access category. 802.11b, a and g (DCF) use those of `best-effort`.",
    fields: &[keys! {
        /// Access category.
        "category": FieldKind::Choice(&choices(&CATEGORIES)), default "best-effort";
        /// Nodes to which the parameters apply.
        "nodes": FieldKind::Choice(&choices(&NODES)), default "all";
        /// AIFSN: slots between the end of SIFS and the earliest transmission; 2 is equal to DIFS.
        "aifsn": FieldKind::integer(1, 15), optional "that of the standard";
        /// Smallest contention window.
        "cw_min": WINDOW, optional "that of the standard";
        /// Largest contention window.
        "cw_max": WINDOW, optional "that of the standard";
        /// Maximum duration of a transmission opportunity (TXOP); 0 permits one PPDU and its response.
        "txop_limit": FieldKind::duration(Duration::ZERO, Duration::from_millis(20)), optional "that of the standard";
    }],
    ..Table::EMPTY
};

static CATEGORY: Table = Table {
    name: "access category",
    text: "Access category of the packets that match all given keys. Addresses are the addresses at the station.",
    fields: &[
        keys! {
            /// Access category of the packets.
            "category": FieldKind::Choice(&choices(&CATEGORIES)), required;
        },
        FILTER_KEYS,
    ],
    ..Table::EMPTY
};

/// Sets the defaults that depend on other keys.
pub(super) fn fill(network: &mut Tree) {
    let amendment = network.choice_value("standard", &STANDARDS);
    let band = match amendment {
        Amendment::B | Amendment::G => "2.4GHz",
        Amendment::A | Amendment::N | Amendment::Ac => "5GHz",
    };
    network.fill("band", ValueData::Choice(band));
    let width = match (amendment, network.choice_value("band", &BANDS)) {
        (Amendment::Ac, _) => 80,
        (Amendment::N, Band::Ghz5) => 40,
        _ => 20,
    };
    network.fill("channel_width", ValueData::Integer(width));
    network.fill("streams", ValueData::Integer(if is_ht(amendment) { 2 } else { 1 }));
    let packets = if network.choice_value("queue", &QUEUES) == QueueKind::FqCoDel { 8192 } else { 1000 };
    network.fill("queue_packets", ValueData::Integer(packets));
}

/// Returns whether the amendment has MCS, streams and aggregates.
pub(super) fn is_ht(amendment: Amendment) -> bool {
    matches!(amendment, Amendment::N | Amendment::Ac)
}
