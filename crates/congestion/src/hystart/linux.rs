//! The HyStart of Linux's CUBIC: ends slow start when an acknowledgment train lasts half of the round-trip time, or
//! when the delay has grown.
//!
//! **Model.** Both conditions are checked in each round trip, once the window has reached 16 segments. *Train*:
//! acknowledgments that follow each other within 2 ms form a train. The window fills the path if, from the start of the
//! round, the train lasts longer than half of the smallest round-trip time plus 0.5 ms for bursts. With pacing, which
//! stretches trains, the limit is the whole smallest round-trip time plus 1 ms. *Delay*: the smallest of more than
//! eight samples of the round exceeds the smallest of the connection by an eighth (at least 4 ms, at most 16 ms). If
//! either condition is true, slow start ends at the current window.
//!
//! **Source.** Ha, Rhee: Taming the elephants (Computer Networks 55(9), 2011); the behavior of Linux 6.12
//! `net/ipv4/tcp_cubic.c` (`hystart_update`, `cubictcp_acked`). The allowance for bursts is 1 ms in Linux below 2
//! Gbit/s, and always here. Round trips are counted by delivery.

use super::delay_threshold;
use crate::control::Ack;
use fullpipe_units::{Duration, Instant};

const LOW_WINDOW_SEGMENTS: u64 = 16;
const ACK_SPACING: Duration = Duration::from_millis(2);
const BURST_ALLOWANCE: Duration = Duration::from_millis(1);
const SAMPLES: u8 = 8;

/// The state of Linux's HyStart.
#[derive(Clone, Debug)]
pub(crate) struct LinuxHyStart {
    round_began: Instant,
    last_ack: Instant,
    /// The smallest sample so far, and that of this round.
    smallest: Option<Duration>,
    of_round: Option<Duration>,
    samples: u8,
    paced: bool,
}

impl LinuxHyStart {
    pub(crate) fn new(paced: bool) -> Self {
        LinuxHyStart {
            round_began: Instant::ZERO,
            last_ack: Instant::ZERO,
            smallest: None,
            of_round: None,
            samples: 0,
            paced,
        }
    }

    /// Handles an acknowledgment in slow start with a window of this number of segments. Returns whether slow start
    /// ends.
    pub(crate) fn on_ack(&mut self, ack: &Ack, window_segments: u64) -> bool {
        if ack.round_start {
            self.round_began = ack.now;
            self.last_ack = ack.now;
            self.of_round = None;
            self.samples = 0;
        }
        let Some(rtt) = ack.rtt else { return false };
        let smallest = self.smallest.map_or(rtt, |smallest| smallest.min(rtt));
        self.smallest = Some(smallest);
        window_segments >= LOW_WINDOW_SEGMENTS && (self.train_fills(ack.now, smallest) | self.delay_grew(rtt, smallest))
    }

    fn train_fills(&mut self, now: Instant, smallest: Duration) -> bool {
        if now.saturating_since(self.last_ack) > ACK_SPACING {
            return false;
        }
        self.last_ack = now;
        let path = smallest.saturating_add(BURST_ALLOWANCE);
        now.saturating_since(self.round_began) > if self.paced { path } else { path / 2 }
    }

    fn delay_grew(&mut self, rtt: Duration, smallest: Duration) -> bool {
        let of_round = self.of_round.map_or(rtt, |of_round| of_round.min(rtt));
        self.of_round = Some(of_round);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        of_round > smallest.saturating_add(delay_threshold(smallest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hystart::tests::acknowledgement;

    fn ack(at_ms: f64, rtt_ms: u64, round_start: bool) -> Ack {
        acknowledgement(Instant::from_nanos((at_ms * 1e6) as u64), Duration::from_millis(rtt_ms), round_start)
    }

    /// On a path of 20 ms, a train is too long above (20 + 1) / 2 = 10.5 ms, or above 21 ms with pacing.
    #[test]
    fn a_train_of_half_the_path_ends_slow_start() {
        for (paced, too_long) in [(false, 11.0), (true, 22.0)] {
            let mut hystart = LinuxHyStart::new(paced);
            assert!(!hystart.on_ack(&ack(100.0, 20, true), 16));
            let mut at = 101.0;
            while at < 100.0 + too_long {
                assert!(!hystart.on_ack(&ack(at, 20, false), 16), "{at}");
                at += 1.0;
            }
            let mut narrow = hystart.clone();
            assert!(hystart.on_ack(&ack(at, 20, false), 16), "{at}");
            assert!(!narrow.on_ack(&ack(at, 20, false), 15), "the window is too small for a decision");
        }
    }

    #[test]
    fn acknowledgements_more_than_2_ms_apart_form_no_train() {
        let mut hystart = LinuxHyStart::new(false);
        let ends = (0..10).any(|n| hystart.on_ack(&ack(100.0 + 2.5 * f64::from(n), 20, n == 0), 16));
        assert!(!ends);
    }

    /// The delay may grow by 10 ms on a path of 80 ms, by the minimum of 4 ms on one of 8 ms, and by the maximum of 16
    /// ms on one of 400 ms. The decision is made at the ninth sample of a round, from its smallest.
    #[test]
    fn slow_start_ends_when_the_delay_has_grown() {
        for (path, more) in [(80, 10), (8, 4), (400, 16)] {
            let judge = |rtt: u64, once: u64| {
                let mut hystart = LinuxHyStart::new(false);
                hystart.on_ack(&ack(0.0, path, true), 16);
                let round: Vec<bool> = (0..9)
                    .map(|n| {
                        hystart.on_ack(&ack(1000.0 + 3.0 * f64::from(n), if n == 4 { once } else { rtt }, n == 0), 16)
                    })
                    .collect();
                assert!(round[..8].iter().all(|ended| !ended), "{round:?}");
                round[8]
            };
            assert!(judge(path + more + 1, path + more + 1));
            assert!(!judge(path + more, path + more));
            assert!(!judge(path + more + 9, path + more), "one small sample in the round keeps slow start");
        }
    }
}
