//! HTTP/3's interface to a QUIC connection: the traits of [`h3::quic`], implemented with noq.

mod connection;
mod error;
mod field_section;
mod frame_guard;
mod huffman;
mod message;
mod one_way_guard;
mod response;
mod streams;

pub use connection::{Connection, StreamHandle, StreamHandles, StreamOpener};
pub use error::reason;
pub use frame_guard::{FrameValidator, ProtocolViolation};
pub use one_way_guard::{PeerRole, UnidirectionalValidator};
pub use response::final_response;
pub use streams::{BidiStream, RecvStream, SendStream, StreamEnd};

/// Error codes of HTTP/3 (RFC 9114 section 8.1, RFC 9297 section 5.2) and QPACK (RFC 9204 section 6) that this crate
/// itself uses.
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0x0100;
    /// The peer opened a stream that is not permitted.
    pub const STREAM_CREATION_ERROR: u32 = 0x0103;
    /// A critical stream was closed.
    pub const CLOSED_CRITICAL_STREAM: u32 = 0x0104;
    /// A frame of this type is not permitted here.
    pub const FRAME_UNEXPECTED: u32 = 0x0105;
    /// A frame is malformed or has an invalid length.
    pub const FRAME_ERROR: u32 = 0x0106;
    /// The peer generates excessive load.
    pub const EXCESSIVE_LOAD: u32 = 0x0107;
    /// A stream ID or push ID was used incorrectly.
    pub const ID_ERROR: u32 = 0x0108;
    /// A setting is invalid.
    pub const SETTINGS_ERROR: u32 = 0x0109;
    /// The request was not processed and may be retried.
    pub const REQUEST_REJECTED: u32 = 0x010b;
    /// The request or its response is no longer needed.
    pub const REQUEST_CANCELLED: u32 = 0x010c;
    /// A message is malformed.
    pub const MESSAGE_ERROR: u32 = 0x010e;
    /// The connection of a CONNECT request to its target was closed abnormally.
    pub const CONNECT_ERROR: u32 = 0x010f;
    /// A QUIC datagram is not a valid HTTP datagram.
    pub const DATAGRAM_ERROR: u32 = 0x33;
    /// A field section cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: u32 = 0x0200;
    /// An instruction on the encoder stream is invalid.
    pub const QPACK_ENCODER_STREAM_ERROR: u32 = 0x0201;
    /// An instruction on the decoder stream is invalid.
    pub const QPACK_DECODER_STREAM_ERROR: u32 = 0x0202;
}
