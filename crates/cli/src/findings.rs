//! Prints the findings of a study with a `[matrix]`.

use crate::output;
use fullpipe::archive::{FINDINGS, Finding, FindingRow, MatrixRow};
use fullpipe::units::words::format_quantity;

/// Returns the findings of a matrix that distinguish the candidate from a reference, and the number of the others;
/// `None` without a matrix.
pub(crate) fn table(findings: &[FindingRow], matrix: &[MatrixRow]) -> Option<String> {
    if matrix.is_empty() {
        return None;
    }
    let is_decided = |row: &&FindingRow| matches!(row.finding, Some(Finding::Better | Finding::Worse));
    let cells = |row: &FindingRow| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format_quantity(value, &row.unit));
        vec![
            row.row.clone(),
            row.column.clone(),
            row.metric.clone(),
            row.control.clone(),
            row.finding.map_or_else(String::new, |finding| format!("{} than", finding.name())),
            row.reference.clone(),
            number(row.difference),
            number(row.low),
            number(row.high),
        ]
    };
    let headings = ["row", "column", "metric", "control", "finding", "reference", "difference", "low", "high"];
    let mut lines = vec![headings.map(str::to_owned).to_vec()];
    lines.extend(findings.iter().filter(is_decided).map(cells));
    let count = |wanted: Finding| findings.iter().filter(|row| row.finding == Some(wanted)).count();
    let not_run = matrix.iter().filter(|row| row.metric.is_empty()).count();
    let numeric = [false, false, false, false, false, false, true, true, true];
    let table = if lines.len() > 1 { output::aligned(&lines, &numeric) } else { String::new() };
    Some(format!(
        "Findings (paired, with simultaneous 95 % intervals):\n{table}{} comparisons: {} better, {} worse, {} not distinguishable, \
         {} undecided; {not_run} cells not run. All of them: {}\n",
        findings.len(),
        count(Finding::Better),
        count(Finding::Worse),
        count(Finding::NotDistinguishable),
        count(Finding::Undecided),
        FINDINGS.file,
    ))
}
