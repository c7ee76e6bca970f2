//! Request-response: a client asks, a server thinks and answers, the client waits and asks again.

use crate::Distribution;

/// Which connection an exchange goes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionUse {
    /// One connection for all (persistent HTTP, netperf's TCP_RR).
    #[default]
    Kept,
    /// A new one for each (HTTP/1.0, netperf's TCP_CRR).
    PerExchange,
}

/// A client and a server.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestResponseSpec {
    /// Sizes of requests in bytes (each at least 1).
    pub request_bytes: Distribution,
    /// Sizes of responses in bytes (each at least 1).
    pub response_bytes: Distribution,
    /// Time in seconds from the request's last byte at the server to the response's first.
    pub think_s: Distribution,
    /// Time in seconds from the response's last byte at the client to the next request.
    pub idle_s: Distribution,
    /// One connection for all exchanges or one for each.
    pub connection: ConnectionUse,
    /// Exchanges (`None`: without end).
    pub count: Option<u64>,
}
