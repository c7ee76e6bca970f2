//! Tests that the estimated number of events of the benchmarks, at shorter durations, is within a factor of two of the actual number.

use fullpipe_lab::cost::Cost;
use fullpipe_lab::{Options, run};
use fullpipe_scenario::{Override, Scenario};

fn bench(name: &str, set: &[(&str, &str)]) -> Scenario {
    let path = format!("{}/../../scenarios/bench/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a scenario of the workspace");
    let set = set.iter().map(|(path, value)| Override { path: (*path).to_owned(), value: (*value).to_owned() });
    fullpipe_scenario::load(&text, name, &set.collect::<Vec<_>>()).expect("it is right").scenario
}

/// The dumbbell of ten thousand flows, at a tenth of its size.
const TENTH: [(&str, &str); 4] = [
    ("topology.pairs", "1000"),
    ("topology.bottleneck.rate", "\"1Gbit/s\""),
    ("topology.bottleneck.queue", "\"5MB\""),
    ("topology.access.rate", "\"10Gbit/s\""),
];

#[test]
fn estimated_events_of_the_benchmarks_are_within_a_factor_of_two() {
    let seconds = |value| [("duration", value)];
    let with = |value| [&TENTH[..], &[("duration", value)]].concat();
    let cases: [(&str, Vec<(&str, &str)>); 17] = [
        ("tcp-1", seconds("\"5s\"").into()),
        ("tcp-1", vec![("duration", "\"5s\""), ("tcp.congestion", "bbr1")]),
        ("tcp-1", vec![("duration", "\"60s\""), ("flow.bulk.size", "\"3MB\"")]),
        ("tcp-10", seconds("\"2s\"").into()),
        ("tcp-100", seconds("\"1s\"").into()),
        ("tcp-10k", with("\"1s\"")),
        ("tcp-idle", vec![("flow.idle.count", "10000")]),
        ("udp-5hop", seconds("\"1s\"").into()),
        ("quic-1", seconds("\"5s\"").into()),
        ("quic-10k", with("\"1s\"")),
        ("quic-real-1-10m", vec![("flow.bulk.size", "\"1MB\"")]),
        ("quic-real-1-100m", vec![("flow.bulk.size", "\"1MB\"")]),
        ("masque-1-datagram", vec![("flow.download.response", "\"1MB\"")]),
        ("masque-1-stream", vec![("flow.download.response", "\"1MB\"")]),
        ("lte-1", seconds("\"2s\"").into()),
        ("lte-50", seconds("\"1s\"").into()),
        ("lte-500", seconds("\"500ms\"").into()),
    ];
    let mut wrong = Vec::new();
    for (name, set) in cases {
        let scenario = bench(name, &set);
        let cost = Cost::estimate(&scenario);
        let events = run(&scenario, &Options::default()).expect("it runs").totals().events as f64;
        let ratio = cost.events / events;
        println!("{name} {set:?}: {:.0} estimated, {events} counted, ratio {ratio:.2}, {:?}", cost.events, cost.bounds);
        if !(0.5..=2.0).contains(&ratio) || cost.is_upper_bound() {
            wrong.push(format!("{name} {set:?}: {:.0} events estimated, {events} counted", cost.events));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn upper_bound_is_marked_and_not_exceeded() {
    let source = |rest: &str| {
        let text = format!(
            "duration = \"5s\"\n[topology]\nkind = \"chain\"\nlink = [{{ rate = \"10Mbit/s\", delay = \"5ms\", queue = \"50kB\" }}]\n\
             [[flow]]\nname = \"data\"\nfrom = \"source\"\nto = \"sink\"\n{rest}"
        );
        fullpipe_scenario::load(&text, "source.toml", &[]).expect("it is right").scenario
    };
    let on_off = "protocol = \"udp\"\nworkload = \"on-off\"\nrate = \"5Mbit/s\"\npayload = \"1000B\"\n\
                  on = { kind = \"pareto\", shape = 1.5, scale = \"200ms\" }\noff = { kind = \"exponential\", mean = \"1s\" }\n";
    let steady = "protocol = \"udp\"\nworkload = \"on-off\"\nrate = \"5Mbit/s\"\npayload = \"1000B\"\non = \"100ms\"\noff = \"100ms\"\n";
    for (text, is_bound) in [(on_off, true), (steady, false)] {
        let scenario = source(text);
        let cost = Cost::estimate(&scenario);
        let events = run(&scenario, &Options::default()).expect("it runs").totals().events as f64;
        assert_eq!(cost.is_upper_bound(), is_bound, "{text}: {:?}", cost.bounds);
        assert!(!is_bound || events <= cost.events, "{text}: {events} events, at most {} estimated", cost.events);
        let ratio = cost.events / events;
        assert!(is_bound || (0.5..=2.0).contains(&ratio), "{text}: {events} events, {} estimated", cost.events);
    }
}

#[test]
fn memory_of_samples_is_that_of_the_metric_with_the_most() {
    let probe = |interval: &str, metrics: &str| {
        format!("[[probe]]\nflow = \"data\"\nmetrics = [{metrics}]\ninterval = \"{interval}\"\n")
    };
    let text = format!(
        "duration = \"10s\"\n[topology]\nkind = \"chain\"\nlink = [{{ rate = \"10Mbit/s\", delay = \"5ms\" }}]\n\
         [[flow]]\nname = \"data\"\nfrom = \"source\"\nto = \"sink\"\n{}{}",
        probe("1ms", "\"cwnd_bytes\""),
        probe("10ms", "\"srtt_s\", \"inflight_bytes\"")
    );
    let scenario = fullpipe_scenario::load(&text, "probes.toml", &[]).expect("it is right").scenario;
    let cost = Cost::estimate(&scenario);
    let samples = cost.memory.iter().find(|part| part.what.contains("samples")).expect("there are probes");
    // One per millisecond for ten seconds, without the 1000 of each other metric.
    assert_eq!(samples.count, 10_000.0);
}

#[test]
fn excess_datagrams_need_memory_only_in_an_unlimited_queue() {
    for (queue, many) in [("unlimited", true), ("100kB", false)] {
        let set = [("topology.link.0.rate", "\"100Mbit/s\""), ("topology.link.0.queue", &format!("\"{queue}\""))];
        let cost = Cost::estimate(&bench("udp-5hop", &set));
        // 80 000 packets of 1502 bytes per second are 961 Mbit/s: 72 000 of them exceed 100 Mbit/s in each of ten seconds.
        let waiting = cost.memory.iter().find(|part| part.what.contains("queues")).map_or(0.0, |part| part.count);
        let expected = if many { 720_000.0 } else { 0.0 };
        assert!((waiting - expected).abs() <= 0.02 * expected, "{queue}: {waiting} packets wait");
    }
}
