//! Compares two folders of records: the differences between runs with the same point and seed, with paired intervals.
//!
//! Runs with the same seed share their random streams, so their difference varies less than the values of single runs.
//! The interval of the mean difference is that of a paired t-test: mean ± t · s / √n. Here s is the sample standard
//! deviation of the n differences, and t is the 97.5 % quantile of Student's distribution with n - 1 degrees of
//! freedom.

use crate::error::ReportError;
use crate::input::flows::read_flows;
use crate::input::{Records, distinct};
use crate::numbers::count;
use crate::settings::{SettingDifference, differing};
use crate::totals::describe_total;
use fullpipe_archive::{COMPARISON, Column, ComparisonRow, FlowRow, Point, ResultRow, Results};
use fullpipe_verdict::statistics::{mean, summarize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The difference of a metric at a point between this folder of records and another one, over pairs of runs with the
/// same seed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The point.
    pub point: Point,
    /// The name of the metric.
    pub metric: String,
    /// The name of the flow direction as in `flows.csv`; `None` if the metric does not belong to a single flow
    /// direction.
    pub flow: Option<String>,
    /// How the metric combines the flows of a run, such as "mean over flows"; `None` if [`describe_total`] returns
    /// `None`.
    pub total: Option<&'static str>,
    /// The unit of the metric; empty if it has none.
    pub unit: String,
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Mean over the runs of this folder, in `unit`.
    pub mean: f64,
    /// Mean over the runs of the other folder, in `unit`.
    pub other_mean: f64,
    /// Mean of the differences: the value of this folder minus that of the other folder.
    pub difference: f64,
    /// Half width of the 95 % confidence interval of the mean difference; `None` for a single pair.
    pub ci95: Option<f64>,
}

impl Difference {
    /// Returns the mean difference as a fraction of the other folder's mean; `None` if that mean is zero.
    pub fn relative(&self) -> Option<f64> {
        let share = self.difference / self.other_mean.abs();
        share.is_finite().then_some(share)
    }

    /// Returns whether the metric is higher (`Greater`) or lower (`Less`) in this folder than in the other folder.
    /// `None` if the confidence interval of the difference includes zero or is unknown.
    pub fn direction(&self) -> Option<Ordering> {
        (self.difference.abs() > self.ci95?).then(|| self.difference.total_cmp(&0.0))
    }
}

/// The maximum number of settings listed.
const MOST_SETTINGS: usize = 20;

/// The comparison of two folders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// This folder.
    pub(crate) here: PathBuf,
    /// The other folder.
    pub(crate) other: PathBuf,
    /// The settings that differ.
    pub(crate) settings: Vec<SettingDifference>,
    /// The differences by metric, then by point, in the order of this folder.
    pub(crate) differences: Vec<Difference>,
    /// The number of runs in this folder without a pair.
    pub(crate) unpaired: usize,
    /// The number of runs in the other folder without a pair.
    pub(crate) unpaired_there: usize,
    /// The number of pairs that were excluded because one of their runs is invalid.
    pub(crate) doubtful: usize,
}

/// Compares the records of a folder with those of another folder.
pub(crate) fn compare(records: &Records, folder: &Path) -> Result<Comparison, ReportError> {
    let other = Records::read(folder)?;
    let (pairs, unpaired_there) = pair(&records.results.rows, &other.results.rows);
    let unpaired = records.results.rows.len() - pairs.len();
    if pairs.is_empty() {
        let problem = format!(
            "no run has the point and the seed of a run of {}, which has {}; found {}",
            records.folder.display(),
            some_runs(&records.results.rows),
            some_runs(&other.results.rows)
        );
        return Err(ReportError::corrupt(&folder.join(Results::FILE), problem));
    }
    let (bad, bad_there) = (records.doubtful(), other.doubtful());
    let is_sound =
        |(a, b): &(&ResultRow, &ResultRow)| !bad.contains(a.key.as_str()) && !bad_there.contains(b.key.as_str());
    let all = pairs.len();
    let sound: Vec<(&ResultRow, &ResultRow)> = pairs.into_iter().filter(is_sound).collect();
    let points = distinct(sound.iter().map(|(row, _)| &row.point));
    let mut differences = Vec::new();
    for (here, metric) in records.results.metrics.iter().enumerate() {
        let Some(there) = other.results.metrics.iter().position(|name| name == metric) else { continue };
        for point in &points {
            let of_point = sound.iter().filter(|(row, _)| row.point == **point);
            let values: Vec<(f64, f64)> = of_point
                .filter_map(|(a, b)| a.values[here].zip(b.values[there]))
                .filter(|(a, b)| (a - b).is_finite())
                .collect();
            let row = records.summary.iter().find(|row| row.metric == *metric);
            let expression = records.study.metric.iter().find(|known| known.name == *metric);
            differences.extend(difference(&values).map(|numbers| Difference {
                point: (*point).clone(),
                metric: metric.clone(),
                total: expression.and_then(|known| describe_total(&known.expression)),
                unit: row.map_or_else(String::new, |row| row.unit.clone()),
                ..numbers
            }));
        }
    }
    differences.extend(of_flows(records, &other, &sound, &points)?);
    Ok(Comparison {
        here: records.folder.clone(),
        other: folder.to_path_buf(),
        settings: differing(&records.study, &other.study),
        doubtful: all - sound.len(),
        differences,
        unpaired,
        unpaired_there,
    })
}

/// Computes the numbers of a difference from the values of pairs; `None` without pairs.
fn difference(values: &[(f64, f64)]) -> Option<Difference> {
    let column = |of: fn(&(f64, f64)) -> f64| values.iter().map(of).collect::<Vec<f64>>();
    let summary = summarize(&column(|pair| pair.0 - pair.1))?;
    Some(Difference {
        point: Point::default(),
        metric: String::new(),
        flow: None,
        total: None,
        unit: String::new(),
        pairs: summary.n,
        mean: mean(&column(|pair| pair.0))?,
        other_mean: mean(&column(|pair| pair.1))?,
        difference: summary.mean,
        ci95: summary.ci95,
    })
}

/// The columns of `flows.csv` that are compared flow by flow.
const OF_FLOWS: [Column<FlowRow>; 5] = [
    FlowRow::goodput_bps(),
    FlowRow::completion_s(),
    FlowRow::delay_p50_s(),
    FlowRow::delay_p95_s(),
    FlowRow::delay_p99_s(),
];

/// The maximum number of flow directions of a run for which single flows are compared, as in `flow_summary.csv`.
const MOST_DIRECTIONS: usize = 200;

/// Returns the differences of each flow that both runs of a pair contain, in its main direction.
fn of_flows(
    records: &Records,
    other: &Records,
    pairs: &[(&ResultRow, &ResultRow)],
    points: &[&Point],
) -> Result<Vec<Difference>, ReportError> {
    let read = |of: &Records, key: &str| -> Result<Vec<FlowRow>, ReportError> {
        let Some(run) = of.run(key) else { return Ok(Vec::new()) };
        let flows = read_flows(&run.folder, MOST_DIRECTIONS)?;
        Ok(if flows.total > MOST_DIRECTIONS { Vec::new() } else { flows.rows })
    };
    let mut names: Vec<String> = Vec::new();
    let mut values: BTreeMap<(usize, usize, usize), Vec<(f64, f64)>> = BTreeMap::new();
    for (a, b) in pairs {
        let Some(point) = points.iter().position(|point| **point == a.point) else { continue };
        let there = read(other, &b.key)?;
        for row in read(records, &a.key)?.iter().filter(|row| row.is_main()) {
            let Some(partner) = there.iter().find(|known| known.flow == row.flow) else { continue };
            let name = names.iter().position(|name| *name == row.flow).unwrap_or_else(|| {
                names.push(row.flow.clone());
                names.len() - 1
            });
            for (place, column) in OF_FLOWS.iter().enumerate() {
                let pair = (column.number(row), column.number(partner));
                // A missing value is not a number.
                if (pair.0 - pair.1).is_finite() {
                    values.entry((place, name, point)).or_default().push(pair);
                }
            }
        }
    }
    let rows = values.into_iter().filter_map(|((column, name, point), values)| {
        Some(Difference {
            point: (*points.get(point)?).clone(),
            metric: OF_FLOWS[column].name.to_owned(),
            flow: names.get(name).cloned(),
            unit: OF_FLOWS[column].unit.to_owned(),
            ..difference(&values)?
        })
    });
    Ok(rows.collect())
}

/// Returns the pairs of runs with equal point and seed, and the number of runs in the second folder without a pair. If
/// several runs have the same point and seed, they are paired in order.
fn pair<'a>(here: &'a [ResultRow], there: &'a [ResultRow]) -> (Vec<(&'a ResultRow, &'a ResultRow)>, usize) {
    let mut waiting: BTreeMap<(&Point, u64), Vec<&ResultRow>> = BTreeMap::new();
    for row in there.iter().rev() {
        waiting.entry((&row.point, row.seed)).or_default().push(row);
    }
    let mut partner = |row: &'a ResultRow| Some((row, waiting.get_mut(&(&row.point, row.seed))?.pop()?));
    let pairs: Vec<_> = here.iter().filter_map(&mut partner).collect();
    let unpaired = there.len() - pairs.len();
    (pairs, unpaired)
}

/// Returns the point and seed of the first run, for a message.
fn some_runs(rows: &[ResultRow]) -> String {
    match rows {
        [] => "no runs".to_owned(),
        [first, more @ ..] => {
            let point = if first.point.is_empty() { String::new() } else { format!("{}, ", first.point.describe()) };
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            format!("{point}seed {}{more}", first.seed)
        }
    }
}

impl Comparison {
    /// Returns sentences about the settings that differ and the runs that were excluded.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![match self.settings.as_slice() {
            [] => "No setting differs.".to_owned(),
            settings => {
                let one = |setting: &SettingDifference| {
                    format!("{}: {} here, {} there", setting.path, setting.here, setting.there)
                };
                let listed: Vec<String> = settings.iter().take(MOST_SETTINGS).map(one).collect();
                let more = settings.len().saturating_sub(MOST_SETTINGS);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                format!("Settings that differ: {}{more}.", listed.join("; "))
            }
        }];
        if self.unpaired + self.unpaired_there > 0 {
            let (here, there) = (count(self.unpaired, "run"), count(self.unpaired_there, "run"));
            notes.push(format!("Without a counterpart: {here} here, {there} there."));
        }
        if self.doubtful > 0 {
            notes.push(format!("Excluded because a run is not to be trusted: {}.", count(self.doubtful, "pair")));
        }
        notes
    }

    /// Returns the differences as the file `comparison.csv`, in base units.
    pub(crate) fn to_csv(&self) -> Vec<u8> {
        COMPARISON.to_bytes(self.differences.iter().map(|one| ComparisonRow {
            point: one.point.to_string(),
            flow: one.flow.clone().unwrap_or_default(),
            metric: one.metric.clone(),
            unit: one.unit.clone(),
            pairs: one.pairs as u64,
            mean: Some(one.mean),
            other_mean: Some(one.other_mean),
            difference: Some(one.difference),
            ci95: one.ci95,
            low: one.ci95.map(|half| one.difference - half),
            high: one.ci95.map(|half| one.difference + half),
            relative: one.relative(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(point: &str, seed: u64) -> ResultRow {
        let pairs = point.split_once('=').map(|(axis, value)| (axis.to_owned(), value.to_owned()));
        ResultRow { point: Point(pairs.into_iter().collect()), seed, key: String::new(), values: Vec::new() }
    }

    #[test]
    fn pair_matches_runs_by_point_and_seed() {
        let here = [row("load=1", 5), row("load=1", 6), row("load=2", 5), row("load=1", 5)];
        let there = [row("load=1", 6), row("load=1", 5), row("load=1", 5), row("load=3", 5)];
        let (pairs, unpaired) = pair(&here, &there);
        let place =
            |rows: &[ResultRow], row: &ResultRow| rows.iter().position(|known| std::ptr::eq(known, row)).unwrap();
        let places: Vec<_> = pairs.iter().map(|(a, b)| (place(&here, a), place(&there, b))).collect();
        // Two runs with the same point and seed are paired in their order.
        assert_eq!((places, unpaired), (vec![(0, 1), (1, 0), (3, 2)], 1));
    }

    #[test]
    fn difference_has_a_direction_if_its_interval_excludes_zero() {
        let difference = |difference, ci95| Difference {
            point: Point::default(),
            metric: String::new(),
            flow: None,
            total: None,
            unit: String::new(),
            pairs: 2,
            mean: 0.0,
            other_mean: -4.0,
            difference,
            ci95,
        };
        assert_eq!(difference(2.0, Some(1.0)).direction(), Some(Ordering::Greater));
        assert_eq!(difference(-2.0, Some(1.0)).direction(), Some(Ordering::Less));
        assert_eq!(difference(2.0, Some(2.5)).direction(), None);
        assert_eq!((difference(0.0, Some(0.0)).direction(), difference(2.0, None).direction()), (None, None));
        assert_eq!(difference(2.0, None).relative(), Some(0.5));
    }
}
