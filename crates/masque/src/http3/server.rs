//! An HTTP/3 server that responds to GET and HEAD (RFC 9114).

use super::MAX_HEADER_BYTES;
use crate::environment::Environment;
use crate::percent;
use crate::transport::{self, BidiStream, StreamHandles, code};
use bytes::Bytes;
use h3::error::{ConnectionError, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{Method, Request, Response, StatusCode, header};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Source of the response bodies of a server.
pub trait ContentSource: Send + Sync + 'static {
    /// Opens the body at a path. The path is percent-decoded, begins with a slash and has no `.`, `..` or empty
    /// segments.
    ///
    /// # Errors
    /// If there is no such body or it cannot be read.
    fn open(&self, path: &str) -> Result<Box<dyn Body>, ContentError>;
}

/// Reason why a body is not available.
#[derive(Debug)]
pub enum ContentError {
    /// There is no body at this path.
    NotFound,
    /// The body exists but cannot be read.
    Unreadable(io::Error),
}

/// A body that is being sent.
pub trait Body: Send {
    /// Total size in bytes.
    fn length(&self) -> u64;

    /// Returns the next chunk; an empty chunk marks the end.
    ///
    /// # Errors
    /// If reading fails.
    fn next_chunk(&mut self) -> io::Result<Bytes>;
}

type Stream = RequestStream<BidiStream, Bytes>;
type Refused = dyn Fn(SocketAddr, u16, &str) + Send + Sync;

/// The HTTP/3 server.
#[derive(Clone)]
pub struct Server {
    environment: Arc<dyn Environment>,
    content: Arc<dyn ContentSource>,
    refused: Arc<Refused>,
}

impl Server {
    /// Creates a server for `content`. The server calls `refused` for each request without a successful response. The
    /// arguments are the client's address, the status (0 after a stream error) and the reason.
    pub fn new(
        environment: Arc<dyn Environment>,
        content: Arc<dyn ContentSource>,
        refused: impl Fn(SocketAddr, u16, &str) + Send + Sync + 'static,
    ) -> Server {
        Server { environment, content, refused: Arc::new(refused) }
    }

    /// Serves an endpoint until it is closed.
    pub async fn serve(&self, endpoint: noq::Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            let server = self.clone();
            self.environment.spawn(Box::pin(async move {
                let client = incoming.remote_address();
                if let Ok(connection) = incoming.await {
                    // An error ends only this connection.
                    let _ = server.serve_connection(client, connection).await;
                }
            }));
        }
    }

    /// Serves one connection of this client until the connection ends.
    ///
    /// # Errors
    /// If the connection ends for any reason other than a close by the client.
    pub async fn serve_connection(
        &self,
        client: SocketAddr,
        connection: noq::Connection,
    ) -> Result<(), ConnectionError> {
        let handles = StreamHandles::default();
        let adapter = transport::Connection::new(connection, MAX_HEADER_BYTES * 8, handles.clone());
        let mut http =
            h3::server::builder().send_grease(false).max_field_section_size(MAX_HEADER_BYTES).build(adapter).await?;
        while let Some(resolver) = http.accept().await? {
            handles.take(resolver.frame_stream.id());
            let server = self.clone();
            self.environment.spawn(Box::pin(async move { server.serve_request(client, resolver).await }));
        }
        Ok(())
    }

    async fn serve_request(&self, client: SocketAddr, resolver: RequestResolver<transport::Connection, Bytes>) {
        match resolver.resolve_request().await {
            Ok((request, mut stream)) => {
                if let Err(error) = self.answer(client, &request, &mut stream).await {
                    (self.refused)(client, 0, &transport::reason(&error));
                }
            }
            Err(StreamError::HeaderTooBig { .. }) => (self.refused)(client, 431, "the header section is too large"),
            Err(error) => (self.refused)(client, 0, &transport::reason(&error)),
        }
    }

    async fn answer(&self, client: SocketAddr, request: &Request<()>, stream: &mut Stream) -> Result<(), StreamError> {
        if request.headers().contains_key(header::CONTENT_LENGTH) {
            // A request whose content has another length is malformed (RFC 9114 section 4.1.2). The transport counts.
            while stream.recv_data().await?.is_some() {}
        }
        let opened = match request.method() {
            &Method::GET | &Method::HEAD => path(request)
                .ok_or((StatusCode::BAD_REQUEST, "the path is malformed".into()))
                .and_then(|path| self.content.open(&path).map_err(status)),
            method => {
                Err((StatusCode::METHOD_NOT_ALLOWED, format!("method {method} is not supported; expected GET or HEAD")))
            }
        };
        let body = match opened {
            Ok(body) => body,
            Err((status, reason)) => {
                (self.refused)(client, status.as_u16(), &reason);
                respond(stream, status, 0).await?;
                return stream.finish().await;
            }
        };
        respond(stream, StatusCode::OK, body.length()).await?;
        if request.method() == Method::GET {
            send(body, stream).await?;
        }
        stream.finish().await
    }
}

async fn respond(stream: &mut Stream, status: StatusCode, length: u64) -> Result<(), StreamError> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    stream.send_response(response).await
}

async fn send(mut body: Box<dyn Body>, stream: &mut Stream) -> Result<(), StreamError> {
    loop {
        match body.next_chunk() {
            Ok(piece) if piece.is_empty() => return Ok(()),
            Ok(piece) => stream.send_data(piece).await?,
            Err(_) => {
                stream.stop_stream(u64::from(code::REQUEST_CANCELLED).into());
                return Ok(());
            }
        }
    }
}

fn status(error: ContentError) -> (StatusCode, String) {
    match error {
        ContentError::NotFound => (StatusCode::NOT_FOUND, "not found".into()),
        ContentError::Unreadable(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Path of a request; `None` if it is invalid or leads outside the root.
fn path(request: &Request<()>) -> Option<String> {
    let path = percent::decode(request.uri().path())?;
    let segments = path.strip_prefix('/')?;
    let good = |segment: &str| !matches!(segment, "" | "." | "..") && !segment.contains(['\0', '\\']);
    segments.split('/').all(good).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_outside_the_root_is_rejected() {
        let read = |text: &str| path(&Request::get(format!("https://a{text}")).body(()).unwrap());
        assert_eq!(read("/a%20b/c?x").as_deref(), Some("/a b/c"));
        for bad in
            ["/", "//", "/a/../b", "/a/%2e%2e/b", "/a/%2E./b", "/./a", "/a/", "/a%2f..%2fb", "/a%00", "/a%5cb", "/%zz"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
