//! TCP as a state machine without input or output: segments, the time and an application's calls come in; segments,
//! deadlines and events come out (RFC 9293).
//!
//! Read [`connection`](Connection) first: it opens, checks and closes. The sending half says what may leave
//! (`sender.rs`) and what an acknowledgement changes (`acknowledge.rs`), with what is outstanding in `scoreboard.rs`
//! how losses are found and answered in `recovery.rs`, and how large
//! segments may be in `path_mtu.rs`. The receiving half is `receiver.rs`, and
//! how its buffer grows `tuning.rs`. Offsets in the stream
//! are 64 bits wide inside; `sequence.rs` turns them into numbers on the wire.

mod acknowledge;
mod config;
mod connection;
mod ecn;
mod path_mtu;
mod quick_ack;
mod receiver;
mod recovery;
mod scoreboard;
mod sender;
mod sequence;
pub mod settings;
mod status;
#[cfg(test)]
mod tests;
mod tuning;
mod undo;

pub use config::{Config, Ecn, EcnFeedback, KeepAlive, LossDetection};
pub use connection::{Beside, Burst, Connection, Cookie, FastOpenEntry, Segment, Transmit};
pub use settings::Settings;
pub use status::{Inspect, LostSegment, State, Statistics};

/// Memory that a connection needs for each segment that is outstanding.
pub const SEGMENT_RECORD_BYTES: usize = size_of::<scoreboard::Segment>();
