//! The errors that end a study, grouped by the person or system that must act on them.

use crate::files::FileOperationError;
use fullpipe_scenario::schema::Errors;
use std::fmt;

/// An error that ends a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StudyError {
    /// A file is invalid; its author must correct it.
    InvalidFile(Errors),
    /// The command line or the call is invalid; the caller must correct it.
    Usage(String),
    /// The folder for records has other content, or another process uses the folder.
    Folder(String),
    /// An operation of the operating system failed, for example because of a full disk, a missing permission or too
    /// little memory.
    System(String),
    /// The study was interrupted. The finished runs are kept.
    Interrupted {
        /// The number of finished runs.
        finished: usize,
        /// The total number of runs.
        total: usize,
    },
}

impl StudyError {
    /// Returns the exit status of a command that ends with this error: 2 for a file, usage or folder, 1 for the system,
    /// 130 for an interruption.
    pub fn exit_status(&self) -> u8 {
        match self {
            StudyError::InvalidFile(_) | StudyError::Usage(_) | StudyError::Folder(_) => 2,
            StudyError::System(_) => 1,
            StudyError::Interrupted { .. } => 130,
        }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::InvalidFile(errors) => write!(formatter, "{errors}"),
            StudyError::Usage(message) | StudyError::Folder(message) | StudyError::System(message) => {
                formatter.write_str(message)
            }
            StudyError::Interrupted { finished, total } => write!(
                formatter,
                "interrupted: {finished} of {total} runs are finished and kept; the same command runs the others"
            ),
        }
    }
}

impl std::error::Error for StudyError {}

impl From<Errors> for StudyError {
    fn from(errors: Errors) -> Self {
        StudyError::InvalidFile(errors)
    }
}

impl From<FileOperationError> for StudyError {
    fn from(refused: FileOperationError) -> Self {
        StudyError::System(refused.to_string())
    }
}
