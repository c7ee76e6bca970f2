//! Tests of Westwood+: the filter with values computed by hand, and the window after losses.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::law::LawController;
use fullpipe_congestion::westwood::Westwood;
use fullpipe_units::{Duration, Instant};

/// Acknowledges this number of bytes after this time.
fn sample(script: &mut Script, milliseconds: u64, acked: u64) {
    script.ack(Step { wait: Duration::from_millis(milliseconds), acked, ..STEP });
}

/// A flow with ten segments, and samples of 100, 180 and 180 kB/s.
fn measured() -> Script {
    let mut script = Script::avoiding("westwood", 10);
    for bytes in [12_500, 22_500, 22_500] {
        sample(&mut script, 125, bytes);
    }
    script.control.cwnd_bytes = 10 * MSS;
    script
}

#[test]
fn the_filter_matches_values_computed_by_hand() {
    // The first sample is used unchanged: 100, 100. Then 100 + 80/8 = 110 and 100 + 10/8 = 101.25; then 110 + 70/8 = 118.75 and
    // 101.25 + 17.5/8 = 103.4375 kB/s.
    let mut script = Script::avoiding("westwood", 10);
    for (bytes, kilobytes) in [(12_500, 100.0), (22_500, 101.25), (22_500, 103.4375)] {
        sample(&mut script, 125, bytes);
        assert!((script.value("bandwidth_bps") - 8_000.0 * kilobytes).abs() < 1e-6);
    }
}

#[test]
fn a_loss_sets_the_window_to_the_measured_capacity_of_the_path() {
    // 103 437.5 B/s times 100 ms: 10 343 bytes of 14 480.
    let mut script = measured();
    script.enter_recovery(10 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 10_343);
    // A loss never raises the window.
    let mut script = measured();
    script.control.cwnd_bytes = 5 * MSS;
    script.enter_recovery(5 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 5 * MSS);
    // Without a sample the window is halved.
    let mut script = Script::avoiding("westwood", 10);
    script.enter_recovery(10 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 5 * MSS);
}

#[test]
fn the_smallest_round_trip_time_counts_until_a_timeout() {
    let rtt = |milliseconds| Step { wait: Duration::ZERO, acked: 0, rtt: Duration::from_millis(milliseconds), ..STEP };
    let mut script = measured();
    script.ack(rtt(80));
    script.ack(rtt(300));
    script.enter_recovery(10 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 8_275);
    script.leave_recovery(false);
    // A time-out sets the threshold to the capacity of the path, even above a small window; then the search begins anew.
    script.control.cwnd_bytes = 2 * MSS;
    script.time_out();
    assert_eq!(script.control.ssthresh_bytes, 8_275);
    script.ack(rtt(120));
    script.ack(rtt(130));
    script.control.cwnd_bytes = 20 * MSS;
    script.enter_recovery(20 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 12_412);
}

#[test]
fn a_sample_takes_more_than_a_round_trip_and_50_ms() {
    let mut script = Script::avoiding("westwood", 10);
    sample(&mut script, 100, 12_500);
    assert_eq!(script.value("bandwidth_bps"), 0.0);
    sample(&mut script, 25, 0);
    assert_eq!(script.value("bandwidth_bps"), 800_000.0);
    let mut script = Script::avoiding("westwood", 10);
    for (milliseconds, bandwidth) in [(25, 0.0), (25, 0.0), (10, 3.0 * MSS as f64 * 8.0 / 0.06)] {
        let (wait, rtt) = (Duration::from_millis(milliseconds), Duration::from_millis(10));
        script.ack(Step { wait, rtt, ..STEP });
        assert!((script.value("bandwidth_bps") - bandwidth).abs() < 1e-6);
    }
}

#[test]
fn the_estimate_lags_a_growing_window_by_two_time_constants() {
    // The window grows by one per round trip. A filter of weight 1/8 lags a ramp by 7 samples, two filters by 14. A sample is the
    // mean of a round trip, half a segment behind. On average it is half a round trip old, at most one.
    let mut flow = Flow::new(LawController::<Westwood>::default(), 100, 0.1);
    flow.control.ssthresh_bytes = MSS;
    flow.run_until(30.0);
    let window = flow.window();
    assert!((window - 400.0).abs() < 1.0, "{window}");
    flow.lose();
    let lag = window - flow.window();
    assert!((14.4..15.6).contains(&lag), "{lag}");
}

fn goodput(name: &str, loss: f64) -> f64 {
    let mut pipe = Pipe::new(10_000_000, 1_000_000, 1);
    pipe.bottleneck.loss = loss;
    pipe.add(name, Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(30.0);
    pipe.goodputs_bps(530.0)[0]
}

#[test]
fn random_losses_reduce_the_rate_only_slightly() {
    // Grieco and Mascolo: the rate is sqrt((1-p)/p) / sqrt(RTT * Tq), with Tq the mean time in queues. At half a percent it is
    // nearly the full rate of the path, while Reno's mean is sqrt(1.5/p) = 17.3 segments of the path's 86.
    let (westwood, reno) = (goodput("westwood", 0.005), goodput("linux-reno", 0.005));
    assert!((reno / 2.0e6 - 1.0).abs() < 0.1, "{reno}");
    assert!(westwood > 3.0 * reno, "{westwood} {reno}");
    let (westwood, reno) = (goodput("westwood", 0.01), goodput("linux-reno", 0.01));
    assert!(westwood > 3.0 * reno, "{westwood} {reno}");
}

#[test]
fn a_loss_drains_the_queue_but_keeps_the_link_busy() {
    // 86 segments on the path, 41 in the queue. After a loss the window is the capacity of the path: the queue drains, and the
    // link stays busy.
    let mut pipe = Pipe::new(10_000_000, 60_000, 1);
    pipe.add("westwood", Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(30.0);
    let mut least = f64::MAX;
    pipe.run_watching(crate::simulator::instant(130.0), |_, sender, _| least = least.min(sender.window()));
    assert!((least / 87.3 - 1.0).abs() < 0.03, "{least}");
    let goodput = pipe.goodputs_bps(230.0)[0];
    assert!(goodput > 9.9e6, "{goodput}");
}
