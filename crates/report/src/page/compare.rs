//! The section with the differences from another folder of records, with paired intervals.

use crate::compare::{Comparison, Difference};
use crate::input::distinct;
use crate::markup::escape;
use crate::numbers::{exact, mean_and_interval, signed_percent};
use crate::page::count;
use crate::page::table::{Field, Heading, Table};
use crate::plot::gather::{shown, varying};
use crate::unit::{Unit, words};
use std::cmp::Ordering;
use std::fmt::Write;

/// The maximum number of rows; the file contains all.
const MOST_ROWS: usize = 500;
/// Significant digits of a value without an interval.
const DIGITS: usize = 4;

/// The section of the page.
pub(crate) fn section(comparison: &Comparison) -> String {
    let Comparison { other, differences, unpaired, unpaired_there, doubtful } = comparison;
    let mut out = format!(
        "<p>This folder compared with <code>{}</code>: runs with the same point and seed are pairs. “±” is the half width of \
         the 95 % interval of the mean difference over pairs (Student’s t).",
        escape(&other.display().to_string())
    );
    let with_interval = differences.iter().filter(|d| d.ci95.is_some()).count();
    if with_interval > 1 {
        let found = differences.iter().filter(|d| d.direction().is_some()).count();
        let _ = write!(
            out,
            " {found} of {with_interval} intervals exclude zero; without any difference about one in twenty would."
        );
    }
    if *unpaired + *unpaired_there > 0 {
        let _ = write!(
            out,
            " Without a partner: {} here, {} there.",
            count(*unpaired, "run"),
            count(*unpaired_there, "run")
        );
    }
    if *doubtful > 0 {
        let _ = write!(out, " Left out because a run is not to be trusted: {}.", count(*doubtful, "pair"));
    }
    let _ = writeln!(out, " All numbers: <code>{}</code>.</p>", Comparison::FILE);
    table(differences).write(&mut out);
    out
}

fn table(differences: &[Difference]) -> Table {
    let axes = varying(differences.iter().map(|difference| &difference.point));
    let mut headings: Vec<Heading> = axes.iter().map(|axis| Heading::text(words(axis))).collect();
    headings.extend(["This folder", "The other", "Difference", "Relative", "Pairs"].map(Heading::number));
    headings.push(Heading::text("Interval"));
    let left_out = differences.len().saturating_sub(MOST_ROWS);
    let caption = match left_out {
        0 => "Differences from the other folder".to_owned(),
        _ => format!("Differences from the other folder; the first {MOST_ROWS} of {} rows", differences.len()),
    };
    let mut table = Table { caption, keys: axes.len(), headings, ..Table::default() };
    let shown_rows = &differences[..differences.len().min(MOST_ROWS)];
    for metric in distinct(shown_rows.iter().map(|difference| difference.metric.as_str())) {
        let rows: Vec<&Difference> = shown_rows.iter().filter(|difference| difference.metric == metric).collect();
        let unit = rows.iter().map(|row| row.unit.as_str()).find(|unit| !unit.is_empty());
        let unit = unit.map_or_else(|| Unit::of_metric(metric), Unit::new);
        let largest = rows.iter().flat_map(|row| [row.mean, row.other_mean]).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = unit.scale_for(largest);
        let body = rows.iter().map(|row| {
            let axes = axes.iter().map(|axis| Field::Text(row.point.get(axis).map_or_else(String::new, shown)));
            let mean = row.difference;
            let half = row.ci95.filter(|half| *half > 0.0);
            let (number, half) = match half {
                Some(half) => mean_and_interval(unit.value(mean), Some(unit.value(half))),
                None => (exact(unit.value(mean), DIGITS), None),
            };
            let sign = if mean > 0.0 { "+" } else { "" };
            let difference = half.map_or_else(|| format!("{sign}{number}"), |half| format!("{sign}{number} ± {half}"));
            let outcome = match (row.pairs, row.direction(), mean == 0.0) {
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
            axes.chain([
                Field::Number(exact(unit.value(row.mean), DIGITS)),
                Field::Number(exact(unit.value(row.other_mean), DIGITS)),
                Field::Number(difference),
                Field::Number(row.relative().map_or_else(|| "–".to_owned(), signed_percent)),
                Field::Number(row.pairs.to_string()),
                outcome,
            ])
            .collect()
        });
        let body = body.collect();
        table.groups.push((Some(unit.heading(&words(metric))), body));
    }
    table
}
