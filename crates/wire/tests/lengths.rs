//! Every length that `parse` checks: a truncated packet, or one whose length field is too small or too large, is an
//! error.

#![allow(missing_docs, reason = "a test")]

use fullpipe_wire::{ParseError, ParsedContent, parse};

/// RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum: u32 =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Writes the checksum of an IPv4 header.
fn seal(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum);
}

/// An IPv4 packet with a correct header checksum. `words` and `total` are the header's length fields.
fn ipv4_with(words: u8, total: usize, options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (total as u16).to_be_bytes();
    let fixed = [0x40 | words, 0, total[0], total[1], 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let mut bytes = [&fixed[..], options, payload].concat();
    let header_bytes = (usize::from(words) * 4).clamp(20, bytes.len());
    seal(&mut bytes[..header_bytes]);
    bytes
}

fn ipv4(options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header_bytes = 20 + options.len();
    ipv4_with(header_bytes as u8 / 4, header_bytes + payload.len(), options, protocol, payload)
}

fn ipv6_with(length: usize, next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (length as u16).to_be_bytes();
    let (source, destination) = ([0xfd; 16], [0xfe; 16]);
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &source, &destination, payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    ipv6_with(payload.len(), next, payload)
}

/// A segment from 10.0.0.1 to 10.0.0.2 with a correct checksum.
fn tcp(data_offset: u8, rest: &[u8]) -> Vec<u8> {
    let fixed = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, data_offset << 4, 0x10, 0, 9, 0, 0, 0, 0];
    let mut bytes = [&fixed[..], rest].concat();
    let pseudo = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, bytes.len() as u8];
    let sum = checksum(&[&pseudo[..], &bytes].concat());
    bytes[16..18].copy_from_slice(&sum);
    bytes
}

/// A datagram without a checksum.
fn udp(length: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 1, 0, 2, 0, length, 0, 0][..], payload].concat()
}

/// Packets with each kind of header at least once.
fn valid() -> Vec<Vec<u8>> {
    let options = [1; 4];
    let authentication = [17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let extension = |next| [next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let last_fragment = [17, 0, 0, 8, 0, 0, 0, 1];
    vec![
        ipv4(&[], 6, &tcp(5, b"abc")),
        ipv4(&options, 6, &tcp(6, &[2, 4, 5, 0xb4, 7, 7])),
        ipv4(&options, 17, &udp(11, b"abc")),
        ipv4(&[], 51, &[&authentication[..], &udp(11, b"abc")].concat()),
        ipv6(132, b"abc"),
        ipv6(0, &[&extension(60)[..], &extension(43), &extension(132), b"abc"].concat()),
        ipv6(51, &[&[132, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2][..], b"abc"].concat()),
        ipv6(44, &[&last_fragment[..], b"abc"].concat()),
    ]
}

#[test]
fn truncated_packets_are_malformed() {
    for packet in valid() {
        assert!(parse(&packet).is_ok(), "{packet:02x?}");
        for length in 0..packet.len() {
            assert_eq!(parse(&packet[..length]), Err(ParseError::Ip), "{length} bytes of {packet:02x?}");
        }
    }
}

#[test]
fn ip_lengths_that_contradict_the_bytes_are_malformed() {
    for words in 0..5 {
        assert_eq!(parse(&ipv4_with(words, 23, &[], 132, b"abc")), Err(ParseError::Ip), "{words} words");
    }
    // 23 bytes: less than a header of 24, then the number of bytes present, then one more.
    for (words, total, expected) in [
        (6, 23, Err(ParseError::Ip)),
        (5, 19, Err(ParseError::Ip)),
        (5, 20, Ok(0)),
        (5, 23, Ok(3)),
        (5, 24, Err(ParseError::Ip)),
    ] {
        let bytes = ipv4_with(words, total, &[], 132, b"abc");
        assert_eq!(parse(&bytes).map(|parsed| parsed.payload.len()), expected, "{words} words, {total} bytes");
    }
    for (length, expected) in [(1, Ok(1)), (3, Ok(3)), (4, Err(ParseError::Ip)), (0xffff, Err(ParseError::Ip))] {
        let bytes = ipv6_with(length, 132, b"abc");
        assert_eq!(parse(&bytes).map(|parsed| parsed.payload.len()), expected, "{length} bytes");
    }
}

/// RFC 2675: the length field is zero, and the length is in an option, which is not parsed.
#[test]
fn ipv6_packet_with_length_zero_contains_all_bytes() {
    let parsed = parse(&ipv6_with(0, 132, b"abc")).map(|parsed| parsed.payload.to_vec());
    assert_eq!(parsed, Ok(b"abc".to_vec()));
}

#[test]
fn extension_headers_that_exceed_the_packet_are_malformed() {
    // The length counts units of eight bytes beyond the first eight: 16 bytes.
    for number in [0, 43, 60] {
        let header = [132, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse(&ipv6(number, &header)).map(|parsed| parsed.payload.len()), Ok(0));
        for length in 0..16 {
            assert_eq!(parse(&ipv6(number, &header[..length])), Err(ParseError::Ip), "{length} bytes of {number}");
        }
    }
    for length in 0..8 {
        assert_eq!(parse(&ipv6(44, &[0; 8][..length])), Err(ParseError::Ip), "{length} bytes");
    }
    // Units of four bytes beyond the first eight (RFC 4302 section 2.2); at least one, the sequence number.
    let header = [132, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0];
    for (length, expected) in (0..16).map(|length| (length, Err(ParseError::Ip))).chain([(16, Ok(0))]) {
        assert_eq!(parse(&ipv6(51, &header[..length])).map(|parsed| parsed.payload.len()), expected, "{length} bytes");
        assert_eq!(parse(&ipv4(&[], 51, &header[..length])).map(|parsed| parsed.payload.len()), expected);
    }
    let short = [132, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(parse(&ipv6(51, &short)), Err(ParseError::Ip));
    // Hop-by-hop options after another header.
    assert_eq!(
        parse(&ipv6(60, &[&[0, 0, 1, 4, 0, 0, 0, 0][..], &[132, 0, 1, 4, 0, 0, 0, 0]].concat())),
        Err(ParseError::Ip)
    );
}

#[test]
fn transport_headers_that_exceed_the_packet_are_malformed() {
    let parsed = |protocol, payload: &[u8]| parse(&ipv4(&[], protocol, payload)).map(|parsed| parsed.payload.len());
    let segment = tcp(6, &[1, 1, 1, 1, 9]);
    assert_eq!(parsed(6, &segment), Ok(1));
    for length in 0..24 {
        assert_eq!(parsed(6, &segment[..length]), Err(ParseError::Transport), "{length} bytes");
    }
    for data_offset in 0..16 {
        // 25 bytes have a header of five or six words.
        let expected = match data_offset {
            5 => Ok(5),
            6 => Ok(1),
            _ => Err(ParseError::Transport),
        };
        assert_eq!(parsed(6, &tcp(data_offset, &[1, 1, 1, 1, 9])), expected, "{data_offset} words");
    }
    for length in 0..8 {
        assert_eq!(parsed(17, &udp(8, &[])[..length]), Err(ParseError::Transport), "{length} bytes");
    }
    for (length, expected) in (1..8).chain([12]).map(|length| (length, Err(ParseError::Transport))).chain([
        (0, Ok(3)),
        (8, Ok(0)),
        (11, Ok(3)),
    ]) {
        assert_eq!(parsed(17, &udp(length, b"abc")), expected, "length {length}");
    }
}

/// RFC 791 section 3.2: the payload of a later fragment continues that of the first, so it contains no header of its
/// protocol. As an authentication header, its first bytes would have a length of 1028.
#[test]
fn later_ipv4_fragments_of_protocol_51_have_no_authentication_header() {
    let mut bytes = ipv4(&[], 51, &[6, 255, 0, 0, 0, 0, 0, 0]);
    // More fragments, and an offset of two units of eight bytes.
    bytes[6..8].copy_from_slice(&[0x20, 2]);
    seal(&mut bytes[..20]);
    let parsed = parse(&bytes).expect("a valid fragment");
    assert_eq!(parsed.content, ParsedContent::Fragment { offset_bytes: 16, last: false, protocol: 51 });
    assert_eq!(parsed.payload, [6, 255, 0, 0, 0, 0, 0, 0]);
    // The same bytes in the first fragment.
    bytes[7] = 0;
    seal(&mut bytes[..20]);
    assert_eq!(parse(&bytes), Err(ParseError::Ip));
}
