//! Expectations: bounds on metrics that `[[expect]]` declares, for continuous integration. A scenario bounds metrics of
//! its flows. A study bounds the means of its metrics at points. After the runs, each expectation has a row in
//! `expectations.csv`.

use crate::bound::{expected_of, in_unit};
use crate::flow_values::{RunTables, flow_metrics, flow_unit, never_has};
use crate::plan::Plan;
use crate::study::{Expectation, ExpectationTarget, Experiment, Metric, Study, label_of};
use fullpipe_archive::{Bound, ExpectRecord, ExpectationRow, SummaryRow, read_key};
use fullpipe_scenario::LoadedScenario;
use fullpipe_scenario::schema::{
    Error, Errors, Node, NodeContent, Sources, Tree, Value, abbreviate_names, matches, nearest_name,
};
use fullpipe_units::words::{format_quantity, format_with_digits};
use std::path::Path;

/// Returns the expectations of a scenario that is run without a study.
///
/// # Errors
/// If a metric is unknown, or if a bound is not a quantity in the metric's unit.
pub fn scenario_expectations(loaded: &LoadedScenario) -> Result<Vec<Expectation>, Errors> {
    let (mut expectations, mut errors) = (Vec::new(), Vec::new());
    for (index, tree) in loaded.expectations.iter().enumerate() {
        let path = format!("expect.{index}");
        let metric = tree.text("metric");
        let Some(unit) = flow_unit(metric) else {
            let names = flow_metrics();
            let message = format!("unknown metric {metric}");
            let expected = abbreviate_names(names.iter().copied());
            let place = tree.location_of("metric");
            let mut error = loaded.sources.error(place, &format!("{path}.metric"), message, expected);
            // A name without its unit differs too much from the full name for the general suggestion.
            let without_unit =
                names.iter().find(|name| name.strip_prefix(metric).is_some_and(|unit| unit.starts_with('_')));
            let near = without_unit.copied().or_else(|| nearest_name(metric, names.iter().copied()));
            error.suggestion = near.map(|name| format!("\"{name}\""));
            errors.push(error);
            continue;
        };
        let wanted = tree.text("flow");
        let (pattern, is_reverse) = wanted.strip_suffix(".reverse").map_or((wanted, false), |flows| (flows, true));
        let mut selected = loaded.scenario.flows.iter().enumerate().filter(|(_, flow)| matches(pattern, &flow.name));
        // One such flow is sufficient, because the flows that match one pattern are usually alike.
        if let Some((message, expected)) =
            selected.find_map(|(flow, _)| never_has(metric, is_reverse, &loaded.scenario, flow))
        {
            let key = if tree.is_given("flow") { "flow" } else { "metric" };
            errors.push(loaded.sources.error(tree.location_of(key), &format!("{path}.{key}"), message, expected));
            continue;
        }
        let [min, max] = bounds(tree, &path, unit, &loaded.sources, &mut errors);
        let of = ExpectationTarget::Flows(tree.text("flow").to_owned());
        expectations.push(Expectation { metric: metric.to_owned(), unit: unit.to_owned(), min, max, of, record: None });
    }
    if errors.is_empty() { Ok(expectations) } else { Err(Errors(errors)) }
}

/// Returns the expectations in a study's file.
pub(crate) fn of_study(
    root: &Tree,
    experiments: &[Experiment],
    metrics: &[Metric],
    sources: &Sources,
    errors: &mut Vec<Error>,
) -> Vec<Expectation> {
    // Records may be those of only a part of a study. The expectations were checked when the study was complete.
    let is_whole = root.text("build").is_empty();
    let mut expectations = Vec::new();
    let records: Vec<ExpectRecord> = read_key(root, "expect");
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
            unknown(errors, tree.location_of("metric"), "metric", "metric", &record.metric, &names);
            continue;
        };
        let is_selected = |experiment: &&Experiment| {
            metric.applies_to(&experiment.name)
                && (record.experiments.is_empty() || record.experiments.contains(&experiment.name))
        };
        let selected: Vec<&Experiment> = experiments.iter().filter(is_selected).collect();
        let mut filters = Vec::new();
        // An unknown experiment has no axes to check.
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
        let of = ExpectationTarget::Points { experiments: record.experiments.clone(), filters };
        if errors.len() == before && is_whole && !selected.iter().any(|experiment| has_point(experiment, &of)) {
            let message = format!("no point with the metric {} is selected", record.metric);
            errors.push(sources.error(tree.place, &path, message, Vec::new()));
        }
        if record.min.is_none() && record.max.is_none() {
            let expected = vec!["min".to_owned(), "max".to_owned()];
            errors.push(sources.error(tree.place, &path, format!("{path} has neither min nor max"), expected));
        }
        let [min, max] = bounds(tree, &path, &metric.unit, sources, errors);
        let (metric, unit) = (record.metric.clone(), metric.unit.clone());
        expectations.push(Expectation { metric, unit, min, max, of, record: Some(record) });
    }
    expectations
}

/// Returns the values of a filter, which is one value or a list.
fn values(node: &Node) -> &[Node] {
    match &node.content {
        NodeContent::Array(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

fn has_point(experiment: &Experiment, of: &ExpectationTarget) -> bool {
    let ExpectationTarget::Points { filters, .. } = of else { return false };
    experiment.combinations().iter().any(|levels| {
        filters.iter().all(|(name, labels)| {
            experiment.axis(name).is_some_and(|(index, axis)| {
                levels.get(index).and_then(|level| axis.levels.get(*level)).is_some_and(|l| labels.contains(&l.label))
            })
        })
    })
}

/// Returns both bounds of an expectation in the metric's unit.
fn bounds(tree: &Tree, path: &str, unit: &str, sources: &Sources, errors: &mut Vec<Error>) -> [Option<f64>; 2] {
    let bounds = ["min", "max"].map(|key| {
        let value = tree.get(key)?;
        match in_unit(&Bound::from_checked_value(value), unit) {
            Ok(number) => Some(number),
            Err(reason) => {
                let message = format!("found {} for {key}{reason}", sources.excerpt(value.place));
                let expected = vec![expected_of(unit)];
                errors.push(sources.error(value.place, &format!("{path}.{key}"), message, expected));
                None
            }
        }
    });
    if let [Some(min), Some(max)] = bounds
        && min > max
    {
        let (place, max) = (tree.location_of("min"), format_quantity(max, unit));
        let message = format!("min = {} is above max = {max}", sources.excerpt(place));
        errors.push(sources.error(place, &format!("{path}.min"), message, vec!["min at most max".to_owned()]));
    }
    bounds
}

/// Formats two different values with enough digits for the texts to differ.
fn both_in_words(value: f64, bound: f64, unit: &str) -> (String, String) {
    let words = |digits| (format_with_digits(value, unit, digits), format_with_digits(bound, unit, digits));
    (4..17).map(words).find(|(value, bound)| value != bound).unwrap_or_else(|| words(17))
}

impl Expectation {
    /// Returns the metric and its subjects as text, such as "goodput_bps of all flows".
    pub fn label(&self) -> String {
        match &self.of {
            ExpectationTarget::Flows(pattern) if pattern == "*" => format!("{} of all flows", self.metric),
            ExpectationTarget::Flows(pattern) => format!("{} of {pattern}", self.metric),
            ExpectationTarget::Points { experiments, filters } => {
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

    /// Returns how far a value is outside the bounds; the result is negative inside. A missing value has the largest
    /// distance.
    fn excess(&self, value: Option<f64>) -> f64 {
        let Some(value) = value else { return f64::INFINITY };
        let below = self.min.map_or(f64::NEG_INFINITY, |min| min - value);
        below.max(self.max.map_or(f64::NEG_INFINITY, |max| value - max))
    }

    /// Returns the reason why a value is not accepted.
    fn problem(&self, value: Option<f64>) -> Option<String> {
        let Some(value) = value else {
            // Only main directions of flows with a fixed amount of data have a completion time.
            let hint = if self.metric == "completion_s" {
                " (the flow is not complete, or this direction has no end)"
            } else {
                ""
            };
            return Some(format!("no value{hint}"));
        };
        let problem = |bound: f64, text: &str| {
            let (value, bound) = both_in_words(value, bound, &self.unit);
            format!("{value} is {text} {bound}")
        };
        let below = self.min.filter(|min| value < *min).map(|min| problem(min, "below the minimum"));
        below.or_else(|| self.max.filter(|max| value > *max).map(|max| problem(max, "above the maximum")))
    }

    /// Returns the row of `expectations.csv`, from the value of each subject.
    fn row(&self, values: Vec<(String, Option<f64>)>) -> ExpectationRow {
        let count = values.len();
        let failing = values.iter().filter(|(_, value)| self.problem(*value).is_some()).count();
        let worst = values.into_iter().reduce(
            |worst, next| {
                if self.excess(next.1) > self.excess(worst.1) { next } else { worst }
            },
        );
        let Some((subject, value)) = worst else {
            return self.not_checked("the settings of the study exclude these points");
        };
        let mut note = self.problem(value).unwrap_or_default();
        if failing > 1 {
            note += &format!(" ({failing} of {count} fail)");
        }
        let outcome = if failing > 0 { ExpectationRow::FAILED } else { ExpectationRow::MET }.to_owned();
        ExpectationRow { subject, value, outcome, note, ..self.not_checked("") }
    }

    fn not_checked(&self, note: &str) -> ExpectationRow {
        ExpectationRow {
            expectation: self.label(),
            unit: self.unit.clone(),
            min: self.min,
            max: self.max,
            outcome: ExpectationRow::NOT_CHECKED.to_owned(),
            note: note.to_owned(),
            ..ExpectationRow::default()
        }
    }
}

/// Returns the rows of `expectations.csv`. `rows` are the rows of `summary.csv`.
pub(crate) fn rows(study: &Study, plan: &Plan, rows: &[SummaryRow], folder: &Path) -> Vec<ExpectationRow> {
    // Only a single run has expectations of flows.
    let needs_run = study.expectations.iter().any(|expectation| matches!(expectation.of, ExpectationTarget::Flows(_)));
    let run = plan.runs.first().filter(|_| needs_run);
    let tables = run.map(|run| RunTables::read(&folder.join("runs").join(&run.key)));
    let row = |expectation: &Expectation| match &expectation.of {
        ExpectationTarget::Flows(pattern) => match &tables {
            Some(Ok(tables)) => expectation.row(tables.values(&expectation.metric, pattern)),
            Some(Err(error)) => expectation.not_checked(&format!("the run has no result: {error}")),
            None => expectation.not_checked("no run"),
        },
        ExpectationTarget::Points { experiments, filters } => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(unit: &str, min: Option<f64>, max: Option<f64>) -> Expectation {
        let (metric, of) = ("goodput_bps".to_owned(), ExpectationTarget::Flows("*".to_owned()));
        Expectation { metric, unit: unit.to_owned(), min, max, of, record: None }
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
        assert_eq!(failed.note, "300 ms is above the maximum 200 ms (2 of 3 fail)");
        let missing = row(&[("a", Some(9.0)), ("b", None)]);
        assert_eq!((missing.subject.as_str(), missing.value), ("b", None));
        assert!(missing.has_failed());
        assert_eq!(row(&[]).outcome, "not checked");
    }
}
