//! `fullpipe report`: rebuilds the report of a folder of records, optionally in other formats and with a comparison to
//! another folder.

use crate::arguments::{PlotFormatName, ReportArguments};
use crate::exit::Failure;
use crate::open;
use crate::output::{aligned, print_line};
use crate::records::significant;
use fullpipe::embedded;
use fullpipe::report::{self, Difference, Options, PlotFormat};
use std::cmp::Ordering;

/// The maximum number of printed differences; `comparison.csv` contains all.
const MOST_ROWS: usize = 200;

/// Runs `fullpipe report`.
pub(crate) fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let formats: Vec<PlotFormat> = arguments.format.iter().map(|name| name.format()).collect();
    #[cfg(not(feature = "plots"))]
    if formats.iter().any(|format| !format.is_available()) {
        return Err(crate::absent::missing_plots());
    }
    let folders = [Some(&arguments.folder), arguments.compare.as_ref()];
    if let Some(missing) = folders.into_iter().flatten().find(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("{} is not a folder of records", missing.display())));
    }
    let options =
        Options { limitations: Some(embedded::LIMITATIONS), compare: arguments.compare.as_deref(), formats: &formats };
    let built = report::write_report_with(&arguments.folder, options).map_err(Failure::usage)?;
    if let Some(other) = &arguments.compare {
        print_line!("here: {}; there: {}", arguments.folder.display(), other.display());
        built.comparison_notes.iter().for_each(|note| print_line!("{note}"));
        if !built.differences.is_empty() {
            print_line!("\n{}", table(&built.differences).trim_end_matches('\n'));
        }
    }
    eprintln!("{} and {} plots", built.html.display(), built.plots.len());
    if arguments.open {
        open::open(&built.html);
    }
    if built.distrust.is_empty() {
        Ok(())
    } else {
        Err(Failure::untrusted(format!("results that cannot be trusted:\n  {}", built.distrust.join("\n  "))))
    }
}

/// Returns the differences as a table for the terminal.
fn table(differences: &[Difference]) -> String {
    const NUMERIC: [bool; 10] = [false, false, false, false, true, true, true, true, true, false];
    let headings = ["point", "metric", "flow", "unit", "pairs", "here", "there", "difference", "ci95", "interval"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for one in differences.iter().take(MOST_ROWS) {
        let interval = match one.direction() {
            Some(Ordering::Greater) => "higher",
            Some(_) => "lower",
            None if one.ci95.is_some() && one.difference != 0.0 => "includes zero",
            None => "",
        };
        rows.push(vec![
            one.point.to_string(),
            one.metric.clone(),
            one.flow.clone().or_else(|| one.total.map(str::to_owned)).unwrap_or_default(),
            one.unit.clone(),
            one.pairs.to_string(),
            significant(one.mean, 6),
            significant(one.other_mean, 6),
            significant(one.difference, 4),
            one.ci95.map_or_else(String::new, |half| significant(half, 2)),
            interval.to_owned(),
        ]);
    }
    let mut text = aligned(&rows, &NUMERIC);
    if differences.len() > MOST_ROWS {
        text += &format!("and {} more in comparison.csv\n", differences.len() - MOST_ROWS);
    }
    text
}

impl PlotFormatName {
    fn format(self) -> PlotFormat {
        match self {
            PlotFormatName::Svg => PlotFormat::Svg,
            PlotFormatName::Pdf => PlotFormat::Pdf,
            PlotFormatName::Png => PlotFormat::Png,
        }
    }
}
