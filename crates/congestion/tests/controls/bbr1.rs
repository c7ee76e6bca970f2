//! Tests of BBRv1: each rule with values computed by hand, then the closed loop.

use crate::pipe::Pipe;
use crate::script::{RTT, STEP, Script, Step};
use crate::simulator::{MSS, instant};
use fullpipe_congestion::WindowState;
use fullpipe_congestion::catalogue::{ControlOptions, create};
use fullpipe_units::{Duration, Instant};

const STARTUP: u32 = 0;
const DRAIN: u32 = 1;
const PROBE_BW: u32 = 2;
const PROBE_RTT: u32 = 3;

const NOTHING: Duration = Duration::ZERO;

/// A flow that has left STARTUP at 10 Mbit/s and is in DRAIN.
fn draining() -> Script {
    let mut script = Script::new("bbr1", 1);
    script.rounds(4, STEP);
    assert_eq!(script.state(), DRAIN);
    script
}

/// A flow in PROBE_BW with a bandwidth of 10 Mbit/s and a round-trip time of 100 ms: the BDP is 125 000 bytes.
fn probing(seed: u64) -> Script {
    let mut script = Script::new("bbr1", seed);
    script.rounds(4, STEP);
    script.ack(Step { in_flight: 10 * MSS, wait: NOTHING, new_round: false, ..STEP });
    assert_eq!(script.state(), PROBE_BW);
    script
}

#[test]
fn the_first_rate_is_a_window_per_round_trip_times_two_over_ln_two() {
    // 14 480 bytes per 100 ms are 1 158 400 bit/s, times 2.885.
    let script = Script::new("bbr1", 0);
    assert_eq!(script.control.pacing_bps, 3_341_984);
    assert_eq!(script.value("pacing_gain"), 2.885);
    assert!((2.885 - 2.0 / std::f64::consts::LN_2).abs() < 0.0005);
    // Above 1.2 Mbit/s a burst has two segments.
    assert_eq!(script.control.send_quantum_bytes, 2 * MSS);
    // At a tenth of that rate, it has one.
    let mut controller = create("bbr1", &ControlOptions::default()).expect("a known name");
    let mut control = WindowState::new(MSS, 10 * MSS);
    controller.on_established(&mut control, Instant::ZERO, Some(RTT * 10));
    assert_eq!((control.pacing_bps, control.send_quantum_bytes), (334_198, MSS));
}

#[test]
fn startup_doubles_and_ends_after_three_rounds_without_a_quarter_more() {
    let mut script = Script::new("bbr1", 0);
    script.ack(STEP);
    // 2.885 times 10 Mbit/s, less 1 %: 28.5615 Mbit/s.
    assert_eq!(script.control.pacing_bps, 28_561_500);
    script.rounds(2, Step { rate_bps: 10_500_000, ..STEP });
    // Growth by exactly a quarter of 10 Mbit/s counts, so the count begins anew.
    script.ack(Step { rate_bps: 12_500_000, ..STEP });
    assert_eq!(script.state(), STARTUP);
    // 15.6 is less than 15.625.
    script.rounds(2, Step { rate_bps: 15_600_000, ..STEP });
    assert_eq!(script.state(), STARTUP);
    script.ack(Step { rate_bps: 15_600_000, ..STEP });
    assert_eq!(script.state(), DRAIN);
    // 15.6 Mbit/s / 2.885, less 1 %.
    assert_eq!(script.control.pacing_bps, (15_600_000.0 * 0.99 / 2.885) as u64);
}

#[test]
fn application_limited_rounds_do_not_end_startup() {
    let mut script = Script::new("bbr1", 0);
    script.rounds(20, Step { app_limited: true, ..STEP });
    assert_eq!(script.state(), STARTUP);
    // A sample above the maximum counts even if it is application-limited.
    assert_eq!(script.value("bw_bps"), 10_000_000.0);
    script.ack(Step { rate_bps: 11_000_000, app_limited: true, ..STEP });
    script.ack(Step { rate_bps: 9_000_000, app_limited: true, ..STEP });
    assert_eq!(script.value("bw_bps"), 11_000_000.0);
}

#[test]
fn drain_ends_at_one_bandwidth_delay_product_in_flight() {
    // 10 Mbit/s * 100 ms = 125 000 bytes. With three quanta of two segments these are 133 688 bytes, 92.3 segments: 93, and as an
    // even number 94.
    let mut script = draining();
    script.ack(Step { in_flight: 95 * MSS, wait: NOTHING, new_round: false, ..STEP });
    assert_eq!(script.state(), DRAIN);
    script.ack(Step { in_flight: 94 * MSS, wait: NOTHING, new_round: false, ..STEP });
    assert_eq!(script.state(), PROBE_BW);
    assert_eq!(script.control.ssthresh_bytes, 94 * MSS);
}

#[test]
fn probe_bw_begins_at_any_phase_except_the_second() {
    let mut begun = [0; 8];
    for seed in 0..700 {
        begun[probing(seed).value("cycle_phase") as usize] += 1;
    }
    assert_eq!(begun[1], 0);
    // Seven phases, each with probability 1/7: mean 100, standard deviation 9.3. The bounds are four of them on either side.
    assert!(begun.iter().enumerate().all(|(phase, count)| phase == 1 || (63..=137).contains(count)), "{begun:?}");
}

#[test]
fn the_first_phase_depends_on_the_seed() {
    let phases = |seed| probing(seed).value("cycle_phase");
    assert_eq!(phases(7), phases(7));
    assert!((0..20).any(|seed| phases(seed) != phases(0)));
}

/// Runs to the first phase (gain 1.25). The next acknowledgement may arrive at any time.
fn at_first_phase() -> Script {
    let mut script = probing(3);
    while script.value("pacing_gain") != 1.25 {
        script.ack(Step { wait: RTT + Duration::from_nanos(1), in_flight: 90 * MSS, ..STEP });
    }
    script
}

#[test]
fn gains_follow_the_cycle_of_probe_bw() {
    let mut script = at_first_phase();
    // The gain 1.25 lasts until 1.25 BDP are in flight, with 3 quanta (8 688 bytes), rounded to even segments, plus two: 156 250
    // + 8 688 = 164 938 bytes, 113.9 segments, 114, 116.
    let later = RTT + Duration::from_nanos(1);
    script.ack(Step { wait: later, in_flight: 114 * MSS, ..STEP });
    assert_eq!(script.value("pacing_gain"), 1.25, "115 segments were in flight");
    script.ack(Step { wait: NOTHING, in_flight: 115 * MSS, ..STEP });
    assert_eq!(script.value("pacing_gain"), 0.75, "116 were");
    assert_eq!(script.control.pacing_bps, 7_425_000);
    // The gain 0.75 lasts at most a round-trip time: 95 in flight are above 94.
    script.ack(Step { wait: RTT, in_flight: 95 * MSS, ..STEP });
    assert_eq!(script.value("pacing_gain"), 0.75);
    script.ack(Step { wait: Duration::from_nanos(1), in_flight: 95 * MSS, ..STEP });
    assert_eq!(script.value("cycle_phase"), 2.0);
    // Six phases with gain 1, each slightly longer than a round-trip time.
    for phase in 2..8 {
        assert_eq!((script.value("cycle_phase"), script.value("pacing_gain")), (f64::from(phase), 1.0));
        assert_eq!(script.control.pacing_bps, 9_900_000);
        script.ack(Step { wait: RTT, in_flight: 90 * MSS, ..STEP });
        script.ack(Step { wait: Duration::from_nanos(1), in_flight: 90 * MSS, new_round: false, ..STEP });
    }
    assert_eq!(script.value("pacing_gain"), 1.25);
    assert_eq!(script.control.pacing_bps, 12_375_000);
}

#[test]
fn a_loss_ends_the_probe_and_an_empty_queue_ends_the_drain_phase() {
    let mut script = at_first_phase();
    let later = RTT + Duration::from_nanos(1);
    script.ack(Step { wait: NOTHING, lost: MSS, in_flight: 90 * MSS, ..STEP });
    assert_eq!(script.value("pacing_gain"), 1.25, "a round-trip time has not passed");
    script.ack(Step { wait: later, lost: MSS, in_flight: 90 * MSS, ..STEP });
    assert_eq!(script.value("pacing_gain"), 0.75);
    // 94 were in flight before the acknowledgement.
    script.ack(Step { wait: NOTHING, in_flight: 93 * MSS, ..STEP });
    assert_eq!(script.value("cycle_phase"), 2.0);
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds() {
    let mut script = probing(1);
    script.ack(Step { rate_bps: 20_000_000, ..STEP });
    for _ in 0..10 {
        script.ack(Step { rate_bps: 8_000_000, ..STEP });
        assert_eq!(script.value("bw_bps"), 20_000_000.0);
    }
    script.ack(Step { rate_bps: 8_000_000, ..STEP });
    assert_eq!(script.value("bw_bps"), 8_000_000.0);
}

#[test]
fn the_window_is_two_bandwidth_delay_products() {
    // 250 000 bytes, three quanta and the largest excess of acknowledgements, one segment, are 260 136 bytes: 179.7 segments,
    // 180; two more in the first phase. A segment takes 1.1584 ms, so acknowledgements are on time.
    let mut script = probing(1);
    let mut first_phase = false;
    for n in 0..2_000 {
        let round = n % 87 == 0;
        let wait = if n == 0 { RTT } else { Duration::from_nanos(1_158_400) };
        script.ack(Step { wait, in_flight: 120 * MSS, new_round: round, ..STEP });
        // The preceding acknowledgements were aggregated; they expire after ten rounds.
        if n < 1_000 {
            continue;
        }
        let first = script.value("cycle_phase") == 0.0;
        assert!(script.window() == 180 || first && (180..=182).contains(&script.window()), "{}", script.window());
        first_phase |= script.window() == 182;
    }
    assert!(first_phase);
}

#[test]
fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut script = probing(1);
    script.rounds(300, Step { wait: NOTHING, in_flight: 90 * MSS, new_round: false, ..STEP });
    let before = script.window();
    assert!(before > 150);
    script.lose(90 * MSS, 0);
    script.enter_recovery(90 * MSS);
    script.ack(Step { wait: NOTHING, lost: MSS, in_flight: 50 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 51, "the bytes in flight plus the bytes delivered");
    script.ack(Step { wait: NOTHING, in_flight: 52 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 53);
    // A packet that was sent before the recovery, but after the last round began, does not end the first round of the recovery.
    let sent_after = Some(script.delivered - 3 * MSS);
    script.ack(Step { wait: NOTHING, in_flight: 51 * MSS, sent_after, new_round: false, ..STEP });
    script.ack(Step { wait: NOTHING, in_flight: 60 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 61);
    script.control.cwnd_bytes = 53 * MSS;
    // A loss reduces the window by a segment, but not below what is conserved.
    script.ack(Step { wait: NOTHING, lost: 5 * MSS, in_flight: 47 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 48);
    // After a round the window grows by the bytes delivered.
    script.ack(Step { in_flight: 40 * MSS, ..STEP });
    assert_eq!(script.window(), 49);
    script.ack(Step { wait: NOTHING, acked: 10 * MSS, in_flight: 30 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 59);
    script.leave_recovery(false);
    script.ack(Step { wait: NOTHING, in_flight: 40 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), before);
}

#[test]
fn a_time_out_sets_the_window_to_one_segment_and_its_end_restores_it() {
    let mut script = probing(1);
    script.rounds(300, Step { wait: NOTHING, in_flight: 90 * MSS, new_round: false, ..STEP });
    let before = script.window();
    script.time_out();
    assert_eq!(script.window(), 1);
    script.ack(Step { wait: NOTHING, in_flight: 0, new_round: false, ..STEP });
    assert_eq!(script.window(), 4, "at least four");
    script.ack(Step { wait: NOTHING, acked: 2 * MSS, in_flight: 2 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 6);
    script.leave_recovery(false);
    script.ack(Step { wait: NOTHING, in_flight: 4 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), before);
}

#[test]
fn probe_rtt_begins_after_ten_seconds_without_a_smaller_sample() {
    let mut script = probing(1);
    let mark = script.now;
    // The smallest sample, 100 ms, is that of the handshake at time zero.
    let step = Step { wait: RTT, in_flight: 90 * MSS, rtt: Duration::from_millis(110), ..STEP };
    while script.now + RTT <= Instant::ZERO + Duration::from_secs(10) {
        script.ack(step);
    }
    assert!(script.now > mark && script.state() == PROBE_BW);
    assert_eq!(script.value("min_rtt_s"), 0.1);
    let before = script.window();
    script.ack(Step { wait: Duration::from_nanos(1), ..step });
    assert_eq!(script.state(), PROBE_RTT);
    assert_eq!((script.window(), script.value("pacing_gain")), (4, 1.0));
    assert_eq!(script.value("min_rtt_s"), 0.11);
    // The time counts from when at most four segments are in flight.
    script.ack(Step { wait: RTT * 5, in_flight: 5 * MSS, ..step });
    script.ack(Step { wait: NOTHING, in_flight: 4 * MSS, new_round: false, ..step });
    // 200 ms pass with low rates, which are not used as the rate of the path. The phase continues until the round ends.
    let low = Step { rate_bps: 300_000, in_flight: 3 * MSS, rtt: Duration::from_millis(105), ..step };
    script.ack(Step { wait: Duration::from_millis(201), new_round: false, ..low });
    assert_eq!(script.state(), PROBE_RTT);
    script.ack(Step { wait: NOTHING, ..low });
    // The previous window plus the segment just acknowledged.
    assert_eq!((script.state(), script.window()), (PROBE_BW, before + 1));
    assert!((script.value("min_rtt_s") - 0.105).abs() < 1e-9);
    for _ in 0..9 {
        script.ack(Step { app_limited: true, ..low });
    }
    assert_eq!(script.value("bw_bps"), 10_000_000.0);
}

#[test]
fn probe_rtt_does_not_end_before_200_ms_have_passed() {
    let mut script = probing(1);
    script.ack(Step { wait: Duration::from_secs(11), in_flight: 4 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT);
    script.ack(Step { wait: Duration::from_millis(100), in_flight: 3 * MSS, ..STEP });
    script.ack(Step { wait: Duration::from_millis(100), in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT, "200 ms exactly");
    script.ack(Step { wait: Duration::from_nanos(1), in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_BW);
}

#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut script = Script::new("bbr1", 1);
    script.ack(Step { wait: Duration::from_secs(11), in_flight: 4 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT);
    script.rounds(3, Step { in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), STARTUP);
}

#[test]
fn an_idle_period_skips_probe_rtt_and_restarts_at_the_bandwidth() {
    let mut script = at_first_phase();
    assert_eq!(script.control.pacing_bps, 12_375_000);
    script.send_after_idling(Duration::from_secs(30));
    assert_eq!(script.control.pacing_bps, 9_900_000);
    script.ack(Step { in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_BW);
    // Ten seconds later it is due again.
    script.ack(Step { wait: Duration::from_nanos(10_000_000_001), in_flight: 3 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT);
}

#[test]
fn a_spurious_recovery_restarts_the_measurement_of_growth() {
    let mut script = Script::new("bbr1", 1);
    script.rounds(3, STEP);
    script.enter_recovery(10 * MSS);
    script.leave_recovery(true);
    // Otherwise the next round would be the third without growth.
    script.rounds(3, STEP);
    assert_eq!(script.state(), STARTUP);
    script.ack(STEP);
    assert_eq!(script.state(), DRAIN);
}

/// The path of the benchmark tcp-1: 100 Mbit/s, 20 ms, a queue of one BDP.
fn tcp_1(loss: f64, seed: u64) -> Pipe {
    let mut pipe = Pipe::new(100_000_000, 250_000, seed);
    pipe.bottleneck.loss = loss;
    pipe.add("bbr1", Duration::from_millis(20), Instant::ZERO, seed);
    pipe
}

#[test]
fn the_duration_of_drain_matches_its_gain() {
    // In DRAIN the path delivers C and the sender adds 0.99 C / 2.885 = 0.3432 C. The bytes in flight thus fall at 0.6568 C, to
    // the target of a BDP and three quanta. The buffer is deep, so that no packet is lost.
    let mut pipe = Pipe::new(20_000_000, 10_000_000, 1);
    pipe.add("bbr1", Duration::from_millis(100), Instant::ZERO, 1);
    let (mut begin, mut in_flight, mut end) = (None, 0, None);
    pipe.run_watching(instant(3.0), |now, sender, _| match sender.value("state") as u32 {
        DRAIN if begin.is_none() => (begin, in_flight) = (Some(now), sender.in_flight_bytes),
        PROBE_BW if end.is_none() => end = Some(now),
        _ => {}
    });
    let took = end.expect("it ends").saturating_since(begin.expect("it begins")).as_secs_f64();
    let target = pipe.bdp_bytes(0) + 6.0 * MSS as f64;
    let expected = (in_flight as f64 - target) / (0.6568 * 20e6 / 8.0);
    // STARTUP's window is 2.885 BDP, so its queue is at least one BDP.
    assert!(in_flight as f64 > 2.0 * target);
    assert!((took / expected - 1.0).abs() < 0.03, "{took} s, expected {expected} s");
}

#[test]
fn a_single_flow_keeps_the_queue_small_and_the_link_busy() {
    // A cycle queues up to a quarter of a BDP in one of eight phases and drains it in the next: a triangle of height 0.25 over
    // two of eight phases, 3 % of a BDP. In addition, three quanta of 1.2 % above a BDP remain in flight. The goodput is lower by
    // PROBE_RTT (0.22 s of 10.22 s at nearly zero: 2.2 %) and by at most the margin of 1 %.
    for seed in 1..=3 {
        let mut pipe = tcp_1(0.0, seed);
        pipe.run(5.0);
        let queue = pipe.mean_queue_bytes(35.0) / 250_000.0;
        assert!(queue < 0.1 && queue > 0.03, "{queue} BDP");
        let drops = pipe.bottleneck.drops;
        let goodput = pipe.goodputs_bps(65.0)[0] / 100e6;
        assert!(goodput > 0.965 && goodput < 0.985, "{goodput}");
        assert_eq!(pipe.bottleneck.drops, drops, "packets may be dropped only in STARTUP");
        let bandwidth = pipe.senders[0].value("bw_bps");
        assert!((bandwidth / 100e6 - 1.0).abs() < 0.01, "{bandwidth}");
    }
}

#[test]
fn one_percent_loss_costs_less_than_five_percent_of_the_rate() {
    let mut clean = tcp_1(0.0, 1);
    clean.run(5.0);
    let without = clean.goodputs_bps(65.0)[0];
    for seed in 1..=3 {
        let mut pipe = tcp_1(0.01, seed);
        pipe.run(5.0);
        let with = pipe.goodputs_bps(65.0)[0];
        let sender = &pipe.senders[0];
        let lost = sender.lost_bytes() as f64 / (sender.lost_bytes() + sender.delivered_bytes()) as f64;
        assert!((lost - 0.01).abs() < 0.002, "{lost}");
        // The losses themselves are 1 %.
        assert!(with > 0.95 * without && with < 0.995 * without, "{with} of {without}");
    }
}

#[test]
fn probe_rtt_begins_every_ten_seconds_and_lasts_200_ms() {
    let mut pipe = tcp_1(0.0, 2);
    let mut most_in_flight = 0;
    pipe.run_watching(instant(60.0), |now, sender, _| {
        let stay = sender.stays(PROBE_RTT).last().copied();
        // One and a half round-trip times after the start, the old bytes in flight have left.
        if stay.is_some_and(|(from, to)| to.is_infinite() && now.as_secs_f64() > from + 0.03) {
            most_in_flight = most_in_flight.max(sender.in_flight_bytes);
        }
    });
    let stays = pipe.senders[0].stays(PROBE_RTT);
    // One every 10 s + 0.22 s: five begin within 60 s, at 10, 20.2, ..., 50.9 s.
    assert_eq!(stays.len(), 5, "{stays:?}");
    assert!((stays[0].0 - 10.0).abs() < 0.02, "{stays:?}");
    for (from, to) in &stays {
        // The bytes in flight first fall to four segments. This takes about a round-trip time, at most a BDP and a quarter at the
        // rate of the link. Then 200 ms pass, up to the next acknowledgement of four per round-trip time.
        assert!((0.2..0.2 + 0.025 + 0.021).contains(&(to - from)), "{stays:?}");
    }
    for pair in stays.windows(2) {
        let wait = pair[1].0 - pair[0].1;
        assert!((10.0..10.001).contains(&wait), "{stays:?}");
    }
    // Four, minus the one just acknowledged.
    assert_eq!(most_in_flight, 3 * MSS);
}

#[test]
fn low_rates_in_probe_rtt_do_not_lower_the_bandwidth() {
    // At 5 ms PROBE_RTT lasts forty rounds with four segments each, 9.3 Mbit/s. That is long enough to discard the earlier rates.
    let mut pipe = Pipe::new(100_000_000, 250_000, 1);
    pipe.add("bbr1", Duration::from_millis(5), Instant::ZERO, 1);
    let mut least = f64::INFINITY;
    pipe.run_watching(instant(25.0), |now, sender, _| {
        if now > instant(5.0) {
            least = least.min(sender.value("bw_bps"));
        }
    });
    assert_eq!(pipe.senders[0].stays(PROBE_RTT).len(), 2);
    assert!(least > 0.99 * 100e6, "{least}");
}

#[test]
fn a_longer_path_is_detected_when_the_old_sample_has_expired() {
    let mut pipe = Pipe::new(20_000_000, 10_000_000, 1);
    let flow = pipe.add("bbr1", Duration::from_millis(50), Instant::ZERO, 1);
    pipe.run(12.0);
    let short = pipe.senders[flow].value("min_rtt_s");
    // 50 ms and the transmission of one packet, 0.6 ms.
    assert!((short - 0.0506).abs() < 0.0001, "{short}");
    pipe.set_rtt(flow, Duration::from_millis(80));
    pipe.run(19.9);
    assert_eq!(pipe.senders[flow].value("min_rtt_s"), short);
    // PROBE_RTT began at 10 s and 10 s after its end at 10.3 s.
    pipe.run(21.5);
    let long = pipe.senders[flow].value("min_rtt_s");
    assert!((long - 0.0806).abs() < 0.0012, "{long}");
}

#[test]
fn a_faster_link_is_detected_in_one_probe_and_a_slower_one_in_ten_rounds() {
    let mut pipe = Pipe::new(20_000_000, 10_000_000, 1);
    let flow = pipe.add("bbr1", Duration::from_millis(50), Instant::ZERO, 1);
    pipe.run(9.0);
    // Four times the rate. The next probe begins within eight phases of 50 ms and lasts until 1.25 BDP are in flight. With each
    // of its round trips, the bandwidth is 1.25 * 0.99 times the last, so the bytes in flight stay below 1.25 times its BDP until
    // the link is full. This takes ln 4 / ln 1.2375 = 6.5 round trips, 0.33 s, and two more for the last samples to arrive.
    pipe.bottleneck.rate_bps = 80_000_000;
    pipe.run(9.3);
    assert!(pipe.senders[flow].value("bw_bps") < 79e6);
    pipe.run(9.9);
    assert!(pipe.senders[flow].value("bw_bps") > 79e6);
    // Half of that rate: the old one expires after ten rounds. In these the sender sends at twice the rate, limited by a window
    // of two BDP of the old rate. A round then takes up to four times 50 ms.
    pipe.run(13.0);
    pipe.bottleneck.rate_bps = 40_000_000;
    pipe.run(13.3);
    assert!(pipe.senders[flow].value("bw_bps") > 79e6);
    pipe.run(15.5);
    let bandwidth = pipe.senders[flow].value("bw_bps");
    assert!((bandwidth / 40e6 - 1.0).abs() < 0.02, "{bandwidth}");
}

#[test]
fn an_application_pause_neither_lowers_the_bandwidth_nor_causes_probe_rtt() {
    let mut pipe = tcp_1(0.0, 1);
    pipe.senders[0].pause = (instant(5.0), instant(16.0));
    pipe.run(25.9);
    let sender = &pipe.senders[0];
    assert!(sender.stays(PROBE_RTT).is_empty(), "{:?}", sender.states);
    assert!((sender.value("bw_bps") / 100e6 - 1.0).abs() < 0.01);
    pipe.run(26.2);
    assert_eq!(pipe.senders[0].stays(PROBE_RTT).len(), 1, "ten seconds after the pause");
}

#[test]
fn aggregated_acknowledgements_extend_the_window() {
    // At 10 Mbit/s, 1250 bytes are expected per millisecond. After a silence of 200 ms, 100 segments arrive at once; the epoch
    // begins with them, so all of them are excess. 50 ms later 100 more arrive: 289 600 - 62 500 bytes.
    let mut script = probing(1);
    script.control.cwnd_bytes = 1_000 * MSS;
    script.ack(Step { wait: RTT * 2, acked: 100 * MSS, in_flight: 90 * MSS, ..STEP });
    assert_eq!(script.value("extra_acked_bytes"), 144_800.0);
    script.control.cwnd_bytes = 1_000 * MSS;
    script.ack(Step { wait: RTT / 2, acked: 100 * MSS, in_flight: 90 * MSS, new_round: false, ..STEP });
    assert_eq!(script.value("extra_acked_bytes"), 227_100.0);
    // The increase of the window is limited to 100 ms of the bandwidth, 125 000 bytes: 375 000 and 8 688 are 265 segments, 266.
    script.control.cwnd_bytes = 1_000 * MSS;
    while script.value("cycle_phase") == 0.0 {
        script.ack(Step { lost: 1, in_flight: 90 * MSS, ..STEP });
    }
    script.control.cwnd_bytes = 1_000 * MSS;
    script.ack(Step { wait: NOTHING, in_flight: 90 * MSS, new_round: false, ..STEP });
    assert_eq!(script.window(), 266);
    // It expires five to ten rounds later: the remaining excess is a segment per acknowledgement.
    script.rounds(10, Step { in_flight: 90 * MSS, ..STEP });
    assert_eq!(script.value("extra_acked_bytes"), MSS as f64);
}

#[test]
fn a_policed_rate_is_used_for_48_rounds() {
    // Per round of 100 ms, 86 segments arrive (9.96 Mbit/s) and 18 are lost: 0.209 of them, more than 50/256 = 0.195. There are
    // two intervals of four rounds with the same rate.
    let mut script = probing(1);
    let policed = Step { acked: 86 * MSS, lost: 18 * MSS, in_flight: 90 * MSS, rate_bps: 20_000_000, ..STEP };
    for round in 1..=8 {
        (0..18).for_each(|_| script.lose(90 * MSS, 0));
        script.ack(policed);
        assert_eq!(script.value("policed") > 0.0, round == 8, "{round}");
    }
    assert_eq!(script.value("bw_bps"), 9_962_240.0);
    assert_eq!(script.value("pacing_gain"), 1.0);
    let clean = Step { lost: 0, ..policed };
    let mut rounds = 0;
    while script.value("policed") > 0.0 && rounds < 100 {
        script.ack(clean);
        rounds += u32::from(script.state() == PROBE_BW);
        // The rate is that of the policer, in any phase.
        assert!(script.value("policed") == 0.0 || script.value("pacing_gain") == 1.0, "{rounds}");
    }
    assert_eq!(rounds, 48);
}

#[test]
fn an_idle_period_may_end_probe_rtt() {
    let mut script = probing(1);
    script.ack(Step { wait: Duration::from_secs(11), in_flight: 4 * MSS, ..STEP });
    assert_eq!(script.state(), PROBE_RTT);
    script.send_after_idling(Duration::from_secs(1));
    assert_eq!(script.state(), PROBE_BW);
}
