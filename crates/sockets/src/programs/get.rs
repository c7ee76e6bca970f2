//! The program `http3 get`.

use super::connect::{ModeChoice, ProxyConnection, select_mode, to_proxy};
use super::reach::{EstablishedConnection, PeerSettings};
use super::{ConnectionMetrics, ControlChoice, ProgramError, TunnelMetrics, farewell, run_error};
use crate::tls::ServerVerification;
use crate::{TokioEnvironment, endpoint, tls};
use bytes::Bytes;
use fullpipe_control::RttStatistics;
use fullpipe_masque::client::{Client, DatagramObstacle, Tunnel, TunnelClosure, TunnelSocket};
use fullpipe_masque::configuration::{self, Mode};
use fullpipe_masque::environment::Environment;
use fullpipe_masque::http3;
use fullpipe_masque::metrics::Metrics;
use fullpipe_masque::target::{Host, Target};
use fullpipe_masque::template::Template;
use http::Uri;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Options of the tunnel through which a request is sent.
#[derive(Clone, Debug)]
pub struct TunnelOptions {
    /// URI template of the proxy.
    pub template: Template,
    /// Certificates that are trusted for the proxy.
    pub trust: ServerVerification,
    /// How the mode of the tunnel is selected.
    pub mode: ModeChoice,
    /// Settings of the tunnel.
    pub settings: configuration::Client,
    /// Congestion control of the tunnel.
    pub control: ControlChoice,
}

/// Options of the program `http3 get`.
#[derive(Clone, Debug)]
pub struct GetOptions {
    /// URL of the request.
    pub url: String,
    /// Certificates that are trusted for the server.
    pub trust: ServerVerification,
    /// Name that the server's certificate must contain; `None` if it is the host of the URL.
    pub server_name: Option<String>,
    /// Address of the server; `None` if it is that of the URL.
    pub connect: Option<SocketAddr>,
    /// The tunnel through a proxy; `None` for a direct connection.
    pub via: Option<TunnelOptions>,
    /// Settings of the QUIC connection to the server.
    pub connection: configuration::Tunnel,
    /// Congestion control of the connection to the server.
    pub control: ControlChoice,
}

/// Result of the program `http3 get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResult {
    /// Status code of the response.
    pub status: u16,
    /// Size of the body in bytes.
    pub bytes: u64,
    /// Time from the first packet to the server until the connection was established.
    pub handshake: Duration,
    /// Time from the first packet to the server until the body was complete.
    pub completion: Duration,
    /// Time from the first packet (to the proxy, if there is one) until the body was complete.
    pub exchange: Duration,
    /// Metrics of the connection to the server.
    pub connection: ConnectionMetrics,
    /// Name of the congestion control of the connection to the server, or `none`; `None` if unknown.
    pub congestion: Option<&'static str>,
    /// Metrics of the tunnel; `None` without a proxy.
    pub tunnel: Option<TunnelResult>,
}

/// Metrics of the client's end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelResult {
    /// Mode of the tunnel.
    pub mode: Mode,
    /// Reason why the tunnel cannot carry QUIC in datagrams, and therefore uses stream mode.
    pub obstacle: Option<DatagramObstacle>,
    /// Time from the first packet to the proxy until the tunnel was open.
    pub set_up: Duration,
    /// Largest UDP payload in bytes that fits the tunnel at the end of the request.
    pub max_payload: usize,
    /// QUIC packets from the client to the proxy that were declared lost.
    pub lost: u64,
    /// Further metrics of this end of the tunnel.
    pub figures: TunnelMetrics,
    /// Name of the congestion control of this end, or `none`; `None` if unknown.
    pub congestion: Option<&'static str>,
}

fn target(uri: &Uri) -> Result<Target, ProgramError> {
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
    let host = host
        .ok_or_else(|| ProgramError::Usage(format!("{uri} is not an https URL; expected https://HOST[:PORT]/PATH")))?;
    Target::parse(&format!("{host}:{}", uri.port_u16().unwrap_or(443)))
        .map_err(|error| ProgramError::Usage(format!("{uri}: {error}")))
}

/// Requests a URL and passes the body to `store` piece by piece.
///
/// # Errors
/// Returns an error if an option is invalid, if the server or the proxy cannot be reached or fails, or if `store`
/// fails.
pub async fn get(
    options: GetOptions,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<GetResult, ProgramError> {
    let uri: Uri = options.url.parse().map_err(|error| ProgramError::Usage(format!("{}: {error}", options.url)))?;
    let named = target(&uri)?;
    let target = match options.connect {
        Some(address) => Target::new(&address.ip().to_string(), &address.port().to_string())
            .map_err(|error| ProgramError::Usage(error.to_string()))?,
        None => named.clone(),
    };
    let name = options.server_name.clone().unwrap_or_else(|| named.host.to_string());
    let Some(via) = &options.via else {
        let round_trips = RttStatistics::default();
        let reached = server(&options, &name, &round_trips)?.reach(&target).await?;
        let begin = reached.begin;
        return fetch(&uri, reached, begin, &round_trips, store).await;
    };
    let (metrics, round_trips) = (Arc::<Metrics>::default(), RttStatistics::default());
    let counts = (Arc::clone(&metrics), &round_trips);
    let ProxyConnection { endpoint: outer, client, begin } =
        to_proxy(&via.template, (&via.trust, None), None, via.settings.clone(), &via.control, counts).await?;
    let (client, mode, obstacle) = select_mode(client, via.mode).await?;
    if let (Mode::Datagram, Some(obstacle)) = (mode, obstacle) {
        client.close();
        farewell(&outer).await;
        return Err(ProgramError::Runtime(format!("{obstacle}; use --mode auto or --mode stream")));
    }
    let got = through(&options, &uri, &name, &client, &target, begin, store).await.map(|(got, tunnel)| {
        let figures = TunnelMetrics::new(&metrics, &round_trips);
        let lost = client.connection().stats().lost_packets;
        let (set_up, max_payload) = tunnel;
        let congestion = congestion(client.connection());
        let through = TunnelResult { mode, obstacle, set_up, max_payload, lost, figures, congestion };
        GetResult { tunnel: Some(through), ..got }
    });
    client.close();
    farewell(&outer).await;
    got
}

/// Requests a URL through a tunnel of `client`. Also returns the time until the tunnel was open, and the largest UDP
/// payload that fits.
async fn through(
    options: &GetOptions,
    uri: &Uri,
    name: &str,
    client: &Client,
    target: &Target,
    begin: Instant,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<(GetResult, (Duration, usize)), ProgramError> {
    let tunnel = Arc::new(client.open(target).await.map_err(|error| ProgramError::Runtime(error.to_string()))?);
    let set_up = TokioEnvironment.now() - begin;
    // Only the proxy needs the server's address; for the QUIC stack any address is sufficient.
    let known = match &target.host {
        Host::Address(address) => *address,
        Host::Name(_) => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    };
    let peer = SocketAddr::new(known, target.port);
    let local = if peer.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = TunnelSocket::new(Arc::clone(&tunnel), local, peer);
    let inner = endpoint::client_on_socket(&TokioEnvironment, Box::new(socket))
        .map_err(run_error("cannot create a QUIC endpoint"))?;
    let round_trips = RttStatistics::default();
    let server = server(options, name, &round_trips)?;
    let got = async { fetch(uri, server.reach_at(inner, peer).await?, begin, &round_trips, store).await };
    let got = got.await.map_err(|failure| match ended(&tunnel) {
        Some(_) if is_silent(client.connection()) => {
            ProgramError::Runtime(format!("the tunnel ended: {}", silent("proxy")))
        }
        Some(TunnelClosure(reason)) => ProgramError::Runtime(format!("the tunnel ended: {reason}")),
        None => failure,
    })?;
    Ok((got, (set_up, tunnel.max_payload())))
}

/// Reason why a tunnel has ended, if it has. Payloads that still wait in it are lost.
fn ended(tunnel: &Tunnel) -> Option<TunnelClosure> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match tunnel.poll_receive(&mut context, usize::MAX, &mut Vec::new()) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(ended)) => return Some(ended),
            Poll::Pending => return None,
        }
    }
}

/// Whether a connection has timed out because its peer sent nothing.
fn is_silent(connection: &noq::Connection) -> bool {
    connection.close_reason() == Some(noq::ConnectionError::TimedOut)
}

fn silent(peer: &str) -> String {
    format!("no packet arrived from the {peer} within the idle timeout")
}

/// Name of the congestion control of a connection.
fn congestion(connection: &noq::Connection) -> Option<&'static str> {
    connection.congestion_state(noq::PathId::ZERO).and_then(fullpipe_control::control_name)
}

fn server<'a>(
    options: &GetOptions,
    name: &'a str,
    round_trips: &RttStatistics,
) -> Result<PeerSettings<'a>, ProgramError> {
    let mut configuration =
        tls::client_config(&options.trust).map_err(|error| ProgramError::Usage(error.to_string()))?;
    let settings = options.control.of(&options.connection, round_trips);
    configuration.transport_config(Arc::new(settings.transport(0)));
    Ok(PeerSettings { what: "server", name, configuration, padding: None })
}

async fn fetch(
    uri: &Uri,
    EstablishedConnection { endpoint, connection, begin }: EstablishedConnection,
    begin_of_all: Instant,
    round_trips: &RttStatistics,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<GetResult, ProgramError> {
    let handshake = TokioEnvironment.now() - begin;
    let environment: Arc<dyn Environment> = Arc::new(TokioEnvironment);
    let fetched = http3::get(&environment, connection.clone(), uri, store).await;
    let (end, congestion) = (TokioEnvironment.now(), congestion(&connection));
    // If the body cannot be stored, the server need not wait for acknowledgments either.
    farewell(&endpoint).await;
    let fetched = fetched.map_err(|error| match is_silent(&connection) {
        true => ProgramError::Runtime(silent("server")),
        false => ProgramError::Runtime(error.to_string()),
    })?;
    Ok(GetResult {
        status: fetched.status,
        bytes: fetched.bytes,
        handshake,
        completion: end - begin,
        exchange: end - begin_of_all,
        connection: ConnectionMetrics::new(&connection.stats(), round_trips),
        congestion,
        tunnel: None,
    })
}
