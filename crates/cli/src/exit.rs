//! Exit status of the command, and the sentence that explains it.

use std::fmt;

/// Why the command ends with something other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// 1: a run failed or the machine refused; 2: bad usage or a bad file; 3: done, but not to be trusted;
    /// 4: done, but an expectation failed; 130: interrupted.
    pub(crate) status: u8,
    /// What to tell.
    pub(crate) message: String,
}

impl Failure {
    /// The machine refused: disk full, no permission.
    pub(crate) fn machine(message: impl fmt::Display) -> Self {
        Failure { status: 1, message: message.to_string() }
    }

    /// A run failed.
    pub(crate) fn run(message: impl fmt::Display) -> Self {
        Failure { status: 1, message: message.to_string() }
    }

    /// Bad usage or a bad file.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Failure { status: 2, message: message.to_string() }
    }

    /// A result is not to be trusted.
    pub(crate) fn untrusted(message: impl fmt::Display) -> Self {
        Failure { status: 3, message: message.to_string() }
    }

    /// An expectation failed.
    pub(crate) fn expectation(message: impl fmt::Display) -> Self {
        Failure { status: 4, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
