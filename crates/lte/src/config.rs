//! What an LTE access network is made of: cells, UEs, the air between them, the core behind them.
//!
//! Defaults are those of the reference model (ns-3's `lte` module) wherever it is a model of something, since figures are
//! compared with it; where it merely is small (a buffer of 10 kB), they are ours and the reference's have a preset.

use crate::bearer::Qci;
use crate::connection::{Attach, Signalling};
use crate::radio::Invalid;
use crate::radio::amc::Amc;
use crate::radio::antenna::{Antenna, TransmissionMode};
use crate::radio::bandwidth::Bandwidth;
use crate::radio::errors::Grid;
use crate::radio::fading::Fading;
use crate::radio::path_loss::PathLoss;
use crate::radio::power::PowerControl;
use crate::rlc::{Limits, Mode};
use crate::scheduler::catalogue;
use fullpipe_units::{Duration, Rate};

/// Position in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
    /// Height above ground.
    pub z: f64,
}

/// A way through the plane: positions and when they are reached; between them the way is straight and the speed even, before
/// the first and after the last it stands still.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Seconds since the start, rising, and where it is then; at least one.
    pub points: Vec<(f64, Position)>,
}

/// Frequency bands of a cell's carriers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// Centre frequency, Hz.
    pub centre_hz: f64,
    /// Resource blocks.
    pub bandwidth: Bandwidth,
}

/// Where the SINR that a CQI reports is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CqiSource {
    /// In the control region, in which all cells always send: interference at its fullest.
    Control,
    /// The signal of the control region over the interference of the last data region in which something was received
    /// (the reference's "mixed" method).
    #[default]
    Mixed,
}

/// What an eNB knows of the uplink's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkReports {
    /// Sounding reference signals over the whole band, every so many subframes (2, 5, 10, 20, 40, 80, 160, 320).
    Sounding {
        /// Subframes between two.
        period: u32,
    },
    /// The last transmission in those resource blocks.
    Data,
}

/// An eNB with one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// Its name, for errors and random streams.
    pub name: String,
    /// Where its antenna stands.
    pub position: Position,
    /// Its antenna.
    pub antenna: Antenna,
    /// Carrier of the downlink.
    pub downlink: Carrier,
    /// Carrier of the uplink.
    pub uplink: Carrier,
    /// Transmission power, dBm.
    pub power_dbm: f64,
    /// Noise figure, dB.
    pub noise_figure_db: f64,
    /// Scheduler's name ([`crate::scheduler::catalogue`]).
    pub scheduler: String,
    /// What schedulers can be set to.
    pub scheduler_parameters: catalogue::Parameters,
    /// Resource blocks of the downlink that may be used, as whole groups from `first` on: hard frequency reuse.
    pub downlink_groups: Option<(usize, usize)>,
    /// How CQI follow from SINR.
    pub amc: Amc,
    /// Where they are measured.
    pub cqi_source: CqiSource,
    /// Subframes between two reports of CQI.
    pub cqi_period: u32,
    /// What is known of the uplink.
    pub uplink_reports: UplinkReports,
    /// Whether what was not decoded is sent again (HARQ).
    pub harq: bool,
    /// Whether the outcome of blocks corrects the SINR that the MCS follows from (outer-loop link adaptation). Without effect where
    /// no block is lost ([`Errors::data`]).
    pub outer_loop: bool,
}

/// A bearer of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct BearerConfig {
    /// Class of service.
    pub qci: Qci,
    /// Guaranteed bit rate of the downlink; zero without.
    pub guaranteed: Rate,
    /// Maximum bit rate of the downlink; zero without limit.
    pub maximum: Rate,
    /// RLC mode.
    pub mode: Mode,
    /// Buffers and timers.
    pub limits: Limits,
}

/// A UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeConfig {
    /// Its name, for errors and random streams.
    pub name: String,
    /// The cell that serves it: an index into [`Config::cells`].
    pub cell: usize,
    /// Where it is.
    pub course: Course,
    /// Power of its transmitter without power control, dBm.
    pub power_dbm: f64,
    /// How its power is controlled, if it is.
    pub power_control: Option<PowerControl>,
    /// Noise figure, dB.
    pub noise_figure_db: f64,
    /// Transmission mode.
    pub transmission_mode: TransmissionMode,
    /// Offset of the data region's power to the control region's, P_A, dB.
    pub data_power_offset_db: f64,
    /// Its bearers, the default bearer first; at most 11.
    pub bearers: Vec<BearerConfig>,
    /// How it comes to them. Until then packets from and to it are dropped.
    pub attach: Attach,
}

/// The links between eNB, SGW and PGW: each packet takes both, with 40 bytes of GTP-U, UDP and IPv4 around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// Rate of either link.
    pub rate: Rate,
    /// Delay of S1-U.
    pub s1_delay: Duration,
    /// Delay of S5.
    pub s5_delay: Duration,
}

impl Default for Core {
    fn default() -> Self {
        Core { rate: Rate::from_megabits_per_second(10_000), s1_delay: Duration::ZERO, s5_delay: Duration::ZERO }
    }
}

/// Which errors the air makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors {
    /// Whether transport blocks are lost.
    pub data: bool,
    /// Whether the control region is.
    pub control: bool,
    /// How mutual information is looked up.
    pub grid: Grid,
}

impl Default for Errors {
    fn default() -> Self {
        Errors { data: true, control: true, grid: Grid::Reference }
    }
}

/// When the time of the fading begins to run; until then the channel stands still as it is at time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadingBegins {
    /// With the run.
    #[default]
    Run,
    /// With the subframe in which the first IP packet of at least so many bytes comes to the network, at the PGW or at a UE.
    Packet {
        /// Least size, bytes.
        least_bytes: u32,
    },
}

/// An access network.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of the run.
    pub seed: u64,
    /// Cells.
    pub cells: Vec<CellConfig>,
    /// UEs.
    pub ues: Vec<UeConfig>,
    /// Path loss between any cell and any UE.
    pub path_loss: PathLoss,
    /// Standard deviation of the shadowing, dB, drawn once for each pair of cell and UE; zero without.
    pub shadowing_db: f64,
    /// Fading of the downlink.
    pub downlink_fading: Fading,
    /// Fading of the uplink.
    pub uplink_fading: Fading,
    /// When the time of both begins.
    pub fading_begins: FadingBegins,
    /// Errors of the air.
    pub errors: Errors,
    /// How messages of RRC are carried.
    pub signalling: Signalling,
    /// The core.
    pub core: Core,
    /// Evaluate everything in every subframe, needed or not: slow, and the same (a test holds it).
    pub eager: bool,
}

impl Course {
    /// Stands still.
    pub fn at(position: Position) -> Self {
        Course { points: vec![(0.0, position)] }
    }

    /// Where it is, so many seconds after the start.
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

    /// Whether it never moves.
    pub fn is_static(&self) -> bool {
        self.points.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Checks that there is a point and that times rise.
    pub fn check(&self, name: &str) -> Result<(), Invalid> {
        if self.points.is_empty() {
            return Err(Invalid::new(format!("{name} has no position; expected at least one")));
        }
        match self.points.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            Some(pair) => Err(Invalid::new(format!(
                "{name} is at one place at {} s and at the next at {} s; expected rising times",
                pair[0].0, pair[1].0
            ))),
            None => Ok(()),
        }
    }
}

impl Position {
    /// Distance in metres, heights included.
    pub fn distance(&self, other: &Position) -> f64 {
        let (x, y, z) = (self.x - other.x, self.y - other.y, self.z - other.z);
        (x * x + y * y + z * z).sqrt()
    }
}

impl CellConfig {
    /// A cell at the origin as the reference model has it: 30 dBm, noise figure 5 dB, EARFCN 100 and 18100 (2120 and 1930 MHz),
    /// proportional fair, CQI every 2 subframes by the error model, sounding every 40 subframes, HARQ, no outer loop.
    pub fn reference(name: &str, bandwidth: Bandwidth) -> Self {
        CellConfig {
            name: name.into(),
            position: Position::default(),
            antenna: Antenna::Isotropic,
            downlink: Carrier { centre_hz: 2.12e9, bandwidth },
            uplink: Carrier { centre_hz: 1.93e9, bandwidth },
            power_dbm: 30.0,
            noise_figure_db: 5.0,
            scheduler: "pf".into(),
            scheduler_parameters: catalogue::Parameters::default(),
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
    /// A UE of the first cell as the reference model has it, with a default bearer of QCI 9 over RLC UM: noise figure 9 dB, power
    /// control on; but with the buffer given, since the reference's 10 kB hold a millisecond of the largest cell.
    pub fn reference(name: &str, position: Position, max_buffer_bytes: u32) -> Self {
        UeConfig {
            name: name.into(),
            cell: 0,
            course: Course::at(position),
            power_dbm: 10.0,
            power_control: Some(PowerControl::default()),
            noise_figure_db: 9.0,
            transmission_mode: TransmissionMode::SingleAntenna,
            data_power_offset_db: 0.0,
            bearers: vec![BearerConfig::best_effort(Mode::Unacknowledged, max_buffer_bytes)],
            attach: Attach::Ideal,
        }
    }
}

impl BearerConfig {
    /// A default bearer: QCI 9, no promise.
    pub fn best_effort(mode: Mode, max_buffer_bytes: u32) -> Self {
        BearerConfig {
            qci: Qci::DEFAULT,
            guaranteed: Rate::from_bits_per_second(0),
            maximum: Rate::from_bits_per_second(0),
            mode,
            limits: Limits { max_buffer_bytes: Some(max_buffer_bytes), ..Limits::of(mode) },
        }
    }
}

impl Config {
    /// One reference cell and UEs of it, on Friis's free space without fading.
    pub fn reference(seed: u64, cell: CellConfig, ues: Vec<UeConfig>) -> Self {
        Config {
            seed,
            cells: vec![cell],
            ues,
            path_loss: PathLoss::default(),
            shadowing_db: 0.0,
            downlink_fading: Fading::None,
            uplink_fading: Fading::None,
            fading_begins: FadingBegins::Run,
            errors: Errors::default(),
            signalling: Signalling::Ideal,
            core: Core::default(),
            eager: false,
        }
    }
}
