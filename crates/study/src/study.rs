//! A study as plain values. `load.rs` reads it from a file, `settings.rs` applies the user's options, `resolved.rs`
//! writes it, and `plan.rs` derives the runs from it.

use crate::expression::Expression;
use crate::port::ScenarioSource;
use crate::verdict::Prediction;
use fullpipe_archive::{
    ClaimRecord, Clock, ExpectRecord, LateRuns, LeftOut, MetricRecord, ParameterRecord, Plot, ScenarioSetting,
};
use fullpipe_scenario::schema::{Node, NodeContent, SourceLocation};
use std::ops::Deref;

pub use fullpipe_archive::MatrixRecord as Matrix;

/// A study with all its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The name of the study, which is also the name of its folder of records.
    pub name: String,
    /// The title: one line for reports.
    pub title: String,
    /// The publication that the study repeats; empty if there is none.
    pub source: String,
    /// The description for reports.
    pub description: String,
    /// The source of the seeds of runs.
    pub seeds: SeedSource,
    /// Seeds of further runs, if [`Study::seeds`] is [`SeedSource::Fixed`]. The folder of records already contains runs
    /// of the same scenario with these seeds.
    pub more_seeds: Vec<u64>,
    /// The number of study seeds under which each run is repeated.
    pub study_seeds: u64,
    /// The number of times that the number of runs was increased after the verdict `undecided`.
    pub raised: u64,
    /// The names of the claims whose points are repeated under several study seeds. If the list is empty, the whole
    /// study is repeated.
    pub robust: Vec<String>,
    /// Whether the study is shortened.
    pub quick: bool,
    /// The names of the experiments to run, in the study's order.
    pub selected: Vec<String>,
    /// The scenarios by name.
    pub scenarios: Vec<(String, ScenarioSource)>,
    /// Settings that differ between runs, by the name of the replications. Each has one row per run; runs are counted
    /// over all study seeds.
    pub replications: Vec<(String, Vec<Vec<Setting>>)>,
    /// The parameters by name.
    pub parameters: Vec<(String, ParameterRecord)>,
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// The plots.
    pub plots: Vec<Plot>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// The bounds on metrics.
    pub expectations: Vec<Expectation>,
    /// The matrix that compares the values of an axis with references; `None` if there is none.
    pub matrix: Option<Matrix>,
    /// The published values.
    pub published: Vec<PublishedResult>,
    /// The user's settings of scenarios.
    pub scenario_settings: Vec<ScenarioSetting>,
    /// The values of axes that the user excluded.
    pub left_out: Vec<LeftOut>,
}

/// The name of the axis that selects the clock.
pub const CLOCK_AXIS: &str = "clock";

/// Returns the values of the clock axis; empty for virtual time without such an axis.
pub(crate) fn clocks(clock: Clock) -> &'static [Clock] {
    match clock {
        Clock::Virtual => &[],
        Clock::Real => &[Clock::Real],
        Clock::Both => &[Clock::Virtual, Clock::Real],
    }
}

/// The source of the seeds of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedSource {
    /// At each point, run r has the seed that [`fullpipe_units::random::derive_run_seed`] derives from this number and
    /// r.
    Derived(u64),
    /// The only run of a point has this seed; further runs have the seeds in [`Study::more_seeds`].
    Fixed(u64),
}

impl SeedSource {
    /// Returns the seed of run `run`, counted from 0.
    pub fn run_seed(self, run: u64) -> u64 {
        match self {
            SeedSource::Derived(seed) => fullpipe_units::random::derive_run_seed(seed, run),
            SeedSource::Fixed(seed) => seed,
        }
    }

    /// Returns the seed of run `run` under the study seed with this number. Number 0 is the study's own seed.
    pub fn run_seed_under(self, study_seed: u64, run: u64) -> u64 {
        match self {
            SeedSource::Derived(seed) if study_seed > 0 => {
                let name = format!("study seed {study_seed}");
                // Keeps 53 bits, because TOML and JSON represent such integers exactly.
                SeedSource::Derived(fullpipe_units::random::derive_number(seed, "study", &name) >> 11).run_seed(run)
            }
            _ => self.run_seed(run),
        }
    }

    /// Returns the number from which seeds are derived, or the fixed seed.
    pub fn base(self) -> u64 {
        match self {
            SeedSource::Derived(seed) | SeedSource::Fixed(seed) => seed,
        }
    }
}

/// A setting of a scenario: the path of a key, and a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The dotted path of the key.
    pub path: String,
    /// The value.
    pub value: Node,
}

/// A sweep over one scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// The name of the experiment.
    pub name: String,
    /// The experiment's former names, which are accepted with a hint.
    pub former: Vec<String>,
    /// A description of the experiment, for reports.
    pub text: String,
    /// The name of the experiment's scenario.
    pub scenario: String,
    /// The fixed settings.
    pub set: Vec<Setting>,
    /// The name of the replications whose rows the runs of all points use; `None` if there are none.
    pub replications: Option<String>,
    /// Additional fixed settings of a shortened study; axes override them.
    pub quick_set: Vec<Setting>,
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// The points, each with the index of a level per axis. `None` means all combinations, where the last axis
    /// varies fastest.
    pub points: Option<Vec<Vec<usize>>>,
    /// The points of a shortened study; `None` if they are the same.
    pub quick_points: Option<Vec<Vec<usize>>>,
    /// The number of runs per point.
    pub runs: u64,
    /// The number of runs per point of a shortened study; `None` if it is the same.
    pub quick_runs: Option<u64>,
    /// Whether runs that fell behind real time are included in statistics.
    pub late_runs: LateRuns,
}

impl Experiment {
    /// Returns all points in the order of the sweep, each with the index of a level per axis.
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

    /// Adds the clock as the slowest axis, unless it is already an axis. Without clocks, nothing changes.
    pub(crate) fn vary_clock(&mut self, clocks: &[Clock]) {
        if clocks.is_empty() || self.axis(CLOCK_AXIS).is_some() {
            return;
        }
        let level = |clock: &Clock| {
            let label = clock.name().to_owned();
            let value = Some(Node { content: NodeContent::Text(label.clone()), place: SourceLocation::default() });
            Level { label, value, set: Vec::new(), replications: None }
        };
        let axis = Axis {
            name: CLOCK_AXIS.to_owned(),
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

    /// Returns whether the runs of a point are in real time. `levels` contains the index of a level per axis.
    pub fn is_real_time(&self, levels: &[usize]) -> bool {
        self.axis(CLOCK_AXIS).is_some_and(|(index, axis)| {
            levels.get(index).and_then(|level| axis.levels.get(*level)).is_some_and(|level| level.label == "real")
        })
    }

    /// Returns the names of the replications whose rows the experiment's points use: first its own, then those of the
    /// values of its axes.
    pub fn replications(&self) -> impl Iterator<Item = &str> {
        let levels = self.axes.iter().flat_map(|axis| &axis.levels);
        self.replications.as_deref().into_iter().chain(levels.filter_map(|level| level.replications.as_deref()))
    }

    /// Returns the axis with this name and its index; `None` if there is none.
    pub fn axis(&self, name: &str) -> Option<(usize, &Axis)> {
        self.axes.iter().enumerate().find(|(_, axis)| axis.name == name)
    }
}

/// An axis of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The name, which is a column of `results.csv`.
    pub name: String,
    /// The description with the unit, for reports.
    pub text: String,
    /// The scenario paths that a level's value sets.
    pub paths: Vec<String>,
    /// The levels in order.
    pub levels: Vec<Level>,
    /// The labels of the levels of a shortened study; `None` for all levels.
    pub quick: Option<Vec<String>>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The text of the level in tables and points.
    pub label: String,
    /// The value for the paths of the axis; `None` if the level has only other settings.
    pub value: Option<Node>,
    /// The other settings of the level.
    pub set: Vec<Setting>,
    /// The name of the replications whose rows the level's runs use; `None` if there are none.
    pub replications: Option<String>,
}

impl Level {
    /// Returns whether a value in a file or an option denotes this level.
    pub(crate) fn is(&self, node: &Node) -> bool {
        self.label == label_of(node) || self.value.as_ref() == Some(node)
    }

    /// Returns the level as a number; `None` if neither its value nor its label is a number.
    pub fn number(&self) -> Option<f64> {
        let of_label = || self.label.parse::<f64>().ok().filter(|number| number.is_finite());
        self.value.as_ref().and_then(number_of).or_else(of_label)
    }
}

/// Returns a value as a number.
pub(crate) fn number_of(node: &Node) -> Option<f64> {
    match node.content {
        NodeContent::Integer(integer) => Some(integer as f64),
        NodeContent::Float(float) => float.is_finite().then_some(float),
        _ => None,
    }
}

/// A metric: a number that is computed from the records of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The metric's table in the study's file.
    pub record: MetricRecord,
    /// The parsed expression.
    pub expression: Expression,
}

impl Deref for Metric {
    type Target = MetricRecord;

    fn deref(&self) -> &MetricRecord {
        &self.record
    }
}

impl Metric {
    /// Returns whether the metric applies to an experiment.
    pub fn applies_to(&self, experiment: &str) -> bool {
        self.experiments.is_empty() || self.experiments.iter().any(|name| name == experiment)
    }

    /// Returns the method that predicts a mean of other runs of the same system. It is resampling if the metric is a
    /// ratio or a share (no unit, or %), a median or a percentile. Otherwise it is Student's t.
    pub fn prediction(&self) -> Prediction {
        let by_draws = self.unit.is_empty() || self.unit == "%" || self.expression.uses_quantiles();
        if by_draws { Prediction::Resampling } else { Prediction::Student }
    }
}

/// A claim: a condition over metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim's table in the study's file.
    pub record: ClaimRecord,
    /// The parsed condition.
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
pub struct PublishedResult {
    /// The name of the experiment.
    pub experiment: String,
    /// The point, as `axis=value;axis=value` in the experiment's order.
    pub point: String,
    /// The name of the metric.
    pub metric: String,
    /// The published value in the unit of the metric.
    pub value: f64,
    /// The permitted difference from the interval of the measured mean.
    pub tolerance: Tolerance,
    /// The number of runs of which the published value is the mean; `None` if the value is exact.
    pub runs: Option<u64>,
    /// The publication that contains the value.
    pub source: String,
    /// A note for readers.
    pub note: String,
    /// The name of the claim that explains a difference; empty if there is none.
    pub explained_by: String,
}

/// A permitted difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A fraction of the published value, in percent.
    Percent(f64),
    /// A number in the metric's unit.
    Absolute(f64),
}

impl Tolerance {
    /// Parses `5%` or `0.5`; `None` if the text is neither, or if the number is negative.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match text.trim().strip_suffix('%') {
            Some(percent) => number(percent).map(Tolerance::Percent),
            None => number(text).map(Tolerance::Absolute),
        }
    }

    /// Returns the tolerance for a published value, in the unit of that value.
    pub fn absolute(self, published: f64) -> f64 {
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
    /// Returns the experiment with this name; `None` if there is none.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }

    /// Returns whether statistics include runs of this experiment that fell behind real time.
    pub fn counts_late_runs(&self, experiment: &str) -> bool {
        self.experiment(experiment).is_some_and(|experiment| experiment.late_runs == LateRuns::Count)
    }

    /// Returns the rows of the replications with this name; `None` if there are none.
    pub fn replications(&self, name: &str) -> Option<&[Vec<Setting>]> {
        self.replications.iter().find(|(known, _)| known == name).map(|(_, rows)| rows.as_slice())
    }

    /// Returns the claim with this name; `None` if there is none.
    pub fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.name == name)
    }

    /// Returns whether a point of the selected experiments runs in real time.
    pub fn needs_real_time(&self) -> bool {
        let mut chosen = self.experiments.iter().filter(|experiment| self.selected.contains(&experiment.name));
        chosen.any(|experiment| experiment.combinations().iter().any(|levels| experiment.is_real_time(levels)))
    }

    /// Returns the names of all axes, in the order of their first appearance.
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

/// Returns the text of a value in tables and points: strings without quotation marks, numbers in short form.
pub(crate) fn label_of(node: &Node) -> String {
    match &node.content {
        NodeContent::Text(text) => text.clone(),
        NodeContent::Float(float) => float.to_string(),
        _ => node.to_toml(),
    }
}

/// Returns whether a text can be used in `axis=value;axis=value`.
pub(crate) fn is_label(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains([';', '=', '\n', '\r', '"'])
}
/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The name of the metric.
    pub metric: String,
    /// The unit of the bounds.
    pub unit: String,
    /// The smallest accepted value, in `unit`; `None` if there is no lower bound.
    pub min: Option<f64>,
    /// The largest accepted value, in `unit`; `None` if there is no upper bound.
    pub max: Option<f64>,
    /// The flows or points to which the bounds apply.
    pub of: ExpectationTarget,
    /// The table in the study's file; `None` if the expectation is in a scenario's file.
    pub record: Option<ExpectRecord>,
}

/// The flows or points to which an expectation applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectationTarget {
    /// Directions of flows of a single run: a pattern of names, which may end with `.reverse`.
    Flows(String),
    /// Points of a study.
    Points {
        /// The names of the experiments; empty for all.
        experiments: Vec<String>,
        /// Names of axes, each with the labels of the levels that are selected.
        filters: Vec<(String, Vec<String>)>,
    },
}
