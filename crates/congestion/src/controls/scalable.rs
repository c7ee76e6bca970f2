//! The congestion control Scalable TCP.
//!
//! **Model.** Each segment acknowledged adds 0.01 segments, and a loss reduces the window by an eighth. The time from a
//! loss back to the old window, ln(8/7) / ln 1.01 = 13.4 round trips, does not depend on the window. Up to 100
//! segments, where Reno would grow faster, the window grows as in Reno.
//!
//! In a cycle of N packets, the window grows by 0.01 N and is reduced by W/8, so W = 0.08 N. The mean window is
//! slightly smaller.
//!
//! **Source.** Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003 (a =
//! 0.01, b = 0.125). The rule for small windows is that of Linux 6.12 `net/ipv4/tcp_scalable.c`. In the paper, windows
//! up to 16 segments behave entirely as in Reno, and above that a = 0.01.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, WindowLaw};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static SCALABLE: ControlComponent = ControlComponent::with_law::<Scalable>(Declaration {
    name: "scalable",
    version: "Kelly (2003), as in Linux 6.12",
    source: "ACM CCR 33(2), 2003; Linux net/ipv4/tcp_scalable.c",
    text: "A hundredth of a segment per segment acknowledged; reduces by an eighth on loss.",
    ..Declaration::EMPTY
});

/// The number of segments acknowledged for an increase by one segment, 1/a.
const SEGMENTS_PER_STEP: f64 = 100.0;
/// The inverse of the share by which a loss reduces the window, 1/b.
const SHARES: u64 = 8;

/// The window law of Scalable TCP.
#[derive(Clone, Debug, Default)]
pub struct Scalable;

/// The increase in segments per round trip. YeAH uses it too.
pub(crate) fn increase_segments(control: &WindowState) -> f64 {
    (control.cwnd_bytes as f64 / segment(control) as f64 / SEGMENTS_PER_STEP).max(1.0)
}

impl WindowLaw for Scalable {
    const NAME: &'static str = SCALABLE.declaration.name;

    fn increase_segments(&mut self, control: &WindowState, _ack: &Ack) -> f64 {
        increase_segments(control)
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, _cause: ReductionCause) -> u64 {
        control.cwnd_bytes - control.cwnd_bytes / SHARES
    }
}
