//! Tests of Illinois: the curves of the paper, and the resulting mean windows.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::illinois::Illinois;
use fullpipe_congestion::law::LawController;
use fullpipe_units::{Duration, Instant};

/// Runs a round with this mean round-trip time.
fn round(script: &mut Script, microseconds: u64) {
    for (difference, last) in [(-5_000, false), (0, false), (5_000, true)] {
        let rtt = Duration::from_micros(microseconds.saturating_add_signed(difference).max(100_000));
        script.ack(Step { wait: Duration::ZERO, rtt, new_round: last, ..STEP });
    }
}

/// A flow with 100 segments; the smallest round-trip time is 100 ms, the largest 200 ms.
fn known_delays() -> Script {
    let mut script = Script::avoiding("illinois", 100);
    script.ack(Step { rtt: Duration::from_millis(200), ..STEP });
    script
}

#[test]
fn alpha_and_beta_follow_the_curves_of_the_paper() {
    // dm = 100 ms. alpha(da) = 99 * 10 / (99 + (da - 1) * 9.7/0.3): 10 at 1 ms, at 50.5 ms 10 / (1 + 16.1667) = 0.58252,
    // at 25.75 ms 10 / (1 + 8.0833) = 1.10092, at 100 ms 10 / 33.333 = 0.3.
    // beta: 1/8 up to 10 ms, 1/2 from 80 ms: at 45 ms 5/16, at 25.75 ms 1/8 + 3/8 * 15.75/70 = 0.209375.
    for (delay, alpha, beta) in [
        (25_750, 1.100_92, 0.209_375),
        (45_000, 990.0 / (99.0 + 44.0 * 97.0 / 3.0), 0.3125),
        (50_500, 0.582_52, 0.341_964),
        (80_000, 990.0 / (99.0 + 79.0 * 97.0 / 3.0), 0.5),
        (95_000, 990.0 / (99.0 + 94.0 * 97.0 / 3.0), 0.5),
    ] {
        let mut script = known_delays();
        round(&mut script, 100_000 + delay);
        assert!((script.value("alpha") - alpha).abs() < 1e-4, "{delay}: {}", script.value("alpha"));
        assert!((script.value("beta") - beta).abs() < 1e-4, "{delay}: {}", script.value("beta"));
    }
    // The largest delay itself.
    let mut script = known_delays();
    for last in [false, true] {
        script.ack(Step { rtt: Duration::from_millis(200), new_round: last, ..STEP });
    }
    assert!((script.value("alpha") - 0.3).abs() < 1e-9 && script.value("beta") == 0.5);
}

/// Runs a round with one sample.
fn single(script: &mut Script, microseconds: u64) {
    script.ack(Step { wait: Duration::ZERO, rtt: Duration::from_micros(microseconds), ..STEP });
}

#[test]
fn only_the_mean_of_the_round_counts() {
    let mut script = known_delays();
    single(&mut script, 145_000);
    assert!((script.value("beta") - 0.3125).abs() < 1e-9);
    single(&mut script, 110_000);
    assert_eq!(script.value("beta"), 0.125);
    single(&mut script, 111_000);
    assert!((script.value("beta") - (0.125 + 0.375 / 70.0)).abs() < 1e-9);
}

#[test]
fn alpha_returns_to_its_largest_value_after_five_rounds_of_low_delay() {
    // 200 ms exceeded the lowest hundredth, which extends to 101 ms.
    let mut script = known_delays();
    single(&mut script, 150_000);
    let slow = script.value("alpha");
    for _ in 0..4 {
        single(&mut script, 101_000);
        assert_eq!(script.value("alpha"), slow);
        assert_eq!(script.value("beta"), 0.125, "beta changes immediately");
    }
    // A round with more delay restarts the count.
    single(&mut script, 150_000);
    for _ in 0..4 {
        single(&mut script, 101_000);
        assert_eq!(script.value("alpha"), slow);
    }
    single(&mut script, 101_000);
    assert_eq!(script.value("alpha"), 10.0);
    single(&mut script, 100_000);
    assert_eq!(script.value("alpha"), 10.0);
    single(&mut script, 101_010);
    assert!(script.value("alpha") < 10.0);
}

#[test]
fn the_count_of_low_delay_rounds_ends_at_the_largest_alpha() {
    let mut script = known_delays();
    single(&mut script, 150_000);
    for _ in 0..5 {
        single(&mut script, 101_000);
    }
    script.control.cwnd_bytes = 10 * MSS;
    single(&mut script, 101_000);
    assert_eq!(script.value("alpha"), 1.0);
    script.control.cwnd_bytes = 100 * MSS;
    single(&mut script, 101_000);
    assert_eq!(script.value("alpha"), 10.0);
}

#[test]
fn small_windows_and_timeouts_behave_as_in_reno() {
    for (window, alpha, beta) in [(14, 1.0, 0.5), (15, 10.0, 0.125)] {
        let mut script = Script::avoiding("illinois", window);
        script.ack(Step { cwnd_limited: false, ..STEP });
        assert_eq!((script.value("alpha"), script.value("beta")), (alpha, beta), "{window}");
    }
    let mut script = known_delays();
    single(&mut script, 110_000);
    script.control.cwnd_bytes = 80 * MSS;
    script.time_out();
    assert_eq!(script.control.ssthresh_bytes, 70 * MSS);
    assert_eq!((script.value("alpha"), script.value("beta")), (1.0, 0.5));
    // The count of rounds with low delay ends too.
    single(&mut script, 101_000);
    assert_eq!(script.value("alpha"), 10.0);
}

#[test]
fn without_delay_growth_is_ten_segments_and_a_loss_costs_an_eighth() {
    // From 7/8 W to W: (1 - 49/64) W^2 / 2 = 10 N; W/8 / 10 round trips: mean N / (W/80) = sqrt(75 N) = 866.0 for
    // N = 10 000, W = sqrt(20 N * 64/15) = 923.8.
    let mut flow = Flow::new(LawController::<Illinois>::default(), 500, 0.1);
    flow.control.ssthresh_bytes = MSS;
    let cycles = flow.periodic_loss(10_001, 60, 20);
    assert!((cycles.mean_window / 866.03 - 1.0).abs() < 0.005, "{cycles:?}");
    assert!((cycles.window_at_loss / 923.76 - 1.0).abs() < 0.005, "{cycles:?}");
}

#[test]
fn the_window_grows_more_slowly_towards_the_full_queue() {
    // 10 Mbit/s, 100 ms: 86 segments on the path and 86 in the queue. Growth slows down towards the loss, and alpha then has its
    // smallest value.
    let mut pipe = Pipe::new(10_000_000, 86 * MSS, 1);
    pipe.add("illinois", Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(30.0);
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    pipe.run_watching(crate::simulator::instant(230.0), |_, sender, _| {
        least = least.min(sender.value("alpha"));
        most = most.max(sender.value("alpha"));
    });
    assert!((0.299..0.33).contains(&least), "{least}");
    assert!(most <= 10.0, "{most}");
    let goodput = pipe.goodputs_bps(330.0)[0];
    assert!(goodput > 9.9e6, "{goodput}");
}
