//! Property tests with random operations of both ends and a path that loses, reorders and repeats: every byte arrives once and in
//! order, no data exceeds the credit, and every exchange ends.

use crate::common::{Pair, PathModel};
use bytes::Bytes;
use fullpipe_quic::scheduler::{self, RetransmissionOrder, StreamScheduler};
use fullpipe_quic::{AckFrequency, Config, SenderSnapshot, State};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::{QuicForm, QuicFrame, QuicPacket, QuicPacketType};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// An operation of the applications or the path.
#[derive(Clone, Debug)]
enum Operation {
    Open { end: usize, bidirectional: bool },
    Write { end: usize, which: usize, length: u64, bytes: bool },
    Finish { end: usize, which: usize },
    Read { end: usize, which: usize, most: u64 },
    Abort { end: usize, which: usize },
    Datagram { end: usize, length: u64 },
    Close { end: usize, error: u64 },
    Rebind,
    Run { milliseconds: u64 },
    Outage { milliseconds: u64 },
}

/// The data that one end has written to a stream, and how much of it the other has read.
#[derive(Debug, Default)]
struct Flow {
    /// The content by offset; `None` for bytes without content.
    written: Vec<Option<u8>>,
    finished: bool,
    read: u64,
    told_finished: bool,
}

/// The credit that an end has issued, and how much of it the other has used.
#[derive(Debug)]
struct Credit {
    data: u64,
    stream_data: u64,
    of_stream: BTreeMap<u64, u64>,
    streams: [u64; 2],
    highest: BTreeMap<u64, u64>,
}

impl Credit {
    /// The credit in the transport parameters of an end with these settings (RFC 9000 section 18.2).
    fn of(config: &Config) -> Credit {
        let window = config.initial_receive_window_bytes.unwrap_or(u64::MAX);
        Credit {
            data: config.connection_receive_buffer_bytes.min(window.saturating_mul(3) / 2),
            stream_data: config.receive_buffer_bytes.min(window),
            of_stream: BTreeMap::new(),
            streams: [config.max_streams; 2],
            highest: BTreeMap::new(),
        }
    }

    /// Records a frame of the end that issues the credit.
    fn give(&mut self, frame: &QuicFrame) {
        match *frame {
            QuicFrame::MaxData(maximum) => self.data = self.data.max(maximum),
            QuicFrame::MaxStreamData { stream, maximum } => {
                let given = self.of_stream.entry(stream).or_insert(self.stream_data);
                *given = maximum.max(*given);
            }
            QuicFrame::MaxStreams { bidirectional, maximum } => {
                let given = &mut self.streams[usize::from(!bidirectional)];
                *given = maximum.max(*given);
            }
            _ => {}
        }
    }

    /// Records that the other end has sent this much of a stream.
    fn take(&mut self, stream: u64, end: u64, opened_by_sender: bool) {
        let given = self.of_stream.get(&stream).copied().unwrap_or(self.stream_data);
        assert!(end <= given, "credit of stream {stream}: {end} of {given}");
        let highest = self.highest.entry(stream).or_default();
        *highest = end.max(*highest);
        assert!(self.highest.values().sum::<u64>() <= self.data, "credit of the connection");
        if opened_by_sender {
            assert!(stream / 4 < self.streams[(stream as usize >> 1) & 1], "number of streams, {stream}");
        }
    }
}

/// Both applications.
struct World {
    pair: Pair,
    /// The flows by writing end and stream ID.
    flows: BTreeMap<(usize, u64), Flow>,
    /// The open streams by end: index, ID.
    live: [BTreeMap<u32, u64>; 2],
    aborted: BTreeSet<u64>,
    /// The credit that each end has issued.
    credit: [Credit; 2],
    unordered: [bool; 2],
    closing: bool,
    datagrams_sent: [u64; 2],
    /// Whether the server reads 0-RTT packets.
    takes_early_data: bool,
    next_byte: u8,
}

impl World {
    fn new(configs: [Config; 2], path: PathModel, control: &str, seed: u64) -> World {
        let credit = [Credit::of(&configs[0]), Credit::of(&configs[1])];
        let unordered = [configs[0].unordered, configs[1].unordered];
        let takes_early_data = configs[1].zero_rtt;
        let [client, server] = configs;
        let mut pair = Pair::with(client, server, path, control, seed);
        pair.reads = [false; 2];
        pair.keep_sent = true;
        World {
            pair,
            flows: BTreeMap::new(),
            live: Default::default(),
            aborted: BTreeSet::new(),
            credit,
            unordered,
            closing: false,
            datagrams_sent: [0; 2],
            takes_early_data,
            next_byte: 0,
        }
    }

    fn nth(&self, end: usize, which: usize) -> Option<(u32, u64)> {
        let count = self.live[end].len();
        (count > 0).then(|| self.live[end].iter().nth(which % count).map(|(index, id)| (*index, *id)).unwrap())
    }

    fn stream(&mut self, end: usize, index: u32) -> Option<&mut dyn fullpipe_transport::Stream> {
        let now = self.pair.now;
        self.pair.end(end).stream(now, index)
    }

    fn read(&mut self, end: usize, index: u32, most: u64) {
        let Some(&id) = self.live[end].get(&index) else { return };
        let unordered = self.unordered[end];
        while let Some(payload) = self.stream(end, index).and_then(|stream| stream.read(most)) {
            let flow = self.flows.entry((1 - end, id)).or_default();
            let from = flow.read as usize;
            flow.read += payload.len();
            assert!((1..=most).contains(&payload.len()));
            assert!(flow.read <= flow.written.len() as u64, "more is read than was written");
            if !unordered {
                let written = &flow.written[from..flow.read as usize];
                match payload {
                    Payload::Length(_) => assert!(written.iter().all(Option::is_none), "content got lost"),
                    Payload::Bytes(bytes) => {
                        let expected: Vec<u8> = written.iter().map(|byte| byte.unwrap_or(0)).collect();
                        assert_eq!(bytes, expected, "stream {id} from {from}");
                    }
                }
            }
            if most < u64::MAX {
                return;
            }
        }
    }

    /// Processes the new events and sent datagrams.
    fn observe(&mut self, reads: bool) {
        for (end, index, id, event) in std::mem::take(&mut self.pair.fresh) {
            if let Some(id) = id {
                self.live[end].insert(index, id);
            }
            match event {
                TransportEvent::PeerFinished => {
                    let id = self.live[end][&index];
                    let flow = self.flows.entry((1 - end, id)).or_default();
                    assert!(flow.finished && !flow.told_finished, "stream {id} has not ended, or has ended before");
                    flow.told_finished = true;
                }
                TransportEvent::Closed(_) => {
                    self.live[end].remove(&index);
                }
                _ => {}
            }
        }
        if reads {
            for end in 0..2 {
                for index in self.live[end].keys().copied().collect::<Vec<_>>() {
                    self.read(end, index, u64::MAX);
                }
            }
        }
        for end in 0..2 {
            let from = std::mem::replace(&mut self.pair.looked_at[end], self.pair.sent[end].len());
            for (_, flight) in &self.pair.sent[end][from..] {
                assert!(flight.bytes <= 1452);
                if flight.header.form == QuicForm::Stream {
                    let (id, last) = (
                        u64::from(flight.header.stream),
                        flight.header.offset_or_largest_acked() + u64::from(flight.header.length),
                    );
                    self.credit[1 - end].take(id, last, (id & 1 == 1) == (end == 1));
                }
                let takes = self.takes_early_data;
                let counts = |packet: &&QuicPacket| takes || packet.packet_type != QuicPacketType::ZeroRtt;
                let packets = flight.datagram.iter().flat_map(|datagram| &datagram.packets).filter(counts);
                for frame in packets.flat_map(|packet| &packet.frames) {
                    self.credit[end].give(frame);
                    if let QuicFrame::Stream { stream, offset, length, .. } = frame {
                        self.credit[1 - end].take(*stream, offset + length, (stream & 1 == 1) == (end == 1));
                    }
                }
            }
        }
        let (client, server) = (&self.pair.client, &self.pair.server);
        for connection in [client, server] {
            assert_eq!(connection.inspect().in_flight_bytes, connection.count_in_flight_bytes());
            if !self.closing {
                assert!(matches!(connection.state(), State::Opening | State::Open), "{connection:?}");
            }
        }
    }

    fn step(&mut self, reads: bool) -> bool {
        let goes_on = self.pair.step();
        self.observe(reads);
        // Reading may permit further packets.
        self.pair.service();
        self.observe(false);
        goes_on
    }

    fn run(&mut self, time: Duration, reads: bool) {
        let end = self.pair.now + time;
        self.pair.service();
        self.observe(reads);
        let mut steps = 0;
        while self.pair.next_at() <= end && self.step(reads) {
            steps += 1;
            assert!(steps < 200_000, "it turns in circles");
        }
        self.pair.now = self.pair.now.max(end);
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.pair.now;
        match *operation {
            Operation::Open { end, bidirectional } => {
                if let Some(index) = self.pair.end(end).open_stream(now, bidirectional) {
                    let id = self.pair.end(end).stream_id(index).unwrap();
                    self.live[end].insert(index, id);
                }
            }
            Operation::Write { end, which, length, bytes } => {
                let Some((index, id)) = self.nth(end, which) else { return };
                let start = self.next_byte;
                let pattern: Vec<u8> = (0..length).map(|place| start.wrapping_add((place % 251) as u8)).collect();
                let payload =
                    if bytes { Payload::Bytes(Bytes::from(pattern.clone())) } else { Payload::Length(length) };
                let Some(stream) = self.stream(end, index) else { return };
                let taken = stream.write(payload) as usize;
                assert!(taken <= length as usize);
                self.next_byte = self.next_byte.wrapping_add(37);
                let flow = self.flows.entry((end, id)).or_default();
                flow.written.extend(pattern[..taken].iter().map(|byte| bytes.then_some(*byte)));
            }
            Operation::Finish { end, which } => {
                if let Some((index, _)) = self.nth(end, which) {
                    self.finish(end, index);
                }
            }
            Operation::Read { end, which, most } => {
                if let Some((index, _)) = self.nth(end, which) {
                    self.read(end, index, most);
                }
            }
            Operation::Abort { end, which } => {
                if let Some((index, id)) = self.nth(end, which) {
                    self.aborted.insert(id);
                    if let Some(stream) = self.stream(end, index) {
                        stream.abort();
                    }
                }
            }
            Operation::Datagram { end, length } => {
                self.datagrams_sent[end] += u64::from(self.pair.end(end).send_datagram(length));
            }
            Operation::Close { end, error } => {
                self.closing = true;
                self.pair.end(end).close(now, error);
            }
            Operation::Rebind => self.pair.address = self.pair.address.wrapping_add(1),
            Operation::Run { milliseconds } => self.run(Duration::from_millis(milliseconds), false),
            Operation::Outage { milliseconds } => {
                let loss = std::mem::replace(&mut self.pair.path.loss, 1.0);
                self.run(Duration::from_millis(milliseconds), false);
                self.pair.path.loss = loss;
            }
        }
        self.pair.service();
        self.observe(false);
    }

    fn finish(&mut self, end: usize, index: u32) {
        let Some(&id) = self.live[end].get(&index) else { return };
        if let Some(stream) = self.stream(end, index) {
            stream.finish();
            self.flows.entry((end, id)).or_default().finished = true;
        }
    }

    /// Whether some stream or connection still has to end.
    fn waits(&self) -> bool {
        self.live.iter().any(|live| !live.is_empty()) || self.pair.client.state() == State::Opening
    }

    /// Ends all streams and reads all data: all data must arrive, and the connection must end when it is closed.
    fn wind_up(&mut self) {
        let begin = self.pair.now;
        while !self.closing && self.waits() {
            for end in 0..2 {
                for index in self.live[end].keys().copied().collect::<Vec<_>>() {
                    self.finish(end, index);
                }
            }
            self.pair.service();
            self.observe(true);
            self.pair.service();
            self.observe(false);
            // The connection may become idle with its last streams; no event then remains.
            let goes_on = self.step(true);
            assert!(goes_on || !self.waits(), "a stall: {:?} {:?}", self.pair.client, self.pair.server);
            assert!(self.pair.now.saturating_since(begin) < Duration::from_secs(3000), "it takes for ever");
        }
        if !self.closing {
            for ((end, id), flow) in &self.flows {
                let one_way = id & 2 == 2;
                let is_writer = !one_way || (id & 1 == 1) == (*end == 1);
                if self.aborted.contains(id) || !is_writer {
                    continue;
                }
                assert_eq!(flow.read, flow.written.len() as u64, "stream {id} of end {end}");
                assert!(flow.told_finished, "stream {id} of end {end}");
            }
        }
        self.closing = true;
        // Without an idle time-out, the other end would stay open after a lost CONNECTION_CLOSE.
        (self.pair.path.loss, self.pair.path.rate_bps) = (0.0, 0);
        let now = self.pair.now;
        self.pair.client.close(now, 0);
        let mut steps = 0;
        while !(self.pair.client.is_closed() && self.pair.server.is_closed()) {
            assert!(self.step(true), "no end: {:?} {:?}", self.pair.client, self.pair.server);
            steps += 1;
            assert!(steps < 100_000, "no end");
        }
        assert!(self.live.iter().all(BTreeMap::is_empty), "an application was not told of an end");
        for end in 0..2 {
            assert!(self.pair.end(1 - end).statistics().datagrams_received <= self.datagrams_sent[end]);
        }
    }
}

fn operations() -> impl Strategy<Value = Operation> {
    let end = 0usize..2;
    let which = 0usize..8;
    prop_oneof![
        4 => (end.clone(), any::<bool>()).prop_map(|(end, bidirectional)| Operation::Open { end, bidirectional }),
        8 => (end.clone(), which.clone(), 1u64..4000, any::<bool>())
            .prop_map(|(end, which, length, bytes)| Operation::Write { end, which, length, bytes }),
        2 => (end.clone(), which.clone()).prop_map(|(end, which)| Operation::Finish { end, which }),
        4 => (end.clone(), which.clone(), 1u64..3000)
            .prop_map(|(end, which, most)| Operation::Read { end, which, most }),
        1 => (end.clone(), which).prop_map(|(end, which)| Operation::Abort { end, which }),
        1 => (end, 0u64..1300).prop_map(|(end, length)| Operation::Datagram { end, length }),
        1 => Just(Operation::Rebind),
        8 => (0u64..150).prop_map(|milliseconds| Operation::Run { milliseconds }),
        1 => (0u64..1500).prop_map(|milliseconds| Operation::Outage { milliseconds }),
    ]
}

fn window() -> impl Strategy<Value = u64> {
    prop_oneof![100u64..2000, 2000u64..20_000, Just(1_000_000u64)]
}

fn configs() -> impl Strategy<Value = Config> {
    let sizes = (window(), window(), prop::option::of(100u64..3000), 1u64..5, 500u64..20_000);
    let handshake = (any::<bool>(), any::<bool>(), 0u64..6000, prop_oneof![Just(0u8), Just(8)]);
    let acknowledgements = (1u64..10, prop::option::of((0u64..20, 1u64..50)), any::<bool>(), any::<bool>());
    let schedulers: [StreamScheduler; 6] = [
        StreamScheduler::new(scheduler::Fifo),
        StreamScheduler::new(scheduler::Pfifo),
        StreamScheduler::new(scheduler::Edf { latency: Duration::from_millis(20) }),
        StreamScheduler::new(scheduler::RoundRobin::default()),
        StreamScheduler::new(scheduler::WeightedFair::default()),
        StreamScheduler::new(scheduler::ExtensiblePriorities::default()),
    ];
    let schedulers = prop::sample::select(schedulers.to_vec());
    let others = (schedulers, any::<bool>(), prop::bool::weighted(0.2), any::<bool>(), any::<u64>());
    (sizes, handshake, acknowledgements, others).prop_map(|(sizes, handshake, acknowledgements, others)| {
        let (receive, connection, initial, max_streams, send) = sizes;
        let (zero_rtt, retry, certificate_bytes, connection_id_bytes) = handshake;
        let (ack_every_packets, frequency, ecn, pacing) = acknowledgements;
        let (scheduler, first, unordered, searches, seed) = others;
        let defaults = Config::default();
        Config {
            receive_buffer_bytes: receive,
            connection_receive_buffer_bytes: connection,
            initial_receive_window_bytes: initial,
            max_streams,
            send_buffer_bytes: send,
            zero_rtt,
            retry,
            connection_id_bytes,
            handshake: fullpipe_quic::HandshakeSizes { certificate_bytes, ..defaults.handshake },
            ack_every_packets,
            ack_frequency: frequency
                .map(|(threshold, delay)| AckFrequency { threshold, max_ack_delay: Duration::from_millis(delay) }),
            ecn,
            pacing,
            scheduler,
            retransmission: if first { RetransmissionOrder::First } else { RetransmissionOrder::Scheduled },
            unordered,
            largest_mtu_bytes: searches.then_some(1452),
            idle_timeout: Duration::ZERO,
            seed,
            ..defaults
        }
    })
}

fn paths() -> impl Strategy<Value = PathModel> {
    let chances = (0.0f64..0.2, 0.0f64..0.2, 0.0f64..0.1, any::<bool>());
    (1u64..50, chances, 0u64..20, prop_oneof![Just(0u64), 500_000u64..20_000_000], 5_000u64..100_000).prop_map(
        |(delay, (loss, duplicate, mark, bleach), jitter, rate_bps, queue_bytes)| PathModel {
            delay: Duration::from_millis(delay),
            loss,
            duplicate,
            jitter: Duration::from_millis(jitter),
            rate_bps,
            queue_bytes,
            mark,
            bleach,
        },
    )
}

fn controls() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("newreno"), Just("cubic"), Just("bbr1"), Just("bbr3")]
}

/// Both ends use connection IDs of the same length, which the model requires.
fn same_ids(mut configs: [Config; 2]) -> [Config; 2] {
    configs[1].connection_id_bytes = configs[0].connection_id_bytes;
    configs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_in_order_and_within_credit(
        client in configs(),
        server in configs(),
        path in paths(),
        control in controls(),
        operations in prop::collection::vec(operations(), 1..60),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(same_ids([client, server]), path, control, seed);
        for operation in &operations {
            world.perform(operation);
        }
        world.pair.path.loss = world.pair.path.loss.min(0.1);
        world.wind_up();
    }

    #[test]
    fn connection_closed_during_a_transfer_ends_at_both_endpoints(
        client in configs(),
        server in configs(),
        path in paths(),
        control in controls(),
        before in prop::collection::vec(operations(), 0..20),
        end in 0usize..2,
        error in 0u64..3,
        after in prop::collection::vec(operations(), 0..10),
        seed in any::<u64>(),
    ) {
        let [mut client, mut server] = same_ids([client, server]);
        client.idle_timeout = Duration::from_secs(20);
        server.idle_timeout = Duration::from_secs(20);
        let mut world = World::new([client, server], path, control, seed);
        // The idle time-out may end it before.
        world.closing = true;
        for operation in before.iter().chain([&Operation::Close { end, error }]).chain(&after) {
            world.perform(operation);
        }
        world.wind_up();
    }
}

#[test]
fn credit_in_tests_equals_the_transport_parameters() {
    let config = Config { initial_receive_window_bytes: Some(1000), ..Config::default() };
    let credit = Credit::of(&config);
    assert_eq!((credit.data, credit.stream_data, credit.streams), (1500, 1000, [100, 100]));
    assert_eq!(Instant::ZERO, Pair::new(config.clone(), config, PathModel::ideal(Duration::ZERO)).now);
}

/// The API calls of a transfer: the usual ones, or a faster variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Usual,
    /// In-order data uses [`fullpipe_quic::Connection::take_expected`].
    Expected,
    /// No delivery-rate samples are taken.
    Unsampled,
    /// Writes use `write_lengths`, with a threshold for the event that there is room.
    Hinted,
}

/// The datagrams of both ends in a transfer from the client on one or two streams, the states of the ends, and how often data
/// used the fast path.
///
/// Delivery rates are not compared, because [`Manner::Unsampled`] has none.
fn course(configs: &[Config; 2], path: &PathModel, control: &str, seed: u64, manner: Manner) -> (String, u64) {
    let [client, server] = configs.clone();
    let mut pair = Pair::with(client, server, path.clone(), control, seed);
    pair.keep_sent = true;
    pair.short_path = manner == Manner::Expected;
    if manner == Manner::Unsampled {
        pair.client.disable_rate_samples();
        pair.server.disable_rate_samples();
    }
    let write_bytes = 1 + seed % 5000;
    let mut left = BTreeMap::new();
    for _ in 0..1 + seed % 2 {
        if let Some(index) = pair.client.open_stream(pair.now, true) {
            left.insert(index, 300_000u64);
        }
    }
    for _ in 0..3000 {
        for (end, index, _, event) in std::mem::take(&mut pair.fresh) {
            let now = pair.now;
            let Some(left) = left.get_mut(&index).filter(|left| end == 0 && **left > 0) else { continue };
            let Some(stream) = pair.client.stream(now, index) else { continue };
            if !matches!(event, TransportEvent::Connected | TransportEvent::Writable) {
                continue;
            }
            if manner == Manner::Hinted {
                *left -= stream.write_lengths(write_bytes, *left);
                stream.set_writable_threshold(write_bytes.min(*left));
            } else {
                while *left > 0 && stream.writable_bytes() >= write_bytes.min(*left) {
                    *left -= stream.write(Payload::Length(write_bytes.min(*left)));
                }
            }
            if *left == 0 {
                stream.finish();
            }
        }
        if !pair.step() {
            break;
        }
    }
    let mut text = format!("{:?} {:?} {:?}", pair.sent, pair.received, pair.now);
    for connection in [&pair.client, &pair.server] {
        let seen = SenderSnapshot { delivery_rate_bps: 0, ..connection.inspect() };
        text += &format!("{seen:?} {:?} {:?}", connection.statistics(), connection.slow_timer_deadline());
    }
    (text, pair.expected)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// [`fullpipe_quic::Connection::take_expected`] has the effect of the usual calls.
    #[test]
    fn fast_path_for_expected_data_has_the_effect_of_the_general_path(
        configs in (configs(), configs()),
        path in paths(),
        control in controls(),
        seed in any::<u64>(),
    ) {
        let configs = same_ids([configs.0, configs.1]);
        let [usual, expected] =
            [Manner::Usual, Manner::Expected].map(|manner| course(&configs, &path, control, seed, manner).0);
        prop_assert_eq!(usual, expected);
    }

    /// Without delivery-rate samples, a control that does not use them sends the same packets at the same times.
    #[test]
    fn control_without_rate_use_behaves_the_same_without_samples(
        configs in (configs(), configs()),
        path in paths(),
        control in prop_oneof![Just("newreno"), Just("cubic")],
        seed in any::<u64>(),
    ) {
        let configs = same_ids([configs.0, configs.1]);
        let [usual, unsampled] =
            [Manner::Usual, Manner::Unsampled].map(|manner| course(&configs, &path, control, seed, manner).0);
        prop_assert_eq!(usual, unsampled);
    }

    /// Combined writes, with events only when the next write fits, do not change the packets.
    #[test]
    fn batched_writes_with_a_threshold_have_the_effect_of_single_writes(
        configs in (configs(), configs()),
        path in paths(),
        control in controls(),
        seed in any::<u64>(),
    ) {
        let configs = same_ids([configs.0, configs.1]);
        let [usual, hinted] =
            [Manner::Usual, Manner::Hinted].map(|manner| course(&configs, &path, control, seed, manner).0);
        prop_assert_eq!(usual, hinted);
    }
}

#[test]
fn most_data_of_a_transfer_without_losses_uses_the_fast_path() {
    let configs = [Config::default(), Config::default()];
    let (_, expected) = course(&configs, &PathModel::ideal(Duration::from_millis(10)), "cubic", 4, Manner::Expected);
    assert!(expected > 150, "{expected} of about 210");
}
