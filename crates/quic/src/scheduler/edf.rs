//! Earliest deadline first: the deadline of a byte is the time of its write plus the latency of the stream, or plus a
//! common default.

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler, first_by};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, FieldKind};
use fullpipe_units::Duration;

pub(super) static EDF: SchedulerComponent = Component {
    declaration: Declaration {
        name: "edf",
        source: "Extending the ns-3 QUIC Module (MSWiM 2020)",
        text: "the byte with the earliest deadline.",
        fields: &[&[LATENCY]],
        ..Declaration::EMPTY
    },
    read: |reader, ()| Ok(StreamScheduler::new(Edf { latency: reader.tree.duration(LATENCY.key) })),
};

const LATENCY: Field = Field::inherited(
    "scheduler_latency",
    FieldKind::DURATION,
    "100ms",
    "Time from the write of a byte to its deadline, for streams without their own latency; for `edf`.",
);

/// Earliest deadline first. Among equal deadlines, the smallest stream ID is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edf {
    /// The latency of streams whose priority does not specify one.
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
