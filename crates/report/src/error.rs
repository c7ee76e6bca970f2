//! Errors that occur when a report is built: a record is missing, unreadable or does not match its declaration. Every
//! error contains the file name and what was expected, because the user may have only the folder.

use fullpipe_archive::RecordError;
use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why a report could not be written.
#[derive(Debug)]
pub enum ReportError {
    /// A record cannot be read or is invalid.
    Record(RecordError),
    /// A file of the report cannot be written.
    Write {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A plot cannot be converted to another format.
    Plot {
        /// The file to which the plot is converted.
        file: PathBuf,
        /// The reason.
        why: String,
    },
}

impl ReportError {
    pub(crate) fn read(file: &Path, cause: std::io::Error) -> Self {
        Self::Record(RecordError::read(file, cause))
    }

    pub(crate) fn write(file: &Path, cause: std::io::Error) -> Self {
        Self::Write { file: file.to_path_buf(), cause }
    }

    pub(crate) fn plot(file: &Path, why: impl Into<String>) -> Self {
        Self::Plot { file: file.to_path_buf(), why: why.into() }
    }

    pub(crate) fn corrupt(file: &Path, problem: impl Into<String>) -> Self {
        Self::Record(RecordError::invalid(file, None, problem))
    }
}

impl From<RecordError> for ReportError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(error) => error.fmt(f),
            Self::Write { file, cause } => write!(f, "cannot write {}: {cause}", file.display()),
            Self::Plot { file, why } => write!(f, "cannot create {}: {why}", file.display()),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Record(error) => error.source(),
            Self::Write { cause, .. } => Some(cause),
            Self::Plot { .. } => None,
        }
    }
}
