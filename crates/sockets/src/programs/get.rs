//! `http3 get`.

use super::connect::to_proxy;
use super::reach::{Peer, Reached};
use super::{Failure, farewell, run_error};
use crate::tls::Trust;
use crate::{Tokio, endpoint, tls};
use bytes::Bytes;
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
    /// Packets of this side that were lost and whose contents were sent again.
    pub lost: u64,
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
    /// Payloads that did not fit.
    pub dropped_too_large: u64,
    /// Payloads that found a queue full.
    pub dropped_queue: u64,
    /// Packets of this side of the tunnel that were lost.
    pub lost: u64,
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
        let reached = server(&options, &name)?.reach(&target).await?;
        return fetch(&uri, reached, store).await;
    };
    let metrics = Arc::<Metrics>::default();
    let begin = Tokio.now();
    let (outer, client) = to_proxy(&via.template, &via.trust, None, via.settings.clone(), Arc::clone(&metrics)).await?;
    let got = through(&options, &uri, &name, &client, &target, begin, store).await.map(|(got, tunnel)| {
        let through = GotThrough {
            dropped_too_large: metrics.dropped_too_large_total.get(),
            dropped_queue: metrics.dropped_queue_total.get() + metrics.dropped_memory_total.get(),
            lost: lost(client.connection()),
            ..tunnel
        };
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
    let server = server(options, name)?;
    let got = async { fetch(uri, server.reach_at(inner, peer).await?, store).await };
    let got = got.await.map_err(|failure| match ended(&tunnel) {
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

fn lost(connection: &noq::Connection) -> u64 {
    connection.path_stats(noq::PathId::ZERO).map_or(0, |stats| stats.lost_packets)
}

fn server<'a>(options: &Get, name: &'a str) -> Result<Peer<'a>, Failure> {
    let mut configuration = tls::client(&options.trust).map_err(|error| Failure::Usage(error.to_string()))?;
    configuration.transport_config(Arc::new(options.connection.transport(0)));
    Ok(Peer { what: "server", name, configuration })
}

async fn fetch(
    uri: &Uri,
    Reached { endpoint, connection, begin }: Reached,
    store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<Got, Failure> {
    let handshake = Tokio.now() - begin;
    let environment: Arc<dyn Environment> = Arc::new(Tokio);
    let fetched = http3::get(&environment, connection.clone(), uri, store).await;
    let completion = Tokio.now() - begin;
    let lost = lost(&connection);
    // A server whose body cannot be stored need not wait for acknowledgements either.
    farewell(&endpoint).await;
    let fetched = fetched.map_err(|error| Failure::Run(error.to_string()))?;
    Ok(Got { status: fetched.status, bytes: fetched.bytes, handshake, completion, lost, tunnel: None })
}
