//! Attacks on the proxy by a client, and on the client by a proxy, that build HTTP/3 bytes themselves, so the code under
//! test does not determine what they send. Each expected code cites its section. During each attack, a tunnel of another client must remain usable.

#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../loopback/house.rs"]
mod house;

#[allow(dead_code, reason = "memory needs the rest")]
mod attacker;
mod control;
mod floods;
mod http2;
mod requests;
mod responses;
mod shutdown;
mod targets;
mod tcp;
mod wire;
