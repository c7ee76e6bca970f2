//! Writes QUIC frames in qlog's format. Frames of the model are written from their fields, and frames of the QUIC stack
//! from their bytes.

use super::words::TransportSide;
use fullpipe_record::qlog::{ArrayWriter, Milliseconds, ObjectWriter, to_hex};
use fullpipe_wire::quic::{AckRange, EcnCounts, QuicFrame, TransportParameters};

/// Frame types (draft-ietf-quic-ack-frequency-11) that the qlog events draft does not define.
const IMMEDIATE_ACK: u64 = 0x1f;
const ACK_FREQUENCY: u64 = 0xaf;

/// Writes a frame of the model. `ack_delay_exponent` is that of its sender.
pub(super) fn of_model(frames: &mut ArrayWriter<'_>, frame: &QuicFrame, ack_delay_exponent: u8) {
    let length = u64::from(frame.bytes());
    let kind = |out: &mut ObjectWriter<'_>, name: &str| out.text("frame_type", name);
    match frame {
        QuicFrame::Ack { delay, ranges, ecn } => ack(frames, *delay, ack_delay_exponent, ranges, *ecn),
        QuicFrame::Stream { stream: id, offset, length: data, fin, .. } => {
            stream(frames, *id, *offset, *fin, length, *data);
        }
        QuicFrame::Crypto { offset, length: data, .. } => crypto(frames, *offset, length, *data),
        QuicFrame::NewConnectionId { sequence, retire_prior_to, length: bytes } => frames.object(|out| {
            kind(out, "new_connection_id");
            out.unsigned("sequence_number", *sequence);
            out.unsigned("retire_prior_to", *retire_prior_to);
            out.unsigned("connection_id_length", u64::from(*bytes));
            // The model's connection IDs are their sequence numbers.
            out.text("connection_id", &to_hex(&sequence.to_be_bytes()));
            raw(out, length, None);
        }),
        QuicFrame::Datagram { length: data, .. } => simple(frames, "datagram", length, Some(*data)),
        QuicFrame::NewToken(_) => frames.object(|out| {
            kind(out, "new_token");
            out.object("token", |_| {});
            raw(out, length, None);
        }),
        QuicFrame::Padding(bytes) => simple(frames, "padding", length, Some(u64::from(*bytes))),
        QuicFrame::Ping => simple(frames, "ping", length, None),
        QuicFrame::HandshakeDone => simple(frames, "handshake_done", length, None),
        QuicFrame::ResetStream { stream: id, error, final_size } => {
            reset_stream(frames, *id, *error, *final_size, length)
        }
        QuicFrame::StopSending { stream: id, error } => stop_sending(frames, *id, *error, length),
        QuicFrame::MaxData(maximum) => numbers(frames, "max_data", length, &[("maximum", *maximum)]),
        QuicFrame::MaxStreamData { stream: id, maximum } => {
            numbers(frames, "max_stream_data", length, &[("stream_id", *id), ("maximum", *maximum)]);
        }
        QuicFrame::MaxStreams { bidirectional, maximum } => {
            of_streams(frames, "max_streams", *bidirectional, ("maximum", *maximum), length);
        }
        QuicFrame::DataBlocked(limit) => numbers(frames, "data_blocked", length, &[("limit", *limit)]),
        QuicFrame::StreamDataBlocked { stream: id, limit } => {
            numbers(frames, "stream_data_blocked", length, &[("stream_id", *id), ("limit", *limit)]);
        }
        QuicFrame::StreamsBlocked { bidirectional, limit } => {
            of_streams(frames, "streams_blocked", *bidirectional, ("limit", *limit), length);
        }
        QuicFrame::RetireConnectionId(sequence) => {
            numbers(frames, "retire_connection_id", length, &[("sequence_number", *sequence)]);
        }
        QuicFrame::PathChallenge(data) => path(frames, "path_challenge", &data.to_be_bytes(), length),
        QuicFrame::PathResponse(data) => path(frames, "path_response", &data.to_be_bytes(), length),
        QuicFrame::ConnectionClose { application, error } => close(frames, *application, *error, ""),
        QuicFrame::AckFrequency { .. } => unknown(frames, ACK_FREQUENCY, length),
        QuicFrame::ImmediateAck => unknown(frames, IMMEDIATE_ACK, length),
    }
}

pub(super) fn ack(frames: &mut ArrayWriter<'_>, delay: u64, exponent: u8, ranges: &[AckRange], ecn: Option<EcnCounts>) {
    frames.object(|out| {
        out.text("frame_type", "ack");
        let microseconds = delay.saturating_mul(1 << exponent.min(20));
        out.milliseconds("ack_delay", Milliseconds(microseconds.saturating_mul(1000)));
        out.array("acked_ranges", |acked| {
            for &(first, last) in ranges {
                acked.array(|range| {
                    // qlog permits a single number if both ends of a range are equal, but not every reader accepts it.
                    range.unsigned(first);
                    range.unsigned(last);
                });
            }
        });
        if let Some(EcnCounts { ect0, ect1, ce }) = ecn {
            out.unsigned("ect1", ect1);
            out.unsigned("ect0", ect0);
            out.unsigned("ce", ce);
        }
    });
}

pub(super) fn stream(frames: &mut ArrayWriter<'_>, id: u64, offset: u64, fin: bool, length: u64, data: u64) {
    frames.object(|out| {
        out.text("frame_type", "stream");
        out.unsigned("stream_id", id);
        out.unsigned("offset", offset);
        if fin {
            out.boolean("fin", true);
        }
        raw(out, length, Some(data));
    });
}

fn crypto(frames: &mut ArrayWriter<'_>, offset: u64, length: u64, data: u64) {
    frames.object(|out| {
        out.text("frame_type", "crypto");
        out.unsigned("offset", offset);
        raw(out, length, Some(data));
    });
}

fn raw(out: &mut ObjectWriter<'_>, length: u64, payload_length: Option<u64>) {
    out.object("raw", |raw| {
        raw.unsigned("length", length);
        payload_length.iter().for_each(|bytes| raw.unsigned("payload_length", *bytes));
    });
}

fn simple(frames: &mut ArrayWriter<'_>, name: &str, length: u64, payload_length: Option<u64>) {
    frames.object(|out| {
        out.text("frame_type", name);
        raw(out, length, payload_length);
    });
}

fn numbers(frames: &mut ArrayWriter<'_>, name: &str, length: u64, fields: &[(&str, u64)]) {
    frames.object(|out| {
        out.text("frame_type", name);
        fields.iter().for_each(|(key, value)| out.unsigned(key, *value));
        raw(out, length, None);
    });
}

fn of_streams(frames: &mut ArrayWriter<'_>, name: &str, bidirectional: bool, (key, value): (&str, u64), length: u64) {
    frames.object(|out| {
        out.text("frame_type", name);
        out.text("stream_type", if bidirectional { "bidirectional" } else { "unidirectional" });
        out.unsigned(key, value);
        raw(out, length, None);
    });
}

fn reset_stream(frames: &mut ArrayWriter<'_>, id: u64, error: u64, final_size: u64, length: u64) {
    frames.object(|out| {
        out.text("frame_type", "reset_stream");
        out.unsigned("stream_id", id);
        out.text("error", "unknown");
        out.unsigned("error_code", error);
        out.unsigned("final_size", final_size);
        raw(out, length, None);
    });
}

fn stop_sending(frames: &mut ArrayWriter<'_>, id: u64, error: u64, length: u64) {
    frames.object(|out| {
        out.text("frame_type", "stop_sending");
        out.unsigned("stream_id", id);
        out.text("error", "unknown");
        out.unsigned("error_code", error);
        raw(out, length, None);
    });
}

fn path(frames: &mut ArrayWriter<'_>, name: &str, data: &[u8], length: u64) {
    frames.object(|out| {
        out.text("frame_type", name);
        out.text("data", &to_hex(data));
        raw(out, length, None);
    });
}

fn close(frames: &mut ArrayWriter<'_>, application: bool, error: u64, reason: &str) {
    frames.object(|out| {
        out.text("frame_type", "connection_close");
        out.text("error_space", if application { "application" } else { "transport" });
        out.unsigned("error_code", error);
        if !reason.is_empty() {
            out.text("reason", reason);
        }
    });
}

fn unknown(frames: &mut ArrayWriter<'_>, frame_type: u64, length: u64) {
    frames.object(|out| {
        out.text("frame_type", "unknown");
        out.unsigned("frame_type_bytes", frame_type);
        raw(out, length, None);
    });
}

/// The content of a packet that affects the state of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketEffects {
    pub(super) closes: bool,
    pub(super) confirms: bool,
    /// Whether the packet can be a path MTU probe: it has only PING, PADDING and IMMEDIATE_ACK frames.
    pub(super) probes: bool,
}

/// Reads bytes and variable-length integers (RFC 9000 section 16) of a payload.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let first = *self.bytes.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let rest = bytes.iter().skip(1);
        Some(rest.fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }
}

/// Writes the frames of an unprotected packet, as far as they can be parsed.
pub(super) fn of_bytes(frames: &mut ArrayWriter<'_>, payload: &[u8], ack_delay_exponent: u8) -> PacketEffects {
    let mut meaning = PacketEffects { probes: true, ..PacketEffects::default() };
    let mut reader = Reader { bytes: payload };
    while !reader.bytes.is_empty() {
        if frame(frames, &mut reader, ack_delay_exponent, &mut meaning).is_none() {
            // The length of an invalid frame is unknown, so it extends to the end of the packet.
            unknown(frames, 0, reader.bytes.len() as u64);
            break;
        }
    }
    meaning
}

/// Frames that consist of integers: type, name and keys.
const NUMBERS: [(u64, &str, &[&str]); 5] = [
    (0x10, "max_data", &["maximum"]),
    (0x11, "max_stream_data", &["stream_id", "maximum"]),
    (0x14, "data_blocked", &["limit"]),
    (0x15, "stream_data_blocked", &["stream_id", "limit"]),
    (0x19, "retire_connection_id", &["sequence_number"]),
];

fn frame(
    frames: &mut ArrayWriter<'_>,
    reader: &mut Reader<'_>,
    exponent: u8,
    meaning: &mut PacketEffects,
) -> Option<()> {
    let begin = *reader;
    let padding = reader.bytes.iter().take_while(|byte| **byte == 0).count() as u64;
    if padding > 0 {
        reader.take(padding)?;
        simple(frames, "padding", padding, Some(padding));
        return Some(());
    }
    let kind = reader.varint()?;
    // noq adds an IMMEDIATE_ACK frame to its probes.
    meaning.probes &= matches!(kind, 0x01 | IMMEDIATE_ACK);
    let length = |reader: &Reader<'_>| (begin.bytes.len() - reader.bytes.len()) as u64;
    if let Some((_, name, keys)) = NUMBERS.iter().find(|(number, ..)| *number == kind) {
        let fields = keys.iter().map(|key| Some((*key, reader.varint()?))).collect::<Option<Vec<_>>>()?;
        numbers(frames, name, length(reader), &fields);
        return Some(());
    }
    match kind {
        0x01 => simple(frames, "ping", 1, None),
        0x02 | 0x03 => {
            let (largest, delay, count, first) =
                (reader.varint()?, reader.varint()?, reader.varint()?, reader.varint()?);
            let mut ranges = vec![(largest.checked_sub(first)?, largest)];
            for _ in 0..count {
                let (gap, more) = (reader.varint()?, reader.varint()?);
                let last = ranges.last()?.0.checked_sub(gap.checked_add(2)?)?;
                ranges.push((last.checked_sub(more)?, last));
            }
            let ecn = match kind {
                0x03 => Some(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? }),
                _ => None,
            };
            ack(frames, delay, exponent, &ranges, ecn);
        }
        0x04 => {
            let (id, error, final_size) = (reader.varint()?, reader.varint()?, reader.varint()?);
            reset_stream(frames, id, error, final_size, length(reader));
        }
        0x05 => {
            let (id, error) = (reader.varint()?, reader.varint()?);
            stop_sending(frames, id, error, length(reader));
        }
        0x06 => {
            let (offset, data) = (reader.varint()?, reader.varint()?);
            reader.take(data)?;
            crypto(frames, offset, length(reader), data);
        }
        0x07 => {
            let token = reader.varint()?;
            reader.take(token)?;
            frames.object(|out| {
                out.text("frame_type", "new_token");
                out.object("token", |_| {});
                raw(out, length(reader), None);
            });
        }
        0x08..=0x0f => {
            let id = reader.varint()?;
            let offset = if kind & 4 != 0 { reader.varint()? } else { 0 };
            let data = if kind & 2 != 0 { reader.varint()? } else { reader.bytes.len() as u64 };
            reader.take(data)?;
            stream(frames, id, offset, kind & 1 != 0, length(reader), data);
        }
        0x12 | 0x13 => {
            let maximum = reader.varint()?;
            of_streams(frames, "max_streams", kind == 0x12, ("maximum", maximum), length(reader));
        }
        0x16 | 0x17 => {
            let limit = reader.varint()?;
            of_streams(frames, "streams_blocked", kind == 0x16, ("limit", limit), length(reader));
        }
        0x18 => {
            let (sequence, retire_prior_to) = (reader.varint()?, reader.varint()?);
            let bytes = u64::from(*reader.take(1)?.first()?);
            let identifier = reader.take(bytes)?;
            reader.take(16)?;
            frames.object(|out| {
                out.text("frame_type", "new_connection_id");
                out.unsigned("sequence_number", sequence);
                out.unsigned("retire_prior_to", retire_prior_to);
                out.unsigned("connection_id_length", bytes);
                out.text("connection_id", &to_hex(identifier));
                raw(out, length(reader), None);
            });
        }
        0x1a => path(frames, "path_challenge", reader.take(8)?, 9),
        0x1b => path(frames, "path_response", reader.take(8)?, 9),
        0x1c | 0x1d => {
            let error = reader.varint()?;
            if kind == 0x1c {
                reader.varint()?;
            }
            let bytes = reader.varint()?;
            close(frames, kind == 0x1d, error, &String::from_utf8_lossy(reader.take(bytes)?));
            meaning.closes = true;
        }
        0x1e => {
            simple(frames, "handshake_done", 1, None);
            meaning.confirms = true;
        }
        IMMEDIATE_ACK => unknown(frames, IMMEDIATE_ACK, 1),
        ACK_FREQUENCY => {
            for _ in 0..4 {
                reader.varint()?;
            }
            unknown(frames, ACK_FREQUENCY, length(reader));
        }
        0x30 | 0x31 => {
            let data = if kind == 0x31 { reader.varint()? } else { reader.bytes.len() as u64 };
            reader.take(data)?;
            simple(frames, "datagram", length(reader), Some(data));
        }
        _ => {
            // The length of an unknown frame is unknown, so the frames after it cannot be parsed.
            let rest = begin.bytes.len() as u64;
            reader.bytes = &[];
            unknown(frames, kind, rest);
        }
    }
    Some(())
}

/// Writes transport parameters (RFC 9000 section 18.2).
pub(super) fn parameters(data: &mut ObjectWriter<'_>, side: TransportSide, parameters: &TransportParameters) {
    data.text("initiator", side.word());
    data.unsigned("max_idle_timeout", parameters.max_idle_timeout_ms);
    data.unsigned("max_udp_payload_size", parameters.max_udp_payload_size);
    data.unsigned("ack_delay_exponent", u64::from(parameters.ack_delay_exponent));
    data.unsigned("max_ack_delay", parameters.max_ack_delay_ms);
    data.unsigned("active_connection_id_limit", parameters.active_connection_id_limit);
    data.unsigned("initial_max_data", parameters.initial_max_data);
    for kind in ["bidi_local", "bidi_remote", "uni"] {
        data.unsigned(&format!("initial_max_stream_data_{kind}"), parameters.initial_max_stream_data);
    }
    data.unsigned("initial_max_streams_bidi", parameters.initial_max_streams_bidi);
    data.unsigned("initial_max_streams_uni", parameters.initial_max_streams_uni);
    data.unsigned("max_datagram_frame_size", parameters.max_datagram_frame_size);
    data.array("unknown_parameters", |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_record::qlog::QlogWriter;
    use fullpipe_units::Instant;
    use serde_json::{Value, json};

    fn read(payload: &[u8]) -> (Value, PacketEffects) {
        let (mut writer, mut meaning) = (QlogWriter::default(), PacketEffects::default());
        writer.write_event(Instant::ZERO, "", "", |data| {
            data.array("frames", |frames| meaning = of_bytes(frames, payload, 3));
        });
        let record: Value = serde_json::from_slice(&writer.as_bytes()[1..]).expect("JSON");
        (record["data"]["frames"].clone(), meaning)
    }

    #[test]
    fn frames_are_parsed_from_bytes() {
        // RFC 9000 section 19: an ACK of 91 to 100 and 80 to 85 with a delay field of 5 (40 us with exponent 3), three
        // bytes of padding, a STREAM frame with offset, length and FIN, and HANDSHAKE_DONE.
        let payload = [2, 0x40, 100, 5, 1, 9, 4, 5, 0, 0, 0, 0x0f, 4, 0x44, 0, 2, 7, 7, 0x1e];
        let (frames, meaning) = read(&payload);
        let expected = json!([
            { "frame_type": "ack", "ack_delay": 0.04, "acked_ranges": [[91, 100], [80, 85]] },
            { "frame_type": "padding", "raw": { "length": 3, "payload_length": 3 } },
            {
                "frame_type": "stream",
                "stream_id": 4,
                "offset": 1024,
                "fin": true,
                "raw": { "length": 7, "payload_length": 2 },
            },
            { "frame_type": "handshake_done", "raw": { "length": 1 } },
        ]);
        assert_eq!(frames, expected);
        assert_eq!(meaning, PacketEffects { closes: false, confirms: true, probes: false });
    }

    #[test]
    fn packets_of_ping_padding_and_immediate_ack_are_mtu_probes() {
        assert!(read(&[1, 0x1f, 0, 0]).1.probes);
        assert!(!read(&[1, 0, 0x10, 5]).1.probes);
        assert!(read(&[0x1c, 1, 6, 0]).1.closes);
    }

    #[test]
    fn truncated_invalid_and_unknown_frames_have_the_type_unknown() {
        // A STREAM frame of length nine with one byte; an ACK range below zero; an unknown frame type.
        for payload in [&[0x0a, 4, 9, 1][..], &[2, 3, 0, 0, 9], &[0x40, 0xbf, 1, 1]] {
            let (frames, _) = read(payload);
            assert_eq!(frames[0]["frame_type"], "unknown", "{frames}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_payload_gives_valid_json(payload in proptest::collection::vec(0_u8..0x34, 0..64)) {
            proptest::prop_assert!(read(&payload).0.is_array());
        }
    }
}
