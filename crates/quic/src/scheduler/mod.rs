//! Which stream sends next.
//!
//! A [`Scheduler`] is asked for each STREAM frame when more than one stream has something to send. What a frame carries of
//! a stream is always that stream's first bytes that wait: lost ones before new ones, each in order.
//!
//! **Source.** FIFO, PFIFO and EDF are those of "Extending the ns-3 QUIC Module" (MSWiM 2020), with the two ways to treat
//! lost data as the paper means them ([`Retransmission`]); RFC 9218 section 10 for priorities.
//!
//! Its file declares each scheduler with its keys; a new one is a file beside `fifo.rs` and two lines here.

mod edf;
mod fair;
mod fifo;
mod priority;
mod round_robin;

pub use edf::Edf;
pub use fair::Weighted;
pub use fifo::{Fifo, Pfifo};
pub use priority::Priorities;
pub use round_robin::RoundRobin;

use fullpipe_schema::component::{Catalogue, Comparable, Component, field_count, fields, names, variants};
use fullpipe_schema::{Choice, Field, Variant};
use fullpipe_transport::Priority;
use fullpipe_units::Instant;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The schedulers, in the order of lists and of the reference page.
const ALL: &[&SchedulerComponent] =
    &[&round_robin::ROUND_ROBIN, &fifo::FIFO, &fifo::PFIFO, &edf::EDF, &fair::WEIGHTED, &priority::PRIORITIES];

/// Every scheduler.
pub static SCHEDULERS: Catalogue<StreamScheduler, ()> = Catalogue { key: "scheduler", components: &[ALL] };

const VARIANTS: [Variant; ALL.len()] = variants(&[ALL]);

/// The values of the key that names one.
pub static NAMES: [Choice; ALL.len()] = names(&VARIANTS);

/// Their further keys, which are in the same table.
pub static KEYS: [Field; field_count(&VARIANTS)] = fields(&VARIANTS);

/// A scheduler as a component.
pub type SchedulerComponent = Component<StreamScheduler, ()>;

/// The settings of a scheduler, whichever it is.
#[derive(Clone, Debug)]
pub struct StreamScheduler(Arc<dyn SchedulerSettings>);

impl StreamScheduler {
    /// The scheduler with these settings.
    pub fn new(settings: impl SchedulerSettings) -> Self {
        StreamScheduler(Arc::new(settings))
    }

    /// A scheduler with these settings.
    pub fn create(&self) -> Box<dyn Scheduler> {
        self.0.create()
    }
}

impl PartialEq for StreamScheduler {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0 as &dyn Any)
    }
}

/// The settings of a scheduler: one that has chosen nothing yet, of which each end of a connection has a copy.
pub trait SchedulerSettings: Comparable + fmt::Debug + Send + Sync {
    /// A scheduler with these settings.
    fn create(&self) -> Box<dyn Scheduler>;
}

impl<T: Scheduler + Clone + PartialEq + Sync + 'static> SchedulerSettings for T {
    fn create(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

/// A stream that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
