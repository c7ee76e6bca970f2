//! A program outside Fullpipe's workspace: builds a world in code, runs it and reads columns.

use fullpipe::Simulation;

const WORLD: &str = r#"
    duration = "5s"

    [topology]
    kind = "dumbbell"
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "8ms", queue = "25kB" }

    [[flow]]
    name = "download"
    from = "left1"
    to = "right1"

    [[flow]]
    name = "upload"
    from = "right1"
    to = "left1"
    size = "500kB"
"#;

fn main() -> Result<(), fullpipe::Error> {
    println!("build: {}", fullpipe::BUILD);
    assert!(fullpipe::embedded::scenario("quick-start").is_some(), "the scenarios come with the package");
    assert!(!fullpipe::embedded::study_files("tcp-vs-udp").is_empty(), "the studies come with the package");

    let outcome = Simulation::new(WORLD).set("topology.bottleneck.rate", "20Mbit/s").run()?;
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    let goodput: Vec<(String, f64)> =
        outcome.flow_rows().iter().map(|row| (row.flow.clone(), row.goodput_bps.unwrap_or(0.0))).collect();
    println!("goodput_bps: {goodput:?}");
    // 1448 of 1538 bytes on the link are data, and slow start takes a part of the 5 s.
    let download = goodput.iter().find(|(name, _)| name == "download").expect("the world has it").1;
    assert!((15e6..20e6 * 1448.0 / 1538.0).contains(&download), "{download}");
    let upload = outcome.flow("upload").expect("the world has it");
    assert!(upload.completion.expect("it completes").as_secs_f64() > 500e3 * 8.0 / 20e6);
    Ok(())
}
