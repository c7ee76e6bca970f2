//! All random values of an endpoint, derived from one seed: connection IDs, skipped packet numbers, order and size of
//! reserved transport parameters, token keys. No entropy or clock of the machine is used, so the same seed gives the
//! same bytes.

use crate::null::TokenKey;
use fullpipe_units::RandomStream;
use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, TimeSource};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length of a connection ID in bytes.
const CONNECTION_ID_BYTES: usize = 8;

/// Named random streams of one endpoint.
#[derive(Clone, Debug)]
pub struct RandomStreams {
    seed: u64,
    name: String,
}

impl RandomStreams {
    /// Creates the random streams of the endpoint `name` in the run with this seed.
    pub fn new(seed: u64, name: &str) -> RandomStreams {
        RandomStreams { seed, name: name.to_owned() }
    }

    /// The stream for one purpose, from its beginning.
    pub(crate) fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, &self.name, purpose)
    }

    /// A stream that all endpoints of the run share.
    pub(crate) fn of_the_run(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, "all endpoints", purpose)
    }

    /// The key of this endpoint's tokens.
    pub(crate) fn token_key(&self) -> Arc<TokenKey> {
        Arc::new(TokenKey(self.stream("tokens").next_u64()))
    }

    /// The endpoint configuration with its random parts.
    pub(crate) fn endpoint_config(&self) -> EndpointConfig {
        let mut config = EndpointConfig::new(self.token_key());
        let mut seed = [0; 32];
        fill(&mut self.stream("endpoint"), &mut seed);
        config.rng_seed(Some(seed));
        let streams = self.clone();
        config.cid_generator(Arc::new(move || Box::new(Identifiers(streams.stream("connection identifiers")))));
        config
    }

    /// Generator of the connection IDs with which clients address servers before the servers choose their own.
    pub(crate) fn first_identifiers(&self) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
        let stream = Mutex::new(self.stream("first identifiers"));
        Arc::new(move || identifier(&mut stream.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Fills a buffer with random bytes.
pub(crate) fn fill(stream: &mut RandomStream, buffer: &mut [u8]) {
    for piece in buffer.chunks_mut(8) {
        piece.copy_from_slice(&stream.next_u64().to_le_bytes()[..piece.len()]);
    }
}

fn identifier(stream: &mut RandomStream) -> ConnectionId {
    ConnectionId::new(&stream.next_u64().to_le_bytes())
}

/// Generator of random connection IDs.
struct Identifiers(RandomStream);

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        identifier(&mut self.0)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The date of the simulation: always the first second of 2026.
#[derive(Debug)]
pub(crate) struct FixedDate;

/// Seconds from 1970 to 2026: 56 years with 14 leap days (1972 to 2024).
const DATE: Duration = Duration::from_secs((56 * 365 + 14) * 86_400);

impl TimeSource for FixedDate {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + DATE
    }
}
