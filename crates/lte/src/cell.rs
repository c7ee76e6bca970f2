//! One cell, subframe by subframe: the decisions of the eNB's MAC, and reception at the eNB and at its UEs.
//!
//! **Timing** (as in the reference model, ns-3's `lte` module). In subframe n, the scheduler assigns the downlink of
//! subframe n + 2 and grants the uplink of n + 6. The grant is transmitted in n + 2. Feedback on a downlink block of
//! subframe t reaches the scheduler in t + 5, so the retransmission is in t + 7 or later. An uplink block is
//! retransmitted in t + 7 and in no other subframe. A buffer status report made at the beginning of subframe b reaches
//! the scheduler in b + 5. A CQI measured in subframe m reaches it in m + 5. The UE fills its transport block after it
//! has decoded the grant, four subframes before the transmission. This is 3 symbols after the beginning of that
//! subframe.
//!
//! `downlink.rs` and `uplink.rs` contain the two directions, `outer_loop.rs` the link adaptation from the outcome of
//! blocks. This file contains what they share. All lists are ring buffers, indexed by the subframe in which their
//! entries are due. The rings are longer than the longest of these delays.

mod downlink;
mod outer_loop;
mod timers;
mod uplink;

pub(crate) use outer_loop::OuterLoop;
use timers::Timers;

use crate::air::{
    GroupPowers, NO_INTERFERENCE, RadioChannel, RandomEvent, ResourceBlockRow, SignalCache, TraceCursors, draw,
};
use crate::config::{CellConfig, CqiSource, UplinkReports};
use crate::exit::Egress;
use crate::radio::ROW_LANES;
use crate::radio::RadioError;
use crate::radio::amc::CqiTables;
use crate::radio::bandwidth::Bandwidth;
use crate::radio::errors::ErrorModel;
use crate::radio::power::{PowerControlConfig, UplinkPowerControl, ratio_to_db};
use crate::radio::tables;
use crate::rlc::{DueReports, LinkDirection, Sdu, SduOutcome};
use crate::scheduler::{BlockSizes, GroupSet, MAX_GROUPS, Scheduler, group_indices};
use crate::subframe::{start, subframe_from};
use crate::ue::{ChannelReport, Ue};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// Length of the rings: longer than the longest delay, which is 11 subframes.
const RING: usize = 16;
/// Subframes for which the eNB uses an uplink measurement (CqiTimerThreshold of the reference model).
const MEASUREMENT_HOLDS: u64 = 1_000;

/// A list for each of the next subframes.
#[derive(Debug)]
struct Ring<T>([Vec<T>; RING]);

impl<T> Ring<T> {
    fn new() -> Self {
        Ring(std::array::from_fn(|_| Vec::new()))
    }

    fn at(&mut self, subframe: u64) -> &mut Vec<T> {
        &mut self.0[subframe as usize % RING]
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// Returns the list of a subframe. The caller returns it so that its memory is reused. Nearly all lists are empty
    /// and stay in place.
    #[inline]
    fn take(&mut self, subframe: u64) -> Vec<T> {
        let list = self.at(subframe);
        if list.is_empty() { Vec::new() } else { std::mem::take(list) }
    }

    #[inline]
    fn give_back(&mut self, subframe: u64, mut list: Vec<T>) {
        if list.is_empty() {
            return;
        }
        list.clear();
        let now = self.at(subframe);
        debug_assert!(now.is_empty(), "no entry is due in the subframe in which it is created");
        *now = list;
    }
}

/// Powers of a cell that sends no data.
const NOTHING: GroupPowers = [0.0; MAX_GROUPS];

/// Constant data of all cells.
#[derive(Debug)]
pub(crate) struct CellContext {
    pub(crate) air: RadioChannel,
    pub(crate) errors: ErrorModel,
    pub(crate) data_errors: bool,
    pub(crate) control_errors: bool,
    pub(crate) eager: bool,
    /// Power of each UE, by power control or fixed, in dBm.
    pub(crate) powers: Vec<(Option<PowerControlConfig>, f64)>,
    /// UEs that send sounding signals: cell, UE, and offset in the sounding period.
    pub(crate) sounders: Vec<(usize, u16, u32)>,
}

impl CellContext {
    /// Power of a UE in each of `blocks` resource blocks, in dBm.
    fn dbm_per_block(&self, cell: usize, ue: usize, blocks: usize, sounding: bool, subframe: u64) -> f64 {
        let total = match &self.powers[ue] {
            (None, fixed) => *fixed,
            (Some(settings), _) => {
                // No scheduler sends power commands, so the power depends on the path only.
                let mut control = UplinkPowerControl::new(*settings);
                control.on_measurement(self.air.received_dbm(cell, ue, subframe));
                if sounding { control.sounding_dbm(blocks) } else { control.data_dbm(blocks) }
            }
        };
        total - ratio_to_db(blocks as f64)
    }
}

/// An uplink transmission that is interference at other cells.
#[derive(Clone, Copy, Debug)]
struct Heard {
    cell: usize,
    ue: u16,
    first: usize,
    count: usize,
    dbm_per_block: f64,
}

/// Transmissions of the cells by subframe, kept only if there are several cells.
#[derive(Debug)]
pub(crate) struct Transmissions {
    /// By cell and index in the ring: subframe, and power in each group.
    downlink: Vec<[(u64, GroupPowers); RING]>,
    uplink: Vec<(u64, Vec<Heard>)>,
}

impl Transmissions {
    pub(crate) fn new(cells: usize) -> Self {
        Transmissions {
            downlink: vec![[(u64::MAX, NOTHING); RING]; cells],
            uplink: (0..RING).map(|_| (u64::MAX, Vec::new())).collect(),
        }
    }

    fn powers(&self, cell: usize, subframe: u64) -> &GroupPowers {
        let (of, powers) = &self.downlink[cell][subframe as usize % RING];
        if *of == subframe { powers } else { &NOTHING }
    }

    fn add_groups(&mut self, cell: usize, subframe: u64, groups: GroupSet, power: f32) {
        let entry = &mut self.downlink[cell][subframe as usize % RING];
        if entry.0 != subframe {
            *entry = (subframe, NOTHING);
        }
        for group in group_indices(groups) {
            entry.1[group] = power;
        }
    }

    fn heard(&self, subframe: u64) -> &[Heard] {
        let (of, heard) = &self.uplink[subframe as usize % RING];
        if *of == subframe { heard } else { &[] }
    }

    fn add_uplink(&mut self, subframe: u64, heard: Heard) {
        let (of, list) = &mut self.uplink[subframe as usize % RING];
        if *of != subframe {
            *of = subframe;
            list.clear();
        }
        list.push(heard);
    }
}

/// A packet that arrives at an eNB at the time in its SDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InboundPacket {
    /// Index of the UE in the cell.
    pub(crate) ue: u16,
    pub(crate) bearer: u8,
    pub(crate) sdu: Sdu,
}

/// A record of a transmitted transport block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockRecord {
    /// Subframe of the transmission.
    pub subframe: u64,
    /// Index of the UE.
    pub ue: u16,
    /// Whether it is an uplink block.
    pub uplink: bool,
    /// Downlink: index of the first resource block group, and the set of groups as a bit mask. Uplink: first resource
    /// block and number of blocks.
    pub place: (u32, u32),
    /// Index of the layer.
    pub layer: u8,
    /// MCS of the block.
    pub mcs: u8,
    /// Size of the block in bytes.
    pub bytes: u32,
    /// Number of earlier transmissions of the block.
    pub redundancy: u8,
    /// Whether the receiver decoded the block.
    pub decoded: bool,
}

/// Feedback on a downlink HARQ process.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    ue: u16,
    process: u8,
    /// One bit for each layer that was not decoded.
    refused: u8,
}

/// A grant in transmission to the UE.
#[derive(Clone, Copy, Debug)]
struct Grant {
    ue: u16,
    slot: u8,
}

/// A cell.
pub(crate) struct Cell {
    index: usize,
    pub(crate) downlink: Bandwidth,
    pub(crate) uplink: Bandwidth,
    cqi: CqiTables,
    cqi_source: CqiSource,
    cqi_period: u64,
    uplink_reports: UplinkReports,
    harq: bool,
    /// Whether outer-loop link adaptation is active.
    outer_loop: bool,
    /// Groups that the cell may use.
    usable: GroupSet,
    scheduler: Box<dyn Scheduler>,
    rates: [BlockSizes; 2],
    layers: Vec<u8>,
    pub(crate) ues: Vec<Ue>,
    reports: Vec<ChannelReport>,
    rows: Vec<SignalCache>,
    tracks: TraceCursors,
    /// Free downlink HARQ processes, by UE.
    free: Vec<u8>,
    /// UEs with a free process.
    available: Bits,
    /// Error rate of a block with mutual information 1, by MCS and number of groups.
    best: Vec<[f64; 29]>,
    /// UEs with waiting data, by the scheduler's count.
    waiting: Bits,
    uplink_waiting: Bits,
    /// UEs with blocks to retransmit, in order of the feedback.
    retransmitting: Vec<u16>,
    /// UEs with a retransmission in this subframe.
    repeated: Vec<u16>,
    air_downlink: Ring<(u16, u8)>,
    feedback: Ring<Feedback>,
    /// Processes without feedback: UE, process, use of the process.
    unheard: Ring<(u16, u8, u32)>,
    grants: Ring<Grant>,
    air_uplink: Ring<Grant>,
    uplink_again: Ring<Grant>,
    statuses: Ring<(u16, u32)>,
    next_uplink: u16,
    /// The subframe after the last processed one.
    next: u64,
    /// The last few subframes with data, and the powers of the neighbors in them, for CQI.
    last_data: Vec<(u64, Vec<GroupPowers>)>,
    timers: Timers,
    /// UEs whose timer expires in this subframe.
    expired: Vec<u16>,
    /// UEs to which groups may be assigned, as a set and as a list. The list is rebuilt when the set changes, which is
    /// rare in a saturated cell (500 instructions for 50 UEs).
    active_set: Bits,
    active: Vec<u16>,
    /// Lists of one subframe, whose memory is reused: assignments of groups, and RLC's packet outcomes.
    shares: Vec<(u16, GroupSet, u8)>,
    arrived: Vec<SduOutcome>,
    pub(crate) records: Option<Vec<BlockRecord>>,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cell").field("index", &self.index).field("ues", &self.ues.len()).finish_non_exhaustive()
    }
}

/// A set of UEs.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(size: usize) -> Self {
        Bits(vec![0; size.div_ceil(64)])
    }

    fn all(size: usize) -> Self {
        let mut bits = Bits::new(size);
        (0..size).for_each(|index| bits.set(index, true));
        bits
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    #[inline]
    fn set(&mut self, index: usize, on: bool) {
        let bit = 1 << (index % 64);
        if on {
            self.0[index / 64] |= bit;
        } else {
            self.0[index / 64] &= !bit;
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Replaces this set by the intersection of both sets. Returns whether it has changed.
    #[inline]
    fn become_common(&mut self, one: &Bits, other: &Bits) -> bool {
        let mut changes = 0;
        for ((own, &one), &other) in self.0.iter_mut().zip(&one.0).zip(&other.0) {
            let common = one & other;
            changes |= *own ^ common;
            *own = common;
        }
        changes != 0
    }

    /// Writes the members in order. (8 instructions per member; 27 with the iterator below.)
    fn list(&self, members: &mut Vec<u16>) {
        members.clear();
        for (word, &bits) in (0u16..).zip(&self.0) {
            let mut bits = bits;
            // Sets the length once, since each `push` would check it.
            let from = members.len();
            members.resize(from + bits.count_ones() as usize, 0);
            for member in &mut members[from..] {
                *member = 64 * word + bits.trailing_zeros() as u16;
                bits &= bits.wrapping_sub(1);
            }
        }
    }

    /// Returns the members in order.
    fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let mut bits = bits;
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros();
                    bits &= bits - 1;
                    (word * 64) as u16 + bit as u16
                })
            })
        })
    }
}

impl Cell {
    pub(crate) fn new(
        index: usize,
        config: &CellConfig,
        shared: &CellContext,
        scheduler: Box<dyn Scheduler>,
        ues: Vec<Ue>,
    ) -> Result<Self, RadioError> {
        let bandwidth = config.downlink.bandwidth;
        let cqi = CqiTables::new(config.amc, bandwidth, &shared.errors);
        let rates = [1u32, 2].map(|layers| {
            BlockSizes::new(bandwidth.groups(), |cqi, groups| {
                let mcs = tables::mcs_of_cqi(cqi as u8);
                tables::downlink_bytes(mcs, groups * bandwidth.group_size()) * layers
            })
        });
        let best = (0..=bandwidth.groups())
            .map(|groups| {
                std::array::from_fn(|mcs| match groups {
                    0 => 0.0,
                    groups => {
                        let bytes = tables::downlink_bytes(mcs as u8, groups * bandwidth.group_size());
                        shared.errors.block_error_rate(mcs as u8, bytes, 1.0)
                    }
                })
            })
            .collect();
        let all = (1u32 << bandwidth.groups()) - 1;
        let usable = match config.downlink_groups {
            None => all,
            Some((first, count)) if first + count <= bandwidth.groups() && count > 0 => ((1 << count) - 1) << first,
            Some((first, count)) => {
                return Err(RadioError::new(format!(
                    "cell {} has {count} resource block groups from {first} on; expected groups within the {} of its band",
                    config.name,
                    bandwidth.groups()
                )));
            }
        };
        let reports = ues
            .iter()
            .map(|ue| {
                let number = usize::from(ue.number);
                let largest = shared.air.largest_downlink_signal(index, number) * ue.mode_gain * ue.data_power.max(1.0);
                let ceiling = if shared.air.moves(number) { 15 } else { cqi.max_cqi(largest) };
                ChannelReport { measured: [u64::MAX; 2], ceiling, ..ChannelReport::default() }
            })
            .collect();
        let gains = ues.iter().map(|ue| (ue.number, control_gain(config.cqi_source, ue)));
        let tracks = TraceCursors::new(&shared.air, index, gains);
        Ok(Cell {
            index,
            downlink: bandwidth,
            uplink: config.uplink.bandwidth,
            cqi,
            cqi_source: config.cqi_source,
            cqi_period: u64::from(config.cqi_period.max(1)),
            uplink_reports: config.uplink_reports,
            harq: config.harq,
            // Without errors there is nothing to learn: every MCS would be decoded.
            outer_loop: config.outer_loop && shared.data_errors,
            usable,
            scheduler,
            rates,
            layers: ues.iter().map(|ue| ue.layers).collect(),
            reports,
            tracks,
            rows: vec![SignalCache::new(); ues.len()],
            free: vec![0xFF; ues.len()],
            available: Bits::all(ues.len()),
            best,
            waiting: Bits::new(ues.len()),
            uplink_waiting: Bits::new(ues.len()),
            retransmitting: Vec::new(),
            repeated: Vec::new(),
            air_downlink: Ring::new(),
            feedback: Ring::new(),
            unheard: Ring::new(),
            grants: Ring::new(),
            air_uplink: Ring::new(),
            uplink_again: Ring::new(),
            statuses: Ring::new(),
            next_uplink: 0,
            next: 0,
            last_data: Vec::new(),
            timers: Timers::new(ues.len()),
            expired: Vec::new(),
            active_set: Bits::new(ues.len()),
            active: Vec::new(),
            ues,
            shares: Vec::new(),
            arrived: Vec::new(),
            records: None,
        })
    }

    /// Whether the next subframe must be processed.
    pub(crate) fn has_work(&self) -> bool {
        !(self.waiting.is_empty()
            && self.uplink_waiting.is_empty()
            && self.retransmitting.is_empty()
            && self.air_downlink.is_empty()
            && self.feedback.is_empty()
            && self.unheard.is_empty()
            && self.grants.is_empty()
            && self.air_uplink.is_empty()
            && self.uplink_again.is_empty()
            && self.statuses.is_empty())
    }

    /// Processes the beginning of subframe `n`: its transmissions and its decisions.
    pub(crate) fn subframe(&mut self, n: u64, shared: &CellContext, on_air: &mut Transmissions, exit: &mut Egress) {
        if n > self.next {
            self.scheduler.on_subframes_elapsed(n - self.next);
        }
        self.next = n + 1;
        self.read_grants(n, shared);
        self.hear_feedback(n);
        self.hear_statuses(n);
        self.schedule_downlink(n, shared, on_air);
        self.schedule_uplink(n, shared);
        self.scheduler.on_subframes_elapsed(1);
        // Reception in this subframe follows all of the above.
        self.receive_uplink(n, shared, on_air, exit);
        self.receive_downlink(n, shared, on_air, exit);
    }

    /// Releases a downlink HARQ process.
    fn release(&mut self, ue: usize, process: u8) {
        self.free[ue] |= 1 << process;
        self.available.set(ue, true);
    }

    /// Updates MAC after a change of a bearer's buffer that RLC reports.
    pub(crate) fn report(&mut self, ue: usize, bearer: usize, way: LinkDirection, at: Instant) {
        let owner = &mut self.ues[ue];
        match way {
            LinkDirection::Downlink => {
                owner.waiting[bearer] = owner.bearers[bearer].buffer_status(way).total_bytes();
                self.waiting.set(ue, owner.waiting.iter().any(|&bytes| bytes > 0));
            }
            LinkDirection::Uplink => self.send_status(ue, subframe_from(at)),
        }
    }

    /// Reports saturated sources before the first subframe.
    pub(crate) fn report_saturated(&mut self) {
        for ue in 0..self.ues.len() {
            for bearer in 0..self.ues[ue].bearers.len() {
                if self.ues[ue].bearers[bearer].mode() == crate::rlc::RlcMode::Saturated {
                    for way in LinkDirection::BOTH {
                        self.report(ue, bearer, way, Instant::ZERO);
                    }
                }
            }
        }
    }

    /// Forwards RLC's packet outcomes to the exit.
    fn hand_over(&mut self, ue: usize, way: LinkDirection, at: Instant, exit: &mut Egress) {
        exit.tell(self.index, self.ues[ue].number, way, at, &self.arrived);
        self.arrived.clear();
    }

    /// Passes the PDUs of a decoded block to RLC.
    fn decoded(
        &mut self,
        ue: usize,
        way: LinkDirection,
        at: Instant,
        pdus: &[(u8, crate::rlc::Pdu)],
        exit: &mut Egress,
    ) {
        for &(bearer, pdu) in pdus {
            let bearer = usize::from(bearer);
            let owner = &mut self.ues[ue];
            owner.counters[way as usize].pdu_bytes += u64::from(pdu.bytes);
            let due = owner.bearers[bearer].receive(way, at, pdu, &mut self.arrived);
            self.note_timer(ue, bearer);
            self.note_due(ue, bearer, due, at);
        }
        self.hand_over(ue, way, at, exit);
    }

    /// Offers a packet to a UE's buffer at `at`. Returns whether there was room for it.
    pub(crate) fn offer_uplink(&mut self, ue: usize, bearer: usize, sdu: Sdu, at: Instant) -> bool {
        let owner = &mut self.ues[ue];
        let counters = &mut owner.counters[LinkDirection::Uplink as usize];
        counters.packets += 1;
        let taken = owner.bearers[bearer].offer(LinkDirection::Uplink, sdu);
        counters.buffer_drops += u64::from(!taken);
        self.fill_late(ue, bearer, at);
        self.note_timer(ue, bearer);
        // The report is also sent for a dropped packet.
        self.report(ue, bearer, LinkDirection::Uplink, at);
        taken
    }

    /// Moves packets that have arrived at the eNB before `now` into the buffers. `refused` is called for each packet
    /// that is dropped, with the UE's number and the token.
    ///
    /// MAC receives one report after the last of a sequence of packets for a bearer. It uses no intermediate state, and
    /// each report replaces the previous one. (With eight packets per subframe each takes 125 instructions; 276 with a
    /// report for each.)
    pub(crate) fn take_in(
        &mut self,
        coming: &mut VecDeque<InboundPacket>,
        now: Instant,
        eager: bool,
        mut refused: impl FnMut(u16, u64),
    ) {
        let packets = coming.iter().take_while(|next| next.sdu.arrived < now).count();
        let (front, back) = coming.as_slices();
        let split = packets.min(front.len());
        for part in [&front[..split], &back[..packets - split]] {
            for row in part.chunk_by(|a, b| !eager && (a.ue, a.bearer) == (b.ue, b.bearer)) {
                let (index, entity) = (usize::from(row[0].ue), usize::from(row[0].bearer));
                let owner = &mut self.ues[index];
                let bearer = &mut owner.bearers[entity];
                let mut drops = 0;
                for InboundPacket { sdu, .. } in row {
                    if !bearer.offer(LinkDirection::Downlink, *sdu) {
                        drops += 1;
                        refused(owner.number, sdu.token);
                    }
                }
                self.timers.add(index, bearer.next_timer());
                owner.counters[0].packets += row.len() as u64;
                owner.counters[0].buffer_drops += drops;
                // Dropped packets are reported too, as in the reference model, so the eNB may assume an empty buffer.
                self.report(index, entity, LinkDirection::Downlink, now);
            }
        }
        coming.drain(..packets);
    }

    /// Schedules a report from RLC to MAC.
    fn note_due(&mut self, ue: usize, bearer: usize, due: DueReports, at: Instant) {
        for way in LinkDirection::BOTH {
            if due.report[way as usize] {
                self.report(ue, bearer, way, at);
            }
        }
    }

    /// Updates the timer of a UE after a possible change of a bearer's timers.
    #[inline]
    fn note_timer(&mut self, ue: usize, bearer: usize) {
        self.timers.add(ue, self.ues[ue].bearers[bearer].next_timer());
    }

    /// Returns a lower bound of the next timer's expiry.
    pub(crate) fn next_timer(&self) -> Instant {
        self.timers.earliest()
    }

    /// Runs the timers of all UEs up to the beginning of subframe `n`.
    pub(crate) fn run_timers(&mut self, n: u64, exit: &mut Egress) {
        let mut expired = std::mem::take(&mut self.expired);
        self.timers.expire(n, &mut expired);
        for ue in expired.drain(..) {
            self.expire(usize::from(ue), start(n), exit);
        }
        self.expired = expired;
    }

    /// Runs the timers of a UE up to `now`.
    fn expire(&mut self, ue: usize, now: Instant, exit: &mut Egress) {
        self.remind(ue, now);
        let mut next = self.ues[ue].remind_at;
        for bearer in 0..self.ues[ue].bearers.len() {
            if self.ues[ue].bearers[bearer].next_timer() <= now {
                let entity = &mut self.ues[ue].bearers[bearer];
                let told = |entity: &crate::rlc::Bearer| {
                    let counters = entity.counters(LinkDirection::Downlink);
                    counters.sdus_delivered + counters.sdus_lost + counters.sdus_discarded
                };
                let before = told(entity);
                let due = entity.expire(now, &mut self.arrived);
                // Downlink outcomes come first.
                let split = (told(entity) - before) as usize;
                let mut uplink = self.arrived.split_off(split);
                self.hand_over(ue, LinkDirection::Downlink, now, exit);
                self.arrived.append(&mut uplink);
                self.hand_over(ue, LinkDirection::Uplink, now, exit);
                self.note_due(ue, bearer, due, now);
            }
            next = next.min(self.ues[ue].bearers[bearer].next_timer());
        }
        self.timers.put(ue, next.min(self.ues[ue].remind_at));
    }

    /// Whether the UE decodes the control region of a subframe. In it all cells send in all blocks.
    fn hears_control(&mut self, ue: usize, subframe: u64, shared: &CellContext) -> bool {
        if !shared.control_errors {
            return true;
        }
        let owner = &self.ues[ue];
        let number = usize::from(owner.number);
        let alone = shared.air.cells() == 1;
        let quick = alone && !shared.eager;
        if quick && shared.errors.is_control_error_free(self.rows[ue].least(&shared.air, self.index, number, subframe))
        {
            return true;
        }
        let (signal, least) = self.rows[ue].signal(&shared.air, self.index, number, subframe);
        if quick && !shared.air.knows_least() && shared.errors.is_control_error_free(least) {
            return true;
        }
        let blocks = self.downlink.resource_blocks();
        let rate = if alone {
            shared.errors.control_error_rate(&signal[..blocks])
        } else {
            let (mut row, mut noise) = (*signal, NO_INTERFERENCE);
            shared.air.add_downlink_interference(self.index, number, subframe, |_| None, &mut noise);
            divide(&mut row, &noise);
            shared.errors.control_error_rate(&row[..blocks])
        };
        rate == 0.0 || draw(owner.key, subframe, RandomEvent::DownlinkControl) > rate
    }
}

/// The factor of the control region's SINR for the CQI.
fn control_gain(source: CqiSource, ue: &Ue) -> f32 {
    match source {
        CqiSource::Control => ue.mode_gain,
        CqiSource::Mixed => ue.mode_gain * ue.data_power,
    }
}

/// Divides the signal by noise and interference.
fn divide(row: &mut ResourceBlockRow, noise: &ResourceBlockRow) {
    for (signal, noise) in row.iter_mut().zip(noise) {
        *signal /= noise;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A list that is rebuilt only when the intersection of two sets changes equals that intersection.
        #[test]
        fn a_list_is_made_again_when_the_common_members_change(
            steps in prop::collection::vec((0usize..2, 0usize..130, any::<bool>()), 1..200),
        ) {
            let (mut sets, mut common, mut list) = ([Bits::new(130), Bits::all(130)], Bits::new(130), Vec::new());
            let mut members = [[false; 130], [true; 130]];
            for (set, member, on) in steps {
                sets[set].set(member, on);
                members[set][member] = on;
                if common.become_common(&sets[0], &sets[1]) {
                    common.list(&mut list);
                }
                let expected: Vec<u16> = (0..130).filter(|&k| members[0][usize::from(k)] && members[1][usize::from(k)]).collect();
                prop_assert_eq!(&list, &expected);
            }
        }
    }
}
