//! Builds the self-contained HTML report with its tables and plots.
//!
//! [`write_report`] converts the records in a folder into `report.html` and `plots/*.svg`, with the numbers of each
//! plot as CSV. It reads only files: `study.toml`, `results.csv`, `summary.csv` and
//! `runs/KEY/{run.json,flows.csv,series.csv,links.csv}`, for studies and for single runs. Equal records produce
//! identical files. A missing or corrupt record is an error that contains the file name. No record can cause a panic,
//! and all text from records is escaped.

mod compare;
mod convert;
mod error;
mod input;
mod markup;
mod numbers;
mod page;
mod plot;
mod settings;
mod totals;
mod unit;

pub use compare::Difference;
pub use convert::PlotFormat;
pub use error::ReportError;
pub use page::published::readable_note;
pub use totals::describe_total;

use fullpipe_archive::COMPARISON;
use input::Records;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a written report, and results that were computed from the records.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportFiles {
    /// The path of `report.html`.
    pub html: PathBuf,
    /// The paths of the plots, in the order in which the page shows them.
    pub plots: Vec<PathBuf>,
    /// The reasons why results are invalid, one sentence each with the key of the run; empty if all runs are valid.
    pub distrust: Vec<String>,
    /// The differences from the folder in [`Options::compare`]; empty without such a folder.
    pub differences: Vec<Difference>,
    /// Notes on the comparison with this folder, as sentences: the settings that differ, and the runs that were
    /// excluded.
    pub comparison_notes: Vec<String>,
}

/// Additional content and formats of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The limitations of the model, as Markdown with only paragraphs, `#` headings and lists. `None`: the page refers
    /// to the file with the limitations.
    pub limitations: Option<&'a str>,
    /// Another folder of records. The report shows the differences from this folder, and `comparison.csv` contains them
    /// as numbers. `None` omits the comparison.
    pub compare: Option<&'a Path>,
    /// The formats of plot files. SVG files are always written, because the page contains them.
    pub formats: &'a [PlotFormat],
}

/// Writes `report.html` and `plots/*.svg` from the records in a folder.
///
/// # Errors
/// If a record is missing, unreadable or invalid, or if a file of the report cannot be written.
pub fn write_report(folder: &Path) -> Result<ReportFiles, ReportError> {
    write_report_with(folder, Options::default())
}

/// Writes a report like [`write_report`], with additional content and formats.
///
/// # Errors
/// The errors of [`write_report`], the same errors for the folder in [`Options::compare`], and an error if a plot
/// cannot be converted.
pub fn write_report_with(folder: &Path, options: Options<'_>) -> Result<ReportFiles, ReportError> {
    let records = Records::read(folder)?;
    let figures = plot::draw_all(&records)?;
    let comparison = options.compare.map(|other| compare::compare(&records, other)).transpose()?;
    let html = page::write(&records, &figures, comparison.as_ref(), options.limitations)?;
    let plots_folder = folder.join("plots");
    fs::create_dir_all(&plots_folder).map_err(|cause| ReportError::write(&plots_folder, cause))?;
    remove_old_plots(&plots_folder)?;
    let mut plots = Vec::new();
    for figure in &figures {
        if let Some(svg) = &figure.svg {
            let file = |ending: &str| plots_folder.join(format!("{}.{ending}", figure.name));
            write_whole(&file("svg"), svg.as_bytes())?;
            for format in options.formats.iter().filter(|format| **format != PlotFormat::Svg) {
                let bytes =
                    convert::convert(svg, *format).map_err(|why| ReportError::plot(&file(format.ending()), why))?;
                write_whole(&file(format.ending()), &bytes)?;
            }
            if let Some(csv) = &figure.csv {
                write_whole(&file("csv"), csv.as_bytes())?;
            }
            plots.push(file("svg"));
        }
    }
    let comparison_file = folder.join(COMPARISON.file);
    match &comparison {
        Some(comparison) => write_whole(&comparison_file, &comparison.to_csv())?,
        // The file of an earlier report does not belong to this one.
        None if comparison_file.exists() => {
            fs::remove_file(&comparison_file).map_err(|cause| ReportError::write(&comparison_file, cause))?;
        }
        None => {}
    }
    let file = folder.join("report.html");
    write_whole(&file, html.as_bytes())?;
    let mut distrust: Vec<String> =
        records.runs.iter().flat_map(|r| r.distrust().into_iter().map(|why| format!("run {}: {why}", r.key))).collect();
    distrust.extend(records.nothing_delivered().map(|warning| warning.text.clone()));
    let comparison_notes = comparison.as_ref().map_or_else(Vec::new, compare::Comparison::notes);
    let differences = comparison.map_or_else(Vec::new, |comparison| comparison.differences);
    Ok(ReportFiles { html: file, plots, distrust, differences, comparison_notes })
}

/// Removes the plots of an earlier report, because they do not belong to the new report. Other files are kept.
fn remove_old_plots(folder: &Path) -> Result<(), ReportError> {
    let entries = fs::read_dir(folder).map_err(|cause| ReportError::read(folder, cause))?;
    for entry in entries {
        let file = entry.map_err(|cause| ReportError::read(folder, cause))?.path();
        if file.extension().is_some_and(|e| e == "svg")
            && fs::read(&file).is_ok_and(|text| text.windows(OURS.len()).take(2000).any(|w| w == OURS))
        {
            fs::remove_file(&file).map_err(|cause| ReportError::write(&file, cause))?;
            // Also removes the files that were derived from the plot.
            for ending in ["csv", "pdf", "png"] {
                let beside = file.with_extension(ending);
                if beside.exists() {
                    fs::remove_file(&beside).map_err(|cause| ReportError::write(&beside, cause))?;
                }
            }
        }
    }
    Ok(())
}

const OURS: &[u8] = b"data-generator=\"fullpipe-report\"";

/// Writes a file completely or not at all: writes it under a temporary name, then renames it.
fn write_whole(file: &Path, content: &[u8]) -> Result<(), ReportError> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    fs::write(&beside, content).map_err(|cause| ReportError::write(&beside, cause))?;
    fs::rename(&beside, file).map_err(|cause| ReportError::write(file, cause))
}
