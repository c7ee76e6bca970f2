//! The qlog of a run: a public reader parses every event, the log agrees with the run's tables, and writing it changes nothing.

use crate::common::{csv, flows_csv};
use fullpipe_lab::{CaptureOptions, FileAppender, Options, Outcome, QlogOptions, run};
use fullpipe_scenario::Scenario;
use qlog::events::EventData;
use qlog::reader::{Event, QlogSeqReader};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// TCP, the QUIC model and the real stack through one bottleneck that drops and marks, with limited flows.
const THREE: &str = r#"
    duration = "4s"
    seed = 3
    [topology]
    kind = "dumbbell"
    pairs = 3
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "40kB" }
    [[flow]]
    name = "tcp"
    from = "left1"
    to = "right1"
    workload = "bulk"
    [[flow]]
    name = "model"
    from = "left2"
    to = "right2"
    protocol = "quic"
    quic = { stack = "model" }
    workload = "bulk"
    size = "800kB"
    start = "500ms"
    [[flow]]
    name = "noq"
    from = "left3"
    to = "right3"
    protocol = "quic"
    workload = "bulk"
    size = "600kB"
    start = "700ms"
    [[probe]]
    flow = "*"
    metrics = ["cwnd_bytes", "ssthresh_bytes", "inflight_bytes"]
    interval = "7ms"
    [[probe]]
    link = "bottleneck"
    metrics = ["queue_bytes"]
    interval = "3ms"
"#;

/// Many short connections, random loss, a discipline that drops and marks at the head of the queue, and TLS in the real stack.
const SHORT: &str = r#"
    duration = "3s"
    seed = 8
    [topology]
    kind = "chain"
    link = [{ rate = "50Mbit/s", delay = "2ms", loss = { kind = "bernoulli", probability = 0.01 } },
            { rate = "8Mbit/s", delay = "5ms", queue = "60packets", discipline = { kind = "fq-codel" } }]
    [[flow]]
    name = "requests"
    from = "source"
    to = "sink"
    workload = "transfers"
    transfers = [{ at = "0s", size = "90kB" }, { at = "300ms", size = "50kB" }, { at = "1s", size = "700kB" }]
    tcp = { ecn = "active" }
    [[flow]]
    name = "bbr"
    from = "source"
    to = "sink"
    protocol = "quic"
    congestion = "bbr3"
    quic = { stack = "model", ecn = true }
    workload = "bulk"
    [[flow]]
    name = "tls"
    from = "sink"
    to = "source"
    protocol = "quic"
    quic = { cryptography = "tls" }
    workload = "bulk"
    size = "300kB"
"#;

/// A tunnel with TLS whose client and proxy have reaction times, so that several datagrams wait before they are read. A download goes
/// through it, over a link that loses packets at random and in its queue.
const TUNNEL: &str = r#"
    duration = "8s"
    seed = 5
    host = [{ name = "client" }, { name = "proxy" }, { name = "server" }]
    router = [{ name = "router" }]
    [[link]]
    name = "access"
    from = "router"
    to = "client"
    rate = "10Mbit/s"
    delay = "10ms"
    queue = "30kB"
    loss = { kind = "bernoulli", probability = 0.002 }
    [[link]]
    name = "local"
    from = "router"
    to = "proxy"
    rate = "1Gbit/s"
    delay = "1us"
    [[link]]
    name = "core"
    from = "router"
    to = "server"
    rate = "1Gbit/s"
    delay = "5ms"
    [quic]
    largest_mtu = "1200B"
    [masque]
    initial_mtu = "1400B"
    largest_mtu = "1400B"
    cryptography = "tls"
    reaction = "3ms"
    [[flow]]
    name = "tunnel"
    from = "client"
    to = "proxy"
    workload = "tunnel"
    [[flow]]
    name = "download"
    from = "client"
    to = "server"
    protocol = "quic"
    workload = "request-response"
    request = "100B"
    response = "3MB"
    exchanges = 1
    via = "tunnel"
    [[probe]]
    flow = "tunnel"
    metrics = ["cwnd_bytes", "inflight_bytes", "srtt_s", "proxy_cwnd_bytes", "proxy_ssthresh_bytes", "proxy_inflight_bytes"]
    interval = "7ms"
"#;

fn scenario(text: &str) -> Scenario {
    fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).scenario
}

/// Runs a scenario with a log, and returns the outcome and the log.
fn logged(text: &str) -> (Outcome, Vec<u8>) {
    let (log, append) = memory();
    let options = Options { qlog: Some(QlogOptions { append }), ..Options::default() };
    let outcome = run(&scenario(text), &options).expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome.capture_result().expect("writing to memory cannot fail");
    let mut files = std::mem::take(&mut *log.lock().expect("whole"));
    let log = files.remove("run.sqlog").expect("the file");
    assert!(files.is_empty());
    (outcome, log)
}

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

fn memory() -> (Files, FileAppender) {
    let files = Files::default();
    let kept = files.clone();
    let append = move |name: &str, bytes: &[u8]| {
        kept.lock().expect("whole").entry(name.to_string()).or_default().extend(bytes);
        Ok(())
    };
    (files, Arc::new(append))
}

/// The records after the first, as JSON.
fn records(log: &[u8]) -> Vec<Value> {
    let records = log.split(|byte| *byte == 0x1e).skip(2);
    records.map(|record| serde_json::from_slice(record).expect("JSON")).collect()
}

fn name(record: &Value) -> &str {
    record["name"].as_str().expect("a name")
}

fn time_ms(record: &Value) -> f64 {
    record["time"].as_f64().expect("a time")
}

fn series_csv(outcome: &Outcome) -> Vec<u8> {
    csv(outcome, "series.csv").into_bytes()
}

#[test]
fn public_qlog_reader_accepts_every_event_and_time_is_monotonic() {
    for text in [THREE, SHORT, TUNNEL] {
        let (_, log) = logged(text);
        let (mut quic, mut own, mut last) = (0, 0, 0.0);
        let mut reader = QlogSeqReader::new(Box::new(&log[..])).expect("a preamble");
        let schemas = ["urn:ietf:params:qlog:events:quic-12", "urn:fullpipe:qlog:events:tcp-1"];
        assert_eq!(reader.qlog.trace.event_schemas[..2], schemas);
        for event in &mut reader {
            let time = match event {
                Event::Qlog(event) => {
                    quic += 1;
                    event.time
                }
                Event::Json(event) => {
                    own += 1;
                    assert!(event.name.starts_with("tcp:") || event.name.starts_with("link:"), "{event:?}");
                    event.time
                }
            };
            assert!(time >= last, "{time} after {last}");
            last = time;
        }
        let records = records(&log);
        assert_eq!(quic + own, records.len());
        assert_eq!(quic, records.iter().filter(|record| name(record).starts_with("quic:")).count());
        assert!(quic > 1000 && own > 500, "{quic} and {own}");
        // Frames without a name in the draft have the type unknown: noq's IMMEDIATE_ACK, and no other.
        for record in &records {
            for frame in record["data"]["frames"].as_array().into_iter().flatten() {
                assert!(frame["frame_type"] != "unknown" || frame["frame_type_bytes"] == 0x1f, "{record}");
            }
        }
    }
}

#[test]
fn qlog_does_not_change_records() {
    for text in [THREE, SHORT, TUNNEL] {
        let plain = run(&scenario(text), &Options::default()).expect("it runs");
        let (outcome, log) = logged(text);
        assert_eq!(flows_csv(&outcome), flows_csv(&plain));
        assert_eq!(series_csv(&outcome), series_csv(&plain));
        // A host with processing times is computed ahead only without observers, which changes the number of events of the same run.
        let totals = |outcome: &Outcome| {
            let mut totals = outcome.totals();
            totals.events = 0;
            totals
        };
        assert_eq!(totals(&outcome), totals(&plain));
        // The log does not depend on other observers: with captures it is the same as without.
        let (alone, append) = memory();
        let capture = Some(CaptureOptions { snap_bytes: 128, append });
        run(&scenario(text), &Options { capture, ..Options::default() }).expect("it runs");
        let (both, append) = memory();
        let capture = Some(CaptureOptions { snap_bytes: 128, append: append.clone() });
        let options =
            Options { capture, qlog: Some(QlogOptions { append }), audit_packets: true, ..Options::default() };
        run(&scenario(text), &options).expect("it runs");
        assert_eq!(both.lock().expect("whole").remove("run.sqlog"), Some(log));
        assert_eq!(*alone.lock().expect("whole"), *both.lock().expect("whole"));
    }
}

/// Events of a name in a group.
fn events<'a>(records: &'a [Value], group: &'a str, event: &'a str) -> impl Iterator<Item = &'a Value> + 'a {
    records.iter().filter(move |record| record["group_id"] == group && name(record) == event)
}

/// Number of UDP datagrams of the QUIC events with these names in a group.
fn datagrams(records: &[Value], group: &str, names: &[&str]) -> usize {
    let ids: BTreeSet<u64> = names
        .iter()
        .flat_map(|name| events(records, group, name))
        .map(|record| record["data"]["datagram_id"].as_u64().expect("a number"))
        .collect();
    ids.len()
}

#[test]
fn qlog_packets_agree_with_the_tables() {
    for (text, flows) in [
        (THREE, vec![("tcp", "tcp"), ("model", "quic"), ("noq", "quic")]),
        (SHORT, vec![("requests", "tcp"), ("bbr", "quic"), ("tls", "quic")]),
        // Packets in a tunnel are not packets of its flow on the link.
        (TUNNEL, vec![("tunnel", "quic")]),
    ] {
        let (outcome, log) = logged(text);
        let records = records(&log);
        for (flow, protocol) in flows {
            for (end, [sends, receives]) in [("client", ["", ".reverse"]), ("server", [".reverse", ""])] {
                let group = format!("{flow}/{end}");
                let sent = outcome.flow(&format!("{flow}{sends}")).expect("a row");
                let received = outcome.flow(&format!("{flow}{receives}")).expect("a row");
                let counted = if protocol == "tcp" {
                    ["tcp:packet_sent", "tcp:packet_received"].map(|name| events(&records, &group, name).count())
                } else {
                    let come = ["quic:packet_received", "quic:packet_dropped"];
                    [datagrams(&records, &group, &["quic:packet_sent"]), datagrams(&records, &group, &come)]
                };
                let expected = [sent.counters.tx_packets, received.counters.rx_packets];
                assert_eq!(counted.map(|count| count as u64), expected, "{group}");
                // Every packet has a unique number.
                let numbers: Vec<String> = events(&records, &group, "quic:packet_sent")
                    .map(|record| record["data"]["header"].clone())
                    .map(|header| format!("{} {}", header["packet_type"], header["packet_number"]))
                    .collect();
                assert_eq!(numbers.len(), numbers.iter().collect::<BTreeSet<_>>().len(), "{group}");
                // QUIC: packets that flows.csv counts as retransmitted were declared lost.
                let (lost, begun, set) = ["packet_lost", "connection_started", "parameters_set"]
                    .map(|event| format!("{protocol}:{event}"))
                    .into();
                let lost = events(&records, &group, &lost);
                // noq counts path MTU probes among them, the model does not.
                let probes_count = flow == "noq" || flow == "tls";
                let counted = |record: &&Value| probes_count || record["data"]["is_mtu_probe_packet"] != true;
                let lost = lost.filter(counted).count() as u64;
                // A proxy does not report it.
                let again = sent.retransmitted_packets;
                assert_eq!(again.is_none(), group == "tunnel/server");
                let again = again.unwrap_or(lost);
                if protocol == "quic" {
                    assert_eq!(lost, again, "{group}");
                } else {
                    // TCP may retransmit segments that were not lost (tail loss probes), and retransmits every lost segment, unless it is
                    // acknowledged after all.
                    assert!(lost <= again && lost + 5 >= again, "{group}: {lost} lost, {again} sent again");
                }
                assert_eq!(events(&records, &group, &begun).count(), 1);
                assert!(events(&records, &group, &set).count() >= 1);
            }
        }
    }
}

/// On a path without reordering, the links dropped exactly the packets that were sent and did not arrive, and no other packet is declared
/// lost: RFC 9002 section 6.1, whose time threshold is 9/8 of a round-trip time that includes the reaction time of 3 ms.
#[test]
fn tunnel_packets_arrive_or_are_dropped_and_only_dropped_ones_are_lost() {
    let (outcome, log) = logged(TUNNEL);
    let records = records(&log);
    let numbers = |group: &str, event: &str| -> BTreeSet<(String, u64)> {
        let header = |record: &Value| record["data"]["header"].clone();
        events(&records, group, event)
            .map(header)
            .map(|header| (header["packet_type"].to_string(), header["packet_number"].as_u64().expect("a number")))
            .collect()
    };
    for (row, [from, to], least) in [("tunnel", ["client", "server"], 0), ("tunnel.reverse", ["server", "client"], 20)]
    {
        let (from, to) = (format!("tunnel/{from}"), format!("tunnel/{to}"));
        let (sent, come) = (numbers(&from, "quic:packet_sent"), numbers(&to, "quic:packet_received"));
        assert!(come.is_subset(&sent), "{row}");
        let missing: BTreeSet<_> = sent.difference(&come).cloned().collect();
        let dropped = outcome.flow(row).expect("a row").counters.lost_packets;
        assert_eq!(missing.len() as u64, dropped, "{row}");
        assert!(dropped >= least, "{row}: {dropped}");
        let lost = numbers(&from, "quic:packet_lost");
        assert!(lost.is_subset(&missing), "{row}: {:?}", lost.difference(&missing).collect::<Vec<_>>());
        println!("{row}: {} sent, {dropped} dropped, {} found lost", sent.len(), lost.len());
    }
    // The payload of a download is in datagrams of the proxy, whose only stream is that of the request.
    let frames = events(&records, "tunnel/server", "quic:packet_sent").flat_map(|record| {
        record["data"]["frames"].as_array().expect("frames").iter().map(|frame| frame["frame_type"].clone())
    });
    let datagrams = frames.filter(|kind| *kind == "datagram").count() as u64;
    let carried = outcome.flow("download.reverse").expect("a row").counters.rx_packets;
    println!("{datagrams} datagrams for {carried} packets");
    assert!(datagrams > 2500 && datagrams <= carried, "{datagrams} of {carried}");
}

#[test]
fn qlog_queues_agree_with_the_links() {
    for text in [THREE, SHORT, TUNNEL] {
        let (outcome, log) = logged(text);
        let records = records(&log);
        let of_link = |event: &str, link: &str| {
            let of = |record: &&Value| name(record) == event && record["data"]["link"] == link;
            records.iter().filter(of).count() as u64
        };
        let mut drops = 0;
        for row in outcome.link_rows() {
            let counters = row.counters;
            assert_eq!(
                of_link("link:packet_dropped", &row.link),
                counters.queue_drops + counters.losses,
                "{}",
                row.link
            );
            assert_eq!(of_link("link:packet_marked", &row.link), counters.marks, "{}", row.link);
            drops += counters.queue_drops + counters.losses;
        }
        assert!(drops > 10, "{drops}");
        for row in outcome.flow_rows() {
            let of = |record: &&Value| name(record) == "link:packet_dropped" && record["data"]["flow"] == *row.flow;
            assert_eq!(records.iter().filter(of).count() as u64, row.counters.lost_packets, "{}", row.flow);
        }
    }
}

/// Compares the samples of a metric of a subject with the newest value of a field in earlier events of a group. Returns the number of
/// compared samples.
fn compare(
    outcome: &Outcome,
    records: &[Value],
    [subject, metric]: [&str; 2],
    [group, event, field]: [&str; 3],
) -> usize {
    let mut told = events(records, group, event)
        .filter_map(|record| Some((time_ms(record), record["data"].pointer(&format!("/{field}"))?.as_f64()?)))
        .peekable();
    let (mut now, mut count) = (None, 0);
    for row in outcome.series_rows().filter(|row| row.subject == subject && row.metric == metric) {
        let at = row.time.as_nanos() as f64 / 1e6;
        while let Some((_, newer)) = told.next_if(|(time, _)| *time <= at) {
            now = Some(newer);
        }
        // Before any packet has waited the queue is empty.
        assert_eq!(now.unwrap_or(0.0), row.value, "{metric} of {subject} at {at} ms");
        count += 1;
    }
    count
}

#[test]
fn qlog_metrics_and_queues_agree_with_the_probes() {
    let (outcome, log) = logged(THREE);
    let records = records(&log);
    for (subject, metric, field, least) in [
        ("tcp", "cwnd_bytes", "congestion_window", 500),
        ("tcp", "ssthresh_bytes", "ssthresh", 300),
        ("tcp", "inflight_bytes", "bytes_in_flight", 500),
        ("model", "cwnd_bytes", "congestion_window", 200),
        ("model", "ssthresh_bytes", "ssthresh", 1),
        ("model", "inflight_bytes", "bytes_in_flight", 200),
        ("noq", "cwnd_bytes", "congestion_window", 200),
        ("noq", "ssthresh_bytes", "ssthresh", 1),
        ("noq", "inflight_bytes", "bytes_in_flight", 200),
    ] {
        let event = format!("{}:recovery_metrics_updated", if subject == "tcp" { "tcp" } else { "quic" });
        let count = compare(&outcome, &records, [subject, metric], [&format!("{subject}/client"), &event, field]);
        assert!(count >= least, "{metric} of {subject}: {count}");
    }
    let queue = ["link bottleneck", "link:queue_updated", "bytes"];
    assert!(compare(&outcome, &records, ["bottleneck", "queue_bytes"], queue) >= 1000);
}

#[test]
fn qlog_values_of_the_control_agree_with_the_probes() {
    let values = [
        "bw_bps",
        "max_bw_bps",
        "inflight_longterm_bytes",
        "inflight_shortterm_bytes",
        "full_bw_bps",
        "probe_rtt_min_delay_s",
        "loss_in_round",
        "undo_inflight_longterm_bytes",
        "round_count",
    ];
    let metrics: Vec<String> = values.iter().map(|value| format!("\"control_{value}\"")).collect();
    let text = THREE
        .replace("workload = \"bulk\"", "congestion = \"bbr3\"\n    workload = \"bulk\"")
        .replace("\"cwnd_bytes\", \"ssthresh_bytes\", \"inflight_bytes\"", &metrics.join(", "));
    let (outcome, log) = logged(&text);
    let records = records(&log);
    for (subject, protocol) in [("tcp", "tcp"), ("model", "quic"), ("noq", "quic")] {
        let (group, event) = (format!("{subject}/client"), format!("{protocol}:recovery_metrics_updated"));
        for value in values {
            let (metric, field) = (format!("control_{value}"), format!("control/{value}"));
            let count = compare(&outcome, &records, [subject, &metric], [&group, &event, &field]);
            assert!(count >= 100, "{metric} of {subject}: {count}");
        }
        // Each change is logged, not only those between two samples: rounds are counted one by one.
        let rounds: Vec<f64> = events(&records, &group, &event)
            .filter_map(|record| record["data"]["control"]["round_count"].as_f64())
            .collect();
        assert!(rounds.len() > 20 && rounds.windows(2).all(|pair| pair[1] == pair[0] + 1.0), "{subject}: {rounds:?}");
    }
}

#[test]
fn qlog_metrics_of_both_tunnel_ends_agree_with_the_probes() {
    let (outcome, log) = logged(TUNNEL);
    let records = records(&log);
    for (metric, end, field, least) in [
        ("cwnd_bytes", "client", "congestion_window", 500),
        ("inflight_bytes", "client", "bytes_in_flight", 500),
        ("proxy_cwnd_bytes", "server", "congestion_window", 500),
        ("proxy_ssthresh_bytes", "server", "ssthresh", 300),
        ("proxy_inflight_bytes", "server", "bytes_in_flight", 500),
    ] {
        let told = [&*format!("tunnel/{end}"), "quic:recovery_metrics_updated", field];
        let count = compare(&outcome, &records, ["tunnel", metric], told);
        assert!(count >= least, "{metric}: {count}");
    }
    // The proxy sends the download; the client sends only acknowledgments. The path holds 10 Mbit/s times 20 ms and two reaction times,
    // plus 30 kB of queue: 62 500 bytes. Slow start may exceed this by as much again before it detects a loss.
    let most = |metric: &str| {
        let values = outcome.series_rows().filter(|row| row.metric == metric).map(|row| row.value);
        values.fold(0.0, f64::max)
    };
    let [client, proxy] = ["inflight_bytes", "proxy_inflight_bytes"].map(most);
    assert!(client < 5_000.0 && (32_500.0..125_000.0).contains(&proxy), "{client} and {proxy} bytes");
    for (end, opening) in [
        ("client", &["attempted", "handshake_started", "handshake_confirmed"][..]),
        ("server", &["handshake_started", "handshake_confirmed"]),
    ] {
        let group = format!("tunnel/{end}");
        let states =
            events(&records, &group, "quic:connection_state_updated").map(|record| record["data"]["new"].clone());
        assert_eq!(states.collect::<Vec<_>>(), opening, "{group}");
    }
    // Without a control there are no metrics.
    let (outcome, log) = logged(&TUNNEL.replace("[masque]", "[masque]\n    congestion = \"none\""));
    assert!(outcome.series_rows().all(|row| row.metric == "srtt_s"));
    let records = self::records(&log);
    assert_eq!(events(&records, "tunnel/server", "quic:recovery_metrics_updated").count(), 0);
    assert!(events(&records, "tunnel/server", "quic:packet_sent").count() > 2500);
}

#[test]
fn qlog_of_a_connection_has_its_states_from_start_to_end() {
    let (_, log) = logged(THREE);
    let records = records(&log);
    let states = |group: &str, event: &str| -> Vec<String> {
        events(&records, group, event).map(|record| record["data"]["new"].as_str().expect("one").to_string()).collect()
    };
    let state = "quic:connection_state_updated";
    for group in ["model/client", "noq/client", "model/server", "noq/server"] {
        let states = states(group, state);
        // A server responds with a Handshake packet immediately.
        let before = usize::from(group.ends_with("/client"));
        let opening = ["attempted", "handshake_started", "handshake_confirmed"];
        assert_eq!(states[..2 + before], opening[1 - before..], "{group}: {states:?}");
        assert_eq!(states.last().map(String::as_str), Some("closed"), "{group}: {states:?}");
        assert_eq!(events(&records, group, "quic:connection_closed").count(), 1, "{group}");
    }
    assert_eq!(states("tcp/client", "tcp:connection_state_updated"), ["syn_sent", "established"]);
    let windows = states("tcp/client", "tcp:congestion_state_updated");
    assert!(windows.len() > 2 && windows[..2] == ["slow_start", "recovery"], "{windows:?}");
    // Every QUIC event is parsed as its type, and a few of its fields have the expected values.
    let mut reader = QlogSeqReader::new(Box::new(&log[..])).expect("a preamble");
    let started = reader.find_map(|event| match event {
        Event::Qlog(event) => match event.data {
            EventData::QuicConnectionStarted(started) => Some(started),
            _ => None,
        },
        Event::Json(_) => None,
    });
    let started = started.expect("a connection begins");
    assert_eq!((started.local.ip_v4.is_some(), started.remote.port_v4), (true, Some(9)));
}
