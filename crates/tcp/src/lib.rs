//! TCP as a state machine without I/O (RFC 9293). Its inputs are segments, the time and an application's calls; its
//! outputs are segments, deadlines and events.
//!
//! Start with [`Connection`], which opens and closes the connection and validates segments. The sender determines which
//! segments may be sent (`sender.rs`) and processes acknowledgments (`acknowledge.rs`). `scoreboard.rs` records
//! outstanding data, `recovery.rs` detects losses and responds to them, and `path_mtu.rs` determines the segment size.
//! The receiver is in `receiver.rs`, and the growth of its buffer in `tuning.rs`. Stream offsets have 64 bits;
//! `sequence.rs` converts them to sequence numbers.

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

pub use config::{Config, EcnFeedback, EcnMode, KeepAlive, LossDetection};
pub use connection::{Burst, Connection, Cookie, FastOpenEntry, Segment, SegmentContents, Transmit};
pub use settings::Settings;
pub use status::{LostSegment, SenderSnapshot, State, Statistics};

/// Memory of a connection per outstanding segment, in bytes.
pub const SEGMENT_RECORD_BYTES: usize = size_of::<scoreboard::SegmentRecord>();
