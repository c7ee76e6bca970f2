//! The settings of an LTE access network, and values derived from them.

use super::LTE;
use super::fading::FadingSource;
use super::medium::LteMedium;
use crate::access::AccessNetwork;
use crate::bearer::Classifier;
use crate::config::Config;
use crate::connection::AttachProcedure;
use crate::radio::RadioError;
use crate::radio::fading::Gains;
use crate::radio::tables::{self, MCS_COUNT};
use fullpipe_network::MediumDirection;
use fullpipe_network::access::{AccessNetworkComponent, AccessNetworkSettings, DirectionBounds, MediumCost};
use fullpipe_network::medium::Medium;
use fullpipe_units::{Distribution, Duration, Instant, NodeId, RandomStream};
use std::path::Path;

/// Shortest time through the downlink. A transmission is on the air two subframes after its scheduling and decoded at
/// the end of that subframe. A packet that arrives at the very beginning of a subframe misses its scheduling.
const LEAST_DOWNLINK: Duration = Duration::from_millis(3);
/// Shortest time through the uplink. A UE fills its transport block after reading the grant, so packets that arrive in
/// the first 3 symbols of that subframe, at most 214 286 ns less one, are included. The UE sends the block four
/// subframes later, and it is decoded after 13 of its 14 symbols. (A UE without a grant takes 7 ms more, for the buffer
/// status report and the grant.)
const LEAST_UPLINK: Duration = Duration::from_nanos(4_714_285);

/// Settings of an LTE access network: its gateway, cells and UEs.
#[derive(Clone, Debug, PartialEq)]
pub struct LteSettings {
    /// Name, unique among links and media.
    pub name: String,
    /// The PGW: a router or a host.
    pub gateway: NodeId,
    /// The nodes that are UEs, in the order of [`Config::ues`].
    pub stations: Vec<NodeId>,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Sources of the fading, downlink first. All cells have the same carriers.
    pub fading: [FadingSource; 2],
    /// Time in seconds at which each UE is switched on, in the order of [`Config::ues`]. UEs that are attached from the
    /// start ignore it.
    pub switched_on_s: Vec<Distribution>,
    /// Packet classifiers in the order of [`Config::ues`]; empty if no UE has dedicated bearers.
    pub classifiers: Vec<Classifier>,
    /// The remaining settings. Values that are drawn for each run (seed, fading, switch-on times) are not set.
    pub config: Config,
}

impl LteSettings {
    /// Returns the configuration of a run with this seed.
    fn config(&self, seed: u64) -> Result<Config, RadioError> {
        let seed_of = |purpose: &str| RandomStream::new(seed, &self.name, purpose).uniform_below(u64::MAX);
        let mut config = Config { seed: seed_of("radio"), ..self.config.clone() };
        if let Some(cell) = self.config.cells.first() {
            config.downlink_fading = self.fading[0].build(seed_of("downlink fading"), cell.downlink)?;
            config.uplink_fading = self.fading[1].build(seed_of("uplink fading"), cell.uplink)?;
        }
        for (ue, switched_on_s) in config.ues.iter_mut().zip(&self.switched_on_s) {
            let mut random = RandomStream::new(seed, &ue.name, "switched on");
            let at = Instant::ZERO.saturating_add(switched_on_s.sample_duration(&mut random));
            match &mut ue.attach {
                AttachProcedure::Ideal => {}
                AttachProcedure::KnownCell { switched_on } | AttachProcedure::CellSearch { switched_on } => {
                    *switched_on = at
                }
            }
        }
        Ok(config)
    }

    /// Upper bound of the bytes that all cells together can carry in a subframe. Transport blocks with few resource
    /// blocks may have more bytes per resource block than one with the whole band.
    fn most_bytes_per_subframe(&self, way: MediumDirection) -> u64 {
        let (cells, ues) = (&self.config.cells, &self.config.ues);
        let (bytes, carrier, layers): (fn(u8, usize) -> u32, _, _) = match way {
            MediumDirection::Downlink => {
                let layers = ues.iter().map(|ue| ue.transmission_mode.layers()).max().unwrap_or(1);
                (tables::downlink_bytes, cells.first().map(|cell| cell.downlink), layers as u64)
            }
            MediumDirection::Uplink => (tables::uplink_bytes, cells.first().map(|cell| cell.uplink), 1),
        };
        let blocks = carrier.map_or(0, |carrier| carrier.bandwidth.resource_blocks());
        let dense = |count: usize| {
            let most = (0..MCS_COUNT as u8).map(|mcs| u64::from(bytes(mcs, count))).max().unwrap_or(0);
            (most * blocks as u64).div_ceil(count as u64)
        };
        (1..=blocks).map(dense).max().unwrap_or(0) * layers * cells.len() as u64
    }
}

impl AccessNetworkSettings for LteSettings {
    fn component(&self) -> &'static AccessNetworkComponent {
        &LTE
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn hub(&self) -> NodeId {
        self.gateway
    }

    fn stations(&self) -> &[NodeId] {
        &self.stations
    }

    fn mtu_bytes(&self) -> u32 {
        self.mtu_bytes
    }

    fn bounds(&self, way: MediumDirection) -> DirectionBounds {
        let core = self.config.core.s1_delay + self.config.core.s5_delay;
        let least = match way {
            MediumDirection::Downlink => LEAST_DOWNLINK,
            MediumDirection::Uplink => LEAST_UPLINK,
        };
        DirectionBounds { rate_bps: 8_000 * self.most_bytes_per_subframe(way), least_delay: least + core }
    }

    /// Two events per subframe: the processing of the cell, and the offer of packets that arrived since the last
    /// subframe. Subframes without work cause no events, so a run with little traffic has fewer.
    fn cost(&self, duration: Duration) -> MediumCost {
        /// CPU time of an event with a single UE, and for each additional one, in events of the benchmark `tcp-1`.
        /// Measured with `lte-1`, `lte-50` and `lte-500`.
        const WEIGHT: [f64; 2] = [8.0, 0.25];
        /// Memory of a UE at both ends of its bearers, in bytes. Measured with `lte-500`.
        const UE_BYTES: f64 = 20e3;
        const SUBFRAMES_PER_S: f64 = 1000.0;
        let ues = self.stations.len() as f64;
        let repeated = self.fading.iter().map(|source| match source {
            FadingSource::Generator { repeat_s: Some(seconds), .. } => f64::from(*seconds),
            _ => 0.0,
        });
        let fading_bytes = repeated.sum::<f64>() * SUBFRAMES_PER_S * size_of::<Gains>() as f64;
        MediumCost {
            events: 2.0 * SUBFRAMES_PER_S * duration.as_secs_f64(),
            weight: WEIGHT[0] + WEIGHT[1] * ues,
            bytes: UE_BYTES * ues + fading_bytes,
            bound: None,
        }
    }

    fn files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = self.fading.iter().filter_map(FadingSource::file).collect();
        files.dedup();
        files
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Medium>, String> {
        let network = self.config(seed).and_then(AccessNetwork::new).map_err(|reason| reason.to_string())?;
        let cell_of = |ue: &crate::config::UeConfig| self.config.cells[ue.cell].name.clone();
        let ues = self.config.ues.iter().map(|ue| {
            let qcis = ue.bearers.iter().map(|bearer| bearer.qci.number().into()).collect();
            (ue.name.clone(), cell_of(ue), qcis)
        });
        Ok(Box::new(LteMedium::new(network, self.classifiers.clone(), self.name.clone(), ues.collect())))
    }
}
