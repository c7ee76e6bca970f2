//! The auditors against a small network that is right, and against the same network with one thing wrong.

mod links;
mod packets;
mod properties;
mod tcp;
mod world;
