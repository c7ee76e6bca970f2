//! Distributions that are drawn by default. They show the durations of exchanges, transfers and pages
//! (`completions.csv`), and the times that other applications report (`figures.csv`) over the runs of a study.

use crate::error::ReportError;
use crate::input::experience::{read_completion_times, read_figures};
use crate::input::study::PlotSpec;
use crate::input::{Records, distinct};
use crate::plot::gather::{Series, series_label, varying};
use crate::plot::{Drawing, distribution};
use crate::unit::words;
use fullpipe_archive::{FlowSummaryRow, Point, ResultRow};

/// The maximum number of curves in a readable plot.
const MOST_CURVES: usize = 12;
/// The maximum number of plotted metrics of applications without completions.
const MOST_METRICS: usize = 4;

/// A default plot: name, title and drawing.
pub(crate) type SuggestedPlot = (String, String, Drawing);

/// Draws all default distributions.
pub(crate) fn draw(records: &Records) -> Result<Vec<SuggestedPlot>, ReportError> {
    if records.flows.iter().all(FlowSummaryRow::is_delay) {
        return Ok(Vec::new());
    }
    let mut points: Vec<(&Point, Vec<&ResultRow>)> = Vec::new();
    for row in &records.results.rows {
        match points.iter_mut().find(|(point, _)| **point == row.point) {
            Some((_, rows)) => rows.push(row),
            None => points.push((&row.point, vec![row])),
        }
    }
    if points.len() > MOST_CURVES {
        return Ok(Vec::new());
    }
    let axes = varying(points.iter().map(|(point, _)| *point));
    // If there is a single point, the curves are the flows; otherwise they are the points.
    let mut completions: Vec<Series<f64>> = Vec::new();
    let mut flows_with: Vec<String> = Vec::new();
    for (point, rows) in &points {
        let of_point = series_label(&axes, point);
        for run in records.counting(rows) {
            for (flow, time_s) in read_completion_times(&run.folder)? {
                let label = if points.len() > 1 { of_point.clone() } else { flow.clone() };
                match completions.iter_mut().find(|series| series.label == label) {
                    Some(series) => series.values.push(time_s),
                    None => completions.push(Series { label, values: vec![time_s] }),
                }
                if !flows_with.contains(&flow) {
                    flows_with.push(flow);
                }
            }
        }
    }
    let mut drawn = Vec::new();
    // A single transfer has no distribution.
    if completions.iter().any(|series| series.values.len() > 1) {
        let left_out = completions.len().saturating_sub(MOST_CURVES);
        completions.truncate(MOST_CURVES);
        let spec = PlotSpec { x_label: Some("Completion time".to_owned()), ..spec("completion_s") };
        let mut drawing =
            distribution::cumulative(records, &spec, "completion_s", completions, "exchanges and transfers");
        if left_out > 0 {
            drawing.remarks.push(format!("{left_out} more flows are not drawn; completions.csv contains all."));
        }
        drawn.push(("completion-times".to_owned(), "Times of exchanges, transfers and pages".to_owned(), drawing));
    }
    drawn.extend(over_runs(records, &points, &axes, &flows_with)?);
    Ok(drawn)
}

/// Returns the times, over the runs, that applications without completions report.
fn over_runs(
    records: &Records,
    points: &[(&Point, Vec<&ResultRow>)],
    axes: &[String],
    flows_with: &[String],
) -> Result<Vec<SuggestedPlot>, ReportError> {
    let is_time =
        |row: &&FlowSummaryRow| row.unit == "s" && row.n > 1 && !row.is_delay() && !flows_with.contains(&row.flow);
    let metrics = distinct(records.flows.iter().filter(is_time).map(|row| row.metric.as_str()));
    let metrics: Vec<&str> = metrics.into_iter().take(MOST_METRICS).collect();
    let mut series: Vec<Vec<Series<f64>>> = vec![Vec::new(); metrics.len()];
    if metrics.is_empty() {
        return Ok(Vec::new());
    }
    for (point, rows) in points {
        let of_point = series_label(axes, point);
        for run in records.counting(rows) {
            for row in read_figures(&run.folder)? {
                let Some(place) = metrics.iter().position(|metric| *metric == row.figure) else { continue };
                let Some(value) = row.value.filter(|_| !flows_with.contains(&row.flow)) else { continue };
                let label = if points.len() > 1 { of_point.clone() } else { row.flow.clone() };
                let curves = &mut series[place];
                match curves.iter().position(|series| series.label == label) {
                    Some(known) => curves[known].values.push(value),
                    None if curves.len() < MOST_CURVES => curves.push(Series { label, values: vec![value] }),
                    None => {}
                }
            }
        }
    }
    let drawn = metrics.into_iter().zip(series).map(|(metric, series)| {
        let drawing = distribution::cumulative(records, &spec(metric), metric, series, "flows and runs");
        (metric.to_owned(), format!("{} of flows", words(metric)), drawing)
    });
    Ok(drawn.collect())
}

fn spec(metric: &str) -> PlotSpec {
    PlotSpec { name: metric.to_owned(), x: Some(metric.to_owned()), ..PlotSpec::default() }
}
