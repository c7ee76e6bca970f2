//! Instants and durations in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Instant(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);
    /// An instant later than all events; the value of a timer that is not armed.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// Returns the instant that is this number of nanoseconds after the start of the run.
    #[inline(always)]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Instant(nanoseconds)
    }

    /// Returns the number of nanoseconds since the start of the run.
    #[inline(always)]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the number of seconds since the start of the run, for tables and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later than this instant.
    #[inline(always)]
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns whether this is [`Instant::NEVER`].
    #[inline(always)]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    /// Returns this instant plus a duration, at most [`Instant::NEVER`].
    #[inline(always)]
    pub const fn saturating_add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(duration.0))
    }
}

impl Duration {
    /// A duration of zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration.
    pub const MAX: Duration = Duration(u64::MAX);

    /// Returns a duration of this number of nanoseconds.
    #[inline(always)]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Duration(nanoseconds)
    }

    /// Returns a duration of this number of microseconds. Panics on overflow (more than 584 years).
    pub const fn from_micros(microseconds: u64) -> Self {
        Duration(microseconds * 1_000)
    }

    /// Returns a duration of this number of milliseconds. Panics on overflow (more than 584 years).
    pub const fn from_millis(milliseconds: u64) -> Self {
        Duration(milliseconds * 1_000_000)
    }

    /// Returns a duration of this number of seconds. Panics on overflow (more than 584 years).
    pub const fn from_secs(seconds: u64) -> Self {
        Duration(seconds * 1_000_000_000)
    }

    /// Returns a duration of this number of seconds, rounded to the nearest nanosecond. A negative number and NaN
    /// become zero; a number that is too large becomes [`Duration::MAX`].
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates and converts NaN to 0.
        Duration((seconds * 1e9).round() as u64)
    }

    /// Returns the duration in nanoseconds.
    #[inline(always)]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds, for tables and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the difference, or zero if `other` is longer.
    #[inline(always)]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// Returns the sum, at most [`Duration::MAX`].
    #[inline(always)]
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }

    /// Returns the product, at most [`Duration::MAX`].
    #[inline(always)]
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }

    /// Returns the absolute difference of two durations.
    #[inline(always)]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// Returns whether the duration is zero.
    #[inline(always)]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline(always)]
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration.0)
    }
}

impl AddAssign<Duration> for Instant {
    #[inline(always)]
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration.0;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    #[inline(always)]
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0 - duration.0)
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    #[inline(always)]
    fn sub(self, earlier: Instant) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline(always)]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    #[inline(always)]
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline(always)]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    #[inline(always)]
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline(always)]
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0 * factor)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    #[inline(always)]
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return formatter.write_str("never");
        }
        write!(formatter, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    /// Writes the value in the largest unit in which it is a whole number: `2us`, `1500ms`, `60s`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0;
        let (value, unit) = match nanoseconds {
            0 => (0, "s"),
            n if n % 1_000_000_000 == 0 => (n / 1_000_000_000, "s"),
            n if n % 1_000_000 == 0 => (n / 1_000_000, "ms"),
            n if n % 1_000 == 0 => (n / 1_000, "us"),
            n => (n, "ns"),
        };
        write!(formatter, "{value}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_in_their_largest_whole_unit() {
        assert_eq!(Duration::from_nanos(12_144).to_string(), "12144ns");
        assert_eq!(Duration::from_micros(2).to_string(), "2us");
        assert_eq!(Duration::from_millis(1_500).to_string(), "1500ms");
        assert_eq!(Duration::from_secs(60).to_string(), "60s");
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond_and_negative_ones_become_zero() {
        assert_eq!(Duration::from_secs_f64(1.6e-9), Duration::from_nanos(2));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::INFINITY), Duration::MAX);
    }

    #[test]
    fn time_since_a_later_instant_is_zero() {
        let early = Instant::from_nanos(5);
        let late = Instant::from_nanos(9);
        assert_eq!(late - early, Duration::from_nanos(4));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }
}
