//! QUIC as a state machine without input or output, and without cryptography: datagrams of plain values, the time and an
//! application's calls come in; datagrams, deadlines and events come out (RFC 9000, 9002, 9221; draft-ietf-quic-ack-frequency).
//!
//! Sizes are those of the wire: every header, frame, padding and tag has its length, and datagrams are coalesced and padded
//! as the RFCs say. What the handshake's messages say is not there, but their lengths are ([`HandshakeSizes`]).
//!
//! Read [`Connection`] first: it opens, receives and closes. `output.rs` says what leaves; `acknowledge.rs` what an
//! acknowledgement or a time-out changes. A packet number space's two sides are `space.rs` (what was sent) and
//! `received.rs` (what has come); `congestion.rs` is the path as congestion control sees it, `rtt.rs` its clock, `mtu.rs`
//! how large a datagram may be. Streams are `stream.rs` (one), `slots.rs` (where they lie) and `streams.rs` (all of them, with what they may send);
//! [`scheduler`] chooses among them. `opening.rs` is the handshake, `migration.rs` what happens when an address changes.

#![allow(
    clippy::box_collection,
    reason = "what few connections need takes one word in those that do not, with 10 000 of them in memory"
)]

mod acknowledge;
mod config;
mod congestion;
mod connection;
mod input;
mod migration;
mod mtu;
mod opening;
mod output;
mod received;
mod rtt;
pub mod scheduler;
pub mod settings;
mod slots;
mod space;
mod spare;
mod status;
mod stream;
mod streams;

pub use config::{AckFrequency, Config, HandshakeSizes};
pub use connection::{Connection, Entry};
pub use input::acknowledged_ranges;
pub use output::{Beside, NextDatagram, Transmit};
pub use settings::Settings;
pub use status::{Inspect, LostPacket, State, Statistics};

/// Memory that a connection needs for each packet that is outstanding.
pub const PACKET_RECORD_BYTES: usize = size_of::<space::Sent>();
/// Memory that a connection needs for each of its streams.
pub const STREAM_BYTES: usize = size_of::<stream::Stream>();
