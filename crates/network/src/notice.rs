//! What routers have to tell the source of a real packet, or to answer themselves.
//!
//! A packet that a router cannot pass on, or that is for the router itself, ends there. If its source has asked to hear of
//! such ends ([`Network::notify_sources`]), the host endpoints get a [`Notice`] at that instant, with the bytes of the
//! packet as its source sent them but for the hops that it has made and the mark that it got. What to say, and how
//! often, is theirs. Nothing of this costs a network without real hosts anything.

use crate::network::{HOP_LIMIT, Hosts, Network};
use crate::packet::{Content, Handle, Packet, Purpose};
use fullpipe_engine::{EventClass, EventId};
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::{IcmpError, IpVersion, Unreachable, protocol, rewrite};
use std::collections::{BTreeMap, BTreeSet};

/// The event at which notices are handed over: of the class [`EventClass::Host`], below those of hosts' processing.
pub(crate) const EVENT: u32 = crate::processing::FIRST_EVENT - 1;

/// Why a packet has ended at a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It cannot go on.
    Error(IcmpError),
    /// It is for the router itself.
    Arrived,
}

/// A packet's end at a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Where.
    pub node: NodeId,
    /// Why.
    pub reason: Reason,
    /// Whose packet it was.
    pub source: NodeId,
    /// Its flow.
    pub flow: FlowId,
    /// Which IP it is.
    pub version: IpVersion,
    /// Number of its transport protocol.
    pub protocol: u8,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// Notices that are to be handed over.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    sources: BTreeSet<NodeId>,
    /// By instant, then in the order in which the packets ended.
    waiting: BTreeMap<(Instant, u64), Notice>,
    count: u64,
}

impl<O: Observer> Network<O> {
    /// Has the ends of these hosts' packets told ([`Hosts::notice`]).
    pub fn notify_sources(&mut self, sources: impl IntoIterator<Item = NodeId>) {
        self.notices = Some(Box::new(Notices { sources: sources.into_iter().collect(), ..Notices::default() }));
    }

    /// A packet has come to a router that is its destination, or that has no route for it.
    #[cold]
    pub(crate) fn end_at_router(&mut self, node: NodeId, handle: Handle) {
        let Some(handle) = self.whole_at(handle) else { return };
        let packet = *self.arena.get(handle);
        let reason = match packet.content {
            Content::Wire { purpose: Purpose::Expire, .. } => Reason::Error(IcmpError::TimeExceeded),
            Content::Wire { purpose: Purpose::Arrive, .. } if packet.destination == node => Reason::Arrived,
            _ => Reason::Error(IcmpError::Unreachable(Unreachable::Network)),
        };
        self.notify(self.now, handle, node, reason);
        if reason == Reason::Arrived {
            self.observer.delivered(self.now, &packet.view(), packet.sent);
            return self.arena.release(handle);
        }
        self.drop_packet(self.now, handle, None, DropReason::Unreachable);
    }

    /// A packet ends at a router, now or, where links are computed ahead, later.
    #[cold]
    pub(crate) fn notify(&mut self, at: Instant, handle: Handle, node: NodeId, reason: Reason) {
        let flow = self.arena.get(handle).flow;
        let source = self.directory.ends(flow).map(|ends| ends.source.node);
        if !self.notices.as_ref().is_some_and(|notices| source.is_some_and(|source| notices.sources.contains(&source)))
        {
            return;
        }
        let Some(notice) = self.notice_of(handle, node, reason) else { return };
        let Some(notices) = &mut self.notices else { return };
        notices.waiting.insert((at, notices.count), notice);
        notices.count += 1;
        self.calendar.schedule(at, EventId::new(EventClass::Host, EVENT));
    }

    /// A packet as its source knows it, when it ends at `node`; `None` for what its source would not know again.
    pub fn notice_of(&self, handle: Handle, node: NodeId, reason: Reason) -> Option<Notice> {
        let packet = self.arena.get(handle);
        let source = self.directory.ends(packet.flow)?.source.node;
        let protocol = match packet.content {
            Content::Wire { purpose: Purpose::Settled, .. } | Content::Arp { .. } => return None,
            Content::Wire { protocol, .. } => protocol,
            Content::Fragment { whole, .. } => match self.arena.get(whole).content {
                Content::Wire { purpose: Purpose::Arrive | Purpose::Expire, protocol, .. } => protocol,
                _ => return None,
            },
            Content::Tcp(_) => protocol::TCP,
            Content::Udp { .. } | Content::Quic(_) => protocol::UDP,
        };
        let mut bytes = Vec::new();
        // At its source nothing has changed yet.
        self.captured(source, handle)?.write(usize::MAX, &mut bytes).ok()?;
        rewrite::lower_hop_limit(&mut bytes, self.routers_passed(packet, node).min(usize::from(HOP_LIMIT)) as u8)
            .ok()?;
        Some(Notice { node, reason, source, flow: packet.flow, version: packet.version, protocol, bytes })
    }

    /// Routers that a packet has left behind when it comes to `node`.
    pub(crate) fn routers_passed(&self, packet: &Packet, node: NodeId) -> usize {
        let Some(ends) = self.directory.ends(packet.flow) else { return 0 };
        let hops = match packet.content {
            // By way of the router to whose address it was sent.
            Content::Wire { origin, purpose: Purpose::Settled, .. } => {
                let via = ends.destination.node;
                self.path(origin, via).len() + self.path(via, node).len()
            }
            Content::Wire { origin, .. } => self.path(origin, node).len(),
            _ => self.path(ends.source.node, node).len(),
        };
        hops.saturating_sub(1)
    }

    /// Hands over what is due.
    #[cold]
    pub(crate) fn hand_over_notices(&mut self, hosts: &mut impl Hosts<O>) {
        let now = self.now;
        let due = |notices: &mut Box<Notices>| {
            let first = notices.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
            Some(first.remove())
        };
        while let Some(notice) = self.notices.as_mut().and_then(due) {
            hosts.notice(self, notice);
        }
    }
}
