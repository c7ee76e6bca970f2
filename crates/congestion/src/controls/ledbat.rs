//! The congestion control LEDBAT++, for transfers that yield to other traffic.
//!
//! **Model.** The queue delay is the difference between the current round-trip time and the base, which is the smallest of the
//! last ten minutes. The current round-trip time is the smallest of the last four samples. While the queue delay is at most
//! the target of 60 ms, the window grows by `GAIN` segments per round trip. Above it, the window changes once per round trip by
//! `GAIN` segments minus the window times (delay / target - 1), but falls at most to its half. `GAIN` is 1 divided by the
//! number of base round-trip times in twice the target, rounded up, at most 16: LEDBAT++ grows more slowly than Reno on short
//! paths.
//!
//! Slow start begins with two segments, grows by `GAIN` bytes per byte acknowledged, and ends when the queue delay exceeds three
//! quarters of the target. Two round trips later the first slowdown begins: for two round trips the window is two segments, then
//! slow start returns it to its former size. The queue of the flow is empty in the meantime, so that all flows measure the same
//! base. The next slowdown begins after nine times the duration of the last one. The reactions to losses, marks and time-outs
//! are those of Reno.
//!
//! **Source.** draft-irtf-iccrg-ledbat-plus-plus-01 (2020) sections 4.1 to 4.5; RFC 6817 section 2.4.2 (history of ten minutes in
//! intervals of a minute). The filter over four samples is that of RFC 6817's `CURRENT_FILTER`. Losses as in
//! [`linux_reno`](crate::linux_reno).
//!
//! **State** (`control_state`). 0: first slow start; 1: congestion avoidance; 2: slowdown, the window is two segments; 3: slow
//! start after a slowdown or a time-out.

use super::linux_reno::LinuxReno;
use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{Ack, CongestionEvent, Controller, RecoveryExit, Timeout, WindowState};
use crate::window::{self, segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static LEDBAT: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "ledbat",
        version: "LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus-01 (2020)",
        source: "draft-irtf-iccrg-ledbat-plus-plus-01; RFC 6817",
        text: "LEDBAT++: keeps the queue delay at 60 ms and yields to other controls; periodic slowdowns.",
        ..Declaration::EMPTY
    },
    create: |_| Box::new(Ledbat::new()),
    hystart: HyStartSupport::None,
    values: &[declare("control_queue_delay_s", "s", "its estimate of the queue delay (LEDBAT++, Copa).")],
    states: &["slow_start", "avoidance", "slowdown", "restart"],
    linux_name: None,
};

/// The queue delay that LEDBAT++ maintains (draft section 4.2).
const TARGET: Duration = Duration::from_millis(60);
/// The largest divisor of the growth (draft section 4.2).
const LARGEST_DIVISOR: u64 = 16;
/// Samples of the filter of the current round-trip time (RFC 6817 section 2.4.2).
const FILTER: usize = 4;
/// Intervals of the history of the base, and their length (RFC 6817 section 2.4.2).
const HISTORY: usize = 10;
const INTERVAL: Duration = Duration::from_secs(60);
/// Time between slowdowns over the duration of one (draft section 4.5).
const PAUSE: u64 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    FirstSlowStart,
    Avoidance,
    /// The window is two segments until this time.
    Slowdown {
        until: Instant,
    },
    Restart,
}

/// The congestion control LEDBAT++.
#[derive(Clone, Debug)]
pub struct Ledbat {
    reno: LinuxReno,
    phase: Phase,
    /// When the next slowdown begins; [`Instant::NEVER`] until it is known.
    slowdown_at: Instant,
    /// When the current slowdown began, until its slow start is over.
    slowdown_began: Option<Instant>,
    /// The window to which the slow start after the current slowdown returns.
    return_bytes: u64,
    /// The smallest round-trip time of each of the last intervals, the current one first.
    history: [Duration; HISTORY],
    interval_began: Instant,
    recent: [Duration; FILTER],
    next_recent: usize,
    /// Bytes acknowledged that have not changed the window yet.
    counted_bytes: u64,
}

impl Default for Ledbat {
    fn default() -> Self {
        Ledbat {
            reno: LinuxReno::default(),
            phase: Phase::FirstSlowStart,
            slowdown_at: Instant::NEVER,
            slowdown_began: None,
            return_bytes: 0,
            history: [Duration::MAX; HISTORY],
            interval_began: Instant::ZERO,
            recent: [Duration::MAX; FILTER],
            next_recent: 0,
            counted_bytes: 0,
        }
    }
}

impl Ledbat {
    /// Creates LEDBAT++ with the constants of the draft.
    pub fn new() -> Self {
        Self::default()
    }

    fn sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = rtt.max(Duration::from_nanos(1));
        if now.saturating_since(self.interval_began) >= INTERVAL * HISTORY as u64 {
            self.history = [Duration::MAX; HISTORY];
            self.interval_began = now;
        }
        while now.saturating_since(self.interval_began) >= INTERVAL {
            self.interval_began += INTERVAL;
            self.history.rotate_right(1);
            self.history[0] = Duration::MAX;
        }
        self.history[0] = self.history[0].min(rtt);
        self.recent[self.next_recent] = rtt;
        self.next_recent = (self.next_recent + 1) % FILTER;
    }

    /// The smallest round-trip time of the history; `None` before the first sample.
    fn base(&self) -> Option<Duration> {
        self.history.iter().copied().min().filter(|base| *base != Duration::MAX)
    }

    /// The queue delay; zero before the first sample.
    fn queue_delay(&self) -> Duration {
        let current = self.recent.iter().copied().min().filter(|rtt| *rtt != Duration::MAX);
        match (current, self.base()) {
            (Some(current), Some(base)) => current - current.min(base),
            _ => Duration::ZERO,
        }
    }

    /// 1 / `GAIN`.
    fn divisor(&self) -> u64 {
        let base = self.base().unwrap_or(TARGET).as_nanos().max(1);
        (TARGET * 2).as_nanos().div_ceil(base).clamp(1, LARGEST_DIVISOR)
    }

    /// Grows by `GAIN` bytes per byte acknowledged, up to the threshold.
    fn slow_start(&mut self, control: &mut WindowState, acked_bytes: u64) {
        let divisor = self.divisor();
        self.counted_bytes = self.counted_bytes.saturating_add(acked_bytes);
        let growth = (self.counted_bytes / divisor).min(acked_bytes);
        self.counted_bytes %= divisor;
        control.cwnd_bytes = control.cwnd_bytes.saturating_add(growth).min(control.ssthresh_bytes);
    }

    /// Grows by `GAIN` segments per window of bytes acknowledged.
    fn grow(&mut self, control: &mut WindowState, acked_bytes: u64) {
        let per_segment = control.cwnd_bytes.max(segment(control)).saturating_mul(self.divisor());
        self.counted_bytes = self.counted_bytes.saturating_add(acked_bytes);
        if self.counted_bytes >= per_segment {
            // An acknowledgement covers at most a window, except in a path of extreme values.
            self.counted_bytes = (self.counted_bytes - per_segment).min(per_segment - 1);
            control.cwnd_bytes = control.cwnd_bytes.saturating_add(segment(control).min(acked_bytes));
        }
    }

    /// Changes the window once per round trip while the queue delay exceeds the target (draft section 4.3).
    fn shrink(&mut self, control: &mut WindowState, delay: Duration) {
        let excess = delay.as_secs_f64() / TARGET.as_secs_f64() - 1.0;
        let window = control.cwnd_bytes as f64;
        let gain = segment(control) as f64 / self.divisor() as f64;
        let change = (gain - window * excess).clamp(-window / 2.0, 0.0);
        control.cwnd_bytes = ((window + change) as u64).max(two_segments(control)).min(control.cwnd_bytes);
        control.ssthresh_bytes = control.ssthresh_bytes.min(control.cwnd_bytes).max(two_segments(control));
        self.counted_bytes = 0;
    }

    fn begin_slowdown(&mut self, control: &mut WindowState, now: Instant, rtt: Duration) {
        control.ssthresh_bytes = control.cwnd_bytes.max(two_segments(control));
        control.cwnd_bytes = two_segments(control);
        self.slowdown_at = Instant::NEVER;
        self.slowdown_began = Some(now);
        self.return_bytes = control.ssthresh_bytes;
        self.counted_bytes = 0;
        self.phase = Phase::Slowdown { until: now.saturating_add(rtt.saturating_mul(2)) };
    }

    /// Enters congestion avoidance, and schedules the next slowdown.
    fn avoid(&mut self, now: Instant, rtt: Duration) {
        self.counted_bytes = 0;
        self.phase = Phase::Avoidance;
        if let Some(began) = self.slowdown_began.take() {
            self.slowdown_at = now.saturating_add(now.saturating_since(began).saturating_mul(PAUSE));
        } else if self.slowdown_at == Instant::NEVER {
            self.slowdown_at = now.saturating_add(rtt.saturating_mul(2));
        }
    }

    fn state(&self) -> u32 {
        match self.phase {
            Phase::FirstSlowStart => 0,
            Phase::Avoidance => 1,
            Phase::Slowdown { .. } => 2,
            Phase::Restart => 3,
        }
    }
}

impl Controller for Ledbat {
    fn name(&self) -> &'static str {
        LEDBAT.declaration.name
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.interval_began = now;
        if let Some(rtt) = rtt {
            self.sample(now, rtt);
        }
        control.cwnd_bytes = control.cwnd_bytes.min(two_segments(control)).max(segment(control));
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(ack.now, rtt);
        }
        if ack.in_recovery {
            return;
        }
        let delay = self.queue_delay();
        match self.phase {
            Phase::FirstSlowStart if delay > TARGET * 3 / 4 => {
                control.ssthresh_bytes = control.cwnd_bytes.max(two_segments(control));
                self.avoid(ack.now, ack.smoothed_rtt);
            }
            Phase::FirstSlowStart | Phase::Restart if control.cwnd_bytes < control.ssthresh_bytes => {
                if ack.cwnd_limited {
                    self.slow_start(control, ack.acked_bytes);
                }
                if control.cwnd_bytes >= control.ssthresh_bytes {
                    self.avoid(ack.now, ack.smoothed_rtt);
                }
            }
            Phase::FirstSlowStart | Phase::Restart => self.avoid(ack.now, ack.smoothed_rtt),
            Phase::Slowdown { until } => {
                if ack.now >= until {
                    self.phase = Phase::Restart;
                }
            }
            Phase::Avoidance if ack.now >= self.slowdown_at => {
                self.begin_slowdown(control, ack.now, ack.smoothed_rtt);
            }
            Phase::Avoidance if delay > TARGET => {
                if ack.round_start {
                    self.shrink(control, delay);
                }
            }
            Phase::Avoidance => {
                if ack.cwnd_limited {
                    self.grow(control, ack.acked_bytes);
                }
            }
        }
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.reno.on_congestion(control, congestion);
        self.return_bytes /= 2;
        self.counted_bytes = 0;
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.reno.on_recovery_exit(control, exit);
        // A loss during a slowdown halved the small window. The slow start returns to half of the former one.
        if self.slowdown_began.is_some() {
            control.ssthresh_bytes = control.ssthresh_bytes.max(self.return_bytes);
        }
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.reno.on_timeout(control, timeout);
        self.counted_bytes = 0;
        self.phase = Phase::Restart;
        // A slowdown that a time-out interrupts has no duration. The next one begins two round trips after slow start.
        self.slowdown_began = None;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, _now: Instant) {
        window::keep_three_quarters(control);
        control.cwnd_bytes = control.cwnd_bytes.min(two_segments(control)).max(segment(control));
        if self.phase == Phase::Avoidance {
            self.phase = Phase::Restart;
        }
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_path_change(control, now);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("queue_delay_s", self.queue_delay().as_secs_f64()));
        out.push(("base_rtt_s", self.base().unwrap_or(Duration::ZERO).as_secs_f64()));
        out.push(("state", f64::from(self.state())));
    }
}
