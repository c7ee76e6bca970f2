//! YeAH.
//!
//! **Model.** Two modes. *Fast*: the window grows as Scalable TCP's. *Slow*: as Reno's. Once per round Vegas' measure
//! says how many segments stand in queues, Q = window * (rtt - base) / rtt by the smallest round-trip time of the round.
//! With more than 80 (Qmax), or a round-trip time more than an eighth above the base, the mode is slow, else fast. More
//! than 80 are also taken out of the queue at once (*precautionary decongestion*): the window falls by Q, by half at
//! most, but not below what Reno would have. That is counted along: half the window when slow mode first comes, one
//! segment more per slow round, half at a loss; after 50 fast rounds without a loss there is no Reno to yield to, and
//! the count begins anew.
//!
//! A loss takes Q, at least an eighth and at most half of the window; after 16 slow rounds in a row, which mean
//! competition with Reno, half.
//!
//! **Source.** Baiocchi, Castellani and Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007; rules and constants
//! as in Linux 6.12 `net/ipv4/tcp_yeah.c`, in bytes. A time-out takes what a loss would, and starts the counts anew.

use super::scalable;
use crate::component::ControlComponent;
use crate::control::{Ack, Control};
use crate::law::{Cause, Governed, Law, RoundTrips};
use crate::window::{segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static YEAH: ControlComponent = ControlComponent::new(
    Declaration {
        name: "yeah",
        version: "Baiocchi, Castellani and Vacirca (2007), as in Linux 6.12",
        source: "PFLDnet 2007; Linux net/ipv4/tcp_yeah.c",
        text: "Scalable while fewer than 80 segments are queued, Reno and emptying the queue beyond.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Governed::<Yeah>::default()),
);

/// Segments in queues that are too many.
const Q_MAX: u64 = 80;
/// A delay of one of so many parts of the base is too long.
const DELAY_PART: u64 = 8;
/// A loss takes at least one of so many shares.
const SHARES: u64 = 8;
/// So many slow rounds in a row mean competition.
const COMPETITION: u32 = 16;
/// More fast rounds than this mean that there is none.
const ALONE: u32 = 50;

/// The law of YeAH.
#[derive(Clone, Debug, Default)]
pub struct Yeah {
    times: RoundTrips,
    counts: Counts,
    /// What the last reduction changed.
    before: Counts,
    queued_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// What Reno would have; zero if not counted.
    reno_bytes: u64,
    slow_rounds: u32,
    fast_rounds: u32,
}

impl Yeah {
    fn adjust(&mut self, control: &mut Control, queued_bytes: u64) {
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

impl Law for Yeah {
    const NAME: &'static str = YEAH.declaration.name;

    fn round_trips(&mut self) -> Option<&mut RoundTrips> {
        Some(&mut self.times)
    }

    fn end_round(&mut self, control: &mut Control, ack: &Ack) {
        if ack.cwnd_limited
            && let Some(queued) = self.times.queued_bytes(control.cwnd_bytes)
        {
            self.adjust(control, queued);
        }
        self.times.begin_round();
    }

    fn increase_segments(&mut self, control: &Control, _ack: &Ack) -> f64 {
        if self.counts.slow_rounds == 0 { scalable::increase_segments(control) } else { 1.0 }
    }

    fn reduced_bytes(&mut self, control: &Control, _now: Instant, cause: Cause) -> u64 {
        self.before = self.counts;
        let window = control.cwnd_bytes;
        let taken = if self.counts.slow_rounds < COMPETITION {
            self.queued_bytes.clamp(window / SHARES, window / 2)
        } else {
            window / 2
        };
        self.counts.fast_rounds = 0;
        self.counts.reno_bytes /= 2;
        if cause == Cause::Timeout {
            self.counts = Counts::default();
            self.times.begin_round();
        }
        window - taken
    }

    fn undo(&mut self) {
        self.counts = self.before;
    }

    fn restart(&mut self, _now: Instant) {
        *self = Yeah::default();
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("queued_bytes", self.queued_bytes as f64));
        out.push(("reno_bytes", self.counts.reno_bytes as f64));
        out.push(("slow_rounds", f64::from(self.counts.slow_rounds)));
    }
}
