//! Selects the data of a plot from the summary: points, series, their names and their units.

use crate::input::Records;
use crate::input::study::{PlotSpec, list};
use crate::plot::frame::{Axis, AxisScale, ValueRange};
use crate::plot::shape::{fit, text_width};
use crate::plot::ticks::{RangeEnds, scale_of_values};
use crate::unit::{ScaledUnit, Unit, in_words, words};
use fullpipe_archive::parse_number;
use fullpipe_archive::{Point, SummaryRow};
use fullpipe_schema::Node;

/// One value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// Position on the horizontal axis: a value in base units, or the index of a name.
    pub(crate) x: f64,
    /// Mean over runs, in base units; `None` if the point was not measured.
    pub(crate) mean: Option<f64>,
    /// Half width of the 95 % interval of the mean.
    pub(crate) half_width: Option<f64>,
    /// Published value.
    pub(crate) published: Option<f64>,
    /// Number of runs.
    pub(crate) n: u64,
}

impl Value {
    /// Returns the value of a row at a position.
    pub(crate) fn of(row: &SummaryRow, x: f64) -> Self {
        Self { x, mean: row.mean, half_width: row.ci95, published: row.published, n: row.run_count() }
    }
}

/// A series: values with the same values of the series' axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series<T = Value> {
    pub(crate) label: String,
    pub(crate) values: Vec<T>,
}

/// Groups values into series, one for each combination of the values of some axes.
pub(crate) struct Grouping<'a, T> {
    axes: &'a [String],
    /// The values of the axes for each series.
    keys: Vec<Vec<Option<&'a str>>>,
    pub(crate) series: Vec<Series<T>>,
}

impl<'a, T> Grouping<'a, T> {
    pub(crate) fn by(axes: &'a [String]) -> Self {
        Self { axes, keys: Vec::new(), series: Vec::new() }
    }

    /// Returns the index of the series that contains a point; `None` if there is none.
    pub(crate) fn find(&self, point: &Point) -> Option<usize> {
        self.keys.iter().position(|key| self.axes.iter().map(|axis| point.get(axis)).eq(key.iter().copied()))
    }

    /// Adds values to the series of a point, and creates the series if it does not exist.
    pub(crate) fn add(&mut self, point: &'a Point, values: impl IntoIterator<Item = T>) {
        let at = self.find(point).unwrap_or_else(|| {
            self.keys.push(self.axes.iter().map(|axis| point.get(axis)).collect());
            self.series.push(Series { label: series_label(self.axes, point), values: Vec::new() });
            self.series.len() - 1
        });
        self.series[at].values.extend(values);
    }
}

/// Series over an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisSeries {
    pub(crate) series: Vec<Series>,
    /// Names on the horizontal axis if its values are not numbers.
    pub(crate) names: Option<Vec<String>>,
    /// Unit in the records.
    pub(crate) unit: String,
}

/// Returns the axes with more than one value, in the study's order.
pub(crate) fn varying<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Vec<String> {
    let mut axes: Vec<(&str, &str, bool)> = Vec::new();
    for point in points {
        for (axis, value) in &point.0 {
            match axes.iter_mut().find(|(a, ..)| a == axis) {
                Some(known) => known.2 |= known.1 != value,
                None => axes.push((axis, value, false)),
            }
        }
    }
    axes.into_iter().filter(|(.., varies)| *varies).map(|(a, ..)| a.to_owned()).collect()
}

/// Returns whether the plot selects a point.
pub(crate) fn selected(spec: &PlotSpec, point: &Point) -> bool {
    let has = |value: &str, wanted: &Node| list(wanted).iter().any(|wanted| same(value, wanted));
    spec.r#where.iter().flatten().all(|(axis, wanted)| point.get(axis).is_some_and(|value| has(value, wanted)))
}

/// Returns whether two axis values are equal. For example, 100000 and 1e5 are the same value.
fn same(a: &str, b: &str) -> bool {
    a == b || matches!((parse_number(a), parse_number(b)), (Some(x), Some(y)) if x == y)
}

/// Returns the rows of a metric at the selected points.
pub(crate) fn rows<'a>(records: &'a Records, spec: &PlotSpec, metric: &str) -> Vec<&'a SummaryRow> {
    records.summary.iter().filter(|r| r.metric == metric && selected(spec, &r.point)).collect()
}

/// Returns the axes that distinguish series: those that the plot declares, or all varying axes except `x`.
pub(crate) fn series_axes<'a>(
    spec: &PlotSpec,
    points: impl Iterator<Item = &'a Point> + Clone,
    x: Option<&str>,
) -> Vec<String> {
    match &spec.series {
        Some(axes) => axes.clone(),
        None => varying(points).into_iter().filter(|a| Some(a.as_str()) != x).collect(),
    }
}

/// Returns the name of a point in a legend. Numbers and booleans are preceded by the name of their axis; words are not.
pub(crate) fn series_label(axes: &[String], point: &Point) -> String {
    let part = |axis: &String| {
        let value = point.get(axis)?;
        let bare = parse_number(value).is_none() && value != "true" && value != "false" && !value.is_empty();
        let shown = shown(value);
        // Uses the axis's name, because its text may be long.
        Some(if bare { shown } else { format!("{} {shown}", in_words(axis)) })
    };
    axes.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

/// Formats an axis value in readable form: 1e5 is 100 000.
pub(crate) fn shown(value: &str) -> String {
    parse_number(value).map_or_else(|| value.to_owned(), |v| crate::numbers::trimmed(v, 6))
}

/// Returns the order of the values of an axis: numbers by size, other values as in the study.
pub(crate) fn order_of<'a>(records: &'a Records, axis: &str) -> impl Fn(&str, &str) -> std::cmp::Ordering + use<'a> {
    let listed = records.study.axis.iter().find(|known| known.name == axis).map(|known| known.values.as_slice());
    move |a, b| match (parse_number(a), parse_number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => {
            let place =
                |value: &str| listed.and_then(|list| list.iter().position(|v| v == value)).unwrap_or(usize::MAX);
            place(a).cmp(&place(b))
        }
    }
}

/// Returns a name as it is written within a sentence.
pub(crate) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next();
    // An abbreviation keeps its uppercase letters.
    if chars.clone().next().is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    first.into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}

/// Returns the series of a metric over an axis.
pub(crate) fn over_axis(records: &Records, spec: &PlotSpec, x: &str, metric: &str) -> AxisSeries {
    let rows = rows(records, spec, metric);
    let axes = series_axes(spec, rows.iter().map(|r| &r.point), Some(x));
    let rows: Vec<_> = rows.into_iter().filter(|r| r.point.get(x).is_some()).collect();
    let numeric = rows.iter().all(|r| r.point.get(x).is_some_and(|v| parse_number(v).is_some()));
    let mut names: Vec<String> = Vec::new();
    let mut grouping = Grouping::by(&axes);
    for row in &rows {
        let text = row.point.get(x).unwrap_or_default();
        let place = if numeric {
            parse_number(text).unwrap_or_default()
        } else {
            let known = names.iter().position(|n| n == text);
            known.unwrap_or_else(|| {
                names.push(text.to_owned());
                names.len() - 1
            }) as f64
        };
        grouping.add(&row.point, [Value::of(row, place)]);
    }
    let mut series = grouping.series;
    for one in &mut series {
        one.values.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let unit = rows.iter().map(|r| r.unit.clone()).find(|u| !u.is_empty()).unwrap_or_default();
    AxisSeries { series, names: (!numeric).then_some(names), unit }
}

/// Returns the name of a metric or an axis. It is the study's text if that is a name and not a sentence; otherwise it
/// is the key in words.
pub(crate) fn word_for(records: &Records, name: &str) -> String {
    let told = records.study.words_of(name).map(|w| w.text.trim());
    match told.filter(|t| !t.is_empty() && !t.ends_with('.') && t.chars().count() <= LONGEST_NAME) {
        Some(text) => capitalized(text),
        None => words(name),
    }
}

/// The maximum number of characters of a name; a longer text is considered a sentence.
const LONGEST_NAME: usize = 45;

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The orientation of an axis, and whether it must include zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    X,
    /// Vertical, for a plot in which lengths are compared: the axis starts at zero.
    Y,
    /// Vertical, for a plot in which positions are compared: the axis need not start at zero.
    YWithoutZero,
}

/// Returns the title, the unit and the scale of an axis of numbers. `unit` is the unit in the records; the study's
/// texts take precedence.
pub(crate) fn number_axis(
    records: &Records,
    spec: &PlotSpec,
    side: Side,
    name: &str,
    unit: &str,
    extent: ValueRange,
) -> (Axis, ScaledUnit) {
    let (label, asked_unit, log, low, high) = match side {
        Side::X => (&spec.x_label, &spec.x_unit, is_log(spec.x_scale), spec.x_min, spec.x_max),
        Side::Y | Side::YWithoutZero => (&spec.y_label, &spec.y_unit, is_log(spec.y_scale), spec.y_min, spec.y_max),
    };
    let told = asked_unit.clone().or_else(|| records.study.words_of(name).and_then(|w| w.unit.clone()));
    let unit = match told {
        Some(unit) => Unit::new(&unit),
        None if !unit.is_empty() => Unit::new(unit),
        None => Unit::of_metric(name),
    };
    let mut extent = extent;
    // Lengths are comparable only if the axis starts at zero. A horizontal axis may start elsewhere.
    let near_zero = extent.low >= 0.0 && extent.low <= 0.3 * extent.high;
    if !log && (side == Side::Y || near_zero) {
        extent = extent.with_zero();
    }
    extent.low = low.filter(|v| !log || *v > 0.0).unwrap_or(extent.low);
    extent.high = high.filter(|v| !log || *v > 0.0).unwrap_or(extent.high);
    // A shorter name replaces one that does not fit. The unit is never shortened.
    let scaled = unit.scale_for(extent.size());
    let unit_width = if scaled.label.is_empty() { 0.0 } else { text_width(&format!(" ({})", scaled.label)) };
    let room = if side == Side::X { 330.0 } else { 255.0 - unit_width };
    let own = Some(word_for(records, name)).filter(|words| text_width(words) <= room);
    let label = fit(&label.clone().or(own).unwrap_or_else(|| words(name)), room);
    // If a text contains its unit, neither the text nor the values are changed.
    let (title, scaled) =
        if label.ends_with(')') { (label, Unit::new("%").unscaled()) } else { (scaled.heading(&label), scaled) };
    let scale = if log { AxisScale::Log } else { AxisScale::Linear(RangeEnds::OnStep) };
    let extent = ValueRange { low: scaled.value(extent.low), high: scaled.value(extent.high) };
    (Axis { title, scale, extent, reversed: side == Side::X && spec.x_reversed == Some(true) }, scaled)
}

/// Returns a horizontal axis for values at distinct positions, with a tick at each value if there are few; `None`
/// without values.
pub(crate) fn axis_of_values(
    records: &Records,
    spec: &PlotSpec,
    name: &str,
    mut values: Vec<f64>,
) -> Option<(Axis, ScaledUnit)> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let extent = ValueRange::of(values.iter().copied())?;
    let (axis, unit) = number_axis(records, spec, Side::X, name, "", extent);
    // If the study sets limits, they are those of the scale.
    if spec.x_min.is_some() || spec.x_max.is_some() {
        return Some((axis, unit));
    }
    let Some(log) = scale_of_values(&values, spec.x_scale.map(|scale| is_log(Some(scale)))) else {
        return Some((axis, unit));
    };
    let values: Vec<f64> = values.into_iter().map(|value| unit.value(value)).collect();
    let extent = if log { ValueRange::of(values.iter().copied())? } else { axis.extent };
    Some((Axis { scale: AxisScale::Values { values, log }, extent, ..axis }, unit))
}

/// Returns whether an axis is logarithmic.
pub(crate) fn is_log(scale: Option<fullpipe_archive::Scale>) -> bool {
    scale == Some(fullpipe_archive::Scale::Log)
}

/// Returns whether the study sets a limit of an axis, so that data may be outside.
pub(crate) fn cut(spec: &PlotSpec) -> bool {
    [spec.x_min, spec.x_max, spec.y_min, spec.y_max].iter().any(Option::is_some)
}

/// Returns the vertical range of some series, including interval ends and published points. On a logarithmic axis, the
/// range covers only values above zero.
pub(crate) fn height(series: &[Series], log: bool) -> Option<ValueRange> {
    let ends = series.iter().flat_map(|s| &s.values).flat_map(|v| {
        let half = v.half_width.unwrap_or(0.0);
        [v.mean, v.mean.map(|m| m - half), v.mean.map(|m| m + half), v.published].into_iter().flatten()
    });
    ValueRange::of(ends.filter(|v| !log || *v > 0.0))
}

/// Formats the number of runs as "n = 30 runs", or as a range.
pub(crate) fn runs_in_words(series: &[Series]) -> Option<String> {
    let counts = || series.iter().flat_map(|s| &s.values).filter(|v| v.mean.is_some()).map(|v| v.n);
    let (low, high) = (counts().min()?, counts().max()?);
    Some(match (low, high) {
        (1, 1) => "one run per point".to_owned(),
        (a, b) if a == b => format!("n = {a} runs per point"),
        (a, b) => format!("n = {a} to {b} runs per point"),
    })
}
