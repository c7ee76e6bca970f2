//! A timer slot: at most one valid calendar entry for a timer that is re-armed for every packet.
//!
//! Most transport timers are postponed repeatedly and rarely expire. The owner stores the deadline in a plain field.
//! The slot stores the time of its calendar entry, and only an earlier deadline adds a new entry. If the entry is due
//! before the deadline, the owner re-arms the slot. An owner uses one slot for far timers and one for near timers. With
//! a single slot, every near timer that expired scheduled the far timer again, and half of all timer events were stale.

use crate::{Calendar, EventId};
use fullpipe_units::Instant;

/// A timer with at most one valid entry in the calendar. The slot stores the time of that entry.
#[derive(Clone, Copy, Debug)]
pub struct TimerSlot {
    scheduled: Instant,
}

impl Default for TimerSlot {
    fn default() -> Self {
        TimerSlot { scheduled: Instant::NEVER }
    }
}

impl TimerSlot {
    /// Ensures that the owner is called at `deadline` or earlier.
    #[inline(always)]
    pub fn arm(&mut self, calendar: &mut Calendar, event: EventId, deadline: Instant) {
        if deadline < self.scheduled {
            self.scheduled = deadline;
            calendar.schedule(deadline, event);
        }
    }

    /// Handles a calendar entry that is due. Returns true if the entry is valid: the owner must then check its
    /// deadlines and arm the slot again. Returns false if the entry is stale, because an entry for an earlier deadline
    /// has replaced it.
    #[inline(always)]
    pub fn on_wakeup(&mut self, now: Instant) -> bool {
        let live = self.scheduled == now;
        if live {
            self.scheduled = Instant::NEVER;
        }
        live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventClass;

    #[test]
    fn a_postponed_timer_adds_no_entry_and_an_earlier_one_fires_once() {
        let mut calendar = Calendar::new();
        let event = EventId::new(EventClass::Transport, 0);
        let mut slot = TimerSlot::default();
        let mut deadline = Instant::from_nanos(100);
        slot.arm(&mut calendar, event, deadline);
        for later in 101..200 {
            deadline = Instant::from_nanos(later);
            slot.arm(&mut calendar, event, deadline);
        }
        assert_eq!(calendar.len(), 1);
        deadline = Instant::from_nanos(50);
        slot.arm(&mut calendar, event, deadline);
        let mut fired = Vec::new();
        while let Some((now, _)) = calendar.peek() {
            calendar.pop();
            if slot.on_wakeup(now) {
                if deadline <= now {
                    fired.push(now.as_nanos());
                    deadline = Instant::from_nanos(if fired.len() == 1 { 150 } else { u64::MAX });
                }
                slot.arm(&mut calendar, event, deadline);
            }
        }
        assert_eq!(fired, [50, 150]);
    }
}
