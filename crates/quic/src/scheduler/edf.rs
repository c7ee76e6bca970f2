//! Earliest deadline first: each byte is wanted a latency after it was written, which is its stream's own or a common one.

use super::{Candidate, Scheduler, first_by};
use fullpipe_units::Duration;

/// The earliest deadline first; of equal ones, the smallest stream id.
#[derive(Debug)]
pub(super) struct Edf {
    latency: Duration,
}

impl Edf {
    pub(super) fn new(latency: Duration) -> Edf {
        Edf { latency }
    }
}

impl Scheduler for Edf {
    fn name(&self) -> &'static str {
        "edf"
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        first_by(candidates, |candidate| {
            candidate.written_at.saturating_add(candidate.priority.latency.unwrap_or(self.latency))
        })
    }

    fn uses_write_times(&self) -> bool {
        true
    }
}
