//! The pending-event set: a binary heap over 16-byte keys for the next milliseconds, and lists for what is later.
//!
//! **Model.** Time is cut into spans of 2^22 ns (4.2 ms). Events of the present span stand in the heap; those of the next
//! 1024 spans (4.3 s) in a list for each span, unordered; later ones in a heap of their own. When the present span has
//! nothing left, the next one that has anything is put into the heap. So a timer that will not fire soon, as most do not,
//! costs the others nothing: with one heap for all, twenty thousand connections that wait for their next request or in
//! TIME-WAIT make every arrival go through fifteen levels of it (17 % of the time of a run of Tmix). The order is total,
//! and the same as that of one heap.
//!
//! With lanes and lazy timers the heap stays small (tens of entries for one flow, a few per flow for thousands), and
//! the kind of heap does not matter; a timing wheel for everything is slower (5.1 against 8.9 million packets per second
//! on one flow).

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
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Events before `edge`. Not empty, unless nothing is pending at all.
    near: BinaryHeap<Reverse<u128>>,
    /// Whether the earliest has been taken and its place not filled.
    taken: bool,
    /// End of the present span.
    edge: Instant,
    later: Box<Later>,
}

/// Spans as a power of two of nanoseconds.
const SPAN_BITS: u32 = 22;
/// Spans with a list; a power of two.
const SPANS: u64 = 1024;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// What happens at the end of the present span or later.
#[derive(Clone, Debug)]
struct Later {
    /// Number of the first span beyond the present one; `edge` is its begin.
    first: u64,
    /// First event of each list: span number `n` has the list `n` modulo [`SPANS`].
    heads: Vec<u32>,
    /// Events in lists.
    listed: usize,
    /// What lists consist of, and the free entries, which are a list as well.
    entries: Vec<Entry>,
    free: u32,
    /// Beyond the last list when they came.
    far: BinaryHeap<Reverse<u128>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    event: EventId,
    next: u32,
}

#[inline(always)]
fn key(at: Instant, event: EventId) -> Reverse<u128> {
    Reverse(u128::from(at.as_nanos()) << 64 | u128::from(event.0))
}

#[inline(always)]
fn event_of(Reverse(key): &Reverse<u128>) -> (Instant, EventId) {
    (Instant::from_nanos((key >> 64) as u64), EventId(*key as u32))
}

fn span(at: Instant) -> u64 {
    at.as_nanos() >> SPAN_BITS
}

impl Default for Calendar {
    fn default() -> Self {
        let later = Later {
            first: 0,
            heads: vec![NONE; SPANS as usize],
            listed: 0,
            entries: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
        };
        Calendar { near: BinaryHeap::new(), taken: false, edge: Instant::ZERO, later: Box::new(later) }
    }
}

impl Calendar {
    /// An empty calendar.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event. The same event may be pending more than once; its owner must then take the extra as harmless.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: EventId) {
        if at >= self.edge {
            self.put_off(at, event);
        } else if self.taken {
            self.taken = false;
            self.replace(at, event);
        } else {
            self.near.push(key(at, event));
        }
    }

    /// The earliest pending event.
    #[inline(always)]
    pub fn next(&self) -> Option<(Instant, EventId)> {
        debug_assert!(!self.taken, "what was taken is settled before");
        self.near.peek().map(event_of)
    }

    /// An event that is due soon: place 0 has the earliest, places 1 and 2 the candidates for the next, places 3 to 6 those for
    /// the two after that.
    #[inline(always)]
    pub fn soon(&self, place: usize) -> Option<EventId> {
        self.near.as_slice().get(place).map(|key| event_of(key).1)
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) {
        self.near.pop();
        if self.near.is_empty() {
            self.go_on();
        }
    }

    /// Removes the earliest event, for which the next that is scheduled takes its place: most events lead to one more, and
    /// replacing is cheaper than removing and adding. Until [`Calendar::settle`], nothing but that may be asked for.
    #[inline(always)]
    pub fn take(&mut self) {
        debug_assert!(!self.taken && !self.near.is_empty(), "there is one to be taken");
        self.taken = true;
    }

    /// What followed from the event that was taken has been scheduled.
    #[inline(always)]
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.pop();
        }
    }

    /// Replaces the earliest event by another: cheaper than removing and adding.
    #[inline]
    pub fn replace(&mut self, at: Instant, event: EventId) {
        if at < self.edge
            && let Some(mut top) = self.near.peek_mut()
        {
            *top = key(at, event);
            drop::<PeekMut<'_, _>>(top);
        } else {
            self.near.pop();
            self.schedule(at, event);
            if self.near.is_empty() {
                self.go_on();
            }
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.near.len() - usize::from(self.taken) + self.later.listed + self.later.far.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An event beyond the present span.
    #[inline(never)]
    fn put_off(&mut self, at: Instant, event: EventId) {
        self.later.add(at, event);
        if self.near.is_empty() {
            self.go_on();
        }
    }

    /// The present span is over: the next one with events becomes it.
    #[inline(never)]
    fn go_on(&mut self) {
        self.later.take_next(&mut self.near);
        self.edge = Instant::from_nanos(self.later.first.saturating_mul(1 << SPAN_BITS));
    }
}

impl Later {
    fn add(&mut self, at: Instant, event: EventId) {
        let span = span(at);
        // The last instant of all may lie in a span that has been taken; it then waits for the list to come round.
        if span.saturating_sub(self.first) >= SPANS {
            return self.far.push(key(at, event));
        }
        let head = &mut self.heads[(span % SPANS) as usize];
        let entry = Entry { at, event, next: *head };
        if let Some(free) = self.entries.get_mut(self.free as usize) {
            *head = std::mem::replace(&mut self.free, free.next);
            *free = entry;
        } else {
            *head = self.entries.len() as u32;
            self.entries.push(entry);
        }
        self.listed += 1;
    }

    /// Puts the events of the next span that has any into `near`, which is empty.
    fn take_next(&mut self, near: &mut BinaryHeap<Reverse<u128>>) {
        while near.is_empty() {
            if self.listed == 0 {
                let Some(far) = self.far.peek() else { return };
                self.first = self.first.max(span(event_of(far).0));
            }
            while let Some((at, event)) = self.far.peek().map(event_of)
                && span(at).saturating_sub(self.first) < SPANS
            {
                self.far.pop();
                self.add(at, event);
            }
            let mut next = std::mem::replace(&mut self.heads[(self.first % SPANS) as usize], NONE);
            while let Some(entry) = self.entries.get_mut(next as usize) {
                near.push(key(entry.at, entry.event));
                self.listed -= 1;
                let following = std::mem::replace(&mut entry.next, std::mem::replace(&mut self.free, next));
                next = following;
            }
            self.first += 1;
        }
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

    #[test]
    fn events_of_all_distances_come_in_order_while_time_goes_on() {
        // The reference is a sorted list. Distances from nothing to a day: within a span, within the lists, beyond them.
        let mut stream = Stream::new(2, "calendar", "test");
        for most in [1_000u64, 10_000_000, 3_000_000_000, 20_000_000_000, 86_400_000_000_000] {
            let mut calendar = Calendar::new();
            let mut expected = std::collections::BTreeSet::new();
            let mut now = 0u64;
            for step in 0..20_000u32 {
                assert_eq!(calendar.len(), expected.len());
                let at = now + stream.below(most) * stream.below(2);
                let (class, index) = ([EventClass::Arrival, EventClass::Transport][step as usize % 2], step);
                match stream.below(4) {
                    3 if !expected.is_empty() => {
                        // What follows from an event: nothing, or one or two others.
                        expected.pop_first();
                        calendar.take();
                        for number in 0..stream.below(3) as u32 {
                            let at = now + stream.below(most);
                            let index = 20_000 * (1 + number) + step;
                            expected.insert((at, class, index));
                            calendar.schedule(Instant::from_nanos(at), EventId::new(class, index));
                            assert_eq!(calendar.len(), expected.len());
                        }
                        calendar.settle();
                    }
                    0 if !expected.is_empty() => {
                        expected.pop_first();
                        calendar.pop();
                    }
                    1 if !expected.is_empty() => {
                        expected.pop_first();
                        expected.insert((at, class, index));
                        calendar.replace(Instant::from_nanos(at), EventId::new(class, index));
                    }
                    _ => {
                        expected.insert((at, class, index));
                        calendar.schedule(Instant::from_nanos(at), EventId::new(class, index));
                    }
                }
                let next = calendar.next().map(|(at, event)| (at.as_nanos(), event.class(), event.index()));
                assert_eq!(next, expected.first().copied());
                assert_eq!(calendar.is_empty(), expected.is_empty());
                now = next.map_or(now, |next| next.0);
            }
        }
    }

    #[test]
    fn an_event_may_come_before_the_present_span() {
        let mut calendar = Calendar::new();
        let event = |index| EventId::new(EventClass::Arrival, index);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        calendar.schedule(at(100), event(0));
        calendar.schedule(at(3), event(1));
        calendar.schedule(at(2), event(2));
        calendar.schedule(Instant::from_nanos(u64::MAX), event(3));
        calendar.schedule(at(200), event(4));
        let mut order = Vec::new();
        while let Some((at, event)) = calendar.next() {
            order.push((at.as_nanos(), event.index()));
            calendar.pop();
        }
        let second = 1_000_000_000;
        assert_eq!(order, [(2 * second, 2), (3 * second, 1), (100 * second, 0), (200 * second, 4), (u64::MAX, 3)]);
    }
}
