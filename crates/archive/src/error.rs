//! Errors when a record is read: the file cannot be read, or its content does not match the declaration.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why a record cannot be read. The message contains the file, the line if it is known, what was found and
/// what was expected.
#[derive(Debug)]
pub enum RecordError {
    /// The file cannot be read.
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The content of the file is invalid.
    Invalid {
        /// The file.
        file: PathBuf,
        /// Line, from 1; `None` if it is unknown.
        line: Option<u64>,
        /// What was found and what was expected, as a clause without a full stop.
        problem: String,
    },
}

impl RecordError {
    /// Creates the error for a file that cannot be read.
    pub fn read(file: &Path, cause: std::io::Error) -> Self {
        RecordError::Read { file: file.to_path_buf(), cause }
    }

    /// Creates the error for a file with invalid content. `line` is `None` if the line is unknown.
    pub fn invalid(file: &Path, line: Option<u64>, problem: impl Into<String>) -> Self {
        RecordError::Invalid { file: file.to_path_buf(), line, problem: problem.into() }
    }

    /// Converts an error of the CSV reader.
    pub(crate) fn of_csv(file: &Path, error: csv::Error) -> Self {
        let line = error.position().map(csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Io(cause) => RecordError::read(file, cause),
            csv::ErrorKind::Utf8 { pos, .. } => {
                RecordError::invalid(file, pos.map(|pos| pos.line()).or(line), "is not UTF-8 text")
            }
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => RecordError::invalid(
                file,
                pos.map(|pos| pos.line()).or(line),
                format!("expected {expected_len} fields, found {len}"),
            ),
            _ => RecordError::invalid(file, line, "is not a readable CSV file"),
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Read { file, cause } => write!(formatter, "cannot read {}: {cause}", file.display()),
            RecordError::Invalid { file, line: None, problem } => write!(formatter, "{}: {problem}", file.display()),
            RecordError::Invalid { file, line: Some(line), problem } => {
                write!(formatter, "{}: line {line}: {problem}", file.display())
            }
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Read { cause, .. } => Some(cause),
            RecordError::Invalid { .. } => None,
        }
    }
}

/// Returns the first 40 characters of a text, for messages.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}
