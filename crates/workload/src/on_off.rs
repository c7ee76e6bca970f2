//! On-off: packets, or writes on a stream, at a constant rate during on periods and nothing during off periods.

use crate::Distribution;
use fullpipe_units::Rate;

/// An on-off source.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOffSpec {
    /// Rate of payload bits during an on period.
    pub rate: Rate,
    /// Payload of a packet, or size of a write.
    pub payload_bytes: u32,
    /// Lengths of on periods in seconds.
    pub on_s: Distribution,
    /// Lengths of off periods in seconds.
    pub off_s: Distribution,
    /// Packets or writes to send (`None`: without end).
    pub count: Option<u64>,
}
