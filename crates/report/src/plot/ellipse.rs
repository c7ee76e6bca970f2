//! Ellipses of two metrics of `series.csv`, for example throughput over delay (Winstein and Balakrishnan, "TCP ex
//! Machina", SIGCOMM 2013; the Common TCP Evaluation Suite). The samples of a run from the start of its measured
//! interval are averaged over intervals of equal length, and each interval contributes a pair. The pairs of all runs of
//! a series have a mean, which is the center of the ellipse, and a sample covariance. The ellipse is the contour of one
//! standard deviation of the normal distribution with these moments.
//!
//! The ns-3 evaluation suite multiplies the semi-axes by the population standard deviations of x and y, with times in
//! seconds and rates in units of 2^20 bit/s. The scaling `n3` does the same. Unlike the contour, the result depends on
//! the units.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::series::{BoundaryRule, averages, read_pair};
use crate::input::study::PlotSpec;
use crate::numbers::trimmed;
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::frame::{Frame, LegendEntry, LegendKey, Markers, ValueRange};
use crate::plot::gather::{self, Grouping, Series, Side};
use crate::plot::moments::{Ellipse, Moments};
use crate::plot::palette::style;
use crate::unit::ScaledUnit;
use fullpipe_archive::{ResultRow, Scaling};
use fullpipe_units::Duration;
use std::collections::BTreeMap;

/// The averaging interval in nanoseconds if the study does not set one.
const GROUP_NS: u64 = 100_000_000;

/// One series.
struct Cloud {
    label: String,
    moments: Moments,
    /// The ellipse in the units in which it was computed. The next field contains these units as multiples of the units
    /// of the records.
    ellipse: Ellipse,
    unit: (f64, f64),
}

impl Cloud {
    /// Computes the ellipse of pairs; `None` if there are none.
    fn of(label: String, pairs: &[(f64, f64)], metrics: [&str; 2], scaling: Scaling) -> Option<Self> {
        let moments = Moments::of(pairs)?;
        if scaling == Scaling::Sigma {
            return Some(Self { label, moments, ellipse: moments.ellipse(), unit: (1.0, 1.0) });
        }
        let [ux, uy] = metrics.map(|metric| if metric.ends_with("_bps") { 1_048_576.0 } else { 1.0 });
        let (vx, vy) = moments.variance;
        let there = Moments {
            mean: (moments.mean.0 / ux, moments.mean.1 / uy),
            variance: (vx / (ux * ux), vy / (uy * uy)),
            covariance: moments.covariance / (ux * uy),
            ..moments
        };
        let ((sx, sy), plain) = (there.population_deviations(), there.ellipse());
        let ellipse = Ellipse { semi_axes: (plain.semi_axes.0 * sx, plain.semi_axes.1 * sy), ..plain };
        Some(Self { label, moments, ellipse, unit: (ux, uy) })
    }

    fn scaled(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x * self.unit.0, y * self.unit.1)
    }
}

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Result<Drawing, ReportError> {
    let (Some(x), Some(y), Some(subject)) = (&spec.x, &spec.y, &spec.subject) else {
        let why = "Not drawn: the plot needs `x` and `y` (metrics of series.csv) and `subject` (a flow or link).";
        return Ok(Drawing::nothing(why));
    };
    let group_ns = spec.group.map_or(GROUP_NS, Duration::as_nanos);
    let mut clouds: Vec<Cloud> = Vec::new();
    let mut empty = 0;
    let rows: Vec<_> = records.results.rows.iter().filter(|r| gather::selected(spec, &r.point)).collect();
    let axes = gather::series_axes(spec, rows.iter().map(|r| &r.point), None);
    let mut grouping = Grouping::by(&axes);
    rows.into_iter().for_each(|row| grouping.add(&row.point, [row]));
    for Series { label, values } in grouping.series {
        let pairs = pairs(records, &values, subject, [x, y], group_ns)?;
        match Cloud::of(label, &pairs, [x, y], spec.scaling.unwrap_or_default()) {
            Some(cloud) => clouds.push(cloud),
            None => empty += 1,
        }
    }
    let ends = |along: fn((f64, f64)) -> f64, log: bool| {
        let ends = clouds.iter().flat_map(|c| {
            let (centre, reach) = (along(c.scaled(c.ellipse.centre)), along(c.scaled(c.ellipse.reach())));
            [centre - reach, centre, centre + reach]
        });
        ValueRange::of(ends.filter(|v| !log || *v > 0.0))
    };
    let (Some(across), Some(upwards)) =
        (ends(|p| p.0, gather::is_log(spec.x_scale)), ends(|p| p.1, gather::is_log(spec.y_scale)))
    else {
        return Ok(Drawing::nothing(format!(
            "Not drawn: no run at these points has samples of {x} and {y} of {subject}."
        )));
    };
    let (x_axis, x_unit) = gather::number_axis(records, spec, Side::X, x, "", across);
    let (y_axis, y_unit) = gather::number_axis(records, spec, Side::YWithoutZero, y, "", upwards);
    let named = clouds.iter().any(|c| !c.label.is_empty());
    let legend = clouds
        .iter()
        .enumerate()
        .filter(|_| named)
        .map(|(i, c)| LegendEntry { label: c.label.clone(), key: LegendKey::Curve(style(i), Markers::OnLine) });
    let mut words = format!("{} over {}.", y_axis.title, x_axis.title);
    let mut frame = Frame::new(&x_axis, &y_axis, legend.collect());
    frame.clip(gather::cut(spec));
    let place = |cloud: &Cloud, at: (f64, f64)| {
        let (across, upwards) = cloud.scaled(at);
        (x_unit.value(across), y_unit.value(upwards))
    };
    for (i, cloud) in clouds.iter().enumerate() {
        let outline: Vec<_> = cloud.ellipse.outline().into_iter().map(|at| place(cloud, at)).collect();
        frame.outline(&outline, style(i));
        words.push_str(&in_words(cloud, &x_unit, &y_unit));
    }
    for (i, cloud) in clouds.iter().enumerate() {
        let (at, height) = place(cloud, cloud.ellipse.centre);
        frame.marker(at, height, style(i), false);
        frame.label(at, height, &cloud.label, style(i), true);
        frame.hint(at, height, in_words(cloud, &x_unit, &y_unit).trim_start_matches([' ', ':']));
    }
    frame.place_labels();
    let columns = [x.clone(), y.clone(), format!("variance_{x}"), format!("variance_{y}"), "covariance".to_owned()];
    let mut numbers = Data::new(["series", "intervals"].into_iter().chain(columns.iter().map(String::as_str)));
    for Cloud { label, moments, .. } in &clouds {
        let Moments { n, mean, variance, covariance } = *moments;
        numbers.push([
            label.as_str().into(),
            (n as f64).into(),
            mean.0.into(),
            mean.1.into(),
            variance.0.into(),
            variance.1.into(),
            covariance.into(),
        ]);
    }
    Ok(Drawing::of(frame, words, remarks(spec, group_ns, &clouds, empty)).with(numbers))
}

/// Returns the pairs of all intervals in which both metrics have samples, over the runs that count.
fn pairs(
    records: &Records,
    rows: &[&ResultRow],
    subject: &str,
    metrics: [&str; 2],
    group_ns: u64,
) -> Result<Vec<(f64, f64)>, ReportError> {
    let mut pairs = Vec::new();
    for run in records.counting(rows) {
        let [x, y] = read_pair(&run.folder, subject, metrics, run.record.measurement_from_s)?;
        let heights: BTreeMap<u64, f64> = averages(&y, group_ns, BoundaryRule::Next).into_iter().collect();
        let of_run = averages(&x, group_ns, BoundaryRule::Next).into_iter();
        pairs.extend(of_run.filter_map(|(interval, x)| Some((x, *heights.get(&interval)?))));
    }
    Ok(pairs)
}

/// Describes the center and the deviations of a series in the units of the axes.
fn in_words(cloud: &Cloud, x_unit: &ScaledUnit, y_unit: &ScaledUnit) -> String {
    let Cloud { label, moments: Moments { n, mean, variance, .. }, .. } = cloud;
    let told = |unit: &ScaledUnit, mean: f64, variance: f64| {
        let number = |value: f64| trimmed(unit.value(value), 4);
        format!("{} with a standard deviation of {}", number(mean), number(variance.sqrt()))
    };
    let (x, y) = (told(x_unit, mean.0, variance.0), told(y_unit, mean.1, variance.1));
    format!(" {label}: {n} intervals, center at {x} to the right and {y} upwards.")
}

/// Returns the remarks for the caption.
fn remarks(spec: &PlotSpec, group_ns: u64, clouds: &[Cloud], empty: usize) -> Vec<String> {
    let of = spec.subject.as_deref().unwrap_or_default();
    let group = trimmed(group_ns as f64 / 1e6, 9);
    let mut remarks = vec![match spec.scaling.unwrap_or_default() {
        Scaling::Sigma => format!("Contours of one standard deviation of means over {group} ms ({of})."),
        Scaling::N3 => format!(
            "Means over {group} ms ({of}); semi-axes as the ns-3 evaluation suite draws them: multiplied by standard \
             deviations in s and Mibit/s."
        ),
    }];
    if spec.x_reversed == Some(true) {
        remarks.push("The horizontal axis is reversed.".to_owned());
    }
    let (low, high) = clouds.iter().fold((usize::MAX, 0), |(l, h), c| (l.min(c.moments.n), h.max(c.moments.n)));
    let counts = if low == high { format!("{low}") } else { format!("{low} to {high}") };
    remarks.push(format!("n = {counts} intervals."));
    if low < 2 {
        remarks.push("A single interval has no spread and is drawn as a point.".to_owned());
    }
    if empty > 0 {
        remarks.push(format!("{empty} series have no samples."));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n3_scaling_multiplies_semi_axes_by_deviations_in_s_and_mibit() {
        // 1, 2 and 3 s with 2, 6 and 4 Mibit/s: means 2 and 4; variances 1 and 4; covariance ((-1)(-2) + 0 + 1 * 0) / 2
        // = 1. The eigenvalues of [1 1; 1 4] are (5 + sqrt 13) / 2 and (5 - sqrt 13) / 2. The population deviations are
        // sqrt(2 / 3) and sqrt(8 / 3).
        let mibit = 1_048_576.0;
        let pairs = [(1.0, 2.0 * mibit), (2.0, 6.0 * mibit), (3.0, 4.0 * mibit)];
        let cloud = |scaling| Cloud::of(String::new(), &pairs, ["queue_delay_s", "throughput_bps"], scaling).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let n3 = cloud(Scaling::N3);
        let root = 13.0_f64.sqrt();
        let (long, short) = n3.ellipse.semi_axes;
        assert!(near(long, ((5.0 + root) / 2.0 * 2.0 / 3.0).sqrt()), "{long}");
        assert!(near(short, ((5.0 - root) / 2.0 * 8.0 / 3.0).sqrt()), "{short}");
        assert_eq!(n3.scaled(n3.ellipse.centre), (2.0, 4.0 * mibit));
        // The contour extends by one sample deviation, in any unit: 1 s and 2 Mibit/s.
        let sigma = cloud(Scaling::Sigma);
        let (x, y) = sigma.scaled(sigma.ellipse.reach());
        assert!(near(x, 1.0) && near(y / mibit, 2.0), "{x} {y}");
    }
}
