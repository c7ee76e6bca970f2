//! The real QUIC stack (noq) in virtual time.
//!
//! The stack is a released crate, unmodified. Its state machine receives time as an argument, so an end of a connection
//! ([`Connection`]) is driven like any model: inputs are datagrams and time, outputs datagrams and the next timer. All
//! its random values come from a seed ([`RandomStreams`]). Packets have the sizes of TLS without protection, or are protected
//! by TLS with that seed ([`Cryptography`]). So the same seed gives the same bytes ([`Settings`]). Fullpipe's
//! congestion controls replace those of the stack ([`ControlFactory`], [`unsupported_reason`]). Asynchronous programs with the stack's
//! asynchronous interface run on a [`Host`], which is driven in the same way. [`tunnel`] has the two programs of
//! CONNECT-UDP.
//!
//! **Differences from a real host.** The stack and its cryptography take no time. There is no send queue between the
//! stack and the first link, and datagrams are sent one by one, without segmentation offload.
//!
//! The crate exports no configuration without cryptography or with keys derived from a seed: its connections and
//! endpoints have no socket and cannot have one.

mod connection;
mod entropy;
mod environment;
mod executor;
mod host;
pub mod journal;
mod null;
mod settings;
mod tls;
pub mod tunnel;

pub use connection::{Connection, ConnectionState, ConnectionStatistics, Datagram};
pub use entropy::RandomStreams;
pub use environment::VirtualEnvironment;
pub use fullpipe_control::{ControlFactory, ControlState, RttStatistics, unsupported_reason};
pub use host::{AddressedDatagram, Host, HostSettings, HostStatistics, VirtualRuntime};
pub use settings::{Cryptography, EndpointSettings, Settings, certificate_size_error};
