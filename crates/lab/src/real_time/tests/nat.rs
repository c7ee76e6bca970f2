//! Real packets through a translator, on the made-up machine. What is expected is built from the addresses that RFC 4787 and
//! RFC 5508 ask for, by another library's checksums.

use super::{MadeUp, Ran, arrival, run_scenario, with};
use crate::real_time::driver::AfterStall;
use bytes::Bytes;
use etherparse::{IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Ipv4Header, UdpHeader, ip_number};

/// 10.0.0.1 inside, 10.0.0.2 outside, the translator 10.0.0.3 between them: 1 ms on either side.
const SCENARIO: &str = r#"
    duration = "200ms"
    [[host]]
    name = "client"
    [[host]]
    name = "server"
    [[router]]
    name = "home"
    [[link]]
    name = "inside"
    from = "client"
    to = "home"
    rate = "1Gbit/s"
    delay = "1ms"
    [[link]]
    name = "outside"
    from = "home"
    to = "server"
    rate = "1Gbit/s"
    delay = "1ms"
    [[nat]]
    router = "home"
    inside = ["client"]
    first_port = 20000
    last_port = 20003
    allocation = "sequential"
    [[flow]]
    name = "datagrams"
    from = "client"
    to = "server"
    workload = "constant-rate"
    protocol = "udp"
    payload = "100B"
    rate = "1Mbit/s"
"#;

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

/// Sends packets at these microseconds from these ports; returns what came out where, as IP packets.
fn translated(sent: &[(u64, usize, Vec<u8>)]) -> (Vec<(usize, Vec<u8>)>, Ran) {
    let frames = sent.iter().map(|(at, port, ip)| (*at, arrival(*at, *port, frame(ip))));
    let machine: MadeUp = with(frames);
    let ran = run_scenario(SCENARIO, machine, AfterStall::CatchUp);
    (ran.machine.sent.iter().map(|(_, port, bytes)| (*port, bytes[14..].to_vec())).collect(), ran)
}

fn counters(ran: &Ran) -> (u64, u64) {
    let (_, counters) = ran.outcome.nat_rows().next().expect("a translator");
    (counters.mappings, counters.unsolicited)
}

/// RFC 4787 REQ-1: one port for whomever; RFC 768: no checksum stays none. The answer comes to the inside address.
#[test]
fn datagrams_leave_by_the_outside_address_and_come_back() {
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

/// RFC 4787 section 5, address and port: another port of the same server may not come in; neither does what nobody asked for.
#[test]
fn what_is_unasked_is_dropped_at_the_router() {
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

/// RFC 5508 REQ-1: the identifier is the port.
#[test]
fn echo_has_its_identifier_translated() {
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

/// RFC 5508 REQ-4: the packet that an error quotes is translated back as well, with its checksums. One about a packet that
/// nobody sent goes no further than the router.
#[test]
fn errors_come_back_with_what_they_quote() {
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
