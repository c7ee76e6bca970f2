//! Real packets through a NAT, on the simulated machine. The expected packets have the addresses that RFC 4787 and RFC
//! 5508 require, and checksums of another library.

use super::world::{FAST, World};
use super::{MadeUp, Ran, arrival, run_hosts, run_world, with};
use bytes::Bytes;
use etherparse::{IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Ipv4Header, UdpHeader, ip_number};
use fullpipe_scenario::description::StallPolicy;

/// 10.0.0.1 inside, 10.0.0.2 outside, the NAT 10.0.0.3 between them, with 1 ms on each side.
fn home() -> World {
    World::new("200ms")
        .hosts(&["client", "server"])
        .routers(&["home"])
        .link("client", "home", FAST)
        .link("home", "server", FAST)
        .nat(&["client"], 20_003, "")
        .datagrams("client", "server", "")
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// An IPv4 packet between hosts 10.0.0.x.
fn packet(from: u8, to: u8, hops_left: u8, protocol: etherparse::IpNumber, body: &[u8]) -> Vec<u8> {
    let mut ip =
        Ipv4Header::new(body.len() as u16, hops_left, protocol, [10, 0, 0, from], [10, 0, 0, to]).expect("short");
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], body].concat()
}

fn datagram(from: (u8, u16), to: (u8, u16), hops_left: u8, checksum: bool) -> Vec<u8> {
    let payload = [7_u8; 33];
    let ip = Ipv4Header::new(41, hops_left, ip_number::UDP, [10, 0, 0, from.0], [10, 0, 0, to.0]).expect("short");
    let mut udp = UdpHeader::with_ipv4_checksum(from.1, to.1, &ip, &payload).expect("short");
    if !checksum {
        udp.checksum = 0;
    }
    packet(from.0, to.0, hops_left, ip_number::UDP, &[&udp.to_bytes()[..], &payload].concat())
}

fn icmp(kind: Icmpv4Type, from: u8, to: u8, hops_left: u8, payload: &[u8]) -> Vec<u8> {
    let header = Icmpv4Header::with_checksum(kind, payload);
    packet(from, to, hops_left, ip_number::ICMP, &[&header.to_bytes()[..], payload].concat())
}

fn frame(ip: &[u8]) -> Bytes {
    [&[2, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0x08, 0x00], ip].concat().into()
}

/// Sends packets at these microseconds from these ports; returns the port and IP packet of each sent frame.
fn translated(sent: &[(u64, usize, Vec<u8>)]) -> (Vec<(usize, Vec<u8>)>, Ran) {
    let frames = sent.iter().map(|(at, port, ip)| (*at, arrival(*at, *port, frame(ip))));
    let machine: MadeUp = with(frames);
    let ran = run_world(&home(), machine, StallPolicy::CatchUp);
    (ran.machine.sent.iter().map(|(_, port, bytes)| (*port, bytes[14..].to_vec())).collect(), ran)
}

fn counters(ran: &Ran) -> (u64, u64) {
    let (_, counters) = ran.outcome.nat_rows().next().expect("a translator");
    (counters.mappings, counters.unsolicited)
}

/// RFC 4787 REQ-1: one external port for all destinations. RFC 768: a missing checksum stays missing. The response is
/// translated to the inside address.
#[test]
fn datagram_is_translated_in_both_directions() {
    for checksum in [true, false] {
        let (out, ran) = translated(&[
            (1_000, CLIENT, datagram((1, 5000), (2, 9), 64, checksum)),
            (10_000, SERVER, datagram((2, 9), (3, 20_000), 64, checksum)),
        ]);
        let expected = [
            (SERVER, datagram((3, 20_000), (2, 9), 63, checksum)),
            (CLIENT, datagram((2, 9), (1, 5000), 63, checksum)),
        ];
        assert_eq!(out, expected);
        assert_eq!(counters(&ran), (1, 0));
        assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
    }
}

/// RFC 4787 section 5, address and port: packets from another port of the same server are dropped, as are unsolicited
/// ones.
#[test]
fn unsolicited_packet_is_dropped_at_the_nat() {
    let (out, ran) = translated(&[
        (1_000, SERVER, datagram((2, 9), (3, 20_000), 64, true)),
        (2_000, CLIENT, datagram((1, 5000), (2, 9), 64, true)),
        (10_000, SERVER, datagram((2, 10), (3, 20_000), 64, true)),
        (11_000, SERVER, datagram((2, 9), (3, 20_001), 64, true)),
    ]);
    assert_eq!(out, [(SERVER, datagram((3, 20_000), (2, 9), 63, true))]);
    assert_eq!(counters(&ran), (1, 3));
    assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
}

/// RFC 5508 REQ-1: the identifier is translated like a port.
#[test]
fn echo_identifier_is_translated() {
    let echo = |id| IcmpEchoHeader { id, seq: 1 };
    let (out, ran) = translated(&[
        (1_000, CLIENT, icmp(Icmpv4Type::EchoRequest(echo(77)), 1, 2, 64, b"ping")),
        (10_000, SERVER, icmp(Icmpv4Type::EchoReply(echo(20_000)), 2, 3, 64, b"ping")),
        (11_000, SERVER, icmp(Icmpv4Type::EchoReply(echo(20_001)), 2, 3, 64, b"ping")),
    ]);
    let expected = [
        (SERVER, icmp(Icmpv4Type::EchoRequest(echo(20_000)), 3, 2, 63, b"ping")),
        (CLIENT, icmp(Icmpv4Type::EchoReply(echo(77)), 2, 1, 63, b"ping")),
    ];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran), (1, 1));
}

/// RFC 5508 REQ-4: the packet that an error quotes is translated as well, including its checksums. An error about a
/// packet that was never sent ends at the NAT.
#[test]
fn icmp_error_and_its_quoted_packet_are_translated() {
    use etherparse::icmpv4::DestUnreachableHeader::Port;
    let closed = || Icmpv4Type::DestinationUnreachable(Port);
    let quoting = |quoted: Vec<u8>, to| icmp(closed(), 2, to, 64, &quoted);
    let (out, ran) = translated(&[
        (1_000, CLIENT, datagram((1, 5000), (2, 9), 64, true)),
        (10_000, SERVER, quoting(datagram((3, 20_000), (2, 9), 63, true), 3)),
        (11_000, SERVER, quoting(datagram((3, 20_002), (2, 9), 63, true), 3)),
    ]);
    let expected = [
        (SERVER, datagram((3, 20_000), (2, 9), 63, true)),
        (CLIENT, icmp(closed(), 2, 1, 63, &datagram((1, 5000), (2, 9), 63, true))),
    ];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran), (1, 1));
}

/// 10.0.0.1 and 10.0.0.2 inside, 10.0.0.3 outside, all real; the NAT is 10.0.0.4.
pub(super) fn street(filter: &str) -> World {
    World::new("200ms")
        .hosts(&["a", "b", "server"])
        .routers(&["home"])
        .link("a", "home", FAST)
        .link("b", "home", FAST)
        .link("server", "home", FAST)
        .nat(&["a", "b"], 20_009, &format!(", filter = '{filter}'"))
        .datagrams("a", "server", "")
}

const A: usize = 0;
const B: usize = 1;
const OUTSIDE: usize = 2;

fn in_the_street(filter: &str, sent: &[(u64, usize, Vec<u8>)]) -> (Vec<(usize, Vec<u8>)>, Ran) {
    let frames = sent.iter().map(|(at, port, ip)| (*at, arrival(*at, *port, frame(ip))));
    let ran = run_hosts(&street(filter), 3, with(frames), StallPolicy::CatchUp);
    let verdict = ran.outcome.verdict();
    assert!(verdict.passed(), "{verdict}");
    (ran.machine.sent.iter().map(|(_, port, bytes)| (*port, bytes[14..].to_vec())).collect(), ran)
}

/// RFC 4787 REQ-9: each host sees the other by the external address and port. Both have sent to the server: a has port
/// 20000, b 20001. The first packet of a creates its mapping and is filtered by that of b. After a packet of b it
/// passes.
#[test]
fn inside_hosts_exchange_packets_by_hairpinning() {
    let (a, b, server) = ((1, 5000), (2, 6000), (3, 9));
    let (outside_a, outside_b) = ((4, 20_000), (4, 20_001));
    for checksum in [true, false] {
        let (out, ran) = in_the_street(
            "address-and-port-dependent",
            &[
                (1_000, A, datagram(a, server, 64, checksum)),
                (2_000, B, datagram(b, server, 64, checksum)),
                (10_000, A, datagram(a, outside_b, 64, checksum)),
                (20_000, B, datagram(b, outside_a, 64, checksum)),
                (30_000, A, datagram(a, outside_b, 64, checksum)),
                (40_000, A, datagram(a, (4, 20_005), 64, checksum)),
            ],
        );
        let expected = [
            (OUTSIDE, datagram(outside_a, server, 63, checksum)),
            (OUTSIDE, datagram(outside_b, server, 63, checksum)),
            (A, datagram(outside_b, a, 63, checksum)),
            (B, datagram(outside_a, b, 63, checksum)),
        ];
        assert_eq!(out, expected);
        assert_eq!(counters(&ran), (2, 2));
    }
}

fn segment(from: (u8, u16), to: (u8, u16), hops_left: u8, syn: bool, ack: bool) -> Vec<u8> {
    let mut tcp = etherparse::TcpHeader::new(from.1, to.1, 7, 1000);
    (tcp.syn, tcp.ack) = (syn, ack);
    let ip = Ipv4Header::new(20, hops_left, ip_number::TCP, [10, 0, 0, from.0], [10, 0, 0, to.0]).expect("short");
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &[]).expect("short");
    packet(from.0, to.0, hops_left, ip_number::TCP, &tcp.to_bytes())
}

/// RFC 5382 REQ-8. TCP has its own ports: b has the first one there.
#[test]
fn connections_hairpin() {
    let (a, b, server) = ((1, 5000), (2, 6000), (3, 9));
    let (out, ran) = in_the_street(
        "endpoint-independent",
        &[
            (1_000, B, segment(b, server, 64, true, false)),
            (10_000, A, segment(a, (4, 20_000), 64, true, false)),
            (20_000, B, segment(b, (4, 20_001), 64, true, true)),
            // Creates no mapping and belongs to none (RFC 6146 section 3.5.2.2).
            (30_000, A, segment((1, 5001), (4, 20_000), 64, false, true)),
        ],
    );
    let expected = [
        (OUTSIDE, segment((4, 20_000), server, 63, true, false)),
        (B, segment((4, 20_001), b, 63, true, false)),
        (A, segment((4, 20_000), a, 63, true, true)),
    ];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran).0, 2);
}

/// RFC 5508 REQ-7: an error about a hairpinned packet, and the quoted packet, get the addresses that the receiver used.
/// An echo reply reaches the host with its identifier; an echo request to the NAT's address is for the NAT.
#[test]
fn icmp_errors_and_echoes_are_hairpinned() {
    use etherparse::icmpv4::DestUnreachableHeader::Port;
    let (a, b, server) = ((1, 5000), (2, 6000), (3, 9));
    let (outside_a, outside_b) = ((4, 20_000), (4, 20_001));
    let closed = || Icmpv4Type::DestinationUnreachable(Port);
    let echo = |id| IcmpEchoHeader { id, seq: 1 };
    let (out, ran) = in_the_street(
        "endpoint-independent",
        &[
            (1_000, A, datagram(a, server, 64, true)),
            (2_000, B, datagram(b, server, 64, true)),
            (10_000, A, datagram(a, outside_b, 64, true)),
            (20_000, B, icmp(closed(), 2, 4, 64, &datagram(outside_a, b, 63, true))),
            // About a packet that was never sent.
            (21_000, B, icmp(closed(), 2, 4, 64, &datagram((4, 20_007), b, 63, true))),
            (30_000, A, icmp(Icmpv4Type::EchoRequest(echo(77)), 1, 3, 64, b"ping")),
            (40_000, B, icmp(Icmpv4Type::EchoReply(echo(20_000)), 2, 4, 64, b"ping")),
        ],
    );
    let expected = [
        (OUTSIDE, datagram(outside_a, server, 63, true)),
        (OUTSIDE, datagram(outside_b, server, 63, true)),
        (B, datagram(outside_a, b, 63, true)),
        (A, icmp(closed(), 4, 1, 63, &datagram(a, outside_b, 63, true))),
        (OUTSIDE, icmp(Icmpv4Type::EchoRequest(echo(20_000)), 4, 3, 63, b"ping")),
        (A, icmp(Icmpv4Type::EchoReply(echo(77)), 4, 1, 63, b"ping")),
    ];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran), (3, 1));
}

/// A mapping that did not exist when the packet was sent exists when the packet reaches the NAT, 1 ms later.
#[test]
fn mapping_is_looked_up_when_the_packet_reaches_the_nat() {
    let (a, server) = ((1, 5000), (3, 9));
    let (out, ran) = in_the_street(
        "address-and-port-dependent",
        &[(1_000, A, datagram(a, server, 64, true)), (1_100, OUTSIDE, datagram(server, (4, 20_000), 64, true))],
    );
    assert_eq!(out, [(OUTSIDE, datagram((4, 20_000), server, 63, true)), (A, datagram(server, a, 63, true))]);
    assert_eq!(counters(&ran), (1, 0));
}

/// A fragment of a datagram of 2000 bytes to port 9 of 10.0.0.2.
fn part(from: (u8, u16), hops_left: u8, offset: usize, length: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..1992).map(|n| n as u8).collect();
    let ends = ([10, 0, 0, from.0], [10, 0, 0, 2]);
    let ip = Ipv4Header::new(2000, hops_left, ip_number::UDP, ends.0, ends.1).expect("short");
    let udp = UdpHeader::with_ipv4_checksum(from.1, 9, &ip, &payload).expect("short");
    let body = [&udp.to_bytes()[..], &payload].concat();
    let mut ip = Ipv4Header::new(length as u16, hops_left, ip_number::UDP, ends.0, ends.1).expect("short");
    (ip.dont_fragment, ip.identification) = (false, 99);
    ip.more_fragments = offset + length < 2000;
    ip.fragment_offset = ((offset / 8) as u16).try_into().expect("in range");
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], &body[offset..offset + length]].concat()
}

/// A datagram of 2000 bytes in two fragments of a 1500-byte link, the second of which arrives first.
#[test]
fn fragments_out_of_order_are_translated() {
    let (out, ran) =
        translated(&[(1_000, CLIENT, part((1, 5000), 64, 1480, 520)), (2_000, CLIENT, part((1, 5000), 64, 0, 1480))]);
    let expected = [(SERVER, part((3, 20_000), 63, 0, 1480)), (SERVER, part((3, 20_000), 63, 1480, 520))];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran), (1, 0));
    assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
    let row = ran.outcome.flow("datagrams").expect("the flow");
    assert_eq!((row.counters.tx_packets, row.counters.rx_packets, row.counters.rx_bytes), (1, 1, 2020));
}

/// 10.0.0.1 behind the NAT 10.0.0.3 with a link MTU of 1300 bytes, the router 10.0.0.4, and 10.0.0.2 outside.
fn longer() -> World {
    World::new("200ms")
        .hosts(&["client", "server"])
        .routers(&["home", "far"])
        .link("client", "home", &format!("{FAST}, mtu = '1300B'"))
        .link("home", "far", FAST)
        .link("far", "server", FAST)
        .nat(&["client"], 20_003, "")
        .datagrams("client", "server", "")
}

/// Routers quote the packet that the sender sent, on both sides of the NAT. A packet whose hop limit expires at the NAT
/// creates no mapping. The error for a packet that exceeds the MTU of the inside link has the NAT's external address.
#[test]
fn icmp_errors_quote_the_packet_as_sent() {
    use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};
    let (client, server, outside) = ((1, 5000), (2, 9), (3, 20_000));
    let large = |hops_left| {
        let payload = [3; 1373];
        let ip = Ipv4Header::new(1381, hops_left, ip_number::UDP, [10, 0, 0, 2], [10, 0, 0, 3]).expect("short");
        let udp = UdpHeader::with_ipv4_checksum(9, 20_000, &ip, &payload).expect("short");
        packet(2, 3, hops_left, ip_number::UDP, &[&udp.to_bytes()[..], &payload].concat())
    };
    let sent = [
        (1_000, CLIENT, datagram(client, server, 1, true)),
        (10_000, CLIENT, datagram(client, server, 2, true)),
        (20_000, SERVER, datagram(server, outside, 2, true)),
        (30_000, SERVER, large(64)),
        (40_000, SERVER, datagram(server, outside, 3, true)),
    ];
    let frames = sent.iter().map(|(at, port, ip)| (*at, arrival(*at, *port, frame(ip))));
    let ran = run_world(&longer(), with(frames), StallPolicy::CatchUp);
    let out: Vec<_> = ran.machine.sent.iter().map(|(_, port, bytes)| (*port, bytes[14..].to_vec())).collect();
    let error = |from, to, hops_left, number, kind, about: &[u8]| {
        let mut bytes = icmp(kind, from, to, hops_left, &about[..about.len().min(548)]);
        // Precedence 6, the number of the reply, without Don't Fragment.
        (bytes[1], bytes[5], bytes[6]) = (0xc0, number, 0);
        let checksum = Ipv4Header::from_slice(&bytes).expect("a header").0.calc_header_checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    };
    let exceeded = || Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit);
    let needed = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1300 });
    let expected = [
        (CLIENT, error(3, 1, 64, 1, exceeded(), &datagram(client, server, 1, true))),
        (CLIENT, error(4, 1, 63, 2, exceeded(), &datagram(client, server, 1, true))),
        (SERVER, error(3, 2, 63, 3, exceeded(), &datagram(server, outside, 1, true))),
        (SERVER, error(3, 2, 63, 4, needed, &large(63))),
        (CLIENT, datagram(server, client, 1, true)),
    ];
    assert_eq!(out, expected);
    assert_eq!(counters(&ran), (1, 0));
    assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
}

/// RFC 5508 REQ-5: an error from inside about a packet that never arrived is dropped, and creates no mapping.
#[test]
fn icmp_error_about_an_unknown_packet_is_dropped() {
    use etherparse::icmpv4::DestUnreachableHeader::Port;
    let about = datagram((2, 9), (1, 5000), 63, true);
    let (out, ran) = translated(&[(1_000, CLIENT, icmp(Icmpv4Type::DestinationUnreachable(Port), 1, 2, 64, &about))]);
    assert_eq!(out, []);
    assert_eq!(counters(&ran), (0, 1));
}

/// After a rebinding at 10 ms, all fragments of a datagram have the port of a small datagram sent before them.
#[test]
fn fragments_after_a_rebinding_have_the_new_port() {
    let small = datagram((1, 5000), (2, 9), 64, true);
    let sent = [
        (1_000, small.clone()),
        (20_000, small),
        (30_000, part((1, 5000), 64, 1480, 520)),
        (30_000, part((1, 5000), 64, 0, 1480)),
    ];
    let frames = sent.into_iter().map(|(at, ip)| (at, arrival(at, CLIENT, frame(&ip))));
    let ran = run_world(&World::pair(", rebinding = { first = '10ms' }"), with(frames), StallPolicy::CatchUp);
    let out: Vec<_> = ran.machine.sent.iter().map(|(_, _, bytes)| bytes[14..].to_vec()).collect();
    let [first, rebound, ..] = out.as_slice() else { panic!("{out:?}") };
    let port = u16::from_be_bytes([rebound[20], rebound[21]]);
    assert_eq!(first[20..22], 5000_u16.to_be_bytes());
    assert_ne!(port, 5000, "drawn from 65 535");
    let outside = (1, port);
    let expected = [datagram(outside, (2, 9), 64, true), part(outside, 64, 0, 1480), part(outside, 64, 1480, 520)];
    assert_eq!(out[1..], expected);
}

/// A router behind the NAT appears outside with the NAT's address.
#[test]
fn icmp_error_of_an_inside_router_has_the_nat_address() {
    use etherparse::icmpv4::TimeExceededCode;
    let world = World::new("200ms")
        .hosts(&["client", "server"])
        .routers(&["home", "inner"])
        .link("client", "inner", FAST)
        .link("inner", "home", FAST)
        .link("home", "server", FAST)
        .nat(&["client"], 20_003, "")
        .datagrams("client", "server", "");
    let (client, server, outside) = ((1, 5000), (2, 9), (3, 20_000));
    let sent =
        [(1_000, CLIENT, datagram(client, server, 64, true)), (10_000, SERVER, datagram(server, outside, 2, true))];
    let frames = sent.iter().map(|(at, port, ip)| (*at, arrival(*at, *port, frame(ip))));
    let ran = run_world(&world, with(frames), StallPolicy::CatchUp);
    let [_, (_, SERVER, said)] = ran.machine.sent.as_slice() else { panic!("{:?}", ran.machine.sent) };
    let exceeded = Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit);
    let expected = icmp(exceeded, 3, 2, 63, &datagram(server, outside, 1, true));
    assert_eq!(said[14 + 12..], expected[12..]);
    assert_eq!(said[14 + 8], 63);
}
