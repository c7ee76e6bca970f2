//! Line plots: a metric over an axis, with one curve per series through the means, bars for the 95 % intervals, and
//! open markers for published values. If the axis has names instead of numbers, points are not connected, because a
//! line between them would have no meaning.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::numbers::{mean_and_interval, trimmed};
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::frame::{Axis, Frame, LegendEntry, LegendKey, Markers, ValueRange};
use crate::plot::gather::{self, AxisSeries, Series, Side, Value};
use crate::plot::palette::{Style, style};
use crate::unit::{ScaledUnit, Unit};

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    let (Some(x), Some(y)) = (&spec.x, &spec.y) else {
        return Drawing::nothing("Not drawn: the plot needs `x` (an axis) and `y` (a metric).");
    };
    let data = gather::over_axis(records, spec, x, y);
    let across = spec.x_label.clone().unwrap_or_else(|| gather::word_for(records, x));
    draw_gathered(records, spec, &data, XAxis { x, title: across, joined: false }, y).unwrap_or_else(|| {
        Drawing::nothing(format!("Not drawn: the summary has no value of {y} over {x} at these points."))
    })
}

/// Properties of the horizontal axis of a plot.
pub(crate) struct XAxis<'a> {
    /// The name of the axis.
    pub(crate) x: &'a str,
    /// The title of the axis if its values are names.
    pub(crate) title: String,
    /// Whether lines connect points across names, because the order of the names has a meaning.
    pub(crate) joined: bool,
}

/// Draws series of the metric `y`; `None` if there is nothing to draw.
pub(crate) fn draw_gathered(
    records: &Records,
    spec: &PlotSpec,
    data: &AxisSeries,
    across: XAxis<'_>,
    y: &str,
) -> Option<Drawing> {
    let apart = data.names.is_some() && !across.joined;
    let numbers = numbers(data, across.x, y);
    let height = gather::height(&data.series, gather::is_log(spec.y_scale))?;
    let (y_axis, y_unit) = gather::number_axis(records, spec, Side::Y, y, &data.unit, height);
    let (x_axis, x_unit) = match &data.names {
        Some(names) => (Axis::names(across.title, names.clone()), Unit::new("%").unscaled()),
        None => {
            let places = data.series.iter().flat_map(|s| &s.values).map(|v| v.x);
            let places: Vec<f64> = places.filter(|v| !gather::is_log(spec.x_scale) || *v > 0.0).collect();
            gather::axis_of_values(records, spec, across.x, places)?
        }
    };
    let styles: Vec<_> = (0..data.series.len()).map(style).collect();
    let words = in_words(&data.series, &x_axis.title, &y_axis.title, &y_unit);
    let mut frame = Frame::new(&x_axis, &y_axis, legend(&data.series, &styles, apart));
    frame.clip(gather::cut(spec));
    let mut hidden = 0;
    // Draws lines first, then intervals, then markers, so that the most important marks are on top.
    for (series, style) in data.series.iter().zip(&styles) {
        if connects(series, apart) {
            let values: Vec<_> =
                series.values.iter().filter_map(|v| Some((x_unit.value(v.x), y_unit.value(v.mean?)))).collect();
            frame.curve(&values, *style, 1.7);
        }
    }
    for (series, style) in data.series.iter().zip(&styles) {
        for value in &series.values {
            if let (Some(mean), Some(half)) = (value.mean, value.half_width) {
                frame.interval(x_unit.value(value.x), y_unit.value(mean), y_unit.value(half), *style);
            }
        }
    }
    for (series, style) in data.series.iter().zip(&styles) {
        for value in &series.values {
            let at = x_unit.value(value.x);
            for (height, open) in [(value.published, true), (value.mean, false)] {
                if let Some(height) = height {
                    let height = y_unit.value(height);
                    hidden += usize::from(!frame.shows(at, height));
                    frame.marker(at, height, *style, open);
                    let place = data.names.as_ref().and_then(|names| names.get(value.x as usize).cloned());
                    let place = place.unwrap_or_else(|| x_unit.with_unit(&trimmed(at, 6)));
                    frame.hint(at, height, &hint(&series.label, &place, value, open, &y_unit));
                }
            }
        }
    }
    Some(Drawing::of(frame, words, remarks(&data.series, hidden)).with(numbers))
}

/// Returns the tooltip of a value: "cubic, 4: 9.41 ± 0.02 Mbit/s (10 runs)".
pub(crate) fn hint(label: &str, place: &str, value: &Value, open: bool, unit: &ScaledUnit) -> String {
    let scaled = |value: f64| unit.value(value);
    let (number, after) = match (open, value.mean) {
        (false, Some(mean)) => {
            let (mean, half) = mean_and_interval(scaled(mean), value.half_width.map(scaled));
            let runs = if value.n == 1 { "1 run".to_owned() } else { format!("{} runs", value.n) };
            (half.map_or(mean.clone(), |half| format!("{mean} ± {half}")), format!(" ({runs})"))
        }
        _ => (value.published.map_or_else(String::new, |v| trimmed(scaled(v), 6)), " (published)".to_owned()),
    };
    let label = [label, place].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    format!("{label}: {}{after}", unit.with_unit(&number))
}

/// Returns the numbers of a plot over an axis.
pub(crate) fn numbers(data: &AxisSeries, x: &str, y: &str) -> Data {
    let x = if x.is_empty() { "position" } else { x };
    let mut numbers = Data::new(["series", x, y, "low", "high", "runs", "published"]);
    for series in &data.series {
        for value in &series.values {
            let place = match data.names.as_ref().and_then(|names| names.get(value.x as usize)) {
                Some(name) => name.as_str().into(),
                None => value.x.into(),
            };
            let end = |sign: f64| value.mean.zip(value.half_width).map(|(mean, half)| mean + sign * half);
            numbers.push([
                series.label.as_str().into(),
                place,
                value.mean.into(),
                end(-1.0).into(),
                end(1.0).into(),
                (value.n as f64).into(),
                value.published.into(),
            ]);
        }
    }
    numbers
}

/// Returns whether a line connects the points of a series. It does not across unordered names, and not if two values
/// have the same position.
fn connects(series: &Series, apart: bool) -> bool {
    !apart && series.values.windows(2).all(|w| w[0].x < w[1].x)
}

fn legend(series: &[Series], styles: &[Style], apart: bool) -> Vec<LegendEntry> {
    let published = series.iter().flat_map(|s| &s.values).any(|v| v.published.is_some());
    let mut entries = Vec::new();
    for (one, style) in series.iter().zip(styles) {
        let label = match one.label.as_str() {
            "" => "measured",
            label => label,
        };
        if series.len() > 1 || published || !one.label.is_empty() {
            let markers = if connects(one, apart) { Markers::OnLine } else { Markers::Only };
            entries.push(LegendEntry { label: label.to_owned(), key: LegendKey::Curve(*style, markers) });
        }
    }
    if published {
        let shown = styles.iter().zip(series).find(|(_, s)| s.values.iter().any(|v| v.published.is_some()));
        let mut style = shown.map_or_else(|| style(0), |(style, _)| *style);
        if series.len() > 1 {
            style.colour = "#555";
        }
        let label = if series.len() > 1 { "open: published" } else { "published" };
        entries.push(LegendEntry { label: label.to_owned(), key: LegendKey::Open(style) });
    }
    entries
}

/// Returns the remarks for the caption.
pub(crate) fn remarks(series: &[Series], hidden: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    let intervals = series.iter().flat_map(|s| &s.values).any(|v| v.half_width.is_some());
    match (intervals, gather::runs_in_words(series)) {
        (true, Some(runs)) => remarks.push(format!("Error bars: 95 % interval of the mean (Student's t), {runs}.")),
        (false, Some(runs)) => remarks.push(format!("No intervals: {runs}.")),
        (_, None) => {}
    }
    if series.iter().flat_map(|s| &s.values).any(|v| v.published.is_some()) {
        remarks.push("Open markers: published values.".to_owned());
    }
    if hidden > 0 {
        remarks.push(format!("{hidden} values at or below zero cannot be shown on a logarithmic axis."));
    }
    remarks
}

/// Describes the plot in words: the axes, then the first and the last value of each series.
pub(crate) fn in_words(series: &[Series], x: &str, y: &str, y_unit: &ScaledUnit) -> String {
    let mut out = format!("{y} over {x}.");
    for one in series {
        let means: Vec<f64> = one.values.iter().filter_map(|v| v.mean).map(|v| y_unit.value(v)).collect();
        let (Some(first), Some(last), Some(extent)) =
            (means.first(), means.last(), ValueRange::of(means.iter().copied()))
        else {
            continue;
        };
        let label = if one.label.is_empty() { "Measured" } else { &one.label };
        out.push_str(&format!(
            " {label}: {} points, first {}, last {}, between {} and {}.",
            means.len(),
            trimmed(*first, 4),
            trimmed(*last, 4),
            trimmed(extent.low, 4),
            trimmed(extent.high, 4)
        ));
    }
    out
}
