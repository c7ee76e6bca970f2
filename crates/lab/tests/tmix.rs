//! Connection vectors over TCP and a network: segment sizes and windows of the trace, totals, errors.

use fullpipe_lab::{Options, Outcome, run};
use std::path::Path;

/// One connection in the original format: a request of 100 bytes, a response of 100 000, segments of 496 bytes in one direction and 1460
/// in the other, and a window of 8760 bytes at the initiator.
const VECTOR: &str = "SEQ 1000000 1 1 7\nm 496 1460\nw 8760 65535\nr 100000\nl 0 0\n> 100\nt 1000\n< 100000\nt 1000\n";

fn scenario(name: &str, keys: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join(format!("{name}.cvec")), VECTOR).expect("a temporary file");
    format!(
        r#"
        duration = "20s"
        [topology]
        kind = "chain"
        link = [{{ rate = "1Gbit/s", delay = "50ms" }}]
        [tcp]
        timestamps = false
        congestion = "newreno"
        [[flow]]
        name = "trace"
        from = "source"
        to = "sink"
        workload = "tmix"
        file = "{name}.cvec"
        {keys}
        "#
    )
}

fn outcome(name: &str, keys: &str) -> Outcome {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.toml"));
    let loaded = fullpipe_scenario::load(&scenario(name, keys), &file.display().to_string(), &[]);
    let outcome = run(&loaded.expect("it is right").scenario, &Options::default()).expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

fn figure(outcome: &Outcome, name: &str) -> f64 {
    outcome.figure_rows().find(|row| row.name == name).expect("there is such a figure").value
}

#[test]
fn tmix_connection_uses_the_window_of_the_trace() {
    // Both ends send segments of 496 bytes, the smaller size. Ten are sent first (initial window), then 17 per round trip, because more
    // do not fit into 8760 bytes. 100 000 bytes are 10 and 192 segments, so 1 + 12 rounds: 50 + 12 x 100 + 50 ms, plus a short time on
    // the link.
    let outcome = outcome("window", "");
    assert_eq!(figure(&outcome, "connections_finished"), 1.0);
    let time = figure(&outcome, "mean_response_100kB_s");
    assert!((1.3..1.31).contains(&time), "{time}");
}

#[test]
fn tmix_connection_uses_the_windows_of_the_flow_if_configured() {
    // Ten segments, then 20, 40, 80: 150 have arrived after four rounds, 202 after five: 50 + 4 x 100 + 50 ms.
    let outcome = outcome("no-window", "windows = \"flow\"");
    let time = figure(&outcome, "mean_response_100kB_s");
    assert!((0.5..0.51).contains(&time), "{time}");
}

#[test]
fn segments_have_the_smaller_announced_size() {
    // RFC 9293 section 3.7.1: neither end sends larger segments than the other announces. 100 000 bytes in segments of 496 are 202. The
    // initiator sends one request, which padding fills to 496 bytes.
    let outcome = outcome("segments", "windows = \"flow\"\npadded = true");
    let back = outcome.flow("trace.reverse").expect("it answered");
    // SYN-ACK, an acknowledgment of the request, 100 740 bytes (69 x 1460) in 204 segments of 496, the FIN, the last acknowledgment:
    // between 204 and 204 + 4.
    assert!((204..=208).contains(&back.counters.tx_packets), "{}", back.counters.tx_packets);
    assert_eq!(back.retransmitted_packets, Some(0));
    // Goodput is over the whole run: 496 and 100 740 bytes in 20 s.
    assert_eq!(outcome.flow("trace").expect("the flow has a row").goodput_bps, Some(496.0 * 8.0 / 20.0));
    assert_eq!(back.goodput_bps, Some(100_740.0 * 8.0 / 20.0));
}

#[test]
fn connections_of_a_trace_have_one_row_per_direction() {
    let text = r#"
        duration = "30s"
        [topology]
        kind = "chain"
        link = [{ rate = "100Mbit/s", delay = "20ms" }]
        [tcp]
        timestamps = false
        [[flow]]
        name = "trace"
        from = "source"
        to = "sink"
        workload = "tmix"
        trace = "r6s1"
        scale = 5
        exchanges = true
    "#;
    let loaded = fullpipe_scenario::load(text, "tmix.toml", &[]).expect("it is right");
    let outcome = run(&loaded.scenario, &Options::default()).expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    let rows: Vec<String> = outcome.flow_rows().map(|row| row.flow.into_owned()).collect();
    assert_eq!(rows, ["trace", "trace.reverse"]);
    assert!(figure(&outcome, "connections_begun") > 300.0);
    // The classes count the reported exchanges.
    let classes = ["responses_1kB", "responses_10kB", "responses_100kB", "responses_1MB", "responses_above"];
    let counted: f64 = classes.iter().map(|name| figure(&outcome, name)).sum();
    assert_eq!(outcome.completion_rows().count() as f64, counted);
    // Conservation: all packets sent in 30 s have arrived, except those in flight or lost.
    for row in outcome.flow_rows() {
        let counters = row.counters;
        assert!(counters.rx_packets <= counters.tx_packets && counters.tx_packets - counters.rx_packets < 100);
    }
}

#[test]
fn invalid_trace_is_an_error_with_its_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("broken.cvec"), "SEQ 0 1 1 1\nm 1460 1460\n> -5\n").expect("a temporary file");
    let text = scenario("never", "").replace("never.cvec", "broken.cvec");
    let loaded = fullpipe_scenario::load(&text, &folder.join("broken.toml").display().to_string(), &[]);
    let error = run(&loaded.expect("it is right").scenario, &Options::default()).expect_err("no trace");
    assert!(error.to_string().contains("broken.cvec:3"), "{error}");
}
