//! One direction of a point-to-point link: queue, transmitter, propagation and loss.
//!
//! A link has two forms. With drop-tail alone, the departure of a packet is known when the packet arrives: its
//! transmission starts when the transmitter becomes free and ends one transmission time later. Therefore one event (the
//! arrival at the far end) is sufficient for queueing, transmission and propagation, and the queue is a list of future
//! start times. With a discipline above the device queue, the outcome of a packet is unknown until its transmission
//! starts, and each departure is a separate event.
//!
//! Rates and delays that change, delivery opportunities and impairments are in [`crate::special`].
//!
//! The packet in transmission does not count against the queue's limit. A packet whose transmission starts when another
//! packet arrives has already left the queue.

use crate::adjustable::{self, AdjustableState};
use crate::impairment::FrameModels;
use crate::loss::LossModel;
use crate::packet::InFlightPacket;
use crate::queue::{InterfaceQueue, Limit, QueueDiscipline};
use crate::special::{LinkProfile, VariableLinkState};
use fullpipe_engine::DelayLine;
use fullpipe_schema::FieldKind;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Duration, Instant, LinkId, NodeId, Rate};
use std::collections::VecDeque;

/// The range of a link's delay in a scenario file; the sum of a million such delays is below 2^64 ns.
pub const DELAY: FieldKind = FieldKind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) };

/// The specification of one direction of a link.
#[derive(Debug)]
pub struct LinkSpecification {
    /// Node at which the link starts.
    pub from: NodeId,
    /// Node at which the link ends.
    pub to: NodeId,
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay of the link.
    pub delay: Duration,
    /// Size of the largest IP packet in bytes; values above 65 535, the maximum of IP, are treated as 65 535.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to an IP packet, at most 65 535.
    pub framing_bytes: u32,
    /// Limit of the device queue.
    pub queue: Limit,
    /// Discipline above the device queue; `None` if there is only the device queue.
    pub discipline: Option<Box<dyn QueueDiscipline>>,
    /// Loss model applied after transmission; `None` if there is none.
    pub loss: Option<LossModel>,
    /// Rate and delay over time; `rate` and `delay` apply before the first step.
    pub course: LinkProfile,
    /// Other impairments after transmission; `None` if there are none.
    pub impairments: Option<Box<FrameModels>>,
}

/// The packets that wait for transmission, with their start times.
///
/// Packets whose transmission has started are removed only when a limit would be exceeded, when memory must grow, or
/// when the backlog is read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    starts: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Adds a packet that arrives at `at` and waits until `start`, if the limit permits.
    #[inline(always)]
    pub(crate) fn admit(&mut self, at: Instant, start: Instant, wire_bytes: u32, limit: Limit) -> bool {
        // The backlog of a link without a limit is never read ([`Link::observe`]).
        if limit == Limit::Unlimited {
            return true;
        }
        let full = !limit.admits(self.packets(), self.bytes, wire_bytes);
        if full || self.starts.len() == self.starts.capacity() {
            self.settle(at);
            if full && !limit.admits(self.packets(), self.bytes, wire_bytes) {
                return false;
            }
        }
        self.starts.push_back((start, wire_bytes));
        self.bytes += u64::from(wire_bytes);
        true
    }

    /// Removes packets whose transmission has started by `at`.
    #[inline(always)]
    pub(crate) fn settle(&mut self, at: Instant) {
        while let Some((start, wire_bytes)) = self.starts.front() {
            if *start > at {
                break;
            }
            self.bytes -= u64::from(*wire_bytes);
            self.starts.pop_front();
        }
    }

    pub(crate) fn packets(&self) -> u64 {
        self.starts.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// State of a link with a discipline, whose departures are events.
#[derive(Debug)]
pub(crate) struct EventDrivenState {
    pub(crate) interface: InterfaceQueue,
    pub(crate) transmitting: bool,
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Frames transmitted.
    pub frames: u64,
    /// Bytes transmitted, including framing.
    pub bytes: u64,
    /// Frames dropped at the queue.
    pub queue_drops: u64,
    /// Frames lost after transmission.
    pub losses: u64,
    /// Frames with flipped bits.
    pub corrupted: u64,
    /// Copies made by the duplication model.
    pub duplicates: u64,
    /// Frames that the queue discipline marked CE ("congestion experienced") and that were transmitted.
    pub marks: u64,
    /// Sum of the queueing delays of transmitted frames, each from its arrival to the start of its transmission.
    pub queue_delay_sum: Duration,
}

/// One direction of a link.
///
/// The fields are in order of use, so that a frame on an idle link uses only the first two cache lines. With 10 000
/// flows on separate links, runs are 10 % slower if a frame uses four cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    pub(crate) transmitter: Transmitter,
    pub(crate) busy_until: Instant,
    pub(crate) delay: Duration,
    pub(crate) to: NodeId,
    /// The next link with [`NextLinkMode::Link`]; otherwise [`NO_LINK`].
    pub(crate) next: LinkId,
    // Second cache line.
    pub(crate) framing_bytes: u16,
    pub(crate) mtu_bytes: u16,
    /// Size of the largest IP packet for the fast path: the MTU, or 0 if no packet may take the fast path.
    pub(crate) plain_bytes: u16,
    /// Whether the far end forwards packets.
    pub(crate) to_router: bool,
    /// What happens to a packet at the far end.
    pub(crate) onward: NextLinkMode,
    pub(crate) frames: u64,
    pub(crate) flight: DelayLine<InFlightPacket>,
    /// Not next to `frames`, because the compiler would then update both with one vector instruction, which needs six
    /// more to prepare.
    pub(crate) bytes: u64,
    pub(crate) extras: Option<Box<OptionalState>>,
    // Fields that only a busy link needs.
    pub(crate) limit: Limit,
    pub(crate) backlog: Backlog,
    pub(crate) queue_delay_sum: Duration,
}

// The size matters, because scenarios with 10 000 hosts have tens of thousands of links.
const _: () = assert!(size_of::<Link>() == 192, "a link must fill three cache lines");

/// The times of a frame on a plain link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransmissionTimes {
    /// When the transmission of the first bit starts.
    pub(crate) start: Instant,
    /// When the transmission of the last bit ends.
    pub(crate) finish: Instant,
    /// When the last bit arrives.
    pub(crate) arrival: Instant,
}

/// What happens to a packet at the far end of a link. [`crate::chain`] determines the mode once for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLinkMode {
    /// The arrival of the packet is an event.
    Event,
    /// The next link, the only one that packets of declared conversations use, is computed together with this one.
    Link,
    /// The next link, which depends on the packet's destination, is computed together with this one.
    ByDestination,
    /// The next link is computed together with this one if this one is its only feeder; otherwise the arrival is an
    /// event.
    IfSingleSource,
    /// The packet enters a medium with a hub, and waits in `flight` until it is offered.
    Hub,
}

/// The number that represents no link.
pub(crate) const NO_LINK: LinkId = LinkId(u32::MAX);

/// State that only few links have.
#[derive(Debug, Default)]
pub(crate) struct OptionalState {
    pub(crate) loss: Option<LossModel>,
    pub(crate) driven: Option<EventDrivenState>,
    pub(crate) special: Option<Box<VariableLinkState>>,
    pub(crate) queue_drops: u64,
    pub(crate) losses: u64,
    pub(crate) marks: u64,
}

impl Link {
    pub(crate) fn new(specification: LinkSpecification) -> Self {
        let LinkSpecification {
            from: _,
            to,
            rate,
            delay,
            mtu_bytes,
            framing_bytes,
            queue,
            discipline,
            loss,
            course,
            impairments,
        } = specification;
        let driven = discipline.map(|discipline| EventDrivenState {
            interface: InterfaceQueue::new(Some(discipline), queue, mtu_bytes + framing_bytes),
            transmitting: false,
        });
        let special = VariableLinkState::new(course, impairments, rate, delay);
        let rare = driven.is_some() || special.is_some() || loss.is_some();
        let extras = rare.then(|| Box::new(OptionalState { loss, driven, special, ..OptionalState::default() }));
        Link {
            transmitter: Transmitter::new(rate),
            busy_until: Instant::ZERO,
            delay,
            to,
            next: NO_LINK,
            framing_bytes: u16::try_from(framing_bytes).unwrap_or(u16::MAX),
            mtu_bytes: u16::try_from(mtu_bytes).unwrap_or(u16::MAX),
            plain_bytes: if rare { 0 } else { u16::try_from(mtu_bytes).unwrap_or(u16::MAX) },
            to_router: false,
            onward: NextLinkMode::Event,
            frames: 0,
            flight: DelayLine::default(),
            bytes: 0,
            extras,
            limit: queue,
            backlog: Backlog::default(),
            queue_delay_sum: Duration::ZERO,
        }
    }

    /// Computes the times of a frame that arrives at a plain link at `at`; `None` if the queue is full.
    #[inline(always)]
    pub(crate) fn book(&mut self, at: Instant, wire_bytes: u32) -> Option<TransmissionTimes> {
        let busy_until = self.busy_until;
        let mut start = at;
        if busy_until > at {
            if !self.backlog.admit(at, busy_until, wire_bytes, self.limit) {
                return None;
            }
            start = busy_until;
            self.queue_delay_sum += start - at;
        }
        let finish = start + self.transmitter.transmit(wire_bytes, busy_until < at);
        self.busy_until = finish;
        self.frames += 1;
        self.bytes += u64::from(wire_bytes);
        Some(TransmissionTimes { start, finish, arrival: finish + self.delay })
    }

    /// Returns the optional state, for counters. It is created on first use, because most links never drop a frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn counted(&mut self) -> &mut OptionalState {
        self.extras.get_or_insert_default()
    }

    /// Declares that the queue will be read, so that packets are counted even without a limit.
    pub(crate) fn observe(&mut self) {
        if self.limit == Limit::Unlimited {
            self.limit = Limit::Packets(u64::MAX);
        }
    }

    /// Frees the memory of the packets in the queue and in flight; counters are kept.
    pub(crate) fn release_packets(&mut self) {
        self.flight = DelayLine::default();
        self.backlog = Backlog::default();
    }

    /// Returns whether departures are events.
    pub(crate) fn is_driven(&self) -> bool {
        self.driven().is_some() || self.adjustable().is_some()
    }

    /// Makes the link adjustable; returns false if it has a schedule or a trace.
    pub(crate) fn make_adjustable(&mut self) -> bool {
        let (rate, limit) = (self.transmitter.rate(), self.limit);
        let extras = self.counted();
        let special = extras.special.get_or_insert_with(|| Box::new(VariableLinkState::constant()));
        if !special.is_constant() {
            return special.adjustable().is_some();
        }
        let discipline = extras.driven.take();
        let has_discipline = discipline.is_some();
        let interface = discipline.map_or_else(|| adjustable::drop_tail(limit), |driven| driven.interface);
        special.adjust(AdjustableState::new(interface, has_discipline, rate));
        self.plain_bytes = 0;
        true
    }

    /// Returns the state of an adjustable link.
    pub(crate) fn adjustable(&self) -> Option<&AdjustableState> {
        self.special()?.adjustable()
    }

    /// Returns the state of an adjustable link.
    pub(crate) fn adjustable_mut(&mut self) -> Option<&mut AdjustableState> {
        self.special_mut()?.adjustable_mut()
    }

    /// Returns the state of a link whose departures are events.
    pub(crate) fn driven(&self) -> Option<&EventDrivenState> {
        self.extras.as_ref()?.driven.as_ref()
    }

    /// Returns the state of a link with a varying rate or delay, or with impairments.
    pub(crate) fn special(&self) -> Option<&VariableLinkState> {
        self.extras.as_ref()?.special.as_deref()
    }

    /// Returns whether the impairments permit computing the next link together with this one.
    pub(crate) fn permits_chains(&self) -> bool {
        self.special().is_none_or(VariableLinkState::permits_chains)
    }

    /// Returns whether a frame can depart at the instant of its arrival. The order of events at one instant then
    /// depends on their causes, so the link must not be computed ahead.
    pub(crate) fn may_take_no_time(&self) -> bool {
        self.special().is_some_and(VariableLinkState::has_trace)
    }

    /// Returns the minimum propagation delay, and the minimum transmission time in nanoseconds per byte.
    pub(crate) fn minimum(&self) -> (Duration, f64) {
        let rate = self.transmitter.rate();
        match self.special() {
            Some(special) => special.minimum(rate, self.delay),
            None => (self.delay, 8e9 / rate.bits_per_second() as f64),
        }
    }

    /// Returns the counters. If the link is computed ahead, they apply to a later instant; see [`crate::chain`].
    pub fn counters(&self) -> LinkCounters {
        LinkCounters {
            frames: self.frames,
            bytes: self.bytes,
            queue_drops: self.extras.as_ref().map_or(0, |extras| extras.queue_drops),
            losses: self.extras.as_ref().map_or(0, |extras| extras.losses),
            marks: self.extras.as_ref().map_or(0, |extras| extras.marks),
            corrupted: self.special().map_or(0, |special| special.corrupted),
            duplicates: self.special().map_or(0, |special| special.duplicates),
            queue_delay_sum: self.queue_delay_sum,
        }
    }

    /// Returns the bytes of the waiting packets that the counters already include: without a discipline, a packet is
    /// counted when it arrives.
    pub(crate) fn counted_queue_bytes(&mut self, now: Instant) -> u64 {
        if self.is_driven() { 0 } else { self.queue(now).1 }
    }

    /// Returns the number of packets and bytes that wait at `now` (without the packet in transmission).
    pub fn queue(&mut self, now: Instant) -> (u64, u64) {
        match self.driven() {
            Some(driven) => (driven.interface.packets(), driven.interface.bytes()),
            None => {
                if let Some(adjustable) = self.adjustable() {
                    return adjustable.queue();
                }
                self.backlog.settle(now);
                (self.backlog.packets(), self.backlog.bytes())
            }
        }
    }

    /// Returns the number of frames and bytes that were offered but reported neither as transmitted nor as dropped. A
    /// link without a discipline reports a transmission when the frame arrives.
    pub(crate) fn queued(&self) -> (u64, u64) {
        let (frames, bytes) = self.special().map_or((0, 0), |special| match special.adjustable() {
            Some(adjustable) => adjustable.queued(),
            None => special.stuck,
        });
        self.driven()
            .map_or((frames, bytes), |driven| (frames + driven.interface.packets(), bytes + driven.interface.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit() -> impl Strategy<Value = Limit> {
        prop_oneof![
            (0u64..12).prop_map(Limit::Packets),
            (0u64..6000).prop_map(Limit::Bytes),
            Just(Limit::Packets(u64::MAX)),
        ]
    }

    /// A frame arrives each microsecond and waits for half a microsecond, at a link whose queue is counted and has no
    /// limit: at most one frame waits at a time.
    #[test]
    fn a_backlog_without_a_limit_does_not_grow_with_departed_frames() {
        let mut backlog = Backlog::default();
        for microsecond in 0..1000 {
            let at = Instant::from_nanos(1000 * microsecond);
            assert!(backlog.admit(at, at + Duration::from_nanos(500), 1500, Limit::Packets(u64::MAX)));
        }
        // The smallest capacity of a `VecDeque` of such entries.
        assert_eq!(backlog.starts.capacity(), VecDeque::<(Instant, u32)>::from([(Instant::ZERO, 0); 4]).capacity());
        backlog.settle(Instant::from_nanos(1_000_000));
        assert_eq!((backlog.packets(), backlog.bytes()), (0, 0));
    }

    proptest! {
        /// The reference removes all started frames at each arrival.
        #[test]
        fn a_backlog_that_is_settled_late_admits_what_one_settled_at_each_arrival_admits(
            limit in limit(),
            frames in prop::collection::vec((0u64..4, 1u32..1500, any::<bool>()), 1..200),
        ) {
            let (mut backlog, mut waiting) = (Backlog::default(), Vec::<(u64, u32)>::new());
            let (mut now, mut busy_until) = (0, 0);
            for (gap, wire_bytes, is_asked) in frames {
                now += gap * 500;
                waiting.retain(|(start, _)| *start > now);
                let bytes = |waiting: &[(u64, u32)]| waiting.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>();
                if is_asked {
                    backlog.settle(Instant::from_nanos(now));
                    prop_assert_eq!((backlog.packets(), backlog.bytes()), (waiting.len() as u64, bytes(&waiting)));
                }
                if busy_until > now {
                    let (at, start) = (Instant::from_nanos(now), Instant::from_nanos(busy_until));
                    let fits = limit.admits(waiting.len() as u64, bytes(&waiting), wire_bytes);
                    prop_assert_eq!(backlog.admit(at, start, wire_bytes, limit), fits);
                    if !fits {
                        continue;
                    }
                    waiting.push((busy_until, wire_bytes));
                }
                busy_until = busy_until.max(now) + u64::from(wire_bytes);
            }
        }
    }
}
