//! The section with the expectations of a run or of a study, from `expectations.csv`.

use crate::input::Records;
use crate::numbers::significant;
use crate::page::table::{Field, Heading, Table};
use fullpipe_archive::ExpectationRow;

/// Significant digits of a value or bound.
const DIGITS: usize = 6;

/// Returns the section; empty without expectations.
pub(crate) fn section(records: &Records) -> String {
    let mut out = String::new();
    if records.expectations.is_empty() {
        return out;
    }
    let headings = vec![
        Heading::text("Expectation"),
        Heading::text("Flow or point"),
        Heading::number("Value"),
        Heading::number("Minimum"),
        Heading::number("Maximum"),
        Heading::text("Unit"),
        Heading::text("Outcome"),
        Heading::long("Note"),
    ];
    let row = |row: &ExpectationRow| {
        let number =
            |value: Option<f64>| Field::Number(value.map_or_else(String::new, |value| significant(value, DIGITS)));
        let outcome = if row.has_failed() { Field::Bad(row.outcome.clone()) } else { Field::Text(row.outcome.clone()) };
        vec![
            Field::Text(row.expectation.clone()),
            Field::Text(row.subject.clone()),
            number(row.value),
            number(row.min),
            number(row.max),
            Field::Text(row.unit.clone()),
            outcome,
            Field::Text(row.note.clone()),
        ]
    };
    let failed = records.expectations.iter().filter(|row| row.has_failed()).count();
    let caption = format!("Bounds on metrics ([[expect]]): {failed} of {} failed", records.expectations.len());
    Table::of_rows(caption, 1, headings, records.expectations.iter().map(row)).write(&mut out);
    out
}
