//! Shared functions of the tests: they run a scenario that is given as text.

#![allow(dead_code, reason = "each test uses its part")]

use fullpipe_lab::{Options, Outcome, run};
use fullpipe_scenario::Override;

/// Runs a scenario and asserts that the audit passes.
pub(crate) fn outcome(text: &str) -> Outcome {
    outcome_with(text, &[])
}

/// Runs a scenario with overrides and asserts that the audit passes.
pub(crate) fn outcome_with(text: &str, overrides: &[(&str, &str)]) -> Outcome {
    let overrides: Vec<Override> =
        overrides.iter().map(|(path, value)| Override { path: path.to_string(), value: value.to_string() }).collect();
    let loaded = fullpipe_scenario::load(text, "test.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let outcome = run(&loaded.scenario, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

/// The table `topology`: hosts `source` and `sink`, an access link of 1 Gbit/s and 1 ms, and `link2`, the bottleneck.
pub(crate) fn behind_fast_access(bottleneck: &str) -> String {
    format!(
        "[topology]
        kind = 'chain'
        [[topology.link]]
        rate = '1Gbit/s'
        delay = '1ms'
        queue = 'unlimited'
        [[topology.link]]
        {bottleneck}"
    )
}

/// Mean of a series over samples at or after `from_s`.
pub(crate) fn mean(outcome: &Outcome, metric: &str, from_s: f64) -> f64 {
    let values: Vec<f64> = outcome
        .series_rows()
        .filter(|row| row.metric == metric && row.time.as_secs_f64() >= from_s)
        .map(|row| row.value)
        .collect();
    assert!(!values.is_empty(), "there are samples of {metric}");
    values.iter().sum::<f64>() / values.len() as f64
}

/// The rows of `flows.csv` as text.
pub(crate) fn flows_csv(outcome: &Outcome) -> String {
    csv(outcome, "flows.csv")
}

/// A file of the run as text; empty if the run has no such file.
pub(crate) fn csv(outcome: &Outcome, file: &str) -> String {
    let bytes = outcome.tables().into_iter().find(|(name, _)| *name == file).map(|(_, bytes)| bytes);
    String::from_utf8(bytes.unwrap_or_default()).expect("it is text")
}
