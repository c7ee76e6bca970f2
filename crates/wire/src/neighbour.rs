//! ARP (RFC 826) and IPv6 Neighbor Discovery (RFC 4861) on an interface to a real host, for all addresses of the model.
//!
//! The interface replies to ARP requests and Neighbor Solicitations ([`NeighborResponder::handle_frame`]). If the MAC
//! address of a host is unknown, the interface sends a request ([`NeighborResponder::request`]). It learns the address
//! from any frame of the host ([`frame_sender`]). A duplicate address probe (ARP: RFC 5227; IPv6: from the unspecified
//! address, RFC 4862 section 5.4) gets a reply if the address exists in the model. Router Solicitations get no reply,
//! because hosts have static routes.

use crate::frame::{ARP_BYTES, ETHERNET_HEADER_BYTES, EtherType, EthernetHeader, HardwareAddress};
use crate::icmp::IcmpMessage;
use crate::ip::{IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{Layout, UpperProtocol};
use crate::protocol;
use crate::read::sum;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hardware type Ethernet, protocol type IPv4, lengths of their addresses.
const ARP_OF_IPV4: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const ARP_REQUEST: [u8; 2] = [0, 1];
const ARP_REPLY: [u8; 2] = [0, 2];

/// Router Solicitation is the first message type of Neighbor Discovery; Redirect below is the last (RFC 4861 section
/// 4).
const ROUTER_SOLICITATION: u8 = 133;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
/// Size of a solicitation in bytes, without options.
const SOLICITATION_BYTES: usize = 24;
/// Hop limit of Neighbor Discovery packets. A lower value shows that a router forwarded the packet.
const HOP_LIMIT: u8 = 255;
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Flags of an advertisement.
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// An interface to a real host. The interface replies to ARP requests and Neighbor Solicitations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborResponder {
    /// The interface's MAC address, which all replies contain.
    pub hardware: HardwareAddress,
    /// Whether advertisements have the R flag (RFC 4861 section 4.4).
    pub is_router: bool,
}

/// The result of [`NeighborResponder::handle_frame`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeighborResponse {
    /// The frame is a request; this is the reply.
    Reply(Vec<u8>),
    /// The frame belongs to ARP or Neighbor Discovery and gets no reply.
    NoReply,
    /// The frame belongs to neither protocol and must be handled as a packet.
    OtherProtocol,
}

impl NeighborResponder {
    /// Handles a frame. Builds the reply to a valid request for an address for which `is_ours` returns true.
    pub fn handle_frame(&self, frame: &[u8], is_ours: impl Fn(IpAddr) -> bool) -> NeighborResponse {
        let Some((header, payload)) = EthernetHeader::read(frame) else { return NeighborResponse::OtherProtocol };
        let reply = match header.ether_type {
            EtherType::Arp => self.arp(&header, payload, is_ours),
            EtherType::Ipv6 => match discovery(payload) {
                Some(layout) => self.solicitation(&header, &payload[..layout.total], &layout, is_ours),
                None => return NeighborResponse::OtherProtocol,
            },
            _ => return NeighborResponse::OtherProtocol,
        };
        reply.map_or(NeighborResponse::NoReply, NeighborResponse::Reply)
    }

    /// Builds a request for the MAC address of `target`, with the source address `own`. Returns `None` if their IP
    /// versions differ.
    pub fn request(&self, own: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
        match (own, target) {
            (IpAddr::V4(own), IpAddr::V4(target)) => {
                let (destination, ether_type) = (HardwareAddress::BROADCAST, EtherType::Arp);
                let header = EthernetHeader { destination, source: self.hardware, ether_type };
                let (own, target) = (own.octets(), target.octets());
                let asker = [&self.hardware.0[..], &own].concat();
                Some([&header.bytes()[..], &ARP_OF_IPV4, &ARP_REQUEST, &asker, &[0; 6], &target].concat())
            }
            (IpAddr::V6(own), IpAddr::V6(target)) => {
                let [.., a, b, c] = target.octets();
                let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
                let destination = HardwareAddress::multicast(group);
                let header = EthernetHeader { destination, source: self.hardware, ether_type: EtherType::Ipv6 };
                let body = [&target.octets()[..], &[SOURCE_LINK_LAYER_ADDRESS, 1], &self.hardware.0].concat();
                let message = IcmpMessage { kind: NEIGHBOUR_SOLICITATION, code: 0, rest: [0; 4], body: &body };
                let mut frame = header.bytes().to_vec();
                message.write_v6(own, group, 0, HOP_LIMIT, &mut frame);
                Some(frame)
            }
            _ => None,
        }
    }

    /// Whether the source of a frame is unicast and its destination is this interface or a group.
    fn accepts(&self, header: &EthernetHeader) -> bool {
        !header.source.is_group() && (header.destination.is_group() || header.destination == self.hardware)
    }

    fn arp(&self, header: &EthernetHeader, payload: &[u8], is_ours: impl Fn(IpAddr) -> bool) -> Option<Vec<u8>> {
        let packet = payload.get(..ARP_BYTES as usize)?;
        let (kind, operation) = (&packet[..6], &packet[6..8]);
        if kind != ARP_OF_IPV4 || operation != ARP_REQUEST || !self.accepts(header) {
            return None;
        }
        let sender = HardwareAddress(packet[8..14].try_into().ok()?);
        let target: [u8; 4] = packet[24..28].try_into().ok()?;
        if sender.is_group() || !is_ours(IpAddr::V4(Ipv4Addr::from(target))) {
            return None;
        }
        let reply = EthernetHeader { destination: sender, source: self.hardware, ether_type: EtherType::Arp };
        let asker = &packet[8..18];
        Some([&reply.bytes()[..], &ARP_OF_IPV4, &ARP_REPLY, &self.hardware.0, &target, asker].concat())
    }

    /// Replies to a solicitation (RFC 4861 section 7.2.4) if it is valid (section 7.1.1).
    fn solicitation(
        &self,
        header: &EthernetHeader,
        packet: &[u8],
        layout: &Layout,
        is_ours: impl Fn(IpAddr) -> bool,
    ) -> Option<Vec<u8>> {
        let message = &packet[layout.transport..];
        let (IpAddr::V6(source), IpAddr::V6(destination)) = layout.addresses(packet) else { return None };
        let is_solicitation = message.starts_with(&[NEIGHBOUR_SOLICITATION, 0]) && message.len() >= SOLICITATION_BYTES;
        let is_valid = packet[7] == HOP_LIMIT
            && layout.piece.is_none()
            && sum((source.into(), destination.into()), protocol::ICMPV6, message).finish() == 0;
        if !is_solicitation || !is_valid || !self.accepts(header) || source.is_multicast() {
            return None;
        }
        let target = Ipv6Addr::from(<[u8; 16]>::try_from(&message[8..SOLICITATION_BYTES]).ok()?);
        let link_layer = source_link_layer_address(&message[SOLICITATION_BYTES..]).ok()?;
        if target.is_multicast() || !is_ours(IpAddr::V6(target)) {
            return None;
        }
        let (to, hardware, solicited) = if source.is_unspecified() {
            if !is_solicited_node(destination) || link_layer.is_some() {
                return None;
            }
            (ALL_NODES, HardwareAddress::multicast(ALL_NODES), 0)
        } else {
            (source, link_layer.filter(|address| !address.is_group()).unwrap_or(header.source), SOLICITED)
        };
        Some(self.advertisement(target, to, hardware, solicited))
    }

    fn advertisement(&self, target: Ipv6Addr, to: Ipv6Addr, hardware: HardwareAddress, solicited: u8) -> Vec<u8> {
        let router = if self.is_router { ROUTER } else { 0 };
        let option = [TARGET_LINK_LAYER_ADDRESS, 1];
        let body = [&target.octets()[..], &option, &self.hardware.0].concat();
        let rest = [router | solicited | OVERRIDE, 0, 0, 0];
        let message = IcmpMessage { kind: NEIGHBOUR_ADVERTISEMENT, code: 0, rest, body: &body };
        let header = EthernetHeader { destination: hardware, source: self.hardware, ether_type: EtherType::Ipv6 };
        let mut frame = Vec::with_capacity(ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES as usize + 8 + body.len());
        frame.extend(header.bytes());
        message.write_v6(target, to, 0, HOP_LIMIT, &mut frame);
        frame
    }
}

/// Returns the IP address and the MAC address of a frame's sender. In an IP packet, the IP address is the source
/// address; in ARP, the sender protocol address. Returns `None` if the frame contains no such address, or if the source
/// MAC address is a group address. The source of a Neighbor Advertisement is the address that it advertises.
pub fn frame_sender(frame: &[u8]) -> Option<(IpAddr, HardwareAddress)> {
    let (header, payload) = EthernetHeader::read(frame)?;
    let four = |at: usize| <[u8; 4]>::try_from(payload.get(at..at + 4)?).ok().map(IpAddr::from);
    let address = match header.ether_type {
        EtherType::Ipv4 => four(12),
        EtherType::Ipv6 => <[u8; 16]>::try_from(payload.get(8..24)?).ok().map(IpAddr::from),
        EtherType::Arp if payload.starts_with(&ARP_OF_IPV4) => four(14),
        _ => None,
    };
    (!header.source.is_group()).then_some((address?, header.source))
}

/// The layout of a packet; `None` if the packet does not belong to Neighbor Discovery.
fn discovery(packet: &[u8]) -> Option<Layout> {
    let layout = Layout::whole(packet).ok()?;
    let is_discovery = layout.version == IpVersion::V6
        && layout.upper == UpperProtocol::Icmp
        && matches!(packet[layout.transport], ROUTER_SOLICITATION..=REDIRECT);
    is_discovery.then_some(layout)
}

/// Whether an address is a solicited-node multicast address, ff02::1:ff00:0/104 (RFC 4291 section 2.7.1).
fn is_solicited_node(address: Ipv6Addr) -> bool {
    address.octets()[..13] == [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff]
}

/// Error: the length of an option is wrong.
struct WrongOption;

/// The source link-layer address among the options, if there is one (RFC 4861 section 4.6.1).
fn source_link_layer_address(mut options: &[u8]) -> Result<Option<HardwareAddress>, WrongOption> {
    let mut found = None;
    while let [kind, rest @ ..] = options {
        // The length is in units of eight bytes; zero is invalid.
        let length = usize::from(*rest.first().ok_or(WrongOption)?) * 8;
        let option = options.get(..length).filter(|option| !option.is_empty()).ok_or(WrongOption)?;
        if *kind == SOURCE_LINK_LAYER_ADDRESS && length == 8 {
            found = option[2..].try_into().ok().map(HardwareAddress);
        }
        options = &options[length..];
    }
    Ok(found)
}
