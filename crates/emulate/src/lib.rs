//! What real time needs of a Linux machine: namespaces for hosts, packet sockets between them and the model, the wall
//! clock, waiting for deadlines, and an account of how late everything was.
//!
//! Nothing here knows the model. `fullpipe-lab` drives it: it takes frames from [`Port`]s, lets the model run up to the
//! clock, and hands back the frames that are due. On other systems only the account ([`Lateness`]) is there.

#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
mod endpoint;
mod lateness;
mod machine;
#[cfg(target_os = "linux")]
pub mod measure;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod waiting;

pub use lateness::{Lateness, Limits, Spread, Verdict};
pub use machine::{Arrival, Machine};

#[cfg(target_os = "linux")]
pub use clock::{Reading, WallClock, nanos_since_1970, thread_processor_time};
#[cfg(target_os = "linux")]
pub use endpoint::{Content, KernelEndpoint, KernelTcp, Over, Report, Role, Sample, Sent};
#[cfg(target_os = "linux")]
pub use machine::linux::LinuxMachine;
#[cfg(target_os = "linux")]
pub use namespace::{Home, HostNamespace, HostSettings, Refused, enter, forbidden_by};
#[cfg(target_os = "linux")]
pub use netlink::Mac;
#[cfg(target_os = "linux")]
pub use port::{Frame, PacketPort, Port, PortCounters, TunPort, hardware_address};
#[cfg(target_os = "linux")]
pub use program::{Ended, ProgramSettings, Programs, Readiness};
#[cfg(target_os = "linux")]
pub use sys::Negotiated;
#[cfg(target_os = "linux")]
pub use waiting::SPIN;
