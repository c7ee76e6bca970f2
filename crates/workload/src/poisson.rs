//! Poisson arrivals: of packets, or of transfers on a connection each.

use crate::Distribution;
use fullpipe_units::Duration;

/// Datagrams that arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonPacketsSpec {
    /// Mean time between arrivals.
    pub mean_interval: Duration,
    /// Sizes in bytes: of payloads, or of whole packets if `header_bytes` says what to take off.
    pub size_bytes: Distribution,
    /// Taken off each size to give the payload (at least 0): what the layers below add. With it the size of the packet
    /// on the wire, headers and all, has the wanted distribution, as queueing theory assumes.
    pub header_bytes: u32,
    /// Largest payload; what is larger is cut. At most 65 507, that of UDP over IPv4.
    pub max_payload_bytes: u32,
    /// Packets to send (`None`: without end).
    pub count: Option<u64>,
}

/// Transfers that arrive as a Poisson process, each on a connection of its own, from initiator to acceptor.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonTransfersSpec {
    /// Mean time between arrivals.
    pub mean_interval: Duration,
    /// Sizes in bytes (each at least 1).
    pub size_bytes: Distribution,
    /// Transfers to start (`None`: without end).
    pub count: Option<u64>,
}
