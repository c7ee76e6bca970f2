//! Tables, plots and the self-contained HTML report.
//!
//! [`build`] turns the records in a folder into `report.html` and `plots/*.svg`. It reads files only: `study.toml`,
//! `results.csv`, `summary.csv`, `runs/KEY/{run.json,flows.csv,series.csv,links.csv}`, for a study and for a single run
//! alike. The same records give the same bytes. A missing or corrupt record is an error that names the file; nothing in a
//! record can make it panic, and every text from a record is escaped.

mod error;
mod input;
mod markup;
mod numbers;
mod page;
mod plot;
mod unit;

pub use error::ReportError;

use input::Records;
use std::fs;
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The page.
    pub html: PathBuf,
    /// The pictures, in the order of the page.
    pub plots: Vec<PathBuf>,
    /// Why a result is not to be trusted, one sentence each with the run's key; empty if all are.
    pub distrust: Vec<String>,
}

/// What a report says beyond the records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// What is not modelled: plain text with Markdown's paragraphs, `#` headings and lists. Without it the page names
    /// the file to read.
    pub limitations: Option<&'a str>,
}

/// Writes `report.html` and `plots/*.svg` from the records in a folder.
///
/// # Errors
/// A record that is missing, unreadable or not what the contract says, or a page that cannot be written.
pub fn build(folder: &Path) -> Result<Built, ReportError> {
    build_with(folder, Options::default())
}

/// Like [`build`], with more to say.
///
/// # Errors
/// As [`build`].
pub fn build_with(folder: &Path, options: Options<'_>) -> Result<Built, ReportError> {
    let records = Records::read(folder)?;
    let figures = plot::draw_all(&records)?;
    let html = page::write(&records, &figures, options.limitations)?;
    let plots_folder = folder.join("plots");
    fs::create_dir_all(&plots_folder).map_err(|cause| ReportError::write(&plots_folder, cause))?;
    remove_old_plots(&plots_folder)?;
    let mut plots = Vec::new();
    for figure in &figures {
        if let Some(svg) = &figure.svg {
            let file = plots_folder.join(format!("{}.svg", figure.name));
            write_whole(&file, svg)?;
            plots.push(file);
        }
    }
    let file = folder.join("report.html");
    write_whole(&file, &html)?;
    let mut distrust: Vec<String> =
        records.runs.iter().flat_map(|r| r.distrust().into_iter().map(|why| format!("run {}: {why}", r.key))).collect();
    distrust.extend(records.nothing_delivered().map(|warning| warning.text.clone()));
    Ok(Built { html: file, plots, distrust })
}

/// A picture of an earlier report must not stay beside the new ones. Only our own are removed.
fn remove_old_plots(folder: &Path) -> Result<(), ReportError> {
    let entries = fs::read_dir(folder).map_err(|cause| ReportError::read(folder, cause))?;
    for entry in entries {
        let file = entry.map_err(|cause| ReportError::read(folder, cause))?.path();
        if file.extension().is_some_and(|e| e == "svg")
            && fs::read(&file).is_ok_and(|text| text.windows(OURS.len()).take(2000).any(|w| w == OURS))
        {
            fs::remove_file(&file).map_err(|cause| ReportError::write(&file, cause))?;
        }
    }
    Ok(())
}

const OURS: &[u8] = b"data-generator=\"fullpipe-report\"";

/// Writes a file whole or not at all: beside its place first, then moved.
fn write_whole(file: &Path, text: &str) -> Result<(), ReportError> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    fs::write(&beside, text).map_err(|cause| ReportError::write(&beside, cause))?;
    fs::rename(&beside, file).map_err(|cause| ReportError::write(file, cause))
}
