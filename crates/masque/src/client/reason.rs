//! Describes to the user why the proxy ended a connection or a tunnel.

use crate::transport;
use h3::error::{Code, StreamError};

/// Returns the reason why a connection was closed, unless this host closed it.
pub(super) fn of_peer_closing(connection: &noq::Connection) -> Option<noq::ConnectionError> {
    connection.close_reason().filter(|reason| *reason != noq::ConnectionError::LocallyClosed)
}

/// Describes the end of a connection, with the proxy's reason phrase if it sent one.
pub(super) fn of_closed_connection(error: &noq::ConnectionError) -> String {
    match error {
        noq::ConnectionError::ApplicationClosed(close) if !close.reason.is_empty() => {
            format!("the proxy closed the connection: {}", printable(&close.reason))
        }
        noq::ConnectionError::ApplicationClosed(close) => {
            format!("the proxy closed the connection with {}", Code::from(close.error_code.into_inner()))
        }
        other => format!("the connection to the proxy was lost: {other}"),
    }
}

/// Describes the error of a stream.
pub(super) fn of_stream(error: &StreamError) -> String {
    match error {
        StreamError::RemoteTerminate { code } => of_code(*code),
        other => transport::reason(other),
    }
}

/// Describes the code of RESET_STREAM or STOP_SENDING.
pub(super) fn of_code(code: Code) -> String {
    match code {
        Code::H3_NO_ERROR => "the proxy closed the stream".into(),
        // An open tunnel has no other way to report this: RFC 9114 section 4.4 permits no trailers.
        Code::H3_CONNECT_ERROR => "the proxy cannot reach the target: its socket reported an error, such as an ICMP \
                                   error (H3_CONNECT_ERROR)"
            .into(),
        // This host's own check of the proxy's frames has the same error.
        other => format!("the stream was aborted with {other}"),
    }
}

/// Returns text from the proxy, with question marks for all bytes that are not printable ASCII: control characters
/// could change the terminal.
pub(super) fn printable(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' }).collect()
}
