//! From bytes to what they say: IP headers by the `etherparse` library, transport headers checked against their
//! checksums.

use crate::ip::IpVersion;
use crate::layout::Layout;
use crate::tcp::{SegmentOptions, TcpHeader, flags};
use crate::udp::UDP_HEADER_BYTES;
use crate::{Checksum, protocol, tcp_options};
use etherparse::{IpSlice, Ipv6ExtensionSlice, TcpSlice, UdpSlice};
use fullpipe_units::Codepoint;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// What an IP packet says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// Where it comes from; port 0 if it has no ports.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Its ECN bits.
    pub codepoint: Codepoint,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Identification; 0 for an IPv6 packet that is no fragment.
    pub identification: u32,
    /// What it carries.
    pub content: ParsedContent,
    /// What follows the last header understood.
    pub payload: &'a [u8],
}

/// What a parsed packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedContent {
    /// A TCP segment.
    Tcp(TcpHeader, Box<SegmentOptions>),
    /// A UDP datagram.
    Udp,
    /// A fragment; ports and checksum belong to the whole.
    Fragment {
        /// Payload bytes of the whole before this fragment's.
        offset_bytes: u32,
        /// Whether it is the last.
        last: bool,
        /// Protocol of the whole.
        protocol: u8,
    },
    /// Another protocol.
    Other(u8),
}

/// Why bytes are no packet that may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// IP header, lengths or extension headers are wrong.
    Ip,
    /// TCP or UDP header or length is wrong.
    Transport,
    /// A TCP option has a length below two or beyond the header's end (RFC 9293 MUST-7 asks to be prepared).
    Options,
    /// A checksum is wrong.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Malformed::Ip => "the IP header is malformed",
            Malformed::Transport => "the transport header is malformed",
            Malformed::Options => "the TCP options are malformed",
            Malformed::Checksum => "a checksum is wrong",
        })
    }
}

impl std::error::Error for Malformed {}

/// Reads one whole IPv4 or IPv6 packet; bytes beyond the length that its header tells are left out.
///
/// # Errors
/// See [`Malformed`].
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, Malformed> {
    if let Some(fragment) = later_fragment_v6(bytes) {
        return Ok(fragment);
    }
    let ip = IpSlice::from_slice(bytes).map_err(|_| Malformed::Ip)?;
    let mut fragment = None;
    let (ecn, hop_limit, identification) = match &ip {
        IpSlice::Ipv4(v4) => {
            let header = v4.header();
            if Checksum::default().add(header.slice()).finish() != 0 {
                return Err(Malformed::Checksum);
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
                    // A header without a second fragment ("atomic", RFC 6946) makes no fragment.
                    fragment =
                        header.is_fragmenting_payload().then(|| (header.fragment_offset(), header.more_fragments()));
                }
            }
            (v6.header().ecn(), v6.header().hop_limit(), identification)
        }
    };
    let number = ip.payload_ip_number().0;
    let payload = match &ip {
        IpSlice::Ipv4(v4) => v4.payload().payload,
        IpSlice::Ipv6(v6) => v6.payload().payload,
    };
    let addresses = (ip.source_addr(), ip.destination_addr());
    let (ports, content, payload) = match (fragment, number) {
        (Some((offset, more)), _) => {
            let offset_bytes = u32::from(offset.value()) * 8;
            ((0, 0), ParsedContent::Fragment { offset_bytes, last: !more, protocol: number }, payload)
        }
        (None, protocol::TCP) => tcp(addresses, payload)?,
        (None, protocol::UDP) => udp(addresses, payload)?,
        (None, other) => ((0, 0), ParsedContent::Other(other), payload),
    };
    Ok(Parsed {
        source: SocketAddr::new(addresses.0, ports.0),
        destination: SocketAddr::new(addresses.1, ports.1),
        codepoint: Codepoint::from_bits(ecn.value()),
        hop_limit,
        identification,
        content,
        payload,
    })
}

/// An IPv6 fragment other than the first. What its fragment header announces stands in the first one only, extension headers
/// too: nothing behind it may be read as one.
fn later_fragment_v6(bytes: &[u8]) -> Option<Parsed<'_>> {
    let layout = Layout::whole(bytes).ok().filter(|layout| layout.version == IpVersion::V6)?;
    let piece = layout.piece.filter(|piece| piece.offset_bytes > 0)?;
    let (source, destination) = layout.addresses(bytes);
    Some(Parsed {
        source: SocketAddr::new(source, 0),
        destination: SocketAddr::new(destination, 0),
        codepoint: Codepoint::from_bits(bytes[1] >> 4),
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

fn verify(addresses: (IpAddr, IpAddr), number: u8, bytes: &[u8]) -> Result<(), Malformed> {
    if sum(addresses, number, bytes).finish() == 0 { Ok(()) } else { Err(Malformed::Checksum) }
}

fn tcp(addresses: (IpAddr, IpAddr), bytes: &[u8]) -> Result<Transport<'_>, Malformed> {
    let segment = TcpSlice::from_slice(bytes).map_err(|_| Malformed::Transport)?;
    verify(addresses, protocol::TCP, bytes)?;
    let raw = segment.header_slice();
    let mut header = TcpHeader {
        sequence: segment.sequence_number(),
        acknowledgement: segment.acknowledgment_number(),
        flags: u16::from_be_bytes([raw[12], raw[13]]) & (flags::AE | 0xff),
        window: segment.window_size(),
        payload_bytes: u16::try_from(segment.payload().len()).map_err(|_| Malformed::Transport)?,
        ..TcpHeader::default()
    };
    let mut side = Box::<SegmentOptions>::default();
    tcp_options::read(segment.options(), &mut header, &mut side).ok_or(Malformed::Options)?;
    let payload = &bytes[raw.len()..];
    Ok(((segment.source_port(), segment.destination_port()), ParsedContent::Tcp(header, side), payload))
}

fn udp(addresses: (IpAddr, IpAddr), bytes: &[u8]) -> Result<Transport<'_>, Malformed> {
    let datagram = UdpSlice::from_slice(bytes).map_err(|_| Malformed::Transport)?;
    // Without a checksum only IPv4 carries UDP (RFC 768, RFC 8200 section 8.1).
    if datagram.checksum() != 0 || addresses.0.is_ipv6() {
        verify(addresses, protocol::UDP, datagram.slice())?;
    }
    let payload = &bytes[UDP_HEADER_BYTES as usize..datagram.slice().len()];
    Ok(((datagram.source_port(), datagram.destination_port()), ParsedContent::Udp, payload))
}
