//! An LTE access network (3GPP release 8 to 11, FDD) at the level of resource blocks and subframes: packets and time come
//! in; packets that arrive, and when, come out. No clock, no event queue, no packet's bytes.
//!
//! Three layers, from the air upwards; none knows the one above it:
//!
//! * [`radio`]: what the air does: carriers, powers, path loss, fading, interference; which CQI is reported, which
//!   transport blocks are lost. Pure functions of (seed, who, subframe).
//! * [`rlc`]: what becomes of packets: buffers, segments, reordering, retransmission; and [`bearer`], which packet takes which.
//! * [`scheduler`]: who may send when, in which resource blocks.
//!
//! Beside them, [`connection`]: when UEs come to their bearers.
//!
//! [`AccessNetwork`] puts them together; [`config`] says what it is made of. Its cells are `cell.rs`, their surroundings `air.rs`.
//!
//! [`component`] makes it an access network of a scenario and a medium of the network.
//!
//! A subframe is 1 ms and has a number: subframe n begins n ms after the run's start.

pub mod bearer;
pub mod component;
pub mod connection;
pub mod radio;
pub mod records;
pub mod rlc;
pub mod scheduler;

mod access;
mod air;
mod cell;
pub mod config;
mod exit;
mod subframe;
mod ue;

pub use access::{AccessNetwork, Offered, UeStatus};
pub use cell::BlockRecord;
pub use exit::{Fate, Output};
pub use ue::{WayCounters, WayStatus};
