//! Protocol numbers of IP (IANA registry "Assigned Internet Protocol Numbers").

/// IPv6 hop-by-hop options.
pub const IPV6_HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4.
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// IPv6 routing header.
pub const IPV6_ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const IPV6_FRAGMENT: u8 = 44;
/// Authentication header (RFC 4302).
pub(crate) const AUTHENTICATION: u8 = 51;
/// ICMP for IPv6.
pub const ICMPV6: u8 = 58;
/// IPv6 destination options.
pub const IPV6_DESTINATION_OPTIONS: u8 = 60;
