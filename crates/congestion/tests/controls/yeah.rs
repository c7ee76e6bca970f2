//! YeAH: modes, decongestion and reductions by hand, then the closed loop.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::law::Governed;
use fullpipe_congestion::yeah::Yeah;
use fullpipe_units::{Duration, Instant};

/// Acknowledgements of nothing, for rounds that change the window by their end only.
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
fn fast_it_is_scalable_and_slow_reno() {
    // 100 acknowledgements of a segment: 0.01 each, or 1/w: w^2 = 160 000 + 200.
    for (microseconds, expected) in [(112_500, 401.0), (112_600, 160_200_f64.sqrt())] {
        let mut script = Script::avoiding("yeah", 400);
        round(&mut script, microseconds);
        for _ in 0..100 {
            script.ack(Step { wait: Duration::ZERO, new_round: false, ..STEP });
        }
        assert!((window(&script) - expected).abs() < 0.01, "{microseconds}: {}", window(&script));
    }
    // A round without delay makes it fast again.
    let mut script = Script::avoiding("yeah", 400);
    round(&mut script, 112_600);
    assert_eq!(script.value("slow_rounds"), 1.0);
    round(&mut script, 100_000);
    assert_eq!(script.value("slow_rounds"), 0.0);
}

#[test]
fn more_than_eighty_are_taken_out_of_the_queue() {
    // Q = 1000 (rtt - 100) / rtt: 1000 * 8/108 = 74.07; 82.57 of 109 ms, which leaves 917.43.
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 108_000);
    assert_eq!((script.window(), script.value("slow_rounds")), (1_000, 0.0));
    assert!((segments(&script, "queued_bytes") - 74.07).abs() < 0.01);
    round(&mut script, 109_000);
    assert!((window(&script) - 917.43).abs() < 0.01, "{}", window(&script));
    assert_eq!(script.control.ssthresh_bytes, script.control.cwnd_bytes);
    // Reno is counted from half of that, one more per slow round.
    assert!((segments(&script, "reno_bytes") - 458.71).abs() < 0.01);
    round(&mut script, 115_000);
    assert!((segments(&script, "reno_bytes") - 459.71).abs() < 0.01);
    assert_eq!(script.value("slow_rounds"), 2.0);
    // 917.43 * 15/115 = 119.66 more.
    assert!((window(&script) - 797.76).abs() < 0.01, "{}", window(&script));
}

#[test]
fn decongestion_takes_half_at_most_and_leaves_renos_window() {
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (500.0, 250.0));
    script.control.cwnd_bytes = 300 * MSS;
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (250.0, 251.0));
    // Below Reno's window nothing is taken.
    round(&mut script, 300_000);
    assert_eq!((window(&script), segments(&script, "reno_bytes")), (250.0, 252.0));
}

#[test]
fn fifty_one_fast_rounds_forget_renos_window() {
    let mut script = Script::avoiding("yeah", 1_000);
    round(&mut script, 300_000);
    for _ in 0..50 {
        round(&mut script, 100_000);
        assert_eq!(segments(&script, "reno_bytes"), 250.0);
    }
    round(&mut script, 100_000);
    assert_eq!(segments(&script, "reno_bytes"), 0.0);
    // A loss begins the count anew, and halves what is counted.
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
fn a_loss_takes_the_queue_an_eighth_at_least_half_at_most() {
    // 500 segments: an eighth is 62.5; at 118 ms 500 * 18/118 = 76.27 are queued. 140 segments at 300 ms would be 93.3,
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
fn sixteen_slow_rounds_in_a_row_mean_competition() {
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
fn it_does_nothing_while_the_window_is_not_used_or_the_round_says_little() {
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
fn what_a_spurious_loss_and_a_timeout_leave_of_the_counts() {
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
    assert_eq!(script.value("slow_rounds"), 0.0, "the base is forgotten");
}

#[test]
fn without_a_queue_it_follows_scalables_law() {
    // W = 0.08 N, mean N / (100 ln(8/7)) = N / 13.353.
    let mut flow = Flow::new(Governed::<Yeah>::default(), 600, 0.1);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_000, 60, 10);
    assert!((cycles.mean_window / 748.9 - 1.0).abs() < 0.002, "{cycles:?}");
}

#[test]
fn the_queue_stays_near_its_bound() {
    // 100 Mbit/s, 100 ms: 863 segments on the path, 2000 in the queue if they were let in. Fast growth is 1 % per round
    // trip, 9 segments, found out at its end: 80 and two such steps. What is taken is then missing from the queue.
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
    assert_eq!(pipe.bottleneck.drops, drops, "none but of the first slow start");
}
