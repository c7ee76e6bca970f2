//! CONNECT-UDP (RFC 9298) between hosts of the simulated network: a proxy and a client as programs on a [`Host`].
//!
//! They are the client and the proxy that also run on real sockets (crate `masque`), on this crate's clock and sockets.
//! What differs: nothing, or keys that follow from a seed, protects the packets between them, and both sides may be run
//! without congestion control, which on real networks is allowed only where all that is carried is known to be controlled
//! (RFC 9298 section 6).
//!
//! A client has one connection to its proxy and opens a request for each number that somebody sends a payload for.
//! Payloads that are sent before the proxy has answered wait in the order in which they came.

use crate::entropy::Entropy;
use crate::environment::VirtualEnvironment;
use crate::executor::locked;
use crate::host::{Host, VirtualRuntime};
use crate::journal::Journal;
use crate::settings::{EndpointSettings, listener, variable};
use bytes::Bytes;
use fullpipe_control::clock::{duration, std_duration};
use fullpipe_control::{Factory, Inspection, Maker, Newest, RoundTrips, Uncontrolled};
use fullpipe_masque::client::{Client, Tunnel};
use fullpipe_masque::configuration::{self, Mode, Mtu};
use fullpipe_masque::environment::Environment;
use fullpipe_masque::metrics::Metrics;
use fullpipe_masque::proxy::Proxy;
use fullpipe_masque::queue::QueueLimit;
use fullpipe_masque::settings::Settings;
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use fullpipe_transport::endpoint::TunnelCounters;
use fullpipe_units::{self as units, Duration};
use noq::congestion::ControllerFactory;
use noq::{MtuDiscoveryConfig, PathId};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Requests of one tunnel at a time: the stack keeps a place for each.
const MOST_REQUESTS: u32 = 10_000;

/// Bytes of one request that may wait until the proxy has answered.
const WAITING_BYTES: usize = 1 << 20;

/// How one end of a tunnel is made.
#[derive(Clone)]
pub struct TunnelSettings {
    /// What the scenario says of it.
    pub tunnel: Arc<Settings>,
    /// The congestion control; `None`: there is none, and nothing paces.
    pub control: Option<Maker>,
    /// Where this end's packets and losses are noted for an observer, if they are.
    pub journal: Option<Journal>,
}

/// What one end's connection tells.
#[derive(Clone, Debug, Default)]
struct Told {
    round_trips: RoundTrips,
    newest: Newest,
}

impl fmt::Debug for TunnelSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TunnelSettings").field("tunnel", &self.tunnel).finish_non_exhaustive()
    }
}

impl TunnelSettings {
    fn congestion(&self, told: &Told) -> Arc<dyn ControllerFactory + Send + Sync> {
        match &self.control {
            Some(maker) => {
                let factory =
                    Factory::new(Arc::clone(maker), self.tunnel.initial_window_packets, told.round_trips.clone());
                Arc::new(factory.with_newest(told.newest.clone()).with_losses(self.journal.clone().map(listener)))
            }
            None => Arc::new(Uncontrolled),
        }
    }

    fn configuration(&self, told: &Told) -> configuration::Tunnel {
        let (settings, mtu) = (&*self.tunnel, self.tunnel.initial_mtu_bytes);
        configuration::Tunnel {
            mtu: if settings.largest_mtu_bytes.is_some() { Mtu::Discover(mtu) } else { Mtu::Fixed(mtu) },
            congestion: Some(self.congestion(told)),
            queue_limit: match settings.queue_limit {
                units::QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
                units::QueueLimit::Time(time) => QueueLimit::Time(std_duration(time)),
                // The language refuses numbers of packets.
                units::QueueLimit::Unlimited | units::QueueLimit::Packets(_) => QueueLimit::None,
            },
            drop_policy: settings.drop_policy,
            // What a study does not limit is not limited.
            queue_limit_total: u64::MAX,
            scheduler: settings.scheduler,
            coalesce: settings.coalesce,
            datagram_buffer: settings.datagram_buffer_bytes,
            stream_buffer: settings.send_buffer_bytes,
            receive_window: settings.receive_buffer_bytes,
            connection_idle: std_duration(settings.idle_timeout),
            keep_alive: None,
        }
    }

    /// Settings of an endpoint whose transport was configured by the program.
    fn endpoint(&self, mut transport: noq::TransportConfig, told: &Told) -> EndpointSettings {
        transport
            .enable_segmentation_offload(false)
            .receive_window(variable(u64::from(self.tunnel.receive_buffer_bytes) * 8));
        if let Some(largest) = self.tunnel.largest_mtu_bytes {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(largest);
            transport.mtu_discovery_config(Some(discovery));
        }
        let largest = self.tunnel.largest_mtu_bytes.unwrap_or(0).max(self.tunnel.initial_mtu_bytes).max(1472);
        EndpointSettings {
            transport: Arc::new(transport),
            round_trips: told.round_trips.clone(),
            largest_payload_bytes: largest,
            certificate_bytes: self.tunnel.certificate_bytes,
            cryptography: self.tunnel.cryptography,
            journal: self.journal.clone(),
        }
    }
}

/// What one side of a tunnel has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelStatistics {
    /// What it has counted.
    pub counters: TunnelCounters,
    /// Mean of the smoothed round-trip times of the tunnel at each acknowledged packet; `None` without congestion control.
    pub mean_rtt: Option<Duration>,
}

fn statistics(metrics: &Metrics, round_trips: &RoundTrips) -> TunnelStatistics {
    let counters = TunnelCounters {
        dropped_too_large: metrics.dropped_too_large_total.get(),
        dropped_queue: metrics.dropped_queue_total.get()
            + metrics.dropped_memory_total.get()
            + metrics.dropped_busy_total.get(),
        queued_bytes: metrics.queued_bytes.get(),
        peak_queued_bytes: metrics.queued_peak_bytes.get(),
        requests_refused: metrics.requests_refused_total.get(),
        requests_open: metrics.requests_open.get(),
    };
    TunnelStatistics { counters, mean_rtt: round_trips.mean() }
}

/// A proxy that runs on a host.
#[derive(Debug)]
pub struct TunnelProxy {
    metrics: Arc<Metrics>,
    told: Told,
}

impl TunnelProxy {
    /// Starts a proxy that listens at an address of the host; it serves whatever target it is asked for.
    ///
    /// # Errors
    /// If the address is none of the host's, or the port is taken.
    pub fn start(
        host: &Host,
        settings: &TunnelSettings,
        entropy: &Entropy,
        listen: SocketAddr,
    ) -> io::Result<TunnelProxy> {
        let (runtime, told) = (host.runtime(), Told::default());
        let mut configuration = configuration::Proxy::new(template(listen)?);
        configuration.policy.allow_private = true;
        configuration.idle_timeout = std_duration(settings.tunnel.idle_timeout);
        configuration.max_requests = u64::from(MOST_REQUESTS);
        configuration.max_requests_per_connection = MOST_REQUESTS;
        configuration.tunnel = settings.configuration(&told);
        let endpoint = settings.endpoint(configuration.transport(), &told);
        let endpoint = runtime.endpoint(&endpoint, entropy, listen, true)?;
        let metrics = Arc::default();
        let proxy = Proxy::new(environment(runtime), configuration, Arc::new(()), Arc::clone(&metrics));
        host.spawn(async move { proxy.serve(endpoint).await });
        Ok(TunnelProxy { metrics, told })
    }

    /// What it has done.
    pub fn statistics(&self) -> TunnelStatistics {
        statistics(&self.metrics, &self.told.round_trips)
    }

    /// What the congestion control of its connection shows; `None`: there is no connection, or no control.
    pub fn inspect(&self) -> Option<Inspection> {
        self.told.newest.inspect()
    }
}

fn environment(runtime: VirtualRuntime) -> Arc<dyn Environment> {
    Arc::new(VirtualEnvironment::new(runtime, BTreeMap::new()))
}

fn template(proxy: SocketAddr) -> io::Result<Template> {
    Template::well_known(&proxy.to_string())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
}

/// A client that runs on a host.
pub struct TunnelClient {
    shared: Arc<Shared>,
}

struct Shared {
    environment: Arc<dyn Environment>,
    metrics: Arc<Metrics>,
    told: Told,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Link,
    /// Who waits for the connection.
    waiting: Vec<Waker>,
    requests: BTreeMap<u32, Request>,
    /// The tasks of open requests.
    carriers: BTreeMap<u32, Waker>,
    arrived: VecDeque<(u32, Bytes)>,
    refused: u64,
    undelivered: u64,
}

/// The connection to the proxy.
#[derive(Default)]
enum Link {
    #[default]
    Opening,
    Open(Client),
    Lost,
}

enum Request {
    /// The proxy has not answered yet.
    Asked {
        payloads: Vec<Bytes>,
        bytes: usize,
    },
    Open(Arc<Tunnel>),
    Over,
}

impl fmt::Debug for TunnelClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TunnelClient")
            .field("requests", &self.shared.state().requests.len())
            .finish_non_exhaustive()
    }
}

impl TunnelClient {
    /// Starts a client that connects from an address of the host to a proxy.
    ///
    /// # Errors
    /// If the address is none of the host's, or the port is taken.
    pub fn start(
        host: &Host,
        settings: &TunnelSettings,
        entropy: &Entropy,
        local: SocketAddr,
        proxy: SocketAddr,
    ) -> io::Result<TunnelClient> {
        let (runtime, told) = (host.runtime(), Told::default());
        let configuration = configuration::Client {
            mode: settings.tunnel.mode,
            // The host's applications read at once.
            receive_queue: u64::MAX,
            tunnel: settings.configuration(&told),
            ..configuration::Client::default()
        };
        let endpoint = settings.endpoint(configuration.transport(), &told);
        let endpoint = runtime.endpoint(&endpoint, entropy, local, false)?;
        let template = template(proxy)?;
        let shared = Arc::new(Shared {
            environment: environment(runtime),
            metrics: Arc::default(),
            told,
            state: Mutex::default(),
        });
        let its = Arc::clone(&shared);
        host.spawn(async move {
            let link = its.connect(&endpoint, proxy, template, configuration).await.map_or(Link::Lost, Link::Open);
            its.connected(link);
            endpoint.wait_idle().await;
        });
        Ok(TunnelClient { shared })
    }

    /// Sends a payload to a target by the request of this number, which is made if there is none yet: in a mode of its own, or
    /// in the tunnel's.
    pub fn send(&self, request: u32, target: SocketAddr, mode: Option<Mode>, payload: Bytes) {
        let mut state = self.shared.state();
        match state.requests.get_mut(&request) {
            Some(Request::Open(tunnel)) => {
                let tunnel = Arc::clone(tunnel);
                drop(state);
                tunnel.send(&mut vec![payload]);
            }
            Some(Request::Asked { payloads, bytes }) if *bytes + payload.len() <= WAITING_BYTES => {
                *bytes += payload.len();
                payloads.push(payload);
            }
            Some(_) => state.undelivered += 1,
            None => {
                let bytes = payload.len();
                state.requests.insert(request, Request::Asked { payloads: vec![payload], bytes });
                drop(state);
                let shared = Arc::clone(&self.shared);
                self.shared.environment.spawn(Box::pin(async move { shared.carry(request, target, mode).await }));
            }
        }
    }

    /// The next payload that has come from a target, and the request that it came by.
    pub fn poll_arrived(&self) -> Option<(u32, Bytes)> {
        self.shared.state().arrived.pop_front()
    }

    /// The request is of no more use.
    pub fn close(&self, request: u32) {
        let mut state = self.shared.state();
        let old = state.requests.insert(request, Request::Over);
        let carrier = state.carriers.remove(&request);
        drop(state);
        drop(old);
        if let Some(carrier) = carrier {
            carrier.wake();
        }
    }

    /// What it has done.
    pub fn statistics(&self) -> TunnelStatistics {
        let state = self.shared.state();
        let mut known = statistics(&self.shared.metrics, &self.shared.told.round_trips);
        known.counters.requests_refused = state.refused;
        known.counters.dropped_queue += state.undelivered;
        known
    }

    /// What the congestion control of its connection shows; `None`: there is no connection, or no control.
    pub fn inspect(&self) -> Option<Inspection> {
        self.shared.told.newest.inspect()
    }

    /// Smoothed round-trip time to the proxy; `None` before there is a connection.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        match &self.shared.state().connection {
            Link::Open(client) => client.connection().rtt(PathId::ZERO).map(duration),
            Link::Opening | Link::Lost => None,
        }
    }

    /// QUIC packets that the client found lost on the way to the proxy.
    pub fn lost_packets(&self) -> u64 {
        match &self.shared.state().connection {
            Link::Open(client) => client.connection().stats().lost_packets,
            Link::Opening | Link::Lost => 0,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn connected(&self, link: Link) {
        let mut state = self.state();
        state.connection = link;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    async fn connect(
        &self,
        endpoint: &noq::Endpoint,
        proxy: SocketAddr,
        template: Template,
        configuration: configuration::Client,
    ) -> Option<Client> {
        let connection = endpoint.connect(proxy, "proxy").ok()?.await.ok()?;
        let (environment, metrics) = (Arc::clone(&self.environment), Arc::clone(&self.metrics));
        Client::new(environment, connection, template, configuration, metrics).await.ok()
    }

    fn poll_client(&self, context: &Context<'_>) -> Poll<Option<Client>> {
        let mut state = self.state();
        match &state.connection {
            Link::Open(client) => Poll::Ready(Some(client.clone())),
            Link::Lost => Poll::Ready(None),
            Link::Opening => {
                state.waiting.push(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// What has come by a request; `false` when it is over, or closed.
    fn poll_payloads(
        &self,
        context: &mut Context<'_>,
        number: u32,
        tunnel: &Tunnel,
        into: &mut Vec<Bytes>,
    ) -> Poll<bool> {
        let mut state = self.state();
        if let Some(Request::Over) = state.requests.get(&number) {
            return Poll::Ready(false);
        }
        if !state.carriers.get(&number).is_some_and(|carrier| carrier.will_wake(context.waker())) {
            state.carriers.insert(number, context.waker().clone());
        }
        drop(state);
        tunnel.poll_receive(context, usize::MAX, into).map(|received| received.is_ok())
    }

    /// Opens a request, sends what has waited for it, and takes what comes by it until it is over.
    async fn carry(&self, number: u32, target: SocketAddr, mode: Option<Mode>) {
        let host = match target.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => ip.to_string(),
        };
        let client = poll_fn(|context| self.poll_client(context)).await;
        let tunnel = match (client, Target::new(&host, &target.port().to_string())) {
            (Some(client), Ok(target)) => match mode {
                Some(mode) => client.open_in(&target, mode).await.ok(),
                None => client.open(&target).await.ok(),
            },
            _ => None,
        };
        let Some(tunnel) = tunnel.map(Arc::new) else {
            let mut state = self.state();
            state.refused += 1;
            state.requests.insert(number, Request::Over);
            return;
        };
        let before = self.state().requests.insert(number, Request::Open(Arc::clone(&tunnel)));
        match before {
            Some(Request::Asked { mut payloads, .. }) => tunnel.send(&mut payloads),
            // Closed meanwhile.
            _ => drop(self.state().requests.insert(number, Request::Over)),
        }
        let mut payloads = Vec::new();
        while poll_fn(|context| self.poll_payloads(context, number, &tunnel, &mut payloads)).await {
            self.state().arrived.extend(payloads.drain(..).map(|payload| (number, payload)));
        }
        let mut state = self.state();
        state.carriers.remove(&number);
        let old = state.requests.insert(number, Request::Over);
        drop(state);
        drop(old);
    }
}
