//! Floods of requests, streams, datagrams and handshakes, and peers that withhold expected data.

use crate::attacker::*;
use crate::house::*;
use crate::wire::*;
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, Environment, SendResult};
use fullpipe_sockets::{TokioEnvironment, endpoint};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[test]
fn ten_thousand_sequential_requests_are_served() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        for number in 0..10_000u64 {
            let (mut send, _receive) = attacker.tunnel(&path).await;
            let payload = [varint(number), vec![0, 7]].concat();
            attacker.connection.send_datagram(payload.clone().into()).unwrap();
            assert_eq!(attacker.connection.read_datagram().await.unwrap(), payload);
            send.finish().unwrap();
            if number % 1000 == 0 {
                bystander.is_served().await;
            }
        }
        assert_eq!(proxy.metrics.requests_total.get(), 10_001);
        while proxy.metrics.requests_open.get() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn concurrent_requests_beyond_the_limit_are_rejected() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| {
            settings.max_requests = 101;
            settings.max_requests_per_connection = 10_000;
        });
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let bytes = request(&path_of(echo.address));
        let mut streams = Vec::new();
        for _ in 0..10_000 {
            streams.push(attacker.two_way(&bytes, false).await);
        }
        bystander.is_served().await;
        let mut count = (0, 0);
        for (_, receive) in &mut streams {
            match answer(receive).await {
                Outcome::Status(200) => count.0 += 1,
                // RFC 9209 section 2.3.12: connection_limit_reached has status 503.
                Outcome::Status(503) => count.1 += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(count, (100, 9_900));
        assert_eq!(proxy.metrics.requests_open.get(), 101);
        bystander.is_served().await;
        drop(streams);
        while proxy.metrics.requests_open.get() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (_send, _receive) = attacker.tunnel(&path_of(echo.address)).await;
    });
}

/// RFC 9000 section 4.6: streams beyond the limit are not opened; each stream that ends permits another.
#[test]
fn streams_beyond_the_limit_wait_until_others_end() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.max_requests_per_connection = 3);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let path = path_of(echo.address);
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(attacker.tunnel(&path).await);
        }
        let mut fourth = std::pin::pin!(attacker.connection.open_bi());
        let waits = std::future::poll_fn(|context| Poll::Ready(fourth.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        open.pop();
        fourth.await.unwrap();
    });
}

#[test]
fn streams_without_requests_are_limited() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.max_requests_per_connection = 100);
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        // RFC 9114 section 10.5: H3_EXCESSIVE_LOAD for streams opened and reset at once.
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let mut opened = 0;
        while let Ok((mut send, mut receive)) = attacker.connection.open_bi().await {
            let _ = send.write_all(&[1]).await;
            let _ = send.reset(0x10cu32.into());
            let _ = receive.stop(0x10cu32.into());
            opened += 1;
        }
        assert_eq!(attacker.closed().await, 0x107);
        assert!(opened > 100, "{opened}");
        bystander.is_served().await;
    });
}

/// A request waits for the client's settings for a limited time only: H3_REQUEST_REJECTED.
#[test]
fn request_without_settings_is_rejected_after_a_time() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.header_timeout = Duration::from_millis(200));
        let path = path_of(echo.address);
        let attacker = Attacker::silent(&certificate, proxy.address).await;
        assert_eq!(attacker.ask(&request(&path), false).await, Outcome::Reset(0x10b));
        // A header section that arrives byte by byte and then stops.
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (mut send, mut receive) = attacker.two_way(&[], false).await;
        for byte in &request(&path)[..20] {
            send.write_all(&[*byte]).await.unwrap();
        }
        assert_eq!(answer(&mut receive).await, Outcome::Reset(0x10b));
    });
}

#[test]
fn request_before_settings_is_served() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut attacker = Attacker::silent(&certificate, proxy.address).await;
        let mut streams = Vec::new();
        for _ in 0..50 {
            streams.push(attacker.two_way(&request(&path_of(echo.address)), false).await);
        }
        attacker.one_way(&[vec![0], frame(SETTINGS, &varints(&[0x33, 1]))].concat()).await;
        for (_, receive) in &mut streams {
            assert_eq!(answer(receive).await, Outcome::Status(200));
        }
    });
}

/// RFC 9297 section 2.1 and RFC 9298 section 4: datagrams of requests that are not open and of unregistered contexts.
#[test]
fn datagrams_of_unknown_requests_and_contexts_are_dropped_and_counted() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (_send, _receive) = attacker.tunnel(&path_of(echo.address)).await;
        const COUNT: u64 = 100_000;
        for number in 0..COUNT {
            let stray = match number % 4 {
                0 => [varint(1 + number % 900), vec![0, 1]].concat(),
                1 => vec![0, 2, 9],
                2 => [vec![0], varint(1 << 50), vec![0; 900]].concat(),
                _ => vec![0],
            };
            attacker.connection.send_datagram_wait(stray.into()).await.unwrap();
            if number % 10_000 == 0 {
                bystander.is_served().await;
            }
        }
        // The last datagram sent arrives last. On a busy machine a full socket buffer may drop it.
        let mut echo = None;
        for _ in 0..60 {
            attacker.connection.send_datagram_wait([0, 0, 1].to_vec().into()).await.unwrap();
            let come = tokio::time::timeout(Duration::from_secs(1), attacker.connection.read_datagram()).await;
            if let Ok(come) = come {
                echo = Some(come.unwrap());
                break;
            }
        }
        let echo = echo.expect("at least one of sixty payloads is echoed");
        assert_eq!(&echo[..], [0, 0, 1]);
        let unknown = proxy.metrics.datagrams_unknown_total.get();
        assert!(unknown <= COUNT && unknown > COUNT / 2, "{unknown}");
        assert_eq!(proxy.metrics.queued_bytes.get(), 0);
    });
}

/// A client that begins handshakes from unresponsive addresses takes at most half of the connection limit.
#[test]
fn half_open_handshakes_take_at_most_half_of_the_connections() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.max_connections = 20);
        let mut endpoints = Vec::new();
        for _ in 0..100 {
            // Datagrams sent to this address are forwarded to the proxy; the proxy's responses are discarded.
            let deaf = Arc::new(tokio::net::UdpSocket::bind(LOCAL).await.unwrap());
            let address = deaf.local_addr().unwrap();
            let towards = proxy.address;
            let endpoint = endpoint::bind_client(&TokioEnvironment, address).unwrap();
            let tls =
                fullpipe_sockets::tls::client_config(&fullpipe_sockets::tls::ServerVerification::Disabled).unwrap();
            let connecting = endpoint.connect_with(tls, address, "localhost").unwrap();
            let mut room = vec![0; 2000];
            let (length, _) = deaf.recv_from(&mut room).await.unwrap();
            deaf.send_to(&room[..length], towards).await.unwrap();
            endpoints.push((deaf, endpoint, connecting));
        }
        // Other clients must validate their address (RFC 9000 section 8.1.2), and are then accepted.
        for _ in 0..3 {
            let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
            bystander.is_served().await;
        }
        assert_eq!(proxy.metrics.connections_refused_total.get(), 0);
        let open = proxy.metrics.connections_open.get();
        assert!((10..20).contains(&open), "{open}");
    });
}

/// A connection's idle timeout would be minutes; a handshake has the time limit of headers.
#[test]
fn half_open_handshakes_time_out() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |settings| settings.header_timeout = Duration::from_millis(300));
        let deaf = tokio::net::UdpSocket::bind(LOCAL).await.unwrap();
        let address = deaf.local_addr().unwrap();
        let endpoint = endpoint::bind_client(&TokioEnvironment, address).unwrap();
        let tls = fullpipe_sockets::tls::client_config(&fullpipe_sockets::tls::ServerVerification::Disabled).unwrap();
        let _connecting = endpoint.connect_with(tls, address, "localhost").unwrap();
        let mut room = vec![0; 2000];
        let (length, _) = deaf.recv_from(&mut room).await.unwrap();
        deaf.send_to(&room[..length], proxy.address).await.unwrap();
        while proxy.metrics.connections_open.get() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        while proxy.metrics.connections_open.get() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(proxy.metrics.connections_total.get(), 0);
    });
}

/// Targets that accept nothing until they are unblocked.
#[derive(Debug, Default)]
struct Blocked {
    open: AtomicBool,
    waiter: Mutex<Option<Waker>>,
    taken: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct World(Arc<Blocked>);

impl Environment for World {
    fn runtime(&self) -> Arc<dyn noq::Runtime> {
        TokioEnvironment.runtime()
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        TokioEnvironment.bind(local)
    }

    fn connect(&self, _: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        Ok(Arc::clone(&self.0) as Arc<dyn ConnectedSocket>)
    }

    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Err(io::ErrorKind::NotFound.into()) })
    }
}

impl ConnectedSocket for Blocked {
    fn poll_receive(&self, _: &mut Context<'_>, _: &mut Vec<bytes::Bytes>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_send(&self, context: &mut Context<'_>, payloads: &[bytes::Bytes]) -> Poll<io::Result<SendResult>> {
        // As with tokio's sockets, the last waiter is woken.
        *self.waiter.lock().unwrap() = Some(context.waker().clone());
        if !self.open.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.taken.lock().unwrap().extend(payloads.iter().flatten());
        Poll::Ready(Ok(SendResult { consumed: payloads.len(), too_large: 0 }))
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(LOCAL.parse().unwrap())
    }
}

/// Capsules wait for the target and datagrams do not; neither blocks the other indefinitely.
#[test]
fn blocked_target_receives_waiting_capsules_later() {
    run(async {
        let certificate = certificate();
        let blocked = Arc::<Blocked>::default();
        let proxy = proxy_in(Arc::new(World(Arc::clone(&blocked))), &certificate, |_| {});
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (mut send, _receive) = attacker.tunnel("/.well-known/masque/udp/127.0.0.1/9/").await;
        let capsules = [frame(0, &[0, 1]), frame(0, &[0, 2]), frame(0, &[0, 3])].concat();
        send.write_all(&frame(DATA, &capsules)).await.unwrap();
        while blocked.waiter.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        attacker.connection.send_datagram([0, 0, 9].to_vec().into()).unwrap();
        while proxy.metrics.dropped_busy_total.get() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Time for the displaced waiter to poll again.
        tokio::time::sleep(Duration::from_millis(100)).await;
        blocked.open.store(true, Ordering::SeqCst);
        blocked.waiter.lock().unwrap().take().unwrap().wake();
        while *blocked.taken.lock().unwrap() != [1, 2, 3] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}
