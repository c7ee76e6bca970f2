//! The congestion control TCP Westwood+.
//!
//! **Model.** The window grows as in Reno. A loss does not halve the window but sets it to the capacity of the path
//! without a queue: bandwidth * smallest round-trip time. The sender measures the bandwidth from acknowledgments. Once
//! per round trip, and at most every 50 ms, the bytes acknowledged over the elapsed time are a sample. Two successive
//! low-pass filters, each with weight 1/8 for the new value, smooth the samples. Random losses, such as on a radio
//! link, thus reduce the window little while there is no queue.
//!
//! **Source.** Mascolo, Casetti, Gerla, Sanadidi and Wang, TCP Westwood: Bandwidth Estimation for Enhanced Transport
//! over Wireless Links, MobiCom 2001 (the rule); Grieco and Mascolo, Performance Evaluation and Comparison of
//! Westwood+, New Reno and Vegas TCP Congestion Control, ACM CCR 34(2), 2004 (a sample per round trip). Samples, filter
//! and the new search for the smallest round-trip time after a timeout are those of Linux 6.12
//! `net/ipv4/tcp_westwood.c`. Unlike in Linux, a loss never raises the window, and before the first sample a loss
//! halves it.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, WindowLaw};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static WESTWOOD: ControlComponent = ControlComponent::with_law::<Westwood>(Declaration {
    name: "westwood",
    version: "Westwood+, Grieco and Mascolo (2004), as in Linux 6.12",
    source: "ACM CCR 34(2), 2004; Linux net/ipv4/tcp_westwood.c",
    text: "Reno that on loss sets the window to the measured bandwidth times the smallest round-trip time.",
    ..Declaration::EMPTY
});

/// The shortest interval of a sample.
const SHORTEST: Duration = Duration::from_millis(50);
/// The weight of the new value in each filter.
const GAIN: f64 = 1.0 / 8.0;

/// The window law of Westwood+.
#[derive(Clone, Debug)]
pub struct Westwood {
    smallest_rtt: Duration,
    last_rtt: Duration,
    /// Whether the next sample restarts the search for the smallest round-trip time.
    search: bool,
    /// Bytes acknowledged since the last sample.
    bytes: u64,
    since: Instant,
    /// The outputs of the first and the second filter, in bytes per second; zero before the first sample.
    once: f64,
    twice: f64,
}

impl Default for Westwood {
    fn default() -> Self {
        Westwood {
            smallest_rtt: Duration::MAX,
            last_rtt: Duration::ZERO,
            search: false,
            bytes: 0,
            since: Instant::NEVER,
            once: 0.0,
            twice: 0.0,
        }
    }
}

impl Westwood {
    fn sample_rtt(&mut self, rtt: Duration) {
        self.last_rtt = rtt;
        self.smallest_rtt = if self.search { rtt } else { self.smallest_rtt.min(rtt) };
        self.search = false;
    }

    fn filter(&mut self, bytes_per_second: f64) {
        if self.once == 0.0 {
            (self.once, self.twice) = (bytes_per_second, bytes_per_second);
        } else {
            self.once += (bytes_per_second - self.once) * GAIN;
            self.twice += (self.once - self.twice) * GAIN;
        }
    }
}

impl WindowLaw for Westwood {
    const NAME: &'static str = WESTWOOD.declaration.name;

    fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.since = now;
        if let Some(rtt) = rtt {
            self.sample_rtt(rtt);
        }
    }

    fn sample_ack(&mut self, _control: &WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        if self.since.is_never() {
            self.since = ack.now;
            return;
        }
        self.bytes = self.bytes.saturating_add(ack.acked_bytes);
        let took = ack.now.saturating_since(self.since);
        if took > self.last_rtt.max(SHORTEST) {
            self.filter(self.bytes as f64 / took.as_secs_f64());
            self.bytes = 0;
            self.since = ack.now;
        }
    }

    fn increase_segments(&mut self, _control: &WindowState, _ack: &Ack) -> f64 {
        1.0
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        // `as` saturates. Without a bandwidth there may be no round-trip time either.
        let carried = (self.twice * self.smallest_rtt.as_secs_f64()) as u64;
        let reduced = if self.twice == 0.0 { control.cwnd_bytes / 2 } else { carried };
        if cause == ReductionCause::Timeout {
            self.search = true;
            reduced
        } else {
            reduced.min(control.cwnd_bytes)
        }
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("bandwidth_bps", self.twice * 8.0));
    }
}
