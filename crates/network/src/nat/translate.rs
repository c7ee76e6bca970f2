//! The NATs of a network: which of them a packet passes, and its endpoints as seen at each host.

use super::NatSpecification;
use super::session::Side;
use super::table::{MappingTable, NatDropReason};
use crate::address::{Endpoint, EndpointPair};
use crate::network::Network;
use crate::packet::{Packet, PacketContent, PacketDisposition, PacketHandle};
use crate::routing::NextHop;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Instant, NodeId, RandomStream};
use fullpipe_wire::{IpVersion, PacketSummary, Transport, protocol};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of a NAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatCounters {
    /// Mappings created.
    pub mappings: u64,
    /// Mappings that have expired.
    pub expired: u64,
    /// Packets from inside dropped because no port was free or the host had reached
    /// [`NatSpecification::ports_per_host`].
    pub exhausted: u64,
    /// TCP segments from inside dropped because they opened no connection and had no mapping.
    pub unopened: u64,
    /// Packets from outside dropped because there was no mapping or the filter rejected them.
    pub unsolicited: u64,
}

/// One NAT.
#[derive(Debug)]
pub(super) struct Translator {
    rules: NatSpecification,
    /// The random stream from which ports are drawn.
    random: RandomStream,
    inside: BTreeSet<NodeId>,
    udp: MappingTable,
    tcp: MappingTable,
    /// Mappings of echo requests, whose identifiers are the ports (RFC 5508 REQ-1).
    echo: MappingTable,
    pub(super) counters: NatCounters,
}

/// Whether a packet belongs to a conversation, or is an ICMP error about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    Packet,
    Error,
}

/// The transport protocols that a NAT distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NatTransport {
    /// UDP, and all other protocols, which share its mappings.
    Udp,
    /// A TCP segment with these flags.
    Tcp(u16),
    /// ICMP echo.
    Echo,
}

impl NatTransport {
    /// Returns the transport of a protocol number; the flags of TCP are 0, because they are unknown.
    pub(super) fn of(protocol: u8) -> NatTransport {
        match protocol {
            protocol::TCP => NatTransport::Tcp(0),
            protocol::ICMP => NatTransport::Echo,
            _ => NatTransport::Udp,
        }
    }

    fn flags(self) -> Option<u16> {
        match self {
            NatTransport::Tcp(flags) => Some(flags),
            NatTransport::Udp | NatTransport::Echo => None,
        }
    }
}

impl Translator {
    pub(super) fn table(&self, transport: NatTransport) -> &MappingTable {
        match transport {
            NatTransport::Udp => &self.udp,
            NatTransport::Tcp(_) => &self.tcp,
            NatTransport::Echo => &self.echo,
        }
    }

    /// Returns whether a packet from `side` may pass, and updates the table.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        side: Side,
        (inside, remote): (Endpoint, Endpoint),
        transport: NatTransport,
        kind: PacketKind,
    ) -> bool {
        let flags = transport.flags();
        let table = match transport {
            NatTransport::Udp => &mut self.udp,
            NatTransport::Tcp(_) => &mut self.tcp,
            NatTransport::Echo => &mut self.echo,
        };
        let passes = match side {
            _ if kind == PacketKind::Error => table.error(now, side, inside, remote, self.rules.filter),
            Side::Inside => table.outbound(now, inside, remote, flags, &self.rules, &mut self.random).map(|_| ()),
            Side::Outside => table.inbound(now, inside, remote, flags, &self.rules),
        };
        match passes {
            Ok(()) => return true,
            Err(NatDropReason::NoFreePort) => self.counters.exhausted += 1,
            Err(NatDropReason::NoSession) => self.counters.unopened += 1,
            Err(NatDropReason::Unsolicited) => self.counters.unsolicited += 1,
        }
        false
    }
}

/// All NATs of a network.
#[derive(Debug, Default)]
pub(crate) struct Translators {
    /// The NATs; a nested one precedes the one outside it.
    pub(super) translators: Vec<Translator>,
    pub(super) at: BTreeMap<NodeId, usize>,
    /// The NATs around each host, innermost first.
    around: BTreeMap<NodeId, Vec<usize>>,
}

impl Translators {
    pub(crate) fn add(&mut self, rules: NatSpecification, random: RandomStream) {
        let inside: BTreeSet<NodeId> = rules.inside.iter().copied().collect();
        let place = self.translators.partition_point(|other| other.inside.len() <= inside.len());
        let translator = Translator {
            rules,
            random,
            inside,
            udp: MappingTable::default(),
            tcp: MappingTable::default(),
            echo: MappingTable::default(),
            counters: NatCounters::default(),
        };
        self.translators.insert(place, translator);
        self.at.clear();
        self.around.clear();
        for (number, translator) in self.translators.iter().enumerate() {
            self.at.insert(translator.rules.router, number);
            for host in &translator.inside {
                self.around.entry(*host).or_default().push(number);
            }
        }
    }

    pub(crate) fn routers(&self) -> impl Iterator<Item = NodeId> {
        self.at.keys().copied()
    }

    pub(super) fn contains(&self, number: usize, host: NodeId) -> bool {
        self.translators[number].inside.contains(&host)
    }

    /// Returns an endpoint as translated by those NATs around it for which `between` returns true.
    pub(super) fn seen(
        &self,
        endpoint: Endpoint,
        transport: NatTransport,
        between: impl Fn(usize) -> bool,
    ) -> Endpoint {
        let around = self.around.get(&endpoint.node).map_or(&[][..], Vec::as_slice);
        around.iter().filter(|number| between(**number)).fold(endpoint, |inside, number| {
            let translator = &self.translators[*number];
            match translator.table(transport).port(inside) {
                Some(port) => Endpoint { node: translator.rules.router, port },
                None => inside,
            }
        })
    }

    /// Returns the endpoints of a flow as seen at a host.
    pub(crate) fn seen_at(&self, viewer: NodeId, ends: EndpointPair, transport: NatTransport) -> EndpointPair {
        let seen = |endpoint| self.seen(endpoint, transport, |number| !self.contains(number, viewer));
        EndpointPair { source: seen(ends.source), destination: seen(ends.destination) }
    }

    /// Returns whether a packet may pass the NAT at `router`, and updates its tables.
    fn pass(
        &mut self,
        now: Instant,
        router: NodeId,
        ends: EndpointPair,
        transport: NatTransport,
        kind: PacketKind,
    ) -> bool {
        let Some(&number) = self.at.get(&router) else { return true };
        let (side, host, remote) =
            match (self.contains(number, ends.source.node), self.contains(number, ends.destination.node)) {
                (true, false) => (Side::Inside, ends.source, ends.destination),
                (false, true) => (Side::Outside, ends.destination, ends.source),
                _ => return true,
            };
        let inside = self.seen(host, transport, |other| other < number);
        let remote = self.seen(remote, transport, |other| !self.contains(other, host.node));
        self.translators[number].pass(now, side, (inside, remote), transport, kind)
    }

    fn counters(&self, router: NodeId, now: Instant) -> Option<NatCounters> {
        let translator = &self.translators[*self.at.get(&router)?];
        let tables = [&translator.udp, &translator.tcp, &translator.echo];
        let mappings = tables.iter().map(|table| table.made).sum();
        let expired = mappings - tables.iter().map(|table| table.alive(now)).sum::<u64>();
        Some(NatCounters { mappings, expired, ..translator.counters })
    }
}

impl<O: Observer> Network<O> {
    /// Makes a router a NAT; ports of [`PortAllocation::Random`](super::PortAllocation) are drawn from `random`.
    /// Conversations across the NAT must be added to [`Network::directory`].
    pub fn add_nat(&mut self, specification: NatSpecification, random: RandomStream) {
        self.translators.add(specification, random);
    }

    /// Returns the counters of the NAT at this router; `None` if there is none.
    pub fn nat_counters(&self, router: NodeId) -> Option<NatCounters> {
        self.translators.counters(router, self.now())
    }

    /// Returns a NAT's router, and the source and destination of packets that should pass this NAT but bypass it.
    /// Returns `None` if no declared conversation has such packets. Must be called after [`Network::finalize`].
    pub fn find_bypassed_nat(&self) -> Option<(NodeId, NodeId, NodeId)> {
        let ways = self.declared_pairs().flat_map(|(a, b)| [(a, b), (b, a)]);
        for (from, to) in ways {
            let mut passed = BTreeSet::new();
            let mut at = from;
            for hop in self.path(from, to) {
                at = self.hop_destination(hop).unwrap_or(at);
                passed.insert(at);
            }
            // Only hosts can be inside or outside a NAT.
            let are_hosts = !self.is_router(from) && !self.is_router(to);
            for translator in self.translators.translators.iter().filter(|_| are_hosts) {
                let router = translator.rules.router;
                if translator.inside.contains(&from) != translator.inside.contains(&to) && !passed.contains(&router) {
                    return Some((router, from, to));
                }
            }
        }
        None
    }

    /// Processes the arrival of a packet at a router with a NAT.
    #[cold]
    pub(crate) fn translate(&mut self, router: NodeId, handle: PacketHandle) {
        let Packet { flow, destination, version, content, .. } = *self.arena.get(handle);
        let content = match content {
            PacketContent::Fragment { whole, .. } => self.arena.get(whole).content,
            content => content,
        };
        if destination == router {
            return self.at_outside_address(router, handle);
        }
        let transport = self.translated_as(handle);
        let mut kind = PacketKind::Packet;
        let mut of = flow;
        let mut is_done = version == IpVersion::V6;
        if let PacketContent::RawIp { about, purpose, .. } = content {
            is_done |= purpose == PacketDisposition::AlreadyTranslated;
            if let Some((about, _)) = about {
                (of, kind) = (about, PacketKind::Error);
            }
        }
        let passes = match self.directory.endpoints(of) {
            _ if is_done => true,
            _ if kind == PacketKind::Packet && self.is_error(handle) => {
                self.translators.unsolicited_at(router);
                false
            }
            Some(ends) => self.translators.pass(self.now, router, ends, transport, kind),
            None => false,
        };
        if !passes {
            return self.drop_packet(self.now, handle, None, DropReason::Nat);
        }
        let attachment = self.beyond(router, destination);
        debug_assert_ne!(attachment, NextHop::Translation, "a packet is translated once per router");
        self.route_elsewhere(router, attachment, handle);
    }

    /// Returns whether a packet is an ICMP error. Without a known quoted packet, such an error belongs to no
    /// conversation.
    fn is_error(&self, handle: PacketHandle) -> bool {
        let packet = self.arena.get(handle);
        let PacketContent::RawIp { protocol: protocol::ICMP, .. } = packet.content else { return false };
        let summary = self.arena.payload(packet.payload).and_then(|bytes| PacketSummary::parse(bytes).ok());
        summary.is_some_and(|summary| summary.transport == Transport::IcmpError)
    }

    /// Returns the transport whose mappings a NAT uses for a packet.
    pub(crate) fn translated_as(&self, handle: PacketHandle) -> NatTransport {
        match &self.arena.get(handle).content {
            PacketContent::Tcp(header) => NatTransport::Tcp(header.flags),
            PacketContent::RawIp { about: Some((_, protocol)), .. } => NatTransport::of(*protocol),
            PacketContent::RawIp { protocol: protocol::TCP, flags, .. } => NatTransport::Tcp(*flags),
            PacketContent::RawIp { protocol, .. } => NatTransport::of(*protocol),
            PacketContent::Fragment { whole, .. } => self.translated_as(*whole),
            _ => NatTransport::Udp,
        }
    }

    /// Returns whether the node is a NAT.
    pub fn is_nat(&self, node: NodeId) -> bool {
        self.translators.at.contains_key(&node)
    }

    /// Returns whether any node is a NAT.
    pub fn has_nats(&self) -> bool {
        !self.translators.at.is_empty()
    }

    /// Returns whether the host is inside the NAT at `router`.
    pub fn is_inside_nat(&self, router: NodeId, host: NodeId) -> bool {
        self.translators.at.get(&router).is_some_and(|number| self.translators.contains(*number, host))
    }

    /// Returns the endpoint inside the NAT at `router` to which `port` is currently mapped for this protocol, through
    /// all nested NATs. Returns `None` if there is none.
    pub fn endpoint_behind_nat(&self, router: NodeId, protocol: u8, port: u16) -> Option<Endpoint> {
        let way = self.translators.inward(self.now, Endpoint { node: router, port }, NatTransport::of(protocol))?;
        way.last().map(|(_, inside)| *inside)
    }
}
