//! Which stream sends next.
//!
//! A [`Scheduler`] is asked for each STREAM frame when more than one stream has something to send. What a frame carries of
//! a stream is always that stream's first bytes that wait: lost ones before new ones, each in order.
//!
//! **Source.** FIFO, PFIFO and EDF are those of "Extending the ns-3 QUIC Module" (MSWiM 2020), with the two ways to treat
//! lost data as the paper means them ([`Retransmission`]); RFC 9218 section 10 for priorities.
//!
//! A new one is a file beside `fifo.rs`, a name in [`Discipline`] and a line in [`Discipline::create`].

mod edf;
mod fair;
mod fifo;
mod priority;
mod round_robin;

use fullpipe_transport::Priority;
use fullpipe_units::{Duration, Instant};
use std::fmt;

/// A stream that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Stream id.
    pub stream: u64,
    /// What the application said of it.
    pub priority: Priority,
    /// When the first byte that waits was written; see [`Scheduler::uses_write_times`].
    pub written_at: Instant,
    /// Its place in the order in which all streams of the connection were written to. Bytes that were written to one stream in
    /// a row, at the same instant, have the same.
    pub order: u64,
    /// Whether that byte was sent before and lost.
    pub lost: bool,
}

/// Chooses among streams.
pub trait Scheduler: fmt::Debug + Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The index of the candidate that sends next. There are at least two of them, in the order of their ids.
    fn choose(&mut self, candidates: &[Candidate]) -> usize;

    /// Whether it reads [`Candidate::written_at`] or [`Candidate::order`], which are known only then. A frame then ends where a
    /// write to its stream ended.
    fn uses_write_times(&self) -> bool {
        false
    }

    /// So many bytes of a stream leave, whether it was chosen or alone.
    fn on_sent(&mut self, _stream: u64, _priority: &Priority, _bytes: u64) {}

    /// A stream is over.
    fn on_closed(&mut self, _stream: u64) {}
}

/// The schedulers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// In the order in which it was written.
    Fifo,
    /// The stream with the smallest id first.
    Pfifo,
    /// The byte first whose deadline comes first: when it was written, and its stream's latency, or this one.
    Edf(Duration),
    /// One frame of each stream in turn.
    #[default]
    RoundRobin,
    /// Bytes in proportion to the weights of streams.
    Weighted,
    /// Urgency, then in order of ids, or in turn where streams are incremental (RFC 9218).
    Priorities,
}

impl Discipline {
    /// A scheduler of this kind.
    pub fn create(self) -> Box<dyn Scheduler> {
        match self {
            Discipline::Fifo => Box::new(fifo::Fifo),
            Discipline::Pfifo => Box::new(fifo::Pfifo),
            Discipline::Edf(latency) => Box::new(edf::Edf::new(latency)),
            Discipline::RoundRobin => Box::new(round_robin::RoundRobin::default()),
            Discipline::Weighted => Box::new(fair::Weighted::default()),
            Discipline::Priorities => Box::new(priority::Priorities::default()),
        }
    }
}

/// When lost data is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retransmission {
    /// Before everything else, in the order of the losses' streams.
    #[default]
    First,
    /// When the scheduler chooses its stream, as if it had not been sent.
    Scheduled,
}

/// The index of the smallest key; of equal ones the first.
fn first_by<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> usize {
    candidates
        .iter()
        .enumerate()
        .min_by_key(|(index, candidate)| (key(candidate), *index))
        .map_or(0, |(index, _)| index)
}

/// The index of the candidate that follows the stream that had its turn last.
fn next_after(candidates: &[Candidate], last: Option<u64>) -> usize {
    let Some(last) = last else { return 0 };
    candidates.iter().position(|candidate| candidate.stream > last).unwrap_or(0)
}
