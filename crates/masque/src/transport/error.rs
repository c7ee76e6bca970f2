//! noq's errors as h3 wants to hear them.

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, ReadError, WriteError};
use std::io;
use std::sync::Arc;

/// Why a connection is over.
pub(super) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

/// Closes a connection whose peer has broken a rule, and says so to h3.
pub(super) fn broken_rule(connection: &noq::Connection, code: u32) -> ConnectionErrorIncoming {
    connection.close(code.into(), b"");
    ConnectionErrorIncoming::Undefined(Arc::new(io::Error::other(format!("the peer broke a rule: code {code:#x}"))))
}

/// Why a stream's owner learns that the connection is over.
pub(super) fn stream(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection(error) }
}

/// Why nothing more can be read.
pub(super) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        ReadError::ConnectionLost(error) => stream(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

/// Why nothing more can be written.
pub(super) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        WriteError::ConnectionLost(error) => stream(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
