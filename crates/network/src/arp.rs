//! Address resolution on a shared segment (RFC 826): who knows whom, and which packets wait.
//!
//! The model. A station that has a packet for a neighbour it does not know holds the packet, at most `pending_packets`
//! of them per neighbour; more are dropped at once. The request goes out after a delay (fixed per station, or drawn
//! once per resolution: stations that start together must not ask together) and is broadcast; the neighbour answers at
//! once, to the asker alone. When the answer is there, what waited leaves in the order in which it came. Without an
//! answer the station asks again, without delay, every `reply_timeout`; after `max_requests` what waits is dropped and
//! forgotten, and the next packet begins anew.
//!
//! Two simplifications, both those of the simulator whose study we reproduce. RFC 826 lets a station that is asked
//! learn the asker's address from the request; here it learns nothing and will ask for itself. And an answer is good
//! for ever: the run of a study is shorter than the minutes after which entries age.

use crate::packet::Handle;
use fullpipe_units::{Duration, Instant, Stream};
use std::collections::BTreeMap;

/// Settings of address resolution on one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpSpecification {
    /// Whether addresses must be resolved; otherwise all are known from the start.
    pub enabled: bool,
    /// Packets that may wait for one address.
    pub pending_packets: u32,
    /// The first request of a resolution is delayed by a draw from 0 up to but not including this...
    pub request_jitter: Duration,
    /// ...rounded down to a multiple of this; 0: not rounded.
    pub request_jitter_step: Duration,
    /// Delays instead of draws: one per station, in order; stations beyond the list draw.
    pub fixed_delays: Vec<Duration>,
    /// How long to wait for a reply before asking again.
    pub reply_timeout: Duration,
    /// Requests before the waiting packets are dropped; at least one is made.
    pub max_requests: u32,
}

/// What becomes of a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The address is known: send it.
    Known,
    /// It waits.
    Waits,
    /// Too many wait already.
    Refused,
}

/// What a resolution that is due wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Broadcast a request.
    Ask,
    /// Drop these.
    GiveUp(Vec<Handle>),
}

#[derive(Debug)]
enum Entry {
    Known,
    Asking { waiting: Vec<Handle>, requests: u32, due: Instant },
}

/// What one station knows of its neighbours.
#[derive(Debug)]
pub(crate) struct Resolver {
    fixed_delay: Option<Duration>,
    stream: Stream,
    entries: BTreeMap<u32, Entry>,
}

impl Resolver {
    /// A station that knows nobody. `stream` is its own, for the delays of its requests.
    pub(crate) fn new(fixed_delay: Option<Duration>, stream: Stream) -> Self {
        Resolver { fixed_delay, stream, entries: BTreeMap::new() }
    }

    /// A packet for `neighbour` comes.
    pub(crate) fn submit(
        &mut self,
        specification: &ArpSpecification,
        now: Instant,
        neighbour: u32,
        packet: Handle,
    ) -> Lookup {
        if !specification.enabled {
            return Lookup::Known;
        }
        let Resolver { fixed_delay, stream, entries } = self;
        let entry = entries.entry(neighbour).or_insert_with(|| {
            let delay = fixed_delay.unwrap_or_else(|| jitter(specification, stream));
            Entry::Asking { waiting: Vec::new(), requests: 0, due: now.saturating_add(delay) }
        });
        match entry {
            Entry::Known => Lookup::Known,
            Entry::Asking { waiting, .. } if waiting.len() < specification.pending_packets as usize => {
                waiting.push(packet);
                Lookup::Waits
            }
            Entry::Asking { .. } => Lookup::Refused,
        }
    }

    /// `neighbour` has answered: what waited for it, in order.
    pub(crate) fn answered(&mut self, neighbour: u32) -> Vec<Handle> {
        match self.entries.insert(neighbour, Entry::Known) {
            Some(Entry::Asking { waiting, .. }) => waiting,
            _ => Vec::new(),
        }
    }

    /// The next resolution that is due at `now` (in the order of neighbours), and what it wants done.
    pub(crate) fn next_due(&mut self, specification: &ArpSpecification, now: Instant) -> Option<(u32, Due)> {
        let (&neighbour, entry) =
            self.entries.iter_mut().find(|(_, entry)| matches!(entry, Entry::Asking { due, .. } if *due <= now))?;
        let Entry::Asking { waiting, requests, due } = entry else { return None };
        if *requests < specification.max_requests.max(1) {
            *requests += 1;
            // A time-out of nothing would ask for ever at one instant.
            *due = now.saturating_add(specification.reply_timeout.max(Duration::from_nanos(1)));
            return Some((neighbour, Due::Ask));
        }
        let waiting = std::mem::take(waiting);
        self.entries.remove(&neighbour);
        Some((neighbour, Due::GiveUp(waiting)))
    }

    /// When the station must be woken next.
    pub(crate) fn next_wake(&self) -> Instant {
        let due = |entry: &Entry| match entry {
            Entry::Known => Instant::NEVER,
            Entry::Asking { due, .. } => *due,
        };
        self.entries.values().map(due).min().unwrap_or(Instant::NEVER)
    }
}

/// Delay of a resolution's first request.
fn jitter(specification: &ArpSpecification, stream: &mut Stream) -> Duration {
    let drawn = stream.duration_below(specification.request_jitter);
    match specification.request_jitter_step.as_nanos() {
        0 => drawn,
        step => Duration::from_nanos(drawn.as_nanos() / step * step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specification() -> ArpSpecification {
        ArpSpecification {
            enabled: true,
            pending_packets: 2,
            request_jitter: Duration::from_millis(10),
            request_jitter_step: Duration::from_millis(1),
            fixed_delays: Vec::new(),
            reply_timeout: Duration::from_secs(1),
            max_requests: 2,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn resolver(fixed_ms: Option<u64>) -> Resolver {
        Resolver::new(fixed_ms.map(Duration::from_millis), Stream::new(1, "station", "address-resolution"))
    }

    #[test]
    fn packets_wait_up_to_the_limit_and_leave_in_order() {
        let (specification, mut resolver) = (specification(), resolver(Some(4)));
        let submit =
            |resolver: &mut Resolver, ms, neighbour, n| resolver.submit(&specification, at(ms), neighbour, Handle(n));
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        assert_eq!(submit(&mut resolver, 1, 7, 10), Lookup::Waits);
        assert_eq!(submit(&mut resolver, 2, 7, 11), Lookup::Waits);
        assert_eq!(submit(&mut resolver, 3, 7, 12), Lookup::Refused);
        assert_eq!(submit(&mut resolver, 3, 5, 13), Lookup::Waits, "each neighbour has its own");
        assert_eq!(resolver.next_wake(), at(5));
        assert_eq!(resolver.answered(7), [Handle(10), Handle(11)]);
        assert_eq!(resolver.next_wake(), at(7));
        assert_eq!(submit(&mut resolver, 9_000_000, 7, 14), Lookup::Known, "for ever");
        assert_eq!(resolver.answered(7), []);
        assert_eq!(resolver.answered(9), [], "an answer to a question that nobody asked");
        assert_eq!(submit(&mut resolver, 9_000_000, 9, 15), Lookup::Known);
    }

    #[test]
    fn requests_are_repeated_and_given_up_in_the_order_of_neighbours() {
        let (specification, mut resolver) = (specification(), resolver(Some(4)));
        for neighbour in [8, 3] {
            resolver.submit(&specification, at(0), neighbour, Handle(neighbour));
        }
        assert_eq!(resolver.next_due(&specification, at(3)), None);
        for (ms, what) in [(4, "first"), (1004, "second")] {
            assert_eq!(resolver.next_wake(), at(ms), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), Some((3, Due::Ask)), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), Some((8, Due::Ask)), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), None, "{what}");
        }
        assert_eq!(resolver.next_due(&specification, at(2004)), Some((3, Due::GiveUp(vec![Handle(3)]))));
        assert_eq!(resolver.next_due(&specification, at(2004)), Some((8, Due::GiveUp(vec![Handle(8)]))));
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        assert_eq!(resolver.submit(&specification, at(3000), 3, Handle(1)), Lookup::Waits);
        assert_eq!(resolver.next_wake(), at(3004), "it begins anew");
    }

    #[test]
    fn delays_are_uniform_over_the_steps() {
        // Ten steps of 1 ms: Binomial(10 000, 1/10) each: mean 1000, standard deviation 30; five of them on either side.
        let (specification, mut resolver) = (specification(), resolver(None));
        let mut seen = [0u32; 10];
        for neighbour in 0..10_000 {
            resolver.submit(&specification, at(0), neighbour, Handle(0));
            let delay = resolver.next_wake().as_nanos();
            assert_eq!(delay % 1_000_000, 0);
            seen[(delay / 1_000_000) as usize] += 1;
            resolver.answered(neighbour);
        }
        assert!(seen.iter().all(|n| (850..=1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn without_resolution_everybody_is_known_and_odd_settings_end() {
        let mut resolver = resolver(None);
        let off = ArpSpecification { enabled: false, ..specification() };
        assert_eq!(resolver.submit(&off, at(0), 1, Handle(0)), Lookup::Known);
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        // No room, no jitter, no time-out, no requests: still one request, and an end.
        let nothing = ArpSpecification {
            pending_packets: 0,
            request_jitter: Duration::ZERO,
            reply_timeout: Duration::ZERO,
            max_requests: 0,
            ..specification()
        };
        assert_eq!(resolver.submit(&nothing, at(0), 1, Handle(0)), Lookup::Refused);
        assert_eq!(resolver.next_due(&nothing, at(0)), Some((1, Due::Ask)));
        assert_eq!(resolver.next_due(&nothing, at(0)), None);
        assert_eq!(resolver.next_due(&nothing, at(1)), Some((1, Due::GiveUp(Vec::new()))));
    }
}
