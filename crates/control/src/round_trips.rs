//! Accumulated round-trip times of connections, reported as their mean.

use fullpipe_units::Duration;
use std::sync::{Arc, Mutex, PoisonError};

/// Sum and count of the smoothed round-trip times, sampled at each acknowledged packet. Clones share the samples.
#[derive(Clone, Debug, Default)]
pub struct RttStatistics(Arc<Mutex<(u128, u64)>>);

impl RttStatistics {
    pub(crate) fn add(&self, smoothed: Duration) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = (sum.0 + u128::from(smoothed.as_nanos()), sum.1 + 1);
    }

    /// Mean of all samples; `None` before the first.
    pub fn mean(&self) -> Option<Duration> {
        let (sum, count) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (count > 0).then(|| Duration::from_nanos(u64::try_from(sum / u128::from(count)).unwrap_or(u64::MAX)))
    }
}
