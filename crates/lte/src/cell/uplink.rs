//! The uplink of a cell: buffer status, grants, transmissions of UEs, and their reception at the eNB.

use super::downlink::{MOST_RETRANSMISSIONS, TO_AIR, TO_SCHEDULER};
use super::*;
use crate::bearer::{buffer_status_bytes, buffer_status_index};
use crate::ue::{LastTransmission, left_after};

/// Subframes from the reading of a grant to the transmission (TS 36.213, clause 8.0).
const GRANT_TO_AIR: u64 = 4;
/// Subframes from a transmission to its retransmission (those of the reference model; 8 in TS 36.213, clause 8.0).
const REPEAT: u64 = 7;
/// Time of decoding: 13 of 14 symbols less a nanosecond after the beginning of the subframe.
const DECODED_AFTER: Duration = Duration::from_nanos(928_570);
/// Time after which a UE with data and without a grant reports again: the smallest retxBSR-Timer (TS 36.331, clause
/// 6.3.2). The reference model has no such timer: there, a UE whose only grant was lost waits until it has more data.
const REMIND_AFTER: Duration = Duration::from_millis(320);
/// When a UE has read the grants of a subframe: after the control region of 3 of 14 symbols.
const CONTROL_REGION: Duration = Duration::from_nanos(214_286);
/// Smallest number of resource blocks of a grant.
const FEWEST_BLOCKS: usize = 3;

impl Cell {
    /// Sends the UE's buffer status report at the beginning of subframe `boundary`.
    pub(super) fn send_status(&mut self, ue: usize, boundary: u64) {
        let owner = &self.ues[ue];
        let mut groups = [0u32; 4];
        for (bearer, &group) in owner.bearers.iter().zip(&owner.groups) {
            let group = &mut groups[usize::from(group)];
            *group = group.saturating_add(bearer.buffer_status(LinkDirection::Uplink).total_bytes());
        }
        // The table ends at 150 kB.
        let bytes = groups.iter().map(|&bytes| buffer_status_bytes(buffer_status_index(bytes))).sum();
        let due = boundary + TO_SCHEDULER;
        let remind_at = if bytes > 0 { start(boundary) + REMIND_AFTER } else { Instant::NEVER };
        self.ues[ue].remind_at = remind_at;
        self.timers.add(ue, remind_at);
        match self.ues[ue].status_due {
            Some((same, place)) if same == due => self.statuses.at(due)[place].1 = bytes,
            _ => {
                let list = self.statuses.at(due);
                list.push((ue as u16, bytes));
                self.ues[ue].status_due = Some((due, list.len() - 1));
            }
        }
    }

    /// Adds a packet that arrives during the control region of a subframe to the block of a grant in it, as far as
    /// there is room: the block is built when the grant has been read. A later buffer status report has the remaining
    /// bytes (TS 36.321, clause 5.4.5). [`Cell::read_grants`] has filled the block at the beginning of the subframe, so
    /// this is an additional RLC PDU.
    pub(super) fn fill_late(&mut self, ue: usize, bearer: usize, at: Instant) {
        let owner = &mut self.ues[ue];
        let Some((of, slot)) = owner.grant_read else { return };
        if at < start(of) || at >= start(of) + CONTROL_REGION {
            return;
        }
        let block = &mut owner.uplink_blocks[usize::from(slot)].block;
        let own = |(of, _): &&(u8, crate::rlc::Pdu)| usize::from(*of) == bearer;
        // A STATUS report uses up its transmission opportunity.
        if block.pdus.iter().filter(own).any(|(_, pdu)| pdu.is_status()) {
            return;
        }
        let room = block.bytes.saturating_sub(block.pdus.iter().map(|(_, pdu)| pdu.bytes).sum());
        if let Some(pdu) = owner.bearers[bearer].on_transmit_opportunity(LinkDirection::Uplink, at, room) {
            if block.pdus.is_empty() {
                owner.counters[1].count_block(block.mcs, block.bytes);
            }
            block.pdus.push((bearer as u8, pdu));
        }
    }

    /// Sends another report of a UE that has waited too long.
    pub(super) fn remind(&mut self, ue: usize, now: Instant) {
        let owner = &mut self.ues[ue];
        if owner.remind_at > now {
            return;
        }
        owner.remind_at = Instant::NEVER;
        if owner.bearers.iter().any(|bearer| bearer.buffer_status(LinkDirection::Uplink).total_bytes() > 0) {
            self.send_status(ue, subframe_from(now));
        }
    }

    /// Delivers buffer status reports to the scheduler.
    pub(super) fn hear_statuses(&mut self, n: u64) {
        let list = self.statuses.take(n);
        for &(ue, bytes) in &list {
            let owner = &mut self.ues[usize::from(ue)];
            owner.uplink_waiting = bytes;
            if owner.status_due.is_some_and(|(due, _)| due == n) {
                owner.status_due = None;
            }
            self.uplink_waiting.set(usize::from(ue), bytes > 0);
        }
        self.statuses.give_back(n, list);
    }

    /// The last subframe before `n` in which the UE sent a sounding signal.
    fn sounded_before(&self, ue: usize, n: u64, period: u32) -> u64 {
        let (period, offset) = (u64::from(period), u64::from(self.ues[ue].sounding_offset));
        let last = n.saturating_sub(1);
        if last < offset { 0 } else { last - (last - offset) % period }
    }

    /// The SINR of a UE's uplink by resource block, as the eNB estimates it in subframe `n`; `None` without an
    /// estimate.
    fn uplink_channel(&mut self, ue: usize, n: u64, shared: &CellContext) -> Option<&ResourceBlockRow> {
        let UplinkReports::Sounding { period } = self.uplink_reports else {
            let measured = self.ues[ue].sounded.as_ref();
            return measured.filter(|(of, _)| of + MEASUREMENT_HOLDS > n).map(|(_, row)| &**row);
        };
        let sounded = self.sounded_before(ue, n, period);
        if self.ues[ue].sounded.as_ref().is_none_or(|(of, _)| *of != sounded) {
            let blocks = self.uplink.resource_blocks();
            let number = usize::from(self.ues[ue].number);
            let power = shared.dbm_per_block(self.index, number, blocks, true, sounded);
            let mut row = [0.0; ROW_LANES];
            shared.air.add_uplink(self.index, number, sounded, power, 0, blocks, &mut row);
            if shared.air.cells() > 1 {
                let mut noise = NO_INTERFERENCE;
                let offset = self.ues[ue].sounding_offset;
                for &(cell, other, _) in shared.sounders.iter().filter(|s| s.0 != self.index && s.2 == offset) {
                    let other = usize::from(other);
                    let power = shared.dbm_per_block(cell, other, blocks, true, sounded);
                    shared.air.add_uplink(self.index, other, sounded, power, 0, blocks, &mut noise);
                }
                divide(&mut row, &noise);
            }
            match &mut self.ues[ue].sounded {
                Some((of, kept)) => (*of, **kept) = (sounded, row),
                empty => *empty = Some((sounded, Box::new(row))),
            }
        }
        self.ues[ue].sounded.as_ref().map(|(_, row)| &**row)
    }

    /// Schedules subframe `n` + 6: round robin, contiguous resource blocks, retransmissions in their original blocks.
    pub(super) fn schedule_uplink(&mut self, n: u64, shared: &CellContext) {
        let again = self.uplink_again.take(n);
        let mut taken: u128 = 0;
        let span = |first: usize, count: usize| ((1u128 << count) - 1) << first;
        for &Grant { ue, slot } in &again {
            let owner = &mut self.ues[usize::from(ue)];
            let block = &mut owner.uplink_blocks[usize::from(slot)];
            block.redundancy += 1;
            taken |= span(block.first, block.count);
            owner.counters[1].retransmissions += 1;
            owner.repeated = n;
            // Retransmissions need no grant, which could be lost.
            self.air_uplink.at(n + REPEAT - 1).push(Grant { ue, slot });
        }
        self.uplink_again.give_back(n, again);
        if self.uplink_waiting.is_empty() {
            return;
        }
        let blocks = self.uplink.resource_blocks();
        let candidates: Vec<u16> =
            self.uplink_waiting.iter().filter(|&ue| self.ues[usize::from(ue)].repeated != n).collect();
        let free = blocks - taken.count_ones() as usize;
        let mut count = (free / candidates.len().max(1)).max(FEWEST_BLOCKS);
        let begin = candidates.partition_point(|&ue| ue < self.next_uplink);
        let mut from = 0;
        for &ue in candidates[begin..].iter().chain(&candidates[..begin]) {
            // The first run that is long enough, otherwise the longest remaining one, if it is not below the smallest grant.
            let run = loop {
                match (from..(blocks + 1).saturating_sub(count)).find(|&first| taken & span(first, count) == 0) {
                    Some(first) => break Some(first),
                    None if count > FEWEST_BLOCKS => count -= 1,
                    None => break None,
                }
            };
            let Some(first) = run else {
                self.next_uplink = ue;
                return;
            };
            from = first + count;
            self.next_uplink = ue + 1;
            self.grant(usize::from(ue), n, first, count, shared);
        }
    }

    /// Grants a UE resource blocks of subframe `n` + 6.
    fn grant(&mut self, ue: usize, n: u64, first: usize, count: usize, shared: &CellContext) {
        let worst = self
            .uplink_channel(ue, n, shared)
            .map(|row| row[first..first + count].iter().copied().fold(f32::INFINITY, f32::min));
        let (cqi, mcs) = match worst.map(|sinr| (sinr, self.cqi.uplink_cqi(sinr))) {
            None => (0, 0),
            Some((_, 0)) => return,
            Some((sinr, cqi)) => {
                let cqi = match self.outer_loop {
                    false => cqi,
                    true => self.cqi.uplink_cqi(sinr * self.ues[ue].outer_loop[1].gain()).max(1),
                };
                (cqi, tables::mcs_of_cqi(cqi))
            }
        };
        let bytes = tables::uplink_bytes(mcs, count);
        let sent = n + TO_AIR + GRANT_TO_AIR;
        let slot = (sent % REPEAT) as u8;
        let owner = &mut self.ues[ue];
        let block = &mut owner.uplink_blocks[usize::from(slot)];
        block.first = first;
        block.count = count;
        block.redundancy = 0;
        block.block.cqi = cqi;
        block.block.mcs = mcs;
        block.block.bytes = bytes;
        block.block.combining = Default::default();
        block.block.pdus.clear();
        // The eNB cannot predict which bearers will use the block, so it assumes the largest header.
        let header = owner.bearers.iter().map(|bearer| bearer.mode().header_bytes()).max().unwrap_or(0);
        owner.uplink_waiting = left_after(owner.uplink_waiting, bytes, header);
        self.uplink_waiting.set(ue, owner.uplink_waiting > 0);
        self.grants.at(n + TO_AIR).push(Grant { ue: ue as u16, slot });
    }

    /// Lets UEs read the grants of subframe `n` and fill their blocks.
    pub(super) fn read_grants(&mut self, n: u64, shared: &CellContext) {
        let list = self.grants.take(n);
        for &Grant { ue, slot } in &list {
            let index = usize::from(ue);
            if !self.hears_control(index, n, shared) {
                self.ues[index].counters[1].control_errors += 1;
                continue;
            }
            let owner = &mut self.ues[index];
            owner.grant_read = Some((n, slot));
            let block = &mut owner.uplink_blocks[usize::from(slot)].block;
            let waits = |bearer: &crate::rlc::Bearer| bearer.buffer_status(LinkDirection::Uplink).total_bytes() > 0;
            let active = owner.bearers.iter().filter(|bearer| waits(bearer)).count() as u32;
            let share = block.bytes / active.max(1);
            for (bearer, entity) in owner.bearers.iter_mut().enumerate().filter(|(_, bearer)| waits(bearer)) {
                if let Some(pdu) = entity.on_transmit_opportunity(LinkDirection::Uplink, start(n), share) {
                    block.pdus.push((bearer as u8, pdu));
                }
                self.timers.add(index, entity.next_timer());
            }
            if !block.pdus.is_empty() {
                owner.counters[1].count_block(block.mcs, block.bytes);
            }
            self.air_uplink.at(n + GRANT_TO_AIR).push(Grant { ue, slot });
            // A pending report is updated; a saturated source reports after each transmission opportunity.
            let saturated = owner.bearers.iter().any(|bearer| bearer.mode() == crate::rlc::RlcMode::Saturated);
            if saturated || owner.status_due.is_some_and(|(due, _)| due > n + TO_SCHEDULER) {
                self.send_status(index, n + 1);
            }
        }
        self.grants.give_back(n, list);
    }

    /// Announces to the other cells what the UEs of this cell send in subframe `n`.
    pub(crate) fn announce_uplink(&mut self, n: u64, shared: &CellContext, on_air: &mut Transmissions) {
        for place in 0..self.air_uplink.at(n).len() {
            let Grant { ue, slot } = self.air_uplink.at(n)[place];
            let index = usize::from(ue);
            let block = &self.ues[index].uplink_blocks[usize::from(slot)];
            if block.block.pdus.is_empty() {
                continue;
            }
            let (first, count) = (block.first, block.count);
            let ue = self.ues[index].number;
            let dbm_per_block = shared.dbm_per_block(self.index, usize::from(ue), count, false, n);
            on_air.add_uplink(n, Heard { cell: self.index, ue, first, count, dbm_per_block });
        }
    }

    /// Decodes the transmissions of subframe `n` after 13 of its 14 symbols.
    pub(super) fn receive_uplink(&mut self, n: u64, shared: &CellContext, on_air: &Transmissions, exit: &mut Egress) {
        let list = self.air_uplink.take(n);
        let end = start(n) + DECODED_AFTER;
        for &Grant { ue, slot } in &list {
            let index = usize::from(ue);
            let block = &self.ues[index].uplink_blocks[usize::from(slot)];
            // A UE without data for its grant sends nothing.
            if block.block.pdus.is_empty() {
                continue;
            }
            let (first, count, redundancy) = (block.first, block.count, block.redundancy);
            let number = usize::from(self.ues[index].number);
            let power = shared.dbm_per_block(self.index, number, count, false, n);
            let mut row = [0.0; ROW_LANES];
            shared.air.add_uplink(self.index, number, n, power, first, count, &mut row);
            self.divide_by_heard(n, shared, on_air, &mut row);
            if self.uplink_reports == UplinkReports::Data {
                self.learn(index, n, first, count, &row);
            }
            let owner = &mut self.ues[index];
            let state = &mut owner.uplink_blocks[usize::from(slot)].block;
            let place = (first as u32, count as u32);
            owner.last[1] = LastTransmission { subframe: n, place, cqi: state.cqi, mcs: state.mcs };
            let mut decoded = true;
            if shared.data_errors {
                let modulation = tables::modulation(state.mcs);
                let information = shared.errors.mean_mutual_information(modulation, &row[first..first + count]);
                let rate = match redundancy {
                    0 => shared.errors.block_error_rate(state.mcs, state.bytes, information),
                    _ => state.combining.error_rate(&shared.errors, state.mcs, state.bytes, information),
                };
                decoded = rate == 0.0 || draw(owner.key, n, RandomEvent::UplinkBlock) > rate;
                if !decoded {
                    state.combining.add_failed_attempt(state.mcs, state.bytes, information);
                }
                if self.outer_loop && redundancy == 0 {
                    owner.outer_loop[1].learn(state.cqi, decoded);
                }
            }
            if let Some(records) = &mut self.records {
                let (mcs, bytes) = (state.mcs, state.bytes);
                let ue = owner.number;
                let record =
                    BlockRecord { subframe: n, ue, uplink: true, place, layer: 0, mcs, bytes, redundancy, decoded };
                records.push(record);
            }
            if decoded {
                let pdus = std::mem::take(&mut state.pdus);
                self.decoded(index, LinkDirection::Uplink, end, &pdus, exit);
                self.ues[index].uplink_blocks[usize::from(slot)].block.pdus = pdus;
            } else {
                owner.counters[1].errors += 1;
                if self.harq && redundancy < MOST_RETRANSMISSIONS {
                    self.uplink_again.at(n + 1).push(Grant { ue, slot });
                } else {
                    owner.counters[1].lost_blocks += 1;
                }
            }
        }
        self.air_uplink.give_back(n, list);
    }

    /// Divides the signal by noise and the transmissions of other cells' UEs in this subframe.
    fn divide_by_heard(&self, n: u64, shared: &CellContext, on_air: &Transmissions, row: &mut ResourceBlockRow) {
        if shared.air.cells() == 1 {
            return;
        }
        let mut noise = NO_INTERFERENCE;
        for other in on_air.heard(n).iter().filter(|heard| heard.cell != self.index) {
            let Heard { ue, first, count, dbm_per_block, .. } = *other;
            shared.air.add_uplink(self.index, usize::from(ue), n, dbm_per_block, first, count, &mut noise);
        }
        divide(row, &noise);
    }

    /// Stores the channel measurement of a transmission. One measurement is kept, as in the reference model. Resource
    /// blocks outside it have the mean of those inside.
    fn learn(&mut self, ue: usize, n: u64, first: usize, count: usize, row: &ResourceBlockRow) {
        let mut known = [row[first..first + count].iter().sum::<f32>() / count as f32; ROW_LANES];
        known[first..first + count].copy_from_slice(&row[first..first + count]);
        self.ues[ue].sounded = Some((n, Box::new(known)));
    }

    /// The mean SINR over the last block's resource blocks, at the time of its transmission.
    pub(crate) fn last_uplink_sinr(&self, ue: usize, shared: &CellContext, on_air: &Transmissions) -> f64 {
        let last = &self.ues[ue].last[1];
        let (first, count) = (last.place.0 as usize, last.place.1 as usize);
        let number = usize::from(self.ues[ue].number);
        let power = shared.dbm_per_block(self.index, number, count, false, last.subframe);
        let mut row = [0.0; ROW_LANES];
        shared.air.add_uplink(self.index, number, last.subframe, power, first, count, &mut row);
        self.divide_by_heard(last.subframe, shared, on_air, &mut row);
        ratio_to_db(row[first..first + count].iter().map(|s| f64::from(*s)).sum::<f64>() / count as f64)
    }
}
