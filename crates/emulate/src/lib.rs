//! Real-time support for a Linux machine. It provides namespaces for hosts, packet sockets between hosts and the model,
//! the wall clock, waiting for deadlines, and the record of lateness.
//!
//! This crate does not depend on the model. The driver in `fullpipe-lab` reads frames from [`Port`]s, runs the model up
//! to the current time, and sends the frames that are due. On other systems, and without the feature `real-time`, only
//! [`Lateness`] and the trait [`Machine`] are available.

mod lateness;
#[cfg(all(feature = "real-time", target_os = "linux"))]
mod linux;
mod machine;

pub use lateness::{Lateness, LatenessLimits, LatenessSummary, TimingResult};
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub use linux::*;
pub use machine::{Arrival, Machine};
