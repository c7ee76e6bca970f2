//! The congestion-control trait: everything a control is told, and what it answers.
//!
//! A transport calls, in this order for one acknowledgement batch: [`Controller::on_packet_lost`] for each packet
//! newly marked lost, [`Controller::on_congestion`] if that (or a congestion mark) begins a reduction, or
//! [`Controller::on_recovery_exit`] if the batch ends one, then [`Controller::on_ack`] once. While the transport is in
//! fast recovery it sets the window itself by proportional rate reduction (RFC 9937) unless
//! [`Signals::own_recovery`] says that the control does.

pub use fullpipe_units::Codepoint;
use fullpipe_units::{Duration, Instant};

/// What the transport may do; owned by the transport, set by the control.
#[derive(Clone, Debug)]
pub struct Control {
    /// Congestion window: bytes that may be in flight.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `u64::MAX` until the first reduction.
    pub ssthresh_bytes: u64,
    /// Pacing rate in bits per second; 0 leaves the choice to the transport's own pacing setting.
    pub pacing_bps: u64,
    /// Bytes that may leave in one burst when paced; 0 leaves the choice to the transport.
    pub send_quantum_bytes: u64,
    /// Largest segment payload in bytes; set by the transport.
    pub mss_bytes: u64,
    /// The codepoint to send with, once ECN has been negotiated.
    pub codepoint: Codepoint,
}

impl Control {
    /// At the start of a connection: this window, no threshold, no pacing.
    pub fn new(mss_bytes: u64, cwnd_bytes: u64) -> Self {
        Control {
            cwnd_bytes,
            ssthresh_bytes: u64::MAX,
            pacing_bps: 0,
            send_quantum_bytes: 0,
            mss_bytes,
            codepoint: Codepoint::NotEct,
        }
    }
}

/// What is remembered of a packet when it is sent, handed back when it is acknowledged or lost
/// (draft-ietf-ccwg-bbr section 4.1, "per-packet state").
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketState {
    /// When it was sent.
    pub sent_at: Instant,
    /// Payload bytes.
    pub bytes: u64,
    /// Bytes delivered on the connection when it was sent.
    pub delivered_bytes: u64,
    /// When the last of those was delivered.
    pub delivered_at: Instant,
    /// When the first packet of the flight it belongs to was sent.
    pub first_sent_at: Instant,
    /// Bytes in flight after it was sent, itself included.
    pub in_flight_bytes: u64,
    /// Bytes declared lost on the connection when it was sent.
    pub lost_bytes: u64,
    /// Whether the application, not the window, limited sending then.
    pub app_limited: bool,
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr section 4.1; Linux `tcp_rate.c`).
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryRate {
    /// Bytes delivered over the interval.
    pub delivered_bytes: u64,
    /// The longer of the send interval and the acknowledgement interval.
    pub interval: Duration,
    /// Bytes delivered on the connection when the sampled packet was sent.
    pub prior_delivered_bytes: u64,
    /// Bytes lost between the sampled packet's departure and now.
    pub lost_bytes: u64,
    /// Bytes in flight when the sampled packet was sent, itself included.
    pub in_flight_bytes: u64,
    /// Whether the sampled packet was sent while the application limited sending.
    pub app_limited: bool,
}

impl DeliveryRate {
    /// The rate in bits per second, or 0 if there is no sample.
    pub fn bits_per_second(&self) -> u64 {
        if self.interval.is_zero() {
            return 0;
        }
        let bits = u128::from(self.delivered_bytes) * 8 * 1_000_000_000 / u128::from(self.interval.as_nanos());
        u64::try_from(bits).unwrap_or(u64::MAX)
    }
}

/// One acknowledgement batch.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Now.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub acked_bytes: u64,
    /// Bytes by which the cumulative acknowledgement advanced; a transport without one (QUIC) repeats `acked_bytes`.
    pub cumulative_bytes: u64,
    /// Bytes newly declared lost in this batch.
    pub lost_bytes: u64,
    /// Round-trip sample of this batch, if any.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298), zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time seen on the path.
    pub min_rtt: Duration,
    /// Delay that the peer says it added (QUIC), zero where unknown.
    pub ack_delay: Duration,
    /// One-way delay of the acknowledged packet where known.
    pub one_way_delay: Option<Duration>,
    /// Bytes in flight before this batch.
    pub prior_in_flight_bytes: u64,
    /// Bytes in flight after this batch.
    pub in_flight_bytes: u64,
    /// Bytes delivered on the connection, this batch included.
    pub delivered_bytes: u64,
    /// Round trips counted so far by delivery (a round ends when data sent in it is acknowledged).
    pub round_count: u64,
    /// Whether this batch began a new round.
    pub round_start: bool,
    /// Delivery-rate sample of this batch, if any.
    pub rate: Option<DeliveryRate>,
    /// Whether the application limited sending.
    pub app_limited: bool,
    /// Whether the congestion window limited sending during the last flight (RFC 9002 section 7.8; Linux
    /// `is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether the transport is in fast recovery (after this batch).
    pub in_recovery: bool,
    /// Congestion-experienced marks newly reported: packets.
    pub ce_packets: u64,
    /// Congestion-experienced marks newly reported: bytes (AccECN), estimated where only packets are known.
    pub ce_bytes: u64,
}

/// What an acknowledgement in congestion avoidance says that reports no loss and no mark and is not in a recovery.
#[derive(Clone, Copy, Debug)]
pub struct PlainAck {
    /// Now.
    pub now: Instant,
    /// As [`Ack::acked_bytes`].
    pub acked_bytes: u64,
    /// As [`Ack::smoothed_rtt`].
    pub smoothed_rtt: Duration,
    /// As [`Ack::cwnd_limited`].
    pub cwnd_limited: bool,
}

/// The begin of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Now.
    pub now: Instant,
    /// Bytes in flight when the loss or mark was found, before lost packets were taken out.
    pub in_flight_bytes: u64,
    /// Bytes newly declared lost.
    pub lost_bytes: u64,
    /// Whether a congestion mark, not a loss, is the cause.
    pub ecn: bool,
    /// Whether QUIC's persistent congestion (RFC 9002 section 7.6) was established.
    pub persistent: bool,
}

/// The end of a recovery.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryExit {
    /// Now.
    pub now: Instant,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Whether the reduction proved spurious (RFC 4015, 5682): the control restores what it had.
    pub undone: bool,
}

/// A retransmission time-out or probe.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Now.
    pub now: Instant,
    /// Bytes in flight before they were given up.
    pub in_flight_bytes: u64,
    /// Whether an earlier time-out of the same data came before (the threshold is then left alone, RFC 5681 eq. 4).
    pub repeated: bool,
}

/// What a control needs of its transport; a pair that lacks something is refused with the reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    /// Needs counts of congestion marks.
    pub ecn_counts: bool,
    /// Needs delivery-rate samples.
    pub delivery_rate: bool,
    /// Needs to be paced.
    pub pacing: bool,
    /// Needs one-way delays.
    pub one_way_delay: bool,
    /// Wants [`Controller::on_sent`] for each packet.
    pub on_sent: bool,
    /// Sets the window itself during fast recovery.
    pub own_recovery: bool,
    /// Takes [`Controller::on_plain_ack`].
    pub plain_acks: bool,
}

/// A congestion control: a state machine told of sends, acknowledgements and losses, which sets a [`Control`].
pub trait Controller: std::fmt::Debug + Send {
    /// The name by which scenarios choose it.
    fn name(&self) -> &'static str;

    /// What it needs of its transport.
    fn signals(&self) -> Signals {
        Signals::default()
    }

    /// The connection is established; `rtt` is the handshake's sample where there was one.
    fn on_established(&mut self, _control: &mut Control, _now: Instant, _rtt: Option<Duration>) {}

    /// A packet was sent (only if [`Signals::on_sent`]).
    fn on_sent(&mut self, _control: &mut Control, _packet: &PacketState) {}

    /// An acknowledgement batch with newly acknowledged bytes.
    fn on_ack(&mut self, control: &mut Control, ack: &Ack);

    /// The same as [`Controller::on_ack`], where a [`PlainAck`] tells all that the control needs: only if [`Signals::plain_acks`],
    /// at or above the threshold, outside of recovery, without losses and marks. A transport need not use it. To
    /// fill in an [`Ack`] takes 50 instructions.
    fn on_plain_ack(&mut self, _control: &mut Control, _ack: &PlainAck) {}

    /// A packet was marked lost.
    fn on_packet_lost(&mut self, _control: &mut Control, _now: Instant, _packet: &PacketState) {}

    /// A reduction begins: fast recovery is entered, or a mark calls for one. Sets at least `ssthresh_bytes`; during
    /// fast recovery the transport derives the window from it.
    fn on_congestion(&mut self, control: &mut Control, congestion: &Congestion);

    /// Recovery ends. The transport has set the window to `ssthresh_bytes` (unless [`Signals::own_recovery`]).
    fn on_recovery_exit(&mut self, _control: &mut Control, _exit: &RecoveryExit) {}

    /// The retransmission timer expired. Sets `ssthresh_bytes`; the transport then sets the window to one segment
    /// (unless [`Signals::own_recovery`]).
    fn on_timeout(&mut self, control: &mut Control, timeout: &Timeout);

    /// Sending restarts after an idle period longer than the retransmission time-out.
    fn on_idle_restart(&mut self, _control: &mut Control, _now: Instant) {}

    /// The path or the largest segment changed; `control.mss_bytes` is the new one.
    fn on_path_change(&mut self, _control: &mut Control, _now: Instant) {}

    /// Named internal values for series ("state", "w_max_bytes", ...), appended to `out`.
    fn inspect(&self, _out: &mut Vec<(&'static str, f64)>) {}
}
