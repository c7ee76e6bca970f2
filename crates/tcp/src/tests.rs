//! Property tests with random segments, calls and times on one connection: nothing panics, output ends, and the scoreboard's counts
//! always equal a recount.

use crate::{
    Config, Connection, Cookie, EcnFeedback, EcnMode, FastOpenEntry, KeepAlive, LossDetection, Segment, State, Transmit,
};
use bytes::Bytes;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_transport::{Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{AccurateEcn, SackBlock, SegmentOptions, TcpHeader};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    /// A segment, with numbers relative to those that the connection expects.
    Segment {
        sequence: i64,
        acknowledgement: i64,
        flags: u16,
        options: u8,
        window: u16,
        length: u16,
        content: bool,
        timestamp: i32,
        echo: i32,
        sacks: Vec<(i64, i64)>,
    },
    Pass(u64),
    Deadline,
    Write(u64, bool),
    Read(u64),
    /// A router's report: largest segment, and the offset of the quoted segment.
    TooBig(u32, i64),
    Finish,
    Abort,
}

/// Usually near the expected number, sometimes any number.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => Just(0i64),
        4 => -3000i64..30_000,
        1 => (-3i64..30).prop_map(|segment| segment * 1000),
        1 => any::<i32>().prop_map(i64::from),
    ]
}

fn segment() -> impl Strategy<Value = Step> {
    let block = (0i64..30, 0i64..12).prop_map(|(start, length)| (start * 1000, (start + length) * 1000));
    let wild = (number(), number());
    (
        (number(), number(), prop_oneof![8 => Just(flags::ACK), 1 => Just(flags::ACK | flags::FIN), 1 => 0u16..512]),
        (prop_oneof![8 => Just(options::TIMESTAMPS), 1 => 0u8..64, 2 => Just(options::TIMESTAMPS | options::ACCURATE_ECN)], prop_oneof![6 => Just(60_000u16), 1 => 0u16..20]),
        (prop_oneof![Just(0u16), Just(1000), any::<u16>()], any::<bool>()),
        (prop_oneof![8 => Just(0i32), 1 => any::<i32>()], prop_oneof![8 => Just(0i32), 1 => any::<i32>()]),
        prop::collection::vec(prop_oneof![4 => block, 1 => wild], 0..5),
    )
        .prop_map(
            |((sequence, acknowledgement, flags), (options, window), (length, content), (timestamp, echo), sacks)| {
                Step::Segment {
                    sequence,
                    acknowledgement,
                    flags,
                    options,
                    window,
                    length,
                    content,
                    timestamp,
                    echo,
                    sacks,
                }
            },
        )
}

fn steps(rare: u32) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            20 => segment(),
            6 => (0u64..200_000_000).prop_map(Step::Pass),
            4 => Just(Step::Deadline),
            4 => (0u64..20_000, any::<bool>()).prop_map(|(bytes, content)| Step::Write(bytes, content)),
            4 => (1u64..100_000).prop_map(Step::Read),
            1 => (0u32..2000, number()).prop_map(|(bytes, offset)| Step::TooBig(bytes, offset)),
            rare => prop_oneof![Just(Step::Finish), Just(Step::Finish), Just(Step::Finish), Just(Step::Abort)],
        ],
        1..120,
    )
}

struct Bench {
    connection: Connection,
    now: Instant,
    transmit: Transmit,
    initial: u32,
    /// The highest sequence number that the connection sent, and the number that it acknowledged, as a peer would have them.
    sent_to: u32,
    acknowledged: u32,
    clock: u32,
    closed: bool,
}

impl Bench {
    fn open(config: Config, initial: u32) -> Bench {
        let connection = Connection::client(Arc::new(config), Box::new(NewReno::new(None)), initial, Instant::ZERO);
        Bench {
            connection,
            now: Instant::ZERO,
            transmit: Transmit::default(),
            initial,
            sent_to: initial,
            acknowledged: 0,
            clock: 1,
            closed: false,
        }
    }

    fn handshake(&mut self) {
        self.settle();
        self.now += Duration::from_millis(20);
        let all = options::MSS | options::WINDOW_SCALE | options::SACK_PERMITTED | options::TIMESTAMPS;
        let offered = self.transmit.header.options;
        let header = TcpHeader {
            sequence: 4_294_960_000,
            acknowledgement: self.initial.wrapping_add(1),
            // One of the valid negotiation results, or none.
            flags: flags::SYN | flags::ACK | [0, flags::ECE, flags::CWR, flags::AE][self.initial as usize % 4],
            options: all & offered,
            mss: 1012,
            window: 60_000,
            timestamp: 1,
            timestamp_echo: self.transmit.header.timestamp,
            ..TcpHeader::default()
        };
        self.connection.handle_segment(self.now, &Segment::from_header(&header));
        self.settle();
        assert_eq!(self.connection.state(), State::Established);
    }

    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            assert!(!self.closed, "an event follows the last one");
            self.closed = matches!(event, TransportEvent::Closed(_));
        }
        let mut count = 0;
        while self.connection.poll_transmit(self.now, &mut self.transmit) {
            count += 1;
            assert!(count < 10_000, "endless output");
            let header = &self.transmit.header;
            assert!(
                self.transmit
                    .beside
                    .payload
                    .as_ref()
                    .is_none_or(|bytes| bytes.len() == usize::from(header.payload_bytes))
            );
            if !header.has_flag(flags::RST) {
                let end = header.sequence_end();
                if (end.wrapping_sub(self.sent_to) as i32) > 0 {
                    self.sent_to = end;
                }
                self.acknowledged = header.acknowledgement;
            }
        }
        let sender = &self.connection.sender;
        sender.board.check(sender.repair().presumed_bytes);
        assert!(self.connection.fast_timer_deadline() > self.now, "the host would spin");
        assert!(self.connection.slow_timer_deadline() > self.now);
        assert!(self.connection.readable_bytes() <= self.connection.config().receive_buffer_bytes);
        if self.connection.state() == State::Closed {
            assert!(
                self.connection.slow_timer_deadline().is_never() && self.connection.fast_timer_deadline().is_never()
            );
            assert!(sender.board.segments.is_empty() && sender.bytes.is_none() && sender.buffered_bytes() == 0);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Segment {
                sequence,
                acknowledgement,
                flags,
                options,
                window,
                length,
                content,
                timestamp,
                echo,
                sacks,
            } => {
                let una = self.connection.sender.una as u32;
                let base = self.initial.wrapping_add(1).wrapping_add(una);
                let blocks: Vec<_> = sacks
                    .iter()
                    .map(|(start, end)| SackBlock {
                        start: base.wrapping_add(*start as u32),
                        end: base.wrapping_add(*end as u32),
                    })
                    .collect();
                self.clock += 1;
                let header = TcpHeader {
                    sequence: self.acknowledged.wrapping_add(*sequence as u32),
                    acknowledgement: base.wrapping_add(*acknowledgement as u32),
                    timestamp: self.clock.wrapping_add(*timestamp as u32),
                    timestamp_echo: self.transmit.header.timestamp.wrapping_add(*echo as u32),
                    flags: *flags,
                    window: *window,
                    payload_bytes: *length,
                    mss: *window,
                    options: *options,
                    window_scale: *options,
                    sack_count: sacks.len() as u8,
                    other_option_bytes: 0,
                };
                let payload = content.then(|| Bytes::from(vec![7; usize::from(*length)]));
                let mut options = SegmentOptions::default();
                options.sacks.iter_mut().zip(&blocks).for_each(|(to, from)| *to = *from);
                options.accurate_ecn = AccurateEcn {
                    ect0_bytes: *acknowledgement as u32 & 0xff_ffff,
                    ce_bytes: *echo as u32 & 0xff_ffff,
                    ect1_bytes: 1,
                    fields: (*length % 4) as u8,
                    ect1_first: *content,
                };
                // Valid, invalid and of any length.
                options.fast_open_cookie = [1; 16];
                options.fast_open_bytes = if *length % 3 == 0 { 8 } else { *length as u8 };
                let segment = Segment {
                    header: &header,
                    options: header.has_segment_options().then_some(&options),
                    payload: payload.as_ref(),
                    codepoint: EcnCodepoint::from_bits(*length as u8),
                };
                self.connection.handle_segment(self.now, &segment);
            }
            Step::Pass(nanoseconds) => {
                let next = self.connection.slow_timer_deadline().min(self.connection.fast_timer_deadline());
                let time = Duration::from_nanos(*nanoseconds);
                self.now = (self.now + time).min(next);
                self.connection.handle_timeout(self.now);
            }
            Step::Deadline => {
                let next = self.connection.slow_timer_deadline().min(self.connection.fast_timer_deadline());
                if !next.is_never() {
                    self.now = next;
                    self.connection.handle_timeout(self.now);
                }
            }
            Step::Write(bytes, content) => {
                let payload = if *content {
                    Payload::Bytes(Bytes::from(vec![1; *bytes as usize]))
                } else {
                    Payload::Length(*bytes)
                };
                self.connection.write(payload);
            }
            Step::Read(bytes) => {
                self.connection.read(*bytes);
            }
            Step::TooBig(bytes, offset) => {
                let una = self.connection.sender.una as u32;
                let sequence = self.initial.wrapping_add(1).wrapping_add(una).wrapping_add(*offset as u32);
                self.connection.on_packet_too_big(self.now, *bytes, sequence);
            }
            Step::Finish => self.connection.finish(),
            Step::Abort => self.connection.abort(),
        }
        self.settle();
    }
}

fn config(bits: u8, more: u8) -> Config {
    let mut config = if bits & 1 == 0 { Config::linux() } else { Config::ns3() };
    config.mss_bytes = 1000;
    config.mss_option = false;
    config.sack = bits & 6 != 0;
    config.timestamps = bits & 8 == 0;
    config.nagle = bits & 16 != 0;
    config.pacing = bits & 32 != 0;
    config.receive_buffer_bytes = if bits & 64 == 0 { 20_000 } else { 300_000 };
    if bits & 128 != 0 {
        config.loss_detection = LossDetection::Rack;
    }
    config.initial_receive_window_bytes = (more & 1 != 0).then_some(5_000);
    config.fast_open = more & 2 != 0;
    config.black_hole_timeouts = (more & 4 != 0).then_some(1);
    if more & 8 != 0 {
        let second = Duration::from_secs(1);
        config.keep_alive = Some(KeepAlive { idle: second, interval: second, probes: 3 });
        config.fin_wait_2_timeout = Some(second);
    }
    (config.ecn, config.ecn_feedback) = match more >> 5 {
        0 => (EcnMode::Off, EcnFeedback::Classic),
        1 => (EcnMode::Passive, EcnFeedback::Classic),
        2 => (EcnMode::Active, EcnFeedback::Classic),
        3 => (EcnMode::Active, EcnFeedback::Dctcp),
        4 => (EcnMode::Passive, EcnFeedback::Accurate),
        _ => (EcnMode::Active, EcnFeedback::Accurate),
    };
    config.user_timeout = (more & 16 != 0).then_some(Duration::from_secs(3));
    config
}

// To run many more cases: `PROPTEST_CASES=100000 cargo test -p fullpipe-tcp tests::`.
proptest! {
    #[test]
    fn open_connection_with_any_input_does_not_panic(bits in any::<(u8, u8)>(), initial in any::<u32>(), steps in steps(1)) {
        let mut bench = Bench::open(config(bits.0, bits.1), initial);
        bench.handshake();
        for step in &steps {
            bench.step(step);
        }
    }

    #[test]
    fn connection_with_outstanding_data_and_any_input_does_not_panic(bits in any::<(u8, u8)>(), initial in any::<u32>(), steps in steps(0)) {
        let mut bench = Bench::open(Config { initial_window_segments: 30, ..config(bits.0, bits.1) }, initial);
        bench.handshake();
        bench.step(&Step::Write(60_000, false));
        for step in &steps {
            bench.step(step);
        }
    }

    #[test]
    fn half_open_connection_with_any_input_does_not_panic(bits in any::<(u8, u8)>(), initial in any::<u32>(), passive in any::<bool>(), steps in steps(1)) {
        let mut bench = Bench::open(config(bits.0, bits.1), initial);
        if passive {
            bench.connection =
                Connection::server(Arc::new(config(bits.0, bits.1)), Box::new(NewReno::new(None)), initial, Instant::ZERO);
        }
        let cookie = Cookie::new(&[1; 8]).unwrap();
        if passive {
            bench.connection.set_fast_open_cookie(cookie);
        } else {
            bench.connection.set_fast_open_entry(FastOpenEntry { cookie, mss_bytes: None });
            bench.connection.write(Payload::Length(3000));
        }
        bench.settle();
        for step in &steps {
            bench.step(step);
            // Sometimes a valid SYN.
            if bench.connection.state() == State::Listen {
                let header = TcpHeader {
                    sequence: 9,
                    flags: flags::SYN,
                    options: bits.0 & 15 | if bits.1 & 32 != 0 { options::FAST_OPEN } else { 0 },
                    window: 5000,
                    payload_bytes: u16::from(bits.1) * 8,
                    ..TcpHeader::default()
                };
                let side =
                    SegmentOptions { fast_open_cookie: [1; 16], fast_open_bytes: 8, ..SegmentOptions::default() };
                let segment = Segment { options: Some(&side), ..Segment::from_header(&header) };
                bench.connection.handle_segment(bench.now, &segment);
                bench.settle();
            }
        }
    }
}
