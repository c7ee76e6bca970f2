//! A medium whose inside is somebody else's: a hub and its stations, and a machine that decides what becomes of each frame.
//!
//! Links and shared Ethernet are models of this crate. A radio access network is not: what it does with a frame follows from
//! schedulers, transport blocks and retransmissions, which know nothing of networks. [`Medium`] is what the two have to
//! say to each other: a frame comes, time passes, a frame's fate is known.
//!
//! **Star.** Stations reach the hub, the hub reaches each station; two stations talk by way of the hub, if that is a router.
//! So there are two ways, [`Way::Down`] from the hub and [`Way::Up`] to it, and each is a link of its own to whoever observes:
//! see [`Network::medium_link`]. A frame waits there from when it is offered until its fate; how long it then was on the air is
//! not told, so a transmission begins, ends and arrives at one instant.
//!
//! **Frames that wait to be offered.** Where one link alone feeds the hub's way down, and nothing else, its packets need no
//! event each: they stay in the link's lane and are offered, with the time at which they came, when the machine is woken, when
//! another frame comes, or when [`Medium::offer_by`] says. As with links that are computed ahead, [`Network::finish`] decides
//! this once, and not for a way that is observed.
//!
//! **Order at one instant.** A machine that wants to be woken at an instant is woken before it is offered anything at that
//! instant, whatever the order of events: who comes exactly at the beginning of a subframe has missed it. Frames that arrive at
//! one instant do so in the order in which the machine told their fates.

use crate::link::{LinkCounters, NO_LINK};
use crate::network::{Hosts, Network};
use crate::packet::{Handle, InFlight};
use crate::routing::{Attachment, Edge};
use crate::tap::Envelope;
use fullpipe_archive::Tables;
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_record::{DropReason, Observer, Transmission};
use fullpipe_schema::metric::Sample;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use std::collections::VecDeque;
use std::fmt;

/// Medium events from this number on belong to media of this kind; shared Ethernet has those below and those of its stations
/// above.
pub(crate) const FIRST_EVENT: u32 = 1 << 26;

/// From the hub, or to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the hub to a station.
    Down,
    /// From a station to the hub.
    Up,
}

impl Way {
    /// Both, in the order of their numbers.
    pub const ALL: [Way; 2] = [Way::Down, Way::Up];

    /// What records and links call it.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Down => "downlink",
            Way::Up => "uplink",
        }
    }
}

/// What a machine gets to know of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which frame, for [`Fated::token`].
    pub token: u64,
    /// Its way.
    pub way: Way,
    /// The station that it goes to or comes from.
    pub station: u32,
    /// The flow of its packet.
    pub flow: FlowId,
    /// Size of the IP packet.
    pub ip_bytes: u32,
    /// What its headers say, if the machine reads them and the flow has ports; of a fragment those of the whole packet. Addresses
    /// are those at the station.
    pub envelope: Option<Envelope>,
}

/// What has become of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has arrived.
    Delivered,
    /// A buffer had no room for it.
    BufferFull,
    /// It was lost on the air.
    Lost,
}

/// A frame whose fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fated {
    /// Which frame.
    pub token: u64,
    /// When; not before it is told.
    pub at: Instant,
    /// What.
    pub fate: Fate,
}

/// The machine inside.
pub trait Medium: fmt::Debug + Send {
    /// A frame comes. The machine has been woken if it wanted to be by now. A frame from the hub may be offered late (see
    /// [`Medium::offer_by`]), but before anything later is told.
    fn offer(&mut self, now: Instant, frame: Frame);

    /// By when it has to be offered a frame that comes from the hub at `at`: before, it would do nothing because of it, neither
    /// want to be woken nor know its fate. Until then the frame may wait, and be offered together with others.
    fn offer_by(&self, at: Instant) -> Instant {
        at
    }

    /// Whether it wants [`Frame::envelope`].
    fn reads_headers(&self) -> bool {
        false
    }

    /// When it wants to be woken: after the last time that it was; [`Instant::NEVER`] if it wants nothing.
    fn next(&self) -> Instant;

    /// Time has come to `now`, which is no later than [`Medium::next`] said.
    fn wake(&mut self, now: Instant);

    /// Adds the frames whose fate became known in the last `offer` or `wake`; asked after each of them.
    fn fates(&mut self, fates: &mut VecDeque<Fated>);

    /// The present value of a metric that the medium's component declares, of a station and one way; nothing where there is
    /// none, or none yet.
    fn sample(&self, _metric: &str, _station: u32, _way: Way) -> Option<Sample> {
        None
    }

    /// Adds its rows to the tables of the run.
    fn record(&self, _tables: &mut Tables) {}
}

/// What a medium is built from.
#[derive(Debug)]
pub struct MediumSpecification {
    /// The hub.
    pub hub: NodeId,
    /// The stations, in order of their numbers.
    pub stations: Vec<NodeId>,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Least time that a frame takes, down and up.
    pub least_delays: [Duration; 2],
    /// The machine.
    pub machine: Box<dyn Medium>,
}

/// A frame inside.
#[derive(Clone, Copy, Debug)]
struct Inside {
    offered: Instant,
    way: Way,
    station: u32,
    ip_bytes: u32,
}

/// One medium.
#[derive(Debug)]
pub(crate) struct Star {
    hub: NodeId,
    stations: Vec<NodeId>,
    pub(crate) mtu_bytes: u32,
    pub(crate) least_delays: [Duration; 2],
    machine: Box<dyn Medium>,
    /// Frames by their packets' place in the arena, which is their token.
    inside: Vec<Inside>,
    /// The link whose lane has the packets that come to the hub, if they wait there to be offered; else [`NO_LINK`].
    pub(crate) feeder: LinkId,
    /// By when the first of them has to be offered.
    offer_by: Instant,
    /// When the machine wants to be woken.
    due: Instant,
    /// Fates that are known and not yet met, in order.
    fates: VecDeque<Fated>,
    slot: Slot,
    counters: [LinkCounters; 2],
    /// Frames and bytes inside.
    waiting: [(u64, u64); 2],
    /// Frames of which every hundredth arrives at once, if somebody broke this way on purpose.
    exceeds: [Option<u64>; 2],
}

impl Star {
    /// Where a frame of this way comes out.
    pub(crate) fn end(&self, way: Way, station: u32) -> NodeId {
        match way {
            Way::Down => self.stations[station as usize],
            Way::Up => self.hub,
        }
    }

    fn begin(&self, way: Way, station: u32) -> NodeId {
        match way {
            Way::Down => self.hub,
            Way::Up => self.stations[station as usize],
        }
    }

    /// Takes note of what the machine has to tell.
    #[inline]
    fn listen(&mut self, now: Instant) {
        let known = self.fates.len();
        self.machine.fates(&mut self.fates);
        self.due = self.machine.next();
        if self.fates.len() > known {
            self.put_in_order(known, now);
        }
    }

    /// Of fates from this place on each goes behind all that are met by then; nearly always that is where it stands.
    #[inline(never)]
    fn put_in_order(&mut self, from: usize, now: Instant) {
        debug_assert!(self.fates.range(from..).all(|fated| fated.at >= now), "a fate is told before it is met");
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
        self.listen(now);
        debug_assert!(self.due > now, "a machine that is awake waits for something later");
    }

    fn next(&self) -> Instant {
        let fate = self.fates.front().map_or(Instant::NEVER, |fated| fated.at);
        fate.min(self.due).min(self.offer_by)
    }

    /// Whether frames from the hub may wait to be offered, if a link with this MTU feeds it.
    pub(crate) fn may_offer_late(&self, mtu_bytes: u16) -> bool {
        u32::from(mtu_bytes) <= self.mtu_bytes && !self.machine.reads_headers() && self.exceeds == [None; 2]
    }

    /// `first`: when the next packet comes that waits to be offered.
    fn expect(&mut self, first: Option<Instant>) {
        self.offer_by = first.map_or(Instant::NEVER, |at| self.machine.offer_by(at));
    }

    #[inline]
    fn put(&mut self, handle: Handle, frame: Inside) {
        let waiting = &mut self.waiting[frame.way as usize];
        *waiting = (waiting.0 + 1, waiting.1 + u64::from(frame.ip_bytes));
        let place = handle.0 as usize;
        if place >= self.inside.len() {
            self.inside.resize(place + 1, frame);
        }
        self.inside[place] = frame;
    }

    #[inline]
    fn take(&mut self, handle: Handle) -> Inside {
        let frame = self.inside[handle.0 as usize];
        let waiting = &mut self.waiting[frame.way as usize];
        *waiting = (waiting.0 - 1, waiting.1 - u64::from(frame.ip_bytes));
        frame
    }

    /// Whether this frame is one that a fault lets arrive at once.
    fn exceeds(&mut self, way: Way) -> bool {
        self.exceeds[way as usize].as_mut().is_some_and(|count| {
            *count += 1;
            count.is_multiple_of(100)
        })
    }
}

impl<O: Observer> Network<O> {
    /// Adds a medium and says its number. A node may be at several media, once at each.
    ///
    /// # Panics
    /// If the hub is a station as well.
    pub fn add_medium(&mut self, specification: MediumSpecification) -> u16 {
        let MediumSpecification { hub, stations, mtu_bytes, least_delays, machine } = specification;
        assert!(!stations.contains(&hub), "the hub of a medium is none of its stations");
        let medium = self.media.len() as u16;
        let due = machine.next();
        for (number, node) in stations.iter().enumerate() {
            let by = |way| Attachment::Medium { medium, way, station: number as u32 };
            self.edges[hub.index()].push(Edge { to: *node, by: by(Way::Down) });
            self.edges[node.index()].push(Edge { to: hub, by: by(Way::Up) });
        }
        self.media.push(Star {
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
            slot: Slot::default(),
            counters: [LinkCounters::default(); 2],
            waiting: [(0, 0); 2],
            exceeds: [None; 2],
        });
        medium
    }

    /// The machine of a medium.
    pub fn medium(&self, medium: u16) -> &dyn Medium {
        &*self.media[usize::from(medium)].machine
    }

    /// Identity of a way through a medium. Valid after the last [`Network::add_link`] and [`Network::add_ethernet`].
    pub fn medium_link(&self, medium: u16, way: Way) -> LinkId {
        LinkId((self.links.len() + self.channels.len() + 2 * usize::from(medium) + way as usize) as u32)
    }

    /// The medium and the way that a link's identity stands for.
    fn way_of(&self, link: LinkId) -> Option<(&Star, usize)> {
        let number = link.index().checked_sub(self.links.len() + self.channels.len())?;
        Some((self.media.get(number / 2)?, number % 2))
    }

    /// Counters of a way through a medium, by its identity; of what was delivered and dropped by now.
    pub(crate) fn way_counters(&self, link: LinkId) -> Option<LinkCounters> {
        self.way_of(link).map(|(star, way)| star.counters[way])
    }

    /// Frames and bytes that have come to a way through a medium and whose fate is not met.
    pub(crate) fn way_queue(&self, link: LinkId) -> Option<(u64, u64)> {
        self.way_of(link).map(|(star, way)| star.waiting[way])
    }

    /// Breaks a way on purpose: every hundredth frame arrives when it is offered. False if the link is none of a medium.
    pub(crate) fn exceed_medium(&mut self, link: LinkId) -> bool {
        let first = self.links.len() + self.channels.len();
        let Some(number) = link.index().checked_sub(first) else { return false };
        let Some(star) = self.media.get_mut(number / 2) else { return false };
        star.exceeds[number % 2] = Some(0);
        true
    }

    /// What each way through each medium holds.
    pub(crate) fn held_by_media(&self) -> impl Iterator<Item = (u64, u64)> {
        self.media.iter().flat_map(|star| star.waiting)
    }

    /// A packet leaves for a medium. (The long way and the short one apart: together they save and restore all registers.)
    #[inline]
    pub(crate) fn send_on_medium(&mut self, medium: u16, way: Way, station: u32, handle: Handle) {
        if self.arena.get(handle).ip_bytes > self.media[usize::from(medium)].mtu_bytes {
            return self.send_pieces_on_medium(medium, way, station, handle);
        }
        self.offer_to_medium(medium, way, station, handle);
    }

    #[cold]
    #[inline(never)]
    fn send_pieces_on_medium(&mut self, medium: u16, way: Way, station: u32, handle: Handle) {
        let star = &self.media[usize::from(medium)];
        let (node, mtu_bytes, link) = (star.begin(way, station), star.mtu_bytes, self.medium_link(medium, way));
        self.fragment(self.now, handle, node, mtu_bytes, link, |network, piece| {
            network.offer_to_medium(medium, way, station, piece);
        });
    }

    #[inline(never)]
    fn offer_to_medium(&mut self, medium: u16, way: Way, station: u32, handle: Handle) {
        let now = self.now;
        let link = self.medium_link(medium, way);
        self.offer_coming(medium);
        if self.drops_silently(link, handle) {
            return;
        }
        let packet = self.arena.get(handle);
        let (flow, ip_bytes) = (packet.flow, packet.ip_bytes);
        let star = &self.media[usize::from(medium)];
        let envelope = match star.machine.reads_headers() {
            true => self.captured(star.stations[station as usize], handle).map(|captured| captured.envelope),
            false => None,
        };
        self.observer.offered(now, link, ip_bytes);
        let star = &mut self.media[usize::from(medium)];
        star.wake(now);
        star.put(handle, Inside { offered: now, way, station, ip_bytes });
        let token = u64::from(handle.0);
        if star.exceeds(way) {
            star.fates.push_back(Fated { token, at: now, fate: Fate::Delivered });
            star.put_in_order(star.fates.len() - 1, now);
        } else {
            star.machine.offer(now, Frame { token, way, station, flow, ip_bytes, envelope });
            star.listen(now);
        }
        self.arm_medium(medium);
    }

    /// The first packet in the lane of a link that feeds a hub waits to be offered. (An event for each packet took 200
    /// instructions.)
    #[inline(never)]
    pub(crate) fn await_offer(&mut self, link: LinkId) {
        let first = self.links[link.index()].flight.next();
        for medium in 0..self.media.len() as u16 {
            let star = &mut self.media[usize::from(medium)];
            if star.feeder == link {
                star.expect(first);
                self.arm_medium(medium);
            }
        }
    }

    /// Offers what has come by now. What comes just when the machine is woken is offered after that.
    #[inline(always)]
    fn offer_coming(&mut self, medium: u16) {
        let feeder = self.media[usize::from(medium)].feeder;
        if let Some(link) = self.links.get(feeder.index())
            && link.flight.next().is_some_and(|at| at <= self.now)
        {
            self.offer_all_coming(medium);
        }
    }

    #[inline(never)]
    fn offer_all_coming(&mut self, medium: u16) {
        let (now, down) = (self.now, self.medium_link(medium, Way::Down));
        let star = &mut self.media[usize::from(medium)];
        let lane = &mut self.links[star.feeder.index()].flight;
        while let Some(at) = lane.next().filter(|at| *at <= now)
            && let Some((InFlight { handle, destination, flow, ip_bytes }, _)) = lane.pop()
        {
            let Attachment::Medium { station, .. } = self.nodes[star.hub.index()].routes.toward(destination) else {
                unreachable!("what comes by this link goes down the medium");
            };
            star.wake(at);
            self.observer.offered(at, down, ip_bytes);
            star.put(handle, Inside { offered: at, way: Way::Down, station, ip_bytes });
            let token = u64::from(handle.0);
            star.machine.offer(at, Frame { token, way: Way::Down, station, flow, ip_bytes, envelope: None });
        }
        star.expect(lane.next());
        star.listen(now);
    }

    /// Offers what has come to media when the clock stops.
    pub(crate) fn offer_all_that_came(&mut self) {
        for medium in 0..self.media.len() as u16 {
            self.offer_coming(medium);
            self.arm_medium(medium);
        }
    }

    pub(crate) fn arm_medium(&mut self, medium: u16) {
        let star = &mut self.media[usize::from(medium)];
        let next = star.next();
        if !next.is_never() {
            star.slot.arm(&mut self.calendar, EventId::new(EventClass::Medium, FIRST_EVENT + u32::from(medium)), next);
        }
    }

    /// A machine wants to be woken, or a fate is met.
    #[cold]
    #[inline(never)]
    pub(crate) fn medium_due(&mut self, hosts: &mut impl Hosts<O>, medium: u16) {
        let now = self.now;
        let star = &mut self.media[usize::from(medium)];
        if !star.slot.fired(now) {
            return;
        }
        self.offer_coming(medium);
        self.media[usize::from(medium)].wake(now);
        // Whoever receives may send at once, and what is sent may be refused at once.
        loop {
            let star = &mut self.media[usize::from(medium)];
            let Some(&Fated { token, fate, .. }) = star.fates.front().filter(|fated| fated.at <= now) else { break };
            star.fates.pop_front();
            self.meet(hosts, medium, Handle(token as u32), fate);
        }
        self.arm_medium(medium);
    }

    #[inline(always)]
    fn meet(&mut self, hosts: &mut impl Hosts<O>, medium: u16, handle: Handle, fate: Fate) {
        let now = self.now;
        let first = self.medium_link(medium, Way::Down);
        let star = &mut self.media[usize::from(medium)];
        let Inside { offered, way, station, ip_bytes } = star.take(handle);
        let link = LinkId(first.0 + way as u32);
        let counters = &mut star.counters[way as usize];
        let reason = match fate {
            Fate::Delivered => {
                counters.frames += 1;
                counters.bytes += u64::from(ip_bytes);
                counters.queue_delay_sum += now - offered;
                let node = star.end(way, station);
                let flow = self.arena.get(handle).flow;
                self.observer.transmitted(&Transmission {
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
            Fate::BufferFull => {
                counters.queue_drops += 1;
                DropReason::QueueFull
            }
            Fate::Lost => {
                counters.losses += 1;
                DropReason::Radio
            }
        };
        self.observer.link_dropped(now, link, ip_bytes, reason);
        self.drop_packet(now, handle, Some(link), reason);
    }
}
