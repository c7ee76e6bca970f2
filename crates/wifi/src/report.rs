//! What a basic service set reports in addition to the outcomes of packets: counters of stations, and PPDUs.

use crate::phy::{AccessCategory, PhyRate};
use fullpipe_network::MediumDirection;
use fullpipe_units::{Duration, Instant};

/// Counters of one station in one direction since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered.
    pub packets: u64,
    /// Packets dropped because a queue was full.
    pub buffer_drops: u64,
    /// Packets dropped by a queue discipline although there was room.
    pub early_drops: u64,
    /// Packets given up after the last transmission.
    pub lost_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Bytes delivered, at the IP layer.
    pub delivered_bytes: u64,
    /// Data PPDUs transmitted. A collision of RTS frames counts none.
    pub ppdus: u64,
    /// MPDUs in these PPDUs.
    pub mpdus: u64,
    /// Those of these MPDUs that had an attempt before, which may have ended with the RTS.
    pub retries: u64,
    /// Accesses that collided with another node.
    pub collisions: u64,
    /// Accesses without a collision that got no response.
    pub failures: u64,
    /// Duration of the data PPDUs.
    pub airtime: Duration,
    /// Sum over delivered packets of the time from the offer to the first transmission.
    pub queue_delay: Duration,
    /// Sum over delivered packets of the time from the first transmission to the delivery.
    pub air_delay: Duration,
}

/// The last PPDU of one station in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastPpdu {
    /// Its rate.
    pub rate: PhyRate,
    /// Its MPDUs.
    pub mpdus: u32,
    /// SNR per stream at the receiver, in dB.
    pub snr_db: f64,
}

/// The status of one station in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkStatus {
    /// The counters.
    pub counters: LinkCounters,
    /// The last PPDU, if there was one.
    pub last: Option<LastPpdu>,
    /// Packets in queues and in the window.
    pub queued_packets: u64,
}

/// A data PPDU on the medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PpduRecord {
    /// Beginning of the access: of the RTS, if there is one.
    pub access: Instant,
    /// Beginning of the data PPDU; for a failed RTS, its end.
    pub start: Instant,
    /// End of the data PPDU.
    pub end: Instant,
    /// End of the response; the end of the data PPDU if there is none.
    pub response_end: Instant,
    /// Direction.
    pub direction: MediumDirection,
    /// The station that sends or receives.
    pub station: u32,
    /// Access category.
    pub category: AccessCategory,
    /// Rate.
    pub rate: PhyRate,
    /// Number of MPDUs; 0 if the exchange ended with the RTS.
    pub mpdus: u32,
    /// Number of MPDUs that the receiver decoded.
    pub received: u32,
    /// Size of the PSDU in bytes.
    pub psdu_bytes: u64,
    /// Whether another node transmitted at the same time.
    pub collision: bool,
}
