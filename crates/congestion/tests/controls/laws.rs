//! Tests of the common part of window-based controls, with all laws.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::htcp::Htcp;
use fullpipe_congestion::law::LawController;
use fullpipe_congestion::veno::Veno;
use fullpipe_congestion::{CongestionEvent, Timeout};
use fullpipe_units::{Duration, Instant};

const NAMES: [&str; 9] = ["bic", "highspeed", "htcp", "hybla", "illinois", "scalable", "veno", "westwood", "yeah"];

/// The windows after a loss, a mark and a time-out, from a hundred segments and with a round-trip time of 100 ms only. HighSpeed:
/// b(100) = 0.5 - 0.4 ln(100/38) / ln(83000/38) = 0.5 - 0.4 * 0.967584 / 7.688968 = 0.449664.
const LEFT: [(&str, [f64; 3]); 9] = [
    ("bic", [87.5, 87.5, 50.0]),
    ("highspeed", [55.0336, 55.0336, 50.0]),
    ("htcp", [50.0, 50.0, 50.0]),
    ("hybla", [50.0, 50.0, 50.0]),
    ("illinois", [50.0, 50.0, 50.0]),
    ("scalable", [87.5, 87.5, 87.5]),
    ("veno", [80.0, 50.0, 50.0]),
    ("westwood", [50.0, 50.0, 50.0]),
    ("yeah", [87.5, 87.5, 87.5]),
];

fn congestion(ecn: bool, persistent: bool) -> CongestionEvent {
    CongestionEvent { now: Instant::ZERO, in_flight_bytes: 30 * MSS, lost_bytes: MSS, ecn, persistent }
}

fn segments(bytes: u64) -> f64 {
    bytes as f64 / MSS as f64
}

#[test]
fn losses_marks_and_timeouts_reduce_the_window_by_the_law() {
    for (name, [loss, mark, timeout]) in LEFT {
        let near = |found: u64, expected: f64| assert!((segments(found) - expected).abs() < 0.002, "{name}: {found}");
        let mut script = Script::avoiding(name, 100);
        script.controller.on_congestion(&mut script.control, &congestion(false, false));
        near(script.control.ssthresh_bytes, loss);
        near(script.control.cwnd_bytes, 100.0);
        let mut script = Script::avoiding(name, 100);
        script.controller.on_congestion(&mut script.control, &congestion(true, false));
        near(script.control.ssthresh_bytes, mark);
        near(script.control.cwnd_bytes, mark);
        let mut script = Script::avoiding(name, 100);
        script.controller.on_congestion(&mut script.control, &congestion(false, true));
        near(script.control.ssthresh_bytes, timeout);
        near(script.control.cwnd_bytes, 2.0);
        let mut script = Script::avoiding(name, 100);
        script.time_out();
        near(script.control.ssthresh_bytes, timeout);
        // A repeated time-out does not change the threshold.
        script.control.cwnd_bytes = MSS;
        let again = Timeout { now: script.now, in_flight_bytes: MSS, repeated: true };
        script.controller.on_timeout(&mut script.control, &again);
        near(script.control.ssthresh_bytes, timeout);
    }
}

#[test]
fn the_threshold_is_never_below_two_segments() {
    for name in NAMES {
        for segments in [1, 2] {
            let mut script = Script::avoiding(name, segments);
            script.controller.on_congestion(&mut script.control, &congestion(false, false));
            assert_eq!(script.control.ssthresh_bytes, 2 * MSS, "{name}");
            script.time_out();
            assert_eq!(script.control.ssthresh_bytes, 2 * MSS, "{name}");
            script.controller.on_congestion(&mut script.control, &congestion(true, false));
            assert!(script.control.cwnd_bytes >= MSS, "{name}");
        }
    }
}

#[test]
fn the_window_grows_only_while_it_limits_sending_and_not_in_recovery() {
    for name in NAMES {
        for threshold in [u64::MAX, MSS] {
            let mut script = Script::avoiding(name, 100);
            script.control.ssthresh_bytes = threshold;
            script.rounds(50, Step { cwnd_limited: false, ..STEP });
            assert_eq!(script.control.cwnd_bytes, 100 * MSS, "{name}");
            script.enter_recovery(100 * MSS);
            script.rounds(50, STEP);
            assert_eq!(script.control.cwnd_bytes, 100 * MSS, "{name}");
            script.leave_recovery(false);
            script.rounds(50, Step { new_round: false, ..STEP });
            assert!(script.control.cwnd_bytes > 100 * MSS, "{name}");
        }
    }
}

#[test]
fn slow_start_adds_every_byte_up_to_the_threshold() {
    for name in NAMES.into_iter().filter(|name| *name != "hybla") {
        let mut script = Script::new(name, 0);
        script.ack(Step { acked: 1_000, new_round: false, ..STEP });
        assert_eq!(script.control.cwnd_bytes, 10 * MSS + 1_000, "{name}");
        script.control.ssthresh_bytes = 12 * MSS;
        script.ack(Step { acked: 2 * MSS - 1_000, new_round: false, ..STEP });
        assert_eq!(script.control.cwnd_bytes, 12 * MSS, "{name}: no bytes remain for congestion avoidance");
    }
    // The threshold is 13 and 16 segments are acknowledged: three of them end slow start, thirteen are a window.
    let mut flow = Flow::new(LawController::<Veno>::default(), 10, 0.1);
    flow.control.ssthresh_bytes = 13 * MSS;
    flow.ack(16);
    assert_eq!(flow.control.cwnd_bytes, 14 * MSS);
}

#[test]
fn growth_has_no_rounding_loss_and_does_not_depend_on_delayed_acknowledgements() {
    // w^2 = 10^6 + 2 * 10^5 after 100 000 segments at 1/w each.
    for ack_every in [1, 2] {
        let mut flow = Flow::new(LawController::<Veno>::default(), 1_000, 0.1);
        flow.control.ssthresh_bytes = MSS;
        for _ in 0..100_000 / ack_every {
            flow.ack(ack_every);
        }
        assert!((flow.window() - 1_095.445).abs() < 0.01, "{}", flow.window());
    }
}

#[test]
fn the_window_never_grows_faster_than_in_slow_start() {
    // H-TCP, a thousand seconds after a loss: without the limit it would grow by 259 491 segments per round trip.
    let mut flow = Flow::new(LawController::<Htcp>::default(), 20, 0.1);
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, 10 * MSS);
    flow.now_seconds = 1_000.0;
    flow.ack(1);
    assert_eq!(flow.control.cwnd_bytes, 11 * MSS);
    // An acknowledgement of more than a window counts as one window.
    let mut flow = Flow::new(LawController::<Veno>::default(), 20, 0.1);
    flow.control.ssthresh_bytes = MSS;
    flow.ack(60);
    assert_eq!(flow.control.cwnd_bytes, 21 * MSS);
}

#[test]
fn a_spurious_reduction_is_undone_but_not_one_for_a_mark() {
    for name in NAMES {
        let mut script = Script::avoiding(name, 100);
        script.control.ssthresh_bytes = u64::MAX;
        script.enter_recovery(100 * MSS);
        script.control.cwnd_bytes = script.control.ssthresh_bytes;
        script.leave_recovery(true);
        assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (100 * MSS, u64::MAX), "{name}");
        script.time_out();
        script.control.cwnd_bytes = MSS;
        script.leave_recovery(true);
        assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (100 * MSS, u64::MAX), "{name}");
        script.controller.on_congestion(&mut script.control, &congestion(true, false));
        let marked = script.control.cwnd_bytes;
        assert!(marked < 100 * MSS, "{name}");
        script.leave_recovery(true);
        assert_eq!(script.control.cwnd_bytes, marked, "{name}");
    }
}

#[test]
fn idle_periods_and_other_segment_sizes_are_handled() {
    for name in NAMES {
        let mut script = Script::avoiding(name, 100);
        script.controller.on_idle_restart(&mut script.control, script.now);
        assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (10 * MSS, 75 * MSS), "{name}");
        script.control.mss_bytes = 20 * MSS;
        script.controller.on_path_change(&mut script.control, script.now);
        assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (20 * MSS, 75 * MSS), "{name}");
    }
}

#[test]
fn extreme_round_trip_times_and_windows_cause_no_error() {
    for name in NAMES {
        for window in [0, 1, MSS, 1_000_000 * MSS, u64::MAX / 2, u64::MAX] {
            for rtt in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1_000), Duration::MAX] {
                let mut script = Script::avoiding(name, 1);
                for acked in [0, 1, MSS, u64::MAX >> 20] {
                    script.control.cwnd_bytes = window;
                    let step = Step { rtt, acked, wait: Duration::ZERO, ..STEP };
                    script.rounds(4, Step { new_round: false, ..step });
                    script.rounds(2, step);
                    script.enter_recovery(window);
                    script.leave_recovery(true);
                    script.time_out();
                    assert!(script.control.ssthresh_bytes >= 2 * MSS, "{name} {window} {rtt:?}");
                    script.control.cwnd_bytes = MSS;
                    script.leave_recovery(false);
                }
            }
        }
    }
}

#[test]
fn one_loss_in_a_million_leaves_the_path_full() {
    // 100 Mbit/s and 40 ms: 349 segments on the path and as many in the queue. One loss in 115 s has no effect on the rate.
    for name in NAMES {
        let mut pipe = Pipe::new(100_000_000, 349 * MSS, 1);
        pipe.bottleneck.loss = 1e-6;
        pipe.add(name, Duration::from_millis(40), Instant::ZERO, 1);
        pipe.run(20.0);
        let goodput = pipe.goodputs_bps(40.0)[0];
        assert!(goodput > 95.0e6, "{name}: {goodput}");
    }
}

#[test]
fn marks_keep_the_queue_short() {
    // 20 Mbit/s, 50 ms: 87 segments on the path; packets are marked above 20 queued. After slow start no packet is dropped, and
    // the queue stays close to the threshold.
    for name in NAMES {
        let mut pipe = Pipe::new(20_000_000, 4_000 * MSS, 1);
        pipe.bottleneck.mark_above_bytes = 20 * MSS;
        pipe.add(name, Duration::from_millis(50), Instant::ZERO, 1);
        pipe.run(30.0);
        let drops = pipe.bottleneck.drops;
        let queue = pipe.mean_queue_bytes(60.0) / MSS as f64;
        assert!(queue < 30.0, "{name}: {queue}");
        assert_eq!(pipe.bottleneck.drops, drops, "{name}");
        let goodput = pipe.goodputs_bps(90.0)[0];
        assert!(goodput > 14.0e6, "{name}: {goodput}");
    }
}
