//! Tables and queues of a connection's streams by index. Nearly all connections have one stream. The state of the first
//! is stored inline; further memory is allocated with the second.

use crate::stream::Stream;
use std::collections::{BTreeMap, VecDeque};

/// Streams by index. The first is stored inline, because most connections have only one.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    first: Option<Stream>,
    /// Whether the first stream ever existed.
    begun: bool,
    more: Option<Box<MoreSlots>>,
}

#[derive(Debug, Default)]
struct MoreSlots {
    /// The streams with indices from 1.
    streams: Vec<Option<Box<Stream>>>,
    free: Vec<u32>,
    /// The indices of these streams by ID.
    by_id: BTreeMap<u64, u32>,
}

impl StreamTable {
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&Stream> {
        if index == 0 { self.first.as_ref() } else { self.get_further(index) }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Stream> {
        if index == 0 { self.first.as_mut() } else { self.get_further_mut(index) }
    }

    #[inline(never)]
    fn get_further(&self, index: u32) -> Option<&Stream> {
        self.more.as_ref()?.streams.get(index as usize - 1)?.as_deref()
    }

    #[inline(never)]
    fn get_further_mut(&mut self, index: u32) -> Option<&mut Stream> {
        self.more.as_mut()?.streams.get_mut(index as usize - 1)?.as_deref_mut()
    }

    /// Whether streams other than the first have existed, or the first was removed.
    #[inline(always)]
    pub(crate) fn has_several(&self) -> bool {
        self.more.is_some()
    }

    /// The number of indices allocated so far.
    pub(crate) fn len(&self) -> u32 {
        u32::from(self.begun) + self.more.as_ref().map_or(0, |more| more.streams.len() as u32)
    }

    pub(crate) fn live(&self) -> usize {
        self.len() as usize - self.more.as_ref().map_or(0, |more| more.free.len())
    }

    /// The index of the stream with this ID.
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        match &self.first {
            Some(first) if first.id == id => Some(0),
            _ => self.more.as_ref()?.by_id.get(&id).copied(),
        }
    }

    pub(crate) fn insert(&mut self, stream: Stream) -> u32 {
        if !std::mem::replace(&mut self.begun, true) {
            self.first = Some(stream);
            return 0;
        }
        let more = self.more.get_or_insert_default();
        let index = match more.free.pop() {
            Some(0) => {
                self.first = Some(stream);
                return 0;
            }
            Some(index) => index,
            None => {
                more.streams.push(None);
                more.streams.len() as u32
            }
        };
        more.by_id.insert(stream.id, index);
        more.streams[index as usize - 1] = Some(Box::new(stream));
        index
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Stream> {
        let stream = if index == 0 {
            self.first.take()?
        } else {
            *self.more.as_mut()?.streams.get_mut(index as usize - 1)?.take()?
        };
        let more = self.more.get_or_insert_default();
        more.by_id.remove(&stream.id);
        more.free.push(index);
        Some(stream)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        let further =
            self.more.iter_mut().flat_map(|more| more.streams.iter_mut().flatten().map(|stream| &mut **stream));
        self.first.iter_mut().chain(further)
    }
}

/// A queue of indices in the order of insertion. The first is stored inline.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    first: Option<u32>,
    further: Option<Box<VecDeque<u32>>>,
}

impl Queue {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<u32> {
        self.first
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, index: u32) {
        match self.first {
            None => self.first = Some(index),
            Some(_) => self.further.get_or_insert_default().push_back(index),
        }
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) {
        self.first = self.further.as_mut().and_then(|further| further.pop_front());
    }
}

/// The indices of streams with data to send, in the order of IDs. A single one is stored inline.
#[derive(Debug, Default)]
pub(crate) struct ReadyStreams {
    single: [u32; 1],
    count: u32,
    /// All indices, once there were several.
    several: Option<Box<Vec<u32>>>,
}

impl ReadyStreams {
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u32] {
        match &self.several {
            None => &self.single[..self.count as usize],
            Some(several) => several,
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub(crate) fn insert(&mut self, place: usize, index: u32) {
        match &mut self.several {
            None if self.count == 0 => (self.single, self.count) = ([index], 1),
            None => {
                let mut several = self.single.to_vec();
                several.insert(place, index);
                self.several = Some(Box::new(several));
            }
            Some(several) => several.insert(place, index),
        }
    }

    pub(crate) fn remove(&mut self, place: usize) {
        match &mut self.several {
            None => self.count = 0,
            Some(several) => {
                several.remove(place);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = ReadyStreams::default();
    }

    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&u32) -> bool) {
        match &mut self.several {
            None if self.count == 1 && !keeps(&self.single[0]) => self.count = 0,
            None => {}
            Some(several) => several.retain(keeps),
        }
    }
}
