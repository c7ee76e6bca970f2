//! Rate and delay that change over time in steps, with exact transmission times across the steps.
//!
//! A step sets the rate, the delay or both from its time on; other values stay unchanged. Rate 0 is an outage. A
//! schedule can repeat; the values at the end of one period then apply until the first step of the next period.
//!
//! **Rate.** A frame of b bytes ends when the integral of the rate since its start reaches 8 b bits. The end is rounded
//! down to whole nanoseconds. A frame in transmission continues at the new rate, and waits during an outage. In units
//! of 10^-9 bit, a rate of r bit/s is r units per nanosecond, and all numbers are integers. The part of a frame that is
//! not sent by the whole nanosecond before its end is added to the next frame. Rounding errors of back-to-back frames
//! therefore do not accumulate. A frame whose transmission never ends stays in transmission.
//!
//! **Delay.** The delay of a frame is that at the time when its last bit departs. Frames do not overtake each other: if
//! the delay decreases, a frame arrives no earlier than the previous one (unless the link may reorder, see
//! [`crate::impairment`]).

use fullpipe_units::{Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// One change of the rate, the delay or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleStep {
    /// Time since the start of the run, or since the start of the period if the schedule repeats.
    pub at: Duration,
    /// The rate from then on, 0 for an outage; `None` if unchanged.
    pub rate: Option<Rate>,
    /// The propagation delay from then on; `None` if unchanged.
    pub delay: Option<Duration>,
}

/// Steps in order of time. Before the first step the link's own rate and delay apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSchedule {
    steps: Arc<[ScheduleStep]>,
    repeat: Option<Duration>,
}

/// The reason why a schedule is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// There are no steps.
    Empty,
    /// This step (counted from 0) is not later than the previous one.
    NotIncreasing(usize),
    /// The period ends before or at its last step.
    PeriodTooShort,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Empty => formatter.write_str("a schedule must have at least one step"),
            ScheduleError::NotIncreasing(step) => write!(formatter, "step {} is not later than step {step}", step + 1),
            ScheduleError::PeriodTooShort => formatter.write_str("the schedule must repeat after its last step"),
        }
    }
}

impl std::error::Error for ScheduleError {}

impl LinkSchedule {
    /// Returns a schedule of these steps. The schedule repeats with the period `repeat`, or not at all if `repeat` is
    /// `None`.
    ///
    /// # Errors
    /// If there is no step, if the times do not increase, or if the period ends before or at the last step.
    pub fn new(steps: Vec<ScheduleStep>, repeat: Option<Duration>) -> Result<LinkSchedule, ScheduleError> {
        let last = steps.last().ok_or(ScheduleError::Empty)?;
        if repeat.is_some_and(|round| round <= last.at) {
            return Err(ScheduleError::PeriodTooShort);
        }
        if let Some(before) = steps.windows(2).position(|pair| pair[1].at <= pair[0].at) {
            return Err(ScheduleError::NotIncreasing(before + 1));
        }
        Ok(LinkSchedule { steps: steps.into(), repeat })
    }

    /// Returns the schedule with an additional step in order of time. If there is a step at the same time, both are
    /// merged, and the values of the new step take precedence.
    ///
    /// ```
    /// use fullpipe_network::{LinkSchedule, ScheduleStep};
    /// use fullpipe_units::{Duration, Rate};
    /// let at = |seconds, rate| ScheduleStep {
    ///     at: Duration::from_secs(seconds),
    ///     rate: Some(Rate::from_bits_per_second(rate)),
    ///     delay: None,
    /// };
    /// let schedule = LinkSchedule::new(vec![at(1, 1000), at(5, 2000)], None).expect("times increase");
    /// assert_eq!(schedule.with_step(at(3, 3000)).steps(), [at(1, 1000), at(3, 3000), at(5, 2000)]);
    /// assert_eq!(schedule.with_step(at(5, 3000)).steps(), [at(1, 1000), at(5, 3000)]);
    /// ```
    #[must_use]
    pub fn with_step(&self, step: ScheduleStep) -> LinkSchedule {
        let mut steps = self.steps.to_vec();
        let place = steps.partition_point(|other| other.at < step.at);
        match steps.get_mut(place).filter(|other| other.at == step.at) {
            Some(other) => (other.rate, other.delay) = (step.rate.or(other.rate), step.delay.or(other.delay)),
            None => steps.insert(place, step),
        }
        LinkSchedule { steps: steps.into(), repeat: self.repeat }
    }

    /// Returns the schedule of a run that starts at `offset` within this schedule, modulo its period. A schedule that does
    /// not repeat is returned unchanged.
    ///
    /// ```
    /// use fullpipe_network::{LinkSchedule, ScheduleStep};
    /// use fullpipe_units::{Duration, Rate};
    /// let at = |seconds, rate| ScheduleStep {
    ///     at: Duration::from_secs(seconds),
    ///     rate: Some(Rate::from_bits_per_second(rate)),
    ///     delay: None,
    /// };
    /// let schedule = |steps| LinkSchedule::new(steps, Some(Duration::from_secs(10))).expect("times increase");
    /// let rotated = schedule(vec![at(0, 1000), at(4, 2000)]).starting_at(Duration::from_secs(1));
    /// assert_eq!(rotated, schedule(vec![at(0, 1000), at(3, 2000), at(9, 1000)]));
    /// ```
    #[must_use]
    pub fn starting_at(&self, offset: Duration) -> LinkSchedule {
        let Some(period) = self.repeat else { return self.clone() };
        let offset = Duration::from_nanos(offset.as_nanos() % period.as_nanos());
        let (before, after) = self.steps.split_at(self.steps.partition_point(|step| step.at <= offset));
        let last = before.iter().rev();
        let mut steps = Vec::with_capacity(self.steps.len() + 1);
        if !before.is_empty() {
            let (rate, delay) = (last.clone().find_map(|step| step.rate), last.clone().find_map(|step| step.delay));
            steps.push(ScheduleStep { at: Duration::ZERO, rate, delay });
        }
        steps.extend(after.iter().map(|step| ScheduleStep { at: step.at - offset, ..*step }));
        let earlier = before.iter().filter(|step| step.at < offset);
        steps.extend(earlier.map(|step| ScheduleStep { at: period - (offset - step.at), ..*step }));
        LinkSchedule { steps: steps.into(), repeat: self.repeat }
    }

    /// Returns the steps, in order of time.
    pub fn steps(&self) -> &[ScheduleStep] {
        &self.steps
    }

    /// Returns the rate set by the last step before or at an instant; `None` if no step has set it.
    pub fn rate_at(&self, at: Instant) -> Option<Rate> {
        let (rounds, offset) = match self.repeat {
            Some(round) => (at.as_nanos() / round.as_nanos(), at.as_nanos() % round.as_nanos()),
            None => (0, at.as_nanos()),
        };
        let taken = self.steps.partition_point(|step| step.at.as_nanos() <= offset);
        let before = if rounds > 0 { &self.steps[taken..] } else { &[] };
        self.steps[..taken].iter().rev().chain(before.iter().rev()).find_map(|step| step.rate)
    }

    /// Returns the mean rate of a link that has `rate` before the first step. Without repetition, this is the mean over
    /// a run of length `run`. Otherwise it is the mean over each period after the first, which starts with the last
    /// rate of the previous period.
    pub fn mean_rate(&self, rate: Rate, run: Duration) -> Rate {
        let (begin, span) = self.repeat.map_or((Duration::ZERO, run), |round| (round, round));
        let mut at = Duration::ZERO;
        let mut bits = 0u128;
        let later = self.steps.iter().map(|step| step.at).filter(|step| *step > Duration::ZERO && *step < span);
        for end in later.chain([span]) {
            let now = self.rate_at(Instant::ZERO + begin + at).unwrap_or(rate);
            bits += u128::from(now.bits_per_second()) * u128::from((end - at).as_nanos());
            at = end;
        }
        Rate::from_bits_per_second((bits / u128::from(span.as_nanos().max(1))) as u64)
    }

    /// Returns the length of a period; `None` if the schedule does not repeat.
    pub fn period(&self) -> Option<Duration> {
        self.repeat
    }
}

/// Units in a byte: 8 bits of 10^9 units each.
pub(crate) const UNITS_PER_BYTE: u128 = 8_000_000_000;

/// The position of a link in its schedule. Requests must be in order of time.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleCursor {
    schedule: LinkSchedule,
    /// Start of the current period.
    round: u64,
    /// The next step within the period.
    next: usize,
    /// Whether the first period is over; from then on all periods have the same values.
    settled: bool,
    rate: u64,
    delay: Duration,
    /// Units of the last frame that were left at its end, which is rounded down.
    carry: u128,
    /// Percentage by which rates are exceeded (an injected fault).
    too_fast: u64,
}

impl ScheduleCursor {
    pub(crate) fn new(schedule: LinkSchedule, rate: Rate, delay: Duration) -> Self {
        let mut table = ScheduleCursor {
            schedule,
            round: 0,
            next: 0,
            settled: false,
            rate: rate.bits_per_second(),
            delay,
            carry: 0,
            too_fast: 0,
        };
        table.advance(0);
        table
    }

    pub(crate) fn schedule(&self) -> &LinkSchedule {
        &self.schedule
    }

    /// Exceeds all rates by one percent from now on.
    pub(crate) fn exceed(&mut self) {
        self.too_fast = 1;
    }

    /// Returns the current number of units per nanosecond.
    fn speed(&self) -> u128 {
        u128::from(self.rate) + u128::from(self.rate) * u128::from(self.too_fast) / 100
    }

    /// Returns the time of the next step (or period); [`u64::MAX`] if there is none.
    fn boundary(&self) -> u64 {
        let offset = match (self.schedule.steps.get(self.next), self.schedule.repeat) {
            (Some(step), _) => step.at,
            (None, Some(round)) => round,
            (None, None) => return u64::MAX,
        };
        self.round.saturating_add(offset.as_nanos())
    }

    /// Applies the step at the boundary.
    fn step(&mut self) {
        match self.schedule.steps.get(self.next) {
            Some(step) => {
                self.rate = step.rate.map_or(self.rate, Rate::bits_per_second);
                self.delay = step.delay.unwrap_or(self.delay);
                self.next += 1;
            }
            None => {
                self.round = self.boundary();
                self.next = 0;
                self.settled = true;
            }
        }
    }

    /// Advances to an instant.
    fn advance(&mut self, at: u64) {
        while self.boundary() <= at && self.boundary() < u64::MAX {
            if let (true, 0, Some(round)) = (self.settled, self.next, self.schedule.repeat) {
                // Whole periods have no effect, because the values at the end of a period equal those at its start.
                let rounds = (at - self.round) / round.as_nanos();
                self.round += rounds * round.as_nanos();
                if rounds > 0 {
                    continue;
                }
            }
            self.step();
        }
    }

    /// Returns the number of units in a period, which does not depend on its starting point.
    fn units_per_round(&self, round: Duration) -> u128 {
        let mut rest = self.clone();
        let end = self.round.saturating_add(round.as_nanos()).saturating_add(self.offset());
        let mut at = self.round.saturating_add(self.offset());
        let mut units = 0;
        while at < end {
            let until = rest.boundary().min(end);
            units += rest.speed() * u128::from(until - at);
            at = until;
            if at < end {
                rest.step();
            }
        }
        units
    }

    /// Returns the offset of the last applied step within the period.
    fn offset(&self) -> u64 {
        self.next.checked_sub(1).map_or(0, |last| self.schedule.steps[last].at.as_nanos())
    }

    /// Returns when a frame that starts at `start` ends, and its delay; `None` if it never ends. If `idle` is true, the
    /// link was idle before, and the remainder of the previous frame is discarded.
    pub(crate) fn transmit(&mut self, start: Instant, wire_bytes: u32, idle: bool) -> Option<(Instant, Duration)> {
        let mut at = start.as_nanos();
        self.advance(at);
        let mut units = u128::from(wire_bytes) * UNITS_PER_BYTE + if idle { 0 } else { self.carry };
        let mut skipped = false;
        loop {
            let (speed, boundary) = (self.speed(), self.boundary());
            let room = speed * u128::from(boundary - at);
            if units < room {
                self.carry = units % speed;
                return Some((Instant::from_nanos(at + (units / speed) as u64), self.delay));
            }
            if boundary == u64::MAX {
                return None;
            }
            units -= room;
            at = boundary;
            self.step();
            if let (true, false, Some(round)) = (self.settled, skipped, self.schedule.repeat) {
                skipped = true;
                let per_round = self.units_per_round(round);
                let rounds = units.checked_div(per_round)?;
                let time = u64::try_from(rounds).ok()?.checked_mul(round.as_nanos())?;
                (at, self.round) = (at.checked_add(time)?, self.round.checked_add(time)?);
                units -= rounds * per_round;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_ns: u64, rate: u64) -> ScheduleStep {
        let rate = Some(Rate::from_bits_per_second(rate));
        ScheduleStep { at: Duration::from_nanos(at_ns), rate, delay: None }
    }

    fn table(steps: Vec<ScheduleStep>, repeat_ns: Option<u64>) -> ScheduleCursor {
        let schedule = LinkSchedule::new(steps, repeat_ns.map(Duration::from_nanos)).unwrap();
        ScheduleCursor::new(schedule, Rate::from_bits_per_second(8_000_000), Duration::ZERO)
    }

    fn end(table: &mut ScheduleCursor, start: u64, bytes: u32, idle: bool) -> Option<u64> {
        table.transmit(Instant::from_nanos(start), bytes, idle).map(|(at, _)| at.as_nanos())
    }

    #[test]
    fn a_frame_continues_at_the_new_rate() {
        // 8 Mbit/s: a byte per microsecond; from 400 us on 2 Mbit/s: a byte per 4 us. 1000 bytes from 0: 400 of them in
        // 400 us, 600 in 2400 us.
        let mut table = table(vec![step(400_000, 2_000_000)], None);
        assert_eq!(end(&mut table, 0, 1000, true), Some(2_800_000));
        assert_eq!(end(&mut table, 2_800_000, 1000, false), Some(6_800_000));
    }

    #[test]
    fn a_frame_waits_during_an_outage_and_forever_if_it_does_not_end() {
        // 400 bytes until 400 us, nothing until 1 ms, 600 bytes at 16 Mbit/s (0.5 us each): 1.3 ms.
        let mut table = table(vec![step(400_000, 0), step(1_000_000, 16_000_000), step(1_400_000, 0)], None);
        assert_eq!(end(&mut table, 0, 1000, true), Some(1_300_000));
        // 200 more bytes use the last 100 us to the last bit; the frame ends as the outage starts. One more byte never
        // ends.
        let mut same = table.clone();
        assert_eq!(end(&mut table, 1_300_000, 199, false), Some(1_399_500));
        assert_eq!(end(&mut same, 1_300_000, 201, false), None);
    }

    #[test]
    fn fractions_of_nanoseconds_are_carried_across_a_step() {
        // 3 bit/ns: a byte in 2.667 ns. Three bytes end at 2.667, 5.333, 8. From 4 ns on 7 bit/ns. Until 4 ns 12 bits
        // are sent; the last 4 bits of the second byte take 4/7: 4.571; the third ends 12/7 after 4: 5.714; the fourth
        // 20/7 after: 6.857.
        let fast = |table: &mut ScheduleCursor| table.rate = 3_000_000_000;
        let mut one = table(vec![step(1_000_000, 1)], None);
        fast(&mut one);
        let ends = [0, 2, 5].map(|start| end(&mut one, start, 1, start == 0).unwrap());
        assert_eq!(ends, [2, 5, 8]);
        let mut two = table(vec![step(4, 7_000_000_000)], None);
        fast(&mut two);
        let ends = [0, 2, 4, 5].map(|start| end(&mut two, start, 1, start == 0).unwrap());
        assert_eq!(ends, [2, 4, 5, 6]);
        // Fourteen more bytes: 20 + 112 = 132 bits after 4 ns: 18.857 ns.
        assert_eq!(end(&mut two, 6, 14, false), Some(22));
    }

    #[test]
    fn the_rate_at_an_instant_is_that_of_the_last_step() {
        let no_rate = ScheduleStep { at: Duration::from_nanos(20), rate: None, delay: Some(Duration::ZERO) };
        let steps = || vec![step(10, 3), no_rate, step(30, 0)];
        let rates = |repeat_ns: Option<u64>, instants: &[u64]| {
            let schedule = LinkSchedule::new(steps(), repeat_ns.map(Duration::from_nanos)).unwrap();
            let rate = |at: &u64| schedule.rate_at(Instant::from_nanos(*at)).map(Rate::bits_per_second);
            instants.iter().map(rate).collect::<Vec<_>>()
        };
        let instants = [0, 9, 10, 20, 29, 30, 1000];
        assert_eq!(rates(None, &instants), [None, None, Some(3), Some(3), Some(3), Some(0), Some(0)]);
        // The second period starts, at 40, with the rate at the end of the first.
        let instants = [9, 10, 39, 40, 49, 50, 69, 70, 40_000_000_049, 40_000_000_050];
        let expected = [0, 3, 0, 0, 0, 3, 3, 0, 0, 3].map(Some);
        assert_eq!(rates(Some(40), &instants)[1..], expected[1..]);
        assert_eq!(rates(Some(40), &instants)[0], None);
    }

    #[test]
    fn the_mean_rate_covers_a_period_or_the_run() {
        // 8 bit/s (the link's own) for 10 s, 2 bit/s for 20 s, an outage for 10 s.
        let seconds = Duration::from_secs;
        let steps = || vec![step(10_000_000_000, 2), step(30_000_000_000, 0)];
        let mean = |repeat: Option<u64>, run: u64| {
            let schedule = LinkSchedule::new(steps(), repeat.map(seconds)).unwrap();
            schedule.mean_rate(Rate::from_bits_per_second(8), seconds(run)).bits_per_second()
        };
        // (8 x 10 + 2 x 20) / 40 = 3; of the first 20 s (80 + 20) / 20 = 5; of the first 5 s 8.
        assert_eq!([40, 20, 5].map(|run| mean(None, run)), [3, 5, 8]);
        // A period after the first starts with the outage: 2 x 20 / 40 = 1, independent of the length of the run.
        assert_eq!([40, 20, 5].map(|run| mean(Some(40), run)), [1, 1, 1]);
    }

    #[test]
    fn periods_repeat_any_number_of_times() {
        // Each 1 ms: 8 Mbit/s for 0.25 ms (250 bytes), 4 Mbit/s for 0.5 ms (250 bytes), an outage for 0.25 ms: 500
        // bytes per period. The first period starts with the link's own 8 Mbit/s, and so do the others, because of the
        // step at 0.
        let steps = || vec![step(0, 8_000_000), step(250_000, 4_000_000), step(750_000, 0)];
        let mut table = table(steps(), Some(1_000_000));
        assert_eq!(end(&mut table, 0, 500 * 3 + 100, true), Some(3_100_000));
        // A million periods, without counting them one by one: 500 million bytes from 3.1 ms on, after the 150 bytes
        // that are left of the third period's first step.
        let mut later = table.clone();
        assert_eq!(end(&mut later, 3_100_000, 500_000_000, false), Some(1_000_003_100_000));
        assert_eq!(end(&mut table, 7_000_000_000_800_000, 1, true), Some(7_000_000_001_001_000));
    }

    #[test]
    fn a_schedule_with_only_outages_ends_no_frame() {
        let mut table = table(vec![step(5, 0)], Some(10));
        assert_eq!(end(&mut table, 7, 1, true), None);
    }

    #[test]
    fn the_delay_is_that_at_the_end_of_the_transmission() {
        let at = Duration::from_nanos;
        let steps = vec![ScheduleStep { at: at(1_000_000), rate: None, delay: Some(at(7)) }];
        let schedule = LinkSchedule::new(steps, None).unwrap();
        let mut table = ScheduleCursor::new(schedule, Rate::from_bits_per_second(8_000_000), at(50));
        // 999 bytes end before the step, one more byte ends at it.
        let found = [(0, 999), (999_000, 1)]
            .map(|(start, bytes)| table.transmit(Instant::from_nanos(start), bytes, start == 0).unwrap());
        assert_eq!(found, [(Instant::from_nanos(999_000), at(50)), (Instant::from_nanos(1_000_000), at(7))]);
    }

    /// Samples the rate and the delay of an idle link at an instant.
    fn values_at(schedule: &LinkSchedule, at_ns: u64) -> (u64, Duration) {
        let own = (Rate::from_bits_per_second(9), Duration::from_nanos(99));
        let mut table = ScheduleCursor::new(schedule.clone(), own.0, own.1);
        table.advance(at_ns);
        (table.rate, table.delay)
    }

    #[test]
    fn a_run_that_starts_within_a_schedule_has_its_later_values() {
        // From 10 ns on rate 3, from 20 on delay 7, from 30 on an outage; repeated after 40.
        let delayed = ScheduleStep { at: Duration::from_nanos(20), rate: None, delay: Some(Duration::from_nanos(7)) };
        let schedule =
            LinkSchedule::new(vec![step(10, 3), delayed, step(30, 0)], Some(Duration::from_nanos(40))).unwrap();
        for offset in 0..=85 {
            let rotated = schedule.starting_at(Duration::from_nanos(offset));
            for at in 0..130 {
                let expected = values_at(&schedule, offset % 40 + at);
                assert_eq!(values_at(&rotated, at), expected, "offset {offset}, at {at}");
            }
        }
        assert_eq!(schedule.starting_at(Duration::ZERO), schedule);
        let once = LinkSchedule::new(vec![step(10, 3)], None).unwrap();
        assert_eq!(once.starting_at(Duration::from_nanos(5)), once);
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        assert_eq!(LinkSchedule::new(vec![], None), Err(ScheduleError::Empty));
        assert_eq!(LinkSchedule::new(vec![step(5, 1), step(5, 2)], None), Err(ScheduleError::NotIncreasing(1)));
        assert_eq!(
            LinkSchedule::new(vec![step(5, 1)], Some(Duration::from_nanos(5))),
            Err(ScheduleError::PeriodTooShort)
        );
        assert_eq!(ScheduleError::NotIncreasing(1).to_string(), "step 2 is not later than step 1");
    }
}
