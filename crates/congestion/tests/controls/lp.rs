//! Tests of TCP-LP: the indication and the inference phase with values computed by hand, then the closed loop.

use crate::pipe::Pipe;
use crate::script::{STEP, Script, Step};
use crate::simulator::{MSS, instant};
use fullpipe_units::{Duration, Instant};

const GROWTH: u32 = 0;
const INFERENCE: u32 = 1;

/// An acknowledgment of one segment `wait` milliseconds after the previous one, with a round-trip time of `rtt` milliseconds.
fn ack(script: &mut Script, wait: u64, rtt: u64) {
    let (wait, rtt) = (Duration::from_millis(wait), Duration::from_millis(rtt));
    script.ack(Step { wait, rtt, new_round: false, ..STEP });
}

/// As `ack`, of a packet that was sent after the previous acknowledgment, so that a round begins.
fn ack_of_a_new_round(script: &mut Script, wait: u64, rtt: u64) {
    let (wait, rtt) = (Duration::from_millis(wait), Duration::from_millis(rtt));
    script.ack(Step { wait, rtt, ..STEP });
}

/// A flow in congestion avoidance with 40 segments and delays from 100 to 200 ms, so that the threshold is 115 ms. The smoothed delay
/// is 100 + 100/8 = 112.5 ms.
fn avoiding() -> Script {
    let mut script = Script::new("lp", 0);
    script.control.cwnd_bytes = 40 * MSS;
    script.control.ssthresh_bytes = 2 * MSS;
    ack(&mut script, 1, 200);
    assert_eq!((script.state(), script.window()), (GROWTH, 40));
    assert!((script.value("delay_threshold_s") - 0.115).abs() < 1e-9);
    assert!((script.value("smoothed_delay_s") - 0.1125).abs() < 1e-9);
    script
}

#[test]
fn the_first_indication_halves_the_window_and_the_second_reduces_it_to_one_segment() {
    let mut script = avoiding();
    // 112.5 x 7/8 + 132/8 is 114.9375, below the threshold; 114.9375 x 7/8 + 116/8 is 115.07, above it.
    ack(&mut script, 1, 132);
    assert_eq!(script.state(), GROWTH);
    ack(&mut script, 1, 116);
    assert_eq!((script.state(), script.window()), (INFERENCE, 20));
    // Delays of the same round and of the next one indicate nothing, and nothing grows.
    ack(&mut script, 1, 180);
    ack_of_a_new_round(&mut script, 100, 180);
    ack(&mut script, 1, 180);
    assert_eq!((script.state(), script.window()), (INFERENCE, 20));
    ack_of_a_new_round(&mut script, 100, 180);
    assert_eq!((script.state(), script.window()), (INFERENCE, 1));
}

#[test]
fn the_window_grows_again_after_three_round_trip_times_without_an_indication() {
    let mut script = avoiding();
    ack(&mut script, 1, 132);
    ack(&mut script, 1, 116);
    assert_eq!((script.state(), script.window()), (INFERENCE, 20));
    // Small delays: 3 x 116 ms are 348 ms.
    for _ in 0..347 {
        ack(&mut script, 1, 100);
    }
    assert_eq!((script.state(), script.window()), (INFERENCE, 20));
    ack(&mut script, 1, 100);
    assert_eq!(script.state(), GROWTH);
    // That acknowledgment and nineteen more are a window of twenty segments: one segment per round trip.
    for _ in 0..18 {
        ack(&mut script, 1, 100);
    }
    assert_eq!(script.window(), 20);
    ack(&mut script, 1, 100);
    assert_eq!(script.window(), 21);
}

#[test]
fn losses_halve_the_window() {
    let mut script = avoiding();
    script.enter_recovery(40 * MSS);
    assert_eq!(script.control.ssthresh_bytes, 20 * MSS);
}

#[test]
fn lp_yields_to_reno_and_uses_an_empty_link() {
    // Alone, the window halves when the queue has one segment (1.2 ms), at 34 segments: 17 for three round trips, then 18 to 34. The
    // mean of 24 segments of 1500 bytes in 40 ms is 7.2 Mbit/s, of which 1448 / 1500 are payload.
    let mut pipe = Pipe::new(10_000_000, 250_000, 1);
    pipe.add("lp", Duration::from_millis(40), Instant::ZERO, 1);
    pipe.run(60.0);
    let alone = pipe.goodputs_bps(120.0)[0];
    assert!((6.0e6..8.0e6).contains(&alone), "{alone}");
    // Reno fills the buffer of 200 ms: at most a tenth remains.
    let mut pipe = Pipe::new(10_000_000, 250_000, 1);
    pipe.add("lp", Duration::from_millis(40), Instant::ZERO, 1);
    pipe.add("newreno", Duration::from_millis(40), instant(5.0), 2);
    pipe.run(60.0);
    let rates = pipe.goodputs_bps(200.0);
    let share = rates[0] / (rates[0] + rates[1]);
    assert!(share < 0.1, "{share}");
    assert!(share > 0.0);
}
