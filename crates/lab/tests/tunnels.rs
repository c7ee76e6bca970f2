//! Tunnels (CONNECT-UDP) at hosts of the simulated network, with the client and proxy that also run on real sockets.

use crate::common;

use crate::common::{csv, flows_csv, outcome, outcome_with};
use fullpipe_congestion::cubic::Cubic;
use fullpipe_lab::{Options, Outcome, Plugins, RunError, run_with};
use std::fmt::Write;

/// 10 Mbit/s, 5 ms and 200 ms of queue between client and proxy, and 25 ms beyond, as in the EPIQ evaluation. Packets of 1200 bytes go
/// through tunnels with packets of 1400. The path without a tunnel has the same links.
const NETWORK: &str = r#"
    duration = "60s"
    [[host]]
    name = "client"
    [[host]]
    name = "proxy"
    [[host]]
    name = "server"
    [[router]]
    name = "router"
    [[link]]
    name = "access"
    from = "client"
    to = "router"
    rate = "10Mbit/s"
    delay = "5ms"
    queue = "250kB"
    framing = "0B"
    [[link]]
    name = "local"
    from = "router"
    to = "proxy"
    rate = "10Gbit/s"
    delay = "1us"
    [[link]]
    name = "core"
    from = "router"
    to = "server"
    rate = "10Gbit/s"
    delay = "25ms"
    [quic]
    largest_mtu = "1200B"
    congestion = "newreno"
    [masque]
    initial_mtu = "1400B"
    largest_mtu = "1400B"
    congestion = "newreno"
"#;
const TUNNEL: &str = r#"
    [[flow]]
    name = "tunnel"
    from = "client"
    to = "proxy"
    workload = "tunnel"
"#;
/// The path is given after it.
const DOWNLOAD: &str = r#"
    [[flow]]
    name = "download"
    from = "client"
    to = "server"
    protocol = "quic"
    workload = "request-response"
    request = "100B"
    response = "10MB"
    exchanges = 1
"#;
const VIA: &str = "via = \"tunnel\"\n";

fn figure(outcome: &Outcome, flow: &str, host: &str, name: &str) -> f64 {
    let mut rows = outcome.figure_rows();
    let row = rows.find(|row| row.flow == flow && row.host == host && row.name == name);
    row.unwrap_or_else(|| panic!("{flow} at {host} has no {name}")).value
}

fn seconds(outcome: &Outcome) -> f64 {
    figure(outcome, "download", "client", "exchange_mean_s")
}

/// Runs the download through the tunnel, with these keys of `[masque]`, or of the table in their path.
fn through(changes: &[(&str, &str)]) -> Outcome {
    let paths: Vec<(String, &str)> = changes
        .iter()
        .map(|(key, value)| (if key.contains('.') { key.to_string() } else { format!("masque.{key}") }, *value))
        .collect();
    let overrides: Vec<(&str, &str)> = paths.iter().map(|(path, value)| (path.as_str(), *value)).collect();
    outcome_with(&format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}"), &overrides)
}

fn records(outcome: &Outcome) -> String {
    flows_csv(outcome) + &csv(outcome, "figures.csv")
}

/// Handshake and request of the tunnel are two round trips, in each of which proxy and client wait once. The inner handshake and the
/// exchange are two or three more. In each of them the proxy waits for a packet of the client and for one of the server, and the client
/// waits once. These are ten to thirteen waits. A wait may already be active when a datagram arrives.
#[test]
fn client_and_proxy_with_a_reaction_time_wait_once_for_all_received_datagrams() {
    let exchange = |reaction: &str| {
        let small = [
            ("flow.download.response", "100B"),
            ("quic.certificates", "1000B"),
            ("certificates", "1000B"),
            ("reaction", reaction),
        ];
        seconds(&through(&small))
    };
    let longer = exchange("20ms") - exchange("0s");
    assert!((0.2..=0.26).contains(&longer), "{longer}");
}

/// Overhead of a datagram over an inner packet: UDP and IPv4 headers 28, short header with an 8-byte connection ID and a packet number of
/// 2 bytes (RFC 9000 section 17.3.1; 1 or 3 at the start and after losses) 11, frame type 1, length 2 if another frame follows (RFC 9221
/// section 4), quarter stream ID 1 and context ID 1 (RFC 9297, 9298), tag 16: 58 to 60 bytes. The inner packet's own IP and UDP headers,
/// 28 bytes, are not carried. Acknowledgments in the same packet add at most 10 bytes (type 1, largest 4, delay 2, count and first range
/// 1 each), in at most every second packet.
#[test]
fn tunnel_adds_thirty_bytes_to_a_packet() {
    let outcome = through(&[]);
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    let (inner, outer) = (outcome.flow("download.reverse").expect("it"), outcome.flow("tunnel.reverse").expect("it"));
    let carried = inner.counters.rx_packets;
    let payload = inner.counters.rx_bytes - 28 * carried;
    // Packets without an inner packet are acknowledgments of 28 + 11 + 16 and at least 5 bytes, and the handshake.
    let others = outer.counters.tx_packets - carried;
    let added = outer.counters.tx_bytes as f64 - payload as f64 - 62.0 * others as f64;
    let each = added / carried as f64;
    println!("{each:.2} bytes more for each of {carried} packets; {others} packets without one");
    assert!((57.0..65.0).contains(&each), "{each}");
    // The proxy acknowledges at least every second packet of the client (RFC 9000 section 13.2.2). If it has no data to send, it uses
    // separate packets: one for two, and a few of the handshake.
    let from_client = outcome.flow("tunnel").expect("it").counters.rx_packets;
    assert!(others <= from_client / 2 + 20, "{others} of {from_client}");
}

/// A download whose data comes from the server is equivalent to a request of the client for the same number of bytes. The client opens
/// the connection with a request of one byte, and the same packets are sent at the same times.
#[test]
fn download_from_the_server_equals_a_client_request_for_the_same_bytes() {
    let download = "[[flow]]\nname = 'download'\nfrom = 'server'\nto = 'client'\nprotocol = 'quic'\nworkload = 'bulk'\nsize = '10MB'\n";
    for mode in ["datagram", "stream"] {
        let sent = outcome_with(&format!("{NETWORK}{TUNNEL}{download}{VIA}"), &[("masque.mode", mode)]);
        let asked = through(&[("masque.mode", mode), ("flow.download.request", "1B")]);
        assert!(sent.verdict().passed(), "{}", sent.verdict());
        // The same number of packets in each direction, with a few bytes of frame headers more or less. A byte takes 0.8 us at 10 Mbit/s,
        // and the completion times differ by at most that.
        for flow in ["download", "download.reverse", "tunnel", "tunnel.reverse"] {
            let [one, other] = [&sent, &asked].map(|outcome| outcome.flow(flow).expect("it").counters);
            let packets = |of: fullpipe_record::FlowCounters| (of.tx_packets, of.rx_packets, of.lost_packets);
            assert_eq!(packets(one), packets(other), "{mode} {flow}");
            assert!(one.tx_bytes.abs_diff(other.tx_bytes) <= 10, "{mode} {flow}: {one:?} {other:?}");
        }
        let completion =
            |outcome: &Outcome| outcome.flow("download.reverse").expect("it").completion.expect("it is over");
        let [one, other] = [&sent, &asked].map(|outcome| completion(outcome).as_nanos());
        assert!(one.abs_diff(other) <= 800, "{mode}: {one} {other}");
    }
}

/// A workload without a single stream cannot be reversed.
#[test]
fn exchange_started_by_the_server_through_a_tunnel_is_an_error() {
    let text = format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}");
    let turned = text.replace(
        "from = \"client\"\n    to = \"server\"\n    protocol",
        "from = \"server\"\n    to = \"client\"\n    protocol",
    );
    assert_ne!(text, turned);
    let error = fullpipe_scenario::load(&turned, "turned.toml", &[]).unwrap_err().0.remove(0);
    assert_eq!(error.path, "flow.1.via");
    assert_eq!(
        error.problem(),
        "a tunnel is opened by its client, so server cannot start request-response through it; expected from = \
         \"client\", or a workload on a single stream"
    );
}

#[test]
fn tunnel_run_with_the_same_seed_is_identical_in_both_modes() {
    for mode in ["datagram", "stream"] {
        let (one, two) = (records(&through(&[("mode", mode)])), records(&through(&[("mode", mode)])));
        assert_eq!(one, two);
    }
}

#[test]
fn tls_in_tunnel_and_connection_does_not_change_records() {
    let tls = ("cryptography", "tls");
    let null = records(&through(&[]));
    assert_eq!(null, records(&through(&[tls])));
    assert_eq!(null, records(&through(&[tls, ("quic.cryptography", "tls")])));
}

/// Without losses beyond the proxy, each packet that the server sent has reached the proxy. Packets that did not leave the tunnel were
/// lost in its datagrams, or dropped by the proxy.
#[test]
fn packets_lost_end_to_end_are_those_lost_in_a_datagram_tunnel() {
    let outcome = through(&[("link.access.queue", "60kB")]);
    let sent = outcome.flow("download.reverse").expect("it").counters;
    assert_eq!(sent.lost_packets, 0);
    let lost = figure(&outcome, "download", "server", "quic_packets_lost");
    let on_the_way = outcome.flow("tunnel.reverse").expect("it").counters.lost_packets as f64;
    let dropped = figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue");
    println!("lost end to end {lost}, tunnel packets lost {on_the_way}, dropped by the proxy {dropped}");
    assert!(on_the_way > 0.0);
    // Lost tunnel packets may include some without an inner packet.
    assert!(lost <= on_the_way + dropped && lost >= (on_the_way + dropped) * 0.9, "{lost}");
}

/// In stream mode the tunnel retransmits lost data: the inner connection has no loss while the queue has room.
#[test]
fn stream_tunnel_hides_losses_from_the_inner_connection() {
    let outcome = through(&[("mode", "stream"), ("queue_limit", "unlimited")]);
    assert!(outcome.flow("tunnel.reverse").expect("it").counters.lost_packets > 0);
    assert_eq!(figure(&outcome, "download", "server", "quic_packets_lost"), 0.0);
    assert_eq!(figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue"), 0.0);
    // Delayed data waits at the proxy, and increases the round-trip time at the server.
    let bounded = through(&[("mode", "stream"), ("queue_limit", "30kB"), ("send_buffer", "300kB")]);
    let (peak, least) = (figure(&outcome, "tunnel", "proxy", "tunnel_peak_queue_bytes"), 30_000.0);
    let kept = figure(&bounded, "tunnel", "proxy", "tunnel_peak_queue_bytes");
    let rtt = |outcome: &Outcome| figure(outcome, "download", "server", "quic_mean_rtt_s");
    println!("queue {peak} and {kept} bytes; round trips {} and {} s", rtt(&outcome), rtt(&bounded));
    assert!(kept <= least);
    assert!(figure(&bounded, "tunnel", "proxy", "tunnel_dropped_queue") > 0.0);
    assert!(rtt(&bounded) < rtt(&outcome));
}

/// Two downloads share one connection to the proxy, on a link that loses 1 % of its frames. The tunnel repairs the one in capsules, which
/// has no losses end to end. The one in datagrams detects its own losses, as far as they affect its packets.
#[test]
fn each_request_of_a_tunnel_has_its_own_mode() {
    let second = DOWNLOAD.replace("\"download\"", "\"repaired\"") + VIA + "via_mode = \"stream\"\n";
    let text = format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}{second}").replace("10MB", "1MB");
    let text = text.replace(
        "framing = \"0B\"",
        "framing = \"0B\"\nreverse = { loss = { kind = \"bernoulli\", probability = 0.01 } }",
    );
    let outcome = outcome_with(&text, &[("masque.queue_limit", "unlimited")]);
    let lost = |flow| figure(&outcome, flow, "server", "quic_packets_lost");
    let on_the_way = outcome.flow("tunnel.reverse").expect("it").counters.lost_packets;
    println!(
        "lost: {} in datagrams, {} in capsules, {on_the_way} packets of the tunnel",
        lost("download"),
        lost("repaired")
    );
    for flow in ["download", "repaired"] {
        assert_eq!(figure(&outcome, flow, "client", "exchanges"), 1.0, "{flow}");
    }
    assert!(on_the_way > 10);
    assert!(lost("download") > 0.0);
    assert_eq!(lost("repaired"), 0.0);
    // One tunnel flow has one connection: both requests belong to the same client. Without a mode of its own, the second one has losses,
    // too.
    let alike = outcome_with(&text.replace("via_mode = \"stream\"\n", ""), &[("masque.queue_limit", "unlimited")]);
    assert!(figure(&alike, "repaired", "server", "quic_packets_lost") > 0.0);
}

/// Ten downloads through streams of one tunnel. With round-robin they complete together. In the order of requests, the first completes
/// after a tenth of the data, and the last at the same time as with round-robin.
#[test]
fn request_order_serves_the_oldest_request_first() {
    let flows = DOWNLOAD.replace("10MB", "1MB") + VIA + "count = 10\n";
    let text = format!("{NETWORK}{TUNNEL}{flows}");
    let ends = |scheduler: &str| {
        let settings = [
            ("masque.mode", "stream"),
            ("masque.queue_limit", "unlimited"),
            ("masque.send_buffer", "20MB"),
            ("masque.receive_buffer", "1900kB"),
            ("masque.scheduler", scheduler),
        ];
        let outcome = outcome_with(&text, &settings);
        let end = |number| figure(&outcome, &format!("download.{number}"), "client", "exchange_max_s");
        let ends: Vec<f64> = (1..=10).map(end).collect();
        println!("{scheduler}: {ends:.2?}");
        (ends.iter().copied().fold(f64::MAX, f64::min), ends.iter().copied().fold(0.0, f64::max))
    };
    let ((first_in_turns, last_in_turns), (first, last)) = (ends("round-robin"), ends("request-order"));
    // 10 MB in total take 8 s plus headers; with round-robin the first cannot complete before most of the others.
    assert!(first_in_turns > 0.8 * last_in_turns, "{first_in_turns} {last_in_turns}");
    assert!(first < 0.5 * last, "{first} {last}");
    assert!((last / last_in_turns - 1.0).abs() < 0.05, "{last} {last_in_turns}");
}

/// Path MTU probes that do not fit into the tunnel's datagrams are dropped and counted; the transfer continues.
#[test]
fn datagram_that_does_not_fit_the_tunnel_is_dropped_and_counted() {
    let text =
        format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}").replacen("largest_mtu = \"1200B\"", "largest_mtu = \"1452B\"", 1);
    let outcome = outcome(&text);
    let at = |host| figure(&outcome, "tunnel", host, "tunnel_dropped_too_large");
    println!("too large: {} at the client, {} at the proxy", at("client"), at("proxy"));
    assert!(at("proxy") >= 1.0);
    assert!(seconds(&outcome) < 12.0);
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
}

/// Four connections share one tunnel: four requests on one connection to the proxy.
#[test]
fn four_connections_share_a_tunnel() {
    let quarter = DOWNLOAD.replace("10MB", "2500kB") + "count = 4\n" + VIA;
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{quarter}"));
    for number in 1..=4 {
        assert_eq!(figure(&outcome, &format!("download.{number}"), "client", "exchanges"), 1.0);
    }
    assert_eq!(figure(&outcome, "tunnel", "client", "tunnel_requests_refused"), 0.0);
    assert!(outcome.verdict().passed());
}

/// A closed connection closes its request: of twenty consecutive ones, at most the last is open at the end.
#[test]
fn request_closes_with_its_connection() {
    let exchanges =
        DOWNLOAD.replace("10MB", "10kB").replace("exchanges = 1", "exchanges = 20\nconnection = 'per-exchange'");
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{exchanges}{VIA}"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 20.0);
    let open = figure(&outcome, "tunnel", "proxy", "tunnel_requests_open");
    assert!(open <= 1.0, "{open}");
}

/// A response that is larger than the send buffer is delivered: the application continues when there is room again.
#[test]
fn response_larger_than_all_buffers_is_delivered() {
    let outcome = outcome(&format!("{NETWORK}{DOWNLOAD}[flow.quic]\nsend_buffer = \"100kB\"\n"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
    assert!(seconds(&outcome) < 12.0);
}

/// Without congestion control in the tunnel, only the inner control limits the load on the link.
#[test]
fn tunnel_without_congestion_control_relies_on_the_inner_connection() {
    let outcome = through(&[("congestion", "none")]);
    assert_eq!(outcome.flow("tunnel").expect("it").congestion, Some("none"));
    assert_eq!(figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue"), 0.0);
    // It takes longer than without a tunnel, by the overhead of the datagrams, 2 to 3.5 % of 8.7 s, and by the tunnel's two round trips
    // of 10 ms and that of the request before the first packet. Losses differ, too.
    let direct = seconds(&common::outcome(&format!("{NETWORK}{DOWNLOAD}")));
    let more = seconds(&outcome) - direct;
    println!("{more} s more than {direct}");
    assert!((0.15..0.6).contains(&more), "{more}");
}

#[test]
fn tunnel_metrics_have_declared_names() {
    let outcome = through(&[]);
    let mut text = String::new();
    outcome.figure_rows().for_each(|row| writeln!(text, "{}", row.name).expect("writing to memory cannot fail"));
    for row in outcome.figure_rows() {
        assert!(fullpipe_lab::metric_names().any(|name| name == row.name), "{}", row.name);
    }
    assert!(text.contains("tunnel_mean_rtt_s") && text.contains("quic_mean_rtt_s"));
}

/// The random streams of a run are named after flows, so their order in the file has no effect. If the connection's first packet did not
/// wait for its tunnel, it would be retransmitted after a second (RFC 9002 sections 6.2.1 and 6.2.2: 333 ms plus four times half of
/// that).
#[test]
fn flow_may_be_declared_before_its_tunnel() {
    let exchange = DOWNLOAD.replace("10MB", "100kB") + VIA;
    let after = outcome(&format!("{NETWORK}{TUNNEL}{exchange}"));
    let before = outcome(&format!("{NETWORK}{exchange}{TUNNEL}"));
    println!("{} s and {} s", seconds(&after), seconds(&before));
    assert_eq!(seconds(&before), seconds(&after));
    assert!(seconds(&after) < 0.9);
    assert_eq!(figure(&before, "tunnel", "client", "tunnel_dropped_queue"), 0.0);
}

/// BBRv3 draws the time between bandwidth probes, two to three seconds. Packets differ between seeds in a few bytes even with a control
/// that draws nothing; the dependence of the control on the seed is tested where it is created.
#[test]
fn tunnel_with_a_random_control_depends_on_the_seed() {
    let run = |seed: u32| {
        let text = format!("seed = {seed}\n{NETWORK}{TUNNEL}congestion = \"bbr3\"\n{DOWNLOAD}{VIA}");
        records(&outcome(&text))
    };
    let one = run(1);
    assert_eq!(one, run(1));
    assert_ne!(one, run(2));
}

/// The reason why these keys of a scenario with a tunnel are rejected.
fn refusal(changes: &[(&str, &str)], plugins: Plugins) -> String {
    let overrides: Vec<fullpipe_scenario::Override> = changes
        .iter()
        .map(|(path, value)| fullpipe_scenario::Override { path: path.to_string(), value: value.to_string() })
        .collect();
    let text = format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}");
    let loaded = fullpipe_scenario::load(&text, "test.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let error = run_with(&loaded.scenario, &Options::default(), plugins).expect_err("it is refused");
    assert!(matches!(error, RunError::CongestionControl { .. }));
    error.to_string()
}

#[test]
fn invalid_tunnel_settings_are_an_error_with_the_reason() {
    assert_eq!(
        refusal(&[("masque.congestion", "dctcp")], Plugins::new()),
        "flow \"tunnel\": congestion control `dctcp` needs counts of congestion marks, and the QUIC stack reports only that \
         there are new ones"
    );
    for port in ["40000", "49152", "65535"] {
        assert_eq!(
            refusal(&[("flow.tunnel.port", port)], Plugins::new()),
            format!(
                "flow \"tunnel\": its proxy listens on port {port}; the port must be below 40000, the first port of \
                 tunnel clients"
            )
        );
    }
    assert_eq!(
        refusal(&[("flow.tunnel.count", "9153")], Plugins::new()),
        "flow \"tunnel.9153\": at most 9152 tunnels can start at one host, because each needs a port there"
    );
    assert_eq!(
        refusal(&[], Plugins::new().control("tunnel", |_| Box::new(Cubic::default()))),
        "flow \"tunnel\": plug-ins cannot replace the congestion control of a tunnel; use masque.congestion"
    );
}

/// A second tunnel that requests the last port of proxies gets the next one, from 1024 on.
#[test]
fn proxies_share_the_ports_below_those_of_clients() {
    let second = TUNNEL.replace("\"tunnel\"\n    from", "\"second\"\n    from");
    let exchange = DOWNLOAD.replace("10MB", "10kB") + "via = \"second\"\n";
    let port = "port = 39999\n";
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{port}{second}{port}{exchange}"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
    assert!(outcome.flow("second").expect("it").counters.rx_packets > 10);
}
