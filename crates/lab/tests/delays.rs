//! Percentiles of packet delay in `flows.csv`, and the probe metric `delay_s`, with a queue that grows by constant steps.

use crate::common::{csv, outcome};
use fullpipe_lab::Outcome;
use fullpipe_units::Duration;

/// 200 datagrams of 1000 bytes on the wire, one per 0.5 ms, on a link of 8 Mbit/s and 10 ms, where each takes a millisecond. Datagram k,
/// from 0, is sent at 0.5 k ms and departs from the queue at k ms, so it arrives at 11 + k ms with a delay of 11 + 0.5 k ms.
fn overload(further: &str) -> Outcome {
    outcome(&format!(
        "duration = '1s'
        processing_jitter = '0s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '8Mbit/s'
        delay = '10ms'
        queue = 'unlimited'
        [[flow]]
        name = 'game'
        from = 'source'
        to = 'sink'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '970B'
        interval = '500us'
        packets = 200
        {further}"
    ))
}

/// The delay of datagram k in microseconds.
fn delay_us(k: u64) -> u64 {
    11_000 + 500 * k
}

#[test]
fn percentiles_are_order_statistics_of_the_delays() {
    // Of 200 delays in ascending order, the 100th, 190th and 198th are the 50th, 95th and 99th percentile. From 111 ms on the datagrams
    // 100 to 199 arrive, the first of them at that time: of these 100, they are the 50th, 95th and 99th.
    for (measurement, datagrams) in
        [("", [99, 189, 197]), ("[measurement]\nfrom = '111ms'\nlinks = []", [149, 194, 198])]
    {
        let outcome = overload(measurement);
        let row = outcome.flow("game").expect("the flow");
        let delays = row.delays.expect("packets were received");
        for (found, k) in [delays.p50, delays.p95, delays.p99].into_iter().zip(datagrams) {
            let exact = Duration::from_micros(delay_us(k));
            // A percentile is never too small, and at most one part in 64 too large.
            assert!(found >= exact && found <= exact + exact / 64, "{measurement} datagram {k}: {found} for {exact}");
        }
        let column = |name: &str| outcome.flows().column(name)[0];
        // As decimal numbers of whole nanoseconds.
        assert!((column("delay_p95_s") - delays.p95.as_secs_f64()).abs() < 1e-12);
    }
}

#[test]
fn equal_delays_have_exact_percentiles_and_a_silent_direction_has_none() {
    // 970 + 28 bytes at 1 Gbit/s take 7.984 us, and 8 us with 2 bytes of framing.
    let outcome = outcome(
        "duration = '1s'
        processing_jitter = '0s'
        [topology]
        kind = 'chain'
        link = [{ rate = '1Gbit/s', delay = '20ms' }]
        [[flow]]
        name = 'voice'
        from = 'source'
        to = 'sink'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '970B'
        interval = '20ms'
        [[flow]]
        name = 'late'
        from = 'source'
        to = 'sink'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '970B'
        interval = '20ms'
        start = '995ms'",
    );
    let delays = outcome.flow("voice").expect("the flow").delays.expect("packets were received");
    assert_eq!([delays.p50, delays.p95, delays.p99], [Duration::from_micros(20_008); 3]);
    assert_eq!(outcome.flow("late").expect("the flow").delays, None);
    let last = csv(&outcome, "flows.csv").lines().last().expect("a row").to_owned();
    assert!(last.starts_with("late,") && last.ends_with(",,,"), "{last}");
}

#[test]
fn delay_probe_samples_the_mean_since_the_last_sample() {
    // Nothing arrives before 10.25 ms, so there is no sample. Datagrams 0 to 9 arrive until 20.5 ms, and 10 to 19 until 30.75 ms: means
    // of 11 + 0.5 x 4.5 ms and 11 + 0.5 x 14.5 ms.
    let outcome = overload("[[probe]]\nflow = 'game'\nmetrics = ['delay_s']\ninterval = '10.25ms'");
    let samples: Vec<(u64, f64)> =
        outcome.series("game", "delay_s").map(|(time, delay)| (time.as_nanos() / 1000, delay)).collect();
    assert_eq!(samples[0].0, 20_500);
    assert_eq!(samples[1].0, 30_750);
    for ((_, found), exact) in samples.iter().zip([0.01325, 0.01825]) {
        assert!((found - exact).abs() < 1e-12, "{found} for {exact}");
    }
    // The run ends with the last datagram at 210 ms, in the 21st interval, so the last sample is that of the 20th.
    assert_eq!((samples.len(), samples.last().expect("samples").0), (19, 205_000));
}
