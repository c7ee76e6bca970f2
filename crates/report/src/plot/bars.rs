//! Bar plots: a metric over the values of an axis, with bars from zero and one pattern per series. They are suitable
//! for names (congestion controls, disciplines); for numbers, a line plot is more informative. Series differ in pattern
//! as well as in color.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::plot::Drawing;
use crate::plot::frame::{Axis, Frame, LegendEntry, LegendKey};
use crate::plot::gather::{self, Side};
use crate::plot::line::{hint, in_words, numbers, remarks};
use crate::plot::palette::style;

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    let (Some(x), Some(y)) = (&spec.x, &spec.y) else {
        return Drawing::nothing("Not drawn: the plot needs `x` (an axis) and `y` (a metric).");
    };
    // The length of a bar represents the value, so the axis starts at zero and cannot be logarithmic.
    let spec = &PlotSpec { y_scale: None, y_min: None, ..spec.clone() };
    let mut data = gather::over_axis(records, spec, x, y);
    let Some(height) = gather::height(&data.series, false) else {
        return Drawing::nothing(format!("Not drawn: the summary has no value of {y} over {x} at these points."));
    };
    let behind = numbers(&data, x, y);
    let names = data.names.clone().unwrap_or_else(|| {
        // Numbers are treated as names, in ascending order.
        let mut places: Vec<f64> = data.series.iter().flat_map(|s| &s.values).map(|v| v.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for value in data.series.iter_mut().flat_map(|s| &mut s.values) {
            value.x = places.iter().position(|p| *p == value.x).unwrap_or(0) as f64;
        }
        places.iter().map(|p| crate::numbers::trimmed(*p, 6)).collect()
    });
    let (y_axis, unit) = gather::number_axis(records, spec, Side::Y, y, &data.unit, height);
    let x_axis = Axis::names(spec.x_label.clone().unwrap_or_else(|| gather::word_for(records, x)), names.clone());
    let mut legend = Vec::new();
    for (i, series) in data.series.iter().enumerate().filter(|(_, s)| !s.label.is_empty()) {
        legend.push(LegendEntry { label: series.label.clone(), key: LegendKey::Bar(style(i), i) });
    }
    if data.series.iter().flat_map(|s| &s.values).any(|v| v.published.is_some()) {
        legend.push(LegendEntry { label: "published".to_owned(), key: LegendKey::Open(dark(0)) });
    }
    let words = in_words(&data.series, &x_axis.title, &y_axis.title, &unit);
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    frame.clip(gather::cut(spec));
    let width = 0.76 / data.series.len().max(1) as f64;
    for (i, series) in data.series.iter().enumerate() {
        for value in &series.values {
            let left = value.x - 0.38 + i as f64 * width;
            if let Some(mean) = value.mean {
                frame.bar(left + 0.06 * width, left + 0.94 * width, unit.value(mean), style(i), i);
                if let Some(half) = value.half_width {
                    frame.interval(left + width / 2.0, unit.value(mean), unit.value(half), dark(i));
                }
            }
            let name = names.get(value.x as usize).map_or("", String::as_str);
            if value.mean.is_some() {
                frame.hint_between(left, left + width, &hint(&series.label, name, value, false, &unit));
            }
            if let Some(published) = value.published {
                frame.marker(left + width / 2.0, unit.value(published), dark(0), true);
                frame.hint(left + width / 2.0, unit.value(published), &hint(&series.label, name, value, true, &unit));
            }
        }
    }
    Drawing::of(frame, words, remarks(&data.series, 0)).with(behind)
}

/// Returns the style of marks that are drawn on top of bar number `index`.
pub(crate) fn dark(index: usize) -> crate::plot::palette::Style {
    crate::plot::palette::Style { colour: "#111", ..style(index) }
}
