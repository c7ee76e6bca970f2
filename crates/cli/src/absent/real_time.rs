//! Real time in a build without it and on systems other than Linux.

use crate::exit::Failure;
use fullpipe::study::{Runner, Study, VirtualTimeRunner};
use serde_json::Value;

pub(crate) mod arguments {
    pub(crate) use crate::absent::{
        AnyArguments as DoctorArguments, AnyArguments as ShellArguments, AnyArguments as SimulatorArguments,
    };
}

fn missing() -> Failure {
    if cfg!(target_os = "linux") {
        super::missing("real time", "real-time")
    } else {
        Failure::usage("real time needs Linux")
    }
}

pub(crate) fn doctor(_: &arguments::DoctorArguments) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn shell(_: &arguments::ShellArguments) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn simulate(_: &arguments::SimulatorArguments) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn run_with(_: &[&str], _: bool, _: impl FnOnce(&dyn Runner) -> Result<(), Failure>) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn laboratories(ours: VirtualTimeRunner, study: &Study, _: bool) -> Result<Box<dyn Runner>, Failure> {
    if study.needs_real_time() { Err(missing()) } else { Ok(Box::new(ours)) }
}

pub(crate) fn measure(_: &str) -> Result<Value, Failure> {
    Err(missing())
}

pub(crate) fn describe(_: &str, _: &Value) -> String {
    missing().message
}
