//! Sequence numbers: 32 bits with wraparound in segments, 64-bit offsets in the connection (RFC 9293 section 3.4).
//!
//! Offset 0 is the first byte of the stream; the SYN is just before it (at -1) and the FIN just after the last byte. A
//! received number is converted to the offset that is nearest to a known one. Connections of any length and any initial
//! number therefore work, unless a segment is 2^31 bytes away from the expected position.

/// The sequence numbers of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SequenceSpace {
    /// Sequence number of offset 0: the initial sequence number plus one for the SYN.
    base: u32,
}

impl SequenceSpace {
    /// Creates the numbering of a stream whose SYN has this number.
    pub(crate) fn from_syn(initial_sequence: u32) -> SequenceSpace {
        SequenceSpace { base: initial_sequence.wrapping_add(1) }
    }

    /// The sequence number of the SYN.
    pub(crate) fn syn(self) -> u32 {
        self.base.wrapping_sub(1)
    }

    /// Converts an offset to a sequence number.
    #[inline(always)]
    pub(crate) fn to_wire(self, offset: u64) -> u32 {
        self.base.wrapping_add(offset as u32)
    }

    /// Converts a sequence number to the offset nearest to `near`; negative before the stream.
    #[inline(always)]
    pub(crate) fn to_offset(self, number: u32, near: u64) -> i64 {
        let distance = number.wrapping_sub(self.to_wire(near)) as i32;
        (near as i64).wrapping_add(i64::from(distance))
    }
}

/// Whether timestamp `a` is older than `b` (RFC 7323 section 5.2, modulo 2^32).
#[inline(always)]
pub(crate) fn timestamp_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_zero_follows_the_syn() {
        let numbering = SequenceSpace::from_syn(u32::MAX);
        assert_eq!(numbering.syn(), u32::MAX);
        assert_eq!(numbering.to_wire(0), 0);
        assert_eq!(numbering.to_offset(u32::MAX, 0), -1);
    }

    #[test]
    fn sequence_number_after_wraparound_converts_to_its_offset() {
        let numbering = SequenceSpace::from_syn(4_294_967_000);
        // 2^32 - 4 294 967 000 = 296: offset 295 has number 0 (the SYN took one).
        assert_eq!(numbering.to_wire(295), 0);
        for offset in [0, 294, 295, 1 << 31, (1 << 32) + 7, 5 << 40] {
            let number = numbering.to_wire(offset);
            assert_eq!(numbering.to_offset(number, offset), offset as i64);
            assert_eq!(numbering.to_offset(number, offset + (1 << 31) - 1), offset as i64);
            assert_eq!(numbering.to_offset(number, offset.saturating_sub(1 << 30)), offset as i64);
        }
    }

    #[test]
    fn timestamp_comparison_works_across_wraparound() {
        assert!(timestamp_before(u32::MAX, 3));
        assert!(!timestamp_before(3, u32::MAX));
        assert!(!timestamp_before(3, 3));
    }
}
