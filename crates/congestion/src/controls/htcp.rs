//! The congestion control H-TCP.
//!
//! **Model.** The longer ago the last reduction, the faster the window grows; in the first second, it grows as in Reno.
//! D seconds after the reduction, the increase is
//!
//! ```text
//! alpha = 1                                        D <= 1 s
//! alpha = 1 + 10 (D - 1) + (D - 1)^2 / 4           D > 1 s
//! ```
//!
//! segments per round trip, times 2 (1 - beta). A loss multiplies the window by beta: the ratio of the smallest to the
//! largest round-trip time since the last loss, between 0.5 and 0.8. The queue then drains but the link stays busy. If
//! the throughput has changed by more than a fifth from one loss to the next, the load is changing and beta is 0.5.
//!
//! **Source.** Leith, H-TCP: TCP Congestion Control for High Bandwidth-Delay Product Paths, draft-leith-tcp-htcp-06
//! (April 2008), section 2; Leith and Shorten, H-TCP: TCP for High-speed and Long-distance Networks, PFLDnet 2004.
//! Their optional scaling of alpha by the round-trip time is omitted. D is measured from the detection of the loss, and
//! includes time in which nothing is sent. A timeout halves the window. The smallest round-trip time is that of the
//! connection, the largest that of the epoch. The throughput of an epoch is the maximum of a moving average over its
//! rounds (weight 1/4), as in Linux.
//!
//! Linux 6.12 `net/ipv4/tcp_htcp.c` differs in four points. It scales alpha by the smallest round-trip time over 100 ms
//! (0.1 to 2). It measures D from the end of the recovery. It keeps the largest round-trip time beyond the epoch. The
//! distance of this time to the smallest one shrinks by a twentieth per loss, and grows by at most 20 ms per sample. It
//! halves the window on every loss if the smallest round-trip time is below 10 ms.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, WindowLaw};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static HTCP: ControlComponent = ControlComponent::with_law::<Htcp>(Declaration {
    name: "htcp",
    version: "draft-leith-tcp-htcp-06 (2008)",
    source: "draft-leith-tcp-htcp-06 section 2",
    text: "Grows faster with the time since the last loss; a loss reduces the window by the queue, a fifth to \
               a half.",
    ..Declaration::EMPTY
});

/// The time after a reduction in which the window grows as in Reno.
const LOW_SPEED_SECONDS: f64 = 1.0;
const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// If the throughput changes by more than this share, beta has its smallest value.
const CHANGE: f64 = 0.2;
/// The weight of a new round in the average throughput.
const GAIN: f64 = 1.0 / 4.0;

/// The window law of H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    epoch: Epoch,
    /// The previous epoch, for an undo.
    before: Epoch,
    smallest_rtt: Duration,
    round_bytes: u64,
    round_at: Instant,
}

/// The interval from one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began_at: Instant,
    beta: f64,
    largest_rtt: Duration,
    /// Throughput in bytes per second: the average of this epoch, its maximum, and the maximum of the previous epoch.
    average: f64,
    largest: f64,
    previous: f64,
}

impl Default for Epoch {
    fn default() -> Self {
        Epoch {
            began_at: Instant::ZERO,
            beta: BETA_MIN,
            largest_rtt: Duration::ZERO,
            average: 0.0,
            largest: 0.0,
            previous: 0.0,
        }
    }
}

impl Default for Htcp {
    fn default() -> Self {
        Htcp {
            epoch: Epoch::default(),
            before: Epoch::default(),
            smallest_rtt: Duration::MAX,
            round_bytes: 0,
            round_at: Instant::NEVER,
        }
    }
}

impl Htcp {
    fn end_round(&mut self, now: Instant) {
        let took = now.saturating_since(self.round_at);
        if !self.round_at.is_never() && !took.is_zero() {
            let rate = self.round_bytes as f64 / took.as_secs_f64();
            let epoch = &mut self.epoch;
            epoch.average = if epoch.average == 0.0 { rate } else { epoch.average + (rate - epoch.average) * GAIN };
            epoch.largest = epoch.largest.max(epoch.average);
        }
        self.round_bytes = 0;
        self.round_at = now;
    }

    /// The beta of the epoch that ends now. The first epoch has no previous throughput, so it does not count as steady.
    fn backoff(&self) -> f64 {
        let Epoch { largest, previous, largest_rtt, .. } = self.epoch;
        let steady = (largest - previous).abs() < CHANGE * previous;
        if !steady || largest_rtt.is_zero() {
            return BETA_MIN;
        }
        let ratio = self.smallest_rtt.as_nanos() as f64 / largest_rtt.as_nanos() as f64;
        ratio.clamp(BETA_MIN, BETA_MAX)
    }
}

/// The increase in segments per round trip this long after a reduction, before the scaling by beta.
fn alpha(elapsed: Duration) -> f64 {
    let high = (elapsed.as_secs_f64() - LOW_SPEED_SECONDS).max(0.0);
    1.0 + 10.0 * high + high * high / 4.0
}

impl WindowLaw for Htcp {
    const NAME: &'static str = HTCP.declaration.name;

    fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.epoch.began_at = now;
        self.smallest_rtt = self.smallest_rtt.min(rtt.unwrap_or(Duration::MAX));
    }

    fn sample_ack(&mut self, _control: &WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.smallest_rtt = self.smallest_rtt.min(rtt);
            self.epoch.largest_rtt = self.epoch.largest_rtt.max(rtt);
        }
        self.round_bytes = self.round_bytes.saturating_add(ack.acked_bytes);
        if ack.round_start {
            self.end_round(ack.now);
        }
    }

    fn increase_segments(&mut self, _control: &WindowState, ack: &Ack) -> f64 {
        2.0 * (1.0 - self.epoch.beta) * alpha(ack.now.saturating_since(self.epoch.began_at))
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, now: Instant, cause: ReductionCause) -> u64 {
        self.before = self.epoch;
        let beta = if cause == ReductionCause::Timeout { BETA_MIN } else { self.backoff() };
        self.epoch = Epoch { began_at: now, beta, previous: self.epoch.largest, ..Epoch::default() };
        (control.cwnd_bytes as f64 * beta) as u64
    }

    fn undo(&mut self) {
        self.epoch = self.before;
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("beta", self.epoch.beta));
        out.push(("throughput_bps", self.epoch.average * 8.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_increase_matches_values_computed_by_hand() {
        // D = 2: 1 + 10 + 1/4; D = 3: 1 + 20 + 1; D = 11: 1 + 100 + 25.
        for (milliseconds, segments) in
            [(0, 1.0), (999, 1.0), (1_000, 1.0), (1_100, 2.0025), (2_000, 11.25), (3_000, 22.0), (11_000, 126.0)]
        {
            let alpha = alpha(Duration::from_millis(milliseconds));
            assert!((alpha - segments).abs() < 1e-9, "{milliseconds} ms: {alpha}");
        }
    }
}
