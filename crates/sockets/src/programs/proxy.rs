//! The program `masque proxy`.

use super::{ControlChoice, ProgramError, Request, Signals, TunnelMetrics, farewell, metrics, run_error};
use crate::http2::{self, SharedTls};
use crate::secret::ServerSecret;
use crate::tls::ServerCredentials;
use crate::{TokioEnvironment, endpoint, tls};
use fullpipe_control::RttStatistics;
use fullpipe_masque::configuration;
use fullpipe_masque::environment::Environment;
use fullpipe_masque::log::{Event, EventLogger};
use fullpipe_masque::metrics::Metrics;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpListener;

/// Options of the program `masque proxy`.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Certificate chain and private key of the proxy.
    pub identity: ServerCredentials,
    /// Versions of HTTP that the proxy serves: 3 on UDP, 2 on TCP, or both on the same port.
    pub http: HttpVersions,
    /// File with the authorities that sign the certificates of clients; `None` if clients need no certificate.
    pub client_ca: Option<PathBuf>,
    /// File with the secret of keys that survive a restart; `None` if they are random. It is created if it does not exist.
    pub secret: Option<PathBuf>,
    /// Address on which the proxy serves its metrics; `None` disables this service.
    pub metrics: Option<SocketAddr>,
    /// Congestion control of the connections to clients.
    pub control: ControlChoice,
    /// Time after a termination signal in which open tunnels may end.
    pub drain: Duration,
    /// All other settings.
    pub settings: configuration::Proxy,
}

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpVersions {
    /// HTTP/2 over TLS and TCP.
    pub http2: bool,
    /// HTTP/3 over QUIC.
    pub http3: bool,
}

/// The sockets on which a proxy listens.
struct Listeners {
    endpoint: Option<noq::Endpoint>,
    tcp: Option<TcpListener>,
    address: SocketAddr,
}

impl Listeners {
    /// Binds the sockets of these versions, with the same port.
    async fn bind(
        options: &ProxyOptions,
        tls: noq::ServerConfig,
        secret: Option<&ServerSecret>,
    ) -> io::Result<Listeners> {
        let mut listeners = Listeners { endpoint: None, tcp: None, address: options.listen };
        if options.http.http3 {
            let transport = options.settings.transport();
            let keys = secret.map_or_else(noq::EndpointConfig::default, ServerSecret::endpoint_config);
            let endpoint = endpoint::bind_server_with(&TokioEnvironment, options.listen, keys, tls, transport)?;
            listeners.address = endpoint.local_addr()?;
            listeners.endpoint = Some(endpoint);
        }
        if options.http.http2 {
            let listener = TcpListener::bind(listeners.address).await?;
            listeners.address = listener.local_addr()?;
            listeners.tcp = Some(listener);
        }
        Ok(listeners)
    }
}

/// Interval of the check whether all tunnels have ended.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Passes all events on, and reports metrics when a connection ends.
struct Telling<T> {
    log: Arc<dyn EventLogger>,
    metrics: Arc<Metrics>,
    round_trips: RttStatistics,
    /// Reports are made one at a time, so later ones contain more.
    told: Mutex<T>,
}

impl<T: Fn(TunnelMetrics)> Telling<T> {
    fn tell(&self) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told(TunnelMetrics::new(&self.metrics, &self.round_trips));
    }
}

impl<T: Fn(TunnelMetrics) + Send + 'static> EventLogger for Telling<T> {
    fn log_event(&self, event: &Event<'_>) {
        self.log.log_event(event);
        if let Event::ConnectionClosed { .. } = event {
            self.tell();
        }
    }
}

/// Runs the proxy until the process receives a termination signal. The proxy then sends GOAWAY and waits until all
/// tunnels have ended, for at most the drain time or until a second signal.
///
/// On SIGHUP the proxy calls `reload`, which returns the options as they are now. The certificate and the key apply to
/// new connections. The access policy, the tokens and the limits of clients apply to new requests. Other options keep
/// their values, and so does a generated certificate. If `reload` or the certificate is invalid, nothing changes. `reloaded` receives the result.
///
/// Calls `ready` with the addresses on which it serves clients and metrics. Calls `told` with the metrics of all connections
/// so far, when a connection ends and when the proxy stops.
///
/// # Errors
/// Returns an error if the certificate or the key is invalid, or if a socket cannot be bound.
pub async fn proxy(
    mut options: ProxyOptions,
    log: Arc<dyn EventLogger>,
    ready: impl FnOnce(SocketAddr, Option<SocketAddr>),
    reload: impl Fn() -> Result<ProxyOptions, ProgramError>,
    reloaded: impl Fn(Result<(), ProgramError>),
    told: impl Fn(TunnelMetrics) + Send + 'static,
) -> Result<(), ProgramError> {
    let configured = tls::server_configs(&options.identity, options.client_ca.as_deref());
    let (tls, tcp_tls) = configured.map_err(|error| ProgramError::Usage(error.to_string()))?;
    let secret = options.secret.as_deref().map(|path| {
        let secret = ServerSecret::from_file(path);
        secret.map_err(|error| ProgramError::Usage(format!("{}: {error}", path.display())))
    });
    let secret = secret.transpose()?;
    let with_token_key = |mut tls: noq::ServerConfig| {
        if let Some(secret) = &secret {
            tls.token_key(secret.token_key());
        }
        tls
    };
    let tcp_tls: SharedTls = Arc::new(RwLock::new(tcp_tls));
    let (metrics, round_trips) = (Arc::<Metrics>::default(), RttStatistics::default());
    options.settings.tunnel = options.control.of(&options.settings.tunnel, &round_trips);
    let renewed_settings = options.settings.clone();
    let cannot_listen = format!("cannot listen on {}", options.listen);
    let Listeners { endpoint, tcp, address } =
        Listeners::bind(&options, with_token_key(tls), secret.as_ref()).await.map_err(run_error(&cannot_listen))?;
    options.settings.own.listening.push(address);
    let environment: Arc<dyn Environment> = Arc::new(TokioEnvironment);
    let telling = Arc::new(Telling { log, metrics: Arc::clone(&metrics), round_trips, told: Mutex::new(told) });
    let log: Arc<dyn EventLogger> = Arc::clone(&telling) as _;
    let proxy = fullpipe_masque::proxy::Proxy::new(environment, options.settings, log, Arc::clone(&metrics));
    let open = Arc::clone(&metrics);
    let metrics_address = match options.metrics {
        Some(address) => {
            let cannot_serve = format!("cannot serve metrics on {address}");
            Some(metrics::start(address, metrics).await.map_err(run_error(&cannot_serve))?)
        }
        None => None,
    };
    let mut tasks = tokio::task::JoinSet::new();
    if let Some(serving) = endpoint.clone() {
        let served = proxy.clone();
        tasks.spawn(async move { served.serve(serving).await });
    }
    if let Some(listener) = tcp {
        tasks.spawn(http2::serve(listener, Arc::clone(&tcp_tls), proxy.clone()));
    }
    let mut signals = Signals::with_reload()?;
    ready(address, metrics_address);
    while signals.next().await == Request::Reload {
        let renewed = reload().and_then(|options| {
            // A generated certificate has no file.
            let is_file = matches!(options.identity, ServerCredentials::Files { .. });
            let tls = is_file.then(|| tls::server_configs(&options.identity, options.client_ca.as_deref())).transpose();
            Ok((tls.map_err(|error| ProgramError::Runtime(error.to_string()))?, options.settings))
        });
        reloaded(renewed.map(|(tls, settings)| {
            if let Some((mut configuration, tcp)) = tls {
                configuration = with_token_key(configuration);
                configuration.transport_config(Arc::new(renewed_settings.transport()));
                if let Some(endpoint) = &endpoint {
                    endpoint.set_server_config(Some(configuration));
                }
                *tcp_tls.write().unwrap_or_else(PoisonError::into_inner) = tcp;
            }
            proxy.replace_access(settings.policy, settings.tokens, settings.client_limits);
        }));
    }
    proxy.drain();
    let ended = async {
        while open.requests_open.get() > 0 {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    };
    let mut again = std::pin::pin!(signals.asked_to_end());
    let mut ended = std::pin::pin!(ended);
    let either = std::future::poll_fn(|context| match again.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => ended.as_mut().poll(context),
    });
    let _ = tokio::time::timeout(options.drain, either).await;
    if let Some(endpoint) = &endpoint {
        farewell(endpoint).await;
    }
    tasks.abort_all();
    telling.tell();
    Ok(())
}
