//! Tests of DCTCP: RFC 8257 with values computed by hand, then the closed loop against Alizadeh et al. 2010 and 2011.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{MSS, full_window_ack, instant};
use fullpipe_congestion::CongestionEvent;
use fullpipe_units::{Duration, Instant};

/// Runs a window of data in which `marked` of ten segments are marked.
fn window(script: &mut Script, marked: u64) {
    for segment in 0..10 {
        let mut ack = full_window_ack(script.now, MSS, crate::script::RTT, 10 * MSS);
        ack.cwnd_limited = false;
        ack.ce_packets = u64::from(segment < marked);
        ack.ce_bytes = ack.ce_packets * MSS;
        ack.round_start = segment == 9;
        script.controller.on_ack(&mut script.control, &ack);
    }
}

fn mark(script: &mut Script) {
    let congestion =
        CongestionEvent { now: script.now, in_flight_bytes: 10 * MSS, lost_bytes: 0, ecn: true, persistent: false };
    script.controller.on_congestion(&mut script.control, &congestion);
}

#[test]
fn alpha_is_a_moving_average_of_the_share_marked() {
    // RFC 8257 section 3.3: alpha = alpha (1 - g) + g M, g = 1/16, from 1.
    let mut script = Script::new("dctcp", 0);
    assert_eq!(script.value("alpha"), 1.0);
    window(&mut script, 0);
    assert_eq!(script.value("alpha"), 0.9375);
    window(&mut script, 10);
    // 0.9375 * 0.9375 + 0.0625.
    assert_eq!(script.value("alpha"), 0.941_406_25);
    window(&mut script, 4);
    // 0.94140625 * 0.9375 + 0.4 / 16 = 0.882568359375 + 0.025.
    assert!((script.value("alpha") - 0.907_568_359_375).abs() < 1e-12);
}

#[test]
fn alpha_converges_geometrically() {
    // With a constant share F: alpha_n = F + (1 - F) (15/16)^n. (15/16)^32 = 0.1267888, (15/16)^64 = 0.0160754.
    for (marked, after_32, after_64) in [(0, 0.126_789, 0.016_075), (5, 0.563_394, 0.508_038), (10, 1.0, 1.0)] {
        let mut script = Script::new("dctcp", 0);
        for n in 1..=64 {
            window(&mut script, marked);
            let expected = if n == 32 { after_32 } else { after_64 };
            assert!(n % 32 != 0 || (script.value("alpha") - expected).abs() < 1e-6, "{}", script.value("alpha"));
        }
    }
}

#[test]
fn a_window_of_alpha_ends_with_its_round() {
    let mut script = Script::new("dctcp", 0);
    let mut ack = full_window_ack(script.now, 30 * MSS, crate::script::RTT, 10 * MSS);
    ack.ce_bytes = 6 * MSS;
    script.controller.on_ack(&mut script.control, &ack);
    assert_eq!(script.value("alpha"), 1.0, "not yet");
    ack.acked_bytes = 10 * MSS;
    ack.ce_bytes = 2 * MSS;
    ack.round_start = true;
    script.controller.on_ack(&mut script.control, &ack);
    // 8 of 40: 0.9375 + 0.2/16.
    assert_eq!(script.value("alpha"), 0.95);
}

#[test]
fn a_mark_reduces_the_window_by_half_of_alpha() {
    // cwnd (1 - alpha/2): by half at alpha 1, by a quarter at 0.5.
    let mut script = Script::new("dctcp", 0);
    script.control.cwnd_bytes = 1_000 * MSS;
    mark(&mut script);
    assert_eq!(script.control.cwnd_bytes, 500 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 500 * MSS);
    for _ in 0..200 {
        window(&mut script, 5);
    }
    script.control.cwnd_bytes = 1_000 * MSS;
    mark(&mut script);
    // alpha = 0.5 + 0.5 (15/16)^200 = 0.5000012.
    let window = script.control.cwnd_bytes as f64 / MSS as f64;
    assert!((window - 750.0).abs() < 0.01, "{window}");
    assert_eq!(script.control.ssthresh_bytes, script.control.cwnd_bytes);
}

#[test]
fn growth_and_the_reaction_to_a_loss_are_those_of_reno() {
    let mut script = Script::new("dctcp", 0);
    for _ in 0..100 {
        window(&mut script, 0);
    }
    assert!(script.value("alpha") < 0.01);
    script.control.cwnd_bytes = 100 * MSS;
    script.enter_recovery(100 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 50 * MSS);
    script.control.cwnd_bytes = 50 * MSS;
    script.leave_recovery(false);
    for _ in 0..50 {
        script.ack(Step { wait: Duration::ZERO, ..STEP });
    }
    assert_eq!(script.control.cwnd_bytes, 51 * MSS);
    script.time_out();
    // Half of 51 segments, in whole segments.
    assert_eq!(script.control.ssthresh_bytes, 25 * MSS);
}

#[test]
fn a_reduction_for_a_mark_is_not_undone() {
    let mut script = Script::new("dctcp", 0);
    script.control.cwnd_bytes = 100 * MSS;
    script.enter_recovery(100 * MSS);
    mark(&mut script);
    let window = script.control.cwnd_bytes;
    script.leave_recovery(true);
    assert_eq!(script.control.cwnd_bytes, window);
}

/// Solves alpha^2 (1 - alpha/4) = (2 W + 1) / (W + 1)^2 (Alizadeh, Javanmard, Prabhakar, SIGMETRICS 2011, equation 6;
/// SIGCOMM 2010, section 3.3) by bisection.
fn alpha_of(window: f64) -> f64 {
    let share = (2.0 * window + 1.0) / ((window + 1.0) * (window + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha: f64 = (low + high) / 2.0;
        if alpha * alpha * (1.0 - alpha / 4.0) < share { low = alpha } else { high = alpha }
    }
    low
}

#[test]
fn the_sawtooth_over_a_step_marker_matches_the_published_model() {
    // SIGCOMM 2010, section 3.3, one flow: the window grows to W* + 1 = C RTT + K + 1 and falls by the factor (1 - alpha/2). The
    // queue thus oscillates by D = (W* + 1) alpha/2, about sqrt(2 (C RTT + K))/2, and reaches K + 1; a period takes D round
    // trips. K must be above C RTT / 7, or the queue runs empty (equation 13). g must be below 1.386 / sqrt(2 (C RTT + K))
    // (equation 15), or alpha decays within a period: 1/16 is below that up to W* = 245, and far enough below at 107. Queue and
    // window change by whole segments and rounds are whole: each of the three is within one.
    for (milliseconds, threshold) in [(3, 10), (5, 20), (10, 20)] {
        let mut pipe = Pipe::new(100_000_000, 10_000_000, 1);
        pipe.bottleneck.mark_above_bytes = threshold * MSS;
        pipe.add("dctcp", Duration::from_millis(milliseconds), Instant::ZERO, 1);
        pipe.run(10.0);
        let bdp = pipe.bdp_bytes(0) / MSS as f64;
        let most = bdp + threshold as f64;
        let (mut lowest, mut highest) = (f64::INFINITY, 0.0_f64);
        let (mut alphas, mut count, mut reductions, mut last) = (0.0, 0.0, 0.0, 0.0);
        pipe.run_watching(instant(30.0), |now, sender, bottleneck| {
            let queue = bottleneck.queue_bytes(now) as f64 / MSS as f64;
            (lowest, highest) = (lowest.min(queue), highest.max(queue));
            alphas += sender.value("alpha");
            count += 1.0;
            reductions += f64::from(u8::from(sender.window() < last));
            last = sender.window();
        });
        let law = alpha_of(most);
        let swing = (most + 1.0) * law / 2.0;
        // The paper's approximation (equation 8).
        assert!((swing / ((2.0 * most).sqrt() / 2.0) - 1.0).abs() < 0.05, "{swing}");
        let alpha = alphas / count;
        assert!((alpha / law - 1.0).abs() < 0.1, "alpha {alpha}, law {law}");
        assert!((highest - lowest - swing).abs() < 1.0, "{lowest} to {highest}, law {swing}");
        assert!((highest - threshold as f64 - 1.0).abs() < 1.0, "{highest}, threshold {threshold}");
        assert!(lowest > 0.0);
        // The round-trip time at the mean of the queue, half an oscillation below its maximum.
        let round_trip_s = pipe.bdp_bytes(0) * 8.0 / 100e6 * (most - swing / 2.0) / bdp;
        let period = 20.0 / reductions / round_trip_s;
        assert!((period - swing).abs() < 1.0, "{period} round trips, law {swing}");
    }
}
