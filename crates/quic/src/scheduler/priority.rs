//! Extensible priorities (RFC 9218 section 10): the most urgent streams send first. Among those of equal urgency,
//! non-incremental streams send one after another in the order of IDs. Incremental streams follow and take turns.

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler, next_after};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_transport::Priority;

pub(super) static PRIORITIES: SchedulerComponent = Component {
    declaration: Declaration {
        name: "priorities",
        source: "RFC 9218",
        text: "by urgency (RFC 9218).",
        ..Declaration::EMPTY
    },
    read: |_, ()| Ok(StreamScheduler::new(ExtensiblePriorities::default())),
};

/// A scheduler with extensible priorities. It stores the incremental stream that was selected last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensiblePriorities {
    last: Option<u64>,
}

impl Scheduler for ExtensiblePriorities {
    fn name(&self) -> &'static str {
        PRIORITIES.declaration.name
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        let urgency = candidates.iter().map(|candidate| candidate.priority.urgency).min().unwrap_or(0);
        let urgent = |candidate: &Candidate| candidate.priority.urgency == urgency;
        let whole = candidates.iter().position(|candidate| urgent(candidate) && !candidate.priority.incremental);
        whole.unwrap_or_else(|| {
            let after = next_after(candidates, self.last);
            let in_turn = (after..candidates.len()).chain(0..after);
            in_turn.into_iter().find(|index| urgent(&candidates[*index])).unwrap_or(0)
        })
    }

    fn on_sent(&mut self, stream: u64, priority: &Priority, _bytes: u64) {
        if priority.incremental {
            self.last = Some(stream);
        }
    }
}
