//! Replies of routers and model hosts to real hosts, byte for byte. The expected packets follow the RFCs, with
//! checksums of another library.

use super::hostile::world;
use super::{Ran, arrival, run_world, with};
use bytes::Bytes;
use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};
use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpNumber, Ipv4Header, Ipv6Header, TcpHeader,
    UdpHeader, ip_number,
};
use fullpipe_scenario::description::StallPolicy;

const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Numbers of the model host and the routers.
const MODEL: u8 = 3;
const NEAR: u8 = 4;
const FAR: u8 = 5;

/// The relevant fields of an IPv4 header; hosts are 10.0.0.x.
#[derive(Clone, Copy)]
struct V4 {
    from: u8,
    to: u8,
    hops_left: u8,
    class: u8,
    identification: u16,
    dont_fragment: bool,
    /// Offset in bytes, and whether more fragments follow.
    fragment: (u16, bool),
}

const PLAIN: V4 =
    V4 { from: 1, to: 2, hops_left: 64, class: 0, identification: 0, dont_fragment: true, fragment: (0, false) };

fn v4(fields: V4, protocol: IpNumber, body: &[u8]) -> Vec<u8> {
    let V4 { from, to, hops_left, .. } = fields;
    let mut ip =
        Ipv4Header::new(body.len() as u16, hops_left, protocol, [10, 0, 0, from], [10, 0, 0, to]).expect("short");
    (ip.identification, ip.dont_fragment, ip.more_fragments) =
        (fields.identification, fields.dont_fragment, fields.fragment.1);
    ip.dscp = (fields.class >> 2).try_into().expect("six bits");
    ip.fragment_offset = (fields.fragment.0 / 8).try_into().expect("thirteen bits");
    ip.header_checksum = ip.calc_header_checksum();
    [&ip.to_bytes()[..], body].concat()
}

/// A datagram to a port, with `payload_bytes` bytes of payload.
fn udp(fields: V4, port: u16, payload_bytes: usize) -> Vec<u8> {
    v4(fields, ip_number::UDP, &udp_body(fields, port, payload_bytes))
}

fn udp_body(fields: V4, port: u16, payload_bytes: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..payload_bytes).map(|n| n as u8).collect();
    let ends = ([10, 0, 0, fields.from], [10, 0, 0, fields.to]);
    let ip = Ipv4Header::new((8 + payload_bytes) as u16, 64, ip_number::UDP, ends.0, ends.1).expect("short");
    let udp = UdpHeader::with_ipv4_checksum(5000, port, &ip, &payload).expect("short");
    [&udp.to_bytes()[..], &payload].concat()
}

fn icmp(fields: V4, kind: Icmpv4Type, payload: &[u8]) -> Vec<u8> {
    v4(fields, ip_number::ICMP, &[&Icmpv4Header::with_checksum(kind, payload).to_bytes()[..], payload].concat())
}

/// An ICMP error, the n-th reply of the run: precedence 6 (RFC 1812 section 4.3.2.5), at most 576 bytes.
fn error(from: u8, hops_left: u8, number: u16, kind: Icmpv4Type, about: &[u8]) -> Vec<u8> {
    let fields =
        V4 { from, to: 1, hops_left, class: 0xc0, identification: number, dont_fragment: false, fragment: (0, false) };
    icmp(fields, kind, &about[..about.len().min(576 - 28)])
}

fn unreachable(why: DestUnreachableHeader) -> Icmpv4Type {
    Icmpv4Type::DestinationUnreachable(why)
}

fn frame(ip: &[u8]) -> Bytes {
    let kind = if ip[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&[2, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0], &kind[..], ip].concat().into()
}

/// Sends packets of the client at these microseconds; returns the port and bytes of each sent packet.
fn passed(sent: &[(u64, Vec<u8>)]) -> (Vec<(usize, Vec<u8>)>, Ran) {
    let frames = sent.iter().map(|(at, ip)| (*at, arrival(*at, CLIENT, frame(ip))));
    let ran = run_world(&world(), with(frames), StallPolicy::CatchUp);
    let verdict = ran.outcome.verdict();
    assert!(verdict.passed(), "{verdict}");
    // The model host has its own flow toward the server.
    let is_answer = |port: usize, bytes: &[u8]| port == CLIENT || bytes[14 + 15] != 3;
    let out = ran.machine.sent.iter().filter(|(_, port, bytes)| is_answer(*port, bytes));
    (out.map(|(_, port, bytes)| (*port, bytes[14..].to_vec())).collect(), ran)
}

/// RFC 792, RFC 1812 section 5.3.1: each router where the hop limit expires. The quoted packet has a hop limit of one.
#[test]
fn each_router_reports_an_expired_hop_limit() {
    let ttl = |hops_left| udp(V4 { hops_left, ..PLAIN }, 33_434, 32);
    let (out, ran) = passed(&[(1_000, ttl(1)), (10_000, ttl(2)), (20_000, ttl(3)), (30_000, ttl(0))]);
    let exceeded = || Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit);
    let expected = [
        (CLIENT, error(NEAR, 64, 1, exceeded(), &ttl(1))),
        (CLIENT, error(FAR, 63, 2, exceeded(), &ttl(1))),
        (SERVER, ttl(1)),
        (CLIENT, error(NEAR, 64, 3, exceeded(), &ttl(0))),
    ];
    assert_eq!(out, expected);
    assert_eq!((ran.refused.expired, ran.answered.errors), (3, 3));
}

/// RFC 1191 section 4: the error contains the next link's MTU. The middle link has an MTU of 1400 bytes.
#[test]
fn large_packet_with_dont_fragment_gets_an_error_with_the_mtu() {
    let big = |hops_left| udp(V4 { hops_left, ..PLAIN }, 4242, 1401 - 28);
    let fits = |hops_left| udp(V4 { hops_left, ..PLAIN }, 4242, 1400 - 28);
    let (out, ran) = passed(&[(1_000, big(64)), (10_000, fits(64))]);
    let needed = unreachable(DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1400 });
    assert_eq!(out, [(CLIENT, error(NEAR, 64, 1, needed, &big(64))), (SERVER, fits(62))]);
    assert_eq!(ran.answered.errors, 1);
}

/// The same for a segment to an endpoint of the model, which has no bytes in the network. The quoted fields that a
/// kernel compares are correct: addresses, ports and the sequence number (RFC 5927 section 4.1).
#[test]
fn large_segment_to_a_model_host_gets_an_error_with_the_mtu() {
    let fields = V4 { to: MODEL, ..PLAIN };
    let payload = [5; 1400];
    let mut tcp = etherparse::TcpHeader::new(5000, 5001, 0x0102_0304, 1000);
    tcp.ack = true;
    let ip = Ipv4Header::new(1420, 64, ip_number::TCP, [10, 0, 0, 1], [10, 0, 0, MODEL]).expect("short");
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &payload).expect("short");
    let body = [&tcp.to_bytes()[..], &payload].concat();
    let (out, _) = passed(&[(1_000, v4(fields, ip_number::TCP, &body))]);
    let [(CLIENT, said)] = out.as_slice() else { panic!("{out:?}") };
    // Type 3, code 4; 1400.
    assert_eq!((&said[20..22], &said[24..28]), (&[3, 4][..], &[0, 0, 5, 0x78][..]));
    assert_eq!((&said[12..16], &said[40..48]), (&[10, 0, 0, NEAR][..], &[10, 0, 0, 1, 10, 0, 0, MODEL][..]));
    assert_eq!(said[48..56], body[..8]);
}

/// RFC 791 section 3.2: 1380 bytes fit after the header, of which 1376 are complete units of eight. A fragment from the
/// sender is fragmented again; its offsets and "more fragments" remain valid.
#[test]
fn large_packet_without_dont_fragment_arrives_in_fragments() {
    let fields = V4 { dont_fragment: false, identification: 7, ..PLAIN };
    let body = udp_body(fields, 4242, 2952);
    let piece = |hops_left, begin: usize, end: usize| {
        let fragment = (begin as u16, end < body.len());
        v4(V4 { hops_left, fragment, ..fields }, ip_number::UDP, &body[begin..end])
    };
    let (out, ran) = passed(&[(1_000, piece(64, 0, 1480)), (10_000, piece(64, 1480, 2960))]);
    let expected = [
        (SERVER, piece(62, 0, 1376)),
        (SERVER, piece(62, 1376, 1480)),
        (SERVER, piece(62, 1480, 1480 + 1376)),
        (SERVER, piece(62, 1480 + 1376, 2960)),
    ];
    assert_eq!(out, expected);
    assert_eq!(ran.answered.errors, 0);
}

/// RFC 792: routers and hosts of the model reply, even if the request was fragmented and the reply must be, too.
#[test]
fn routers_and_model_hosts_reply_to_echo_requests() {
    let echo = || IcmpEchoHeader { id: 77, seq: 3 };
    let request = |to| icmp(V4 { to, ..PLAIN }, Icmpv4Type::EchoRequest(echo()), b"hello");
    let reply = |from, hops_left, identification| {
        let fields = V4 { from, to: 1, hops_left, identification, dont_fragment: false, ..PLAIN };
        icmp(fields, Icmpv4Type::EchoReply(echo()), b"hello")
    };
    let (out, ran) = passed(&[(1_000, request(NEAR)), (10_000, request(FAR)), (20_000, request(MODEL))]);
    assert_eq!(out, [(CLIENT, reply(NEAR, 64, 1)), (CLIENT, reply(FAR, 63, 2)), (CLIENT, reply(MODEL, 62, 3))]);
    assert_eq!(ran.answered.echo_replies, 3);

    let long: Vec<u8> = (0..1452).map(|n| n as u8).collect();
    let message = |kind| [&Icmpv4Header::with_checksum(kind, &long).to_bytes()[..], &long].concat();
    let asked = V4 { to: MODEL, dont_fragment: false, ..PLAIN };
    let (out, _) = passed(&[(1_000, v4(asked, ip_number::ICMP, &message(Icmpv4Type::EchoRequest(echo()))))]);
    let body = message(Icmpv4Type::EchoReply(echo()));
    let piece = |begin: usize, end: usize| {
        let fragment = (begin as u16, end < body.len());
        let fields = V4 { from: MODEL, to: 1, hops_left: 62, identification: 1, fragment, ..asked };
        (CLIENT, v4(fields, ip_number::ICMP, &body[begin..end]))
    };
    assert_eq!(out, [piece(0, 1376), piece(1376, 1460)]);
}

/// No route: an error from the first router. No listener: an error from the node itself. Packets to a multicast group
/// get no reply.
#[test]
fn packet_without_route_or_listener_gets_an_error() {
    let to = |to, hops_left| udp(V4 { to, hops_left, ..PLAIN }, 4242, 20);
    let mut group = to(9, 64);
    group[16] = 224;
    group[10..12].fill(0);
    let checksum = Ipv4Header::from_slice(&group).expect("a header").0.calc_header_checksum();
    group[10..12].copy_from_slice(&checksum.to_be_bytes());
    let sent = [(1_000, to(99, 64)), (10_000, to(FAR, 64)), (20_000, to(MODEL, 64)), (30_000, group)];
    let (out, ran) = passed(&sent);
    let port = || unreachable(DestUnreachableHeader::Port);
    let expected = [
        (CLIENT, error(NEAR, 64, 1, unreachable(DestUnreachableHeader::Network), &to(99, 64))),
        (CLIENT, error(FAR, 63, 2, port(), &to(FAR, 63))),
        (CLIENT, error(MODEL, 62, 3, port(), &to(MODEL, 62))),
    ];
    assert_eq!(out, expected);
    assert_eq!(ran.refused.unroutable, 2);
}

/// A TCP header without window and options: ports, numbers, and the flags by their letters.
fn tcp(ports: (u16, u16), sequence: u32, acknowledgement: u32, flags: &str) -> TcpHeader {
    let mut header = TcpHeader::new(ports.0, ports.1, sequence, 0);
    header.acknowledgment_number = acknowledgement;
    header.syn = flags.contains('S');
    header.ack = flags.contains('A');
    header.fin = flags.contains('F');
    header.rst = flags.contains('R');
    header
}

fn segment(fields: V4, header: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let ends = ([10, 0, 0, fields.from], [10, 0, 0, fields.to]);
    let checksum = header.calc_checksum_ipv4_raw(ends.0, ends.1, payload).expect("short");
    let header = TcpHeader { checksum, ..header };
    v4(fields, ip_number::TCP, &[&header.to_bytes()[..], payload].concat())
}

/// RFC 9293 section 3.10.7.1. Without an acknowledgment, the reset has the number 0 and acknowledges everything in the
/// segment: payload, SYN and FIN. With one, the reset has it as its sequence number, and acknowledges nothing.
#[test]
fn segment_without_a_connection_gets_a_reset() {
    let (asked, answer) = ((5000, 4242), (4242, 5000));
    let to = |to| V4 { to, ..PLAIN };
    let mut damaged = segment(to(MODEL), tcp(asked, 7, 0, "S"), &[]);
    damaged[36] ^= 1;
    // The reply has the segment's service class, and is not ECN-capable.
    let classed = V4 { class: 0xba, ..to(MODEL) };
    let sent = [
        (1_000, segment(to(FAR), tcp(asked, 7, 0, "S"), &[])),
        (10_000, segment(to(MODEL), tcp(asked, 0xffff_ffff, 0, "SF"), b"four")),
        (20_000, segment(to(MODEL), tcp(asked, 7, 9_000, "A"), b"four")),
        (30_000, segment(classed, tcp(asked, 7, 0xffff_ffff, "SA"), &[])),
        (40_000, segment(to(MODEL), tcp(asked, 7, 9_000, "RA"), &[])),
        (50_000, damaged),
    ];
    let (out, ran) = passed(&sent);
    let reply = |from, hops_left, identification, class, header| {
        let fields = V4 { from, to: 1, hops_left, identification, class, dont_fragment: false, ..PLAIN };
        (CLIENT, segment(fields, TcpHeader { window_size: 0, ..header }, &[]))
    };
    let expected = [
        reply(FAR, 63, 1, 0, tcp(answer, 0, 8, "RA")),
        // 4 294 967 295 + 4 + 2 of 2^32.
        reply(MODEL, 62, 2, 0, tcp(answer, 0, 5, "RA")),
        reply(MODEL, 62, 3, 0, tcp(answer, 9_000, 0, "R")),
        reply(MODEL, 62, 4, 0xb8, tcp(answer, 0xffff_ffff, 0, "R")),
    ];
    assert_eq!(out, expected);
    assert_eq!((ran.answered.resets, ran.answered.errors), (4, 0));
}

/// RFC 4443 section 2.4 (f): ten errors at once, then ten per second. 150 ms are sufficient to test one more.
#[test]
fn errors_are_limited() {
    let burst = |at| (0..30).map(move |_| (at, udp(V4 { to: 99, ..PLAIN }, 4242, 20)));
    let (out, ran) = passed(&burst(1_000).chain(burst(150_000)).collect::<Vec<_>>());
    assert_eq!((out.len(), ran.answered.errors, ran.answered.errors_limited), (11, 11, 49));
}

fn v6_address(number: u8) -> [u8; 16] {
    [0xfd, 0x66, 0x75, 0x6c, 0x6c, 0x70, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]
}

fn v6(from: u8, to: u8, hop_limit: u8, protocol: IpNumber, body: &[u8]) -> Vec<u8> {
    let header = Ipv6Header {
        payload_length: body.len() as u16,
        next_header: protocol,
        hop_limit,
        source: v6_address(from),
        destination: v6_address(to),
        ..Ipv6Header::default()
    };
    [&header.to_bytes()[..], body].concat()
}

fn icmpv6(from: u8, to: u8, hop_limit: u8, kind: Icmpv6Type, payload: &[u8]) -> Vec<u8> {
    let header = Icmpv6Header::with_checksum(kind, v6_address(from), v6_address(to), payload).expect("a short message");
    v6(from, to, hop_limit, ip_number::IPV6_ICMP, &[&header.to_bytes()[..], payload].concat())
}

fn segment_v6(from: u8, to: u8, hop_limit: u8, header: TcpHeader) -> Vec<u8> {
    let checksum = header.calc_checksum_ipv6_raw(v6_address(from), v6_address(to), &[]).expect("short");
    v6(from, to, hop_limit, ip_number::TCP, &TcpHeader { checksum, ..header }.to_bytes())
}

/// RFC 4443: packet too big quotes up to 1280 bytes; hop limit exceeded, echo, no route.
#[test]
fn replies_over_ipv6_follow_rfc_4443() {
    let datagram = |to, hop_limit, payload_bytes: usize| {
        let payload = vec![9; payload_bytes];
        let ip = Ipv6Header { source: v6_address(1), destination: v6_address(to), ..Ipv6Header::default() };
        let udp = UdpHeader::with_ipv6_checksum(5000, 4242, &ip, &payload).expect("short");
        v6(1, to, hop_limit, ip_number::UDP, &[&udp.to_bytes()[..], &payload].concat())
    };
    let echo = || IcmpEchoHeader { id: 5, seq: 1 };
    let sent = [
        (1_000, datagram(2, 64, 1401 - 48)),
        (10_000, datagram(2, 2, 10)),
        (20_000, icmpv6(1, FAR, 64, Icmpv6Type::EchoRequest(echo()), b"six")),
        (30_000, datagram(99, 64, 10)),
        (40_000, segment_v6(1, MODEL, 64, tcp((5000, 4242), 7, 0, "S"))),
    ];
    let (out, _) = passed(&sent);
    use etherparse::icmpv6::{DestUnreachableCode, TimeExceededCode};
    let expected = [
        (CLIENT, icmpv6(NEAR, 1, 64, Icmpv6Type::PacketTooBig { mtu: 1400 }, &sent[0].1[..1280 - 48])),
        (CLIENT, icmpv6(FAR, 1, 63, Icmpv6Type::TimeExceeded(TimeExceededCode::HopLimitExceeded), &datagram(2, 1, 10))),
        (CLIENT, icmpv6(FAR, 1, 63, Icmpv6Type::EchoReply(echo()), b"six")),
        (CLIENT, icmpv6(NEAR, 1, 64, Icmpv6Type::DestinationUnreachable(DestUnreachableCode::NoRoute), &sent[3].1)),
        (CLIENT, segment_v6(MODEL, 1, 62, tcp((4242, 5000), 0, 8, "RA"))),
    ];
    assert_eq!(out, expected);
}
