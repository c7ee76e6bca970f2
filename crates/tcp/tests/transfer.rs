//! Two ends over paths that lose, delay, reorder and duplicate: every byte arrives once, in order, and then the end.

use crate::common::*;
use fullpipe_congestion::Controller;
use fullpipe_congestion::cubic::Cubic;
use fullpipe_congestion::linux_reno::LinuxReno;
use fullpipe_tcp::{Config, Connection, EcnFeedback, EcnMode, KeepAlive, LossDetection, State, Statistics};
use fullpipe_transport::{CloseReason, Payload, Stream as _, TransportEvent};
use fullpipe_units::{Duration, Instant, Rate};
use fullpipe_wire::tcp::flags;
use proptest::prelude::*;
use std::sync::Arc;

#[test]
fn transfer_without_losses_completes_in_both_directions() {
    let mut pair = Pair::new([Config::linux(), Config::linux()], [1, 2], 1);
    pair.applications = [Application::new(3_000_000), Application::new(1_000_000)];
    assert!(pair.run(Duration::from_secs(500)));
    assert_eq!(pair.applications[0].read, 1_000_000);
    assert_eq!(pair.applications[1].read, 3_000_000);
    for end in 0..2 {
        assert!(pair.applications[end].peer_finished);
        assert_eq!(pair.applications[end].closed, Some(CloseReason::Finished));
        assert_eq!(pair.ends[end].state(), State::Closed);
        assert_eq!(pair.ends[end].statistics().retransmitted_segments, 0);
    }
}

#[test]
fn bulk_transfer_through_a_short_queue_fills_the_link() {
    // 10 Mbit/s, 20 ms round-trip time, 10 ms of queue: half a bandwidth-delay product, so a halved window keeps the link at least three
    // quarters busy. 10 MB take 8 s at full rate with 1448 of 1500 bytes payload.
    for detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        let config = Config { loss_detection: detection, ..Config::linux() };
        let mut pair = Pair::new([config.clone(), config.clone()], [1, 2], 1);
        pair.ends[0] = Connection::client(Arc::new(config), Box::new(Cubic::default()), 1, Instant::ZERO);
        pair.paths[0].rate = Some(Rate::from_megabits_per_second(10));
        pair.paths[0].queue = ms(10);
        pair.applications[0] = Application::new(10_000_000);
        let mut finished = Instant::NEVER;
        while pair.step() {
            if pair.applications[1].read == 10_000_000 && finished.is_never() {
                finished = pair.now;
            }
        }
        let seconds = finished.as_secs_f64();
        assert!((8.28..9.2).contains(&seconds), "{detection:?} {seconds}");
        let statistics = pair.ends[0].statistics();
        assert_eq!(statistics.timeouts, 0);
        assert!(statistics.recoveries > 2, "the queue overflows");
        // Every retransmission was necessary, except for one or two probes.
        assert!(pair.ends[1].statistics().duplicate_segments_received <= 2);
    }
}

#[test]
fn transfer_continues_after_an_outage() {
    // No packet arrives from 1 s to 8 s. Timeouts back off, and the transfer continues afterwards.
    for detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        let config = Config { loss_detection: detection, ..Config::linux() };
        let mut pair = Pair::new([config.clone(), config], [1, 2], 1);
        for path in &mut pair.paths {
            path.rate = Some(Rate::from_megabits_per_second(10));
        }
        pair.applications[0] = Application::new(10_000_000);
        pair.filter = Box::new(|_, now, _| (at_ms(1_000)..at_ms(8_000)).contains(&now));
        assert!(pair.run(Duration::from_secs(1000)));
        assert_eq!(pair.applications[1].read, 10_000_000);
        let timeouts = pair.ends[0].statistics().timeouts;
        // From about 0.3 s doubling: 0.3, 0.9, 2.1, 4.5, 9.3 s after the last progress.
        assert!((4..=6).contains(&timeouts), "{timeouts}");
    }
}

#[test]
fn loss_of_any_single_segment_loses_no_byte() {
    // Each segment of a short exchange is lost in turn, in both directions, including SYN and FIN.
    for detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        for end in 0..2 {
            for index in 0..40 {
                let config = Config { loss_detection: detection, ..Config::linux() };
                let mut pair = Pair::new([config.clone(), config], [u32::MAX - 9000, 2], 1);
                pair.applications = [Application::new(20_000), Application::new(15_000)];
                let mut count = 0;
                pair.filter = Box::new(move |from, _, _| {
                    count += u64::from(from == end);
                    from == end && count == index + 1
                });
                assert!(pair.run(Duration::from_secs(300)), "{end} {index}");
                assert_eq!(pair.applications[0].read, 15_000);
                assert_eq!(pair.applications[1].read, 20_000);
                for end in 0..2 {
                    assert_eq!(pair.applications[end].closed, Some(CloseReason::Finished));
                }
                // One loss must not cause many retransmissions.
                let again = pair.ends.iter().map(|end| end.statistics().retransmitted_segments).sum::<u64>();
                assert!(again <= 6, "{detection:?} {end} {index}: {again}");
            }
        }
    }
}

#[test]
fn lost_retransmissions_are_detected_without_a_timeout() {
    // Segment 20 is lost three times. RACK detects each loss of the retransmission by segments sent after it.
    let mut pair = Pair::new([Config::linux(), Config::linux()], [0, 0], 1);
    pair.paths[0].rate = Some(Rate::from_megabits_per_second(20));
    pair.applications[0] = Application::new(2_000_000);
    let mut lost = 0;
    pair.filter = Box::new(move |end, _, segment| {
        let hit = end == 0 && segment.header.sequence == 1 + 20 * 1448 && lost < 3;
        lost += u32::from(hit);
        hit
    });
    assert!(pair.run(Duration::from_secs(300)));
    let statistics = pair.ends[0].statistics();
    assert_eq!((statistics.timeouts, statistics.retransmitted_segments), (0, 3));
    assert_eq!(pair.applications[1].read, 2_000_000);
}

#[test]
fn reordering_alone_causes_few_retransmissions() {
    // Up to 8 ms of jitter with a round-trip time of 44 ms: within the reordering window of a quarter, once it is open.
    let mut pair = Pair::new([Config::linux(), Config::linux()], [0, 0], 4);
    for path in &mut pair.paths {
        path.delay = ms(20);
        path.rate = Some(Rate::from_megabits_per_second(10));
    }
    pair.paths[0].jitter = ms(8);
    pair.applications[0] = Application::new(5_000_000);
    assert!(pair.run(Duration::from_secs(300)));
    // 5 MB are 3454 segments. The queue overflows once, so only unnecessary retransmissions count.
    let duplicates = pair.ends[1].statistics().duplicate_segments_received;
    assert!(duplicates < 35, "{duplicates}");
    assert_eq!(pair.applications[1].read, 5_000_000);
}

#[test]
fn stream_longer_than_the_sequence_number_space_arrives() {
    // 4.5 GB exceed 2^32; the window is large, so that the test needs few events.
    let config = Config {
        mss_bytes: 60_000,
        receive_buffer_bytes: 40 << 20,
        send_buffer_bytes: 40 << 20,
        initial_window_segments: 400,
        ..Config::linux()
    };
    let mut pair = Pair::new([config.clone(), config], [4_000_000_000, 7], 1);
    pair.applications[0] = Application::new(4_500_000_000);
    pair.applications[0].piece = 1 << 30;
    pair.applications[1].to_write = 10;
    pair.paths[0].loss = 0.0005;
    assert!(pair.run(Duration::from_secs(10_000)));
    assert_eq!(pair.applications[1].read, 4_500_000_000);
    assert_eq!(pair.applications[0].read, 10);
    assert!(pair.ends[0].statistics().retransmitted_segments > 10);
}

#[test]
fn growing_receive_buffer_slows_a_long_fat_path_little() {
    // 100 Mbit/s and 100 ms make 1.25 MB in flight, nineteen times the initial 64 KiB. A buffer that grows with reads doubles in each
    // round trip, as slow start does. The transfer of 25 MB (2 s at full rate, and about seven round trips of slow start) therefore takes
    // only slightly longer than with 6 MiB from the start. A fixed buffer of 64 KiB transfers 64 KiB per round trip: 38 s.
    let time = |initial, most, timestamps| {
        let config =
            Config { timestamps, initial_receive_window_bytes: initial, receive_buffer_bytes: most, ..Config::linux() };
        let mut pair = Pair::new([config.clone(), config], [1, 2], 1);
        for path in &mut pair.paths {
            path.delay = ms(50);
        }
        pair.paths[0].rate = Some(Rate::from_megabits_per_second(100));
        pair.applications[0] = Application::new(25_000_000);
        let mut finished = Instant::NEVER;
        while pair.step() {
            if pair.applications[1].read == 25_000_000 && finished.is_never() {
                finished = pair.now;
            }
        }
        finished.as_secs_f64()
    };
    let small = time(None, 65_536, true);
    assert!((38.0..39.0).contains(&small), "{small}");
    for timestamps in [true, false] {
        let fixed = time(None, 6 << 20, timestamps);
        let growing = time(Some(65_536), 6 << 20, timestamps);
        assert!((2.0..3.2).contains(&fixed), "{fixed}");
        assert!((fixed - 0.001..fixed + 0.4).contains(&growing), "{timestamps}: {growing} instead of {fixed}");
    }
}

#[test]
fn repeated_run_gives_the_same_segments() {
    let run = || {
        let mut pair = Pair::new([Config::linux(), Config::linux()], [1, 2], 9);
        pair.log = Some(Vec::new());
        pair.applications = [Application::new(300_000), Application::new(200_000)];
        for path in &mut pair.paths {
            path.loss = 0.03;
            path.jitter = ms(5);
        }
        pair.run(Duration::from_secs(300));
        pair.log.take().unwrap()
    };
    assert!(run() == run());
}

#[test]
fn segment_headers_are_consistent() {
    let mut pair = Pair::new([Config::linux(), Config::ns3()], [1, 2], 3);
    pair.log = Some(Vec::new());
    pair.applications = [Application::new(200_000), Application::new(100_000)];
    pair.paths[0].loss = 0.05;
    pair.paths[1].loss = 0.05;
    assert!(pair.run(Duration::from_secs(3000)));
    let mut highest_ack = [None::<u32>; 2];
    for (_, end, segment) in pair.log.as_ref().unwrap() {
        let header = &segment.header;
        // All but the first SYN, and the answers of a closed connection.
        assert!(header.has_flag(flags::ACK) || header.has_flag(flags::SYN) || header.has_flag(flags::RST));
        assert!(usize::from(header.sack_count) == segment.sacks.len() && segment.sacks.len() <= 3);
        assert!(header.payload_bytes <= 536, "larger than the smaller MSS");
        assert!(segment.sacks.is_empty() || header.payload_bytes == 0, "a full segment has no room for blocks");
        if header.has_flag(flags::ACK) {
            if let Some(highest) = highest_ack[*end] {
                assert!((header.acknowledgement.wrapping_sub(highest) as i32) >= 0, "an acknowledgment moved backward");
            }
            highest_ack[*end] = Some(header.acknowledgement);
        }
    }
}

fn configs() -> impl Strategy<Value = Config> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let sizes = (200u32..3000, 1u32..20, 2_000u64..300_000, 2_000u64..300_000, 1u32..4);
    let others = (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(2_000u64..100_000), any::<bool>());
    let repair = any::<(bool, bool, bool, bool, bool)>();
    let ecn = prop::sample::select(vec![EcnMode::Off, EcnMode::Passive, EcnMode::Active]);
    let feedback = prop::sample::select(vec![EcnFeedback::Classic, EcnFeedback::Dctcp, EcnFeedback::Accurate]);
    (flags, sizes, others, repair, ecn, feedback).prop_map(
        |(flags, (mss, window, send, receive, delayed), others, repair, ecn, ecn_feedback)| {
            let (sack, timestamps, scaling, nagle, rack) = flags;
            let (dsack, dsack_undo, eifel, frto, limited_transmit) = repair;
            let (pacing, by_timestamps, fast_open, initial_receive_window_bytes, alive) = others;
            Config {
                sack,
                timestamps,
                window_scaling: scaling,
                nagle,
                loss_detection: if rack { LossDetection::Rack } else { LossDetection::DuplicateAcks },
                mss_bytes: mss,
                initial_window_segments: window,
                send_buffer_bytes: send,
                receive_buffer_bytes: receive,
                delayed_ack_segments: delayed,
                pacing,
                rtt_from_timestamps: by_timestamps,
                dsack,
                dsack_undo,
                eifel,
                frto,
                limited_transmit,
                ecn,
                ecn_feedback,
                fast_open,
                initial_receive_window_bytes,
                // Frequent enough to occur, but never so frequent that the connection is aborted.
                black_hole_timeouts: Some(3),
                keep_alive: alive.then_some(KeepAlive { idle: ms(300), interval: ms(300), probes: 1000 }),
                max_retransmissions: 1000,
                max_syn_retransmissions: 100,
                ..Config::linux()
            }
        },
    )
}

fn paths() -> impl Strategy<Value = Path> {
    let marks = prop_oneof![Just(0.0), 0.0..1.0f64];
    let rate = prop::option::of(500_000u64..50_000_000);
    (0u64..100, 0u64..60, 0.0..0.25f64, 0.0..0.1f64, rate, 5u64..200, marks).prop_map(
        |(delay, jitter, loss, duplication, rate, queue, marks)| Path {
            marks,
            delay: ms(delay),
            jitter: ms(jitter),
            loss,
            duplication,
            rate: rate.map(Rate::from_bits_per_second),
            queue: ms(queue),
        },
    )
}

fn applications() -> impl Strategy<Value = Application> {
    // Readers that sometimes pause, for milliseconds or minutes, so that windows close and are probed.
    let stalls = prop_oneof![6 => 1u64..500, 1 => 5_000u64..100_000];
    let slow = prop_oneof![3 => Just(None), 1 => (500u64..20_000, stalls).prop_map(|(n, t)| Some((n, ms(t))))];
    (0u64..200_000, 1u64..10_000, any::<bool>(), slow).prop_map(|(to_write, piece, bytes, slow)| Application {
        piece,
        bytes,
        slow,
        ..Application::new(to_write)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn every_byte_arrives_once_and_in_order_and_then_the_end(
        configs in (configs(), configs()),
        paths in (paths(), paths()),
        applications in (applications(), applications()),
        initial in any::<(u32, u32)>(),
        seed in any::<u64>(),
        mtu in prop::option::weighted(0.2, 640u32..1600),
    ) {
        let mut pair = Pair::new([configs.0, configs.1], [initial.0, initial.1], seed);
        pair.paths = [paths.0, paths.1];
        let expected = [applications.1.to_write, applications.0.to_write];
        pair.applications = [applications.0, applications.1];
        if let Some(mtu) = mtu {
            // A black hole for large packets in both directions; 512 bytes of payload, 32 of header and 20 of IPv4 pass.
            pair.filter = Box::new(move |_, _, segment| {
                20 + segment.header.header_bytes() + u32::from(segment.header.payload_bytes) > mtu
            });
        }
        prop_assert!(pair.run(Duration::from_secs(200_000)), "not complete: {:?} {:?}", pair.applications, pair.ends);
        for (end, expected) in expected.into_iter().enumerate() {
            let application = &pair.applications[end];
            prop_assert_eq!(application.read, expected);
            prop_assert!(application.peer_finished);
            prop_assert_eq!(application.closed, Some(CloseReason::Finished));
            let connection = &pair.ends[end];
            prop_assert!(connection.is_closed());
            prop_assert!(next_deadline(connection).is_never());
            prop_assert_eq!((connection.readable_bytes(), connection.writable_bytes()), (0, 0));
            let inspect = connection.inspect();
            prop_assert_eq!((inspect.in_flight_bytes, inspect.send_buffer_bytes), (0, 0));
        }
    }
}

/// The events of both ends of a transfer within 500 s.
#[derive(Debug, PartialEq)]
struct Course {
    /// Sent segments: time and sending end.
    sent: Vec<(Instant, usize, Segment)>,
    statistics: [Statistics; 2],
    read: [u64; 2],
}

/// Runs a transfer. Also returns the numbers of segments that used fast paths.
fn course_of(mut pair: Pair) -> (Course, Short) {
    pair.log = Some(Vec::new());
    pair.run(Duration::from_secs(500));
    let read = [0, 1].map(|end| pair.applications[end].read);
    let statistics = [0, 1].map(|end| pair.ends[end].statistics());
    (Course { sent: pair.log.take().unwrap(), statistics, read }, pair.short)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// [`Connection::receive_fast_path`], [`Connection::process_fast_path_ack`] and [`Connection::poll_burst`] have the effect of the usual
    /// calls: both ends send the same segments at the same times. The same is true of controls with the simplified interface for
    /// acknowledgments.
    #[test]
    fn fast_paths_have_the_effect_of_the_general_path(
        configs in (configs(), configs()),
        paths in (paths(), paths()),
        applications in (applications(), applications()),
        initial in any::<(u32, u32)>(),
        control in 0..3,
        seed in any::<u64>(),
    ) {
        let course = |short_path: bool| {
            let configs = [configs.0.clone(), configs.1.clone()];
            let mut pair = Pair::new(configs.clone(), [initial.0, initial.1], seed);
            let control: Option<Box<dyn Controller>> = match control {
                0 => None,
                1 => Some(Box::new(Cubic::default())),
                _ => Some(Box::new(LinuxReno::new(None))),
            };
            if let Some(control) = control {
                let [config, _] = configs;
                pair.ends[0] = Connection::client(Arc::new(config), control, initial.0, Instant::ZERO);
            }
            if short_path {
                // Without samples the controls receive simplified acknowledgments.
                pair.ends.iter_mut().for_each(Connection::disable_rate_samples);
            }
            pair.paths = [paths.0.clone(), paths.1.clone()];
            pair.applications = [applications.0.clone(), applications.1.clone()];
            pair.applications[1].finishes = seed % 2 == 0;
            pair.short_path = short_path;
            course_of(pair).0
        };
        prop_assert_eq!(course(true), course(false));
    }

    /// Without delivery-rate samples, a control that does not use them sends the same segments at the same times.
    #[test]
    fn control_without_rate_use_behaves_the_same_without_samples(
        config in configs(),
        paths in (paths(), paths()),
        to_write in 0u64..300_000,
        seed in any::<u64>(),
    ) {
        let course = |sampled: bool| {
            let mut pair = Pair::new([config.clone(), config.clone()], [1, 2], seed);
            pair.ends[0] = Connection::client(Arc::new(config.clone()), Box::new(Cubic::default()), 1, Instant::ZERO);
            if !sampled {
                pair.ends.iter_mut().for_each(Connection::disable_rate_samples);
            }
            pair.paths = [paths.0.clone(), paths.1.clone()];
            pair.applications[0] = Application::new(to_write);
            course_of(pair)
        };
        prop_assert_eq!(course(true), course(false));
    }

    /// [`Stream::write_lengths`] of a connection has the effect of single writes.
    #[test]
    fn write_lengths_has_the_effect_of_single_writes(
        buffer in 1u64..300_000,
        steps in prop::collection::vec((1u64..100_000, 0u64..400_000), 1..4),
    ) {
        let client = || {
            let config = Config { send_buffer_bytes: buffer, ..Config::linux() };
            Connection::client(Arc::new(config), Box::new(Cubic::default()), 1, Instant::ZERO)
        };
        let (mut at_once, mut singly) = (client(), client());
        for (write, most) in steps {
            let mut written = 0;
            while written < most && singly.writable_bytes() >= write.min(most - written) {
                written += singly.write(Payload::Length(write.min(most - written)));
            }
            prop_assert_eq!(at_once.write_lengths(write, most), written);
            prop_assert_eq!(at_once.writable_bytes(), singly.writable_bytes());
        }
    }
}

/// Nearly all segments of a transfer in one direction use the fast paths, so the test above is not trivially true.
#[test]
fn most_segments_of_a_transfer_use_the_fast_paths() {
    let mut pair = Pair::new([Config::linux(), Config::linux()], [1, 2], 2);
    // The receiver does not finish, so it stays in ESTABLISHED.
    pair.applications = [Application::new(3_000_000), Application { finishes: false, ..Application::new(0) }];
    pair.short_path = true;
    let (course, short) = course_of(pair);
    assert_eq!(course.read, [0, 3_000_000]);
    let sent = course.statistics[0].data_segments_sent;
    // Every second data segment is acknowledged.
    let enough = [(short.data, sent), (short.bursts, sent), (2 * short.acknowledgements, sent)];
    assert!(enough.iter().all(|(short, all)| 10 * short > 9 * all), "{short:?} of {:?}", course.statistics);
}

/// An application that waits for room for a whole write receives no event before.
#[test]
fn room_below_the_threshold_causes_no_event() {
    for (threshold, events) in [(0, 10), (7 * 1448, 4), (10 * 1448, 1), (10 * 1448 + 1, 0)] {
        // Ten segments of 1448 bytes fill the buffer and the first window; each acknowledgment releases the room of one.
        let config = Config { send_buffer_bytes: 10 * 1448, ..Config::linux() };
        let mut script = Script::client(config, ms(100));
        script.connection.set_writable_threshold(threshold);
        assert_eq!(script.connection.write(Payload::Length(20_000)), 10 * 1448);
        script.out();
        let mut writable = 0;
        for acknowledged in 1..=10 {
            script.events.clear();
            script.ack(acknowledged * 1448, &[]);
            writable += script.events.iter().filter(|event| **event == TransportEvent::Writable).count();
        }
        assert_eq!(writable, events, "{threshold}");
    }
}
