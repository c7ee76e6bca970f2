//! What links do over time, and processing times of senders, from the file to the records.

use crate::common::outcome;
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

/// Little's law: the integral of the queue's length over time, divided by the number of departures, is the mean wait.
#[test]
fn the_probed_wait_of_a_varying_rate_agrees_with_littles_law() {
    // Bursts of 150 datagrams of 1030 bytes at 3.09 Mbit/s, 1.8 Mbit/s on average; the last leaves long before 29 s. A datagram
    // the other way keeps the run going until then.
    let flow = "protocol = 'udp'\nworkload = 'on-off'\non = '400ms'\noff = '300ms'\nrate = '3Mbit/s'\npayload = '1000B'
        packets = 2000
        [[flow]]\nfrom = 'sink'\nto = 'source'\nstart = '29s'\nprotocol = 'udp'\nworkload = 'constant-rate'
        payload = '1000B'\ninterval = '1s'\npackets = 1
        [[probe]]\nlink = 'link1'\nmetrics = ['queue_bytes']\ninterval = '100us'
        [[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '29s'";
    // A trace of 4 Mbit/s with pauses of half a second: 0.93 Mbit/s on average. A schedule of 8 and 1 Mbit/s with an
    // outage. The same below a discipline, which gives frames one by one.
    let opportunities: Vec<String> = (0..200u64).map(|n| (n * 3 + n / 40 * 500).to_string()).collect();
    let trace = format!("trace = [{}]", opportunities.join(", "));
    let schedule = "schedule_repeat = '1100ms'\nschedule = [{ at = '200ms', rate = '1Mbit/s' },
        { at = '700ms', outage = true }, { at = '900ms', rate = '8Mbit/s' }]";
    let fifo = format!("discipline = {{ kind = 'fifo', limit = 'unlimited' }}\n{schedule}");
    for link in [trace.as_str(), schedule, &fifo] {
        let outcome = chain(link, flow);
        let departed = received(&outcome) as f64;
        assert_eq!(departed, 2000.0);
        let packet_seconds: f64 =
            outcome.series("link1", "queue_bytes").map(|(_, bytes)| bytes / 1030.0 * 100e-6).sum();
        let by_law = packet_seconds / departed;
        let (_, probed) = outcome.series("link1", "queue_delay_s").next().expect("packets left");
        assert!(by_law > 0.05, "the queue was filled: {by_law}");
        // Sampled each 100 us, the length is wrong for at most that time at each arrival and each departure.
        assert!((probed - by_law).abs() < 200e-6, "{link}: {probed} by measurement, {by_law} by Little's law");
    }
}

#[test]
fn the_probed_wait_is_that_of_the_packets_that_left() {
    // 100 datagrams of 1030 bytes each second. Nothing leaves from 1 s to 2 s: no sample. Then 1 Mbit/s sends one each 8.24
    // ms while one comes each 10 ms: of those that came during the outage, the first has waited 1 s, and the wait falls by
    // 1.76 ms from one to the next.
    let schedule = "schedule = [{ at = '1s', outage = true }, { at = '2s', rate = '1Mbit/s' }]";
    let probe = "[[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '100ms'";
    let outcome = chain(schedule, &format!("{DATAGRAMS}\n{probe}"));
    let delays: Vec<(u64, f64)> =
        outcome.series("link1", "queue_delay_s").map(|(at, delay)| (at.as_nanos() / 100_000_000, delay)).collect();
    let of = |tenth: u64| delays.iter().find(|(at, _)| *at == tenth).map(|(_, delay)| *delay);
    assert!((11..=19).all(|tenth| of(tenth).is_none()), "{delays:?}");
    assert_eq!(of(9), Some(0.0));
    // From 2.0 to 2.1 s twelve or thirteen begin: the mean is that of the sixth or seventh, 1 s - 6 x 1.76 ms.
    let first = of(21).expect("packets left");
    assert!((first - 0.9894).abs() < 0.01, "{first}");
}

#[test]
fn the_probed_wait_at_a_trace_is_what_its_packets_have_waited() {
    // One opportunity of 1504 bytes each 20 ms: 73 datagrams of 1030 bytes leave each second and 100 come. The one that leaves
    // at t has come at 0.73 t: from 4.9 to 5.0 s the mean wait is 0.27 x 4.95 s = 1.337 s, two packets (20 ms) more or less.
    // (The queue at 5 s divided by the mean rate of 601.6 kbit/s, the wait of one that comes then, is 1.85 s.)
    let probe = "[[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '100ms'";
    let outcome = chain("trace = [20]", &format!("{DATAGRAMS}\n{probe}"));
    let delay = outcome.series("link1", "queue_delay_s").find(|(at, _)| at.as_nanos() == 5_000_000_000).unwrap().1;
    assert!((delay - 1.337).abs() < 0.02, "{delay}");
}
