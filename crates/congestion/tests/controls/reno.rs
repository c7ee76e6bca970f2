//! Tests of slow start, sawtooth and reductions of both Renos.

use crate::simulator::{Flow, MSS, full_window_ack};
use fullpipe_congestion::dctcp::Dctcp;
use fullpipe_congestion::linux_reno::LinuxReno;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_congestion::{CongestionEvent, Controller, EcnCodepoint, RecoveryExit, Timeout};
use fullpipe_units::{Duration, Instant};

const RTT: f64 = 0.1;

fn windows_per_round<C: Controller>(controller: C, start: u64, ack_every: u64, rounds: usize) -> Vec<u64> {
    let mut flow = Flow::new(controller, start, RTT);
    flow.ack_every = ack_every;
    (0..rounds)
        .map(|_| {
            flow.round();
            assert_eq!(flow.control.cwnd_bytes % MSS, 0);
            flow.control.cwnd_bytes / MSS
        })
        .collect()
}

#[test]
fn slow_start_doubles_with_an_acknowledgement_per_segment() {
    // RFC 5681 section 3.1: each of w acknowledgements adds a segment.
    assert_eq!(windows_per_round(NewReno::default(), 10, 1, 5), [20, 40, 80, 160, 320]);
    assert_eq!(windows_per_round(LinuxReno::default(), 10, 1, 5), [20, 40, 80, 160, 320]);
}

#[test]
fn slow_start_with_delayed_acknowledgements_grows_by_half_or_doubles() {
    // w/2 acknowledgements of two segments: one segment each (RFC 5681, limited to SMSS) makes 1.5 w ...
    assert_eq!(windows_per_round(NewReno::default(), 16, 2, 4), [24, 36, 54, 81]);
    // ... two each (Linux): the window still doubles.
    assert_eq!(windows_per_round(LinuxReno::default(), 16, 2, 4), [32, 64, 128, 256]);
}

#[test]
fn newreno_in_slow_start_adds_the_bytes_acknowledged_if_less_than_a_segment() {
    let mut flow = Flow::new(NewReno::default(), 10, RTT);
    let ack = full_window_ack(Instant::ZERO, 100, flow.rtt(), flow.control.cwnd_bytes);
    flow.controller.on_ack(&mut flow.control, &ack);
    assert_eq!(flow.control.cwnd_bytes, 14_480 + 100);
}

#[test]
fn duplicate_acknowledgements_do_not_grow_the_window_of_newreno() {
    let mut flow = Flow::new(NewReno::default(), 10, RTT);
    let mut ack = full_window_ack(Instant::ZERO, MSS, flow.rtt(), flow.control.cwnd_bytes);
    ack.cumulative_bytes = 0;
    for threshold in [u64::MAX, MSS] {
        flow.control.ssthresh_bytes = threshold;
        flow.controller.on_ack(&mut flow.control, &ack);
        assert_eq!(flow.control.cwnd_bytes, 14_480);
    }
}

#[test]
fn linux_slow_start_stops_at_the_threshold_and_the_rest_counts_for_avoidance() {
    // Window 10, threshold 13; an acknowledgement of 16 segments: 3 end slow start, 13 are a window.
    let mut flow = Flow::new(LinuxReno::default(), 10, RTT);
    flow.control.ssthresh_bytes = 13 * MSS;
    flow.ack(16);
    assert_eq!(flow.control.cwnd_bytes, 14 * MSS);
    // None of them remained: 13 more have no effect, the 14th adds the next segment.
    flow.ack(13);
    assert_eq!(flow.control.cwnd_bytes, 14 * MSS);
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, 15 * MSS);
}

#[test]
fn linux_window_grows_only_while_it_limits_sending() {
    for threshold in [u64::MAX, 5 * MSS] {
        let mut flow = Flow::new(LinuxReno::default(), 10, RTT);
        flow.control.ssthresh_bytes = threshold;
        let mut ack = full_window_ack(Instant::ZERO, MSS, flow.rtt(), flow.control.cwnd_bytes);
        ack.cwnd_limited = false;
        for _ in 0..100 {
            flow.controller.on_ack(&mut flow.control, &ack);
        }
        assert_eq!(flow.control.cwnd_bytes, 10 * MSS, "threshold {threshold}");
    }
}

#[test]
fn linux_credit_from_a_larger_window_is_worth_one_segment() {
    // 19 of 20 are counted, then the window shrinks to 4 without a reduction (as when the receive window or memory limits it).
    // Linux adds one segment for the old credit, not four.
    let mut flow = Flow::new(LinuxReno::default(), 20, RTT);
    flow.control.ssthresh_bytes = MSS;
    flow.ack(19);
    flow.control.cwnd_bytes = 4 * MSS;
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, 5 * MSS);
    // That acknowledged segment counts: with four more there are five.
    flow.ack(3);
    assert_eq!(flow.control.cwnd_bytes, 5 * MSS);
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, 6 * MSS);
}

#[test]
fn linux_sawtooth_matches_the_exact_values() {
    // A window of w lasts w acknowledgements, one round trip. From 10 to 20: 10 + 11 + ... + 19 = 145 acknowledgements in 10
    // round trips; then the 146th segment is lost and the window is 10 again. The mean window is 14.5. Any start leads to this
    // cycle: 145 acknowledgements from 11 end at 20, from 12 at 21, and both are halved to 10.
    for start in [10, 11, 12, 40] {
        let mut flow = Flow::new(LinuxReno::default(), start, RTT);
        flow.control.ssthresh_bytes = MSS;
        let cycles = flow.periodic_loss(146, 20, 50);
        assert!((cycles.mean_window - 14.5).abs() < 1e-9, "{cycles:?} from {start}");
        assert_eq!(cycles.window_at_loss, 20.0);
    }
}

#[test]
fn linux_sawtooth_does_not_depend_on_delayed_acknowledgements() {
    // The same 145 segments, two per acknowledgement. A step may be one segment late, less than 1/10 of a step's length; the mean
    // of 14.5 changes by less than half a segment.
    let mut flow = Flow::new(LinuxReno::default(), 10, RTT);
    flow.control.ssthresh_bytes = MSS;
    flow.ack_every = 2;
    let cycles = flow.periodic_loss(146, 20, 50);
    assert!((cycles.mean_window - 14.5).abs() < 0.5, "{cycles:?}");
}

#[test]
fn newreno_sawtooth_has_the_mean_of_the_closed_form() {
    // dw/dn = 1/w: w^2 grows by 2 per acknowledgement. From W/2 to W in N acknowledgements: 3/4 W^2 = 2 N; the round
    // trips are the integral of dn/w, that is W/2. Mean window 2 N / W = sqrt(3 N / 2); N = 10 000: 122.47, W = 163.30.
    let mut flow = Flow::new(NewReno::default(), 100, RTT);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_001, 20, 20);
    assert!((cycles.mean_window / 122.474 - 1.0).abs() < 0.002, "{cycles:?}");
    assert!((cycles.window_at_loss / 163.299 - 1.0).abs() < 0.002, "{cycles:?}");
}

#[test]
fn newreno_sawtooth_with_delayed_acknowledgements_grows_half_as_fast() {
    // dw/dn = 1/(2 w) per segment: 3/4 W^2 = N, round trips W: mean N / W = sqrt(3 N / 4) = 86.60, W = 115.47.
    let mut flow = Flow::new(NewReno::default(), 100, RTT);
    flow.control.ssthresh_bytes = MSS;
    flow.ack_every = 2;
    let cycles = flow.periodic_loss(10_001, 20, 20);
    assert!((cycles.mean_window / 86.603 - 1.0).abs() < 0.002, "{cycles:?}");
    assert!((cycles.window_at_loss / 115.470 - 1.0).abs() < 0.002, "{cycles:?}");
}

#[test]
fn newreno_has_no_rounding_loss_in_large_windows() {
    // 1 000 segments of 1448 bytes: 1.448 bytes per acknowledgement; 100 000 of them are w^2 = 10^6 + 2 * 10^5,
    // w = 1095.445 segments. With whole bytes it would be 1 448 000 + 100 000 bytes, 1069.06 segments.
    let mut flow = Flow::new(NewReno::default(), 1_000, RTT);
    flow.control.ssthresh_bytes = MSS;
    for _ in 0..100_000 {
        flow.ack(1);
    }
    assert!((flow.window() - 1_095.445).abs() < 0.01, "{}", flow.window());
}

fn congestion(in_flight_bytes: u64, ecn: bool, persistent: bool) -> CongestionEvent {
    CongestionEvent { now: Instant::ZERO, in_flight_bytes, lost_bytes: MSS, ecn, persistent }
}

#[test]
fn a_loss_halves_the_bytes_in_flight_in_newreno_and_the_window_in_linux() {
    // Window 21, in flight 15: the result is 7.5 segments with RFC 5681, and the whole segments of 10.5 in Linux.
    let mut flow = Flow::new(NewReno::default(), 21, RTT);
    flow.controller.on_congestion(&mut flow.control, &congestion(15 * MSS, false, false));
    assert_eq!(flow.control.ssthresh_bytes, 15 * MSS / 2);
    assert_eq!(flow.control.cwnd_bytes, 21 * MSS, "the transport reduces the window");
    let mut flow = Flow::new(LinuxReno::default(), 21, RTT);
    flow.controller.on_congestion(&mut flow.control, &congestion(15 * MSS, false, false));
    assert_eq!(flow.control.ssthresh_bytes, 10 * MSS);
    assert_eq!(flow.control.cwnd_bytes, 21 * MSS);
}

#[test]
fn thresholds_are_never_below_two_segments() {
    for controller in [Box::new(NewReno::default()) as Box<dyn Controller>, Box::new(LinuxReno::default())] {
        let mut controller = controller;
        let mut flow = Flow::new(NewReno::default(), 1, RTT);
        controller.on_congestion(&mut flow.control, &congestion(MSS, false, false));
        assert_eq!(flow.control.ssthresh_bytes, 2 * MSS);
        flow.control.ssthresh_bytes = u64::MAX;
        let timeout = Timeout { now: Instant::ZERO, in_flight_bytes: MSS, repeated: false };
        controller.on_timeout(&mut flow.control, &timeout);
        assert_eq!(flow.control.ssthresh_bytes, 2 * MSS);
        // A mark reduces the window itself down to one segment (RFC 3168 section 6.1.2), not further.
        flow.control.cwnd_bytes = 3 * MSS / 2;
        controller.on_congestion(&mut flow.control, &congestion(3 * MSS / 2, true, false));
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (MSS, 2 * MSS));
    }
}

#[test]
fn marks_reduce_the_window_at_once_and_persistent_congestion_to_two_segments() {
    for controller in [Box::new(NewReno::default()) as Box<dyn Controller>, Box::new(LinuxReno::default())] {
        let mut controller = controller;
        let mut flow = Flow::new(NewReno::default(), 20, RTT);
        controller.on_congestion(&mut flow.control, &congestion(20 * MSS, true, false));
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (10 * MSS, 10 * MSS));
        controller.on_congestion(&mut flow.control, &congestion(10 * MSS, false, true));
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (2 * MSS, 5 * MSS));
    }
}

#[test]
fn a_repeated_timeout_does_not_change_the_threshold() {
    // RFC 5681 equation 4: held constant when the same segment times out again.
    for controller in [Box::new(NewReno::default()) as Box<dyn Controller>, Box::new(LinuxReno::default())] {
        let mut controller = controller;
        let mut flow = Flow::new(NewReno::default(), 40, RTT);
        let mut timeout = Timeout { now: Instant::ZERO, in_flight_bytes: 40 * MSS, repeated: false };
        controller.on_timeout(&mut flow.control, &timeout);
        assert_eq!(flow.control.ssthresh_bytes, 20 * MSS);
        timeout.repeated = true;
        timeout.in_flight_bytes = MSS;
        flow.control.cwnd_bytes = MSS;
        controller.on_timeout(&mut flow.control, &timeout);
        assert_eq!(flow.control.ssthresh_bytes, 20 * MSS);
    }
}

#[test]
fn the_window_does_not_grow_during_recovery() {
    for controller in [Box::new(NewReno::default()) as Box<dyn Controller>, Box::new(LinuxReno::default())] {
        let mut controller = controller;
        let mut flow = Flow::new(NewReno::default(), 40, RTT);
        for threshold in [u64::MAX, MSS] {
            flow.control.ssthresh_bytes = threshold;
            let mut ack = full_window_ack(Instant::ZERO, 40 * MSS, flow.rtt(), flow.control.cwnd_bytes);
            ack.in_recovery = true;
            controller.on_ack(&mut flow.control, &ack);
            assert_eq!(flow.control.cwnd_bytes, 40 * MSS);
        }
    }
}

/// Both Renos, and DCTCP. DCTCP reacts as Reno to a loss and, with its initial alpha of 1, to a mark.
fn undo_cases() -> [(Box<dyn Controller>, u64); 3] {
    [
        (Box::new(NewReno::default()), 15 * MSS),
        (Box::new(LinuxReno::default()), 15 * MSS),
        (Box::new(Dctcp::new(EcnCodepoint::Ect0)), 15 * MSS),
    ]
}

#[test]
fn a_spurious_loss_is_undone() {
    for (mut controller, half) in undo_cases() {
        let mut flow = Flow::new(NewReno::default(), 30, RTT);
        flow.control.ssthresh_bytes = 25 * MSS;
        controller.on_congestion(&mut flow.control, &congestion(30 * MSS, false, false));
        assert_eq!(flow.control.ssthresh_bytes, half);
        flow.control.cwnd_bytes = half;
        let exit = RecoveryExit { now: Instant::ZERO, in_flight_bytes: half, undone: true };
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (30 * MSS, 25 * MSS));
        // Only once: the saved state belongs to that reduction.
        flow.control.cwnd_bytes = 4 * MSS;
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!(flow.control.cwnd_bytes, 4 * MSS);
    }
}

#[test]
fn a_justified_recovery_and_a_mark_are_not_undone() {
    for (mut controller, half) in undo_cases() {
        let mut flow = Flow::new(NewReno::default(), 30, RTT);
        let mut exit = RecoveryExit { now: Instant::ZERO, in_flight_bytes: half, undone: false };
        controller.on_congestion(&mut flow.control, &congestion(30 * MSS, false, false));
        flow.control.cwnd_bytes = half;
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (half, half));

        flow.control.cwnd_bytes = 30 * MSS;
        controller.on_congestion(&mut flow.control, &congestion(30 * MSS, false, false));
        controller.on_congestion(&mut flow.control, &congestion(30 * MSS, true, false));
        exit.undone = true;
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (half, half));
    }
}

#[test]
fn a_spurious_timeout_restores_the_state_before_the_recovery_that_it_ended() {
    for (mut controller, _) in undo_cases() {
        let mut flow = Flow::new(NewReno::default(), 30, RTT);
        controller.on_congestion(&mut flow.control, &congestion(30 * MSS, false, false));
        flow.control.cwnd_bytes = 15 * MSS;
        let timeout = Timeout { now: Instant::ZERO, in_flight_bytes: 15 * MSS, repeated: false };
        controller.on_timeout(&mut flow.control, &timeout);
        flow.control.cwnd_bytes = MSS;
        controller.on_timeout(&mut flow.control, &Timeout { repeated: true, ..timeout });
        let exit = RecoveryExit { now: Instant::ZERO, in_flight_bytes: MSS, undone: true };
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (30 * MSS, u64::MAX));
        // A later time-out outside recovery saves the window at the time-out.
        flow.control.cwnd_bytes = 12 * MSS;
        controller.on_timeout(&mut flow.control, &timeout);
        flow.control.cwnd_bytes = MSS;
        controller.on_recovery_exit(&mut flow.control, &exit);
        assert_eq!(flow.control.cwnd_bytes, 12 * MSS);
    }
}

#[test]
fn a_restart_after_an_idle_period_has_at_most_the_initial_window() {
    let late = Instant::ZERO + Duration::from_secs(100);
    let mut flow = Flow::new(NewReno::default(), 100, RTT);
    flow.control.ssthresh_bytes = 20 * MSS;
    flow.controller.on_idle_restart(&mut flow.control, late);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (14_480, 20 * MSS));
    // Linux sets the threshold to three quarters of the window.
    let mut flow = Flow::new(LinuxReno::default(), 100, RTT);
    flow.control.ssthresh_bytes = 20 * MSS;
    flow.controller.on_idle_restart(&mut flow.control, late);
    assert_eq!((flow.control.cwnd_bytes, flow.control.ssthresh_bytes), (14_480, 75 * MSS));
    // A window below the initial one does not change.
    flow.control.cwnd_bytes = 3 * MSS;
    flow.controller.on_idle_restart(&mut flow.control, late);
    assert_eq!(flow.control.cwnd_bytes, 3 * MSS);
}

#[test]
fn a_larger_segment_size_raises_a_window_below_one_segment() {
    for (mut controller, _) in undo_cases() {
        let mut flow = Flow::new(NewReno::default(), 1, RTT);
        flow.control.mss_bytes = 8_948;
        controller.on_path_change(&mut flow.control, Instant::ZERO);
        assert_eq!(flow.control.cwnd_bytes, 8_948);
    }
}
