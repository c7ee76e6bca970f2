//! Time as a list of what is still to happen.
//!
//! [`Calendar`] holds pending events in a total order: by instant, then by [`EventId`]. An event's identity says which
//! entity it belongs to (a link, a timer), never when it was inserted, so neither an observer nor an added entity can
//! shift the order of two events, and computing a chain of hops at once or hop by hop gives the same order.
//!
//! [`Lane`] is a constant-delay pipe: its items come out in the order they went in, so only its head needs to be in
//! the calendar. [`Slot`] is a timer that is re-armed lazily: an armed timer is a field of its owner, the calendar holds
//! one entry that fires, looks, and goes back to sleep.

mod calendar;
mod lane;
mod prefetch;
mod slot;

pub use calendar::{Calendar, EventClass, EventId};
pub use lane::Lane;
pub use prefetch::prefetch;
pub use slot::Slot;
