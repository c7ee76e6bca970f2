//! Veno.
//!
//! **Model.** Vegas' measure tells two kinds of loss apart. N = window * (rtt - base) / rtt segments stand in queues,
//! by the smallest round-trip time of the last round. With fewer than three (beta) a loss is taken for random, of a
//! radio link say, and costs a fifth of the window; with three or more, half. While three or more are queued the window
//! grows by a segment every other round trip only, to stay near its full use for longer.
//!
//! **Source.** Fu and Liew, TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks, IEEE JSAC 21(2),
//! 2003, section III. As in Linux 6.12 `net/ipv4/tcp_veno.c` a round with two samples or fewer says nothing, here that
//! leaves the last N; unlike there N is taken per round, as in the paper. A time-out takes half, as in the paper, and so
//! does a mark, which is never random.

use crate::component::ControlComponent;
use crate::control::{Ack, Control};
use crate::law::{Cause, Governed, Law, RoundTrips};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static VENO: ControlComponent = ControlComponent::new(
    Declaration {
        name: "veno",
        version: "Fu and Liew (2003), as in Linux 6.12",
        source: "IEEE JSAC 21(2), 2003; Linux net/ipv4/tcp_veno.c",
        text: "Reno that takes a fifth, not half, on a loss with fewer than three segments in queues.",
        ..Declaration::EMPTY
    },
    |_| Box::new(Governed::<Veno>::default()),
);

/// So many segments in queues are congestion.
const BETA: u64 = 3;

/// The law of Veno.
#[derive(Clone, Debug, Default)]
pub struct Veno {
    times: RoundTrips,
    queued_bytes: u64,
}

impl Veno {
    fn congested(&self, control: &Control) -> bool {
        self.queued_bytes >= segment(control).saturating_mul(BETA)
    }
}

impl Law for Veno {
    const NAME: &'static str = VENO.declaration.name;

    fn round_trips(&mut self) -> Option<&mut RoundTrips> {
        Some(&mut self.times)
    }

    fn measure(&mut self, control: &Control, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.times.sample(rtt);
        }
        if ack.round_start {
            self.queued_bytes = self.times.queued_bytes(control.cwnd_bytes).unwrap_or(self.queued_bytes);
            self.times.begin_round();
        }
    }

    fn increase_segments(&mut self, control: &Control, _ack: &Ack) -> f64 {
        if self.congested(control) { 0.5 } else { 1.0 }
    }

    fn reduced_bytes(&mut self, control: &Control, _now: Instant, cause: Cause) -> u64 {
        if cause == Cause::Loss && !self.congested(control) {
            control.cwnd_bytes - control.cwnd_bytes / 5
        } else {
            control.cwnd_bytes / 2
        }
    }

    fn restart(&mut self, _now: Instant) {
        *self = Veno::default();
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("queued_bytes", self.queued_bytes as f64));
    }
}
