//! Time that a host's own processing takes before a packet leaves: random, at most a given limit, in order.
//!
//! Deterministic drop-tail networks have phase effects: which of several flows loses depends on how their packets
//! happen to fall between each other, and the smallest change shifts all shares. Floyd and Jacobson (1991, "On traffic
//! phase effects in packet-switched gateways", section 4) remove them by a random processing time at the source, uniform
//! up to the transmission time of one packet at the bottleneck. A packet that is handed over at t leaves at t + U, but
//! not before those handed over earlier. It counts as sent when it leaves.
//!
//! When it will leave is known when it is handed over. So where links are computed ahead anyway, the host's own is booked
//! then, and the packet costs no event; the chains of [`crate::network`] tell when that changes nothing.

use crate::network::Network;
use crate::packet::{Handle, Packet};
use crate::routing::Attachment;
use fullpipe_engine::{EventClass, EventId, Lane};
use fullpipe_record::Observer;
use fullpipe_units::{Duration, Instant, NodeId, Stream};

/// A host's processing.
#[derive(Debug)]
pub(crate) struct Processing {
    limit: Duration,
    stream: Stream,
    held: Lane<Packet>,
    last: Instant,
    /// Whether the host's links are booked ahead; found out with the first packet.
    ahead: Option<bool>,
}

/// When a packet leaves that its host has handed over.
pub(crate) enum Departure {
    /// At once.
    Now,
    /// Then, and the link is to be booked at once.
    Ahead(Instant),
    /// By an event; it has been taken out of the arena.
    Later,
}

/// Events of the class [`EventClass::Host`] from this number on belong to a node's processing.
pub(crate) const FIRST_EVENT: u32 = 1 << 27;

impl<O: Observer> Network<O> {
    /// Delays each packet that `node` sends by a random time of at most `limit`, drawn from `stream` (which should be
    /// named after the host). Packets keep their order.
    pub fn set_processing_jitter(&mut self, node: NodeId, limit: Duration, stream: Stream) {
        // Uniform in 0 ... limit, both included.
        let processing = Processing { limit, stream, held: Lane::default(), last: Instant::ZERO, ahead: None };
        if self.processing.len() <= node.index() {
            self.processing.resize_with(node.index() + 1, || None);
        }
        self.processing[node.index()] = Some(Box::new(processing));
    }

    /// Draws the time that a packet takes at its source.
    #[inline(never)]
    pub(crate) fn processing_time(&mut self, from: NodeId, handle: Handle) -> Departure {
        let Some(Some(processing)) = self.processing.get_mut(from.index()) else { return Departure::Now };
        let time = Duration::from_nanos(processing.stream.below(processing.limit.as_nanos().saturating_add(1)));
        let at = self.now.saturating_add(time).max(processing.last);
        processing.last = at;
        let ahead = match processing.ahead {
            Some(ahead) => ahead,
            None => self.decide_ahead(from),
        };
        // Nothing is computed beyond the end of the run, nor for a destination to which no link leads.
        let destination = self.arena.get(handle).destination;
        if ahead && at <= self.horizon && matches!(self.toward(from, destination), Attachment::Link(_)) {
            return Departure::Ahead(at);
        }
        self.hold(from, handle, at);
        Departure::Later
    }

    #[cold]
    fn decide_ahead(&mut self, node: NodeId) -> bool {
        let ahead = self.tap.is_none() && self.may_send_ahead(node);
        if let Some(Some(processing)) = self.processing.get_mut(node.index()) {
            processing.ahead = Some(ahead);
        }
        ahead
    }

    fn hold(&mut self, from: NodeId, handle: Handle, at: Instant) {
        let packet = self.arena.take(handle);
        let Some(Some(processing)) = self.processing.get_mut(from.index()) else { return };
        if processing.held.push(at, packet) {
            self.calendar.schedule(at, EventId::new(EventClass::Host, FIRST_EVENT + from.0));
        }
    }

    /// A host is through with a packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn processed(&mut self, event: u32) {
        let node = NodeId(event - FIRST_EVENT);
        let Some(Some(processing)) = self.processing.get_mut(node.index()) else { return };
        let Some((packet, next)) = processing.held.pop() else { return };
        if let Some(next) = next {
            self.calendar.schedule(next, EventId::new(EventClass::Host, event));
        }
        self.hand_over(node, packet);
    }
}
