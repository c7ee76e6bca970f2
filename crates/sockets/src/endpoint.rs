//! QUIC endpoints on sockets of an environment: real ones, and those whose path is a tunnel.

use fullpipe_masque::environment::Environment;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The largest UDP payload that endpoints take: whatever a host can send, so that larger packets can be tried.
const MAX_PAYLOAD: u16 = 65_527;

fn settings() -> io::Result<noq::EndpointConfig> {
    let mut settings = noq::EndpointConfig::default();
    settings.max_udp_payload_size(MAX_PAYLOAD).map_err(io::Error::other)?;
    Ok(settings)
}

/// An endpoint that listens at `local`.
///
/// # Errors
/// If the socket cannot be bound.
pub fn server(
    environment: &dyn Environment,
    local: SocketAddr,
    mut configuration: noq::ServerConfig,
    transport: noq::TransportConfig,
) -> io::Result<noq::Endpoint> {
    configuration.transport_config(Arc::new(transport));
    let socket = environment.bind(local)?;
    noq::Endpoint::new_with_abstract_socket(settings()?, Some(configuration), socket, environment.runtime())
}

/// An endpoint that reaches `peer` from any local port.
///
/// # Errors
/// If no socket can be had.
pub fn client(environment: &dyn Environment, peer: SocketAddr) -> io::Result<noq::Endpoint> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    on_socket(environment, environment.bind(any)?)
}

/// A client's endpoint on a socket that exists.
///
/// # Errors
/// If the socket has no address.
pub fn on_socket(environment: &dyn Environment, socket: Box<dyn noq::AsyncUdpSocket>) -> io::Result<noq::Endpoint> {
    noq::Endpoint::new_with_abstract_socket(settings()?, None, socket, environment.runtime())
}
