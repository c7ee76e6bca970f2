//! QUIC flows that our model plays: times worked by hand, the real stack beside, and what a network does to them.

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

/// One packet of 1000 bytes arrives half a round trip after the client may send it: after one round trip (1-RTT), none
/// (0-RTT), two (Retry). To the propagation come the times of full datagrams at 10 Mbit/s, 1228 bytes in 0.98 ms: the
/// client's first and the server's last in the handshake, the data's own.
#[test]
fn handshakes_take_their_round_trips() {
    let small = "size = \"1000B\"";
    for (handshake, round_trips) in [("1-rtt", 1.5), ("0-rtt", 0.5), ("retry", 2.5)] {
        let outcome = outcome(&scenario(&format!("handshake = \"{handshake}\"\ncertificates = \"1000B\""), "", small));
        let over = seconds(&outcome, "get");
        let least = round_trips * 0.040;
        assert!((least..least + 0.006).contains(&over), "{handshake}: {over}");
        assert_eq!(outcome.totals().live_endpoints, 0, "{handshake}");
    }
}

/// A server's flight of 3000 bytes of certificates fits into three times the client's 1200; one of 4000 does not and waits
/// for one more round trip.
#[test]
fn a_large_certificate_costs_a_round_trip() {
    let of = |bytes: u32| {
        seconds(&outcome(&scenario(&format!("certificates = \"{bytes}B\""), "", "size = \"1000B\"")), "get")
    };
    let (small, large) = (of(3000), of(4000));
    assert!((large - small - 0.040).abs() < 0.003, "{small} and {large}");
}

/// 2 MB in packets of 1200 bytes: header 1 + 8, packet number 1 or 2, frame header 1 + 1 + 4, tag 16 leave 1167 or 1168
/// bytes, so 1713 packets of 1228 bytes at the IP layer, which take 1.683 s of the link.
#[test]
fn a_transfer_takes_the_time_of_its_packets() {
    let outcome = outcome(&scenario("", "", "size = \"2MB\""));
    let row = outcome.flow("get").expect("the flow");
    assert_eq!((row.protocol, row.congestion), ("quic", Some("newreno")));
    let arrived = row.counters.rx_packets;
    assert!(
        (1713..1725).contains(&(arrived - row.retransmitted_packets.expect("it counts") + row.counters.lost_packets)),
        "{arrived}"
    );
    // One round trip of the handshake, slow start until the pipe is full (two to three), the packets, the last one's way.
    let over = seconds(&outcome, "get");
    assert!((1.683 + 0.040 + 0.020..1.683 + 0.200).contains(&over), "{over}");
    // Everything lost was dropped by the queue.
    assert_eq!(row.retransmitted_packets, Some(row.counters.lost_packets));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let lossy = "loss = { kind = \"bernoulli\", probability = 0.02 }";
    let text = scenario("congestion = \"bbr3\"", lossy, "size = \"1MB\"").replace("congestion = \"newreno\"\n", "");
    let one = flows_csv(&outcome(&text));
    assert_eq!(one, flows_csv(&outcome(&text)));
    assert_ne!(one, flows_csv(&outcome(&format!("seed = 77\n{text}"))));
}

/// A client whose port changes every second is followed each time: the server sends a challenge, in a datagram of 1200 bytes
/// where its acknowledgements have 30 (RFC 9000 section 8.2.1). What is under way meanwhile is lost, as the translator drops what
/// goes to its old port, no more.
#[test]
fn a_rebound_client_is_followed() {
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
    // 3.37 s of packets; three rebindings cost acknowledgements of a round trip at most.
    assert!((3.4..5.5).contains(&over), "{over}");
    let bytes = |outcome: &Outcome| outcome.flow("get.reverse").expect("it has acknowledgements").counters.tx_bytes;
    let challenges = (bytes(&rebound) as f64 - bytes(&still) as f64) / 1228.0;
    assert!((2.5..6.5).contains(&challenges), "{challenges} for three rebindings");
}

/// DCTCP needs counts of marks, which the model has when its packets are ECN-capable.
#[test]
fn dctcp_keeps_a_marking_queue_short() {
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
