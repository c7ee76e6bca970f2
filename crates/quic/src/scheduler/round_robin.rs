//! Round robin: each stream that has something to send gets one frame in turn, in the order of ids.

use super::{Candidate, Scheduler, next_after};
use fullpipe_transport::Priority;

/// Whose turn it was last.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    last: Option<u64>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        next_after(candidates, self.last)
    }

    fn on_sent(&mut self, stream: u64, _priority: &Priority, _bytes: u64) {
        self.last = Some(stream);
    }
}
