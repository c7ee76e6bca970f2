//! A program outside Fullpipe's workspace: builds a scenario in code, runs it and reads columns of its records.

use fullpipe::Simulation;
use fullpipe::builder::{Flow, Link, QueueLimit, ScenarioBuilder, Topology};
use fullpipe::units::{Duration, Rate};

fn main() -> Result<(), fullpipe::Error> {
    println!("build: {}", fullpipe::BUILD);
    assert!(fullpipe::embedded::scenario_text("quick-start").is_some(), "the package contains the scenarios");
    assert!(!fullpipe::embedded::study_files("tcp-vs-udp").is_empty(), "the package contains the studies");

    let access = Link::new(Rate::from_megabits_per_second(100), Duration::from_millis(1));
    let bottleneck =
        Link::new(Rate::from_megabits_per_second(10), Duration::from_millis(8)).queue(QueueLimit::Bytes(25_000));
    let scenario = ScenarioBuilder::new()
        .duration(Duration::from_secs(5))
        .topology(Topology::dumbbell(access, bottleneck))
        .flow(Flow::new("left1", "right1").name("download"))
        .flow(Flow::new("right1", "left1").name("upload").set("size", "500kB"));
    let outcome = Simulation::new(scenario).set("topology.bottleneck.rate", "20Mbit/s").run()?;
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());

    let flows = outcome.flows();
    let (names, goodput_bps) = (flows.text_column("flow"), flows.column("goodput_bps"));
    println!("flow: {names:?}\ngoodput_bps: {goodput_bps:?}");
    // 1448 of 1502 bytes on the link (1500 of IP, 2 of framing) are data. Slow start takes a part of the 5 s.
    let download = names.iter().position(|name| name == "download").expect("the scenario has this flow");
    assert!((15e6..20e6 * 1448.0 / 1502.0).contains(&goodput_bps[download]), "{}", goodput_bps[download]);
    // 500 kB take at least 0.2 s at 20 Mbit/s.
    let upload = names.iter().position(|name| name == "upload").expect("the scenario has this flow");
    assert!(flows.column("completion_s")[upload] > 0.2);
    Ok(())
}
