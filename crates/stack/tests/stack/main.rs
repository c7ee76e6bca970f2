//! The stack over a path of the test's own: two ends, a rate, a delay, and whatever happens to datagrams on the way.

mod host;
mod path;
mod tls;
mod transfer;
