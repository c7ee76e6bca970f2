//! Traces of a link as CSV: rate, delay and loss over time, piecewise constant.
//!
//! The first line is the header: `time_s` and any of `rate_bps` or `rate_mbps`, `delay_s` or `delay_ms`, and `loss`, in any
//! order. Each row applies from its time on. Times count from the first row. An empty field keeps the value of the row
//! before. A last row with only a time ends the trace; otherwise the last row lasts as long as the row before it. After its
//! end the trace repeats. Blank lines and lines that begin with `#` are skipped.

use crate::schema::{MAX_DURATION, MAX_LIST_LENGTH, MAX_RATE, nearest_name};
use fullpipe_units::{Duration, Rate};
use std::fmt;

/// The values of a link from a time on; `None` if the trace has no such column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CsvRow {
    /// Time since the first row.
    pub at: Duration,
    /// Rate, 0 during an outage.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Option<Duration>,
    /// Probability of loss.
    pub loss: Option<f64>,
}

/// A trace; see the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CsvTrace {
    /// The rows; all have the same columns.
    pub rows: Vec<CsvRow>,
    /// Time after which the trace repeats, later than the last row.
    pub period: Duration,
}

/// The reason why a text is not a valid trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvTraceError {
    /// Number of the line, counted from 1.
    pub line: usize,
    /// What was found.
    pub found: String,
    /// What is accepted.
    pub expected: String,
}

impl fmt::Display for CsvTraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.found)
    }
}

/// The quantity in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Delay,
    Loss,
}

/// A column: its name, its quantity, the largest number, and the factor that converts a number to nanoseconds or bit/s.
struct Column {
    name: &'static str,
    quantity: Quantity,
    most: f64,
    factor: f64,
}

const fn column(name: &'static str, quantity: Quantity, most: f64, factor: f64) -> Column {
    Column { name, quantity, most, factor }
}

/// Largest time: enough for times since 1970.
const MAX_TIME_S: f64 = 1e10;
const MAX_BPS: f64 = MAX_RATE.bits_per_second() as f64;

/// The accepted columns.
static COLUMNS: [Column; 6] = [
    column("time_s", Quantity::Time, MAX_TIME_S, 1e9),
    column("rate_bps", Quantity::Rate, MAX_BPS, 1.0),
    column("rate_mbps", Quantity::Rate, MAX_BPS / 1e6, 1e6),
    column("delay_s", Quantity::Delay, 3600.0, 1e9),
    column("delay_ms", Quantity::Delay, 3_600_000.0, 1e6),
    column("loss", Quantity::Loss, 1.0, 1.0),
];

/// The header that an error suggests.
pub(super) const HEADER: &str = "a header with time_s and any of rate_bps or rate_mbps, delay_s or delay_ms, and loss, such as \"time_s,rate_mbps,delay_ms\"";

/// Longest text of a field that an error quotes.
const MAX_QUOTED: usize = 40;

fn quoted(text: &str) -> String {
    let start: String = text.chars().take(MAX_QUOTED).collect();
    format!("{start:?}{}", if start.len() < text.len() { "..." } else { "" })
}

impl CsvTrace {
    /// Reads a trace.
    pub(super) fn parse(text: &str) -> Result<CsvTrace, CsvTraceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (line, header) = lines.next().ok_or_else(|| CsvTraceError {
            line: 1,
            found: "the trace has no header".into(),
            expected: HEADER.into(),
        })?;
        let columns = columns(line, header)?;
        let mut rows: Vec<CsvRow> = Vec::new();
        let mut first_time = Duration::ZERO;
        let (mut last_line, mut end) = (line, None);
        for (line, text) in lines {
            if let Some((at, line)) = end {
                return Err(CsvTraceError {
                    line,
                    found: format!("the row at {at} has only a time, but is not the last row"),
                    expected: "values in every row but the last".into(),
                });
            }
            let (time, row, is_end) = read_row(line, text, &columns, rows.last())?;
            let time = match rows.last() {
                None => {
                    first_time = time;
                    Duration::ZERO
                }
                Some(before) => {
                    let expected = || format!("times in ascending order, at most {MAX_DURATION} after the first");
                    if time < first_time {
                        let found = format!("time_s is {} before the first row", first_time - time);
                        return Err(CsvTraceError { line, found, expected: expected() });
                    }
                    let since = time - first_time;
                    if since <= before.at || since > MAX_DURATION {
                        let found =
                            format!("time_s is {since} after the first row, and {} in the row before", before.at);
                        return Err(CsvTraceError { line, found, expected: expected() });
                    }
                    since
                }
            };
            last_line = line;
            if is_end {
                end = Some((time, line));
                continue;
            }
            if rows.len() == MAX_LIST_LENGTH {
                let found = format!("the trace has more than {MAX_LIST_LENGTH} rows");
                return Err(CsvTraceError { line, found, expected: format!("at most {MAX_LIST_LENGTH} rows") });
            }
            rows.push(CsvRow { at: time, ..row });
        }
        let period = match (&rows[..], end) {
            (_, Some((at, _))) => Some(at),
            ([.., before, last], None) => Some(last.at + (last.at - before.at)),
            _ => None,
        };
        match period.filter(|period| *period <= MAX_DURATION) {
            Some(period) => Ok(CsvTrace { rows, period }),
            None => Err(CsvTraceError {
                line: last_line,
                found: match period {
                    Some(period) => format!("the trace ends at {period}"),
                    None => format!("the trace has {} row{}", rows.len(), if rows.len() == 1 { "" } else { "s" }),
                },
                expected: match period {
                    Some(_) => format!("an end at most {MAX_DURATION} after the first row"),
                    None => "at least two rows; the second can have only a time, the end of the trace".into(),
                },
            }),
        }
    }

    /// Returns the mean rate over a period, in whole bits per second (at least 1); `None` without a column of rates.
    pub(super) fn mean_rate(&self) -> Option<Rate> {
        let ends = self.rows.iter().skip(1).map(|row| row.at).chain([self.period]);
        let bits = self.rows.iter().zip(ends).try_fold(0u128, |bits, (row, end)| {
            Some(bits + u128::from(row.rate?.bits_per_second()) * u128::from((end - row.at).as_nanos()))
        })?;
        Some(Rate::from_bits_per_second(((bits / u128::from(self.period.as_nanos().max(1))) as u64).max(1)))
    }
}

/// Reads the header.
fn columns(line: usize, header: &str) -> Result<Vec<&'static Column>, CsvTraceError> {
    let error = |found: String| CsvTraceError { line, found, expected: HEADER.into() };
    let mut columns: Vec<&'static Column> = Vec::new();
    for name in header.split(',').map(str::trim) {
        let Some(column) = COLUMNS.iter().find(|column| column.name == name) else {
            let near = nearest_name(name, COLUMNS.iter().map(|column| column.name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Err(error(format!("unknown column {}{near}", quoted(name))));
        };
        if let Some(other) = columns.iter().find(|other| other.quantity == column.quantity) {
            return Err(error(format!("the columns {} and {name} state the same quantity", other.name)));
        }
        columns.push(column);
    }
    if columns.iter().all(|column| column.quantity != Quantity::Time) {
        return Err(error("the column time_s is missing".into()));
    }
    if columns.len() == 1 {
        return Err(error("the header has no column of rates, delays or losses".into()));
    }
    Ok(columns)
}

/// Reads a row: its time, its values, and whether it has only a time. An empty field has the value of the row before.
fn read_row(
    line: usize,
    text: &str,
    columns: &[&Column],
    before: Option<&CsvRow>,
) -> Result<(Duration, CsvRow, bool), CsvTraceError> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let found = format!("{} field{}", fields.len(), if fields.len() == 1 { "" } else { "s" });
        let expected = format!("{} fields: {}", columns.len(), names.join(","));
        return Err(CsvTraceError { line, found, expected });
    }
    let mut row = before.copied().unwrap_or_default();
    let (mut time, mut is_end) = (Duration::ZERO, before.is_some());
    for (column, field) in columns.iter().zip(fields) {
        if field.is_empty() && column.quantity != Quantity::Time && before.is_some() {
            continue;
        }
        let number = field.parse::<f64>().ok().filter(|number| (0.0..=column.most).contains(number));
        let number = number.ok_or_else(|| CsvTraceError {
            line,
            found: format!("{} is {}", column.name, quoted(field)),
            expected: format!("a number from 0 to {}", column.most),
        })?;
        is_end &= column.quantity == Quantity::Time;
        let converted = (number * column.factor).round() as u64;
        match column.quantity {
            Quantity::Time => time = Duration::from_nanos(converted),
            Quantity::Rate => row.rate = Some(Rate::from_bits_per_second(converted)),
            Quantity::Delay => row.delay = Some(Duration::from_nanos(converted)),
            Quantity::Loss => row.loss = Some(number),
        }
    }
    Ok((time, row, is_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(at_ms: u64, bps: u64, delay_us: u64, loss: f64) -> CsvRow {
        CsvRow {
            at: Duration::from_millis(at_ms),
            rate: Some(Rate::from_bits_per_second(bps)),
            delay: Some(Duration::from_micros(delay_us)),
            loss: Some(loss),
        }
    }

    #[test]
    fn rows_have_the_values_of_their_columns_in_any_order() {
        let text = "\u{feff}# synthetic\r\n loss, rate_mbps ,time_s,delay_ms\r\n0.5,1.5,100,20\r\n\r\n,,100.5,0.25\r\n0,0,102,\r\n,,103,\r\n";
        let trace = CsvTrace::parse(text).unwrap();
        let rows = vec![row(0, 1_500_000, 20_000, 0.5), row(500, 1_500_000, 250, 0.5), row(2000, 0, 250, 0.0)];
        assert_eq!(trace, CsvTrace { rows, period: Duration::from_secs(3) });
        // 1.5 Mbit/s for 2 s of 3 s.
        assert_eq!(trace.mean_rate(), Some(Rate::from_bits_per_second(1_000_000)));
        let other_units =
            CsvTrace::parse("time_s,rate_bps,delay_s,loss\n0,15e5,0.02,0.5\n0.5,,0.00025,\n2,0,,0\n3,,,\n");
        assert_eq!(other_units, Ok(trace));
    }

    #[test]
    fn the_last_row_lasts_as_long_as_the_row_before_it() {
        let trace = CsvTrace::parse("time_s,loss\n0,0\n1,0.1\n4,0.2\n").unwrap();
        assert_eq!((trace.period, trace.mean_rate()), (Duration::from_secs(7), None));
        assert_eq!(CsvTrace::parse("time_s,loss\n5,0.5\n6,\n").unwrap().period, Duration::from_secs(1));
    }

    #[test]
    fn errors_state_the_line_what_was_found_and_what_is_accepted() {
        let errors = [
            ("", 1, "the trace has no header", "a header with"),
            ("# only\n\n", 1, "the trace has no header", "a header with"),
            ("time_s,rate_mpbs\n", 1, "unknown column \"rate_mpbs\"; did you mean rate_mbps?", "a header with"),
            ("0,5\n", 1, "unknown column \"0\"", "a header with"),
            ("\nrate_bps,loss\n", 2, "the column time_s is missing", "a header with"),
            ("time_s\n", 1, "the header has no column of rates, delays or losses", "a header with"),
            ("time_s,rate_bps,rate_mbps\n", 1, "the columns rate_bps and rate_mbps state the same", "a header"),
            ("time_s,loss\n0,0\n1\n", 3, "1 field", "2 fields: time_s,loss"),
            ("time_s,loss\n0,1.5\n", 2, "loss is \"1.5\"", "a number from 0 to 1"),
            ("time_s,loss\n0,\n", 2, "loss is \"\"", "a number from 0 to 1"),
            ("time_s,delay_s\n0,-1\n", 2, "delay_s is \"-1\"", "a number from 0 to 3600"),
            ("time_s,rate_mbps\n0,NaN\n", 2, "rate_mbps is \"NaN\"", "a number from 0 to 1000000000"),
            (
                "time_s,loss\n0,0\n0,0\n",
                3,
                "time_s is 0s after the first row, and 0s in the row before",
                "times in asc",
            ),
            ("time_s,loss\n5,0\n4,0\n", 3, "time_s is 1s before the first row", "times in ascending order"),
            ("time_s,loss\n0,0\n2e8,0\n", 3, "time_s is 200000000s after", "times in ascending order"),
            ("time_s,loss\n0,0\n9e7,0\n", 3, "the trace ends at 180000000s", "an end at most 100000000s"),
            ("time_s,loss\n0,0\n", 2, "the trace has 1 row", "at least two rows"),
            ("time_s,loss\n", 1, "the trace has 0 rows", "at least two rows"),
            ("time_s,loss\n0,0\n1,\n2,0\n", 3, "the row at 1s has only a time, but is not the last row", "values"),
        ];
        for (text, line, found, expected) in errors {
            let error = CsvTrace::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error:?}");
            assert!(error.found.starts_with(found), "{text:?}: {error:?}");
            assert!(error.expected.starts_with(expected), "{text:?}: {error:?}");
        }
    }

    proptest! {
        /// Any text is a valid trace, whose rows are in ascending order, or an error with a line of the text.
        #[test]
        fn no_text_causes_a_panic(
            lines in prop::collection::vec("(time_s|rate_bps|loss|delay_ms|#|,|[0-9]{1,3}|1e[0-9]{1,3}|-|\\.| |\\PC){0,6}", 0..8),
            header: bool,
        ) {
            let start = if header { "time_s,rate_mbps,loss\n0,1,0\n" } else { "" };
            let text = format!("{start}{}", lines.join("\n"));
            match CsvTrace::parse(&text) {
                Ok(trace) => {
                    prop_assert!(trace.rows.windows(2).all(|pair| pair[0].at < pair[1].at));
                    prop_assert!(trace.rows.last().is_some_and(|last| last.at < trace.period));
                    trace.mean_rate();
                }
                Err(error) => prop_assert!(error.line <= text.lines().count().max(1), "{:?}", error),
            }
        }

        /// Rows of numbers are read as they were written.
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in prop::collection::vec((1..5000_u64, 0..1_000_000_000_u64, 0..1000_u64), 2..20),
        ) {
            let (mut text, mut at, mut expected) = ("time_s,rate_bps,delay_ms\n".to_owned(), 0, Vec::new());
            for (step, bps, delay) in rows {
                text += &format!("{}.{:03},{bps},{delay}\n", at / 1000, at % 1000);
                expected.push(CsvRow { loss: None, ..row(at, bps, delay * 1000, 0.0) });
                at += step;
            }
            prop_assert_eq!(CsvTrace::parse(&text).unwrap().rows, expected);
        }
    }
}
