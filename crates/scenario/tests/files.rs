//! The scenario files of the repository, and what a few small files mean.

use fullpipe_lte::bearer::{Addresses, PacketFilter, Ports, RlcChoice, Ways};
use fullpipe_lte::config::FadingBegins;
use fullpipe_lte::connection::Signalling;
use fullpipe_lte::radio::antenna::TransmissionMode;
use fullpipe_lte::radio::fading::{Places, Profile};
use fullpipe_lte::radio::path_loss::PathLoss;
use fullpipe_lte::scheduler::catalogue::Parameters;
use fullpipe_lte::scheduler::{ChannelAwareness, FrequencyMetric, TokenBankLimits};
use fullpipe_network::Limit;
use fullpipe_network::discipline::fifo::FifoSpecification;
use fullpipe_scenario::description::lte::{AttachChoice, Fading};
use fullpipe_scenario::description::*;
use fullpipe_scenario::{Loaded, Override, load};
use fullpipe_tcp::{Config, Ecn, EcnFeedback, KeepAlive, LossDetection};
use fullpipe_units::{Duration, NodeId, Rate};
use fullpipe_workload::Distribution;
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

fn good(text: &str) -> Loaded {
    load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tcp(flow: &Flow) -> &Tcp {
    match &flow.transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Udp | Transport::Quic(_) | Transport::Masque(_) => panic!("{} is not a TCP flow", flow.name),
    }
}

#[test]
fn every_file_loads_and_says_the_same_when_written_out() {
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

/// One-way delay along links given by name.
fn delay(scenario: &Scenario, links: &[&str]) -> Duration {
    links.iter().fold(Duration::ZERO, |sum, name| sum + link(scenario, name).delay)
}

fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a Link {
    scenario.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("no link {name}"))
}

#[test]
fn the_bench_is_that_of_the_contract() {
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
        // The last of n starts at 100 ms * (n - 1) / n.
        let last = Duration::from_nanos(100_000_000 * (flows as u64 - 1) / flows as u64);
        assert_eq!(many.flows[flows - 1].start, last);
    }

    let idle = file("bench/tcp-idle.toml");
    assert_eq!(idle.flows.len(), 100_000);
    assert!(idle.flows.iter().all(|flow| flow.workload == Workload::Idle));

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
    assert_eq!(udp.flows[0].workload, Workload::ConstantRate { payload_bytes: 1472, interval, count: None });
    assert_eq!(udp.flows[0].transport, Transport::Udp);

    // lte-1, lte-50, lte-500: so many UEs at 99 m, the last spread over 50 m to 3 km; 100 RB, EPA 3 km/h, 90 Mbit/s in all.
    for (count, nearest, farthest) in [(1, 99.0, 99.0), (50, 99.0, 99.0), (500, 50.0, 3000.0)] {
        let scenario = file(&format!("bench/lte-{count}.toml"));
        let lte = &scenario.lte[0];
        let fading = Fading::Generated { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: Some(10) };
        assert_eq!((lte.resource_blocks, &lte.fading[0], lte.ues.len()), ([100, 100], &fading, count));
        let distance = |ue: usize| lte.ues[ue].course[0].1[0];
        assert_eq!((distance(0), distance(count - 1)), (nearest, farthest));
        assert_eq!((scenario.flows.len(), scenario.duration), (count, Duration::from_secs(10)));
        // 1400 bytes of payload at 90 Mbit/s together: one every count x 124 444 ns.
        let Workload::ConstantRate { payload_bytes: 1400, interval, .. } = scenario.flows[0].workload else { panic!() };
        assert!((interval.as_secs_f64() / count as f64 - 1400.0 * 8.0 / 90e6).abs() < 1e-9);
    }
}

#[test]
fn a_dumbbell_is_hosts_routers_and_links() {
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
    // Five flows over two pairs in turn; starts 2 ms apart.
    let flows: Vec<(&str, u32, u32, u64)> = scenario
        .flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.from.0, flow.to.0, flow.start.as_nanos() / 1_000_000))
        .collect();
    let expected =
        [("x.1", 0, 4, 1000), ("x.2", 1, 5, 1002), ("x.3", 0, 4, 1004), ("x.4", 1, 5, 1006), ("x.5", 0, 4, 1008)];
    assert_eq!(flows, expected);
}

/// Names of the ends of each link, first directions only.
fn joined(scenario: &Scenario) -> Vec<(String, String, String)> {
    let name = |node: NodeId| scenario.nodes[node.index()].name.clone();
    scenario.links.iter().step_by(2).map(|link| (link.name.clone(), name(link.from), name(link.to))).collect()
}

#[test]
fn a_star_joins_every_host_to_the_hub() {
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
fn a_parking_lot_has_cross_traffic_at_every_bottleneck() {
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

#[test]
fn loss_is_in_one_direction_unless_the_other_says_so() {
    let scenario = good(
        "[topology]\nkind = 'chain'\nlink = [\
         { rate = '1Mbit/s', delay = '1ms', loss = { kind = 'bernoulli', probability = 0.5 }, discipline = { kind = \
         'fifo', limit = '7packets' } },\
         { rate = '1Mbit/s', delay = '1ms', reverse = { loss = { kind = 'periodic', every = 10 } } },\
         { rate = '1Mbit/s', delay = '1ms', loss = { kind = 'periodic', every = 10, offset = 3 } }]\n\
         [[flow]]\nfrom = 'source'\nto = 'sink'",
    )
    .scenario;
    let loss: Vec<Option<Loss>> = scenario.links.iter().map(|link| link.loss).collect();
    let expected = [
        Some(Loss::Bernoulli { probability: 0.5 }),
        None,
        None,
        // Without an offset the tenth frame is the first to be lost.
        Some(Loss::Periodic { every: 10, offset: 10 }),
        Some(Loss::Periodic { every: 10, offset: 3 }),
        None,
    ];
    assert_eq!(loss, expected);
    // The discipline is the same in both directions.
    let fifo = Some(Arc::new(FifoSpecification { limit: Limit::Packets(7) }) as Discipline);
    assert_eq!((&scenario.links[0].discipline, &scenario.links[1].discipline), (&fifo, &fifo));
    assert_eq!(scenario.links[2].discipline, None);
    let routers: Vec<bool> = scenario.nodes.iter().map(|node| node.router).collect();
    assert_eq!(routers, [false, true, true, false]);
}

#[test]
fn an_ethernet() {
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
    assert_eq!(scenario.probes[0].subject, Subject::Ethernet(0));
    let set = [Override { path: "topology.hosts".into(), value: "3".into() }];
    let error = load(text, "test.toml", &set).unwrap_err();
    assert!(error.to_string().contains("there is no host or router client"), "{error}");
}

const PAIR: &str = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n";

#[test]
fn an_lte_network() {
    let base = "[[host]]\nname = 'server'\n[[router]]\nname = 'pgw'\n[[host]]\nname = 'phone'\ncount = 5\n\
                [[link]]\nname = 'sgi'\nfrom = 'server'\nto = 'pgw'\nrate = '1Gbit/s'\ndelay = '10ms'\n\
                [[lte]]\nname = 'access'\ngateway = 'pgw'\n[[lte.cell]]\n";
    let text = format!(
        "{base}[[lte.ue]]\nhost = 'phone*'\ndistance = 100\nfarthest = 500\n\
                        [[flow]]\nfrom = 'server'\nto = 'phone*'\n[[probe]]\nue = 'phone2*'\nmetrics = ['cqi']"
    );
    let scenario = good(&text).scenario;
    let lte = &scenario.lte[0];
    assert_eq!(
        (lte.resource_blocks, lte.earfcn, &lte.fading),
        ([25, 25], [100, 18_100], &[Fading::None, Fading::None])
    );
    assert_eq!((lte.cells[0].name.as_str(), lte.cells[0].scheduler), ("cell1", "pf"));
    // Evenly from 100 to 500 m.
    let at: Vec<(f64, [f64; 3])> = lte.ues.iter().map(|ue| ue.course[0]).collect();
    assert_eq!(at, [100.0, 200.0, 300.0, 400.0, 500.0].map(|x| (0.0, [x, 0.0, 1.5])));
    assert_eq!(lte.ues.iter().map(|ue| ue.node.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // 24 of 25 resource blocks are whole groups: 17 568 bits in a millisecond at most, 219 600 bytes in 100 ms.
    assert_eq!(lte.ues[0].bearers[0].rlc.buffer_bytes, Some(219_600));
    let subjects: Vec<Subject> = scenario.probes.iter().map(|probe| probe.subject).collect();
    let of = |uplink| Subject::Ue { lte: 0, ue: 1, uplink };
    assert_eq!(subjects, [of(false), of(true)]);
    assert_eq!(scenario.flows.len(), 5);

    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.fad");
    let moving = format!(
        "{base}fading = 1\n[[lte.ue]]\nhost = 'phone3'\ncourse = 'course.txt'\nrlc = {{ preset = 'reference-buffer' }}\n\
         [[flow]]\nfrom = 'phone3'\nto = 'server'"
    );
    let moving = moving.replace(
        "[[lte.cell]]\nfading = 1",
        "fading = { kind = 'trace', file = 'tone.fad', window = '3ms' }\nuplink_fading = { kind = 'epa' }\n[[lte.cell]]",
    );
    let scenario = load(&moving, trace.with_file_name("file.toml").to_str().unwrap(), &[]).unwrap().scenario;
    let lte = &scenario.lte[0];
    let course: Vec<(f64, [f64; 3])> =
        [(0.0, 50.0, 0.0), (10.0, 150.0, 20.0), (20.5, 150.0, 200.0)].map(|(at, x, y)| (at, [x, y, 1.5])).to_vec();
    assert_eq!((&lte.ues[0].course, lte.ues[0].bearers[0].rlc.buffer_bytes), (&course, Some(10_240)));
    let Fading::Trace { path, trace: read, places: Places::Windows { milliseconds: 3 } } = &lte.fading[0] else {
        panic!("{:?}", lte.fading[0])
    };
    assert_eq!((path, read.resource_blocks(), read.milliseconds()), (&trace, 25, 12));
    assert_eq!(scenario.files().collect::<Vec<_>>(), [trace.as_path()]);
    assert_eq!(
        lte.fading[1],
        Fading::Generated { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: None }
    );
}

/// A network of `keys` with a cell and a UE of these.
fn lte(keys: &str, cell: &str, ue: &str) -> Loaded {
    good(&format!(
        "[[host]]\nname = 'server'\n[[router]]\nname = 'pgw'\n[[host]]\nname = 'phone'\n[[link]]\nname = 'sgi'\nfrom = 'server'\nto = \
         'pgw'\nrate = '1Gbit/s'\ndelay = '10ms'\n[[lte]]\nname = 'access'\ngateway = 'pgw'\n{keys}\n\
         [[lte.cell]]\n{cell}\n[[lte.ue]]\nhost = 'phone'\n{ue}\n[[flow]]\nfrom = 'server'\nto = 'phone'\n"
    ))
}

#[test]
fn the_radio_of_table_i() {
    // Scharnitzky et al., Table I, row by row; the text has the UE at 99 m.
    let lte_of = |loaded: Loaded| loaded.scenario.lte[0].clone();
    let table = lte("preset = 'table-i'", "", "");
    assert!(table.resolved.contains("allow_nonstandard_bandwidth = true"));
    let radio = lte_of(table);
    let (cell, ue) = (&radio.cells[0], &radio.ues[0]);
    let rlc = &ue.bearers[0].rlc;
    // UE phy and eNB phy: TxPower, NoiseFigure.
    assert_eq!((ue.power_dbm, ue.noise_figure_db), (10.0, 7.0));
    assert_eq!((cell.power_dbm, cell.noise_figure_db), (30.0, 5.0));
    // Spectrum phy: DataErrorModelEnabled and CtrlErrorModelEnabled are true.
    assert!(radio.data_errors && radio.control_errors);
    // Helper: PDSCH for CQI false.
    assert!(!cell.mixed_cqi);
    // eNB RRC: RLC_UM_ALWAYS, transmission mode 0, which is the first.
    assert_eq!((rlc.mode, ue.transmission_mode), (RlcChoice::Unacknowledged, TransmissionMode::SingleAntenna));
    // Drop-tail queue: 16 packets.
    assert_eq!((rlc.buffer_bytes, rlc.buffer_packets), (None, Some(16)));
    // Scheduler, path loss, fading.
    assert_eq!((cell.scheduler, radio.path_loss), ("pf", PathLoss::Friis { smallest_db: 0.0 }));
    let epa = Fading::Generated { profile: Profile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: None };
    assert_eq!(radio.fading, [epa.clone(), epa]);
    // eNB device: bandwidth and EARFCN of both directions.
    assert_eq!((radio.resource_blocks, radio.earfcn), ([25, 25], [9895, 27_785]));
    assert_eq!((&ue.course[..], cell.position), (&[(0.0, [99.0, 0.0, 1.5])][..], [0.0, 0.0, 1.5]));

    // 100 resource blocks, which band 31 has not, in both directions.
    assert_eq!(lte_of(lte("preset = 'table-i'\nresource_blocks = 100", "", "")).resource_blocks, [100, 100]);
    // Every key wins over the preset.
    let other = lte_of(lte(
        "preset = 'table-i'\nresource_blocks = 50\nuplink_resource_blocks = 25\nearfcn = 300\nuplink_earfcn = 18300\n\
         allow_nonstandard_bandwidth = false\npath_loss = { model = 'kun-2600' }\nfading = { kind = 'etu', speed = 30 }\n\
         data_errors = false\ncontrol_errors = false",
        "power = 43\nnoise_figure = 4\nscheduler = 'rr'\ncqi = 'mixed'",
        "power = 23\nnoise_figure = 9\ntransmission_mode = 2\nposition = [5, 6]\nrlc = { mode = 'am', buffer = '1MB' }",
    ));
    let (cell, ue) = (&other.cells[0], &other.ues[0]);
    let rlc = &ue.bearers[0].rlc;
    assert_eq!((other.resource_blocks, other.earfcn, other.path_loss), ([50, 25], [300, 18_300], PathLoss::Kun2600));
    let etu = Fading::Generated { profile: Profile::ExtendedTypicalUrban, speed_kmh: 30.0, repeat_s: None };
    assert_eq!((&other.fading, other.data_errors, other.control_errors), (&[etu.clone(), etu], false, false));
    assert_eq!((cell.power_dbm, cell.noise_figure_db, cell.scheduler, cell.mixed_cqi), (43.0, 4.0, "rr", true));
    assert_eq!((ue.power_dbm, ue.noise_figure_db, ue.course[0].1), (23.0, 9.0, [5.0, 6.0, 1.5]));
    assert_eq!(ue.transmission_mode, TransmissionMode::TransmitDiversity);
    assert_eq!((rlc.mode, rlc.buffer_bytes, rlc.buffer_packets), (RlcChoice::Acknowledged, Some(1_000_000), None));
    // So does another preset nearer by.
    let smaller = lte_of(lte("preset = 'table-i'", "", "distance = 500\nrlc = { preset = 'reference-buffer' }"));
    assert_eq!(
        (smaller.ues[0].bearers[0].rlc.buffer_bytes, smaller.ues[0].bearers[0].rlc.buffer_packets),
        (Some(10_240), None)
    );
    assert_eq!(smaller.ues[0].course[0].1[0], 500.0);
}

#[test]
fn when_fading_begins() {
    let begins = |keys: &str| lte(keys, "", "distance = 99").scenario.lte[0].fading_begins;
    assert_eq!(begins(""), FadingBegins::Run);
    assert_eq!(begins("fading_begins = 'first-packet'"), FadingBegins::Packet { least_bytes: 1 });
    let large = begins("fading_begins = 'first-packet'\nfading_begins_with = '500B'");
    assert_eq!(large, FadingBegins::Packet { least_bytes: 500 });
}

#[test]
fn how_a_ue_comes_to_its_bearers() {
    let ue = |keys: &str| lte("", "", &format!("distance = 99\n{keys}")).scenario.lte[0].ues[0].clone();
    assert_eq!(ue("").attach, AttachChoice::Ideal);
    assert_eq!(ue("attach = 'known-cell'").switched_on_s, Distribution::Constant { value: 0.0 });
    let searches = ue("attach = 'cell-search'\nswitched_on = { kind = 'uniform', low = '1s', high = '3s' }");
    assert_eq!(searches.attach, AttachChoice::CellSearch);
    assert_eq!(searches.switched_on_s, Distribution::Uniform { low: 1.0, high: 3.0 });
    let signalling = |keys: &str| lte(keys, "", "distance = 99").scenario.lte[0].signalling;
    assert_eq!([signalling(""), signalling("signalling = 'radio'")], [Signalling::Ideal, Signalling::Radio]);
}

#[test]
fn bearers_of_a_ue() {
    let bearers = |keys: &str, ue: &str| {
        let cell = "scheduler = 'pss'";
        lte(keys, cell, &format!("distance = 99\n{ue}")).scenario.lte[0].ues[0].bearers.clone()
    };
    let [plain] = &bearers("", "")[..] else { panic!("the default bearer") };
    assert_eq!((plain.qci, plain.guaranteed, plain.filters.as_slice()), (9, None, &[PacketFilter::ANY][..]));
    let voice = "[[lte.ue.bearer]]\nqci = 1\nguaranteed_rate = '64kbit/s'\nrlc = { buffer = '10packets' }\n\
                 [[lte.ue.bearer.filter]]\ndirection = 'downlink'\nremote = 'server'\nlocal_ports = [5000, 5003]\n\
                 [[lte.ue.bearer.filter]]\nremote = '192.0.2.0/24'\nremote_ports = [80]\n";
    let [_, voice] = &bearers("", &format!("rlc = {{ mode = 'am' }}\n{voice}"))[..] else { panic!("one beside it") };
    assert_eq!((voice.qci, voice.guaranteed), (1, Some(Rate::from_bits_per_second(64_000))));
    // What the UE says of its default bearer's RLC is not said of this.
    assert_eq!((voice.rlc.mode, voice.rlc.buffer_packets), (RlcChoice::Unacknowledged, Some(10)));
    // The first host has 10.0.0.1 and fd66:756c:6c70::1.
    let one = |address: &str, bits| Some(Addresses::prefix(address.parse().unwrap(), bits).unwrap());
    let downlink =
        PacketFilter { ways: Ways::Downlink, local_ports: Ports::new(5000, 5003).unwrap(), ..PacketFilter::ANY };
    assert_eq!(
        voice.filters,
        [
            PacketFilter { remote: one("10.0.0.1", 32), ..downlink },
            PacketFilter { remote: one("fd66:756c:6c70::1", 128), ..downlink },
            PacketFilter { remote: one("192.0.2.0", 24), remote_ports: Ports::one(80), ..PacketFilter::ANY },
        ]
    );
    // A preset's RLC is that of all bearers.
    let filter = "[[lte.ue.bearer]]\nqci = 7\n[[lte.ue.bearer.filter]]\nremote = 'server'";
    let buffers = bearers("preset = 'table-i'", filter);
    assert_eq!(buffers.iter().map(|bearer| bearer.rlc.buffer_packets).collect::<Vec<_>>(), [Some(16), Some(16)]);
}

#[test]
fn what_a_scheduler_of_a_cell_is_set_to() {
    let cell = |keys: &str| lte("", keys, "distance = 99").scenario.lte[0].cells[0].clone();
    let plain = cell("");
    assert_eq!((plain.scheduler_parameters, plain.groups), (Parameters::default(), None));
    let bank =
        cell("scheduler = 'td-tbfq'\ntoken_pool = '10kB'\ntoken_credit = '20kB'\ntoken_debt = 0\ngroups = [2, 11]");
    let token_bank = TokenBankLimits { pool_bytes: 10_000, credit_bytes: 20_000, debt_bytes: 0 };
    assert_eq!(bank.scheduler_parameters, Parameters { token_bank, ..Parameters::default() });
    assert_eq!(bank.groups, Some((2, 10)));
    let sets = cell("scheduler = 'pss'\nfrequency_metric = 'co-it-a'\nmultiplexed_ues = 3").scheduler_parameters;
    let frequency_metric = FrequencyMetric::CoItA;
    assert_eq!(sets, Parameters { frequency_metric, multiplexed_ues: 3, ..Parameters::default() });
    let aware =
        cell("scheduler = 'cqa'\nchannel_awareness = 'proportional-fair'\nwaiting_unit = '20ms'").scheduler_parameters;
    let channel_awareness = ChannelAwareness::ProportionalFair;
    assert_eq!(aware, Parameters { channel_awareness, waiting_unit_ms: 20, ..Parameters::default() });
}

#[test]
fn presets_and_where_a_setting_comes_from() {
    let text = format!(
        "{PAIR}[tcp]\npreset = 'ns3'\nmss = 1000\n\
         [[flow]]\nname = 'inherits'\nfrom = 'source'\nto = 'sink'\n\
         [[flow]]\nname = 'differs'\nfrom = 'source'\nto = 'sink'\ncongestion = 'cubic'\ntcp = {{ nagle = true }}\n\
         [[flow]]\nname = 'own-preset'\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = 'linux', sack = false }}\n\
         [[flow]]\nname = 'no-rack'\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = 'linux', loss_detection = \
         'duplicate-acks' }}\n"
    );
    let scenario = good(&text).scenario;
    let inherits = tcp(&scenario.flows[0]);
    assert_eq!(
        (inherits.connection.mss_bytes, inherits.congestion.as_str(), inherits.connection.nagle),
        (1000, "newreno", false)
    );
    assert_eq!((inherits.connection.send_buffer_bytes, inherits.connection.min_rto), (131_072, Duration::from_secs(1)));
    assert_eq!(inherits.connection.loss_detection, LossDetection::DuplicateAcks);
    let differs = tcp(&scenario.flows[1]);
    assert_eq!(
        *differs,
        Tcp {
            congestion: "cubic".into(),
            connection: Config { nagle: true, ..inherits.connection.clone() },
            ..inherits.clone()
        }
    );
    let own = tcp(&scenario.flows[2]);
    assert_eq!((own.connection.mss_bytes, own.congestion.as_str(), own.connection.sack), (1448, "cubic", false));
    assert_eq!((own.connection.loss_detection, own.connection.tail_loss_probe), (LossDetection::Rack, true));
    // Probes need RACK: they go with it unless the file asks for them.
    assert!(!tcp(&scenario.flows[3]).connection.tail_loss_probe);
}

#[test]
fn the_presets_value_by_value() {
    let preset = |name: &str| {
        let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = '{name}' }}\n");
        tcp(&good(&text).scenario.flows[0]).clone()
    };
    // Every field is written out, so that a new one needs a value and a source here. Names in capitals are constants of
    // include/net/tcp.h in Linux 6.12, names that begin with tcp_ are its sysctls (Documentation/networking/ip-sysctl).
    let linux = Tcp {
        congestion: "cubic".into(), // CONFIG_DEFAULT_TCP_CONG
        hystart: true, // tcp_cubic's parameter `hystart` is 1; here by RFC 9406, which `linux_hystart` changes
        linux_hystart: false,
        fast_open_known: false,
        tls: None,
        receiver_closes: true, // a server that reads the end of the stream closes its socket
        connection: Config {
            mss_bytes: 1448,                                // 1500 - 20 (IPv4) - 20 (TCP) - 12 (timestamps)
            initial_window_segments: 10,                    // TCP_INIT_CWND
            send_buffer_bytes: 33_554_432,                  // the preset's own: 32 MiB
            receive_buffer_bytes: 33_554_432,               // the preset's own: 32 MiB
            initial_receive_window_bytes: None,             // the preset's own: all of the buffer from the start
            sack: true,                                     // tcp_sack 1
            timestamps: true,                               // tcp_timestamps 1
            timestamp_tick: Duration::from_millis(1),       // TCP_TS_HZ 1000
            rtt_from_timestamps: false,                     // tcp_ack_update_rtt: the segment's own time comes first
            window_scaling: true,                           // tcp_window_scaling 1
            mss_option: true,                               // RFC 9293 section 3.7.1, MUST-14
            delayed_ack_segments: 2,                        // RFC 9293 section 3.8.6.3, SHLD-19
            delayed_ack_timeout: Duration::from_millis(40), // TCP_DELACK_MIN: HZ / 25
            nagle: false,                                   // the preset's own: TCP_NODELAY
            min_rto: Duration::from_millis(200),            // TCP_RTO_MIN: HZ / 5
            initial_rto: Duration::from_secs(1),            // TCP_TIMEOUT_INIT: HZ; RFC 6298 rule 2.1
            max_rto: Duration::from_secs(120),              // TCP_RTO_MAX: 120 * HZ
            loss_detection: LossDetection::Rack,            // tcp_recovery 1
            tail_loss_probe: true,                          // tcp_early_retrans 3
            pacing: false,                                  // default_qdisc is not fq, and CUBIC asks for no pacing
            pacing_quantum_segments: 2,                     // tcp_min_tso_segs 2
            idle_restart: true,                             // tcp_slow_start_after_idle 1
            max_syn_retransmissions: 6,                     // tcp_syn_retries 6
            max_retransmissions: 15,                        // tcp_retries2 15
            time_wait: Duration::from_secs(60),             // TCP_TIMEWAIT_LEN: 60 * HZ
            first_segment_acknowledged_at_once: false,      // quick acknowledgements have this effect
            quick_ack: true,                                // TCP_MAX_QUICKACKS 16
            fin_with_data_acknowledged_twice: false,
            keep_alive: None,                   // SO_KEEPALIVE is off (socket(7))
            user_timeout: None,                 // TCP_USER_TIMEOUT 0 (tcp(7))
            fin_wait_2_timeout: None,           // tcp_fin_timeout is for sockets without a process only
            fast_open: false,                   // needs MSG_FASTOPEN (tcp(7))
            black_hole_timeouts: None,          // tcp_mtu_probing 0
            dsack: true,                        // tcp_dsack 1
            dsack_undo: true,                   // tcp_try_undo_dsack
            eifel: true,                        // tcp_packet_delayed
            frto: true,                         // tcp_frto 2
            limited_transmit: true,             // RFC 3042 in tcp_fastretrans_alert's state Disorder
            ecn: Ecn::Passive,                  // tcp_ecn 2
            ecn_feedback: EcnFeedback::Classic, // RFC 3168: Linux 6.12 has no AccECN
            proportional_ecn_reduction: true,   // tcp_cwnd_reduction in state CWR
        },
    };
    assert_eq!(preset("linux"), linux);

    // Names without a class are attributes of ns3::TcpSocket, those with `Base` of ns3::TcpSocketBase.
    let ns3 = Tcp {
        congestion: "newreno".into(), // ns3::TcpL4Protocol's SocketType
        hystart: true,                // ns3::TcpCubic: HyStart
        linux_hystart: false,
        fast_open_known: false,
        tls: None,
        receiver_closes: false, // ns3::PacketSink leaves its socket open
        connection: Config {
            mss_bytes: 536,                                  // SegmentSize
            initial_window_segments: 10,                     // InitialCwnd
            send_buffer_bytes: 131_072,                      // SndBufSize
            receive_buffer_bytes: 131_072,                   // RcvBufSize
            initial_receive_window_bytes: None,              // ns-3 does not tune buffers
            sack: true,                                      // Base: Sack
            timestamps: true,                                // Base: Timestamp
            timestamp_tick: Duration::from_millis(1),        // TcpOptionTS::NowToTsValue counts milliseconds
            rtt_from_timestamps: true,                       // TcpSocketBase::EstimateRtt
            window_scaling: true,                            // Base: WindowScaling
            mss_option: false,                               // ns-3 has the option's class, and no socket sends it
            delayed_ack_segments: 2,                         // DelAckCount
            delayed_ack_timeout: Duration::from_millis(200), // DelAckTimeout
            nagle: false,                                    // TcpNoDelay is true
            min_rto: Duration::from_secs(1),                 // Base: MinRto
            initial_rto: Duration::from_secs(3),             // ConnTimeout
            max_rto: Duration::from_secs(60),                // TcpSocketBase::ReTxTimeout's bound
            loss_detection: LossDetection::DuplicateAcks,    // RFC 6675 over Sack
            tail_loss_probe: false,                          // ns-3 has none
            pacing: false,                                   // TcpSocketState's EnablePacing
            pacing_quantum_segments: 1,                      // a paced socket sends one segment per timer
            idle_restart: false,                             // ns-3 has none
            max_syn_retransmissions: 6,                      // ConnCount
            max_retransmissions: 6,                          // DataRetries
            time_wait: Duration::from_secs(240),             // twice Base: MaxSegLifetime, 120 s
            first_segment_acknowledged_at_once: true,        // TcpSocketBase::ProcessSynRcvd
            quick_ack: false,
            fin_with_data_acknowledged_twice: true, // TcpSocketBase::ReceivedData, then PeerClose
            keep_alive: None,                       // from here on: ns-3 has none
            user_timeout: None,
            fin_wait_2_timeout: None,
            fast_open: false,
            black_hole_timeouts: None,
            dsack: false,
            dsack_undo: false,
            eifel: false,
            frto: false,
            limited_transmit: true, // Base: LimitedTransmit
            ecn: Ecn::Off,          // TcpSocketState's UseEcn
            ecn_feedback: EcnFeedback::Classic,
            proportional_ecn_reduction: false, // the window falls at once, in state CA_CWR
        },
    };
    assert_eq!(preset("ns3"), ns3);

    // What the preset changes is what an application asks for with socket options. A socket without them has Nagle's
    // algorithm (TCP_NODELAY off, tcp(7)), tcp_wmem's 4 MiB and tcp_rmem's 6 MiB, and offers at most 65 536 bytes at first:
    // half of tcp_rmem's default of 131 072 (tcp_adv_win_scale 1).
    let socket = Config {
        nagle: true,
        send_buffer_bytes: 4_194_304,
        receive_buffer_bytes: 6_291_456,
        initial_receive_window_bytes: Some(65_536),
        ..linux.connection
    };
    assert_eq!(Config::linux(), socket);
}

/// A TCP table that differs from the preset in every key, so that no setting can be mistaken for another.
#[test]
fn each_setting_reaches_its_own_place() {
    let text = format!(
        "{PAIR}[tcp]\ncongestion = 'linux-reno'\nmss = 1001\ninitial_window = 3\nsend_buffer = 100002\n\
         receive_buffer = 100003\nsack = false\ntimestamp_tick = '4ms'\nwindow_scaling = false\n\
         delayed_ack_segments = 5\ndelayed_ack_timeout = '6ms'\nnagle = true\nmin_rto = '7ms'\ninitial_rto = '8ms'\n\
         max_rto = '9s'\nidle_restart = false\nmax_syn_retransmissions = 10\nmax_retransmissions = 11\n\
         time_wait = '12ms'\ntail_loss_probe = false\npacing = true\npacing_quantum = 13\n\
         [[flow]]\nfrom = 'source'\nto = 'sink'\n"
    );
    let scenario = good(&text).scenario;
    let tcp = tcp(&scenario.flows[0]);
    let ms = Duration::from_millis;
    assert_eq!(
        (tcp.congestion.as_str(), tcp.connection.mss_bytes, tcp.connection.initial_window_segments),
        ("linux-reno", 1001, 3)
    );
    assert_eq!((tcp.connection.send_buffer_bytes, tcp.connection.receive_buffer_bytes), (100_002, 100_003));
    assert_eq!(
        (tcp.connection.sack, tcp.connection.timestamps, tcp.connection.window_scaling, tcp.connection.mss_option),
        (false, true, false, true)
    );
    assert_eq!(
        (tcp.connection.timestamp_tick, tcp.connection.delayed_ack_segments, tcp.connection.delayed_ack_timeout),
        (ms(4), 5, ms(6))
    );
    assert_eq!(
        (tcp.connection.nagle, tcp.connection.min_rto, tcp.connection.initial_rto, tcp.connection.max_rto),
        (true, ms(7), ms(8), ms(9000))
    );
    assert_eq!(
        (tcp.connection.idle_restart, tcp.connection.max_syn_retransmissions, tcp.connection.max_retransmissions),
        (false, 10, 11)
    );
    assert_eq!((tcp.connection.time_wait, tcp.connection.tail_loss_probe, tcp.hystart), (ms(12), false, true));
    assert_eq!((tcp.connection.pacing, tcp.connection.pacing_quantum_segments, tcp.receiver_closes), (true, 13, true));
    // One key at a time: it changes its own field and no other.
    let plain = good(&format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n")).scenario.flows.remove(0);
    let plain = self::tcp(&plain);
    type Change = fn(&mut Tcp);
    let changes: [(&str, Change); 34] = [
        ("mss = 1001", |tcp| tcp.connection.mss_bytes = 1001),
        ("initial_receive_window = 1002", |tcp| tcp.connection.initial_receive_window_bytes = Some(1002)),
        ("sack = false", |tcp| tcp.connection.sack = false),
        ("timestamps = false", |tcp| tcp.connection.timestamps = false),
        ("rtt_from_timestamps = true", |tcp| tcp.connection.rtt_from_timestamps = true),
        ("window_scaling = false", |tcp| tcp.connection.window_scaling = false),
        ("mss_option = false", |tcp| tcp.connection.mss_option = false),
        ("nagle = true", |tcp| tcp.connection.nagle = true),
        ("idle_restart = false", |tcp| tcp.connection.idle_restart = false),
        ("user_timeout = '7s'", |tcp| tcp.connection.user_timeout = Some(Duration::from_secs(7))),
        ("fin_wait_2_timeout = '7s'", |tcp| tcp.connection.fin_wait_2_timeout = Some(Duration::from_secs(7))),
        ("keep_alive = '7s'", |tcp| {
            // RFC 9293 section 3.8.4 leaves the rest open: 75 s and nine probes, tcp_keepalive_intvl and _probes.
            let (idle, interval) = (Duration::from_secs(7), Duration::from_secs(75));
            tcp.connection.keep_alive = Some(KeepAlive { idle, interval, probes: 9 });
        }),
        ("first_segment_acknowledged_at_once = true", |tcp| tcp.connection.first_segment_acknowledged_at_once = true),
        ("quick_ack = false", |tcp| tcp.connection.quick_ack = false),
        ("fin_with_data_acknowledged_twice = true", |tcp| tcp.connection.fin_with_data_acknowledged_twice = true),
        ("loss_detection = 'duplicate-acks'", |tcp| {
            tcp.connection.loss_detection = LossDetection::DuplicateAcks;
            tcp.connection.tail_loss_probe = false;
        }),
        ("tail_loss_probe = false", |tcp| tcp.connection.tail_loss_probe = false),
        ("dsack = false", |tcp| tcp.connection.dsack = false),
        ("dsack_undo = false", |tcp| tcp.connection.dsack_undo = false),
        ("eifel = false", |tcp| tcp.connection.eifel = false),
        ("frto = false", |tcp| tcp.connection.frto = false),
        ("limited_transmit = false", |tcp| tcp.connection.limited_transmit = false),
        ("black_hole_timeouts = 7", |tcp| tcp.connection.black_hole_timeouts = Some(7)),
        ("ecn = 'off'", |tcp| tcp.connection.ecn = Ecn::Off),
        ("ecn = 'active'", |tcp| tcp.connection.ecn = Ecn::Active),
        ("ecn_feedback = 'dctcp'", |tcp| tcp.connection.ecn_feedback = EcnFeedback::Dctcp),
        ("ecn_feedback = 'accurate'", |tcp| tcp.connection.ecn_feedback = EcnFeedback::Accurate),
        ("proportional_ecn_reduction = false", |tcp| tcp.connection.proportional_ecn_reduction = false),
        ("pacing = true", |tcp| tcp.connection.pacing = true),
        ("fast_open = 'ask'", |tcp| tcp.connection.fast_open = true),
        ("fast_open = 'known'", |tcp| {
            tcp.connection.fast_open = true;
            tcp.fast_open_known = true;
        }),
        ("hystart = false", |tcp| tcp.hystart = false),
        ("hystart_variant = 'linux'", |tcp| tcp.linux_hystart = true),
        ("receiver_closes = false", |tcp| tcp.receiver_closes = false),
    ];
    for (key, change) in changes {
        let scenario = good(&format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ {key} }}\n")).scenario;
        let mut expected = plain.clone();
        change(&mut expected);
        assert_eq!(*self::tcp(&scenario.flows[0]), expected, "{key}");
    }
}

#[test]
fn links_are_measured_once_each_in_the_order_of_the_scenario() {
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n");
    assert_eq!(good(&text).scenario.measurement, Default::default());
    let measured =
        good(&format!("{text}[measurement]\nfrom = '2s'\nlinks = ['*.reverse', 'link1', 'link1']\n")).scenario;
    let names: Vec<&str> = measured.measurement.links.iter().map(|link| measured.links[*link].name.as_str()).collect();
    assert_eq!((measured.measurement.from, names), (Duration::from_secs(2), vec!["link1", "link1.reverse"]));
}

#[test]
fn a_pattern_asks_each_flow_for_what_it_has() {
    let text = format!(
        "{PAIR}[[flow]]\nname = 'a'\nfrom = 'source'\nto = 'sink'\n[[flow]]\nname = 'b'\nfrom = 'source'\nto = 'sink'\n\
         workload = 'voice'\n[[flow]]\nname = 'c'\nfrom = 'source'\nto = 'sink'\nworkload = 'tunnel'\n\
         [[probe]]\nflow = '*'\nmetrics = ['cwnd_bytes', 'drops']\n[[probe]]\nflow = '*'\n\
         metrics = ['control_state', 'proxy_cwnd_bytes']\n"
    );
    let probes: Vec<(Subject, Vec<String>)> =
        good(&text).scenario.probes.into_iter().map(|probe| (probe.subject, probe.metrics)).collect();
    let metrics = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let expected = [
        (Subject::Flow(0), metrics(&["cwnd_bytes", "drops"])),
        (Subject::Flow(1), metrics(&["drops"])),
        (Subject::Flow(2), metrics(&["cwnd_bytes", "drops"])),
        (Subject::Flow(0), metrics(&["control_state"])),
        (Subject::Flow(2), metrics(&["proxy_cwnd_bytes"])),
    ];
    assert_eq!(probes, expected);
    // What none has is an error, as without a pattern.
    let wrong = text.replace("'control_state', 'proxy_cwnd_bytes'", "'srtt_s', 'queue_bytes'");
    let errors = fullpipe_scenario::load(&wrong, "wrong.toml", &[]).expect_err("links have queues").to_string();
    assert!(errors.contains("queue_bytes is not a metric of a TCP flow"), "{errors}");
}

#[test]
fn one_value_has_one_spelling_when_written_out() {
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
fn a_write_is_not_larger_than_the_send_buffer() {
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ send_buffer = '10kB' }}\n");
    assert_eq!(
        good(&text).scenario.flows[0].workload,
        Workload::Bulk { size_bytes: None, write_bytes: 10_000, random_content: false }
    );
    let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n");
    assert_eq!(
        good(&text).scenario.flows[0].workload,
        Workload::Bulk { size_bytes: None, write_bytes: 65_536, random_content: false }
    );
}

#[test]
fn a_rate_becomes_an_interval() {
    let text = format!(
        "{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 1000\n\
         rate = '3Mbit/s'\npackets = 9\n"
    );
    // 8000 bits at 3 Mbit/s: 2 666 666.67 ns.
    let interval = Duration::from_nanos(2_666_667);
    let workload = Workload::ConstantRate { payload_bytes: 1000, interval, count: Some(9) };
    assert_eq!(good(&text).scenario.flows[0].workload, workload);
}

#[test]
fn patterns_pair_in_the_order_of_numbers() {
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
            Subject::Flow(flow) => scenario.flows[flow].name.clone(),
            Subject::Link(link) => scenario.links[link].name.clone(),
            Subject::Ethernet(_) | Subject::Ue { .. } => String::new(),
        })
        .collect();
    let expected =
        ["pairs.1", "pairs.2", "pairs.2", "fan.2", "link-a10", "link-a10.reverse", "link-a2", "link-a2.reverse"];
    assert_eq!(subjects, expected);
    assert_eq!(scenario.probes[7].metrics, ["marks", "drops"]);
}

#[test]
fn overrides_reach_every_kind_of_place() {
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
    // The other direction follows the first unless it says otherwise.
    assert_eq!(link(&scenario, "uplink.reverse").rate, Rate::from_megabits_per_second(10));
    assert_eq!(link(&scenario, "uplink.reverse").delay, Duration::from_millis(1));
    assert_eq!(link(&scenario, "alice-edge").loss, Some(Loss::Bernoulli { probability: 0.25 }));
    assert_eq!(link(&scenario, "bob-edge").loss, Some(Loss::Periodic { every: 4, offset: 4 }));
    assert_eq!(tcp(&scenario.flows[1]).congestion, "linux-reno");
    assert_eq!((tcp(&scenario.flows[0]).connection.mss_bytes, tcp(&scenario.flows[0]).connection.nagle), (1000, true));
    assert!(matches!(scenario.flows[2].workload, Workload::ConstantRate { payload_bytes: 99, .. }));
    assert_eq!(scenario.probes[0].metrics, ["drops"]);
    assert_eq!(scenario.probes[3].metrics, ["marks", "queue_delay_s"]);
    // A pattern reaches all whose names match, at any depth.
    let scenario = set(&["link.*-edge.delay=3ms", "link.u?link.rate=1Mbit/s", "flow.*.start=1s"]);
    assert_eq!(link(&scenario, "alice-edge").delay, Duration::from_millis(3));
    assert_eq!(link(&scenario, "bob-edge").delay, Duration::from_millis(3));
    assert_ne!(link(&scenario, "uplink").delay, Duration::from_millis(3));
    assert_eq!(link(&scenario, "uplink").rate, Rate::from_megabits_per_second(1));
    assert!(scenario.flows.iter().all(|flow| flow.start == Duration::from_secs(1)));
    // A key may come before the one that decides whether there is such a key.
    let scenario =
        set(&["flow.0.payload=99", "flow.0.interval=1ms", "flow.0.workload=constant-rate", "flow.0.tcp.nagle=true"]);
    assert!(matches!(scenario.flows[0].workload, Workload::ConstantRate { payload_bytes: 99, .. }));
    // Unless a later one has replaced all of it.
    let scenario = set(&[
        "link.0.loss.every=4",
        "link.0.loss={ kind = 'periodic', every = 7 }",
        "link.1.loss={ kind = 'periodic', every = 7 }",
        "link.1.loss.every=5",
    ]);
    let every = |link: usize| match scenario.links[2 * link].loss {
        Some(Loss::Periodic { every, .. }) => every,
        ref other => panic!("{other:?}"),
    };
    assert_eq!((every(0), every(1)), (7, 5));
    // The later of two wins.
    assert_eq!(set(&["duration=5s", "duration=6s"]).duration, Duration::from_secs(6));
}

#[test]
fn large_files_load() {
    // 20 000 hosts around one router, written out link by link, and flows between them.
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
    assert!(errors.to_string().contains("from h0 to itself"), "{errors}");
    let text = text.replace("from = 'h*'\nto = 'h0'", "from = 'h1*'\nto = 'h0'");
    let scenario = good(&text).scenario;
    // Those that begin with 1, of one to five digits: 1 + 10 + 100 + 1000 + 10 000.
    assert_eq!(scenario.flows.len(), 10_000 + 11_111);
    assert_eq!(scenario.links.len(), 40_000);
}
