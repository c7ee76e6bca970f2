//! In-place modification of packets of real hosts, as by the network: ECN marks, hop limits, translated addresses and
//! ports, and bit errors.
//!
//! Checksums are updated incrementally (RFC 1624, equation 3): HC' = ~(~HC + ~m + m'). A wrong checksum therefore
//! remains wrong, and the first fragment of a packet can be changed without the others.
//!
//! The checksums of TCP, UDP and ICMPv6 include the addresses (pseudo-headers); that of ICMP does not. A UDP checksum
//! of zero means "no checksum" and is kept (RFC 768); a computed checksum of zero is written as all ones. In packets of
//! other protocols, only the addresses change. Only the first fragment of a packet has ports.
//!
//! An ICMP error quotes a packet of the reverse direction. The translation of the error's destination, including the
//! port, applies to the source of the quoted packet, and vice versa (RFC 5508 section 4). Checksums in the quoted
//! packet are updated as well, if they are completely quoted.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{ICMP_HEADER_BYTES, Layout, UpperProtocol, version, word};
use crate::udp::UDP_HEADER_BYTES;
use crate::{Checksum, PacketError, protocol};
use fullpipe_units::EcnCodepoint;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Index of the total length in an IPv4 header.
const TOTAL_LENGTH_AT: usize = 2;
/// Index of the checksum in an IPv4 header.
const HEADER_CHECKSUM_AT: usize = 10;

/// The result of decrementing a packet's hop limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopLimitResult {
    /// The new hop limit.
    Remaining(u8),
    /// The hop limit would reach zero; the packet is unchanged.
    Exceeded,
}

/// New addresses and ports of a packet. The identifier of an ICMP echo counts as a port: the source port in a request,
/// the destination port in a reply. The other port is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressTranslation {
    /// The new source; `None` keeps the source.
    pub source: Option<SocketAddr>,
    /// The new destination; `None` keeps the destination.
    pub destination: Option<SocketAddr>,
}

/// Reason why a packet cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationError {
    /// The packet is malformed.
    Malformed(PacketError),
    /// The packet that an ICMP error quotes is malformed. RFC 5508 REQ-3 requires the error to be dropped.
    MalformedQuote(PacketError),
    /// The new address has a different IP version than the packet.
    VersionMismatch,
    /// The destination cannot be changed, because the packet has a source route: its checksum includes the final
    /// destination, not the one in the header.
    SourceRoute,
}

impl fmt::Display for TranslationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TranslationError::Malformed(refused) => write!(formatter, "{refused}"),
            TranslationError::MalformedQuote(refused) => {
                write!(formatter, "the packet that the ICMP error quotes: {refused}")
            }
            TranslationError::VersionMismatch => formatter.write_str("the new address has another IP version"),
            TranslationError::SourceRoute => formatter.write_str("the packet has a source route"),
        }
    }
}

impl std::error::Error for TranslationError {}

/// The change of a checksum by replaced bytes. The bytes must begin at an even offset of the data that the checksum
/// covers.
#[derive(Clone, Copy, Default)]
struct Change(u64);

impl Change {
    fn replace(self, old: &[u8], new: &[u8]) -> Change {
        let removed = Checksum::default().add(old).finish();
        let added = !Checksum::default().add(new).finish();
        Change(self.0 + u64::from(removed) + u64::from(added))
    }

    fn apply(self, checksum: u16) -> u16 {
        Checksum(self.0 + u64::from(!checksum)).finish()
    }

    /// Overwrites bytes and adds the change.
    fn write(&mut self, bytes: &mut [u8], at: usize, new: &[u8]) {
        let old = &mut bytes[at..at + new.len()];
        *self = self.replace(old, new);
        old.copy_from_slice(new);
    }
}

/// Returns the version and the fixed part of the IP header.
fn header(bytes: &mut [u8]) -> Result<(IpVersion, &mut [u8]), PacketError> {
    let version = version(bytes)?;
    let length = match version {
        IpVersion::V4 => IPV4_HEADER_BYTES,
        IpVersion::V6 => IPV6_HEADER_BYTES,
    };
    Ok((version, bytes.get_mut(..length as usize).ok_or(PacketError::Truncated)?))
}

/// Writes two bytes of an IPv4 header and updates its checksum.
fn write_header_word(header: &mut [u8], at: usize, new: [u8; 2]) {
    let mut change = Change::default();
    change.write(header, at, &new);
    let checksum = change.apply(word(header, HEADER_CHECKSUM_AT));
    header[HEADER_CHECKSUM_AT..HEADER_CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Sets the ECN codepoint (RFC 3168 section 5).
///
/// # Errors
/// Returns [`PacketError`] if there is no IP header. In this case, the bytes are unchanged.
#[inline]
pub fn set_ecn(bytes: &mut [u8], codepoint: EcnCodepoint) -> Result<(), PacketError> {
    let (version, header) = header(bytes)?;
    match version {
        IpVersion::V4 => write_header_word(header, 0, [header[0], header[1] & !0b11 | codepoint.bits()]),
        // The traffic class spans the first two bytes; its ECN bits are followed by the first four bits of the flow
        // label.
        IpVersion::V6 => header[1] = header[1] & !0b11_0000 | codepoint.bits() << 4,
    }
    Ok(())
}

/// Decrements the hop limit by `hops`, the number of routers. If the hop limit would reach zero, the packet is
/// unchanged and the caller must drop it (RFC 1812 section 5.3.1, RFC 8200 section 3).
///
/// # Errors
/// Returns [`PacketError`] if there is no IP header. In this case, the bytes are unchanged.
#[inline]
pub fn decrement_hop_limit(bytes: &mut [u8], hops: u8) -> Result<HopLimitResult, PacketError> {
    let (version, header) = header(bytes)?;
    let at = match version {
        IpVersion::V4 => 8,
        IpVersion::V6 => 7,
    };
    let left = match header[at].checked_sub(hops) {
        Some(left) if left > 0 || hops == 0 => left,
        _ => return Ok(HopLimitResult::Exceeded),
    };
    match version {
        IpVersion::V4 => write_header_word(header, at, [left, header[at + 1]]),
        IpVersion::V6 => header[at] = left,
    }
    Ok(HopLimitResult::Remaining(left))
}

/// Flips one bit, counted from the highest bit of the first byte. Returns false if there is no such bit.
pub fn flip_bit(bytes: &mut [u8], bit: usize) -> bool {
    let Some(byte) = bytes.get_mut(bit / 8) else { return false };
    *byte ^= 0x80 >> (bit % 8);
    true
}

/// Corrupts a packet: flips the lowest bit of its last byte, or of the last byte of its UDP datagram. The Internet
/// checksum detects every single bit error. Without a UDP checksum, the receiver cannot detect the error.
///
/// # Errors
/// Returns [`PacketError`] if the packet is malformed. In this case, the bytes are unchanged.
pub fn corrupt(bytes: &mut [u8]) -> Result<(), PacketError> {
    let layout = Layout::whole(bytes)?;
    let checksum_at = layout.transport + 6;
    let end = match (layout.upper, layout.piece) {
        (UpperProtocol::Udp, None) => layout.transport + usize::from(word(bytes, layout.transport + 4)),
        _ => layout.total,
    };
    let is_empty_datagram = layout.upper == UpperProtocol::Udp && end == layout.transport + UDP_HEADER_BYTES as usize;
    // A datagram without payload ends with its checksum, which must not become zero: that means "no checksum".
    let mask = if is_empty_datagram && word(bytes, checksum_at) == 1 { 2 } else { 1 };
    bytes[end - 1] ^= mask;
    Ok(())
}

/// Returns the byte range of a UDP datagram's payload; `None` if the packet is malformed, a fragment, or not a UDP
/// datagram.
pub fn udp_payload_range(bytes: &[u8]) -> Option<Range<usize>> {
    let layout = Layout::whole(bytes).ok()?;
    let is_datagram = layout.upper == UpperProtocol::Udp && layout.piece.is_none();
    let begin = layout.transport + UDP_HEADER_BYTES as usize;
    is_datagram.then(|| begin..layout.transport + usize::from(word(bytes, layout.transport + 4)))
}

/// Adds `addend` to the byte at `place` in a UDP datagram's payload, modulo 256, and updates the checksum. A wrong
/// checksum remains wrong, and a missing one remains missing. Returns false if there is no such byte.
pub fn add_to_udp_payload(bytes: &mut [u8], place: usize, addend: u8) -> bool {
    let Some(payload) = udp_payload_range(bytes).filter(|payload| place < payload.len()) else { return false };
    let Ok(layout) = Layout::whole(bytes) else { return false };
    let at = payload.start + place;
    // The checksum sums 16-bit words from the UDP header on; a last odd byte is padded.
    let word_at = at - (at - layout.transport) % 2;
    let old = &bytes[word_at..payload.end.min(word_at + 2)];
    let mut new = old.to_vec();
    new[at - word_at] = new[at - word_at].wrapping_add(addend);
    let mut change = Change::default();
    change.write(bytes, word_at, &new);
    if word(bytes, layout.transport + 6) != 0 {
        write_checksum(bytes, &layout, Change::default(), change);
    }
    true
}

impl AddressTranslation {
    /// The translation of packets of the reverse direction.
    fn mirrored(self) -> AddressTranslation {
        AddressTranslation { source: self.destination, destination: self.source }
    }

    fn check(self, layout: &Layout) -> Result<(), TranslationError> {
        let is_v4 = layout.version == IpVersion::V4;
        if [self.source, self.destination].into_iter().flatten().any(|end| end.is_ipv4() != is_v4) {
            return Err(TranslationError::VersionMismatch);
        }
        let changes_destination = layout.source_routed && self.destination.is_some();
        if changes_destination { Err(TranslationError::SourceRoute) } else { Ok(()) }
    }

    /// Translates a packet.
    ///
    /// # Errors
    /// Returns [`TranslationError`] if the packet cannot be translated. In this case, the bytes are unchanged.
    pub fn apply(self, bytes: &mut [u8]) -> Result<(), TranslationError> {
        let layout = Layout::whole(bytes).map_err(TranslationError::Malformed)?;
        self.check(&layout)?;
        let bytes = &mut bytes[..layout.total];
        if layout.upper != UpperProtocol::IcmpError {
            self.write(bytes, &layout, Change::default());
            return Ok(());
        }
        let body = layout.transport + ICMP_HEADER_BYTES;
        let quoted = Layout::quoted(&bytes[body..]).map_err(TranslationError::MalformedQuote)?;
        self.mirrored().check(&quoted)?;
        let before = Checksum::default().add(&bytes[body..]).finish();
        self.mirrored().write(&mut bytes[body..], &quoted, Change::default());
        let after = !Checksum::default().add(&bytes[body..]).finish();
        self.write(bytes, &layout, Change(u64::from(before) + u64::from(after)));
        Ok(())
    }

    /// Writes the new addresses and ports. `message` is the previous change of the transport bytes.
    fn write(self, bytes: &mut [u8], layout: &Layout, mut message: Change) {
        let bytes = &mut bytes[..layout.total];
        let mut addresses = Change::default();
        let (source, destination) = layout.addresses_at();
        for (end, at) in [(self.source, source.start), (self.destination, destination.start)] {
            match end.map(|end| end.ip()) {
                Some(IpAddr::V4(address)) => addresses.write(bytes, at, &address.octets()),
                Some(IpAddr::V6(address)) => addresses.write(bytes, at, &address.octets()),
                None => {}
            }
        }
        if layout.version == IpVersion::V4 {
            let checksum = addresses.apply(word(bytes, HEADER_CHECKSUM_AT));
            bytes[HEADER_CHECKSUM_AT..HEADER_CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        let at = layout.transport;
        let (source, destination) = (self.source.map(|end| end.port()), self.destination.map(|end| end.port()));
        let ports = match layout.upper {
            UpperProtocol::Tcp | UpperProtocol::Udp => [(source, at), (destination, at + 2)],
            UpperProtocol::Echo { request: true } => [(source, at + 4), (None, 0)],
            UpperProtocol::Echo { request: false } => [(destination, at + 4), (None, 0)],
            UpperProtocol::IcmpError | UpperProtocol::Icmp | UpperProtocol::Other => [(None, 0), (None, 0)],
        };
        // A wrong checksum is updated like any other, but a UDP checksum of zero means "none" and is kept.
        let has_none = layout.upper == UpperProtocol::Udp && word(bytes, at + 6) == 0;
        for (port, at) in ports {
            if let Some(port) = port {
                message.write(bytes, at, &port.to_be_bytes());
            }
        }
        if !has_none {
            write_checksum(bytes, layout, addresses, message);
        }
    }
}

/// Updates the transport checksum, unless the quoted bytes do not contain it or the protocol is unknown.
fn write_checksum(bytes: &mut [u8], layout: &Layout, addresses: Change, message: Change) {
    let checksum_at = layout.transport
        + match layout.upper {
            UpperProtocol::Tcp => 16,
            UpperProtocol::Udp => 6,
            UpperProtocol::Echo { .. } | UpperProtocol::IcmpError | UpperProtocol::Icmp => 2,
            UpperProtocol::Other => return,
        };
    if checksum_at + 2 > bytes.len() {
        return;
    }
    let has_pseudo_header = layout.protocol != protocol::ICMP;
    let change = if has_pseudo_header { Change(addresses.0 + message.0) } else { message };
    let mut checksum = change.apply(word(bytes, checksum_at));
    let mut others = bytes[layout.transport..].iter().enumerate().filter(|(at, _)| !matches!(at, 2 | 3));
    // One's complement has two zeros, and the update yields 0x0000. The correct value is 0xffff in two cases: for UDP,
    // where 0x0000 means "no checksum", and for an ICMP message of all zeros, whose sum is zero. The bytes that are
    // missing in a fragment or a truncated quote are assumed to be nonzero.
    let is_complete = layout.piece.is_none() && usize::from(word(bytes, TOTAL_LENGTH_AT)) <= bytes.len();
    let mut is_all_zero = || !has_pseudo_header && is_complete && others.all(|(_, byte)| *byte == 0);
    if checksum == 0 && (layout.upper == UpperProtocol::Udp || is_all_zero()) {
        checksum = 0xffff;
    }
    bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incremental_update_matches_the_example_of_rfc_1624() {
        // Section 4: in a header with checksum dd2f, the word 5555 becomes 3285; the new checksum is 0000, not ffff.
        let change = Change::default().replace(&[0x55, 0x55], &[0x32, 0x85]);
        assert_eq!(change.apply(0xdd2f), 0);
        // Without a change the checksum is kept, even a value that no header can have.
        assert_eq!(Change::default().apply(0xffff), 0xffff);
        assert_eq!(Change::default().apply(0), 0);
    }
}
