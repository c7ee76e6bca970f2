//! The state of a UE at the eNB and at the UE itself: bearers, HARQ processes, reports and their times, counters.

use crate::cell::OuterLoop;
use crate::radio::errors::HarqSoftBuffer;
use crate::rlc::{Bearer, LinkDirection, Pdu};
use crate::scheduler::{GroupSet, MAX_GROUPS};
use fullpipe_units::Instant;

/// Number of HARQ processes of each direction (TS 36.213, clauses 7 and 8, FDD).
pub(crate) const PROCESSES: usize = 8;
/// Largest number of layers of a UE.
pub(crate) const LAYERS: usize = 2;

/// Counters of one direction of a UE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionCounters {
    /// Transport blocks sent for the first time.
    pub blocks: u64,
    /// Bytes of the transport blocks sent for the first time.
    pub block_bytes: u64,
    /// Retransmissions of transport blocks.
    pub retransmissions: u64,
    /// Receptions of transport blocks that could not be decoded.
    pub errors: u64,
    /// Transport blocks that were not decoded after the last permitted transmission.
    pub lost_blocks: u64,
    /// Subframes in which the UE did not decode a grant or an assignment.
    pub control_errors: u64,
    /// Transport blocks sent for the first time, by MCS.
    pub blocks_by_mcs: [u64; 29],
    /// Bytes of RLC PDUs received.
    pub pdu_bytes: u64,
    /// Packets offered to the UE's bearers, including those before the bearers existed.
    pub packets: u64,
    /// Packets dropped because they arrived before the UE had its bearers.
    pub early_packets: u64,
    /// Packets dropped because the buffer was full.
    pub buffer_drops: u64,
    /// Packets lost on the air.
    pub lost_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Bytes of the delivered packets.
    pub delivered_bytes: u64,
}

impl DirectionCounters {
    /// Counts a transport block that is sent for the first time.
    pub(crate) fn count_block(&mut self, mcs: u8, bytes: u32) {
        self.blocks += 1;
        self.block_bytes += u64::from(bytes);
        self.blocks_by_mcs[usize::from(mcs)] += 1;
    }
}

/// The last transmission of a UE in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirectionStatus {
    /// Mean SINR in dB over the resource blocks of the last transport block; NaN before the first.
    pub sinr_db: f64,
    /// CQI from which the MCS of the last transport block was selected.
    pub cqi: u8,
    /// MCS of the last transport block.
    pub mcs: u8,
    /// Bytes in the RLC buffers.
    pub buffer_bytes: u64,
}

/// Returns the bytes that still wait, by the scheduler's count, after a grant of `granted` bytes, of which `header`
/// bytes are RLC's header.
pub(crate) fn left_after(waiting: u32, granted: u32, header: u32) -> u32 {
    waiting.saturating_sub(granted.saturating_sub(header))
}

/// A transport block in transmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransportBlock {
    /// CQI from which the MCS was selected.
    pub(crate) cqi: u8,
    pub(crate) mcs: u8,
    pub(crate) bytes: u32,
    /// PDUs with the number of their bearer.
    pub(crate) pdus: Vec<(u8, Pdu)>,
    pub(crate) combining: HarqSoftBuffer,
    /// Whether it still has to be decoded.
    pub(crate) open: bool,
}

/// A downlink HARQ process: blocks of all layers in the same groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct HarqProcess {
    pub(crate) groups: GroupSet,
    pub(crate) redundancy: u8,
    pub(crate) blocks: [TransportBlock; LAYERS],
    /// Number of the process's use, so that late feedback does not affect the next use.
    pub(crate) generation: u32,
}

/// An uplink transport block.
#[derive(Clone, Debug, Default)]
pub(crate) struct UplinkTransportBlock {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) redundancy: u8,
    pub(crate) block: TransportBlock,
}

/// The reports of the UE that have been computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelReport {
    /// Subframe in which the channel was measured, for the subbands and for the band; `u64::MAX` before the first
    /// measurement.
    pub(crate) measured: [u64; 2],
    pub(crate) subbands: [u8; MAX_GROUPS],
    /// Groups for which `subbands` has only an upper bound.
    pub(crate) open: GroupSet,
    /// The CQI of all subbands, if they are known to be equal.
    pub(crate) even: Option<u8>,
    pub(crate) wideband: u8,
    pub(crate) ceiling: u8,
    /// `subbands` after the outer loop's correction, if any, with the measurement and the offset that were used.
    pub(crate) corrected: [u8; MAX_GROUPS],
    pub(crate) corrected_of: Option<(u64, OuterLoop)>,
}

/// The last transmitted transport block of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastTransmission {
    pub(crate) subframe: u64,
    /// Downlink: groups. Uplink: first resource block and count.
    pub(crate) place: (u32, u32),
    pub(crate) cqi: u8,
    pub(crate) mcs: u8,
}

/// A UE in its cell.
#[derive(Debug)]
pub(crate) struct Ue {
    /// The UE's number in the whole network.
    pub(crate) number: u16,
    /// Key of the UE's random draws.
    pub(crate) key: u64,
    pub(crate) bearers: Vec<Bearer>,
    /// Logical channel group of each bearer.
    pub(crate) groups: Vec<u8>,
    /// Whether each bearer has a guaranteed bit rate.
    pub(crate) guaranteed: Vec<bool>,
    pub(crate) layers: u8,
    /// Gain of the transmission mode, linear.
    pub(crate) mode_gain: f32,
    /// P_A, linear.
    pub(crate) data_power: f32,
    /// Waiting downlink bytes of each bearer, by the scheduler's count.
    pub(crate) waiting: Vec<u32>,
    pub(crate) processes: Vec<HarqProcess>,
    pub(crate) retransmissions: Vec<u8>,
    /// Subframe of the last uplink retransmission.
    pub(crate) repeated: u64,
    /// When the pending buffer status report reaches the scheduler, and its index in that subframe's list.
    pub(crate) status_due: Option<(u64, usize)>,
    /// When the UE reports again if data still wait.
    pub(crate) remind_at: Instant,
    /// Waiting uplink bytes, by the scheduler's count.
    pub(crate) uplink_waiting: u32,
    /// The last grant that the UE read: subframe and index of its block.
    pub(crate) grant_read: Option<(u64, u8)>,
    pub(crate) uplink_blocks: Vec<UplinkTransportBlock>,
    /// Last sounding: subframe, and SINR by resource block.
    pub(crate) sounded: Option<(u64, Box<crate::air::ResourceBlockRow>)>,
    pub(crate) sounding_offset: u32,
    /// State of the outer loop by direction.
    pub(crate) outer_loop: [OuterLoop; 2],
    /// Counters except those of packet outcomes; see [`Ue::counters`].
    pub(crate) counters: [DirectionCounters; 2],
    pub(crate) last: [LastTransmission; 2],
}

impl Ue {
    /// Returns all counters. Those of packet outcomes come from RLC.
    pub(crate) fn counters(&self) -> [DirectionCounters; 2] {
        let mut counters = self.counters.clone();
        for (way, counters) in LinkDirection::BOTH.into_iter().zip(&mut counters) {
            for of in self.bearers.iter().map(|bearer| bearer.counters(way)) {
                counters.delivered_packets += of.sdus_delivered;
                counters.delivered_bytes += of.bytes_delivered;
                counters.lost_packets += of.sdus_lost + of.sdus_discarded;
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grant counts without RLC's header, and no count falls below 0 (reference, section 8.2).
    #[test]
    fn grant_counts_without_the_header() {
        assert_eq!(left_after(1_000, 501, 2), 501);
        assert_eq!(left_after(1_000, 501, 4), 503);
        assert_eq!(left_after(1_000, 1_001, 2), 1);
        assert_eq!(left_after(1_000, 2_000, 2), 0);
        assert_eq!(left_after(1_000, 1, 2), 1_000);
    }
}
