//! The combination of a packet count and a byte count in one number: 2^30 per packet plus 1 per byte, modulo 2^64.
//!
//! Links and flows have several events per packet, and each event would change two counters. One number halves this
//! cost without losing information that the checks need. A *balance* (arrivals minus departures) must not be negative,
//! and must equal the remainder at the end. *Totals* wrap, but they are only compared with totals that should be equal.
//! Packets and bytes are separated only for failure messages; this is exact for differences up to half a gibibyte.

/// A packet count and a byte count, modulo 2^64; see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrafficBalance(u64);

/// Number of bits for bytes, chosen so that the 2^30 of a packet fits into an immediate operand.
const BYTE_BITS: u32 = 30;

impl TrafficBalance {
    /// Returns the value of one packet of this size.
    #[inline(always)]
    pub(crate) fn packet(bytes: u32) -> TrafficBalance {
        TrafficBalance(u64::from(bytes) + (1 << BYTE_BITS))
    }

    /// Returns the value of `number` packets of this size.
    #[inline(always)]
    pub(crate) fn packets(number: u32, bytes: u32) -> TrafficBalance {
        TrafficBalance(TrafficBalance::packet(bytes).0.wrapping_mul(u64::from(number)))
    }

    /// Returns the value of this number of packets with this total number of bytes.
    pub(crate) fn of(packets: u64, bytes: u64) -> TrafficBalance {
        TrafficBalance((packets << BYTE_BITS).wrapping_add(bytes))
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, other: TrafficBalance) {
        self.0 = self.0.wrapping_add(other.0);
    }

    #[inline(always)]
    pub(crate) fn subtract(&mut self, other: TrafficBalance) {
        self.0 = self.0.wrapping_sub(other.0);
    }

    pub(crate) fn plus(mut self, other: TrafficBalance) -> TrafficBalance {
        self.add(other);
        self
    }

    pub(crate) fn minus(mut self, other: TrafficBalance) -> TrafficBalance {
        self.subtract(other);
        self
    }

    /// Returns whether a balance is negative: fewer than zero packets, or zero packets with fewer than zero bytes.
    #[inline(always)]
    pub(crate) fn is_negative(self) -> bool {
        (self.0 as i64) < 0
    }

    /// Separates a balance, or the difference of two totals, into packets and bytes.
    pub(crate) fn parts(self) -> (i64, i64) {
        let unused = u64::BITS - BYTE_BITS;
        let bytes = ((self.0 << unused) as i64) >> unused;
        let packets = (self.0.wrapping_sub(bytes as u64) as i64) >> BYTE_BITS;
        (packets, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_balance_is_separated_into_packets_and_bytes() {
        let mut balance = TrafficBalance::default();
        balance.add(TrafficBalance::packet(1500));
        balance.add(TrafficBalance::packet(40));
        assert_eq!(balance.parts(), (2, 1540));
        balance.subtract(TrafficBalance::packet(1500));
        assert_eq!((balance.parts(), balance.is_negative()), ((1, 40), false));
        // One byte too many is subtracted: zero packets and minus one byte.
        balance.subtract(TrafficBalance::packet(41));
        assert_eq!((balance.parts(), balance.is_negative()), ((0, -1), true));
        assert_eq!(TrafficBalance::of(7, 100).minus(TrafficBalance::of(8, 100)).parts(), (-1, 0));
    }

    proptest! {
        #[test]
        fn totals_that_have_wrapped_differ_by_what_they_differ(
            packets: u64, bytes: u64, more in -1000i64..1000, heavier in -1_000_000i64..1_000_000,
        ) {
            let total = TrafficBalance::of(packets, bytes);
            let other = TrafficBalance::of(packets.wrapping_add_signed(more), bytes.wrapping_add_signed(heavier));
            prop_assert_eq!(other.minus(total).parts(), (more, heavier));
            prop_assert_eq!(other == total, more == 0 && heavier == 0);
        }
    }
}
