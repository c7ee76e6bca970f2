//! A cheap look at a real program's packet when it enters the network: what it is, between whom, how long. Nothing is
//! allocated and no payload byte is read.
//!
//! What a router would drop (RFC 1812 section 5.2.2: cut off, impossible lengths, a wrong header checksum) is refused
//! with a reason; so is what no receiver could use: impossible fragments, and transport headers that are not all there
//! or have impossible lengths. A first fragment must hold the transport header's fixed part (RFC 1858, RFC 7112), since
//! translators and captures need the ports. Checksums of transport headers are left to the receiver.

use crate::ip::IpVersion;
use crate::layout::{ICMP_HEADER_BYTES, Layout, Upper, word};
use crate::udp::UDP_HEADER_BYTES;
use crate::{Checksum, DONT_FRAGMENT, Refused};
use fullpipe_units::Codepoint;
use std::net::SocketAddr;

/// What a packet's headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Which IP it is.
    pub version: IpVersion,
    /// Where it comes from. The port is that of TCP or UDP; of an echo request it is the identifier (RFC 792, RFC 4443
    /// section 4.1), whose answer has it in the destination; otherwise 0.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Its ECN bits.
    pub codepoint: Codepoint,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Number of the protocol behind the IP headers and extension headers.
    pub protocol: u8,
    /// What is known of that protocol.
    pub transport: Transport,
    /// Bytes behind the transport header, which of TCP includes options; all of the payload if the transport is not known.
    pub payload_bytes: u32,
    /// Length of the packet as its header tells it; there may be padding behind.
    pub total_bytes: u32,
    /// Which part of a packet it is, unless it is a whole one.
    pub fragment: Option<Fragment>,
    /// Whether routers may not cut it: always for IPv6.
    pub dont_fragment: bool,
}

/// A packet's transport header.
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
        /// A request; otherwise a reply.
        request: bool,
    },
    /// An ICMP or ICMPv6 error; see [`quoted`].
    IcmpError,
    /// Another ICMP or ICMPv6 message.
    Icmp,
    /// Another protocol, or a fragment other than the first.
    Other,
}

/// Which part of a packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Payload bytes of the whole packet before this fragment's.
    pub offset_bytes: u32,
    /// Whether it is the last.
    pub last: bool,
    /// Identification of the whole packet.
    pub identification: u32,
}

/// Whose packet an ICMP error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Where the packet came from, and so where the error goes; ports as in [`Summary::source`].
    pub source: SocketAddr,
    /// Where it went.
    pub destination: SocketAddr,
    /// Number of its protocol.
    pub protocol: u8,
}

impl Summary {
    /// Reads one packet, whole or a fragment; bytes beyond the length that its header tells are left out.
    ///
    /// # Errors
    /// See [`Refused`].
    #[inline]
    pub fn of(bytes: &[u8]) -> Result<Summary, Refused> {
        let layout = Layout::whole(bytes)?;
        let bytes = &bytes[..layout.total];
        let (ecn, hop_limit, dont_fragment) = match layout.version {
            IpVersion::V4 => {
                if Checksum::default().add(&bytes[..header_bytes(bytes)]).finish() != 0 {
                    return Err(Refused::HeaderChecksum);
                }
                (bytes[1], bytes[8], word(bytes, 6) & DONT_FRAGMENT != 0)
            }
            IpVersion::V6 => (bytes[1] >> 4, bytes[7], true),
        };
        let (source, destination) = ends(&layout, bytes);
        let payload = &bytes[layout.transport..];
        let (transport, transport_bytes) = transport(layout.upper, payload);
        Ok(Summary {
            version: layout.version,
            source,
            destination,
            codepoint: Codepoint::from_bits(ecn),
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

/// The packet that an ICMP error is about; `None` if this is no ICMP error, or what it quotes cannot be read.
pub fn quoted(bytes: &[u8]) -> Option<Quoted> {
    let layout = Layout::whole(bytes).ok().filter(|layout| layout.upper == Upper::IcmpError)?;
    let inside = &bytes[layout.transport + ICMP_HEADER_BYTES..layout.total];
    let quoted = Layout::quoted(inside).ok()?;
    let (source, destination) = ends(&quoted, inside);
    Some(Quoted { source, destination, protocol: quoted.protocol })
}

/// Bytes of an IPv4 header whose layout was found right.
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

/// The transport and its payload's bytes. A UDP datagram may be shorter than the packet's payload.
#[inline]
fn transport(upper: Upper, payload: &[u8]) -> (Transport, usize) {
    let length = payload.len();
    match upper {
        Upper::Tcp => {
            let words = word(payload, 12);
            (Transport::Tcp { flags: words & 0x1ff }, length - usize::from(words >> 12) * 4)
        }
        Upper::Udp => {
            let datagram = usize::from(word(payload, 4)).min(length);
            (Transport::Udp, datagram - UDP_HEADER_BYTES as usize)
        }
        Upper::Echo { request } => (Transport::Echo { request }, length - ICMP_HEADER_BYTES),
        Upper::IcmpError => (Transport::IcmpError, length - ICMP_HEADER_BYTES),
        Upper::Icmp => (Transport::Icmp, length - ICMP_HEADER_BYTES),
        Upper::Other => (Transport::Other, length),
    }
}
