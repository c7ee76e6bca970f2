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

mod exchange;
mod link;

use crate::aggregate::{AggregateLimits, ExchangeTiming};
use crate::airtime::StationScheduler;
use crate::block_ack::{Mpdu, Session};
use crate::config::{Config, ConfigError};
use crate::contention::{Access, ContenderSpecification, Contention};
use crate::frame::{CTS_BYTES, RTS_BYTES};
use crate::phy::{AccessCategory, PhyRate, Timing, response_rate};
use crate::queue::{ApQueue, DroppedPacket, PacketQueue};
use crate::rate_control::{RateContext, RateControl};
use crate::report::{LinkCounters, LinkStatus, PpduRecord};
use fullpipe_network::{CompletedFrame, Exchange, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant, RandomStream};
use link::{Link, RateTimes};
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
    /// Exchanges since the last call of [`BasicServiceSet::drain_exchanges`].
    exchanges: Vec<Exchange>,
    keeps_exchanges: bool,
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
            exchanges: Vec::new(),
            keeps_exchanges: false,
            events: 0,
            records: None,
            config,
        };
        network.rts = network.exchange().ppdu(network.config.rts_rate, RTS_BYTES.into());
        network.cts = network.exchange().ppdu(cts_rate, CTS_BYTES.into());
        Ok(network)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
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

    /// Keeps exchanges from now on. [`BasicServiceSet::drain_exchanges`] returns them.
    pub fn keep_exchanges(&mut self) {
        self.keeps_exchanges = true;
    }

    #[inline]
    fn note_exchange(&mut self, start: Instant, end: Instant, received: bool) {
        if self.keeps_exchanges {
            self.exchanges.push(Exchange { start, end, received });
        }
    }

    /// Removes and returns the exchanges since the last call, in order of their start.
    pub fn drain_exchanges(&mut self) -> std::vec::Drain<'_, Exchange> {
        self.exchanges.drain(..)
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

/// Returns a uniform number from 0 to `window`.
fn draw(stream: &mut RandomStream, window: u32) -> u32 {
    stream.uniform_below(u64::from(window) + 1) as u32
}
