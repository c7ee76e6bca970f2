//! Types and functions that all crates use: instants, durations, rates, identifiers, named random streams,
//! distributions, and mathematical functions with bit-identical results on every machine.
//!
//! Time is a `u64` count of nanoseconds since the start of the run (up to 584 years). Bytes are plain `u64` in names
//! that end in `_bytes`. No code here reads a clock.

pub mod codepoint;
pub mod distribution;
pub mod id;
mod invalid;
pub mod math;
mod normal;
pub mod queue;
pub mod random;
pub mod rate;
pub mod time;
pub mod words;

pub use codepoint::EcnCodepoint;
pub use distribution::Distribution;
pub use id::{FlowId, LinkId, NodeId};
pub use invalid::ParameterError;
pub use queue::{BdpMultiple, LinkQueueLimit, QueueLimit};
pub use random::RandomStream;
pub use rate::Rate;
pub use time::{Duration, Instant};
