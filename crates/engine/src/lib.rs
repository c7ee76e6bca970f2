//! The calendar of pending events, and the data structures that keep it small.
//!
//! [`Calendar`] holds pending events in a total order: by instant, then by [`EventId`]. The identity of an event names
//! the entity to which it belongs (a link, a timer), not the time of its insertion. So neither an observer nor an
//! additional entity can change the order of two events. Computing a chain of hops in one step gives the same order as
//! computing it hop by hop.
//!
//! [`DelayLine`] is a first-in, first-out queue: its items leave in the order in which they entered, so only its head
//! must be in the calendar. [`TimerSlot`] is a timer that is re-armed lazily. Its deadline is a field of its owner. The
//! calendar holds one valid entry; when that entry is due, the owner compares its deadlines with the time and arms the
//! slot again.

mod calendar;
mod lane;
mod prefetch;
mod slot;

pub use calendar::{Calendar, EventClass, EventId};
pub use lane::DelayLine;
pub use prefetch::prefetch;
pub use slot::TimerSlot;
