//! Conversion of noq's errors to those of h3.

use h3::error::StreamError;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, ReadError, WriteError};
use std::io;
use std::sync::Arc;

/// Converts the reason why a connection ended.
pub(super) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

/// Closes the connection because the peer violated the protocol, and returns the error for h3.
pub(super) fn broken_rule(connection: &noq::Connection, code: u32) -> ConnectionErrorIncoming {
    connection.close(code.into(), b"");
    ConnectionErrorIncoming::Undefined(Arc::new(io::Error::other(format!(
        "the peer violated the protocol (HTTP/3 error code {code:#x})"
    ))))
}

/// Error of a stream whose connection has ended.
pub(super) fn stream(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection(error) }
}

/// Converts a read error.
pub(super) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        ReadError::ConnectionLost(error) => stream(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

/// Converts a write error.
pub(super) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        WriteError::ConnectionLost(error) => stream(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

/// Error of a stream on which the peer sent a malformed message.
pub(super) fn malformed(reason: &'static str) -> StreamErrorIncoming {
    StreamErrorIncoming::Unknown(format!("malformed message: {reason}").into())
}

/// Describes the failure of a stream for logs and error messages.
#[must_use]
pub fn reason(error: &StreamError) -> String {
    match error {
        // This crate's own description; h3 would add that it is undefined.
        StreamError::Undefined(error) => error.to_string(),
        other => other.to_string(),
    }
}
