//! The settings of a Wi-Fi network, and values derived from them.

use super::WIFI;
use crate::bss::BasicServiceSet;
use crate::config::Config;
use crate::medium::{CategoryRule, WifiMedium};
use fullpipe_network::MediumDirection;
use fullpipe_network::access::{AccessNetworkComponent, AccessNetworkSettings, DirectionBounds, MediumCost};
use fullpipe_network::medium::Medium;
use fullpipe_units::{Duration, NodeId};

/// Settings of a Wi-Fi network.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiSettings {
    /// The access point: a router or a host.
    pub access_point: NodeId,
    /// The nodes that are stations, in the order of [`Config::stations`].
    pub stations: Vec<NodeId>,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// The access categories of packets.
    pub categories: CategoryRule,
    /// The remaining settings. The seed of a run is not set.
    pub config: Config,
}

impl AccessNetworkSettings for WifiSettings {
    fn component(&self) -> &'static AccessNetworkComponent {
        &WIFI
    }

    fn name(&self) -> &str {
        &self.config.name
    }

    fn hub(&self) -> NodeId {
        self.access_point
    }

    fn stations(&self) -> &[NodeId] {
        &self.stations
    }

    fn mtu_bytes(&self) -> u32 {
        self.mtu_bytes
    }

    fn bounds(&self, way: MediumDirection) -> DirectionBounds {
        let (rate_bps, least_delay) = self.config.bounds(way);
        DirectionBounds { rate_bps, least_delay }
    }

    /// At most one event per PPDU, which takes at least 100 µs with its contention and response. Idle
    /// stations require no computation.
    fn cost(&self, duration: Duration) -> MediumCost {
        /// CPU time of an event, in events of the benchmark `tcp-1`.
        const WEIGHT: f64 = 4.0;
        /// Memory of a station in bytes.
        const STATION_BYTES: f64 = 16e3;
        const EVENTS_PER_S: f64 = 5e3;
        MediumCost {
            events: EVENTS_PER_S * duration.as_secs_f64(),
            weight: WEIGHT,
            bytes: STATION_BYTES * self.stations.len() as f64,
            bound: Some("a Wi-Fi network that is never idle"),
        }
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Medium>, String> {
        let config = Config { seed, ..self.config.clone() };
        let network = BasicServiceSet::new(config).map_err(|reason| reason.to_string())?;
        Ok(Box::new(WifiMedium::with_categories(network, self.categories.clone())))
    }
}
