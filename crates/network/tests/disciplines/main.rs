//! Queue disciplines against the pseudo-code and the figures of their sources.
//!
//! `drive` hands random arrivals and departures to a discipline and holds what every discipline must: each packet comes
//! out once or is dropped once, in order within its flow, and counts are right. Each other file has an oracle written
//! from the source's listing alone, and step responses whose expected course stands beside the number.

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
