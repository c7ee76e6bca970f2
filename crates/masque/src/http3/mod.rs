//! HTTP/3 itself, as far as transfers need it: a server of files and a client that gets them.

mod client;
mod server;

pub use client::{Error, Fetched, get};
pub use server::{Body, Content, ContentError, Server};

/// The largest frame other than DATA, and the largest header section.
const MAX_HEADER_BYTES: u64 = 16 << 10;
