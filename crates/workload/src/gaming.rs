//! Gaming: state updates of a first-person shooter, from client to server and back.

use crate::Distribution;
use fullpipe_units::Duration;

/// The packets of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct GamePackets {
    /// Time in seconds from the start to the first packet.
    pub first_s: Distribution,
    /// Times in seconds between packets.
    pub interval_s: Distribution,
    /// Payloads in bytes (each at least 1).
    pub payload_bytes: Distribution,
}

/// One player and the server.
#[derive(Clone, Debug, PartialEq)]
pub struct GamingSpec {
    /// From client (the initiator) to server.
    pub client: GamePackets,
    /// From server to client.
    pub server: GamePackets,
    /// How long each side sends, from its start (`None`: without end).
    pub duration: Option<Duration>,
}
