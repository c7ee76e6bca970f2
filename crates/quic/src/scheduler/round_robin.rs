//! Round robin: each stream with data to send sends one frame in turn, in the order of IDs.

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler, next_after};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_transport::Priority;

pub(super) static ROUND_ROBIN: SchedulerComponent = Component {
    declaration: Declaration { name: "round-robin", text: "streams in turn.", ..Declaration::EMPTY },
    read: |_, ()| Ok(StreamScheduler::new(RoundRobin::default())),
};

/// A round-robin scheduler. It stores the stream that was selected last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRobin {
    last: Option<u64>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        ROUND_ROBIN.declaration.name
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        next_after(candidates, self.last)
    }

    fn on_sent(&mut self, stream: u64, _priority: &Priority, _bytes: u64) {
        self.last = Some(stream);
    }
}
