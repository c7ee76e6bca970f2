//! What takes the place of parts that this build does not have: the same functions, which return an error that names the build that
//! has the part.

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

/// The error of `report --format pdf,png` in a build without these formats.
#[cfg(not(feature = "plots"))]
pub(crate) fn missing_plots() -> Failure {
    missing("PDF and PNG plots", "plots")
}

/// The error of a command that needs a part, with the feature that has it.
fn missing(part: &str, feature: &str) -> Failure {
    Failure::usage(format!(
        "this build has no {part} (feature `{feature}`): use `cargo fullpipe-all` instead of `cargo fullpipe`"
    ))
}
