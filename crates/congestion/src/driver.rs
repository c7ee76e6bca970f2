//! Drives a congestion control for any transport: rounds, delivery-rate samples, recovery, and the summary of an
//! acknowledgment.
//!
//! **Model.** A transport counts packets and detects losses. The driver connects it with the control.
//!
//! * *Rounds.* A round ends when a packet that was sent after its start is acknowledged. When such a packet was sent,
//!   at least as many bytes had been delivered as at the start of the round (draft-ietf-ccwg-bbr section 5.5.1).
//! * *Delivery rate.* [`RateSampler`] takes one sample for each acknowledgment.
//! * *Recovery.* A transport with sequence numbers (TCP) uses them to determine when a recovery begins and ends. It
//!   sets its window by proportional rate reduction, and calls [`Driver::reduce`] and [`Driver::end_recovery`]. A
//!   transport without sequence numbers (QUIC) uses the times at which packets were sent (RFC 9002 section 7.3.2):
//!   [`Driver::on_congestion`] reduces the window to the threshold immediately, and [`Driver::end_recovery_on_ack`]
//!   ends the recovery.
//! * *Summary.* [`Driver::summarize`] creates the [`Ack`] from the transport's report. [`Driver::on_ack`] passes it to
//!   the control. The transport may modify the summary first.
//!
//! [`crate::control`] specifies the order of calls for one acknowledgment.

use crate::control::{Ack, CongestionEvent, Controller, PacketState, PlainAck, RecoveryExit, Timeout, WindowState};
use crate::rate::RateSampler;
use crate::recovery::{Recovery, RecoveryDecision};
use fullpipe_units::{Duration, EcnCodepoint, Instant};

/// A control and the state that every transport keeps for it.
#[derive(Debug)]
pub struct Driver {
    /// The values shared by control and transport, such as window, threshold and pacing rate.
    pub control: WindowState,
    controller: Box<dyn Controller>,
    rate: RateSampler,
    /// Bytes delivered when the current round began. The acknowledgment of a packet sent later ends the round.
    round_end_bytes: u64,
    /// 32 bits wide, so that it shares a word with the flags below.
    round_count: u32,
    on_sent: bool,
    paces: bool,
    own_recovery: bool,
    l4s: bool,
    /// Whether delivery-rate samples over intervals shorter than the smallest round-trip time are used.
    short_samples: bool,
    /// Whether no delivery-rate samples are taken and the control accepts plain acknowledgments.
    plain_acks: bool,
    /// The recovery of a transport without sequence numbers. It is allocated at the first congestion to save memory.
    recovery: Option<Box<Recovery>>,
}

/// Packets that one acknowledgment newly acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveredPackets {
    /// Total payload bytes of these packets.
    pub bytes: u64,
    /// The largest number of bytes that had been delivered when one of these packets was sent.
    prior_delivered_bytes: u64,
}

/// A transport's report of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct AckReport {
    /// The current time.
    pub now: Instant,
    /// The newly acknowledged packets.
    pub delivered: DeliveredPackets,
    /// Bytes by which the cumulative acknowledgment advanced; for a transport without one, the bytes delivered.
    pub cumulative_bytes: u64,
    /// Bytes newly declared lost.
    pub lost_bytes: u64,
    /// Round-trip sample; `None` if the acknowledgment gives no valid sample.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time, zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time, zero before the first sample.
    pub min_rtt: Duration,
    /// Acknowledgment delay that the peer reports; zero if unknown.
    pub ack_delay: Duration,
    /// Bytes in flight before the acknowledgment.
    pub prior_in_flight_bytes: u64,
    /// Bytes in flight after the acknowledgment.
    pub in_flight_bytes: u64,
    /// Whether the congestion window limited sending.
    pub cwnd_limited: bool,
    /// Whether the transport is in recovery.
    pub in_recovery: bool,
    /// Packets newly reported as marked.
    pub ce_packets: u64,
}

impl Driver {
    /// Creates the driver of a control on a path with this segment size and initial window.
    pub fn new(controller: Box<dyn Controller>, mss_bytes: u64, cwnd_bytes: u64) -> Driver {
        let signals = controller.requirements();
        let mut control = WindowState::new(mss_bytes, cwnd_bytes);
        if signals.l4s {
            control.codepoint = EcnCodepoint::Ect1;
        }
        Driver {
            control,
            controller,
            rate: RateSampler::new(),
            round_end_bytes: 0,
            round_count: 0,
            on_sent: signals.on_sent,
            paces: signals.pacing,
            own_recovery: signals.own_recovery,
            l4s: signals.l4s,
            short_samples: false,
            plain_acks: false,
            recovery: None,
        }
    }

    /// Enables delivery-rate samples over intervals shorter than the smallest round-trip time. Such samples
    /// overestimate the rate. The ns-3 QUIC module uses them, because its smallest round-trip time is always 0.
    pub fn keep_short_rate_samples(&mut self) {
        self.short_samples = true;
    }

    /// Disables delivery-rate samples. Has no effect if the control requires such samples
    /// ([`delivery_rate`](crate::ControlRequirements::delivery_rate)) or calls to [`Controller::on_sent`]. Without
    /// samples, [`Ack::rate`] is `None`, and [`Driver::delivery_rate_bps`] returns 0. Must be called before the first
    /// packet is sent.
    pub fn disable_rate_samples(&mut self) {
        let signals = self.controller.requirements();
        if !signals.delivery_rate && !signals.on_sent {
            self.rate.disable();
            self.plain_acks = signals.plain_acks;
        }
    }

    /// Whether delivery-rate samples are taken.
    #[inline(always)]
    pub fn takes_rate_samples(&self) -> bool {
        self.rate.takes_samples()
    }

    /// The control.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Whether the control receives [`on_sent`](crate::ControlRequirements::on_sent) for each packet.
    #[inline(always)]
    pub fn needs_on_sent(&self) -> bool {
        self.on_sent
    }

    /// Whether the control needs pacing ([`pacing`](crate::ControlRequirements::pacing)).
    #[inline(always)]
    pub fn needs_pacing(&self) -> bool {
        self.paces
    }

    /// Whether the control sets the window itself in recovery
    /// ([`own_recovery`](crate::ControlRequirements::own_recovery)).
    #[inline(always)]
    pub fn has_own_recovery(&self) -> bool {
        self.own_recovery
    }

    /// Whether the control responds itself to the marks of this connection ([`l4s`](crate::ControlRequirements::l4s)). If the peer
    /// does not count marks, the transport has set the codepoint to ECT(0).
    #[inline(always)]
    pub fn responds_to_marks(&self) -> bool {
        self.l4s && self.control.codepoint == EcnCodepoint::Ect1
    }

    /// The newest delivery-rate sample in bits per second; 0 before the first.
    pub fn delivery_rate_bps(&self) -> u64 {
        self.rate.newest_bits_per_second()
    }

    /// Bytes delivered on the connection.
    #[inline(always)]
    pub fn delivered_bytes(&self) -> u64 {
        self.rate.delivered_bytes()
    }

    /// Bytes declared lost on the connection.
    #[inline(always)]
    pub fn lost_bytes(&self) -> u64 {
        self.rate.lost_bytes()
    }

    /// Whether a recovery that began with [`Driver::on_congestion`] is active.
    #[inline(always)]
    pub fn in_recovery(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.is_active())
    }

    /// Notifies the control that the connection is established. `rtt` is the sample of the handshake, if there is one.
    pub fn on_established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.controller.on_established(&mut self.control, now, rtt);
    }

    /// Notifies the control that sending restarts after an idle period.
    pub fn on_idle_restart(&mut self, now: Instant) {
        self.controller.on_idle_restart(&mut self.control, now);
    }

    /// Notifies the control that sending restarts, if nothing is in flight, the control requires pacing, and there has
    /// been a round-trip sample. Returns whether it notified the control. Must be called before [`Driver::on_sent`].
    #[inline]
    pub fn restart_if_idle(&mut self, now: Instant, in_flight_bytes: u64, has_rtt: bool) -> bool {
        let restarts = in_flight_bytes == 0 && self.paces && has_rtt;
        if restarts {
            self.on_idle_restart(now);
        }
        restarts
    }

    /// Records that a packet of `bytes` is sent while `in_flight_bytes` are in flight. Returns the state that the
    /// transport must keep for the packet.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight_bytes: u64) -> PacketState {
        let state = self.rate.on_sent(now, bytes, in_flight_bytes);
        if self.on_sent {
            self.notify_sent(state);
        }
        state
    }

    /// `state` is passed by value, so that it is not written to memory for controls without this signal.
    fn notify_sent(&mut self, state: PacketState) {
        self.controller.on_sent(&mut self.control, &state);
    }

    /// Records that the application has no more data to send, although the window permits more.
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight_bytes: u64) {
        self.rate.mark_app_limited(in_flight_bytes);
    }

    /// Records that a packet is newly acknowledged, and adds the packet to `delivered`. Must be called at most once for
    /// each packet.
    #[inline(always)]
    pub fn on_delivered(&mut self, now: Instant, state: &PacketState, delivered: &mut DeliveredPackets) {
        delivered.bytes += state.bytes;
        delivered.prior_delivered_bytes = delivered.prior_delivered_bytes.max(state.delivered_bytes);
        self.rate.on_delivered(now, state);
    }

    /// Records that packets of `bytes` in total are newly acknowledged, and adds them to `delivered`. Must be called
    /// only if the driver takes no delivery-rate samples. `prior_delivered_bytes` is the maximum of
    /// [`PacketState::delivered_bytes`] over the packets.
    #[inline(always)]
    pub fn on_delivered_unsampled(&mut self, bytes: u64, prior_delivered_bytes: u64, delivered: &mut DeliveredPackets) {
        debug_assert!(!self.takes_rate_samples(), "samples are taken packet by packet");
        delivered.bytes += bytes;
        delivered.prior_delivered_bytes = delivered.prior_delivered_bytes.max(prior_delivered_bytes);
        self.rate.on_delivered_unsampled(bytes);
    }

    /// Records that a packet is declared lost. `state` returns the state of the packet; its argument is the total of
    /// bytes declared lost, including this packet.
    #[inline]
    pub fn on_lost(&mut self, now: Instant, bytes: u64, state: impl FnOnce(u64) -> PacketState) {
        self.rate.on_lost(bytes);
        let state = state(self.rate.lost_bytes());
        self.controller.on_packet_lost(&mut self.control, now, &state);
    }

    /// Notifies the control of a loss or a mark. The control sets the slow-start threshold, from which the transport
    /// derives the window.
    pub fn reduce(&mut self, congestion: &CongestionEvent) {
        self.controller.on_congestion(&mut self.control, congestion);
    }

    /// Handles a loss or a mark. `sent_at` is the send time of the affected packet that was sent last. Returns whether
    /// a recovery begins. If so, the window is reduced to the threshold, unless the control sets the window in recovery
    /// itself.
    pub fn on_congestion(&mut self, congestion: &CongestionEvent, sent_at: Instant) -> bool {
        let CongestionEvent { now, in_flight_bytes, lost_bytes, persistent, .. } = *congestion;
        let recovery = self.recovery.get_or_insert_default();
        let RecoveryDecision::Begin { ends_another } = recovery.on_congestion(now, sent_at, persistent) else {
            return false;
        };
        if ends_another {
            self.notify_exit(now, in_flight_bytes.saturating_sub(lost_bytes), false);
        }
        self.reduce(congestion);
        if !self.own_recovery {
            self.control.cwnd_bytes = self.control.cwnd_bytes.min(self.control.ssthresh_bytes);
        }
        true
    }

    /// Ends a recovery. `undone` states that the recovery was spurious: all packets declared lost had arrived.
    pub fn end_recovery(&mut self, now: Instant, in_flight_bytes: u64, undone: bool) {
        if let Some(recovery) = &mut self.recovery {
            recovery.end(undone);
        }
        self.notify_exit(now, in_flight_bytes, undone);
    }

    /// Called when a packet that was sent at `sent_at` is acknowledged. Ends a recovery that [`Driver::on_congestion`]
    /// began before that time.
    #[inline]
    pub fn end_recovery_on_ack(&mut self, now: Instant, sent_at: Instant, in_flight_bytes: u64) {
        if self.recovery.as_ref().is_some_and(|recovery| recovery.is_ended_by(sent_at)) {
            self.end_recovery(now, in_flight_bytes, false);
        }
    }

    fn notify_exit(&mut self, now: Instant, in_flight_bytes: u64, undone: bool) {
        let exit = RecoveryExit { now, in_flight_bytes, undone };
        self.controller.on_recovery_exit(&mut self.control, &exit);
    }

    /// Notifies the control that the retransmission timer expired.
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        self.controller.on_timeout(&mut self.control, timeout);
    }

    /// Changes the segment size.
    pub fn set_mss(&mut self, now: Instant, mss_bytes: u64) {
        self.control.mss_bytes = mss_bytes;
        self.controller.on_path_change(&mut self.control, now);
    }

    /// Notifies the control that the program has changed one of its parameters.
    pub fn on_external_change(&mut self, now: Instant) {
        self.controller.on_external_change(&mut self.control, now);
    }

    /// Begins a new path after a migration of the peer: resets the window to `cwnd_bytes` and ends any recovery. Round
    /// and byte counts continue, because the control is not replaced.
    pub fn reset_for_new_path(&mut self, cwnd_bytes: u64) {
        let fresh = WindowState::new(self.control.mss_bytes, cwnd_bytes);
        self.control = WindowState { codepoint: self.control.codepoint, ..fresh };
        self.recovery = None;
    }

    /// Finishes the rate sample of an acknowledgment, counts rounds, and returns the summary for [`Driver::on_ack`].
    #[inline(always)]
    pub fn summarize(&mut self, report: &AckReport) -> Ack {
        let rate = self.rate.finish(if self.short_samples { Duration::ZERO } else { report.min_rtt });
        let round_start = self.count_round(&report.delivered);
        Ack {
            now: report.now,
            acked_bytes: report.delivered.bytes,
            cumulative_bytes: report.cumulative_bytes,
            lost_bytes: report.lost_bytes,
            rtt: report.rtt,
            smoothed_rtt: report.smoothed_rtt,
            min_rtt: report.min_rtt,
            ack_delay: report.ack_delay,
            one_way_delay: None,
            prior_in_flight_bytes: report.prior_in_flight_bytes,
            in_flight_bytes: report.in_flight_bytes,
            delivered_bytes: self.rate.delivered_bytes(),
            round_count: u64::from(self.round_count),
            round_start,
            rate,
            app_limited: self.rate.is_app_limited(),
            cwnd_limited: report.cwnd_limited,
            in_recovery: report.in_recovery,
            ce_packets: report.ce_packets,
            ce_bytes: report.ce_packets * self.control.mss_bytes,
        }
    }

    /// Whether an acknowledgment without losses, marks or recovery may be passed to the control by
    /// [`Driver::on_plain_ack`]. This is the case if the control accepts plain acknowledgments, no delivery-rate
    /// samples are taken, and the window is not below the threshold.
    #[inline(always)]
    pub fn takes_plain_acks(&self) -> bool {
        self.plain_acks && self.control.cwnd_bytes >= self.control.ssthresh_bytes
    }

    /// Replaces [`Driver::summarize`] and [`Driver::on_ack`] for a plain acknowledgment. Must be called only if
    /// [`Driver::takes_plain_acks`] returns true.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, ack: &PlainAck, delivered: &DeliveredPackets) {
        self.rate.end_app_limited_phase();
        self.count_round(delivered);
        self.controller.on_plain_ack(&mut self.control, ack);
    }

    /// Counts rounds. Returns whether one begins.
    #[inline(always)]
    fn count_round(&mut self, delivered: &DeliveredPackets) -> bool {
        let begins = delivered.prior_delivered_bytes >= self.round_end_bytes;
        if begins {
            self.round_count += 1;
            self.round_end_bytes = self.rate.delivered_bytes();
        }
        begins
    }

    /// Passes a summary to the control.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(&mut self.control, ack);
    }
}
