//! The scenarios and studies that are embedded in the library.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Returns the names of the embedded scenarios: their paths below `scenarios/`, without the suffix `.toml`.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    SCENARIO_FILES.iter().filter_map(|(path, _)| path.strip_suffix(".toml"))
}

/// Returns the text of an embedded scenario; `None` if there is no such scenario.
pub fn scenario_text(name: &str) -> Option<&'static str> {
    let wanted = name.strip_suffix(".toml").unwrap_or(name);
    SCENARIO_FILES.iter().find(|(path, _)| path.strip_suffix(".toml") == Some(wanted)).map(|(_, text)| *text)
}

/// Returns the names of the embedded studies: the folders of `studies/` that contain a `study.toml`.
pub fn study_names() -> impl Iterator<Item = &'static str> {
    STUDY_FILES.iter().filter_map(|(path, _)| path.strip_suffix("/study.toml"))
}

/// Returns the path, relative to the study's folder, and the text of each file of an embedded study. Empty if there is
/// no such study.
pub fn study_files(name: &str) -> Vec<(&'static str, &'static str)> {
    let prefix = format!("{name}/");
    STUDY_FILES.iter().filter_map(|(path, text)| Some((path.strip_prefix(prefix.as_str())?, *text))).collect()
}
