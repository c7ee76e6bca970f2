//! The congestion control YeAH-TCP.
//!
//! **Model.** In *fast* mode, the window grows as in Scalable TCP; in *slow* mode, it grows as in Reno. Once per round,
//! the number of segments in queues is estimated as in Vegas: Q = window * (rtt - base) / rtt, with the smallest
//! round-trip time of the round. The mode is slow if Q exceeds 80 (Qmax) or the round-trip time exceeds the base by
//! more than an eighth, otherwise fast. If Q exceeds 80, the window is also reduced immediately by Q (*precautionary
//! decongestion*). The reduction is at most half, and the result is not below the window that Reno would have. The
//! estimate of that window begins at half the window when slow mode first begins. It grows by one segment per slow
//! round, and a loss halves it. After 50 fast rounds without a loss, the control assumes that no Reno flow competes,
//! and restarts the estimate.
//!
//! A loss reduces the window by Q, at least by an eighth and at most by half. After 16 successive slow rounds, which
//! indicate competition with Reno, it halves the window.
//!
//! **Source.** Baiocchi, Castellani and Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007. Rules and constants
//! are those of Linux 6.12 `net/ipv4/tcp_yeah.c`, in bytes. A timeout reduces the window as a loss does, and resets the
//! counts.

use super::scalable;
use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, RoundTripTimes, WindowLaw};
use crate::window::{segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static YEAH: ControlComponent = ControlComponent::with_law::<Yeah>(Declaration {
    name: "yeah",
    version: "Baiocchi, Castellani and Vacirca (2007), as in Linux 6.12",
    source: "PFLDnet 2007; Linux net/ipv4/tcp_yeah.c",
    text: "Scalable while fewer than 80 segments are queued; above that Reno, and draining of the queue.",
    ..Declaration::EMPTY
});

/// The largest permitted number of segments in queues.
const Q_MAX: u64 = 80;
/// The delay is too long if it exceeds the base divided by this number.
const DELAY_PART: u64 = 8;
/// The inverse of the smallest share by which a loss reduces the window.
const SHARES: u64 = 8;
/// This number of successive slow rounds indicates competition.
const COMPETITION: u32 = 16;
/// More fast rounds than this indicate that there is no competition.
const ALONE: u32 = 50;

/// The window law of YeAH.
#[derive(Clone, Debug, Default)]
pub struct Yeah {
    times: RoundTripTimes,
    counts: Counts,
    /// The counts before the last reduction.
    before: Counts,
    queued_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The window that Reno would have; zero if it is not estimated.
    reno_bytes: u64,
    slow_rounds: u32,
    fast_rounds: u32,
}

impl Yeah {
    fn adjust(&mut self, control: &mut WindowState, queued_bytes: u64) {
        self.queued_bytes = queued_bytes;
        let mss = segment(control);
        let crowded = queued_bytes > mss.saturating_mul(Q_MAX);
        let late = self.times.smallest.saturating_sub(self.times.base) > self.times.base / DELAY_PART;
        let counts = &mut self.counts;
        if !crowded && !late {
            counts.slow_rounds = 0;
            counts.fast_rounds += 1;
            if counts.fast_rounds > ALONE {
                (counts.fast_rounds, counts.reno_bytes) = (0, 0);
            }
            return;
        }
        if crowded && control.cwnd_bytes > counts.reno_bytes {
            let taken = queued_bytes.min(control.cwnd_bytes / 2);
            control.cwnd_bytes = (control.cwnd_bytes - taken).max(counts.reno_bytes).max(two_segments(control));
            control.ssthresh_bytes = control.cwnd_bytes;
        }
        counts.reno_bytes = if counts.reno_bytes <= two_segments(control) {
            (control.cwnd_bytes / 2).max(two_segments(control))
        } else {
            counts.reno_bytes.saturating_add(mss)
        };
        counts.slow_rounds = counts.slow_rounds.saturating_add(1);
    }
}

impl WindowLaw for Yeah {
    const NAME: &'static str = YEAH.declaration.name;

    fn round_trip_times(&mut self) -> Option<&mut RoundTripTimes> {
        Some(&mut self.times)
    }

    fn on_round_end(&mut self, control: &mut WindowState, ack: &Ack) {
        if ack.cwnd_limited
            && let Some(queued) = self.times.queued_bytes(control.cwnd_bytes)
        {
            self.adjust(control, queued);
        }
        self.times.begin_round();
    }

    fn increase_segments(&mut self, control: &WindowState, _ack: &Ack) -> f64 {
        if self.counts.slow_rounds == 0 { scalable::increase_segments(control) } else { 1.0 }
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        self.before = self.counts;
        let window = control.cwnd_bytes;
        let taken = if self.counts.slow_rounds < COMPETITION {
            self.queued_bytes.clamp(window / SHARES, window / 2)
        } else {
            window / 2
        };
        self.counts.fast_rounds = 0;
        self.counts.reno_bytes /= 2;
        if cause == ReductionCause::Timeout {
            self.counts = Counts::default();
            self.times.begin_round();
        }
        window - taken
    }

    fn undo(&mut self) {
        self.counts = self.before;
    }

    fn on_idle_restart(&mut self, _now: Instant) {
        *self = Yeah::default();
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("queued_bytes", self.queued_bytes as f64));
        out.push(("reno_bytes", self.counts.reno_bytes as f64));
        out.push(("slow_rounds", f64::from(self.counts.slow_rounds)));
    }
}
