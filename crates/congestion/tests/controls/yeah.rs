//! Tests of YeAH: modes, decongestion and reductions with values computed by hand, then the closed loop.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::law::LawController;
use fullpipe_congestion::yeah::Yeah;
use fullpipe_units::{Duration, Instant};

/// Acknowledges zero bytes, for rounds that change the window only at their end.
fn round(script: &mut Script, microseconds: u64) {
    for last in [false, false, true] {
        let rtt = Duration::from_micros(microseconds);
        script.ack(Step { wait: Duration::ZERO, acked: 0, rtt, new_round: last, ..STEP });
    }
}

fn segments(script: &Script, name: &str) -> f64 {
    script.value(name) / MSS as f64
}

fn window(script: &Script) -> f64 {
    script.control.cwnd_bytes as f64 / MSS as f64
}

#[test]
fn growth_is_that_of_scalable_in_fast_mode_and_of_reno_in_slow_mode() {
    // 100 acknowledgements of a segment: 0.01 each, or 1/w: w^2 = 160 000 + 200.
    for (microseconds, expected) in [(112_500, 401.0), (112_600, 160_200_f64.sqrt())] {
        let mut script = Script::avoiding("yeah", 400);
        round(&mut script, microseconds);
        for _ in 0..100 {
            script.ack(Step { wait: Duration::ZERO, new_round: false, ..STEP });
        }
        assert!((window(&script) - expected).abs() < 0.01, "{microseconds}: {}", window(&script));
    }
    // A round without delay selects fast mode again.
    let mut script = Script::avoiding("yeah", 400);
    round(&mut script, 112_600);
    assert_eq!(script.value("slow_rounds"), 1.0);
    round(&mut script, 100_000);
    assert_eq!(script.value("slow_rounds"), 0.0);
}

#[test]
fn more_than_80_queued_segments_reduce_the_window_by_the_queue() {
    // Q = 1000 (rtt - 100) / rtt: 1000 * 8/108 = 74.07 at 108 ms; 82.57 at 109 ms, which leaves 917.43.
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 108_000);
    assert_eq!((script.window(), script.value("slow_rounds")), (1_000, 0.0));
    assert!((segments(&script, "queued_bytes") - 74.07).abs() < 0.01);
    round(&mut script, 109_000);
    assert!((window(&script) - 917.43).abs() < 0.01, "{}", window(&script));
    assert_eq!(script.control.ssthresh_bytes, script.control.cwnd_bytes);
    // The estimate of Reno's window begins at half of that, and grows by one per slow round.
    assert!((segments(&script, "reno_bytes") - 458.71).abs() < 0.01);
    round(&mut script, 115_000);
    assert!((segments(&script, "reno_bytes") - 459.71).abs() < 0.01);
    assert_eq!(script.value("slow_rounds"), 2.0);
    // The next reduction is 917.43 * 15/115 = 119.66.
    assert!((window(&script) - 797.76).abs() < 0.01, "{}", window(&script));
}

#[test]
fn decongestion_reduces_the_window_by_at_most_half_and_not_below_renos() {
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (500.0, 250.0));
    script.control.cwnd_bytes = 300 * MSS;
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (250.0, 251.0));
    // Below Reno's window there is no reduction.
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (250.0, 252.0));
}

#[test]
fn fifty_one_fast_rounds_reset_the_estimate_of_renos_window() {
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 300_000);
    for _ in 0..50 {
        round(&mut script, 100_000);
        assert_eq!(segments(&script, "reno_bytes"), 250.0);
    }
    round(&mut script, 100_000);
    assert_eq!(segments(&script, "reno_bytes"), 0.0);
    // A loss restarts the count, and halves the estimate.
    round(&mut script, 300_000);
    let reno = segments(&script, "reno_bytes");
    for _ in 0..50 {
        round(&mut script, 100_000);
    }
    script.enter_recovery(250 * MSS);
    script.leave_recovery(false);
    round(&mut script, 100_000);
    assert_eq!(segments(&script, "reno_bytes"), reno / 2.0);
}

#[test]
fn a_loss_reduces_the_window_by_the_queue_within_an_eighth_and_half() {
    // 500 segments: an eighth is 62.5; at 118 ms 500 * 18/118 = 76.27 are queued. For 140 segments at 300 ms it would be 93.3,
    // more than half.
    for (window, microseconds, left) in [(500, 100_000, 437.5), (500, 118_000, 423.73), (120, 300_000, 60.0)] {
        let mut script = Script::avoiding("yeah", window);
        round(&mut script, microseconds);
        assert_eq!(script.window(), window, "less than 80 are queued");
        script.enter_recovery(window * MSS);
        let threshold = script.control.ssthresh_bytes as f64 / MSS as f64;
        assert!((threshold - left).abs() < 0.01, "{window} {microseconds}: {threshold}");
    }
}

#[test]
fn sixteen_successive_slow_rounds_indicate_competition() {
    for (rounds, left) in [(15, 423.73), (16, 250.0)] {
        let mut script = Script::avoiding("yeah", 500);
        for _ in 0..rounds {
            round(&mut script, 118_000);
        }
        script.enter_recovery(500 * MSS);
        let threshold = script.control.ssthresh_bytes as f64 / MSS as f64;
        assert!((threshold - left).abs() < 0.01, "{rounds}: {threshold}");
    }
}

#[test]
fn the_window_does_not_change_if_unused_or_after_a_round_with_few_samples() {
    let mut script = Script::avoiding("yeah", 1_000);
    for last in [false, false, true] {
        let rtt = Duration::from_millis(300);
        script.ack(Step { wait: Duration::ZERO, acked: 0, rtt, new_round: last, cwnd_limited: false, ..STEP });
    }
    for last in [false, true] {
        let rtt = Duration::from_millis(300);
        script.ack(Step { wait: Duration::ZERO, acked: 0, rtt, new_round: last, ..STEP });
    }
    assert_eq!((script.window(), script.value("slow_rounds")), (1_000, 0.0));
}

#[test]
fn a_spurious_loss_restores_the_counts_and_a_timeout_resets_them() {
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 300_000);
    script.enter_recovery(500 * MSS);
    assert_eq!(segments(&script, "reno_bytes"), 125.0);
    script.control.cwnd_bytes = script.control.ssthresh_bytes;
    script.leave_recovery(true);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (500.0, 250.0));
    script.time_out();
    assert_eq!((script.value("slow_rounds"), script.value("reno_bytes")), (0.0, 0.0));
    round(&mut script, 300_000);
    script.controller.on_idle_restart(&mut script.control, script.now);
    assert_eq!(
        (script.value("slow_rounds"), script.value("reno_bytes"), script.value("queued_bytes")),
        (0.0, 0.0, 0.0)
    );
    round(&mut script, 300_000);
    assert_eq!(script.value("slow_rounds"), 0.0, "the base is reset");
}

#[test]
fn mean_windows_without_a_queue_match_the_law_of_scalable() {
    // W = 0.08 N, mean N / (100 ln(8/7)) = N / 13.353.
    let mut flow = Flow::new(LawController::<Yeah>::default(), 600, 0.1);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_000, 60, 10);
    assert!((cycles.mean_window / 748.9 - 1.0).abs() < 0.002, "{cycles:?}");
}

#[test]
fn the_queue_stays_near_its_bound() {
    // 100 Mbit/s, 100 ms: 863 segments on the path, and the queue could hold 2000. Fast growth is 1 % per round trip, 9 segments,
    // and is detected at the end of the round: 80 and two such steps. The reduction then drains the queue below that.
    let mut pipe = Pipe::new(100_000_000, 2_000 * MSS, 1);
    pipe.add("yeah", Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(20.0);
    let (mut most, drops) = (0, pipe.bottleneck.drops);
    pipe.run_watching(crate::simulator::instant(80.0), |now, _, bottleneck| {
        most = most.max(bottleneck.queue_bytes(now))
    });
    assert!((75 * MSS..105 * MSS).contains(&most), "{}", most / MSS);
    let goodput = pipe.goodputs_bps(100.0)[0];
    assert!(goodput > 99.0e6, "{goodput}");
    assert_eq!(pipe.bottleneck.drops, drops, "packets may be dropped only in the first slow start");
}
