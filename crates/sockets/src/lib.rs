//! Real sockets for the code of `fullpipe-masque`: its environment on tokio, certificates, endpoints, files and other
//! content.
//!
//! Apart from the command, this is the only crate that uses tokio and reads the machine's clock.

mod connected;
pub mod endpoint;
mod environment;
mod files;
pub mod generated;
pub mod http2;
mod icmp;
mod padded;
pub mod programs;
pub mod secret;
mod stream;
pub mod tls;

pub use environment::TokioEnvironment;
pub use files::DirectoryContent;
