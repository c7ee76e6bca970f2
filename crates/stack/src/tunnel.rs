//! CONNECT-UDP (RFC 9298) between hosts of the simulated network: a proxy and a client as programs on a [`Host`].
//!
//! Both are the programs that also run on real sockets (crate `masque`), here with this crate's clock and sockets.
//! There are two differences. Packets between them are unprotected, or protected with keys derived from a seed. Both
//! sides can run without congestion control, which real networks permit only if all tunneled traffic is
//! congestion-controlled (RFC 9298 section 6).
//!
//! A client has one connection to its proxy. It opens a request for each request number with a payload to send.
//! Payloads sent before the proxy has responded wait in order.

use crate::entropy::RandomStreams;
use crate::environment::VirtualEnvironment;
use crate::executor::locked;
use crate::host::{Host, VirtualRuntime};
use crate::journal::PacketLog;
use crate::settings::{EndpointSettings, listener, variable};
use bytes::Bytes;
use fullpipe_control::clock::{duration_from_std, duration_to_std};
use fullpipe_control::{
    AdapterFactory, ControlFactory, ControlState, LatestControl, NoCongestionControl, RttStatistics,
};
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

/// Maximum number of concurrent requests of a tunnel: the stack reserves state for each.
const MOST_REQUESTS: u32 = 10_000;

/// Bytes of one request that can wait until the proxy has responded.
const WAITING_BYTES: usize = 1 << 20;

/// Settings of one end of a tunnel.
#[derive(Clone)]
pub struct TunnelSettings {
    /// Settings of the tunnel from the scenario.
    pub tunnel: Arc<Settings>,
    /// The congestion control; `None` disables congestion control and pacing.
    pub control: Option<ControlFactory>,
    /// Log of the packets and losses of this end; `None` disables the log.
    pub journal: Option<PacketLog>,
}

/// State that one end's connection exposes.
#[derive(Clone, Debug, Default)]
struct Told {
    round_trips: RttStatistics,
    newest: LatestControl,
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
                let factory = AdapterFactory::new(
                    Arc::clone(maker),
                    self.tunnel.initial_window_packets,
                    told.round_trips.clone(),
                );
                Arc::new(
                    factory
                        .with_latest_control(told.newest.clone())
                        .with_loss_listener(self.journal.clone().map(listener)),
                )
            }
            None => Arc::new(NoCongestionControl),
        }
    }

    fn configuration(&self, told: &Told) -> configuration::Tunnel {
        let (settings, mtu) = (&*self.tunnel, self.tunnel.initial_mtu_bytes);
        configuration::Tunnel {
            mtu: if settings.largest_mtu_bytes.is_some() { Mtu::Discover(mtu) } else { Mtu::Fixed(mtu) },
            congestion: Some(self.congestion(told)),
            queue_limit: match settings.queue_limit {
                units::QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes),
                units::QueueLimit::Time(time) => QueueLimit::Time(duration_to_std(time)),
                // The scenario language rejects limits in packets.
                units::QueueLimit::Unlimited | units::QueueLimit::Packets(_) => QueueLimit::Unlimited,
            },
            drop_policy: settings.drop_policy,
            // A limit that a study does not set is unlimited.
            queue_limit_total: u64::MAX,
            scheduler: settings.scheduler,
            coalesce: settings.coalesce,
            datagram_buffer: settings.datagram_buffer_bytes,
            stream_buffer: settings.send_buffer_bytes,
            receive_window: settings.receive_buffer_bytes,
            connection_idle: duration_to_std(settings.idle_timeout),
            keep_alive: None,
        }
    }

    /// Settings of an endpoint whose transport the program has configured.
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

/// Statistics of one end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelStatistics {
    /// Counters of the tunnel.
    pub counters: TunnelCounters,
    /// Mean of the tunnel's smoothed round-trip times at each acknowledged packet; `None` before the first, or without
    /// congestion control.
    pub mean_rtt: Option<Duration>,
}

fn statistics(metrics: &Metrics, round_trips: &RttStatistics) -> TunnelStatistics {
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

/// A CONNECT-UDP proxy that runs on a simulated host.
#[derive(Debug)]
pub struct TunnelProxy {
    metrics: Arc<Metrics>,
    told: Told,
}

impl TunnelProxy {
    /// Starts a proxy that listens at an address of the host and permits all targets.
    ///
    /// # Errors
    /// Returns an error if the host does not have the address, or if the port is in use.
    pub fn start(
        host: &Host,
        settings: &TunnelSettings,
        entropy: &RandomStreams,
        listen: SocketAddr,
    ) -> io::Result<TunnelProxy> {
        let (runtime, told) = (host.runtime(), Told::default());
        let mut configuration = configuration::Proxy::new(template(listen)?);
        configuration.policy.allow_private = true;
        configuration.idle_timeout = duration_to_std(settings.tunnel.idle_timeout);
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

    /// Returns the statistics since the start of the proxy.
    pub fn statistics(&self) -> TunnelStatistics {
        statistics(&self.metrics, &self.told.round_trips)
    }

    /// Current state of the congestion control of the latest connection; `None` without a connection or without
    /// congestion control.
    pub fn inspect(&self) -> Option<ControlState> {
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

/// A CONNECT-UDP client that runs on a simulated host.
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
    /// Wakers of the tasks that wait for the connection.
    waiting: Vec<Waker>,
    requests: BTreeMap<u32, Request>,
    /// Wakers of the tasks of open requests.
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
    /// The proxy has not responded yet.
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
    /// Returns an error if the host does not have the address, or if the port is in use.
    pub fn start(
        host: &Host,
        settings: &TunnelSettings,
        entropy: &RandomStreams,
        local: SocketAddr,
        proxy: SocketAddr,
    ) -> io::Result<TunnelClient> {
        let (runtime, told) = (host.runtime(), Told::default());
        let configuration = configuration::Client {
            mode: settings.tunnel.mode,
            // The proxies of a scenario do not require datagrams for capsules.
            offers_datagrams: settings.tunnel.mode == Mode::Datagram,
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

    /// Sends a payload to a target through the request with this number, and opens the request if necessary. `mode` is
    /// the mode of a new request; `None` selects the mode of the tunnel.
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

    /// Returns the next payload from a target, and the number of its request; `None` if there is none.
    pub fn poll_receive(&self) -> Option<(u32, Bytes)> {
        self.shared.state().arrived.pop_front()
    }

    /// Closes a request that is no longer needed.
    pub fn close_request(&self, request: u32) {
        let mut state = self.shared.state();
        let old = state.requests.insert(request, Request::Over);
        let carrier = state.carriers.remove(&request);
        drop(state);
        drop(old);
        if let Some(carrier) = carrier {
            carrier.wake();
        }
    }

    /// Statistics since the start of the program.
    pub fn statistics(&self) -> TunnelStatistics {
        let state = self.shared.state();
        let mut known = statistics(&self.shared.metrics, &self.shared.told.round_trips);
        known.counters.requests_refused = state.refused;
        known.counters.dropped_queue += state.undelivered;
        known
    }

    /// Current state of the congestion control of the latest connection; `None` without a connection or without
    /// congestion control.
    pub fn inspect(&self) -> Option<ControlState> {
        self.shared.told.newest.inspect()
    }

    /// Smoothed round-trip time to the proxy; `None` unless the connection is open.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        match &self.shared.state().connection {
            Link::Open(client) => client.connection().rtt(PathId::ZERO).map(duration_from_std),
            Link::Opening | Link::Lost => None,
        }
    }

    /// Number of QUIC packets from the client to the proxy that were declared lost; 0 unless the connection is open.
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

    /// Reads the payloads of a request. Returns `false` when the request has ended or was closed.
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

    /// Opens a request, sends its waiting payloads, and receives payloads until it ends.
    async fn carry(&self, number: u32, target: SocketAddr, mode: Option<Mode>) {
        let host = match target.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => ip.to_string(),
        };
        let client = poll_fn(|context| self.poll_client(context)).await;
        let tunnel = match (client, Target::new(&host, &target.port().to_string())) {
            (Some(client), Ok(target)) => match mode {
                Some(mode) => client.open_with_mode(&target, mode).await.ok(),
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
            // The request was closed in the meantime.
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
