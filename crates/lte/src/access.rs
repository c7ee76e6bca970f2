//! The LTE access network: packets enter at the PGW or at a UE, and leave at the other end or are dropped.
//!
//! Two links connect the PGW and the eNB: S5 between PGW and SGW, and S1-U between SGW and eNB. On both links, each
//! packet is encapsulated in GTP-U, UDP and IPv4. The delay of both links is computed when a packet enters the first
//! one. All other processing takes place in subframes. Only subframes in which data is waiting, in transmission or due
//! are processed. An idle network causes no events.

use crate::air::RadioChannel;
use crate::bearer::{MAX_BEARERS, TUNNEL_BYTES};
use crate::cell::{BlockRecord, Cell, CellContext, InboundPacket, Transmissions};
use crate::config::{BearerConfig, Config, UeConfig, UplinkReports};
use crate::connection::{BearerSetupTimes, compute_setup_times};
use crate::exit::{CoreLinks, Egress, PacketOutcome, PacketReport};
use crate::radio::RadioError;
use crate::radio::errors::ErrorModel;
use crate::radio::power::db_to_ratio;
use crate::rlc::{Bearer, Counters, LinkDirection, PDCP_HEADER_BYTES, RlcMode, Sdu};
use crate::scheduler::{BitRateLimits, catalogue};
use crate::subframe::{start, subframe_from};
use crate::ue::{DirectionCounters, DirectionStatus, HarqProcess, LastTransmission, Ue, UplinkTransportBlock};
use fullpipe_units::{Instant, RandomStream};
use std::collections::VecDeque;

/// A packet offered to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedPacket {
    /// Size of the IP packet in bytes.
    pub bytes: u32,
    /// The caller's identifier of the packet.
    pub token: u64,
}

/// The status of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeStatus {
    /// Counters, downlink first.
    pub counters: [DirectionCounters; 2],
    /// The last transmission in each direction, downlink first.
    pub last: [DirectionStatus; 2],
    /// When the UE's bearers are established.
    pub established: BearerSetupTimes,
}

/// An LTE access network.
///
/// A UE is identified by its index in [`Config::ues`], a bearer by its index in [`UeConfig::bearers`].
#[derive(Debug)]
pub struct AccessNetwork {
    shared: CellContext,
    on_air: Transmissions,
    cells: Vec<Cell>,
    /// Cell of each UE, and its index there.
    places: Vec<(usize, usize)>,
    /// When the bearers of each UE are established, and when all of them are.
    established: Vec<BearerSetupTimes>,
    all_ready: Instant,
    /// Packets in transmission to each eNB.
    coming: Vec<VecDeque<InboundPacket>>,
    /// The next subframe to process; `u64::MAX` if there is none.
    due: u64,
    /// The subframe after the last processed one.
    next: u64,
    exit: Egress,
}

impl AccessNetwork {
    /// Creates a network.
    ///
    /// # Errors
    /// If the configuration is invalid, a scheduler does not support the bit rates of a UE, or random access fails. The
    /// error states the reason.
    pub fn new(config: Config) -> Result<Self, RadioError> {
        check(&config)?;
        let mut shared = CellContext {
            air: RadioChannel::new(&config),
            errors: ErrorModel::new(config.errors.grid),
            data_errors: config.errors.data,
            control_errors: config.errors.control,
            eager: config.eager,
            powers: config.ues.iter().map(|ue| (ue.power_control, ue.power_dbm)).collect(),
            sounders: Vec::new(),
        };
        let mut places = vec![(0, 0); config.ues.len()];
        let established = establish_all(&config)?;
        let mut cells = Vec::new();
        for (index, cell) in config.cells.iter().enumerate() {
            let mut scheduler = catalogue::create_scheduler(&cell.scheduler, &cell.scheduler_parameters)
                .map_err(|unknown| RadioError::new(unknown.to_string()))?;
            let mut ues = Vec::new();
            for (number, ue) in config.ues.iter().enumerate().filter(|(_, ue)| ue.cell == index) {
                places[number] = (index, ues.len());
                let period = match cell.uplink_reports {
                    UplinkReports::Sounding { period } => period,
                    UplinkReports::Data => 1,
                };
                let offset = ues.len() as u32 % period;
                shared.sounders.push((index, number as u16, offset));
                let sum = |rate: fn(&BearerConfig) -> u64| ue.bearers.iter().map(rate).sum();
                let promise = BitRateLimits {
                    guaranteed_bits_per_second: sum(|bearer| bearer.guaranteed.bits_per_second()),
                    maximum_bits_per_second: sum(|bearer| bearer.maximum.bits_per_second()),
                };
                let refused =
                    |refusal| RadioError::new(format!("UE {} and scheduler {}: {refusal}", ue.name, cell.scheduler));
                scheduler.admit(&promise).map_err(refused)?;
                scheduler.attach(promise);
                ues.push(attach(config.seed, number as u16, ue, offset));
            }
            let mut cell = Cell::new(index, cell, &shared, scheduler, ues)?;
            cell.report_saturated();
            cells.push(cell);
        }
        let links = CoreLinks {
            core: config.core,
            last: (0, config.core.rate.transmission_time(u64::from(TUNNEL_BYTES))),
            s5: [Instant::ZERO; 2],
            s1: vec![[Instant::ZERO; 2]; cells.len()],
        };
        Ok(AccessNetwork {
            on_air: Transmissions::new(cells.len()),
            coming: cells.iter().map(|_| VecDeque::new()).collect(),
            shared,
            cells,
            places,
            all_ready: established.iter().map(|ue| ue.ready).max().unwrap_or_default(),
            established,
            due: 0,
            next: 0,
            exit: Egress { links, told: VecDeque::new(), inside: [0; 2] },
        })
    }

    /// Offers a packet that arrives at the PGW for a bearer of a UE. `now` must not decrease between calls.
    pub fn send_downlink(&mut self, now: Instant, ue: u16, bearer: u8, packet: OfferedPacket) {
        self.shared.air.packet(now, packet.bytes);
        let (cell, place) = self.places[usize::from(ue)];
        let at = self.exit.links.pass(cell, LinkDirection::Downlink, packet.bytes, now);
        let sdu = Sdu { bytes: packet.bytes + PDCP_HEADER_BYTES, token: packet.token, arrived: at };
        self.coming[cell].push_back(InboundPacket { ue: place as u16, bearer, sdu });
        self.exit.inside[0] += 1;
        // A packet that arrives exactly at the beginning of a subframe misses it.
        if self.due > self.next {
            self.wake(at.as_nanos() / 1_000_000 + 1);
        }
    }

    /// Offers a packet that a UE sends to the PGW on one of its bearers. `now` must not decrease between calls.
    pub fn send_uplink(&mut self, now: Instant, ue: u16, bearer: u8, packet: OfferedPacket) {
        self.shared.air.packet(now, packet.bytes);
        if self.comes_early(now, LinkDirection::Uplink, ue) {
            self.exit.drop(ue, LinkDirection::Uplink, now, packet.token, PacketOutcome::Lost);
            return;
        }
        let (cell, place) = self.places[usize::from(ue)];
        let sdu = Sdu { bytes: packet.bytes + PDCP_HEADER_BYTES, token: packet.token, arrived: now };
        let taken = self.cells[cell].offer_uplink(place, usize::from(bearer), sdu, now);
        // The buffer status report must be processed even if the packet was dropped.
        self.wake(subframe_from(now));
        if taken {
            self.exit.inside[1] += 1;
        } else {
            self.exit.drop(ue, LinkDirection::Uplink, now, packet.token, PacketOutcome::BufferFull);
        }
    }

    /// Whether a packet is dropped because its UE has no bearers yet. Counts such a packet.
    #[inline]
    fn comes_early(&mut self, at: Instant, way: LinkDirection, ue: u16) -> bool {
        if at >= self.all_ready || at >= self.established[usize::from(ue)].ready {
            return false;
        }
        let (cell, place) = self.places[usize::from(ue)];
        let counters = &mut self.cells[cell].ues[place].counters[way as usize];
        counters.packets += 1;
        counters.early_packets += 1;
        true
    }

    /// Drops packets that arrived at eNBs before their UEs had bearers.
    fn drop_early(&mut self, now: Instant) {
        for cell in 0..self.cells.len() {
            let mut index = 0;
            while let Some(&InboundPacket { ue, sdu, .. }) =
                self.coming[cell].get(index).filter(|c| c.sdu.arrived < now)
            {
                let ue = self.cells[cell].ues[usize::from(ue)].number;
                if self.comes_early(sdu.arrived, LinkDirection::Downlink, ue) {
                    self.coming[cell].remove(index);
                    self.exit.inside[LinkDirection::Downlink as usize] -= 1;
                    self.exit.drop(ue, LinkDirection::Downlink, now, sdu.token, PacketOutcome::Lost);
                } else {
                    index += 1;
                }
            }
        }
    }

    /// Returns the beginning of the next subframe after `at`. A packet that arrives at the PGW at `at` has no effect
    /// before this time. The call of [`AccessNetwork::send_downlink`] can be delayed until then, if packets are still
    /// offered in the order of their arrival.
    pub fn latest_offer_time(at: Instant) -> Instant {
        start(at.as_nanos() / 1_000_000 + 1)
    }

    fn wake(&mut self, subframe: u64) {
        self.due = self.due.min(subframe.max(self.next));
    }

    /// Returns when [`AccessNetwork::advance`] must be called next; [`Instant::NEVER`] if there is nothing to do.
    pub fn next_deadline(&self) -> Instant {
        if self.due == u64::MAX { Instant::NEVER } else { start(self.due) }
    }

    /// Processes all subframes that have begun by `now`. Packets that arrive exactly at the beginning of a subframe
    /// must be offered after this call.
    pub fn advance(&mut self, now: Instant) {
        while self.next_deadline() <= now {
            self.subframe(self.due);
        }
    }

    fn subframe(&mut self, n: u64) {
        let now = start(n);
        // The packets accepted here arrived after the beginning of the last subframe.
        if now < self.all_ready.saturating_add(start(1) - start(0)) {
            self.drop_early(now);
        }
        let exit = &mut self.exit;
        for (cell, coming) in self.cells.iter_mut().zip(&mut self.coming) {
            cell.take_in(coming, now, self.shared.eager, |ue, token| {
                exit.inside[LinkDirection::Downlink as usize] -= 1;
                exit.drop(ue, LinkDirection::Downlink, now, token, PacketOutcome::BufferFull);
            });
        }
        for cell in &mut self.cells {
            cell.run_timers(n, exit);
            if self.shared.air.cells() > 1 {
                cell.announce_uplink(n, &self.shared, &mut self.on_air);
            }
        }
        for cell in &mut self.cells {
            cell.subframe(n, &self.shared, &mut self.on_air, exit);
        }
        self.next = n + 1;
        self.due = u64::MAX;
        if self.shared.eager || self.cells.iter().any(Cell::has_work) {
            self.wake(n + 1);
            return;
        }
        for index in 0..self.cells.len() {
            if let Some(coming) = self.coming[index].front() {
                self.wake(coming.sdu.arrived.as_nanos() / 1_000_000 + 1);
            }
            let timer = self.cells[index].next_timer();
            if !timer.is_never() {
                self.wake(subframe_from(timer));
            }
        }
    }

    /// Removes and returns the next packet outcome; `None` if there is none. Call this function after every other call
    /// until it returns `None`.
    #[inline]
    pub fn poll_output(&mut self) -> Option<PacketReport> {
        self.exit.told.pop_front()
    }

    /// Removes all outcomes that [`AccessNetwork::poll_output`] would return and passes them to `tell`, in order, in
    /// two calls. The second slice may be empty. If there are no outcomes, `tell` is not called.
    #[inline]
    pub fn drain_outputs(&mut self, mut tell: impl FnMut(&[PacketReport])) {
        let (first, second) = self.exit.told.as_slices();
        if !first.is_empty() {
            tell(first);
            tell(second);
            self.exit.told.clear();
        }
    }

    /// Returns the number of packets in the network, downlink first. These are the packets that were offered and whose
    /// outcome [`AccessNetwork::poll_output`] cannot return yet.
    pub fn pending_packets(&self) -> [u64; 2] {
        self.exit.inside
    }

    /// Returns the status of a UE.
    pub fn ue_status(&self, ue: u16) -> UeStatus {
        let (cell, place) = self.places[usize::from(ue)];
        let (cell, of) = (&self.cells[cell], &self.cells[cell].ues[place]);
        let status = |way: LinkDirection| {
            let last = &of.last[way as usize];
            let sinr_db = match (last.place, way) {
                ((0, 0), _) => f64::NAN,
                (_, LinkDirection::Downlink) => cell.last_downlink_sinr(place, &self.shared, &self.on_air),
                (_, LinkDirection::Uplink) => cell.last_uplink_sinr(place, &self.shared, &self.on_air),
            };
            let buffer_bytes = of.bearers.iter().map(|bearer| bearer.waiting_bytes(way)).sum::<u64>();
            DirectionStatus { sinr_db, cqi: last.cqi, mcs: last.mcs, buffer_bytes }
        };
        UeStatus {
            counters: of.counters(),
            last: [status(LinkDirection::Downlink), status(LinkDirection::Uplink)],
            established: self.established[usize::from(ue)],
        }
    }

    /// Returns the RLC mode and the counters, downlink first, of each bearer of a UE, starting with the default bearer.
    pub fn bearer_counters(&self, ue: u16) -> impl Iterator<Item = (RlcMode, [&Counters; 2])> {
        let (cell, place) = self.places[usize::from(ue)];
        let bearers = &self.cells[cell].ues[place].bearers;
        bearers.iter().map(|bearer| (bearer.mode(), LinkDirection::BOTH.map(|way| bearer.counters(way))))
    }

    /// Records each transport block from now on.
    pub fn record_blocks(&mut self) {
        for cell in &mut self.cells {
            cell.records.get_or_insert_default();
        }
    }

    /// Returns the block records since the last call, ordered by cell. Empty unless [`AccessNetwork::record_blocks`]
    /// was called.
    pub fn take_block_records(&mut self) -> Vec<BlockRecord> {
        self.cells.iter_mut().flat_map(|cell| cell.records.as_mut().map(std::mem::take).unwrap_or_default()).collect()
    }
}

/// Computes when each UE's bearers are established.
fn establish_all(config: &Config) -> Result<Vec<BearerSetupTimes>, RadioError> {
    let mut all = vec![BearerSetupTimes::default(); config.ues.len()];
    for cell in 0..config.cells.len() {
        let (numbers, ues): (Vec<usize>, Vec<_>) = (config.ues.iter().enumerate())
            .filter(|(_, ue)| ue.cell == cell)
            .map(|(number, ue)| (number, (ue.name.as_str(), ue.attach)))
            .unzip();
        for (number, established) in numbers.into_iter().zip(compute_setup_times(config.seed, config.signalling, &ues)?)
        {
            all[number] = established;
        }
    }
    Ok(all)
}

/// Creates a UE in its state with bearers.
fn attach(seed: u64, number: u16, config: &UeConfig, sounding_offset: u32) -> Ue {
    let mode = config.transmission_mode;
    Ue {
        number,
        key: RandomStream::new(seed, &config.name, "radio errors").next_u64(),
        bearers: config.bearers.iter().map(|bearer| Bearer::new(bearer.mode, bearer.limits)).collect(),
        groups: config.bearers.iter().map(|bearer| bearer.qci.logical_channel_group()).collect(),
        guaranteed: config.bearers.iter().map(|bearer| bearer.guaranteed.bits_per_second() > 0).collect(),
        layers: mode.layers() as u8,
        mode_gain: db_to_ratio(mode.gain_db()) as f32,
        data_power: db_to_ratio(config.data_power_offset_db) as f32,
        waiting: vec![0; config.bearers.len()],
        processes: vec![HarqProcess::default(); crate::ue::PROCESSES],
        retransmissions: Vec::new(),
        repeated: u64::MAX,
        status_due: None,
        remind_at: Instant::NEVER,
        uplink_waiting: 0,
        grant_read: None,
        uplink_blocks: vec![UplinkTransportBlock::default(); 7],
        sounded: None,
        sounding_offset,
        outer_loop: Default::default(),
        counters: Default::default(),
        last: [LastTransmission::default(); 2],
    }
}

/// Checks the configuration.
fn check(config: &Config) -> Result<(), RadioError> {
    let refuse = |sentence: String| Err(RadioError::new(sentence));
    if config.cells.is_empty() {
        return refuse("the network has no cell; expected at least one".into());
    }
    if config.ues.len() >= usize::from(u16::MAX) {
        return refuse(format!("the network has {} UEs; expected fewer than 65535", config.ues.len()));
    }
    for cell in &config.cells {
        if let UplinkReports::Sounding { period } = cell.uplink_reports
            && ![2, 5, 10, 20, 40, 80, 160, 320].contains(&period)
        {
            return refuse(format!(
                "cell {} has sounding every {period} subframes; expected 2, 5, 10, 20, 40, 80, 160 or 320",
                cell.name
            ));
        }
    }
    for ue in &config.ues {
        ue.course.check(&format!("UE {}", ue.name))?;
        if ue.cell >= config.cells.len() {
            let cells = config.cells.len();
            return refuse(format!("UE {} has cell {}; expected a number below {cells}", ue.name, ue.cell));
        }
        let most = usize::from(MAX_BEARERS);
        if ue.bearers.is_empty() || ue.bearers.len() > most {
            return refuse(format!("UE {} has {} bearers; expected 1 to {most}", ue.name, ue.bearers.len()));
        }
        for bearer in ue.bearers.iter().filter(|bearer| bearer.qci.class().guaranteed) {
            if bearer.guaranteed.bits_per_second() == 0 {
                return refuse(format!(
                    "UE {} has a bearer with QCI {} (guaranteed bit rate), but no guaranteed rate; expected a guaranteed rate above 0",
                    ue.name,
                    bearer.qci.number()
                ));
            }
        }
    }
    Ok(())
}
