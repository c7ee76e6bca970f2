//! All tests of the crate in one binary, which saves building and linking one for each file.

mod bdp_limits;
mod claims;
mod clocks;
mod common;
mod directions;
mod disk;
mod expectations;
mod files_of_scenarios;
mod language;
mod late;
mod matrix;
mod pages;
mod publications;
mod replications;
mod settings;
mod shards;
mod sweep;
mod tcp_vs_udp;
