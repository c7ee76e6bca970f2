//! Tests of Prague: the draft with values computed by hand, then the response function in a closed loop.

use crate::script::Script;
use crate::simulator::{MSS, full_window_ack, instant, set_codepoint};
use fullpipe_congestion::catalogue::{ControlOptions, create};
use fullpipe_congestion::{CongestionEvent, EcnCodepoint, Timeout};
use fullpipe_units::{Duration, RandomStream};

/// A round-trip time above the reference of 25 ms.
const LONG: Duration = Duration::from_millis(50);

/// An acknowledgment of one segment.
#[derive(Clone, Copy)]
struct Segment {
    wait: Duration,
    rtt: Duration,
    is_marked: bool,
    ends_round: bool,
}

const SEGMENT: Segment = Segment { wait: Duration::ZERO, rtt: LONG, is_marked: false, ends_round: false };

fn acknowledge(script: &mut Script, segment: Segment) {
    script.now += segment.wait;
    let mut ack = full_window_ack(script.now, MSS, segment.rtt, script.control.cwnd_bytes);
    ack.ce_packets = u64::from(segment.is_marked);
    ack.ce_bytes = ack.ce_packets * MSS;
    ack.round_start = segment.ends_round;
    ack.min_rtt = Duration::from_millis(10).min(segment.rtt);
    script.controller.on_ack(&mut script.control, &ack);
}

/// A flow in congestion avoidance with this window.
fn avoiding(segments: u64) -> Script {
    let mut script = Script::avoiding("prague", segments);
    script.now = instant(1.0);
    script
}

/// Runs a round of ten segments of which `marked` are marked, 50 ms after the last.
fn round(script: &mut Script, marked: u64) {
    for segment in 0..10 {
        let wait = if segment == 0 { LONG } else { Duration::ZERO };
        acknowledge(script, Segment { wait, is_marked: segment < marked, ends_round: segment == 9, ..SEGMENT });
    }
}

#[test]
fn packets_are_sent_as_ect1() {
    // Draft section 2.1, RFC 9331 section 4.1.
    let script = avoiding(10);
    assert!(script.controller.requirements().l4s && script.controller.requirements().ecn_counts);
    assert_eq!(script.control.codepoint, EcnCodepoint::Ect1);
}

#[test]
fn alpha_is_one_until_the_first_mark_and_then_a_moving_average() {
    let mut script = avoiding(100);
    round(&mut script, 0);
    assert_eq!(script.value("alpha"), 1.0, "no queue has marked yet");
    round(&mut script, 4);
    // alpha += (share - alpha) / 16: 1 + (0.4 - 1) / 16.
    assert!((script.value("alpha") - 0.9625).abs() < 1e-12);
    round(&mut script, 0);
    // 0.9625 x 15/16.
    assert!((script.value("alpha") - 0.902_343_75).abs() < 1e-12);
    // With a constant share F: F + (alpha - F) (15/16)^n. (15/16)^64 is 0.0160754.
    for _ in 0..64 {
        round(&mut script, 1);
    }
    // 0.1 + 0.80234375 x 0.0160754 = 0.112898.
    assert!((script.value("alpha") - 0.112_898).abs() < 1e-6, "{}", script.value("alpha"));
}

#[test]
fn the_first_mark_ends_slow_start_and_halves_the_window() {
    let mut script = Script::new("prague", 0);
    script.now = instant(1.0);
    for _ in 0..10 {
        acknowledge(&mut script, SEGMENT);
    }
    // Slow start: ten segments more.
    assert_eq!(script.control.cwnd_bytes, 20 * MSS);
    acknowledge(&mut script, Segment { is_marked: true, ..SEGMENT });
    // alpha is 1: 20 (1 - 1/2).
    assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (10 * MSS, 10 * MSS));
}

#[test]
fn a_mark_reduces_the_window_by_half_of_alpha_once_per_round_trip() {
    let mut script = avoiding(100);
    for _ in 0..200 {
        round(&mut script, 5);
    }
    // alpha is 0.5 + 0.5 (15/16)^200 = 0.5000012; the last reduction was 50 ms ago at the next acknowledgment.
    script.control.cwnd_bytes = 1_000 * MSS;
    acknowledge(&mut script, Segment { wait: LONG, is_marked: true, ..SEGMENT });
    let window = script.control.cwnd_bytes as f64 / MSS as f64;
    assert!((window - 750.0).abs() < 0.01, "{window}");
    assert_eq!(script.control.ssthresh_bytes, script.control.cwnd_bytes);
    let reduced = script.control.cwnd_bytes;
    // 49 ms later a mark reduces nothing; a mark 1 ms after that does.
    acknowledge(&mut script, Segment { wait: Duration::from_millis(49), is_marked: true, ..SEGMENT });
    assert_eq!(script.control.cwnd_bytes, reduced);
    acknowledge(&mut script, Segment { wait: Duration::from_millis(1), is_marked: true, ..SEGMENT });
    assert!(script.control.cwnd_bytes < reduced * 4 / 5);
}

#[test]
fn the_window_grows_by_unmarked_bytes_also_after_a_reduction() {
    let mut script = avoiding(100);
    acknowledge(&mut script, Segment { is_marked: true, ..SEGMENT });
    assert_eq!(script.control.cwnd_bytes, 50 * MSS);
    // Draft section 2.4.3: 40 of 50 segments are unmarked, so the window grows by 40/50 segments (a little less, because the
    // window grows on the way), in the round trip of the reduction.
    for segment in 0..50 {
        acknowledge(&mut script, Segment { is_marked: segment % 5 == 0, ..SEGMENT });
    }
    let growth = (script.control.cwnd_bytes - 50 * MSS) as f64 / MSS as f64;
    assert!((0.78..0.8).contains(&growth), "{growth}");
}

#[test]
fn below_25_ms_and_after_500_rounds_the_window_grows_by_the_squared_ratio() {
    let short = Duration::from_millis(5);
    let mut script = avoiding(100);
    let round_trip = |script: &mut Script, is_marked: bool| {
        script.control.cwnd_bytes = 100 * MSS;
        for segment in 0..100 {
            acknowledge(
                script,
                Segment {
                    wait: if segment == 0 { short } else { Duration::ZERO },
                    rtt: short,
                    is_marked,
                    ends_round: segment == 99,
                },
            );
        }
        script.control.cwnd_bytes as f64 / MSS as f64 - 100.0
    };
    // Before the transition: one segment per round trip (a little less, because the window grows on the way).
    let growth = round_trip(&mut script, false);
    assert!((0.99..1.0).contains(&growth), "{growth}");
    for _ in 1..500 {
        round_trip(&mut script, false);
    }
    assert_eq!(script.value("rounds"), 500.0);
    // M is 25 / 5: 1 / M^2 is 0.04.
    let growth = round_trip(&mut script, false);
    assert!((growth - 0.04).abs() < 0.001, "{growth}");
    // A period of 25 ms has one reduction and one update of alpha, in five rounds. The first update contains rounds without a
    // mark, so alpha falls below 1 and then changes with each update.
    let (mut reductions, mut updates, mut alpha) = (0, 0, script.value("alpha"));
    for _ in 0..50 {
        reductions += u32::from(round_trip(&mut script, true) < -1.0);
        updates += u32::from(script.value("alpha") != alpha);
        alpha = script.value("alpha");
    }
    assert_eq!((reductions, updates), (10, 10));
}

#[test]
fn a_loss_halves_the_window_and_marks_in_the_recovery_do_not_reduce_it() {
    // Draft section 2.4.1.
    let mut script = avoiding(100);
    for _ in 0..100 {
        round(&mut script, 1);
    }
    script.control.cwnd_bytes = 100 * MSS;
    script.enter_recovery(100 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 50 * MSS);
    script.control.cwnd_bytes = 50 * MSS;
    let mut ack = full_window_ack(script.now, MSS, LONG, 50 * MSS);
    (ack.ce_packets, ack.ce_bytes, ack.in_recovery) = (1, MSS, true);
    script.controller.on_ack(&mut script.control, &ack);
    assert_eq!(script.control.cwnd_bytes, 50 * MSS);
    script.leave_recovery(true);
    assert_eq!(script.control.cwnd_bytes, 100 * MSS, "the loss was spurious");
    script.time_out();
    assert_eq!(script.control.ssthresh_bytes, 50 * MSS);
}

#[test]
fn without_counts_of_marks_prague_is_reno() {
    // RFC 9331 section 4.2: the transport sends ECT(0) and passes marks as congestion.
    let mut script = avoiding(100);
    script.control.codepoint = EcnCodepoint::Ect0;
    acknowledge(&mut script, Segment { is_marked: true, ..SEGMENT });
    assert!(script.control.cwnd_bytes >= 100 * MSS);
    script.control.cwnd_bytes = 100 * MSS;
    let congestion =
        CongestionEvent { now: script.now, in_flight_bytes: 100 * MSS, lost_bytes: 0, ecn: true, persistent: false };
    script.controller.on_congestion(&mut script.control, &congestion);
    assert_eq!(script.control.cwnd_bytes, 50 * MSS);
}

#[test]
fn the_pacing_rate_is_the_window_per_round_trip_and_bursts_last_a_quarter_of_a_millisecond() {
    let mut script = avoiding(100);
    acknowledge(&mut script, SEGMENT);
    // 100 x 1448 bytes (and the growth of 14 bytes) in 50 ms: 23.17 Mbit/s, of which 0.25 ms are 724 bytes, below a segment.
    assert_eq!(script.control.pacing_bps, (100 * MSS + 14) * 8 * 20);
    assert_eq!(script.control.send_quantum_bytes, MSS);
    script.control.cwnd_bytes = 1_000 * MSS;
    script.control.ssthresh_bytes = u64::MAX;
    acknowledge(&mut script, SEGMENT);
    // Slow start: twice 1001 segments in 50 ms; 10 of them in 0.25 ms.
    assert_eq!(script.control.pacing_bps, 2 * 1_001 * MSS * 8 * 20);
    assert_eq!(script.control.send_quantum_bytes, 1_001 * MSS / 100);
}

#[test]
fn only_a_pause_of_a_second_restarts_with_the_initial_window() {
    let mut script = avoiding(100);
    acknowledge(&mut script, SEGMENT);
    let window = script.control.cwnd_bytes;
    script.now += Duration::from_millis(999);
    script.controller.on_idle_restart(&mut script.control, script.now);
    assert_eq!(script.control.cwnd_bytes, window);
    script.now += Duration::from_millis(1);
    script.controller.on_idle_restart(&mut script.control, script.now);
    assert_eq!(script.control.cwnd_bytes, 10 * MSS);
}

/// The mean window in segments over the second half of `rounds` round trips in which a share `p` of packets is marked, evenly
/// spaced or at random.
fn mean_window(p: f64, rtt: Duration, rounds: u32, is_random: bool) -> f64 {
    let mut script = avoiding(20);
    let mut random = RandomStream::new(1, "path", "marks");
    let (mut credit, mut sum, mut count) = (0.0, 0.0, 0u32);
    for number in 0..rounds {
        let window = (script.control.cwnd_bytes / MSS).max(1);
        for segment in 0..window {
            credit += p;
            let is_marked = if is_random { random.bernoulli(p) } else { credit >= 1.0 };
            credit -= f64::from(u8::from(is_marked));
            let wait = Duration::from_nanos(rtt.as_nanos() / window);
            acknowledge(&mut script, Segment { wait, rtt, is_marked, ends_round: segment + 1 == window });
            if number >= rounds / 2 {
                sum += script.control.cwnd_bytes as f64 / MSS as f64;
                count += 1;
            }
        }
    }
    sum / f64::from(count)
}

#[test]
fn the_window_is_two_unmarked_packets_per_mark() {
    // In steady state a round trip adds 1 - p segments and a reduction removes p/2 of the window: 2 (1 - p) / p. Marks with even
    // spacing, two per round trip, make the interval T between reductions 1 / sqrt(1 - p) round trips: T p W = 2 and
    // W = 2 T (1 - p) / p give T^2 (1 - p) = 1. The window is then 2 sqrt(1 - p) / p, at most 5.4 % more at p = 0.1. The
    // tolerance of a tenth includes this and the sawtooth.
    for p in [0.02, 0.05, 0.1] {
        let expected = 2.0 * (1.0 - p) / p;
        let window = mean_window(p, LONG, 2_000, false);
        assert!((window / expected - 1.0).abs() < 0.1, "{p}: {window} and {expected}");
    }
}

#[test]
fn the_rate_below_25_ms_does_not_depend_on_the_round_trip_time() {
    // With random marks, a reduction waits for a round trip (of 25 ms) and then for the next mark, 1/p packets later on average:
    // T = 1 + 1 / (p W). With p W = 2 T (1 - p), T is (1 + sqrt(1 + 2 / (1 - p))) / 2 = 1.3714 at p = 0.02, and W is 134.4
    // segments in 25 ms, 5.376 in 1 ms.
    let rates =
        [25, 12, 5].map(|rtt| mean_window(0.02, Duration::from_millis(rtt), 100_000 / rtt as u32, true) / rtt as f64);
    for rate in rates {
        assert!((rate / 5.376 - 1.0).abs() < 0.1, "{rates:?}");
    }
}

/// A flow that detects classic marking. All round-trip times are `mean` plus or minus `deviation`, in microseconds; the smallest
/// is 10 ms.
fn detecting(enabled: bool, mean: u64, deviation: u64, updates: u32) -> Script {
    let options = ControlOptions { classic_ecn_fallback: enabled, ..ControlOptions::default() };
    let mut script = avoiding(20);
    script.controller = create("prague", &options).expect("the name is in the catalogue");
    set_codepoint(&mut script.control, &*script.controller);
    let alternate = |script: &mut Script, segment: Segment, number: u32| {
        let rtt = if number.is_multiple_of(2) { mean + deviation } else { mean - deviation };
        acknowledge(script, Segment { rtt: Duration::from_micros(rtt), ..segment });
        script.control.cwnd_bytes = 20 * MSS;
    };
    // The gain of the deviation is 1 / (4 x 20^1.5) = 1/358.
    for number in 0..4_000 {
        alternate(&mut script, SEGMENT, number);
    }
    // One mark permits updates; alpha then falls to almost nothing.
    alternate(&mut script, Segment { is_marked: true, ..SEGMENT }, 0);
    for number in 0..updates {
        alternate(&mut script, Segment { wait: LONG, ends_round: true, ..SEGMENT }, number);
    }
    script
}

#[test]
fn a_deep_and_variable_queue_is_detected_as_classic() {
    // Mean 25 ms, deviation 1 ms: lg(1 / 0.75) / 2 + lg(15 / 2) / 2 = 0.2075 + 1.4534 = 1.661 per update.
    for (updates, score) in [(1, 1.661), (4, 6.644), (20, 17.0)] {
        let script = detecting(true, 25_000, 1_000, updates);
        assert!((script.value("classic_score") - score).abs() < 0.02, "{}", script.value("classic_score"));
    }
    // alpha is below 1 x (15/16)^100 = 0.0016, but a reduction is by 5/16.
    let mut script = detecting(true, 25_000, 1_000, 100);
    assert!(script.value("alpha") < 0.0016);
    acknowledge(&mut script, Segment { wait: LONG, is_marked: true, ..SEGMENT });
    assert_eq!(script.control.cwnd_bytes, 20 * MSS * 11 / 16);
    // Without the option the reduction is that of alpha.
    let mut script = detecting(false, 25_000, 1_000, 100);
    assert_eq!(script.value("classic_score"), 0.0);
    acknowledge(&mut script, Segment { wait: LONG, is_marked: true, ..SEGMENT });
    assert!(script.control.cwnd_bytes > 20 * MSS * 99 / 100);
}

#[test]
fn a_shallow_queue_is_not_detected_as_classic() {
    // Deviation 0.1 ms and depth 0.5 ms: lg(0.1 / 0.75) / 2 is negative, and the depth has no part.
    assert_eq!(detecting(true, 10_500, 100, 100).value("classic_score"), 0.0);
    // After a classic queue, the score falls again by 1.4534 per update from 17: below 8 after seven.
    let mut script = detecting(true, 25_000, 1_000, 20);
    for number in 0..20_000u32 {
        let rtt = Duration::from_micros(if number % 2 == 0 { 10_600 } else { 10_400 });
        acknowledge(&mut script, Segment { rtt, ..SEGMENT });
        script.control.cwnd_bytes = 20 * MSS;
    }
    assert_eq!(script.value("classic_score"), 17.0);
    for number in 0..7 {
        let rtt = Duration::from_micros(if number % 2 == 0 { 10_600 } else { 10_400 });
        acknowledge(&mut script, Segment { wait: LONG, rtt, ends_round: true, ..SEGMENT });
    }
    assert!((script.value("classic_score") - (17.0 - 7.0 * 1.4534)).abs() < 0.1, "{}", script.value("classic_score"));
}

#[test]
fn a_timeout_restores_slow_start() {
    let mut script = avoiding(40);
    let timeout = Timeout { now: script.now, in_flight_bytes: 40 * MSS, repeated: false };
    script.controller.on_timeout(&mut script.control, &timeout);
    assert_eq!(script.control.ssthresh_bytes, 20 * MSS);
    script.control.cwnd_bytes = MSS;
    acknowledge(&mut script, SEGMENT);
    assert_eq!(script.control.cwnd_bytes, 2 * MSS);
}
