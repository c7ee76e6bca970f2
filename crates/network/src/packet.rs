//! Packets: small plain values of one cache line. A model's payload is a length; bytes exist only where a real program
//! or a real stack is at one end, in a side table.

use fullpipe_units::{FlowId, Instant, NodeId};

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_BYTES: u32 = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER_BYTES: u32 = 8;
/// Bytes of a TCP header without options.
pub const TCP_HEADER_BYTES: u32 = 20;

/// TCP header flags (RFC 9293 section 3.1).
pub mod flags {
    /// No more data from sender.
    pub const FIN: u16 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u16 = 0x02;
    /// Reset the connection.
    pub const RST: u16 = 0x04;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// The acknowledgement number is meaningful.
    pub const ACK: u16 = 0x10;
    /// Urgent (never sent).
    pub const URG: u16 = 0x20;
    /// ECN echo.
    pub const ECE: u16 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u16 = 0x80;
    /// Accurate ECN (RFC 9768).
    pub const AE: u16 = 0x100;
}

/// Which TCP options a segment carries, besides selective acknowledgements.
pub mod options {
    /// Maximum segment size (SYN only).
    pub const MSS: u8 = 0x01;
    /// Window scale (SYN only).
    pub const WINDOW_SCALE: u8 = 0x02;
    /// SACK permitted (SYN only).
    pub const SACK_PERMITTED: u8 = 0x04;
    /// Timestamps (RFC 7323).
    pub const TIMESTAMPS: u8 = 0x08;
}

/// A range of sequence numbers as on the wire, first byte and byte after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// Sequence number after the block's last.
    pub end: u32,
}

/// Most blocks one segment can carry (RFC 2018 section 3: four, three beside timestamps).
pub const MAX_SACK_BLOCKS: usize = 4;

/// A TCP segment's header, with numbers as on the wire, and its payload's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Timestamp value.
    pub timestamp: u32,
    /// Timestamp echo reply.
    pub timestamp_echo: u32,
    /// Flags, see [`flags`].
    pub flags: u16,
    /// Window as on the wire (not scaled).
    pub window: u16,
    /// Payload bytes.
    pub payload_bytes: u16,
    /// Maximum segment size option.
    pub mss: u16,
    /// Options present, see [`options`].
    pub options: u8,
    /// Window scale option.
    pub window_scale: u8,
    /// Number of SACK blocks.
    pub sack_count: u8,
}

impl TcpHeader {
    /// Bytes of the header with its options, padded to a multiple of four.
    ///
    /// Lengths: MSS 4, window scale 3, SACK permitted 2, timestamps 10, SACK 2 + 8 per block (RFC 9293, 7323, 2018).
    /// An established segment with timestamps thus has 20 + 10 padded = 32 bytes.
    #[inline(always)]
    pub fn header_bytes(&self) -> u32 {
        // The two forms that nearly all segments have.
        if self.sack_count == 0 && self.options == options::TIMESTAMPS {
            return TCP_HEADER_BYTES + 12;
        }
        let mut bytes = 0;
        for (option, length) in
            [(options::MSS, 4), (options::WINDOW_SCALE, 3), (options::SACK_PERMITTED, 2), (options::TIMESTAMPS, 10)]
        {
            if self.options & option != 0 {
                bytes += length;
            }
        }
        if self.sack_count > 0 {
            bytes += 2 + 8 * u32::from(self.sack_count);
        }
        TCP_HEADER_BYTES + bytes.next_multiple_of(4)
    }

    /// Whether a flag is set.
    #[inline(always)]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Sequence number after the segment's last, SYN and FIN counted.
    #[inline(always)]
    pub fn sequence_end(&self) -> u32 {
        self.sequence
            .wrapping_add(u32::from(self.payload_bytes))
            .wrapping_add(u32::from(self.has(flags::SYN)))
            .wrapping_add(u32::from(self.has(flags::FIN)))
    }
}
