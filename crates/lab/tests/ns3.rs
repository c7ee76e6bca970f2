//! Comparison with ns-3 for the same network and transfer: one CUBIC and one Reno flow over a 100 Mbit/s bottleneck with a round-trip
//! time of 20 ms and a buffer of one bandwidth-delay product.

use crate::common::outcome;

struct Reference {
    congestion: String,
    goodput_mbps: f64,
    queue_delay_ms: f64,
    window_mean: f64,
}

fn references() -> Vec<Reference> {
    let text = include_str!("data/ns3-tcp-1.csv");
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields[index].parse().expect("a number");
            Reference {
                congestion: fields[0].to_string(),
                goodput_mbps: number(1),
                queue_delay_ms: number(3),
                window_mean: number(4),
            }
        })
        .collect()
}

#[test]
fn goodput_queue_delay_and_window_agree_with_ns3() {
    for reference in references() {
        let text = format!(
            r#"
            duration = "60s"
            [topology]
            kind = "chain"
            link = [
                {{ rate = "1Gbit/s", delay = "0.5ms", queue = "unlimited" }},
                {{ rate = "100Mbit/s", delay = "9ms", queue = "250kB" }},
                {{ rate = "1Gbit/s", delay = "0.5ms", queue = "unlimited" }},
            ]
            [tcp]
            preset = "ns3"
            mss = "1448B"
            min_rto = "200ms"
            send_buffer = "32MB"
            receive_buffer = "32MB"
            congestion = "{}"
            [[flow]]
            name = "bulk"
            from = "source"
            to = "sink"
            workload = "bulk"
            [[probe]]
            flow = "bulk"
            metrics = ["cwnd_bytes"]
            interval = "100ms"
            "#,
            reference.congestion
        );
        let outcome = outcome(&text);
        let goodput_mbps = outcome.flow_rows().next().and_then(|row| row.goodput_bps).expect("goodput") / 1e6;
        let bottleneck = outcome.link_rows().find(|row| row.link == "link2").expect("the bottleneck");
        let queue_delay_ms = bottleneck.mean_queue_delay_s().expect("frames") * 1e3;
        let windows: Vec<f64> =
            outcome.series_rows().filter(|row| row.time.as_secs_f64() > 10.0).map(|row| row.value / 1448.0).collect();
        let window_mean = windows.iter().sum::<f64>() / windows.len() as f64;
        println!(
            "{}: goodput {goodput_mbps:.3} ({:.3}), queue delay {queue_delay_ms:.2} ({:.2}) ms, window {window_mean:.1} ({:.1}), \
             {:.0} to {:.0}, drops {}",
            reference.congestion,
            reference.goodput_mbps,
            reference.queue_delay_ms,
            reference.window_mean,
            windows.iter().copied().fold(f64::INFINITY, f64::min),
            windows.iter().copied().fold(0.0, f64::max),
            bottleneck.counters.queue_drops,
        );
        let near = |name: &str, measured: f64, expected: f64, tolerance: f64| {
            let off = measured / expected - 1.0;
            assert!(off.abs() <= tolerance, "{} {name}: {measured} against {expected}", reference.congestion);
        };
        near("goodput", goodput_mbps, reference.goodput_mbps, 0.005);
        near("queue delay", queue_delay_ms, reference.queue_delay_ms, 0.10);
        near("window", window_mean, reference.window_mean, 0.10);
    }
}
