//! Each workload in a run, whose results are compared with hand calculations from its description.

use crate::common::outcome;
use fullpipe_lab::Outcome;

const NETWORK: &str = "
[topology]
kind = 'chain'
[[topology.link]]
rate = '10Mbit/s'
delay = '10ms'
queue = 'unlimited'
";

fn run(flow: &str) -> Outcome {
    outcome(&format!("duration = '60s'\n{NETWORK}\n[[flow]]\nname = 'it'\nfrom = 'source'\nto = 'sink'\n{flow}"))
}

fn figure(outcome: &Outcome, name: &str) -> f64 {
    let named = |row: &fullpipe_lab::FigureRow<'_>| row.name == name;
    let all = || outcome.figure_rows().map(|row| row.name).collect::<Vec<_>>();
    outcome.figure_rows().find(named).unwrap_or_else(|| panic!("no figure {name} in {:?}", all())).value
}

#[test]
fn on_off_workload_sends_only_while_on() {
    // 1 s on at 800 kbit/s in 1000-byte packets is one packet per 10 ms: 100 per period of 2 s; 60 s: 3000, and the first of the period
    // that begins at 60 s, when the run ends.
    let outcome =
        run("protocol = 'udp'\nworkload = 'on-off'\nrate = '800kbit/s'\npayload = '1000B'\non = '1s'\noff = '1s'");
    assert_eq!(outcome.flow_rows().next().unwrap().counters.tx_packets, 3001);
}

#[test]
fn poisson_packets_have_the_configured_rate() {
    // 10 ms on average over 60 s: 6000, standard deviation sqrt(6000) = 77; five of them.
    let outcome = run("workload = 'poisson-packets'\ninterval = '10ms'\nsize = '500B'");
    let row = outcome.flow_rows().next().unwrap().counters;
    assert!((5613..=6387).contains(&row.tx_packets), "{}", row.tx_packets);
    assert_eq!(row.tx_bytes, 528 * row.tx_packets);
}

#[test]
fn each_transfer_has_its_own_connection_and_completion_time() {
    let outcome = run("workload = 'poisson-transfers'\ninterval = '100ms'\nsize = '10kB'\ntransfers = 50");
    let rows: Vec<_> = outcome.completion_rows().collect();
    assert_eq!(rows.len(), 50);
    // Handshake and transfer take at least two round trips of 20 ms less half of one, and 10 kB at 10 Mbit/s: 8 ms.
    for row in &rows {
        assert_eq!(row.completion.bytes, 10_000);
        let took = row.completion.completed - row.completion.started;
        assert!(took.as_secs_f64() > 0.038, "{took}");
    }
    assert_eq!(outcome.flow_rows().filter(|row| !row.flow.ends_with("reverse")).count(), 50);
}

#[test]
fn exchange_takes_a_round_trip_and_its_transmission_time() {
    // Request 100 B, response 1000 B, think time 5 ms, idle 5 ms, one connection. Wire sizes: 100 + 52 + 2 = 154 B and 1000 + 52 + 2 =
    // 1054 B; at 10 Mbit/s 123.2 us and 843.2 us. From the second exchange on: 20 ms + 5 ms + 0.9664 ms = 25.9664 ms. The first also
    // waits for the handshake.
    let outcome = run(
        "workload = 'request-response'\nrequest = '100B'\nresponse = '1000B'\nthink = '5ms'\nidle = '5ms'\nexchanges = 20",
    );
    let rows: Vec<_> = outcome.completion_rows().collect();
    assert_eq!(rows.len(), 20);
    for row in &rows[1..] {
        assert_eq!((row.completion.completed - row.completion.started).as_nanos(), 25_966_400);
    }
    assert!(rows[0].completion.completed > rows[1].completion.started - fullpipe_units::Duration::from_millis(6));
}

#[test]
fn constant_bit_rate_video_has_the_configured_rate() {
    // 1 Mbit/s over 60 s: 7.5 MB of payload, apart from rounding to a packet per frame and one group at the end.
    let outcome = run("protocol = 'udp'\nworkload = 'video-cbr'\nrate = '1Mbit/s'");
    let row = outcome.flow_rows().next().unwrap().counters;
    let payload = row.tx_bytes - 28 * row.tx_packets;
    assert!((payload as f64 - 7.5e6).abs() < 75_000.0, "{payload}");
}

#[test]
fn abr_player_selects_the_highest_rate_that_the_link_carries() {
    // The goodput of the 10 Mbit/s link is 9.64 Mbit/s (1448 of 1502 bytes), so 8 Mbit/s is the highest sustainable rate of the ladder.
    // The throughput rule selects it, because 0.9 x 9.6 = 8.7.
    let outcome = run(
        "workload = 'video-abr'\nladder = ['1Mbit/s', '2Mbit/s', '4Mbit/s', '8Mbit/s', '16Mbit/s']\nsegment = '2s'\nchoice = 'throughput'",
    );
    // The responses are sent from sink to source over the reverse direction, which has the same rate.
    assert_eq!(figure(&outcome, "rebuffer_s"), 0.0);
    let mean = figure(&outcome, "mean_bit_rate_bps");
    assert!((6.5e6..=8e6).contains(&mean), "{mean}");
}

#[test]
fn games_and_calls_send_in_both_directions() {
    // 25 client packets per second: 1500 in 60 s (one more at 0).
    let game = run("workload = 'gaming'");
    let rows: Vec<_> = game.flow_rows().map(|row| row.counters.tx_packets).collect();
    assert_eq!(rows.len(), 2);
    assert!((1499..=1501).contains(&rows[0]), "{rows:?}");
    // Server intervals: Ext(55, 6) ms, mean 55 + 0.5772 x 6 = 58.46 ms: 1026; standard deviation of the count
    // sqrt(60 / 0.05846^3) x 6 pi / sqrt(6) ms = 4.2.
    assert!((1005..=1047).contains(&rows[1]), "{rows:?}");
    // A call without silence suppression: 50 packets per second.
    let call = run("workload = 'voice'\nsilence_suppression = false");
    let rows: Vec<_> = call.flow_rows().map(|row| row.counters.tx_packets).collect();
    assert!(rows.iter().all(|packets| (2999..=3001).contains(packets)), "{rows:?}");
}

#[test]
fn ipv6_flows_have_longer_headers_and_smaller_segments() {
    // 100 datagrams of 500 bytes: 40 + 8 + 500.
    let udp = run(
        "ip = 'ipv6'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = '500B'\ninterval = '10ms'\npackets = 100",
    );
    assert_eq!(udp.flow_rows().next().unwrap().counters.tx_bytes, 100 * 548);
    // A full TCP segment again fills 1500 bytes: 40 + 32 + 1428.
    let tcp = run("ip = 'ipv6'\nsize = '14280B'");
    let row = tcp.flow_rows().next().unwrap();
    // SYN 40 + 40, acknowledgment 40 + 32, ten segments, FIN with the last one or alone.
    let sent = row.counters;
    let alone = sent.tx_packets - 12;
    assert_eq!(sent.tx_bytes, 80 + 72 * (1 + alone) + 10 * 1500);
}

#[test]
fn fast_open_saves_a_round_trip_from_the_second_connection_on() {
    // An exchange on its own connection takes two round trips of 20 ms with the handshake, and one if the SYN carries the request.
    // Transmission at 10 Mbit/s of at most 154 + 1054 bytes adds less than 1 ms, as do the SYNs.
    for (fast_open, first_ms, later_ms) in [("off", 40.0, 40.0), ("ask", 40.0, 20.0), ("known", 20.0, 20.0)] {
        let outcome = run(&format!(
            "workload = 'request-response'\nrequest = '100B'\nresponse = '1000B'\nidle = '1s'\nexchanges = 5\n\
             connection = 'per-exchange'\ntcp = {{ fast_open = '{fast_open}' }}"
        ));
        let took: Vec<f64> = outcome
            .completion_rows()
            .map(|row| (row.completion.completed - row.completion.started).as_secs_f64() * 1e3)
            .collect();
        assert_eq!(took.len(), 5);
        assert!((first_ms..first_ms + 1.2).contains(&took[0]), "{fast_open}: {took:?}");
        assert!(took[1..].iter().all(|ms| (later_ms..later_ms + 1.2).contains(ms)), "{fast_open}: {took:?}");
    }
}

#[test]
fn tls_handshake_takes_the_round_trips_of_the_rfcs() {
    // Round trips of 20 ms until the response arrives: TCP 1, TLS 1.3 1 (RFC 8446 section 2), the exchange itself 1. Early data and Fast
    // Open save one each (RFC 8446 section 2.3, RFC 7413). Transmission at 10 Mbit/s adds: the largest flight, 3000 bytes of certificates
    // in three packets, 2.8 ms; hello, request and response under 2.5 ms.
    for (tls, fast_open, round_trips) in [
        ("none", "off", 2.0),
        ("full", "off", 3.0),
        ("resumed", "off", 3.0),
        ("early-data", "off", 2.0),
        ("full", "known", 2.0),
        ("early-data", "known", 1.0),
    ] {
        let outcome = run(&format!(
            "workload = 'request-response'\nrequest = '100B'\nresponse = '1000B'\nexchanges = 1\n\
             tcp = {{ fast_open = '{fast_open}', tls = '{tls}' }}"
        ));
        let row = outcome.completion_rows().next().unwrap_or_else(|| panic!("{tls} {fast_open}"));
        let took = (row.completion.completed - row.completion.started).as_secs_f64() * 1e3;
        let least = 20.0 * round_trips;
        assert!((least..least + 5.5).contains(&took), "{tls} {fast_open}: {took} ms");
        assert_eq!(row.completion.bytes, 1000);
    }
}

#[test]
fn every_tcp_workload_works_with_tls() {
    for workload in [
        "size = '1MB'",
        "workload = 'poisson-transfers'\ninterval = '100ms'\nsize = '20kB'\ntransfers = 20",
        "workload = 'request-response'\nrequest = '100B'\nresponse = '30kB'\nexchanges = 10",
        "workload = 'video-abr'\nladder = ['1Mbit/s', '2Mbit/s']\nsegments = 5",
    ] {
        let outcome = run(&format!("{workload}\ntcp = {{ tls = 'full' }}"));
        let received: u64 = outcome.flow_rows().map(|row| row.counters.rx_bytes).sum();
        assert!(received > 300_000, "{workload}: {received}");
        let ended = outcome.completion_rows().count();
        let expected = [("poisson", 20), ("request", 10), ("video", 5)];
        let expected = expected.iter().find(|(name, _)| workload.contains(&format!("'{name}"))).map_or(0, |(_, n)| *n);
        assert_eq!(ended, expected, "{workload}");
    }
}
