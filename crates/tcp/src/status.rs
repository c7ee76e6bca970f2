//! What a connection tells about itself: its state, counts, and a snapshot of the sender.

use crate::recovery::Phase;
use crate::sender::Sender;
use fullpipe_units::Duration;

/// States of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received a SYN and sent its own.
    SynReceived,
    /// Open both ways.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// The peer acknowledged the FIN.
    FinWait2,
    /// The peer has sent a FIN.
    CloseWait,
    /// Both have sent a FIN, ours is not acknowledged.
    Closing,
    /// Has sent a FIN after the peer's.
    LastAck,
    /// Waits for old segments to leave the network.
    TimeWait,
    /// Over.
    Closed,
}

/// Counts since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments with data or a FIN sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments with data or a FIN sent again, for whatever reason.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs of data.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// Reductions taken back because the losses were none.
    pub undone_reductions: u64,
    /// SYN segments sent again.
    pub syn_retransmissions: u64,
    /// Payload bytes of the stream that arrived in order.
    pub received_bytes: u64,
    /// Payload bytes handed to the reader.
    pub read_bytes: u64,
    /// Payload bytes that the peer acknowledged in order.
    pub acknowledged_bytes: u64,
    /// Segments whose payload had all arrived before.
    pub duplicate_segments_received: u64,
    /// Payload bytes that a SYN carried and its receiver took (RFC 7413), at either end.
    pub syn_payload_bytes: u64,
}

/// A segment that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Sequence number of its first byte, as on the wire.
    pub sequence: u32,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Sequence numbers that it takes: payload bytes, and one for a FIN.
    pub length: u16,
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
    /// Retransmission time-out, back-off included.
    pub rto: Duration,
    /// How often the retransmission time-out was doubled since the last round-trip sample.
    pub backoff: u32,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Newest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// How much more than acknowledged the peer takes, in bytes.
    pub peer_window_bytes: u64,
    /// Bytes written and not yet acknowledged.
    pub send_buffer_bytes: u64,
    /// Whether fast recovery is going on.
    pub in_recovery: bool,
    /// Payload of a full segment in bytes.
    pub mss_bytes: u64,
}

impl Inspect {
    pub(crate) fn of(sender: &Sender) -> Inspect {
        Inspect {
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
            in_recovery: sender.phase == Phase::FastRecovery,
            mss_bytes: sender.driver.control.mss_bytes,
        }
    }
}
