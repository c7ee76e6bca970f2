//! A point-to-point link, one direction: queue, transmitter, propagation, loss.
//!
//! Two forms. With drop-tail alone, the departure of a packet is known when it comes: it begins when the transmitter
//! falls free and ends a transmission time later, so one event (the arrival) does for queue, transmission and
//! propagation; the queue is a list of the starts still to come. With a discipline above the device queue, a packet's
//! fate is open until the transmitter takes it, and each departure is an event of its own.
//!
//! Rates and delays that change, delivery opportunities and impairments are in [`crate::special`].
//!
//! The packet in transmission does not count against the queue's limit. A packet whose transmission begins at the very
//! instant at which another comes has left the queue.

use crate::impairment::FrameModels;
use crate::loss::LossModel;
use crate::packet::InFlight;
use crate::queue::{Interface, Limit, QueueDiscipline};
use crate::special::{Course, Special};
use fullpipe_engine::Lane;
use fullpipe_schema::Kind;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Duration, Instant, LinkId, NodeId, Rate};
use std::collections::VecDeque;

/// A delay of a link in a file: a million of them in a row stay within 2^64 ns.
pub const DELAY: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) };

/// What a link is built from.
#[derive(Debug)]
pub struct LinkSpecification {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Largest IP packet; more than 65 535 is taken as that, the most an IP packet can be.
    pub mtu_bytes: u32,
    /// Bytes that framing adds, at most 65 535.
    pub framing_bytes: u32,
    /// Device queue.
    pub queue: Limit,
    /// Discipline above it.
    pub discipline: Option<Box<dyn QueueDiscipline>>,
    /// Loss after transmission.
    pub loss: Option<LossModel>,
    /// Rate and delay over time; `rate` and `delay` hold before the first step.
    pub course: Course,
    /// What else goes wrong after transmission.
    pub impairments: Option<Box<FrameModels>>,
}

/// Packets and bytes that wait, computed from when each will begin.
///
/// Packets whose transmission has begun leave only when the exact amount matters: when a limit would be exceeded, when there is
/// no room in memory, and when the count is read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    starts: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Backlog {
    /// A packet that comes at `at` waits until `start`, if the limit admits it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, at: Instant, start: Instant, wire_bytes: u32, limit: Limit) -> bool {
        // Nobody asks for the backlog of a link without limit ([`Link::observe`]).
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

    /// Packets whose transmission has begun by `at` leave.
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

/// State of a link with a discipline: departures are events.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) interface: Interface,
    pub(crate) transmitting: bool,
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Frames transmitted.
    pub frames: u64,
    /// Bytes transmitted, framing included.
    pub bytes: u64,
    /// Frames dropped at the queue.
    pub queue_drops: u64,
    /// Frames lost after transmission.
    pub losses: u64,
    /// Frames of which bits were flipped.
    pub corrupted: u64,
    /// Copies made.
    pub duplicates: u64,
    /// Frames that the queue discipline marked "congestion experienced" and that were transmitted.
    pub marks: u64,
    /// Sum over transmitted frames of the time between coming and beginning.
    pub queue_delay_sum: Duration,
}

/// One direction of a link.
///
/// The order of the fields is that of their use: a frame that finds the link idle touches the first two cache lines. With
/// 10 000 flows on links of their own that is what limits the speed (4 lines instead of 2: 10 % slower).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    pub(crate) transmitter: Transmitter,
    pub(crate) busy_until: Instant,
    pub(crate) delay: Duration,
    pub(crate) to: NodeId,
    /// The link beyond, where [`Onward::Link`] says that all packets go on there at once; else [`NO_LINK`].
    pub(crate) next: LinkId,
    // Second line.
    pub(crate) framing_bytes: u16,
    pub(crate) mtu_bytes: u16,
    /// Largest IP packet that takes the short way: the MTU, or 0 if every packet needs more care.
    pub(crate) plain_bytes: u16,
    /// Whether the far end passes packets on.
    pub(crate) to_router: bool,
    /// What becomes of a packet that is to arrive at the far end.
    pub(crate) onward: Onward,
    pub(crate) frames: u64,
    pub(crate) flight: Lane<InFlight>,
    /// Not beside `frames`: the compiler would add to both with one vector instruction and six to prepare it.
    pub(crate) bytes: u64,
    pub(crate) extras: Option<Box<Extras>>,
    // What only a busy link needs.
    pub(crate) limit: Limit,
    pub(crate) backlog: Backlog,
    pub(crate) queue_delay_sum: Duration,
}

// Scenarios with 10 000 hosts have tens of thousands of links.
const _: () = assert!(size_of::<Link>() == 192, "a link fills three cache lines");

/// The passage of a frame over a plain link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booking {
    /// When its first bit leaves.
    pub(crate) start: Instant,
    /// When its last bit leaves.
    pub(crate) finish: Instant,
    /// When its last bit arrives.
    pub(crate) arrival: Instant,
}

/// What becomes of a packet that is to arrive at the far end of a link. [`crate::chain`] decides it for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    /// Its arrival is an event.
    Event,
    /// It is booked at once on the only link beyond that packets of declared conversations take.
    Link,
    /// It is booked at once on the link beyond, which depends on its destination.
    ByDestination,
    /// The same where this link is the only one that feeds the link beyond; otherwise its arrival is an event.
    IfOnlyFeeder,
    /// It goes down a medium with a hub, and waits in `flight` to be offered.
    Hub,
}

/// No link.
pub(crate) const NO_LINK: LinkId = LinkId(u32::MAX);

/// What few links have.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) loss: Option<LossModel>,
    pub(crate) driven: Option<Driven>,
    pub(crate) special: Option<Box<Special>>,
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
        let driven = discipline.map(|discipline| Driven {
            interface: Interface::new(Some(discipline), queue, mtu_bytes + framing_bytes),
            transmitting: false,
        });
        let special = Special::new(course, impairments, rate, delay);
        let rare = driven.is_some() || special.is_some();
        let extras = (loss.is_some() || rare).then(|| Box::new(Extras { loss, driven, special, ..Extras::default() }));
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
            onward: Onward::Event,
            frames: 0,
            flight: Lane::default(),
            bytes: 0,
            extras,
            limit: queue,
            backlog: Backlog::default(),
            queue_delay_sum: Duration::ZERO,
        }
    }

    /// A frame comes to a plain link at `at`: when it is transmitted, or `None` if the queue is full.
    #[inline(always)]
    pub(crate) fn book(&mut self, at: Instant, wire_bytes: u32) -> Option<Booking> {
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
        Some(Booking { start, finish, arrival: finish + self.delay })
    }

    /// What few links have, to be counted in: most links never drop a frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn counted(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Somebody will ask for its queue: what waits is then counted without a limit as well.
    pub(crate) fn observe(&mut self) {
        if self.limit == Limit::Unlimited {
            self.limit = Limit::Packets(u64::MAX);
        }
    }

    /// Frees the memory of the packets on the link and before it; what it has counted stays.
    pub(crate) fn release_packets(&mut self) {
        self.flight = Lane::default();
        self.backlog = Backlog::default();
    }

    /// Whether departures are events.
    pub(crate) fn is_driven(&self) -> bool {
        self.driven().is_some()
    }

    /// The state of a link whose departures are events.
    pub(crate) fn driven(&self) -> Option<&Driven> {
        self.extras.as_ref()?.driven.as_ref()
    }

    /// What few links have.
    pub(crate) fn special(&self) -> Option<&Special> {
        self.extras.as_ref()?.special.as_deref()
    }

    /// Whether what arrives is each transmitted frame at most once, in order.
    pub(crate) fn keeps_order_and_number(&self) -> bool {
        self.special().is_none_or(Special::keeps_order_and_number)
    }

    /// Whether a frame may leave at the instant at which it comes. Then the order of what happens at one instant depends
    /// on what led to what, and the link is not computed ahead.
    pub(crate) fn may_take_no_time(&self) -> bool {
        self.special().is_some_and(Special::has_trace)
    }

    /// Least delay, and least nanoseconds per byte.
    pub(crate) fn minimum(&self) -> (Duration, f64) {
        let rate = self.transmitter.rate();
        match self.special() {
            Some(special) => special.minimum(rate, self.delay),
            None => (self.delay, 8e9 / rate.bits_per_second() as f64),
        }
    }

    /// Its counters. Those of a link that is computed ahead are of a later instant; see [`crate::network`].
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

    /// Packets and bytes that wait at `now` (not the one in transmission).
    pub fn queue(&mut self, now: Instant) -> (u64, u64) {
        match self.driven() {
            Some(driven) => (driven.interface.packets(), driven.interface.bytes()),
            None => {
                self.backlog.settle(now);
                (self.backlog.packets(), self.backlog.bytes())
            }
        }
    }

    /// Frames and bytes that were offered and neither reported as transmitted nor as dropped. A link without a
    /// discipline reports a transmission when the frame comes.
    pub(crate) fn queued(&self) -> (u64, u64) {
        let (frames, bytes) = self.special().map_or((0, 0), |special| special.stuck);
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

    /// A frame comes each microsecond and waits for half of one, at a link whose queue is counted and has no limit: at most one waits
    /// at a time.
    #[test]
    fn a_backlog_without_a_limit_does_not_grow_with_the_frames_that_have_left() {
        let mut backlog = Backlog::default();
        for microsecond in 0..1000 {
            let at = Instant::from_nanos(1000 * microsecond);
            assert!(backlog.admit(at, at + Duration::from_nanos(500), 1500, Limit::Packets(u64::MAX)));
        }
        // The smallest room that a `VecDeque` of such entries takes.
        assert_eq!(backlog.starts.capacity(), VecDeque::<(Instant, u32)>::from([(Instant::ZERO, 0); 4]).capacity());
        backlog.settle(Instant::from_nanos(1_000_000));
        assert_eq!((backlog.packets(), backlog.bytes()), (0, 0));
    }

    proptest! {
        /// The reference removes at each arrival all frames whose transmission has begun.
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
