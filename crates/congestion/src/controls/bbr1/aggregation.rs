//! How much arrives at once beyond what the bandwidth brings: acknowledgements that a radio link, a cable network or a
//! receiver has gathered.
//!
//! **Model.** An epoch begins whenever no more has been acknowledged since its start than the bandwidth would bring in
//! that time. What was acknowledged beyond it is the excess; the window gets the largest excess of the last five to ten
//! rounds, but no more than the bandwidth brings in 100 ms, and only once the path was filled.
//!
//! **Source.** Linux 6.12 `net/ipv4/tcp_bbr.c` (`bbr_update_ack_aggregation`, `bbr_ack_aggregation_cwnd`); not in the
//! draft.

use crate::bbr::bytes_in;
use crate::control::{Ack, Control};
use crate::window::segment;
use fullpipe_units::{Duration, Instant};

/// Rounds after which the older of the two maxima is forgotten.
const WINDOW_ROUNDS: u8 = 5;
const LARGEST_TIME: Duration = Duration::from_millis(100);
/// An epoch with this many segments acknowledged is long enough.
const LONGEST_EPOCH_SEGMENTS: u64 = 1 << 20;

/// Measures the excess.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aggregation {
    epoch_at: Instant,
    epoch_bytes: u64,
    /// The largest excess of the present and of the last five rounds.
    excess_bytes: [u64; 2],
    rounds: u8,
}

impl Aggregation {
    /// A new epoch begins, after idling.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.epoch_at = now;
        self.epoch_bytes = 0;
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack, bandwidth_bps: u64, control: &Control, round_start: bool) {
        if ack.acked_bytes == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.excess_bytes = [0, self.excess_bytes[0]];
            }
        }
        let mut expected = bytes_in(bandwidth_bps, ack.now.saturating_since(self.epoch_at));
        let longest = LONGEST_EPOCH_SEGMENTS.saturating_mul(segment(control));
        if self.epoch_bytes <= expected || self.epoch_bytes.saturating_add(ack.acked_bytes) >= longest {
            self.restart(ack.now);
            expected = 0;
        }
        self.epoch_bytes = self.epoch_bytes.saturating_add(ack.acked_bytes);
        let excess = self.epoch_bytes.saturating_sub(expected).min(control.cwnd_bytes);
        self.excess_bytes[0] = self.excess_bytes[0].max(excess);
    }

    /// The largest excess seen of late.
    pub(crate) fn extra_bytes(&self) -> u64 {
        self.excess_bytes[0].max(self.excess_bytes[1])
    }

    /// What the window gets.
    pub(crate) fn window_bytes(&self, bandwidth_bps: u64) -> u64 {
        self.extra_bytes().min(bytes_in(bandwidth_bps, LARGEST_TIME))
    }
}
