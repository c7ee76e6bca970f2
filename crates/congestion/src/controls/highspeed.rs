//! The congestion control HighSpeed TCP.
//!
//! **Model.** Up to 38 segments, the window behaves as in Reno. Above that, a larger window `w` grows by more segments
//! `a(w)` per round trip, and a loss reduces it by a smaller share `b(w)`. A window of 83 000 segments thus needs one
//! loss in 10^7 packets instead of one in 5 * 10^9. On logarithmic axes the response function is the straight line from
//! (10^-3, 38) to about (10^-7, 83 000), w = 0.12 / p^0.835, and b(w) falls linearly in the logarithm of w from 0.5 to
//! 0.1:
//!
//! ```text
//! p(w) = 0.078 / w^1.2      a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
//! ```
//!
//! **Source.** RFC 3649 (December 2003) sections 5 and 7. `a` and `b` are functions, not steps as in its appendix B.
//! Above 83 000 segments b stays at 0.1, because the formula would become negative. Timeouts halve the window. Limited
//! slow start (RFC 3742) is not included.

use crate::component::ControlComponent;
use crate::control::{Ack, WindowState};
use crate::law::{ReductionCause, WindowLaw};
use crate::window::segment;
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Instant, math};

pub(super) static HIGHSPEED: ControlComponent = ControlComponent::with_law::<HighSpeed>(Declaration {
    name: "highspeed",
    version: "RFC 3649 (2003)",
    source: "RFC 3649 section 5",
    text: "Above 38 segments, a larger window grows faster and is reduced less on loss.",
    ..Declaration::EMPTY
});

/// The largest window in segments with the behavior of Reno (`Low_Window`).
const LOW_WINDOW: f64 = 38.0;
/// The window for 10 Gbit/s at 100 ms (`High_Window`).
const HIGH_WINDOW: f64 = 83_000.0;
/// The share by which a loss reduces that window (`High_Decrease`).
const HIGH_DECREASE: f64 = 0.1;
const LOW_DECREASE: f64 = 0.5;

/// The window law of HighSpeed TCP (RFC 3649).
#[derive(Clone, Debug, Default)]
pub struct HighSpeed {
    /// The window in whole segments for which the increase is cached, because it needs logarithms.
    segments: u64,
    increase: f64,
}

/// `b(w)`.
fn decrease(segments: f64) -> f64 {
    let segments = segments.clamp(LOW_WINDOW, HIGH_WINDOW);
    let progress = math::ln(segments / LOW_WINDOW) / math::ln(HIGH_WINDOW / LOW_WINDOW);
    LOW_DECREASE + (HIGH_DECREASE - LOW_DECREASE) * progress
}

/// `a(w)`.
fn increase(segments: f64) -> f64 {
    if segments <= LOW_WINDOW {
        return 1.0;
    }
    let p = 0.078 / math::pow(segments, 1.2);
    let b = decrease(segments);
    segments * segments * p * 2.0 * b / (2.0 - b)
}

fn segments(control: &WindowState) -> f64 {
    control.cwnd_bytes as f64 / segment(control) as f64
}

impl WindowLaw for HighSpeed {
    const NAME: &'static str = HIGHSPEED.declaration.name;

    fn increase_segments(&mut self, control: &WindowState, _ack: &Ack) -> f64 {
        let whole = control.cwnd_bytes / segment(control);
        if whole != self.segments {
            self.segments = whole;
            self.increase = increase(whole as f64);
        }
        self.increase
    }

    fn reduced_window_bytes(&mut self, control: &WindowState, _now: Instant, cause: ReductionCause) -> u64 {
        if cause == ReductionCause::Timeout {
            return control.cwnd_bytes / 2;
        }
        (control.cwnd_bytes as f64 * (1.0 - decrease(segments(control)))) as u64
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("increase_segments", self.increase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increase_and_decrease_match_the_table_of_rfc_3649() {
        // RFC 3649 appendix B: the windows at which a(w) reaches the next whole number, with b(w) to two digits.
        for (window, a, b) in [
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (347.0, 4.0, 0.38),
            (495.0, 5.0, 0.37),
            (663.0, 6.0, 0.35),
            (851.0, 7.0, 0.34),
            (1_058.0, 8.0, 0.33),
            (1_529.0, 10.0, 0.31),
            (5_036.0, 20.0, 0.25),
            (11_358.0, 31.0, 0.20),
        ] {
            assert!((a..1.004 * a).contains(&increase(window)), "a({window}) = {}", increase(window));
            assert!((decrease(window) - b).abs() <= 0.005, "b({window}) = {}", decrease(window));
        }
    }

    #[test]
    fn increase_and_decrease_are_continuous_at_both_ends_of_the_response_function() {
        // Up to 38 segments it is Reno. There the formula gives nearly the same: 38^0.8 * 0.078 * 1 / 1.5 = 0.9546.
        for window in [0.0, 1.0, 37.9, 38.0] {
            assert_eq!((increase(window), decrease(window)), (1.0, 0.5));
        }
        assert!((increase(38.001) - 0.9546).abs() < 1e-3, "{}", increase(38.001));
        // 83 000^0.8 = 8 615.1; times 0.078 * 0.2 / 1.9: 70.73.
        assert!((increase(HIGH_WINDOW) - 70.73).abs() < 0.01, "{}", increase(HIGH_WINDOW));
        assert!((decrease(HIGH_WINDOW) - 0.1).abs() < 1e-12);
        // Above that b is constant: for ten times the window, a is 10^0.8 times as large.
        assert!((decrease(1e12) - 0.1).abs() < 1e-12);
        let ratio = increase(10.0 * HIGH_WINDOW) / increase(HIGH_WINDOW);
        assert!((ratio - 6.3096).abs() < 1e-3, "{ratio}");
    }
}
