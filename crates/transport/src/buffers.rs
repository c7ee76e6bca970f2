//! Storage of stream content by offset, for streams with content.
//!
//! Most simulated streams have no content and do not use this module. The first byte string that is written or received
//! in a direction of a stream creates a store, which keeps byte strings by offset. Between byte strings can be ranges
//! without content, where only a length was written. If a segment contains both, the ranges without content become zero
//! bytes.

use crate::Payload;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Byte strings by offset, sorted and disjoint.
#[derive(Debug, Default)]
pub struct ByteStore {
    chunks: VecDeque<(u64, Bytes)>,
}

fn end(chunk: &(u64, Bytes)) -> u64 {
    chunk.0 + chunk.1.len() as u64
}

impl ByteStore {
    /// Appends `bytes`; `offset` must not be below the end of the stored content.
    pub fn push(&mut self, offset: u64, bytes: Bytes) {
        debug_assert!(self.chunks.back().is_none_or(|chunk| end(chunk) <= offset));
        if !bytes.is_empty() {
            self.chunks.push_back((offset, bytes));
        }
    }

    /// Stores the part of `bytes` that is at or after `floor` and not stored yet. `offset` is the stream offset of the
    /// first byte.
    pub fn insert(&mut self, mut offset: u64, mut bytes: Bytes, floor: u64) {
        if offset < floor {
            let cut = (floor - offset).min(bytes.len() as u64);
            bytes = bytes.slice(cut as usize..);
            offset += cut;
        }
        let mut index = match self.chunks.back() {
            Some(last) if end(last) > offset => self.chunks.partition_point(|chunk| end(chunk) <= offset),
            _ => self.chunks.len(),
        };
        while !bytes.is_empty() {
            let (next, next_end) = match self.chunks.get(index) {
                Some(chunk) => (chunk.0, end(chunk)),
                None => (u64::MAX, u64::MAX),
            };
            if offset < next {
                let take = (next - offset).min(bytes.len() as u64);
                self.chunks.insert(index, (offset, bytes.split_to(take as usize)));
                index += 1;
                offset += take;
            } else {
                let cut = (next_end - offset).min(bytes.len() as u64);
                bytes = bytes.slice(cut as usize..);
                offset += cut;
                index += 1;
            }
        }
    }

    /// Returns the content of `start..start + length`; `None` if the range has no content. Gaps between byte strings
    /// become zero bytes.
    pub fn slice(&self, start: u64, length: u64) -> Option<Bytes> {
        let stop = start + length;
        let mut index = self.chunks.partition_point(|chunk| end(chunk) <= start);
        let first = self.chunks.get(index).filter(|chunk| chunk.0 < stop)?;
        if first.0 <= start && end(first) >= stop {
            let from = (start - first.0) as usize;
            return Some(first.1.slice(from..from + length as usize));
        }
        let mut whole = BytesMut::zeroed(length as usize);
        while let Some(chunk) = self.chunks.get(index)
            && chunk.0 < stop
        {
            let from = start.max(chunk.0);
            let to = stop.min(end(chunk));
            whole[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&chunk.1[(from - chunk.0) as usize..(to - chunk.0) as usize]);
            index += 1;
        }
        Some(whole.freeze())
    }

    /// Removes and returns the part that begins at `start` and ends at or before `stop`. The part consists of bytes, up
    /// to the end of a stored byte string, or of a length, up to the next byte string. All content before `start` is
    /// discarded.
    pub fn take(&mut self, start: u64, stop: u64) -> Payload {
        self.remove_below(start);
        match self.chunks.front_mut() {
            Some((offset, bytes)) if *offset <= start => {
                let length = (stop - start).min(bytes.len() as u64);
                let taken = bytes.split_to(length as usize);
                *offset += length;
                if bytes.is_empty() {
                    self.chunks.pop_front();
                }
                Payload::Bytes(taken)
            }
            Some((offset, _)) => Payload::Length(stop.min(*offset) - start),
            None => Payload::Length(stop - start),
        }
    }

    /// Returns the number of stored bytes.
    pub fn held_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.1.len()).sum()
    }

    /// Discards the content at or after `offset`.
    pub fn remove_from(&mut self, offset: u64) {
        while let Some(chunk) = self.chunks.back_mut() {
            if chunk.0 >= offset {
                self.chunks.pop_back();
                continue;
            }
            let kept = (offset - chunk.0).min(chunk.1.len() as u64);
            chunk.1.truncate(kept as usize);
            break;
        }
    }

    /// Discards the content before `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        while let Some(chunk) = self.chunks.front_mut() {
            if end(chunk) <= offset {
                self.chunks.pop_front();
                continue;
            }
            if chunk.0 < offset {
                chunk.1 = chunk.1.slice((offset - chunk.0) as usize..);
                chunk.0 = offset;
            }
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn letters(from: u64, length: u64) -> Bytes {
        (from..from + length).map(|offset| b'a' + (offset % 26) as u8).collect()
    }

    #[test]
    fn a_slice_across_chunks_and_a_length_has_zeros_for_the_length() {
        let mut store = ByteStore::default();
        store.push(0, Bytes::from_static(b"abc"));
        store.push(5, Bytes::from_static(b"fg"));
        assert_eq!(store.slice(1, 5).unwrap(), Bytes::from_static(b"bc\0\0f"));
        assert_eq!(store.slice(3, 2), None);
        assert_eq!(store.slice(0, 3).unwrap(), Bytes::from_static(b"abc"));
        store.remove_below(2);
        assert_eq!(store.slice(2, 1).unwrap(), Bytes::from_static(b"c"));
    }

    #[test]
    fn take_stops_at_the_end_of_chunks_and_lengths() {
        let mut store = ByteStore::default();
        store.push(2, Bytes::from_static(b"cd"));
        assert_eq!(store.take(0, 9), Payload::Length(2));
        assert_eq!(store.take(2, 3), Payload::Bytes(Bytes::from_static(b"c")));
        assert_eq!(store.take(3, 9), Payload::Bytes(Bytes::from_static(b"d")));
        assert_eq!(store.take(4, 9), Payload::Length(5));
    }

    proptest! {
        /// Pieces of a text restore the text in any order, also if they overlap or repeat.
        #[test]
        fn pieces_in_any_order_restore_the_text(mut pieces in prop::collection::vec((0u64..90, 1u64..30), 0..30), floor in 0u64..20) {
            pieces.extend((0..12).map(|piece| (piece * 10, 10)));
            let mut store = ByteStore::default();
            for (offset, length) in pieces {
                store.insert(offset, letters(offset, length), floor);
            }
            let mut text = Vec::new();
            let mut at = floor;
            while at < 119 {
                let Payload::Bytes(bytes) = store.take(at, 119) else { panic!("no content at {at}") };
                at += bytes.len() as u64;
                text.extend_from_slice(&bytes);
            }
            prop_assert_eq!(Bytes::from(text), letters(floor, 119 - floor));
        }
    }
}
