//! Errors of traces: the location, what was found and what was expected.

use std::fmt;

/// The reason why a trace cannot be read, written or scheduled.
#[derive(Debug)]
pub enum Error {
    /// An input or output error.
    Io {
        /// The file.
        file: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not a valid trace.
    Format {
        /// The file.
        file: String,
        /// The line number, from 1.
        line: u64,
        /// What was found and what was expected.
        message: String,
    },
    /// The connection cannot be expressed in the requested format.
    Unrepresentable {
        /// The second of the connection's two ids.
        id: u64,
        /// The reason.
        message: String,
    },
    /// No schedule satisfies the request. The text states the reason.
    Unsatisfiable(String),
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
            Error::Unrepresentable { id, message } => write!(formatter, "connection {id}: {message}"),
            Error::Unsatisfiable(message) => formatter.write_str(message),
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
