//! HTTP datagrams (RFC 9297 section 2.1) and what CONNECT-UDP puts into them (RFC 9298 section 5).
//!
//! A QUIC DATAGRAM frame carries a quarter stream ID, which names the request, and the HTTP datagram's payload. The
//! payload of a CONNECT-UDP request is a context ID and what belongs to the context; context 0 is one UDP payload.

use crate::varint;
use bytes::{BufMut, Bytes, BytesMut};

/// The largest UDP payload: 65 535 bytes of an IPv4 datagram less the UDP header (RFC 9298 section 5).
pub const MAX_UDP_PAYLOAD: usize = 65_527;

/// The largest quarter stream ID: stream IDs end at 2^62 - 1 (RFC 9297 section 2.1).
pub const MAX_QUARTER_STREAM_ID: u64 = (1 << 60) - 1;

/// A QUIC DATAGRAM frame that is no HTTP datagram; the connection ends with H3_DATAGRAM_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnHttpDatagram {
    /// The frame ends before the quarter stream ID does.
    Truncated,
    /// No stream has four times this number.
    QuarterStreamIdTooLarge,
}

/// Takes the quarter stream ID off the head of a DATAGRAM frame's content.
///
/// # Errors
/// If there is none, or one that no stream can have.
pub fn split_quarter_stream_id(mut frame: Bytes) -> Result<(u64, Bytes), NotAnHttpDatagram> {
    let (id, length) = varint::decode(&frame).ok_or(NotAnHttpDatagram::Truncated)?;
    if id > MAX_QUARTER_STREAM_ID {
        return Err(NotAnHttpDatagram::QuarterStreamIdTooLarge);
    }
    Ok((id, frame.split_off(length)))
}

/// What an HTTP datagram of a CONNECT-UDP request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Context 0: a UDP payload.
    Udp(Bytes),
    /// A context nobody registered, or no whole context ID: dropped.
    Unknown,
    /// A payload that exceeds the maximum UDP payload: the request stream is aborted.
    TooLong,
}

/// Reads the payload of an HTTP datagram.
#[must_use]
pub fn content(mut payload: Bytes) -> Content {
    match varint::decode(&payload) {
        Some((0, length)) if payload.len() - length > MAX_UDP_PAYLOAD => Content::TooLong,
        Some((0, length)) => Content::Udp(payload.split_off(length)),
        Some(_) | None => Content::Unknown,
    }
}

/// A DATAGRAM frame's content that carries `payload` for the request of this quarter stream ID.
#[must_use]
pub fn frame(quarter_stream_id: u64, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(overhead(quarter_stream_id) + payload.len());
    varint::encode(quarter_stream_id, &mut frame);
    varint::encode(0, &mut frame);
    frame.put_slice(payload);
    frame.freeze()
}

/// Bytes that [`frame`] adds to a payload.
#[must_use]
pub fn overhead(quarter_stream_id: u64) -> usize {
    varint::length(quarter_stream_id) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_names_its_request() {
        // Stream 400 is the 101st request: quarter stream ID 100 takes two bytes, 0x40 | 0, 100; context 0 one.
        assert_eq!(&frame(100, b"ab")[..], [0x40, 100, 0, b'a', b'b']);
        assert_eq!(&frame(0, b"")[..], [0, 0]);
        assert_eq!(split_quarter_stream_id(Bytes::new()), Err(NotAnHttpDatagram::Truncated));
        assert_eq!(split_quarter_stream_id(Bytes::from_static(&[0x40])), Err(NotAnHttpDatagram::Truncated));
    }

    #[test]
    fn no_stream_has_a_number_above_two_to_the_sixty() {
        for (id, good) in [(MAX_QUARTER_STREAM_ID, true), (MAX_QUARTER_STREAM_ID + 1, false)] {
            let mut bytes = Vec::new();
            varint::encode(id, &mut bytes);
            assert_eq!(split_quarter_stream_id(bytes.into()).is_ok(), good);
        }
    }

    #[test]
    fn only_context_zero_is_a_udp_payload() {
        assert_eq!(content(Bytes::from_static(&[0])), Content::Udp(Bytes::new()));
        // Context 0 in two bytes is still context 0.
        assert_eq!(content(Bytes::from_static(&[0x40, 0, 7])), Content::Udp(Bytes::from_static(&[7])));
        assert_eq!(content(Bytes::from_static(&[2, 7])), Content::Unknown);
        assert_eq!(content(Bytes::new()), Content::Unknown);
        assert_eq!(content(Bytes::from_static(&[0xc0, 0])), Content::Unknown);
        assert_eq!(content(vec![0; 1 + MAX_UDP_PAYLOAD].into()), Content::Udp(vec![0; MAX_UDP_PAYLOAD].into()));
        assert_eq!(content(vec![0; 2 + MAX_UDP_PAYLOAD].into()), Content::TooLong);
    }

    proptest! {
        #[test]
        fn what_was_framed_comes_back(id in 0..=MAX_QUARTER_STREAM_ID, payload in prop::collection::vec(any::<u8>(), 0..2000)) {
            let frame = frame(id, &payload);
            prop_assert_eq!(frame.len(), overhead(id) + payload.len());
            let (read, rest) = split_quarter_stream_id(frame).unwrap();
            prop_assert_eq!(read, id);
            prop_assert_eq!(content(rest), Content::Udp(payload.into()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((_, rest)) = split_quarter_stream_id(bytes.into()) {
                let _ = content(rest);
            }
        }
    }
}
