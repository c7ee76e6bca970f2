//! Earliest deadline first: each byte is wanted a latency after it was written, which is its stream's own or a common one.

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler, first_by};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, Kind};
use fullpipe_units::Duration;

pub(super) static EDF: SchedulerComponent = Component {
    declaration: Declaration {
        name: "edf",
        source: "Extending the ns-3 QUIC Module (MSWiM 2020)",
        text: "the byte whose deadline comes first.",
        fields: &[&[LATENCY]],
        ..Declaration::EMPTY
    },
    read: |reader, ()| Ok(StreamScheduler::new(Edf { latency: reader.tree.duration(LATENCY.key) })),
};

const LATENCY: Field = Field::inherited(
    "scheduler_latency",
    Kind::DURATION,
    "100ms",
    "How long after it was written a byte is wanted where its stream says nothing; for `edf`.",
);

/// The earliest deadline first; of equal ones, the smallest stream id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edf {
    /// Of streams that have none of their own.
    pub latency: Duration,
}

impl Scheduler for Edf {
    fn name(&self) -> &'static str {
        EDF.declaration.name
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
