//! One client's connection: establishes HTTP/3, reads requests, and starts a task for each request that checks it and
//! responds.

use super::accounts::Usage;
use super::admission::{self, Admission, TargetSocket};
use super::client::Client;
use super::end::End;
use super::relay::{self, Relay};
use super::request::{self, RequestRejection};
use super::{Permit, ProxyState, tcp};
use crate::configuration::Scheduler;
use crate::environment::{BoxFuture, ConnectedStream};
use crate::log::Event;
use crate::proxy_status::{FIELD_NAME, ProxyStatus};
use crate::session::Session;
use crate::target::Target;
use crate::transport::{self, BidiStream, StreamEnd, StreamHandle, StreamHandles, code};
use bytes::Bytes;
use futures_util::future::{Either, select};
use h3::error::{ConnectionError, StreamError};
use h3::ext::Protocol;
use h3::server::{RequestResolver, RequestStream};
use http::{Request, Response, StatusCode, header};
use std::future::{Future, IntoFuture, pending, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

type Resolver = RequestResolver<transport::Connection, Bytes>;
type Stream = RequestStream<BidiStream, Bytes>;

/// Maximum frame size that h3 may buffer, as a multiple of the maximum header section. It is above 1, so that a client
/// with a header section that is too large receives a status code.
const FRAME_FACTOR: u64 = 8;

/// The error type of a loop (RFC 9209 section 2.3).
const LOOP: &str = "proxy_loop_detected";

/// Serves one connection until it ends.
pub(super) async fn serve(shared: Arc<ProxyState>, incoming: noq::Incoming, _permit: Permit) {
    let address = incoming.remote_address();
    let deadline = shared.environment.now() + shared.settings().header_timeout;
    let handshake = select(incoming.into_future(), shared.environment.sleep_until(deadline));
    let Either::Left((Ok(connection), _)) = handshake.await else { return };
    if shared.egress.contains(address) {
        shared.metrics.loops_total.add(1);
        connection.close(code::REQUEST_REJECTED.into(), LOOP.as_bytes());
        shared.log.log_event(&Event::ConnectionClosed { client: address, reason: LOOP });
        return;
    }
    shared.metrics.connections_total.add(1);
    shared.log.log_event(&Event::ConnectionOpened { client: address });
    let reason = match serve_http(&shared, connection.clone(), address).await {
        Ok(()) => "done".into(),
        Err(error) if error.is_h3_no_error() => "closed by the client".into(),
        Err(error) => error.to_string(),
    };
    connection.close(code::NO_ERROR.into(), b"");
    shared.log.log_event(&Event::ConnectionClosed { client: address, reason: &reason });
}

async fn serve_http(
    shared: &Arc<ProxyState>,
    connection: noq::Connection,
    address: SocketAddr,
) -> Result<(), ConnectionError> {
    let handles = StreamHandles::default();
    let settings = shared.settings();
    let adapter =
        transport::Connection::new(connection.clone(), settings.max_header_bytes * FRAME_FACTOR, handles.clone())
            .with_request_order(settings.tunnel.scheduler == Scheduler::RequestOrder);
    let mut http = h3::server::builder()
        .send_grease(false)
        .enable_extended_connect(true)
        .enable_datagram(true)
        .max_field_section_size(settings.max_header_bytes)
        .build(adapter)
        .await?;
    let session =
        Session::new(connection, Arc::clone(&shared.environment), Arc::clone(&shared.metrics), settings.tunnel.clone());
    session.set_id_limit(settings.max_requests_per_connection.into());
    session.start();
    let client = Arc::new(Client {
        shared: Arc::clone(shared),
        session,
        address,
        http: Arc::clone(&http.inner.shared),
        handles,
        early: Mutex::default(),
        fruitless: AtomicU64::new(0),
    });
    let drain = shared.drain.listen();
    let mut accepted = 0;
    // The first stream ID that a GOAWAY frame has rejected, and the first that has not been used.
    let (mut rejected, mut unused) = (None, 0);
    loop {
        let resolver = {
            let mut accept = pin!(http.accept());
            poll_fn(|context| {
                if rejected.is_none() && drain.poll(context).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                let accepted = accept.as_mut().poll(context);
                if client.has_settings() {
                    client.early().drain(..).for_each(Waker::wake);
                }
                accepted.map_ok(Some)
            })
            .await?
        };
        let resolver = match resolver {
            Some(Some(resolver)) => resolver,
            Some(None) => return Ok(()),
            None => {
                // h3 names the stream after the last one that it has accepted.
                http.shutdown(1).await?;
                rejected = Some(unused);
                continue;
            }
        };
        let id = resolver.frame_stream.id();
        unused = unused.max(id.into_inner() + 4);
        if rejected.is_some_and(|rejected| id.into_inner() >= rejected) {
            if let Some(handle) = client.handles.take(id) {
                handle.ending.abort(code::REQUEST_REJECTED);
            }
            continue;
        }
        accepted += 1;
        client.session.set_id_limit(accepted + u64::from(settings.max_requests_per_connection));
        let task = serve_request(Arc::clone(&client), resolver);
        client.shared.environment.spawn(Box::pin(task));
    }
}

async fn serve_request(client: Arc<Client>, resolver: Resolver) {
    let Some(handle) = client.handles.take(resolver.frame_stream.id()) else { return };
    let shared = &client.shared;
    shared.metrics.requests_total.add(1);
    let deadline = shared.environment.now() + shared.settings().header_timeout;
    let headers = pin!(async {
        client.settings().await;
        resolver.resolve_request().await
    });
    let refuse = |status, error, reason: &str| log_refusal(shared, client.address, (status, error), "", reason);
    match select(headers, shared.environment.sleep_until(deadline)).await {
        Either::Left((Ok((request, stream)), _)) => answer(&client, &request, stream, handle).await,
        Either::Left((Err(StreamError::HeaderTooBig { .. }), _)) => {
            refuse(431, "header_too_large", "the header section is too large")
        }
        Either::Left((Err(error), _)) => {
            shared.metrics.errors_protocol_total.add(1);
            client.note_fruitless();
            refuse(0, "malformed_request", &transport::reason(&error));
        }
        Either::Right(_) => {
            handle.ending.abort(code::REQUEST_REJECTED);
            client.note_fruitless();
            refuse(0, "header_timeout", "the header section did not arrive within the timeout");
        }
    }
}

async fn answer(client: &Arc<Client>, request: &Request<()>, stream: Stream, handle: StreamHandle) {
    let StreamHandle { stopped, ending } = handle;
    let mut stopped: BoxFuture<()> = Box::pin(async move {
        // `None`: the peer has received everything.
        if let Ok(None) = stopped.await {
            pending::<()>().await;
        }
    });
    let admission = pin!(async {
        let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
        let request = request::read(request, protocol, &client.shared.settings())?;
        let admission = admission::admit(&client.shared, client.address, &request).await?;
        Ok::<_, RequestRejection>((request.target, admission))
    });
    match select(admission, &mut stopped).await {
        Either::Left((Ok((target, Admission { socket: TargetSocket::Udp(socket), permit, usage })), _)) => {
            let relay = Relay { socket, permit, usage };
            relay::serve(client, &target, relay, stream, (stopped, &ending)).await;
        }
        Either::Left((Ok((target, Admission { socket: TargetSocket::Tcp(socket), permit, usage })), _)) => {
            serve_tcp(client, &target, (&*socket, &usage), stream, (stopped, &ending)).await;
            drop(permit);
        }
        Either::Left((Err(refused), _)) => {
            let outcome = (refused.status.as_u16(), refused.error.token());
            log_refusal(&client.shared, client.address, outcome, request::target_of(request), &refused.details);
            refuse(client, stream, &refused).await;
        }
        Either::Right(((), _)) => {
            ending.abort(code::REQUEST_CANCELLED);
            let target = request::target_of(request);
            let outcome = (0, CANCELLED);
            log_refusal(&client.shared, client.address, outcome, target, "the client cancelled the request");
        }
    }
}

/// The error of a request that the client cancelled before the response.
pub(super) const CANCELLED: &str = "cancelled_by_client";

/// Counts and logs a request that was rejected, with the status and the error.
pub(super) fn log_refusal(
    shared: &ProxyState,
    client: SocketAddr,
    (status, error): (u16, &'static str),
    target: &str,
    reason: &str,
) {
    shared.metrics.requests_refused_total.add(1);
    shared.metrics.refusals_total.add(error);
    shared.log.log_event(&Event::RequestRejected { client, status, target, reason });
}

/// Responds to a CONNECT request and serves its tunnel until it ends.
async fn serve_tcp(
    client: &Client,
    target: &Target,
    (socket, usage): (&dyn ConnectedStream, &Usage),
    mut stream: Stream,
    (stopped, ending): (BoxFuture<()>, &StreamEnd),
) {
    let shared = &client.shared;
    let target = target.to_string();
    let end = match stream.send_response(Response::new(())).await {
        Ok(()) => {
            shared.metrics.tcp_tunnels_total.add(1);
            shared.log.log_event(&Event::TunnelOpened { client: client.address, target: &target });
            let (send, receive) = stream.split();
            tcp::relay(shared, socket, usage, (receive, send), stopped, ending).await
        }
        Err(error) => {
            socket.reset();
            End::new(code::REQUEST_CANCELLED, error.to_string())
        }
    };
    shared.log.log_event(&Event::TunnelClosure { client: client.address, target: &target, reason: &end.reason });
}

/// Returns the response to a rejected request.
pub(super) fn rejection(shared: &ProxyState, refused: &RequestRejection) -> Option<Response<()>> {
    let settings = shared.settings();
    let status = ProxyStatus { proxy: &settings.name, error: &refused.error, details: &refused.details };
    let response = Response::builder().status(refused.status).header(FIELD_NAME, status.to_string());
    let response = match refused.status {
        StatusCode::UNAUTHORIZED => response.header(header::WWW_AUTHENTICATE, request::CHALLENGE),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => response.header(header::PROXY_AUTHENTICATE, request::CHALLENGE),
        _ => response,
    };
    response.body(()).ok()
}

async fn refuse(client: &Client, mut stream: Stream, refused: &RequestRejection) {
    let Some(response) = rejection(&client.shared, refused) else { return };
    // If the client does not receive the response, no further handling is needed.
    if stream.send_response(response).await.is_ok() {
        let _ = stream.finish().await;
    }
}
