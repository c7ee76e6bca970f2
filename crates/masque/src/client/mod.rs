//! The CONNECT-UDP client: one connection to a proxy and the tunnels through it (RFC 9298).

mod forward;
mod reason;
mod socket;
mod tunnel;

pub use forward::{ForwarderLimits, RejectionCallback, forward};
pub use socket::TunnelSocket;
pub use tunnel::{Tunnel, TunnelClosure};

use crate::configuration::{self, INITIAL_PAYLOAD, Mode};
use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::proxy_status;
use crate::session::Session;
use crate::target::Target;
use crate::template::Template;
use crate::transport::{self, StreamHandles, StreamOpener, code};
use bytes::Bytes;
use futures_util::future::{Either, select};
use h3::client::{RequestStream, SendRequest};
use h3::error::{ConnectionError, StreamError};
use h3::ext::Protocol;
use h3::{ConnectionState, SharedState};
use http::{Request, Response, header};
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Largest frame other than DATA that a proxy may send.
const MAX_FRAME_BYTES: u64 = 64 << 10;

/// A feature that datagram mode requires.
const HTTP_DATAGRAMS: &str = "HTTP datagrams";

/// Reason why a tunnel could not be opened.
#[derive(Debug)]
pub enum Error {
    /// The connection to the proxy was lost.
    Connection(ConnectionError),
    /// The QUIC connection to the proxy was closed.
    Closed(noq::ConnectionError),
    /// The proxy's settings lack this required feature.
    NotOffered(&'static str),
    /// The proxy did not respond in time.
    TimedOut,
    /// The proxy rejected the request.
    Rejected {
        /// Status code of the response.
        status: u16,
        /// Value of Proxy-Status, with the members of all field lines; empty if the field is missing.
        proxy_status: String,
    },
    /// The proxy's response is malformed, for this reason.
    Malformed(&'static str),
    /// The request stream was aborted.
    Stream(StreamError),
    /// The request could not be written.
    Request(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connection(error) => write!(formatter, "the connection to the proxy was lost: {error}"),
            Error::Closed(error) => formatter.write_str(&reason::of_closed_connection(error)),
            Error::NotOffered(what) => write!(formatter, "the proxy does not support {what}"),
            Error::TimedOut => formatter.write_str("the proxy did not respond within the request timeout"),
            Error::Rejected { status, proxy_status } if proxy_status.is_empty() => {
                write!(formatter, "the proxy rejected the request with status {status} and without Proxy-Status")
            }
            Error::Rejected { status, proxy_status } => {
                write!(
                    formatter,
                    "the proxy rejected the request with status {status} and Proxy-Status: {proxy_status}"
                )
            }
            Error::Malformed(reason) => write!(formatter, "the proxy's response is malformed: {reason}"),
            Error::Stream(error) => write!(formatter, "the request was aborted: {}", reason::of_stream(error)),
            Error::Request(error) => write!(formatter, "cannot send the request: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Reason why a connection cannot carry the first packets of QUIC connections in datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramObstacle {
    /// The proxy does not support HTTP datagrams.
    NotOffered,
    /// The largest UDP payload of a datagram has fewer than 1200 bytes (RFC 9000 section 14.1).
    TooSmall {
        /// Size of the largest UDP payload in bytes.
        max_payload: usize,
    },
}

impl fmt::Display for DatagramObstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramObstacle::NotOffered => formatter.write_str("the proxy does not support HTTP datagrams"),
            DatagramObstacle::TooSmall { max_payload } => write!(
                formatter,
                "the path to the proxy cannot carry QUIC in datagrams: the largest UDP payload has {max_payload} bytes, \
                 and QUIC connections start with packets of {INITIAL_PAYLOAD} bytes"
            ),
        }
    }
}

/// A connection to a proxy.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// Mode of the tunnels that this value opens.
    mode: Mode,
}

struct Shared {
    session: Arc<Session>,
    settings: configuration::Client,
    template: Template,
    send: Mutex<SendRequest<StreamOpener, Bytes>>,
    http: Arc<SharedState>,
    handles: StreamHandles,
    /// Wakers of the tasks that wait for the proxy's settings.
    waiting: Arc<Mutex<Vec<Waker>>>,
}

impl Client {
    /// Starts HTTP/3 on a connection, which must have [`configuration::Client::transport`] and the ALPN protocol `h3`.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn new(
        environment: Arc<dyn Environment>,
        connection: noq::Connection,
        template: Template,
        settings: configuration::Client,
        metrics: Arc<Metrics>,
    ) -> Result<Client, Error> {
        let handles = StreamHandles::default();
        let adapter = transport::Connection::new(connection.clone(), MAX_FRAME_BYTES, handles.clone());
        let (mut http, send) = h3::client::builder()
            .send_grease(false)
            .enable_datagram(settings.offers_datagrams)
            .max_field_section_size(MAX_FRAME_BYTES)
            .build(adapter)
            .await
            .map_err(Error::Connection)?;
        let session = Session::new(connection, Arc::clone(&environment), metrics, settings.tunnel.clone());
        session.start();
        let waiting = Arc::<Mutex<Vec<Waker>>>::default();
        let shared = Shared {
            session,
            settings,
            template,
            send: Mutex::new(send),
            http: Arc::clone(&http.inner.shared),
            handles,
            waiting: Arc::clone(&waiting),
        };
        environment.spawn(Box::pin(async move {
            poll_fn(|context| {
                let closed = http.poll_close(context).map(drop);
                // The settings may have arrived with this event.
                let wakers = std::mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner));
                wakers.into_iter().for_each(Waker::wake);
                closed
            })
            .await;
        }));
        let mode = shared.settings.mode;
        Ok(Client { shared: Arc::new(shared), mode })
    }

    /// Returns a client of the same connection whose tunnels have this mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Client {
        Client { mode, ..self }
    }

    /// Waits for the proxy's settings. Returns the reason why the connection cannot carry the first packets of QUIC
    /// connections in datagrams, or `None` if it can.
    ///
    /// # Errors
    /// If the proxy does not respond, the connection is lost, or the proxy does not support extended CONNECT.
    pub async fn datagram_obstacle(&self) -> Result<Option<DatagramObstacle>, Error> {
        let environment = &self.shared.session.environment;
        let deadline = environment.now() + self.shared.settings.response_timeout;
        match select(pin!(self.offered(Mode::Datagram)), environment.sleep_until(deadline)).await {
            Either::Left((Err(Error::NotOffered(HTTP_DATAGRAMS)), _)) => Ok(Some(DatagramObstacle::NotOffered)),
            Either::Left((Err(error), _)) => Err(error),
            Either::Left((Ok(()), _)) => {
                let max_payload = self.shared.session.max_payload(0).unwrap_or(0);
                Ok((max_payload < INITIAL_PAYLOAD).then_some(DatagramObstacle::TooSmall { max_payload }))
            }
            Either::Right(_) => Err(Error::TimedOut),
        }
    }

    /// Opens a tunnel to `target` in the mode of this client. Any number of tunnels can be open at a time.
    ///
    /// # Errors
    /// If the proxy rejects the request, does not respond or cannot be reached.
    pub async fn open(&self, target: &Target) -> Result<Tunnel, Error> {
        self.open_with_mode(target, self.mode).await
    }

    /// Opens a tunnel to `target` in `mode`: the client sends its payloads in this form, and accepts both. This crate's
    /// proxy responds to each request in the form in which the client's payloads arrive.
    ///
    /// # Errors
    /// As for [`Client::open`], or if `mode` is [`Mode::Datagram`] and the proxy does not support datagrams.
    pub async fn open_with_mode(&self, target: &Target, mode: Mode) -> Result<Tunnel, Error> {
        let environment = &self.shared.session.environment;
        let deadline = environment.now() + self.shared.settings.response_timeout;
        match select(pin!(self.request(target, mode)), environment.sleep_until(deadline)).await {
            Either::Left((tunnel, _)) => tunnel,
            Either::Right(_) => Err(Error::TimedOut),
        }
    }

    /// Returns the underlying QUIC connection.
    #[must_use]
    pub fn connection(&self) -> &noq::Connection {
        &self.shared.session.connection
    }

    /// Closes the connection and all its tunnels.
    pub fn close(&self) {
        self.shared.session.connection.close(code::NO_ERROR.into(), b"");
    }

    async fn request(&self, target: &Target, mode: Mode) -> Result<Tunnel, Error> {
        self.offered(mode).await?;
        let request = self.headers(target)?;
        let mut send = self.shared.send.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut stream = send.send_request(request).await.map_err(|error| self.failed(error))?;
        let handle =
            self.shared.handles.take(stream.id()).ok_or_else(|| Error::Request("the stream is closed".into()))?;
        let response = transport::final_response(&mut stream).await.map_err(|error| self.failed(error))?;
        check(&response).inspect_err(|error| match error {
            Error::Malformed(_) => handle.ending.abort(code::MESSAGE_ERROR),
            _ => cancel(&mut stream),
        })?;
        Ok(Tunnel::start(Arc::clone(&self.shared.session), self.clone(), (&self.shared.settings, mode), stream, handle))
    }

    /// Returns the cause of a request's failure: the end of the connection, or the error of the stream.
    fn failed(&self, error: StreamError) -> Error {
        match reason::of_peer_closing(self.connection()) {
            Some(closed) => Error::Closed(closed),
            None => Error::Stream(error),
        }
    }

    /// Waits for the proxy's settings: a client must not use extended CONNECT before they permit it (RFC 9220 section
    /// 3).
    async fn offered(&self, mode: Mode) -> Result<(), Error> {
        let (http, session) = (&self.shared.http, &self.shared.session);
        poll_fn(|context| {
            self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            let arrived = matches!(http.settings(), std::borrow::Cow::Borrowed(_));
            if arrived || session.connection.close_reason().is_some() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if let Some(closed) = reason::of_peer_closing(&session.connection) {
            return Err(Error::Closed(closed));
        }
        let settings = http.settings();
        if !settings.enable_extended_connect() {
            return Err(Error::NotOffered("extended CONNECT"));
        }
        let datagrams = settings.enable_datagram() && session.connection.max_datagram_size().is_some();
        if mode == Mode::Datagram && !(self.shared.settings.offers_datagrams && datagrams) {
            return Err(Error::NotOffered(HTTP_DATAGRAMS));
        }
        Ok(())
    }

    fn headers(&self, target: &Target) -> Result<Request<()>, Error> {
        let template = &self.shared.template;
        let uri = format!("https://{}{}", template.authority(), template.expand(target));
        let mut request = Request::connect(uri).extension(Protocol::CONNECT_UDP).header("capsule-protocol", "?1");
        if let Some(token) = &self.shared.settings.token {
            // Proxies differ in the field that they read.
            for field in [header::AUTHORIZATION, header::PROXY_AUTHORIZATION] {
                request = request.header(field, format!("Bearer {token}"));
            }
        }
        request.body(()).map_err(|error| Error::Request(error.to_string()))
    }
}

fn check(response: &Response<()>) -> Result<(), Error> {
    let status = response.status();
    if status.is_success() {
        // RFC 9297 section 3.4 forbids these with the capsule protocol.
        if matches!(status.as_u16(), 204..=206) {
            return Err(Error::Malformed("status 204, 205 or 206 with the capsule protocol"));
        }
        let fields = response.headers();
        if fields.contains_key(header::CONTENT_LENGTH) || fields.contains_key(header::CONTENT_TYPE) {
            return Err(Error::Malformed("content-length or content-type with the capsule protocol"));
        }
        return Ok(());
    }
    // Each intermediary adds a member to the list, possibly on its own field line (RFC 9209 section 2).
    let fields = response.headers().get_all(proxy_status::FIELD_NAME);
    let members: Vec<String> = fields.iter().map(|value| reason::printable(value.as_bytes())).collect();
    Err(Error::Rejected { status: status.as_u16(), proxy_status: members.join(", ") })
}

fn cancel(stream: &mut RequestStream<transport::BidiStream, Bytes>) {
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
}
