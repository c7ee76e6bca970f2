//! The section with the plots, each with title, caption and file name.

use crate::input::distinct;
use crate::markup::{escape, markdown};
use crate::numbers::count;
use crate::plot::RenderedPlot;
use std::fmt::Write;

/// Returns the distinct sentences that the captions of at least two figures share.
pub(crate) fn shared_remarks(figures: &[&RenderedPlot]) -> Vec<String> {
    let of = |text: &String| figures.iter().filter(|figure| figure.caption.contains(text)).count();
    distinct(figures.iter().flat_map(|figure| &figure.caption))
        .into_iter()
        .filter(|text| of(text) > 1)
        .cloned()
        .collect()
}

/// Returns the heading of the section, which states its content.
pub(crate) fn heading(figures: &[&RenderedPlot]) -> &'static str {
    let tables = figures.iter().filter(|figure| figure.table.is_some()).count();
    match tables {
        0 => "Plots",
        n if n == figures.len() => "Tables",
        _ => "Plots and tables",
    }
}

/// Returns the section with the figures that are not on the first screen, and the number of plots of experiments that were
/// not selected.
pub(crate) fn section(figures: &[&RenderedPlot], shared: &[String], of_others: usize) -> String {
    let mut out = String::new();
    if of_others > 0 {
        let plots = count(of_others, "plot");
        let _ = writeln!(out, "<p class=\"soft\">{plots} of experiments that were not selected.</p>");
    }
    if figures.is_empty() {
        return out;
    }
    if !shared.is_empty() {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", markdown(&shared.join(" ")));
    }
    out.push_str("<div class=\"figures\">\n");
    figures.iter().for_each(|figure| write(&mut out, figure, shared));
    out.push_str("</div>\n");
    out
}

/// Writes a figure with the sentences of its caption that are not in `shared`.
pub(crate) fn write(out: &mut String, figure: &RenderedPlot, shared: &[String]) {
    let own = figure.caption.iter().filter(|text| !shared.contains(text)).map(String::as_str);
    let (title, caption) = (escape(&figure.title), markdown(&own.collect::<Vec<_>>().join(" ")));
    let name = &figure.name;
    let _ = match &figure.svg {
        Some(svg) => {
            let csv =
                if figure.csv.is_some() { format!(", <a href=\"plots/{name}.csv\">CSV</a>") } else { String::new() };
            writeln!(
                out,
                "<figure id=\"plot-{name}\">{svg}<figcaption><b>{title}.</b> {caption} \
                 <span class=\"files\"><a href=\"plots/{name}.svg\">SVG</a>{csv}</span></figcaption></figure>",
            )
        }
        None if figure.table.is_some() => writeln!(
            out,
            "<figure id=\"plot-{name}\" class=\"wide\">{table}<figcaption>{caption}</figcaption></figure>",
            table = figure.table.as_deref().unwrap_or_default()
        ),
        None => writeln!(out, "<p class=\"note\"><b>{title}.</b> {caption}</p>"),
    };
}
