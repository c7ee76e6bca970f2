//! Tests of Scalable TCP: growth, reduction and the resulting mean windows.

use crate::simulator::{Flow, MSS};
use fullpipe_congestion::law::LawController;
use fullpipe_congestion::scalable::Scalable;

fn flow(window_segments: u64) -> Flow<LawController<Scalable>> {
    let mut flow = Flow::new(LawController::default(), window_segments, 0.1);
    flow.control.ssthresh_bytes = MSS;
    flow
}

#[test]
fn each_segment_acknowledged_adds_a_hundredth() {
    let mut flow = flow(1_000);
    for _ in 0..1_000 {
        flow.ack(1);
    }
    assert!((flow.window() - 1_010.0).abs() < 0.001, "{}", flow.window());
}

#[test]
fn windows_below_100_segments_grow_as_in_reno() {
    // w^2 = 400 + 2 * 1000 after a thousand acknowledgements.
    let mut flow = flow(20);
    for _ in 0..1_000 {
        flow.ack(1);
    }
    assert!((flow.window() - 2_400_f64.sqrt()).abs() < 0.02, "{}", flow.window());
}

#[test]
fn a_loss_reduces_the_window_by_an_eighth() {
    let mut flow = flow(80);
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, 70 * MSS);
}

#[test]
fn the_time_from_a_loss_to_the_old_window_does_not_depend_on_the_window() {
    // dw/dt = 0.01 w per round trip: 100 ln(8/7) = 13.353 round trips.
    for window in [200, 2_000, 20_000] {
        let mut flow = flow(window);
        flow.lose();
        while flow.control.cwnd_bytes < window * MSS {
            flow.ack(1);
        }
        assert!((flow.now_seconds / 1.3353 - 1.0).abs() < 0.002, "{} from {window}", flow.now_seconds);
    }
}

#[test]
fn mean_windows_under_periodic_loss_match_the_law() {
    // N packets between losses regain the reduction of a loss: 0.01 N = W/8, W = 0.08 N. They take 13.353 round trips. The mean
    // is N / 13.353 = 0.0749 N, 6 % below the 0.08/p of the literature, which is the window at the loss.
    for every in [10_000, 100_000] {
        let cycles = flow(2_000).periodic_loss(every, 60, 10);
        let every = every as f64;
        assert!((cycles.window_at_loss / (0.08 * every) - 1.0).abs() < 0.002, "{cycles:?}");
        assert!((cycles.mean_window / (every / 13.353) - 1.0).abs() < 0.002, "{cycles:?}");
        assert!((cycles.mean_window / (0.08 * every) - 1.0).abs() < 0.1, "{cycles:?}");
    }
}
