//! Passes frames of real hosts into the model.
//!
//! A frame must be an Ethernet frame with an IPv4 or IPv6 packet. The first packet of a five-tuple opens a conversation
//! of the model. If the scenario has a flow with the same hosts, protocol and acceptor's port, the conversation belongs
//! to that flow. Packets for real hosts and routers keep their bytes ([`Content::Wire`]); packets for model endpoints
//! are parsed.
//!
//! A packet whose hop limit will expire is addressed to the router where it expires. A packet without a route is
//! addressed to the first router. These routers send an ICMP error to the packet's source ([`crate::world`]). A frame
//! that cannot enter is counted by its reason. It is never an error, because hosts may send any bytes.

use super::pieces::{FiveTuple, FragmentReassembly, need_whole};
use crate::witness::RunObserver;
use crate::world::World;
use crate::world::{ETHERNET_HEADER_BYTES, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use bytes::Bytes;
use fullpipe_archive::RefusedFrames;
use fullpipe_emulate::Arrival;
use fullpipe_network::{Endpoint, EndpointPair, Network, Packet, PacketContent, PacketDisposition, SideDataHandle};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Transport;
use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::{
    self as wire, AddressTranslation, IpVersion, PacketSummary, ParsedContent, Transport as Upper, protocol,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of conversations of real hosts. Packets of further conversations are dropped, so that a flood with
/// many addresses and ports cannot exhaust memory.
const MAX_CONVERSATIONS: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Known {
    flow: FlowId,
    /// Number of routers on the path.
    routers: u8,
}

/// The state of conversations with real hosts.
#[derive(Debug)]
pub(crate) struct Gateway {
    nodes: BTreeMap<IpAddr, NodeId>,
    /// The host of each port.
    hosts: Vec<NodeId>,
    conversations: BTreeMap<FiveTuple, Known>,
    /// The flows of the scenario by hosts, protocol and the acceptor's port.
    flows: BTreeMap<(NodeId, NodeId, u8, u16), u32>,
    flow_count: u32,
    pieces: FragmentReassembly,
    pub(crate) refused: RefusedFrames,
}

impl Gateway {
    /// Creates the gateway. `hosts` contains the node of each port.
    pub(crate) fn new(scenario: &Scenario, network: &Network<RunObserver>, hosts: Vec<NodeId>) -> Self {
        let mut nodes = BTreeMap::new();
        for number in 0..scenario.nodes.len() {
            let node = NodeId(number as u32);
            for version in [IpVersion::V4, IpVersion::V6] {
                nodes.insert(network.directory.address(node, version), node);
            }
        }
        let mut flows = BTreeMap::new();
        for (number, flow) in scenario.flows.iter().enumerate() {
            let protocol = match flow.transport {
                Transport::Udp | Transport::Quic(_) | Transport::Masque(_) => protocol::UDP,
                Transport::Tcp(_) => protocol::TCP,
            };
            // Packets that match several flows belong to the first of them. A flow through a tunnel begins at the
            // tunnel's proxy.
            let from = flow.via.map_or(flow.from, |tunnel| scenario.flows[tunnel].to);
            flows.entry((from, flow.to, protocol, flow.port)).or_insert(number as u32);
        }
        Gateway {
            nodes,
            hosts,
            conversations: BTreeMap::new(),
            flows,
            flow_count: scenario.flows.len() as u32,
            pieces: FragmentReassembly::new(),
            refused: RefusedFrames::default(),
        }
    }

    /// Processes the arrival of a frame at the current time of the network. Returns the port and the frame of a
    /// response, if any.
    pub(crate) fn enter(
        &mut self,
        world: &mut World,
        network: &mut Network<RunObserver>,
        arrival: Arrival,
    ) -> Option<(usize, Vec<u8>)> {
        let from = *self.hosts.get(arrival.port)?;
        let Some(kind) = arrival.bytes.get(12..ETHERNET_HEADER_BYTES) else {
            self.refused.malformed += 1;
            return None;
        };
        match u16::from_be_bytes([kind[0], kind[1]]) {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => {
                self.enter_ip(world, network, from, &arrival.bytes.slice(ETHERNET_HEADER_BYTES..))
            }
            ETHERTYPE_ARP => self.refused.not_ip += 1,
            _ => self.refused.not_ip += 1,
        }
        None
    }

    fn enter_ip(&mut self, world: &mut World, network: &mut Network<RunObserver>, from: NodeId, bytes: &Bytes) {
        let Ok(summary) = PacketSummary::parse(bytes) else {
            self.refused.malformed += 1;
            return;
        };
        if self.nodes.get(&summary.source.ip()) != Some(&from) {
            self.refused.spoofed += 1;
            return;
        }
        let address = summary.destination.ip();
        let to = self.nodes.get(&address).copied().or_else(|| network.host_behind_rebinding(address));
        // A host has no route through the network to itself.
        let Some(to) = to.filter(|to| *to != from) else {
            return self.no_route(world, network, from, &summary, bytes);
        };
        if !need_whole(network, &summary, world.is_real(to)) {
            return self.enter_toward(world, network, (from, to), &summary, bytes);
        }
        match self.pieces.whole(network.now(), bytes) {
            Ok(Some(whole)) => match PacketSummary::parse(&whole) {
                Ok(summary) => {
                    // A packet that its source has fragmented may be fragmented again.
                    let dont_fragment = summary.dont_fragment && summary.version == IpVersion::V4;
                    let summary = PacketSummary { dont_fragment, ..summary };
                    self.enter_toward(world, network, (from, to), &summary, &whole);
                }
                Err(_) => self.refused.malformed += 1,
            },
            Ok(None) => {}
            Err(()) => self.refused.fragments += 1,
        }
    }

    fn enter_toward(
        &mut self,
        world: &mut World,
        network: &mut Network<RunObserver>,
        (from, to): (NodeId, NodeId),
        summary: &PacketSummary,
        bytes: &Bytes,
    ) {
        let inbound = self.through_nat(network, (from, to), summary, bytes);
        let (to, bytes) = inbound.as_ref().map_or((to, bytes), |(to, bytes)| (*to, bytes));
        let Some(own) = conversation_of(summary, bytes, inbound.is_some()) else {
            self.refused.malformed += 1;
            return;
        };
        let tuple = self.pieces.conversation(summary, own);
        let Some(known) = self.known(world, network, tuple, (from, to)) else { return };
        let is_late = summary.hop_limit <= known.routers;
        let (to, purpose) = match is_late.then(|| last_router(network, (from, to), summary.hop_limit)) {
            None => (to, PacketDisposition::Deliver),
            Some(router) => {
                self.refused.expired += 1;
                let Some(router) = router else { return };
                (router, PacketDisposition::HopLimitExceeded)
            }
        };
        let packet = packet(known.flow, to, summary);
        let is_models = !world.is_real(to) && !network.is_router(to);
        if is_models && world.flow_of(known.flow.index() / 2).is_some() {
            return self.enter_model(network, from, packet, bytes);
        }
        let about = match summary.transport {
            Upper::IcmpError => self.about(bytes),
            _ => None,
        };
        let content = wire_content(summary, tuple.0, from, about, purpose);
        send_wire(network, from, Packet { content, ..packet }, bytes);
    }

    /// Sends a packet whose address belongs to no node to the first router. Multicast and broadcast packets, such as
    /// service announcements of hosts, are only counted.
    #[cold]
    fn no_route(
        &mut self,
        world: &mut World,
        network: &mut Network<RunObserver>,
        from: NodeId,
        summary: &PacketSummary,
        bytes: &Bytes,
    ) {
        self.refused.unroutable += 1;
        let is_group = match summary.destination.ip() {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        let is_own = self.nodes.get(&summary.destination.ip()) == Some(&from);
        let Some(router) = network.adjacent_router(from).filter(|_| !is_group && !is_own) else { return };
        // All such packets of a host belong to one conversation with the router.
        let end = |node| SocketAddr::new(network.directory.address(node, summary.version), 0);
        let tuple = (0, end(from), end(router));
        let Some(known) = self.known(world, network, tuple, (from, router)) else { return };
        let content = wire_content(summary, summary.protocol, from, None, PacketDisposition::NoRoute);
        send_wire(network, from, Packet { content, ..packet(known.flow, router, summary) }, bytes);
    }

    /// Returns the conversation of a five-tuple, and opens it if it is new; `None` if there are too many.
    fn known(
        &mut self,
        world: &mut World,
        network: &mut Network<RunObserver>,
        tuple: FiveTuple,
        (from, to): (NodeId, NodeId),
    ) -> Option<Known> {
        if let Some(known) = self.conversations.get(&tuple) {
            return Some(*known);
        }
        if self.conversations.len() >= 2 * MAX_CONVERSATIONS {
            self.refused.too_many_conversations += 1;
            return None;
        }
        Some(self.introduce(world, network, tuple, from, to))
    }

    /// Returns the flow and protocol of the packet that an ICMP error quotes, in the direction of the error. NATs need
    /// them to translate the error (RFC 5508 REQ-3 to REQ-5).
    fn about(&self, bytes: &Bytes) -> Option<(FlowId, u8)> {
        let quoted = wire::quoted_packet(bytes)?;
        let known = self.conversations.get(&(quoted.protocol, quoted.destination, quoted.source))?;
        Some((known.flow, quoted.protocol))
    }

    /// Returns the inside host of a packet that is addressed to a NAT, and the packet as that host will receive it. The
    /// current mappings determine the host; the NAT filters the packet when it arrives there. Returns `None` if the
    /// packet is not addressed to a NAT, the port has no mapping, or the packet is from inside. The NAT itself
    /// translates packets from inside.
    fn through_nat(
        &self,
        network: &Network<RunObserver>,
        (from, to): (NodeId, NodeId),
        summary: &PacketSummary,
        bytes: &Bytes,
    ) -> Option<(NodeId, Bytes)> {
        if summary.version != IpVersion::V4 || !network.is_nat(to) || network.is_inside_nat(to, from) {
            return None;
        }
        let (protocol, port) = match summary.transport {
            Upper::IcmpError => wire::quoted_packet(bytes).map(|quoted| (quoted.protocol, quoted.source.port()))?,
            _ => (summary.protocol, summary.destination.port()),
        };
        let inside = network.endpoint_behind_nat(to, protocol, port)?;
        let destination = SocketAddr::new(network.directory.address(inside.node, IpVersion::V4), inside.port);
        let mut changed = bytes[..summary.total_bytes as usize].to_vec();
        let translation = AddressTranslation { source: None, destination: Some(destination) };
        translation.apply(&mut changed).ok()?;
        Some((inside.node, changed.into()))
    }

    /// Parses a packet for an endpoint of the model, which processes fields instead of bytes.
    fn enter_model(&mut self, network: &mut Network<RunObserver>, from: NodeId, packet: Packet, bytes: &Bytes) {
        let parsed = match wire::parse(bytes) {
            Ok(parsed) => parsed,
            Err(_) => {
                self.refused.unexpected += 1;
                return;
            }
        };
        let packet = match parsed.content {
            ParsedContent::Tcp(header, options) => Packet {
                content: PacketContent::Tcp(header),
                options: if header.has_segment_options() {
                    network.arena.store_options(&options)
                } else {
                    SideDataHandle::NONE
                },
                payload: network
                    .arena
                    .store_payload((!parsed.payload.is_empty()).then(|| bytes.slice_ref(parsed.payload))),
                ..packet
            },
            ParsedContent::Udp => {
                Packet { content: PacketContent::Udp { payload_bytes: parsed.payload.len() as u32 }, ..packet }
            }
            ParsedContent::Fragment { .. } | ParsedContent::Other(_) => {
                self.refused.unexpected += 1;
                return;
            }
        };
        network.send(from, &packet);
    }

    /// Returns the direction of a scenario flow with these ends.
    fn described(&self, network: &Network<RunObserver>, ends: EndpointPair) -> Option<FlowId> {
        let flows = (0..self.flow_count).flat_map(|number| [FlowId(2 * number), FlowId(2 * number).reverse()]);
        flows.into_iter().find(|flow| network.directory.endpoints(*flow) == Some(ends))
    }

    /// Opens a conversation.
    #[cold]
    fn introduce(
        &mut self,
        world: &mut World,
        network: &mut Network<RunObserver>,
        tuple: FiveTuple,
        from: NodeId,
        to: NodeId,
    ) -> Known {
        let (protocol, source, destination) = tuple;
        let version = if source.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let routers = network.path(from, to).len().saturating_sub(1).min(255) as u8;
        let reverse = (protocol, destination, source);
        let ends = EndpointPair {
            source: Endpoint { node: from, port: source.port() },
            destination: Endpoint { node: to, port: destination.port() },
        };
        // A packet for a model endpoint may belong to a conversation that the endpoint opened.
        let begun = match world.is_real(to) {
            // Between real hosts, only the scenario's flows are searched, because a search of all conversations would
            // be slow during a flood.
            true => self.described(network, ends),
            false if network.is_router(to) => None,
            false => network.directory.find(ends.reverse()).map(FlowId::reverse),
        };
        let flow = begun.unwrap_or_else(|| {
            let described = self.flows.get(&(from, to, protocol, destination.port())).copied();
            FlowId(2 * world.introduce_real(network, described, ends, version, protocol))
        });
        let known = Known { flow, routers };
        self.conversations.insert(tuple, known);
        let routers = network.path(to, from).len().saturating_sub(1).min(255) as u8;
        self.conversations.insert(reverse, Known { flow: flow.reverse(), routers });
        known
    }
}

/// Returns the five-tuple of a packet; `None` if it cannot be parsed after translation.
fn conversation_of(summary: &PacketSummary, bytes: &Bytes, translated: bool) -> Option<FiveTuple> {
    let changed = if translated { Some(PacketSummary::parse(bytes).ok()?) } else { None };
    let PacketSummary { protocol, source, destination, .. } = changed.as_ref().unwrap_or(summary);
    Some((*protocol, *source, *destination))
}

/// Returns the router at which a hop limit expires; `None` if the node at that hop is not a router.
fn last_router(network: &Network<RunObserver>, (from, to): (NodeId, NodeId), hop_limit: u8) -> Option<NodeId> {
    let way = network.path(from, to);
    let hop = way.get(usize::from(hop_limit).saturating_sub(1))?;
    network.hop_destination(*hop).filter(|node| network.is_router(*node))
}

fn packet(flow: FlowId, to: NodeId, summary: &PacketSummary) -> Packet {
    let content = PacketContent::Udp { payload_bytes: summary.payload_bytes };
    let packet = Packet::new(flow, to, summary.total_bytes, content);
    Packet { codepoint: summary.codepoint, version: summary.version, ..packet }
}

fn wire_content(
    summary: &PacketSummary,
    protocol: u8,
    origin: NodeId,
    about: Option<(FlowId, u8)>,
    purpose: PacketDisposition,
) -> PacketContent {
    let flags = match summary.transport {
        Upper::Tcp { flags, .. } => flags,
        _ => 0,
    };
    let (payload_bytes, dont_fragment) = (summary.payload_bytes, summary.dont_fragment);
    PacketContent::RawIp { payload_bytes, protocol, flags, dont_fragment, origin, about, purpose }
}

fn send_wire(network: &mut Network<RunObserver>, from: NodeId, packet: Packet, bytes: &Bytes) {
    let payload = network.arena.store_payload(Some(bytes.slice(..packet.ip_bytes as usize)));
    network.send(from, &Packet { payload, ..packet });
}
