//! The program `masque connect`.

use super::reach::{EstablishedConnection, PeerSettings};
use super::{ControlChoice, ProgramError, Signals, farewell, run_error};
use crate::tls::ServerVerification;
use crate::{TokioEnvironment, tls};
use fullpipe_control::RttStatistics;
use fullpipe_masque::client::{Client, ForwarderLimits, RejectionCallback, forward};
use fullpipe_masque::configuration;
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
    /// Name that the proxy's certificate must contain; `None` if it is the host of the template.
    pub server_name: Option<String>,
    /// Congestion control of the tunnel.
    pub control: ControlChoice,
    /// All other settings.
    pub settings: configuration::Client,
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
    trust: &ServerVerification,
    server_name: Option<&str>,
    mut settings: configuration::Client,
    control: &ControlChoice,
    (metrics, round_trips): (Arc<Metrics>, &RttStatistics),
) -> Result<ProxyConnection, ProgramError> {
    settings.tunnel = control.of(&settings.tunnel, round_trips);
    let proxy = template.proxy_target().map_err(|error| ProgramError::Usage(error.to_string()))?;
    let mut configuration = tls::client_config(trust).map_err(|error| ProgramError::Usage(error.to_string()))?;
    configuration.transport_config(Arc::new(settings.transport()));
    let host = proxy.host.to_string();
    let name = server_name.unwrap_or(&host);
    let EstablishedConnection { endpoint, connection, begin } =
        PeerSettings { what: "proxy", name, configuration }.reach(&proxy).await?;
    let client = Client::new(Arc::new(TokioEnvironment), connection, template.clone(), settings, metrics)
        .await
        .map_err(|error| ProgramError::Runtime(error.to_string()))?;
    Ok(ProxyConnection { endpoint, client, begin })
}

/// Forwards datagrams until the process receives a termination signal. The program opens one tunnel first, so that it
/// reports a rejection immediately. Then it calls `ready` with the local address and the largest UDP payload that fits,
/// in bytes. It calls `refused` for tunnels that fail later.
///
/// # Errors
/// Returns an error if an option is invalid, or if the program cannot listen on the local address. Also returns an
/// error if the proxy cannot be reached or rejects the target, or if the connection is lost.
pub async fn connect(
    options: ConnectOptions,
    ready: impl FnOnce(SocketAddr, usize),
    refused: RejectionCallback,
) -> Result<(), ProgramError> {
    let name = options.server_name.as_deref();
    let nobody = (Arc::default(), &RttStatistics::default());
    let ProxyConnection { endpoint, client, .. } =
        to_proxy(&options.template, &options.trust, name, options.settings, &options.control, nobody).await?;
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
        Some(Ok(Ok(()))) | None => Ok(()),
    }
}
