//! A cell without radio for tests of schedulers: constant CQIs, blocks that all arrive, queues that are always full or
//! filled evenly. It has 25 resource blocks unless stated otherwise: 12 groups of 2.

use super::{
    BitRateLimits, BlockSizes, ChannelReports, GroupSet, MAX_GROUPS, NO_OWNER, QueueReports, QueueStatus, Scheduler,
    SubframeContext, group_indices,
};
use crate::radio::tables;
use std::collections::VecDeque;

/// Number of whole groups of 25 resource blocks.
pub(super) const GROUPS: usize = 12;

/// Number of resource blocks in a group.
const GROUP_SIZE: usize = 2;

/// Bytes of a transport block with this number of groups.
pub(super) fn bytes(groups: usize, cqi: u8) -> u32 {
    if cqi == 0 { 0 } else { tables::downlink_bytes(tables::mcs_of_cqi(cqi), groups * GROUP_SIZE) }
}

/// Rate of the whole band in bytes/s.
pub(super) fn full(cqi: u8) -> f64 {
    f64::from(bytes(GROUPS, cqi)) * 1000.0
}

/// CQI at the reference's distances of 0, 4800, 6000, 10000 and 20000 m; MCS 28, 22, 20, 14, 8.
pub(super) const BY_DISTANCE: [u8; 5] = [15, 12, 11, 8, 5];

/// Rates of 25 resource blocks, with one and two layers.
pub(super) fn rates() -> [BlockSizes; 2] {
    [1, 2].map(|layers| BlockSizes::new(GROUPS, |cqi, groups| layers * bytes(groups, cqi as u8)))
}

/// Constant reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    pub(super) wideband: Vec<u8>,
    pub(super) subbands: Vec<[u8; MAX_GROUPS]>,
    /// Excess of the ceilings of a subframe and the bounds of groups. The ceilings over all subframes exceed by twice
    /// as much.
    pub(super) slack: Vec<u8>,
    /// Whether the ceilings over all subframes are the highest CQI, and so constant.
    pub(super) steady: bool,
    /// The bounds of groups that were read last.
    loose: [u8; MAX_GROUPS],
    /// UEs whose reports were read, in order.
    pub(super) asked: Vec<u16>,
}

impl Reports {
    /// Adds a UE with the same CQI in all groups.
    pub(super) fn flat(&mut self, cqi: u8) {
        self.add(cqi, &[cqi; GROUPS]);
    }

    /// Adds a UE.
    pub(super) fn add(&mut self, wideband: u8, subbands: &[u8]) {
        let mut row = [0; MAX_GROUPS];
        row[..subbands.len()].copy_from_slice(subbands);
        self.wideband.push(wideband);
        self.subbands.push(row);
        self.slack.push(0);
    }
}

impl ChannelReports for Reports {
    fn wideband_cqi(&mut self, ue: u16) -> u8 {
        self.asked.push(ue);
        self.wideband[usize::from(ue)]
    }

    fn subband_cqis(&mut self, ue: u16) -> &[u8; MAX_GROUPS] {
        self.asked.push(ue);
        &self.subbands[usize::from(ue)]
    }

    fn flat_cqi(&mut self, ue: u16) -> Option<u8> {
        let row = &self.subbands[usize::from(ue)][..GROUPS];
        let even = row.iter().all(|cqi| *cqi == row[0]).then_some(row[0]);
        self.asked.extend(even.map(|_| ue));
        even
    }

    fn max_cqi(&self, ue: u16) -> u8 {
        if self.steady {
            return 15;
        }
        (self.ceiling_now(ue) + self.slack[usize::from(ue)]).min(15)
    }

    fn has_constant_max_cqi(&self) -> bool {
        self.steady
    }

    fn fill_max_cqis(&mut self, ues: &[u16], ceilings: &mut [u8]) {
        for (ceiling, &ue) in ceilings.iter_mut().zip(ues) {
            *ceiling = self.ceiling_now(ue);
        }
    }

    fn subband_cqi_bounds(&mut self, ue: u16) -> (&[u8; MAX_GROUPS], GroupSet) {
        self.asked.push(ue);
        let (exact, slack) = (&self.subbands[usize::from(ue)], self.slack[usize::from(ue)]);
        self.loose = exact.map(|cqi| (cqi + slack).min(15));
        let open = (0..MAX_GROUPS).filter(|&k| self.loose[k] != exact[k]).fold(0, |open, k| open | 1 << k);
        (&self.loose, open)
    }

    /// The bounds that were read before, with exact values in these groups.
    fn subband_cqis_of(&mut self, ue: u16, groups: GroupSet) -> &[u8; MAX_GROUPS] {
        for k in group_indices(groups) {
            self.loose[k] = self.subbands[usize::from(ue)][k];
        }
        &self.loose
    }
}

impl Reports {
    pub(super) fn ceiling_now(&self, ue: u16) -> u8 {
        let ue = usize::from(ue);
        let most = self.subbands[ue].iter().fold(self.wideband[ue], |most, &cqi| most.max(cqi));
        (most + self.slack[ue]).min(15)
    }
}

/// The source of a UE's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Always full.
    Saturated,
    /// A constant amount of waiting data.
    Constant(QueueStatus),
    /// A packet of this size in every subframe, from the first on.
    Packets(u32),
}

/// Queues of all UEs.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    sources: Vec<Source>,
    /// Arrival and remaining bytes of each packet.
    packets: Vec<VecDeque<(u64, u32)>>,
    /// Additional waiting data on a bearer with a guaranteed bit rate. For a UE without them, all data are on such a
    /// bearer if the UE has a guaranteed rate.
    voice: Vec<Option<QueueStatus>>,
    promised: Vec<bool>,
    now: u64,
}

impl Buffers {
    fn take(&mut self, ue: usize, mut bytes: u32) -> u64 {
        if !matches!(self.sources[ue], Source::Packets(_)) {
            return u64::from(bytes);
        }
        let mut taken = 0;
        while let Some((_, rest)) = self.packets[ue].front_mut() {
            let piece = bytes.min(*rest);
            *rest -= piece;
            bytes -= piece;
            taken += u64::from(piece);
            if *rest > 0 {
                break;
            }
            self.packets[ue].pop_front();
        }
        taken
    }
}

impl Buffers {
    fn of_source(&self, ue: u16) -> QueueStatus {
        let ue = usize::from(ue);
        match self.sources[ue] {
            Source::Saturated => QueueStatus { bytes: 1_000_000, head_of_line_ms: 100 },
            Source::Constant(waiting) => waiting,
            Source::Packets(_) => {
                let packets = &self.packets[ue];
                let head_of_line_ms = packets.front().map_or(0, |(arrival, _)| (self.now - arrival) as u32);
                QueueStatus { bytes: packets.iter().map(|(_, bytes)| bytes).sum(), head_of_line_ms }
            }
        }
    }
}

impl QueueReports for Buffers {
    fn queue_status(&self, ue: u16) -> QueueStatus {
        let [one, other] = [self.guaranteed_queue_status(ue), self.best_effort_queue_status(ue)];
        QueueStatus { bytes: one.bytes + other.bytes, head_of_line_ms: one.head_of_line_ms.max(other.head_of_line_ms) }
    }

    fn guaranteed_queue_status(&self, ue: u16) -> QueueStatus {
        match self.voice[usize::from(ue)] {
            Some(voice) => voice,
            None if self.promised[usize::from(ue)] => self.of_source(ue),
            None => QueueStatus::default(),
        }
    }

    fn best_effort_queue_status(&self, ue: u16) -> QueueStatus {
        let alone = self.voice[usize::from(ue)].is_none() && self.promised[usize::from(ue)];
        if alone { QueueStatus::default() } else { self.of_source(ue) }
    }
}

/// The cell.
pub(super) struct Cell {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) reports: Reports,
    pub(super) buffers: Buffers,
    /// Groups without a retransmission.
    pub(super) free: GroupSet,
    rates: [BlockSizes; 2],
    /// Bytes delivered since the start of the last [`run`](Cell::run), by UE.
    pub(super) delivered: Vec<u64>,
}

impl Cell {
    pub(super) fn new(scheduler: Box<dyn Scheduler>) -> Cell {
        Cell {
            scheduler,
            reports: Reports::default(),
            buffers: Buffers::default(),
            free: (1 << GROUPS) - 1,
            rates: rates(),
            delivered: Vec::new(),
        }
    }

    /// Creates a cell with UEs that have full queues and these CQIs in all groups.
    pub(super) fn saturated(scheduler: Box<dyn Scheduler>, cqis: &[u8]) -> Cell {
        let mut cell = Cell::new(scheduler);
        for &cqi in cqis {
            cell.add(cqi, Source::Saturated, BitRateLimits::default());
        }
        cell
    }

    /// Adds a UE with this CQI in all groups.
    pub(super) fn add(&mut self, cqi: u8, source: Source, promise: BitRateLimits) {
        self.reports.flat(cqi);
        self.attach(source, promise);
    }

    /// Attaches the UE whose reports were added last.
    pub(super) fn attach(&mut self, source: Source, promise: BitRateLimits) {
        self.buffers.sources.push(source);
        self.buffers.packets.push(VecDeque::new());
        self.buffers.voice.push(None);
        self.buffers.promised.push(promise.guaranteed_bits_per_second > 0);
        self.delivered.push(0);
        self.scheduler.attach(promise);
    }

    /// Adds constant waiting data on a bearer of the last UE with a guaranteed bit rate, separate from the UE's source.
    pub(super) fn add_voice(&mut self, waiting: QueueStatus) {
        *self.buffers.voice.last_mut().expect("a UE") = Some(waiting);
    }

    /// Runs one subframe and checks the rules for all schedulers.
    pub(super) fn subframe(&mut self) -> [u16; MAX_GROUPS] {
        let now = self.buffers.now;
        for (source, packets) in self.buffers.sources.iter().zip(&mut self.buffers.packets) {
            if let Source::Packets(bytes) = *source {
                packets.push_back((now, bytes));
            }
        }
        let ues = self.delivered.len() as u16;
        let active: Vec<u16> = (0..ues).filter(|&ue| self.buffers.queue_status(ue).bytes > 0).collect();
        let layers = vec![1; usize::from(ues)];
        // The scheduler must overwrite these values.
        let mut owners = [12_345; MAX_GROUPS];
        self.scheduler.allocate(
            &mut SubframeContext {
                groups: GROUPS,
                free: self.free,
                active: &active,
                rates: &self.rates,
                layers: &layers,
                channel: &mut self.reports,
                queues: &self.buffers,
            },
            &mut owners,
        );
        for (ue, groups) in shares(&owners) {
            let index = usize::from(ue);
            assert!(active.contains(&ue), "{ue} has nothing to send");
            assert_eq!(groups & !self.free, 0, "{ue} got groups that are not free");
            let cqi = if self.scheduler.uses_wideband_mcs() {
                self.reports.wideband[index]
            } else {
                group_indices(groups).map(|k| self.reports.subbands[index][k]).min().expect("a group")
            };
            assert_ne!(cqi, 0, "{ue} is out of range");
            let bytes = bytes(groups.count_ones() as usize, cqi);
            self.delivered[index] += self.buffers.take(index, bytes);
            self.scheduler.on_served(ue, bytes);
        }
        self.scheduler.on_subframes_elapsed(1);
        self.buffers.now += 1;
        owners
    }

    /// Runs a number of subframes and returns the delivered bytes/s of each UE.
    pub(super) fn run(&mut self, subframes: u64) -> Vec<f64> {
        self.delivered.fill(0);
        for _ in 0..subframes {
            self.subframe();
        }
        self.delivered.iter().map(|&bytes| bytes as f64 * 1000.0 / subframes as f64).collect()
    }
}

/// The UEs with assigned groups, and their groups.
pub(super) fn shares(owners: &[u16; MAX_GROUPS]) -> Vec<(u16, GroupSet)> {
    let mut shares: Vec<(u16, GroupSet)> = Vec::new();
    for (k, &owner) in owners.iter().enumerate().filter(|(_, owner)| **owner != NO_OWNER) {
        match shares.iter_mut().find(|(ue, _)| *ue == owner) {
            Some((_, groups)) => *groups |= 1 << k,
            None => shares.push((owner, 1 << k)),
        }
    }
    shares
}

/// Checks that all values are within a relative tolerance.
#[track_caller]
pub(super) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found_one, expected_one) in found.iter().zip(expected) {
        let difference = (found_one - expected_one).abs();
        assert!(difference <= tolerance * expected_one, "{found:?}, expected {expected:?}");
    }
}
