//! Encoding of a packet of the model, or of a fragment of it: IPv4 (RFC 791) or IPv6 (RFC 8200) header, TCP (RFC 9293)
//! or UDP (RFC 768) header with checksums, and payload.
//!
//! A payload without bytes is written as zeros. In a corrupted packet, the lowest bit of the last byte is flipped, so
//! that the transport checksum is wrong. The model does not determine which bits the path corrupted.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_FRAGMENT_HEADER_BYTES};
use crate::tcp::{SegmentOptions, TCP_HEADER_BYTES, TcpHeader, flags};
use crate::udp::UDP_HEADER_BYTES;
use crate::{Checksum, DONT_FRAGMENT, MORE_FRAGMENTS, protocol, tcp_options};
use fullpipe_units::EcnCodepoint;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Reason why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The packet length exceeds the range of a length field.
    TooLong,
    /// The options do not fit into a TCP header.
    OptionsTooLong,
    /// The packet is neither an IP packet nor a fragment of one, or its addresses have different IP versions.
    NotIp,
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            WriteError::TooLong => "the packet is longer than its length field permits",
            WriteError::OptionsTooLong => "the options do not fit into a TCP header",
            WriteError::NotIp => "it is not an IP packet",
        })
    }
}

impl std::error::Error for WriteError {}

/// Transport header of a packet to be written.
#[derive(Clone, Copy, Debug)]
pub enum TransportHeader {
    /// A TCP segment.
    Tcp {
        /// The header, including the length of the payload.
        header: TcpHeader,
        /// SACK blocks, Accurate ECN counters and the Fast Open cookie.
        options: SegmentOptions,
    },
    /// A UDP datagram.
    Udp {
        /// Size of the payload in bytes.
        payload_bytes: u32,
    },
}

/// The range of a packet that one fragment carries, counted from the start of the transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRange {
    /// Bytes before this fragment.
    pub offset_bytes: u32,
    /// Size of the fragment in bytes.
    pub length_bytes: u32,
    /// Whether it is the last fragment.
    pub last: bool,
}

/// An IP packet or fragment to be written.
#[derive(Clone, Copy, Debug)]
pub struct IpPacket<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port, of the same IP version.
    pub destination: SocketAddr,
    /// ECN codepoint.
    pub codepoint: EcnCodepoint,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Identification field. IPv4 uses the lower 16 bits; in IPv6, only fragments have the field.
    pub identification: u32,
    /// Whether routers must not fragment the packet; IPv6 has no such flag.
    pub dont_fragment: bool,
    /// Transport header of the whole packet.
    pub transport: TransportHeader,
    /// Payload of the whole packet. Bytes that are missing (all if this is `None`) are written as zeros.
    pub payload: Option<&'a [u8]>,
    /// The part of the packet to write; `None` for the whole packet.
    pub fragment: Option<FragmentRange>,
    /// Whether bits were flipped on the path. If so, one bit is written wrong, so that the transport checksum does not
    /// match.
    pub corrupted: bool,
}

/// The part of the whole packet's transport header and payload that is written.
struct Part {
    offset_bytes: usize,
    length: usize,
    last: bool,
}

impl IpPacket<'_> {
    /// Appends the first `snap_bytes` bytes of the packet to `out`. Returns the length of the whole packet in bytes.
    ///
    /// # Errors
    /// Returns [`WriteError`] if the packet cannot be written. In this case, the appended bytes are incomplete.
    pub fn write(&self, snap_bytes: usize, out: &mut Vec<u8>) -> Result<u32, WriteError> {
        let (transport, payload_bytes) = self.transport_header()?;
        let total = transport.len() + payload_bytes;
        let part = match self.fragment {
            Some(range) => {
                let (offset_bytes, length) = (range.offset_bytes as usize, range.length_bytes as usize);
                if offset_bytes + length > total {
                    return Err(WriteError::TooLong);
                }
                Part { offset_bytes, length, last: range.last }
            }
            None => Part { offset_bytes: 0, length: total, last: true },
        };
        let begin = out.len();
        self.ip_header(&part, out)?;
        let length = out.len() - begin + part.length;
        let end = begin + length.min(snap_bytes);
        let from_header =
            part.offset_bytes.min(transport.len())..(part.offset_bytes + part.length).min(transport.len());
        let payload_from = part.offset_bytes.saturating_sub(transport.len());
        out.extend_from_slice(&transport[from_header]);
        if let Some(payload) = self.payload {
            let room = (begin + length) - out.len();
            let from = payload_from.min(payload.len());
            out.extend_from_slice(&payload[from..(from + room).min(payload.len())]);
        }
        // Pads with zeros, or truncates to the snap length.
        out.resize(end, 0);
        if self.corrupted && end == begin + length {
            // If the last byte is part of a UDP checksum, the checksum must not become zero, which means "no checksum".
            let is_checksum = self.next_header() == protocol::UDP && part.offset_bytes + part.length == 8;
            out[end - 1] ^= if is_checksum && transport[6..8] == [0, 1] { 2 } else { 1 };
        }
        Ok(length as u32)
    }

    /// Returns the whole packet's transport header with its checksum, and the length of its payload.
    fn transport_header(&self) -> Result<(Vec<u8>, usize), WriteError> {
        let (mut header, payload_bytes, checksum_at) = match &self.transport {
            TransportHeader::Tcp { header, options } => {
                (self.tcp_header(header, options)?, u32::from(header.payload_bytes), 16)
            }
            TransportHeader::Udp { payload_bytes } => (self.udp_header(*payload_bytes)?, *payload_bytes, 6),
        };
        let mut checksum = self.pseudo_header(header.len() as u32 + payload_bytes).add(&header);
        if let Some(payload) = self.payload {
            checksum = checksum.add(&payload[..payload.len().min(payload_bytes as usize)]);
        }
        let checksum = match (checksum.finish(), &self.transport) {
            // Zero means "no checksum" (RFC 768); all ones is the same value in one's complement.
            (0, TransportHeader::Udp { .. }) => 0xffff,
            (checksum, _) => checksum,
        };
        header[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        Ok((header, payload_bytes as usize))
    }

    /// Sum over the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), which has the same terms for both
    /// versions.
    fn pseudo_header(&self, length: u32) -> Checksum {
        let checksum =
            [self.source.ip(), self.destination.ip()].into_iter().fold(Checksum::default(), |checksum, address| {
                match address {
                    IpAddr::V4(address) => checksum.add(&address.octets()),
                    IpAddr::V6(address) => checksum.add(&address.octets()),
                }
            });
        checksum.add_number(length).add_number(u32::from(self.next_header()))
    }

    fn next_header(&self) -> u8 {
        match self.transport {
            TransportHeader::Tcp { .. } => protocol::TCP,
            TransportHeader::Udp { .. } => protocol::UDP,
        }
    }

    fn tcp_header(&self, tcp: &TcpHeader, options: &SegmentOptions) -> Result<Vec<u8>, WriteError> {
        let mut out = Vec::with_capacity(60);
        out.extend(self.source.port().to_be_bytes());
        out.extend(self.destination.port().to_be_bytes());
        out.extend(tcp.sequence.to_be_bytes());
        out.extend(tcp.acknowledgement.to_be_bytes());
        // Data Offset, three reserved bits, nine flags.
        let words = (tcp.header_bytes() / 4) as u16;
        out.extend((words << 12 | (tcp.flags & (flags::AE | 0xff))).to_be_bytes());
        out.extend(tcp.window.to_be_bytes());
        // The checksum, which is filled in later, and the urgent pointer.
        out.extend([0; 4]);
        debug_assert_eq!(out.len() as u32, TCP_HEADER_BYTES);
        if tcp_options::write(tcp, options, &mut out) { Ok(out) } else { Err(WriteError::OptionsTooLong) }
    }

    fn udp_header(&self, payload_bytes: u32) -> Result<Vec<u8>, WriteError> {
        let length = u16::try_from(payload_bytes.saturating_add(UDP_HEADER_BYTES)).map_err(|_| WriteError::TooLong)?;
        let fields = [self.source.port(), self.destination.port(), length, 0];
        Ok(fields.into_iter().flat_map(u16::to_be_bytes).collect())
    }

    fn ip_header(&self, part: &Part, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.ipv4_header([source.octets(), destination.octets()], part, out)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.ipv6_header([source.octets(), destination.octets()], part, out)
            }
            _ => Err(WriteError::NotIp),
        }
    }

    fn ipv4_header(&self, addresses: [[u8; 4]; 2], part: &Part, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let length = u16::try_from(part.length + IPV4_HEADER_BYTES as usize).map_err(|_| WriteError::TooLong)?;
        let dont_fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let more = if part.last { 0 } else { MORE_FRAGMENTS };
        let begin = out.len();
        // Version 4, header length of five words.
        out.extend([0x45, self.codepoint as u8]);
        out.extend(length.to_be_bytes());
        out.extend((self.identification as u16).to_be_bytes());
        out.extend((dont_fragment | more | (part.offset_bytes / 8) as u16).to_be_bytes());
        out.extend([self.hop_limit, self.next_header(), 0, 0]);
        out.extend(addresses.into_iter().flatten());
        let checksum = Checksum::default().add(&out[begin..]).finish();
        out[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }

    fn ipv6_header(&self, addresses: [[u8; 16]; 2], part: &Part, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let is_fragment = self.fragment.is_some();
        let extension = if is_fragment { IPV6_FRAGMENT_HEADER_BYTES as usize } else { 0 };
        let length = u16::try_from(part.length + extension).map_err(|_| WriteError::TooLong)?;
        let next = if is_fragment { protocol::IPV6_FRAGMENT } else { self.next_header() };
        // Version 6, traffic class with the two ECN bits last, and a flow label of zero.
        out.extend((6 << 28 | (self.codepoint as u32) << 20).to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend([next, self.hop_limit]);
        out.extend(addresses.into_iter().flatten());
        if is_fragment {
            // The offset is a multiple of eight; the lowest bit is the M flag.
            out.extend([self.next_header(), 0]);
            out.extend((part.offset_bytes as u16 & !7 | u16::from(!part.last)).to_be_bytes());
            out.extend(self.identification.to_be_bytes());
        }
        Ok(())
    }
}
