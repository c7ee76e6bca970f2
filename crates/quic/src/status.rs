//! The state of a connection, its counters, and a snapshot of the sender.

use fullpipe_units::Duration;
use fullpipe_wire::QuicPacketType;

/// States of a connection (RFC 9000 sections 7 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake is not complete.
    Opening,
    /// The handshake is complete.
    Open,
    /// This end has closed the connection and responds to further packets.
    Closing,
    /// The peer has closed the connection.
    Draining,
    /// The connection has ended.
    Closed,
}

/// Counters since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// QUIC packets sent.
    pub sent_packets: u64,
    /// Ack-eliciting packets among them.
    pub eliciting_packets: u64,
    /// QUIC packets declared lost, without MTU probes.
    pub lost_packets: u64,
    /// Packets among them that were acknowledged later.
    pub spuriously_lost_packets: u64,
    /// UDP datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// QUIC packets received and processed.
    pub received_packets: u64,
    /// QUIC packets received more than once.
    pub duplicate_packets: u64,
    /// QUIC packets dropped because keys were missing.
    pub unreadable_packets: u64,
    /// Bytes of UDP payload received.
    pub received_bytes: u64,
    /// Bytes of streams sent for the first time.
    pub stream_bytes_sent: u64,
    /// Bytes of streams retransmitted.
    pub stream_bytes_resent: u64,
    /// Bytes of streams passed to the application.
    pub stream_bytes_read: u64,
    /// Expiries of the probe timer.
    pub probe_timeouts: u64,
    /// Number of recoveries.
    pub recoveries: u64,
    /// Times that persistent congestion was established.
    pub persistent_congestions: u64,
    /// Recoveries undone, because all packets declared lost have arrived.
    pub undone_recoveries: u64,
    /// DATAGRAM frames received.
    pub datagrams_received: u64,
    /// DATAGRAM frames among them that were dropped because the application did not fetch them; up to 1024 are queued.
    pub datagrams_dropped: u64,
    /// DATAGRAM frames lost.
    pub datagrams_lost: u64,
    /// Paths validated after a migration of the peer.
    pub migrations: u64,
    /// Largest datagram in bytes found so far.
    pub mtu_bytes: u64,
    /// The sum of smoothed round-trip times, one for each packet acknowledged.
    pub rtt_sum: Duration,
    /// The number of round-trip times in [`Statistics::rtt_sum`].
    pub rtt_count: u64,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// The packet type, according to the packet number space: 0-RTT counts as 1-RTT.
    pub packet_type: QuicPacketType,
    /// The packet number.
    pub number: u64,
    /// The size of the packet in bytes.
    pub bytes: u16,
    /// Whether the packet threshold detected the loss, instead of the time threshold (RFC 9002 section 6.1).
    pub by_reordering: bool,
    /// Whether the packet was a probe of the path's MTU.
    pub mtu_probe: bool,
}

/// The values that a probe of a flow can sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderSnapshot {
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
    /// Probe time-out without backoff.
    pub pto: Duration,
    /// Probe time-outs since the last acknowledgement.
    pub pto_count: u32,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Newest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// Whether a recovery is active.
    pub in_recovery: bool,
    /// Largest datagram in bytes.
    pub mtu_bytes: u64,
}
