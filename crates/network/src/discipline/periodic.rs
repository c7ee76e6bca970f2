//! Periodic updates, which are executed when the next packet arrives or departs.

use fullpipe_units::{Duration, Instant};

/// The instants of periodic updates, at a fixed interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeriodicTimer {
    next: Instant,
    interval: Duration,
}

impl PeriodicTimer {
    /// Returns a timer whose first instant is one interval after `start`. An interval of zero is treated as one
    /// nanosecond.
    pub(super) fn after(start: Instant, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_nanos(1));
        PeriodicTimer { next: start.saturating_add(interval), interval }
    }

    /// Returns the earliest instant, no later than `now`, that has not been returned yet.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.next > now || self.next.is_never() {
            return None;
        }
        let at = self.next;
        self.next = at.saturating_add(self.interval);
        Some(at)
    }

    /// Skips all instants up to `now`.
    pub(super) fn skip(&mut self, now: Instant) {
        if self.next <= now {
            let missed = now.saturating_since(self.next).as_nanos() / self.interval.as_nanos() + 1;
            self.next = self.next.saturating_add(self.interval.saturating_mul(missed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_gives_the_same_result_as_repeated_due() {
        let at = Instant::from_nanos;
        for (now, next) in [(99, 100), (100, 115), (114, 115), (115, 130), (1000, 1015)] {
            let mut counted = PeriodicTimer::after(at(85), Duration::from_nanos(15));
            let mut skipped = counted;
            while counted.due(at(now)).is_some() {}
            skipped.skip(at(now));
            assert_eq!((counted.next, skipped.next), (at(next), at(next)));
        }
        let mut last = PeriodicTimer::after(at(u64::MAX - 1), Duration::from_nanos(15));
        assert_eq!(last.due(Instant::NEVER), None);
    }
}
