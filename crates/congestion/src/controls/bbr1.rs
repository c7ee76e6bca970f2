//! The congestion control BBR, version 1.
//!
//! **Model.** The control does not react to losses but measures the path. The bandwidth is the largest delivery rate of
//! the last ten rounds, and the round-trip time is the smallest of the last ten seconds. Their product is the capacity
//! of the path without a queue (the bandwidth-delay product, BDP). The pacing rate is a gain times the bandwidth. The
//! window is a gain times the BDP, so that enough data is in flight when acknowledgments are late or aggregated.
//!
//! ```text
//! state      pacing gain           window gain   until
//! STARTUP    2.885 = 2/ln 2        2.885         three rounds brought less than 25 % more bandwidth each
//! DRAIN      1/2.885               2.885         no more than one BDP is in flight
//! PROBE_BW   1.25, 0.75, then 1    2             the next phase: after a round-trip time; 1.25 lasts until a
//!            for six phases                      quarter of a BDP more is in flight or something is lost, 0.75 at
//!                                                most until that is gone
//! PROBE_RTT  1                     four          200 ms and a round with no more than four segments in flight
//!                                  segments
//! ```
//!
//! PROBE_BW begins at a random phase other than 0.75. PROBE_RTT begins when the smallest round-trip time has not fallen
//! for ten seconds. It is followed by PROBE_BW, or by STARTUP if the path has not been filled. After an idle period
//! there is no PROBE_RTT, and PROBE_BW paces at the bandwidth.
//!
//! A loss does not change the model. In the first round of a recovery, the sender sends as much as was delivered
//! (packet conservation). After a timeout, the window begins at one segment. When the recovery ends, the previous
//! window is restored. The window is extended by the bytes that acknowledgments recently reported beyond the bandwidth
//! ([`aggregation`]). The control detects a policer, which limits the rate and drops the excess ([`policer`]).
//!
//! **Source.** draft-cardwell-iccrg-bbr-congestion-control-00 (July 2017); Cardwell et al., BBR: Congestion-Based
//! Congestion Control, ACM Queue 14(5), 2016. Where they differ, the behavior is that of Linux 6.12
//! `net/ipv4/tcp_bbr.c`: pacing 1 % below the rate, aggregation, policer detection, the random phase, and windows of an
//! even number of whole segments plus three send quanta. Only a smaller round-trip sample postpones PROBE_RTT; in the
//! draft and in Linux before 5.11 an equal sample does too.
//!
//! **Choices.** A burst has the minimum size of Linux: one segment below 1.2 Mbit/s, two above. Linux increases it to
//! the data of one millisecond, for hosts with segmentation offload. Part of the data in flight is then still in the
//! host, and the three quanta compensate for that part. Here, all of this data would be in the queue: 14 % of a BDP at
//! 20 ms. Windows are in bytes. Gains are exact; Linux uses 8 fractional bits. Linux estimates the bytes in flight at
//! the time when the next packet may leave; here the current bytes in flight are used. When the old minimum has
//! expired, Linux ignores a round-trip sample from an acknowledgment that was probably delayed; here, any sample may
//! replace the minimum.

pub mod aggregation;
pub mod policer;

use self::aggregation::Aggregation;
use self::policer::PolicerDetector;
use crate::bbr::{ProbeRttAppLimit, RoundCounter, WindowedMax, bytes_in, four_segments, times, with_values};
use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use crate::window::{self, segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_units::{Duration, Instant, RandomStream};

pub(super) static BBR1: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "bbr1",
        version: "draft-cardwell-iccrg-bbr-congestion-control-00 (2017), as in Linux 6.12",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c",
        text: "Paces at the measured bandwidth and probes for more every eight round-trip times; does not react to \
               losses.",
        ..Declaration::EMPTY
    },
    create: |options| Box::new(Bbr1::new(RandomStream::new(options.seed, "bbr1", "cycle phase"))),
    hystart: HyStartSupport::None,
    values: &VALUES,
    states: &["startup", "drain", "probe_bw", "probe_rtt"],
    linux_name: Some("bbr"),
};

static VALUES: [MetricDeclaration; 10] = with_values(&[
    declare("control_cycle_phase", "", "the phase of its gain cycle, 0 to 7 (BBRv1)."),
    declare("control_policed", "", "1 while it assumes that a policer limits the rate, otherwise 0 (BBRv1)."),
]);

/// 2/ln 2, the smallest gain with which the rate doubles in each round (draft section 4.3.1).
const HIGH_GAIN: f64 = 2.885;
/// Drains in one round the queue that STARTUP built in one round.
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const WINDOW_GAIN: f64 = 2.0;
/// The pacing gains of PROBE_BW.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The control paces at this share of the bandwidth, so that a queue drains.
const PACING_MARGIN: f64 = 0.99;
/// A round without this growth of the bandwidth counts towards the end of STARTUP, which ends after `FULL_ROUNDS` of
/// them.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The assumed round-trip time for the first pacing rate if none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Below this rate a burst is one segment, above it two.
const SINGLE_SEGMENT_BPS: u64 = 1_200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The event from which the transport is recovering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Nothing,
    /// Fast recovery.
    Loss,
    Timeout,
}

/// The congestion control BBRv1.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    state: State,
    random: RandomStream,
    rounds: RoundCounter,
    bandwidth: WindowedMax,
    /// Smallest round-trip time; [`Duration::MAX`] before the first sample.
    min_rtt: Duration,
    min_rtt_at: Instant,
    cycle_index: usize,
    cycle_at: Instant,
    /// The bandwidth against which STARTUP measures growth, and the number of rounds without growth.
    full_bps: u64,
    full_rounds: u8,
    filled: bool,
    /// When PROBE_RTT may end; `None` until the bytes in flight are low enough.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    own_limit: ProbeRttAppLimit,
    repair: Repair,
    /// The value of `repair` at the last acknowledgment.
    repair_before: Repair,
    conserving: bool,
    /// The window before recovery or PROBE_RTT.
    prior_cwnd_bytes: u64,
    initial_cwnd_bytes: u64,
    rate_from_rtt: bool,
    delivered_bytes: u64,
    aggregation: Aggregation,
    policer: PolicerDetector,
}

impl Bbr1 {
    /// Creates BBRv1. The random stream selects the phases in which PROBE_BW begins.
    pub fn new(random: RandomStream) -> Self {
        Bbr1 {
            state: State::Startup,
            random,
            rounds: RoundCounter::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: Duration::MAX,
            min_rtt_at: Instant::ZERO,
            cycle_index: 0,
            cycle_at: Instant::ZERO,
            full_bps: 0,
            full_rounds: 0,
            filled: false,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            own_limit: ProbeRttAppLimit::default(),
            repair: Repair::Nothing,
            repair_before: Repair::Nothing,
            conserving: false,
            prior_cwnd_bytes: 0,
            initial_cwnd_bytes: 0,
            rate_from_rtt: false,
            delivered_bytes: 0,
            aggregation: Aggregation::default(),
            policer: PolicerDetector::default(),
        }
    }

    /// The pacing gain and the window gain.
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (DRAIN_GAIN, HIGH_GAIN),
            State::ProbeBw if self.policer.bandwidth().is_some() => (1.0, WINDOW_GAIN),
            State::ProbeBw => (CYCLE[self.cycle_index], WINDOW_GAIN),
            State::ProbeRtt => (1.0, 1.0),
        }
    }

    /// The bandwidth for sending: the measured one, or that of the policer.
    fn bandwidth_bps(&self) -> u64 {
        self.policer.bandwidth().unwrap_or_else(|| self.bandwidth.get())
    }

    /// A gain times the BDP, in bytes.
    fn bdp_bytes(&self, bandwidth_bps: u64, gain: f64) -> u64 {
        if self.min_rtt == Duration::MAX {
            return self.initial_cwnd_bytes;
        }
        times(gain, bytes_in(bandwidth_bps, self.min_rtt))
    }

    /// Adds room for bursts in transit through both hosts, and rounds up to an even number of segments for a receiver
    /// that acknowledges every other segment.
    fn with_quanta(&self, control: &WindowState, bytes: u64) -> u64 {
        let mss = segment(control);
        let quanta = Self::quantum_bytes(control).saturating_mul(3);
        let segments = bytes.saturating_add(quanta).div_ceil(mss);
        let mut whole = segments.saturating_add(segments % 2).saturating_mul(mss);
        if self.state == State::ProbeBw && self.cycle_index == 0 {
            whole = whole.saturating_add(two_segments(control));
        }
        whole
    }

    /// The bytes in flight with a gain, if the only queue is the one that the gain builds.
    fn in_flight_target(&self, control: &WindowState, gain: f64) -> u64 {
        self.with_quanta(control, self.bdp_bytes(self.bandwidth.get(), gain))
    }

    fn quantum_bytes(control: &WindowState) -> u64 {
        if control.pacing_bps < SINGLE_SEGMENT_BPS { segment(control) } else { two_segments(control) }
    }

    fn update_model(&mut self, control: &mut WindowState, ack: &Ack) {
        self.update_bandwidth(ack);
        if ack.rate.is_some() {
            let round_start = self.rounds.start;
            self.aggregation.on_ack(ack, self.bandwidth_bps(), control, round_start);
        }
        self.update_cycle(control, ack);
        self.check_filled(ack);
        self.check_drained(control, ack);
        self.update_min_rtt(control, ack);
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.delivered_bytes = ack.delivered_bytes;
        self.own_limit.on_ack(ack.delivered_bytes);
        self.rounds.on_ack(ack.rate.map(|rate| rate.prior_delivered_bytes), ack.delivered_bytes);
        let Some(rate) = &ack.rate else { return };
        if self.rounds.start {
            self.conserving = false;
        }
        let limited = rate.app_limited || self.own_limit.covers(rate.prior_delivered_bytes);
        let probing_bandwidth = self.state == State::ProbeBw;
        let event = policer::PolicerSample {
            now: ack.now,
            delivered_bytes: ack.delivered_bytes,
            lost: ack.lost_bytes > 0,
            app_limited: limited,
            round_start: self.rounds.start,
        };
        if self.policer.on_ack(&event, probing_bandwidth) == policer::PolicerAction::ProbeAgain {
            self.enter_probe_bw(ack.now);
        }
        let bps = rate.bits_per_second();
        if !limited || bps >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count, bps);
        }
    }

    fn update_cycle(&mut self, control: &WindowState, ack: &Ack) {
        if self.state != State::ProbeBw {
            return;
        }
        let (gain, _) = self.gains();
        let full_length = ack.now.saturating_since(self.cycle_at) > self.min_rtt;
        let in_flight = ack.prior_in_flight_bytes;
        let over = if gain > 1.0 {
            full_length && (ack.lost_bytes > 0 || in_flight >= self.in_flight_target(control, gain))
        } else if gain < 1.0 {
            full_length || in_flight <= self.in_flight_target(control, 1.0)
        } else {
            full_length
        };
        if over {
            self.next_phase(ack.now);
        }
    }

    fn next_phase(&mut self, now: Instant) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    /// Checks whether STARTUP has filled the path.
    fn check_filled(&mut self, ack: &Ack) {
        let Some(rate) = &ack.rate else { return };
        let limited = rate.app_limited || self.own_limit.covers(rate.prior_delivered_bytes);
        if self.filled || !self.rounds.start || limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= times(FULL_GROWTH, self.full_bps) {
            self.full_bps = bandwidth;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.filled = self.full_rounds >= FULL_ROUNDS;
        }
    }

    fn check_drained(&mut self, control: &mut WindowState, ack: &Ack) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
            control.ssthresh_bytes = self.in_flight_target(control, 1.0).max(two_segments(control));
        }
        if self.state == State::Drain && ack.in_flight_bytes <= self.in_flight_target(control, 1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Enters PROBE_BW at a random phase, except the second, which would drain a queue that does not exist.
    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        self.cycle_index = CYCLE.len() - 1 - self.random.uniform_below(CYCLE.len() as u64 - 1) as usize;
        self.next_phase(now);
    }

    fn update_min_rtt(&mut self, control: &mut WindowState, ack: &Ack) {
        let expired = ack.now > self.min_rtt_at.saturating_add(MIN_RTT_WINDOW);
        if let Some(rtt) = ack.rtt
            && (rtt < self.min_rtt || expired)
        {
            self.min_rtt = rtt;
            self.min_rtt_at = ack.now;
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_window(control);
            self.probe_rtt_until = None;
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(control, ack);
        }
        if ack.rate.is_some_and(|rate| rate.delivered_bytes > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, control: &mut WindowState, ack: &Ack) {
        self.own_limit.mark(ack.delivered_bytes, ack.in_flight_bytes);
        if self.probe_rtt_until.is_some() {
            self.probe_rtt_round_done |= self.rounds.start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_over(control, ack.now);
            }
        } else if ack.in_flight_bytes <= four_segments(control) {
            self.probe_rtt_until = Some(ack.now.saturating_add(PROBE_RTT_TIME));
            self.probe_rtt_round_done = false;
            self.rounds.begin(ack.delivered_bytes);
        }
    }

    fn check_probe_rtt_over(&mut self, control: &mut WindowState, now: Instant) {
        if self.probe_rtt_until.is_some_and(|until| now > until) {
            self.min_rtt_at = now;
            control.cwnd_bytes = control.cwnd_bytes.max(self.prior_cwnd_bytes);
            if self.filled {
                self.enter_probe_bw(now);
            } else {
                self.state = State::Startup;
            }
        }
    }

    fn set_pacing_rate(&mut self, control: &mut WindowState, smoothed_rtt: Duration, gain: f64) {
        if !self.rate_from_rtt && !smoothed_rtt.is_zero() {
            self.first_rate(control, Some(smoothed_rtt));
        }
        let rate = times(gain * PACING_MARGIN, self.bandwidth_bps());
        if self.filled || rate > control.pacing_bps {
            // If it were 0, the transport would choose the rate.
            control.pacing_bps = rate.max(1);
        }
        control.send_quantum_bytes = Self::quantum_bytes(control);
    }

    /// Sets the rate before the first delivery: a window per round-trip time, times the gain of STARTUP.
    fn first_rate(&mut self, control: &mut WindowState, rtt: Option<Duration>) {
        self.rate_from_rtt = rtt.is_some();
        let rtt = rtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1));
        let window_bps = control.cwnd_bytes as f64 * 8e9 / rtt.as_nanos() as f64;
        control.pacing_bps = ((HIGH_GAIN * window_bps).round() as u64).max(1);
        control.send_quantum_bytes = Self::quantum_bytes(control);
    }

    fn set_window(&mut self, control: &mut WindowState, ack: &Ack) {
        if ack.acked_bytes > 0 && !self.recover_or_restore(control, ack) {
            let (_, gain) = self.gains();
            let bandwidth = self.bandwidth_bps();
            let extra = if self.filled { self.aggregation.window_bytes(bandwidth) } else { 0 };
            let target = self.with_quanta(control, self.bdp_bytes(bandwidth, gain).saturating_add(extra));
            let grown = control.cwnd_bytes.saturating_add(ack.acked_bytes);
            if self.filled {
                control.cwnd_bytes = grown.min(target);
            } else if control.cwnd_bytes < target || ack.delivered_bytes < self.initial_cwnd_bytes {
                control.cwnd_bytes = grown;
            }
            control.cwnd_bytes = control.cwnd_bytes.max(four_segments(control));
        }
        if self.state == State::ProbeRtt {
            control.cwnd_bytes = control.cwnd_bytes.min(four_segments(control));
        }
    }

    /// Sets the window in recovery and restores it at the end. Returns whether packet conservation determines the
    /// window.
    fn recover_or_restore(&mut self, control: &mut WindowState, ack: &Ack) -> bool {
        let conserved = ack.in_flight_bytes.saturating_add(ack.acked_bytes);
        control.cwnd_bytes = control.cwnd_bytes.saturating_sub(ack.lost_bytes).max(segment(control));
        if self.repair == Repair::Loss && self.repair_before != Repair::Loss {
            // The first round of recovery begins now.
            self.conserving = true;
            self.rounds.begin(ack.delivered_bytes);
            control.cwnd_bytes = conserved.max(segment(control));
        } else if self.repair == Repair::Nothing && self.repair_before != Repair::Nothing {
            control.cwnd_bytes = control.cwnd_bytes.max(self.prior_cwnd_bytes);
            self.conserving = false;
        }
        self.repair_before = self.repair;
        if self.conserving {
            control.cwnd_bytes = control.cwnd_bytes.max(conserved);
        }
        self.conserving
    }

    fn save_window(&mut self, control: &WindowState) {
        if self.repair_before == Repair::Nothing && self.state != State::ProbeRtt {
            self.prior_cwnd_bytes = control.cwnd_bytes;
        } else {
            self.prior_cwnd_bytes = self.prior_cwnd_bytes.max(control.cwnd_bytes);
        }
    }
}

impl Controller for Bbr1 {
    fn name(&self) -> &'static str {
        BBR1.declaration.name
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
        self.min_rtt = rtt.unwrap_or(Duration::MAX);
        self.min_rtt_at = now;
        self.aggregation.restart(now);
        self.policer.restart(now);
        self.first_rate(control, rtt);
    }

    fn on_sent(&mut self, control: &mut WindowState, packet: &PacketState) {
        if packet.in_flight_bytes > packet.bytes || !packet.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(packet.sent_at);
        match self.state {
            State::ProbeBw => self.set_pacing_rate(control, Duration::ZERO, 1.0),
            State::ProbeRtt => self.check_probe_rtt_over(control, packet.sent_at),
            State::Startup | State::Drain => {}
        }
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if self.initial_cwnd_bytes == 0 {
            self.initial_cwnd_bytes = control.cwnd_bytes;
        }
        self.update_model(control, ack);
        let (gain, _) = self.gains();
        self.set_pacing_rate(control, ack.smoothed_rtt, gain);
        self.set_window(control, ack);
    }

    fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, packet: &PacketState) {
        self.policer.on_lost(packet.bytes);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        if congestion.ecn {
            return;
        }
        self.save_window(control);
        self.repair = Repair::Loss;
        if congestion.persistent {
            control.cwnd_bytes = segment(control);
            self.repair = Repair::Timeout;
        }
    }

    fn on_recovery_exit(&mut self, _control: &mut WindowState, exit: &RecoveryExit) {
        // The next acknowledgment restores the window.
        self.repair = Repair::Nothing;
        if exit.undone {
            self.full_bps = 0;
            self.full_rounds = 0;
            self.policer.forget(exit.now, self.delivered_bytes);
        }
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.save_window(control);
        self.repair = Repair::Timeout;
        self.repair_before = Repair::Timeout;
        self.full_bps = 0;
        control.cwnd_bytes = segment(control);
        let event = policer::PolicerSample {
            now: timeout.now,
            delivered_bytes: self.delivered_bytes,
            lost: true,
            app_limited: false,
            // A timeout counts as the end of a round.
            round_start: true,
        };
        if self.policer.on_ack(&event, self.state == State::ProbeBw) == policer::PolicerAction::ProbeAgain {
            self.enter_probe_bw(timeout.now);
        }
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        window::resize(control);
    }

    /// `state`: 0 STARTUP, 1 DRAIN, 2 PROBE_BW, 3 PROBE_RTT.
    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        let (pacing_gain, cwnd_gain) = self.gains();
        let min_rtt = if self.min_rtt == Duration::MAX { 0.0 } else { self.min_rtt.as_secs_f64() };
        out.push(("state", f64::from(self.state as u8)));
        out.push(("cycle_phase", self.cycle_index as f64));
        out.push(("bw_bps", self.bandwidth_bps() as f64));
        out.push(("min_rtt_s", min_rtt));
        out.push(("pacing_gain", pacing_gain));
        out.push(("cwnd_gain", cwnd_gain));
        out.push(("full_bw_reached", f64::from(u8::from(self.filled))));
        out.push(("extra_acked_bytes", self.aggregation.extra_bytes() as f64));
        out.push(("policed", f64::from(u8::from(self.policer.bandwidth().is_some()))));
        out.push(("round_count", self.rounds.count as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_are_in_the_order_of_the_states() {
        let named = [State::Startup, State::Drain, State::ProbeBw, State::ProbeRtt].map(|state| state as usize);
        assert_eq!(named.map(|state| BBR1.states[state]), ["startup", "drain", "probe_bw", "probe_rtt"]);
        assert_eq!(BBR1.states.len(), named.len());
    }
}
