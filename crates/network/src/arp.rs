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

/// Bytes of a request or a reply for IPv4 over Ethernet, without framing (RFC 826: 8 + 2 x (6 + 4)).
pub const ARP_BYTES: u32 = 28;

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
