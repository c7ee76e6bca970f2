//! What a link does that few links do: rate and delay over time, delivery opportunities, impairments.
//!
//! All of it keeps the two forms of a link (see [`crate::link`]): the future of rate and delay is known, so without a
//! discipline a frame's departure is known when it comes. Where frames can overtake each other or come twice, the next
//! link cannot be booked ahead; such a link may still be booked ahead itself (one with a trace may not, see
//! `Link::may_take_no_time`).

use crate::impairment::FrameModels;
use crate::impairment::settings::{Detection, Frame, FrameOutcome};
use crate::link::Link;
use crate::mahimahi::{Opportunities, Trace};
use crate::network::Network;
use crate::packet::{Content, Handle, InFlight};
use crate::queue::Queued;
use crate::rebinding::Rebinding;
use crate::schedule::{Schedule, Timetable};
use bytes::Bytes;
use fullpipe_engine::{EventClass, EventId};
use fullpipe_record::{DropReason, Observer, Transmission};
use fullpipe_schema::metric::Times;
use fullpipe_units::{Duration, Instant, LinkId, Rate};
use fullpipe_wire::rewrite;
use std::collections::{BTreeMap, VecDeque};

/// Rate and delay of a link over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Course {
    /// Rate and delay are constant.
    #[default]
    Constant,
    /// They change at steps.
    Steps(Schedule),
    /// Frames leave at a trace's opportunities; the delay is constant, the link's rate is used for nothing but limits of
    /// queues in time.
    Trace(Trace),
}

impl Course {
    /// Whether the rate is not the same at all times.
    pub fn rate_varies(&self) -> bool {
        match self {
            Course::Constant => false,
            Course::Steps(schedule) => schedule.steps().iter().any(|step| step.rate.is_some()),
            Course::Trace(_) => true,
        }
    }

    /// The rate at an instant of a link that has `rate` without it; a trace has its mean rate at all times. `None` during
    /// an outage.
    pub fn rate_at(&self, at: Instant, rate: Rate) -> Option<Rate> {
        let now = match self {
            Course::Constant => rate,
            Course::Steps(schedule) => schedule.rate_at(at).unwrap_or(rate),
            Course::Trace(trace) => trace.mean_rate(),
        };
        (now.bits_per_second() > 0).then_some(now)
    }

    /// The mean rate of a link that has `rate` without it, outages included: over one repetition of what repeats, else over
    /// a run of length `run`.
    pub fn mean_rate(&self, rate: Rate, run: Duration) -> Rate {
        match self {
            Course::Constant => rate,
            Course::Steps(schedule) => schedule.mean_rate(rate, run),
            Course::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// How fast frames leave.
#[derive(Debug)]
enum Pace {
    Constant,
    Steps(Timetable),
    Trace(Opportunities),
}

/// How long frames wait for the start of their transmission.
#[derive(Debug, Default)]
struct Waits {
    /// Of those whose transmission has begun.
    over: Times,
    /// Start and wait of those that are still to begin.
    to_come: VecDeque<(Instant, Duration)>,
}

impl Waits {
    /// Counts the frames whose transmission has begun by `at`.
    fn settle(&mut self, at: Instant) {
        while let Some((_, wait)) = self.to_come.front().filter(|(start, _)| *start <= at) {
            self.over.add(*wait);
            self.to_come.pop_front();
        }
    }

    fn push(&mut self, offered: Instant, start: Instant) {
        // A queue discipline gives a frame when it begins, long after it was offered.
        self.settle(offered);
        self.to_come.push_back((start, start - offered));
    }
}

/// State of such a link.
#[derive(Debug)]
pub(crate) struct Special {
    pace: Pace,
    impairments: Option<Box<FrameModels>>,
    /// How long frames wait; only where the rate varies.
    waits: Option<Waits>,
    /// Latest arrival of frames that keep order.
    last_arrival: Instant,
    /// Frames on their way over a link on which they may overtake: by arrival, then in the order of transmission.
    disordered: BTreeMap<(Instant, u64), InFlight>,
    transmitted: u64,
    /// Frames and bytes that will never be transmitted, because an outage does not end.
    pub(crate) stuck: (u64, u64),
    pub(crate) corrupted: u64,
    pub(crate) duplicates: u64,
}

impl Special {
    /// Nothing if the link has nothing special.
    pub(crate) fn new(
        course: Course,
        impairments: Option<Box<FrameModels>>,
        rate: Rate,
        delay: Duration,
    ) -> Option<Box<Self>> {
        let waits = course.rate_varies().then(Waits::default);
        let pace = match course {
            Course::Constant => Pace::Constant,
            Course::Steps(schedule) => Pace::Steps(Timetable::new(schedule, rate, delay)),
            Course::Trace(trace) => Pace::Trace(Opportunities::new(trace)),
        };
        if matches!(pace, Pace::Constant) && impairments.is_none() {
            return None;
        }
        Some(Box::new(Special {
            pace,
            impairments,
            waits,
            last_arrival: Instant::ZERO,
            disordered: BTreeMap::new(),
            transmitted: 0,
            stuck: (0, 0),
            corrupted: 0,
            duplicates: 0,
        }))
    }

    /// Whether the next link may be booked when this one is.
    pub(crate) fn keeps_order_and_number(&self) -> bool {
        self.impairments.as_ref().is_none_or(|models| models.keeps_order_and_number())
    }

    /// How long the frames have waited whose transmission has begun by `at`; `None` if the rate is constant.
    pub(crate) fn waits(&mut self, at: Instant) -> Option<Times> {
        let waits = self.waits.as_mut()?;
        waits.settle(at);
        Some(waits.over)
    }

    /// Whether frames leave at a trace's opportunities.
    pub(crate) fn has_trace(&self) -> bool {
        matches!(self.pace, Pace::Trace(_))
    }

    /// Exceeds what was promised by one per cent; false if this is no matter of the pace.
    pub(crate) fn exceed(&mut self) -> bool {
        match &mut self.pace {
            Pace::Constant => return false,
            Pace::Steps(table) => table.exceed(),
            Pace::Trace(opportunities) => opportunities.exceed(),
        }
        true
    }

    /// Least delay, and least nanoseconds per byte, of a link of this rate and delay.
    pub(crate) fn minimum(&self, rate: Rate, delay: Duration) -> (Duration, f64) {
        let per_byte = |rate: Rate| 8e9 / rate.bits_per_second() as f64;
        match &self.pace {
            Pace::Constant => (delay, per_byte(rate)),
            Pace::Steps(table) => {
                let steps = || table.schedule().steps().iter();
                let rate = steps().filter_map(|step| step.rate).fold(rate, Rate::max);
                (steps().filter_map(|step| step.delay).fold(delay, Duration::min), per_byte(rate))
            }
            Pace::Trace(_) => (delay, 0.0),
        }
    }
}

/// The passage of a frame: when its last bit leaves, and when it would arrive.
type Passage = (Instant, Instant);

impl Link {
    pub(crate) fn special_mut(&mut self) -> Option<&mut Special> {
        self.extras.as_mut()?.special.as_deref_mut()
    }

    /// The rebinding translator at its end, if there is one.
    fn rebinding(&self) -> Option<Rebinding> {
        let (rebinding, _) = self.extras.as_ref()?.special.as_ref()?.impairments.as_ref()?.rebinding.as_ref()?;
        Some(*rebinding)
    }

    /// Exceeds what was promised by one per cent; false if its rate is constant.
    pub(crate) fn exceed(&mut self) -> bool {
        self.special_mut().is_some_and(Special::exceed)
    }

    /// The first instant, `at` or later, at which the link can begin with a frame while none is in transmission.
    pub(crate) fn first_chance(&mut self, at: Instant) -> Instant {
        match self.special_mut() {
            Some(Special { pace: Pace::Trace(opportunities), .. }) => opportunities.seek(at),
            _ => at,
        }
    }

    /// Transmits a frame from `start` on; `None` if that never ends.
    fn pass(&mut self, start: Instant, wire_bytes: u32, idle: bool) -> Option<Passage> {
        let delay = self.delay;
        let constant = match self.special_mut() {
            Some(Special { pace: Pace::Steps(table), .. }) => {
                let (finish, delay) = table.transmit(start, wire_bytes, idle)?;
                return Some((finish, finish.saturating_add(delay)));
            }
            Some(Special { pace: Pace::Trace(opportunities), .. }) => {
                let finish = opportunities.deliver(wire_bytes);
                return (!finish.is_never()).then(|| (finish, finish.saturating_add(delay)));
            }
            _ => self.transmitter.transmit(wire_bytes, idle),
        };
        let finish = start + constant;
        Some((finish, finish + delay))
    }

    /// What becomes of a frame after its transmission. Call once per frame, in order.
    fn outcome(&mut self, (finish, arrival): Passage, frame: &Frame) -> FrameOutcome {
        let mut outcome = FrameOutcome::new(finish, arrival);
        let Some(extras) = &mut self.extras else { return outcome };
        outcome.lost = extras.loss.as_mut().is_some_and(|loss| loss.loses(frame.has_payload));
        let Some(Special { impairments, last_arrival, .. }) = extras.special.as_deref_mut() else { return outcome };
        match impairments {
            Some(models) => models.process(frame, last_arrival, &mut outcome),
            None => outcome.keep_order(last_arrival),
        }
        outcome
    }
}

impl<O: Observer> Network<O> {
    /// A frame comes to a special link without a discipline. Gives the next link, and when the frame comes there, if
    /// that is to be booked at once.
    pub(crate) fn book(&mut self, link: LinkId, at: Instant, handle: Handle) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        let wire_bytes = self.arena.get(handle).ip_bytes + u32::from(l.framing_bytes);
        self.observer.offered(at, link, wire_bytes);
        let idle = l.busy_until < at;
        let free = l.busy_until.max(at);
        let start = l.first_chance(free);
        if start > at && !l.backlog.admit(at, start, wire_bytes, l.limit) {
            l.counted().queue_drops += 1;
            self.observer.link_dropped(at, link, wire_bytes, DropReason::QueueFull);
            self.drop_packet(at, handle, Some(link), DropReason::QueueFull);
            return None;
        }
        self.pass_frame(link, handle, wire_bytes, at, start, idle)
    }

    /// The next frame of a special link with a discipline begins, now.
    pub(crate) fn pass_queued(&mut self, link: LinkId, frame: &Queued) {
        let now = self.now;
        let idle = self.links[link.index()].busy_until < now;
        // Its transmission is told by events: nothing beyond it is booked.
        self.pass_frame(link, frame.handle, frame.wire_bytes, frame.since, now, idle);
        let free = self.links[link.index()].busy_until;
        if !free.is_never() {
            self.calendar.schedule(free, EventId::new(EventClass::Departure, link.0));
        }
    }

    fn pass_frame(
        &mut self,
        link: LinkId,
        handle: Handle,
        wire_bytes: u32,
        offered: Instant,
        start: Instant,
        idle: bool,
    ) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        let passage = if start.is_never() { None } else { l.pass(start, wire_bytes, idle) };
        let Some((finish, arrival)) = passage else {
            l.busy_until = Instant::NEVER;
            if let Some(special) = l.special_mut() {
                special.stuck.0 += 1;
                special.stuck.1 += u64::from(wire_bytes);
            }
            return None;
        };
        l.busy_until = finish;
        l.frames += 1;
        l.bytes += u64::from(wire_bytes);
        l.queue_delay_sum += start - offered;
        if let Some(waits) = l.special_mut().and_then(|special| special.waits.as_mut()) {
            waits.push(offered, start);
        }
        let frame = self.arena.frame(handle, wire_bytes);
        let packet = self.arena.get(handle);
        let outcome = l.outcome((finish, arrival), &frame);
        let arrival = outcome.arrival;
        self.observer.transmitted(&Transmission {
            link,
            flow: packet.flow,
            wire_bytes,
            offered,
            start,
            finish,
            arrival,
        });
        if outcome.lost {
            l.counted().losses += 1;
            self.drop_packet(arrival, handle, Some(link), DropReason::Loss);
            return None;
        }
        if let Some(detection) = outcome.corrupted
            && self.corrupt(link, handle, arrival, detection)
        {
            return None;
        }
        if let Some(detection) = outcome.damaged
            && self.damage(link, handle, arrival, detection)
        {
            return None;
        }
        if let Some(rebinding) = self.links[link.index()].rebinding()
            && !self.rebind(rebinding, handle, arrival)
        {
            self.drop_packet(arrival, handle, Some(link), DropReason::Nat);
            return None;
        }
        let copy = if outcome.copied { self.copy(link, handle, arrival) } else { None };
        let next = self.travel(link, handle, arrival);
        if let Some(copy) = copy {
            // A link that makes copies leads to none that is booked ahead.
            self.travel(link, copy, arrival);
        }
        next
    }

    /// Flips bits; true if that ends the frame here.
    fn corrupt(&mut self, link: LinkId, handle: Handle, arrival: Instant, detection: Detection) -> bool {
        if let Some(special) = self.links[link.index()].special_mut() {
            special.corrupted += 1;
        }
        match detection {
            Detection::Destination => self.arena.get_mut(handle).corrupted = true,
            Detection::Link => self.drop_packet(arrival, handle, Some(link), DropReason::Corrupted),
        }
        detection == Detection::Link
    }

    /// Changes a byte of a datagram's payload; true if that ends the frame here.
    #[cold]
    fn damage(&mut self, link: LinkId, handle: Handle, arrival: Instant, detection: Detection) -> bool {
        let Some(special) = self.links[link.index()].special_mut() else { return false };
        special.corrupted += 1;
        let Some(models) = &mut special.impairments else { return false };
        if detection == Detection::Link {
            self.drop_packet(arrival, handle, Some(link), DropReason::Corrupted);
            return true;
        }
        let packet = self.arena.get(handle);
        let bytes = match packet.content {
            Content::Wire { .. } => self.arena.payload(packet.payload),
            _ => None,
        };
        let payload = bytes.and_then(|bytes| rewrite::udp_payload(bytes));
        match (bytes, payload.and_then(|payload| models.damage(payload.len()))) {
            (Some(bytes), Some((place, addend))) => {
                let mut changed = bytes.to_vec();
                rewrite::add_to_udp_payload(&mut changed, place, addend);
                self.arena.replace_payload(handle, Bytes::from(changed));
            }
            _ => self.arena.get_mut(handle).corrupted = true,
        }
        false
    }

    fn copy(&mut self, link: LinkId, handle: Handle, arrival: Instant) -> Option<Handle> {
        if let Content::Fragment { .. } = self.arena.get(handle).content {
            return None;
        }
        if let Some(special) = self.links[link.index()].special_mut() {
            special.duplicates += 1;
        }
        let copy = self.arena.duplicate(handle);
        self.observer.duplicated(arrival, &self.arena.get(copy).view(), link);
        Some(copy)
    }

    /// Sends a frame on its way over a link, or says which link it comes to next if that is to be booked at once.
    fn travel(&mut self, link: LinkId, handle: Handle, arrival: Instant) -> Option<(LinkId, Instant)> {
        let packet = self.arena.in_flight(handle);
        let event = EventId::new(EventClass::Arrival, link.0);
        if let Some(next) = self.chained(link, packet.destination, arrival) {
            return Some((next, arrival));
        }
        let l = &mut self.links[link.index()];
        if let Some(special) = l.special_mut()
            && special.impairments.as_ref().is_some_and(|models| models.reorders())
        {
            // Each has an event of its own.
            special.disordered.insert((arrival, special.transmitted), packet);
            special.transmitted += 1;
            self.calendar.schedule(arrival, event);
        } else if l.flight.push(arrival, packet) {
            self.calendar.schedule(arrival, event);
        }
        None
    }

    /// A frame arrives over a link on which frames may overtake.
    #[cold]
    pub(crate) fn overtaken(&mut self, link: LinkId) -> Option<InFlight> {
        let (_, packet) = self.links[link.index()].special_mut()?.disordered.pop_first()?;
        Some(packet)
    }

    /// A host's checksum tells that a packet's bits were flipped.
    #[cold]
    pub(crate) fn refuse_corrupted(&mut self, handle: Handle) {
        self.drop_packet(self.now, handle, None, DropReason::Corrupted);
    }
}
