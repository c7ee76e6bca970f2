//! `masque proxy`.

use super::{Failure, Signals, farewell, metrics, run_error};
use crate::{Tokio, endpoint, tls};
use fullpipe_masque::configuration;
use fullpipe_masque::environment::Environment;
use fullpipe_masque::log::Log;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What the user gave.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// Where to tell metrics, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Everything else.
    pub settings: configuration::Proxy,
}

/// Serves until the process is asked to end. `ready` hears where.
///
/// # Errors
/// If the certificate is bad or the sockets are not to be had.
pub async fn proxy(
    options: Proxy,
    log: Arc<dyn Log>,
    ready: impl FnOnce(SocketAddr, Option<SocketAddr>),
) -> Result<(), Failure> {
    let tls = tls::server(&options.certificate, &options.key).map_err(|error| Failure::Usage(error.to_string()))?;
    let transport = options.settings.transport();
    let endpoint = endpoint::server(&Tokio, options.listen, tls, transport).map_err(run_error("cannot listen"))?;
    let address = endpoint.local_addr().map_err(run_error("cannot listen"))?;
    let environment: Arc<dyn Environment> = Arc::new(Tokio);
    let proxy = fullpipe_masque::proxy::Proxy::new(environment, options.settings, log);
    let metrics_address = match options.metrics {
        Some(address) => {
            Some(metrics::start(address, proxy.metrics()).await.map_err(run_error("cannot tell metrics"))?)
        }
        None => None,
    };
    let serving = endpoint.clone();
    let task = tokio::spawn(async move { proxy.serve(serving).await });
    let mut signals = Signals::new()?;
    ready(address, metrics_address);
    signals.asked_to_end().await;
    farewell(&endpoint).await;
    task.abort();
    Ok(())
}
