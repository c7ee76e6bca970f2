//! Instants of the stack as ours.
//!
//! The stack computes with [`std::time::Instant`], which cannot be made from a number: only by adding to another one. So
//! the clock of the machine is read once in the life of the process. Virtual instants are that reading plus their
//! nanoseconds; real ones are, to our controls, the time since that reading. The stack and the controls use instants only by
//! their differences, which are exact, so that the reading reaches no result of virtual time: runs in two processes are equal to
//! the bit.

use fullpipe_units::{Duration, Instant};
use std::sync::LazyLock;

#[allow(
    clippy::disallowed_methods,
    reason = "there is no other way to get an instant; only differences to it are used"
)]
static BASE: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Takes that reading, if nobody has: real instants before it are the beginning of time.
pub fn begin() {
    LazyLock::force(&BASE);
}

/// The stack's form of an instant.
pub fn to_std(at: Instant) -> std::time::Instant {
    *BASE + std::time::Duration::from_nanos(at.as_nanos())
}

/// The instant that the stack means; what would be before the beginning or beyond the end of time is that beginning or
/// end.
pub fn from_std(at: std::time::Instant) -> Instant {
    Instant::from_nanos(saturating(at.saturating_duration_since(*BASE)))
}

/// A time span of the stack.
pub fn duration(span: std::time::Duration) -> Duration {
    Duration::from_nanos(saturating(span))
}

/// A time span for the stack.
pub fn std_duration(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

fn saturating(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_go_there_and_back_to_the_nanosecond() {
        for nanoseconds in [0, 1, 999_999_999, 1_000_000_000, 3_600_000_000_001, u64::MAX] {
            let at = Instant::from_nanos(nanoseconds);
            assert_eq!(from_std(to_std(at)), at);
            assert_eq!(duration(to_std(at) - to_std(Instant::ZERO)).as_nanos(), nanoseconds);
            assert_eq!(duration(std_duration(Duration::from_nanos(nanoseconds))).as_nanos(), nanoseconds);
        }
        assert_eq!(to_std(Instant::from_nanos(7)) - to_std(Instant::from_nanos(5)), std::time::Duration::from_nanos(2));
    }

    #[test]
    fn what_lies_outside_of_time_is_its_edge() {
        let far = to_std(Instant::NEVER) + std::time::Duration::from_secs(5);
        assert_eq!(from_std(far), Instant::NEVER);
        if let Some(before) = to_std(Instant::ZERO).checked_sub(std::time::Duration::from_nanos(1)) {
            assert_eq!(from_std(before), Instant::ZERO);
        }
    }
}
