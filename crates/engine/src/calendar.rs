//! The pending-event set: a binary heap of 16-byte keys for the next milliseconds, and lists for later events.
//!
//! **Model.** Time is divided into spans of 2^22 ns (4.2 ms). Events of the current span are in the heap. Each of the
//! next 1024 spans (4.3 s) has an unordered list. Later events are in a second heap. When the current span is empty,
//! the events of the next nonempty span move into the heap. A timer that does not expire soon (most do not) therefore
//! adds no cost to other events. With a single heap for all events, 20 000 connections in TIME-WAIT or between requests
//! make every arrival pass through 15 levels (17 % of the time of a Tmix run). The order is total, and equals that of a
//! single heap.
//!
//! With delay lines and lazy timers the heap stays small: tens of entries for one flow, a few per flow for thousands of
//! flows. At these sizes the kind of heap does not affect speed. A timing wheel for all events is slower (5.1 instead
//! of 8.9 million packets per second on one flow).

use fullpipe_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The kind of entity to which an event belongs. At one instant, events are processed in the order of these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventClass {
    /// A frame arrives at the far end of a link.
    Arrival = 0,
    /// A link has completed a transmission and can start the next.
    Departure = 1,
    /// An event of a shared medium or of one of its stations.
    Medium = 2,
    /// A timer of a host's IP layer (reassembly, address resolution).
    Host = 3,
    /// A timer of a transport.
    Transport = 4,
    /// A timer of an application.
    Application = 5,
}

/// The identifier of an event: its class (4 bits) and its number within the class (28 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId(u32);

const INDEX_BITS: u32 = 28;

impl EventId {
    /// The largest number within a class.
    pub const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

    /// Returns the identity of event `index` of a class. `index` must not exceed [`EventId::MAX_INDEX`].
    #[inline(always)]
    pub fn new(class: EventClass, index: u32) -> Self {
        debug_assert!(index <= Self::MAX_INDEX);
        EventId((class as u32) << INDEX_BITS | index)
    }

    /// Returns the class of the event.
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

    /// Returns the number of the event within its class.
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.0 & Self::MAX_INDEX
    }
}

/// The pending events, in a total order by time, class and number.
///
/// ```
/// use fullpipe_engine::{Calendar, EventClass, EventId};
/// use fullpipe_units::Instant;
/// let mut calendar = Calendar::new();
/// let timer = EventId::new(EventClass::Transport, 0);
/// let arrival = EventId::new(EventClass::Arrival, 9);
/// calendar.schedule(Instant::from_nanos(5), timer);
/// calendar.schedule(Instant::from_nanos(5), arrival);
/// assert_eq!(calendar.peek(), Some((Instant::from_nanos(5), arrival)));
/// ```
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Events before `edge`. Empty only if no event is pending.
    near: BinaryHeap<Reverse<u128>>,
    /// Whether [`Calendar::pop_deferred`] has removed the earliest event and its place is still free.
    taken: bool,
    /// End of the current span.
    edge: Instant,
    later: Box<Later>,
}

/// Length of a span, as a power of two of nanoseconds.
const SPAN_BITS: u32 = 22;
/// Number of spans with a list; a power of two.
const SPANS: u64 = 1024;
/// Marks the end of a list.
const NONE: u32 = u32::MAX;

/// Events at the end of the current span or later.
#[derive(Clone, Debug)]
struct Later {
    /// Number of the first span after the current one; it starts at `edge`.
    first: u64,
    /// First event of each list. Span `n` has list `n` modulo [`SPANS`].
    heads: Vec<u32>,
    /// Number of events in lists.
    listed: usize,
    /// Entries of the lists. The free entries form a list as well.
    entries: Vec<Entry>,
    free: u32,
    /// Events that were later than the last list when they were scheduled.
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
    /// Returns an empty calendar.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event. An event can be pending more than once; its owner must then ignore all but one.
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

    /// Returns the time and the identity of the earliest pending event; `None` if no event is pending.
    #[inline(always)]
    pub fn peek(&self) -> Option<(Instant, EventId)> {
        debug_assert!(!self.taken, "`complete_pop` must be called before `peek`");
        self.near.peek().map(event_of)
    }

    /// Returns the event at index `place` of the heap; `None` if the heap has no such index. The earliest event is at
    /// index 0. The second event in the heap is at index 1 or 2, and the third is at one of the indices 1 to 6.
    #[inline(always)]
    pub fn upcoming(&self, place: usize) -> Option<EventId> {
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

    /// Removes the earliest event. The next scheduled event takes its place in the heap. Most events cause one more
    /// event, and a replacement is cheaper than a removal and an insertion. Until [`Calendar::complete_pop`], only
    /// `schedule` may be called.
    #[inline(always)]
    pub fn pop_deferred(&mut self) {
        debug_assert!(!self.taken && !self.near.is_empty(), "`pop_deferred` needs a pending event");
        self.taken = true;
    }

    /// Completes [`Calendar::pop_deferred`] after all events caused by the removed event have been scheduled.
    #[inline(always)]
    pub fn complete_pop(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.pop();
        }
    }

    /// Replaces the earliest event with another one, which is cheaper than a removal and an insertion.
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

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        self.near.len() - usize::from(self.taken) + self.later.listed + self.later.far.len()
    }

    /// Returns whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event after the current span.
    #[inline(never)]
    fn put_off(&mut self, at: Instant, event: EventId) {
        self.later.add(at, event);
        if self.near.is_empty() {
            self.go_on();
        }
    }

    /// Ends the current span and makes the next nonempty span current.
    #[inline(never)]
    fn go_on(&mut self) {
        self.later.take_next(&mut self.near);
        self.edge = Instant::from_nanos(self.later.first.saturating_mul(1 << SPAN_BITS));
    }
}

impl Later {
    fn add(&mut self, at: Instant, event: EventId) {
        let span = span(at);
        // The span of the largest `Instant` can precede `first`; its event then stays in its list until that list is
        // used again.
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

    /// Moves the events of the next nonempty span into `near`, which is empty.
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
    use fullpipe_units::RandomStream;

    #[test]
    fn events_are_ordered_by_time_then_class_then_number() {
        let mut stream = RandomStream::new(1, "calendar", "test");
        let mut calendar = Calendar::new();
        let mut expected = Vec::new();
        for _ in 0..2000 {
            let at = stream.uniform_below(50);
            let class =
                [EventClass::Arrival, EventClass::Host, EventClass::Application][stream.uniform_below(3) as usize];
            let index = stream.uniform_below(1000) as u32;
            calendar.schedule(Instant::from_nanos(at), EventId::new(class, index));
            expected.push((at, class, index));
        }
        expected.sort();
        for (at, class, index) in expected {
            let (time, event) = calendar.peek().unwrap();
            assert_eq!((time.as_nanos(), event.class(), event.index()), (at, class, index));
            calendar.pop();
        }
        assert!(calendar.is_empty());
    }

    #[test]
    fn replace_equals_pop_and_schedule() {
        let mut calendar = Calendar::new();
        for n in 0..10 {
            calendar.schedule(Instant::from_nanos(n), EventId::new(EventClass::Arrival, n as u32));
        }
        calendar.replace(Instant::from_nanos(5), EventId::new(EventClass::Arrival, 0));
        let mut order = Vec::new();
        while let Some((at, event)) = calendar.peek() {
            order.push((at.as_nanos(), event.index()));
            calendar.pop();
        }
        assert_eq!(order, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 0), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9)]);
    }

    #[test]
    fn events_at_any_distance_are_returned_in_order() {
        // The reference is a sorted list. Distances range from zero to a day: within a span, within the lists, and
        // beyond them.
        let mut stream = RandomStream::new(2, "calendar", "test");
        for most in [1_000u64, 10_000_000, 3_000_000_000, 20_000_000_000, 86_400_000_000_000] {
            let mut calendar = Calendar::new();
            let mut expected = std::collections::BTreeSet::new();
            let mut now = 0u64;
            for step in 0..20_000u32 {
                assert_eq!(calendar.len(), expected.len());
                let at = now + stream.uniform_below(most) * stream.uniform_below(2);
                let (class, index) = ([EventClass::Arrival, EventClass::Transport][step as usize % 2], step);
                match stream.uniform_below(4) {
                    3 if !expected.is_empty() => {
                        // Each event causes zero, one or two further events.
                        expected.pop_first();
                        calendar.pop_deferred();
                        for number in 0..stream.uniform_below(3) as u32 {
                            let at = now + stream.uniform_below(most);
                            let index = 20_000 * (1 + number) + step;
                            expected.insert((at, class, index));
                            calendar.schedule(Instant::from_nanos(at), EventId::new(class, index));
                            assert_eq!(calendar.len(), expected.len());
                        }
                        calendar.complete_pop();
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
                let next = calendar.peek().map(|(at, event)| (at.as_nanos(), event.class(), event.index()));
                assert_eq!(next, expected.first().copied());
                assert_eq!(calendar.is_empty(), expected.is_empty());
                now = next.map_or(now, |next| next.0);
            }
        }
    }

    #[test]
    fn an_event_may_be_scheduled_before_the_current_span() {
        let mut calendar = Calendar::new();
        let event = |index| EventId::new(EventClass::Arrival, index);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        calendar.schedule(at(100), event(0));
        calendar.schedule(at(3), event(1));
        calendar.schedule(at(2), event(2));
        calendar.schedule(Instant::from_nanos(u64::MAX), event(3));
        calendar.schedule(at(200), event(4));
        let mut order = Vec::new();
        while let Some((at, event)) = calendar.peek() {
            order.push((at.as_nanos(), event.index()));
            calendar.pop();
        }
        let second = 1_000_000_000;
        assert_eq!(order, [(2 * second, 2), (3 * second, 1), (100 * second, 0), (200 * second, 4), (u64::MAX, 3)]);
    }
}
