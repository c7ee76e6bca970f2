//! Writes lines to standard output and standard error. The reader may close the pipe (`fullpipe list queues | head
//! -1`).

use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::{fmt, process};

/// Prints a line on standard output like `println!`. If the pipe is closed, it ends the command instead of panicking.
macro_rules! print_line {
    ($($argument:tt)*) => { $crate::output::write_line(format_args!($($argument)*)) };
}
pub(crate) use print_line;

/// Writes a line to standard output.
pub(crate) fn write_line(line: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{}", printable(&line.to_string())) {
        cannot_write(&error);
    }
}

/// Returns a text with its control characters escaped, except line feeds and tabs. Names and notes in files can contain
/// control characters, which a terminal would interpret.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Writes the output of a program to standard output without changes.
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub(crate) fn copy(bytes: &[u8]) {
    if let Err(error) = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        cannot_write(&error);
    }
}

/// Writes a line to standard error. If an error other than a closed pipe occurs, the line is lost, because there is no
/// other output for it.
pub(crate) fn write_error_line(line: fmt::Arguments<'_>) {
    match writeln!(io::stderr(), "{}", printable(&line.to_string())) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => end_by_closed_pipe(),
        _ => {}
    }
}

/// Writes a line of progress to standard error. If the pipe is closed, the work continues: its results are in files and
/// on standard output.
pub(crate) fn write_progress(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Ends the command after an error of standard output.
pub(crate) fn cannot_write(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        end_by_closed_pipe();
    }
    eprintln!("fullpipe: standard output: {error}");
    process::exit(1);
}

/// Ends the command like other programs that write to a closed pipe: by SIGPIPE, which a shell shows as status 141.
/// The runtime of Rust ignores this signal, so the write returns an error and this function raises the signal.
fn end_by_closed_pipe() -> ! {
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    process::exit(141);
}

/// Prints a value as JSON.
pub(crate) fn json(value: &Value) {
    print_line!("{value:#}");
}

/// Formats rows below a row of headings as aligned columns; columns without content are omitted.
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
