//! Shared parts of the tests: a simple congestion control, two ends over paths with configurable behavior, and one end whose peer is the
//! test.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use bytes::Bytes;
use fullpipe_congestion::{Ack, CongestionEvent, Controller, Timeout, WindowState};
use fullpipe_tcp::{Config, Connection, Cookie, FastOpenEntry, Transmit};
use fullpipe_transport::{CloseReason, Payload, Stream as _, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant, RandomStream, Rate};
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{AccurateEcn, SackBlock, SegmentOptions, TcpHeader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Halves the window (not the data in flight) at each congestion event, and grows only in slow start.
#[derive(Debug, Default)]
pub struct Halving;

impl Controller for Halving {
    fn name(&self) -> &'static str {
        "halving"
    }
    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if !ack.in_recovery && control.cwnd_bytes < control.ssthresh_bytes && ack.cwnd_limited {
            control.cwnd_bytes += ack.cumulative_bytes;
        }
    }
    fn on_congestion(&mut self, control: &mut WindowState, _: &CongestionEvent) {
        control.ssthresh_bytes = (control.cwnd_bytes / 2).max(2 * control.mss_bytes);
    }
    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        if !timeout.repeated {
            control.ssthresh_bytes = (control.cwnd_bytes / 2).max(2 * control.mss_bytes);
        }
    }
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// A segment in transit, or written by a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub header: TcpHeader,
    pub sacks: Vec<SackBlock>,
    pub payload: Option<Bytes>,
    pub codepoint: EcnCodepoint,
    pub accurate_ecn: AccurateEcn,
    /// The cookie of the Fast Open option; empty: no option, or a request.
    pub cookie: Vec<u8>,
}

impl From<&Transmit> for Segment {
    fn from(transmit: &Transmit) -> Segment {
        Segment {
            header: transmit.header,
            sacks: transmit.beside.options.sacks[..usize::from(transmit.header.sack_count)].to_vec(),
            payload: transmit.beside.payload.clone(),
            codepoint: transmit.beside.codepoint,
            accurate_ecn: transmit.beside.options.accurate_ecn,
            cookie: match transmit.header.options & options::FAST_OPEN {
                0 => Vec::new(),
                _ => transmit.beside.options.fast_open_cookie[..usize::from(transmit.beside.options.fast_open_bytes)]
                    .to_vec(),
            },
        }
    }
}

pub fn deliver(connection: &mut Connection, now: Instant, segment: &Segment) {
    let mut options = SegmentOptions { accurate_ecn: segment.accurate_ecn, ..SegmentOptions::default() };
    options.sacks[..segment.sacks.len()].copy_from_slice(&segment.sacks);
    options.fast_open_cookie[..segment.cookie.len()].copy_from_slice(&segment.cookie);
    options.fast_open_bytes = segment.cookie.len() as u8;
    let arrived = fullpipe_tcp::Segment {
        header: &segment.header,
        options: segment.header.has_segment_options().then_some(&options),
        payload: segment.payload.as_ref(),
        codepoint: segment.codepoint,
    };
    connection.handle_segment(now, &arrived);
}

/// All segments that an end can send now.
pub fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    let mut transmit = Transmit::default();
    let mut segments = Vec::new();
    while connection.poll_transmit(now, &mut transmit) {
        assert!(segments.len() < 100_000, "endless output");
        segments.push(Segment::from(&transmit));
    }
    segments
}

pub fn next_deadline(connection: &Connection) -> Instant {
    connection.slow_timer_deadline().min(connection.fast_timer_deadline())
}

// Two ends ------------------------------------------------------------------------------------------------------------

/// A path in one direction.
#[derive(Clone, Debug)]
pub struct Path {
    pub delay: Duration,
    /// Additional delay, uniformly distributed: segments are reordered if it is longer than their distance.
    pub jitter: Duration,
    pub loss: f64,
    pub duplication: f64,
    /// Fraction of ECN-capable packets that a queue marks.
    pub marks: f64,
    /// Rate of the path; `None`: unlimited.
    pub rate: Option<Rate>,
    /// Maximum wait for the transmitter.
    pub queue: Duration,
}

impl Default for Path {
    fn default() -> Path {
        Path {
            delay: ms(10),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            marks: 0.0,
            rate: None,
            queue: ms(1000),
        }
    }
}

/// The application at one end: writes a number of bytes in pieces, then finishes; reads everything.
#[derive(Clone, Debug)]
pub struct Application {
    pub to_write: u64,
    pub piece: u64,
    pub bytes: bool,
    pub written: u64,
    pub read: u64,
    pub finishes: bool,
    pub finished: bool,
    pub peer_finished: bool,
    pub connected: bool,
    pub closed: Option<CloseReason>,
    /// Reads at most this many bytes per interval.
    pub slow: Option<(u64, Duration)>,
    pub next_read: Instant,
}

impl Application {
    pub fn new(to_write: u64) -> Application {
        Application {
            to_write,
            piece: 1 << 20,
            bytes: false,
            written: 0,
            read: 0,
            finishes: true,
            finished: false,
            peer_finished: false,
            connected: false,
            closed: None,
            slow: None,
            next_read: Instant::ZERO,
        }
    }
}

/// The byte at an offset of the data that tests send; not periodic in any power of two.
pub fn letter(offset: u64, end: usize) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ end as u8
}

/// Returns whether a segment that an end (0: client) sends is lost.
pub type Filter = Box<dyn FnMut(usize, Instant, &Segment) -> bool>;

/// Two ends, two paths, one clock.
pub struct Pair {
    pub now: Instant,
    pub ends: [Connection; 2],
    pub applications: [Application; 2],
    pub paths: [Path; 2],
    free_at: [Instant; 2],
    random: RandomStream,
    wires: BTreeMap<(Instant, u64), (usize, Segment)>,
    serial: u64,
    pub filter: Filter,
    pub sent: [u64; 2],
    /// Scale and right edge of the windows that each end announces.
    shifts: [Option<u8>; 2],
    edges: [Option<u32>; 2],
    pub log: Option<Vec<(Instant, usize, Segment)>>,
    /// Whether the fast paths are used if a connection permits it, and the number of segments that used them.
    pub short_path: bool,
    pub short: Short,
}

/// Numbers of segments that used a fast path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Short {
    /// Through [`Connection::receive_fast_path`].
    pub data: u64,
    /// Through [`Connection::process_fast_path_ack`].
    pub acknowledgements: u64,
    /// Through [`Connection::poll_burst`].
    pub bursts: u64,
}

impl Pair {
    pub fn new(configs: [Config; 2], initial: [u32; 2], seed: u64) -> Pair {
        let [client, server] = configs.map(Arc::new);
        let start = Instant::ZERO;
        let mut ends = [
            Connection::client(client, Box::new(Halving), initial[0], start),
            Connection::server(server, Box::new(Halving), initial[1], start),
        ];
        // Every other seed gives the client a cookie, and half of those cookies are valid.
        if seed % 2 == 1 {
            let cookie = |first| Cookie::new(&[first, 1, 2, 3, 4, 5, 6, 7]).unwrap();
            ends[0].set_fast_open_entry(FastOpenEntry { cookie: cookie(seed as u8 & 2), mss_bytes: Some(1460) });
            ends[1].set_fast_open_cookie(cookie(2));
        }
        Pair {
            now: start,
            ends,
            applications: [Application::new(0), Application::new(0)],
            paths: [Path::default(), Path::default()],
            free_at: [start; 2],
            random: RandomStream::new(seed, "pair", "path"),
            wires: BTreeMap::new(),
            serial: 0,
            filter: Box::new(|_, _, _| false),
            sent: [0; 2],
            shifts: [None; 2],
            edges: [None; 2],
            log: None,
            short_path: false,
            short: Short::default(),
        }
    }

    /// Processes a segment by a fast path if these are enabled, the segment permits it, and the application reads everything.
    fn take_expected(&mut self, end: usize, segment: &Segment) -> bool {
        let (connection, application) = (&mut self.ends[end], &mut self.applications[end]);
        let plain = !segment.header.has_segment_options() && segment.payload.is_none();
        if !self.short_path || !plain {
            return false;
        }
        if connection.is_fast_path_ack(&segment.header) {
            self.short.acknowledgements += 1;
            connection.process_fast_path_ack(self.now, &segment.header);
            return true;
        }
        if application.slow.is_some() || !connection.is_fast_path_data(self.now, &segment.header) {
            return false;
        }
        self.short.data += 1;
        application.read += connection.receive_fast_path(self.now, &segment.header);
        if connection.sends_only_acknowledgements() {
            let far = connection.slow_timer_deadline();
            if connection.is_ack_pending() {
                let mut transmit = Transmit::default();
                connection.poll_acknowledgement(self.now, &mut transmit.header, &mut transmit.beside);
                self.send(end, Segment::from(&transmit));
            }
            let connection = &mut self.ends[end];
            assert!(connection.has_nothing_to_send());
            let before = (next_deadline(connection), connection.statistics());
            assert_eq!(drain(connection, self.now), [], "a silent connection has nothing to send");
            assert_eq!((next_deadline(connection), connection.statistics()), before);
            assert_eq!(connection.slow_timer_deadline(), far, "a host need not arm the far timer");
        }
        true
    }

    fn serve(&mut self, end: usize) {
        let connection = &mut self.ends[end];
        let application = &mut self.applications[end];
        while let Some(event) = connection.poll_event() {
            assert!(application.closed.is_none(), "an event follows the last one: {event:?}");
            match event {
                TransportEvent::Connected => application.connected = true,
                TransportEvent::PeerFinished => application.peer_finished = true,
                TransportEvent::Closed(reason) => application.closed = Some(reason),
                TransportEvent::Readable | TransportEvent::Writable => {}
            }
        }
        let mut budget = match application.slow {
            None => u64::MAX,
            Some(_) if self.now < application.next_read => 0,
            Some((bytes, pause)) => {
                application.next_read = self.now + pause;
                bytes
            }
        };
        while budget > 0
            && let Some(payload) = connection.read(budget)
        {
            if let Payload::Bytes(bytes) = &payload {
                for (index, byte) in bytes.iter().enumerate() {
                    let offset = application.read + index as u64;
                    assert_eq!(*byte, letter(offset, 1 - end), "wrong byte at {offset}");
                }
            }
            assert!(!payload.is_empty() && payload.len() <= budget);
            application.read += payload.len();
            budget -= payload.len();
        }
        if application.connected || end == 0 {
            while application.written < application.to_write && connection.writable_bytes() > 0 {
                let length = application.piece.min(application.to_write - application.written);
                let payload = if application.bytes {
                    Payload::Bytes(
                        (0..length).map(|index| letter(application.written + index, end)).collect::<Vec<_>>().into(),
                    )
                } else {
                    Payload::Length(length)
                };
                application.written += connection.write(payload);
            }
            if application.written == application.to_write && application.finishes && !application.finished {
                application.finished = true;
                connection.finish();
            }
        }
        for segment in self.burst(end).into_iter().chain(drain(&mut self.ends[end], self.now)) {
            self.send(end, segment);
        }
    }

    /// The segments that are sent together, if the fast paths are enabled.
    fn burst(&mut self, end: usize) -> Vec<Segment> {
        if !self.short_path {
            return Vec::new();
        }
        let connection = &mut self.ends[end];
        let burst = connection.poll_burst(self.now);
        let mut transmit = Transmit { header: burst.header, ..Transmit::default() };
        let mut segments = Vec::new();
        for _ in 0..burst.segments {
            segments.push(Segment::from(&transmit));
            let step = u32::from(transmit.header.payload_bytes);
            transmit.header.sequence = transmit.header.sequence.wrapping_add(step);
        }
        if burst.is_all {
            let before = (next_deadline(connection), connection.statistics());
            assert_eq!(drain(connection, self.now), [], "segments remain after a burst that reported none");
            assert_eq!((next_deadline(connection), connection.statistics()), before);
        }
        self.short.bursts += u64::from(burst.segments);
        segments
    }

    /// Asserts that the right edge of the window never moves left, except for the rounding of its scale (RFC 9293 section 3.8.6).
    fn check_window(&mut self, end: usize, header: &TcpHeader) {
        let syn = header.has_flag(flags::SYN);
        if syn {
            self.shifts[end] = (header.options & options::WINDOW_SCALE != 0).then_some(header.window_scale);
        }
        if header.has_flag(flags::RST) || !header.has_flag(flags::ACK) || syn && self.edges[end].is_some() {
            // The 16 bits of a retransmitted SYN cannot represent more.
            return;
        }
        // Scales apply if both ends offered them; the window of a SYN is never scaled.
        let shift = match self.shifts {
            [Some(_), Some(_)] if !syn => self.shifts[end].unwrap_or(0),
            _ => 0,
        };
        let edge = header.acknowledgement.wrapping_add(u32::from(header.window) << shift);
        if let Some(last) = self.edges[end] {
            let growth = edge.wrapping_sub(last) as i32;
            assert!(growth > -(1 << shift), "the window of end {end} shrinks by {}", -growth);
        }
        self.edges[end] = Some(edge);
    }

    fn send(&mut self, end: usize, segment: Segment) {
        self.sent[end] += 1;
        self.check_window(end, &segment.header);
        let lost = (self.filter)(end, self.now, &segment);
        if let Some(log) = &mut self.log {
            log.push((self.now, end, segment.clone()));
        }
        let path = &self.paths[end];
        let mut at = self.now;
        if let Some(rate) = path.rate {
            let begin = self.free_at[end].max(self.now);
            if begin - self.now > path.queue {
                return;
            }
            at = begin + rate.transmission_time(u64::from(segment.header.payload_bytes) + 52);
            self.free_at[end] = at;
        }
        if lost || self.random.bernoulli(path.loss) {
            return;
        }
        let mut segment = segment;
        if path.marks > 0.0 && segment.codepoint != EcnCodepoint::NotEct && self.random.bernoulli(path.marks) {
            segment.codepoint = EcnCodepoint::Ce;
        }
        let copies = 1 + u64::from(self.random.bernoulli(path.duplication));
        for _ in 0..copies {
            let arrival = at + path.delay + self.random.uniform_duration(path.jitter);
            self.wires.insert((arrival, self.serial), (1 - end, segment.clone()));
            self.serial += 1;
        }
    }

    /// Executes one event. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        if self.serial == 0 && self.sent == [0, 0] {
            self.serve(0);
            return true;
        }
        let wire = self.wires.keys().next().map_or(Instant::NEVER, |key| key.0);
        let mut due = wire;
        for end in 0..2 {
            due = due.min(next_deadline(&self.ends[end]));
            if self.applications[end].slow.is_some() && self.ends[end].readable_bytes() > 0 {
                due = due.min(self.applications[end].next_read.max(self.now));
            }
        }
        if due.is_never() {
            return false;
        }
        assert!(due >= self.now, "a deadline in the past: {due} at {}", self.now);
        self.now = due;
        if wire == due {
            let (_, (end, segment)) = self.wires.pop_first().unwrap();
            if !self.take_expected(end, &segment) {
                deliver(&mut self.ends[end], self.now, &segment);
            }
            self.serve(end);
        } else {
            for end in 0..2 {
                if next_deadline(&self.ends[end]) <= self.now {
                    self.ends[end].handle_timeout(self.now);
                }
                self.serve(end);
                assert!(next_deadline(&self.ends[end]) > self.now, "the host would spin");
            }
        }
        true
    }

    /// Runs until nothing is left to do or the time limit is reached. Returns whether nothing was left.
    pub fn run(&mut self, limit: Duration) -> bool {
        let end = self.now + limit;
        while self.now < end {
            if !self.step() {
                return true;
            }
        }
        false
    }
}

// One end -------------------------------------------------------------------------------------------------------------

/// One end under test; the test acts as the peer, with offsets in the stream.
pub struct Script {
    pub connection: Connection,
    pub now: Instant,
    /// Sequence numbers of the SYNs of the tested end and of the peer.
    pub initial: u32,
    pub peer_initial: u32,
    /// Window in the peer's segments.
    pub window: u16,
    pub with_timestamps: bool,
    /// The peer's next offset.
    pub peer_next: u32,
    pub events: Vec<TransportEvent>,
    last_timestamp: u32,
}

impl Script {
    /// A connection established at 0 ms with round-trip time `rtt`, whose client is the tested end.
    pub fn client(config: Config, rtt: Duration) -> Script {
        Script::client_with(config, Box::new(Halving), rtt)
    }

    pub fn client_with(config: Config, controller: Box<dyn Controller>, rtt: Duration) -> Script {
        let mut script = Script::unopened(config, controller);
        let syn = script.out().remove(0);
        assert!(syn.header.has_flag(flags::SYN));
        script.advance(rtt);
        let mut answer = script.segment(0, flags::SYN | flags::ACK);
        answer.header.sequence = script.peer_initial;
        answer.header.acknowledgement = script.initial.wrapping_add(1);
        answer.header.options = syn.header.options;
        answer.header.mss = syn.header.mss;
        answer.header.timestamp_echo = syn.header.timestamp;
        script.with_timestamps = syn.header.options & options::TIMESTAMPS != 0;
        script.window = u16::MAX;
        answer.header.window = u16::MAX;
        answer.header.window_scale = 7;
        script.deliver(answer);
        let ack = script.out();
        assert_eq!(ack.len(), 1);
        script
    }

    pub fn unopened(config: Config, controller: Box<dyn Controller>) -> Script {
        let initial = u32::MAX - 5_000;
        Script {
            connection: Connection::client(Arc::new(config), controller, initial, Instant::ZERO),
            now: Instant::ZERO,
            initial,
            peer_initial: 77,
            window: u16::MAX,
            with_timestamps: false,
            peer_next: 0,
            events: Vec::new(),
            last_timestamp: 0,
        }
    }

    pub fn advance(&mut self, time: Duration) {
        self.now += time;
    }

    /// The offset of a sequence number that the tested end sent.
    pub fn offset(&self, sequence: u32) -> u32 {
        sequence.wrapping_sub(self.initial).wrapping_sub(1)
    }

    pub fn number(&self, offset: u32) -> u32 {
        self.initial.wrapping_add(1).wrapping_add(offset)
    }

    /// A segment of the peer that acknowledges everything before `acknowledged`.
    pub fn segment(&self, acknowledged: u32, flags: u16) -> Segment {
        let mut header = TcpHeader {
            sequence: self.peer_initial.wrapping_add(1).wrapping_add(self.peer_next),
            acknowledgement: self.number(acknowledged),
            flags,
            window: self.window,
            ..TcpHeader::default()
        };
        if self.with_timestamps {
            header.options = options::TIMESTAMPS;
            header.timestamp = 1_000_000 + (self.now.as_nanos() / 1_000_000) as u32;
            header.timestamp_echo = self.last_timestamp;
        }
        Segment {
            header,
            sacks: Vec::new(),
            payload: None,
            codepoint: EcnCodepoint::NotEct,
            accurate_ecn: AccurateEcn::default(),
            cookie: Vec::new(),
        }
    }

    pub fn deliver(&mut self, segment: Segment) {
        deliver(&mut self.connection, self.now, &segment);
        self.collect_events();
    }

    pub fn collect_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
    }

    /// Delivers an acknowledgment of the peer, with SACK blocks in offsets. It echoes the timestamp of the last sent segment.
    pub fn ack(&mut self, acknowledged: u32, sacks: &[(u32, u32)]) {
        let mut segment = self.segment(acknowledged, flags::ACK);
        segment.sacks =
            sacks.iter().map(|(start, end)| SackBlock { start: self.number(*start), end: self.number(*end) }).collect();
        segment.header.sack_count = sacks.len() as u8;
        self.deliver(segment);
    }

    /// Delivers `length` bytes of the peer at its offset `start`.
    pub fn data(&mut self, start: u32, length: u16, extra_flags: u16) {
        let mut segment = self.segment(0, flags::ACK | extra_flags);
        segment.header.sequence = self.peer_initial.wrapping_add(1).wrapping_add(start);
        segment.header.acknowledgement = self.number(self.acknowledged());
        segment.header.payload_bytes = length;
        self.deliver(segment);
    }

    fn acknowledged(&self) -> u32 {
        self.connection.statistics().acknowledged_bytes as u32
    }

    pub fn write(&mut self, bytes: u64) {
        assert_eq!(self.connection.write(Payload::Length(bytes)), bytes);
    }

    /// The segments that the tested end sends now.
    pub fn out(&mut self) -> Vec<Segment> {
        let segments = drain(&mut self.connection, self.now);
        if let Some(last) = segments.last() {
            self.last_timestamp = last.header.timestamp;
        }
        segments
    }

    /// First offset and length of each segment that the tested end sends now.
    pub fn sent(&mut self) -> Vec<(u32, u16)> {
        self.out().iter().map(|segment| (self.offset(segment.header.sequence), segment.header.payload_bytes)).collect()
    }

    /// Advances to the next deadline, and returns its time.
    pub fn timer(&mut self) -> Instant {
        self.now = next_deadline(&self.connection);
        assert!(!self.now.is_never(), "no deadline");
        self.connection.handle_timeout(self.now);
        self.collect_events();
        self.now
    }

    /// Converts a sequence number that the tested end acknowledges to an offset of the peer.
    pub fn peer_offset(&self, number: u32) -> u32 {
        number.wrapping_sub(self.peer_initial).wrapping_sub(1)
    }
}
