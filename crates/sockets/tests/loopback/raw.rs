//! A client that sends arbitrary requests, stream data and datagrams on its own connection.

use crate::house::*;
use bytes::Bytes;
use fullpipe_masque::configuration;
use fullpipe_masque::transport::{self, BidiStream, StreamHandles, StreamOpener};
use fullpipe_sockets::{TokioEnvironment, endpoint};
use h3::client::{RequestStream, SendRequest};
use h3::error::{ConnectionError, StreamError};
use h3::ext::Protocol;
use http::{Request, Response};
use std::net::SocketAddr;

pub(crate) struct Raw {
    pub(crate) connection: noq::Connection,
    pub(crate) send: SendRequest<StreamOpener, Bytes>,
    _endpoint: noq::Endpoint,
}

pub(crate) type Stream = RequestStream<BidiStream, Bytes>;

impl Raw {
    /// Connects; `datagrams` determines whether its settings offer HTTP datagrams.
    pub(crate) async fn new(certificate: &Certificate, proxy: SocketAddr, datagrams: bool) -> Raw {
        let endpoint = endpoint::bind_client(&TokioEnvironment, proxy).unwrap();
        let transport = configuration::Client::default().transport();
        let connection = connect(certificate, &endpoint, proxy, transport).await;
        let adapter = transport::Connection::new(connection.clone(), 1 << 20, StreamHandles::default());
        let built: Result<_, ConnectionError> =
            h3::client::builder().send_grease(true).enable_datagram(datagrams).build(adapter).await;
        let (mut driver, send) = built.unwrap();
        environment().spawn(Box::pin(async move {
            driver.wait_idle().await;
        }));
        Raw { connection, send, _endpoint: endpoint }
    }

    /// Sends a request.
    pub(crate) async fn request(&mut self, request: Request<()>) -> Result<Stream, StreamError> {
        self.send.send_request(request).await
    }

    /// Requests a tunnel and waits for the response.
    pub(crate) async fn ask(&mut self, path: &str) -> Result<(Stream, Response<()>), StreamError> {
        let mut stream = self.request(tunnel(path)).await?;
        let response = stream.recv_response().await?;
        Ok((stream, response))
    }

    /// Returns the status of the response.
    pub(crate) async fn status(&mut self, path: &str) -> u16 {
        self.ask(path).await.unwrap().1.status().as_u16()
    }

    /// Returns the application's code with which the proxy closes the connection.
    pub(crate) async fn closing_code(&self) -> u64 {
        match self.connection.closed().await {
            noq::ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
            other => panic!("{other}"),
        }
    }
}

/// A CONNECT-UDP request.
pub(crate) fn tunnel(path: &str) -> Request<()> {
    Request::connect(format!("https://localhost{path}")).extension(Protocol::CONNECT_UDP).body(()).unwrap()
}

/// The code with which a stream ends.
pub(crate) fn code(error: &StreamError) -> u64 {
    match error {
        StreamError::RemoteTerminate { code, .. } => code.value(),
        other => panic!("{other}"),
    }
}
