//! Exit status of the command, and the sentence that explains it.

use std::fmt;

/// Why the command ends with something other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 1: a run failed or the machine refused; 2: bad usage or a bad file; 3: done, but not to be trusted;
    /// 130: interrupted.
    pub status: u8,
    /// What to tell.
    pub message: String,
}

impl Failure {
    /// The machine refused: disk full, no permission.
    pub fn machine(message: impl Into<String>) -> Self {
        Failure { status: 1, message: message.into() }
    }

    /// A run failed.
    pub fn run(message: impl Into<String>) -> Self {
        Failure { status: 1, message: message.into() }
    }

    /// Bad usage or a bad file.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { status: 2, message: message.into() }
    }

    /// A result is not to be trusted.
    pub fn untrusted(message: impl Into<String>) -> Self {
        Failure { status: 3, message: message.into() }
    }

    /// Interrupted by the user; finished runs stay.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Failure { status: 130, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
