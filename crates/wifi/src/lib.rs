//! An IEEE 802.11 medium (amendments b, a, g, n and ac) as a state machine. The inputs are packets and time; the outputs
//! are packet outcomes and their times. The crate has no clock, no event queue and no packet content.
//!
//! * [`phy`]: rates, durations, interframe spaces and packet error rates, as pure functions.
//! * [`frame`] and [`aggregate`]: sizes of frames, and limits of aggregates.
//! * [`contention`]: DCF and EDCA.
//!
//! Clauses and tables without another source are those of IEEE Std 802.11-2020.

pub mod aggregate;
pub mod contention;
pub mod frame;
pub mod phy;
