//! All tests of the crate in one binary, which saves building and linking one for each file.

mod command;
mod declared;
mod expectations;
mod guidance;
mod messages;
mod report;
mod schema;
mod seeds;
mod tmix;
mod tunnels;
