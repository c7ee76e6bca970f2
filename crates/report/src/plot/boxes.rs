//! Box plots: the distribution of a metric over the runs of each value of an axis, with one box per series. A box spans
//! the first to the third quartile, with a line at the median. Whiskers extend to the most distant value within 1.5
//! interquartile ranges of the box (Tukey 1977). Each run beyond them is drawn as a dot. Quartiles interpolate linearly
//! between order statistics (type 7 of Hyndman and Fan 1996, the default of R and matplotlib).

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::numbers::trimmed;
use crate::plot::Drawing;
use crate::plot::data::{Data, Datum};
use crate::plot::frame::{Axis, Frame, LegendEntry, LegendKey, ValueRange};
use crate::plot::gather::{self, Grouping, Series, Side};
use crate::plot::palette::style;
use fullpipe_archive::{BOX_QUANTILES, Point};

/// The five numbers of a box, and the values outside its whiskers.
#[derive(Clone, Debug, PartialEq)]
struct Summary {
    quartiles: [f64; 3],
    whiskers: (f64, f64),
    outside: Vec<f64>,
}

impl Summary {
    /// Returns the summary of sorted values; `None` if there are none.
    fn of(sorted: &[f64]) -> Option<Self> {
        sorted.first()?;
        let quartiles = [0.25, 0.5, 0.75].map(|share| quantile(sorted, share));
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let within = |value: &f64| (quartiles[0] - reach..=quartiles[2] + reach).contains(value);
        let inside = ValueRange::of(sorted.iter().copied().filter(within))?;
        let outside = sorted.iter().copied().filter(|value| !within(value)).collect();
        // An interpolated quartile can be beyond the last value within the range.
        let whiskers = (inside.low.min(quartiles[0]), inside.high.max(quartiles[2]));
        Some(Self { quartiles, whiskers, outside })
    }

    /// Returns five quantiles, from the lower to the upper whisker, each as the mean over the runs; `None` without
    /// runs.
    fn of_means(runs: &[&[f64]]) -> Option<Self> {
        let mean = |quantile: usize| runs.iter().map(|run| run[quantile]).sum::<f64>() / runs.len() as f64;
        let [low, first, median, third, high] = std::array::from_fn::<f64, BOX_QUANTILES, _>(mean);
        (!runs.is_empty()).then(|| Self {
            quartiles: [first, median, third],
            whiskers: (low, high),
            outside: Vec::new(),
        })
    }
}

/// Returns a quantile of a non-empty list of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    let shown: Vec<&str> = match (&spec.metrics, &spec.y) {
        (Some(metrics), _) => metrics.iter().map(String::as_str).collect(),
        (None, y) => y.as_deref().into_iter().collect(),
    };
    let (Some(x), 1 | BOX_QUANTILES) = (&spec.x, shown.len()) else {
        return Drawing::nothing("Not drawn: the plot needs `x` (an axis) and `y` (a metric) or five `metrics`.");
    };
    // With five quantiles, the title of the axis is that of the median.
    let y = shown[shown.len() / 2];
    let log = gather::is_log(spec.y_scale);
    let mut columns = Vec::new();
    for name in &shown {
        let Some(column) = records.results.metrics.iter().position(|metric| metric == name) else {
            return Drawing::nothing(format!("Not drawn: the results have no metric {name}."));
        };
        columns.push(column);
    }
    let rows =
        records.results.rows.iter().filter(|row| gather::selected(spec, &row.point) && row.point.get(x).is_some());
    // The runs in which all metrics have a value.
    let rows: Vec<(&Point, Vec<f64>)> = rows
        .filter_map(|row| Some((&row.point, columns.iter().map(|column| row.values[*column]).collect::<Option<_>>()?)))
        .collect();
    let mut names: Vec<&str> = rows.iter().filter_map(|(point, _)| point.get(x)).collect();
    let order = gather::order_of(records, x);
    names.sort_by(|a, b| order(a, b));
    names.dedup();
    let axes = gather::series_axes(spec, rows.iter().map(|(point, _)| *point), Some(x));
    let mut grouping = Grouping::by(&axes);
    for (point, values) in &rows {
        let place = names.iter().position(|name| Some(*name) == point.get(x)).unwrap_or_default();
        grouping.add(point, [(place, values.as_slice())]);
    }
    let series = grouping.series;
    // The values of a series at a position, and the number of runs.
    let at = |one: &Series<(usize, &[f64])>, place: usize| {
        let runs: Vec<&[f64]> = one.values.iter().filter(|(at, _)| *at == place).map(|(_, values)| *values).collect();
        let summary = if shown.len() == BOX_QUANTILES {
            Summary::of_means(&runs)
        } else {
            let mut values: Vec<f64> = runs.iter().map(|run| run[0]).collect();
            values.sort_by(f64::total_cmp);
            Summary::of(&values)
        };
        Some((summary?, runs.len()))
    };
    // With quantiles of runs, the axis covers their means, because only the means are drawn.
    let drawn = series.iter().flat_map(|one| (0..names.len()).filter_map(|place| at(one, place)));
    let all = drawn.flat_map(|(summary, _)| {
        let ends = [summary.whiskers.0, summary.whiskers.1];
        ends.into_iter().chain(summary.quartiles).chain(summary.outside)
    });
    let Some(extent) = ValueRange::of(all.filter(|value| !log || *value > 0.0)) else {
        return Drawing::nothing(format!("Not drawn: no run has a value of {y} over {x} at these points."));
    };
    // The reader compares positions, not lengths, so the axis need not start at zero.
    let (y_axis, unit) = gather::number_axis(records, spec, Side::YWithoutZero, y, "", extent);
    let title = spec.x_label.clone().unwrap_or_else(|| gather::word_for(records, x));
    let x_axis = Axis::names(title, names.iter().map(|name| gather::shown(name)).collect());
    let legend = series.iter().enumerate().filter(|(_, one)| !one.label.is_empty());
    let legend =
        legend.map(|(i, one)| LegendEntry { label: one.label.clone(), key: LegendKey::Bar(style(i), i) }).collect();
    let mut words = format!("{} over {}, as box plots.", y_axis.title, x_axis.title);
    let mut frame = Frame::new(&x_axis, &y_axis, legend);
    frame.clip(gather::cut(spec));
    let width = 0.76 / series.len().max(1) as f64;
    let (mut counts, mut outside) = (Vec::new(), 0);
    let quantiles = ["whisker_low", "quartile_1", "median", "quartile_3", "whisker_high", "runs"];
    let mut numbers = Data::new(["series", x.as_str()].into_iter().chain(quantiles));
    for (i, one) in series.iter().enumerate() {
        let line = style(i).solid();
        for (place, name) in names.iter().enumerate() {
            let Some((summary, runs)) = at(one, place) else { continue };
            counts.push(runs);
            outside += summary.outside.len();
            let left = place as f64 - 0.38 + i as f64 * width;
            let middle = left + width / 2.0;
            let across = |share: f64| (middle - share * width / 2.0, middle + share * width / 2.0);
            let [low, median, high] = summary.quartiles.map(|value| unit.value(value));
            let (box_left, box_right) = across(0.8);
            frame.block((box_left, box_right), (low, high), style(i), i);
            frame.curve(&[(box_left, median), (box_right, median)], crate::plot::bars::dark(i).solid(), 2.4);
            let (cap_left, cap_right) = across(0.4);
            for (end, edge) in [(summary.whiskers.0, low), (summary.whiskers.1, high)] {
                let end = unit.value(end);
                frame.curve(&[(middle, edge), (middle, end)], line, 1.1);
                frame.curve(&[(cap_left, end), (cap_right, end)], line, 1.1);
            }
            for value in &summary.outside {
                frame.dot(middle, unit.value(*value), line);
            }
            let five = [
                summary.whiskers.0,
                summary.quartiles[0],
                summary.quartiles[1],
                summary.quartiles[2],
                summary.whiskers.1,
            ];
            let [from, first, second, third, to] = five.map(|value| trimmed(unit.value(value), 4));
            let name_of =
                [one.label.as_str(), name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
            frame.hint_between(
                left,
                left + width,
                &format!(
                    "{name_of}: {} (quartiles {first} to {third}, whiskers {from} to {to})",
                    unit.with_unit(&second)
                ),
            );
            let [from, first, second, third, to] = five.map(Datum::from);
            numbers.push([
                one.label.as_str().into(),
                (*name).into(),
                from,
                first,
                second,
                third,
                to,
                (runs as f64).into(),
            ]);
            let label = if one.label.is_empty() { "Measured" } else { &one.label };
            words.push_str(&format!(
                " {label}, {name}: median {}, quartiles {} and {}.",
                trimmed(median, 4),
                trimmed(low, 4),
                trimmed(high, 4)
            ));
        }
    }
    let runs = match (counts.iter().min(), counts.iter().max()) {
        (Some(a), Some(b)) if a == b => format!("n = {a} runs per box"),
        (Some(a), Some(b)) => format!("n = {a} to {b} runs per box"),
        _ => String::new(),
    };
    let mut remarks = vec![if shown.len() == BOX_QUANTILES {
        let names = |of: &[&str]| of.iter().map(|name| gather::word_for(records, name)).collect::<Vec<_>>().join(", ");
        format!(
            "Boxes: means over runs of {}; whiskers: of {}; {runs}.",
            names(&shown[1..4]),
            names(&[shown[0], shown[4]])
        )
    } else {
        format!("Boxes: quartiles and median; whiskers: the last run within 1.5 interquartile ranges; {runs}.")
    }];
    if outside > 0 {
        remarks.push(format!("Dots: the {outside} runs beyond the whiskers."));
    }
    Drawing::of(frame, words, remarks).with(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate_and_whiskers_end_at_the_last_value_in_range() {
        // Nine values: the quartiles are the 3rd, 5th and 7th value. The range is 1.5 * (7 - 3) = 6, so 13 is the upper
        // limit and -3 the lower limit; 14 is outside.
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 14.0]).unwrap();
        assert_eq!(summary.quartiles, [3.0, 5.0, 7.0]);
        assert_eq!((summary.whiskers, summary.outside), ((1.0, 8.0), vec![14.0]));
        // Four values: 0.25 * 3 = 0.75 of the way from the first to the second.
        assert_eq!(quantile(&[0.0, 4.0, 8.0, 12.0], 0.25), 3.0);
    }

    #[test]
    fn box_of_quantiles_has_their_means_over_runs() {
        // Expected: (1 + 3) / 2 = 2, (2 + 6) / 2 = 4, (3 + 7) / 2 = 5, (4 + 10) / 2 = 7, (9 + 21) / 2 = 15.
        let summary = Summary::of_means(&[&[1.0, 2.0, 3.0, 4.0, 9.0], &[3.0, 6.0, 7.0, 10.0, 21.0]]).unwrap();
        assert_eq!((summary.quartiles, summary.whiskers), ([4.0, 5.0, 7.0], (2.0, 15.0)));
        assert_eq!(Summary::of_means(&[]), None);
    }

    #[test]
    fn single_value_gives_a_flat_box_and_no_value_gives_none() {
        let one = Summary::of(&[2.0]).unwrap();
        assert_eq!((one.quartiles, one.whiskers, one.outside), ([2.0; 3], (2.0, 2.0), vec![]));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn whisker_never_ends_inside_the_box() {
        // Quartiles 0, 5 and 10 of [0, 0, 10, 10] give a range of 15. For [0, 0, 0, 100] the interpolated third
        // quartile is 25 and the range 37.5. Thus 100 is outside, and the last value inside is 0, below the end of the
        // box.
        let summary = Summary::of(&[0.0, 0.0, 0.0, 100.0]).unwrap();
        assert_eq!(summary.quartiles[2], 25.0);
        assert_eq!((summary.whiskers, summary.outside), ((0.0, 25.0), vec![100.0]));
    }
}
