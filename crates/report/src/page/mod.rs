//! The page: one self-contained HTML file with inline style and pictures, and without scripts and external resources. A
//! content security policy in the page enforces this even if the report has errors. The page is also well-formed XML,
//! so that a test can parse it.

pub(crate) mod compare;
mod events;
mod expectations;
mod experience;
mod first;
mod limitations;
mod links;
mod matrix;
mod notes;
mod overview;
mod plots;
pub(crate) mod published;
mod results;
pub(crate) mod table;
mod validity;

use crate::compare::Comparison;
use crate::input::Records;
use crate::markup::escape;
use crate::plot::{RenderedPlot, plots_of_others};
use fullpipe_archive::Verdict;
use std::fmt::Write;

/// The symbols of the verdicts: a check mark in a circle, a diamond, a line in a circle, a triangle, a crossed square,
/// a clock. Together with the word, they are distinguishable without color.
const SYMBOLS: &str = "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\">\
<symbol id=\"v-match\" viewBox=\"0 0 16 16\"><circle cx=\"8\" cy=\"8\" r=\"7\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M4.4 8.3l2.5 2.6 4.8-5.4\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
<symbol id=\"v-explained\" viewBox=\"0 0 16 16\"><path d=\"M8 .9L15.1 8 8 15.1.9 8z\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M8 4.2v1.6M8 7.2v4.6\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
<symbol id=\"v-undecided\" viewBox=\"0 0 16 16\"><circle cx=\"8\" cy=\"8\" r=\"7\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M4.2 8h7.6\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
<symbol id=\"v-differs\" viewBox=\"0 0 16 16\"><path d=\"M8 1.3L15.2 14.4H.8z\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M8 5.6v4.2M8 11v1.8\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
<symbol id=\"v-refuted\" viewBox=\"0 0 16 16\"><path d=\"M1.5 1.5h13v13h-13z\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M4.8 4.8l6.4 6.4M11.2 4.8l-6.4 6.4\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
<symbol id=\"v-untrusted\" viewBox=\"0 0 16 16\"><circle cx=\"8\" cy=\"8\" r=\"7\" fill=\"none\" stroke=\"currentColor\" \
stroke-width=\"1.6\"/><path d=\"M8 3.6V8.4l3 2\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/></symbol>\
</svg>\n";

/// Writes the page.
pub(crate) fn write(
    records: &Records,
    figures: &[RenderedPlot],
    comparison: Option<&Comparison>,
    limitations: Option<&str>,
) -> Result<String, crate::ReportError> {
    let compared = comparison.map(compare::heading);
    let title = records.title();
    // The title contains the names of both compared folders, so that their reports have different titles.
    let page_title = compared.as_ref().map_or_else(|| title.clone(), |compared| format!("{title}: {compared}"));
    let main = first::main_figure(figures);
    let others: Vec<&RenderedPlot> =
        figures.iter().filter(|figure| main.is_none_or(|main| figure.name != main.name)).collect();
    // A sentence that several captions share is written only once, above the plots.
    let shared = plots::shared_remarks(&others);
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{SYMBOLS}",
        escape(&page_title),
        include_str!("style.css")
    );
    let mut sections = Vec::new();
    for (id, name, body) in [
        ("comparison", "Comparison", comparison.map_or_else(String::new, compare::section)),
        ("expectations", "Expectations", expectations::section(records)),
        ("matrix", "Matrix", matrix::section(records)),
        ("claims", "Claims", published::claims(records)),
        ("published", "Published beside measured", published::values(records)),
        ("plots", plots::heading(&others), plots::section(&others, &shared, plots_of_others(records))),
        ("results", "Results", results::section(records)?),
        ("run", "What was run", overview::what_was_run(records)),
        ("validity", "Validity", validity::section(records)),
        ("limitations", "What is not modeled", limitations::section(records, limitations)),
        ("repeat", "How to repeat this", validity::repeat(records)),
    ] {
        if !body.is_empty() {
            sections.push((id, name, body));
        }
    }
    out.push_str("<header>\n");
    overview::header(&mut out, records, compared.as_deref());
    out.push_str("<nav aria-label=\"Sections\">");
    for (id, name, _) in &sections {
        let _ = write!(out, "<a href=\"#{id}\">{name}</a> ");
    }
    out.push_str("</nav>\n</header>\n<main>\n");
    first::write(&mut out, records, main)?;
    overview::description(&mut out, records);
    for (id, name, body) in &sections {
        let name = match (*id, &compared) {
            ("comparison", Some(compared)) => format!("{name}: {}", escape(compared)),
            _ => (*name).to_owned(),
        };
        let _ = write!(out, "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{name}</h2>\n{body}</section>\n");
    }
    out.push_str(
        "</main>\n<footer>Generated by fullpipe from the records in this folder: <code>summary.csv</code> and \
         <code>results.csv</code> contain all numbers in full precision; <code>plots/</code> contains the plots and their numbers as CSV.</footer>\n\
         </body>\n</html>\n",
    );
    Ok(out)
}

/// Formats a verdict as symbol and word.
fn verdict(verdict: Verdict) -> String {
    let word = verdict.name();
    format!("<span class=\"verdict {word}\"><svg aria-hidden=\"true\"><use href=\"#v-{word}\"/></svg>{word}</span>")
}
