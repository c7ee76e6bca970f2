//! Links whose behavior varies over time, and processing times of senders, from the scenario to the records.

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
fn link_with_a_varying_rate_carries_its_capacity() {
    // TCP fills the link: 10 s at 10 Mbit/s, an outage of 5 s, 15 s at 2 Mbit/s. 100 + 30 Mbit on the wire, of which 1448 of 1502 bytes
    // are payload: 125.3 Mbit. Slow start and the timeouts of the outage take a few percent. Timeouts double from 0.2 s; the
    // retransmission that first succeeds is at most as late as the wait before it.
    let outcome =
        chain("schedule = [{ at = '10s', outage = true }, { at = '15s', rate = '2Mbit/s' }]", "congestion = 'cubic'");
    let payload = outcome.flow_rows().next().unwrap().goodput_bps.unwrap() * 30.0 / 1e6;
    assert!((0.85 * 125.3..=125.4).contains(&payload), "{payload} Mbit");
}

#[test]
fn trace_link_delivers_1504_bytes_per_opportunity() {
    // One opportunity every 10 ms from 10 ms on. 1002 bytes of payload, with headers and framing, use one each; one datagram is sent
    // every 10 ms from 0 on. All arrive; the n-th at 10 n + 10 ms + 10 ms.
    let outcome = chain("trace = [10]", DATAGRAMS);
    let row = outcome.flow_rows().next().unwrap().counters;
    assert_eq!(row.rx_packets, 1000);
    // Two frames of 1030 bytes use one opportunity of 1504 bytes and part of the next; the following frame uses the rest.
    let mean = row.delay_sum.as_secs_f64() / 1000.0;
    assert!((0.010..0.0205).contains(&mean), "{mean}");
}

#[test]
fn impairments_affect_the_expected_fraction_of_packets() {
    // Binomials of 1000: five standard deviations.
    for (link, low, high) in [
        // 0.1: 900 with 9.5.
        ("loss = { kind = 'bernoulli', probability = 0.1 }", 853, 947),
        // In the bad state a fifth of the time: 0.01 / (0.01 + 0.04) = 0.2. Bursts of 25 increase the variance of the count: n p q (1 +
        // r) / (1 - r) with r = 1 - 0.05 = 0.95: 160 x 39 = 6240; standard deviation 79.
        ("loss = { kind = 'gilbert-elliott', good_to_bad = 0.01, bad_to_good = 0.04 }", 405, 1000),
        ("loss = { kind = 'droplist', frames = [1, 7, 1000, 1001] }", 997, 997),
        // From 2 s to 3 s, the transmissions of a hundred datagrams end.
        ("blackholes = [{ from = '2s', until = '3s' }]", 899, 901),
        // 1 - (1 - 1e-5)^(8 x 1030) = 0.0791: 921 with standard deviation 8.5.
        ("corruption = { bit_error_rate = 1e-5 }", 878, 964),
        ("corruption = { bit_error_rate = 1e-5, delivered = true }", 878, 964),
        // Copies: 1000 + 100 with standard deviation 9.5.
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
fn reverse_direction_has_its_own_impairments() {
    let outcome = chain("reverse = { loss = { kind = 'bernoulli', probability = 0.5 } }", DATAGRAMS);
    assert_eq!(received(&outcome), 1000);
}

#[test]
fn senders_that_share_a_queue_have_processing_jitter() {
    // Two flows of one host use one drop-tail link. A packet of 1502 bytes at 10 Mbit/s takes 1.2016 ms, so a datagram is sent up to that
    // much later, 0.6 ms on average. There is no other delay, because the link is idle between datagrams.
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
        // Sent packets count from the departure of a packet: only the times of the first and last packet are random.
        (row.last_tx.as_nanos(), row.jitter_sum.as_nanos())
    };
    assert_eq!(two("processing_jitter = '0s'").0, 9_990_000_000);
    let (last, _) = two("");
    assert!((9_990_000_001..=9_991_201_600).contains(&last), "{last}");
}

/// Little's law: the mean wait is the integral of the queue length over time, divided by the number of departures.
#[test]
fn probed_queue_delay_with_a_varying_rate_agrees_with_littles_law() {
    // Bursts of 150 datagrams of 1030 bytes at 3.09 Mbit/s, 1.8 Mbit/s on average; the last departs long before 29 s. A datagram in the
    // other direction keeps the run active until then.
    let flow = "protocol = 'udp'\nworkload = 'on-off'\non = '400ms'\noff = '300ms'\nrate = '3Mbit/s'\npayload = '1000B'
        packets = 2000
        [[flow]]\nfrom = 'sink'\nto = 'source'\nstart = '29s'\nprotocol = 'udp'\nworkload = 'constant-rate'
        payload = '1000B'\ninterval = '1s'\npackets = 1
        [[probe]]\nlink = 'link1'\nmetrics = ['queue_bytes']\ninterval = '100us'
        [[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '29s'";
    // A trace of 4 Mbit/s with pauses of half a second: 0.93 Mbit/s on average. A schedule of 8 and 1 Mbit/s with an outage. The same
    // below a discipline, which releases frames one by one.
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
        assert!(by_law > 0.05, "the queue was not filled: {by_law}");
        // Sampled every 100 us, the length is wrong for at most that time at each arrival and each departure.
        assert!((probed - by_law).abs() < 200e-6, "{link}: {probed} by measurement, {by_law} by Little's law");
    }
}

#[test]
fn probed_queue_delay_is_that_of_departed_packets() {
    // 100 datagrams of 1030 bytes arrive per second. No packet departs from 1 s to 2 s: there is no sample. Then 1 Mbit/s sends one per
    // 8.24 ms, while one arrives per 10 ms. Of those that arrived during the outage, the first waits 1 s, and the wait decreases by 1.76
    // ms per packet.
    let schedule = "schedule = [{ at = '1s', outage = true }, { at = '2s', rate = '1Mbit/s' }]";
    let probe = "[[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '100ms'";
    let outcome = chain(schedule, &format!("{DATAGRAMS}\n{probe}"));
    let delays: Vec<(u64, f64)> =
        outcome.series("link1", "queue_delay_s").map(|(at, delay)| (at.as_nanos() / 100_000_000, delay)).collect();
    let of = |tenth: u64| delays.iter().find(|(at, _)| *at == tenth).map(|(_, delay)| *delay);
    assert!((11..=19).all(|tenth| of(tenth).is_none()), "{delays:?}");
    assert_eq!(of(9), Some(0.0));
    // From 2.0 to 2.1 s, the transmissions of twelve or thirteen begin: the mean is that of the sixth or seventh, 1 s - 6 x 1.76 ms.
    let first = of(21).expect("packets left");
    assert!((first - 0.9894).abs() < 0.01, "{first}");
}

#[test]
fn probed_queue_delay_at_a_trace_is_the_wait_of_its_packets() {
    // One opportunity of 1504 bytes every 20 ms: 73 datagrams of 1030 bytes depart per second and 100 arrive. A datagram that departs at
    // t arrived at 0.73 t. From 4.9 to 5.0 s the mean wait is 0.27 x 4.95 s = 1.337 s, within two packets (20 ms). (The queue at 5 s
    // divided by the mean rate of 601.6 kbit/s, the wait of a packet that arrives then, is 1.85 s.)
    let probe = "[[probe]]\nlink = 'link1'\nmetrics = ['queue_delay_s']\ninterval = '100ms'";
    let outcome = chain("trace = [20]", &format!("{DATAGRAMS}\n{probe}"));
    let delay = outcome.series("link1", "queue_delay_s").find(|(at, _)| at.as_nanos() == 5_000_000_000).unwrap().1;
    assert!((delay - 1.337).abs() < 0.02, "{delay}");
}

/// A queue that fills faster than it drains must not appear as throughput above the rate of the link.
#[test]
fn throughput_of_a_link_is_that_of_departures_and_not_of_arrivals() {
    for (discipline, rate) in [("none", 10e6), ("codel", 10e6), ("schedule", 10e6)] {
        let link = match discipline {
            "none" => r#"rate = "10Mbit/s""#,
            "codel" => r#"rate = "10Mbit/s", discipline = { kind = "codel" }"#,
            _ => r#"rate = "20Mbit/s", schedule = [{ at = "0s", rate = "10Mbit/s" }]"#,
        };
        let text = format!(
            r#"
            duration = "2s"
            [topology]
            kind = "dumbbell"
            access = {{ rate = "1Gbit/s", delay = "1ms" }}
            bottleneck = {{ {link}, delay = "20ms", queue = "500kB" }}
            [[flow]]
            from = "left1"
            to = "right1"
            workload = "bulk"
            [[probe]]
            link = "bottleneck"
            metrics = ["throughput_bps", "queue_bytes"]
            interval = "20ms"
            "#
        );
        let outcome = outcome(&text);
        let queue = outcome.series("bottleneck", "queue_bytes").map(|(_, bytes)| bytes).fold(0.0, f64::max);
        assert!(queue > 100_000.0, "{discipline}: {queue}");
        // A frame of 1518 bytes counts when its transmission starts, so an interval has at most one frame more.
        let most = rate + 1518.0 * 8.0 / 0.02;
        for (at, bps) in outcome.series("bottleneck", "throughput_bps") {
            assert!(bps <= most, "{discipline}: {bps} at {at}");
        }
    }
}
