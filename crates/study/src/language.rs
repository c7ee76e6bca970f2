//! The language of study files: the declared schema, from which the errors and the reference page come.
//!
//! What the words mean is told in `docs/studies.md`; `load.rs` turns a checked file into a [`crate::study::Study`].

use fullpipe_scenario::schema::{Choice, Field, Kind, Table};

const NAMES: Kind = Kind::List(&Kind::Name);
const TEXTS: Kind = Kind::List(&Kind::Text);
const RUNS: Kind = Kind::Integer { min: 1, max: 1_000_000 };

/// A study file.
pub static STUDY: Table = Table {
    name: "study",
    text: "A study: scenarios, experiments over them, metrics, claims.",
    fields: &[&[
        Field::optional("name", Kind::Name, "the folder's name", "What folders of records are called."),
        Field::required("title", Kind::Text, "One line for reports."),
        Field::default("source", Kind::Text, "", "The publication that the study repeats."),
        Field::default("description", Kind::Text, "", "What the study is about."),
        Field::default(
            "seed",
            Kind::Integer { min: 0, max: (1 << 53) - 1 },
            "1",
            "Run r has the seed f(seed, r), equal at every point.",
        ),
        Field::default("runs", RUNS, "1", "Runs per point."),
        Field::optional("quick_runs", RUNS, "runs", "Runs per point with --quick."),
        Field::default(
            "clock",
            Kind::Choice(&[
                Choice::new("virtual", "discrete events"),
                Choice::new("real", "the wall clock; `[real_time]` and the players of flows count then"),
                Choice::new("both", "each point by either clock"),
            ]),
            "virtual",
            "Which clock runs. Other than `virtual` it is an axis `clock` of each experiment that has none of its own.",
        ),
        Field::optional("experiments", NAMES, "all", "The experiments to run."),
        Field::default("quick", Kind::Boolean, "false", "Written into the records of a shortened study."),
        Field::optional(
            "exact_seed",
            Kind::Boolean,
            "false",
            "Written into the records of `fullpipe run`: the seed is that of the one run.",
        ),
        Field::default("build", Kind::Text, "", "Written into records: the build that made them."),
        Field::required(
            "scenarios",
            Kind::Map(&Kind::Either(&Kind::Text, &Kind::Table(&SCENARIO))),
            "The scenarios by name: a file's name beside the study, or a table.",
        ),
        Field::empty("parameters", Kind::Map(&Kind::Table(&PARAMETER)), "Settings with names, for `--set NAME=VALUE`."),
        Field::required("experiment", Kind::Tables(&EXPERIMENT), "What is run."),
        Field::required("metric", Kind::Tables(&METRIC), "What is computed from each run."),
        Field::empty("plot", Kind::Tables(&PLOT), "What the report draws."),
        Field::empty("claim", Kind::Tables(&CLAIM), "What is said to be so."),
        Field::optional(
            "published",
            Kind::Either(&Kind::Text, &Kind::Tables(&PUBLISHED)),
            "published.csv, if there is one",
            "Published values: a CSV file's name beside the study, or tables.",
        ),
        Field::optional("axis", Kind::Tables(&ALL_AXES), "none", "Written into records: all axes with their values."),
        Field::empty(
            "left_out",
            Kind::Tables(&LEFT_OUT),
            "Written into records: values of axes that `--set` left out.",
        ),
        Field::empty(
            "scenario_setting",
            Kind::Tables(&SCENARIO_SETTING),
            "Written into records: `--set scenario.PATH`.",
        ),
    ]],
    ..Table::EMPTY
};

static SCENARIO: Table = Table {
    name: "scenario",
    text: "A scenario in the study's own file, as records have it.",
    fields: &[&[
        Field::required("text", Kind::Text, "The scenario's text."),
        Field::default("origin", Kind::Text, "", "The file it came from."),
    ]],
    ..Table::EMPTY
};

static ALL_AXES: Table = Table {
    name: "axis of all experiments",
    text: "An axis as the report names it.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name."),
        Field::default("text", Kind::Text, "", "What it is."),
        Field::default("values", TEXTS, "[]", "Its values in all experiments."),
    ]],
    ..Table::EMPTY
};

static PARAMETER: Table = Table {
    name: "parameter",
    text: "A setting of the whole study. What an experiment fixes or sweeps goes before it.",
    fields: &[&[
        Field::optional("default", Kind::Raw, "what the scenarios say", "Its value."),
        Field::optional("quick", Kind::Raw, "the same", "Its value with --quick."),
        Field::default("text", Kind::Text, "", "What it is."),
        Field::required("paths", TEXTS, "The scenario paths it sets."),
        Field::default("scenarios", NAMES, "[]", "The scenarios that have these paths; none named: all."),
    ]],
    ..Table::EMPTY
};

static EXPERIMENT: Table = Table {
    name: "experiment",
    text: "A sweep over one scenario.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name."),
        Field::required("scenario", Kind::Name, "The scenario."),
        Field::default("text", Kind::Text, "", "What it is about."),
        Field::empty("set", Kind::Map(&Kind::Raw), "Scenario paths and their values, the same at every point."),
        Field::empty(
            "quick_set",
            Kind::Map(&Kind::Raw),
            "The same with --quick, where something else: it goes before what the values of axes set besides their own.",
        ),
        Field::empty("axis", Kind::Tables(&AXIS), "What varies."),
        Field::optional(
            "points",
            Kind::List(&Kind::Map(&Kind::Raw)),
            "all combinations, the last axis fastest",
            "The points, each a value per axis.",
        ),
        Field::optional("quick_points", Kind::List(&Kind::Map(&Kind::Raw)), "the same", "The points with --quick."),
        Field::optional("runs", RUNS, "the study's", "Runs per point."),
        Field::optional("quick_runs", RUNS, "the study's", "Runs per point with --quick."),
        Field::default(
            "late_runs",
            Kind::Choice(&[
                Choice::new("leave-out", "they support nothing"),
                Choice::new("count", "they count as any other: for studies of lateness itself"),
            ]),
            "leave-out",
            "What becomes of runs that fell behind real time.",
        ),
    ]],
    ..Table::EMPTY
};

static AXIS: Table = Table {
    name: "axis",
    text: "Something that varies.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name: a column of results.csv."),
        Field::default("text", Kind::Text, "", "What it is, with its unit."),
        Field::default("paths", TEXTS, "[]", "The scenario paths it sets; none: those of the parameter of this name."),
        Field::default(
            "values",
            Kind::List(&Kind::Raw),
            "[]",
            "Its values in order: plain, or { label, value } or { label, set = { PATH = VALUE } }. None: those of points.",
        ),
        Field::optional("quick", Kind::List(&Kind::Raw), "all", "Those of the values that --quick keeps."),
    ]],
    ..Table::EMPTY
};

static METRIC: Table = Table {
    name: "metric",
    text: "A number computed from each run.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name, unit included: a column of results.csv."),
        Field::default("unit", Kind::Text, "", "Its unit."),
        Field::default("text", Kind::Text, "", "What it is."),
        Field::required("expression", Kind::Text, "How it is computed from flows.csv."),
        Field::default("experiments", NAMES, "[]", "The experiments that have it; none named: all."),
    ]],
    ..Table::EMPTY
};

const SCALE: Kind = Kind::Choice(&[Choice::new("linear", "linear"), Choice::new("log", "logarithmic")]);
const ANY: Kind = Kind::Number { min: f64::NEG_INFINITY, max: f64::INFINITY };

static PLOT: Table = Table {
    name: "plot",
    text: "A picture in the report. Published values are drawn beside measured ones where there are any.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name: that of its file."),
        Field::optional("title", Kind::Text, "its name", "Heading."),
        Field::default(
            "kind",
            Kind::Choice(&[
                Choice::new("line", "means with intervals over an axis"),
                Choice::new("bars", "means with intervals, a bar per value of an axis"),
                Choice::new("scatter", "every run, one metric over another"),
                Choice::new("distribution", "how a metric is distributed over runs"),
                Choice::new("time", "samples of series.csv over time"),
                Choice::new(
                    "ellipse",
                    "samples of series.csv, one metric over another: mean and one standard deviation",
                ),
                Choice::new("curve", "means, one metric over another, joined along an axis"),
                Choice::new("profile", "means of several metrics side by side"),
                Choice::new("table", "means in a table, an axis down and another across"),
            ]),
            "line",
            "How it is drawn.",
        ),
        Field::optional(
            "x",
            Kind::Text,
            "none",
            "An axis (`line`, `bars`) or a metric (`scatter`, `distribution`, `curve`; `ellipse`: of series.csv).",
        ),
        Field::optional("y", Kind::Text, "none", "A metric; with `time` and `ellipse` one of series.csv."),
        Field::optional(
            "subject",
            Kind::Text,
            "all",
            "Whose samples (`time`, `ellipse`, which needs it): a flow, a link, `LINK.reverse`.",
        ),
        Field::optional(
            "group",
            Kind::INTERVAL,
            "100ms for `ellipse`, else none",
            "Samples are averaged over such intervals (`time`, `ellipse`).",
        ),
        Field::default(
            "scaling",
            Kind::Choice(&[
                Choice::new("sigma", "semi-axes of one standard deviation"),
                Choice::new(
                    "n3",
                    "multiplied by standard deviations in s and Mibit/s, as in the ns-3 evaluation suite",
                ),
            ]),
            "sigma",
            "How large an `ellipse` is.",
        ),
        Field::optional("along", Kind::Text, "none", "The axis that joins the points of a `curve`."),
        Field::default("metrics", NAMES, "[]", "The places of a `profile`; the cells of a `table`."),
        Field::default("labels", TEXTS, "[]", "What the metrics of a `profile` are called."),
        Field::optional("rows", Kind::Text, "none", "The axis whose values are the rows of a `table`."),
        Field::optional("columns", Kind::Text, "none", "The axis, or `experiment`, whose values are its columns."),
        Field::empty(
            "best",
            Kind::Map(&Kind::Choice(&[Choice::new("high", "the highest"), Choice::new("low", "the lowest")])),
            "Metrics of a `table`, and which value of a column is marked.",
        ),
        Field::optional("series", TEXTS, "all axes that vary, without x", "Axes that make one curve for each value."),
        Field::optional("where", Kind::Map(&Kind::Raw), "all points", "Axes and the values, one or a list, shown."),
        Field::optional("x_scale", SCALE, "linear", "Scale to the right."),
        Field::optional("y_scale", SCALE, "linear", "Scale upwards."),
        Field::optional("x_label", Kind::Text, "that of the axis or metric", "Label to the right."),
        Field::optional("y_label", Kind::Text, "that of the metric", "Label upwards."),
        Field::optional("x_unit", Kind::Text, "that of the axis or metric", "Unit to the right."),
        Field::optional("y_unit", Kind::Text, "that of the metric", "Unit upwards."),
        Field::default("x_reversed", Kind::Boolean, "false", "Small values to the right."),
        Field::optional("x_min", ANY, "from the data", "Where it begins to the right."),
        Field::optional("x_max", ANY, "from the data", "Where it ends to the right."),
        Field::optional("y_min", ANY, "from the data", "Where it begins upwards."),
        Field::optional("y_max", ANY, "from the data", "Where it ends upwards."),
        Field::optional("caption", Kind::Text, "none", "What it shows."),
    ]],
    ..Table::EMPTY
};

static CLAIM: Table = Table {
    name: "claim",
    text: "Something that is said to be so, as an expression over metrics at points.",
    fields: &[&[
        Field::required("name", Kind::Name, "Its name."),
        Field::required("text", Kind::Text, "What it says."),
        Field::default("source", Kind::Text, "", "Who says so."),
        Field::required("expression", Kind::Text, "When it holds."),
        Field::default("explained_by", Kind::Text, "", "The claim that explains it if it does not hold."),
    ]],
    ..Table::EMPTY
};

static PUBLISHED: Table = Table {
    name: "published value",
    text: "A published value, with the columns of published.csv.",
    fields: &[&[
        Field::optional("experiment", Kind::Name, "the only one", "The experiment."),
        Field::default("point", Kind::Text, "", "axis=value;axis=value."),
        Field::required("metric", Kind::Name, "The metric."),
        Field::required("value", ANY, "The value."),
        Field::default("tolerance", Kind::Text, "0", "`5%` of the value, or a number in its unit."),
        Field::default("source", Kind::Text, "", "Where it was published."),
        Field::default("note", Kind::Text, "", "What a reader should know."),
        Field::default("explained_by", Kind::Text, "", "The claim that explains a difference."),
    ]],
    ..Table::EMPTY
};

static LEFT_OUT: Table = Table {
    name: "left out",
    text: "Values of an axis that the user left out: claims that speak of them say so.",
    fields: &[&[
        Field::required("experiment", Kind::Name, "The experiment."),
        Field::required("axis", Kind::Name, "The axis."),
        Field::default("values", TEXTS, "[]", "The values."),
    ]],
    ..Table::EMPTY
};

static SCENARIO_SETTING: Table = Table {
    name: "scenario setting",
    text: "A scenario path that the user set.",
    fields: &[&[
        Field::required("scenario", Kind::Name, "The scenario."),
        Field::required("path", Kind::Text, "The path."),
        Field::required("value", Kind::Raw, "The value."),
    ]],
    ..Table::EMPTY
};

/// The reference page of study files: what stands at the end of `docs/studies.md`.
pub fn reference() -> String {
    fullpipe_scenario::schema::reference(&STUDY)
}
