//! HTTP datagrams (RFC 9297 section 2.1) and their contents in CONNECT-UDP (RFC 9298 section 5).
//!
//! A QUIC DATAGRAM frame contains a quarter stream ID, which identifies the request, and the payload of the HTTP
//! datagram. For a CONNECT-UDP request, that payload is a context ID and the data of the context. Context 0 contains
//! one UDP payload.

use crate::varint;
use bytes::{BufMut, Bytes, BytesMut};

/// Maximum UDP payload: the 65 535 bytes of the UDP length field minus the 8-byte UDP header (RFC 9298 section 5).
pub const MAX_UDP_PAYLOAD: usize = 65_527;

/// Largest quarter stream ID. The largest stream ID is 2^62 - 1 (RFC 9297 section 2.1).
pub const MAX_QUARTER_STREAM_ID: u64 = (1 << 60) - 1;

/// Error: the content of a QUIC DATAGRAM frame is not an HTTP datagram. The connection is closed with
/// H3_DATAGRAM_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpDatagramError {
    /// The frame ends within the quarter stream ID.
    Truncated,
    /// The quarter stream ID is too large: four times its value exceeds the largest stream ID.
    QuarterStreamIdTooLarge,
}

/// Separates the quarter stream ID from the rest of a DATAGRAM frame's content.
///
/// # Errors
/// If the quarter stream ID is missing or too large.
pub fn split_quarter_stream_id(mut frame: Bytes) -> Result<(u64, Bytes), HttpDatagramError> {
    let (id, length) = varint::decode(&frame).ok_or(HttpDatagramError::Truncated)?;
    if id > MAX_QUARTER_STREAM_ID {
        return Err(HttpDatagramError::QuarterStreamIdTooLarge);
    }
    Ok((id, frame.split_off(length)))
}

/// Content of an HTTP datagram of a CONNECT-UDP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramContent {
    /// Context 0: a UDP payload.
    Udp(Bytes),
    /// An unregistered context or an incomplete context ID; the datagram is dropped.
    Unknown,
    /// The payload exceeds the maximum UDP payload (65 527 bytes); the request stream is aborted.
    TooLong,
}

/// Parses the payload of an HTTP datagram.
#[must_use]
pub fn parse_payload(mut payload: Bytes) -> DatagramContent {
    match varint::decode(&payload) {
        Some((0, length)) if payload.len() - length > MAX_UDP_PAYLOAD => DatagramContent::TooLong,
        Some((0, length)) => DatagramContent::Udp(payload.split_off(length)),
        Some(_) | None => DatagramContent::Unknown,
    }
}

/// Encodes the content of a DATAGRAM frame with `payload` for the request with this quarter stream ID.
#[must_use]
pub fn encode_frame(quarter_stream_id: u64, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(overhead(quarter_stream_id) + payload.len());
    varint::encode(quarter_stream_id, &mut frame);
    varint::encode(0, &mut frame);
    frame.put_slice(payload);
    frame.freeze()
}

/// Returns the number of bytes that [`encode_frame`] adds to a payload.
#[must_use]
pub fn overhead(quarter_stream_id: u64) -> usize {
    varint::length(quarter_stream_id) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frame_starts_with_quarter_stream_id_and_context() {
        // Stream 400 is the 101st request. Its quarter stream ID 100 takes two bytes (0x40 | 0, 100), and context 0
        // one.
        assert_eq!(&encode_frame(100, b"ab")[..], [0x40, 100, 0, b'a', b'b']);
        assert_eq!(&encode_frame(0, b"")[..], [0, 0]);
        assert_eq!(split_quarter_stream_id(Bytes::new()), Err(HttpDatagramError::Truncated));
        assert_eq!(split_quarter_stream_id(Bytes::from_static(&[0x40])), Err(HttpDatagramError::Truncated));
    }

    #[test]
    fn quarter_stream_id_from_two_to_the_sixty_is_rejected() {
        for (id, good) in [(MAX_QUARTER_STREAM_ID, true), (MAX_QUARTER_STREAM_ID + 1, false)] {
            let mut bytes = Vec::new();
            varint::encode(id, &mut bytes);
            assert_eq!(split_quarter_stream_id(bytes.into()).is_ok(), good);
        }
    }

    #[test]
    fn content_is_a_udp_payload_only_in_context_zero() {
        assert_eq!(parse_payload(Bytes::from_static(&[0])), DatagramContent::Udp(Bytes::new()));
        // Context 0 encoded in two bytes is still context 0.
        assert_eq!(parse_payload(Bytes::from_static(&[0x40, 0, 7])), DatagramContent::Udp(Bytes::from_static(&[7])));
        assert_eq!(parse_payload(Bytes::from_static(&[2, 7])), DatagramContent::Unknown);
        assert_eq!(parse_payload(Bytes::new()), DatagramContent::Unknown);
        assert_eq!(parse_payload(Bytes::from_static(&[0xc0, 0])), DatagramContent::Unknown);
        assert_eq!(
            parse_payload(vec![0; 1 + MAX_UDP_PAYLOAD].into()),
            DatagramContent::Udp(vec![0; MAX_UDP_PAYLOAD].into())
        );
        assert_eq!(parse_payload(vec![0; 2 + MAX_UDP_PAYLOAD].into()), DatagramContent::TooLong);
    }

    proptest! {
        #[test]
        fn framed_payloads_are_parsed_unchanged(id in 0..=MAX_QUARTER_STREAM_ID, payload in prop::collection::vec(any::<u8>(), 0..2000)) {
            let frame = encode_frame(id, &payload);
            prop_assert_eq!(frame.len(), overhead(id) + payload.len());
            let (read, rest) = split_quarter_stream_id(frame).unwrap();
            prop_assert_eq!(read, id);
            prop_assert_eq!(parse_payload(rest), DatagramContent::Udp(payload.into()));
        }

        #[test]
        fn arbitrary_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((_, rest)) = split_quarter_stream_id(bytes.into()) {
                let _ = parse_payload(rest);
            }
        }
    }
}
