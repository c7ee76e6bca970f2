//! From a packet to its bytes.

use super::rewrite::{Translation, corrupt, lower_hop_limit, set_codepoint};
use super::{Checksum, DONT_FRAGMENT, MORE_FRAGMENTS, options, protocol};
use crate::network::HOP_LIMIT;
use crate::packet::{
    Content, IPV4_HEADER_BYTES, IPV6_FRAGMENT_HEADER_BYTES, IpVersion, SegmentOptions, TCP_HEADER_BYTES, TcpHeader,
    UDP_HEADER_BYTES, flags,
};
use crate::tap::{Captured, Envelope};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// It is longer than a length field can say.
    TooLong,
    /// The options do not fit a TCP header.
    Options,
    /// It is no IP packet, or a fragment of none.
    NotIp,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Unwritable::TooLong => "the packet is longer than its header can say",
            Unwritable::Options => "the options are longer than a TCP header",
            Unwritable::NotIp => "it is no IP packet",
        })
    }
}

impl std::error::Error for Unwritable {}

/// Which part of the whole packet's transport bytes goes into this packet.
struct Part {
    offset_bytes: usize,
    length: usize,
    fragment: bool,
    last: bool,
}

/// Appends the first `snap_bytes` bytes of a packet; returns its length.
///
/// # Errors
/// See [`Unwritable`]; then nothing was appended that means anything.
pub fn write(captured: &Captured<'_>, snap_bytes: usize, out: &mut Vec<u8>) -> Result<u32, Unwritable> {
    if let Content::Wire { .. } = captured.whole.content {
        return write_wire(captured, snap_bytes, out);
    }
    let (transport, payload_bytes) = transport_header(captured)?;
    let total = transport.len() + payload_bytes;
    let packet = captured.packet;
    let part = match packet.content {
        Content::Fragment { offset_bytes, last, .. } => {
            let offset_bytes = offset_bytes as usize;
            let length = packet.fragment_bytes() as usize;
            if offset_bytes + length > total {
                return Err(Unwritable::TooLong);
            }
            Part { offset_bytes, length, fragment: true, last }
        }
        _ => Part { offset_bytes: 0, length: total, fragment: false, last: true },
    };
    let begin = out.len();
    match packet.version {
        IpVersion::V4 => ipv4_header(captured, &part, out)?,
        IpVersion::V6 => ipv6_header(captured, &part, out)?,
    }
    let length = out.len() - begin + part.length;
    let end = begin + length.min(snap_bytes);
    let from_header = part.offset_bytes.min(transport.len())..(part.offset_bytes + part.length).min(transport.len());
    let payload_from = part.offset_bytes.saturating_sub(transport.len());
    out.extend_from_slice(&transport[from_header]);
    if let Some(payload) = captured.payload {
        let room = (begin + length) - out.len();
        let from = payload_from.min(payload.len());
        out.extend_from_slice(&payload[from..(from + room).min(payload.len())]);
    }
    // Zeros, or nothing beyond the snap length.
    out.resize(end, 0);
    if packet.corrupted && end == begin + length {
        // Where the last byte is that of a datagram's checksum, this must not become the zero that says "none".
        let is_checksum = next_header(captured) == protocol::UDP && part.offset_bytes + part.length == 8;
        out[end - 1] ^= if is_checksum && transport[6..8] == [0, 1] { 2 } else { 1 };
    }
    Ok(length as u32)
}

/// A packet of a real program: its bytes, with what the way made of them.
fn write_wire(captured: &Captured<'_>, snap_bytes: usize, out: &mut Vec<u8>) -> Result<u32, Unwritable> {
    let bytes = captured.payload.ok_or(Unwritable::NotIp)?;
    let begin = out.len();
    out.extend_from_slice(bytes);
    let packet = &mut out[begin..];
    let Envelope { hop_limit, translated, ends, source, destination, .. } = captured.envelope;
    let refused = |_| Unwritable::NotIp;
    set_codepoint(packet, captured.packet.codepoint).map_err(refused)?;
    // Whoever let it in has seen that it gets there.
    lower_hop_limit(packet, HOP_LIMIT.saturating_sub(hop_limit)).map_err(refused)?;
    if translated {
        let translation = Translation {
            source: Some(SocketAddr::new(source, ends.source.port)),
            destination: Some(SocketAddr::new(destination, ends.destination.port)),
        };
        translation.apply(packet).map_err(|_| Unwritable::NotIp)?;
    }
    if captured.packet.corrupted {
        corrupt(packet).map_err(refused)?;
    }
    out.truncate(begin.saturating_add(bytes.len().min(snap_bytes)));
    Ok(bytes.len() as u32)
}

/// The whole packet's transport header with its checksum, and the length of its payload.
fn transport_header(captured: &Captured<'_>) -> Result<(Vec<u8>, usize), Unwritable> {
    let (mut header, payload_bytes, checksum_at) = match &captured.whole.content {
        Content::Tcp(tcp) => {
            let side = captured.options.copied().unwrap_or_default();
            (tcp_header(captured, tcp, &side)?, u32::from(tcp.payload_bytes), 16)
        }
        Content::Udp { payload_bytes } => (udp_header(captured, *payload_bytes)?, *payload_bytes, 6),
        // Its payload is written as zeros.
        Content::Quic(_) => {
            let payload_bytes = captured.whole.udp_payload_bytes();
            (udp_header(captured, payload_bytes)?, payload_bytes, 6)
        }
        Content::Wire { .. } | Content::Fragment { .. } | Content::Arp { .. } => return Err(Unwritable::NotIp),
    };
    let mut checksum = pseudo_header(captured, header.len() as u32 + payload_bytes).add(&header);
    if let Some(payload) = captured.payload {
        checksum = checksum.add(&payload[..payload.len().min(payload_bytes as usize)]);
    }
    let checksum = match (checksum.finish(), &captured.whole.content) {
        // Zero says that there is none (RFC 768); its other form in one's complement is the same number.
        (0, Content::Udp { .. } | Content::Quic(_)) => 0xffff,
        (checksum, _) => checksum,
    };
    header[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok((header, payload_bytes as usize))
}

/// The sum over the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), which has the same terms for both
/// versions.
fn pseudo_header(captured: &Captured<'_>, length: u32) -> Checksum {
    let envelope = captured.envelope;
    let checksum = [envelope.source, envelope.destination].into_iter().fold(
        Checksum::default(),
        |checksum, address| match address {
            IpAddr::V4(address) => checksum.add(&address.octets()),
            IpAddr::V6(address) => checksum.add(&address.octets()),
        },
    );
    checksum.add_number(length).add_number(u32::from(next_header(captured)))
}

fn next_header(captured: &Captured<'_>) -> u8 {
    match captured.whole.content {
        Content::Tcp(_) => protocol::TCP,
        _ => protocol::UDP,
    }
}

fn tcp_header(captured: &Captured<'_>, tcp: &TcpHeader, side: &SegmentOptions) -> Result<Vec<u8>, Unwritable> {
    let ends = captured.envelope.ends;
    let mut out = Vec::with_capacity(60);
    out.extend(ends.source.port.to_be_bytes());
    out.extend(ends.destination.port.to_be_bytes());
    out.extend(tcp.sequence.to_be_bytes());
    out.extend(tcp.acknowledgement.to_be_bytes());
    // Words of the header, three reserved bits, nine flags.
    let words = (tcp.header_bytes() / 4) as u16;
    out.extend((words << 12 | (tcp.flags & (flags::AE | 0xff))).to_be_bytes());
    out.extend(tcp.window.to_be_bytes());
    // Checksum, filled in later, and urgent pointer.
    out.extend([0; 4]);
    debug_assert_eq!(out.len() as u32, TCP_HEADER_BYTES);
    if options::write(tcp, side, &mut out) { Ok(out) } else { Err(Unwritable::Options) }
}

fn udp_header(captured: &Captured<'_>, payload_bytes: u32) -> Result<Vec<u8>, Unwritable> {
    let ends = captured.envelope.ends;
    let length = u16::try_from(payload_bytes.saturating_add(UDP_HEADER_BYTES)).map_err(|_| Unwritable::TooLong)?;
    let fields = [ends.source.port, ends.destination.port, length, 0];
    Ok(fields.into_iter().flat_map(u16::to_be_bytes).collect())
}

fn ipv4_header(captured: &Captured<'_>, part: &Part, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let envelope = &captured.envelope;
    let length = u16::try_from(part.length + IPV4_HEADER_BYTES as usize).map_err(|_| Unwritable::TooLong)?;
    let whole_only = match captured.whole.content {
        Content::Tcp(_) | Content::Quic(_) => true,
        // A real stack's.
        Content::Udp { .. } => !captured.whole.payload.is_none(),
        _ => false,
    };
    let dont_fragment = if whole_only { DONT_FRAGMENT } else { 0 };
    let more = if part.last { 0 } else { MORE_FRAGMENTS };
    let begin = out.len();
    // Version 4, five words.
    out.extend([0x45, captured.packet.codepoint as u8]);
    out.extend(length.to_be_bytes());
    out.extend((envelope.identification as u16).to_be_bytes());
    out.extend((dont_fragment | more | (part.offset_bytes / 8) as u16).to_be_bytes());
    out.extend([envelope.hop_limit, next_header(captured), 0, 0]);
    for address in [envelope.source, envelope.destination] {
        let IpAddr::V4(address) = address else { return Err(Unwritable::NotIp) };
        out.extend(address.octets());
    }
    let checksum = Checksum::default().add(&out[begin..]).finish();
    out[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

fn ipv6_header(captured: &Captured<'_>, part: &Part, out: &mut Vec<u8>) -> Result<(), Unwritable> {
    let envelope = &captured.envelope;
    let extension = if part.fragment { IPV6_FRAGMENT_HEADER_BYTES as usize } else { 0 };
    let length = u16::try_from(part.length + extension).map_err(|_| Unwritable::TooLong)?;
    let next = if part.fragment { protocol::IPV6_FRAGMENT } else { next_header(captured) };
    // Version 6; the two ECN bits end the traffic class, eight bits after the version; no flow label.
    out.extend((6 << 28 | (captured.packet.codepoint as u32) << 20).to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([next, envelope.hop_limit]);
    for address in [envelope.source, envelope.destination] {
        let IpAddr::V6(address) = address else { return Err(Unwritable::NotIp) };
        out.extend(address.octets());
    }
    if part.fragment {
        // Offsets are multiples of eight, whose three low bits are free for "more fragments".
        out.extend([next_header(captured), 0]);
        out.extend((part.offset_bytes as u16 & !7 | u16::from(!part.last)).to_be_bytes());
        out.extend(envelope.identification.to_be_bytes());
    }
    Ok(())
}
