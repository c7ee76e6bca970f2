//! The sender without losses: segments, windows, Nagle's algorithm, zero-window probes, timeouts, idle time, pacing.

use crate::common::*;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_tcp::{Config, Connection};
use fullpipe_transport::{CloseReason, Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::tcp::flags;
use std::sync::Arc;

/// Segments of 1000 bytes, without Nagle's algorithm and probes.
fn plain() -> Config {
    Config { mss_bytes: 1000, nagle: false, tail_loss_probe: false, ..Config::linux() }
}

fn open(config: Config) -> Script {
    let mut script = Script::client(config, ms(100));
    script.events.clear();
    script
}

#[test]
fn initial_window_is_sent_and_acknowledgments_release_the_rest() {
    let mut script = open(plain());
    script.write(30_500);
    let first = script.sent();
    assert_eq!(first, (0..10).map(|n| (n * 1000, 1000)).collect::<Vec<_>>());
    assert_eq!(script.connection.inspect().in_flight_bytes, 10_000);
    script.advance(ms(100));
    // Slow start: two acknowledged, four sent.
    script.ack(2000, &[]);
    assert_eq!(script.sent(), [(10_000, 1000), (11_000, 1000), (12_000, 1000), (13_000, 1000)]);
    assert_eq!(script.connection.inspect().cwnd_bytes, 12_000);
    assert_eq!(script.events, [TransportEvent::Writable]);
    assert_eq!(script.connection.inspect().smoothed_rtt, ms(100));
}

#[test]
fn write_beyond_the_buffer_is_partial() {
    let mut script = open(Config { send_buffer_bytes: 5_500, ..plain() });
    assert_eq!(script.connection.write(Payload::Length(4_000)), 4_000);
    assert_eq!(script.connection.writable_bytes(), 1_500);
    assert_eq!(script.connection.write(Payload::Length(4_000)), 1_500);
    assert_eq!(script.connection.write(Payload::Length(1)), 0);
    script.out();
    script.advance(ms(100));
    script.ack(1_000, &[]);
    assert_eq!(script.connection.writable_bytes(), 1_000);
}

#[test]
fn small_write_without_nagle_is_one_segment() {
    let mut script = open(plain());
    for piece in [300, 300, 1500] {
        script.write(piece);
        script.out();
    }
    // Written in one batch they fill segments.
    script.write(300);
    script.write(300);
    script.write(700);
    assert_eq!(script.sent(), [(2100, 1000), (3100, 300)]);
}

#[test]
fn nagle_delays_a_partial_segment_while_data_is_unacknowledged() {
    // RFC 9293 section 3.7.4.
    let mut script = open(Config { nagle: true, ..plain() });
    script.write(300);
    assert_eq!(script.sent(), [(0, 300)]);
    script.write(300);
    assert_eq!(script.sent(), []);
    script.write(900);
    assert_eq!(script.sent(), [(300, 1000)], "a whole segment is sent, the rest waits");
    script.advance(ms(100));
    script.ack(300, &[]);
    assert_eq!(script.sent(), []);
    script.ack(1300, &[]);
    assert_eq!(script.sent(), [(1300, 200)]);
    // The end of the stream is sent without delay.
    script.write(10);
    assert_eq!(script.sent(), []);
    script.connection.finish();
    assert_eq!(script.sent(), [(1500, 10)]);
}

#[test]
fn sending_stays_within_the_peers_window_without_splitting_segments() {
    let mut script = open(plain());
    // 27 << 7 = 3456 bytes.
    script.window = 27;
    script.ack(0, &[]);
    script.write(10_000);
    assert_eq!(script.sent(), [(0, 1000), (1000, 1000), (2000, 1000)]);
    script.advance(ms(100));
    script.ack(1000, &[]);
    assert_eq!(script.sent(), [(3000, 1000)]);
    // Exact to the byte.
    for (window, segments) in [(2_999, 2), (3_000, 3), (3_001, 3)] {
        let mut script = open(Config { window_scaling: false, ..plain() });
        script.window = window;
        script.ack(0, &[]);
        script.write(10_000);
        assert_eq!(script.sent().len(), segments);
    }
    // The last bytes fit completely although they are less than a segment, and are sent.
    let mut script = open(plain());
    script.window = 27;
    script.ack(0, &[]);
    script.write(3400);
    assert_eq!(script.sent(), [(0, 1000), (1000, 1000), (2000, 1000), (3000, 400)]);
}

#[test]
fn old_segment_does_not_change_the_window() {
    let mut script = open(plain());
    script.data(0, 100, 0);
    script.peer_next = 100;
    // RFC 9293 section 3.10.7.4: SND.WL1.
    script.window = 1000;
    script.ack(0, &[]);
    assert_eq!(script.connection.inspect().peer_window_bytes, 128_000);
    script.window = 1;
    script.peer_next = 50;
    script.ack(0, &[]);
    assert_eq!(script.connection.inspect().peer_window_bytes, 128_000);
}

#[test]
fn zero_window_is_probed_with_increasing_intervals_until_it_opens() {
    let mut script = open(plain());
    script.window = 0;
    script.ack(0, &[]);
    script.write(5000);
    assert_eq!(script.sent(), []);
    // The timeout after the handshake's 100 ms: 100 + max(200, 4 * 50) = 300; doubled each time.
    let mut expected = at_ms(100);
    for (probe, interval) in [300, 600, 1200, 2400].into_iter().enumerate() {
        expected += ms(interval);
        assert_eq!(script.timer(), expected);
        let sent = script.out();
        assert_eq!(sent.len(), 1);
        // A number that was acknowledged before, so that the peer must answer.
        assert_eq!((script.offset(sent[0].header.sequence), sent[0].header.payload_bytes), (u32::MAX, 0));
        assert_eq!(script.connection.statistics().window_probes, probe as u64 + 1);
        script.ack(0, &[]);
        assert_eq!(script.sent(), []);
    }
    // A window smaller than a segment: the next probe sends the part that fits (RFC 9293 section 3.8.6.2.1).
    script.window = 3;
    script.ack(0, &[]);
    assert_eq!(script.sent(), []);
    script.timer();
    assert_eq!(script.sent(), [(0, 384)]);
    script.advance(ms(100));
    script.window = 1000;
    script.ack(384, &[]);
    assert_eq!(script.sent().len(), 5);
    assert_eq!(script.connection.statistics().timeouts, 0);
}

#[test]
fn unanswered_window_probes_abort_the_connection_and_answered_ones_do_not() {
    let mut script = open(Config { max_retransmissions: 4, ..plain() });
    script.window = 0;
    script.ack(0, &[]);
    script.write(100);
    script.out();
    for _ in 0..20 {
        script.timer();
        assert_eq!(script.out().len(), 1);
        script.ack(0, &[]);
    }
    for _ in 0..4 {
        script.timer();
        assert_eq!(script.out().len(), 1);
    }
    script.timer();
    assert_eq!(script.events, [TransportEvent::Closed(CloseReason::TimedOut)]);
}

#[test]
fn timeouts_double_up_to_the_bound_and_then_abort_the_connection() {
    // Linux: 100 + max(200, 4 * 50) = 300 ms initially; 300 * 2^8 = 76.8 s, then 120 s. RFC 6298 rule 5.5.
    let mut script = open(plain());
    script.write(1000);
    assert_eq!(script.sent(), [(0, 1000)]);
    let mut expected = at_ms(100);
    for again in 0..15 {
        expected += ms((300 << again).min(120_000));
        assert_eq!(script.timer(), expected);
        assert_eq!(script.sent(), [(0, 1000)]);
    }
    assert_eq!(script.timer(), expected + ms(120_000));
    assert_eq!(script.sent(), []);
    assert_eq!(script.events, [TransportEvent::Closed(CloseReason::TimedOut)]);
    assert_eq!(script.connection.statistics().timeouts, 15);
    // ns-3: at least one second for the whole timeout.
    let mut script = open(Config { loss_detection: Config::ns3().loss_detection, min_rto: ms(1000), ..plain() });
    script.write(1000);
    script.out();
    assert_eq!(script.timer(), at_ms(1100));
    assert_eq!(script.timer(), at_ms(3100));
}

#[test]
fn progress_resets_the_count_of_timeouts() {
    let mut script = open(Config { max_retransmissions: 2, ..plain() });
    script.write(4000);
    script.out();
    for acknowledged in 1..=4 {
        script.timer();
        script.out();
        script.timer();
        script.out();
        script.ack(acknowledged * 1000, &[]);
        script.out();
    }
    assert!(!script.events.contains(&TransportEvent::Closed(CloseReason::TimedOut)));
    assert_eq!(script.connection.statistics().acknowledged_bytes, 4000);
}

#[test]
fn acknowledgment_restarts_the_timer_and_the_last_one_stops_it() {
    let mut script = open(plain());
    script.write(2000);
    script.out();
    assert_eq!(script.connection.slow_timer_deadline(), at_ms(400));
    script.advance(ms(100));
    script.ack(1000, &[]);
    // Second sample of 100 ms: variation 3/4 * 50 = 37.5, 4 * 37.5 = 150 < 200. RFC 6298 rules 2.3 and 5.3.
    assert_eq!(script.connection.slow_timer_deadline(), at_ms(200 + 300));
    script.ack(2000, &[]);
    assert!(script.connection.slow_timer_deadline().is_never());
}

#[test]
fn timeout_reduces_the_window_to_one_segment_and_slow_start_follows() {
    let mut script = open(Config { frto: false, ..plain() });
    script.write(20_000);
    assert_eq!(script.sent().len(), 10);
    script.timer();
    assert_eq!(script.sent(), [(0, 1000)]);
    let inspect = script.connection.inspect();
    assert_eq!((inspect.cwnd_bytes, inspect.ssthresh_bytes, inspect.in_flight_bytes), (1000, 5000, 1000));
    script.advance(ms(100));
    script.ack(1000, &[]);
    assert_eq!(script.sent(), [(1000, 1000), (2000, 1000)]);
    // The timeout was the response to the losses: no recovery, no second reduction.
    let inspect = script.connection.inspect();
    assert_eq!((inspect.cwnd_bytes, inspect.ssthresh_bytes, inspect.in_recovery), (2000, 5000, false));
    script.advance(ms(100));
    // Everything except the first segment had arrived: the loss phase ends, and new data follows.
    script.ack(10_000, &[]);
    assert_eq!(script.connection.statistics().timeouts, 1);
    assert!(script.sent().iter().all(|segment| segment.0 >= 10_000));
}

#[test]
fn round_trip_times_from_timestamps_have_their_granularity() {
    // Sent at 100.4 ms, acknowledged at 103.2 ms: 2.8 ms by send time, 103 - 100 = 3 ticks by timestamps.
    for (by_timestamps, expected) in [(false, Duration::from_micros(2_800)), (true, ms(3))] {
        let mut script = open(Config { rtt_from_timestamps: by_timestamps, ..plain() });
        script.advance(Duration::from_micros(400));
        script.write(1000);
        script.out();
        script.advance(Duration::from_micros(2_800));
        script.ack(1000, &[]);
        assert_eq!(script.connection.inspect().latest_rtt, expected);
    }
    // Within a tick it counts as one tick.
    let mut script = open(Config { rtt_from_timestamps: true, ..plain() });
    script.write(1000);
    script.out();
    script.advance(Duration::from_micros(10));
    script.ack(1000, &[]);
    assert_eq!(script.connection.inspect().latest_rtt, ms(1));
}

#[test]
fn retransmission_gives_a_sample_only_with_timestamps() {
    for timestamps in [false, true] {
        let mut script = open(Config { timestamps, ..plain() });
        script.write(1000);
        script.out();
        assert_eq!(script.timer(), at_ms(400));
        script.out();
        script.advance(ms(120));
        script.ack(1000, &[]);
        let inspect = script.connection.inspect();
        if timestamps {
            assert_eq!(inspect.latest_rtt, ms(120));
            assert!(inspect.rto < ms(400));
        } else {
            // Karn: no sample, and the doubled timeout remains.
            assert_eq!(inspect.latest_rtt, ms(100));
            assert_eq!(inspect.rto, ms(600));
        }
    }
}

#[test]
fn window_after_a_long_idle_time_is_the_initial_window() {
    for (restart, pause, expected) in [(true, 5000, 10), (true, 150, 20), (false, 5000, 20)] {
        let mut script =
            Script::client_with(Config { idle_restart: restart, ..plain() }, Box::new(NewReno::new(None)), ms(100));
        script.write(10_000);
        script.out();
        script.advance(ms(100));
        for segment in 1..=10 {
            script.ack(segment * 1000, &[]);
        }
        assert_eq!(script.connection.inspect().cwnd_bytes, 20_000);
        script.advance(ms(pause));
        script.write(40_000);
        assert_eq!(script.sent().len(), expected);
    }
}

#[test]
fn window_grows_only_if_it_limited_sending() {
    // Linux tcp_is_cwnd_limited: in slow start if more than half of it was used.
    let mut script = open(plain());
    for (written, grows) in [(3_000, false), (5_000, false), (6_000, true), (10_000, true)] {
        let before = script.connection.inspect().cwnd_bytes;
        assert!(before >= 10_000);
        let mut fresh = open(plain());
        fresh.write(written);
        fresh.out();
        fresh.advance(ms(100));
        fresh.ack(written as u32, &[]);
        assert_eq!(fresh.connection.inspect().cwnd_bytes > 10_000, grows, "{written}");
    }
    script.out();
}

#[test]
fn pacing_spreads_segments_over_the_round_trip() {
    // 10 segments of 1000 bytes per 100 ms, twice that in slow start: one per 5 ms; with a quantum of 2, two per 10 ms. A pacer that was
    // idle has a credit of half a quantum: half an interval, or one segment.
    let single: Vec<_> = (0..10).map(|n| if n == 0 { (100_000, 1) } else { (97_500 + n * 5_000, 1) }).collect();
    let double = vec![(100_000, 3), (110_000, 2), (120_000, 2), (130_000, 2), (140_000, 1)];
    for (quantum, departures) in [(1, single), (2, double)] {
        let mut script = open(Config { pacing: true, pacing_quantum_segments: quantum, ..plain() });
        assert_eq!(script.connection.inspect().pacing_bps, 1_600_000);
        script.write(10_000);
        for (microseconds, count) in departures {
            if script.now < Instant::ZERO + Duration::from_micros(microseconds) {
                script.timer();
            }
            assert_eq!(script.now, Instant::ZERO + Duration::from_micros(microseconds));
            assert_eq!(script.sent().len(), count);
        }
        assert!(script.connection.fast_timer_deadline().is_never());
    }
}

#[test]
fn delivery_is_sampled() {
    let mut script = open(plain());
    script.write(10_000);
    script.out();
    script.advance(ms(100));
    script.ack(10_000, &[]);
    // 10 000 bytes in 100 ms.
    assert_eq!(script.connection.inspect().delivery_rate_bps, 800_000);
}

#[test]
fn sequence_numbers_wrap() {
    // The script's initial number is 5000 before the wraparound.
    let mut script = open(plain());
    script.write(10_000);
    let sent = script.out();
    assert!(sent[0].header.sequence > u32::MAX - 5000);
    assert!(sent[9].header.sequence < 5000);
    script.advance(ms(100));
    script.ack(4_000, &[(5_000, 6_000), (7_000, 9_000)]);
    // Three segments have arrived beyond, so the two holes are lost (RACK): only the last segment is in flight.
    assert_eq!(script.connection.inspect().in_flight_bytes, 1_000);
    assert_eq!(script.sent(), [(4_000, 1000), (6_000, 1000)]);
    script.ack(10_000, &[]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 0);
}

#[test]
fn idle_connection_has_a_small_memory_footprint() {
    // With the control's own state and unallocated rings; the budget is 900 bytes in total.
    let size = size_of::<Connection>();
    assert!(size <= 760, "{size}");
}

#[test]
fn segment_counts_with_the_ns3_preset_equal_those_of_ns3() {
    // ns-3's transfer of D data segments in one direction, with the FIN on the last. The acknowledging end sends a SYN-ACK, one
    // acknowledgment for the first segment and one for every second after it. For the last segment with its FIN it sends one, or two if
    // its data alone requires one: floor((D - 1) / 2) + 3 in total. Published for 1.5 MB: 2900 segments (SYN, handshake acknowledgment
    // and D = 2898) and 2897 / 2 + 3 = 1451. 512 * 99 = 50 688 = 94 * 536 + 304: 95 segments. 512 * 98 = 50 176 = 93 * 536 + 328: 94.
    for (bytes, segments, acknowledgements) in [(512 * 99, 95, 47 + 3), (512 * 98, 94, 46 + 3)] {
        let config = Config::ns3();
        let mut pair = Pair::new([config.clone(), config], [10, 20], 1);
        pair.applications[0] = Application::new(bytes);
        pair.applications[0].piece = bytes;
        pair.applications[1].finishes = false;
        pair.run(Duration::from_secs(10));
        assert_eq!(pair.sent, [2 + segments, acknowledgements]);
        assert_eq!(pair.ends[0].statistics().data_segments_sent, segments);
    }
}

#[test]
fn handle_timeout_without_due_timers_has_no_effect() {
    let mut script = open(plain());
    script.write(5000);
    script.out();
    let before = (script.connection.slow_timer_deadline(), script.connection.fast_timer_deadline());
    for _ in 0..3 {
        script.connection.handle_timeout(script.now);
        script.collect_events();
    }
    assert_eq!(script.out().len(), 0);
    assert_eq!(before, (script.connection.slow_timer_deadline(), script.connection.fast_timer_deadline()));
    let mut listening = Connection::server(Arc::new(plain()), Box::new(Halving), 1, Instant::ZERO);
    listening.handle_timeout(at_ms(1_000_000));
    assert!(drain(&mut listening, at_ms(1_000_000)).is_empty());
}

#[test]
fn writes_of_bytes_and_lengths_can_be_mixed() {
    let mut script = open(plain());
    script.connection.write(Payload::Bytes(b"abc".as_slice().into()));
    script.connection.write(Payload::Length(2));
    script.connection.write(Payload::Bytes(b"def".as_slice().into()));
    let sent = script.out();
    assert_eq!(sent[0].payload.as_deref(), Some(b"abc\0\0def".as_slice()));
    script.connection.write(Payload::Length(10));
    assert_eq!(script.out()[0].payload, None);
    // A retransmission has the same content, even after a partial acknowledgment.
    script.advance(ms(100));
    script.ack(1, &[]);
    script.timer();
    let again = script.out();
    assert_eq!(script.offset(again[0].header.sequence), 1);
    assert_eq!(again[0].payload.as_deref(), Some(b"bc\0\0def".as_slice()));
    let flags = again[0].header.flags;
    assert_eq!(flags, flags::ACK);
}
