//! QUIC packets as plain values (RFC 9000 sections 12, 17 and 19): sizes as on the wire, payloads as lengths.
//!
//! **Model.** A datagram contains packets, and a packet contains frames. Nothing is encrypted, but the size of every packet
//! includes the AEAD tag (16 bytes, RFC 9001 section 5.3). Nearly all datagrams of a transfer contain one packet with a short
//! header and one STREAM or ACK frame. Such a datagram fits into a [`QuicHeader`], in the cache line of the network's packet.
//! All others have a [`QuicDatagram`] in addition.
//!
//! Packet numbers are truncated as on the wire, to 1 to 4 bytes (RFC 9000 section 17.1). Connection IDs are represented by
//! their sequence numbers; only their length affects sizes.

use bytes::Bytes;

/// Bytes that the AEAD adds to a packet (RFC 9001 section 5.3: tags of 16 bytes).
pub const TAG_BYTES: u32 = 16;

/// Returns the size of a variable-length integer in bytes (RFC 9000 section 16).
#[inline(always)]
pub const fn varint_bytes(value: u64) -> u32 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// The largest variable-length integer (RFC 9000 section 16).
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// The content of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum QuicForm {
    /// Packets in a [`QuicDatagram`].
    #[default]
    Packets,
    /// One 1-RTT packet with a STREAM frame that has a length but no bytes.
    Stream,
    /// One 1-RTT packet with an ACK frame. Its ranges after the first are stored in [`crate::tcp::SegmentOptions`].
    Ack,
}

/// The part of a datagram that is stored in the network's packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicHeader {
    /// STREAM: offset; ACK: largest acknowledged packet number (see [`QuicHeader::offset_or_largest_acked`]). The value
    /// is split into two halves, the low one first, so that the header needs no alignment to eight bytes.
    pub place: [u32; 2],
    /// Truncated packet number.
    pub number: u32,
    /// STREAM: stream ID (below 2^32 in the model); ACK: ACK Delay field.
    pub stream: u32,
    /// ACK: First ACK Range field.
    pub first_range: u32,
    /// STREAM: payload bytes.
    pub length: u16,
    /// The content of the datagram.
    pub form: QuicForm,
    /// Size of the packet number in bytes, 1 to 4.
    pub number_bytes: u8,
    /// ACK: number of further ranges, at most [`crate::tcp::MAX_SACK_BLOCKS`].
    pub ranges: u8,
    /// STREAM: whether this frame ends the stream.
    pub fin: bool,
    /// Sequence number of the destination connection ID, modulo 256.
    pub connection_id: u8,
    /// Number of the sender's address. It changes when the sender migrates, or when a NAT rebinds the flow to another
    /// port.
    pub path: u8,
}

impl QuicHeader {
    /// Returns the offset of the first byte (STREAM) or the largest acknowledged packet number (ACK).
    #[inline(always)]
    pub fn offset_or_largest_acked(&self) -> u64 {
        u64::from(self.place[0]) | u64::from(self.place[1]) << 32
    }

    /// Sets the value of [`QuicHeader::offset_or_largest_acked`].
    #[inline(always)]
    pub fn set_offset_or_largest_acked(&mut self, place: u64) {
        self.place = [place as u32, (place >> 32) as u32];
    }
}

/// Type of a packet (RFC 9000 section 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicPacketType {
    /// Version Negotiation.
    VersionNegotiation,
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// Retry.
    Retry,
    /// 1-RTT, with a short header.
    OneRtt,
}

/// A QUIC packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicPacket {
    /// Packet type.
    pub packet_type: QuicPacketType,
    /// Truncated packet number.
    pub number: u32,
    /// Size of the packet number in bytes, 1 to 4; 0 for Retry and Version Negotiation, which have none.
    pub number_bytes: u8,
    /// Sequence number of the destination connection ID.
    pub connection_id: u64,
    /// Token of an Initial or Retry packet; `None` if there is none.
    pub token: Option<u64>,
    /// Size of the whole packet in bytes, including the tag.
    pub bytes: u32,
    /// The frames in order.
    pub frames: Vec<QuicFrame>,
}

/// Packets coalesced in one UDP datagram (RFC 9000 section 12.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicDatagram {
    /// The packets in order.
    pub packets: Vec<QuicPacket>,
}

/// The first and the last packet number of an ACK range. Lists of ranges begin with the largest packet numbers (RFC
/// 9000 section 19.3.1).
pub type AckRange = (u64, u64);

/// Counts of ECN codepoints (RFC 9000 section 19.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets received with ECT(0).
    pub ect0: u64,
    /// Packets received with ECT(1).
    pub ect1: u64,
    /// Packets received with CE.
    pub ce: u64,
}

/// Transport parameters (RFC 9000 section 18.2). The lengths of CRYPTO frames include the size of these parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// max_idle_timeout in milliseconds; 0 disables the idle timeout.
    pub max_idle_timeout_ms: u64,
    /// max_udp_payload_size in bytes.
    pub max_udp_payload_size: u64,
    /// initial_max_data in bytes.
    pub initial_max_data: u64,
    /// initial_max_stream_data of all kinds of streams, in bytes.
    pub initial_max_stream_data: u64,
    /// initial_max_streams_bidi.
    pub initial_max_streams_bidi: u64,
    /// initial_max_streams_uni.
    pub initial_max_streams_uni: u64,
    /// ack_delay_exponent.
    pub ack_delay_exponent: u8,
    /// max_ack_delay in milliseconds.
    pub max_ack_delay_ms: u64,
    /// active_connection_id_limit.
    pub active_connection_id_limit: u64,
    /// max_datagram_frame_size in bytes (RFC 9221 section 3); 0 means that DATAGRAM frames are not supported.
    pub max_datagram_frame_size: u64,
    /// min_ack_delay in microseconds (draft-ietf-quic-ack-frequency section 3); `None` if ACK_FREQUENCY is not
    /// supported.
    pub min_ack_delay_us: Option<u64>,
    /// Whether a server accepts 0-RTT data. This is not a transport parameter but the TLS extension `early_data` (RFC
    /// 8446 section 4.2.10, RFC 9001 section 4.6.1).
    pub early_data: bool,
}

/// A frame (RFC 9000 section 19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicFrame {
    /// This number of PADDING frames, of one byte each.
    Padding(u32),
    /// PING.
    Ping,
    /// ACK.
    Ack {
        /// ACK Delay field, not scaled.
        delay: u64,
        /// Ranges, in descending order; at least one.
        ranges: Vec<AckRange>,
        /// ECN counts; `None` if the frame has none.
        ecn: Option<EcnCounts>,
    },
    /// RESET_STREAM.
    ResetStream {
        /// Stream ID.
        stream: u64,
        /// Application Protocol Error Code.
        error: u64,
        /// Final Size in bytes.
        final_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Stream ID.
        stream: u64,
        /// Application Protocol Error Code.
        error: u64,
    },
    /// CRYPTO.
    Crypto {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// Whether this frame contains the end of the sender's messages of this encryption level. (Real TLS messages
        /// have length fields instead.)
        ends: bool,
        /// Transport parameters, in the frame with the end of the messages that contain them; otherwise `None`.
        parameters: Option<Box<TransportParameters>>,
    },
    /// NEW_TOKEN with a token of this many bytes.
    NewToken(u64),
    /// STREAM.
    Stream {
        /// Stream ID.
        stream: u64,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// Whether this frame ends the stream.
        fin: bool,
        /// Whether the frame has a Length field; otherwise it extends to the end of its packet.
        explicit_length: bool,
        /// The content; `None` if the flow has none.
        content: Option<Bytes>,
    },
    /// MAX_DATA with this limit in bytes.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Stream ID.
        stream: u64,
        /// Maximum Stream Data in bytes.
        maximum: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Whether the limit applies to bidirectional streams.
        bidirectional: bool,
        /// Maximum Streams: the cumulative number of streams that may be opened.
        maximum: u64,
    },
    /// DATA_BLOCKED at this limit in bytes.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Stream ID.
        stream: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Whether the limit applies to bidirectional streams.
        bidirectional: bool,
        /// The limit: a cumulative number of streams.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Sequence number.
        sequence: u64,
        /// Retire Prior To field.
        retire_prior_to: u64,
        /// Length of the connection ID in bytes.
        length: u8,
    },
    /// RETIRE_CONNECTION_ID with this sequence number.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE with its data.
    PathChallenge(u64),
    /// PATH_RESPONSE with the data of the challenge.
    PathResponse(u64),
    /// CONNECTION_CLOSE.
    ConnectionClose {
        /// Whether the application (frame type 0x1d) or QUIC (0x1c) closed the connection.
        application: bool,
        /// Error code.
        error: u64,
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// DATAGRAM (RFC 9221).
    Datagram {
        /// Length in bytes.
        length: u64,
        /// Whether the frame has a Length field.
        explicit_length: bool,
    },
    /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-11 section 4).
    AckFrequency {
        /// Sequence number.
        sequence: u64,
        /// Ack-Eliciting Threshold: number of ack-eliciting packets that may arrive without an immediate
        /// acknowledgment.
        threshold: u64,
        /// Requested max_ack_delay in microseconds.
        max_ack_delay_us: u64,
        /// Reordering threshold.
        reordering: u64,
    },
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-11 section 5).
    ImmediateAck,
}

impl QuicFrame {
    /// Returns the size on the wire in bytes.
    pub fn bytes(&self) -> u32 {
        let v = varint_bytes;
        let length_of = |explicit: bool, length: u64| if explicit { v(length) } else { 0 };
        match self {
            QuicFrame::Padding(bytes) => *bytes,
            QuicFrame::Ping | QuicFrame::HandshakeDone => 1,
            QuicFrame::Ack { delay, ranges, ecn } => {
                let counts = ecn.map_or(0, |ecn| v(ecn.ect0) + v(ecn.ect1) + v(ecn.ce));
                ack_bytes(*delay, ranges) + counts
            }
            QuicFrame::ResetStream { stream, error, final_size } => 1 + v(*stream) + v(*error) + v(*final_size),
            QuicFrame::StopSending { stream, error } => 1 + v(*stream) + v(*error),
            QuicFrame::Crypto { offset, length, .. } => 1 + v(*offset) + v(*length) + *length as u32,
            QuicFrame::NewToken(length) => 1 + v(*length) + *length as u32,
            QuicFrame::Stream { stream, offset, length, explicit_length, .. } => {
                stream_header_bytes(*stream, *offset) + length_of(*explicit_length, *length) + *length as u32
            }
            QuicFrame::MaxData(value) | QuicFrame::DataBlocked(value) | QuicFrame::RetireConnectionId(value) => {
                1 + v(*value)
            }
            QuicFrame::MaxStreamData { stream, maximum: value }
            | QuicFrame::StreamDataBlocked { stream, limit: value } => 1 + v(*stream) + v(*value),
            QuicFrame::MaxStreams { maximum: value, .. } | QuicFrame::StreamsBlocked { limit: value, .. } => {
                1 + v(*value)
            }
            // The stateless reset token has 16 bytes.
            QuicFrame::NewConnectionId { sequence, retire_prior_to, length } => {
                1 + v(*sequence) + v(*retire_prior_to) + 1 + u32::from(*length) + 16
            }
            QuicFrame::PathChallenge(_) | QuicFrame::PathResponse(_) => 1 + 8,
            // The reason phrase is empty. Only type 0x1c has a Frame Type field.
            QuicFrame::ConnectionClose { application, error } => 1 + v(*error) + u32::from(!application) + 1,
            QuicFrame::Datagram { length, explicit_length } => {
                1 + length_of(*explicit_length, *length) + *length as u32
            }
            QuicFrame::AckFrequency { sequence, threshold, max_ack_delay_us, reordering } => {
                2 + v(*sequence) + v(*threshold) + v(*max_ack_delay_us) + v(*reordering)
            }
            QuicFrame::ImmediateAck => 1,
        }
    }

    /// Returns whether the frame is ack-eliciting (RFC 9000 section 13.2).
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(self, QuicFrame::Ack { .. } | QuicFrame::Padding(_) | QuicFrame::ConnectionClose { .. })
    }

    /// Returns whether the frame is a probing frame (RFC 9000 section 9.1).
    pub fn is_probing(&self) -> bool {
        matches!(
            self,
            QuicFrame::PathChallenge(_)
                | QuicFrame::PathResponse(_)
                | QuicFrame::NewConnectionId { .. }
                | QuicFrame::Padding(_)
        )
    }
}

/// Returns the size of a STREAM frame in bytes, without its Length field and its data.
#[inline(always)]
pub fn stream_header_bytes(stream: u64, offset: u64) -> u32 {
    1 + varint_bytes(stream) + if offset > 0 { varint_bytes(offset) } else { 0 }
}

/// Returns the size of an ACK frame in bytes, without ECN counts.
pub fn ack_bytes(delay: u64, ranges: &[AckRange]) -> u32 {
    let Some(&(first, largest)) = ranges.first() else { return 0 };
    let further: u32 = ranges
        .windows(2)
        .map(|pair| {
            let (gap, length) = (pair[0].0.saturating_sub(pair[1].1 + 2), pair[1].1 - pair[1].0);
            varint_bytes(gap) + varint_bytes(length)
        })
        .sum();
    let count = ranges.len() as u64 - 1;
    1 + varint_bytes(largest) + varint_bytes(delay) + varint_bytes(count) + varint_bytes(largest - first) + further
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_integers_have_the_lengths_of_the_rfc() {
        // RFC 9000 section 16, table 4, and the examples of appendix A.1.
        let lengths = [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)];
        for (value, bytes) in lengths {
            assert_eq!(varint_bytes(value), bytes, "{value}");
        }
        let examples = [(151_288_809_941_952_652, 8), (494_878_333, 4), (15_293, 2), (37, 1)];
        for (value, bytes) in examples {
            assert_eq!(varint_bytes(value), bytes, "{value}");
        }
    }

    #[test]
    fn ack_frame_size_is_the_sum_of_its_fields() {
        // Type, largest 100 (2 bytes), delay 8 (1), count 2 (1), first range 9 (1): 91 to 100. Then gap 91 - 85 - 2 = 4 (1)
        // and length 5 (1), and gap 80 - 10 - 2 = 68 (2) and length 0 (1).
        let ranges = [(91, 100), (80, 85), (10, 10)];
        assert_eq!(ack_bytes(8, &ranges), 1 + 2 + 1 + 1 + 1 + (1 + 1) + (2 + 1));
        let frame =
            QuicFrame::Ack { delay: 8, ranges: ranges.to_vec(), ecn: Some(EcnCounts { ect0: 70, ect1: 0, ce: 1 }) };
        assert_eq!(frame.bytes(), 11 + 2 + 1 + 1);
    }

    #[test]
    fn stream_frame_size_is_the_sum_of_its_fields() {
        // Type, id 4 (1), offset 20 000 (4), length 1000 (2).
        let frame = |explicit_length, offset| QuicFrame::Stream {
            stream: 4,
            offset,
            length: 1000,
            fin: false,
            explicit_length,
            content: None,
        };
        assert_eq!(frame(true, 20_000).bytes(), 1 + 1 + 4 + 2 + 1000);
        assert_eq!(frame(false, 20_000).bytes(), 1 + 1 + 4 + 1000);
        // A frame with offset zero has no Offset field.
        assert_eq!(frame(false, 0).bytes(), 1 + 1 + 1000);
    }
}
