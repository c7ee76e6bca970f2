//! What can be wrong with a record: it cannot be read, or it is not what its declaration says.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a record could not be read. The message names the file, the line where one can be named, what was found and what
/// was expected.
#[derive(Debug)]
pub enum RecordError {
    /// The system refused to read the file.
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// The file was read, but is not what it should be.
    Invalid {
        /// The file.
        file: PathBuf,
        /// Line, counted from 1, where one can be named.
        line: Option<u64>,
        /// What was found and what was expected: a clause without a full stop.
        problem: String,
    },
}

impl RecordError {
    /// The system refused to read `file`.
    pub fn read(file: &Path, cause: std::io::Error) -> Self {
        RecordError::Read { file: file.to_path_buf(), cause }
    }

    /// `file` is not what it should be.
    pub fn invalid(file: &Path, line: Option<u64>, problem: impl Into<String>) -> Self {
        RecordError::Invalid { file: file.to_path_buf(), line, problem: problem.into() }
    }

    /// What the CSV reader found wrong.
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

/// The beginning of a text, for messages.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}
