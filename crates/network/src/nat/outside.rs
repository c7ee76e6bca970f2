//! Translation of packets that real hosts send to the outside address of a NAT.
//!
//! When such a packet arrives at the router, its port is looked up in the NAT's mappings and in those of all NATs
//! nested inside. All of them apply their filters at that instant. The new addresses are written into the packet's
//! bytes, because the packet belongs to a conversation with the router. For a packet from outside, the destination
//! becomes the inside endpoint. For a packet from inside (hairpinning), the source also becomes the router's address
//! with the port of the sender's mapping. RFC 4787 REQ-9 requires this "external source address and port". The mapping
//! is created as for any other outbound packet.
//!
//! An ICMP error about such a packet, and the packet that it quotes, are translated in reverse. The sender of the
//! quoted packet therefore sees only the router's address (RFC 5508 REQ-7). An echo request is delivered to the router
//! itself.

use super::session::Side;
use super::translate::{NatTransport, PacketKind, Translators};
use crate::address::Endpoint;
use crate::network::Network;
use crate::notice::NotificationReason;
use crate::packet::{PacketContent, PacketDisposition, PacketHandle};
use bytes::Bytes;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Instant, NodeId};
use fullpipe_wire::{AddressTranslation, IcmpError, IpVersion, PacketSummary, Transport, quoted_packet};
use std::net::SocketAddr;

/// The inbound path through nested NATs: the number of each NAT, with the endpoint to which it translates the packet.
type Way = Vec<(usize, Endpoint)>;

/// The endpoints of a packet after translation.
struct Settled {
    source: Endpoint,
    destination: Endpoint,
}

impl Translators {
    /// Returns the path to the endpoint to which an outside port is currently mapped; `None` if the port has no
    /// mapping.
    pub(super) fn inward(&self, now: Instant, outside: Endpoint, transport: NatTransport) -> Option<Way> {
        let mut way = Way::new();
        let mut found = outside;
        while let Some(&number) = self.at.get(&found.node) {
            found = self.translators[number].table(transport).inside(found.port, now)?;
            way.push((number, found));
        }
        Some(way)
    }

    /// Returns whether the filters of all NATs on a path accept a packet from `remote`.
    fn let_in(&mut self, now: Instant, way: &Way, remote: Endpoint, transport: NatTransport, kind: PacketKind) -> bool {
        let mut each = way.iter();
        each.all(|(number, inside)| {
            self.translators[*number].pass(now, Side::Outside, (*inside, remote), transport, kind)
        })
    }

    /// Counts an unsolicited packet that the NAT at a router drops.
    pub(super) fn unsolicited_at(&mut self, router: NodeId) {
        if let Some(&number) = self.at.get(&router) {
            self.unsolicited(number);
        }
    }

    fn unsolicited(&mut self, number: usize) {
        self.translators[number].counters.unsolicited += 1;
    }

    /// Translates a packet from `source` to `outside`, the address of the NAT with this number; returns `None` if the
    /// packet is dropped.
    fn settle(
        &mut self,
        now: Instant,
        number: usize,
        (source, outside): (Endpoint, Endpoint),
        transport: NatTransport,
    ) -> Option<Settled> {
        let Some(way) = self.inward(now, outside, transport) else {
            self.unsolicited(number);
            return None;
        };
        let destination = way.last()?.1;
        let source = if transport == NatTransport::Echo && self.contains(number, source.node) {
            // An echo reply contains the identifier of its destination only.
            Endpoint { node: outside.node, port: 0 }
        } else if self.contains(number, source.node) {
            let inside = self.seen(source, transport, |other| other < number);
            if !self.translators[number].pass(now, Side::Inside, (inside, outside), transport, PacketKind::Packet) {
                return None;
            }
            Endpoint { node: outside.node, port: self.translators[number].table(transport).port(inside)? }
        } else {
            self.seen(source, transport, |other| !self.contains(other, destination.node))
        };
        self.let_in(now, &way, source, transport, PacketKind::Packet).then_some(Settled { source, destination })
    }

    /// Translates an ICMP error that was sent to the address of the NAT with this number; returns `None` if the error
    /// is dropped. The error quotes a packet from `outside` to `receiver`. If the receiver is outside, another node may
    /// have sent the error.
    fn settle_error(
        &mut self,
        now: Instant,
        number: usize,
        (outside, receiver): (Endpoint, Endpoint),
        transport: NatTransport,
    ) -> Option<Settled> {
        let way = self.inward(now, outside, transport);
        let remote = if self.contains(number, receiver.node) {
            let inside = self.seen(receiver, transport, |other| other < number);
            let port = self.translators[number].table(transport).port(inside);
            port.map(|port| Endpoint { node: outside.node, port })
        } else {
            Some(receiver)
        };
        let (Some(way), Some(remote)) = (way, remote) else {
            self.unsolicited(number);
            return None;
        };
        let destination = way.last()?.1;
        self.let_in(now, &way, remote, transport, PacketKind::Error).then_some(Settled { source: remote, destination })
    }
}

impl<O: Observer> Network<O> {
    /// Processes a packet that has arrived at the NAT to which it is addressed.
    #[cold]
    pub(super) fn at_outside_address(&mut self, router: NodeId, handle: PacketHandle) {
        let Some(handle) = self.whole_at(handle) else { return };
        let packet = self.arena.get(handle);
        let PacketContent::RawIp { purpose, .. } = packet.content else {
            return self.end_at_router(router, handle);
        };
        let bytes = self.arena.payload(packet.payload).cloned().unwrap_or_default();
        let summary = PacketSummary::parse(&bytes).ok().filter(|_| purpose == PacketDisposition::Deliver);
        let Some(summary) = summary.filter(|summary| summary.version == IpVersion::V4) else {
            return self.end_at_router(router, handle);
        };
        if summary.transport == (Transport::Echo { request: true }) {
            return self.end_at_router(router, handle);
        }
        let Some((settled, changed)) = self.settled(router, handle, &summary, &bytes) else {
            return self.drop_packet(self.now, handle, None, DropReason::Nat);
        };
        let packet = self.arena.get(handle);
        let destination = settled.destination.node;
        let routers = self.routers_passed(packet, router) + self.path(router, destination).len();
        if usize::from(summary.hop_limit) <= routers {
            self.notify(self.now, handle, router, NotificationReason::Error(IcmpError::TimeExceeded));
            return self.drop_packet(self.now, handle, None, DropReason::Unreachable);
        }
        self.arena.replace_payload(handle, changed);
        let packet = self.arena.get_mut(handle);
        packet.destination = destination;
        if let PacketContent::RawIp { purpose, .. } = &mut packet.content {
            *purpose = PacketDisposition::AlreadyTranslated;
        }
        let attachment = self.beyond(router, destination);
        self.route_elsewhere(router, attachment, handle);
    }

    /// Returns the endpoints and the bytes of a packet after translation; `None` if it is dropped.
    fn settled(
        &mut self,
        router: NodeId,
        handle: PacketHandle,
        summary: &PacketSummary,
        bytes: &Bytes,
    ) -> Option<(Settled, Bytes)> {
        let &number = self.translators.at.get(&router)?;
        let ends = self.directory.endpoints(self.arena.get(handle).flow)?;
        let now = self.now;
        let error = summary.transport == Transport::IcmpError;
        let settled = if error {
            let quoted = quoted_packet(bytes).filter(|quoted| quoted.source.ip() == summary.destination.ip())?;
            let of = |address| self.directory.address(ends.source.node, IpVersion::V4) == address;
            let receiver = of(quoted.destination.ip()).then_some(ends.source.node)?;
            let receiver = Endpoint { node: receiver, port: quoted.destination.port() };
            let outside = Endpoint { node: router, port: quoted.source.port() };
            self.translators.settle_error(now, number, (outside, receiver), NatTransport::of(quoted.protocol))?
        } else {
            let outside = Endpoint { node: router, port: summary.destination.port() };
            let transport = self.translated_as(handle);
            self.translators.settle(now, number, (ends.source, outside), transport)?
        };
        let socket = |end: Endpoint| SocketAddr::new(self.directory.address(end.node, IpVersion::V4), end.port);
        let translation =
            AddressTranslation { source: Some(socket(settled.source)), destination: Some(socket(settled.destination)) };
        let mut changed = bytes.to_vec();
        translation.apply(&mut changed).ok()?;
        Some((settled, changed.into()))
    }
}
