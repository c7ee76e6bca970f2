//! Time plots: the samples of a probe over time, with one thin line per subject, from `series.csv` of one run. Samples
//! can be replaced by their means over intervals. For each point of a study, only the first run (the first seed) is
//! drawn. A mean of congestion windows over runs would show a window that no flow had.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::flows::{Activity, REVERSE};
use crate::input::series::{self, MOST_SUBJECTS, Samples, averages, read_series};
use crate::input::study::PlotSpec;
use crate::numbers::trimmed;
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::decimate::thin;
use crate::plot::frame::{Axis, AxisScale, Frame, LegendEntry, LegendKey, Markers, Part, ValueRange};
use crate::plot::gather::{self, Side};
use crate::plot::palette;
use crate::plot::ticks::RangeEnds;
use crate::unit::ScaledUnit;
use fullpipe_units::Duration;

/// The number of samples beyond which a curve is dense: the distance between samples is smaller than a dash, or the
/// line jumps between dashes.
const DENSE: usize = 50;
/// The maximum number of curves in one panel. With more curves, each subject has its own panel, because curves with
/// large variations hide each other.
const MOST_TOGETHER: usize = 4;
/// The number of ranges along the time axis that have a tooltip.
const HINTS: usize = 80;

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Result<Drawing, ReportError> {
    let Some(metric) = &spec.y else {
        return Ok(Drawing::nothing("Not drawn: the plot needs `y` (a metric of series.csv)."));
    };
    let rows: Vec<_> = records.results.rows.iter().filter(|r| gather::selected(spec, &r.point)).collect();
    let axes = gather::series_axes(spec, rows.iter().map(|r| &r.point), None);
    let mut curves: Vec<(String, Samples)> = Vec::new();
    let (mut left_out, mut cut) = (0, 0);
    let mut drawn: Vec<Vec<Option<&str>>> = Vec::new();
    // Subjects that cannot be drawn are not read.
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
        let activity = if spec.x_max.is_none() { Activity::read(&run.folder)? } else { None };
        for series in read_series(&run.folder, Some(metric), spec.subject.as_deref())?.unwrap_or_default() {
            left_out += series.more;
            for (subject, mut samples) in series.subjects.into_iter().filter(|(_, s)| !s.is_empty()) {
                if let Some(activity) = &activity {
                    cut += usize::from(end_with(&mut samples, activity.end_s(&subject)));
                }
                if curves.len() == MOST_SUBJECTS {
                    left_out += 1;
                    continue;
                }
                // The legend does not repeat a subject that the plot selects.
                let name = match (label.is_empty(), &spec.subject) {
                    (true, _) => subject,
                    (false, Some(_)) => label.clone(),
                    (false, None) => format!("{label}: {subject}"),
                };
                curves.push((name, averaged(samples, spec.group)));
            }
        }
    }
    let samples = || curves.iter().flat_map(|(_, s)| s.iter()).filter(|(_, value)| !value.is_nan());
    let times = ValueRange::of(samples().map(|s| s.0).filter(|v| !gather::is_log(spec.x_scale) || *v > 0.0));
    let heights = ValueRange::of(samples().map(|s| s.1).filter(|v| !gather::is_log(spec.y_scale) || *v > 0.0));
    let (Some(times), Some(heights)) = (times, heights) else {
        return Ok(Drawing::nothing(format!("Not drawn: no run at these points has samples of {metric}.")));
    };
    let (x_axis, x_unit) = gather::number_axis(records, spec, Side::X, "time_s", "s", times);
    // The axis ends at the last sample.
    let scale = if gather::is_log(spec.x_scale) { AxisScale::Log } else { AxisScale::Linear(RangeEnds::Exact) };
    let x_axis = Axis { scale, ..x_axis };
    let (y_axis, y_unit) = gather::number_axis(records, spec, Side::Y, metric, "", heights);
    // A dense line is solid, so that no gap between dashes hides a peak.
    let panels = panels(&curves);
    let dense = panels.len() > 1 || curves.iter().any(|(_, samples)| samples.len() > DENSE);
    let style = |i: usize| if dense { palette::style(i).solid() } else { palette::style(i) };
    let legend = |panel: &[usize]| {
        let entry = |(place, curve): (usize, &usize)| LegendEntry {
            label: curves[*curve].0.clone(),
            key: LegendKey::Curve(style(place), Markers::None),
        };
        panel.iter().enumerate().map(entry).collect()
    };
    let part = |number: usize| match (panels.len(), number + 1 == panels.len()) {
        (1, _) => Part::Whole,
        (_, true) => Part::Lowest,
        (_, false) => Part::Upper,
    };
    let mut frames: Vec<Frame> = panels
        .iter()
        .enumerate()
        .map(|(number, panel)| Frame::part(&x_axis, &y_axis, legend(panel), part(number)))
        .collect();
    let mut words = format!("{} over {}.", y_axis.title, x_axis.title);
    let mut thinned = false;
    let mut numbers = Data::new(["series", "time_s", metric.as_str()]);
    let places = panels
        .iter()
        .enumerate()
        .flat_map(|(number, panel)| panel.iter().enumerate().map(move |(place, curve)| (number, place, *curve)));
    for (panel, place, curve) in places {
        let (label, samples) = &curves[curve];
        let frame = &mut frames[panel];
        frame.clip(gather::cut(spec));
        let shown: Samples = samples
            .iter()
            .copied()
            .filter(|(t, v)| v.is_nan() || frame.shows(x_unit.value(*t), y_unit.value(*v)))
            .collect();
        let shown = within(&shown, spec.x_min, spec.x_max);
        // A line is interrupted at a gap.
        let pieces = || shown.split(|(_, value)| value.is_nan()).filter(|piece| !piece.is_empty());
        let width = if shown.len() > 1000 { 0.9 } else { 1.4 };
        for piece in pieces() {
            // Half a picture unit is a pixel of the picture at twice its size, or of a print at 280 dpi. The samples
            // that are kept in a pixel column cover the range from its lowest to its highest sample. The line enters
            // and leaves the column where the complete series does. The picture is therefore identical to that of all
            // samples.
            let kept = thin(piece, |t| frame.x(x_unit.value(t)) * 2.0);
            thinned |= kept.len() < piece.len();
            for (time_s, value) in &kept {
                numbers.push([label.as_str().into(), (*time_s).into(), (*value).into()]);
            }
            let scaled: Vec<_> = kept.iter().map(|(t, v)| (x_unit.value(*t), y_unit.value(*v))).collect();
            match scaled.as_slice() {
                // A sample between two gaps has no line.
                [(t, value)] => frame.dot(*t, *value, style(place)),
                scaled => frame.curve(scaled, style(place), width),
            }
        }
        if let Some(extent) = ValueRange::of(pieces().flatten().map(|s| s.1)) {
            words.push_str(&format!(
                " {label}: {} samples between {} and {}.",
                pieces().flatten().count(),
                trimmed(y_unit.value(extent.low), 4),
                trimmed(y_unit.value(extent.high), 4)
            ));
        }
    }
    for (frame, panel) in frames.iter_mut().zip(&panels) {
        let curves: Vec<_> = panel.iter().map(|curve| &curves[*curve]).collect();
        add_hints(frame, &curves, &x_unit, &y_unit);
    }
    let mut remarks = Vec::new();
    if rows.len() > drawn.len() {
        remarks.push("The first run of each point is shown.".to_owned());
    }
    if thinned {
        remarks.push("Samples are thinned for drawing; extremes are kept.".to_owned());
    }
    if let Some(group) = spec.group {
        remarks.push(format!("Means over {} s.", trimmed(group.as_nanos() as f64 / 1e9, 9)));
    }
    if unread > 0 {
        remarks.push(format!("{MOST_SUBJECTS} curves are drawn; {unread} more points have none."));
    }
    if left_out > 0 {
        remarks.push(format!("{left_out} more are not drawn; series.csv contains all."));
    }
    if cut > 0 {
        remarks.push("Each curve ends with the last packet of its flow, or of all flows.".to_owned());
    }
    Ok(Drawing { picture: Some((frames, words)), data: Some(numbers), table: None, remarks })
}

/// Returns the indices of the curves in each panel. All curves are in one panel, or, if there are many, each panel
/// contains the two directions of a subject.
fn panels(curves: &[(String, Samples)]) -> Vec<Vec<usize>> {
    if curves.len() <= MOST_TOGETHER {
        return vec![(0..curves.len()).collect()];
    }
    let stem = |name: &str| {
        let stem = [".uplink", REVERSE].into_iter().find_map(|suffix| name.strip_suffix(suffix));
        stem.unwrap_or(name).to_owned()
    };
    let mut panels: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, (name, _)) in curves.iter().enumerate() {
        match panels.iter_mut().find(|(known, _)| *known == stem(name)) {
            Some((_, panel)) => panel.push(number),
            None => panels.push((stem(name), vec![number])),
        }
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

/// Removes the samples after a time, except the first of them, because the state no longer changes. Returns whether it
/// removed any.
fn end_with(samples: &mut Samples, end_s: f64) -> bool {
    // Times are whole nanoseconds, so smaller differences are insignificant.
    let keep = samples.partition_point(|(time_s, _)| *time_s < end_s - 5e-10) + 1;
    let more = keep < samples.len();
    samples.truncate(keep);
    more
}

/// Adds tooltips with the values of all curves. The tooltip of each range along the time axis shows the last samples at
/// the middle of the range.
fn add_hints(frame: &mut Frame, curves: &[&(String, Samples)], x_unit: &ScaledUnit, y_unit: &ScaledUnit) {
    let ValueRange { low, high } = frame.across();
    let most = curves.iter().map(|(_, samples)| samples.len()).max().unwrap_or(0);
    let areas = most.min(HINTS);
    let width = (high - low) / areas.max(1) as f64;
    for area in 0..areas {
        let from = low + area as f64 * width;
        let middle = from + width / 2.0;
        let mut words = x_unit.with_unit(&trimmed(middle, 4));
        let before = words.len();
        for (label, samples) in curves {
            // If no sample precedes the middle, the first one is used, which is at most half a range away.
            let next = samples.partition_point(|(time_s, _)| x_unit.value(*time_s) <= middle);
            let at = samples.get(next.saturating_sub(1)).filter(|(time_s, value)| {
                !value.is_nan() && (x_unit.value(*time_s) - middle).abs() <= width.max((high - low) / HINTS as f64)
            });
            if let Some((_, value)) = at {
                words.push_str(&format!("\n{label}: {}", y_unit.with_unit(&trimmed(y_unit.value(*value), 4))));
            }
        }
        if words.len() > before {
            frame.hint_between(from, from + width, &words);
        }
    }
}

/// Returns the samples within the horizontal axis limits of the study, plus one sample at each end, so that lines
/// extend to the edge.
fn within(samples: &[(f64, f64)], low: Option<f64>, high: Option<f64>) -> &[(f64, f64)] {
    let start = low.map_or(0, |low| samples.partition_point(|s| s.0 < low).saturating_sub(1));
    let end = high.map_or(samples.len(), |high| (samples.partition_point(|s| s.0 <= high) + 1).min(samples.len()));
    samples.get(start..end).unwrap_or_default()
}

/// Averages samples over intervals, with each mean at the middle of its interval. Without an interval, the samples are
/// unchanged.
fn averaged(samples: Samples, group: Option<Duration>) -> Samples {
    let Some(group) = group.map(Duration::as_nanos) else { return samples };
    let middle = |interval: u64| (interval as f64 + 0.5) * group as f64 / 1e9;
    let mut means = Samples::new();
    for piece in samples.split(|(_, value)| value.is_nan()).filter(|piece| !piece.is_empty()) {
        if !means.is_empty() {
            means.push((piece[0].0, f64::NAN));
        }
        let of_piece = averages(piece, group, series::BoundaryRule::Previous).into_iter();
        means.extend(of_piece.map(|(interval, mean)| (middle(interval), mean)));
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_after_the_last_packet_are_removed_except_the_first() {
        let of = |end_s: f64| {
            let mut samples: Samples = (0..10).map(|n| (f64::from(n), 1.0)).collect();
            let cut = end_with(&mut samples, end_s);
            (samples.len(), cut)
        };
        // 0 to 3 s, plus 4 s, when the last packet was already sent. If the last packet is at 9 s or later, all samples
        // remain.
        assert_eq!((of(3.5), of(4.0), of(9.0), of(100.0)), ((5, true), (5, true), (10, false), (10, false)));
        assert_eq!(of(0.0), (1, true));
    }

    #[test]
    fn many_curves_give_a_panel_for_each_subject() {
        let of =
            |names: &[&str]| panels(&names.iter().map(|name| ((*name).to_owned(), Samples::new())).collect::<Vec<_>>());
        assert_eq!(of(&["a", "a.uplink", "b", "b.uplink"]), [[0, 1, 2, 3]]);
        assert_eq!(of(&["a", "b", "a.uplink", "b.reverse", "c"]), [vec![0, 2], vec![1, 3], vec![4]]);
    }

    #[test]
    fn means_do_not_cross_a_gap() {
        // Samples every 100 ms: 0.1 and 0.2 s belong to the first 200 ms, 0.3 s to the second; there are none from then
        // to 0.7 s.
        let samples = vec![(0.1, 1.0), (0.2, 3.0), (0.3, 5.0), (0.4, f64::NAN), (0.7, 7.0), (0.8, 9.0)];
        let means = averaged(samples, Some(Duration::from_millis(200)));
        assert_eq!(means.len(), 4);
        assert_eq!((means[0], means[1], means[3]), ((0.1, 2.0), (0.3, 5.0), (0.7, 8.0)));
        assert!(means[2].1.is_nan());
    }
}
