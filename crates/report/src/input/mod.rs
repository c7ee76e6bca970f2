//! Reads and checks the records in a folder. No record is trusted: an invalid field is an error with file and line.

pub(crate) mod events;
pub(crate) mod experience;
pub(crate) mod flows;
pub(crate) mod links;
pub(crate) mod run;
pub(crate) mod series;
pub(crate) mod study;

use crate::error::ReportError;
use crate::input::run::Run;
use crate::input::study::Study;
use fullpipe_archive::{
    ExpectationRow, FINDINGS, FindingRow, FlowSummaryRow, MATRIX, MatrixRow, ResultRow, Results, SUMMARY, StudyRecord,
    SummaryRow, Warning, WarningKind, read_summary,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the distinct values, in the order of their first occurrence.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// All records of the report except series, which are read when a plot is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Records {
    pub(crate) folder: PathBuf,
    pub(crate) study: Study,
    pub(crate) summary: Vec<SummaryRow>,
    pub(crate) results: Results,
    /// Application metrics and packet delays of flows.
    pub(crate) flows: Vec<FlowSummaryRow>,
    /// Bounds on metrics, with the measured values.
    pub(crate) expectations: Vec<ExpectationRow>,
    /// The cells of the matrix.
    pub(crate) matrix: Vec<MatrixRow>,
    /// The comparisons of the matrix.
    pub(crate) findings: Vec<FindingRow>,
    /// The runs in the order of `results.csv`, without duplicate keys.
    pub(crate) runs: Vec<Run>,
}

impl Records {
    /// Reads a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, ReportError> {
        let study = Study::read(&folder.join(StudyRecord::FILE))?;
        let results = Results::read(&folder.join(Results::FILE))?;
        let summary = read_summary(&folder.join(SUMMARY.file))?;
        let mut runs: Vec<Run> = Vec::new();
        let mut seen = BTreeSet::new();
        for row in &results.rows {
            // Points that resolve to the same scenario share their runs.
            if seen.insert(row.key.as_str()) {
                runs.push(Run::read(&folder.join("runs").join(&row.key), &row.key)?);
            }
        }
        let flows = experience::read_flow_summary(folder)?;
        let expectations = experience::read_expectations(folder)?;
        let matrix = experience::read_optional(folder, &MATRIX)?;
        let findings = experience::read_optional(folder, &FINDINGS)?;
        Ok(Self { folder: folder.to_path_buf(), study, summary, results, flows, expectations, matrix, findings, runs })
    }

    /// Returns whether this is the folder of a single run and not of a study.
    pub(crate) fn is_single_run(&self) -> bool {
        self.study.is_single_run() || (self.runs.len() == 1 && self.study.axis.is_empty())
    }

    /// Returns the title of the report.
    pub(crate) fn title(&self) -> String {
        let run = if self.is_single_run() { self.runs.first().map(|r| r.record.title.clone()) } else { None };
        let title = Some(self.study.title.clone()).filter(|title| !title.trim().is_empty());
        title.or(run).or_else(|| self.study.name.clone()).unwrap_or_else(|| "Fullpipe report".to_owned())
    }

    /// Returns the keys of invalid runs.
    pub(crate) fn doubtful(&self) -> BTreeSet<&str> {
        self.runs.iter().filter(|run| !run.distrust().is_empty()).map(|run| run.key.as_str()).collect()
    }

    /// Returns the first run's warning that nothing was delivered, if all runs have this warning.
    pub(crate) fn nothing_delivered(&self) -> Option<&Warning> {
        let of_run = |run: &'_ Run| -> Option<usize> {
            run.record.warnings.iter().flatten().position(|warning| warning.has_kind(WarningKind::NothingDelivered))
        };
        if self.runs.iter().any(|run| of_run(run).is_none()) {
            return None;
        }
        let first = self.runs.first()?;
        first.record.warnings.as_ref()?.get(of_run(first)?)
    }

    /// Returns the distinct runs of some rows whose values count. These are the valid runs if they are at least half of
    /// all; otherwise all runs, as in `summary.csv`.
    pub(crate) fn counting<'a>(&'a self, rows: &[&ResultRow]) -> Vec<&'a Run> {
        let keys = distinct(rows.iter().map(|row| row.key.as_str()));
        let all: Vec<&Run> = keys.into_iter().filter_map(|key| self.run(key)).collect();
        let sound: Vec<&Run> = all.iter().copied().filter(|run| run.distrust().is_empty()).collect();
        if 2 * sound.len() >= all.len() { sound } else { all }
    }

    /// Returns the claims. A claim that names only experiments that were not selected is omitted: it can have no verdict.
    pub(crate) fn claims(&self) -> Vec<&SummaryRow> {
        self.summary.iter().filter(|row| row.claim().is_some() && !self.is_of_others(row)).collect()
    }

    /// Returns the number of claims that [`claims`](Self::claims) omits.
    pub(crate) fn claims_of_others(&self) -> usize {
        self.summary.iter().filter(|row| self.is_of_others(row)).count()
    }

    fn is_of_others(&self, row: &SummaryRow) -> bool {
        let Some(selected) = &self.study.experiments else { return false };
        let declared = self.study.claim.iter().find(|claim| Some(claim.name.as_str()) == row.claim());
        let experiments = || self.study.experiment.iter().map(|experiment| experiment.name.as_str());
        declared.is_some_and(|claim| claim.is_of_unselected(experiments(), selected))
    }

    /// Returns the run with this key.
    pub(crate) fn run(&self, key: &str) -> Option<&Run> {
        self.runs.iter().find(|r| r.key == key)
    }
}
