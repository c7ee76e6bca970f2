//! Where packets leave the access network: what became of each, and the two links of the core that each passes.

use crate::bearer::TUNNEL_BYTES;
use crate::config::Core;
use crate::rlc::{Outcome, PDCP_HEADER_BYTES, Way};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Delivered,
    /// The RLC buffer had no room for it.
    BufferFull,
    /// It, or a part of it, was lost on the air or given up, or its UE had no bearers yet.
    Lost,
}

/// A packet's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// When: now or later. Packets of one direction that are delivered come in order of this time.
    pub at: Instant,
    /// Its direction.
    pub way: Way,
    /// Its UE.
    pub ue: u16,
    /// What the caller knows it by.
    pub token: u64,
    /// What became of it.
    pub fate: Fate,
}

/// Two links in a row, by when each falls free.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) core: Core,
    /// Bytes of the last packet, and their time on a link: most packets are as large as the one before, and the
    /// division took 55 instructions.
    pub(crate) last: (u32, Duration),
    pub(crate) s5: [Instant; 2],
    /// By cell.
    pub(crate) s1: Vec<[Instant; 2]>,
}

impl Links {
    /// When a packet that enters now comes out.
    pub(crate) fn pass(&mut self, cell: usize, way: Way, bytes: u32, now: Instant) -> Instant {
        if bytes != self.last.0 {
            self.last = (bytes, self.core.rate.time_for(u64::from(bytes + TUNNEL_BYTES)));
        }
        let time = self.last.1;
        let (s5, s1) = (&mut self.s5[way as usize], &mut self.s1[cell][way as usize]);
        let (first, second, delays) = match way {
            Way::Downlink => (s5, s1, [self.core.s5_delay, self.core.s1_delay]),
            Way::Uplink => (s1, s5, [self.core.s1_delay, self.core.s5_delay]),
        };
        *first = now.max(*first) + time;
        let between = *first + delays[0];
        *second = between.max(*second) + time;
        *second + delays[1]
    }
}

/// Where packets end: their reported outcomes, and the links on which uplink packets continue from the eNB.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) links: Links,
    pub(crate) told: VecDeque<Output>,
    pub(crate) inside: [u64; 2],
}

impl Exit {
    /// What RLC says at `at` of packets of a UE in this cell.
    pub(crate) fn tell(&mut self, cell: usize, ue: u16, way: Way, at: Instant, outcomes: &[Outcome]) {
        self.inside[way as usize] -= outcomes.len() as u64;
        let links = &mut self.links;
        self.told.extend(outcomes.iter().map(|&Outcome { sdu, delivered }| Output {
            at: match way {
                Way::Uplink if delivered => links.pass(cell, way, sdu.bytes - PDCP_HEADER_BYTES, at),
                _ => at,
            },
            way,
            ue,
            token: sdu.token,
            fate: if delivered { Fate::Delivered } else { Fate::Lost },
        }));
    }

    /// A packet does not come as far as RLC.
    pub(crate) fn drop(&mut self, ue: u16, way: Way, at: Instant, token: u64, fate: Fate) {
        self.told.push_back(Output { at, way, ue, token, fate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 10 Gbit/s, with 40 bytes of tunnel, 1400 bytes take 1152 ns and 100 bytes 112 ns: on the first link until
    /// 1152, 1264, 1376 and 2528; on the second from 1152, 2304, 2416 and 2528 on.
    #[test]
    fn packets_of_all_sizes_take_their_time_on_both_links() {
        let core = Core { s1_delay: Duration::ZERO, s5_delay: Duration::ZERO, ..Core::default() };
        let mut links = Links { core, last: (0, Duration::ZERO), s5: [Instant::ZERO; 2], s1: vec![[Instant::ZERO; 2]] };
        let out = [1400, 100, 100, 1400].map(|bytes| links.pass(0, Way::Downlink, bytes, Instant::ZERO).as_nanos());
        assert_eq!(out, [2304, 2416, 2528, 3680]);
    }

    /// Uplink takes the cell's own link first and then the one that all share: 1400 bytes from one cell have the second until 2304
    /// ns, and 100 bytes from another, over their first at 112, wait for it. Delays of both links are on the way.
    #[test]
    fn uplink_of_all_cells_shares_the_second_link() {
        let core = Core { s1_delay: Duration::ZERO, s5_delay: Duration::ZERO, ..Core::default() };
        let s1 = vec![[Instant::ZERO; 2]; 2];
        let mut links = Links { core, last: (0, Duration::ZERO), s5: [Instant::ZERO; 2], s1 };
        let out = [(0, 1400), (1, 100)].map(|(cell, bytes)| links.pass(cell, Way::Uplink, bytes, Instant::ZERO));
        assert_eq!(out.map(|at| at.as_nanos()), [2304, 2416]);
        links.core.s1_delay = Duration::from_micros(20);
        links.core.s5_delay = Duration::from_micros(300);
        let later = Instant::from_nanos(1_000_000);
        let out = Way::BOTH.map(|way| links.pass(0, way, 100, later).as_nanos());
        assert_eq!(out, [1_320_224; 2]);
    }
}
