//! The network as a whole, which routes packets, drives links, and owns the event calendar.
//!
//! **Fragments.** A packet larger than a link's MTU is sent as fragments (RFC 791 section 3.2); the whole packet stays
//! in the arena until its last fragment has arrived or been dropped (see [`crate::fragment`]).

use crate::address::ConversationTable;
use crate::ethernet::Segment;
use crate::fault::SilentDrop;
use crate::fragment::Fragments;
use crate::link::{Link, LinkCounters, LinkSpecification, NextLinkMode, TransmissionTimes};
use crate::medium::{self, HubMedium};
use crate::nat::Translators;
use crate::notice::{self, PendingNotifications, SourceNotification};
use crate::packet::{Arena, InFlightPacket, Packet, PacketContent, PacketHandle};
use crate::processing::{self, Departure, Processing};
use crate::queue::QueuedPacket;
use crate::rebinding::Rebinder;
use crate::routing::{self, Edge, NextHop, Routes};
use crate::tap::{CaptureDirection, Tap};
use fullpipe_engine::{Calendar, EventClass, EventId, prefetch};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_schema::metric::TimeSum;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The endpoints at hosts, which receive packets and timer events, and send through [`Network`].
pub trait HostEndpoints<O: Observer> {
    /// Called when a whole packet has arrived at `node`. The implementation must release the packet.
    fn receive(&mut self, network: &mut Network<O>, node: NodeId, packet: PacketHandle);

    /// Called when a timer that was added to [`Network::calendar`] expires.
    fn on_timer(&mut self, network: &mut Network<O>, event: EventId);

    /// Called before a packet of this flow arrives, so that the implementation can prefetch the flow's endpoint.
    #[inline(always)]
    fn prefetch(&self, _flow: FlowId) {}

    /// Called when a fragment of a real packet has arrived at `node`. The network releases the fragment. Returns true
    /// if the node receives individual fragments instead of the whole packet.
    fn receive_fragment(&mut self, _network: &mut Network<O>, _node: NodeId, _fragment: PacketHandle) -> bool {
        false
    }

    /// Called when a packet has ended at a router, if its source was passed to [`Network::enable_notifications`].
    fn on_notification(&mut self, _network: &mut Network<O>, _notice: SourceNotification) {}
}

/// Initial time to live and hop limit of hosts.
pub(crate) const HOP_LIMIT: u8 = 64;

/// Number of links above which the state of links and flows exceeds a cache of 2 MB.
const MOST_LINKS_IN_CACHES: usize = 1000;

/// A node: packets end at hosts, and routers forward them.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) router: bool,
    pub(crate) routes: Routes,
}

/// The packets in the network at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct RemainingPackets {
    /// Number and bytes on the wire of the frames that were offered but neither transmitted nor dropped. The entries
    /// are in this order: links, shared media (or stations' channels), directions of media with a hub.
    pub queued_per_link: Vec<(u64, u64)>,
    /// Number and IP bytes of each flow's whole packets that are queued or in flight.
    pub packets_per_flow: BTreeMap<FlowId, (u64, u64)>,
}

/// The network: links, packets and time.
#[derive(Debug)]
pub struct Network<O> {
    pub(crate) now: Instant,
    pub(crate) horizon: Instant,
    /// The pending events; hosts add their timers.
    pub calendar: Calendar,
    /// All packets in the network.
    pub arena: Arena,
    /// The observer of the run.
    pub observer: O,
    /// The receiver of captured packets; `None` if there is none.
    pub tap: Option<Box<dyn Tap>>,
    pub(crate) links: Vec<Link>,
    /// The node at which each link starts.
    link_sources: Vec<NodeId>,
    /// The only feeder of each link, if both are computed together; otherwise [`crate::link::NO_LINK`]. Empty without
    /// chains.
    pub(crate) feeders: Vec<LinkId>,
    pub(crate) segments: Vec<Segment>,
    /// Segment and channel number of each channel of all segments.
    pub(crate) channels: Vec<(u32, u32)>,
    /// Segment and station number of each station of all segments.
    pub(crate) stations: Vec<(u32, u32)>,
    pub(crate) media: Vec<HubMedium>,
    pub(crate) fragments: Fragments,
    /// The endpoints of flows; required if there is a tap or a NAT.
    pub directory: ConversationTable,
    pub(crate) translators: Translators,
    pub(crate) rebinders: BTreeMap<u32, Rebinder>,
    /// The hosts that receive notices of packets that end at routers, if there are any.
    pub(crate) notices: Option<Box<PendingNotifications>>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Vec<Edge>>,
    pub(crate) conversations: BTreeSet<(NodeId, NodeId)>,
    pub(crate) observed: BTreeSet<LinkId>,
    pub(crate) fuse: bool,
    /// Whether packets may belong to undeclared conversations.
    pub(crate) undeclared: bool,
    pub(crate) silent_drop: Option<Box<SilentDrop>>,
    /// Processing jitter by node, up to the last node that has one; empty if no node has one.
    pub(crate) processing: Vec<Option<Box<Processing>>>,
    /// Whether there is a tap, so that arrivals take the slow path. Determined when the run starts, like the next two
    /// fields.
    tapped: bool,
    /// Whether there is a tap or processing jitter, so that sending takes the slow path.
    attentive: bool,
    /// Whether the state of links and flows exceeds the caches, so that prefetching is useful.
    exceeds_caches: bool,
    pub(crate) dropped: Vec<QueuedPacket>,
    /// The links whose rate and delay the program changes.
    pub(crate) adjustable: Vec<LinkId>,
    events: u64,
}

impl<O: Observer> Network<O> {
    /// Returns a network without nodes.
    pub fn new(observer: O) -> Self {
        Network {
            now: Instant::ZERO,
            horizon: Instant::ZERO,
            calendar: Calendar::new(),
            arena: Arena::default(),
            observer,
            tap: None,
            links: Vec::new(),
            link_sources: Vec::new(),
            feeders: Vec::new(),
            segments: Vec::new(),
            channels: Vec::new(),
            stations: Vec::new(),
            media: Vec::new(),
            fragments: Fragments::default(),
            directory: ConversationTable::default(),
            translators: Translators::default(),
            rebinders: BTreeMap::new(),
            notices: None,
            nodes: Vec::new(),
            edges: Vec::new(),
            conversations: BTreeSet::new(),
            observed: BTreeSet::new(),
            fuse: true,
            undeclared: false,
            silent_drop: None,
            processing: Vec::new(),
            tapped: false,
            attentive: false,
            exceeds_caches: false,
            dropped: Vec::new(),
            adjustable: Vec::new(),
            events: 0,
        }
    }

    /// Adds a node and returns its identifier. The node is a router if `router` is true, otherwise a host.
    pub fn add_node(&mut self, router: bool) -> NodeId {
        self.nodes.push(Node { router, routes: Routes::Default(NextHop::None) });
        self.edges.push(Vec::new());
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds one direction of a link and returns its identifier.
    pub fn add_link(&mut self, specification: LinkSpecification) -> LinkId {
        let id = LinkId(self.links.len() as u32);
        self.link_sources.push(specification.from);
        self.edges[specification.from.index()].push(Edge { to: specification.to, by: NextHop::Link(id) });
        if let Some((rebinding, stream)) =
            specification.impairments.as_ref().and_then(|models| models.rebinding.as_ref())
        {
            // The direction of the link that is added first provides the random stream.
            self.rebinders.entry(rebinding.number).or_insert_with(|| Rebinder::new(*rebinding, stream.clone()));
        }
        self.links.push(Link::new(specification));
        id
    }

    /// Declares that the two nodes can send to each other. Links are chained only if every declared conversation
    /// permits it, so all conversations must be declared.
    pub fn declare_conversation(&mut self, a: NodeId, b: NodeId) {
        self.conversations.insert((a.min(b), a.max(b)));
    }

    /// Returns whether a conversation between the two nodes is declared.
    pub fn is_declared(&self, a: NodeId, b: NodeId) -> bool {
        self.conversations.contains(&(a.min(b), a.max(b)))
    }

    /// Declares that a link's queue or counters will be read during the run. Must be called before
    /// [`Network::finalize`].
    pub fn observe_link(&mut self, link: LinkId) {
        self.observed.insert(link);
    }

    /// Declares that packets may belong to undeclared conversations, such as packets to a router. Each router then
    /// routes every packet by its destination.
    pub fn allow_undeclared(&mut self) {
        self.undeclared = true;
    }

    /// Enables or disables the computation of a chain of links in one step. If it is disabled, results are the same,
    /// but runs are slower.
    pub fn set_chaining(&mut self, on: bool) {
        self.fuse = on;
    }

    /// Computes routes and chains. Must be called once, after the last node, link and conversation have been added.
    pub fn finalize(&mut self) {
        let forwards: Vec<bool> = self.nodes.iter().map(|node| node.router).collect();
        for (node, routes) in self.nodes.iter_mut().zip(routing::compute(&self.edges, &forwards)) {
            node.routes = routes;
        }
        for router in self.translators.routers() {
            let routes = &mut self.nodes[router.index()].routes;
            *routes = Routes::AfterNat(Box::new(std::mem::replace(routes, Routes::Default(NextHop::None))));
        }
        for link in &mut self.links {
            link.to_router = self.nodes[link.to.index()].router;
        }
        // A vector that grew by doubling can be half empty, which wastes 5 MB with the 40 000 links of `tcp-10k`.
        self.links.shrink_to_fit();
        self.link_sources.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.edges.iter_mut().for_each(Vec::shrink_to_fit);
        for &link in &self.observed {
            if let Some(link) = self.links.get_mut(link.index()) {
                link.observe();
            }
        }
        if self.fuse {
            self.find_chains();
        }
        // A medium can have pending work before the first frame is offered.
        for medium in 0..self.media.len() {
            self.arm_medium(medium as u16);
        }
    }

    /// Returns the hops from one node to another; the list ends early if there is no route.
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<NextHop> {
        let mut hops = Vec::new();
        let mut at = from;
        while at != to && hops.len() <= self.nodes.len() {
            let hop = self.beyond(at, to);
            let Some(next) = self.hop_destination(hop) else { break };
            at = next;
            hops.push(hop);
        }
        hops
    }

    /// Returns the node at which a hop ends; `None` for [`NextHop::None`] and [`NextHop::Translation`].
    pub fn hop_destination(&self, hop: NextHop) -> Option<NodeId> {
        match hop {
            NextHop::None | NextHop::Translation => None,
            NextHop::Link(link) => Some(self.links[link.index()].to),
            NextHop::Station { segment, station } => Some(self.segments[segment as usize].node_of(station)),
            NextHop::Medium { medium, way, station } => Some(self.media[usize::from(medium)].end(way, station)),
        }
    }

    /// Returns the pairs of nodes that can send to each other.
    pub(crate) fn declared_pairs(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.conversations.iter().copied()
    }

    pub(crate) fn translates(&self, node: NodeId) -> bool {
        matches!(self.nodes[node.index()].routes, Routes::AfterNat(_))
    }

    /// Returns the node at which a point-to-point link ends.
    pub fn link_destination(&self, link: LinkId) -> NodeId {
        self.links[link.index()].to
    }

    /// Returns the current time.
    #[inline(always)]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the number of links, shared media, stations' channels and directions of media with a hub.
    pub fn link_count(&self) -> usize {
        self.links.len() + self.channels.len() + 2 * self.media.len()
    }

    /// Returns the counters of a link.
    pub fn link_counters(&self, link: LinkId) -> LinkCounters {
        let other = || self.way_counters(link).unwrap_or_else(|| self.channel_counters(link));
        self.links.get(link.index()).map_or_else(other, |link| link.counters())
    }

    /// Returns the number of packets and bytes in the queue of a link now. The link must be declared with
    /// [`Network::observe_link`].
    pub fn link_queue(&mut self, link: LinkId) -> (u64, u64) {
        let now = self.now;
        match self.links.get_mut(link.index()) {
            Some(link) => link.queue(now),
            None => self.way_queue(link).unwrap_or_else(|| self.channel_queue(link)),
        }
    }

    /// Returns the bytes of the frames whose transmission on a link has started. The link must be declared with
    /// [`Network::observe_link`].
    pub fn link_departed_bytes(&mut self, link: LinkId) -> u64 {
        let (now, bytes) = (self.now, self.link_counters(link).bytes);
        bytes - self.links.get_mut(link.index()).map_or(0, |link| link.counted_queue_bytes(now))
    }

    /// Returns the sum and the number of the waiting times of frames whose transmission on a link has started; `None`
    /// if the link's rate is constant. The link must be declared with [`Network::observe_link`].
    pub fn link_queue_delays(&mut self, link: LinkId) -> Option<TimeSum> {
        let now = self.now;
        self.links.get_mut(link.index())?.special_mut()?.waits(now)
    }

    /// Sends a packet from a host now.
    #[inline(always)]
    pub fn send(&mut self, from: NodeId, packet: &Packet) {
        let (handle, slot) = self.arena.claim();
        *slot = Packet { sent: self.now, ..*packet };
        self.send_filled(from, handle);
    }

    /// Sends TCP segments from a host now. The sequence number of `first` increases by `step_bytes` for each further
    /// segment. The segments must have no side data.
    #[inline(always)]
    pub fn send_burst(&mut self, from: NodeId, first: &Packet, segments: u32, step_bytes: u32) {
        debug_assert!(first.options.is_none() && first.payload.is_none(), "segments of a burst must have no side data");
        if segments == 0 {
            return;
        }
        let Packet { flow, destination, ip_bytes, .. } = *first;
        let attachment = self.nodes[from.index()].routes.toward(destination);
        let mut next = *first;
        next.sent = self.now;
        let NextHop::Link(link) = attachment else { return self.send_singly(from, next, segments, step_bytes) };
        if self.attentive || !self.observer.on_sent_burst(self.now, &next.view(), segments, step_bytes) {
            return self.send_singly(from, next, segments, step_bytes);
        }
        for _ in 0..segments {
            let (handle, slot) = self.arena.claim();
            *slot = next;
            self.enqueue(link, self.now, InFlightPacket { handle, destination, flow, ip_bytes });
            next.advance_sequence(step_bytes);
        }
    }

    /// Sends the segments of a burst one by one.
    #[cold]
    #[inline(never)]
    fn send_singly(&mut self, from: NodeId, mut next: Packet, segments: u32, step_bytes: u32) {
        for _ in 0..segments {
            self.send(from, &next);
            next.advance_sequence(step_bytes);
        }
    }

    /// Sends, from a host now, a packet that the caller has written to the slot from [`Arena::claim`]. The caller must
    /// set all fields, with `sent` equal to [`Network::now`].
    #[inline(always)]
    pub fn send_filled(&mut self, from: NodeId, handle: PacketHandle) {
        let packet = self.arena.get(handle);
        debug_assert_eq!(packet.sent, self.now, "the send time of a packet must be now");
        if self.attentive {
            return self.send_attentively(from, handle);
        }
        let Packet { flow, destination, ip_bytes, .. } = *packet;
        self.observer.on_sent(self.now, &packet.view());
        self.route(from, InFlightPacket { handle, destination, flow, ip_bytes });
    }

    #[cold]
    #[inline(never)]
    fn send_attentively(&mut self, from: NodeId, handle: PacketHandle) {
        match self.processing_time(from, handle) {
            Departure::Ahead(at) => self.send_ahead(from, handle, at),
            Departure::Later => {}
            Departure::Now => {
                let packet = self.arena.take(handle);
                self.hand_over(from, packet);
            }
        }
    }

    /// Sends a packet from its source at `at`, which is now or later, over a link that is computed ahead.
    fn send_ahead(&mut self, from: NodeId, handle: PacketHandle, at: Instant) {
        let packet = self.arena.get_mut(handle);
        packet.sent = at;
        self.observer.on_sent(at, &packet.view());
        let packet = self.arena.in_flight(handle);
        match self.nodes[from.index()].routes.toward(packet.destination) {
            NextHop::Link(link) => self.enqueue(link, at, packet),
            other => unreachable!("{other:?} is not computed ahead"),
        }
    }

    /// Returns whether links can be computed before a packet of this host departs. A host's links have no other feeder.
    /// As in [`Network::find_chains`], their departures must not be events, and they must not be observed during the
    /// run.
    pub(crate) fn may_send_ahead(&self, node: NodeId) -> bool {
        let ahead = |edge: &Edge| match edge.by {
            NextHop::Link(link) => {
                let l = &self.links[link.index()];
                !l.is_driven() && !l.may_take_no_time() && !self.observed.contains(&link)
            }
            _ => false,
        };
        self.fuse && !self.nodes[node.index()].router && self.edges[node.index()].iter().all(ahead)
    }

    /// Sends a packet from its source and passes it to the tap.
    pub(crate) fn hand_over(&mut self, from: NodeId, mut packet: Packet) {
        packet.sent = self.now;
        self.observer.on_sent(self.now, &packet.view());
        let handle = self.arena.insert(packet);
        if self.tap.is_some() {
            self.capture_sent(from, handle);
        }
        self.route(from, self.arena.in_flight(handle));
    }

    #[inline(always)]
    fn route(&mut self, node: NodeId, packet: InFlightPacket) {
        match self.nodes[node.index()].routes.toward(packet.destination) {
            NextHop::Link(link) => self.enqueue(link, self.now, packet),
            other => self.route_elsewhere(node, other, packet.handle),
        }
    }

    /// Routes a packet whose next hop is not a link. Media have a separate function, because saving the registers that
    /// the other cases need took 28 instructions.
    #[cold]
    pub(crate) fn route_elsewhere(&mut self, node: NodeId, attachment: NextHop, handle: PacketHandle) {
        match attachment {
            NextHop::Medium { medium, way, station } => self.send_on_medium(medium, way, station, handle),
            other => self.route_rarely(node, other, handle),
        }
    }

    #[cold]
    #[inline(never)]
    fn route_rarely(&mut self, node: NodeId, attachment: NextHop, handle: PacketHandle) {
        match attachment {
            NextHop::Link(link) => self.enqueue(link, self.now, self.arena.in_flight(handle)),
            NextHop::Station { segment, station } => self.send_on_segment(node, segment, station, handle),
            NextHop::Medium { .. } => unreachable!("media are handled before"),
            NextHop::Translation => self.translate(node, handle),
            NextHop::None => self.end_at_router(node, handle),
        }
    }

    /// Returns the next hop from a node to a destination.
    pub(crate) fn toward(&self, node: NodeId, destination: NodeId) -> NextHop {
        self.nodes[node.index()].routes.toward(destination)
    }

    /// Returns the next hop after the node's address translation.
    pub(crate) fn beyond(&self, node: NodeId, destination: NodeId) -> NextHop {
        self.nodes[node.index()].routes.beyond(destination)
    }

    /// Returns whether the node forwards packets.
    pub fn is_router(&self, node: NodeId) -> bool {
        self.nodes[node.index()].router
    }

    /// Drops a packet or a fragment.
    pub(crate) fn drop_packet(&mut self, at: Instant, handle: PacketHandle, link: Option<LinkId>, reason: DropReason) {
        let packet = *self.arena.get(handle);
        if let PacketContent::Fragment { .. } = packet.content {
            return self.drop_fragment(at, handle, link, reason);
        }
        self.observer.on_dropped(at, &packet.view(), link, reason);
        self.arena.release(handle);
    }

    /// Processes the arrival of a packet at a link's queue at `at` (now, or later if a chain is being computed). A
    /// separate function would save fewer registers, but the calls cost more: 1.5 % more instructions in `tcp-1`, 3 %
    /// in `tcp-100` and 5 % in `udp-5hop`.
    #[inline(always)]
    fn enqueue(&mut self, mut link: LinkId, mut at: Instant, packet: InFlightPacket) {
        let InFlightPacket { handle, destination, flow, ip_bytes } = packet;
        loop {
            let l = &mut self.links[link.index()];
            let wire_bytes = ip_bytes + u32::from(l.framing_bytes);
            if ip_bytes > u32::from(l.plain_bytes) {
                match self.enqueue_with_care(link, at, handle) {
                    Some(next) => (link, at) = next,
                    None => return,
                }
                continue;
            }
            let Some(TransmissionTimes { start, finish, arrival }) = l.book(at, wire_bytes) else {
                return self.drop_at_queue(link, at, handle, wire_bytes);
            };
            self.observer.on_passed(&Transmission { link, flow, wire_bytes, offered: at, start, finish, arrival });
            if arrival <= self.horizon
                && let Some(next) = l.beyond(link, destination, &self.nodes, &self.feeders)
            {
                link = next;
                at = arrival;
                continue;
            }
            if l.flight.push(arrival, packet) {
                if l.onward == NextLinkMode::Hub {
                    self.await_offer(link);
                } else {
                    self.calendar.schedule(arrival, EventId::new(EventClass::Arrival, link.0));
                }
            }
            return;
        }
    }

    /// Drops a packet that arrives at a link whose drop-tail queue is full.
    #[cold]
    #[inline(never)]
    fn drop_at_queue(&mut self, link: LinkId, at: Instant, handle: PacketHandle, wire_bytes: u32) {
        self.links[link.index()].counted().queue_drops += 1;
        self.observer.on_offered(at, link, wire_bytes);
        self.observer.on_link_dropped(at, link, wire_bytes, DropReason::QueueFull);
        self.drop_packet(at, handle, Some(link), DropReason::QueueFull);
    }

    /// Handles the less frequent cases of a link: oversized packets, queue disciplines, loss models, special links,
    /// faults. Returns the next link and the arrival time there, if that link is computed together with this one.
    #[inline(never)]
    fn enqueue_with_care(&mut self, link: LinkId, at: Instant, handle: PacketHandle) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        let packet = self.arena.get(handle);
        let wire_bytes = packet.ip_bytes + u32::from(l.framing_bytes);
        if packet.ip_bytes > u32::from(l.mtu_bytes) {
            let mtu_bytes = u32::from(l.mtu_bytes);
            let from = self.link_sources[link.index()];
            self.fragment(at, handle, from, mtu_bytes, link, |network, piece| {
                let piece = network.arena.in_flight(piece);
                network.enqueue(link, at, piece);
            });
            return None;
        }
        if self.drops_silently(link, handle) {
            return None;
        }
        let l = &mut self.links[link.index()];
        let special = l.special().is_some();
        let Some(driven) = l.extras.as_mut().and_then(|extras| extras.driven.as_mut()) else {
            if special {
                return self.book(link, at, handle);
            }
            return self.enqueue_with_loss(link, at, handle);
        };
        self.observer.on_offered(at, link, wire_bytes);
        let queued = QueuedPacket::new(handle, self.arena.get(handle), wire_bytes, at);
        let mut dropped = std::mem::take(&mut self.dropped);
        let refused = driven.interface.enqueue(at, queued, &mut dropped).err();
        let transmitting = driven.transmitting;
        dropped.extend(refused);
        self.drop_queued(link, &mut dropped);
        if !transmitting {
            self.depart(link);
        }
        None
    }

    /// Does the work of [`Self::enqueue`] for a plain link with a loss model, or with a fault that does not drop this
    /// packet. In [`Self::enqueue`], the loss model would cost all other links 16 instructions per packet of `tcp-1`.
    fn enqueue_with_loss(&mut self, link: LinkId, at: Instant, handle: PacketHandle) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        let packet = self.arena.in_flight(handle);
        let wire_bytes = packet.ip_bytes + u32::from(l.framing_bytes);
        let Some(TransmissionTimes { start, finish, arrival }) = l.book(at, wire_bytes) else {
            self.drop_at_queue(link, at, handle, wire_bytes);
            return None;
        };
        let flow = packet.flow;
        self.observer.on_passed(&Transmission { link, flow, wire_bytes, offered: at, start, finish, arrival });
        if let Some(extras) = &mut l.extras
            && let Some(loss) = &mut extras.loss
            && loss.loses(self.arena.get(handle).has_payload())
        {
            extras.losses += 1;
            self.drop_packet(arrival, handle, Some(link), DropReason::Loss);
            return None;
        }
        if arrival <= self.horizon
            && let Some(next) = l.beyond(link, packet.destination, &self.nodes, &self.feeders)
        {
            return Some((next, arrival));
        }
        if l.flight.push(arrival, packet) {
            if l.onward == NextLinkMode::Hub {
                self.await_offer(link);
            } else {
                self.calendar.schedule(arrival, EventId::new(EventClass::Arrival, link.0));
            }
        }
        None
    }

    pub(crate) fn drop_queued(&mut self, link: LinkId, dropped: &mut Vec<QueuedPacket>) {
        for packet in dropped.drain(..) {
            self.links[link.index()].counted().queue_drops += 1;
            let reason = packet.drop_reason();
            self.observer.on_link_dropped(self.now, link, packet.wire_bytes, reason);
            self.drop_packet(self.now, packet.handle, Some(link), reason);
        }
        self.dropped = std::mem::take(dropped);
    }

    /// Starts the next transmission of a link with a discipline when the transmitter is free.
    fn depart(&mut self, link: LinkId) {
        let now = self.now;
        let mut dropped = std::mem::take(&mut self.dropped);
        let l = &mut self.links[link.index()];
        let special = l.special().is_some();
        let chance = if special { l.first_chance(now) } else { now };
        let Some(driven) = l.extras.as_mut().and_then(|extras| extras.driven.as_mut()) else {
            self.dropped = dropped;
            return self.depart_adjustable(link);
        };
        if chance > now {
            // Transmission cannot start before the next opportunity of the trace.
            driven.transmitting = driven.interface.packets() > 0;
            if driven.transmitting && !chance.is_never() {
                self.calendar.schedule(chance, EventId::new(EventClass::Departure, link.0));
            }
            self.dropped = dropped;
            return;
        }
        let next = driven.interface.dequeue(now, &mut dropped);
        driven.transmitting = next.is_some();
        // The packets that the discipline dropped were ahead of the packet that it returned.
        self.drop_queued(link, &mut dropped);
        if let Some(frame) = next {
            let QueuedPacket { handle, wire_bytes, since, .. } = frame;
            self.note_mark(link, &frame);
            if special {
                return self.pass_queued(link, &frame);
            }
            let l = &mut self.links[link.index()];
            let idle = l.busy_until < now;
            let finish = now + l.transmitter.transmit(wire_bytes, idle);
            let arrival = finish + l.delay;
            l.busy_until = finish;
            l.frames += 1;
            l.bytes += u64::from(wire_bytes);
            l.queue_delay_sum += now - since;
            self.calendar.schedule(finish, EventId::new(EventClass::Departure, link.0));
            let packet = self.arena.get(handle);
            self.observer.on_transmitted(&Transmission {
                link,
                flow: packet.flow,
                wire_bytes,
                offered: since,
                start: now,
                finish,
                arrival,
            });
            let loss = l.extras.as_mut().and_then(|extras| extras.loss.as_mut());
            if loss.is_some_and(|loss| loss.loses(packet.has_payload())) {
                l.counted().losses += 1;
                self.drop_packet(arrival, handle, Some(link), DropReason::Loss);
            } else if l.flight.push(arrival, self.arena.in_flight(handle)) {
                self.calendar.schedule(arrival, EventId::new(EventClass::Arrival, link.0));
            }
        }
    }

    /// Advances the clock to `to`; no event may be pending at or before that time. This function is for callers that
    /// choose their own send times, after they have called [`Network::run`] up to `to`. If the clock is already later,
    /// this function has no effect.
    pub fn advance(&mut self, to: Instant) {
        debug_assert!(
            self.calendar.peek().is_none_or(|(at, _)| at > to),
            "no event may be pending before the new time"
        );
        self.now = self.now.max(to);
    }

    /// Returns the time of the next event; `None` if no event is left.
    pub fn next_event_at(&self) -> Option<Instant> {
        self.calendar.peek().map(|(at, _)| at)
    }

    /// Processes events until none is left or the clock would exceed `end`. `horizon` is the end of the whole run;
    /// nothing is computed beyond it. Returns whether any event is left.
    pub fn run(&mut self, hosts: &mut impl HostEndpoints<O>, end: Instant, horizon: Instant) -> bool {
        self.horizon = horizon;
        self.tapped = self.tap.is_some();
        self.attentive = self.tapped || !self.processing.is_empty();
        self.exceeds_caches = self.links.len() > MOST_LINKS_IN_CACHES;
        while let Some((at, event)) = self.calendar.peek() {
            if at > end {
                self.now = end;
                self.offer_all_that_came();
                return true;
            }
            debug_assert!(at >= self.now, "time must not decrease");
            self.now = at;
            self.events += 1;
            // Most events are arrivals. A single match over all classes would compile to a jump table.
            if event.class() == EventClass::Arrival {
                self.arrival_due(hosts, event);
            } else {
                self.calendar.pop_deferred();
                self.other_due(hosts, event);
                self.calendar.complete_pop();
            }
        }
        false
    }

    #[inline(always)]
    fn arrival_due(&mut self, hosts: &mut impl HostEndpoints<O>, event: EventId) {
        let link = &mut self.links[event.index() as usize];
        let to = link.to;
        let to_router = link.to_router;
        let packet = match link.flight.pop() {
            Some((packet, Some(next))) => {
                self.calendar.replace(next, event);
                packet
            }
            Some((packet, None)) => {
                self.calendar.pop();
                packet
            }
            None => {
                self.calendar.pop();
                let Some(packet) = self.overtaken(LinkId(event.index())) else { return };
                packet
            }
        };
        if self.exceeds_caches {
            self.prefetch_next(hosts);
        }
        if to_router {
            self.route(to, packet);
        } else {
            self.arrive_at_host(hosts, to, packet.handle, packet.flow);
        }
    }

    /// Prefetches the data of the next events. For the next arrival, these are all data; for the following arrivals,
    /// the head of the delay line, which contains the packet; for later ones, the link. Prefetching everything one
    /// event earlier was slower.
    #[inline(never)]
    fn prefetch_next(&self, hosts: &impl HostEndpoints<O>) {
        let arrival = |place| {
            let event: EventId = self.calendar.upcoming(place)?;
            if event.class() == EventClass::Arrival { self.links.get(event.index() as usize) } else { None }
        };
        for link in (3..7).filter_map(arrival) {
            prefetch::<2, _>(link);
        }
        for packet in (1..3).filter_map(arrival).filter_map(|link| link.flight.head()) {
            prefetch::<1, _>(packet);
        }
        let Some((link, packet)) = arrival(0).and_then(|link| Some((link, link.flight.head()?))) else { return };
        if !link.to_router {
            prefetch::<1, _>(self.arena.get(packet.handle));
            self.observer.prefetch_flow(packet.flow);
            return hosts.prefetch(packet.flow);
        }
        let NextHop::Link(next) = self.toward(link.to, packet.destination) else { return };
        let busy = &self.links[next.index()];
        prefetch::<3, _>(busy);
        self.observer.prefetch_link(next);
        if busy.to_router
            && let NextHop::Link(last) = self.toward(busy.to, packet.destination)
        {
            prefetch::<3, _>(&self.links[last.index()]);
            self.observer.prefetch_link(last);
        }
    }

    #[inline(never)]
    fn other_due(&mut self, hosts: &mut impl HostEndpoints<O>, event: EventId) {
        match event.class() {
            EventClass::Arrival => unreachable!("arrivals are handled before"),
            EventClass::Departure => {
                self.depart(LinkId(event.index()));
            }
            EventClass::Medium => match event.index() {
                number @ medium::FIRST_EVENT..crate::ethernet::STATION_EVENTS => {
                    self.medium_due(hosts, (number - medium::FIRST_EVENT) as u16);
                }
                number => self.medium_event(hosts, number),
            },
            EventClass::Host => match event.index() {
                notice::EVENT => self.hand_over_notices(hosts),
                node @ processing::FIRST_EVENT.. => self.processed(node),
                station => self.resolutions_due(station),
            },
            EventClass::Transport | EventClass::Application => {
                hosts.on_timer(self, event);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn arrive(&mut self, hosts: &mut impl HostEndpoints<O>, node: NodeId, handle: PacketHandle) {
        if self.nodes[node.index()].router {
            return self.route(node, self.arena.in_flight(handle));
        }
        self.arrive_at_host(hosts, node, handle, self.arena.get(handle).flow);
    }

    /// Processes the arrival of a packet of `flow` at a host. With thousands of flows, neither the packet nor the
    /// counters of its flow are in the cache. Because the flow is an argument, the processor can fetch both in
    /// parallel.
    #[inline(always)]
    fn arrive_at_host(&mut self, hosts: &mut impl HostEndpoints<O>, node: NodeId, handle: PacketHandle, flow: FlowId) {
        let packet = self.arena.get(handle);
        debug_assert_eq!(packet.flow, flow, "the flow argument must be that of the packet");
        if self.tapped | packet.corrupted | matches!(packet.content, PacketContent::Fragment { .. }) {
            return self.arrive_attentively(hosts, node, handle);
        }
        self.observer.on_delivered(self.now, &PacketView { flow, ..packet.view() }, packet.sent);
        hosts.receive(self, node, handle);
    }

    #[cold]
    #[inline(never)]
    fn arrive_attentively(&mut self, hosts: &mut impl HostEndpoints<O>, node: NodeId, handle: PacketHandle) {
        if self.tap.is_some() {
            self.capture(node, CaptureDirection::Inbound, handle);
        }
        let packet = self.arena.get(handle);
        if let PacketContent::Fragment { .. } = packet.content {
            return self.receive_fragment(hosts, node, handle);
        }
        // The kernel of a real host detects corruption itself.
        if packet.corrupted && !matches!(packet.content, PacketContent::RawIp { .. }) {
            return self.refuse_corrupted(handle);
        }
        self.observer.on_delivered(self.now, &packet.view(), packet.sent);
        hosts.receive(self, node, handle);
    }

    /// Writes the CE mark of a queue into the packet when the packet departs.
    #[inline]
    pub(crate) fn note_mark(&mut self, link: LinkId, frame: &QueuedPacket) {
        if frame.marked {
            let packet = self.arena.get_mut(frame.handle);
            packet.codepoint = frame.codepoint;
            self.observer.on_marked(self.now, &packet.view(), link);
            match self.links.get_mut(link.index()) {
                Some(link) => link.counted().marks += 1,
                None => self.channel_marked(link),
            }
        }
    }

    /// Returns the number and bytes of the packets that are queued or in flight.
    pub fn remaining_packets(&self) -> RemainingPackets {
        let mut remaining = RemainingPackets::default();
        for link in &self.links {
            remaining.queued_per_link.push(link.queued());
        }
        remaining.queued_per_link.extend(self.segments.iter().flat_map(Segment::queued));
        remaining.queued_per_link.extend(self.held_by_media());
        for packet in self.arena.live_packets() {
            if !matches!(packet.content, PacketContent::Fragment { .. } | PacketContent::Arp { .. }) {
                let (packets, bytes) = remaining.packets_per_flow.entry(packet.flow).or_default();
                *packets += 1;
                *bytes += u64::from(packet.ip_bytes);
            }
        }
        remaining
    }

    /// Frees the memory of all packets at the end of a run, after [`Network::remaining_packets`] has been called;
    /// counters are kept.
    pub fn release_packets(&mut self) {
        self.arena = Arena::default();
        self.links.iter_mut().for_each(Link::release_packets);
    }

    /// Returns the one-way delay of a packet in an otherwise empty network: a fixed part, and nanoseconds per byte of
    /// the IP packet. Padding is not included. The delay applies to packets that are not fragmented, because links
    /// transmit fragments in parallel.
    pub fn minimum_delay(&self, from: NodeId, to: NodeId) -> (Duration, f64) {
        let mut fixed = Duration::ZERO;
        let mut per_byte = 0.0;
        for hop in self.path(from, to) {
            let (delay, framing_bytes, byte) = match hop {
                NextHop::Link(link) => {
                    let link = &self.links[link.index()];
                    let (delay, byte) = link.minimum();
                    (delay, u32::from(link.framing_bytes), byte)
                }
                NextHop::Station { segment, .. } => {
                    let (delay, framing_bytes, rate) = self.segments[segment as usize].minimum();
                    (delay, framing_bytes, 8e9 / rate.bits_per_second() as f64)
                }
                NextHop::Medium { medium, way, .. } => {
                    (self.media[usize::from(medium)].least_delays[way as usize], 0, 0.0)
                }
                NextHop::None | NextHop::Translation => continue,
            };
            fixed += delay + Duration::from_nanos((f64::from(framing_bytes) * byte) as u64);
            per_byte += byte;
        }
        (fixed, per_byte)
    }
}
