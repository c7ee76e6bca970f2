//! Client, proxy and server on this machine's loopback.

mod abuse;
mod house;
mod raw;
mod transfers;
mod tunnels;
