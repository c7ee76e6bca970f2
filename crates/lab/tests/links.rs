//! What links do over time, and processing times of senders, from the file to the records.

mod common;

use common::outcome;
use fullpipe_lab::Outcome;

fn chain(link: &str, flow: &str) -> Outcome {
    outcome(&format!(
        "duration = '30s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '10Mbit/s'
        delay = '10ms'
        queue = 'unlimited'
        {link}
        [[flow]]
        name = 'it'
        from = 'source'
        to = 'sink'
        {flow}"
    ))
}

const DATAGRAMS: &str =
    "protocol = 'udp'\nworkload = 'constant-rate'\npayload = '1000B'\ninterval = '10ms'\npackets = 1000";

fn received(outcome: &Outcome) -> u64 {
    outcome.flow_rows().next().map_or(0, |row| row.counters.rx_packets)
}

#[test]
fn a_rate_that_changes_carries_what_it_says() {
    // TCP fills the link: 10 s at 10 Mbit/s, an outage of 5 s, 15 s at 2 Mbit/s: 100 + 30 Mbit on the wire, of which
    // 1448 of 1502 bytes are payload: 125.3 Mbit. Slow start and the time-outs of the outage (from 0.2 s doubling; the
    // one that finds the link again comes at most as late as it had waited) cost a few per cent.
    let outcome =
        chain("schedule = [{ at = '10s', outage = true }, { at = '15s', rate = '2Mbit/s' }]", "congestion = 'cubic'");
    let payload = outcome.flow_rows().next().unwrap().goodput_bps.unwrap() * 30.0 / 1e6;
    assert!((0.85 * 125.3..=125.4).contains(&payload), "{payload} Mbit");
}

#[test]
fn a_trace_delivers_1504_bytes_each_time() {
    // One opportunity each 10 ms from 10 ms on: 1002 bytes of payload, headers and framing use one each; a datagram each
    // 10 ms from 0 on. All arrive; the n-th at 10 n + 10 ms + 10 ms.
    let outcome = chain("trace = [10]", DATAGRAMS);
    let row = outcome.flow_rows().next().unwrap().counters;
    assert_eq!(row.rx_packets, 1000);
    // Two frames of 1030 bytes take two opportunities of 1504 bytes or one and a bit: what is over is used by the next.
    let mean = row.delay_sum.as_secs_f64() / 1000.0;
    assert!((0.010..0.0205).contains(&mean), "{mean}");
}

#[test]
fn impairments_take_their_share() {
    // Binomials of 1000: five standard deviations.
    for (link, low, high) in [
        // 0.1: 900 with 9.5.
        ("loss = { kind = 'bernoulli', probability = 0.1 }", 853, 947),
        // Bad a fifth of the time: 0.01 / (0.01 + 0.04) = 0.2; bursts of 25 widen the spread: variance of the count
        // n p q (1 + r) / (1 - r) with r = 1 - 0.05 = 0.95: 160 x 39 = 6240, 79.
        ("loss = { kind = 'gilbert-elliott', good_to_bad = 0.01, bad_to_good = 0.04 }", 405, 1000),
        ("loss = { kind = 'droplist', frames = [1, 7, 1000, 1001] }", 997, 997),
        // From 2 s to 3 s a hundred datagrams end their transmission.
        ("blackholes = [{ from = '2s', until = '3s' }]", 899, 901),
        // 1 - (1 - 1e-5)^(8 x 1030) = 0.0791: 921 with 8.5.
        ("corruption = { bit_error_rate = 1e-5 }", 878, 964),
        ("corruption = { bit_error_rate = 1e-5, delivered = true }", 878, 964),
        // Copies: 1000 + 100 with 9.5.
        ("duplication = 0.1", 1052, 1148),
        ("jitter = { kind = 'uniform', max = '20ms' }", 1000, 1000),
        ("jitter = { kind = 'exponential', mean = '20ms', in_order = false }", 1000, 1000),
        ("reordering = { kind = 'late', probability = 0.1, extra = '25ms' }", 1000, 1000),
        ("reordering = { kind = 'early', probability = 0.5, gap = 3, extra = '25ms' }", 1000, 1000),
    ] {
        let count = received(&chain(link, DATAGRAMS));
        assert!((low..=high).contains(&count), "{link}: {count}");
    }
}

#[test]
fn the_other_direction_has_impairments_of_its_own() {
    let outcome = chain("reverse = { loss = { kind = 'bernoulli', probability = 0.5 } }", DATAGRAMS);
    assert_eq!(received(&outcome), 1000);
}

#[test]
fn senders_of_a_shared_queue_take_their_time() {
    // Two flows of one host through one drop-tail link: a packet of 1502 bytes at 10 Mbit/s takes 1.2016 ms, so a
    // datagram leaves up to that much later, 0.6 ms in the mean; nothing else delays, the link is idle in between.
    let two = |jitter: &str| {
        let text = format!(
            "{jitter}
            duration = '30s'
            [topology]
            kind = 'chain'
            [[topology.link]]
            rate = '10Mbit/s'
            delay = '10ms'
            [[flow]]
            name = 'a'
            from = 'source'
            to = 'sink'
            {DATAGRAMS}
            [[flow]]
            name = 'b'
            from = 'source'
            to = 'sink'
            start = '5ms'
            {DATAGRAMS}"
        );
        let outcome = outcome(&text);
        let row = outcome.flow_rows().next().unwrap().counters;
        // Sent counts from when a packet leaves: what is random is when the first and the last do.
        (row.last_tx.as_nanos(), row.jitter_sum.as_nanos())
    };
    assert_eq!(two("processing_jitter = '0s'").0, 9_990_000_000);
    let (last, _) = two("");
    assert!((9_990_000_001..=9_991_201_600).contains(&last), "{last}");
}

/// Bytes that wait and the wait that a probe makes of them, by tenths of a second.
fn waits(link: &str) -> Vec<(u64, f64, f64)> {
    let probe = "[[probe]]\nlink = 'link1'\nmetrics = ['queue_bytes', 'queue_delay_s']\ninterval = '100ms'";
    let outcome = chain(link, &format!("{DATAGRAMS}\n{probe}"));
    let delays: Vec<_> = outcome.series("link1", "queue_delay_s").collect();
    let bytes = outcome.series("link1", "queue_bytes");
    let with_delay = bytes.filter_map(|(at, bytes)| {
        let (_, delay) = delays.iter().find(|(time, _)| *time == at)?;
        Some((at.as_nanos() / 100_000_000, bytes, *delay))
    });
    with_delay.collect()
}

#[test]
fn the_probed_wait_follows_the_rate() {
    // 100 datagrams of 1030 bytes each second. Nothing leaves from 1 s to 2 s; then 1 Mbit/s takes 121 each second. The
    // instants 1.0 s to 1.9 s have no wait; from 2 s on it is the queue at 1 Mbit/s.
    let samples = waits("schedule = [{ at = '1s', outage = true }, { at = '2s', rate = '1Mbit/s' }]");
    assert!(samples.iter().all(|(tenth, ..)| !(10..20).contains(tenth)), "{samples:?}");
    assert!(samples.iter().any(|(tenth, ..)| *tenth == 9));
    let after: Vec<_> = samples.iter().filter(|(tenth, ..)| *tenth >= 20).collect();
    // Half a second after the outage 100 + 50 have come and at most 61 have gone.
    let (_, bytes, delay) = after[5];
    assert!(*bytes >= 88.0 * 1030.0 && (0.72..1.0).contains(delay), "{bytes} {delay}");
    assert!(after.iter().all(|(_, bytes, delay)| *delay == bytes * 8.0 / 1e6), "{after:?}");
}

#[test]
fn the_probed_wait_at_a_trace_is_at_its_mean_rate() {
    // One opportunity of 1504 bytes each 20 ms: 601.6 kbit/s, while the link's own rate is 10 Mbit/s. Each second 103 kB
    // come and 75.2 kB leave: after 5 s about 139 kB wait, or 1.85 s.
    let samples = waits("trace = [20]");
    let (_, bytes, delay) = samples.iter().find(|(tenth, ..)| *tenth == 50).unwrap();
    assert!((1.80..1.90).contains(delay), "{bytes} {delay}");
    assert!(samples.iter().all(|(_, bytes, delay)| *delay == bytes * 8.0 / 601_600.0), "{samples:?}");
}
