//! All tests of the crate in one binary, which saves building and linking a binary per file.

mod closing;
mod common;
mod handshake;
mod path_mtu;
mod rates;
mod receiving;
mod recovery;
mod requirements;
mod script;
mod scripts;
mod sending;
mod table;
mod tls;
mod transfer;
mod undo;
