//! The congestion control BBR, version 3.
//!
//! **Model.** As in version 1, the control measures the path by its largest delivery rate (`max_bw`, of the current and
//! the last bandwidth probe) and its smallest round-trip time (`min_rtt`, of ten seconds). Their product is the
//! capacity of the path without a queue. Version 3 adds bounds that are derived from losses, on two time scales:
//!
//! * long term: `inflight_longterm`, the largest amount in flight that a bandwidth probe found safe. An amount is not
//!   safe if more than 2 % of it is lost in a round.
//! * short term: `bw_shortterm` and `inflight_shortterm`. While the flow is not probing, each round with losses lowers
//!   them to what was just delivered, but by no more than the factor 0.7. They are reset before the next probe.
//!
//! ```text
//! state           pacing gain  window gain  bounds                     until
//! Startup         2.77         2            none                       three rounds without 25 % more, or six
//!                                                                      losses and 2 % in a round of recovery
//! Drain           0.5          2            short                      one BDP is in flight, or after three rounds
//! ProbeBW_DOWN    0.9          2            long, short                no more than a BDP and 0.85 long in flight
//! ProbeBW_CRUISE  1            2            0.85 long, short           2 to 3 s, or 62 or 63 rounds, since DOWN began
//! ProbeBW_REFILL  1            2            long                       a round
//! ProbeBW_UP      1.25         2.25         long, rising 1, 2, 4, ...  three rounds without 25 % more, or 2 %
//!                                           segments per round         lost, or then next time the bound reached
//! ProbeRTT        1            0.5          0.85 long, short           200 ms and a round
//! ```
//!
//! ProbeRTT begins when the smallest round-trip time has not fallen for five seconds. It is followed by CRUISE, or by
//! Startup if the full bandwidth has not been reached. After a spurious recovery, the control restores the bounds and
//! the state.
//!
//! **Source.** draft-ietf-ccwg-bbr-06 (July 2026), with the editors' corrections up to 3 August 2026, which change no
//! rule. Names are those of the draft. Changes since draft-ietf-ccwg-bbr-04: Drain has a gain of 0.5 instead of 0.35
//! and lasts at most three rounds (-05); a spurious recovery restores bounds and state (-05, -06); precautionary
//! probing (-06). With precautionary probing, the probe after one with too many losses stops at the bound. If the bound
//! was safe, another probe follows immediately.
//!
//! Files: `bbr3.rs` contains the control and its outputs, [`model`] the measurements, [`losses`] the bounds from
//! losses, and [`cycle`] the states.
//!
//! **Choices that the draft leaves open, or where it is ambiguous.**
//! * In Drain the long-term bound does not apply, as in the pseudo-code; according to the draft's table it applies.
//! * The state for an undo is saved at the first loss of a recovery, before any reaction. The draft also saves it at
//!   the start of each later round of losses, and when the transport enters recovery, which is after the first
//!   reaction.
//! * `BBRStartupFullLossCnt` counts acknowledgments that detect losses, as in Linux: the control does not receive
//!   ranges.
//! * A burst is two segments, the draft's minimum, not the data of one millisecond: hosts here have no segmentation
//!   offload. The offload budget is that of TCP, three bursts.
//! * The transport is assumed to have selective acknowledgments.
//! * The lost packet itself cannot exceed a probe's bound, so `InflightAtLoss` is at least the amount in flight before
//!   that packet.
//! * A round of losses begins with the bytes delivered before the acknowledgment that reports the first loss, because
//!   losses are processed first.
//! * An acknowledgment without a rate sample, whose interval is shorter than the smallest round-trip time, begins no
//!   round.
//! * The maximum filter over two cycles discards the older cycle only when the newer one has a sample.
//! * When Startup is over, the slow-start threshold is set to the smallest window. The transport then reports that the
//!   window limited sending only if this is true.

pub mod cycle;
pub mod losses;
pub mod model;

use self::cycle::Cycle;
use self::losses::LossBounds;
use self::model::{Model, RateSample};
use crate::bbr::{UNBOUNDED, four_segments, times, with_values};
use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use crate::window::{self, segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_units::{Duration, Instant, RandomStream};

pub(super) static BBR3: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "bbr3",
        version: "draft-ietf-ccwg-bbr-06 (2026)",
        source: "draft-ietf-ccwg-bbr-06",
        text: "Paces at the measured bandwidth and probes for more every few seconds, within bounds derived from \
               losses above 2 %.",
        ..Declaration::EMPTY
    },
    create: |options| Box::new(Bbr3::new(RandomStream::new(options.seed, "bbr3", "probe wait"))),
    hystart: HyStartSupport::None,
    values: &VALUES,
    states: &["startup", "drain", "probe_bw_down", "probe_bw_cruise", "probe_bw_refill", "probe_bw_up", "probe_rtt"],
    linux_name: None,
};

static VALUES: [MetricDeclaration; 22] = with_values(&[
    declare("control_max_bw_bps", "bit/s", "its largest delivery rate of the last two bandwidth probes (BBRv3)."),
    declare("control_bw_shortterm_bps", "bit/s", "its short-term bound of the rate; 0: none (BBRv3)."),
    declare("control_inflight_longterm_bytes", "bytes", "its long-term bound of the bytes in flight; 0: none (BBRv3)."),
    declare(
        "control_inflight_shortterm_bytes",
        "bytes",
        "its short-term bound of the bytes in flight; 0: none (BBRv3).",
    ),
    declare(
        "control_full_bw_now",
        "",
        "1 if the current bandwidth probe has reached the full bandwidth, otherwise 0 (BBRv3).",
    ),
    declare("control_full_bw_bps", "bit/s", "the delivery rate relative to which it measures growth (BBRv3)."),
    declare("control_full_bw_count", "", "rounds without growth of the delivery rate by 25 % (BBRv3)."),
    declare(
        "control_probe_rtt_min_delay_s",
        "s",
        "the smallest round-trip time of the last five seconds; 0: none (BBRv3).",
    ),
    declare(
        "control_idle_restart",
        "",
        "1 from sending after an idle period to the next acknowledgment, otherwise 0 (BBRv3).",
    ),
    declare("control_loss_in_round", "", "1 if packets were lost in the current round, otherwise 0 (BBRv3)."),
    declare("control_loss_events_in_round", "", "acknowledgments in the current round that reported losses (BBRv3)."),
    declare(
        "control_undo_bw_shortterm_bps",
        "bit/s",
        "the short-term bound of the rate that an undo restores; 0: none (BBRv3).",
    ),
    declare(
        "control_undo_inflight_shortterm_bytes",
        "bytes",
        "the short-term bound of the bytes in flight that an undo restores; 0: none (BBRv3).",
    ),
    declare(
        "control_undo_inflight_longterm_bytes",
        "bytes",
        "the long-term bound of the bytes in flight that an undo restores; 0: none (BBRv3).",
    ),
]);

/// 4 ln 2, the smallest pacing gain with which the rate doubles in each round at a window gain of 2.
const STARTUP_PACING_GAIN: f64 = 2.77;
const DEFAULT_WINDOW_GAIN: f64 = 2.0;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// The control paces at this share of the bandwidth, so that a queue drains.
const PACING_MARGIN: f64 = 0.99;
/// The assumed round-trip time for the first pacing rate if none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// The number of quanta in transit through both hosts.
const OFFLOAD_QUANTA: u64 = 3;

/// The states of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    fn probes_bandwidth_in_turn(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Whether the state probes for more bandwidth, so that losses are expected.
    fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    /// The pacing gain and the window gain.
    fn gains(self) -> (f64, f64) {
        match self {
            State::Startup => (STARTUP_PACING_GAIN, DEFAULT_WINDOW_GAIN),
            State::Drain => (0.5, DEFAULT_WINDOW_GAIN),
            State::Down => (0.9, DEFAULT_WINDOW_GAIN),
            State::Cruise | State::Refill => (1.0, DEFAULT_WINDOW_GAIN),
            State::Up => (1.25, 2.25),
            State::ProbeRtt => (1.0, PROBE_RTT_WINDOW_GAIN),
        }
    }
}

/// The congestion control BBRv3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    model: Model,
    losses: LossBounds,
    cycle: Cycle,
    initial_cwnd_bytes: u64,
    rate_from_rtt: bool,
    /// Whether the transport is in fast recovery, or retransmits after a timeout.
    in_fast_recovery: bool,
    in_timeout: bool,
    /// The window before recovery or ProbeRTT.
    prior_cwnd_bytes: u64,
    idle_restart: bool,
}

impl Bbr3 {
    /// Creates BBRv3. The random stream selects the time between bandwidth probes.
    pub fn new(random: RandomStream) -> Self {
        Bbr3 {
            state: State::Startup,
            model: Model::default(),
            losses: LossBounds::default(),
            cycle: Cycle::new(random),
            initial_cwnd_bytes: 0,
            rate_from_rtt: false,
            in_fast_recovery: false,
            in_timeout: false,
            prior_cwnd_bytes: 0,
            idle_restart: false,
        }
    }

    /// The BDP times a gain (`BDPMultiple`).
    fn bdp_bytes(&self, bandwidth_bps: u64, gain: f64) -> u64 {
        match self.model.bdp_bytes(bandwidth_bps) {
            Some(bdp) => times(gain, bdp),
            None => self.initial_cwnd_bytes,
        }
    }

    /// Adds room for aggregation in the hosts and for delayed acknowledgments of the receiver (`QuantizationBudget`).
    fn with_budget(&self, control: &WindowState, bytes: u64) -> u64 {
        let offload = control.send_quantum_bytes.saturating_mul(OFFLOAD_QUANTA);
        let bytes = bytes.max(offload).max(four_segments(control));
        if self.state == State::Up { bytes.saturating_add(two_segments(control)) } else { bytes }
    }

    /// The bytes in flight at a bandwidth and a gain of 1 (`Inflight`).
    fn in_flight_at(&self, control: &WindowState, bandwidth_bps: u64) -> u64 {
        self.with_budget(control, self.bdp_bytes(bandwidth_bps, 1.0))
    }

    /// The target for the bytes in flight: the BDP, unless congestion has reduced the window.
    fn target_in_flight(&self, control: &WindowState) -> u64 {
        self.bdp_bytes(self.model.bw_bps, 1.0).min(control.cwnd_bytes)
    }

    fn probe_rtt_window(&self, control: &WindowState) -> u64 {
        self.bdp_bytes(self.model.bw_bps, PROBE_RTT_WINDOW_GAIN).max(four_segments(control))
    }

    /// Sets the rate before the first delivery: a window per round-trip time, times the gain of Startup.
    fn first_rate(&mut self, control: &mut WindowState, rtt: Option<Duration>) {
        self.rate_from_rtt = rtt.is_some();
        let rtt = rtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1));
        let window_bps = control.cwnd_bytes as f64 * 8e9 / rtt.as_nanos() as f64;
        control.pacing_bps = ((STARTUP_PACING_GAIN * window_bps).round() as u64).max(1);
        control.send_quantum_bytes = two_segments(control);
    }

    fn set_pacing_rate(&self, control: &mut WindowState, gain: f64) {
        let rate = times(gain * PACING_MARGIN, self.model.bw_bps);
        if self.cycle.full_bw_reached || rate > control.pacing_bps {
            // If it were 0, the transport would choose the rate.
            control.pacing_bps = rate.max(1);
        }
    }

    fn set_window(&mut self, control: &mut WindowState, ack: &Ack) {
        let (_, gain) = self.state.gains();
        let wanted = self.bdp_bytes(self.model.bw_bps, gain).saturating_add(self.model.extra_acked_bytes());
        let max_in_flight = self.with_budget(control, wanted);
        let grown = control.cwnd_bytes.saturating_add(ack.acked_bytes);
        if self.cycle.full_bw_reached {
            control.cwnd_bytes = grown.min(max_in_flight);
        } else if control.cwnd_bytes < max_in_flight || ack.delivered_bytes < self.initial_cwnd_bytes {
            control.cwnd_bytes = grown;
        }
        control.cwnd_bytes = control.cwnd_bytes.max(four_segments(control));
        if self.state == State::ProbeRtt {
            control.cwnd_bytes = control.cwnd_bytes.min(self.probe_rtt_window(control));
        }
        self.bound_window(control);
    }

    /// Applies the bounds that are derived from losses (`BoundCwndForModel`).
    fn bound_window(&self, control: &mut WindowState) {
        let long_term = match self.state {
            State::Startup | State::Drain => UNBOUNDED,
            State::Down | State::Refill | State::Up => self.losses.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.in_flight_with_headroom(control),
        };
        let cap = long_term.min(self.losses.inflight_shortterm).max(four_segments(control));
        control.cwnd_bytes = control.cwnd_bytes.min(cap);
    }

    fn save_window(&mut self, control: &WindowState) {
        let repairing = self.in_fast_recovery || self.in_timeout;
        self.prior_cwnd_bytes = if repairing || self.state == State::ProbeRtt {
            self.prior_cwnd_bytes.max(control.cwnd_bytes)
        } else {
            control.cwnd_bytes
        };
    }

    fn restore_window(&self, control: &mut WindowState) {
        control.cwnd_bytes = control.cwnd_bytes.max(self.prior_cwnd_bytes);
    }

    fn update_model_and_state(&mut self, control: &mut WindowState, ack: &Ack) {
        self.model.on_delivery(ack);
        let sample = RateSample::of(ack, &self.model);
        self.losses.update_latest(&sample, ack.delivered_bytes);
        self.update_congestion_signals(control, &sample, ack);
        self.model.update_aggregation(ack, control, self.cycle.full_bw_reached);
        self.check_full_bandwidth(&sample);
        self.check_startup_done(control, &sample);
        self.check_drain_done(control, ack);
        self.update_cycle(control, &sample, ack);
        self.model.update_min_rtt(ack);
        self.check_probe_rtt(control, &sample, ack);
        self.losses.advance_latest(&sample);
        self.model.bound_bandwidth(self.losses.bw_shortterm);
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        BBR3.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements {
            delivery_rate: true,
            pacing: true,
            on_sent: true,
            own_recovery: true,
            ..ControlRequirements::default()
        }
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.initial_cwnd_bytes = control.cwnd_bytes;
        self.model.begin(now, rtt);
        self.first_rate(control, rtt);
    }

    fn on_sent(&mut self, control: &mut WindowState, packet: &PacketState) {
        if packet.in_flight_bytes > packet.bytes || !packet.app_limited {
            return;
        }
        self.idle_restart = true;
        self.model.restart_aggregation(packet.sent_at);
        if self.state.probes_bandwidth_in_turn() {
            self.set_pacing_rate(control, 1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(control, packet.sent_at);
        }
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if self.initial_cwnd_bytes == 0 {
            self.initial_cwnd_bytes = control.cwnd_bytes;
        }
        if !self.rate_from_rtt && !ack.smoothed_rtt.is_zero() {
            self.first_rate(control, Some(ack.smoothed_rtt));
        }
        self.update_model_and_state(control, ack);
        let (gain, _) = self.state.gains();
        self.set_pacing_rate(control, gain);
        control.send_quantum_bytes = two_segments(control);
        self.set_window(control, ack);
    }

    fn on_packet_lost(&mut self, control: &mut WindowState, now: Instant, packet: &PacketState) {
        self.handle_lost_packet(control, now, packet);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        if congestion.ecn {
            return;
        }
        self.save_state(control);
        self.in_fast_recovery = true;
        if congestion.persistent {
            self.in_timeout = true;
            control.cwnd_bytes = segment(control);
        }
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.restore_window(control);
        if exit.undone {
            self.undo(control);
        }
        self.losses.saved = false;
        self.in_fast_recovery = false;
        self.in_timeout = false;
    }

    fn on_timeout(&mut self, control: &mut WindowState, _timeout: &Timeout) {
        self.save_state(control);
        self.in_fast_recovery = false;
        self.in_timeout = true;
        control.cwnd_bytes = segment(control);
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        window::resize(control);
    }

    /// `state`: 0 Startup, 1 Drain, 2 DOWN, 3 CRUISE, 4 REFILL, 5 UP, 6 ProbeRTT. A bound that is not set is 0.
    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        let (pacing_gain, cwnd_gain) = self.state.gains();
        out.push(("state", f64::from(self.state as u8)));
        out.push(("bw_bps", self.model.bw_bps as f64));
        out.push(("max_bw_bps", self.model.max_bw_bps() as f64));
        out.push(("bw_shortterm_bps", shown_bound(self.losses.bw_shortterm)));
        out.push(("inflight_longterm_bytes", shown_bound(self.losses.inflight_longterm)));
        out.push(("inflight_shortterm_bytes", shown_bound(self.losses.inflight_shortterm)));
        out.push(("min_rtt_s", self.model.min_rtt().map_or(0.0, Duration::as_secs_f64)));
        out.push(("pacing_gain", pacing_gain));
        out.push(("cwnd_gain", cwnd_gain));
        out.push(("extra_acked_bytes", self.model.extra_acked_bytes() as f64));
        out.push(("full_bw_reached", f64::from(u8::from(self.cycle.full_bw_reached))));
        out.push(("round_count", self.model.rounds.count as f64));
        self.cycle.inspect(out);
        out.push(("probe_rtt_min_delay_s", self.model.probe_rtt_min_delay().map_or(0.0, Duration::as_secs_f64)));
        out.push(("idle_restart", f64::from(u8::from(self.idle_restart))));
        self.losses.inspect(out);
    }
}

/// Returns the number that reports show for a bound: 0 if it is not set.
fn shown_bound(value: u64) -> f64 {
    if value == UNBOUNDED { 0.0 } else { value as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_are_in_the_order_of_the_states() {
        use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
        let named = [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt].map(|state| BBR3.states[state as usize]);
        let expected =
            ["startup", "drain", "probe_bw_down", "probe_bw_cruise", "probe_bw_refill", "probe_bw_up", "probe_rtt"];
        assert_eq!(named, expected);
        assert_eq!(BBR3.states.len(), expected.len());
    }
}
