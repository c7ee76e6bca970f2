//! The proxy: its connections, their requests, and a tunnel to the target for each request. Tunnels carry UDP (RFC 9298) or
//! TCP (RFC 9114 section 4.4).

mod accounts;
mod admission;
mod client;
mod connection;
mod drain;
mod egress;
mod end;
mod exchange;
mod relay;
mod request;
mod tcp;

use crate::access::{ClientLimits, Token};
use crate::configuration;
use crate::environment::Environment;
pub use crate::halves::{ReadHalf, WriteHalf};
use crate::log::EventLogger;
use crate::metrics::{Counter, Metrics};
use crate::policy::Policy;
use accounts::Accounts;
use drain::Drain;
use egress::Egress;
pub use exchange::{ConnectionSlot, Exchange};
use std::sync::{Arc, PoisonError, RwLock};

/// A proxy that can serve endpoints.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyState>);

pub(crate) struct ProxyState {
    pub(crate) environment: Arc<dyn Environment>,
    /// Replaced as a whole by [`Proxy::replace_access`], so that a request is checked by one set of settings.
    settings: RwLock<Arc<configuration::Proxy>>,
    pub(crate) log: Arc<dyn EventLogger>,
    pub(crate) metrics: Arc<Metrics>,
    /// The addresses from which the UDP tunnels send to their targets.
    pub(crate) egress: Egress,
    /// The addresses from which the TCP tunnels are connected to their targets.
    pub(crate) tcp_egress: Egress,
    pub(crate) accounts: Accounts,
    pub(crate) drain: Drain,
}

impl ProxyState {
    /// Returns the current settings.
    pub(crate) fn settings(&self) -> Arc<configuration::Proxy> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Proxy {
    /// Creates a proxy with these settings. The proxy updates `metrics`.
    #[must_use]
    pub fn new(
        environment: Arc<dyn Environment>,
        settings: configuration::Proxy,
        log: Arc<dyn EventLogger>,
        metrics: Arc<Metrics>,
    ) -> Proxy {
        Proxy(Arc::new(ProxyState {
            environment,
            settings: RwLock::new(Arc::new(settings)),
            log,
            metrics,
            egress: Egress::default(),
            tcp_egress: Egress::default(),
            accounts: Accounts::default(),
            drain: Drain::default(),
        }))
    }

    /// Replaces the access policy, the tokens and the limits of clients. They apply to new requests; open tunnels continue.
    pub fn replace_access(&self, policy: Policy, tokens: Vec<Token>, client_limits: ClientLimits) {
        let mut settings = self.0.settings.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = configuration::Proxy { policy, tokens, client_limits, ..configuration::Proxy::clone(&settings) };
        *settings = Arc::new(replaced);
    }

    /// Begins a graceful shutdown: the proxy sends GOAWAY on each connection (RFC 9114 section 5.2) and rejects new
    /// connections and requests. Open tunnels continue.
    pub fn drain(&self) {
        self.0.drain.begin();
    }

    /// Serves an endpoint until it is closed. The endpoint's server configuration must have
    /// [`configuration::Proxy::transport`] and the ALPN protocol `h3`.
    pub async fn serve(&self, endpoint: noq::Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            let (metrics, limit) = (&self.0.metrics, self.0.settings().max_connections);
            if self.0.drain.has_begun() {
                incoming.refuse();
                continue;
            }
            // The second half of the connection limit is reserved for clients with a validated address (RFC 9000
            // section 8.1.2).
            if metrics.connections_open.get() >= limit / 2 && !incoming.remote_address_validated() {
                // A connection to which no Retry packet can be sent has already ended.
                let _ = incoming.retry();
                continue;
            }
            let Some(permit) = Permit::take(metrics, limit, |metrics| &metrics.connections_open) else {
                metrics.connections_refused_total.add(1);
                incoming.refuse();
                continue;
            };
            let shared = Arc::clone(&self.0);
            self.0.environment.spawn(Box::pin(connection::serve(shared, incoming, permit)));
        }
    }
}

/// A slot counted by a gauge. The slot is freed when this value is dropped.
pub(crate) struct Permit {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &Counter,
}

impl Permit {
    /// Takes a slot if fewer than `limit` are in use.
    pub(crate) fn take(metrics: &Arc<Metrics>, limit: u64, gauge: fn(&Metrics) -> &Counter) -> Option<Permit> {
        // The slot is counted before the check, because tasks on several threads may run this code concurrently.
        let permit = Permit { metrics: Arc::clone(metrics), gauge };
        gauge(metrics).add(1);
        (gauge(metrics).get() <= limit).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).subtract(1);
    }
}
