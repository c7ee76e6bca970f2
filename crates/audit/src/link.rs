//! One link under audit: constant state, half a cache line, and a judgement per frame.
//!
//! **Rate.** A link that sends frames back to back counts whole nanoseconds, so one frame may seem up to a nanosecond
//! too short, and a frame of 64 bytes at 10 Gbit/s lasts only 51.2. The auditor therefore keeps its own clock of the
//! busy period in 2^-20 ns: each frame may end no earlier than the true end of everything sent since the link was last
//! idle, rounded down. `owed` is by how much that true end lies after the last frame's; it is below one nanosecond,
//! and nothing is owed after an idle nanosecond. A link that is too fast by a part f of its rate falls behind this clock
//! by f of each frame's time and is noticed when that adds up to one nanosecond.
//!
//! **Two paths.** [`LinkState::accepts`] takes the ordinary frame of an ordinary link in a few instructions, and
//! nothing else. Whatever it does not take goes to [`LinkState::judge`], which knows every medium and finds the words.

use crate::balance::Amount;
use crate::course::CourseWatch;
use crate::declared::{DeclaredLink, FRACTION_BITS, Medium};
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::Transmission;
use fullpipe_units::{Instant, LinkId};
use std::sync::Arc;

/// What changes with every frame, and what every frame is held against.
#[derive(Clone, Debug)]
#[repr(C, align(32))]
pub(crate) struct LinkState {
    /// The first instant at which the next frame may begin; [`u64::MAX`] for links that are not ordinary, so that all
    /// their frames are judged.
    free_from: u64,
    /// Frames and bytes that came less those that were transmitted or dropped.
    waiting: Amount,
    /// Time of a byte in 2^-20 ns.
    byte_time: u64,
    delay_ns: u32,
    /// 2^-20 ns by which the last frame ended before its true end; below 2^20.
    owed: u32,
}

/// What is seldom needed.
#[derive(Clone, Debug)]
pub(crate) struct LinkDetails {
    pub(crate) name: Box<str>,
    /// Without its name. Links that are declared alike share it: a dumbbell of 10 000 hosts has 40 000 links of two kinds.
    pub(crate) declared: Arc<DeclaredLink>,
    /// Whether `accepts` may take its frames.
    ordinary: bool,
    /// The first instant at which the next frame may begin, for links that are not ordinary.
    free_from: u64,
    /// Where the rate is not constant.
    course: Option<Box<CourseWatch>>,
    last_arrival: u64,
    /// Where a scheduler decides.
    busy: Busy,
}

/// What has arrived since a medium was last empty.
#[derive(Clone, Copy, Debug)]
struct Busy {
    /// The earliest at which any of it came: all of it was transmitted since.
    from: u64,
    bytes: u64,
}

const AT_REST: Busy = Busy { from: u64::MAX, bytes: 0 };

/// What the world says of a link when the run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEnd {
    /// Frames that were offered and neither reported as transmitted nor as dropped.
    pub queued_frames: u64,
    /// Their bytes on the wire.
    pub queued_bytes: u64,
}

const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;

/// So many declarations are compared with that of the next link.
const KINDS_COMPARED: usize = 8;

impl LinkDetails {
    /// The details of all links.
    pub(crate) fn of_all(links: Vec<DeclaredLink>) -> Vec<LinkDetails> {
        let mut kinds: Vec<Arc<DeclaredLink>> = Vec::new();
        let details = links.into_iter().map(|mut link| {
            let name = std::mem::take(&mut link.name).into_boxed_str();
            let known = kinds.iter().rev().take(KINDS_COMPARED).find(|kind| ***kind == link).cloned();
            let declared = known.unwrap_or_else(|| {
                let kind = Arc::new(link);
                kinds.push(Arc::clone(&kind));
                kind
            });
            LinkDetails::new(name, declared)
        });
        // Exactly as many: a vector that is collected in place would keep the room of the declarations.
        let mut all = Vec::with_capacity(details.len());
        all.extend(details);
        all
    }

    fn new(name: Box<str>, declared: Arc<DeclaredLink>) -> Self {
        let course = CourseWatch::new(&declared.varies.course).map(Box::new);
        let ordinary = declared.medium == Medium::PointToPoint
            && !declared.delay_varies
            && course.is_none()
            && u32::try_from(declared.delay_ns).is_ok();
        LinkDetails { name, declared, ordinary, free_from: 0, course, last_arrival: 0, busy: AT_REST }
    }
}

impl LinkState {
    pub(crate) fn new(details: &LinkDetails) -> Self {
        LinkState {
            free_from: if details.ordinary { 0 } else { u64::MAX },
            waiting: Amount::default(),
            byte_time: details.declared.byte_time(),
            delay_ns: details.declared.delay_ns as u32,
            owed: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn offered(&mut self, wire_bytes: u32) {
        self.waiting.add(Amount::packet(wire_bytes));
    }

    /// Counts a frame, and takes it if it keeps every rule of a point-to-point link with a constant delay (below 4 s).
    /// Otherwise changes nothing more, and says so: it has to be judged.
    #[inline(always)]
    pub(crate) fn accepts(&mut self, frame: &Transmission) -> bool {
        self.waiting.subtract(Amount::packet(frame.wire_bytes));
        self.accepts_passed(frame)
    }

    /// The same for a frame that came and went at once, which leaves the amount that waits as it is. (Counting it in and
    /// out again took 80 of 2 960 instructions per data packet.)
    #[inline(always)]
    pub(crate) fn accepts_passed(&mut self, frame: &Transmission) -> bool {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        let owed = if start == self.free_from { u64::from(self.owed) } else { 0 };
        let needed = u64::from(frame.wire_bytes).wrapping_mul(self.byte_time).wrapping_add(owed);
        let needed_ns = (needed >> FRACTION_BITS) as i64;
        // Signed: a frame that ends before it begins takes less than no time.
        let taken_ns = finish.wrapping_sub(start) as i64;
        if start < self.free_from
            || frame.offered > frame.start
            || taken_ns < needed_ns
            || frame.arrival.as_nanos() != finish.wrapping_add(u64::from(self.delay_ns))
            || self.waiting.is_negative()
        {
            return false;
        }
        self.owed = if taken_ns == needed_ns { (needed & FRACTION_MASK) as u32 } else { 0 };
        self.free_from = finish;
        true
    }

    /// Judges any frame on any medium, rule by rule. (The frame comes by value: a reference would keep the one in the
    /// hot path in memory instead of in registers.)
    #[cold]
    #[inline(never)]
    pub(crate) fn judge(&mut self, frame: Transmission, details: &mut LinkDetails, log: &mut FailureLog) {
        // Each frame of such a medium comes here: 65 instructions, 85 with what the others need in one function.
        if details.declared.medium == Medium::Scheduled {
            return self.judge_scheduled(&frame, details, log);
        }
        self.judge_others(frame, details, log);
    }

    #[inline(never)]
    fn judge_others(&mut self, frame: Transmission, details: &mut LinkDetails, log: &mut FailureLog) {
        let subject = Subject::Link(frame.link);
        let (offered, start) = (frame.offered.as_nanos(), frame.start.as_nanos());
        let (finish, arrival) = (frame.finish.as_nanos(), frame.arrival.as_nanos());
        let declared: &DeclaredLink = &details.declared;
        let mut fail = |rule, message: &dyn Fn() -> String| log.note(rule, subject, frame.start, message);

        if offered > start {
            fail(Rule::FrameOrder, &|| {
                format!("expected a frame to begin after it came at {offered} ns, found it beginning at {start} ns")
            });
        }
        if start > finish {
            fail(Rule::FrameOrder, &|| {
                format!("expected a frame that begins at {start} ns to end later, found it ending at {finish} ns")
            });
        }
        let free_from = if details.ordinary { self.free_from } else { details.free_from };
        if start < free_from {
            fail(Rule::Overlap, &|| {
                format!(
                    "expected no frame before {free_from} ns, when the one ahead is through, found one at {start} ns"
                )
            });
        }
        match &mut details.course {
            None => self.judge_rate(&frame, start == free_from, declared, &mut fail),
            Some(course) => {
                if let Err(message) = course.transmitted(start, finish, frame.wire_bytes) {
                    fail(Rule::LinkRate, &|| message.clone());
                }
            }
        }
        let expected = finish.saturating_add(declared.delay_ns);
        if arrival < expected || (arrival > expected && !declared.delay_varies) {
            let delay = declared.delay_ns;
            fail(Rule::Propagation, &|| {
                format!(
                    "expected a frame that ended at {finish} ns to arrive {delay} ns later, at {expected} ns, found \
                     {arrival} ns"
                )
            });
        }
        let last_arrival = details.last_arrival;
        if arrival < last_arrival && declared.medium == Medium::PointToPoint && !declared.varies.reorders {
            fail(Rule::Propagation, &|| {
                format!(
                    "expected no frame to overtake the one that arrived at {last_arrival} ns, found one at {arrival} ns"
                )
            });
        }
        details.last_arrival = last_arrival.max(arrival);
        let free_from = match declared.medium {
            Medium::PointToPoint => finish,
            Medium::HalfDuplex | Medium::Scheduled => arrival,
        };
        if details.ordinary {
            self.free_from = free_from;
        } else {
            details.free_from = free_from;
        }
        self.judge_balance(frame.link, frame.start, log);
    }

    /// A frame that arrived where a scheduler decides.
    fn judge_scheduled(&self, frame: &Transmission, details: &mut LinkDetails, log: &mut FailureLog) {
        let subject = Subject::Link(frame.link);
        let (offered, arrival) = (frame.offered.as_nanos(), frame.arrival.as_nanos());
        let (least, rate) = (details.declared.delay_ns, details.declared.rate_bps);
        let earliest = offered.saturating_add(least);
        if arrival < earliest {
            log.note(Rule::Propagation, subject, frame.arrival, || {
                format!(
                    "expected a frame that came at {offered} ns to arrive {least} ns later at the earliest, at {earliest} \
                     ns, found {arrival} ns"
                )
            });
        }
        let busy = &mut details.busy;
        busy.from = busy.from.min(offered);
        busy.bytes += u64::from(frame.wire_bytes);
        let time = arrival.saturating_sub(busy.from);
        // What arrived in bits times 10^9 is more than bits per second times nanoseconds.
        let able = u128::from(rate) * u128::from(time);
        if rate > 0 && u128::from(busy.bytes) * 8_000_000_000 > able {
            let (found, most) = (busy.bytes, able / 8_000_000_000);
            log.note(Rule::LinkRate, subject, frame.arrival, || {
                format!(
                    "expected at most {most} bytes to arrive within {time} ns at {rate} bit/s, since the medium was empty, \
                     found {found}"
                )
            });
        }
        if self.waiting == Amount::default() {
            *busy = AT_REST;
        }
        if self.waiting.is_negative() {
            self.judge_balance(frame.link, frame.start, log);
        }
    }

    fn judge_balance(&self, link: LinkId, at: Instant, log: &mut FailureLog) {
        if self.waiting.is_negative() {
            let (frames, bytes) = self.waiting.parts();
            log.note(Rule::LinkConservation, Subject::Link(link), at, || {
                format!(
                    "expected no more to be transmitted and dropped than was offered, found {} frames and {} bytes more",
                    -frames, -bytes
                )
            });
        }
    }

    /// The rate of one frame, with what the busy period owes.
    fn judge_rate(
        &mut self,
        frame: &Transmission,
        back_to_back: bool,
        declared: &DeclaredLink,
        fail: &mut dyn FnMut(Rule, &dyn Fn() -> String),
    ) {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        // Stations of a shared medium do not know each other's fractions: there each frame stands alone.
        let together = declared.medium == Medium::PointToPoint && back_to_back;
        let owed = if together { u64::from(self.owed) } else { 0 };
        let needed = u64::from(frame.wire_bytes).saturating_mul(self.byte_time).saturating_add(owed);
        let needed_ns = needed >> FRACTION_BITS;
        let taken_ns = finish.saturating_sub(start);
        self.owed = if taken_ns == needed_ns { (needed & FRACTION_MASK) as u32 } else { 0 };
        if taken_ns < needed_ns {
            fail(Rule::LinkRate, &|| {
                let (bytes, rate) = (frame.wire_bytes, declared.rate_bps);
                let earliest = start.saturating_add(needed_ns);
                let busy = if together { ", with what the frames just before it left over" } else { "" };
                format!(
                    "expected {bytes} bytes that begin at {start} ns to end at {earliest} ns at the earliest at {rate} \
                     bit/s{busy}, found {finish} ns"
                )
            });
        }
    }

    /// A frame was dropped before it was transmitted.
    pub(crate) fn dropped(&mut self, link: LinkId, wire_bytes: u32, log: &mut FailureLog) {
        self.waiting.subtract(Amount::packet(wire_bytes));
        // Events of a link's queue carry no time; the last one known is when the link is free.
        let at = if self.free_from == u64::MAX { 0 } else { self.free_from };
        self.judge_balance(link, Instant::from_nanos(at), log);
    }

    /// The balance after the run.
    pub(crate) fn finish(&self, link: LinkId, end: LinkEnd, log: &mut FailureLog) {
        if self.waiting != Amount::of(end.queued_frames, end.queued_bytes) {
            let (frames, bytes) = self.waiting.parts();
            log.note(Rule::LinkConservation, Subject::Link(link), Instant::NEVER, || {
                format!(
                    "expected {frames} frames and {bytes} bytes to wait, as was offered less what was transmitted and \
                     dropped, found {} frames and {} bytes",
                    end.queued_frames, end.queued_bytes
                )
            });
        }
    }
}
