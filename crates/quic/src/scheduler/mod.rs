//! Stream schedulers, which select the stream that sends next.
//!
//! A [`Scheduler`] is called for each STREAM frame if more than one stream has data to send. A frame contains the first
//! waiting bytes of its stream: lost bytes, then new bytes, each in stream order.
//!
//! **Source.** FIFO, PFIFO and EDF are those of "Extending the ns-3 QUIC Module" (MSWiM 2020), with the paper's two
//! treatments of lost data ([`RetransmissionOrder`]). Priorities are those of RFC 9218 section 10.
//!
//! The file of each scheduler declares its name and its keys. A new scheduler needs a file next to `fifo.rs` and two
//! lines here.

mod edf;
mod fair;
mod fifo;
mod priority;
mod round_robin;

pub use edf::Edf;
pub use fair::WeightedFair;
pub use fifo::{Fifo, Pfifo};
pub use priority::ExtensiblePriorities;
pub use round_robin::RoundRobin;

use fullpipe_schema::component::{
    Catalog, Component, DynPartialEq, choice_names, fields, variant_field_count, variants,
};
use fullpipe_schema::{Choice, Field, Variant};
use fullpipe_transport::Priority;
use fullpipe_units::Instant;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The schedulers, in the order of lists and of the reference page.
const ALL: &[&SchedulerComponent] =
    &[&round_robin::ROUND_ROBIN, &fifo::FIFO, &fifo::PFIFO, &edf::EDF, &fair::WEIGHTED, &priority::PRIORITIES];

/// The catalogue of all schedulers.
pub static SCHEDULERS: Catalog<StreamScheduler, ()> = Catalog { key: "scheduler", components: &[ALL] };

const VARIANTS: [Variant; ALL.len()] = variants(&[ALL]);

/// The values of the key that selects a scheduler.
pub static NAMES: [Choice; ALL.len()] = choice_names(&VARIANTS);

/// The keys of the schedulers except the name. They are in the same scenario table as the name.
pub static KEYS: [Field; variant_field_count(&VARIANTS)] = fields(&VARIANTS);

/// A scheduler as a component.
pub type SchedulerComponent = Component<StreamScheduler, ()>;

/// The settings of any scheduler.
#[derive(Clone, Debug)]
pub struct StreamScheduler(Arc<dyn SchedulerSettings>);

impl StreamScheduler {
    /// Wraps the settings of one scheduler.
    pub fn new(settings: impl SchedulerSettings) -> Self {
        StreamScheduler(Arc::new(settings))
    }

    /// Creates a scheduler with these settings.
    pub fn create(&self) -> Box<dyn Scheduler> {
        self.0.create()
    }
}

impl PartialEq for StreamScheduler {
    fn eq(&self, other: &Self) -> bool {
        self.0.dyn_eq(&*other.0 as &dyn Any)
    }
}

/// The settings of a scheduler. Each endpoint of a connection creates its own scheduler from them.
pub trait SchedulerSettings: DynPartialEq + fmt::Debug + Send + Sync {
    /// Creates a scheduler with these settings.
    fn create(&self) -> Box<dyn Scheduler>;
}

impl<T: Scheduler + Clone + PartialEq + Sync + 'static> SchedulerSettings for T {
    fn create(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

/// A stream that has data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The stream ID.
    pub stream: u64,
    /// The priority that the application has set.
    pub priority: Priority,
    /// When the first waiting byte was written; see [`Scheduler::uses_write_times`].
    pub written_at: Instant,
    /// The position of this write in the order of all writes on the connection. Successive writes to one stream at the
    /// same instant share a position.
    pub order: u64,
    /// Whether the first waiting byte was sent before and declared lost.
    pub lost: bool,
}

/// Selects the stream that sends next.
pub trait Scheduler: fmt::Debug + Send {
    /// The name of the scheduler.
    fn name(&self) -> &'static str;

    /// Returns the index of the candidate that sends next. There are at least two candidates, in the order of their
    /// IDs.
    fn choose(&mut self, candidates: &[Candidate]) -> usize;

    /// Whether the scheduler uses [`Candidate::written_at`] or [`Candidate::order`]. These fields are recorded only if
    /// it does. A frame then does not extend past the end of a write to its stream.
    fn uses_write_times(&self) -> bool {
        false
    }

    /// Records that this number of bytes of a stream is sent. Called for each frame, even if the stream was the only
    /// candidate.
    fn on_sent(&mut self, _stream: u64, _priority: &Priority, _bytes: u64) {}

    /// Records that a stream was removed.
    fn on_closed(&mut self, _stream: u64) {}
}

/// When lost data is retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetransmissionOrder {
    /// Before all other data, in the order of stream IDs.
    #[default]
    First,
    /// When the scheduler selects its stream, as if the data had not been sent.
    Scheduled,
}

/// The index of the candidate with the smallest key; the first of several with equal keys.
fn first_by<K: Ord>(candidates: &[Candidate], key: impl Fn(&Candidate) -> K) -> usize {
    candidates
        .iter()
        .enumerate()
        .min_by_key(|(index, candidate)| (key(candidate), *index))
        .map_or(0, |(index, _)| index)
}

/// The index of the candidate after the stream that was selected last.
fn next_after(candidates: &[Candidate], last: Option<u64>) -> usize {
    let Some(last) = last else { return 0 };
    candidates.iter().position(|candidate| candidate.stream > last).unwrap_or(0)
}
