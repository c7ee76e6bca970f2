//! The configuration of a basic service set.

use crate::aggregate::AggregateLimits;
use crate::airtime::StationOrder;
use crate::channel::ChannelConfig;
use crate::contention::FreezeRule;
use crate::frame::{mpdu_bytes, single_mpdu_psdu_bytes};
use crate::phy::{
    AccessCategory, AccessParameters, DurationRule, ErrorModel, PhyRate, Preamble, Standard, ppdu_duration,
};
use crate::queue::ApQueue;
use crate::rate_control::RateControlConfig;
use fullpipe_network::MediumDirection;
use fullpipe_units::{Duration, Instant};
use std::collections::BTreeSet;
use std::fmt;

/// When RTS and CTS precede a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtsPolicy {
    /// Never, except for rates for which rate control demands it.
    Never,
    /// If the PSDU is larger than this number of bytes (dot11RTSThreshold).
    Above(u64),
}

/// When nodes may transmit again after a frame without a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureTiming {
    /// The senders wait for the ACK or CTS timeout and then their interframe space. After a collision the other nodes have
    /// detected only energy, and wait their interframe space. After a frame that was lost to noise they wait as long as
    /// its Duration field states. This meets runs of ns-3.
    #[default]
    Timeout,
    /// All nodes wait their interframe space from the end of the frame, as in analytical models.
    Immediate,
}

/// A station.
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// Name, which selects its random streams.
    pub name: String,
    /// Distance to the access point in m.
    pub distance_m: f64,
    /// Additional loss in dB, from the given instants on. The instants ascend. Before the first there is none.
    pub shadowing: Vec<(Instant, f64)>,
    /// Rate control of the access point for frames to the station.
    pub downlink: RateControlConfig,
    /// Rate control of the station.
    pub uplink: RateControlConfig,
}

impl StationConfig {
    /// Returns a station without shadowing, with the same rate control in both directions.
    pub fn new(name: &str, distance_m: f64, rate_control: RateControlConfig) -> Self {
        StationConfig {
            name: name.to_owned(),
            distance_m,
            shadowing: Vec::new(),
            downlink: rate_control,
            uplink: rate_control,
        }
    }
}

/// The configuration of an access point and its stations.
///
/// ```
/// use fullpipe_wifi::config::{Config, StationConfig};
/// use fullpipe_wifi::phy::{OfdmRate, PhyRate, Standard};
/// use fullpipe_wifi::rate_control::RateControlConfig;
/// let rate = RateControlConfig::Constant(PhyRate::Ofdm(OfdmRate::Mbps54));
/// let mut config = Config::new("lan", 1, Standard::A);
/// config.stations.push(StationConfig::new("laptop", 5.0, rate));
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name, which selects the random streams.
    pub name: String,
    /// Seed of the random streams.
    pub seed: u64,
    /// The standard.
    pub standard: Standard,
    /// Preamble of 802.11b.
    pub preamble: Preamble,
    /// Basic rates.
    pub basic: Vec<PhyRate>,
    /// Rate of RTS frames; the CTS has the basic rate that answers it.
    pub rts_rate: PhyRate,
    /// Whether frames have QoS headers and EDCA replaces DCF.
    pub qos: bool,
    /// How backoff counters change when the medium becomes busy.
    pub freeze: FreezeRule,
    /// Rules for the duration of PPDUs.
    pub durations: DurationRule,
    /// Contention parameters of stations, by access category. Without QoS, those of best effort apply.
    pub station_access: [AccessParameters; 4],
    /// Contention parameters of the access point.
    pub ap_access: [AccessParameters; 4],
    /// Transmissions of a frame before it is given up (dot11ShortRetryLimit).
    pub retry_limit: u16,
    /// Limits of aggregates, in addition to those of the PHY.
    pub aggregate: AggregateLimits,
    /// Minimum time between the beginnings of two MPDUs of an aggregate, which receivers require (0 to 16 µs).
    pub mpdu_spacing: Duration,
    /// When RTS and CTS are used.
    pub rts: RtsPolicy,
    /// When nodes may transmit again after a failure.
    pub failure_timing: FailureTiming,
    /// The radio channel.
    pub channel: ChannelConfig,
    /// Packet errors; `None`: only collisions cause losses.
    pub errors: Option<ErrorModel>,
    /// Queues of the access point.
    pub ap_queue: ApQueue,
    /// In which order the access point serves its stations.
    pub order: StationOrder,
    /// Limit of the queue of a station per access category, in packets.
    pub station_packets: u32,
    /// The stations.
    pub stations: Vec<StationConfig>,
}

impl Config {
    /// Returns the configuration of an access point without stations, with the defaults of the standard and of Linux.
    pub fn new(name: &str, seed: u64, standard: Standard) -> Self {
        let preamble = Preamble::default();
        let timing = standard.timing(preamble);
        let qos = standard.has_qos();
        let dsss = standard == Standard::B;
        let access = AccessCategory::ALL.map(|category| if qos { timing.edca(category, dsss) } else { timing.dcf() });
        let basic = standard.basic_rates(preamble);
        Config {
            name: name.to_owned(),
            seed,
            standard,
            preamble,
            rts_rate: basic[basic.len() - 1],
            basic,
            qos,
            freeze: if qos { FreezeRule::Edca } else { FreezeRule::Dcf },
            durations: DurationRule::Standard,
            station_access: access,
            ap_access: access,
            retry_limit: 7,
            aggregate: AggregateLimits {
                mpdus: AggregateLimits::WINDOW,
                bytes: u64::MAX,
                ppdu: crate::aggregate::MAX_PPDU,
            },
            mpdu_spacing: Duration::ZERO,
            rts: RtsPolicy::Never,
            failure_timing: FailureTiming::default(),
            channel: ChannelConfig::default(),
            errors: Some(ErrorModel::default()),
            ap_queue: ApQueue::default(),
            order: StationOrder::LINUX,
            station_packets: 1000,
            stations: Vec::new(),
        }
    }

    /// Selects the preamble of 802.11b, also for basic rates and RTS. Other standards have no such choice.
    pub fn set_preamble(&mut self, preamble: Preamble) {
        self.preamble = preamble;
        for rate in self.basic.iter_mut().chain([&mut self.rts_rate]) {
            if let PhyRate::Dsss(_, own) = rate {
                *own = preamble;
            }
        }
    }

    /// Returns the bounds that every packet of a direction meets: the highest data rate in bit/s, and the duration of the
    /// shortest PPDU. The bytes of IP packets never exceed the data rate.
    ///
    /// ```
    /// use fullpipe_network::MediumDirection;
    /// use fullpipe_wifi::config::{Config, StationConfig};
    /// use fullpipe_wifi::phy::{OfdmRate, PhyRate, Standard};
    /// use fullpipe_wifi::rate_control::RateControlConfig;
    /// let rate = RateControlConfig::Constant(PhyRate::Ofdm(OfdmRate::Mbps54));
    /// let mut config = Config::new("lan", 1, Standard::A);
    /// config.stations.push(StationConfig::new("laptop", 5.0, rate));
    /// // A packet of 20 bytes is an MPDU of 56 bytes: 16 + 448 + 6 bits are 3 symbols of 4 µs after 20 µs.
    /// let (rate_bps, least_delay) = config.bounds(MediumDirection::Uplink);
    /// assert_eq!((rate_bps, least_delay.as_nanos()), (54_000_000, 32_000));
    /// ```
    pub fn bounds(&self, direction: MediumDirection) -> (u64, Duration) {
        let rates = self.stations.iter().flat_map(|station| {
            let control = match direction {
                MediumDirection::Downlink => &station.downlink,
                MediumDirection::Uplink => &station.uplink,
            };
            match control {
                RateControlConfig::Constant(rate) => vec![*rate],
                RateControlConfig::Ideal { capabilities, .. } | RateControlConfig::MinstrelHt(capabilities) => {
                    capabilities.rates(self.standard, self.preamble)
                }
            }
        });
        let band = self.standard.band();
        let bounds = rates.map(|rate| {
            let psdu_bytes = single_mpdu_psdu_bytes(mpdu_bytes(20, self.qos), rate.kind());
            ((1e6 * rate.mbps()).ceil() as u64, ppdu_duration(rate, psdu_bytes, band, self.durations))
        });
        bounds.fold((0, Duration::MAX), |(fastest, shortest), (rate, ppdu)| (fastest.max(rate), shortest.min(ppdu)))
    }

    /// Checks that the configuration is possible.
    ///
    /// # Errors
    /// If a value is out of its range, or a rate is not one of the standard; the error states which.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |text: String| Err(ConfigError(text));
        if self.stations.is_empty() || self.stations.len() > 2007 {
            let found = self.stations.len();
            // The association identifier has 2007 values (clause 9.4.1.8).
            return error(format!("{found} stations: an access point has 1 to 2007"));
        }
        for access in self.station_access.iter().chain(&self.ap_access) {
            if access.aifsn == 0 || access.aifsn > 15 {
                return error(format!("AIFSN {}: the range is 1 to 15", access.aifsn));
            }
            if access.cw_min > access.cw_max || access.cw_max > 32_767 {
                let (cw_min, cw_max) = (access.cw_min, access.cw_max);
                return error(format!(
                    "contention window {cw_min} to {cw_max}: the range is 0 to 32767, in ascending order"
                ));
            }
        }
        if self.retry_limit == 0 {
            return error("retry limit 0: a frame is transmitted at least once".to_owned());
        }
        if self.aggregate.mpdus == 0 || self.aggregate.mpdus > AggregateLimits::WINDOW {
            let found = self.aggregate.mpdus;
            return error(format!("aggregates of {found} MPDUs: the range is 1 to {}", AggregateLimits::WINDOW));
        }
        if self.mpdu_spacing > Duration::from_micros(16) {
            return error(format!("MPDU spacing {}: the range is 0 to 16us", self.mpdu_spacing));
        }
        let control = self.basic.iter().chain([&self.rts_rate]);
        let same_family = |rate: &&PhyRate| {
            matches!((rate, self.standard), (PhyRate::Dsss(..), Standard::B) | (PhyRate::Ofdm(_), _))
                && self.standard.permits(**rate)
        };
        if let Some(rate) = control.clone().find(|rate| !same_family(rate)) {
            return error(format!("{rate} cannot be a rate of control frames of this standard"));
        }
        if self.basic.is_empty() {
            return error("there are no basic rates".to_owned());
        }
        let ChannelConfig { path_loss, power_dbm, noise_figure_db, detection_dbm, detection_snr_db } = self.channel;
        let values =
            [path_loss.reference_db, path_loss.exponent, power_dbm, noise_figure_db, detection_dbm, detection_snr_db];
        if let Some(found) = values.into_iter().find(|value| !value.is_finite()) {
            return error(format!("{found} in the settings of the channel is not a finite number"));
        }
        let mut names = BTreeSet::new();
        if let Some(station) = self.stations.iter().find(|station| !names.insert(&station.name)) {
            // Stations of one name would draw the same backoffs.
            return error(format!("two stations have the name {}", station.name));
        }
        self.stations.iter().try_for_each(|station| self.check_station(station))
    }

    fn check_station(&self, station: &StationConfig) -> Result<(), ConfigError> {
        let error = |text: String| Err(ConfigError(format!("station {}: {text}", station.name)));
        let losses = station.shadowing.iter().map(|(_, loss)| *loss);
        if let Some(found) = losses.chain([station.distance_m]).find(|value| !value.is_finite()) {
            return error(format!("{found} is not a finite number"));
        }
        if station.distance_m < 0.0 {
            return error(format!("the distance {} m is negative", station.distance_m));
        }
        if !station.shadowing.is_sorted_by_key(|(from, _)| *from) {
            return error("the instants of its shadowing do not ascend".to_owned());
        }
        for control in [&station.downlink, &station.uplink] {
            let streams = match control {
                RateControlConfig::Constant(rate) if self.standard.permits(*rate) => rate.streams(),
                RateControlConfig::Constant(rate) => return error(format!("{rate} is not a rate of this standard")),
                RateControlConfig::Ideal { capabilities, .. } => capabilities.streams,
                RateControlConfig::MinstrelHt(_) if !self.standard.has_qos() => {
                    return error("Minstrel-HT has the rates of 802.11n and ac only".to_owned());
                }
                RateControlConfig::MinstrelHt(capabilities) => capabilities.streams,
            };
            if !(1..=4).contains(&streams) {
                return error(format!("{streams} spatial streams: the range is 1 to 4"));
            }
        }
        Ok(())
    }
}

/// An impossible configuration. The text states the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
