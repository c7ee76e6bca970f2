//! The scenario files of the repository, and what a few small files mean.

use fullpipe_network::Limit;
use fullpipe_network::discipline::fifo::FifoSpecification;
use fullpipe_scenario::description::*;
use fullpipe_scenario::{Loaded, Override, load};
use fullpipe_tcp::{Config, Ecn, EcnFeedback, KeepAlive, LossDetection};
use fullpipe_units::{Duration, NodeId, Rate};
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
            Subject::Ethernet(_) | Subject::Station { .. } => String::new(),
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
