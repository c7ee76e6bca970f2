//! Directions and ends of flows: the direction of a flow's rate, and the samples of probes in each direction.

use crate::common::outcome;
use fullpipe_lab::Outcome;
use std::collections::BTreeSet;

/// A player at `source` and its server at `sink`, 20 ms apart at 10 Mbit/s.
fn video(probe: &str) -> Outcome {
    outcome(&format!(
        "duration = '60s'
        [topology]
        kind = 'chain'
        link = [{{ rate = '10Mbit/s', delay = '10ms' }}]
        [[flow]]
        name = 'video'
        from = 'source'
        to = 'sink'
        workload = 'video-abr'
        ladder = ['2Mbit/s']
        segment = '4s'
        segments = 10
        [[probe]]
        flow = 'video'
        interval = '100ms'
        {probe}"
    ))
}

/// The subjects with samples of a metric.
fn subjects<'a>(outcome: &'a Outcome, metric: &str) -> BTreeSet<&'a str> {
    outcome.series_rows().filter(|row| row.metric == metric).map(|row| row.subject).collect()
}

#[test]
fn video_rate_is_that_of_its_segments() {
    let outcome = video("metrics = ['throughput_bps']");
    let is_main = |flow| outcome.flow(flow).expect("a row").is_main;
    assert_eq!((is_main("video"), is_main("video.reverse")), (false, true));
    assert_eq!(outcome.flows().column("main_direction"), [0.0, 1.0]);
    // Ten segments of 4 s at 2 Mbit/s are 10 MB. Probe and row count the same bytes: headers of 52 bytes per 1448 of payload are 3.6 %.
    assert_eq!(subjects(&outcome, "throughput_bps"), BTreeSet::from(["video.reverse"]));
    let bytes: f64 = outcome.series("video.reverse", "throughput_bps").map(|(_, bps)| bps * 0.1 / 8.0).sum();
    let counted = outcome.flow("video.reverse").expect("the row").counters.rx_bytes as f64;
    assert!((bytes - counted).abs() < 1.0 && (1.03e7..1.05e7).contains(&bytes), "{bytes} {counted}");
}

#[test]
fn probe_samples_its_direction_and_end() {
    let both = ["throughput_bps", "cwnd_bytes"];
    for (keys, expected) in [
        // Either key implies the other.
        ("", ["video.reverse", "video.reverse"]),
        ("direction = 'reverse'", ["video.reverse", "video.reverse"]),
        ("end = 'server'", ["video.reverse", "video.reverse"]),
        ("end = 'sink'", ["video.reverse", "video.reverse"]),
        ("direction = 'forward'", ["video", "video"]),
        ("end = 'client'", ["video", "video"]),
        ("direction = 'reverse'\nend = 'source'", ["video.reverse", "video"]),
    ] {
        let outcome = video(&format!("{keys}\nmetrics = ['throughput_bps', 'cwnd_bytes']"));
        for (metric, subject) in both.iter().zip(expected) {
            assert_eq!(subjects(&outcome, metric), BTreeSet::from([subject]), "{keys}: {metric}");
        }
    }
    // The requests of 300 bytes do not let the player's window grow; the segments increase that of the server.
    let largest = |end| {
        let outcome = video(&format!("end = '{end}'\nmetrics = ['cwnd_bytes']"));
        outcome.series_rows().map(|row| row.value).fold(0.0, f64::max)
    };
    assert!(
        largest("client") < 20_000.0 && largest("server") > 40_000.0,
        "{} {}",
        largest("client"),
        largest("server")
    );
}

#[test]
fn probe_of_a_flow_with_several_connections_counts_all() {
    // Ten connections, of which the first carries a tenth of the data: 30 kB each.
    let outcome = outcome(
        "duration = '10s'
        [topology]
        kind = 'chain'
        link = [{ rate = '10Mbit/s', delay = '10ms' }]
        [[flow]]
        name = 'page'
        from = 'source'
        to = 'sink'
        workload = 'request-response'
        request = '100B'
        response = '30kB'
        connection = 'per-exchange'
        exchanges = 10
        [[probe]]
        flow = 'page'
        interval = '100ms'
        metrics = ['throughput_bps']",
    );
    let bytes: f64 = outcome.series("page.reverse", "throughput_bps").map(|(_, bps)| bps * 0.1 / 8.0).sum();
    let rows = outcome.flow_rows().filter(|row| row.is_main);
    let counted: Vec<u64> = rows.map(|row| row.counters.rx_bytes).collect();
    assert_eq!(counted.len(), 10);
    assert!(bytes > 300_000.0 && (bytes - counted.iter().sum::<u64>() as f64).abs() < 1.0, "{bytes} {counted:?}");
}

/// A download of 10 MB through a tunnel: 5 ms from the client to the proxy, 25 ms from the proxy to the server.
fn tunnel(probe: &str) -> Outcome {
    outcome(&format!(
        "duration = '30s'
        host = [{{ name = 'client' }}, {{ name = 'proxy' }}, {{ name = 'server' }}]
        router = [{{ name = 'router' }}]
        link = [
            {{ name = 'access', from = 'client', to = 'router', rate = '10Mbit/s', delay = '5ms', queue = '250kB' }},
            {{ name = 'local', from = 'router', to = 'proxy', rate = '1Gbit/s', delay = '1us' }},
            {{ name = 'core', from = 'router', to = 'server', rate = '1Gbit/s', delay = '25ms' }},
        ]
        [[flow]]
        name = 'tunnel'
        from = 'client'
        to = 'proxy'
        workload = 'tunnel'
        [[flow]]
        name = 'download'
        from = 'client'
        to = 'server'
        protocol = 'quic'
        workload = 'request-response'
        request = '100B'
        response = '10MB'
        exchanges = 1
        via = 'tunnel'
        [[probe]]
        flow = 'download'
        metrics = ['cwnd_bytes', 'srtt_s', 'inflight_bytes']
        interval = '50ms'
        {probe}"
    ))
}

#[test]
fn probe_at_the_server_of_a_tunneled_download_samples_its_window() {
    let outcome = tunnel("end = 'server'");
    let values = |outcome: &Outcome, subject: &str, metric: &str| -> Vec<f64> {
        outcome.series(subject, metric).map(|(_, value)| value).collect()
    };
    // It grows from the initial window of 10 packets beyond the capacity of the path: 75 kB in 60 ms.
    let windows = values(&outcome, "download.reverse", "cwnd_bytes");
    let (least, most) =
        windows.iter().fold((f64::MAX, 0.0), |(least, most): (f64, f64), &w| (least.min(w), most.max(w)));
    assert!(least < 50_000.0 && most > 75_000.0, "{least} {most}");
    let in_flight = values(&outcome, "download.reverse", "inflight_bytes").into_iter().fold(0.0, f64::max);
    assert!(in_flight > 75_000.0, "{in_flight}");
    // The round-trip propagation delay between server and client through the proxy is 60 ms.
    let rtt = values(&outcome, "download.reverse", "srtt_s");
    assert!(rtt.len() > 100 && rtt.iter().all(|rtt| (0.06..0.5).contains(rtt)), "{rtt:?}");
    // The client's window stays constant, because the client sends only one request of 100 bytes.
    let client = tunnel("end = 'client'");
    let windows = values(&client, "download", "cwnd_bytes");
    assert!(windows.len() > 100 && windows.iter().all(|window| *window == windows[0]), "{windows:?}");
    // The tunnel's main direction is that of the download through it.
    let main: Vec<_> = outcome.flow_rows().filter(|row| row.is_main).map(|row| row.flow.into_owned()).collect();
    assert_eq!(main, ["tunnel.reverse", "download.reverse"]);
}

#[test]
fn games_have_two_main_directions() {
    let outcome = outcome(
        "duration = '10s'
        [topology]
        kind = 'chain'
        link = [{ rate = '10Mbit/s', delay = '10ms' }]
        [[flow]]
        name = 'game'
        from = 'source'
        to = 'sink'
        workload = 'gaming'
        [[probe]]
        flow = 'game'
        metrics = ['throughput_bps']",
    );
    assert!(outcome.flow_rows().all(|row| row.is_main));
    assert_eq!(subjects(&outcome, "throughput_bps"), BTreeSet::from(["game", "game.reverse"]));
}

#[test]
fn series_without_a_probe_is_an_error_with_the_nearest_name() {
    let outcome = video("metrics = ['throughput_bps', 'drops']");
    let error = |subject, metric| match outcome.find_series(subject, metric) {
        Ok(_) => panic!("{subject} has {metric}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("vidoe.reverse", "drops"),
        "no probe samples the subject \"vidoe.reverse\"; did you mean \"video.reverse\"? (one of: \"video.reverse\")"
    );
    assert_eq!(
        error("video.reverse", "throughput_bit"),
        "no probe samples the metric \"throughput_bit\" of \"video.reverse\"; did you mean \"throughput_bps\"? (one of: \
         \"throughput_bps\", \"drops\")"
    );
}
