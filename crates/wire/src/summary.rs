//! Header fields of a real host's packet at its entry into the network: protocol, addresses, ports and lengths. Parsing
//! allocates no memory and reads no payload.
//!
//! Packets that a router would drop are rejected with a reason (RFC 1812 section 5.2.2: truncated, invalid lengths,
//! wrong header checksum). Packets that no receiver could use are also rejected: invalid fragments, and incomplete
//! transport headers or those with invalid lengths. A first fragment must contain the fixed part of the transport
//! header (RFC 1858, RFC 7112), because NATs and captures need the ports. The receiver checks the checksums of
//! transport headers.

use crate::ip::IpVersion;
use crate::layout::{ICMP_HEADER_BYTES, Layout, UpperProtocol, word};
use crate::udp::UDP_HEADER_BYTES;
use crate::{Checksum, DONT_FRAGMENT, PacketError};
use fullpipe_units::EcnCodepoint;
use std::net::SocketAddr;

/// The header fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSummary {
    /// IP version.
    pub version: IpVersion,
    /// Source address, with the port of TCP or UDP. An echo request has its identifier as the source port, an echo
    /// reply as the destination port (RFC 792, RFC 4443 section 4.1). Otherwise the port is 0.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// ECN codepoint.
    pub codepoint: EcnCodepoint,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Protocol number after the IP header and extension headers.
    pub protocol: u8,
    /// The transport header.
    pub transport: Transport,
    /// Bytes after the transport header and its options, or after the IP headers if the protocol is unknown.
    pub payload_bytes: u32,
    /// Length of the packet in bytes according to its header, without padding.
    pub total_bytes: u32,
    /// The fragment fields; `None` if the packet is not a fragment.
    pub fragment: Option<Fragment>,
    /// Whether routers must not fragment the packet; always true for IPv6.
    pub dont_fragment: bool,
}

/// The transport header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// Flags, see [`crate::tcp::flags`].
        flags: u16,
    },
    /// UDP.
    Udp,
    /// ICMP or ICMPv6 echo.
    Echo {
        /// Whether it is a request; otherwise it is a reply.
        request: bool,
    },
    /// An ICMP or ICMPv6 error; see [`quoted_packet`].
    IcmpError,
    /// Another ICMP or ICMPv6 message.
    Icmp,
    /// Another protocol, or a fragment other than the first.
    Other,
}

/// Position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Payload bytes of the whole packet before this fragment.
    pub offset_bytes: u32,
    /// Whether this is the last fragment.
    pub last: bool,
    /// Identification of the whole packet.
    pub identification: u32,
}

/// Addresses and protocol of the packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedPacket {
    /// Source of the quoted packet, which is the destination of the error; ports as in [`PacketSummary::source`].
    pub source: SocketAddr,
    /// Destination of the quoted packet.
    pub destination: SocketAddr,
    /// Protocol number.
    pub protocol: u8,
}

impl PacketSummary {
    /// Parses one packet, which may be a fragment. Bytes beyond its length are ignored.
    ///
    /// # Errors
    /// Returns [`PacketError`] if the packet is malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<PacketSummary, PacketError> {
        let layout = Layout::whole(bytes)?;
        let bytes = &bytes[..layout.total];
        let (ecn, hop_limit, dont_fragment) = match layout.version {
            IpVersion::V4 => {
                if Checksum::default().add(&bytes[..header_bytes(bytes)]).finish() != 0 {
                    return Err(PacketError::BadHeaderChecksum);
                }
                (bytes[1], bytes[8], word(bytes, 6) & DONT_FRAGMENT != 0)
            }
            IpVersion::V6 => (bytes[1] >> 4, bytes[7], true),
        };
        let (source, destination) = ends(&layout, bytes);
        let payload = &bytes[layout.transport..];
        let (transport, transport_bytes) = transport(layout.upper, payload);
        Ok(PacketSummary {
            version: layout.version,
            source,
            destination,
            codepoint: EcnCodepoint::from_bits(ecn),
            hop_limit,
            protocol: layout.protocol,
            transport,
            payload_bytes: transport_bytes as u32,
            total_bytes: layout.total as u32,
            fragment: layout.piece.map(|piece| Fragment {
                offset_bytes: piece.offset_bytes,
                last: piece.last,
                identification: piece.identification,
            }),
            dont_fragment,
        })
    }
}

/// Returns the packet quoted by an ICMP error; `None` if this is not an ICMP error or the quoted packet is malformed.
pub fn quoted_packet(bytes: &[u8]) -> Option<QuotedPacket> {
    let layout = Layout::whole(bytes).ok().filter(|layout| layout.upper == UpperProtocol::IcmpError)?;
    let inside = &bytes[layout.transport + ICMP_HEADER_BYTES..layout.total];
    let quoted = Layout::quoted(inside).ok()?;
    let (source, destination) = ends(&quoted, inside);
    Some(QuotedPacket { source, destination, protocol: quoted.protocol })
}

/// Size of an IPv4 header with a valid layout, in bytes.
#[inline]
fn header_bytes(bytes: &[u8]) -> usize {
    usize::from(bytes[0] & 0xf) * 4
}

#[inline]
fn ends(layout: &Layout, bytes: &[u8]) -> (SocketAddr, SocketAddr) {
    let (source, destination) = layout.addresses(bytes);
    let ports = layout.ports(bytes);
    (SocketAddr::new(source, ports.0), SocketAddr::new(destination, ports.1))
}

/// Returns the transport header and the size of its payload. A UDP datagram may be shorter than the payload of its
/// packet.
#[inline]
fn transport(upper: UpperProtocol, payload: &[u8]) -> (Transport, usize) {
    let length = payload.len();
    match upper {
        UpperProtocol::Tcp => {
            let words = word(payload, 12);
            (Transport::Tcp { flags: words & 0x1ff }, length - usize::from(words >> 12) * 4)
        }
        UpperProtocol::Udp => {
            let datagram = usize::from(word(payload, 4)).min(length);
            (Transport::Udp, datagram - UDP_HEADER_BYTES as usize)
        }
        UpperProtocol::Echo { request } => (Transport::Echo { request }, length - ICMP_HEADER_BYTES),
        UpperProtocol::IcmpError => (Transport::IcmpError, length - ICMP_HEADER_BYTES),
        UpperProtocol::Icmp => (Transport::Icmp, length - ICMP_HEADER_BYTES),
        UpperProtocol::Other => (Transport::Other, length),
    }
}
