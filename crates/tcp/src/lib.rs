//! TCP as a state machine without input or output: segments, the time and an application's calls come in; segments,
//! deadlines and events come out (RFC 9293).

mod config;
mod connection;

pub use config::{Config, LossDetection};
pub use connection::{Connection, Inspect, State, Statistics, Transmit};
