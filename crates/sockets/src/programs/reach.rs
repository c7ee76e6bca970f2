//! Connections to hosts: to the first address of a host that responds.

use super::{ProgramError, run_error};
use crate::{TokioEnvironment, endpoint};
use fullpipe_masque::environment::Environment;
use fullpipe_masque::target::{Host, Target};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Part of the time limit after which the first datagrams are sent without padding if nothing has arrived.
const PADDED_PART: u32 = 3;

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
    /// Padding of the first datagrams; `None` if they have the usual size.
    pub(super) padding: Option<Padding>,
}

/// Padding of datagrams with Initial packets to a size that a path may not carry.
#[derive(Clone)]
pub(super) struct Padding {
    /// Smallest size of these datagrams in bytes.
    pub(super) size: u16,
    /// Configuration of a second attempt with packets of 1200 bytes. It follows if nothing arrives from the peer.
    pub(super) fallback: noq::ClientConfig,
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
        let begin = TokioEnvironment.now();
        let connecting = self.start(&endpoint, &self.configuration, address)?;
        match tokio::time::timeout(patience, connecting).await {
            Ok(connection) => Ok(EstablishedConnection { endpoint, connection: connection?, begin }),
            Err(_) => Err(self.no_answer(address, patience)),
        }
    }

    /// Connects with padded datagrams first, and without padding if nothing arrives.
    async fn reach_padded(
        &self,
        padding: &Padding,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<EstablishedConnection, ProgramError> {
        let no_socket = run_error("cannot create a UDP socket");
        let begin = TokioEnvironment.now();
        let (endpoint, has_received) =
            endpoint::bind_padded_client(&TokioEnvironment, address, padding.size).map_err(&no_socket)?;
        let mut connecting = std::pin::pin!(self.start(&endpoint, &self.configuration, address)?);
        let mut left = patience / PADDED_PART;
        let mut connected = tokio::time::timeout(left, connecting.as_mut()).await;
        left = patience - left;
        if connected.is_err() && has_received.load(Ordering::Relaxed) {
            connected = tokio::time::timeout(left, connecting).await;
            left = Duration::ZERO;
        }
        match connected {
            Ok(connection) => return Ok(EstablishedConnection { endpoint, connection: connection?, begin }),
            Err(_) if left.is_zero() => return Err(self.no_answer(address, patience)),
            Err(_) => {}
        }
        let endpoint = endpoint::bind_smallest_client(&TokioEnvironment, address).map_err(&no_socket)?;
        let connecting = self.start(&endpoint, &padding.fallback, address)?;
        match tokio::time::timeout(left, connecting).await {
            Ok(connection) => Ok(EstablishedConnection { endpoint, connection: connection?, begin }),
            Err(_) => Err(self.no_answer(address, patience)),
        }
    }

    /// Starts a connection attempt.
    fn start(
        &self,
        endpoint: &noq::Endpoint,
        configuration: &noq::ClientConfig,
        address: SocketAddr,
    ) -> Result<impl Future<Output = Result<noq::Connection, ProgramError>> + use<>, ProgramError> {
        let connecting = endpoint
            .connect_with(configuration.clone(), address, self.name)
            .map_err(|error| ProgramError::Usage(format!("{}: {error}", self.name)))?;
        let what = self.what.to_owned();
        Ok(async move {
            let failed = |error| ProgramError::Runtime(format!("cannot connect to the {what} at {address}: {error}"));
            connecting.await.map_err(failed)
        })
    }

    fn no_answer(&self, address: SocketAddr, patience: Duration) -> ProgramError {
        ProgramError::Runtime(format!(
            "the {} at {address} did not complete the QUIC handshake within {} s",
            self.what,
            patience.as_secs()
        ))
    }

    /// Connects to the first address of `host` that responds.
    pub(super) async fn reach(self, host: &Target) -> Result<EstablishedConnection, ProgramError> {
        let addresses = addresses_of(host).await?;
        let mut failure = ProgramError::Runtime(format!("{} has no address", host.host));
        for (index, address) in addresses.iter().enumerate() {
            let patience = if index + 1 < addresses.len() { PATIENCE_BEFORE_OTHERS } else { PATIENCE };
            let reached = match &self.padding {
                Some(padding) => self.reach_padded(padding, *address, patience).await,
                None => match endpoint::bind_client(&TokioEnvironment, *address) {
                    Ok(endpoint) => self.clone().reach_in(endpoint, *address, patience).await,
                    Err(error) => Err(run_error("cannot create a UDP socket")(error)),
                },
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
