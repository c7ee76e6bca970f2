//! The commands of the QUIC stack in a build without it.

use crate::exit::Failure;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

pub(crate) mod arguments {
    pub(crate) use crate::absent::{AnyArguments as Http3Arguments, AnyArguments as MasqueArguments};
}

fn missing() -> Failure {
    super::missing("QUIC stack", "stack")
}

pub(crate) fn masque(_: &arguments::MasqueArguments) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn http3(_: &arguments::Http3Arguments) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    Ok(arguments)
}

pub(crate) fn is_configuration(_: &str) -> bool {
    false
}

pub(crate) fn check_configuration(_: &Path) -> Result<(), Failure> {
    Err(missing())
}

pub(crate) fn measure() -> Result<Value, Failure> {
    Err(missing())
}

pub(crate) fn describe(_: &Value) -> String {
    missing().message
}
