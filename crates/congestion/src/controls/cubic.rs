//! The congestion control CUBIC.
//!
//! **Model.** After a reduction the window follows a cubic function of *time*. It grows fast at first, slowly around
//! the window at which the reduction occurred (`w_max`), and fast again beyond it:
//!
//! ```text
//! W(t) = C (t - K)^3 + w_max        K = cbrt((w_max - window at t = 0) / C)
//! ```
//!
//! in segments and seconds, C = 0.4. Each acknowledgment moves the window towards the value of the curve one round trip
//! ahead, but by at most half a window per round trip. If Reno would have a larger window (`w_est`, an estimate that
//! grows linearly), that window is used. A reduction multiplies the window by 0.7. If the window had not reached the
//! old `w_max`, the reduction also lowers `w_max` further (*fast convergence*), to release bandwidth for new flows.
//!
//! **Source.** RFC 9438 (August 2023), sections 4.1 to 4.10; HyStart++ (RFC 9406) in the first slow start as an option.
//!
//! **Choices that the RFC leaves open.**
//! * Section 4.6: a reduction starts from the *window*, not from the bytes in flight. With selective acknowledgments,
//!   data acknowledged out of order has already been subtracted from the bytes in flight. The RFC then requires that an
//!   unused window does not grow: it grows only while [`Ack::cwnd_limited`](crate::control::Ack::cwnd_limited).
//! * Sections 4.4 and 4.5 define the growth per acknowledgment of one segment. Here the growth is per segment
//!   acknowledged, so that delayed acknowledgments do not change it.
//! * Section 4.3 sets the window to `w_est` in the Reno-friendly region; here that never lowers the window.
//! * Section 4.10: slow start adds every byte acknowledged up to the threshold, as Linux and ns-3 do. HyStart++ without
//!   pacing limits the growth to eight segments per acknowledgment.
//! * Section 4.2: time in which the application limited sending is excluded from `t` at each acknowledgment and at the
//!   restart after an idle period. A pause is not detected if it is shorter than the retransmission timeout and the
//!   window is full immediately after it.

use crate::component::{ControlComponent, HyStartSupport};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PlainAck, RecoveryExit, Timeout, WindowState,
};
use crate::hystart::{HyStart, slow_start};
use crate::window;
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant, math};

pub(super) static CUBIC: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "cubic",
        version: "RFC 9438 (2023)",
        source: "RFC 9438; HyStart++: RFC 9406",
        text: "Window as a cubic function of time since the last loss, never below Reno's; 0.7 of the window on \
                  loss.",
        ..Declaration::EMPTY
    },
    create: |options| {
        let linux = || HyStart::linux(options.paced);
        let hystart = options.standard_hystart().map(|standard| if options.linux_hystart { linux() } else { standard });
        let early_growth = options.linux_hystart;
        Box::new(Cubic::new(CubicConfig { hystart, early_growth, abe: options.abe, ..CubicConfig::default() }))
    },
    hystart: HyStartSupport::Standard,
    values: &[],
    states: &[],
    linux_name: None,
};

/// Aggressiveness in segments per cubic second (section 5.1).
const C: f64 = 0.4;
/// Multiplicative decrease (section 4.6).
const BETA: f64 = 0.7;
/// Additive increase that gives the mean window of Reno with this decrease: 3 (1 - beta) / (1 + beta) (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Options of CUBIC.
#[derive(Clone, Debug)]
pub struct CubicConfig {
    /// Fast convergence (RFC 9438 section 4.7), on by default. The RFC recommends disabling it in networks with a
    /// single flow.
    pub fast_convergence: bool,
    /// The Reno-friendly region (RFC 9438 section 4.3), on by default. ns-3 up to version 3.37 does not implement this
    /// region. In ns-3, the window stays at a `w_max` that fast convergence has lowered, even if Reno's window would be
    /// larger.
    pub reno_friendly: bool,
    /// Whether the window grows by at least 5% per round trip until the first reduction sets `w_max`, as in Linux; off
    /// by default. In the RFC, the window follows the cubic curve from the end of slow start instead.
    pub early_growth: bool,
    /// The HyStart variant for the first slow start; `None` (the default) disables HyStart.
    pub hystart: Option<HyStart>,
    /// Alternative Backoff with ECN (RFC 8511), off by default: a mark reduces the window to 85% of its value.
    pub abe: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        CubicConfig { fast_convergence: true, reno_friendly: true, early_growth: false, hystart: None, abe: false }
    }
}

/// CUBIC (RFC 9438). Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Cubic {
    curve: Curve,
    /// The time of the last acknowledgment, for the time to exclude from the curve while the window is unused.
    last_ack_at: Instant,
    /// The state before the last reduction (section 4.9), while an undo is possible. It is boxed because it is empty
    /// most of the time.
    before: Option<Box<Before>>,
    hystart: Option<HyStart>,
    /// The fraction of a byte by which the window has grown.
    fraction: f32,
    fast_convergence: bool,
    reno_friendly: bool,
    early_growth: bool,
    abe: bool,
    /// Whether the current stage began without a known `w_max`.
    w_max_unknown: bool,
    in_recovery: bool,
}

/// The state before a reduction.
#[derive(Clone, Copy, Debug)]
struct Before {
    curve: Curve,
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
}

/// The state of the window growth.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// The start of the current stage of congestion avoidance; [`Instant::NEVER`] until its first acknowledgment.
    epoch_at: Instant,
    /// The window at the plateau of the curve. If unknown it is 0, and the window at the start of the stage is used.
    w_max_bytes: f64,
    /// The time of the plateau in seconds after the start of the stage (K).
    k_seconds: f64,
    /// The estimate of the window that Reno would have.
    w_est_bytes: f64,
    /// The window at the last change of the threshold.
    cwnd_prior_bytes: f64,
}

impl Cubic {
    /// Creates CUBIC with this configuration.
    pub fn new(config: CubicConfig) -> Self {
        let curve = Curve {
            epoch_at: Instant::NEVER,
            w_max_bytes: 0.0,
            k_seconds: 0.0,
            w_est_bytes: 0.0,
            cwnd_prior_bytes: 0.0,
        };
        Cubic {
            curve,
            last_ack_at: Instant::ZERO,
            before: None,
            hystart: config.hystart,
            fraction: 0.0,
            fast_convergence: config.fast_convergence,
            reno_friendly: config.reno_friendly,
            early_growth: config.early_growth,
            abe: config.abe,
            w_max_unknown: false,
            in_recovery: false,
        }
    }

    /// Handles one acknowledgment in congestion avoidance with the window in use.
    #[inline]
    fn avoid(&mut self, control: &mut WindowState, now: Instant, smoothed_rtt: Duration, acked_bytes: u64) {
        let mss = window::segment(control) as f64;
        let cwnd = (control.cwnd_bytes as f64 + f64::from(self.fraction)).max(mss);
        if self.curve.epoch_at.is_never() {
            self.w_max_unknown = self.curve.w_max_bytes == 0.0;
            self.curve.start(now, cwnd, mss);
        }
        let curve = &mut self.curve;
        // The share of the acknowledgments of a round trip. It is limited to 1, so that an acknowledgment of more than
        // the window cannot overshoot the target.
        let share = (acked_bytes as f64 / cwnd).min(1.0);
        let elapsed = now.saturating_since(curve.epoch_at);
        let alpha = if curve.w_est_bytes >= curve.cwnd_prior_bytes { 1.0 } else { ALPHA };
        curve.w_est_bytes += alpha * mss * share;
        let grown = if self.reno_friendly && curve.window_bytes(elapsed, mss) < curve.w_est_bytes {
            curve.w_est_bytes.max(cwnd)
        } else {
            let target = curve.window_bytes(elapsed.saturating_add(smoothed_rtt), mss).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * share
        };
        let early = if self.early_growth && self.w_max_unknown { cwnd * (1.0 + share / 20.0) } else { 0.0 };
        let grown = grown.max(early);
        // `as` saturates. Beyond 2^53 bytes, an f64 may be smaller than the integer from which it was converted.
        control.cwnd_bytes = control.cwnd_bytes.max(grown as u64);
        self.fraction = (grown - control.cwnd_bytes as f64).clamp(0.0, 1.0) as f32;
    }

    /// Excludes time in which the window was not used (section 4.2).
    fn leave_out_until(&mut self, now: Instant) {
        if !self.curve.epoch_at.is_never() {
            let unused = now.saturating_since(self.last_ack_at);
            self.curve.epoch_at = self.curve.epoch_at.saturating_add(unused).min(now);
        }
    }

    /// Saves all state that a reduction changes.
    fn save(&mut self, control: &WindowState) {
        let WindowState { cwnd_bytes, ssthresh_bytes, .. } = *control;
        self.before = Some(Box::new(Before { curve: self.curve, cwnd_bytes, ssthresh_bytes }));
    }

    /// Ends the stage with the current window. The next stage begins with the first acknowledgment after recovery.
    fn end_stage(&mut self, control: &WindowState) {
        self.curve.cwnd_prior_bytes = control.cwnd_bytes as f64;
        self.curve.epoch_at = Instant::NEVER;
        self.fraction = 0.0;
    }
}

impl Curve {
    /// Begins a stage of congestion avoidance with this window.
    fn start(&mut self, now: Instant, cwnd_bytes: f64, mss_bytes: f64) {
        self.epoch_at = now;
        self.w_est_bytes = cwnd_bytes;
        if self.cwnd_prior_bytes == 0.0 {
            // Slow start ended without a reduction (section 4.10).
            self.cwnd_prior_bytes = cwnd_bytes;
        }
        if self.w_max_bytes > cwnd_bytes {
            self.k_seconds = math::cbrt((self.w_max_bytes - cwnd_bytes) / mss_bytes / C);
        } else {
            // No previous maximum: the first stage, or the first after a timeout (section 4.8).
            self.w_max_bytes = cwnd_bytes;
            self.k_seconds = 0.0;
        }
    }

    /// W(t), equation 1.
    #[inline(always)]
    fn window_bytes(&self, elapsed: Duration, mss_bytes: f64) -> f64 {
        let distance = elapsed.as_secs_f64() - self.k_seconds;
        C * mss_bytes * (distance * distance * distance) + self.w_max_bytes
    }
}

/// The window times beta, in integers. 0.7 has no exact binary form, and a threshold one byte below a multiple of the
/// segment size would cost a segment.
fn decrease(cwnd_bytes: u64) -> u64 {
    cwnd_bytes / 10 * 7 + cwnd_bytes % 10 * 7 / 10
}

/// The window after a mark with Alternative Backoff with ECN: 0.85 of it (RFC 8511 section 3.1), in integers.
fn decrease_after_mark(cwnd_bytes: u64) -> u64 {
    cwnd_bytes / 20 * 17 + cwnd_bytes % 20 * 17 / 20
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new(CubicConfig::default())
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        CUBIC.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { plain_acks: true, ..ControlRequirements::default() }
    }

    #[inline]
    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if !ack.in_recovery {
            let mut acked = ack.acked_bytes;
            if control.cwnd_bytes < control.ssthresh_bytes {
                acked = slow_start(self.hystart.as_mut(), control, ack);
            }
            if !ack.cwnd_limited {
                self.leave_out_until(ack.now);
            } else if acked > 0 {
                self.avoid(control, ack.now, ack.smoothed_rtt, acked);
            }
        }
        self.last_ack_at = ack.now;
    }

    #[inline]
    fn on_plain_ack(&mut self, control: &mut WindowState, ack: &PlainAck) {
        if !ack.cwnd_limited {
            self.leave_out_until(ack.now);
        } else if ack.acked_bytes > 0 {
            self.avoid(control, ack.now, ack.smoothed_rtt, ack.acked_bytes);
        }
        self.last_ack_at = ack.now;
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        if congestion.ecn {
            // A mark is never spurious.
            self.before = None;
        } else {
            self.save(control);
            self.in_recovery = true;
        }
        let cwnd = control.cwnd_bytes as f64;
        self.curve.w_max_bytes = if congestion.persistent {
            0.0
        } else if self.fast_convergence && cwnd < self.curve.w_max_bytes {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.end_stage(control);
        let abe = self.abe && congestion.ecn && !congestion.persistent;
        let reduced = if abe { decrease_after_mark(control.cwnd_bytes) } else { decrease(control.cwnd_bytes) };
        window::reduce(control, congestion, reduced);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        // A recovery that ended normally may still prove spurious.
        if exit.undone
            && let Some(before) = self.before.take()
            && (control.cwnd_bytes as f64) < self.curve.cwnd_prior_bytes
        {
            self.curve = before.curve;
            control.cwnd_bytes = before.cwnd_bytes;
            control.ssthresh_bytes = before.ssthresh_bytes;
            // The segment size may have increased since then.
            window::resize(control);
            self.fraction = 0.0;
        }
        self.in_recovery = false;
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        if !timeout.repeated {
            if !self.in_recovery {
                self.save(control);
            }
            control.ssthresh_bytes = decrease(control.cwnd_bytes).max(window::two_segments(control));
            self.end_stage(control);
        }
        self.curve.epoch_at = Instant::NEVER;
        self.curve.w_max_bytes = 0.0;
        self.in_recovery = false;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, _now: Instant) {
        let ssthresh = control.ssthresh_bytes;
        window::keep_three_quarters(control);
        if control.ssthresh_bytes != ssthresh {
            self.curve.cwnd_prior_bytes = control.cwnd_bytes as f64;
        }
        window::restart(control);
        self.curve.epoch_at = Instant::NEVER;
        self.fraction = 0.0;
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        // K depends on the segment size, so the curve restarts from the current window.
        window::resize(control);
        self.curve.epoch_at = Instant::NEVER;
    }

    fn growth_limit_bytes(&self, control: &WindowState, ack: &Ack, flight_bytes: u64, in_slow_start: bool) -> u64 {
        if in_slow_start {
            return flight_bytes.saturating_mul(2);
        }
        let (flight, mss) = (flight_bytes as f64, window::segment(control) as f64);
        // The target one round trip ahead, or Reno's increase, or that of Linux before the first reduction.
        let elapsed = ack.now.saturating_since(self.curve.epoch_at);
        let target = self.curve.window_bytes(elapsed.saturating_add(ack.smoothed_rtt), mss).clamp(flight, 1.5 * flight);
        let early = if self.early_growth && self.w_max_unknown { 1.05 * flight } else { 0.0 };
        target.max(flight + mss).max(early) as u64
    }

    fn on_growth_limited(&mut self, control: &WindowState) {
        // Reno's window would be limited too. Otherwise, the window would jump to the estimate when the limit rises.
        self.curve.w_est_bytes = self.curve.w_est_bytes.min(control.cwnd_bytes as f64);
        self.fraction = 0.0;
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("w_max_bytes", self.curve.w_max_bytes));
        out.push(("w_est_bytes", self.curve.w_est_bytes));
        out.push(("k_s", self.curve.k_seconds));
        out.push(("cwnd_prior_bytes", self.curve.cwnd_prior_bytes));
        if let Some(hystart) = &self.hystart {
            out.push(("hystart_phase", hystart.phase_number()));
        }
    }
}
