//! Tests the scenario files of the repository, and the descriptions of a few small files.

use fullpipe_network::discipline::fifo::FifoSpecification;
use fullpipe_network::{BernoulliLoss, FrameFilter, FrameSelection, Impairments, Limit, PeriodicLoss};
use fullpipe_scenario::description::*;
use fullpipe_scenario::{LoadedScenario, Override, load};
use fullpipe_units::{Duration, NodeId, Rate};
use fullpipe_workload::{BulkSpec, ConstantRateSpec, IdleSpec};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn file(name: &str) -> Scenario {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    load(&text, name, &[]).unwrap_or_else(|errors| panic!("{errors}")).scenario
}

fn good(text: &str) -> LoadedScenario {
    load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tcp(flow: &Flow) -> &Tcp {
    match &flow.transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Udp | Transport::Quic(_) | Transport::Masque(_) => panic!("{} is not a TCP flow", flow.name),
    }
}

/// The payload of a constant-rate flow.
fn payload(flow: &Flow) -> u32 {
    flow.workload.downcast_ref::<ConstantRateSpec>().expect("a constant rate").payload_bytes
}

/// 2 opportunities in 3 ms: 2 x 1504 x 8 bits / 3 ms = 8 021 333 bit/s; 3 in 4 ms: 9 024 000 bit/s.
#[test]
fn rate_of_a_link_with_a_trace_defaults_to_the_mean_of_the_trace() {
    let rates = |link: &str| -> Vec<u64> {
        let text = format!(
            "[topology]\nkind = 'chain'\nlink = [{{ delay = '1ms', {link} }}]\n[[flow]]\nfrom = 'source'\nto = 'sink'\n"
        );
        good(&text).scenario.links.iter().map(|link| link.rate.bits_per_second()).collect()
    };
    assert_eq!(rates("trace = [1, 3]"), [8_021_333; 2]);
    assert_eq!(rates("trace = [1, 3], reverse = { trace = [1, 2, 4] }"), [8_021_333, 9_024_000]);
    assert_eq!(rates("trace = [1, 3], reverse = { rate = '1Mbit/s' }"), [8_021_333, 1_000_000]);
    // An explicit rate applies to both directions, as before.
    assert_eq!(rates("rate = '5Mbit/s', trace = [1, 3], reverse = { trace = [1, 2, 4] }"), [5_000_000; 2]);
    let text = "[topology]\nkind = 'dumbbell'\naccess = { delay = '1ms' }\nbottleneck = { trace = [1], delay = '1ms' }\n\
                [[flow]]\nfrom = 'left1'\nto = 'right1'\n";
    let errors = load(text, "test.toml", &[]).unwrap_err().0;
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["test.toml:3:10: topology.access.rate is missing; expected a rate such as \"100Mbit/s\" or a trace"]
    );
}

#[test]
fn every_scenario_file_loads_and_equals_its_resolved_file() {
    let mut files = Vec::new();
    for folder in [folder(), folder().join("bench")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
    }
    assert!(files.len() >= 9, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let loaded = load(&text, "file", &[]).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
        let again = load(&loaded.resolved, "resolved", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(again.scenario, loaded.scenario, "{}", path.display());
        assert_eq!(again.resolved, loaded.resolved, "{}", path.display());
        assert!(!loaded.scenario.title.is_empty(), "{} has no title", path.display());
    }
}

/// One-way delay along links with these names.
fn delay(scenario: &Scenario, links: &[&str]) -> Duration {
    links.iter().fold(Duration::ZERO, |sum, name| sum + link(scenario, name).delay)
}

fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a Link {
    scenario.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}"))
}

#[test]
fn bench_scenarios_have_the_documented_values() {
    // tcp-1: 1 Gbit/s 0.5 ms; 100 Mbit/s 9 ms, 250 kB; 1 Gbit/s 0.5 ms; MSS 1448; 60 s.
    let one = file("bench/tcp-1.toml");
    assert_eq!(one.duration, Duration::from_secs(60));
    let names: Vec<&str> = one.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["link1", "link1.reverse", "link2", "link2.reverse", "link3", "link3.reverse"]);
    assert_eq!(delay(&one, &["link1", "link2", "link3"]), Duration::from_millis(10));
    let rates: Vec<u64> = one.links.iter().map(|link| link.rate.bits_per_second()).collect();
    assert_eq!(rates, [1_000_000_000, 1_000_000_000, 100_000_000, 100_000_000, 1_000_000_000, 1_000_000_000]);
    assert_eq!(link(&one, "link2").queue, QueueLimit::Bytes(250_000));
    assert_eq!(one.flows.len(), 1);

    // tcp-10, tcp-100: 1 Gbit/s, 40 ms round trip, 5 MB, starts over 100 ms, 10 s. tcp-10k: 10 Gbit/s, one
    // bandwidth-delay product = 10^10 / 8 * 0.04 = 50 MB, 2 s.
    for (name, flows, rate, queue, seconds) in [
        ("bench/tcp-10.toml", 10, 1_000, 5_000_000, 10),
        ("bench/tcp-100.toml", 100, 1_000, 5_000_000, 10),
        ("bench/tcp-10k.toml", 10_000, 10_000, 50_000_000, 2),
    ] {
        let many = file(name);
        assert_eq!(many.duration, Duration::from_secs(seconds));
        assert_eq!(delay(&many, &["access-left1", "bottleneck", "access-right1"]), Duration::from_millis(20));
        assert_eq!(link(&many, "bottleneck").rate, Rate::from_megabits_per_second(rate));
        assert_eq!(link(&many, "bottleneck").queue, QueueLimit::Bytes(queue));
        assert_eq!(many.flows.len(), flows);
        assert_eq!(many.flows[0].start, Duration::ZERO);
        // The last of n flows starts at 100 ms * (n - 1) / n.
        let last = Duration::from_nanos(100_000_000 * (flows as u64 - 1) / flows as u64);
        assert_eq!(many.flows[flows - 1].start, last);
    }

    let idle = file("bench/tcp-idle.toml");
    assert_eq!(idle.flows.len(), 100_000);
    assert!(idle.flows.iter().all(|flow| flow.workload.downcast_ref() == Some(&IdleSpec)));

    for scenario in [one, file("bench/tcp-10.toml"), file("bench/tcp-10k.toml"), idle] {
        for flow in &scenario.flows {
            let tcp = tcp(flow);
            assert_eq!((tcp.congestion.as_str(), tcp.connection.mss_bytes), ("cubic", 1448));
            assert!(tcp.connection.sack && tcp.connection.timestamps && tcp.connection.delayed_ack_segments == 2);
        }
    }

    // udp-5hop: 1472 B payload, 80 000 packets/s, 5 links of 1 Gbit/s 1 ms, 10 s.
    let udp = file("bench/udp-5hop.toml");
    assert_eq!(udp.links.len(), 10);
    assert!(udp.links.iter().all(|link| link.rate == Rate::from_megabits_per_second(1000)));
    assert!(udp.links.iter().all(|link| link.delay == Duration::from_millis(1)));
    assert_eq!(udp.duration, Duration::from_secs(10));
    let interval = Duration::from_nanos(1_000_000_000 / 80_000);
    let datagrams = ConstantRateSpec { payload_bytes: 1472, interval, count: None };
    assert_eq!(udp.flows[0].workload.downcast_ref(), Some(&datagrams));
    assert_eq!(udp.flows[0].transport, Transport::Udp);
}

#[test]
fn dumbbell_expands_into_hosts_routers_and_links() {
    let scenario = good(
        "[topology]\nkind = 'dumbbell'\npairs = 2\naccess = { rate = '1Gbit/s', delay = '1ms' }\n\
         access_right = { rate = '2Gbit/s', delay = '2ms' }\n\
         bottleneck = { rate = '10Mbit/s', delay = '5ms', reverse = { rate = '1Mbit/s', queue = '10packets' } }\n\
         [[flow]]\nname = 'x'\nfrom = 'left*'\nto = 'right*'\ncount = 5\nstart = '1s'\nstart_spread = '10ms'",
    )
    .scenario;
    let nodes: Vec<(&str, bool)> = scenario.nodes.iter().map(|node| (node.name.as_str(), node.router)).collect();
    let expected = [
        ("left1", false),
        ("left2", false),
        ("router1", true),
        ("router2", true),
        ("right1", false),
        ("right2", false),
    ];
    assert_eq!(nodes, expected);
    let links: Vec<(&str, u32, u32)> =
        scenario.links.iter().map(|link| (link.name.as_str(), link.from.0, link.to.0)).collect();
    let expected = [
        ("access-left1", 0, 2),
        ("access-left1.reverse", 2, 0),
        ("access-left2", 1, 2),
        ("access-left2.reverse", 2, 1),
        ("bottleneck", 2, 3),
        ("bottleneck.reverse", 3, 2),
        ("access-right1", 3, 4),
        ("access-right1.reverse", 4, 3),
        ("access-right2", 3, 5),
        ("access-right2.reverse", 5, 3),
    ];
    assert_eq!(links, expected);
    assert_eq!(link(&scenario, "access-right2").rate, Rate::from_megabits_per_second(2000));
    assert_eq!(link(&scenario, "bottleneck").queue, QueueLimit::Packets(1000));
    assert_eq!((link(&scenario, "bottleneck").mtu_bytes, link(&scenario, "bottleneck").framing_bytes), (1500, 2));
    let reverse = link(&scenario, "bottleneck.reverse");
    assert_eq!((reverse.rate, reverse.delay), (Rate::from_megabits_per_second(1), Duration::from_millis(5)));
    assert_eq!(reverse.queue, QueueLimit::Packets(10));
    // Five flows alternate between two pairs; starts are 2 ms apart.
    let flows: Vec<(&str, u32, u32, u64)> = scenario
        .flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.from.0, flow.to.0, flow.start.as_nanos() / 1_000_000))
        .collect();
    let expected =
        [("x.1", 0, 4, 1000), ("x.2", 1, 5, 1002), ("x.3", 0, 4, 1004), ("x.4", 1, 5, 1006), ("x.5", 0, 4, 1008)];
    assert_eq!(flows, expected);
}

/// The names of the ends of each link, for forward directions only.
fn joined(scenario: &Scenario) -> Vec<(String, String, String)> {
    let name = |node: NodeId| scenario.nodes[node.index()].name.clone();
    scenario.links.iter().step_by(2).map(|link| (link.name.clone(), name(link.from), name(link.to))).collect()
}

#[test]
fn star_connects_every_host_to_the_hub() {
    let star = good(
        "[topology]\nkind = 'star'\nhosts = 3\naccess = { rate = '1Gbit/s', delay = '1ms' }\n
        [[flow]]\nfrom = 'host1'\nto = 'host3'",
    )
    .scenario;
    let links = [1, 2, 3].map(|n| (format!("access{n}"), format!("host{n}"), "hub".to_string()));
    assert_eq!(joined(&star), links);
    assert_eq!(star.nodes.iter().filter(|node| node.router).count(), 1);
}

#[test]
fn parking_lot_has_cross_traffic_at_every_bottleneck() {
    let lot = good(
        "[topology]\nkind = 'parking-lot'\nhops = 2\naccess = { rate = '1Gbit/s', delay = '1ms' }
        bottleneck = { rate = '10Mbit/s', delay = '5ms', reverse = { rate = '2Mbit/s' } }\n
        [[flow]]\nfrom = 'source'\nto = 'sink'\n[[flow]]\nfrom = 'cross-source*'\nto = 'cross-sink*'",
    )
    .scenario;
    let expected = [
        ("access-source", "source", "router1"),
        ("bottleneck1", "router1", "router2"),
        ("access-cross-source1", "cross-source1", "router1"),
        ("access-cross-sink1", "router2", "cross-sink1"),
        ("bottleneck2", "router2", "router3"),
        ("access-cross-source2", "cross-source2", "router2"),
        ("access-cross-sink2", "router3", "cross-sink2"),
        ("access-sink", "router3", "sink"),
    ];
    assert_eq!(joined(&lot), expected.map(|(link, from, to)| (link.to_string(), from.to_string(), to.to_string())));
    assert_eq!(link(&lot, "bottleneck2.reverse").rate, Rate::from_megabits_per_second(2));
    let ends: Vec<(&str, &str)> = lot
        .flows
        .iter()
        .map(|flow| (lot.nodes[flow.from.index()].name.as_str(), lot.nodes[flow.to.index()].name.as_str()))
        .collect();
    assert_eq!(ends, [("source", "sink"), ("cross-source1", "cross-sink1"), ("cross-source2", "cross-sink2")]);
}

fn bernoulli(probability: f64) -> Impairments {
    let selection = FrameSelection { probability, largest_burst: None, frames: FrameFilter::All };
    Impairments::default().with(BernoulliLoss { selection })
}

fn periodic(every: u64, offset: u64) -> Impairments {
    Impairments::default().with(PeriodicLoss { every, offset })
}

#[test]
fn loss_applies_to_one_direction_unless_the_other_has_it() {
    let scenario = good(
        "[topology]\nkind = 'chain'\nlink = [\
         { rate = '1Mbit/s', delay = '1ms', loss = { kind = 'bernoulli', probability = 0.5 }, discipline = { kind = \
         'fifo', limit = '7packets' } },\
         { rate = '1Mbit/s', delay = '1ms', reverse = { loss = { kind = 'periodic', every = 10 } } },\
         { rate = '1Mbit/s', delay = '1ms', loss = { kind = 'periodic', every = 10, offset = 3 } }]\n\
         [[flow]]\nfrom = 'source'\nto = 'sink'",
    )
    .scenario;
    let impairments: Vec<Impairments> = scenario.links.iter().map(|link| link.impairments.clone()).collect();
    let expected = [
        bernoulli(0.5),
        Impairments::default(),
        Impairments::default(),
        // Without an offset, the tenth frame is the first that is lost.
        periodic(10, 10),
        periodic(10, 3),
        Impairments::default(),
    ];
    assert_eq!(impairments, expected);
    // Both directions have the same discipline.
    let fifo = Some(Arc::new(FifoSpecification { limit: Limit::Packets(7) }) as Discipline);
    assert_eq!((&scenario.links[0].discipline, &scenario.links[1].discipline), (&fifo, &fifo));
    assert_eq!(scenario.links[2].discipline, None);
    let routers: Vec<bool> = scenario.nodes.iter().map(|node| node.router).collect();
    assert_eq!(routers, [false, true, true, false]);
}

#[test]
fn ethernet_file_has_the_described_segment() {
    let text = "[topology]\nkind = 'ethernet'\nhosts = ['client', 'server']\nrate = '1Gbit/s'\ndelay = '2us'\n\
                discipline = { kind = 'fifo', limit = '10240packets' }\narp = { fixed_delays = ['7ms', '2ms'] }\n\
                [[flow]]\nfrom = 'client'\nto = 'server'\n[[probe]]\nethernet = '*'\nmetrics = ['drops']";
    let scenario = good(text).scenario;
    let segment = &scenario.ethernets[0];
    assert_eq!((segment.name.as_str(), &segment.hosts), ("ethernet", &vec![NodeId(0), NodeId(1)]));
    assert!(segment.half_duplex && segment.arp.enabled);
    assert_eq!((segment.framing_bytes, segment.min_frame_bytes, segment.interframe_gap_bits), (18, 64, 96));
    assert_eq!(segment.arp.fixed_delays, [Duration::from_millis(7), Duration::from_millis(2)]);
    assert_eq!(segment.arp.request_jitter, Duration::from_millis(10));
    let fifo = Arc::new(FifoSpecification { limit: Limit::Packets(10_240) }) as Discipline;
    assert_eq!(segment.discipline, Some(fifo));
    assert_eq!(scenario.probes[0].subject, ProbeSubject::Ethernet(0));
    let set = [Override { path: "topology.hosts".into(), value: "3".into() }];
    let error = load(text, "test.toml", &set).unwrap_err();
    assert!(error.to_string().contains("unknown host \"client\""), "{error}");
}

const PAIR: &str = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n";

#[test]
fn measured_links_are_unique_and_in_scenario_order() {
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n");
    assert_eq!(good(&text).scenario.measurement, Default::default());
    let measured =
        good(&format!("{text}[measurement]\nfrom = '2s'\nlinks = ['*.reverse', 'link1', 'link1']\n")).scenario;
    let names: Vec<&str> = measured.measurement.links.iter().map(|link| measured.links[*link].name.as_str()).collect();
    assert_eq!((measured.measurement.from, names), (Duration::from_secs(2), vec!["link1", "link1.reverse"]));
}

#[test]
fn probe_pattern_samples_the_metrics_that_each_flow_has() {
    let text = format!(
        "{PAIR}[[flow]]\nname = 'a'\nfrom = 'source'\nto = 'sink'\n[[flow]]\nname = 'b'\nfrom = 'source'\nto = 'sink'\n\
         workload = 'voice'\n[[flow]]\nname = 'c'\nfrom = 'source'\nto = 'sink'\nworkload = 'tunnel'\n\
         [[probe]]\nflow = '*'\nmetrics = ['cwnd_bytes', 'drops']\n[[probe]]\nflow = '*'\n\
         metrics = ['control_state', 'proxy_cwnd_bytes']\n"
    );
    let probes: Vec<(ProbeSubject, usize, Vec<String>)> =
        good(&text).scenario.probes.into_iter().map(|probe| (probe.subject, probe.end, probe.metrics)).collect();
    let metrics = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let expected = [
        (ProbeSubject::Flow(0), 0, metrics(&["cwnd_bytes", "drops"])),
        // Both ends send, and a tunnel without flows could carry data in both directions.
        (ProbeSubject::Flow(1), 0, metrics(&["drops"])),
        (ProbeSubject::Flow(1), 1, metrics(&["drops"])),
        (ProbeSubject::Flow(2), 0, metrics(&["cwnd_bytes", "drops"])),
        (ProbeSubject::Flow(2), 1, metrics(&["drops"])),
        (ProbeSubject::Flow(0), 0, metrics(&["control_state"])),
        (ProbeSubject::Flow(2), 0, metrics(&["proxy_cwnd_bytes"])),
    ];
    assert_eq!(probes, expected);
    // A metric that no flow has is an error, as without a pattern.
    let wrong = text.replace("'control_state', 'proxy_cwnd_bytes'", "'srtt_s', 'queue_bytes'");
    let errors = fullpipe_scenario::load(&wrong, "wrong.toml", &[]).expect_err("links have queues").to_string();
    assert!(errors.contains("queue_bytes is not a metric of a TCP flow"), "{errors}");
}

#[test]
fn probe_end_prefers_a_host_name_to_a_role() {
    // The host with the name `server` opens this connection.
    let text = "host = [{ name = 'server' }, { name = 'phone' }]\nlink = [{ name = 'air', from = 'server', to = 'phone', \
                rate = '1Mbit/s', delay = '1ms' }]\nduration = '1s'\n[[flow]]\nname = 'it'\nfrom = 'server'\nto = 'phone'\n[[probe]]\n\
                flow = 'it'\nmetrics = ['srtt_s']\nend = ";
    for (end, expected) in [("'server'", 0), ("'phone'", 1), ("'client'", 0)] {
        assert_eq!(good(&format!("{text}{end}\n")).scenario.probes[0].end, expected, "{end}");
    }
}

#[test]
fn equal_values_have_one_spelling_in_the_resolved_file() {
    let resolved = |probability: &str, rate: &str| {
        let loss = format!("{{ kind = 'bernoulli', probability = {probability} }}");
        let text =
            format!("[topology]\nkind = 'chain'\nlink = [{{ rate = '{rate}', delay = '1000us', loss = {loss} }}]\n");
        good(&format!("{text}[[flow]]\nfrom = 'source'\nto = 'sink'\n")).resolved
    };
    let first = resolved("0.0", "1Gbit/s");
    assert!(first.contains("probability = 0.0") && first.contains("delay = \"1ms\""), "{first}");
    for (probability, rate) in [("-0.0", "1Gbps"), ("0", "1000 Mbit/s"), ("0e9", "0.001Tbit/s")] {
        assert_eq!(resolved(probability, rate), first);
    }
}

#[test]
fn write_size_does_not_exceed_the_send_buffer() {
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ send_buffer = '10kB' }}\n");
    assert_eq!(
        good(&text).scenario.flows[0].workload.downcast_ref(),
        Some(&BulkSpec { size_bytes: None, write_bytes: 10_000, random_content: false, limits: None })
    );
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n");
    assert_eq!(
        good(&text).scenario.flows[0].workload.downcast_ref(),
        Some(&BulkSpec { size_bytes: None, write_bytes: 65_536, random_content: false, limits: None })
    );
}

#[test]
fn constant_rate_converts_to_an_interval() {
    let text = format!(
        "{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 1000\n\
         rate = '3Mbit/s'\npackets = 9\n"
    );
    // 8000 bits at 3 Mbit/s take 2 666 666.67 ns.
    let interval = Duration::from_nanos(2_666_667);
    let workload = ConstantRateSpec { payload_bytes: 1000, interval, count: Some(9) };
    assert_eq!(good(&text).scenario.flows[0].workload.downcast_ref(), Some(&workload));
}

#[test]
fn patterns_pair_hosts_in_natural_order() {
    let mut text = String::from("[[router]]\nname = 'hub'\n");
    for name in ["a10", "b2", "a2", "b10", "c"] {
        text += &format!("[[host]]\nname = '{name}'\n[[link]]\nname = 'link-{name}'\nfrom = '{name}'\nto = 'hub'\n");
        text += "rate = '1Mbit/s'\ndelay = '1ms'\n";
    }
    text += "[[flow]]\nname = 'pairs'\nfrom = 'a*'\nto = 'b*'\n[[flow]]\nname = 'fan'\nfrom = 'c'\nto = 'a*'\n";
    text += "[[flow]]\nname = 'one'\nfrom = 'c*'\nto = 'b10'\n";
    text += "[[probe]]\nflow = 'pairs'\nmetrics = ['drops']\n[[probe]]\nflow = '*.2'\nmetrics = ['srtt_s']\n";
    text += "[[probe]]\nlink = 'link-a*'\nmetrics = ['marks', 'drops']\ninterval = '1s'";
    let scenario = good(&text).scenario;
    let name = |node: NodeId| scenario.nodes[node.index()].name.as_str();
    let flows: Vec<(&str, &str, &str)> =
        scenario.flows.iter().map(|flow| (flow.name.as_str(), name(flow.from), name(flow.to))).collect();
    let expected = [
        ("pairs.1", "a2", "b2"),
        ("pairs.2", "a10", "b10"),
        ("fan.1", "c", "a2"),
        ("fan.2", "c", "a10"),
        ("one", "c", "b10"),
    ];
    assert_eq!(flows, expected);
    let subjects: Vec<String> = scenario
        .probes
        .iter()
        .map(|probe| match probe.subject {
            ProbeSubject::Flow(flow) => scenario.flows[flow].name.clone(),
            ProbeSubject::Link(link) => scenario.links[link].name.clone(),
            ProbeSubject::Ethernet(_) | ProbeSubject::Station { .. } => String::new(),
        })
        .collect();
    let expected =
        ["pairs.1", "pairs.2", "pairs.2", "fan.2", "link-a10", "link-a10.reverse", "link-a2", "link-a2.reverse"];
    assert_eq!(subjects, expected);
    assert_eq!(scenario.probes[7].metrics, ["marks", "drops"]);
}

#[test]
fn overrides_set_values_at_every_kind_of_path() {
    let text = std::fs::read_to_string(folder().join("two-flows.toml")).unwrap();
    let set = |list: &[&str]| {
        let overrides: Vec<Override> = list.iter().map(|text| Override::parse(text).unwrap()).collect();
        load(&text, "two-flows.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}")).scenario
    };
    let scenario = set(&[
        "duration=5s",
        "seed = 7",
        "link.uplink.rate=10Mbit/s",
        "link.uplink.reverse.delay=1ms",
        "link.0.loss={ kind = 'bernoulli', probability = 0.25 }",
        "link.1.loss.kind=periodic",
        "link.1.loss.every=4",
        "tcp.mss=1000",
        "flow.newreno.congestion=linux-reno",
        "flow.0.tcp.nagle=true",
        "flow.voice.payload=99",
        "probe.0.metrics=[\"drops\"]",
        "probe.1.metrics.0=marks",
        "title=\"a = b\"",
    ]);
    assert_eq!((scenario.duration, scenario.seed), (Duration::from_secs(5), 7));
    assert_eq!(scenario.title, "a = b");
    assert_eq!(link(&scenario, "uplink").rate, Rate::from_megabits_per_second(10));
    // The reverse direction inherits from the forward direction unless it has its own value.
    assert_eq!(link(&scenario, "uplink.reverse").rate, Rate::from_megabits_per_second(10));
    assert_eq!(link(&scenario, "uplink.reverse").delay, Duration::from_millis(1));
    assert_eq!(link(&scenario, "alice-edge").impairments, bernoulli(0.25));
    assert_eq!(link(&scenario, "bob-edge").impairments, periodic(4, 4));
    assert_eq!(tcp(&scenario.flows[1]).congestion, "linux-reno");
    assert_eq!((tcp(&scenario.flows[0]).connection.mss_bytes, tcp(&scenario.flows[0]).connection.nagle), (1000, true));
    assert_eq!(payload(&scenario.flows[2]), 99);
    assert_eq!(scenario.probes[0].metrics, ["drops"]);
    assert_eq!(scenario.probes[3].metrics, ["marks", "queue_delay_s"]);
    // A pattern selects all matching names, at any depth.
    let scenario = set(&["link.*-edge.delay=3ms", "link.u?link.rate=1Mbit/s", "flow.*.start=1s"]);
    assert_eq!(link(&scenario, "alice-edge").delay, Duration::from_millis(3));
    assert_eq!(link(&scenario, "bob-edge").delay, Duration::from_millis(3));
    assert_ne!(link(&scenario, "uplink").delay, Duration::from_millis(3));
    assert_eq!(link(&scenario, "uplink").rate, Rate::from_megabits_per_second(1));
    assert!(scenario.flows.iter().all(|flow| flow.start == Duration::from_secs(1)));
    // An override may precede the override that makes its key valid.
    let scenario =
        set(&["flow.0.payload=99", "flow.0.interval=1ms", "flow.0.workload=constant-rate", "flow.0.tcp.nagle=true"]);
    assert_eq!(payload(&scenario.flows[0]), 99);
    // An override has no effect if a later one has replaced its parent.
    let scenario = set(&[
        "link.0.loss.every=4",
        "link.0.loss={ kind = 'periodic', every = 7 }",
        "link.1.loss={ kind = 'periodic', every = 7 }",
        "link.1.loss.every=5",
    ]);
    let impairments = |link: usize| scenario.links[2 * link].impairments.clone();
    assert_eq!((impairments(0), impairments(1)), (periodic(7, 7), periodic(5, 5)));
    // The last of two overrides has precedence.
    assert_eq!(set(&["duration=5s", "duration=6s"]).duration, Duration::from_secs(6));
}

#[test]
fn large_file_loads() {
    // 20 000 hosts around one router, link by link, with flows between them.
    let mut text = String::from("[[router]]\nname = 'hub'\n");
    for n in 0..20_000 {
        text += &format!("[[host]]\nname = 'h{n}'\n[[link]]\nname = 'l{n}'\nfrom = 'h{n}'\nto = 'hub'\n");
        text += "rate = '1Gbit/s'\ndelay = '1ms'\n";
    }
    for n in 0..10_000 {
        text += &format!("[[flow]]\nfrom = 'h{n}'\nto = 'h{}'\n", n + 10_000);
    }
    text += "[[flow]]\nname = 'all'\nfrom = 'h*'\nto = 'h0'\n";
    let errors = load(&text, "large.toml", &[]).unwrap_err();
    assert!(errors.to_string().contains("\"h0\" at both ends"), "{errors}");
    let text = text.replace("from = 'h*'\nto = 'h0'", "from = 'h1*'\nto = 'h0'");
    let scenario = good(&text).scenario;
    // Hosts whose numbers begin with 1, with one to five digits: 1 + 10 + 100 + 1000 + 10 000.
    assert_eq!(scenario.flows.len(), 10_000 + 11_111);
    assert_eq!(scenario.links.len(), 40_000);
}
