//! Encoder and decoder of the capsule protocol (RFC 9297 section 3.2). A capsule is a type, a length and a value on a
//! request stream. A DATAGRAM capsule (type 0) contains an HTTP datagram. The decoder skips all other types.
//!
//! The decoder accepts the stream in chunks of any size and keeps at most one HTTP datagram. It discards longer values
//! as they arrive.

use crate::datagram::MAX_UDP_PAYLOAD;
use crate::varint;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Type of the DATAGRAM capsule (RFC 9297 section 3.5).
pub const DATAGRAM: u64 = 0;

/// Longest value that the decoder keeps: a context ID in any encoding and a UDP payload.
const MAX_VALUE: u64 = 8 + MAX_UDP_PAYLOAD as u64;

/// Error: a DATAGRAM capsule of context 0 exceeds the maximum UDP payload. The stream is then aborted (RFC 9298 section
/// 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadTooLong;

/// Splits a stream into capsules.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The first bytes of a capsule, until type and length are complete.
    Head(Head),
    /// The value of a DATAGRAM capsule: the bytes received so far, and how many are missing.
    Value { value: BytesMut, missing: usize },
    /// A DATAGRAM capsule that is too long to keep, until its context ID is complete.
    TooLong { head: Head, missing: u64 },
    /// A value that is discarded.
    Skip { missing: u64 },
}

/// Up to two variable-length integers, which may arrive in several chunks.
#[derive(Clone, Debug, Default)]
struct Head {
    bytes: [u8; 16],
    length: usize,
}

impl Head {
    fn push(&mut self, byte: u8) -> &[u8] {
        self.bytes[self.length] = byte;
        self.length += 1;
        &self.bytes[..self.length]
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { state: State::Head(Head::default()) }
    }
}

impl Decoder {
    /// Returns the payload of the next HTTP datagram that `input` completes, or `None` when all of `input` is consumed.
    ///
    /// # Errors
    /// If a UDP payload exceeds the maximum.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, PayloadTooLong> {
        loop {
            match &mut self.state {
                State::Head(head) => {
                    // An empty capsule is complete with its type and length, so `input` may be empty in the following
                    // steps.
                    let Some((kind, length)) = read_head(head, input) else { return Ok(None) };
                    self.state = match (kind, length) {
                        (DATAGRAM, 0..=MAX_VALUE) => State::Value { value: BytesMut::new(), missing: length as usize },
                        (DATAGRAM, _) => State::TooLong { head: Head::default(), missing: length },
                        _ => State::Skip { missing: length },
                    };
                }
                State::Value { value, missing } => {
                    let piece = input.split_to(input.len().min(*missing));
                    *missing -= piece.len();
                    if *missing == 0 {
                        let whole = if value.is_empty() { piece } else { append(value, &piece) };
                        self.state = State::Head(Head::default());
                        return Ok(Some(whole));
                    }
                    value.extend_from_slice(&piece);
                    return Ok(None);
                }
                State::TooLong { head, missing } => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    *missing -= 1;
                    match varint::decode(head.push(input.get_u8())) {
                        Some((0, _)) => return Err(PayloadTooLong),
                        Some(_) => self.state = State::Skip { missing: *missing },
                        None => {}
                    }
                }
                State::Skip { missing } => {
                    let piece = (input.len() as u64).min(*missing);
                    input.advance(piece as usize);
                    *missing -= piece;
                    if *missing > 0 {
                        return Ok(None);
                    }
                    self.state = State::Head(Head::default());
                }
            }
        }
    }

    /// Whether the stream may end here. If the stream ends within a capsule, the message is malformed (RFC 9297 section
    /// 3.3).
    #[must_use]
    pub fn may_end(&self) -> bool {
        matches!(&self.state, State::Head(head) if head.length == 0)
    }
}

fn append(value: &mut BytesMut, piece: &[u8]) -> Bytes {
    value.extend_from_slice(piece);
    std::mem::take(value).freeze()
}

/// Returns type and length once both are complete.
fn read_head(head: &mut Head, input: &mut Bytes) -> Option<(u64, u64)> {
    while input.has_remaining() {
        let bytes = head.push(input.get_u8());
        if let Some((kind, used)) = varint::decode(bytes)
            && let Some((length, _)) = varint::decode(&bytes[used..])
        {
            return Some((kind, length));
        }
    }
    None
}

/// Appends a DATAGRAM capsule with `payload` in context 0.
pub fn encode(payload: &[u8], into: &mut BytesMut) {
    let length = payload.len() as u64 + 1;
    into.reserve(overhead(payload.len()) + payload.len());
    varint::encode(DATAGRAM, into);
    varint::encode(length, into);
    varint::encode(0, into);
    into.put_slice(payload);
}

/// Returns the number of bytes that [`encode`] adds to a payload of this length.
#[must_use]
pub fn overhead(payload_length: usize) -> usize {
    2 + varint::length(payload_length as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{DatagramContent, parse_payload};
    use proptest::prelude::*;

    fn capsule(kind: u64, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::encode(kind, &mut bytes);
        varint::encode(value.len() as u64, &mut bytes);
        bytes.extend_from_slice(value);
        bytes
    }

    /// All HTTP datagrams of a stream that arrives in pieces of these lengths, cyclically.
    fn decode(stream: &[u8], cuts: &[usize]) -> Result<(Vec<Bytes>, bool), PayloadTooLong> {
        let mut decoder = Decoder::default();
        let mut datagrams = Vec::new();
        let mut rest = stream;
        for cut in cuts.iter().cycle() {
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(datagram) = decoder.next(&mut input)? {
                datagrams.push(datagram);
            }
            assert!(input.is_empty(), "the decoder left input unread");
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok((datagrams, decoder.may_end()))
    }

    #[test]
    fn unknown_types_are_skipped_and_empty_capsules_are_complete() {
        // RFC 9297 section 5.4 reserves the types 41 N + 23 for this test.
        let stream = [capsule(64, b"abc"), capsule(0, &[0, 1]), capsule(0, b""), capsule(23, b""), capsule(0, &[0])];
        let expected: Vec<Bytes> = vec![Bytes::from_static(&[0, 1]), Bytes::new(), Bytes::from_static(&[0])];
        for cut in 1..8 {
            assert_eq!(decode(&stream.concat(), &[cut]), Ok((expected.clone(), true)));
        }
    }

    #[test]
    fn stream_end_within_a_capsule_is_rejected() {
        let stream = [capsule(5, b"xyz"), capsule(0, &[0, 1, 2])].concat();
        let boundaries = [0, 5, stream.len()];
        for end in 1..=stream.len() {
            assert_eq!(decode(&stream[..end], &[3]).unwrap().1, boundaries.contains(&end), "{end}");
        }
    }

    #[test]
    fn values_of_excessive_length_are_discarded_without_buffering() {
        for kind in [7, DATAGRAM] {
            let mut stream = Vec::new();
            varint::encode(kind, &mut stream);
            varint::encode(varint::MAX, &mut stream);
            // Context 4 in its longest encoding.
            stream.extend_from_slice(&[0xc0, 0, 0, 0, 0, 0, 0, 4]);
            stream.resize(1 << 20, 0);
            let mut decoder = Decoder::default();
            assert_eq!(decoder.next(&mut stream.into()), Ok(None));
            assert!(matches!(decoder.state, State::Skip { missing } if missing > 1 << 60));
            assert!(!decoder.may_end());
        }
    }

    #[test]
    fn udp_payload_above_the_maximum_is_an_error() {
        let longest = capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 1]);
        let (datagrams, _) = decode(&longest, &[1000]).unwrap();
        assert!(
            matches!(parse_payload(datagrams[0].clone()), DatagramContent::Udp(payload) if payload.len() == MAX_UDP_PAYLOAD)
        );
        // This is within the decoder's limit, but the payload is too long with a one-byte context ID.
        let (datagrams, _) = decode(&capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 2]), &[1000]).unwrap();
        assert_eq!(parse_payload(datagrams[0].clone()), DatagramContent::TooLong);
        assert_eq!(decode(&capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 9]), &[1000]), Err(PayloadTooLong));
    }

    proptest! {
        #[test]
        fn capsules_are_decoded_for_any_split_of_the_stream(
            capsules in prop::collection::vec((prop_oneof![3 => Just(DATAGRAM), 1 => 1u64..100_000], prop::collection::vec(any::<u8>(), 0..300)), 0..12),
            cuts in prop::collection::vec(1usize..400, 1..6),
        ) {
            let stream: Vec<u8> = capsules.iter().flat_map(|(kind, value)| capsule(*kind, value)).collect();
            let expected: Vec<Bytes> = capsules.iter().filter(|(kind, _)| *kind == DATAGRAM).map(|(_, value)| value.clone().into()).collect();
            prop_assert_eq!(decode(&stream, &cuts), Ok((expected, true)));
        }

        #[test]
        fn encoded_payloads_are_decoded_unchanged(payload in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut stream = BytesMut::new();
            encode(&payload, &mut stream);
            prop_assert_eq!(stream.len(), payload.len() + overhead(payload.len()));
            let (datagrams, end) = decode(&stream, &[stream.len()]).unwrap();
            prop_assert!(end);
            prop_assert_eq!(parse_payload(datagrams[0].clone()), DatagramContent::Udp(payload.into()));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..600), cuts in prop::collection::vec(1usize..50, 1..4)) {
            // The result does not depend on the split.
            prop_assert_eq!(decode(&bytes, &cuts), decode(&bytes, &[bytes.len().max(1)]));
        }
    }
}
