//! Packets of real programs: parsed, changed, answered and fragmented. Results are compared with manual calculations
//! and with an independent computation of every checksum, including packets with damaged bytes.

#![allow(missing_docs, reason = "a test")]

mod build;
mod fragments;
mod icmp;
mod neighbour;
mod parse;
mod rewrite;
mod summary;
