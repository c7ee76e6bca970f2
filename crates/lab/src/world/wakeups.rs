//! The times at which programs wake up: a reaction time after the arrival of a datagram at their socket, and when their
//! timers expire.
//!
//! When a program wakes up, it handles all datagrams that have arrived. The reaction time includes the scheduling of
//! the program by the machine and the program's work. It is tens of microseconds or more, and it can be random. A
//! constant reaction time would synchronize endpoints with periodic networks, such as the subframes of a cell. Real
//! programs are not synchronized with them.
//!
//! Timers of event loops have a granularity (tokio and epoll: 1 ms) and never fire early. A packet that is due after a
//! pacing delay is sent at the next tick of the loop. The phase of the ticks is random.

use fullpipe_units::{Duration, Instant, RandomStream};
use fullpipe_workload::Distribution;

/// The parameters of wakeups.
#[derive(Clone, Debug)]
pub(super) struct WakeupTiming {
    /// Seconds from the arrival of a datagram to the reaction.
    pub(super) reaction: Distribution,
    /// Interval between two ticks of the timers; zero means exact timers.
    pub(super) timer_granularity: Duration,
}

/// The wakeups of a program.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// The reaction time; `None` if the program reacts immediately.
    reaction: Option<Box<(Distribution, RandomStream)>>,
    /// The next wakeup for datagrams that have arrived.
    due: Option<Instant>,
    granularity: Duration,
    /// The time of the first tick.
    first_tick: Duration,
}

impl Wakeups {
    /// Creates the wakeups of a program with this timing.
    pub(super) fn new(timing: &WakeupTiming, mut random: RandomStream) -> Self {
        let WakeupTiming { reaction, timer_granularity } = timing;
        let at_once = matches!(reaction, Distribution::Constant { value } if *value == 0.0);
        Wakeups {
            due: None,
            granularity: *timer_granularity,
            first_tick: random.uniform_duration(*timer_granularity),
            reaction: (!at_once).then(|| Box::new((reaction.clone(), random))),
        }
    }

    /// Combines the wakeups of two programs at one host. The longer mean reaction time and the coarser timers apply to
    /// both.
    pub(super) fn slow_down(&mut self, other: Wakeups) {
        let mean = |of: &Wakeups| of.reaction.as_deref().map_or(0.0, |(seconds, _)| seconds.mean());
        if other.granularity > self.granularity {
            (self.granularity, self.first_tick) = (other.granularity, other.first_tick);
        }
        if mean(&other) > mean(self) {
            self.reaction = other.reaction;
        }
    }

    /// Returns whether the program reacts to a datagram immediately.
    pub(super) fn is_at_once(&self) -> bool {
        self.reaction.is_none()
    }

    /// Schedules a wakeup after the arrival of a datagram. Returns its time; `None` if a wakeup is already scheduled,
    /// or if the program reacts immediately.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Instant> {
        let (seconds, random) = self.reaction.as_deref_mut().filter(|_| self.due.is_none())?;
        let at = now.saturating_add(seconds.sample_duration(random));
        self.due = Some(at);
        Some(at)
    }

    /// Ends a wakeup: the program has handled all datagrams.
    pub(super) fn end(&mut self) {
        self.due = None;
    }

    /// Returns the time at which a timer that is set to `at` fires.
    pub(super) fn tick(&self, at: Instant) -> Instant {
        if self.granularity.is_zero() || at == Instant::NEVER {
            return at;
        }
        let (granularity, first) = (self.granularity.as_nanos(), self.first_tick.as_nanos());
        let ticks = at.as_nanos().saturating_sub(first).div_ceil(granularity);
        Instant::from_nanos(ticks.saturating_mul(granularity).saturating_add(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks are 1 ms apart, the first within the first millisecond. A timer fires at the first tick that is not before
    /// it.
    #[test]
    fn timers_fire_at_ticks() {
        let timing =
            |timer_granularity| WakeupTiming { reaction: Distribution::Constant { value: 0.0 }, timer_granularity };
        let wakeups = Wakeups::new(&timing(Duration::from_millis(1)), RandomStream::new(1, "end", "reaction"));
        let first = wakeups.tick(Instant::ZERO);
        assert!(first > Instant::ZERO && first < Instant::from_nanos(1_000_000), "{first:?}");
        let after = |nanoseconds| Instant::from_nanos(first.as_nanos() + nanoseconds);
        for (at, fires) in
            [(0, 0), (1, 1_000_000), (999_999, 1_000_000), (1_000_000, 1_000_000), (1_000_001, 2_000_000)]
        {
            assert_eq!(wakeups.tick(after(at)), after(fires));
        }
        assert_eq!(wakeups.tick(Instant::NEVER), Instant::NEVER);
        let exact = Wakeups::new(&timing(Duration::ZERO), RandomStream::new(1, "end", "reaction"));
        assert_eq!(exact.tick(after(1)), after(1));
    }
}
