//! The congestion control TCP Illinois.
//!
//! **Model.** Losses determine *when* to reduce the window, and the queueing delay determines *by how much* it grows
//! and shrinks. Once per round, the mean queueing delay of the round, da, is compared with the largest so far, dm (both
//! in excess of the smallest round-trip time). The window grows by 10 segments per round trip without delay and by 0.3
//! with the largest delay, with a hyperbola in between. A loss reduces the window by an eighth if the delay is at most
//! a tenth of the largest, and by half if it is at least eight tenths, with a line in between:
//!
//! ```text
//! alpha = 10                            if da <= dm/100, else
//!         10 x / (x + y (10 - 0.3)/0.3) with x = dm - dm/100, y = da - dm/100
//! beta  = 1/8 ... 1/2                   linear between da = dm/10 and 8 dm/10
//! ```
//!
//! Once the delay has exceeded dm/100, alpha returns to 10 only after five successive rounds in which it has not.
//! Windows below 15 segments behave as in Reno.
//!
//! **Source.** Liu, Basar and Srikant, TCP-Illinois: A Loss- and Delay-Based Congestion Control Algorithm for
//! High-Speed Networks, Performance Evaluation 65(6-7), 2008, sections 3 and 4. Constants and rounds are those of Linux
//! 6.12 `net/ipv4/tcp_illinois.c`, with floating-point instead of fixed-point numbers. In Linux the five rounds need
//! not be successive.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, RoundTripTimes, WindowLaw};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static ILLINOIS: ControlComponent = ControlComponent::with_law::<Illinois>(Declaration {
    name: "illinois",
    version: "Liu, Basar and Srikant (2008), as in Linux 6.12",
    source: "Performance Evaluation 65(6-7), 2008; Linux net/ipv4/tcp_illinois.c",
    text: "Grows more slowly and reduces the window more on loss, the longer the queueing delay.",
    ..Declaration::EMPTY
});

const ALPHA_MIN: f64 = 0.3;
const ALPHA_MAX: f64 = 10.0;
const BETA_MIN: f64 = 1.0 / 8.0;
const BETA_MAX: f64 = 1.0 / 2.0;
/// Windows below this number of segments behave as in Reno.
const SMALL_WINDOW: u64 = 15;
/// The number of successive rounds with low delay before alpha returns to its largest value.
const THETA: u32 = 5;

/// The window law of Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    times: RoundTripTimes,
    alpha: f64,
    beta: f64,
    /// Whether the delay has exceeded a hundredth of the largest since alpha had its largest value.
    above: bool,
    low_rounds: u32,
}

impl Default for Illinois {
    fn default() -> Self {
        Illinois { times: RoundTripTimes::default(), alpha: ALPHA_MAX, beta: BETA_MAX, above: false, low_rounds: 0 }
    }
}

impl Illinois {
    fn adjust(&mut self, control: &WindowState) {
        if control.cwnd_bytes / segment(control) < SMALL_WINDOW {
            (self.alpha, self.beta) = (1.0, BETA_MAX);
        } else if let Some(mean) = self.times.mean_delay() {
            let most = self.times.largest.saturating_sub(self.times.base).as_nanos() as f64;
            let mean = mean.as_nanos() as f64;
            self.alpha = self.alpha(mean, most);
            self.beta = beta(mean, most);
        }
    }

    fn alpha(&mut self, mean: f64, most: f64) -> f64 {
        let low = most / 100.0;
        if mean > low {
            self.above = true;
            self.low_rounds = 0;
            let (x, y) = (most - low, mean - low);
            return x * ALPHA_MAX / (x + y * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        }
        if self.above {
            self.low_rounds += 1;
            if self.low_rounds < THETA {
                return self.alpha;
            }
            self.above = false;
            self.low_rounds = 0;
        }
        ALPHA_MAX
    }
}

fn beta(mean: f64, most: f64) -> f64 {
    let (low, high) = (most / 10.0, most * 8.0 / 10.0);
    if mean <= low {
        return BETA_MIN;
    }
    BETA_MIN + (BETA_MAX - BETA_MIN) * ((mean - low) / (high - low)).min(1.0)
}

impl WindowLaw for Illinois {
    const NAME: &'static str = ILLINOIS.declaration.name;

    fn round_trip_times(&mut self) -> Option<&mut RoundTripTimes> {
        Some(&mut self.times)
    }

    fn on_round_end(&mut self, control: &mut WindowState, _ack: &Ack) {
        self.adjust(control);
        self.times.begin_round();
    }

    fn increase_segments(&mut self, _control: &WindowState, _ack: &Ack) -> f64 {
        self.alpha
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        let reduced = (control.cwnd_bytes as f64 * (1.0 - self.beta)) as u64;
        if cause == ReductionCause::Timeout {
            (self.alpha, self.beta) = (1.0, BETA_MAX);
            self.above = false;
            self.low_rounds = 0;
            self.times.begin_round();
        }
        reduced
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
        out.push(("beta", self.beta));
    }
}
