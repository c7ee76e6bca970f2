//! `study.toml`: the resolved study in a folder of records. It has the same keys as the study files that users write,
//! with all defaults.

use crate::error::RecordError;
use crate::toml::{AxisValue, Bound, MultilineText, Points, ScenarioSettings, SubTable, TomlValue, names, toml_table};
use fullpipe_schema::{FieldKind, Node, Value, ValueData};
use fullpipe_units::Duration;
use std::path::Path;

const NAMES: FieldKind = FieldKind::List(&FieldKind::Name);
const TEXTS: FieldKind = FieldKind::List(&FieldKind::Text);
const RAWS: FieldKind = FieldKind::List(&FieldKind::Raw);
const RUNS: FieldKind = FieldKind::integer(1, 1_000_000);
const SEED: FieldKind = FieldKind::integer(0, (1 << 53) - 1);
const SETTINGS: FieldKind = FieldKind::Map(&FieldKind::Raw);
const POINTS: FieldKind = FieldKind::List(&SETTINGS);
const SCALE: FieldKind = FieldKind::Choice(Scale::CHOICES);
const NUMBER: FieldKind = FieldKind::number(f64::NEG_INFINITY, f64::INFINITY);

names! {
    /// The clock of the runs.
    pub enum Clock {
        Virtual = "virtual": "virtual time",
        Real = "real": "real time; `[real_time]` and the keys `from_by` and `to_by` of flows apply",
        Both = "both": "each point by both clocks",
    }
}

names! {
    /// How a study counts runs that fell behind real time.
    pub enum LateRuns {
        LeaveOut = "leave-out": "left out of all statistics",
        Count = "count": "counted like any other, for studies of lateness itself",
    }
}

/// Number of metrics of a box plot that shows quantiles of each run: lower whisker, first quartile, median, third
/// quartile, upper whisker.
pub const BOX_QUANTILES: usize = 5;

names! {
    /// The kind of a plot.
    pub enum PlotKind {
        Line = "line": "means with intervals over an axis",
        Bars = "bars": "means with intervals, a bar per value of an axis",
        Box = "box": "distribution of a metric over runs, a box per value of an axis; for five metrics, means of the quantiles of each run",
        Scatter = "scatter": "every run, one metric over another",
        Distribution = "distribution": "distribution of a metric over runs",
        Time = "time": "samples of series.csv over time",
        Ellipse = "ellipse": "samples of series.csv, one metric over another: mean and one standard deviation",
        Curve = "curve": "means, one metric over another, connected along an axis",
        Profile = "profile": "means of several metrics side by side",
        Table = "table": "means in a table, with one axis as rows and another as columns",
    }
}

names! {
    /// The size of an ellipse.
    pub enum Scaling {
        Sigma = "sigma": "semi-axes of one standard deviation",
        N3 = "n3": "multiplied by standard deviations in s and Mibit/s, as in the ns-3 evaluation suite",
    }
}

names! {
    /// The scale of an axis of a plot.
    pub enum Scale {
        Linear = "linear": "linear",
        Log = "log": "logarithmic",
    }
}

names! {
    /// The criterion for the best of several values.
    pub enum Best {
        High = "high": "the highest",
        Low = "low": "the lowest",
    }
}

toml_table! {
    /// A study.
    #[derive(Default)]
    pub struct StudyRecord;
    pub static STUDY = "study": "A study: scenarios, experiments that sweep over them, metrics, claims and plots.";
    name: Option<String> = optional(FieldKind::Name, "the folder's name"), "Name of the study and of its folder of records.";
    title: String = required(FieldKind::Text), "Title of the report, one line.";
    source: String = default(FieldKind::Text, ""), "Publication that the study repeats.";
    description: String = default(FieldKind::Text, ""), "Description of the study.";
    seed: u64 = default(SEED, "1"), "Study seed: run r of every point has the seed f(seed, r).";
    exact_seed: Option<bool> = optional(FieldKind::Boolean, "false"),
        "Written into the records of `fullpipe run`: `seed` is the seed of the only run.";
    more_seeds: Option<Vec<u64>> = optional(FieldKind::List(&SEED), "none"),
        "Written into the records of `fullpipe run`: seeds of the other runs in the folder.";
    study_seeds: Option<u64> = optional(RUNS, "1"),
        "Written into records (`--seeds`): number of study seeds under which each run is repeated. Verdicts are those \
         of all runs together.";
    clock: Clock = default(FieldKind::Choice(Clock::CHOICES), "virtual"),
        "Clock of the runs. With a value other than `virtual`, each experiment that declares no axis `clock` has one.";
    runs: Option<u64> = default(RUNS, "1"), "Runs per point.";
    quick_runs: Option<u64> = optional(RUNS, "runs"), "Runs per point with `--quick`.";
    raised: u64 = default(FieldKind::integer(0, 2), "0"),
        "How many times the number of runs was increased after the verdict `undecided`. Each time makes the thresholds \
         stricter.";
    experiments: Option<Vec<String>> = optional(NAMES, "all"), "Experiments to run.";
    robust: Option<Vec<(String, Vec<String>)>> = empty(FieldKind::Map(&NAMES)),
        "`claims = [\"NAME\"]`: claims that `--seeds` repeats in a long study, with the points that they name. If \
         empty, it repeats the whole study.";
    quick: bool = default(FieldKind::Boolean, "false"), "Written into the records of a study that ran with `--quick`.";
    build: String = default(FieldKind::Text, ""), "Written into records: the build of the runs.";
    scenarios: Vec<(String, ScenarioRecord)> = required(FieldKind::Map(&FieldKind::Either(&FieldKind::Text, &FieldKind::Table(&SCENARIO)))),
        "Scenarios by name: the name of a file next to the study, or a table.";
    replications: Option<Vec<(String, Points)>> = empty(FieldKind::Map(&FieldKind::Either(&FieldKind::Text, &POINTS))),
        "Settings that differ between runs, by name: a CSV file next to the study whose columns are scenario paths, or \
         a list of tables. Run r takes row r; runs are counted over all study seeds.";
    parameters: Vec<(String, ParameterRecord)> = empty(FieldKind::Map(&FieldKind::Table(&PARAMETER))),
        "Named settings for `--set NAME=VALUE`.";
    scenario_setting: Vec<ScenarioSetting> = empty(FieldKind::Tables(&SCENARIO_SETTING)),
        "Written into records: `--set scenario.PATH`.";
    left_out: Vec<LeftOut> = empty(FieldKind::Tables(&LEFT_OUT)),
        "Written into records: values of axes that `--set` left out.";
    experiment: Vec<ExperimentRecord> = required(FieldKind::Tables(&EXPERIMENT)), "Experiments.";
    axis: Vec<AxisOfStudy> = empty(FieldKind::Tables(&ALL_AXES)),
        "Written into records: all axes with their values.";
    metric: Vec<MetricRecord> = required(FieldKind::Tables(&METRIC)), "Numbers computed from each run.";
    plot: Vec<Plot> = empty(FieldKind::Tables(&PLOT)), "Plots of the report.";
    claim: Vec<ClaimRecord> = empty(FieldKind::Tables(&CLAIM)), "Conditions over the metrics; each has a verdict.";
    expect: Vec<ExpectRecord> = empty(FieldKind::Tables(&EXPECT)), "Bounds on metrics, for continuous integration.";
    matrix: Option<SubTable<MatrixRecord>> = optional(FieldKind::Table(&MATRIX), "none"),
        "A matrix of criteria and conditions that compares the values of an axis with references.";
    published: Option<Vec<PublishedRecord>> = optional(
        FieldKind::Either(&FieldKind::Text, &FieldKind::Tables(&PUBLISHED)), "published.csv if it exists"
    ), "Published values: the name of a CSV file next to the study, or tables.";
}

toml_table! {
    /// A scenario of a study.
    pub struct ScenarioRecord;
    static SCENARIO = "scenario": "A scenario in the study's own file, as in records.";
    origin: String = default(FieldKind::Text, ""), "File from which it was read.";
    text: MultilineText = required(FieldKind::Text), "Text of the scenario.";
}

toml_table! {
    /// A named setting.
    pub struct ParameterRecord;
    static PARAMETER = "parameter": "A setting of the whole study. Experiment settings and axes override it.";
    default: Option<Node> = optional(FieldKind::Raw, "the value in the scenarios"), "Value.";
    quick: Option<Node> = optional(FieldKind::Raw, "the same"), "Value with `--quick`.";
    text: String = default(FieldKind::Text, ""), "Description.";
    paths: Vec<String> = required(TEXTS), "Scenario paths that it sets.";
    scenarios: Vec<String> = default(NAMES, "[]"), "Scenarios that have these paths; if empty, all.";
}

toml_table! {
    /// A setting that the user applied to the scenarios.
    pub struct ScenarioSetting;
    static SCENARIO_SETTING = "scenario setting": "A scenario path that the user set.";
    scenario: String = required(FieldKind::Name), "Scenario.";
    path: String = required(FieldKind::Text), "Path.";
    value: Node = required(FieldKind::Raw), "Value.";
}

toml_table! {
    /// Values of an axis that the study declares and the user excluded.
    pub struct LeftOut;
    static LEFT_OUT = "left out": "Values of an axis that the user left out. The notes of claims that refer to them name them.";
    experiment: String = required(FieldKind::Name), "Experiment.";
    axis: String = required(FieldKind::Name), "Axis.";
    values: Vec<String> = default(TEXTS, "[]"), "Values.";
}

toml_table! {
    /// A sweep over one scenario.
    pub struct ExperimentRecord;
    static EXPERIMENT = "experiment": "A sweep over one scenario.";
    name: String = required(FieldKind::Name), "Name.";
    former: Option<Vec<String>> = optional(NAMES, "none"), "Former names, which `--set experiments` accepts with a hint.";
    scenario: String = required(FieldKind::Name), "Name of its scenario.";
    text: String = default(FieldKind::Text, ""), "Description.";
    runs: Option<u64> = optional(RUNS, "the study's"), "Runs per point.";
    quick_runs: Option<u64> = optional(RUNS, "the study's"), "Runs per point with `--quick`.";
    late_runs: Option<LateRuns> = default(FieldKind::Choice(LateRuns::CHOICES), "leave-out"),
        "How runs that fell behind real time are counted.";
    metrics: Option<Vec<String>> = optional(NAMES, "all without `experiments`, and those that name it"),
        "Its metrics. Of the metrics without `experiments`, only those in this list apply to it.";
    set: ScenarioSettings = empty(SETTINGS), "Scenario paths and their values, the same at every point.";
    replications: Option<String> = optional(FieldKind::Name, "none"),
        "Name of the `replications` whose rows the runs of every point take. `set` and axes override them.";
    quick_set: Option<ScenarioSettings> = empty(SETTINGS),
        "Scenario paths and their values with `--quick`. They override `set`, replications and the `set` of axis values.";
    points: Option<Points> = optional(POINTS, "all combinations, the last axis fastest"), "Points, each with a value per axis.";
    quick_points: Option<Points> = optional(POINTS, "the same"), "Points with `--quick`.";
    axis: Vec<AxisRecord> = empty(FieldKind::Tables(&AXIS)), "Axes.";
}

toml_table! {
    /// A list of values of an experiment.
    pub struct AxisRecord;
    static AXIS = "axis": "A list of values that an experiment sweeps over.";
    name: String = required(FieldKind::Name), "Name; a column of results.csv.";
    text: String = default(FieldKind::Text, ""), "Description, with unit.";
    values_of: Option<String> = optional(FieldKind::Name, "none"),
        "An earlier experiment: the axis has the text, paths and values of that experiment's axis of the same name.";
    paths: Vec<String> = default(TEXTS, "[]"), "Scenario paths that it sets; if empty, those of the parameter of this name.";
    values: Vec<AxisValue> = default(RAWS, "[]"),
        "Values in order: plain, or { label, value } or { label, set = { PATH = VALUE }, replications = NAME }. If \
         empty, those of `points`.";
    quick: Option<Vec<AxisValue>> = optional(RAWS, "all"), "Values that `--quick` keeps.";
}

toml_table! {
    /// An axis with its values over all experiments.
    pub struct AxisOfStudy;
    static ALL_AXES = "axis of all experiments": "An axis with its values in all experiments, for the report.";
    name: String = required(FieldKind::Name), "Name.";
    text: String = default(FieldKind::Text, ""), "Description.";
    values: Vec<String> = default(TEXTS, "[]"), "Values in all experiments.";
}

toml_table! {
    /// A number that is computed from each run.
    pub struct MetricRecord;
    static METRIC = "metric": "A number computed from each run.";
    name: String = required(FieldKind::Name), "Name, with unit; a column of results.csv.";
    unit: String = default(FieldKind::Text, ""), "Unit.";
    text: String = default(FieldKind::Text, ""), "Description.";
    expression: String = required(FieldKind::Text), "Expression over the files of a run.";
    experiments: Vec<String> = default(NAMES, "[]"), "Experiments that have it; if empty, all.";
}

toml_table! {
    /// A plot in the report.
    #[derive(Default)]
    pub struct Plot;
    static PLOT = "plot": "A plot in the report. If there are published values, it shows them next to the measured ones.";
    name: String = required(FieldKind::Name), "Name of the plot and of its file.";
    title: Option<String> = optional(FieldKind::Text, "its name"), "Heading.";
    kind: PlotKind = default(FieldKind::Choice(PlotKind::CHOICES), "line"), "Kind of plot.";
    x: Option<String> = optional(FieldKind::Text, "none"),
        "An axis (`line`, `bars`, `box`) or a metric (`scatter`, `distribution`, `curve`; `ellipse`: of series.csv).";
    y: Option<String> = optional(FieldKind::Text, "none"), "A metric; with `time` and `ellipse` a metric of series.csv.";
    subject: Option<String> = optional(FieldKind::Text, "all"),
        "Subject of the samples (`time`; required for `ellipse`): a flow, a link, `LINK.reverse`.";
    group: Option<Duration> = optional(FieldKind::INTERVAL, "100ms for `ellipse`, else none"),
        "Interval over which samples are averaged (`time`, `ellipse`).";
    scaling: Option<Scaling> = default(FieldKind::Choice(Scaling::CHOICES), "sigma"), "Size of an `ellipse`.";
    along: Option<String> = optional(FieldKind::Text, "none"), "Axis that connects the points of a `curve`.";
    metrics: Option<Vec<String>> = default(NAMES, "[]"), "Positions of a `profile`; cells of a `table`.";
    labels: Option<Vec<String>> = default(TEXTS, "[]"), "Labels of the metrics of a `profile`.";
    rows: Option<String> = optional(FieldKind::Text, "none"), "Axis whose values are the rows of a `table`.";
    columns: Option<String> = optional(FieldKind::Text, "none"), "Axis, or `experiment`, whose values are the columns of a `table`.";
    best: Option<Vec<(String, Best)>> = empty(FieldKind::Map(&FieldKind::Choice(Best::CHOICES))),
        "Metrics of a `table`, and which value of a column is marked.";
    series: Option<Vec<String>> = optional(TEXTS, "all axes that vary, without x"), "Axes; each of their values has a curve.";
    r#where: Option<Vec<(String, Node)>> = optional(SETTINGS, "all points"), "Axes and their values to show: one value or a list.";
    x_scale: Option<Scale> = optional(SCALE, "linear"), "Scale of the x axis.";
    y_scale: Option<Scale> = optional(SCALE, "linear"), "Scale of the y axis.";
    x_label: Option<String> = optional(FieldKind::Text, "that of the axis or metric"), "Label of the x axis.";
    y_label: Option<String> = optional(FieldKind::Text, "that of the metric"), "Label of the y axis.";
    x_unit: Option<String> = optional(FieldKind::Text, "that of the axis or metric"), "Unit of the x axis.";
    y_unit: Option<String> = optional(FieldKind::Text, "that of the metric"), "Unit of the y axis.";
    x_reversed: Option<bool> = default(FieldKind::Boolean, "false"), "Whether values on the x axis decrease to the right.";
    x_min: Option<f64> = optional(NUMBER, "from the data"), "Minimum of the x axis.";
    x_max: Option<f64> = optional(NUMBER, "from the data"), "Maximum of the x axis.";
    y_min: Option<f64> = optional(NUMBER, "from the data"), "Minimum of the y axis.";
    y_max: Option<f64> = optional(NUMBER, "from the data"), "Maximum of the y axis.";
    caption: Option<String> = optional(FieldKind::Text, "none"), "Caption.";
}

toml_table! {
    /// A condition over metrics.
    pub struct ClaimRecord;
    static CLAIM = "claim": "A condition, as an expression over metrics at points.";
    name: String = required(FieldKind::Name), "Name.";
    text: String = required(FieldKind::Text), "The claim in words.";
    source: String = default(FieldKind::Text, ""), "Source of the claim.";
    expression: String = required(FieldKind::Text), "Condition.";
    explained_by: String = default(FieldKind::Text, ""), "Claim that explains it if it does not hold.";
    exploratory: bool = default(FieldKind::Boolean, "false"),
        "Whether a bound, parameter or variant was chosen after a look at results. Such a claim cannot explain another one.";
    published_runs: Option<u64> = optional(FieldKind::integer(1, 10_000), "none"),
        "Number of runs from which the published figure in the claim was computed. The verdict `refuted` then has a \
         second condition.";
    variant: String = default(FieldKind::Text, ""),
        "`EXPERIMENT`, or `EXPERIMENT;axis=value`: the points that change the one assumption of this claim. Published \
         values that it explains must match there.";
}

impl ClaimRecord {
    /// Returns whether the condition names experiments of a study, and none of the `selected` ones. The claim then cannot have
    /// a verdict.
    pub fn is_of_unselected<'a>(&self, experiments: impl IntoIterator<Item = &'a str>, selected: &[String]) -> bool {
        let is_named =
            |name: &str| ['"', '\''].iter().any(|quote| self.expression.contains(&format!("{quote}{name}{quote}")));
        let mut named = experiments.into_iter().filter(|name| is_named(name)).peekable();
        named.peek().is_some() && named.all(|name| !selected.iter().any(|selected| selected == name))
    }
}

toml_table! {
    /// A bound on a metric.
    pub struct ExpectRecord;
    static EXPECT = "expectation": "A bound on the mean of a metric at each selected point. If a mean is outside, the command ends \
        with exit status 4. Expectations in the study's scenarios are not checked.";
    metric: String = required(FieldKind::Name), "Metric of the study.";
    experiments: Vec<String> = default(NAMES, "[]"), "Experiments; if empty, all that have the metric.";
    r#where: Option<Vec<(String, Node)>> = optional(SETTINGS, "all points"),
        "Axes and their values that select points: one value or a list.";
    min: Option<Bound> = optional(Bound::KIND, "no minimum"),
        "Smallest accepted mean: a number in the metric's unit, or a quantity such as `\"20Mbit/s\"`, `\"50ms\"`, `\"1MB\"` or \
         `\"2%\"`.";
    max: Option<Bound> = optional(Bound::KIND, "no maximum"), "Largest accepted mean, as `min`.";
}

toml_table! {
    /// A matrix of criteria (rows) and conditions (columns) that compares the values of an axis with references.
    #[derive(Default)]
    pub struct MatrixRecord;
    static MATRIX = "matrix": "A matrix of criteria (rows) and conditions (columns) that compares the values of an axis with references. \
        The study writes matrix.csv and findings.csv.";
    axis: String = required(FieldKind::Name), "Axis whose values are compared, such as `congestion`.";
    references: Vec<String> = required(TEXTS), "Values of the axis that are the references.";
    candidate: Option<String> = optional(FieldKind::Text, "the values of the axis that are not references"),
        "Value of the axis that is compared with the references. `--set AXIS=VALUE` sets it.";
    rows: Vec<(String, String)> = required(FieldKind::Map(&FieldKind::Text)), "Rows: names, such as section numbers, and their titles.";
    columns: Vec<(String, String)> = required(FieldKind::Map(&FieldKind::Text)), "Columns: names and titles.";
    cell: Vec<MatrixCell> = required(FieldKind::Tables(&MATRIX_CELL)), "Cells. Each row needs a cell in each column.";
    statement: Option<Vec<MatrixStatement>> = optional(FieldKind::Tables(&MATRIX_STATEMENT), "none"),
        "Texts that the author of the candidate supplies.";
}

toml_table! {
    /// Cells of a matrix with the same content.
    #[derive(Default)]
    pub struct MatrixCell;
    static MATRIX_CELL = "matrix cell": "The cells in all `columns` of all `rows`: experiments with metrics, or the reason why nothing is run.";
    rows: Vec<String> = required(TEXTS), "Rows.";
    columns: Vec<String> = required(TEXTS), "Columns.";
    experiments: Option<Vec<String>> = optional(NAMES, "none"), "Experiments whose points the cells show.";
    r#where: Option<Vec<(String, Node)>> = optional(SETTINGS, "all points"),
        "Axes and their values that select points: one value or a list.";
    worse: Option<Vec<(String, Best)>> = optional(FieldKind::Map(&FieldKind::Choice(Best::CHOICES)), "none"),
        "Metrics of the cells, each with the direction that is worse: `high` or `low`.";
    note: Option<String> = optional(FieldKind::Text, "none"), "What the cells leave out, for the report.";
    not_run: Option<String> = optional(FieldKind::Text, "none"), "Why nothing is run for the cells.";
}

toml_table! {
    /// A text that the author of the candidate supplies.
    #[derive(Default)]
    pub struct MatrixStatement;
    static MATRIX_STATEMENT = "matrix statement": "A text that the author of the candidate supplies.";
    section: String = required(FieldKind::Text), "Section that requires the text.";
    title: String = required(FieldKind::Text), "Subject.";
    text: String = default(FieldKind::Text, ""), "Text; the report says `not supplied` if it is empty.";
}

toml_table! {
    /// A published value.
    pub struct PublishedRecord;
    static PUBLISHED = "published value": "A published value, with the columns of published.csv.";
    experiment: Option<String> = optional(FieldKind::Name, "the only one"), "Experiment.";
    point: String = default(FieldKind::Text, ""), "axis=value;axis=value.";
    metric: String = required(FieldKind::Name), "Metric.";
    value: f64 = required(NUMBER), "Value.";
    tolerance: String = default(FieldKind::Text, "0"), "`5%` of the value, or a number in its unit.";
    published_runs: u64 = default(FieldKind::integer(0, 1_000_000_000), "1"),
        "Number of runs from which the value was computed: 1 if it is unknown, 0 for an exact value.";
    source: String = default(FieldKind::Text, ""), "Publication.";
    note: String = default(FieldKind::Text, ""), "Remark for readers.";
    explained_by: String = default(FieldKind::Text, ""), "Claim that explains a difference.";
}

impl StudyRecord {
    /// The file's name.
    pub const FILE: &'static str = "study.toml";

    /// The first line of the file in a folder of records. A folder without it is not a folder of records.
    pub const FIRST_LINE: &'static str =
        "# The records of a Fullpipe study: this file says what was run, with every default written out.";

    /// Returns the content of the file.
    pub fn to_toml(&self) -> String {
        let mut text = format!("{}\n", Self::FIRST_LINE);
        self.write("", &mut text);
        text
    }

    /// Parses the content of the file; `file` is its name in messages.
    ///
    /// # Errors
    /// If the content is not TOML, has an undeclared key, lacks a key, or has a value of another kind than declared.
    pub fn parse(file: &Path, text: &str) -> Result<Self, RecordError> {
        let invalid =
            |error: &fullpipe_schema::Error| RecordError::invalid(file, Some(error.line as u64), error.problem());
        let loaded = fullpipe_schema::load(&STUDY, text, "", &[]).map_err(|errors| {
            // An error about a misspelled key is more helpful than the error that the correct key is missing.
            let found = errors.0.iter().find(|error| !error.found.is_empty());
            invalid(found.unwrap_or(&errors.0[0]))
        })?;
        let scenarios = loaded.root.map("scenarios").iter().map(|entry| &entry.value);
        let replications = loaded.root.get("replications").map(Value::map).unwrap_or_default();
        let scenarios = scenarios.chain(replications.iter().map(|entry| &entry.value));
        let outside = |value: &&Value| matches!(value.data, ValueData::Text(_));
        if let Some(value) = scenarios.chain(loaded.root.get("published")).find(outside) {
            let expected = vec!["what the file contains, as records have it".to_owned()];
            let message = format!("found the name of a file, {}", loaded.sources.excerpt(value.place));
            return Err(invalid(&loaded.sources.error(value.place, "", message, expected)));
        }
        Ok(StudyRecord::from_tree(&loaded.root))
    }

    /// Reads the file. Returns the study and the text of the file.
    ///
    /// # Errors
    /// The errors of [`StudyRecord::parse`], or an error if the file cannot be read or is not UTF-8.
    pub fn read(file: &Path) -> Result<(Self, String), RecordError> {
        let bytes = std::fs::read(file).map_err(|cause| RecordError::read(file, cause))?;
        let text = String::from_utf8(bytes).map_err(|_| RecordError::invalid(file, None, "is not UTF-8 text"))?;
        Ok((StudyRecord::parse(file, &text)?, text))
    }

    /// Returns whether this is the record of a single run and not of a study.
    pub fn is_single_run(&self) -> bool {
        self.exact_seed == Some(true) && self.more_seeds.as_ref().is_none_or(Vec::is_empty)
    }
}
