//! All streams of a connection: the limits on their number and on their data, and the selection of the stream that
//! sends next (RFC 9000 sections 2, 4 and 19).

use crate::Config;
use crate::scheduler::{Candidate, RetransmissionOrder, Scheduler};
use crate::slots::{Queue, ReadyStreams, StreamTable};
use crate::stream::{
    ControlFrameState, ReceiveHalf, SendHalf, Stream, StreamChunk, WriteRecord, event, is_server_initiated,
    is_unidirectional,
};
use fullpipe_transport::{CloseReason, Payload, Priority, TransportEvent};
use fullpipe_units::{Duration, Instant};

/// The index that denotes no stream.
const NONE: u32 = u32::MAX;

/// The streams of one type that one side opens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamCounts {
    /// Number of streams opened so far.
    pub(crate) count: u64,
    /// Number of these streams that have ended.
    closed: u64,
    /// Number of streams that may be opened.
    pub(crate) limit: u64,
    /// Whether MAX_STREAMS (for the peer's streams) or STREAMS_BLOCKED (for local ones) must be sent.
    pub(crate) due: bool,
}

/// Buffers for the candidates of a selection and their indices.
#[derive(Debug, Default)]
struct Choice {
    candidates: Vec<Candidate>,
    places: Vec<u32>,
}

/// All streams of a connection.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: StreamTable,
    /// The ID and the index of the stream that was looked up last.
    recent: (u64, u32),
    server: bool,
    /// Streams that this end opens: bidirectional, unidirectional.
    pub(crate) local: [StreamCounts; 2],
    /// Streams that the peer opens.
    pub(crate) remote: [StreamCounts; 2],
    /// The number of the peer's streams that may be open at a time.
    max_streams: u64,
    /// Streams with data to send, in the order of IDs.
    ready: ReadyStreams,
    /// Streams with events.
    noticed: Queue,
    scheduler: Box<dyn Scheduler>,
    retransmission: RetransmissionOrder,
    /// Whether the scheduler uses write times.
    pub(crate) timed: bool,
    /// The last write, and its stream.
    last_write: (WriteRecord, u32),
    /// The initial limit for data that this end may send on a stream.
    pub(crate) peer_stream_window: u64,
    /// The limit for the data sent on all streams, and the data sent: both are sums of highest offsets.
    pub(crate) send_limit: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) blocked_at: Option<u64>,
    /// The limit for the data received on all streams, the sum of highest offsets received, the data read, and the
    /// window.
    pub(crate) receive_limit: u64,
    pub(crate) received_bytes: u64,
    pub(crate) read_bytes: u64,
    window: u64,
    window_since: Instant,
    /// Whether MAX_DATA must be sent.
    pub(crate) limit_due: bool,
    /// Streams with control frames to send.
    pub(crate) control_due: Vec<u32>,
    /// The reason for the end of streams that the application receives.
    reason: CloseReason,
    choice: Option<Box<Choice>>,
    /// Whether the application has received the event that its streams are connected.
    connected: bool,
    send_buffer_bytes: u64,
}

/// The sizes of receive windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowControlWindows {
    pub(crate) stream_bytes: u64,
    pub(crate) connection_bytes: u64,
    pub(crate) most_stream_bytes: u64,
    pub(crate) most_connection_bytes: u64,
    pub(crate) tuning: bool,
}

impl FlowControlWindows {
    /// The sizes from the settings.
    pub(crate) fn of(config: &Config) -> FlowControlWindows {
        let parameters = config.parameters();
        FlowControlWindows {
            stream_bytes: parameters.initial_max_stream_data,
            connection_bytes: parameters.initial_max_data,
            most_stream_bytes: config.receive_buffer_bytes,
            most_connection_bytes: config.connection_receive_buffer_bytes,
            tuning: config.initial_receive_window_bytes.is_some(),
        }
    }
}

impl Streams {
    pub(crate) fn new(
        server: bool,
        scheduler: Box<dyn Scheduler>,
        retransmission: RetransmissionOrder,
        windows: &FlowControlWindows,
        max_streams: u64,
        send_buffer_bytes: u64,
    ) -> Self {
        let timed = scheduler.uses_write_times();
        let allowed = StreamCounts { limit: max_streams, ..StreamCounts::default() };
        Streams {
            slots: StreamTable::default(),
            recent: (u64::MAX, NONE),
            server,
            local: [StreamCounts::default(); 2],
            remote: [allowed; 2],
            max_streams,
            ready: ReadyStreams::default(),
            noticed: Queue::default(),
            scheduler,
            retransmission,
            timed,
            last_write: (WriteRecord::default(), NONE),
            peer_stream_window: 0,
            send_limit: 0,
            sent_bytes: 0,
            blocked_at: None,
            receive_limit: windows.connection_bytes,
            received_bytes: 0,
            read_bytes: 0,
            window: windows.connection_bytes,
            window_since: Instant::ZERO,
            limit_due: false,
            control_due: Vec::new(),
            reason: CloseReason::Finished,
            choice: None,
            connected: false,
            send_buffer_bytes,
        }
    }

    /// Replaces the scheduler before any data is written.
    pub(crate) fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.timed = scheduler.uses_write_times();
        self.scheduler = scheduler;
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&Stream> {
        self.slots.get(index)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Stream> {
        self.slots.get_mut(index)
    }

    /// The number of open streams.
    pub(crate) fn live(&self) -> usize {
        self.slots.live()
    }

    /// The index of the stream with this ID.
    #[inline]
    pub(crate) fn find(&mut self, id: u64) -> Option<u32> {
        if self.recent.0 == id {
            return Some(self.recent.1);
        }
        let index = self.slots.find(id)?;
        self.recent = (id, index);
        Some(index)
    }

    /// Whether this end opens the stream.
    pub(crate) fn is_local(&self, id: u64) -> bool {
        is_server_initiated(id) == self.server
    }

    /// Opens a stream; `None` if the peer permits no more. `unknown` is set until the peer's limit is known: up to this
    /// number of streams may be opened, and their data waits.
    pub(crate) fn open(
        &mut self,
        bidirectional: bool,
        unknown: Option<u64>,
        windows: &FlowControlWindows,
        now: Instant,
    ) -> Option<u32> {
        let kind = &mut self.local[usize::from(!bidirectional)];
        if kind.count >= kind.limit.max(unknown.unwrap_or(0)) {
            kind.due |= unknown.is_none();
            return None;
        }
        let held = kind.count >= kind.limit;
        let id = kind.count * 4 + u64::from(self.server) + if bidirectional { 0 } else { 2 };
        kind.count += 1;
        let index = self.insert(id, windows, now);
        if let Some(stream) = self.get_mut(index) {
            stream.held = held;
        }
        if self.connected {
            self.notice(index, event::CONNECTED);
        }
        Some(index)
    }

    /// Sets the number of streams of a type that this end may open, as the peer permits.
    pub(crate) fn limit_local(&mut self, kind: usize, limit: u64) {
        self.local[kind].limit = limit;
        for index in 0..self.slots.len() {
            let Some((id, held)) = self.get(index).map(|stream| (stream.id, stream.held)) else { continue };
            if !self.is_local(id) || usize::from(is_unidirectional(id)) != kind {
                continue;
            }
            let holds = id / 4 >= limit;
            if holds == held {
                continue;
            }
            if let Some(stream) = self.get_mut(index) {
                stream.held = holds;
            }
            self.requeue(index);
            if !holds {
                self.control(index);
            }
        }
        // STREAMS_BLOCKED is due if some streams wait for a higher limit.
        self.local[kind].due |= self.local[kind].count > limit;
    }

    /// Reports to the application that its streams can be used.
    pub(crate) fn announce(&mut self) {
        if !std::mem::replace(&mut self.connected, true) {
            for index in 0..self.slots.len() {
                if self.get(index).is_some_and(|stream| self.is_local(stream.id)) {
                    self.notice(index, event::CONNECTED);
                }
            }
        }
    }

    fn insert(&mut self, id: u64, windows: &FlowControlWindows, now: Instant) -> u32 {
        let mut stream = Stream {
            id,
            priority: Priority::default(),
            sending: SendHalf::new(self.peer_stream_window),
            receiving: ReceiveHalf::new(windows.stream_bytes, now),
            events: 0,
            queued: false,
            held: false,
            noticed: false,
            closed: false,
        };
        if is_unidirectional(id) {
            // The direction that does not exist has ended.
            if self.is_local(id) {
                stream.receiving.reset = true;
            } else {
                stream.sending.reset = ControlFrameState::Acknowledged;
            }
        }
        self.slots.insert(stream)
    }

    /// The index of the stream in a frame. Opens a new stream of the peer, together with all streams of its type with
    /// smaller IDs (RFC 9000 section 2.1). Returns `Ok(None)` if the stream has ended. Fails if the stream exceeds the
    /// limit, or if it is a local stream that was not opened.
    pub(crate) fn named(
        &mut self,
        id: u64,
        windows: &FlowControlWindows,
        now: Instant,
    ) -> Result<Option<u32>, StreamIdError> {
        if let Some(index) = self.find(id) {
            return Ok(Some(index));
        }
        let (kind, number) = (usize::from(is_unidirectional(id)), id / 4);
        if self.is_local(id) {
            return if number < self.local[kind].count { Ok(None) } else { Err(StreamIdError::NotOpened) };
        }
        if number < self.remote[kind].count {
            return Ok(None);
        }
        if number >= self.remote[kind].limit {
            return Err(StreamIdError::LimitExceeded);
        }
        while self.remote[kind].count <= number {
            let id = self.remote[kind].count * 4 + (id & 3);
            self.remote[kind].count += 1;
            let index = self.insert(id, windows, now);
            self.notice(index, event::CONNECTED);
        }
        Ok(self.find(id))
    }

    /// Whether data is the next of the stream that was looked up last, and no event is to be fetched.
    #[inline(always)]
    pub(crate) fn expects(&self, id: u64, offset: u64, length: u64) -> bool {
        self.recent.0 == id
            && self.noticed.is_empty()
            && self.received_bytes + length <= self.receive_limit
            && self.get(self.recent.1).is_some_and(|stream| stream.receiving.expects(offset, length))
    }

    /// Accepts and reads data for which [`Streams::expects`] holds.
    #[inline(always)]
    pub(crate) fn take_expected(&mut self, length: u64, now: Instant, rtt: Duration, config: &Config) {
        self.received_bytes += length;
        let index = self.recent.1;
        if let Some(stream) = self.slots.get_mut(index) {
            stream.receiving.take_expected(length);
        }
        self.move_limits(index, length, now, rtt, config);
    }

    /// Adds an event for the application.
    #[inline]
    pub(crate) fn notice(&mut self, index: u32, event: u8) {
        if let Some(stream) = self.slots.get_mut(index) {
            stream.events |= event;
            if !stream.noticed {
                stream.noticed = true;
                self.noticed.push_back(index);
            }
        }
    }

    /// Whether an event can be fetched.
    pub(crate) fn has_events(&self) -> bool {
        !self.noticed.is_empty()
    }

    /// Removes and returns the next event. The close event removes a stream that has ended.
    pub(crate) fn poll_event(&mut self) -> Option<(u32, TransportEvent)> {
        while let Some(index) = self.noticed.front() {
            let Some(stream) = self.slots.get_mut(index) else {
                self.noticed.pop_front();
                continue;
            };
            let bit = stream.events & stream.events.wrapping_neg();
            stream.events &= !bit;
            let told = match bit {
                event::CONNECTED => TransportEvent::Connected,
                event::READABLE => TransportEvent::Readable,
                event::WRITABLE => TransportEvent::Writable,
                event::PEER_FINISHED => TransportEvent::PeerFinished,
                event::CLOSED => TransportEvent::Closed(stream.close_reason(self.reason)),
                _ => {
                    stream.noticed = false;
                    self.noticed.pop_front();
                    continue;
                }
            };
            if bit == event::CLOSED {
                self.noticed.pop_front();
                self.remove(index);
            }
            return Some((index, told));
        }
        None
    }

    /// Removes a stream that has ended.
    fn remove(&mut self, index: u32) {
        let Some(stream) = self.slots.remove(index) else { return };
        self.recent = (u64::MAX, NONE);
        self.ready.retain(|ready| *ready != index);
        self.control_due.retain(|due| *due != index);
        self.scheduler.on_closed(stream.id);
        // Unread data counts as read, so that the connection's limit advances.
        let unread = stream.receiving.highest - stream.receiving.taken_bytes.min(stream.receiving.highest);
        self.read_bytes += unread;
        if self.read_bytes.saturating_add(self.window).saturating_sub(self.receive_limit) >= (self.window / 4).max(1) {
            self.receive_limit = self.read_bytes.saturating_add(self.window);
            self.limit_due = true;
        }
        if !self.is_local(stream.id) {
            let kind = usize::from(is_unidirectional(stream.id));
            let remote = &mut self.remote[kind];
            remote.closed += 1;
            // The limit increases in steps of half of `max_streams`, to avoid a frame for each stream.
            let allowed = remote.closed + self.max_streams;
            if allowed >= remote.limit + self.max_streams.div_ceil(2) {
                remote.limit = allowed;
                remote.due = true;
            }
        }
    }

    /// Ends all streams at the end of the connection.
    pub(crate) fn close_all(&mut self, reason: CloseReason) {
        self.reason = reason;
        self.ready.clear();
        self.control_due.clear();
        for index in 0..self.slots.len() {
            if self.get(index).is_some_and(|stream| !stream.closed) {
                if let Some(stream) = self.get_mut(index) {
                    stream.closed = true;
                }
                self.notice(index, event::CLOSED);
            }
        }
    }

    /// Updates the queue of streams with data to send after a possible change.
    #[inline]
    pub(crate) fn requeue(&mut self, index: u32) {
        let Some(stream) = self.slots.get_mut(index) else { return };
        let has_any = stream.sending.has_any() && !stream.held;
        let was_queued = std::mem::replace(&mut stream.queued, has_any);
        if !has_any {
            let sending = &mut stream.sending;
            if sending.sent < sending.written
                && sending.blocked_at != Some(sending.limit)
                && sending.reset == ControlFrameState::NotRequested
            {
                sending.blocked_at = Some(sending.limit);
                sending.blocked_due = true;
                self.control(index);
            }
        }
        if has_any != was_queued {
            self.change_ready(index, has_any);
        }
    }

    fn change_ready(&mut self, index: u32, is_ready: bool) {
        let id_of = |index: u32| self.slots.get(index).map_or(u64::MAX, |stream| stream.id);
        let id = id_of(index);
        let place = self.ready.as_slice().partition_point(|other| id_of(*other) < id);
        if is_ready {
            self.ready.insert(place, index);
        } else if self.ready.as_slice().get(place) == Some(&index) {
            self.ready.remove(place);
        }
    }

    /// Whether only the connection's flow control limit prevents sending.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.sent_bytes >= self.send_limit && !self.ready.is_empty()
    }

    /// Writes the application's data to a stream.
    #[inline]
    pub(crate) fn write(&mut self, index: u32, payload: Payload, now: Instant) {
        let written = self.timed.then(|| {
            let (last, stream) = self.last_write;
            let same = stream == index && last.at == now;
            let written = WriteRecord { at: now, order: last.order + u64::from(!same) };
            self.last_write = (written, index);
            written
        });
        if let Some(stream) = self.get_mut(index) {
            stream.sending.write(payload, written);
        }
        self.requeue(index);
    }

    /// The maximum size of the next frame of this stream: up to the end of the write that contains its next byte. A
    /// frame thus never overtakes earlier writes to other streams.
    #[inline]
    pub(crate) fn most_at_once(&self, stream: &Stream) -> u64 {
        if !self.timed || self.ready.as_slice().len() < 2 {
            return u64::MAX;
        }
        let offset = stream.sending.next_offset();
        stream.sending.written_at(offset).1.saturating_sub(offset)
    }

    /// Whether any data remains to be sent after this chunk.
    #[inline]
    pub(crate) fn has_more_after(&self, index: u32, piece: &StreamChunk) -> bool {
        self.ready.as_slice().len() > 1
            || self.get(index).is_some_and(|stream| {
                let sending = &stream.sending;
                piece.offset < sending.sent && (sending.has_new() || sending.lost.as_slice().len() > 1)
            })
    }

    /// The stream that sends next; `None` if no stream has data that it may send.
    #[inline]
    pub(crate) fn choose(&mut self) -> Option<u32> {
        let may_send_new = self.sent_bytes < self.send_limit;
        match (self.ready.as_slice(), may_send_new) {
            ([], _) => None,
            ([index], true) => Some(*index),
            _ => self.choose_among(may_send_new),
        }
    }

    #[cold]
    #[inline(never)]
    fn choose_among(&mut self, may_send_new: bool) -> Option<u32> {
        let slots = &self.slots;
        let stream = |index: u32| slots.get(index);
        let Choice { candidates, places } = &mut **self.choice.get_or_insert_default();
        // FIN needs no flow control credit.
        let may = |stream: &Stream| {
            may_send_new || !stream.sending.lost.is_empty() || stream.sending.sent == stream.sending.written
        };
        let lost_first = self.retransmission == RetransmissionOrder::First
            && self
                .ready
                .as_slice()
                .iter()
                .any(|index| stream(*index).is_some_and(|stream| !stream.sending.lost.is_empty()));
        candidates.clear();
        places.clear();
        for &index in self.ready.as_slice() {
            let Some(stream) = stream(index) else { continue };
            let lost = !stream.sending.lost.is_empty();
            if !may(stream) || lost_first && !lost {
                continue;
            }
            let (WriteRecord { at, order }, _) = stream.sending.written_at(stream.sending.next_offset());
            let Stream { id, priority, .. } = *stream;
            candidates.push(Candidate { stream: id, priority, written_at: at, order, lost });
            places.push(index);
        }
        if places.len() < 2 || lost_first {
            return places.first().copied();
        }
        let place = self.scheduler.choose(candidates).min(places.len() - 1);
        Some(places[place])
    }

    /// Records that a chunk was sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, index: u32, piece: &StreamChunk) {
        let Some(stream) = self.slots.get_mut(index) else { return };
        self.sent_bytes += stream.sending.on_sent(piece);
        self.scheduler.on_sent(stream.id, &stream.priority, piece.length);
        self.requeue(index);
    }

    /// Records that a chunk was acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, id: u64, piece: &StreamChunk) {
        let Some(index) = self.find(id) else { return };
        let has_several = self.slots.has_several();
        let Some(stream) = self.slots.get_mut(index) else { return };
        let before = stream.sending.acknowledged_below;
        let less = stream.sending.on_acknowledged(piece);
        if !stream.sending.finished {
            let sending = &stream.sending;
            // With several streams, an event that is delayed until the threshold could follow that of another stream
            // and change the order of writes.
            if sending.acknowledged_below > before
                && (has_several
                    || self.send_buffer_bytes.saturating_sub(sending.held_bytes()) >= sending.writable_threshold)
            {
                self.notice(index, event::WRITABLE);
            }
        } else if stream.sending.is_over() {
            self.settle(index);
        }
        if less {
            self.requeue(index);
        }
    }

    /// Records that a chunk was lost, or is to be sent again as a probe.
    pub(crate) fn on_lost(&mut self, id: u64, piece: &StreamChunk) {
        let Some(index) = self.find(id) else { return };
        if let Some(stream) = self.slots.get_mut(index) {
            stream.sending.on_lost(piece);
        }
        self.requeue(index);
    }

    /// Reports the end of a stream to the application once both directions have ended.
    #[inline]
    pub(crate) fn settle(&mut self, index: u32) {
        let Some(stream) = self.slots.get_mut(index) else { return };
        if !stream.closed && stream.is_over() {
            stream.closed = true;
            self.notice(index, event::CLOSED);
        }
    }

    /// Records that a stream has control frames to send.
    pub(crate) fn control(&mut self, index: u32) {
        // Control frames of a held stream are queued when the stream is released.
        let held = self.get(index).is_none_or(|stream| stream.held);
        if !held && !self.control_due.contains(&index) {
            self.control_due.push(index);
        }
    }

    /// Advances limits after the application has read this number of bytes of a stream.
    #[inline]
    pub(crate) fn on_read(&mut self, index: u32, bytes: u64, now: Instant, rtt: Duration, config: &Config) {
        self.move_limits(index, bytes, now, rtt, config);
        self.settle(index);
    }

    #[inline(always)]
    fn move_limits(&mut self, index: u32, bytes: u64, now: Instant, rtt: Duration, config: &Config) {
        self.read_bytes += bytes;
        if let Some(stream) = self.slots.get_mut(index)
            && stream.receiving.wants_limit()
        {
            let was_due = stream.receiving.limit_due;
            let windows = FlowControlWindows::of(config);
            stream.receiving.move_limit(now, rtt, windows.most_stream_bytes, windows.tuning);
            if stream.receiving.limit_due && !was_due {
                self.control(index);
            }
        }
        let wanted = self.read_bytes.saturating_add(self.window);
        if wanted.saturating_sub(self.receive_limit) >= self.window / 4 {
            self.move_limit(now, rtt, &FlowControlWindows::of(config));
        }
    }

    /// Advances the connection's limit after a read, as for a stream.
    #[cold]
    #[inline(never)]
    fn move_limit(&mut self, now: Instant, rtt: Duration, windows: &FlowControlWindows) {
        if windows.tuning {
            if now.saturating_since(self.window_since) < rtt.saturating_mul(2) {
                self.window = self.window.saturating_mul(2).min(windows.most_connection_bytes);
            }
            self.window_since = now;
        }
        self.receive_limit = self.read_bytes.saturating_add(self.window);
        self.limit_due = true;
    }

    /// Sets the peer's initial limits of all streams (its transport parameters).
    pub(crate) fn set_peer_limits(
        &mut self,
        connection_bytes: u64,
        stream_bytes: u64,
        bidirectional: u64,
        unidirectional: u64,
    ) {
        self.send_limit = self.send_limit.max(connection_bytes);
        self.peer_stream_window = self.peer_stream_window.max(stream_bytes);
        for (kind, limit) in [bidirectional, unidirectional].into_iter().enumerate() {
            self.limit_local(kind, self.local[kind].limit.max(limit));
        }
        for index in 0..self.slots.len() {
            if let Some(stream) = self.get_mut(index) {
                stream.sending.limit = stream.sending.limit.max(stream_bytes);
            }
            self.requeue(index);
        }
    }

    /// Resets all sent data and the remembered limits, because the server rejected 0-RTT (RFC 9000 section 7.4.1).
    /// Returns the number of bytes to send again.
    pub(crate) fn begin_anew(&mut self) -> u64 {
        (self.send_limit, self.peer_stream_window) = (0, 0);
        for stream in self.slots.iter_mut() {
            stream.sending.forget_sent();
        }
        for index in 0..self.slots.len() {
            self.requeue(index);
        }
        for kind in 0..2 {
            self.limit_local(kind, 0);
        }
        std::mem::take(&mut self.sent_bytes)
    }
}

/// The error for a stream ID that a frame must not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamIdError {
    /// The ID exceeds the limit of MAX_STREAMS.
    LimitExceeded,
    /// The ID is that of a local stream that was not opened.
    NotOpened,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler;

    const WINDOWS: FlowControlWindows = FlowControlWindows {
        stream_bytes: 1000,
        connection_bytes: 1000,
        most_stream_bytes: 1000,
        most_connection_bytes: 1000,
        tuning: false,
    };

    fn client() -> (Streams, u32) {
        let mut streams =
            Streams::new(false, Box::new(scheduler::Fifo), RetransmissionOrder::First, &WINDOWS, 10, 1 << 20);
        streams.set_peer_limits(1000, 1000, 10, 10);
        let index = streams.open(true, None, &WINDOWS, Instant::ZERO).expect("the peer allows ten");
        (streams, index)
    }

    /// Otherwise an end would try to send forever, and never send its acknowledgments.
    #[test]
    fn stream_whose_lost_data_was_acknowledged_has_nothing_to_send() {
        let (mut streams, index) = client();
        streams.write(index, Payload::Length(300), Instant::ZERO);
        let piece = |offset| StreamChunk { offset, length: 100, fin: false };
        for offset in [0, 100, 200] {
            assert_eq!(streams.choose(), Some(index));
            streams.on_sent(index, &piece(offset));
        }
        assert_eq!(streams.choose(), None);
        streams.on_lost(0, &piece(0));
        streams.on_lost(0, &piece(200));
        assert_eq!(streams.choose(), Some(index));
        streams.on_acknowledged(0, &piece(200));
        assert_eq!(streams.choose(), Some(index), "one of the two pieces is still missing");
        streams.on_acknowledged(0, &piece(0));
        assert_eq!(streams.choose(), None);
    }

    #[test]
    fn connection_credit_limits_new_data_but_not_retransmissions() {
        let (mut streams, index) = client();
        streams.write(index, Payload::Length(2000), Instant::ZERO);
        let all = StreamChunk { offset: 0, length: 1000, fin: false };
        streams.on_sent(index, &all);
        assert_eq!((streams.choose(), streams.sent_bytes), (None, 1000));
        streams.on_lost(0, &all);
        assert_eq!(streams.choose(), Some(index));
    }
}
