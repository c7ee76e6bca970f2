//! Prints the flows of a run as a table: both directions of each flow, with the main direction first.

use crate::exit::Failure;
use crate::output;
use fullpipe::archive::{FLOWS, FlowRow, Results};
use fullpipe::study::Study;
use fullpipe::study::study::SeedSource;
use fullpipe::units::{Duration, math};
use std::path::Path;

/// The maximum number of printed rows; the file contains all.
const MOST_ROWS: usize = 40;

/// A column: heading, whether it contains numbers, and the cell of a row.
type Shown = (&'static str, bool, fn(&FlowRow) -> String);

const SHOWN: [Shown; 10] = [
    ("flow", false, |row| row.flow.clone()),
    ("from", false, |row| row.source.clone()),
    ("to", false, |row| row.destination.clone()),
    ("direction", false, |row| if row.is_main() { "main" } else { "opposite" }.to_owned()),
    ("goodput", true, |row| quantity(row.goodput_bps, "bit/s")),
    ("throughput", true, |row| quantity(row.throughput_bps(), "bit/s")),
    ("mean delay", true, |row| quantity(row.mean_delay_s(), "s")),
    ("sent", true, |row| row.tx_packets.to_string()),
    ("lost", true, |row| row.lost_packets.to_string()),
    ("completion", true, |row| quantity(row.completion_s.map(Duration::as_secs_f64), "s")),
];

/// Returns the table of a single run; `None` for a study with several runs.
pub(crate) fn of_single_run(study: &Study, folder: &Path) -> Result<Option<String>, Failure> {
    if !matches!(study.seeds, SeedSource::Fixed(_)) {
        return Ok(None);
    }
    let unreadable = |error: fullpipe::archive::RecordError| Failure::machine(error.to_string());
    let results = Results::read(&folder.join(Results::FILE)).map_err(unreadable)?;
    let Some(run) = results.rows.first() else { return Ok(None) };
    let file = folder.join("runs").join(&run.key).join(FLOWS.file);
    let mut reader = FLOWS.open(&file).map_err(unreadable)?;
    let (mut rows, mut total, mut row) = (Vec::new(), 0, FlowRow::default());
    while reader.read_next(&mut row).map_err(unreadable)? {
        total += 1;
        if rows.len() < MOST_ROWS {
            rows.push(row.clone());
        }
    }
    Ok((total > 0).then(|| table(rows, total)))
}

fn table(mut rows: Vec<FlowRow>, total: usize) -> String {
    FlowRow::sort_main_first(&mut rows);
    let mut cells = vec![SHOWN.map(|(heading, ..)| heading.to_owned()).to_vec()];
    cells.extend(rows.iter().map(|row| SHOWN.map(|(_, _, cell)| cell(row)).to_vec()));
    let mut text = output::aligned(&cells, &SHOWN.map(|(_, is_numeric, _)| is_numeric));
    if total > rows.len() {
        text += &format!("and {} more in {}\n", total - rows.len(), FLOWS.file);
    }
    text
}

/// Returns a value in its unit with four significant digits and a suitable prefix; empty without a value.
fn quantity(value: Option<f64>, unit: &str) -> String {
    const PREFIXES: [(&str, f64); 7] =
        [("n", 1e9), ("u", 1e6), ("m", 1e3), ("", 1.0), ("k", 1e-3), ("M", 1e-6), ("G", 1e-9)];
    let Some(value) = value else { return String::new() };
    let thousands = if value == 0.0 { 0 } else { (math::log10(value.abs()) / 3.0).floor().clamp(-3.0, 3.0) as i32 };
    let (prefix, factor) = PREFIXES[(thousands + 3) as usize];
    let scaled = value * factor;
    let before = if scaled.abs() < 1.0 { 1 } else { math::log10(scaled.abs()).floor() as i32 + 1 };
    let decimals = (4 - before).clamp(0, 3) as usize;
    format!("{scaled:.decimals$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_four_digits_and_a_prefix() {
        let cases = [
            (740.0, "bit/s", "740.0 bit/s"),
            (9_437_184.0, "bit/s", "9.437 Mbit/s"),
            (0.0471, "s", "47.10 ms"),
            (12.5, "s", "12.50 s"),
            (0.0, "s", "0.000 s"),
            (123_456.0, "s", "123.5 ks"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(quantity(Some(value), unit), expected);
        }
        assert_eq!(quantity(None, "s"), "");
    }

    #[test]
    fn main_direction_is_the_first_row_of_a_flow() {
        let row = |flow: &str, main_direction| FlowRow { flow: flow.to_owned(), main_direction, ..FlowRow::default() };
        let rows = vec![row("a", 1), row("a.reverse", 0), row("b", 0), row("b.reverse", 1)];
        let text = table(rows, 6);
        let first: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(first, ["flow", "a", "a.reverse", "b.reverse", "b", "and"]);
        assert!(text.ends_with("and 2 more in flows.csv\n"), "{text}");
    }
}
