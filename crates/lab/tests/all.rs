//! All tests of the crate in one binary, which saves building and linking a binary per file.

mod access_networks;
mod aqm;
mod bbr;
mod common;
mod control_keys;
mod cost;
mod declared;
mod delays;
mod determinism;
mod directions;
mod disciplines;
mod events;
mod faults;
#[path = "../../schema/tests/least/mod.rs"]
mod least;
mod links;
mod loss_response;
mod lte;
mod measurement;
mod metrics;
mod nat;
mod ns3;
mod plugins;
mod qlog;
mod quic;
mod quic_model;
mod records;
mod replications;
mod symmetry;
mod tmix;
mod traces;
mod tunnels;
mod vegas;
mod warnings;
mod web;
mod workloads;
