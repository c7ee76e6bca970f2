//! The audit of one link, with constant state in half a cache line and a check of each frame.
//!
//! **Rate.** A link counts whole nanoseconds, so the transmission time of a back-to-back frame can seem up to one
//! nanosecond too short. (A frame of 64 bytes at 10 Gbit/s takes only 51.2 ns.) The auditor therefore has its own clock
//! of the busy period, in units of 2^-20 ns. A frame must not end before the exact end, rounded down, of all frames
//! sent since the link was last idle. `owed` is the difference between the exact end and the end of the last frame. It
//! is below one nanosecond, and zero after the link was idle. If a link is too fast by a fraction f of its rate, each
//! frame ends too early by f times its transmission time. The auditor reports this when the sum reaches one nanosecond.
//!
//! **Two functions.** [`LinkState::accepts`] accepts the ordinary frames of ordinary links in a few instructions. All
//! other frames are passed to [`LinkState::judge`], which handles every medium and reports failures.

use crate::balance::TrafficBalance;
use crate::course::RateProfileChecker;
use crate::declared::{DeclaredLink, FRACTION_BITS, MediumAccess};
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::Transmission;
use fullpipe_units::words::{self, format_exact_time};
use fullpipe_units::{Instant, LinkId};
use std::sync::Arc;

/// The state that every frame uses.
#[derive(Clone, Debug)]
#[repr(C, align(32))]
pub(crate) struct LinkState {
    /// The earliest start of the next frame; [`u64::MAX`] for links that are not ordinary, so that `judge` checks all
    /// their frames.
    free_from: u64,
    /// Frames and bytes offered to the link, minus those that were transmitted or dropped.
    waiting: TrafficBalance,
    /// Time of a byte in units of 2^-20 ns.
    byte_time: u64,
    delay_ns: u32,
    /// The exact end of the last frame minus its reported end, in units of 2^-20 ns; below 2^20.
    owed: u32,
}

/// State that is rarely needed.
#[derive(Clone, Debug)]
pub(crate) struct LinkDetails {
    pub(crate) name: Box<str>,
    /// The declaration without the name. Links with equal declarations share one: a dumbbell of 10 000 hosts has 40 000
    /// links with two different declarations.
    pub(crate) declared: Arc<DeclaredLink>,
    /// Whether `accepts` may accept the frames of this link.
    ordinary: bool,
    /// The earliest start of the next frame, for links that are not ordinary.
    free_from: u64,
    /// The rate limit over time; `None` if the rate is constant.
    pub(crate) course: Option<Box<RateProfileChecker>>,
    last_arrival: u64,
    /// The busy period of a scheduled medium.
    busy: Busy,
}

/// The busy period of a scheduled medium, since it was last empty.
#[derive(Clone, Copy, Debug)]
struct Busy {
    /// The earliest time at which one of these frames was offered; all of them were transmitted since then.
    from: u64,
    bytes: u64,
}

const AT_REST: Busy = Busy { from: u64::MAX, bytes: 0 };

/// The state of a link at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalLinkState {
    /// Frames that were offered and reported neither as transmitted nor as dropped.
    pub queued_frames: u64,
    /// Bytes of these frames on the wire.
    pub queued_bytes: u64,
}

const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;

/// Maximum number of known declarations with which that of the next link is compared.
const KINDS_COMPARED: usize = 8;

impl LinkDetails {
    /// Returns the details of all links.
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
        // Allocates exactly this capacity, because collecting in place would keep the memory of the declarations.
        let mut all = Vec::with_capacity(details.len());
        all.extend(details);
        all
    }

    fn new(name: Box<str>, declared: Arc<DeclaredLink>) -> Self {
        let course = RateProfileChecker::new(&declared.varies.course).map(Box::new);
        let ordinary = declared.medium == MediumAccess::PointToPoint
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
            waiting: TrafficBalance::default(),
            byte_time: details.declared.byte_time(),
            delay_ns: details.declared.delay_ns as u32,
            owed: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn offered(&mut self, wire_bytes: u32) {
        self.waiting.add(TrafficBalance::packet(wire_bytes));
    }

    /// Counts a frame, and accepts the frame if it obeys every rule of a point-to-point link with a constant delay
    /// (below 4 s). Otherwise, changes nothing else and returns false; `judge` must then check the frame.
    #[inline(always)]
    pub(crate) fn accepts(&mut self, frame: &Transmission) -> bool {
        self.waiting.subtract(TrafficBalance::packet(frame.wire_bytes));
        self.accepts_passed(frame)
    }

    /// Does the same as [`LinkState::accepts`] for a frame whose offer and transmission are reported together, which
    /// leaves the waiting amount unchanged. (Adding and subtracting the frame took 80 of 2960 instructions per data
    /// packet.)
    #[inline(always)]
    pub(crate) fn accepts_passed(&mut self, frame: &Transmission) -> bool {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        let owed = if start == self.free_from { u64::from(self.owed) } else { 0 };
        let needed = u64::from(frame.wire_bytes).wrapping_mul(self.byte_time).wrapping_add(owed);
        let needed_ns = (needed >> FRACTION_BITS) as i64;
        // Signed, because the transmission time of a frame that ends before it starts is negative.
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

    /// Checks any frame on any medium against each rule. (The frame is passed by value, because a reference would force
    /// the hot path to keep its frame in memory instead of in registers.)
    #[cold]
    #[inline(never)]
    pub(crate) fn judge(&mut self, frame: Transmission, details: &mut LinkDetails, log: &mut FailureLog) {
        // All frames of scheduled media are checked here, in 65 instructions per frame. A common function for all media
        // would take 85.
        if details.declared.medium == MediumAccess::Scheduled {
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
                let (offered, start) = (format_exact_time(offered), format_exact_time(start));
                format!("expected a frame offered at {offered} to start no earlier, found its start at {start}")
            });
        }
        if start > finish {
            fail(Rule::FrameOrder, &|| {
                let (start, finish) = (format_exact_time(start), format_exact_time(finish));
                format!("expected a frame that starts at {start} to end later, found its end at {finish}")
            });
        }
        let free_from = if details.ordinary { self.free_from } else { details.free_from };
        if start < free_from {
            fail(Rule::Overlap, &|| {
                let (free_from, start) = (format_exact_time(free_from), format_exact_time(start));
                format!("expected no frame before the end of the previous one at {free_from}, found a start at {start}")
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
                let (finish, delay) = (format_exact_time(finish), format_exact_time(delay));
                let (expected, arrival) = (format_exact_time(expected), format_exact_time(arrival));
                format!(
                    "expected a frame that ends at {finish} to arrive {delay} later, at {expected}, found {arrival}"
                )
            });
        }
        let last_arrival = details.last_arrival;
        if arrival < last_arrival && declared.medium == MediumAccess::PointToPoint && !declared.varies.reorders {
            fail(Rule::Propagation, &|| {
                let (last, arrival) = (format_exact_time(last_arrival), format_exact_time(arrival));
                format!("expected no frame to overtake the one that arrived at {last}, found an arrival at {arrival}")
            });
        }
        details.last_arrival = last_arrival.max(arrival);
        let free_from = match declared.medium {
            MediumAccess::PointToPoint => finish,
            MediumAccess::HalfDuplex | MediumAccess::Scheduled => arrival,
        };
        if details.ordinary {
            self.free_from = free_from;
        } else {
            details.free_from = free_from;
        }
        self.judge_balance(frame.link, frame.start, log);
    }

    /// Checks a frame that arrived on a scheduled medium.
    fn judge_scheduled(&self, frame: &Transmission, details: &mut LinkDetails, log: &mut FailureLog) {
        let subject = Subject::Link(frame.link);
        let (offered, arrival) = (frame.offered.as_nanos(), frame.arrival.as_nanos());
        let (least, rate) = (details.declared.delay_ns, details.declared.rate_bps);
        let earliest = offered.saturating_add(least);
        if arrival < earliest {
            log.note(Rule::Propagation, subject, frame.arrival, || {
                let (offered, least) = (format_exact_time(offered), format_exact_time(least));
                let (earliest, arrival) = (format_exact_time(earliest), format_exact_time(arrival));
                format!(
                    "expected a frame offered at {offered} to arrive at {earliest} or later (minimum delay {least}), found \
                     {arrival}"
                )
            });
        }
        let busy = &mut details.busy;
        busy.from = busy.from.min(offered);
        busy.bytes += u64::from(frame.wire_bytes);
        let elapsed = arrival.saturating_sub(busy.from);
        // Compares the number of bits that arrived, times 10^9, with bits per second times nanoseconds.
        let able = u128::from(rate) * u128::from(elapsed);
        if rate > 0 && u128::from(busy.bytes) * 8_000_000_000 > able {
            let (found, most) = (busy.bytes, able / 8_000_000_000);
            log.note(Rule::LinkRate, subject, frame.arrival, || {
                let most = words::format_exact_bytes(i128::try_from(most).unwrap_or(i128::MAX));
                let (elapsed, rate, found) = (format_exact_time(elapsed), words::format_exact_rate(rate), words::format_exact_bytes(found));
                format!(
                    "expected at most {most} to arrive at {rate} in the {elapsed} since the medium was empty, found {found}"
                )
            });
        }
        if self.waiting == TrafficBalance::default() {
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
                    "expected transmissions and drops not to exceed the offered frames, found {} and {} more",
                    words::format_count(-frames, "frame"),
                    words::format_exact_bytes(-bytes)
                )
            });
        }
    }

    /// Checks the rate of one frame, including the difference owed by earlier frames of the busy period.
    fn judge_rate(
        &mut self,
        frame: &Transmission,
        back_to_back: bool,
        declared: &DeclaredLink,
        fail: &mut dyn FnMut(Rule, &dyn Fn() -> String),
    ) {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        // Stations of a shared medium do not share fractions of a nanosecond, so each frame is checked separately.
        let together = declared.medium == MediumAccess::PointToPoint && back_to_back;
        let owed = if together { u64::from(self.owed) } else { 0 };
        let needed = u64::from(frame.wire_bytes).saturating_mul(self.byte_time).saturating_add(owed);
        let needed_ns = needed >> FRACTION_BITS;
        let taken_ns = finish.saturating_sub(start);
        self.owed = if taken_ns == needed_ns { (needed & FRACTION_MASK) as u32 } else { 0 };
        if taken_ns < needed_ns {
            fail(Rule::LinkRate, &|| {
                let (bytes, rate) =
                    (words::format_exact_bytes(frame.wire_bytes), words::format_exact_rate(declared.rate_bps));
                let (start, earliest) = (format_exact_time(start), format_exact_time(start.saturating_add(needed_ns)));
                let busy = if together { ", after the frames just before it," } else { "" };
                let finish = format_exact_time(finish);
                format!(
                    "expected a frame of {bytes} that starts at {start}{busy} to end at {earliest} or later at {rate}, found \
                     {finish}"
                )
            });
        }
    }

    /// Counts a frame that was dropped before it was transmitted.
    pub(crate) fn dropped(&mut self, link: LinkId, wire_bytes: u32, log: &mut FailureLog) {
        self.waiting.subtract(TrafficBalance::packet(wire_bytes));
        // Drop events at a link's queue have no time here. The last known time is the time at which the link becomes
        // free.
        let at = if self.free_from == u64::MAX { 0 } else { self.free_from };
        self.judge_balance(link, Instant::from_nanos(at), log);
    }

    /// Checks the balance at the end of the run.
    pub(crate) fn finish(&self, link: LinkId, end: FinalLinkState, log: &mut FailureLog) {
        if self.waiting != TrafficBalance::of(end.queued_frames, end.queued_bytes) {
            let (frames, bytes) = self.waiting.parts();
            log.note(Rule::LinkConservation, Subject::Link(link), Instant::NEVER, || {
                format!(
                    "expected {} and {} in the queue (offered minus transmitted and dropped), found {} and {}",
                    words::format_count(frames, "frame"),
                    words::format_exact_bytes(bytes),
                    words::format_count(end.queued_frames, "frame"),
                    words::format_exact_bytes(end.queued_bytes)
                )
            });
        }
    }
}
