//! First in, first out: data is sent in the order of its writes across all streams (`fifo`), or by stream ID (`pfifo`).

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler, first_by};
use fullpipe_schema::component::{Component, Declaration};

pub(super) static FIFO: SchedulerComponent = Component {
    declaration: Declaration {
        name: "fifo",
        source: "Extending the ns-3 QUIC Module (MSWiM 2020)",
        text: "in the order in which bytes were written.",
        ..Declaration::EMPTY
    },
    read: |_, ()| Ok(StreamScheduler::new(Fifo)),
};

pub(super) static PFIFO: SchedulerComponent = Component {
    declaration: Declaration {
        name: "pfifo",
        source: "Extending the ns-3 QUIC Module (MSWiM 2020)",
        text: "the stream with the smallest ID first.",
        ..Declaration::EMPTY
    },
    read: |_, ()| Ok(StreamScheduler::new(Pfifo)),
};

/// Sends data in the order of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo;

impl Scheduler for Fifo {
    fn name(&self) -> &'static str {
        FIFO.declaration.name
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        first_by(candidates, |candidate| candidate.order)
    }

    fn uses_write_times(&self) -> bool {
        true
    }
}

/// Smallest stream ID first: a stream sends only while no stream with a smaller ID has data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfifo;

impl Scheduler for Pfifo {
    fn name(&self) -> &'static str {
        PFIFO.declaration.name
    }

    fn choose(&mut self, _candidates: &[Candidate]) -> usize {
        0
    }
}
