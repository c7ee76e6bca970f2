//! The congestion control BIC.
//!
//! **Model.** The window at the last loss was too large, and the reduced window is not. BIC performs a binary search
//! between the two. The target of each step is the midpoint between the last window without loss (the minimum) and the
//! maximum. A step takes a round trip, and the window that it reaches is the new minimum. A step is at most 32 segments
//! (Smax), so the window grows linearly while it is far below the maximum. A step is at least 0.01 segments (Smin); at
//! a smaller distance, the maximum counts as reached. Beyond the maximum, BIC probes for a new one in steps of 1, 2, 4,
//! ... segments, at most Smax. A loss reduces the window by an eighth. If a loss occurs below the old maximum, the new
//! maximum is the midpoint between the windows before and after the loss (*fast convergence*). Windows below 14
//! segments behave as in Reno.
//!
//! **Source.** Xu, Harfoush and Rhee, Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks, INFOCOM
//! 2004, section IV with the constants of its section V (Smax 32, Smin 0.01, beta 0.125, low window 14). Before the
//! first loss, and after a timeout, there is no maximum. The implementation follows the text of the paper, from which
//! its response function is derived. The pseudo-code of the paper differs. It sets a new target with every
//! acknowledgment instead of every round trip. It discards a maximum that was passed, so that the next loss counts as
//! one below it. After a loss below the low window it keeps the previous maximum; here such a loss sets the maximum
//! like any other, as in Linux.
//!
//! Linux 6.12 `net/ipv4/tcp_bic.c` has other constants. A loss reduces the window by a fifth (`beta` 819/1024). A step
//! is a quarter of the distance (`BICTCP_B` 4) and at most 16 segments (`max_increment`). The last four segments up to
//! the maximum and the first four beyond it take 20 round trips (`smooth_part`). Before the first loss, the window
//! grows by at least a twentieth per round trip.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, WindowLaw};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static BIC: ControlComponent = ControlComponent::with_law::<Bic>(Declaration {
    name: "bic",
    version: "Xu, Harfoush and Rhee (2004)",
    source: "INFOCOM 2004",
    text: "Binary search between the window at the last loss and the window after it; reduces by an eighth on \
               loss.",
    ..Declaration::EMPTY
});

/// The largest and the smallest step in segments.
const S_MAX: f64 = 32.0;
const S_MIN: f64 = 0.01;
/// The inverse of the share by which a loss reduces the window.
const SHARES: u64 = 8;
/// Windows below this number of segments behave as in Reno.
const LOW_WINDOW: f64 = 14.0;

/// The window law of BIC. Windows are in bytes, and increments in segments.
#[derive(Clone, Debug, Default)]
pub struct Bic {
    search: Search,
    /// The search state before the last reduction.
    before: Search,
}

#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// The upper limit of the search; zero if none is known.
    max_bytes: f64,
    /// The end of the current step; zero before the first step after a reduction.
    target_bytes: u64,
    step_segments: f64,
    /// Whether the current step probes for a new maximum.
    probing: bool,
}

impl Search {
    /// Begins the next step, when the window has reached the end of a step or after a reduction.
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

impl WindowLaw for Bic {
    const NAME: &'static str = BIC.declaration.name;

    fn increase_segments(&mut self, control: &WindowState, _ack: &Ack) -> f64 {
        let (cwnd, mss) = (control.cwnd_bytes as f64, segment(control) as f64);
        if cwnd < LOW_WINDOW * mss {
            return 1.0;
        }
        if control.cwnd_bytes >= self.search.target_bytes {
            self.search.next_step(control.cwnd_bytes, mss);
        }
        self.search.step_segments
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        self.before = self.search;
        let window = control.cwnd_bytes;
        if cause == ReductionCause::Timeout {
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

    fn on_idle_restart(&mut self, _now: Instant) {
        self.search = Search { max_bytes: self.search.max_bytes, ..Search::default() };
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("max_bytes", self.search.max_bytes));
        out.push(("step_segments", self.search.step_segments));
    }
}
