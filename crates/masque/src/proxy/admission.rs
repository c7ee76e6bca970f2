//! Admission of a request: its limits, the addresses of its target, and the socket to it.

use super::accounts::{ClientId, LimitReached, Usage};
use super::request::{RequestRejection, TunnelProtocol, TunnelRequest};
use super::{Permit, ProxyState, tcp};
use crate::environment::{ConnectedSocket, ConnectedStream};
use crate::proxy_status::ProxyError;
use crate::target::{Host, Target};
use http::StatusCode;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The socket to a target.
pub(super) enum TargetSocket {
    Udp(Arc<dyn ConnectedSocket>),
    Tcp(Arc<dyn ConnectedStream>),
}

/// Resources of an accepted request.
pub(super) struct Admission {
    pub(super) socket: TargetSocket,
    pub(super) permit: Permit,
    pub(super) usage: Usage,
}

/// Checks a request of a client with this address against limits and rules, and connects to the target.
///
/// # Errors
/// If a limit or a rule rejects the request, or the target cannot be reached.
pub(super) async fn admit(
    shared: &ProxyState,
    address: SocketAddr,
    request: &TunnelRequest,
) -> Result<Admission, RequestRejection> {
    let settings = shared.settings();
    let target = &request.target;
    let Some(permit) = Permit::take(&shared.metrics, settings.max_requests, |metrics| &metrics.requests_open) else {
        return Err(RequestRejection::by(
            ProxyError::ConnectionLimitReached,
            "the maximum number of open tunnels is reached",
        ));
    };
    let identity = request.client.clone().unwrap_or_else(|| ClientId::of_address(address.ip()));
    let usage = shared.accounts.open(identity, request.limits).map_err(|limit| {
        let details = match limit {
            LimitReached::Tunnels => "the client has reached its maximum number of open tunnels",
            LimitReached::Bytes => "the client has used the bytes that it may transfer",
        };
        RequestRejection::new(StatusCode::TOO_MANY_REQUESTS, ProxyError::ConnectionLimitReached, details)
    })?;
    // A name that the rules deny at every address is not resolved.
    settings.policy.check_name(target).map_err(|reason| RequestRejection::by(reason.into(), reason.to_string()))?;
    let (policy, environment) = (&settings.policy, &shared.environment);
    let check = |address: IpAddr| {
        policy.check(target, address)?;
        if request.protocol == TunnelProtocol::Tcp {
            policy.check_mail_port(target, address)?;
        }
        settings.own.check(policy, target, address, |address| environment.is_local(address))
    };
    let mut refused = RequestRejection::by(ProxyError::Dns { rcode: None }, "the name has no address");
    let mut permitted = Vec::new();
    for address in resolve(shared, &target.host).await? {
        match check(address) {
            Ok(()) => permitted.push(SocketAddr::new(address.to_canonical(), target.port)),
            Err(reason) => refused = RequestRejection::by(reason.into(), reason.to_string()),
        }
    }
    if permitted.is_empty() {
        return Err(refused);
    }
    let socket = match request.protocol {
        TunnelProtocol::Udp => connect_udp(shared, target, &permitted)?,
        TunnelProtocol::Tcp => TargetSocket::Tcp(tcp::connect(shared, &permitted).await.map_err(|error| {
            let error_type = ProxyError::from_socket(&error, permitted[0].ip());
            RequestRejection::by(error_type, format!("cannot connect to the target: {error}"))
        })?),
    };
    Ok(Admission { socket, permit, usage })
}

/// Connects a UDP socket to the first address for which the host has a route.
fn connect_udp(
    shared: &ProxyState,
    target: &Target,
    addresses: &[SocketAddr],
) -> Result<TargetSocket, RequestRejection> {
    let mut refused = RequestRejection::by(ProxyError::Internal, format!("{target} has no address"));
    for address in addresses {
        match shared.environment.connect(*address) {
            Ok(socket) => return Ok(TargetSocket::Udp(socket)),
            Err(error) => {
                refused = RequestRejection::by(ProxyError::from_socket(&error, address.ip()), error.to_string());
            }
        }
    }
    Err(refused)
}

async fn resolve(shared: &ProxyState, host: &Host) -> Result<Vec<IpAddr>, RequestRejection> {
    match host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(name) => shared.environment.resolve(name).await.map_err(|error| {
            // The reason is also in the log, which may not contain the target.
            RequestRejection::by(ProxyError::from_resolver(&error), format!("cannot resolve the name: {error}"))
        }),
    }
}
