//! `fullpipe evaluate`: runs a study with a `[matrix]` for one congestion control and the references, and prints the
//! findings.

use crate::arguments::{EvaluateArguments, StudyArguments};
use crate::exit::Failure;
use crate::output;
use crate::records::{find_study, run_loaded_study, significant};
use fullpipe::archive::{FINDINGS, Finding, FindingRow, MatrixRow, StudyRecord};
use std::path::{Path, PathBuf};

/// Runs `fullpipe evaluate`.
pub(crate) fn evaluate(arguments: EvaluateArguments) -> Result<(), Failure> {
    let EvaluateArguments { control, study: name, mut common, runs, jobs, quick, reuse } = arguments;
    let study = find_study(&name)?;
    let Some(matrix) = &study.matrix else {
        return Err(Failure::usage(format!("the study {name} has no [matrix]; expected a study such as bcp-133")));
    };
    common.set.push(format!("{}={control}", matrix.axis));
    let folder = Path::new("fullpipe-out").join(format!("{}-{control}", study.name));
    let folder = common.out.clone().unwrap_or(folder);
    let reuse_from = if reuse.is_empty() { neighbors(&folder, &study.name) } else { reuse };
    let arguments = StudyArguments { study: name, common, runs, seeds: None, jobs, qlog: false, quick, shard: None };
    run_loaded_study(study, &arguments, &folder, reuse_from)
}

/// Returns the folders of records next to `folder` whose names begin with the study's name, in the order of their names.
fn neighbors(folder: &Path, study: &str) -> Vec<PathBuf> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_evaluation = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(study) && path != folder && path.join(StudyRecord::FILE).is_file()
    };
    let mut found: Vec<PathBuf> = entries.filter(is_evaluation).collect();
    found.sort();
    found
}

/// Returns the findings of a matrix that distinguish the candidate from a reference, and the number of the others;
/// `None` without a matrix.
pub(crate) fn table(findings: &[FindingRow], matrix: &[MatrixRow]) -> Option<String> {
    if matrix.is_empty() {
        return None;
    }
    let is_decided = |row: &&FindingRow| matches!(row.finding, Some(Finding::Better | Finding::Worse));
    let cells = |row: &FindingRow| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| significant(value, 3));
        vec![
            row.row.clone(),
            row.column.clone(),
            row.metric.clone(),
            row.unit.clone(),
            row.control.clone(),
            row.finding.map_or_else(String::new, |finding| format!("{} than", finding.name())),
            row.reference.clone(),
            number(row.difference),
            number(row.low),
            number(row.high),
        ]
    };
    let headings = ["row", "column", "metric", "unit", "control", "finding", "reference", "difference", "low", "high"];
    let mut lines = vec![headings.map(str::to_owned).to_vec()];
    lines.extend(findings.iter().filter(is_decided).map(cells));
    let count = |wanted: Finding| findings.iter().filter(|row| row.finding == Some(wanted)).count();
    let not_run = matrix.iter().filter(|row| row.metric.is_empty()).count();
    let numeric = [false, false, false, false, false, false, false, true, true, true];
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
