//! Tests of the stack over a simple path: two ends, a rate, a delay, and drops or extra delays of chosen datagrams.

mod host;
mod path;
mod tls;
mod transfer;
