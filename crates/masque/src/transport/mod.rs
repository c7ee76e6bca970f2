//! HTTP/3's view of a QUIC connection: the traits of [`h3::quic`], implemented on noq.

mod connection;
mod error;
mod frame_guard;
mod streams;

pub use connection::{Connection, Handle, Handles, Opener};
pub use streams::{BidiStream, Ending, RecvStream, SendStream};

/// Error codes of HTTP/3 (RFC 9114 section 8.1, RFC 9297 section 5.2) that this crate uses beside h3.
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0x0100;
    /// The peer makes more work than it should.
    pub const EXCESSIVE_LOAD: u32 = 0x0107;
    /// An identifier that cannot be.
    pub const ID_ERROR: u32 = 0x0108;
    /// The request is not processed, and may be tried again.
    pub const REQUEST_REJECTED: u32 = 0x010b;
    /// The request, or its response, is no longer wanted.
    pub const REQUEST_CANCELLED: u32 = 0x010c;
    /// A message is malformed.
    pub const MESSAGE_ERROR: u32 = 0x010e;
    /// What a CONNECT request reached was closed abnormally.
    pub const CONNECT_ERROR: u32 = 0x010f;
    /// A datagram that is no HTTP datagram.
    pub const DATAGRAM_ERROR: u32 = 0x33;
}
