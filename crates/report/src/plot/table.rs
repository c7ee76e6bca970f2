//! Summary tables: an axis as rows, another axis (or the experiments) as columns, and a cell for each of some metrics.
//! The best value of a column is marked if the study states whether high or low values are best.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::numbers::{mean_and_interval, significant};
use crate::page::published::unit_of;
use crate::page::table::{Field, Heading, Table};
use crate::plot::Drawing;
use crate::plot::gather::{self, series_label, shown, word_for};
use fullpipe_archive::{Best, Point, SummaryRow};
use std::collections::BTreeMap;

/// Significant digits of a value without an interval.
const DIGITS: usize = 4;

/// Draws the table.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    let (Some(down), Some(across), Some(metrics @ [_, ..])) = (&spec.rows, &spec.columns, spec.metrics.as_deref())
    else {
        return Drawing::nothing("Not drawn: the table needs `rows` and `columns` (axes) and `metrics`.");
    };
    let cells = Cells::gather(records, spec, metrics, down, across);
    if cells.by_place.is_empty() {
        let metrics = metrics.join(", ");
        return Drawing::nothing(format!("Not drawn: the summary has no value of {metrics} by {down} and {across}."));
    }
    let mut columns = Vec::new();
    let mut spans: Vec<(String, usize)> = vec![(String::new(), 1)];
    // A metric has the same unit in all columns, so that its numbers are comparable.
    let largest_of = |metric: &str| {
        let means = cells.columns.iter().flat_map(|column| cells.column(column, metric)).filter_map(|row| row.mean);
        means.fold(0.0, |a: f64, v| a.max(v.abs()))
    };
    for column in &cells.columns {
        let before = columns.len();
        for metric in metrics {
            let values = || cells.column(column, metric);
            // A metric that an experiment does not have is omitted from the experiment's columns.
            let Some(first) = values().next() else { continue };
            let unit = unit_of(records, first).scale_for(largest_of(metric));
            columns.push((*column, metric.as_str(), unit));
        }
        // A value is preceded by the name of its axis; the name of an experiment is clear without it.
        let named = match across.as_str() {
            Point::EXPERIMENT => (*column).to_owned(),
            across => format!("{}: {}", word_for(records, across), shown(column)),
        };
        spans.push((named, columns.len() - before));
    }
    let mut headings = vec![Heading::text(word_for(records, down))];
    headings.extend(columns.iter().map(|(_, metric, unit)| Heading::number(unit.heading(&word_for(records, metric)))));
    let mut table = Table { keys: 1, headings, spans, ..Table::default() };
    for (key, label) in &cells.groups {
        let mut body: Vec<Vec<Field>> = Vec::new();
        let names: Vec<&&str> = cells.rows.iter().filter(|name| cells.has_row(key, name)).collect();
        for name in &names {
            let mut fields = vec![Field::Text(shown(name))];
            for (column, metric, unit) in &columns {
                let of = |row: &str| cells.at(key, row, column, metric).and_then(|r| r.mean);
                let marked = spec
                    .best
                    .iter()
                    .flatten()
                    .find(|(m, _)| m == metric)
                    .is_some_and(|(_, best)| is_best(of(name), names.iter().map(|other| of(other)), *best));
                fields.push(match cells.at(key, name, column, metric).and_then(|r| Some((r.mean?, r.ci95))) {
                    None => Field::Number("–".to_owned()),
                    Some((mean, half)) => cell(unit.value(mean), half.map(|h| unit.value(h)), marked),
                });
            }
            body.push(fields);
        }
        table.groups.push(((!label.is_empty()).then(|| label.clone()), body));
    }
    Drawing { picture: None, data: None, table: Some(table), remarks: remarks(records, spec) }
}

/// Formats a value, with its interval if it has one.
fn cell(mean: f64, half: Option<f64>, best: bool) -> Field {
    let text = match half.map(|half| mean_and_interval(mean, Some(half))) {
        Some((mean, Some(half))) => format!("{mean} ± {half}"),
        _ => significant(mean, DIGITS),
    };
    if best { Field::Best(text) } else { Field::Number(text) }
}

/// Returns whether a value is the best of several values. If all values are equal, none is the best.
fn is_best(value: Option<f64>, all: impl Iterator<Item = Option<f64>> + Clone, best: Best) -> bool {
    let better = |a: f64, b: f64| if best == Best::High { a > b } else { a < b };
    let Some(value) = value else { return false };
    let others = || all.clone().flatten().filter(|other| *other != value);
    others().next().is_some() && !others().any(|other| better(other, value))
}

fn remarks(records: &Records, spec: &PlotSpec) -> Vec<String> {
    let told = spec.best.iter().flatten().map(|(metric, best)| {
        let word = gather::lower_first(&word_for(records, metric));
        format!("{} {word}", if *best == Best::High { "highest" } else { "lowest" })
    });
    let told: Vec<String> = told.collect();
    let mut remarks = Vec::new();
    if !told.is_empty() {
        remarks.push(format!("★ best of its column: {}.", told.join(", ")));
    }
    remarks
}

/// The positions of the rows of the summary.
struct Cells<'a> {
    /// Values of the other axes that vary, each with its label.
    groups: Vec<(Key<'a>, String)>,
    rows: Vec<&'a str>,
    columns: Vec<&'a str>,
    by_place: BTreeMap<(Key<'a>, &'a str, &'a str, &'a str), &'a SummaryRow>,
}

type Key<'a> = Vec<Option<&'a str>>;

impl<'a> Cells<'a> {
    fn gather(records: &'a Records, spec: &'a PlotSpec, metrics: &[String], down: &str, across: &str) -> Self {
        let rows: Vec<&'a SummaryRow> = records
            .summary
            .iter()
            .filter(|r| metrics.contains(&r.metric) && gather::selected(spec, &r.point))
            .filter(|r| r.point.get(down).is_some() && r.point.get(across).is_some())
            .collect();
        let further: Vec<String> = gather::varying(rows.iter().map(|r| &r.point))
            .into_iter()
            .filter(|axis| axis != down && axis != across)
            .collect();
        let mut cells = Self { groups: Vec::new(), rows: Vec::new(), columns: Vec::new(), by_place: BTreeMap::new() };
        for row in rows {
            let point: &'a Point = &row.point;
            let key: Key<'a> = further.iter().map(|axis| point.get(axis)).collect();
            let (name, column) = (point.get(down).unwrap_or_default(), point.get(across).unwrap_or_default());
            if !cells.groups.iter().any(|(known, _)| *known == key) {
                cells.groups.push((key.clone(), series_label(&further, point)));
            }
            if !cells.rows.contains(&name) {
                cells.rows.push(name);
            }
            if !cells.columns.contains(&column) {
                cells.columns.push(column);
            }
            cells.by_place.insert((key, name, column, &row.metric), row);
        }
        cells
    }

    fn at(&self, key: &Key<'a>, row: &'a str, column: &'a str, metric: &'a str) -> Option<&'a SummaryRow> {
        self.by_place.get(&(key.clone(), row, column, metric)).copied()
    }

    fn has_row(&self, key: &Key<'a>, row: &str) -> bool {
        self.by_place.keys().any(|(of, name, ..)| of == key && *name == row)
    }

    fn column(&self, column: &str, metric: &str) -> impl Iterator<Item = &'a SummaryRow> {
        let places = self.by_place.iter().filter(move |((.., of, what), _)| *of == column && *what == metric);
        places.map(|(_, row)| *row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_value_is_marked_only_among_different_values() {
        let best = |value, all: &[Option<f64>], best| is_best(value, all.iter().copied(), best);
        let all = [Some(3.0), None, Some(5.0), Some(3.0)];
        assert!(best(Some(5.0), &all, Best::High) && !best(Some(3.0), &all, Best::High));
        assert!(best(Some(3.0), &all, Best::Low) && !best(Some(5.0), &all, Best::Low));
        assert!(!best(None, &all, Best::Low));
        // If all values are equal, or there is a single value, no value is the best.
        assert!(!best(Some(0.0), &[Some(0.0), Some(0.0)], Best::Low) && !best(Some(1.0), &[Some(1.0)], Best::High));
    }
}
