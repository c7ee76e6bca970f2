//! Search for the scale at which traces offer the target load, the length of the run, and the interval in which the
//! load is steady.
//!
//! For a given scale, the search takes the bins of all traces in their shuffled order and estimates their load. The run
//! ends when its last two thirds have been steady for five consecutive bins. They are steady if the means of halves
//! agree, as the draft requires, and those of thirds also agree. The load of the scale is the mean after the warm-up.
//! Until loads on both sides of the target are known, the scale changes by half of the relative error. Then the search
//! bisects. The load is random and need not fall with every increase of the scale. A load that contradicts the known
//! bounds is a failure; so is an unbalanced run. After five failures the search restarts from the current scale; after
//! five restarts it ends without a result.
//!
//! Source: draft-irtf-iccrg-tcpeval-01, sections 2.3 and 3, and the behavior of its authors' implementation.

use crate::error::Error;
use crate::load::{self, Bins, LoadDirection, Overhead};
use crate::shuffle::{BinOrder, Prefill, Schedule, ScheduledConnections};
use crate::trace::Trace;
use fullpipe_units::{Duration, Rate};

/// Consecutive steady bins that end a run.
const AGREEMENTS: u32 = 5;
/// Failures before a restart, and restarts before the search ends.
const PATIENCE: u32 = 5;
/// Smallest effective change of the scale.
const LEAST_CHANGE: f64 = 1e-10;
/// Number of open connections per source and second of round-trip time at scale 1. The reference suite divides the link
/// among them.
const ALIVE: f64 = 500.0;

/// The requirements for the traffic of one experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentSpec {
    /// Rate of the central link in the direction for which the load is defined.
    pub capacity: Rate,
    /// Target load as a fraction of the capacity.
    pub load: f64,
    /// The direction in which the load is counted.
    pub direction: LoadDirection,
    /// Longest round-trip time, with full queues in both directions.
    pub max_rtt: Duration,
    /// Length of a bin in run time (`b`).
    pub bin: Duration,
    /// Length of the prefill, in which only long-lived connections start (`prefill_t`); 0 for no prefill.
    pub prefill: Duration,
    /// Factor for the time into which the starts of prefill connections are compressed (`prefill_si`); 1 unless the
    /// experiment defines one.
    pub prefill_correction: f64,
    /// Order of the bins.
    pub order: BinOrder,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Length of the part of a trace that is used.
    pub trace_length: Duration,
    /// Smallest number of bins of a run.
    pub minimum_bins: usize,
    /// Largest permitted difference between the loads of the halves, and of the thirds, of a run, as a fraction of the
    /// larger load.
    pub balance_tolerance: f64,
    /// Largest permitted difference from the target load, as a fraction of the target load.
    pub load_tolerance: f64,
    /// Overhead of headers and acknowledgments.
    pub overhead: Overhead,
}

impl ExperimentSpec {
    /// Returns the draft's requirements. In one bin the link carries 500 Mbit. The prefill is 1.5 times the load in
    /// percent times the longest round-trip time. The first 3000 s of each trace are used. The tolerances are 5 %
    /// between halves and 2 % of the load. The load is counted towards the initiators.
    pub fn draft(capacity: Rate, load: f64, max_rtt: Duration, seed: u64) -> Self {
        let bin = Duration::from_secs_f64(500e6 / capacity.bits_per_second() as f64);
        ExperimentSpec {
            capacity,
            load,
            direction: LoadDirection::Reverse,
            max_rtt,
            bin,
            prefill: Duration::from_secs_f64(1.5 * load * 100.0 * max_rtt.as_secs_f64()),
            prefill_correction: 1.0,
            order: BinOrder::Shuffled,
            seed,
            trace_length: Duration::from_secs(3000),
            minimum_bins: 60,
            balance_tolerance: 0.05,
            load_tolerance: 0.02,
            overhead: Overhead::default(),
        }
    }

    fn capacity_bps(&self) -> f64 {
        self.capacity.bits_per_second() as f64
    }

    /// A connection's share of the link in bit/s, from which its lifetime is estimated, with `sources` sources.
    fn share_bps(&self, scale: f64, sources: usize) -> f64 {
        let alive = sources as f64 * ALIVE / scale * self.max_rtt.as_secs_f64();
        self.capacity_bps() / alive.max(1.0)
    }

    /// Returns the schedule for a given scale. Its prefill is computed from the traces.
    ///
    /// # Errors
    /// If a trace cannot be read or scheduled.
    pub fn schedule<T: Trace>(&self, scale: f64, duration: Duration, traces: &mut [T]) -> Result<Schedule, Error> {
        let prefill = Prefill {
            time: self.prefill,
            interval: self.prefill,
            lifetime: self.prefill / 2,
            share_bps: self.share_bps(scale, traces.len()),
        };
        let mut schedule = Schedule {
            scale,
            bin: self.bin,
            order: self.order,
            seed: self.seed,
            trace_length: self.trace_length,
            duration: self.prefill,
            prefill,
        };
        let mut bits = 0;
        if !self.prefill.is_zero() {
            for trace in traces {
                for connection in schedule.schedule_trace(trace)? {
                    let estimate = load::estimate(&connection?, &self.overhead, prefill.share_bps);
                    bits += estimate.bits_in_direction(self.direction);
                }
            }
        }
        let seconds = bits as f64 / (self.capacity_bps() * self.load) * self.prefill_correction;
        let interval = Duration::from_secs_f64(seconds);
        schedule.duration = duration;
        // If the connections need more time than the prefill has, the warm-up replaces the prefill.
        schedule.prefill = if interval > prefill.time { Prefill::NONE } else { Prefill { interval, ..prefill } };
        Ok(schedule)
    }
}

/// A scale that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleAttempt {
    /// The scale.
    pub scale: f64,
    /// The load after the warm-up, as a fraction of the capacity.
    pub load: f64,
    /// Length of the run; the longest possible length if `balanced` is false.
    pub duration: Duration,
    /// Whether the last two thirds of the run are steady.
    pub balanced: bool,
}

/// The schedule and the phases of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentPlan {
    /// Derives the connections of the run from a trace: [`Schedule::schedule_trace`].
    pub schedule: Schedule,
    /// Time between the prefill and the measurement.
    pub warmup: Duration,
    /// Measured time.
    pub test: Duration,
    /// Load during the measured time, as a fraction of the capacity.
    pub load: f64,
    /// Estimated load of each bin from the start of the run, as a fraction of the capacity.
    pub bins: Vec<f64>,
}

struct Tried {
    attempt: ScaleAttempt,
    schedule: Schedule,
    /// The first measured bin.
    steady: usize,
    bins: Vec<f64>,
}

/// Searches for the scale at which the traces offer the target load. The function calls `tell` for each scale that it
/// tries.
///
/// # Errors
/// If the requirements are invalid, a trace cannot be read, or no scale reaches the target load.
pub fn find_scale<T: Trace>(
    suite: &ExperimentSpec,
    traces: &mut [T],
    mut tell: impl FnMut(&ScaleAttempt),
) -> Result<ExperimentPlan, Error> {
    check(suite, traces)?;
    let mut scale = first_scale(suite, traces)?;
    let mut search = Search::default();
    loop {
        let tried = try_scale(suite, scale, traces)?;
        tell(&tried.attempt);
        let error = (tried.attempt.load - suite.load) / suite.load;
        if error.abs() <= suite.load_tolerance && tried.attempt.balanced {
            return Ok(plan(suite, tried));
        }
        scale = search.next(scale, error, tried.attempt.balanced).ok_or_else(|| {
            Error::Unsatisfiable(format!(
                "no scale gives a steady load of {:.1} %: the last scale, {scale:.4}, gives {:.1} %{}; use longer \
                 traces, a larger tolerance or another seed",
                suite.load * 100.0,
                tried.attempt.load * 100.0,
                if tried.attempt.balanced { "" } else { " and is not steady" },
            ))
        })?;
    }
}

fn check<T: Trace>(suite: &ExperimentSpec, traces: &[T]) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::Unsatisfiable(what.to_string()));
    if traces.is_empty() {
        return wrong("no trace is given; expected at least one");
    }
    if suite.capacity.bits_per_second() == 0 || suite.bin.is_zero() {
        let (capacity, bin) = (suite.capacity, suite.bin);
        return wrong(&format!("a capacity of {capacity} and bins of {bin}: both must be above 0"));
    }
    if !(suite.load.is_finite() && suite.load > 0.0) {
        return wrong(&format!("the load must be above 0, but it is {}", suite.load));
    }
    Ok(())
}

/// Estimates the scale from a sample of the traces: one second in each hundred.
fn first_scale<T: Trace>(suite: &ExperimentSpec, traces: &mut [T]) -> Result<f64, Error> {
    let second = Duration::from_secs(1);
    let mut bps = 0.0;
    for trace in traces.iter_mut() {
        let length = suite.trace_length.min(trace.length());
        let mut from = Duration::ZERO;
        let (mut bits, mut time) = (0u64, Duration::ZERO);
        while from < length {
            let to = from.saturating_add(second).min(length);
            for connection in trace.connections(from, to)? {
                bits += load::estimate(&connection, &suite.overhead, 1.0).bits_in_direction(suite.direction);
            }
            time += to - from;
            from = from.saturating_add(second * 100);
        }
        if !time.is_zero() {
            bps += bits as f64 / time.as_secs_f64();
        }
    }
    if bps == 0.0 {
        return Err(Error::Unsatisfiable("the traces offer no load in the direction of the experiment".to_string()));
    }
    Ok(bps / (suite.capacity_bps() * suite.load))
}

fn try_scale<T: Trace>(suite: &ExperimentSpec, scale: f64, traces: &mut [T]) -> Result<Tried, Error> {
    let shortest = traces.iter().map(|trace| trace.length()).min().unwrap_or_default().min(suite.trace_length);
    let longest = Duration::from_secs_f64(shortest.as_secs_f64() * scale);
    let mut schedule = suite.schedule(scale, longest, traces)?;
    let share_bps = suite.share_bps(scale, traces.len());
    let mut streams: Vec<ScheduledConnections<&mut T>> =
        traces.iter_mut().map(|trace| schedule.schedule_trace(trace)).collect::<Result<_, _>>()?;
    // The last bin is incomplete and is not used.
    let count = streams.iter().map(|stream| stream.order().len()).min().unwrap_or(0).saturating_sub(1);
    let prefill = schedule.prefill.time.as_nanos().div_ceil(suite.bin.as_nanos()) as usize;
    let mut bins = Bins::new(suite.bin, suite.capacity_bps(), suite.direction, count);
    let bin_bits = suite.capacity_bps() * suite.bin.as_secs_f64();
    let mut loads = Vec::new();
    let mut agreements = 0;
    while loads.len() < count && agreements < AGREEMENTS {
        for stream in &mut streams {
            for connection in stream.next_bin().unwrap_or_else(|| Ok(Vec::new()))? {
                bins.add(&load::estimate(&connection, &suite.overhead, share_bps));
            }
        }
        // No later connection adds bits to this bin.
        loads.push(bins.bits()[loads.len()] as f64 / bin_bits);
        let judged = &loads[judged_from(loads.len(), prefill)..];
        let enough = loads.len() >= suite.minimum_bins.max(prefill.saturating_mul(2));
        agreements = if enough && load::is_steady(judged, suite.balance_tolerance) { agreements + 1 } else { 0 };
    }
    let steady = counted_from(&loads, prefill, suite.balance_tolerance);
    let counted = &loads[steady..];
    let load = counted.iter().sum::<f64>() / counted.len().max(1) as f64;
    let duration = suite.bin * loads.len() as u64;
    schedule.duration = duration;
    let attempt = ScaleAttempt { scale, load, duration, balanced: agreements == AGREEMENTS };
    Ok(Tried { attempt, schedule, steady, bins: loads })
}

/// Index of the first bin of the last two thirds, or of the first bin after the prefill if that is later.
fn judged_from(count: usize, prefill: usize) -> usize {
    count.div_ceil(3).max(prefill).min(count)
}

/// Index of the first bin after the warm-up, at the latest the first bin of the last two thirds.
fn counted_from(loads: &[f64], prefill: usize, tolerance: f64) -> usize {
    let latest = judged_from(loads.len(), prefill);
    let prefill = prefill.min(latest);
    load::find_steady_start(&loads[prefill..], tolerance).map_or(latest, |at| (prefill + at).min(latest))
}

fn plan(suite: &ExperimentSpec, tried: Tried) -> ExperimentPlan {
    let Tried { attempt, schedule, steady, bins } = tried;
    // The prefill ends within a bin; the warm-up ends at the end of a bin.
    let warmup = (suite.bin * steady as u64).saturating_sub(schedule.prefill.time);
    let test = attempt.duration.saturating_sub(schedule.prefill.time).saturating_sub(warmup);
    ExperimentPlan { schedule, warmup, test, load: attempt.load, bins }
}

/// The state of the search: the known bounds of the scale.
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// A scale that is too small: the load is too high.
    low: Option<f64>,
    /// A scale that is too large: the load is too low.
    high: Option<f64>,
    troubles: u32,
    beginnings: u32,
}

impl Search {
    /// Returns the next scale to try, given the relative error of this one. `None` ends the search.
    fn next(&mut self, scale: f64, error: f64, balanced: bool) -> Option<f64> {
        let contradicts = match (self.low, self.high) {
            (Some(low), _) if scale < low && error < 0.0 => true,
            (_, Some(high)) if scale > high && error > 0.0 => true,
            (Some(low), Some(high)) => high - low <= LEAST_CHANGE.max(1e-4 * scale),
            _ => false,
        };
        if contradicts || !balanced {
            self.troubles += 1;
        }
        if self.troubles >= PATIENCE {
            *self = Search { beginnings: self.beginnings + 1, ..Search::default() };
            if self.beginnings > PATIENCE {
                return None;
            }
        }
        if error > 0.0 {
            self.low = Some(scale);
        } else {
            self.high = Some(scale);
        }
        let next = match (self.low, self.high) {
            (Some(low), Some(high)) if low < high => low + (high - low) / 2.0,
            // The scale falls by at most half, so that it stays positive.
            _ => scale + scale * (0.5 * error).clamp(-0.5, 1.0),
        };
        ((next - scale).abs() > LEAST_CHANGE).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The final scale and the number of steps for a load that falls as 1 / scale.
    fn end(mut scale: f64, tolerance: f64) -> (f64, u32) {
        let mut search = Search::default();
        for step in 0..200 {
            let error = 5.0 / scale - 1.0;
            if error.abs() <= tolerance {
                return (scale, step);
            }
            scale = search.next(scale, error, true).expect("the search finds a scale");
        }
        panic!("the search does not end");
    }

    #[test]
    fn search_ends_at_the_scale_of_a_falling_load() {
        // The load is 1 at scale 5.
        for first in [0.1, 1.0, 4.0, 5.0, 6.0, 50.0, 5000.0] {
            let (scale, steps) = end(first, 0.001);
            assert!((scale - 5.0).abs() <= 0.006, "{first} ends at {scale}");
            assert!(steps < 60, "{first} takes {steps}");
        }
    }

    #[test]
    fn search_ends_without_result_if_no_scale_reaches_the_load() {
        let mut search = Search::default();
        let mut scale = 1.0;
        let mut steps = 0;
        while let Some(next) = search.next(scale, if steps % 2 == 0 { 0.5 } else { -0.5 }, false) {
            scale = next;
            steps += 1;
            assert!(steps < 200, "the search does not end");
        }
        assert!(scale.is_finite() && scale > 0.0);
    }
}
