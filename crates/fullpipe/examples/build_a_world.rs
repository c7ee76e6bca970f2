//! Builds a scenario in code, runs it with three buffer sizes, and reads flows, links and series.
//!
//!     cargo run -p fullpipe --example build_a_world

use fullpipe::builder::{Flow, Link, Probe, QueueLimit, ScenarioBuilder, Topology};
use fullpipe::units::{Duration, Rate};
use fullpipe::{Error, Outcome, Simulation};

/// A download and a call share one bottleneck. The round-trip time is 2 x (1 + 18 + 1) = 40 ms, the bandwidth-delay
/// product 50 kB.
fn world(buffer_bytes: u64) -> ScenarioBuilder {
    let access = Link::new(Rate::from_megabits_per_second(100), Duration::from_millis(1));
    let bottleneck = Link::new(Rate::from_megabits_per_second(10), Duration::from_millis(18));
    let call = Flow::new("left2", "right2").name("call").protocol("udp").workload("constant-rate");
    ScenarioBuilder::new()
        .duration(Duration::from_secs(20))
        .topology(Topology::dumbbell(access, bottleneck.queue(QueueLimit::Bytes(buffer_bytes))).pairs(2))
        .flow(Flow::new("left1", "right1").name("download").congestion("cubic"))
        .flow(call.set("payload", 160).set("interval", Duration::from_millis(20)))
        .probe(Probe::flow("download", ["srtt_s"]).interval(Duration::from_millis(100)))
}

/// Mean of a series over the second half of the run.
fn mean(outcome: &Outcome, subject: &str, metric: &str) -> f64 {
    let late = outcome.series(subject, metric).filter(|(time, _)| time.as_secs_f64() >= 10.0);
    let values: Vec<f64> = late.map(|(_, value)| value).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn main() -> Result<(), Error> {
    println!("buffer   download   round trip   call's delay   call's loss   dropped");
    for buffer_bytes in [12_000, 50_000, 200_000] {
        let outcome = Simulation::new(world(buffer_bytes)).run()?;
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());

        let download = outcome.flow("download").expect("the scenario has this flow");
        let call = outcome.flow("call").expect("the scenario has this flow").counters;
        let bottleneck = outcome.link("bottleneck").expect("the scenario has this link").counters;
        println!(
            "{:>4} kB  {:>5.2} Mbit/s  {:>8.1} ms  {:>10.1} ms  {:>9.2} %  {:>8}",
            buffer_bytes / 1000,
            download.goodput_bps.unwrap_or(0.0) / 1e6,
            mean(&outcome, "download", "srtt_s") * 1e3,
            call.delay_sum.as_secs_f64() / call.rx_packets as f64 * 1e3,
            call.lost_packets as f64 / call.tx_packets as f64 * 100.0,
            bottleneck.queue_drops,
        );
    }
    Ok(())
}
