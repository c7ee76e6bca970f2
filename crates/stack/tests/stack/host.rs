//! Asynchronous programs with the stack's asynchronous interface, on two hosts with a path between them.

use crate::path::control;
use bytes::Bytes;
use fullpipe_masque::environment::Environment;
use fullpipe_stack::{
    AddressedDatagram, Datagram, Host, HostSettings, RandomStreams, Settings, VirtualEnvironment, VirtualRuntime,
};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use noq::Runtime;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

const DELAY: Duration = Duration::from_millis(5);

fn address(host: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, host])
}

fn socket(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(address(host), port)
}

fn host(number: u8) -> Host {
    Host::new(HostSettings { addresses: vec![address(number)], receive_buffer_bytes: 100_000 })
}

/// Carries datagrams between hosts 1 and 2 until there are no more events. Returns the end time and a digest of all
/// datagrams.
fn run(hosts: &mut [Host; 2], from: Instant) -> (Instant, String) {
    let mut arrivals: BTreeMap<(Instant, u64), AddressedDatagram> = BTreeMap::new();
    let (mut now, mut number, mut hash) = (from, 0, Sha256::new());
    for host in hosts.iter_mut() {
        host.handle_timeout(now);
    }
    loop {
        for host in hosts.iter_mut() {
            while let Some(left) = host.poll_transmit() {
                number += 1;
                hash.update(now.as_nanos().to_le_bytes());
                hash.update(format!("{} {}", left.source, left.destination));
                hash.update(&left.datagram.payload);
                // One microsecond each, so that the order is visible.
                arrivals.insert((now + DELAY + Duration::from_micros(number), number), left);
            }
        }
        let arrival = arrivals.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        let timers = [hosts[0].next_timeout(), hosts[1].next_timeout()];
        let next = arrival.min(timers[0]).min(timers[1]);
        if next.is_never() {
            return (now, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        assert!(next >= now);
        now = next;
        if arrival == next {
            let (_, arrived) = arrivals.pop_first().expect("an arrival is pending");
            let to = usize::from(arrived.destination.ip() == address(2));
            hosts[to].handle_datagram(now, arrived);
        } else {
            hosts[usize::from(timers[0] != next)].handle_timeout(now);
        }
    }
}

async fn sleep(runtime: &VirtualRuntime, duration: Duration) {
    let mut timer = runtime.new_timer(runtime.now() + std::time::Duration::from_nanos(duration.as_nanos()));
    poll_fn(|context| timer.as_mut().poll(context)).await;
}

type Log = Arc<Mutex<Vec<(u64, String)>>>;

fn note(log: &Log, runtime: &VirtualRuntime, text: String) {
    log.lock().unwrap().push((runtime.instant().as_nanos(), text));
}

/// Ten requests in sequence on one connection, each with a response of 100 kB.
fn exchange(seed: u64) -> (Instant, String, Log, [usize; 2]) {
    let mut hosts = [host(1), host(2)];
    let log = Log::default();
    let endpoint = |host: &Host, number: u8, name: &str, serves: bool| {
        let entropy = RandomStreams::new(seed, name);
        let runtime = host.runtime();
        let settings = Settings::default().endpoint_settings(control("cubic"));
        runtime.endpoint(&settings, &entropy, socket(number, 443), serves).unwrap()
    };
    let (client, server) = (endpoint(&hosts[0], 1, "client", false), endpoint(&hosts[1], 2, "server", true));
    hosts[1].spawn(async move {
        let connection = server.accept().await.expect("a connection arrives").await.expect("the handshake succeeds");
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            let request = receive.read_to_end(100).await.expect("a request arrives");
            send.write_all(&vec![request[0]; 100_000]).await.expect("the stream accepts data");
            send.finish().expect("the stream is finished once");
        }
        server.wait_idle().await;
    });
    let (runtime, its_log) = (hosts[0].runtime(), Arc::clone(&log));
    hosts[0].spawn(async move {
        let connection = client
            .connect(socket(2, 443), "server")
            .expect("the address is valid")
            .await
            .expect("the handshake succeeds");
        note(&its_log, &runtime, "connected".into());
        for number in 0..10u8 {
            let (mut send, mut receive) = connection.open_bi().await.expect("the stream can be opened");
            send.write_all(&[number]).await.expect("the stream accepts data");
            send.finish().expect("the stream is finished once");
            let answer = receive.read_to_end(200_000).await.expect("a response arrives");
            assert!(answer.len() == 100_000 && answer.iter().all(|byte| *byte == number));
            note(&its_log, &runtime, format!("answer {number}"));
        }
        connection.close(0u32.into(), b"");
        client.wait_idle().await;
        note(&its_log, &runtime, "idle".into());
    });
    let (end, digest) = run(&mut hosts, Instant::ZERO);
    let tasks = [hosts[0].tasks(), hosts[1].tasks()];
    (end, digest, log, tasks)
}

#[test]
fn requests_are_answered_and_no_task_remains() {
    let (_, digest, log, tasks) = exchange(1);
    assert_eq!(tasks, [0, 0]);
    let log = log.lock().unwrap().clone();
    assert_eq!(log.len(), 12);
    // Two round trips of 10 ms for the handshake (the server's flight waits for the client's first response, see
    // `transfer`), and less than a millisecond for the serialization of the datagrams.
    assert!((20_000_000..21_000_000).contains(&log[0].0), "{:?}", log[0]);
    // 100 kB begin with ten packets of 1200 bytes or more. The first response takes at most four round trips (12, 24,
    // 48, 96 kB), a later one a single round trip, as the window has grown.
    assert!(log[1].0 < 20_000_000 + 60_000_000, "{:?}", log[1]);
    let last = log[10].0 - log[9].0;
    assert!((10_000_000..25_000_000).contains(&last), "{last}");
    assert_eq!(digest, exchange(1).1, "a second run gives the same bytes");
    assert_ne!(digest, exchange(2).1);
}

#[test]
fn programs_sleep_to_the_nanosecond() {
    let mut hosts = [host(1), host(2)];
    let log = Log::default();
    let (runtime, its_log) = (hosts[0].runtime(), Arc::clone(&log));
    hosts[0].spawn(async move {
        sleep(&runtime, Duration::from_nanos(1_234_567_891)).await;
        note(&its_log, &runtime, "first".into());
        sleep(&runtime, Duration::from_nanos(1)).await;
        note(&its_log, &runtime, "second".into());
    });
    let (end, _) = run(&mut hosts, Instant::from_nanos(9));
    assert_eq!(end.as_nanos(), 1_234_567_901);
    let log = log.lock().unwrap();
    assert_eq!(*log, [(1_234_567_900, "first".to_owned()), (1_234_567_901, "second".to_owned())]);
}

fn datagram(from: SocketAddr, to: SocketAddr, bytes: usize) -> AddressedDatagram {
    let datagram = Datagram { payload: Bytes::from(vec![7; bytes]), codepoint: EcnCodepoint::Ect0 };
    AddressedDatagram { source: from, destination: to, datagram }
}

#[test]
fn receive_buffer_limit_counts_bytes() {
    let mut host = host(1);
    let runtime = host.runtime();
    let mut bound = runtime.bind(socket(1, 443)).expect("the port is free");
    for number in 0..100 {
        host.handle_datagram(Instant::from_nanos(number), datagram(socket(2, 9), socket(1, 443), 1_500));
    }
    // 100 000 bytes hold 66 datagrams of 1500 bytes.
    assert_eq!(host.statistics().overflowed_datagrams, 34);
    let received = Arc::new(Mutex::new(Vec::new()));
    let its = Arc::clone(&received);
    host.spawn(async move {
        let mut buffer = [0; 2_000];
        for _ in 0..66 {
            let mut meta = [noq::udp::RecvMeta::default()];
            let count =
                poll_fn(|context| bound.poll_recv(context, &mut [std::io::IoSliceMut::new(&mut buffer)], &mut meta));
            assert_eq!(count.await.expect("the socket can receive"), 1);
            its.lock().unwrap().push((meta[0].addr, meta[0].len, meta[0].ecn));
            assert_eq!(meta[0].dst_ip, Some(address(1)));
        }
    });
    host.handle_timeout(Instant::from_nanos(200));
    let received = received.lock().unwrap();
    assert_eq!((received.len(), host.tasks()), (66, 0));
    assert_eq!(received[65], (socket(2, 9), 1_500, Some(noq::udp::EcnCodepoint::Ect0)));
    // The socket was closed with its program.
    host.handle_datagram(Instant::from_nanos(300), datagram(socket(2, 9), socket(1, 443), 1));
    assert_eq!(host.statistics().unexpected_datagrams, 1);
}

#[test]
fn receive_buffer_accepts_datagrams_up_to_its_exact_size() {
    let mut host = host(1);
    let mut bound = host.runtime().bind(socket(1, 443)).expect("the port is free");
    for number in 0..101 {
        host.handle_datagram(Instant::from_nanos(number), datagram(socket(2, 9), socket(1, 443), 1_000));
    }
    // 100 000 bytes hold 100 datagrams of 1000 bytes.
    assert_eq!(host.statistics().overflowed_datagrams, 1);
    // A receiver without buffers takes no datagram.
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(bound.poll_recv(&mut context, &mut [], &mut []), std::task::Poll::Ready(Ok(0))));
}

/// A host with an address of each IP version, IPv6 first.
fn dual() -> (Host, [IpAddr; 2]) {
    let addresses = [IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), address(1)];
    (Host::new(HostSettings { addresses: addresses.to_vec(), receive_buffer_bytes: 100_000 }), addresses)
}

#[test]
fn datagrams_are_sent_one_by_one_from_an_address_of_the_host() {
    let (mut host, [_, own]) = dual();
    let bound = host.runtime().bind(SocketAddr::from(([0, 0, 0, 0], 443))).expect("the port is free");
    let mut sender = bound.create_sender();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for wanted in [None, Some(own), Some(address(7))] {
        let transmit = noq::udp::Transmit {
            destination: socket(2, 9),
            ecn: Some(noq::udp::EcnCodepoint::Ect0),
            contents: b"abcdefg",
            segment_size: Some(3),
            src_ip: wanted,
        };
        assert!(sender.as_mut().poll_send(&transmit, &mut context).is_ready());
        let left: Vec<AddressedDatagram> = std::iter::from_fn(|| host.poll_transmit()).collect();
        let pieces: Vec<&[u8]> = left.iter().map(|left| &left.datagram.payload[..]).collect();
        assert_eq!(pieces, [&b"abc"[..], b"def", b"g"]);
        let rest = |left: &AddressedDatagram| (left.source, left.destination, left.datagram.codepoint);
        assert!(left.iter().all(|left| rest(left) == (SocketAddr::new(own, 443), socket(2, 9), EcnCodepoint::Ect0)));
    }
}

#[test]
fn connected_socket_receives_only_from_its_peer() {
    let mut host = host(1);
    let environment = VirtualEnvironment::new(host.runtime(), BTreeMap::new());
    let connected = environment.connect(socket(2, 9)).expect("a port is available");
    let local = connected.local_address().expect("the socket is bound");
    assert_eq!(local, socket(1, 49_152));
    for (from, port) in [(2, 8), (3, 9), (2, 9)] {
        host.handle_datagram(Instant::ZERO, datagram(socket(from, port), local, 10));
    }
    assert_eq!(host.statistics().unexpected_datagrams, 2);
    let (mut received, mut context) = (Vec::new(), std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(connected.poll_receive(&mut context, &mut received).is_ready());
    assert_eq!(received.len(), 1);
    assert!(connected.poll_receive(&mut context, &mut received).is_pending());
}

#[test]
fn dynamic_ports_are_assigned_in_turn_and_reused() {
    let (host, _) = dual();
    let runtime = host.runtime();
    let port = |runtime: &VirtualRuntime| {
        let bound = runtime.bind(SocketAddr::from(([0, 0, 0, 0], 0))).expect("a port is available");
        bound.local_addr().expect("the socket is bound").port()
    };
    let _taken = runtime.bind(socket(1, 49_153)).expect("the port is free");
    assert_eq!([port(&runtime), port(&runtime)], [49_152, 49_154]);
    // 49 155 to 65 535, and then from the beginning.
    (49_155..=65_535).for_each(|next| assert_eq!(port(&runtime), next));
    assert_eq!(port(&runtime), 49_152);
    // IPv4 and IPv6 have separate ports.
    let _fourth = runtime.bind(SocketAddr::from(([0, 0, 0, 0], 443))).expect("the port is free");
    assert!(runtime.bind(SocketAddr::from(([0; 8], 443))).is_ok());
}

#[test]
fn programs_end_with_their_host() {
    let mut host = host(1);
    let (runtime, held) = (host.runtime(), Arc::new(()));
    let its = Arc::clone(&held);
    host.spawn(async move {
        sleep(&runtime, Duration::from_secs(9)).await;
        drop(its);
    });
    host.handle_timeout(Instant::ZERO);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(host);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn port_in_use_cannot_be_bound_again() {
    let host = host(1);
    let runtime = host.runtime();
    let kind = |local| runtime.bind(local).err().map(|error| error.kind());
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 443));
    let first = runtime.bind(socket(1, 443)).expect("the port is free");
    assert_eq!(kind(socket(1, 443)), Some(std::io::ErrorKind::AddrInUse));
    assert_eq!(kind(everywhere), Some(std::io::ErrorKind::AddrInUse));
    assert_eq!(kind(socket(2, 443)), Some(std::io::ErrorKind::AddrNotAvailable));
    let sender = first.create_sender();
    drop(first);
    // A remaining sender keeps the port in use.
    assert_eq!(kind(everywhere), Some(std::io::ErrorKind::AddrInUse));
    drop(sender);
    assert_eq!(kind(everywhere), None);
    let ports: Vec<u16> = (0..3)
        .map(|_| {
            let bound = runtime.bind(socket(1, 0)).expect("a port is available");
            bound.local_addr().expect("the socket is bound").port()
        })
        .collect();
    assert_eq!(ports, [49_152, 49_153, 49_154]);
    let real = std::net::UdpSocket::bind("127.0.0.1:0").expect("this machine can bind a socket");
    assert!(runtime.wrap_udp_socket(real).is_err());
}
