//! `http3 serve`.

use super::figures::Ledger;
use super::{ConnectionFigures, Control, Failure, Signals, farewell, run_error};
use crate::generated::{self, Generated};
use crate::tls::Identity;
use crate::{Directory, Tokio, endpoint, tls};
use fullpipe_control::RoundTrips;
use fullpipe_masque::configuration::Tunnel;
use fullpipe_masque::http3::{Body, Content, ContentError, Server};
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
    /// Certificate and key.
    pub identity: Identity,
    /// The directory whose files are served, if any are.
    pub root: Option<PathBuf>,
    /// Whether `/bytes/N` is answered with N bytes of a fixed sequence ([`generated`]).
    pub generate: bool,
    /// The QUIC connections.
    pub connection: Tunnel,
    /// Their congestion control.
    pub control: Control,
}

/// Bytes that need no file, else files.
struct Served {
    generate: bool,
    files: Option<Directory>,
}

impl Content for Served {
    fn open(&self, path: &str) -> Result<Box<dyn Body>, ContentError> {
        match (generated::length_at(path).filter(|_| self.generate), &self.files) {
            (Some(length), _) => Ok(Box::new(Generated::new(length))),
            (None, Some(files)) => files.open(path),
            (None, None) => Err(ContentError::NotFound),
        }
    }
}

/// Serves until the process is asked to end. `ready` hears where, `refused` of requests that got nothing. `told` hears the
/// figures of all connections so far whenever one ends, and at the end.
///
/// # Errors
/// If directory or certificate are bad, or the socket is not to be had.
pub async fn serve(
    options: Serve,
    ready: impl FnOnce(SocketAddr),
    refused: impl Fn(SocketAddr, u16, &str) + Send + Sync + 'static,
    told: impl Fn(ConnectionFigures) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let files = options
        .root
        .as_deref()
        .map(|root| Directory::new(root).map_err(|error| Failure::Usage(format!("{}: {error}", root.display()))));
    let content = Served { generate: options.generate, files: files.transpose()? };
    let tls = tls::server(&options.identity).map_err(|error| Failure::Usage(error.to_string()))?;
    // Each connection gets settings of its own, since each has round-trip times of its own.
    let transport =
        move |round_trips: &RoundTrips| options.control.of(&options.connection, round_trips).transport(REQUESTS);
    let endpoint = endpoint::server(&Tokio, options.listen, tls.clone(), transport(&RoundTrips::default()))
        .map_err(run_error("cannot listen"))?;
    let address = endpoint.local_addr().map_err(run_error("cannot listen"))?;
    let server = Server::new(Arc::new(Tokio), Arc::new(content), refused);
    let ledger = Arc::new(Ledger::new(told));
    let (serving, its) = (endpoint.clone(), Arc::clone(&ledger));
    let task = tokio::spawn(async move {
        while let Some(incoming) = serving.accept().await {
            let (server, ledger, round_trips) = (server.clone(), Arc::clone(&its), RoundTrips::default());
            let mut configuration = tls.clone();
            configuration.transport_config(Arc::new(transport(&round_trips)));
            tokio::spawn(async move {
                let client = incoming.remote_address();
                let Ok(connecting) = incoming.accept_with(Arc::new(configuration)) else { return };
                let Ok(connection) = connecting.await else { return };
                let closed = connection.on_closed();
                let number = ledger.open(connection.weak_handle(), round_trips);
                // A connection that ends in an error ends all the same.
                let _ = server.serve_connection(client, connection).await;
                ledger.close(number, &closed.await.stats);
            });
        }
    });
    let mut signals = Signals::new()?;
    ready(address);
    signals.asked_to_end().await;
    farewell(&endpoint).await;
    task.abort();
    ledger.tell();
    Ok(())
}
