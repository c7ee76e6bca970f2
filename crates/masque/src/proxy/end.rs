//! How a tunnel of the proxy ends.

use crate::transport::{StreamEnd, code};
use std::io;

/// Reason why a tunnel ended, and the error code; the code is `None` for a regular end.
pub(super) struct End {
    code: Option<u32>,
    pub(super) reason: String,
}

impl End {
    pub(super) fn new(code: impl Into<Option<u32>>, reason: impl Into<String>) -> End {
        End { code: code.into(), reason: reason.into() }
    }

    pub(super) fn socket(error: &io::Error) -> End {
        End::new(code::CONNECT_ERROR, format!("cannot reach the target: {error}"))
    }

    /// Whether the end is abnormal.
    pub(super) fn is_error(&self) -> bool {
        self.code.is_some()
    }

    /// Stores the code for both halves of the stream. The owner of a half must call this before it drops the half: a
    /// half that is dropped without a code ends regularly.
    pub(super) fn store_code(self, ending: &StreamEnd) -> End {
        if let Some(code) = self.code {
            ending.abort(code);
        }
        self
    }
}
