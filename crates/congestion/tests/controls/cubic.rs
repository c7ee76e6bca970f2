//! Tests of CUBIC against the closed forms and the tables of RFC 9438.

use crate::simulator::{Flow, MSS, full_window_ack, instant};
use fullpipe_congestion::cubic::{Cubic, CubicConfig};
use fullpipe_congestion::{CongestionEvent, Controller, RecoveryExit};
use fullpipe_units::{Duration, Instant};

const ALONE: CubicConfig =
    CubicConfig { fast_convergence: false, reno_friendly: true, early_growth: false, hystart: None, abe: false };

/// A flow just after a loss at this window.
fn after_loss(window_segments: u64, rtt_seconds: f64) -> Flow<Cubic> {
    let mut flow = Flow::new(Cubic::default(), window_segments, rtt_seconds);
    flow.control.ssthresh_bytes = MSS;
    flow.lose();
    flow
}

#[test]
fn the_window_follows_the_curve_after_a_loss() {
    // Loss at 1000 segments: 700 left, K = cbrt(1000 * 0.3 / 0.4) = cbrt(750) = 9.0856 s.
    // W(t) = 0.4 (t - 9.0856)^3 + 1000:
    //   t = 2:      0.4 * (-7.0856)^3  = -142.30    ->  857.70
    //   t = 4.5428: 0.4 * (-4.5428)^3  =  -37.50    ->  962.50
    //   t = 9.0856:                        0        -> 1000.00
    //   t = 12:     0.4 * 2.9144^3     =    9.90    -> 1009.90
    //   t = 16:     0.4 * 6.9144^3     =  132.23    -> 1132.23
    // Reno's window would be 700 + 0.53 per round trip, 780 after 16 s, and is always smaller.
    // The target is one round trip ahead, but the window takes one round trip to reach it. The difference is of second order in
    // the round trip, W'' * RTT^2 = 2.4 * 9 * 0.01 = 0.2 segments.
    let mut flow = after_loss(1_000, 0.1);
    assert_eq!(flow.control.cwnd_bytes, 700 * MSS);
    for (seconds, window) in [(2.0, 857.70), (4.5428, 962.50), (9.0856, 1_000.0), (12.0, 1_009.90), (16.0, 1_132.23)] {
        flow.run_until(seconds);
        assert!((flow.window() - window).abs() < 0.4, "{} at {seconds} s, expected {window}", flow.window());
    }
    assert!((flow.value("k_s") - 9.0856).abs() < 1e-4);
}

#[test]
fn delayed_acknowledgements_do_not_change_the_curve() {
    let mut flow = after_loss(1_000, 0.1);
    flow.ack_every = 2;
    while flow.now_seconds < 4.5428 {
        flow.ack(2);
    }
    assert!((flow.window() - 962.50).abs() < 0.4, "{}", flow.window());
}

#[test]
fn the_mean_window_at_the_fixed_point_matches_the_response_function() {
    // RFC 9438 equation 6 and its appendix: with one of 1/p segments lost the time between losses is
    // K = (4 * 0.3 / (0.4 * 3.7) * RTT / p)^(1/4), W_max = C K^3 / 0.3, mean window RTT / (p K):
    //   RTT 0.1 s, p = 1e-4: K = (810.81)^(1/4)  = 5.3362 s, W_max = 202.6, mean  187.4
    //              p = 1e-5: K = (8108.1)^(1/4)  = 9.4892 s, W_max = 1139.3, mean 1053.8
    //              p = 1e-6: K = (81081)^(1/4)   = 16.874 s, W_max = 6406.5, mean 5926.2
    // (the RFC's table 1: 187, 1054, 5926). The appendix sums over round trips. The discretization error is half a round trip in
    // 2 K, below 1 %.
    for (every, w_max, mean) in [(10_000, 203, 187.4), (100_000, 1_139, 1_053.8), (1_000_000, 6_407, 5_926.2)] {
        let mut flow = Flow::new(Cubic::new(ALONE), w_max, 0.1);
        flow.control.ssthresh_bytes = MSS;
        flow.lose();
        let cycles = flow.periodic_loss(every, 0, 3);
        assert!((cycles.mean_window / mean - 1.0).abs() < 0.015, "1/{every}: {cycles:?}, expected {mean}");
    }
}

/// RFC 9438, tables 1 and 2: round-trip time, segments per loss, mean window of CUBIC with C = 0.4.
const RESPONSE: [(f64, u64, f64); 9] = [
    (0.1, 100, 12.0),
    (0.1, 1_000, 38.0),
    (0.1, 10_000, 187.0),
    (0.1, 100_000, 1_054.0),
    (0.1, 1_000_000, 5_926.0),
    (0.01, 1_000, 38.0),
    (0.01, 10_000, 120.0),
    (0.01, 100_000, 379.0),
    (0.01, 1_000_000, 1_200.0),
];

#[test]
fn mean_windows_from_any_start_match_the_tables_of_the_rfc() {
    // With fast convergence, as in normal use, and from a start without a w_max.
    for (rtt, every, mean) in RESPONSE {
        let mut flow = Flow::new(Cubic::default(), mean as u64, rtt);
        flow.control.ssthresh_bytes = MSS;
        let cycles = flow.periodic_loss(every, 6, 8);
        assert!((cycles.mean_window / mean - 1.0).abs() < 0.1, "{rtt} s, 1/{every}: {cycles:?}, expected {mean}");
    }
}

#[test]
fn the_mean_window_in_the_reno_friendly_region_is_that_of_reno() {
    // Round-trip time 10 ms, one of 10 000 lost: Reno's mean is sqrt(1.5 * 10 000) = 122.5. Theory for
    // AIMD(alpha, beta): sqrt(alpha (1 + beta) / (2 (1 - beta) p)) with alpha = 9/17, beta = 0.7: the same.
    let mut flow = Flow::new(Cubic::default(), 100, 0.01);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_000, 10, 10);
    assert!((cycles.mean_window / 122.5 - 1.0).abs() < 0.01, "{cycles:?}");
}

#[test]
fn reno_friendly_growth_is_nine_seventeenths_up_to_the_old_window_and_one_above_it() {
    // Loss at 100 segments, round-trip time 10 ms: the window grows from 70 by 3 * 0.3 / 1.7 = 0.5294 per round trip and reaches
    // 100 after 56.67 round trips. The curve is always lower: W(0.567 s) = 100 - 0.4 * (4.217 - 0.567)^3 = 80.5.
    let mut flow = after_loss(100, 0.01);
    flow.run_until(0.1);
    assert!((flow.window() - 75.294).abs() < 0.05, "{}", flow.window());
    flow.run_until(0.5667);
    assert!((flow.window() - 100.0).abs() < 0.1, "{}", flow.window());
    // From there one segment per round trip.
    flow.run_until(0.7667);
    assert!((flow.window() - 120.0).abs() < 0.2, "{}", flow.window());
}

#[test]
fn without_the_reno_friendly_region_the_window_follows_the_curve() {
    // The same loss: W(0.5667 s) = 80.53 instead of 100, and after four seconds 99.996.
    let config = CubicConfig { reno_friendly: false, ..CubicConfig::default() };
    let mut flow = Flow::new(Cubic::new(config), 100, 0.01);
    flow.control.ssthresh_bytes = MSS;
    flow.lose();
    flow.run_until(0.5667);
    assert!((flow.window() - 80.53).abs() < 0.05, "{}", flow.window());
    flow.run_until(4.0);
    assert!((flow.window() - 100.0).abs() < 0.05, "{}", flow.window());
}

#[test]
fn the_curve_applies_as_soon_as_it_exceeds_the_reno_window() {
    // Loss at 200 segments, round-trip time 100 ms: 140 left, K = cbrt(150) = 5.3133. At 3 s the curve is at 200 - 0.4 * 2.3133^3
    // = 195.05 and Reno at 140 + 30 * 0.53 = 155.9.
    let mut flow = after_loss(200, 0.1);
    flow.run_until(3.0);
    assert!((flow.window() - 195.05).abs() < 0.3, "{}", flow.window());
}

#[test]
fn without_a_loss_the_curve_starts_at_the_window_at_the_end_of_slow_start() {
    // Section 4.10: cwnd_prior = w_max = window, K = 0. Round-trip time 100 ms, from 100 segments: Reno's estimate grows
    // by one per round trip at once: 120 after 2 s, the curve 100 + 0.4 * 8 = 103.2. After 10 s: 100 + 400 = 500
    // against 200.
    let mut flow = Flow::new(Cubic::default(), 100, 0.1);
    flow.control.ssthresh_bytes = 100 * MSS;
    flow.run_until(2.0);
    assert!((flow.window() - 120.0).abs() < 0.2, "{}", flow.window());
    flow.run_until(10.0);
    // The curve is steep: W'' RTT^2 = 2.4 * 10 * 0.01 = 0.24; Reno's estimate never catches up.
    assert!((flow.window() - 500.0).abs() < 0.6, "{}", flow.window());
}

#[test]
fn the_window_grows_by_at_most_half_per_round_trip() {
    // Twenty seconds after the start of the stage the curve is far above a window of ten segments.
    let mut flow = after_loss(1_000, 0.1);
    flow.control.cwnd_bytes = 10 * MSS;
    flow.control.ssthresh_bytes = MSS;
    flow.ack(1);
    let before = flow.control.cwnd_bytes;
    flow.now_seconds = 20.0;
    let ack = full_window_ack(flow.now(), before, flow.rtt(), before);
    flow.controller.on_ack(&mut flow.control, &ack);
    let factor = flow.control.cwnd_bytes as f64 / before as f64;
    assert!((factor - 1.5).abs() < 1e-3, "{factor}");
    // An acknowledgement of more than a window does not overshoot the target.
    let before = flow.control.cwnd_bytes;
    let ack = full_window_ack(flow.now(), 100 * before, flow.rtt(), before);
    flow.controller.on_ack(&mut flow.control, &ack);
    let factor = flow.control.cwnd_bytes as f64 / before as f64;
    assert!((factor - 1.5).abs() < 1e-3, "{factor}");
}

#[test]
fn an_acknowledgement_never_shrinks_a_window_above_the_curve() {
    // A window above the curve, from an earlier time, does not change until the curve reaches it.
    let mut flow = after_loss(1_000, 0.1);
    flow.ack(1);
    flow.control.cwnd_bytes = 950 * MSS;
    for _ in 0..500 {
        flow.ack(1);
        assert!(flow.control.cwnd_bytes >= 950 * MSS);
    }
    assert!(flow.window() < 951.0);
}

#[test]
fn fast_convergence_lowers_w_max() {
    // The second loss is at 800 segments, below the first at 1000: w_max = 800 * 1.7 / 2 = 680, otherwise 800. A third loss at
    // 700, above 680, becomes the new w_max unchanged.
    for (fast_convergence, w_max) in [(true, 680.0), (false, 800.0)] {
        let mut flow = Flow::new(Cubic::new(CubicConfig { fast_convergence, ..CubicConfig::default() }), 1_000, 0.1);
        flow.lose();
        flow.control.cwnd_bytes = 800 * MSS;
        flow.lose();
        assert_eq!(flow.value("w_max_bytes"), w_max * MSS as f64);
        assert_eq!(flow.value("cwnd_prior_bytes"), (800 * MSS) as f64);
    }
    let mut flow = Flow::new(Cubic::default(), 1_000, 0.1);
    flow.lose();
    flow.control.cwnd_bytes = 800 * MSS;
    flow.lose();
    flow.control.cwnd_bytes = 700 * MSS;
    flow.lose();
    assert_eq!(flow.value("w_max_bytes"), (700 * MSS) as f64);
}

#[test]
fn losses_marks_and_persistent_congestion_reduce_the_window() {
    let mut flow = Flow::new(Cubic::default(), 100, 0.1);
    // The window counts, not the bytes in flight (less than half of it here).
    let mut congestion = CongestionEvent {
        now: Instant::ZERO,
        in_flight_bytes: 40 * MSS,
        lost_bytes: MSS,
        ecn: false,
        persistent: false,
    };
    flow.controller.on_congestion(&mut flow.control, &congestion);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (100 * MSS, 70 * MSS));
    // A mark reduces the window itself.
    congestion.ecn = true;
    flow.controller.on_congestion(&mut flow.control, &congestion);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (70 * MSS, 70 * MSS));
    // Marks reduce the window down to one segment (threshold two) (section 4.6).
    flow.control.cwnd_bytes = MSS;
    flow.controller.on_congestion(&mut flow.control, &congestion);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (MSS, 2 * MSS));
    // Persistent congestion sets the smallest window, and there is no earlier w_max.
    flow.control.cwnd_bytes = 50 * MSS;
    congestion.ecn = false;
    congestion.persistent = true;
    flow.controller.on_congestion(&mut flow.control, &congestion);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (2 * MSS, 35 * MSS));
    assert_eq!(flow.value("w_max_bytes"), 0.0);
}

#[test]
fn the_curve_after_a_timeout_starts_where_slow_start_ends() {
    // Loss at 1000, time-out at 700: threshold 490, slow start from one segment, then K = 0 and w_max = 490:
    // t seconds later 490 + 0.4 t^3, 890 at 10 s; Reno's estimate is 490 + 0.53 * 100 = 543.
    let mut flow = after_loss(1_000, 0.1);
    flow.time_out(false);
    assert_eq!(flow.control.ssthresh_bytes, 490 * MSS);
    assert_eq!(flow.value("cwnd_prior_bytes"), (700 * MSS) as f64);
    flow.time_out(true);
    assert_eq!(flow.control.ssthresh_bytes, 490 * MSS);
    assert_eq!(flow.value("cwnd_prior_bytes"), (700 * MSS) as f64);
    while flow.control.cwnd_bytes < 490 * MSS {
        flow.ack(1);
    }
    assert_eq!(flow.control.cwnd_bytes, 490 * MSS);
    // The next acknowledgement starts the stage.
    flow.ack(1);
    let start = flow.now_seconds;
    assert_eq!(flow.value("k_s"), 0.0);
    flow.run_until(start + 10.0);
    assert!((flow.window() - 890.0).abs() < 0.6, "{}", flow.window());
}

#[test]
fn slow_start_adds_every_byte_and_passes_the_rest_to_congestion_avoidance() {
    let mut flow = Flow::new(Cubic::default(), 10, 0.1);
    flow.ack(2);
    flow.ack(2);
    assert_eq!(flow.control.cwnd_bytes, 14 * MSS);
    flow.control.ssthresh_bytes = 15 * MSS;
    flow.ack(4);
    // One of the four segments ends slow start; three of fifteen segments are a fifth of Reno's step (alpha is 1 here).
    assert!((flow.window() - 15.2).abs() < 0.001, "{}", flow.window());
}

#[test]
fn time_with_an_unused_window_does_not_count() {
    // Two flows after the same loss; one does not use its window from 2 s to 12 s. Ten seconds later it continues as the other
    // did: 962.5 at 4.5428 + 10 s.
    let mut flow = after_loss(1_000, 0.1);
    flow.run_until(2.0);
    let window = flow.control.cwnd_bytes;
    while flow.now_seconds < 12.0 {
        flow.now_seconds += 0.1;
        let mut ack = full_window_ack(flow.now(), MSS, flow.rtt(), flow.control.cwnd_bytes);
        ack.cwnd_limited = false;
        flow.controller.on_ack(&mut flow.control, &ack);
        assert_eq!(flow.control.cwnd_bytes, window);
    }
    flow.run_until(14.5428);
    assert!((flow.window() - 962.50).abs() < 0.6, "{}", flow.window());
}

#[test]
fn a_restart_after_an_idle_period_begins_a_stage_with_the_same_w_max() {
    let mut flow = after_loss(1_000, 0.1);
    flow.run_until(8.0);
    let window = flow.control.cwnd_bytes;
    let late = instant(100.0);
    flow.controller.on_idle_restart(&mut flow.control, late);
    assert_eq!(flow.control.cwnd_bytes, 14_480);
    assert_eq!(flow.control.ssthresh_bytes, window / 4 * 3);
    assert_eq!(flow.value("cwnd_prior_bytes"), window as f64);
    // The next stage begins at the threshold, with the same w_max.
    flow.now_seconds = 100.0;
    while flow.control.cwnd_bytes < flow.control.ssthresh_bytes {
        flow.ack(1);
    }
    flow.ack(1);
    // W(8) = 1000 - 0.4 * 1.0856^3 = 999.49, three quarters 749.62 (more than the 700 of the loss);
    // K = cbrt((1000 - 749.62) / 0.4) = cbrt(625.96) = 8.5542.
    assert!((flow.value("k_s") - 8.5542).abs() < 0.01);
}

#[test]
fn a_spurious_loss_is_undone_completely() {
    let mut undisturbed = after_loss(1_000, 0.1);
    undisturbed.run_until(3.0);
    let mut flow = after_loss(1_000, 0.1);
    flow.run_until(3.0);
    flow.congestion();
    assert_eq!(flow.control.ssthresh_bytes, flow.control.cwnd_bytes * 7 / 10);
    flow.recovered(true);
    assert_eq!(flow.control.cwnd_bytes, undisturbed.control.cwnd_bytes);
    assert_eq!(flow.control.ssthresh_bytes, undisturbed.control.ssthresh_bytes);
    for _ in 0..20_000 {
        flow.ack(1);
        undisturbed.ack(1);
        // The fraction of a byte is lost.
        assert!(flow.control.cwnd_bytes.abs_diff(undisturbed.control.cwnd_bytes) <= 1);
    }
}

#[test]
fn a_spurious_timeout_restores_the_state_before_the_recovery_that_it_ended() {
    let mut flow = after_loss(1_000, 0.1);
    flow.run_until(3.0);
    let (window, threshold) = (flow.control.cwnd_bytes, flow.control.ssthresh_bytes);
    flow.congestion();
    flow.control.cwnd_bytes = flow.control.ssthresh_bytes;
    flow.time_out(false);
    flow.time_out(true);
    let exit = RecoveryExit { now: flow.now(), in_flight_bytes: MSS, undone: true };
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (window, threshold));
    assert_eq!(flow.value("w_max_bytes"), (1_000 * MSS) as f64);
    // A time-out outside recovery restores the window at the time-out.
    flow.control.cwnd_bytes = 600 * MSS;
    flow.time_out(false);
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!(flow.control.cwnd_bytes, 600 * MSS);
}

#[test]
fn nothing_is_undone_if_the_window_exceeds_the_old_one_or_for_a_mark_or_twice() {
    let mut flow = Flow::new(Cubic::default(), 100, 0.1);
    let exit = RecoveryExit { now: Instant::ZERO, in_flight_bytes: MSS, undone: true };
    flow.congestion();
    flow.control.cwnd_bytes = 100 * MSS;
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!(flow.control.ssthresh_bytes, 70 * MSS);

    flow.congestion();
    let mark =
        CongestionEvent { now: Instant::ZERO, in_flight_bytes: 100 * MSS, lost_bytes: 0, ecn: true, persistent: false };
    flow.controller.on_congestion(&mut flow.control, &mark);
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!(flow.control.cwnd_bytes, 70 * MSS);

    // A loss may prove spurious after the recovery, but only once.
    flow.congestion();
    flow.recovered(false);
    assert_eq!(flow.control.cwnd_bytes, 49 * MSS);
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!(flow.control.cwnd_bytes, 70 * MSS);
    flow.control.cwnd_bytes = 49 * MSS;
    flow.controller.on_recovery_exit(&mut flow.control, &exit);
    assert_eq!(flow.control.cwnd_bytes, 49 * MSS);
}

#[test]
fn the_window_does_not_grow_during_recovery() {
    let mut flow = Flow::new(Cubic::default(), 100, 0.1);
    for threshold in [u64::MAX, MSS] {
        flow.control.ssthresh_bytes = threshold;
        let mut ack = full_window_ack(Instant::ZERO, 50 * MSS, flow.rtt(), flow.control.cwnd_bytes);
        ack.in_recovery = true;
        flow.controller.on_ack(&mut flow.control, &ack);
        assert_eq!(flow.control.cwnd_bytes, 100 * MSS);
    }
}

#[test]
fn a_change_of_the_segment_size_restarts_the_curve() {
    let mut flow = after_loss(1_000, 0.1);
    flow.run_until(2.0);
    flow.control.mss_bytes = 8 * MSS;
    let now = flow.now();
    flow.controller.on_path_change(&mut flow.control, now);
    flow.ack(1);
    // From 857.7 small segments, in large ones: K = cbrt((1000 - 857.7) / 8 / 0.4) = cbrt(44.47) = 3.543.
    assert!((flow.value("k_s") - 3.543).abs() < 0.01);
    flow.control.cwnd_bytes = MSS;
    flow.controller.on_path_change(&mut flow.control, now);
    assert_eq!(flow.control.cwnd_bytes, 8 * MSS);
}

#[test]
fn a_zero_round_trip_time_causes_no_error() {
    let mut flow = after_loss(1_000, 0.1);
    let ack = full_window_ack(Instant::ZERO, MSS, Duration::ZERO, flow.control.cwnd_bytes);
    flow.controller.on_ack(&mut flow.control, &ack);
    assert!(flow.control.cwnd_bytes >= 700 * MSS);
}

#[test]
fn early_growth_is_a_twentieth_per_round_trip_until_a_reduction_sets_w_max() {
    // The hundred acknowledgements of a round trip add five segments, while the curve from the end of slow start is still flat:
    // 0.4 x 0.2^3 segments. After a loss only the curve applies: from 73.5 to 74.8 of 105, K = cbrt(31.5 / 0.4) = 4.29 s, 105 -
    // 0.4 x 4.19^3 = 75.6 a round trip ahead.
    let flow = |early_growth: bool| {
        let mut flow = Flow::new(Cubic::new(CubicConfig { early_growth, reno_friendly: false, ..ALONE }), 100, 0.1);
        flow.control.ssthresh_bytes = MSS;
        flow.round();
        flow
    };
    assert!((flow(false).window() - 100.0).abs() < 0.01);
    let mut early = flow(true);
    assert!((early.window() - 105.0).abs() < 0.01, "{}", early.window());
    early.lose();
    early.round();
    assert!((73.5..75.7).contains(&early.window()), "{}", early.window());
}
