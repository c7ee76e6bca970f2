//! Tests of HighSpeed TCP against the tables of RFC 3649.

use crate::simulator::{Flow, MSS};
use fullpipe_congestion::highspeed::HighSpeed;
use fullpipe_congestion::law::LawController;

fn flow(window_segments: u64) -> Flow<LawController<HighSpeed>> {
    let mut flow = Flow::new(LawController::default(), window_segments, 0.1);
    flow.control.ssthresh_bytes = MSS;
    flow
}

#[test]
fn mean_windows_match_the_response_function() {
    // RFC 3649 table 3 (W = 0.12/p^0.835). At 10^-3 the window oscillates around 38 segments, where the law has a corner.
    for (every, window) in [(1_000, 38.0), (10_000, 263.0), (100_000, 1_795.0), (1_000_000, 12_279.0)] {
        let cycles = flow(window as u64).periodic_loss(every, 15, 10);
        let bound = if every == 1_000 { 0.07 } else { 0.01 };
        assert!((cycles.mean_window / window - 1.0).abs() < bound, "1/{every}: {cycles:?}, expected {window}");
    }
}

#[test]
fn growth_without_a_loss_matches_the_table_of_the_rfc() {
    // RFC 3649 table 6: congestion avoidance from one segment in round trip 1.
    let mut flow = flow(1);
    for (round_trip, window) in
        [(100, 131.0), (200, 475.0), (300, 1_131.0), (500, 3_601.0), (1_000, 17_409.0), (2_000, 72_754.0)]
    {
        flow.run_until(0.1 * (f64::from(round_trip) - 1.0));
        assert!((flow.window() / window - 1.0).abs() < 0.01, "{} after {round_trip}, expected {window}", flow.window());
    }
}

#[test]
fn windows_up_to_38_segments_grow_as_in_reno() {
    // 20 + 21 + ... + 37 = 513 acknowledgements of a segment each; with increments of 1/w: w^2 = 400 + 2 * 513.
    let mut flow = flow(20);
    for _ in 0..513 {
        flow.ack(1);
    }
    assert!((flow.window() - 1_426_f64.sqrt()).abs() < 0.02, "{}", flow.window());
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, flow.control.ssthresh_bytes);
    assert!((flow.window() - 1_426_f64.sqrt() / 2.0).abs() < 0.02);
}

#[test]
fn a_loss_reduces_the_window_by_the_share_of_the_table_and_a_timeout_by_half() {
    // b(1058) = 0.5 - 0.4 ln(1058/38) / ln(83000/38) = 0.5 - 0.4 * 3.32657 / 7.68897 = 0.32694.
    let mut flow = flow(1_058);
    flow.lose();
    assert!((flow.window() - 1_058.0 * 0.67306).abs() < 0.02, "{}", flow.window());
    flow.control.cwnd_bytes = 1_058 * MSS;
    flow.time_out(false);
    assert_eq!(flow.control.ssthresh_bytes, 529 * MSS);
}
