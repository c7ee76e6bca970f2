//! Lines on standard output.

use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::{fmt, process};

/// Prints a line as `println!` does, for a reader that may close the pipe before the end (`fullpipe list queues | head -1`).
macro_rules! print_line {
    ($($argument:tt)*) => { $crate::output::write_line(format_args!($($argument)*)) };
}
pub(crate) use print_line;

/// Writes a line. If nobody reads any more, the command ends here: there is nothing left to do for it.
pub(crate) fn write_line(line: fmt::Arguments<'_>) {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        Err(error) => {
            eprintln!("fullpipe: standard output: {error}");
            process::exit(1);
        }
    }
}

/// Prints a value as JSON.
pub(crate) fn json(value: &Value) {
    print_line!("{value:#}");
}

/// Rows below a row of headings as aligned columns; columns without content are left out.
pub(crate) fn aligned(rows: &[Vec<String>], is_numeric: &[bool]) -> String {
    let used = |column: &usize| rows.iter().skip(1).any(|row| !row[*column].is_empty());
    let used: Vec<usize> = (0..is_numeric.len()).filter(used).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..is_numeric.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |&column: &usize| {
            let (text, width) = (&row[column], widths[column]);
            if is_numeric[column] { format!("{text:>width$}") } else { format!("{text:<width$}") }
        };
        used.iter().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
