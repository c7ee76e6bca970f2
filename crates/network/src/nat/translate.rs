//! Translators in the network: which of them a packet meets, and what its ends look like from where.

use super::NatSpecification;
use super::session::Side;
use super::table::{Refusal, Table};
use crate::address::{Endpoint, Ends};
use crate::network::Network;
use crate::packet::{Content, Handle, Packet, Purpose};
use crate::routing::Attachment;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Instant, NodeId, Stream};
use fullpipe_wire::{IpVersion, Summary, Transport, protocol};
use std::collections::{BTreeMap, BTreeSet};

/// What a translator has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatCounters {
    /// Mappings made.
    pub mappings: u64,
    /// Mappings whose time is over.
    pub expired: u64,
    /// Packets from inside dropped because no port was free or the host had its share.
    pub exhausted: u64,
    /// TCP segments from inside dropped because they opened nothing and belonged to no mapping.
    pub unopened: u64,
    /// Packets from outside dropped because there was no mapping, or it did not let them in.
    pub unsolicited: u64,
}

/// One translator.
#[derive(Debug)]
pub(super) struct Translator {
    rules: NatSpecification,
    /// Draws random ports.
    random: Stream,
    inside: BTreeSet<NodeId>,
    udp: Table,
    tcp: Table,
    /// Of echo requests, whose identifiers are the ports (RFC 5508 REQ-1).
    echo: Table,
    pub(super) counters: NatCounters,
}

/// Whether a packet is what its conversation consists of, or an ICMP error about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Packet,
    Error,
}

/// A packet's transport, as far as a translator looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Translated {
    /// UDP, and whatever else has mappings like it.
    Udp,
    /// A TCP segment with these flags.
    Tcp(u16),
    /// ICMP echo.
    Echo,
}

impl Translated {
    /// Of a protocol's packets; a TCP segment's flags are not known.
    pub(super) fn of(protocol: u8) -> Translated {
        match protocol {
            protocol::TCP => Translated::Tcp(0),
            protocol::ICMP => Translated::Echo,
            _ => Translated::Udp,
        }
    }

    fn flags(self) -> Option<u16> {
        match self {
            Translated::Tcp(flags) => Some(flags),
            Translated::Udp | Translated::Echo => None,
        }
    }
}

impl Translator {
    pub(super) fn table(&self, transport: Translated) -> &Table {
        match transport {
            Translated::Udp => &self.udp,
            Translated::Tcp(_) => &self.tcp,
            Translated::Echo => &self.echo,
        }
    }

    /// Whether a packet may pass from `side`.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        side: Side,
        (inside, remote): (Endpoint, Endpoint),
        transport: Translated,
        kind: Kind,
    ) -> bool {
        let flags = transport.flags();
        let table = match transport {
            Translated::Udp => &mut self.udp,
            Translated::Tcp(_) => &mut self.tcp,
            Translated::Echo => &mut self.echo,
        };
        let passes = match side {
            _ if kind == Kind::Error => table.error(now, side, inside, remote, self.rules.filter),
            Side::Inside => table.outbound(now, inside, remote, flags, &self.rules, &mut self.random).map(|_| ()),
            Side::Outside => table.inbound(now, inside, remote, flags, &self.rules),
        };
        match passes {
            Ok(()) => return true,
            Err(Refusal::Exhausted) => self.counters.exhausted += 1,
            Err(Refusal::Unopened) => self.counters.unopened += 1,
            Err(Refusal::Unsolicited) => self.counters.unsolicited += 1,
        }
        false
    }
}

/// All translators of a network.
#[derive(Debug, Default)]
pub(crate) struct Translators {
    /// From the innermost outward, as far as they stand behind each other.
    pub(super) translators: Vec<Translator>,
    pub(super) at: BTreeMap<NodeId, usize>,
    /// The translators around each host, from the innermost.
    around: BTreeMap<NodeId, Vec<usize>>,
}

impl Translators {
    pub(crate) fn add(&mut self, rules: NatSpecification, random: Stream) {
        let inside: BTreeSet<NodeId> = rules.inside.iter().copied().collect();
        let place = self.translators.partition_point(|other| other.inside.len() <= inside.len());
        let translator = Translator {
            rules,
            random,
            inside,
            udp: Table::default(),
            tcp: Table::default(),
            echo: Table::default(),
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

    /// What an endpoint looks like behind those of the translators around it for which `between` holds.
    pub(super) fn seen(&self, endpoint: Endpoint, transport: Translated, between: impl Fn(usize) -> bool) -> Endpoint {
        let around = self.around.get(&endpoint.node).map_or(&[][..], Vec::as_slice);
        around.iter().filter(|number| between(**number)).fold(endpoint, |inside, number| {
            let translator = &self.translators[*number];
            match translator.table(transport).port(inside) {
                Some(port) => Endpoint { node: translator.rules.router, port },
                None => inside,
            }
        })
    }

    /// What the ends of a flow look like at a host.
    pub(crate) fn seen_at(&self, viewer: NodeId, ends: Ends, transport: Translated) -> Ends {
        let seen = |endpoint| self.seen(endpoint, transport, |number| !self.contains(number, viewer));
        Ends { source: seen(ends.source), destination: seen(ends.destination) }
    }

    /// Whether a packet may pass the translator at `router`.
    fn pass(&mut self, now: Instant, router: NodeId, ends: Ends, transport: Translated, kind: Kind) -> bool {
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
    /// Makes a router translate addresses; `random` draws the ports of [`PortAllocation::Random`](super::PortAllocation).
    /// Conversations across it must be introduced to [`Network::directory`].
    pub fn add_nat(&mut self, specification: NatSpecification, random: Stream) {
        self.translators.add(specification, random);
    }

    /// What the translator at this router has done so far; `None` if there is none.
    pub fn nat_counters(&self, router: NodeId) -> Option<NatCounters> {
        self.translators.counters(router, self.now())
    }

    /// A translator and two nodes with a declared conversation that should pass it and does not, if there are any. Ask
    /// after [`Network::finish`].
    pub fn bypassed_nat(&self) -> Option<(NodeId, NodeId, NodeId)> {
        let ways = self.declared_pairs().flat_map(|(a, b)| [(a, b), (b, a)]);
        for (from, to) in ways {
            let mut passed = BTreeSet::new();
            let mut at = from;
            for hop in self.path(from, to) {
                at = self.hop_end(hop).unwrap_or(at);
                passed.insert(at);
            }
            // Only hosts are inside or not.
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

    /// A packet has come to a router that translates.
    #[cold]
    pub(crate) fn translate(&mut self, router: NodeId, handle: Handle) {
        let Packet { flow, destination, version, content, .. } = *self.arena.get(handle);
        let content = match content {
            Content::Fragment { whole, .. } => self.arena.get(whole).content,
            content => content,
        };
        if destination == router {
            return self.at_outside_address(router, handle);
        }
        let transport = self.translated_as(handle);
        let mut kind = Kind::Packet;
        let mut of = flow;
        let mut is_done = version == IpVersion::V6;
        if let Content::Wire { about, purpose, .. } = content {
            is_done |= purpose == Purpose::Settled;
            if let Some((about, _)) = about {
                (of, kind) = (about, Kind::Error);
            }
        }
        let passes = match self.directory.ends(of) {
            _ if is_done => true,
            _ if kind == Kind::Packet && self.is_error(handle) => {
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
        debug_assert_ne!(attachment, Attachment::Translation, "a packet is translated once per router");
        self.route_elsewhere(router, attachment, handle);
    }

    /// Whether a packet is an ICMP error, of which nobody knows what it is about if it does not say so.
    fn is_error(&self, handle: Handle) -> bool {
        let packet = self.arena.get(handle);
        let Content::Wire { protocol: protocol::ICMP, .. } = packet.content else { return false };
        let summary = self.arena.payload(packet.payload).and_then(|bytes| Summary::of(bytes).ok());
        summary.is_some_and(|summary| summary.transport == Transport::IcmpError)
    }

    /// What a translator takes a packet for.
    pub(crate) fn translated_as(&self, handle: Handle) -> Translated {
        match &self.arena.get(handle).content {
            Content::Tcp(header) => Translated::Tcp(header.flags),
            Content::Wire { about: Some((_, protocol)), .. } => Translated::of(*protocol),
            Content::Wire { protocol: protocol::TCP, flags, .. } => Translated::Tcp(*flags),
            Content::Wire { protocol, .. } => Translated::of(*protocol),
            Content::Fragment { whole, .. } => self.translated_as(*whole),
            _ => Translated::Udp,
        }
    }

    /// Whether the node translates addresses.
    pub fn is_nat(&self, node: NodeId) -> bool {
        self.translators.at.contains_key(&node)
    }

    /// Whether any node does.
    pub fn has_nats(&self) -> bool {
        !self.translators.at.is_empty()
    }

    /// Whether the host is inside the translator at `router`.
    pub fn is_inside_nat(&self, router: NodeId, host: NodeId) -> bool {
        self.translators.at.get(&router).is_some_and(|number| self.translators.contains(*number, host))
    }

    /// The host behind the translator at `router` whose packets of this protocol leave by `port` now, with its own port, through
    /// all translators that stand behind each other; `None` if there is none.
    pub fn behind_nat(&self, router: NodeId, protocol: u8, port: u16) -> Option<Endpoint> {
        let way = self.translators.inward(self.now, Endpoint { node: router, port }, Translated::of(protocol))?;
        way.last().map(|(_, inside)| *inside)
    }
}
