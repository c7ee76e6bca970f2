//! Connection vectors of Tmix: their formats, the load they offer, their shuffle to a load that is asked for, and
//! synthetic traces.
//!
//! ```text
//! text -> Reader -> ConnectionVector -> write
//! ```

mod draft;
mod error;
mod line;
mod read;
mod vector;
mod write;

pub use error::Error;
pub use line::{LARGEST_ADU_BYTES, LARGEST_WINDOW_BYTES, LONGEST_LINE_BYTES, LONGEST_TIME_US, MOST_ADUS};
pub use read::Reader;
pub use vector::{Adu, ConnectionVector, Kind, PerSide, Side};
pub use write::{Format, write};
