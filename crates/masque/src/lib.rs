//! CONNECT-UDP (RFC 9298): a client and a proxy over HTTP/3, in datagram mode and in stream mode. The same code runs on
//! real sockets and in virtual time; only the [`environment`] differs.
//!
//! The crate has two layers. The lower layer consists of formats, which are pure functions and small state machines
//! over bytes: [`varint`], [`capsule`], [`datagram`], [`template`], [`target`], [`policy`], [`proxy_status`],
//! [`queue`]. In the upper layer, tasks drive the QUIC stack (noq) and HTTP/3 (h3, through the adapter in
//! [`transport`]).

pub mod access;
pub mod capsule;
pub mod client;
pub mod configuration;
pub mod datagram;
pub mod environment;
mod halves;
pub mod http3;
pub mod log;
pub mod metrics;
mod outbox;
pub mod percent;
pub mod policy;
pub mod proxy;
pub mod proxy_status;
pub mod queue;
mod session;
pub mod target;
pub mod template;
pub mod transport;
pub mod varint;

pub use fullpipe_transport::tunnel as settings;
