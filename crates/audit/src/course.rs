//! The audit of a link whose rate is not constant: the maximum number of bytes between two instants.
//!
//! Limits are cumulative sums from the start of the run, so the limit of any interval is the difference of two sums:
//! bits for rate steps, opportunities for delivery traces. (Bits are counted in units of 10^-9 bit, so a rate of r
//! bit/s is r units per nanosecond.)
//!
//! A busy period begins with a frame that does not start when the previous one ended. From then on, the sum of all
//! bytes must not exceed the declared limit up to the end of each frame. Clocks count whole nanoseconds, so the end of
//! a frame may be up to one nanosecond too early.

use crate::declared::RateProfile;
use fullpipe_units::words;

/// Number of steps of an adjustable link above which earlier steps are merged.
const MOST_STEPS: usize = 64;

/// The busy period of a link under audit.
#[derive(Clone, Debug)]
pub(crate) struct RateProfileChecker {
    promise: RateProfile,
    since: u64,
    busy_until: Option<u64>,
    bytes: u128,
}

impl RateProfileChecker {
    /// Returns a checker; `None` if the rate is constant.
    pub(crate) fn new(course: &RateProfile) -> Option<Self> {
        let varies = *course != RateProfile::Constant;
        varies.then(|| RateProfileChecker { promise: course.clone(), since: 0, busy_until: None, bytes: 0 })
    }

    /// Adds a step to a rate that changes in steps without repetition.
    pub(crate) fn add_step(&mut self, at: u64, bps: u64) {
        let RateProfile::Steps { first_bps, steps, .. } = &mut self.promise else { return };
        match steps.last_mut().filter(|last| last.0 >= at) {
            Some(last) => last.1 = bps,
            None => steps.push((at, bps)),
        }
        // Each frame is checked against the steps since the start of its busy period. Their number is limited: steps
        // before that start are merged, and a busy period with many steps is divided into two.
        if steps.len() > MOST_STEPS {
            let over = steps.partition_point(|step| step.0 <= self.since);
            if let Some(last) = over.checked_sub(1) {
                *first_bps = steps[last].1;
                steps.drain(..over);
            }
            self.busy_until = None;
        }
    }

    /// Checks a frame of `wire_bytes` bytes. If it is too fast, the error states what was expected.
    pub(crate) fn transmitted(&mut self, start: u64, finish: u64, wire_bytes: u32) -> Result<(), String> {
        if self.busy_until != Some(start) {
            (self.since, self.bytes) = (start, 0);
        }
        self.busy_until = Some(finish);
        self.bytes += u128::from(wire_bytes);
        let (since, bytes) = (self.since, self.bytes);
        match &self.promise {
            RateProfile::Constant => Ok(()),
            RateProfile::Steps { first_bps, steps, repeat_ns } => {
                let units = |until| units_before(until, *first_bps, steps, *repeat_ns);
                let room = units(finish.saturating_add(1)) - units(since);
                if bytes * 8_000_000_000 <= room {
                    return Ok(());
                }
                Err(too_many(room / 8_000_000_000, since, finish, bytes))
            }
            RateProfile::Opportunities { at_ns, period_ns, bytes: each } => {
                let until = |at| opportunities_before(at, at_ns, *period_ns);
                let room = (until(finish.saturating_add(1)) - until(since)) * u128::from(*each);
                let at_one = |at: u64| until(at.saturating_add(1)) > until(at);
                if bytes > room {
                    return Err(too_many(room, since, finish, bytes));
                }
                if !at_one(start) || !at_one(finish) {
                    return Err(format!(
                        "expected frames to start and end at delivery opportunities, found one from {} to {}",
                        words::format_exact_time(start),
                        words::format_exact_time(finish)
                    ));
                }
                Ok(())
            }
        }
    }
}

fn too_many(most: u128, since: u64, finish: u64, found: u128) -> String {
    let bytes = |number: u128| words::format_exact_bytes(i128::try_from(number).unwrap_or(i128::MAX));
    let (since, finish) = (words::format_exact_time(since), words::format_exact_time(finish));
    format!("expected at most {} from {since} to {finish}, found {}", bytes(most), bytes(found))
}

/// Returns the limit, in units of 10^-9 bit, from the start of the run to `until`.
fn units_before(until: u64, first_bps: u64, steps: &[(u64, u64)], repeat_ns: Option<u64>) -> u128 {
    // The sum of each rate times its duration, in one period that begins with a given rate.
    let round = |begin_bps: u64, length: u64| {
        let mut units = 0;
        let (mut at, mut rate) = (0, begin_bps);
        for &(step_at, next) in steps {
            let to = step_at.min(length);
            units += u128::from(to.saturating_sub(at)) * u128::from(rate);
            (at, rate) = (at.max(to), next);
        }
        units + u128::from(length.saturating_sub(at)) * u128::from(rate)
    };
    let Some(length) = repeat_ns.filter(|length| *length > 0) else { return round(first_bps, until) };
    let last_bps = steps.last().map_or(first_bps, |step| step.1);
    let (rounds, rest) = (until / length, until % length);
    match rounds {
        0 => round(first_bps, rest),
        _ => round(first_bps, length) + u128::from(rounds - 1) * round(last_bps, length) + round(last_bps, rest),
    }
}

/// Returns the number of opportunities before `until`, from the start of the run.
fn opportunities_before(until: u64, at_ns: &[u64], length: u64) -> u128 {
    if length == 0 {
        return 0;
    }
    // Counts the opportunities in the period that contains `until`, and in the previous one, whose last opportunity can
    // be at the start of this period.
    let rounds = until / length;
    let in_round = |rest: u64| at_ns.partition_point(|at| *at < rest) as u128;
    let whole = at_ns.len() as u128 * u128::from(rounds.saturating_sub(1));
    let before = if rounds > 0 { in_round(until - (rounds - 1) * length) } else { 0 };
    whole + before + in_round(until % length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1 Gbit/s, 1000 bytes take 8000 ns; at 2 Gbit/s, 4000 ns.
    #[test]
    fn a_frame_that_is_too_fast_is_detected_after_many_added_steps() {
        let constant = RateProfile::Steps { first_bps: 1_000_000_000, steps: Vec::new(), repeat_ns: None };
        let mut checker = RateProfileChecker::new(&constant).expect("the rate can change");
        for step in 0..1000 {
            let (at, is_fast) = (10_000 * step, step % 2 == 1);
            checker.add_step(at, if is_fast { 2_000_000_000 } else { 1_000_000_000 });
            let taken = if is_fast { 4000 } else { 8000 };
            assert_eq!(checker.transmitted(at, at + taken, 1000), Ok(()));
        }
        checker.add_step(10_000_000, 1_000_000_000);
        assert!(checker.transmitted(10_000_000, 10_007_998, 1000).is_err());
    }

    #[test]
    fn sums_match_a_calculation_by_hand() {
        // 2 units per ns, 5 from 10 ns on, 0 from 20 ns on, repeated after 25 ns. The first period has 2 x 10 + 5 x 10
        // = 70; the second begins with rate 0 and has 50.
        let units = |until| units_before(until, 2, &[(10, 5), (20, 0)], Some(25));
        assert_eq!([0, 4, 10, 12, 25, 35, 36, 60].map(units), [0, 8, 20, 30, 70, 70, 75, 120]);
        assert_eq!(units_before(100, 2, &[(10, 5)], None), 20 + 450);
        // Opportunities at 1, 2, 2, 5, then 6, 7, 7, 10; the one at 5 is before 6, not before 5.
        let opportunities = |until| opportunities_before(until, &[1, 2, 2, 5], 5);
        assert_eq!([0, 1, 2, 3, 5, 6, 7, 8, 10, 11].map(opportunities), [0, 0, 1, 3, 3, 4, 5, 7, 7, 8]);
        // Opportunities at 0 and 4, then 4 and 8.
        assert_eq!([0, 1, 4, 5, 9].map(|until| opportunities_before(until, &[0, 4], 4)), [0, 1, 1, 3, 5]);
        // The first list from 2 ns on: 0, 0, 3, 4, then 5, 5, 8, 9.
        let rotated = |until| opportunities_before(until, &[0, 0, 3, 4], 5);
        assert_eq!([0, 1, 3, 4, 5, 6, 9, 10, 11].map(rotated), [0, 2, 2, 3, 4, 6, 7, 8, 10]);
    }
}
