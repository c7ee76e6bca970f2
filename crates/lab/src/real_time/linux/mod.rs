//! Runs in real time on this machine.

mod interface;
mod kernel;
mod programs;
mod run;

pub use fullpipe_emulate::{
    Ended, Home, HostNamespace, HostSettings, Negotiated, Refused as NotAllowed, doctor, enter, measure,
};
pub use interface::FrameCapture;
pub use kernel::KernelEnd;
pub use run::{AtHosts, CaptureOf, RealOutcome, RealTimeOptions, run};
