//! Replacements for parts that this build does not contain: functions with the same signatures, which return an error
//! with the feature that contains the part.

#[cfg(not(feature = "stack"))]
pub(crate) mod masque;
#[cfg(not(all(feature = "real-time", target_os = "linux")))]
pub(crate) mod real_time;

use crate::exit::Failure;

/// The arguments of a command that this build does not have.
#[cfg(not(all(feature = "stack", feature = "real-time", target_os = "linux")))]
#[derive(Debug, clap::Args)]
pub(crate) struct AnyArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<std::ffi::OsString>,
}

/// Returns the error of `report --format pdf,png` in a build without these formats.
#[cfg(not(feature = "plots"))]
pub(crate) fn missing_plots() -> Failure {
    missing("PDF and PNG plots", "plots")
}

/// Returns the error of a command that needs a missing part, with the feature that contains it.
fn missing(part: &str, feature: &str) -> Failure {
    Failure::usage(format!(
        "this build has no {part} (feature `{feature}`): use `cargo fullpipe-all` instead of `cargo fullpipe`"
    ))
}
