//! The audit of a link's queue, frame by frame: its order and its limit.
//!
//! Transmissions can be reported when a frame arrives or when it departs, possibly ahead of the clock. Only the times
//! of the events of one link and their order are used here. Consider the arrival of a frame at a queue that keeps
//! order. The waiting frames are then those that were reported before this frame and start later than it arrives. The
//! frame itself also waits, unless it starts immediately. A frame that starts at the instant at which another arrives
//! does not wait anymore.

use crate::declared::{DeclaredLink, DeclaredQueueLimit, MediumAccess};
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::Transmission;
use fullpipe_units::{FlowId, Instant, LinkId, words};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of frames stored per queue. A queue that holds more is no longer checked.
const MAX_REMEMBERED: usize = 1 << 20;

/// The frames that one sender has transmitted.
#[derive(Clone, Debug, Default)]
struct Sender {
    /// Start time and bytes of the frames that waited when the last frame arrived, in order.
    waiting: VecDeque<(u64, u32)>,
    waiting_bytes: u64,
    last_offered: u64,
}

/// Checks the queue of one link, or the queues of all stations of a shared medium.
#[derive(Clone, Debug)]
pub(crate) struct QueueChecker {
    link: LinkId,
    promise: DeclaredQueueLimit,
    /// Whether the order and the limit of the queue are checked.
    pub(crate) in_order: bool,
    /// Whether the link is a shared medium. Its stations have separate queues, which are distinguished by flow.
    shared: bool,
    senders: BTreeMap<FlowId, Sender>,
    /// Bytes of the frames that arrived but were neither transmitted nor dropped, in order of arrival. Not used on a
    /// shared medium, where events do not identify the station to which a frame was offered.
    came: VecDeque<u32>,
    given_up: bool,
    /// When the last frame started, for failures of events without a time.
    last_start: Instant,
    pub(crate) order_checks: u64,
    pub(crate) limit_checks: u64,
}

impl QueueChecker {
    pub(crate) fn new(link: LinkId, declared: &DeclaredLink) -> Self {
        QueueChecker {
            link,
            promise: declared.queue.unwrap_or_default(),
            in_order: declared.medium != MediumAccess::Scheduled,
            shared: declared.medium == MediumAccess::HalfDuplex,
            senders: BTreeMap::new(),
            came: VecDeque::new(),
            given_up: false,
            last_start: Instant::ZERO,
            order_checks: 0,
            limit_checks: 0,
        }
    }

    /// Returns whether every frame can be identified by its order of arrival.
    fn follows(&self) -> bool {
        self.in_order && !self.shared && !self.given_up
    }

    pub(crate) fn offered(&mut self, wire_bytes: u32) {
        if !self.follows() {
            return;
        }
        if self.came.len() == MAX_REMEMBERED {
            self.given_up = true;
            self.came = VecDeque::new();
            return;
        }
        self.came.push_back(wire_bytes);
    }

    pub(crate) fn dropped(&mut self, wire_bytes: u32, log: &mut FailureLog) {
        if !self.follows() {
            return;
        }
        // Drop-tail drops the frame that arrived last. A frame that a later stage of the queue drops is identified by
        // its size.
        match self.came.iter().rposition(|bytes| *bytes == wire_bytes) {
            Some(position) => {
                self.came.remove(position);
            }
            None => log.note(Rule::QueueOrder, Subject::Link(self.link), self.last_start, || {
                format!(
                    "expected a dropped frame to be in the queue, found one of {} that is not",
                    words::format_exact_bytes(wire_bytes)
                )
            }),
        }
    }

    pub(crate) fn transmitted(&mut self, frame: &Transmission, log: &mut FailureLog) {
        if !self.in_order {
            return;
        }
        self.last_start = frame.start;
        let subject = Subject::Link(self.link);
        if self.follows() {
            self.order_checks += 1;
            let (first, found) = (self.came.pop_front(), frame.wire_bytes);
            if first != Some(found) {
                log.note(Rule::QueueOrder, subject, frame.start, || match first {
                    Some(expected) => {
                        let (expected, found) = (words::format_exact_bytes(expected), words::format_exact_bytes(found));
                        format!("expected the frame of {expected} that arrived first, found one of {found}")
                    }
                    None => format!(
                        "expected no frame from an empty queue, found one of {}",
                        words::format_exact_bytes(found)
                    ),
                });
            }
        }
        let sender = if self.shared { frame.flow } else { FlowId::default() };
        if self.shared && frame.flow == FlowId(u32::MAX) {
            // Frames without a flow (ARP) can be from any station.
            return;
        }
        self.senders.entry(sender).or_default().transmitted(frame, self.promise, self.shared, subject, log);
        self.order_checks += u64::from(self.shared);
        self.limit_checks += u64::from(self.promise.packets.is_some() || self.promise.bytes.is_some());
    }
}

impl Sender {
    fn transmitted(
        &mut self,
        frame: &Transmission,
        promise: DeclaredQueueLimit,
        shared: bool,
        subject: Subject,
        log: &mut FailureLog,
    ) {
        let (offered, start) = (frame.offered.as_nanos(), frame.start.as_nanos());
        if offered < self.last_offered {
            let last = self.last_offered;
            log.note(Rule::QueueOrder, subject, frame.start, || {
                let (offered, last) = (words::format_exact_time(offered), words::format_exact_time(last));
                format!("expected frames in order of arrival, found one that arrived at {offered} after one of {last}")
            });
        }
        self.last_offered = offered;
        while let Some(&(begin, bytes)) = self.waiting.front() {
            if begin > offered {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
        }
        if start <= offered {
            return;
        }
        if self.waiting.len() < MAX_REMEMBERED {
            self.waiting.push_back((start, frame.wire_bytes));
            self.waiting_bytes += u64::from(frame.wire_bytes);
        }
        // The first frame at a shared medium has left the queue and waits in the transmitter for the medium.
        let first = if shared { self.waiting.front().map_or(0, |(_, bytes)| u64::from(*bytes)) } else { 0 };
        let packets = self.waiting.len() as u64 - u64::from(shared);
        let bytes = self.waiting_bytes - first;
        let at = frame.offered;
        let in_words: [fn(u64) -> String; 2] =
            [|packets| words::format_count(packets, "packet"), words::format_exact_bytes];
        for (text, found, limit) in [(in_words[0], packets, promise.packets), (in_words[1], bytes, promise.bytes)] {
            if let Some(limit) = limit
                && found > limit
            {
                log.note(Rule::QueueLimit, subject, at, || {
                    format!("expected at most {} in the queue, found {}", text(limit), text(found))
                });
            }
        }
    }
}
