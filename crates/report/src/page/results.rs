//! All results as tables: one per experiment with a row per point and a column per metric; for a single run, its
//! flows.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::run::{Cell, read_flows};
use crate::input::summary::{Point, SummaryRow};
use crate::markup::escape;
use crate::numbers::{mean_and_interval, trimmed};
use crate::page::count;
use crate::page::published::{axis_field, axis_heading, unit_of};
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{varying, word_for};
use crate::unit::{Unit, words};
use std::collections::BTreeMap;
use std::fmt::Write;

/// So many flows are shown; the file has all.
const MOST_FLOWS: usize = 200;
/// A longer table is folded away until it is asked for.
const FOLD_ABOVE: usize = 40;

/// Tables of all results.
pub(crate) fn section(records: &Records) -> Result<String, ReportError> {
    let mut out = String::new();
    let rows: Vec<&SummaryRow> =
        records.summary.iter().filter(|r| r.claim().is_none() && (r.mean.is_some() || r.n > 0)).collect();
    let mut experiments: Vec<Option<&str>> = Vec::new();
    for row in &rows {
        let name = experiment(&row.point);
        if !experiments.contains(&name) {
            experiments.push(name);
        }
    }
    for name in experiments {
        let rows: Vec<&SummaryRow> = rows.iter().copied().filter(|r| experiment(&r.point) == name).collect();
        if let Some(name) = name {
            let _ = write!(out, "<h3>{}</h3>\n", escape(name));
        }
        fold(&mut out, &of_points(records, &rows, name));
    }
    if records.is_single_run() {
        flows(&mut out, records)?;
    }
    Ok(out)
}

fn experiment(point: &Point) -> Option<&str> {
    point.get("experiment").or_else(|| point.get("experiments"))
}

fn fold(out: &mut String, table: &Table) {
    if table.len() > FOLD_ABOVE {
        let _ = write!(out, "<details><summary>{} ({})</summary>\n", escape(&table.caption), count(table.len(), "row"));
        table.write(out);
        out.push_str("</details>\n");
    } else {
        table.write(out);
    }
}

/// One row per point, one column per metric.
fn of_points(records: &Records, rows: &[&SummaryRow], experiment: Option<&str>) -> Table {
    let axes = varying(rows.iter().map(|r| &r.point));
    let mut points: Vec<&Point> = Vec::new();
    let mut metrics: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&Point, &str), &SummaryRow> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for row in rows {
        if seen.insert(&row.point) {
            points.push(&row.point);
        }
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
        cells.insert((&row.point, &row.metric), row);
    }
    let mut headings: Vec<Heading> = axes.iter().map(|a| axis_heading(records, a, rows)).collect();
    let mut units = Vec::new();
    for metric in &metrics {
        let column = || rows.iter().filter(|r| r.metric == *metric);
        let largest = column().filter_map(|r| r.mean).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = column().next().map_or_else(|| Unit::new(""), |r| unit_of(records, r)).scale_for(largest);
        let word = word_for(records, metric);
        let same = unit.label.eq_ignore_ascii_case(&word);
        headings.push(Heading::number(if same { word } else { unit.heading(&word) }));
        units.push(unit);
    }
    headings.push(Heading::number("Runs"));
    let body = points.iter().map(|point| {
        let of_point = || metrics.iter().map(|m| cells.get(&(*point, *m)).copied());
        let mut fields: Vec<Field> =
            axes.iter().map(|a| of_point().flatten().next().map_or(Field::Text(String::new()), |r| axis_field(r, a))).collect();
        for (row, unit) in of_point().zip(&units) {
            let shown = match row.and_then(|r| r.mean.map(|mean| (mean, r.half_width))) {
                Some((mean, half)) => {
                    match mean_and_interval(unit.value(mean), half.map(|h| unit.value(h))) {
                        (mean, Some(half)) => format!("{mean} ± {half}"),
                        (mean, None) => mean,
                    }
                }
                None => "–".to_owned(),
            };
            fields.push(Field::Number(shown));
        }
        fields.push(Field::Number(of_point().flatten().map(|r| r.n).max().unwrap_or(0).to_string()));
        fields
    });
    let mut table = Table {
        caption: match experiment {
            Some(name) => format!("{name}: means over runs ± half width of the 95 % interval"),
            None => "Means over runs ± half width of the 95 % interval".to_owned(),
        },
        keys: axes.len(),
        headings,
        groups: vec![(None, body.collect())],
    };
    table.drop_empty_columns();
    table
}

fn flows(out: &mut String, records: &Records) -> Result<(), ReportError> {
    let Some(run) = records.runs.first() else { return Ok(()) };
    let flows = read_flows(&run.folder, MOST_FLOWS)?;
    let mut headings = Vec::new();
    let mut units = Vec::new();
    for (column, name) in flows.header.iter().enumerate() {
        let numbers = || flows.rows.iter().filter_map(|r| if let Cell::Number(v) = r[column] { Some(v) } else { None });
        let largest = numbers().fold(0.0, |a: f64, v| a.max(v.abs()));
        // Counts stay whole numbers; only times and rates get a prefix.
        let scaled = match name.ends_with("_s") || name.ends_with("_bps") {
            true => Unit::of_metric(name).scale_for(largest),
            false => Unit::of_metric(name).unscaled(),
        };
        let word = words(name);
        let is_number = numbers().next().is_some();
        let text = if name.ends_with("_packets") { word } else { scaled.heading(&word) };
        headings.push(if is_number { Heading::number(text) } else { Heading::text(text) });
        units.push(scaled);
    }
    let body = flows.rows.iter().map(|row| {
        let field = |(cell, unit): (&Cell, &crate::unit::Scaled)| match cell {
            Cell::Text(text) => Field::Text(text.clone()),
            Cell::Number(value) => Field::Number(trimmed(unit.value(*value), 6)),
            Cell::Empty => Field::Number("–".to_owned()),
        };
        row.iter().zip(&units).map(field).collect()
    });
    let shown = flows.rows.len();
    let mut table = Table {
        caption: match flows.total {
            total if total > shown => format!("Flows: the first {shown} of {total}; flows.csv has all"),
            _ => "Flows".to_owned(),
        },
        keys: 1,
        headings,
        groups: vec![(None, body.collect())],
    };
    table.drop_empty_columns();
    fold(out, &table);
    Ok(())
}
