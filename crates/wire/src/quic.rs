//! QUIC packets as plain values (RFC 9000 sections 12, 17 and 19): sizes as on the wire, payloads as lengths.
//!
//! **Model.** A datagram holds packets, a packet frames. Nothing is encrypted; every packet has the room that
//! encryption takes (16 bytes, RFC 9001 section 5.3). Nearly all datagrams of a transfer hold one packet with a short
//! header and one frame in it, STREAM or ACK. Such a datagram is its [`QuicHeader`], which lies in the packet's own cache
//! line; all others have a [`QuicDatagram`] beside it.
//!
//! Packet numbers are truncated as on the wire, to 1 to 4 bytes (RFC 9000 section 17.1). Connection ids are the numbers of
//! the order in which they were given out; their bytes do not matter here, their length does.

use bytes::Bytes;

/// Bytes that the encryption of a packet adds (RFC 9001 section 5.3: AEAD tags of 16 bytes).
pub const TAG_BYTES: u32 = 16;

/// Bytes of a variable-length integer (RFC 9000 section 16).
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

/// What a datagram holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum QuicForm {
    /// Packets in a [`QuicDatagram`] beside the header.
    #[default]
    Packets,
    /// One 1-RTT packet with a STREAM frame of mere length.
    Stream,
    /// One 1-RTT packet with an ACK frame; ranges after its first in [`crate::tcp::SegmentOptions`].
    Ack,
}

/// What of a datagram fits into the packet that carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicHeader {
    /// STREAM: offset; ACK: largest acknowledged, see [`QuicHeader::place`]. Low half and high half, so that the header
    /// fills no more than it must.
    pub place: [u32; 2],
    /// Truncated packet number.
    pub number: u32,
    /// STREAM: stream id (below 2^32 in the model); ACK: ACK Delay field.
    pub stream: u32,
    /// ACK: First ACK Range field.
    pub first_range: u32,
    /// STREAM: payload bytes.
    pub length: u16,
    /// What the datagram holds.
    pub form: QuicForm,
    /// Bytes of the packet number, 1 to 4.
    pub number_bytes: u8,
    /// ACK: further ranges, at most [`crate::tcp::MAX_SACK_BLOCKS`].
    pub ranges: u8,
    /// STREAM: whether the stream ends with it.
    pub fin: bool,
    /// Number of the destination's connection id, modulo 256.
    pub connection_id: u8,
    /// Which of its sender's addresses it came from: a receiver sees another one where the peer has moved, or where a
    /// translator has given it another port.
    pub path: u8,
}

impl QuicHeader {
    /// STREAM: offset of the first byte; ACK: largest packet number acknowledged.
    #[inline(always)]
    pub fn place(&self) -> u64 {
        u64::from(self.place[0]) | u64::from(self.place[1]) << 32
    }

    /// Sets it.
    #[inline(always)]
    pub fn set_place(&mut self, place: u64) {
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
    /// Its type.
    pub packet_type: QuicPacketType,
    /// Truncated packet number.
    pub number: u32,
    /// Bytes of the packet number, 1 to 4; 0 where there is none (Retry, Version Negotiation).
    pub number_bytes: u8,
    /// Number of the destination's connection id.
    pub connection_id: u64,
    /// Token: of an Initial packet what is sent back, of a Retry packet what is given out. `None`: none.
    pub token: Option<u64>,
    /// Bytes of the whole packet, tag included.
    pub bytes: u32,
    /// Its frames, in order.
    pub frames: Vec<QuicFrame>,
}

/// Packets that travel in one UDP datagram (RFC 9000 section 12.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicDatagram {
    /// They, in order.
    pub packets: Vec<QuicPacket>,
}

/// Ranges of packet numbers, first and last included, the largest first (RFC 9000 section 19.3.1).
pub type AckRange = (u64, u64);

/// Counts of ECN codepoints (RFC 9000 section 19.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets received with ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With CE.
    pub ce: u64,
}

/// Transport parameters (RFC 9000 section 18.2; defaults there). Their room is part of the length of CRYPTO frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// max_idle_timeout in milliseconds; 0: none.
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
    /// max_datagram_frame_size in bytes (RFC 9221 section 3); 0: none are taken.
    pub max_datagram_frame_size: u64,
    /// min_ack_delay in microseconds (draft-ietf-quic-ack-frequency section 3), if ACK_FREQUENCY is understood.
    pub min_ack_delay_us: Option<u64>,
    /// Whether a server takes 0-RTT data: no parameter of its own, but TLS's extension early_data, which stands beside
    /// them (RFC 8446 section 4.2.10, RFC 9001 section 4.6.1).
    pub early_data: bool,
}

/// A frame (RFC 9000 section 19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicFrame {
    /// PADDING frames, so many bytes of them.
    Padding(u32),
    /// PING.
    Ping,
    /// ACK.
    Ack {
        /// ACK Delay field, not scaled.
        delay: u64,
        /// Ranges, the largest first; at least one.
        ranges: Vec<AckRange>,
        /// Counts of codepoints, if it has them.
        ecn: Option<EcnCounts>,
    },
    /// RESET_STREAM.
    ResetStream {
        /// Stream id.
        stream: u64,
        /// Application Protocol Error Code.
        error: u64,
        /// Final Size in bytes.
        final_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Stream id.
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
        /// Whether the sender's messages of this encryption level end with it, as the lengths in them would tell.
        ends: bool,
        /// Transport parameters, where these messages hold them, with the frame that ends them.
        parameters: Option<Box<TransportParameters>>,
    },
    /// NEW_TOKEN with a token of so many bytes.
    NewToken(u64),
    /// STREAM.
    Stream {
        /// Stream id.
        stream: u64,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
        /// Whether the stream ends with it.
        fin: bool,
        /// Whether the frame says how long it is; else it reaches to the end of its packet.
        explicit_length: bool,
        /// Its content, where that matters.
        content: Option<Bytes>,
    },
    /// MAX_DATA.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Stream id.
        stream: u64,
        /// Bytes allowed on it.
        maximum: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Whether it is about bidirectional streams.
        bidirectional: bool,
        /// How many streams may be opened in all.
        maximum: u64,
    },
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Stream id.
        stream: u64,
        /// The limit.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Whether it is about bidirectional streams.
        bidirectional: bool,
        /// The limit.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Its sequence number.
        sequence: u64,
        /// Retire Prior To field.
        retire_prior_to: u64,
        /// Bytes of the id.
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
        /// Whether the application, not QUIC, closes.
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
        /// Whether the frame says how long it is.
        explicit_length: bool,
    },
    /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-11 section 4).
    AckFrequency {
        /// Sequence number.
        sequence: u64,
        /// Ack-eliciting packets that may come without an acknowledgement.
        threshold: u64,
        /// Requested max_ack_delay in microseconds.
        max_ack_delay_us: u64,
        /// Reordering threshold.
        reordering: u64,
    },
    /// IMMEDIATE_ACK (the same, section 5).
    ImmediateAck,
}

impl QuicFrame {
    /// Bytes on the wire.
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
            // No reason phrase; that of QUIC names the frame's type.
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

    /// Whether its receiver has to acknowledge it (RFC 9000 section 13.2).
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(self, QuicFrame::Ack { .. } | QuicFrame::Padding(_) | QuicFrame::ConnectionClose { .. })
    }

    /// Whether it may be in a packet that probes a path (RFC 9000 section 9.1).
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

/// Bytes of a STREAM frame before its length and its data.
#[inline(always)]
pub fn stream_header_bytes(stream: u64, offset: u64) -> u32 {
    1 + varint_bytes(stream) + if offset > 0 { varint_bytes(offset) } else { 0 }
}

/// Bytes of an ACK frame without counts of codepoints.
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
    fn an_acknowledgement_has_the_length_of_its_fields() {
        // Type, largest 100 (2 bytes), delay 8 (1), count 2 (1), first range 9 (1): 91 to 100. Then gap 88 - ... to 80:
        // 91 - 85 - 2 = 4 and length 5; 80 - 10 - 2 = 68 (2 bytes) and length 0.
        let ranges = [(91, 100), (80, 85), (10, 10)];
        assert_eq!(ack_bytes(8, &ranges), 1 + 2 + 1 + 1 + 1 + (1 + 1) + (2 + 1));
        let frame =
            QuicFrame::Ack { delay: 8, ranges: ranges.to_vec(), ecn: Some(EcnCounts { ect0: 70, ect1: 0, ce: 1 }) };
        assert_eq!(frame.bytes(), 11 + 2 + 1 + 1);
    }

    #[test]
    fn a_stream_frame_has_the_length_of_its_fields() {
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
        // Without an offset the frame has no field for it.
        assert_eq!(frame(false, 0).bytes(), 1 + 1 + 1000);
    }
}
