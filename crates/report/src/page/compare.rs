//! The section with the differences from another folder of records, with paired intervals.

use crate::compare::{Comparison, Difference};
use crate::input::distinct;
use crate::markup::escape;
use crate::numbers::{exact, fixed, mean_and_interval, signed_percent};
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{shown, varying};
use crate::unit::{Unit, words};
use fullpipe_archive::COMPARISON;
use std::cmp::Ordering;
use std::fmt::Write;

/// The maximum number of rows; the file contains all rows.
const MOST_ROWS: usize = 500;
/// Significant digits of a value without an interval.
const DIGITS: usize = 4;

/// Returns the heading of the section, which names the two folders.
pub(crate) fn heading(comparison: &Comparison) -> String {
    format!("{} compared with {}", comparison.here.display(), comparison.other.display())
}

/// Returns the section of the page.
pub(crate) fn section(comparison: &Comparison) -> String {
    let differences = &comparison.differences;
    let mut out = format!(
        "<p>“Here” is <code>{}</code>, “there” is <code>{}</code>; a difference is here minus there. Runs with the same point \
         and seed are pairs.",
        escape(&comparison.here.display().to_string()),
        escape(&comparison.other.display().to_string())
    );
    let with_interval = differences.iter().filter(|d| d.ci95.is_some()).count();
    if with_interval > 0 {
        out.push_str(" “±” is the half width of the 95 % interval of the mean difference over pairs (Student’s t).");
    }
    if with_interval > 1 {
        let found = differences.iter().filter(|d| d.direction().is_some()).count();
        let _ = write!(
            out,
            " {found} of {with_interval} intervals exclude zero; with no true difference about one in twenty would."
        );
    }
    out.push_str("</p>\n");
    for note in comparison.notes() {
        let _ = writeln!(out, "<p>{}</p>", escape(&note));
    }
    if !differences.is_empty() {
        table(differences).write(&mut out);
        let _ = writeln!(out, "<p class=\"soft\">All numbers: <code>{}</code>.</p>", COMPARISON.file);
    }
    out
}

fn table(differences: &[Difference]) -> Table {
    let axes = varying(differences.iter().map(|difference| &difference.point));
    let mut headings: Vec<Heading> = axes.iter().map(|axis| Heading::text(words(axis))).collect();
    let of_flows = differences.iter().any(|difference| difference.flow.is_some());
    let keys = axes.len() + usize::from(of_flows);
    if of_flows {
        headings.push(Heading::text("Flow"));
    }
    headings.extend(["Here", "There", "Difference"].map(Heading::number));
    headings.push(Heading::text("Interval"));
    headings.extend(["Relative", "Pairs"].map(Heading::number));
    let left_out = differences.len().saturating_sub(MOST_ROWS);
    // A number that all rows share is stated in the caption.
    let pairs = distinct(differences.iter().map(|difference| difference.pairs));
    let shared = match pairs.as_slice() {
        [1] => "; one pair, so there are no intervals".to_owned(),
        [n] => format!("; {n} pairs each"),
        _ => String::new(),
    };
    let caption = match left_out {
        0 => format!("Differences from the other folder{shared}"),
        _ => format!("Differences from the other folder{shared}; the first {MOST_ROWS} of {} rows", differences.len()),
    };
    let mut table = Table { caption, keys, headings, ..Table::default() };
    let shown_rows = &differences[..differences.len().min(MOST_ROWS)];
    let is_flow = |row: &Difference| row.flow.is_some();
    for (metric, flows) in distinct(shown_rows.iter().map(|row| (row.metric.as_str(), is_flow(row)))) {
        let rows: Vec<&Difference> =
            shown_rows.iter().filter(|row| row.metric == metric && is_flow(row) == flows).collect();
        let unit = rows.iter().map(|row| row.unit.as_str()).find(|unit| !unit.is_empty());
        let unit = unit.map_or_else(|| Unit::of_metric(metric), Unit::new);
        let largest = rows.iter().flat_map(|row| [row.mean, row.other_mean]).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = unit.scale_for(largest);
        let body = rows.iter().map(|row| {
            let mut fields: Vec<Field> =
                axes.iter().map(|axis| Field::Text(row.point.get(axis).map_or_else(String::new, shown))).collect();
            if of_flows {
                fields.push(Field::Text(row.flow.clone().unwrap_or_else(|| "all flows".to_owned())));
            }
            let mean = row.difference;
            let half = row.ci95.filter(|half| *half > 0.0);
            let (number, half) = match half {
                Some(half) => mean_and_interval(unit.value(mean), Some(unit.value(half))),
                None => (beside(unit.value(mean), &[unit.value(row.mean), unit.value(row.other_mean)]), None),
            };
            let sign = if mean > 0.0 && !number.starts_with('≈') { "+" } else { "" };
            let difference = half.map_or_else(|| format!("{sign}{number}"), |half| format!("{sign}{number} ± {half}"));
            let outcome = match (row.pairs, row.direction(), mean == 0.0) {
                (1, ..) if pairs.len() == 1 => "",
                (1, _, false) => "none: one pair",
                (_, Some(Ordering::Greater), _) => "higher",
                (_, Some(_), _) => "lower",
                (_, None, true) => "no difference",
                (_, None, false) => "includes zero",
            };
            let outcome = match row.direction() {
                Some(_) => Field::Markup(format!("<strong>{outcome}</strong>")),
                None => Field::Text(outcome.to_owned()),
            };
            fields.extend([
                Field::Number(exact(unit.value(row.mean), DIGITS)),
                Field::Number(exact(unit.value(row.other_mean), DIGITS)),
                Field::Number(difference),
                outcome,
                Field::Number(row.relative().map_or_else(|| "–".to_owned(), signed_percent)),
                Field::Number(if pairs.len() == 1 { String::new() } else { row.pairs.to_string() }),
            ]);
            fields
        });
        let body = body.collect();
        let words = words(metric);
        let words = match rows.iter().find_map(|row| row.total) {
            _ if flows => format!("{words} of each flow"),
            Some(total) => format!("{words}, {total}"),
            None => words,
        };
        table.groups.push((Some(unit.heading(&words)), body));
    }
    table.drop_empty_columns();
    table
}

/// Formats a difference without an interval, with as many decimals as the values next to it.
fn beside(difference: f64, values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(|value| exact(*value, DIGITS)).collect();
    if texts.iter().any(|text| text.contains('×')) {
        return exact(difference, DIGITS);
    }
    let decimals = |text: &String| text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let text = fixed(difference, texts.iter().map(decimals).max().unwrap_or(0));
    let is_zero = !text.bytes().any(|b| (b'1'..=b'9').contains(&b));
    match is_zero {
        true if difference == 0.0 => "0".to_owned(),
        true => "≈ 0".to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_has_the_decimals_of_the_values_beside_it() {
        for (values, expected) in [
            ([0.029_148, 0.029_125], "0.00002"),
            ([9.323_732, 9.328_509], "−0.005"),
            ([119.538, 29.8844], "89.65"),
            ([54_971.0, 50_978.0], "3993"),
            ([7.25, 7.25], "0"),
            ([9.324, 9.324_000_1], "≈ 0"),
        ] {
            assert_eq!(beside(values[0] - values[1], &values), expected, "{values:?}");
        }
    }
}
