//! Special links, whose rate and delay change over time, or which have delivery opportunities or impairments.
//!
//! They have the same two forms as other links (see [`crate::link`]). Future rates and delays are known, so without a
//! discipline a frame's departure is known when the frame arrives. If frames can overtake each other or arrive twice,
//! the next link cannot be computed ahead. The special link itself can be computed ahead (except a link with a trace,
//! see `Link::may_take_no_time`).

use crate::adjustable::AdjustableState;
use crate::impairment::FrameModels;
use crate::impairment::held::HoldOutcome;
use crate::impairment::settings::{ErrorDetection, FrameInfo, FrameOutcome};
use crate::link::Link;
use crate::mahimahi::{DeliveryTrace, TraceCursor};
use crate::network::Network;
use crate::packet::{InFlightPacket, PacketContent, PacketHandle};
use crate::queue::QueuedPacket;
use crate::rebinding::Rebinding;
use crate::schedule::{LinkSchedule, ScheduleCursor};
use bytes::Bytes;
use fullpipe_engine::{EventClass, EventId};
use fullpipe_record::{DropReason, Observer, Transmission};
use fullpipe_schema::metric::TimeSum;
use fullpipe_units::{Duration, Instant, LinkId, Rate};
use fullpipe_wire::rewrite;
use std::collections::{BTreeMap, VecDeque};

/// Rate and delay of a link over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkProfile {
    /// Rate and delay are constant.
    #[default]
    Constant,
    /// Rate and delay change in steps.
    Steps(LinkSchedule),
    /// Frames depart at the opportunities of a trace. The delay is constant. The link's rate is used only to convert a
    /// queue limit from a time to bytes.
    Trace(DeliveryTrace),
}

impl LinkProfile {
    /// Returns whether the rate is not constant.
    pub fn rate_varies(&self) -> bool {
        match self {
            LinkProfile::Constant => false,
            LinkProfile::Steps(schedule) => schedule.steps().iter().any(|step| step.rate.is_some()),
            LinkProfile::Trace(_) => true,
        }
    }

    /// Returns the time after which the profile repeats; `None` if it does not repeat.
    pub fn period(&self) -> Option<Duration> {
        match self {
            LinkProfile::Constant => None,
            LinkProfile::Steps(schedule) => schedule.period(),
            LinkProfile::Trace(trace) => Some(trace.period()),
        }
    }

    /// Returns the profile of a run that starts at `offset` within this profile. A profile that does not repeat is
    /// returned unchanged.
    #[must_use]
    pub fn starting_at(&self, offset: Duration) -> LinkProfile {
        match self {
            LinkProfile::Constant => LinkProfile::Constant,
            LinkProfile::Steps(schedule) => LinkProfile::Steps(schedule.starting_at(offset)),
            LinkProfile::Trace(trace) => LinkProfile::Trace(trace.starting_at(offset)),
        }
    }

    /// Returns the rate at `at` of a link whose own rate is `rate`; `None` during an outage. For a trace, this is the
    /// mean rate at all times.
    pub fn rate_at(&self, at: Instant, rate: Rate) -> Option<Rate> {
        let now = match self {
            LinkProfile::Constant => rate,
            LinkProfile::Steps(schedule) => schedule.rate_at(at).unwrap_or(rate),
            LinkProfile::Trace(trace) => trace.mean_rate(),
        };
        (now.bits_per_second() > 0).then_some(now)
    }

    /// Returns the mean rate, including outages, of a link whose own rate is `rate`. The mean is over one period if the
    /// profile repeats, otherwise over a run of length `run`.
    pub fn mean_rate(&self, rate: Rate, run: Duration) -> Rate {
        match self {
            LinkProfile::Constant => rate,
            LinkProfile::Steps(schedule) => schedule.mean_rate(rate, run),
            LinkProfile::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// How frames are transmitted.
#[derive(Debug)]
enum Pace {
    Constant,
    Steps(ScheduleCursor),
    Trace(TraceCursor),
    /// The program sets the rate.
    Adjustable(Box<AdjustableState>),
}

/// The waiting times of frames before the start of their transmission.
#[derive(Debug, Default)]
struct Waits {
    /// Waiting times of frames whose transmission has started.
    over: TimeSum,
    /// Start and waiting time of frames whose transmission has not started.
    to_come: VecDeque<(Instant, Duration)>,
}

impl Waits {
    /// Counts the frames whose transmission has started by `at`.
    fn settle(&mut self, at: Instant) {
        while let Some((_, wait)) = self.to_come.front().filter(|(start, _)| *start <= at) {
            self.over.add(*wait);
            self.to_come.pop_front();
        }
    }

    fn push(&mut self, offered: Instant, start: Instant) {
        // With a discipline, this is called when transmission starts, long after the frame was offered.
        self.settle(offered);
        self.to_come.push_back((start, start - offered));
    }
}

/// The state of a special link.
#[derive(Debug)]
pub(crate) struct VariableLinkState {
    pace: Pace,
    impairments: Option<Box<FrameModels>>,
    /// The waiting times of frames; `None` if the rate is constant.
    waits: Option<Waits>,
    /// Latest arrival of frames that keep their order.
    last_arrival: Instant,
    /// Frames in flight on a link on which frames can overtake or are held, by arrival time, then in order of
    /// transmission.
    disordered: BTreeMap<(Instant, u64), InFlightPacket>,
    transmitted: u64,
    /// Frames and bytes that are never transmitted, because an outage does not end.
    pub(crate) stuck: (u64, u64),
    pub(crate) corrupted: u64,
    pub(crate) duplicates: u64,
}

impl VariableLinkState {
    /// Returns the state; `None` if the link has no special properties.
    pub(crate) fn new(
        course: LinkProfile,
        impairments: Option<Box<FrameModels>>,
        rate: Rate,
        delay: Duration,
    ) -> Option<Box<Self>> {
        let waits = course.rate_varies().then(Waits::default);
        let pace = match course {
            LinkProfile::Constant => Pace::Constant,
            LinkProfile::Steps(schedule) => Pace::Steps(ScheduleCursor::new(schedule, rate, delay)),
            LinkProfile::Trace(trace) => Pace::Trace(TraceCursor::new(trace)),
        };
        if matches!(pace, Pace::Constant) && impairments.is_none() {
            return None;
        }
        Some(Box::new(VariableLinkState { pace, impairments, waits, ..VariableLinkState::constant() }))
    }

    /// Returns the state of a link with a constant rate and delay, and without impairments.
    pub(crate) fn constant() -> Self {
        VariableLinkState {
            pace: Pace::Constant,
            impairments: None,
            waits: None,
            last_arrival: Instant::ZERO,
            disordered: BTreeMap::new(),
            transmitted: 0,
            stuck: (0, 0),
            corrupted: 0,
            duplicates: 0,
        }
    }

    /// Returns whether rate and delay are constant.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.pace, Pace::Constant)
    }

    /// Lets the program set rate and delay.
    pub(crate) fn adjust(&mut self, state: AdjustableState) {
        self.pace = Pace::Adjustable(Box::new(state));
        self.waits = Some(Waits::default());
    }

    /// Returns the state of an adjustable link.
    pub(crate) fn adjustable(&self) -> Option<&AdjustableState> {
        match &self.pace {
            Pace::Adjustable(state) => Some(state),
            _ => None,
        }
    }

    /// Returns the state of an adjustable link.
    pub(crate) fn adjustable_mut(&mut self) -> Option<&mut AdjustableState> {
        match &mut self.pace {
            Pace::Adjustable(state) => Some(state),
            _ => None,
        }
    }

    /// Returns whether the next link may be computed together with this one.
    pub(crate) fn permits_chains(&self) -> bool {
        self.impairments.as_ref().is_none_or(|models| models.effects().permit_chains())
    }

    /// Returns the waiting times of frames whose transmission has started by `at`; `None` if the rate is constant.
    pub(crate) fn waits(&mut self, at: Instant) -> Option<TimeSum> {
        let waits = self.waits.as_mut()?;
        waits.settle(at);
        Some(waits.over)
    }

    /// Returns whether frames depart at the opportunities of a trace.
    pub(crate) fn has_trace(&self) -> bool {
        matches!(self.pace, Pace::Trace(_))
    }

    /// Exceeds the declared rate by one percent from now on. Returns false if the rate is constant.
    pub(crate) fn exceed(&mut self) -> bool {
        match &mut self.pace {
            Pace::Constant | Pace::Adjustable(_) => return false,
            Pace::Steps(table) => table.exceed(),
            Pace::Trace(opportunities) => opportunities.exceed(),
        }
        true
    }

    /// Returns the minimum propagation delay, and the minimum transmission time in nanoseconds per byte, of a link with
    /// this rate and delay.
    pub(crate) fn minimum(&self, rate: Rate, delay: Duration) -> (Duration, f64) {
        let per_byte = |rate: Rate| 8e9 / rate.bits_per_second() as f64;
        match &self.pace {
            Pace::Constant | Pace::Adjustable(_) => (delay, per_byte(rate)),
            Pace::Steps(table) => {
                let steps = || table.schedule().steps().iter();
                let rate = steps().filter_map(|step| step.rate).fold(rate, Rate::max);
                (steps().filter_map(|step| step.delay).fold(delay, Duration::min), per_byte(rate))
            }
            Pace::Trace(_) => (delay, 0.0),
        }
    }
}

/// The times of a frame: when its last bit departs, and when it would arrive.
type Passage = (Instant, Instant);

impl Link {
    pub(crate) fn special_mut(&mut self) -> Option<&mut VariableLinkState> {
        self.extras.as_mut()?.special.as_deref_mut()
    }

    /// Returns the rebinding NAT at the end of the link, if there is one.
    fn rebinding(&self) -> Option<Rebinding> {
        let (rebinding, _) = self.extras.as_ref()?.special.as_ref()?.impairments.as_ref()?.rebinding.as_ref()?;
        Some(*rebinding)
    }

    /// Exceeds the declared rate by one percent from now on; returns false if the rate is constant.
    pub(crate) fn exceed(&mut self) -> bool {
        self.special_mut().is_some_and(VariableLinkState::exceed)
    }

    /// Returns the first instant, `at` or later, at which the link can start a transmission if none is in progress.
    pub(crate) fn first_chance(&mut self, at: Instant) -> Instant {
        match self.special_mut() {
            Some(VariableLinkState { pace: Pace::Trace(opportunities), .. }) => opportunities.seek(at),
            _ => at,
        }
    }

    /// Transmits a frame from `start` on; returns `None` if the transmission never ends.
    fn pass(&mut self, start: Instant, wire_bytes: u32, idle: bool) -> Option<Passage> {
        let delay = self.delay;
        let constant = match self.special_mut() {
            Some(VariableLinkState { pace: Pace::Steps(table), .. }) => {
                let (finish, delay) = table.transmit(start, wire_bytes, idle)?;
                return Some((finish, finish.saturating_add(delay)));
            }
            Some(VariableLinkState { pace: Pace::Trace(opportunities), .. }) => {
                let finish = opportunities.deliver(wire_bytes);
                return (!finish.is_never()).then(|| (finish, finish.saturating_add(delay)));
            }
            _ => self.transmitter.transmit(wire_bytes, idle),
        };
        let finish = start + constant;
        Some((finish, finish + delay))
    }

    /// Returns the outcome of a frame after its transmission. Must be called once per frame, in order.
    fn outcome(&mut self, (finish, arrival): Passage, frame: &FrameInfo) -> FrameOutcome {
        let mut outcome = FrameOutcome::new(finish, arrival);
        let Some(extras) = &mut self.extras else { return outcome };
        outcome.lost = extras.loss.as_mut().is_some_and(|loss| loss.loses(frame.has_payload));
        let Some(VariableLinkState { impairments, last_arrival, .. }) = extras.special.as_deref_mut() else {
            return outcome;
        };
        match impairments {
            Some(models) => models.process(frame, last_arrival, &mut outcome),
            None => outcome.keep_order(last_arrival),
        }
        outcome
    }
}

impl<O: Observer> Network<O> {
    /// Processes the arrival of a frame at a special link without a discipline. Returns the next link and the arrival
    /// time there, if that link is computed together with this one.
    pub(crate) fn book(&mut self, link: LinkId, at: Instant, handle: PacketHandle) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        if l.adjustable().is_some() {
            self.offer_adjustable(link, handle);
            return None;
        }
        let wire_bytes = self.arena.get(handle).ip_bytes + u32::from(l.framing_bytes);
        self.observer.on_offered(at, link, wire_bytes);
        let idle = l.busy_until < at;
        let free = l.busy_until.max(at);
        let start = l.first_chance(free);
        if start > at && !l.backlog.admit(at, start, wire_bytes, l.limit) {
            l.counted().queue_drops += 1;
            self.observer.on_link_dropped(at, link, wire_bytes, DropReason::QueueFull);
            self.drop_packet(at, handle, Some(link), DropReason::QueueFull);
            return None;
        }
        self.pass_frame(link, handle, wire_bytes, at, start, idle)
    }

    /// Starts the transmission of the next frame of a special link with a discipline now.
    pub(crate) fn pass_queued(&mut self, link: LinkId, frame: &QueuedPacket) {
        let now = self.now;
        let idle = self.links[link.index()].busy_until < now;
        // The departures of a link with a discipline are events, so the next link is not computed here.
        self.pass_frame(link, frame.handle, frame.wire_bytes, frame.since, now, idle);
        let free = self.links[link.index()].busy_until;
        if !free.is_never() {
            self.calendar.schedule(free, EventId::new(EventClass::Departure, link.0));
        }
    }

    fn pass_frame(
        &mut self,
        link: LinkId,
        handle: PacketHandle,
        wire_bytes: u32,
        offered: Instant,
        start: Instant,
        idle: bool,
    ) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
        let passage = if start.is_never() { None } else { l.pass(start, wire_bytes, idle) };
        let Some(passage) = passage else {
            l.busy_until = Instant::NEVER;
            if let Some(special) = l.special_mut() {
                special.stuck.0 += 1;
                special.stuck.1 += u64::from(wire_bytes);
            }
            return None;
        };
        self.end_frame(link, handle, wire_bytes, offered, start, passage)
    }

    /// Ends the transmission of a frame on an adjustable link now, at `finish`.
    pub(crate) fn complete_frame(
        &mut self,
        link: LinkId,
        handle: PacketHandle,
        wire_bytes: u32,
        offered: Instant,
        start: Instant,
        finish: Instant,
    ) {
        let arrival = finish.saturating_add(self.links[link.index()].delay);
        // An adjustable link is never computed together with the next one.
        self.end_frame(link, handle, wire_bytes, offered, start, (finish, arrival));
    }

    #[inline(always)]
    fn end_frame(
        &mut self,
        link: LinkId,
        handle: PacketHandle,
        wire_bytes: u32,
        offered: Instant,
        start: Instant,
        (finish, arrival): Passage,
    ) -> Option<(LinkId, Instant)> {
        let l = &mut self.links[link.index()];
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
        self.observer.on_transmitted(&Transmission {
            link,
            flow: packet.flow,
            wire_bytes,
            offered,
            start,
            finish,
            arrival,
        });
        if outcome.lost || outcome.policed {
            l.counted().losses += 1;
            let reason = if outcome.lost { DropReason::Loss } else { DropReason::Policer };
            self.drop_packet(arrival, handle, Some(link), reason);
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
            // A link after one that makes copies is never computed ahead.
            self.travel(link, copy, arrival);
        }
        next
    }

    /// Marks a packet as corrupted by bit errors, or drops it; returns true if the link drops the frame.
    fn corrupt(&mut self, link: LinkId, handle: PacketHandle, arrival: Instant, detection: ErrorDetection) -> bool {
        if let Some(special) = self.links[link.index()].special_mut() {
            special.corrupted += 1;
        }
        match detection {
            ErrorDetection::Destination => self.arena.get_mut(handle).corrupted = true,
            ErrorDetection::Link => self.drop_packet(arrival, handle, Some(link), DropReason::Corruption),
        }
        detection == ErrorDetection::Link
    }

    /// Changes a byte of a datagram's payload; returns true if the link drops the frame.
    #[cold]
    fn damage(&mut self, link: LinkId, handle: PacketHandle, arrival: Instant, detection: ErrorDetection) -> bool {
        let Some(special) = self.links[link.index()].special_mut() else { return false };
        special.corrupted += 1;
        let Some(models) = &mut special.impairments else { return false };
        if detection == ErrorDetection::Link {
            self.drop_packet(arrival, handle, Some(link), DropReason::Corruption);
            return true;
        }
        let packet = self.arena.get(handle);
        let bytes = match packet.content {
            PacketContent::RawIp { .. } => self.arena.payload(packet.payload),
            _ => None,
        };
        let payload = bytes.and_then(|bytes| rewrite::udp_payload_range(bytes));
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

    fn copy(&mut self, link: LinkId, handle: PacketHandle, arrival: Instant) -> Option<PacketHandle> {
        if let PacketContent::Fragment { .. } = self.arena.get(handle).content {
            return None;
        }
        if let Some(special) = self.links[link.index()].special_mut() {
            special.duplicates += 1;
        }
        let copy = self.arena.duplicate(handle);
        self.observer.on_duplicated(arrival, &self.arena.get(copy).view(), link);
        Some(copy)
    }

    /// Puts a frame in flight on a link. If the next link is computed together with this one, returns that link and the
    /// arrival time there instead.
    fn travel(&mut self, link: LinkId, handle: PacketHandle, arrival: Instant) -> Option<(LinkId, Instant)> {
        let packet = self.arena.in_flight(handle);
        let event = EventId::new(EventClass::Arrival, link.0);
        if let Some(next) = self.chained(link, packet.destination, arrival) {
            return Some((next, arrival));
        }
        let l = &mut self.links[link.index()];
        if let Some(special) = l.special_mut()
            && let Some(models) = &mut special.impairments
            && (models.effects().reorders || models.held.is_some())
        {
            // Each frame has its own event. If the frame is released earlier, another event delivers it, and its own
            // event has no effect.
            let number = special.transmitted;
            special.transmitted += 1;
            let mut arrives = arrival;
            match models.held.as_mut().map(|burst| burst.add(arrival)) {
                None => (),
                Some(HoldOutcome::Held(due)) => arrives = due,
                Some(HoldOutcome::Released { at, earlier, due }) => {
                    arrives = at;
                    for held in number - earlier..number {
                        if let Some(packet) = special.disordered.remove(&(due, held)) {
                            special.disordered.insert((at, held), packet);
                            self.calendar.schedule(at, event);
                        }
                    }
                }
            }
            special.disordered.insert((arrives, number), packet);
            self.calendar.schedule(arrives, event);
        } else if l.flight.push(arrival, packet) {
            self.calendar.schedule(arrival, event);
        }
        None
    }

    /// Returns the frame that arrives now over a link on which frames can overtake or are held; `None` if the frame has
    /// already arrived.
    #[cold]
    pub(crate) fn overtaken(&mut self, link: LinkId) -> Option<InFlightPacket> {
        let now = self.now;
        let first = self.links[link.index()].special_mut()?.disordered.first_entry()?;
        let (arrival, _) = *first.key();
        (arrival <= now).then(|| first.remove())
    }

    /// Drops a packet whose bit errors the destination host's checksum detects.
    #[cold]
    pub(crate) fn refuse_corrupted(&mut self, handle: PacketHandle) {
        self.drop_packet(self.now, handle, None, DropReason::Corruption);
    }
}
