//! Connections to hosts: to the first address of a host that responds.

use super::{ProgramError, run_error};
use crate::{TokioEnvironment, endpoint};
use fullpipe_masque::environment::Environment;
use fullpipe_masque::target::{Host, Target};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time limit for the response of the last address, followed by the limit for all earlier addresses.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_BEFORE_OTHERS: Duration = Duration::from_secs(2);

/// A connection and how it was established.
pub(super) struct EstablishedConnection {
    pub(super) endpoint: noq::Endpoint,
    pub(super) connection: noq::Connection,
    /// Time at which the first packet was sent.
    pub(super) begin: Instant,
}

/// Description of a peer to connect to.
#[derive(Clone)]
pub(super) struct PeerSettings<'a> {
    /// Name in error messages.
    pub(super) what: &'a str,
    /// Name in its certificate.
    pub(super) name: &'a str,
    pub(super) configuration: noq::ClientConfig,
}

impl PeerSettings<'_> {
    /// Connects to this address through an existing endpoint.
    pub(super) async fn reach_at(
        self,
        endpoint: noq::Endpoint,
        address: SocketAddr,
    ) -> Result<EstablishedConnection, ProgramError> {
        self.reach_in(endpoint, address, PATIENCE).await
    }

    async fn reach_in(
        self,
        endpoint: noq::Endpoint,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<EstablishedConnection, ProgramError> {
        let PeerSettings { what, name, configuration } = self;
        let begin = TokioEnvironment.now();
        let connecting = endpoint
            .connect_with(configuration, address, name)
            .map_err(|error| ProgramError::Usage(format!("{name}: {error}")))?;
        let connection = tokio::time::timeout(patience, connecting)
            .await
            .map_err(|_| {
                ProgramError::Runtime(format!(
                    "the {what} at {address} did not complete the QUIC handshake within {} s",
                    patience.as_secs()
                ))
            })?
            .map_err(|error| ProgramError::Runtime(format!("cannot connect to the {what} at {address}: {error}")))?;
        Ok(EstablishedConnection { endpoint, connection, begin })
    }

    /// Connects to the first address of `host` that responds.
    pub(super) async fn reach(self, host: &Target) -> Result<EstablishedConnection, ProgramError> {
        let addresses = addresses_of(host).await?;
        let mut failure = ProgramError::Runtime(format!("{} has no address", host.host));
        for (index, address) in addresses.iter().enumerate() {
            let patience = if index + 1 < addresses.len() { PATIENCE_BEFORE_OTHERS } else { PATIENCE };
            let endpoint =
                endpoint::bind_client(&TokioEnvironment, *address).map_err(run_error("cannot create a UDP socket"));
            let reached = match endpoint {
                Ok(endpoint) => self.clone().reach_in(endpoint, *address, patience).await,
                Err(failure) => Err(failure),
            };
            match reached {
                Ok(reached) => return Ok(reached),
                Err(reason) => failure = reason,
            }
        }
        Err(failure)
    }
}

async fn addresses_of(target: &Target) -> Result<Vec<SocketAddr>, ProgramError> {
    let addresses = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            TokioEnvironment.resolve(name).await.map_err(run_error(&format!("cannot resolve {name}")))?
        }
    };
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, target.port)).collect())
}
