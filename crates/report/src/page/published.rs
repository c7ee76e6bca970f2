//! The sections that compare claims and published values with the measurements, each with its verdict.

use crate::input::{Records, distinct};
use crate::markup::{escape, escape_with_links, markdown};
use crate::numbers::{count, mean_and_interval, signed_percent, trimmed};
use crate::page::notes::Notes;
use crate::page::table::{Field, Heading, Table};
use crate::page::verdict;
use crate::plot::gather::{varying, word_for};
use crate::unit::Unit;
use fullpipe_archive::{SummaryRow, Verdict};
use std::fmt::Write;

/// The word for a claim or value whose verdict is missing.
pub(crate) const NO_VERDICT: &str = "no verdict";

/// Returns the section of claims, each with verdict and note.
pub(crate) fn claims(records: &Records) -> String {
    let rows = records.claims();
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    let mut table = Table {
        caption: "Claims, and the results of these runs".to_owned(),
        keys: 1,
        headings: vec![
            Heading::long("Claim"),
            Heading::text("Verdict"),
            Heading::number("Support"),
            Heading::number("Runs"),
            Heading::text("Source"),
            Heading::text("Note"),
        ],
        ..Table::default()
    };
    let mut notes = Notes::new("claim-note", "note");
    let mut sources = Notes::new("claim-source", "");
    // Claims of the study itself explain those of its source, so they follow them.
    let is_own = |r: &&SummaryRow| r.source.is_empty() || r.source.starts_with("Fullpipe");
    let (own, cited): (Vec<&SummaryRow>, Vec<&SummaryRow>) = rows.into_iter().partition(is_own);
    let both = !own.is_empty() && !cited.is_empty();
    for (name, rows) in [("Claims of the source", cited), ("Claims of this study", own)] {
        let body: Vec<_> = rows
            .iter()
            .map(|row| {
                let name = row.claim().unwrap_or_default();
                let declared = records.study.claim.iter().find(|claim| claim.name == name);
                let (text, expression) =
                    declared.map(|claim| (claim.text.clone(), claim.expression.as_str())).unwrap_or_default();
                let text = if text.is_empty() { name.replace(['_', '-'], " ") } else { text };
                let mut claim = markdown(&text);
                if !expression.is_empty() {
                    let _ = write!(
                        claim,
                        "<details><summary>tested as</summary><code>{}</code></details>",
                        escape(expression)
                    );
                }
                vec![
                    Field::Markup(claim),
                    row.verdict.map_or(Field::Text(NO_VERDICT.to_owned()), |v| Field::Markup(verdict(v))),
                    Field::Number(row.support.map_or_else(String::new, |support| format!("{support:.3}"))),
                    Field::Number(row.n.map_or_else(String::new, |n| n.to_string())),
                    Field::Markup(sources.short_or_mark(&row.source)),
                    Field::Markup(notes.short_or_mark(&note_beside(&row.note, &text))),
                ]
            })
            .collect();
        if !body.is_empty() {
            table.groups.push((both.then(|| name.to_owned()), body));
        }
    }
    table.drop_empty_columns();
    table.write(&mut out);
    let others = records.claims_of_others();
    if others > 0 {
        let _ =
            writeln!(out, "<p class=\"soft\">{} on experiments that were not selected.</p>", count(others, "claim"));
    }
    notes.write(&mut out, "Notes");
    sources.write(&mut out, "Sources");
    out
}

/// Returns a note of `summary.csv` in which "1 complete replications" is replaced with "1 complete replication". The
/// text in the file does not change, because records must be byte-for-byte reproducible.
pub fn readable_note(note: &str) -> String {
    match note.strip_prefix("1 complete replications") {
        Some(rest) => format!("1 complete replication{rest}"),
        None => note.replace(" 1 complete replications", " 1 complete replication"),
    }
}

/// Returns a note without repetitions. It omits the statement that the study was quick, which a banner contains, and
/// the text of the claim, which is in the same row. The parts of a note are separated by semicolons.
fn note_beside(note: &str, text: &str) -> String {
    let note = note.strip_prefix("quick").filter(|rest| rest.is_empty() || rest.starts_with("; ")).unwrap_or(note);
    let note = if text.is_empty() { note.to_owned() } else { note.replacen(text, "", 1) };
    readable_note(note.trim_matches([' ', ';']))
}

/// Data that all rows of a section share.
struct Section {
    notes: Notes,
    sources: Notes,
    /// Whether there is only one source, which then needs no column.
    one_source: bool,
}

/// Returns the section with published and measured values.
pub(crate) fn values(records: &Records) -> String {
    let rows: Vec<&SummaryRow> = records
        .summary
        .iter()
        .filter(|r| r.claim().is_none() && (r.published.is_some() || r.verdict.is_some()))
        .collect();
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    out.push_str(
        "<p>A measured value <em>matches</em> when its whole 95 % interval lies within the tolerance. It <em>differs</em> when \
         the interval lies outside and the published value is not compatible with a mean of as many runs as in the publication. \
         It is <em>explained</em> when a variant that changes one assumption matches. Otherwise, and with fewer than 10 \
         replications, it is <em>undecided</em>.</p>\n",
    );
    if rows.iter().any(|r| r.verdict == Some(Verdict::Untrusted)) {
        out.push_str(
            "<p>A value is <em>untrusted</em> when fewer than half of its runs are left without those that are not to \
             be trusted. It supports no verdict.</p>\n",
        );
    }
    let one_source = rows.windows(2).all(|w| w[0].source == w[1].source);
    if one_source && !rows[0].source.is_empty() {
        let source = escape_with_links(&rows[0].source);
        let _ = writeln!(out, "<p class=\"soft\">Source of all published values: {source}</p>");
    }
    let mut section = Section { notes: Notes::new("note", "note"), sources: Notes::new("source", ""), one_source };
    // In a long table, exceptions would be easy to miss, so a separate table precedes it.
    let exceptions: Vec<&SummaryRow> =
        rows.iter().copied().filter(|r| r.verdict.is_some_and(|v| v != Verdict::Match)).collect();
    let judged = rows.iter().filter(|r| r.verdict.is_some()).count();
    if exceptions.is_empty() && judged > 1 {
        let _ = writeln!(out, "<p>All {judged} published values match.</p>");
    } else if rows.len() > LONG {
        let matching = judged - exceptions.len();
        let _ = writeln!(out, "<p>{matching} of {judged} published values match; the others are:</p>");
        let caption = "Published values that do not match".to_owned();
        beside(records, None, &exceptions, caption, &mut section).write(&mut out);
    }
    let named = experiments(&rows);
    for name in &named {
        let rows: Vec<&SummaryRow> = rows.iter().copied().filter(|r| r.point.experiment() == *name).collect();
        let caption = match name {
            Some(name) => format!("{name}: published and measured values"),
            None => "Published and measured values".to_owned(),
        };
        beside(records, Some(*name), &rows, caption, &mut section).write(&mut out);
    }
    section.notes.write(&mut out, "Notes");
    section.sources.write(&mut out, "Sources");
    out
}

/// The number of rows beyond which exceptions are in a separate table.
const LONG: usize = 20;

/// Returns a table of published and measured values of one experiment or of all, with a group for each metric.
fn beside(
    records: &Records,
    scope: Option<Option<&str>>,
    rows: &[&SummaryRow],
    caption: String,
    section: &mut Section,
) -> Table {
    // An axis that varies within the scope is part of a point's name, even if its value is the same at all published
    // points.
    let in_scope = |r: &&SummaryRow| scope.is_none_or(|experiment| r.point.experiment() == experiment);
    let all = records.summary.iter().filter(|r| r.claim().is_none()).filter(in_scope);
    let mut axes = varying(all.map(|r| &r.point));
    axes.retain(|axis| rows.iter().any(|r| r.point.get(axis).is_some()));
    let mut headings: Vec<Heading> = axes.iter().map(|a| axis_heading(records, a, rows)).collect();
    headings.extend([
        Heading::number("Published"),
        Heading::number("of runs"),
        Heading::number("Measured"),
        Heading::number("± 95 %"),
        Heading::number("Runs"),
        Heading::number("Difference"),
        Heading::number("Tolerance"),
        Heading::text("Verdict"),
        Heading::text("Source"),
        Heading::text("Note"),
    ]);
    let metrics = distinct(rows.iter().map(|row| row.metric.as_str()));
    let mut table = Table { caption, keys: axes.len(), headings, ..Table::default() };
    for metric in metrics {
        let group: Vec<_> = rows.iter().filter(|r| r.metric == metric).collect();
        let largest = group.iter().flat_map(|r| [r.mean, r.published]).flatten().fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = unit_of(records, group[0]).scale_for(largest);
        let body = group.iter().map(|row| {
            let mut fields: Vec<Field> = axes.iter().map(|a| axis_field(row, a)).collect();
            let (mean, interval) = match row.mean {
                Some(mean) => mean_and_interval(unit.value(mean), row.ci95.map(|h| unit.value(h))),
                None => ("–".to_owned(), None),
            };
            let published = row.published.map_or_else(|| "–".to_owned(), |v| trimmed(unit.value(v), 6));
            let difference = match (row.mean, row.published) {
                // An absolute tolerance requires an absolute difference: one packet of 29 267 would be 0.00 %.
                (Some(mean), Some(published)) if !row.tolerance.ends_with('%') && !row.tolerance.is_empty() => {
                    signed(unit.value(mean) - unit.value(published))
                }
                (Some(mean), Some(published)) if published != 0.0 => {
                    signed_percent((mean - published) / published.abs())
                }
                _ => "–".to_owned(),
            };
            fields.extend([
                Field::Number(published),
                Field::Number(row.published_runs.map_or_else(String::new, |runs| runs.to_string())),
                Field::Number(mean),
                Field::Number(interval.unwrap_or_else(|| "–".to_owned())),
                Field::Number(row.run_count().to_string()),
                Field::Number(difference),
                Field::Number(tolerance(&row.tolerance, &unit)),
                row.verdict.map_or(Field::Text(String::new()), |v| Field::Markup(verdict(v))),
                Field::Markup(if section.one_source {
                    String::new()
                } else {
                    section.sources.short_or_mark(&row.source)
                }),
                Field::Markup(section.notes.short_or_mark(&note_beside(&row.note, ""))),
            ]);
            fields
        });
        let body = body.collect();
        table.groups.push((Some(unit.heading(&word_for(records, metric))), body));
    }
    table.drop_empty_columns();
    table
}

/// Formats a difference with its sign.
fn signed(value: f64) -> String {
    let text = trimmed(value, 3);
    if value > 0.0 { format!("+{text}") } else { text }
}

/// Formats a tolerance: a relative one unchanged, an absolute one in the unit of its group.
fn tolerance(text: &str, unit: &crate::unit::ScaledUnit) -> String {
    match (text.strip_suffix('%'), fullpipe_archive::parse_number(text)) {
        (Some(share), _) => format!("{} %", share.trim()),
        (None, Some(value)) => trimmed(unit.value(value), 4),
        (None, None) => text.to_owned(),
    }
}

/// Returns the unit of a row's metric.
pub(crate) fn unit_of(records: &Records, row: &SummaryRow) -> Unit {
    let told = records.study.words_of(&row.metric).and_then(|w| w.unit.as_deref()).unwrap_or(&row.unit);
    if told.is_empty() { Unit::of_metric(&row.metric) } else { Unit::new(told) }
}

/// Returns the heading of an axis, with its unit if it has one.
pub(crate) fn axis_heading(records: &Records, axis: &str, rows: &[&SummaryRow]) -> Heading {
    let unit =
        records.study.words_of(axis).and_then(|w| w.unit.as_deref()).map_or_else(|| Unit::of_metric(axis), Unit::new);
    let number = rows.iter().filter_map(|r| r.point.get(axis)).all(|v| fullpipe_archive::parse_number(v).is_some());
    let word = word_for(records, axis);
    let text = if word.ends_with(')') { word } else { unit.unscaled().heading(&word) };
    if number { Heading::number(text) } else { Heading::text(text) }
}

/// Returns the value of an axis at the point of a row.
pub(crate) fn axis_field(row: &SummaryRow, axis: &str) -> Field {
    let text = row.point.get(axis).unwrap_or("–");
    match fullpipe_archive::parse_number(text) {
        Some(value) => Field::Number(trimmed(value, 9)),
        None => Field::Markup(escape(text)),
    }
}

/// Returns the experiments of some rows, in order.
pub(crate) fn experiments<'a>(rows: &[&'a SummaryRow]) -> Vec<Option<&'a str>> {
    distinct(rows.iter().map(|row| row.point.experiment()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_beside_removes_repetitions() {
        assert_eq!(note_beside("quick; UDP is fast; no, slow.; see run 7", "UDP is fast; no, slow."), "see run 7");
        assert_eq!(note_beside("quick", ""), "");
        assert_eq!(note_beside("quickly done", ""), "quickly done");
        assert_eq!(note_beside("a; b", ""), "a; b");
        assert_eq!(note_beside("quick; 1 complete replications, 10", ""), "1 complete replication, 10");
        assert_eq!(note_beside("11 complete replications, 14", ""), "11 complete replications, 14");
    }

    #[test]
    fn signed_differences_have_a_sign() {
        assert_eq!((signed(1.0), signed(-0.25), signed(0.0)), ("+1".to_owned(), "−0.25".to_owned(), "0".to_owned()));
    }
}
