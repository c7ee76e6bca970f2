//! Notifications of packets that end at routers. They let the host endpoints send ICMP errors and replies for real
//! packets.
//!
//! A packet that a router cannot forward, or that is addressed to the router, ends there. If its source is in
//! [`Network::enable_notifications`], the host endpoints receive a [`SourceNotification`] at that instant. It contains
//! the bytes of the packet as its source sent them, except for the decremented hop limit and a CE mark. The host
//! endpoints choose the content and the rate of replies. Networks without real hosts incur no cost.

use crate::network::{HOP_LIMIT, HostEndpoints, Network};
use crate::packet::{Packet, PacketContent, PacketDisposition, PacketHandle};
use fullpipe_engine::{EventClass, EventId};
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::{IcmpError, IpVersion, Unreachable, protocol, rewrite};
use std::collections::{BTreeMap, BTreeSet};

/// Number of the event at which notices are delivered: of the class [`EventClass::Host`], below those of
/// [`crate::processing`].
pub(crate) const EVENT: u32 = crate::processing::FIRST_EVENT - 1;

/// The reason why a packet has ended at a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationReason {
    /// The router cannot forward the packet.
    Error(IcmpError),
    /// The packet is addressed to the router itself.
    Delivered,
}

/// The notification that a packet has ended at a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceNotification {
    /// The router.
    pub node: NodeId,
    /// The reason.
    pub reason: NotificationReason,
    /// The host that sent the packet.
    pub source: NodeId,
    /// The flow of the packet.
    pub flow: FlowId,
    /// The IP version of the packet.
    pub version: IpVersion,
    /// The IP protocol number of the packet.
    pub protocol: u8,
    /// The bytes of the packet as its source sent them, except for the hop limit and a CE mark.
    pub bytes: Vec<u8>,
}

/// Notices to be delivered.
#[derive(Debug, Default)]
pub(crate) struct PendingNotifications {
    sources: BTreeSet<NodeId>,
    /// By instant, then in the order in which the packets ended.
    waiting: BTreeMap<(Instant, u64), SourceNotification>,
    count: u64,
}

impl<O: Observer> Network<O> {
    /// Enables notifications ([`HostEndpoints::on_notification`]) for packets from these hosts that end at routers.
    pub fn enable_notifications(&mut self, sources: impl IntoIterator<Item = NodeId>) {
        self.notices = Some(Box::new(PendingNotifications {
            sources: sources.into_iter().collect(),
            ..PendingNotifications::default()
        }));
    }

    /// Ends a packet at a router that is its destination or cannot forward it.
    #[cold]
    pub(crate) fn end_at_router(&mut self, node: NodeId, handle: PacketHandle) {
        let Some(handle) = self.whole_at(handle) else { return };
        let packet = *self.arena.get(handle);
        let reason = match packet.content {
            PacketContent::RawIp { purpose: PacketDisposition::HopLimitExceeded, .. } => {
                NotificationReason::Error(IcmpError::TimeExceeded)
            }
            PacketContent::RawIp { purpose: PacketDisposition::Deliver, .. } if packet.destination == node => {
                NotificationReason::Delivered
            }
            _ => NotificationReason::Error(IcmpError::Unreachable(Unreachable::Network)),
        };
        self.notify(self.now, handle, node, reason);
        if reason == NotificationReason::Delivered {
            self.observer.on_delivered(self.now, &packet.view(), packet.sent);
            return self.arena.release(handle);
        }
        self.drop_packet(self.now, handle, None, DropReason::Unreachable);
    }

    /// Adds a notice of a packet that ends at a router at `at`, which is later than now if links are computed ahead.
    #[cold]
    pub(crate) fn notify(&mut self, at: Instant, handle: PacketHandle, node: NodeId, reason: NotificationReason) {
        let flow = self.arena.get(handle).flow;
        let source = self.directory.endpoints(flow).map(|ends| ends.source.node);
        if !self.notices.as_ref().is_some_and(|notices| source.is_some_and(|source| notices.sources.contains(&source)))
        {
            return;
        }
        let Some(notice) = self.notification_for(handle, node, reason) else { return };
        let Some(notices) = &mut self.notices else { return };
        notices.waiting.insert((at, notices.count), notice);
        notices.count += 1;
        self.calendar.schedule(at, EventId::new(EventClass::Host, EVENT));
    }

    /// Returns the notification that `node` is the destination of a packet or cannot forward it, with the bytes that
    /// the packet's source sent. Returns `None` if the flow is unknown or these bytes cannot be determined.
    pub fn notification_for(
        &self,
        handle: PacketHandle,
        node: NodeId,
        reason: NotificationReason,
    ) -> Option<SourceNotification> {
        let packet = self.arena.get(handle);
        let source = self.directory.endpoints(packet.flow)?.source.node;
        let protocol = match packet.content {
            PacketContent::RawIp { purpose: PacketDisposition::AlreadyTranslated, .. } | PacketContent::Arp { .. } => {
                return None;
            }
            PacketContent::RawIp { protocol, .. } => protocol,
            PacketContent::Fragment { whole, .. } => match self.arena.get(whole).content {
                PacketContent::RawIp {
                    purpose: PacketDisposition::Deliver | PacketDisposition::HopLimitExceeded,
                    protocol,
                    ..
                } => protocol,
                _ => return None,
            },
            PacketContent::Tcp(_) => protocol::TCP,
            PacketContent::Udp { .. } | PacketContent::Quic(_) => protocol::UDP,
        };
        let mut bytes = Vec::new();
        // The packet as seen at its source, where it is unchanged.
        self.packet_at(source, handle)?.write(usize::MAX, &mut bytes).ok()?;
        rewrite::decrement_hop_limit(&mut bytes, self.routers_passed(packet, node).min(usize::from(HOP_LIMIT)) as u8)
            .ok()?;
        Some(SourceNotification { node, reason, source, flow: packet.flow, version: packet.version, protocol, bytes })
    }

    /// Returns the number of routers that a packet has passed when it arrives at `node`.
    pub(crate) fn routers_passed(&self, packet: &Packet, node: NodeId) -> usize {
        let Some(ends) = self.directory.endpoints(packet.flow) else { return 0 };
        let hops = match packet.content {
            // The packet passed the router to whose address it was sent.
            PacketContent::RawIp { origin, purpose: PacketDisposition::AlreadyTranslated, .. } => {
                let via = ends.destination.node;
                self.path(origin, via).len() + self.path(via, node).len()
            }
            PacketContent::RawIp { origin, .. } => self.path(origin, node).len(),
            _ => self.path(ends.source.node, node).len(),
        };
        hops.saturating_sub(1)
    }

    /// Delivers the notices that are due.
    #[cold]
    pub(crate) fn hand_over_notices(&mut self, hosts: &mut impl HostEndpoints<O>) {
        let now = self.now;
        let due = |notices: &mut Box<PendingNotifications>| {
            let first = notices.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
            Some(first.remove())
        };
        while let Some(notice) = self.notices.as_mut().and_then(due) {
            hosts.on_notification(self, notice);
        }
    }
}
