//! Changes of adjustable links, and the arrivals and departures of their frames. `adjustable.rs` describes the model.

use crate::adjustable::CurrentFrame;
use crate::network::Network;
use crate::packet::PacketHandle;
use crate::queue::QueuedPacket;
use crate::schedule::UNITS_PER_BYTE;
use fullpipe_engine::{EventClass, EventId};
use fullpipe_record::Observer;
use fullpipe_units::{Duration, Instant, LinkId, Rate};

impl<O: Observer> Network<O> {
    /// Makes a link adjustable. Returns false if the link has a schedule or a trace. Must be called before
    /// [`Network::finalize`].
    pub fn make_adjustable(&mut self, link: LinkId) -> bool {
        let is_adjustable = self.links[link.index()].make_adjustable();
        if is_adjustable && !self.adjustable.contains(&link) {
            self.adjustable.push(link);
        }
        is_adjustable
    }

    /// Returns whether a frame waits on an adjustable link, possibly for the end of an outage.
    pub fn has_waiting_frames(&self) -> bool {
        let state = |link: &LinkId| self.links[link.index()].adjustable();
        self.adjustable.iter().filter_map(state).any(|state| state.current.is_some())
    }

    /// Returns the rate of an adjustable link, which is `None` during an outage. Returns `None` for other links.
    pub fn adjustable_rate(&self, link: LinkId) -> Option<Option<Rate>> {
        Some(self.links.get(link.index())?.adjustable()?.rate())
    }

    /// Sets the rate of an adjustable link from now on; rate 0 is an outage. Returns false if the link is not adjustable.
    pub fn set_link_rate(&mut self, link: LinkId, rate: Rate) -> bool {
        let now = self.now;
        let Some(state) = self.links.get_mut(link.index()).and_then(|link| link.adjustable_mut()) else { return false };
        let before = std::mem::replace(&mut state.rate, rate.bits_per_second());
        if let Some(current) = &mut state.current {
            let sent = u128::from(before) * u128::from((now - current.since).as_nanos());
            current.units = current.units.saturating_sub(sent);
            current.since = now;
            current.set_finish(state.rate);
            if !current.finish.is_never() {
                self.calendar.schedule(current.finish, EventId::new(EventClass::Departure, link.0));
            }
        }
        true
    }

    /// Sets the delay of an adjustable link for frames whose last bit has not departed. Returns false if the link is not
    /// adjustable.
    pub fn set_link_delay(&mut self, link: LinkId, delay: Duration) -> bool {
        let Some(link) = self.links.get_mut(link.index()).filter(|link| link.adjustable().is_some()) else {
            return false;
        };
        link.delay = delay;
        true
    }

    /// Processes the arrival of a frame at an adjustable link now.
    #[cold]
    pub(crate) fn offer_adjustable(&mut self, link: LinkId, handle: PacketHandle) {
        let now = self.now;
        let wire_bytes = self.arena.get(handle).ip_bytes + u32::from(self.links[link.index()].framing_bytes);
        self.observer.on_offered(now, link, wire_bytes);
        let queued = QueuedPacket::new(handle, self.arena.get(handle), wire_bytes, now);
        let Some(state) = self.links[link.index()].adjustable() else { return };
        // As on other drop-tail links, a packet whose transmission starts now has already left the queue.
        if !state.has_discipline && state.current.as_ref().is_some_and(|current| current.finish <= now) {
            self.depart_adjustable(link);
        }
        let Some(state) = self.links[link.index()].adjustable_mut() else { return };
        if state.current.is_none() && !state.has_discipline {
            return self.start_adjustable(link, queued);
        }
        let mut dropped = std::mem::take(&mut self.dropped);
        let refused = state.interface.enqueue(now, queued, &mut dropped).err();
        let is_idle = state.current.is_none();
        dropped.extend(refused);
        self.drop_queued(link, &mut dropped);
        if is_idle {
            self.depart_adjustable(link);
        }
    }

    /// Ends the transmission that is due, and starts the next one.
    #[cold]
    pub(crate) fn depart_adjustable(&mut self, link: LinkId) {
        let now = self.now;
        let Some(state) = self.links[link.index()].adjustable_mut() else { return };
        if let Some(current) = state.current.take_if(|current| current.finish <= now) {
            state.carry = current.units % u128::from(state.rate.max(1));
            let QueuedPacket { handle, wire_bytes, since, .. } = current.frame;
            self.complete_frame(link, handle, wire_bytes, since, current.start, current.finish);
        }
        let mut dropped = std::mem::take(&mut self.dropped);
        let next = match self.links[link.index()].adjustable_mut() {
            Some(state) if state.current.is_none() => state.interface.dequeue(now, &mut dropped),
            _ => None,
        };
        self.drop_queued(link, &mut dropped);
        if let Some(frame) = next {
            self.note_mark(link, &frame);
            self.start_adjustable(link, frame);
        }
    }

    /// Starts the transmission of a frame now.
    fn start_adjustable(&mut self, link: LinkId, frame: QueuedPacket) {
        let start = self.now;
        let l = &mut self.links[link.index()];
        let is_idle = l.busy_until < start;
        let Some(state) = l.adjustable_mut() else { return };
        let units = u128::from(frame.wire_bytes) * UNITS_PER_BYTE + if is_idle { 0 } else { state.carry };
        let mut current = CurrentFrame { frame, start, units, since: start, finish: Instant::NEVER };
        current.set_finish(state.rate);
        if !current.finish.is_never() {
            self.calendar.schedule(current.finish, EventId::new(EventClass::Departure, link.0));
        }
        state.current = Some(current);
    }
}
