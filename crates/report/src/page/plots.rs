//! The pictures, each with title, caption and the name of its file.

use crate::markup::{escape, markdown};
use crate::plot::Figure;
use std::fmt::Write;

/// All figures.
pub(crate) fn section(figures: &[Figure]) -> String {
    let mut out = String::new();
    if figures.is_empty() {
        return out;
    }
    out.push_str("<div class=\"figures\">\n");
    for figure in figures {
        let (title, caption) = (escape(&figure.title), markdown(&figure.caption));
        let _ = match &figure.svg {
            Some(svg) => writeln!(
                out,
                "<figure id=\"plot-{name}\">{svg}<figcaption><b>{title}.</b> {caption} \
                 <code>plots/{name}.svg</code></figcaption></figure>",
                name = figure.name
            ),
            None if figure.table.is_some() => writeln!(
                out,
                "<figure id=\"plot-{name}\" class=\"wide\">{table}<figcaption>{caption}</figcaption></figure>",
                name = figure.name,
                table = figure.table.as_deref().unwrap_or_default()
            ),
            None => writeln!(out, "<p class=\"note\"><b>{title}.</b> {caption}</p>"),
        };
    }
    out.push_str("</div>\n");
    out
}
