//! Headers of IP, TCP, UDP and the QUIC model as plain values, and packets as bytes.
//!
//! Header types contain the values as on the wire: [`tcp`], [`udp`], [`ip`], [`quic`]. The TCP model and the QUIC model
//! exchange these headers, and packets of the network contain them.
//!
//! In byte form, packets have IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293) and UDP (RFC 768) headers with correct
//! lengths and checksums. [`IpPacket::write`] writes a packet of the model, and [`parse`] parses one. A payload that
//! has a length but no bytes is written as zeros.
//!
//! Packets of real hosts are stored as bytes. [`summary`] parses their headers when they enter the network; [`rewrite`]
//! changes them as routers and NATs do. [`icmp`], [`write_reset()`] and [`neighbour`] build the replies of modeled
//! nodes. [`fragments`] fragments packets to an MTU, and [`reassembly`] reassembles them.

pub mod fragments;
pub mod frame;
pub mod icmp;
pub mod ip;
mod layout;
pub mod neighbour;
pub mod protocol;
pub mod quic;
mod read;
pub mod reassembly;
mod reset;
pub mod rewrite;
pub mod summary;
pub mod tcp;
mod tcp_options;
pub mod udp;
mod write;

pub use fragments::FragmentationError;
pub use frame::{EtherType, EthernetHeader, HardwareAddress};
pub use icmp::{IcmpError, ReplyError, Unreachable};
pub use ip::IpVersion;
pub use layout::PacketError;
pub use neighbour::{NeighborResponder, NeighborResponse};
pub use quic::{QuicDatagram, QuicForm, QuicFrame, QuicHeader, QuicPacket, QuicPacketType, TransportParameters};
pub use read::{ParseError, ParsedContent, ParsedPacket, parse};
pub use reassembly::{Reassembler, ReassemblyResult};
pub use reset::write_reset;
pub use rewrite::{AddressTranslation, HopLimitResult, TranslationError};
pub use summary::{Fragment, PacketSummary, QuotedPacket, Transport, quoted_packet};
pub use tcp::{AccurateEcn, SackBlock, SegmentOptions, TcpHeader};
pub use write::{FragmentRange, IpPacket, TransportHeader, WriteError};

/// The DF flag in the IPv4 word of flags and fragment offset.
const DONT_FRAGMENT: u16 = 0x4000;
/// The MF flag in the IPv4 word of flags and fragment offset.
const MORE_FRAGMENTS: u16 = 0x2000;

/// The Internet checksum (RFC 1071): one's complement of the one's complement sum of 16-bit words. Zeros do not change
/// the sum, so a payload of zeros need not be added.
#[derive(Clone, Copy, Debug, Default)]
struct Checksum(u64);

impl Checksum {
    /// Adds bytes. Only the last call may have an odd number of bytes.
    fn add(mut self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(2);
        let rest = words.remainder().first().map_or(0, |last| u64::from(*last) << 8);
        self.0 += words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() + rest;
        self
    }

    fn add_number(mut self, number: u32) -> Self {
        self.0 += u64::from(number >> 16) + u64::from(number & 0xffff);
        self
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_matches_the_example_of_rfc_1071() {
        // Section 3: 00 01 f2 03 f4 f5 f6 f7 sums to 2ddf0, folded ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::default().add(&bytes).finish(), !0xddf2);
        assert_eq!(Checksum::default().add(&bytes[..4]).add_number(0xf4f5_f6f7).finish(), !0xddf2);
        // A last odd byte counts as the upper half of a word.
        assert_eq!(Checksum::default().add(&[0x12, 0x34, 0x56]).finish(), !(0x1234 + 0x5600));
        // 0x1fffe folds once to 0xffff, whose complement is 0.
        assert_eq!(Checksum::default().add(&[0xff; 4]).finish(), 0);
    }
}
