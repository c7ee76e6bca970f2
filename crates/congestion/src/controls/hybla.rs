//! The congestion control TCP Hybla.
//!
//! **Model.** A connection with a long round-trip time is to send as fast as a Reno connection with 25 ms (`RTT0`).
//! With rho = RTT / RTT0, at least 1, each segment acknowledged adds 2^rho - 1 segments in slow start and rho^2 /
//! window in congestion avoidance. A loss halves the window. At any time since the start, the window is thus rho times
//! that of Reno. The rate, window / RTT, is that of Reno at 25 ms.
//!
//! **Source.** Caini and Firrincieli, TCP Hybla: a TCP enhancement for heterogeneous networks, International Journal of
//! Satellite Communications and Networking 22(5), 2004, equations for slow start and congestion avoidance. As in Linux
//! 6.12 `net/ipv4/tcp_hybla.c`, rho follows the smallest smoothed round-trip time, 2^rho is at most 2^16, and the
//! window grows only while it limits sending. The initial window is that of the transport, not rho times it. Pacing and
//! the paper's packet-pair estimate of the first threshold are not part of the control: use a transport with pacing.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{LawController, ReductionCause, WindowLaw};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant, math};

pub(super) static HYBLA: ControlComponent = ControlComponent::new(
    Declaration {
        name: "hybla",
        version: "Caini and Firrincieli (2004), as in Linux 6.12",
        source: "IJSCN 22(5), 2004; Linux net/ipv4/tcp_hybla.c",
        text: "On a long path, sends as fast as Reno at a round-trip time of 25 ms.",
        ..Declaration::EMPTY
    },
    |_| Box::new(LawController::<Hybla>::default()),
);

/// The round-trip time of the reference connection.
const RTT0: Duration = Duration::from_millis(25);
/// The largest rho in the exponent of slow start.
const MAX_EXPONENT: f64 = 16.0;

/// The window law of Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    smallest_rtt: Duration,
    rho: f64,
    /// The increase in slow start, 2^rho - 1 segments.
    slow_start: f64,
}

impl Default for Hybla {
    fn default() -> Self {
        Hybla { smallest_rtt: Duration::MAX, rho: 1.0, slow_start: 1.0 }
    }
}

impl Hybla {
    fn sample(&mut self, rtt: Duration) {
        if rtt.is_zero() || rtt >= self.smallest_rtt {
            return;
        }
        self.smallest_rtt = rtt;
        self.rho = (rtt.as_nanos() as f64 / RTT0.as_nanos() as f64).max(1.0);
        self.slow_start = math::pow(2.0, self.rho.min(MAX_EXPONENT)) - 1.0;
    }
}

impl WindowLaw for Hybla {
    const NAME: &'static str = HYBLA.declaration.name;

    fn on_established(&mut self, _now: Instant, rtt: Option<Duration>) {
        self.sample(rtt.unwrap_or_default());
    }

    fn sample_ack(&mut self, _control: &WindowState, ack: &Ack) {
        self.sample(ack.smoothed_rtt);
    }

    fn slow_start_segments(&self) -> f64 {
        self.slow_start
    }

    fn increase_segments(&mut self, _control: &WindowState, _ack: &Ack) -> f64 {
        self.rho * self.rho
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, _cause: ReductionCause) -> u64 {
        control.cwnd_bytes / 2
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("rho", self.rho));
    }
}
