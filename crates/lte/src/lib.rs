//! An LTE access network (3GPP releases 8 to 11, FDD) at the level of resource blocks and subframes. The inputs are
//! packets and time; the outputs are packet outcomes and their times. The crate has no clock, no event queue and no
//! packet content. The *reference model*, with which results are compared, is ns-3's `lte` module.
//!
//! The network has three layers. Each is independent of the layers above it:
//!
//! * [`radio`]: the radio channel: carriers, powers, path loss, fading, interference, CQI reports and losses of
//!   transport blocks. These are pure functions of (seed, entity, subframe).
//! * [`rlc`]: radio link control: buffers, segments, reordering, retransmission; and [`bearer`]: the classification of
//!   packets.
//! * [`scheduler`]: the assignment of resource blocks to UEs.
//!
//! In addition, [`connection`] computes when the bearers of UEs are established.
//!
//! [`AccessNetwork`] combines the layers; [`config`] is its configuration. Its cells are in `cell.rs`, the radio
//! channel between them in `air.rs`.
//!
//! [`component`] makes the model available as an access network of a scenario and as a medium of the network.
//!
//! A subframe is 1 ms and has a number: subframe n begins n ms after the start of the run.

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

pub use access::{AccessNetwork, OfferedPacket, UeStatus};
pub use cell::BlockRecord;
pub use exit::{PacketOutcome, PacketReport};
pub use ue::{DirectionCounters, DirectionStatus};
