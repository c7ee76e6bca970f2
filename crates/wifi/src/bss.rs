//! A basic service set: an access point and its stations on one channel.
//!
//! A packet is offered at the access point or at a station and waits in a queue. When the contention grants access, the
//! sender selects a station and a rate, and builds a PPDU. At that time the whole exchange is computed: RTS and CTS, the
//! PPDU, the losses of its MPDUs, and the response. The outcomes are reported with their times in the future. The next
//! event is the next access. Within a transmission opportunity there is one event per PPDU.
//!
//! All nodes sense every transmission at once, and frames that begin at the same instant are all lost. A frame that is
//! offered during a transmission joins the next one. Two frames that are offered to DCF nodes at the same instant on an
//! idle medium do not collide: the second finds a busy medium.

use crate::aggregate::{AggregateLimits, ExchangeTiming};
use crate::airtime::StationScheduler;
use crate::block_ack::{Mpdu, MpduOutcome, Session};
use crate::config::{Config, ConfigError, FailureTiming, RtsPolicy};
use crate::contention::{Access, ContenderSpecification, Contention};
use crate::frame::{
    ACK_BYTES, AmpduSize, BLOCK_ACK_BYTES, CTS_BYTES, RTS_BYTES, mpdu_bytes, single_mpdu_psdu_bytes, spacing_bytes,
};
use crate::phy::{AccessCategory, ErrorModel, PhyRate, Timing, response_rate};
use crate::queue::{ApQueue, DroppedPacket, PacketQueue};
use crate::rate_control::{RateContext, RateControl};
use crate::report::{LastPpdu, LinkCounters, LinkStatus, PpduRecord};
use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant, RandomStream};
use std::collections::{BTreeMap, VecDeque};

/// A packet offered to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedPacket {
    /// The caller's identifier of the packet.
    pub token: u64,
    /// Size of the IP packet in bytes.
    pub ip_bytes: u32,
    /// The flow, which FQ-CoDel distinguishes.
    pub flow: u64,
    /// The ECN codepoint, which determines whether FQ-CoDel marks or drops.
    pub codepoint: EcnCodepoint,
    /// The access category. Without QoS, all packets share one queue.
    pub category: AccessCategory,
}

/// The durations that depend on the data rate alone.
#[derive(Clone, Copy, Debug)]
struct RateTimes {
    response: PhyRate,
    ack: Duration,
    block_ack: Duration,
    /// Limit of the PSDU without a TXOP limit.
    psdu_bytes: u64,
    /// Minimum distance between the beginnings of MPDUs in bytes.
    spacing_bytes: u64,
}

/// SNR and packet error rates at one rate.
#[derive(Clone, Debug)]
struct RateQuality {
    snr_db: f64,
    detected: bool,
    /// The last sizes in bytes, and their error rates.
    errors: [(u64, f64); 2],
}

/// The link between the access point and a station in one direction.
#[derive(Debug)]
struct Link {
    control: RateControl,
    received_dbm: f64,
    qualities: BTreeMap<PhyRate, RateQuality>,
    losses: RandomStream,
    counters: LinkCounters,
    last: Option<LastPpdu>,
}

/// Packets of one station in one direction and one access category.
#[derive(Debug)]
struct Traffic {
    queue: PacketQueue,
    session: Session,
}

impl Traffic {
    fn has_packets(&self) -> bool {
        self.session.pending() > 0 || !self.queue.is_empty()
    }
}

/// The state of the access point in one access category.
#[derive(Debug)]
struct ApCategory {
    scheduler: StationScheduler,
    /// The station whose frame must be transmitted again.
    retry: Option<u32>,
    /// Packets in front of the driver, with their station, and the number of packets in the driver.
    fifo: VecDeque<(u32, Mpdu)>,
    in_driver: u32,
}

/// A PPDU that is ready for transmission.
#[derive(Debug, Default)]
struct Plan {
    contender: u32,
    traffic: usize,
    link: usize,
    rate: Option<PhyRate>,
    /// Indices of the MPDUs in the window.
    mpdus: Vec<u32>,
    psdu_bytes: u64,
    ppdu: Duration,
    rts: bool,
}

/// A transmission opportunity with time left.
#[derive(Clone, Copy, Debug)]
struct Txop {
    contender: u32,
    /// Beginning of the next PPDU.
    at: Instant,
    /// End of the previous exchange.
    from: Instant,
    /// End of the opportunity.
    limit: Instant,
}

/// The times after an exchange.
#[derive(Clone, Copy, Debug)]
struct ExchangeEnd {
    success: bool,
    /// When the medium becomes idle for the other nodes.
    others: Instant,
    /// When the interframe space of the sender begins.
    sender: Instant,
}

/// An access point and its stations. Stations have the numbers of [`Config::stations`].
///
/// ```
/// use fullpipe_units::{EcnCodepoint, Instant};
/// use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
/// use fullpipe_wifi::{BasicServiceSet, OfferedPacket};
/// use fullpipe_wifi::config::{Config, StationConfig};
/// use fullpipe_wifi::phy::{AccessCategory, OfdmRate, PhyRate, Standard};
/// use fullpipe_wifi::rate_control::RateControlConfig;
///
/// let rate = RateControlConfig::Constant(PhyRate::Ofdm(OfdmRate::Mbps54));
/// let mut config = Config::new("lan", 1, Standard::A);
/// config.stations.push(StationConfig::new("laptop", 5.0, rate));
/// let mut network = BasicServiceSet::new(config)?;
///
/// let start = Instant::from_nanos(1_000_000);
/// let category = AccessCategory::BestEffort;
/// let packet = OfferedPacket { token: 7, ip_bytes: 1500, flow: 0, codepoint: EcnCodepoint::NotEct, category };
/// network.offer(start, MediumDirection::Uplink, 0, packet);
/// // The medium is idle, so the frame of 1536 bytes is sent at once and takes 248 µs.
/// network.advance(network.next_deadline());
/// let at = Instant::from_nanos(1_248_000);
/// let report = CompletedFrame { token: 7, at, fate: MediumOutcome::Delivered };
/// assert_eq!(network.drain_outcomes().collect::<Vec<_>>(), [report]);
/// # Ok::<(), fullpipe_wifi::config::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct BasicServiceSet {
    config: Config,
    timing: Timing,
    /// Number of access categories in use: 1 without QoS.
    categories: usize,
    contention: Contention,
    /// Backoff streams of the nodes; the access point is node 0.
    backoffs: Vec<RandomStream>,
    /// Indexed by direction and station.
    links: Vec<Link>,
    /// Indexed by direction, station and category.
    traffic: Vec<Traffic>,
    ap: Vec<ApCategory>,
    /// Packets and bytes in FQ-CoDel queues.
    fq_load: (u64, u64),
    times: BTreeMap<PhyRate, RateTimes>,
    rts: Duration,
    cts: Duration,
    cts_rate: PhyRate,
    txop: Option<Txop>,
    shadowing: Vec<Step>,
    reports: VecDeque<CompletedFrame>,
    accesses: Vec<Access>,
    plans: Vec<Plan>,
    spare: Vec<Plan>,
    received: Vec<bool>,
    dropped: Vec<DroppedPacket>,
    busy: Duration,
    events: u64,
    records: Option<Vec<PpduRecord>>,
}

/// A change of a station's shadowing.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: Instant,
    station: u32,
    loss_db: f64,
}

impl BasicServiceSet {
    /// Returns a basic service set without packets.
    ///
    /// # Errors
    /// If the configuration is impossible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let timing = config.standard.timing(config.preamble);
        let categories = if config.qos { 4 } else { 1 };
        let stations = config.stations.len();
        let nodes = (0..=stations as u32).flat_map(|node| {
            let access = if node == 0 { config.ap_access } else { config.station_access };
            let category =
                move |index: usize| if categories == 1 { AccessCategory::BestEffort as usize } else { index };
            (0..categories).map(move |index| ContenderSpecification {
                node,
                priority: index as u8,
                access: access[category(index)],
            })
        });
        let contention = Contention::new(timing, config.freeze, config.retry_limit.into(), nodes);
        let name = |node: &str| format!("wifi {} {node}", config.name);
        let backoff = |node: &str| RandomStream::new(config.seed, &name(node), "backoff");
        let backoffs = [backoff("access point")].into_iter();
        let backoffs = backoffs.chain(config.stations.iter().map(|station| backoff(&station.name))).collect();
        let errors = config.errors.unwrap_or_default();
        let context =
            RateContext { standard: config.standard, preamble: config.preamble, channel: &config.channel, errors };
        let links = MediumDirection::ALL.into_iter().flat_map(|direction| {
            let (name, context, config) = (&name, &context, &config);
            config.stations.iter().map(move |station| {
                let (control, purpose, sampling) = match direction {
                    MediumDirection::Downlink => (&station.downlink, "downlink losses", "downlink rate samples"),
                    MediumDirection::Uplink => (&station.uplink, "uplink losses", "uplink rate samples"),
                };
                let stream = |purpose| RandomStream::new(config.seed, &name(&station.name), purpose);
                Link {
                    control: RateControl::new(control, context, stream(sampling)),
                    received_dbm: config.channel.received_dbm(station.distance_m, 0.0),
                    qualities: BTreeMap::new(),
                    losses: stream(purpose),
                    counters: LinkCounters::default(),
                    last: None,
                }
            })
        });
        let links = links.collect();
        let traffic = MediumDirection::ALL.into_iter().flat_map(|direction| {
            let config = &config;
            (0..stations * categories).map(move |_| {
                let queue = match (direction, &config.ap_queue) {
                    (MediumDirection::Uplink, _) => PacketQueue::drop_tail(config.station_packets),
                    (_, ApQueue::Fifo { .. }) => PacketQueue::drop_tail(u32::MAX),
                    (_, ApQueue::PerStation { packets }) => PacketQueue::drop_tail(*packets),
                    (_, ApQueue::FqCoDel(settings)) => PacketQueue::fq_codel(settings),
                };
                let window = if config.qos { AggregateLimits::WINDOW } else { 1 };
                Traffic { queue, session: Session::new(window, config.retry_limit) }
            })
        });
        let traffic = traffic.collect();
        let ap = (0..categories).map(|_| ApCategory {
            scheduler: StationScheduler::new(config.order, stations as u32),
            retry: None,
            fifo: VecDeque::new(),
            in_driver: 0,
        });
        let steps = (0..).zip(&config.stations).flat_map(|(station, settings)| {
            settings.shadowing.iter().map(move |&(from, loss_db)| Step { from, station, loss_db })
        });
        let mut shadowing: Vec<Step> = steps.collect();
        // The next step is the last entry.
        shadowing.sort_by_key(|step| std::cmp::Reverse((step.from, step.station)));
        let cts_rate = response_rate(config.rts_rate, &config.basic);
        let mut network = BasicServiceSet {
            timing,
            categories,
            contention,
            backoffs,
            links,
            traffic,
            ap: ap.collect(),
            fq_load: (0, 0),
            times: BTreeMap::new(),
            rts: Duration::ZERO,
            cts: Duration::ZERO,
            cts_rate,
            txop: None,
            shadowing,
            reports: VecDeque::new(),
            accesses: Vec::new(),
            plans: Vec::new(),
            spare: Vec::new(),
            received: Vec::new(),
            dropped: Vec::new(),
            busy: Duration::ZERO,
            events: 0,
            records: None,
            config,
        };
        network.rts = network.exchange().ppdu(network.config.rts_rate, RTS_BYTES.into());
        network.cts = network.exchange().ppdu(cts_rate, CTS_BYTES.into());
        Ok(network)
    }

    fn exchange(&self) -> ExchangeTiming<'_> {
        ExchangeTiming {
            sifs: self.timing.sifs,
            basic: &self.config.basic,
            band: self.config.standard.band(),
            rule: self.config.durations,
        }
    }

    fn stations(&self) -> usize {
        self.config.stations.len()
    }

    fn link_index(&self, direction: MediumDirection, station: u32) -> usize {
        direction as usize * self.stations() + station as usize
    }

    fn traffic_index(&self, link: usize, category: usize) -> usize {
        link * self.categories + category
    }

    /// Returns the node and the category of a contender.
    fn contender_parts(&self, contender: u32) -> (usize, usize) {
        (contender as usize / self.categories, contender as usize % self.categories)
    }

    /// Returns the status of a station in one direction.
    pub fn link_status(&self, direction: MediumDirection, station: u32) -> LinkStatus {
        let index = self.link_index(direction, station);
        let link = &self.links[index];
        let traffic = &self.traffic[index * self.categories..(index + 1) * self.categories];
        let queued = traffic.iter().map(|traffic| traffic.queue.packets() + u64::from(traffic.session.next_index()));
        let mut queued_packets = queued.sum();
        if direction == MediumDirection::Downlink {
            let waiting = self.ap.iter().flat_map(|category| &category.fifo).filter(|(to, _)| *to == station);
            queued_packets += waiting.count() as u64;
        }
        LinkStatus { counters: link.counters, last: link.last, queued_packets }
    }

    /// Returns the time for which frames were on the medium, SIFS between the frames of an exchange included.
    pub fn busy_time(&self) -> Duration {
        self.busy
    }

    /// Returns the number of accesses and PPDUs that [`BasicServiceSet::advance`] has processed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Records PPDUs from now on. [`BasicServiceSet::take_ppdus`] returns them.
    pub fn record_ppdus(&mut self) {
        self.records.get_or_insert_default();
    }

    /// Returns and forgets the recorded PPDUs. Colliding PPDUs are in order of their nodes.
    pub fn take_ppdus(&mut self) -> Vec<PpduRecord> {
        self.records.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Offers a packet at the access point (downlink) or at a station. `now` must not decrease between calls. If
    /// [`BasicServiceSet::next_deadline`] is not after `now`, [`BasicServiceSet::advance`] must be called before.
    pub fn offer(&mut self, now: Instant, direction: MediumDirection, station: u32, packet: OfferedPacket) {
        let link = self.link_index(direction, station);
        self.links[link].counters.packets += 1;
        let category = if self.categories == 1 { 0 } else { packet.category as usize };
        let index = self.traffic_index(link, category);
        let mpdu = Mpdu::new(packet.token, packet.ip_bytes, now);
        let node = match direction {
            MediumDirection::Uplink => {
                if !self.traffic[index].queue.push(now, mpdu, packet.flow, packet.codepoint) {
                    self.drop_packet(now, link, packet.token, false);
                    return;
                }
                1 + station
            }
            MediumDirection::Downlink => {
                if !self.enqueue_downlink(now, station, category, index, mpdu, &packet) {
                    self.drop_packet(now, link, packet.token, false);
                    return;
                }
                0
            }
        };
        let contender = node * self.categories as u32 + category as u32;
        if !self.contention.is_waiting(contender) && self.txop.is_none_or(|txop| txop.contender != contender) {
            let stream = &mut self.backoffs[node as usize];
            self.contention.request(now, contender, |window| draw(stream, window));
        }
    }

    fn drop_packet(&mut self, now: Instant, link: usize, token: u64, early: bool) {
        let counters = &mut self.links[link].counters;
        let fate = if early {
            counters.early_drops += 1;
            MediumOutcome::DroppedEarly
        } else {
            counters.buffer_drops += 1;
            MediumOutcome::BufferFull
        };
        self.reports.push_back(CompletedFrame { token, at: now, fate });
    }

    fn enqueue_downlink(
        &mut self,
        now: Instant,
        station: u32,
        category: usize,
        index: usize,
        mpdu: Mpdu,
        packet: &OfferedPacket,
    ) -> bool {
        if let ApQueue::Fifo { packets, driver_packets } = self.config.ap_queue {
            let ap = &mut self.ap[category];
            if ap.in_driver >= driver_packets.max(1) {
                let room = ap.fifo.len() < packets as usize;
                if room {
                    ap.fifo.push_back((station, mpdu));
                }
                return room;
            }
            ap.in_driver += 1;
        }
        if !self.traffic[index].queue.push(now, mpdu, packet.flow, packet.codepoint) {
            return false;
        }
        self.ap[category].scheduler.activate(station);
        if let ApQueue::FqCoDel(settings) = self.config.ap_queue {
            self.fq_load.0 += 1;
            self.fq_load.1 += u64::from(packet.ip_bytes);
            while self.fq_load.0 > u64::from(settings.packets) || self.fq_load.1 > settings.bytes {
                if !self.relieve(now) {
                    break;
                }
            }
        }
        true
    }

    /// Drops packets of the longest flow of all FQ-CoDel queues. Returns whether there were any.
    fn relieve(&mut self, now: Instant) -> bool {
        let downlink = 0..self.stations() * self.categories;
        // Of equal flows, the first.
        let longest = downlink.rev().max_by_key(|&index| self.traffic[index].queue.longest_flow_bytes());
        let Some(index) = longest else { return false };
        self.traffic[index].queue.relieve(&mut self.dropped);
        let any = !self.dropped.is_empty();
        self.report_dropped(now, index);
        if !self.traffic[index].has_packets() {
            self.ap[index % self.categories].scheduler.deactivate((index / self.categories) as u32);
        }
        any
    }

    /// Reports packets that a queue of the access point has dropped.
    fn report_dropped(&mut self, now: Instant, traffic: usize) {
        let link = traffic / self.categories;
        let mut dropped = std::mem::take(&mut self.dropped);
        for packet in dropped.drain(..) {
            self.fq_load.0 -= 1;
            self.fq_load.1 -= u64::from(packet.ip_bytes);
            self.drop_packet(now, link, packet.token, packet.early);
        }
        self.dropped = dropped;
    }

    /// Returns when [`BasicServiceSet::advance`] must be called next; [`Instant::NEVER`] if there is nothing to do.
    pub fn next_deadline(&self) -> Instant {
        self.txop.map_or_else(|| self.contention.next_access(), |txop| txop.at)
    }

    /// Processes all accesses until `now`.
    pub fn advance(&mut self, now: Instant) {
        loop {
            let at = self.next_deadline();
            if at > now || at.is_never() {
                return;
            }
            self.events += 1;
            self.apply_shadowing(at);
            match self.txop.take() {
                Some(txop) => self.continue_txop(at, txop),
                None => self.access(at),
            }
        }
    }

    /// Removes and returns the outcomes of packets that became known since the last call.
    pub fn drain_outcomes(&mut self) -> std::collections::vec_deque::Drain<'_, CompletedFrame> {
        self.reports.drain(..)
    }

    fn apply_shadowing(&mut self, now: Instant) {
        while let Some(&Step { station, loss_db, .. }) = self.shadowing.last().filter(|step| step.from <= now) {
            self.shadowing.pop();
            let distance_m = self.config.stations[station as usize].distance_m;
            let received_dbm = self.config.channel.received_dbm(distance_m, loss_db);
            for direction in MediumDirection::ALL {
                let index = self.link_index(direction, station);
                let link = &mut self.links[index];
                link.received_dbm = received_dbm;
                link.qualities.clear();
            }
        }
    }

    /// One or more contenders have access at `now`.
    fn access(&mut self, now: Instant) {
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        self.contention.begin(now, &mut accesses);
        let mut plans = std::mem::take(&mut self.plans);
        for access in accesses.iter().filter(|access| !access.internal_collision) {
            if let Some(plan) = self.plan(now, access.contender, None) {
                plans.push(plan);
            }
        }
        match plans.len() {
            // Only after all packets of a waiting node were dropped.
            0 => self.contention.end(now),
            1 => {
                let end = self.conduct(now, &plans[0]);
                self.contention.end(end.others);
                let limit = now + self.txop_limit(plans[0].contender);
                self.finish(&plans[0], end, limit);
            }
            _ => self.collide(now, &plans),
        }
        let idle_from = self.contention.idle_from();
        for access in &accesses {
            if access.internal_collision {
                if self.contention.fail(access.contender) {
                    self.give_up_first(now, access.contender);
                }
                self.resume(access.contender, idle_from);
            } else if !plans.iter().any(|plan| plan.contender == access.contender) {
                self.resume(access.contender, idle_from);
            }
        }
        self.spare.append(&mut plans);
        (self.plans, self.accesses) = (plans, accesses);
    }
}

impl BasicServiceSet {
    fn txop_limit(&self, contender: u32) -> Duration {
        let (node, category) = self.contender_parts(contender);
        let category = if self.categories == 1 { AccessCategory::BestEffort as usize } else { category };
        let access = if node == 0 { &self.config.ap_access } else { &self.config.station_access };
        access[category].txop_limit
    }

    /// Returns whether a contender has packets.
    fn has_packets(&self, contender: u32) -> bool {
        let (node, category) = self.contender_parts(contender);
        match node.checked_sub(1) {
            None => !self.ap[category].scheduler.is_empty(),
            Some(station) => {
                let link = self.link_index(MediumDirection::Uplink, station as u32);
                self.traffic[self.traffic_index(link, category)].has_packets()
            }
        }
    }

    /// Starts the backoff of a contender after its access. Its interframe space begins at `from`.
    fn resume(&mut self, contender: u32, from: Instant) {
        let waiting = self.has_packets(contender);
        let (node, _) = self.contender_parts(contender);
        let stream = &mut self.backoffs[node];
        self.contention.resume(contender, from, waiting, |window| draw(stream, window));
    }

    /// Returns the station to which, or from which, a contender transmits next.
    fn select_station(&mut self, contender: u32) -> Option<(MediumDirection, u32)> {
        let (node, category) = self.contender_parts(contender);
        if let Some(station) = node.checked_sub(1) {
            return Some((MediumDirection::Uplink, station as u32));
        }
        if let Some(station) = self.ap[category].retry {
            let link = self.link_index(MediumDirection::Downlink, station);
            if self.traffic[self.traffic_index(link, category)].has_packets() {
                return Some((MediumDirection::Downlink, station));
            }
            self.ap[category].retry = None;
        }
        Some((MediumDirection::Downlink, self.ap[category].scheduler.select()?))
    }

    /// Removes the next packet of a queue and adds it to the window. Returns its index in the window.
    fn pull(&mut self, now: Instant, traffic: usize) -> Option<u32> {
        let Traffic { queue, session } = &mut self.traffic[traffic];
        if session.room() == 0 {
            return None;
        }
        let next = queue.pop(now, &mut self.dropped);
        let index = session.next_index();
        if let Some(mpdu) = next {
            session.push(mpdu);
        }
        if traffic < self.stations() * self.categories {
            match self.config.ap_queue {
                ApQueue::PerStation { .. } => {}
                ApQueue::FqCoDel(_) => {
                    if let Some(mpdu) = next {
                        self.fq_load.0 -= 1;
                        self.fq_load.1 -= u64::from(mpdu.ip_bytes);
                    }
                    if !self.dropped.is_empty() {
                        self.report_dropped(now, traffic);
                    }
                }
                ApQueue::Fifo { .. } if next.is_some() => self.refill_driver(now, traffic % self.categories),
                ApQueue::Fifo { .. } => {}
            }
        }
        next.map(|_| index)
    }

    /// Moves a packet from the FIFO to the driver after one has left the driver.
    fn refill_driver(&mut self, now: Instant, category: usize) {
        let Some((station, mpdu)) = self.ap[category].fifo.pop_front() else {
            self.ap[category].in_driver = self.ap[category].in_driver.saturating_sub(1);
            return;
        };
        let link = self.link_index(MediumDirection::Downlink, station);
        let index = self.traffic_index(link, category);
        // The queues of the driver have no limit of their own.
        self.traffic[index].queue.push(now, mpdu, 0, EcnCodepoint::NotEct);
        self.ap[category].scheduler.activate(station);
    }

    fn rate_times(&mut self, rate: PhyRate) -> RateTimes {
        if let Some(times) = self.times.get(&rate) {
            return *times;
        }
        let exchange = self.exchange();
        let limits = self.limits(rate);
        let times = RateTimes {
            response: response_rate(rate, &self.config.basic),
            ack: exchange.response(rate, ACK_BYTES),
            block_ack: exchange.response(rate, BLOCK_ACK_BYTES),
            psdu_bytes: limits.psdu_bytes(rate, Duration::ZERO, &exchange),
            spacing_bytes: spacing_bytes(self.config.mpdu_spacing, rate),
        };
        self.times.insert(rate, times);
        times
    }

    fn limits(&self, rate: PhyRate) -> AggregateLimits {
        let (own, phy) = (self.config.aggregate, AggregateLimits::of(rate.kind()));
        AggregateLimits {
            mpdus: if self.config.qos { own.mpdus.min(phy.mpdus) } else { 1 },
            bytes: own.bytes.min(phy.bytes),
            ppdu: own.ppdu.min(phy.ppdu),
        }
    }

    /// Builds the next PPDU of a contender. `left` is the rest of a transmission opportunity that has begun; the PPDU, SIFS
    /// and the response must fit into it. Returns `None` if they do not, or if there is no packet.
    fn plan(&mut self, now: Instant, contender: u32, left: Option<Duration>) -> Option<Plan> {
        let (_, category) = self.contender_parts(contender);
        loop {
            let (direction, station) = self.select_station(contender)?;
            let link = self.link_index(direction, station);
            let traffic = self.traffic_index(link, category);
            let plan = self.plan_for(now, contender, (link, traffic), left);
            match (plan, direction) {
                (Err(NoPpdu::NoPacket), MediumDirection::Downlink) => self.ap[category].scheduler.deactivate(station),
                (plan, _) => return plan.ok(),
            }
        }
    }

    fn plan_for(
        &mut self,
        now: Instant,
        contender: u32,
        (link, traffic): (usize, usize),
        left: Option<Duration>,
    ) -> Result<Plan, NoPpdu> {
        if !self.traffic[traffic].has_packets() {
            return Err(NoPpdu::NoPacket);
        }
        let failures = self.contention.failures(contender);
        let entry = &mut self.links[link];
        let decision = entry.control.select(now, failures, entry.received_dbm);
        let (rate, qos) = (decision.rate, self.config.qos);
        let times = self.rate_times(rate);
        let limits = self.limits(rate);
        let most = if decision.sample { 1 } else { limits.mpdus };
        let txop_limit = self.txop_limit(contender);
        let bytes = if txop_limit.is_zero() {
            times.psdu_bytes
        } else {
            limits.psdu_bytes(rate, left.unwrap_or(txop_limit), &self.exchange())
        };
        let mut plan = self.spare.pop().unwrap_or_default();
        plan.mpdus.clear();
        let mut size = AmpduSize::default();
        let mut full = false;
        let session = &self.traffic[traffic].session;
        for (index, mpdu) in session.to_send() {
            let next = size.with(mpdu_bytes(mpdu.ip_bytes, qos), times.spacing_bytes);
            full = size.mpdus() == most || (size.mpdus() > 0 && next.bytes() > bytes);
            if full {
                break;
            }
            size = next;
            plan.mpdus.push(index);
        }
        while !full && size.mpdus() < most {
            let Some(index) = self.pull(now, traffic) else { break };
            let bytes_of_mpdu = mpdu_bytes(self.traffic[traffic].session.mpdu(index).ip_bytes, qos);
            let next = size.with(bytes_of_mpdu, times.spacing_bytes);
            // A packet that does not fit stays in the window, and is first in the next aggregate.
            full = size.mpdus() > 0 && next.bytes() > bytes;
            if !full {
                size = next;
                plan.mpdus.push(index);
            }
        }
        let Some(&first) = plan.mpdus.first() else {
            self.spare.push(plan);
            return Err(NoPpdu::NoPacket);
        };
        let session = &mut self.traffic[traffic].session;
        plan.psdu_bytes = match plan.mpdus.len() {
            1 => single_mpdu_psdu_bytes(mpdu_bytes(session.mpdu(first).ip_bytes, qos), rate.kind()),
            _ => size.bytes(),
        };
        session.start(&plan.mpdus, now);
        plan.ppdu = self.exchange().ppdu(rate, plan.psdu_bytes);
        let above = matches!(self.config.rts, RtsPolicy::Above(bytes) if plan.psdu_bytes > bytes);
        // Within a transmission opportunity the first exchange has protected the medium.
        plan.rts = left.is_none() && (decision.rts || above);
        (plan.contender, plan.link, plan.traffic, plan.rate) = (contender, link, traffic, Some(rate));
        let response = if plan.mpdus.len() == 1 { times.ack } else { times.block_ack };
        if left.is_some_and(|left| plan.ppdu + self.timing.sifs + response > left) {
            self.spare.push(plan);
            return Err(NoPpdu::TooLong);
        }
        Ok(plan)
    }

    /// Returns whether a control frame on a link is lost to noise.
    fn is_control_lost(&mut self, link: usize, rate: PhyRate, bytes: u32) -> bool {
        let Some(errors) = self.config.errors else { return false };
        let link = &mut self.links[link];
        let quality = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate);
        if !quality.detected {
            return true;
        }
        let error_rate = quality.error_rate(errors, rate, bytes.into());
        error_rate > 0.0 && link.losses.bernoulli(error_rate)
    }

    /// Determines which MPDUs of a PPDU the receiver decodes, if no other node transmits. Returns their number.
    fn receive(&mut self, plan: &Plan, rate: PhyRate) -> u32 {
        self.received.clear();
        let Some(errors) = self.config.errors else {
            self.received.resize(plan.mpdus.len(), true);
            return plan.mpdus.len() as u32;
        };
        let link = &mut self.links[plan.link];
        let quality = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate);
        let detected = quality.detected;
        let session = &self.traffic[plan.traffic].session;
        let mut count = 0;
        for &index in &plan.mpdus {
            let bytes = mpdu_bytes(session.mpdu(index).ip_bytes, self.config.qos);
            let error_rate = quality.error_rate(errors, rate, bytes.into());
            let received = detected && (error_rate <= 0.0 || !link.losses.bernoulli(error_rate));
            count += u32::from(received);
            self.received.push(received);
        }
        count
    }

    /// Conducts the exchange of a PPDU that collides with no other.
    fn conduct(&mut self, now: Instant, plan: &Plan) -> ExchangeEnd {
        let Some(rate) = plan.rate else { return ExchangeEnd { success: false, others: now, sender: now } };
        let Timing { sifs, slot, phy_start_delay, .. } = self.timing;
        let direction = self.direction(plan.link);
        let reverse = (plan.link + self.stations()) % self.links.len();
        let times = self.rate_times(rate);
        let mut start = now;
        if plan.rts {
            let (rts_end, cts_end) = (now + self.rts, now + self.rts + sifs + self.cts);
            let rts_lost = self.is_control_lost(plan.link, self.config.rts_rate, RTS_BYTES);
            if rts_lost || self.is_control_lost(reverse, self.cts_rate, CTS_BYTES) {
                let end = if rts_lost { rts_end } else { cts_end };
                self.links[plan.link].counters.failures += 1;
                self.complete(plan, end, false, false);
                self.busy += end - now;
                self.record(plan, [now, rts_end, rts_end, end], 0, false);
                // Nodes that have decoded the RTS wait whether a PPDU begins (clause 10.3.2.4).
                let reset = cts_end + sifs + phy_start_delay + slot * 2;
                return match self.config.failure_timing {
                    FailureTiming::Immediate => ExchangeEnd { success: false, others: end, sender: end },
                    FailureTiming::Timeout => {
                        let sender = end.max(rts_end + self.timing.response_timeout());
                        ExchangeEnd { success: false, others: reset, sender }
                    }
                };
            }
            start = cts_end + sifs;
        }
        let end = start + plan.ppdu;
        let received = self.receive(plan, rate);
        let (response, response_bytes) = match plan.mpdus.len() {
            1 => (times.ack, ACK_BYTES),
            _ => (times.block_ack, BLOCK_ACK_BYTES),
        };
        let response_end = end + sifs + response;
        let answered = received > 0;
        let success = answered && !self.is_control_lost(reverse, times.response, response_bytes);
        let category = plan.traffic % self.categories;
        let station = self.station(plan.link);
        match direction {
            MediumDirection::Downlink => self.ap[category].scheduler.charge(station, plan.ppdu),
            MediumDirection::Uplink if answered => self.ap[category].scheduler.charge_received(station, plan.ppdu),
            MediumDirection::Uplink => {}
        }
        self.links[plan.link].counters.failures += u64::from(!success);
        self.count_ppdu(plan, rate);
        self.complete(plan, end, true, success);
        let busy_end = if answered { response_end } else { end };
        self.busy += busy_end - now;
        self.record(plan, [now, start, end, busy_end], received, false);
        match (answered, self.config.failure_timing) {
            (true, _) => ExchangeEnd { success, others: response_end, sender: response_end },
            (false, FailureTiming::Immediate) => ExchangeEnd { success, others: end, sender: end },
            // The Duration field covers SIFS and the response.
            (false, FailureTiming::Timeout) => {
                ExchangeEnd { success, others: response_end, sender: end + self.timing.response_timeout() }
            }
        }
    }

    /// All PPDUs that begin at `now` are lost.
    fn collide(&mut self, now: Instant, plans: &[Plan]) {
        let own_end = |plan: &Plan, rts: Duration| now + if plan.rts { rts } else { plan.ppdu };
        let rts = self.rts;
        let idle = plans.iter().map(|plan| own_end(plan, rts)).max().unwrap_or(now);
        self.busy += idle - now;
        self.contention.end(idle);
        for plan in plans {
            let end = own_end(plan, rts);
            self.links[plan.link].counters.collisions += 1;
            if let Some(rate) = plan.rate
                && !plan.rts
            {
                self.count_ppdu(plan, rate);
                if self.direction(plan.link) == MediumDirection::Downlink {
                    let station = self.station(plan.link);
                    self.ap[plan.traffic % self.categories].scheduler.charge(station, plan.ppdu);
                }
            }
            self.complete(plan, end, false, false);
            let start = if plan.rts { end } else { now };
            self.record(plan, [now, start, end, end], 0, true);
            let sender = match self.config.failure_timing {
                FailureTiming::Immediate => idle,
                FailureTiming::Timeout => idle.max(end + self.timing.response_timeout()),
            };
            self.finish(plan, ExchangeEnd { success: false, others: idle, sender }, now);
        }
    }

    fn count_ppdu(&mut self, plan: &Plan, rate: PhyRate) {
        let link = &mut self.links[plan.link];
        let snr_db = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate).snr_db;
        let mpdus = plan.mpdus.len() as u32;
        let counters = &mut link.counters;
        counters.ppdus += 1;
        counters.mpdus += u64::from(mpdus);
        counters.airtime += plan.ppdu;
        let session = &self.traffic[plan.traffic].session;
        if !session.is_new(&plan.mpdus) {
            counters.retries += plan.mpdus.iter().filter(|index| session.mpdu(**index).attempts > 0).count() as u64;
        }
        link.last = Some(LastPpdu { rate, mpdus, snr_db });
    }

    /// Applies the outcome of a PPDU that ended at `at`. `received` has the outcomes of the MPDUs if `transmitted`; otherwise
    /// none was received. Reports to rate control.
    fn complete(&mut self, plan: &Plan, at: Instant, transmitted: bool, acknowledged: bool) {
        let link = &mut self.links[plan.link];
        let (counters, reports) = (&mut link.counters, &mut self.reports);
        let mut received = self.received.iter();
        let decoded = |_: u32, _: &Mpdu| transmitted && received.next().copied().unwrap_or(false);
        let session = &mut self.traffic[plan.traffic].session;
        let successes = session.complete(&plan.mpdus, acknowledged, decoded, |outcome| {
            report_mpdu(outcome, at, counters, reports);
        });
        if let Some(rate) = plan.rate {
            link.control.report(rate, plan.mpdus.len() as u32, successes);
        }
        if self.direction(plan.link) == MediumDirection::Downlink && !self.traffic[plan.traffic].has_packets() {
            let station = self.station(plan.link);
            self.ap[plan.traffic % self.categories].scheduler.deactivate(station);
        }
    }

    fn direction(&self, link: usize) -> MediumDirection {
        if link < self.stations() { MediumDirection::Downlink } else { MediumDirection::Uplink }
    }

    fn station(&self, link: usize) -> u32 {
        (link % self.stations()) as u32
    }

    /// Updates contention after an exchange. A transmission opportunity may last until `limit`.
    fn finish(&mut self, plan: &Plan, end: ExchangeEnd, limit: Instant) {
        let contender = plan.contender;
        let (node, category) = self.contender_parts(contender);
        let exhausted = if end.success {
            self.contention.succeed(contender);
            true
        } else {
            self.contention.fail(contender)
        };
        if node == 0 {
            let station = self.station(plan.link);
            self.ap[category].retry = (!exhausted).then_some(station);
        }
        let at = end.others + self.timing.sifs;
        if end.success && at < limit && self.has_packets(contender) {
            self.txop = Some(Txop { contender, at, from: end.others, limit });
            return;
        }
        self.resume(contender, end.sender);
    }

    fn continue_txop(&mut self, now: Instant, txop: Txop) {
        match self.plan(now, txop.contender, Some(txop.limit - now)) {
            Some(plan) => {
                let end = self.conduct(now, &plan);
                self.contention.end(end.others);
                self.finish(&plan, end, txop.limit);
                self.spare.push(plan);
            }
            None => self.resume(txop.contender, txop.from),
        }
    }

    /// A contender gives up its first packet, after too many internal collisions.
    fn give_up_first(&mut self, now: Instant, contender: u32) {
        let (_, category) = self.contender_parts(contender);
        let Some((direction, station)) = self.select_station(contender) else { return };
        let link = self.link_index(direction, station);
        let index = self.traffic_index(link, category);
        if self.traffic[index].session.pending() == 0 {
            self.pull(now, index);
        }
        let (counters, reports) = (&mut self.links[link].counters, &mut self.reports);
        let session = &mut self.traffic[index].session;
        session.give_up_first(|outcome| report_mpdu(outcome, now, counters, reports));
        if direction == MediumDirection::Downlink {
            self.ap[category].retry = None;
            if !self.traffic[index].has_packets() {
                self.ap[category].scheduler.deactivate(station);
            }
        }
    }

    fn record(&mut self, plan: &Plan, times: [Instant; 4], received: u32, collision: bool) {
        let direction = self.direction(plan.link);
        let station = self.station(plan.link);
        let category = plan.traffic % self.categories;
        let category = if self.categories == 1 { AccessCategory::BestEffort } else { AccessCategory::ALL[category] };
        let (Some(records), Some(rate)) = (&mut self.records, plan.rate) else { return };
        let [access, start, end, response_end] = times;
        let transmitted = start < end;
        records.push(PpduRecord {
            access,
            start,
            end,
            response_end,
            direction,
            station,
            category,
            rate,
            mpdus: if transmitted { plan.mpdus.len() as u32 } else { 0 },
            received,
            psdu_bytes: if transmitted { plan.psdu_bytes } else { 0 },
            collision,
        });
    }
}

/// Why there is no PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoPpdu {
    NoPacket,
    TooLong,
}

impl RateQuality {
    /// Returns the error rate of a frame of this size.
    #[inline]
    fn error_rate(&mut self, model: ErrorModel, rate: PhyRate, bytes: u64) -> f64 {
        if self.errors[0].0 == bytes {
            return self.errors[0].1;
        }
        if self.errors[1].0 != bytes {
            self.errors[1] = (bytes, model.packet_error_rate(rate, self.snr_db, bytes));
        }
        self.errors.swap(0, 1);
        self.errors[0].1
    }
}

/// Returns SNR and detection at a rate.
fn rate_quality<'a>(
    config: &Config,
    qualities: &'a mut BTreeMap<PhyRate, RateQuality>,
    received_dbm: f64,
    rate: PhyRate,
) -> &'a mut RateQuality {
    qualities.entry(rate).or_insert_with(|| RateQuality {
        snr_db: config.channel.snr_db(rate, received_dbm),
        detected: config.channel.detects(rate, received_dbm),
        errors: [(u64::MAX, 1.0); 2],
    })
}

/// Counts and reports the outcome of an MPDU.
fn report_mpdu(outcome: MpduOutcome, at: Instant, counters: &mut LinkCounters, reports: &mut VecDeque<CompletedFrame>) {
    let (token, fate) = match outcome {
        MpduOutcome::Delivered(mpdu) => {
            counters.delivered_packets += 1;
            counters.delivered_bytes += u64::from(mpdu.ip_bytes);
            counters.queue_delay += mpdu.started.saturating_since(mpdu.offered);
            counters.air_delay += at.saturating_since(mpdu.started);
            (mpdu.token, if mpdu.marked { MediumOutcome::Marked } else { MediumOutcome::Delivered })
        }
        MpduOutcome::GivenUp(mpdu) => {
            counters.lost_packets += 1;
            (mpdu.token, MediumOutcome::Lost)
        }
    };
    reports.push_back(CompletedFrame { token, at, fate });
}

/// Returns a uniform number from 0 to `window`.
fn draw(stream: &mut RandomStream, window: u32) -> u32 {
    stream.uniform_below(u64::from(window) + 1) as u32
}
