//! Location of the headers in a packet: the IPv4 header and options (RFC 791), the IPv6 header and extension headers
//! (RFC 8200 section 4), and the beginning of the transport header.
//!
//! A whole packet must contain all bytes of its length field. A packet quoted by an ICMP error may be truncated
//! anywhere after the first eight bytes of its transport header (RFC 792). An IPv6 packet may have up to eight
//! extension headers; RFC 8883 section 2 permits such a limit, which bounds the work for malicious packets. Headers
//! after an authentication header (RFC 4302) are not parsed, because they must not be changed.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::tcp::TCP_HEADER_BYTES;
use crate::udp::UDP_HEADER_BYTES;
use crate::{MORE_FRAGMENTS, protocol};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Size of an ICMP header in bytes: type, code and checksum (RFC 792, RFC 4443 section 2.1), and the four bytes that
/// follow.
pub(crate) const ICMP_HEADER_BYTES: usize = 8;
const MAX_EXTENSIONS: u32 = 8;
/// Mask of the fragment offset, in units of eight bytes, in the IPv4 word of flags and offset.
pub(crate) const OFFSET: u16 = 0x1fff;
/// Mask of the fragment offset in bytes in the IPv6 fragment header.
pub(crate) const OFFSET_V6: u16 = 0xfff8;
/// Option types of loose and strict source routes (RFC 791 section 3.1).
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketError {
    /// The packet is neither IPv4 nor IPv6.
    UnknownVersion,
    /// There are fewer bytes than the headers and length fields require.
    Truncated,
    /// The IHL field of the IPv4 header is below five, or the Total Length field is smaller than the header length.
    InvalidLength,
    /// The checksum of the IPv4 header is wrong.
    BadHeaderChecksum,
    /// IPv6 extension headers are truncated, out of order, or too many.
    InvalidExtensions,
    /// A fragment is empty, or ends beyond the maximum packet size. Or it is not the last fragment, and its length is
    /// not a multiple of eight bytes.
    InvalidFragment,
    /// The transport header is incomplete, or its lengths are invalid.
    InvalidTransport,
}

impl fmt::Display for PacketError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            PacketError::UnknownVersion => "it is neither IPv4 nor IPv6",
            PacketError::Truncated => "it is shorter than its length field",
            PacketError::InvalidLength => "its header has an invalid length",
            PacketError::BadHeaderChecksum => "the checksum of its IPv4 header is wrong",
            PacketError::InvalidExtensions => "its IPv6 extension headers are malformed",
            PacketError::InvalidFragment => "it is an invalid fragment",
            PacketError::InvalidTransport => "its transport header is malformed",
        })
    }
}

impl std::error::Error for PacketError {}

/// The fields of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentFields {
    pub(crate) offset_bytes: u32,
    pub(crate) last: bool,
    pub(crate) identification: u32,
}

/// The protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpperProtocol {
    Tcp,
    Udp,
    Echo {
        request: bool,
    },
    /// An ICMP error, which quotes a packet. A quoted packet never has this value.
    IcmpError,
    /// Another ICMP message.
    Icmp,
    /// Another protocol, or a fragment other than the first.
    Other,
}

/// The headers of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) version: IpVersion,
    /// Bytes of the packet. For a quoted packet, the number of quoted bytes.
    pub(crate) total: usize,
    /// The index of the transport header or of a fragment's payload.
    pub(crate) transport: usize,
    pub(crate) protocol: u8,
    pub(crate) upper: UpperProtocol,
    pub(crate) piece: Option<FragmentFields>,
    /// Whether a source route has remaining addresses, so that the destination in the header is not the final one.
    pub(crate) source_routed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Quoted,
}

/// A 16-bit number in network byte order; zero if the bytes do not exist.
#[inline]
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

/// The IP version in the first four bits.
#[inline]
pub(crate) fn version(bytes: &[u8]) -> Result<IpVersion, PacketError> {
    match bytes.first().ok_or(PacketError::Truncated)? >> 4 {
        4 => Ok(IpVersion::V4),
        6 => Ok(IpVersion::V6),
        _ => Err(PacketError::UnknownVersion),
    }
}

impl Layout {
    /// The layout of a whole packet. Bytes after the packet's end, such as the padding of a frame, are ignored.
    #[inline]
    pub(crate) fn whole(bytes: &[u8]) -> Result<Layout, PacketError> {
        Layout::of(bytes, Extent::Whole)
    }

    /// The layout of a packet that an ICMP error quotes.
    pub(crate) fn quoted(bytes: &[u8]) -> Result<Layout, PacketError> {
        Layout::of(bytes, Extent::Quoted)
    }

    #[inline]
    fn of(bytes: &[u8], extent: Extent) -> Result<Layout, PacketError> {
        let mut layout = match version(bytes)? {
            IpVersion::V4 => ipv4(bytes, extent)?,
            IpVersion::V6 => ipv6(bytes, extent)?,
        };
        layout.find_upper(&bytes[..layout.total], extent)?;
        Ok(layout)
    }

    /// Determines the transport protocol, and checks that its header is complete.
    #[inline]
    fn find_upper(&mut self, bytes: &[u8], extent: Extent) -> Result<(), PacketError> {
        if self.piece.is_some_and(|piece| piece.offset_bytes > 0) {
            return Ok(());
        }
        let transport = &bytes[self.transport..];
        let (upper, header_bytes) = match (self.protocol, self.version) {
            (protocol::TCP, _) => (UpperProtocol::Tcp, TCP_HEADER_BYTES as usize),
            (protocol::UDP, _) => (UpperProtocol::Udp, UDP_HEADER_BYTES as usize),
            (protocol::ICMP, IpVersion::V4) | (protocol::ICMPV6, IpVersion::V6) => {
                (icmp(self.version, transport, extent), ICMP_HEADER_BYTES)
            }
            _ => return Ok(()),
        };
        let needed = if extent == Extent::Whole { header_bytes } else { ICMP_HEADER_BYTES };
        if transport.len() < needed || (extent == Extent::Whole && !self.is_possible(upper, transport)) {
            return Err(PacketError::InvalidTransport);
        }
        self.upper = upper;
        Ok(())
    }

    /// Whether the lengths in a transport header are valid. A UDP datagram may be shorter than the payload of its
    /// packet.
    #[inline]
    fn is_possible(&self, upper: UpperProtocol, transport: &[u8]) -> bool {
        let is_whole = self.piece.is_none();
        match upper {
            UpperProtocol::Tcp => {
                let header_bytes = usize::from(transport[12] >> 4) * 4;
                header_bytes >= TCP_HEADER_BYTES as usize && header_bytes <= transport.len()
            }
            UpperProtocol::Udp => {
                let length = usize::from(word(transport, 4));
                length >= UDP_HEADER_BYTES as usize && (length <= transport.len() || !is_whole)
            }
            _ => true,
        }
    }

    /// The positions of the source and destination addresses.
    #[inline]
    pub(crate) fn addresses_at(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        match self.version {
            IpVersion::V4 => (12..16, 16..20),
            IpVersion::V6 => (8..24, 24..40),
        }
    }

    /// Source and destination address of the packet with this layout.
    #[inline]
    pub(crate) fn addresses(&self, bytes: &[u8]) -> (IpAddr, IpAddr) {
        let (source, destination) = self.addresses_at();
        (address(&bytes[source]), address(&bytes[destination]))
    }

    /// Source and destination port of TCP and UDP. For an ICMP echo, the port of the requester is the identifier, and
    /// the other port is zero.
    #[inline]
    pub(crate) fn ports(&self, bytes: &[u8]) -> (u16, u16) {
        let at = self.transport;
        match self.upper {
            UpperProtocol::Tcp | UpperProtocol::Udp => (word(bytes, at), word(bytes, at + 2)),
            UpperProtocol::Echo { request: true } => (word(bytes, at + 4), 0),
            UpperProtocol::Echo { request: false } => (0, word(bytes, at + 4)),
            UpperProtocol::IcmpError | UpperProtocol::Icmp | UpperProtocol::Other => (0, 0),
        }
    }
}

#[inline]
fn address(octets: &[u8]) -> IpAddr {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return IpAddr::V4(Ipv4Addr::from(octets));
    }
    IpAddr::V6(<[u8; 16]>::try_from(octets).map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from))
}

/// The kind of an ICMP message. ICMP errors have the types 3, 4, 5, 11 and 12 (RFC 1122 section 3.2.2), ICMPv6 errors
/// types below 128 (RFC 4443 section 2.1). IPv6 redirects (RFC 4861) do not count as errors: they quote a packet only
/// in an option, and they stay on the link.
#[inline]
fn icmp(version: IpVersion, message: &[u8], extent: Extent) -> UpperProtocol {
    let kind = message.first().copied().unwrap_or(u8::MAX);
    let (request, reply, is_error) = match version {
        IpVersion::V4 => (8, 0, matches!(kind, 3 | 4 | 5 | 11 | 12)),
        IpVersion::V6 => (128, 129, kind < 128),
    };
    if is_error && extent == Extent::Whole {
        UpperProtocol::IcmpError
    } else if kind == request || kind == reply {
        UpperProtocol::Echo { request: kind == request }
    } else {
        UpperProtocol::Icmp
    }
}

#[inline]
fn ipv4(bytes: &[u8], extent: Extent) -> Result<Layout, PacketError> {
    let first = bytes.first().copied().unwrap_or(0);
    let header_bytes = usize::from(first & 0xf) * 4;
    if header_bytes < IPV4_HEADER_BYTES as usize {
        return Err(PacketError::InvalidLength);
    }
    let header = bytes.get(..header_bytes).ok_or(PacketError::Truncated)?;
    let stated = usize::from(word(header, 2));
    if stated < header_bytes {
        return Err(PacketError::InvalidLength);
    }
    let total = extent.bytes(stated, bytes)?;
    let fragment = word(header, 6);
    let (offset_bytes, more) = (u32::from(fragment & OFFSET) * 8, fragment & MORE_FRAGMENTS != 0);
    let piece = (offset_bytes > 0 || more).then(|| FragmentFields {
        offset_bytes,
        last: !more,
        identification: u32::from(word(header, 4)),
    });
    if extent == Extent::Whole {
        check_piece(piece, total - header_bytes, header_bytes)?;
    }
    Ok(Layout {
        version: IpVersion::V4,
        total,
        transport: header_bytes,
        protocol: header[9],
        upper: UpperProtocol::Other,
        piece,
        source_routed: is_source_routed(&header[IPV4_HEADER_BYTES as usize..]),
    })
}

/// Whether the options contain a source route with remaining addresses.
fn is_source_routed(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (0, _) => return false,
            (1, _) => rest,
            (kind, [length, value @ ..]) => {
                if SOURCE_ROUTES.contains(&kind) && value.first().is_some_and(|pointer| pointer <= length) {
                    return true;
                }
                options.get(usize::from(*length).max(2)..).unwrap_or_default()
            }
            _ => return false,
        };
    }
    false
}

#[inline]
fn ipv6(bytes: &[u8], extent: Extent) -> Result<Layout, PacketError> {
    let header_bytes = IPV6_HEADER_BYTES as usize;
    let header = bytes.get(..header_bytes).ok_or(PacketError::Truncated)?;
    let total = extent.bytes(header_bytes + usize::from(word(header, 4)), bytes)?;
    let mut layout = Layout {
        version: IpVersion::V6,
        total,
        transport: header_bytes,
        protocol: header[6],
        upper: UpperProtocol::Other,
        piece: None,
        source_routed: false,
    };
    for number in 0.. {
        let is_extension = matches!(
            layout.protocol,
            protocol::IPV6_HOP_BY_HOP
                | protocol::IPV6_ROUTING
                | protocol::IPV6_FRAGMENT
                | protocol::IPV6_DESTINATION_OPTIONS
        );
        if !is_extension || layout.piece.is_some_and(|piece| piece.offset_bytes > 0) {
            break;
        }
        if number == MAX_EXTENSIONS || (layout.protocol == protocol::IPV6_HOP_BY_HOP && number > 0) {
            return Err(PacketError::InvalidExtensions);
        }
        layout.pass_extension(&bytes[layout.transport..total])?;
    }
    if extent == Extent::Whole {
        // Extension headers after a fragment header are multiples of eight bytes, too.
        check_piece(layout.piece, total - layout.transport, 0)?;
    }
    Ok(layout)
}

impl Layout {
    /// Advances past an extension header.
    fn pass_extension(&mut self, bytes: &[u8]) -> Result<(), PacketError> {
        let &[next, length, third, fourth, ..] = bytes else { return Err(PacketError::InvalidExtensions) };
        // The length field does not count the first eight bytes. A fragment header has no length field.
        let mut extension_bytes = 8 + usize::from(length) * 8;
        match self.protocol {
            protocol::IPV6_FRAGMENT if self.piece.is_some() => return Err(PacketError::InvalidExtensions),
            protocol::IPV6_FRAGMENT => {
                extension_bytes = 8;
                let offset = u16::from_be_bytes([third, fourth]);
                let (offset_bytes, last) = (u32::from(offset & OFFSET_V6), offset & 1 == 0);
                let identification = u32::from(word(bytes, 4)) << 16 | u32::from(word(bytes, 6));
                // A packet that consists of one fragment ("atomic", RFC 6946) does not count as a fragment.
                self.piece =
                    (offset_bytes > 0 || !last).then_some(FragmentFields { offset_bytes, last, identification });
            }
            protocol::IPV6_ROUTING => self.source_routed |= fourth > 0,
            _ => {}
        }
        if bytes.len() < extension_bytes {
            return Err(PacketError::InvalidExtensions);
        }
        self.protocol = next;
        self.transport += extension_bytes;
        Ok(())
    }
}

impl Extent {
    /// Returns the number of bytes of a packet whose header states a length.
    #[inline]
    fn bytes(self, stated: usize, bytes: &[u8]) -> Result<usize, PacketError> {
        match self {
            Extent::Whole if stated > bytes.len() => Err(PacketError::Truncated),
            _ => Ok(stated.min(bytes.len())),
        }
    }
}

/// Checks offset and length of a fragment (RFC 791 section 3.2, RFC 8200 section 4.5).
#[inline]
fn check_piece(piece: Option<FragmentFields>, payload_bytes: usize, header_bytes: usize) -> Result<(), PacketError> {
    let Some(piece) = piece else { return Ok(()) };
    let end = piece.offset_bytes as usize + payload_bytes + header_bytes;
    let is_aligned = piece.last || payload_bytes.is_multiple_of(8);
    if payload_bytes > 0 && end <= usize::from(u16::MAX) && is_aligned {
        Ok(())
    } else {
        Err(PacketError::InvalidFragment)
    }
}
