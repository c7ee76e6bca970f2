//! The TCP header and its options as plain values, with numbers as on the wire (RFC 9293 section 3.1).

/// Size of a TCP header in bytes, without options.
pub const TCP_HEADER_BYTES: u32 = 20;

/// TCP header flags (RFC 9293 section 3.1).
pub mod flags {
    /// No more data from sender.
    pub const FIN: u16 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u16 = 0x02;
    /// Reset the connection.
    pub const RST: u16 = 0x04;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// The acknowledgment number is significant.
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

/// Bits of the TCP options of a segment, except SACK.
pub mod options {
    /// Maximum segment size (SYN only).
    pub const MSS: u8 = 0x01;
    /// Window scale (SYN only).
    pub const WINDOW_SCALE: u8 = 0x02;
    /// SACK permitted (SYN only).
    pub const SACK_PERMITTED: u8 = 0x04;
    /// Timestamps (RFC 7323).
    pub const TIMESTAMPS: u8 = 0x08;
    /// Accurate ECN counters (RFC 9768 section 3.2.3); [`super::AccurateEcn`] contains their number and order.
    pub const ACCURATE_ECN: u8 = 0x10;
    /// TCP Fast Open cookie, or the request for one (RFC 7413 section 2.2; SYN only).
    pub const FAST_OPEN: u8 = 0x20;
}

/// A range of sequence numbers as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// Sequence number after the last one of the block.
    pub end: u32,
}

/// The byte counters of the Accurate ECN option (RFC 9768 section 3.2.3), each modulo 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccurateEcn {
    /// Payload bytes that arrived with ECT(0) (EE0B).
    pub ect0_bytes: u32,
    /// Payload bytes that arrived with CE (ECEB).
    pub ce_bytes: u32,
    /// Payload bytes that arrived with ECT(1) (EE1B).
    pub ect1_bytes: u32,
    /// Number of counters in the option, 0 to 3, in the order of the option.
    pub fields: u8,
    /// Whether the order is EE1B, ECEB, EE0B (option kind 174) instead of EE0B, ECEB, EE1B (kind 172).
    pub ect1_first: bool,
}

/// Less frequent options of a TCP segment, which are stored separately from the [`TcpHeader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// SACK blocks; only the first [`TcpHeader::sack_count`] are valid.
    pub sacks: [SackBlock; MAX_SACK_BLOCKS],
    /// Counters of the Accurate ECN option; valid if [`options::ACCURATE_ECN`] is set.
    pub accurate_ecn: AccurateEcn,
    /// Cookie of the Fast Open option, 4 to 16 bytes (0 for a request); valid if [`options::FAST_OPEN`] is set.
    pub fast_open_cookie: [u8; 16],
    /// Size of the cookie in bytes.
    pub fast_open_bytes: u8,
}

/// Maximum number of SACK blocks in a segment (RFC 2018 section 3: four, or three with timestamps).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The header of a TCP segment with numbers as on the wire, and the length of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgement: u32,
    /// Timestamp value (TSval).
    pub timestamp: u32,
    /// Timestamp echo reply (TSecr).
    pub timestamp_echo: u32,
    /// Flags, see [`flags`].
    pub flags: u16,
    /// Window field, not scaled.
    pub window: u16,
    /// Size of the payload in bytes.
    pub payload_bytes: u16,
    /// Value of the Maximum Segment Size option in bytes; valid if [`options::MSS`] is set.
    pub mss: u16,
    /// Options present, see [`options`].
    pub options: u8,
    /// Shift count of the Window Scale option; valid if [`options::WINDOW_SCALE`] is set.
    pub window_scale: u8,
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// Size of the Accurate ECN and Fast Open options in bytes, without padding.
    pub other_option_bytes: u8,
}

impl TcpHeader {
    /// Returns the size of the header with its options in bytes, padded to a multiple of four.
    ///
    /// Lengths: MSS 4, window scale 3, SACK permitted 2, timestamps 10, SACK 2 + 8 per block (RFC 9293, 7323, 2018),
    /// Accurate ECN 2 + 3 per counter (RFC 9768), Fast Open 2 + cookie (RFC 7413). A segment of an established
    /// connection with timestamps has 20 + 10 bytes, padded to 32.
    #[inline(always)]
    pub fn header_bytes(&self) -> u32 {
        // Fast path: nearly all segments have only timestamps.
        if self.sack_count == 0 && self.options == options::TIMESTAMPS {
            return TCP_HEADER_BYTES + 12;
        }
        let mut bytes = u32::from(self.other_option_bytes);
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

    /// Returns whether the segment has [`SegmentOptions`].
    #[inline(always)]
    pub fn has_segment_options(&self) -> bool {
        self.sack_count > 0 || self.options & (options::ACCURATE_ECN | options::FAST_OPEN) != 0
    }

    /// Returns whether a flag is set.
    #[inline(always)]
    pub fn has_flag(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the sequence number after the last one of the segment. SYN and FIN each occupy one sequence number.
    #[inline(always)]
    pub fn sequence_end(&self) -> u32 {
        self.sequence
            .wrapping_add(u32::from(self.payload_bytes))
            .wrapping_add(u32::from(self.has_flag(flags::SYN)))
            .wrapping_add(u32::from(self.has_flag(flags::FIN)))
    }
}
