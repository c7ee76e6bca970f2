//! A medium that is modeled outside this crate: a hub, its stations, and a [`Medium`] that determines the outcome of
//! each frame.
//!
//! Links and shared Ethernet are modeled in this crate. A radio access network is not, because its schedulers,
//! transport blocks and retransmissions do not depend on the rest of the network. [`Medium`] is the interface between
//! the two: the network offers frames and wakes the medium, and the medium reports the outcome of each frame.
//!
//! **Topology.** The topology is a star: each station is connected to the hub only. If the hub is a router, it forwards
//! packets between stations. There are two directions, [`MediumDirection::Downlink`] from the hub and
//! [`MediumDirection::Uplink`] to the hub. Observers see each direction as one link ([`Network::medium_link`]). A frame
//! counts as queued from the time when it is offered until its outcome. The medium does not report the transmission
//! time of a frame, so its transmission starts and ends at the instant of its arrival.
//!
//! **Deferred offers.** If a single link feeds the downlink, its packets need no separate events. They stay in flight
//! on that link until the medium is woken, until another frame is offered, or at the latest until
//! [`Medium::offer_deadline`]. Then they are offered with their arrival times. As for links that are computed ahead,
//! [`Network::finalize`] decides once whether offers are deferred. Offers in an observed direction are never deferred.
//!
//! **Order at one instant.** A medium that is due is woken before any frame is offered at that instant, regardless of
//! the order of events. A frame that arrives exactly at the beginning of a subframe is therefore too late for that
//! subframe. Frames that arrive at one instant do so in the order in which the medium reported them.

use crate::link::{LinkCounters, NO_LINK};
use crate::network::{HostEndpoints, Network};
use crate::packet::{InFlightPacket, PacketHandle};
use crate::routing::{Edge, NextHop};
use crate::tap::HeaderFields;
use fullpipe_archive::{Tables, Warning};
use fullpipe_engine::{EventClass, EventId, TimerSlot};
use fullpipe_record::{DropReason, MediumExchange, Observer, Transmission};
use fullpipe_schema::metric::Sample;
use fullpipe_schema::metric::TimeSum;
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, LinkId, NodeId};
use std::collections::VecDeque;
use std::fmt;

/// First event number of these media in the class [`EventClass::Medium`]. Shared Ethernet uses lower numbers for its
/// channels and higher numbers for its stations.
pub(crate) const FIRST_EVENT: u32 = 1 << 26;

/// A direction of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediumDirection {
    /// From the hub to a station.
    Downlink,
    /// From a station to the hub.
    Uplink,
}

impl MediumDirection {
    /// Both directions, in the order of their numbers.
    pub const ALL: [MediumDirection; 2] = [MediumDirection::Downlink, MediumDirection::Uplink];

    /// Returns the name of the direction in records and link names.
    pub const fn name(self) -> &'static str {
        match self {
            MediumDirection::Downlink => "downlink",
            MediumDirection::Uplink => "uplink",
        }
    }
}

/// A frame that is offered to a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumFrame {
    /// Identifies the frame; the medium returns this value in [`CompletedFrame::token`].
    pub token: u64,
    /// Direction of the frame.
    pub way: MediumDirection,
    /// The destination station (downlink) or the source station (uplink).
    pub station: u32,
    /// The flow of the packet.
    pub flow: FlowId,
    /// Size of the IP packet in bytes.
    pub ip_bytes: u32,
    /// The ECN codepoint, which determines whether a queue of the medium marks the packet or drops it.
    pub codepoint: EcnCodepoint,
    /// The header fields, with the addresses as seen at the station; `None` if the medium does not read them or the
    /// flow is unknown. A fragment has the header fields of its whole packet.
    pub envelope: Option<HeaderFields>,
}

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumOutcome {
    /// The frame arrived.
    Delivered,
    /// The frame arrived, and a queue of the medium has set CE ("congestion experienced") on its packet.
    Marked,
    /// A buffer had no room for the frame.
    BufferFull,
    /// A queue discipline dropped the frame although there was room.
    DroppedEarly,
    /// The frame was lost on the radio channel.
    Lost,
}

/// A frame with a known outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedFrame {
    /// The value of [`MediumFrame::token`].
    pub token: u64,
    /// Time of the outcome, which is never before the time at which the medium reports it.
    pub at: Instant,
    /// The outcome.
    pub fate: MediumOutcome,
}

/// An exchange of frames on a medium that its nodes share by contention, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Beginning of the first frame.
    pub start: Instant,
    /// End of the last frame, such as the acknowledgment.
    pub end: Instant,
    /// Whether the receiver decoded at least one frame with data.
    pub received: bool,
}

/// The model of a medium.
pub trait Medium: fmt::Debug + Send {
    /// Offers a frame. If the medium is due at `now`, the network has already woken it. A frame from the hub may be
    /// offered late (see [`Medium::offer_deadline`]), but before any later event is reported.
    fn offer(&mut self, now: Instant, frame: MediumFrame);

    /// Returns the latest time for offering a frame that arrives at the hub at `at`. Before this time the frame affects
    /// neither [`Medium::next_wakeup`] nor any outcome, so the frame may be offered later, together with others.
    fn offer_deadline(&self, at: Instant) -> Instant {
        at
    }

    /// Returns whether the medium reads [`MediumFrame::envelope`].
    fn reads_headers(&self) -> bool {
        false
    }

    /// Returns when the medium must be woken next, which is later than the last wakeup; [`Instant::NEVER`] if it has no
    /// work.
    fn next_wakeup(&self) -> Instant;

    /// Advances the medium to `now`, which is no later than [`Medium::next_wakeup`].
    fn wake(&mut self, now: Instant);

    /// Appends the frames whose outcome became known in the last `offer` or `wake`. Called after each `offer` and each
    /// `wake`.
    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>);

    /// Appends the exchanges of frames that the medium has started since the last call, in order of their start. Only
    /// media that their nodes share by contention report them. Called after each `wake`.
    fn drain_exchanges(&mut self, _exchanges: &mut Vec<Exchange>) {}

    /// Returns the current value of a metric that the medium's component declares, for a station and a direction;
    /// `None` if there is no value (yet).
    fn sample(&self, _metric: &str, _station: u32, _way: MediumDirection) -> Option<Sample> {
        None
    }

    /// Returns warnings about conditions that make the results of a run that ends at `end` unreliable. Before the run,
    /// returns only the warnings that are already known.
    fn warnings(&self, _end: Instant) -> Vec<Warning> {
        Vec::new()
    }

    /// Appends the rows of the medium to the tables of the run.
    fn record(&self, _tables: &mut Tables) {}
}

/// The specification of a medium.
#[derive(Debug)]
pub struct MediumSpecification {
    /// The hub.
    pub hub: NodeId,
    /// The stations, in order of their numbers.
    pub stations: Vec<NodeId>,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Minimum delay of a frame, downlink and uplink.
    pub least_delays: [Duration; 2],
    /// The model.
    pub machine: Box<dyn Medium>,
}

/// A frame that is in a medium.
#[derive(Clone, Copy, Debug)]
struct Inside {
    offered: Instant,
    way: MediumDirection,
    station: u32,
    ip_bytes: u32,
}

/// A medium and the state of its frames.
#[derive(Debug)]
pub(crate) struct HubMedium {
    hub: NodeId,
    stations: Vec<NodeId>,
    pub(crate) mtu_bytes: u32,
    pub(crate) least_delays: [Duration; 2],
    machine: Box<dyn Medium>,
    /// Frames by their token, which is the index of their packet in the arena.
    inside: Vec<Inside>,
    /// The link on which packets for the downlink wait to be offered; [`NO_LINK`] if offers are not deferred.
    pub(crate) feeder: LinkId,
    /// The latest time for offering the first of these packets.
    offer_by: Instant,
    /// When the medium must be woken.
    due: Instant,
    /// Known outcomes that are still in the future, in order of time.
    fates: VecDeque<CompletedFrame>,
    /// Exchanges that observers do not know yet.
    exchanges: Vec<Exchange>,
    slot: TimerSlot,
    counters: [LinkCounters; 2],
    /// Sojourn times of each station's delivered packets, in each direction.
    stays: [Vec<TimeSum>; 2],
    /// Number of frames and bytes in the medium, in each direction.
    waiting: [(u64, u64); 2],
    /// Count of frames for an injected fault that makes every hundredth frame arrive when it is offered.
    exceeds: [Option<u64>; 2],
}

impl HubMedium {
    /// Returns the node at which a frame from or to a station arrives.
    pub(crate) fn end(&self, way: MediumDirection, station: u32) -> NodeId {
        match way {
            MediumDirection::Downlink => self.stations[station as usize],
            MediumDirection::Uplink => self.hub,
        }
    }

    fn begin(&self, way: MediumDirection, station: u32) -> NodeId {
        match way {
            MediumDirection::Downlink => self.hub,
            MediumDirection::Uplink => self.stations[station as usize],
        }
    }

    /// Fetches the outcomes and the time of the next wakeup from the medium.
    #[inline]
    fn listen(&mut self, now: Instant) {
        let known = self.fates.len();
        self.machine.drain_outcomes(&mut self.fates);
        self.due = self.machine.next_wakeup();
        if self.fates.len() > known {
            self.put_in_order(known, now);
        }
    }

    /// Sorts the outcomes from this index on by time. They are nearly always in order already.
    #[inline(never)]
    fn put_in_order(&mut self, from: usize, now: Instant) {
        debug_assert!(
            self.fates.range(from..).all(|fated| fated.at >= now),
            "a medium must report an outcome no later than its time"
        );
        if !self.fates.range(from.saturating_sub(1)..).is_sorted_by_key(|fated| fated.at) {
            self.fates.make_contiguous().sort_by_key(|fated| fated.at);
        }
    }

    #[inline(always)]
    fn wake(&mut self, now: Instant) {
        if self.due <= now {
            self.wake_machine(now);
        }
    }

    #[inline(never)]
    fn wake_machine(&mut self, now: Instant) {
        self.machine.wake(now);
        self.machine.drain_exchanges(&mut self.exchanges);
        self.listen(now);
        debug_assert!(self.due > now, "the next wakeup must be later than now");
    }

    fn next(&self) -> Instant {
        let fate = self.fates.front().map_or(Instant::NEVER, |fated| fated.at);
        fate.min(self.due).min(self.offer_by)
    }

    /// Returns whether offers of frames from the hub may be deferred if a link with this MTU feeds it.
    pub(crate) fn may_offer_late(&self, mtu_bytes: u16) -> bool {
        u32::from(mtu_bytes) <= self.mtu_bytes && !self.machine.reads_headers() && self.exceeds == [None; 2]
    }

    /// Sets `offer_by`; `first` is the arrival time of the first packet that waits to be offered.
    fn expect(&mut self, first: Option<Instant>) {
        self.offer_by = first.map_or(Instant::NEVER, |at| self.machine.offer_deadline(at));
    }

    #[inline]
    fn put(&mut self, handle: PacketHandle, frame: Inside) {
        let waiting = &mut self.waiting[frame.way as usize];
        *waiting = (waiting.0 + 1, waiting.1 + u64::from(frame.ip_bytes));
        let place = handle.0 as usize;
        if place >= self.inside.len() {
            self.inside.resize(place + 1, frame);
        }
        self.inside[place] = frame;
    }

    #[inline]
    fn take(&mut self, handle: PacketHandle) -> Inside {
        let frame = self.inside[handle.0 as usize];
        let waiting = &mut self.waiting[frame.way as usize];
        *waiting = (waiting.0 - 1, waiting.1 - u64::from(frame.ip_bytes));
        frame
    }

    /// Returns whether an injected fault makes this frame arrive when it is offered.
    fn exceeds(&mut self, way: MediumDirection) -> bool {
        self.exceeds[way as usize].as_mut().is_some_and(|count| {
            *count += 1;
            count.is_multiple_of(100)
        })
    }
}

impl<O: Observer> Network<O> {
    /// Adds a medium and returns its number. A node may be attached to several media, once to each.
    ///
    /// # Panics
    /// Panics if the hub is also a station.
    pub fn add_medium(&mut self, specification: MediumSpecification) -> u16 {
        let MediumSpecification { hub, stations, mtu_bytes, least_delays, machine } = specification;
        assert!(!stations.contains(&hub), "the hub of a medium must not be a station");
        let medium = self.media.len() as u16;
        let due = machine.next_wakeup();
        for (number, node) in stations.iter().enumerate() {
            let by = |way| NextHop::Medium { medium, way, station: number as u32 };
            self.edges[hub.index()].push(Edge { to: *node, by: by(MediumDirection::Downlink) });
            self.edges[node.index()].push(Edge { to: hub, by: by(MediumDirection::Uplink) });
        }
        self.media.push(HubMedium {
            stays: [(); 2].map(|()| vec![TimeSum::default(); stations.len()]),
            hub,
            stations,
            mtu_bytes,
            least_delays,
            machine,
            inside: Vec::new(),
            feeder: NO_LINK,
            offer_by: Instant::NEVER,
            due,
            fates: VecDeque::new(),
            exchanges: Vec::new(),
            slot: TimerSlot::default(),
            counters: [LinkCounters::default(); 2],
            waiting: [(0, 0); 2],
            exceeds: [None; 2],
        });
        medium
    }

    /// Returns the model of a medium.
    pub fn medium(&self, medium: u16) -> &dyn Medium {
        &*self.media[usize::from(medium)].machine
    }

    /// Returns the sum and the number of the sojourn times in a medium, for a station's packets in one direction that
    /// have been delivered.
    pub fn station_sojourn_times(&self, medium: u16, station: u32, way: MediumDirection) -> TimeSum {
        self.media[usize::from(medium)].stays[way as usize][station as usize]
    }

    /// Returns the identity of a direction of a medium. The result is valid only after the last call of
    /// [`Network::add_link`] and [`Network::add_ethernet`].
    pub fn medium_link(&self, medium: u16, way: MediumDirection) -> LinkId {
        LinkId((self.links.len() + self.channels.len() + 2 * usize::from(medium) + way as usize) as u32)
    }

    /// Returns the medium and the direction of a link identity.
    fn way_of(&self, link: LinkId) -> Option<(&HubMedium, usize)> {
        let number = link.index().checked_sub(self.links.len() + self.channels.len())?;
        Some((self.media.get(number / 2)?, number % 2))
    }

    /// Returns the counters of a direction of a medium, by its identity, of the frames delivered and dropped by now.
    pub(crate) fn way_counters(&self, link: LinkId) -> Option<LinkCounters> {
        self.way_of(link).map(|(star, way)| star.counters[way])
    }

    /// Returns the number of frames and bytes in a direction of a medium, by its identity, that are neither delivered
    /// nor dropped yet.
    pub(crate) fn way_queue(&self, link: LinkId) -> Option<(u64, u64)> {
        self.way_of(link).map(|(star, way)| star.waiting[way])
    }

    /// Injects a fault into a direction: every hundredth frame arrives when it is offered. Returns false if no medium
    /// has this link.
    pub(crate) fn exceed_medium(&mut self, link: LinkId) -> bool {
        let first = self.links.len() + self.channels.len();
        let Some(number) = link.index().checked_sub(first) else { return false };
        let Some(star) = self.media.get_mut(number / 2) else { return false };
        star.exceeds[number % 2] = Some(0);
        true
    }

    /// Returns the number of frames and bytes in each direction of each medium.
    pub(crate) fn held_by_media(&self) -> impl Iterator<Item = (u64, u64)> {
        self.media.iter().flat_map(|star| star.waiting)
    }

    /// Sends a packet into a medium. (Fragmentation is a separate function, because if inlined, it would save and
    /// restore all registers.)
    #[inline]
    pub(crate) fn send_on_medium(&mut self, medium: u16, way: MediumDirection, station: u32, handle: PacketHandle) {
        if self.arena.get(handle).ip_bytes > self.media[usize::from(medium)].mtu_bytes {
            return self.send_pieces_on_medium(medium, way, station, handle);
        }
        self.offer_to_medium(medium, way, station, handle);
    }

    #[cold]
    #[inline(never)]
    fn send_pieces_on_medium(&mut self, medium: u16, way: MediumDirection, station: u32, handle: PacketHandle) {
        let star = &self.media[usize::from(medium)];
        let (node, mtu_bytes, link) = (star.begin(way, station), star.mtu_bytes, self.medium_link(medium, way));
        self.fragment(self.now, handle, node, mtu_bytes, link, |network, piece| {
            network.offer_to_medium(medium, way, station, piece);
        });
    }

    #[inline(never)]
    fn offer_to_medium(&mut self, medium: u16, way: MediumDirection, station: u32, handle: PacketHandle) {
        let now = self.now;
        let link = self.medium_link(medium, way);
        self.offer_coming(medium);
        if self.drops_silently(link, handle) {
            return;
        }
        let packet = self.arena.get(handle);
        let (flow, ip_bytes, codepoint) = (packet.flow, packet.ip_bytes, packet.codepoint);
        let star = &self.media[usize::from(medium)];
        let envelope = match star.machine.reads_headers() {
            true => self.packet_at(star.stations[station as usize], handle).map(|captured| captured.envelope),
            false => None,
        };
        self.observer.on_offered(now, link, ip_bytes);
        let star = &mut self.media[usize::from(medium)];
        star.wake(now);
        star.put(handle, Inside { offered: now, way, station, ip_bytes });
        let token = u64::from(handle.0);
        if star.exceeds(way) {
            star.fates.push_back(CompletedFrame { token, at: now, fate: MediumOutcome::Delivered });
            star.put_in_order(star.fates.len() - 1, now);
        } else {
            star.machine.offer(now, MediumFrame { token, way, station, flow, ip_bytes, codepoint, envelope });
            star.listen(now);
        }
        self.arm_medium(medium);
    }

    /// Registers the first packet in flight on a link that feeds a hub. (An event per packet would cost 200
    /// instructions.)
    #[inline(never)]
    pub(crate) fn await_offer(&mut self, link: LinkId) {
        let first = self.links[link.index()].flight.next_due();
        for medium in 0..self.media.len() as u16 {
            let star = &mut self.media[usize::from(medium)];
            if star.feeder == link {
                star.expect(first);
                self.arm_medium(medium);
            }
        }
    }

    /// Offers the packets that have arrived by now. Packets that arrive exactly at a wakeup are offered after the
    /// wakeup.
    #[inline(always)]
    fn offer_coming(&mut self, medium: u16) {
        let feeder = self.media[usize::from(medium)].feeder;
        if let Some(link) = self.links.get(feeder.index())
            && link.flight.next_due().is_some_and(|at| at <= self.now)
        {
            self.offer_all_coming(medium);
        }
    }

    #[inline(never)]
    fn offer_all_coming(&mut self, medium: u16) {
        let (now, down) = (self.now, self.medium_link(medium, MediumDirection::Downlink));
        let star = &mut self.media[usize::from(medium)];
        let lane = &mut self.links[star.feeder.index()].flight;
        while let Some(at) = lane.next_due().filter(|at| *at <= now)
            && let Some((InFlightPacket { handle, destination, flow, ip_bytes }, _)) = lane.pop()
        {
            let NextHop::Medium { station, .. } = self.nodes[star.hub.index()].routes.toward(destination) else {
                unreachable!("all packets of a feeder must enter the downlink");
            };
            star.wake(at);
            self.observer.on_offered(at, down, ip_bytes);
            star.put(handle, Inside { offered: at, way: MediumDirection::Downlink, station, ip_bytes });
            let token = u64::from(handle.0);
            let (way, codepoint) = (MediumDirection::Downlink, self.arena.get(handle).codepoint);
            star.machine.offer(at, MediumFrame { token, way, station, flow, ip_bytes, codepoint, envelope: None });
        }
        star.expect(lane.next_due());
        star.listen(now);
    }

    /// Offers all packets that have arrived by the time at which the clock stops.
    pub(crate) fn offer_all_that_came(&mut self) {
        for medium in 0..self.media.len() as u16 {
            self.offer_coming(medium);
            self.arm_medium(medium);
        }
    }

    pub(crate) fn arm_medium(&mut self, medium: u16) {
        if !self.media[usize::from(medium)].exchanges.is_empty() {
            self.report_exchanges(medium);
        }
        let star = &mut self.media[usize::from(medium)];
        let next = star.next();
        if !next.is_never() {
            star.slot.arm(&mut self.calendar, EventId::new(EventClass::Medium, FIRST_EVENT + u32::from(medium)), next);
        }
    }

    #[inline(never)]
    fn report_exchanges(&mut self, medium: u16) {
        let link = self.medium_link(medium, MediumDirection::Downlink);
        let mut exchanges = std::mem::take(&mut self.media[usize::from(medium)].exchanges);
        for Exchange { start, end, received } in exchanges.drain(..) {
            self.observer.on_exchange(&MediumExchange { medium: link, start, end, received });
        }
        self.media[usize::from(medium)].exchanges = exchanges;
    }

    /// Processes the wakeup of a medium and the outcomes that are due.
    #[cold]
    #[inline(never)]
    pub(crate) fn medium_due(&mut self, hosts: &mut impl HostEndpoints<O>, medium: u16) {
        let now = self.now;
        let star = &mut self.media[usize::from(medium)];
        if !star.slot.on_wakeup(now) {
            return;
        }
        self.offer_coming(medium);
        self.media[usize::from(medium)].wake(now);
        // A receiver can send a packet immediately, and the medium can drop that packet immediately.
        loop {
            let star = &mut self.media[usize::from(medium)];
            let Some(&CompletedFrame { token, fate, .. }) = star.fates.front().filter(|fated| fated.at <= now) else {
                break;
            };
            star.fates.pop_front();
            self.meet(hosts, medium, PacketHandle(token as u32), fate);
        }
        self.arm_medium(medium);
    }

    #[inline(always)]
    fn meet(&mut self, hosts: &mut impl HostEndpoints<O>, medium: u16, handle: PacketHandle, fate: MediumOutcome) {
        let now = self.now;
        let first = self.medium_link(medium, MediumDirection::Downlink);
        let star = &mut self.media[usize::from(medium)];
        let Inside { offered, way, station, ip_bytes } = star.take(handle);
        let link = LinkId(first.0 + way as u32);
        let counters = &mut star.counters[way as usize];
        let reason = match fate {
            MediumOutcome::Delivered | MediumOutcome::Marked => {
                counters.frames += 1;
                counters.bytes += u64::from(ip_bytes);
                counters.queue_delay_sum += now - offered;
                star.stays[way as usize][station as usize].add(now - offered);
                let node = star.end(way, station);
                let packet = self.arena.get_mut(handle);
                let flow = packet.flow;
                if fate == MediumOutcome::Marked && packet.codepoint.is_ecn_capable() {
                    packet.codepoint = EcnCodepoint::Ce;
                    star.counters[way as usize].marks += 1;
                    self.observer.on_marked(now, &packet.view(), link);
                }
                self.observer.on_transmitted(&Transmission {
                    link,
                    flow,
                    wire_bytes: ip_bytes,
                    offered,
                    start: now,
                    finish: now,
                    arrival: now,
                });
                return self.arrive(hosts, node, handle);
            }
            MediumOutcome::BufferFull => {
                counters.queue_drops += 1;
                DropReason::QueueFull
            }
            MediumOutcome::DroppedEarly => {
                counters.queue_drops += 1;
                DropReason::QueueDiscipline
            }
            MediumOutcome::Lost => {
                counters.losses += 1;
                DropReason::Radio
            }
        };
        self.observer.on_link_dropped(now, link, ip_bytes, reason);
        self.drop_packet(now, handle, Some(link), reason);
    }
}
