//! Drop-tail with a step: marks ECN-capable packets while the queue is above a threshold (Alizadeh et al., "Data Center
//! TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257).

use crate::queue::Limit;
use fullpipe_units::Duration;

/// Above what the step marker marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// A packet is marked that finds more packets than this waiting.
    Packets(u64),
    /// A packet is marked that finds more bytes on the wire than this waiting.
    Bytes(u64),
    /// A packet is marked that has waited longer than this.
    Delay(Duration),
}

/// Settings of the step marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMarkerSpecification {
    /// Of the queue itself.
    pub limit: Limit,
    /// The step (K).
    pub threshold: StepThreshold,
    /// Whether packets that are not ECN-capable are dropped above the step (as RED with equal thresholds does).
    pub drops_incapable: bool,
}

impl Default for StepMarkerSpecification {
    /// The paper's: 65 packets, its figure for 10 Gbit/s.
    fn default() -> Self {
        StepMarkerSpecification {
            limit: Limit::Packets(1000),
            threshold: StepThreshold::Packets(65),
            drops_incapable: false,
        }
    }
}
