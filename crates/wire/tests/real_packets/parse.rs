//! `parse` compared with the `etherparse` library: both accept the same packets with equal fields, and reject the
//! others for the same reason.

use crate::build::{self, Upper, internet_checksum};
use etherparse::{
    IpSlice, Ipv4HeaderSlice, Ipv6ExtensionSlice, Ipv6FragmentHeaderSlice, Ipv6RawExtHeaderSlice, TcpOptionElement,
    TcpOptionsIterator, TcpSlice, UdpSlice,
};
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::tcp::options;
use fullpipe_wire::{ParseError, ParsedContent, ParsedPacket, SackBlock, SegmentOptions, TcpHeader, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

// The reference: etherparse finds headers and fields. This file adds rules that etherparse does not have.

/// Expected result of `parse`. TCP options that etherparse does not support (Accurate ECN, Fast Open) are omitted.
fn reference(bytes: &[u8]) -> Result<ParsedPacket<'_>, ParseError> {
    if let Some(fragment) = later_fragment_v6(bytes) {
        return Ok(fragment);
    }
    if let Some(fragment) = later_fragment_v4(bytes) {
        return fragment;
    }
    let ip = IpSlice::from_slice(bytes).map_err(|_| ParseError::Ip)?;
    let mut fragment = None;
    let (ecn, hop_limit, identification) = match &ip {
        IpSlice::Ipv4(v4) => {
            let header = v4.header();
            if internet_checksum(&[header.slice()]) != 0 {
                return Err(ParseError::Checksum);
            }
            if header.is_fragmenting_payload() {
                fragment = Some((header.fragments_offset(), header.more_fragments()));
            }
            (header.ecn(), header.ttl(), u32::from(header.identification()))
        }
        IpSlice::Ipv6(v6) => {
            let mut identification = 0;
            for extension in v6.extensions().clone() {
                if let Ipv6ExtensionSlice::Fragment(header) = extension {
                    identification = header.identification();
                    let position = (header.fragment_offset(), header.more_fragments());
                    fragment = header.is_fragmenting_payload().then_some(position);
                }
            }
            (v6.header().ecn(), v6.header().hop_limit(), identification)
        }
    };
    let (protocol, payload) = (ip.payload().ip_number.0, ip.payload().payload);
    let addresses = (ip.source_addr(), ip.destination_addr());
    let (ports, content, payload) = match (fragment, protocol) {
        (Some((offset, more)), _) => {
            let offset_bytes = u32::from(offset.value()) * 8;
            ((0, 0), ParsedContent::Fragment { offset_bytes, last: !more, protocol }, payload)
        }
        (None, 6) => {
            let segment = TcpSlice::from_slice(payload).map_err(|_| ParseError::Transport)?;
            check_sum(addresses, 6, payload)?;
            let ports = (segment.source_port(), segment.destination_port());
            (ports, tcp_content(&segment)?, &payload[segment.header_slice().len()..])
        }
        (None, 17) => {
            let datagram = UdpSlice::from_slice(payload).map_err(|_| ParseError::Transport)?;
            match (datagram.checksum(), addresses.0.is_ipv6()) {
                (0, true) => return Err(ParseError::Checksum),
                (0, false) => {}
                _ => check_sum(addresses, 17, datagram.slice())?,
            }
            let ports = (datagram.source_port(), datagram.destination_port());
            (ports, ParsedContent::Udp, &payload[8..datagram.slice().len()])
        }
        (None, other) => ((0, 0), ParsedContent::Other(other), payload),
    };
    Ok(ParsedPacket {
        source: SocketAddr::new(addresses.0, ports.0),
        destination: SocketAddr::new(addresses.1, ports.1),
        codepoint: EcnCodepoint::from_bits(ecn.value()),
        hop_limit,
        identification,
        content,
        payload,
    })
}

/// An IPv4 fragment other than the first: etherparse would parse the payload of protocol 51 as an authentication
/// header.
fn later_fragment_v4(bytes: &[u8]) -> Option<Result<ParsedPacket<'_>, ParseError>> {
    let header = Ipv4HeaderSlice::from_slice(bytes).ok().filter(|header| header.fragments_offset().value() > 0)?;
    let payload = bytes.get(header.slice().len()..usize::from(header.total_len()))?;
    if internet_checksum(&[header.slice()]) != 0 {
        return Some(Err(ParseError::Checksum));
    }
    Some(Ok(ParsedPacket {
        source: SocketAddr::new(header.source_addr().into(), 0),
        destination: SocketAddr::new(header.destination_addr().into(), 0),
        codepoint: EcnCodepoint::from_bits(header.ecn().value()),
        hop_limit: header.ttl(),
        identification: header.identification().into(),
        content: ParsedContent::Fragment {
            offset_bytes: u32::from(header.fragments_offset().value()) * 8,
            last: !header.more_fragments(),
            protocol: header.protocol().0,
        },
        payload,
    }))
}

/// A valid IPv6 fragment other than the first: etherparse would parse its payload as extension headers.
fn later_fragment_v6(bytes: &[u8]) -> Option<ParsedPacket<'_>> {
    let header = etherparse::Ipv6HeaderSlice::from_slice(bytes).ok()?;
    let mut rest = bytes[40..].get(..usize::from(header.payload_length()))?;
    let mut protocol = header.next_header().0;
    for number in 0..8 {
        match protocol {
            0 | 43 | 60 if protocol != 0 || number == 0 => {
                let extension = Ipv6RawExtHeaderSlice::from_slice(rest).ok()?;
                protocol = extension.next_header().0;
                rest = &rest[extension.slice().len()..];
            }
            44 => {
                let extension = Ipv6FragmentHeaderSlice::from_slice(rest).ok()?;
                protocol = extension.next_header().0;
                rest = &rest[8..];
                let (offset_bytes, more) =
                    (u32::from(extension.fragment_offset().value()) * 8, extension.more_fragments());
                if offset_bytes == 0 && !more {
                    continue;
                }
                let is_valid = !rest.is_empty() && offset_bytes as usize + rest.len() <= 65_535;
                let is_aligned = !more || rest.len() % 8 == 0;
                return (offset_bytes > 0 && is_valid && is_aligned).then(|| ParsedPacket {
                    source: SocketAddr::new(IpAddr::V6(header.source_addr()), 0),
                    destination: SocketAddr::new(IpAddr::V6(header.destination_addr()), 0),
                    codepoint: EcnCodepoint::from_bits(header.traffic_class()),
                    hop_limit: header.hop_limit(),
                    identification: extension.identification(),
                    content: ParsedContent::Fragment { offset_bytes, last: !more, protocol },
                    payload: rest,
                });
            }
            _ => return None,
        }
    }
    None
}

fn pseudo_header((source, destination): (IpAddr, IpAddr), protocol: u8, length: usize) -> Vec<u8> {
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    [octets(source), octets(destination), (length as u32).to_be_bytes().to_vec(), vec![0, 0, 0, protocol]].concat()
}

fn check_sum(addresses: (IpAddr, IpAddr), protocol: u8, bytes: &[u8]) -> Result<(), ParseError> {
    let pseudo = pseudo_header(addresses, protocol, bytes.len());
    if internet_checksum(&[&pseudo, bytes]) == 0 { Ok(()) } else { Err(ParseError::Checksum) }
}

fn tcp_content(segment: &TcpSlice<'_>) -> Result<ParsedContent, ParseError> {
    let bit = |is_set, value| if is_set { value } else { 0 };
    let mut header = TcpHeader {
        sequence: segment.sequence_number(),
        acknowledgement: segment.acknowledgment_number(),
        // RFC 9293 section 3.1, RFC 9768 section 3.1.
        flags: bit(segment.fin(), 1)
            | bit(segment.syn(), 2)
            | bit(segment.rst(), 4)
            | bit(segment.psh(), 8)
            | bit(segment.ack(), 16)
            | bit(segment.urg(), 32)
            | bit(segment.ece(), 64)
            | bit(segment.cwr(), 128)
            | bit(segment.ns(), 256),
        window: segment.window_size(),
        payload_bytes: segment.payload().len() as u16,
        ..TcpHeader::default()
    };
    let mut side = SegmentOptions::default();
    // One option at a time, because etherparse stops at unknown options.
    let mut rest = segment.options();
    while let Some(kind) = rest.first().copied().filter(|kind| *kind != 0) {
        let length = if kind == 1 { 1 } else { usize::from(*rest.get(1).ok_or(ParseError::Options)?) };
        if length == 0 || (kind != 1 && length < 2) {
            return Err(ParseError::Options);
        }
        let option = rest.get(..length).ok_or(ParseError::Options)?;
        rest = &rest[length..];
        match TcpOptionsIterator::from_slice(option).next() {
            Some(Ok(TcpOptionElement::MaximumSegmentSize(mss))) => {
                (header.mss, header.options) = (mss, header.options | options::MSS);
            }
            Some(Ok(TcpOptionElement::WindowScale(shift))) => {
                (header.window_scale, header.options) = (shift, header.options | options::WINDOW_SCALE);
            }
            Some(Ok(TcpOptionElement::SelectiveAcknowledgementPermitted)) => header.options |= options::SACK_PERMITTED,
            Some(Ok(TcpOptionElement::Timestamp(value, echo))) => {
                (header.timestamp, header.timestamp_echo) = (value, echo);
                header.options |= options::TIMESTAMPS;
            }
            Some(Ok(TcpOptionElement::SelectiveAcknowledgement(first, others))) => {
                let blocks = std::iter::once(first).chain(others.into_iter().flatten());
                header.sack_count = 0;
                for (start, end) in blocks {
                    side.sacks[usize::from(header.sack_count)] = SackBlock { start, end };
                    header.sack_count += 1;
                }
            }
            _ => {}
        }
    }
    Ok(ParsedContent::Tcp(header, Box::new(side)))
}

/// Compares `parse` with the reference, and returns whether the packet was accepted.
fn compare(bytes: &[u8]) -> bool {
    let mut found = parse(bytes);
    if let Ok(ParsedPacket { content: ParsedContent::Tcp(header, side), .. }) = &mut found {
        header.options &= !(options::ACCURATE_ECN | options::FAST_OPEN);
        header.other_option_bytes = 0;
        **side = SegmentOptions { sacks: side.sacks, ..SegmentOptions::default() };
    }
    assert_eq!(found, reference(bytes), "{bytes:02x?}");
    found.is_ok()
}

// Packets with arbitrary lengths and header chains, but mostly correct checksums, so that they are not rejected because
// of those.

/// Protocol numbers of extension headers, and others that end the chain.
const HEADERS: [u8; 8] = [0, 43, 44, 51, 60, 6, 17, 59];

#[derive(Clone, Debug)]
struct Arbitrary {
    v6: bool,
    fixed: [u8; 40],
    /// IPv4 flags and fragment offset; mostly zero.
    fragment: u16,
    ipv4_options: Vec<u8>,
    /// IPv4 header length, if it is not the correct one.
    header_words: Option<u8>,
    /// Error added to the correct IP length field; `None` sets the field to zero.
    length_error: Option<i8>,
    /// Extension headers: number, length units, content.
    extensions: Vec<(u8, u8, Vec<u8>)>,
    protocol: u8,
    transport: Vec<u8>,
    /// TCP data offset.
    data_offset: u8,
    /// Error added to the correct UDP length; `None` sets the field to zero.
    udp_error: Option<i8>,
    is_checksum_right: bool,
    behind: Vec<u8>,
}

fn arbitrary() -> impl Strategy<Value = Arbitrary> {
    let error = || prop_oneof![5 => Just(Some(0)), 2 => (-9..9_i8).prop_map(Some), 1 => Just(None)];
    let number = prop::sample::select(&HEADERS[..5]);
    let extension = (number, 0..3_u8, vec(any::<u8>(), 24)).prop_map(|(number, units, mut content)| {
        if number == 44 && content[0] % 2 == 0 {
            // An atomic fragment.
            (content[2], content[3]) = (0, 0);
        }
        (number, units, content)
    });
    let ip = (any::<bool>(), any::<[u8; 40]>(), prop_oneof![4 => Just(0), 1 => Just(0x4000), 1 => any::<u16>()]);
    let options = (0..4_usize).prop_flat_map(|words| vec(any::<u8>(), words * 4));
    let lengths = (prop_oneof![7 => Just(None), 1 => (0..16_u8).prop_map(Some)], error(), vec(extension, 0..3));
    let tcp_option = prop_oneof![
        Just(vec![1]),
        Just(vec![2, 4, 5, 0xb4]),
        Just(vec![3, 3, 7]),
        Just(vec![4, 2]),
        vec(any::<u8>(), 8).prop_map(|value| [vec![8, 10], value].concat()),
        vec(any::<u8>(), 16).prop_map(|value| [vec![5, 18], value].concat()),
        vec(any::<u8>(), 0..6),
    ];
    let tcp = (any::<[u8; 20]>(), vec(tcp_option, 0..5), vec(any::<u8>(), 0..30))
        .prop_map(|(fixed, options, payload)| [&fixed[..], &options.concat(), &payload].concat());
    let transport = prop_oneof![2 => tcp, 1 => vec(any::<u8>(), 0..60)];
    let upper = (prop::sample::select(&HEADERS[..]), transport, prop_oneof![3 => 5..9_u8, 1 => 0..16_u8], error());
    let rest = (prop::bool::weighted(0.9), vec(any::<u8>(), 0..4));
    (ip, options, lengths, upper, rest).prop_map(|(ip, ipv4_options, lengths, upper, rest)| Arbitrary {
        v6: ip.0,
        fixed: ip.1,
        fragment: ip.2,
        ipv4_options,
        header_words: lengths.0,
        length_error: lengths.1,
        extensions: lengths.2,
        protocol: upper.0,
        transport: upper.1,
        data_offset: upper.2,
        udp_error: upper.3,
        is_checksum_right: rest.0,
        behind: rest.1,
    })
}

impl Arbitrary {
    fn bytes(&self) -> Vec<u8> {
        let (mut next, mut extensions) = (self.protocol, Vec::new());
        for (number, units, content) in self.extensions.iter().rev() {
            let length = match number {
                44 => 8,
                51 => 8 + usize::from(*units) * 4,
                _ => 8 + usize::from(*units) * 8,
            };
            let header = [&[next, *units], &content[..length - 2]].concat();
            extensions = [header, extensions].concat();
            next = *number;
        }
        let mut fixed = self.fixed;
        let addresses = if self.v6 { 8..40 } else { 12..20 };
        let transport = self.transport(&fixed[addresses]);
        let payload = [extensions, transport].concat();
        let length =
            |field: usize| self.length_error.map_or(0, |error| field.saturating_add_signed(error.into()) as u16);
        if self.v6 {
            fixed[0] = 0x60 | fixed[0] & 0xf;
            fixed[4..6].copy_from_slice(&length(payload.len()).to_be_bytes());
            fixed[6] = next;
            return [&fixed[..], &payload, &self.behind].concat();
        }
        let mut header = [&fixed[..20], &self.ipv4_options].concat();
        header[0] = 0x40 | self.header_words.unwrap_or(header.len() as u8 / 4);
        let total = length(header.len() + payload.len()).to_be_bytes();
        header[2..4].copy_from_slice(&total);
        header[6..8].copy_from_slice(&self.fragment.to_be_bytes());
        header[9] = next;
        header[10..12].fill(0);
        let mut packet = [&header[..], &payload, &self.behind].concat();
        let stated = usize::from(packet[0] & 0xf) * 4;
        let checksum = internet_checksum(&[&packet[..stated.min(packet.len())]]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// The transport header and payload, with the checksum.
    fn transport(&self, addresses: &[u8]) -> Vec<u8> {
        let mut bytes = self.transport.clone();
        let (checksum_at, covered) = match self.protocol {
            6 if bytes.len() >= 20 => {
                bytes[12] = self.data_offset << 4 | bytes[12] & 0xf;
                (16, bytes.len())
            }
            17 if bytes.len() >= 8 => {
                let length = self.udp_error.map_or(0, |error| bytes.len().saturating_add_signed(error.into())) as u16;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
                let covered = if length == 0 { bytes.len() } else { usize::from(length).clamp(8, bytes.len()) };
                (6, covered)
            }
            _ => return bytes,
        };
        bytes[checksum_at..checksum_at + 2].fill(0);
        let length = (covered as u32).to_be_bytes();
        let pseudo = [addresses, &length, &[0, 0, 0, self.protocol]].concat();
        let mut checksum = internet_checksum(&[&pseudo, &bytes[..covered]]);
        checksum ^= u16::from(!self.is_checksum_right);
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }
}

/// The Internet checksum of this datagram is zero, which a sender transmits as 0xffff (RFC 768). The source port makes
/// it so: the other words of the pseudo-header and the datagram are 0x2001, 0x0db8, 1 (source), 0x2001, 0x0db8, 2
/// (destination), 8 (length), 17 (protocol), 9 (destination port) and 8 (length); their sum is 0x5b9f, and
/// 0xffff - 0x5b9f = 0xa460.
#[test]
fn zero_udp_checksum_over_ipv6_is_rejected_even_if_the_sum_agrees() {
    let host = |last| [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[last]].concat();
    let packet = |checksum: [u8; 2]| {
        let udp = [0xa4, 0x60, 0, 9, 0, 8, checksum[0], checksum[1]];
        [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &host(1), &host(2), &udp].concat()
    };
    assert_eq!(parse(&packet([0, 0])), Err(ParseError::Checksum));
    assert_eq!(parse(&packet([0xff, 0xff])).map(|found| found.source.port()), Ok(0xa460));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_parsed_as_by_etherparse(mut bytes in vec(any::<u8>(), 0..120), version in 0..4_u8) {
        if let (Some(first), 0..2) = (bytes.first_mut(), version) {
            *first = if version == 0 { 0x45 } else { 0x60 };
        }
        compare(&bytes);
    }

    #[test]
    fn valid_packets_are_accepted_and_mutated_ones_parsed_as_by_etherparse(
        recipe in build::whole(),
        damage in build::damage(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let bytes = recipe.bytes();
        // RFC 8200 section 8.1: UDP over IPv6 needs a checksum.
        let is_valid = !(recipe.v6 && matches!(recipe.upper, Upper::Udp { checksum: false, .. }));
        prop_assert_eq!(compare(&bytes), is_valid);
        compare(&build::damaged(bytes, &damage, cut));
    }

    #[test]
    fn packets_with_arbitrary_lengths_and_headers_are_parsed_as_by_etherparse(packet in arbitrary()) {
        compare(&packet.bytes());
    }
}
