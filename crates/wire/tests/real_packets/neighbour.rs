//! Requests and replies of ARP and Neighbor Discovery, byte by byte.

use crate::build;
use fullpipe_wire::{EtherType, EthernetHeader, HardwareAddress, NeighborResponder, NeighborResponse};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv6Addr};

const OURS: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const ASKER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const NEIGHBOUR: NeighborResponder = NeighborResponder { hardware: OURS, is_router: false };

fn is_ours(address: IpAddr) -> bool {
    address == IpAddr::from([10, 0, 0, 1]) || address == "fd00::1".parse::<IpAddr>().unwrap()
}

fn ask(frame: &[u8]) -> NeighborResponse {
    NEIGHBOUR.handle_frame(frame, is_ours)
}

/// RFC 826: 10.0.0.9 at 02:00:00:00:00:09 requests the address of 10.0.0.1, with padding to 60 bytes.
fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(ASKER);
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame.extend(ASKER);
    frame.extend([10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    frame.resize(60, 0);
    frame
}

#[test]
fn arp_reply_has_the_expected_bytes() {
    let reply = [
        2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x08, 0x06, // Ethernet, IPv4, six bytes and four, reply
        0, 1, 0x08, 0, 6, 4, 0, 2, // who has it, who asked
        2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 9,
    ];
    assert_eq!(ask(&arp_request()), NeighborResponse::Reply(reply.to_vec()));
    // A unicast request (validation of a cached address), without padding.
    let mut unicast = arp_request();
    unicast[..6].copy_from_slice(&OURS.0);
    assert_eq!(ask(&unicast[..42]), NeighborResponse::Reply(reply.to_vec()));
}

#[test]
fn invalid_or_foreign_arp_gets_no_reply() {
    let with = |at: usize, value: u8| {
        let mut frame = arp_request();
        frame[at] = value;
        ask(&frame)
    };
    // Other station; group as source; hardware type, protocol, lengths; a reply; group as sender; address not ours.
    for (at, value) in [(0, 2), (6, 3), (15, 6), (16, 0x86), (18, 8), (19, 16), (21, 2), (22, 1), (41, 2)] {
        assert_eq!(with(at, value), NeighborResponse::NoReply, "{at}");
    }
    assert_eq!(ask(&arp_request()[..41]), NeighborResponse::NoReply);
    assert_eq!(ask(&arp_request()[..13]), NeighborResponse::OtherProtocol);
    assert_eq!(with(12, 0x88), NeighborResponse::OtherProtocol);
    // A probe (RFC 5227) for our address gets a reply to 0.0.0.0; a probe for the sender's own address gets none.
    let mut probe = arp_request();
    probe[28..32].fill(0);
    assert!(matches!(ask(&probe), NeighborResponse::Reply(reply) if reply[38..42] == [0; 4]));
    probe[41] = 9;
    assert_eq!(ask(&probe), NeighborResponse::NoReply);
}

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// An IPv6 frame with an ICMPv6 message; the checksum is filled in.
fn icmp(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    let mut message = message.to_vec();
    let checksum =
        build::internet_checksum(&[&from.octets(), &to.octets(), &length, &[0, 0, 0, 58], &message]).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    let destination = HardwareAddress::multicast(to);
    let header = EthernetHeader { destination, source: HardwareAddress(ASKER), ether_type: EtherType::Ipv6 };
    let ip = [0x60, 0, 0, 0, length[2], length[3], 58, 255];
    [&header.bytes()[..], &ip, &from.octets(), &to.octets(), &message].concat()
}

/// RFC 4861 section 4.3: a solicitation for an address, optionally with the sender's address as an option.
fn solicitation(from: &str, target: &str, option: &[u8]) -> Vec<u8> {
    let octets = ip(target).octets();
    // RFC 4291 section 2.7.1: ff02::1:ff, then the last three bytes.
    let to = Ipv6Addr::new(
        0xff02,
        0,
        0,
        0,
        0,
        1,
        0xff00 | u16::from(octets[13]),
        u16::from(octets[14]) << 8 | u16::from(octets[15]),
    );
    icmp(ip(from), to, &[&[135, 0, 0, 0, 0, 0, 0, 0][..], &octets, option].concat())
}

const SOURCE: [u8; 8] = [1, 1, 2, 0, 0, 0, 0, 9];

/// RFC 4861 sections 4.4 and 7.2.4.
#[test]
fn advertisement_has_the_expected_bytes() {
    let NeighborResponse::Reply(reply) = ask(&solicitation("fd00::9", "fd00::1", &SOURCE)) else {
        panic!("there is no reply")
    };
    assert_eq!(reply[..14], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
    assert_eq!(reply[14..22], [0x60, 0, 0, 0, 0, 32, 58, 255]);
    assert_eq!(reply[22..38], ip("fd00::1").octets());
    assert_eq!(reply[38..54], ip("fd00::9").octets());
    // Pseudo-header: fd00 + 0001 + fd00 + 0009 + 0020 + 003a = 1fa64. Message: 8800 + 6000 (solicited, override) + target
    // fd00 + 0001 + option 0201 + 0200 + 0000 + 0001 = 1e903. Together 3e367, folded e36a, complement 1c95.
    assert_eq!(reply[54..62], [136, 0, 0x1c, 0x95, 0x60, 0, 0, 0]);
    assert_eq!(reply[62..78], ip("fd00::1").octets());
    assert_eq!(reply[78..], [2, 1, 2, 0, 0, 0, 0, 1]);
    // A router sets the R flag: 6000 becomes e000, and 1c95 becomes 1c95 - 8000, which is 9c94 in one's complement.
    let router = NeighborResponder { is_router: true, ..NEIGHBOUR };
    let NeighborResponse::Reply(routers) = router.handle_frame(&solicitation("fd00::9", "fd00::1", &SOURCE), is_ours)
    else {
        panic!("there is no reply")
    };
    assert_eq!(routers[54..62], [136, 0, 0x9c, 0x94, 0xe0, 0, 0, 0]);
    // Without the option, the reply goes to the source of the frame; with another address in the option, to that
    // address.
    assert_eq!(ask(&solicitation("fd00::9", "fd00::1", &[])), NeighborResponse::Reply(reply.clone()));
    let elsewhere = ask(&solicitation("fd00::9", "fd00::1", &[14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 7]));
    assert!(matches!(elsewhere, NeighborResponse::Reply(reply) if reply[..6] == [2, 0, 0, 0, 0, 7]));
    // A group address is not a station address.
    assert_eq!(ask(&solicitation("fd00::9", "fd00::1", &[1, 1, 0xff, 0, 0, 0, 0, 7])), NeighborResponse::Reply(reply));
    assert_eq!(ask(&solicitation("ff02::9", "fd00::1", &[])), NeighborResponse::NoReply);
}

/// RFC 4862 section 5.4: a node that is about to use an address sends the solicitation from the unspecified address.
/// RFC 4861 section 7.2.4: the reply goes to all nodes and is not "solicited".
#[test]
fn duplicate_address_detection_gets_a_reply_to_all_nodes() {
    let NeighborResponse::Reply(reply) = ask(&solicitation("::", "fd00::1", &[])) else { panic!("there is no reply") };
    assert_eq!(reply[..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(reply[38..54], ip("ff02::1").octets());
    assert_eq!(reply[58], 0x20);
    assert_eq!(ask(&solicitation("::", "fd00::9", &[])), NeighborResponse::NoReply);
    // A probe must not contain the sender's address and must go to the solicited-node address (section 7.1.1).
    assert_eq!(ask(&solicitation("::", "fd00::1", &SOURCE)), NeighborResponse::NoReply);
    let all = icmp(ip("::"), ip("ff02::1"), &[&[135, 0, 0, 0, 0, 0, 0, 0][..], &ip("fd00::1").octets()].concat());
    assert_eq!(ask(&all), NeighborResponse::NoReply);
}

#[test]
fn invalid_solicitations_and_other_messages_get_no_reply() {
    let with = |at: usize, value: u8| {
        let mut frame = solicitation("fd00::9", "fd00::1", &SOURCE);
        frame[at] = value;
        ask(&frame)
    };
    // Hop limit; checksum; a frame for another station.
    for (at, value) in [(21, 254), (56, 0), (0, 2)] {
        assert_eq!(with(at, value), NeighborResponse::NoReply, "{at}");
    }
    let message = |kind: u8, code: u8, target: &str, option: &[u8]| {
        let target = ip(target).octets();
        ask(&icmp(
            ip("fd00::9"),
            ip("ff02::1:ff00:1"),
            &[&[kind, code, 0, 0, 0, 0, 0, 0][..], &target, option].concat(),
        ))
    };
    assert!(matches!(message(135, 0, "fd00::1", &[]), NeighborResponse::Reply(_)));
    assert_eq!(message(135, 1, "fd00::1", &[]), NeighborResponse::NoReply);
    assert_eq!(message(135, 0, "fd00::2", &[]), NeighborResponse::NoReply);
    // Options with length zero, truncated, and without a length.
    for option in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 0, 0, 0, 0, 0, 0], &[1]] {
        assert_eq!(message(135, 0, "fd00::1", option), NeighborResponse::NoReply);
    }
    // Router Solicitation and Advertisement, Neighbor Advertisement, Redirect; then an echo request, which is a packet.
    for kind in [133, 134, 136, 137] {
        assert_eq!(message(kind, 0, "fd00::1", &[]), NeighborResponse::NoReply, "{kind}");
    }
    assert_eq!(message(128, 0, "fd00::1", &[]), NeighborResponse::OtherProtocol);
    // A group address is never ours, even if `is_ours` returns true.
    let group = solicitation("fd00::9", "ff02::5", &[]);
    assert_eq!(NEIGHBOUR.handle_frame(&group, |_| true), NeighborResponse::NoReply);
    let short = icmp(ip("fd00::9"), ip("ff02::1:ff00:1"), &[&[135, 0, 0, 0, 0, 0, 0, 0][..], &[0; 15]].concat());
    assert_eq!(NEIGHBOUR.handle_frame(&short, |_| true), NeighborResponse::NoReply);
}

#[test]
fn frame_headers_are_parsed_and_formatted() {
    let (header, rest) = EthernetHeader::read(&arp_request()).map(|(header, rest)| (header, rest.len())).unwrap();
    assert_eq!(rest, 46);
    assert_eq!(header.bytes(), arp_request()[..14]);
    assert_eq!((header.destination, header.ether_type), (HardwareAddress::BROADCAST, EtherType::Arp));
    assert_eq!(header.source.to_string(), "02:00:00:00:00:09");
    assert_eq!(EthernetHeader::read(&[0; 13]), None);
    for number in [0, 46, 0x0800, 0x0806, 0x86dd, 0x8100] {
        assert_eq!(u16::from(EtherType::from(number)), number);
    }
    // RFC 2464 section 7.
    assert_eq!(HardwareAddress::multicast(ip("ff02::1:ff28:9c5a")).to_string(), "33:33:ff:28:9c:5a");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_frames_are_answered_or_ignored(
        which in 0..3_usize,
        damage in build::damage(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        noise in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let frame = match which {
            0 => arp_request(),
            1 => solicitation("fd00::9", "fd00::1", &SOURCE),
            _ => solicitation("::", "fd00::1", &[]),
        };
        let all = |frame: &[u8]| NEIGHBOUR.handle_frame(frame, |_| true);
        if let NeighborResponse::Reply(reply) = all(&build::damaged(frame.clone(), &damage, cut)) {
            prop_assert!(reply[6..12] == OURS.0 && matches!(reply.len(), 42 | 86));
            // A reply is not a request.
            prop_assert_eq!(all(&reply), NeighborResponse::NoReply);
        }
        let _ = all(&noise);
        let _ = all(&[&frame[..14], &noise].concat());
    }
}
