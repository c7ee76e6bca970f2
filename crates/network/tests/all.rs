//! All tests of the crate in one binary, which avoids building and linking one binary per file.

mod audited;
mod bursts;
mod bytes;
mod common;
mod declared_disciplines;
mod declared_impairments;
mod ethernet;
mod fragments;
mod fusion;
mod impairments;
mod link;
mod medium;
mod nat;
mod published;
mod queueing_theory;
mod routing;
mod selection;
mod sharing;
