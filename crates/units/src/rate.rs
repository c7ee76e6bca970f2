//! Bit rates, and transmission times without accumulated rounding errors.

use crate::Duration;
use std::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

impl Rate {
    /// Returns a rate of this number of bits per second.
    pub const fn from_bits_per_second(bits_per_second: u64) -> Self {
        Rate(bits_per_second)
    }

    /// Returns a rate of this number of megabits (10^6 bits) per second.
    pub const fn from_megabits_per_second(megabits_per_second: u64) -> Self {
        Rate(megabits_per_second * 1_000_000)
    }

    /// Returns the rate in bits per second.
    #[inline(always)]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of `bytes` bytes at this rate, rounded up to a whole nanosecond; [`Duration::MAX`]
    /// if the rate is zero.
    ///
    /// ```
    /// use fullpipe_units::{Duration, Rate};
    /// // 1518 bytes at 1 Gbit/s: 12 144 bits, one nanosecond each.
    /// assert_eq!(Rate::from_megabits_per_second(1000).transmission_time(1518), Duration::from_nanos(12_144));
    /// ```
    pub const fn transmission_time(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanoseconds = (bytes as u128 * 8 * NANOSECONDS_PER_SECOND as u128).div_ceil(self.0 as u128);
        Duration::from_nanos(if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 })
    }

    /// Returns the number of whole bytes that can be transmitted at this rate in a duration.
    pub const fn bytes_in(self, duration: Duration) -> u64 {
        let bytes = self.0 as u128 * duration.as_nanos() as u128 / (8 * NANOSECONDS_PER_SECOND as u128);
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Display for Rate {
    /// Writes the value in the largest unit in which it is a whole number: `64kbit/s`, `1Gbit/s`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, "bit/s"),
            r if r % 1_000_000_000 == 0 => (r / 1_000_000_000, "Gbit/s"),
            r if r % 1_000_000 == 0 => (r / 1_000_000, "Mbit/s"),
            r if r % 1_000 == 0 => (r / 1_000, "kbit/s"),
            r => (r, "bit/s"),
        };
        write!(formatter, "{value}{unit}")
    }
}

/// Converts packet sizes to transmission times at one rate. It carries the remaining fraction of a nanosecond to the
/// next packet. The sum for n back-to-back packets is thus the exact time rounded down, without an error that grows
/// with n.
///
/// It caches the division for the last size, because on most links nearly all packets have one or two sizes. In the
/// scenario `udp-5hop`, a 64-bit division per hop costs more than the other arithmetic of the hop.
#[derive(Clone, Debug)]
pub struct Transmitter {
    rate: u64,
    /// The fraction of a nanosecond carried from earlier packets, in units of 1/rate nanoseconds; always below `rate`.
    remainder: u64,
    last_bytes: u32,
    last_nanoseconds: u64,
    last_remainder: u64,
}

impl Transmitter {
    /// Returns a transmitter at `rate` without a carried fraction.
    ///
    /// # Panics
    /// If the rate is zero. Scenarios with such a link are rejected before the network is built.
    pub fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "the rate of a link must be positive");
        Transmitter { rate: rate.0, remainder: 0, last_bytes: 0, last_nanoseconds: 0, last_remainder: 0 }
    }

    /// Returns the rate of the transmitter.
    pub fn rate(&self) -> Rate {
        Rate(self.rate)
    }

    /// Returns the time for which the next packet, of `bytes` bytes, occupies the link. `idle` states whether the link
    /// is idle when the packet arrives. If it is, the fraction carried from the preceding busy period is discarded.
    #[inline(always)]
    pub fn transmit(&mut self, bytes: u32, idle: bool) -> Duration {
        if bytes != self.last_bytes {
            self.divide(bytes);
        }
        let mut nanoseconds = self.last_nanoseconds;
        if idle {
            self.remainder = self.last_remainder;
        } else {
            self.remainder += self.last_remainder;
            if self.remainder >= self.rate {
                self.remainder -= self.rate;
                nanoseconds += 1;
            }
        }
        Duration::from_nanos(nanoseconds)
    }

    #[inline(never)]
    fn divide(&mut self, bytes: u32) {
        let scaled = u64::from(bytes) * 8 * NANOSECONDS_PER_SECOND;
        self.last_bytes = bytes;
        self.last_nanoseconds = scaled / self.rate;
        self.last_remainder = scaled % self.rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_back_packets_of_one_size_take_the_exact_total_time() {
        // 1502 bytes at 7 Mbit/s: 12016/7e6 s = 1 716 571.428571... ns. One thousand packets back to back take
        // 1 716 571 428.57 ns. Rounding each down would lose 428 ns; rounding each up would add 571 ns.
        let mut transmitter = Transmitter::new(Rate::from_megabits_per_second(7));
        let mut sum = 0;
        for n in 0..1000 {
            sum += transmitter.transmit(1502, n == 0).as_nanos();
        }
        assert_eq!(sum, 1_716_571_428);
    }

    #[test]
    fn back_to_back_packets_of_mixed_sizes_take_the_exact_total_time() {
        // Three packets of 1502 and three of 52 bytes at 3 Mbit/s: 4662 bytes = 37 296 bits = 12 432 000 ns exactly.
        let mut transmitter = Transmitter::new(Rate::from_megabits_per_second(3));
        let mut sum = 0;
        for n in 0..3 {
            sum += transmitter.transmit(1502, n == 0).as_nanos();
            sum += transmitter.transmit(52, false).as_nanos();
        }
        assert_eq!(sum, 12_432_000);
    }

    #[test]
    fn the_carried_fraction_is_discarded_when_the_link_is_idle() {
        let mut transmitter = Transmitter::new(Rate::from_bits_per_second(3_000_000_000));
        // One byte at 3 Gbit/s takes 2.67 ns: 2 ns and a carried 0.67 ns. The second byte then takes 3 ns, or 2 ns
        // after an idle period.
        assert_eq!(transmitter.transmit(1, true).as_nanos(), 2);
        assert_eq!(transmitter.transmit(1, false).as_nanos(), 3);
        assert_eq!(transmitter.transmit(1, true).as_nanos(), 2);
    }
}
