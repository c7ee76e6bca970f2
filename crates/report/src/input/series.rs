//! `series.csv`: time_s, subject, metric, value. Long files are read row by row and only what is drawn is kept.

use crate::error::ReportError;
use crate::input::table::Table;
use std::collections::BTreeMap;
use std::path::Path;

/// So many subjects of one metric are kept; a plot with more curves could not be read.
pub(crate) const MOST_SUBJECTS: usize = 12;

/// Samples of one subject in order of time.
pub(crate) type Samples = Vec<(f64, f64)>;

/// All series of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MetricSeries {
    pub(crate) metric: String,
    /// By subject, in the order of the file.
    pub(crate) subjects: Vec<(String, Samples)>,
    /// Further subjects that were not kept.
    pub(crate) more: usize,
}

/// Reads a run's `series.csv`; `None` if there is none. With `only`, just that metric.
pub(crate) fn read_series(folder: &Path, only: Option<&str>) -> Result<Option<Vec<MetricSeries>>, ReportError> {
    let file = folder.join("series.csv");
    if !file.exists() {
        return Ok(None);
    }
    let mut table = Table::open(&file)?;
    let [time, subject, metric, value] = ["time_s", "subject", "metric", "value"].map(|name| table.column(name));
    let (time, subject, metric, value) = (time?, subject?, metric?, value?);
    let mut all: Vec<MetricSeries> = Vec::new();
    // Where a metric's and a subject's samples go; the number of a subject that is not kept is beyond the list.
    let mut places: BTreeMap<String, (usize, BTreeMap<String, usize>)> = BTreeMap::new();
    while table.next()? {
        if only.is_some_and(|only| only != table.text(metric)) {
            continue;
        }
        // Both must be numbers even where the sample is not kept: a corrupt file is never half believed.
        let at = table.required(time)?;
        let sample = table.number(value)?;
        if !places.contains_key(table.text(metric)) {
            places.insert(table.text(metric).to_owned(), (all.len(), BTreeMap::new()));
            all.push(MetricSeries { metric: table.text(metric).to_owned(), ..MetricSeries::default() });
        }
        let Some((place, subjects)) = places.get_mut(table.text(metric)) else { continue };
        let series = &mut all[*place];
        if !subjects.contains_key(table.text(subject)) {
            subjects.insert(table.text(subject).to_owned(), subjects.len());
            if series.subjects.len() < MOST_SUBJECTS {
                series.subjects.push((table.text(subject).to_owned(), Vec::new()));
            } else {
                series.more += 1;
            }
        }
        let Some((_, samples)) = subjects.get(table.text(subject)).and_then(|i| series.subjects.get_mut(*i)) else {
            continue;
        };
        if samples.last().is_some_and(|(last, _)| at < *last) {
            return Err(table.problem(format!("time {at} s stands after a later one of the same subject and metric")));
        }
        // An empty value is a moment at which there was nothing to sample.
        samples.extend(sample.map(|v| (at, v)));
    }
    Ok(Some(all))
}
