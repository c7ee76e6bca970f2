//! IP versions and the sizes of their headers (RFC 791, RFC 8200).

/// Size of an IPv4 header in bytes, without options.
pub const IPV4_HEADER_BYTES: u32 = 20;
/// Size of an IPv6 header in bytes, without extension headers (RFC 8200 section 3).
pub const IPV6_HEADER_BYTES: u32 = 40;
/// Size of the IPv6 fragment header in bytes (RFC 8200 section 4.5).
pub const IPV6_FRAGMENT_HEADER_BYTES: u32 = 8;

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    #[default]
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl IpVersion {
    /// Returns the size of the header in bytes, without options or extension headers.
    #[inline(always)]
    pub const fn header_bytes(self) -> u32 {
        match self {
            IpVersion::V4 => IPV4_HEADER_BYTES,
            IpVersion::V6 => IPV6_HEADER_BYTES,
        }
    }

    /// Returns the size of all IP headers of a fragment in bytes, without options.
    pub const fn fragment_header_bytes(self) -> u32 {
        match self {
            IpVersion::V4 => IPV4_HEADER_BYTES,
            IpVersion::V6 => IPV6_HEADER_BYTES + IPV6_FRAGMENT_HEADER_BYTES,
        }
    }
}
