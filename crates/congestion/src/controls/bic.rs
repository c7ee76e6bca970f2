//! BIC.
//!
//! **Model.** The window at the last loss was too large, the one that it left is not: in between lies the right one, and
//! is searched for by halves. Each step aims at the middle between the last window that proved good and the maximum,
//! takes a round trip, and makes the window that it reached the new good one. A step is at most 32 segments (Smax:
//! from far away the window grows linearly) and at least 0.01 (Smin); closer than that the maximum is reached. Beyond
//! it a new one is looked for: steps of 1, 2, 4, ... segments, at most Smax. A loss takes an eighth; if it struck below
//! the old maximum, the new maximum is the middle between the window before and after it (*fast convergence*). Windows
//! below 14 segments behave as Reno's.
//!
//! **Source.** Xu, Harfoush and Rhee, Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks, INFOCOM
//! 2004, section IV with the constants of its section V (Smax 32, Smin 0.01, beta 0.125, low window 14). Before the first
//! loss, and after a time-out, there is no maximum. It is the paper's text, from which its response function comes, that
//! is followed. Its pseudo-code aims anew with every acknowledgement instead of every round trip, forgets a maximum that
//! was passed, so that the next loss counts as one below it, and keeps the maximum of before where a loss strikes below
//! the low window; here that loss sets it like any other, as in Linux.
//!
//! Linux 6.12 `net/ipv4/tcp_bic.c` has other constants: a loss takes a fifth (`beta` 819/1024), a step is a quarter of
//! the distance (`BICTCP_B` 4) and at most 16 segments (`max_increment`), the last four segments up to the maximum and
//! the first four beyond take 20 round trips (`smooth_part`), and before the first loss the window grows by a twentieth
//! per round trip at least.

use crate::component::ControlComponent;
use crate::control::{Ack, Control};
use crate::law::{Cause, Governed, Law};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static BIC: ControlComponent = ControlComponent::new(
    Declaration {
        name: "bic",
        version: "Xu, Harfoush and Rhee (2004)",
        source: "INFOCOM 2004",
        text: "Searches by halves for the window between the last loss and what it left; takes an eighth on loss.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Governed::<Bic>::default()),
);

/// Largest and smallest step in segments.
const S_MAX: f64 = 32.0;
const S_MIN: f64 = 0.01;
/// A loss takes one of so many shares.
const SHARES: u64 = 8;
/// Smaller windows, in segments, behave as Reno's.
const LOW_WINDOW: f64 = 14.0;

/// The law of BIC. Windows are in bytes, steps in segments.
#[derive(Clone, Debug, Default)]
pub struct Bic {
    search: Search,
    /// What the last reduction changed.
    before: Search,
}

#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// Window to search below; zero if none is known.
    max_bytes: f64,
    /// Where the present step ends; zero before the first after a reduction.
    target_bytes: u64,
    step_segments: f64,
    /// The present step looks for a new maximum.
    probing: bool,
}

impl Search {
    /// The window has reached the end of a step, or a reduction: the next.
    fn next_step(&mut self, cwnd_bytes: u64, mss: f64) {
        let distance = (self.max_bytes - cwnd_bytes as f64) / mss;
        self.step_segments = if distance > S_MIN {
            (distance / 2.0).clamp(S_MIN, S_MAX)
        } else if self.probing {
            (self.step_segments * 2.0).min(S_MAX)
        } else {
            self.probing = true;
            1.0
        };
        self.target_bytes = cwnd_bytes.saturating_add((self.step_segments * mss) as u64);
    }
}

impl Law for Bic {
    const NAME: &'static str = BIC.declaration.name;

    fn increase_segments(&mut self, control: &Control, _ack: &Ack) -> f64 {
        let (cwnd, mss) = (control.cwnd_bytes as f64, segment(control) as f64);
        if cwnd < LOW_WINDOW * mss {
            return 1.0;
        }
        if control.cwnd_bytes >= self.search.target_bytes {
            self.search.next_step(control.cwnd_bytes, mss);
        }
        self.search.step_segments
    }

    fn reduced_bytes(&mut self, control: &Control, _now: Instant, cause: Cause) -> u64 {
        self.before = self.search;
        let window = control.cwnd_bytes;
        if cause == Cause::Timeout {
            self.search = Search::default();
            return window / 2;
        }
        let small = (window as f64) < LOW_WINDOW * segment(control) as f64;
        let reduced = if small { window / 2 } else { window - window / SHARES };
        let below = (window as f64) < self.before.max_bytes;
        let max_bytes = if below { (window as f64 + reduced as f64) / 2.0 } else { window as f64 };
        self.search = Search { max_bytes, ..Search::default() };
        reduced
    }

    fn undo(&mut self) {
        self.search = self.before;
    }

    fn restart(&mut self, _now: Instant) {
        self.search = Search { max_bytes: self.search.max_bytes, ..Search::default() };
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("max_bytes", self.search.max_bytes));
        out.push(("step_segments", self.search.step_segments));
    }
}
