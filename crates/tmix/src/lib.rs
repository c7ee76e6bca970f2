//! Connection vectors of Tmix: their formats, the load that they offer, their shuffle to a target load, and synthetic traces.
//!
//! ```text
//! text -> Reader -> ConnectionVector -> write
//! Indexed (a file) | Synthetic | InMemory: Trace -> find_target -> Plan -> Schedule::stream -> connections of a run
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
pub use generate::{Played, Synthetic};
pub use line::{LARGEST_ADU_BYTES, LARGEST_WINDOW_BYTES, LONGEST_LINE_BYTES, LONGEST_TIME_US, MOST_ADUS};
pub use load::{Direction, Overhead};
pub use read::Reader;
pub use shuffle::{Order, Prefill, Schedule, Scheduled};
pub use target::{Attempt, Plan, Suite, find_target};
pub use trace::{InMemory, Indexed, Renamed, Trace};
pub use vector::{Adu, ConnectionVector, Kind, PerSide, Side};
pub use write::{Format, write};
