//! Runs in real time on this machine.

mod interface;
mod kernel;
mod programs;
mod run;

pub use fullpipe_emulate::{
    EarlyExitCallback, EmulatorNamespace, HostNamespace, HostSettings, NamespaceError as NotAllowed, NegotiatedOptions,
    ProgramOutcome, doctor, enter_user_namespace, measure,
};
pub use interface::FrameCapture;
pub use kernel::KernelEndpointResult;
pub use run::{CaptureOpener, HostHook, RealTimeOptions, RealTimeOutcome, run};
