//! HTTP/3 GET requests on one connection (RFC 9114).

use super::MAX_HEADER_BYTES;
use crate::environment::Environment;
use crate::halves::ReadHalf;
use crate::transport::{self, StreamHandles};
use bytes::Bytes;
use h3::error::{ConnectionError, StreamError};
use http::{Request, Uri};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

/// Reason why a GET failed.
#[derive(Debug)]
pub enum Error {
    /// The connection was lost.
    Connection(ConnectionError),
    /// The stream was aborted.
    Stream(StreamError),
    /// The request could not be written.
    Request(String),
    /// The received data could not be stored.
    Store(io::Error),
    /// The length of the body differs from the announced length.
    LengthMismatch {
        /// Bytes that the server announced.
        announced: u64,
        /// Bytes that arrived.
        received: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connection(error) => write!(formatter, "the connection was lost: {error}"),
            Error::Stream(error) => write!(formatter, "the request was aborted: {}", transport::reason(error)),
            Error::Request(error) => write!(formatter, "cannot send the request: {error}"),
            Error::Store(error) => write!(formatter, "cannot store the response body: {error}"),
            Error::LengthMismatch { announced, received } => {
                write!(formatter, "the server sent {received} bytes, but its content-length is {announced}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Result of a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchResult {
    /// Status code of the response.
    pub status: u16,
    /// Size of the body in bytes.
    pub bytes: u64,
}

/// Requests `uri` on a connection with the ALPN protocol `h3` and passes each chunk of the body to `store`.
///
/// # Errors
/// If the connection, the stream or `store` fails.
pub async fn get(
    environment: &Arc<dyn Environment>,
    connection: noq::Connection,
    uri: &Uri,
    mut store: impl FnMut(&Bytes) -> io::Result<()> + Send,
) -> Result<FetchResult, Error> {
    let adapter = transport::Connection::new(connection, MAX_HEADER_BYTES, StreamHandles::default());
    let (mut http, mut send) =
        h3::client::builder().send_grease(false).build(adapter).await.map_err(Error::Connection)?;
    environment.spawn(Box::pin(async move {
        http.wait_idle().await;
    }));
    let request = Request::get(uri).body(()).map_err(|error| Error::Request(error.to_string()))?;
    let mut stream = send.send_request(request).await.map_err(Error::Stream)?;
    stream.finish().await.map_err(Error::Stream)?;
    let response = transport::final_response(&mut stream).await.map_err(Error::Stream)?;
    let length = response.headers().get(http::header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()).and_then(|text| text.parse::<u64>().ok());
    let (_, mut body) = stream.split();
    let mut bytes = 0;
    while let Some(piece) = poll_fn(|context| body.poll_read(context)).await.map_err(Error::Stream)? {
        bytes += piece.len() as u64;
        if length.is_some_and(|announced| bytes > announced) {
            break;
        }
        store(&piece).map_err(Error::Store)?;
    }
    match length {
        Some(announced) if announced != bytes => {
            // The response is malformed (RFC 9114 section 4.1.2). The connection ends with this function.
            Err(Error::LengthMismatch { announced, received: bytes })
        }
        _ => Ok(FetchResult { status: response.status().as_u16(), bytes }),
    }
}
