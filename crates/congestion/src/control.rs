//! The congestion-control trait: the inputs that a control receives, and the outputs that it sets.
//!
//! For one acknowledgment batch, a transport calls these methods in this order. It calls [`Controller::on_packet_lost`]
//! for each packet newly marked lost. If a loss or a congestion mark begins a reduction, it calls
//! [`Controller::on_congestion`]. If the batch ends a recovery, it calls [`Controller::on_recovery_exit`] instead. Then
//! it calls [`Controller::on_ack`] once. In fast recovery, the transport sets the window itself by proportional rate
//! reduction (RFC 9937), unless [`ControlRequirements::own_recovery`] declares that the control sets it.

pub use fullpipe_units::EcnCodepoint;
use fullpipe_units::{Duration, Instant};

/// The limits within which the transport may send. The transport owns this struct, and the control sets its values.
#[derive(Clone, Debug)]
pub struct WindowState {
    /// Congestion window: the number of bytes that may be in flight.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `u64::MAX` until the first reduction.
    pub ssthresh_bytes: u64,
    /// Pacing rate in bits per second. If 0, the transport's own pacing setting applies.
    pub pacing_bps: u64,
    /// Maximum number of bytes in one burst when paced. If 0, the transport chooses.
    pub send_quantum_bytes: u64,
    /// Largest segment payload in bytes; set by the transport.
    pub mss_bytes: u64,
    /// ECN codepoint of sent packets, used once ECN has been negotiated.
    pub codepoint: EcnCodepoint,
}

impl WindowState {
    /// Creates the state of a new connection, with this window, no threshold and no pacing.
    pub fn new(mss_bytes: u64, cwnd_bytes: u64) -> Self {
        WindowState {
            cwnd_bytes,
            ssthresh_bytes: u64::MAX,
            pacing_bps: 0,
            send_quantum_bytes: 0,
            mss_bytes,
            codepoint: EcnCodepoint::NotEct,
        }
    }
}

/// The per-packet state of draft-ietf-ccwg-bbr section 4.1. The transport stores it when it sends the packet, and
/// returns it when the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketState {
    /// When the packet was sent.
    pub sent_at: Instant,
    /// Payload bytes.
    pub bytes: u64,
    /// Total bytes delivered on the connection before the packet was sent.
    pub delivered_bytes: u64,
    /// When the last of the `delivered_bytes` was delivered; the send time of the packet if nothing was in flight.
    pub delivered_at: Instant,
    /// Start of the send interval: the send time of the newest acknowledged packet. If nothing was in flight, it is the
    /// send time of this packet.
    pub first_sent_at: Instant,
    /// Bytes in flight after the packet was sent, including that packet.
    pub in_flight_bytes: u64,
    /// Total bytes declared lost on the connection before the packet was sent.
    pub lost_bytes: u64,
    /// Whether the application, not the window, limited sending when the packet was sent.
    pub app_limited: bool,
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr section 4.1; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryRate {
    /// Bytes delivered over the interval.
    pub delivered_bytes: u64,
    /// The longer of the send interval and the acknowledgment interval.
    pub interval: Duration,
    /// Total bytes delivered on the connection before the sampled packet was sent.
    pub prior_delivered_bytes: u64,
    /// Bytes declared lost since the sampled packet was sent.
    pub lost_bytes: u64,
    /// Bytes in flight when the sampled packet was sent, including that packet.
    pub in_flight_bytes: u64,
    /// Whether the sampled packet was sent while the application limited sending.
    pub app_limited: bool,
}

impl DeliveryRate {
    /// Returns the rate in bits per second; 0 if the interval is zero.
    pub fn bits_per_second(&self) -> u64 {
        if self.interval.is_zero() {
            return 0;
        }
        let bits = u128::from(self.delivered_bytes) * 8 * 1_000_000_000 / u128::from(self.interval.as_nanos());
        u64::try_from(bits).unwrap_or(u64::MAX)
    }
}

/// The summary of an acknowledgment batch: the packets that are acknowledged or declared lost at the same time.
#[derive(Clone, Debug)]
pub struct Ack {
    /// The current time.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub acked_bytes: u64,
    /// Bytes by which the cumulative acknowledgment advanced. A transport without cumulative acknowledgments (QUIC)
    /// repeats `acked_bytes`.
    pub cumulative_bytes: u64,
    /// Bytes newly declared lost in this batch.
    pub lost_bytes: u64,
    /// Round-trip sample of this batch; `None` if the batch has no valid sample.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298), zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time of the path so far; zero before the first sample.
    pub min_rtt: Duration,
    /// Acknowledgment delay that the peer reports (QUIC); zero if unknown.
    pub ack_delay: Duration,
    /// One-way delay of the acknowledged packet; `None` if unknown.
    pub one_way_delay: Option<Duration>,
    /// Bytes in flight before this batch.
    pub prior_in_flight_bytes: u64,
    /// Bytes in flight after this batch.
    pub in_flight_bytes: u64,
    /// Bytes delivered on the connection, including this batch.
    pub delivered_bytes: u64,
    /// Number of rounds so far. A round ends when a packet that was sent after its start is acknowledged.
    pub round_count: u64,
    /// Whether this batch began a new round.
    pub round_start: bool,
    /// Delivery-rate sample of this batch; `None` if the batch has no valid sample or sampling is disabled.
    pub rate: Option<DeliveryRate>,
    /// Whether an application-limited phase is active ([`RateSampler`](crate::rate::RateSampler::is_app_limited)).
    pub app_limited: bool,
    /// Whether the congestion window limited sending during the last flight (RFC 9002 section 7.8; Linux
    /// `is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the transport is in fast recovery after this batch.
    pub in_recovery: bool,
    /// Packets newly reported as CE-marked.
    pub ce_packets: u64,
    /// Bytes newly reported as CE-marked (AccECN); an estimate if the peer reports only packets.
    pub ce_bytes: u64,
}

/// An acknowledgment in congestion avoidance that reports no loss and no mark and arrives outside recovery.
#[derive(Clone, Copy, Debug)]
pub struct PlainAck {
    /// The current time.
    pub now: Instant,
    /// Same as [`Ack::acked_bytes`].
    pub acked_bytes: u64,
    /// Same as [`Ack::smoothed_rtt`].
    pub smoothed_rtt: Duration,
    /// Same as [`Ack::cwnd_limited`].
    pub cwnd_limited: bool,
}

/// A congestion event: a loss or a mark that begins a reduction of the window.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// The current time.
    pub now: Instant,
    /// Bytes in flight when the loss or mark was detected, including the lost packets.
    pub in_flight_bytes: u64,
    /// Bytes newly declared lost.
    pub lost_bytes: u64,
    /// Whether the cause is a congestion mark, not a loss.
    pub ecn: bool,
    /// Whether QUIC's persistent congestion (RFC 9002 section 7.6) was established.
    pub persistent: bool,
}

/// The end of a recovery period.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryExit {
    /// The current time.
    pub now: Instant,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Whether the reduction was spurious (RFC 4015, RFC 5682). If so, the control restores the state that it had
    /// before the reduction.
    pub undone: bool,
}

/// The expiry of a retransmission timer.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// The current time.
    pub now: Instant,
    /// Bytes in flight before the transport declared them lost.
    pub in_flight_bytes: u64,
    /// Whether the timer has expired before for the same data. If so, the slow-start threshold does not change (RFC
    /// 5681 equation 4).
    pub repeated: bool,
}

/// The signals that a control needs from its transport. A transport that cannot provide a required signal rejects the
/// control and states the reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct ControlRequirements {
    /// Whether the control needs the counts of CE marks.
    pub ecn_counts: bool,
    /// Whether the control needs delivery-rate samples.
    pub delivery_rate: bool,
    /// Whether the control needs pacing.
    pub pacing: bool,
    /// Whether the control needs one-way delays.
    pub one_way_delay: bool,
    /// Whether the control needs a call to [`Controller::on_sent`] for each packet.
    pub on_sent: bool,
    /// Whether the control sets the window during fast recovery, instead of the transport.
    pub own_recovery: bool,
    /// Whether the control sends packets as ECT(1) and responds in [`Controller::on_ack`] to the number of marks (RFC 9331). The transport sets
    /// [`WindowState::codepoint`] to ECT(1) before the first packet. It does not call [`Controller::on_congestion`] for marks
    /// that it counts. If the peer does not count marks, the transport sets the codepoint to ECT(0) and calls it.
    pub l4s: bool,
    /// Whether the control implements [`Controller::on_plain_ack`].
    pub plain_acks: bool,
}

/// A congestion control: a state machine that receives sends, acknowledgments and losses, and sets a [`WindowState`].
pub trait Controller: std::fmt::Debug + Send {
    /// The name of the control in scenarios.
    fn name(&self) -> &'static str;

    /// The signals that the control needs from its transport.
    fn requirements(&self) -> ControlRequirements {
        ControlRequirements::default()
    }

    /// Called when the connection is established. `rtt` is the round-trip sample of the handshake, if there is one.
    fn on_established(&mut self, _control: &mut WindowState, _now: Instant, _rtt: Option<Duration>) {}

    /// Called when a packet is sent, only if the control requires [`ControlRequirements::on_sent`].
    fn on_sent(&mut self, _control: &mut WindowState, _packet: &PacketState) {}

    /// Handles an acknowledgment batch with newly acknowledged bytes.
    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack);

    /// Fast path of [`Controller::on_ack`] for controls that need only the fields of a [`PlainAck`]. The transport may
    /// call this method if the control declares [`ControlRequirements::plain_acks`] and the window is at or above the
    /// slow-start threshold. It must not do so in recovery, or if there is a loss or a mark. The fast path saves the 50
    /// instructions that fill in an [`Ack`].
    fn on_plain_ack(&mut self, _control: &mut WindowState, _ack: &PlainAck) {}

    /// Called when a packet is declared lost.
    fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, _packet: &PacketState) {}

    /// Called when a reduction begins, at the start of fast recovery or because of a mark. The control must set
    /// `ssthresh_bytes`, and may set other values. In fast recovery, the transport derives the window from this
    /// threshold.
    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent);

    /// Called when recovery ends. The transport has set the window to `ssthresh_bytes`, unless
    /// [`ControlRequirements::own_recovery`] is declared.
    fn on_recovery_exit(&mut self, _control: &mut WindowState, _exit: &RecoveryExit) {}

    /// Called when the retransmission timer expires. The control sets `ssthresh_bytes`. The transport then sets the
    /// window to one segment, unless [`ControlRequirements::own_recovery`] is declared.
    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout);

    /// Called when sending restarts after an idle period (in TCP, one longer than the retransmission timeout).
    fn on_idle_restart(&mut self, _control: &mut WindowState, _now: Instant) {}

    /// Called when the path or the segment size changes; `control.mss_bytes` is the new size.
    fn on_path_change(&mut self, _control: &mut WindowState, _now: Instant) {}

    /// Called when the program that steps through a simulation has changed a parameter of the control, between two
    /// events. The transport then sends what the new values permit.
    fn on_external_change(&mut self, _control: &mut WindowState, _now: Instant) {}

    /// The largest window to which the control grows from `flight_bytes` by acknowledgments of `flight_bytes` (the function `limit` of
    /// draft-ietf-ccwg-ratelimited-increase): by default, twice that in slow start, and one segment more in congestion
    /// avoidance. Called after [`Controller::on_ack`] with the same acknowledgment, only with
    /// [`rate_limited`](crate::rate_limited).
    fn growth_limit_bytes(&self, control: &WindowState, _ack: &Ack, flight_bytes: u64, in_slow_start: bool) -> u64 {
        flight_bytes.saturating_add(if in_slow_start { flight_bytes } else { control.mss_bytes })
    }

    /// Called when the limit of [`Controller::growth_limit_bytes`] has lowered the window that [`Controller::on_ack`] set. A control
    /// that computes its window from an estimate lowers the estimate too.
    fn on_growth_limited(&mut self, _control: &WindowState) {}

    /// Appends named internal values ("state", "w_max_bytes", ...) to `out`, for time series.
    fn inspect(&self, _out: &mut Vec<(&'static str, f64)>) {}
}
