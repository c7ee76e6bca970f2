//! Something to be done every so often, made up for when a packet comes or leaves.

use fullpipe_units::{Duration, Instant};

/// Instants a fixed interval apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periodic {
    next: Instant,
    interval: Duration,
}

impl Periodic {
    /// First due one interval after `start`. An interval of zero is taken as a nanosecond.
    pub(super) fn after(start: Instant, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_nanos(1));
        Periodic { next: start.saturating_add(interval), interval }
    }

    /// The earliest instant not later than `now` that was not yet given.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.next > now || self.next.is_never() {
            return None;
        }
        let at = self.next;
        self.next = at.saturating_add(self.interval);
        Some(at)
    }

    /// Passes over all instants up to `now`.
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
    fn skipping_gives_what_counting_gives() {
        let at = Instant::from_nanos;
        for (now, next) in [(99, 100), (100, 115), (114, 115), (115, 130), (1000, 1015)] {
            let mut counted = Periodic::after(at(85), Duration::from_nanos(15));
            let mut skipped = counted;
            while counted.due(at(now)).is_some() {}
            skipped.skip(at(now));
            assert_eq!((counted.next, skipped.next), (at(next), at(next)));
        }
        let mut last = Periodic::after(at(u64::MAX - 1), Duration::from_nanos(15));
        assert_eq!(last.due(Instant::NEVER), None);
    }
}
