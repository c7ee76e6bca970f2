//! ICMP replies, compared with manual calculations from the RFCs and with an independent parser.

use crate::build::{self, Recipe, Upper};
use etherparse::{Icmpv4Slice, Icmpv6Slice, IpSlice};
use fullpipe_wire::icmp::{write_echo_reply, write_error};
use fullpipe_wire::summary::quoted_packet;
use fullpipe_wire::{IcmpError, PacketError, PacketSummary, ReplyError, Transport, Unreachable};
use proptest::prelude::*;
use std::net::IpAddr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => octets = address.octets(),
    }
    octets
}

fn recipe(source: &str, destination: &str, upper: Upper) -> Recipe {
    Recipe {
        v6: address(source).is_ipv6(),
        source: octets(address(source)),
        destination: octets(address(destination)),
        traffic_class: 0xbb,
        hop_limit: 1,
        identification: 0x1234,
        dont_fragment: true,
        extras: Vec::new(),
        upper,
        part: None,
    }
}

fn udp(payload_bytes: usize) -> Upper {
    Upper::Udp { ports: (1, 2), checksum: true, payload: vec![0; payload_bytes] }
}

fn error_about(packet: &[u8], what: IcmpError, from: &str) -> Result<Vec<u8>, ReplyError> {
    let mut out = vec![0xee];
    let result = write_error(packet, what, address(from), 0x0102, &mut out);
    assert_eq!(out.remove(0), 0xee);
    assert!(result.is_ok() || out.is_empty());
    result.map(|()| out)
}

/// RFC 792 page 6, RFC 1812 section 4.3.2: precedence 6, and the unchanged packet.
#[test]
fn time_exceeded_bytes_match_a_manual_calculation() {
    let packet = recipe("10.0.0.1", "10.0.0.2", udp(0)).bytes();
    // 45bb + 001c + 1234 + 4000 + 0111 + 0a00 + 0001 + 0a00 + 0002 = ad1f, complement 52e0. Datagram: pseudo-header
    // 0a00 + 0001 + 0a00 + 0002 + 0011 + 0008 = 141c, and 0001 + 0002 + 0008 = 1427, complement ebd8.
    let about = [
        0x45, 0xbb, 0, 28, 0x12, 0x34, 0x40, 0, 1, 17, 0x52, 0xe0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0xeb,
        0xd8,
    ];
    assert_eq!(packet, about);
    // Header: 45c0 + 0038 + 0102 + 0000 + 4001 + c000 + 0201 + 0a00 + 0001 = 152fd, folded 52fe, complement ad01.
    // Message: 0b00, and the quoted header with the sum ffff, and the datagram without its pseudo-header: 0001 + 0002 +
    // 0008 + ebd8 = ebe3; 0b00 + ffff + ebe3 = 1f6e2, folded f6e3, complement 091c.
    let begin =
        [0x45, 0xc0, 0, 56, 1, 2, 0, 0, 64, 1, 0xad, 0x01, 192, 0, 2, 1, 10, 0, 0, 1, 11, 0, 0x09, 0x1c, 0, 0, 0, 0];
    let expected = [&begin[..], &about].concat();
    assert_eq!(error_about(&packet, IcmpError::TimeExceeded, "192.0.2.1"), Ok(expected));
}

/// RFC 4443 section 3.2: type 2, code 0, the MTU in 32 bits.
#[test]
fn packet_too_big_bytes_match_a_manual_calculation() {
    let packet = recipe("2001:db8::1", "2001:db8::2", udp(0)).bytes();
    let out = error_about(&packet, IcmpError::PacketTooBig { mtu_bytes: 0x0001_0500 }, "2001:db8::3").unwrap();
    assert_eq!(out[..8], [0x60, 0, 0, 0, 0, 56, 58, 64]);
    assert_eq!((&out[8..24], &out[24..40]), (&octets(address("2001:db8::3"))[..], &packet[8..24]));
    // Twice 2001 + 0db8, + 3 + 1: 5b76; length 0038, next header 003a: 5be8. Message 0200 + 0001 + 0500 = 0701. Quoted
    // packet: 6bb5 + abcd + 0008 + 1101 = 1288b; addresses 5b75. The datagram's sum with its pseudo-header (addresses
    // 5b75, 0008, 0011) is ffff, so without it ffff - 5b8e = a471. Total 5be8 + 0701 + 1288b + 5b75 + a471 = 28b5a,
    // folded 8b5c, complement 74a3.
    assert_eq!(out[40..48], [2, 0, 0x74, 0xa3, 0, 1, 5, 0]);
    assert_eq!(out[48..], packet);
}

/// Types and codes of RFC 792, RFC 1191 section 4, RFC 1812 section 5.2.7.1, RFC 4443 sections 3.1 to 3.3.
#[test]
fn errors_have_the_types_and_codes_of_the_rfcs() {
    let table = [
        (IcmpError::TimeExceeded, [11, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0]),
        (IcmpError::ReassemblyTimeExceeded, [11, 1, 0, 0, 0, 0], [3, 1, 0, 0, 0, 0]),
        (IcmpError::PacketTooBig { mtu_bytes: 1400 }, [3, 4, 0, 0, 5, 0x78], [2, 0, 0, 0, 5, 0x78]),
        (IcmpError::PacketTooBig { mtu_bytes: 70_000 }, [3, 4, 0, 0, 0xff, 0xff], [2, 0, 0, 1, 0x11, 0x70]),
        (IcmpError::Unreachable(Unreachable::Network), [3, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
        (IcmpError::Unreachable(Unreachable::Host), [3, 1, 0, 0, 0, 0], [1, 3, 0, 0, 0, 0]),
        (IcmpError::Unreachable(Unreachable::Port), [3, 3, 0, 0, 0, 0], [1, 4, 0, 0, 0, 0]),
        (IcmpError::Unreachable(Unreachable::Prohibited), [3, 13, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]),
    ];
    let fields = |out: &[u8], at: usize| [out[at], out[at + 1], out[at + 4], out[at + 5], out[at + 6], out[at + 7]];
    for (what, v4, v6) in table {
        let out = error_about(&recipe("10.0.0.1", "10.0.0.2", udp(3)).bytes(), what, "10.0.0.9").unwrap();
        assert_eq!(fields(&out, 20), v4, "{what:?}");
        let out = error_about(&recipe("fd00::1", "fd00::2", udp(3)).bytes(), what, "fd00::9").unwrap();
        assert_eq!(fields(&out, 40), v6, "{what:?}");
    }
}

/// 576 bytes (RFC 1812 section 4.3.2.3) and 1280 (RFC 4443 section 3.1), including all headers.
#[test]
fn quoted_bytes_are_limited_by_the_size_of_the_error() {
    for (bytes, v4, v6) in
        [(28, 56, 0), (548, 576, 0), (549, 576, 0), (1232, 576, 1280), (1233, 576, 1280), (9000, 576, 1280)]
    {
        let packet = recipe("10.0.0.1", "10.0.0.2", udp(bytes - 28)).bytes();
        assert_eq!(packet.len(), bytes);
        assert_eq!(error_about(&packet, IcmpError::TimeExceeded, "10.0.0.9").unwrap().len(), v4);
        if v6 > 0 {
            let packet = recipe("fd00::1", "fd00::2", udp(bytes - 48)).bytes();
            assert_eq!(error_about(&packet, IcmpError::TimeExceeded, "fd00::9").unwrap().len(), v6);
        }
    }
}

#[test]
fn packets_that_must_not_cause_an_error_are_rejected() {
    let about = |recipe: &Recipe, from| error_about(&recipe.bytes(), IcmpError::TimeExceeded, from).err();
    let v4 = |source, destination| about(&recipe(source, destination, udp(0)), "192.0.2.1");
    let v6 = |source, destination| about(&recipe(source, destination, udp(0)), "2001:db8::9");
    assert_eq!(v4("10.0.0.1", "10.0.0.2"), None);
    for destination in ["224.0.0.1", "239.255.255.250", "255.255.255.255"] {
        assert_eq!(v4("10.0.0.1", destination), Some(ReplyError::GroupDestination));
    }
    for source in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "240.0.0.1", "255.255.255.255"] {
        assert_eq!(v4(source, "10.0.0.2"), Some(ReplyError::InvalidSource), "{source}");
    }
    assert_eq!(v6("fd00::1", "ff02::1"), Some(ReplyError::GroupDestination));
    for source in ["::", "::1", "ff02::1"] {
        assert_eq!(v6(source, "fd00::2"), Some(ReplyError::InvalidSource), "{source}");
    }
    assert_eq!(about(&recipe("10.0.0.1", "10.0.0.2", udp(0)), "fd00::9"), Some(ReplyError::VersionMismatch));
    let whole = recipe("10.0.0.1", "10.0.0.2", udp(16));
    let part = |part| Recipe { part: Some(part), ..whole.clone() };
    assert_eq!(about(&part((0, 8)), "192.0.2.1"), None);
    assert_eq!(about(&part((8, 16)), "192.0.2.1"), Some(ReplyError::NonInitialFragment));
    // Unreachable, redirect, time exceeded, parameter problem; an echo is not an error.
    for kind in [3, 5, 11, 12] {
        let upper = Upper::Error { kind, quoted: Box::new(whole.clone()), keep: 28 };
        assert_eq!(about(&recipe("10.0.0.1", "10.0.0.2", upper), "192.0.2.1"), Some(ReplyError::IcmpError));
    }
    for kind in [1, 2, 3, 4, 100, 127, 137] {
        let upper = Upper::Error { kind, quoted: Box::new(recipe("fd00::1", "fd00::2", udp(0))), keep: 48 };
        assert_eq!(about(&recipe("fd00::1", "fd00::2", upper), "fd00::9"), Some(ReplyError::IcmpError));
    }
    let ping = Upper::Echo { request: true, identifier: 1, payload: Vec::new() };
    assert_eq!(about(&recipe("fd00::1", "fd00::2", ping), "fd00::9"), None);
    let cut = error_about(&[0x45], IcmpError::TimeExceeded, "10.0.0.1");
    assert_eq!(cut, Err(ReplyError::Malformed(PacketError::Truncated)));
}

/// RFC 792 page 14; the type of service is returned without ECN (bb becomes b8).
#[test]
fn echo_reply_bytes_match_a_manual_calculation() {
    let request =
        recipe("10.0.0.1", "10.0.0.2", Upper::Echo { request: true, identifier: 0xabcd, payload: vec![1, 2, 3] });
    let mut out = Vec::new();
    assert_eq!(write_echo_reply(&request.bytes(), 7, &mut out), Ok(()));
    // Header: 45b8 + 001f + 0007 + 0000 + 4001 + 0a00 + 0002 + 0a00 + 0001 = 99e2, complement 661d. Message: 0000 + abcd +
    // 0000 + 0102 + 0300 = afcf, complement 5030.
    let expected = [
        0x45, 0xb8, 0, 31, 0, 7, 0, 0, 64, 1, 0x66, 0x1d, 10, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0x50, 0x30, 0xab, 0xcd, 0, 0,
        1, 2, 3,
    ];
    assert_eq!(out, expected);
}

#[test]
fn invalid_echo_requests_get_no_reply() {
    let ping = Upper::Echo { request: true, identifier: 1, payload: vec![0; 16] };
    let answer = |bytes: &[u8]| {
        let mut out = Vec::new();
        let result = write_echo_reply(bytes, 0, &mut out);
        assert_eq!(result.is_ok(), !out.is_empty());
        result.err()
    };
    for (source, destination, group) in [("10.0.0.1", "10.0.0.2", "224.0.0.1"), ("fd00::1", "fd00::2", "ff02::1")] {
        let request = recipe(source, destination, ping.clone());
        assert_eq!(answer(&request.bytes()), None);
        let mut wrong = request.bytes();
        *wrong.last_mut().unwrap() ^= 1;
        assert_eq!(answer(&wrong), Some(ReplyError::BadChecksum));
        assert_eq!(answer(&Recipe { part: Some((0, 16)), ..request }.bytes()), Some(ReplyError::NonInitialFragment));
        assert_eq!(answer(&recipe(source, group, ping.clone()).bytes()), Some(ReplyError::GroupDestination));
        assert_eq!(answer(&recipe(source, destination, udp(0)).bytes()), Some(ReplyError::NotEchoRequest));
        let reply = Upper::Echo { request: false, identifier: 1, payload: Vec::new() };
        assert_eq!(answer(&recipe(source, destination, reply).bytes()), Some(ReplyError::NotEchoRequest));
    }
}

/// Checks checksums against another library.
fn check(bytes: &[u8]) {
    match IpSlice::from_slice(bytes).unwrap() {
        IpSlice::Ipv4(v4) => {
            let header = v4.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            let icmp = Icmpv4Slice::from_slice(v4.payload().payload).unwrap();
            assert_eq!(icmp.icmp_type().calc_checksum(icmp.payload()), icmp.checksum());
        }
        IpSlice::Ipv6(v6) => {
            let header = v6.header().to_header();
            let icmp = Icmpv6Slice::from_slice(v6.payload().payload).unwrap();
            let checksum = icmp.icmp_type().calc_checksum(header.source, header.destination, icmp.payload());
            assert_eq!(checksum, Ok(icmp.checksum()));
        }
    }
}

fn errors() -> impl Strategy<Value = IcmpError> {
    prop_oneof![
        Just(IcmpError::TimeExceeded),
        any::<u32>().prop_map(|mtu_bytes| IcmpError::PacketTooBig { mtu_bytes }),
        Just(IcmpError::Unreachable(Unreachable::Port)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn errors_are_valid_packets_that_quote_the_packet(recipe in build::simple(), what in errors()) {
        let bytes = recipe.bytes();
        let from = address(if recipe.v6 { "2001:db8::9" } else { "192.0.2.1" });
        let mut out = Vec::new();
        let Ok(()) = write_error(&bytes, what, from, 9, &mut out) else { return Ok(()) };
        check(&out);
        let (seen, about) = (PacketSummary::parse(&out).unwrap(), PacketSummary::parse(&bytes).unwrap());
        prop_assert_eq!((seen.transport, seen.source.ip()), (Transport::IcmpError, from));
        prop_assert_eq!((seen.destination.ip(), seen.total_bytes as usize), (about.source.ip(), out.len()));
        if about.total_bytes - about.payload_bytes >= 28 {
            let quoted = quoted_packet(&out).unwrap();
            prop_assert_eq!((quoted.source, quoted.destination), (about.source, about.destination));
        }
        // No error is sent about an error.
        prop_assert_eq!(write_error(&out, what, from, 9, &mut Vec::new()), Err(ReplyError::IcmpError));
    }

    #[test]
    fn echo_replies_return_the_data_to_the_source(recipe in build::simple()) {
        let mut out = Vec::new();
        let Ok(()) = write_echo_reply(&recipe.bytes(), 9, &mut out) else { return Ok(()) };
        check(&out);
        let (reply, request) = (PacketSummary::parse(&out).unwrap(), PacketSummary::parse(&recipe.bytes()).unwrap());
        prop_assert_eq!((reply.source, reply.destination), (request.destination, request.source));
        prop_assert_eq!(reply.transport, Transport::Echo { request: false });
        prop_assert_eq!(&out[(reply.total_bytes - reply.payload_bytes) as usize..], &recipe.bytes()[recipe.header_bytes() + 8..]);
    }

    #[test]
    fn damaged_packets_are_answered_or_rejected(
        recipe in build::whole(),
        damage in build::damage(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        what in errors(),
    ) {
        let bytes = build::damaged(recipe.bytes(), &damage, cut);
        for from in ["192.0.2.1", "2001:db8::9"] {
            let mut out = Vec::new();
            if write_error(&bytes, what, address(from), 9, &mut out).is_ok() {
                check(&out);
            }
        }
        let mut out = Vec::new();
        if write_echo_reply(&bytes, 9, &mut out).is_ok() {
            check(&out);
        }
    }
}
