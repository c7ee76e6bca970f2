//! QUIC flows with the QUIC model: times calculated by hand, comparison with the real stack, and effects of the network.

use crate::common::{flows_csv, outcome};
use fullpipe_lab::Outcome;

fn scenario(quic: &str, link: &str, flow: &str) -> String {
    format!(
        r#"
        duration = "60s"
        [topology]
        kind = "chain"
        link = [{{ rate = "10Mbit/s", delay = "20ms", queue = "100kB", framing = "0B", {link} }}]
        [quic]
        stack = "model"
        congestion = "newreno"
        largest_mtu = "1200B"
        {quic}
        [[flow]]
        name = "get"
        from = "source"
        to = "sink"
        protocol = "quic"
        {flow}
        "#
    )
}

fn seconds(outcome: &Outcome, flow: &str) -> f64 {
    outcome.flow(flow).expect("the flow").completion.unwrap_or_else(|| panic!("{flow} is not over")).as_secs_f64()
}

/// One packet of 1000 bytes arrives half a round trip after the client may send it: after one round trip (1-RTT), none (0-RTT), two
/// (Retry). Propagation is increased by the times of full datagrams at 10 Mbit/s, 1228 bytes in 0.98 ms: the client's first and the
/// server's last in the handshake, and the data packet.
#[test]
fn handshakes_take_the_round_trips_of_rfc_9000() {
    let small = "size = \"1000B\"";
    for (handshake, round_trips) in [("1-rtt", 1.5), ("0-rtt", 0.5), ("retry", 2.5)] {
        let outcome = outcome(&scenario(&format!("handshake = \"{handshake}\"\ncertificates = \"1000B\""), "", small));
        let over = seconds(&outcome, "get");
        let least = round_trips * 0.040;
        assert!((least..least + 0.006).contains(&over), "{handshake}: {over}");
        assert_eq!(outcome.totals().live_endpoints, 0, "{handshake}");
    }
}

/// A server's flight with 3000 bytes of certificates fits into three times the client's 1200; one with 4000 does not, and waits for one
/// more round trip.
#[test]
fn large_certificate_costs_a_round_trip() {
    let of = |bytes: u32| {
        seconds(&outcome(&scenario(&format!("certificates = \"{bytes}B\""), "", "size = \"1000B\"")), "get")
    };
    let (small, large) = (of(3000), of(4000));
    assert!((large - small - 0.040).abs() < 0.003, "{small} and {large}");
}

/// 2 MB in packets of 1200 bytes: header 1 + 8, packet number 1 or 2, frame header 1 + 1 + 4 and tag 16 leave 1167 or 1168 bytes. So 1713
/// packets of 1228 bytes at the IP layer, which take 1.683 s on the link.
#[test]
fn transfer_over_the_model_takes_the_time_of_its_packets() {
    let outcome = outcome(&scenario("", "", "size = \"2MB\""));
    let row = outcome.flow("get").expect("the flow");
    assert_eq!((row.protocol, row.congestion), ("quic", Some("newreno")));
    let arrived = row.counters.rx_packets;
    assert!(
        (1713..1725).contains(&(arrived - row.retransmitted_packets.expect("it counts") + row.counters.lost_packets)),
        "{arrived}"
    );
    // One round trip of the handshake, slow start until the pipe is full (two to three), the packets, and the propagation of the last
    // one.
    let over = seconds(&outcome, "get");
    assert!((1.683 + 0.040 + 0.020..1.683 + 0.200).contains(&over), "{over}");
    // All packets declared lost were dropped by the queue.
    assert_eq!(row.retransmitted_packets, Some(row.counters.lost_packets));
}

#[test]
fn run_depends_on_the_seed_only() {
    let lossy = "loss = { kind = \"bernoulli\", probability = 0.02 }";
    let text = scenario("congestion = \"bbr3\"", lossy, "size = \"1MB\"").replace("congestion = \"newreno\"\n", "");
    let one = flows_csv(&outcome(&text));
    assert_eq!(one, flows_csv(&outcome(&text)));
    assert_ne!(one, flows_csv(&outcome(&format!("seed = 77\n{text}"))));
}

/// A client whose port changes every second is followed each time: the server sends a challenge in a datagram of 1200 bytes, while its
/// acknowledgments have 30 (RFC 9000 section 8.2.1). Only packets in flight at the change are lost, because the NAT drops packets to the
/// old port.
#[test]
fn server_follows_a_client_after_nat_rebinding() {
    let of = |rebinding: &str| {
        outcome(&format!(
            r#"
            duration = "60s"
            host = [{{ name = "source" }}, {{ name = "sink" }}]
            [[link]]
            name = "wire"
            from = "source"
            to = "sink"
            rate = "10Mbit/s"
            delay = "20ms"
            queue = "100kB"
            framing = "0B"
            {rebinding}
            [quic]
            stack = "model"
            congestion = "newreno"
            largest_mtu = "1200B"
            [[flow]]
            name = "get"
            from = "source"
            to = "sink"
            protocol = "quic"
            size = "4MB"
            "#
        ))
    };
    let (still, rebound) = (of(""), of("rebinding = { first = \"1s\", every = \"1s\" }"));
    let over = seconds(&rebound, "get");
    // 3.37 s of packets; three rebindings cost acknowledgments of one round trip at most.
    assert!((3.4..5.5).contains(&over), "{over}");
    let bytes = |outcome: &Outcome| outcome.flow("get.reverse").expect("it has acknowledgements").counters.tx_bytes;
    let challenges = (bytes(&rebound) as f64 - bytes(&still) as f64) / 1228.0;
    assert!((2.5..6.5).contains(&challenges), "{challenges} for three rebindings");
}

/// DCTCP needs counts of marks, which the model has if its packets are ECN-capable.
#[test]
fn dctcp_over_quic_keeps_a_marking_queue_short() {
    let marking = "discipline = { kind = \"step\", threshold = \"15kB\" }";
    let text = scenario("congestion = \"dctcp\"\necn = true", marking, "size = \"8MB\"")
        .replace("congestion = \"newreno\"\n", "");
    let outcome = outcome(&text);
    let row = outcome.flow("get").expect("the flow");
    assert!(row.marked_packets.is_some_and(|marked| marked > 50), "{:?}", row.marked_packets);
    assert_eq!(row.counters.lost_packets, 0);
    let over = seconds(&outcome, "get");
    // 8 MB are 6851 packets of 1228 bytes: 6.73 s.
    assert!((6.73..7.3).contains(&over), "{over}");
}

/// Prague sends ECT(1), which the peer counts (`ACK_ECN`) and the sender validates: the marking queue stays short without a loss. If
/// the first packets were sent as ECT(0), the validation would fail, and the classic queue would grow.
#[test]
fn prague_over_quic_sends_ect1_and_keeps_a_marking_queue_short() {
    let marking = "discipline = { kind = \"dualpi2\" }";
    let text = scenario("congestion = \"prague\"\necn = true", marking, "size = \"8MB\"")
        .replace("congestion = \"newreno\"\n", "")
        // The discipline marks nothing in a queue below it.
        .replace("queue = \"100kB\", ", "")
        + "
        [[probe]]
        flow = \"get\"
        metrics = [\"control_alpha\", \"srtt_s\"]";
    let outcome = outcome(&text);
    let row = outcome.flow("get").expect("the flow");
    // Two marks per round trip of 42 ms are 320 in 6.7 s. A packet takes 0.98 ms, so the ramp from 0.8 to 1.2 ms marks runs of packets: there
    // are more.
    assert!(row.marked_packets.is_some_and(|marked| (320..2_000).contains(&marked)), "{:?}", row.marked_packets);
    assert_eq!(row.counters.lost_packets, 0);
    // 8 MB are 6851 packets of 1228 bytes: 6.73 s. The queue of at most two packets runs empty after reductions.
    let over = seconds(&outcome, "get");
    assert!((6.73..8.0).contains(&over), "{over}");
    let last = |metric: &str| {
        outcome.series_rows().filter(|row| row.metric == metric).last().expect("the probe has samples").value
    };
    // The path has 40 ms and a packet 1 ms; the ramp marks everything above 1.2 ms.
    assert!((0.041..0.0435).contains(&last("srtt_s")), "{}", last("srtt_s"));
    assert!((0.01..0.3).contains(&last("control_alpha")), "{}", last("control_alpha"));
}
