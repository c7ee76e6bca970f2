//! The configuration of an LTE access network: cells, UEs, the radio channel and the core network.
//!
//! Defaults that are part of the model are those of the reference model (ns-3's `lte` module), because results are
//! compared with it. The small default buffer of the reference model (10 kB) is replaced here; a preset has the
//! original value.

use crate::bearer::Qci;
use crate::connection::{AttachProcedure, SignalingMode};
use crate::radio::RadioError;
use crate::radio::amc::Amc;
use crate::radio::antenna::{Antenna, TransmissionMode};
use crate::radio::bandwidth::Bandwidth;
use crate::radio::errors::InformationGrid;
use crate::radio::fading::Fading;
use crate::radio::path_loss::PathLoss;
use crate::radio::power::PowerControlConfig;
use crate::rlc::{RlcConfig, RlcMode};
use crate::scheduler::catalogue;
use fullpipe_units::{Duration, Rate};

/// Position in meters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Coordinate to the east.
    pub x: f64,
    /// Coordinate to the north.
    pub y: f64,
    /// Height above ground.
    pub z: f64,
}

/// A path of a UE: positions, and the times at which the UE reaches them. The UE moves from one position to the next in
/// a straight line at constant speed. It does not move before the first time and after the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Times in seconds since the start of the run, in ascending order, with the position at each time. At least one is
    /// required.
    pub points: Vec<(f64, Position)>,
}

/// The frequency band of a carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCarrier {
    /// Center frequency in Hz.
    pub centre_hz: f64,
    /// Bandwidth in resource blocks.
    pub bandwidth: Bandwidth,
}

/// Where the SINR of a CQI report is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CqiSource {
    /// In the control region, in which all cells always transmit, so that the interference is at its maximum.
    Control,
    /// The signal of the control region, relative to the interference in the last data region with a reception (the
    /// "mixed" method of the reference model).
    #[default]
    Mixed,
}

/// The source of the eNB's estimate of the uplink channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkReports {
    /// Sounding reference signals over the whole band, every 2, 5, 10, 20, 40, 80, 160 or 320 subframes.
    Sounding {
        /// Subframes between sounding signals of a UE.
        period: u32,
    },
    /// The last transmission in the same resource blocks.
    Data,
}

/// An eNB with one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// Name, for errors and random streams.
    pub name: String,
    /// Position of the antenna.
    pub position: Position,
    /// Antenna pattern.
    pub antenna: Antenna,
    /// Carrier of the downlink.
    pub downlink: CellCarrier,
    /// Carrier of the uplink.
    pub uplink: CellCarrier,
    /// Transmission power in dBm.
    pub power_dbm: f64,
    /// Noise figure in dB.
    pub noise_figure_db: f64,
    /// Name of the scheduler ([`crate::scheduler::catalogue`]).
    pub scheduler: String,
    /// Parameters of the scheduler.
    pub scheduler_parameters: catalogue::SchedulerParameters,
    /// First resource block group and number of groups that the cell may use in the downlink (hard frequency reuse);
    /// `None` if it may use all groups.
    pub downlink_groups: Option<(usize, usize)>,
    /// How CQI is computed from SINR.
    pub amc: Amc,
    /// Where the SINR for CQI is measured.
    pub cqi_source: CqiSource,
    /// Subframes between CQI reports.
    pub cqi_period: u32,
    /// Source of the uplink channel estimates.
    pub uplink_reports: UplinkReports,
    /// Whether blocks that were not decoded are retransmitted (HARQ).
    pub harq: bool,
    /// Whether outer-loop link adaptation corrects the SINR from which the MCS is selected, from the outcomes of
    /// transport blocks. It has no effect if [`ErrorConfig::data`] is false, because no block is then lost.
    pub outer_loop: bool,
}

/// A bearer of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct BearerConfig {
    /// Class of service.
    pub qci: Qci,
    /// Guaranteed bit rate of the downlink; 0 if there is none.
    pub guaranteed: Rate,
    /// Maximum bit rate of the downlink; 0 if there is none.
    pub maximum: Rate,
    /// RLC mode.
    pub mode: RlcMode,
    /// Buffer sizes and timers of RLC.
    pub limits: RlcConfig,
}

/// A UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeConfig {
    /// Name, for errors and random streams.
    pub name: String,
    /// Serving cell: an index into [`Config::cells`].
    pub cell: usize,
    /// Position over time.
    pub course: Trajectory,
    /// Transmission power without power control, in dBm.
    pub power_dbm: f64,
    /// Uplink power control; `None` if the UE transmits with [`UeConfig::power_dbm`].
    pub power_control: Option<PowerControlConfig>,
    /// Noise figure in dB.
    pub noise_figure_db: f64,
    /// Transmission mode.
    pub transmission_mode: TransmissionMode,
    /// P_A: power of the data region relative to the control region, in dB.
    pub data_power_offset_db: f64,
    /// The bearers, the default bearer first. There are 1 to [`MAX_BEARERS`](crate::bearer::MAX_BEARERS).
    pub bearers: Vec<BearerConfig>,
    /// How the bearers are established. Until then packets from and to the UE are dropped.
    pub attach: AttachProcedure,
}

/// The links between eNB and SGW (S1-U) and between SGW and PGW (S5). Each packet passes both links, with 40 bytes of
/// GTP-U, UDP and IPv4 headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreNetwork {
    /// Rate of each link.
    pub rate: Rate,
    /// Delay of S1-U.
    pub s1_delay: Duration,
    /// Delay of S5.
    pub s5_delay: Duration,
}

impl Default for CoreNetwork {
    fn default() -> Self {
        CoreNetwork { rate: Rate::from_megabits_per_second(10_000), s1_delay: Duration::ZERO, s5_delay: Duration::ZERO }
    }
}

/// The modeled errors of the radio channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorConfig {
    /// Whether transport blocks can be lost.
    pub data: bool,
    /// Whether a UE can fail to decode the control region.
    pub control: bool,
    /// How mutual information is computed.
    pub grid: InformationGrid,
}

impl Default for ErrorConfig {
    fn default() -> Self {
        ErrorConfig { data: true, control: true, grid: InformationGrid::Reference }
    }
}

/// When the fading process starts. Before that, the fading is constant and equals the fading at the start of the
/// process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadingStart {
    /// At the start of the run.
    #[default]
    Run,
    /// In the subframe in which the first IP packet of at least `least_bytes` arrives, at the PGW or at a UE.
    Packet {
        /// Smallest size of the IP packet in bytes.
        least_bytes: u32,
    },
}

/// The configuration of an LTE access network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of the run.
    pub seed: u64,
    /// The cells.
    pub cells: Vec<CellConfig>,
    /// The UEs.
    pub ues: Vec<UeConfig>,
    /// Path loss between cells and UEs.
    pub path_loss: PathLoss,
    /// Standard deviation in dB of the shadowing, drawn once for each pair of cell and UE; 0 for none.
    pub shadowing_db: f64,
    /// Fading of the downlink.
    pub downlink_fading: Fading,
    /// Fading of the uplink.
    pub uplink_fading: Fading,
    /// When the fading process of both directions starts.
    pub fading_begins: FadingStart,
    /// Errors of the radio channel.
    pub errors: ErrorConfig,
    /// How RRC messages are transmitted.
    pub signalling: SignalingMode,
    /// The links of the core network.
    pub core: CoreNetwork,
    /// Whether all values are evaluated in every subframe, even if they are not needed. The results are the same (a
    /// test checks this), but the run is slower.
    pub eager: bool,
}

impl Trajectory {
    /// Returns the trajectory of a UE that does not move.
    pub fn stationary(position: Position) -> Self {
        Trajectory { points: vec![(0.0, position)] }
    }

    /// Returns the position `seconds` seconds after the start.
    pub fn position(&self, seconds: f64) -> Position {
        let after = self.points.partition_point(|(at, _)| *at <= seconds);
        if after == 0 {
            return self.points[0].1;
        }
        let (from_at, from) = self.points[after - 1];
        let Some(&(to_at, to)) = self.points.get(after) else { return from };
        let share = (seconds - from_at) / (to_at - from_at);
        let between = |a: f64, b: f64| a + (b - a) * share;
        Position { x: between(from.x, to.x), y: between(from.y, to.y), z: between(from.z, to.z) }
    }

    /// Whether the position never changes.
    pub fn is_static(&self) -> bool {
        self.points.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Checks that there is at least one position and that the times are in ascending order.
    ///
    /// # Errors
    /// If a check fails. The error contains `name`.
    pub fn check(&self, name: &str) -> Result<(), RadioError> {
        if self.points.is_empty() {
            return Err(RadioError::new(format!("{name} has no position; expected at least one")));
        }
        match self.points.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            Some(pair) => Err(RadioError::new(format!(
                "{name} has a position at {} s and the next one at {} s; expected times in ascending order",
                pair[0].0, pair[1].0
            ))),
            None => Ok(()),
        }
    }
}

impl Position {
    /// Returns the distance to another position in meters, including the difference in height.
    pub fn distance(&self, other: &Position) -> f64 {
        let (x, y, z) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (x * x + y * y + z * z).sqrt()
    }
}

impl CellConfig {
    /// Returns a cell at the origin with the settings of the reference model. The transmission power is 30 dBm and the
    /// noise figure 5 dB. The carriers have the EARFCNs 100 and 18100 (2120 and 1930 MHz). The scheduler is
    /// proportional fair. UEs report CQI every 2 subframes, computed with the error model, and send sounding signals
    /// every 40 subframes. HARQ is on, and the outer loop is off.
    pub fn reference(name: &str, bandwidth: Bandwidth) -> Self {
        CellConfig {
            name: name.into(),
            position: Position::default(),
            antenna: Antenna::Isotropic,
            downlink: CellCarrier { centre_hz: 2.12e9, bandwidth },
            uplink: CellCarrier { centre_hz: 1.93e9, bandwidth },
            power_dbm: 30.0,
            noise_figure_db: 5.0,
            scheduler: "pf".into(),
            scheduler_parameters: catalogue::SchedulerParameters::default(),
            downlink_groups: None,
            amc: Amc::ErrorModel,
            cqi_source: CqiSource::Mixed,
            cqi_period: 2,
            uplink_reports: UplinkReports::Sounding { period: 40 },
            harq: true,
            outer_loop: false,
        }
    }
}

impl UeConfig {
    /// Returns a UE of the first cell with the settings of the reference model. It has a default bearer with QCI 9 over
    /// RLC UM, a noise figure of 9 dB, and power control. The buffer size is a parameter, because the 10 kB of the
    /// reference model hold only about 1 ms of data in the largest cell.
    pub fn reference(name: &str, position: Position, max_buffer_bytes: u32) -> Self {
        UeConfig {
            name: name.into(),
            cell: 0,
            course: Trajectory::stationary(position),
            power_dbm: 10.0,
            power_control: Some(PowerControlConfig::default()),
            noise_figure_db: 9.0,
            transmission_mode: TransmissionMode::SingleAntenna,
            data_power_offset_db: 0.0,
            bearers: vec![BearerConfig::best_effort(RlcMode::Unacknowledged, max_buffer_bytes)],
            attach: AttachProcedure::Ideal,
        }
    }
}

impl BearerConfig {
    /// Returns a default bearer: QCI 9, without a guaranteed or maximum bit rate.
    pub fn best_effort(mode: RlcMode, max_buffer_bytes: u32) -> Self {
        BearerConfig {
            qci: Qci::DEFAULT,
            guaranteed: Rate::from_bits_per_second(0),
            maximum: Rate::from_bits_per_second(0),
            mode,
            limits: RlcConfig { max_buffer_bytes: Some(max_buffer_bytes), ..RlcConfig::for_mode(mode) },
        }
    }
}

impl Config {
    /// Returns a network of one cell with these UEs, with free-space path loss (Friis) and without fading.
    pub fn reference(seed: u64, cell: CellConfig, ues: Vec<UeConfig>) -> Self {
        Config {
            seed,
            cells: vec![cell],
            ues,
            path_loss: PathLoss::default(),
            shadowing_db: 0.0,
            downlink_fading: Fading::None,
            uplink_fading: Fading::None,
            fading_begins: FadingStart::Run,
            errors: ErrorConfig::default(),
            signalling: SignalingMode::Ideal,
            core: CoreNetwork::default(),
            eager: false,
        }
    }
}
