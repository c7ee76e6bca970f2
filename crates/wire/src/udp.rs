//! The UDP header (RFC 768).

/// Size of a UDP header in bytes.
pub const UDP_HEADER_BYTES: u32 = 8;
