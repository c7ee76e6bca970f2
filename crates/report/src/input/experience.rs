//! Reads the optional tables: the results of the applications of a run (`figures.csv`, `completions.csv`), and the
//! tables `flow_summary.csv` and `expectations.csv` of a study.

use crate::error::ReportError;
use fullpipe_archive::{
    COMPLETIONS, CompletionRow, EXPECTATIONS, ExpectationRow, FIGURES, FLOW_SUMMARY, FigureRow, FlowSummaryRow,
    RecordTable,
};
use std::path::Path;

/// Reads a study's `flow_summary.csv`; empty if there is no such file.
pub(crate) fn read_flow_summary(folder: &Path) -> Result<Vec<FlowSummaryRow>, ReportError> {
    let file = folder.join(FLOW_SUMMARY.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(FLOW_SUMMARY.open(&file)?.rows()?)
}

/// Reads a table of a study; empty if there is no such file.
pub(crate) fn read_optional<R: Default>(folder: &Path, table: &RecordTable<R>) -> Result<Vec<R>, ReportError> {
    let file = folder.join(table.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(table.open(&file)?.rows()?)
}

/// Reads `expectations.csv`; empty if there is no such file.
pub(crate) fn read_expectations(folder: &Path) -> Result<Vec<ExpectationRow>, ReportError> {
    let file = folder.join(EXPECTATIONS.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(EXPECTATIONS.open(&file)?.rows()?)
}

/// Reads a run's `figures.csv`; empty if there is no such file.
pub(crate) fn read_figures(folder: &Path) -> Result<Vec<FigureRow>, ReportError> {
    let file = folder.join(FIGURES.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(FIGURES.open(&file)?.rows()?)
}

/// Returns the flow and the duration in seconds of each exchange or transfer of a run; empty if there is no
/// `completions.csv`.
pub(crate) fn read_completion_times(folder: &Path) -> Result<Vec<(String, f64)>, ReportError> {
    let file = folder.join(COMPLETIONS.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let (mut reader, mut row) = (COMPLETIONS.open(&file)?, CompletionRow::default());
    let mut times = Vec::new();
    while reader.read_next(&mut row)? {
        times.push((row.flow.clone(), row.completed_s.saturating_since(row.started_s).as_secs_f64()));
    }
    Ok(times)
}
