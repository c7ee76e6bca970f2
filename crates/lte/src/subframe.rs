//! Subframes of a millisecond: their numbers and their beginnings.

use fullpipe_units::{Duration, Instant};

/// The beginning of a subframe.
pub(crate) fn start(subframe: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(subframe)
}

/// The first subframe that begins at `at` or later.
pub(crate) fn subframe_from(at: Instant) -> u64 {
    at.as_nanos().div_ceil(1_000_000)
}
