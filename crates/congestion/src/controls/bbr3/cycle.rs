//! The states of BBRv3 and their transitions.
//!
//! **Source.** draft-ietf-ccwg-bbr-06, section "State Machine Operation".

use super::losses::{BETA, too_much_lost};
use super::model::RateSample;
use super::{Bbr3, State};
use crate::bbr::{UNBOUNDED, four_segments, times};
use crate::control::{Ack, WindowState};
use crate::window::segment;
use fullpipe_units::{Duration, Instant, RandomStream};

/// A round with less than this growth of the delivery rate counts as one without growth. After `FULL_ROUNDS` of them,
/// the full bandwidth is reached.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;
/// The number of acknowledgments with losses in a round of recovery that ends Startup.
const STARTUP_LOSS_EVENTS: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
/// The share of the long-term bound that is left to other flows.
const HEADROOM: f64 = 0.15;
/// The minimum time between bandwidth probes; a random time up to `WAIT_SPREAD` is added.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
const WAIT_SPREAD: Duration = Duration::from_secs(1);
/// The maximum number of rounds between bandwidth probes, for coexistence with Reno.
const RENO_ROUNDS: u64 = 63;
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The long-term bound grows by at most 2^30 segments per round.
const MOST_DOUBLINGS: u32 = 30;

/// The phase of the bandwidth probe to which the current acknowledgments belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// No probe.
    Init,
    /// The packets were sent while the pipe was refilled.
    Refilling,
    /// The probe has begun; the acknowledged packets were sent before it.
    ProbeStarting,
    /// The packets were sent in the probe.
    ProbeFeedback,
    /// The probe is over; the acknowledged packets may have been sent in it.
    ProbeStopping,
}

/// The data of the state machine.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    random: RandomStream,
    ack_phase: AckPhase,
    pub(crate) is_bw_probe_sample: bool,
    /// Whether the full bandwidth was ever reached, and whether it was reached since the last probe.
    pub(crate) full_bw_reached: bool,
    full_bw_now: bool,
    full_bw_bps: u64,
    full_bw_count: u8,
    drain_start_round: u64,
    started_at: Instant,
    bw_probe_wait: Duration,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked_bytes: u64,
    /// The number of acknowledged bytes for which the long-term bound grows by a segment.
    probe_up_acked_per_segment: u64,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// When ProbeRTT may end; `None` until the bytes in flight are low enough.
    probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
}

impl Cycle {
    pub(crate) fn new(random: RandomStream) -> Self {
        Cycle {
            random,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw_bps: 0,
            full_bw_count: 0,
            drain_start_round: 0,
            started_at: Instant::ZERO,
            bw_probe_wait: Duration::ZERO,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked_bytes: 0,
            probe_up_acked_per_segment: UNBOUNDED,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
        }
    }

    /// Measures growth relative to this rate from now on.
    pub(crate) fn reset_full_bandwidth(&mut self, rate_bps: u64) {
        self.full_bw_bps = rate_bps;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// Reports the state of the search for the full bandwidth.
    pub(crate) fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("full_bw_now", f64::from(u8::from(self.full_bw_now))));
        out.push(("full_bw_bps", self.full_bw_bps as f64));
        out.push(("full_bw_count", f64::from(self.full_bw_count)));
    }

    /// Raises the slope of the long-term bound, which grows by 1, 2, 4, ... segments in successive rounds of a probe.
    fn raise_slope(&mut self, control: &WindowState) {
        let growth = 1u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MOST_DOUBLINGS);
        self.probe_up_acked_per_segment = (control.cwnd_bytes / growth).max(segment(control));
    }
}

impl Bbr3 {
    pub(crate) fn enter_startup(&mut self, control: &mut WindowState) {
        self.state = State::Startup;
        control.ssthresh_bytes = UNBOUNDED;
    }

    pub(crate) fn check_full_bandwidth(&mut self, sample: &RateSample) {
        let cycle = &mut self.cycle;
        if cycle.full_bw_now || !self.model.rounds.start || sample.app_limited {
            return;
        }
        if sample.rate_bps >= times(FULL_GROWTH, cycle.full_bw_bps) {
            cycle.reset_full_bandwidth(sample.rate_bps);
            return;
        }
        cycle.full_bw_count += 1;
        cycle.full_bw_now = cycle.full_bw_count >= FULL_ROUNDS;
        cycle.full_bw_reached |= cycle.full_bw_now;
    }

    pub(crate) fn check_startup_done(&mut self, control: &mut WindowState, sample: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        let lost = too_much_lost(sample.lost_bytes, sample.tx_in_flight_bytes);
        let losses = &mut self.losses;
        if self.in_fast_recovery && losses.round_start && losses.events_in_round >= STARTUP_LOSS_EVENTS && lost {
            losses.undo_state = Some(State::Startup);
            let latest = losses.inflight_latest_bytes;
            self.losses.inflight_longterm = self.bdp_bytes(self.model.bw_bps, 1.0).max(latest);
            self.cycle.full_bw_reached = true;
            self.cycle.full_bw_now = true;
        }
        if self.cycle.full_bw_reached {
            self.state = State::Drain;
            self.cycle.drain_start_round = self.model.rounds.count;
            control.ssthresh_bytes = four_segments(control);
        }
    }

    pub(crate) fn check_drain_done(&mut self, control: &WindowState, ack: &Ack) {
        if self.state == State::Drain
            && (ack.in_flight_bytes <= self.in_flight_at(control, self.model.bw_bps)
                || self.model.rounds.count > self.cycle.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(ack.now);
        }
    }

    fn start_down(&mut self, now: Instant) {
        self.losses.reset_signals();
        let cycle = &mut self.cycle;
        cycle.probe_up_acked_per_segment = UNBOUNDED;
        self.model.rounds_since_probe_up = cycle.random.uniform_below(2);
        cycle.bw_probe_wait = SHORTEST_WAIT.saturating_add(cycle.random.uniform_duration(WAIT_SPREAD));
        cycle.started_at = now;
        cycle.ack_phase = AckPhase::ProbeStopping;
        self.model.rounds.begin(self.model.delivered_bytes);
        self.state = State::Down;
    }

    pub(crate) fn start_refill(&mut self) {
        self.losses.reset_short_term();
        let cycle = &mut self.cycle;
        cycle.bw_probe_up_rounds = 0;
        cycle.bw_probe_up_acked_bytes = 0;
        cycle.prev_probe_precautionary = false;
        cycle.ack_phase = AckPhase::Refilling;
        self.model.rounds.begin(self.model.delivered_bytes);
        self.state = State::Refill;
    }

    fn start_up(&mut self, control: &WindowState, sample: &RateSample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.model.rounds.begin(self.model.delivered_bytes);
        self.cycle.reset_full_bandwidth(sample.rate_bps);
        self.state = State::Up;
        self.cycle.raise_slope(control);
    }

    pub(crate) fn update_cycle(&mut self, control: &mut WindowState, sample: &RateSample, ack: &Ack) {
        if !self.cycle.full_bw_reached || self.adapt_long_term_model(control, sample, ack) {
            return;
        }
        match self.state {
            State::Down => {
                if !self.probe_if_time(control, ack.now) && self.is_time_to_cruise(control, ack) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                self.probe_if_time(control, ack.now);
            }
            State::Refill => {
                if self.model.rounds.start {
                    self.cycle.is_bw_probe_sample = true;
                    self.start_up(control, sample);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(control, sample, ack) {
                    self.cycle.prev_probe_too_high = false;
                    self.start_down(ack.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// Begins the next bandwidth probe if it is due; returns whether it was (`IsTimeToProbeBW`).
    fn probe_if_time(&mut self, control: &WindowState, now: Instant) -> bool {
        let waited = now > self.cycle.started_at.saturating_add(self.cycle.bw_probe_wait);
        // Reno's window grows by a segment per round, so its recovery takes one round per segment of the window.
        let reno_rounds = (self.target_in_flight(control) / segment(control)).min(RENO_ROUNDS);
        let time = waited || self.model.rounds_since_probe_up >= reno_rounds;
        if time {
            self.start_refill();
        }
        time
    }

    fn is_time_to_cruise(&self, control: &WindowState, ack: &Ack) -> bool {
        ack.in_flight_bytes <= self.in_flight_with_headroom(control)
            && ack.in_flight_bytes <= self.in_flight_at(control, self.model.max_bw_bps())
    }

    fn is_time_to_go_down(&mut self, control: &WindowState, sample: &RateSample, ack: &Ack) -> bool {
        let bound = self.losses.inflight_longterm;
        if self.cycle.prev_probe_too_high && ack.in_flight_bytes >= bound {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if ack.cwnd_limited && control.cwnd_bytes >= bound {
            // The bound, not the path, limits the rate.
            self.cycle.reset_full_bandwidth(sample.rate_bps);
            return false;
        }
        self.cycle.full_bw_now
    }

    /// The long-term bound minus the headroom for other flows.
    pub(crate) fn in_flight_with_headroom(&self, control: &WindowState) -> u64 {
        let bound = self.losses.inflight_longterm;
        if bound == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = times(HEADROOM, bound).max(segment(control));
        bound.saturating_sub(headroom).max(four_segments(control))
    }

    /// Updates the bandwidth and the long-term bound from the acknowledgments of a probe. Returns whether the state
    /// changed.
    fn adapt_long_term_model(&mut self, control: &WindowState, sample: &RateSample, ack: &Ack) -> bool {
        let round_start = self.model.rounds.start;
        if self.cycle.ack_phase == AckPhase::ProbeStarting && round_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && round_start {
            self.cycle.is_bw_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.probes_bandwidth_in_turn() {
                if !sample.app_limited {
                    self.model.advance_max_bandwidth();
                }
                if self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.losses.inflight_longterm == UNBOUNDED || too_much_lost(sample.lost_bytes, sample.tx_in_flight_bytes) {
            return false;
        }
        self.losses.inflight_longterm = self.losses.inflight_longterm.max(sample.tx_in_flight_bytes);
        if self.state == State::Up {
            self.raise_long_term_bound(control, ack);
        }
        false
    }

    fn raise_long_term_bound(&mut self, control: &WindowState, ack: &Ack) {
        if !ack.cwnd_limited || control.cwnd_bytes < self.losses.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.bw_probe_up_acked_bytes = cycle.bw_probe_up_acked_bytes.saturating_add(ack.acked_bytes);
        let segments = cycle.bw_probe_up_acked_bytes / cycle.probe_up_acked_per_segment;
        cycle.bw_probe_up_acked_bytes %= cycle.probe_up_acked_per_segment;
        let growth = segments.saturating_mul(segment(control));
        self.losses.inflight_longterm = self.losses.inflight_longterm.saturating_add(growth);
        if self.model.rounds.start {
            cycle.raise_slope(control);
        }
    }

    /// Handles the loss of a packet that was sent in a bandwidth probe, with too many other losses.
    pub(crate) fn handle_in_flight_too_high(
        &mut self,
        control: &WindowState,
        now: Instant,
        tx_in_flight_bytes: u64,
        app_limited: bool,
    ) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !app_limited {
            let least = times(BETA, self.target_in_flight(control));
            self.losses.inflight_longterm = tx_in_flight_bytes.max(least);
        }
        if self.state == State::Up {
            self.losses.undo_state = Some(State::Up);
            self.start_down(now);
        }
    }

    pub(crate) fn check_probe_rtt(&mut self, control: &mut WindowState, sample: &RateSample, ack: &Ack) {
        if self.state != State::ProbeRtt && self.model.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_window(control);
            self.cycle.probe_rtt_done_at = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.model.rounds.begin(ack.delivered_bytes);
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(control, ack);
        }
        if sample.delivered_bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, control: &mut WindowState, ack: &Ack) {
        self.model.own_limit.mark(ack.delivered_bytes, ack.in_flight_bytes);
        if self.cycle.probe_rtt_done_at.is_some() {
            self.cycle.probe_rtt_round_done |= self.model.rounds.start;
            if self.cycle.probe_rtt_round_done {
                self.check_probe_rtt_done(control, ack.now);
            }
        } else if ack.in_flight_bytes <= self.probe_rtt_window(control) {
            self.cycle.probe_rtt_done_at = Some(ack.now.saturating_add(PROBE_RTT_TIME));
            self.cycle.probe_rtt_round_done = false;
            self.model.rounds.begin(ack.delivered_bytes);
        }
    }

    pub(crate) fn check_probe_rtt_done(&mut self, control: &mut WindowState, now: Instant) {
        if self.cycle.probe_rtt_done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.model.probe_rtt_min_at = now;
        self.restore_window(control);
        self.losses.reset_short_term();
        if self.cycle.full_bw_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.enter_startup(control);
        }
    }
}
