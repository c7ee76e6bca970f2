//! Tests of the auditors with a small correct network, and with the same network with one fault.

mod links;
mod packets;
mod properties;
mod tcp;
mod world;
