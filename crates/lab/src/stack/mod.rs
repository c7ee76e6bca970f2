//! The real QUIC stack: `fullpipe-stack` with the feature `stack`. Without the feature, types with the same interface
//! replace it, which no run can create. This is the only file of the crate that depends on the feature.

#[cfg(not(feature = "stack"))]
mod absent;
#[cfg(not(feature = "stack"))]
pub(crate) use absent::*;
#[cfg(feature = "stack")]
pub(crate) use fullpipe_stack::*;

/// The reason why this build cannot run tunnels and flows over the real QUIC stack; `None` if it can.
#[cfg(feature = "stack")]
pub(crate) const ABSENT: Option<&str> = None;
#[cfg(not(feature = "stack"))]
pub(crate) const ABSENT: Option<&str> = Some(
    "needs the real QUIC stack, which this build does not have (feature `stack`): use `cargo fullpipe-all` instead of \
     `cargo fullpipe`",
);
