//! `http3 get`.

use super::connect::{ToProxy, to_proxy};
use super::reach::{Peer, Reached};
use super::{ConnectionFigures, Control, Failure, TunnelFigures, farewell, run_error};
use crate::tls::Trust;
use crate::{Tokio, endpoint, tls};
use bytes::Bytes;
use fullpipe_control::RoundTrips;
use fullpipe_masque::client::{Client, Ended, Tunnel, TunnelSocket};
use fullpipe_masque::configuration;
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

/// How a request reaches its server through a proxy.
#[derive(Clone, Debug)]
pub struct Via {
    /// The proxy.
    pub template: Template,
    /// Whom to trust as the proxy.
    pub trust: Trust,
    /// The tunnel.
    pub settings: configuration::Client,
    /// Its congestion control.
    pub control: Control,
}

/// What the user gave.
#[derive(Clone, Debug)]
pub struct Get {
    /// What to get.
    pub url: String,
    /// Whom to trust as the server.
    pub trust: Trust,
    /// The name that the server's certificate has to have, if not the URL's.
    pub server_name: Option<String>,
    /// Where the server is, if not where the URL says.
    pub connect: Option<SocketAddr>,
    /// The proxy, if any.
    pub via: Option<Via>,
    /// The QUIC connection to the server.
    pub connection: configuration::Tunnel,
    /// Its congestion control.
    pub control: Control,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// The answer's status code.
    pub status: u16,
    /// Bytes of its body.
    pub bytes: u64,
    /// From the first packet to the server until its connection was established.
    pub handshake: Duration,
    /// From the first packet to the server until the whole body was there.
    pub completion: Duration,
    /// From the first packet, which is to the proxy if there is one, until the whole body was there.
    pub exchange: Duration,
    /// Of the connection to the server.
    pub connection: ConnectionFigures,
    /// Name of the congestion control that drove it.
    pub congestion: Option<&'static str>,
    /// The tunnel, if there was one.
    pub tunnel: Option<GotThrough>,
}

/// What the tunnel had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GotThrough {
    /// From the first packet to the proxy until the tunnel was open.
    pub set_up: Duration,
    /// The largest UDP payload that passed at the end.
    pub max_payload: usize,
    /// Packets of this side of the tunnel that were lost.
    pub lost: u64,
    /// Of this side of it.
    pub figures: TunnelFigures,
    /// Name of the congestion control that drove this side, or `none`.
    pub congestion: Option<&'static str>,
}

fn target(uri: &Uri) -> Result<Target, Failure> {
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
    let host = host.ok_or_else(|| Failure::Usage(format!("{uri} is not a URL of https")))?;
    Target::parse(&format!("{host}:{}", uri.port_u16().unwrap_or(443)))
        .map_err(|error| Failure::Usage(format!("{uri}: {error}")))
}

/// Gets a URL and hands the body to `store` piece by piece.
///
/// # Errors
/// If server or proxy are not to be had, or fail, or `store` does.
pub async fn get(options: Get, store: impl FnMut(&Bytes) -> io::Result<()> + Send) -> Result<Got, Failure> {
    let uri: Uri = options.url.parse().map_err(|error| Failure::Usage(format!("{}: {error}", options.url)))?;
    let named = target(&uri)?;
    let target = match options.connect {
        Some(address) => Target::new(&address.ip().to_string(), &address.port().to_string())
            .map_err(|error| Failure::Usage(error.to_string()))?,
        None => named.clone(),
    };
    let name = options.server_name.clone().unwrap_or_else(|| named.host.to_string());
    let Some(via) = &options.via else {
        let round_trips = RoundTrips::default();
        let reached = server(&options, &name, &round_trips)?.reach(&target).await?;
        let begin = reached.begin;
        return fetch(&uri, reached, begin, &round_trips, store).await;
    };
    let (metrics, round_trips) = (Arc::<Metrics>::default(), RoundTrips::default());
    let counts = (Arc::clone(&metrics), &round_trips);
    let ToProxy { endpoint: outer, client, begin } =
        to_proxy(&via.template, &via.trust, None, via.settings.clone(), &via.control, counts).await?;
    let got = through(&options, &uri, &name, &client, &target, begin, store).await.map(|(got, tunnel)| {
        let figures = TunnelFigures::new(&metrics, &round_trips);
        let lost = client.connection().stats().lost_packets;
        let through = GotThrough { lost, figures, congestion: congestion(client.connection()), ..tunnel };
        Got { tunnel: Some(through), ..got }
    });
    client.close();
    farewell(&outer).await;
    got
}

/// Gets a URL through a tunnel of `client`; of the tunnel, tells what is known without counters.
async fn through(
    options: &Get,
    uri: &Uri,
    name: &str,
    client: &Client,
    target: &Target,
    begin: Instant,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<(Got, GotThrough), Failure> {
    let tunnel = Arc::new(client.open(target).await.map_err(|error| Failure::Run(error.to_string()))?);
    let set_up = Tokio.now() - begin;
    // The proxy knows where the server is; towards the QUIC stack any address will do.
    let known = match &target.host {
        Host::Address(address) => *address,
        Host::Name(_) => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    };
    let peer = SocketAddr::new(known, target.port);
    let local = if peer.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = TunnelSocket::new(Arc::clone(&tunnel), local, peer);
    let inner = endpoint::on_socket(&Tokio, Box::new(socket)).map_err(run_error("no endpoint"))?;
    let round_trips = RoundTrips::default();
    let server = server(options, name, &round_trips)?;
    let got = async { fetch(uri, server.reach_at(inner, peer).await?, begin, &round_trips, store).await };
    let got = got.await.map_err(|failure| match ended(&tunnel) {
        Some(_) if is_silent(client.connection()) => Failure::Run(format!("the tunnel ended: {}", silent("proxy"))),
        Some(ended) => Failure::Run(format!("the tunnel ended: {ended}")),
        None => failure,
    })?;
    Ok((got, GotThrough { set_up, max_payload: tunnel.max_payload(), ..GotThrough::default() }))
}

/// Why a tunnel is over, if it is. What still waits in it is lost.
fn ended(tunnel: &Tunnel) -> Option<Ended> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match tunnel.poll_receive(&mut context, usize::MAX, &mut Vec::new()) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(ended)) => return Some(ended),
            Poll::Pending => return None,
        }
    }
}

/// Whether a connection is over because nothing came from its peer.
fn is_silent(connection: &noq::Connection) -> bool {
    connection.close_reason() == Some(noq::ConnectionError::TimedOut)
}

fn silent(peer: &str) -> String {
    format!("the {peer} has not been heard of for longer than a connection may be silent")
}

/// The control that drives a connection.
fn congestion(connection: &noq::Connection) -> Option<&'static str> {
    connection.congestion_state(noq::PathId::ZERO).and_then(fullpipe_control::name_of)
}

fn server<'a>(options: &Get, name: &'a str, round_trips: &RoundTrips) -> Result<Peer<'a>, Failure> {
    let mut configuration = tls::client(&options.trust).map_err(|error| Failure::Usage(error.to_string()))?;
    let settings = options.control.of(&options.connection, round_trips);
    configuration.transport_config(Arc::new(settings.transport(0)));
    Ok(Peer { what: "server", name, configuration })
}

async fn fetch(
    uri: &Uri,
    Reached { endpoint, connection, begin }: Reached,
    begin_of_all: Instant,
    round_trips: &RoundTrips,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<Got, Failure> {
    let handshake = Tokio.now() - begin;
    let environment: Arc<dyn Environment> = Arc::new(Tokio);
    let fetched = http3::get(&environment, connection.clone(), uri, store).await;
    let (end, congestion) = (Tokio.now(), congestion(&connection));
    // A server whose body cannot be stored need not wait for acknowledgements either.
    farewell(&endpoint).await;
    let fetched = fetched.map_err(|error| match is_silent(&connection) {
        true => Failure::Run(silent("server")),
        false => Failure::Run(error.to_string()),
    })?;
    Ok(Got {
        status: fetched.status,
        bytes: fetched.bytes,
        handshake,
        completion: end - begin,
        exchange: end - begin_of_all,
        connection: ConnectionFigures::new(&connection.stats(), round_trips),
        congestion,
        tunnel: None,
    })
}
