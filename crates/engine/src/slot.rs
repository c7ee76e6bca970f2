//! A timer slot: at most one live entry of the calendar for a timer that is re-armed for every packet.
//!
//! Most transport timers are moved later again and again and hardly ever fire. The owner keeps the deadline as a plain
//! field. The slot remembers for when the calendar holds an entry; only an earlier deadline makes a new one. When the
//! entry fires too early, the owner re-arms. An owner uses one slot for far timers and one for near ones: with a
//! single slot every near timer that fires pushes the far one again (half of all timer events were then stale).

use crate::{Calendar, EventId};
use fullpipe_units::Instant;

/// When the calendar will wake a timer's owner.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    scheduled: Instant,
}

impl Default for Slot {
    fn default() -> Self {
        Slot { scheduled: Instant::NEVER }
    }
}

impl Slot {
    /// Makes sure that the owner is woken at `deadline` or before.
    #[inline(always)]
    pub fn arm(&mut self, calendar: &mut Calendar, event: EventId, deadline: Instant) {
        if deadline < self.scheduled {
            self.scheduled = deadline;
            calendar.schedule(deadline, event);
        }
    }

    /// The calendar's entry has come up: true if it is the live one, and the owner should look at its deadlines and
    /// arm again; false if it was left over from before an earlier deadline took its place.
    #[inline(always)]
    pub fn fired(&mut self, now: Instant) -> bool {
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
    fn a_timer_moved_later_costs_no_entry_and_one_moved_earlier_fires_once() {
        let mut calendar = Calendar::new();
        let event = EventId::new(EventClass::Transport, 0);
        let mut slot = Slot::default();
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
        while let Some((now, _)) = calendar.next() {
            calendar.pop();
            if slot.fired(now) {
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
