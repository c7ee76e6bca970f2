//! Request-response: a client sends a request, a server processes it and responds, the client pauses and sends the next request.
//!
//! It models a user with a browser, or remote procedure calls. Sizes, think times (at the server) and idle times (at the client)
//! are independent samples (Barford and Crovella, SIGMETRICS 1998, structure of their SURGE). At most one exchange is in progress
//! at a time. An exchange lasts from its start at the client until the client has read the last byte of the response. If the
//! exchange has a connection of its own, it starts with the opening of the connection.
//!
//! Client and server draw sizes and times in advance (`plan.rs`). On one connection the n-th request is the n-th exchange;
//! otherwise the number of the connection is that of the exchange. An exchange whose connection is lost has failed. The next one
//! follows after its idle time if each exchange has its own connection; otherwise the failed exchange is the last.

mod client;
mod server;

pub use client::RequestResponseClient;
pub use server::RequestResponseServer;

use crate::application::{Application, ApplicationMetric};
use crate::component::{COUNT, FlowContext, Protocol, WorkloadComponent, WorkloadSettings, count};
use crate::demand::{self, Demand, Exchanges};
use crate::plan::DrawSequence;
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::distributions::{SIZE_OR_RANDOM, TIME_OR_RANDOM};
use fullpipe_schema::{Choice, Field, FieldKind};
use fullpipe_units::{Distribution, Duration, ParameterError, RandomStream};

pub(crate) static REQUEST_RESPONSE: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "request-response",
        text: "requests from `from`, each answered by `to` (TCP); the next is sent after the response has arrived. Default \
               port 80.",
        fields: &[&[
            Field::required("request", SIZE_OR_RANDOM, "Size of a request."),
            Field::required("response", SIZE_OR_RANDOM, "Size of a response."),
            Field::default(
                "think",
                TIME_OR_RANDOM,
                "0s",
                "Time from the end of a request to the start of its response.",
            ),
            Field::default("idle", TIME_OR_RANDOM, "0s", "Time from the end of a response to the next request."),
            Field::default(
                "connection",
                FieldKind::Choice(&choices(&CONNECTION)),
                "kept",
                "Connections of the exchanges.",
            ),
            Field::optional("exchanges", COUNT, "without end", "Number of exchanges."),
        ]],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    port: 80,
    metrics: &[&COMPLETED, &[FAILED]],
    read: |reader, _| {
        Ok(Box::new(RequestResponseSpec {
            request_bytes: reader.distribution("request")?,
            response_bytes: reader.distribution("response")?,
            think_s: reader.distribution("think")?,
            idle_s: reader.distribution("idle")?,
            connection: reader.tree.choice_value("connection", &CONNECTION),
            count: count(reader.tree, "exchanges"),
        }))
    },
    ..WorkloadComponent::EMPTY
};

static CONNECTION: [(Choice, ConnectionUse); 2] = [
    (Choice::new("kept", "one connection for all exchanges."), ConnectionUse::Persistent),
    (Choice::new("per-exchange", "a new connection for each exchange."), ConnectionUse::PerExchange),
];

static COMPLETED: [ApplicationMetric; 3] = [
    ApplicationMetric::new("exchanges", "", "Exchanges whose response the client has received completely."),
    ApplicationMetric::new(
        "exchange_mean_s",
        "s",
        "Mean time from the start of an exchange to the last byte of its response.",
    ),
    ApplicationMetric::new("exchange_max_s", "s", "Longest time of an exchange."),
];

const FAILED: ApplicationMetric =
    ApplicationMetric::new("exchanges_failed", "", "Exchanges whose connection was lost.");

/// How exchanges use connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionUse {
    /// One connection for all exchanges (persistent HTTP, netperf's TCP_RR). The client closes the connection after the
    /// last exchange.
    #[default]
    Persistent,
    /// A new connection for each exchange (HTTP/1.0, netperf's TCP_CRR). The server closes the connection after the
    /// response.
    PerExchange,
}

/// The settings of a client and a server.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestResponseSpec {
    /// Sizes of requests in bytes (each at least 1).
    pub request_bytes: Distribution,
    /// Sizes of responses in bytes (each at least 1).
    pub response_bytes: Distribution,
    /// Time in seconds from the arrival of the request's last byte at the server to the response's first byte.
    pub think_s: Distribution,
    /// Time in seconds from the arrival of the response's last byte at the client to the next request.
    pub idle_s: Distribution,
    /// How exchanges use connections.
    pub connection: ConnectionUse,
    /// Number of exchanges (`None`: unlimited).
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

impl WorkloadSettings for RequestResponseSpec {
    fn is_unlimited(&self) -> bool {
        self.count.is_none()
    }

    fn senders(&self) -> [bool; 2] {
        [true, true]
    }

    /// The end whose messages are larger on average.
    fn main_senders(&self) -> [bool; 2] {
        let (request, response) = (self.request_bytes.mean(), self.response_bytes.mean());
        [request >= response, response >= request]
    }

    fn demand(&self, time_s: f64) -> Demand {
        /// The factor on the mean sizes if there are few random exchanges.
        const MARGIN: f64 = 4.0;
        let per_exchange = self.connection == ConnectionUse::PerExchange;
        let pause_s = self.think_s.mean() + self.idle_s.mean();
        let expected = demand::count(time_s, pause_s, self.count);
        let random = [&self.request_bytes, &self.response_bytes, &self.think_s, &self.idle_s];
        let steady = random.into_iter().all(|distribution| demand::is_steady(distribution, expected));
        let margin = if steady { 1.0 } else { MARGIN };
        let exchange = Demand {
            bytes: [self.request_bytes.mean(), self.response_bytes.mean()].map(|bytes| margin * bytes),
            messages: [1.0, 1.0],
            lifetime_s: per_exchange.then_some(0.0),
            timers: if pause_s > 0.0 { 2.0 } else { 0.0 },
            exchanges: Some(Exchanges {
                most: self.count.map_or(f64::INFINITY, |count| count as f64),
                round_trips: if per_exchange { 2.0 } else { 1.0 },
                pause_s: pause_s / margin,
            }),
            ..Demand::NO_DATA
        };
        if steady {
            exchange
        } else {
            exchange.as_upper_bound("few random exchanges, counted with four times their mean size and rate")
        }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let random = || context.random("workload");
        let server = RequestResponseServer::new(self, random())?;
        Ok([Box::new(RequestResponseClient::new(self, random())?), Box::new(server)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.request_bytes.check().map_err(|invalid| invalid.in_field("request"))?;
        self.response_bytes.check().map_err(|invalid| invalid.in_field("response"))?;
        self.think_s.check().map_err(|invalid| invalid.in_field("think time"))?;
        self.idle_s.check().map_err(|invalid| invalid.in_field("idle time"))
    }
}

impl RequestResponseSpec {
    fn exchange(&self, index: u32, plan: &mut DrawSequence<Exchange>) -> Exchange {
        plan.get(index, |random: &mut RandomStream, _| Exchange {
            request_bytes: self.request_bytes.sample_bytes(random),
            response_bytes: self.response_bytes.sample_bytes(random),
            think: self.think_s.sample_duration(random),
            idle: self.idle_s.sample_duration(random),
        })
    }

    /// Whether there is an exchange with number `index`.
    fn has(&self, index: u32) -> bool {
        self.count.is_none_or(|count| u64::from(index) < count)
    }
}
