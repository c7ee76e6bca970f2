//! The two ECN bits of an IP header.

/// An ECN codepoint of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EcnCodepoint {
    /// Not ECN-capable.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, codepoint ECT(1), which L4S traffic uses (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable transport, codepoint ECT(0), which classic traffic uses.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// Returns the two ECN bits as in the IP header.
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns the codepoint of the two lowest bits; the other bits are ignored.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> EcnCodepoint {
        match bits & 0b11 {
            0b00 => EcnCodepoint::NotEct,
            0b01 => EcnCodepoint::Ect1,
            0b10 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }

    /// Returns whether a queue may mark the packet instead of dropping it.
    #[inline(always)]
    pub const fn is_ecn_capable(self) -> bool {
        !matches!(self, EcnCodepoint::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_each_codepoint_match_rfc_3168_figure_1() {
        let table =
            [(EcnCodepoint::NotEct, 0), (EcnCodepoint::Ect1, 1), (EcnCodepoint::Ect0, 2), (EcnCodepoint::Ce, 3)];
        for (codepoint, bits) in table {
            assert_eq!(codepoint.bits(), bits);
            assert_eq!(EcnCodepoint::from_bits(bits | 0xfc), codepoint);
            assert_eq!(codepoint.is_ecn_capable(), bits != 0);
        }
    }
}
