//! The HTTP service of a proxy for operators: metrics for Prometheus, and its health.

use fullpipe_masque::metrics::Metrics;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Maximum number of concurrent connections. Further ones wait in the queue of the system.
const CONNECTIONS: usize = 64;

/// Time limit for a request's header section, also for the first one and for the next one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of a connection. A scraper reconnects.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause after a connection could not be accepted, for lack of file descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the service at `address` and returns the address with the port in use.
pub(super) async fn start(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    tokio::spawn(async move {
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let metrics = Arc::clone(&metrics);
            tokio::spawn(async move {
                // The end of a connection, also with an error, needs no further handling.
                let _ = tokio::time::timeout(CONNECTION_TIMEOUT, serve(stream, metrics)).await;
                drop(slot);
            });
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, metrics: Arc<Metrics>) -> hyper::Result<()> {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), &metrics);
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

/// Returns the response to a request. HEAD has the header section of GET (RFC 9110 section 9.3.2); hyper omits the body.
fn answer(method: &Method, path: &str, metrics: &Metrics) -> Response<Full<Bytes>> {
    // Version 0.0.4 of the text format of Prometheus.
    let (status, kind, body) = match path {
        "/metrics" | "/healthz" if !matches!(*method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "method not allowed\n".into())
        }
        "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4", metrics.render()),
        "/healthz" => (StatusCode::OK, "text/plain", "ok\n".into()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "not found; expected /metrics or /healthz\n".into()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
