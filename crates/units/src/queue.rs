//! Limits of queues, as scenarios state them.

use crate::{Duration, Rate};

/// The capacity of a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This number of packets.
    Packets(u32),
    /// This number of bytes on the wire.
    Bytes(u64),
    /// The bytes that the link transmits in this time (rate × time / 8).
    Time(Duration),
    /// Unlimited.
    Unlimited,
}

/// The capacity of a link's queue: a limit, or a multiple of the bandwidth-delay product of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQueueLimit {
    /// This limit, independent of the path.
    Fixed(QueueLimit),
    /// This multiple of the bandwidth-delay product of the path.
    Bdp(BdpMultiple),
}

impl From<QueueLimit> for LinkQueueLimit {
    fn from(limit: QueueLimit) -> Self {
        LinkQueueLimit::Fixed(limit)
    }
}

impl From<BdpMultiple> for LinkQueueLimit {
    fn from(multiple: BdpMultiple) -> Self {
        LinkQueueLimit::Bdp(multiple)
    }
}

/// A multiple of a bandwidth-delay product (BDP), in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BdpMultiple(u64);

impl BdpMultiple {
    /// Returns the multiple that is this number of millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        BdpMultiple(millionths)
    }

    /// Returns a multiple such as 0.25 or 2, rounded to the nearest millionth. A negative number and NaN become 0.
    pub fn new(multiple: f64) -> Self {
        // The conversion from a float saturates.
        BdpMultiple((multiple * 1e6).round() as u64)
    }

    /// Returns the multiple in millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// Returns this multiple of `rate` × `round_trip` in bytes, rounded down; at most [`u64::MAX`].
    ///
    /// ```
    /// use fullpipe_units::{BdpMultiple, Duration, Rate};
    /// // 10 Mbit/s x 40 ms = 400 000 bits = 50 000 bytes.
    /// let bytes = |multiple| {
    ///     BdpMultiple::new(multiple).bytes(Rate::from_megabits_per_second(10), Duration::from_millis(40))
    /// };
    /// assert_eq!((bytes(1.0), bytes(2.0), bytes(0.25)), (50_000, 100_000, 12_500));
    /// ```
    pub fn bytes(self, rate: Rate, round_trip: Duration) -> u64 {
        const NANOSECOND_BITS_PER_BYTE: u128 = 8_000_000_000;
        // Below 2^128: a product of two 64-bit factors.
        let product = u128::from(rate.bits_per_second()) * u128::from(round_trip.as_nanos());
        let scale = NANOSECOND_BITS_PER_BYTE * 1_000_000;
        let bytes = match product.checked_mul(u128::from(self.0)) {
            Some(scaled) => scaled / scale,
            None => (product / scale).saturating_mul(u128::from(self.0)),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
