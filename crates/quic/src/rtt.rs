//! Round-trip time (RFC 9002 section 5). The estimator is that of TCP, with one difference. It subtracts the delay that
//! the peer reports from a sample, unless the result would be less than the smallest sample.

use fullpipe_units::{Duration, Instant};

/// kGranularity (RFC 9002 section 6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    latest: Duration,
    min: Duration,
    /// When the first sample was taken. Packets sent before do not count for persistent congestion.
    first_at: Option<Instant>,
    /// The result of [`RttEstimator::pto`], cached because each packet needs it and only a sample changes it.
    pto: Duration,
}

fn pto(smoothed: Duration, variation: Duration) -> Duration {
    smoothed.saturating_add(variation.saturating_mul(4).max(GRANULARITY))
}

impl RttEstimator {
    pub(crate) fn new(initial: Duration) -> RttEstimator {
        RttEstimator {
            smoothed: initial,
            variation: initial / 2,
            latest: Duration::ZERO,
            min: Duration::ZERO,
            first_at: None,
            pto: pto(initial, initial / 2),
        }
    }

    /// Adds a sample. `ack_delay` is the delay that the peer reports, already limited to its max_ack_delay.
    #[inline]
    pub(crate) fn on_sample(&mut self, now: Instant, latest: Duration, ack_delay: Duration) {
        self.latest = latest;
        if self.first_at.is_none() {
            self.first_at = Some(now);
            (self.min, self.smoothed, self.variation) = (latest, latest, latest / 2);
            self.pto = pto(self.smoothed, self.variation);
            return;
        }
        self.min = self.min.min(latest);
        let adjusted = if latest >= self.min + ack_delay { latest - ack_delay } else { latest };
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
        self.pto = pto(self.smoothed, self.variation);
    }

    #[inline]
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The smallest sample; zero before the first.
    #[inline]
    pub(crate) fn min(&self) -> Duration {
        self.min
    }

    pub(crate) fn first_at(&self) -> Option<Instant> {
        self.first_at
    }

    #[inline]
    pub(crate) fn has_sample(&self) -> bool {
        self.first_at.is_some()
    }

    /// The probe timeout without the peer's delay and without backoff (section 6.2.1).
    #[inline]
    pub(crate) fn pto(&self) -> Duration {
        self.pto
    }

    /// The time threshold of loss detection (section 6.1.2).
    #[inline]
    pub(crate) fn loss_delay(&self) -> Duration {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn estimator_follows_rfc_9002() {
        let mut rtt = RttEstimator::new(ms(333));
        // Section 6.2.2 and 6.2.1: 333 + 4 * 166.5 = 999 ms.
        assert_eq!(rtt.pto(), ms(999));
        rtt.on_sample(Instant::ZERO, ms(100), ms(50));
        // Section 5.3: the first sample is used unchanged. 100 + 4 * 50.
        assert_eq!((rtt.smoothed(), rtt.min(), rtt.pto()), (ms(100), ms(100), ms(300)));
        // 164 - 24 = 140: variation (3 * 50 + 40) / 4 = 47.5, smoothed (700 + 140) / 8 = 105.
        rtt.on_sample(Instant::ZERO, ms(164), ms(24));
        assert_eq!((rtt.smoothed(), rtt.pto()), (ms(105), ms(105) + ms(190)));
        // The result with the delay subtracted would be below the minimum, so the delay is ignored: variation (3 * 47.5
        // + 5) / 4 = 36.875, smoothed (735 + 110) / 8 = 105.625.
        rtt.on_sample(Instant::ZERO, ms(110), ms(24));
        assert_eq!(rtt.smoothed(), Duration::from_micros(105_625));
        assert_eq!(rtt.pto(), Duration::from_micros(105_625 + 4 * 36_875));
        // 9/8 of the larger of the smoothed and the latest round-trip time.
        assert_eq!(rtt.loss_delay(), Duration::from_nanos(110_000_000 * 9 / 8));
    }

    #[test]
    fn probe_timeout_is_at_least_the_granularity() {
        let mut rtt = RttEstimator::new(ms(333));
        for _ in 0..100 {
            rtt.on_sample(Instant::ZERO, Duration::from_micros(100), Duration::ZERO);
        }
        assert_eq!(rtt.pto(), Duration::from_micros(1100));
        assert_eq!(rtt.loss_delay(), ms(1));
    }
}
