//! How much a queue holds, as scenarios state it.

use crate::{Duration, Rate};

/// How much a drop-tail queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u64),
    /// What the link transmits in this time (bytes = rate x time / 8).
    Time(Duration),
    /// No limit.
    Unlimited,
}

/// How much the queue of a link holds: the limit itself, or a multiple of the link's bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkQueueLimit {
    /// This limit, whatever the path.
    Fixed(QueueLimit),
    /// This multiple of the bandwidth-delay product.
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
    /// So many millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        BdpMultiple(millionths)
    }

    /// A multiple such as 0.25 or 2, to the nearest millionth. A negative number and NaN count as 0.
    pub fn new(multiple: f64) -> Self {
        // The conversion of a float saturates.
        BdpMultiple((multiple * 1e6).round() as u64)
    }

    /// The millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// Bytes of this multiple of `rate` times `round_trip`, rounded down once.
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
        // At most 2^128: two factors of 64 bits.
        let product = u128::from(rate.bits_per_second()) * u128::from(round_trip.as_nanos());
        let scale = NANOSECOND_BITS_PER_BYTE * 1_000_000;
        let bytes = match product.checked_mul(u128::from(self.0)) {
            Some(scaled) => scaled / scale,
            None => (product / scale).saturating_mul(u128::from(self.0)),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
