//! The errors that end a study, grouped by who must act.

use crate::files::Refused;
use fullpipe_scenario::schema::Errors;
use std::fmt;

/// An error that ends a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StudyError {
    /// A file is invalid; its author must correct it.
    File(Errors),
    /// The command line or the call is invalid; the caller must correct it.
    Usage(String),
    /// The folder for records has other content, or another process uses it.
    Folder(String),
    /// The machine rejected an operation: disk, permission, memory.
    Machine(String),
    /// The study was interrupted. The finished runs are kept.
    Interrupted {
        /// The number of finished runs.
        finished: usize,
        /// The number of all runs.
        total: usize,
    },
}

impl StudyError {
    /// The exit status of a command that ends with this error: 2 for files, usage and folders, 1 for the machine, 130 for an
    /// interruption.
    pub fn exit_status(&self) -> u8 {
        match self {
            StudyError::File(_) | StudyError::Usage(_) | StudyError::Folder(_) => 2,
            StudyError::Machine(_) => 1,
            StudyError::Interrupted { .. } => 130,
        }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::File(errors) => write!(formatter, "{errors}"),
            StudyError::Usage(message) | StudyError::Folder(message) | StudyError::Machine(message) => {
                formatter.write_str(message)
            }
            StudyError::Interrupted { finished, total } => write!(
                formatter,
                "interrupted: {finished} of {total} runs are finished and stay; the same call goes on from them"
            ),
        }
    }
}

impl std::error::Error for StudyError {}

impl From<Errors> for StudyError {
    fn from(errors: Errors) -> Self {
        StudyError::File(errors)
    }
}

impl From<Refused> for StudyError {
    fn from(refused: Refused) -> Self {
        StudyError::Machine(refused.to_string())
    }
}
