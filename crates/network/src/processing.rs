//! Processing jitter of a host: a random time, up to a limit, before each packet departs, without reordering.
//!
//! Deterministic drop-tail networks have phase effects: the relative timing of packets determines which flow loses
//! packets, and a small change of timing can shift all rates. Floyd and Jacobson (1991, "On traffic phase effects in
//! packet-switched gateways", section 4) remove them by a random processing time at the source. It is uniform between
//! zero and the transmission time of one packet at the bottleneck. A packet that is sent at t departs at t + U, but
//! never before packets sent earlier. Its send time is the time of its departure.
//!
//! The departure time is known when the packet is sent. If links are computed ahead anyway, the host's link is computed
//! for that time when the packet is sent, without a further event. The chains of [`crate::chain`] determine when this
//! does not change results.

use crate::network::Network;
use crate::packet::{Packet, PacketHandle};
use crate::routing::NextHop;
use fullpipe_engine::{DelayLine, EventClass, EventId};
use fullpipe_record::Observer;
use fullpipe_units::{Duration, Instant, NodeId, RandomStream};

/// The processing jitter of a host.
#[derive(Debug)]
pub(crate) struct Processing {
    limit: Duration,
    stream: RandomStream,
    held: DelayLine<Packet>,
    last: Instant,
    /// Whether the host's links are computed ahead; `None` until the first packet is sent.
    ahead: Option<bool>,
}

/// When a packet that a host has sent departs.
pub(crate) enum Departure {
    /// Immediately.
    Now,
    /// At this time; the link is computed immediately.
    Ahead(Instant),
    /// At a later event; the packet was removed from the arena.
    Later,
}

/// First number of the events of the class [`EventClass::Host`] that end the processing of a packet.
pub(crate) const FIRST_EVENT: u32 = 1 << 27;

impl<O: Observer> Network<O> {
    /// Delays each packet that `node` sends by a random time of at most `limit` from `stream` (which should be
    /// named after the host). Packets keep their order.
    pub fn set_processing_jitter(&mut self, node: NodeId, limit: Duration, stream: RandomStream) {
        // Uniform from 0 to `limit`, both inclusive.
        let processing = Processing { limit, stream, held: DelayLine::default(), last: Instant::ZERO, ahead: None };
        if self.processing.len() <= node.index() {
            self.processing.resize_with(node.index() + 1, || None);
        }
        self.processing[node.index()] = Some(Box::new(processing));
    }

    /// Draws the processing time of a packet at its source, and returns when the packet departs.
    #[inline(never)]
    pub(crate) fn processing_time(&mut self, from: NodeId, handle: PacketHandle) -> Departure {
        let Some(Some(processing)) = self.processing.get_mut(from.index()) else { return Departure::Now };
        let time = Duration::from_nanos(processing.stream.uniform_below(processing.limit.as_nanos().saturating_add(1)));
        let at = self.now.saturating_add(time).max(processing.last);
        processing.last = at;
        let ahead = match processing.ahead {
            Some(ahead) => ahead,
            None => self.decide_ahead(from),
        };
        // Nothing is computed beyond the end of the run, or if the next hop is not a link.
        let destination = self.arena.get(handle).destination;
        if ahead && at <= self.horizon && matches!(self.toward(from, destination), NextHop::Link(_)) {
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

    fn hold(&mut self, from: NodeId, handle: PacketHandle, at: Instant) {
        let packet = self.arena.take(handle);
        let Some(Some(processing)) = self.processing.get_mut(from.index()) else { return };
        if processing.held.push(at, packet) {
            self.calendar.schedule(at, EventId::new(EventClass::Host, FIRST_EVENT + from.0));
        }
    }

    /// Ends the processing of a packet at a host.
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
