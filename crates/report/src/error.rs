//! What can go wrong while a report is built: a record is missing, unreadable or not what the contract says. Every
//! error names the file and says what was expected, because the person who reads it has only the folder.

use fullpipe_archive::RecordError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why no report could be built.
#[derive(Debug)]
pub enum ReportError {
    /// A record could not be read.
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A record was read but is not what it should be.
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Line, counted from 1, where one can be named.
        line: Option<u64>,
        /// What was found and what was expected, a clause without a full stop.
        problem: String,
    },
    /// The report itself could not be written.
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl ReportError {
    pub(crate) fn read(file: &Path, cause: std::io::Error) -> Self {
        Self::Read { file: file.to_path_buf(), cause }
    }

    pub(crate) fn write(file: &Path, cause: std::io::Error) -> Self {
        Self::Write { file: file.to_path_buf(), cause }
    }

    pub(crate) fn corrupt(file: &Path, problem: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_path_buf(), line: None, problem: problem.into() }
    }
}

impl From<RecordError> for ReportError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Read { file, cause } => Self::Read { file, cause },
            RecordError::Invalid { file, line, problem } => Self::Corrupt { file, line, problem },
        }
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, cause } => write!(f, "cannot read {}: {cause}", file.display()),
            Self::Corrupt { file, line: None, problem } => write!(f, "{}: {problem}", file.display()),
            Self::Corrupt { file, line: Some(line), problem } => {
                write!(f, "{}: line {line}: {problem}", file.display())
            }
            Self::Write { file, cause } => write!(f, "cannot write {}: {cause}", file.display()),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { cause, .. } | Self::Write { cause, .. } => Some(cause),
            Self::Corrupt { .. } => None,
        }
    }
}
