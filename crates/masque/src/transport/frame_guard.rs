//! A bound on what h3 keeps. It reads HTTP/3 frames other than DATA as wholes (RFC 9114 section 7.1: type, length,
//! payload), so a peer that announces a header section of a gigabyte would be given the memory. The guard follows the
//! frames of a stream as they arrive and says when one is too long to go on.

use crate::varint;

/// The DATA frame's type, whose payload is handed on as it comes.
const DATA: u64 = 0;

/// Follows one stream.
#[derive(Clone, Debug)]
pub(super) struct FrameGuard {
    limit: u64,
    head: [u8; 16],
    head_length: usize,
    /// Payload of the present frame that has not come yet.
    missing: u64,
    /// On a stream of one direction a type comes before the frames, and what it carries may be no frames at all.
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Frames,
    /// So many bytes may come altogether.
    Total(u64),
}

impl FrameGuard {
    /// For a request stream: no frame other than DATA may be longer than `limit`.
    pub(super) fn request(limit: u64) -> FrameGuard {
        FrameGuard { limit, head: [0; 16], head_length: 0, missing: 0, mode: Mode::Frames }
    }

    /// For a stream of one direction, control or QPACK: no more than `limit` bytes in its life. Peers that follow the
    /// settings of this side have next to nothing to say there.
    pub(super) fn unidirectional(limit: u64) -> FrameGuard {
        FrameGuard { mode: Mode::Total(limit), ..FrameGuard::request(limit) }
    }

    /// Whether the stream may go on after these bytes.
    pub(super) fn admits(&mut self, mut bytes: &[u8]) -> bool {
        if let Mode::Total(left) = &mut self.mode {
            let admitted = left.checked_sub(bytes.len() as u64);
            *left = admitted.unwrap_or(0);
            return admitted.is_some();
        }
        while !bytes.is_empty() {
            if self.missing > 0 {
                let step = self.missing.min(bytes.len() as u64);
                self.missing -= step;
                bytes = &bytes[step as usize..];
                continue;
            }
            self.head[self.head_length] = bytes[0];
            self.head_length += 1;
            bytes = &bytes[1..];
            let Some((kind, length)) = self.whole_head() else { continue };
            if kind != DATA && length > self.limit {
                return false;
            }
            self.missing = length;
            self.head_length = 0;
        }
        true
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
    fn only_data_may_be_long() {
        let stream = [frame(1, 100, 100), frame(0, 5000, 5000), frame(33, 0, 0), frame(0, 1 << 40, 10)].concat();
        for cut in [1, 7, 6000] {
            let mut guard = FrameGuard::request(100);
            assert!(stream.chunks(cut).all(|piece| guard.admits(piece)));
        }
        for (kind, length) in [(1, 101), (5, 1 << 40), (0x21, 1 << 20)] {
            let stream = [frame(1, 3, 3), frame(0, 200, 200), frame(kind, length, 0)].concat();
            let mut guard = FrameGuard::request(100);
            let (last, before) = stream.split_last().unwrap();
            assert!(guard.admits(before));
            assert!(!guard.admits(&[*last]));
        }
    }

    #[test]
    fn other_streams_have_a_total() {
        let mut guard = FrameGuard::unidirectional(10);
        assert!(guard.admits(&[0; 7]) && guard.admits(&[0; 3]));
        assert!(!guard.admits(&[0]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..40, limit in 0u64..100) {
            let (mut whole, mut pieces) = (FrameGuard::request(limit), FrameGuard::request(limit));
            prop_assert_eq!(whole.admits(&bytes), bytes.chunks(cut).all(|piece| pieces.admits(piece)));
        }
    }
}
