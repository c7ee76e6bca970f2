//! Expectations: the bounds on metrics that `[[expect]]` declares, for continuous integration. A scenario bounds metrics of flows, a
//! study the means of its metrics at points. After the runs, each expectation gives a row of `expectations.csv`.

use crate::plan::Plan;
use crate::study::{Expectation, Experiment, Metric, Study, Subjects, label_of};
use fullpipe_archive::{
    Bound, ExpectRecord, ExpectationRow, FIGURES, FLOWS, FigureRow, FlowRow, RecordError, SummaryRow, of_key,
};
use fullpipe_scenario::Loaded;
use fullpipe_scenario::schema::{
    Content, Error, Errors, Node, Sources, Tree, Value, matches, nearest, quantity, some_of,
};
use std::path::Path;

/// The metrics of flows that follow from several columns of `flows.csv`, with their units.
const DERIVED: [(&str, &str); 4] =
    [("throughput_bps", "bit/s"), ("loss_ratio", ""), ("mean_delay_s", "s"), ("mean_jitter_s", "s")];

/// The names of all metrics of flows: common ones first, because errors list the first few.
fn flow_metrics() -> Vec<&'static str> {
    let mut names = vec!["goodput_bps", "completion_s"];
    names.extend(DERIVED.map(|(name, _)| name));
    let more = FLOWS.numeric_names().chain(fullpipe_lab::metric_names());
    more.for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}

/// The unit of a metric of flows; `None` if there is no such metric.
fn flow_unit(metric: &str) -> Option<&'static str> {
    let derived = DERIVED.iter().find(|(name, _)| *name == metric).map(|(_, unit)| *unit);
    let column = || FLOWS.numeric_column(metric).map(|column| column.unit);
    let reported = || {
        let declared = fullpipe_lab::metrics().flat_map(|(_, metrics)| metrics).find(|known| known.name == metric);
        declared.map(|known| known.unit)
    };
    // The last part of the name of a program's own metric is its unit.
    let of_program = || {
        let (_, last) = metric.strip_prefix("program_")?.rsplit_once('_')?;
        Some(match last {
            "s" => "s",
            "bps" => "bit/s",
            "bytes" => "bytes",
            _ => "",
        })
    };
    derived.or_else(column).or_else(reported).or_else(of_program)
}

/// The expectations of a scenario that is run on its own.
///
/// # Errors
/// If a metric is unknown, or if a bound is not a quantity in its unit.
pub fn of_scenario(loaded: &Loaded) -> Result<Vec<Expectation>, Errors> {
    let (mut expectations, mut errors) = (Vec::new(), Vec::new());
    for (index, tree) in loaded.expectations.iter().enumerate() {
        let path = format!("expect.{index}");
        let metric = tree.text("metric");
        let Some(unit) = flow_unit(metric) else {
            let names = flow_metrics();
            let message = format!("unknown metric {metric}");
            let expected = some_of(names.iter().copied());
            let place = tree.place_of("metric");
            let mut error = loaded.sources.error(place, &format!("{path}.metric"), message, expected);
            // Without its unit, a name is not near to the whole name.
            let without_unit =
                names.iter().find(|name| name.strip_prefix(metric).is_some_and(|unit| unit.starts_with('_')));
            let near = without_unit.copied().or_else(|| nearest(metric, names.iter().copied()));
            error.suggestion = near.map(|name| format!("\"{name}\""));
            errors.push(error);
            continue;
        };
        let [min, max] = bounds(tree, &path, unit, &loaded.sources, &mut errors);
        let of = Subjects::Flows(tree.text("flow").to_owned());
        expectations.push(Expectation { metric: metric.to_owned(), unit: unit.to_owned(), min, max, of, record: None });
    }
    if errors.is_empty() { Ok(expectations) } else { Err(Errors(errors)) }
}

/// The expectations of a study's file.
pub(crate) fn of_study(
    root: &Tree,
    experiments: &[Experiment],
    metrics: &[Metric],
    sources: &Sources,
    errors: &mut Vec<Error>,
) -> Vec<Expectation> {
    // Records may be of a part of a study; its expectations were checked when it was whole.
    let is_whole = root.text("build").is_empty();
    let mut expectations = Vec::new();
    let records: Vec<ExpectRecord> = of_key(root, "expect");
    let trees = root.get("expect").map(Value::tables).unwrap_or_default();
    for (index, (record, tree)) in records.into_iter().zip(trees).enumerate() {
        let path = format!("expect.{index}");
        let before = errors.len();
        let unknown = |errors: &mut Vec<Error>, place, key: &str, what: &str, name: &str, valid: &[&str]| {
            let message = format!("unknown {what} {name}");
            errors.push(sources.unknown_name(place, &format!("{path}.{key}"), message, name, valid));
        };
        let mut is_unknown = false;
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        for value in tree.list("experiments").iter().filter(|value| !names.contains(&value.text())) {
            unknown(errors, value.place, "experiments", "experiment", value.text(), &names);
            is_unknown = true;
        }
        let Some(metric) = metrics.iter().find(|metric| metric.name == record.metric) else {
            let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            unknown(errors, tree.place_of("metric"), "metric", "metric", &record.metric, &names);
            continue;
        };
        let is_selected = |experiment: &&Experiment| {
            metric.applies_to(&experiment.name)
                && (record.experiments.is_empty() || record.experiments.contains(&experiment.name))
        };
        let selected: Vec<&Experiment> = experiments.iter().filter(is_selected).collect();
        let mut filters = Vec::new();
        // An unknown experiment has no axes.
        let conditions = tree.get("where").filter(|_| !is_unknown).map(Value::map).unwrap_or_default();
        for entry in conditions {
            let axes: Vec<_> = selected.iter().filter_map(|experiment| experiment.axis(&entry.name)).collect();
            if axes.is_empty() && is_whole {
                let axes = selected.iter().flat_map(|experiment| &experiment.axes);
                let valid: Vec<&str> = axes.map(|axis| axis.name.as_str()).collect();
                unknown(errors, entry.name_place, "where", "axis", &entry.name, &valid);
            }
            let mut labels = Vec::new();
            for node in values(entry.value.raw()) {
                let levels = || axes.iter().flat_map(|(_, axis)| &axis.levels);
                let label = levels().find(|level| level.is(node)).map(|level| level.label.clone());
                if label.is_none() && is_whole && !axes.is_empty() {
                    let valid: Vec<&str> = levels().map(|level| level.label.as_str()).collect();
                    let label = label_of(node);
                    let message = format!("{label} is not a value of the axis {}", entry.name);
                    errors.push(sources.unknown_name(node.place, &format!("{path}.where"), message, &label, &valid));
                }
                labels.push(label.unwrap_or_else(|| label_of(node)));
            }
            filters.push((entry.name.clone(), labels));
        }
        let of = Subjects::Points { experiments: record.experiments.clone(), filters };
        if errors.len() == before && is_whole && !selected.iter().any(|experiment| has_point(experiment, &of)) {
            let message = format!("no point with the metric {} is selected", record.metric);
            errors.push(sources.error(tree.place, &path, message, Vec::new()));
        }
        if record.min.is_none() && record.max.is_none() {
            let expected = vec!["min".to_owned(), "max".to_owned()];
            errors.push(sources.error(tree.place, &path, "the expectation has no bound", expected));
        }
        let [min, max] = bounds(tree, &path, &metric.unit, sources, errors);
        let (metric, unit) = (record.metric.clone(), metric.unit.clone());
        expectations.push(Expectation { metric, unit, min, max, of, record: Some(record) });
    }
    expectations
}

/// The values of a filter: one, or a list.
fn values(node: &Node) -> &[Node] {
    match &node.content {
        Content::Array(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

fn has_point(experiment: &Experiment, of: &Subjects) -> bool {
    let Subjects::Points { filters, .. } = of else { return false };
    experiment.combinations().iter().any(|levels| {
        filters.iter().all(|(name, labels)| {
            experiment.axis(name).is_some_and(|(index, axis)| {
                levels.get(index).and_then(|level| axis.levels.get(*level)).is_some_and(|l| labels.contains(&l.label))
            })
        })
    })
}

/// Both bounds of an expectation in the metric's unit.
fn bounds(tree: &Tree, path: &str, unit: &str, sources: &Sources, errors: &mut Vec<Error>) -> [Option<f64>; 2] {
    let bounds = ["min", "max"].map(|key| {
        let value = tree.get(key)?;
        match in_unit(&Bound::of(value), unit) {
            Ok(number) => Some(number),
            Err(reason) => {
                let message = format!("found {} for {key}{reason}", sources.found(value.place));
                let expected = vec![expected_of(unit)];
                errors.push(sources.error(value.place, &format!("{path}.{key}"), message, expected));
                None
            }
        }
    });
    if let [Some(min), Some(max)] = bounds
        && min > max
    {
        let message = format!("min is above max ({})", in_words(max, unit));
        errors.push(sources.error(tree.place_of("min"), &format!("{path}.min"), message, Vec::new()));
    }
    bounds
}

/// A unit: its dimension, and how many of the smallest units (bit/s, ns, bytes, %) it has.
fn base_of(unit: &str) -> Option<(Dimension, f64)> {
    let base = match unit {
        "bit/s" => (Dimension::Rate, 1.0),
        "kbit/s" => (Dimension::Rate, 1e3),
        "Mbit/s" => (Dimension::Rate, 1e6),
        "Gbit/s" => (Dimension::Rate, 1e9),
        "s" => (Dimension::Time, 1e9),
        "ms" => (Dimension::Time, 1e6),
        "us" | "µs" => (Dimension::Time, 1e3),
        "bytes" | "B" => (Dimension::Size, 1.0),
        "kB" => (Dimension::Size, 1e3),
        "MB" => (Dimension::Size, 1e6),
        "KiB" => (Dimension::Size, 1024.0),
        "MiB" => (Dimension::Size, 1_048_576.0),
        "%" => (Dimension::Share, 1.0),
        "" => (Dimension::Share, 100.0),
        _ => return None,
    };
    Some(base)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Rate,
    Time,
    Size,
    Share,
}

/// A bound as a number in the unit, or why it is none.
fn in_unit(bound: &Bound, unit: &str) -> Result<f64, String> {
    let text = match bound {
        Bound::Number(number) => return Ok(*number),
        Bound::Quantity(text) => text,
    };
    let Some((dimension, one)) = base_of(unit) else {
        return Err(format!(": the unit of the metric is {unit}"));
    };
    let because = |malformed: quantity::Malformed| {
        let reason = malformed.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let near = malformed.suggestion.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        reason.to_string() + &near
    };
    let base = match dimension {
        Dimension::Rate => quantity::parse_rate(text).map(|rate| rate.bits_per_second() as f64).map_err(because)?,
        Dimension::Time => quantity::parse_duration(text).map(|time| time.as_nanos() as f64).map_err(because)?,
        Dimension::Size => quantity::parse_size(text).map(|bytes| bytes as f64).map_err(because)?,
        Dimension::Share => {
            let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            percent.filter(|percent| percent.is_finite()).ok_or_else(String::new)?
        }
    };
    Ok(base / one)
}

/// What a bound of a metric in this unit may be, for errors.
fn expected_of(unit: &str) -> String {
    let example = match base_of(unit).map(|(dimension, _)| dimension) {
        Some(Dimension::Rate) => "a rate such as \"20Mbit/s\"",
        Some(Dimension::Time) => "a duration such as \"50ms\"",
        Some(Dimension::Size) => "a size such as \"1MB\"",
        Some(Dimension::Share) => "a percentage such as \"2%\"",
        None => return format!("a number of {unit}"),
    };
    if unit.is_empty() { format!("a number, or {example}") } else { format!("{example}, or a number of {unit}") }
}

/// A value in its unit with four significant digits; bit/s, s and bytes with the prefix that suits the value.
pub fn in_words(value: f64, unit: &str) -> String {
    with_digits(value, unit, 4)
}

fn with_digits(value: f64, unit: &str, digits: i32) -> String {
    let prefixes: &[(&str, f64)] = match unit {
        "bit/s" => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
        "s" => &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)],
        "bytes" => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)],
        _ => &[],
    };
    let fits = |prefix: &&(&str, f64)| value.abs() >= prefix.1;
    let base = prefixes.iter().find(|(name, _)| *name == unit);
    let (unit, factor) = match value == 0.0 {
        true => (unit, 1.0),
        false => prefixes.iter().find(fits).or(base).copied().unwrap_or((unit, 1.0)),
    };
    let scaled = value / factor;
    let magnitude = if scaled == 0.0 { 0 } else { fullpipe_units::math::log10(scaled.abs()).floor() as i32 };
    let decimals = (digits - 1 - magnitude).clamp(0, 17) as usize;
    let mut text = format!("{scaled:.decimals$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match unit {
        "" => text,
        "%" => text + " %",
        unit => format!("{text} {unit}"),
    }
}

/// Two different values in words that differ.
fn both_in_words(value: f64, bound: f64, unit: &str) -> (String, String) {
    let words = |digits| (with_digits(value, unit, digits), with_digits(bound, unit, digits));
    (4..17).map(words).find(|(value, bound)| value != bound).unwrap_or_else(|| words(17))
}

impl Expectation {
    /// The metric and what it is of.
    pub fn name(&self) -> String {
        match &self.of {
            Subjects::Flows(pattern) if pattern == "*" => format!("{} of all flows", self.metric),
            Subjects::Flows(pattern) => format!("{} of {pattern}", self.metric),
            Subjects::Points { experiments, filters } => {
                let mut conditions = Vec::new();
                if !experiments.is_empty() {
                    conditions.push(experiments.join("|"));
                }
                conditions.extend(filters.iter().map(|(axis, labels)| format!("{axis}={}", labels.join("|"))));
                if conditions.is_empty() {
                    format!("{} at all points", self.metric)
                } else {
                    format!("{} at {}", self.metric, conditions.join(";"))
                }
            }
        }
    }

    /// How far a value is outside the bounds; below zero inside. A missing value is farthest outside.
    fn excess(&self, value: Option<f64>) -> f64 {
        let Some(value) = value else { return f64::INFINITY };
        let below = self.min.map_or(f64::NEG_INFINITY, |min| min - value);
        below.max(self.max.map_or(f64::NEG_INFINITY, |max| value - max))
    }

    /// Why a value is not accepted.
    fn problem(&self, value: Option<f64>) -> Option<String> {
        let Some(value) = value else {
            let hint = if self.metric == "completion_s" { ": the flow is not complete" } else { "" };
            return Some(format!("there is no value{hint}"));
        };
        let problem = |bound: f64, text: &str| {
            let (value, bound) = both_in_words(value, bound, &self.unit);
            format!("{value} is {text} {bound}")
        };
        let below = self.min.filter(|min| value < *min).map(|min| problem(min, "below the minimum"));
        below.or_else(|| self.max.filter(|max| value > *max).map(|max| problem(max, "above the maximum")))
    }

    /// The row of `expectations.csv`, from the value of each subject.
    fn row(&self, values: Vec<(String, Option<f64>)>) -> ExpectationRow {
        let count = values.len();
        let failing = values.iter().filter(|(_, value)| self.problem(*value).is_some()).count();
        let worst = values.into_iter().reduce(
            |worst, next| {
                if self.excess(next.1) > self.excess(worst.1) { next } else { worst }
            },
        );
        let Some((subject, value)) = worst else {
            return self.not_checked("the settings of the study leave out these points");
        };
        let mut note = self.problem(value).unwrap_or_default();
        if failing > 1 {
            note += &format!(" (one of {failing} that fail, of {count})");
        }
        let outcome = if failing > 0 { ExpectationRow::FAILED } else { ExpectationRow::MET }.to_owned();
        ExpectationRow { subject, value, outcome, note, ..self.not_checked("") }
    }

    fn not_checked(&self, note: &str) -> ExpectationRow {
        ExpectationRow {
            expectation: self.name(),
            unit: self.unit.clone(),
            min: self.min,
            max: self.max,
            outcome: ExpectationRow::NOT_CHECKED.to_owned(),
            note: note.to_owned(),
            ..ExpectationRow::default()
        }
    }
}

/// The rows of `expectations.csv`. `rows` are those of `summary.csv`.
pub(crate) fn rows(study: &Study, plan: &Plan, rows: &[SummaryRow], folder: &Path) -> Vec<ExpectationRow> {
    // Only a single run has expectations of flows.
    let needs_run = study.expectations.iter().any(|expectation| matches!(expectation.of, Subjects::Flows(_)));
    let run = plan.runs.first().filter(|_| needs_run);
    let tables = run.map(|run| RunTables::read(&folder.join("runs").join(&run.key)));
    let row = |expectation: &Expectation| match &expectation.of {
        Subjects::Flows(pattern) => match &tables {
            Some(Ok(tables)) => expectation.row(tables.values(&expectation.metric, pattern)),
            Some(Err(error)) => expectation.not_checked(&format!("the run has no result: {error}")),
            None => expectation.not_checked("there is no run"),
        },
        Subjects::Points { experiments, filters } => {
            let is_selected = |row: &&SummaryRow| {
                let experiment = row.point.experiment().or(study.selected.first().map(String::as_str));
                row.metric == expectation.metric
                    && (experiments.is_empty() || experiment.is_some_and(|name| experiments.iter().any(|e| e == name)))
                    && filters.iter().all(|(axis, labels)| {
                        row.point.get(axis).is_some_and(|value| labels.iter().any(|label| label == value))
                    })
            };
            let value = |row: &SummaryRow| (row.point.to_string(), row.mean);
            expectation.row(rows.iter().filter(is_selected).map(value).collect())
        }
    };
    study.expectations.iter().map(row).collect()
}

/// The tables of a run that have metrics of flows.
struct RunTables {
    flows: Vec<FlowRow>,
    figures: Vec<FigureRow>,
}

impl RunTables {
    fn read(folder: &Path) -> Result<Self, RecordError> {
        let flows = FLOWS.open(&folder.join(FLOWS.file))?.rows()?;
        let file = folder.join(FIGURES.file);
        let figures = if file.is_file() { FIGURES.open(&file)?.rows()? } else { Vec::new() };
        Ok(RunTables { flows, figures })
    }

    /// The value of each selected flow. A flow without a value has one entry without.
    fn values(&self, metric: &str, pattern: &str) -> Vec<(String, Option<f64>)> {
        let (flows, is_reverse) = match pattern.strip_suffix(".reverse") {
            Some(flows) => (flows, true),
            None => (pattern, false),
        };
        let base = |flow: &str| {
            let flow = flow.strip_suffix(".reverse").unwrap_or(flow);
            flow.split_once('#').map_or(flow, |(flow, _)| flow).to_owned()
        };
        let is_selected = |row: &&FlowRow| {
            let is_direction = if is_reverse { row.flow.ends_with(".reverse") } else { row.is_main() };
            is_direction && matches(flows, &base(&row.flow))
        };
        let of_flows = DERIVED.iter().any(|(name, _)| *name == metric) || FLOWS.numeric_column(metric).is_some();
        if of_flows {
            let rows = self.flows.iter().filter(is_selected);
            let values: Vec<_> = rows.map(|row| (row.flow.clone(), flow_value(metric, row))).collect();
            return if values.is_empty() { vec![(pattern.to_owned(), None)] } else { values };
        }
        // Either end may report an application metric.
        let mut values: Vec<(String, Option<f64>)> = Vec::new();
        let mut without: Vec<String> = Vec::new();
        for flow in self.flows.iter().map(|row| base(&row.flow)).filter(|flow| matches(flows, flow)) {
            if without.contains(&flow) || values.iter().any(|(subject, _)| base_of_end(subject) == flow) {
                continue;
            }
            let reported = self.figures.iter().filter(|row| row.flow == flow && row.figure == metric);
            let reported = reported.filter(|row| row.value.is_some());
            let ends: Vec<_> = reported.map(|row| (format!("{flow}@{}", row.host), row.value)).collect();
            if ends.is_empty() {
                without.push(flow);
            }
            values.extend(ends);
        }
        values.extend(without.into_iter().map(|flow| (flow, None)));
        if values.is_empty() { vec![(pattern.to_owned(), None)] } else { values }
    }
}

/// The flow of `FLOW@HOST`. No name has an `@` in it.
fn base_of_end(subject: &str) -> &str {
    subject.split_once('@').map_or(subject, |(flow, _)| flow)
}

fn flow_value(metric: &str, row: &FlowRow) -> Option<f64> {
    match metric {
        "throughput_bps" => row.throughput_bps(),
        "mean_delay_s" => row.mean_delay_s(),
        "mean_jitter_s" => row.mean_jitter_s(),
        "loss_ratio" => {
            let sent = row.measured_tx_packets;
            (sent > 0).then(|| row.measured_lost_packets as f64 / sent as f64)
        }
        column => FLOWS.numeric_column(column).map(|column| column.number(row)).filter(|value| !value.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(unit: &str, min: Option<f64>, max: Option<f64>) -> Expectation {
        let (metric, of) = ("goodput_bps".to_owned(), Subjects::Flows("*".to_owned()));
        Expectation { metric, unit: unit.to_owned(), min, max, of, record: None }
    }

    #[test]
    fn a_bound_with_a_unit_is_converted_into_the_unit_of_the_metric() {
        let cases = [
            ("20Mbit/s", "bit/s", 20e6),
            ("20Mbit/s", "Mbit/s", 20.0),
            ("50ms", "s", 0.05),
            ("50ms", "ms", 50.0),
            ("90ms", "s", 0.09),
            ("1MB", "bytes", 1e6),
            ("2%", "", 0.02),
            ("2%", "%", 2.0),
        ];
        for (text, unit, expected) in cases {
            let value = in_unit(&Bound::Quantity(text.to_owned()), unit).expect(text);
            assert!(value == expected, "{text} in {unit}: {value}");
        }
        assert_eq!(in_unit(&Bound::Number(3.0), "packets"), Ok(3.0));
        for (text, unit) in
            [("20Mbit/s", "s"), ("50ms", "bit/s"), ("5", ""), ("5packets", "packets"), ("1BDP", "bytes")]
        {
            assert!(in_unit(&Bound::Quantity(text.to_owned()), unit).is_err(), "{text} in {unit}");
        }
    }

    #[test]
    fn values_in_words_have_a_suitable_prefix() {
        let cases = [
            (9_412_345.0, "bit/s", "9.412 Mbit/s"),
            (20e6, "bit/s", "20 Mbit/s"),
            (0.0471, "s", "47.1 ms"),
            (0.0, "s", "0 s"),
            (12.5, "ms", "12.5 ms"),
            (0.012_345_6, "", "0.01235"),
            (1780.0, "packets", "1780 packets"),
            (123_456.0, "packets", "123456 packets"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(in_words(value, unit), expected);
        }
    }

    #[test]
    fn a_value_that_rounds_to_its_bound_is_printed_with_more_digits() {
        let problem = expectation("bit/s", Some(20e6), None).problem(Some(19_999_990.0));
        assert_eq!(problem.as_deref(), Some("19.99999 Mbit/s is below the minimum 20 Mbit/s"));
    }

    #[test]
    fn a_row_has_the_subject_that_is_farthest_outside_the_bounds() {
        let expectation = expectation("s", Some(0.1), Some(0.2));
        let row = |values: &[(&str, Option<f64>)]| {
            expectation.row(values.iter().map(|(subject, value)| ((*subject).to_owned(), *value)).collect())
        };
        let met = row(&[("a", Some(0.15)), ("b", Some(0.2)), ("c", Some(0.1))]);
        assert_eq!((met.outcome.as_str(), met.subject.as_str(), met.note.as_str()), ("met", "b", ""));
        let failed = row(&[("a", Some(0.15)), ("b", Some(0.3)), ("c", Some(0.05))]);
        assert_eq!((failed.outcome.as_str(), failed.subject.as_str()), ("failed", "b"));
        assert_eq!(failed.note, "300 ms is above the maximum 200 ms (one of 2 that fail, of 3)");
        let missing = row(&[("a", Some(9.0)), ("b", None)]);
        assert_eq!((missing.subject.as_str(), missing.value), ("b", None));
        assert!(missing.has_failed());
        assert_eq!(row(&[]).outcome, "not checked");
    }
}
