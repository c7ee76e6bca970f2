//! Two endpoints connected by two FIFO pipes of constant delay, with one bulk flow: measures the cost of the state machine alone.
//!
//! Run `cargo run --release -p fullpipe-tcp --example loop [packets]`, or the same under `valgrind --tool=callgrind`. The pipe has no
//! rate, so the receive window (250 kB, about 170 segments) limits the flow.

use fullpipe_congestion::cubic::Cubic;
use fullpipe_tcp::{Config, Connection, Segment, Transmit};
use fullpipe_transport::{Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::{SegmentOptions, TcpHeader};
use std::collections::VecDeque;
use std::sync::Arc;

struct Wire {
    at: Instant,
    header: TcpHeader,
    options: Option<Box<SegmentOptions>>,
}

impl Wire {
    fn segment(&self) -> Segment<'_> {
        Segment { options: self.options.as_deref(), ..Segment::from_header(&self.header) }
    }
}

fn output(
    end: &mut Connection,
    now: Instant,
    wire: &mut VecDeque<Wire>,
    transmit: &mut Transmit,
    gap: Duration,
) -> u64 {
    let mut data = 0;
    while end.poll_transmit(now, transmit) {
        data += u64::from(transmit.header.payload_bytes > 0);
        let previous = wire.back().map_or(Instant::ZERO, |last| last.at);
        let at = (now + Duration::from_millis(10)).max(previous + gap);
        let options = transmit.header.has_segment_options().then(|| Box::new(transmit.beside.options));
        wire.push_back(Wire { at, header: transmit.header, options });
    }
    data
}

fn main() {
    let packets: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let config = Arc::new(Config { receive_buffer_bytes: 250_000, ..Config::linux() });
    let control = || Box::new(Cubic::default());
    let mut client = Connection::client(config.clone(), control(), 1, Instant::ZERO);
    let mut server = Connection::server(config, control(), 2, Instant::ZERO);
    println!("connection {} bytes, transmit {}", size_of::<Connection>(), size_of::<Transmit>());
    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    let mut transmit = Transmit::default();
    let mut now = Instant::ZERO;
    let mut sent = output(&mut client, now, &mut there, &mut transmit, Duration::ZERO);
    let mut events = 0u64;
    while sent < packets {
        let arrival = |wire: &VecDeque<Wire>| wire.front().map_or(Instant::NEVER, |first| first.at);
        let (to_server, to_client) = (arrival(&there), arrival(&back));
        let timer = client
            .slow_timer_deadline()
            .min(client.fast_timer_deadline())
            .min(server.slow_timer_deadline())
            .min(server.fast_timer_deadline());
        now = to_server.min(to_client).min(timer);
        events += 1;
        let mut of_server = to_server <= to_client;
        if timer <= now {
            client.handle_timeout(now);
            server.handle_timeout(now);
            output(&mut server, now, &mut back, &mut transmit, Duration::ZERO);
            of_server = false;
        } else if of_server {
            let wire = there.pop_front().unwrap();
            server.handle_segment(now, &wire.segment());
            while let Some(event) = server.poll_event() {
                if event == TransportEvent::Readable {
                    while server.read(u64::MAX).is_some() {}
                }
            }
        } else {
            let wire = back.pop_front().unwrap();
            client.handle_segment(now, &wire.segment());
            while client.poll_event().is_some() {}
            if client.writable_bytes() > 0 {
                client.write(Payload::Length(u64::MAX));
            }
        }
        if of_server {
            output(&mut server, now, &mut back, &mut transmit, Duration::ZERO);
        } else {
            sent += output(&mut client, now, &mut there, &mut transmit, Duration::from_micros(12));
        }
    }
    println!("{sent} data packets, {events} events, {} simulated; {:?}", now, client.inspect());
}
