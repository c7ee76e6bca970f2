//! The table of the scenario's events, from `events.csv` of the runs: times and recorded metrics, as means over the
//! runs of each point.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::events::read_events;
use crate::numbers::significant;
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{shown, varying, word_for};
use crate::unit::{Unit, words};
use fullpipe_archive::{EventRow, Point, ResultRow};

/// The maximum number of rows; the files contain all rows.
const MOST_ROWS: usize = 500;
/// Significant digits of a mean.
const DIGITS: usize = 4;
/// Decimal places of a time in seconds.
const TIME_DIGITS: usize = 6;

/// An event at a point, over its runs.
struct Row<'a> {
    point: &'a Point,
    event: String,
    runs: usize,
    met_s: Vec<f64>,
    at_s: Vec<f64>,
    /// Metrics with their values.
    values: Vec<(String, Vec<f64>)>,
}

/// Returns the table; `None` if no run has events.
pub(crate) fn table(records: &Records) -> Result<Option<Table>, ReportError> {
    let rows = rows(records)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let axes = varying(rows.iter().map(|row| row.point));
    let mut headings: Vec<Heading> = axes.iter().map(|axis| Heading::text(word_for(records, axis))).collect();
    headings.push(Heading::text("Event"));
    headings.extend(["Condition met (s)", "Happened (s)", "In runs"].map(Heading::number));
    headings.push(Heading::text("Recorded"));
    let time = |times: &[f64]| match mean(times) {
        Some(time) => Field::Number(format!("{time:.TIME_DIGITS$}")),
        None => Field::Number("–".to_owned()),
    };
    let body = rows.iter().take(MOST_ROWS).map(|row| {
        let mut fields: Vec<Field> =
            axes.iter().map(|axis| Field::Text(row.point.get(axis).map_or_else(String::new, shown))).collect();
        fields.push(Field::Text(row.event.clone()));
        fields.extend([time(&row.met_s), time(&row.at_s)]);
        fields.push(Field::Number(format!("{} of {}", row.at_s.len(), row.runs)));
        let recorded = row.values.iter().filter_map(|(metric, values)| {
            let value = mean(values)?;
            let unit = Unit::of_metric(metric).scale_for(value.abs());
            Some(format!("{} {}", words(metric), unit.with_unit(&significant(unit.value(value), DIGITS))))
        });
        fields.push(Field::Text(recorded.collect::<Vec<_>>().join(", ")));
        fields
    });
    let only =
        if rows.len() > MOST_ROWS { format!("; the first {MOST_ROWS} of {}", rows.len()) } else { String::new() };
    let caption = format!("Events: times and recorded metrics, means over the runs in which they happened{only}");
    Ok(Some(Table::of_rows(caption, axes.len() + 1, headings, body)))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
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
        for run in records.counting(&of_point) {
            for event in read_events(&run.folder)? {
                let at = out[first..].iter().position(|row| row.event == event.event).unwrap_or_else(|| {
                    let event = event.event.clone();
                    out.push(Row { point, event, runs: 0, met_s: Vec::new(), at_s: Vec::new(), values: Vec::new() });
                    out.len() - 1 - first
                });
                out[first + at].add(&event);
            }
        }
    }
    Ok(out)
}

impl Row<'_> {
    /// Adds a row of a run's `events.csv`.
    fn add(&mut self, event: &EventRow) {
        if event.metric.is_empty() {
            self.runs += 1;
            self.met_s.extend(event.met_s.map(|met| met.as_secs_f64()));
            self.at_s.extend(event.at_s.map(|at| at.as_secs_f64()));
            return;
        }
        let at = self.values.iter().position(|(metric, _)| *metric == event.metric).unwrap_or_else(|| {
            self.values.push((event.metric.clone(), Vec::new()));
            self.values.len() - 1
        });
        self.values[at].1.extend(event.value);
    }
}
