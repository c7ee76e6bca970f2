//! H-TCP.
//!
//! **Model.** The longer ago the last reduction is, the faster the window grows: with D seconds since then, the first
//! of which counts as Reno's,
//!
//! ```text
//! alpha = 1                                        D <= 1 s
//! alpha = 1 + 10 (D - 1) + (D - 1)^2 / 4           D > 1 s
//! ```
//!
//! segments per round trip, times 2 (1 - beta). What a loss leaves, beta, is the smallest over the largest round-trip
//! time since the last one, between 0.5 and 0.8: the queue runs empty but the link does not. If the throughput has
//! changed by more than a fifth from one loss to the next, the load is changing and beta is 0.5.
//!
//! **Source.** Leith, H-TCP: TCP Congestion Control for High Bandwidth-Delay Product Paths, draft-leith-tcp-htcp-06
//! (April 2008), section 2; Leith and Shorten, H-TCP: TCP for High-speed and Long-distance Networks, PFLDnet 2004. Left
//! out is their scaling of alpha by the round-trip time, which is optional. D counts from when the loss was found, and
//! time in which nothing is sent counts too. A time-out takes half. The smallest round-trip time is that of the
//! connection, the largest that of the epoch; the throughput is the largest of an epoch, from a moving average over its
//! rounds with weight 1/4 as in Linux.
//!
//! Elsewhere Linux 6.12 `net/ipv4/tcp_htcp.c` differs: it scales alpha by the smallest round-trip time over 100 ms (0.1
//! to 2), counts D from the end of the recovery, lets the largest round-trip time outlive the epoch (its distance to the
//! smallest shrinks by a twentieth per loss, and grows by 20 ms per sample at most), and takes half on every loss where
//! the smallest is below 10 ms.

use crate::component::ControlComponent;
use crate::control::{Ack, Control};
use crate::law::{Cause, Governed, Law};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static HTCP: ControlComponent = ControlComponent::new(
    Declaration {
        name: "htcp",
        version: "draft-leith-tcp-htcp-06 (2008)",
        source: "draft-leith-tcp-htcp-06 section 2",
        text: "Grows faster the longer ago the last loss; a loss takes what stands in queues, a fifth to a half.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Governed::<Htcp>::default()),
);

/// For so long after a reduction the window grows as Reno's.
const LOW_SPEED_SECONDS: f64 = 1.0;
const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// A larger change of the throughput makes beta the smallest.
const CHANGE: f64 = 0.2;
/// Weight of a new round in the throughput.
const GAIN: f64 = 1.0 / 4.0;

/// The law of H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    epoch: Epoch,
    /// The epoch before, if its end was for nothing.
    before: Epoch,
    smallest_rtt: Duration,
    round_bytes: u64,
    round_at: Instant,
}

/// From one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began_at: Instant,
    beta: f64,
    largest_rtt: Duration,
    /// Throughput in bytes per second: average of this epoch, its largest, and the largest of the epoch before.
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

    /// Beta of the epoch that ends now. Nothing is steady in the first, before which there was no throughput.
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

/// Segments per round trip so long after a reduction, before they are scaled by beta.
fn alpha(elapsed: Duration) -> f64 {
    let high = (elapsed.as_secs_f64() - LOW_SPEED_SECONDS).max(0.0);
    1.0 + 10.0 * high + high * high / 4.0
}

impl Law for Htcp {
    const NAME: &'static str = HTCP.declaration.name;

    fn established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.epoch.began_at = now;
        self.smallest_rtt = self.smallest_rtt.min(rtt.unwrap_or(Duration::MAX));
    }

    fn measure(&mut self, _control: &Control, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.smallest_rtt = self.smallest_rtt.min(rtt);
            self.epoch.largest_rtt = self.epoch.largest_rtt.max(rtt);
        }
        self.round_bytes = self.round_bytes.saturating_add(ack.acked_bytes);
        if ack.round_start {
            self.end_round(ack.now);
        }
    }

    fn increase_segments(&mut self, _control: &Control, ack: &Ack) -> f64 {
        2.0 * (1.0 - self.epoch.beta) * alpha(ack.now.saturating_since(self.epoch.began_at))
    }

    fn reduced_bytes(&mut self, control: &Control, now: Instant, cause: Cause) -> u64 {
        self.before = self.epoch;
        let beta = if cause == Cause::Timeout { BETA_MIN } else { self.backoff() };
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
    fn the_increase_by_hand() {
        // D = 2: 1 + 10 + 1/4; D = 3: 1 + 20 + 1; D = 11: 1 + 100 + 25.
        for (milliseconds, segments) in
            [(0, 1.0), (999, 1.0), (1_000, 1.0), (1_100, 2.0025), (2_000, 11.25), (3_000, 22.0), (11_000, 126.0)]
        {
            let alpha = alpha(Duration::from_millis(milliseconds));
            assert!((alpha - segments).abs() < 1e-9, "{milliseconds} ms: {alpha}");
        }
    }
}
