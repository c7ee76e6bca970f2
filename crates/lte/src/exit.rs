//! The exit of the access network: the outcome of each packet, and the two links of the core network that each packet
//! passes.

use crate::bearer::TUNNEL_BYTES;
use crate::config::CoreNetwork;
use crate::rlc::{LinkDirection, PDCP_HEADER_BYTES, SduOutcome};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The packet was delivered.
    Delivered,
    /// The packet was dropped because the RLC buffer was full.
    BufferFull,
    /// The packet or a part of it was lost on the air or discarded, or its UE had no bearers yet.
    Lost,
}

/// The outcome of a packet and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// Time of the outcome, which may be later than the current time. Delivered packets of one direction are in the
    /// order of this time.
    pub at: Instant,
    /// The direction of the packet.
    pub way: LinkDirection,
    /// The index of the packet's UE.
    pub ue: u16,
    /// The caller's identifier of the packet.
    pub token: u64,
    /// The outcome.
    pub fate: PacketOutcome,
}

/// Two links in series, by the time at which each becomes free.
#[derive(Debug)]
pub(crate) struct CoreLinks {
    pub(crate) core: CoreNetwork,
    /// Bytes of the last packet, and their transmission time on a link. Most packets have the size of the previous one,
    /// and the division takes 55 instructions.
    pub(crate) last: (u32, Duration),
    pub(crate) s5: [Instant; 2],
    /// The S1 link of each cell, by direction.
    pub(crate) s1: Vec<[Instant; 2]>,
}

impl CoreLinks {
    /// Returns when a packet that enters now leaves the links.
    pub(crate) fn pass(&mut self, cell: usize, way: LinkDirection, bytes: u32, now: Instant) -> Instant {
        if bytes != self.last.0 {
            self.last = (bytes, self.core.rate.transmission_time(u64::from(bytes + TUNNEL_BYTES)));
        }
        let time = self.last.1;
        let (s5, s1) = (&mut self.s5[way as usize], &mut self.s1[cell][way as usize]);
        let (first, second, delays) = match way {
            LinkDirection::Downlink => (s5, s1, [self.core.s5_delay, self.core.s1_delay]),
            LinkDirection::Uplink => (s1, s5, [self.core.s1_delay, self.core.s5_delay]),
        };
        *first = now.max(*first) + time;
        let between = *first + delays[0];
        *second = between.max(*second) + time;
        *second + delays[1]
    }
}

/// The exit: the packet outcomes, and the links on which uplink packets continue from the eNB.
#[derive(Debug)]
pub(crate) struct Egress {
    pub(crate) links: CoreLinks,
    pub(crate) told: VecDeque<PacketReport>,
    pub(crate) inside: [u64; 2],
}

impl Egress {
    /// Handles RLC's outcomes at `at` of packets of a UE in this cell.
    pub(crate) fn tell(&mut self, cell: usize, ue: u16, way: LinkDirection, at: Instant, outcomes: &[SduOutcome]) {
        self.inside[way as usize] -= outcomes.len() as u64;
        let links = &mut self.links;
        self.told.extend(outcomes.iter().map(|&SduOutcome { sdu, delivered }| PacketReport {
            at: match way {
                LinkDirection::Uplink if delivered => links.pass(cell, way, sdu.bytes - PDCP_HEADER_BYTES, at),
                _ => at,
            },
            way,
            ue,
            token: sdu.token,
            fate: if delivered { PacketOutcome::Delivered } else { PacketOutcome::Lost },
        }));
    }

    /// Drops a packet that does not reach RLC.
    pub(crate) fn drop(&mut self, ue: u16, way: LinkDirection, at: Instant, token: u64, fate: PacketOutcome) {
        self.told.push_back(PacketReport { at, way, ue, token, fate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 10 Gbit/s, with 40 bytes of tunnel headers, 1400 bytes take 1152 ns and 100 bytes 112 ns. The first link is
    /// busy until 1152, 1264, 1376 and 2528; transmissions on the second start at 1152, 2304, 2416 and 2528.
    #[test]
    fn packets_of_all_sizes_take_their_time_on_both_links() {
        let core = CoreNetwork { s1_delay: Duration::ZERO, s5_delay: Duration::ZERO, ..CoreNetwork::default() };
        let mut links =
            CoreLinks { core, last: (0, Duration::ZERO), s5: [Instant::ZERO; 2], s1: vec![[Instant::ZERO; 2]] };
        let out =
            [1400, 100, 100, 1400].map(|bytes| links.pass(0, LinkDirection::Downlink, bytes, Instant::ZERO).as_nanos());
        assert_eq!(out, [2304, 2416, 2528, 3680]);
    }

    /// Uplink packets pass the cell's own link and then the shared one. 1400 bytes from one cell occupy the second link
    /// until 2304 ns. 100 bytes from another cell, which leave their first link at 112, wait for it. Both links' delays
    /// are added.
    #[test]
    fn uplink_packets_of_all_cells_share_the_second_link() {
        let core = CoreNetwork { s1_delay: Duration::ZERO, s5_delay: Duration::ZERO, ..CoreNetwork::default() };
        let s1 = vec![[Instant::ZERO; 2]; 2];
        let mut links = CoreLinks { core, last: (0, Duration::ZERO), s5: [Instant::ZERO; 2], s1 };
        let out =
            [(0, 1400), (1, 100)].map(|(cell, bytes)| links.pass(cell, LinkDirection::Uplink, bytes, Instant::ZERO));
        assert_eq!(out.map(|at| at.as_nanos()), [2304, 2416]);
        links.core.s1_delay = Duration::from_micros(20);
        links.core.s5_delay = Duration::from_micros(300);
        let later = Instant::from_nanos(1_000_000);
        let out = LinkDirection::BOTH.map(|way| links.pass(0, way, 100, later).as_nanos());
        assert_eq!(out, [1_320_224; 2]);
    }
}
