//! PIE, proportional integral controller enhanced (RFC 8033).

use crate::queue::Limit;
use fullpipe_units::Duration;

/// How PIE learns how long packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDelay {
    /// From how long the packet that left last had waited; nothing if the queue is empty (RFC 8033 appendix A).
    Timestamps,
    /// From the bytes that wait and the rate at which they leave (RFC 8033 section 5.2).
    DepartureRate {
        /// Bytes that one measurement of the rate takes (DQ_THRESHOLD: 16 384).
        threshold_bytes: u32,
    },
}

/// Settings of PIE. The default is RFC 8033's, with timestamps, derandomisation and capped steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSpecification {
    /// Of the queue itself (TAIL_DROP).
    pub limit: Limit,
    /// Delay to be reached (QDELAY_REF: 15 ms).
    pub target: Duration,
    /// Time between updates of the probability (T_UPDATE: 15 ms).
    pub update_interval: Duration,
    /// Gain on the distance from the target, per second of delay (1/8 Hz).
    pub alpha: f64,
    /// Gain on the change of the delay, per second of delay (1 1/4 Hz).
    pub beta: f64,
    /// For how long a burst is let through untouched (MAX_BURST: 150 ms).
    pub max_burst: Duration,
    /// Bytes on the wire of a typical packet (MEAN_PKTSIZE): up to two of them are never dropped from.
    pub mean_packet_bytes: u32,
    /// How the delay is known.
    pub delay: PieDelay,
    /// Whether ECN-capable packets are marked instead of dropped (section 5.1).
    pub ecn: bool,
    /// Probability from which even ECN-capable packets are dropped (mark_ecnth: 0.1).
    pub ecn_limit: f64,
    /// Whether drops are kept from coming too close together or too far apart (section 5.4).
    pub derandomise: bool,
    /// Whether the probability rises by at most 0.02 per update once it is 0.1 (section 5.5).
    pub cap_increase: bool,
    /// Whether PIE rests until a third of the limit is filled, and again when congestion is over (section 5.3).
    pub activation: bool,
}

impl Default for PieSpecification {
    fn default() -> Self {
        PieSpecification {
            limit: Limit::Packets(1000),
            target: Duration::from_millis(15),
            update_interval: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mean_packet_bytes: 1024,
            delay: PieDelay::Timestamps,
            ecn: false,
            ecn_limit: 0.1,
            derandomise: true,
            cap_increase: true,
            activation: false,
        }
    }
}
