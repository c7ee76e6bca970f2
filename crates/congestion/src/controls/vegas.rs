//! The congestion control TCP Vegas.
//!
//! **Model.** The smallest round-trip time so far (base) counts as that of the path without queues. Once per round, the
//! smallest round-trip time of the round gives the number of segments in queues: window * (rtt - base) / base. Between
//! two and four (alpha and beta) the window does not change. With fewer, it grows by a segment; with more, it shrinks
//! by one. In slow start the window doubles per round until more than one segment (gamma) is in a queue. The window is
//! then set to the capacity of the path plus one segment.
//!
//! A round with at most two samples is not evaluated; in it the window grows as in Reno. The reaction to losses is that
//! of Reno, and Reno controls the window until they are repaired.
//!
//! **Source.** Brakmo and Peterson, TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE JSAC 13(8),
//! 1995; behavior of Linux 6.12 `net/ipv4/tcp_vegas.c` (slow start in every round instead of every other, the
//! constants, the queue relative to the base). Linux rounds the queue down to whole segments, so its window first
//! shrinks at five; here it is a real number, as in the paper. Unlike in Linux, the window grows only while it limits
//! sending. The paper's finer retransmission timing belongs to the transport.

use super::linux_reno::LinuxReno;
use crate::component::ControlComponent;
use crate::control::{Ack, CongestionEvent, Controller, RecoveryExit, Timeout, WindowState};
use crate::window::{self, segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static VEGAS: ControlComponent = ControlComponent::new(
    Declaration {
        name: "vegas",
        version: "Brakmo and Peterson (1995), as in Linux 6.12",
        source: "IEEE JSAC 13(8), 1995; Linux net/ipv4/tcp_vegas.c",
        text: "Keeps two to four segments in queues, estimated from the round-trip time; Reno on loss.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Vegas::new()),
);

/// The window grows with fewer segments in queues than this.
const ALPHA: u64 = 2;
/// The window shrinks with more segments in queues than this.
const BETA: u64 = 4;
/// Slow start ends with more segments in queues than this.
const GAMMA: u64 = 1;
/// A round is evaluated if it has more samples than this.
const FEW_SAMPLES: u32 = 2;

/// The congestion control Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    reno: LinuxReno,
    /// Smallest round-trip time so far; [`Duration::MAX`] before the first sample.
    base_rtt: Duration,
    /// Smallest round-trip time of the current round, and the number of its samples.
    round_rtt: Duration,
    samples: u32,
    /// Whether losses are being repaired.
    repairing: bool,
    /// The bytes in queues in the last round.
    queued_bytes: u64,
}

impl Default for Vegas {
    fn default() -> Self {
        Vegas {
            reno: LinuxReno::default(),
            base_rtt: Duration::MAX,
            round_rtt: Duration::MAX,
            samples: 0,
            repairing: false,
            queued_bytes: 0,
        }
    }
}

impl Vegas {
    /// Creates Vegas with alpha 2, beta 4 and gamma 1, in segments.
    pub fn new() -> Self {
        Self::default()
    }

    fn sample(&mut self, rtt: Duration) {
        // Not zero, because it is a divisor.
        let rtt = rtt.max(Duration::from_nanos(1));
        self.base_rtt = self.base_rtt.min(rtt);
        self.round_rtt = self.round_rtt.min(rtt);
        self.samples = self.samples.saturating_add(1);
    }

    fn begin_round(&mut self) {
        self.round_rtt = Duration::MAX;
        self.samples = 0;
    }

    /// Adjusts the window after a round with enough samples.
    fn adjust(&mut self, control: &mut WindowState, ack: &Ack) {
        let mss = segment(control);
        let base = self.base_rtt.as_nanos();
        let waited = self.round_rtt.as_nanos() - base;
        self.queued_bytes = scaled(control.cwnd_bytes, waited, base);
        if control.cwnd_bytes < control.ssthresh_bytes {
            if self.queued_bytes <= mss.saturating_mul(GAMMA) {
                self.reno.on_ack(control, ack);
                return;
            }
            let held = scaled(control.cwnd_bytes, base, self.round_rtt.as_nanos());
            control.cwnd_bytes = control.cwnd_bytes.min(held.saturating_add(mss));
            lower_threshold(control);
        } else if self.queued_bytes > mss.saturating_mul(BETA) {
            control.cwnd_bytes = control.cwnd_bytes.saturating_sub(mss);
            lower_threshold(control);
        } else if self.queued_bytes < mss.saturating_mul(ALPHA) && ack.cwnd_limited {
            control.cwnd_bytes = control.cwnd_bytes.saturating_add(mss);
        }
        control.cwnd_bytes = control.cwnd_bytes.max(two_segments(control));
        window::keep_three_quarters(control);
    }
}

/// `bytes` × `time` / `over`.
fn scaled(bytes: u64, time: u64, over: u64) -> u64 {
    let scaled = u128::from(bytes) * u128::from(time) / u128::from(over.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Lowers the threshold, so that slow start is over for windows of this size.
fn lower_threshold(control: &mut WindowState) {
    let below = control.cwnd_bytes.saturating_sub(segment(control));
    control.ssthresh_bytes = control.ssthresh_bytes.min(below).max(two_segments(control));
}

impl Controller for Vegas {
    fn name(&self) -> &'static str {
        VEGAS.declaration.name
    }

    fn on_established(&mut self, _control: &mut WindowState, _now: Instant, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.base_rtt = self.base_rtt.min(rtt.max(Duration::from_nanos(1)));
        }
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        if ack.in_recovery {
            return;
        }
        let in_slow_start = control.cwnd_bytes < control.ssthresh_bytes;
        if self.repairing {
            self.reno.on_ack(control, ack);
        } else if ack.round_start {
            if self.samples <= FEW_SAMPLES {
                self.reno.on_ack(control, ack);
            } else {
                self.adjust(control, ack);
            }
            self.begin_round();
        } else if in_slow_start {
            self.reno.on_ack(control, ack);
        }
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.reno.on_congestion(control, congestion);
        self.repairing = !congestion.ecn;
        self.begin_round();
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.reno.on_recovery_exit(control, exit);
        self.repairing = false;
        self.begin_round();
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.reno.on_timeout(control, timeout);
        self.repairing = true;
        self.begin_round();
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_idle_restart(control, now);
        self.base_rtt = Duration::MAX;
        self.begin_round();
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_path_change(control, now);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        let base = if self.base_rtt == Duration::MAX { 0.0 } else { self.base_rtt.as_secs_f64() };
        out.push(("base_rtt_s", base));
        out.push(("queued_bytes", self.queued_bytes as f64));
    }
}
