//! Tests that a queue limit in BDP is in the record of a run, in bytes.

use fullpipe_study::{RunOptions, Runner, ScenarioSource, VirtualTimeRunner};

fn source(queue: &str) -> ScenarioSource {
    let text = format!(
        "duration = '100ms'
        [topology]
        kind = 'dumbbell'
        access = {{ rate = '100Mbit/s', delay = '1ms' }}
        bottleneck = {{ rate = '10Mbit/s', delay = '18ms', queue = '{queue}' }}
        [[flow]]
        from = 'left1'
        to = 'right1'"
    );
    ScenarioSource { name: "scenario.toml".into(), origin: "scenario.toml".into(), text, folder: None }
}

#[test]
fn the_record_of_a_run_has_each_limit_in_bdp_with_its_bytes() {
    let laboratory = VirtualTimeRunner::new("test");
    let limits = |queue: &str| {
        let resolved = laboratory.resolve(&source(queue), &[]).expect("a scenario");
        laboratory.run(&resolved, 1, &RunOptions::default()).expect("a run").run.bdp_limits
    };
    // 10 Mbit/s x 2 x (1 + 18 + 1) ms are 50 000 bytes; the reverse direction has the same rate and round trip.
    let found = limits("2BDP").expect("limits in BDP");
    let found: Vec<_> = found.iter().map(|limit| (limit.link.as_str(), limit.rate_bps, limit.bytes)).collect();
    assert_eq!(found, [("bottleneck", 10_000_000, 100_000), ("bottleneck.reverse", 10_000_000, 100_000)]);
    assert_eq!(limits("100packets"), None);
}
