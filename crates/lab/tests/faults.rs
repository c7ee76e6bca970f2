//! Deliberate faults in the world: the auditor reports the violated rule of each.

use fullpipe_lab::{InjectedFault, Options, run};
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

/// The rules that a run with this fault violated.
fn broken(fault: InjectedFault) -> Vec<&'static str> {
    let scenario = fullpipe_scenario::load(SCENARIO, "faults.toml", &[]).expect("it is right").scenario;
    let outcome = run(&scenario, &Options { faults: vec![fault], ..Options::default() }).expect("it runs");
    assert!(!outcome.verdict().passed());
    outcome.verdict().failures.iter().map(|failure| failure.rule.name()).collect()
}

#[test]
fn run_without_faults_passes_the_audit() {
    let scenario = fullpipe_scenario::load(SCENARIO, "faults.toml", &[]).expect("it is right").scenario;
    let outcome = run(&scenario, &Options::default()).expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
}

#[test]
fn link_one_percent_too_fast_fails_the_audit() {
    // Links 0 and 1 are the first link and its reverse direction, 2 and 3 the second.
    assert!(broken(InjectedFault::Network(Fault::FastLink(LinkId(2)))).contains(&"link-rate"));
}

#[test]
fn uncounted_drop_fails_the_audit() {
    let rules = broken(InjectedFault::Network(Fault::SilentDrop { link: LinkId(2), every: 100 }));
    assert!(rules.contains(&"flow-conservation"), "{rules:?}");
}

#[test]
fn acknowledgment_of_an_unsent_byte_fails_the_audit() {
    // The fault occurs before any loss: after a gap, the false number would be below the delivered bytes.
    assert!(broken(InjectedFault::PrematureAcknowledgement { from: 20 }).contains(&"acknowledgement"));
}
