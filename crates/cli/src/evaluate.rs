//! `fullpipe evaluate`: runs a study with a `[matrix]` for one congestion control and the references.

use crate::arguments::{EvaluateArguments, StudyArguments};
use crate::exit::Failure;
use crate::records::{find_study, run_loaded_study};
use fullpipe::archive::StudyRecord;
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
