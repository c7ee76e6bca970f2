//! TCP tunnels: CONNECT over HTTP/3 (RFC 9114 section 4.4).

use crate::attacker::*;
use crate::house::*;
use crate::wire::{self, DATA};
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, ConnectedStream, Environment};
use fullpipe_sockets::TokioEnvironment;
use noq::{RecvStream, SendStream};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn connect_request(authority: &str) -> Vec<u8> {
    wire::headers(&[(":method", "CONNECT"), (":authority", authority)])
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Opens a tunnel to a listener: the client's stream and the target's connection.
async fn tunnel(
    attacker: &Attacker,
    (listener, address): &(TcpListener, String),
) -> (SendStream, RecvStream, TcpStream) {
    let (send, mut receive) = attacker.two_way(&connect_request(address), false).await;
    assert_eq!(answer(&mut receive).await, Outcome::Status(200));
    (send, receive, listener.accept().await.unwrap().0)
}

async fn send_data(send: &mut SendStream, data: &[u8]) {
    send.write_all(&wire::frame(DATA, data)).await.unwrap();
}

/// The next `length` bytes of DATA frames.
async fn data(receive: &mut RecvStream, length: usize) -> Vec<u8> {
    let mut data = Vec::new();
    while data.len() < length {
        let (kind, payload) = next_frame(receive).await.unwrap();
        assert_eq!(kind, DATA);
        data.extend(payload);
    }
    data
}

/// Waits until the target's connection ends, and returns how.
async fn target_end(target: &mut TcpStream) -> io::Result<usize> {
    target.read_to_end(&mut Vec::new()).await
}

#[test]
fn each_direction_of_a_tunnel_ends_by_itself() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |_| {});
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let listener = listener().await;
        // The client finishes first.
        let (mut send, mut receive, mut target) = tunnel(&attacker, &listener).await;
        send_data(&mut send, b"question").await;
        send.finish().unwrap();
        let mut question = Vec::new();
        target.read_to_end(&mut question).await.unwrap();
        assert_eq!(question, b"question");
        target.write_all(b"answer").await.unwrap();
        assert_eq!(data(&mut receive, 6).await, b"answer");
        target.write_all(b"!").await.unwrap();
        assert_eq!(data(&mut receive, 1).await, b"!");
        drop(target);
        assert_eq!(next_frame(&mut receive).await, Err(Outcome::Finished));
        // The target finishes first.
        let (mut send, mut receive, mut target) = tunnel(&attacker, &listener).await;
        target.write_all(b"greeting").await.unwrap();
        target.shutdown().await.unwrap();
        assert_eq!(data(&mut receive, 8).await, b"greeting");
        assert_eq!(next_frame(&mut receive).await, Err(Outcome::Finished));
        send_data(&mut send, b"later").await;
        send.finish().unwrap();
        let mut later = Vec::new();
        target.read_to_end(&mut later).await.unwrap();
        assert_eq!(later, b"later");
        proxy.log.wait_for("reason=\"both sides have finished\"", 2).await;
        while proxy.metrics.requests_open.get() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let counted = (proxy.metrics.tcp_bytes_to_target_total.get(), proxy.metrics.tcp_bytes_from_target_total.get());
        assert_eq!((counted, proxy.metrics.tcp_tunnels_total.get()), ((13, 15), 2));
    });
}

/// RFC 9114 section 4.4: an error of the TCP connection is a stream error H3_CONNECT_ERROR, and an error of the stream or of
/// the QUIC connection resets the TCP connection.
#[test]
fn resets_pass_through_a_tunnel_in_both_directions() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |_| {});
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let listener = listener().await;
        let (send, mut receive, target) = tunnel(&attacker, &listener).await;
        target.set_zero_linger().unwrap();
        drop(target);
        assert_eq!(next_frame(&mut receive).await, Err(Outcome::Reset(0x10f)));
        assert_eq!(send.stopped().await.unwrap().map(noq::VarInt::into_inner), Some(0x10f));
        let is_reset = |end: io::Result<usize>| end.unwrap_err().kind() == io::ErrorKind::ConnectionReset;
        let (mut send, _receive, mut target) = tunnel(&attacker, &listener).await;
        send.reset(0x10c_u32.into()).unwrap();
        assert!(is_reset(target_end(&mut target).await));
        let (_send, mut receive, mut target) = tunnel(&attacker, &listener).await;
        receive.stop(0x10c_u32.into()).unwrap();
        assert!(is_reset(target_end(&mut target).await));
        // A field section within the tunnel.
        let (mut send, _receive, mut target) = tunnel(&attacker, &listener).await;
        send.write_all(&wire::headers(&[("x", "y")])).await.unwrap();
        assert!(is_reset(target_end(&mut target).await));
        let another = attacker.another(&certificate, proxy.address).await;
        let (_send, _receive, mut target) = tunnel(&another, &listener).await;
        another.connection.close(0x100_u32.into(), b"");
        assert!(is_reset(target_end(&mut target).await));
    });
}

#[test]
fn tcp_targets_are_checked_like_udp_targets() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |settings| {
            settings.policy.deny = vec!["127.0.0.2".parse().unwrap()];
            settings.max_requests = 1;
        });
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (listener, open) = listener().await;
        let closed = {
            let listener = TcpListener::bind(LOCAL).await.unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let port = listener.local_addr().unwrap().port();
        for (authority, status) in [
            (&*format!("127.0.0.2:{port}"), 403),
            ("169.254.169.254:80", 403),
            ("127.0.0.1:25", 403),
            ("127.1:80", 400),
            (&closed, 502),
        ] {
            let outcome = attacker.ask(&connect_request(authority), false).await;
            assert_eq!(outcome, Outcome::Status(status), "{authority}");
        }
        let (_send, mut receive) = attacker.two_way(&connect_request(&open), false).await;
        assert_eq!(answer(&mut receive).await, Outcome::Status(200));
        assert_eq!(attacker.ask(&connect_request(&open), false).await, Outcome::Status(503));
        assert_eq!(proxy.metrics.requests_refused_total.get(), 6);
    });
}

/// A client that does not read, and a target that does not: both stop the sender, and the memory of the tunnel is bounded
/// by the windows of the connection.
#[test]
fn tunnel_reads_only_what_the_other_side_accepts() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |settings| settings.tunnel.stream_buffer = 1 << 20);
        // A window of 64 KiB per stream.
        let attacker = Attacker::narrow(&certificate, proxy.address, 64 << 10).await;
        let listener = listener().await;
        let (mut send, mut receive, mut target) = tunnel(&attacker, &listener).await;
        let stalled = Duration::from_secs(1);
        let block = vec![7; 64 << 10];
        let mut sent_down = 0;
        while tokio::time::timeout(stalled, target.write_all(&block)).await.is_ok() {
            sent_down += block.len();
            assert!(sent_down < 64 << 20, "the proxy reads without limit");
        }
        let down = proxy.metrics.tcp_bytes_from_target_total.get();
        assert!(down <= (1 << 20) + (128 << 10), "{down}");
        // The other direction is independent.
        let mut sent = 0;
        while tokio::time::timeout(stalled, send_data(&mut send, &block)).await.is_ok() {
            sent += block.len();
            assert!(sent < 64 << 20, "the proxy reads without limit");
        }
        // Both continue when the other side reads.
        assert!(data(&mut receive, sent_down).await.iter().all(|byte| *byte == 7));
        let mut room = vec![0; sent];
        target.read_exact(&mut room).await.unwrap();
        assert!(room.iter().all(|byte| *byte == 7));
    });
}

/// An environment whose names have several addresses, of which some do not answer.
#[derive(Debug)]
struct Slow;

impl Environment for Slow {
    fn runtime(&self) -> Arc<dyn noq::Runtime> {
        TokioEnvironment.runtime()
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        TokioEnvironment.bind(local)
    }

    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        TokioEnvironment.connect(peer)
    }

    fn connect_stream(&self, peer: SocketAddr) -> BoxFuture<io::Result<Arc<dyn ConnectedStream>>> {
        match peer.ip() {
            IpAddr::V6(_) => Box::pin(std::future::pending()),
            IpAddr::V4(_) => TokioEnvironment.connect_stream(peer),
        }
    }

    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let addresses: &[&str] = if name == "dual.example" { &["::1", "::1", "127.0.0.1"] } else { &["::1"] };
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async { Ok(addresses) })
    }
}

/// RFC 8305.
#[test]
fn address_that_does_not_answer_delays_the_next_one_by_a_quarter_of_a_second() {
    run(async {
        let certificate = certificate();
        let proxy = proxy_in(Arc::new(Slow), &certificate, |_| {});
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (listener, _) = listener().await;
        let port = listener.local_addr().unwrap().port();
        let begin = TokioEnvironment.now();
        let (_send, mut receive) = attacker.two_way(&connect_request(&format!("dual.example:{port}")), false).await;
        assert_eq!(answer(&mut receive).await, Outcome::Status(200));
        assert!(begin.elapsed() >= Duration::from_millis(250));
        // Without an answer from any, the request fails after ten seconds.
        let request = connect_request(&format!("dead.example:{port}"));
        assert_eq!(attacker.ask(&request, false).await, Outcome::Status(504));
        // A client that cancels frees its place at once.
        let (mut _send, mut receive) = attacker.two_way(&request, false).await;
        while proxy.metrics.requests_open.get() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        receive.stop(0x10c_u32.into()).unwrap();
        proxy.log.wait_for("reason=\"the client cancelled the request\"", 1).await;
        assert_eq!(proxy.metrics.requests_open.get(), 1);
    });
}
