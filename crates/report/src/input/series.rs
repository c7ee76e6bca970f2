//! Reads `series.csv` with the columns time_s, subject, metric and value. Long files are read row by row, and only the
//! samples of a plot are kept, as numbers.

use crate::error::ReportError;
use fullpipe_archive::{SERIES, SeriesRow};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// The maximum number of subjects of one metric that are kept. A plot with more curves would not be readable.
pub(crate) const MOST_SUBJECTS: usize = 12;

/// The samples of one subject in order of time, as seconds and value. A NaN sample represents a gap, in which there was
/// nothing to sample; [`read_series`] keeps one for each gap.
pub(crate) type Samples = Vec<(f64, f64)>;

/// The series of all subjects of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MetricSeries {
    pub(crate) metric: String,
    /// The samples by subject, in the order of the file.
    pub(crate) subjects: Vec<(String, Samples)>,
    /// The number of further subjects, which are not kept.
    pub(crate) more: usize,
}

/// The treatment of times at which there was nothing to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gaps {
    /// The first time of each gap is kept, as a sample with the value NaN.
    Kept,
    /// These times are omitted.
    LeftOut,
}

/// A run's `series.csv` that is being read.
struct Reader {
    table: fullpipe_archive::TableReader<SeriesRow, File>,
    row: SeriesRow,
}

impl Reader {
    /// Opens a run's file; `None` if there is none.
    fn open(folder: &Path) -> Result<Option<Self>, ReportError> {
        let file = folder.join(SERIES.file);
        if !file.exists() {
            return Ok(None);
        }
        Ok(Some(Self { table: SERIES.open(&file)?, row: SeriesRow::default() }))
    }

    /// Advances to the next row with an accepted subject and metric. Returns its time, and its value if there is one.
    fn next(&mut self, wanted: impl Fn(&str, &str) -> bool) -> Result<Option<(f64, Option<f64>)>, ReportError> {
        while self.table.read_next(&mut self.row)? {
            if wanted(&self.row.subject, &self.row.metric) {
                return Ok(Some((SeriesRow::time_s().number(&self.row), self.row.value)));
            }
        }
        Ok(None)
    }

    /// Appends a sample. A missing value means that there was nothing to sample at this time.
    fn keep(&self, samples: &mut Samples, at: f64, value: Option<f64>, gaps: Gaps) -> Result<(), ReportError> {
        if samples.last().is_some_and(|(last, _)| at < *last) {
            let problem = format!("time {at} s is earlier than the previous time of the same subject and metric");
            return Err(self.table.error(problem).into());
        }
        match value {
            Some(value) => samples.push((at, value)),
            None if gaps == Gaps::Kept && samples.last().is_some_and(|(_, last)| !last.is_nan()) => {
                samples.push((at, f64::NAN));
            }
            None => {}
        }
        Ok(())
    }
}

/// Reads a run's `series.csv`; `None` if there is none. With `metric` or `subject`, reads only the matching rows.
pub(crate) fn read_series(
    folder: &Path,
    metric: Option<&str>,
    subject: Option<&str>,
) -> Result<Option<Vec<MetricSeries>>, ReportError> {
    let Some(mut reader) = Reader::open(folder)? else { return Ok(None) };
    let wanted = |of: &str, what: &str| metric.is_none_or(|m| m == what) && subject.is_none_or(|s| s == of);
    let mut all: Vec<MetricSeries> = Vec::new();
    // The indices of each metric and of its subjects. A subject that is not kept has an index beyond the end of the
    // list.
    let mut places: BTreeMap<String, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
    while let Some((at, value)) = reader.next(wanted)? {
        if !places.contains_key(&reader.row.metric) {
            places.insert(reader.row.metric.clone(), (all.len(), BTreeMap::new()));
            all.push(MetricSeries { metric: reader.row.metric.clone(), ..MetricSeries::default() });
        }
        let Some((place, subjects)) = places.get_mut(&reader.row.metric) else { continue };
        let series = &mut all[*place];
        if !subjects.contains_key(&reader.row.subject) {
            subjects.insert(reader.row.subject.clone(), subjects.len());
            if series.subjects.len() < MOST_SUBJECTS {
                series.subjects.push((reader.row.subject.clone(), Vec::new()));
            } else {
                series.more += 1;
            }
        }
        if let Some((_, samples)) = subjects.get(&reader.row.subject).and_then(|i| series.subjects.get_mut(*i)) {
            reader.keep(samples, at, value, Gaps::Kept)?;
        }
    }
    for (_, samples) in all.iter_mut().flat_map(|series| &mut series.subjects) {
        mark_missing_samples(samples);
    }
    Ok(Some(all))
}

/// Adds a gap where samples are missing. A probe samples at equal intervals and writes no row if there was nothing to
/// sample, such as the delay of a flow without packets. Samples that are not at equal intervals are unchanged.
fn mark_missing_samples(samples: &mut Samples) {
    let apart = |pair: &[(f64, f64)]| nanoseconds(pair[1].0) - nanoseconds(pair[0].0);
    let Some(interval) = samples.windows(2).map(apart).filter(|apart| *apart > 0).min() else { return };
    if !samples.windows(2).all(|pair| apart(pair).is_multiple_of(interval)) {
        return;
    }
    let mut marked = Samples::with_capacity(samples.len());
    for sample in samples.drain(..) {
        if let Some((last, value)) = marked.last().copied() {
            let missing = nanoseconds(sample.0) - nanoseconds(last) > interval;
            if missing && !value.is_nan() && !sample.1.is_nan() {
                marked.push((last + interval as f64 / 1e9, f64::NAN));
            }
        }
        marked.push(sample);
    }
    *samples = marked;
}

/// The times of the samples of a subject, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SampleTimes {
    pub(crate) count: usize,
    pub(crate) first_s: f64,
    pub(crate) second_s: f64,
    pub(crate) last_s: f64,
}

impl SampleTimes {
    /// Adds the time of the next sample.
    pub(crate) fn add(&mut self, at_s: f64) {
        match self.count {
            0 => self.first_s = at_s,
            1 => self.second_s = at_s,
            _ => {}
        }
        self.count += 1;
        self.last_s = at_s;
    }
}

/// Returns the times of the samples of each metric of a run, by subject, in the order of the file. It reads only times,
/// because the samples of all metrics together may not fit into memory.
pub(crate) fn read_times(folder: &Path) -> Result<Vec<(String, Vec<SampleTimes>)>, ReportError> {
    let Some(mut reader) = Reader::open(folder)? else { return Ok(Vec::new()) };
    let mut all: Vec<(String, Vec<SampleTimes>)> = Vec::new();
    let mut places: BTreeMap<String, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
    while let Some((at_s, value)) = reader.next(|_, _| true)? {
        if !places.contains_key(&reader.row.metric) {
            places.insert(reader.row.metric.clone(), (all.len(), BTreeMap::new()));
            all.push((reader.row.metric.clone(), Vec::new()));
        }
        let Some((place, subjects)) = places.get_mut(&reader.row.metric) else { continue };
        let of_metric = &mut all[*place].1;
        if !subjects.contains_key(&reader.row.subject) {
            subjects.insert(reader.row.subject.clone(), of_metric.len());
            of_metric.push(SampleTimes::default());
        }
        if let (Some(place), Some(_)) = (subjects.get(&reader.row.subject), value) {
            of_metric[*place].add(at_s);
        }
    }
    for (_, subjects) in &mut all {
        subjects.truncate(MOST_SUBJECTS);
    }
    Ok(all)
}

/// Reads two metrics of one subject in a single pass, from a start time on. Both are empty if there is no `series.csv`.
pub(crate) fn read_pair(
    folder: &Path,
    subject: &str,
    metrics: [&str; 2],
    from_s: f64,
) -> Result<[Samples; 2], ReportError> {
    let mut both = [Samples::new(), Samples::new()];
    let Some(mut reader) = Reader::open(folder)? else { return Ok(both) };
    while let Some((at, value)) = reader.next(|of, what| of == subject && metrics.contains(&what))? {
        if nanoseconds(at) < nanoseconds(from_s) {
            continue;
        }
        for (samples, metric) in both.iter_mut().zip(metrics) {
            if *metric == reader.row.metric {
                reader.keep(samples, at, value, Gaps::LeftOut)?;
            }
        }
    }
    Ok(both)
}

/// Converts a time to whole nanoseconds, as in the records. Division of seconds is inexact: 0.3 / 0.1 is less than 3.
fn nanoseconds(time_s: f64) -> u64 {
    // `as` saturates, so negative times become zero.
    (time_s * 1e9).round() as u64
}

/// The interval to which a sample on the boundary of two intervals belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundaryRule {
    /// The next interval: floor(time / interval).
    Next,
    /// The previous interval, because the sample of a probe covers the time before it.
    Previous,
}

/// Averages samples over intervals of equal length from time zero. Returns the index and the mean of each interval with
/// samples.
pub(crate) fn averages(samples: &[(f64, f64)], interval_ns: u64, ends: BoundaryRule) -> Vec<(u64, f64)> {
    let earlier = u64::from(ends == BoundaryRule::Previous);
    let number = |time_s: f64| nanoseconds(time_s).saturating_sub(earlier) / interval_ns.max(1);
    let of_interval = |group: &[(f64, f64)]| {
        let mean = group.iter().map(|(_, value)| value).sum::<f64>() / group.len() as f64;
        (number(group[0].0), mean)
    };
    samples.chunk_by(|a, b| number(a.0) == number(b.0)).map(of_interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_samples_are_a_gap_if_the_others_have_equal_intervals() {
        let times = |times: &[f64]| {
            let mut samples: Samples = times.iter().map(|time_s| (*time_s, 1.0)).collect();
            mark_missing_samples(&mut samples);
            let text = |(time_s, value): &(f64, f64)| format!("{time_s:.1}{}", if value.is_nan() { "!" } else { "" });
            samples.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        // Samples every 0.2 s; the one at 0.8 s and those from 1.4 to 1.8 s are missing.
        assert_eq!(times(&[0.2, 0.4, 0.6, 1.0, 1.2, 2.0]), "0.2 0.4 0.6 0.8! 1.0 1.2 1.4! 2.0");
        // 0.3 s is no multiple of 0.2 s: these samples are at irregular times.
        assert_eq!(times(&[0.2, 0.4, 0.7, 2.0]), "0.2 0.4 0.7 2.0");
        assert_eq!((times(&[]), times(&[1.0]), times(&[1.0, 1.0])), (String::new(), "1.0".into(), "1.0 1.0".into()));
    }

    #[test]
    fn averages_assign_samples_to_intervals_with_exact_boundaries() {
        // Samples every 10 ms from 0.29 s on, at decimal times that have no exact binary form. 0.29 is in the third
        // interval of 100 ms, 0.30 to 0.39 are in the fourth, 0.40 in the fifth, and none in the sixth.
        let mut samples: Vec<(f64, f64)> =
            (29..=40).map(|n: u32| (format!("0.{n}").parse().unwrap(), f64::from(n))).collect();
        samples.push((0.6, 7.0));
        // (30 + ... + 39) / 10 = 34.5.
        assert_eq!(averages(&samples, 100_000_000, BoundaryRule::Next), [(2, 29.0), (3, 34.5), (4, 40.0), (6, 7.0)]);
        // If boundaries belong to the previous interval: 29 and 30; 31 to 40, (31 + ... + 40) / 10 = 35.5; 0.6 ends the
        // sixth interval.
        assert_eq!(averages(&samples, 100_000_000, BoundaryRule::Previous), [(2, 29.5), (3, 35.5), (5, 7.0)]);
        assert_eq!(averages(&[], 100_000_000, BoundaryRule::Previous), []);
    }
}
