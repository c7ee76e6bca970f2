//! Ethernet frames (IEEE 802.3 clause 3; types by RFC 894 and RFC 2464): the header and back. Frames are those of a
//! packet socket, without preamble and check sequence; tags of virtual LANs are not understood.

use std::fmt;
use std::net::Ipv6Addr;

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// Bytes of an ARP request or reply for IPv4 over Ethernet, without framing (RFC 826: 8 + 2 x (6 + 4)).
pub const ARP_BYTES: u32 = 28;

/// The address of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HardwareAddress(pub [u8; 6]);

impl HardwareAddress {
    /// All stations.
    pub const BROADCAST: HardwareAddress = HardwareAddress([0xff; 6]);

    /// Whether it means a group of stations: the first bit on the wire is the lowest of the first byte.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Where frames to an IPv6 multicast address go (RFC 2464 section 7): 33-33 and the address's last four bytes.
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

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtherType {
    /// IPv4.
    Ipv4,
    /// Address resolution (RFC 826).
    Arp,
    /// IPv6.
    Ipv6,
    /// Another type, or below 1536 the payload's length.
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

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Where it goes.
    pub destination: HardwareAddress,
    /// Where it comes from.
    pub source: HardwareAddress,
    /// What it carries.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// The header and what follows it; `None` if the frame is shorter than a header.
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

    /// The header's bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; ETHERNET_HEADER_BYTES] {
        let mut bytes = [0; ETHERNET_HEADER_BYTES];
        bytes[..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..].copy_from_slice(&u16::from(self.ether_type).to_be_bytes());
        bytes
    }
}
