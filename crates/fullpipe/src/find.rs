//! Finds scenarios and studies by the name that a user gives: a file, or the name of an embedded one.

use crate::embedded;
use fullpipe_scenario::schema::nearest_name;
use fullpipe_study::{EmbeddedStudy, Study, StudyError};
use std::fs;
use std::path::{Path, PathBuf};

/// The text of a scenario and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundScenario {
    /// The text.
    pub text: String,
    /// The name in messages: the path, or the name of the embedded scenario.
    pub name: String,
    /// The file name without its extension, or the name of the embedded scenario; `run` for a pipe without a name.
    pub stem: String,
    /// The folder of the files to which the scenario refers; `None` if the scenario is embedded.
    pub folder: Option<PathBuf>,
}

/// Finds the scenario in a file, or the embedded scenario with this name.
///
/// # Errors
/// If there is neither, or if the file cannot be read; the message contains the nearest name.
pub fn scenario(name: &str) -> Result<FoundScenario, String> {
    let path = Path::new(name);
    let stem = path.with_extension("");
    // A pipe is also a file: `<(program)` of a shell.
    if path.exists() && !path.is_dir() {
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let stem = if path.is_file() { stem.file_name() } else { Some(stem.as_os_str()) };
        let stem = stem.map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned());
        return Ok(FoundScenario { text, name: name.to_owned(), stem, folder: path.parent().map(Path::to_path_buf) });
    }
    if let Some(text) = embedded::scenario_text(name) {
        let (text, known) = (text.to_owned(), name.trim_end_matches(".toml"));
        let (name, stem) = (format!("{known} (embedded)"), stem.display().to_string());
        return Ok(FoundScenario { text, name, stem, folder: None });
    }
    Err(format!(
        "{name:?} is neither a file nor an embedded scenario{} (`fullpipe list scenarios` lists the embedded ones)",
        suggestion(name, embedded::scenario_names())
    ))
}

/// Finds the study in a file or folder, or the embedded study with this name.
///
/// # Errors
/// [`StudyError::Usage`] if there is neither, with the nearest name; [`StudyError::InvalidFile`] if the study is invalid.
pub fn study(name: &str) -> Result<Study, StudyError> {
    let path = Path::new(name);
    if let Some(file) = [path.to_owned(), path.join("study.toml")].iter().find(|file| file.is_file()) {
        return Ok(fullpipe_study::load_file(file)?);
    }
    let files = embedded::study_files(name);
    if let Some((_, text)) = files.iter().find(|(file, _)| *file == "study.toml") {
        let file = format!("{name}/study.toml (embedded)");
        return Ok(fullpipe_study::load(text, &file, name, &EmbeddedStudy(name, &files))?);
    }
    Err(StudyError::Usage(format!(
        "{name:?} is neither a file nor an embedded study{} (`fullpipe study list` lists the embedded ones)",
        suggestion(name, embedded::study_names())
    )))
}

fn suggestion(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    nearest_name(name, known).map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
