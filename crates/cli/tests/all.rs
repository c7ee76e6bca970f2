//! All tests of the crate in one binary, which reduces build and link time.

mod command;
mod declared;
mod evaluate;
mod expectations;
mod guidance;
mod messages;
mod report;
mod schema;
mod seeds;
mod shards;
mod tmix;
mod tunnels;
