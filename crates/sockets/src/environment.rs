//! The environment on tokio. It must be used within a tokio runtime with sockets and timers enabled.

use crate::connected::ConnectedUdpSocket;
use crate::stream::ConnectedTcpStream;
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, ConnectedStream, Environment};
use noq::Runtime;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit of a name resolution.
const RESOLVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Sockets, timers and tasks of the current tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioEnvironment;

impl Environment for TokioEnvironment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(noq::TokioRuntime)
    }

    fn now(&self) -> Instant {
        noq::TokioRuntime.now()
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        noq::TokioRuntime.wrap_udp_socket(UdpSocket::bind(local)?)
    }

    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        Ok(Arc::new(ConnectedUdpSocket::new(peer)?))
    }

    fn connect_stream(&self, peer: SocketAddr) -> BoxFuture<io::Result<Arc<dyn ConnectedStream>>> {
        Box::pin(async move {
            let stream: Arc<dyn ConnectedStream> = Arc::new(ConnectedTcpStream::connect(peer).await?);
            Ok(stream)
        })
    }

    fn is_local(&self, address: IpAddr) -> bool {
        // Only local addresses can be bound, unless the host permits others (`ip_nonlocal_bind`, ip-sysctl of Linux). An address
        // for documentation (RFC 5737, RFC 3849) belongs to no host.
        let foreign: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        can_bind(address) && (!can_bind(foreign) || source_of_route(address).is_some_and(|source| source == address))
    }

    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let lookup = tokio::time::timeout(RESOLVER_TIMEOUT, tokio::net::lookup_host((name, 0)));
            let found = lookup.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map_err(classify)?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found.map(|address| address.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) }
        })
    }
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the source address of packets to an address. A host usually sends to its own addresses from the same address.
fn source_of_route(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // For UDP, this only selects a route; the port is not used.
    socket.connect((address, 9)).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}

/// The standard library returns the resolver's response only as text.
fn classify(error: io::Error) -> io::Error {
    let sentence = error.to_string();
    let unknown = ["not known", "No address associated", "nodename nor servname", "No such host"];
    if unknown.iter().any(|words| sentence.contains(words)) {
        return io::Error::new(io::ErrorKind::NotFound, sentence);
    }
    error
}
