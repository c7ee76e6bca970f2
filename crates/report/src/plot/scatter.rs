//! Scatter plots: one metric over another, for example delay over throughput. Every run is a dot, and the mean of each
//! point is a marker with intervals in both directions. The means of a series are connected in the order of the sweep
//! if they vary along a single axis.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::numbers::mean_and_interval;
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::frame::{Frame, LegendEntry, LegendKey, Markers, ValueRange};
use crate::plot::gather::{self, Grouping, Series, Side};
use crate::plot::palette::style;
use crate::unit::ScaledUnit;

struct Mark<'a> {
    /// Value on the axis along which points are connected.
    along: &'a str,
    x: (f64, f64),
    y: (f64, f64),
    published: Option<(f64, f64)>,
}

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    draw_means(records, spec, None)
}

/// Draws the means, either with every run as a dot, or connected and labeled along an axis.
pub(crate) fn draw_means(records: &Records, spec: &PlotSpec, along: Option<&str>) -> Drawing {
    let (Some(x), Some(y)) = (&spec.x, &spec.y) else {
        return Drawing::nothing("Not drawn: the plot needs `x` and `y` (metrics).");
    };
    let across = gather::rows(records, spec, x);
    let upwards = gather::rows(records, spec, y);
    let axes = gather::series_axes(spec, upwards.iter().map(|r| &r.point), along);
    let mut grouping = Grouping::by(&axes);
    for row in &upwards {
        let Some(other) = across.iter().find(|r| r.point == row.point) else { continue };
        let (Some(my), Some(mx)) = (row.mean, other.mean) else { continue };
        let mark = Mark {
            along: along.and_then(|axis| row.point.get(axis)).unwrap_or_default(),
            x: (mx, other.ci95.unwrap_or(0.0)),
            y: (my, row.ci95.unwrap_or(0.0)),
            published: other.published.zip(row.published),
        };
        grouping.add(&row.point, [mark]);
    }
    if let Some(axis) = along {
        let order = gather::order_of(records, axis);
        grouping.series.iter_mut().for_each(|one| one.values.sort_by(|a, b| order(a.along, b.along)));
    }
    // All runs, by series.
    let column = |name: &str| records.results.metrics.iter().position(|m| m == name);
    let mut dots: Vec<(usize, f64, f64)> = Vec::new();
    if let (Some(cx), Some(cy), None) = (column(x), column(y), along) {
        for row in records.results.rows.iter().filter(|r| gather::selected(spec, &r.point)) {
            if let (Some(at), Some(vx), Some(vy)) = (grouping.find(&row.point), row.values[cx], row.values[cy]) {
                dots.push((at, vx, vy));
            }
        }
    }
    let series = grouping.series;
    let marks = || series.iter().flat_map(|one| &one.values);
    let extent = |log: bool, values: Vec<f64>| ValueRange::of(values.into_iter().filter(|v| !log || *v > 0.0));
    let mut xs: Vec<f64> = dots.iter().map(|d| d.1).collect();
    let mut ys: Vec<f64> = dots.iter().map(|d| d.2).collect();
    for mark in marks() {
        xs.extend([mark.x.0 - mark.x.1, mark.x.0, mark.x.0 + mark.x.1]);
        ys.extend([mark.y.0 - mark.y.1, mark.y.0, mark.y.0 + mark.y.1]);
        if let Some((px, py)) = mark.published {
            xs.push(px);
            ys.push(py);
        }
    }
    let (x_extent, y_extent) = (extent(gather::is_log(spec.x_scale), xs), extent(gather::is_log(spec.y_scale), ys));
    let (Some(x_extent), Some(y_extent)) = (x_extent, y_extent) else {
        return Drawing::nothing(format!("Not drawn: the summary has no points with both {x} and {y}."));
    };
    let unit = |rows: &[&fullpipe_archive::SummaryRow]| rows.first().map_or("", |r| &r.unit).to_owned();
    let (x_axis, x_unit) = gather::number_axis(records, spec, Side::X, x, &unit(&across), x_extent);
    let side = if along.is_some() { Side::YWithoutZero } else { Side::Y };
    let (y_axis, y_unit) = gather::number_axis(records, spec, side, y, &unit(&upwards), y_extent);
    let path = along.is_some() || gather::varying(upwards.iter().map(|r| &r.point)).len() == axes.len() + 1;
    let has_published = marks().any(|m| m.published.is_some());
    let mut legend: Vec<LegendEntry> = Vec::new();
    for (i, Series { label, .. }) in series.iter().enumerate() {
        if !label.is_empty() {
            let markers = if path { Markers::OnLine } else { Markers::Only };
            legend.push(LegendEntry { label: label.clone(), key: LegendKey::Curve(style(i), markers) });
        }
    }
    if has_published {
        legend.push(LegendEntry { label: "open: published".to_owned(), key: LegendKey::Open(style(0)) });
    }
    let words =
        format!("{} over {}, {} points in {} series.", y_axis.title, x_axis.title, marks().count(), series.len());
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    frame.clip(gather::cut(spec));
    for (i, vx, vy) in &dots {
        frame.dot(x_unit.value(*vx), y_unit.value(*vy), style(*i));
    }
    let mut hidden = 0;
    let columns = [x.clone(), format!("{x}_ci95"), y.clone(), format!("{y}_ci95")];
    let published = [format!("published_{x}"), format!("published_{y}")];
    let columns = columns.iter().chain(&published).map(String::as_str);
    let mut numbers = Data::new(["series", along.unwrap_or("run"), "kind"].into_iter().chain(columns));
    for (i, vx, vy) in &dots {
        let label = series[*i].label.as_str();
        numbers.push([
            label.into(),
            "".into(),
            "run".into(),
            (*vx).into(),
            None.into(),
            (*vy).into(),
            None.into(),
            None.into(),
            None.into(),
        ]);
    }
    for (i, Series { label, values: marks }) in series.iter().enumerate() {
        let style = style(i);
        let place = |m: &Mark<'_>| (x_unit.value(m.x.0), y_unit.value(m.y.0));
        if path {
            frame.curve(&marks.iter().map(place).collect::<Vec<_>>(), style, 1.7);
        }
        for mark in marks {
            let (at, height) = place(mark);
            hidden += usize::from(!frame.shows(at, height));
            frame.interval(at, height, y_unit.value(mark.y.1), style);
            frame.interval_across(at, height, x_unit.value(mark.x.1), style);
            if let Some((px, py)) = mark.published {
                frame.marker(x_unit.value(px), y_unit.value(py), style, true);
            }
            frame.marker(at, height, style, false);
            frame.label(at, height, &gather::shown(mark.along), style, false);
            frame.hint(at, height, &hint(&[label, mark.along], mark, (&x_unit, &y_unit)));
            let published = (mark.published.map(|p| p.0), mark.published.map(|p| p.1));
            numbers.push([
                label.as_str().into(),
                mark.along.into(),
                "mean".into(),
                mark.x.0.into(),
                mark.x.1.into(),
                mark.y.0.into(),
                mark.y.1.into(),
                published.0.into(),
                published.1.into(),
            ]);
        }
    }
    let unplaced = frame.place_labels();
    let mut remarks = Vec::new();
    if let Some(axis) = along {
        let left_out = if unplaced > 0 { format!("; {unplaced} more labels do not fit") } else { String::new() };
        let word = gather::lower_first(&gather::word_for(records, axis));
        remarks.push(format!("Beside the points: {word}{left_out}."));
    }
    if dots.len() > marks().count() {
        remarks.push(format!("Dots: every run, {} in all; markers: means.", dots.len()));
    }
    if marks().any(|m| m.x.1 > 0.0 || m.y.1 > 0.0) {
        remarks.push("Error bars: 95 % intervals of the means (Student's t).".to_owned());
    }
    if hidden > 0 {
        remarks.push(format!("{hidden} points at or below zero cannot be shown on a logarithmic axis."));
    }
    Drawing::of(frame, words, remarks).with(numbers)
}

/// Returns the tooltip of a mark: "cubic, 4: 41.2 ± 0.3 ms, 9.41 ± 0.02 Mbit/s".
fn hint(names: &[&str], mark: &Mark<'_>, units: (&ScaledUnit, &ScaledUnit)) -> String {
    let number = |unit: &ScaledUnit, (mean, half): (f64, f64)| {
        let half = Some(unit.value(half)).filter(|half| *half > 0.0);
        let (mean, half) = mean_and_interval(unit.value(mean), half);
        unit.with_unit(&half.map_or(mean.clone(), |half| format!("{mean} ± {half}")))
    };
    let names = names.iter().copied().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
    let colon = if names.is_empty() { "" } else { ": " };
    format!("{names}{colon}{}, {}", number(units.0, mark.x), number(units.1, mark.y))
}
