//! The congestion control TCP Veno.
//!
//! **Model.** The queue estimate of Vegas distinguishes two kinds of loss. N = window * (rtt - base) / rtt segments are
//! in queues, where rtt is the smallest round-trip time of the last round. With fewer than three segments (beta), a
//! loss counts as random, such as on a radio link, and reduces the window by a fifth. Otherwise, it halves the window.
//! While three or more segments are queued, the window grows by a segment only every other round trip, so that it stays
//! near its optimum for longer.
//!
//! **Source.** Fu and Liew, TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks, IEEE JSAC 21(2),
//! 2003, section III. As in Linux 6.12 `net/ipv4/tcp_veno.c`, a round with at most two samples is not evaluated; here
//! the last N then remains. Unlike in Linux, N is computed once per round, as in the paper. A timeout halves the
//! window, as in the paper, and so does a mark, which is never random.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, RoundTripTimes, WindowLaw};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static VENO: ControlComponent = ControlComponent::with_law::<Veno>(Declaration {
    name: "veno",
    version: "Fu and Liew (2003), as in Linux 6.12",
    source: "IEEE JSAC 21(2), 2003; Linux net/ipv4/tcp_veno.c",
    text: "Reno that reduces by a fifth, not half, on a loss with fewer than three segments in queues.",
    ..Declaration::EMPTY
});

/// With at least this number of segments in queues, a loss counts as due to congestion.
const BETA: u64 = 3;

/// The window law of Veno.
#[derive(Clone, Debug, Default)]
pub struct Veno {
    times: RoundTripTimes,
    queued_bytes: u64,
}

impl Veno {
    fn congested(&self, control: &WindowState) -> bool {
        self.queued_bytes >= segment(control).saturating_mul(BETA)
    }
}

impl WindowLaw for Veno {
    const NAME: &'static str = VENO.declaration.name;

    fn round_trip_times(&mut self) -> Option<&mut RoundTripTimes> {
        Some(&mut self.times)
    }

    fn sample_ack(&mut self, control: &WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.times.sample(rtt);
        }
        if ack.round_start {
            self.queued_bytes = self.times.queued_bytes(control.cwnd_bytes).unwrap_or(self.queued_bytes);
            self.times.begin_round();
        }
    }

    fn increase_segments(&mut self, control: &WindowState, _ack: &Ack) -> f64 {
        if self.congested(control) { 0.5 } else { 1.0 }
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        if cause == ReductionCause::Loss && !self.congested(control) {
            control.cwnd_bytes - control.cwnd_bytes / 5
        } else {
            control.cwnd_bytes / 2
        }
    }

    fn on_idle_restart(&mut self, _now: Instant) {
        *self = Veno::default();
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("queued_bytes", self.queued_bytes as f64));
    }
}
