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
    /// This endpoint has closed the connection and responds to further packets.
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
    /// Ack-eliciting packets sent.
    pub eliciting_packets: u64,
    /// QUIC packets declared lost, except MTU probes.
    pub lost_packets: u64,
    /// Packets declared lost that were acknowledged later.
    pub spuriously_lost_packets: u64,
    /// UDP datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// QUIC packets received and processed.
    pub received_packets: u64,
    /// QUIC packets received more than once.
    pub duplicate_packets: u64,
    /// QUIC packets dropped because their keys were not available.
    pub unreadable_packets: u64,
    /// Bytes of UDP payload received.
    pub received_bytes: u64,
    /// Bytes of stream data sent for the first time.
    pub stream_bytes_sent: u64,
    /// Bytes of stream data retransmitted.
    pub stream_bytes_resent: u64,
    /// Bytes of stream data passed to the application.
    pub stream_bytes_read: u64,
    /// Number of expirations of the probe timer.
    pub probe_timeouts: u64,
    /// Number of recovery periods.
    pub recoveries: u64,
    /// Number of times that persistent congestion was established.
    pub persistent_congestions: u64,
    /// Number of recovery periods that were undone because all packets declared lost had arrived.
    pub undone_recoveries: u64,
    /// DATAGRAM frames received.
    pub datagrams_received: u64,
    /// Received DATAGRAM frames that were dropped because more than 1024 frames were waiting for the application.
    pub datagrams_dropped: u64,
    /// Sent DATAGRAM frames that were declared lost.
    pub datagrams_lost: u64,
    /// Number of paths validated after a migration of the peer.
    pub migrations: u64,
    /// Current maximum UDP payload of a datagram in bytes.
    pub mtu_bytes: u64,
    /// The sum of smoothed round-trip times, one for each acknowledged packet.
    pub rtt_sum: Duration,
    /// The number of round-trip times in [`Statistics::rtt_sum`].
    pub rtt_count: u64,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// The packet type, according to the packet number space. A 0-RTT packet counts as a 1-RTT packet.
    pub packet_type: QuicPacketType,
    /// The packet number.
    pub number: u64,
    /// The size of the packet in bytes.
    pub bytes: u16,
    /// Whether the packet threshold detected the loss. Otherwise the time threshold detected it (RFC 9002 section 6.1).
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
    /// Latest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Probe timeout without backoff.
    pub pto: Duration,
    /// Probe timeouts since the last acknowledgment.
    pub pto_count: u32,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Latest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// Whether the sender is in a recovery period.
    pub in_recovery: bool,
    /// Current maximum UDP payload of a datagram in bytes.
    pub mtu_bytes: u64,
    /// Bytes of packets acknowledged, with their headers.
    pub delivered_bytes: u64,
    /// Bytes of packets declared lost, with their headers.
    pub lost_bytes: u64,
}
