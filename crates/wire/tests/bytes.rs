//! Bytes of packets, compared with manual calculations, with an independent parser, and after a round trip.

#![allow(missing_docs, reason = "a test")]

use etherparse::{IpSlice, TcpHeaderSlice, UdpHeaderSlice};
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::tcp::{MAX_SACK_BLOCKS, flags, options};
use fullpipe_wire::{
    AccurateEcn, FragmentRange, IpPacket, IpVersion, ParseError, ParsedContent, SackBlock, SegmentOptions, TcpHeader,
    TransportHeader, WriteError, parse,
};
use proptest::prelude::*;
use std::net::SocketAddr;

fn ends(version: IpVersion) -> [SocketAddr; 2] {
    match version {
        IpVersion::V4 => ["10.0.0.1:49152", "10.0.0.2:443"],
        IpVersion::V6 => ["[fd66:756c:6c70::1]:49152", "[fd66:756c:6c70::2]:443"],
    }
    .map(|end| end.parse().unwrap())
}

fn packet(transport: TransportHeader, version: IpVersion) -> IpPacket<'static> {
    let [source, destination] = ends(version);
    IpPacket {
        source,
        destination,
        codepoint: EcnCodepoint::NotEct,
        hop_limit: 63,
        identification: 0x1_2345,
        dont_fragment: matches!(transport, TransportHeader::Tcp { .. }),
        transport,
        payload: None,
        fragment: None,
        corrupted: false,
    }
}

fn tcp(header: TcpHeader) -> TransportHeader {
    TransportHeader::Tcp { header, options: SegmentOptions::default() }
}

fn udp(payload_bytes: u32) -> TransportHeader {
    TransportHeader::Udp { payload_bytes }
}

fn bytes_of(packet: &IpPacket<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let length = packet.write(usize::MAX, &mut out);
    assert_eq!(length, Ok(out.len() as u32));
    out
}

/// Encoded TCP options of a header.
fn options_of(header: TcpHeader, side: SegmentOptions) -> Vec<u8> {
    bytes_of(&packet(TransportHeader::Tcp { header, options: side }, IpVersion::V4))[40..].to_vec()
}

/// A SYN as sent by Linux. The checksums are computed by hand: sums of 16-bit words in hexadecimal.
#[test]
fn syn_bytes_match_a_manual_calculation() {
    let header = TcpHeader {
        sequence: 0x0102_0304,
        timestamp: 0x0a0b_0c0d,
        flags: flags::SYN,
        window: 0xfaf0,
        mss: 1460,
        window_scale: 7,
        options: options::MSS | options::SACK_PERMITTED | options::TIMESTAMPS | options::WINDOW_SCALE,
        ..TcpHeader::default()
    };
    let bytes = bytes_of(&packet(tcp(header), IpVersion::V4));
    // 4500 + 003c + 2345 + 4000 + 3f06 + 0a00 + 0001 + 0a00 + 0002 = fb8a, complement 0475.
    let ip = [
        0x45, 0, 0, 60, 0x23, 0x45, 0x40, 0, 63, 6, 0x04, 0x75, // 10.0.0.1, 10.0.0.2
        10, 0, 0, 1, 10, 0, 0, 2,
    ];
    // Pseudo-header 0a00 + 0001 + 0a00 + 0002 + 0006 + 0028 = 1431; ports c000 + 01bb; numbers 0102 + 0304; a002 + faf0;
    // options 0204 + 05b4 + 0402 + 080a + 0a0b + 0c0d + 0000 + 0000 + 0103 + 0307: together 2a2ca; folded a2cc;
    // complement 5d33.
    let tcp = [
        0xc0, 0, 0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0x5d, 0x33, 0,
        0, // MSS, SACK permitted
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, // no-operation, window scale
        1, 3, 3, 7,
    ];
    assert_eq!(bytes[..20], ip);
    assert_eq!(bytes[20..], tcp);
}

/// Layouts used by common stacks; kinds and lengths are from the RFCs named in `tcp_options.rs`.
#[test]
fn options_are_aligned_as_in_common_stacks() {
    let nothing = SegmentOptions::default();
    let with = |options| TcpHeader {
        options,
        mss: 1460,
        window_scale: 7,
        timestamp: 1,
        timestamp_echo: 2,
        ..TcpHeader::default()
    };
    let stamp = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(options_of(with(options::TIMESTAMPS), nothing), [&[1, 1][..], &stamp].concat());
    assert_eq!(
        options_of(with(options::MSS | options::SACK_PERMITTED | options::WINDOW_SCALE), nothing),
        [2, 4, 0x05, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]
    );
    assert_eq!(
        options_of(with(options::MSS | options::TIMESTAMPS | options::WINDOW_SCALE), nothing),
        [&[2, 4, 0x05, 0xb4, 1, 1][..], &stamp, &[1, 3, 3, 7]].concat()
    );
    let mut side = nothing;
    side.sacks[0] = SackBlock { start: 0x0101_0101, end: 0x0202_0202 };
    let sack = [5, 10, 1, 1, 1, 1, 2, 2, 2, 2];
    let one = TcpHeader { sack_count: 1, ..TcpHeader::default() };
    assert_eq!(options_of(one, side), [&[1, 1][..], &sack].concat());
    let both = TcpHeader { sack_count: 1, ..with(options::TIMESTAMPS) };
    assert_eq!(options_of(both, side), [&stamp[..], &sack].concat());
}

#[test]
fn accurate_ecn_and_fast_open_options_have_the_expected_bytes() {
    let accurate_ecn =
        AccurateEcn { ect0_bytes: 0x01_0203, ce_bytes: 0x04_0506, ect1_bytes: 0x07_0809, fields: 3, ect1_first: false };
    let side = |accurate_ecn| SegmentOptions { accurate_ecn, ..SegmentOptions::default() };
    let header =
        |bytes| TcpHeader { options: options::ACCURATE_ECN, other_option_bytes: bytes, ..TcpHeader::default() };
    assert_eq!(options_of(header(11), side(accurate_ecn)), [172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
    let first = AccurateEcn { ect1_first: true, ..accurate_ecn };
    assert_eq!(options_of(header(11), side(first)), [174, 11, 7, 8, 9, 4, 5, 6, 1, 2, 3, 1]);
    let one = AccurateEcn { fields: 1, ..first };
    assert_eq!(options_of(header(5), side(one)), [174, 5, 7, 8, 9, 1, 1, 1]);
    let mut cookie = SegmentOptions { fast_open_bytes: 8, ..SegmentOptions::default() };
    cookie.fast_open_cookie[..8].copy_from_slice(b"ABCDEFGH");
    let header = TcpHeader { options: options::FAST_OPEN, other_option_bytes: 10, ..TcpHeader::default() };
    assert_eq!(options_of(header, cookie), *b"\x22\x0aABCDEFGH\x01\x01");
    let request = TcpHeader { options: options::FAST_OPEN, other_option_bytes: 2, ..TcpHeader::default() };
    assert_eq!(options_of(request, SegmentOptions::default()), [34, 2, 1, 1]);
}

/// RFC 3168 figure 1, RFC 8200 section 3: version 6, traffic class 03, flow label 0.
#[test]
fn ipv6_datagram_bytes_match_a_manual_calculation() {
    let packet = packet(udp(3), IpVersion::V6);
    let bytes = bytes_of(&IpPacket { codepoint: EcnCodepoint::Ce, payload: Some(&[1, 2, 3]), ..packet });
    assert_eq!(bytes[..8], [0x60, 0x30, 0, 0, 0, 11, 17, 63]);
    let address = |last| [0xfd, 0x66, 0x75, 0x6c, 0x6c, 0x70, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    assert_eq!((&bytes[8..24], &bytes[24..40]), (&address(1)[..], &address(2)[..]));
    // Twice fd66 + 756c + 6c70 = 3be84; + 1 + 2 + 000b + 0011; ports c000 + 01bb; length 000b; 0102 + 0300:
    // 3be84 + 1f + c1bb + b + 402 = 4846b; folded 846f; complement 7b90.
    assert_eq!(bytes[40..], [0xc0, 0, 0x01, 0xbb, 0, 11, 0x7b, 0x90, 1, 2, 3]);
}

#[test]
fn udp_checksum_of_zero_is_sent_as_all_ones() {
    // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000a + c000 + 01bb + 000a = d5e3; + 2a1c = ffff, whose complement is zero.
    let bytes = bytes_of(&IpPacket { payload: Some(&[0x2a, 0x1c]), ..packet(udp(2), IpVersion::V4) });
    assert_eq!(bytes[26..28], [0xff, 0xff]);
    assert_eq!(parse(&bytes).map(|parsed| parsed.content), Ok(ParsedContent::Udp));
}

/// The concatenated payloads of the fragments are the datagram that would have been sent whole.
#[test]
fn fragment_payloads_concatenate_to_the_whole_datagram() {
    let payload: Vec<u8> = (1..=100).collect();
    for version in [IpVersion::V4, IpVersion::V6] {
        let whole = IpPacket { payload: Some(&payload), ..packet(udp(100), version) };
        let expected = bytes_of(&whole);
        let expected = &expected[version.header_bytes() as usize..];
        let mut got = Vec::new();
        for (offset_bytes, length_bytes, last) in [(0, 48, false), (48, 48, false), (96, 12, true)] {
            let fragment = Some(FragmentRange { offset_bytes, length_bytes, last });
            let bytes = bytes_of(&IpPacket { fragment, ..whole });
            assert_eq!(bytes.len() as u32, version.fragment_header_bytes() + length_bytes);
            let parsed = parse(&bytes).unwrap();
            assert_eq!(parsed.content, ParsedContent::Fragment { offset_bytes, last, protocol: 17 });
            assert_eq!(parsed.identification, if version == IpVersion::V4 { 0x2345 } else { 0x1_2345 });
            got.extend_from_slice(parsed.payload);
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn impossible_packets_are_errors() {
    let error_of = |packet: IpPacket<'_>| packet.write(usize::MAX, &mut Vec::new()).unwrap_err();
    let error = |transport| error_of(packet(transport, IpVersion::V4));
    // The maximum is 65 535 - 20 - 8 = 65 507 bytes.
    assert_eq!(error(udp(65_508)), WriteError::TooLong);
    assert_eq!(error(udp(u32::MAX - 28)), WriteError::TooLong);
    let mixed = IpPacket { destination: ends(IpVersion::V6)[1], ..packet(udp(0), IpVersion::V4) };
    assert_eq!(error_of(mixed), WriteError::NotIp);
    // 8 + 10 bytes do not contain a part of 19.
    let fragment = Some(FragmentRange { offset_bytes: 0, length_bytes: 19, last: true });
    assert_eq!(error_of(IpPacket { fragment, ..packet(udp(10), IpVersion::V4) }), WriteError::TooLong);
    // 10 + 34 bytes exceed 40.
    let full = TcpHeader { options: options::TIMESTAMPS, sack_count: 4, ..TcpHeader::default() };
    assert_eq!(error(tcp(full)), WriteError::OptionsTooLong);
    assert_eq!(error(tcp(TcpHeader { sack_count: 9, ..TcpHeader::default() })), WriteError::OptionsTooLong);
}

#[test]
fn snap_length_keeps_the_beginning() {
    let header = TcpHeader { payload_bytes: 1000, ..TcpHeader::default() };
    let packet = IpPacket { payload: Some(&[7; 1000]), ..packet(tcp(header), IpVersion::V4) };
    let whole = bytes_of(&packet);
    for snap_bytes in [0, 10, 40, 41, 500, 1039, 1040, 2000] {
        let mut out = vec![9];
        assert_eq!(packet.write(snap_bytes, &mut out), Ok(1040));
        assert_eq!(out[1..], whole[..snap_bytes.min(1040)]);
    }
}

#[test]
fn flipped_bit_makes_the_checksum_wrong() {
    for transport in [tcp(TcpHeader::default()), udp(0), udp(7)] {
        let packet = IpPacket { corrupted: true, ..packet(transport, IpVersion::V4) };
        assert_eq!(parse(&bytes_of(&packet)), Err(ParseError::Checksum));
    }
}

fn tcp_header() -> impl Strategy<Value = (TcpHeader, SegmentOptions)> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u16>());
    let present = (0..0x40_u8, 0..=MAX_SACK_BLOCKS, 0..=3_u8, 0..=16_u8, 0..0x200_u16, 0..2000_u16, any::<u8>());
    let side = (any::<[u32; 8]>(), any::<[u8; 16]>(), 0..1_u32 << 24, 0..1_u32 << 24, 0..1_u32 << 24, any::<bool>());
    (numbers, present, side).prop_filter_map("the options fit", |(numbers, present, side)| {
        let (sequence, acknowledgement, timestamp, timestamp_echo, window, mss, _) = numbers;
        let (options, sack_count, fields, fast_open_bytes, flags, payload_bytes, window_scale) = present;
        let (edges, fast_open_cookie, ect0_bytes, ce_bytes, ect1_bytes, ect1_first) = side;
        let has = |option| options & option != 0;
        let mut segment = SegmentOptions::default();
        for (number, block) in segment.sacks.iter_mut().take(sack_count).enumerate() {
            *block = SackBlock { start: edges[2 * number], end: edges[2 * number + 1] };
        }
        let mut other_option_bytes = 0;
        if has(options::ACCURATE_ECN) {
            // Counters that are not on the wire cannot be parsed; their order determines which these are.
            let sent = |place: u8, counter| if place < fields { counter } else { 0 };
            let (ect0_place, ect1_place) = if ect1_first { (2, 0) } else { (0, 2) };
            segment.accurate_ecn = AccurateEcn {
                ect0_bytes: sent(ect0_place, ect0_bytes),
                ce_bytes: sent(1, ce_bytes),
                ect1_bytes: sent(ect1_place, ect1_bytes),
                fields,
                ect1_first,
            };
            other_option_bytes += 2 + 3 * fields;
        }
        if has(options::FAST_OPEN) {
            segment.fast_open_bytes = fast_open_bytes;
            let length = usize::from(fast_open_bytes);
            segment.fast_open_cookie[..length].copy_from_slice(&fast_open_cookie[..length]);
            other_option_bytes += 2 + fast_open_bytes;
        }
        let given = |option, value| if has(option) { value } else { 0 };
        let header = TcpHeader {
            sequence,
            acknowledgement,
            timestamp: given(options::TIMESTAMPS, timestamp),
            timestamp_echo: given(options::TIMESTAMPS, timestamp_echo),
            flags,
            window,
            payload_bytes,
            mss: given(options::MSS, u32::from(mss)) as u16,
            options,
            window_scale: given(options::WINDOW_SCALE, u32::from(window_scale)) as u8,
            sack_count: sack_count as u8,
            other_option_bytes,
        };
        (header.header_bytes() <= 60).then_some((header, segment))
    })
}

fn version() -> impl Strategy<Value = IpVersion> {
    prop_oneof![Just(IpVersion::V4), Just(IpVersion::V6)]
}

/// Checks checksums against another library.
fn check_checksums(bytes: &[u8]) {
    let (header, payload) = match IpSlice::from_slice(bytes).unwrap() {
        IpSlice::Ipv4(v4) => {
            let header = v4.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            (None, (header, v4.payload().payload))
        }
        IpSlice::Ipv6(v6) => (Some(v6.header().to_header()), (Default::default(), v6.payload().payload)),
    };
    let (v4, payload) = payload;
    match (header, bytes[if bytes[0] >> 4 == 4 { 9 } else { 6 }]) {
        (None, 6) => {
            let tcp = TcpHeaderSlice::from_slice(payload).unwrap();
            let rest = &payload[tcp.slice().len()..];
            assert_eq!(tcp.calc_checksum_ipv4_raw(v4.source, v4.destination, rest), Ok(tcp.checksum()));
        }
        (Some(v6), 6) => {
            let tcp = TcpHeaderSlice::from_slice(payload).unwrap();
            let rest = &payload[tcp.slice().len()..];
            assert_eq!(tcp.calc_checksum_ipv6_raw(v6.source, v6.destination, rest), Ok(tcp.checksum()));
        }
        (None, _) => {
            let udp = UdpHeaderSlice::from_slice(payload).unwrap().to_header();
            assert_eq!(udp.calc_checksum_ipv4_raw(v4.source, v4.destination, &payload[8..]), Ok(udp.checksum));
        }
        (Some(v6), _) => {
            let udp = UdpHeaderSlice::from_slice(payload).unwrap().to_header();
            assert_eq!(udp.calc_checksum_ipv6_raw(v6.source, v6.destination, &payload[8..]), Ok(udp.checksum));
        }
    }
}

proptest! {
    #[test]
    fn written_segment_is_parsed_unchanged((header, side) in tcp_header(), version in version(), bits in 0..4_u8, fill in any::<u8>()) {
        let transport = TransportHeader::Tcp { header, options: side };
        let payload = vec![fill; usize::from(header.payload_bytes)];
        // Zeros as bytes and as a length only give the same result.
        let given = (fill != 0).then_some(&payload[..]);
        let packet = IpPacket { codepoint: EcnCodepoint::from_bits(bits), payload: given, ..packet(transport, version) };
        let bytes = bytes_of(&packet);
        check_checksums(&bytes);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(parsed.content, ParsedContent::Tcp(header, Box::new(side)));
        prop_assert_eq!(parsed.payload, &payload[..]);
        prop_assert_eq!([parsed.source, parsed.destination], ends(version));
        prop_assert_eq!((parsed.codepoint, parsed.hop_limit), (packet.codepoint, 63));
    }

    #[test]
    fn written_datagram_is_parsed_unchanged(payload in prop::collection::vec(any::<u8>(), 0..1500), version in version()) {
        let bytes = bytes_of(&IpPacket { payload: Some(&payload), ..packet(udp(payload.len() as u32), version) });
        check_checksums(&bytes);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!((parsed.content, parsed.payload), (ParsedContent::Udp, &payload[..]));
    }

    /// Parsing arbitrary bytes returns a packet or an error.
    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(
        (header, side) in tcp_header(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = bytes_of(&packet(TransportHeader::Tcp { header, options: side }, IpVersion::V4));
        let _ = parse(&bytes[..cut.index(bytes.len())]);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = parse(&bytes);
        let _ = parse(&noise);
        // Arbitrary options with a correct checksum.
        let mut options = noise;
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut raw = etherparse::TcpHeader::new(1, 2, 3, 4);
        raw.set_options_raw(&options).unwrap();
        let mut ip = etherparse::Ipv4Header::new(raw.header_len_u16(), 64, etherparse::IpNumber::TCP, [1; 4], [2; 4]).unwrap();
        ip.header_checksum = ip.calc_header_checksum();
        raw.checksum = raw.calc_checksum_ipv4(&ip, &[]).unwrap();
        let whole = [ip.to_bytes().to_vec(), raw.to_bytes().to_vec()].concat();
        prop_assert!(matches!(parse(&whole), Ok(_) | Err(ParseError::Options)), "{:?}", parse(&whole));
    }
}

#[test]
fn options_with_wrong_length_are_rejected_and_unknown_ones_skipped() {
    let parsed = |options: &[u8]| {
        let mut raw = etherparse::TcpHeader::new(1, 2, 3, 4);
        raw.set_options_raw(options).unwrap();
        let mut ip =
            etherparse::Ipv4Header::new(raw.header_len_u16(), 64, etherparse::IpNumber::TCP, [1; 4], [2; 4]).unwrap();
        ip.header_checksum = ip.calc_header_checksum();
        raw.checksum = raw.calc_checksum_ipv4(&ip, &[]).unwrap();
        let whole = [ip.to_bytes().to_vec(), raw.to_bytes().to_vec()].concat();
        parse(&whole).map(|parsed| match parsed.content {
            ParsedContent::Tcp(header, _) => (header.options, header.mss, header.sack_count),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(parsed(&[2, 0, 1, 1]), Err(ParseError::Options));
    assert_eq!(parsed(&[2, 1, 1, 1]), Err(ParseError::Options));
    assert_eq!(parsed(&[1, 1, 2, 4]), Err(ParseError::Options));
    assert_eq!(parsed(&[1, 1, 1, 2]), Err(ParseError::Options));
    // An unknown kind of four bytes, then an MSS. Options after the end of the list are ignored.
    assert_eq!(parsed(&[200, 4, 9, 9, 2, 4, 5, 0xb4]), Ok((options::MSS, 1460, 0)));
    assert_eq!(parsed(&[0, 2, 4, 5, 2, 4, 5, 0xb4]), Ok((0, 0, 0)));
    // An MSS option of three bytes, and a SACK option with half a block.
    assert_eq!(parsed(&[2, 3, 5, 1, 5, 6, 0, 0, 0, 0, 1, 1]), Ok((0, 0, 0)));
}

/// A bit error must not turn a checksum into "no checksum". Sums by hand: pseudo-header 0a00 + 0001 + 0a00 + 0002 +
/// 0011 + 0008, length 0008, ports c000 + 2bda make fffe, complement 1. With 100 zeros of payload the two lengths are
/// 006c, and the port is 2b12.
#[test]
fn corrupted_checksum_of_one_does_not_become_zero() {
    let to = |port| SocketAddr::new(ends(IpVersion::V4)[1].ip(), port);
    let packet = IpPacket { corrupted: true, ..packet(udp(0), IpVersion::V4) };
    let bytes = bytes_of(&IpPacket { destination: to(0x2bda), ..packet });
    assert_eq!(bytes[26..28], [0, 1 ^ 2]);
    assert_eq!(parse(&bytes), Err(ParseError::Checksum));

    // The same for a fragment that ends with the checksum.
    let fragment = Some(FragmentRange { offset_bytes: 0, length_bytes: 8, last: false });
    let bytes = bytes_of(&IpPacket { destination: to(0x2b12), transport: udp(100), fragment, ..packet });
    assert_eq!(bytes[26..28], [0, 1 ^ 2]);
}

/// RFC 8200 section 4.5: only the first fragment contains the extension headers that follow its fragment header. The
/// bytes at their position in a later fragment are payload.
#[test]
fn later_ipv6_fragment_has_no_extension_headers() {
    let source = "fd66:756c:6c70::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let destination = "fd66:756c:6c70::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    // Destination options announced; offset 1448, the last fragment; the second of the 16 bytes would be a length of
    // 2048.
    let payload = [0xff_u8; 16];
    let fragment = [60, 0, 0x05, 0xa8, 1, 2, 3, 4];
    let bytes = [&[0x60, 0, 0, 0, 0, 24, 44, 60][..], &source, &destination, &fragment, &payload].concat();
    let parsed = parse(&bytes).unwrap();
    assert_eq!(parsed.content, ParsedContent::Fragment { offset_bytes: 1448, last: true, protocol: 60 });
    assert_eq!((parsed.identification, parsed.hop_limit), (0x0102_0304, 60));
    assert_eq!((parsed.payload, parsed.source.to_string()), (&payload[..], "[fd66:756c:6c70::1]:0".to_owned()));
}
