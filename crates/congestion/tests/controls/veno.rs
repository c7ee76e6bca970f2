//! Tests of Veno: which losses count as random, and the resulting mean windows.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::CongestionEvent;
use fullpipe_congestion::law::LawController;
use fullpipe_congestion::veno::Veno;
use fullpipe_units::{Duration, Instant};

/// A flow with 100 segments after a round with this smallest round-trip time, over a base of 97 ms.
fn after_round(milliseconds: u64) -> Script {
    let mut script = Script::avoiding("veno", 100);
    script.round(97, 3);
    script.control.cwnd_bytes = 100 * MSS;
    script.round(milliseconds, 3);
    script.control.cwnd_bytes = 100 * MSS;
    script
}

#[test]
fn a_loss_with_fewer_than_three_segments_queued_counts_as_random() {
    // N = 100 (rtt - 97) / rtt: 2.02 at 99 ms, 3 at 100 ms, 3.96 at 101 ms.
    for (milliseconds, left) in [(97, 80), (99, 80), (100, 50), (101, 50), (200, 50)] {
        let mut script = after_round(milliseconds);
        script.enter_recovery(100 * MSS);
        assert_eq!(script.control.ssthresh_bytes, left * MSS, "{milliseconds} ms");
    }
    let script = after_round(100);
    assert_eq!(script.value("queued_bytes"), (3 * MSS) as f64);
}

#[test]
fn marks_and_timeouts_are_never_random() {
    let mut script = after_round(97);
    let mark =
        CongestionEvent { now: script.now, in_flight_bytes: 100 * MSS, lost_bytes: 0, ecn: true, persistent: false };
    script.controller.on_congestion(&mut script.control, &mark);
    assert_eq!((script.control.cwnd_bytes, script.control.ssthresh_bytes), (50 * MSS, 50 * MSS));
    let mut script = after_round(97);
    script.time_out();
    assert_eq!(script.control.ssthresh_bytes, 50 * MSS);
}

#[test]
fn growth_with_three_segments_queued_is_half_as_fast() {
    // 100 acknowledgements of a segment add 1/w or half of that each: w^2 = 10 000 + 200 or + 100.
    for (milliseconds, squared) in [(99, 10_200.0_f64), (100, 10_100.0)] {
        let mut script = after_round(milliseconds);
        script.rounds(100, Step { new_round: false, wait: Duration::ZERO, ..STEP });
        let window = script.control.cwnd_bytes as f64 / MSS as f64;
        assert!((window - squared.sqrt()).abs() < 0.01, "{window}");
    }
}

#[test]
fn a_round_with_two_samples_is_not_evaluated() {
    let mut script = after_round(101);
    let queued = script.value("queued_bytes");
    script.round(97, 2);
    assert_eq!(script.value("queued_bytes"), queued);
    script.round(97, 3);
    assert_eq!(script.value("queued_bytes"), 0.0);
}

#[test]
fn an_idle_period_resets_the_base() {
    let mut script = after_round(101);
    script.controller.on_idle_restart(&mut script.control, script.now);
    assert_eq!(script.value("queued_bytes"), 0.0);
    script.round(150, 3);
    assert_eq!(script.value("queued_bytes"), 0.0);
}

#[test]
fn without_a_queue_growth_is_one_segment_and_a_loss_costs_a_fifth() {
    // From 4/5 W to W: (1 - 16/25) W^2 / 2 = N; W/5 round trips: mean 5 N / W = sqrt(4.5 N) = 212.13 for N = 10 000,
    // W = sqrt(N / 0.18) = 235.70. That is sqrt(3) times Reno's mean.
    let mut flow = Flow::new(LawController::<Veno>::default(), 200, 0.1);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_001, 60, 20);
    assert!((cycles.mean_window / 212.13 - 1.0).abs() < 0.005, "{cycles:?}");
    assert!((cycles.window_at_loss / 235.70 - 1.0).abs() < 0.005, "{cycles:?}");
}

fn goodput(name: &str, loss: f64, seconds: f64) -> f64 {
    let mut pipe = Pipe::new(10_000_000, 1_000_000, 1);
    pipe.bottleneck.loss = loss;
    pipe.add(name, Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(20.0);
    pipe.goodputs_bps(20.0 + seconds)[0]
}

#[test]
fn the_rate_under_random_loss_is_root_three_times_that_of_reno() {
    // The square roots are the same, since the path is far from full at half a percent. Random instead of periodic losses change
    // both in the same way.
    let ratio = goodput("veno", 0.01, 2_000.0) / goodput("linux-reno", 0.01, 2_000.0);
    assert!((ratio / 3_f64.sqrt() - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn congestion_losses_halve_the_window() {
    // 10 Mbit/s, 100 ms, a queue of 60 000 bytes: at each loss 41 segments are queued, and the window is halved from 127. From
    // there to 86 segments no packet is queued and the window grows by a segment per round trip, then by half a segment.
    let mut pipe = Pipe::new(10_000_000, 60_000, 1);
    pipe.add("veno", Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(60.0);
    let mut least = f64::MAX;
    pipe.run_watching(crate::simulator::instant(160.0), |_, sender, _| least = least.min(sender.window()));
    assert!((60.0..67.0).contains(&least), "{least}");
}
