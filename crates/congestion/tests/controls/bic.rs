//! Tests of BIC: the search with values computed by hand, and the response function of its paper.

use crate::simulator::{Flow, MSS};
use fullpipe_congestion::Controller;
use fullpipe_congestion::bic::Bic;
use fullpipe_congestion::law::LawController;

fn flow(window_segments: u64) -> Flow<LawController<Bic>> {
    let mut flow = Flow::new(LawController::default(), window_segments, 0.1);
    flow.control.ssthresh_bytes = MSS;
    flow
}

fn max_segments(flow: &Flow<LawController<Bic>>) -> f64 {
    flow.value("max_bytes") / MSS as f64
}

#[test]
fn the_window_after_a_loss_follows_the_binary_search() {
    // A loss at 1200 leaves 1050, 150 below the maximum. Steps are 32 while half the distance is more than that, until 54 remain;
    // then 27, 13.5, ... After twelve such steps 27/2^11 = 0.0132 remain, and less than 0.01 after one step of 0.01: the maximum
    // is reached. The steps beyond it are 1, 2, 4, 8, 16, 32, 32.
    let mut flow = flow(1_200);
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, 1_050 * MSS);
    for (round_trips, window, step) in [
        (1.0, 1_082.0, 32.0),
        (3.0, 1_146.0, 27.0),
        (4.0, 1_173.0, 13.5),
        (5.0, 1_186.5, 6.75),
        (6.0, 1_193.25, 3.38),
        (7.0, 1_196.63, 1.69),
        (8.0, 1_198.31, 0.84),
        (12.0, 1_199.89, 0.05),
        (16.0, 1_200.0, 1.0),
        (17.0, 1_201.0, 2.0),
        (18.0, 1_203.0, 4.0),
        (20.0, 1_215.0, 16.0),
        (21.0, 1_231.0, 32.0),
        (22.0, 1_263.0, 32.0),
        (23.0, 1_295.0, 32.0),
    ] {
        flow.run_until(0.1 * round_trips);
        // A step ends at an acknowledgement, up to 1/1050 round trip late, and at a whole byte. The last steps of 38, 19 and 14
        // bytes are thus up to 1/38 + 1/19 + 1/14 = 0.15 round trips early in total.
        let found = flow.window() - window;
        assert!(
            (-0.05 * step - 0.01..0.15 * step + 0.01).contains(&found),
            "{found} from {window} after {round_trips}"
        );
    }
}

#[test]
fn fast_convergence_lowers_the_maximum_after_a_loss_below_it() {
    // A loss at 800 below the maximum of 1000 leaves 700, and the midpoint of both is the new maximum.
    let mut flow = flow(1_000);
    flow.lose();
    assert_eq!(max_segments(&flow), 1_000.0);
    flow.control.cwnd_bytes = 800 * MSS;
    flow.lose();
    assert_eq!((flow.window(), max_segments(&flow)), (700.0, 750.0));
    // At or above the maximum there is no fast convergence.
    flow.control.cwnd_bytes = 750 * MSS;
    flow.lose();
    assert_eq!(max_segments(&flow), 750.0);
}

#[test]
fn windows_below_14_segments_behave_as_in_reno() {
    // A loss reduces windows below 14 segments by half, others by an eighth.
    for (window, left) in [(12, 6.0), (13, 6.5), (14, 12.25), (16, 14.0)] {
        let mut flow = flow(window);
        flow.lose();
        assert_eq!(flow.window(), left, "{window}");
    }
    // From 6, the window grows by a segment per round trip up to 14; then by half of the distance to 100, at most 32.
    let mut flow = flow(100);
    flow.lose();
    (flow.control.cwnd_bytes, flow.control.ssthresh_bytes) = (6 * MSS, MSS);
    flow.run_until(0.7);
    assert!((flow.window() - 13.0).abs() < 0.2, "{}", flow.window());
    flow.run_until(0.9);
    assert!(flow.window() > 25.0, "{}", flow.window());
    // From fourteen on growth is as fast as in slow start, not 1/14 for each acknowledgement.
    flow.control.cwnd_bytes = 14 * MSS;
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, 15 * MSS);
}

#[test]
fn without_a_maximum_the_window_probes_in_doubling_steps() {
    // Slow start ended without a loss: steps of 1, 2, 4 segments.
    let mut flow = flow(1_000);
    flow.run_until(0.3);
    assert!((flow.window() - 1_007.0).abs() < 0.1, "{}", flow.window());
    // A time-out halves the window and discards the maximum.
    flow.lose();
    flow.control.cwnd_bytes = 1_000 * MSS;
    flow.time_out(false);
    assert_eq!((flow.control.ssthresh_bytes, max_segments(&flow)), (500 * MSS, 0.0));
}

#[test]
fn the_search_below_the_maximum_restarts_after_an_idle_period() {
    // The window is far above the maximum of 1000 and grows by 32 segments per round trip. The idle period leaves ten segments,
    // and slow start continues up to 952: 24 of the 48 segments missing.
    let mut flow = flow(1_000);
    flow.lose();
    flow.run_until(4.0);
    assert!(flow.window() > 1_200.0 && flow.value("step_segments") == 32.0);
    let now = flow.now();
    flow.controller.on_idle_restart(&mut flow.control, now);
    (flow.control.cwnd_bytes, flow.control.ssthresh_bytes) = (952 * MSS, MSS);
    flow.ack(1);
    assert_eq!((flow.value("step_segments"), max_segments(&flow)), (24.0, 1_000.0));
    // Above the maximum it grows slowly again.
    while flow.control.cwnd_bytes < 1_000 * MSS {
        flow.ack(1);
    }
    flow.ack(1);
    assert_eq!(flow.value("step_segments"), 1.0);
}

#[test]
fn a_spurious_loss_does_not_end_the_search() {
    let mut flow = flow(1_600);
    flow.lose();
    flow.run_until(0.5);
    let (window, step) = (flow.window(), flow.value("step_segments"));
    flow.congestion();
    assert!(max_segments(&flow) < 1_600.0);
    flow.recovered(true);
    assert_eq!((flow.window(), max_segments(&flow), flow.value("step_segments")), (window, 1_600.0, step));
}

#[test]
fn mean_windows_match_the_response_function_of_the_paper() {
    // With W the window at a loss, W/8 is climbed in N1 = ceil(W/8/32) - 2 steps of 32 and N2 = log2(rest/0.01) + 2
    // others, rest = W/8 - 32 N1. Packets: Y1 = N1 (7/8 W + 16 (N1 - 1)), Y2 = W N2 - 2 rest + 0.01.
    //   W = 1600: N1 = 5,  rest = 40,   N2 = 13.97: Y1 = 7320,    Y2 = 22 267: mean   29 587 / 18.97 = 1560
    //   W = 3200: N1 = 11, rest = 48,   N2 = 14.23: Y1 = 32 560,  Y2 = 45 440: mean   78 000 / 25.23 = 3092
    //   W = 12800: N1 = 48, rest = 64,  N2 = 14.64: Y1 = 573 696, Y2 = 187 300: mean 760 996 / 62.64 = 12 148
    //   W = 160: 20 to climb, less than a step of 32: N1 = 0, N2 = log2(2000) + 2 = 12.97: Y2 = 2035, mean 156.9
    for (every, w, mean) in
        [(2_035, 160, 156.9), (29_587, 1_600, 1_560.0), (78_000, 3_200, 3_092.0), (760_996, 12_800, 12_148.0)]
    {
        let cycles = flow(w).periodic_loss(every, 30, 20);
        assert!((cycles.mean_window / mean - 1.0).abs() < 0.1, "1/{every}: {cycles:?}, expected {mean}");
    }
}
