//! Vegas on a link, compared with its paper.

use crate::common;

use crate::common::{mean, outcome};

#[test]
fn vegas_keeps_two_to_four_segments_queued_without_losses() {
    // Brakmo and Peterson, JSAC 13(8), 1995, section III: between alpha = 2 and beta = 4 extra segments, by the measure W (rtt - base) /
    // base. With q queued segments, rtt is base + q s and W = (base + q s) / s segments, where s is the time of one. The measure is q (1
    // + q s / base); with s = 1.2 ms and base = 43.2 ms it is from 2 to 4 for q from 1.90 to 3.63. The segment in transmission is part of
    // base, and not counted in the queue. 36.0 segments fit into base. Up to 37 segments in flight are too few, so 38 is the first stable
    // number: 2.0 queued.
    let outcome = outcome(&format!(
        "duration = '60s'
        {}
        [tcp]
        mss = '1448B'
        delayed_ack_segments = 1
        congestion = 'vegas'
        [[flow]]
        name = 'bulk'
        from = 'source'
        to = 'sink'
        workload = 'bulk'
        [[probe]]
        flow = 'bulk'
        metrics = ['throughput_bps']
        interval = '1ms'
        [[probe]]
        link = 'link2'
        metrics = ['queue_bytes', 'drops']
        interval = '1ms'",
        common::behind_fast_access("rate = '10Mbit/s'\ndelay = '20ms'\nqueue = '40packets'")
    ));
    let queue = mean(&outcome, "queue_bytes", 10.0) / 1502.0;
    assert!((1.9..=3.63).contains(&queue), "{queue}");
    let drops = outcome.series_rows().filter(|row| row.metric == "drops").last().expect("a sample");
    assert_eq!(drops.value, 0.0);
    let goodput = mean(&outcome, "throughput_bps", 10.0);
    assert!(goodput > 0.999 * 10e6 * 1500.0 / 1502.0, "{goodput}");
}
