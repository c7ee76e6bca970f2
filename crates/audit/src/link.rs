//! One link under audit: constant state, one cache line, and a judgement per frame.
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

use crate::declared::{DeclaredLink, FRACTION_BITS, Medium};
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::{DropReason, Transmission};
use fullpipe_units::{Instant, LinkId};

/// What changes with every frame.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct LinkState {
    /// The first instant at which the next frame may begin.
    free_from: u64,
    delay_ns: u64,
    /// Time of a byte in 2^-20 ns.
    byte_time: u64,
    offered_frames: u64,
    offered_bytes: u64,
    /// Frames and bytes that left the queue: transmitted or dropped.
    left_frames: u64,
    left_bytes: u64,
    /// 2^-20 ns by which the last frame ended before its true end; below 2^20.
    owed: u32,
    /// Largest frame that `accepts` may take; 0 sends every frame to `judge`.
    ordinary_bytes: u32,
}

/// What is seldom needed.
#[derive(Clone, Debug)]
pub(crate) struct LinkDetails {
    pub(crate) declared: DeclaredLink,
    dropped_frames: u64,
    dropped_bytes: u64,
    lost_frames: u64,
    lost_bytes: u64,
}

/// What the world says of a link when the run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEnd {
    /// Frames that were offered and neither reported as transmitted nor as dropped.
    pub queued_frames: u64,
    /// Their bytes on the wire.
    pub queued_bytes: u64,
}

impl LinkDetails {
    pub(crate) fn new(declared: DeclaredLink) -> Self {
        LinkDetails { declared, dropped_frames: 0, dropped_bytes: 0, lost_frames: 0, lost_bytes: 0 }
    }
}

const FRACTION_MASK: u64 = (1 << FRACTION_BITS) - 1;

impl LinkState {
    pub(crate) fn new(declared: &DeclaredLink) -> Self {
        let ordinary = declared.medium == Medium::PointToPoint && !declared.delay_varies;
        LinkState {
            free_from: 0,
            delay_ns: declared.delay_ns,
            byte_time: declared.byte_time(),
            offered_frames: 0,
            offered_bytes: 0,
            left_frames: 0,
            left_bytes: 0,
            owed: 0,
            ordinary_bytes: if ordinary { declared.max_wire_bytes() } else { 0 },
        }
    }

    #[inline(always)]
    pub(crate) fn offered(&mut self, wire_bytes: u32) {
        self.offered_frames += 1;
        self.offered_bytes += u64::from(wire_bytes);
    }

    /// Takes a frame that keeps every rule of a point-to-point link with a constant delay; otherwise changes nothing.
    #[inline(always)]
    pub(crate) fn accepts(&mut self, frame: &Transmission) -> bool {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        let owed = if start == self.free_from { u64::from(self.owed) } else { 0 };
        let needed = u64::from(frame.wire_bytes).wrapping_mul(self.byte_time).wrapping_add(owed);
        let needed_ns = needed >> FRACTION_BITS;
        // Signed: a frame that ends before it begins takes less than no time.
        let taken_ns = finish.wrapping_sub(start) as i64;
        let left_frames = self.left_frames + 1;
        if frame.wire_bytes > self.ordinary_bytes
            || frame.offered > frame.start
            || start < self.free_from
            || taken_ns < needed_ns as i64
            || frame.arrival.as_nanos() != finish.wrapping_add(self.delay_ns)
            || left_frames > self.offered_frames
        {
            return false;
        }
        self.owed = if taken_ns == needed_ns as i64 { (needed & FRACTION_MASK) as u32 } else { 0 };
        self.free_from = finish;
        self.left_frames = left_frames;
        self.left_bytes += u64::from(frame.wire_bytes);
        true
    }

    /// Judges any frame on any medium, rule by rule.
    #[inline(never)]
    pub(crate) fn judge(&mut self, frame: &Transmission, details: &LinkDetails, log: &mut FailureLog) {
        let declared = &details.declared;
        let subject = Subject::Link(frame.link);
        let bytes = frame.wire_bytes;
        let (offered, start) = (frame.offered.as_nanos(), frame.start.as_nanos());
        let (finish, arrival) = (frame.finish.as_nanos(), frame.arrival.as_nanos());
        let mut fail = |rule, message: &dyn Fn() -> String| log.note(rule, subject, frame.start, message);

        let largest = declared.max_wire_bytes();
        if bytes > largest {
            fail(Rule::FrameSize, &|| format!("expected frames of at most {largest} bytes, found one of {bytes}"));
        }
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
        let free_from = self.free_from;
        if start < free_from {
            fail(Rule::Overlap, &|| {
                format!(
                    "expected no frame before {free_from} ns, when the one ahead is through, found one at {start} ns"
                )
            });
        }
        self.judge_rate(frame, declared, &mut fail);
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
        self.left_frames += 1;
        self.left_bytes += u64::from(bytes);
        let (left, came) = (self.left_frames, self.offered_frames);
        if left > came {
            fail(Rule::LinkConservation, &|| {
                format!("expected at most {came} frames transmitted and dropped, as many as were offered, found {left}")
            });
        }
        self.free_from = match declared.medium {
            Medium::PointToPoint => finish,
            Medium::HalfDuplex => arrival,
        };
    }

    /// The rate of one frame, with what the busy period owes.
    fn judge_rate(
        &mut self,
        frame: &Transmission,
        declared: &DeclaredLink,
        fail: &mut dyn FnMut(Rule, &dyn Fn() -> String),
    ) {
        let (start, finish) = (frame.start.as_nanos(), frame.finish.as_nanos());
        // Stations of a shared medium do not know each other's fractions: there each frame stands alone.
        let together = declared.medium == Medium::PointToPoint && start == self.free_from;
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

    pub(crate) fn dropped(
        &mut self,
        link: LinkId,
        wire_bytes: u32,
        reason: DropReason,
        details: &mut LinkDetails,
        log: &mut FailureLog,
    ) {
        let bytes = u64::from(wire_bytes);
        if reason == DropReason::Loss {
            // The loss model takes a frame on its way: it was, or will be, reported as transmitted as well.
            details.lost_frames += 1;
            details.lost_bytes += bytes;
            return;
        }
        details.dropped_frames += 1;
        details.dropped_bytes += bytes;
        self.left_frames += 1;
        self.left_bytes += bytes;
        if self.left_frames > self.offered_frames {
            let (left, came) = (self.left_frames, self.offered_frames);
            log.note(Rule::LinkConservation, Subject::Link(link), Instant::from_nanos(self.free_from), || {
                format!("expected at most {came} frames transmitted and dropped, as many as were offered, found {left}")
            });
        }
    }

    /// The balance after the run.
    pub(crate) fn finish(&self, link: LinkId, end: LinkEnd, details: &LinkDetails, log: &mut FailureLog) {
        let subject = Subject::Link(link);
        for (what, offered, left, dropped, queued, lost) in [
            (
                "frames",
                self.offered_frames,
                self.left_frames,
                details.dropped_frames,
                end.queued_frames,
                details.lost_frames,
            ),
            ("bytes", self.offered_bytes, self.left_bytes, details.dropped_bytes, end.queued_bytes, details.lost_bytes),
        ] {
            let transmitted = left.saturating_sub(dropped);
            if left.checked_add(queued) != Some(offered) {
                log.note(Rule::LinkConservation, subject, Instant::NEVER, || {
                    format!(
                        "expected {offered} {what} offered to be found again, found {transmitted} transmitted + \
                         {dropped} dropped + {queued} queued"
                    )
                });
            }
            if lost > transmitted {
                log.note(Rule::LinkConservation, subject, Instant::NEVER, || {
                    format!("expected at most {transmitted} {what} lost on the way, all transmitted, found {lost}")
                });
            }
        }
    }

    pub(crate) fn transmitted_frames(&self, details: &LinkDetails) -> u64 {
        self.left_frames.saturating_sub(details.dropped_frames)
    }

    pub(crate) fn offered_frames(&self) -> u64 {
        self.offered_frames
    }
}
