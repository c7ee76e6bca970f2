//! The UDP header (RFC 768).

/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: u32 = 8;
