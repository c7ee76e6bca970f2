//! Claims and published values beside what was measured, each with its verdict.

use crate::input::Records;
use crate::input::summary::{SummaryRow, Verdict};
use crate::markup::{escape, escape_with_links};
use crate::numbers::{mean_and_interval, signed_percent, trimmed};
use crate::page::table::{Field, Heading, Table};
use crate::page::verdict;
use crate::plot::gather::{varying, word_for};
use crate::unit::Unit;
use std::fmt::Write;

/// The claims, each with verdict and note.
pub(crate) fn claims(records: &Records) -> String {
    let rows: Vec<_> = records.summary.iter().filter(|r| r.claim().is_some()).collect();
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    let mut table = Table {
        caption: "What the source claims, and what these runs say".to_owned(),
        keys: 1,
        headings: vec![
            Heading::long("Claim"),
            Heading::text("Verdict"),
            Heading::long("Note"),
            Heading::text("Source"),
            Heading::long("Tested as"),
        ],
        groups: Vec::new(),
    };
    let body = rows.iter().map(|row| {
        let name = row.claim().unwrap_or_default();
        let told = records.study.claims.iter().find(|[known, ..]| known == name);
        let [_, text, expression] = told.cloned().unwrap_or_default();
        let text = if text.is_empty() { name.replace(['_', '-'], " ") } else { text };
        // The summary's note begins with the claim's own words, which stand beside it here.
        let note = row
            .note
            .strip_prefix(text.as_str())
            .map_or(row.note.as_str(), |rest| rest.trim_start_matches([' ', ';', ',', ':', '.']));
        vec![
            Field::Text(text.clone()),
            row.verdict.map_or(Field::Text("cannot be told".to_owned()), |v| Field::Markup(verdict(v))),
            Field::Markup(escape_with_links(note)),
            Field::Markup(escape_with_links(&row.source)),
            match expression.as_str() {
                "" => Field::Text(String::new()),
                expression => Field::Markup(format!("<code>{}</code>", escape(expression))),
            },
        ]
    });
    table.groups.push((None, body.collect()));
    table.drop_empty_columns();
    table.write(&mut out);
    out
}

/// Published values beside measured ones.
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
        "<p>A measured mean <em>matches</em> when it is no further from the published value than the tolerance plus the \
         half width of its interval; otherwise it <em>differs</em>, or is <em>explained</em> when the claim named in its \
         note holds in these same runs and shows why.</p>\n",
    );
    // What varies anywhere in the study names a point, even where all published points share it.
    let mut axes = varying(records.summary.iter().filter(|r| r.claim().is_none()).map(|r| &r.point));
    axes.retain(|axis| rows.iter().any(|r| r.point.get(axis).is_some()));
    // One source for all needs no column.
    let sources: Vec<&str> = rows.iter().map(|r| r.source.as_str()).collect();
    let one_source = sources.windows(2).all(|w| w[0] == w[1]);
    if one_source && !sources[0].is_empty() {
        let _ =
            writeln!(out, "<p class=\"soft\">Source of all published values: {}</p>", escape_with_links(sources[0]));
    }
    let mut headings: Vec<Heading> = axes.iter().map(|a| axis_heading(records, a, &rows)).collect();
    headings.extend([
        Heading::number("Published"),
        Heading::number("Measured"),
        Heading::number("± 95 %"),
        Heading::number("Runs"),
        Heading::number("Difference"),
        Heading::number("Tolerance"),
        Heading::text("Verdict"),
        Heading::long("Note"),
        Heading::text("Source"),
    ]);
    // In a long table exceptions would drown: they come first, on their own.
    let exceptions: Vec<&SummaryRow> =
        rows.iter().copied().filter(|r| r.verdict.is_some_and(|v| v != Verdict::Match)).collect();
    let judged = rows.iter().filter(|r| r.verdict.is_some()).count();
    if exceptions.is_empty() && judged > 1 {
        let _ = writeln!(out, "<p>All {judged} published values match.</p>");
    } else if rows.len() > LONG {
        let _ =
            writeln!(out, "<p>{} of {judged} published values match; the others are:</p>", judged - exceptions.len());
        let caption = "Published values that do not match".to_owned();
        beside(records, &exceptions, &axes, caption, headings.clone(), one_source).write(&mut out);
    }
    let caption = "All published values beside measured ones".to_owned();
    beside(records, &rows, &axes, caption, headings, one_source).write(&mut out);
    out
}

/// A longer table has its exceptions told first.
const LONG: usize = 20;

/// A table of published beside measured values, a group per metric.
fn beside(
    records: &Records,
    rows: &[&SummaryRow],
    axes: &[String],
    caption: String,
    headings: Vec<Heading>,
    one_source: bool,
) -> Table {
    let mut metrics: Vec<&str> = Vec::new();
    for row in rows {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    let mut table = Table { caption, keys: axes.len(), headings, groups: Vec::new() };
    for metric in metrics {
        let group: Vec<_> = rows.iter().filter(|r| r.metric == metric).collect();
        let largest = group.iter().flat_map(|r| [r.mean, r.published]).flatten().fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = unit_of(records, group[0]).scale_for(largest);
        let body = group.iter().map(|row| {
            let mut fields: Vec<Field> = axes.iter().map(|a| axis_field(row, a)).collect();
            let (mean, interval) = match row.mean {
                Some(mean) => mean_and_interval(unit.value(mean), row.half_width.map(|h| unit.value(h))),
                None => ("–".to_owned(), None),
            };
            let published = row.published.map_or_else(|| "–".to_owned(), |v| trimmed(unit.value(v), 6));
            let difference = match (row.mean, row.published) {
                (Some(mean), Some(published)) if published != 0.0 => {
                    signed_percent((mean - published) / published.abs())
                }
                _ => "–".to_owned(),
            };
            fields.extend([
                Field::Number(published),
                Field::Number(mean),
                Field::Number(interval.unwrap_or_else(|| "–".to_owned())),
                Field::Number(row.n.to_string()),
                Field::Number(difference),
                Field::Number(tolerance(&row.tolerance, &unit)),
                row.verdict.map_or(Field::Text(String::new()), |v| Field::Markup(verdict(v))),
                Field::Markup(escape_with_links(&row.note)),
                Field::Markup(if one_source { String::new() } else { escape_with_links(&row.source) }),
            ]);
            fields
        });
        table.groups.push((Some(unit.heading(&word_for(records, metric))), body.collect()));
    }
    table.drop_empty_columns();
    table
}

/// A tolerance as it is shown: a share as it stands, an absolute one in the unit of its row.
fn tolerance(text: &str, unit: &crate::unit::Scaled) -> String {
    match (text.strip_suffix('%'), crate::input::table::parse_number(text)) {
        (Some(share), _) => format!("{}\u{202f}%", share.trim()),
        (None, Some(value)) => format!("{} {}", trimmed(unit.value(value), 4), unit.label).trim_end().to_owned(),
        (None, None) => text.to_owned(),
    }
}

/// The unit of a row's metric.
pub(crate) fn unit_of(records: &Records, row: &SummaryRow) -> Unit {
    let told = records.study.words_of(&row.metric).and_then(|w| w.unit.as_deref()).unwrap_or(&row.unit);
    if told.is_empty() { Unit::of_metric(&row.metric) } else { Unit::new(told) }
}

/// An axis' heading, with its unit where it has one.
pub(crate) fn axis_heading(records: &Records, axis: &str, rows: &[&SummaryRow]) -> Heading {
    let unit =
        records.study.words_of(axis).and_then(|w| w.unit.as_deref()).map_or_else(|| Unit::of_metric(axis), Unit::new);
    let number = rows.iter().filter_map(|r| r.point.get(axis)).all(|v| crate::input::table::parse_number(v).is_some());
    let word = word_for(records, axis);
    let text = if word.ends_with(')') { word } else { unit.unscaled().heading(&word) };
    if number { Heading::number(text) } else { Heading::text(text) }
}

/// The value of an axis at a row's point.
pub(crate) fn axis_field(row: &SummaryRow, axis: &str) -> Field {
    let text = row.point.get(axis).unwrap_or("–");
    match crate::input::table::parse_number(text) {
        Some(value) => Field::Number(trimmed(value, 9)),
        None => Field::Markup(escape(text)),
    }
}
