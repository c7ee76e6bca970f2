//! The congestion control Prague, for queues that mark early and often (L4S).
//!
//! **Model.** Packets are sent as ECT(1). Once per round, the share of bytes that queues have marked is added to a moving
//! average, `alpha` (gain 1/16). The average is 1 until the first mark and is not updated before it. A mark reduces the window
//! by `alpha/2`. Further marks reduce nothing for one round trip. Slow start ends at the first mark. In congestion avoidance,
//! the window grows by one segment per window of bytes acknowledged *without* a mark, also in the round trip after a
//! reduction. A loss halves the window, and marks reduce nothing until the recovery ends.
//!
//! **Round-trip times.** After 500 rounds outside slow start, a flow with a round-trip time R below 25 ms behaves as if R were
//! R' = 25 ms: it updates `alpha` and reduces at most once per R', and grows by (R / R')² segments per round trip. With
//! M = R' / R, a period R' then adds 1/M segments and removes `alpha/2` of the window W. If a share p is marked, M W is
//! 2 (1 - p) / p segments, so the rate M W / R' depends on p alone.
//!
//! **Pacing.** The rate is the window, or the bytes in flight if they are more, per smoothed round-trip time; twice that in slow
//! start. A burst lasts at most 0.25 ms.
//!
//! **Fallback.** Without accurate feedback of marks the transport sends ECT(0) and passes each mark as congestion; the control is
//! then Reno. With [`ControlOptions::classic_ecn_fallback`], the control estimates whether a queue marks in the classic way
//! (RFC 3168). Once per update of `alpha`, a score grows by lg(v / 0.75 ms) / 2, where v is the mean deviation of the round-trip
//! time, and by lg(d / 2 ms) / 2 if this is positive, where d is the smoothed round-trip time minus the smallest. The score
//! is limited to 0 to 17. From 8 to 9, the lower bound of `alpha` in reductions rises from 0 to 5/8. The averages have gains
//! of 1 / (2 w^1.5) and 1 / (4 w^1.5) for a window of w segments. The draft disables this by default.
//!
//! **Source.** draft-briscoe-iccrg-prague-congestion-control-04 (July 2024): sections 2.1 (codepoint), 2.3.2 (average), 2.4.1
//! (loss), 2.4.2 (reduction), 2.4.3 (increase), 2.4.4 (round-trip times), 2.4.5 (slow start), 2.5 (pacing); RFC 9331 section 4.
//! The detection is version 2 of Briscoe and Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM", arXiv:1911.00710.
//! Its constants, and the average before the first mark, are those of the Linux implementation (module version 0.6).
//!
//! **Differences.** "One round trip" after a reduction is the smoothed round-trip time, not the flight. The window does
//! not fall below two segments. The score has no term for flows that the application limits.

use super::dctcp::ALPHA;
use super::linux_reno::LinuxReno;
use crate::component::{ControlComponent, ControlOptions, HyStartSupport, declare};
use crate::control::{Ack, CongestionEvent, ControlRequirements, Controller, RecoveryExit, Timeout, WindowState};
use crate::hystart::slow_start;
use crate::window::{segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, EcnCodepoint, Instant, math};

pub(super) static PRAGUE: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "prague",
        version: "draft-briscoe-iccrg-prague-congestion-control-04 (2024)",
        source: "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331",
        text: "Prague (L4S): sends ECT(1), reduces the window by half the share of marked bytes; Reno on loss.",
        ..Declaration::EMPTY
    },
    create: |options| Box::new(Prague::new(options)),
    hystart: HyStartSupport::None,
    values: &[
        ALPHA,
        declare("control_classic_score", "", "its score of classic marking, 0 to 17; it falls back above 8 (Prague)."),
    ],
    states: &[],
    linux_name: None,
};

/// Weight of the newest round (draft section 2.3.2).
const GAIN: f64 = 1.0 / 16.0;
/// The smallest round-trip time with which a flow behaves (draft section 2.4.4).
const REFERENCE_RTT: Duration = Duration::from_millis(25);
/// Rounds outside slow start before the reference applies (draft section 2.4.4).
const TRANSITION_ROUNDS: u32 = 500;
/// Length of a burst when paced (draft section 2.5.2).
const BURST: Duration = Duration::from_micros(250);
/// A pause without acknowledgments after which sending restarts with the initial window: the smallest retransmission timeout of
/// RFC 6298.
const IDLE: Duration = Duration::from_secs(1);

/// Reference values of the deviation and of the queue delay (arXiv:1911.00710).
const DEVIATION: Duration = Duration::from_micros(750);
const DEPTH: Duration = Duration::from_millis(2);
/// Weight of both terms of the score.
const WEIGHT: f64 = 0.5;
/// The score above which the fallback begins, and the largest score.
const FALLBACK_FROM: f64 = 8.0;
const LARGEST_SCORE: f64 = 17.0;
/// The lower bound of alpha in reductions when the fallback is complete.
const CLASSIC_ALPHA: f64 = 0.625;

/// Mean and mean deviation of the round-trip time, for the detection of classic marking.
#[derive(Clone, Copy, Debug)]
struct RttVariation {
    mean_s: f64,
    deviation_s: f64,
}

/// The congestion control Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    /// Slow start, losses, timeouts and idle periods.
    reno: LinuxReno,
    alpha: f64,
    has_seen_mark: bool,
    // Bytes since the last update of alpha.
    acked_bytes: u64,
    marked_bytes: u64,
    updated_at: Instant,
    /// Rounds outside slow start.
    rounds: u32,
    reduced_at: Option<Instant>,
    /// The fraction of a byte by which the window has grown.
    fraction: f64,
    last_ack_at: Instant,
    /// The detection of classic marking, if enabled.
    detects_classic_marking: bool,
    variation: Option<RttVariation>,
    score: f64,
}

impl Prague {
    /// Creates Prague with the constants of the draft.
    pub fn new(options: &ControlOptions) -> Self {
        Prague {
            reno: LinuxReno::default(),
            alpha: 1.0,
            has_seen_mark: false,
            acked_bytes: 0,
            marked_bytes: 0,
            updated_at: Instant::ZERO,
            rounds: 0,
            reduced_at: None,
            fraction: 0.0,
            last_ack_at: Instant::ZERO,
            detects_classic_marking: options.classic_ecn_fallback,
            variation: None,
            score: 0.0,
        }
    }

    /// The round-trip time with which the flow behaves.
    fn virtual_rtt(&self, smoothed_rtt: Duration) -> Duration {
        if self.rounds >= TRANSITION_ROUNDS { smoothed_rtt.max(REFERENCE_RTT) } else { smoothed_rtt }
    }

    /// Counts the bytes of an acknowledgment, and updates the average at the end of a round.
    fn count(&mut self, control: &WindowState, ack: &Ack, marked_bytes: u64) {
        self.acked_bytes = self.acked_bytes.saturating_add(ack.acked_bytes);
        self.marked_bytes = self.marked_bytes.saturating_add(marked_bytes);
        self.has_seen_mark |= marked_bytes > 0;
        if !ack.round_start {
            return;
        }
        if control.cwnd_bytes >= control.ssthresh_bytes {
            self.rounds = self.rounds.saturating_add(1);
        }
        // Before the transition the period is a round, whatever its duration.
        let is_due = self.rounds < TRANSITION_ROUNDS
            || ack.now.saturating_since(self.updated_at) >= self.virtual_rtt(ack.smoothed_rtt);
        if !is_due {
            return;
        }
        if self.has_seen_mark && self.acked_bytes > 0 {
            let share = self.marked_bytes as f64 / self.acked_bytes as f64;
            self.alpha += GAIN * (share.min(1.0) - self.alpha);
            self.score_marking(ack);
        }
        self.updated_at = ack.now;
        self.acked_bytes = 0;
        self.marked_bytes = 0;
    }

    /// Adds a round-trip sample to the averages of the detection.
    fn sample(&mut self, control: &WindowState, rtt: Duration) {
        let rtt = rtt.as_secs_f64();
        let Some(variation) = &mut self.variation else {
            self.variation = Some(RttVariation { mean_s: rtt, deviation_s: 0.0 });
            return;
        };
        let window = (control.cwnd_bytes as f64 / segment(control) as f64).max(1.0);
        let gain = 0.5 / (window * window.sqrt());
        let error = rtt - variation.mean_s;
        variation.mean_s += gain * error;
        variation.deviation_s += gain / 2.0 * (error.abs() - variation.deviation_s);
    }

    /// Updates the score of classic marking.
    fn score_marking(&mut self, ack: &Ack) {
        let Some(variation) = self.variation.filter(|_| self.detects_classic_marking) else { return };
        let depth_s = variation.mean_s - ack.min_rtt.as_secs_f64();
        // A deviation of 1 us or less counts as 1 us.
        let change = WEIGHT * math::log2(variation.deviation_s.max(1e-6) / DEVIATION.as_secs_f64())
            + WEIGHT * math::log2((depth_s / DEPTH.as_secs_f64()).max(1.0));
        self.score = (self.score + change).clamp(0.0, LARGEST_SCORE);
    }

    /// The share by which a reduction lowers the window.
    fn reduction(&self) -> f64 {
        let bound = CLASSIC_ALPHA * (self.score - FALLBACK_FROM).clamp(0.0, 1.0);
        self.alpha.max(bound) / 2.0
    }

    /// Reduces the window at a mark, unless the last reduction is more recent than one round trip.
    fn respond_to_mark(&mut self, control: &mut WindowState, ack: &Ack) {
        let pause = self.virtual_rtt(ack.smoothed_rtt);
        if self.reduced_at.is_some_and(|at| ack.now.saturating_since(at) < pause) {
            return;
        }
        self.reduced_at = Some(ack.now);
        let reduced = control.cwnd_bytes as f64 * (1.0 - self.reduction());
        // A window that is already smaller does not grow.
        let least = two_segments(control).min(control.cwnd_bytes);
        control.cwnd_bytes = (reduced as u64).min(control.cwnd_bytes).max(least);
        self.fraction = reduced.fract();
        control.ssthresh_bytes = control.cwnd_bytes.max(two_segments(control));
        // Losses before this reduction are not undone.
        self.reno.forget_undo();
    }

    /// Additive increase for these bytes acknowledged without a mark.
    fn increase(&mut self, control: &mut WindowState, ack: &Ack, unmarked_bytes: u64) {
        let mss = segment(control);
        control.cwnd_bytes = control.cwnd_bytes.max(mss);
        let (rtt, virtual_rtt) = (ack.smoothed_rtt.as_secs_f64(), self.virtual_rtt(ack.smoothed_rtt).as_secs_f64());
        let ratio = if virtual_rtt > 0.0 { rtt / virtual_rtt } else { 1.0 };
        let share = (unmarked_bytes as f64 / control.cwnd_bytes as f64).min(1.0);
        let earned = mss as f64 * ratio * ratio * share + self.fraction;
        let whole = (earned as u64).min(unmarked_bytes);
        control.cwnd_bytes = control.cwnd_bytes.saturating_add(whole);
        self.fraction = (earned - whole as f64).clamp(0.0, 1.0);
    }

    fn pace(control: &mut WindowState, in_flight_bytes: u64, rtt: Duration) {
        if rtt.is_zero() {
            return;
        }
        let factor = if control.cwnd_bytes < control.ssthresh_bytes { 2.0 } else { 1.0 };
        let bytes_per_second = control.cwnd_bytes.max(in_flight_bytes) as f64 * factor / rtt.as_secs_f64();
        // `as` saturates.
        control.pacing_bps = ((bytes_per_second * 8.0) as u64).max(1);
        control.send_quantum_bytes = ((bytes_per_second * BURST.as_secs_f64()) as u64).max(segment(control));
    }
}

impl Controller for Prague {
    fn name(&self) -> &'static str {
        PRAGUE.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { ecn_counts: true, pacing: true, l4s: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.last_ack_at = now;
        if let Some(rtt) = rtt {
            Self::pace(control, 0, rtt);
        }
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        self.last_ack_at = ack.now;
        // Otherwise the transport passes marks as congestion.
        let is_l4s = control.codepoint == EcnCodepoint::Ect1;
        let marked_bytes = if is_l4s { ack.ce_bytes.min(ack.acked_bytes) } else { 0 };
        if self.detects_classic_marking
            && let Some(rtt) = ack.rtt
        {
            self.sample(control, rtt);
        }
        self.count(control, ack, marked_bytes);
        if !ack.in_recovery {
            if marked_bytes > 0 {
                self.respond_to_mark(control, ack);
            }
            let mut unmarked = ack.acked_bytes - marked_bytes;
            if control.cwnd_bytes < control.ssthresh_bytes {
                unmarked = slow_start(None, control, &Ack { acked_bytes: unmarked, ..ack.clone() });
            }
            if unmarked > 0 && ack.cwnd_limited {
                self.increase(control, ack, unmarked);
            }
        }
        Self::pace(control, ack.in_flight_bytes, ack.smoothed_rtt);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.reno.on_congestion(control, congestion);
        self.fraction = 0.0;
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.reno.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.reno.on_timeout(control, timeout);
        self.fraction = 0.0;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        // A transport that paces also calls this after short pauses.
        if now.saturating_since(self.last_ack_at) >= IDLE {
            self.reno.on_idle_restart(control, now);
        }
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_path_change(control, now);
        self.variation = None;
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
        out.push(("classic_score", self.score));
        out.push(("rounds", f64::from(self.rounds)));
    }
}
