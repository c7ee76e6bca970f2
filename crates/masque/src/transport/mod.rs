//! HTTP/3's view of a QUIC connection: the traits of [`h3::quic`], implemented on noq.

mod connection;
mod error;
mod frame_guard;
mod one_way_guard;
mod streams;

pub use connection::{Connection, Handle, Handles, Opener};
pub use frame_guard::{FrameGuard, Violation};
pub use one_way_guard::{OneWayGuard, Peer};
pub use streams::{BidiStream, Ending, RecvStream, SendStream};

/// Error codes of HTTP/3 (RFC 9114 section 8.1, RFC 9297 section 5.2) and QPACK (RFC 9204 section 6) that this crate uses
/// beside h3.
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0x0100;
    /// A stream that may not be.
    pub const STREAM_CREATION_ERROR: u32 = 0x0103;
    /// A stream ended without which nothing goes on.
    pub const CLOSED_CRITICAL_STREAM: u32 = 0x0104;
    /// A frame where there may be none of its type.
    pub const FRAME_UNEXPECTED: u32 = 0x0105;
    /// A frame that is not laid out or not as long as it has to be.
    pub const FRAME_ERROR: u32 = 0x0106;
    /// The peer makes more work than it should.
    pub const EXCESSIVE_LOAD: u32 = 0x0107;
    /// An identifier that cannot be.
    pub const ID_ERROR: u32 = 0x0108;
    /// A setting that cannot be.
    pub const SETTINGS_ERROR: u32 = 0x0109;
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
    /// A field section that cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: u32 = 0x0200;
    /// An instruction to the decoder that cannot be.
    pub const QPACK_ENCODER_STREAM_ERROR: u32 = 0x0201;
    /// An instruction to the encoder that cannot be.
    pub const QPACK_DECODER_STREAM_ERROR: u32 = 0x0202;
}
