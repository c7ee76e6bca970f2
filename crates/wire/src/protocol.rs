//! Protocol numbers of IP (IANA registry "Assigned Internet Protocol Numbers").

/// Hop-by-hop options of IPv6.
pub const IPV6_HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4.
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// Routing header of IPv6.
pub const IPV6_ROUTING: u8 = 43;
/// Fragment header of IPv6.
pub const IPV6_FRAGMENT: u8 = 44;
/// Authentication header (RFC 4302).
pub(crate) const AUTHENTICATION: u8 = 51;
/// ICMP for IPv6.
pub const ICMPV6: u8 = 58;
/// Destination options of IPv6.
pub const IPV6_DESTINATION_OPTIONS: u8 = 60;
