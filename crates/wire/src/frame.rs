//! Ethernet headers (IEEE 802.3 clause 3; EtherTypes of RFC 894 and RFC 2464): parsing and writing. Frames are those of
//! a packet socket, without preamble and frame check sequence. VLAN tags are not supported.

use std::fmt;
use std::net::Ipv6Addr;

/// Size of an Ethernet header in bytes.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// Size of an ARP request or reply for IPv4 over Ethernet in bytes, without framing (RFC 826: 8 + 2 x (6 + 4)).
pub const ARP_BYTES: u32 = 28;

/// The MAC address of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HardwareAddress(pub [u8; 6]);

impl HardwareAddress {
    /// The broadcast address.
    pub const BROADCAST: HardwareAddress = HardwareAddress([0xff; 6]);

    /// Returns whether this is a group address (multicast or broadcast): the I/G bit, the lowest bit of the first byte,
    /// is set.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns the MAC address of an IPv6 multicast address (RFC 2464 section 7): 33-33 and the last four bytes of the
    /// address.
    pub fn multicast(address: Ipv6Addr) -> HardwareAddress {
        let [.., a, b, c, d] = address.octets();
        HardwareAddress([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// The type of an Ethernet frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtherType {
    /// IPv4.
    Ipv4,
    /// Address resolution (RFC 826).
    Arp,
    /// IPv6.
    Ipv6,
    /// Another type; a value below 1536 is the length of the payload.
    Other(u16),
}

impl From<u16> for EtherType {
    fn from(number: u16) -> EtherType {
        match number {
            0x0800 => EtherType::Ipv4,
            0x0806 => EtherType::Arp,
            0x86dd => EtherType::Ipv6,
            other => EtherType::Other(other),
        }
    }
}

impl From<EtherType> for u16 {
    fn from(kind: EtherType) -> u16 {
        match kind {
            EtherType::Ipv4 => 0x0800,
            EtherType::Arp => 0x0806,
            EtherType::Ipv6 => 0x86dd,
            EtherType::Other(number) => number,
        }
    }
}

/// The header of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination address.
    pub destination: HardwareAddress,
    /// Source address.
    pub source: HardwareAddress,
    /// Type of the payload.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Parses the header of a frame. Returns the header and the payload, or `None` if the frame is shorter than a
    /// header.
    #[inline]
    pub fn read(frame: &[u8]) -> Option<(EthernetHeader, &[u8])> {
        let (&[a, b, c, d, e, f, g, h, i, j, k, l, high, low], payload) =
            frame.split_first_chunk::<ETHERNET_HEADER_BYTES>()?;
        let header = EthernetHeader {
            destination: HardwareAddress([a, b, c, d, e, f]),
            source: HardwareAddress([g, h, i, j, k, l]),
            ether_type: u16::from_be_bytes([high, low]).into(),
        };
        Some((header, payload))
    }

    /// Encodes the header.
    #[inline]
    pub fn bytes(&self) -> [u8; ETHERNET_HEADER_BYTES] {
        let mut bytes = [0; ETHERNET_HEADER_BYTES];
        bytes[..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..].copy_from_slice(&u16::from(self.ether_type).to_be_bytes());
        bytes
    }
}
