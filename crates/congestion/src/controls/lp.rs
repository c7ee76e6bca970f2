//! The congestion control TCP-LP, for transfers that use only the bandwidth that others leave.
//!
//! **Model.** The delay is smoothed with a weight of 1/8. It indicates congestion while it exceeds the smallest delay plus 0.15
//! of the difference between the largest and the smallest delay of the connection. The first indication halves the window and
//! begins an inference phase of three round-trip times. During this phase the window does not grow, and another indication
//! reduces it to one segment and begins the phase again. After the phase the window grows by one segment per round trip.
//! Slow start ends at the first indication. The reactions to losses, marks and timeouts are those of Reno.
//!
//! **Differences.** The paper measures one-way delays with TCP timestamps; here the delay is the round-trip time, so a queue on
//! the path of the acknowledgments also counts. Delays are rounded down to milliseconds, the resolution of these timestamps. The two
//! rounds after a reduction indicate nothing, because the smoothed delay still contains packets sent before it.
//!
//! **Source.** Kuzmanovic and Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data Transfer", INFOCOM 2003,
//! sections III.B (indication) and III.C (figure 1); constants of section IV. Linux has it as `lp`.
//!
//! **State** (`control_state`). 0: the window grows; 1: inference phase.

use super::linux_reno::LinuxReno;
use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{Ack, CongestionEvent, Controller, RecoveryExit, Timeout, WindowState};
use crate::window::{segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};

pub(super) static LP: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "lp",
        version: "TCP-LP (2003)",
        source: "Kuzmanovic and Knightly, INFOCOM 2003",
        text: "TCP-LP: Reno that yields when the delay exceeds 15 % of its range.",
        ..Declaration::EMPTY
    },
    create: |_| Box::new(Lp::new()),
    hystart: HyStartSupport::None,
    values: &[declare("control_delay_threshold_s", "s", "the delay above which it yields (TCP-LP).")],
    states: &["growth", "inference"],
    linux_name: None,
};

/// The weight of a new sample in the smoothed delay is 1 / `SMOOTHING`.
const SMOOTHING: u64 = 8;
/// The threshold, as a fraction of the range of delays in per cent.
const THRESHOLD_PERCENT: u64 = 15;
/// The resolution of delays: that of the timestamps from which Linux and the paper's implementation measure them.
const TICK: Duration = Duration::from_millis(1);
/// The length of the inference phase in round-trip times.
const INFERENCE: u64 = 3;

/// Rounds after a reduction in which the delay indicates nothing. The packets of the first were sent before the reduction, and the
/// smoothed delay of the second still contains theirs.
const IGNORED_ROUNDS: u32 = 2;

/// The congestion control TCP-LP.
#[derive(Clone, Debug)]
pub struct Lp {
    reno: LinuxReno,
    smallest: Duration,
    largest: Duration,
    smoothed: Duration,
    /// The end of the inference phase.
    inference_until: Instant,
    /// Rounds that must still begin before the delay indicates congestion again.
    ignored_rounds: u32,
    is_inferring: bool,
}

impl Default for Lp {
    fn default() -> Self {
        Lp {
            reno: LinuxReno::default(),
            smallest: Duration::MAX,
            largest: Duration::ZERO,
            smoothed: Duration::ZERO,
            inference_until: Instant::ZERO,
            ignored_rounds: 0,
            is_inferring: false,
        }
    }
}

impl Lp {
    /// Creates TCP-LP with the constants of the paper.
    pub fn new() -> Self {
        Self::default()
    }

    fn sample(&mut self, delay: Duration) {
        let delay = TICK * (delay.as_nanos() / TICK.as_nanos());
        let is_first = self.smallest == Duration::MAX;
        self.smallest = self.smallest.min(delay);
        self.largest = self.largest.max(delay);
        self.smoothed = if is_first { delay } else { self.smoothed - self.smoothed / SMOOTHING + delay / SMOOTHING };
    }

    /// The delay above which congestion is indicated; `None` before the first sample.
    fn threshold(&self) -> Option<Duration> {
        if self.smallest > self.largest {
            return None;
        }
        let range = u128::from((self.largest - self.smallest).as_nanos());
        let part = Duration::from_nanos((range * u128::from(THRESHOLD_PERCENT) / 100) as u64);
        Some(self.smallest.saturating_add(part))
    }

    /// Reduces the window at an indication of congestion.
    fn yield_to_others(&mut self, control: &mut WindowState, ack: &Ack) {
        let window = if self.is_inferring { segment(control) } else { control.cwnd_bytes / 2 };
        control.cwnd_bytes = window.max(segment(control));
        // Growth continues with congestion avoidance, not with slow start.
        control.ssthresh_bytes = control.cwnd_bytes.max(two_segments(control)).min(control.ssthresh_bytes);
        self.reno.reset_growth();
        self.is_inferring = true;
        self.inference_until = ack.now.saturating_add(ack.smoothed_rtt.saturating_mul(INFERENCE));
        self.ignored_rounds = IGNORED_ROUNDS;
    }
}

impl Controller for Lp {
    fn name(&self) -> &'static str {
        LP.declaration.name
    }

    fn on_established(&mut self, _control: &mut WindowState, _now: Instant, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.sample(rtt);
        }
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        if ack.round_start {
            self.ignored_rounds = self.ignored_rounds.saturating_sub(1);
        }
        if ack.in_recovery {
            return;
        }
        if self.is_inferring && ack.now >= self.inference_until {
            self.is_inferring = false;
        }
        let is_congested = self.threshold().is_some_and(|threshold| self.smoothed > threshold);
        if is_congested && self.ignored_rounds == 0 {
            self.yield_to_others(control, ack);
        } else if !self.is_inferring {
            self.reno.on_ack(control, ack);
        }
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.reno.on_congestion(control, congestion);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.reno.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.reno.on_timeout(control, timeout);
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_idle_restart(control, now);
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_path_change(control, now);
        // The delays of the former path do not apply.
        (self.smallest, self.largest, self.smoothed) = (Duration::MAX, Duration::ZERO, Duration::ZERO);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("delay_threshold_s", self.threshold().unwrap_or(Duration::ZERO).as_secs_f64()));
        out.push(("smoothed_delay_s", self.smoothed.as_secs_f64()));
        out.push(("state", f64::from(u8::from(self.is_inferring))));
    }
}
