//! A simulator of two connections joined by a path that delays, loses, duplicates and reorders, with applications that read all
//! data.

#![allow(dead_code, reason = "each test uses a part")]

use fullpipe_congestion::catalogue::{ControlOptions, create};
use fullpipe_quic::{Config, Connection, Transmit, ZeroRttEntry};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant, RandomStream};
use fullpipe_wire::quic::QuicHeader;
use fullpipe_wire::{QuicDatagram, SegmentOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model of the path.
#[derive(Clone, Debug)]
pub(crate) struct PathModel {
    pub(crate) delay: Duration,
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// The largest random additional delay.
    pub(crate) jitter: Duration,
    /// The rate in bits per second; 0 for unlimited.
    pub(crate) rate_bps: u64,
    pub(crate) queue_bytes: u64,
    /// The probability that an ECN-capable packet is marked CE.
    pub(crate) mark: f64,
    /// Whether ECN bits are cleared.
    pub(crate) bleach: bool,
}

impl PathModel {
    pub(crate) fn ideal(delay: Duration) -> PathModel {
        PathModel {
            delay,
            loss: 0.0,
            duplicate: 0.0,
            jitter: Duration::ZERO,
            rate_bps: 0,
            queue_bytes: u64::MAX,
            mark: 0.0,
            bleach: false,
        }
    }
}

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) header: QuicHeader,
    pub(crate) ranges: SegmentOptions,
    pub(crate) datagram: Option<QuicDatagram>,
    pub(crate) bytes: u32,
    pub(crate) codepoint: EcnCodepoint,
}

/// Both ends with their path.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) path: PathModel,
    random: RandomStream,
    in_flight: BTreeMap<(Instant, u64), (usize, Flight)>,
    sequence: u64,
    busy_until: [Instant; 2],
    /// The bytes that each end's application has read (client, server).
    pub(crate) received: [u64; 2],
    pub(crate) events: [Vec<TransportEvent>; 2],
    /// The datagrams that each end has sent, with their times.
    pub(crate) sent: [Vec<(Instant, Flight)>; 2],
    pub(crate) keep_sent: bool,
    /// The indices of datagrams of each end that are lost, counted from 0.
    pub(crate) drop: [Vec<u64>; 2],
    counts: [u64; 2],
    /// The client's address as the server sees it.
    pub(crate) address: u8,
    /// Whether the application of each end reads.
    pub(crate) reads: [bool; 2],
    /// The content read, by end and stream ID, if it consists of bytes.
    pub(crate) content: BTreeMap<(usize, u64), Vec<u8>>,
    /// Events not yet processed by a test: the end, the index and the ID of the stream (none once it is closed).
    pub(crate) fresh: Vec<(usize, u32, Option<u64>, TransportEvent)>,
    /// The number of sent datagrams of each end that a test has processed; they are stored if `keep_sent`.
    pub(crate) looked_at: [usize; 2],
    /// The size in bytes of the largest datagram that passes.
    pub(crate) largest: u32,
    /// Whether in-order data uses [`Connection::receive_fast_path`] if possible.
    pub(crate) short_path: bool,
    /// The number of times that it did.
    pub(crate) expected: u64,
}

pub(crate) fn control(name: &str) -> Box<dyn fullpipe_congestion::Controller> {
    create(name, &ControlOptions { quic: true, paced: true, ..ControlOptions::default() })
        .expect("it is in the catalogue")
}

impl Pair {
    pub(crate) fn new(client: Config, server: Config, path: PathModel) -> Pair {
        Pair::with(client, server, path, "newreno", 1)
    }

    pub(crate) fn with(client: Config, server: Config, path: PathModel, name: &str, seed: u64) -> Pair {
        let now = Instant::ZERO;
        let known = client.zero_rtt.then(|| ZeroRttEntry::from_server_config(&server));
        Pair {
            now,
            client: Connection::client(Arc::new(client), control(name), now, known),
            server: Connection::server(Arc::new(server), control(name), now),
            path,
            random: RandomStream::new(seed, "pair", "path"),
            in_flight: BTreeMap::new(),
            sequence: 0,
            busy_until: [Instant::ZERO; 2],
            received: [0; 2],
            events: Default::default(),
            sent: Default::default(),
            keep_sent: false,
            drop: Default::default(),
            counts: [0; 2],
            address: 0,
            reads: [true; 2],
            content: BTreeMap::new(),
            fresh: Vec::new(),
            looked_at: [0; 2],
            largest: u32::MAX,
            short_path: false,
            expected: 0,
        }
    }

    pub(crate) fn end(&mut self, end: usize) -> &mut Connection {
        if end == 0 { &mut self.client } else { &mut self.server }
    }

    pub(crate) fn write(&mut self, stream: u32, payload: Payload) -> u64 {
        let now = self.now;
        self.client.stream(now, stream).map_or(0, |stream| stream.write(payload))
    }

    pub(crate) fn finish(&mut self, stream: u32) {
        let now = self.now;
        if let Some(stream) = self.client.stream(now, stream) {
            stream.finish();
        }
    }

    /// Fetches the events of both ends, and their datagrams to send.
    pub(crate) fn service(&mut self) {
        for end in 0..2 {
            loop {
                let now = self.now;
                let reads = self.reads[end];
                while let Some((index, event)) = self.end(end).poll_event() {
                    self.events[end].push(event);
                    let id = self.end(end).stream_id(index);
                    self.fresh.push((end, index, id, event));
                    if event == TransportEvent::Readable && reads {
                        self.read_all(end, index);
                    }
                }
                let mut transmit = Transmit::default();
                if !self.end(end).poll_transmit(now, &mut transmit) {
                    break;
                }
                self.launch(end, transmit);
            }
        }
    }

    pub(crate) fn read_all(&mut self, end: usize, index: u32) {
        let now = self.now;
        let id = self.end(end).stream_id(index);
        let mut taken = Vec::new();
        let mut length = 0;
        if let Some(stream) = self.end(end).stream(now, index) {
            while let Some(payload) = stream.read(u64::MAX) {
                length += payload.len();
                if let Payload::Bytes(bytes) = payload {
                    taken.extend_from_slice(&bytes);
                }
            }
        }
        self.received[end] += length;
        if let Some(id) = id {
            self.content.entry((end, id)).or_default().extend(taken);
        }
    }

    fn launch(&mut self, end: usize, transmit: Transmit) {
        let mut flight = Flight {
            header: transmit.header,
            ranges: transmit.beside.ranges,
            datagram: transmit.beside.datagram,
            bytes: transmit.beside.udp_payload_bytes,
            codepoint: transmit.beside.codepoint,
        };
        if self.keep_sent {
            self.sent[end].push((self.now, flight.clone()));
        }
        let count = self.counts[end];
        self.counts[end] += 1;
        if flight.bytes > self.largest || self.drop[end].contains(&count) || self.random.uniform() < self.path.loss {
            return;
        }
        if flight.codepoint != EcnCodepoint::NotEct && self.random.uniform() < self.path.mark {
            flight.codepoint = EcnCodepoint::Ce;
        }
        if self.path.bleach {
            flight.codepoint = EcnCodepoint::NotEct;
        }
        if end == 0 {
            flight.header.path = self.address;
        }
        let mut departure = self.now;
        if self.path.rate_bps > 0 {
            let begin = self.busy_until[end].max(self.now);
            let waiting =
                begin.saturating_since(self.now).as_nanos() as u128 * u128::from(self.path.rate_bps) / 8_000_000_000;
            if waiting as u64 + u64::from(flight.bytes) > self.path.queue_bytes {
                return;
            }
            departure = begin + Duration::from_nanos(u64::from(flight.bytes) * 8_000_000_000 / self.path.rate_bps);
            self.busy_until[end] = departure;
        }
        let copies = 1 + u32::from(self.random.uniform() < self.path.duplicate);
        for _ in 0..copies {
            let jitter = Duration::from_nanos((self.random.uniform() * self.path.jitter.as_nanos() as f64) as u64);
            let arrival = departure + self.path.delay + jitter;
            self.sequence += 1;
            self.in_flight.insert((arrival, self.sequence), (1 - end, flight.clone()));
        }
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Instant {
        let arrival = self.in_flight.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        let deadline = |connection: &Connection| connection.slow_timer_deadline().min(connection.fast_timer_deadline());
        arrival.min(deadline(&self.client)).min(deadline(&self.server))
    }

    /// Executes the next event; `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.service();
        let arrival = self.in_flight.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        let deadline = |connection: &Connection| connection.slow_timer_deadline().min(connection.fast_timer_deadline());
        let timers = [deadline(&self.client), deadline(&self.server)];
        assert!(timers.iter().all(|timer| *timer >= self.now), "a deadline is past: {timers:?} at {}", self.now);
        let next = arrival.min(timers[0]).min(timers[1]);
        if next.is_never() {
            return false;
        }
        self.now = self.now.max(next);
        let now = self.now;
        if arrival <= now {
            let (_, (end, flight)) = self.in_flight.pop_first().expect("something arrives");
            let ranges = (flight.header.ranges > 0).then_some(&flight.ranges);
            if self.short_path
                && self.reads[end]
                && self.end(end).is_fast_path_datagram(&flight.header, flight.codepoint)
            {
                self.received[end] += self.end(end).receive_fast_path(now, &flight.header, flight.bytes);
                self.expected += 1;
            } else {
                self.end(end).handle_datagram(
                    now,
                    &flight.header,
                    ranges,
                    flight.datagram.as_ref(),
                    flight.bytes,
                    flight.codepoint,
                );
            }
        } else {
            for (end, timer) in timers.into_iter().enumerate() {
                if timer <= now {
                    self.end(end).handle_timeout(now);
                }
            }
        }
        self.service();
        true
    }

    /// Steps until a condition is true; panics if it is not true within an hour or a million steps.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut Pair) -> bool) {
        for _ in 0..1_000_000 {
            if done(self) {
                return;
            }
            assert!(self.step(), "nothing happens any more at {}: {:?} {:?}", self.now, self.client, self.server);
            assert!(self.now < Instant::ZERO + Duration::from_secs(3600), "it takes for ever");
        }
        panic!("a million steps");
    }

    /// Steps for this period.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            if !self.step() {
                break;
            }
        }
    }
}
