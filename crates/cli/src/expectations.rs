//! Prints the expectations of a run or of a study.

use crate::output;
use fullpipe::archive::ExpectationRow;
use fullpipe::units::words::format_quantity;

const HEADINGS: [&str; 7] = ["expectation", "of", "value", "min", "max", "outcome", "note"];

/// Returns the table of all expectations; `None` if there are none.
pub(crate) fn table(rows: &[ExpectationRow]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let cells = |row: &ExpectationRow| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format_quantity(value, &row.unit));
        // The subject is omitted if the expectation contains it.
        let of = if row.expectation.ends_with(&format!(" {}", row.subject)) { "" } else { &row.subject };
        let numbers = [row.value, row.min, row.max].map(number);
        let [value, min, max] = numbers;
        vec![row.expectation.clone(), of.to_owned(), value, min, max, row.outcome.clone(), row.note.clone()]
    };
    let mut lines = vec![HEADINGS.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(cells));
    Some(output::aligned(&lines, &[false, false, true, true, true, false, false]))
}

/// Returns the message for exit status 4.
pub(crate) fn failures(rows: &[ExpectationRow]) -> String {
    /// The maximum number of listed expectations; the table contains all.
    const SHOWN: usize = 20;
    let failed: Vec<&ExpectationRow> = rows.iter().filter(|row| row.has_failed()).collect();
    let line = |row: &&ExpectationRow| {
        let ends_so = row.expectation.ends_with(&format!(" {}", row.subject));
        let of = if ends_so || row.subject.is_empty() { String::new() } else { format!("{}: ", row.subject) };
        format!("\n  {}: {of}{}", row.expectation, row.note)
    };
    let shown: String = failed.iter().take(SHOWN).map(line).collect();
    let more = failed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let of = if rows.len() == 1 {
        "the expectation".to_owned()
    } else {
        format!("{} of {} expectations", failed.len(), rows.len())
    };
    format!("{of} failed:{shown}{more}")
}
