//! Status of a connection: state, counts, and a snapshot of the sender.

use crate::recovery::RecoveryPhase;
use crate::sender::Sender;
use fullpipe_units::Duration;

/// States of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received, and our SYN was sent.
    SynReceived,
    /// Open in both directions.
    Established,
    /// A FIN was sent.
    FinWait1,
    /// The peer acknowledged our FIN.
    FinWait2,
    /// The peer sent a FIN.
    CloseWait,
    /// Both ends sent a FIN; the peer has not acknowledged our FIN.
    Closing,
    /// The peer sent a FIN first, and then our FIN was sent.
    LastAck,
    /// Waiting until old segments have left the network.
    TimeWait,
    /// Closed.
    Closed,
}

/// Counts since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent with data or a FIN, including retransmissions.
    pub data_segments_sent: u64,
    /// Retransmitted segments with data or a FIN, for any reason.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// Reductions undone because the losses were spurious.
    pub undone_reductions: u64,
    /// Retransmitted SYN segments.
    pub syn_retransmissions: u64,
    /// Payload bytes of the stream that arrived in order.
    pub received_bytes: u64,
    /// Payload bytes that the application has read.
    pub read_bytes: u64,
    /// Payload bytes that the peer acknowledged in order.
    pub acknowledged_bytes: u64,
    /// Received segments whose payload had arrived before.
    pub duplicate_segments_received: u64,
    /// Payload bytes of a SYN that its receiver accepted (RFC 7413), at either end.
    pub syn_payload_bytes: u64,
}

/// A segment that was marked lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Sequence number of the first byte, as in the segment.
    pub sequence: u32,
    /// Offset of the first byte in the stream.
    pub offset: u64,
    /// Number of sequence numbers: payload bytes, plus one for a FIN.
    pub length: u16,
}

/// Snapshot of the sender, as a flow's probe samples it.
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
    /// Retransmission timeout, including backoff.
    pub rto: Duration,
    /// Number of times that the retransmission timeout was doubled since the last round-trip sample.
    pub backoff: u32,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Newest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// Bytes beyond the acknowledged data that the peer's window permits.
    pub peer_window_bytes: u64,
    /// Bytes written and not yet acknowledged.
    pub send_buffer_bytes: u64,
    /// Whether the sender is in fast recovery.
    pub in_recovery: bool,
    /// Payload of a full segment in bytes.
    pub mss_bytes: u64,
    /// Payload bytes acknowledged, cumulatively or selectively.
    pub delivered_bytes: u64,
    /// Payload bytes declared lost.
    pub lost_bytes: u64,
}

impl SenderSnapshot {
    pub(crate) fn of(sender: &Sender) -> SenderSnapshot {
        SenderSnapshot {
            cwnd_bytes: sender.driver.control.cwnd_bytes,
            ssthresh_bytes: sender.driver.control.ssthresh_bytes,
            in_flight_bytes: sender.board.in_flight_bytes,
            smoothed_rtt: sender.rtt.smoothed(),
            min_rtt: sender.rtt.min().unwrap_or_default(),
            latest_rtt: sender.rtt.latest(),
            rto: sender.rtt.rto(),
            backoff: u32::from(sender.rtt.backoff()),
            pacing_bps: sender.pacer.as_ref().map_or(0, |pacer| pacer.rate_bps()),
            delivery_rate_bps: sender.driver.delivery_rate_bps(),
            peer_window_bytes: sender.window_end.saturating_sub(sender.una),
            send_buffer_bytes: sender.buffered_bytes(),
            in_recovery: sender.phase == RecoveryPhase::FastRecovery,
            mss_bytes: sender.driver.control.mss_bytes,
            delivered_bytes: sender.driver.delivered_bytes(),
            lost_bytes: sender.driver.lost_bytes(),
        }
    }
}
