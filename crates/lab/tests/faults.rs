//! Faults put into the world on purpose: the auditor names each.

use fullpipe_lab::{Options, Sabotage, run};
use fullpipe_network::Fault;
use fullpipe_units::LinkId;

const SCENARIO: &str = r#"
    duration = "5s"
    [topology]
    kind = "chain"
    link = [
        { rate = "100Mbit/s", delay = "1ms" },
        { rate = "10Mbit/s", delay = "5ms", queue = "30packets" },
    ]
    [[flow]]
    name = "bulk"
    from = "source"
    to = "sink"
    workload = "bulk"
    size = "1MB"
"#;

/// The names of the rules that a sabotaged run broke.
fn broken(fault: Sabotage) -> Vec<&'static str> {
    let scenario = fullpipe_scenario::load(SCENARIO, "faults.toml", &[]).expect("it is right").scenario;
    let outcome = run(&scenario, &Options { faults: vec![fault], ..Options::default() }).expect("it runs");
    assert!(!outcome.verdict().passed());
    outcome.verdict().failures.iter().map(|failure| failure.rule.name()).collect()
}

#[test]
fn an_honest_world_passes() {
    let scenario = fullpipe_scenario::load(SCENARIO, "faults.toml", &[]).expect("it is right").scenario;
    let outcome = run(&scenario, &Options::default()).expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
}

#[test]
fn a_link_one_per_cent_too_fast() {
    // Links are numbered 0 and 1 (first link and its reverse), 2 and 3.
    assert!(broken(Sabotage::Network(Fault::FastLink(LinkId(2)))).contains(&"link-rate"));
}

#[test]
fn a_drop_that_nobody_counts() {
    let rules = broken(Sabotage::Network(Fault::SilentDrop { link: LinkId(2), every: 100 }));
    assert!(rules.contains(&"flow-conservation"), "{rules:?}");
}

#[test]
fn an_acknowledgement_of_a_byte_that_was_never_sent() {
    // Before anything is lost: beyond a hole the lie would be below what was delivered.
    assert!(broken(Sabotage::PrematureAcknowledgement { from: 20 }).contains(&"acknowledgement"));
}
