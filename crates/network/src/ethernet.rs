//! Shared Ethernet: several stations on one segment, half or full duplex.
//!
//! **Half duplex.** The segment is one medium. A frame occupies the medium from the start of its transmission until one
//! propagation delay after the end. It has then reached all stations. A station with a frame senses the medium. If the
//! medium is idle, the station transmits. Otherwise it backs off: before retry k it waits floor(U[1, 2^min(k,
//! ceiling) - 1)) slots, at most 1000 (k = 1: one slot; k = 2: one or two), and then senses again. After `max_retries`
//! it drops the frame. Success resets k to 0. Sensing is exact and immediate, so frames never collide; contention only
//! causes delay.
//!
//! **Full duplex.** Each station has its own channel to all others, so no station occupies the channel of another.
//!
//! **Both.** After its own frame a station waits for the interframe gap (IEEE 802.3: 96 bit times). It then takes the
//! next frame from its interface (device queue, refilled from the discipline) and tries to transmit it. An idle station
//! tries as soon as a frame arrives. A frame consists of the IP packet and the framing, padded to the minimum frame
//! size; there is no preamble.
//!
//! **Order at one instant.** First, all stations receive the frame, and packets sent in response are processed (their
//! stations sense an occupied medium and back off). Then the medium becomes idle. Finally, the stations whose gap or
//! back-off ends now sense the medium, in order of their numbers. The event identities define this order, not the order
//! of insertion.
//!
//! **Identity.** With half duplex, the medium has one [`LinkId`]. With full duplex, each station has one, and its
//! frames obey every rule of a point-to-point link. These identities follow those of the links; see
//! [`Network::ethernet_link`].

use crate::arp::{ArpSpecification, ResolutionAction, ResolutionStatus, Resolver};
use crate::discipline::settings::{Discipline, DisciplineContext};
use crate::link::LinkCounters;
use crate::network::{HostEndpoints, Network};
use crate::packet::{Packet, PacketContent, PacketHandle, SideDataHandle};
use crate::queue::{InterfaceQueue, Limit, QueuedPacket};
use crate::routing::{Edge, NextHop};
use fullpipe_engine::{DelayLine, EventClass, EventId, TimerSlot};
use fullpipe_record::{DropReason, Observer, Transmission};
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Duration, EcnCodepoint, FlowId, LinkId, NodeId, RandomStream, Rate};
use fullpipe_wire::IpVersion;
use fullpipe_wire::frame::ARP_BYTES;
use std::collections::BTreeMap;

/// The flow of ARP frames.
pub const ARP_FLOW: FlowId = FlowId(u32::MAX);

/// Maximum number of slots of one back-off.
const MAX_BACKOFF_SLOTS: u64 = 1000;

/// First number of the medium events of stations; those of channels are lower. At one instant, frames are therefore
/// received before stations sense the medium.
pub(crate) const STATION_EVENTS: u32 = 1 << 27;

/// The specification of a shared Ethernet segment.
#[derive(Clone, Debug, PartialEq)]
pub struct EthernetSpecification {
    /// The name, unique among links and segments.
    pub name: String,
    /// The attached nodes.
    pub hosts: Vec<NodeId>,
    /// Rate of the segment.
    pub rate: Rate,
    /// Propagation delay between any two stations.
    pub delay: Duration,
    /// Whether all stations share one medium.
    pub half_duplex: bool,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to an IP packet.
    pub framing_bytes: u32,
    /// Minimum frame size in bytes; shorter frames are padded.
    pub min_frame_bytes: u32,
    /// Interframe gap in bit times, for which a station waits after its own frame.
    pub interframe_gap_bits: u32,
    /// Slot time of the back-off.
    pub slot: Duration,
    /// Maximum exponent of the back-off.
    pub backoff_ceiling: u32,
    /// Number of retries after which a frame is dropped.
    pub max_retries: u32,
    /// Limit of each station's device queue.
    pub device_queue: Limit,
    /// Discipline above each station's device queue; `None` if there are only the device queues.
    pub discipline: Option<Discipline>,
    /// Settings of address resolution.
    pub arp: ArpSpecification,
}

/// The context in which a segment is built.
#[derive(Clone, Copy, Debug)]
pub struct EthernetContext<'a> {
    /// Seed of the random streams.
    pub seed: u64,
    /// Names of the attached nodes, in the order of the specification. The random streams have these names.
    pub hosts: &'a [&'a str],
    /// The band of each flow that has a `priority`, for both directions of its conversation.
    pub bands: &'a BTreeMap<FlowId, usize>,
}

/// Counters of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Frames transmitted.
    pub frames: u64,
    /// Bytes transmitted, including framing and padding.
    pub bytes: u64,
    /// Frames dropped at the queues of the station.
    pub queue_drops: u64,
    /// Frames dropped because the medium was still busy at the last retry.
    pub collision_drops: u64,
    /// Packets (or fragments) dropped because an address was not resolved.
    pub resolution_drops: u64,
    /// Number of back-offs.
    pub backoffs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The station has no frame to transmit.
    Rest,
    /// The station waits before it senses the medium again.
    BackOff,
    /// The station transmits, or waits for the gap after a frame.
    Busy,
}

#[derive(Debug)]
struct Station {
    node: NodeId,
    interface: InterfaceQueue,
    phase: Phase,
    /// The frame that waits for the medium.
    current: Option<QueuedPacket>,
    retries: u32,
    back_off: RandomStream,
    resolver: Resolver,
    resolver_slot: TimerSlot,
    counters: StationCounters,
}

/// A transmission channel: the shared medium, or the channel of one station.
#[derive(Debug)]
struct Channel {
    transmitter: Transmitter,
    /// Frames in flight, with the station that sent them.
    flight: DelayLine<(PacketHandle, u32)>,
    occupied: bool,
    counters: LinkCounters,
}

/// A segment with its state.
#[derive(Debug)]
pub(crate) struct Segment {
    stations: Vec<Station>,
    channels: Vec<Channel>,
    half_duplex: bool,
    first_channel: u32,
    first_station: u32,
    delay: Duration,
    gap: Duration,
    pub(crate) mtu_bytes: u32,
    framing_bytes: u32,
    min_frame_bytes: u32,
    slot: Duration,
    backoff_ceiling: u32,
    max_retries: u32,
    arp: ArpSpecification,
}

impl Segment {
    fn new(
        specification: &EthernetSpecification,
        EthernetContext { seed, hosts: names, bands }: EthernetContext<'_>,
        first_channel: u32,
        first_station: u32,
    ) -> Self {
        let EthernetSpecification { ref name, ref hosts, rate, delay, half_duplex, .. } = *specification;
        let EthernetSpecification { mtu_bytes, framing_bytes, min_frame_bytes, ref arp, .. } = *specification;
        let largest_bytes = mtu_bytes.saturating_add(framing_bytes).max(min_frame_bytes);
        let discipline = |host: &str| {
            let interface = &format!("{name} {host}");
            specification
                .discipline
                .as_ref()
                .map(|settings| settings.build(&DisciplineContext { seed, interface, bands }))
        };
        let stations: Vec<Station> = hosts
            .iter()
            .zip(names)
            .enumerate()
            .map(|(number, (node, host))| Station {
                node: *node,
                interface: InterfaceQueue::new(discipline(host), specification.device_queue, largest_bytes),
                phase: Phase::Rest,
                current: None,
                retries: 0,
                back_off: RandomStream::new(seed, host, "back-off"),
                resolver: Resolver::new(
                    arp.fixed_delays.get(number).copied(),
                    RandomStream::new(seed, host, "address-resolution"),
                ),
                resolver_slot: TimerSlot::default(),
                counters: StationCounters::default(),
            })
            .collect();
        let channels = if half_duplex { 1 } else { stations.len() };
        let gap_bits = u128::from(specification.interframe_gap_bits);
        let gap = (gap_bits * 1_000_000_000).div_ceil(u128::from(rate.bits_per_second().max(1)));
        Segment {
            channels: (0..channels)
                .map(|_| Channel {
                    transmitter: Transmitter::new(rate),
                    flight: DelayLine::default(),
                    occupied: false,
                    counters: LinkCounters::default(),
                })
                .collect(),
            stations,
            half_duplex,
            first_channel,
            first_station,
            delay,
            gap: Duration::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX)),
            mtu_bytes,
            framing_bytes,
            min_frame_bytes,
            slot: specification.slot,
            backoff_ceiling: specification.backoff_ceiling,
            max_retries: specification.max_retries,
            arp: arp.clone(),
        }
    }

    /// Returns the channel on which a station transmits.
    fn channel_of(&self, station: u32) -> usize {
        if self.half_duplex { 0 } else { station as usize }
    }

    fn wire_bytes(&self, payload_bytes: u32) -> u32 {
        payload_bytes.saturating_add(self.framing_bytes).max(self.min_frame_bytes)
    }

    fn station_of(&self, node: NodeId) -> Option<u32> {
        self.stations.iter().position(|station| station.node == node).map(|position| position as u32)
    }

    /// Returns the node of a station.
    pub(crate) fn node_of(&self, station: u32) -> NodeId {
        self.stations[station as usize].node
    }

    /// Returns the number of packets and bytes that wait at a station, including the frame that waits for the medium.
    fn waiting(&self, station: &Station) -> (u64, u64) {
        let current = station.current.map_or(0, |queued| u64::from(queued.wire_bytes));
        (station.interface.packets() + u64::from(station.current.is_some()), station.interface.bytes() + current)
    }

    /// Returns, for each channel, the number of frames and bytes that wait for it at all its stations.
    pub(crate) fn queued(&self) -> Vec<(u64, u64)> {
        let mut queued = vec![(0, 0); self.channels.len()];
        for (number, station) in self.stations.iter().enumerate() {
            let (packets, bytes) = self.waiting(station);
            let entry = &mut queued[self.channel_of(number as u32)];
            entry.0 += packets;
            entry.1 += bytes;
        }
        queued
    }

    /// Returns the propagation delay, the framing and the rate, which determine the minimum delay of a packet.
    pub(crate) fn minimum(&self) -> (Duration, u32, Rate) {
        (self.delay, self.framing_bytes, self.channels[0].transmitter.rate())
    }
}

/// Returns the number of slots to wait before retry `retries`.
fn back_off_slots(retries: u32, ceiling: u32, stream: &mut RandomStream) -> u64 {
    // 2^10 - 1 already exceeds the longest wait.
    let upper = ((1u64 << retries.min(ceiling).min(10)) - 1).clamp(1, MAX_BACKOFF_SLOTS);
    stream.uniform_between(1.0, upper as f64) as u64
}

impl<O: Observer> Network<O> {
    /// Adds a segment and returns its number. A node can be on several segments, once on each.
    ///
    /// # Panics
    /// If there is no host, the rate is zero, or the context does not name each host. Scenarios with such a segment are
    /// rejected before the network is built.
    pub fn add_ethernet(&mut self, specification: &EthernetSpecification, context: EthernetContext<'_>) -> u32 {
        assert!(!specification.hosts.is_empty(), "a segment needs at least one station");
        assert_eq!(specification.hosts.len(), context.hosts.len(), "the context must name each host");
        let segment = self.segments.len() as u32;
        let first_channel = self.channels.len() as u32;
        let first_station = self.stations.len() as u32;
        let added = Segment::new(specification, context, first_channel, first_station);
        self.channels.extend((0..added.channels.len() as u32).map(|channel| (segment, channel)));
        self.stations.extend((0..added.stations.len() as u32).map(|station| (segment, station)));
        for from in &added.stations {
            for (station, to) in added.stations.iter().enumerate() {
                if from.node != to.node {
                    let by = NextHop::Station { segment, station: station as u32 };
                    self.edges[from.node.index()].push(Edge { to: to.node, by });
                }
            }
        }
        self.segments.push(added);
        segment
    }

    /// Returns the identity of a segment's medium (half duplex) or of its first station's channel (full duplex). The
    /// result is valid only after the last call of [`Network::add_link`].
    pub fn ethernet_link(&self, segment: u32) -> LinkId {
        self.channel_link(segment, 0)
    }

    /// Returns the identity of the channel on which a station transmits: the segment's medium (half duplex) or its own
    /// channel (full duplex). The result is valid only after the last call of [`Network::add_link`].
    pub fn station_link(&self, segment: u32, station: u32) -> LinkId {
        self.channel_link(segment, self.segments[segment as usize].channel_of(station))
    }

    /// Returns the identity of the channel on which a node transmits on a segment, as [`Network::station_link`] does.
    /// The node must be a station of the segment.
    pub fn outgoing_link(&self, segment: u32, node: NodeId) -> LinkId {
        let station = self.segments[segment as usize].station_of(node).unwrap_or(0);
        self.station_link(segment, station)
    }

    /// Returns the node of a station.
    pub fn station_node(&self, segment: u32, station: u32) -> NodeId {
        self.segments[segment as usize].node_of(station)
    }

    fn channel_link(&self, segment: u32, channel: usize) -> LinkId {
        let first = self.segments[segment as usize].first_channel;
        LinkId(self.links.len() as u32 + first + channel as u32)
    }

    /// Returns the number of packets and bytes that wait at a station now, including the frame that waits for the
    /// medium.
    pub fn station_queue(&self, segment: u32, station: u32) -> (u64, u64) {
        let segment = &self.segments[segment as usize];
        segment.waiting(&segment.stations[station as usize])
    }

    /// Returns the counters of a station.
    pub fn station_counters(&self, segment: u32, station: u32) -> StationCounters {
        self.segments[segment as usize].stations[station as usize].counters
    }

    /// Returns the counters of a channel by its identity.
    pub(crate) fn channel_counters(&self, link: LinkId) -> LinkCounters {
        let (segment, channel) = self.channels[link.index() - self.links.len()];
        self.segments[segment as usize].channels[channel as usize].counters
    }

    /// Counts a packet that was marked on a channel.
    pub(crate) fn channel_marked(&mut self, link: LinkId) {
        let (segment, channel) = self.channels[link.index() - self.links.len()];
        self.segments[segment as usize].channels[channel as usize].counters.marks += 1;
    }

    /// Returns the number of packets and bytes that wait for a channel, by its identity.
    pub(crate) fn channel_queue(&self, link: LinkId) -> (u64, u64) {
        let (segment, channel) = self.channels[link.index() - self.links.len()];
        self.segments[segment as usize].queued()[channel as usize]
    }

    /// Returns the transmitter of a channel, for an injected fault.
    pub(crate) fn channel_transmitter(&mut self, link: LinkId) -> &mut Transmitter {
        let (segment, channel) = self.channels[link.index() - self.links.len()];
        &mut self.segments[segment as usize].channels[channel as usize].transmitter
    }

    /// Sends a packet from `node` to the neighbor `station` on a segment.
    pub(crate) fn send_on_segment(&mut self, node: NodeId, segment: u32, station: u32, handle: PacketHandle) {
        let mtu_bytes = self.segments[segment as usize].mtu_bytes;
        if self.arena.get(handle).ip_bytes <= mtu_bytes {
            return self.resolve(node, segment, station, handle);
        }
        let link = self.ethernet_link(segment);
        self.fragment(self.now, handle, node, mtu_bytes, link, |network, piece| {
            network.resolve(node, segment, station, piece);
        });
    }

    fn resolve(&mut self, node: NodeId, segment: u32, neighbour: u32, handle: PacketHandle) {
        let now = self.now;
        let s = &mut self.segments[segment as usize];
        let Some(from) = s.station_of(node) else {
            return self.drop_packet(now, handle, None, DropReason::Unreachable);
        };
        let station = &mut s.stations[from as usize];
        match station.resolver.submit(&s.arp, now, neighbour, handle) {
            ResolutionStatus::Resolved => self.offer_frame(segment, from, handle),
            ResolutionStatus::Pending => self.arm_resolver(segment, from),
            ResolutionStatus::QueueFull => {
                station.counters.resolution_drops += 1;
                self.drop_packet(now, handle, None, DropReason::AddressResolution);
            }
        }
    }

    fn arm_resolver(&mut self, segment: u32, station: u32) {
        let s = &mut self.segments[segment as usize];
        let event = EventId::new(EventClass::Host, s.first_station + station);
        let station = &mut s.stations[station as usize];
        let wake = station.resolver.next_wake();
        if !wake.is_never() {
            station.resolver_slot.arm(&mut self.calendar, event, wake);
        }
    }

    /// Processes the address resolutions of a station that are due.
    pub(crate) fn resolutions_due(&mut self, number: u32) {
        let now = self.now;
        let (segment, from) = self.stations[number as usize];
        let s = &mut self.segments[segment as usize];
        if !s.stations[from as usize].resolver_slot.on_wakeup(now) {
            return;
        }
        loop {
            let s = &mut self.segments[segment as usize];
            let station = &mut s.stations[from as usize];
            match station.resolver.next_due(&s.arp, now) {
                None => break,
                Some((neighbour, ResolutionAction::SendRequest)) => self.send_arp(segment, from, neighbour, true),
                Some((_, ResolutionAction::DropPackets(waiting))) => {
                    station.counters.resolution_drops += waiting.len() as u64;
                    for handle in waiting {
                        self.drop_packet(now, handle, None, DropReason::AddressResolution);
                    }
                }
            }
        }
        self.arm_resolver(segment, from);
    }

    fn send_arp(&mut self, segment: u32, from: u32, to: u32, request: bool) {
        let handle = self.arena.insert(Packet {
            sent: self.now,
            content: PacketContent::Arp { request },
            flow: ARP_FLOW,
            destination: self.segments[segment as usize].node_of(to),
            ip_bytes: ARP_BYTES,
            options: SideDataHandle::NONE,
            payload: SideDataHandle::NONE,
            codepoint: EcnCodepoint::NotEct,
            version: IpVersion::V4,
            corrupted: false,
        });
        self.offer_frame(segment, from, handle);
    }

    /// Processes the arrival of a frame at a station's interface.
    fn offer_frame(&mut self, segment: u32, from: u32, handle: PacketHandle) {
        let now = self.now;
        let link = self.station_link(segment, from);
        if self.drops_silently(link, handle) {
            return;
        }
        let s = &mut self.segments[segment as usize];
        let packet = self.arena.get(handle);
        let wire_bytes = s.wire_bytes(packet.ip_bytes);
        let queued = QueuedPacket::new(handle, packet, wire_bytes, now);
        self.observer.on_offered(now, link, wire_bytes);
        let mut dropped = std::mem::take(&mut self.dropped);
        let station = &mut s.stations[from as usize];
        let refused = station.interface.enqueue(now, queued, &mut dropped).err();
        dropped.extend(refused);
        let rests = station.phase == Phase::Rest;
        self.drop_frames(segment, from, &mut dropped, DropReason::QueueFull);
        if rests {
            self.serve(segment, from);
        }
    }

    fn drop_frames(&mut self, segment: u32, from: u32, dropped: &mut Vec<QueuedPacket>, reason: DropReason) {
        let link = self.station_link(segment, from);
        for frame in dropped.drain(..) {
            let QueuedPacket { handle, wire_bytes, .. } = frame;
            let reason = if reason == DropReason::QueueFull { frame.drop_reason() } else { reason };
            let s = &mut self.segments[segment as usize];
            let channel = s.channel_of(from);
            s.channels[channel].counters.queue_drops += 1;
            let counters = &mut s.stations[from as usize].counters;
            match reason {
                DropReason::Collision => counters.collision_drops += 1,
                _ => counters.queue_drops += 1,
            }
            self.observer.on_link_dropped(self.now, link, wire_bytes, reason);
            if matches!(self.arena.get(handle).content, PacketContent::Arp { .. }) {
                self.arena.release(handle);
            } else {
                self.drop_packet(self.now, handle, Some(link), reason);
            }
        }
        self.dropped = std::mem::take(dropped);
    }

    /// Starts an attempt to transmit, for an idle station or at the end of its gap or back-off.
    fn serve(&mut self, segment: u32, from: u32) {
        let now = self.now;
        loop {
            let mut dropped = std::mem::take(&mut self.dropped);
            let s = &mut self.segments[segment as usize];
            let channel = s.channel_of(from);
            let occupied = s.half_duplex && s.channels[channel].occupied;
            let station = &mut s.stations[from as usize];
            if station.current.is_none() {
                station.current = station.interface.dequeue(now, &mut dropped);
            }
            self.drop_frames(segment, from, &mut dropped, DropReason::QueueFull);
            let s = &mut self.segments[segment as usize];
            let station = &mut s.stations[from as usize];
            let Some(frame) = station.current else {
                station.phase = Phase::Rest;
                return;
            };
            if !occupied {
                return self.transmit(segment, from, frame);
            }
            if station.retries < s.max_retries {
                station.retries += 1;
                station.phase = Phase::BackOff;
                station.counters.backoffs += 1;
                let slots = back_off_slots(station.retries, s.backoff_ceiling, &mut station.back_off);
                let event = EventId::new(EventClass::Medium, STATION_EVENTS + s.first_station + from);
                self.calendar.schedule(now.saturating_add(s.slot.saturating_mul(slots)), event);
                return;
            }
            station.retries = 0;
            station.current = None;
            let mut dropped = std::mem::take(&mut self.dropped);
            dropped.push(frame);
            self.drop_frames(segment, from, &mut dropped, DropReason::Collision);
        }
    }

    fn transmit(&mut self, segment: u32, from: u32, frame: QueuedPacket) {
        let now = self.now;
        let QueuedPacket { handle, wire_bytes, since, .. } = frame;
        let link = self.station_link(segment, from);
        self.note_mark(link, &frame);
        let s = &mut self.segments[segment as usize];
        let number = s.channel_of(from);
        let channel = &mut s.channels[number];
        // Fractions of a nanosecond are always carried over to the next frame, so that alternating stations do not
        // exceed the rate.
        let finish = now + channel.transmitter.transmit(wire_bytes, false);
        let arrival = finish.saturating_add(s.delay);
        channel.occupied = true;
        channel.counters.frames += 1;
        channel.counters.bytes += u64::from(wire_bytes);
        channel.counters.queue_delay_sum += now - since;
        if channel.flight.push(arrival, (handle, from)) {
            self.calendar.schedule(arrival, EventId::new(EventClass::Medium, s.first_channel + number as u32));
        }
        let station = &mut s.stations[from as usize];
        station.current = None;
        station.retries = 0;
        station.phase = Phase::Busy;
        station.counters.frames += 1;
        station.counters.bytes += u64::from(wire_bytes);
        let event = EventId::new(EventClass::Medium, STATION_EVENTS + s.first_station + from);
        self.calendar.schedule(finish.saturating_add(s.gap), event);
        let flow = self.arena.get(handle).flow;
        self.observer.on_transmitted(&Transmission {
            link,
            flow,
            wire_bytes,
            offered: since,
            start: now,
            finish,
            arrival,
        });
    }

    /// Processes a medium event: a frame has reached all stations, or a station's gap or back-off ends.
    pub(crate) fn medium_event(&mut self, hosts: &mut impl HostEndpoints<O>, number: u32) {
        if number >= STATION_EVENTS {
            let (segment, station) = self.stations[(number - STATION_EVENTS) as usize];
            return self.serve(segment, station);
        }
        let (segment, channel_number) = self.channels[number as usize];
        let channel = &mut self.segments[segment as usize].channels[channel_number as usize];
        let Some(((handle, from), next)) = channel.flight.pop() else { return };
        if let Some(next) = next {
            self.calendar.schedule(next, EventId::new(EventClass::Medium, number));
        }
        self.receive_frame(hosts, segment, from, handle);
        self.segments[segment as usize].channels[channel_number as usize].occupied = false;
    }

    fn receive_frame(&mut self, hosts: &mut impl HostEndpoints<O>, segment: u32, from: u32, handle: PacketHandle) {
        let packet = self.arena.get(handle);
        let (destination, content) = (packet.destination, packet.content);
        let s = &mut self.segments[segment as usize];
        if let PacketContent::Arp { request } = content {
            self.arena.release(handle);
            let Some(receiver) = s.station_of(destination) else { return };
            if request {
                return self.send_arp(segment, receiver, from, false);
            }
            for packet in s.stations[receiver as usize].resolver.answered(from) {
                self.offer_frame(segment, receiver, packet);
            }
            return;
        }
        let sender = s.node_of(from);
        match self.toward(sender, destination) {
            NextHop::Station { segment: same, station } if same == segment => {
                let node = self.segments[segment as usize].node_of(station);
                self.arrive(hosts, node, handle);
            }
            _ => self.drop_packet(self.now, handle, None, DropReason::Unreachable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the smallest and the largest wait before a retry, of many draws, and their mean.
    fn waits(retries: u32, ceiling: u32) -> (u64, u64, f64) {
        let mut stream = RandomStream::new(1, "station", "back-off");
        let draws: Vec<u64> = (0..40_000).map(|_| back_off_slots(retries, ceiling, &mut stream)).collect();
        let sum: u64 = draws.iter().sum();
        (*draws.iter().min().unwrap(), *draws.iter().max().unwrap(), sum as f64 / 40_000.0)
    }

    #[test]
    fn back_off_grows_up_to_its_ceiling() {
        // Before retry k: uniform over 1 ... 2^k - 2 (but 1 for k = 1), mean (2^k - 1) / 2, standard deviation
        // (2^k - 2) / sqrt(12); bounds of the mean are five standard errors.
        assert_eq!(waits(1, 10), (1, 1, 1.0));
        for k in 2..=9u32 {
            let upper = (1u64 << k) - 2;
            let (low, high, mean) = waits(k, 10);
            assert_eq!((low, high), (1, upper), "{k}");
            let error = upper as f64 / 12f64.sqrt() / 200.0 * 5.0;
            assert!((mean - (upper + 1) as f64 / 2.0).abs() < error, "{k}: {mean}");
        }
        // At most 1000 slots: U[1, 1000) rounded down to whole slots.
        for (retries, ceiling) in [(10, 10), (11, 10), (1000, 10), (1000, u32::MAX)] {
            let (low, high, mean) = waits(retries, ceiling);
            assert!(low == 1 && high == 999 && (mean - 500.0).abs() < 1000.0 / 12f64.sqrt() / 200.0 * 5.0, "{mean}");
        }
        assert_eq!(waits(9, 2).1, 2);
        assert_eq!(waits(9, 0).1, 1);
    }
}
