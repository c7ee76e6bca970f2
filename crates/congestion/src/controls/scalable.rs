//! Scalable TCP.
//!
//! **Model.** Each segment acknowledged adds 0.01 segments, a loss takes an eighth of the window: the time from a loss
//! back to the old window, ln(8/7) / ln 1.01 = 13.4 round trips, does not depend on the window. While Reno would grow
//! faster, up to 100 segments, the window grows as Reno's.
//!
//! In a cycle the window grows by 0.01 N for N packets and loses W/8: W = 0.08 N, the mean a little less.
//!
//! **Source.** Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, ACM CCR 33(2), 2003 (a = 0.01,
//! b = 0.125); the rule for small windows is that of Linux 6.12 `net/ipv4/tcp_scalable.c`, where the paper has Reno in
//! whole up to 16 segments and a = 0.01 at once beyond.

use crate::component::ControlComponent;
use crate::control::{Ack, Control};
use crate::law::{Cause, Governed, Law};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static SCALABLE: ControlComponent = ControlComponent::new(
    Declaration {
        name: "scalable",
        version: "Kelly (2003), as in Linux 6.12",
        source: "ACM CCR 33(2), 2003; Linux net/ipv4/tcp_scalable.c",
        text: "A hundredth of a segment per segment acknowledged; takes an eighth on loss.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Governed::<Scalable>::default()),
);

/// Segments acknowledged for one more in the window, 1/a.
const SEGMENTS_PER_STEP: f64 = 100.0;
/// 1/b.
const SHARES: u64 = 8;

/// The law of Scalable TCP.
#[derive(Clone, Debug, Default)]
pub struct Scalable;

/// Segments per round trip; YeAH grows alike.
pub(crate) fn increase_segments(control: &Control) -> f64 {
    (control.cwnd_bytes as f64 / segment(control) as f64 / SEGMENTS_PER_STEP).max(1.0)
}

impl Law for Scalable {
    const NAME: &'static str = SCALABLE.declaration.name;

    fn increase_segments(&mut self, control: &Control, _ack: &Ack) -> f64 {
        increase_segments(control)
    }

    fn reduced_bytes(&mut self, control: &Control, _now: Instant, _cause: Cause) -> u64 {
        control.cwnd_bytes - control.cwnd_bytes / SHARES
    }
}
