//! Summaries of packets, compared with the built packets and with `parse`.

use crate::build::{self, Recipe, Upper};
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::summary::quoted_packet;
use fullpipe_wire::{Fragment, PacketError, PacketSummary, ParseError, ParsedContent, Transport, parse};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

/// A SYN with ECE and CWR (flags 0c2), 24 bytes of TCP header, no payload, DF, ECT(0), and two bytes of padding. Header
/// sum: 4502 + 002c + 0001 + 4000 + 4006 + 0a00 + 0001 + 0a00 + 0002 = d938, complement 26c7.
const SYN: [u8; 46] = [
    0x45, 2, 0, 44, 0, 1, 0x40, 0, 64, 6, 0x26, 0xc7, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x01, 0xbb, 0, 0, 0, 1, 0, 0,
    0, 0, 0x60, 0xc2, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4, 0, 0,
];

fn with(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = SYN.to_vec();
    for (at, value) in changes {
        bytes[*at] = *value;
    }
    // Recomputes the header checksum.
    let header = usize::from(bytes[0] & 15).clamp(5, 11) * 4;
    bytes[10..12].fill(0);
    let checksum = build::internet_checksum(&[&bytes[..header]]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn syn_summary_has_the_expected_fields() {
    let summary = PacketSummary::parse(&SYN).unwrap();
    assert_eq!(summary.source, "10.0.0.1:49152".parse().unwrap());
    assert_eq!(summary.destination, "10.0.0.2:443".parse().unwrap());
    assert_eq!((summary.codepoint, summary.hop_limit, summary.protocol), (EcnCodepoint::Ect0, 64, 6));
    assert_eq!(summary.transport, Transport::Tcp { flags: 0x0c2 });
    assert_eq!((summary.payload_bytes, summary.total_bytes), (0, 44));
    assert_eq!((summary.fragment, summary.dont_fragment), (None, true));
}

#[test]
fn malformed_packets_are_rejected_with_their_reason() {
    let refused = |changes: &[(usize, u8)]| PacketSummary::parse(&with(changes)).err();
    assert_eq!(PacketSummary::parse(&[]), Err(PacketError::Truncated));
    assert_eq!(refused(&[(0, 0x55)]), Some(PacketError::UnknownVersion));
    assert_eq!(refused(&[(0, 0x44)]), Some(PacketError::InvalidLength));
    assert_eq!(refused(&[(0, 0x4f)]), Some(PacketError::Truncated));
    assert_eq!(refused(&[(3, 19)]), Some(PacketError::InvalidLength));
    assert_eq!(refused(&[(3, 47)]), Some(PacketError::Truncated));
    assert_eq!(refused(&[(3, 46)]), None);
    // Twenty bytes of IP header without TCP; TCP headers of 16 bytes, and of 28 in 24 bytes.
    assert_eq!(refused(&[(3, 20)]), Some(PacketError::InvalidTransport));
    assert_eq!(refused(&[(32, 0x40)]), Some(PacketError::InvalidTransport));
    assert_eq!(refused(&[(32, 0x70)]), Some(PacketError::InvalidTransport));
    // UDP lengths of 7 bytes, of 25 in 24 bytes, and of 24.
    assert_eq!(refused(&[(9, 17), (24, 0), (25, 7)]), Some(PacketError::InvalidTransport));
    assert_eq!(refused(&[(9, 17), (24, 0), (25, 25)]), Some(PacketError::InvalidTransport));
    assert_eq!(refused(&[(9, 17), (24, 0), (25, 24)]), None);
    // A datagram of 12 bytes in a packet with 24 bytes of payload: four bytes of UDP payload.
    let short = PacketSummary::parse(&with(&[(9, 17), (24, 0), (25, 12)])).unwrap();
    assert_eq!((short.transport, short.payload_bytes, short.total_bytes), (Transport::Udp, 4, 44));
    // Fragments: 24 bytes with the MF flag; 23 bytes with it; as the last; beyond 65 535 (1fff * 8 + 24 + 20); without
    // bytes.
    assert_eq!(refused(&[(6, 0x20), (7, 9)]), None);
    assert_eq!(refused(&[(6, 0x20), (7, 9), (3, 43)]), Some(PacketError::InvalidFragment));
    assert_eq!(refused(&[(6, 0x00), (7, 9), (3, 43)]), None);
    assert_eq!(refused(&[(6, 0x1f), (7, 0xff)]), Some(PacketError::InvalidFragment));
    // 1ffa * 8 = 65 488; with 20 bytes of header and 24 of payload it ends at 65 532, and eight bytes later at 65 540.
    assert_eq!(refused(&[(6, 0x1f), (7, 0xfa)]), None);
    assert_eq!(refused(&[(6, 0x1f), (7, 0xfb)]), Some(PacketError::InvalidFragment));
    assert_eq!(refused(&[(6, 0), (7, 9), (3, 20)]), Some(PacketError::InvalidFragment));
    // A first fragment without the complete TCP header (RFC 1858).
    assert_eq!(refused(&[(6, 0x20), (3, 36)]), Some(PacketError::InvalidTransport));
    let mut wrong = SYN;
    wrong[8] = 63;
    assert_eq!(PacketSummary::parse(&wrong), Err(PacketError::BadHeaderChecksum));
}

/// RFC 8200 section 4: chained extension headers, by hand and without addresses.
#[test]
fn extension_headers_are_skipped_or_rejected() {
    let packet = |first: u8, rest: &[u8]| {
        let mut bytes = vec![0x60, 0, 0, 0, 0, rest.len() as u8, first, 64];
        bytes.resize(40, 1);
        bytes.extend(rest);
        bytes
    };
    let seen = |first, rest: &[u8]| {
        PacketSummary::parse(&packet(first, rest))
            .map(|summary| (summary.protocol, summary.payload_bytes, summary.fragment))
    };
    let udp = [0, 1, 0, 2, 0, 8, 0, 0];
    let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(seen(17, &udp), Ok((17, 0, None)));
    assert_eq!(seen(60, &[options(17), udp].concat()), Ok((17, 0, None)));
    assert_eq!(seen(0, &[options(43), options(60), options(17), udp].concat()), Ok((17, 0, None)));
    // Hop-by-hop options that are not first; a header of 16 bytes with 8 bytes present; nine headers.
    assert_eq!(seen(60, &[options(0), options(17), udp].concat()), Err(PacketError::InvalidExtensions));
    assert_eq!(seen(60, &[17, 1, 1, 4, 0, 0, 0, 0]), Err(PacketError::InvalidExtensions));
    let many = |count: usize| {
        let mut headers = vec![options(60); count - 1];
        headers.push(options(17));
        [headers.concat(), udp.to_vec()].concat()
    };
    assert_eq!(seen(60, &many(8)), Ok((17, 0, None)));
    assert_eq!(seen(60, &many(9)), Err(PacketError::InvalidExtensions));
    // Offset 16, MF flag, identification 7: the rest is payload. Offset 0 without MF: not a fragment.
    let piece = Fragment { offset_bytes: 16, last: false, identification: 7 };
    assert_eq!(seen(44, &[[17, 0, 0, 17, 0, 0, 0, 7], [9; 8]].concat()), Ok((17, 8, Some(piece))));
    assert_eq!(seen(44, &[[17, 0, 0, 0, 0, 0, 0, 7], udp].concat()), Ok((17, 0, None)));
    assert_eq!(
        seen(44, &[[44, 0, 0, 1, 0, 0, 0, 7], [17, 0, 0, 1, 0, 0, 0, 7], udp].concat()),
        Err(PacketError::InvalidExtensions)
    );
    // No next header.
    assert_eq!(seen(59, &[]), Ok((59, 0, None)));
}

fn socket(octets: &[u8], port: u16) -> SocketAddr {
    let address = match <[u8; 4]>::try_from(octets) {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(octets).unwrap()),
    };
    SocketAddr::new(address, port)
}

fn ends(recipe: &Recipe) -> (SocketAddr, SocketAddr) {
    let ports = match recipe.upper {
        Upper::Tcp { ports, .. } | Upper::Udp { ports, .. } => ports,
        Upper::Echo { request: true, identifier, .. } => (identifier, 0),
        Upper::Echo { request: false, identifier, .. } => (0, identifier),
        _ => (0, 0),
    };
    let (source, destination) = recipe.addresses();
    (socket(source, ports.0), socket(destination, ports.1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn summary_has_the_fields_of_the_built_packet(recipe in build::whole()) {
        let bytes = recipe.bytes();
        let summary = PacketSummary::parse(&[&bytes[..], &[0; 5]].concat()).unwrap();
        let (transport, payload_bytes) = match &recipe.upper {
            Upper::Tcp { payload, .. } => (Transport::Tcp { flags: 0x18 }, payload.len()),
            Upper::Udp { payload, .. } => (Transport::Udp, payload.len()),
            Upper::Echo { request, payload, .. } => (Transport::Echo { request: *request }, payload.len()),
            Upper::Error { quoted, keep, .. } => (Transport::IcmpError, *keep.min(&quoted.bytes().len())),
            Upper::Other { payload, .. } => (Transport::Other, payload.len()),
        };
        prop_assert_eq!((summary.transport, summary.payload_bytes as usize), (transport, payload_bytes));
        prop_assert_eq!((summary.source, summary.destination), ends(&recipe));
        prop_assert_eq!(summary.codepoint.bits(), recipe.traffic_class & 3);
        prop_assert_eq!((summary.hop_limit, summary.protocol), (recipe.hop_limit, recipe.protocol()));
        prop_assert_eq!((summary.total_bytes as usize, summary.fragment), (bytes.len(), None));
        prop_assert_eq!(summary.dont_fragment, recipe.v6 || recipe.dont_fragment);
        match &recipe.upper {
            Upper::Error { quoted: inside, .. } => {
                let got = quoted_packet(&bytes).unwrap();
                prop_assert_eq!((got.source, got.destination, got.protocol), (ends(inside).0, ends(inside).1, inside.protocol()));
            }
            _ => prop_assert_eq!(quoted_packet(&bytes), None),
        }
    }

    /// For damaged and intact packets, summary and `parse` agree, except for checks that only the receiver makes.
    #[test]
    fn summary_agrees_with_parse(
        recipe in build::whole(),
        damage in build::damage(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let bytes = build::damaged(recipe.bytes(), &damage, cut);
        let _ = quoted_packet(&bytes);
        let Ok(summary) = PacketSummary::parse(&bytes) else { return Ok(()) };
        // `parse` also skips authentication headers, and parses extension headers where a fragment other than the first
        // has only payload.
        let is_later_fragment = summary.fragment.is_some_and(|fragment| fragment.offset_bytes > 0);
        if summary.protocol == 51 || (is_later_fragment && matches!(summary.protocol, 0 | 43 | 44 | 60)) {
            return Ok(());
        }
        match parse(&bytes) {
            Ok(parsed) => {
                prop_assert_eq!(summary.source.ip(), parsed.source.ip());
                prop_assert_eq!(summary.destination.ip(), parsed.destination.ip());
                prop_assert_eq!((summary.codepoint, summary.hop_limit), (parsed.codepoint, parsed.hop_limit));
                match parsed.content {
                    ParsedContent::Tcp(header, _) => {
                        prop_assert_eq!(summary.source.port(), parsed.source.port());
                        prop_assert_eq!(summary.destination.port(), parsed.destination.port());
                        prop_assert_eq!(summary.transport, Transport::Tcp { flags: header.flags });
                        prop_assert_eq!(summary.payload_bytes, u32::from(header.payload_bytes));
                    }
                    ParsedContent::Udp => {
                        prop_assert_eq!(summary.transport, Transport::Udp);
                        prop_assert_eq!(summary.payload_bytes as usize, parsed.payload.len());
                    }
                    ParsedContent::Fragment { offset_bytes, last, .. } => {
                        let piece = Fragment { offset_bytes, last, identification: parsed.identification };
                        prop_assert_eq!(summary.fragment, Some(piece));
                    }
                    ParsedContent::Other(_) => prop_assert!(summary.fragment.is_none()),
                }
            }
            // The summary does not check transport checksums and TCP options.
            Err(ParseError::Checksum | ParseError::Options) => {}
            Err(other) => prop_assert!(false, "parse returned {other}; summary: {summary:?}"),
        }
    }

    #[test]
    fn arbitrary_bytes_are_summarized_or_rejected(mut noise in prop::collection::vec(any::<u8>(), 0..200), first in prop::sample::select(vec![0x45, 0x4a, 0x60])) {
        let _ = PacketSummary::parse(&noise);
        if let Some(byte) = noise.first_mut() {
            *byte = first;
        }
        let _ = PacketSummary::parse(&noise);
        let _ = quoted_packet(&noise);
    }
}
