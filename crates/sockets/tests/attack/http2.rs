//! The proxy over HTTP/2 (RFC 9113): TCP by CONNECT (section 8.5), and UDP by extended CONNECT (RFC 8441) with capsules.

use crate::house::*;
use crate::wire;
use bytes::{Bytes, BytesMut};
use fullpipe_masque::access::{ClientLimits, Token};
use fullpipe_masque::{capsule, configuration};
use fullpipe_sockets::http2;
use fullpipe_sockets::tls::{self, ServerVerification};
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

struct Http2Proxy {
    running: RunningProxy,
    address: SocketAddr,
}

async fn http2_proxy(certificate: &Certificate, change: impl FnOnce(&mut configuration::Proxy)) -> Http2Proxy {
    let running = proxy(certificate, change);
    let (_, tls) = tls::server_configs(&certificate.identity(), None).unwrap();
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http2::serve(listener, Arc::new(RwLock::new(tls)), running.proxy.clone()));
    Http2Proxy { running, address }
}

/// A connection of a client.
struct Client {
    send: SendRequest<Bytes>,
    driver: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    async fn new(certificate: &Certificate, address: SocketAddr) -> Client {
        let trust = ServerVerification::CaFile(certificate.chain.clone());
        let connector = TlsConnector::from(tls::tcp_client_config(&trust).unwrap());
        let stream = TcpStream::connect(address).await.unwrap();
        let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
        let (send, connection) =
            h2::client::Builder::new().initial_window_size(64 << 10).handshake(stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let send = send.ready().await.unwrap();
        let mut client = Client { send, driver };
        // The setting arrives with the first frames of the proxy.
        while !client.send.is_extended_connect_protocol_enabled() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            client.send = client.send.clone().ready().await.unwrap();
        }
        client
    }

    /// Sends a request and returns the response with both halves of the stream.
    async fn ask(&mut self, request: Request<()>) -> Result<(SendStream<Bytes>, Response<RecvStream>), h2::Error> {
        let (response, stream) = self.send.send_request(request, false)?;
        Ok((stream, response.await?))
    }

    async fn status(&mut self, request: Request<()>) -> u16 {
        self.ask(request).await.unwrap().1.status().as_u16()
    }

    /// Opens a tunnel.
    async fn tunnel(&mut self, request: Request<()>) -> (SendStream<Bytes>, RecvStream) {
        let (send, response) = self.ask(request).await.unwrap();
        assert_eq!(response.status(), 200);
        (send, response.into_body())
    }
}

fn tcp(authority: &str) -> Request<()> {
    Request::connect(authority).body(()).unwrap()
}

fn extended(protocol: &'static str, path: &str) -> Request<()> {
    let uri = format!("https://localhost{path}");
    Request::connect(uri).extension(Protocol::from_static(protocol)).body(()).unwrap()
}

/// Reads `length` bytes.
async fn data(receive: &mut RecvStream, length: usize) -> Vec<u8> {
    let mut data = Vec::new();
    while data.len() < length {
        let piece = receive.data().await.unwrap().unwrap();
        receive.flow_control().release_capacity(piece.len()).unwrap();
        data.extend_from_slice(&piece);
    }
    data
}

/// Checks that the proxy has finished its half. h2 returns the empty frame with END_STREAM as data.
async fn assert_finished(receive: &mut RecvStream) {
    while let Some(piece) = receive.data().await {
        assert_eq!(piece.unwrap(), b""[..]);
    }
}

async fn reset(receive: &mut RecvStream) -> Option<Reason> {
    loop {
        match receive.data().await {
            Some(Err(error)) => return error.reason(),
            Some(Ok(_)) => {}
            None => return None,
        }
    }
}

#[test]
fn connect_carries_tcp_with_half_close_and_resets() {
    run(async {
        let certificate = certificate();
        let proxy = http2_proxy(&certificate, |_| {}).await;
        let mut client = Client::new(&certificate, proxy.address).await;
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let target = listener.local_addr().unwrap().to_string();
        // The client finishes first.
        let (mut send, mut receive) = client.tunnel(tcp(&target)).await;
        let mut connection = listener.accept().await.unwrap().0;
        send.send_data(b"question"[..].into(), true).unwrap();
        let mut question = Vec::new();
        connection.read_to_end(&mut question).await.unwrap();
        assert_eq!(question, b"question");
        connection.write_all(b"answer").await.unwrap();
        assert_eq!(data(&mut receive, 6).await, b"answer");
        drop(connection);
        assert_finished(&mut receive).await;
        proxy.running.log.wait_for("reason=\"both sides have finished\"", 1).await;
        // The target finishes first.
        let (mut send, mut receive) = client.tunnel(tcp(&target)).await;
        let mut connection = listener.accept().await.unwrap().0;
        connection.shutdown().await.unwrap();
        assert_finished(&mut receive).await;
        send.send_data(b"later"[..].into(), true).unwrap();
        let mut later = Vec::new();
        connection.read_to_end(&mut later).await.unwrap();
        assert_eq!(later, b"later");
        // RFC 9113 section 8.5: a TCP error is a stream error CONNECT_ERROR.
        let (_send, mut receive) = client.tunnel(tcp(&target)).await;
        let connection = listener.accept().await.unwrap().0;
        connection.set_zero_linger().unwrap();
        drop(connection);
        assert_eq!(reset(&mut receive).await, Some(Reason::CONNECT_ERROR));
        // A stream that the client resets, also after it has finished its half, and a lost connection.
        let is_reset = |end: io::Result<usize>| end.unwrap_err().kind() == io::ErrorKind::ConnectionReset;
        for has_finished in [false, true] {
            let (mut send, _receive) = client.tunnel(tcp(&target)).await;
            let mut connection = listener.accept().await.unwrap().0;
            if has_finished {
                send.send_data(Bytes::new(), true).unwrap();
                assert_eq!(connection.read(&mut [0]).await.unwrap(), 0);
                send.send_reset(Reason::CANCEL);
                // The FIN of the proxy has arrived before, so only a write reports the reset.
                while connection.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } else {
                send.send_reset(Reason::CANCEL);
                assert!(is_reset(connection.read_to_end(&mut Vec::new()).await));
            }
        }
        let (_send, _receive) = client.tunnel(tcp(&target)).await;
        let mut connection = listener.accept().await.unwrap().0;
        client.driver.abort();
        assert!(is_reset(connection.read_to_end(&mut Vec::new()).await));
        while proxy.running.metrics.requests_open.get() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn connect_udp_carries_payloads_in_capsules() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = http2_proxy(&certificate, |_| {}).await;
        let mut client = Client::new(&certificate, proxy.address).await;
        let (mut send, response) = client.ask(extended("connect-udp", &path_of(echo.address))).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["capsule-protocol"]),
            (200, &"?1".parse().unwrap())
        );
        let mut receive = response.into_body();
        for payload in [&b"one"[..], b"", &[7; 1400]] {
            let mut capsule = BytesMut::new();
            capsule::encode(payload, &mut capsule);
            let capsule = capsule.freeze();
            // An unknown capsule is skipped (RFC 9297 section 3.2).
            send.send_data([wire::frame(41, b"?"), capsule.to_vec()].concat().into(), false).unwrap();
            assert_eq!(data(&mut receive, capsule.len()).await, capsule);
        }
        // A stream that ends within a capsule is malformed.
        send.send_data([0, 5, 0][..].to_vec().into(), true).unwrap();
        assert_eq!(reset(&mut receive).await, Some(Reason::PROTOCOL_ERROR));
        assert_eq!(proxy.running.metrics.payloads_from_target_total.get(), 3);
    });
}

#[test]
fn requests_over_http2_are_checked_like_those_over_http3() {
    run(async {
        let certificate = certificate();
        let proxy = http2_proxy(&certificate, |settings| {
            let limits = ClientLimits::default();
            settings.tokens = vec![Token { name: "alice".into(), secret: "s3cret".into(), limits }];
        })
        .await;
        let mut client = Client::new(&certificate, proxy.address).await;
        let path = path_of("127.0.0.1:9".parse().unwrap());
        let with = |mut request: Request<()>, field: &'static str, value: &str| {
            request.headers_mut().insert(field, value.parse().unwrap());
            request
        };
        let (_, response) = client.ask(tcp("127.0.0.1:9")).await.unwrap();
        assert_eq!(response.status(), 407);
        let challenge = response.headers()["proxy-authenticate"].to_str().unwrap();
        assert!(challenge.contains("Bearer") && challenge.contains("Basic"), "{challenge}");
        let (_, response) = client.ask(extended("connect-udp", &path)).await.unwrap();
        assert!(response.status() == 401 && response.headers().contains_key("www-authenticate"));
        // alice:s3cret
        let basic = "Basic YWxpY2U6czNjcmV0";
        for (request, status) in [
            (tcp("127.0.0.1:9"), 502),
            (tcp("127.0.0.1:25"), 403),
            (tcp("169.254.169.254:80"), 403),
            (tcp("127.1:80"), 400),
            (extended("connect-ip", &path), 501),
            (extended("connect-udp", "/"), 404),
            (Request::get("https://localhost/").body(()).unwrap(), 405),
        ] {
            let target = request.uri().to_string();
            assert_eq!(client.status(with(request, "proxy-authorization", basic)).await, status, "{target}");
        }
        assert_eq!(client.status(with(extended("connect-udp", &path), "authorization", "Bearer s3cret")).await, 200);
    });
}

#[test]
fn slow_readers_stop_the_other_side() {
    run(async {
        let certificate = certificate();
        let proxy = http2_proxy(&certificate, |_| {}).await;
        let mut client = Client::new(&certificate, proxy.address).await;
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let (_send, mut receive) = client.tunnel(tcp(&listener.local_addr().unwrap().to_string())).await;
        let mut target = listener.accept().await.unwrap().0;
        let block = vec![7; 64 << 10];
        let mut sent = 0;
        while tokio::time::timeout(Duration::from_secs(1), target.write_all(&block)).await.is_ok() {
            sent += block.len();
            assert!(sent < 64 << 20, "the proxy reads without limit");
        }
        let down = proxy.running.metrics.tcp_bytes_from_target_total.get();
        assert!(down <= 512 << 10, "{down}");
        assert!(data(&mut receive, sent).await.iter().all(|byte| *byte == 7));
    });
}

#[test]
fn silent_and_foreign_connections_are_closed() {
    run(async {
        let certificate = certificate();
        let proxy = http2_proxy(&certificate, |settings| {
            settings.header_timeout = Duration::from_millis(200);
            settings.tunnel.connection_idle = Duration::from_millis(200);
            settings.max_connections = 3;
        })
        .await;
        // Without TLS, with other bytes than TLS, and without requests.
        let mut silent = TcpStream::connect(proxy.address).await.unwrap();
        let mut foreign = TcpStream::connect(proxy.address).await.unwrap();
        foreign.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(silent.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        let _ = foreign.read_to_end(&mut Vec::new()).await;
        let client = Client::new(&certificate, proxy.address).await;
        let _ = client.driver.await;
        proxy.running.log.wait_for("event=connection-closed", 3).await;
        while proxy.running.metrics.connections_open.get() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The limit of connections.
        let mut kept = Vec::new();
        for _ in 0..3 {
            kept.push(TcpStream::connect(proxy.address).await.unwrap());
        }
        while proxy.running.metrics.connections_open.get() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut refused = TcpStream::connect(proxy.address).await.unwrap();
        assert_eq!(refused.read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
        assert_eq!(proxy.running.metrics.connections_refused_total.get(), 1);
    });
}

#[test]
fn shutdown_sends_goaway_over_http2_and_keeps_open_tunnels() {
    run(async {
        let certificate = certificate();
        let proxy = http2_proxy(&certificate, |_| {}).await;
        let mut client = Client::new(&certificate, proxy.address).await;
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let (mut send, _receive) = client.tunnel(tcp(&target)).await;
        let mut connection = listener.accept().await.unwrap().0;
        proxy.running.proxy.drain();
        // New requests are refused once the client has received GOAWAY.
        while client.ask(tcp(&target)).await.is_ok() {}
        send.send_data(b"after"[..].into(), false).unwrap();
        let mut after = [0; 5];
        connection.read_exact(&mut after).await.unwrap();
        assert_eq!(&after, b"after");
        let mut late = TcpStream::connect(proxy.address).await.unwrap();
        assert_eq!(late.read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
    });
}
