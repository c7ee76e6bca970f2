//! Parser of whole packets: IPv4 (RFC 791), IPv6 with extension headers (RFC 8200), authentication headers (RFC 4302),
//! TCP (RFC 9293) and UDP (RFC 768), with every checksum.
//!
//! Packets come from programs and networks, so each length is checked before the bytes are read. The tests compare the
//! results with those of the `etherparse` library.

use crate::ip::{IPV4_HEADER_BYTES, IpVersion};
use crate::layout::{Layout, OFFSET, OFFSET_V6, word};
use crate::tcp::{SegmentOptions, TCP_HEADER_BYTES, TcpHeader, flags};
use crate::{Checksum, MORE_FRAGMENTS, protocol, tcp_options};
use fullpipe_units::EcnCodepoint;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A parsed IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPacket<'a> {
    /// Source address and port; port 0 if there are no ports.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// ECN codepoint.
    pub codepoint: EcnCodepoint,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Identification; 0 for an IPv6 packet that is not a fragment.
    pub identification: u32,
    /// Transport content.
    pub content: ParsedContent,
    /// Bytes after the last parsed header.
    pub payload: &'a [u8],
}

/// Transport content of a parsed packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedContent {
    /// A TCP segment.
    Tcp(TcpHeader, Box<SegmentOptions>),
    /// A UDP datagram.
    Udp,
    /// A fragment. Ports and checksum belong to the whole packet.
    Fragment {
        /// Payload bytes of the whole packet before this fragment.
        offset_bytes: u32,
        /// Whether this is the last fragment.
        last: bool,
        /// Protocol of the whole packet.
        protocol: u8,
    },
    /// Another protocol, with this protocol number.
    Other(u8),
}

/// Reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The IP header, its lengths or the extension headers are invalid.
    Ip,
    /// The TCP or UDP header or its length is invalid.
    Transport,
    /// A TCP option has a length below two or beyond the end of the header. RFC 9293 MUST-7 requires that such options
    /// cause no failure.
    Options,
    /// A checksum is wrong.
    Checksum,
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ParseError::Ip => "the IP header is malformed",
            ParseError::Transport => "the transport header is malformed",
            ParseError::Options => "the TCP options are malformed",
            ParseError::Checksum => "a checksum is wrong",
        })
    }
}

impl std::error::Error for ParseError {}

/// Parses one whole IPv4 or IPv6 packet. Bytes beyond the length in its header are ignored.
///
/// # Errors
/// Returns [`ParseError`] if a header is malformed or a checksum is wrong.
pub fn parse(bytes: &[u8]) -> Result<ParsedPacket<'_>, ParseError> {
    if let Some(fragment) = later_fragment_v6(bytes) {
        return Ok(fragment);
    }
    let ip = match bytes.first().map(|first| first >> 4) {
        Some(4) => ipv4(bytes)?,
        Some(6) => ipv6(bytes).ok_or(ParseError::Ip)?,
        _ => return Err(ParseError::Ip),
    };
    let (ports, content, payload) = match (ip.fragment, ip.protocol) {
        (Some(FragmentPosition { offset_bytes, last }), protocol) => {
            ((0, 0), ParsedContent::Fragment { offset_bytes, last, protocol }, ip.payload)
        }
        (None, protocol::TCP) => tcp(ip.addresses, ip.payload)?,
        (None, protocol::UDP) => udp(ip.addresses, ip.payload)?,
        (None, other) => ((0, 0), ParsedContent::Other(other), ip.payload),
    };
    Ok(ParsedPacket {
        source: SocketAddr::new(ip.addresses.0, ports.0),
        destination: SocketAddr::new(ip.addresses.1, ports.1),
        codepoint: ip.codepoint,
        hop_limit: ip.hop_limit,
        identification: ip.identification,
        content,
        payload,
    })
}

/// The fields of a packet's IP headers, including extension headers.
struct Ip<'a> {
    addresses: (IpAddr, IpAddr),
    codepoint: EcnCodepoint,
    hop_limit: u8,
    identification: u32,
    fragment: Option<FragmentPosition>,
    /// The protocol of the payload.
    protocol: u8,
    payload: &'a [u8],
}

/// Position of a fragment in the whole packet.
struct FragmentPosition {
    offset_bytes: u32,
    last: bool,
}

impl FragmentPosition {
    /// Returns `None` for a whole packet, even if it has a fragment header ("atomic", RFC 6946).
    fn new(offset_bytes: u32, last: bool) -> Option<FragmentPosition> {
        (offset_bytes > 0 || !last).then_some(FragmentPosition { offset_bytes, last })
    }
}

fn ipv4(bytes: &[u8]) -> Result<Ip<'_>, ParseError> {
    let header: &[u8; IPV4_HEADER_BYTES as usize] = bytes.first_chunk().ok_or(ParseError::Ip)?;
    let header_bytes = usize::from(header[0] & 0xf) * 4;
    if header_bytes < header.len() {
        return Err(ParseError::Ip);
    }
    let packet = bytes.get(..usize::from(word(header, 2))).ok_or(ParseError::Ip)?;
    let (with_options, mut payload) = packet.split_at_checked(header_bytes).ok_or(ParseError::Ip)?;
    let fragment = word(header, 6);
    let offset_bytes = u32::from(fragment & OFFSET) * 8;
    let mut protocol = header[9];
    // Only the first fragment has the authentication header (RFC 791 section 3.2).
    if protocol == protocol::AUTHENTICATION && offset_bytes == 0 {
        (protocol, payload) = authentication_header(payload).ok_or(ParseError::Ip)?;
    }
    if Checksum::default().add(with_options).finish() != 0 {
        return Err(ParseError::Checksum);
    }
    let &[.., a, b, c, d, e, f, g, h] = header;
    Ok(Ip {
        addresses: ([a, b, c, d].into(), [e, f, g, h].into()),
        codepoint: EcnCodepoint::from_bits(header[1]),
        hop_limit: header[8],
        identification: u32::from(word(header, 4)),
        fragment: FragmentPosition::new(offset_bytes, fragment & MORE_FRAGMENTS == 0),
        protocol,
        payload,
    })
}

/// Returns `None` if the packet or an extension header is shorter than its length field requires, or hop-by-hop options
/// are not first.
fn ipv6(bytes: &[u8]) -> Option<Ip<'_>> {
    let (header, rest) = bytes.split_first_chunk::<8>()?;
    let (source, rest) = rest.split_first_chunk::<16>()?;
    let (destination, rest) = rest.split_first_chunk::<16>()?;
    // Jumbograms have a length of zero (RFC 2675). Their length is in an option, which is not parsed: all bytes count.
    let mut payload = match word(header, 4) {
        0 => rest,
        stated => rest.get(..usize::from(stated))?,
    };
    let mut protocol = header[6];
    if protocol == protocol::IPV6_HOP_BY_HOP {
        (protocol, payload) = options_header(payload)?;
    }
    let (mut identification, mut fragment) = (0, None);
    loop {
        (protocol, payload) = match protocol {
            protocol::IPV6_HOP_BY_HOP => return None,
            protocol::IPV6_DESTINATION_OPTIONS | protocol::IPV6_ROUTING => options_header(payload)?,
            protocol::AUTHENTICATION => authentication_header(payload)?,
            protocol::IPV6_FRAGMENT => {
                let (&[next, _, a, b, c, d, e, f], rest) = payload.split_first_chunk()?;
                let offset = u16::from_be_bytes([a, b]);
                identification = u32::from_be_bytes([c, d, e, f]);
                fragment = FragmentPosition::new(u32::from(offset & OFFSET_V6), offset & 1 == 0);
                (next, rest)
            }
            _ => break,
        };
    }
    Some(Ip {
        addresses: ((*source).into(), (*destination).into()),
        codepoint: EcnCodepoint::from_bits(header[1] >> 4),
        hop_limit: header[7],
        identification,
        fragment,
        protocol,
        payload,
    })
}

/// Returns the protocol and the bytes after an extension header. Its length field counts units of eight bytes beyond
/// the first.
fn options_header(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let &[next, length, ..] = bytes else { return None };
    Some((next, bytes.get(8 + usize::from(length) * 8..)?))
}

/// Returns the protocol and the bytes after an authentication header. Its length field counts units of four bytes
/// beyond two, and the header has at least twelve bytes (RFC 4302 section 2).
fn authentication_header(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let &[next, length, ..] = bytes else { return None };
    if length == 0 {
        return None;
    }
    Some((next, bytes.get(8 + usize::from(length) * 4..)?))
}

/// Parses an IPv6 fragment other than the first. Only the first fragment contains the extension headers that the
/// fragment header announces, so the bytes of later ones must not be parsed as headers.
fn later_fragment_v6(bytes: &[u8]) -> Option<ParsedPacket<'_>> {
    let layout = Layout::whole(bytes).ok().filter(|layout| layout.version == IpVersion::V6)?;
    let piece = layout.piece.filter(|piece| piece.offset_bytes > 0)?;
    let (source, destination) = layout.addresses(bytes);
    Some(ParsedPacket {
        source: SocketAddr::new(source, 0),
        destination: SocketAddr::new(destination, 0),
        codepoint: EcnCodepoint::from_bits(bytes[1] >> 4),
        hop_limit: bytes[7],
        identification: piece.identification,
        content: ParsedContent::Fragment {
            offset_bytes: piece.offset_bytes,
            last: piece.last,
            protocol: layout.protocol,
        },
        payload: &bytes[layout.transport..layout.total],
    })
}

type Transport<'a> = ((u16, u16), ParsedContent, &'a [u8]);

/// The sum over pseudo-header and transport bytes.
pub(crate) fn sum(addresses: (IpAddr, IpAddr), number: u8, bytes: &[u8]) -> Checksum {
    let mut checksum = Checksum::default().add_number(u32::from(number)).add_number(bytes.len() as u32);
    for address in [addresses.0, addresses.1] {
        checksum = match address {
            IpAddr::V4(address) => checksum.add(&address.octets()),
            IpAddr::V6(address) => checksum.add(&address.octets()),
        };
    }
    checksum.add(bytes)
}

fn verify(addresses: (IpAddr, IpAddr), number: u8, bytes: &[u8]) -> Result<(), ParseError> {
    if sum(addresses, number, bytes).finish() == 0 { Ok(()) } else { Err(ParseError::Checksum) }
}

fn tcp(addresses: (IpAddr, IpAddr), bytes: &[u8]) -> Result<Transport<'_>, ParseError> {
    let fixed: &[u8; TCP_HEADER_BYTES as usize] = bytes.first_chunk().ok_or(ParseError::Transport)?;
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    let options = bytes.get(fixed.len()..header_bytes).ok_or(ParseError::Transport)?;
    verify(addresses, protocol::TCP, bytes)?;
    let payload = &bytes[header_bytes..];
    let mut header = TcpHeader {
        sequence: u32::from(word(fixed, 4)) << 16 | u32::from(word(fixed, 6)),
        acknowledgement: u32::from(word(fixed, 8)) << 16 | u32::from(word(fixed, 10)),
        flags: word(fixed, 12) & (flags::AE | 0xff),
        window: word(fixed, 14),
        payload_bytes: u16::try_from(payload.len()).map_err(|_| ParseError::Transport)?,
        ..TcpHeader::default()
    };
    let mut side = Box::<SegmentOptions>::default();
    tcp_options::read(options, &mut header, &mut side).ok_or(ParseError::Options)?;
    Ok(((word(fixed, 0), word(fixed, 2)), ParsedContent::Tcp(header, side), payload))
}

fn udp(addresses: (IpAddr, IpAddr), bytes: &[u8]) -> Result<Transport<'_>, ParseError> {
    // Jumbograms have a length of zero here, too (RFC 2675 section 4).
    let datagram = match word(bytes, 4) {
        0 => bytes,
        stated => bytes.get(..usize::from(stated)).ok_or(ParseError::Transport)?,
    };
    let (&[a, b, c, d, _, _, e, f], payload) = datagram.split_first_chunk().ok_or(ParseError::Transport)?;
    // Zero means that the sender computed no checksum, which is permitted only over IPv4 (RFC 768, RFC 8200 section
    // 8.1). Over IPv6, zero is wrong even if it matches the sum of the datagram.
    match ([e, f], addresses.0.is_ipv6()) {
        ([0, 0], true) => return Err(ParseError::Checksum),
        ([0, 0], false) => {}
        _ => verify(addresses, protocol::UDP, datagram)?,
    }
    let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Ok((ports, ParsedContent::Udp, payload))
}
