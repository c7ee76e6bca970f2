//! All tests of the crate in one binary, which saves the compilation and linking of one binary per file.

mod air;
mod behaviour;
mod bookkeeping;
mod common;
mod connection;
mod fading_begins;
mod lazy;
mod machine;
mod outer_loop;
#[path = "common/traces.rs"]
mod traces;
mod vectors;
