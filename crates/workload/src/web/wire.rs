//! The wire format of requests and frames, as far as it is evaluated.
//!
//! A request begins with `GET `, the page number and the object number, four bytes each, big-endian. The remaining bytes give it
//! the size of its headers. HTTP/2 frames have the header of RFC 9113 section 4.1. For HTTP/3 only the sizes of frame headers are
//! modeled (RFC 9114 section 7.1, RFC 9000 section 16); a frame's type takes a byte.

use bytes::{BufMut, Bytes, BytesMut};
use fullpipe_transport::Payload;

/// Bytes of a request that have content.
pub(super) const CONTENT_BYTES: usize = 12;
const METHOD: [u8; 4] = *b"GET ";

/// Header of an HTTP/2 frame.
pub(super) const FRAME_HEADER_BYTES: usize = 9;
/// Largest payload of an HTTP/2 frame unless the peer permits more (RFC 9113 section 4.2).
pub(super) const MAX_FRAME_BYTES: u64 = 16_384;
/// Frame types.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
/// The sender sends nothing more on the stream (DATA and HEADERS).
pub(super) const END_STREAM: u8 = 1;
/// The complete header is in this frame (HEADERS).
pub(super) const END_HEADERS: u8 = 4;

/// The object that a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) page: u32,
    pub(super) object: u32,
}

impl Request {
    /// Appends the request, padded to `length` bytes.
    pub(super) fn put(self, length: u32, bytes: &mut BytesMut) {
        let end = bytes.len() + length as usize;
        bytes.put_slice(&METHOD);
        bytes.put_u32(self.page);
        bytes.put_u32(self.object);
        bytes.resize(end, 0);
    }

    /// Returns the request, padded to `length` bytes.
    pub(super) fn bytes(self, length: u32) -> Bytes {
        let mut bytes = BytesMut::with_capacity(length as usize);
        self.put(length, &mut bytes);
        bytes.freeze()
    }

    /// Parses the first bytes of a request.
    pub(super) fn parse(content: &[u8; CONTENT_BYTES]) -> Option<Request> {
        let [m0, m1, m2, m3, p0, p1, p2, p3, o0, o1, o2, o3] = *content;
        let page = u32::from_be_bytes([p0, p1, p2, p3]);
        let object = u32::from_be_bytes([o0, o1, o2, o3]);
        ([m0, m1, m2, m3] == METHOD).then_some(Request { page, object })
    }
}

/// Collects the first bytes of a message and counts the others, in pieces of any size.
#[derive(Debug)]
pub(super) struct Collector<const CONTENT: usize> {
    content: [u8; CONTENT],
    read_bytes: u64,
    /// Length of the message.
    length: u64,
}

impl<const CONTENT: usize> Collector<CONTENT> {
    /// Creates a collector for a message of `length` bytes.
    pub(super) fn new(length: u64) -> Self {
        Collector { content: [0; CONTENT], read_bytes: 0, length }
    }

    /// Number of missing bytes.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.length - self.read_bytes
    }

    /// Handles a piece, which is not longer than the missing bytes. Returns the first bytes when the message is complete.
    pub(super) fn take(&mut self, payload: &Payload) -> Option<[u8; CONTENT]> {
        if let Payload::Bytes(bytes) = payload {
            let at = usize::try_from(self.read_bytes).map_or(CONTENT, |read| read.min(CONTENT));
            for (place, byte) in self.content[at..].iter_mut().zip(bytes) {
                *place = *byte;
            }
        }
        self.read_bytes += payload.len().min(self.missing_bytes());
        (self.missing_bytes() == 0).then_some(self.content)
    }
}

/// Header of an HTTP/2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    /// Appends the header's bytes.
    pub(super) fn put(self, bytes: &mut BytesMut) {
        bytes.put_uint(u64::from(self.length), 3);
        bytes.put_u8(self.kind);
        bytes.put_u8(self.flags);
        bytes.put_u32(self.stream);
    }

    /// Returns the header's bytes.
    pub(super) fn bytes(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(FRAME_HEADER_BYTES);
        self.put(&mut bytes);
        bytes.freeze()
    }

    /// Parses a header; the reserved bit is ignored.
    pub(super) fn parse(content: &[u8; FRAME_HEADER_BYTES]) -> FrameHeader {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *content;
        FrameHeader {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        }
    }
}

/// Number of bytes of a QUIC variable-length integer (RFC 9000 section 16).
fn varint_bytes(value: u64) -> u64 {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Size of an HTTP/3 frame with this payload, in bytes.
pub(super) fn http3_frame_bytes(payload_bytes: u64) -> u64 {
    1 + varint_bytes(payload_bytes) + payload_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_header_has_the_layout_of_the_rfc() {
        // Length 24 bits, type 8, flags 8, a reserved bit and the stream's 31: RFC 9113 section 4.1.
        let header =
            FrameHeader { length: 0x01_02_03, kind: HEADERS, flags: END_STREAM | END_HEADERS, stream: 0x0a0b_0c0d };
        assert_eq!(header.bytes(), Bytes::from_static(&[1, 2, 3, 1, 5, 0x0a, 0x0b, 0x0c, 0x0d]));
        assert_eq!(FrameHeader::parse(&[1, 2, 3, 1, 5, 0x8a, 0x0b, 0x0c, 0x0d]), header);
    }

    #[test]
    fn integers_have_the_lengths_of_the_rfc() {
        // RFC 9000 table 4: 63, 16 383, 1 073 741 823 are the largest of one, two and four bytes.
        for (value, bytes) in [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)] {
            assert_eq!(varint_bytes(value), bytes, "{value}");
        }
        assert_eq!(http3_frame_bytes(100), 103);
    }

    #[test]
    fn requests_are_parsed_from_any_pieces() {
        let request = Request { page: 7, object: 1 << 20 };
        let bytes = request.bytes(40);
        assert_eq!(bytes.len(), 40);
        for cut in 0..=40 {
            let mut collector = Collector::<CONTENT_BYTES>::new(40);
            let first = collector.take(&Payload::Bytes(bytes.slice(..cut)));
            let content = first.or_else(|| collector.take(&Payload::Bytes(bytes.slice(cut..)))).unwrap();
            assert_eq!(Request::parse(&content), Some(request), "{cut}");
        }
        // Payload without content is zeros, which are not a request.
        let zeros = Collector::<CONTENT_BYTES>::new(40).take(&Payload::Length(40)).unwrap();
        assert_eq!(Request::parse(&zeros), None);
    }
}
