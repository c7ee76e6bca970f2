//! A path between two applications: datagrams and streams with constant delay and a given rate.
//!
//! The bytes of a stream are sent one after another at the rate of their direction. Each write arrives one delay later. The bytes
//! of a write leave the send buffer when they are in transmission. Data written during the handshake are sent after it. Nothing
//! is lost. Streams have different numbers at the two ends, and numbers of closed streams are reused.
//!
//! Each stream has the whole rate, or all share one pipe per direction in the order of writing. A connection may have several
//! streams. The acceptor accepts additional streams when their first data arrive.

use fullpipe_transport::{CloseReason, Payload, Priority, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant, Rate};
use fullpipe_workload::{Application, Io, StreamId};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// One end of a stream.
#[derive(Debug, Default)]
struct End {
    limit: u64,
    held: u64,
    /// Writes that wait, each with its position in the order of all writes.
    written: VecDeque<(u64, Payload)>,
    writes: Rc<Cell<u64>>,
    inbox: VecDeque<Payload>,
    finished: bool,
    finish_sent: bool,
    peer_finished: bool,
    aborted: bool,
    /// When its direction is free again; initially, when the connection is established.
    free: Instant,
    /// When the connection is established.
    established: Instant,
    /// Whether the application has accepted the stream.
    known: bool,
}

impl Stream for End {
    fn writable_bytes(&self) -> u64 {
        self.limit - self.held
    }
    fn unsent_bytes(&self) -> Option<u64> {
        Some(self.held)
    }
    fn write(&mut self, payload: Payload) -> u64 {
        let taken = payload.len().min(self.limit - self.held);
        if self.finished || taken == 0 {
            return 0;
        }
        self.held += taken;
        let taken_payload = match payload {
            Payload::Length(_) => Payload::Length(taken),
            Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(..taken as usize)),
        };
        self.writes.set(self.writes.get() + 1);
        self.written.push_back((self.writes.get(), taken_payload));
        taken
    }
    fn readable_bytes(&self) -> u64 {
        self.inbox.iter().map(Payload::len).sum()
    }
    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let taken = self.inbox.front()?.len().min(max_bytes);
        match self.inbox.front_mut() {
            Some(Payload::Length(length)) if *length > taken => {
                *length -= taken;
                Some(Payload::Length(taken))
            }
            Some(Payload::Bytes(bytes)) if bytes.len() as u64 > taken => {
                Some(Payload::Bytes(bytes.split_to(taken as usize)))
            }
            _ => self.inbox.pop_front(),
        }
    }
    fn finish(&mut self) {
        self.finished = true;
    }
    fn abort(&mut self) {
        self.aborted = true;
    }
}

/// An event at an end (0: initiator).
#[derive(Debug)]
enum Happening {
    Connected,
    Left(u64),
    Arrived(Payload),
    Finished,
    Closed(CloseReason),
    Datagram(u32),
}

/// The path.
pub(crate) struct Way {
    pub(crate) now: Instant,
    delay: Duration,
    /// Rate of the direction from an end at a time; `None`: transmission takes no time.
    rate: Box<dyn Fn(usize, Instant) -> Option<Rate>>,
    /// Additional delay of the n-th connection's handshake.
    pub(crate) handshake_delay: Box<dyn Fn(u32) -> Duration>,
    /// Send buffer of both ends in bytes.
    pub(crate) send_buffer_bytes: u64,
    /// When the shared pipe of each direction is free again, if streams share one.
    pub(crate) shared: Option<[Instant; 2]>,
    /// Largest number of parallel streams of a connection.
    pub(crate) most_streams: usize,
    order: Rc<Cell<u64>>,
    opened: u32,
    /// Number of streams opened, including the first of each connection.
    streams: u32,
    /// Both ends of each stream, by the global number of the stream. If each connection has one stream, that is the connection's
    /// number.
    connections: BTreeMap<u32, [End; 2]>,
    /// Connection of each stream, and its number there, including closed streams.
    places: BTreeMap<u32, (u32, u64)>,
    /// The stream that has number n at the initiator, and n + 1000 at the acceptor.
    numbers: Vec<Option<u32>>,
    /// Connections whose close is in transmission.
    closing: BTreeSet<u32>,
    happenings: BTreeMap<(Instant, u64), (usize, u32, Happening)>,
    sequence: u64,
    wakes: [Instant; 2],
    /// Datagrams sent by each end: time and bytes.
    pub(crate) datagrams: [Vec<(u64, u32)>; 2],
    /// Bytes written to streams by each end, per write: connection and length.
    pub(crate) writes: [Vec<(u32, u64)>; 2],
    /// Whether datagrams arrive.
    pub(crate) datagrams_arrive: bool,
    /// Priorities set: connection and stream number, and priority.
    pub(crate) priorities: Vec<((u32, u64), Priority)>,
}

impl Way {
    pub(crate) fn new(delay: Duration, rate: impl Fn(usize, Instant) -> Option<Rate> + 'static) -> Self {
        Way {
            now: Instant::ZERO,
            delay,
            rate: Box::new(rate),
            handshake_delay: Box::new(|_| Duration::ZERO),
            send_buffer_bytes: 1 << 40,
            shared: None,
            most_streams: usize::MAX,
            order: Rc::default(),
            opened: 0,
            streams: 0,
            connections: BTreeMap::new(),
            places: BTreeMap::new(),
            numbers: Vec::new(),
            closing: BTreeSet::new(),
            happenings: BTreeMap::new(),
            sequence: 0,
            wakes: [Instant::NEVER; 2],
            datagrams: [Vec::new(), Vec::new()],
            writes: [Vec::new(), Vec::new()],
            datagrams_arrive: true,
            priorities: Vec::new(),
        }
    }

    pub(crate) fn opened(&self) -> u32 {
        self.opened
    }

    pub(crate) fn live_connections(&self) -> usize {
        self.connections.len()
    }

    /// Closes a connection at both ends.
    pub(crate) fn kill(&mut self, connection: u32, reason: CloseReason) {
        self.close(connection, reason, [self.now; 2]);
    }

    fn close(&mut self, connection: u32, reason: CloseReason, at: [Instant; 2]) {
        if self.closing.insert(connection) {
            self.put(at[0], 0, connection, Happening::Closed(reason));
            self.put(at[1], 1, connection, Happening::Closed(reason));
        }
    }

    fn id(&self, connection: u32, end: usize) -> StreamId {
        let number = self.numbers.iter().position(|&taken| taken == Some(connection)).expect("a live connection");
        StreamId(number as u32 + 1000 * end as u32)
    }

    fn connection_of(&self, stream: StreamId, end: usize) -> Option<u32> {
        *self.numbers.get(stream.0.checked_sub(1000 * end as u32)? as usize)?
    }

    fn put(&mut self, at: Instant, end: usize, connection: u32, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert((at, self.sequence), (end, connection, happening));
    }

    /// Adds a stream, given its connection and its number there.
    fn add(&mut self, place: (u32, u64), established: Instant) -> u32 {
        let stream = self.streams;
        self.streams += 1;
        let writes = &self.order;
        let limit = self.send_buffer_bytes;
        let end = || End { limit, free: established, established, writes: writes.clone(), ..End::default() };
        self.connections.insert(stream, [end(), end()]);
        self.places.insert(stream, place);
        match self.numbers.iter_mut().find(|taken| taken.is_none()) {
            Some(free) => *free = Some(stream),
            None => self.numbers.push(Some(stream)),
        }
        stream
    }

    /// Sends the writes of all streams into the shared pipe, in the order of writing.
    fn fill_pipe(&mut self) {
        let now = self.now;
        for end in 0..2 {
            let first = |connections: &BTreeMap<u32, [End; 2]>| {
                // A write that waits for its handshake does not block the pipe.
                let open = connections.iter().filter(|(_, ends)| now >= ends[end].established);
                open.filter_map(|(stream, ends)| Some((ends[end].written.front()?.0, *stream))).min()
            };
            while let Some((_, stream)) = first(&self.connections) {
                let Some(mut ends) = self.connections.remove(&stream) else { break };
                if let Some((_, payload)) = ends[end].written.pop_front() {
                    self.launch(&mut ends[end], end, stream, payload);
                }
                self.connections.insert(stream, ends);
            }
        }
    }

    /// Transmits a write.
    fn launch(&mut self, state: &mut End, end: usize, stream: u32, payload: Payload) {
        self.writes[end].push((stream, payload.len()));
        let free = self.shared.map_or(state.free, |free| free[end]);
        let from = self.now.max(free);
        let time = (self.rate)(end, from).map_or(Duration::ZERO, |rate| rate.transmission_time(payload.len()));
        state.free = from + time;
        if let Some(free) = &mut self.shared {
            free[end] = state.free;
        }
        self.put(state.free, end, stream, Happening::Left(payload.len()));
        self.put(state.free + self.delay, 1 - end, stream, Happening::Arrived(payload));
    }

    /// Sends the writes of a connection.
    fn service(&mut self, connection: u32) {
        if self.shared.is_some() {
            self.fill_pipe();
        }
        let Some(mut ends) = self.connections.remove(&connection) else { return };
        for (end, state) in ends.iter_mut().enumerate() {
            if self.shared.is_some() && self.now < state.established {
                continue;
            }
            while let Some((_, payload)) = state.written.pop_front() {
                self.launch(state, end, connection, payload);
            }
            if state.finished && !state.finish_sent {
                state.finish_sent = true;
                let at = self.now.max(state.free) + self.delay;
                self.put(at, 1 - end, connection, Happening::Finished);
            }
            if state.aborted {
                let mut at = [self.now; 2];
                at[1 - end] = self.now + self.delay;
                self.close(connection, CloseReason::Reset, at);
            }
        }
        let over = ends.iter().all(|end| end.peer_finished && end.finish_sent && end.held == 0);
        self.connections.insert(connection, ends);
        if over {
            self.kill(connection, CloseReason::Finished);
        }
    }

    /// Updates the state of the connection and returns the event for the application.
    fn apply(&mut self, end: usize, connection: u32, happening: Happening) -> Option<TransportEvent> {
        let state = &mut self.connections.get_mut(&connection)?[end];
        Some(match happening {
            Happening::Connected => {
                state.known = true;
                TransportEvent::Connected
            }
            Happening::Left(bytes) => {
                state.held -= bytes;
                TransportEvent::Writable
            }
            Happening::Arrived(payload) => {
                state.inbox.push_back(payload);
                TransportEvent::Readable
            }
            Happening::Finished => {
                state.peer_finished = true;
                TransportEvent::PeerFinished
            }
            Happening::Closed(reason) => TransportEvent::Closed(reason),
            Happening::Datagram(_) => return None,
        })
    }

    /// Runs two applications until there are no more events, or until a time.
    pub(crate) fn run(&mut self, applications: &mut [&mut dyn Application; 2], until: Instant) {
        loop {
            let happening = self.happenings.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at);
            let wake = self.wakes[0].min(self.wakes[1]);
            let next = happening.min(wake);
            if next.is_never() || next > until {
                self.now = if until.is_never() { self.now } else { until };
                return;
            }
            self.now = next;
            if happening <= wake {
                self.happen(applications);
            } else {
                let end = usize::from(self.wakes[1] < self.wakes[0]);
                self.wakes[end] = Instant::NEVER;
                applications[end].on_wake(&mut Host { way: self, end });
            }
            let live: Vec<u32> = self.connections.keys().copied().collect();
            live.into_iter().for_each(|connection| self.service(connection));
        }
    }

    fn happen(&mut self, applications: &mut [&mut dyn Application; 2]) {
        let Some((_, (end, connection, happening))) = self.happenings.pop_first() else { return };
        if let Happening::Datagram(bytes) = happening {
            return applications[end].on_datagram(bytes, &mut Host { way: self, end });
        }
        let closed = matches!(happening, Happening::Closed(_));
        let comes = matches!(happening, Happening::Arrived(_) | Happening::Finished);
        let known = self.connections.get(&connection).is_none_or(|ends| ends[end].known);
        if comes && !known && self.places[&connection].1 > 0 {
            self.connections.get_mut(&connection).expect("the connection exists")[end].known = true;
            let id = self.id(connection, end);
            applications[end].on_stream(id, TransportEvent::Connected, &mut Host { way: self, end });
        }
        // Both ends receive the close; then the connection is removed.
        if let Some(event) = self.apply(end, connection, happening) {
            let id = self.id(connection, end);
            applications[end].on_stream(id, event, &mut Host { way: self, end });
        }
        let other = self.happenings.values().any(|(_, c, h)| *c == connection && matches!(h, Happening::Closed(_)));
        if closed && !other {
            self.connections.remove(&connection);
            self.numbers.iter_mut().filter(|taken| **taken == Some(connection)).for_each(|taken| *taken = None);
        }
    }

    /// Starts the initiator and runs.
    pub(crate) fn start(&mut self, applications: &mut [&mut dyn Application; 2], until: Instant) {
        applications[0].on_start(&mut Host { way: self, end: 0 });
        let live: Vec<u32> = self.connections.keys().copied().collect();
        live.into_iter().for_each(|connection| self.service(connection));
        self.run(applications, until);
    }
}

/// The [`Io`] of one application.
pub(crate) struct Host<'a> {
    pub(crate) way: &'a mut Way,
    pub(crate) end: usize,
}

impl Io for Host<'_> {
    fn now(&self) -> Instant {
        self.way.now
    }
    fn wake_at(&mut self, at: Instant) {
        assert!(at >= self.way.now, "a timer in the past");
        self.way.wakes[self.end] = at;
    }
    fn open_with(&mut self, _options: &fullpipe_workload::OpenOptions) -> StreamId {
        let way = &mut *self.way;
        let connection = way.opened;
        way.opened += 1;
        let handshake = way.delay + (way.handshake_delay)(connection);
        let established = way.now + handshake + way.delay;
        let stream = way.add((connection, 0), established);
        way.put(way.now + handshake, 1, stream, Happening::Connected);
        way.put(established, 0, stream, Happening::Connected);
        way.id(stream, 0)
    }
    fn open_on_same_connection(&mut self, beside: StreamId) -> Option<StreamId> {
        let way = &mut *self.way;
        let beside = way.connection_of(beside, self.end)?;
        let connection = way.places[&beside].0;
        let live = way.connections.keys().filter(|stream| way.places[stream].0 == connection).count();
        let number = way.places.values().filter(|place| place.0 == connection).count() as u64;
        let established = way.connections.get(&beside)?[0].established;
        if live >= way.most_streams || way.now < established {
            return None;
        }
        let stream = way.add((connection, number), established);
        way.connections.get_mut(&stream)?[self.end].known = true;
        Some(way.id(stream, self.end))
    }
    fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        let place = self.way.connection_of(stream, self.end).map(|stream| self.way.places[&stream]);
        self.way.priorities.extend(place.map(|place| (place, priority)));
    }
    fn close_connection(&mut self, stream: StreamId) {
        let way = &mut *self.way;
        let Some(stream) = way.connection_of(stream, self.end) else { return };
        let connection = way.places[&stream].0;
        let of_it = |stream: &u32| way.places[stream].0 == connection;
        let mut at = [way.now; 2];
        at[1 - self.end] = way.now + way.delay;
        let streams: Vec<u32> = way.connections.keys().copied().filter(of_it).collect();
        streams.into_iter().for_each(|stream| way.close(stream, CloseReason::Finished, at));
    }
    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream> {
        let ends = self.way.connections.get_mut(&self.way.connection_of(stream, self.end)?)?;
        Some(&mut ends[self.end])
    }
    fn connection_number(&self, stream: StreamId) -> Option<u32> {
        Some(self.way.places[&self.way.connection_of(stream, self.end)?].0)
    }
    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        Some(self.way.places[&self.way.connection_of(stream, self.end)?].1)
    }
    fn send_datagram(&mut self, payload_bytes: u32) {
        let way = &mut *self.way;
        way.datagrams[self.end].push((way.now.as_nanos(), payload_bytes));
        if way.datagrams_arrive {
            way.put(way.now + way.delay, 1 - self.end, 0, Happening::Datagram(payload_bytes));
        }
    }
}
