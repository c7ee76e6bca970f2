//! Real-time support for Linux: namespaces, sockets, programs and the clock. It needs the feature `real-time`.

mod clock;
pub mod doctor;
mod endpoint;
mod machine;
pub mod measure;
mod namespace;
mod netlink;
mod output;
mod port;
mod program;
mod sys;
mod waiting;

pub use clock::{Reading, WallClock, nanos_since_1970, thread_processor_time};
pub use endpoint::{Content, KernelEndpoint, KernelTcp, Over, Report, Role, Sample, Sent};
pub use machine::LinuxMachine;
pub use namespace::{Home, HostNamespace, HostSettings, Refused, enter, forbidden_by};
pub use netlink::Mac;
pub use port::{Frame, PacketPort, Port, PortCounters, TunPort, hardware_address};
pub use program::{Ended, ProgramSettings, Programs, Readiness};
pub use sys::Negotiated;
pub use waiting::SPIN;
