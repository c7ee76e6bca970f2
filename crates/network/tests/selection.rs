//! Link models that depend on protocols, bytes and addresses: in a network, with packets of real
//! programs and of the model, IPv4 and IPv6.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Recorder, Send, World};
use bytes::Bytes;
use etherparse::{IpNumber, Ipv4Header, Ipv6Header, SlicedPacket, TcpHeader, TransportSlice, UdpHeader, ip_number};
use fullpipe_network::{
    Blackhole, Droplist, Endpoint, EndpointPair, FrameFilter, FrameSelection, HostEndpoints, Impairments, Limit,
    LinkProfile, LinkSpecification, Network, Packet, PacketContent, PacketHandle, PayloadCorruption, Rebinding,
    RebindingDirection, SideDataHandle,
};
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, LinkId, NodeId, Rate};
use fullpipe_wire::{self as wire, IpVersion};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

/// A link with 1 ms per 998 bytes and 15 ms of propagation.
fn link(from: u32, to: u32, impairments: Impairments) -> LinkSpecification {
    LinkSpecification {
        from: NodeId(from),
        to: NodeId(to),
        rate: Rate::from_bits_per_second(8_000_000),
        delay: Duration::from_millis(15),
        mtu_bytes: 1500,
        framing_bytes: 2,
        queue: Limit::Unlimited,
        discipline: None,
        loss: None,
        course: LinkProfile::Constant,
        impairments: impairments.build(3, "path").1,
    }
}

/// Time, node and bytes of an arrival.
type Received = (Instant, NodeId, Vec<u8>);

/// Hosts that keep the bytes of received packets.
#[derive(Debug, Default)]
struct Keep(Vec<Received>);

impl<O: Observer> HostEndpoints<O> for Keep {
    fn receive(&mut self, network: &mut Network<O>, node: NodeId, handle: PacketHandle) {
        let captured = network.packet_at(node, handle).expect("the flow is in the directory");
        let mut bytes = Vec::new();
        captured.write(usize::MAX, &mut bytes).expect("the packet can be written");
        self.0.push((network.now(), node, bytes));
        network.arena.release(handle);
    }

    fn on_timer(&mut self, _: &mut Network<O>, _: fullpipe_engine::EventId) {}
}

/// Two nodes, one inside and one outside.
struct Bench {
    network: Network<Recorder>,
    hosts: Keep,
}

const CLIENT: NodeId = NodeId(0);
const SERVER: NodeId = NodeId(1);

impl Bench {
    fn new(there: Impairments, back: Impairments) -> Self {
        let mut network = Network::new(Recorder::default());
        network.add_node(false);
        network.add_node(false);
        network.add_link(link(0, 1, there));
        network.add_link(link(1, 0, back));
        network.declare_conversation(CLIENT, SERVER);
        network.finalize();
        let ends = |source: NodeId, destination: NodeId| EndpointPair {
            source: Endpoint { node: source, port: 1 },
            destination: Endpoint { node: destination, port: 2 },
        };
        // Addresses are in the bytes; the directory only contains the origin of a packet.
        network.directory.add(FlowId(0), ends(CLIENT, SERVER));
        Bench { network, hosts: Keep::default() }
    }

    /// Sends bytes at a time; returns the packets that have arrived since.
    fn send(&mut self, now: Instant, from: NodeId, bytes: Vec<u8>) {
        self.network.run(&mut self.hosts, now, Instant::NEVER);
        self.network.advance(now);
        let summary = wire::PacketSummary::parse(&bytes).expect("the bytes are an IP packet");
        let content = PacketContent::RawIp {
            payload_bytes: summary.payload_bytes,
            protocol: summary.protocol,
            flags: 0,
            dont_fragment: summary.dont_fragment,
            origin: from,
            about: None,
            purpose: fullpipe_network::PacketDisposition::Deliver,
        };
        let (flow, to) = if from == CLIENT { (FlowId(0), SERVER) } else { (FlowId(1), CLIENT) };
        let payload = self.network.arena.store_payload(Some(Bytes::from(bytes)));
        let packet = Packet {
            payload,
            version: summary.version,
            codepoint: EcnCodepoint::NotEct,
            options: SideDataHandle::NONE,
            ..Packet::new(flow, to, summary.total_bytes, content)
        };
        self.network.send(from, &packet);
    }

    fn end(mut self) -> (Network<Recorder>, Vec<Received>) {
        self.network.run(&mut self.hosts, at(100_000), Instant::NEVER);
        self.network.observer.check_conservation(&self.network.remaining_packets());
        (self.network, self.hosts.0)
    }
}

const V4: [[u8; 4]; 2] = [[193, 167, 0, 100], [193, 167, 100, 100]];

fn v6(last: u8, subnet: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&[0xfd, 0]);
    address[7] = subnet;
    address[15] = last;
    address
}

fn ipv4(protocol: IpNumber, transport: &[u8]) -> Vec<u8> {
    let mut header = Ipv4Header::new(transport.len() as u16, 64, protocol, V4[0], V4[1]).expect("the packet is short");
    header.header_checksum = header.calc_header_checksum();
    [&header.to_bytes(), transport].concat()
}

fn udp(version: IpVersion, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    match version {
        IpVersion::V4 => {
            let header = UdpHeader::with_ipv4_checksum(
                ports.0,
                ports.1,
                &Ipv4Header::new(0, 64, ip_number::UDP, V4[0], V4[1]).expect("the packet is short"),
                payload,
            );
            ipv4(ip_number::UDP, &[&header.expect("the packet is short").to_bytes(), payload].concat())
        }
        IpVersion::V6 => {
            let ip = Ipv6Header {
                payload_length: 8 + payload.len() as u16,
                next_header: ip_number::UDP,
                hop_limit: 64,
                source: v6(100, 0),
                destination: v6(100, 1),
                ..Ipv6Header::default()
            };
            let header = UdpHeader::with_ipv6_checksum(ports.0, ports.1, &ip, payload).expect("the packet is short");
            [&ip.to_bytes()[..], &header.to_bytes(), payload].concat()
        }
    }
}

fn tcp() -> Vec<u8> {
    ipv4(ip_number::TCP, &[&TcpHeader::new(1, 2, 3, 4).to_bytes()[..], b"payload"].concat())
}

/// Returns the payload of a datagram after an independent parser has verified its checksum.
fn payload(bytes: &[u8]) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(bytes).expect("the bytes are an IP packet");
    let Some(TransportSlice::Udp(datagram)) = sliced.transport else { panic!("no datagram") };
    let header = datagram.to_header();
    let right = match sliced.net.expect("the packet has an IP header") {
        etherparse::NetSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), datagram.payload()),
        etherparse::NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), datagram.payload()),
        other => panic!("{other:?}"),
    };
    assert_eq!(right, Ok(header.checksum));
    datagram.payload().to_vec()
}

fn sockets(bytes: &[u8]) -> (std::net::SocketAddr, std::net::SocketAddr) {
    let summary = wire::PacketSummary::parse(bytes).expect("the bytes are an IP packet");
    (summary.source, summary.destination)
}

#[test]
fn a_droplist_of_udp_counts_only_datagrams_of_either_ip_version() {
    let droplist = Droplist { data_only: false, frames: FrameFilter::Udp, numbers: vec![2, 4] };
    let mut bench = Bench::new(Impairments::default().with(droplist), Impairments::default());
    let script = [tcp(), udp(IpVersion::V4, (1, 2), b"1"), tcp(), udp(IpVersion::V6, (1, 2), b"2"), tcp()];
    for (n, bytes) in script.into_iter().enumerate() {
        bench.send(at(n as u64 * 10), CLIENT, bytes);
    }
    bench.send(at(60), CLIENT, udp(IpVersion::V4, (1, 2), b"3"));
    bench.send(at(70), CLIENT, udp(IpVersion::V4, (1, 2), b"4"));
    bench.send(at(80), CLIENT, udp(IpVersion::V4, (1, 2), b""));
    let (network, received) = bench.end();
    let datagrams: Vec<Vec<u8>> =
        received.iter().filter(|(_, _, bytes)| bytes[9] == 17).map(|(_, _, bytes)| payload(bytes)).collect();
    assert_eq!(datagrams, [b"1".to_vec(), b"3".to_vec(), b"".to_vec()]);
    assert_eq!((received.len(), network.link_counters(LinkId(0)).losses), (6, 2));
}

/// Datagrams of the model, one every 10 ms, of 1 ms each: number n (from 0) departs at 10 n + 1 and would arrive at
/// 10 n + 16 ms. The hole is [40, 60) and [100, 120). With `of_arrivals`, it removes n = 3 (46), 4 (56), 9
/// (106), 10 (116); otherwise n = 4 (41), 5 (51), 10 (101), 11 (111).
#[test]
fn black_holes_repeat_and_remove_arrivals_or_departures() {
    for (of_arrivals, expected) in [(true, [3, 4, 9, 10]), (false, [4, 5, 10, 11])] {
        let ms = Duration::from_millis;
        let hole = Blackhole { from: ms(40), until: ms(60), period: ms(60), times: 2, of_arrivals };
        let mut network = Network::new(Recorder::default());
        network.add_node(false);
        network.add_node(false);
        network.add_link(link(0, 1, Impairments::default().with(hole)));
        let script: Vec<Send> = (0..20)
            .map(|n| Send { at: at(10 * n), flow: FlowId(0), from: CLIENT, to: SERVER, ip_bytes: 998, tcp: n % 2 == 0 })
            .collect();
        let mut world = World::new(script);
        world.declare(&mut network);
        network.finalize();
        network.run(&mut world, at(1000), at(1000));
        let arrived: Vec<u64> = world.received_of(0).iter().map(|at| (at / MS - 16) / 10).collect();
        let lost: Vec<u64> = (0..20).filter(|n| !arrived.contains(n)).collect();
        assert_eq!(lost, expected, "of arrivals: {of_arrivals}");
    }
}

fn corruption(delivered: bool) -> Impairments {
    let selection = FrameSelection { probability: 1.0, largest_burst: None, frames: FrameFilter::Udp };
    let corruption = PayloadCorruption { selection, window_bytes: 51, spare_version_negotiation: true, delivered };
    Impairments::default().with(corruption)
}

#[test]
fn a_corrupted_datagram_differs_in_one_byte_of_the_window_and_has_a_valid_checksum() {
    let mut bench = Bench::new(corruption(true), Impairments::default());
    // Odd and even lengths, so that the last byte is half a word or not.
    let payloads: Vec<Vec<u8>> = (0..400u32).map(|n| vec![0x40; 1 + n as usize % 80]).collect();
    for (n, payload) in payloads.iter().enumerate() {
        let version = if n % 2 == 0 { IpVersion::V4 } else { IpVersion::V6 };
        bench.send(at(2 * n as u64), CLIENT, udp(version, (1, 2), payload));
    }
    bench.send(at(2000), CLIENT, tcp());
    bench.send(at(2001), CLIENT, udp(IpVersion::V4, (1, 2), &[0x80, 0, 0, 0, 0, 8, 1]));
    let (network, received) = bench.end();
    assert_eq!(received.len(), 402);
    for ((_, _, bytes), sent) in received.iter().zip(&payloads) {
        let got = payload(bytes);
        let changed: Vec<usize> = (0..sent.len()).filter(|place| got[*place] != sent[*place]).collect();
        assert_eq!((got.len(), changed.len()), (sent.len(), 1));
        assert!(changed[0] <= 50, "{changed:?}");
    }
    assert_eq!(payload(&received[401].2), [0x80, 0, 0, 0, 0, 8, 1], "version negotiation must not be changed");
    assert_eq!(network.link_counters(LinkId(0)).corrupted, 400);
}

#[test]
fn a_missing_udp_checksum_stays_missing() {
    let mut bytes = udp(IpVersion::V4, (1, 2), b"abc");
    bytes[26..28].copy_from_slice(&[0, 0]);
    let mut bench = Bench::new(corruption(true), Impairments::default());
    bench.send(at(0), CLIENT, bytes);
    let (_, received) = bench.end();
    assert_eq!(received[0].2[26..28], [0, 0]);
    assert_ne!(&received[0].2[28..], b"abc");
}

#[test]
fn a_corrupted_datagram_can_be_dropped_at_the_link() {
    let mut bench = Bench::new(corruption(false), Impairments::default());
    bench.send(at(0), CLIENT, udp(IpVersion::V4, (1, 2), b"abc"));
    bench.send(at(1), CLIENT, tcp());
    let (network, received) = bench.end();
    assert_eq!(received.len(), 1);
    assert_eq!(network.observer.drops(), [(DropReason::Corruption, 1)].into());
}

fn rebinding(side: RebindingDirection, address: bool) -> Impairments {
    let first = Duration::from_secs(1);
    let rebinding = Rebinding { number: 0, side, first, every: Duration::ZERO, address };
    Impairments { rebinding: Some(rebinding), ..Impairments::default() }
}

/// Returns the reply to a packet, with its addresses swapped.
fn answer(bytes: &[u8], text: &[u8]) -> Vec<u8> {
    let (source, destination) = sockets(bytes);
    let mut out = udp(if source.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }, (1, 2), text);
    wire::AddressTranslation { source: Some(destination), destination: Some(source) }
        .apply(&mut out)
        .expect("the reply is a datagram");
    out
}

#[test]
fn a_rebinding_changes_the_source_outside_and_restores_the_destination_of_replies() {
    for (version, address) in
        [(IpVersion::V4, false), (IpVersion::V4, true), (IpVersion::V6, false), (IpVersion::V6, true)]
    {
        let mut bench = Bench::new(
            rebinding(RebindingDirection::Outbound, address),
            rebinding(RebindingDirection::Inbound, address),
        );
        let hello = udp(version, (4000, 443), b"hello");
        bench.send(at(0), CLIENT, hello.clone());
        bench.send(at(500), SERVER, answer(&hello, b"early"));
        // It arrives outside after the rebinding.
        bench.send(at(990), CLIENT, hello.clone());
        // Datagrams that the server still sends to the old mapping are dropped.
        bench.send(at(995), SERVER, answer(&hello, b"late"));
        bench.network.run(&mut bench.hosts, at(1100), Instant::NEVER);
        let seen = |number: usize, bench: &Bench| bench.hosts.0[number].2.clone();
        assert_eq!(seen(0, &bench), hello, "at first the source is unchanged");
        assert_eq!((bench.hosts.0[1].1, payload(&seen(1, &bench))), (CLIENT, b"early".to_vec()));
        assert_eq!(bench.hosts.0.len(), 3);
        let rebound = seen(2, &bench);
        assert_eq!(payload(&rebound), b"hello");
        let ((old, _), (new, to)) = (sockets(&hello), sockets(&rebound));
        assert_eq!(to, sockets(&hello).1);
        assert_ne!(new.port(), old.port());
        assert_eq!(new.ip() != old.ip(), address);
        assert_eq!(bench.network.host_behind_rebinding(new.ip()), Some(CLIENT));
        bench.send(at(1100), SERVER, answer(&rebound, b"new"));
        let (network, received) = bench.end();
        let (_, node, bytes) = &received[3];
        assert_eq!((*node, payload(bytes)), (CLIENT, b"new".to_vec()));
        assert_eq!(sockets(bytes), (sockets(&hello).1, old), "the reply has the client's own address and port");
        assert_eq!(network.observer.drops(), [(DropReason::Nat, 1)].into());
    }
}

#[test]
fn a_rebinding_does_not_affect_tcp() {
    let mut bench =
        Bench::new(rebinding(RebindingDirection::Outbound, true), rebinding(RebindingDirection::Inbound, true));
    bench.send(at(2000), CLIENT, tcp());
    let (_, received) = bench.end();
    assert_eq!(received[0].2, tcp());
}
