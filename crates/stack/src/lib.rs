//! The real QUIC stack (noq) under virtual time.
//!
//! The stack is a released crate, unmodified. Its state machine takes time as an argument, so that an end of a connection
//! ([`Connection`]) is driven like any of our models: datagrams and time in, datagrams and the next timer out. Whatever is
//! random in it comes from a seed ([`Entropy`]), and packets are protected by nothing, in the sizes of TLS, or by TLS that
//! draws from that seed ([`Cryptography`]), so that the same seed gives the same bytes ([`Settings`]). Our congestion
//! controls take the place of its own ([`Maker`], [`refusal`]). Asynchronous programs, with the stack's asynchronous form
//! below them, run on a [`Host`], which is driven in the same way; [`tunnel`] has CONNECT-UDP's two programs.
//!
//! **What is not as in a real host.** The stack and its cryptography take no time. There is no send queue between the
//! stack and the first link, and datagrams leave one by one, without segmentation offload.
//!
//! No configuration without cryptography, or with keys that follow from a seed, is handed out: what is made here has no
//! socket and can have none.

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

pub use connection::{Connection, Datagram, State, Statistics};
pub use entropy::Entropy;
pub use environment::VirtualEnvironment;
pub use fullpipe_control::{Inspection, Maker, RoundTrips, refusal};
pub use host::{Addressed, Host, HostSettings, HostStatistics, VirtualRuntime};
pub use settings::{Cryptography, EndpointSettings, Settings, certificate_refusal};
