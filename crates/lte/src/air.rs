//! The radio channel between all cells and all UEs: mean gains, fading, interference and random draws. All are
//! functions of (seed, entity, subframe), so they can be evaluated on demand and in any order.
//!
//! Ratios are relative to the receiver's noise in one resource block. A *row* contains, for each block, the signal or
//! the interference relative to the noise. SINR = signal / (1 + interference).

use crate::config::{Config, FadingStart, Position, Trajectory};
use crate::radio::ROW_LANES;
use crate::radio::antenna::Antenna;
use crate::radio::bandwidth::Bandwidth;
use crate::radio::fading::{Fading, GainRange, TraceFading, TraceOffset, extremes};
use crate::radio::path_loss::{Geometry, PathLoss, Shadowing};
use crate::radio::power::{db_to_ratio, ratio_to_db};
use crate::scheduler::MAX_GROUPS;
use fullpipe_units::{Instant, RandomStream};

/// Power, or a ratio of powers, for each resource block.
pub(crate) type ResourceBlockRow = [f32; ROW_LANES];

/// Power of data in each group of a cell, relative to the cell's full power.
pub(crate) type GroupPowers = [f32; MAX_GROUPS];

/// Thermal noise in one resource block, dBm: -174 dBm/Hz over 180 kHz (TS 36.101; clause 5.6 has the width).
const NOISE_DBM: f64 = -121.447_274_948_966_93;

/// No interference: only the noise, in units of itself.
pub(crate) const NO_INTERFERENCE: ResourceBlockRow = [1.0; ROW_LANES];

/// The kinds of random draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum RandomEvent {
    DownlinkControl = 1,
    DownlinkBlock = 2,
    SecondLayer = 3,
    UplinkBlock = 4,
}

/// Mixes 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
#[inline(always)]
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Returns a number in (0, 1] for this key, subframe and kind of draw.
#[inline(always)]
pub(crate) fn draw(key: u64, subframe: u64, chance: RandomEvent) -> f64 {
    let bits = mix(mix(key ^ subframe.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(chance as u64));
    ((bits >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The channel between a cell and a UE.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Key of the downlink's fading; that of the uplink is one more.
    fading: u64,
    shadowing_db: f64,
    /// For UEs that do not move: the mean signals.
    downlink: f32,
    uplink_gain_db: f64,
    downlink_loss_db: f64,
}

/// Properties of a cell.
#[derive(Clone, Debug)]
struct Site {
    position: Position,
    antenna: Antenna,
    power_dbm: f64,
    noise_figure_db: f64,
    downlink_hz: f64,
    uplink_hz: f64,
    bandwidth: Bandwidth,
}

/// Properties of a UE.
#[derive(Clone, Debug)]
struct Mobile {
    course: Trajectory,
    moves: bool,
    noise_figure_db: f64,
}

/// The radio channel.
#[derive(Debug)]
pub(crate) struct RadioChannel {
    path_loss: PathLoss,
    downlink_fading: Fading,
    uplink_fading: Fading,
    fading_begins: FadingStart,
    /// The subframe in which the time of the fading starts; `u64::MAX` while unknown.
    fading_start: u64,
    sites: Vec<Site>,
    mobiles: Vec<Mobile>,
    /// Pairs by cell, then by UE.
    pairs: Vec<Vec<Pair>>,
}

/// A cache of the last rows of a UE's own cell. The UE receives the control region and its data in one subframe and
/// reports CQI five subframes later. All three use the same row, and a fading generator takes a quarter of a
/// microsecond per row.
#[derive(Clone, Debug)]
pub(crate) struct SignalCache {
    of: [u64; KEPT],
    least: [f32; KEPT],
    rows: Vec<ResourceBlockRow>,
    /// The subframe and value of the last bound.
    bound: (u64, f32),
    /// The UE's position in a trace: a window and its start.
    start: (u64, u32),
}

/// Number of rows in the cache: more than the subframes from a measurement to its use.
const KEPT: usize = 8;

impl SignalCache {
    pub(crate) fn new() -> Self {
        SignalCache {
            of: [u64::MAX; KEPT],
            least: [0.0; KEPT],
            rows: Vec::new(),
            bound: (u64::MAX, 0.0),
            start: (u64::MAX, 0),
        }
    }

    /// [`RadioChannel::least_downlink_signal`] with a cache. A UE that receives data needs it twice per subframe, for
    /// its control region and for its data: 90 instructions.
    #[inline]
    pub(crate) fn least(&mut self, air: &RadioChannel, cell: usize, ue: usize, subframe: u64) -> f32 {
        if self.bound.0 != subframe {
            let least = match &air.downlink_fading {
                Fading::Trace(traced) => {
                    let (pair, moment) = (air.pair(cell, ue, subframe), traced.moment(air.faded(subframe)));
                    // The hash of a position takes 60 instructions.
                    if self.start.0 != moment.window {
                        self.start = (moment.window, traced.start(pair.fading, moment.window));
                    }
                    traced.extremes(traced.millisecond_from(self.start.1, moment)).smallest * pair.downlink
                }
                _ => air.least_downlink_signal(cell, ue, subframe),
            };
            self.bound = (subframe, least);
        }
        self.bound.1
    }

    /// Computes the signal of a cell at a UE and its minimum over the band.
    #[inline]
    pub(crate) fn signal(
        &mut self,
        air: &RadioChannel,
        cell: usize,
        ue: usize,
        subframe: u64,
    ) -> (&ResourceBlockRow, f32) {
        let place = subframe as usize % KEPT;
        if self.of[place] != subframe {
            self.rows.resize(KEPT, [0.0; ROW_LANES]);
            let row = &mut self.rows[place];
            air.downlink_signal(cell, ue, subframe, row);
            let band = &row[..air.sites[cell].bandwidth.resource_blocks()];
            self.least[place] = extremes(band).smallest;
            self.of[place] = subframe;
        }
        (&self.rows[place], self.least[place])
    }
}

/// The positions of a cell's UEs in the trace of its downlink, and the factors of their gains. A scheduler with many
/// UEs needs these of each UE.
#[derive(Debug)]
pub(crate) struct TraceCursors {
    /// The window to which the UEs' start positions belong.
    window: u64,
    ues: Vec<Track>,
}

#[derive(Clone, Copy, Debug)]
struct Track {
    start: u32,
    /// SINR without interference: gain times the first, times the second. The first is infinite for a UE that moves.
    factors: [f32; 2],
}

impl TraceCursors {
    /// Creates the positions of UEs with these numbers and transmission gains.
    pub(crate) fn new(air: &RadioChannel, cell: usize, ues: impl Iterator<Item = (u16, f32)>) -> Self {
        let factors = ues.map(|(number, gain)| match air.moves(usize::from(number)) {
            true => [f32::INFINITY, gain],
            false => [air.pairs[cell][usize::from(number)].downlink, gain],
        });
        TraceCursors { window: u64::MAX, ues: factors.map(|factors| Track { start: 0, factors }).collect() }
    }

    /// Returns the trace and the moment of a subframe, if there is a trace for UEs with these numbers.
    #[inline]
    pub(crate) fn begin<'a>(
        &mut self,
        air: &'a RadioChannel,
        cell: usize,
        subframe: u64,
        number: impl Fn(usize) -> u16,
    ) -> Option<(&'a TraceFading, TraceOffset)> {
        let Fading::Trace(traced) = &air.downlink_fading else { return None };
        let moment = traced.moment(air.faded(subframe));
        if self.window != moment.window {
            self.window = moment.window;
            for (ue, track) in self.ues.iter_mut().enumerate() {
                track.start = traced.start(air.pairs[cell][usize::from(number(ue))].fading, moment.window);
            }
        }
        Some((traced, moment))
    }

    /// Returns the millisecond of the trace that applies to a UE.
    #[inline]
    pub(crate) fn millisecond(&self, ue: usize, (traced, moment): (&TraceFading, TraceOffset)) -> usize {
        traced.millisecond_from(self.ues[ue].start, moment)
    }

    /// Returns an upper bound of the SINR at this UE in any block of the band.
    #[inline]
    pub(crate) fn largest(&self, ue: usize, (traced, moment): (&TraceFading, TraceOffset)) -> f32 {
        let Track { start, factors: [first, second] } = self.ues[ue];
        let GainRange { largest, .. } = traced.extremes(traced.millisecond_from(start, moment));
        largest * first * second
    }
}

impl RadioChannel {
    pub(crate) fn new(config: &Config) -> Self {
        let sites: Vec<Site> = config
            .cells
            .iter()
            .map(|cell| Site {
                position: cell.position,
                antenna: cell.antenna,
                power_dbm: cell.power_dbm,
                noise_figure_db: cell.noise_figure_db,
                downlink_hz: cell.downlink.centre_hz,
                uplink_hz: cell.uplink.centre_hz,
                bandwidth: cell.downlink.bandwidth,
            })
            .collect();
        let mobiles: Vec<Mobile> = config
            .ues
            .iter()
            .map(|ue| Mobile {
                course: ue.course.clone(),
                moves: !ue.course.is_static(),
                noise_figure_db: ue.noise_figure_db,
            })
            .collect();
        let mut air = RadioChannel {
            path_loss: config.path_loss,
            downlink_fading: config.downlink_fading.clone(),
            uplink_fading: config.uplink_fading.clone(),
            fading_begins: config.fading_begins,
            fading_start: match config.fading_begins {
                FadingStart::Run => 0,
                FadingStart::Packet { .. } => u64::MAX,
            },
            sites,
            mobiles,
            pairs: Vec::new(),
        };
        let shadowing = Shadowing { deviation_db: config.shadowing_db, seed: config.seed };
        for (cell, cell_config) in config.cells.iter().enumerate() {
            let pairs = config.ues.iter().enumerate().map(|(ue, ue_config)| {
                let entity = format!("{} {}", cell_config.name, ue_config.name);
                let key = RandomStream::new(config.seed, &entity, "air").next_u64() & !1;
                let mut pair = Pair {
                    fading: key,
                    shadowing_db: shadowing.loss_db(key),
                    downlink: 0.0,
                    uplink_gain_db: 0.0,
                    downlink_loss_db: 0.0,
                };
                air.place(&mut pair, cell, ue, 0);
                pair
            });
            let pairs: Vec<Pair> = pairs.collect();
            for pair in &pairs {
                air.downlink_fading.prepare(pair.fading);
                air.uplink_fading.prepare(pair.fading | 1);
            }
            air.pairs.push(pairs);
        }
        if let [site] = &air.sites[..] {
            air.downlink_fading.prepare_groups(site.bandwidth);
        }
        air
    }

    /// Handles the arrival of a packet, which may start the time of the fading. Rows computed earlier, up to the
    /// subframe of `now`, stay valid, since their fading is that of time 0 in either case.
    pub(crate) fn packet(&mut self, now: Instant, bytes: u32) {
        if let FadingStart::Packet { least_bytes } = self.fading_begins
            && self.fading_start == u64::MAX
            && bytes >= least_bytes
        {
            self.fading_start = now.as_nanos() / 1_000_000;
        }
    }

    /// Returns the subframe of the fading that applies in subframe `n`.
    #[inline]
    fn faded(&self, n: u64) -> u64 {
        n.saturating_sub(self.fading_start)
    }

    /// Computes the gains of a pair in a subframe, without fading.
    fn place(&self, pair: &mut Pair, cell: usize, ue: usize, subframe: u64) {
        let (site, mobile) = (&self.sites[cell], &self.mobiles[ue]);
        let position = mobile.course.position(subframe as f64 * 1e-3);
        let (x, y) = (position.x - site.position.x, position.y - site.position.y);
        let geometry =
            Geometry { horizontal_m: (x * x + y * y).sqrt(), height_m: site.position.z, other_height_m: position.z };
        let gain_db = site.antenna.gain_db(x, y);
        // Some models give an unlimited gain at distances below their range. The loss is limited to 0 dB.
        let path_loss_db = |hz| match self.path_loss {
            PathLoss::Constant { db } => db,
            model => model.loss_db(&geometry, hz).max(0.0),
        };
        let loss = |hz: f64| path_loss_db(hz) + pair.shadowing_db - gain_db;
        let (down, up) = (loss(site.downlink_hz), loss(site.uplink_hz));
        let per_block = site.power_dbm - ratio_to_db(site.bandwidth.resource_blocks() as f64);
        pair.downlink = db_to_ratio(per_block - down - NOISE_DBM - mobile.noise_figure_db) as f32;
        pair.uplink_gain_db = -up - NOISE_DBM - site.noise_figure_db;
        pair.downlink_loss_db = down;
    }

    #[inline]
    fn pair(&self, cell: usize, ue: usize, subframe: u64) -> Pair {
        let mut pair = self.pairs[cell][ue];
        if self.mobiles[ue].moves {
            self.place(&mut pair, cell, ue, subframe);
        }
        pair
    }

    /// The mean signal of a cell at a UE in a block.
    pub(crate) fn mean_downlink_signal(&self, cell: usize, ue: usize, subframe: u64) -> f32 {
        self.pair(cell, ue, subframe).downlink
    }

    /// Whether there is fading.
    pub(crate) fn fades(&self) -> bool {
        self.downlink_fading != Fading::None
    }

    /// Whether [`SignalCache::least`] is the exact minimum of a row rather than a lower bound.
    #[inline]
    pub(crate) fn knows_least(&self) -> bool {
        !matches!(self.downlink_fading, Fading::Generator(_))
    }

    /// Whether a UE's mean gains change.
    pub(crate) fn moves(&self, ue: usize) -> bool {
        self.mobiles[ue].moves
    }

    pub(crate) fn cells(&self) -> usize {
        self.sites.len()
    }

    /// Power of a cell's signal at a UE in dBm, without fading.
    pub(crate) fn received_dbm(&self, cell: usize, ue: usize, subframe: u64) -> f64 {
        self.sites[cell].power_dbm - self.downlink_loss_db(cell, ue, subframe)
    }

    /// Loss from a cell to a UE in dB, including shadowing and antenna, without fading.
    fn downlink_loss_db(&self, cell: usize, ue: usize, subframe: u64) -> f64 {
        self.pair(cell, ue, subframe).downlink_loss_db
    }

    /// Computes the signal of a cell at a UE.
    #[inline]
    pub(crate) fn downlink_signal(&self, cell: usize, ue: usize, subframe: u64, row: &mut ResourceBlockRow) {
        let pair = self.pair(cell, ue, subframe);
        self.downlink_fading.scaled_gains(pair.fading, self.faded(subframe), pair.downlink, row);
    }

    /// A lower bound of the row of [`RadioChannel::downlink_signal`], at little cost.
    #[inline]
    pub(crate) fn least_downlink_signal(&self, cell: usize, ue: usize, subframe: u64) -> f32 {
        let pair = self.pair(cell, ue, subframe);
        self.downlink_fading.min_gain(pair.fading, self.faded(subframe)) * pair.downlink
    }

    /// The largest signal that a cell can ever have at a UE that does not move.
    pub(crate) fn largest_downlink_signal(&self, cell: usize, ue: usize) -> f32 {
        let pair = self.pairs[cell][ue];
        self.downlink_fading.max_gain(pair.fading) * pair.downlink
    }

    /// Adds the interference of other cells at a UE of `cell`. `powers` returns the power in each group of a cell,
    /// relative to its full power, or `None` if the cell sends in all blocks with full power.
    pub(crate) fn add_downlink_interference<'a>(
        &self,
        cell: usize,
        ue: usize,
        subframe: u64,
        powers: impl Fn(usize) -> Option<&'a GroupPowers>,
        interference: &mut ResourceBlockRow,
    ) {
        for other in (0..self.sites.len()).filter(|&other| other != cell) {
            let mut row = [0.0; ROW_LANES];
            self.downlink_signal(other, ue, subframe, &mut row);
            let size = self.sites[other].bandwidth.group_size();
            let blocks = self.sites[other].bandwidth.resource_blocks();
            let powers = powers(other);
            for (block, (sum, value)) in interference.iter_mut().zip(&row).take(blocks).enumerate() {
                // Blocks beyond the last whole group carry no data.
                *sum += value * powers.map_or(1.0, |powers| powers[block / size]);
            }
        }
    }

    /// Adds the signal of a UE that sends `dbm_per_block` in each block, in units of the receiving cell's noise. It is
    /// added to blocks `first` up to `first + count` of the row.
    #[allow(clippy::too_many_arguments, reason = "sender, receiver, time, blocks and power")]
    pub(crate) fn add_uplink(
        &self,
        cell: usize,
        ue: usize,
        subframe: u64,
        dbm_per_block: f64,
        first: usize,
        count: usize,
        sum: &mut ResourceBlockRow,
    ) {
        let pair = self.pair(cell, ue, subframe);
        let mut row = [0.0; ROW_LANES];
        self.uplink_fading.gains(pair.fading | 1, self.faded(subframe), &mut row);
        let mean = db_to_ratio(dbm_per_block + pair.uplink_gain_db) as f32;
        for (sum, gain) in sum[first..first + count].iter_mut().zip(&row[first..first + count]) {
            *sum += gain * mean;
        }
    }
}
