//! Fragmentation of packets of real hosts to an MTU. Any node can fragment an IPv4 packet without the DF flag (RFC 791
//! section 3.2). Only the source can fragment an IPv6 packet (RFC 8200 section 4.5).
//!
//! All fragments but the last contain as many bytes as fit, rounded down to a multiple of eight. The first fragment of
//! an IPv4 packet has all options, the others only options with the copied flag. A fragment can be fragmented again.
//! Every fragment of an IPv6 packet repeats the headers up to the routing header. Without a routing header, it repeats
//! the hop-by-hop options. The first fragment must contain all headers, including the transport header.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_FRAGMENT_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{ICMP_HEADER_BYTES, Layout, UpperProtocol, word};
use crate::{Checksum, MORE_FRAGMENTS, PacketError, protocol};
use std::fmt;

/// The copied flag of an IPv4 option type: all fragments contain the option (RFC 791 section 3.1).
const COPIED: u8 = 0x80;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// Reason why a packet larger than the MTU cannot be fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FragmentationError {
    /// The packet is malformed.
    Malformed(PacketError),
    /// The packet's IPv4 header has the DF flag. The caller must send an ICMP error
    /// ([`PacketTooBig`](crate::IcmpError::PacketTooBig)) to the packet's source.
    DontFragment,
    /// The packet is an IPv6 packet that already has a fragment header.
    AlreadyFragmented,
    /// The MTU is too small for the headers and eight bytes of payload.
    MtuTooSmall,
}

impl fmt::Display for FragmentationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FragmentationError::Malformed(refused) => return refused.fmt(formatter),
            FragmentationError::DontFragment => "its header has the DF flag",
            FragmentationError::AlreadyFragmented => "it is already a fragment",
            FragmentationError::MtuTooSmall => "the MTU is too small for its headers",
        })
    }
}

impl std::error::Error for FragmentationError {}

/// Calls `emit` with each fragment of a packet in order, or with the packet itself if it fits the MTU. `identification`
/// is used only for IPv6; the fragments of an IPv4 packet have the packet's own identification.
///
/// # Errors
/// Returns [`FragmentationError`] if the packet cannot be fragmented. In this case, `emit` is not called.
pub fn fragment(
    packet: &[u8],
    mtu_bytes: u32,
    identification: u32,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), FragmentationError> {
    let layout = Layout::whole(packet).map_err(FragmentationError::Malformed)?;
    let packet = &packet[..layout.total];
    if packet.len() <= mtu_bytes as usize {
        emit(packet);
        return Ok(());
    }
    match layout.version {
        IpVersion::V4 => cut_v4(packet, &layout, mtu_bytes as usize, emit),
        IpVersion::V6 => cut_v6(packet, &layout, mtu_bytes as usize, identification, emit),
    }
}

/// The part of the payload in one fragment.
struct Share {
    from: usize,
    length: usize,
    is_last: bool,
}

/// The part of the next `left` payload bytes in a fragment with room for `room` bytes.
fn share(from: usize, left: usize, room: usize) -> Result<Share, FragmentationError> {
    let is_last = left <= room;
    let length = if is_last { left } else { room / 8 * 8 };
    if length > 0 { Ok(Share { from, length, is_last }) } else { Err(FragmentationError::MtuTooSmall) }
}

fn cut_v4(
    packet: &[u8],
    layout: &Layout,
    mtu_bytes: usize,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), FragmentationError> {
    let word_of_flags = word(packet, 6);
    if word_of_flags & crate::DONT_FRAGMENT != 0 {
        return Err(FragmentationError::DontFragment);
    }
    let (header, payload) = packet.split_at(layout.transport);
    let (fixed, options) = header.split_at(IPV4_HEADER_BYTES as usize);
    let others = [fixed, &copied_options(options)].concat();
    if mtu_bytes < header.len() + 8 {
        return Err(FragmentationError::MtuTooSmall);
    }
    let mut from = 0;
    while from < payload.len() {
        let header = if from == 0 { header } else { &others };
        let share = share(from, payload.len() - from, mtu_bytes - header.len())?;
        emit(&fragment_v4(header, word_of_flags, payload, &share));
        from += share.length;
    }
    Ok(())
}

/// Builds one fragment. If the packet is a fragment itself, its offset is added, and the last fragment keeps its MF
/// flag.
fn fragment_v4(header: &[u8], flags: u16, payload: &[u8], share: &Share) -> Vec<u8> {
    let mut bytes = [header, &payload[share.from..share.from + share.length]].concat();
    let more = if share.is_last { flags & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
    // A packet has at most 65 535 bytes, so the offset fits its thirteen bits.
    let flags = (flags & !MORE_FRAGMENTS | more) + (share.from / 8) as u16;
    bytes[0] = 0x40 | (header.len() / 4) as u8;
    let total = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6..8].copy_from_slice(&flags.to_be_bytes());
    write_header_checksum(&mut bytes[..header.len()]);
    bytes
}

/// Computes and writes the checksum of an IPv4 header.
pub(crate) fn write_header_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = Checksum::default().add(header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The options that all fragments have, padded to whole words.
fn copied_options(mut options: &[u8]) -> Vec<u8> {
    let mut copied = Vec::new();
    while let [kind, rest @ ..] = options {
        let length = match (*kind, rest.first()) {
            (NO_OPERATION, _) => 1,
            (END_OF_OPTIONS, _) | (_, None) => break,
            (_, Some(length)) => usize::from(*length),
        };
        // An option with an invalid length ends the list.
        let Some(option) = options.get(..length).filter(|_| length > 0) else { break };
        if kind & COPIED != 0 {
            copied.extend_from_slice(option);
        }
        options = &options[length..];
    }
    copied.resize(copied.len().next_multiple_of(4), END_OF_OPTIONS);
    copied
}

fn cut_v6(
    packet: &[u8],
    layout: &Layout,
    mtu_bytes: usize,
    identification: u32,
    mut emit: impl FnMut(&[u8]),
) -> Result<(), FragmentationError> {
    let place = per_fragment_headers(packet);
    if place.fragment_header.is_some() {
        return Err(FragmentationError::AlreadyFragmented);
    }
    let (headers, payload) = packet.split_at(place.end);
    let room = mtu_bytes.saturating_sub(headers.len() + IPV6_FRAGMENT_HEADER_BYTES as usize);
    if room / 8 * 8 < layout.transport - place.end + transport_header_bytes(packet, layout).max(8) {
        return Err(FragmentationError::MtuTooSmall);
    }
    let mut header = headers.to_vec();
    let next = std::mem::replace(&mut header[place.next_at], protocol::IPV6_FRAGMENT);
    let mut from = 0;
    while from < payload.len() {
        let share = share(from, payload.len() - from, room)?;
        let mut bytes = header.clone();
        bytes.extend([next, 0]);
        // The offset is a multiple of eight; the lowest bit is the M flag.
        bytes.extend((share.from as u16 | u16::from(!share.is_last)).to_be_bytes());
        bytes.extend(identification.to_be_bytes());
        bytes.extend_from_slice(&payload[share.from..share.from + share.length]);
        let length = (bytes.len() - IPV6_HEADER_BYTES as usize) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        emit(&bytes);
        from += share.length;
    }
    Ok(())
}

fn transport_header_bytes(packet: &[u8], layout: &Layout) -> usize {
    match layout.upper {
        UpperProtocol::Tcp => usize::from(packet[layout.transport + 12] >> 4) * 4,
        UpperProtocol::Other => 0,
        UpperProtocol::Udp | UpperProtocol::Echo { .. } | UpperProtocol::IcmpError | UpperProtocol::Icmp => {
            ICMP_HEADER_BYTES
        }
    }
}

/// The Per-Fragment headers of an IPv6 packet, which every fragment has (RFC 8200 section 4.5).
pub(crate) struct PerFragmentHeaders {
    /// The index after the last of them.
    pub(crate) end: usize,
    /// The index of their last Next Header field.
    pub(crate) next_at: usize,
    /// The index of the fragment header, if there is one, and of the Next Header field before it.
    pub(crate) fragment_header: Option<(usize, usize)>,
}

/// Finds the Per-Fragment headers of a packet whose layout is valid.
pub(crate) fn per_fragment_headers(packet: &[u8]) -> PerFragmentHeaders {
    let (mut at, mut next_at) = (IPV6_HEADER_BYTES as usize, 6);
    let mut repeated = PerFragmentHeaders { end: at, next_at, fragment_header: None };
    loop {
        let Some(&number) = packet.get(next_at) else { return repeated };
        let length = 8 + usize::from(packet.get(at + 1).copied().unwrap_or(0)) * 8;
        match number {
            protocol::IPV6_FRAGMENT => {
                repeated.fragment_header = Some((at, next_at));
                return repeated;
            }
            protocol::IPV6_HOP_BY_HOP | protocol::IPV6_ROUTING => {
                repeated.end = at + length;
                repeated.next_at = at;
            }
            protocol::IPV6_DESTINATION_OPTIONS => {}
            _ => return repeated,
        }
        (at, next_at) = (at + length, at);
    }
}
