//! Tunnels (CONNECT-UDP): the client and the proxy that also run on real sockets, at hosts of the simulated network.

use crate::common;

use crate::common::{csv, flows_csv, outcome, outcome_with};
use fullpipe_congestion::cubic::Cubic;
use fullpipe_lab::{Options, Outcome, Plugins, RunError, run_with};
use std::fmt::Write;

/// 10 Mbit/s, 5 ms and 200 ms of queue between client and proxy, 25 ms beyond, as in the EPIQ evaluation. Packets of 1200
/// bytes go through tunnels whose packets have 1400; the way without a tunnel takes the same links.
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
/// Where it goes is said after it.
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

/// The download through the tunnel, with these keys of `[masque]`, or of what their path names.
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

/// Handshake and request of the tunnel are two round trips, in each of which the proxy waits once and the client once. The inner
/// handshake and the exchange are two more, or three: in each the proxy waits when it hears the client and when it hears the server,
/// and the client waits once. That is ten to thirteen waits; a wait may be going on already when a datagram comes.
#[test]
fn clients_and_proxies_that_take_their_time_take_it_once_for_all_that_has_come() {
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

/// What a datagram adds to an inner packet: UDP and IPv4 headers 28, short header with an 8-byte connection ID and a packet
/// number of 2 bytes (RFC 9000 section 17.3.1; 1 or 3 at the beginning and after losses) 11, frame type 1, length 2 where
/// another frame follows (RFC 9221 section 4), quarter stream ID 1 and context ID 1 (RFC 9297, 9298), tag 16: 58 to 60 bytes.
/// The inner packet's own IP and UDP headers, 28 bytes, are not carried. Where acknowledgements go along they add at most 10
/// bytes (type 1, largest 4, delay 2, count and first range 1 each), in every second packet at most.
#[test]
fn a_datagram_adds_thirty_bytes_to_a_packet() {
    let outcome = through(&[]);
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    let (inner, outer) = (outcome.flow("download.reverse").expect("it"), outcome.flow("tunnel.reverse").expect("it"));
    let carried = inner.counters.rx_packets;
    let payload = inner.counters.rx_bytes - 28 * carried;
    // Packets that carry no inner one are acknowledgements of 28 + 11 + 16 and at least 5 bytes, and the handshake.
    let others = outer.counters.tx_packets - carried;
    let added = outer.counters.tx_bytes as f64 - payload as f64 - 62.0 * others as f64;
    let each = added / carried as f64;
    println!("{each:.2} bytes more for each of {carried} packets; {others} packets without one");
    assert!((57.0..65.0).contains(&each), "{each}");
    // The proxy acknowledges every second packet of the client's at least (RFC 9000 section 13.2.2) and, when nothing goes
    // that way at the moment, in packets of their own: one for two, and a few of the handshake.
    let from_client = outcome.flow("tunnel").expect("it").counters.rx_packets;
    assert!(others <= from_client / 2 + 20, "{others} of {from_client}");
}

/// A download that says where its data come from is what the client gets when it asks for as much: the connection is opened by
/// the client, with a request of one byte, and the same packets travel at the same times.
#[test]
fn a_download_from_the_server_is_the_clients_request_for_the_same_bytes() {
    let download = "[[flow]]\nname = 'download'\nfrom = 'server'\nto = 'client'\nprotocol = 'quic'\nworkload = 'bulk'\nsize = '10MB'\n";
    for mode in ["datagram", "stream"] {
        let sent = outcome_with(&format!("{NETWORK}{TUNNEL}{download}{VIA}"), &[("masque.mode", mode)]);
        let asked = through(&[("masque.mode", mode), ("flow.download.request", "1B")]);
        assert!(sent.verdict().passed(), "{}", sent.verdict());
        // As many packets in each direction, with a few bytes of frame headers more or less. A byte takes 0.8 us at 10 Mbit/s,
        // and the data are complete within that.
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

/// What has no single stream of its own cannot be turned round.
#[test]
fn a_server_that_begins_exchanges_through_a_clients_tunnel_is_refused() {
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
fn the_same_seed_gives_the_same_run_in_both_modes() {
    for mode in ["datagram", "stream"] {
        let (one, two) = (records(&through(&[("mode", mode)])), records(&through(&[("mode", mode)])));
        assert_eq!(one, two);
    }
}

#[test]
fn tls_in_tunnel_and_connection_changes_no_record() {
    let tls = ("cryptography", "tls");
    let null = records(&through(&[]));
    assert_eq!(null, records(&through(&[tls])));
    assert_eq!(null, records(&through(&[tls, ("quic.cryptography", "tls")])));
}

/// Without losses beyond the proxy, each packet that the server sent has reached the proxy; what did not come out of the
/// tunnel was lost in its datagrams, or dropped by the proxy.
#[test]
fn what_a_datagram_tunnel_loses_is_found_lost_end_to_end_and_only_that() {
    let outcome = through(&[("link.access.queue", "60kB")]);
    let sent = outcome.flow("download.reverse").expect("it").counters;
    assert_eq!(sent.lost_packets, 0);
    let lost = figure(&outcome, "download", "server", "quic_packets_lost");
    let on_the_way = outcome.flow("tunnel.reverse").expect("it").counters.lost_packets as f64;
    let dropped = figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue");
    println!("lost end to end {lost}, tunnel packets lost {on_the_way}, dropped by the proxy {dropped}");
    assert!(on_the_way > 0.0);
    // A tunnel packet without an inner one may be among those that are lost.
    assert!(lost <= on_the_way + dropped && lost >= (on_the_way + dropped) * 0.9, "{lost}");
}

/// In stream mode the tunnel repairs what it loses: the inner connection sees no loss as long as the queue has room.
#[test]
fn a_stream_tunnel_hides_losses() {
    let outcome = through(&[("mode", "stream"), ("queue_limit", "unlimited")]);
    assert!(outcome.flow("tunnel.reverse").expect("it").counters.lost_packets > 0);
    assert_eq!(figure(&outcome, "download", "server", "quic_packets_lost"), 0.0);
    assert_eq!(figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue"), 0.0);
    // What it holds back waits at the proxy, and the server sees it as a longer round trip.
    let bounded = through(&[("mode", "stream"), ("queue_limit", "30kB"), ("send_buffer", "300kB")]);
    let (peak, least) = (figure(&outcome, "tunnel", "proxy", "tunnel_peak_queue_bytes"), 30_000.0);
    let kept = figure(&bounded, "tunnel", "proxy", "tunnel_peak_queue_bytes");
    let rtt = |outcome: &Outcome| figure(outcome, "download", "server", "quic_mean_rtt_s");
    println!("queue {peak} and {kept} bytes; round trips {} and {} s", rtt(&outcome), rtt(&bounded));
    assert!(kept <= least);
    assert!(figure(&bounded, "tunnel", "proxy", "tunnel_dropped_queue") > 0.0);
    assert!(rtt(&bounded) < rtt(&outcome));
}

/// Two downloads share one connection to the proxy, on a link that loses 1 % of its frames. The one in capsules is repaired by
/// the tunnel and loses nothing end to end; the one in datagrams finds its own losses, as far as they hit its packets.
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
    // One tunnel flow, one connection: both requests are of the same client. Without a mode of its own it loses, too.
    let alike = outcome_with(&text.replace("via_mode = \"stream\"\n", ""), &[("masque.queue_limit", "unlimited")]);
    assert!(figure(&alike, "repaired", "server", "quic_packets_lost") > 0.0);
}

/// Ten downloads through streams of one tunnel. In turns they end together; in the order of requests the first is done when a
/// tenth of all has passed, and the last at the same time as in turns.
#[test]
fn request_order_serves_the_request_that_was_opened_first() {
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
    // All of 10 MB take 8 s and the headers; in turns the first cannot end before most of the others.
    assert!(first_in_turns > 0.8 * last_in_turns, "{first_in_turns} {last_in_turns}");
    assert!(first < 0.5 * last, "{first} {last}");
    assert!((last / last_in_turns - 1.0).abs() < 0.05, "{last} {last_in_turns}");
}

/// Probes of the path's MTU that do not fit the tunnel's datagrams are dropped and counted; the transfer goes on.
#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    let text =
        format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}").replacen("largest_mtu = \"1200B\"", "largest_mtu = \"1452B\"", 1);
    let outcome = outcome(&text);
    let at = |host| figure(&outcome, "tunnel", host, "tunnel_dropped_too_large");
    println!("too large: {} at the client, {} at the proxy", at("client"), at("proxy"));
    assert!(at("proxy") >= 1.0);
    assert!(seconds(&outcome) < 12.0);
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
}

/// Four connections share one tunnel: four requests in one connection to the proxy.
#[test]
fn many_connections_share_a_tunnel() {
    let quarter = DOWNLOAD.replace("10MB", "2500kB") + "count = 4\n" + VIA;
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{quarter}"));
    for number in 1..=4 {
        assert_eq!(figure(&outcome, &format!("download.{number}"), "client", "exchanges"), 1.0);
    }
    assert_eq!(figure(&outcome, "tunnel", "client", "tunnel_requests_refused"), 0.0);
    assert!(outcome.verdict().passed());
}

/// A connection that is over gives its request back: of twenty one after another, at most the last is open in the end.
#[test]
fn requests_end_with_their_connections() {
    let exchanges =
        DOWNLOAD.replace("10MB", "10kB").replace("exchanges = 1", "exchanges = 20\nconnection = 'per-exchange'");
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{exchanges}{VIA}"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 20.0);
    let open = figure(&outcome, "tunnel", "proxy", "tunnel_requests_open");
    assert!(open <= 1.0, "{open}");
}

/// A response that is larger than the send buffer passes: the application hears when there is room again.
#[test]
fn a_response_may_be_larger_than_all_buffers() {
    let outcome = outcome(&format!("{NETWORK}{DOWNLOAD}[flow.quic]\nsend_buffer = \"100kB\"\n"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
    assert!(seconds(&outcome) < 12.0);
}

/// Without congestion control in the tunnel, the inner one alone decides what the link is offered.
#[test]
fn a_tunnel_without_control_leaves_it_to_the_inner_connection() {
    let outcome = through(&[("congestion", "none")]);
    assert_eq!(outcome.flow("tunnel").expect("it").congestion, Some("none"));
    assert_eq!(figure(&outcome, "tunnel", "proxy", "tunnel_dropped_queue"), 0.0);
    // It takes longer than without a tunnel by what the datagrams add, 2 to 3.5 % of 8.7 s, the tunnel's two round trips of
    // 10 ms and the request's one before the first packet; and what is lost differs.
    let direct = seconds(&common::outcome(&format!("{NETWORK}{DOWNLOAD}")));
    let more = seconds(&outcome) - direct;
    println!("{more} s more than {direct}");
    assert!((0.15..0.6).contains(&more), "{more}");
}

#[test]
fn figures_have_their_names() {
    let outcome = through(&[]);
    let mut text = String::new();
    outcome.figure_rows().for_each(|row| writeln!(text, "{}", row.name).expect("memory takes it"));
    for row in outcome.figure_rows() {
        assert!(fullpipe_lab::metric_names().any(|name| name == row.name), "{}", row.name);
    }
    assert!(text.contains("tunnel_mean_rtt_s") && text.contains("quic_mean_rtt_s"));
}

/// The random streams of a run are named after flows, so that their order in the file decides nothing. If the connection's
/// first packet did not wait for its tunnel, it would be sent again after a second (RFC 9002 sections 6.2.1 and 6.2.2: 333 ms
/// and four times half of that).
#[test]
fn a_flow_may_stand_before_its_tunnel() {
    let exchange = DOWNLOAD.replace("10MB", "100kB") + VIA;
    let after = outcome(&format!("{NETWORK}{TUNNEL}{exchange}"));
    let before = outcome(&format!("{NETWORK}{exchange}{TUNNEL}"));
    println!("{} s and {} s", seconds(&after), seconds(&before));
    assert_eq!(seconds(&before), seconds(&after));
    assert!(seconds(&after) < 0.9);
    assert_eq!(figure(&before, "tunnel", "client", "tunnel_dropped_queue"), 0.0);
}

/// BBRv3 draws how long it cruises before it probes, two to three seconds. Packets differ between seeds in a few bytes even
/// with a control that draws nothing; that the control itself follows the seed is tested where it is made.
#[test]
fn a_tunnel_with_a_control_that_draws_follows_the_seed() {
    let run = |seed: u32| {
        let text = format!("seed = {seed}\n{NETWORK}{TUNNEL}congestion = \"bbr3\"\n{DOWNLOAD}{VIA}");
        records(&outcome(&text))
    };
    let one = run(1);
    assert_eq!(one, run(1));
    assert_ne!(one, run(2));
}

/// Why these keys of a scenario with a tunnel make no run.
fn refusal(changes: &[(&str, &str)], plugins: Plugins) -> String {
    let overrides: Vec<fullpipe_scenario::Override> = changes
        .iter()
        .map(|(path, value)| fullpipe_scenario::Override { path: path.to_string(), value: value.to_string() })
        .collect();
    let text = format!("{NETWORK}{TUNNEL}{DOWNLOAD}{VIA}");
    let loaded = fullpipe_scenario::load(&text, "test.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let error = run_with(&loaded.scenario, &Options::default(), plugins).expect_err("it is refused");
    assert!(matches!(error, RunError::Control { .. }));
    error.to_string()
}

#[test]
fn what_a_tunnel_cannot_be_made_with_is_refused_with_the_reason() {
    assert_eq!(
        refusal(&[("masque.congestion", "dctcp")], Plugins::new()),
        "flow \"tunnel\": congestion control `dctcp` needs counts of congestion marks, and the QUIC stack tells only that \
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
        "flow \"tunnel.9153\": at most 9152 tunnels can begin at one host, because each needs a port there"
    );
    assert_eq!(
        refusal(&[], Plugins::new().control("tunnel", |_| Box::new(Cubic::default()))),
        "flow \"tunnel\": it is a tunnel, whose congestion control can be chosen but not replaced"
    );
}

/// The last port that a proxy may have, and another tunnel's that wants the same: it has the next, from 1024 on.
#[test]
fn proxies_share_the_ports_below_those_of_clients() {
    let second = TUNNEL.replace("\"tunnel\"\n    from", "\"second\"\n    from");
    let exchange = DOWNLOAD.replace("10MB", "10kB") + "via = \"second\"\n";
    let port = "port = 39999\n";
    let outcome = outcome(&format!("{NETWORK}{TUNNEL}{port}{second}{port}{exchange}"));
    assert_eq!(figure(&outcome, "download", "client", "exchanges"), 1.0);
    assert!(outcome.flow("second").expect("it").counters.rx_packets > 10);
}
