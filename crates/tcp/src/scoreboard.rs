//! The scoreboard: a record per segment sent and not yet cumulatively acknowledged, in stream order, with its selective
//! acknowledgments (RFC 6675 section 3).
//!
//! A segment is in flight unless it was selectively acknowledged or is marked lost. Original transmissions are also
//! ordered by time, so time-based loss detection needs one pointer that only moves forward. Retransmissions have their
//! own queue, also ordered by time. No operation scans the whole window for an acknowledgment.
//!
//! State that only losses need is separate, and is created at the first loss.

use crate::recovery::Prr;
use crate::undo::UndoCandidate;
use fullpipe_congestion::PacketState;
use fullpipe_transport::ranges::RangeSet;
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// Flags of a [`SegmentRecord`].
pub(crate) mod flag {
    /// Selectively acknowledged.
    pub(crate) const SACKED: u8 = 1;
    /// Marked lost and not retransmitted since.
    pub(crate) const LOST: u8 = 2;
    /// Sent more than once.
    pub(crate) const RETRANSMITTED: u8 = 4;
    /// The last sequence number is the FIN.
    pub(crate) const FIN: u8 = 8;
    /// Sent while the application limited sending, not the window.
    pub(crate) const APP_LIMITED: u8 = 16;
}

/// A sent segment, with the state at its last transmission. Two records fill a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRecord {
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Time of the last transmission.
    pub(crate) sent_at: Instant,
    /// Low halves of the counts of bytes delivered and lost, which increase by less than 4 GB while a segment is
    /// outstanding.
    delivered_bytes: u32,
    lost_bytes: u32,
    in_flight_bytes: u32,
    /// Number of sequence numbers: payload bytes, plus one for a FIN.
    pub(crate) length: u16,
    /// Flags, as in [`flag`].
    pub(crate) flags: u8,
}

impl SegmentRecord {
    pub(crate) fn new(start: u64, payload_bytes: u64, fin: bool, state: &PacketState) -> SegmentRecord {
        let mut segment = SegmentRecord {
            start,
            sent_at: Instant::ZERO,
            delivered_bytes: 0,
            lost_bytes: 0,
            in_flight_bytes: 0,
            length: payload_bytes as u16 + u16::from(fin),
            flags: if fin { flag::FIN } else { 0 },
        };
        segment.stamp(state);
        segment
    }

    /// Records the state at a transmission.
    #[inline(always)]
    fn stamp(&mut self, state: &PacketState) {
        self.sent_at = state.sent_at;
        self.delivered_bytes = state.delivered_bytes as u32;
        self.lost_bytes = state.lost_bytes as u32;
        self.in_flight_bytes = u32::try_from(state.in_flight_bytes).unwrap_or(u32::MAX);
        self.flags = self.flags & !flag::APP_LIMITED | if state.app_limited { flag::APP_LIMITED } else { 0 };
    }

    /// Makes this the record of the next segment of a burst, with the same length and state.
    #[inline(always)]
    pub(crate) fn step(&mut self) {
        self.start += u64::from(self.length);
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(u32::from(self.length));
    }

    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    #[inline(always)]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    #[inline(always)]
    pub(crate) fn in_flight(&self) -> bool {
        !self.has(flag::SACKED | flag::LOST)
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.length)
    }

    #[inline(always)]
    pub(crate) fn payload_bytes(&self) -> u64 {
        u64::from(self.length) - u64::from(self.has(flag::FIN))
    }

    /// Returns the sample for the congestion control; `delivered_bytes` and `lost_bytes` are the connection's current
    /// counts.
    #[inline(always)]
    pub(crate) fn packet_state(&self, sample: RateSampleState, delivered_bytes: u64, lost_bytes: u64) -> PacketState {
        PacketState {
            sent_at: self.sent_at,
            bytes: self.bytes(),
            delivered_bytes: earlier(delivered_bytes, self.delivered_bytes),
            delivered_at: sample.delivered_at,
            first_sent_at: sample.first_sent_at,
            in_flight_bytes: u64::from(self.in_flight_bytes),
            lost_bytes: earlier(lost_bytes, self.lost_bytes),
            app_limited: self.has(flag::APP_LIMITED),
        }
    }
}

/// The earlier value of a count whose low half was `low` and whose value is now `now`.
#[inline(always)]
fn earlier(now: u64, low: u32) -> u64 {
    now.saturating_sub(u64::from((now as u32).wrapping_sub(low)))
}

/// Additional data of a segment for delivery-rate samples; zero if none are taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSampleState {
    delivered_at: Instant,
    first_sent_at: Instant,
}

impl RateSampleState {
    fn new(state: &PacketState) -> RateSampleState {
        RateSampleState { delivered_at: state.delivered_at, first_sent_at: state.first_sent_at }
    }
}

/// State that only losses and reordering need.
#[derive(Debug, Default)]
pub(crate) struct LossRecord {
    /// Selectively acknowledged ranges, in whole segments.
    pub(crate) sacked: RangeSet,
    pub(crate) sacked_bytes: u64,
    pub(crate) sacked_segments: u32,
    /// Bytes marked lost and not retransmitted since.
    pub(crate) lost_bytes: u64,
    /// First offsets of segments marked lost, in order. Some may have been acknowledged since.
    lost: VecDeque<u64>,
    /// Send time and first offset of retransmissions, in order of time. Some may have been acknowledged since.
    pub(crate) retransmissions: VecDeque<(Instant, u64)>,
    /// All original transmissions in flight before this offset have been examined.
    pub(crate) examined: u64,
    /// The rate reduction of the current fast recovery.
    pub(crate) prr: Prr,
    /// The last reduction after a loss, while it may still be undone.
    pub(crate) episode: Option<UndoCandidate>,
    /// First offset and length of segments marked lost since the last query, if they are recorded.
    pub(crate) noted: Option<Vec<(u64, u16)>>,
}

/// The segments that [`Scoreboard::acknowledge_originals`] removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedOriginals {
    /// Total bytes; 0 if it removed none.
    pub(crate) bytes: u64,
    /// End and send time of the last segment, and the low half of the count of bytes delivered when it was sent. A copy
    /// of the whole record would be kept in memory.
    pub(crate) end: u64,
    pub(crate) sent_at: Instant,
    delivered_bytes: u32,
    /// Whether nothing else was acknowledged.
    pub(crate) are_all: bool,
}

impl AckedOriginals {
    /// Bytes delivered on the connection when the last one was sent; `delivered_bytes` is the current count.
    #[inline(always)]
    pub(crate) fn prior_delivered_bytes(&self, delivered_bytes: u64) -> u64 {
        earlier(delivered_bytes, self.delivered_bytes)
    }
}

/// The outstanding segments.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    pub(crate) segments: VecDeque<SegmentRecord>,
    /// The sample of each segment, if delivery-rate samples are taken.
    #[expect(clippy::box_collection, reason = "most connections of a large run take none, and are small")]
    pub(crate) samples: Option<Box<VecDeque<RateSampleState>>>,
    /// Bytes in flight.
    pub(crate) in_flight_bytes: u64,
    mss_bytes: u64,
    pub(crate) loss: Option<Box<LossRecord>>,
}

impl Scoreboard {
    /// Creates an empty scoreboard. `sampled` states whether delivery-rate samples are taken.
    pub(crate) fn new(mss_bytes: u64, sampled: bool) -> Scoreboard {
        let samples = sampled.then(Box::default);
        Scoreboard { segments: VecDeque::new(), samples, in_flight_bytes: 0, mss_bytes, loss: None }
    }

    /// The sample data of a segment.
    #[inline(always)]
    fn sample(&self, index: usize) -> RateSampleState {
        self.samples.as_ref().map_or(RateSampleState::default(), |samples| samples[index])
    }

    #[inline(always)]
    fn pop_front(&mut self) {
        self.segments.pop_front();
        if let Some(samples) = &mut self.samples {
            samples.pop_front();
        }
    }

    /// Releases the memory of the records, which must be empty.
    pub(crate) fn release_records(&mut self) {
        self.segments = VecDeque::new();
        self.samples = self.samples.is_some().then(Box::default);
    }

    pub(crate) fn set_mss(&mut self, mss_bytes: u64) {
        self.mss_bytes = mss_bytes;
    }

    /// Whether any segment is selectively acknowledged, lost, or retransmitted and not yet acknowledged.
    #[inline(always)]
    pub(crate) fn is_troubled(&self) -> bool {
        match &self.loss {
            None => false,
            Some(loss) => loss.sacked_segments > 0 || loss.lost_bytes > 0 || !loss.retransmissions.is_empty(),
        }
    }

    #[inline(always)]
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.loss.as_ref().map_or(0, |loss| loss.lost_bytes)
    }

    #[inline(always)]
    pub(crate) fn sacked_segments(&self) -> u32 {
        self.loss.as_ref().map_or(0, |loss| loss.sacked_segments)
    }

    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.loss.as_ref().map_or(0, |loss| loss.sacked_bytes)
    }

    /// Adds a segment that was sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, segment: SegmentRecord, state: &PacketState) {
        self.in_flight_bytes += segment.bytes();
        self.segments.push_back(segment);
        if let Some(samples) = &mut self.samples {
            samples.push_back(RateSampleState::new(state));
        }
    }

    /// Index of the first segment that begins at or after `offset`. Most segments have the same size, so the index is
    /// computed; if that fails, a binary search finds it.
    pub(crate) fn position(&self, offset: u64) -> usize {
        let Some(first) = self.segments.front() else { return 0 };
        if offset <= first.start {
            return 0;
        }
        let guess = ((offset - first.start) / self.mss_bytes.max(1)) as usize;
        if self.segments.get(guess).is_some_and(|segment| segment.start == offset) {
            return guess;
        }
        self.segments.partition_point(|segment| segment.start < offset)
    }

    /// Index of the segment that begins exactly at `offset`.
    fn find(&self, offset: u64) -> Option<usize> {
        let index = self.position(offset);
        self.segments.get(index).filter(|segment| segment.start == offset).map(|_| index)
    }

    /// Processes a cumulative acknowledgment up to `acknowledged`. Calls `delivered` for each newly acknowledged
    /// segment.
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        acknowledged: u64,
        mut delivered: impl FnMut(&SegmentRecord, RateSampleState),
    ) {
        while let Some(segment) = self.segments.front() {
            if segment.end() > acknowledged {
                if segment.start < acknowledged {
                    self.acknowledge_part(acknowledged, delivered);
                }
                break;
            }
            let sample = self.sample(0);
            if segment.in_flight() {
                self.in_flight_bytes -= segment.bytes();
                delivered(segment, sample);
            } else if let Some(loss) = &mut self.loss {
                if segment.has(flag::SACKED) {
                    loss.sacked_bytes -= segment.bytes();
                    loss.sacked_segments -= 1;
                } else {
                    loss.lost_bytes -= segment.bytes();
                    delivered(segment, sample);
                }
            }
            self.pop_front();
        }
        self.forget_below(acknowledged);
    }

    /// The usual case of [`Scoreboard::acknowledge`]: all outstanding segments are in flight. Calls `delivered` for the
    /// segments that arrived completely, and returns whether one arrived in part, which is not reported. `delivered`
    /// has one call site, so that it is inlined into the loop. As a separate function, with its copies, it cost 17 more
    /// instructions per data packet.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(
        &mut self,
        acknowledged: u64,
        mut delivered: impl FnMut(&SegmentRecord, RateSampleState),
    ) -> bool {
        while let Some(segment) = self.segments.front() {
            if segment.end() > acknowledged {
                return segment.start < acknowledged;
            }
            self.in_flight_bytes -= segment.bytes();
            delivered(segment, self.sample(0));
            self.pop_front();
        }
        false
    }

    /// The usual case of [`Scoreboard::acknowledge_whole`] without samples. Removes segments that were sent once and
    /// arrived completely, up to the first other one. They were sent in order, so the sample of the last one is valid
    /// for all.
    #[inline(always)]
    pub(crate) fn acknowledge_originals(&mut self, acknowledged: u64) -> AckedOriginals {
        debug_assert!(self.samples.is_none());
        let mut originals =
            AckedOriginals { bytes: 0, end: 0, sent_at: Instant::ZERO, delivered_bytes: 0, are_all: true };
        while let Some(segment) = self.segments.front() {
            let end = segment.end();
            if end > acknowledged {
                originals.are_all = segment.start >= acknowledged;
                break;
            }
            if segment.has(flag::RETRANSMITTED) {
                originals.are_all = false;
                break;
            }
            originals.bytes += segment.bytes();
            originals.end = end;
            originals.sent_at = segment.sent_at;
            originals.delivered_bytes = segment.delivered_bytes;
            self.segments.pop_front();
        }
        self.in_flight_bytes -= originals.bytes;
        originals
    }

    /// Removes the records of losses before `acknowledged`.
    #[inline(always)]
    pub(crate) fn forget_below(&mut self, acknowledged: u64) {
        if let Some(loss) = &mut self.loss {
            if self.segments.is_empty() {
                loss.lost.clear();
                loss.retransmissions.clear();
                loss.sacked.clear();
            } else if !loss.sacked.is_empty() {
                loss.sacked.remove_below(acknowledged);
            }
        }
    }

    /// Processes a partial acknowledgment of the first segment: the rest becomes a shorter segment.
    #[cold]
    fn acknowledge_part(&mut self, acknowledged: u64, mut delivered: impl FnMut(&SegmentRecord, RateSampleState)) {
        let sample = self.sample(0);
        let segment = &mut self.segments[0];
        let old_start = segment.start;
        let mut part = *segment;
        part.length = (acknowledged - old_start) as u16;
        part.flags &= !flag::FIN;
        segment.start = acknowledged;
        segment.length -= part.length;
        if part.in_flight() {
            self.in_flight_bytes -= part.bytes();
        }
        if let Some(loss) = &mut self.loss {
            if part.has(flag::SACKED) {
                loss.sacked_bytes -= part.bytes();
            } else if part.has(flag::LOST) {
                loss.lost_bytes -= part.bytes();
            }
            for start in loss.lost.iter_mut().chain(loss.retransmissions.iter_mut().map(|entry| &mut entry.1)) {
                if *start == old_start {
                    *start = acknowledged;
                }
            }
        }
        if !part.has(flag::SACKED) {
            delivered(&part, sample);
        }
    }

    /// Processes a SACK block. Calls `delivered` for each segment that is completely within `start..end` and newly
    /// acknowledged. Segments that are only partly within are unchanged.
    pub(crate) fn sack(&mut self, start: u64, end: u64, mut delivered: impl FnMut(&SegmentRecord, RateSampleState)) {
        if self.loss.as_ref().is_some_and(|loss| loss.sacked.covers(start, end)) {
            return;
        }
        let first = self.position(start);
        let mut after = self.position(end);
        if after > 0 && self.segments[after - 1].end() > end {
            after -= 1;
        }
        if first >= after {
            return;
        }
        let (low, high) = (self.segments[first].start, self.segments[after - 1].end());
        let mut loss = self.loss.take().unwrap_or_default();
        let mut sacked = std::mem::take(&mut loss.sacked);
        sacked.insert(low, high, |from, to| {
            let mut index = self.position(from);
            while let Some(segment) = self.segments.get_mut(index)
                && segment.start < to
            {
                let sample = self.samples.as_ref().map_or(RateSampleState::default(), |samples| samples[index]);
                index += 1;
                if segment.has(flag::SACKED) {
                    continue;
                }
                if segment.has(flag::LOST) {
                    loss.lost_bytes -= segment.bytes();
                } else {
                    self.in_flight_bytes -= segment.bytes();
                }
                delivered(segment, sample);
                segment.flags = segment.flags & !flag::LOST | flag::SACKED;
                loss.sacked_bytes += segment.bytes();
                loss.sacked_segments += 1;
            }
        });
        loss.sacked = sacked;
        self.loss = Some(loss);
    }

    pub(crate) fn loss_mut(&mut self) -> &mut LossRecord {
        self.loss.get_or_insert_default()
    }

    /// Marks a segment in flight as lost, and returns a copy of it and of its sample.
    pub(crate) fn mark_lost(&mut self, index: usize) -> (SegmentRecord, RateSampleState) {
        let sample = self.sample(index);
        let segment = &mut self.segments[index];
        debug_assert!(segment.in_flight());
        segment.flags |= flag::LOST;
        let copy = *segment;
        self.in_flight_bytes -= copy.bytes();
        let loss = self.loss_mut();
        loss.lost_bytes += copy.bytes();
        if let Some(noted) = &mut loss.noted {
            noted.push((copy.start, copy.length));
        }
        // In stream order: the first missing segment is retransmitted first.
        if loss.lost.back().is_none_or(|last| *last < copy.start) {
            loss.lost.push_back(copy.start);
        } else {
            let place = loss.lost.partition_point(|start| *start < copy.start);
            loss.lost.insert(place, copy.start);
        }
        (copy, sample)
    }

    /// Index of the next segment to retransmit.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        loop {
            let start = *self.loss.as_ref()?.lost.front()?;
            if let Some(index) = self.find(start)
                && self.segments[index].has(flag::LOST)
            {
                return Some(index);
            }
            self.loss_mut().lost.pop_front();
        }
    }

    /// Records the retransmission of a segment, lost or in flight. `state` comes from the rate sampler.
    pub(crate) fn retransmit(&mut self, index: usize, state: &PacketState) {
        let segment = &mut self.segments[index];
        let (start, bytes, was_lost) = (segment.start, segment.bytes(), segment.has(flag::LOST));
        debug_assert!(!segment.has(flag::SACKED));
        segment.flags = segment.flags & !flag::LOST | flag::RETRANSMITTED;
        segment.stamp(state);
        let sent_at = segment.sent_at;
        if let Some(samples) = &mut self.samples {
            samples[index] = RateSampleState::new(state);
        }
        if was_lost {
            self.in_flight_bytes += bytes;
        }
        let loss = self.loss_mut();
        if was_lost {
            loss.lost_bytes -= bytes;
            if loss.lost.front() == Some(&start) {
                loss.lost.pop_front();
            }
        }
        loss.retransmissions.push_back((sent_at, start));
    }

    /// Index of the first retransmission that is still in flight. Earlier entries are removed from the queue.
    pub(crate) fn oldest_retransmission(&mut self) -> Option<usize> {
        loop {
            let (sent_at, start) = *self.loss.as_ref()?.retransmissions.front()?;
            if let Some(index) = self.find(start)
                && self.segments[index].sent_at == sent_at
                && self.segments[index].in_flight()
            {
                return Some(index);
            }
            self.loss_mut().retransmissions.pop_front();
        }
    }

    /// Orders the lost segments by stream offset for retransmission after a timeout.
    pub(crate) fn queue_lost_in_order(&mut self) {
        let Scoreboard { segments, loss, .. } = self;
        let loss = loss.get_or_insert_default();
        loss.lost.clear();
        loss.lost.extend(segments.iter().filter(|segment| segment.has(flag::LOST)).map(|segment| segment.start));
    }

    /// Undoes losses: segments marked lost are in flight again and will be examined again.
    pub(crate) fn unmark_lost(&mut self) {
        let Scoreboard { segments, in_flight_bytes, loss, .. } = self;
        let Some(loss) = loss else { return };
        for segment in segments.iter_mut().filter(|segment| segment.has(flag::LOST)) {
            segment.flags &= !flag::LOST;
            *in_flight_bytes += segment.bytes();
        }
        loss.lost_bytes = 0;
        loss.lost.clear();
        loss.examined = 0;
    }

    /// Processes reneging: the receiver discarded selectively acknowledged data (RFC 2018 section 8), which is lost.
    pub(crate) fn renege(&mut self) {
        let Scoreboard { segments, loss, .. } = self;
        let loss = loss.get_or_insert_default();
        for segment in segments.iter_mut().filter(|segment| segment.has(flag::SACKED)) {
            segment.flags = segment.flags & !flag::SACKED | flag::LOST;
            loss.lost_bytes += segment.bytes();
        }
        loss.sacked.clear();
        loss.sacked_bytes = 0;
        loss.sacked_segments = 0;
    }

    /// Recomputes all counts and compares them, for tests. `presumed_bytes` are additionally removed from flight.
    #[cfg(test)]
    pub(crate) fn check(&self, presumed_bytes: u64) {
        let sum = |wanted: &dyn Fn(&SegmentRecord) -> bool| -> u64 {
            self.segments.iter().filter(|segment| wanted(segment)).map(SegmentRecord::bytes).sum()
        };
        assert_eq!(self.in_flight_bytes + presumed_bytes, sum(&SegmentRecord::in_flight));
        assert_eq!(self.lost_bytes(), sum(&|segment| segment.has(flag::LOST)));
        assert_eq!(self.sacked_bytes(), sum(&|segment| segment.has(flag::SACKED)));
        let sacked = self.segments.iter().filter(|segment| segment.has(flag::SACKED)).count();
        assert_eq!(self.sacked_segments() as usize, sacked);
        assert!(self.samples.as_ref().is_none_or(|samples| samples.len() == self.segments.len()));
        if let Some(loss) = &self.loss {
            for segment in &self.segments {
                assert_eq!(segment.has(flag::SACKED), loss.sacked.covers(segment.start, segment.end()));
                assert!(!segment.has(flag::LOST) || loss.lost.contains(&segment.start));
            }
        }
        for (before, after) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            assert_eq!(before.end(), after.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`Scoreboard::unmark_lost`] undoes the loss of a retransmission, so that only its flag identifies it. The board
    /// has no loss state, and acknowledgments use the fast path. By Karn's algorithm the segment provides no round-trip
    /// sample, so it must not be processed with the originals.
    #[test]
    fn a_retransmission_that_was_not_lost_after_all_is_not_taken_as_an_original() {
        let state = |nanoseconds| PacketState { sent_at: Instant::from_nanos(nanoseconds), ..PacketState::default() };
        let mut board = Scoreboard::new(1000, false);
        for number in 0..3 {
            board.push(SegmentRecord::new(1000 * number, 1000, false, &state(number)), &state(number));
        }
        board.mark_lost(1);
        board.retransmit(1, &state(100));
        board.mark_lost(1);
        assert_eq!(board.oldest_retransmission(), None);
        board.unmark_lost();
        board.check(0);
        assert!(!board.is_troubled());

        let originals = board.acknowledge_originals(3000);
        assert_eq!((originals.bytes, originals.end, originals.are_all), (1000, 1000, false));
        board.check(0);
        let mut rest = Vec::new();
        assert!(
            !board.acknowledge_whole(3000, |segment, _| rest.push((segment.start, segment.has(flag::RETRANSMITTED))))
        );
        assert_eq!(rest, [(1000, true), (2000, false)]);
    }
}
