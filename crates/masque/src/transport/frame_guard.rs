//! Checks of request streams that h3 does not make, including a limit on buffered bytes.
//!
//! h3 buffers HTTP/3 frames other than DATA completely (RFC 9114 section 7.1: type, length, payload). A peer could
//! therefore announce a header section of a gigabyte and exhaust the memory. The validator parses the frames as they
//! arrive. It reports a frame that is too long, and a stream that ends within a frame. It also reports a field section
//! that needs a dynamic table, because this side offers none.

use super::code;
use crate::varint;

/// Types of frames whose payload is inspected, or passed on as it arrives (RFC 9114 section 7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// A protocol violation: whether to abort the stream or the connection, and the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolViolation {
    /// Abort the stream with this code.
    Stream(u32),
    /// Close the connection with this code.
    Connection(u32),
}

/// Validator of one request stream.
#[derive(Clone, Debug)]
pub struct FrameValidator {
    limit: u64,
    head: [u8; 16],
    head_length: usize,
    /// Bytes of the current frame's payload that have not arrived yet.
    missing: u64,
    /// Whether the next byte is the first of a field section.
    at_section: bool,
}

impl FrameValidator {
    /// Creates the validator of a request stream. No frame other than DATA may be longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> FrameValidator {
        FrameValidator { limit, head: [0; 16], head_length: 0, missing: 0, at_section: false }
    }

    /// Checks received bytes.
    ///
    /// # Errors
    /// If the stream or the connection must be aborted.
    pub fn validate(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolViolation> {
        while let Some(first) = bytes.first() {
            if self.missing > 0 {
                // A Required Insert Count other than 0 refers to the dynamic table (RFC 9204 section 4.5.1.1).
                if std::mem::take(&mut self.at_section) && *first != 0 {
                    return Err(ProtocolViolation::Connection(code::QPACK_DECOMPRESSION_FAILED));
                }
                let step = self.missing.min(bytes.len() as u64);
                self.missing -= step;
                bytes = &bytes[step as usize..];
                continue;
            }
            self.head[self.head_length] = *first;
            self.head_length += 1;
            bytes = &bytes[1..];
            let Some((kind, length)) = self.whole_head() else { continue };
            if kind != DATA && length > self.limit {
                return Err(ProtocolViolation::Stream(code::EXCESSIVE_LOAD));
            }
            self.missing = length;
            self.at_section = kind == HEADERS;
            self.head_length = 0;
        }
        Ok(())
    }

    /// Checks that the stream does not end within a frame (RFC 9114 section 7.1).
    ///
    /// # Errors
    /// If the stream ends within a frame.
    pub fn validate_end(&self) -> Result<(), ProtocolViolation> {
        if self.missing == 0 && self.head_length == 0 {
            Ok(())
        } else {
            Err(ProtocolViolation::Connection(code::FRAME_ERROR))
        }
    }

    fn whole_head(&self) -> Option<(u64, u64)> {
        let head = &self.head[..self.head_length];
        let (kind, used) = varint::decode(head)?;
        let (length, _) = varint::decode(&head[used..])?;
        Some((kind, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u64, announced: u64, payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::encode(kind, &mut bytes);
        varint::encode(announced, &mut bytes);
        bytes.resize(bytes.len() + payload, 0xff);
        bytes
    }

    #[test]
    fn frame_above_the_limit_is_rejected_unless_it_is_data() {
        let section = [vec![1, 40, 0], vec![0; 39]].concat();
        let stream = [section, frame(0, 5000, 5000), frame(33, 0, 0), frame(0, 1 << 40, 10)].concat();
        for cut in [1, 7, 6000] {
            let mut guard = FrameValidator::new(100);
            assert!(stream.chunks(cut).all(|piece| guard.validate(piece).is_ok()));
            assert_eq!(guard.validate_end(), Err(ProtocolViolation::Connection(0x106)));
        }
        for (kind, length) in [(1, 101), (5, 1 << 40), (0x21, 1 << 20)] {
            let stream = [frame(2, 3, 3), frame(0, 200, 200), frame(kind, length, 0)].concat();
            let mut guard = FrameValidator::new(100);
            let (last, before) = stream.split_last().unwrap();
            assert_eq!(guard.validate(before), Ok(()));
            assert_eq!(guard.validate(&[*last]), Err(ProtocolViolation::Stream(0x107)));
        }
    }

    #[test]
    fn field_section_that_needs_a_table_is_rejected() {
        for (stream, expected) in
            [(&[1, 2, 0, 0][..], Ok(())), (&[1, 2, 2, 0], Err(ProtocolViolation::Connection(0x200)))]
        {
            for cut in 1..=stream.len() {
                let mut guard = FrameValidator::new(100);
                assert_eq!(stream.chunks(cut).try_for_each(|piece| guard.validate(piece)), expected);
            }
        }
    }

    #[test]
    fn stream_end_within_a_frame_is_rejected() {
        let stream = [frame(0, 2, 2), frame(33, 70, 70)].concat();
        for end in 0..=stream.len() {
            let mut guard = FrameValidator::new(100);
            assert_eq!(guard.validate(&stream[..end]), Ok(()));
            assert_eq!(guard.validate_end().is_ok(), [0, 4, stream.len()].contains(&end), "{end}");
        }
    }

    proptest! {
        #[test]
        fn verdict_on_arbitrary_bytes_is_independent_of_their_split(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..40, limit in 0u64..100) {
            let (mut whole, mut pieces) = (FrameValidator::new(limit), FrameValidator::new(limit));
            let judged = bytes.chunks(cut).try_for_each(|piece| pieces.validate(piece));
            prop_assert_eq!(whole.validate(&bytes), judged);
            if judged.is_ok() {
                prop_assert_eq!(whole.validate_end(), pieces.validate_end());
            }
        }
    }
}
