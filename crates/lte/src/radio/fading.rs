//! Fast fading: the power gain of each resource block in each subframe, between a transmitter and a receiver (a *pair*;
//! a pair has a direction, and both directions fade independently).
//!
//! A gain is a pure function of (seed, pair, subframe). It is linear, constant within a subframe, and 1 on average.
//!
//! * [`Trace`]: recorded gains, in the `.fad` format of ns-3: one line per resource block with one number in dB per
//!   millisecond. Each pair reads from its own position. As in ns-3, all pairs move to a new random position every 500
//!   ms ([`TraceSampling::Windows`]), which causes a jump of the gain. With [`TraceSampling::Continuous`], they do not
//!   move. Block k reads line k for any carrier.
//! * [`Generator`]: a tapped delay line of 3GPP TS 36.104, annex B.2 with independent taps that fade according to
//!   Clarke's model. Each tap is a sum of 16 sinusoids per quadrature with random phases (Zheng and Xiao 2003). Phases
//!   are in units of 2^-32 turns. The phase in any subframe therefore requires one multiplication and does not drift.
//!   The cosine is a polynomial. Sums use fixed SIMD lanes and no fused operations, so that all machines compute
//!   identical results.

use super::amc::MAX_GROUPS;
use super::bandwidth::Bandwidth;
use super::hash::{below, hash, unit};
use super::{ROW_LANES, RadioError};
use fullpipe_units::math;
use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};
use std::io::{self, BufRead, Write};
use std::sync::Arc;

/// Gains of the resource blocks of a subframe. Entries beyond the band are unspecified.
pub type Gains = [f32; ROW_LANES];

/// Largest number of resource blocks of a trace.
const MOST_LINES: usize = 100;

/// Smallest gain: -80 dB.
const FLOOR: f32 = 1e-8;

/// Speed of light in m/s.
const LIGHT: f64 = 299_792_458.0;

/// A trace of recorded fading gains.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Gains by millisecond.
    rows: Vec<Gains>,
    resource_blocks: usize,
}

impl Trace {
    /// Reads a `.fad` file. It has one line per resource block, starting with block 0, with one gain in dB per
    /// millisecond. All lines have the same length.
    ///
    /// # Errors
    /// If the file is malformed or cannot be read. The error contains the line number.
    pub fn read(text: impl BufRead) -> Result<Self, RadioError> {
        let mut rows: Vec<Gains> = Vec::new();
        let mut resource_blocks = 0;
        for (block, line) in text.lines().enumerate() {
            let number = block + 1;
            let line = line.map_err(|error| RadioError::new(format!("line {number}: {error}")))?;
            if line.trim().is_empty() {
                return Err(RadioError::new(format!(
                    "line {number} is empty, but it must have the gains of resource block {block} in dB"
                )));
            }
            if block == MOST_LINES {
                return Err(RadioError::new(format!(
                    "the fading trace has more than {MOST_LINES} lines, but a band has at most {MOST_LINES} resource blocks"
                )));
            }
            let mut count = 0;
            for word in line.split_ascii_whitespace() {
                let gain = word.parse::<f64>().ok().filter(|db| db.is_finite()).ok_or_else(|| {
                    RadioError::new(format!("line {number}, value {}: `{word}` is not a gain in dB", count + 1))
                })?;
                // The power ratio is computed with the natural exponential function: a trace has a million of them.
                let gain = math::exp(gain * (std::f64::consts::LN_10 / 10.0)) as f32;
                if block == 0 {
                    rows.push([0.0; ROW_LANES]);
                }
                if let Some(row) = rows.get_mut(count) {
                    row[block] = gain.max(FLOOR);
                }
                count += 1;
            }
            if count != rows.len() {
                return Err(RadioError::new(format!(
                    "line {number} has {count} values, but line 1 has {} (is the file truncated?)",
                    rows.len()
                )));
            }
            resource_blocks = number;
        }
        if rows.is_empty() {
            return Err(RadioError::new("the fading trace is empty"));
        }
        Ok(Trace { rows, resource_blocks })
    }

    /// Writes the trace in the format of [`Trace::read`], with six significant digits.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        for block in 0..self.resource_blocks {
            let mut line = String::with_capacity(self.rows.len() * 9);
            for row in &self.rows {
                line.push_str(&six_digits(10.0 * math::log10(f64::from(row[block]))));
                line.push(' ');
            }
            line.push('\n');
            to.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the duration in milliseconds.
    pub fn duration_ms(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of resource blocks.
    pub fn resource_blocks(&self) -> usize {
        self.resource_blocks
    }

    /// Returns the gains of a millisecond, which must be within the trace.
    pub fn row(&self, millisecond: usize) -> &Gains {
        &self.rows[millisecond]
    }
}

/// Formats a number as C's `%g`: six significant digits, without trailing zeros.
fn six_digits(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-4..6).contains(&exponent) {
        trimmed(&format!("{number:.*}", (5 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
    }
}

/// The positions of a trace from which pairs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSampling {
    /// Each pair reads from a random position. All pairs move to new random positions at the same time.
    Windows {
        /// Milliseconds between moves.
        milliseconds: u32,
    },
    /// Each pair starts at one random position and reads without jumps. After the end of the trace, it continues at the
    /// beginning.
    Continuous,
}

impl Default for TraceSampling {
    fn default() -> Self {
        TraceSampling::Windows { milliseconds: 500 }
    }
}

/// Smallest and largest gain of the band in a millisecond of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GainRange {
    pub(crate) smallest: f32,
    pub(crate) largest: f32,
}

/// Smallest and largest gain of each whole resource block group; 0 beyond the last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupGainRanges {
    pub(crate) smallest: [f32; MAX_GROUPS],
    pub(crate) largest: [f32; MAX_GROUPS],
}

/// A subframe in a trace: its window, within which no pair moves to another position, and the milliseconds since the
/// start of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOffset {
    pub(crate) window: u64,
    within: u32,
}

impl TraceOffset {
    /// The millisecond of a trace with this length, in a window that starts at `start`.
    #[inline(always)]
    pub(crate) fn after(self, start: u32, length: usize) -> usize {
        let at = start as usize + self.within as usize;
        if at >= length { at - length } else { at }
    }
}

/// Fading that is read from a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFading {
    trace: Arc<Trace>,
    places: TraceSampling,
    seed: u64,
    /// Extremes by millisecond.
    extremes: Vec<GainRange>,
    /// Extremes of groups by millisecond, if [`Fading::prepare_groups`] was called.
    groups: Vec<GroupGainRanges>,
    largest_ever: f32,
}

impl TraceFading {
    /// The moment of a subframe, the same for all pairs.
    #[inline]
    pub(crate) fn moment(&self, subframe: u64) -> TraceOffset {
        let (window, within) = match self.places {
            TraceSampling::Windows { milliseconds } => {
                let window = u64::from(milliseconds);
                (subframe / window, subframe % window)
            }
            TraceSampling::Continuous => (0, subframe % self.trace.rows.len() as u64),
        };
        TraceOffset { window, within: within as u32 }
    }

    /// The millisecond of the trace at which a pair starts in a window.
    pub(crate) fn start(&self, pair: u64, window: u64) -> u32 {
        let length = self.trace.rows.len() as u64;
        let bits = hash(self.seed, pair, window);
        let start = match self.places {
            TraceSampling::Windows { milliseconds } => 1 + below(bits, length - u64::from(milliseconds) - 1),
            TraceSampling::Continuous => below(bits, length),
        };
        start as u32
    }

    /// The millisecond of the trace at a moment of a window that starts at `start`.
    #[inline]
    pub(crate) fn millisecond_from(&self, start: u32, moment: TraceOffset) -> usize {
        moment.after(start, self.trace.rows.len())
    }

    fn millisecond(&self, pair: u64, subframe: u64) -> usize {
        let moment = self.moment(subframe);
        self.millisecond_from(self.start(pair, moment.window), moment)
    }

    #[inline]
    pub(crate) fn gains(&self, millisecond: usize) -> &Gains {
        &self.trace.rows[millisecond]
    }

    #[inline]
    pub(crate) fn extremes(&self, millisecond: usize) -> GainRange {
        self.extremes[millisecond]
    }

    /// The extremes of groups, if they were prepared.
    #[inline]
    pub(crate) fn groups(&self, millisecond: usize) -> Option<&GroupGainRanges> {
        self.groups.get(millisecond)
    }
}

/// The smallest and the largest of at least one gain. Separate loops over lanes take 110 instructions for 100 gains,
/// one loop takes 1,000.
pub(crate) fn extremes(gains: &[f32]) -> GainRange {
    let smaller = |a: f32, b: f32| if a < b { a } else { b };
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    GainRange { smallest: fold_in_lanes(gains, smaller), largest: fold_in_lanes(gains, larger) }
}

#[inline(always)]
fn fold_in_lanes(gains: &[f32], best: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [gains[0]; 8];
    let (rows, rest) = gains.as_chunks::<8>();
    for row in rows {
        for lane in 0..8 {
            lanes[lane] = best(row[lane], lanes[lane]);
        }
    }
    for (lane, &gain) in lanes.iter_mut().zip(rest) {
        *lane = best(gain, *lane);
    }
    lanes.into_iter().fold(gains[0], best)
}

/// Delay profiles of TS 36.104, annex B.2: Extended Pedestrian A, Extended Vehicular A, Extended Typical Urban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayProfile {
    /// 7 taps, root mean square delay 44 ns.
    ExtendedPedestrianA,
    /// 9 taps, root mean square delay 357 ns.
    ExtendedVehicularA,
    /// 9 taps, root mean square delay 991 ns.
    ExtendedTypicalUrban,
}

impl DelayProfile {
    /// Returns the excess delay in nanoseconds and the relative power in dB of each tap.
    pub fn taps(self) -> &'static [(f64, f64)] {
        match self {
            DelayProfile::ExtendedPedestrianA => {
                &[(0.0, 0.0), (30.0, -1.0), (70.0, -2.0), (90.0, -3.0), (120.0, -8.0), (190.0, -17.2), (410.0, -20.8)]
            }
            DelayProfile::ExtendedVehicularA => &[
                (0.0, 0.0),
                (30.0, -1.5),
                (150.0, -1.4),
                (310.0, -3.6),
                (370.0, -0.6),
                (710.0, -9.1),
                (1090.0, -7.0),
                (1730.0, -12.0),
                (2510.0, -16.9),
            ],
            DelayProfile::ExtendedTypicalUrban => &[
                (0.0, -1.0),
                (50.0, -1.0),
                (120.0, -1.0),
                (200.0, 0.0),
                (230.0, 0.0),
                (500.0, 0.0),
                (1600.0, -3.0),
                (2300.0, -5.0),
                (5000.0, -7.0),
            ],
        }
    }

    /// Power of each tap, with a sum of 1.
    fn powers(self) -> Vec<f64> {
        let powers: Vec<f64> = self.taps().iter().map(|&(_, db)| math::pow(10.0, db / 10.0)).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect()
    }
}

/// The parameters of a [`Generator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingParameters {
    /// Delays and powers of the taps.
    pub profile: DelayProfile,
    /// Speed of the UE in km/h.
    pub speed_kmh: f64,
    /// Carrier frequency in Hz. With the speed, it determines the Doppler shift.
    pub carrier_hz: f64,
    /// Frequency distance in Hz between the gains of neighboring blocks. It is 200 kHz in the traces of ns-3, which
    /// spread 100 blocks over 20 MHz. Resource blocks are 180 kHz wide.
    pub spacing_hz: f64,
}

impl FadingParameters {
    /// Returns the parameters with the carrier (1930 MHz) and the spacing of ns-3's traces.
    pub fn ns3_traces(profile: DelayProfile, speed_kmh: f64) -> Self {
        FadingParameters { profile, speed_kmh, carrier_hz: 1.93e9, spacing_hz: 200e3 }
    }

    /// Returns the largest Doppler shift in Hz.
    pub fn max_doppler_hz(&self) -> f64 {
        self.speed_kmh / 3.6 * self.carrier_hz / LIGHT
    }
}

/// The Doppler shift in Hz below which fading can be generated. At higher shifts, the phase changes by more than half a
/// turn in 1 ms and would alias.
pub const DOPPLER_LIMIT_HZ: f64 = 500.0;

/// Number of sinusoids of each quadrature of a tap.
const SINUSOIDS: usize = 16;

/// One quadrature of a tap: its sinusoids, in units of 2^-32 turns.
#[derive(Clone, Debug, PartialEq)]
struct Quadrature {
    phases: [u32; SINUSOIDS],
    /// Phase change per millisecond.
    steps: [u32; SINUSOIDS],
}

/// cos(2 pi x) of x in units of 2^-32 turns, with an error below 5e-6: an odd polynomial of the sine over a quarter
/// turn on either side.
#[inline(always)]
fn cosine(turns: u32) -> f32 {
    let x = (0.25 - (turns as i32 as f32 * (1.0 / 4_294_967_296.0)).abs()) * std::f32::consts::TAU;
    let y = x * x;
    x * (1.0 + y * (-0.166_666_67 + y * (8.333_333e-3 + y * (-1.984_127e-4 + y * 2.755_732e-6))))
}

impl Quadrature {
    #[inline(always)]
    fn at(&self, millisecond: u32) -> f32 {
        let mut lanes = [0f32; SINUSOIDS];
        for ((lane, phase), step) in lanes.iter_mut().zip(&self.phases).zip(&self.steps) {
            *lane = cosine(phase.wrapping_add(step.wrapping_mul(millisecond)));
        }
        let mut width = SINUSOIDS / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
            width /= 2;
        }
        lanes[0]
    }
}

/// The sinusoids of a pair by tap, in phase and in quadrature.
#[derive(Clone, Debug, PartialEq)]
struct Sinusoids {
    taps: Vec<[Quadrature; 2]>,
}

/// A generator of fading gains, which are computed on demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    recipe: FadingParameters,
    seed: u64,
    resource_blocks: usize,
    /// Amplitude of a sinusoid, by tap.
    amplitudes: Vec<f32>,
    /// Phase factor of a tap's delay at each block, real and imaginary part, by tap.
    turns: Vec<[[f32; ROW_LANES]; 2]>,
    prepared: BTreeMap<u64, Sinusoids>,
}

/// Number of blocks that are processed together.
const LANES: usize = 16;

impl Generator {
    /// Creates a generator for a number of resource blocks, at most 100.
    ///
    /// # Errors
    /// If a parameter is not positive and finite (a speed may be 0), the Doppler shift is 500 Hz or more, or there are
    /// too many resource blocks.
    pub fn new(recipe: FadingParameters, seed: u64, resource_blocks: usize) -> Result<Self, RadioError> {
        let positive = |name: &str, number: f64, zero: bool| {
            let fine = number.is_finite() && (number > 0.0 || (zero && number == 0.0));
            let sign = if zero { "negative" } else { "0 or less" };
            fine.then_some(()).ok_or_else(|| {
                RadioError::new(format!(
                    "a fading generator cannot have a {name} of {number}; it must be finite and not {sign}"
                ))
            })
        };
        positive("speed (km/h)", recipe.speed_kmh, true)?;
        positive("carrier (Hz)", recipe.carrier_hz, false)?;
        positive("spacing (Hz)", recipe.spacing_hz, false)?;
        if recipe.max_doppler_hz() >= DOPPLER_LIMIT_HZ {
            return Err(RadioError::new(format!(
                "the Doppler shift is {:.0} Hz ({} km/h at {:.0} MHz), but fading at intervals of 1 ms requires less than \
                 {DOPPLER_LIMIT_HZ} Hz",
                recipe.max_doppler_hz(),
                recipe.speed_kmh,
                recipe.carrier_hz / 1e6
            )));
        }
        if resource_blocks > MOST_LINES {
            return Err(RadioError::new(format!(
                "a fading generator for {resource_blocks} resource blocks; expected at most {MOST_LINES}"
            )));
        }
        let amplitudes = recipe.profile.powers().iter().map(|power| (power / SINUSOIDS as f64).sqrt() as f32).collect();
        let turns = recipe
            .profile
            .taps()
            .iter()
            .map(|&(nanoseconds, _)| {
                let angle = |block: usize| -TAU * block as f64 * recipe.spacing_hz * nanoseconds * 1e-9;
                [
                    std::array::from_fn(|block| math::cos(angle(block)) as f32),
                    std::array::from_fn(|block| math::sin(angle(block)) as f32),
                ]
            })
            .collect();
        Ok(Generator { recipe, seed, resource_blocks, amplitudes, turns, prepared: BTreeMap::new() })
    }

    fn sinusoids(&self, pair: u64) -> Sinusoids {
        let turn = |steps: f64| (steps * 4_294_967_296.0) as i64 as u32;
        let doppler = self.recipe.max_doppler_hz() * 1e-3;
        let seed = hash(self.seed, pair, 0);
        let taps = (0..self.amplitudes.len() as u64).map(|tap| {
            let theta = PI * (2.0 * unit(hash(seed, tap, 0)) - 1.0);
            let quadrature = |of: fn(f64) -> f64, first: u64| Quadrature {
                phases: std::array::from_fn(|n| hash(seed, tap, first + n as u64) as u32),
                steps: std::array::from_fn(|n| {
                    let angle = (TAU * (n + 1) as f64 - PI + theta) / (4 * SINUSOIDS) as f64;
                    turn(doppler * of(angle))
                }),
            };
            [quadrature(math::cos, 1), quadrature(math::sin, 1 + SINUSOIDS as u64)]
        });
        Sinusoids { taps: taps.collect() }
    }

    fn gains(&self, pair: u64, subframe: u64, out: &mut Gains) {
        match self.prepared.get(&pair) {
            Some(sinusoids) => self.gains_of(sinusoids, subframe, out),
            None => self.gains_of(&self.sinusoids(pair), subframe, out),
        }
    }

    fn gains_of(&self, sinusoids: &Sinusoids, subframe: u64, out: &mut Gains) {
        // Phases are modulo one turn, so the number of milliseconds counts modulo 2^32.
        let millisecond = subframe as u32;
        let mut taps = [[0f32; 2]; 9];
        for ((tap, sinusoids), amplitude) in taps.iter_mut().zip(&sinusoids.taps).zip(&self.amplitudes) {
            *tap = [sinusoids[0].at(millisecond) * amplitude, sinusoids[1].at(millisecond) * amplitude];
        }
        let blocks = self.resource_blocks.next_multiple_of(LANES);
        for first in (0..blocks).step_by(LANES) {
            let (mut real, mut imaginary) = ([0f32; LANES], [0f32; LANES]);
            for ([a, b], [cosines, sines]) in taps.iter().zip(&self.turns) {
                let (cosines, sines) = (&cosines[first..first + LANES], &sines[first..first + LANES]);
                for lane in 0..LANES {
                    real[lane] += a * cosines[lane] - b * sines[lane];
                    imaginary[lane] += a * sines[lane] + b * cosines[lane];
                }
            }
            let out = &mut out[first..first + LANES];
            for lane in 0..LANES {
                out[lane] = (real[lane] * real[lane] + imaginary[lane] * imaginary[lane]).max(FLOOR);
            }
        }
    }

    /// An upper bound of all gains.
    fn largest(&self) -> f32 {
        // All taps in phase, with every sinusoid of both quadratures at its maximum.
        let amplitude: f64 = self.amplitudes.iter().map(|&amplitude| f64::from(amplitude) * SINUSOIDS as f64).sum();
        (2.0 * amplitude * amplitude * 1.0001) as f32
    }

    /// Returns the first `seconds` seconds of pair 0 as a trace.
    pub fn to_trace(&self, seconds: u32) -> Trace {
        let sinusoids = self.sinusoids(0);
        let mut rows = vec![[0.0; ROW_LANES]; seconds as usize * 1000];
        for (millisecond, row) in rows.iter_mut().enumerate() {
            self.gains_of(&sinusoids, millisecond as u64, row);
            row[self.resource_blocks..].fill(0.0);
        }
        Trace { rows, resource_blocks: self.resource_blocks }
    }
}

/// The fading of all pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fading {
    /// No fading.
    #[default]
    None,
    /// Gains from a trace.
    Trace(TraceFading),
    /// Generated gains.
    Generator(Generator),
}

impl Fading {
    /// Creates fading from a trace.
    ///
    /// # Errors
    /// If the trace has fewer resource blocks than the band. With [`TraceSampling::Windows`], also if the window is 0
    /// ms, or the trace is not at least 2 ms longer than the window.
    pub fn trace(
        trace: Arc<Trace>,
        places: TraceSampling,
        seed: u64,
        bandwidth: Bandwidth,
    ) -> Result<Self, RadioError> {
        let band = bandwidth.resource_blocks();
        if trace.resource_blocks < band {
            return Err(RadioError::new(format!(
                "the fading trace has {} lines, but the band has {band} resource blocks",
                trace.resource_blocks
            )));
        }
        if let TraceSampling::Windows { milliseconds } = places
            && (milliseconds == 0 || trace.rows.len() < milliseconds as usize + 2)
        {
            return Err(RadioError::new(format!(
                "the fading trace has a duration of {} ms, but windows of {milliseconds} ms require at least {} ms",
                trace.rows.len(),
                u64::from(milliseconds.max(1)) + 2
            )));
        }
        let extremes: Vec<GainRange> = trace.rows.iter().map(|row| extremes(&row[..band])).collect();
        let largest_ever = extremes.iter().map(|row| row.largest).fold(0.0, f32::max);
        Ok(Fading::Trace(TraceFading { trace, places, seed, extremes, groups: Vec::new(), largest_ever }))
    }

    /// Computes the extremes of each resource block group if gains come from a trace: 256 bytes per millisecond of the
    /// trace.
    pub(crate) fn prepare_groups(&mut self, bandwidth: Bandwidth) {
        let Fading::Trace(traced) = self else { return };
        let groups = |row: &Gains| {
            let mut groups = GroupGainRanges { smallest: [0.0; MAX_GROUPS], largest: [0.0; MAX_GROUPS] };
            let gains = row[..bandwidth.resource_blocks()].chunks_exact(bandwidth.group_size());
            for ((smallest, largest), gains) in groups.smallest.iter_mut().zip(&mut groups.largest).zip(gains) {
                (*smallest, *largest) = (gains[0], gains[0]);
                for &gain in gains {
                    *smallest = if gain < *smallest { gain } else { *smallest };
                    *largest = if gain > *largest { gain } else { *largest };
                }
            }
            groups
        };
        traced.groups = traced.trace.rows.iter().map(groups).collect();
    }

    /// Creates fading from a generator.
    ///
    /// # Errors
    /// As for [`Generator::new`].
    pub fn generator(recipe: FadingParameters, seed: u64, bandwidth: Bandwidth) -> Result<Self, RadioError> {
        Ok(Fading::Generator(Generator::new(recipe, seed, bandwidth.resource_blocks())?))
    }

    /// Precomputes the data of this pair, which is about 2 kB with a generator. Without this call, the gains are the
    /// same, but their computation takes longer.
    pub fn prepare(&mut self, pair: u64) {
        if let Fading::Generator(generator) = self
            && !generator.prepared.contains_key(&pair)
        {
            let sinusoids = generator.sinusoids(pair);
            generator.prepared.insert(pair, sinusoids);
        }
    }

    /// Computes the power gain of each resource block for a pair in a subframe.
    pub fn gains(&self, pair: u64, subframe: u64, out: &mut Gains) {
        match self {
            Fading::None => *out = [1.0; ROW_LANES],
            Fading::Trace(traced) => *out = traced.trace.rows[traced.millisecond(pair, subframe)],
            Fading::Generator(generator) => generator.gains(pair, subframe, out),
        }
    }

    /// Computes the power gain of each resource block, multiplied by a factor. If the factor is the SINR without
    /// fading, the results are the SINRs with fading.
    pub fn scaled_gains(&self, pair: u64, subframe: u64, factor: f32, out: &mut Gains) {
        match self {
            Fading::None => *out = [factor; ROW_LANES],
            Fading::Trace(traced) => {
                let row = &traced.trace.rows[traced.millisecond(pair, subframe)];
                for block in 0..ROW_LANES {
                    out[block] = row[block] * factor;
                }
            }
            Fading::Generator(generator) => {
                generator.gains(pair, subframe, out);
                for gain in out {
                    *gain *= factor;
                }
            }
        }
    }

    /// Returns a lower bound of the gains of the band. The bound is 0 if a better bound would take as long to compute
    /// as all gains.
    #[inline]
    pub fn min_gain(&self, pair: u64, subframe: u64) -> f32 {
        match self {
            Fading::None => 1.0,
            Fading::Trace(traced) => traced.extremes[traced.millisecond(pair, subframe)].smallest,
            Fading::Generator(_) => 0.0,
        }
    }

    /// Returns an upper bound of the gains of the band in all subframes.
    pub fn max_gain(&self, _pair: u64) -> f32 {
        match self {
            Fading::None => 1.0,
            Fading::Trace(traced) => traced.largest_ever,
            Fading::Generator(generator) => generator.largest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROFILES: [DelayProfile; 3] =
        [DelayProfile::ExtendedPedestrianA, DelayProfile::ExtendedVehicularA, DelayProfile::ExtendedTypicalUrban];

    fn generator(profile: DelayProfile, speed_kmh: f64) -> Generator {
        Generator::new(FadingParameters::ns3_traces(profile, speed_kmh), 5, 100).unwrap()
    }

    /// Bessel function of the first kind of order 0 by its power series, for |x| < 8.
    fn bessel(x: f64) -> f64 {
        let (mut sum, mut term) = (0.0, 1.0);
        for k in 1..40 {
            sum += term;
            term *= -x * x / (4.0 * f64::from(k) * f64::from(k));
        }
        sum
    }

    #[test]
    fn cosine_polynomial_is_accurate() {
        for i in 0..100_000u32 {
            let turns = i.wrapping_mul(42_949);
            let exact = math::cos(TAU * f64::from(turns) / 4_294_967_296.0);
            assert!((f64::from(cosine(turns)) - exact).abs() < 5e-6, "{turns}");
        }
    }

    #[test]
    fn delays_match_the_profiles() {
        // Root mean square delays of TS 36.104, in ns.
        for (profile, expected) in PROFILES.into_iter().zip([44.0, 357.0, 991.0]) {
            let moment = |n: i32| {
                let delays = profile.taps().iter().zip(profile.powers());
                delays.map(|(&(ns, _), power)| power * (0..n).map(|_| ns).product::<f64>()).sum::<f64>()
            };
            let delay = (moment(2) - moment(1) * moment(1)).sqrt();
            assert!((delay - expected).abs() < 1.5, "{profile:?}: {delay}");
        }
    }

    /// Correlation coefficient of the power at two blocks, with distances in blocks and milliseconds, over many pairs.
    fn correlation(generator: &Generator, blocks: usize, milliseconds: u64) -> f64 {
        let mut sums = [0.0f64; 5];
        let mut count = 0.0;
        let (mut here, mut there) = ([0.0; ROW_LANES], [0.0; ROW_LANES]);
        for pair in 0..4000 {
            let sinusoids = generator.sinusoids(pair);
            for time in [0, 7777] {
                generator.gains_of(&sinusoids, time, &mut here);
                generator.gains_of(&sinusoids, time + milliseconds, &mut there);
                for block in [0, 40, 79] {
                    let (x, y) = (f64::from(here[block]), f64::from(there[block + blocks]));
                    for (sum, term) in sums.iter_mut().zip([x, y, x * x, y * y, x * y]) {
                        *sum += term;
                    }
                    count += 1.0;
                }
            }
        }
        let [x, y, xx, yy, xy] = sums.map(|sum| sum / count);
        (xy - x * y) / ((xx - x * x) * (yy - y * y)).sqrt()
    }

    // Of 24,000 products a large part is independent, so the coefficient's standard error is below 0.01.
    const CLOSE: f64 = 0.04;

    #[test]
    fn power_decorrelates_in_time_as_the_squared_bessel_function() {
        for (speed, milliseconds) in [(3.0, [10, 20, 40, 71]), (60.0, [1, 2, 3, 5])] {
            let generator = generator(DelayProfile::ExtendedVehicularA, speed);
            for ms in milliseconds {
                let j0 = bessel(TAU * generator.recipe.max_doppler_hz() * ms as f64 * 1e-3);
                let found = correlation(&generator, 0, ms);
                assert!((found - j0 * j0).abs() < CLOSE, "{speed} km/h, {ms} ms: {found}, theory {}", j0 * j0);
            }
        }
    }

    #[test]
    fn power_decorrelates_in_frequency_according_to_the_delays() {
        for profile in PROFILES {
            let generator = generator(profile, 30.0);
            for blocks in [1, 5, 10, 20] {
                let (mut real, mut imaginary) = (0.0, 0.0);
                for (&(ns, _), power) in profile.taps().iter().zip(profile.powers()) {
                    let angle = TAU * 200e3 * blocks as f64 * ns * 1e-9;
                    real += power * math::cos(angle);
                    imaginary += power * math::sin(angle);
                }
                let theory = real * real + imaginary * imaginary;
                let found = correlation(&generator, blocks, 0);
                assert!((found - theory).abs() < CLOSE, "{profile:?}, {blocks} blocks: {found}, theory {theory}");
            }
        }
    }

    #[test]
    fn power_is_exponentially_distributed() {
        for profile in PROFILES {
            let generator = generator(profile, 120.0);
            let mut powers = Vec::new();
            let mut row = [0.0; ROW_LANES];
            for pair in 0..2000 {
                let sinusoids = generator.sinusoids(pair);
                for time in 0..5 {
                    generator.gains_of(&sinusoids, time * 1000, &mut row);
                    powers.extend([row[0], row[99]].map(f64::from));
                }
            }
            let mean = powers.iter().sum::<f64>() / powers.len() as f64;
            assert!((mean - 1.0).abs() < 0.03, "{profile:?}: {mean}");
            powers.sort_by(f64::total_cmp);
            for percent in [1, 10, 50, 90, 99] {
                let found = 10.0 * math::log10(powers[powers.len() * percent / 100]);
                let theory = 10.0 * math::log10(-math::ln(1.0 - percent as f64 / 100.0));
                // With 20,000 draws the 1 % quantile has a standard error of 0.3 dB, the others of less than 0.1.
                let close = if percent == 1 { 1.0 } else { 0.3 };
                assert!((found - theory).abs() < close, "{profile:?}, {percent} %: {found} dB, theory {theory}");
            }
        }
    }

    #[test]
    fn pairs_and_seeds_are_independent_and_order_does_not_matter() {
        let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 3.0);
        let band = Bandwidth::new(25).unwrap();
        let row = |seed, pair, subframe| {
            let mut row = [0.0; ROW_LANES];
            Fading::generator(recipe, seed, band).unwrap().gains(pair, subframe, &mut row);
            row[..25].to_vec()
        };
        assert_ne!(row(1, 1, 9), row(1, 2, 9));
        assert_ne!(row(1, 1, 9), row(2, 1, 9));
        let mut prepared = Fading::generator(recipe, 1, band).unwrap();
        prepared.prepare(1);
        for subframe in [1_000_000, 9, 3, 9] {
            let mut out = [0.0; ROW_LANES];
            prepared.gains(1, subframe, &mut out);
            assert_eq!(&out[..25], &row(1, 1, subframe)[..]);
        }
        // 2^32 ms are a whole number of turns of every sinusoid.
        assert_eq!(row(1, 1, 77), row(1, 1, 77 + (1 << 32)));
    }

    fn small_trace(blocks: usize, milliseconds: usize) -> Trace {
        let mut text = String::new();
        for block in 0..blocks {
            for ms in 0..milliseconds {
                text.push_str(&format!("{} ", (ms * 7 + block) as f64 / 1000.0 - 3.0));
            }
            text.push('\n');
        }
        Trace::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn windows_move_all_pairs_at_once_to_different_positions() {
        let trace = Arc::new(small_trace(6, 2000));
        let band = Bandwidth::new(6).unwrap();
        let Fading::Trace(traced) = Fading::trace(Arc::clone(&trace), TraceSampling::default(), 3, band).unwrap()
        else {
            panic!("a trace")
        };
        let mut stayed = 0;
        for pair in 0..50 {
            for window in 0..50 {
                let first = traced.millisecond(pair, window * 500);
                assert!((1..1500).contains(&first));
                assert_eq!(traced.millisecond(pair, window * 500 + 499), first + 499);
                stayed += usize::from(traced.millisecond(pair, window * 500 + 500) == first + 500);
            }
        }
        // The probability is 1 in 1499 for each of 2500 draws.
        assert!(stayed < 10, "{stayed}");
        assert_ne!(traced.millisecond(1, 0), traced.millisecond(2, 0));
        let continuous = TraceFading { places: TraceSampling::Continuous, ..traced };
        for subframe in 0..5000 {
            let now = continuous.millisecond(1, subframe);
            assert_eq!(continuous.millisecond(1, subframe + 1), (now + 1) % 2000);
        }
    }

    #[test]
    fn bounds_hold_for_traces_and_generators() {
        let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedTypicalUrban, 60.0);
        let band = Bandwidth::new(25).unwrap();
        let trace = Arc::new(Generator::new(recipe, 1, 100).unwrap().to_trace(2));
        for fading in [
            Fading::None,
            Fading::trace(trace, TraceSampling::default(), 1, band).unwrap(),
            Fading::generator(recipe, 1, band).unwrap(),
        ] {
            let (mut row, mut scaled) = ([0.0; ROW_LANES], [0.0; ROW_LANES]);
            for subframe in 0..3000 {
                fading.gains(9, subframe, &mut row);
                fading.scaled_gains(9, subframe, 3.0, &mut scaled);
                for block in 0..25 {
                    assert!((fading.min_gain(9, subframe)..=fading.max_gain(9)).contains(&row[block]));
                    assert_eq!(scaled[block], row[block] * 3.0);
                }
            }
        }
    }

    #[test]
    fn malformed_trace_is_rejected_with_its_line() {
        let error = |text: &str| Trace::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error("1 2 3\n1 2\n").contains("line 2 has 2 values, but line 1 has 3"));
        assert!(error("1 2 3\n1 2 3 4\n").contains("line 2"));
        assert!(error("1 2 3\n1 x 3\n").contains("line 2, value 2: `x`"));
        assert!(error("1 nan\n").contains("value 2"));
        assert!(error("").contains("empty"));
        assert!(error("1 2\n\n1 2\n").contains("line 2"));
        assert!(error(&"1 \n".repeat(101)).contains("more than 100 lines"));
        let short = Arc::new(small_trace(6, 501));
        let band = |n| Bandwidth::new(n).unwrap();
        assert!(Fading::trace(Arc::clone(&short), TraceSampling::default(), 1, band(6)).is_err());
        assert!(Fading::trace(Arc::clone(&short), TraceSampling::Continuous, 1, band(6)).is_ok());
        assert!(Fading::trace(short, TraceSampling::Continuous, 1, band(15)).is_err());
    }

    #[test]
    fn numbers_have_six_digits_as_in_c() {
        for (number, text) in [
            (0.0, "0"),
            (-2.543, "-2.543"),
            (-12.345678, "-12.3457"),
            (0.00012345678, "0.000123457"),
            (0.000012345678, "1.23457e-05"),
            (-99.99999, "-100"),
            (1234567.0, "1.23457e+06"),
            (-80.0, "-80"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(db in proptest::collection::vec(proptest::collection::vec(-79.0f64..20.0, 7), 1..9)) {
            let text: String = db.iter().map(|line| line.iter().map(|db| format!("{db} ")).collect::<String>() + "\n").collect();
            let trace = Trace::read(text.as_bytes()).unwrap();
            let mut written = Vec::new();
            trace.write(&mut written).unwrap();
            let again = Trace::read(&written[..]).unwrap();
            prop_assert_eq!((again.duration_ms(), again.resource_blocks()), (7, db.len()));
            for ms in 0..7 {
                for (block, line) in db.iter().enumerate() {
                    // Half a unit of the sixth digit of at most 79.9 dB, plus the rounding of f32.
                    let (a, b) = (trace.row(ms)[block], again.row(ms)[block]);
                    let difference = 10.0 * math::log10(f64::from(a) / f64::from(b));
                    prop_assert!(difference.abs() < 6e-5, "{} {}", a, b);
                    let asked = 10.0 * math::log10(f64::from(a));
                    prop_assert!((asked - line[ms]).abs() < 1e-6);
                }
            }
            let mut twice = Vec::new();
            again.write(&mut twice).unwrap();
            prop_assert_eq!(written, twice);
        }
    }
}
