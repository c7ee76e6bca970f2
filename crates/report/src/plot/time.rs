//! A probe's samples over time, one thin line per subject, from `series.csv` of one run; or their means over intervals.
//! Of a study's points the first run (the first seed) is drawn: a mean over runs of a congestion window would show a
//! window that no flow ever had.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::series::{self, MOST_SUBJECTS, Samples, averages, read_series};
use crate::input::study::PlotSpec;
use crate::numbers::trimmed;
use crate::plot::Drawing;
use crate::plot::decimate::thin;
use crate::plot::frame::{Axis, Entry, Extent, Frame, Key, Markers, Scale};
use crate::plot::gather::{self, Side};
use crate::plot::palette;
use crate::plot::ticks::Ends;
use fullpipe_units::Duration;

/// More samples than this lie closer than dashes.
const DENSE: usize = 1000;

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Result<Drawing, ReportError> {
    let Some(metric) = &spec.y else {
        return Ok(Drawing::nothing("Not drawn: the plot needs `y` (a metric of series.csv)."));
    };
    let rows: Vec<_> = records.results.rows.iter().filter(|r| gather::selected(spec, &r.point)).collect();
    let axes = gather::series_axes(spec, rows.iter().map(|r| &r.point), None);
    let mut curves: Vec<(String, Samples)> = Vec::new();
    let mut left_out = 0;
    let mut drawn: Vec<Vec<Option<&str>>> = Vec::new();
    // What cannot be drawn is not read.
    let mut unread = 0;
    for row in &rows {
        let key: Vec<_> = axes.iter().map(|a| row.point.get(a)).collect();
        if drawn.contains(&key) {
            continue;
        }
        drawn.push(key);
        if curves.len() == MOST_SUBJECTS {
            unread += 1;
            continue;
        }
        let Some(run) = records.run(&row.key) else { continue };
        let label = gather::series_label(&axes, &row.point);
        for series in read_series(&run.folder, Some(metric), spec.subject.as_deref())?.unwrap_or_default() {
            left_out += series.more;
            for (subject, samples) in series.subjects.into_iter().filter(|(_, s)| !s.is_empty()) {
                if curves.len() == MOST_SUBJECTS {
                    left_out += 1;
                    continue;
                }
                // A subject that the plot names needs no name in the legend.
                let name = match (label.is_empty(), &spec.subject) {
                    (true, _) => subject,
                    (false, Some(_)) => label.clone(),
                    (false, None) => format!("{label}: {subject}"),
                };
                curves.push((name, averaged(samples, spec.group)));
            }
        }
    }
    let samples = || curves.iter().flat_map(|(_, s)| s.iter());
    let times = Extent::of(samples().map(|s| s.0).filter(|v| !gather::is_log(spec.x_scale) || *v > 0.0));
    let heights = Extent::of(samples().map(|s| s.1).filter(|v| !gather::is_log(spec.y_scale) || *v > 0.0));
    let (Some(times), Some(heights)) = (times, heights) else {
        return Ok(Drawing::nothing(format!("Not drawn: no run at these points has samples of {metric}.")));
    };
    let (x_axis, x_unit) = gather::number_axis(records, spec, Side::X, "time_s", "s", times);
    // The axis ends with the run.
    let scale = if gather::is_log(spec.x_scale) { Scale::Log } else { Scale::Linear(Ends::Exact) };
    let x_axis = Axis { scale, ..x_axis };
    let (y_axis, y_unit) = gather::number_axis(records, spec, Side::Y, metric, "", heights);
    // A dense line is solid, lest a peak falls into a gap between dashes.
    let dense = curves.iter().any(|(_, samples)| samples.len() > DENSE);
    let style = |i: usize| if dense { palette::style(i).solid() } else { palette::style(i) };
    let legend = curves
        .iter()
        .enumerate()
        .map(|(i, (label, _))| Entry { label: label.clone(), key: Key::Curve(style(i), Markers::None) })
        .collect();
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    frame.clip(gather::cut(spec));
    let mut words = format!("{} over {}.", y_axis.title, x_axis.title);
    let mut thinned = false;
    for (i, (label, samples)) in curves.iter().enumerate() {
        let scaled: Vec<_> = samples
            .iter()
            .map(|(t, v)| (x_unit.value(*t), y_unit.value(*v)))
            .filter(|(t, v)| frame.shows(*t, *v))
            .collect();
        let end = |end: Option<f64>| end.map(|v| x_unit.value(v));
        let scaled = within(&scaled, end(spec.x_min), end(spec.x_max));
        // Half a picture unit is a pixel of the picture at twice its size, or of a print at 280 dots per inch. What is
        // kept of a pixel column covers from its lowest to its highest sample and enters and leaves it where the whole
        // series does: the picture is that of all samples, however many there are.
        let kept = thin(scaled, |t| frame.x(t) * 2.0);
        thinned |= kept.len() < scaled.len();
        frame.curve(&kept, style(i), if kept.len() > 1000 { 0.9 } else { 1.4 });
        if let Some(extent) = Extent::of(scaled.iter().map(|s| s.1)) {
            words.push_str(&format!(
                " {label}: {} samples between {} and {}.",
                scaled.len(),
                trimmed(extent.low, 4),
                trimmed(extent.high, 4)
            ));
        }
    }
    let mut remarks = Vec::new();
    if rows.len() > drawn.len() {
        remarks.push("The first run of each point is shown.".to_owned());
    }
    if thinned {
        remarks.push("Thinned for drawing; no extreme is lost.".to_owned());
    }
    if let Some(group) = spec.group {
        remarks.push(format!("Means over {} s.", trimmed(group.as_nanos() as f64 / 1e9, 9)));
    }
    if unread > 0 {
        remarks.push(format!("{MOST_SUBJECTS} curves are drawn; {unread} points more have none."));
    }
    if left_out > 0 {
        remarks.push(format!("{left_out} more are not drawn; series.csv has them all."));
    }
    Ok(Drawing::of(frame, words, remarks))
}

/// The samples between the ends of the horizontal axis that the study sets, with one more at each end, so that lines
/// run to the edge.
fn within(samples: &[(f64, f64)], low: Option<f64>, high: Option<f64>) -> &[(f64, f64)] {
    let start = low.map_or(0, |low| samples.partition_point(|s| s.0 < low).saturating_sub(1));
    let end = high.map_or(samples.len(), |high| (samples.partition_point(|s| s.0 <= high) + 1).min(samples.len()));
    samples.get(start..end).unwrap_or_default()
}

/// Means over intervals, each at the middle of its interval; without a length the samples as they are.
fn averaged(samples: Samples, group: Option<Duration>) -> Samples {
    let Some(group) = group.map(Duration::as_nanos) else { return samples };
    let middle = |interval: u64| (interval as f64 + 0.5) * group as f64 / 1e9;
    averages(&samples, group, series::Ends::Own).into_iter().map(|(interval, mean)| (middle(interval), mean)).collect()
}
