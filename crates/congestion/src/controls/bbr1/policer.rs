//! Detects a token-bucket policer: a device that forwards a fixed rate, plus bursts from saved tokens, and drops the
//! rest.
//!
//! **Model.** The largest delivery rate includes the bursts that a policer forwards, and a sender at that rate loses
//! most of its packets. From the first loss on, the control therefore measures the rate over intervals of four to
//! sixteen rounds. An interval ends with a loss, if about one byte was lost for five delivered (at least 50/256). If
//! two successive intervals have nearly the same rate (within an eighth, or 4 kbit/s), the control assumes a policer.
//! The bandwidth is then the mean of both rates for 48 rounds of PROBE_BW, with a gain of 1. An application-limited
//! phase discards the measurement.
//!
//! **Source.** Linux 6.12 `net/ipv4/tcp_bbr.c` (`bbr_lt_bw_sampling`). The draft does not specify this detector.

use fullpipe_units::Instant;

const SHORTEST_ROUNDS: u8 = 4;
const LONGEST_ROUNDS: u8 = 4 * SHORTEST_ROUNDS;
const BELIEVED_ROUNDS: u8 = 48;
/// The minimum number of bytes lost per 256 bytes delivered in an interval.
const LOST_OF_256: u64 = 50;
/// Two rates are equal if they differ by at most this fraction of the first, or by this many bits per second.
const SAME_PART: u64 = 8;
const SAME_BPS: u64 = 4_000;
/// The shortest interval; Linux counts whole milliseconds.
const SHORTEST_MILLISECONDS: u64 = 1;

/// The values of an acknowledgment that the detector uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicerSample {
    pub(crate) now: Instant,
    pub(crate) delivered_bytes: u64,
    pub(crate) lost: bool,
    pub(crate) app_limited: bool,
    pub(crate) round_start: bool,
}

/// The action of the control after an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicerAction {
    None,
    /// The policer's rate has been used for the maximum time; probe again.
    ProbeAgain,
}

/// The state of the detector, which measures the long-term rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PolicerDetector {
    lost_bytes: u64,
    sampling: bool,
    believed: bool,
    rounds: u8,
    /// The rate of the last interval, or that of the policer; 0 if there is none.
    rate_bps: u64,
    // Values at the start of the interval.
    start_at: Instant,
    start_delivered_bytes: u64,
    start_lost_bytes: u64,
}

impl PolicerDetector {
    /// The policer's rate in bits per second, if one is detected.
    pub(crate) fn bandwidth(&self) -> Option<u64> {
        self.believed.then_some(self.rate_bps)
    }

    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Resets the detector at the beginning of the connection.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.forget(now, 0);
    }

    /// Discards the measurements.
    pub(crate) fn forget(&mut self, now: Instant, delivered_bytes: u64) {
        self.rate_bps = 0;
        self.believed = false;
        self.sampling = false;
        self.begin(now, delivered_bytes);
    }

    fn begin(&mut self, now: Instant, delivered_bytes: u64) {
        self.start_at = now;
        self.start_delivered_bytes = delivered_bytes;
        self.start_lost_bytes = self.lost_bytes;
        self.rounds = 0;
    }

    pub(crate) fn on_ack(&mut self, event: &PolicerSample, probing_bandwidth: bool) -> PolicerAction {
        if self.believed {
            if probing_bandwidth && event.round_start {
                self.rounds += 1;
                if self.rounds >= BELIEVED_ROUNDS {
                    self.forget(event.now, event.delivered_bytes);
                    return PolicerAction::ProbeAgain;
                }
            }
            return PolicerAction::None;
        }
        if !self.sampling {
            if !event.lost {
                return PolicerAction::None;
            }
            self.begin(event.now, event.delivered_bytes);
            self.sampling = true;
        }
        self.rounds += u8::from(event.round_start);
        if event.app_limited || self.rounds > LONGEST_ROUNDS {
            self.forget(event.now, event.delivered_bytes);
        } else if self.rounds >= SHORTEST_ROUNDS && event.lost {
            self.end(event);
        }
        PolicerAction::None
    }

    /// Ends the interval at a loss, if it is long enough.
    fn end(&mut self, event: &PolicerSample) {
        let lost = self.lost_bytes.saturating_sub(self.start_lost_bytes);
        let delivered = event.delivered_bytes.saturating_sub(self.start_delivered_bytes);
        if delivered == 0 || lost.saturating_mul(256) < delivered.saturating_mul(LOST_OF_256) {
            return;
        }
        let milliseconds = event.now.saturating_since(self.start_at).as_nanos() / 1_000_000;
        if milliseconds < SHORTEST_MILLISECONDS {
            return;
        }
        let bps = u128::from(delivered) * 8_000 / u128::from(milliseconds);
        let bps = u64::try_from(bps).unwrap_or(u64::MAX);
        let same = bps.abs_diff(self.rate_bps) <= (self.rate_bps / SAME_PART).max(SAME_BPS);
        if self.rate_bps > 0 && same {
            self.rate_bps = self.rate_bps.midpoint(bps);
            self.believed = true;
            self.rounds = 0;
        } else {
            self.rate_bps = bps;
            self.begin(event.now, event.delivered_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Duration;

    /// A round of 100 ms with this much delivered and lost. The loss is detected at its end.
    fn round(policer: &mut PolicerDetector, state: &mut (u64, u64), delivered: u64, lost: u64) -> PolicerAction {
        state.0 += 100;
        state.1 += delivered;
        policer.on_lost(lost);
        let event = PolicerSample {
            now: Instant::ZERO + Duration::from_millis(state.0),
            delivered_bytes: state.1,
            lost: lost > 0,
            app_limited: false,
            round_start: true,
        };
        policer.on_ack(&event, true)
    }

    #[test]
    fn two_intervals_with_the_same_rate_indicate_a_policer() {
        // 125 000 bytes per round of 100 ms are 10 Mbit/s. A loss of 25 000 bytes is 51/256, above 50/256.
        let (mut policer, mut state) = (PolicerDetector::default(), (0, 0));
        for n in 1..=8 {
            round(&mut policer, &mut state, 125_000, 25_000);
            // The loss of the first round begins the first interval and counts as its first round. The interval thus
            // ends with the fourth round: three rounds of 125 000 bytes in 300 ms. The second interval needs four more:
            // 8 rounds.
            assert_eq!(policer.bandwidth(), (n == 8).then_some(10_000_000), "{n}");
        }
        // The rate is used for 48 rounds.
        for n in 1..=48 {
            let verdict = round(&mut policer, &mut state, 125_000, 25_000);
            assert_eq!(verdict == PolicerAction::ProbeAgain, n == 48, "{n}");
        }
        assert_eq!(policer.bandwidth(), None);
    }

    #[test]
    fn an_interval_with_a_lower_loss_ratio_does_not_count() {
        // 24 000 of 125 000 bytes are 49.2/256.
        let (mut policer, mut state) = (PolicerDetector::default(), (0, 0));
        for _ in 0..60 {
            round(&mut policer, &mut state, 125_000, 24_000);
            assert_eq!(policer.bandwidth(), None);
        }
    }

    #[test]
    fn rates_that_differ_by_more_than_an_eighth_do_not_indicate_a_policer() {
        // The first interval has 10 Mbit/s, the second exactly an eighth more (11.25 Mbit/s) or slightly more than
        // that.
        for (second, same) in [(140_625, true), (140_700, false)] {
            let (mut policer, mut state) = (PolicerDetector::default(), (0, 0));
            for _ in 0..4 {
                round(&mut policer, &mut state, 125_000, 40_000);
            }
            for _ in 0..4 {
                round(&mut policer, &mut state, second, 40_000);
            }
            assert_eq!(policer.bandwidth(), same.then_some(10_625_000), "{second}");
        }
    }

    #[test]
    fn an_application_limited_phase_ends_the_measurement() {
        let (mut policer, mut state) = (PolicerDetector::default(), (0, 0));
        for _ in 0..7 {
            round(&mut policer, &mut state, 125_000, 25_000);
        }
        let event = PolicerSample {
            now: Instant::ZERO + Duration::from_millis(state.0 + 1),
            delivered_bytes: state.1,
            lost: true,
            app_limited: true,
            round_start: false,
        };
        policer.on_ack(&event, true);
        for n in 1..=8 {
            round(&mut policer, &mut state, 125_000, 25_000);
            assert_eq!(policer.bandwidth().is_some(), n == 8, "{n}");
        }
    }

    #[test]
    fn an_interval_without_a_final_loss_is_discarded_after_sixteen_rounds() {
        let (mut policer, mut state) = (PolicerDetector::default(), (0, 0));
        round(&mut policer, &mut state, 125_000, 25_000);
        for _ in 0..15 {
            round(&mut policer, &mut state, 125_000, 0);
        }
        assert!(policer.sampling);
        round(&mut policer, &mut state, 125_000, 0);
        assert!(!policer.sampling);
    }
}
