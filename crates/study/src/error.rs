//! Why a study cannot be run to its end, sorted by whose turn it is to act.

use crate::files::Refused;
use fullpipe_scenario::schema::Errors;
use std::fmt;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StudyError {
    /// A file is wrong: its author's turn.
    File(Errors),
    /// The call is wrong: its caller's turn.
    Usage(String),
    /// The folder for records holds something else, or somebody else works in it.
    Folder(String),
    /// The machine refused: disk, permission, memory.
    Machine(String),
    /// It was told to stop; this many of so many runs are finished and stay.
    Interrupted {
        /// Finished runs.
        finished: usize,
        /// All runs.
        total: usize,
    },
}

impl StudyError {
    /// The exit status of a command that ends with this: 2 for files, usage and folders, 1 for the machine, 130 for an
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
