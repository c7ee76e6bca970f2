//! The program `masque connect`.

use super::reach::{EstablishedConnection, Padding, PeerSettings};
use super::{ControlChoice, ProgramError, Signals, farewell, run_error};
use crate::tls::{ServerCredentials, ServerVerification};
use crate::{TokioEnvironment, tls};
use fullpipe_control::RttStatistics;
use fullpipe_masque::client::{Client, DatagramObstacle, ForwarderLimits, RejectionCallback, forward};
use fullpipe_masque::configuration::{self, MIN_MTU, Mode, Mtu};
use fullpipe_masque::environment::Environment;
use fullpipe_masque::metrics::Metrics;
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Options of the program `masque connect`.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// URI template of the proxy.
    pub template: Template,
    /// Target of the tunnels.
    pub target: Target,
    /// Address on which the program listens for the datagrams of local programs.
    pub listen: SocketAddr,
    /// Certificates that are trusted for the proxy.
    pub trust: ServerVerification,
    /// Certificate that the client presents; `None` if it has none.
    pub identity: Option<ServerCredentials>,
    /// Name that the proxy's certificate must contain; `None` if it is the host of the template.
    pub server_name: Option<String>,
    /// Congestion control of the tunnel.
    pub control: ControlChoice,
    /// How the mode of the tunnels is selected.
    pub mode: ModeChoice,
    /// All other settings.
    pub settings: configuration::Client,
}

/// How the mode of tunnels is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeChoice {
    /// This mode.
    Fixed(Mode),
    /// Datagram mode if the connection to the proxy carries the first packets of QUIC connections, otherwise stream
    /// mode. It is selected before the first payload and does not change.
    Auto,
}

/// Selects the mode of all tunnels of a connection. Returns the reason why datagrams cannot carry QUIC, if there is one.
pub(super) async fn select_mode(
    client: Client,
    choice: ModeChoice,
) -> Result<(Client, Mode, Option<DatagramObstacle>), ProgramError> {
    let mode = match choice {
        ModeChoice::Fixed(Mode::Stream) => return Ok((client.with_mode(Mode::Stream), Mode::Stream, None)),
        ModeChoice::Fixed(Mode::Datagram) | ModeChoice::Auto => Mode::Datagram,
    };
    let obstacle = client.datagram_obstacle().await.map_err(|error| ProgramError::Runtime(error.to_string()))?;
    let mode = if choice == ModeChoice::Auto && obstacle.is_some() { Mode::Stream } else { mode };
    Ok((client.with_mode(mode), mode, obstacle))
}

/// A tunnel's client.
pub(super) struct ProxyConnection {
    pub(super) endpoint: noq::Endpoint,
    pub(super) client: Client,
    /// Time at which the first packet was sent.
    pub(super) begin: Instant,
}

/// Connects to the proxy of a template. The connection updates `metrics`.
pub(super) async fn to_proxy(
    template: &Template,
    (trust, identity): (&ServerVerification, Option<&ServerCredentials>),
    server_name: Option<&str>,
    mut settings: configuration::Client,
    control: &ControlChoice,
    (metrics, round_trips): (Arc<Metrics>, &RttStatistics),
) -> Result<ProxyConnection, ProgramError> {
    settings.tunnel = control.of(&settings.tunnel, round_trips);
    let proxy = template.proxy_target().map_err(|error| ProgramError::Usage(error.to_string()))?;
    let mut configuration =
        tls::client_config_with_certificate(trust, identity).map_err(|error| ProgramError::Usage(error.to_string()))?;
    configuration.transport_config(Arc::new(settings.transport()));
    let host = proxy.host.to_string();
    let name = server_name.unwrap_or(&host);
    let size = settings.tunnel.mtu.initial();
    let padding = (size > MIN_MTU).then(|| {
        let smallest = configuration::Tunnel { mtu: Mtu::Fixed(MIN_MTU), ..settings.tunnel.clone() };
        let mut fallback = configuration.clone();
        let transport = configuration::Client { tunnel: smallest, ..settings.clone() }.transport();
        fallback.transport_config(Arc::new(transport));
        Padding { size, fallback }
    });
    let peer = PeerSettings { what: "proxy", name, configuration, padding };
    let EstablishedConnection { endpoint, connection, begin } = peer.reach(&proxy).await?;
    let client = Client::new(Arc::new(TokioEnvironment), connection, template.clone(), settings, metrics)
        .await
        .map_err(|error| ProgramError::Runtime(error.to_string()))?;
    Ok(ProxyConnection { endpoint, client, begin })
}

/// Forwards datagrams until the process receives a termination signal. The program opens one tunnel first, so that it
/// reports a rejection immediately. It calls `selected` with the mode, and with the reason why datagrams cannot carry
/// QUIC if there is one. Then it calls `ready` with the local address and the largest UDP payload that fits, in bytes.
/// It calls `refused` for tunnels that fail later. Returns the number of payloads that did not fit and were dropped.
///
/// # Errors
/// Returns an error if an option is invalid, or if the program cannot listen on the local address. Also returns an
/// error if the proxy cannot be reached or rejects the target, or if the connection is lost.
pub async fn connect(
    options: ConnectOptions,
    selected: impl FnOnce(Mode, Option<DatagramObstacle>),
    ready: impl FnOnce(SocketAddr, usize),
    refused: RejectionCallback,
) -> Result<u64, ProgramError> {
    let name = options.server_name.as_deref();
    let metrics = Arc::<Metrics>::default();
    let counts = (Arc::clone(&metrics), &RttStatistics::default());
    let trust = (&options.trust, options.identity.as_ref());
    let ProxyConnection { endpoint, client, .. } =
        to_proxy(&options.template, trust, name, options.settings, &options.control, counts).await?;
    let (client, mode, obstacle) = select_mode(client, options.mode).await?;
    selected(mode, obstacle);
    let tried = match client.open(&options.target).await {
        Ok(tunnel) => tunnel,
        Err(error) => {
            farewell(&endpoint).await;
            return Err(ProgramError::Runtime(error.to_string()));
        }
    };
    let cannot_listen = format!("cannot listen on {}", options.listen);
    let socket = TokioEnvironment.bind(options.listen).map_err(run_error(&cannot_listen))?;
    let mut signals = Signals::new()?;
    ready(socket.local_addr().map_err(run_error(&cannot_listen))?, tried.max_payload());
    drop(tried);
    let forwarding =
        forward(Arc::new(TokioEnvironment), client, options.target, socket, ForwarderLimits::default(), refused);
    let mut task = tokio::spawn(forwarding);
    let lost = {
        let mut end = std::pin::pin!(signals.asked_to_end());
        std::future::poll_fn(|context| {
            if end.as_mut().poll(context).is_ready() {
                return std::task::Poll::Ready(None);
            }
            std::pin::Pin::new(&mut task).poll(context).map(Some)
        })
        .await
    };
    farewell(&endpoint).await;
    task.abort();
    match lost {
        Some(Ok(Err(error))) => Err(ProgramError::Runtime(error.to_string())),
        Some(Err(ended)) => Err(ProgramError::Runtime(format!("internal error (please report it): {ended}"))),
        Some(Ok(Ok(()))) | None => Ok(metrics.dropped_too_large_total.get()),
    }
}
