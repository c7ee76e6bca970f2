//! Writes a complete study, including scenarios and published values, as the `study.toml` of a folder of records. The
//! result is itself a study file that repeats the study.

use crate::level::level_of;
use crate::published::point_label;
use crate::study::{Axis, Experiment, Level, PublishedResult, SeedSource, Setting, Study};
use fullpipe_archive::{
    AxisOfStudy, AxisRecord, AxisValue, Clock, ExperimentRecord, LateRuns, MultilineText, Points, PublishedRecord,
    ScenarioRecord, ScenarioSettings, StudyRecord, SubTable,
};
use fullpipe_scenario::schema::{Entry, Node, NodeContent, SourceLocation};

/// Returns the resolved study as the text of a `study.toml`. `build` is the identity of the build that executes the
/// runs.
pub fn resolved_text(study: &Study, build: &str) -> String {
    let scenario = |(name, source): &(String, crate::ScenarioSource)| {
        (name.clone(), ScenarioRecord { origin: source.origin.clone(), text: MultilineText(source.text.clone()) })
    };
    let record = StudyRecord {
        name: Some(study.name.clone()),
        title: study.title.clone(),
        source: study.source.clone(),
        description: study.description.clone(),
        seed: study.seeds.base(),
        exact_seed: matches!(study.seeds, SeedSource::Fixed(_)).then_some(true),
        more_seeds: Some(study.more_seeds.clone()).filter(|seeds| !seeds.is_empty()),
        study_seeds: Some(study.study_seeds).filter(|seeds| *seeds > 1),
        clock: Clock::Virtual,
        runs: None,
        quick_runs: None,
        raised: study.raised,
        experiments: Some(study.selected.clone()),
        robust: Some(vec![("claims".to_owned(), study.robust.clone())]).filter(|_| !study.robust.is_empty()),
        quick: study.quick,
        build: build.to_owned(),
        scenarios: study.scenarios.iter().map(scenario).collect(),
        replications: Some(replications(study)).filter(|replications| !replications.is_empty()),
        parameters: study.parameters.clone(),
        scenario_setting: study.scenario_settings.clone(),
        left_out: study.left_out.clone(),
        experiment: study.experiments.iter().map(experiment_record).collect(),
        axis: study.axis_names().into_iter().map(|name| axis_of_study(study, name)).collect(),
        metric: study.metrics.iter().map(|metric| metric.record.clone()).collect(),
        plot: study.plots.clone(),
        claim: study.claims.iter().map(|claim| claim.record.clone()).collect(),
        expect: study.expectations.iter().filter_map(|expectation| expectation.record.clone()).collect(),
        matrix: study.matrix.clone().map(SubTable),
        // Written even if it is empty, so that a `published.csv` in the folder of records is not read.
        published: Some(present(study).cloned().map(published_record).collect()),
    };
    record.to_toml()
}

/// Returns the replications whose rows the selected experiments use.
fn replications(study: &Study) -> Vec<(String, Points)> {
    let used = |name: &str| {
        let mut selected = study.experiments.iter().filter(|experiment| study.selected.contains(&experiment.name));
        selected.any(|experiment| experiment.replications().any(|used| used == name))
    };
    let row = |row: &Vec<Setting>| settings(row).0;
    let rows = |rows: &Vec<Vec<Setting>>| Points(rows.iter().map(row).collect());
    study.replications.iter().filter(|(name, _)| used(name)).map(|(name, all)| (name.clone(), rows(all))).collect()
}

/// Returns the published values whose points remain after the user's settings.
fn present(study: &Study) -> impl Iterator<Item = &PublishedResult> {
    study.published.iter().filter(|row| {
        study.experiment(&row.experiment).is_some_and(|experiment| {
            experiment.combinations().iter().any(|levels| point_label(experiment, levels) == row.point)
        })
    })
}

fn published_record(row: PublishedResult) -> PublishedRecord {
    PublishedRecord {
        experiment: Some(row.experiment),
        point: row.point,
        metric: row.metric,
        value: row.value,
        tolerance: row.tolerance.to_string(),
        published_runs: row.runs.unwrap_or(0),
        source: row.source,
        note: row.note,
        explained_by: row.explained_by,
    }
}

/// Returns an axis for the report: its first text, and its values in all experiments.
fn axis_of_study(study: &Study, name: &str) -> AxisOfStudy {
    let axes = || study.experiments.iter().flat_map(|experiment| &experiment.axes).filter(|axis| axis.name == name);
    let mut values: Vec<String> = Vec::new();
    for level in axes().flat_map(|axis| &axis.levels) {
        if !values.contains(&level.label) {
            values.push(level.label.clone());
        }
    }
    let text = axes().map(|axis| axis.text.as_str()).find(|text| !text.is_empty()).unwrap_or("");
    AxisOfStudy { name: name.to_owned(), text: text.to_owned(), values }
}

fn experiment_record(experiment: &Experiment) -> ExperimentRecord {
    let points = |points: &Vec<Vec<usize>>| {
        let value = |(axis, level): (&Axis, &usize)| (axis.name.clone(), plain(&axis.levels[*level]));
        Points(points.iter().map(|point| experiment.axes.iter().zip(point).map(value).collect()).collect())
    };
    ExperimentRecord {
        name: experiment.name.clone(),
        former: Some(experiment.former.clone()).filter(|former| !former.is_empty()),
        scenario: experiment.scenario.clone(),
        text: experiment.text.clone(),
        runs: Some(experiment.runs),
        quick_runs: experiment.quick_runs,
        late_runs: Some(experiment.late_runs).filter(|late_runs| *late_runs != LateRuns::LeaveOut),
        // Each metric names its experiments.
        metrics: None,
        set: settings(&experiment.set),
        replications: experiment.replications.clone(),
        quick_set: Some(settings(&experiment.quick_set)).filter(|_| !experiment.quick_set.is_empty()),
        points: experiment.points.as_ref().map(points),
        quick_points: experiment.quick_points.as_ref().map(points),
        axis: experiment.axes.iter().map(axis_record).collect(),
    }
}

fn axis_record(axis: &Axis) -> AxisRecord {
    let kept = |quick: &Vec<String>| {
        let levels = axis.levels.iter().filter(|level| quick.contains(&level.label));
        levels.map(|level| AxisValue(plain(level))).collect()
    };
    AxisRecord {
        name: axis.name.clone(),
        text: axis.text.clone(),
        values_of: None,
        paths: axis.paths.clone(),
        values: axis.levels.iter().map(axis_value).collect(),
        quick: axis.quick.as_ref().map(kept),
    }
}

/// Returns a level as a plain value, if its label is sufficient to describe it.
fn plain(level: &Level) -> Node {
    match &level.value {
        Some(value) if is_plain(level, value) => value.clone(),
        _ => node(NodeContent::Text(level.label.clone())),
    }
}

fn is_plain(level: &Level, value: &Node) -> bool {
    level.set.is_empty()
        && level.replications.is_none()
        && level_of(value).is_ok_and(|plain| plain.label == level.label)
}

fn axis_value(level: &Level) -> AxisValue {
    if level.value.as_ref().is_some_and(|value| is_plain(level, value)) {
        return AxisValue(plain(level));
    }
    let set = settings(&level.set).0.into_iter().map(|(path, value)| entry(&path, value));
    let set = Some(node(NodeContent::Table(set.collect()))).filter(|_| !level.set.is_empty());
    let label = Some(node(NodeContent::Text(level.label.clone())));
    let replications = level.replications.clone().map(|name| node(NodeContent::Text(name)));
    let keys = [("label", label), ("value", level.value.clone()), ("set", set), ("replications", replications)];
    let entries = keys.into_iter().filter_map(|(key, value)| Some(entry(key, value?)));
    AxisValue(node(NodeContent::Table(entries.collect())))
}

fn settings(settings: &[Setting]) -> ScenarioSettings {
    ScenarioSettings(settings.iter().map(|setting| (setting.path.clone(), setting.value.clone())).collect())
}

fn node(content: NodeContent) -> Node {
    Node { content, place: SourceLocation::default() }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry { key: key.to_owned(), key_place: SourceLocation::default(), node }
}
