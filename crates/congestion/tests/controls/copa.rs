//! Tests of Copa: each rule with values computed by hand, then the oscillation, the shares and the modes in the closed loop.

use crate::pipe::{Pipe, Sender};
use crate::script::{RTT, STEP, Script, Step};
use crate::simulator::{MSS, instant};
use fullpipe_congestion::catalogue::ControlOptions;
use fullpipe_congestion::copa::{Copa, CopaMode};
use fullpipe_congestion::{RecoveryExit, Timeout};
use fullpipe_units::Duration;

const SLOW_START: u32 = 0;
const DEFAULT: u32 = 1;
const COMPETITIVE: u32 = 2;

/// A flow after slow start with this window, on a path of 100 ms.
fn avoiding(segments: u64) -> Script {
    let mut script = Script::avoiding("copa", segments);
    ack(&mut script, 1, 100_000, 0);
    assert_eq!((script.state(), script.value("delta"), script.value("velocity")), (DEFAULT, 0.5, 1.0));
    script
}

/// An acknowledgment of this number of segments `wait` milliseconds after the previous one, with a round-trip time in microseconds,
/// within a round.
fn ack(script: &mut Script, wait: u64, rtt: u64, segments: u64) {
    let (wait, rtt) = (Duration::from_millis(wait), Duration::from_micros(rtt));
    script.ack(Step { wait, rtt, acked: segments * MSS, new_round: false, ..STEP });
}

/// An acknowledgment of the whole window, `wait` milliseconds after the previous one, which begins a round. With velocity v it changes
/// the window by exactly v / delta segments.
fn round(script: &mut Script, wait: u64, rtt: u64) {
    let (wait, rtt) = (Duration::from_millis(wait), Duration::from_micros(rtt));
    script.ack(Step { wait, rtt, acked: script.control.cwnd_bytes, ..STEP });
}

fn segments(script: &Script) -> f64 {
    script.control.cwnd_bytes as f64 / MSS as f64
}

#[test]
fn the_window_moves_by_two_packets_per_round_trip_towards_the_target_rate() {
    // The rate equals the target if 40 dq / (100 ms + dq) = 1 / delta = 2: dq = 200 / 38 = 5.263 ms.
    for (queue_us, expected) in [(0, 42), (5_262, 42), (5_264, 38), (50_000, 38)] {
        let mut script = avoiding(40);
        // The samples of 100 ms are older than half a round trip.
        ack(&mut script, 80, 100_000 + queue_us, 0);
        ack(&mut script, 0, 100_000 + queue_us, 40);
        assert_eq!(script.window(), expected, "{queue_us} us");
    }
    // Packet by packet w dw = 1 / delta: after 40 packets w^2 = 40^2 +- 2 * 2 * 40, that is 41.95 and 37.95 packets.
    for (queue_us, expected) in [(0, 41.95), (50_000, 37.95)] {
        let mut script = avoiding(40);
        ack(&mut script, 80, 100_000 + queue_us, 0);
        for _ in 0..40 {
            ack(&mut script, 0, 100_000 + queue_us, 1);
        }
        assert!((segments(&script) - expected).abs() < 0.01, "{queue_us} us: {}", segments(&script));
    }
}

#[test]
fn the_queue_delay_is_the_smallest_sample_of_half_a_round_trip_above_the_smallest_of_ten_seconds() {
    let mut script = avoiding(40);
    // The smoothed round-trip time of the script is that of the sample: 160 ms. 100 ms is its best sample for 80 ms.
    ack(&mut script, 80, 160_000, 1);
    assert_eq!(script.value("queue_delay_s"), 0.0);
    ack(&mut script, 1, 160_000, 1);
    assert!((script.value("queue_delay_s") - 0.06).abs() < 1e-9);
    // 9919 ms later the sample of 100 ms is ten seconds old; after that the next smallest counts, 140 ms. (It is stored because it is
    // more than 10 s / 32 = 312.5 ms younger than the better one.)
    ack(&mut script, 400, 140_000, 1);
    ack(&mut script, 9_519, 150_000, 1);
    assert!((script.value("base_rtt_s") - 0.1).abs() < 1e-9);
    ack(&mut script, 1, 150_000, 1);
    assert!((script.value("base_rtt_s") - 0.14).abs() < 1e-9);
    assert!((script.value("queue_delay_s") - 0.01).abs() < 1e-9);
}

#[test]
fn the_handshake_is_no_sample() {
    // Its packets are shorter than those with data, so its round-trip time is too small.
    let mut script = Script::new("copa", 0);
    assert_eq!(script.value("base_rtt_s"), 0.0);
    ack(&mut script, 100, 101_000, 1);
    assert!((script.value("base_rtt_s") - 0.101).abs() < 1e-9);
}

#[test]
fn the_pacing_rate_is_twice_the_window_over_the_standing_round_trip_time() {
    // At the start: 2 * 10 segments of 1448 bytes in the 100 ms of the handshake.
    let script = Script::new("copa", 0);
    assert_eq!(script.control.pacing_bps, 2 * 10 * 1_448 * 8 * 10);
    let mut script = avoiding(40);
    assert_eq!(script.control.pacing_bps, 2 * 40 * 1_448 * 8 * 10);
    ack(&mut script, 200, 200_000, 0);
    assert_eq!(script.control.pacing_bps, 2 * 40 * 1_448 * 8 * 5);
}

#[test]
fn slow_start_doubles_the_window_until_the_rate_exceeds_the_target() {
    // 20 dq / (100 ms + dq) = 2 at dq = 200 / 18 = 11.111 ms.
    for (queue_us, state) in [(11_111, SLOW_START), (11_112, DEFAULT)] {
        let mut script = Script::new("copa", 0);
        for _ in 0..10 {
            ack(&mut script, 1, 100_000, 1);
        }
        assert_eq!((script.state(), script.window()), (SLOW_START, 20));
        ack(&mut script, 80, 100_000 + queue_us, 1);
        assert_eq!(script.state(), state, "{queue_us} us");
        if state == DEFAULT {
            assert_eq!((script.window(), script.control.ssthresh_bytes), (20, 20 * MSS));
        } else {
            assert_eq!((script.window(), script.control.ssthresh_bytes), (21, u64::MAX));
        }
    }
}

#[test]
fn velocity_doubles_after_three_windows_in_the_direction_of_the_first() {
    let mut script = avoiding(40);
    // The first window establishes the direction. From the fourth on velocity doubles: 2 v packets more.
    let expected = [(1, 42), (1, 44), (1, 46), (2, 50), (4, 58), (8, 74), (16, 106)];
    for (velocity, window) in expected {
        round(&mut script, 100, 100_000);
        assert_eq!((script.value("velocity") as u64, script.window()), (velocity, window));
    }
    // A rate above the target resets it at once. This window establishes the new direction.
    round(&mut script, 100, 150_000);
    assert_eq!((script.value("velocity") as u64, script.window()), (1, 104));
    for (velocity, window) in [(1, 102), (1, 100), (2, 96), (4, 88)] {
        round(&mut script, 10, 150_000);
        assert_eq!((script.value("velocity") as u64, script.window()), (velocity, window));
    }
}

#[test]
fn velocity_grows_no_faster_than_slow_start() {
    let mut script = avoiding(40);
    for _ in 0..30 {
        let before = script.control.cwnd_bytes;
        round(&mut script, 100, 100_000);
        assert!(script.value("velocity") * 2.0 <= before as f64 / MSS as f64);
        assert!(script.control.cwnd_bytes <= 2 * before);
    }
}

#[test]
fn an_unused_window_does_not_grow_and_does_not_change_velocity() {
    let mut script = avoiding(40);
    for _ in 0..10 {
        script.ack(Step { acked: 40 * MSS, cwnd_limited: false, ..STEP });
    }
    assert_eq!((script.window(), script.value("velocity")), (40, 1.0));
}

#[test]
fn five_round_trips_without_an_empty_queue_begin_competitive_mode() {
    for (rtt_us, is_competitive) in [(105_000, false), (106_000, true)] {
        // The range is 50 ms, so that the queue is nearly empty up to 5 ms. Five round trips of 150 ms are 750 ms. (The smoothed
        // round-trip time of the script is that of the sample.)
        let mut script = avoiding(40);
        ack(&mut script, 1, 150_000, 0);
        for _ in 0..10 {
            ack(&mut script, 80, rtt_us, 0);
            ack(&mut script, 1, 150_000, 0);
        }
        assert_eq!(script.state(), if is_competitive { COMPETITIVE } else { DEFAULT }, "{rtt_us} us");
    }
}

/// A flow whose queue delay has been 50 ms for more than five round trips of 150 ms.
fn competing() -> Script {
    let mut script = avoiding(40);
    ack(&mut script, 80, 150_000, 0);
    // The sample of 100 ms was 1 ms after the start; the samples of 150 ms count when it is 75 ms old.
    for _ in 0..67 {
        ack(&mut script, 10, 150_000, 0);
        assert_eq!(script.state(), DEFAULT);
    }
    ack(&mut script, 1, 150_000, 0);
    assert_eq!((script.state(), script.value("delta")), (COMPETITIVE, 0.5));
    script
}

#[test]
fn in_competitive_mode_delta_is_additive_and_multiplicative() {
    let mut script = competing();
    // 1 / delta grows by 1 per round: 2, 3, ... 8.
    for packets in 3..=8 {
        round(&mut script, 10, 150_000);
        assert!((script.value("delta") * f64::from(packets) - 1.0).abs() < 1e-9, "{packets}");
    }
    // A loss halves it, and does not change the window. The round with the loss adds nothing; the next one does.
    let window = script.control.cwnd_bytes;
    script.enter_recovery(40 * MSS);
    assert_eq!((script.value("delta"), script.control.cwnd_bytes), (0.25, window));
    round(&mut script, 10, 150_000);
    assert_eq!(script.value("delta"), 0.25);
    script.leave_recovery(false);
    round(&mut script, 10, 150_000);
    assert_eq!(script.value("delta"), 0.2);
    // 5 becomes 2.5 and then 2, not 1.25.
    script.enter_recovery(40 * MSS);
    script.enter_recovery(40 * MSS);
    assert_eq!(script.value("delta"), 0.5);
}

#[test]
fn a_nearly_empty_queue_ends_competitive_mode_and_resets_delta() {
    let mut script = competing();
    for _ in 0..6 {
        round(&mut script, 10, 150_000);
    }
    // A tenth of 50 ms.
    ack(&mut script, 1, 105_001, 0);
    assert_eq!((script.state(), script.value("delta")), (COMPETITIVE, 1.0 / 8.0));
    ack(&mut script, 1, 105_000, 0);
    assert_eq!((script.state(), script.value("delta")), (DEFAULT, 0.5));
}

#[test]
fn without_switching_there_is_no_competitive_mode() {
    let mut script = avoiding(40);
    script.controller = Box::new(Copa::new(CopaMode::FixedDelta));
    ack(&mut script, 1, 100_000, 0);
    for _ in 0..100 {
        ack(&mut script, 80, 150_000, 0);
        assert_eq!((script.state(), script.value("delta")), (DEFAULT, 0.5));
    }
}

#[test]
fn losses_and_marks_change_nothing_in_default_mode_and_end_slow_start() {
    let mut script = avoiding(40);
    script.enter_recovery(40 * MSS);
    assert_eq!((script.window(), script.value("delta")), (40, 0.5));
    // The update continues in recovery: two packets per round trip.
    round(&mut script, 100, 100_000);
    assert_eq!(script.window(), 42);
    script.leave_recovery(false);
    assert_eq!(script.window(), 42);

    let mut script = Script::new("copa", 0);
    ack(&mut script, 1, 100_000, 1);
    script.enter_recovery(10 * MSS);
    assert_eq!((script.state(), script.window(), script.control.ssthresh_bytes), (DEFAULT, 11, 11 * MSS));
}

#[test]
fn velocity_does_not_double_in_rounds_with_losses() {
    let mut script = avoiding(40);
    for _ in 0..10 {
        script.lose(40 * MSS, MSS);
        round(&mut script, 100, 100_000);
        assert_eq!(script.value("velocity"), 1.0);
    }
    assert_eq!(script.window(), 60);
}

#[test]
fn a_timeout_begins_slow_start_with_two_segments_unless_it_was_spurious() {
    for undone in [false, true] {
        let mut script = avoiding(40);
        script.time_out();
        assert_eq!((script.state(), script.window()), (SLOW_START, 2));
        // A repeated timeout does not replace the window to which an undo returns.
        let again = Timeout { now: script.now, in_flight_bytes: MSS, repeated: true };
        script.controller.on_timeout(&mut script.control, &again);
        let exit = RecoveryExit { now: script.now, in_flight_bytes: 0, undone };
        script.controller.on_recovery_exit(&mut script.control, &exit);
        assert_eq!((script.state(), script.window()), if undone { (DEFAULT, 40) } else { (SLOW_START, 2) });
    }
}

#[test]
fn the_window_does_not_fall_below_two_segments() {
    // 3 * 900 / 1000 exceeds 2, and the round takes 2 of the 3 packets.
    let mut script = avoiding(3);
    ack(&mut script, 600, 1_000_000, 0);
    ack(&mut script, 0, 1_000_000, 3);
    assert_eq!(script.control.cwnd_bytes, 2 * MSS);
    // 2 dq is less than 2 (100 ms + dq), so two packets never exceed the target, however long the queue is.
    ack(&mut script, 10, 3_000_000, 1);
    assert!(script.control.cwnd_bytes > 2 * MSS);
    // A larger segment raises the smallest window.
    script.control.mss_bytes = 2 * MSS;
    script.controller.on_path_change(&mut script.control, script.now);
    assert_eq!(script.control.cwnd_bytes, 4 * MSS);
}

#[test]
fn after_an_idle_period_velocity_and_mode_detection_begin_anew() {
    let mut script = avoiding(40);
    for _ in 0..6 {
        round(&mut script, 100, 100_000);
    }
    assert_eq!((script.value("velocity"), script.window()), (8.0, 74));
    script.now += RTT * 80;
    script.controller.on_idle_restart(&mut script.control, script.now);
    assert_eq!((script.value("velocity"), script.window()), (1.0, 74));
    // Nothing was seen of the queue for 8 s, but that is no competitor. Five round trips of 150 ms later it is.
    ack(&mut script, 150, 150_000, 0);
    assert_eq!((script.state(), script.window()), (DEFAULT, 74));
    assert!((script.value("queue_delay_s") - 0.05).abs() < 1e-9);
    ack(&mut script, 600, 150_000, 0);
    assert_eq!(script.state(), DEFAULT);
    ack(&mut script, 1, 150_000, 0);
    assert_eq!(script.state(), COMPETITIVE);
}

/// Flows of the same round-trip time through one bottleneck, which begin a second apart.
fn flows(count: u64, rtt: Duration, mode: CopaMode) -> Pipe {
    let mut pipe = Pipe::new(10_000_000, 10_000_000, 1);
    for flow in 0..count {
        let options =
            ControlOptions { seed: flow, copa_fixed_delta: mode == CopaMode::FixedDelta, ..ControlOptions::default() };
        pipe.add_with("copa", rtt, instant(0.7 * flow as f64), options);
    }
    pipe
}

#[test]
fn each_flow_in_default_mode_keeps_a_mean_of_two_and_a_half_packets_in_the_queue() {
    // Each window is w = C (RTT + dq) / n, so the rate exceeds the target if C dq > n / delta = 2 n packets are queued. n flows change
    // the queue by 2 n packets per round trip. The change of direction takes 1.5 round trips on the way up, as the standing
    // round-trip time is the smallest of half a round trip, and 1 on the way down: from 2 n + 1.5 * 2 n = 5 n packets to 2 n - 2 n = 0.
    // The mean is 2.5 n. An arriving packet sees this queue, and the mean over time is half a packet longer. The queue may be a packet
    // longer or shorter, because windows have whole packets.
    for (count, milliseconds) in [(1, 40), (1, 100), (2, 40), (2, 100), (4, 40), (4, 100)] {
        let mut pipe = flows(count, Duration::from_millis(milliseconds), CopaMode::FixedDelta);
        pipe.run(30.0);
        let mean = pipe.mean_queue_bytes(60.0) / MSS as f64;
        let expected = 2.5 * count as f64 + 0.5;
        assert!((mean / expected - 1.0).abs() < 0.15, "{count} flows, {milliseconds} ms: {mean}, expected {expected}");
        let shares = pipe.goodputs_bps(120.0);
        let sum: f64 = shares.iter().sum();
        assert!(sum > 0.995 * 10e6, "{count} flows, {milliseconds} ms: {shares:?}");
        // The fixed point is the same rate for all flows.
        let fair = sum / count as f64;
        assert!(shares.iter().all(|share| (share / fair - 1.0).abs() < 0.03), "{count} flows: {shares:?}");
        let (mut longest, mut velocity) = (0.0, 0.0);
        pipe.run_watching(instant(150.0), |now, sender: &Sender, bottleneck| {
            longest = f64::max(longest, bottleneck.queue_bytes(now) as f64 / MSS as f64);
            velocity = f64::max(velocity, sender.value("velocity"));
        });
        assert!(longest <= 5.0 * count as f64 + 1.0, "{count} flows, {milliseconds} ms: {longest}");
        assert!(velocity == 1.0, "the direction changes before velocity doubles: {velocity}");
        assert_eq!(pipe.bottleneck.drops, 0);
    }
}

#[test]
fn a_flow_alone_with_mode_detection_keeps_the_same_queue() {
    // At 10 ms five packets are half of the base round-trip time, so that one packet is within the noise of the windows.
    let mut pipe = flows(1, Duration::from_millis(10), CopaMode::Switching);
    pipe.run(30.0);
    let mean = pipe.mean_queue_bytes(60.0) / MSS as f64;
    assert!((mean - 3.0).abs() < 0.5, "{mean}");
    assert!(pipe.senders[0].stays(COMPETITIVE).is_empty());
}

#[test]
fn mode_detection_takes_another_copa_flow_for_a_competitor() {
    // The known defect, see the head of the control: both flows fill a buffer that only they use.
    let mut pipe = flows(2, Duration::from_millis(10), CopaMode::Switching);
    pipe.run(30.0);
    let mean = pipe.mean_queue_bytes(60.0) / MSS as f64;
    let mut alone = flows(2, Duration::from_millis(10), CopaMode::FixedDelta);
    alone.run(30.0);
    let fixed = alone.mean_queue_bytes(60.0) / MSS as f64;
    println!("{mean} packets with mode detection, {fixed} without");
    assert!(mean > 200.0, "{mean}");
    assert!(fixed < 7.0, "{fixed}");
    assert!(!pipe.senders[0].stays(COMPETITIVE).is_empty());
}

#[test]
fn competitive_mode_gets_a_share_beside_reno() {
    // A buffer of 100 packets, 116 ms. In default mode the target is 2 packets in about 140 ms, whatever Reno does.
    let share = |mode: CopaMode| {
        let mut pipe = Pipe::new(10_000_000, 100 * MSS, 1);
        let options = ControlOptions { copa_fixed_delta: mode == CopaMode::FixedDelta, ..ControlOptions::default() };
        pipe.add_with("copa", Duration::from_millis(40), instant(0.0), options);
        pipe.add("newreno", Duration::from_millis(40), instant(1.0), 2);
        pipe.run(20.0);
        let rates = pipe.goodputs_bps(200.0);
        rates[0] / (rates[0] + rates[1])
    };
    let (switching, default) = (share(CopaMode::Switching), share(CopaMode::FixedDelta));
    assert!((0.25..0.75).contains(&switching), "{switching}");
    assert!(default < 0.1, "{default}");
}
