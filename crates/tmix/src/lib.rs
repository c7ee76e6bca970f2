//! Connection vectors of Tmix: their formats, the load that they offer, their shuffle to a target load, and synthetic
//! traces.
//!
//! ```text
//! text -> TraceReader -> ConnectionVector -> write_connection
//! IndexedTrace (a file) | SyntheticTrace | MemoryTrace: Trace -> find_scale -> ExperimentPlan
//!     -> Schedule::schedule_trace -> connections of a run
//! ```

mod draft;
mod error;
pub mod generate;
mod line;
pub mod load;
mod quantile;
mod read;
mod shuffle;
pub mod stats;
mod target;
mod trace;
mod vector;
mod write;

pub use error::Error;
pub use generate::{SyntheticTrace, TrafficEstimate};
pub use line::{MAX_ADU_BYTES, MAX_ADUS, MAX_LINE_BYTES, MAX_TIME_US, MAX_WINDOW_BYTES};
pub use load::{LoadDirection, Overhead};
pub use read::TraceReader;
pub use shuffle::{BinOrder, Prefill, Schedule, ScheduledConnections};
pub use target::{ExperimentPlan, ExperimentSpec, ScaleAttempt, find_scale};
pub use trace::{IndexedTrace, MemoryTrace, RenamedTrace, Trace};
pub use vector::{Adu, ConnectionKind, ConnectionVector, PerSide, Side};
pub use write::{TraceFormat, write_connection};
