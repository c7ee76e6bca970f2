//! The table of throughput, drops, marks and delays of links, from `links.csv` of the runs: means over the runs of each
//! point.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::links::read_links;
use crate::numbers::{significant, trimmed};
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{shown, varying, word_for};
use crate::unit::Unit;
use fullpipe_archive::{Column, LinkRow};
use fullpipe_archive::{Point, ResultRow};

/// The maximum number of rows; the files contain all rows.
const MOST_ROWS: usize = 500;
/// Significant digits of a mean.
const DIGITS: usize = 4;
/// The columns of the table with their headings.
const SHOWN: [(&str, Column<LinkRow>); 6] = [
    ("Throughput", LinkRow::throughput_bps()),
    ("Utilisation", LinkRow::utilisation()),
    ("Mean queue delay", LinkRow::mean_queue_delay_s()),
    ("99 % queue delay", LinkRow::p99_queue_delay_s()),
    ("Dropped", LinkRow::drop_ratio()),
    ("Marked", LinkRow::mark_ratio()),
];

/// A direction of a link at a point.
struct Row<'a> {
    point: &'a Point,
    link: String,
    means: [Option<f64>; 6],
    runs: usize,
}

/// Returns the table; `None` if no run measured a link.
pub(crate) fn table(records: &Records) -> Result<Option<Table>, ReportError> {
    let rows = rows(records)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let axes = varying(rows.iter().map(|row| row.point));
    let columns: Vec<(Heading, Vec<Field>)> = (0..SHOWN.len()).map(|column| numbers(&rows, column)).collect();
    let mut headings: Vec<Heading> = axes.iter().map(|axis| Heading::text(word_for(records, axis))).collect();
    headings.push(Heading::text("Link"));
    headings.extend(columns.iter().map(|(heading, _)| heading.clone()));
    headings.push(Heading::number("Runs"));
    let body = rows.iter().enumerate().take(MOST_ROWS).map(|(i, row)| {
        let mut fields: Vec<Field> =
            axes.iter().map(|axis| Field::Text(row.point.get(axis).map_or_else(String::new, shown))).collect();
        fields.push(Field::Text(row.link.clone()));
        fields.extend(columns.iter().map(|(_, fields)| fields[i].clone()));
        fields.push(Field::Number(row.runs.to_string()));
        fields
    });
    let all = rows.len();
    let only = if all > MOST_ROWS { format!("; the first {MOST_ROWS} of {all}") } else { String::new() };
    let caption =
        format!("What measured links carried, means over runs; dropped and marked are shares of arrivals{only}");
    Ok(Some(Table::of_rows(caption, axes.len() + 1, headings, body)))
}

/// Returns the rows of all points, in the order of the points.
fn rows(records: &Records) -> Result<Vec<Row<'_>>, ReportError> {
    let mut points: Vec<(&Point, Vec<&ResultRow>)> = Vec::new();
    for row in &records.results.rows {
        // The rows of a point are consecutive.
        match points.last_mut() {
            Some((point, rows)) if **point == row.point => rows.push(row),
            _ => points.push((&row.point, vec![row])),
        }
    }
    let mut out: Vec<Row<'_>> = Vec::new();
    for (point, of_point) in points {
        let first = out.len();
        let mut values: Vec<[Vec<f64>; 6]> = Vec::new();
        for run in records.counting(&of_point) {
            for link in read_links(&run.folder)? {
                let at = out[first..].iter().position(|row| row.link == link.link).unwrap_or_else(|| {
                    out.push(Row { point, link: link.link.clone(), means: [None; 6], runs: 0 });
                    values.push(Default::default());
                    values.len() - 1
                });
                out[first + at].runs += 1;
                for (all, (_, column)) in values[at].iter_mut().zip(SHOWN) {
                    all.extend(Some(column.number(&link)).filter(|value| !value.is_nan()));
                }
            }
        }
        for (row, values) in out[first..].iter_mut().zip(&values) {
            let mean = |all: &Vec<f64>| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
            row.means = values.each_ref().map(mean);
        }
    }
    Ok(out)
}

/// Returns a column with its heading: ratios in percent, other values with the prefix for the largest value.
fn numbers(rows: &[Row<'_>], column: usize) -> (Heading, Vec<Field>) {
    let (heading, declared) = SHOWN[column];
    let share = declared.unit.is_empty();
    let largest = rows.iter().filter_map(|row| row.means[column]).fold(0.0, |a: f64, v| a.max(v.abs()));
    let unit = if share { Unit::new("%").unscaled() } else { Unit::new(declared.unit).scale_for(largest) };
    let text = |value: f64| if share { trimmed(value * 100.0, DIGITS) } else { significant(unit.value(value), DIGITS) };
    let fields = rows.iter().map(|row| Field::Number(row.means[column].map_or_else(|| "–".to_owned(), text)));
    (Heading::number(unit.heading(heading)), fields.collect())
}
