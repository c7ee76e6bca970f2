//! Runs in real time: the same world, which the wall clock drives, with real hosts attached.
//!
//! [`run`] creates the namespaces of the scenario's real hosts, starts their programs, and runs the model in step with
//! the clock. The model does not depend on the clock that drives it.

mod driver;
mod gateway;
#[cfg(all(feature = "real-time", target_os = "linux"))]
mod linux;
mod pieces;
#[cfg_attr(
    not(all(feature = "real-time", target_os = "linux")),
    allow(dead_code, reason = "only runs in real time are recorded")
)]
mod recorder;
mod replay;
#[cfg(test)]
mod tests;

pub use fullpipe_emulate::{Lateness, LatenessLimits, LatenessSummary};
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub use linux::*;
pub use recorder::ARRIVALS_FILE;
pub use replay::{ReplayOutcome, replay};
