//! ICMP replies of model nodes to packets of real hosts: ICMP errors (RFC 792, RFC 1812 section 4.3), ICMPv6 errors
//! (RFC 4443), and echo replies.
//!
//! An error quotes as much of the packet as fits into 576 bytes (RFC 1812 section 4.3.2.3), or into 1280 bytes with
//! IPv6 (RFC 4443 section 3). No error is sent about an ICMP error, a multicast or broadcast packet, or a fragment
//! other than the first. No error is sent to a source that is not a single host (RFC 1812 section 4.3.2.7, RFC 4443
//! section 2.4). These rules are stricter than RFC 4443, which permits "packet too big" about multicast packets and
//! errors about all fragments. The caller limits the rate of errors.
//!
//! An error has the precedence "internetwork control" (RFC 1812 section 4.3.2.5). An echo reply has the type of service
//! of its request (RFC 1349 section 5.1), but is not ECN-capable. IP options of a request are not returned.

use crate::ip::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{ICMP_HEADER_BYTES, Layout, UpperProtocol, word};
use crate::read::sum;
use crate::{Checksum, PacketError, protocol};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hop limit of packets that nodes of the model send.
const HOP_LIMIT: u8 = 64;
/// Type of service of an ICMPv4 error: precedence 6.
const NETWORK_CONTROL: u8 = 0xc0;
const MAX_ERROR_BYTES_V4: u32 = 576;
const MAX_ERROR_BYTES_V6: u32 = 1280;
/// ICMPv6 redirect (RFC 4861 section 4.5). No error is sent about it.
const REDIRECT_V6: u8 = 137;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

/// Reason for an ICMP error about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// The hop limit reached zero.
    TimeExceeded,
    /// Reassembly timed out. This error is sent only about a first fragment.
    ReassemblyTimeExceeded,
    /// The packet is larger than the next link's MTU and must not be fragmented.
    PacketTooBig {
        /// The MTU at the IP layer in bytes (RFC 1191 section 4, RFC 4443 section 3.2); with IPv4, at most 65 535.
        mtu_bytes: u32,
    },
    /// The packet cannot be delivered.
    Unreachable(Unreachable),
}

/// Reason why a packet cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route.
    Network,
    /// The host is unreachable, for example because address resolution failed.
    Host,
    /// No process listens on the port.
    Port,
    /// Communication is administratively prohibited.
    Prohibited,
}

/// Reason why a packet gets no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplyError {
    /// The packet is malformed.
    Malformed(PacketError),
    /// The packet is an ICMP error or an ICMPv6 redirect.
    IcmpError,
    /// The destination of the packet is a multicast or broadcast address.
    GroupDestination,
    /// The packet is a fragment other than the first, or any fragment of an echo request or a segment.
    NonInitialFragment,
    /// The source of the packet is not the address of a single host.
    InvalidSource,
    /// The source address of the reply has a different IP version than the packet.
    VersionMismatch,
    /// The packet is not an echo request.
    NotEchoRequest,
    /// The packet is not a TCP segment, or is a reset.
    NotTcpSegment,
    /// The checksum of the echo request or segment is wrong.
    BadChecksum,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ReplyError::Malformed(refused) => return refused.fmt(formatter),
            ReplyError::IcmpError => "it is an ICMP error itself",
            ReplyError::GroupDestination => "its destination is a multicast or broadcast address",
            ReplyError::NonInitialFragment => "it is a fragment",
            ReplyError::InvalidSource => "its source is not the address of a single host",
            ReplyError::VersionMismatch => "the source address of the reply has another IP version",
            ReplyError::NotEchoRequest => "it is not an echo request",
            ReplyError::NotTcpSegment => "it is not a TCP segment without RST",
            ReplyError::BadChecksum => "its checksum is wrong",
        })
    }
}

impl std::error::Error for ReplyError {}

impl IcmpError {
    /// Returns type, code, and the four bytes after the checksum.
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
    /// Codes of RFC 792; "communication administratively prohibited" is from RFC 1812 section 5.2.7.1.
    fn code_v4(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 1,
            Unreachable::Port => 3,
            Unreachable::Prohibited => 13,
        }
    }

    /// Codes of RFC 4443 section 3.1.
    fn code_v6(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 3,
            Unreachable::Port => 4,
            Unreachable::Prohibited => 1,
        }
    }
}

/// Appends an ICMP error to `out`. The error is sent from the address `from` to the source of `packet`. The error
/// quotes the packet as given, with its current hop limit and ECN bits. `identification` is used only for IPv4.
///
/// # Errors
/// Returns [`ReplyError`] if no error may be sent about this packet. In this case, nothing is appended.
pub fn write_error(
    packet: &[u8],
    what: IcmpError,
    from: IpAddr,
    identification: u16,
    out: &mut Vec<u8>,
) -> Result<(), ReplyError> {
    let layout = Layout::whole(packet).map_err(ReplyError::Malformed)?;
    let to = answerable_source(&layout, packet)?;
    if layout.piece.is_some_and(|piece| piece.offset_bytes > 0) {
        return Err(ReplyError::NonInitialFragment);
    }
    let is_redirect = layout.protocol == protocol::ICMPV6 && packet.get(layout.transport) == Some(&REDIRECT_V6);
    if layout.upper == UpperProtocol::IcmpError || is_redirect {
        return Err(ReplyError::IcmpError);
    }
    let longest = match layout.version {
        IpVersion::V4 => MAX_ERROR_BYTES_V4 - IPV4_HEADER_BYTES,
        IpVersion::V6 => MAX_ERROR_BYTES_V6 - IPV6_HEADER_BYTES,
    };
    let quoted = &packet[..layout.total.min(longest as usize - ICMP_HEADER_BYTES)];
    let (kind, code, rest) = what.fields(layout.version);
    let class = if layout.version == IpVersion::V4 { NETWORK_CONTROL } else { 0 };
    let message = IcmpMessage { kind, code, rest, body: quoted };
    message.write(from, to, class, identification, out)
}

/// Appends the reply to an echo request to `out`. The reply is sent from the request's destination (RFC 792, RFC 4443
/// section 4.2). `identification` is used only for IPv4.
///
/// # Errors
/// Returns [`ReplyError`] if no reply may be sent. In this case, nothing is appended.
pub fn write_echo_reply(request: &[u8], identification: u16, out: &mut Vec<u8>) -> Result<(), ReplyError> {
    let layout = Layout::whole(request).map_err(ReplyError::Malformed)?;
    let to = answerable_source(&layout, request)?;
    if layout.piece.is_some() {
        return Err(ReplyError::NonInitialFragment);
    }
    if layout.upper != (UpperProtocol::Echo { request: true }) {
        return Err(ReplyError::NotEchoRequest);
    }
    let (_, from) = layout.addresses(request);
    let message = &request[layout.transport..layout.total];
    if checksum(from, to, message) != 0 {
        return Err(ReplyError::BadChecksum);
    }
    let (kind, class) = match layout.version {
        IpVersion::V4 => (ECHO_REPLY_V4, request[1]),
        IpVersion::V6 => (ECHO_REPLY_V6, (word(request, 0) >> 4) as u8),
    };
    let rest = [message[4], message[5], message[6], message[7]];
    let reply = IcmpMessage { kind, code: 0, rest, body: &message[ICMP_HEADER_BYTES..] };
    reply.write(from, to, class & !0b11, identification, out)
}

/// Destination of a reply: the source of the packet.
pub(crate) fn answerable_source(layout: &Layout, packet: &[u8]) -> Result<IpAddr, ReplyError> {
    let (source, destination) = layout.addresses(packet);
    if is_group(destination) {
        return Err(ReplyError::GroupDestination);
    }
    if is_one_host(source) { Ok(source) } else { Err(ReplyError::InvalidSource) }
}

/// Whether this is a multicast address or limited broadcast. A directed broadcast cannot be recognized without the
/// subnet mask.
fn is_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}

/// Whether this is the address of a single host (RFC 1812 section 4.3.2.7): not in network zero, loopback, multicast,
/// or class E.
fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !(matches!(address.octets()[0], 0 | 224..) || address.is_loopback()),
        IpAddr::V6(address) => !(address.is_multicast() || address.is_unspecified() || address.is_loopback()),
    }
}

/// The checksum of a message. ICMPv6 includes a pseudo-header (RFC 4443 section 2.3).
fn checksum(from: IpAddr, to: IpAddr, message: &[u8]) -> u16 {
    match from {
        IpAddr::V4(_) => Checksum::default().add(message).finish(),
        IpAddr::V6(_) => sum((from, to), protocol::ICMPV6, message).finish(),
    }
}

/// An ICMP or ICMPv6 message. Its length always fits an IP header: a quoted packet is short, and echoed data arrived in
/// a packet with headers of at least the same size.
pub(crate) struct IcmpMessage<'a> {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes after the checksum.
    pub(crate) rest: [u8; 4],
    pub(crate) body: &'a [u8],
}

impl IcmpMessage<'_> {
    fn bytes(&self, from: IpAddr, to: IpAddr) -> Vec<u8> {
        let mut bytes = [&[self.kind, self.code, 0, 0][..], &self.rest, self.body].concat();
        let checksum = checksum(from, to, &bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Appends a packet with this message.
    fn write(
        &self,
        from: IpAddr,
        to: IpAddr,
        class: u8,
        identification: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), ReplyError> {
        let number = if from.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        ip_header((from, to), number, class, identification, ICMP_HEADER_BYTES + self.body.len(), out)?;
        out.extend(self.bytes(from, to));
        Ok(())
    }

    /// Appends an IPv6 packet with this message.
    pub(crate) fn write_v6(&self, from: Ipv6Addr, to: Ipv6Addr, class: u8, hop_limit: u8, out: &mut Vec<u8>) {
        header_v6((from, to), protocol::ICMPV6, class, hop_limit, ICMP_HEADER_BYTES + self.body.len(), out);
        out.extend(self.bytes(IpAddr::V6(from), IpAddr::V6(to)));
    }
}

/// Appends the IP header of a reply with these addresses (source, destination) and `length` bytes of payload.
pub(crate) fn ip_header(
    addresses: (IpAddr, IpAddr),
    number: u8,
    class: u8,
    identification: u16,
    length: usize,
    out: &mut Vec<u8>,
) -> Result<(), ReplyError> {
    match addresses {
        (IpAddr::V4(from), IpAddr::V4(to)) => header_v4((from, to), number, class, identification, length, out),
        (IpAddr::V6(from), IpAddr::V6(to)) => header_v6((from, to), number, class, HOP_LIMIT, length, out),
        _ => return Err(ReplyError::VersionMismatch),
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
