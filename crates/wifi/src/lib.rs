//! An IEEE 802.11 medium (amendments b, a, g, n and ac) as a state machine. The inputs are packets and time; the outputs
//! are packet outcomes and their times. The crate has no clock, no event queue and no packet content.
//!
//! * [`phy`]: rates, durations, interframe spaces and packet error rates, as pure functions.
//! * [`frame`] and [`aggregate`]: sizes of frames, and limits of aggregates.
//! * [`contention`]: DCF and EDCA.
//! * [`block_ack`], [`queue`] and [`airtime`]: windows and retransmissions, queues, and the order of stations.
//! * [`channel`] and [`rate_control`]: path loss and SNR, and the selection of rates.
//!
//! [`BasicServiceSet`] combines them; [`config`] is its configuration and [`report`] what it reports. [`WifiMedium`] makes it a
//! medium of the network. [`component`] has the keys of a scenario, [`metrics`] those of probes, and
//! [`records`] the table of a run.
//!
//! **Limits of the model.** One contention domain: no hidden nodes, no capture, no other networks. Frames that collide are
//! all lost. No beacons, association, power saving, encryption, fragmentation, A-MSDU, MU-MIMO or 802.11ax, and no
//! protection of 802.11g from stations of 802.11b. Propagation takes no time. Stations that cannot decode a frame wait as
//! long as those that read its Duration field, instead of EIFS. The BlockAckReq after an MPDU is given up takes no air
//! time. Aggregates are built when access is granted, so none wait in hardware, and airtime queue limits (AQL) have
//! nothing to limit.
//!
//! Clauses and tables without another source are those of IEEE Std 802.11-2020.

pub mod aggregate;
pub mod airtime;
pub mod block_ack;
mod bss;
pub mod channel;
pub mod component;
pub mod config;
pub mod contention;
pub mod frame;
pub mod medium;
pub mod metrics;
pub mod phy;
pub mod queue;
pub mod rate_control;
pub mod records;
pub mod report;

pub use bss::{BasicServiceSet, OfferedPacket};
pub use medium::WifiMedium;
