//! The pending-event set: a binary heap over 16-byte keys.
//!
//! With lanes and lazy timers the heap stays small (tens of entries for one flow, a few per flow for thousands), and
//! the kind of heap does not matter; a timing wheel is slower (5.1 against 8.9 million packets per second on one flow).

use fullpipe_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// What kind of entity an event belongs to. At one instant, events come in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventClass {
    /// A frame reaches the far end of a link.
    Arrival = 0,
    /// A link has finished a transmission and can begin the next.
    Departure = 1,
    /// A shared medium or a station on it.
    Medium = 2,
    /// Housekeeping of a host's IP layer (reassembly, address resolution).
    Host = 3,
    /// A transport's timer.
    Transport = 4,
    /// An application's timer.
    Application = 5,
}

/// Identity of an event: class (4 bits) and number within the class (28 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId(u32);

const INDEX_BITS: u32 = 28;

impl EventId {
    /// Largest number within a class.
    pub const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

    /// Event `index` of a class.
    #[inline(always)]
    pub fn new(class: EventClass, index: u32) -> Self {
        debug_assert!(index <= Self::MAX_INDEX);
        EventId((class as u32) << INDEX_BITS | index)
    }

    /// The class.
    #[inline(always)]
    pub fn class(self) -> EventClass {
        match self.0 >> INDEX_BITS {
            0 => EventClass::Arrival,
            1 => EventClass::Departure,
            2 => EventClass::Medium,
            3 => EventClass::Host,
            4 => EventClass::Transport,
            _ => EventClass::Application,
        }
    }

    /// The number within the class.
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.0 & Self::MAX_INDEX
    }
}

/// Pending events in their total order.
///
/// ```
/// use fullpipe_engine::{Calendar, EventClass, EventId};
/// use fullpipe_units::Instant;
/// let mut calendar = Calendar::new();
/// let timer = EventId::new(EventClass::Transport, 0);
/// let arrival = EventId::new(EventClass::Arrival, 9);
/// calendar.schedule(Instant::from_nanos(5), timer);
/// calendar.schedule(Instant::from_nanos(5), arrival);
/// assert_eq!(calendar.next(), Some((Instant::from_nanos(5), arrival)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    heap: BinaryHeap<Reverse<u128>>,
}

#[inline(always)]
fn key(at: Instant, event: EventId) -> Reverse<u128> {
    Reverse(u128::from(at.as_nanos()) << 64 | u128::from(event.0))
}

impl Calendar {
    /// An empty calendar.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event. The same event may be pending more than once; its owner must then take the extra as harmless.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: EventId) {
        self.heap.push(key(at, event));
    }

    /// The earliest pending event.
    #[inline(always)]
    pub fn next(&self) -> Option<(Instant, EventId)> {
        self.heap.peek().map(|Reverse(key)| (Instant::from_nanos((key >> 64) as u64), EventId(*key as u32)))
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) {
        self.heap.pop();
    }

    /// Replaces the earliest event by another: cheaper than removing and adding.
    #[inline]
    pub fn replace(&mut self, at: Instant, event: EventId) {
        if let Some(mut top) = self.heap.peek_mut() {
            *top = key(at, event);
            drop::<PeekMut<'_, _>>(top);
        } else {
            self.schedule(at, event);
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Stream;

    #[test]
    fn events_come_by_time_then_class_then_number() {
        let mut stream = Stream::new(1, "calendar", "test");
        let mut calendar = Calendar::new();
        let mut expected = Vec::new();
        for _ in 0..2000 {
            let at = stream.below(50);
            let class = [EventClass::Arrival, EventClass::Host, EventClass::Application][stream.below(3) as usize];
            let index = stream.below(1000) as u32;
            calendar.schedule(Instant::from_nanos(at), EventId::new(class, index));
            expected.push((at, class, index));
        }
        expected.sort();
        for (at, class, index) in expected {
            let (time, event) = calendar.next().unwrap();
            assert_eq!((time.as_nanos(), event.class(), event.index()), (at, class, index));
            calendar.pop();
        }
        assert!(calendar.is_empty());
    }

    #[test]
    fn replacing_is_removing_and_adding() {
        let mut calendar = Calendar::new();
        for n in 0..10 {
            calendar.schedule(Instant::from_nanos(n), EventId::new(EventClass::Arrival, n as u32));
        }
        calendar.replace(Instant::from_nanos(5), EventId::new(EventClass::Arrival, 0));
        let mut order = Vec::new();
        while let Some((at, event)) = calendar.next() {
            order.push((at.as_nanos(), event.index()));
            calendar.pop();
        }
        assert_eq!(order, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 0), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9)]);
    }
}
