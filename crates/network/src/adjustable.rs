//! Adjustable links, whose rate and delay the program changes during the run.
//!
//! Future rates are unknown, so the departure of a frame is known only when it happens. Each departure is an event. A
//! frame counts as transmitted, and is reported to the observer, when its last bit departs. If the rate changes, the
//! frame in transmission continues at the new rate, and its departure gets a new event; the old event has no effect.
//! Times are computed as in [`crate::schedule`], so a change equals a step of a schedule at the same time.

use crate::queue::{InterfaceQueue, Limit, QueuedPacket};
use fullpipe_units::{Duration, Instant, Rate};

/// The transmitter of an adjustable link, and the packets that wait for it.
#[derive(Debug)]
pub(crate) struct AdjustableState {
    pub(crate) interface: InterfaceQueue,
    pub(crate) has_discipline: bool,
    /// Units of 10^-9 bit per nanosecond; 0 during an outage.
    pub(crate) rate: u64,
    pub(crate) current: Option<CurrentFrame>,
    /// Units of the last frame that were left at its end, which is rounded down.
    pub(crate) carry: u128,
}

/// The frame in transmission.
#[derive(Debug)]
pub(crate) struct CurrentFrame {
    pub(crate) frame: QueuedPacket,
    pub(crate) start: Instant,
    /// Units that were left at `since`.
    pub(crate) units: u128,
    pub(crate) since: Instant,
    /// When the last bit departs at the current rate.
    pub(crate) finish: Instant,
}

impl CurrentFrame {
    pub(crate) fn set_finish(&mut self, rate: u64) {
        self.finish = match self.units.checked_div(u128::from(rate)) {
            Some(nanoseconds) => self.since.saturating_add(Duration::from_nanos(nanoseconds as u64)),
            None => Instant::NEVER,
        };
    }
}

impl AdjustableState {
    /// Returns the state of a link whose packets wait in this queue. If `has_discipline` is false, a packet that arrives
    /// while the link is idle does not need space in the queue.
    pub(crate) fn new(interface: InterfaceQueue, has_discipline: bool, rate: Rate) -> Self {
        AdjustableState { interface, has_discipline, rate: rate.bits_per_second(), current: None, carry: 0 }
    }

    /// Returns the number of packets and bytes in the queue, without the frame in transmission.
    pub(crate) fn queue(&self) -> (u64, u64) {
        (self.interface.packets(), self.interface.bytes())
    }

    /// Returns the number of frames and bytes that were offered but neither transmitted nor dropped.
    pub(crate) fn queued(&self) -> (u64, u64) {
        let (packets, bytes) = self.queue();
        let current = self.current.as_ref().map_or((0, 0), |current| (1, u64::from(current.frame.wire_bytes)));
        (packets + current.0, bytes + current.1)
    }

    /// Returns the rate; `None` during an outage.
    pub(crate) fn rate(&self) -> Option<Rate> {
        (self.rate > 0).then(|| Rate::from_bits_per_second(self.rate))
    }
}

/// The queue of an adjustable link without a discipline.
pub(crate) fn drop_tail(limit: Limit) -> InterfaceQueue {
    InterfaceQueue::new(None, limit, 0)
}
