//! Requests on HTTP versions other than HTTP/3, which another crate implements: connections, and requests with their
//! streams. Tunnels use only the stream, so UDP payloads are in capsules (RFC 9297 section 3).

use super::admission::{self, Admission, TargetSocket};
use super::end::End;
use super::relay::{self, Relay};
use super::request::{self, RequestRejection};
use super::{Permit, Proxy, ProxyState, connection, tcp};
use crate::configuration;
use crate::halves::{ReadHalf, WriteHalf};
use crate::log::Event;
use crate::transport::{StreamEnd, code};
use http::{Request, Response};
use std::future::{Future, pending, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The error type of a loop (RFC 9209 section 2.3).
const LOOP: &str = "proxy_loop_detected";

/// A request that waits for its response, and its stream.
pub trait Exchange: Send {
    /// The client's half of the stream.
    type Read: ReadHalf;
    /// The proxy's half of the stream.
    type Write: WriteHalf;

    /// The value that determines how the halves of the stream end.
    fn ending(&self) -> StreamEnd;

    /// Completes when the client cancels the request.
    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Sends a response that a tunnel follows.
    fn accept(self, response: Response<()>) -> impl Future<Output = Result<(Self::Read, Self::Write), String>> + Send;

    /// Sends a response that ends the stream.
    fn reject(self, response: Response<()>) -> impl Future<Output = ()> + Send;
}

/// A connection of a client, which counts until this value is dropped.
pub struct ConnectionSlot {
    shared: Arc<ProxyState>,
    client: SocketAddr,
    _permit: Permit,
}

impl ConnectionSlot {
    /// Reports that the connection is established.
    pub fn open(&self) {
        self.shared.metrics.connections_total.add(1);
        self.shared.log.log_event(&Event::ConnectionOpened { client: self.client });
    }

    /// Reports that the connection has ended.
    pub fn close(&self, reason: &str) {
        self.shared.log.log_event(&Event::ConnectionClosed { client: self.client, reason });
    }
}

impl Proxy {
    /// Returns the current settings.
    #[must_use]
    pub fn settings(&self) -> Arc<configuration::Proxy> {
        self.0.settings()
    }

    /// Completes when the graceful shutdown begins.
    pub async fn draining(&self) {
        let drain = self.0.drain.listen();
        poll_fn(|context| drain.poll(context)).await;
    }

    /// Counts a TCP connection of a client. Returns `None` if it must be closed: the limit of connections is reached, the
    /// proxy shuts down, or the connection comes from one of its own tunnels.
    #[must_use]
    pub fn accept_connection(&self, client: SocketAddr) -> Option<ConnectionSlot> {
        let shared = &self.0;
        if shared.drain.has_begun() {
            return None;
        }
        if shared.tcp_egress.contains(client) {
            shared.metrics.loops_total.add(1);
            shared.log.log_event(&Event::ConnectionClosed { client, reason: LOOP });
            return None;
        }
        let limit = shared.settings().max_connections;
        let permit = Permit::take(&shared.metrics, limit, |metrics| &metrics.connections_open);
        if permit.is_none() {
            shared.metrics.connections_refused_total.add(1);
        }
        Some(ConnectionSlot { shared: Arc::clone(shared), client, _permit: permit? })
    }

    /// Serves a request of a client until its tunnel has ended. `protocol` is the value of `:protocol`, if there is one.
    pub async fn serve_request<E: Exchange>(
        &self,
        client: SocketAddr,
        request: &Request<()>,
        protocol: Option<&str>,
        mut exchange: E,
    ) {
        let shared = &self.0;
        shared.metrics.requests_total.add(1);
        let admission = async {
            let request = request::read(request, protocol, &shared.settings())?;
            let admission = admission::admit(shared, client, &request).await?;
            Ok::<_, RequestRejection>((request.target, admission))
        };
        let admitted = {
            let mut admission = pin!(admission);
            poll_fn(|context| match exchange.poll_cancelled(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => admission.as_mut().poll(context).map(Some),
            })
            .await
        };
        let log = |outcome, reason: &str| {
            connection::log_refusal(shared, client, outcome, request::target_of(request), reason);
        };
        match admitted {
            None => log((0, connection::CANCELLED), "the client cancelled the request"),
            Some(Err(refused)) => {
                log((refused.status.as_u16(), refused.error.token()), &refused.details);
                if let Some(response) = connection::rejection(shared, &refused) {
                    exchange.reject(response).await;
                }
            }
            Some(Ok((target, admission))) => serve(shared, client, &target.to_string(), admission, exchange).await,
        }
    }
}

async fn serve<E: Exchange>(
    shared: &Arc<ProxyState>,
    client: SocketAddr,
    target: &str,
    Admission { socket, permit, usage }: Admission,
    exchange: E,
) {
    let ending = exchange.ending();
    let end = match socket {
        TargetSocket::Udp(socket) => {
            let Ok(response) = Response::builder().header("capsule-protocol", "?1").body(()) else { return };
            match exchange.accept(response).await {
                Ok(halves) => {
                    shared.log.log_event(&Event::TunnelOpened { client, target });
                    relay::serve_capsules(shared, Relay { socket, permit, usage }, halves, &ending).await
                }
                Err(error) => End::new(code::REQUEST_CANCELLED, error),
            }
        }
        TargetSocket::Tcp(socket) => {
            let end = match exchange.accept(Response::new(())).await {
                Ok(halves) => {
                    shared.metrics.tcp_tunnels_total.add(1);
                    shared.log.log_event(&Event::TunnelOpened { client, target });
                    tcp::relay(shared, &*socket, &usage, halves, pending(), &ending).await
                }
                Err(error) => {
                    socket.reset();
                    End::new(code::REQUEST_CANCELLED, error)
                }
            };
            drop(permit);
            end
        }
    };
    shared.log.log_event(&Event::TunnelClosure { client, target, reason: &end.reason });
}
