//! Conversion between the stack's instants and Fullpipe's.
//!
//! The stack uses [`std::time::Instant`], which can be created only by adding to another instant. The machine's clock
//! is therefore read once per process. For the stack, a virtual instant is that reading plus its nanoseconds. For
//! Fullpipe's controls, a real instant is the time since that reading. The stack and the controls use only differences
//! of instants, which are exact. The reading therefore affects no result in virtual time, and runs in two processes are
//! bit-identical.

use fullpipe_units::{Duration, Instant};
use std::sync::LazyLock;

#[allow(
    clippy::disallowed_methods,
    reason = "there is no other way to get an instant; only differences to it are used"
)]
static BASE: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Reads the machine's clock unless the process has already done so. Real instants before the reading convert to
/// [`Instant::ZERO`].
pub fn begin() {
    LazyLock::force(&BASE);
}

/// Converts an instant to the type that the stack uses, [`std::time::Instant`].
pub fn to_std(at: Instant) -> std::time::Instant {
    *BASE + std::time::Duration::from_nanos(at.as_nanos())
}

/// Converts an instant of the stack. Instants out of range convert to [`Instant::ZERO`] or [`Instant::NEVER`].
pub fn from_std(at: std::time::Instant) -> Instant {
    Instant::from_nanos(saturating(at.saturating_duration_since(*BASE)))
}

/// Converts a duration of the stack. Durations out of range convert to the maximum.
pub fn duration_from_std(span: std::time::Duration) -> Duration {
    Duration::from_nanos(saturating(span))
}

/// Converts a duration to the type that the stack uses, [`std::time::Duration`].
pub fn duration_to_std(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

fn saturating(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_survive_both_conversions_to_the_nanosecond() {
        for nanoseconds in [0, 1, 999_999_999, 1_000_000_000, 3_600_000_000_001, u64::MAX] {
            let at = Instant::from_nanos(nanoseconds);
            assert_eq!(from_std(to_std(at)), at);
            assert_eq!(duration_from_std(to_std(at) - to_std(Instant::ZERO)).as_nanos(), nanoseconds);
            assert_eq!(duration_from_std(duration_to_std(Duration::from_nanos(nanoseconds))).as_nanos(), nanoseconds);
        }
        assert_eq!(to_std(Instant::from_nanos(7)) - to_std(Instant::from_nanos(5)), std::time::Duration::from_nanos(2));
    }

    #[test]
    fn instants_out_of_range_are_clamped() {
        let far = to_std(Instant::NEVER) + std::time::Duration::from_secs(5);
        assert_eq!(from_std(far), Instant::NEVER);
        if let Some(before) = to_std(Instant::ZERO).checked_sub(std::time::Duration::from_nanos(1)) {
            assert_eq!(from_std(before), Instant::ZERO);
        }
    }
}
