//! Real-time support for Linux: namespaces, sockets, programs and the clock. It requires the feature `real-time`.

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

pub use clock::{ClockReading, WallClock, thread_cpu_time, unix_time_nanos};
pub use endpoint::{
    EndpointRole, KernelEndpoint, KernelEndpointReport, KernelListeners, KernelTcp, KernelTransport, PayloadCallback,
    StartSignal, TcpInfoSample, TrafficPattern,
};
pub use machine::LinuxMachine;
pub use namespace::{
    EmulatorNamespace, HostNamespace, HostSettings, NamespaceError, enter_user_namespace, namespace_restrictions,
};
pub use netlink::MacAddress;
pub use port::{PacketPort, Port, PortCounters, ReceivedFrame, TunPort, hardware_address};
pub use program::{EarlyExitCallback, ProgramOutcome, ProgramSettings, Programs, Readiness};
pub use sys::NegotiatedOptions;
pub use waiting::SPIN_DURATION;
