//! The section on deviations of the models from real systems, restricted to the models that the runs use.

use crate::input::Records;
use crate::markup::{escape, markdown, slug};
use std::fmt::Write;

/// The condition under which a run uses the subject of a section.
#[derive(Clone, Copy)]
enum Use {
    /// The limitation applies to every run.
    Always,
    /// The limitation applies to runs in real time.
    RealTime,
    /// The limitation applies to scenarios that contain one of these lines. The lines are those of resolved scenarios,
    /// with all defaults.
    Lines(&'static [&'static str]),
}

/// The sections of docs/limitations.md and their conditions. A section that is not in this list is always shown.
const SECTIONS: [(&str, Use); 13] = [
    ("Network", Use::Always),
    ("Measurement", Use::Always),
    ("Real time", Use::RealTime),
    ("TCP", Use::Lines(&["protocol = \"tcp\"", "http = \"1.1\"", "http = \"2\""])),
    ("Traffic of the evaluation suite", Use::Lines(&["workload = \"tmix\""])),
    ("Web pages", Use::Lines(&["workload = \"web\""])),
    ("QUIC on the real stack", Use::Lines(&["stack = \"noq\""])),
    ("QUIC as a model", Use::Lines(&["stack = \"model\""])),
    ("Tunnels", Use::Lines(&["protocol = \"masque\"", "workload = \"tunnel\""])),
    ("LTE", Use::Lines(&["[[lte]]"])),
    ("Wi-Fi", Use::Lines(&["[[wifi]]"])),
    // Such runs have no records, and therefore no report.
    ("Steps and Python", Use::Lines(&[])),
    ("Our TCP compared with Linux's", Use::Lines(&["from_by = \"kernel\"", "to_by = \"kernel\""])),
];

/// Returns the section of the page.
pub(crate) fn section(records: &Records, text: Option<&str>) -> String {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return "<p>See <code>docs/limitations.md</code> of the build named above.</p>\n".to_owned();
    };
    let text = text.replace("\r\n", "\n");
    let (before, sections) = split(&text);
    let (shown, left_out): (Vec<_>, Vec<_>) = sections.into_iter().partition(|(title, _)| is_used(records, title));
    let mut out = String::new();
    if left_out.is_empty() {
        write_text(&mut out, before);
    } else {
        let titles: Vec<&str> = left_out.iter().map(|(title, _)| *title).collect();
        let _ = writeln!(
            out,
            "<p>Where the models that these runs use deviate from real systems. Not used here: {}.</p>",
            escape(&titles.join(", "))
        );
    }
    for (title, body) in shown {
        let _ = writeln!(
            out,
            "<details id=\"limitations-{}\"><summary>{} ({})</summary>",
            slug(title),
            escape(title),
            crate::numbers::count(body.matches("\n* ").count().max(1), "item")
        );
        write_text(&mut out, body);
        out.push_str("</details>\n");
    }
    out
}

/// Splits a page into the text before the first section, and the sections with their titles.
fn split(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = text.split("\n## ");
    let before = parts.next().unwrap_or_default();
    (before, parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).map(|(t, body)| (t.trim(), body)).collect())
}

/// Returns whether a run uses the subject of a section.
fn is_used(records: &Records, title: &str) -> bool {
    match SECTIONS.iter().find(|(known, _)| *known == title) {
        None | Some((_, Use::Always)) => true,
        Some((_, Use::RealTime)) => records.runs.iter().any(|run| !run.is_virtual()),
        Some((_, Use::Lines(lines))) => {
            // Records without a scenario provide no evidence of use.
            let of = |run: &crate::input::run::Run| {
                let text = run.record.scenario.as_str();
                text.is_empty() || lines.iter().any(|line| text.contains(line))
            };
            records.runs.iter().any(of)
        }
    }
}

/// Writes plain text with basic Markdown: paragraphs separated by empty lines, `#` headings, `*` or `-` lists.
fn write_text(out: &mut String, text: &str) {
    for block in text.replace("\r\n", "\n").split("\n\n").map(str::trim).filter(|b| !b.is_empty()) {
        if block.starts_with('#') {
            let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
            let _ = writeln!(out, "<p><strong>{}</strong></p>", markdown(first.trim_start_matches('#').trim()));
            if !rest.trim().is_empty() {
                write_text(out, rest);
            }
            continue;
        }
        if block.starts_with("* ") || block.starts_with("- ") {
            let mut items: Vec<String> = Vec::new();
            for line in block.lines() {
                match line.strip_prefix("* ").or_else(|| line.strip_prefix("- ")) {
                    Some(item) => items.push(item.to_owned()),
                    None => {
                        if let Some(last) = items.last_mut() {
                            last.push(' ');
                            last.push_str(line.trim());
                        }
                    }
                }
            }
            out.push_str("<ul>");
            for item in items {
                let _ = write!(out, "<li>{}</li>", markdown(&item));
            }
            out.push_str("</ul>\n");
        } else {
            let _ = writeln!(out, "<p>{}</p>", markdown(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_text_renders_paragraphs_and_lists() {
        let mut out = String::new();
        write_text(&mut out, "# Limits\nNo <b>radio</b>.\n\n* one\n  more\n* two\n");
        assert_eq!(
            out,
            "<p><strong>Limits</strong></p>\n<p>No &lt;b&gt;radio&lt;/b&gt;.</p>\n<ul><li>one more</li><li>two</li></ul>\n"
        );
    }

    #[test]
    fn every_section_of_the_limitations_page_is_in_the_list() {
        // Read at run time: the package of this crate does not contain the page.
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limitations.md");
        let page = std::fs::read_to_string(file).expect("docs/limitations.md of the clone");
        let (_, sections) = split(&page);
        let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
        for title in &titles {
            assert!(
                SECTIONS.iter().any(|(known, _)| known == title),
                "{title} is shown for all runs: add it to SECTIONS"
            );
        }
        for (title, _) in SECTIONS {
            assert!(titles.contains(&title), "docs/limitations.md has no section {title}");
        }
    }

    #[test]
    fn only_sections_of_used_models_are_shown() {
        let text = "Before.\n\n## TCP\n\n* a\n\n## LTE\n\n* b\n\n## New\n\n* c\n";
        let mut records = Records::default();
        let mut run = crate::input::run::Run::default();
        run.record.scenario = "[[flow]]\nprotocol = \"tcp\"\n".to_owned();
        records.runs.push(run);
        let page = section(&records, Some(text));
        assert!(page.contains("<summary>TCP (1 item)</summary>") && page.contains("<summary>New"), "{page}");
        assert!(!page.contains("<summary>LTE") && page.contains("Not used here: LTE."), "{page}");
    }
}
