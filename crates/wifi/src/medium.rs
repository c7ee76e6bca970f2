//! The basic service set as a medium of the network: the access point is the hub.

use crate::bss::{BasicServiceSet, OfferedPacket};
use crate::phy::AccessCategory;
use fullpipe_network::{CompletedFrame, Medium, MediumFrame};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// Returns the access category of a packet, from its flow and, if they are known, its header fields.
pub type CategoryRule = fn(&MediumFrame) -> AccessCategory;

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
    category: Option<CategoryRule>,
}

impl WifiMedium {
    /// Returns a medium on which all packets are best effort.
    pub fn new(network: BasicServiceSet) -> Self {
        WifiMedium { network, category: None }
    }

    /// Returns a medium that reads the header fields of packets to determine their access category.
    pub fn with_categories(network: BasicServiceSet, category: CategoryRule) -> Self {
        WifiMedium { network, category: Some(category) }
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
            category: self.category.map_or(AccessCategory::BestEffort, |category| category(&frame)),
        };
        self.network.offer(now, frame.way, frame.station, packet);
    }

    fn reads_headers(&self) -> bool {
        self.category.is_some()
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
}
