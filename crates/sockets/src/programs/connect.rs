//! The program `masque connect`.

use super::reach::{Peer, Reached};
use super::{Control, Failure, Signals, farewell, run_error};
use crate::tls::Trust;
use crate::{Tokio, tls};
use fullpipe_control::RoundTrips;
use fullpipe_masque::client::{Client, Limits, Refused, forward};
use fullpipe_masque::configuration;
use fullpipe_masque::environment::Environment;
use fullpipe_masque::metrics::Metrics;
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Options of the program.
#[derive(Clone, Debug)]
pub struct Connect {
    /// URI template of the proxy.
    pub template: Template,
    /// Target of the tunnels.
    pub target: Target,
    /// Address to which local programs send.
    pub listen: SocketAddr,
    /// Certificates that are trusted.
    pub trust: Trust,
    /// Name that the proxy's certificate must have, if different from the template's.
    pub server_name: Option<String>,
    /// Congestion control of the tunnel.
    pub control: Control,
    /// All other settings.
    pub settings: configuration::Client,
}

/// A tunnel's client.
pub(super) struct ToProxy {
    pub(super) endpoint: noq::Endpoint,
    pub(super) client: Client,
    /// Time at which the first packet was sent.
    pub(super) begin: Instant,
}

/// Connects to the proxy of a template. The connection updates `metrics`.
pub(super) async fn to_proxy(
    template: &Template,
    trust: &Trust,
    server_name: Option<&str>,
    mut settings: configuration::Client,
    control: &Control,
    (metrics, round_trips): (Arc<Metrics>, &RoundTrips),
) -> Result<ToProxy, Failure> {
    settings.tunnel = control.of(&settings.tunnel, round_trips);
    let proxy = template.proxy().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut configuration = tls::client(trust).map_err(|error| Failure::Usage(error.to_string()))?;
    configuration.transport_config(Arc::new(settings.transport()));
    let host = proxy.host.to_string();
    let name = server_name.unwrap_or(&host);
    let Reached { endpoint, connection, begin } = Peer { what: "proxy", name, configuration }.reach(&proxy).await?;
    let client = Client::new(Arc::new(Tokio), connection, template.clone(), settings, metrics)
        .await
        .map_err(|error| Failure::Run(error.to_string()))?;
    Ok(ToProxy { endpoint, client, begin })
}

/// Forwards datagrams until the process receives a termination signal. It opens one tunnel first, so that a rejection
/// is reported at once. Then it calls `ready` with the local address and the largest UDP payload that fits, in bytes.
/// It calls `refused` for tunnels that fail later.
///
/// # Errors
/// If the proxy cannot be reached or rejects the target, or the connection is lost.
pub async fn connect(options: Connect, ready: impl FnOnce(SocketAddr, usize), refused: Refused) -> Result<(), Failure> {
    let name = options.server_name.as_deref();
    let nobody = (Arc::default(), &RoundTrips::default());
    let ToProxy { endpoint, client, .. } =
        to_proxy(&options.template, &options.trust, name, options.settings, &options.control, nobody).await?;
    let tried = match client.open(&options.target).await {
        Ok(tunnel) => tunnel,
        Err(error) => {
            farewell(&endpoint).await;
            return Err(Failure::Run(error.to_string()));
        }
    };
    let socket = Tokio.bind(options.listen).map_err(run_error("cannot listen"))?;
    let mut signals = Signals::new()?;
    ready(socket.local_addr().map_err(run_error("cannot listen"))?, tried.max_payload());
    drop(tried);
    let forwarding = forward(Arc::new(Tokio), client, options.target, socket, Limits::default(), refused);
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
        Some(Ok(Err(error))) => Err(Failure::Run(error.to_string())),
        Some(Err(ended)) => Err(Failure::Run(format!("a bug of this program: {ended}"))),
        Some(Ok(Ok(()))) | None => Ok(()),
    }
}
