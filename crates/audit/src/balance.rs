//! Packets and bytes in one number: 2^30 for a packet, 1 for a byte, modulo 2^64.
//!
//! A link and a flow have several events per packet, and each event would change two counters. One number halves this cost without losing
//! information that the checks need. A *balance* (arrivals minus departures) is compared with the remainder and must not be negative.
//! *Totals* wrap, but they are only compared with totals that should be equal. Packets and bytes are separated only for messages about
//! differences, which are exact up to half a gibibyte.

/// Packets and bytes, modulo 2^64; see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrafficBalance(u64);

/// Chosen so that the 2^30 of a packet fits into an immediate operand.
const BYTE_BITS: u32 = 30;

impl TrafficBalance {
    /// Returns the amount of one packet of this size.
    #[inline(always)]
    pub(crate) fn packet(bytes: u32) -> TrafficBalance {
        TrafficBalance(u64::from(bytes) + (1 << BYTE_BITS))
    }

    /// Returns the amount of a number of packets of this size.
    #[inline(always)]
    pub(crate) fn packets(number: u32, bytes: u32) -> TrafficBalance {
        TrafficBalance(TrafficBalance::packet(bytes).0.wrapping_mul(u64::from(number)))
    }

    /// Returns the amount of a number of packets with a total number of bytes.
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

    /// Returns a balance, or the difference of two totals, as packets and bytes.
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
