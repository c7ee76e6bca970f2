//! Throughput under loss against theory: the Reno sawtooth, CUBIC's response function, and the Markov chain of windows under random loss.
//!
//! The link is fast (10 Gbit/s) and its queue unlimited, so that the round-trip time is the path's 100 ms for any window. The throughput
//! is measured on the link after the start, including lost packets, in full-sized segments per round trip: 1502 bytes on the wire (1448
//! payload, 32 TCP, 20 IP, 2 framing).

use crate::common::{mean, outcome};

const ROUND_TRIP_S: f64 = 0.1;
const WIRE_BITS: f64 = 1502.0 * 8.0;

/// Segments per round trip that the sender transmits, over `seconds` after a start of `warm_up`. The receiver acknowledges every
/// `ack_every`-th segment. The laws of periodic loss assume 1; with 2, windows with an odd number of segments wait for the delayed
/// acknowledgment once per round trip.
fn segments_per_round_trip(congestion: &str, loss: &str, ack_every: u32, warm_up: u32, seconds: u32, seed: u32) -> f64 {
    let link = format!("loss = {loss}");
    segments_per_second(congestion, &link, ack_every, warm_up, seconds, seed) * ROUND_TRIP_S
}

/// Segments per second, with these properties of the link.
fn segments_per_second(congestion: &str, link: &str, ack_every: u32, warm_up: u32, seconds: u32, seed: u32) -> f64 {
    let end = warm_up + seconds;
    let text = format!(
        r#"
        duration = "{end}s"
        seed = {seed}
        [topology]
        kind = "chain"
        link = [{{ rate = "10Gbit/s", delay = "50ms", queue = "unlimited", {link} }}]
        [tcp]
        preset = "linux"
        mss = "1448B"
        congestion = "{congestion}"
        delayed_ack_segments = {ack_every}
        [[flow]]
        name = "bulk"
        from = "source"
        to = "sink"
        workload = "bulk"
        [[probe]]
        link = "link1"
        metrics = ["throughput_bps"]
        interval = "1s"
        "#
    );
    let outcome = outcome(&text);
    // The sample at second s is the mean over the previous second.
    mean(&outcome, "throughput_bps", f64::from(warm_up) + 1.0) / WIRE_BITS
}

/// Loses frame `every`, and each `every`-th frame after it.
fn periodic(every: u64) -> String {
    format!(r#"{{ kind = "periodic", every = {every} }}"#)
}

/// Simulates Reno under periodic loss exactly, one acknowledgment at a time. Clocking is ideal (an acknowledgment arrives one round trip
/// after its segment), without queue and timeouts. The window grows by acknowledged segments (RFC 5681). A loss is detected when three
/// later segments have been acknowledged (RFC 6675). The window is halved, once per flight, and in recovery one new segment is sent per
/// two delivered (RFC 9937 with ssthresh of half the flight). Returns segments sent per round trip.
fn exact_sawtooth(every: u64) -> f64 {
    let mut window = every.isqrt() + 4;
    let mut counter = 0;
    let mut clock = 0.0;
    // Transmissions in order: time, whether lost, whether a retransmission of the previously lost segment.
    let mut flight = std::collections::VecDeque::new();
    let mut sent = 0u64;
    let mut send = |clock: f64, flight: &mut std::collections::VecDeque<(f64, u64, bool)>| {
        sent += 1;
        flight.push_back((clock, sent, sent.is_multiple_of(every)));
        sent
    };
    for _ in 0..window {
        // Spread over the round trip, so that the clock advances.
        clock += 1.0 / window as f64;
        send(clock, &mut flight);
    }
    let (mut recovery_until, mut after_loss, mut delivered_in_recovery, mut sent_in_recovery) = (0, 0, 0, 0);
    let (mut in_flight, mut flight_at_loss, mut in_recovery) = (window, 0, false);
    let mut lost_pending = 0;
    let (mut begin, mut sent_at_begin, mut last_sent) = (0.0, 0, window);
    let rounds_to_skip = 20 * every.isqrt() as usize + 200;
    let mut reductions = 0;
    while let Some((departed, number, lost)) = flight.pop_front() {
        clock = departed + 1.0;
        if lost {
            lost_pending += 1;
            after_loss = 0;
            continue;
        }
        in_flight -= 1;
        if lost_pending > 0 {
            after_loss += 1;
        }
        if in_recovery {
            delivered_in_recovery += 1;
            if number >= recovery_until {
                in_recovery = false;
            }
        } else {
            counter += 1;
            if counter >= window {
                counter -= window;
                window += 1;
            }
        }
        if lost_pending > 0 && after_loss >= 3 && !in_recovery {
            flight_at_loss = in_flight + 1;
            in_flight -= lost_pending;
            lost_pending = 0;
            window /= 2;
            counter = 0;
            in_recovery = true;
            recovery_until = last_sent + 1;
            (delivered_in_recovery, sent_in_recovery) = (1, 0);
            reductions += 1;
            if reductions == rounds_to_skip / 10 {
                (begin, sent_at_begin) = (clock, last_sent);
            }
            if reductions == rounds_to_skip {
                return (last_sent - sent_at_begin) as f64 / (clock - begin);
            }
        }
        loop {
            let may_send = if in_recovery && in_flight > window {
                let allowed: u64 = delivered_in_recovery * window;
                sent_in_recovery < allowed.div_ceil(flight_at_loss)
            } else {
                in_flight < window
            };
            if !may_send {
                break;
            }
            last_sent = send(clock, &mut flight);
            in_flight += 1;
            sent_in_recovery += 1;
        }
    }
    unreachable!("the flight is never empty");
}

/// The sawtooth in closed form. The window grows by one segment per round trip from W/2 to W, where the loss is detected; one round trip
/// of recovery at W/2 follows. Segments per cycle: 3/8 W^2 + W/2 = N. Round trips per cycle: W/2 + 1.
fn smooth_sawtooth(every: u64) -> f64 {
    let n = every as f64;
    let peak = (-0.5 + (0.25 + 1.5 * n).sqrt()) / 0.75;
    n / (peak / 2.0 + 1.0)
}

#[test]
fn exact_sawtooth_is_near_the_closed_form() {
    for every in [300, 1000, 3000, 10_000] {
        let (exact, smooth) = (exact_sawtooth(every), smooth_sawtooth(every));
        assert!((exact / smooth - 1.0).abs() < 0.04, "1/{every}: {exact} exact, {smooth} smooth");
    }
}

#[test]
fn reno_under_periodic_loss_follows_the_sawtooth() {
    for (every, seconds) in [(100, 1000), (300, 1000), (1000, 2000), (3000, 3000), (10_000, 5000)] {
        let measured = segments_per_round_trip("linux-reno", &periodic(every), 1, 200, seconds, 1);
        let expected = exact_sawtooth(every);
        println!("1/{every}: measured {measured:.3}, exact {expected:.3}, smooth {:.3}", smooth_sawtooth(every));
        assert!((measured / expected - 1.0).abs() < 0.03, "1/{every}: {measured} measured, {expected} expected");
    }
}

#[test]
fn newreno_under_periodic_loss_follows_the_sawtooth() {
    // By its own rules: growth by SMSS^2 / window per acknowledgment of one segment, and half of the data in flight after a loss.
    for (every, seconds) in [(300, 1000), (1000, 2000)] {
        let measured = segments_per_round_trip("newreno", &periodic(every), 1, 200, seconds, 1);
        let expected = exact_sawtooth(every);
        println!("newreno 1/{every}: measured {measured:.3}, expected {expected:.3}");
        assert!((measured / expected - 1.0).abs() < 0.10, "newreno 1/{every}: {measured}, expected {expected}");
    }
}

#[test]
fn cubic_under_periodic_loss_follows_its_response_function() {
    for (every, seconds) in [(100, 1000), (300, 1000), (1000, 2000), (3000, 3000), (10_000, 5000)] {
        let p = 1.0 / every as f64;
        // RFC 9438 section 5.1, equation 6, with C = 0.4 and beta = 0.7:
        // AVG_W = (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4) = 1.054 (RTT / p)^(3/4).
        let cubic = 1.054 * fullpipe_units::math::pow(ROUND_TRIP_S / p, 0.75);
        // If that is less than Reno's, the Reno-friendly region applies: alpha = 3 (1 - beta) / (1 + beta) is chosen so that the mean
        // window is Reno's (RFC 9438 section 4.3). At 1 %, the known sqrt(3 / 2 / p) = 12.2 omits the round trip of recovery, which
        // matters in a sawtooth of 10 round trips. The expected value is therefore Reno's own sawtooth.
        let reno_friendly = exact_sawtooth(every);
        let expected = cubic.max(reno_friendly);
        let measured = segments_per_round_trip("cubic", &periodic(every), 1, 200, seconds, 1);
        println!("1/{every}: measured {measured:.3}, cubic {cubic:.3}, Reno-friendly {reno_friendly:.3}");
        assert!((measured / expected - 1.0).abs() < 0.10, "1/{every}: {measured} measured, {expected} expected");
    }
}

/// Tests controls under periodic loss against the laws of their papers, with the round trip of recovery that follows each reduction, in
/// which the window does not grow. W is the window at a loss in segments, and N the number of segments between losses.
#[test]
fn controls_under_periodic_loss_follow_their_window_laws() {
    for (control, every, expected) in [
        // RFC 3649 table 3 (growth over 38 round trips there, so that recovery has little effect).
        ("highspeed", 10_000, 263.0),
        // Growth by 0.01 per segment over W/8, and 7/8 W in recovery: N = 13.375 W; 100 ln(8/7) + 1 = 14.353 round trips.
        ("scalable", 10_000, 10_000.0 / 14.353),
        ("yeah", 10_000, 10_000.0 / 14.353),
        // rho = 4, 16 segments per round trip: N = 3 W^2 / 128 + W/2, W = 642.6; W/32 + 1 = 21.08 round trips.
        ("hybla", 10_000, 10_000.0 / 21.08),
        // Without a queue alpha is 10 and beta 1/8: from 7/8 W by ten: N = 15/1280 W^2 + 7/8 W, W = 887.2; W/80 + 1 = 12.09.
        ("illinois", 10_000, 10_000.0 / 12.09),
        // From 4/5 W by one: N = 0.18 W^2 + 0.8 W, W = 233.5; W/5 + 1 = 47.70 round trips.
        ("veno", 10_000, 10_000.0 / 47.70),
        // Losses every three seconds, 0.1 s of each in recovery: from 0.8 W by 0.4 alpha(D) per round trip, with A(D) = D + 5 (D-1)^2 +
        // (D-1)^3/12 the integral of alpha. W/5 = 4 (A(3) - 0.1) = 94.27, N = 11 986 (29 round trips of 377 plus 40 * 16.87, and the 377
        // of recovery).
        ("htcp", 11_986, 399.5),
        // The paper's response function for W = 1600: 5 steps of 32 and 13.97 of binary search, 29 587 segments, plus 1400 in recovery.
        ("bic", 30_987, 30_987.0 / 19.97),
    ] {
        let measured = segments_per_round_trip(control, &periodic(every), 1, 150, 300, 1);
        println!("{control} 1/{every}: measured {measured:.3}, expected {expected:.3}");
        assert!((measured / expected - 1.0).abs() < 0.10, "{control}: {measured} measured, {expected} expected");
    }
}

#[test]
fn westwood_under_periodic_loss_follows_its_law_and_the_formula_of_the_paper() {
    // The path becomes longer after its 100 ms have been measured: 110 ms, of which Tq = 10 ms count as a queue. A loss reduces the
    // window to the measured bandwidth times 100 ms. The measured bandwidth is W per round trip minus the lag on a ramp of one segment
    // per round trip. Two filters of weight 1/8 lag by 14 samples. The mean age of a sample is half a round trip, and half of one passes
    // until the next: 10/11 (W - 15) remain. With W/11 + 13.64 round trips of growth,
    // N = (W/11 + 13.64) (21/22 W - 6.82) + 10/11 W - 13.64, the last two terms in recovery: W = 1443.8 for N = 200 000,
    // 145.9 round trips. Grieco and Mascolo (2004), without filters and the sawtooth's shape, have W = sqrt(N RTT / Tq) = 1483.2 for the
    // mean, which is also within a tenth.
    let link =
        r#"loss = { kind = "periodic", every = 200_000, offset = 1000 }, schedule = [{ at = "1s", delay = "60ms" }]"#;
    let measured = segments_per_second("westwood", link, 1, 500, 1000, 1) * 0.110;
    println!("westwood: measured {measured:.1}, law {:.1}, paper 1483.2", 200_000.0 / 145.9);
    assert!((measured / (200_000.0 / 145.9) - 1.0).abs() < 0.05, "{measured}");
    assert!((measured / 1483.2 - 1.0).abs() < 0.10, "{measured}");
}

/// Mean segments per round trip of Reno when each segment is lost with probability `p`, from the stationary distribution of windows at
/// the start of recovery.
///
/// A state is the window w0 at the start of a recovery, half of the previous window. An epoch lasts until the next recovery starts. It
/// has w0 segments in the round trip of recovery, without growth, then rounds of w0, w0 + 1, ... The first loss is at segment G
/// (geometric distribution). It is detected one round trip later, in which a further window of segments is sent; losses among these
/// belong to the same reduction. The next state is half of the window at that time, at least 2. Acknowledgments are delayed (one for two
/// segments) and growth counts segments. The delay therefore changes only the time of growth: half a segment later on average, which the
/// integer window hides.
fn window_chain(p: f64) -> f64 {
    const LARGEST: usize = 400;
    // For each state: probability of each next state, mean segments, mean round trips of an epoch.
    let mut stationary = vec![1.0 / LARGEST as f64; LARGEST];
    let mut next_of: Vec<Vec<(usize, f64)>> = Vec::new();
    let (mut segments_of, mut rounds_of) = (Vec::new(), Vec::new());
    for start in 0..LARGEST {
        let w0 = start.max(2);
        let (mut next, mut segments, mut rounds) = (vec![0.0; LARGEST], 0.0, 0.0);
        let mut survive = 1.0;
        let (mut round_window, mut round, mut sent) = (w0, 0.0, 0.0);
        let mut growth = 0;
        while survive > 1e-9 {
            // One round of `round_window` segments; the first is the round of recovery.
            for position in 0..round_window {
                let probability = survive * p;
                survive *= 1.0 - p;
                // The loss is detected after another round trip, in which a window of segments is sent and the window grows by one. If
                // the loss is in the round of recovery, growth begins only at its end.
                let fraction = position as f64 / round_window as f64;
                let found_window = w0 + growth + usize::from(growth > 0 || fraction > 0.999);
                next[(found_window / 2).clamp(2, LARGEST - 1)] += probability;
                segments += probability * (sent + position as f64 + round_window as f64);
                rounds += probability * (round + fraction + 1.0);
            }
            sent += round_window as f64;
            round += 1.0;
            // The first round with growth is the one after recovery; the next round has the larger window.
            growth = (round as usize).saturating_sub(1);
            round_window = w0 + growth;
        }
        next_of.push(next.into_iter().enumerate().filter(|(_, q)| *q > 0.0).collect());
        segments_of.push(segments);
        rounds_of.push(rounds);
    }
    for _ in 0..400 {
        let mut after = vec![0.0; LARGEST];
        for (state, probability) in stationary.iter().enumerate() {
            for (next, q) in &next_of[state] {
                after[*next] += probability * q;
            }
        }
        let sum: f64 = after.iter().sum();
        stationary = after.into_iter().map(|x| x / sum).collect();
    }
    let mean = |of: &[f64]| stationary.iter().zip(of).map(|(a, b)| a * b).sum::<f64>();
    mean(&segments_of) / mean(&rounds_of)
}

#[test]
fn reno_under_random_loss_follows_the_markov_chain_of_windows() {
    for (probability, seconds) in [(0.01, 5000), (0.003, 5000), (0.001, 8000), (0.0003, 12_000)] {
        let expected = window_chain(probability);
        let loss = format!(r#"{{ kind = "bernoulli", probability = {probability} }}"#);
        let runs: Vec<f64> =
            (1..=4).map(|seed| segments_per_round_trip("linux-reno", &loss, 2, 100, seconds, seed)).collect();
        let measured = runs.iter().sum::<f64>() / runs.len() as f64;
        println!("p = {probability}: measured {measured:.3} ({runs:.3?}), chain {expected:.3}");
        assert!(
            (measured / expected - 1.0).abs() < 0.05,
            "p = {probability}: {measured} measured, {expected} expected"
        );
    }
}
