//! QUIC endpoints on sockets of an environment: real sockets, and tunnels as sockets.

use crate::padded::PaddedSocket;
use fullpipe_masque::configuration::MIN_MTU;
use fullpipe_masque::environment::Environment;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Largest UDP payload that endpoints accept. It is the maximum of UDP, so that larger packets can be tested.
const MAX_PAYLOAD: u16 = 65_527;

fn settings(max_payload: u16) -> io::Result<noq::EndpointConfig> {
    let mut settings = noq::EndpointConfig::default();
    settings.max_udp_payload_size(max_payload).map_err(io::Error::other)?;
    Ok(settings)
}

fn any_address(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Creates an endpoint that listens at `local`.
///
/// # Errors
/// Returns an error if the socket cannot be bound.
pub fn bind_server(
    environment: &dyn Environment,
    local: SocketAddr,
    configuration: noq::ServerConfig,
    transport: noq::TransportConfig,
) -> io::Result<noq::Endpoint> {
    bind_server_with(environment, local, noq::EndpointConfig::default(), configuration, transport)
}

/// Like [`bind_server`], with the keys of `endpoint`.
pub(crate) fn bind_server_with(
    environment: &dyn Environment,
    local: SocketAddr,
    mut endpoint: noq::EndpointConfig,
    mut configuration: noq::ServerConfig,
    transport: noq::TransportConfig,
) -> io::Result<noq::Endpoint> {
    configuration.transport_config(Arc::new(transport));
    endpoint.max_udp_payload_size(MAX_PAYLOAD).map_err(io::Error::other)?;
    let socket = environment.bind(local)?;
    noq::Endpoint::new_with_abstract_socket(endpoint, Some(configuration), socket, environment.runtime())
}

/// Creates a client endpoint for connections to `peer`, on any local port.
///
/// # Errors
/// Returns an error if no socket can be created.
pub fn bind_client(environment: &dyn Environment, peer: SocketAddr) -> io::Result<noq::Endpoint> {
    client_on_socket(environment, environment.bind(any_address(peer))?)
}

/// Creates a client endpoint for connections to `peer` whose datagrams with Initial packets have at least `size` bytes.
/// The flag becomes true when a datagram arrives.
pub(crate) fn bind_padded_client(
    environment: &dyn Environment,
    peer: SocketAddr,
    size: u16,
) -> io::Result<(noq::Endpoint, Arc<AtomicBool>)> {
    let socket = PaddedSocket::new(environment.bind(any_address(peer))?, size);
    let has_received = socket.has_received();
    Ok((client_on_socket(environment, Box::new(socket))?, has_received))
}

/// Creates a client endpoint for connections to `peer` that neither sends nor accepts UDP payloads above the minimum of
/// QUIC.
pub(crate) fn bind_smallest_client(environment: &dyn Environment, peer: SocketAddr) -> io::Result<noq::Endpoint> {
    let socket = environment.bind(any_address(peer))?;
    noq::Endpoint::new_with_abstract_socket(settings(MIN_MTU)?, None, socket, environment.runtime())
}

/// Creates a client endpoint on an existing socket.
///
/// # Errors
/// Returns an error if the socket has no address.
pub fn client_on_socket(
    environment: &dyn Environment,
    socket: Box<dyn noq::AsyncUdpSocket>,
) -> io::Result<noq::Endpoint> {
    noq::Endpoint::new_with_abstract_socket(settings(MAX_PAYLOAD)?, None, socket, environment.runtime())
}
