//! When programs wake up: some time after a datagram has come to their socket, and when a timer of theirs is due.
//!
//! A program deals with all that has come since it was woken. The time until then is what the machine takes to run it and the program
//! to do its work, from some tens of microseconds on. It may be drawn anew each time: where it is always the same, or nothing, ends
//! keep step with networks that work in a rhythm (a cell's subframes), which no program does.
//!
//! Timers of event loops have a granularity (tokio's and epoll's: 1 ms) and are never early: what a stack wants to send after a pacing
//! delay leaves at the loop's next tick. Where its ticks lie is random.

use fullpipe_units::{Duration, Instant, Stream};
use fullpipe_workload::Distribution;

/// What decides when programs wake up.
#[derive(Clone, Debug)]
pub(super) struct WakeupTiming {
    /// Seconds from a datagram's arrival to what they do about it.
    pub(super) reaction: Distribution,
    /// Between two ticks of their timers; zero: timers are exact.
    pub(super) timer_granularity: Duration,
}

/// When a program wakes up.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// None: it reacts at once.
    reaction: Option<Box<(Distribution, Stream)>>,
    /// When it looks at what has come.
    due: Option<Instant>,
    granularity: Duration,
    /// Its first tick.
    first_tick: Duration,
}

impl Wakeups {
    /// Of a program with this timing.
    pub(super) fn new(timing: &WakeupTiming, mut random: Stream) -> Self {
        let WakeupTiming { reaction, timer_granularity } = timing;
        let at_once = matches!(reaction, Distribution::Constant { value } if *value == 0.0);
        Wakeups {
            due: None,
            granularity: *timer_granularity,
            first_tick: random.duration_below(*timer_granularity),
            reaction: (!at_once).then(|| Box::new((reaction.clone(), random))),
        }
    }

    /// Of two programs at one host, that which takes longer to react on average is waited for, and the coarser timers count.
    pub(super) fn slow_down(&mut self, other: Wakeups) {
        let mean = |of: &Wakeups| of.reaction.as_deref().map_or(0.0, |(seconds, _)| seconds.mean());
        if other.granularity > self.granularity {
            (self.granularity, self.first_tick) = (other.granularity, other.first_tick);
        }
        if mean(&other) > mean(self) {
            self.reaction = other.reaction;
        }
    }

    /// Whether it deals with a datagram as soon as that has come.
    pub(super) fn is_at_once(&self) -> bool {
        self.reaction.is_none()
    }

    /// A datagram has come. Returns when the program looks at it, if that was not known before.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Instant> {
        let (seconds, random) = self.reaction.as_deref_mut().filter(|_| self.due.is_none())?;
        let at = now.saturating_add(seconds.sample_duration(random));
        self.due = Some(at);
        Some(at)
    }

    /// It has looked at all that has come.
    pub(super) fn end(&mut self) {
        self.due = None;
    }

    /// When a timer wakes it up that is set to `at`.
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

    /// Ticks lie 1 ms apart, the first within the first millisecond; a timer rings at the first that is not before it.
    #[test]
    fn timers_ring_at_ticks() {
        let timing =
            |timer_granularity| WakeupTiming { reaction: Distribution::Constant { value: 0.0 }, timer_granularity };
        let wakeups = Wakeups::new(&timing(Duration::from_millis(1)), Stream::new(1, "end", "reaction"));
        let first = wakeups.tick(Instant::ZERO);
        assert!(first > Instant::ZERO && first < Instant::from_nanos(1_000_000), "{first:?}");
        let after = |nanoseconds| Instant::from_nanos(first.as_nanos() + nanoseconds);
        for (at, rings) in
            [(0, 0), (1, 1_000_000), (999_999, 1_000_000), (1_000_000, 1_000_000), (1_000_001, 2_000_000)]
        {
            assert_eq!(wakeups.tick(after(at)), after(rings));
        }
        assert_eq!(wakeups.tick(Instant::NEVER), Instant::NEVER);
        let exact = Wakeups::new(&timing(Duration::ZERO), Stream::new(1, "end", "reaction"));
        assert_eq!(exact.tick(after(1)), after(1));
    }
}
