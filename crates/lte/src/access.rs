//! The access network as its neighbours see it: packets go in at the PGW or at a UE and come out at the other end, or do not.
//!
//! Between PGW and eNB lie two links (S5 to the SGW, S1-U to the eNB), on which each packet travels in GTP-U, UDP and IPv4;
//! they are booked when a packet is offered. Everything else happens in subframes, and only in those in which something waits,
//! is on the air or falls due: an idle network is never woken.

use crate::air::Air;
use crate::bearer::{MOST_BEARERS, TUNNEL_BYTES};
use crate::cell::{BlockRecord, Cell, Coming, OnAir, Shared};
use crate::config::{BearerConfig, Config, UeConfig, UplinkReports};
use crate::connection::{Established, establish};
use crate::exit::{Exit, Fate, Links, Output};
use crate::radio::Invalid;
use crate::radio::errors::ErrorModel;
use crate::radio::power::ratio;
use crate::rlc::{Bearer, Counters, Mode, PDCP_HEADER_BYTES, Sdu, Way};
use crate::scheduler::{Promise, catalogue};
use crate::subframe::{start, subframe_from};
use crate::ue::{Last, Process, Ue, UplinkBlock, WayCounters, WayStatus};
use fullpipe_units::{Instant, Stream};
use std::collections::VecDeque;

/// A packet that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Whatever the caller knows it by.
    pub token: u64,
}

/// What can be seen of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeStatus {
    /// Counters, downlink first.
    pub counters: [WayCounters; 2],
    /// The last transmissions, downlink first.
    pub last: [WayStatus; 2],
    /// When it comes to its bearers.
    pub established: Established,
}

/// An access network.
///
/// A UE is known by its index in [`Config::ues`], a bearer by its index in [`UeConfig::bearers`].
#[derive(Debug)]
pub struct AccessNetwork {
    shared: Shared,
    on_air: OnAir,
    cells: Vec<Cell>,
    /// Cell and place in it of each UE.
    places: Vec<(usize, usize)>,
    /// When each UE comes to its bearers, and when all have them.
    established: Vec<Established>,
    all_ready: Instant,
    /// Packets on their way to each eNB.
    coming: Vec<VecDeque<Coming>>,
    /// The next subframe to be worked through; `u64::MAX` if there is none.
    due: u64,
    /// The one after the last that was.
    next: u64,
    exit: Exit,
}

impl AccessNetwork {
    /// Puts a network together. Errors say what of the configuration cannot be.
    pub fn new(config: Config) -> Result<Self, Invalid> {
        check(&config)?;
        let mut shared = Shared {
            air: Air::new(&config),
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
            let mut scheduler = catalogue::make(&cell.scheduler, &cell.scheduler_parameters)
                .map_err(|unknown| Invalid::new(unknown.to_string()))?;
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
                let promise = Promise {
                    guaranteed_bits_per_second: sum(|bearer| bearer.guaranteed.bits_per_second()),
                    maximum_bits_per_second: sum(|bearer| bearer.maximum.bits_per_second()),
                };
                let refused =
                    |refusal| Invalid::new(format!("UE {} and scheduler {}: {refusal}", ue.name, cell.scheduler));
                scheduler.admit(&promise).map_err(refused)?;
                scheduler.attach(promise);
                ues.push(attach(config.seed, number as u16, ue, offset));
            }
            let mut cell = Cell::new(index, cell, &shared, scheduler, ues)?;
            cell.report_saturated();
            cells.push(cell);
        }
        let links = Links {
            core: config.core,
            last: (0, config.core.rate.time_for(u64::from(TUNNEL_BYTES))),
            s5: [Instant::ZERO; 2],
            s1: vec![[Instant::ZERO; 2]; cells.len()],
        };
        Ok(AccessNetwork {
            on_air: OnAir::new(cells.len()),
            coming: cells.iter().map(|_| VecDeque::new()).collect(),
            shared,
            cells,
            places,
            all_ready: established.iter().map(|ue| ue.ready).max().unwrap_or_default(),
            established,
            due: 0,
            next: 0,
            exit: Exit { links, told: VecDeque::new(), inside: [0; 2] },
        })
    }

    /// A packet arrives at the PGW and is to go to a UE on this bearer. `now` is never less than in the call before.
    pub fn downlink(&mut self, now: Instant, ue: u16, bearer: u8, packet: Offered) {
        self.shared.air.packet(now, packet.bytes);
        let (cell, place) = self.places[usize::from(ue)];
        let at = self.exit.links.pass(cell, Way::Downlink, packet.bytes, now);
        let sdu = Sdu { bytes: packet.bytes + PDCP_HEADER_BYTES, token: packet.token, arrived: at };
        self.coming[cell].push_back(Coming { ue: place as u16, bearer, sdu });
        self.exit.inside[0] += 1;
        // What comes exactly when a subframe begins has missed it.
        if self.due > self.next {
            self.wake(at.as_nanos() / 1_000_000 + 1);
        }
    }

    /// A packet arrives at a UE's stack and is to go to the PGW on this bearer. `now` is never less than in the call before.
    pub fn uplink(&mut self, now: Instant, ue: u16, bearer: u8, packet: Offered) {
        self.shared.air.packet(now, packet.bytes);
        if self.comes_early(now, Way::Uplink, ue) {
            self.exit.drop(ue, Way::Uplink, now, packet.token, Fate::Lost);
            return;
        }
        let (cell, place) = self.places[usize::from(ue)];
        let sdu = Sdu { bytes: packet.bytes + PDCP_HEADER_BYTES, token: packet.token, arrived: now };
        let taken = self.cells[cell].offer_uplink(place, usize::from(bearer), sdu, now);
        // What is reported has to be heard, of a packet that found no room, too.
        self.wake(subframe_from(now));
        if taken {
            self.exit.inside[1] += 1;
        } else {
            self.exit.drop(ue, Way::Uplink, now, packet.token, Fate::BufferFull);
        }
    }

    /// Whether a packet comes to a UE, or to the eNB for it, that has no bearers yet: it is counted as such.
    #[inline]
    fn comes_early(&mut self, at: Instant, way: Way, ue: u16) -> bool {
        if at >= self.all_ready || at >= self.established[usize::from(ue)].ready {
            return false;
        }
        let (cell, place) = self.places[usize::from(ue)];
        let counters = &mut self.cells[cell].ues[place].counters[way as usize];
        counters.packets += 1;
        counters.early_packets += 1;
        true
    }

    /// Drops what has come to eNBs before its UE had its bearers.
    fn drop_early(&mut self, now: Instant) {
        for cell in 0..self.cells.len() {
            let mut index = 0;
            while let Some(&Coming { ue, sdu, .. }) = self.coming[cell].get(index).filter(|c| c.sdu.arrived < now) {
                let ue = self.cells[cell].ues[usize::from(ue)].number;
                if self.comes_early(sdu.arrived, Way::Downlink, ue) {
                    self.coming[cell].remove(index);
                    self.exit.inside[Way::Downlink as usize] -= 1;
                    self.exit.drop(ue, Way::Downlink, now, sdu.token, Fate::Lost);
                } else {
                    index += 1;
                }
            }
        }
    }

    /// Until this instant, the beginning of a subframe, a packet that arrives at the PGW at `at` changes nothing: so long
    /// [`AccessNetwork::downlink`] may be put off, if nothing that comes later is told before.
    pub fn offer_by(at: Instant) -> Instant {
        start(at.as_nanos() / 1_000_000 + 1)
    }

    fn wake(&mut self, subframe: u64) {
        self.due = self.due.min(subframe.max(self.next));
    }

    /// When it wants to be advanced; [`Instant::NEVER`] if there is nothing to do.
    pub fn next(&self) -> Instant {
        if self.due == u64::MAX { Instant::NEVER } else { start(self.due) }
    }

    /// Works through all subframes that have begun by `now`. Packets that arrive at the very beginning of a subframe are
    /// offered after it.
    pub fn advance(&mut self, now: Instant) {
        while self.next() <= now {
            self.subframe(self.due);
        }
    }

    fn subframe(&mut self, n: u64) {
        let now = start(n);
        // What is taken in now has come since the last subframe began.
        if now < self.all_ready.saturating_add(start(1) - start(0)) {
            self.drop_early(now);
        }
        let exit = &mut self.exit;
        for (cell, coming) in self.cells.iter_mut().zip(&mut self.coming) {
            cell.take_in(coming, now, self.shared.eager, |ue, token| {
                exit.inside[Way::Downlink as usize] -= 1;
                exit.drop(ue, Way::Downlink, now, token, Fate::BufferFull);
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

    /// The next packet's end. To be asked until there is none, after each of the other calls.
    #[inline]
    pub fn output(&mut self) -> Option<Output> {
        self.exit.told.pop_front()
    }

    /// Tells of all ends that [`AccessNetwork::output`] would give, in order, in one or two parts.
    #[inline]
    pub fn outputs(&mut self, mut tell: impl FnMut(&[Output])) {
        let (first, second) = self.exit.told.as_slices();
        if !first.is_empty() {
            tell(first);
            tell(second);
            self.exit.told.clear();
        }
    }

    /// Packets that are inside: offered, and their end not yet in [`AccessNetwork::output`]'s queue; downlink first.
    pub fn inside(&self) -> [u64; 2] {
        self.exit.inside
    }

    /// What can be seen of a UE.
    pub fn ue(&self, ue: u16) -> UeStatus {
        let (cell, place) = self.places[usize::from(ue)];
        let (cell, of) = (&self.cells[cell], &self.cells[cell].ues[place]);
        let status = |way: Way| {
            let last = &of.last[way as usize];
            let sinr_db = match (last.place, way) {
                ((0, 0), _) => f64::NAN,
                (_, Way::Downlink) => cell.last_downlink_sinr(place, &self.shared, &self.on_air),
                (_, Way::Uplink) => cell.last_uplink_sinr(place, &self.shared, &self.on_air),
            };
            let buffer_bytes = of.bearers.iter().map(|bearer| bearer.waiting_bytes(way)).sum::<u64>();
            WayStatus { sinr_db, cqi: last.cqi, mcs: last.mcs, buffer_bytes }
        };
        UeStatus {
            counters: of.counters(),
            last: [status(Way::Downlink), status(Way::Uplink)],
            established: self.established[usize::from(ue)],
        }
    }

    /// What RLC has done for a UE's bearers, the default one first: mode and counters, downlink first.
    pub fn bearers(&self, ue: u16) -> impl Iterator<Item = (Mode, [&Counters; 2])> {
        let (cell, place) = self.places[usize::from(ue)];
        let bearers = &self.cells[cell].ues[place].bearers;
        bearers.iter().map(|bearer| (bearer.mode(), Way::BOTH.map(|way| bearer.counters(way))))
    }

    /// Keeps a record of each transport block from now on.
    pub fn record_blocks(&mut self) {
        for cell in &mut self.cells {
            cell.records.get_or_insert_default();
        }
    }

    /// The records of blocks since the last call, cell by cell.
    pub fn blocks(&mut self) -> Vec<BlockRecord> {
        self.cells.iter_mut().flat_map(|cell| cell.records.as_mut().map(std::mem::take).unwrap_or_default()).collect()
    }
}

/// When each UE comes to its bearers.
fn establish_all(config: &Config) -> Result<Vec<Established>, Invalid> {
    let mut all = vec![Established::default(); config.ues.len()];
    for cell in 0..config.cells.len() {
        let (numbers, ues): (Vec<usize>, Vec<_>) = (config.ues.iter().enumerate())
            .filter(|(_, ue)| ue.cell == cell)
            .map(|(number, ue)| (number, (ue.name.as_str(), ue.attach)))
            .unzip();
        for (number, established) in numbers.into_iter().zip(establish(config.seed, config.signalling, &ues)?) {
            all[number] = established;
        }
    }
    Ok(all)
}

/// A UE as it is when it has its bearers, or when the run begins.
fn attach(seed: u64, number: u16, config: &UeConfig, sounding_offset: u32) -> Ue {
    let mode = config.transmission_mode;
    Ue {
        number,
        key: Stream::new(seed, &config.name, "radio errors").bits(),
        bearers: config.bearers.iter().map(|bearer| Bearer::new(bearer.mode, bearer.limits)).collect(),
        groups: config.bearers.iter().map(|bearer| bearer.qci.logical_channel_group()).collect(),
        guaranteed: config.bearers.iter().map(|bearer| bearer.guaranteed.bits_per_second() > 0).collect(),
        layers: mode.layers() as u8,
        mode_gain: ratio(mode.gain_db()) as f32,
        data_power: ratio(config.data_power_offset_db) as f32,
        waiting: vec![0; config.bearers.len()],
        processes: vec![Process::default(); crate::ue::PROCESSES],
        retransmissions: Vec::new(),
        repeated: u64::MAX,
        status_due: None,
        remind_at: Instant::NEVER,
        uplink_waiting: 0,
        grant_read: None,
        uplink_blocks: vec![UplinkBlock::default(); 7],
        sounded: None,
        sounding_offset,
        outer_loop: Default::default(),
        counters: Default::default(),
        last: [Last::default(); 2],
    }
}

/// Refuses what cannot be.
fn check(config: &Config) -> Result<(), Invalid> {
    let refuse = |sentence: String| Err(Invalid::new(sentence));
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
            return refuse(format!("UE {} is in cell {}; expected one of {}", ue.name, ue.cell, config.cells.len()));
        }
        let most = usize::from(MOST_BEARERS);
        if ue.bearers.is_empty() || ue.bearers.len() > most {
            return refuse(format!("UE {} has {} bearers; expected 1 to {most}", ue.name, ue.bearers.len()));
        }
        for bearer in ue.bearers.iter().filter(|bearer| bearer.qci.class().guaranteed) {
            if bearer.guaranteed.bits_per_second() == 0 {
                return refuse(format!(
                    "UE {} has a bearer of QCI {}, which guarantees a bit rate, without one; expected a guaranteed rate",
                    ue.name,
                    bearer.qci.number()
                ));
            }
        }
    }
    Ok(())
}
