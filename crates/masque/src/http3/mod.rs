//! HTTP/3 transfers (RFC 9114): a file server, and a client that downloads from it.

mod client;
mod server;

pub use client::{Error, FetchResult, get};
pub use server::{Body, ContentError, ContentSource, Server};

/// Maximum size of a frame other than DATA, and of a header section.
const MAX_HEADER_BYTES: u64 = 16 << 10;
