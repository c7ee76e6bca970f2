//! Checks of request streams that h3 does not make, including a limit on buffered bytes.
//!
//! h3 buffers HTTP/3 frames other than DATA completely (RFC 9114 section 7.1: type, length, payload). A peer could
//! therefore announce a header section of a gigabyte and exhaust the memory. The validator parses the frames as they
//! arrive. It reports a frame that is too long, and a stream that ends within a frame. It also reports a field section
//! that needs a dynamic table, because this side offers none, and a malformed message.

use super::code;
use super::message::{Malformed, MessageValidator, SectionError};
use super::one_way_guard::PeerRole;
use crate::varint;

/// Types of frames whose payload is inspected, or passed on as it arrives (RFC 9114 section 7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// A protocol violation: whether to abort the stream or the connection, and the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolViolation {
    /// Abort the stream with this code.
    Stream(u32),
    /// The message is malformed, with the reason: abort the stream with H3_MESSAGE_ERROR (RFC 9114 section 4.1.2).
    Malformed(&'static str),
    /// Close the connection with this code.
    Connection(u32),
}

impl From<Malformed> for ProtocolViolation {
    fn from(Malformed(reason): Malformed) -> Self {
        ProtocolViolation::Malformed(reason)
    }
}

impl From<SectionError> for ProtocolViolation {
    fn from(error: SectionError) -> Self {
        match error {
            SectionError::Decoding => ProtocolViolation::Connection(code::QPACK_DECOMPRESSION_FAILED),
            SectionError::Malformed(malformed) => malformed.into(),
        }
    }
}

/// Validator of one request stream.
#[derive(Clone, Debug)]
pub struct FrameValidator {
    limit: u64,
    message: MessageValidator,
    head: [u8; 16],
    head_length: usize,
    /// Bytes of the current frame's payload that have not arrived yet.
    missing: u64,
    /// The arrived part of the current frame's payload, if it is a field section.
    section: Option<Vec<u8>>,
}

impl FrameValidator {
    /// Creates the validator of what `peer` sends on a request stream. No frame other than DATA may be longer than
    /// `limit` bytes.
    #[must_use]
    pub fn new(peer: PeerRole, limit: u64) -> FrameValidator {
        let message = MessageValidator::new(peer);
        FrameValidator { limit, message, head: [0; 16], head_length: 0, missing: 0, section: None }
    }

    /// Checks received bytes.
    ///
    /// # Errors
    /// If the stream or the connection must be aborted.
    pub fn validate(&mut self, mut bytes: &[u8]) -> Result<(), ProtocolViolation> {
        while let Some(first) = bytes.first() {
            if self.missing > 0 {
                let step = self.missing.min(bytes.len() as u64);
                self.missing -= step;
                let (payload, rest) = bytes.split_at(step as usize);
                bytes = rest;
                self.check_section(payload)?;
                continue;
            }
            self.head[self.head_length] = *first;
            self.head_length += 1;
            bytes = &bytes[1..];
            let Some((kind, length)) = self.whole_head() else { continue };
            if kind != DATA && length > self.limit {
                return Err(ProtocolViolation::Stream(code::EXCESSIVE_LOAD));
            }
            if kind == DATA {
                self.message.check_data(length)?;
            }
            self.missing = length;
            self.section = (kind == HEADERS).then(Vec::new);
            self.head_length = 0;
            // An empty section is complete.
            self.check_section(&[])?;
        }
        Ok(())
    }

    /// Adds the next part of a frame's payload to a field section, and checks the section if it is complete.
    fn check_section(&mut self, payload: &[u8]) -> Result<(), ProtocolViolation> {
        let Some(section) = &mut self.section else { return Ok(()) };
        section.extend_from_slice(payload);
        // A Required Insert Count other than 0 refers to the dynamic table (RFC 9204 section 4.5.1.1).
        if section.first().is_some_and(|required| *required != 0) {
            return Err(ProtocolViolation::Connection(code::QPACK_DECOMPRESSION_FAILED));
        }
        if self.missing == 0
            && let Some(section) = self.section.take()
        {
            self.message.check_section(&section)?;
        }
        Ok(())
    }

    /// Checks that the stream does not end within a frame (RFC 9114 section 7.1) or before the end of the content.
    ///
    /// # Errors
    /// If the stream ends too early.
    pub fn validate_end(&self) -> Result<(), ProtocolViolation> {
        if self.missing == 0 && self.head_length == 0 {
            Ok(self.message.check_end()?)
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

    /// The HEADERS frame of a GET request for https://a/: entries 17, 1 and 23 of the static table, and the name of entry
    /// 0 (RFC 9204 appendix A).
    const GET: [u8; 10] = [1, 8, 0, 0, 0xd1, 0xc1, 0xd7, 0x50, 1, b'a'];

    fn frame(kind: u64, announced: u64, payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::encode(kind, &mut bytes);
        varint::encode(announced, &mut bytes);
        bytes.resize(bytes.len() + payload, 0xff);
        bytes
    }

    #[test]
    fn frame_above_the_limit_is_rejected_unless_it_is_data() {
        let section = GET.to_vec();
        let stream = [section, frame(0, 5000, 5000), frame(33, 0, 0), frame(0, 1 << 40, 10)].concat();
        for cut in [1, 7, 6000] {
            let mut guard = FrameValidator::new(PeerRole::Client, 100);
            assert!(stream.chunks(cut).all(|piece| guard.validate(piece).is_ok()));
            assert_eq!(guard.validate_end(), Err(ProtocolViolation::Connection(0x106)));
        }
        for (kind, length) in [(1, 101), (5, 1 << 40), (0x21, 1 << 20)] {
            let stream = [frame(2, 3, 3), frame(0, 200, 200), frame(kind, length, 0)].concat();
            let mut guard = FrameValidator::new(PeerRole::Client, 100);
            let (last, before) = stream.split_last().unwrap();
            assert_eq!(guard.validate(before), Ok(()));
            assert_eq!(guard.validate(&[*last]), Err(ProtocolViolation::Stream(0x107)));
        }
    }

    #[test]
    fn field_section_that_needs_a_table_is_rejected() {
        for (stream, expected) in [(&GET[..], Ok(())), (&[1, 2, 2, 0], Err(ProtocolViolation::Connection(0x200)))] {
            for cut in 1..=stream.len() {
                let mut guard = FrameValidator::new(PeerRole::Client, 100);
                assert_eq!(stream.chunks(cut).try_for_each(|piece| guard.validate(piece)), expected);
            }
        }
    }

    #[test]
    fn stream_end_within_a_frame_is_rejected() {
        let stream = [frame(0, 2, 2), frame(33, 70, 70)].concat();
        for end in 0..=stream.len() {
            let mut guard = FrameValidator::new(PeerRole::Client, 100);
            assert_eq!(guard.validate(&stream[..end]), Ok(()));
            assert_eq!(guard.validate_end().is_ok(), [0, 4, stream.len()].contains(&end), "{end}");
        }
    }

    proptest! {
        #[test]
        fn verdict_on_arbitrary_bytes_is_independent_of_their_split(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..40, limit in 0u64..100) {
            let (mut whole, mut pieces) = (FrameValidator::new(PeerRole::Client, limit), FrameValidator::new(PeerRole::Client, limit));
            let judged = bytes.chunks(cut).try_for_each(|piece| pieces.validate(piece));
            prop_assert_eq!(whole.validate(&bytes), judged);
            if judged.is_ok() {
                prop_assert_eq!(whole.validate_end(), pieces.validate_end());
            }
        }
    }
}
