//! Tests of the behavior of a connection, by topic. Expected values are derived from the RFCs beside each test.

#[path = "../common/mod.rs"]
mod common;

mod acknowledgements;
mod close;
mod datagram;
mod ecn;
mod flow_control;
mod handshake;
mod hostile;
mod path;
mod recovery;
mod schedulers;
mod streams;

use common::{Flight, Pair, PathModel};
use fullpipe_quic::{Config, Connection, State, Transmit};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::{QuicDatagram, QuicForm, QuicFrame, QuicHeader, QuicPacket, QuicPacketType};

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Settings without a search for the path's MTU, so that no packet is sent without a cause, and without pacing.
pub(crate) fn plain() -> Config {
    Config { largest_mtu_bytes: None, pacing: false, ..Config::default() }
}

/// Two ends, 50 ms apart, whose sent datagrams are recorded.
pub(crate) fn pair(client: Config, server: Config) -> Pair {
    let mut pair = Pair::new(client, server, PathModel::ideal(ms(50)));
    pair.keep_sent = true;
    pair
}

/// The same after the handshake, with no packets in flight.
pub(crate) fn confirmed(client: Config, server: Config) -> Pair {
    let mut pair = pair(client, server);
    pair.run_until(|pair| pair.client.is_confirmed() && pair.server.is_confirmed());
    settle(&mut pair);
    pair
}

/// Runs until no event occurs for a second.
pub(crate) fn settle(pair: &mut Pair) {
    pair.service();
    while pair.next_at() <= pair.now + ms(1000) {
        pair.step();
    }
}

pub(crate) fn packets(flight: &Flight) -> &[QuicPacket] {
    flight.datagram.as_ref().map_or(&[], |datagram| &datagram.packets)
}

pub(crate) fn frames(flight: &Flight) -> Vec<QuicFrame> {
    packets(flight).iter().flat_map(|packet| packet.frames.clone()).collect()
}

/// One end whose peer is the test. The numbers of its own data packets begin at `first`.
pub(crate) struct Lone {
    pub(crate) connection: Connection,
    pub(crate) now: Instant,
    /// The number of the peer's next packet.
    pub(crate) number: u32,
    pub(crate) first: u64,
    pub(crate) events: Vec<(u32, TransportEvent)>,
    /// The numbers of the packets that it has sent since.
    sent: Vec<u64>,
}

impl Lone {
    /// Creates the client of a confirmed connection.
    pub(crate) fn client(client: Config, server: Config) -> Lone {
        Lone::of(confirmed(client, server), 0)
    }

    /// Creates the server of a confirmed connection.
    pub(crate) fn server(client: Config, server: Config) -> Lone {
        Lone::of(confirmed(client, server), 1)
    }

    fn of(pair: Pair, end: usize) -> Lone {
        let next = |end: usize| {
            let numbers = pair.sent[end].iter().flat_map(|(_, flight)| match flight.header.form {
                QuicForm::Packets => packets(flight)
                    .iter()
                    .filter(|packet| packet.packet_type == QuicPacketType::OneRtt)
                    .map(|packet| packet.number)
                    .collect(),
                _ => vec![flight.header.number],
            });
            numbers.max().map_or(0, |number| number + 1)
        };
        let (number, first) = (next(1 - end), u64::from(next(end)));
        let connection = if end == 0 { pair.client } else { pair.server };
        Lone { connection, now: pair.now, number, first, events: Vec::new(), sent: Vec::new() }
    }

    /// The number of the packet sent last, counted from `first`.
    pub(crate) fn newest(&self) -> u64 {
        self.sent.last().expect("something was sent") - self.first
    }

    /// Returns all datagrams that leave now.
    pub(crate) fn drain(&mut self) -> Vec<Flight> {
        let mut flights = Vec::new();
        loop {
            while let Some(event) = self.connection.poll_event() {
                self.events.push(event);
            }
            let mut transmit = Transmit::default();
            if !self.connection.poll_transmit(self.now, &mut transmit) {
                return flights;
            }
            let number = match &transmit.beside.datagram {
                Some(datagram) => datagram.packets[0].number,
                None => transmit.header.number,
            };
            self.sent.push(u64::from(number));
            flights.push(Flight {
                header: transmit.header,
                ranges: transmit.beside.ranges,
                datagram: transmit.beside.datagram,
                bytes: transmit.beside.udp_payload_bytes,
                codepoint: transmit.beside.codepoint,
            });
            assert!(flights.len() < 10_000);
        }
    }

    /// Receives a 1-RTT packet of the peer from one of its addresses; returns the datagrams that leave in response.
    pub(crate) fn receive_from(
        &mut self,
        path: u8,
        bytes: u32,
        codepoint: EcnCodepoint,
        frames: Vec<QuicFrame>,
    ) -> Vec<Flight> {
        let packet = QuicPacket {
            packet_type: QuicPacketType::OneRtt,
            number: self.number,
            number_bytes: 4,
            connection_id: 0,
            token: None,
            bytes,
            frames,
        };
        self.number += 1;
        let header = QuicHeader { path, ..QuicHeader::default() };
        let datagram = QuicDatagram { packets: vec![packet] };
        self.connection.handle_datagram(self.now, &header, None, Some(&datagram), bytes, codepoint);
        self.drain()
    }

    pub(crate) fn receive(&mut self, frames: Vec<QuicFrame>) -> Vec<Flight> {
        self.receive_from(0, 100, EcnCodepoint::NotEct, frames)
    }

    /// Receives an acknowledgment of these ranges of our packets, the largest first, counted from `first`.
    pub(crate) fn acknowledge(&mut self, ranges: &[(u64, u64)]) -> Vec<Flight> {
        let ranges = ranges.iter().map(|(from, to)| (self.first + from, self.first + to)).collect();
        self.receive(vec![QuicFrame::Ack { delay: 0, ranges, ecn: None }])
    }

    /// Lets time pass; returns the datagrams that leave in this time.
    pub(crate) fn pass(&mut self, time: Duration) -> Vec<(Instant, Flight)> {
        let end = self.now + time;
        let mut flights = Vec::new();
        loop {
            let next = self.connection.slow_timer_deadline().min(self.connection.fast_timer_deadline());
            if next > end {
                self.now = end;
                return flights;
            }
            self.now = self.now.max(next);
            self.connection.handle_timeout(self.now);
            let now = self.now;
            flights.extend(self.drain().into_iter().map(|flight| (now, flight)));
        }
    }

    pub(crate) fn open(&mut self, bidirectional: bool) -> u32 {
        let now = self.now;
        self.connection.open_stream(now, bidirectional).expect("a stream")
    }

    /// Writes data; returns the datagrams that leave.
    pub(crate) fn write(&mut self, stream: u32, bytes: u64) -> Vec<Flight> {
        let now = self.now;
        self.connection.stream(now, stream).expect("it is there").write(Payload::Length(bytes));
        self.drain()
    }

    /// The error code with which the end closes in response to frames.
    pub(crate) fn error_of(&mut self, given: Vec<QuicFrame>) -> Option<u64> {
        let answers = self.receive(given);
        let closed = answers.iter().flat_map(frames).find_map(|frame| match frame {
            QuicFrame::ConnectionClose { application: false, error } => Some(error),
            _ => None,
        });
        assert_eq!(closed.is_some(), self.connection.state() == State::Closing);
        closed
    }
}

/// A STREAM frame without content.
pub(crate) fn data(stream: u64, offset: u64, length: u64, fin: bool) -> QuicFrame {
    QuicFrame::Stream { stream, offset, length, fin, explicit_length: true, content: None }
}

/// Whether a datagram contains only acknowledgments.
pub(crate) fn is_ack(flight: &Flight) -> bool {
    match flight.header.form {
        QuicForm::Ack => true,
        QuicForm::Stream => false,
        QuicForm::Packets => frames(flight).iter().all(|frame| matches!(frame, QuicFrame::Ack { .. })),
    }
}
