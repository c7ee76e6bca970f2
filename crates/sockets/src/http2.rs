//! The proxy over HTTP/2 (RFC 9113) and TLS: connections, their requests, and the streams of tunnels. UDP tunnels use capsules
//! (RFC 9297 section 3), because HTTP/2 has no datagrams.

use bytes::Bytes;
use fullpipe_masque::proxy::{ConnectionSlot, Exchange, Proxy, ReadHalf, WriteHalf};
use fullpipe_masque::transport::{StreamEnd, code};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Flow-control window of a connection, as a multiple of that of a stream.
const CONNECTION_WINDOWS: u32 = 8;

/// Maximum number of bytes of a stream that wait for the TCP connection to the client.
const SEND_BUFFER_BYTES: usize = 256 << 10;

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// The TLS configuration of new connections, which a reload replaces.
pub type SharedTls = Arc<RwLock<Arc<rustls::ServerConfig>>>;

/// Accepts the connections of a proxy's clients until the task is aborted.
pub async fn serve(listener: TcpListener, tls: SharedTls, proxy: Proxy) {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // No file descriptors are left, or the client has already closed the connection.
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some(slot) = proxy.accept_connection(client) else { continue };
        let tls = Arc::clone(&tls.read().unwrap_or_else(PoisonError::into_inner));
        let proxy = proxy.clone();
        tokio::spawn(async move {
            if let Err(reason) = serve_connection(stream, client, tls, &proxy, &slot).await {
                slot.close(&reason);
            }
        });
    }
}

async fn serve_connection(
    stream: TcpStream,
    client: SocketAddr,
    tls: Arc<rustls::ServerConfig>,
    proxy: &Proxy,
    slot: &ConnectionSlot,
) -> Result<(), String> {
    let settings = proxy.settings();
    let set_up = async {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let stream = TlsAcceptor::from(tls).accept(stream).await.map_err(|error| error.to_string())?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("the client does not offer HTTP/2 in ALPN".to_owned());
        }
        let window = settings.tunnel.receive_window;
        let connection = h2::server::Builder::new()
            .enable_connect_protocol()
            .max_concurrent_streams(settings.max_requests_per_connection)
            .max_header_list_size(u32::try_from(settings.max_header_bytes).unwrap_or(u32::MAX))
            .initial_window_size(window)
            .initial_connection_window_size(window.saturating_mul(CONNECTION_WINDOWS).min(MAX_WINDOW))
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .handshake::<_, Bytes>(stream)
            .await;
        connection.map_err(|error| error.to_string())
    };
    let connection = tokio::time::timeout(settings.header_timeout, set_up).await;
    let mut connection = connection.map_err(|_| "the handshake did not complete within the timeout".to_owned())??;
    slot.open();
    let open = Arc::new(AtomicUsize::new(0));
    let mut draining = std::pin::pin!(proxy.draining());
    let mut is_draining = false;
    // A connection without requests ends after this time. Open tunnels have their own limit.
    let mut idle = std::pin::pin!(tokio::time::sleep(settings.tunnel.connection_idle));
    loop {
        let accepted = poll_fn(|context| {
            if !is_draining && draining.as_mut().poll(context).is_ready() {
                is_draining = true;
                connection.graceful_shutdown();
            }
            if let Poll::Ready(accepted) = connection.poll_accept(context) {
                return Poll::Ready(Ok(accepted));
            }
            ready!(idle.as_mut().poll(context));
            if open.load(Ordering::Relaxed) == 0 {
                return Poll::Ready(Err("idle"));
            }
            idle.as_mut().reset(tokio::time::Instant::now() + settings.tunnel.connection_idle);
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let (request, respond) = match accepted {
            Err(reason) => return Err(reason.into()),
            Ok(None) => return Err("closed by the client".into()),
            Ok(Some(accepted)) => accepted.map_err(|error| error.to_string())?,
        };
        idle.as_mut().reset(tokio::time::Instant::now() + settings.tunnel.connection_idle);
        let counted = OpenRequest::new(&open);
        let proxy = proxy.clone();
        tokio::spawn(async move {
            serve_request(client, request, respond, &proxy).await;
            drop(counted);
        });
    }
}

/// Largest flow-control window (RFC 9113 section 6.9.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Counts one open request.
struct OpenRequest(Arc<AtomicUsize>);

impl OpenRequest {
    fn new(open: &Arc<AtomicUsize>) -> OpenRequest {
        open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(open))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_request(client: SocketAddr, request: Request<RecvStream>, respond: SendResponse<Bytes>, proxy: &Proxy) {
    let protocol = request.extensions().get::<h2::ext::Protocol>().map(|protocol| protocol.as_str().to_owned());
    let (parts, receive) = request.into_parts();
    let request = Request::from_parts(parts, ());
    let exchange = Http2Exchange { respond, receive, ending: StreamEnd::default() };
    proxy.serve_request(client, &request, protocol.as_deref(), exchange).await;
}

/// A request of an HTTP/2 connection.
struct Http2Exchange {
    respond: SendResponse<Bytes>,
    receive: RecvStream,
    ending: StreamEnd,
}

impl Exchange for Http2Exchange {
    type Read = Http2Read;
    type Write = Http2Write;

    fn ending(&self) -> StreamEnd {
        self.ending.clone()
    }

    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.respond.poll_reset(context).map(drop)
    }

    async fn accept(mut self, response: Response<()>) -> Result<(Http2Read, Http2Write), String> {
        let stream = self.respond.send_response(response, false).map_err(|error| error.to_string())?;
        let read = Http2Read { stream: self.receive, unreleased: 0 };
        Ok((read, Http2Write { stream, ending: self.ending, has_finished: false }))
    }

    async fn reject(mut self, response: Response<()>) {
        // If the client does not receive the response, no further handling is needed.
        let _ = self.respond.send_response(response, true);
    }
}

/// The client's half of a stream.
struct Http2Read {
    stream: RecvStream,
    /// Bytes that were passed on and still occupy the flow-control window.
    unreleased: usize,
}

impl ReadHalf for Http2Read {
    type Error = h2::Error;

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, h2::Error>> {
        // The caller has processed the earlier chunk. A stream that has ended has no window.
        let processed = std::mem::take(&mut self.unreleased);
        let _ = self.stream.flow_control().release_capacity(processed);
        let piece = ready!(self.stream.poll_data(context)).transpose()?;
        self.unreleased = piece.as_ref().map_or(0, Bytes::len);
        Poll::Ready(Ok(piece))
    }

    fn has_trailers(&mut self, context: &mut Context<'_>) -> bool {
        !matches!(self.stream.poll_trailers(context), Poll::Ready(Ok(None)) | Poll::Pending)
    }
}

/// The proxy's half of a stream. When it is dropped, it ends the stream, or resets it if an error was reported.
struct Http2Write {
    stream: SendStream<Bytes>,
    ending: StreamEnd,
    has_finished: bool,
}

impl WriteHalf for Http2Write {
    type Error = io::Error;

    async fn write(&mut self, mut data: Bytes) -> io::Result<()> {
        while !data.is_empty() {
            self.stream.reserve_capacity(data.len());
            let capacity = poll_fn(|context| self.stream.poll_capacity(context)).await;
            let capacity = capacity.ok_or_else(|| closed("the stream is closed"))?.map_err(closed)?;
            if capacity > 0 {
                let piece = data.split_to(capacity.min(data.len()));
                self.stream.send_data(piece, false).map_err(closed)?;
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.has_finished = true;
        self.stream.send_data(Bytes::new(), true).map_err(closed)
    }

    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_reset(context).map(drop)
    }
}

fn closed(error: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, error.to_string())
}

impl Drop for Http2Write {
    fn drop(&mut self) {
        match self.ending.reason() {
            Some(reason) => self.stream.send_reset(h2_reason(reason)),
            // A stream that the client has reset cannot be finished, so an error is ignored.
            None if !self.has_finished => drop(self.stream.send_data(Bytes::new(), true)),
            None => {}
        }
    }
}

/// The error code of HTTP/2 (RFC 9113 section 7) for one of HTTP/3.
fn h2_reason(reason: u32) -> Reason {
    match reason {
        code::CONNECT_ERROR => Reason::CONNECT_ERROR,
        code::EXCESSIVE_LOAD => Reason::ENHANCE_YOUR_CALM,
        code::REQUEST_REJECTED => Reason::REFUSED_STREAM,
        code::MESSAGE_ERROR | code::DATAGRAM_ERROR | code::FRAME_UNEXPECTED => Reason::PROTOCOL_ERROR,
        _ => Reason::CANCEL,
    }
}
