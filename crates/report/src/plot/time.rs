//! A probe's samples over time, one thin line per subject, from `series.csv` of one run. Of a study's points the first
//! run (the first seed) is drawn: a mean over runs of a congestion window would show a window that no flow ever had.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::series::{MOST_SUBJECTS, Samples, read_series};
use crate::input::study::PlotSpec;
use crate::plot::Drawing;
use crate::plot::decimate::thin;
use crate::plot::frame::{Axis, Entry, Extent, Frame, Key, Markers, Scale};
use crate::plot::gather::{self, Side};
use crate::plot::palette::style;
use crate::plot::ticks::Ends;

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
    for row in &rows {
        let key: Vec<_> = axes.iter().map(|a| row.point.get(a)).collect();
        if drawn.contains(&key) {
            continue;
        }
        drawn.push(key);
        let Some(run) = records.run(&row.key) else { continue };
        let label = gather::series_label(&axes, &row.point);
        for series in read_series(&run.folder, Some(metric))?.unwrap_or_default() {
            left_out += series.more;
            for (subject, samples) in series.subjects.into_iter().filter(|(_, s)| !s.is_empty()) {
                if curves.len() == MOST_SUBJECTS {
                    left_out += 1;
                    continue;
                }
                let name = if label.is_empty() { subject } else { format!("{label}: {subject}") };
                curves.push((name, samples));
            }
        }
    }
    let samples = || curves.iter().flat_map(|(_, s)| s.iter());
    let times = Extent::of(samples().map(|s| s.0).filter(|v| !spec.x_log || *v > 0.0));
    let heights = Extent::of(samples().map(|s| s.1).filter(|v| !spec.y_log || *v > 0.0));
    let (Some(times), Some(heights)) = (times, heights) else {
        return Ok(Drawing::nothing(format!("Not drawn: no run at these points has samples of {metric}.")));
    };
    let (x_axis, x_unit) = gather::number_axis(records, spec, Side::X, "time_s", "s", times);
    // The axis ends with the run.
    let scale = if spec.x_log { Scale::Log } else { Scale::Linear(Ends::Exact) };
    let x_axis = Axis { scale, ..x_axis };
    let (y_axis, y_unit) = gather::number_axis(records, spec, Side::Y, metric, "", heights);
    let legend = curves
        .iter()
        .enumerate()
        .map(|(i, (label, _))| Entry { label: label.clone(), key: Key::Curve(style(i), Markers::None) })
        .collect();
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    if gather::cut(spec) {
        frame.clip();
    }
    let mut words = format!("{} over {}.", y_axis.title, x_axis.title);
    let mut thinned = false;
    for (i, (label, samples)) in curves.iter().enumerate() {
        let scaled: Vec<_> = samples
            .iter()
            .map(|(t, v)| (x_unit.value(*t), y_unit.value(*v)))
            .filter(|(t, v)| frame.shows(*t, *v))
            .collect();
        // Half a picture unit is a pixel of the picture at twice its size, or of a print at 280 dots per inch.
        let kept = thin(&scaled, |t| frame.x(t) * 2.0);
        thinned |= kept.len() < scaled.len();
        frame.curve(&kept, style(i), if kept.len() > 1000 { 0.9 } else { 1.4 });
        if let Some(extent) = Extent::of(scaled.iter().map(|s| s.1)) {
            words.push_str(&format!(
                " {label}: {} samples between {} and {}.",
                scaled.len(),
                crate::numbers::trimmed(extent.low, 4),
                crate::numbers::trimmed(extent.high, 4)
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
    if left_out > 0 {
        remarks.push(format!("{left_out} more are not drawn; series.csv has them all."));
    }
    Ok(Drawing { picture: Some((frame, words)), remarks })
}
