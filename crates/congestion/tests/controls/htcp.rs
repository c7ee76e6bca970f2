//! Tests of H-TCP: growth over time, adaptive backoff, and the resulting mean windows.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{Flow, MSS};
use fullpipe_congestion::Controller;
use fullpipe_congestion::htcp::Htcp;
use fullpipe_congestion::law::LawController;
use fullpipe_units::{Duration, Instant};

fn flow(window_segments: u64, rtt_seconds: f64) -> Flow<LawController<Htcp>> {
    let mut flow = Flow::new(LawController::default(), window_segments, rtt_seconds);
    flow.control.ssthresh_bytes = MSS;
    flow
}

#[test]
fn the_window_after_a_first_loss_grows_by_the_integral_of_alpha() {
    // A first loss halves the window, and with beta = 1/2 the growth is alpha itself. Its integral over D seconds is D + 5 (D -
    // 1)^2 + (D - 1)^3 / 12: 1 at 1 s, 2 + 5.0833 at 2 s, 3 + 20 + 0.6667 at 3 s, each per round trip of 0.1 s.
    let mut flow = flow(100, 0.1);
    flow.lose();
    assert_eq!(flow.control.cwnd_bytes, 50 * MSS);
    for (seconds, window) in [(1.0, 60.0), (2.0, 120.83), (3.0, 286.67)] {
        flow.run_until(seconds);
        assert!((flow.window() / window - 1.0).abs() < 0.005, "{} at {seconds} s, expected {window}", flow.window());
    }
}

#[test]
fn mean_windows_under_periodic_loss_match_the_integral_of_alpha() {
    // At a constant round-trip time R, beta is 0.8 and the growth 0.4 alpha(D) / R. The window regains a fifth between two
    // losses, T seconds apart: W/5 = 0.4 A(T) / R with A = T + 5 (T-1)^2 + (T-1)^3/12. The packets are N = (0.8 W T + 0.4/R B(T))
    // / R with B the integral of A, T^2/2 + 5/3 (T-1)^3 + (T-1)^4/48.
    //   T = 1,  R = 0.01: A = 1,       W = 200,    B = 0.5,     N = (160 + 20) / 0.01          = 18 000
    //   T = 3,  R = 0.05: A = 23.6667, W = 946.67, B = 18.1667, N = (2272 + 145.33) / 0.05     = 48 347
    //   T = 10, R = 0.1:  A = 475.75,  W = 9515,   B = 1401.69, N = (76 120 + 5606.8) / 0.1    = 817 268
    for (seconds, rtt, every, window) in
        [(1.0, 0.01, 18_000, 200.0), (3.0, 0.05, 48_347, 946.67), (10.0, 0.1, 817_268, 9_515.0)]
    {
        let cycles = flow(window as u64, rtt).periodic_loss(every, 30, 10);
        let mean = every as f64 * rtt / seconds;
        assert!((cycles.mean_window / mean - 1.0).abs() < 0.005, "{cycles:?}, expected {mean}");
        assert!((cycles.window_at_loss / window - 1.0).abs() < 0.005, "{cycles:?}, expected {window}");
    }
}

/// Runs rounds of `acked` bytes whose largest round-trip time is `milliseconds`, then a loss. Returns the share of the window
/// that remains.
fn epoch(script: &mut Script, acked: u64, milliseconds: u64) -> f64 {
    script.rounds(30, Step { acked, ..STEP });
    script.ack(Step { acked, rtt: Duration::from_millis(milliseconds), ..STEP });
    script.rounds(30, Step { acked, ..STEP });
    script.control.cwnd_bytes = 1_000 * MSS;
    script.enter_recovery(1_000 * MSS);
    script.leave_recovery(false);
    assert_eq!(script.control.ssthresh_bytes, (script.value("beta") * (1_000 * MSS) as f64) as u64);
    script.value("beta")
}

#[test]
fn the_backoff_is_the_ratio_of_round_trip_times() {
    let mut script = Script::new("htcp", 0);
    assert_eq!(epoch(&mut script, 100_000, 160), 0.5, "there is no previous epoch");
    // 100/160, 100/125, 100/110 and 100/250, limited to 0.5 to 0.8; only the largest round-trip time of the epoch counts.
    for (milliseconds, beta) in [(160, 0.625), (125, 0.8), (110, 0.8), (250, 0.5), (100, 0.8), (160, 0.625)] {
        let found = epoch(&mut script, 100_000, milliseconds);
        assert!((found - beta).abs() < 1e-9, "{milliseconds} ms: {found}");
    }
}

#[test]
fn a_changed_throughput_makes_the_backoff_one_half() {
    for (bytes, beta) in
        [(100_000, 0.625), (119_000, 0.625), (121_000, 0.5), (200_000, 0.5), (81_000, 0.625), (79_000, 0.5)]
    {
        let mut script = Script::new("htcp", 0);
        epoch(&mut script, 100_000, 160);
        epoch(&mut script, 100_000, 160);
        let found = epoch(&mut script, bytes, 160);
        assert!((found - beta).abs() < 1e-9, "{bytes}: {found}");
        // From then on the throughput is the expected one.
        assert!((epoch(&mut script, bytes, 160) - 0.625).abs() < 1e-9);
    }
}

#[test]
fn the_largest_throughput_of_an_epoch_counts() {
    // 130 for a while in an epoch of 100: the next epoch with 100 is lower by 23 %.
    let mut script = Script::new("htcp", 0);
    epoch(&mut script, 100_000, 160);
    script.rounds(30, Step { acked: 130_000, ..STEP });
    epoch(&mut script, 100_000, 160);
    assert_eq!(epoch(&mut script, 100_000, 160), 0.5);
}

#[test]
fn the_growth_time_counts_from_the_start_of_the_connection() {
    // Established at 100 s: half a second later the window is larger by five segments, one per round trip.
    let mut flow = flow(100, 0.1);
    flow.now_seconds = 100.0;
    let now = flow.now();
    flow.controller.on_established(&mut flow.control, now, None);
    flow.run_until(100.5);
    assert!((flow.window() - 105.0).abs() < 0.1, "{}", flow.window());
}

#[test]
fn the_throughput_is_an_average_with_weight_a_quarter() {
    // 1 Mbit/s, then one round at 2: 1.25.
    let mut script = Script::new("htcp", 0);
    script.rounds(10, Step { acked: 12_500, ..STEP });
    assert!((script.value("throughput_bps") - 1e6).abs() < 1.0);
    script.ack(Step { acked: 25_000, ..STEP });
    assert!((script.value("throughput_bps") - 1.25e6).abs() < 1.0);
}

#[test]
fn a_timeout_halves_the_window_and_a_spurious_loss_starts_no_epoch() {
    let mut script = Script::new("htcp", 0);
    epoch(&mut script, 100_000, 125);
    epoch(&mut script, 100_000, 125);
    assert_eq!(script.value("beta"), 0.8);
    script.rounds(30, Step { acked: 100_000, ..STEP });
    // Three seconds after the loss: alpha = 22, times 0.4.
    script.control.cwnd_bytes = 1_000 * MSS;
    script.control.ssthresh_bytes = MSS;
    script.enter_recovery(1_000 * MSS);
    script.leave_recovery(true);
    let before = script.control.cwnd_bytes;
    assert_eq!(before, 1_000 * MSS);
    script.ack(Step { wait: Duration::ZERO, acked: 100 * MSS, ..STEP });
    let grown = (script.control.cwnd_bytes - before) as f64 / MSS as f64;
    assert!((grown - 0.88).abs() < 0.01, "{grown}");
    script.control.cwnd_bytes = 1_000 * MSS;
    script.time_out();
    assert_eq!(script.control.ssthresh_bytes, 500 * MSS);
    assert_eq!(script.value("beta"), 0.5);
}

#[test]
fn the_link_stays_busy_after_a_loss() {
    // 10 Mbit/s, 100 ms: the path holds 86 segments and the queue 41. After a loss, Reno's half of 127 leaves the link idle for a
    // while, but 68 % of 127 do not.
    let mut pipe = Pipe::new(10_000_000, 60_000, 1);
    pipe.add("htcp", Duration::from_millis(100), Instant::ZERO, 1);
    pipe.run(20.0);
    let goodput = pipe.goodputs_bps(200.0)[0];
    assert!(goodput > 9.9e6, "{goodput}");
    let beta = pipe.senders[0].value("beta");
    assert!((0.62..0.72).contains(&beta), "{beta}");
}
