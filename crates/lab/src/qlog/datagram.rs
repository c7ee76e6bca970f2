//! Writes `packet_sent` and `packet_received` events of QUIC, either from the packets of the model or from the bytes in
//! the packet log of the QUIC stack.

use super::frames::{self, PacketEffects};
use super::words::{TransportSide, word_of};
use crate::stack::journal::PlaintextPacket;
use fullpipe_record::qlog::{ArrayWriter, ObjectWriter, QlogWriter, to_hex};
use fullpipe_units::{EcnCodepoint, Instant};
use fullpipe_wire::quic::stream_header_bytes;
use fullpipe_wire::{
    QuicDatagram, QuicForm, QuicFrame, QuicHeader, QuicPacket, QuicPacketType, SegmentOptions, TransportParameters,
};

/// The default of `ack_delay_exponent` (RFC 9000 section 18.2), which noq uses.
pub(super) const ACK_DELAY_EXPONENT: u8 = 3;

/// A datagram that this endpoint sent or received.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramView<'a> {
    pub(super) at: Instant,
    pub(super) group: &'a str,
    pub(super) side: TransportSide,
    pub(super) id: u64,
    pub(super) codepoint: EcnCodepoint,
    /// UDP payload in bytes.
    pub(super) bytes: u64,
}

impl DatagramView<'_> {
    fn packet(
        &self,
        writer: &mut QlogWriter,
        header: impl FnOnce(&mut ObjectWriter<'_>),
        [length, payload_length]: [u64; 2],
        frames: impl FnOnce(&mut ArrayWriter<'_>),
    ) {
        writer.write_event(self.at, self.group, self.side.event(), |data| {
            data.object("header", header);
            data.object("raw", |raw| {
                raw.unsigned("length", length);
                raw.unsigned("payload_length", payload_length);
            });
            data.unsigned("datagram_id", self.id & u64::from(u32::MAX));
            data.text("ecn", word_of(self.codepoint));
            data.array("frames", frames);
        });
    }
}

pub(super) fn type_word(packet_type: QuicPacketType) -> &'static str {
    match packet_type {
        QuicPacketType::VersionNegotiation => "version_negotiation",
        QuicPacketType::Initial => "initial",
        QuicPacketType::ZeroRtt => "0RTT",
        QuicPacketType::Handshake => "handshake",
        QuicPacketType::Retry => "retry",
        QuicPacketType::OneRtt => "1RTT",
    }
}

/// The largest packet number in each packet number space, which is needed to decode truncated packet numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LargestPacketNumbers([Option<u64>; 3]);

impl LargestPacketNumbers {
    /// Decodes a truncated packet number (RFC 9000 appendix A.3).
    fn decode(&mut self, packet_type: QuicPacketType, truncated: u32, bytes: u8) -> Option<u64> {
        let space = match packet_type {
            QuicPacketType::Initial => 0,
            QuicPacketType::Handshake => 1,
            QuicPacketType::ZeroRtt | QuicPacketType::OneRtt => 2,
            QuicPacketType::Retry | QuicPacketType::VersionNegotiation => return None,
        };
        let window = 1_u64 << (8 * u32::from(bytes.clamp(1, 4)));
        let expected = self.0[space].map_or(0, |largest| largest + 1);
        let candidate = expected & !(window - 1) | u64::from(truncated) & (window - 1);
        let number = if candidate + window / 2 <= expected {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        self.0[space] = self.0[space].max(Some(number));
        Some(number)
    }
}

/// The content of a model datagram that affects the state of its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DatagramEffects {
    pub(super) handshake: bool,
    pub(super) closes: bool,
    pub(super) parameters: Option<TransportParameters>,
}

/// Writes the packets of a model datagram. `exponent` is the sender's `ack_delay_exponent`.
pub(super) fn of_model(
    writer: &mut QlogWriter,
    carried: &DatagramView<'_>,
    header: &QuicHeader,
    beside: Option<&SegmentOptions>,
    datagram: Option<&QuicDatagram>,
    numbers: &mut LargestPacketNumbers,
    exponent: u8,
) -> DatagramEffects {
    let mut effects = DatagramEffects::default();
    if header.form == QuicForm::Packets {
        for packet in datagram.iter().flat_map(|datagram| &datagram.packets) {
            model_packet(writer, carried, packet, numbers, exponent, &mut effects);
        }
        return effects;
    }
    let number = numbers.decode(QuicPacketType::OneRtt, header.number, header.number_bytes);
    let fill_header = |out: &mut ObjectWriter<'_>| {
        out.text("packet_type", "1RTT");
        number.iter().for_each(|number| out.unsigned("packet_number", *number));
    };
    if header.form == QuicForm::Stream {
        // The frame extends to the end of its packet, so it has no length field.
        let (stream, offset, data) =
            (u64::from(header.stream), header.offset_or_largest_acked(), u64::from(header.length));
        let length = u64::from(stream_header_bytes(stream, offset)) + data;
        carried.packet(writer, fill_header, [carried.bytes, length], |out| {
            frames::stream(out, stream, offset, header.fin, length, data);
        });
    } else {
        let ranges = fullpipe_quic::acknowledged_ranges(header, beside).unwrap_or_default();
        let length = u64::from(fullpipe_wire::quic::ack_bytes(u64::from(header.stream), &ranges));
        carried.packet(writer, fill_header, [carried.bytes, length], |out| {
            frames::ack(out, u64::from(header.stream), exponent, &ranges, None);
        });
    }
    effects
}

fn model_packet(
    writer: &mut QlogWriter,
    carried: &DatagramView<'_>,
    packet: &QuicPacket,
    numbers: &mut LargestPacketNumbers,
    exponent: u8,
    effects: &mut DatagramEffects,
) {
    effects.handshake |= packet.packet_type == QuicPacketType::Handshake;
    for frame in &packet.frames {
        match frame {
            QuicFrame::Crypto { parameters: Some(parameters), .. } => effects.parameters = Some(**parameters),
            QuicFrame::ConnectionClose { .. } => effects.closes = true,
            _ => {}
        }
    }
    let number = match packet.number_bytes {
        0 => None,
        bytes => numbers.decode(packet.packet_type, packet.number, bytes),
    };
    let payload: u64 = packet.frames.iter().map(|frame| u64::from(frame.bytes())).sum();
    carried.packet(
        writer,
        |out| {
            out.text("packet_type", type_word(packet.packet_type));
            number.iter().for_each(|number| out.unsigned("packet_number", *number));
        },
        [u64::from(packet.bytes), payload],
        |out| packet.frames.iter().for_each(|frame| frames::of_model(out, frame, exponent)),
    );
}

/// Returns the type of a packet of the QUIC stack, according to its unprotected header (RFC 9000 section 17).
pub(super) fn type_of(header: &[u8]) -> QuicPacketType {
    match header.first() {
        Some(first) if first & 0x80 == 0 => QuicPacketType::OneRtt,
        Some(first) => match first >> 4 & 3 {
            0 => QuicPacketType::Initial,
            1 => QuicPacketType::ZeroRtt,
            2 => QuicPacketType::Handshake,
            _ => QuicPacketType::Retry,
        },
        None => QuicPacketType::OneRtt,
    }
}

/// Returns the destination and source connection IDs of a long header.
fn identifiers(header: &[u8]) -> Option<[&[u8]; 2]> {
    header.first().filter(|first| **first & 0x80 != 0)?;
    let (length, rest) = header.get(5..)?.split_first()?;
    let (destination, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first()?;
    Some([destination, rest.get(..usize::from(*length))?])
}

/// Writes a packet of the QUIC stack.
pub(super) fn of_stack(writer: &mut QlogWriter, carried: &DatagramView<'_>, packet: &PlaintextPacket) -> PacketEffects {
    let mut meaning = PacketEffects::default();
    carried.packet(
        writer,
        |out| {
            out.text("packet_type", type_word(type_of(&packet.header)));
            out.unsigned("packet_number", packet.number);
            if let Some([destination, source]) = identifiers(&packet.header) {
                out.text("scid", &to_hex(source));
                out.text("dcid", &to_hex(destination));
            }
        },
        [packet.bytes as u64, packet.payload.len() as u64],
        |out| meaning = frames::of_bytes(out, &packet.payload, ACK_DELAY_EXPONENT),
    );
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_packet_numbers_are_decoded_as_in_rfc_9000() {
        // RFC 9000 appendix A.3: after 0xa82f30ea, 0x9b32 in two bytes is 0xa82f9b32.
        let mut numbers = LargestPacketNumbers([None, None, Some(0xa82f_30ea)]);
        assert_eq!(numbers.decode(QuicPacketType::OneRtt, 0x9b32, 2), Some(0xa82f_9b32));
        // A reordered packet, and a packet number in the next window of 256.
        let mut numbers = LargestPacketNumbers([None, None, Some(0x100)]);
        assert_eq!(numbers.decode(QuicPacketType::OneRtt, 0xfe, 1), Some(0xfe));
        assert_eq!(numbers.decode(QuicPacketType::ZeroRtt, 0x01, 1), Some(0x101));
        assert_eq!(numbers.decode(QuicPacketType::Initial, 0, 1), Some(0));
        assert_eq!(numbers.decode(QuicPacketType::Retry, 0, 1), None);
    }

    #[test]
    fn long_headers_have_types_and_connection_ids() {
        // RFC 9001 appendix A.3: a server's Initial packet, without protection.
        let header = [0xc1, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0, 0x40, 0x75, 0, 1];
        assert_eq!(type_of(&header), QuicPacketType::Initial);
        assert_eq!(identifiers(&header), Some([&[][..], &header[7..15]]));
        assert_eq!((type_of(&[0xe0]), type_of(&[0x40])), (QuicPacketType::Handshake, QuicPacketType::OneRtt));
        assert_eq!(identifiers(&header[..9]), None);
    }
}
