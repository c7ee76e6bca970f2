//! Profiles: several metrics with the same unit, with a line per series through their means, for example response times
//! by response size. The position of a metric is its index in the list, and the study labels each metric.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::plot::Drawing;
use crate::plot::gather::{self, AxisSeries, Grouping, Value};
use crate::plot::line::{XAxis, draw_gathered};
use crate::unit::words;

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    let metrics = spec.metrics.as_deref().unwrap_or_default();
    if metrics.is_empty() {
        return Drawing::nothing("Not drawn: the plot needs `metrics`; `labels` is optional.");
    }
    let data = match gathered(records, spec, metrics) {
        Ok(data) => data,
        Err(why) => return Drawing::nothing(why),
    };
    // The axis has the common prefix of the metrics' names as its text, and the unit of the first metric.
    let spec = &PlotSpec { y_label: Some(spec.y_label.clone().unwrap_or_else(|| common(metrics))), ..spec.clone() };
    let across = XAxis { x: "", title: spec.x_label.clone().unwrap_or_default(), joined: true };
    draw_gathered(records, spec, &data, across, &metrics[0]).unwrap_or_else(|| {
        Drawing::nothing(format!("Not drawn: the summary has no value of {} at these points.", metrics.join(", ")))
    })
}

/// Returns the series with each metric at its position, or the reason why there are none.
fn gathered(records: &Records, spec: &PlotSpec, metrics: &[String]) -> Result<AxisSeries, String> {
    let rows: Vec<Vec<_>> = metrics.iter().map(|metric| gather::rows(records, spec, metric)).collect();
    let all = || rows.iter().flatten();
    let mut units = all().map(|row| row.unit.as_str()).filter(|unit| !unit.is_empty());
    let unit = units.next().unwrap_or_default();
    if let Some(other) = units.find(|other| *other != unit) {
        return Err(format!("Not drawn: the metrics have different units, {unit} and {other}."));
    }
    let axes = gather::series_axes(spec, all().map(|row| &row.point), None);
    let mut grouping = Grouping::by(&axes);
    for (place, row) in rows.iter().enumerate().flat_map(|(place, rows)| rows.iter().map(move |row| (place, row))) {
        grouping.add(&row.point, [Value::of(row, place as f64)]);
    }
    let labels = spec.labels.as_deref().unwrap_or_default();
    let label = |(place, metric): (usize, &String)| labels.get(place).cloned().unwrap_or_else(|| words(metric));
    let names = metrics.iter().enumerate().map(label).collect();
    Ok(AxisSeries { series: grouping.series, names: Some(names), unit: unit.to_owned() })
}

/// Returns the common prefix of the names of metrics, in words: "Response" for `response_1kB_s` and `response_10kB_s`.
fn common(metrics: &[String]) -> String {
    let parts = |metric: &String| metric.split('_').map(str::to_owned).collect::<Vec<_>>();
    let Some(first) = metrics.first().map(parts) else { return String::new() };
    let shared = |n: &usize| metrics.iter().all(|metric| parts(metric).get(*n) == first.get(*n));
    let count = (0..first.len()).take_while(shared).count();
    match count {
        0 => "Value".to_owned(),
        all if all == first.len() => words(&metrics[0]),
        some => words(&first[..some].join("_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_title_is_the_common_prefix_of_the_metrics() {
        let of = |names: &[&str]| common(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["response_time_1kB_s", "response_time_10kB_s"]), "Response time");
        assert_eq!(of(&["srtt_s"]), "Smoothed round-trip time");
        assert_eq!(of(&["a", "b"]), "Value");
    }
}
