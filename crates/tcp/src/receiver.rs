//! The receiver of an open connection: received data, the announced window, and the times of acknowledgments.
//!
//! **Model.** Bytes in order are buffered until the application reads them. Bytes beyond a gap are kept as ranges in
//! the same buffer, so the window's end is the read offset plus the buffer size (RFC 9293 section 3.8.6). While less
//! than half of the buffer is free, the window's end advances only in steps of a segment (section 3.8.6.2.2). In-order
//! data is acknowledged for every n-th segment or after a delay. All other data is acknowledged immediately (RFC 5681
//! section 4.2), with the ranges held (RFC 2018) and the duplicate, if any (RFC 2883). When a sender depends most on
//! acknowledgments, each segment is acknowledged separately ([`crate::quick_ack`]).

use crate::Config;
use crate::quick_ack::QuickAck;
use crate::sequence::SequenceSpace;
use crate::tuning::ReceiveBufferTuning;
use bytes::Bytes;
use fullpipe_transport::Payload;
use fullpipe_transport::buffers::ByteStore;
use fullpipe_transport::ranges::{OffsetRange, RangeSet};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::SackBlock;
use fullpipe_wire::tcp::MAX_SACK_BLOCKS;

/// The acknowledgment that the payload or FIN of a segment requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckTiming {
    /// None yet: the acknowledgment is delayed.
    Delayed,
    /// An acknowledgment now, with data if data is sent.
    Immediate,
    /// A pure acknowledgment, before any data.
    BeforeData,
}

/// Data beyond a gap.
#[derive(Debug, Default)]
struct Reassembly {
    held: RangeSet,
    /// An offset within each of the most recently changed ranges, newest first.
    recent: [u64; MAX_SACK_BLOCKS],
    recent_count: u8,
    /// The duplicate to report in the next acknowledgment.
    duplicate: Option<OffsetRange>,
}

/// The receiver.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Offset up to which everything has arrived; the FIN counts as one.
    pub(crate) next: u64,
    /// Offset up to which the application has read.
    pub(crate) read: u64,
    /// The last announced end of the window.
    window_end: u64,
    /// `next` in the last acknowledgment.
    pub(crate) acknowledged: u64,
    buffer_bytes: u64,
    /// Time of the last data, or [`Instant::ZERO`].
    last_data_at: Instant,
    /// Offset of the FIN; `u64::MAX` until it arrives.
    fin: u64,
    /// Deadline of a delayed acknowledgment.
    pub(crate) ack_at: Instant,
    /// Segments since the last acknowledgment.
    unacknowledged: u32,
    pub(crate) duplicates: u32,
    /// Next time to check the growth of the buffer.
    pub(crate) tune_at: Instant,
    /// State of the buffer's growth, from the first data on.
    tuning: Option<Box<ReceiveBufferTuning>>,
    reassembly: Option<Box<Reassembly>>,
    bytes: Option<Box<ByteStore>>,
    mss_bytes: u32,
    /// Largest window that the field can represent.
    most_window_bytes: u32,
    /// Number of unacknowledged segments that triggers an acknowledgment.
    ack_threshold: u8,
    delayed_ack_segments: u8,
    /// Whether the buffer may grow.
    growing: bool,
    pub(crate) quick_ack: QuickAck,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let buffer_bytes = config.first_receive_buffer_bytes();
        let delayed_ack_segments = config.delayed_ack_segments.min(255) as u8;
        let grows = buffer_bytes < config.receive_buffer_bytes;
        Receiver {
            next: 0,
            read: 0,
            window_end: buffer_bytes,
            acknowledged: 0,
            buffer_bytes,
            last_data_at: Instant::ZERO,
            fin: u64::MAX,
            ack_at: Instant::NEVER,
            unacknowledged: 0,
            duplicates: 0,
            tune_at: if grows { Instant::ZERO } else { Instant::NEVER },
            tuning: None,
            reassembly: None,
            bytes: None,
            mss_bytes: config.mss_bytes,
            most_window_bytes: u32::MAX,
            ack_threshold: if config.first_segment_acknowledged_at_once || config.quick_ack {
                1
            } else {
                delayed_ack_segments
            },
            delayed_ack_segments,
            growing: false,
            quick_ack: QuickAck::new(config),
        }
    }

    /// Limits the buffer to the largest window that the field can represent.
    pub(crate) fn limit_window(&mut self, most_bytes: u32) {
        self.most_window_bytes = self.most_window_bytes.min(most_bytes);
        self.buffer_bytes = self.buffer_bytes.min(u64::from(most_bytes));
        self.window_end = self.window_end.min(self.limit());
    }

    /// Ends reception; unread data can still be read.
    pub(crate) fn close(&mut self) {
        self.ack_at = Instant::NEVER;
        self.tune_at = Instant::NEVER;
        self.tuning = None;
        self.growing = false;
        self.reassembly = None;
        let next = self.next.min(self.fin);
        if let Some(bytes) = &mut self.bytes {
            bytes.remove_from(next);
        }
    }

    /// Lets the buffer grow if the data read in the last round trip requires it. `rtt` is a round-trip time of this
    /// end's acknowledgments, measured from timestamps.
    pub(crate) fn tune(&mut self, config: &Config, now: Instant, rtt: Option<Duration>) {
        let (window_end, most_bytes) = (self.window_end, u64::from(self.most_window_bytes));
        let tuning = self.tuning.get_or_insert_with(|| Box::new(ReceiveBufferTuning::new(config, most_bytes)));
        self.tune_at = tuning.on_data(now, rtt, self.next, window_end);
        let Some(bytes) = tuning.wanted_bytes(now, self.read) else { return };
        if self.quick_ack.is_on() {
            // Linux announces the new size in steps, and sends an acknowledgment for each step.
            tuning.granted_bytes = bytes;
            self.growing = true;
            self.ack_threshold = 1;
        } else {
            self.buffer_bytes = self.buffer_bytes.max(bytes);
        }
    }

    /// First offset that does not fit in the buffer.
    #[inline(always)]
    pub(crate) fn limit(&self) -> u64 {
        self.read.saturating_add(self.buffer_bytes)
    }

    /// Unread bytes in order.
    #[inline(always)]
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.next.min(self.fin) - self.read
    }

    /// Bytes of the stream that arrived in order.
    pub(crate) fn in_order_bytes(&self) -> u64 {
        self.next.min(self.fin)
    }

    /// Whether the FIN and all data before it have arrived.
    #[inline(always)]
    pub(crate) fn is_finished(&self) -> bool {
        self.next > self.fin
    }

    fn has_gap(&self) -> bool {
        self.reassembly.as_ref().is_some_and(|reassembly| !reassembly.held.is_empty())
    }

    /// Processes a payload of `length` bytes at `start`, with a FIN after it if `fin`. It overlaps the window.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        config: &Config,
        now: Instant,
        start: i64,
        length: u64,
        fin: bool,
        payload: Option<&Bytes>,
    ) -> AckTiming {
        if start == self.next as i64
            && !fin
            && self.fin == u64::MAX
            && start as u64 + length <= self.limit()
            && !self.has_gap()
        {
            if payload.is_some() || self.bytes.is_some() {
                self.keep(start as u64, length, payload);
            }
            self.next += length;
            return self.delay(config, now);
        }
        self.on_unusual_data(config, now, start, length, fin, payload)
    }

    /// Whether [`Receiver::take_expected`] is sufficient for this many bytes in order. They must fit, no data may be
    /// missing, no payload bytes may be stored, and the last data must have arrived less than `silence` ago.
    #[inline(always)]
    pub(crate) fn expects(&self, now: Instant, length: u64, silence: Duration) -> bool {
        self.fin == u64::MAX
            && now.saturating_since(self.last_data_at) < silence
            && self.next + length <= self.limit()
            && self.bytes.is_none()
            && !self.has_gap()
    }

    /// Receives `length` bytes in order and reads all data. Returns whether an acknowledgment is due, and the bytes
    /// read.
    #[inline(always)]
    pub(crate) fn take_expected(&mut self, config: &Config, now: Instant, length: u64) -> (bool, u64) {
        self.last_data_at = now;
        self.next += length;
        let is_due = self.delay(config, now) == AckTiming::Immediate;
        let read = self.next - self.read;
        self.read = self.next;
        (is_due || self.wants_window_update(), read)
    }

    /// Processes in-order data: every n-th segment is acknowledged immediately, the others after the delay (RFC 9293
    /// section 3.8.6.3).
    #[inline(always)]
    fn delay(&mut self, config: &Config, now: Instant) -> AckTiming {
        self.unacknowledged += 1;
        if self.unacknowledged >= u32::from(self.ack_threshold) {
            self.ack_threshold = self.delayed_ack_segments;
            if self.quick_ack.is_active() || self.growing {
                self.go_on_quickly();
            }
            return AckTiming::Immediate;
        }
        if self.ack_at.is_never() {
            self.ack_at = now.saturating_add(config.delayed_ack_timeout);
        }
        AckTiming::Delayed
    }

    /// Returns the time since the last data, and records the arrival of new data.
    #[inline(always)]
    pub(crate) fn silence(&mut self, now: Instant) -> Duration {
        now.saturating_since(std::mem::replace(&mut self.last_data_at, now))
    }

    /// Records the departure of data, which may be a response.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        if self.is_answer(now) {
            self.converse();
        }
    }

    /// Whether data sent now is the first response to received data.
    #[inline(always)]
    pub(crate) fn is_answer(&self, now: Instant) -> bool {
        self.last_data_at > Instant::ZERO && self.quick_ack.is_answer(now.saturating_since(self.last_data_at))
    }

    /// Processes a delayed acknowledgment that is sent without data.
    pub(crate) fn on_delay_over(&mut self) {
        self.ack_at = Instant::NEVER;
        self.quick_ack.on_delay_over();
        self.expect_quick();
    }

    #[cold]
    fn converse(&mut self) {
        self.quick_ack.converse();
        if !self.growing {
            self.ack_threshold = self.delayed_ack_segments;
        }
    }

    /// Starts quick acknowledgments because the sender may have restarted, unless the connection is interactive.
    #[cold]
    pub(crate) fn begin_again(&mut self) {
        self.quick_ack.begin_again();
        self.expect_quick();
    }

    /// Starts `count` quick acknowledgments because the sender's window may be small.
    #[cold]
    pub(crate) fn enter_quick(&mut self, count: u8) {
        self.quick_ack.enter(count);
        self.expect_quick();
    }

    fn expect_quick(&mut self) {
        if self.quick_ack.is_active() || self.growing {
            self.ack_threshold = 1;
        }
    }

    /// Processes a segment that is acknowledged separately. A buffer that may grow grows by two segments, and the next
    /// segment may also be acknowledged immediately.
    #[cold]
    fn go_on_quickly(&mut self) {
        self.grow();
        self.quick_ack.on_acknowledged();
        self.expect_quick();
    }

    /// Lets the buffer grow by two segments, up to the granted size (Linux `tcp_grow_window`).
    fn grow(&mut self) {
        let Some(tuning) = self.tuning.as_ref().filter(|_| self.growing) else { return };
        let step = 2 * u64::from(self.mss_bytes);
        let bytes = tuning.granted_bytes.min(self.buffer_bytes.saturating_add(step));
        self.growing = bytes > self.buffer_bytes && bytes < tuning.granted_bytes;
        self.buffer_bytes = self.buffer_bytes.max(bytes);
    }

    /// Whether the next segment in order is acknowledged immediately, with or without FIN.
    pub(crate) fn next_is_acknowledged(&self) -> bool {
        self.unacknowledged + 1 >= u32::from(self.ack_threshold)
    }

    #[cold]
    fn on_unusual_data(
        &mut self,
        config: &Config,
        now: Instant,
        start: i64,
        length: u64,
        fin: bool,
        payload: Option<&Bytes>,
    ) -> AckTiming {
        let begin = start.max(0) as u64;
        let whole_end = start.saturating_add(length as i64).max(0) as u64;
        // Data beyond the buffer, or beyond a FIN received before, is discarded; a discarded FIN will be retransmitted.
        let data_end = whole_end.min(self.limit()).min(self.fin);
        if fin
            && self.fin == u64::MAX
            && whole_end == data_end
            && whole_end >= self.next
            && self.fits_before_fin(whole_end)
        {
            self.fin = whole_end;
        }
        let end = if data_end == self.fin { data_end + 1 } else { data_end };
        if config.dsack {
            self.note_duplicate(begin, data_end);
        }
        if end <= self.next {
            let old_end = whole_end.min(self.next);
            if begin < old_end {
                self.duplicates = self.duplicates.saturating_add(1);
                self.enter_quick(u8::MAX);
            }
            return AckTiming::BeforeData;
        }
        let from = begin.max(self.next);
        if from >= end {
            return AckTiming::BeforeData;
        }
        if payload.is_some() || self.bytes.is_some() {
            self.keep_part(begin, data_end, payload);
        }
        let in_order = from == self.next;
        let had_gap = self.has_gap();
        if in_order && !had_gap {
            self.next = end;
            // A FIN is acknowledged immediately, as is a segment with duplicate data.
            return if self.is_finished() {
                AckTiming::Immediate
            } else if begin < from {
                AckTiming::BeforeData
            } else {
                self.delay(config, now)
            };
        }
        self.grow();
        let reassembly = self.reassembly.get_or_insert_default();
        if reassembly.held.covers(from, end) {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        let range = reassembly.held.insert(from, end, |_, _| {});
        if range.0 <= self.next {
            self.next = range.1;
            reassembly.held.remove_below(range.1);
        } else {
            reassembly.note(from);
        }
        AckTiming::BeforeData
    }

    /// Records a segment that is dropped because its timestamp is old. If its data had arrived before, the next
    /// acknowledgment reports it (RFC 2883), as in Linux (`tcp_send_dupack`): the sender learns that its retransmission
    /// was unnecessary even if the original arrives after later segments.
    pub(crate) fn note_old_segment(&mut self, config: &Config, start: i64, end: i64) {
        let (begin, end) = (start.max(0) as u64, (end.max(0) as u64).min(self.next));
        if begin < end {
            self.duplicates = self.duplicates.saturating_add(1);
            self.enter_quick(u8::MAX);
            if config.dsack {
                self.note_duplicate(begin, end);
            }
        }
    }

    /// Records the first contiguous part of `begin..end` that had arrived before, for a report in the next
    /// acknowledgment (RFC 2883 section 4: one block, even if there are several such parts).
    fn note_duplicate(&mut self, begin: u64, end: u64) {
        let known = if begin < self.next {
            Some((begin, end.min(self.next)))
        } else {
            self.reassembly.as_ref().and_then(|reassembly| reassembly.held.first_overlap(begin, end))
        };
        if let Some((from, to)) = known.filter(|(from, to)| from < to) {
            self.reassembly.get_or_insert_default().duplicate = Some((from, to));
        }
    }

    /// Whether a FIN at `offset` is consistent: nothing beyond it has arrived.
    fn fits_before_fin(&self, offset: u64) -> bool {
        let highest =
            self.reassembly.as_ref().and_then(|reassembly| reassembly.held.as_slice().last()).map_or(0, |r| r.1);
        highest <= offset
    }

    #[cold]
    fn keep(&mut self, start: u64, length: u64, payload: Option<&Bytes>) {
        self.keep_part(start, start + length, payload);
    }

    /// Stores the new part of the payload at `start` that is before `end`.
    fn keep_part(&mut self, start: u64, end: u64, payload: Option<&Bytes>) {
        let Some(payload) = payload else { return };
        let length = end.saturating_sub(start).min(payload.len() as u64);
        let floor = self.next;
        self.bytes.get_or_insert_default().insert(start, payload.slice(..length as usize), floor);
    }

    /// Returns at most `max_bytes` to the application.
    #[inline]
    pub(crate) fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let length = self.readable_bytes().min(max_bytes);
        if length == 0 {
            return None;
        }
        let payload = match &mut self.bytes {
            None => Payload::Length(length),
            Some(bytes) => bytes.take(self.read, self.read + length),
        };
        self.read += payload.len();
        Some(payload)
    }

    /// Whether reading has opened the window so far that the peer needs a window update. This is the case if less than
    /// half of the buffer was left, and the window is now at least twice as large and one segment larger (as in Linux
    /// `tcp_cleanup_rbuf`).
    #[inline]
    pub(crate) fn wants_window_update(&self) -> bool {
        let left = self.window_end.saturating_sub(self.next);
        let now = self.limit().saturating_sub(self.next);
        left < self.buffer_bytes / 2 && now >= left.saturating_mul(2) && now - left >= self.step()
    }

    /// The step in which a small window opens, in bytes.
    fn step(&self) -> u64 {
        u64::from(self.mss_bytes).min(self.buffer_bytes / 2).max(1)
    }

    /// Returns the window to announce, in bytes.
    #[inline]
    pub(crate) fn window_bytes(&mut self) -> u64 {
        let limit = self.limit();
        let free = limit.saturating_sub(self.next);
        if free >= self.buffer_bytes / 2 || limit - self.window_end.min(limit) >= self.step() {
            self.window_end = limit;
        }
        self.window_end.saturating_sub(self.next)
    }

    /// Records the departure of an acknowledgment.
    #[inline(always)]
    pub(crate) fn on_ack_sent(&mut self) {
        self.acknowledged = self.next;
        self.unacknowledged = 0;
        self.ack_at = Instant::NEVER;
    }

    /// Returns at most `most` SACK blocks: a duplicate first, then the most recently changed range (RFC 2018 section 4,
    /// RFC 2883 section 4).
    #[inline]
    pub(crate) fn sack_blocks(
        &mut self,
        numbering: SequenceSpace,
        most: usize,
        blocks: &mut [SackBlock; MAX_SACK_BLOCKS],
    ) -> u8 {
        match &mut self.reassembly {
            Some(reassembly) if !reassembly.held.is_empty() || reassembly.duplicate.is_some() => {
                reassembly.blocks(numbering, most, blocks)
            }
            _ => 0,
        }
    }
}

impl Reassembly {
    /// Records new data at `offset` beyond the gap.
    fn note(&mut self, offset: u64) {
        let range = self.held.find(offset);
        let count = usize::from(self.recent_count);
        let mut recent = [offset; MAX_SACK_BLOCKS];
        let mut kept = 1;
        for &other in &self.recent[..count] {
            let same = range.is_some_and(|range| range.0 <= other && other < range.1);
            if kept < MAX_SACK_BLOCKS && !same {
                recent[kept] = other;
                kept += 1;
            }
        }
        self.recent = recent;
        self.recent_count = kept as u8;
    }

    fn blocks(&mut self, numbering: SequenceSpace, most: usize, blocks: &mut [SackBlock; MAX_SACK_BLOCKS]) -> u8 {
        let mut count = 0;
        let mut add = |range: OffsetRange| {
            if count < most {
                blocks[count] = SackBlock { start: numbering.to_wire(range.0), end: numbering.to_wire(range.1) };
                count += 1;
            }
        };
        if let Some(duplicate) = self.duplicate.take() {
            add(duplicate);
        }
        if !self.held.is_empty() {
            let mut told = [u64::MAX; 2 * MAX_SACK_BLOCKS];
            let recent = &self.recent[..usize::from(self.recent_count)];
            // Ranges evicted by more recent changes follow, the highest first.
            let others = self.held.as_slice().iter().rev().take(MAX_SACK_BLOCKS).copied();
            let ranges = recent.iter().filter_map(|offset| self.held.find(*offset)).chain(others);
            for (index, range) in ranges.enumerate() {
                // Ranges can merge: each is reported once.
                if !told.contains(&range.0) {
                    told[index] = range.0;
                    add(range);
                }
            }
        }
        count as u8
    }
}
