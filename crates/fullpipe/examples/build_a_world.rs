//! Builds a world from text, runs it with three buffers, and reads flows, links and series.
//!
//!     cargo run -p fullpipe --example build_a_world

use fullpipe::{Error, Outcome, Simulation};

/// A download and a call share one bottleneck: a round trip of 2 x (1 + 18 + 1) = 40 ms, a bandwidth-delay product of
/// 50 kB.
const WORLD: &str = r#"
    duration = "20s"

    [topology]
    kind = "dumbbell"
    pairs = 2
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "18ms", queue = "50kB" }

    [[flow]]
    name = "download"
    from = "left1"
    to = "right1"
    congestion = "cubic"

    [[flow]]
    name = "call"
    from = "left2"
    to = "right2"
    protocol = "udp"
    workload = "constant-rate"
    payload = "160B"
    interval = "20ms"

    [[probe]]
    flow = "download"
    metrics = ["srtt_s"]
    interval = "100ms"
"#;

/// Mean of a series over the second half of the run.
fn mean(outcome: &Outcome, subject: &str, metric: &str) -> f64 {
    let late = outcome.series(subject, metric).filter(|(time, _)| time.as_secs_f64() >= 10.0);
    let values: Vec<f64> = late.map(|(_, value)| value).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn main() -> Result<(), Error> {
    println!("buffer   download   round trip   call's delay   call's loss   dropped");
    for buffer in ["12kB", "50kB", "200kB"] {
        let outcome = Simulation::new(WORLD).set("topology.bottleneck.queue", buffer).run()?;
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());

        let download = outcome.flow("download").expect("the world has it");
        let call = outcome.flow("call").expect("the world has it").counters;
        let bottleneck = outcome.link("bottleneck").expect("the world has it").counters;
        println!(
            "{buffer:>6}  {:>5.2} Mbit/s  {:>8.1} ms  {:>10.1} ms  {:>9.2} %  {:>8}",
            download.goodput_bps.unwrap_or(0.0) / 1e6,
            mean(&outcome, "download", "srtt_s") * 1e3,
            call.delay_sum.as_secs_f64() / call.rx_packets as f64 * 1e3,
            call.lost_packets as f64 / call.tx_packets as f64 * 100.0,
            bottleneck.queue_drops,
        );
    }
    Ok(())
}
