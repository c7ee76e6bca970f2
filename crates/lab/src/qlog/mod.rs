//! The qlog file of a run. It contains the events of every TCP and QUIC connection at both endpoints, and of the queues
//! between them, with one clock.
//!
//! **No logging code in the transports.** [`LoggingWorld`] wraps the hosts of a run with a log. It writes each received
//! packet before the hosts handle it. After each event, it inspects the connections that may have changed, and writes
//! their losses, state and metrics. A tap reports packets that leave a host ([`fullpipe_network::Tap::handed_over`]),
//! an observer reports links ([`links`]), and a packet log reports packets of the QUIC stack
//! ([`crate::stack::journal`]). A run without a log executes none of this code.
//!
//! **One file.** The events at each endpoint of a connection form a group (`group_id`): `FLOW/client` and
//! `FLOW/server`. The events of queues are in the same file. The drop of a packet, its detection as lost, and the
//! reaction of the congestion controller are therefore on one time axis.

mod connection;
mod datagram;
mod frames;
mod links;
mod metrics;
mod recorder;
mod tcp;
mod words;

pub(crate) use recorder::{LoggingWorld, QlogRecorder};
