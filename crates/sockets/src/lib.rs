//! Real sockets for the code of `fullpipe-masque`: its environment on tokio, certificates, endpoints, files and other content.
//!
//! This is the only crate, beside the command, that knows tokio and reads the machine's clock.

mod connected;
pub mod endpoint;
mod environment;
mod files;
pub mod generated;
pub mod programs;
pub mod tls;

pub use environment::Tokio;
pub use files::Directory;
