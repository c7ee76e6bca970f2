//! Real time: the same world, driven by the wall clock, with real hosts at its edge.
//!
//! [`run`] makes the namespaces of the scenario's real hosts, starts their programs, and lets the model run in step with the
//! clock. Nothing in the model knows which clock runs.

mod driver;
mod gateway;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod kernel;
mod pieces;
#[cfg(target_os = "linux")]
mod programs;
mod recorder;
mod replay;
#[cfg(target_os = "linux")]
mod run;
#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub use fullpipe_emulate::{
    Ended, Home, HostNamespace, HostSettings, Negotiated, Refused as NotAllowed, doctor, enter, measure,
};
pub use fullpipe_emulate::{Lateness, Limits, Spread};
#[cfg(target_os = "linux")]
pub use interface::FrameCapture;
#[cfg(target_os = "linux")]
pub use kernel::KernelEnd;
pub use recorder::ARRIVALS;
pub use replay::{Replayed, replay};
#[cfg(target_os = "linux")]
pub use run::{AtHosts, CaptureOf, RealOutcome, RealTimeOptions, run};
