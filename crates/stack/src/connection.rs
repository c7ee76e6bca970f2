//! One end of a QUIC connection with one stream on the real stack, as a state machine: its inputs are time and
//! datagrams, its outputs datagrams and the next timer.
//!
//! **Model.** A program with its own UDP socket opens one connection and one bidirectional stream; the other end
//! accepts them. For applications it is the same [`Stream`] as that of TCP:
//!
//! * *Connected* means that the client's handshake is complete, or that the client's stream has reached the server.
//! * Written data waits here, in a buffer as large as the stack's own, until the stack accepts it (flow control, and
//!   the stack's limit on unacknowledged bytes). Data without specified content is sent as zeros.
//! * Data received in order is read from the stack up to 64 KiB ahead of the application. So the application receives
//!   the end of the peer's data as soon as it arrives, as with TCP.
//! * When both directions are finished and acknowledged, the client closes the connection (code 0), and the server
//!   reports that it is finished. An abort closes with code 1, which the peer treats as a reset.
//!
//! **Instants.** The stack's processing takes no time. The stack may set a timer for a past instant, since a probe can
//! be due before the acknowledgment that moved it. Such a timer fires at once. If the stack sets it again at the same
//! instant, it fires a nanosecond later so that time advances; the stack's pacer rounds waiting times down.

use crate::entropy::RandomStreams;
use crate::journal::{PacketLog, PacketLogEntry};
use crate::settings::Settings;
use bytes::{Bytes, BytesMut};
use fullpipe_control::clock::{self, from_std, to_std};
use fullpipe_control::{Adapter, ControlFactory, ControlState, RttStatistics};
use fullpipe_transport::{CloseReason, Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use noq_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir, Endpoint, FourTuple, PathId, StreamEvent,
    StreamId, Transmit, VarInt,
};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Bytes that are read from the stream ahead of the application.
const LOOK_AHEAD_BYTES: u64 = 64 << 10;
/// Data of writes that specify only a length.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Codes of CONNECTION_CLOSE frames from the application, which defines their meaning (RFC 9000 section 20.2).
const FINISHED: VarInt = VarInt::from_u32(0);
const ABORTED: VarInt = VarInt::from_u32(1);

/// The payload of a UDP datagram and the ECN codepoint of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The payload.
    pub payload: Bytes,
    /// The ECN codepoint.
    pub codepoint: EcnCodepoint,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStatistics {
    /// QUIC packets sent.
    pub sent_packets: u64,
    /// QUIC packets declared lost; their data is retransmitted.
    pub lost_packets: u64,
    /// Congestion events (losses or marks) passed to the congestion control.
    pub congestion_events: u64,
    /// Congestion events that were later found to be spurious.
    pub spurious_congestion_events: u64,
    /// Largest UDP payload in bytes that the path is known to support.
    pub mtu_bytes: u16,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Mean of the smoothed round-trip times at each acknowledged packet; `None` before the first.
    pub mean_rtt: Option<Duration>,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionState {
    /// No connection was requested yet.
    Listening,
    /// The handshake is not complete.
    Handshaking,
    /// The handshake is complete.
    Established,
    /// One end has closed the connection or timed out.
    Closing,
    /// The connection has ended and has no further output.
    Drained,
}

/// The stack's part of a connection.
struct Inner {
    handle: ConnectionHandle,
    connection: noq_proto::Connection,
}

/// One end of a QUIC connection with one stream.
pub struct Connection {
    endpoint: Endpoint,
    round_trips: RttStatistics,
    /// `None` at a server before its first connection.
    inner: Option<Box<Inner>>,
    client: bool,
    path: FourTuple,
    stream: Option<StreamId>,
    events: VecDeque<TransportEvent>,
    /// Datagrams that the endpoint itself sends in response.
    responses: VecDeque<Datagram>,
    /// Buffer into which the stack writes a datagram. It is reused, because every second call writes none. Before, it
    /// and the clones of arrivals caused a third of the allocator's instructions (`quic-real-1-100m`).
    buffer: Vec<u8>,
    outgoing: Outgoing,
    incoming: Incoming,
    ending: Ending,
    /// Time of the latest call.
    now: Instant,
    /// Time at which the stack's timers were last served.
    served: Option<Instant>,
    journal: Option<PacketLog>,
}

/// State of the sending direction.
#[derive(Debug, Default)]
struct Outgoing {
    waiting: VecDeque<Payload>,
    waiting_bytes: u64,
    capacity_bytes: u64,
    /// The application will write no more.
    finish: bool,
    /// The end of the stream was passed to the stack.
    finished: bool,
    /// The peer has acknowledged all data or sent STOP_SENDING.
    done: bool,
}

/// State of the receiving direction.
#[derive(Debug, Default)]
struct Incoming {
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// The stack had no data at the last read, and no datagram has arrived since.
    drained: bool,
    /// The end of the peer's data was reached.
    ended: bool,
}

/// How the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// The application aborts it.
    Abort,
    Over,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("client", &self.client)
            .field("path", &self.path)
            .field("stream", &self.stream)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates the client end, which opens a connection from `local` to `remote` now. Data that is written before the
    /// end of the handshake is sent afterward.
    ///
    /// # Errors
    /// Returns the stack's message if `remote` is not a valid destination (port 0 or no address).
    pub fn client(
        settings: &Settings,
        control: ControlFactory,
        entropy: &RandomStreams,
        now: Instant,
        [local, remote]: [SocketAddr; 2],
    ) -> Result<Connection, String> {
        let made = settings.endpoint_settings(control);
        let mut endpoint = Endpoint::new(Arc::new(made.endpoint(entropy)), None, true);
        let config = made.client(entropy);
        let (handle, connection) =
            endpoint.connect(to_std(now), config, remote, "server").map_err(|error| error.to_string())?;
        let mut client = Connection::new(settings, endpoint, made.round_trips, true, [local, remote]);
        client.inner = Some(Box::new(Inner { handle, connection }));
        client.now = now;
        Ok(client)
    }

    /// Creates the server end, which waits at `local` for a connection from `remote`.
    pub fn server(
        settings: &Settings,
        control: ControlFactory,
        entropy: &RandomStreams,
        [local, remote]: [SocketAddr; 2],
    ) -> Connection {
        let made = settings.endpoint_settings(control);
        let config = Arc::new(made.server(entropy));
        let endpoint = Endpoint::new(Arc::new(made.endpoint(entropy)), Some(config), true);
        Connection::new(settings, endpoint, made.round_trips, false, [local, remote])
    }

    fn new(
        settings: &Settings,
        endpoint: Endpoint,
        round_trips: RttStatistics,
        client: bool,
        [local, remote]: [SocketAddr; 2],
    ) -> Connection {
        Connection {
            endpoint,
            round_trips,
            inner: None,
            client,
            path: FourTuple::new(remote, Some(local.ip())),
            stream: None,
            events: VecDeque::new(),
            responses: VecDeque::new(),
            buffer: Vec::with_capacity(2048),
            outgoing: Outgoing { capacity_bytes: settings.send_buffer_bytes, ..Outgoing::default() },
            incoming: Incoming::default(),
            ending: Ending::No,
            now: Instant::ZERO,
            served: None,
            journal: settings.journal.clone(),
        }
    }

    // Driven by the host ---------------------------------------------------------------------------------------------

    /// Processes a datagram from the peer.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.now = now;
        self.incoming.drained = false;
        self.note(|| PacketLogEntry::DatagramReceived { bytes: datagram.payload.len(), codepoint: datagram.codepoint });
        let data = datagram.payload.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let mut answer = Vec::new();
        let ecn = noq_proto::EcnCodepoint::from_bits(datagram.codepoint.bits());
        let event = self.endpoint.handle(to_std(now), self.path, ecn, data, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => self.hand(handle, event),
            Some(DatagramEvent::NewConnection(incoming)) if self.inner.is_none() => {
                match self.endpoint.accept(incoming, to_std(now), &mut answer, None) {
                    Ok((handle, connection)) => self.inner = Some(Box::new(Inner { handle, connection })),
                    Err(refused) => self.respond(refused.response, answer),
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(Some(transmit), answer),
            None => {}
        }
        self.settle();
    }

    /// Processes the timer of [`Connection::next_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        (self.now, self.served) = (now, Some(now));
        if let Some(inner) = &mut self.inner {
            inner.connection.handle_timeout(to_std(now));
        }
        self.settle();
    }

    /// Time at which [`Connection::handle_timeout`] must be called; [`Instant::NEVER`] without a timer. The value is
    /// valid only after [`Connection::poll_transmit`] has returned `None`.
    pub fn next_timeout(&self) -> Instant {
        let Some(at) = self.inner.as_ref().and_then(|inner| inner.connection.poll_timeout()) else {
            return Instant::NEVER;
        };
        let at = from_std(at).max(self.now);
        if self.served == Some(at) { at.saturating_add(Duration::from_nanos(1)) } else { at }
    }

    /// Returns the next datagram for the peer; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let next = self.next_datagram(now);
        if let Some(Datagram { payload, codepoint }) = &next {
            self.note(|| PacketLogEntry::DatagramSent { bytes: payload.len(), codepoint: *codepoint });
        }
        next
    }

    fn note(&self, entry: impl FnOnce() -> PacketLogEntry) {
        if let Some(journal) = &self.journal {
            journal.note(entry());
        }
    }

    fn next_datagram(&mut self, now: Instant) -> Option<Datagram> {
        self.now = now;
        if let Some(response) = self.responses.pop_front() {
            return Some(response);
        }
        self.end(now);
        self.flush();
        let inner = self.inner.as_mut()?;
        self.buffer.clear();
        let transmit = inner.connection.poll_transmit(to_std(now), NonZeroUsize::MIN, &mut self.buffer);
        self.settle();
        transmit.map(|transmit| datagram(&transmit, &self.buffer))
    }

    /// Returns the next event for the application; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<TransportEvent> {
        self.events.pop_front()
    }

    /// Whether [`Connection::poll_event`] would return an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the connection has ended and has no further output.
    pub fn is_drained(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.connection.is_drained())
    }

    /// Counters since the start of the connection.
    pub fn statistics(&mut self) -> ConnectionStatistics {
        let Some(inner) = &mut self.inner else { return ConnectionStatistics::default() };
        let all = inner.connection.stats();
        let path = inner.connection.path_stats(PathId::ZERO).unwrap_or_default();
        ConnectionStatistics {
            sent_packets: all.sent_packets,
            lost_packets: all.lost_packets,
            congestion_events: path.congestion_events,
            spurious_congestion_events: path.spurious_congestion_events,
            mtu_bytes: path.current_mtu,
            smoothed_rtt: clock::duration_from_std(path.rtt),
            mean_rtt: self.round_trips.mean(),
        }
    }

    /// Current state of the congestion control; `None` before and after the connection.
    pub fn inspect(&self) -> Option<ControlState> {
        let control = self.inner.as_ref()?.connection.congestion_state(PathId::ZERO)?;
        control.clone_box().into_any().downcast::<Adapter>().ok().map(|adapter| adapter.inspect())
    }

    /// Number of lost path MTU discovery probes.
    pub fn lost_mtu_probes(&mut self) -> u64 {
        let path = self.inner.as_mut().and_then(|inner| inner.connection.path_stats(PathId::ZERO));
        path.map_or(0, |path| path.lost_plpmtud_probes)
    }

    /// State of the connection.
    pub fn state(&self) -> ConnectionState {
        match &self.inner {
            None => ConnectionState::Listening,
            Some(inner) if inner.connection.is_drained() => ConnectionState::Drained,
            Some(inner) if inner.connection.is_closed() => ConnectionState::Closing,
            Some(inner) if inner.connection.is_handshaking() => ConnectionState::Handshaking,
            Some(_) => ConnectionState::Established,
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        let connection = &self.inner.as_ref()?.connection;
        if connection.is_handshaking() {
            return None;
        }
        connection.rtt(PathId::ZERO).map(clock::duration_from_std)
    }

    // Internals -------------------------------------------------------------------------------------------------------

    fn hand(&mut self, handle: ConnectionHandle, event: ConnectionEvent) {
        if let Some(inner) = &mut self.inner
            && inner.handle == handle
        {
            inner.connection.handle_event(event);
        }
    }

    fn respond(&mut self, transmit: Option<Transmit>, answer: Vec<u8>) {
        self.responses.extend(transmit.map(|transmit| datagram(&transmit, &answer)));
    }

    /// Passes events between the stack's endpoint, its connection and the application until none are left.
    fn settle(&mut self) {
        loop {
            let Some(inner) = &mut self.inner else { return };
            while let Some(event) = inner.connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(inner.handle, event) {
                    inner.connection.handle_event(answer);
                }
            }
            let Some(event) = inner.connection.poll() else { return };
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: noq_proto::Event) {
        match event {
            noq_proto::Event::Connected if self.client => {
                let inner = self.inner.as_mut().expect("the connection has reported an event");
                // A peer that permits no streams is not one of this crate.
                self.stream = inner.connection.streams().open(Dir::Bi);
                self.events.push_back(TransportEvent::Connected);
                self.make_room();
            }
            noq_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if self.stream.is_none() => {
                let inner = self.inner.as_mut().expect("the connection has reported an event");
                self.stream = inner.connection.streams().accept(Dir::Bi);
                self.events.push_back(TransportEvent::Connected);
                self.make_room();
                self.take_arrivals();
            }
            noq_proto::Event::Stream(StreamEvent::Readable { id }) if self.stream == Some(id) => self.take_arrivals(),
            noq_proto::Event::Stream(StreamEvent::Writable { id }) if self.stream == Some(id) => self.make_room(),
            noq_proto::Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. })
                if self.stream == Some(id) =>
            {
                self.outgoing.done = true;
            }
            noq_proto::Event::ConnectionLost { reason } => {
                let finished = self.outgoing.done && self.incoming.ended;
                self.over(if finished { CloseReason::Finished } else { close_reason(&reason) });
            }
            _ => {}
        }
    }

    fn over(&mut self, reason: CloseReason) {
        if self.ending != Ending::Over {
            self.ending = Ending::Over;
            self.outgoing.waiting.clear();
            self.outgoing.waiting_bytes = 0;
            self.events.push_back(TransportEvent::Closed(reason));
        }
    }

    /// Closes the connection if both directions are done.
    fn end(&mut self, now: Instant) {
        let finished = self.client && self.outgoing.done && self.incoming.ended && self.incoming.ready_bytes == 0;
        let (code, reason) = match self.ending {
            Ending::Abort => (ABORTED, CloseReason::Aborted),
            Ending::No if finished => (FINISHED, CloseReason::Finished),
            Ending::No | Ending::Over => return,
        };
        if let Some(inner) = &mut self.inner {
            inner.connection.close(to_std(now), code, Bytes::new());
        }
        self.over(reason);
    }

    /// Updates the free space after the stack has accepted data.
    fn make_room(&mut self) {
        let before = self.outgoing.waiting_bytes;
        self.flush();
        if self.outgoing.waiting_bytes < before {
            self.events.push_back(TransportEvent::Writable);
        }
    }

    /// Writes waiting data to the stack, as much as it accepts.
    fn flush(&mut self) {
        let (Some(inner), Some(id)) = (&mut self.inner, self.stream) else { return };
        let Outgoing { waiting, waiting_bytes, finish, finished, done, .. } = &mut self.outgoing;
        while let Some(first) = waiting.front_mut() {
            let mut chunk = [match first {
                Payload::Length(length) => {
                    let most = usize::try_from(*length).unwrap_or(usize::MAX).min(ZEROS.len());
                    Bytes::from_static(&ZEROS[..most])
                }
                Payload::Bytes(bytes) => bytes.clone(),
            }];
            let Ok(taken) = inner.connection.send_stream(id).write_chunks(&mut &mut chunk[..]) else { break };
            let taken = taken as u64;
            *waiting_bytes -= taken;
            match first {
                Payload::Length(length) => *length -= taken,
                Payload::Bytes(bytes) => drop(bytes.split_to(taken as usize)),
            }
            if first.is_empty() {
                waiting.pop_front();
            }
        }
        if *finish && !*finished && waiting.is_empty() {
            *finished = true;
            // A peer that sent STOP_SENDING does not receive the end.
            *done |= inner.connection.send_stream(id).finish().is_err();
        }
    }

    /// Reads arrived data from the stack and notifies the application.
    fn take_arrivals(&mut self) {
        let (before, ended) = (self.incoming.ready_bytes, self.incoming.ended);
        let reset = self.read_ahead();
        if self.incoming.ready_bytes > before {
            self.events.push_back(TransportEvent::Readable);
        }
        if self.incoming.ended && !ended && !reset {
            self.events.push_back(TransportEvent::PeerFinished);
        }
        if reset {
            self.ending = if self.ending == Ending::Over { Ending::Over } else { Ending::Abort };
        }
    }

    /// Fills the look-ahead buffer. Returns whether the peer has reset its direction.
    fn read_ahead(&mut self) -> bool {
        let (Some(inner), Some(id)) = (&mut self.inner, self.stream) else { return false };
        let Incoming { ready, ready_bytes, drained, ended } = &mut self.incoming;
        if *ended || *ready_bytes >= LOOK_AHEAD_BYTES {
            return false;
        }
        if *drained {
            debug_assert!(is_drained(&mut inner.connection, id), "the stack announces arrived data");
            return false;
        }
        let mut stream = inner.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return false };
        let mut reset = false;
        while *ready_bytes < LOOK_AHEAD_BYTES {
            match chunks.next((LOOK_AHEAD_BYTES - *ready_bytes) as usize) {
                Ok(Some(chunk)) => {
                    *ready_bytes += chunk.bytes.len() as u64;
                    ready.push_back(chunk.bytes);
                }
                Ok(None) => {
                    *ended = true;
                    break;
                }
                Err(noq_proto::ReadError::Reset(_)) => {
                    (*ended, reset) = (true, true);
                    break;
                }
                Err(noq_proto::ReadError::Blocked) => {
                    *drained = true;
                    break;
                }
            }
        }
        // The caller polls for output next.
        let _ = chunks.finalize();
        reset
    }
}

impl Stream for Connection {
    fn writable_bytes(&self) -> u64 {
        if self.outgoing.finish || self.ending != Ending::No {
            return 0;
        }
        self.outgoing.capacity_bytes.saturating_sub(self.outgoing.waiting_bytes)
    }

    fn write(&mut self, payload: Payload) -> u64 {
        let mut written = 0;
        // The stack may accept the data at once. The space is then free again without a later event.
        while written < payload.len() {
            let taken = (payload.len() - written).min(self.writable_bytes());
            if taken == 0 {
                break;
            }
            self.outgoing.waiting_bytes += taken;
            self.outgoing.waiting.push_back(match &payload {
                Payload::Length(_) => Payload::Length(taken),
                Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(written as usize..(written + taken) as usize)),
            });
            written += taken;
            self.flush();
        }
        written
    }

    fn readable_bytes(&self) -> u64 {
        self.incoming.ready_bytes
    }

    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let first = self.incoming.ready.front_mut().filter(|_| max_bytes > 0)?;
        let taken = (first.len() as u64).min(max_bytes);
        let piece = first.split_to(taken as usize);
        if first.is_empty() {
            self.incoming.ready.pop_front();
        }
        self.incoming.ready_bytes -= taken;
        // The same reader can read the following data. The end of the peer's data is reported by an event.
        let ended = self.incoming.ended;
        let reset = self.read_ahead();
        if self.incoming.ended && !ended && !reset {
            self.events.push_back(TransportEvent::PeerFinished);
        }
        Some(Payload::Bytes(piece))
    }

    fn finish(&mut self) {
        self.outgoing.finish = true;
        self.flush();
    }

    fn abort(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Abort;
        }
    }
}

fn datagram(transmit: &Transmit, buffer: &[u8]) -> Datagram {
    let codepoint = transmit.ecn.map_or(EcnCodepoint::NotEct, |ecn| EcnCodepoint::from_bits(ecn as u8));
    Datagram { payload: Bytes::copy_from_slice(&buffer[..transmit.size]), codepoint }
}

/// Whether the stack has nothing to read on a stream, by a new read.
fn is_drained(connection: &mut noq_proto::Connection, id: StreamId) -> bool {
    let mut stream = connection.recv_stream(id);
    // A closed stream also has no data.
    stream.read(true).map_or(true, |mut chunks| matches!(chunks.next(1), Err(noq_proto::ReadError::Blocked)))
}

fn close_reason(reason: &ConnectionError) -> CloseReason {
    match reason {
        ConnectionError::ApplicationClosed(close) if close.error_code == FINISHED => CloseReason::Finished,
        ConnectionError::TimedOut => CloseReason::TimedOut,
        ConnectionError::LocallyClosed => CloseReason::Aborted,
        ConnectionError::VersionMismatch => CloseReason::Refused,
        _ => CloseReason::Reset,
    }
}
