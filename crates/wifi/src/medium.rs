//! The basic service set as a medium of the network: the access point is the hub.

use crate::bss::{BasicServiceSet, OfferedPacket};
use crate::metrics::STATION;
use crate::phy::AccessCategory;
use crate::records::{STATIONS, StationRecord};
use fullpipe_archive::Tables;
use fullpipe_network::filter::{PacketFilter, PacketHeaders};
use fullpipe_network::{CompletedFrame, Exchange, Medium, MediumDirection, MediumFrame};
use fullpipe_schema::metric::{ProbeMetric, Sample};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// The access categories of packets: a packet has that of the first filter that it matches, otherwise best effort.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CategoryRule {
    filters: Vec<(AccessCategory, PacketFilter)>,
}

impl CategoryRule {
    /// Adds filters of packets in a category, after the existing ones.
    pub fn add(&mut self, category: AccessCategory, filters: impl IntoIterator<Item = PacketFilter>) {
        self.filters.extend(filters.into_iter().map(|filter| (category, filter)));
    }

    /// Returns whether all packets are best effort.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns the category of a frame.
    #[inline]
    pub fn category(&self, frame: &MediumFrame) -> AccessCategory {
        if self.filters.is_empty() {
            return AccessCategory::BestEffort;
        }
        let Some(headers) = PacketHeaders::from_frame(frame) else { return AccessCategory::BestEffort };
        let first = self.filters.iter().find(|(_, filter)| filter.matches(frame.way, &headers));
        first.map_or(AccessCategory::BestEffort, |(category, _)| *category)
    }
}

/// A medium whose frames are those of a basic service set. Station numbers are those of its configuration.
///
/// ```
/// use fullpipe_network::{CompletedFrame, Medium, MediumDirection, MediumFrame, MediumOutcome};
/// use fullpipe_units::{EcnCodepoint, FlowId, Instant};
/// use fullpipe_wifi::config::{Config, StationConfig};
/// use fullpipe_wifi::phy::{OfdmRate, PhyRate, Standard};
/// use fullpipe_wifi::rate_control::RateControlConfig;
/// use fullpipe_wifi::{BasicServiceSet, WifiMedium};
/// use std::collections::VecDeque;
///
/// let rate = RateControlConfig::Constant(PhyRate::Ofdm(OfdmRate::Mbps54));
/// let mut config = Config::new("lan", 1, Standard::A);
/// config.stations.push(StationConfig::new("laptop", 5.0, rate));
/// let mut medium = WifiMedium::new(BasicServiceSet::new(config)?);
///
/// let (way, codepoint) = (MediumDirection::Downlink, EcnCodepoint::NotEct);
/// let frame = MediumFrame { token: 3, way, station: 0, flow: FlowId(0), ip_bytes: 1500, codepoint, envelope: None };
/// let now = Instant::from_nanos(1_000_000);
/// medium.offer(now, frame);
/// // The medium is idle: the frame of 248 µs begins at once.
/// assert_eq!(medium.next_wakeup(), now);
/// medium.wake(now);
/// let mut outcomes = VecDeque::new();
/// medium.drain_outcomes(&mut outcomes);
/// let at = Instant::from_nanos(1_248_000);
/// assert_eq!(outcomes, [CompletedFrame { token: 3, at, fate: MediumOutcome::Delivered }]);
/// # Ok::<(), fullpipe_wifi::config::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct WifiMedium {
    network: BasicServiceSet,
    categories: CategoryRule,
}

impl WifiMedium {
    /// Returns a medium on which all packets are best effort.
    pub fn new(network: BasicServiceSet) -> Self {
        WifiMedium::with_categories(network, CategoryRule::default())
    }

    /// Returns a medium that reads the header fields of packets to determine their access category.
    pub fn with_categories(mut network: BasicServiceSet, categories: CategoryRule) -> Self {
        network.keep_exchanges();
        WifiMedium { network, categories }
    }

    /// Returns the basic service set.
    pub fn network(&self) -> &BasicServiceSet {
        &self.network
    }
}

impl Medium for WifiMedium {
    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        let packet = OfferedPacket {
            token: frame.token,
            ip_bytes: frame.ip_bytes,
            flow: u64::from(frame.flow.0),
            codepoint: frame.codepoint,
            category: self.categories.category(&frame),
        };
        self.network.offer(now, frame.way, frame.station, packet);
    }

    fn reads_headers(&self) -> bool {
        !self.categories.is_empty()
    }

    fn next_wakeup(&self) -> Instant {
        self.network.next_deadline()
    }

    fn wake(&mut self, now: Instant) {
        self.network.advance(now);
    }

    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>) {
        fates.extend(self.network.drain_outcomes());
    }

    fn drain_exchanges(&mut self, exchanges: &mut Vec<Exchange>) {
        exchanges.extend(self.network.drain_exchanges());
    }

    fn sample(&self, metric: &str, station: u32, way: MediumDirection) -> Option<Sample> {
        ProbeMetric::find(&STATION, metric)?.sample(&self.network.link_status(way, station))
    }

    fn record(&self, tables: &mut Tables) {
        let config = self.network.config();
        let rows = (0..).zip(&config.stations).flat_map(|(number, station)| {
            MediumDirection::ALL.map(|way| StationRecord {
                network: config.name.clone(),
                station: station.name.clone(),
                direction: way.name().to_owned(),
                ..StationRecord::from_counters(&self.network.link_status(way, number).counters)
            })
        });
        tables.add(&STATIONS, rows.collect());
    }
}
