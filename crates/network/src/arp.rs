//! Address resolution on a shared segment (ARP, RFC 826): the neighbor entries of each station, and the packets that
//! wait for them.
//!
//! If a station has a packet for an unknown neighbor, it queues the packet, at most `pending_packets` per neighbor;
//! further packets are dropped immediately. The station broadcasts a request after a delay, which is fixed per station
//! or random per resolution. The random delay prevents stations that start together from sending requests together. The
//! neighbor replies immediately by unicast. When the reply arrives, the waiting packets are sent in order. Without a
//! reply, the station repeats the request, without further delay, every `reply_timeout`. After `max_requests` requests
//! the waiting packets are dropped, and the next packet starts a new resolution.
//!
//! There are two simplifications, both as in the simulator whose study we reproduce. First, RFC 826 allows a station
//! that receives a request to learn the sender's address from it; here the station sends its own request later. Second,
//! entries do not expire, because a run of the study is shorter than the usual lifetime of several minutes.

use crate::packet::PacketHandle;
use fullpipe_units::{Duration, Instant, RandomStream};
use std::collections::BTreeMap;

/// Settings of address resolution on one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpSpecification {
    /// Whether addresses must be resolved; otherwise all addresses are known from the start.
    pub enabled: bool,
    /// Maximum number of packets that wait for one address.
    pub pending_packets: u32,
    /// Exclusive maximum of the random delay before the first request of a resolution.
    pub request_jitter: Duration,
    /// Granularity of the random delay, which is rounded down to a multiple of this value; 0 means no rounding.
    pub request_jitter_step: Duration,
    /// Fixed delays instead of random ones, one per station, in order; further stations use random delays.
    pub fixed_delays: Vec<Duration>,
    /// Time to wait for a reply before the request is repeated.
    pub reply_timeout: Duration,
    /// Number of requests before the waiting packets are dropped; at least one is sent.
    pub max_requests: u32,
}

/// The outcome of looking up a neighbor for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolutionStatus {
    /// The address is known, and the packet can be sent.
    Resolved,
    /// The packet waits for the address.
    Pending,
    /// The packet must be dropped, because too many packets wait already.
    QueueFull,
}

/// The action of a resolution that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResolutionAction {
    /// Broadcast a request.
    SendRequest,
    /// Drop these packets.
    DropPackets(Vec<PacketHandle>),
}

#[derive(Debug)]
enum Entry {
    Known,
    Asking { waiting: Vec<PacketHandle>, requests: u32, due: Instant },
}

/// The neighbor entries of one station.
#[derive(Debug)]
pub(crate) struct Resolver {
    fixed_delay: Option<Duration>,
    stream: RandomStream,
    entries: BTreeMap<u32, Entry>,
}

impl Resolver {
    /// Returns a resolver without entries. The delays of requests are drawn from `stream`, which must be the station's
    /// own.
    pub(crate) fn new(fixed_delay: Option<Duration>, stream: RandomStream) -> Self {
        Resolver { fixed_delay, stream, entries: BTreeMap::new() }
    }

    /// Looks up the address of `neighbour` for a packet.
    pub(crate) fn submit(
        &mut self,
        specification: &ArpSpecification,
        now: Instant,
        neighbour: u32,
        packet: PacketHandle,
    ) -> ResolutionStatus {
        if !specification.enabled {
            return ResolutionStatus::Resolved;
        }
        let Resolver { fixed_delay, stream, entries } = self;
        let entry = entries.entry(neighbour).or_insert_with(|| {
            let delay = fixed_delay.unwrap_or_else(|| jitter(specification, stream));
            Entry::Asking { waiting: Vec::new(), requests: 0, due: now.saturating_add(delay) }
        });
        match entry {
            Entry::Known => ResolutionStatus::Resolved,
            Entry::Asking { waiting, .. } if waiting.len() < specification.pending_packets as usize => {
                waiting.push(packet);
                ResolutionStatus::Pending
            }
            Entry::Asking { .. } => ResolutionStatus::QueueFull,
        }
    }

    /// Processes a reply from `neighbour`; returns the packets that waited for this neighbor, in order.
    pub(crate) fn answered(&mut self, neighbour: u32) -> Vec<PacketHandle> {
        match self.entries.insert(neighbour, Entry::Known) {
            Some(Entry::Asking { waiting, .. }) => waiting,
            _ => Vec::new(),
        }
    }

    /// Returns the next resolution that is due at `now` (in order of the neighbors' numbers), and its action.
    pub(crate) fn next_due(
        &mut self,
        specification: &ArpSpecification,
        now: Instant,
    ) -> Option<(u32, ResolutionAction)> {
        let (&neighbour, entry) =
            self.entries.iter_mut().find(|(_, entry)| matches!(entry, Entry::Asking { due, .. } if *due <= now))?;
        let Entry::Asking { waiting, requests, due } = entry else { return None };
        if *requests < specification.max_requests.max(1) {
            *requests += 1;
            // With a timeout of zero, requests would be repeated forever at one instant.
            *due = now.saturating_add(specification.reply_timeout.max(Duration::from_nanos(1)));
            return Some((neighbour, ResolutionAction::SendRequest));
        }
        let waiting = std::mem::take(waiting);
        self.entries.remove(&neighbour);
        Some((neighbour, ResolutionAction::DropPackets(waiting)))
    }

    /// Returns the time of the next timer of the station.
    pub(crate) fn next_wake(&self) -> Instant {
        let due = |entry: &Entry| match entry {
            Entry::Known => Instant::NEVER,
            Entry::Asking { due, .. } => *due,
        };
        self.entries.values().map(due).min().unwrap_or(Instant::NEVER)
    }
}

/// Returns the delay of the first request of a resolution.
fn jitter(specification: &ArpSpecification, stream: &mut RandomStream) -> Duration {
    let drawn = stream.uniform_duration(specification.request_jitter);
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
        Resolver::new(fixed_ms.map(Duration::from_millis), RandomStream::new(1, "station", "address-resolution"))
    }

    #[test]
    fn packets_wait_up_to_the_limit_and_leave_in_order() {
        let (specification, mut resolver) = (specification(), resolver(Some(4)));
        let submit = |resolver: &mut Resolver, ms, neighbour, n| {
            resolver.submit(&specification, at(ms), neighbour, PacketHandle(n))
        };
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        assert_eq!(submit(&mut resolver, 1, 7, 10), ResolutionStatus::Pending);
        assert_eq!(submit(&mut resolver, 2, 7, 11), ResolutionStatus::Pending);
        assert_eq!(submit(&mut resolver, 3, 7, 12), ResolutionStatus::QueueFull);
        assert_eq!(submit(&mut resolver, 3, 5, 13), ResolutionStatus::Pending, "each neighbor has its own limit");
        assert_eq!(resolver.next_wake(), at(5));
        assert_eq!(resolver.answered(7), [PacketHandle(10), PacketHandle(11)]);
        assert_eq!(resolver.next_wake(), at(7));
        assert_eq!(submit(&mut resolver, 9_000_000, 7, 14), ResolutionStatus::Resolved, "entries do not expire");
        assert_eq!(resolver.answered(7), []);
        assert_eq!(resolver.answered(9), [], "a reply without a request");
        assert_eq!(submit(&mut resolver, 9_000_000, 9, 15), ResolutionStatus::Resolved);
    }

    #[test]
    fn requests_are_repeated_and_abandoned_in_the_order_of_neighbors() {
        let (specification, mut resolver) = (specification(), resolver(Some(4)));
        for neighbour in [8, 3] {
            resolver.submit(&specification, at(0), neighbour, PacketHandle(neighbour));
        }
        assert_eq!(resolver.next_due(&specification, at(3)), None);
        for (ms, what) in [(4, "first"), (1004, "second")] {
            assert_eq!(resolver.next_wake(), at(ms), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), Some((3, ResolutionAction::SendRequest)), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), Some((8, ResolutionAction::SendRequest)), "{what}");
            assert_eq!(resolver.next_due(&specification, at(ms)), None, "{what}");
        }
        assert_eq!(
            resolver.next_due(&specification, at(2004)),
            Some((3, ResolutionAction::DropPackets(vec![PacketHandle(3)])))
        );
        assert_eq!(
            resolver.next_due(&specification, at(2004)),
            Some((8, ResolutionAction::DropPackets(vec![PacketHandle(8)])))
        );
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        assert_eq!(resolver.submit(&specification, at(3000), 3, PacketHandle(1)), ResolutionStatus::Pending);
        assert_eq!(resolver.next_wake(), at(3004), "the next packet starts a new resolution");
    }

    #[test]
    fn random_delays_are_uniform_over_the_steps() {
        // Ten steps of 1 ms: Binomial(10 000, 1/10) each: mean 1000, standard deviation 30; five standard deviations on
        // either side.
        let (specification, mut resolver) = (specification(), resolver(None));
        let mut seen = [0u32; 10];
        for neighbour in 0..10_000 {
            resolver.submit(&specification, at(0), neighbour, PacketHandle(0));
            let delay = resolver.next_wake().as_nanos();
            assert_eq!(delay % 1_000_000, 0);
            seen[(delay / 1_000_000) as usize] += 1;
            resolver.answered(neighbour);
        }
        assert!(seen.iter().all(|n| (850..=1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn without_resolution_all_are_known_and_zero_settings_terminate() {
        let mut resolver = resolver(None);
        let off = ArpSpecification { enabled: false, ..specification() };
        assert_eq!(resolver.submit(&off, at(0), 1, PacketHandle(0)), ResolutionStatus::Resolved);
        assert_eq!(resolver.next_wake(), Instant::NEVER);
        // No queue, no delay, no timeout, no requests: one request is still sent, and the resolution ends.
        let nothing = ArpSpecification {
            pending_packets: 0,
            request_jitter: Duration::ZERO,
            reply_timeout: Duration::ZERO,
            max_requests: 0,
            ..specification()
        };
        assert_eq!(resolver.submit(&nothing, at(0), 1, PacketHandle(0)), ResolutionStatus::QueueFull);
        assert_eq!(resolver.next_due(&nothing, at(0)), Some((1, ResolutionAction::SendRequest)));
        assert_eq!(resolver.next_due(&nothing, at(0)), None);
        assert_eq!(resolver.next_due(&nothing, at(1)), Some((1, ResolutionAction::DropPackets(Vec::new()))));
    }
}
