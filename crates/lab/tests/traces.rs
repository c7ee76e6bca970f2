//! Traces of links as CSV and of delivery opportunities, and their offsets, from the scenario to the records.

use crate::common::{flows_csv, outcome_with};
use fullpipe_lab::Outcome;
use fullpipe_units::RandomStream;

/// 8 Mbit/s and 10 ms for 1 s, 2 Mbit/s and 30 ms for 1 s, an outage of 0.5 s, 4 Mbit/s and 5 ms for 0.5 s; then again.
const STEPS: &str = r"'time_s,rate_mbps,delay_ms\n0,8,10\n1,2,30\n2,0,\n2.5,4,5\n3,,\n'";
/// The same from 2 s on.
const FROM_2_S: &str = r"'time_s,rate_mbps,delay_ms\n0,0,30\n0.5,4,5\n1,8,10\n2,2,30\n3,,\n'";

/// A flow of datagrams of 1000 bytes on the wire over one link.
fn datagrams(link: &str, interval: &str, packets: u32, seed: u64) -> Outcome {
    let text = format!(
        "duration = '9040500us'
        [topology]
        kind = 'chain'
        [[topology.link]]
        delay = '10ms'
        queue = '10packets'
        {}
        [[flow]]
        name = 'there'
        from = 'source'
        to = 'sink'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '970B'
        interval = '{interval}'
        packets = {packets}
        [[flow]]
        name = 'back'
        from = 'sink'
        to = 'source'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '970B'
        interval = '{interval}'
        packets = {packets}",
        // A TOML text with escapes has double quotes.
        link.replace('\'', "\"")
    );
    outcome_with(&text, &[("seed", &seed.to_string())])
}

/// The number of received packets and the sum of their delays in nanoseconds, of both flows.
fn received(outcome: &Outcome) -> Vec<(u64, u64)> {
    let row = |row: fullpipe_lab::FlowRow| (row.counters.rx_packets, row.counters.delay_sum.as_secs_f64());
    outcome.flow_rows().map(row).map(|(packets, delay)| (packets, (delay * 1e9).round() as u64)).collect()
}

#[test]
fn packets_delivered_equal_the_integral_of_the_rate() {
    // 16 Mbit/s are offered. A period has 8 + 2 + 0 + 2 = 12 Mbit = 1500 packets. Until 9.0305 s three periods and 30 packets have
    // left, which arrive by 9.0405 s.
    let there = received(&datagrams(&format!("trace = {STEPS}"), "500us", 20_000, 1))[0];
    assert_eq!(there.0, 4530);
}

#[test]
fn each_packet_has_the_rate_and_the_delay_of_its_time() {
    // One packet each 100 ms. At 8 Mbit/s: ten of 1 + 10 ms; at 2 Mbit/s: ten of 4 + 30 ms. Those at 2.0 to 2.4 s leave from 2.5 s on, one
    // each 2 ms: 507 + 409 + 311 + 213 + 115 ms; that at 2.5 s has 12 + 5 ms; four have 2 + 5 ms. Together 2.05 s.
    let found = |link: &str, packets| received(&datagrams(link, "100ms", packets, 1))[0];
    let trace = format!("trace = {STEPS}");
    assert_eq!(found(&trace, 30), (30, 2_050_000_000));
    assert_eq!(found(&trace, 60), (60, 4_100_000_000));
    assert_eq!(found(&trace, 5), (5, 55_000_000));
    assert_eq!(found(&format!("{trace}\ntrace_offset = '2s'"), 5), (5, 1_555_000_000));
    assert_eq!(found(&format!("{trace}\ntrace_offset = '11s'"), 5), (5, 1_555_000_000));
}

#[test]
fn losses_of_a_trace_begin_and_end_at_their_times() {
    // All packets that leave from 1 to 2 s of each 3 s are lost: 11 to 20, 41 to 50 of 60, which leave 1 ms after they were sent.
    let link = r"rate = '8Mbit/s'
        trace = 'time_s,loss\n0,0\n1,1\n2,0\n3,\n'";
    assert_eq!(received(&datagrams(link, "100ms", 60, 1))[0], (40, 40 * 11_000_000));
    let later = format!("{link}\ntrace_offset = '500ms'");
    // Lost are 6 to 15 and 36 to 45 of 40.
    assert_eq!(received(&datagrams(&later, "100ms", 40, 1))[0].0, 25);
}

#[test]
fn an_offset_equals_a_rotated_trace() {
    let link = |trace: &str, offset: &str| format!("rate = '8Mbit/s'\ntrace = {trace}\n{offset}");
    for (interval, packets) in [("100ms", 60), ("500us", 20_000)] {
        let shifted = datagrams(&link(STEPS, "trace_offset = '2s'"), interval, packets, 1);
        assert_eq!(flows_csv(&shifted), flows_csv(&datagrams(&link(FROM_2_S, ""), interval, packets, 1)));
    }
}

#[test]
fn a_random_offset_is_drawn_from_the_seed_for_both_directions() {
    let link = |offset: &str| {
        format!(
            "trace = {STEPS}\ntrace_offset = '{offset}'\nreverse = {{ trace = {STEPS}, trace_offset = '{offset}' }}"
        )
    };
    let mut seen = Vec::new();
    for seed in 1..=5 {
        let offset = RandomStream::new(seed, "link1", "trace offset").uniform_below(3000);
        let random = datagrams(&link("random"), "100ms", 25, seed);
        let fixed = datagrams(&link(&format!("{offset}ms")), "100ms", 25, seed);
        assert_eq!(flows_csv(&random), flows_csv(&fixed), "seed {seed}");
        assert_eq!(flows_csv(&random), flows_csv(&datagrams(&link("random"), "100ms", 25, seed)));
        let both = received(&random);
        assert_eq!(both[0], both[1], "seed {seed}");
        seen.push(both[0]);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn an_offset_applies_to_delivery_opportunities() {
    // Opportunities at 10 and 1000 ms, and a delay of 10 ms.
    for (offset, delay_ms) in [("", 20), ("trace_offset = '10ms'", 10), ("trace_offset = '11ms'", 999)] {
        let found = received(&datagrams(&format!("trace = [10, 1000]\n{offset}"), "100ms", 1, 1))[0];
        assert_eq!(found, (1, delay_ms * 1_000_000), "{offset}");
    }
    let at =
        |offset: &str| flows_csv(&datagrams(&format!("trace = [10, 1000]\ntrace_offset = '{offset}'"), "50ms", 9, 3));
    let offset = RandomStream::new(3, "link1", "trace offset").uniform_below(1000);
    assert_eq!(at("random"), at(&format!("{offset}ms")));
}

#[test]
fn the_embedded_example_starts_each_seed_at_another_place() {
    let text = include_str!("../../../scenarios/starlink-like.toml");
    let goodput = |seed: &str| -> Vec<f64> {
        let outcome = outcome_with(text, &[("duration", "4s"), ("seed", seed)]);
        // The acknowledgments have none.
        outcome.flow_rows().filter_map(|row| row.goodput_bps).collect()
    };
    let (first, second) = (goodput("1"), goodput("2"));
    assert_eq!((first.len(), second.len()), (2, 2));
    assert!(first.iter().chain(&second).all(|bps| *bps > 1e6), "{first:?} {second:?}");
    // The trace has at most 120 Mbit/s.
    assert!([&first, &second].iter().all(|run| run.iter().sum::<f64>() < 120e6));
    assert_ne!(first, second);
}
