//! A QUIC model as a state machine without I/O and cryptography (RFC 9000, 9002, 9221; draft-ietf-quic-ack-frequency).
//! Its inputs are datagrams of plain values, the time and the application's calls. Its outputs are datagrams, deadlines
//! and events.
//!
//! Sizes are those on the wire: every header, frame, padding and tag has its length, and datagrams are coalesced and
//! padded according to the RFCs. Handshake messages have lengths ([`HandshakeSizes`]) but no contents.
//!
//! Start with [`Connection`], which opens and closes a connection and receives datagrams. `output.rs` sends packets;
//! `acknowledge.rs` processes acknowledgments and timeouts. The two sides of a packet number space are `space.rs` (sent
//! packets) and `received.rs` (received packets). `congestion.rs` contains congestion control, `rtt.rs` its round-trip
//! time, and `mtu.rs` the search for the largest datagram. Streams are in `stream.rs` (one stream), `slots.rs` (their
//! storage) and `streams.rs` (all streams, with their limits); [`scheduler`] selects the stream that sends next.
//! `opening.rs` contains the handshake, and `migration.rs` handles changes of addresses.

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
pub use connection::{Connection, ZeroRttEntry};
pub use input::acknowledged_ranges;
pub use output::{DatagramContents, NextDatagram, Transmit};
pub use settings::Settings;
pub use status::{LostPacket, SenderSnapshot, State, Statistics};

/// Size of the record in bytes that a connection allocates for each outstanding packet.
pub const PACKET_RECORD_BYTES: usize = size_of::<space::SentPacket>();
/// Size of the state in bytes that a connection allocates for each of its streams.
pub const STREAM_BYTES: usize = size_of::<stream::Stream>();
