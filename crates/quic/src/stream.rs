//! One stream: its sending part and its receiving part. Each has the state machine of RFC 9000 section 3 and the flow
//! control of section 4.
//!
//! **Sending.** Offsets and ranges of offsets represent written, sent, acknowledged and lost data. Lost ranges are sent
//! before new data. New data is limited by the peer's credit. Limits do not apply to retransmitted data.
//!
//! **Receiving.** Ranges may arrive out of order, up to the limit. The limit advances as the application reads. A new
//! limit is sent when the application has read a quarter of the window. With auto-tuning, the window doubles when two
//! updates of the limit are less than two round-trip times apart.

use bytes::Bytes;
use fullpipe_transport::buffers::ByteStore;
use fullpipe_transport::ranges::RangeSet;
use fullpipe_transport::{CloseReason, Payload, Priority};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// Whether the server opened a stream (RFC 9000 section 2.1).
pub(crate) const fn is_server_initiated(id: u64) -> bool {
    id & 1 == 1
}

/// Whether a stream is unidirectional.
pub(crate) const fn is_unidirectional(id: u64) -> bool {
    id & 2 == 2
}

/// Events that the application has not fetched yet, as bits of [`Stream::events`]; the lowest is reported first.
pub(crate) mod event {
    pub(crate) const CONNECTED: u8 = 1;
    pub(crate) const READABLE: u8 = 2;
    pub(crate) const WRITABLE: u8 = 4;
    pub(crate) const PEER_FINISHED: u8 = 8;
    pub(crate) const CLOSED: u8 = 16;
}

/// The state of RESET_STREAM or STOP_SENDING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ControlFrameState {
    #[default]
    NotRequested,
    /// The frame must be sent.
    Due,
    /// The frame was sent and is not acknowledged.
    Sent,
    /// The frame was acknowledged.
    Acknowledged,
}

/// When data was written, and the number of the write on the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteRecord {
    pub(crate) at: Instant,
    pub(crate) order: u64,
}

/// The sending part of a stream.
#[derive(Debug, Default)]
pub(crate) struct SendHalf {
    /// The application has written all bytes below this offset.
    pub(crate) written: u64,
    /// All bytes below this offset were sent at least once.
    pub(crate) sent: u64,
    /// All bytes below this offset were acknowledged.
    pub(crate) acknowledged_below: u64,
    /// The ranges acknowledged above that offset.
    acknowledged: RangeSet,
    /// The ranges that were lost and not yet retransmitted.
    pub(crate) lost: RangeSet,
    /// The peer's flow control limit.
    pub(crate) limit: u64,
    /// Whether the application has finished writing.
    pub(crate) finished: bool,
    /// Whether FIN was sent and does not have to be sent again.
    pub(crate) fin_sent: bool,
    pub(crate) fin_acknowledged: bool,
    pub(crate) reset: ControlFrameState,
    /// The limit for which STREAM_DATA_BLOCKED was sent.
    pub(crate) blocked_at: Option<u64>,
    pub(crate) blocked_due: bool,
    bytes: Option<Box<ByteStore>>,
    /// The ends of writes, oldest first, for schedulers that use write times.
    writes: Option<Box<VecDeque<(u64, WriteRecord)>>>,
    /// Free bytes in the send buffer below which the application receives no event that the stream is writable.
    pub(crate) writable_threshold: u64,
}

/// A stream chunk to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamChunk {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) fin: bool,
}

impl StreamChunk {
    /// Whether another chunk of the stream begins where this one ends.
    #[inline(always)]
    pub(crate) fn precedes(&self, next: &StreamChunk) -> bool {
        self.offset + self.length == next.offset
    }
}

impl SendHalf {
    /// The initial state, with this limit of the peer.
    pub(crate) fn new(limit: u64) -> SendHalf {
        SendHalf { limit, ..SendHalf::default() }
    }

    /// Bytes in the send buffer that are not acknowledged.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.written - self.acknowledged_below
    }

    /// Appends data. `written` is the record of the write, for a scheduler that uses it.
    pub(crate) fn write(&mut self, payload: Payload, written: Option<WriteRecord>) {
        let offset = self.written;
        self.written += payload.len();
        if let Payload::Bytes(bytes) = payload {
            self.bytes.get_or_insert_default().push(offset, bytes);
        }
        if let Some(written) = written {
            let writes = self.writes.get_or_insert_default();
            match writes.back_mut() {
                Some(last) if last.1 == written => last.0 = self.written,
                _ => writes.push_back((self.written, written)),
            }
        }
    }

    /// The write that contains the byte at an offset, and the end of that write, if writes are recorded.
    pub(crate) fn written_at(&self, offset: u64) -> (WriteRecord, u64) {
        let Some(writes) = &self.writes else { return (WriteRecord::default(), u64::MAX) };
        let index = writes.partition_point(|(end, _)| *end <= offset);
        match writes.get(index) {
            Some((end, written)) => (*written, *end),
            // Only FIN remains.
            None => (writes.back().map_or(WriteRecord::default(), |(_, written)| *written), u64::MAX),
        }
    }

    /// Whether there is new data or FIN to send within the stream's limit.
    #[inline(always)]
    pub(crate) fn has_new(&self) -> bool {
        self.sent < self.written.min(self.limit) || self.finished && !self.fin_sent && self.sent == self.written
    }

    /// Whether there is any data or FIN to send.
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        (!self.lost.is_empty() || self.has_new()) && self.reset == ControlFrameState::NotRequested
    }

    /// The offset of the next data to send.
    pub(crate) fn next_offset(&self) -> u64 {
        self.lost.as_slice().first().map_or(self.sent, |range| range.0)
    }

    /// The next chunk with at most `max_bytes`, of which `new_bytes` may be new; `None` if there is none.
    #[inline]
    pub(crate) fn next_piece(&self, max_bytes: u64, new_bytes: u64) -> Option<StreamChunk> {
        if let Some(&(start, end)) = self.lost.as_slice().first() {
            let length = (end - start).min(max_bytes);
            let fin = self.finished && start + length == self.written && !self.fin_acknowledged;
            return (length > 0).then_some(StreamChunk { offset: start, length, fin });
        }
        let length = self.written.min(self.limit).saturating_sub(self.sent).min(max_bytes).min(new_bytes);
        let fin = self.finished && !self.fin_sent && self.sent + length == self.written;
        (length > 0 || fin).then_some(StreamChunk { offset: self.sent, length, fin })
    }

    /// Records that a chunk was sent. Returns the number of its new bytes.
    #[inline]
    pub(crate) fn on_sent(&mut self, piece: &StreamChunk) -> u64 {
        let end = piece.offset + piece.length;
        if !self.lost.is_empty() {
            self.lost.remove(piece.offset, end);
        }
        if piece.fin {
            self.fin_sent = true;
        }
        let new = end.saturating_sub(self.sent);
        self.sent = self.sent.max(end);
        new
    }

    /// Records that a chunk was acknowledged.
    ///
    /// Returns whether there may be less data to send than before, because data scheduled for retransmission has
    /// arrived.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, piece: &StreamChunk) -> bool {
        let end = piece.offset + piece.length;
        let mut less = false;
        if piece.fin {
            self.fin_acknowledged = true;
            self.fin_sent = true;
            less = true;
        }
        if !self.lost.is_empty() {
            self.lost.remove(piece.offset, end);
            less = true;
        }
        if piece.offset > self.acknowledged_below {
            self.acknowledged.insert(piece.offset, end, |_, _| ());
            return less;
        }
        self.acknowledged_below = self.acknowledged_below.max(end);
        if !self.acknowledged.is_empty() {
            if let Some(range) = self.acknowledged.find(self.acknowledged_below) {
                self.acknowledged_below = range.1;
            }
            self.acknowledged.remove_below(self.acknowledged_below);
        }
        if let Some(bytes) = &mut self.bytes {
            bytes.remove_below(self.acknowledged_below);
        }
        if let Some(writes) = &mut self.writes {
            while writes.front().is_some_and(|(end, _)| *end <= self.acknowledged_below) {
                writes.pop_front();
            }
        }
        less
    }

    /// Resets all sent data and the limit, because the peer could not decrypt the data.
    pub(crate) fn forget_sent(&mut self) {
        (self.sent, self.limit) = (0, 0);
        self.fin_sent = false;
        self.lost.clear();
    }

    /// Marks a chunk as lost, except for bytes that have been acknowledged since.
    pub(crate) fn on_lost(&mut self, piece: &StreamChunk) {
        if piece.fin && !self.fin_acknowledged {
            self.fin_sent = false;
        }
        let (mut start, end) = (piece.offset.max(self.acknowledged_below), piece.offset + piece.length);
        while start < end {
            let (arrived, next) = match self.acknowledged.first_overlap(start, end) {
                Some((from, to)) => (from, to),
                None => (end, end),
            };
            self.lost.insert(start, arrived, |_, _| ());
            start = next;
        }
    }

    /// Whether the stream has content, not only a length.
    #[inline(always)]
    pub(crate) fn has_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// The content of a chunk, if the stream has content.
    pub(crate) fn content(&self, piece: &StreamChunk) -> Option<Bytes> {
        self.bytes.as_ref()?.slice(piece.offset, piece.length)
    }

    /// Whether all data was acknowledged or is no longer needed.
    pub(crate) fn is_over(&self) -> bool {
        self.reset == ControlFrameState::Acknowledged
            || self.finished
                && self.fin_acknowledged
                && self.acknowledged_below == self.written
                && self.reset == ControlFrameState::NotRequested
    }
}

/// The receiving part of a stream.
#[derive(Debug, Default)]
pub(crate) struct ReceiveHalf {
    /// All bytes below this offset have arrived.
    pub(crate) next: u64,
    /// The ranges that have arrived beyond a gap.
    arrived: RangeSet,
    /// All bytes below this offset were read.
    pub(crate) read: u64,
    /// Unread ranges in the order of their arrival, if the application reads in that order.
    unordered: Option<Box<VecDeque<(u64, u64)>>>,
    /// Bytes passed to the application, in any order.
    pub(crate) taken_bytes: u64,
    /// The flow control limit for the peer.
    pub(crate) limit: u64,
    /// The highest offset received, which counts against the limit.
    pub(crate) highest: u64,
    /// The final size of the stream.
    pub(crate) final_size: Option<u64>,
    /// Whether the peer has reset the stream.
    pub(crate) reset: bool,
    /// The state of STOP_SENDING.
    pub(crate) stop: ControlFrameState,
    /// The window: the distance of the limit from the offset read.
    pub(crate) window: u64,
    window_since: Instant,
    /// Whether MAX_STREAM_DATA is to be sent.
    pub(crate) limit_due: bool,
    pub(crate) told_finished: bool,
    bytes: Option<Box<ByteStore>>,
}

/// A protocol violation in received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamViolation {
    /// The data exceeds the flow control limit.
    FlowControl,
    /// The final size differs from an earlier one.
    FinalSize,
}

impl ReceiveHalf {
    pub(crate) fn new(window: u64, now: Instant) -> ReceiveHalf {
        ReceiveHalf { limit: window, window, window_since: now, ..ReceiveHalf::default() }
    }

    /// Handles a received chunk; returns the growth of the highest offset.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        piece: &StreamChunk,
        content: Option<Bytes>,
        unordered: bool,
    ) -> Result<u64, StreamViolation> {
        let end = piece.offset.checked_add(piece.length).ok_or(StreamViolation::FlowControl)?;
        if self.final_size.is_some() || piece.fin {
            self.check_final_size(end, piece.fin)?;
        }
        if end > self.limit {
            return Err(StreamViolation::FlowControl);
        }
        let grown = end.saturating_sub(self.highest);
        self.highest = self.highest.max(end);
        if self.stop != ControlFrameState::NotRequested {
            // The application does not read the data.
            self.next = self.highest;
            return Ok(grown);
        }
        if let Some(content) = content {
            self.bytes.get_or_insert_default().insert(piece.offset, content, self.read);
        }
        if !unordered && piece.offset <= self.next && self.arrived.is_empty() {
            self.next = self.next.max(end);
            return Ok(grown);
        }
        let start = piece.offset.max(self.next);
        if unordered {
            let pieces = self.unordered.get_or_insert_default();
            self.arrived.insert(start, end, |from, to| pieces.push_back((from, to)));
        } else {
            self.arrived.insert(start, end, |_, _| ());
        }
        if let Some(range) = self.arrived.find(self.next) {
            self.next = range.1;
            self.arrived.remove_below(self.next);
        }
        Ok(grown)
    }

    #[cold]
    fn check_final_size(&mut self, end: u64, fin: bool) -> Result<(), StreamViolation> {
        match self.final_size {
            Some(size) if end > size || fin && end != size => Err(StreamViolation::FinalSize),
            None if fin && end < self.highest => Err(StreamViolation::FinalSize),
            _ => {
                if fin {
                    self.final_size = Some(end);
                }
                Ok(())
            }
        }
    }

    /// Handles RESET_STREAM; returns the growth of the highest offset.
    pub(crate) fn reset(&mut self, final_size: u64) -> Result<u64, StreamViolation> {
        if self.final_size.is_some_and(|size| size != final_size) || final_size < self.highest {
            return Err(StreamViolation::FinalSize);
        }
        if final_size > self.limit {
            return Err(StreamViolation::FlowControl);
        }
        self.final_size = Some(final_size);
        let grown = final_size - self.highest;
        self.highest = final_size;
        self.reset = true;
        Ok(grown)
    }

    /// Bytes that can be read.
    #[inline(always)]
    pub(crate) fn readable_bytes(&self) -> u64 {
        match &self.unordered {
            Some(parts) if !parts.is_empty() => parts.iter().map(|part| part.1 - part.0).sum(),
            _ => self.next - self.read,
        }
    }

    /// Whether a chunk without content is the next one, and all data before it was read.
    #[inline(always)]
    pub(crate) fn expects(&self, offset: u64, length: u64) -> bool {
        offset == self.next
            && offset == self.read
            && self.arrived.is_empty()
            && length > 0
            && self.limit - self.limit.min(offset) >= length
            && self.final_size.is_none()
            && !self.reset
            && self.stop == ControlFrameState::NotRequested
            && self.bytes.is_none()
    }

    /// Accepts and reads a chunk that [`ReceiveHalf::expects`] accepts.
    #[inline(always)]
    pub(crate) fn take_expected(&mut self, length: u64) {
        self.next += length;
        self.read = self.next;
        self.highest = self.next;
        self.taken_bytes += length;
    }

    /// Reads at most this number of bytes.
    pub(crate) fn take(&mut self, max_bytes: u64) -> Option<Payload> {
        if let Some(unordered) = &mut self.unordered
            && let Some(part) = unordered.front_mut()
        {
            let (start, stop) = (part.0, part.1.min(part.0.saturating_add(max_bytes)));
            if start == stop {
                return None;
            }
            part.0 = stop;
            if part.0 == part.1 {
                unordered.pop_front();
            }
            self.taken_bytes += stop - start;
            self.read = self.next.min(unordered.iter().map(|part| part.0).min().unwrap_or(u64::MAX));
            return Some(Payload::Length(stop - start));
        }
        let stop = self.next.min(self.read.saturating_add(max_bytes));
        if stop == self.read {
            return None;
        }
        let payload = match &mut self.bytes {
            None => Payload::Length(stop - self.read),
            Some(bytes) => bytes.take(self.read, stop),
        };
        self.read += payload.len();
        self.taken_bytes += payload.len();
        Some(payload)
    }

    /// Whether all bytes have arrived, or the peer has reset the stream.
    #[inline(always)]
    pub(crate) fn is_complete(&self) -> bool {
        self.reset || self.final_size == Some(self.next)
    }

    /// Whether no more data will be read.
    pub(crate) fn is_over(&self) -> bool {
        self.is_complete()
            && (self.reset
                || self.stop != ControlFrameState::NotRequested
                || self.read == self.next && self.has_no_parts())
    }

    fn has_no_parts(&self) -> bool {
        self.unordered.as_ref().is_none_or(|parts| parts.is_empty())
    }

    /// Whether the limit can advance far enough to send a frame.
    #[inline(always)]
    pub(crate) fn wants_limit(&self) -> bool {
        self.read.saturating_add(self.window).saturating_sub(self.limit) >= self.window / 4
    }

    /// Advances the limit after a read, if the increase is large enough for a frame. With `tuning`, the window may
    /// grow, to at most `most`.
    #[inline(never)]
    pub(crate) fn move_limit(&mut self, now: Instant, smoothed_rtt: Duration, most: u64, tuning: bool) {
        if self.final_size.is_some() || self.stop != ControlFrameState::NotRequested || !self.wants_limit() {
            return;
        }
        if tuning {
            if now.saturating_since(self.window_since) < smoothed_rtt.saturating_mul(2) {
                self.window = self.window.saturating_mul(2).min(most);
            }
            self.window_since = now;
        }
        self.limit = self.read.saturating_add(self.window);
        self.limit_due = true;
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) priority: Priority,
    pub(crate) sending: SendHalf,
    pub(crate) receiving: ReceiveHalf,
    /// See [`event`].
    pub(crate) events: u8,
    /// Whether the stream is in the queue of streams with data to send.
    pub(crate) queued: bool,
    /// Whether the stream exceeds the peer's limit because it was opened before that was known. Its data is not sent
    /// yet.
    pub(crate) held: bool,
    /// Whether the stream is in the queue of streams with events.
    pub(crate) noticed: bool,
    /// Whether the close of the stream was reported to the application.
    pub(crate) closed: bool,
}

impl Stream {
    /// Whether both directions have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.sending.is_over() && self.receiving.is_over()
    }

    /// The reason for the stream's end that the application receives: that of the connection, `reason`, unless the
    /// stream itself was reset. The missing direction of a unidirectional stream is marked as reset, but does not
    /// count.
    pub(crate) fn close_reason(&self, reason: CloseReason) -> CloseReason {
        if reason != CloseReason::Finished || is_unidirectional(self.id) {
            reason
        } else if self.receiving.reset {
            CloseReason::Reset
        } else if self.sending.reset != ControlFrameState::NotRequested {
            CloseReason::Aborted
        } else {
            reason
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, length: u64, fin: bool) -> StreamChunk {
        StreamChunk { offset, length, fin }
    }

    #[test]
    fn lost_data_is_sent_before_new_data() {
        let mut half = SendHalf { limit: 100, ..SendHalf::default() };
        half.write(Payload::Length(50), None);
        half.finished = true;
        assert_eq!(half.next_piece(20, 100), Some(piece(0, 20, false)));
        for (offset, length, fin) in [(0, 20, false), (20, 20, false), (40, 10, true)] {
            assert_eq!(half.next_piece(20, 100), Some(piece(offset, length, fin)));
            assert_eq!(half.on_sent(&piece(offset, length, fin)), length);
        }
        assert_eq!(half.next_piece(20, 100), None);
        half.on_acknowledged(&piece(20, 20, false));
        half.on_lost(&piece(0, 20, false));
        half.on_lost(&piece(40, 10, true));
        assert_eq!(half.next_piece(15, 0), Some(piece(0, 15, false)));
        assert_eq!(half.on_sent(&piece(0, 15, false)), 0);
        assert_eq!(half.next_piece(15, 0), Some(piece(15, 5, false)));
        half.on_sent(&piece(15, 5, false));
        assert_eq!(half.next_piece(15, 0), Some(piece(40, 10, true)));
        half.on_sent(&piece(40, 10, true));
        half.on_acknowledged(&piece(40, 10, true));
        assert!(!half.is_over());
        half.on_acknowledged(&piece(0, 20, false));
        assert!(half.is_over());
    }

    #[test]
    fn data_acknowledged_in_the_meantime_is_not_retransmitted() {
        let mut half = SendHalf { limit: 100, ..SendHalf::default() };
        half.write(Payload::Length(100), None);
        half.on_sent(&piece(0, 100, false));
        half.on_acknowledged(&piece(20, 10, false));
        half.on_acknowledged(&piece(50, 10, false));
        half.on_lost(&piece(10, 60, false));
        assert_eq!(half.lost.as_slice(), [(10, 20), (30, 50), (60, 70)]);
    }

    #[test]
    fn final_size_of_a_stream_does_not_change() {
        // RFC 9000 section 4.5.
        let mut half = ReceiveHalf::new(1000, Instant::ZERO);
        assert_eq!(half.receive(&piece(0, 10, false), None, false), Ok(10));
        assert_eq!(half.receive(&piece(20, 10, true), None, false), Ok(20));
        assert_eq!(half.receive(&piece(20, 11, false), None, false), Err(StreamViolation::FinalSize));
        assert_eq!(half.receive(&piece(10, 5, true), None, false), Err(StreamViolation::FinalSize));
        assert_eq!(half.reset(31), Err(StreamViolation::FinalSize));
        assert_eq!(half.receive(&piece(10, 10, false), None, false), Ok(0));
        assert!(half.is_complete() && !half.is_over());
        assert_eq!(half.take(100), Some(Payload::Length(30)));
        assert!(half.is_over());
        let mut half = ReceiveHalf::new(1000, Instant::ZERO);
        assert_eq!(half.receive(&piece(0, 10, false), None, false), Ok(10));
        assert_eq!(half.receive(&piece(0, 5, true), None, false), Err(StreamViolation::FinalSize));
    }

    #[test]
    fn data_beyond_the_limit_is_rejected() {
        let mut half = ReceiveHalf::new(100, Instant::ZERO);
        assert_eq!(half.receive(&piece(50, 50, false), None, false), Ok(100));
        assert_eq!(half.receive(&piece(50, 51, false), None, false), Err(StreamViolation::FlowControl));
        assert_eq!(half.receive(&piece(u64::MAX, 2, false), None, false), Err(StreamViolation::FlowControl));
        assert_eq!(half.reset(101), Err(StreamViolation::FlowControl));
    }

    #[test]
    fn unordered_bytes_are_read_in_order_of_arrival() {
        let mut half = ReceiveHalf::new(100, Instant::ZERO);
        half.receive(&piece(30, 10, false), None, true).unwrap();
        assert_eq!((half.readable_bytes(), half.take(4)), (10, Some(Payload::Length(4))));
        half.receive(&piece(0, 32, false), None, true).unwrap();
        // 6 bytes of the first part, 30 new ones of the second.
        assert_eq!(half.readable_bytes(), 36);
        assert_eq!(half.take(100), Some(Payload::Length(6)));
        assert_eq!(half.take(100), Some(Payload::Length(30)));
        assert_eq!((half.take(100), half.read, half.taken_bytes), (None, 40, 40));
    }

    #[test]
    fn window_that_is_read_quickly_doubles() {
        let rtt = Duration::from_millis(10);
        let mut half = ReceiveHalf::new(100, Instant::ZERO);
        half.receive(&piece(0, 100, false), None, false).unwrap();
        half.take(24);
        half.move_limit(Instant::ZERO + rtt, rtt, 1000, true);
        assert!(!half.limit_due, "less than a quarter of the window was read");
        half.take(1);
        half.move_limit(Instant::ZERO + rtt, rtt, 1000, true);
        assert_eq!((half.limit_due, half.window, half.limit), (true, 200, 225));
        // A read two round-trip times later does not change the window.
        half.take(75);
        half.move_limit(Instant::ZERO + rtt * 3, rtt, 1000, true);
        assert_eq!((half.window, half.limit), (200, 300));
    }
}
