//! `http3 serve`.

use super::{Failure, Signals, farewell, run_error};
use crate::{Directory, Tokio, endpoint, tls};
use fullpipe_masque::configuration::Tunnel;
use fullpipe_masque::http3::Server;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Requests that a client may have open at a time.
const REQUESTS: u32 = 100;

/// What the user gave.
#[derive(Clone, Debug)]
pub struct Serve {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// The directory whose files are served.
    pub root: PathBuf,
    /// The QUIC connections.
    pub connection: Tunnel,
}

/// Serves until the process is asked to end. `ready` hears where, `refused` of requests that got no file.
///
/// # Errors
/// If directory or certificate are bad, or the socket is not to be had.
pub async fn serve(
    options: Serve,
    ready: impl FnOnce(SocketAddr),
    refused: impl Fn(SocketAddr, u16, &str) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let content = Directory::new(&options.root)
        .map_err(|error| Failure::Usage(format!("{}: {error}", options.root.display())))?;
    let tls = tls::server(&options.certificate, &options.key).map_err(|error| Failure::Usage(error.to_string()))?;
    let transport = options.connection.transport(REQUESTS);
    let endpoint = endpoint::server(&Tokio, options.listen, tls, transport).map_err(run_error("cannot listen"))?;
    let address = endpoint.local_addr().map_err(run_error("cannot listen"))?;
    let server = Server::new(Arc::new(Tokio), Arc::new(content), refused);
    let serving = endpoint.clone();
    let task = tokio::spawn(async move { server.serve(serving).await });
    let mut signals = Signals::new()?;
    ready(address);
    signals.asked_to_end().await;
    farewell(&endpoint).await;
    task.abort();
    Ok(())
}
