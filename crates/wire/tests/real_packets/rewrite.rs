//! Changed packets, compared byte for byte with packets that are built from the changed description.

use crate::build::{self, Recipe, Upper};
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::rewrite::{corrupt, decrement_hop_limit, flip_bit, set_ecn};
use fullpipe_wire::{AddressTranslation, HopLimitResult, PacketError, ParseError, TranslationError, parse};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

/// A UDP datagram from 10.0.0.1 port 4096 to 10.0.0.2 port 53 with two bytes and checksums computed by hand.
///
/// Header: 4500 + 001e + 0000 + 4011 + 0a00 + 0001 + 0a00 + 0002 = 9932, complement 66cd. Datagram: pseudo-header 0a00
/// + 0001 + 0a00 + 0002 + 0011 + 000a = 141e; ports 1000 + 0035; length 000a; 0102: 141e + 1035 + 000a + 0102 = 255f,
///   complement daa0.
const DATAGRAM: [u8; 30] = [
    0x45, 0, 0, 30, 0, 0, 0, 0, 0x40, 17, 0x66, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0, 53, 0, 10, 0xda, 0xa0, 1, 2,
];

fn changed(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = DATAGRAM.to_vec();
    for (at, value) in changes {
        bytes[*at] = *value;
    }
    bytes
}

fn socket(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn ecn_mark_and_hop_limit_bytes_match_a_manual_calculation() {
    assert!(parse(&DATAGRAM).is_ok());
    // 4500 becomes 4503: the sum 9932 becomes 9935, the complement 66ca.
    let mut bytes = DATAGRAM;
    set_ecn(&mut bytes, EcnCodepoint::Ce).unwrap();
    assert_eq!(bytes[..], changed(&[(1, 3), (11, 0xca)]));
    // 4011 becomes 3d11: the sum becomes 9632, the complement 69cd.
    let mut bytes = DATAGRAM;
    assert_eq!(decrement_hop_limit(&mut bytes, 3), Ok(HopLimitResult::Remaining(61)));
    assert_eq!(bytes[..], changed(&[(8, 61), (10, 0x69)]));
    // RFC 1812 section 5.3.1: a packet whose hop limit would reach zero is not forwarded.
    let mut bytes = DATAGRAM;
    assert_eq!(decrement_hop_limit(&mut bytes, 64), Ok(HopLimitResult::Exceeded));
    assert_eq!(decrement_hop_limit(&mut bytes, 255), Ok(HopLimitResult::Exceeded));
    assert_eq!(bytes, DATAGRAM);
    assert_eq!(decrement_hop_limit(&mut bytes, 63), Ok(HopLimitResult::Remaining(1)));
    assert_eq!(decrement_hop_limit(&mut bytes, 0), Ok(HopLimitResult::Remaining(1)));
    assert_eq!(decrement_hop_limit(&mut bytes, 1), Ok(HopLimitResult::Exceeded));
}

/// RFC 8200 section 3, RFC 3168 section 5: version, eight bits of traffic class that end with ECN, flow label.
#[test]
fn ipv6_ecn_mark_keeps_the_adjacent_bits() {
    let mut bytes = [0xff_u8; 40];
    bytes[0] = 0x6f;
    set_ecn(&mut bytes, EcnCodepoint::NotEct).unwrap();
    assert_eq!(bytes[..3], [0x6f, 0xcf, 0xff]);
    set_ecn(&mut bytes, EcnCodepoint::Ect1).unwrap();
    assert_eq!(bytes[..3], [0x6f, 0xdf, 0xff]);
    set_ecn(&mut bytes, EcnCodepoint::Ect0).unwrap();
    assert_eq!(bytes[..3], [0x6f, 0xef, 0xff]);
    assert_eq!(decrement_hop_limit(&mut bytes, 254), Ok(HopLimitResult::Remaining(1)));
    assert_eq!(bytes[7], 1);
}

#[test]
fn translation_bytes_match_a_manual_calculation() {
    let mut bytes = DATAGRAM;
    let translation = AddressTranslation { source: socket("192.0.2.1:1024"), destination: None };
    translation.apply(&mut bytes).unwrap();
    // 0a00 + 0001 become c000 + 0201. Header: 9932 - 0a01 + c201 = 15132, folded 5133, complement aecc. Datagram, with
    // port 0400 instead of 1000: 255f - 0a01 - 1000 + c201 + 0400 = d15f, complement 2ea0.
    let expected = changed(&[(10, 0xae), (11, 0xcc), (12, 192), (14, 2), (15, 1), (20, 0x04), (26, 0x2e), (27, 0xa0)]);
    assert_eq!(bytes[..], expected);
    // A datagram without a checksum remains without one.
    let mut bytes = changed(&[(26, 0), (27, 0)]);
    translation.apply(&mut bytes).unwrap();
    assert_eq!((bytes[26], bytes[27]), (0, 0));
    // The sum of the datagram without its checksum is 255f. With a destination port of daa0 + 0035 it is ffff, whose
    // complement is zero.
    let mut bytes = DATAGRAM;
    AddressTranslation { source: None, destination: socket("10.0.0.2:56021") }.apply(&mut bytes).unwrap();
    assert_eq!((&bytes[22..24], &bytes[26..28]), (&[0xda, 0xd5][..], &[0xff, 0xff][..]));
}

#[test]
fn translation_rejects_malformed_and_unsupported_packets() {
    let translation = AddressTranslation { source: socket("[::1]:1"), destination: None };
    let mut bytes = DATAGRAM;
    assert_eq!(translation.apply(&mut bytes), Err(TranslationError::VersionMismatch));
    assert_eq!(
        AddressTranslation::default().apply(&mut bytes[..29]),
        Err(TranslationError::Malformed(PacketError::Truncated))
    );
    // Loose source route (131) with one address: the pointer at the address, then after it (RFC 791 section 3.1).
    let datagram = plain(false, Upper::Udp { ports: (1, 2), checksum: true, payload: Vec::new() });
    let routed = |pointer| Recipe { extras: vec![131, 7, pointer, 3, 3, 3, 3, 0], ..datagram.clone() };
    let destination = AddressTranslation { source: None, destination: socket("9.9.9.9:9") };
    let source = AddressTranslation { source: socket("9.9.9.9:9"), destination: None };
    assert_eq!(destination.apply(&mut routed(4).bytes()), Err(TranslationError::SourceRoute));
    assert_eq!(source.apply(&mut routed(4).bytes()), Ok(()));
    assert_eq!(destination.apply(&mut routed(8).bytes()), Ok(()));
}

/// The description of the translated packet. In an echo, the identifier is the port; in an error, the quoted packet is
/// reversed.
fn translated(recipe: &Recipe, translation: AddressTranslation) -> Recipe {
    let mut new = recipe.clone();
    let octets = |address: IpAddr| {
        let mut octets = [0; 16];
        match address {
            IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => octets = address.octets(),
        }
        octets
    };
    let (source, destination) = (translation.source, translation.destination);
    new.source = source.map_or(new.source, |end| octets(end.ip()));
    new.destination = destination.map_or(new.destination, |end| octets(end.ip()));
    match &mut new.upper {
        Upper::Tcp { ports, .. } | Upper::Udp { ports, .. } => {
            ports.0 = source.map_or(ports.0, |end| end.port());
            ports.1 = destination.map_or(ports.1, |end| end.port());
        }
        Upper::Echo { request, identifier, .. } => {
            let asker = if *request { source } else { destination };
            *identifier = asker.map_or(*identifier, |end| end.port());
        }
        Upper::Error { quoted, .. } => {
            **quoted = translated(quoted, AddressTranslation { source: destination, destination: source });
        }
        Upper::Other { .. } => {}
    }
    new
}

/// Whether an ICMP error quotes eight bytes or more of an IPv4 echo, all zeros but for the checksum, and not its end.
fn is_ambiguous(recipe: &Recipe) -> bool {
    let Upper::Error { quoted, keep, .. } = &recipe.upper else { return false };
    let bytes = quoted.bytes();
    let shown = (*keep).min(bytes.len());
    let message = &bytes[quoted.header_bytes()..shown];
    !quoted.v6
        && matches!(quoted.upper, Upper::Echo { .. })
        && shown < bytes.len()
        && message.iter().enumerate().all(|(at, byte)| matches!(at, 2 | 3) || *byte == 0)
}

#[test]
fn checksum_of_a_truncated_quote_with_visible_zeros_assumes_that_the_rest_has_a_one() {
    // An echo reply with identifier 1 and 20 bytes of ones: the sum of its words is 1 (the ones sum to zero), so its
    // checksum is 0xfffe. With identifier 0 the sum is 0xffff and the checksum 0x0000.
    let reply = |identifier| plain(false, Upper::Echo { request: false, identifier, payload: vec![0xff; 20] });
    let error = |identifier| {
        let quoted = reply(identifier);
        let keep = quoted.header_bytes() + 8;
        plain(false, Upper::Error { kind: 3, quoted: Box::new(quoted), keep })
    };
    let mut bytes = error(1).bytes();
    let quoted = error(1).header_bytes() + 8;
    assert_eq!(bytes[quoted + 20..], [0, 0, 0xff, 0xfe, 0, 1, 0, 0]);
    let address = IpAddr::from([10, 0, 0, 1]);
    let translation = AddressTranslation { source: Some(SocketAddr::new(address, 0)), destination: None };
    translation.apply(&mut bytes).unwrap();
    assert_eq!(bytes[quoted + 20..], [0, 0, 0, 0, 0, 0, 0, 0]);
}

fn translation(v6: bool) -> impl Strategy<Value = AddressTranslation> {
    let end = move || {
        (any::<[u8; 16]>(), any::<u16>()).prop_map(move |(octets, port)| {
            let v4 = [octets[0], octets[1], octets[2], octets[3]];
            SocketAddr::new(if v6 { IpAddr::from(octets) } else { IpAddr::from(v4) }, port)
        })
    };
    (prop::option::of(end()), prop::option::of(end()))
        .prop_map(|(source, destination)| AddressTranslation { source, destination })
}

fn translations(recipes: impl Strategy<Value = Recipe>) -> impl Strategy<Value = (Recipe, AddressTranslation)> {
    recipes.prop_flat_map(|recipe| {
        let v6 = recipe.v6;
        (Just(recipe), translation(v6))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn marked_packet_equals_a_packet_built_with_the_mark(recipe in build::whole(), bits in 0..4_u8) {
        let mut bytes = recipe.bytes();
        set_ecn(&mut bytes, EcnCodepoint::from_bits(bits)).unwrap();
        prop_assert_eq!(bytes, Recipe { traffic_class: recipe.traffic_class & !3 | bits, ..recipe }.bytes());
    }

    #[test]
    fn decremented_packet_equals_a_packet_built_with_the_hop_limit(recipe in build::whole(), hops in 0..=255_u8) {
        let mut bytes = recipe.bytes();
        let result = decrement_hop_limit(&mut bytes, hops).unwrap();
        if hops < recipe.hop_limit {
            prop_assert_eq!(result, HopLimitResult::Remaining(recipe.hop_limit - hops));
            prop_assert_eq!(bytes, Recipe { hop_limit: recipe.hop_limit - hops, ..recipe }.bytes());
        } else {
            prop_assert!(result == HopLimitResult::Exceeded || hops == 0);
            prop_assert_eq!(bytes, recipe.bytes());
        }
    }

    #[test]
    fn translated_packet_equals_a_packet_built_with_the_addresses((recipe, translation) in translations(build::whole())) {
        let mut bytes = recipe.bytes();
        // The padding of a frame is kept.
        bytes.extend([0xee; 3]);
        translation.apply(&mut bytes).unwrap();
        let expected = translated(&recipe, translation).bytes();
        // Excluded: a truncated quote of an echo whose sum is zero. Whether its checksum is 0x0000 or 0xffff depends on
        // the bytes that are not quoted.
        prop_assume!(!is_ambiguous(&translated(&recipe, translation)));
        prop_assert_eq!(&bytes[..expected.len()], &expected[..]);
        prop_assert_eq!(&bytes[expected.len()..], &[0xee; 3]);
        if recipe.protocol() == 6 || recipe.protocol() == 17 {
            let no_checksum = recipe.v6 && matches!(recipe.upper, Upper::Udp { checksum: false, .. });
            prop_assert_eq!(parse(&bytes).is_ok(), !no_checksum);
        }
    }

    /// The translated fragments of a packet equal the fragments of the translated packet, including the checksum of the
    /// whole packet.
    #[test]
    fn translated_fragments_equal_fragments_of_the_translated_packet((recipe, translation) in translations(build::long()), cut in any::<prop::sample::Index>()) {
        let whole = recipe.upper_bytes().len();
        // The first fragment contains the whole transport header, at most 60 bytes; the second contains at least one
        // byte.
        let cut = 64 + 8 * cut.index((whole - 57) / 8 - 1);
        for part in [(0, cut), (cut, whole - cut)] {
            let fragment = Recipe { part: Some(part), ..recipe.clone() };
            let mut bytes = fragment.bytes();
            translation.apply(&mut bytes).unwrap();
            prop_assert_eq!(bytes, Recipe { part: Some(part), ..translated(&recipe, translation) }.bytes());
        }
    }

    /// A bit that was flipped before the translation is still flipped afterwards: a wrong checksum is not corrected.
    #[test]
    fn translation_keeps_bit_errors_detectable((recipe, translation) in translations(build::long()), bit in any::<prop::sample::Index>()) {
        let mut bytes = recipe.bytes();
        let mut expected = translated(&recipe, translation).bytes();
        let payload = recipe.header_bytes() + 60;
        let bit = payload * 8 + bit.index((bytes.len() - payload) * 8);
        prop_assert!(flip_bit(&mut bytes, bit) && flip_bit(&mut expected, bit));
        translation.apply(&mut bytes).unwrap();
        prop_assert_eq!(bytes, expected);
    }

    #[test]
    fn corruption_is_detected_by_the_checksum(recipe in build::simple()) {
        let mut bytes = recipe.bytes();
        corrupt(&mut bytes).unwrap();
        let differ: u32 = bytes.iter().zip(recipe.bytes()).map(|(new, old)| (new ^ old).count_ones()).sum();
        prop_assert_eq!(differ, 1);
        match recipe.upper {
            Upper::Tcp { .. } | Upper::Udp { checksum: true, .. } => {
                prop_assert_eq!(parse(&bytes).err(), Some(ParseError::Checksum));
            }
            _ => {}
        }
    }

    /// For arbitrary bytes, the result is a changed packet, or an error with unchanged bytes. Only bytes within the
    /// length of the packet change.
    #[test]
    fn damaged_packets_are_changed_within_their_length_or_rejected(
        recipe in build::whole(),
        damage in build::damage(),
        cut in prop::option::of(any::<prop::sample::Index>()),
        v4 in translation(false),
        v6 in translation(true),
        hops in any::<u8>(),
    ) {
        let original = build::damaged(recipe.bytes(), &damage, cut);
        for translation in [v4, v6] {
            let mut bytes = original.clone();
            if translation.apply(&mut bytes).is_err() {
                prop_assert_eq!(&bytes, &original);
            }
        }
        let mut bytes = original.clone();
        if corrupt(&mut bytes).is_err() {
            prop_assert_eq!(&bytes, &original);
        }
        let _ = set_ecn(&mut bytes, EcnCodepoint::Ce);
        let _ = decrement_hop_limit(&mut bytes, hops);
    }

    #[test]
    fn arbitrary_bytes_are_changed_or_rejected(mut noise in prop::collection::vec(any::<u8>(), 0..200), v4 in translation(false), v6 in translation(true)) {
        for first in [0x45, 0x4f, 0x60] {
            if let Some(byte) = noise.first_mut() {
                *byte = first;
            }
            let mut bytes = noise.clone();
            let _ = v4.apply(&mut bytes);
            let _ = v6.apply(&mut bytes);
            let _ = set_ecn(&mut bytes, EcnCodepoint::Ect0);
            let _ = decrement_hop_limit(&mut bytes, 1);
            let _ = corrupt(&mut bytes);
            let _ = flip_bit(&mut bytes, 700);
        }
    }
}

fn plain(v6: bool, upper: Upper) -> Recipe {
    Recipe {
        v6,
        source: [1; 16],
        destination: [2; 16],
        traffic_class: 0,
        hop_limit: 9,
        identification: 0,
        dont_fragment: false,
        extras: Vec::new(),
        upper,
        part: None,
    }
}

/// RFC 8200 section 4.4: a routing header with one segment left, then with none.
#[test]
fn ipv6_destination_is_translated_only_after_the_last_route_segment() {
    let routed = |segments_left| {
        let mut packet = plain(true, Upper::Udp { ports: (1, 2), checksum: true, payload: Vec::new() });
        packet.extras = vec![0, 0, 1, 4, 0, 0, 0, 0];
        let mut bytes = packet.bytes();
        bytes[6] = 43;
        bytes[40..48].copy_from_slice(&[17, 0, 4, segments_left, 0, 0, 0, 0]);
        bytes
    };
    let destination = AddressTranslation { source: None, destination: socket("[::9]:9") };
    let source = AddressTranslation { source: socket("[::9]:9"), destination: None };
    assert_eq!(destination.apply(&mut routed(1)), Err(TranslationError::SourceRoute));
    assert_eq!(source.apply(&mut routed(1)), Ok(()));
    assert_eq!(destination.apply(&mut routed(0)), Ok(()));
}

/// The packet quoted by an ICMP error can be arbitrary: another IP version, a packet with a source route, a packet
/// shorter than the quotation (RFC 4884 pads it to 128 bytes), or a packet that is too short.
#[test]
fn unusual_quoted_packets_are_translated_or_rejected() {
    let error_with = |quoted: &[u8]| {
        let payload = [&[3, 1, 0, 0, 0, 0, 0, 0], quoted].concat();
        plain(false, Upper::Other { protocol: 1, payload }).bytes()
    };
    let translation = AddressTranslation { source: socket("9.9.9.9:9"), destination: None };
    let datagram = Upper::Udp { ports: (1, 2), checksum: true, payload: Vec::new() };
    let applied = |quoted: &[u8]| {
        let mut bytes = error_with(quoted);
        let result = translation.apply(&mut bytes);
        assert!(result.is_ok() || bytes == error_with(quoted));
        result.map(|()| bytes)
    };
    assert_eq!(applied(&plain(true, datagram.clone()).bytes()), Err(TranslationError::VersionMismatch));
    let routed = Recipe { extras: vec![131, 7, 4, 3, 3, 3, 3, 0], ..plain(false, datagram.clone()) };
    assert_eq!(applied(&routed.bytes()), Err(TranslationError::SourceRoute));
    let short = &plain(false, datagram).bytes()[..27];
    assert_eq!(applied(short), Err(TranslationError::MalformedQuote(PacketError::InvalidTransport)));
    let segment = plain(false, Upper::Other { protocol: 6, payload: vec![5; 8] });
    let padded = applied(&[&segment.bytes()[..], &[0; 100]].concat()).unwrap();
    assert_eq!(padded[28 + 16..28 + 28], [9, 9, 9, 9, 5, 5, 0, 9, 5, 5, 5, 5]);
    assert_eq!(padded[28 + 28..], [0; 100]);
}

/// Pseudo-header 0101 + 0101 + 0202 + 0202 + 0011 + 0008 = 061f, length 0008, ports f9d6 + 0001: fffe, complement 0001.
/// With its lowest bit flipped, it would mean "no checksum".
#[test]
fn corruption_never_removes_a_checksum() {
    let datagram = plain(false, Upper::Udp { ports: (0xf9d6, 1), checksum: true, payload: Vec::new() });
    let mut bytes = datagram.bytes();
    assert_eq!(bytes[26..], [0, 1]);
    corrupt(&mut bytes).unwrap();
    assert_eq!(bytes[26..], [0, 3]);
    assert_eq!(parse(&bytes), Err(ParseError::Checksum));
}

/// RFC 1122 permits both forms of a zero sum. If every other byte is zero, only all ones are valid.
#[test]
fn echo_reply_of_zeros_keeps_a_valid_checksum() {
    let recipe = |identifier| plain(false, Upper::Echo { request: false, identifier, payload: vec![0; 4] });
    let mut bytes = recipe(7).bytes();
    assert_eq!(bytes[22..24], [0xff, 0xf8]);
    AddressTranslation { source: None, destination: socket("2.2.2.2:0") }.apply(&mut bytes).unwrap();
    assert_eq!(bytes[22..24], [0xff, 0xff]);
    AddressTranslation { source: None, destination: socket("2.2.2.2:7") }.apply(&mut bytes).unwrap();
    assert_eq!(bytes[22..24], [0xff, 0xf8]);
}
