//! First in, first out: in the order in which bytes were written, whatever their stream; and with priority by stream id.

use super::{Candidate, Scheduler, first_by};

/// In the order of writing.
#[derive(Debug)]
pub(super) struct Fifo;

impl Scheduler for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        first_by(candidates, |candidate| candidate.order)
    }

    fn uses_write_times(&self) -> bool {
        true
    }
}

/// The smallest id first: nothing of a stream leaves while one with a smaller id has something to send.
#[derive(Debug)]
pub(super) struct Pfifo;

impl Scheduler for Pfifo {
    fn name(&self) -> &'static str {
        "pfifo"
    }

    fn choose(&mut self, _candidates: &[Candidate]) -> usize {
        0
    }
}
