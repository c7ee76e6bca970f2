//! Tests of identical records, byte for byte: of two runs, with and without probes, with links computed at once or one by one, with and
//! without the packet auditor. The world of `fullpipe bench` is also that of `fullpipe run`.

use crate::common::{flows_csv, outcome_with};
use fullpipe_lab::{CaptureOptions, FileAppender, Options, run};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// A dumbbell with loss, short queues, three kinds of TCP, UDP, and a limited transfer.
const MIXED: &str = r#"
    duration = "8s"
    seed = 11
    [topology]
    kind = "dumbbell"
    pairs = 3
    access = { rate = "100Mbit/s", delay = "1ms", queue = "50packets" }
    bottleneck = { rate = "10Mbit/s", delay = "15ms", queue = "30kB", loss = { kind = "bernoulli", probability = 0.002 } }
    [[flow]]
    name = "cubic"
    from = "left1"
    to = "right1"
    workload = "bulk"
    [[flow]]
    name = "reno"
    from = "left2"
    to = "right2"
    congestion = "linux-reno"
    workload = "bulk"
    size = "2MB"
    [[flow]]
    name = "reverse"
    from = "right1"
    to = "left2"
    congestion = "newreno"
    start = "1s"
    workload = "transfers"
    transfers = [{ at = "0s", size = "200kB" }, { at = "3s", size = "300kB" }]
    [[flow]]
    name = "voice"
    from = "left3"
    to = "right3"
    protocol = "udp"
    workload = "constant-rate"
    payload = "160B"
    interval = "20ms"
"#;

/// A shared segment, whose events depend mostly on random numbers.
const SHARED: &str = r#"
    duration = "2s"
    seed = 5
    [topology]
    kind = "ethernet"
    hosts = ["a", "b"]
    rate = "100Mbit/s"
    delay = "2us"
    duplex = "half"
    [[flow]]
    name = "there"
    from = "a"
    to = "b"
    workload = "bulk"
    size = "3MB"
    [[flow]]
    name = "back"
    from = "b"
    to = "a"
    workload = "bulk"
    size = "3MB"
"#;

/// Datagrams of both IP versions that are fragmented at their source, and IPv4 also at a router.
const CUT: &str = r#"
    duration = "2s"
processing_jitter = "0s"
    [topology]
    kind = "chain"
    link = [{ rate = "10Mbit/s", delay = "2ms", loss = { kind = "periodic", every = 40 } },
            { rate = "20Mbit/s", delay = "1ms" }, { rate = "10Mbit/s", delay = "2ms", mtu = "9000B" }]
    [[flow]]
    name = "four"
    from = "sink"
    to = "source"
    workload = "constant-rate"
    protocol = "udp"
    payload = "4000B"
    interval = "20ms"
    [[flow]]
    name = "six"
    from = "source"
    to = "sink"
    ip = "ipv6"
    workload = "constant-rate"
    protocol = "udp"
    payload = "3999B"
    interval = "20ms"
    [[flow]]
    name = "too-big"
    from = "sink"
    to = "source"
    ip = "ipv6"
    workload = "constant-rate"
    protocol = "udp"
    payload = "3999B"
    interval = "20ms"
"#;

const PROBES: &str = r#"
    [[probe]]
    flow = "*"
    metrics = ["throughput_bps"]
    interval = "7ms"
"#;

const MORE_PROBES: &str = r#"
    [[probe]]
    flow = "cubic"
    metrics = ["cwnd_bytes", "ssthresh_bytes", "inflight_bytes", "srtt_s", "pacing_bps", "delivery_bps", "drops"]
    interval = "3ms"
    [[probe]]
    link = "*"
    metrics = ["queue_bytes", "queue_delay_s", "throughput_bps", "drops"]
    interval = "11ms"
"#;

#[test]
fn two_runs_give_identical_records() {
    for text in [MIXED, SHARED] {
        assert_eq!(flows_csv(&outcome_with(text, &[])), flows_csv(&outcome_with(text, &[])));
    }
}

#[test]
fn run_with_another_seed_gives_different_records() {
    for text in [MIXED, SHARED] {
        assert_ne!(flows_csv(&outcome_with(text, &[])), flows_csv(&outcome_with(text, &[("seed", "12")])));
    }
}

#[test]
fn probe_does_not_change_records() {
    let plain = flows_csv(&outcome_with(MIXED, &[]));
    for probes in [PROBES.to_string(), MORE_PROBES.to_string(), format!("{PROBES}{MORE_PROBES}")] {
        let probed = outcome_with(&format!("{MIXED}{probes}"), &[]);
        assert!(probed.series_rows().count() > 1000);
        assert_eq!(flows_csv(&probed), plain);
    }
    let plain = flows_csv(&outcome_with(SHARED, &[]));
    let probed = outcome_with(
        &format!(
            "{SHARED}{PROBES}[[probe]]\nethernet = \"ethernet\"\nmetrics = [\"throughput_bps\", \"drops\"]\ninterval = \"1ms\"\n"
        ),
        &[],
    );
    assert_eq!(flows_csv(&probed), plain);
}

#[test]
fn fusion_and_the_packet_auditor_do_not_change_records() {
    for text in [MIXED, SHARED] {
        let scenario = fullpipe_scenario::load(text, "mixed.toml", &[]).expect("it is right").scenario;
        let plain = run(&scenario, &Options::default()).expect("it runs");
        for options in
            [Options { fusion: false, ..Options::default() }, Options { audit_packets: true, ..Options::default() }]
        {
            let other = run(&scenario, &options).expect("it runs");
            assert!(other.verdict().passed(), "{}", other.verdict());
            assert_eq!(flows_csv(&other), flows_csv(&plain));
            assert_eq!(other.totals().packet_hops, plain.totals().packet_hops);
            assert_eq!(other.end_time(), plain.end_time());
        }
    }
}

#[test]
fn captures_do_not_change_records_and_are_identical_in_each_run() {
    for text in [MIXED, SHARED] {
        let scenario = fullpipe_scenario::load(text, "mixed.toml", &[]).expect("it is right").scenario;
        let plain = run(&scenario, &Options::default()).expect("it runs");
        let captured = || {
            let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
            let kept = files.clone();
            let append: FileAppender = Arc::new(move |name, bytes| {
                kept.lock().expect("no panic").entry(name.to_string()).or_default().extend_from_slice(bytes);
                Ok(())
            });
            let capture = Some(CaptureOptions { snap_bytes: 128, append });
            let other = run(&scenario, &Options { capture, ..Options::default() }).expect("it runs");
            assert!(other.capture_result().is_ok());
            assert_eq!(flows_csv(&other), flows_csv(&plain));
            assert_eq!(other.totals().packet_hops, plain.totals().packet_hops);
            // Packets of hosts with processing times (those that share the dumbbell's queue) are captured when they are sent, with an
            // event for each. Without processing times, packets are computed ahead, except on a shared medium.
            let takes_time = |source: &str| source.starts_with("left");
            let held = plain.flow_rows().filter(|row| takes_time(row.source)).map(|row| row.counters.tx_packets);
            assert_eq!(other.totals().events, plain.totals().events + held.sum::<u64>());
            files.lock().expect("no panic").clone()
        };
        let files = captured();
        let hosts = scenario.nodes.iter().filter(|node| !node.router);
        let expected: Vec<String> = hosts.map(|host| format!("{}.pcapng", host.name)).collect();
        assert_eq!(files.keys().cloned().collect::<BTreeSet<_>>(), expected.into_iter().collect());
        let received = plain.flow_rows().map(|row| row.counters.rx_packets).sum::<u64>();
        let sent = plain.flow_rows().map(|row| row.counters.tx_packets).sum::<u64>();
        assert_eq!(files.values().map(|file| blocks(file)).sum::<u64>(), sent + received);
        assert_eq!(captured(), files);
    }
}

/// Counts the packets of a pcapng file, in which every block is complete and has its length at both ends.
fn blocks(file: &[u8]) -> u64 {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut packets) = (0, 0);
    while at < file.len() {
        let length = number(at + 4) as usize;
        assert_eq!(number(at + length - 4) as usize, length);
        packets += u64::from(number(at) == 6);
        at += length;
    }
    packets
}

#[test]
fn capture_that_cannot_be_written_is_an_error() {
    let scenario = fullpipe_scenario::load(MIXED, "mixed.toml", &[]).expect("it is right").scenario;
    let append: FileAppender = Arc::new(|_, _| Err(std::io::ErrorKind::StorageFull.into()));
    let capture = Some(CaptureOptions { snap_bytes: 0, append });
    let outcome = run(&scenario, &Options { capture, ..Options::default() }).expect("it runs");
    assert_eq!(outcome.capture_result().map_err(std::io::Error::kind), Err(std::io::ErrorKind::StorageFull));
}

#[test]
fn fragments_pass_the_packet_auditor_and_only_the_source_fragments_ipv6() {
    let scenario = fullpipe_scenario::load(CUT, "cut.toml", &[]).expect("it is right").scenario;
    for fusion in [true, false] {
        let outcome = run(&scenario, &Options { audit_packets: true, fusion, ..Options::default() }).expect("it runs");
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());
        let received = |name: &str| {
            let row = outcome.flow_rows().find(|row| row.flow == name).expect("it is there");
            (row.counters.tx_packets, row.counters.rx_packets)
        };
        // One at 0, 20 ms, ..., 2 s; the last has not arrived at the end. With three fragments each, one in forty is lost.
        assert_eq!(received("four"), (101, 100));
        let (sent, got) = received("six");
        assert!(sent == 101 && (92..=93).contains(&got), "{got}");
        assert_eq!(received("too-big"), (101, 0));
    }
}

#[test]
fn unrelated_flow_does_not_change_other_flows() {
    // Two more hosts with their own conversation: the rows of the other flows do not change.
    let link = |a: &str, b: &str| {
        format!(
            "[[link]]\nname = \"{a}-{b}\"\nfrom = \"{a}\"\nto = \"{b}\"\nrate = \"5Mbit/s\"\ndelay = \"3ms\"\n\
                 loss = {{ kind = \"bernoulli\", probability = 0.01 }}\n"
        )
    };
    let flow = |a: &str, b: &str| {
        format!("[[flow]]\nname = \"{a}-{b}\"\nfrom = \"{a}\"\nto = \"{b}\"\nworkload = \"bulk\"\nsize = \"1MB\"\n")
    };
    let hosts = |names: &[&str]| names.iter().map(|n| format!("[[host]]\nname = \"{n}\"\n")).collect::<String>();
    let alone = format!("{}{}{}", hosts(&["a", "b"]), link("a", "b"), flow("a", "b"));
    let before = format!(
        "{}{}{}{}{}",
        hosts(&["x", "y", "a", "b"]),
        link("x", "y"),
        link("a", "b"),
        flow("x", "y"),
        flow("a", "b")
    );
    let rows = |text: &str| {
        let table = flows_csv(&outcome_with(text, &[]));
        table.lines().filter(|line| line.starts_with("a-b")).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rows(&alone).len(), 2);
    assert_eq!(rows(&alone), rows(&before));
}
