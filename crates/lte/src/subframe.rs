//! Subframes of a millisecond: their numbers and start times.

use fullpipe_units::{Duration, Instant};

/// Returns the beginning of a subframe.
pub(crate) fn start(subframe: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(subframe)
}

/// Returns the first subframe that begins at `at` or later.
pub(crate) fn subframe_from(at: Instant) -> u64 {
    at.as_nanos().div_ceil(1_000_000)
}
