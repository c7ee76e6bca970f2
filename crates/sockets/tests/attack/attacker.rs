//! A QUIC connection of an attacker who can send arbitrary HTTP/3 bytes.

use crate::house::*;
use crate::wire;
use fullpipe_masque::configuration;
use fullpipe_sockets::{TokioEnvironment, endpoint};
use noq::{ConnectionError, ReadExactError, RecvStream, SendStream};
use std::net::SocketAddr;

/// Result of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A response with this status.
    Status(u16),
    /// The response stream is reset.
    Reset(u64),
    /// The response stream ends without a response.
    Finished,
    /// The application closes the connection.
    Closed(u64),
}

pub(crate) struct Attacker {
    pub(crate) connection: noq::Connection,
    /// Kept open: the end of a control stream is an error.
    control: Vec<SendStream>,
    endpoint: noq::Endpoint,
}

impl Attacker {
    /// Connects and sends nothing.
    pub(crate) async fn silent(certificate: &Certificate, proxy: SocketAddr) -> Attacker {
        Attacker::speechless(certificate, proxy, configuration::Client::default()).await
    }

    /// Connects with this flow-control window per stream, and offers no HTTP datagrams.
    pub(crate) async fn narrow(certificate: &Certificate, proxy: SocketAddr, window: u32) -> Attacker {
        let mut settings = configuration::Client::default();
        settings.tunnel.receive_window = window;
        let mut attacker = Attacker::speechless(certificate, proxy, settings).await;
        attacker.one_way(&[vec![0], wire::frame(wire::SETTINGS, &[])].concat()).await;
        attacker
    }

    async fn speechless(certificate: &Certificate, proxy: SocketAddr, settings: configuration::Client) -> Attacker {
        Attacker::from(
            endpoint::bind_client(&TokioEnvironment, proxy).unwrap(),
            certificate,
            proxy,
            settings.transport(),
        )
        .await
    }

    /// Opens another connection from the same endpoint, with settings that offer HTTP datagrams.
    pub(crate) async fn another(&self, certificate: &Certificate, proxy: SocketAddr) -> Attacker {
        let transport = configuration::Client::default().transport();
        let mut attacker = Attacker::from(self.endpoint.clone(), certificate, proxy, transport).await;
        attacker.one_way(&[vec![0], wire::frame(wire::SETTINGS, &[0x33, 1])].concat()).await;
        attacker
    }

    async fn from(
        endpoint: noq::Endpoint,
        certificate: &Certificate,
        proxy: SocketAddr,
        transport: noq::TransportConfig,
    ) -> Attacker {
        let connection = connect(certificate, &endpoint, proxy, transport).await;
        Attacker { connection, control: Vec::new(), endpoint }
    }

    /// Connects and sends settings that offer HTTP datagrams (RFC 9297 section 2.1.1).
    pub(crate) async fn new(certificate: &Certificate, proxy: SocketAddr) -> Attacker {
        Attacker::with_settings(certificate, proxy, &[0x33, 1]).await
    }

    /// Connects and sends these settings.
    pub(crate) async fn with_settings(certificate: &Certificate, proxy: SocketAddr, settings: &[u64]) -> Attacker {
        let mut attacker = Attacker::silent(certificate, proxy).await;
        attacker.one_way(&[vec![0], wire::frame(wire::SETTINGS, &wire::varints(settings))].concat()).await;
        attacker
    }

    /// Opens a unidirectional stream and sends these bytes.
    pub(crate) async fn one_way(&mut self, bytes: &[u8]) -> &mut SendStream {
        let mut stream = self.connection.open_uni().await.unwrap();
        // The proxy may abort before everything is written.
        let _ = stream.write_all(bytes).await;
        self.control.push(stream);
        self.control.last_mut().unwrap()
    }

    /// Opens a bidirectional stream and sends these bytes.
    pub(crate) async fn two_way(&self, bytes: &[u8], finish: bool) -> (SendStream, RecvStream) {
        let (mut send, receive) = self.connection.open_bi().await.unwrap();
        let _ = send.write_all(bytes).await;
        if finish {
            let _ = send.finish();
        }
        (send, receive)
    }

    /// Sends these bytes as a request and returns the result.
    pub(crate) async fn ask(&self, bytes: &[u8], finish: bool) -> Outcome {
        let (_send, mut receive) = self.two_way(bytes, finish).await;
        answer(&mut receive).await
    }

    /// Requests a tunnel that must succeed.
    pub(crate) async fn tunnel(&self, path: &str) -> (SendStream, RecvStream) {
        let (send, mut receive) = self.two_way(&wire::request(path), false).await;
        assert_eq!(answer(&mut receive).await, Outcome::Status(200), "{path}");
        (send, receive)
    }

    /// Returns the code with which the proxy closes the connection.
    pub(crate) async fn closed(&self) -> u64 {
        closing(&self.connection.closed().await)
    }
}

fn closing(error: &ConnectionError) -> u64 {
    match error {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("{other}"),
    }
}

async fn take<const LENGTH: usize>(receive: &mut RecvStream) -> Result<[u8; LENGTH], Outcome> {
    let mut bytes = [0; LENGTH];
    receive.read_exact(&mut bytes).await.map_err(outcome)?;
    Ok(bytes)
}

fn outcome(error: ReadExactError) -> Outcome {
    match error {
        ReadExactError::FinishedEarly(_) => Outcome::Finished,
        ReadExactError::ReadError(noq::ReadError::Reset(code)) => Outcome::Reset(code.into_inner()),
        ReadExactError::ReadError(noq::ReadError::ConnectionLost(error)) => Outcome::Closed(closing(&error)),
        ReadExactError::ReadError(other) => panic!("{other}"),
    }
}

async fn take_varint(receive: &mut RecvStream) -> Result<u64, Outcome> {
    let mut bytes = vec![take::<1>(receive).await?[0]];
    loop {
        if let Some((value, _)) = wire::read_varint(&bytes) {
            return Ok(value);
        }
        bytes.push(take::<1>(receive).await?[0]);
    }
}

/// Reads the next frame: type and payload.
pub(crate) async fn next_frame(receive: &mut RecvStream) -> Result<(u64, Vec<u8>), Outcome> {
    let kind = take_varint(receive).await?;
    let length = take_varint(receive).await?;
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    receive.read_exact(&mut payload).await.map_err(outcome)?;
    Ok((kind, payload))
}

/// Returns the status of the response, or the result without a response.
pub(crate) async fn answer(receive: &mut RecvStream) -> Outcome {
    match next_frame(receive).await {
        Ok((wire::HEADERS, section)) => Outcome::Status(wire::status(&section)),
        Ok((kind, _)) => panic!("the response begins with a frame of type {kind}"),
        Err(outcome) => outcome,
    }
}
