//! Tests of BBRv3: each rule with values computed by hand, then the closed loop.

use crate::pipe::{Pipe, Sender};
use crate::script::{RTT, STEP, Script, Step};
use crate::simulator::{MSS, instant};
use fullpipe_units::{Duration, Instant};

const STARTUP: u32 = 0;
const DRAIN: u32 = 1;
const DOWN: u32 = 2;
const CRUISE: u32 = 3;
const REFILL: u32 = 4;
const UP: u32 = 5;
const PROBE_RTT: u32 = 6;

const NOTHING: Duration = Duration::ZERO;
/// The BDP at 10 Mbit/s and 100 ms.
const BDP: u64 = 125_000;

/// An acknowledgement within the round, without a wait.
const AT_ONCE: Step = Step { wait: NOTHING, new_round: false, sent_with: 80 * MSS, ..STEP };
/// A round with 80 segments in flight, less than a BDP (86.3). It is short, so that ProbeRTT does not begin.
const CALM: Step = Step { wait: Duration::from_millis(10), in_flight: 80 * MSS, sent_with: 80 * MSS, ..STEP };

/// A flow that has left Startup at 10 Mbit/s, with many bytes in flight.
fn draining() -> Script {
    let mut script = Script::new("bbr3", 1);
    script.rounds(4, STEP);
    assert_eq!(script.state(), DRAIN);
    script
}

/// A flow in CRUISE at 10 Mbit/s with a round-trip time of 100 ms and a window of two BDP.
fn cruising() -> Script {
    let mut script = draining();
    script.rounds(300, Step { in_flight: 1_000 * MSS, ..AT_ONCE });
    script.ack(Step { in_flight: 80 * MSS, ..AT_ONCE });
    script.ack(Step { in_flight: 80 * MSS, ..AT_ONCE });
    assert_eq!(script.state(), CRUISE);
    script
}

/// A flow that has passed CRUISE and REFILL and probes for bandwidth.
fn probing() -> Script {
    let mut script = cruising();
    script.until(UP, true, CALM);
    script
}

#[test]
fn the_first_rate_has_the_gain_of_startup() {
    // 14 480 bytes per 100 ms are 1 158 400 bit/s, times 2.77; 4 ln 2 = 2.7726.
    let mut script = Script::new("bbr3", 0);
    assert_eq!(script.control.pacing_bps, 3_208_768);
    assert!((script.value("pacing_gain") - 4.0 * std::f64::consts::LN_2).abs() < 0.003);
    assert_eq!(script.value("cwnd_gain"), 2.0);
    script.ack(STEP);
    assert_eq!(script.control.pacing_bps, 27_423_000);
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut script = Script::new("bbr3", 0);
    script.rounds(3, STEP);
    script.ack(Step { rate_bps: 12_500_000, ..STEP });
    script.rounds(2, Step { rate_bps: 15_600_000, ..STEP });
    // Application-limited rounds do not count.
    script.rounds(5, Step { rate_bps: 12_000_000, app_limited: true, ..STEP });
    assert_eq!(script.state(), STARTUP);
    script.ack(Step { rate_bps: 15_600_000, ..STEP });
    assert_eq!(script.state(), DRAIN);
    assert_eq!(script.control.pacing_bps, 7_722_000, "half of 15.6 Mbit/s, less 1 %");
}

/// A recovery in Startup. Its round has this number of acknowledgements with losses, and ends with this number lost of 1000
/// segments.
fn startup_with_losses(events: u32, lost_segments: u64) -> Script {
    let mut script = Script::new("bbr3", 0);
    script.ack(STEP);
    script.lose(1_000 * MSS, 0);
    script.enter_recovery(1_000 * MSS);
    for _ in 0..events {
        script.ack(Step { lost: MSS, ..AT_ONCE });
    }
    script.ack(Step { rate_bps: 20_000_000, lost_since: lost_segments * MSS, ..STEP });
    script
}

#[test]
fn startup_ends_after_a_round_with_six_losses_and_two_percent() {
    assert_eq!(startup_with_losses(6, 21).state(), DRAIN);
    assert_eq!(startup_with_losses(5, 21).state(), STARTUP, "five acknowledgements are not enough");
    assert_eq!(startup_with_losses(6, 20).state(), STARTUP, "exactly 2 % is not above the threshold");
    // The bound is the amount delivered in that round, 20 Mbit/s * 100 ms. It is more than the BDP of the previous bandwidth.
    assert_eq!(startup_with_losses(6, 21).value("inflight_longterm_bytes"), 250_000.0);
}

#[test]
fn losses_are_counted_separately_in_each_round() {
    let mut script = startup_with_losses(4, 21);
    for round in 0..5 {
        for _ in 0..4 {
            script.lose(1_000 * MSS, 0);
            script.ack(Step { lost: MSS, ..AT_ONCE });
        }
        // The rate always grows by more than a quarter, so that it does not end Startup.
        let rate_bps = 25_000_000 << round;
        script.ack(Step { rate_bps, lost_since: 30 * MSS, ..STEP });
        assert_eq!(script.state(), STARTUP);
    }
}

#[test]
fn losses_outside_recovery_do_not_end_startup() {
    let mut script = Script::new("bbr3", 0);
    script.ack(STEP);
    for _ in 0..8 {
        script.ack(Step { lost: MSS, ..AT_ONCE });
    }
    script.ack(Step { rate_bps: 20_000_000, lost_since: 100 * MSS, ..STEP });
    assert_eq!(script.state(), STARTUP);
}

#[test]
fn aggregation_is_kept_for_one_round_in_startup_and_ten_rounds_after_it() {
    let burst = Step { acked: 100 * MSS, ..STEP };
    let mut script = Script::new("bbr3", 0);
    script.control.cwnd_bytes = 1_000 * MSS;
    script.ack(burst);
    assert_eq!(script.value("extra_acked_bytes"), (100 * MSS) as f64);
    script.ack(Step { rate_bps: 20_000_000, ..STEP });
    assert_eq!(script.value("extra_acked_bytes"), (100 * MSS) as f64);
    script.ack(Step { rate_bps: 40_000_000, ..STEP });
    assert!(script.state() == STARTUP && script.value("extra_acked_bytes") < (20 * MSS) as f64);
    let mut script = draining();
    script.rounds(20, STEP);
    script.control.cwnd_bytes = 1_000 * MSS;
    script.ack(burst);
    script.rounds(10, STEP);
    assert_eq!(script.value("extra_acked_bytes"), (100 * MSS) as f64);
    script.ack(STEP);
    assert!(script.value("extra_acked_bytes") < (20 * MSS) as f64);
}

#[test]
fn drain_ends_at_one_bandwidth_delay_product_or_after_three_rounds() {
    // 125 000 bytes are 86.3 segments.
    let mut script = draining();
    assert_eq!(script.control.pacing_bps, 4_950_000);
    script.ack(Step { in_flight: 87 * MSS, ..AT_ONCE });
    assert_eq!(script.state(), DRAIN);
    script.ack(Step { in_flight: BDP, ..AT_ONCE });
    assert_eq!(script.state(), CRUISE, "DOWN ends at once too");
    // The fourth round begins more than three rounds after the start.
    let mut script = draining();
    script.rounds(3, STEP);
    assert_eq!(script.state(), DRAIN);
    script.ack(STEP);
    assert_eq!(script.state(), DOWN);
    assert_eq!(script.control.pacing_bps, 8_910_000, "0.9 * 0.99");
}

#[test]
fn down_lasts_until_one_bandwidth_delay_product_is_in_flight() {
    let mut script = draining();
    script.rounds(4, STEP);
    script.ack(Step { in_flight: BDP + 1, ..AT_ONCE });
    assert_eq!(script.state(), DOWN);
    script.ack(Step { in_flight: BDP, ..AT_ONCE });
    assert_eq!((script.state(), script.control.pacing_bps), (CRUISE, 9_900_000));
}

#[test]
fn the_next_probe_begins_after_two_to_three_seconds() {
    for seed in 0..20 {
        let mut script = Script::new("bbr3", seed);
        script.rounds(4, STEP);
        script.ack(Step { in_flight: BDP, ..AT_ONCE });
        let began = script.now;
        // Rounds of 100 ms: fewer than 63 in three seconds.
        script.until(CRUISE, false, Step { wait: Duration::from_millis(10), new_round: false, ..CALM });
        let waited = script.now.saturating_since(began).as_secs_f64();
        assert!(script.state() == REFILL && waited > 2.0 && waited <= 3.01, "{waited}");
    }
}

#[test]
fn intervals_between_probes_are_random_and_depend_on_the_seed() {
    let wait = |seed| {
        let mut script = Script::new("bbr3", seed);
        script.rounds(4, STEP);
        script.ack(Step { in_flight: BDP, ..AT_ONCE });
        let began = script.now;
        script.until(CRUISE, false, Step { wait: Duration::from_millis(10), new_round: false, ..CALM });
        script.now.saturating_since(began).as_secs_f64()
    };
    assert_eq!(wait(5), wait(5));
    let waits: Vec<f64> = (0..60).map(wait).collect();
    // Uniform over a second: each half has thirty of sixty, with a standard deviation of 3.9. The bound is four of them.
    let early = waits.iter().filter(|wait| **wait < 2.5).count();
    assert!((15..=45).contains(&early), "{waits:?}");
}

#[test]
fn the_next_probe_begins_after_at_most_63_rounds_or_as_many_as_the_path_has_segments() {
    let mut seen = [0; 2];
    for seed in 0..20 {
        let mut script = Script::new("bbr3", seed);
        script.rounds(4, STEP);
        script.ack(Step { in_flight: BDP, ..AT_ONCE });
        let rounds = script.until(CRUISE, false, Step { wait: Duration::from_millis(10), ..CALM });
        seen[usize::from(rounds == 63)] += 1;
        assert!(rounds == 62 || rounds == 63, "{rounds}");
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    // 2 Mbit/s * 100 ms are 25 000 bytes, 17.3 segments: 17 rounds, or 16.
    let mut script = Script::new("bbr3", 1);
    let slow = Step { rate_bps: 2_000_000, in_flight: 10 * MSS, ..STEP };
    script.rounds(4, slow);
    assert_eq!(script.state(), CRUISE);
    let rounds = script.until(CRUISE, false, Step { wait: Duration::from_millis(10), ..slow });
    assert!(rounds == 16 || rounds == 17, "{rounds}");
}

#[test]
fn refill_lasts_one_round_and_the_probe_three_rounds_without_growth() {
    let mut script = cruising();
    script.until(CRUISE, false, CALM);
    assert_eq!((script.state(), script.control.pacing_bps), (REFILL, 9_900_000));
    script.ack(Step { new_round: false, ..CALM });
    assert_eq!(script.state(), REFILL);
    script.ack(CALM);
    assert_eq!((script.state(), script.control.pacing_bps), (UP, 12_375_000));
    assert_eq!(script.value("cwnd_gain"), 2.25);
    script.rounds(2, CALM);
    assert_eq!(script.state(), UP);
    // A quarter more: three rounds again.
    script.ack(Step { rate_bps: 12_500_000, ..CALM });
    script.rounds(2, Step { rate_bps: 12_500_000, ..CALM });
    assert_eq!(script.state(), UP);
    script.ack(Step { rate_bps: 12_500_000, ..CALM });
    // 80 segments are less than the BDP, so DOWN ends with the next acknowledgement.
    assert_eq!(script.state(), DOWN);
    script.ack(Step { rate_bps: 12_500_000, ..CALM });
    assert_eq!(script.state(), CRUISE);
}

#[test]
fn a_probe_has_at_most_2_25_bandwidth_delay_products_and_two_segments_in_flight() {
    let mut script = probing();
    // A segment takes 1.1584 ms, so acknowledgements are on time.
    script.rounds(400, Step { wait: Duration::from_nanos(1_158_400), in_flight: 80 * MSS, ..AT_ONCE });
    assert_eq!(script.state(), UP);
    let aggregated = script.value("extra_acked_bytes");
    assert_eq!(script.control.cwnd_bytes as f64, 281_250.0 + aggregated + 2.0 * MSS as f64);
}

#[test]
fn an_application_limited_probe_continues() {
    let mut script = probing();
    script.rounds(30, Step { app_limited: true, ..CALM });
    assert_eq!(script.state(), UP);
}

#[test]
fn losses_outside_probes_lower_the_short_term_bounds_once_per_round_by_at_most_30_percent() {
    let mut script = cruising();
    let window = script.control.cwnd_bytes as f64;
    assert_eq!(script.value("bw_shortterm_bps"), 0.0, "none");
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    script.ack(Step { lost: MSS, in_flight: 80 * MSS, rate_bps: 9_800_000, ..AT_ONCE });
    assert_eq!(script.value("bw_shortterm_bps"), 0.0, "the round is not over");
    // The best rate of the round was 10 Mbit/s, above 0.7 * 10, so it is the bound. The amount delivered in the round, 125 000
    // bytes, is less than 0.7 of the window.
    script.ack(Step { rate_bps: 9_900_000, ..CALM });
    assert_eq!(script.value("bw_shortterm_bps"), 10_000_000.0);
    assert_eq!(
        script.value("inflight_shortterm_bytes"),
        (0.7 * (window + MSS as f64)).round(),
        "and a segment acknowledged"
    );
    assert_eq!(script.control.cwnd_bytes as f64, script.value("inflight_shortterm_bytes"));
    // The next round begins with 9.9 Mbit/s.
    script.lose(90 * MSS, MSS);
    script.ack(Step { rate_bps: 9_800_000, ..CALM });
    assert_eq!((script.value("bw_shortterm_bps"), script.value("bw_bps")), (9_900_000.0, 9_900_000.0));
    // A round without losses changes nothing. One with losses and low rates reduces the bounds by 30 %.
    script.ack(Step { rate_bps: 1_000_000, ..CALM });
    assert_eq!(script.value("bw_shortterm_bps"), 9_900_000.0);
    script.lose(90 * MSS, 2 * MSS);
    script.ack(Step { rate_bps: 1_000_000, ..CALM });
    assert_eq!(script.value("bw_shortterm_bps"), 6_930_000.0);
    assert_eq!(script.value("max_bw_bps"), 10_000_000.0);
    // The next probe resets the bounds.
    script.until(REFILL, true, CALM);
    assert_eq!((script.value("bw_shortterm_bps"), script.value("inflight_shortterm_bytes")), (0.0, 0.0));
}

#[test]
fn a_round_of_losses_begins_with_its_first_loss() {
    let mut script = cruising();
    script.ack(CALM);
    let begun = script.delivered;
    script.rounds(5, Step { in_flight: 80 * MSS, ..AT_ONCE });
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    // Sent in the round in progress, but before the loss was detected.
    script.ack(Step { lost: MSS, sent_after: Some(begun + 2 * MSS), in_flight: 80 * MSS, ..AT_ONCE });
    assert_eq!(script.value("bw_shortterm_bps"), 0.0);
    script.ack(Step { sent_after: Some(begun + 5 * MSS), in_flight: 80 * MSS, ..AT_ONCE });
    assert!(script.value("bw_shortterm_bps") > 0.0);
}

#[test]
fn a_loss_of_more_than_two_percent_in_a_probe_bounds_the_bytes_in_flight() {
    let mut script = probing();
    // Packets sent with 100 segments in flight: two lost are 2 %, three are more.
    script.lose(100 * MSS, 0);
    script.enter_recovery(100 * MSS);
    script.lose(100 * MSS, 0);
    assert_eq!((script.state(), script.value("inflight_longterm_bytes")), (UP, 0.0));
    script.lose(100 * MSS, 0);
    assert_eq!(script.state(), DOWN);
    // Before the third loss, 99 segments were in flight and two were lost. 2 % of 99 are 1.98, fewer than two: the bound is 99.
    assert_eq!(script.value("inflight_longterm_bytes"), (99 * MSS) as f64);
    // The bound is lowered only once per probe.
    script.lose(50 * MSS, 0);
    assert_eq!(script.value("inflight_longterm_bytes"), (99 * MSS) as f64);
}

#[test]
fn the_losses_that_end_a_probe_do_not_lower_short_term_bounds() {
    let mut script = bounded();
    script.rounds(3, Step { rate_bps: 5_000_000, ..CALM });
    assert_eq!((script.value("bw_shortterm_bps"), script.value("inflight_shortterm_bytes")), (0.0, 0.0));
}

#[test]
fn a_probe_lowers_the_bound_by_at_most_30_percent_of_the_target() {
    let mut script = probing();
    // A loss with ten segments in flight: 0.7 of a BDP, 87 500 bytes, is more.
    script.lose(10 * MSS, 0);
    assert_eq!(script.state(), DOWN);
    assert_eq!(script.value("inflight_longterm_bytes"), 87_500.0);
}

#[test]
fn application_limited_losses_end_the_probe_without_a_bound() {
    let mut script = probing();
    script.lose_limited = true;
    for _ in 0..3 {
        script.lose(100 * MSS, 0);
    }
    assert_eq!((script.state(), script.value("inflight_longterm_bytes")), (DOWN, 0.0));
}

/// A flow whose probe found that 99 segments are too many.
fn bounded() -> Script {
    let mut script = probing();
    script.enter_recovery(100 * MSS);
    for _ in 0..3 {
        script.lose(100 * MSS, 0);
    }
    script.leave_recovery(false);
    assert_eq!(script.value("inflight_longterm_bytes"), (99 * MSS) as f64);
    script
}

#[test]
fn cruise_leaves_15_percent_of_the_bound_unused() {
    let mut script = bounded();
    script.ack(Step { in_flight: 86 * MSS, ..AT_ONCE });
    assert_eq!((script.state(), script.window()), (DOWN, 99));
    // 99 less 14.85 segments are 84.15.
    script.ack(Step { in_flight: 85 * MSS, ..AT_ONCE });
    assert_eq!(script.state(), DOWN);
    script.ack(Step { in_flight: 84 * MSS, ..AT_ONCE });
    assert_eq!(script.state(), CRUISE);
    assert_eq!(script.control.cwnd_bytes, 99 * MSS - (99.0 * MSS as f64 * 0.15).round() as u64);
}

#[test]
fn the_probe_after_too_many_losses_is_short_and_another_follows_if_it_was_safe() {
    let mut script = bounded();
    let low = Step { in_flight: 70 * MSS, sent_with: 70 * MSS, cwnd_limited: false, ..CALM };
    script.until(UP, true, low);
    // The probe ends as soon as the bound is reached.
    script.ack(Step { in_flight: 98 * MSS, new_round: false, ..low });
    assert_eq!(script.state(), UP);
    script.ack(Step { in_flight: 99 * MSS, new_round: false, ..low });
    assert_eq!(script.state(), DOWN);
    // A round later no packet was lost: the next probe holds and raises the bound.
    script.ack(low);
    assert_eq!(script.state(), REFILL);
    script.ack(low);
    assert_eq!(script.state(), UP);
    script.ack(Step { in_flight: 99 * MSS, new_round: false, ..low });
    assert_eq!(script.state(), UP);
    // This probe ends normally: the next probe begins after the normal interval.
    script.until(DOWN, true, low);
    script.rounds(10, low);
    assert_eq!(script.state(), CRUISE);
}

#[test]
fn a_probe_at_the_bound_raises_it_by_1_2_4_segments_per_round() {
    let mut script = bounded();
    let low = Step { in_flight: 70 * MSS, sent_with: 70 * MSS, cwnd_limited: false, ..CALM };
    script.until(UP, true, low);
    script.ack(Step { in_flight: 99 * MSS, new_round: false, ..low });
    script.rounds(2, low);
    assert_eq!(script.state(), UP);
    // The window is at the bound (99) and in use. The slope was set at the start of the probe: a window per segment. The first
    // round of acknowledgements raises the bound by one, the next two by two and four.
    script.control.cwnd_bytes = 99 * MSS;
    let full = Step { in_flight: 98 * MSS, sent_with: 98 * MSS, cwnd_limited: true, ..AT_ONCE };
    let bound = |script: &Script| (script.value("inflight_longterm_bytes") / MSS as f64).round() as u64;
    script.rounds(200, Step { cwnd_limited: false, ..full });
    assert_eq!(bound(&script), 99, "an unused bound does not grow");
    let mut bounds = vec![bound(&script)];
    for round in 0..3 {
        for n in 0..100 {
            script.ack(Step { new_round: round > 0 && n == 0, ..full });
        }
        bounds.push(bound(&script));
    }
    let growth: Vec<u64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(growth, [1, 2, 4], "{bounds:?}");
    // A flow that its bound limits does not take its rate as that of the path, however many rounds have no growth.
    for n in 0..1_000 {
        script.ack(Step { new_round: n % 200 == 0, ..full });
    }
    assert_eq!(script.state(), UP);
}

#[test]
fn a_safe_sample_above_the_bound_raises_the_bound() {
    let mut script = bounded();
    script.ack(Step { sent_with: 110 * MSS, in_flight: 90 * MSS, ..AT_ONCE });
    assert_eq!(script.value("inflight_longterm_bytes"), (110 * MSS) as f64);
    script.ack(Step { sent_with: 120 * MSS, lost_since: 3 * MSS, in_flight: 90 * MSS, ..AT_ONCE });
    assert_eq!(script.value("inflight_longterm_bytes"), (110 * MSS) as f64, "3 of 120 are more than 2 %");
}

/// A probe that ended after three losses of 100 segments, and the window before them.
fn probe_ended_by_losses() -> (Script, u64) {
    let mut script = probing();
    let window = script.control.cwnd_bytes;
    for _ in 0..3 {
        script.lose(100 * MSS, 0);
    }
    script.enter_recovery(100 * MSS);
    script.ack(Step { lost: 3 * MSS, in_flight: 90 * MSS, ..AT_ONCE });
    (script, window)
}

#[test]
fn a_spurious_recovery_restores_the_bounds_and_the_probe() {
    let (mut script, window) = probe_ended_by_losses();
    assert!(script.state() == DOWN && script.control.cwnd_bytes < window);
    script.leave_recovery(true);
    assert_eq!((script.state(), script.value("inflight_longterm_bytes")), (REFILL, 0.0));
    assert_eq!(script.control.cwnd_bytes, window);
    // The same in Startup.
    let mut script = startup_with_losses(6, 21);
    assert_eq!(script.state(), DRAIN);
    script.leave_recovery(true);
    assert_eq!((script.state(), script.value("inflight_longterm_bytes")), (STARTUP, 0.0));
    assert_eq!(script.value("full_bw_reached"), 0.0);
}

#[test]
fn a_spurious_recovery_removes_the_short_term_bounds() {
    let mut script = cruising();
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    script.rounds(2, Step { lost: MSS, ..CALM });
    assert!(script.value("bw_shortterm_bps") > 0.0 && script.value("inflight_shortterm_bytes") > 0.0);
    script.leave_recovery(true);
    assert_eq!((script.value("bw_shortterm_bps"), script.value("inflight_shortterm_bytes")), (0.0, 0.0));
    assert_eq!(script.state(), CRUISE);
}

/// TCP learns from D-SACK that a recovery was spurious after the recovery has ended: the retransmission arrives before the
/// original. The draft keeps the saved values until the next recovery saves others.
#[test]
fn a_recovery_found_spurious_after_its_end_restores_the_bounds() {
    let mut script = cruising();
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    script.rounds(2, Step { lost: MSS, ..CALM });
    script.leave_recovery(false);
    assert!(script.value("bw_shortterm_bps") > 0.0);
    script.leave_recovery(true);
    assert_eq!((script.value("bw_shortterm_bps"), script.value("inflight_shortterm_bytes")), (0.0, 0.0));
    // The same of a bandwidth probe: it is repeated.
    let (mut script, _) = probe_ended_by_losses();
    script.leave_recovery(false);
    script.leave_recovery(true);
    assert_eq!((script.state(), script.value("inflight_longterm_bytes")), (REFILL, 0.0));
    // A recovery is undone once.
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    script.rounds(2, Step { lost: MSS, ..CALM });
    let bound = script.value("bw_shortterm_bps");
    script.leave_recovery(false);
    script.lose(90 * MSS, MSS);
    script.enter_recovery(90 * MSS);
    script.leave_recovery(true);
    assert_eq!(script.value("bw_shortterm_bps"), bound, "the earlier recovery was justified");
}

#[test]
fn a_spurious_recovery_does_not_undo_an_earlier_one() {
    let mut script = bounded();
    script.ack(Step { in_flight: 80 * MSS, ..AT_ONCE });
    script.lose(80 * MSS, 3 * MSS);
    script.enter_recovery(80 * MSS);
    script.leave_recovery(true);
    assert_eq!(script.value("inflight_longterm_bytes"), (99 * MSS) as f64);
}

#[test]
fn a_justified_recovery_restores_only_the_window() {
    let (mut script, window) = probe_ended_by_losses();
    script.leave_recovery(false);
    assert_eq!(script.control.cwnd_bytes, window);
    script.ack(Step { in_flight: 90 * MSS, ..AT_ONCE });
    assert_eq!((script.state(), script.window()), (DOWN, 99), "within the bound");
}

#[test]
fn a_time_out_sets_the_window_to_one_segment() {
    let mut script = cruising();
    let window = script.control.cwnd_bytes;
    script.time_out();
    assert_eq!(script.window(), 1);
    script.ack(Step { in_flight: 0, ..AT_ONCE });
    assert_eq!(script.window(), 4);
    script.leave_recovery(false);
    assert_eq!(script.control.cwnd_bytes, window);
}

#[test]
fn probe_rtt_begins_after_five_seconds_with_half_a_bandwidth_delay_product() {
    let mut script = cruising();
    let step = Step { wait: RTT, rtt: Duration::from_millis(110), ..CALM };
    while script.now + RTT <= Instant::ZERO + Duration::from_secs(5) {
        script.ack(step);
    }
    assert!((DOWN..=UP).contains(&script.state()));
    script.ack(Step { wait: Duration::from_nanos(1), ..step });
    assert_eq!((script.state(), script.value("pacing_gain")), (PROBE_RTT, 1.0));
    // Half of 125 000 bytes; the smallest round-trip time of ten seconds is still 100 ms.
    assert_eq!((script.control.cwnd_bytes, script.value("min_rtt_s")), (62_500, 0.1));
    script.ack(Step { wait: NOTHING, in_flight: 62_500, new_round: false, ..step });
    let low = Step { in_flight: 40 * MSS, rate_bps: 5_000_000, ..step };
    script.ack(Step { wait: Duration::from_millis(100), ..low });
    script.ack(Step { wait: Duration::from_millis(100), ..low });
    assert_eq!(script.state(), PROBE_RTT, "200 ms exactly");
    script.ack(Step { wait: Duration::from_nanos(1), ..low });
    assert_eq!(script.state(), CRUISE);
    // The low rates of ProbeRTT do not count as rates of the path, not even in the next cycle.
    script.ack(low);
    assert_eq!(script.value("bw_bps"), 10_000_000.0);
    // ProbeRTT begins again five seconds after its end.
    let next = Step { wait: Duration::from_nanos(4_900_000_000), ..step };
    script.ack(next);
    assert_ne!(script.state(), PROBE_RTT);
    script.ack(Step { wait: Duration::from_nanos(1), ..next });
    assert_eq!(script.state(), PROBE_RTT);
}

#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut script = Script::new("bbr3", 1);
    script.ack(Step { wait: Duration::from_secs(6), in_flight: 4 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT);
    script.rounds(3, Step { in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), STARTUP);
}

#[test]
fn an_idle_period_skips_probe_rtt_and_restarts_at_the_bandwidth() {
    let mut script = probing();
    assert_eq!(script.control.pacing_bps, 12_375_000);
    script.send_after_idling(Duration::from_secs(30));
    assert_eq!(script.control.pacing_bps, 9_900_000);
    script.ack(Step { in_flight: 3 * MSS, ..CALM });
    assert_ne!(script.state(), PROBE_RTT);
}

#[test]
fn the_bandwidth_is_the_maximum_of_two_cycles() {
    let mut script = cruising();
    // The new cycle keeps the maximum of the previous one, 10 Mbit/s. It ends a round after its probe.
    let slower = Step { rate_bps: 8_000_000, in_flight: 60 * MSS, ..CALM };
    script.until(DOWN, true, slower);
    assert_eq!(script.value("max_bw_bps"), 10_000_000.0);
    script.ack(Step { new_round: false, ..slower });
    assert_eq!(script.value("max_bw_bps"), 10_000_000.0);
    script.ack(slower);
    assert_eq!(script.value("max_bw_bps"), 8_000_000.0);
}

#[test]
fn low_application_limited_samples_do_not_count() {
    let mut script = cruising();
    script.ack(CALM);
    let slower = Step { rate_bps: 8_000_000, in_flight: 60 * MSS, ..CALM };
    script.until(UP, true, Step { rate_bps: 9_000_000, app_limited: true, ..slower });
    script.until(DOWN, true, slower);
    script.ack(slower);
    assert_eq!(script.value("max_bw_bps"), 8_000_000.0);
}

#[test]
fn a_cycle_that_ends_application_limited_does_not_advance_the_filter() {
    let mut script = cruising();
    let slower = Step { rate_bps: 8_000_000, in_flight: 60 * MSS, ..CALM };
    script.until(DOWN, true, slower);
    script.ack(Step { app_limited: true, ..slower });
    script.rounds(3, slower);
    assert_eq!(script.value("max_bw_bps"), 10_000_000.0);
}

/// The path of the benchmark tcp-1: 100 Mbit/s, 20 ms, a queue of this number of BDP.
fn tcp_1(buffer: f64, loss: f64, seed: u64) -> Pipe {
    let mut pipe = Pipe::new(100_000_000, (buffer * 250_000.0) as u64, seed);
    pipe.bottleneck.loss = loss;
    pipe.add("bbr3", Duration::from_millis(20), Instant::ZERO, seed);
    pipe
}

fn sequence(sender: &Sender, from_s: f64) -> Vec<u32> {
    sender.states.iter().filter(|(at, _)| *at >= from_s).map(|(_, state)| *state).collect()
}

#[test]
fn states_follow_in_the_order_of_the_draft() {
    let mut pipe = tcp_1(4.0, 0.0, 1);
    pipe.run(20.0);
    let states = sequence(&pipe.senders[0], 0.0);
    assert_eq!(states[..2], [STARTUP, DRAIN]);
    // At the end of Drain less than a BDP is in flight, so DOWN ends with the acknowledgement that began it.
    for pair in states[2..].windows(2) {
        let follows: &[u32] = match pair[0] {
            DOWN => &[CRUISE, PROBE_RTT],
            CRUISE => &[REFILL, PROBE_RTT],
            REFILL => &[UP, PROBE_RTT],
            UP => &[DOWN, PROBE_RTT],
            _ => &[CRUISE],
        };
        assert!(follows.contains(&pair[1]), "{states:?}");
    }
    // The BDP is 173 segments: a probe begins 62 or 63 rounds after the end of the last. Rounds take 20.1 ms, and up to 25 ms
    // while the queue of the probe drains.
    let probes = pipe.senders[0].stays(UP);
    assert!(probes.len() > 10);
    let downs = pipe.senders[0].stays(DOWN);
    for (from, to) in pipe.senders[0].stays(CRUISE).iter().skip(1).take(10) {
        let down = downs.iter().rfind(|down| down.1 <= from + 1e-9);
        // For CRUISE after ProbeRTT, the time counts from the end of ProbeRTT.
        let begin = down.filter(|down| (down.1 - from).abs() < 1e-9).map_or(*from, |down| down.0);
        let probe_rtt_cut = pipe.senders[0].stays(PROBE_RTT).iter().any(|stay| (stay.0 - to).abs() < 1e-9);
        let rounds = (to - begin) / 0.0201;
        assert!(probe_rtt_cut || (61.0..=67.0).contains(&rounds), "{rounds}");
    }
    for (from, to) in pipe.senders[0].stays(REFILL) {
        assert!((0.018..0.03).contains(&(to - from)), "a round: {from} {to}");
    }
}

#[test]
fn a_single_flow_keeps_the_queue_small_and_the_link_busy() {
    // A probe queues a quarter of the link's rate for the three rounds without growth and the round that reports them. This is at
    // most 1.25 - 0.01 less 1 per round trip, three quarters of a BDP. DOWN drains 0.11 BDP per round trip in 7 rounds: a
    // triangle of 0.75 over 10 of 70 rounds has a mean of 0.055 BDP. The goodput is lower by half the rate for 0.2 s of 5.2 s
    // (2 %) and by at most the margin of 1 %.
    for seed in 1..=3 {
        let mut pipe = tcp_1(1.0, 0.0, seed);
        pipe.run(5.0);
        let queue = pipe.mean_queue_bytes(35.0) / 250_000.0;
        assert!(queue < 0.1 && queue > 0.03, "{queue} BDP");
        let goodput = pipe.goodputs_bps(65.0)[0] / 100e6;
        assert!(goodput > 0.96 && goodput < 0.98, "{goodput}");
        let bandwidth = pipe.senders[0].value("bw_bps");
        assert!((bandwidth / 100e6 - 1.0).abs() < 0.02, "{bandwidth}");
    }
}

#[test]
fn probe_rtt_begins_every_five_seconds_and_lasts_200_ms() {
    let mut pipe = tcp_1(4.0, 0.0, 2);
    let mut most_in_flight = 0;
    pipe.run_watching(instant(30.0), |now, sender, _| {
        let stay = sender.stays(PROBE_RTT).last().copied();
        if stay.is_some_and(|(from, to)| to.is_infinite() && now.as_secs_f64() > from + 0.03) {
            most_in_flight = most_in_flight.max(sender.in_flight_bytes);
        }
    });
    let stays = pipe.senders[0].stays(PROBE_RTT);
    // Every 5 s + 0.21 s.
    assert_eq!(stays.len(), 5, "{stays:?}");
    assert!((stays[0].0 - 5.0).abs() < 0.01, "{stays:?}");
    for (from, to) in &stays {
        // Half of the bytes in flight leave in half a round-trip time; then 200 ms pass.
        assert!((0.2..0.22).contains(&(to - from)), "{stays:?}");
    }
    for pair in stays.windows(2) {
        let wait = pair[1].0 - pair[0].1;
        assert!((5.0..5.001).contains(&wait), "{stays:?}");
    }
    let half = pipe.bdp_bytes(0) / 2.0;
    assert!(most_in_flight as f64 <= half * 1.02 && most_in_flight as f64 > half * 0.9, "{most_in_flight}");
}

#[test]
fn a_shallow_buffer_is_detected_and_not_filled_again() {
    // A queue of a fifth of a BDP overflows when a probe has 1.2 BDP in flight. The bound is that, plus the losses that are not
    // yet detected, 2 % of it. Probes lose that in one or two of sixty rounds: 2/60 of 2 %, and twice that for losses before the
    // end of the probe is detected.
    let mut pipe = tcp_1(0.2, 0.0, 1);
    pipe.run(10.0);
    let (lost, delivered) = (pipe.senders[0].lost_bytes(), pipe.senders[0].delivered_bytes());
    let goodput = pipe.goodputs_bps(60.0)[0] / 100e6;
    let sender = &pipe.senders[0];
    let bound = sender.value("inflight_longterm_bytes") / pipe.bdp_bytes(0);
    assert!((1.2..1.26).contains(&bound), "{bound}");
    let share = (sender.lost_bytes() - lost) as f64 / (sender.delivered_bytes() - delivered) as f64;
    assert!(share > 0.0 && share < 0.0014, "{share}");
    assert!(goodput > 0.95, "{goodput}");
}

#[test]
fn one_percent_loss_costs_less_than_in_the_model_of_the_draft() {
    // The draft's model: a round with 1 % loss reduces the rate by 1 %, so after N rounds 0.99^N of it remains, until the next
    // probe restores it. Over 63 rounds the mean is (1 - 0.99^63) / (63 * 0.01) = 0.745. The actual reduction is smaller, because
    // the bound is the best of a round, not its mean.
    let mut clean = tcp_1(1.0, 0.0, 1);
    clean.run(5.0);
    let without = clean.goodputs_bps(65.0)[0];
    let mut pipe = tcp_1(1.0, 0.01, 1);
    pipe.run(5.0);
    let with = pipe.goodputs_bps(65.0)[0];
    assert!(with > 0.745 * without && with < 0.98 * without, "{}", with / without);
}

#[test]
fn ten_times_the_rate_is_detected_in_one_probe() {
    let mut pipe = Pipe::new(10_000_000, 250_000, 1);
    let flow = pipe.add("bbr3", Duration::from_millis(20), Instant::ZERO, 1);
    pipe.run(4.0);
    // The next probe begins within 17 rounds (the path holds 18 segments). Each of its rounds has 1.2375 times the rate of the
    // last: ln 10 / ln 1.2375 = 10.8 rounds.
    pipe.bottleneck.rate_bps = 100_000_000;
    pipe.run(4.2);
    assert!(pipe.senders[flow].value("bw_bps") < 99e6);
    pipe.run(5.0);
    assert!(pipe.senders[flow].value("bw_bps") > 98e6, "{}", pipe.senders[flow].value("bw_bps"));
}

#[test]
fn a_tenth_of_the_rate_is_detected_at_once_by_losses_and_in_two_cycles_by_the_bandwidth() {
    let mut pipe = tcp_1(1.0, 0.0, 1);
    // ProbeRTT, which resets the short-term bounds, has just ended.
    pipe.run(5.4);
    pipe.bottleneck.rate_bps = 10_000_000;
    // The queue (250 kB, 200 ms at the new rate) overflows within 30 ms. The loss is detected 200 ms later, and each round of
    // 220 ms with losses reduces rate and window by 30 %. After two rounds, less than half of each remains, 230 kB. This fits, so
    // the losses end.
    pipe.run(6.4);
    assert!(pipe.senders[0].value("bw_bps") < 50e6, "{}", pipe.senders[0].value("bw_bps"));
    let drops = pipe.bottleneck.drops;
    pipe.run(7.1);
    assert_eq!(pipe.bottleneck.drops, drops);
    // Cycles of three seconds and a probe.
    pipe.run(18.0);
    let bandwidth = pipe.senders[0].value("max_bw_bps");
    assert!((bandwidth / 10e6 - 1.0).abs() < 0.02, "{bandwidth}");
}

/// A path of 100 Mbit/s with a queue of twenty BDP. Its rate falls to a tenth at this time.
fn a_tenth_behind_a_deep_queue(rtt_ms: u64, falls_at: f64, seed: u64) -> Pipe {
    let mut pipe = Pipe::new(100_000_000, 20 * 12_500 * rtt_ms, seed);
    pipe.add("bbr3", Duration::from_millis(rtt_ms), Instant::ZERO, seed);
    pipe.run(falls_at);
    pipe.bottleneck.rate_bps = 10_000_000;
    pipe
}

#[test]
fn a_tenth_of_the_rate_is_detected_in_two_cycles_without_losses() {
    // 3 ms hold 37 500 bytes, 25 segments. Two BDP of the old rate in flight make rounds of 60 ms. REFILL begins 24 to 26 rounds
    // after the end of UP and lasts one round. UP lasts three without growth. A cycle thus has 28 to 30 rounds or 1.7 to 1.8 s,
    // slightly more since UP has 2.25 BDP in flight. In each cycle the filter advances once, and the second advance discards the
    // old rate. ProbeRTT has just ended, and two cycles fit before the next.
    for seed in 1..=5 {
        let falls_at = 5.4;
        let mut pipe = a_tenth_behind_a_deep_queue(3, falls_at, seed);
        let mut found = None;
        pipe.run_watching(instant(falls_at + 4.0), |now, sender, _| {
            if sender.value("max_bw_bps") < 11e6 {
                found.get_or_insert(now.as_secs_f64() - falls_at);
            }
        });
        let found = found.expect("the rate is found within two cycles");
        assert!(found > 1.7 && found < 4.0, "seed {seed}: {found}");
        let bandwidth = pipe.senders[0].value("bw_bps");
        assert!((bandwidth / 10e6 - 1.0).abs() < 0.02, "{bandwidth}");
        assert_eq!(pipe.bottleneck.drops, 0);
    }
}

#[test]
fn a_tenth_of_the_rate_is_not_detected_if_probe_rtt_interrupts_every_cycle() {
    // 20 ms: rounds of 0.4 s, so that a cycle takes two to three seconds and five rounds, more than four. One cycle fits between
    // ProbeRTTs five seconds apart, and its advance keeps the rates before the fall. ProbeRTT itself, with half a BDP of the old
    // rate in flight, measures five times the round-trip time, which is the smallest after ten seconds. From then on a round
    // takes two seconds or more and a cycle twelve, and ProbeRTT begins before its end.
    for seed in 1..=3 {
        let mut pipe = a_tenth_behind_a_deep_queue(20, 9.9, seed);
        pipe.run(14.0);
        assert!(pipe.senders[0].value("min_rtt_s") < 0.022);
        pipe.run(20.5);
        let smallest = pipe.senders[0].value("min_rtt_s");
        assert!(smallest > 0.095 && smallest < 0.105, "{smallest}");
        pipe.run(60.0);
        let bandwidth = pipe.senders[0].value("max_bw_bps");
        assert!(bandwidth > 98e6, "seed {seed}: {bandwidth}");
    }
}

#[test]
fn four_segments_stay_in_flight_on_a_path_of_less_than_a_segment() {
    // 100 kbit/s and 20 ms hold 250 bytes. The pacing rate is still correct, and the link is busy.
    let mut pipe = Pipe::new(100_000, 1_000_000, 1);
    pipe.add("bbr3", Duration::from_millis(20), Instant::ZERO, 1);
    pipe.run(30.0);
    let goodput = pipe.goodputs_bps(120.0)[0];
    let sender = &pipe.senders[0];
    assert!(sender.control.cwnd_bytes >= 4 * MSS);
    assert!((sender.value("bw_bps") / 100e3 - 1.0).abs() < 0.02, "{}", sender.value("bw_bps"));
    assert!(goodput > 95e3, "{goodput}");
}
