//! QUIC flows with the real stack on the simulated network.

use crate::common::{csv, flows_csv, mean, outcome, outcome_with};
use fullpipe_congestion::cubic::Cubic;
use fullpipe_lab::{Options, Outcome, Plugins, RunError, prepare_with, run};
use fullpipe_units::Duration;
use std::sync::Arc;

/// 10 Mbit/s and 10 ms, with packets of 1200 bytes at all times.
const TRANSFER: &str = r#"
    duration = "60s"
    [topology]
    kind = "chain"
    link = [{ rate = "10Mbit/s", delay = "5ms", queue = "30kB", framing = "0B" }]
    [quic]
    largest_mtu = "1200B"
    [[flow]]
    name = "bulk"
    from = "source"
    to = "sink"
    protocol = "quic"
    size = "10MB"
    [[probe]]
    flow = "bulk"
    metrics = ["cwnd_bytes", "ssthresh_bytes", "inflight_bytes", "srtt_s", "delivery_bps", "throughput_bps"]
"#;

fn seconds(outcome: &Outcome, flow: &str) -> f64 {
    outcome.flow(flow).expect("the flow").completion.unwrap_or_else(|| panic!("{flow} is not over")).as_secs_f64()
}

fn series_csv(outcome: &Outcome) -> String {
    csv(outcome, "series.csv")
}

/// The number of packets follows from the packet formats (as in the stack's own tests): 8562 to 8569 packets of 1228 bytes at the IP
/// layer for 10 MB, without losses. Lost data is retransmitted, which also takes time.
#[test]
fn transfer_over_the_stack_takes_the_time_of_its_packets() {
    let outcome = outcome(TRANSFER);
    let row = outcome.flow("bulk").expect("the flow");
    assert_eq!((row.protocol, row.congestion), ("quic", Some("cubic")));
    let arrived = row.counters.rx_packets;
    // Full packets; handshake and close; at most a few duplicates.
    assert!((8562..8620).contains(&arrived), "{arrived}");
    assert_eq!(row.counters.tx_packets, arrived + row.counters.lost_packets);
    let again = row.retransmitted_packets.expect("the stack counts");
    // The packets declared lost are exactly those that the queue dropped.
    assert_eq!(again, row.counters.lost_packets);
    // The link is busy with arriving packets from the end of the first flights on. These take one round trip of the handshake and two of
    // slow start, 10 ms each, and the last packet takes 5 ms.
    let busy = row.counters.rx_bytes as f64 * 8.0 / 10e6;
    let over = seconds(&outcome, "bulk");
    assert!(over > busy && over < busy + 0.045, "{over} and {busy}");
    assert!((over - 8.45).abs() < 0.06, "{over}: 8566 packets of 1228 bytes and 30 ms");
    assert_eq!(outcome.totals().live_endpoints, 0);
    assert!(
        outcome.end_time().as_secs_f64() < over + 1.0,
        "the run continues after the transfer: {}",
        outcome.end_time().as_secs_f64()
    );
}

#[test]
fn series_contain_the_control_of_the_stack() {
    let outcome = outcome(TRANSFER);
    // The queue of 30 kB is never full for long: the round-trip time is between 10 and 34 ms, and the window fills pipe (12.5 kB) and
    // queue.
    let srtt = mean(&outcome, "srtt_s", 1.0);
    assert!((0.011..0.035).contains(&srtt), "{srtt}");
    let window = mean(&outcome, "cwnd_bytes", 1.0);
    assert!((20_000.0..60_000.0).contains(&window), "{window}");
    let in_flight = mean(&outcome, "inflight_bytes", 1.0);
    assert!(in_flight <= window + 1_200.0 && in_flight > 12_500.0, "{in_flight}");
    // The link is busy until the transfer ends.
    let busy = |row: &fullpipe_lab::SeriesRow<'_>| (1.0..8.0).contains(&row.time.as_secs_f64());
    let rates = outcome.series_rows().filter(|row| row.metric == "throughput_bps" && busy(row)).map(|row| row.value);
    let throughput = rates.sum::<f64>() / 700.0;
    assert!((9.9e6..10.05e6).contains(&throughput), "{throughput}");
    // The fraction of QUIC packets in the rate: 1200 of 1228 bytes.
    let delivery = mean(&outcome, "delivery_bps", 1.0);
    assert!((9.0e6..10.2e6).contains(&delivery), "{delivery}");
    // No threshold before the first loss.
    let first = outcome.series_rows().find(|row| row.metric == "ssthresh_bytes").expect("there was a loss");
    assert!(first.time.as_secs_f64() > 0.02);
}

#[test]
fn run_with_the_same_seed_is_identical_with_all_options() {
    let mixed = format!(
        "{}\n[[flow]]\nname = \"model\"\nfrom = \"source\"\nto = \"sink\"\nsize = \"2MB\"\n",
        TRANSFER.replace("10MB", "2MB")
    );
    let text = |seed: &str, options: &Options| {
        let set = [fullpipe_scenario::Override { path: "seed".into(), value: seed.into() }];
        let loaded = fullpipe_scenario::load(&mixed, "test.toml", &set).unwrap_or_else(|errors| panic!("{errors}"));
        let outcome = run(&loaded.scenario, options).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());
        flows_csv(&outcome) + &series_csv(&outcome)
    };
    let usual = text("1", &Options::default());
    assert_eq!(usual, text("1", &Options::default()));
    assert_eq!(usual, text("1", &Options { audit_packets: true, fusion: false, ..Options::default() }));
    assert_ne!(usual, text("2", &Options::default()));
}

#[test]
fn real_stack_and_model_share_a_bottleneck() {
    let text = r#"
        duration = "30s"
        [topology]
        kind = "dumbbell"
        pairs = 2
        access = { rate = "100Mbit/s", delay = "1ms" }
        bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "40kB" }
        [tcp]
        mss = "1400B"
        [[flow]]
        name = "model"
        from = "left1"
        to = "right1"
        [[flow]]
        name = "real"
        from = "left2"
        to = "right2"
        protocol = "quic"
    "#;
    let outcome = outcome(text);
    let goodput = |flow: &str| outcome.flow(flow).expect("the flow").goodput_bps.expect("it has one");
    let (model, real) = (goodput("model"), goodput("real"));
    assert!(model + real > 9.0e6 && model + real < 10e6, "{model} and {real}");
    // The same control over the same path: neither flow starves.
    assert!(model > 2.0e6 && real > 2.0e6, "{model} and {real}");
}

#[test]
fn exchanges_over_separate_or_shared_connections_complete() {
    for connection in ["per-exchange", "kept"] {
        let text = format!(
            r#"
            duration = "60s"
            [topology]
            kind = "chain"
            link = [{{ rate = "10Mbit/s", delay = "5ms", framing = "0B" }}]
            [[flow]]
            name = "web"
            from = "source"
            to = "sink"
            protocol = "quic"
            workload = "request-response"
            exchanges = 5
            request = "100B"
            response = "20kB"
            connection = "{connection}"
            "#
        );
        let outcome = outcome(&text);
        let times: Vec<f64> = outcome
            .completion_rows()
            .map(|row| row.completion.completed.saturating_since(row.completion.started).as_secs_f64())
            .collect();
        assert_eq!(times.len(), 5, "{connection}");
        // 20 kB at 10 Mbit/s: 16.8 ms, and a round trip; with a new connection two, and the server's flight.
        let least = if connection == "per-exchange" { 0.036 } else { 0.026 };
        assert!(times[4] > least && times[4] < least + 0.025, "{connection}: {times:?}");
        assert_eq!(outcome.totals().live_endpoints, 0, "{connection}");
    }
}

#[test]
fn smaller_path_mtu_is_discovered_without_fragmentation() {
    let outcome = outcome_with(
        &TRANSFER.replace("largest_mtu = \"1200B\"", "").replace("10MB", "1MB"),
        &[("topology.link.0.mtu", "\"1300B\""), ("topology.link.0.queue", "\"unlimited\"")],
    );
    let row = outcome.flow("bulk").expect("the flow");
    assert!(row.completion.is_some());
    // The largest probe that fits has 1272 bytes; larger ones are dropped, not fragmented.
    let mean_bytes = row.counters.rx_bytes as f64 / row.counters.rx_packets as f64;
    assert!((1200.0..=1300.0).contains(&mean_bytes), "{mean_bytes}");
    assert!((1..20).contains(&row.counters.lost_packets), "{}", row.counters.lost_packets);
}

#[test]
fn stack_responds_to_ecn_marks() {
    let outcome = outcome(
        r#"
        duration = "20s"
        [topology]
        kind = "chain"
        link = [{ rate = "10Mbit/s", delay = "5ms", queue = "2packets", discipline = { kind = "step", limit = "200kB", threshold = "20kB" } }]
        [[flow]]
        name = "bulk"
        from = "source"
        to = "sink"
        protocol = "quic"
        size = "10MB"
        "#,
    );
    let row = outcome.flow("bulk").expect("the flow");
    assert!(row.marked_packets.expect("the stack reports marks") > 10, "{row:?}");
    assert_eq!(row.counters.lost_packets, 0);
    assert!(seconds(&outcome, "bulk") < 9.5);
}

/// Over 1 Gbit/s and 5 ms, the handshake and one small exchange take 10 ms per round trip. In each round trip each end waits once. For a
/// flight of several datagrams the first starts the wait, so the waits take at most that time, and up to some 10 us less.
#[test]
fn endpoint_with_a_reaction_time_waits_once_for_all_received_datagrams() {
    let exchange = |reaction: &str| {
        let outcome = outcome(&format!(
            r#"
            duration = "1s"
            [topology]
            kind = "chain"
            link = [{{ rate = "1Gbit/s", delay = "5ms" }}]
            [[flow]]
            name = "question"
            from = "source"
            to = "sink"
            protocol = "quic"
            workload = "request-response"
            request = "100B"
            response = "100B"
            exchanges = 1
            quic = {{ reaction = {reaction}, certificates = "1000B" }}
            "#
        ));
        outcome.figure_rows().find(|row| row.name == "exchange_max_s").expect("an exchange").value
    };
    let (without, with) = (exchange("'0s'"), exchange("'1ms'"));
    let round_trips = (without / 0.01).round();
    assert!(round_trips >= 2.0 && (without - 0.01 * round_trips).abs() < 0.0001, "{without}");
    let longer = (with - without) / round_trips;
    assert!((0.001_95..=0.002_001).contains(&longer), "{longer}");
    // Random times: each of the two waits of a round trip is between 1 and 3 ms, and they are unlikely to be equal.
    let drawn = exchange("{ kind = 'uniform', low = '1ms', high = '3ms' }");
    let longer = (drawn - without) / round_trips;
    assert!((0.001_95..=0.006_001).contains(&longer) && (longer - 0.004).abs() > 1e-6, "{longer}");
    assert_eq!(drawn, exchange("{ kind = 'uniform', low = '1ms', high = '3ms' }"));
}

/// The second of the client's first two datagrams is paced: one of the ten packets of the initial window is sent 333 ms / 10 / 1.25 =
/// 26.64 ms after the other. Without a response it is retransmitted 333 + 4 * 333 / 2 = 999 ms later (RFC 9002 sections 6.2.1 and 6.2.2),
/// at 1.02564 s, or at the next tick of the timers.
#[test]
fn timers_of_the_stack_fire_at_ticks() {
    let again = |granularity: &str| {
        let outcome = outcome(&format!(
            r#"
            duration = "1.9s"
            [topology]
            kind = "chain"
            link = [{{ rate = "100Mbit/s", delay = "20ms", loss = {{ kind = "bernoulli", probability = 1.0 }} }}]
            [[flow]]
            name = "bulk"
            from = "source"
            to = "sink"
            protocol = "quic"
            workload = "bulk"
            quic = {{ timer_granularity = "{granularity}" }}
            "#
        ));
        outcome.flow("bulk").expect("the flow").counters.last_tx.as_secs_f64()
    };
    assert_eq!(again("0s"), 1.025_64);
    // One tick for each of the two timers.
    let (fine, coarse) = (again("1ms"), again("300ms"));
    assert!(fine > 1.025_64 && fine < 1.027_64, "{fine}");
    assert!(coarse > 1.027_64 && coarse < 1.625_64, "{coarse}");
}

#[test]
fn idle_connection_closes_after_the_idle_timeout() {
    let outcome = outcome(
        r#"
        duration = "60s"
        [topology]
        kind = "chain"
        link = [{ rate = "10Mbit/s", delay = "5ms" }]
        [[flow]]
        name = "silent"
        from = "source"
        to = "sink"
        protocol = "quic"
        workload = "idle"
        quic = { idle_timeout = "5s" }
        "#,
    );
    assert_eq!(outcome.totals().live_endpoints, 0);
    // RFC 9000 section 10.1: the connection is closed silently.
    let last = outcome.flow("silent").expect("the flow").counters.last_tx;
    assert!(last.as_secs_f64() < 1.0, "{}", last.as_secs_f64());
}

#[test]
fn control_that_needs_unavailable_reports_is_an_error() {
    let loaded =
        fullpipe_scenario::load(&TRANSFER.replace("size =", "congestion = \"dctcp\"\nsize ="), "test.toml", &[])
            .unwrap_or_else(|errors| panic!("{errors}"));
    let error = run(&loaded.scenario, &Options::default()).expect_err("refused");
    assert!(matches!(error, RunError::CongestionControl { .. }));
    assert_eq!(
        error.to_string(),
        "flow \"bulk\": congestion control `dctcp` needs counts of congestion marks, and the QUIC stack reports only that \
         there are new ones"
    );
}

/// Sizes and times of packets do not depend on their encryption, so records are identical, byte for byte.
#[test]
fn tls_does_not_change_records() {
    let with = |cryptography: &str| {
        let quic = format!("[quic]\n    cryptography = \"{cryptography}\"\n");
        let text = TRANSFER.replace("10MB", "2MB").replace("[quic]\n", &quic);
        let outcome = outcome(&text);
        flows_csv(&outcome) + &series_csv(&outcome)
    };
    let null = with("null");
    assert!(null.lines().count() > 100);
    assert_eq!(null, with("tls"));
}

#[test]
fn impossible_certificate_size_is_an_error() {
    let text = TRANSFER.replace("[quic]\n", "[quic]\n    cryptography = \"tls\"\n    certificates = \"70kB\"\n");
    let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let refused = run(&loaded.scenario, &Options::default()).expect_err("refused");
    let reason = "flow \"bulk\": certificates of 70000 bytes are not supported; expected 400 to 60000 bytes";
    assert_eq!(refused.to_string(), reason);
}

#[test]
fn plugged_in_built_in_control_does_not_change_records() {
    let text = TRANSFER.replace("10MB", "1MB").replace("[quic]", "[quic]\nhystart = false");
    let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let shared = Arc::new(loaded.scenario);
    let csv = |plugins| {
        let prepared = prepare_with(Arc::clone(&shared), &Options::default(), plugins);
        flows_csv(&prepared.unwrap_or_else(|error| panic!("{error}")).run())
    };
    let plugged = Plugins::new().control("bulk", |_| Box::new(Cubic::default()));
    assert_eq!(csv(plugged), csv(Plugins::new()));
}

#[test]
fn connection_survives_a_short_outage_and_closes_after_a_long_one() {
    let text = TRANSFER.replace(
        "framing = \"0B\"",
        "framing = \"0B\", schedule = [{ at = \"2s\", outage = true }, { at = \"4s\", rate = \"10Mbit/s\" }]",
    );
    let over = seconds(&outcome(&text), "bulk");
    assert!(over > 10.4 && over < 13.0, "{over}: expected two seconds more than without the outage");
    let ended = outcome(&text.replace("at = \"4s\"", "at = \"50s\""));
    assert!(ended.flow("bulk").expect("the flow").completion.is_none());
    // Thirty seconds without a packet of the peer; packets in the queue of the link are delivered afterwards.
    assert_eq!(ended.totals().live_endpoints, 0);
    assert!(ended.end_time().saturating_since(fullpipe_units::Instant::ZERO) < Duration::from_secs(60));
}

/// RFC 9002 section 7.3.3: in congestion avoidance the window grows by one packet per window of packets, with acknowledgments of each or
/// every second packet (as in this stack). With every n-th packet lost, the window decreases from W to W / 2, stays there for the round
/// trip of the recovery, and grows back in W / 2 round trips: 3 / 8 W^2 + W / 2 = n packets between losses. n = 1000 gives W = 51.0 and a
/// time average of (1 * 25.5 + 25.5 * 38.2) / 26.5 = 37.8 packets. (If acknowledgments were counted, as in TCP, it would be 27.)
#[test]
fn newreno_of_the_stack_grows_as_in_rfc_9002() {
    let outcome = outcome(
        r#"
        duration = "200s"
        [topology]
        kind = "chain"
        link = [{ rate = "100Mbit/s", delay = "30ms", queue = "unlimited", framing = "0B", loss = { kind = "periodic", every = 1000 } }]
        [quic]
        largest_mtu = "1200B"
        congestion = "newreno"
        [[flow]]
        name = "bulk"
        from = "source"
        to = "sink"
        protocol = "quic"
        [[probe]]
        flow = "bulk"
        metrics = ["cwnd_bytes"]
        interval = "20ms"
        "#,
    );
    let packets = mean(&outcome, "cwnd_bytes", 20.0) / 1200.0;
    println!("{packets:.2} packets");
    assert!((packets / 37.8 - 1.0).abs() < 0.05, "{packets}");
}
