//! LTE access networks: what a scenario file says of them.

use fullpipe_lte::bearer::{PacketFilter, RlcChoice};
use fullpipe_lte::config::FadingBegins;
use fullpipe_lte::connection::Signalling;
use fullpipe_lte::radio::amc::Amc;
use fullpipe_lte::radio::antenna::{Antenna, TransmissionMode};
use fullpipe_lte::radio::errors::Grid;
use fullpipe_lte::radio::fading::{Places, Profile, Trace};
use fullpipe_lte::radio::path_loss::PathLoss;
use fullpipe_lte::radio::power::PowerControl;
use fullpipe_lte::scheduler::catalogue::Parameters;
use fullpipe_units::{Duration, NodeId, Rate};
use fullpipe_workload::Distribution;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An access network: a gateway, cells, UEs.
#[derive(Clone, Debug, PartialEq)]
pub struct Lte {
    /// Name, unique among links and media. Its ways are links called `NAME.downlink` and `NAME.uplink`.
    pub name: String,
    /// The PGW: a router or a host.
    pub gateway: NodeId,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Resource blocks, downlink and uplink.
    pub resource_blocks: [u32; 2],
    /// Channel numbers, downlink and uplink.
    pub earfcn: [u32; 2],
    /// Path loss between any cell and any UE.
    pub path_loss: PathLoss,
    /// Standard deviation of the shadowing, dB.
    pub shadowing_db: f64,
    /// Fading, downlink and uplink.
    pub fading: [Fading; 2],
    /// When its time begins.
    pub fading_begins: FadingBegins,
    /// Whether transport blocks are lost.
    pub data_errors: bool,
    /// Whether the control region is.
    pub control_errors: bool,
    /// How mutual information is looked up.
    pub grid: Grid,
    /// How messages of RRC are carried.
    pub signalling: Signalling,
    /// Rate of either link of the core.
    pub core_rate: Rate,
    /// Delay between eNB and SGW.
    pub s1_delay: Duration,
    /// Delay between SGW and PGW.
    pub s5_delay: Duration,
    /// Cells, at least one.
    pub cells: Vec<Cell>,
    /// UEs, at least one.
    pub ues: Vec<Ue>,
}

/// Fading of one direction.
#[derive(Clone, Debug, PartialEq)]
pub enum Fading {
    /// None.
    None,
    /// Generated.
    Generated {
        /// Delay profile.
        profile: Profile,
        /// Speed, km/h.
        speed_kmh: f64,
        /// Seconds that are generated once and repeated, if they are.
        repeat_s: Option<u32>,
    },
    /// From a file.
    Trace {
        /// Which file.
        path: PathBuf,
        /// What it says.
        trace: Arc<Trace>,
        /// Which places of it are used.
        places: Places,
    },
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// East, north and height, metres.
    pub position: [f64; 3],
    /// Antenna.
    pub antenna: Antenna,
    /// Transmission power, dBm.
    pub power_dbm: f64,
    /// Noise figure, dB.
    pub noise_figure_db: f64,
    /// Scheduler of the downlink.
    pub scheduler: &'static str,
    /// What it is set to.
    pub scheduler_parameters: Parameters,
    /// First resource block group of the downlink that may be used, and how many; `None`: all may be.
    pub groups: Option<(usize, usize)>,
    /// How CQI follow from SINR.
    pub amc: Amc,
    /// Whether CQI are measured with the interference of the data region (the control region's without).
    pub mixed_cqi: bool,
    /// Subframes between two reports of CQI.
    pub cqi_period: u32,
    /// Subframes between two sounding signals of a UE; `None`: the uplink is known from its data.
    pub sounding_period: Option<u32>,
    /// Whether what was not decoded is sent again.
    pub harq: bool,
}

/// A UE.
#[derive(Clone, Debug, PartialEq)]
pub struct Ue {
    /// The host or router that it is.
    pub node: NodeId,
    /// Its cell: index into [`Lte::cells`].
    pub cell: usize,
    /// When it is where: seconds; east, north and height in metres. At least one, in order of time.
    pub course: Vec<(f64, [f64; 3])>,
    /// Transmission power without power control, dBm.
    pub power_dbm: f64,
    /// Power control.
    pub power_control: Option<PowerControl>,
    /// Noise figure, dB.
    pub noise_figure_db: f64,
    /// Transmission mode.
    pub transmission_mode: TransmissionMode,
    /// P_A, dB.
    pub data_power_offset_db: f64,
    /// How it comes to its bearers.
    pub attach: AttachChoice,
    /// When it is switched on, seconds, if it has to be.
    pub switched_on_s: Distribution,
    /// Its bearers: the default one, which takes what no other does, then dedicated ones, of which the last is asked first.
    pub bearers: Vec<Bearer>,
}

/// How a UE comes to its bearers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachChoice {
    /// It has them when the run begins.
    Ideal,
    /// It knows its cell.
    KnownCell,
    /// It looks for a cell.
    CellSearch,
}

/// A bearer.
#[derive(Clone, Debug, PartialEq)]
pub struct Bearer {
    /// Class of service.
    pub qci: u8,
    /// Guaranteed bit rate of the downlink.
    pub guaranteed: Option<Rate>,
    /// Maximum bit rate of the downlink.
    pub maximum: Option<Rate>,
    /// RLC.
    pub rlc: Rlc,
    /// It takes packets that any of these matches; at most [`fullpipe_lte::bearer::MOST_FILTERS`].
    pub filters: Vec<PacketFilter>,
}

/// RLC of a bearer, both ways alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Rlc {
    /// Mode.
    pub mode: RlcChoice,
    /// Most bytes in the buffer of either direction; `None`: any number.
    pub buffer_bytes: Option<u32>,
    /// Most packets in it; `None`: any number.
    pub buffer_packets: Option<u32>,
    /// After this time a packet of which nothing was sent is thrown away.
    pub discard_after: Option<Duration>,
    /// t-Reordering; `None`: 100 ms, with AM 10 ms.
    pub reordering: Option<Duration>,
    /// t-PollRetransmit of AM.
    pub poll_retransmit: Duration,
    /// t-StatusProhibit of AM.
    pub status_prohibit: Duration,
}

impl Lte {
    /// Files that it names: those of the fading, each once.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let [down, up] = self.fading.each_ref().map(|fading| match fading {
            Fading::Trace { path, .. } => Some(path.as_path()),
            Fading::None | Fading::Generated { .. } => None,
        });
        down.into_iter().chain(up.filter(|path| down != Some(path)))
    }
}
