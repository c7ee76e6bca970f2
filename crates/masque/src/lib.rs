//! CONNECT-UDP (RFC 9298): a client and a proxy over HTTP/3, in datagram mode and in stream mode. One source serves real
//! sockets and virtual time; what differs is the [`environment`].
//!
//! Two layers. The formats are plain functions and small state machines over bytes: [`varint`], [`capsule`],
//! [`datagram`], [`template`], [`target`], [`policy`], [`proxy_status`], [`queue`]. On them stand tasks that drive the
//! QUIC stack (noq) and HTTP/3 (h3, by the adapter in [`transport`]).

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
