//! What a connection tells about itself: its state, counts, and a snapshot of the sender.

use fullpipe_units::Duration;
use fullpipe_wire::QuicPacketType;

/// States of a connection (RFC 9000 sections 7 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake is not complete.
    Opening,
    /// It is.
    Open,
    /// This end has closed and answers what still comes.
    Closing,
    /// The peer has closed.
    Draining,
    /// Over.
    Closed,
}

/// Counts since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// QUIC packets sent.
    pub sent_packets: u64,
    /// Of these, ack-eliciting ones.
    pub eliciting_packets: u64,
    /// QUIC packets found lost, probes of the MTU not counted.
    pub lost_packets: u64,
    /// Of these, packets that were acknowledged later.
    pub spuriously_lost_packets: u64,
    /// UDP datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// QUIC packets received and processed.
    pub received_packets: u64,
    /// QUIC packets that had come before.
    pub duplicate_packets: u64,
    /// QUIC packets dropped for want of keys.
    pub unreadable_packets: u64,
    /// Bytes of UDP payload received.
    pub received_bytes: u64,
    /// Bytes of streams sent for the first time.
    pub stream_bytes_sent: u64,
    /// Bytes of streams sent again.
    pub stream_bytes_resent: u64,
    /// Bytes of streams handed to the application.
    pub stream_bytes_read: u64,
    /// Probe time-outs.
    pub probe_timeouts: u64,
    /// Recoveries begun.
    pub recoveries: u64,
    /// Persistent congestion found.
    pub persistent_congestions: u64,
    /// Recoveries taken back, as their losses had all arrived.
    pub undone_recoveries: u64,
    /// DATAGRAM frames received.
    pub datagrams_received: u64,
    /// Of these, dropped because the application did not fetch them: 1024 wait.
    pub datagrams_dropped: u64,
    /// DATAGRAM frames lost.
    pub datagrams_lost: u64,
    /// Paths validated after the peer had moved.
    pub migrations: u64,
    /// Largest datagram in bytes, as found by now.
    pub mtu_bytes: u64,
    /// Sum and number of smoothed round-trip times, one for each packet acknowledged.
    pub rtt_sum: Duration,
    /// See [`Statistics::rtt_sum`].
    pub rtt_count: u64,
}

/// A packet that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its type, as far as packet number spaces tell: 0-RTT counts as 1-RTT.
    pub packet_type: QuicPacketType,
    /// Its number.
    pub number: u64,
    /// Its bytes.
    pub bytes: u16,
    /// By what it was found (RFC 9002 section 6.1): a packet so much newer was acknowledged, or it took too long.
    pub by_reordering: bool,
    /// Whether it probed the path's MTU.
    pub mtu_probe: bool,
}

/// What a probe of a flow can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspect {
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first reduction.
    pub ssthresh_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Duration,
    /// Newest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Probe time-out without back-off.
    pub pto: Duration,
    /// Probe time-outs since the last acknowledgement.
    pub pto_count: u32,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Newest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// Whether a recovery is going on.
    pub in_recovery: bool,
    /// Largest datagram in bytes.
    pub mtu_bytes: u64,
}
