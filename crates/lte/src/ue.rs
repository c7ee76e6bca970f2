//! A UE as the eNB and it itself see it: bearers, HARQ processes, what was reported when; and what is counted.

use crate::cell::OuterLoop;
use crate::radio::errors::Combining;
use crate::rlc::{Bearer, Pdu, Way};
use crate::scheduler::{Groups, MOST_GROUPS};
use fullpipe_units::Instant;

/// HARQ processes of either direction (36.213 section 7 and 8, FDD).
pub(crate) const PROCESSES: usize = 8;
/// Layers that a UE can have.
pub(crate) const LAYERS: usize = 2;

/// What is counted of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WayCounters {
    /// Transport blocks sent for the first time.
    pub blocks: u64,
    /// Their bytes.
    pub block_bytes: u64,
    /// Transport blocks sent again.
    pub retransmissions: u64,
    /// Receptions of transport blocks that could not be decoded.
    pub errors: u64,
    /// Transport blocks that were given up.
    pub lost_blocks: u64,
    /// Subframes in which a UE did not understand what was granted.
    pub control_errors: u64,
    /// Transport blocks sent for the first time, by MCS.
    pub blocks_by_mcs: [u64; 29],
    /// Bytes of RLC PDUs that arrived.
    pub pdu_bytes: u64,
    /// Packets that came to the buffer, or before there was one.
    pub packets: u64,
    /// Packets that came before the UE had its bearers, and were dropped.
    pub early_packets: u64,
    /// Packets for which the buffer had no room.
    pub buffer_drops: u64,
    /// Packets lost on the air.
    pub lost_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
}

impl WayCounters {
    /// A transport block is sent for the first time.
    pub(crate) fn count_block(&mut self, mcs: u8, bytes: u32) {
        self.blocks += 1;
        self.block_bytes += u64::from(bytes);
        self.blocks_by_mcs[usize::from(mcs)] += 1;
    }
}

/// What a UE's last transmission or report was like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WayStatus {
    /// Mean SINR over the resource blocks of the last transport block, dB; not a number before the first.
    pub sinr_db: f64,
    /// CQI by which the last transport block was made.
    pub cqi: u8,
    /// MCS of the last transport block.
    pub mcs: u8,
    /// Bytes in the RLC buffers.
    pub buffer_bytes: u64,
}

/// The bytes that still wait, as a scheduler counts, after a grant of `granted` bytes, `header` of which are RLC's header.
pub(crate) fn left_after(waiting: u32, granted: u32, header: u32) -> u32 {
    waiting.saturating_sub(granted.saturating_sub(header))
}

/// A transport block on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// CQI that the MCS follows from.
    pub(crate) cqi: u8,
    pub(crate) mcs: u8,
    pub(crate) bytes: u32,
    /// Number of the bearer, and the PDU.
    pub(crate) pdus: Vec<(u8, Pdu)>,
    pub(crate) combining: Combining,
    /// Whether it is still to be decoded.
    pub(crate) open: bool,
}

/// A HARQ process of the downlink: blocks of all layers in the same groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) groups: Groups,
    pub(crate) redundancy: u8,
    pub(crate) blocks: [Block; LAYERS],
    /// Which use of the process this is, so that what comes late does not meet the next one.
    pub(crate) generation: u32,
}

/// A transport block of the uplink.
#[derive(Clone, Debug, Default)]
pub(crate) struct UplinkBlock {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) redundancy: u8,
    pub(crate) block: Block,
}

/// What the UE has reported, as far as somebody has asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Subframe in which the channel was measured, for the subbands and for the band; `u64::MAX` before the first.
    pub(crate) measured: [u64; 2],
    pub(crate) subbands: [u8; MOST_GROUPS],
    /// Groups of which `subbands` has only an upper bound.
    pub(crate) open: Groups,
    /// The CQI that all subbands have, where that is known.
    pub(crate) even: Option<u8>,
    pub(crate) wideband: u8,
    pub(crate) ceiling: u8,
    /// `subbands`, corrected by the outer loop, where there is one; of which measurement, by which offset.
    pub(crate) corrected: [u8; MOST_GROUPS],
    pub(crate) corrected_of: Option<(u64, OuterLoop)>,
}

/// The last transport block of a direction that was on the air.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    pub(crate) subframe: u64,
    /// Groups; or first resource block and count.
    pub(crate) place: (u32, u32),
    pub(crate) cqi: u8,
    pub(crate) mcs: u8,
}

/// A UE in its cell.
#[derive(Debug)]
pub(crate) struct Ue {
    /// Its number in the whole network.
    pub(crate) number: u16,
    /// Key of its random draws.
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
    /// Bytes that wait for the downlink on each bearer, as the scheduler counts.
    pub(crate) waiting: Vec<u32>,
    pub(crate) processes: Vec<Process>,
    pub(crate) retransmissions: Vec<u8>,
    /// When blocks of the uplink were last sent again.
    pub(crate) repeated: u64,
    /// When the buffer status report that is under way reaches the scheduler, and its place in that subframe's list.
    pub(crate) status_due: Option<(u64, usize)>,
    /// When the UE reports again what still waits then.
    pub(crate) remind_at: Instant,
    /// Bytes that wait for the uplink, as the scheduler counts.
    pub(crate) uplink_waiting: u32,
    /// The last grant that the UE read: subframe and place of its block.
    pub(crate) grant_read: Option<(u64, u8)>,
    pub(crate) uplink_blocks: Vec<UplinkBlock>,
    /// Sounding: subframe, and its SINR by resource block.
    pub(crate) sounded: Option<(u64, Box<crate::air::Row>)>,
    pub(crate) sounding_offset: u32,
    /// What the outcome of its blocks has shown, by direction.
    pub(crate) outer_loop: [OuterLoop; 2],
    /// All but what became of packets; see [`Ue::counters`].
    pub(crate) counters: [WayCounters; 2],
    pub(crate) last: [Last; 2],
}

impl Ue {
    /// All counters. What became of packets, RLC has counted.
    pub(crate) fn counters(&self) -> [WayCounters; 2] {
        let mut counters = self.counters.clone();
        for (way, counters) in Way::BOTH.into_iter().zip(&mut counters) {
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

    /// A grant of a block counts less RLC's header, and no count falls below 0 (reference, section 8.2).
    #[test]
    fn a_grant_counts_without_the_header() {
        assert_eq!(left_after(1_000, 501, 2), 501);
        assert_eq!(left_after(1_000, 501, 4), 503);
        assert_eq!(left_after(1_000, 1_001, 2), 1);
        assert_eq!(left_after(1_000, 2_000, 2), 0);
        assert_eq!(left_after(1_000, 1, 2), 1_000);
    }
}
