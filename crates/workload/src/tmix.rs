//! Tmix: the connections of a trace, each between the flow's two hosts (Weigle, Adurthi, Hernández-Campos, Jeffay and Smith,
//! "Tmix: a tool for generating realistic TCP application workloads in ns-2", CCR 36(3), 2006).
//!
//! **Model.** A connection vector lists what the two sides write, in application data units. In a *sequential*
//! connection the units have one order. A side writes its next unit after a wait. A *receive wait* begins when all
//! earlier data of the other side have arrived. A *send wait* begins when the side's own previous unit was completely
//! written to its send buffer. In a *concurrent* connection each side writes its own units, with a send wait after
//! each. A unit of size 0 is the close. A side without further units closes after the other side has closed.
//!
//! Both ends have the trace, as the hosts of a testbed do. The initiator opens connection n at its time; the acceptor looks up
//! the units of connection n. Each connection is read or generated once for both ends. If a trace can no longer be read because
//! its file was changed, it ends there, and `trace_broken` is 1.
//!
//! The initiator reports the response time of each exchange. This is the time from the first byte of its request to the
//! last byte of the response, without the acceptor's own wait.

mod spec;

pub(crate) use spec::TMIX;
pub use spec::{TmixSpec, TmixTraceSource};

use crate::application::{
    self, Application, ApplicationMetric, Completion, Io, MetricValue, OpenOptions, Progress, SortedTimes, StreamId,
};
use fullpipe_tmix::{Adu, ConnectionVector, PerSide, ScheduledConnections, Side, Trace};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A trace that can move to the run's thread.
pub type BoxedTrace = Box<dyn Trace + Send>;

/// How connections are opened and which properties they take from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TmixOptions {
    /// Whether connections use the segment sizes of the trace.
    pub mss_of_trace: bool,
    /// Whether connections use the receive windows of the trace.
    pub window_of_trace: bool,
    /// Whether units are padded to whole segments, as with ns-2's one-way TCP.
    pub padded: bool,
    /// Whether each exchange is reported as a completion. Response times by size are reported in any case.
    pub exchanges: bool,
    /// Start of the measured interval. Exchanges that begin earlier are not reported.
    pub measured_from: Instant,
}

static METRICS: [ApplicationMetric; 5] = [
    ApplicationMetric::new("connections_begun", "", "Connections that the initiator has opened."),
    ApplicationMetric::new("connections_finished", "", "Connections that have completed all units of the trace."),
    ApplicationMetric::new("connections_broken_off", "", "Connections that closed earlier."),
    ApplicationMetric::new("connections_open", "", "Connections that were open when the run ended."),
    ApplicationMetric::new("trace_broken", "", "1 if the trace could not be read to its end, else 0."),
];

/// Largest response of each class in bytes. Response times are reported per class.
const CLASSES: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, u64::MAX];

macro_rules! response_metrics {
    ($class:literal, $sizes:literal) => {
        [
            ApplicationMetric::new(concat!("responses_", $class), "", concat!("Responses ", $sizes, ".")),
            ApplicationMetric::new(
                concat!("mean_response_", $class, "_s"),
                "s",
                concat!("Mean response time of responses ", $sizes, "."),
            ),
            ApplicationMetric::new(concat!("median_response_", $class, "_s"), "s", "Median of these response times."),
            ApplicationMetric::new(
                concat!("p95_response_", $class, "_s"),
                "s",
                "95th percentile of these response times.",
            ),
        ]
    };
}

/// The metrics of each class: number, mean, median and 95th percentile.
static RESPONSES: [[ApplicationMetric; 4]; CLASSES.len()] = [
    response_metrics!("1kB", "of up to 1 kB"),
    response_metrics!("10kB", "above 1 kB and up to 10 kB"),
    response_metrics!("100kB", "above 10 kB and up to 100 kB"),
    response_metrics!("1MB", "above 100 kB and up to 1 MB"),
    response_metrics!("above", "above 1 MB"),
];

/// The connections of a trace, shared by both ends of a flow. A connection is read or generated when the first of the
/// two ends needs it, and kept until the second end has taken it.
#[derive(Clone)]
pub struct SharedTrace(Arc<Mutex<Reel>>);

struct Reel {
    connections: ScheduledConnections<BoxedTrace>,
    /// Connections that one end has taken and the other has not.
    kept: VecDeque<ConnectionVector>,
    /// Number of connections taken by initiator and acceptor.
    taken: PerSide<u64>,
    broken: bool,
}

impl SharedTrace {
    /// Shares the connections between the two ends of one flow.
    pub fn new(connections: ScheduledConnections<BoxedTrace>) -> Self {
        let reel = Reel { connections, kept: VecDeque::new(), taken: PerSide::default(), broken: false };
        SharedTrace(Arc::new(Mutex::new(reel)))
    }

    fn reel(&self) -> MutexGuard<'_, Reel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reel {
    /// Returns the next connection of one end.
    fn next(&mut self, side: Side) -> Option<ConnectionVector> {
        let behind = self.taken.get(side) < self.taken.get(side.other());
        let connection = if behind {
            self.kept.pop_front()?
        } else {
            match self.connections.next()? {
                Ok(connection) => self.kept.push_back(connection),
                Err(_) => {
                    self.broken = true;
                    return None;
                }
            }
            self.kept.back()?.clone()
        };
        *self.taken.get_mut(side) += 1;
        Some(connection)
    }
}

/// The connections of a trace that one end has taken.
struct Source {
    connections: SharedTrace,
    side: Side,
    options: TmixOptions,
    start: Instant,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("options", &self.options).field("start", &self.start).finish_non_exhaustive()
    }
}

impl Source {
    fn next(&mut self) -> Option<ConnectionVector> {
        let mut connection = self.connections.reel().next(self.side)?;
        if self.options.padded {
            pad(&mut connection);
        }
        Some(connection)
    }
}

/// Segment size of connections whose trace states none.
const USUAL_MSS_BYTES: u32 = 1460;

fn pad(connection: &mut ConnectionVector) {
    for adu in &mut connection.body {
        let mss = connection.mss_bytes.as_ref().map_or(USUAL_MSS_BYTES, |mss| *mss.get(adu.side)).max(1);
        adu.size_bytes = adu.size_bytes.next_multiple_of(u64::from(mss));
    }
}

/// One side of one connection. With thousands of connections the player is not in the cache when a segment arrives. So the fields
/// that this event uses come first and fill one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Player {
    side: Side,
    sequential: bool,
    closed: bool,
    peer_finished: bool,
    /// Whether there is a unit of this side at or after `next`, if known. Reset when `next` advances.
    own: Option<bool>,
    /// Unwritten bytes of the present unit.
    unwritten_bytes: u64,
    received_bytes: u64,
    /// Bytes that must have arrived before the next unit.
    expected_bytes: u64,
    /// When the last of `received_bytes` arrived.
    received_at: Instant,
    /// When the next unit is due; [`Instant::NEVER`] while unknown.
    due: Instant,
    /// When the previous unit was completely written.
    written_at: Instant,
    // Second cache line.
    body: Box<[Adu]>,
    /// Index of the next unit.
    next: usize,
    /// Start of the present exchange at the initiator, without the acceptor's wait.
    asked_at: Option<Instant>,
    /// Bytes that had arrived when the exchange started.
    asked_after_bytes: u64,
}

const _: () = assert!(size_of::<Option<Player>>() == 128, "a player fills two cache lines");

/// When a player must run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// When more data arrive or can be written, or when its timer expires.
    Wait,
    /// At this time.
    At(Instant),
}

impl Player {
    fn new(connection: ConnectionVector, side: Side, now: Instant) -> Player {
        Player {
            side,
            sequential: connection.is_sequential(),
            closed: false,
            peer_finished: false,
            own: None,
            unwritten_bytes: 0,
            received_bytes: 0,
            expected_bytes: 0,
            received_at: now,
            due: Instant::NEVER,
            written_at: now,
            body: connection.body,
            next: 0,
            asked_at: None,
            asked_after_bytes: 0,
        }
    }

    /// Writes the units that are due.
    fn go_on(&mut self, id: StreamId, io: &mut dyn Io) -> Step {
        loop {
            if self.unwritten_bytes > 0 {
                let Some(stream) = io.stream(id) else { return Step::Wait };
                self.unwritten_bytes -= stream.write(Payload::Length(self.unwritten_bytes)).min(self.unwritten_bytes);
                if self.unwritten_bytes > 0 {
                    return Step::Wait;
                }
                self.written_at = io.now();
            }
            if !self.find_own() {
                if self.peer_finished && !self.closed {
                    self.close(id, io);
                }
                return Step::Wait;
            }
            if self.sequential && self.received_bytes < self.expected_bytes {
                return Step::Wait;
            }
            let adu = self.body[self.next];
            let known = !self.due.is_never();
            if !known {
                let after_receipt = self.sequential && adu.send_wait.is_zero();
                let since = if after_receipt { self.received_at.max(self.written_at) } else { self.written_at };
                self.due = since.saturating_add(adu.send_wait).saturating_add(adu.receive_wait);
            }
            if io.now() < self.due {
                return if known { Step::Wait } else { Step::At(self.due) };
            }
            self.due = Instant::NEVER;
            self.next += 1;
            self.own = None;
            if adu.is_close() {
                self.close(id, io);
            } else if !self.closed {
                self.unwritten_bytes = adu.size_bytes;
                self.ask(io.now());
            }
        }
    }

    /// Skips the other side's units up to this side's next unit. Returns whether there is one.
    #[inline]
    fn find_own(&mut self) -> bool {
        match self.own {
            Some(found) => found,
            None => self.look_for_own(),
        }
    }

    #[inline(never)]
    fn look_for_own(&mut self) -> bool {
        while let Some(adu) = self.body.get(self.next).filter(|adu| adu.side != self.side) {
            self.expected_bytes += adu.size_bytes;
            self.next += 1;
        }
        let found = self.next < self.body.len();
        self.own = Some(found);
        found
    }

    fn close(&mut self, id: StreamId, io: &mut dyn Io) {
        self.closed = true;
        if let Some(stream) = io.stream(id) {
            stream.finish();
        }
    }

    /// Starts an exchange when the initiator writes, if the response is already known to follow.
    fn ask(&mut self, now: Instant) {
        if self.side == Side::Initiator && self.sequential {
            self.asked_at = Some(now);
            self.asked_after_bytes = self.received_bytes;
        }
    }

    /// Counts `bytes` received bytes. Returns the exchange that they complete.
    fn receive(&mut self, now: Instant, bytes: u64) -> Option<Completion> {
        self.received_bytes += bytes;
        self.received_at = now;
        if self.unwritten_bytes > 0 {
            return None;
        }
        let _ = self.find_own();
        if self.received_bytes < self.expected_bytes {
            return None;
        }
        let began = self.asked_at.take()?;
        let bytes = self.received_bytes - self.asked_after_bytes;
        let waits = self.answer_waits();
        (bytes > 0).then(|| Completion { started: began.saturating_add(waits), completed: now, bytes })
    }

    /// The acceptor's own wait in the response before `next`.
    fn answer_waits(&self) -> Duration {
        let answer = self.body[..self.next].iter().rev().take_while(|adu| adu.side != self.side);
        answer
            .filter(|adu| !adu.is_close())
            .fold(Duration::ZERO, |sum, adu| sum.saturating_add(adu.send_wait).saturating_add(adu.receive_wait))
    }
}

/// The players of one end, found by stream. Stream numbers are small and reused.
#[derive(Debug, Default)]
struct Players {
    /// Index in `players` by stream, counted from 1; 0 if there is none.
    places: Vec<u32>,
    players: Vec<Option<Player>>,
    /// Unused indices, counted from 1.
    free: Vec<u32>,
}

impl Players {
    #[inline]
    fn get_mut(&mut self, id: StreamId) -> Option<&mut Player> {
        let place = *self.places.get(id.0 as usize)?;
        self.players.get_mut(place.checked_sub(1)? as usize)?.as_mut()
    }

    fn insert(&mut self, id: StreamId, player: Player) {
        self.remove(id);
        let index = id.0 as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        self.places[index] = match self.free.pop() {
            Some(place) => {
                self.players[place as usize - 1] = Some(player);
                place
            }
            None => {
                self.players.push(Some(player));
                self.players.len() as u32
            }
        };
    }

    fn remove(&mut self, id: StreamId) -> Option<Player> {
        let place = std::mem::take(self.places.get_mut(id.0 as usize)?);
        let player = self.players.get_mut(place.checked_sub(1)? as usize)?.take();
        self.free.push(place);
        player
    }

    fn count(&self) -> usize {
        self.players.len() - self.free.len()
    }
}

/// The state that both ends have.
#[derive(Debug, Default)]
struct Table {
    players: Players,
    /// Due units by time. Units of broken connections stay until they are due.
    due: BinaryHeap<Reverse<(Instant, StreamId)>>,
    finished: u64,
    broken_off: u64,
    /// Whether completions are recorded.
    exchanges: bool,
    /// Start of the measured interval.
    measured_from: Instant,
    progress: Progress,
    completions: Vec<Completion>,
    /// Response times by class.
    responses: [Vec<Duration>; CLASSES.len()],
}

impl Table {
    fn go_on(&mut self, id: StreamId, io: &mut dyn Io) {
        let Some(player) = self.players.get_mut(id) else { return };
        if let Step::At(at) = player.go_on(id, io) {
            self.due.push(Reverse((at, id)));
        }
    }

    fn go_on_with_all_due(&mut self, io: &mut dyn Io) {
        while let Some(&Reverse((at, id))) = self.due.peek()
            && at <= io.now()
        {
            self.due.pop();
            // The stream number may be in use by another connection, or the unit is already written.
            if self.players.get_mut(id).is_some_and(|player| player.due == at) {
                self.go_on(id, io);
            }
        }
    }

    fn on_stream(&mut self, id: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.go_on(id, io),
            TransportEvent::Readable => self.read(id, io),
            TransportEvent::PeerFinished => {
                self.read(id, io);
                if let Some(player) = self.players.get_mut(id) {
                    player.peer_finished = true;
                }
                self.go_on(id, io);
            }
            TransportEvent::Closed(_) => {
                if let Some(player) = self.players.remove(id) {
                    let whole = player.closed && player.next == player.body.len();
                    *if whole { &mut self.finished } else { &mut self.broken_off } += 1;
                }
            }
        }
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let bytes = application::read_length(id, u64::MAX, io);
        let now = io.now();
        let Some(player) = self.players.get_mut(id).filter(|_| bytes > 0) else { return };
        let measured_from = self.measured_from;
        if let Some(completion) = player.receive(now, bytes).filter(|completion| completion.started >= measured_from) {
            let class = CLASSES.iter().position(|largest| completion.bytes <= *largest).unwrap_or_default();
            self.responses[class].push(completion.completed.saturating_since(completion.started));
            if self.exchanges {
                self.completions.push(completion);
            }
        }
        self.progress.count_received(bytes, now);
        self.go_on(id, io);
    }

    fn next_due(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }
}

/// The end that opens the connections.
#[derive(Debug)]
pub struct TmixInitiator {
    source: Source,
    table: Table,
    /// The next connection to open.
    next: Option<ConnectionVector>,
    opened: u64,
}

impl TmixInitiator {
    /// Creates the initiator of a trace's connections, for a flow that starts at `start`.
    pub fn new(connections: SharedTrace, options: TmixOptions, start: Instant) -> Self {
        let source = Source { connections, side: Side::Initiator, options, start };
        let (exchanges, measured_from) = (options.exchanges, options.measured_from);
        let table = Table { exchanges, measured_from, ..Table::default() };
        TmixInitiator { source, table, next: None, opened: 0 }
    }

    fn open_all_due(&mut self, io: &mut dyn Io) {
        while let Some(connection) = self.next.take() {
            if self.source.start.saturating_add(connection.start) > io.now() {
                self.next = Some(connection);
                return;
            }
            let id = io.open_with(&self.source.options.of(&connection));
            self.table.players.insert(id, Player::new(connection, Side::Initiator, io.now()));
            self.opened += 1;
            self.next = self.source.next();
        }
    }

    fn set_timer(&self, io: &mut dyn Io) {
        let opening = self.next.as_ref().map_or(Instant::NEVER, |next| self.source.start.saturating_add(next.start));
        io.wake_at(opening.min(self.table.next_due()));
    }
}

impl TmixOptions {
    fn of(self, connection: &ConnectionVector) -> OpenOptions {
        let sides = [Side::Initiator, Side::Acceptor];
        let mss = connection.mss_bytes.as_ref().filter(|_| self.mss_of_trace);
        let window = connection.window_bytes.as_ref().filter(|_| self.window_of_trace);
        OpenOptions {
            mss_bytes: mss.map(|mss| sides.map(|side| *mss.get(side))),
            receive_buffer_bytes: window.map(|window| sides.map(|side| *window.get(side))),
            several_streams: false,
        }
    }
}

impl Application for TmixInitiator {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.next = self.source.next();
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        self.open_all_due(io);
        self.table.go_on_with_all_due(io);
        self.set_timer(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        let before = self.table.next_due();
        self.table.on_stream(stream, event, io);
        if self.table.next_due() != before {
            self.set_timer(io);
        }
    }

    fn progress(&self) -> Progress {
        self.table.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.table.completions
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        let broken = u64::from(self.source.connections.reel().broken);
        let open = self.table.players.count() as u64;
        let counts = [self.opened, self.table.finished, self.table.broken_off, open, broken];
        let mut figures = ApplicationMetric::values(&METRICS, counts.map(|count| count as f64));
        for (times, metrics) in self.table.responses.iter().zip(&RESPONSES) {
            let sorted = SortedTimes::new(times);
            let values = [times.len() as f64, sorted.mean(), sorted.quantile(0.5), sorted.quantile(0.95)];
            figures.extend(ApplicationMetric::values(metrics, values));
        }
        figures
    }
}

/// The end that accepts the connections.
#[derive(Debug)]
pub struct TmixAcceptor {
    source: Source,
    table: Table,
    /// Connections that were opened and have not arrived, by number.
    awaited: BTreeMap<u32, ConnectionVector>,
    /// Number of connections taken from the trace.
    taken: u32,
}

impl TmixAcceptor {
    /// Creates the acceptor of a trace's connections, for a flow that starts at `start`.
    pub fn new(connections: SharedTrace, options: TmixOptions, start: Instant) -> Self {
        let source = Source { connections, side: Side::Acceptor, options, start };
        TmixAcceptor { source, table: Table::default(), awaited: BTreeMap::new(), taken: 0 }
    }

    fn accept(&mut self, id: StreamId, io: &dyn Io) {
        let Some(number) = io.connection_number(id) else { return };
        while self.taken <= number
            && let Some(connection) = self.source.next()
        {
            self.awaited.insert(self.taken, connection);
            self.taken += 1;
        }
        if let Some(connection) = self.awaited.remove(&number) {
            self.table.players.insert(id, Player::new(connection, Side::Acceptor, io.now()));
        }
    }
}

impl Application for TmixAcceptor {
    fn on_wake(&mut self, io: &mut dyn Io) {
        self.table.go_on_with_all_due(io);
        io.wake_at(self.table.next_due());
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if event == TransportEvent::Connected {
            self.accept(stream, io);
        }
        let before = self.table.next_due();
        self.table.on_stream(stream, event, io);
        if self.table.next_due() != before {
            io.wake_at(self.table.next_due());
        }
    }

    fn progress(&self) -> Progress {
        self.table.progress
    }
}
