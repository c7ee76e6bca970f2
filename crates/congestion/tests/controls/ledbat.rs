//! Tests of LEDBAT++: each rule with values computed by hand, then the closed loop.

use crate::pipe::{Pipe, Sender};
use crate::script::{RTT, STEP, Script, Step};
use crate::simulator::{MSS, instant};
use fullpipe_units::{Duration, Instant};

const SLOW_START: u32 = 0;
const AVOIDANCE: u32 = 1;
const SLOWDOWN: u32 = 2;
const RESTART: u32 = 3;

/// Acknowledgements of single segments with a round-trip time in milliseconds, at one time. The last one ends the round.
fn acks(script: &mut Script, milliseconds: u64, count: u32) {
    for number in 1..=count {
        let rtt = Duration::from_millis(milliseconds);
        script.ack(Step { wait: Duration::ZERO, rtt, new_round: number == count, ..STEP });
    }
}

/// A flow in congestion avoidance on a path of 100 ms, before its first slowdown.
fn avoiding(segments: u64) -> Script {
    let mut script = Script::new("ledbat", 0);
    // 46 ms are more than three quarters of 60 ms, in the smallest of four samples.
    acks(&mut script, 146, 4);
    assert_eq!(script.state(), AVOIDANCE);
    script.control.cwnd_bytes = segments * MSS;
    script.control.ssthresh_bytes = 2 * MSS;
    script
}

#[test]
fn the_growth_in_slow_start_is_the_gain_times_the_bytes_acknowledged() {
    // Twice the target over the base, rounded up: 120/100 is 2, 120/20 is 6, 120/5 is 24 and limited to 16, 120/300 is 1.
    for (base, divisor) in [(100, 2), (20, 6), (5, 16), (300, 1), (120, 1), (60, 2), (61, 2), (59, 3)] {
        let mut script = Script::new("ledbat", 0);
        assert_eq!(script.window(), 2, "two segments at the start");
        // The handshake measured 100 ms, which a smaller base replaces and a larger one does not.
        if base > 100 {
            script.controller = fullpipe_congestion::catalogue::create("ledbat", &Default::default()).expect("known");
        }
        acks(&mut script, base, 48);
        assert_eq!(script.control.cwnd_bytes, 2 * MSS + 48 * MSS / divisor, "{base} ms");
    }
}

#[test]
fn slow_start_ends_above_three_quarters_of_the_target() {
    let mut script = Script::new("ledbat", 0);
    acks(&mut script, 145, 8);
    assert_eq!(script.state(), SLOW_START);
    // Three larger samples are not the smallest of four.
    acks(&mut script, 146, 3);
    assert_eq!(script.state(), SLOW_START);
    acks(&mut script, 146, 1);
    assert_eq!(script.state(), AVOIDANCE);
    assert_eq!(script.control.ssthresh_bytes, script.control.cwnd_bytes);
}

#[test]
fn below_the_target_the_window_grows_by_the_gain_per_round_trip() {
    // GAIN is 1/2: a hundred segments acknowledged are half a segment, two hundred are one.
    let mut script = avoiding(100);
    acks(&mut script, 160, 199);
    assert_eq!(script.control.cwnd_bytes, 100 * MSS);
    acks(&mut script, 160, 1);
    assert_eq!(script.control.cwnd_bytes, 101 * MSS);
}

#[test]
fn above_the_target_the_window_shrinks_in_proportion_once_per_round_trip() {
    // Queue delay d: 100 segments change by 0.5 - 100 (d/60 - 1). At 66 ms this is -9.5; at 120 ms -99.5, limited to -50; at
    // 60.3 ms the decrease of 0.5 equals the growth.
    for (microseconds, segments) in [(66_000, 90.5), (60_300, 100.0), (61_500, 98.0), (120_000, 50.0), (400_000, 50.0)]
    {
        let mut script = avoiding(100);
        for number in 1..=10 {
            let rtt = RTT + Duration::from_micros(microseconds);
            script.ack(Step { wait: Duration::ZERO, rtt, new_round: number == 10, ..STEP });
        }
        let window = script.control.cwnd_bytes as f64 / MSS as f64;
        assert!((window - segments).abs() < 0.01, "{microseconds} us: {window}");
    }
}

#[test]
fn the_base_is_the_smallest_round_trip_time_of_ten_minutes() {
    let mut script = Script::new("ledbat", 0);
    for minute in 1..=9 {
        script.ack(Step { wait: Duration::from_secs(60), rtt: RTT * 2, ..STEP });
        assert!((script.value("base_rtt_s") - 0.1).abs() < 1e-9, "minute {minute}");
    }
    script.ack(Step { wait: Duration::from_secs(60), rtt: RTT * 2, ..STEP });
    assert!((script.value("base_rtt_s") - 0.2).abs() < 1e-9);
    script.ack(Step { wait: Duration::from_secs(3600), rtt: RTT * 3, ..STEP });
    assert!((script.value("base_rtt_s") - 0.3).abs() < 1e-9, "an idle hour empties the history");
}

#[test]
fn slowdowns_take_a_tenth_of_the_time() {
    let mut script = avoiding(40);
    let rtt = Duration::from_millis(100);
    let wait = |milliseconds| Step { wait: Duration::from_millis(milliseconds), rtt, new_round: true, ..STEP };
    // The first slowdown begins two round trips after slow start. The smoothed round-trip time of the script is that of the
    // sample, which was 146 ms.
    script.ack(wait(291));
    assert_eq!(script.state(), AVOIDANCE);
    script.ack(wait(1));
    assert_eq!((script.state(), script.window()), (SLOWDOWN, 2));
    // It lasts two round trips of 100 ms. Then slow start returns to 40 segments: with GAIN 1/2 after 76 segments acknowledged.
    script.ack(wait(199));
    assert_eq!((script.state(), script.window()), (SLOWDOWN, 2));
    script.ack(wait(1));
    assert_eq!((script.state(), script.window()), (RESTART, 2));
    for number in 1..=76 {
        assert_eq!(script.state(), RESTART, "segment {number}");
        script.ack(wait(10));
    }
    assert_eq!((script.state(), script.window()), (AVOIDANCE, 40));
    // 200 ms and 760 ms: 960 ms. The next slowdown begins after nine times as long.
    script.ack(wait(8639));
    assert_eq!(script.state(), AVOIDANCE);
    script.ack(wait(1));
    assert_eq!(script.state(), SLOWDOWN);
}

#[test]
fn losses_halve_the_window_also_that_after_a_slowdown() {
    let mut script = avoiding(40);
    script.enter_recovery(40 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 20 * MSS);
    script.control.cwnd_bytes = 20 * MSS;
    acks(&mut script, 100, 10);
    assert_eq!(script.window(), 20, "no change in recovery");
    script.leave_recovery(false);
    // A packet of the window before a slowdown is lost: slow start returns to half of that window.
    let mut script = avoiding(40);
    script.ack(Step { wait: RTT * 3, ..STEP });
    assert_eq!(script.state(), SLOWDOWN);
    script.enter_recovery(40 * MSS);
    script.control.cwnd_bytes = script.control.ssthresh_bytes;
    assert_eq!(script.window(), 2);
    script.leave_recovery(false);
    assert_eq!((script.window(), script.control.ssthresh_bytes), (2, 20 * MSS));
}

/// The mean queue delay of a single flow in congestion avoidance, in seconds, from 20 to 60 s.
fn queue_delay_s(pipe: &mut Pipe) -> f64 {
    pipe.run(20.0);
    let (mut sum, mut count) = (0.0, 0);
    pipe.run_watching(instant(60.0), |now, sender: &Sender, bottleneck| {
        if sender.value("state") == 1.0 {
            sum += bottleneck.queue_bytes(now) as f64 * 8.0 / bottleneck.rate_bps as f64;
            count += 1;
        }
    });
    sum / f64::from(count)
}

#[test]
fn a_single_flow_keeps_the_target_in_the_queue() {
    // In equilibrium the decrease W (d/T - 1) equals GAIN: d = T (1 + GAIN / W). At 10 Mbit/s and 40 ms GAIN is 1/3 and W is
    // 0.1 s of the link, 86 segments: 60.2 ms; at 20 Mbit/s and 100 ms GAIN is 1/2, W 276: 60.1 ms. The window follows within a
    // segment (1.2 and 0.6 ms), but is below its equilibrium for some time after each slowdown, which returns to the old window.
    for (rate_bps, milliseconds) in [(10_000_000, 40), (20_000_000, 100)] {
        let mut pipe = Pipe::new(rate_bps, 10_000_000, 1);
        pipe.add("ledbat", Duration::from_millis(milliseconds), Instant::ZERO, 1);
        let delay_s = queue_delay_s(&mut pipe);
        assert!((0.055..0.062).contains(&delay_s), "{rate_bps}: {delay_s}");
        assert_eq!(pipe.bottleneck.drops, 0);
        // A tenth of the time are slowdowns.
        let stays = pipe.senders[0].stays(SLOWDOWN).into_iter().chain(pipe.senders[0].stays(RESTART));
        let slow: f64 = stays.filter(|(from, _)| *from > 20.0 && *from < 60.0).map(|(from, to)| to - from).sum();
        assert!((2.0..6.0).contains(&slow), "{slow} of 40 s");
    }
}

#[test]
fn a_later_flow_gets_its_share_and_does_not_starve_the_first() {
    // The second flow begins on a full queue and would measure 100 ms as its base. The slowdowns correct it.
    let mut pipe = Pipe::new(10_000_000, 10_000_000, 1);
    pipe.add("ledbat", Duration::from_millis(40), Instant::ZERO, 1);
    pipe.add("ledbat", Duration::from_millis(40), instant(30.0), 2);
    pipe.run(120.0);
    let rates = pipe.goodputs_bps(400.0);
    let share = rates[1] / (rates[0] + rates[1]);
    assert!((0.35..0.65).contains(&share), "{share}");
}

#[test]
fn ledbat_yields_to_reno() {
    // Buffer of 200 ms: Reno fills it, and the target is exceeded most of the time.
    let mut pipe = Pipe::new(10_000_000, 250_000, 1);
    pipe.add("ledbat", Duration::from_millis(40), Instant::ZERO, 1);
    pipe.add("newreno", Duration::from_millis(40), instant(5.0), 2);
    pipe.run(60.0);
    let rates = pipe.goodputs_bps(200.0);
    let share = rates[0] / (rates[0] + rates[1]);
    assert!(share < 0.1, "{share}");
    assert!(share > 0.0);
}
