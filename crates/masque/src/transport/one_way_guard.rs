//! Checks of unidirectional streams for the connection errors of RFC 9114 sections 6.2 and 7.2 and RFC 9204 section 4
//! that h3 does not detect.
//!
//! h3 does not read QPACK streams, skips the frames of server push, and waits indefinitely for the rest of a truncated
//! frame. This side offers no dynamic table and uses none, and neither permits nor promises pushes. Few bytes from the
//! peer are therefore valid on these streams.

use super::code;
use crate::varint;

/// Stream types (RFC 9114 section 6.2, RFC 9204 section 4.2).
const CONTROL: u64 = 0;
const PUSH: u64 = 1;
const ENCODER: u64 = 2;
const DECODER: u64 = 3;

/// Frame types (RFC 9114 section 7.2).
const CANCEL_PUSH: u64 = 3;
const SETTINGS: u64 = 4;
const GOAWAY: u64 = 7;
const MAX_PUSH_ID: u64 = 0xd;

/// Settings with the values 0 and 1: extended CONNECT (RFC 9220 section 3), HTTP datagrams (RFC 9297 section 2.1.1).
const BINARY_SETTINGS: [u64; 2] = [0x08, 0x33];

/// The only encoder instruction that is valid without a dynamic table: a capacity of 0 (RFC 9204 section 4.3.1).
const CAPACITY_OF_ZERO: u8 = 0x20;

/// The role of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRole {
    /// A client, checked by its server.
    Client,
    /// A server, checked by its client.
    Server,
}

/// Validator of one unidirectional stream.
#[derive(Clone, Debug)]
pub struct UnidirectionalValidator {
    peer: PeerRole,
    /// Bytes that may still arrive if they must be buffered or are ignored.
    left: u64,
    /// An incomplete type or frame.
    waiting: Vec<u8>,
    kind: Option<u64>,
    max_push_id: u64,
    /// Whether the last byte is within a multi-byte integer on the decoder stream.
    in_integer: bool,
}

impl UnidirectionalValidator {
    /// Creates the validator of a stream that `peer` opened. `limit` is the maximum number of bytes after the stream
    /// type; it does not apply to QPACK streams.
    #[must_use]
    pub fn new(peer: PeerRole, limit: u64) -> UnidirectionalValidator {
        UnidirectionalValidator {
            peer,
            left: limit,
            waiting: Vec::new(),
            kind: None,
            max_push_id: 0,
            in_integer: false,
        }
    }

    /// Whether the stream's type has arrived.
    #[must_use]
    pub fn has_known_type(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether this is a QPACK stream, which only the validator reads.
    #[must_use]
    pub fn is_qpack(&self) -> bool {
        matches!(self.kind, Some(ENCODER | DECODER))
    }

    /// Whether both streams have the same type.
    #[must_use]
    pub fn has_same_type(&self, other: &UnidirectionalValidator) -> bool {
        self.kind == other.kind
    }

    /// Checks received bytes.
    ///
    /// # Errors
    /// Returns the code with which the connection must be closed.
    pub fn validate(&mut self, mut bytes: &[u8]) -> Result<(), u32> {
        while !self.has_known_type() {
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            self.waiting.push(*first);
            bytes = rest;
            if let Some((kind, _)) = varint::decode(&self.waiting) {
                self.waiting.clear();
                self.kind = Some(kind);
                self.check_push()?;
            }
        }
        match self.kind {
            Some(ENCODER) if bytes.iter().any(|byte| *byte != CAPACITY_OF_ZERO) => {
                Err(code::QPACK_ENCODER_STREAM_ERROR)
            }
            Some(ENCODER) => Ok(()),
            Some(DECODER) => bytes.iter().try_for_each(|byte| self.decoder(*byte)),
            kind => {
                self.left = self.left.checked_sub(bytes.len() as u64).ok_or(code::EXCESSIVE_LOAD)?;
                if kind == Some(CONTROL) { self.control(bytes) } else { Ok(()) }
            }
        }
    }

    /// Clients cannot push (RFC 9114 section 6.2.2), and servers need permission to push (section 4.6).
    fn check_push(&self) -> Result<(), u32> {
        match (self.kind, self.peer) {
            (Some(PUSH), PeerRole::Client) => Err(code::STREAM_CREATION_ERROR),
            (Some(PUSH), PeerRole::Server) => Err(code::ID_ERROR),
            _ => Ok(()),
        }
    }

    /// Only stream cancellations are valid (RFC 9204 section 4.4.2), because there are no insertions and no references.
    fn decoder(&mut self, byte: u8) -> Result<(), u32> {
        if self.in_integer {
            self.in_integer = byte & 0x80 != 0;
        } else if byte & 0xc0 == 0x40 {
            self.in_integer = byte & 0x3f == 0x3f;
        } else {
            return Err(code::QPACK_DECODER_STREAM_ERROR);
        }
        Ok(())
    }

    fn control(&mut self, bytes: &[u8]) -> Result<(), u32> {
        self.waiting.extend_from_slice(bytes);
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = &waiting[..];
        while let Some((kind, payload, after)) = whole_frame(rest) {
            self.frame(kind, payload)?;
            rest = after;
        }
        self.waiting.extend_from_slice(rest);
        Ok(())
    }

    fn frame(&mut self, kind: u64, payload: &[u8]) -> Result<(), u32> {
        let identifier = || match varint::decode(payload) {
            Some((identifier, length)) if length == payload.len() => Ok(identifier),
            _ => Err(code::FRAME_ERROR),
        };
        match kind {
            SETTINGS => settings(payload),
            GOAWAY => identifier().map(drop),
            // No push was promised (section 7.2.3) or permitted.
            CANCEL_PUSH => Err(identifier().err().unwrap_or(code::ID_ERROR)),
            MAX_PUSH_ID => {
                let identifier = identifier()?;
                if identifier < self.max_push_id {
                    return Err(code::ID_ERROR);
                }
                self.max_push_id = identifier;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn whole_frame(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (kind, first) = varint::decode(bytes)?;
    let (length, second) = varint::decode(&bytes[first..])?;
    let (payload, after) = bytes[first + second..].split_at_checked(usize::try_from(length).ok()?)?;
    Some((kind, payload, after))
}

/// Checks the pairs of identifier and value (RFC 9114 section 7.2.4).
fn settings(mut payload: &[u8]) -> Result<(), u32> {
    while !payload.is_empty() {
        let (identifier, first) = varint::decode(payload).ok_or(code::FRAME_ERROR)?;
        let (value, second) = varint::decode(&payload[first..]).ok_or(code::FRAME_ERROR)?;
        if BINARY_SETTINGS.contains(&identifier) && value > 1 {
            return Err(code::SETTINGS_ERROR);
        }
        payload = &payload[first + second..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(peer: PeerRole, bytes: &[u8], cut: usize) -> Result<(), u32> {
        let mut guard = UnidirectionalValidator::new(peer, 1000);
        bytes.chunks(cut).try_for_each(|piece| guard.validate(piece))
    }

    #[test]
    fn server_push_is_rejected() {
        // Pushes were never permitted (RFC 9114 section 4.6), so they can be neither sent nor cancelled (section
        // 7.2.3).
        assert_eq!(judge(PeerRole::Server, &[1, 0], 1), Err(0x108));
        assert_eq!(judge(PeerRole::Server, &[0, 3, 1, 0], 4), Err(0x108));
        assert_eq!(judge(PeerRole::Client, &[1], 1), Err(0x103));
    }

    #[test]
    fn stream_cancellations_are_accepted_without_limit() {
        let mut guard = UnidirectionalValidator::new(PeerRole::Client, 10);
        // Stream ID 2^40 takes six bits and six times seven.
        let cancelled = [0x40 | 0x3f, 0xc1, 0xff, 0xff, 0xff, 0xff, 0x1f];
        assert_eq!(guard.validate(&[3]), Ok(()));
        assert!((0..100).all(|_| guard.validate(&cancelled).is_ok() && guard.validate(&[0x44]).is_ok()));
        assert_eq!(guard.validate(&[0x80]), Err(0x202));
    }

    #[test]
    fn buffered_bytes_are_limited() {
        let mut guard = UnidirectionalValidator::new(PeerRole::Client, 10);
        // A frame of 100 bytes is incomplete after ten.
        assert_eq!(guard.validate(&[0, 0x21, 0x40, 100, 0, 0, 0, 0, 0, 0, 0]), Ok(()));
        assert_eq!(guard.validate(&[0]), Err(0x107));
    }

    proptest! {
        #[test]
        fn verdict_on_arbitrary_bytes_is_independent_of_their_split(kind in 0u8..5, bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..40) {
            let stream = [&[kind][..], &bytes].concat();
            prop_assert_eq!(judge(PeerRole::Client, &stream, cut), judge(PeerRole::Client, &stream, 1));
        }
    }
}
