//! A path between two ends: a rate and a delay per direction, an unlimited queue, and a callback that drops or delays
//! datagrams.

use bytes::Bytes;
use fullpipe_stack::{Connection, ControlFactory, Datagram, RandomStreams, Settings};
use fullpipe_transport::{CloseReason, Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Size of IPv4 and UDP headers.
pub(crate) const HEADER_BYTES: u64 = 28;
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Outcome of a datagram: dropped (`None`), or delivered with this additional delay.
pub(crate) type Fate = Option<Duration>;

pub(crate) fn addresses() -> [SocketAddr; 2] {
    [SocketAddr::from(([10, 0, 0, 1], 50_000)), SocketAddr::from(([10, 0, 0, 2], 443))]
}

pub(crate) fn control(name: &'static str) -> ControlFactory {
    fullpipe_control::control_factory(name, false, || 0).expect("the catalog lists this control")
}

/// The link of each direction, and the datagrams in flight.
pub(crate) struct Path {
    pub(crate) rate_bps: u64,
    pub(crate) delay: Duration,
    free_at: [Instant; 2],
    arrivals: BTreeMap<(Instant, u64), (usize, Datagram)>,
    numbers: [u64; 2],
    /// Digest of all datagrams sent, with instant, sender and bytes.
    pub(crate) hash: Sha256,
    /// Bytes sent, including headers, by sender.
    pub(crate) bytes: [u64; 2],
    /// Payload sizes in order, by sender.
    pub(crate) sizes: [Vec<usize>; 2],
    /// The first eight payloads, by sender.
    pub(crate) first: [Vec<Bytes>; 2],
    /// Sender and number of the datagram in whose middle one bit is changed.
    pub(crate) touched: Option<(usize, u64)>,
    /// Whether the path changes ECT(0) to ECT(1).
    pub(crate) rewrites_ect: bool,
    /// Codepoints in order, as sent, by sender.
    pub(crate) codepoints: [Vec<EcnCodepoint>; 2],
}

impl Path {
    pub(crate) fn new(rate_bps: u64, delay: Duration) -> Path {
        Path {
            rate_bps,
            delay,
            free_at: [Instant::ZERO; 2],
            arrivals: BTreeMap::new(),
            numbers: [0; 2],
            hash: Sha256::new(),
            bytes: [0; 2],
            sizes: [Vec::new(), Vec::new()],
            first: [Vec::new(), Vec::new()],
            touched: None,
            rewrites_ect: false,
            codepoints: [Vec::new(), Vec::new()],
        }
    }

    /// Sends the n-th datagram of one end, counted from 1.
    fn send(&mut self, now: Instant, from: usize, mut datagram: Datagram, fate: &mut dyn FnMut(usize, u64) -> Fate) {
        self.numbers[from] += 1;
        let bytes = datagram.payload.len() as u64 + HEADER_BYTES;
        self.hash.update(now.as_nanos().to_le_bytes());
        self.hash.update([from as u8, datagram.codepoint.bits()]);
        self.hash.update(&datagram.payload);
        self.bytes[from] += bytes;
        self.sizes[from].push(datagram.payload.len());
        self.codepoints[from].push(datagram.codepoint);
        if self.rewrites_ect && datagram.codepoint == EcnCodepoint::Ect0 {
            datagram.codepoint = EcnCodepoint::Ect1;
        }
        if self.first[from].len() < 8 {
            self.first[from].push(datagram.payload.clone());
        }
        if self.touched == Some((from, self.numbers[from])) {
            let mut payload = datagram.payload.to_vec();
            payload[bytes as usize / 2] ^= 1;
            datagram.payload = payload.into();
        }
        let takes = Duration::from_nanos(bytes * 8_000_000_000 / self.rate_bps);
        self.free_at[from] = self.free_at[from].max(now) + takes;
        if let Some(later) = fate(from, self.numbers[from]) {
            let order = self.numbers[CLIENT] + self.numbers[SERVER];
            self.arrivals.insert((self.free_at[from] + self.delay + later, order), (1 - from, datagram));
        }
    }

    pub(crate) fn digest(&self) -> String {
        self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A transfer from the client to the server, which reads at once and finishes after the client.
pub(crate) struct Transfer {
    pub(crate) ends: [Connection; 2],
    pub(crate) path: Path,
    pub(crate) now: Instant,
    left: Payload,
    pub(crate) received: Vec<u8>,
    pub(crate) received_bytes: u64,
    pub(crate) completed: Option<Instant>,
    pub(crate) closed: [Option<CloseReason>; 2],
    /// Whether the server reads the received data.
    pub(crate) reads: bool,
}

impl Transfer {
    pub(crate) fn new(settings: &Settings, name: &'static str, seed: u64, path: Path, payload: Payload) -> Transfer {
        Transfer::between(settings, name, [seed; 2], path, payload)
    }

    /// A transfer between two ends with these seeds.
    pub(crate) fn between(
        settings: &Settings,
        name: &'static str,
        seeds: [u64; 2],
        path: Path,
        payload: Payload,
    ) -> Transfer {
        let [client, server] = addresses();
        let first = Connection::client(
            settings,
            control(name),
            &RandomStreams::new(seeds[0], "client"),
            Instant::ZERO,
            [client, server],
        )
        .unwrap();
        let second =
            Connection::server(settings, control(name), &RandomStreams::new(seeds[1], "server"), [server, client]);
        Transfer {
            ends: [first, second],
            path,
            now: Instant::ZERO,
            left: payload,
            received: Vec::new(),
            received_bytes: 0,
            completed: None,
            closed: [None, None],
            reads: true,
        }
    }

    /// Runs until there are no more events, or until an instant.
    pub(crate) fn run(&mut self, until: Instant, fate: &mut dyn FnMut(usize, u64) -> Fate) {
        self.write();
        loop {
            self.output(fate);
            let arrival = self.path.arrivals.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let timers = [CLIENT, SERVER].map(|end| self.ends[end].next_timeout());
            let next = arrival.min(timers[0]).min(timers[1]);
            if next.is_never() {
                return;
            }
            if next > until {
                self.now = until;
                return;
            }
            assert!(next >= self.now, "time went back from {} to {}", self.now.as_nanos(), next.as_nanos());
            self.now = next;
            if arrival == next {
                let (_, (to, datagram)) = self.path.arrivals.pop_first().expect("an arrival is pending");
                self.ends[to].handle_datagram(next, datagram);
            } else {
                let end = usize::from(timers[CLIENT] != next);
                self.ends[end].handle_timeout(next);
            }
        }
    }

    fn output(&mut self, fate: &mut dyn FnMut(usize, u64) -> Fate) {
        for end in [CLIENT, SERVER] {
            loop {
                while let Some(event) = self.ends[end].poll_event() {
                    self.on_event(end, event);
                }
                while let Some(datagram) = self.ends[end].poll_transmit(self.now) {
                    self.path.send(self.now, end, datagram, fate);
                }
                if !self.ends[end].has_events() {
                    break;
                }
            }
        }
    }

    fn on_event(&mut self, end: usize, event: TransportEvent) {
        match (end, event) {
            (CLIENT, TransportEvent::Connected | TransportEvent::Writable) => self.write(),
            (SERVER, TransportEvent::Readable) if self.reads => self.read(),
            (SERVER, TransportEvent::PeerFinished) => {
                self.completed = Some(self.now);
                self.ends[SERVER].finish();
            }
            (_, TransportEvent::Closed(reason)) => self.closed[end] = Some(reason),
            _ => {}
        }
    }

    pub(crate) fn read(&mut self) {
        while let Some(payload) = self.ends[SERVER].read(u64::MAX) {
            self.received_bytes += payload.len();
            if let Payload::Bytes(bytes) = payload
                && self.received.len() < 1 << 20
            {
                self.received.extend_from_slice(&bytes);
            }
        }
    }

    fn write(&mut self) {
        let taken = self.ends[CLIENT].write(self.left.clone());
        self.left = match std::mem::replace(&mut self.left, Payload::Length(0)) {
            Payload::Length(length) => Payload::Length(length - taken),
            Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(taken as usize..)),
        };
        if self.left.is_empty() {
            self.ends[CLIENT].finish();
        }
    }
}

/// The digest that a test of this program prints when it runs in another process.
pub(crate) fn digest_of_another_process(test: &str) -> String {
    let program = std::env::current_exe().expect("the path of this program is available");
    let run = std::process::Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .output()
        .expect("the program can be started");
    let text = String::from_utf8(run.stdout).expect("the output is UTF-8");
    text.lines().find(|line| line.starts_with("digest=")).map(str::to_owned).expect("the output contains the digest")
}

/// Delivers all datagrams without additional delay.
pub(crate) fn clean(_from: usize, _number: u64) -> Fate {
    Some(Duration::ZERO)
}
