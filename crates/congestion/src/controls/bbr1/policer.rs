//! Recognises a token-bucket policer: a device that lets a fixed rate through, saves up for bursts, and drops the rest.
//!
//! **Model.** To a measurement of the largest delivery rate the saved-up bursts look like bandwidth, and sending at
//! that rate loses most of what is sent. So from the first loss on, the rate over stretches of four to sixteen rounds
//! that end with a loss and lost at least one byte for five delivered (50/256) is measured. Two stretches in a row with
//! nearly the same rate (within an eighth, or 4 kbit/s) are taken for a policer's: their mean is then the bandwidth,
//! for 48 rounds of PROBE_BW, with a gain of 1. Limits of the application end a measurement.
//!
//! **Source.** Linux 6.12 `net/ipv4/tcp_bbr.c` (`bbr_lt_bw_sampling`); not in the draft.

use fullpipe_units::Instant;

const SHORTEST_ROUNDS: u8 = 4;
const LONGEST_ROUNDS: u8 = 4 * SHORTEST_ROUNDS;
const BELIEVED_ROUNDS: u8 = 48;
/// Bytes lost per 256 delivered that make a stretch.
const LOST_OF_256: u64 = 50;
/// Two rates are the same if they differ by this part of the first, or by so many bits per second.
const SAME_PART: u64 = 8;
const SAME_BPS: u64 = 4_000;
/// Linux counts whole milliseconds.
const SHORTEST_MILLISECONDS: u64 = 1;

/// An acknowledgement, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) now: Instant,
    pub(crate) delivered_bytes: u64,
    pub(crate) lost: bool,
    pub(crate) app_limited: bool,
    pub(crate) round_start: bool,
}

/// What to do after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// The policer's rate has been believed for long enough: probe again.
    GaveUp,
}

/// Measures the long-term rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policer {
    lost_bytes: u64,
    sampling: bool,
    believed: bool,
    rounds: u8,
    /// Rate of the last stretch, or the policer's; 0 if there is none.
    rate_bps: u64,
    // At the start of the stretch.
    start_at: Instant,
    start_delivered_bytes: u64,
    start_lost_bytes: u64,
}

impl Policer {
    /// The policer's rate in bits per second, if one is believed to be there.
    pub(crate) fn bandwidth(&self) -> Option<u64> {
        self.believed.then_some(self.rate_bps)
    }

    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// The connection begins.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.forget(now, 0);
    }

    /// Forgets what was measured.
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

    pub(crate) fn on_ack(&mut self, event: &Event, probing_bandwidth: bool) -> Verdict {
        if self.believed {
            if probing_bandwidth && event.round_start {
                self.rounds += 1;
                if self.rounds >= BELIEVED_ROUNDS {
                    self.forget(event.now, event.delivered_bytes);
                    return Verdict::GaveUp;
                }
            }
            return Verdict::Nothing;
        }
        if !self.sampling {
            if !event.lost {
                return Verdict::Nothing;
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
        Verdict::Nothing
    }

    /// A loss may end the stretch.
    fn end(&mut self, event: &Event) {
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

    /// A round of 100 ms in which so much is delivered and lost; the loss is known at its end.
    fn round(policer: &mut Policer, state: &mut (u64, u64), delivered: u64, lost: u64) -> Verdict {
        state.0 += 100;
        state.1 += delivered;
        policer.on_lost(lost);
        let event = Event {
            now: Instant::ZERO + Duration::from_millis(state.0),
            delivered_bytes: state.1,
            lost: lost > 0,
            app_limited: false,
            round_start: true,
        };
        policer.on_ack(&event, true)
    }

    #[test]
    fn two_stretches_of_the_same_rate_are_a_policer() {
        // 125 000 bytes per round of 100 ms are 10 Mbit/s; 25 000 lost of that are 51/256, above 50/256.
        let (mut policer, mut state) = (Policer::default(), (0, 0));
        for n in 1..=8 {
            round(&mut policer, &mut state, 125_000, 25_000);
            // The loss of the first round begins the first stretch and counts as its first round, so it ends with the
            // fourth: three rounds of 125 000 in 300 ms. The second needs four more: 8 rounds.
            assert_eq!(policer.bandwidth(), (n == 8).then_some(10_000_000), "{n}");
        }
        // It is believed for 48 rounds.
        for n in 1..=48 {
            let verdict = round(&mut policer, &mut state, 125_000, 25_000);
            assert_eq!(verdict == Verdict::GaveUp, n == 48, "{n}");
        }
        assert_eq!(policer.bandwidth(), None);
    }

    #[test]
    fn fewer_losses_than_a_fifth_are_none() {
        // 24 000 of 125 000 are 49.2/256.
        let (mut policer, mut state) = (Policer::default(), (0, 0));
        for _ in 0..60 {
            round(&mut policer, &mut state, 125_000, 24_000);
            assert_eq!(policer.bandwidth(), None);
        }
    }

    #[test]
    fn rates_that_differ_by_more_than_an_eighth_are_not_the_same() {
        // The first stretch has 10 Mbit/s, the second 11.25 Mbit/s (exactly an eighth more) or a little above.
        for (second, same) in [(140_625, true), (140_700, false)] {
            let (mut policer, mut state) = (Policer::default(), (0, 0));
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
    fn a_limit_of_the_application_ends_the_measurement() {
        let (mut policer, mut state) = (Policer::default(), (0, 0));
        for _ in 0..7 {
            round(&mut policer, &mut state, 125_000, 25_000);
        }
        let event = Event {
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
    fn a_stretch_without_loss_at_its_end_is_forgotten_after_sixteen_rounds() {
        let (mut policer, mut state) = (Policer::default(), (0, 0));
        round(&mut policer, &mut state, 125_000, 25_000);
        for _ in 0..15 {
            round(&mut policer, &mut state, 125_000, 0);
        }
        assert!(policer.sampling);
        round(&mut policer, &mut state, 125_000, 0);
        assert!(!policer.sampling);
    }
}
