//! Time that a host's own processing takes before a packet leaves: random, at most a given limit, in order.
//!
//! Deterministic drop-tail networks have phase effects: which of several flows loses depends on how their packets
//! happen to fall between each other, and the smallest change shifts all shares. Floyd and Jacobson (1991, "On traffic
//! phase effects in packet-switched gateways", section 4) remove them by a random processing time at the source, uniform
//! up to the transmission time of one packet at the bottleneck. A packet that is handed over at t leaves at t + U, but
//! not before those handed over earlier. It counts as sent when it leaves.

use crate::network::Network;
use crate::packet::Packet;
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
}

/// Events of the class [`EventClass::Host`] from this number on belong to a node's processing.
pub(crate) const FIRST_EVENT: u32 = 1 << 27;

impl<O: Observer> Network<O> {
    /// Delays each packet that `node` sends by a random time of at most `limit`, drawn from `stream` (which should be
    /// named after the host). Packets keep their order.
    pub fn set_processing_jitter(&mut self, node: NodeId, limit: Duration, stream: Stream) {
        // Uniform in 0 ... limit, both included.
        let processing = Processing { limit, stream, held: Lane::default(), last: Instant::ZERO };
        if self.processing.len() <= node.index() {
            self.processing.resize_with(node.index() + 1, || None);
        }
        self.processing[node.index()] = Some(Box::new(processing));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn hold(&mut self, from: NodeId, packet: Packet) {
        let Some(Some(processing)) = self.processing.get_mut(from.index()) else { return };
        let time = Duration::from_nanos(processing.stream.below(processing.limit.as_nanos().saturating_add(1)));
        processing.last = self.now.saturating_add(time).max(processing.last);
        if processing.held.push(processing.last, packet) {
            self.calendar.schedule(processing.last, EventId::new(EventClass::Host, FIRST_EVENT + from.0));
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
