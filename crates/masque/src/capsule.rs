//! The capsule protocol (RFC 9297 section 3.2): type, length and value one after another on a request stream. A
//! DATAGRAM capsule (type 0) is an HTTP datagram that is retransmitted; every other type is skipped.
//!
//! The decoder takes the stream in pieces as they come and holds at most one HTTP datagram; what is longer than any
//! that CONNECT-UDP knows is discarded as it arrives.

use crate::datagram::MAX_UDP_PAYLOAD;
use crate::varint;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The DATAGRAM capsule's type (RFC 9297 section 3.5).
pub const DATAGRAM: u64 = 0;

/// The longest value kept: a context ID in any encoding, and a UDP payload.
const MAX_VALUE: u64 = 8 + MAX_UDP_PAYLOAD as u64;

/// A DATAGRAM capsule of context 0 is longer than a UDP payload can be: the stream is aborted (RFC 9298 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadTooLong;

/// Takes a stream apart into capsules.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The first bytes of a capsule, until type and length are whole.
    Head(Head),
    /// A DATAGRAM capsule's value: what has come, what is missing.
    Value { value: BytesMut, missing: usize },
    /// A DATAGRAM capsule too long to keep, until its context ID is whole.
    TooLong { head: Head, missing: u64 },
    /// What nobody wants.
    Skip { missing: u64 },
}

/// Up to two variable-length integers that may come in pieces.
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
    /// The next HTTP datagram's payload that `input` completes, or `None` when `input` is used up.
    ///
    /// # Errors
    /// A UDP payload that is too long.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, PayloadTooLong> {
        loop {
            match &mut self.state {
                State::Head(head) => {
                    // An empty capsule is complete with its head, so `input` may be empty from here on.
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

    /// Whether the stream may end here: not within a capsule, or the message is malformed (RFC 9297 section 3.3).
    #[must_use]
    pub fn may_end(&self) -> bool {
        matches!(&self.state, State::Head(head) if head.length == 0)
    }
}

fn append(value: &mut BytesMut, piece: &[u8]) -> Bytes {
    value.extend_from_slice(piece);
    std::mem::take(value).freeze()
}

/// Type and length, once both are there.
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

/// Appends a DATAGRAM capsule that carries `payload` as context 0.
pub fn encode(payload: &[u8], into: &mut BytesMut) {
    let length = payload.len() as u64 + 1;
    into.reserve(overhead(payload.len()) + payload.len());
    varint::encode(DATAGRAM, into);
    varint::encode(length, into);
    varint::encode(0, into);
    into.put_slice(payload);
}

/// Bytes that [`encode`] adds to a payload of this length.
#[must_use]
pub fn overhead(payload_length: usize) -> usize {
    2 + varint::length(payload_length as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{Content, content};
    use proptest::prelude::*;

    fn capsule(kind: u64, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::encode(kind, &mut bytes);
        varint::encode(value.len() as u64, &mut bytes);
        bytes.extend_from_slice(value);
        bytes
    }

    /// All HTTP datagrams of a stream that comes in pieces of these lengths (cycled).
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
            assert!(input.is_empty(), "what is not used is lost");
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok((datagrams, decoder.may_end()))
    }

    #[test]
    fn unknown_types_are_skipped_and_empty_capsules_are_whole() {
        // 41 N + 23 are the types reserved to exercise this (RFC 9297 section 5.4).
        let stream = [capsule(64, b"abc"), capsule(0, &[0, 1]), capsule(0, b""), capsule(23, b""), capsule(0, &[0])];
        let expected: Vec<Bytes> = vec![Bytes::from_static(&[0, 1]), Bytes::new(), Bytes::from_static(&[0])];
        for cut in 1..8 {
            assert_eq!(decode(&stream.concat(), &[cut]), Ok((expected.clone(), true)));
        }
    }

    #[test]
    fn a_stream_may_not_end_within_a_capsule() {
        let stream = [capsule(5, b"xyz"), capsule(0, &[0, 1, 2])].concat();
        let boundaries = [0, 5, stream.len()];
        for end in 1..=stream.len() {
            assert_eq!(decode(&stream[..end], &[3]).unwrap().1, boundaries.contains(&end), "{end}");
        }
    }

    #[test]
    fn absurd_lengths_are_discarded_without_being_kept() {
        for kind in [7, DATAGRAM] {
            let mut stream = Vec::new();
            varint::encode(kind, &mut stream);
            varint::encode(varint::MAX, &mut stream);
            // Context 4, in its longest spelling.
            stream.extend_from_slice(&[0xc0, 0, 0, 0, 0, 0, 0, 4]);
            stream.resize(1 << 20, 0);
            let mut decoder = Decoder::default();
            assert_eq!(decoder.next(&mut stream.into()), Ok(None));
            assert!(matches!(decoder.state, State::Skip { missing } if missing > 1 << 60));
            assert!(!decoder.may_end());
        }
    }

    #[test]
    fn a_udp_payload_that_udp_does_not_have_is_an_error() {
        let longest = capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 1]);
        let (datagrams, _) = decode(&longest, &[1000]).unwrap();
        assert!(matches!(content(datagrams[0].clone()), Content::Udp(payload) if payload.len() == MAX_UDP_PAYLOAD));
        // Within the decoder's limit but too long for one byte of context ID: the content is refused.
        let (datagrams, _) = decode(&capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 2]), &[1000]).unwrap();
        assert_eq!(content(datagrams[0].clone()), Content::TooLong);
        assert_eq!(decode(&capsule(DATAGRAM, &vec![0; MAX_UDP_PAYLOAD + 9]), &[1000]), Err(PayloadTooLong));
    }

    proptest! {
        #[test]
        fn capsules_come_back_however_the_stream_is_cut(
            capsules in prop::collection::vec((prop_oneof![3 => Just(DATAGRAM), 1 => 1u64..100_000], prop::collection::vec(any::<u8>(), 0..300)), 0..12),
            cuts in prop::collection::vec(1usize..400, 1..6),
        ) {
            let stream: Vec<u8> = capsules.iter().flat_map(|(kind, value)| capsule(*kind, value)).collect();
            let expected: Vec<Bytes> = capsules.iter().filter(|(kind, _)| *kind == DATAGRAM).map(|(_, value)| value.clone().into()).collect();
            prop_assert_eq!(decode(&stream, &cuts), Ok((expected, true)));
        }

        #[test]
        fn payloads_come_back(payload in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut stream = BytesMut::new();
            encode(&payload, &mut stream);
            prop_assert_eq!(stream.len(), payload.len() + overhead(payload.len()));
            let (datagrams, end) = decode(&stream, &[stream.len()]).unwrap();
            prop_assert!(end);
            prop_assert_eq!(content(datagrams[0].clone()), Content::Udp(payload.into()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600), cuts in prop::collection::vec(1usize..50, 1..4)) {
            // However they are cut, the same comes out.
            prop_assert_eq!(decode(&bytes, &cuts), decode(&bytes, &[bytes.len().max(1)]));
        }
    }
}
