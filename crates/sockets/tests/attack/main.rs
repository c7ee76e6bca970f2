//! Attacks on the proxy by a client that builds HTTP/3 bytes itself, so the code under test does not determine what it
//! sends. Each expected code cites its section. During each attack, a tunnel of another client must remain usable.

#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../loopback/house.rs"]
mod house;

#[allow(dead_code, reason = "memory needs the rest")]
mod attacker;
mod control;
mod floods;
mod requests;
mod targets;
mod wire;
