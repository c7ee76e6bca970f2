//! Round-trip time estimation, and the retransmission timeout derived from it.
//!
//! **Model.** Each sample moves the smoothed round-trip time by an eighth of the difference, and the smoothed mean
//! deviation by a quarter of its difference. The timeout is the smoothed time plus four deviations, or plus the clock
//! granularity if that is larger, within bounds. Every expiry doubles the timeout until a new sample arrives.
//!
//! **Source.** RFC 6298 (June 2011), sections 2 and 5. The lower bound has two interpretations with different timeouts,
//! so the choice is explicit. With [`RtoFloor::Total`] (RFC 6298 rule 2.4) the whole timeout is at least the minimum.
//! With [`RtoFloor::Variation`] (Linux `tcp_rto_min`) the deviation term is at least the minimum, so the timeout is at
//! least the smoothed time plus the minimum. Linux also lets the deviation fall more slowly than it rises (`mdev_max`,
//! once per window); this is not modeled.
//!
//! [`WindowedMin`] keeps the minimum round-trip time of the whole connection or of a time window. For a window, it uses
//! the three-sample filter of Kathleen Nichols, as in Linux (`lib/win_minmax.c`).

use fullpipe_units::{Duration, Instant};

/// The part of the computed timeout to which the minimum applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtoFloor {
    /// `max(min_rto, srtt + max(granularity, 4 rttvar))`: RFC 6298 rule 2.4, and ns-3.
    #[default]
    Total,
    /// `srtt + max(min_rto, granularity, 4 rttvar)`: Linux.
    Variation,
}

/// Settings of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// Timeout before the first sample (RFC 6298 rule 2.1: one second).
    pub initial_rto: Duration,
    /// Lower bound, applied according to `floor` (RFC 6298 rule 2.4: one second; Linux: 200 ms).
    pub min_rto: Duration,
    /// Upper bound, also of the doubled timeout (RFC 6298 rule 2.5: at least 60 s; Linux: 120 s).
    pub max_rto: Duration,
    /// Clock granularity G (RFC 6298 rule 2.2).
    pub granularity: Duration,
    /// The term to which the lower bound applies.
    pub floor: RtoFloor,
    /// Window of the minimum round-trip time; [`Duration::MAX`] is the whole connection.
    pub min_rtt_window: Duration,
}

impl RttConfig {
    /// The values of RFC 6298.
    pub const RFC_6298: RttConfig = RttConfig {
        initial_rto: Duration::from_secs(1),
        min_rto: Duration::from_secs(1),
        max_rto: Duration::from_secs(60),
        granularity: Duration::from_millis(1),
        floor: RtoFloor::Total,
        min_rtt_window: Duration::MAX,
    };

    /// Linux's bounds (`TCP_RTO_MIN`, `TCP_RTO_MAX`), with the minimum round-trip time of the whole connection.
    pub const LINUX: RttConfig = RttConfig {
        initial_rto: Duration::from_secs(1),
        min_rto: Duration::from_millis(200),
        max_rto: Duration::from_secs(120),
        granularity: Duration::from_millis(1),
        floor: RtoFloor::Variation,
        min_rtt_window: Duration::MAX,
    };
}

impl Default for RttConfig {
    fn default() -> Self {
        Self::RFC_6298
    }
}

/// Estimator of the round-trip time: smoothed value, variation and minimum, and the timeout derived from them.
///
/// The settings are not stored, because many connections share them. Each call must pass the same settings.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    latest: Duration,
    /// The timeout without exponential backoff.
    base_rto: Duration,
    /// The timeout with backoff.
    rto: Duration,
    /// The minimum of the whole connection, or of the window if there is one.
    min: Duration,
    windowed: Option<Box<WindowedMin>>,
    sampled: bool,
    backoff: u8,
}

impl RttEstimator {
    /// Creates an estimator without a sample.
    pub fn new(config: &RttConfig) -> Self {
        let rto = config.initial_rto.min(config.max_rto);
        RttEstimator {
            base_rto: rto,
            rto,
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            latest: Duration::ZERO,
            min: Duration::MAX,
            windowed: (config.min_rtt_window != Duration::MAX)
                .then(|| Box::new(WindowedMin::new(config.min_rtt_window))),
            sampled: false,
            backoff: 0,
        }
    }

    /// Adds a sample and ends any backoff. The packet must have been sent only once (Karn's algorithm) or be identified
    /// by its timestamp.
    #[inline]
    pub fn on_sample(&mut self, config: &RttConfig, now: Instant, rtt: Duration) {
        self.latest = rtt;
        match &mut self.windowed {
            None => self.min = self.min.min(rtt),
            Some(windowed) => {
                windowed.update(now, rtt);
                self.min = windowed.get().unwrap_or(Duration::MAX);
            }
        }
        if self.sampled {
            // Rule 2.3. The variation is updated first, because it uses the old smoothed value.
            self.variation = toward::<4>(self.variation, self.smoothed.abs_diff(rtt));
            self.smoothed = toward::<8>(self.smoothed, rtt);
        } else {
            // Rule 2.2.
            self.sampled = true;
            self.smoothed = rtt;
            self.variation = rtt / 2;
        }
        let term = self.variation.saturating_mul(4).max(config.granularity);
        let rto = match config.floor {
            RtoFloor::Total => self.smoothed.saturating_add(term).max(config.min_rto),
            RtoFloor::Variation => self.smoothed.saturating_add(term.max(config.min_rto)),
        };
        self.set_rto(rto.min(config.max_rto));
    }

    /// Sets the timeout and ends the backoff.
    #[inline]
    fn set_rto(&mut self, rto: Duration) {
        self.base_rto = rto;
        self.rto = rto;
        self.backoff = 0;
    }

    /// The retransmission timeout with backoff (RFC 6298 rule 5.5).
    #[inline]
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Doubles the timeout, because the timer expired (RFC 6298 rule 5.5).
    pub fn on_timeout(&mut self, config: &RttConfig) {
        self.backoff = self.backoff.saturating_add(1);
        self.rto = self.rto.saturating_mul(2).min(config.max_rto);
    }

    /// The number of times that the timeout has been doubled.
    pub fn backoff(&self) -> u8 {
        self.backoff
    }

    /// Ends the backoff without a sample, when new data was acknowledged but Karn's algorithm forbids a sample.
    pub fn reset_backoff(&mut self) {
        self.set_rto(self.base_rto);
    }

    /// Sets the timeout for data after a handshake in which the SYN was retransmitted (RFC 6298 rule 5.7). The value is
    /// three seconds, or the initial timeout if it is longer. Has no effect if there is a sample.
    pub fn on_lost_syn(&mut self, config: &RttConfig) {
        if !self.sampled {
            self.set_rto(config.initial_rto.max(Duration::from_secs(3)).min(config.max_rto));
        }
    }

    /// Smoothed round-trip time; zero before the first sample.
    #[inline]
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Smoothed mean deviation (RTTVAR).
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The last sample; zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Smallest round-trip time in the window; `None` before the first sample.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }

    /// Whether there has been a sample.
    pub fn has_sample(&self) -> bool {
        self.sampled
    }
}

/// `value` moved by 1/`GAIN` of its distance to `sample`; cannot overflow.
#[inline(always)]
fn toward<const GAIN: u64>(value: Duration, sample: Duration) -> Duration {
    if sample >= value { value + (sample - value) / GAIN } else { value - (value - sample) / GAIN }
}

/// The smallest value in a sliding time window, in constant memory.
///
/// The filter keeps the best, second-best and third-best values, each later than the one before. It drops a value that
/// is older than the window. It renews the second value after a quarter of the window and the third after half. A
/// replacement is then available when the best value expires. The result is never older than the window, and never
/// below the true minimum of the window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin {
    window: Duration,
    best: [(Instant, Duration); 3],
}

impl WindowedMin {
    /// Creates an empty filter. With a window of [`Duration::MAX`], it never drops a value.
    pub const fn new(window: Duration) -> Self {
        WindowedMin { window, best: [(Instant::ZERO, Duration::MAX); 3] }
    }

    /// Adds a value measured now.
    #[inline]
    pub fn update(&mut self, now: Instant, value: Duration) {
        let sample = (now, value);
        if value <= self.best[0].1 || now.saturating_since(self.best[2].0) > self.window {
            // A new minimum replaces all values, and so does a value after a gap in which all three have expired.
            self.best = [sample; 3];
            return;
        }
        if self.window == Duration::MAX {
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.age(sample);
    }

    fn age(&mut self, sample: (Instant, Duration)) {
        let age = sample.0.saturating_since(self.best[0].0);
        if age > self.window {
            // The best value has expired: the others move up, twice if the second has expired too.
            self.best = [self.best[1], self.best[2], sample];
            if sample.0.saturating_since(self.best[0].0) > self.window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > self.window / 4 {
            // A quarter of the window has passed without a later second value, so use this one.
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > self.window / 2 {
            self.best[2] = sample;
        }
    }

    /// The minimum; `None` if there is no value yet.
    #[inline]
    pub fn get(&self) -> Option<Duration> {
        if self.best[0].1 == Duration::MAX { None } else { Some(self.best[0].1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn config(min_rto_ms: u64, floor: RtoFloor) -> RttConfig {
        RttConfig { min_rto: MS * min_rto_ms, floor, ..RttConfig::RFC_6298 }
    }

    fn after(config: RttConfig, samples_ms: &[u64]) -> RttEstimator {
        let mut estimator = RttEstimator::new(&config);
        for (n, sample) in samples_ms.iter().enumerate() {
            estimator.on_sample(&config, Instant::ZERO + MS * n as u64, MS * *sample);
        }
        estimator
    }

    #[test]
    fn the_estimate_matches_values_computed_by_hand() {
        // RFC 6298 rules 2.2 and 2.3.
        // 100 ms: srtt 100, rttvar 50, time-out 100 + 200 = 300.
        // 140 ms: rttvar 3/4 * 50 + 1/4 * 40 = 47.5, srtt 7/8 * 100 + 1/8 * 140 = 105, time-out 105 + 190 = 295.
        //  60 ms: rttvar 3/4 * 47.5 + 1/4 * 45 = 46.875, srtt 7/8 * 105 + 1/8 * 60 = 99.375, time-out 286.875.
        for (samples, smoothed, variation, rto) in [
            (&[100][..], 100_000, 50_000, 300_000),
            (&[100, 140], 105_000, 47_500, 295_000),
            (&[100, 140, 60], 99_375, 46_875, 286_875),
        ] {
            let estimator = after(config(0, RtoFloor::Total), samples);
            assert_eq!(estimator.smoothed(), Duration::from_micros(smoothed));
            assert_eq!(estimator.variation(), Duration::from_micros(variation));
            assert_eq!(estimator.rto(), Duration::from_micros(rto));
            assert_eq!(estimator.latest(), MS * samples[samples.len() - 1]);
        }
    }

    #[test]
    fn the_lower_bound_applies_to_the_total_or_to_the_variation() {
        // After 100, 140, 60 ms: srtt 99.375, 4 rttvar 187.5, sum 286.875. A minimum of 200 ms does not affect the sum
        // but replaces the 187.5; a minimum of 400 ms replaces either.
        let samples = [100, 140, 60];
        assert_eq!(after(config(200, RtoFloor::Total), &samples).rto(), Duration::from_micros(286_875));
        assert_eq!(after(config(200, RtoFloor::Variation), &samples).rto(), Duration::from_micros(299_375));
        assert_eq!(after(config(400, RtoFloor::Total), &samples).rto(), MS * 400);
        assert_eq!(after(config(400, RtoFloor::Variation), &samples).rto(), Duration::from_micros(499_375));
        // The presets: with RFC 6298 at least one second, with Linux srtt + 200 ms.
        assert_eq!(after(RttConfig::RFC_6298, &samples).rto(), Duration::from_secs(1));
        assert_eq!(after(RttConfig::LINUX, &samples).rto(), Duration::from_micros(299_375));
    }

    #[test]
    fn the_variation_term_of_a_constant_round_trip_time_is_the_granularity() {
        // The deviation decays by 3/4 per sample. After 200 samples it is zero, and rule 2.2 adds G instead.
        let estimator = after(config(0, RtoFloor::Total), &[50; 200]);
        assert_eq!(estimator.smoothed(), MS * 50);
        assert_eq!(estimator.rto(), MS * 51);
        let coarse = RttConfig { granularity: MS * 100, ..config(0, RtoFloor::Variation) };
        assert_eq!(after(coarse, &[50; 200]).rto(), MS * 150);
    }

    #[test]
    fn the_time_out_before_a_sample_is_the_initial_value() {
        let config = RttConfig::default();
        let mut estimator = RttEstimator::new(&config);
        assert!(!estimator.has_sample());
        assert_eq!((estimator.smoothed(), estimator.min()), (Duration::ZERO, None));
        assert_eq!(estimator.rto(), Duration::from_secs(1));
        // Rule 5.7: three seconds after a lost SYN, and the doubling is reset.
        estimator.on_timeout(&config);
        estimator.on_lost_syn(&config);
        assert_eq!((estimator.rto(), estimator.backoff()), (Duration::from_secs(3), 0));
        // This does not apply if the handshake gave a sample.
        let mut estimator = after(config, &[100]);
        assert!(estimator.has_sample());
        estimator.on_lost_syn(&config);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
    }

    #[test]
    fn backoff_doubles_up_to_the_upper_bound_and_ends_with_a_sample() {
        let config = RttConfig::RFC_6298;
        let mut estimator = after(config, &[100]);
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.push(estimator.rto().as_nanos() / 1_000_000_000);
            estimator.on_timeout(&config);
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(estimator.backoff(), 8);
        for _ in 0..1_000 {
            estimator.on_timeout(&config);
        }
        assert_eq!(estimator.rto(), Duration::from_secs(60));
        estimator.on_sample(&config, Instant::ZERO, MS * 100);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
        estimator.on_timeout(&config);
        estimator.reset_backoff();
        assert_eq!(estimator.rto(), Duration::from_secs(1));
    }

    #[test]
    fn the_upper_bound_also_applies_without_backoff() {
        assert_eq!(after(RttConfig::RFC_6298, &[90_000]).rto(), Duration::from_secs(60));
        assert_eq!(after(RttConfig::LINUX, &[90_000]).rto(), Duration::from_secs(120));
    }

    #[test]
    fn the_minimum_of_the_whole_connection_never_rises() {
        let estimator = after(RttConfig::default(), &[100, 90, 95, 300]);
        assert_eq!(estimator.min(), Some(MS * 90));
    }

    #[test]
    fn the_minimum_of_a_window_drops_old_values() {
        let mut min = WindowedMin::new(MS * 100);
        min.update(Instant::ZERO, MS * 10);
        for n in 1..=100 {
            min.update(Instant::ZERO + MS * n, MS * 20);
            assert_eq!(min.get(), Some(MS * 10), "at {n} ms");
        }
        min.update(Instant::ZERO + MS * 101, MS * 20);
        assert_eq!(min.get(), Some(MS * 20));
        // After a gap longer than the window, the next value is the minimum.
        min.update(Instant::ZERO + MS * 1_000, MS * 70);
        assert_eq!(min.get(), Some(MS * 70));
    }

    #[test]
    fn the_minimum_of_a_window_has_a_successor_from_a_later_quarter() {
        // Rising values, one per millisecond, window 100 ms. The successor of the first value (at 0 ms) must be from
        // the middle of the window, not the last one. When the first expires at 101 ms, the result is the second value,
        // which was stored after a quarter: the value of 26 ms.
        let mut min = WindowedMin::new(MS * 100);
        for n in 0..=101 {
            min.update(Instant::ZERO + MS * n, MS * (10 + n));
        }
        assert_eq!(min.get(), Some(MS * 36));
        // The third value, stored after half the window (at 51 ms), follows when the second has expired too.
        for n in 102..=127 {
            min.update(Instant::ZERO + MS * n, MS * (10 + n));
        }
        assert_eq!(min.get(), Some(MS * 61));
    }

    proptest! {
        #[test]
        fn the_windowed_minimum_is_a_recent_value_and_not_below_the_true_one(
            steps in prop::collection::vec((0..40u64, 1..1_000u64), 1..300),
            window in 1..500u64,
        ) {
            let mut min = WindowedMin::new(Duration::from_nanos(window));
            let mut past: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (wait, value) in steps {
                now += wait;
                past.push((now, value));
                min.update(Instant::from_nanos(now), Duration::from_nanos(value));
                let answer = min.get().expect("the filter has a value").as_nanos();
                let recent = past.iter().filter(|(at, _)| now - at <= window).map(|(_, value)| *value);
                prop_assert!(recent.clone().any(|value| value == answer), "{answer} is not in the window");
                prop_assert!(answer >= recent.min().expect("the window contains the current value"));
                prop_assert!(answer <= value);
            }
        }

        #[test]
        fn any_samples_keep_the_time_out_within_its_bounds(
            samples in prop::collection::vec(prop_oneof![any::<u64>(), 0..1_000_000_000u64], 1..50),
            timeouts in 0..300usize,
            linux: bool,
        ) {
            let config = if linux { RttConfig::LINUX } else { RttConfig::RFC_6298 };
            let mut estimator = RttEstimator::new(&config);
            for sample in &samples {
                estimator.on_sample(&config, Instant::from_nanos(*sample), Duration::from_nanos(*sample));
                let (low, high) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
                prop_assert!((*low..=*high).contains(&estimator.smoothed().as_nanos()));
            }
            for _ in 0..timeouts {
                estimator.on_timeout(&config);
            }
            prop_assert!(estimator.rto() >= config.min_rto && estimator.rto() <= config.max_rto);
        }
    }
}
