//! `study.toml`: a study as a file states it. The one among records has every default written out; the same keys are those of
//! the files that people write.

use crate::error::RecordError;
use crate::toml::{AxisValue, LongText, Points, Settings, Toml, names, toml_table};
use fullpipe_schema::{Data, Kind, Node, Value};
use fullpipe_units::Duration;
use std::path::Path;

const NAMES: Kind = Kind::List(&Kind::Name);
const TEXTS: Kind = Kind::List(&Kind::Text);
const RAWS: Kind = Kind::List(&Kind::Raw);
const RUNS: Kind = Kind::integer(1, 1_000_000);
const SEED: Kind = Kind::integer(0, (1 << 53) - 1);
const SETTINGS: Kind = Kind::Map(&Kind::Raw);
const POINTS: Kind = Kind::List(&SETTINGS);
const SCALE: Kind = Kind::Choice(Scale::CHOICES);
const NUMBER: Kind = Kind::number(f64::NEG_INFINITY, f64::INFINITY);

names! {
    /// Which clock runs.
    pub enum Clock {
        Virtual = "virtual": "discrete events",
        Real = "real": "the wall clock; `[real_time]` and the players of flows count then",
        Both = "both": "each point by either clock",
    }
}

names! {
    /// What becomes of runs that fell behind real time.
    pub enum LateRuns {
        LeaveOut = "leave-out": "they support nothing",
        Count = "count": "they count as any other: for studies of lateness itself",
    }
}

/// Metrics of a box whose quantiles are those of each run: lower whisker, first quartile, median, third quartile, upper whisker.
pub const BOX_QUANTILES: usize = 5;

names! {
    /// How a plot is drawn.
    pub enum PlotKind {
        Line = "line": "means with intervals over an axis",
        Bars = "bars": "means with intervals, a bar per value of an axis",
        Box = "box": "how a metric is distributed over runs, a box per value of an axis; of five metrics, quantiles of each run, the means",
        Scatter = "scatter": "every run, one metric over another",
        Distribution = "distribution": "how a metric is distributed over runs",
        Time = "time": "samples of series.csv over time",
        Ellipse = "ellipse": "samples of series.csv, one metric over another: mean and one standard deviation",
        Curve = "curve": "means, one metric over another, joined along an axis",
        Profile = "profile": "means of several metrics side by side",
        Table = "table": "means in a table, an axis down and another across",
    }
}

names! {
    /// How large an ellipse is.
    pub enum Scaling {
        Sigma = "sigma": "semi-axes of one standard deviation",
        N3 = "n3": "multiplied by standard deviations in s and Mibit/s, as in the ns-3 evaluation suite",
    }
}

names! {
    /// How numbers are placed along an axis of a plot.
    pub enum Scale {
        Linear = "linear": "linear",
        Log = "log": "logarithmic",
    }
}

names! {
    /// Which of several values is the best.
    pub enum Best {
        High = "high": "the highest",
        Low = "low": "the lowest",
    }
}

toml_table! {
    /// A whole study.
    #[derive(Default)]
    pub struct StudyRecord;
    pub static STUDY = "study": "A study: scenarios, experiments over them, metrics, claims.";
    name: Option<String> = optional(Kind::Name, "the folder's name"), "What folders of records are called.";
    title: String = required(Kind::Text), "One line for reports.";
    source: String = default(Kind::Text, ""), "The publication that the study repeats.";
    description: String = default(Kind::Text, ""), "What the study is about.";
    seed: u64 = default(SEED, "1"), "Run r has the seed f(seed, r), equal at every point.";
    exact_seed: Option<bool> = optional(Kind::Boolean, "false"),
        "Written into the records of `fullpipe run`: the seed is that of the one run.";
    study_seeds: Option<u64> = optional(RUNS, "1"),
        "Written into records (`--seeds`): study seeds under which each run is repeated. Verdicts are of all runs together.";
    clock: Clock = default(Kind::Choice(Clock::CHOICES), "virtual"),
        "Which clock runs. Other than `virtual` it is an axis `clock` of each experiment that has none of its own.";
    runs: Option<u64> = default(RUNS, "1"), "Runs per point.";
    quick_runs: Option<u64> = optional(RUNS, "runs"), "Runs per point with --quick.";
    raised: u64 = default(Kind::integer(0, 2), "0"),
        "How often the number of runs was raised after the verdict `undecided`; each time makes the thresholds stricter.";
    experiments: Option<Vec<String>> = optional(NAMES, "all"), "The experiments to run.";
    robust: Option<Vec<(String, Vec<String>)>> = empty(Kind::Map(&NAMES)),
        "`claims = [\"NAME\"]`: the claims that `--seeds` repeats in a long study, with the points that they name; none: the whole study.";
    quick: bool = default(Kind::Boolean, "false"), "Written into the records of a shortened study.";
    build: String = default(Kind::Text, ""), "Written into records: the build that made them.";
    scenarios: Vec<(String, ScenarioRecord)> = required(Kind::Map(&Kind::Either(&Kind::Text, &Kind::Table(&SCENARIO)))),
        "The scenarios by name: a file's name beside the study, or a table.";
    replications: Option<Vec<(String, Points)>> = empty(Kind::Map(&Kind::Either(&Kind::Text, &POINTS))),
        "Settings that differ from run to run, by name: a CSV file beside the study whose columns are scenario paths, or a list \
         of tables. Run r takes row r; runs are counted over all study seeds.";
    parameters: Vec<(String, ParameterRecord)> = empty(Kind::Map(&Kind::Table(&PARAMETER))),
        "Settings with names, for `--set NAME=VALUE`.";
    scenario_setting: Vec<ScenarioSetting> = empty(Kind::Tables(&SCENARIO_SETTING)),
        "Written into records: `--set scenario.PATH`.";
    left_out: Vec<LeftOut> = empty(Kind::Tables(&LEFT_OUT)),
        "Written into records: values of axes that `--set` left out.";
    experiment: Vec<ExperimentRecord> = required(Kind::Tables(&EXPERIMENT)), "What is run.";
    axis: Vec<AxisOfStudy> = empty(Kind::Tables(&ALL_AXES)),
        "Written into records: all axes with their values.";
    metric: Vec<MetricRecord> = required(Kind::Tables(&METRIC)), "What is computed from each run.";
    plot: Vec<Plot> = empty(Kind::Tables(&PLOT)), "What the report draws.";
    claim: Vec<ClaimRecord> = empty(Kind::Tables(&CLAIM)), "What is said to be so.";
    published: Option<Vec<PublishedRecord>> = optional(
        Kind::Either(&Kind::Text, &Kind::Tables(&PUBLISHED)), "published.csv, if there is one"
    ), "Published values: a CSV file's name beside the study, or tables.";
}

toml_table! {
    /// A scenario of a study.
    pub struct ScenarioRecord;
    static SCENARIO = "scenario": "A scenario in the study's own file, as records have it.";
    origin: String = default(Kind::Text, ""), "The file it came from.";
    text: LongText = required(Kind::Text), "The scenario's text.";
}

toml_table! {
    /// A setting with a name.
    pub struct ParameterRecord;
    static PARAMETER = "parameter": "A setting of the whole study. Experiment settings and axes override it.";
    default: Option<Node> = optional(Kind::Raw, "what the scenarios say"), "Its value.";
    quick: Option<Node> = optional(Kind::Raw, "the same"), "Its value with --quick.";
    text: String = default(Kind::Text, ""), "What it is.";
    paths: Vec<String> = required(TEXTS), "The scenario paths it sets.";
    scenarios: Vec<String> = default(NAMES, "[]"), "The scenarios that have these paths; none named: all.";
}

toml_table! {
    /// What the user set on top of the scenarios.
    pub struct ScenarioSetting;
    static SCENARIO_SETTING = "scenario setting": "A scenario path that the user set.";
    scenario: String = required(Kind::Name), "The scenario.";
    path: String = required(Kind::Text), "The path.";
    value: Node = required(Kind::Raw), "The value.";
}

toml_table! {
    /// Values of an axis that the study has and the user left out.
    pub struct LeftOut;
    static LEFT_OUT = "left out": "Values of an axis that the user left out: claims that speak of them say so.";
    experiment: String = required(Kind::Name), "The experiment.";
    axis: String = required(Kind::Name), "The axis.";
    values: Vec<String> = default(TEXTS, "[]"), "The values.";
}

toml_table! {
    /// A sweep over one scenario.
    pub struct ExperimentRecord;
    static EXPERIMENT = "experiment": "A sweep over one scenario.";
    name: String = required(Kind::Name), "Its name.";
    scenario: String = required(Kind::Name), "The scenario.";
    text: String = default(Kind::Text, ""), "What it is about.";
    runs: Option<u64> = optional(RUNS, "the study's"), "Runs per point.";
    quick_runs: Option<u64> = optional(RUNS, "the study's"), "Runs per point with --quick.";
    late_runs: Option<LateRuns> = default(Kind::Choice(LateRuns::CHOICES), "leave-out"),
        "What becomes of runs that fell behind real time.";
    set: Settings = empty(SETTINGS), "Scenario paths and their values, the same at every point.";
    replications: Option<String> = optional(Kind::Name, "none"),
        "Name of the `replications` whose rows the runs of every point take. `set` and axes override them.";
    quick_set: Option<Settings> = empty(SETTINGS),
        "The same with --quick, where something else: it goes before what the values of axes set besides their own.";
    points: Option<Points> = optional(POINTS, "all combinations, the last axis fastest"), "The points, each a value per axis.";
    quick_points: Option<Points> = optional(POINTS, "the same"), "The points with --quick.";
    axis: Vec<AxisRecord> = empty(Kind::Tables(&AXIS)), "What varies.";
}

toml_table! {
    /// Something that varies in an experiment.
    pub struct AxisRecord;
    static AXIS = "axis": "Something that varies.";
    name: String = required(Kind::Name), "Its name: a column of results.csv.";
    text: String = default(Kind::Text, ""), "What it is, with its unit.";
    paths: Vec<String> = default(TEXTS, "[]"), "The scenario paths it sets; none: those of the parameter of this name.";
    values: Vec<AxisValue> = default(RAWS, "[]"),
        "Its values in order: plain, or { label, value } or { label, set = { PATH = VALUE }, replications = NAME }. None: those of points.";
    quick: Option<Vec<AxisValue>> = optional(RAWS, "all"), "Those of the values that --quick keeps.";
}

toml_table! {
    /// An axis with its values in all experiments.
    pub struct AxisOfStudy;
    static ALL_AXES = "axis of all experiments": "An axis as the report names it.";
    name: String = required(Kind::Name), "Its name.";
    text: String = default(Kind::Text, ""), "What it is.";
    values: Vec<String> = default(TEXTS, "[]"), "Its values in all experiments.";
}

toml_table! {
    /// A number computed from each run.
    pub struct MetricRecord;
    static METRIC = "metric": "A number computed from each run.";
    name: String = required(Kind::Name), "Its name, unit included: a column of results.csv.";
    unit: String = default(Kind::Text, ""), "Its unit.";
    text: String = default(Kind::Text, ""), "What it is.";
    expression: String = required(Kind::Text), "How it is computed from flows.csv.";
    experiments: Vec<String> = default(NAMES, "[]"), "The experiments that have it; none named: all.";
}

toml_table! {
    /// A picture in the report.
    #[derive(Default)]
    pub struct Plot;
    static PLOT = "plot": "A picture in the report. Published values are drawn beside measured ones where there are any.";
    name: String = required(Kind::Name), "Its name: that of its file.";
    title: Option<String> = optional(Kind::Text, "its name"), "Heading.";
    kind: PlotKind = default(Kind::Choice(PlotKind::CHOICES), "line"), "How it is drawn.";
    x: Option<String> = optional(Kind::Text, "none"),
        "An axis (`line`, `bars`, `box`) or a metric (`scatter`, `distribution`, `curve`; `ellipse`: of series.csv).";
    y: Option<String> = optional(Kind::Text, "none"), "A metric; with `time` and `ellipse` one of series.csv.";
    subject: Option<String> = optional(Kind::Text, "all"),
        "Whose samples (`time`, `ellipse`, which needs it): a flow, a link, `LINK.reverse`.";
    group: Option<Duration> = optional(Kind::INTERVAL, "100ms for `ellipse`, else none"),
        "Samples are averaged over such intervals (`time`, `ellipse`).";
    scaling: Option<Scaling> = default(Kind::Choice(Scaling::CHOICES), "sigma"), "How large an `ellipse` is.";
    along: Option<String> = optional(Kind::Text, "none"), "The axis that joins the points of a `curve`.";
    metrics: Option<Vec<String>> = default(NAMES, "[]"), "The places of a `profile`; the cells of a `table`.";
    labels: Option<Vec<String>> = default(TEXTS, "[]"), "What the metrics of a `profile` are called.";
    rows: Option<String> = optional(Kind::Text, "none"), "The axis whose values are the rows of a `table`.";
    columns: Option<String> = optional(Kind::Text, "none"), "The axis, or `experiment`, whose values are its columns.";
    best: Option<Vec<(String, Best)>> = empty(Kind::Map(&Kind::Choice(Best::CHOICES))),
        "Metrics of a `table`, and which value of a column is marked.";
    series: Option<Vec<String>> = optional(TEXTS, "all axes that vary, without x"), "Axes that make one curve for each value.";
    r#where: Option<Vec<(String, Node)>> = optional(SETTINGS, "all points"), "Axes and the values, one or a list, shown.";
    x_scale: Option<Scale> = optional(SCALE, "linear"), "Scale to the right.";
    y_scale: Option<Scale> = optional(SCALE, "linear"), "Scale upwards.";
    x_label: Option<String> = optional(Kind::Text, "that of the axis or metric"), "Label to the right.";
    y_label: Option<String> = optional(Kind::Text, "that of the metric"), "Label upwards.";
    x_unit: Option<String> = optional(Kind::Text, "that of the axis or metric"), "Unit to the right.";
    y_unit: Option<String> = optional(Kind::Text, "that of the metric"), "Unit upwards.";
    x_reversed: Option<bool> = default(Kind::Boolean, "false"), "Small values to the right.";
    x_min: Option<f64> = optional(NUMBER, "from the data"), "Where it begins to the right.";
    x_max: Option<f64> = optional(NUMBER, "from the data"), "Where it ends to the right.";
    y_min: Option<f64> = optional(NUMBER, "from the data"), "Where it begins upwards.";
    y_max: Option<f64> = optional(NUMBER, "from the data"), "Where it ends upwards.";
    caption: Option<String> = optional(Kind::Text, "none"), "What it shows.";
}

toml_table! {
    /// Something that is said to be so.
    pub struct ClaimRecord;
    static CLAIM = "claim": "Something that is said to be so, as an expression over metrics at points.";
    name: String = required(Kind::Name), "Its name.";
    text: String = required(Kind::Text), "What it says.";
    source: String = default(Kind::Text, ""), "Who says so.";
    expression: String = required(Kind::Text), "When it holds.";
    explained_by: String = default(Kind::Text, ""), "The claim that explains it if it does not hold.";
    exploratory: bool = default(Kind::Boolean, "false"),
        "Whether a bound, parameter or variant was chosen after a look at results. Such a claim explains nothing.";
    published_runs: Option<u64> = optional(Kind::integer(1, 10_000), "none"),
        "Number of runs behind the published figure that the claim compares with: `refuted` then needs more than our interval.";
    variant: String = default(Kind::Text, ""),
        "`EXPERIMENT`, or `EXPERIMENT;axis=value`: the points that change the one assumption that this claim is about. What it \
         explains must match the published values there.";
}

toml_table! {
    /// A published value.
    pub struct PublishedRecord;
    static PUBLISHED = "published value": "A published value, with the columns of published.csv.";
    experiment: Option<String> = optional(Kind::Name, "the only one"), "The experiment.";
    point: String = default(Kind::Text, ""), "axis=value;axis=value.";
    metric: String = required(Kind::Name), "The metric.";
    value: f64 = required(NUMBER), "The value.";
    tolerance: String = default(Kind::Text, "0"), "`5%` of the value, or a number in its unit.";
    published_runs: u64 = default(Kind::integer(0, 1_000_000_000), "1"),
        "Number of runs behind the value: 1 if it is unknown, 0 for an exact value.";
    source: String = default(Kind::Text, ""), "Where it was published.";
    note: String = default(Kind::Text, ""), "What a reader should know.";
    explained_by: String = default(Kind::Text, ""), "The claim that explains a difference.";
}

impl StudyRecord {
    /// The file's name.
    pub const FILE: &'static str = "study.toml";

    /// The first line of the file among records; a folder without it is not ours.
    pub const FIRST_LINE: &'static str =
        "# The records of a Fullpipe study: this file says what was run, with every default written out.";

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut text = format!("{}\n", Self::FIRST_LINE);
        self.write("", &mut text);
        text
    }

    /// Reads the text of the file; `file` is its name in messages.
    ///
    /// # Errors
    /// If it is not TOML, has a key that is not declared, lacks one, or has a value of another kind than declared.
    pub fn parse(file: &Path, text: &str) -> Result<Self, RecordError> {
        let invalid =
            |error: &fullpipe_schema::Error| RecordError::invalid(file, Some(error.line as u64), error.problem());
        let loaded = fullpipe_schema::load(&STUDY, text, "", &[]).map_err(|errors| {
            // A misspelt key says more than that its right name is missing.
            let found = errors.0.iter().find(|error| !error.found.is_empty());
            invalid(found.unwrap_or(&errors.0[0]))
        })?;
        let scenarios = loaded.root.map("scenarios").iter().map(|entry| &entry.value);
        let replications = loaded.root.get("replications").map(Value::map).unwrap_or_default();
        let scenarios = scenarios.chain(replications.iter().map(|entry| &entry.value));
        let outside = |value: &&Value| matches!(value.data, Data::Text(_));
        if let Some(value) = scenarios.chain(loaded.root.get("published")).find(outside) {
            let expected = vec!["what the file contains, as records have it".to_owned()];
            let message = format!("found the name of a file, {}", loaded.sources.found(value.place));
            return Err(invalid(&loaded.sources.error(value.place, "", message, expected)));
        }
        Ok(StudyRecord::from_tree(&loaded.root))
    }

    /// Reads the file; its text comes with it.
    ///
    /// # Errors
    /// As [`StudyRecord::parse`], and if the file cannot be read or is not UTF-8.
    pub fn read(file: &Path) -> Result<(Self, String), RecordError> {
        let bytes = std::fs::read(file).map_err(|cause| RecordError::read(file, cause))?;
        let text = String::from_utf8(bytes).map_err(|_| RecordError::invalid(file, None, "is not UTF-8 text"))?;
        Ok((StudyRecord::parse(file, &text)?, text))
    }

    /// Whether this is the record of one run rather than of a study.
    pub fn is_single_run(&self) -> bool {
        self.exact_seed == Some(true)
    }
}
