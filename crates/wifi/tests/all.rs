//! All tests of the crate in one binary, which saves the compilation and linking of one binary per file.

mod block_ack;
mod bss;
mod channel;
mod common;
mod config;
mod contention;
mod exchange;
mod medium;
mod phy;
mod queueing;
mod rate_control;
mod traffic;
