//! qlog of a run: every connection, TCP and QUIC, at both its ends, and the queues between them, in one file on one axis of
//! time.
//!
//! **Nobody is asked to tell.** The hosts of a run that is logged are wrapped ([`Logged`]): whatever reaches them or wakes them
//! is written down and handed on, and after each such event, with the world standing still, the connections that it may have
//! concerned are looked at: what they found lost, their state, their window. What leaves a host is seen by a tap
//! ([`fullpipe_network::Tap::handed_over`]), links by an observer ([`links`]), packets of the real stack by its journal
//! ([`fullpipe_stack::journal`]). A run without a log has none of this in its code's way.
//!
//! **One file.** A connection has two ends, and what happened at each is a group of its own (`group_id`): `FLOW/client` and
//! `FLOW/server`. With the queues in the same file, a loss is seen where it was made, where it was found, and in what the
//! control made of it, without aligning anything.

mod connection;
mod datagram;
mod frames;
mod links;
mod metrics;
mod recorder;
mod tcp;
mod words;

pub(crate) use recorder::{Logged, Recorder};
