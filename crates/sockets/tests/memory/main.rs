//! Memory of proxy and client under attack, measured by the allocator of this process. Attackers and targets are in the
//! same process, so the bounds include all of them. The tests run one at a time.

#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../attack/attacker.rs"]
mod attacker;
#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../loopback/house.rs"]
mod house;
#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../attack/wire.rs"]
mod wire;

use attacker::*;
use fullpipe_masque::client::Client;
use fullpipe_masque::configuration::Tunnel;
use fullpipe_masque::queue::QueueLimit;
use house::*;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UdpSocket;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Currently allocated bytes.
fn held() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated as u64).wrapping_sub(stats.bytes_deallocated as u64)
}

fn alone<T>(task: impl Future<Output = T>) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    run(task)
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// A target, and the address of the proxy's socket that has contacted it.
struct Target {
    socket: UdpSocket,
}

impl Target {
    async fn new() -> Target {
        Target { socket: UdpSocket::bind(LOCAL).await.unwrap() }
    }

    /// Waits until a socket contacts it; from then on it floods that socket.
    async fn is_found(&self) {
        let (_, proxy) = self.socket.recv_from(&mut [0; 100]).await.unwrap();
        self.socket.connect(proxy).await.unwrap();
    }

    /// Sends payloads of this size until the proxy has received `count`. Returns the peak of allocated bytes during
    /// that time.
    async fn flood(&self, proxy: &RunningProxy, size: usize, count: u64) -> u64 {
        let payload = vec![0; size];
        let (received, mut most) = (&proxy.metrics.payloads_from_target_total, 0);
        let goal = received.get() + count;
        while received.get() < goal {
            for _ in 0..32 {
                let _ = self.socket.send(&payload).await;
            }
            most = most.max(held());
            tokio::task::yield_now().await;
        }
        most.max(held())
    }
}

/// A tunnel in stream mode whose client reads nothing, so that it receives only up to its flow-control window.
async fn unread(attacker: &Attacker, target: &Target) -> (noq::SendStream, noq::RecvStream) {
    let (mut send, receive) = attacker.tunnel(&path_of(target.socket.local_addr().unwrap())).await;
    send.write_all(&wire::frame(wire::DATA, &wire::frame(0, &[0, 1]))).await.unwrap();
    target.is_found().await;
    (send, receive)
}

/// Small limits, so that any excess would be visible.
fn small(tunnel: &mut Tunnel) {
    tunnel.queue_limit = QueueLimit::Bytes(256 * KIB);
    tunnel.stream_buffer = 256 * KIB;
}

/// Flow-control window of the attackers per stream.
const WINDOW: u64 = 64 * KIB;

#[test]
fn client_that_never_reads_uses_bounded_memory() {
    alone(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| small(&mut settings.tunnel));
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let attacker = Attacker::narrow(&certificate, proxy.address, WINDOW as u32).await;
        let target = Target::new().await;
        let (_send, receive) = unread(&attacker, &target).await;
        bystander.is_served().await;
        let before = held();
        // Queue and send buffer of the proxy, and the window of the client. The same again covers reserved capacity of
        // vectors and packet overhead. The rest is for the receive buffers of the endpoints.
        let bound = 2 * (256 * KIB + 256 * KIB + WINDOW) + MIB;
        let most = target.flood(&proxy, 1200, 20_000).await;
        assert!(most - before < bound, "{} of 24 MB are allocated", most - before);
        bystander.is_served().await;
        println!("never read: {} bytes of 24 MB held", most - before);
        // Empty payloads count as well. The buffers are full, so further payloads find a queue of at most 4096 entries.
        let before = held();
        let most = target.flood(&proxy, 0, 100_000).await;
        assert!(most.saturating_sub(before) < MIB, "{} bytes for empty payloads", most.saturating_sub(before));
        bystander.is_served().await;
        assert!(proxy.metrics.queued_bytes.get() <= 256 * KIB);
        assert!(proxy.metrics.dropped_queue_total.get() > 100_000);
        println!("never read: {} bytes more for 100 000 empty payloads", most.saturating_sub(before));
        drop(receive);
        while proxy.metrics.queued_bytes.get() > 0 {
            a_moment().await;
        }
    });
}

#[test]
fn total_limit_holds_with_many_clients_that_never_read() {
    alone(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| {
            settings.tunnel.queue_limit = QueueLimit::Bytes(MIB);
            settings.tunnel.stream_buffer = 64 * KIB;
            settings.tunnel.queue_limit_total = 8 * MIB;
        });
        let mut attackers = Vec::new();
        for _ in 0..24 {
            let attacker = Attacker::narrow(&certificate, proxy.address, WINDOW as u32).await;
            let target = Target::new().await;
            let stream = unread(&attacker, &target).await;
            attackers.push((attacker, target, stream));
        }
        // All targets send in turn until the queues are full.
        while proxy.metrics.dropped_memory_total.get() < 20_000 {
            for (_, target, _) in &attackers {
                target.flood(&proxy, 1200, 200).await;
            }
        }
        // The limit, plus the reserve of each request.
        let queued = proxy.metrics.queued_bytes.get();
        assert!(queued > 8 * MIB - 1200 && queued <= 8 * MIB + 24 * 16 * KIB, "{queued}");
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        for _ in 0..100 {
            bystander.is_served().await;
        }
        println!("24 unread tunnels: {queued} of {} bytes queued", 8 * MIB);
    });
}

#[test]
fn flooding_target_uses_bounded_memory_in_datagram_mode() {
    alone(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| small(&mut settings.tunnel));
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let client: Client = client(&certificate, &proxy, |settings| settings.receive_queue = 256 * KIB).await;
        for size in [1200, 0, 1] {
            let target = Target::new().await;
            let tunnel = client.open(&house::target(target.socket.local_addr().unwrap())).await.unwrap();
            tunnel.send(&mut vec![bytes::Bytes::from_static(b"x")]);
            target.is_found().await;
            let before = held();
            // The client does not read, so the tunnel's queue at the client fills soon. The proxy's queue fills when
            // the connection is slower than the target.
            let most = target.flood(&proxy, size, 20_000).await;
            // The proxy's queue and send buffer, and the client's receive buffer and queue. The same again covers
            // packet overhead. The rest is for packets in flight, which have no such limit: while the client's task
            // waits for a processor, its endpoint continues to receive.
            let bound = 2 * (256 + 128 + 256 + 256) * KIB + 7 * MIB / 2;
            println!("datagram mode, payloads of {size}: {} bytes held", most.saturating_sub(before));
            assert!(most.saturating_sub(before) < bound, "{} with payloads of {size}", most - before);
            bystander.is_served().await;
        }
    });
}

#[test]
fn requests_leak_no_memory() {
    alone(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let mut marks = Vec::new();
        for number in 0..6_000 {
            drop(attacker.tunnel(&path).await);
            // Rejected requests as well.
            assert_eq!(attacker.ask(&wire::request("/"), true).await, Outcome::Status(404));
            if number % 1000 == 999 {
                proxy.log.forget();
                while proxy.metrics.requests_open.get() > 0 {
                    a_moment().await;
                }
                marks.push(held());
            }
        }
        println!("after each 2000 requests: {marks:?}");
        // A leak would grow with each two thousand requests, and even one byte per request would exceed the bound.
        // Buffers that grow once under load do not. A table of leaked entries grows only occasionally, but a pointer
        // for each of ten thousand requests exceeds the buffers.
        let growth = marks.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min();
        assert!(growth < Some(2_000), "{growth:?} bytes: {marks:?}");
        assert!(marks[5].saturating_sub(marks[0]) < 64 * KIB, "{marks:?}");
    });
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn connections_leak_no_memory() {
    alone(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let mut marks = Vec::new();
        let first = Attacker::new(&certificate, proxy.address).await;
        for number in 0..1_000 {
            let attacker = first.another(&certificate, proxy.address).await;
            let (_send, mut receive) = attacker.tunnel(&path).await;
            match number % 4 {
                // Left open; closed; ended by a protocol violation; ended within a capsule.
                0 => {}
                1 => attacker.connection.close(0x100u32.into(), b""),
                2 => attacker.connection.send_datagram(bytes::Bytes::new()).unwrap(),
                _ => {
                    let (mut send, mut receive) = attacker.tunnel(&path).await;
                    send.write_all(&wire::frame(wire::DATA, &[0, 9])).await.unwrap();
                    send.finish().unwrap();
                    assert_eq!(next_frame(&mut receive).await, Err(Outcome::Reset(0x10e)));
                }
            }
            if number % 4 == 2 {
                assert_eq!(next_frame(&mut receive).await, Err(Outcome::Closed(0x33)));
            }
            drop(attacker);
            if number % 250 == 249 {
                while proxy.metrics.connections_open.get() > 1 || proxy.metrics.requests_open.get() > 0 {
                    a_moment().await;
                }
                // QUIC keeps a closed connection for three probe timeouts (RFC 9000 section 10.2).
                tokio::time::sleep(Duration::from_secs(1)).await;
                proxy.log.forget();
                marks.push((held(), descriptors()));
            }
        }
        println!("after each 250 connections: {marks:?}");
        // A leak would be kilobytes for each of 750 connections. The two endpoints receive into blocks of 64 KiB. Each
        // may have one more or one fewer at a mark, in addition to the block that is still referenced.
        let growth = marks[3].0.saturating_sub(marks[0].0);
        assert!(growth < 4 * 64 * KIB, "{growth} bytes in 750 connections: {marks:?}");
        assert!(marks[3].1 <= marks[0].1, "{marks:?}");
    });
}
