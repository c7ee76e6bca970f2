//! The first screen: the main figure and the main table. For a run, the table contains the flows. For a study, it
//! contains the claims, if there are any; otherwise the published values; otherwise the values in the main figure.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::flows::{REVERSE, read_flows};
use crate::markup::{escape, markdown};
use crate::numbers::count;
use crate::numbers::{exact, mean_and_interval, significant, trimmed};
use crate::page::published::{NO_VERDICT, axis_field, axis_heading, unit_of};
use crate::page::results::rate;
use crate::page::table::{Field, Heading, Table};
use crate::page::{plots, verdict};
use crate::plot::RenderedPlot;
use crate::plot::gather::{varying, word_for};
use fullpipe_archive::{FlowRow, SummaryRow, Verdict};
use std::fmt::Write;

/// The maximum number of rows on the first screen; the sections below contain all rows.
const MOST_ROWS: usize = 12;
/// The maximum number of rows of `flows.csv` that are read: both directions of [`MOST_ROWS`] flows.
const MOST_DIRECTIONS: usize = 2 * MOST_ROWS;
/// The maximum number of characters of a claim on the first screen; its section contains the complete text.
const LONGEST_CLAIM: usize = 150;

/// Returns the figure of the first screen: the first figure that has a picture.
pub(crate) fn main_figure(figures: &[RenderedPlot]) -> Option<&RenderedPlot> {
    figures.iter().find(|figure| figure.svg.is_some())
}

/// Writes the figure and the table.
pub(crate) fn write(out: &mut String, records: &Records, figure: Option<&RenderedPlot>) -> Result<(), ReportError> {
    let table = if records.is_single_run() { flows(records)? } else { of_study(records, figure) };
    if figure.is_none() && table.is_none() {
        return Ok(());
    }
    // Without a figure, the table has the full width.
    out.push_str(if figure.is_some() { "<div class=\"first\">\n" } else { "<div class=\"first alone\">\n" });
    if let Some(figure) = figure {
        // On the first screen, only this caption is visible, so it contains all of the plot's sentences.
        plots::write(out, figure, &[]);
    }
    if let Some((table, more)) = table {
        out.push_str("<div class=\"main-table\">\n");
        table.write(out);
        if !more.is_empty() {
            let _ = writeln!(out, "<p class=\"soft\">{more}</p>");
        }
        out.push_str("</div>\n");
    }
    out.push_str("</div>\n");
    Ok(())
}

/// A table, and markup about omitted rows.
type Main = (Table, String);

/// Returns the flows of a run, with both directions of each flow in one row.
fn flows(records: &Records) -> Result<Option<Main>, ReportError> {
    let Some(run) = records.runs.first() else { return Ok(None) };
    let flows = read_flows(&run.folder, MOST_DIRECTIONS)?;
    let same = |a: &FlowRow, b: &FlowRow| stem(&a.flow) == stem(&b.flow);
    let pairs: Vec<&[FlowRow]> = flows.rows.chunk_by(same).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let has_goodput = flows.rows.iter().any(|row| row.goodput_bps.is_some());
    let headings = vec![
        Heading::text("Flow"),
        Heading::text("From → to"),
        Heading::text("Transport"),
        Heading::number(if has_goodput { "Goodput" } else { "Throughput" }),
        Heading::number("Mean delay"),
        Heading::number("Lost"),
        Heading::number("Completion"),
        Heading::number("Throughput"),
        Heading::number("Lost"),
    ];
    let shown = |value: Option<f64>, unit: &str| {
        Field::Number(value.map_or_else(|| "–".to_owned(), |value| quantity(value, unit)))
    };
    let body = pairs.iter().map(|pair| {
        let main = &pair[0];
        let transport = [main.protocol.as_str(), main.congestion.as_str()];
        let transport = transport.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let speed = if has_goodput { main.goodput_bps } else { main.throughput_bps() };
        let mut fields = vec![
            Field::Text(stem(&main.flow).to_owned()),
            Field::Markup(format!(
                "<span class=\"whole\">{} → {}</span>",
                escape(&main.source),
                escape(&main.destination)
            )),
            Field::Text(transport),
            Field::Number(speed.map_or_else(|| "–".to_owned(), rate)),
            shown(main.mean_delay_s(), "s"),
            Field::Number(exact(main.lost_packets as f64, 6)),
            shown(main.completion_s.map(fullpipe_units::Duration::as_secs_f64), "s"),
        ];
        let other = pair.get(1);
        fields.extend([
            Field::Number(other.and_then(FlowRow::throughput_bps).map_or_else(|| "–".to_owned(), rate)),
            Field::Number(other.map_or_else(|| "–".to_owned(), |other| exact(other.lost_packets as f64, 6))),
        ]);
        fields
    });
    let groups = vec![(None, body.collect())];
    let spans = vec![(String::new(), 3), ("main direction".to_owned(), 4), ("opposite direction".to_owned(), 2)];
    let caption = "Flows; packets lost are those dropped in the network".to_owned();
    let mut table = Table { caption, keys: 1, headings, spans, groups };
    table.drop_empty_columns();
    let more = flows.total.saturating_sub(flows.rows.len());
    let link = "<a href=\"#results\">Results</a>";
    let more = match more {
        0 => format!("{link}: all columns of both directions, application metrics, links."),
        more => format!("{} more in {link}.", count(more, "direction")),
    };
    Ok(Some((table, more)))
}

/// Returns the name of a flow without the suffix for its direction.
fn stem(flow: &str) -> &str {
    flow.strip_suffix(REVERSE).unwrap_or(flow)
}

/// Formats a quantity with the prefix for its own size: "51.04 ms".
fn quantity(value: f64, unit: &str) -> String {
    let unit = crate::unit::Unit::new(unit).scale_for(value);
    unit.with_unit(&significant(unit.value(value), 4))
}

/// Returns the main table of a study.
fn of_study(records: &Records, figure: Option<&RenderedPlot>) -> Option<Main> {
    let claims = records.claims();
    if !claims.is_empty() {
        return Some(of_claims(records, &claims));
    }
    let published: Vec<&SummaryRow> = records.summary.iter().filter(|row| row.published.is_some()).collect();
    if !published.is_empty() {
        return Some(of_values(records, &published, "published", "Published and measured values"));
    }
    // The metric of the main figure, or the first metric.
    let metrics = || records.summary.iter().map(|row| row.metric.as_str());
    let plot = records
        .study
        .plot
        .iter()
        .find(|plot| figure.is_some_and(|figure| figure.name == crate::markup::slug(&plot.name)));
    let named = plot.and_then(|plot| plot.y.as_deref()).filter(|y| metrics().any(|metric| metric == *y));
    let metric = named.or_else(|| metrics().next())?;
    let of_metric = |row: &&SummaryRow| row.metric == metric && row.mean.is_some();
    let rows: Vec<&SummaryRow> = records.summary.iter().filter(of_metric).collect();
    let caption = word_for(records, metric);
    (!rows.is_empty()).then(|| of_values(records, &rows, "results", &caption))
}

/// Returns the claims with their verdicts: first those that do not hold, then those that the runs do not decide.
fn of_claims(records: &Records, claims: &[&SummaryRow]) -> Main {
    let urgency = |row: &SummaryRow| match row.verdict {
        Some(Verdict::Refuted | Verdict::Differs | Verdict::Untrusted) => 0,
        Some(Verdict::Explained) => 1,
        Some(Verdict::Match) => 2,
        Some(Verdict::Undecided) => 3,
        None => 4,
    };
    let mut sorted = claims.to_vec();
    sorted.sort_by_key(|row| urgency(row));
    let body = sorted.iter().take(MOST_ROWS).map(|row| {
        let name = row.claim().unwrap_or_default();
        let declared = records.study.claim.iter().find(|claim| claim.name == name);
        let text = declared.map_or_else(|| name.replace(['_', '-'], " "), |claim| claim.text.clone());
        let verdict = row.verdict.map_or(Field::Text(NO_VERDICT.to_owned()), |v| Field::Markup(verdict(v)));
        vec![Field::Markup(markdown(&cut(&text))), verdict]
    });
    let table = Table::of_rows("Claims", 1, vec![Heading::long("Claim"), Heading::text("Verdict")], body);
    (table, more(claims.len(), "claims", "claim"))
}

/// Returns a text, shortened at a word boundary if it is long.
fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST_CLAIM {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST_CLAIM).collect();
    // A cut within `code` would leave an unmatched mark.
    let start =
        if start.matches('`').count() % 2 == 1 { start.rsplit_once('`').map_or("", |(s, _)| s) } else { &start };
    format!("{}…", start.rsplit_once(' ').map_or(start, |(start, _)| start))
}

/// Returns the values at points, with published values if there are any.
fn of_values(records: &Records, rows: &[&SummaryRow], section: &str, caption: &str) -> Main {
    let axes = varying(rows.iter().map(|row| &row.point));
    let metrics = crate::input::distinct(rows.iter().map(|row| row.metric.as_str()));
    let mut headings: Vec<Heading> = axes.iter().map(|axis| axis_heading(records, axis, rows)).collect();
    headings.push(Heading::text("Metric"));
    headings.extend([Heading::number("Published"), Heading::number("Measured"), Heading::text("Verdict")]);
    let mut table = Table { caption: caption.to_owned(), keys: axes.len(), headings, ..Table::default() };
    let body = rows.iter().take(MOST_ROWS).map(|row| {
        let of_metric = rows.iter().filter(|other| other.metric == row.metric);
        let largest = of_metric.flat_map(|r| [r.mean, r.published]).flatten().fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = unit_of(records, row).scale_for(largest);
        let mut fields: Vec<Field> = axes.iter().map(|axis| axis_field(row, axis)).collect();
        let metric = if metrics.len() > 1 { word_for(records, &row.metric) } else { String::new() };
        let measured = row.mean.map_or_else(String::new, |mean| {
            let (mean, half) = mean_and_interval(unit.value(mean), row.ci95.map(|half| unit.value(half)));
            unit.with_unit(&half.map_or(mean.clone(), |half| format!("{mean} ± {half}")))
        });
        let published = row.published.map_or_else(String::new, |v| unit.with_unit(&trimmed(unit.value(v), 6)));
        fields.extend([
            Field::Text(metric),
            Field::Number(published),
            Field::Number(measured),
            row.verdict.map_or(Field::Text(String::new()), |v| Field::Markup(verdict(v))),
        ]);
        fields
    });
    table.groups.push((None, body.collect()));
    table.drop_empty_columns();
    (table, more(rows.len(), section, "row"))
}

/// Returns a reference to the section with the omitted rows.
fn more(rows: usize, section: &str, what: &str) -> String {
    match rows.saturating_sub(MOST_ROWS) {
        0 if what == "claim" => format!("<a href=\"#{section}\">Tests, sources and notes</a>"),
        0 => format!("<a href=\"#{section}\">All columns</a>"),
        more => format!("<a href=\"#{section}\">{}</a>", count(more, &format!("more {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_claim_is_cut_at_a_word_and_outside_of_code() {
        assert_eq!(cut("short"), "short");
        let long = format!("{} `queue_delay_s and more words", "word ".repeat(28).trim());
        assert!(cut(&long).ends_with("word…"), "{}", cut(&long));
        assert!(!cut(&long).contains('`'));
    }
}
