//! Tests of client, proxy and server on this machine's loopback interface.

mod abuse;
#[allow(dead_code, reason = "the other tests of this crate need the rest")]
mod house;
mod loops;
mod raw;
mod transfers;
mod tunnels;
#[allow(dead_code, reason = "the attacks need the rest")]
#[path = "../attack/wire.rs"]
mod wire;
