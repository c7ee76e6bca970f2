//! The proxy: connections, each with its requests, each with a tunnel to its target.

mod client;
mod connection;
mod relay;
mod request;

use crate::configuration;
use crate::environment::Environment;
use crate::log::Log;
use crate::metrics::{Counter, Metrics};
use std::sync::Arc;

/// A proxy, ready to serve endpoints.
#[derive(Clone)]
pub struct Proxy(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) settings: configuration::Proxy,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Proxy {
    /// A proxy with these settings, which counts there what it does.
    #[must_use]
    pub fn new(
        environment: Arc<dyn Environment>,
        settings: configuration::Proxy,
        log: Arc<dyn Log>,
        metrics: Arc<Metrics>,
    ) -> Proxy {
        Proxy(Arc::new(Shared { environment, settings, log, metrics }))
    }

    /// Serves an endpoint until that is closed. The endpoint's server configuration needs
    /// [`configuration::Proxy::transport`] and the protocol name `h3`.
    pub async fn serve(&self, endpoint: noq::Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            let (metrics, limit) = (&self.0.metrics, self.0.settings.max_connections);
            // Whoever does not receive what is sent to its address cannot take the second half of the places (RFC 9000
            // section 8.1.2).
            if metrics.connections_open.get() >= limit / 2 && !incoming.remote_address_validated() {
                // What cannot be asked to retry is gone.
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

/// A place among those that a gauge counts, given back when dropped.
pub(crate) struct Permit {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &Counter,
}

impl Permit {
    /// A place, if fewer than `limit` are taken.
    pub(crate) fn take(metrics: &Arc<Metrics>, limit: u64, gauge: fn(&Metrics) -> &Counter) -> Option<Permit> {
        // Counted first: tasks of several threads may stand here at once.
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
