//! The exit status of the command, and the message that explains it.

use std::fmt;

/// The reason for an exit status other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// 1: a run failed or an operation of the machine failed. 2: invalid usage or an invalid file. 3: completed, but
    /// the results are invalid. 4: completed, but an expectation failed. 130: interrupted.
    pub(crate) status: u8,
    /// The message.
    pub(crate) message: String,
}

impl Failure {
    /// Creates the failure of an operation of the machine, such as a full disk or a missing permission.
    pub(crate) fn machine(message: impl fmt::Display) -> Self {
        Failure { status: 1, message: message.to_string() }
    }

    /// Creates the failure of a run.
    pub(crate) fn run(message: impl fmt::Display) -> Self {
        Failure { status: 1, message: message.to_string() }
    }

    /// Creates the failure for invalid usage or an invalid file.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Failure { status: 2, message: message.to_string() }
    }

    /// Creates the failure for an invalid result.
    pub(crate) fn untrusted(message: impl fmt::Display) -> Self {
        Failure { status: 3, message: message.to_string() }
    }

    /// Creates the failure for an expectation that is not met.
    pub(crate) fn expectation(message: impl fmt::Display) -> Self {
        Failure { status: 4, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
