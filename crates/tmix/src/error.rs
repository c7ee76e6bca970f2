//! What can be wrong with a trace: where, and what was expected.

use std::fmt;

/// Why a trace cannot be read, written or shuffled.
#[derive(Debug)]
pub enum Error {
    /// The machine refused.
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not what it should be.
    Format {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is there and what was expected.
        message: String,
    },
    /// A connection cannot be said in the format that was asked for.
    Inexpressible {
        /// The connection's second id.
        id: u64,
        /// Why.
        message: String,
    },
    /// No schedule meets what was asked.
    Unreachable(String),
}

impl Error {
    pub(crate) fn io(file: &str, source: std::io::Error) -> Self {
        Error::Io { file: file.to_string(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { file, source } => write!(formatter, "{file}: {source}"),
            Error::Format { file, line, message } => write!(formatter, "{file}:{line}: {message}"),
            Error::Inexpressible { id, message } => write!(formatter, "connection {id}: {message}"),
            Error::Unreachable(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
