//! Tests of Hybla: the window is rho times that of Reno at any round-trip time.

use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::Controller;
use fullpipe_congestion::hybla::Hybla;
use fullpipe_congestion::law::LawController;
use fullpipe_units::{Duration, Instant};

fn flow(window_segments: u64, rtt_seconds: f64) -> Flow<LawController<Hybla>> {
    let mut flow = Flow::new(LawController::default(), window_segments, rtt_seconds);
    flow.control.ssthresh_bytes = MSS;
    flow
}

#[test]
fn throughput_under_periodic_loss_is_that_of_reno_at_25_ms() {
    // dw/dn = rho^2 / w: from W/2 to W in N acknowledgements, 3/4 W^2 = 2 rho^2 N, mean 3/4 W = rho sqrt(3 N / 2). For N = 10 000
    // that is rho * 122.47, so 122.47 segments per 25 ms at any larger round-trip time.
    for (rtt, rho) in [(0.025, 1.0), (0.05, 2.0), (0.1, 4.0), (0.3, 12.0), (0.6, 24.0)] {
        let cycles = flow(400, rtt).periodic_loss(10_001, 30, 10);
        assert!((cycles.mean_window / (rho * 122.474) - 1.0).abs() < 0.005, "{rtt} s: {cycles:?}");
    }
    // At smaller round-trip times, rho is 1.
    let cycles = flow(400, 0.005).periodic_loss(10_001, 30, 10);
    assert!((cycles.mean_window / 122.474 - 1.0).abs() < 0.005, "{cycles:?}");
}

#[test]
fn slow_start_adds_two_to_the_power_rho_minus_one() {
    for (milliseconds, segments) in [(10, 1.0), (25, 1.0), (50, 3.0), (62, 4.5790), (100, 15.0)] {
        let mut flow = Flow::new(LawController::<Hybla>::default(), 1_000, milliseconds as f64 / 1_000.0);
        flow.ack(1);
        // 2^2.48 - 1 = 4.5790.
        assert!((flow.window() - 1_000.0 - segments).abs() < 0.001, "{milliseconds} ms: {}", flow.window());
    }
    // 2^24 would be too large: the limit is 2^16 - 1.
    let mut flow = Flow::new(LawController::<Hybla>::default(), 1_000, 0.6);
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, (1_000 + 65_535) * MSS);
}

#[test]
fn slow_start_stops_at_the_threshold_and_the_rest_counts_for_avoidance() {
    // rho = 2. There are six segments from 10 to the threshold of 16, for two acknowledged. Eight of sixteen remain, which is
    // half a round trip's growth of rho^2 = 4.
    let mut flow = flow(10, 0.05);
    flow.control.ssthresh_bytes = 16 * MSS;
    flow.ack(10);
    assert!((flow.window() - 18.0).abs() < 0.001, "{}", flow.window());
}

#[test]
fn rho_follows_the_smallest_smoothed_round_trip_time() {
    let mut script = Script::new("hybla", 0);
    assert_eq!(script.value("rho"), 4.0);
    for (milliseconds, rho) in [(200, 4.0), (75, 3.0), (80, 3.0), (50, 2.0), (0, 2.0), (20, 1.0)] {
        script.ack(Step { rtt: Duration::from_millis(milliseconds), ..STEP });
        assert!((script.value("rho") - rho).abs() < 1e-9, "{milliseconds} ms");
    }
    // Without a sample from the handshake, growth is that of Reno until the first sample.
    let mut flow = flow(100, 0.1);
    flow.controller.on_established(&mut flow.control, Instant::ZERO, None);
    assert_eq!(flow.value("rho"), 1.0);
}

#[test]
fn a_loss_halves_the_window() {
    let mut flow = flow(80, 0.1);
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, 40 * MSS);
}
