//! Where frames of real hosts enter the model.
//!
//! A frame must be Ethernet with IPv4 or IPv6 in it. Its five-tuple is a conversation of the model from its first packet on;
//! the conversation belongs to the scenario's flow that describes it (hosts, protocol, acceptor's port), or to none. What is
//! for a real host or a router travels as it is ([`Content::Wire`]); what is for a model endpoint is parsed for it. A packet
//! whose hop limit will run out goes to the router where it does, one without a route to the first router: these tell its
//! sender ([`crate::world`]). Whatever cannot enter is counted by its reason, never an error: hosts may send what they like.

use super::pieces::{FiveTuple, Pieces, need_whole};
use crate::witness::Witness;
use crate::world::World;
use crate::world::{ETHERNET_HEADER_BYTES, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use bytes::Bytes;
use fullpipe_archive::RefusedFrames;
use fullpipe_emulate::Arrival;
use fullpipe_network::{Content, Endpoint, Ends, Network, Packet, Purpose, Side};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Transport;
use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::{self as wire, IpVersion, ParsedContent, Summary, Translation, Transport as Upper, protocol};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Most conversations of real hosts; packets of further ones are refused: a flood of addresses and ports must not take all
/// memory.
const MAX_CONVERSATIONS: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Known {
    flow: FlowId,
    /// Routers on the way.
    routers: u8,
}

/// The way in.
#[derive(Debug)]
pub(crate) struct Gateway {
    nodes: BTreeMap<IpAddr, NodeId>,
    /// Of each port.
    hosts: Vec<NodeId>,
    conversations: BTreeMap<FiveTuple, Known>,
    /// Flows of the scenario by hosts, protocol and the acceptor's port.
    flows: BTreeMap<(NodeId, NodeId, u8, u16), u32>,
    flow_count: u32,
    pieces: Pieces,
    pub(crate) refused: RefusedFrames,
}

impl Gateway {
    /// `hosts`: the node of each port.
    pub(crate) fn new(scenario: &Scenario, network: &Network<Witness>, hosts: Vec<NodeId>) -> Self {
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
            // Of several flows that look alike from outside, the first has all.
            // What went through a tunnel begins at its proxy.
            let from = flow.via.map_or(flow.from, |tunnel| scenario.flows[tunnel].to);
            flows.entry((from, flow.to, protocol, flow.port)).or_insert(number as u32);
        }
        Gateway {
            nodes,
            hosts,
            conversations: BTreeMap::new(),
            flows,
            flow_count: scenario.flows.len() as u32,
            pieces: Pieces::new(),
            refused: RefusedFrames::default(),
        }
    }

    /// A frame arrives, now by the network's clock. There may be an answer for its port.
    pub(crate) fn enter(
        &mut self,
        world: &mut World,
        network: &mut Network<Witness>,
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

    fn enter_ip(&mut self, world: &mut World, network: &mut Network<Witness>, from: NodeId, bytes: &Bytes) {
        let Ok(summary) = Summary::of(bytes) else {
            self.refused.malformed += 1;
            return;
        };
        if self.nodes.get(&summary.source.ip()) != Some(&from) {
            self.refused.spoofed += 1;
            return;
        }
        let address = summary.destination.ip();
        let to = self.nodes.get(&address).copied().or_else(|| network.rebound_host(address));
        // A host has no way to itself over the network.
        let Some(to) = to.filter(|to| *to != from) else {
            return self.no_route(world, network, from, &summary, bytes);
        };
        if !need_whole(network, &summary, world.is_real(to)) {
            return self.enter_toward(world, network, (from, to), &summary, bytes);
        }
        match self.pieces.whole(network.now(), bytes) {
            Ok(Some(whole)) => match Summary::of(&whole) {
                Ok(summary) => {
                    // What its source has cut, it may cut again.
                    let dont_fragment = summary.dont_fragment && summary.version == IpVersion::V4;
                    let summary = Summary { dont_fragment, ..summary };
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
        network: &mut Network<Witness>,
        (from, to): (NodeId, NodeId),
        summary: &Summary,
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
            None => (to, Purpose::Arrive),
            Some(router) => {
                self.refused.expired += 1;
                let Some(router) = router else { return };
                (router, Purpose::Expire)
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

    /// A packet to an address that no node has: it gets as far as the first router. Not what goes to a group, as much of what
    /// hosts say of themselves does.
    #[cold]
    fn no_route(
        &mut self,
        world: &mut World,
        network: &mut Network<Witness>,
        from: NodeId,
        summary: &Summary,
        bytes: &Bytes,
    ) {
        self.refused.unroutable += 1;
        let is_group = match summary.destination.ip() {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        let is_own = self.nodes.get(&summary.destination.ip()) == Some(&from);
        let Some(router) = network.router_beside(from).filter(|_| !is_group && !is_own) else { return };
        // All of a host are one conversation, with the router.
        let end = |node| SocketAddr::new(network.directory.address(node, summary.version), 0);
        let tuple = (0, end(from), end(router));
        let Some(known) = self.known(world, network, tuple, (from, router)) else { return };
        let content = wire_content(summary, summary.protocol, from, None, Purpose::NoRoute);
        send_wire(network, from, Packet { content, ..packet(known.flow, router, summary) }, bytes);
    }

    /// A conversation, which may be new; `None` if there are too many.
    fn known(
        &mut self,
        world: &mut World,
        network: &mut Network<Witness>,
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

    /// The flow, in the direction in which the error goes, of the packet that an ICMP error is about: translators let it pass
    /// if they know that (RFC 5508 REQ-3 to REQ-5).
    fn about(&self, bytes: &Bytes) -> Option<(FlowId, u8)> {
        let quoted = wire::quoted(bytes)?;
        let known = self.conversations.get(&(quoted.protocol, quoted.destination, quoted.source))?;
        Some((known.flow, quoted.protocol))
    }

    /// A packet for the outside address of a translator, as the host inside will get it, and that host: whose port it is is
    /// known from the mappings of now; whether it may pass is seen when it gets there. `None`: it is for no such address, or
    /// nobody has the port, or it comes from inside: then the translator looks it up.
    fn through_nat(
        &self,
        network: &Network<Witness>,
        (from, to): (NodeId, NodeId),
        summary: &Summary,
        bytes: &Bytes,
    ) -> Option<(NodeId, Bytes)> {
        if summary.version != IpVersion::V4 || !network.is_nat(to) || network.is_inside_nat(to, from) {
            return None;
        }
        let (protocol, port) = match summary.transport {
            Upper::IcmpError => wire::quoted(bytes).map(|quoted| (quoted.protocol, quoted.source.port()))?,
            _ => (summary.protocol, summary.destination.port()),
        };
        let inside = network.behind_nat(to, protocol, port)?;
        let destination = SocketAddr::new(network.directory.address(inside.node, IpVersion::V4), inside.port);
        let mut changed = bytes[..summary.total_bytes as usize].to_vec();
        let translation = Translation { source: None, destination: Some(destination) };
        translation.apply(&mut changed).ok()?;
        Some((inside.node, changed.into()))
    }

    /// A packet for an endpoint of the model, which understands fields, not bytes.
    fn enter_model(&mut self, network: &mut Network<Witness>, from: NodeId, packet: Packet, bytes: &Bytes) {
        let parsed = match wire::parse(bytes) {
            Ok(parsed) => parsed,
            Err(_) => {
                self.refused.unexpected += 1;
                return;
            }
        };
        let packet = match parsed.content {
            ParsedContent::Tcp(header, options) => Packet {
                content: Content::Tcp(header),
                options: if header.has_side_options() { network.arena.store_options(&options) } else { Side::NONE },
                payload: network
                    .arena
                    .store_payload((!parsed.payload.is_empty()).then(|| bytes.slice_ref(parsed.payload))),
                ..packet
            },
            ParsedContent::Udp => {
                Packet { content: Content::Udp { payload_bytes: parsed.payload.len() as u32 }, ..packet }
            }
            ParsedContent::Fragment { .. } | ParsedContent::Other(_) => {
                self.refused.unexpected += 1;
                return;
            }
        };
        network.send(from, &packet);
    }

    /// The direction of a flow of the scenario that has these ends.
    fn described(&self, network: &Network<Witness>, ends: Ends) -> Option<FlowId> {
        let flows = (0..self.flow_count).flat_map(|number| [FlowId(2 * number), FlowId(2 * number).reverse()]);
        flows.into_iter().find(|flow| network.directory.ends(*flow) == Some(ends))
    }

    /// A conversation that was not known.
    #[cold]
    fn introduce(
        &mut self,
        world: &mut World,
        network: &mut Network<Witness>,
        tuple: FiveTuple,
        from: NodeId,
        to: NodeId,
    ) -> Known {
        let (protocol, source, destination) = tuple;
        let version = if source.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let routers = network.path(from, to).len().saturating_sub(1).min(255) as u8;
        let reverse = (protocol, destination, source);
        let ends = Ends {
            source: Endpoint { node: from, port: source.port() },
            destination: Endpoint { node: to, port: destination.port() },
        };
        // The answer to a model endpoint, which began it.
        let begun = match world.is_real(to) {
            // Between real hosts only the scenario's own flows can be known: a flood is not searched through for each packet.
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

/// The conversation that a packet belongs to; `None` if it cannot be read any more.
fn conversation_of(summary: &Summary, bytes: &Bytes, translated: bool) -> Option<FiveTuple> {
    let changed = if translated { Some(Summary::of(bytes).ok()?) } else { None };
    let Summary { protocol, source, destination, .. } = changed.as_ref().unwrap_or(summary);
    Some((*protocol, *source, *destination))
}

/// The router at which a hop limit runs out; `None` if it is none.
fn last_router(network: &Network<Witness>, (from, to): (NodeId, NodeId), hop_limit: u8) -> Option<NodeId> {
    let way = network.path(from, to);
    let hop = way.get(usize::from(hop_limit).saturating_sub(1))?;
    network.hop_end(*hop).filter(|node| network.is_router(*node))
}

fn packet(flow: FlowId, to: NodeId, summary: &Summary) -> Packet {
    let content = Content::Udp { payload_bytes: summary.payload_bytes };
    let packet = Packet::new(flow, to, summary.total_bytes, content);
    Packet { codepoint: summary.codepoint, version: summary.version, ..packet }
}

fn wire_content(
    summary: &Summary,
    protocol: u8,
    origin: NodeId,
    about: Option<(FlowId, u8)>,
    purpose: Purpose,
) -> Content {
    let flags = match summary.transport {
        Upper::Tcp { flags, .. } => flags,
        _ => 0,
    };
    let (payload_bytes, dont_fragment) = (summary.payload_bytes, summary.dont_fragment);
    Content::Wire { payload_bytes, protocol, flags, dont_fragment, origin, about, purpose }
}

fn send_wire(network: &mut Network<Witness>, from: NodeId, packet: Packet, bytes: &Bytes) {
    let payload = network.arena.store_payload(Some(bytes.slice(..packet.ip_bytes as usize)));
    network.send(from, &Packet { payload, ..packet });
}
