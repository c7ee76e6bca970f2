//! Queue disciplines compared with the pseudocode and the figures of their sources.
//!
//! `drive` applies random arrivals and departures to a discipline and checks the invariants of every discipline: each packet
//! departs once or is dropped once, in order within its flow, and counters are correct. Each other file has an oracle written
//! only from the source's listing, and step responses with the derivation of the expected values.

#![allow(missing_docs, unreachable_pub, reason = "a test")]

mod codel;
mod drive;
mod dual_pi2;
mod fluid;
mod loops;
mod network;
mod pie;
mod red;
mod simple;
