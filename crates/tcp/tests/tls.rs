//! Modeled TLS 1.3 over TCP and Fast Open: round trips and bytes until the first response.

use crate::common::*;
use fullpipe_tcp::{Config, Connection, Cookie, FastOpenEntry};
use fullpipe_transport::tls::{HandshakeMode, Session, Settings};
use fullpipe_transport::{Payload, Stream as _, TransportEvent};
use fullpipe_units::Instant;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A client that sends a request, and a server that responds when it has all of it; both then finish.
struct Exchange {
    ends: [Connection; 2],
    sessions: [Session; 2],
    to_write: [u64; 2],
    written: [u64; 2],
    read: [u64; 2],
    may_write: [bool; 2],
    finished: [bool; 2],
    peer_finished: [bool; 2],
    now: Instant,
    wires: BTreeMap<(Instant, u64), (usize, Segment)>,
    serial: u64,
    /// Times when the first and the last byte of the response were readable.
    first: Instant,
    last: Instant,
    bytes: bool,
}

impl Exchange {
    fn new(settings: Settings, fast_open: bool, config: Config, question: u64, answer: u64) -> Exchange {
        let config = Arc::new(Config { fast_open, nagle: false, ..config });
        let mut ends = [
            Connection::client(config.clone(), Box::new(Halving), 7, Instant::ZERO),
            Connection::server(config, Box::new(Halving), 8, Instant::ZERO),
        ];
        let cookie = Cookie::new(&[1; 8]).unwrap();
        ends[0].set_fast_open_entry(FastOpenEntry { cookie, mss_bytes: Some(1460) });
        ends[1].set_fast_open_cookie(cookie);
        Exchange {
            ends,
            sessions: [Session::client(settings), Session::server(settings)],
            to_write: [question, answer],
            written: [0; 2],
            read: [0; 2],
            may_write: [false; 2],
            finished: [false; 2],
            peer_finished: [false; 2],
            now: Instant::ZERO,
            wires: BTreeMap::new(),
            serial: 0,
            first: Instant::NEVER,
            last: Instant::NEVER,
            bytes: false,
        }
    }

    fn serve(&mut self, end: usize) {
        let (connection, session) = (&mut self.ends[end], &mut self.sessions[end]);
        while let Some(event) = connection.poll_event() {
            session.on_event(connection, event);
        }
        while let Some(event) = session.poll_event() {
            match event {
                TransportEvent::Connected => self.may_write[end] = true,
                TransportEvent::PeerFinished => self.peer_finished[end] = true,
                _ => {}
            }
        }
        let mut secured = session.stream(connection);
        while let Some(payload) = secured.read(1000) {
            if let (Payload::Bytes(bytes), true) = (&payload, self.bytes) {
                for (index, byte) in bytes.iter().enumerate() {
                    assert_eq!(*byte, letter(self.read[end] + index as u64, 1 - end));
                }
            }
            self.read[end] += payload.len();
            if end == 0 {
                self.first = self.first.min(self.now);
                if self.read[0] == self.to_write[1] {
                    self.last = self.last.min(self.now);
                }
            }
        }
        let asked = end == 0 || self.read[1] == self.to_write[0];
        while asked && self.may_write[end] && self.written[end] < self.to_write[end] && secured.writable_bytes() > 0 {
            let from = self.written[end];
            let payload = if self.bytes {
                let piece = (self.to_write[end] - from).min(5000);
                Payload::Bytes((from..from + piece).map(|offset| letter(offset, end)).collect::<Vec<_>>().into())
            } else {
                Payload::Length(self.to_write[end] - from)
            };
            self.written[end] += secured.write(payload);
        }
        if self.may_write[end] && self.written[end] == self.to_write[end] && !self.finished[end] {
            self.finished[end] = true;
            secured.finish();
        }
        for segment in drain(&mut self.ends[end], self.now) {
            self.wires.insert((self.now + ms(10), self.serial), (1 - end, segment));
            self.serial += 1;
        }
    }

    fn run(&mut self) {
        self.sessions[0].start(&mut self.ends[0]);
        self.sessions[1].start(&mut self.ends[1]);
        self.serve(0);
        loop {
            let wire = self.wires.keys().next().map_or(Instant::NEVER, |key| key.0);
            let due = self.ends.iter().map(next_deadline).fold(wire, Instant::min);
            if due.is_never() {
                return;
            }
            self.now = due;
            if wire == due {
                let (_, (end, segment)) = self.wires.pop_first().unwrap();
                deliver(&mut self.ends[end], self.now, &segment);
                self.serve(end);
            } else {
                for end in 0..2 {
                    self.ends[end].handle_timeout(self.now);
                    self.serve(end);
                }
            }
        }
    }
}

#[test]
fn first_byte_of_the_response_takes_one_two_or_three_round_trips() {
    // A round trip is 20 ms, and only the path takes time. TCP: one for its handshake, one for TLS, one for request and response. Fast
    // Open saves the first, because the hello is sent with the SYN; early data saves the second. With both the request is in the first
    // packet, and one round trip remains.
    let time = |mode, fast_open| {
        let settings = Settings { mode, ..Settings::default() };
        let mut exchange = Exchange::new(settings, fast_open, Config::linux(), 300, 5000);
        exchange.run();
        assert_eq!(exchange.read, [5000, 300]);
        assert_eq!(exchange.peer_finished, [true; 2]);
        let syn = exchange.ends[1].statistics().syn_payload_bytes;
        let early = if mode == HandshakeMode::EarlyData { 300 + 22 } else { 0 };
        assert_eq!(syn, if fast_open { 512 + early } else { 0 });
        exchange.first
    };
    for (mode, plain, fast) in
        [(HandshakeMode::Full, 60, 40), (HandshakeMode::Resumption, 60, 40), (HandshakeMode::EarlyData, 40, 20)]
    {
        assert_eq!(time(mode, false), at_ms(plain), "{mode:?}");
        assert_eq!(time(mode, true), at_ms(fast), "{mode:?} with Fast Open");
    }
}

#[test]
fn stream_contains_all_bytes_of_handshake_and_records() {
    // Client: hello 512, request 300 + 22, Finished 74, close_notify 2 + 22; with early data EndOfEarlyData, 26. Server, full: hello 5 +
    // 122, change_cipher_spec 6, and 6 + (8 + 3000) + (8 + 256) + 52 = 3330 in one record of 3352; resumed: hello 5 + 128, 6, and 6 + 52
    // in a record of 80. Response of 40 000: three records; the alert.
    for (mode, client, server) in [
        (HandshakeMode::Full, 512 + 322 + 74 + 24, 127 + 6 + 3352),
        (HandshakeMode::Resumption, 512 + 322 + 74 + 24, 133 + 6 + 80),
        (HandshakeMode::EarlyData, 512 + 322 + 26 + 74 + 24, 133 + 6 + 80),
    ] {
        let settings = Settings { mode, ..Settings::default() };
        assert_eq!(settings.server_flight_bytes(), server);
        let mut exchange = Exchange::new(settings, false, Config::linux(), 300, 40_000);
        exchange.run();
        let sent = |end: usize| exchange.ends[end].statistics().acknowledged_bytes;
        assert_eq!(sent(0), client, "{mode:?}");
        assert_eq!(sent(1), server + 40_000 + 3 * 22 + 24, "{mode:?}");
        assert!(exchange.sessions.iter().all(Session::is_handshake_complete));
    }
}

#[test]
fn long_certificate_chain_takes_another_round_trip() {
    // Ten segments of 1448 bytes are 14 480; a chain of 20 000 bytes does not fit into the initial window.
    let settings = Settings { certificate_bytes: 20_000, ..Settings::default() };
    let mut exchange = Exchange::new(settings, false, Config::linux(), 300, 100);
    exchange.run();
    assert_eq!(exchange.first, at_ms(80));
    // 20 330 bytes are two records: 127 + 6 + 20 330 + 44.
    assert_eq!(settings.server_flight_bytes(), 20_507);
}

#[test]
fn early_data_beyond_the_limit_waits_for_the_handshake() {
    let settings = Settings { mode: HandshakeMode::EarlyData, max_early_data_bytes: 1000, ..Settings::default() };
    let mut exchange = Exchange::new(settings, false, Config::linux(), 3000, 100);
    exchange.run();
    // 1000 with the hello at 20 ms; the rest when the server's Finished has arrived, at 40 ms; the response at 60.
    assert_eq!(exchange.first, at_ms(60));
    assert_eq!(exchange.read, [100, 3000]);
    assert_eq!(exchange.ends[0].statistics().acknowledged_bytes, 512 + 3000 + 2 * 22 + 26 + 74 + 24);
}

#[test]
fn record_is_readable_when_it_is_complete() {
    // The response is one record of 16 384: twelve segments, while the initial window is ten. TCP, TLS and the request take 50 ms. The
    // first ten segments arrive at 60, their acknowledgments at 70, and the last two segments at 80.
    let mut exchange = Exchange::new(Settings::default(), false, Config::linux(), 300, 16_384);
    exchange.ends[1] = Connection::server(
        Arc::new(Config { initial_window_segments: 10, nagle: false, idle_restart: false, ..Config::linux() }),
        Box::new(Fixed),
        8,
        Instant::ZERO,
    );
    exchange.run();
    assert_eq!((exchange.first, exchange.last), (at_ms(80), at_ms(80)));
}

/// A window that never changes.
#[derive(Debug)]
struct Fixed;

impl fullpipe_congestion::Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn on_ack(&mut self, _: &mut fullpipe_congestion::WindowState, _: &fullpipe_congestion::Ack) {}
    fn on_congestion(&mut self, _: &mut fullpipe_congestion::WindowState, _: &fullpipe_congestion::CongestionEvent) {}
    fn on_timeout(&mut self, _: &mut fullpipe_congestion::WindowState, _: &fullpipe_congestion::Timeout) {}
}

proptest! {
    /// For any sizes of buffers and pieces, every byte arrives once, in order, in both directions, and then the end.
    #[test]
    fn every_byte_arrives_with_tls(
        mode in prop_oneof![Just(HandshakeMode::Full), Just(HandshakeMode::Resumption), Just(HandshakeMode::EarlyData)],
        fast_open in any::<bool>(),
        bytes in any::<bool>(),
        sizes in (0u64..60_000, 0u64..60_000),
        buffers in (1_000u64..40_000, 1_000u64..40_000),
        mss_bytes in 100u32..3000,
        certificate_bytes in 0u64..40_000,
        max_early_data_bytes in 0u64..20_000,
    ) {
        let config = Config {
            send_buffer_bytes: buffers.0, receive_buffer_bytes: buffers.1, mss_bytes, ..Config::linux()
        };
        let settings = Settings { mode, certificate_bytes, max_early_data_bytes, ..Settings::default() };
        let mut exchange = Exchange::new(settings, fast_open, config, sizes.0, sizes.1);
        exchange.bytes = bytes;
        exchange.run();
        prop_assert_eq!(exchange.read, [sizes.1, sizes.0]);
        prop_assert_eq!(exchange.peer_finished, [true; 2]);
        prop_assert!(exchange.ends.iter().all(Connection::is_closed));
    }
}
