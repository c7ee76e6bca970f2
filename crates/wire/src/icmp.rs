//! What routers and hosts of the model say to a real program's packet: ICMP errors (RFC 792, RFC 1812 section 4.3) and
//! ICMPv6 errors (RFC 4443), and answers to echo requests.
//!
//! An error quotes as much of the packet as fits 576 bytes (RFC 1812 section 4.3.2.3), with IPv6 1280 bytes (RFC 4443
//! section 3). None is sent about an ICMP error, to or about a group of receivers, about a fragment other than the
//! first, or to a source that is not one host (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4). That is narrower than
//! RFC 4443 in two places: it lets "packet too big" be sent about multicast packets, and errors about all fragments. A
//! limit of their rate is left to whoever sends them.
//!
//! An error has the precedence of network control (RFC 1812 section 4.3.2.5); an echo reply the service class of its
//! request (RFC 1349 section 5.1) and no ECN. IP options of a request are not returned.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{ICMP_HEADER_BYTES, Layout, Upper, word};
use crate::read::sum;
use crate::{Checksum, Refused, protocol};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hop limit of what nodes of the model send.
const HOP_LIMIT: u8 = 64;
/// Type of service of an ICMPv4 error: precedence 6.
const NETWORK_CONTROL: u8 = 0xc0;
const MAX_ERROR_BYTES_V4: u32 = 576;
const MAX_ERROR_BYTES_V6: u32 = 1280;
/// ICMPv6 redirect (RFC 4861 section 4.5), about which no error is sent either.
const REDIRECT_V6: u8 = 137;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

/// What has happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// Its hop limit has run out.
    TimeExceeded,
    /// Fragments did not come in time; to be said about the first only.
    ReassemblyTimeExceeded,
    /// It is larger than the next link's MTU and may not be cut.
    PacketTooBig {
        /// The MTU at the IP layer (RFC 1191 section 4, RFC 4443 section 3.2); IPv4 can tell 65 535 at most.
        mtu_bytes: u32,
    },
    /// It cannot be delivered.
    Unreachable(Unreachable),
}

/// Why a packet cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route.
    Network,
    /// The host does not answer.
    Host,
    /// Nobody listens at the port.
    Port,
    /// A rule forbids it.
    Prohibited,
}

/// Why a packet gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unanswered {
    /// It cannot be read.
    Packet(Refused),
    /// It is an ICMP error itself, or an ICMPv6 redirect.
    Error,
    /// It goes to a group.
    Group,
    /// It is a fragment other than the first; of an echo request or a segment, any fragment.
    Fragment,
    /// Its source is not the address of one host.
    Source,
    /// The answer's source is of another IP version.
    Version,
    /// It is no echo request.
    NoEcho,
    /// It is no TCP segment, or a reset itself.
    NoSegment,
    /// The checksum of the echo request or segment is wrong.
    Checksum,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Unanswered::Packet(refused) => return refused.fmt(formatter),
            Unanswered::Error => "it is an ICMP error itself",
            Unanswered::Group => "it goes to a group of receivers",
            Unanswered::Fragment => "it is a fragment",
            Unanswered::Source => "its source is not the address of one host",
            Unanswered::Version => "the answer's source is of another IP version",
            Unanswered::NoEcho => "it is no echo request",
            Unanswered::NoSegment => "it is no TCP segment that may be answered by a reset",
            Unanswered::Checksum => "its checksum is wrong",
        })
    }
}

impl std::error::Error for Unanswered {}

impl IcmpError {
    /// Type, code, and the four bytes that follow the checksum.
    fn fields(self, version: IpVersion) -> (u8, u8, [u8; 4]) {
        let v4 = version == IpVersion::V4;
        let (kind, code) = match self {
            IcmpError::TimeExceeded => (if v4 { 11 } else { 3 }, 0),
            IcmpError::ReassemblyTimeExceeded => (if v4 { 11 } else { 3 }, 1),
            IcmpError::PacketTooBig { .. } if v4 => (3, 4),
            IcmpError::PacketTooBig { .. } => (2, 0),
            IcmpError::Unreachable(why) if v4 => (3, why.code_v4()),
            IcmpError::Unreachable(why) => (1, why.code_v6()),
        };
        let rest = match self {
            IcmpError::PacketTooBig { mtu_bytes } => if v4 { mtu_bytes.min(0xffff) } else { mtu_bytes }.to_be_bytes(),
            _ => [0; 4],
        };
        (kind, code, rest)
    }
}

impl Unreachable {
    /// RFC 792; "communication administratively prohibited" is of RFC 1812 section 5.2.7.1.
    fn code_v4(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 1,
            Unreachable::Port => 3,
            Unreachable::Prohibited => 13,
        }
    }

    /// RFC 4443 section 3.1: no route, address, port, prohibited.
    fn code_v6(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 3,
            Unreachable::Port => 4,
            Unreachable::Prohibited => 1,
        }
    }
}

/// Appends the packet by which the node with the address `from` tells a packet's source what has become of it. Hop limit
/// and marks of what is quoted are those of the bytes given. IPv4 needs an `identification`.
///
/// # Errors
/// See [`Unanswered`]: no error may be sent about this packet. Then nothing is appended.
pub fn error(
    packet: &[u8],
    what: IcmpError,
    from: IpAddr,
    identification: u16,
    out: &mut Vec<u8>,
) -> Result<(), Unanswered> {
    let layout = Layout::whole(packet).map_err(Unanswered::Packet)?;
    let to = answerable_source(&layout, packet)?;
    if layout.piece.is_some_and(|piece| piece.offset_bytes > 0) {
        return Err(Unanswered::Fragment);
    }
    let is_redirect = layout.protocol == protocol::ICMPV6 && packet.get(layout.transport) == Some(&REDIRECT_V6);
    if layout.upper == Upper::IcmpError || is_redirect {
        return Err(Unanswered::Error);
    }
    let longest = match layout.version {
        IpVersion::V4 => MAX_ERROR_BYTES_V4 - IPV4_HEADER_BYTES,
        IpVersion::V6 => MAX_ERROR_BYTES_V6 - IPV6_HEADER_BYTES,
    };
    let quoted = &packet[..layout.total.min(longest as usize - ICMP_HEADER_BYTES)];
    let (kind, code, rest) = what.fields(layout.version);
    let class = if layout.version == IpVersion::V4 { NETWORK_CONTROL } else { 0 };
    let message = Message { kind, code, rest, body: quoted };
    message.write(from, to, class, identification, out)
}

/// Appends the reply of the host that an echo request goes to (RFC 792, RFC 4443 section 4.2). IPv4 needs an
/// `identification`.
///
/// # Errors
/// See [`Unanswered`]; then nothing is appended.
pub fn echo_reply(request: &[u8], identification: u16, out: &mut Vec<u8>) -> Result<(), Unanswered> {
    let layout = Layout::whole(request).map_err(Unanswered::Packet)?;
    let to = answerable_source(&layout, request)?;
    if layout.piece.is_some() {
        return Err(Unanswered::Fragment);
    }
    if layout.upper != (Upper::Echo { request: true }) {
        return Err(Unanswered::NoEcho);
    }
    let (_, from) = layout.addresses(request);
    let message = &request[layout.transport..layout.total];
    if checksum(from, to, message) != 0 {
        return Err(Unanswered::Checksum);
    }
    let (kind, class) = match layout.version {
        IpVersion::V4 => (ECHO_REPLY_V4, request[1]),
        IpVersion::V6 => (ECHO_REPLY_V6, (word(request, 0) >> 4) as u8),
    };
    let rest = [message[4], message[5], message[6], message[7]];
    let reply = Message { kind, code: 0, rest, body: &message[ICMP_HEADER_BYTES..] };
    reply.write(from, to, class & !0b11, identification, out)
}

/// Where an answer goes.
pub(crate) fn answerable_source(layout: &Layout, packet: &[u8]) -> Result<IpAddr, Unanswered> {
    let (source, destination) = layout.addresses(packet);
    if is_group(destination) {
        return Err(Unanswered::Group);
    }
    if is_one_host(source) { Ok(source) } else { Err(Unanswered::Source) }
}

/// Multicast and limited broadcast; broadcasts of a subnet cannot be told without its mask.
fn is_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}

/// RFC 1812 section 4.3.2.7: not of network zero, loopback, a group, or class E.
fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !(matches!(address.octets()[0], 0 | 224..) || address.is_loopback()),
        IpAddr::V6(address) => !(address.is_multicast() || address.is_unspecified() || address.is_loopback()),
    }
}

/// The checksum of a message; ICMPv6 has a pseudo-header (RFC 4443 section 2.3).
fn checksum(from: IpAddr, to: IpAddr, message: &[u8]) -> u16 {
    match from {
        IpAddr::V4(_) => Checksum::default().add(message).finish(),
        IpAddr::V6(_) => sum((from, to), protocol::ICMPV6, message).finish(),
    }
}

/// An ICMP or ICMPv6 message, of a length that an IP header can tell: what is quoted is short, what is echoed came in a
/// packet with headers no shorter.
pub(crate) struct Message<'a> {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes after the checksum.
    pub(crate) rest: [u8; 4],
    pub(crate) body: &'a [u8],
}

impl Message<'_> {
    fn bytes(&self, from: IpAddr, to: IpAddr) -> Vec<u8> {
        let mut bytes = [&[self.kind, self.code, 0, 0][..], &self.rest, self.body].concat();
        let checksum = checksum(from, to, &bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Appends the packet with this message.
    fn write(
        &self,
        from: IpAddr,
        to: IpAddr,
        class: u8,
        identification: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), Unanswered> {
        let number = if from.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        ip_header((from, to), number, class, identification, ICMP_HEADER_BYTES + self.body.len(), out)?;
        out.extend(self.bytes(from, to));
        Ok(())
    }

    /// Appends an IPv6 packet.
    pub(crate) fn write_v6(&self, from: Ipv6Addr, to: Ipv6Addr, class: u8, hop_limit: u8, out: &mut Vec<u8>) {
        header_v6((from, to), protocol::ICMPV6, class, hop_limit, ICMP_HEADER_BYTES + self.body.len(), out);
        out.extend(self.bytes(IpAddr::V6(from), IpAddr::V6(to)));
    }
}

/// Appends the IP header of what a node of the model says: from and to where, and how many bytes follow.
pub(crate) fn ip_header(
    addresses: (IpAddr, IpAddr),
    number: u8,
    class: u8,
    identification: u16,
    length: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unanswered> {
    match addresses {
        (IpAddr::V4(from), IpAddr::V4(to)) => header_v4((from, to), number, class, identification, length, out),
        (IpAddr::V6(from), IpAddr::V6(to)) => header_v6((from, to), number, class, HOP_LIMIT, length, out),
        _ => return Err(Unanswered::Version),
    }
    Ok(())
}

fn header_v4(
    (from, to): (Ipv4Addr, Ipv4Addr),
    number: u8,
    class: u8,
    identification: u16,
    length: usize,
    out: &mut Vec<u8>,
) {
    let total = IPV4_HEADER_BYTES as usize + length;
    let begin = out.len();
    out.extend([0x45, class]);
    out.extend((total as u16).to_be_bytes());
    out.extend(identification.to_be_bytes());
    out.extend([0, 0, HOP_LIMIT, number, 0, 0]);
    out.extend(from.octets());
    out.extend(to.octets());
    let header = Checksum::default().add(&out[begin..]).finish();
    out[begin + 10..begin + 12].copy_from_slice(&header.to_be_bytes());
}

fn header_v6((from, to): (Ipv6Addr, Ipv6Addr), number: u8, class: u8, hop_limit: u8, length: usize, out: &mut Vec<u8>) {
    out.extend((6 << 28 | u32::from(class) << 20).to_be_bytes());
    out.extend((length as u16).to_be_bytes());
    out.extend([number, hop_limit]);
    out.extend(from.octets());
    out.extend(to.octets());
}
