//! Tests that the estimated events of the study's quick runs are within a factor of two of the counted events, for each
//! experiment, and that upper bounds are not exceeded.

use crate::targets::folder;
use fullpipe::study::plan::make_plan;
use fullpipe::study::{UserSettings, VirtualTimeRunner, load_file};
use fullpipe::{lab, scenario};
use std::collections::BTreeMap;

#[test]
fn events_of_quick_runs_are_within_a_factor_of_two() {
    let laboratory = VirtualTimeRunner::new("test");
    let mut study = load_file(&folder().join("study.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    study
        .apply(&UserSettings { quick: true, ..UserSettings::default() }, &laboratory)
        .expect("the study has these experiments");
    let plan = make_plan(&study, &laboratory).expect("the study can be planned");
    // The first two runs of each experiment.
    let mut by_experiment: BTreeMap<&str, (u32, bool, f64, f64)> = BTreeMap::new();
    for run in &plan.runs {
        let (count, is_bound, estimated, counted) =
            by_experiment.entry(&plan.points[run.points[0]].experiment).or_default();
        if *count < 2 {
            let loaded = scenario::load(&run.scenario.text, "the resolved scenario", &[])
                .expect("the resolved scenario is valid");
            let mut described = loaded.scenario;
            described.seed = run.seed;
            let outcome = lab::run(&described, &Default::default()).expect("the run succeeds");
            *count += 1;
            *is_bound |= run.scenario.cost.is_upper_bound();
            *estimated += run.scenario.cost.events;
            *counted += outcome.totals().events as f64;
        }
    }
    assert!(by_experiment.len() > 10, "{by_experiment:?}");
    let wrong: Vec<_> = by_experiment
        .iter()
        .filter(|(_, (_, is_bound, estimated, counted))| {
            let ratio = estimated / counted;
            if *is_bound { ratio < 1.0 } else { !(0.5..=2.0).contains(&ratio) }
        })
        .collect();
    assert!(wrong.is_empty(), "runs, whether it is an upper bound, estimated and counted events: {wrong:?}");
}
