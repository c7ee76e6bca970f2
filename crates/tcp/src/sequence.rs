//! Sequence numbers: 32 bits that wrap on the wire, 64-bit offsets inside (RFC 9293 section 3.4).
//!
//! Offset 0 is the first byte of the stream; the SYN stands just before it (it would be -1) and the FIN just after the
//! last byte. A number from the wire means the offset nearest to one that is known, so connections of any length and
//! any initial number work, as long as nothing arrives that is 2^31 bytes away from where it belongs.

/// One direction's numbering.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    /// Wire number of offset 0: the initial sequence number plus one for the SYN.
    base: u32,
}

impl Numbering {
    /// The numbering of a stream whose SYN has this number.
    pub(crate) fn from_syn(initial_sequence: u32) -> Numbering {
        Numbering { base: initial_sequence.wrapping_add(1) }
    }

    /// The SYN's own number.
    pub(crate) fn syn(self) -> u32 {
        self.base.wrapping_sub(1)
    }

    /// An offset as on the wire.
    #[inline(always)]
    pub(crate) fn to_wire(self, offset: u64) -> u32 {
        self.base.wrapping_add(offset as u32)
    }

    /// The offset nearest to `near` that has this number; negative for what lies before the stream.
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
        let numbering = Numbering::from_syn(u32::MAX);
        assert_eq!(numbering.syn(), u32::MAX);
        assert_eq!(numbering.to_wire(0), 0);
        assert_eq!(numbering.to_offset(u32::MAX, 0), -1);
    }

    #[test]
    fn numbers_wrap_and_find_their_offset_again() {
        let numbering = Numbering::from_syn(4_294_967_000);
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
    fn timestamps_compare_across_the_wrap() {
        assert!(timestamp_before(u32::MAX, 3));
        assert!(!timestamp_before(3, u32::MAX));
        assert!(!timestamp_before(3, 3));
    }
}
