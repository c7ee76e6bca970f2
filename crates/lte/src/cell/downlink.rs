//! The downlink of a cell: the assignment of groups, the reception of blocks, and the UEs' feedback.

use super::*;
use crate::radio::fading::{GainRange, TraceFading, TraceOffset};
use crate::rlc::RlcMode;
use crate::scheduler::{ChannelReports, NO_OWNER, QueueReports, QueueStatus, SubframeContext};
use crate::ue::{HarqProcess, LAYERS, LastTransmission, TransportBlock, left_after};

/// Subframes from a scheduling decision to its transmission.
pub(super) const TO_AIR: u64 = 2;
/// Subframes from the transmission to the scheduler, for CQI, feedback and buffer status.
pub(super) const TO_SCHEDULER: u64 = 5;
/// Subframes from a decision until a process without feedback is released.
const UNHEARD: u64 = 11;
/// Largest number of retransmissions of a block.
pub(super) const MOST_RETRANSMISSIONS: u8 = 3;

/// Reports of UEs, computed on demand.
struct Reports<'a> {
    cell: usize,
    air: &'a RadioChannel,
    cqi: &'a CqiTables,
    blocks: usize,
    groups: usize,
    source: CqiSource,
    last_data: &'a [(u64, Vec<GroupPowers>)],
    ues: &'a [Ue],
    reports: &'a mut [ChannelReport],
    rows: &'a mut [SignalCache],
    tracks: &'a TraceCursors,
    /// The fading trace, at the time of the measurement.
    traced: Option<(&'a TraceFading, TraceOffset)>,
    /// When the channel was measured.
    measured: u64,
    /// Whether shortcuts are used.
    quick: bool,
    /// Whether outer-loop link adaptation corrects CQI.
    outer_loop: bool,
}

impl Reports<'_> {
    /// The factor of the control region's SINR.
    fn gain(&self, ue: usize) -> f32 {
        control_gain(self.source, &self.ues[ue])
    }

    /// The SINR from which CQI is computed.
    fn row(&mut self, ue: usize) -> ResourceBlockRow {
        let number = usize::from(self.ues[ue].number);
        let gain = self.gain(ue);
        let mut row = *self.rows[ue].signal(self.air, self.cell, number, self.measured).0;
        if gain != 1.0 {
            row.iter_mut().for_each(|value| *value *= gain);
        }
        if self.air.cells() == 1 {
            return row;
        }
        let mut noise = NO_INTERFERENCE;
        match self.source {
            CqiSource::Control => {
                self.air.add_downlink_interference(self.cell, number, self.measured, |_| None, &mut noise);
            }
            CqiSource::Mixed => {
                // The data region follows the measured control region of the same subframe, so only earlier subframes count.
                let last = self.last_data.iter().rev().find(|(subframe, _)| *subframe < self.measured);
                if let Some((subframe, powers)) = last {
                    self.air.add_downlink_interference(self.cell, number, *subframe, |c| Some(&powers[c]), &mut noise);
                }
            }
        }
        divide(&mut row, &noise);
        row
    }

    /// Whether even the deepest fade leaves the highest CQI. Most reports near a cell have it.
    fn is_best(&mut self, ue: usize) -> bool {
        if !self.quick || self.air.cells() > 1 {
            return false;
        }
        let gain = self.gain(ue);
        let number = usize::from(self.ues[ue].number);
        let cheap = self.rows[ue].least(self.air, self.cell, number, self.measured);
        if self.cqi.is_max_everywhere(cheap * gain) || self.air.knows_least() {
            return self.cqi.is_max_everywhere(cheap * gain);
        }
        let (_, least) = self.rows[ue].signal(self.air, self.cell, number, self.measured);
        self.cqi.is_max_everywhere(least * gain)
    }

    /// Returns the lowest CQI that the UE reports for any of these groups.
    fn lowest(&mut self, ue: u16, groups: GroupSet) -> u8 {
        // A check of all groups of the band takes 190 instructions.
        if let Some(even) = self.flat_cqi(ue) {
            return even;
        }
        let subbands = self.subband_cqis_of(ue, groups);
        group_indices(groups).map(|group| subbands[group]).min().unwrap_or(0)
    }
}

/// Returns the groups of this owner. It is a separate function so that the compiler vectorizes the comparison: 64
/// instructions, and 220 inside the scheduler's loop.
#[inline(never)]
fn groups_of(owner: u16, owners: &[u16; MAX_GROUPS]) -> GroupSet {
    let mut groups = 0;
    for (group, &other) in owners.iter().enumerate() {
        groups |= if other == owner { 1 << group } else { 0 };
    }
    groups
}

/// Moves the resource blocks of these groups to the front of the row.
fn gather(row: &mut ResourceBlockRow, groups: GroupSet, group_size: usize) {
    // A contiguous set that starts at group 0 is in place already.
    if groups & groups.wrapping_add(1) != 0 {
        for (place, group) in group_indices(groups).enumerate() {
            row.copy_within(group * group_size..(group + 1) * group_size, place * group_size);
        }
    }
}

impl ChannelReports for Reports<'_> {
    fn wideband_cqi(&mut self, ue: u16) -> u8 {
        let ue = usize::from(ue);
        if self.reports[ue].measured[1] != self.measured {
            let cqi = if self.is_best(ue) { 15 } else { self.cqi.wideband_cqi(&self.row(ue)[..self.blocks]) };
            self.reports[ue].measured[1] = self.measured;
            self.reports[ue].wideband = cqi;
        }
        self.corrected(ue, self.reports[ue].wideband)
    }

    fn subband_cqis(&mut self, ue: u16) -> &[u8; MAX_GROUPS] {
        self.subband_cqis_of(ue, GroupSet::MAX)
    }

    fn subband_cqi_bounds(&mut self, ue: u16) -> (&[u8; MAX_GROUPS], GroupSet) {
        let index = usize::from(ue);
        if self.outer_loop {
            return (self.subband_cqis(ue), 0);
        }
        self.report_subbands(index);
        let report = &self.reports[index];
        (&report.subbands, report.open)
    }

    fn subband_cqis_of(&mut self, ue: u16, groups: GroupSet) -> &[u8; MAX_GROUPS] {
        let ue = usize::from(ue);
        self.report_subbands(ue);
        // The correction applies to all groups.
        let groups = if self.outer_loop { GroupSet::MAX } else { groups };
        let open = self.reports[ue].open & groups;
        if open != 0 {
            self.close(ue, open);
        }
        if self.outer_loop { self.corrected_subbands(ue) } else { &self.reports[ue].subbands }
    }

    fn flat_cqi(&mut self, ue: u16) -> Option<u8> {
        let ue = usize::from(ue);
        self.report_subbands(ue);
        self.reports[ue].even.map(|cqi| self.corrected(ue, cqi))
    }

    fn max_cqi(&self, ue: u16) -> u8 {
        let ue = usize::from(ue);
        self.corrected(ue, self.reports[ue].ceiling)
    }

    fn has_constant_max_cqi(&self) -> bool {
        !self.outer_loop
    }

    fn fill_max_cqis(&mut self, ues: &[u16], ceilings: &mut [u8]) {
        match self.traced {
            Some(at) if self.quick && !self.outer_loop => {
                let (tracks, cqi) = (self.tracks, self.cqi);
                for (ceiling, &ue) in ceilings.iter_mut().zip(ues) {
                    *ceiling = cqi.quick_ceiling(tracks.largest(usize::from(ue), at));
                }
            }
            _ => {
                for (ceiling, &ue) in ceilings.iter_mut().zip(ues) {
                    *ceiling = self.max_cqi(ue);
                }
            }
        }
    }
}

impl Reports<'_> {
    /// Corrects a reported CQI by the outer loop.
    #[inline]
    fn corrected(&self, ue: usize, cqi: u8) -> u8 {
        if self.outer_loop { self.cqi.correct_cqi(cqi, self.ues[ue].outer_loop[0].gain()) } else { cqi }
    }

    /// Returns the reported CQI of each group, corrected.
    fn corrected_subbands(&mut self, ue: usize) -> &[u8; MAX_GROUPS] {
        let outer_loop = self.ues[ue].outer_loop[0];
        let report = &mut self.reports[ue];
        if report.corrected_of != Some((self.measured, outer_loop)) {
            let gain = outer_loop.gain();
            report.corrected = report.subbands.map(|cqi| self.cqi.correct_cqi(cqi, gain));
            report.corrected_of = Some((self.measured, outer_loop));
        }
        &report.corrected
    }

    /// Computes the report of each group if it is missing.
    #[inline]
    fn report_subbands(&mut self, ue: usize) {
        if self.reports[ue].measured[0] != self.measured {
            self.reports[ue].open = 0;
            if self.is_best(ue) {
                self.report_even(ue, 15);
            } else if !self.bound_subbands(ue) {
                let row = self.row(ue);
                self.cqi.fill_subband_cqis(&row[..self.blocks], &mut self.reports[ue].subbands);
                self.reports[ue].even = None;
            }
            self.reports[ue].measured[0] = self.measured;
        }
    }

    /// Sets the same CQI for all groups.
    fn report_even(&mut self, ue: usize, cqi: u8) {
        let report = &mut self.reports[ue];
        if report.even != Some(cqi) {
            report.subbands = [0; MAX_GROUPS];
            report.subbands[..self.groups].fill(cqi);
            report.even = Some(cqi);
        }
    }

    /// The factors of the SINR of a UE in a single cell: gain times the first, times the second.
    fn factors(&self, ue: usize) -> [f32; 2] {
        let number = usize::from(self.ues[ue].number);
        [self.air.mean_downlink_signal(self.cell, number, self.measured), self.gain(ue)]
    }

    /// Computes bounds of each group's report from its smallest and largest gain, if these are known. Gains change
    /// slowly with frequency, so about half of all groups then have a single possible CQI. The others are computed on
    /// demand: few of 25 groups, since a UE with a good group is often outbid in the others. (1,200 instructions if all
    /// are needed, 3,700 without bounds.)
    fn bound_subbands(&mut self, ue: usize) -> bool {
        if !self.quick || self.air.cells() > 1 {
            return false;
        }
        let factors = self.factors(ue);
        let flat = |gain: f32| self.cqi.flat_group(gain * factors[0] * factors[1]);
        let Some(at) = self.traced else {
            let fades = self.air.fades();
            if !fades {
                self.report_even(ue, flat(1.0));
            }
            return !fades;
        };
        let millisecond = self.tracks.millisecond(ue, at);
        let Some(groups) = at.0.groups(millisecond) else { return false };
        let GainRange { smallest, largest } = at.0.extremes(millisecond);
        let range = [smallest, largest].map(flat);
        if range[0] == range[1] {
            self.report_even(ue, range[0]);
            return true;
        }
        let report = &mut self.reports[ue];
        report.even = None;
        report.open = self.cqi.bound_groups([&groups.smallest, &groups.largest], factors, &mut report.subbands);
        true
    }

    /// Computes the CQI of groups that have only bounds.
    fn close(&mut self, ue: usize, groups: GroupSet) {
        let Some(at) = self.traced else { unreachable!("bounds are those of a trace") };
        let factors = self.factors(ue);
        let gains = at.0.gains(self.tracks.millisecond(ue, at));
        let size = self.blocks / self.groups;
        let report = &mut self.reports[ue];
        report.open &= !groups;
        for group in group_indices(groups) {
            let mut sinr = [0.0; 4];
            for (sinr, gain) in sinr.iter_mut().zip(&gains[group * size..(group + 1) * size]) {
                *sinr = gain * factors[0] * factors[1];
            }
            report.subbands[group] = self.cqi.one_group(&sinr[..size]);
        }
    }
}

/// Waiting data, by the scheduler's count.
struct Counted<'a> {
    ues: &'a [Ue],
    now: Instant,
}

impl Counted<'_> {
    /// Returns the waiting bytes of a UE's bearers with, or without, a guaranteed bit rate.
    #[inline]
    fn of(&self, ue: u16, chosen: impl Fn(bool) -> bool) -> QueueStatus {
        let owner = &self.ues[usize::from(ue)];
        let (mut bytes, mut oldest) = (0u32, Instant::NEVER);
        for ((bearer, &waiting), &guaranteed) in owner.bearers.iter().zip(&owner.waiting).zip(&owner.guaranteed) {
            if chosen(guaranteed) {
                bytes = bytes.saturating_add(waiting);
                oldest = oldest.min(bearer.buffer_status(LinkDirection::Downlink).head_of_line);
            }
        }
        let since = if oldest.is_never() { self.now } else { oldest };
        QueueStatus { bytes, head_of_line_ms: (self.now.saturating_since(since).as_nanos() / 1_000_000) as u32 }
    }
}

impl QueueReports for Counted<'_> {
    fn queue_status(&self, ue: u16) -> QueueStatus {
        self.of(ue, |_| true)
    }

    fn guaranteed_queue_status(&self, ue: u16) -> QueueStatus {
        self.of(ue, |guaranteed| guaranteed)
    }

    fn best_effort_queue_status(&self, ue: u16) -> QueueStatus {
        self.of(ue, |guaranteed| !guaranteed)
    }
}

impl Cell {
    /// Decodes the transmissions of subframe `n` at its end, one nanosecond before the next begins.
    pub(super) fn receive_downlink(&mut self, n: u64, shared: &CellContext, on_air: &Transmissions, exit: &mut Egress) {
        let blocks = self.air_downlink.take(n);
        let end = Instant::from_nanos((n + 1) * 1_000_000 - 1);
        if !blocks.is_empty() && shared.air.cells() > 1 {
            let powers = (0..shared.air.cells()).map(|cell| *on_air.powers(cell, n)).collect();
            self.last_data.push((n, powers));
            if self.last_data.len() > RING {
                self.last_data.remove(0);
            }
        }
        for &(ue, process) in &blocks {
            let index = usize::from(ue);
            if !self.hears_control(index, n, shared) {
                self.ues[index].counters[0].control_errors += 1;
                let generation = self.ues[index].processes[usize::from(process)].generation;
                self.unheard.at(n + UNHEARD - TO_AIR).push((ue, process, generation));
                continue;
            }
            let refused = self.decode_downlink(index, process, n, end, shared, on_air, exit);
            self.feedback.at(n + TO_SCHEDULER).push(Feedback { ue, process, refused });
        }
        self.air_downlink.give_back(n, blocks);
    }

    /// Decodes the blocks of a process. Returns the layers that were not decoded.
    #[allow(clippy::too_many_arguments, reason = "UE, process, time and place")]
    fn decode_downlink(
        &mut self,
        ue: usize,
        process: u8,
        n: u64,
        end: Instant,
        shared: &CellContext,
        on_air: &Transmissions,
        exit: &mut Egress,
    ) -> u8 {
        let number = usize::from(self.ues[ue].number);
        let gain = self.ues[ue].data_power * self.ues[ue].mode_gain;
        let HarqProcess { groups, blocks: [TransportBlock { cqi, mcs, .. }, _], .. } =
            self.ues[ue].processes[usize::from(process)];
        self.ues[ue].last[0] = LastTransmission { subframe: n, place: (groups, 0), cqi, mcs };
        let mut best = false;
        if !shared.eager && shared.air.cells() == 1 {
            let cheap = self.rows[ue].least(&shared.air, self.index, number, n);
            best = self.cqi.is_max_everywhere(cheap * gain)
                || !shared.air.knows_least()
                    && self.cqi.is_max_everywhere(self.rows[ue].signal(&shared.air, self.index, number, n).1 * gain);
        }
        let row = (!best).then(|| self.block_sinr(ue, groups, n, shared, on_air));
        let sinr = row.as_ref().map(|row| &row[..groups.count_ones() as usize * self.downlink.group_size()]);
        let mut refused = 0;
        for layer in 0..LAYERS {
            let owner = &mut self.ues[ue];
            let state = &mut owner.processes[usize::from(process)];
            let redundancy = state.redundancy;
            let block = &mut state.blocks[layer];
            if !block.open {
                continue;
            }
            let mut decoded = true;
            if shared.data_errors {
                let information = match sinr {
                    None => 1.0,
                    Some(sinr) => shared.errors.mean_mutual_information(tables::modulation(block.mcs), sinr),
                };
                let rate = if redundancy > 0 {
                    block.combining.error_rate(&shared.errors, block.mcs, block.bytes, information)
                } else if best {
                    self.best[groups.count_ones() as usize][usize::from(block.mcs)]
                } else {
                    shared.errors.block_error_rate(block.mcs, block.bytes, information)
                };
                let chance = if layer == 0 { RandomEvent::DownlinkBlock } else { RandomEvent::SecondLayer };
                decoded = rate == 0.0 || draw(owner.key, n, chance) > rate;
                if !decoded {
                    block.combining.add_failed_attempt(block.mcs, block.bytes, information);
                }
            }
            if let Some(records) = &mut self.records {
                records.push(BlockRecord {
                    subframe: n,
                    ue: owner.number,
                    uplink: false,
                    place: (groups.trailing_zeros(), groups),
                    layer: layer as u8,
                    mcs: block.mcs,
                    bytes: block.bytes,
                    redundancy,
                    decoded,
                });
            }
            if decoded {
                block.open = false;
                let pdus = std::mem::take(&mut block.pdus);
                self.decoded(ue, LinkDirection::Downlink, end, &pdus, exit);
                self.ues[ue].processes[usize::from(process)].blocks[layer].pdus = pdus;
            } else {
                owner.counters[0].errors += 1;
                refused |= 1 << layer;
            }
        }
        refused
    }

    /// Computes the SINR at a UE in the resource blocks of these groups, without gaps.
    fn block_sinr(
        &mut self,
        ue: usize,
        groups: GroupSet,
        n: u64,
        shared: &CellContext,
        on_air: &Transmissions,
    ) -> ResourceBlockRow {
        let number = usize::from(self.ues[ue].number);
        let mut row = *self.rows[ue].signal(&shared.air, self.index, number, n).0;
        self.disturb(ue, n, shared, on_air, &mut row);
        gather(&mut row, groups, self.downlink.group_size());
        row
    }

    /// Converts the signal at full power to the SINR of the data region at a UE.
    fn disturb(&self, ue: usize, n: u64, shared: &CellContext, on_air: &Transmissions, row: &mut ResourceBlockRow) {
        let owner = &self.ues[ue];
        let gain = owner.data_power * owner.mode_gain;
        if gain != 1.0 {
            row.iter_mut().for_each(|value| *value *= gain);
        }
        if shared.air.cells() > 1 {
            let number = usize::from(owner.number);
            let mut noise = NO_INTERFERENCE;
            shared.air.add_downlink_interference(self.index, number, n, |c| Some(on_air.powers(c, n)), &mut noise);
            divide(row, &noise);
        }
    }

    /// Handles feedback: processes are released or retransmitted.
    pub(super) fn hear_feedback(&mut self, n: u64) {
        let list = self.feedback.take(n);
        for &Feedback { ue, process, refused } in &list {
            let owner = &mut self.ues[usize::from(ue)];
            let state = &mut owner.processes[usize::from(process)];
            if self.outer_loop && state.redundancy == 0 {
                for (layer, block) in state.blocks.iter().enumerate().filter(|(_, block)| !block.pdus.is_empty()) {
                    owner.outer_loop[0].learn(block.cqi, refused >> layer & 1 == 0);
                }
            }
            if refused != 0 && self.harq && state.redundancy < MOST_RETRANSMISSIONS {
                state.redundancy += 1;
                owner.retransmissions.push(process);
                if !self.retransmitting.contains(&ue) {
                    self.retransmitting.push(ue);
                }
            } else {
                owner.counters[0].lost_blocks += u64::from(refused.count_ones());
                self.release(usize::from(ue), process);
            }
        }
        self.feedback.give_back(n, list);
        let list = self.unheard.take(n);
        for &(ue, process, generation) in &list {
            let owner = &mut self.ues[usize::from(ue)];
            let state = &owner.processes[usize::from(process)];
            if state.generation == generation {
                owner.counters[0].lost_blocks += state.blocks.iter().filter(|block| block.open).count() as u64;
                self.release(usize::from(ue), process);
            }
        }
        self.unheard.give_back(n, list);
    }

    /// Schedules retransmissions, one per UE: in their original groups if free, otherwise in the lowest free ones.
    /// Returns the groups used.
    fn retransmit(&mut self, n: u64, on_air: &mut Transmissions) -> GroupSet {
        let mut taken = 0;
        self.retransmitting.sort_unstable();
        let mut waiting = std::mem::take(&mut self.retransmitting);
        waiting.retain(|&ue| {
            let owner = &mut self.ues[usize::from(ue)];
            let process = owner.retransmissions[0];
            let state = &mut owner.processes[usize::from(process)];
            if state.groups & taken != 0 {
                let mut free = self.usable & !taken;
                let wanted = state.groups.count_ones();
                if free.count_ones() < wanted {
                    return true;
                }
                state.groups = 0;
                for _ in 0..wanted {
                    state.groups |= free & free.wrapping_neg();
                    free &= free - 1;
                }
            }
            taken |= state.groups;
            owner.counters[0].retransmissions += state.blocks.iter().filter(|block| block.open).count() as u64;
            owner.retransmissions.remove(0);
            self.repeated.push(ue);
            self.air_downlink.at(n + TO_AIR).push((ue, process));
            on_air.add_groups(self.index, n + TO_AIR, state.groups, owner.data_power);
            !owner.retransmissions.is_empty()
        });
        self.retransmitting = waiting;
        taken
    }

    /// Decides the transmissions of subframe `n` + 2.
    pub(super) fn schedule_downlink(&mut self, n: u64, shared: &CellContext, on_air: &mut Transmissions) {
        let taken = if self.retransmitting.is_empty() { 0 } else { self.retransmit(n, on_air) };
        let measured = n.saturating_sub(TO_SCHEDULER) / self.cqi_period * self.cqi_period;
        for &ue in &self.repeated {
            self.available.set(usize::from(ue), false);
        }
        if self.active_set.become_common(&self.waiting, &self.available) {
            self.active_set.list(&mut self.active);
        }
        for ue in self.repeated.drain(..) {
            self.available.set(usize::from(ue), self.free[usize::from(ue)] != 0);
        }
        let mut owners = [NO_OWNER; MAX_GROUPS];
        let ues = &self.ues;
        let traced = self.tracks.begin(&shared.air, self.index, measured, |ue| ues[ue].number);
        let mut reports = Reports {
            cell: self.index,
            air: &shared.air,
            cqi: &self.cqi,
            blocks: self.downlink.resource_blocks(),
            groups: self.downlink.groups(),
            source: self.cqi_source,
            last_data: &self.last_data,
            ues: &self.ues,
            reports: &mut self.reports,
            rows: &mut self.rows,
            tracks: &self.tracks,
            traced,
            measured,
            quick: !shared.eager,
            outer_loop: self.outer_loop,
        };
        if shared.eager {
            for ue in 0..self.ues.len() as u16 {
                reports.wideband_cqi(ue);
                reports.subband_cqis(ue);
            }
        }
        let free = self.usable & !taken;
        if !self.active.is_empty() && free != 0 {
            self.scheduler.allocate(
                &mut SubframeContext {
                    groups: self.downlink.groups(),
                    free,
                    active: &self.active,
                    rates: &self.rates,
                    layers: &self.layers,
                    channel: &mut reports,
                    queues: &Counted { ues: &self.ues, now: start(n) },
                },
                &mut owners,
            );
        }
        // The groups of each UE, in order of its first group, and the CQI of its blocks.
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        let mut rest: GroupSet = (1 << self.downlink.groups()) - 1;
        while rest != 0 {
            let owner = owners[rest.trailing_zeros() as usize];
            let groups = groups_of(owner, &owners) & rest;
            rest &= !groups;
            if owner == NO_OWNER {
                continue;
            }
            let cqi = match self.scheduler.uses_wideband_mcs() {
                true => reports.wideband_cqi(owner),
                false => reports.lowest(owner, groups),
            };
            shares.push((owner, groups, cqi));
        }
        for &(ue, groups, cqi) in &shares {
            if self.fill_downlink(n, ue, groups, cqi) && shared.air.cells() > 1 {
                let power = self.ues[usize::from(ue)].data_power;
                on_air.add_groups(self.index, n + TO_AIR, groups, power);
            }
        }
        self.shares = shares;
    }

    /// Fills the blocks of a UE with assigned groups. A block that has no room for a PDU is not sent, and its groups
    /// stay empty. Returns whether any block is sent.
    fn fill_downlink(&mut self, n: u64, ue: u16, groups: GroupSet, cqi: u8) -> bool {
        let index = usize::from(ue);
        let mcs = tables::mcs_of_cqi(cqi);
        let bytes = tables::downlink_bytes(mcs, groups.count_ones() as usize * self.downlink.group_size());
        let owner = &mut self.ues[index];
        let number = self.free[index].trailing_zeros() as u8;
        let process = &mut owner.processes[usize::from(number)];
        process.groups = groups;
        process.redundancy = 0;
        process.generation = process.generation.wrapping_add(1);
        let layers = usize::from(owner.layers);
        let mut sent = false;
        for block in &mut process.blocks[..layers] {
            let active = owner.waiting.iter().filter(|&&bytes| bytes > 0).count() as u32;
            block.cqi = cqi;
            block.mcs = mcs;
            block.bytes = bytes;
            block.combining = Default::default();
            block.pdus.clear();
            let share = bytes / active.max(1);
            for (bearer, waiting) in owner.waiting.iter_mut().enumerate() {
                if *waiting == 0 {
                    continue;
                }
                let entity = &mut owner.bearers[bearer];
                if let Some(pdu) = entity.on_transmit_opportunity(LinkDirection::Downlink, start(n), share) {
                    block.pdus.push((bearer as u8, pdu));
                }
                *waiting = match entity.mode() {
                    // AM sends a STATUS report, one retransmission or new data, so only RLC can compute the rest. A saturated
                    // source always has data.
                    RlcMode::Acknowledged | RlcMode::Saturated => {
                        entity.buffer_status(LinkDirection::Downlink).total_bytes()
                    }
                    mode => left_after(*waiting, share, mode.header_bytes()),
                };
                self.timers.add(index, entity.next_timer());
            }
            block.open = !block.pdus.is_empty();
            if block.open {
                sent = true;
                owner.counters[0].count_block(mcs, bytes);
            }
        }
        self.waiting.set(index, owner.waiting.iter().any(|&bytes| bytes > 0));
        if sent {
            self.free[index] &= !(1 << number);
            self.available.set(index, self.free[index] != 0);
            self.air_downlink.at(n + TO_AIR).push((ue, number));
        }
        self.scheduler.on_served(ue, bytes * layers as u32);
        sent
    }

    /// The mean SINR over the last block's resource blocks; NaN before the first block.
    pub(crate) fn last_downlink_sinr(&self, ue: usize, shared: &CellContext, on_air: &Transmissions) -> f64 {
        let last = &self.ues[ue].last[0];
        let size = self.downlink.group_size();
        let mut row = [0.0; ROW_LANES];
        let number = usize::from(self.ues[ue].number);
        shared.air.downlink_signal(self.index, number, last.subframe, &mut row);
        self.disturb(ue, last.subframe, shared, on_air, &mut row);
        let of = || group_indices(last.place.0).flat_map(|group| &row[group * size..(group + 1) * size]);
        ratio_to_db(of().map(|sinr| f64::from(*sinr)).sum::<f64>() / of().count() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_an_owner_are_found_in_any_arrangement() {
        let mut owners = [NO_OWNER; MAX_GROUPS];
        for (group, owner) in [(0, 7), (3, 7), (4, 0), (24, 0), (25, 300), (31, 7)] {
            owners[group] = owner;
        }
        let of = |owner| groups_of(owner, &owners);
        assert_eq!((of(7), of(0), of(300)), (1 | 1 << 3 | 1 << 31, 1 << 4 | 1 << 24, 1 << 25));
        assert_eq!((of(1), of(NO_OWNER)), (0, !(of(7) | of(0) | of(300))));
    }

    #[test]
    fn gathered_row_has_the_blocks_of_the_groups_in_order() {
        let row: ResourceBlockRow = std::array::from_fn(|block| block as f32);
        for groups in [0, 1, 0b111, 0b110, 1 << 24, 0b1010_1010, (1 << 25) - 1, 0x155_5555, 0x1FF_0FF0] {
            let mut gathered = row;
            gather(&mut gathered, groups, 4);
            let expected: Vec<f32> =
                group_indices(groups).flat_map(|group| row[4 * group..4 * group + 4].to_vec()).collect();
            assert_eq!(gathered[..expected.len()], expected, "{groups:b}");
        }
    }
}
