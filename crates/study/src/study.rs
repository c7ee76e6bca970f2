//! A study as plain values: what `load.rs` reads from a file, what `settings.rs` changes on the user's word, what
//! `resolved.rs` writes out again, and what `plan.rs` turns into runs.

use crate::expression::Expression;
use crate::port::ScenarioSource;
use crate::verdict::Prediction;
use fullpipe_archive::{
    ClaimRecord, Clock, ExpectRecord, LateRuns, LeftOut, MetricRecord, ParameterRecord, Plot, ScenarioSetting,
};
use fullpipe_scenario::schema::{Content, Node, Place};
use std::ops::Deref;

/// A whole study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name: what folders of records are called.
    pub name: String,
    /// One line for reports.
    pub title: String,
    /// The publication that it repeats, if it repeats one.
    pub source: String,
    /// What it is about, for reports.
    pub description: String,
    /// Seed from which the seeds of runs follow.
    pub seeds: Seeds,
    /// Further runs if there is one seed exactly: those of other seeds of the same scenario in the folder of records.
    pub more_seeds: Vec<u64>,
    /// Study seeds under which each run is repeated.
    pub study_seeds: u64,
    /// How often the number of runs was raised after the verdict `undecided`.
    pub raised: u64,
    /// The claims that several study seeds repeat, with the points that they name; none: the whole study.
    pub robust: Vec<String>,
    /// Whether it is shortened.
    pub quick: bool,
    /// Names of the experiments that are run, in the study's order.
    pub selected: Vec<String>,
    /// Scenarios by name.
    pub scenarios: Vec<(String, ScenarioSource)>,
    /// Settings that differ from run to run, by name: a row for each run, counted over all study seeds.
    pub replications: Vec<(String, Vec<Vec<Setting>>)>,
    /// Settings with names.
    pub parameters: Vec<(String, ParameterRecord)>,
    /// Experiments.
    pub experiments: Vec<Experiment>,
    /// Metrics.
    pub metrics: Vec<Metric>,
    /// Plots.
    pub plots: Vec<Plot>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Bounds on metrics.
    pub expectations: Vec<Expectation>,
    /// Published values.
    pub published: Vec<Published>,
    /// What the user set on top of the scenarios.
    pub scenario_settings: Vec<ScenarioSetting>,
    /// Values of axes that the user left out.
    pub left_out: Vec<LeftOut>,
}

/// The axis that says which clock runs.
pub const CLOCK: &str = "clock";

/// The values of the axis for the clock; none: virtual time, and no axis for it.
pub(crate) fn clocks(clock: Clock) -> &'static [Clock] {
    match clock {
        Clock::Virtual => &[],
        Clock::Real => &[Clock::Real],
        Clock::Both => &[Clock::Virtual, Clock::Real],
    }
}

/// Where the seeds of runs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// Run r has [`fullpipe_units::random::run_seed`] of this and r, at each point.
    Derived(u64),
    /// The run has this seed; further runs have those of [`Study::more_seeds`].
    Exactly(u64),
}

impl Seeds {
    /// The seed of run `run`, counted from 0.
    pub fn of_run(self, run: u64) -> u64 {
        match self {
            Seeds::Derived(seed) => fullpipe_units::random::run_seed(seed, run),
            Seeds::Exactly(seed) => seed,
        }
    }

    /// The seed of run `run` under the study seed of number `study_seed`, counted from 0, which is the study's own.
    pub fn of_run_under(self, study_seed: u64, run: u64) -> u64 {
        match self {
            Seeds::Derived(seed) if study_seed > 0 => {
                let name = format!("study seed {study_seed}");
                // Within the integers that TOML and JSON carry without loss.
                Seeds::Derived(fullpipe_units::random::identity(seed, "study", &name) >> 11).of_run(run)
            }
            _ => self.of_run(run),
        }
    }

    /// The number that was given.
    pub fn number(self) -> u64 {
        match self {
            Seeds::Derived(seed) | Seeds::Exactly(seed) => seed,
        }
    }
}

/// A path of a scenario and the value it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Dotted path.
    pub path: String,
    /// The value.
    pub value: Node,
}

/// A sweep over one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// Its former names, which are accepted with a hint.
    pub former: Vec<String>,
    /// What it is about, for reports.
    pub text: String,
    /// Name of its scenario.
    pub scenario: String,
    /// What is fixed.
    pub set: Vec<Setting>,
    /// Name of the replications whose rows the runs of every point take.
    pub replications: Option<String>,
    /// What else is fixed in a shortened study, before what axes say.
    pub quick_set: Vec<Setting>,
    /// What varies.
    pub axes: Vec<Axis>,
    /// The points, each the index of a level per axis; `None`: all combinations, the last axis fastest.
    pub points: Option<Vec<Vec<usize>>>,
    /// The points of a shortened study, where others.
    pub quick_points: Option<Vec<Vec<usize>>>,
    /// Runs per point.
    pub runs: u64,
    /// Runs per point of a shortened study, where another number.
    pub quick_runs: Option<u64>,
    /// What runs count for that fell behind real time.
    pub late_runs: LateRuns,
}

impl Experiment {
    /// All points in the order of the sweep, each the index of a level per axis.
    pub fn combinations(&self) -> Vec<Vec<usize>> {
        if let Some(points) = &self.points {
            return points.clone();
        }
        let mut all = vec![Vec::new()];
        for axis in &self.axes {
            all = all
                .iter()
                .flat_map(|begun| {
                    (0..axis.levels.len()).map(move |level| {
                        let mut longer = begun.clone();
                        longer.push(level);
                        longer
                    })
                })
                .collect();
        }
        all
    }

    /// Makes the clock an axis, the slowest, unless it is one already; no clocks: leaves all as it is.
    pub(crate) fn vary_clock(&mut self, clocks: &[Clock]) {
        if clocks.is_empty() || self.axis(CLOCK).is_some() {
            return;
        }
        let level = |clock: &Clock| {
            let label = clock.name().to_owned();
            let value = Some(Node { content: Content::Text(label.clone()), place: Place::default() });
            Level { label, value, set: Vec::new(), replications: None }
        };
        let axis = Axis {
            name: CLOCK.to_owned(),
            text: "Which clock ran".to_owned(),
            paths: Vec::new(),
            levels: clocks.iter().map(level).collect(),
            quick: None,
        };
        self.axes.insert(0, axis);
        for points in [&mut self.points, &mut self.quick_points].into_iter().flatten() {
            let by = |clock: usize| points.iter().map(move |point| [&[clock], point.as_slice()].concat());
            *points = (0..clocks.len()).flat_map(by).collect();
        }
    }

    /// Whether the wall clock runs at a point.
    pub fn is_real(&self, levels: &[usize]) -> bool {
        self.axis(CLOCK).is_some_and(|(index, axis)| {
            levels.get(index).and_then(|level| axis.levels.get(*level)).is_some_and(|level| level.label == "real")
        })
    }

    /// Names of the replications that its points take rows of: its own, then those of the values of its axes.
    pub fn replications(&self) -> impl Iterator<Item = &str> {
        let levels = self.axes.iter().flat_map(|axis| &axis.levels);
        self.replications.as_deref().into_iter().chain(levels.filter_map(|level| level.replications.as_deref()))
    }

    /// The axis of this name and its position.
    pub fn axis(&self, name: &str) -> Option<(usize, &Axis)> {
        self.axes.iter().enumerate().find(|(_, axis)| axis.name == name)
    }
}

/// Something that varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name: a column of `results.csv`.
    pub name: String,
    /// What it is, with its unit, for reports.
    pub text: String,
    /// The scenario paths that a level's value sets.
    pub paths: Vec<String>,
    /// Its levels in order.
    pub levels: Vec<Level>,
    /// Labels of the levels of a shortened study; `None`: all.
    pub quick: Option<Vec<String>>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// How it is written in tables.
    pub label: String,
    /// The value that goes to the axis' paths.
    pub value: Option<Node>,
    /// What else it sets.
    pub set: Vec<Setting>,
    /// Name of the replications whose rows the runs take.
    pub replications: Option<String>,
}

impl Level {
    /// Whether a value as it was written means this level.
    pub(crate) fn is(&self, node: &Node) -> bool {
        self.label == label_of(node) || self.value.as_ref() == Some(node)
    }

    /// The level as a number, if its label or its value is one.
    pub fn number(&self) -> Option<f64> {
        let of_label = || self.label.parse::<f64>().ok().filter(|number| number.is_finite());
        self.value.as_ref().and_then(number_of).or_else(of_label)
    }
}

/// A value as a number.
pub(crate) fn number_of(node: &Node) -> Option<f64> {
    match node.content {
        Content::Integer(integer) => Some(integer as f64),
        Content::Float(float) => float.is_finite().then_some(float),
        _ => None,
    }
}

/// A number computed from each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// As the study's file states it.
    pub record: MetricRecord,
    /// How it is computed.
    pub expression: Expression,
}

impl Deref for Metric {
    type Target = MetricRecord;

    fn deref(&self) -> &MetricRecord {
        &self.record
    }
}

impl Metric {
    /// Whether an experiment has it.
    pub fn applies_to(&self, experiment: &str) -> bool {
        self.experiments.is_empty() || self.experiments.iter().any(|name| name == experiment)
    }

    /// How a mean of other runs is predicted: by draws if the metric is a ratio or a share (no unit, or %), a median or a
    /// percentile.
    pub fn prediction(&self) -> Prediction {
        let by_draws = self.unit.is_empty() || self.unit == "%" || self.expression.takes_quantiles();
        if by_draws { Prediction::Draws } else { Prediction::Student }
    }
}

/// Something that is said to be so.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// As the study's file states it.
    pub record: ClaimRecord,
    /// When it holds.
    pub expression: Expression,
}

impl Deref for Claim {
    type Target = ClaimRecord;

    fn deref(&self) -> &ClaimRecord {
        &self.record
    }
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name of the experiment.
    pub experiment: String,
    /// Its point, `axis=value;axis=value` in the experiment's order.
    pub point: String,
    /// Name of the metric.
    pub metric: String,
    /// The value.
    pub value: f64,
    /// How far off the interval of the measured mean may be.
    pub tolerance: Tolerance,
    /// Number of runs behind the value; `None`: it is exact.
    pub runs: Option<u64>,
    /// Where it was published.
    pub source: String,
    /// What a reader should know.
    pub note: String,
    /// The claim that explains a difference; empty: none.
    pub explained_by: String,
}

/// How far off a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A part of the published value, in per cent.
    Percent(f64),
    /// As much in the metric's unit.
    Absolute(f64),
}

impl Tolerance {
    /// Reads `5%` or `0.5`; `None` if it is neither or negative.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match text.trim().strip_suffix('%') {
            Some(percent) => number(percent).map(Tolerance::Percent),
            None => number(text).map(Tolerance::Absolute),
        }
    }

    /// In the unit of a published value.
    pub fn around(self, published: f64) -> f64 {
        match self {
            Tolerance::Percent(percent) => published.abs() * percent / 100.0,
            Tolerance::Absolute(absolute) => absolute,
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tolerance::Percent(percent) => write!(formatter, "{percent}%"),
            Tolerance::Absolute(absolute) => write!(formatter, "{absolute}"),
        }
    }
}

impl Study {
    /// The experiment of this name.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// Whether runs of this experiment count even if they fell behind real time.
    pub fn counts_late(&self, experiment: &str) -> bool {
        self.experiment(experiment).is_some_and(|experiment| experiment.late_runs == LateRuns::Count)
    }

    /// The rows of the replications of this name.
    pub fn replications(&self, name: &str) -> Option<&[Vec<Setting>]> {
        self.replications.iter().find(|(known, _)| known == name).map(|(_, rows)| rows.as_slice())
    }

    /// The claim of this name.
    pub fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.name == name)
    }

    /// Whether a point of the chosen experiments runs by the wall clock.
    pub fn needs_real_time(&self) -> bool {
        let mut chosen = self.experiments.iter().filter(|experiment| self.selected.contains(&experiment.name));
        chosen.any(|experiment| experiment.combinations().iter().any(|levels| experiment.is_real(levels)))
    }

    /// Names of all axes in the order of their first appearance.
    pub fn axis_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for axis in self.experiments.iter().flat_map(|experiment| &experiment.axes) {
            if !names.contains(&axis.name.as_str()) {
                names.push(axis.name.as_str());
            }
        }
        names
    }
}

/// How a value is written in tables and points: texts bare, numbers short.
pub(crate) fn label_of(node: &Node) -> String {
    match &node.content {
        Content::Text(text) => text.clone(),
        Content::Float(float) => float.to_string(),
        _ => node.to_toml(),
    }
}

/// Whether a text can stand in `axis=value;axis=value`.
pub(crate) fn is_label(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains([';', '=', '\n', '\r', '"'])
}
/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The metric.
    pub metric: String,
    /// The unit of the bounds.
    pub unit: String,
    /// Smallest accepted value.
    pub min: Option<f64>,
    /// Largest accepted value.
    pub max: Option<f64>,
    /// What the metric is of.
    pub of: Subjects,
    /// The table in the study's file; `None` if it is in a scenario's file.
    pub record: Option<ExpectRecord>,
}

/// What an expectation selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Directions of flows of a single run: a pattern of names, which may end with `.reverse`.
    Flows(String),
    /// Points of a study.
    Points {
        /// Experiments; if empty, all.
        experiments: Vec<String>,
        /// Axes and the accepted labels of their values.
        filters: Vec<(String, Vec<String>)>,
    },
}
