//! What real time needs of a Linux machine: namespaces for hosts, packet sockets between them and the model, the wall
//! clock, waiting for deadlines, and an account of how late everything was.
//!
//! Nothing here knows the model. `fullpipe-lab` drives it: it takes frames from [`Port`]s, lets the model run up to the
//! clock, and hands back the frames that are due. On other systems, and without the
//! feature `real-time`, only the account ([`Lateness`]) and the interface of a [`Machine`] are there.

mod lateness;
#[cfg(all(feature = "real-time", target_os = "linux"))]
mod linux;
mod machine;

pub use lateness::{Lateness, Limits, Spread, Verdict};
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub use linux::*;
pub use machine::{Arrival, Machine};
