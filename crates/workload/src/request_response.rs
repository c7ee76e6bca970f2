//! Request-response: a client asks, a server thinks and answers, the client waits and asks again.
//!
//! The model of a user behind a browser or of a remote procedure call: sizes, think times (at the server) and idle
//! times (at the client) are independent samples (Barford and Crovella, SIGMETRICS 1998, structure of their SURGE).
//! Exchanges follow one another: one is under way at a time. An exchange lasts from the moment at which the client
//! begins with it (opening its connection, if it has one of its own) until the response's last byte is read.
//!
//! Client and server know sizes and times beforehand (`plan.rs`). On one connection the n-th request is the n-th
//! exchange; with a connection each, the number of the connection is that of the exchange. An exchange whose connection
//! is lost has failed; the next follows after its idle time, unless the connection was to be kept: then it was the last.

mod client;
mod server;

pub use client::RequestResponseClient;
pub use server::RequestResponseServer;

use crate::plan::Plan;
use crate::{Distribution, Invalid};
use fullpipe_units::{Duration, Stream};

/// Which connection an exchange goes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionUse {
    /// One connection for all (persistent HTTP, netperf's TCP_RR). The client finishes it after the last exchange.
    #[default]
    Kept,
    /// A new one for each (HTTP/1.0, netperf's TCP_CRR). The server finishes it after the response.
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

/// One exchange.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    request_bytes: u64,
    response_bytes: u64,
    think: Duration,
    idle: Duration,
}

impl RequestResponseSpec {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), Invalid> {
        self.request_bytes.check().map_err(|invalid| invalid.of("request"))?;
        self.response_bytes.check().map_err(|invalid| invalid.of("response"))?;
        self.think_s.check().map_err(|invalid| invalid.of("think time"))?;
        self.idle_s.check().map_err(|invalid| invalid.of("idle time"))
    }

    fn exchange(&self, index: u32, plan: &mut Plan<Exchange>) -> Exchange {
        plan.get(index, |random: &mut Stream, _| Exchange {
            request_bytes: self.request_bytes.sample_bytes(random),
            response_bytes: self.response_bytes.sample_bytes(random),
            think: self.think_s.sample_duration(random),
            idle: self.idle_s.sample_duration(random),
        })
    }

    /// Whether `index` is the number of an exchange.
    fn has(&self, index: u32) -> bool {
        self.count.is_none_or(|count| u64::from(index) < count)
    }
}
