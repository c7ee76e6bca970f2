//! The tables of application metrics and percentiles of packet delay, from `flow_summary.csv`.

use crate::input::{Records, distinct};
use crate::numbers::{exact, mean_and_interval, significant};
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{shown, varying, word_for};
use crate::unit::{Unit, words};
use fullpipe_archive::{FlowSummaryRow, Point};
use std::collections::BTreeMap;

/// The maximum number of metrics in one table.
const MOST_COLUMNS: usize = 7;
/// Significant digits of a quantity without an interval.
const DIGITS: usize = 4;
/// Significant digits of a percentile of delay, which has a resolution of 1/64.
const PERCENTILE_DIGITS: usize = 3;
/// The maximum number of rows; the file contains all rows.
const MOST_ROWS: usize = 500;

/// Returns the tables of an experiment, or of a study with a single experiment.
pub(crate) fn tables(records: &Records, experiment: Option<&str>) -> Vec<Table> {
    let rows: Vec<&FlowSummaryRow> = records.flows.iter().filter(|row| row.point.experiment() == experiment).collect();
    let several = rows.iter().any(|row| row.n > 1);
    let means = if several { ", means over runs ± half width of the 95 % interval" } else { "" };
    let applications: Vec<&FlowSummaryRow> = rows.iter().copied().filter(|row| !row.is_delay()).collect();
    let mut tables = Vec::new();
    let points = distinct(rows.iter().map(|row| &row.point)).len();
    if points <= 1 {
        tables.extend(long(&applications, &format!("Application metrics, of the whole run{means}"), several));
    } else {
        for (ends, metrics) in by_metrics(&applications) {
            let caption = format!("Application metrics, of the whole run, of {}{means}", list(&ends));
            let rows: Vec<_> = applications.iter().copied().filter(|row| ends.contains(&row.flow.as_str())).collect();
            tables.extend(metrics.chunks(MOST_COLUMNS).map(|metrics| wide(records, &rows, metrics, &caption)));
        }
    }
    let delays: Vec<&FlowSummaryRow> = rows.iter().copied().filter(|row| row.is_delay()).collect();
    if !delays.is_empty() {
        let metrics = distinct(delays.iter().map(|row| row.metric.as_str()));
        let caption =
            format!("One-way delay of the packets of each flow: percentiles over the packets of a run{means}");
        tables.push(wide(records, &delays, &metrics, &caption));
    }
    tables
}

/// Returns the names of the first few flows.
fn list(flows: &[&str]) -> String {
    match flows {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("{first} to {last}"),
    }
}

/// Returns groups of flows with the same metrics, and these metrics.
fn by_metrics<'a>(rows: &[&'a FlowSummaryRow]) -> Vec<(Vec<&'a str>, Vec<&'a str>)> {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for flow in distinct(rows.iter().map(|row| row.flow.as_str())) {
        let metrics = distinct(rows.iter().filter(|row| row.flow == flow).map(|row| row.metric.as_str()));
        match groups.iter_mut().find(|(_, known)| *known == metrics) {
            Some((flows, _)) => flows.push(flow),
            None => groups.push((vec![flow], metrics)),
        }
    }
    groups
}

/// Returns a table with one row for each metric, for many metrics of few flows.
fn long(rows: &[&FlowSummaryRow], caption: &str, several: bool) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let mut headings = vec![Heading::text("Flow"), Heading::text("Host"), Heading::text("Metric")];
    headings.push(Heading::number(if several { "Mean" } else { "Value" }));
    headings.push(Heading::text("Unit"));
    if several {
        headings.extend(["Smallest", "Median", "Largest", "Runs"].map(Heading::number));
    }
    let body = rows.iter().take(MOST_ROWS).map(|row| {
        let unit = Unit::new(&row.unit).scale_for(row.mean.unwrap_or_default().abs());
        let mut fields = vec![
            Field::Text(row.flow.clone()),
            Field::Text(row.host.clone()),
            Field::Text(words(&row.metric)),
            Field::Number(value(row, |value| unit.value(value))),
            Field::Text(unit.label.clone()),
        ];
        if several {
            let field = |value: Option<f64>| {
                Field::Number(value.map_or_else(|| "–".to_owned(), |value| number(row, unit.value(value))))
            };
            fields.extend([field(row.min), field(row.median), field(row.max), Field::Number(row.n.to_string())]);
        }
        fields
    });
    Some(Table::of_rows(cut(caption, rows.len()), 1, headings, body))
}

/// Returns a table with one row for each flow at each point, and one column for each metric.
fn wide(records: &Records, rows: &[&FlowSummaryRow], metrics: &[&str], caption: &str) -> Table {
    let axes = varying(rows.iter().map(|row| &row.point));
    type End<'a> = (&'a Point, &'a str, &'a str);
    let mut ends: Vec<End<'_>> = Vec::new();
    let mut cells: BTreeMap<(End<'_>, &str), &FlowSummaryRow> = BTreeMap::new();
    for row in rows.iter().copied().filter(|row| metrics.contains(&row.metric.as_str())) {
        let end = (&row.point, row.flow.as_str(), row.host.as_str());
        if ends.last() != Some(&end) && !cells.keys().any(|(known, _)| *known == end) {
            ends.push(end);
        }
        cells.insert((end, &row.metric), row);
    }
    let mut headings: Vec<Heading> = axes.iter().map(|axis| Heading::text(word_for(records, axis))).collect();
    headings.extend([Heading::text("Flow"), Heading::text("Host")]);
    let mut units = Vec::new();
    for metric in metrics {
        let column = || rows.iter().filter(|row| row.metric == *metric);
        let largest = column().filter_map(|row| row.mean).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = column().next().map_or_else(|| Unit::new(""), |row| Unit::new(&row.unit)).scale_for(largest);
        headings.push(Heading::number(unit.heading(&words(metric))));
        units.push(unit);
    }
    let several = rows.iter().any(|row| row.n > 1);
    if several {
        headings.push(Heading::number("Runs"));
    }
    let body = ends.iter().take(MOST_ROWS).map(|end| {
        let mut fields: Vec<Field> =
            axes.iter().map(|axis| Field::Text(end.0.get(axis).map_or_else(String::new, shown))).collect();
        fields.extend([Field::Text(end.1.to_owned()), Field::Text(end.2.to_owned())]);
        let mut runs = 0;
        for (metric, unit) in metrics.iter().zip(&units) {
            let row = cells.get(&(*end, *metric));
            runs = runs.max(row.map_or(0, |row| row.n));
            fields.push(Field::Number(row.map_or_else(|| "–".to_owned(), |row| value(row, |value| unit.value(value)))));
        }
        if several {
            fields.push(Field::Number(runs.to_string()));
        }
        fields
    });
    Table::of_rows(cut(caption, ends.len()), axes.len() + 1, headings, body)
}

/// Formats the mean with its interval.
fn value(row: &FlowSummaryRow, scaled: impl Fn(f64) -> f64) -> String {
    let Some(mean) = row.mean else { return "–".to_owned() };
    match mean_and_interval(scaled(mean), row.ci95.map(&scaled)) {
        (mean, Some(half)) => format!("{mean} ± {half}"),
        (_, None) => number(row, scaled(mean)),
    }
}

/// Formats a number without an interval: counts exactly, quantities with their significant digits.
fn number(row: &FlowSummaryRow, value: f64) -> String {
    match row.unit.as_str() {
        "" => exact(value, 6),
        _ if row.is_delay() => significant(value, PERCENTILE_DIGITS),
        _ => significant(value, DIGITS),
    }
}

/// Returns the caption, including the number of rows that are not shown.
fn cut(caption: &str, rows: usize) -> String {
    if rows > MOST_ROWS {
        format!("{caption}; the first {MOST_ROWS} of {rows} rows, flow_summary.csv has all")
    } else {
        caption.to_owned()
    }
}
