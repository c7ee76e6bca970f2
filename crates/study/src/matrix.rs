//! The matrix of a study: cells of criteria (rows) under conditions (columns), in which the values of an axis, such as
//! congestion controls, are compared with references. After the runs, `matrix.csv` has the worst and the median point
//! of each cell, and `findings.csv` has the paired differences between each candidate and each reference.
//!
//! A comparison needs one number for each replication: the mean over the points of the cell of the difference between
//! candidate and reference. The points are fixed, so the interval covers the replications only. It does not extend to
//! other points.

use crate::settings::labeled;
use crate::study::{Axis, Experiment, Level, Matrix, Metric, Study, label_of};
use crate::summary::MeasuredValues;
use crate::verdict::judge_difference;
use fullpipe_archive::{Best, Finding, FindingRow, MatrixCell, MatrixRow, Point, read_key};
use fullpipe_scenario::schema::{Error, Node, NodeContent, SourceLocation, Sources, Tree, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Reads `[matrix]` of a study's file and checks its names.
pub(crate) fn of_study(
    root: &Tree,
    experiments: &[Experiment],
    metrics: &[Metric],
    sources: &Sources,
    errors: &mut Vec<Error>,
) -> Option<Matrix> {
    let value = root.get("matrix").filter(|value| value.given)?;
    let matrix: Matrix = read_key::<Option<fullpipe_archive::SubTable<Matrix>>>(root, "matrix")?.0;
    // Records may be those of only a part of a study. The matrix was checked when the study was complete.
    if root.text("build").is_empty() {
        Checker { matrix: &matrix, experiments, metrics, sources, errors }.check(value.table());
    }
    Some(matrix)
}

struct Checker<'a> {
    matrix: &'a Matrix,
    experiments: &'a [Experiment],
    metrics: &'a [Metric],
    sources: &'a Sources,
    errors: &'a mut Vec<Error>,
}

impl Checker<'_> {
    fn wrong(&mut self, place: SourceLocation, key: &str, message: String, expected: &[&str]) {
        let expected = expected.iter().map(|text| (*text).to_owned()).collect();
        self.errors.push(self.sources.error(place, &format!("matrix.{key}"), message, expected));
    }

    fn exists(&mut self, place: SourceLocation, key: &str, what: &str, name: &str, valid: &[&str]) -> bool {
        let is_known = valid.contains(&name);
        if !is_known {
            let message = format!("unknown {what} {name}");
            self.errors.push(self.sources.unknown_name(place, &format!("matrix.{key}"), message, name, valid));
        }
        is_known
    }

    fn check(&mut self, tree: &Tree) {
        let axes: BTreeSet<&str> =
            axes_of(self.experiments, |_| true).into_iter().map(|axis| axis.name.as_str()).collect();
        let axes: Vec<&str> = axes.into_iter().collect();
        let axis = self.matrix.axis.as_str();
        if self.exists(tree.location_of("axis"), "axis", "axis", axis, &axes) {
            let levels =
                axes_of(self.experiments, |_| true).into_iter().filter(|of| of.name == axis).flat_map(|of| &of.levels);
            let labels: BTreeSet<&str> = levels.map(|level| level.label.as_str()).collect();
            let labels: Vec<&str> = labels.into_iter().collect();
            for value in tree.list("references") {
                self.exists(value.place, "references", "value of the axis", value.text(), &labels);
            }
        }
        if self.matrix.references.is_empty() {
            self.wrong(tree.location_of("references"), "references", "no references".into(), &["at least one value"]);
        }
        let mut seen = BTreeSet::new();
        for (cell, tree) in self.matrix.cell.iter().zip(tree.tables("cell")) {
            self.cell(cell, tree);
            for row in &cell.rows {
                for column in cell.columns.iter().filter(|column| !seen.insert((row.clone(), (*column).clone()))) {
                    let message = format!("the cell of row {row} and column {column} is declared twice");
                    self.wrong(tree.place, "cell", message, &["one cell for each row and column"]);
                }
            }
        }
        for (row, _) in &self.matrix.rows {
            for (column, _) in &self.matrix.columns {
                if !seen.contains(&(row.clone(), column.clone())) {
                    let message = format!("no cell for row {row} and column {column}");
                    self.wrong(tree.place, "cell", message, &["experiments and worse", "not_run"]);
                }
            }
        }
    }

    fn cell(&mut self, cell: &MatrixCell, tree: &Tree) {
        let matrix = self.matrix;
        for (key, declared) in [("rows", &matrix.rows), ("columns", &matrix.columns)] {
            let names: Vec<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
            let what = key.trim_end_matches('s');
            for value in tree.list(key) {
                self.exists(value.place, &format!("cell.{key}"), what, value.text(), &names);
            }
        }
        let chosen = cell.experiments.as_deref().unwrap_or_default();
        let worse = cell.worse.as_deref().unwrap_or_default();
        match (&cell.not_run, chosen.is_empty() && worse.is_empty()) {
            (Some(reason), true) if !reason.trim().is_empty() => return,
            (Some(_), true) => {
                self.wrong(tree.location_of("not_run"), "cell.not_run", "the reason is empty".into(), &["a reason"]);
                return;
            }
            (Some(_), false) => {
                let message = "the cell has experiments or metrics, and `not_run`".to_owned();
                self.wrong(tree.location_of("not_run"), "cell", message, &["one of them"]);
            }
            (None, _) if chosen.is_empty() || worse.is_empty() => {
                let message = "the cell is neither run nor has it a reason".to_owned();
                self.wrong(tree.place, "cell", message, &["experiments and worse", "not_run"]);
            }
            (None, _) => {}
        }
        let names: Vec<&str> = self.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        for value in tree.get("experiments").map(Value::list).unwrap_or_default() {
            if self.exists(value.place, "cell.experiments", "experiment", value.text(), &names) {
                let experiment = self.experiments.iter().find(|experiment| experiment.name == value.text());
                if experiment.is_some_and(|experiment| experiment.axis(&matrix.axis).is_none()) {
                    let message = format!("the experiment {} has no axis {}", value.text(), matrix.axis);
                    self.wrong(value.place, "cell.experiments", message, &["an experiment with this axis"]);
                }
            }
        }
        let valid: Vec<&str> = self.metrics.iter().map(|metric| metric.name.as_str()).collect();
        for entry in tree.get("worse").map(Value::map).unwrap_or_default() {
            if !self.exists(entry.name_place, "cell.worse", "metric", &entry.name, &valid) {
                continue;
            }
            let metric = self.metrics.iter().find(|metric| metric.name == entry.name);
            if !chosen.iter().any(|name| metric.is_some_and(|metric| metric.applies_to(name))) {
                let message = format!("the metric {} applies to no experiment of the cell", entry.name);
                self.wrong(entry.name_place, "cell.worse", message, &["a metric of the experiments"]);
            }
        }
        for entry in tree.get("where").map(Value::map).unwrap_or_default() {
            let axes = axes_of(self.experiments, |name| chosen.iter().any(|chosen| chosen == name));
            let valid: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let levels = axes.iter().filter(|axis| axis.name == entry.name).flat_map(|axis| &axis.levels);
            let labels: Vec<&str> = levels.map(|level| level.label.as_str()).collect();
            if self.exists(entry.name_place, "cell.where", "axis", &entry.name, &valid) {
                for node in values(entry.value.raw()) {
                    self.exists(node.place, "cell.where", "value of the axis", &label_of(node), &labels);
                }
            }
        }
    }
}

/// Returns the axes of the chosen experiments.
fn axes_of(experiments: &[Experiment], is_chosen: impl Fn(&str) -> bool) -> Vec<&Axis> {
    experiments
        .iter()
        .filter(|experiment| is_chosen(&experiment.name))
        .flat_map(|experiment| &experiment.axes)
        .collect()
}

/// Returns the values of a condition, which is one value or a list.
fn values(node: &Node) -> &[Node] {
    match &node.content {
        NodeContent::Array(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

impl Study {
    /// Returns the values of an axis that `--set AXIS=VALUE` stands for: if the matrix compares this axis, its
    /// references and the value, otherwise only the value.
    pub(crate) fn with_references(&self, axis: &str, value: &Node) -> Node {
        let is_list = matches!(value.content, NodeContent::Array(_));
        let matrix = self.matrix.as_ref().filter(|matrix| matrix.axis == axis && !is_list);
        let Some(matrix) = matrix else { return value.clone() };
        let text = |text: &String| Node { content: NodeContent::Text(text.clone()), place: value.place };
        let is_other = |reference: &&String| **reference != labeled(value);
        let mut all: Vec<Node> = matrix.references.iter().filter(is_other).map(text).collect();
        all.push(value.clone());
        Node { content: NodeContent::Array(all), place: value.place }
    }
}

/// Returns the labels of the values that are compared with the references.
fn candidates(study: &Study, matrix: &Matrix) -> Vec<String> {
    if let Some(candidate) = &matrix.candidate {
        return vec![candidate.clone()];
    }
    let mut found: Vec<String> = Vec::new();
    let axes = study.experiments.iter().filter_map(|experiment| experiment.axis(&matrix.axis));
    for level in axes.flat_map(|(_, axis)| &axis.levels) {
        if !matrix.references.contains(&level.label) && !found.contains(&level.label) {
            found.push(level.label.clone());
        }
    }
    found
}

/// The values of a metric of one control at the points of a cell: for each point its label, without the compared axis,
/// and a value for each replication.
type CellValues = Vec<(String, Replicated)>;

/// The value of each replication; `None` if it has none.
type Replicated = Vec<Option<f64>>;

/// A metric in a cell.
struct CellMetric<'a> {
    row: &'a str,
    column: &'a str,
    metric: &'a Metric,
    worse: Best,
    /// The values of each control: first the candidates, then the references that are not candidates.
    controls: Vec<(String, CellValues)>,
}

/// Returns the rows of `matrix.csv` and `findings.csv`.
pub(crate) fn rows(measured: &MeasuredValues<'_>, study: &Study) -> (Vec<MatrixRow>, Vec<FindingRow>) {
    let Some(matrix) = &study.matrix else { return Default::default() };
    let candidates = candidates(study, matrix);
    let others = matrix.references.iter().filter(|reference| !candidates.contains(reference));
    let controls: Vec<String> = candidates.iter().chain(others).cloned().collect();
    let mut rows = Vec::new();
    let mut cells: Vec<CellMetric<'_>> = Vec::new();
    for (row, _) in &matrix.rows {
        for (column, _) in &matrix.columns {
            let is_here = |cell: &&MatrixCell| cell.rows.contains(row) && cell.columns.contains(column);
            let Some(cell) = matrix.cell.iter().find(is_here) else { continue };
            let not_run = |reason: &str| MatrixRow {
                row: row.clone(),
                column: column.clone(),
                note: format!("not run: {}", reason.strip_prefix("not run: ").unwrap_or(reason)),
                ..MatrixRow::default()
            };
            if let Some(reason) = &cell.not_run {
                rows.push(not_run(reason));
                continue;
            }
            let chosen = cell.experiments.as_deref().unwrap_or_default();
            if !chosen.iter().any(|name| study.selected.contains(name)) {
                rows.push(not_run(&format!("the experiments are not selected ({})", chosen.join(", "))));
                continue;
            }
            for (name, worse) in cell.worse.as_deref().unwrap_or_default() {
                let Some((index, metric)) = study.metrics.iter().enumerate().find(|(_, known)| known.name == *name)
                else {
                    continue;
                };
                let of_control =
                    |control: &String| (control.clone(), cell_values(measured, study, matrix, cell, index, control));
                let controls: Vec<(String, CellValues)> = controls.iter().map(of_control).collect();
                let cell = CellMetric { row, column, metric, worse: *worse, controls };
                rows.extend(
                    cell.controls.iter().map(|(control, values)| cell.matrix_row(control, values, study.quick)),
                );
                cells.push(cell);
            }
        }
    }
    let compared = |cell: &CellMetric<'_>, candidate: &str| {
        matrix.references.iter().filter(|reference| *reference != candidate && cell.of(reference).is_some()).count()
    };
    let comparisons: usize =
        cells.iter().map(|cell| candidates.iter().map(|candidate| compared(cell, candidate)).sum::<usize>()).sum();
    let mut findings = Vec::new();
    for cell in &cells {
        for candidate in &candidates {
            for reference in matrix.references.iter().filter(|reference| *reference != candidate) {
                findings.push(cell.finding(candidate, reference, comparisons as u64, study.quick));
            }
        }
    }
    (rows, findings)
}

/// Returns the values of a metric of one control at the points of a cell.
fn cell_values(
    measured: &MeasuredValues<'_>,
    study: &Study,
    matrix: &Matrix,
    cell: &MatrixCell,
    metric: usize,
    control: &str,
) -> CellValues {
    let chosen = cell.experiments.as_deref().unwrap_or_default();
    let filters = cell.r#where.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for (index, point) in measured.points_of_plan().iter().enumerate() {
        let applies = chosen.contains(&point.experiment) && study.metrics[metric].applies_to(&point.experiment);
        let Some(experiment) = study.experiment(&point.experiment).filter(|_| applies) else { continue };
        let level = |name: &str| {
            let (index, axis) = experiment.axis(name)?;
            point.levels.get(index).and_then(|level| axis.levels.get(*level))
        };
        let passes = |(name, wanted): &(String, Node)| {
            level(name).is_some_and(|level: &Level| values(wanted).iter().any(|node| level.is(node)))
        };
        if level(&matrix.axis).is_none_or(|level| level.label != control) || !filters.iter().all(passes) {
            continue;
        }
        let others = point.place.0.iter().filter(|(name, _)| *name != matrix.axis).cloned().collect();
        found.push((Point(others).to_string(), measured.of(index, metric)));
    }
    found
}

impl CellMetric<'_> {
    fn of(&self, control: &str) -> Option<&CellValues> {
        self.controls.iter().find(|(known, _)| known == control).map(|(_, values)| values)
    }

    fn matrix_row(&self, control: &str, points: &CellValues, quick: bool) -> MatrixRow {
        let of_point = |(label, values): &(String, Vec<Option<f64>>)| {
            let values: Vec<f64> = values.iter().copied().flatten().collect();
            crate::statistics::summarize(&values).map(|summary| (label.clone(), summary))
        };
        let summaries: Vec<_> = points.iter().filter_map(of_point).collect();
        let is_worse = |one: f64, other: f64| match self.worse {
            Best::High => one > other,
            Best::Low => one < other,
        };
        let worst =
            summaries.iter().reduce(|worst, next| if is_worse(next.1.mean, worst.1.mean) { next } else { worst });
        let means: Vec<f64> = summaries.iter().map(|(_, summary)| summary.mean).collect();
        let mut notes = Vec::new();
        if quick {
            notes.push("quick".to_owned());
        }
        if summaries.len() < points.len() {
            notes.push(format!("no value at {} of {} points", points.len() - summaries.len(), points.len()));
        }
        let end = |sign: f64| worst.and_then(|(_, summary)| Some(summary.mean + sign * summary.ci95?));
        MatrixRow {
            row: self.row.to_owned(),
            column: self.column.to_owned(),
            metric: self.metric.name.clone(),
            control: control.to_owned(),
            n: Some(summaries.iter().map(|(_, summary)| summary.n as u64).sum()),
            worst: worst.map(|(_, summary)| summary.mean),
            median: crate::statistics::quantile(&means, 0.5),
            low: end(-1.0),
            high: end(1.0),
            worst_point: worst.map(|(label, _)| label.clone()).unwrap_or_default(),
            note: notes.join("; "),
        }
    }

    fn finding(&self, candidate: &str, reference: &str, comparisons: u64, quick: bool) -> FindingRow {
        let empty = CellValues::new();
        let of = |control: &str| self.of(control).unwrap_or(&empty);
        let (differences, points, left_out) = paired_differences(of(candidate), of(reference));
        let judged = judge_difference(&differences, comparisons);
        let worse = match self.worse {
            Best::High => Ordering::Greater,
            Best::Low => Ordering::Less,
        };
        let finding = match judged.sign {
            None => Finding::Undecided,
            Some(Ordering::Equal) => Finding::NotDistinguishable,
            Some(sign) if sign == worse => Finding::Worse,
            Some(_) => Finding::Better,
        };
        let mut notes = Vec::new();
        if quick {
            notes.push("quick".to_owned());
        }
        notes.extend(judged.note);
        if left_out > 0 {
            notes.push(format!("{left_out} points without any value are left out"));
        }
        FindingRow {
            row: self.row.to_owned(),
            column: self.column.to_owned(),
            metric: self.metric.name.clone(),
            unit: self.metric.unit.clone(),
            control: candidate.to_owned(),
            reference: reference.to_owned(),
            n: differences.len() as u64,
            points: points as u64,
            difference: judged.mean,
            low: judged.interval.map(|(low, _)| low),
            high: judged.interval.map(|(_, high)| high),
            comparisons,
            finding: Some(finding),
            note: notes.join("; "),
        }
    }
}

/// Returns, for each replication that is complete, the mean difference over points; then the number of points that
/// both have, and the number of those that are left out. A point is left out if neither has a value in any replication.
fn paired_differences(candidate: &CellValues, reference: &CellValues) -> (Vec<f64>, usize, usize) {
    let value_of = |values: &CellValues, label: &str| {
        values.iter().find(|(known, _)| known == label).map(|(_, values)| values.clone())
    };
    let both = candidate.iter().filter_map(|(label, values)| Some((values.clone(), value_of(reference, label)?)));
    let both: Vec<(Replicated, Replicated)> = both.collect();
    let has_value = |(one, other): &(Replicated, Replicated)| one.iter().chain(other).any(Option::is_some);
    let (with, without): (Vec<_>, Vec<_>) = both.into_iter().partition(has_value);
    let replications = with.iter().map(|(one, other)| one.len().min(other.len())).min().unwrap_or(0);
    let of_replication = |run: usize| {
        let differences: Option<Vec<f64>> = with.iter().map(|(one, other)| Some(one[run]? - other[run]?)).collect();
        crate::statistics::mean(&differences?)
    };
    ((0..replications).filter_map(of_replication).collect(), with.len(), without.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(points: &[(&str, &[Option<f64>])]) -> CellValues {
        points.iter().map(|(label, values)| ((*label).to_owned(), values.to_vec())).collect()
    }

    #[test]
    fn differences_are_means_over_points_of_complete_replications() {
        let candidate =
            values(&[("p=1", &[Some(3.0), Some(5.0), None]), ("p=2", &[Some(10.0), Some(20.0), Some(30.0)])]);
        let reference =
            values(&[("p=2", &[Some(4.0), Some(24.0), Some(1.0)]), ("p=1", &[Some(1.0), Some(1.0), Some(1.0)])]);
        // Replication 1: (3 - 1 + 10 - 4) / 2 = 4. Replication 2: (5 - 1 + 20 - 24) / 2 = 0. Replication 3 is not complete.
        assert_eq!(paired_differences(&candidate, &reference), (vec![4.0, 0.0], 2, 0));
    }

    #[test]
    fn a_point_without_any_value_is_left_out_but_a_point_without_values_of_one_control_is_not() {
        let candidate = values(&[("p=1", &[None]), ("p=2", &[Some(2.0)])]);
        assert_eq!(
            paired_differences(&candidate, &values(&[("p=1", &[None]), ("p=2", &[Some(1.5)])])),
            (vec![0.5], 1, 1)
        );
        assert_eq!(
            paired_differences(&candidate, &values(&[("p=1", &[Some(1.0)]), ("p=2", &[Some(1.5)])])),
            (vec![], 2, 0)
        );
    }
}
