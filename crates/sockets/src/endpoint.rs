//! QUIC endpoints on sockets of an environment: real sockets, and tunnels as sockets.

use fullpipe_masque::environment::Environment;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Largest UDP payload that endpoints accept. It is the maximum of UDP, so that larger packets can be tested.
const MAX_PAYLOAD: u16 = 65_527;

fn settings() -> io::Result<noq::EndpointConfig> {
    let mut settings = noq::EndpointConfig::default();
    settings.max_udp_payload_size(MAX_PAYLOAD).map_err(io::Error::other)?;
    Ok(settings)
}

/// Creates an endpoint that listens at `local`.
///
/// # Errors
/// Returns an error if the socket cannot be bound.
pub fn bind_server(
    environment: &dyn Environment,
    local: SocketAddr,
    mut configuration: noq::ServerConfig,
    transport: noq::TransportConfig,
) -> io::Result<noq::Endpoint> {
    configuration.transport_config(Arc::new(transport));
    let socket = environment.bind(local)?;
    noq::Endpoint::new_with_abstract_socket(settings()?, Some(configuration), socket, environment.runtime())
}

/// Creates a client endpoint for connections to `peer`, on any local port.
///
/// # Errors
/// Returns an error if no socket can be created.
pub fn bind_client(environment: &dyn Environment, peer: SocketAddr) -> io::Result<noq::Endpoint> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    client_on_socket(environment, environment.bind(any)?)
}

/// Creates a client endpoint on an existing socket.
///
/// # Errors
/// Returns an error if the socket has no address.
pub fn client_on_socket(
    environment: &dyn Environment,
    socket: Box<dyn noq::AsyncUdpSocket>,
) -> io::Result<noq::Endpoint> {
    noq::Endpoint::new_with_abstract_socket(settings()?, None, socket, environment.runtime())
}
