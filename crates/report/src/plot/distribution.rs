//! Empirical cumulative distributions, either of a metric over the runs of each point, or of a column of `flows.csv`
//! over all flows of these runs. There is a step of 1/n at each value.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::flows::read_flow_column;
use crate::input::study::PlotSpec;
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::decimate::thin;
use crate::plot::frame::{Axis, AxisScale, Frame, LegendEntry, LegendKey, Markers, ValueRange};
use crate::plot::gather::{self, Grouping, Series, Side};
use crate::plot::palette::style;
use crate::plot::ticks::RangeEnds;
use fullpipe_archive::FLOWS;

/// The maximum number of CSV rows of a distribution. More rows add no information.
const MOST_ROWS: usize = 10_000;
/// The quantiles that a tooltip shows.
const HINTS: [f64; 7] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Result<Drawing, ReportError> {
    let Some(x) = spec.x.as_ref().or(spec.y.as_ref()) else {
        return Ok(Drawing::nothing("Not drawn: the plot needs `x` (a metric or a column of flows.csv)."));
    };
    let rows: Vec<_> = records.results.rows.iter().filter(|r| gather::selected(spec, &r.point)).collect();
    let axes = gather::series_axes(spec, rows.iter().map(|r| &r.point), None);
    let metric = records.results.metrics.iter().position(|m| m == x);
    let column = match metric {
        Some(_) => None,
        None => Some(FLOWS.find_numeric_column(x).map_err(|unknown| {
            ReportError::corrupt(
                &records.folder.join(fullpipe_archive::StudyRecord::FILE),
                format!("plot `{}`: {unknown}", spec.name),
            )
        })?),
    };
    let mut grouping = Grouping::by(&axes);
    for row in &rows {
        let values = match (metric, column, records.run(&row.key)) {
            (Some(metric), ..) => row.values[metric].into_iter().collect(),
            (None, Some(column), Some(run)) => read_flow_column(&run.folder, column)?,
            (None, ..) => Vec::new(),
        };
        grouping.add(&row.point, values);
    }
    let of = if metric.is_some() { "runs" } else { "flows" };
    Ok(cumulative(records, spec, x, grouping.series, of))
}

/// Draws the cumulative distributions of values of `x`. `of` is the name of the objects that are counted.
pub(super) fn cumulative(
    records: &Records,
    spec: &PlotSpec,
    x: &str,
    mut series: Vec<Series<f64>>,
    of: &str,
) -> Drawing {
    series.retain(|one| !one.values.is_empty());
    series.iter_mut().for_each(|one| one.values.sort_by(f64::total_cmp));
    let all = series.iter().flat_map(|one| one.values.iter().copied());
    let Some(extent) = ValueRange::of(all.filter(|v| !gather::is_log(spec.x_scale) || *v > 0.0)) else {
        return Drawing::nothing(format!("Not drawn: no run has a value of {x} at these points."));
    };
    let (x_axis, unit) = gather::number_axis(records, spec, Side::X, x, "", extent);
    let y_axis = Axis {
        title: spec.y_label.clone().unwrap_or_else(|| format!("Share of {of}")),
        scale: AxisScale::Linear(RangeEnds::OnStep),
        extent: ValueRange { low: 0.0, high: 1.0 },
        reversed: false,
    };
    let legend = series
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.label.is_empty())
        .map(|(i, one)| LegendEntry { label: one.label.clone(), key: LegendKey::Curve(style(i), Markers::None) })
        .collect();
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    frame.clip(gather::cut(spec));
    let mut words = format!("Cumulative distribution of {}.", x_axis.title);
    let mut numbers = Data::new(["series", x, "share"]);
    for (i, Series { label, values }) in series.iter().enumerate() {
        let n = values.len() as f64;
        let stride = values.len().div_ceil(MOST_ROWS);
        let mut steps = Vec::with_capacity(values.len() * 2);
        for (k, value) in values.iter().enumerate() {
            steps.push((unit.value(*value), k as f64 / n));
            steps.push((unit.value(*value), (k + 1) as f64 / n));
            if (k + 1) % stride == 0 || k + 1 == values.len() {
                numbers.push([label.as_str().into(), (*value).into(), ((k + 1) as f64 / n).into()]);
            }
        }
        let steps = thin(&steps, |v| if frame.shows(v, 1.0) { frame.x(v) } else { f64::MIN });
        frame.curve(&steps, style(i), 1.7);
        for share in HINTS {
            let value = unit.value(values[(share * n).ceil() as usize - 1]);
            let percent = crate::numbers::trimmed(share * 100.0, 3);
            let words = format!("{percent} % at most {}", unit.with_unit(&crate::numbers::trimmed(value, 4)));
            frame.hint(value, share, &if label.is_empty() { words } else { format!("{label}: {words}") });
        }
        let median = unit.value(values[(values.len() - 1) / 2]);
        words.push_str(&format!(" {label}: {} values, median {}.", values.len(), crate::numbers::trimmed(median, 4)));
    }
    let counts: Vec<String> = series.iter().map(|one| one.values.len().to_string()).collect();
    let remarks = vec![format!("Cumulative distribution over {of}; n = {}.", counts.join(", "))];
    Drawing::of(frame, words, remarks).with(numbers)
}
