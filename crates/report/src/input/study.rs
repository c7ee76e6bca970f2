//! What the report takes from `study.toml`. The file is the resolved study (a single run is a study of one run); the
//! report needs its words only: title, source, parameters, axes, experiments, plots, texts of metrics and claims. All
//! may be absent and unknown keys are left alone: whether a study is a good one is for the `study` crate to say.
//!
//! ```toml
//! title = "TCP versus UDP over a shared Ethernet"
//! source = "A. Author, A title, 2021"       # citation; `description` is shown below it
//! quick = false                             # true: a banner says so
//! exact_seed = false                        # true: the folder of one run
//! command = "fullpipe study run tcp-vs-udp" # how it was called; otherwise made from what is known
//!
//! [[metric]]                                # likewise [[axis]] (with `values`), [[claim]], [[experiment]]
//! name = "throughput_bps"
//! text = "Throughput"
//! unit = "bps"
//! expression = "..."
//!
//! [[plot]]
//! name = "throughput"                       # file plots/throughput.svg
//! title = "Throughput"
//! kind = "line"                             # line, scatter, distribution, bars, time, ellipse, curve, profile, table
//! x = "packets"                             # an axis (line, bars), a metric (scatter, distribution, curve, ellipse)
//! y = "throughput_bps"                      # a metric of summary.csv; of series.csv with "time" and "ellipse"
//! series = ["transport"]                    # axes that make one curve each; default: all that vary, without x
//! where = { draw = "published" }            # only points with these values; a list allows several
//! x_scale = "log"                           # linear (default) or log; y_scale likewise
//! x_label = "Packets sent"                  # default: from [[axis]] or [[metric]], else the name in words
//! x_unit = "packets"                        # default: from summary.csv, else from the name's ending
//! y_min = 0.0                               # x_min, x_max, y_min, y_max in base units
//! x_reversed = true                         # small values to the right
//! caption = "..."
//! subject = "bottleneck"                    # whose samples (time, ellipse)
//! group = "100ms"                           # samples are averaged over such intervals (time, ellipse)
//! scaling = "n3"                            # sigma (default) or n3 (ellipse)
//! along = "buffer"                          # the axis that orders the points of a curve
//! metrics = ["a_s", "b_s"]                  # the places of a profile, with `labels`; the cells of a table
//! rows = "control"                          # an axis (table); `columns` likewise
//! best = { a_s = "low" }                    # which value of a column is marked (table)
//! ```

use crate::error::ReportError;
use std::path::Path;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// The words of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Study {
    /// Name of the study, where it says one.
    pub(crate) name: Option<String>,
    /// Title.
    pub(crate) title: Option<String>,
    /// Citation of what is reproduced.
    pub(crate) source: Option<String>,
    /// What it is about.
    pub(crate) description: Option<String>,
    /// Seed from which those of the runs follow.
    pub(crate) seed: Option<i64>,
    /// Whether it was shortened.
    pub(crate) quick: bool,
    /// Whether it is the wrapping of a single run.
    pub(crate) single: bool,
    /// The command that made it.
    pub(crate) command: Option<String>,
    /// Parameters: name, value, what it is.
    pub(crate) parameters: Vec<(String, String, String)>,
    /// Axes: name, values, what it is.
    pub(crate) axes: Vec<(String, Vec<String>, String)>,
    /// Experiments: name and what it is about.
    pub(crate) experiments: Vec<(String, String)>,
    /// Metrics, for the table of definitions: name, unit, text, expression.
    pub(crate) metrics: Vec<[String; 4]>,
    /// Plots to draw.
    pub(crate) plots: Vec<PlotSpec>,
    /// Claims: name, text, expression.
    pub(crate) claims: Vec<[String; 3]>,
    /// Texts of metrics and axes.
    pub(crate) words: Vec<Words>,
    /// The file as it stands.
    pub(crate) text: String,
}

/// What a metric or an axis is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) unit: Option<String>,
}

/// A plot as the study asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlotSpec {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) x: Option<String>,
    pub(crate) y: Option<String>,
    pub(crate) series: Option<Vec<String>>,
    pub(crate) filter: Vec<(String, Vec<String>)>,
    pub(crate) x_log: bool,
    pub(crate) y_log: bool,
    pub(crate) x_label: Option<String>,
    pub(crate) y_label: Option<String>,
    pub(crate) x_unit: Option<String>,
    pub(crate) y_unit: Option<String>,
    pub(crate) x_min: Option<f64>,
    pub(crate) x_max: Option<f64>,
    pub(crate) y_min: Option<f64>,
    pub(crate) y_max: Option<f64>,
    pub(crate) caption: Option<String>,
    pub(crate) x_reversed: bool,
    /// Whose samples are drawn.
    pub(crate) subject: Option<String>,
    /// Nanoseconds over which samples are averaged.
    pub(crate) group_ns: Option<u64>,
    pub(crate) scaling: Scaling,
    pub(crate) along: Option<String>,
    pub(crate) metrics: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) rows: Option<String>,
    pub(crate) columns: Option<String>,
    /// Metrics of which the best value is marked.
    pub(crate) best: Vec<(String, Best)>,
}

/// How large an ellipse is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// One standard deviation along each principal axis.
    #[default]
    Sigma,
    /// As the ns-3 evaluation suite draws it.
    N3,
}

/// Which of several values is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Best {
    High,
    Low,
}

impl Study {
    /// Reads the file.
    pub(crate) fn read(file: &Path) -> Result<Self, ReportError> {
        let bytes = std::fs::read(file).map_err(|cause| ReportError::read(file, cause))?;
        let text = String::from_utf8(bytes).map_err(|_| ReportError::corrupt(file, "is not UTF-8 text"))?;
        let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let line = error.span().map(|span| {
                let upto = text.as_bytes().get(..span.start).unwrap_or_default();
                1 + upto.iter().filter(|b| **b == b'\n').count() as u64
            });
            let problem = format!("is not valid TOML: {}", error.message().trim().replace('\n', ", "));
            ReportError::Corrupt { file: file.to_path_buf(), line, problem }
        })?;
        let mut study = Self::from_table(document.as_table(), file)?;
        study.text = text;
        Ok(study)
    }

    fn from_table(root: &dyn TableLike, file: &Path) -> Result<Self, ReportError> {
        let below = |name: &str| root.get(name).and_then(Item::as_table_like);
        let text = |key: &str| root.get(key).and_then(Item::as_str).filter(|t| !t.trim().is_empty()).map(str::to_owned);
        let flag = |key: &str| root.get(key).and_then(Item::as_bool) == Some(true);
        let mut words = Vec::new();
        for key in ["metric", "axis"] {
            for (name, table) in tables(root, key) {
                if let Some(name) = name {
                    let text = string(table, "text").unwrap_or_default();
                    let (text, unit) = match string(table, "unit").filter(|u| !u.is_empty()) {
                        Some(unit) => (text, Some(unit)),
                        None => split_unit(&text),
                    };
                    words.push(Words { name, text, unit });
                }
            }
        }
        let text_of = |table: &dyn TableLike, key: &str| string(table, key).unwrap_or_default();
        let axes = tables(root, "axis")
            .into_iter()
            .filter_map(|(name, table)| Some((name?, list(table.get("values")?), text_of(table, "text"))))
            .collect();
        let experiments =
            tables(root, "experiment").into_iter().filter_map(|(name, t)| Some((name?, text_of(t, "text")))).collect();
        let metrics = tables(root, "metric")
            .into_iter()
            .filter_map(|(name, t)| Some([name?, text_of(t, "unit"), text_of(t, "text"), text_of(t, "expression")]))
            .collect();
        let claims = tables(root, "claim")
            .into_iter()
            .filter_map(|(name, t)| Some([name?, text_of(t, "text"), text_of(t, "expression")]))
            .collect();
        let mut parameters = Vec::new();
        for (name, item) in below("parameters").into_iter().flat_map(|table| table.iter()) {
            let (value, text) = match item.as_table_like() {
                Some(table) => (table.get("default").map(shown).unwrap_or_default(), text_of(table, "text")),
                None => (shown(item), String::new()),
            };
            parameters.push((name.to_owned(), value, text));
        }
        let plots = tables(root, "plot")
            .into_iter()
            .enumerate()
            .map(|(i, (name, table))| plot(name.unwrap_or_else(|| format!("plot-{}", i + 1)), table))
            .collect::<Result<_, _>>()
            .map_err(|problem: String| ReportError::corrupt(file, problem))?;
        Ok(Self {
            name: text("name"),
            title: text("title"),
            source: text("source"),
            description: text("description"),
            seed: root.get("seed").and_then(Item::as_integer),
            quick: flag("quick"),
            single: flag("exact_seed"),
            command: text("command"),
            parameters,
            axes,
            experiments,
            metrics,
            claims,
            plots,
            words,
            text: String::new(),
        })
    }

    /// What a metric or axis is called, where the study says it.
    pub(crate) fn words_of(&self, name: &str) -> Option<&Words> {
        self.words.iter().find(|w| w.name == name)
    }
}

/// An axis has no key for its unit; its text may end with one: "Send buffer, bytes".
fn split_unit(text: &str) -> (String, Option<String>) {
    match text.rsplit_once(", ") {
        Some((name, unit @ ("bytes" | "bit/s" | "packets" | "s" | "ms" | "us" | "ns" | "Hz" | "dB" | "%"))) => {
            (name.to_owned(), Some(unit.to_owned()))
        }
        _ => (text.to_owned(), None),
    }
}

/// The tables under a key: an array of tables that carry their `name`, or a table of named tables.
fn tables<'a>(root: &'a dyn TableLike, key: &str) -> Vec<(Option<String>, &'a dyn TableLike)> {
    match root.get(key) {
        Some(Item::ArrayOfTables(array)) => array.iter().map(|t| (string(t, "name"), t as &dyn TableLike)).collect(),
        Some(Item::Value(Value::Array(array))) => {
            array.iter().filter_map(Value::as_inline_table).map(|t| (string(t, "name"), t as &dyn TableLike)).collect()
        }
        Some(item) => item
            .as_table_like()
            .map(|table| {
                table.iter().filter_map(|(name, item)| Some((Some(name.to_owned()), item.as_table_like()?))).collect()
            })
            .unwrap_or_default(),
        None => Vec::new(),
    }
}

fn plot(name: String, table: &dyn TableLike) -> Result<PlotSpec, String> {
    let log = |key: &str| match table.get(key).map(|i| i.as_str()) {
        None | Some(Some("linear")) => Ok(false),
        Some(Some("log")) => Ok(true),
        Some(_) => Err(format!("plot `{name}`: `{key}` is \"linear\" or \"log\"")),
    };
    let number = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(item) => item
            .as_float()
            .or_else(|| item.as_integer().map(|i| i as f64))
            .filter(|v| v.abs() <= 1e200)
            .map(Some)
            .ok_or_else(|| format!("plot `{name}`: `{key}` is a number")),
    };
    let filter = table
        .get("where")
        .and_then(Item::as_table_like)
        .into_iter()
        .flat_map(|t| t.iter())
        .map(|(axis, item)| (axis.to_owned(), list(item)))
        .collect();
    let group_ns = match table.get("group").map(|item| item.as_str().and_then(nanoseconds)) {
        None => None,
        Some(Some(group)) => Some(group),
        Some(None) => return Err(format!("plot `{name}`: `group` is a duration above zero, \"100ms\"")),
    };
    let scaling = match table.get("scaling").map(Item::as_str) {
        None | Some(Some("sigma")) => Scaling::Sigma,
        Some(Some("n3")) => Scaling::N3,
        Some(_) => return Err(format!("plot `{name}`: `scaling` is \"sigma\" or \"n3\"")),
    };
    let mut best = Vec::new();
    for (metric, item) in table.get("best").and_then(Item::as_table_like).into_iter().flat_map(|t| t.iter()) {
        best.push(match item.as_str() {
            Some("high") => (metric.to_owned(), Best::High),
            Some("low") => (metric.to_owned(), Best::Low),
            _ => return Err(format!("plot `{name}`: the best of a metric is \"high\" or \"low\"")),
        });
    }
    let all = |key: &str| table.get(key).map(list).unwrap_or_default();
    Ok(PlotSpec {
        title: string(table, "title"),
        kind: string(table, "kind"),
        x: string(table, "x"),
        y: string(table, "y"),
        series: table.get("series").map(list),
        filter,
        x_log: log("x_scale")?,
        y_log: log("y_scale")?,
        x_label: string(table, "x_label"),
        y_label: string(table, "y_label"),
        x_unit: string(table, "x_unit"),
        y_unit: string(table, "y_unit"),
        x_min: number("x_min")?,
        x_max: number("x_max")?,
        y_min: number("y_min")?,
        y_max: number("y_max")?,
        caption: string(table, "caption"),
        x_reversed: table.get("x_reversed").and_then(Item::as_bool) == Some(true),
        subject: string(table, "subject"),
        group_ns,
        scaling,
        along: string(table, "along"),
        metrics: all("metrics"),
        labels: all("labels"),
        rows: string(table, "rows"),
        columns: string(table, "columns"),
        best,
        name,
    })
}

/// A duration as study files have it, "100ms"; `None` if it is none or rounds to nothing.
fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let scale = match unit.trim_start() {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let nanoseconds = (number.parse::<f64>().ok()? * scale).round();
    // Far above any run, and far below what a number can hold.
    (1.0..=1e18).contains(&nanoseconds).then_some(nanoseconds as u64)
}

fn string(table: &dyn TableLike, key: &str) -> Option<String> {
    table.get(key).and_then(Item::as_str).map(str::to_owned)
}

/// A list of values, or one value as a list of one, each as `summary.csv` writes it.
fn list(item: &Item) -> Vec<String> {
    match item {
        Item::Value(Value::Array(array)) => array.iter().map(shown_value).collect(),
        item => vec![shown(item)],
    }
}

/// A value as a reader wants it: strings without quotes, everything else as TOML without decoration.
fn shown(item: &Item) -> String {
    match item {
        Item::Value(value) => shown_value(value),
        Item::None => String::new(),
        other => other.to_string().trim().to_owned(),
    }
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.value().clone(),
        Value::Array(array) => array.iter().map(shown_value).collect::<Vec<_>>().join(", "),
        other => other.to_string().trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, expected) in
            [("100ms", 100_000_000), ("1.5 s", 1_500_000_000), ("7ns", 7), ("2min", 120_000_000_000)]
        {
            assert_eq!(nanoseconds(text), Some(expected), "{text}");
        }
        for text in ["", "100", "ms", "-1s", "0s", "1e3s", "0.1ns", "99999999999h", "1.2.3s"] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_unit_may_end_a_text() {
        assert_eq!(split_unit("Send buffer, bytes"), ("Send buffer".to_owned(), Some("bytes".to_owned())));
        assert_eq!(split_unit("Published, or random"), ("Published, or random".to_owned(), None));
    }
}
