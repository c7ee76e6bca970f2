//! Estimates ACK aggregation (on a radio link, in a cable network or in a receiver): the bytes acknowledged at once
//! beyond those that the bandwidth delivers.
//!
//! **Model.** An epoch begins when the bytes acknowledged since the start of the last epoch do not exceed what the
//! bandwidth delivers in that time. Bytes acknowledged beyond that are the excess. Once the path has been filled, the
//! window is extended by the largest excess of the last five to ten rounds. The extension is at most what the bandwidth
//! delivers in 100 ms.
//!
//! **Source.** Linux 6.12 `net/ipv4/tcp_bbr.c` (`bbr_update_ack_aggregation`, `bbr_ack_aggregation_cwnd`). The draft
//! does not specify this estimate.

use crate::bbr::bytes_in;
use crate::control::{Ack, WindowState};
use crate::window::segment;
use fullpipe_units::{Duration, Instant};

/// The number of rounds after which the older of the two maxima is discarded.
const WINDOW_ROUNDS: u8 = 5;
const LARGEST_TIME: Duration = Duration::from_millis(100);
/// An epoch ends when this many segments have been acknowledged.
const LONGEST_EPOCH_SEGMENTS: u64 = 1 << 20;

/// The state of the estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aggregation {
    epoch_at: Instant,
    epoch_bytes: u64,
    /// The largest excess of the current period of up to five rounds, and of the previous period.
    excess_bytes: [u64; 2],
    rounds: u8,
}

impl Aggregation {
    /// Begins a new epoch after an idle period.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.epoch_at = now;
        self.epoch_bytes = 0;
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack, bandwidth_bps: u64, control: &WindowState, round_start: bool) {
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

    /// The largest recent excess.
    pub(crate) fn extra_bytes(&self) -> u64 {
        self.excess_bytes[0].max(self.excess_bytes[1])
    }

    /// The increase of the window in bytes.
    pub(crate) fn window_bytes(&self, bandwidth_bps: u64) -> u64 {
        self.extra_bytes().min(bytes_in(bandwidth_bps, LARGEST_TIME))
    }
}
