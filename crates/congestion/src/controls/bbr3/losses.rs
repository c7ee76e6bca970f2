//! The bounds that BBRv3 derives from losses, and the undo of a spurious recovery.
//!
//! **Source.** draft-ietf-ccwg-bbr-06, sections "Updating the Model Upon Packet Loss" and "Updating the Model Upon
//! Detecting a Spurious Loss Recovery".

use super::model::RateSample;
use super::{Bbr3, State, shown_bound};
use crate::bbr::{UNBOUNDED, times};
use crate::control::{Ack, PacketState, WindowState};
use fullpipe_units::Instant;

/// The share lost in a round above which too much was in flight.
const LOSS_THRESHOLD: f64 = 0.02;
/// The smallest factor of a reduction.
pub(crate) const BETA: f64 = 0.7;

/// The bounds, and the signals of the current round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossBounds {
    pub(crate) bw_shortterm: u64,
    pub(crate) inflight_shortterm: u64,
    pub(crate) inflight_longterm: u64,
    /// Bytes declared lost on the connection.
    lost_bytes: u64,
    /// The largest delivery rate and the largest number of bytes delivered in the current round.
    bw_latest_bps: u64,
    pub(crate) inflight_latest_bytes: u64,
    /// The acknowledgment of a packet that was sent after this number of bytes was delivered ends a round of losses.
    round_delivered_bytes: u64,
    pub(crate) round_start: bool,
    in_round: bool,
    /// The number of acknowledgments in this round that detected losses.
    pub(crate) events_in_round: u32,
    /// Whether the state was saved in the current recovery.
    pub(crate) saved: bool,
    /// Whether the following fields apply to the last recovery, which may be over: a report of duplicates (RFC 2883) can
    /// arrive later. A second report for the same recovery restores nothing.
    can_undo: bool,
    pub(crate) undo_state: Option<State>,
    undo_bw_shortterm: u64,
    undo_inflight_shortterm: u64,
    undo_inflight_longterm: u64,
}

impl Default for LossBounds {
    fn default() -> Self {
        LossBounds {
            bw_shortterm: UNBOUNDED,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            lost_bytes: 0,
            bw_latest_bps: 0,
            inflight_latest_bytes: 0,
            round_delivered_bytes: 0,
            round_start: false,
            in_round: false,
            events_in_round: 0,
            saved: false,
            can_undo: false,
            undo_state: None,
            undo_bw_shortterm: 0,
            undo_inflight_shortterm: 0,
            undo_inflight_longterm: 0,
        }
    }
}

impl LossBounds {
    pub(crate) fn update_latest(&mut self, sample: &RateSample, delivered_bytes: u64) {
        self.bw_latest_bps = self.bw_latest_bps.max(sample.rate_bps);
        self.inflight_latest_bytes = self.inflight_latest_bytes.max(sample.delivered_bytes);
        self.round_start = sample.prior_delivered_bytes.is_some_and(|prior| prior >= self.round_delivered_bytes);
        if self.round_start {
            self.round_delivered_bytes = delivered_bytes;
        }
    }

    pub(crate) fn advance_latest(&mut self, sample: &RateSample) {
        if self.round_start {
            self.bw_latest_bps = sample.rate_bps;
            self.inflight_latest_bytes = sample.delivered_bytes;
            self.events_in_round = 0;
        }
    }

    /// Resets the signals at the beginning of a cycle.
    pub(crate) fn reset_signals(&mut self) {
        self.in_round = false;
        self.bw_latest_bps = 0;
        self.inflight_latest_bytes = 0;
    }

    /// Reports the signals of the round and the values for an undo, which are 0 before the first recovery.
    pub(crate) fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        let undo = |value: u64| if self.can_undo { shown_bound(value) } else { 0.0 };
        out.push(("loss_in_round", f64::from(u8::from(self.in_round))));
        out.push(("loss_events_in_round", f64::from(self.events_in_round)));
        out.push(("undo_bw_shortterm_bps", undo(self.undo_bw_shortterm)));
        out.push(("undo_inflight_shortterm_bytes", undo(self.undo_inflight_shortterm)));
        out.push(("undo_inflight_longterm_bytes", undo(self.undo_inflight_longterm)));
    }

    pub(crate) fn reset_short_term(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// Lowers the short-term bounds towards what was just delivered, once per round with losses.
    fn lower_short_term(&mut self, max_bw_bps: u64, cwnd_bytes: u64) {
        let or = |bound: u64, first: u64| if bound == UNBOUNDED { first } else { bound };
        let bandwidth = or(self.bw_shortterm, max_bw_bps);
        let in_flight = or(self.inflight_shortterm, cwnd_bytes);
        self.bw_shortterm = self.bw_latest_bps.max(times(BETA, bandwidth));
        self.inflight_shortterm = self.inflight_latest_bytes.max(times(BETA, in_flight));
    }
}

/// Whether the share of bytes lost exceeds the threshold.
pub(crate) fn too_much_lost(lost_bytes: u64, tx_in_flight_bytes: u64) -> bool {
    lost_bytes as f64 > tx_in_flight_bytes as f64 * LOSS_THRESHOLD
}

/// The bytes in flight when the share lost exceeded the threshold, at a position within this packet (`InflightAtLoss`).
pub(crate) fn in_flight_at_loss(bytes: u64, tx_in_flight_bytes: u64, lost_bytes: u64) -> u64 {
    let in_flight_before = tx_in_flight_bytes.saturating_sub(bytes) as f64;
    let lost_before = lost_bytes.saturating_sub(bytes) as f64;
    let prefix = (LOSS_THRESHOLD * in_flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (in_flight_before + prefix.max(0.0)) as u64
}

impl Bbr3 {
    pub(crate) fn update_congestion_signals(&mut self, control: &WindowState, sample: &RateSample, ack: &Ack) {
        self.model.update_max_bandwidth(sample);
        self.losses.events_in_round += u32::from(ack.lost_bytes > 0);
        if !self.losses.round_start {
            return;
        }
        if self.losses.in_round && !self.state.accelerates() {
            self.losses.lower_short_term(self.model.max_bw_bps(), control.cwnd_bytes);
        }
        self.losses.in_round = false;
    }

    pub(crate) fn handle_lost_packet(&mut self, control: &mut WindowState, now: Instant, packet: &PacketState) {
        self.losses.lost_bytes = self.losses.lost_bytes.saturating_add(packet.bytes);
        if !self.losses.in_round {
            self.losses.round_delivered_bytes = self.model.delivered_bytes;
        }
        self.save_state(control);
        self.losses.in_round = true;
        if !self.cycle.is_bw_probe_sample {
            return;
        }
        let lost = self.losses.lost_bytes.saturating_sub(packet.lost_bytes);
        if too_much_lost(lost, packet.in_flight_bytes) {
            let in_flight = in_flight_at_loss(packet.bytes, packet.in_flight_bytes, lost);
            let limited = packet.app_limited || self.model.own_limit.covers(packet.delivered_bytes);
            self.handle_in_flight_too_high(control, now, in_flight, limited);
        }
    }

    /// Saves the state for an undo, once per recovery (`SaveStateUponLoss`).
    pub(crate) fn save_state(&mut self, control: &WindowState) {
        self.save_window(control);
        if self.losses.saved {
            return;
        }
        self.losses.saved = true;
        self.losses.can_undo = true;
        self.losses.undo_state = None;
        self.losses.undo_bw_shortterm = self.losses.bw_shortterm;
        self.losses.undo_inflight_shortterm = self.losses.inflight_shortterm;
        self.losses.undo_inflight_longterm = self.losses.inflight_longterm;
    }

    /// Restores the state, because the recovery was spurious (`HandleSpuriousLossDetection`).
    pub(crate) fn undo(&mut self, control: &mut WindowState) {
        let losses = &mut self.losses;
        losses.in_round = false;
        if std::mem::take(&mut losses.can_undo) {
            losses.bw_shortterm = losses.bw_shortterm.max(losses.undo_bw_shortterm);
            losses.inflight_shortterm = losses.inflight_shortterm.max(losses.undo_inflight_shortterm);
            losses.inflight_longterm = losses.inflight_longterm.max(losses.undo_inflight_longterm);
        }
        let undo_state = losses.undo_state.take();
        self.cycle.reset_full_bandwidth(0);
        let back = undo_state.filter(|state| *state != self.state);
        if back == Some(State::Startup) {
            self.cycle.full_bw_reached = false;
        }
        match back {
            Some(State::Startup) if self.state != State::ProbeRtt => self.enter_startup(control),
            Some(State::Up) if self.state != State::ProbeRtt => self.start_refill(),
            _ => {}
        }
    }
}
