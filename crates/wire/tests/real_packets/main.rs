//! Real programs' packets: looked at, changed, answered, cut. By hand, by an independent computation of every checksum,
//! and with damaged bytes of all kinds.

#![allow(missing_docs, reason = "a test")]

mod build;
mod fragments;
mod icmp;
mod neighbour;
mod parse;
mod rewrite;
mod summary;
