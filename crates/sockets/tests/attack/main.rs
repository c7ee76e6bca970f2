//! Attacks on the proxy by a client that writes HTTP/3 by hand: nothing of the code under test decides what it sends,
//! and every code expected of the proxy has its paragraph beside it. While each attack goes on, a tunnel of somebody
//! else is served.

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
