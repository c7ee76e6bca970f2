//! The medium in a network of hosts, with the auditor.

use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, DeclaredLink, FinalFlowState, FinalLinkState, FinalState, LinkVariation,
    MediumAccess, PacketAuditor, PublishedCounters, Rule,
};
use fullpipe_network::filter::{PacketFilter, PortRange};
use fullpipe_network::network::RemainingPackets;
use fullpipe_network::{
    CompletedFrame, Endpoint, EndpointPair, Exchange, HeaderFields, HostEndpoints, Medium, MediumDirection,
    MediumFrame, MediumSpecification, Network, NextHop, Packet, PacketContent, PacketHandle,
};
use fullpipe_record::{DropReason, FlowMonitor, Observer, PacketView};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, LinkId, NodeId, RandomStream};
use fullpipe_wifi::aggregate::AggregateLimits;
use fullpipe_wifi::airtime::StationOrder;
use fullpipe_wifi::config::{Config, FailureTiming, RtsPolicy, StationConfig};
use fullpipe_wifi::medium::CategoryRule;
use fullpipe_wifi::phy::{AccessCategory, Band, ChannelWidth, ErrorModel, Standard};
use fullpipe_wifi::queue::{ApFqCoDel, ApQueue};
use fullpipe_wifi::rate_control::{Capabilities, IdealTarget, RateControlConfig};
use fullpipe_wifi::{BasicServiceSet, WifiMedium};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

const HUB: NodeId = NodeId(0);
const STATIONS: u32 = 3;

fn config(seed: u64) -> Config {
    let capabilities = Capabilities { streams: 2, width: ChannelWidth::Mhz40, short_guard: true };
    let control = RateControlConfig::Ideal { capabilities, target: IdealTarget::PacketErrorRate(0.2) };
    let mut config = Config::new("lan", seed, Standard::Ac);
    let distances = [5.0, 20.0, 40.0];
    config.stations = (0..STATIONS)
        .zip(distances)
        .map(|(number, distance)| StationConfig::new(&format!("station {number}"), distance, control))
        .collect();
    config
}

/// A datagram of a script.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    at: Instant,
    from: NodeId,
    to: NodeId,
    ip_bytes: u32,
    codepoint: EcnCodepoint,
}

impl Datagram {
    fn flow(&self) -> FlowId {
        FlowId(2 * (self.from.0 * 8 + self.to.0))
    }
}

/// Hosts that send the datagrams of a script.
#[derive(Debug, Default)]
struct Hosts {
    script: Vec<Datagram>,
    received: Vec<(FlowId, EcnCodepoint, Instant)>,
}

impl<O: Observer> HostEndpoints<O> for Hosts {
    fn receive(&mut self, network: &mut Network<O>, _node: NodeId, handle: PacketHandle) {
        let packet = *network.arena.get(handle);
        network.arena.release(handle);
        self.received.push((packet.flow, packet.codepoint, network.now()));
    }

    fn on_timer(&mut self, network: &mut Network<O>, event: fullpipe_engine::EventId) {
        let datagram = self.script[event.index() as usize];
        let Datagram { from, to, ip_bytes, codepoint, .. } = datagram;
        let content = PacketContent::Udp { payload_bytes: ip_bytes - 28 };
        network.send(from, &Packet { codepoint, ..Packet::new(datagram.flow(), to, ip_bytes, content) });
    }
}

/// Counts drops by reason, and marks.
#[derive(Debug, Default)]
struct Counter {
    drops: BTreeMap<DropReason, u64>,
    marks: u64,
}

impl Observer for Counter {
    fn on_dropped(&mut self, _: Instant, _: &PacketView, _: Option<LinkId>, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
    }
    fn on_marked(&mut self, _: Instant, packet: &PacketView, _: LinkId) {
        assert_eq!(packet.codepoint, EcnCodepoint::Ce);
        self.marks += 1;
    }
}

fn network<O: Observer>(observer: O, config: &Config, machine: Box<dyn Medium>) -> Network<O> {
    let mut network = Network::new(observer);
    network.add_node(true);
    (0..STATIONS).for_each(|_| {
        network.add_node(false);
    });
    network.add_medium(MediumSpecification {
        hub: HUB,
        stations: (1..=STATIONS).map(NodeId).collect(),
        mtu_bytes: 1500,
        least_delays: MediumDirection::ALL.map(|direction| config.bounds(direction).1),
        machine,
    });
    network
}

fn schedule<O: Observer>(network: &mut Network<O>, hosts: &Hosts) {
    use fullpipe_engine::{EventClass, EventId};
    for (number, datagram) in (0..).zip(&hosts.script) {
        network.declare_conversation(datagram.from, datagram.to);
        network.calendar.schedule(datagram.at, EventId::new(EventClass::Application, number));
    }
    network.finalize();
}

/// Random datagrams between the hub and the stations, and between stations.
fn script(seed: u64, count: u64, mean_ns: u64) -> Vec<Datagram> {
    let mut random = RandomStream::new(seed, "script", "test");
    let mut at = 0;
    let datagrams = (0..count).map(|_| {
        at += random.uniform_below(2 * mean_ns);
        let from = random.uniform_below(4);
        let to = (from + 1 + random.uniform_below(3)) % 4;
        let codepoint = if random.bernoulli(0.5) { EcnCodepoint::Ect0 } else { EcnCodepoint::NotEct };
        let ip_bytes = 28 + random.uniform_below(1473) as u32;
        Datagram { at: Instant::from_nanos(at), from: NodeId(from as u32), to: NodeId(to as u32), ip_bytes, codepoint }
    });
    datagrams.collect()
}

struct End<'a>(&'a RemainingPackets, &'a FlowMonitor);

impl FinalState for End<'_> {
    fn link(&self, link: LinkId) -> FinalLinkState {
        let (queued_frames, queued_bytes) = self.0.queued_per_link[link.index()];
        FinalLinkState { queued_frames, queued_bytes }
    }
    fn flow(&self, flow: FlowId) -> FinalFlowState {
        let (in_flight_packets, in_flight_bytes) = self.0.packets_per_flow.get(&flow).copied().unwrap_or_default();
        let published = Some(PublishedCounters::from(&self.1.flow(flow)));
        FinalFlowState { in_flight_packets, in_flight_bytes, published }
    }
}

/// Runs random traffic with both auditors. The run ends while packets are in the medium. `change` may replace the medium.
fn audited(config: &Config, change: impl FnOnce(WifiMedium) -> Box<dyn Medium>) -> AuditReport {
    let links = MediumDirection::ALL.map(|direction| {
        let (rate_bps, delay) = config.bounds(direction);
        DeclaredLink {
            name: "link".into(),
            medium: MediumAccess::Scheduled,
            rate_bps,
            delay_ns: delay.as_nanos(),
            delay_varies: true,
            varies: LinkVariation::default(),
            framing_bytes: 0,
            min_frame_bytes: 0,
            mtu_bytes: 1500,
            queue: None,
        }
    });
    let links = links.to_vec();
    let mut monitor = FlowMonitor::new();
    monitor.reserve_flows(64);
    let observer = (monitor, (Auditor::new(links.clone()), PacketAuditor::new(links)));
    let medium = WifiMedium::new(BasicServiceSet::new(config.clone()).unwrap());
    let mut network = network(observer, config, change(medium));
    let mut hosts = Hosts { script: script(config.seed, 4000, 25_000), ..Hosts::default() };
    schedule(&mut network, &hosts);
    for flow in 0..64 {
        let of = hosts.script.iter().find(|datagram| datagram.flow().0 == flow);
        let hops = of.map_or(vec![], |datagram| network.path(datagram.from, datagram.to));
        let path = hops.into_iter().map(|hop| match hop {
            NextHop::Medium { medium, way, .. } => network.medium_link(medium, way),
            other => panic!("{other:?}"),
        });
        let declared = DeclaredFlow { path: path.collect(), ipv6: false };
        network.observer.1.0.add_flow(FlowId(flow), &declared);
        network.observer.1.1.add_flow(FlowId(flow), &declared);
    }
    let end = Instant::from_nanos(80_000_001);
    network.run(&mut hosts, end, end);
    let remaining = network.remaining_packets();
    assert!(remaining.queued_per_link.iter().any(|(packets, _)| *packets > 0));
    let (monitor, (auditor, packets)) = &mut network.observer;
    let end = End(&remaining, monitor);
    auditor.finish(&end).merge(packets.finish(&end))
}

#[test]
fn the_auditor_passes_the_medium() {
    for seed in 0..10 {
        let verdict = audited(&config(seed), |medium| Box::new(medium));
        assert!(verdict.passed(), "{verdict}");
        let count = |rule| verdict.checks.iter().find(|(checked, _)| *checked == rule).map_or(0, |(_, count)| *count);
        // Each frame that arrived is checked, and in addition each exchange.
        assert!(count(Rule::Hops) > 1000 && count(Rule::Overlap) > count(Rule::LinkRate), "{verdict:?}");
    }
}

/// A network with random settings.
fn random_config(seed: u64) -> Config {
    let mut random = RandomStream::new(seed, "settings", "test");
    let mut pick = |count: u64| random.uniform_below(count) as usize;
    let standards =
        [Standard::B, Standard::A, Standard::G, Standard::N(Band::Ghz2), Standard::N(Band::Ghz5), Standard::Ac];
    let standard = standards[pick(6)];
    let mut config = Config::new("lan", seed, standard);
    config.retry_limit = 1 + pick(8) as u16;
    config.aggregate.mpdus = [1, 2, 16, 64][pick(4)];
    config.rts = [RtsPolicy::Never, RtsPolicy::Above(0), RtsPolicy::Above(2000)][pick(3)];
    config.errors = [None, Some(ErrorModel::Nist), Some(ErrorModel::default())][pick(3)];
    config.order = [StationOrder::RoundRobin, StationOrder::LINUX][pick(2)];
    let packets = [1, 8, 1000][pick(3)];
    config.station_packets = [1, 20, 1000][pick(3)];
    config.ap_queue = match pick(3) {
        0 => ApQueue::Fifo { packets, driver_packets: 1 + pick(200) as u32 },
        1 => ApQueue::PerStation { packets },
        _ => ApQueue::FqCoDel(ApFqCoDel { packets, ..ApFqCoDel::default() }),
    };
    config.failure_timing = [FailureTiming::Timeout, FailureTiming::Immediate][pick(2)];
    let best_effort = AccessCategory::BestEffort as usize;
    config.station_access[best_effort].txop_limit = Duration::from_micros([0, 500, 4000][pick(3)]);
    config.stations = (0..STATIONS)
        .map(|number| {
            let width = ChannelWidth::ALL[pick(4)].min(standard.widest_channel());
            let streams = if standard.has_qos() { 1 + pick(4) as u8 } else { 1 };
            let capabilities = Capabilities { streams, width, short_guard: pick(2) == 1 };
            let target = IdealTarget::PacketErrorRate(0.5);
            let control = match standard.has_qos() && pick(2) == 1 {
                true => RateControlConfig::MinstrelHt(capabilities),
                false => RateControlConfig::Ideal { capabilities, target },
            };
            let distance = [1.0, 10.0, 40.0, 100.0][pick(4)];
            StationConfig::new(&format!("station {number}"), distance, control)
        })
        .collect();
    config
}

#[test]
fn the_auditor_passes_random_networks() {
    for seed in 0..150 {
        let config = random_config(seed);
        config.check().unwrap_or_else(|error| panic!("{error}"));
        let verdict = audited(&config, |medium| Box::new(medium));
        assert!(verdict.passed(), "seed {seed}: {verdict}");
    }
}

/// A medium whose exchanges begin 300 µs earlier than they should, from the tenth on.
#[derive(Debug)]
struct Overlapping {
    medium: WifiMedium,
    exchanges: u64,
}

impl Medium for Overlapping {
    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        self.medium.offer(now, frame);
    }
    fn next_wakeup(&self) -> Instant {
        self.medium.next_wakeup()
    }
    fn wake(&mut self, now: Instant) {
        self.medium.wake(now);
    }
    fn drain_outcomes(&mut self, outcomes: &mut VecDeque<CompletedFrame>) {
        self.medium.drain_outcomes(outcomes);
    }
    fn drain_exchanges(&mut self, exchanges: &mut Vec<Exchange>) {
        let first = exchanges.len();
        self.medium.drain_exchanges(exchanges);
        for exchange in &mut exchanges[first..] {
            self.exchanges += 1;
            if self.exchanges >= 10 {
                // Most exchanges follow one another within AIFS and a few slots: 43 µs and 9 µs each.
                exchange.start = Instant::from_nanos(exchange.start.as_nanos() - 300_000);
            }
        }
    }
}

#[test]
fn the_auditor_reports_frames_that_overlap() {
    let verdict = audited(&config(1), |medium| Box::new(Overlapping { medium, exchanges: 0 }));
    assert!(verdict.to_string().contains("overlap"), "{verdict}");
}

/// The hub sends more than the medium carries. FQ-CoDel marks ECN-capable packets and drops others. The packets have the
/// mark at the station, and the drops their reason.
#[test]
fn marks_and_early_drops_of_the_access_point_reach_the_network() {
    for codepoint in [EcnCodepoint::Ect0, EcnCodepoint::NotEct] {
        let config = config(3);
        let medium = WifiMedium::new(BasicServiceSet::new(config.clone()).unwrap());
        let mut network = network(Counter::default(), &config, Box::new(medium));
        // 1500 bytes every 40 µs are 300 Mbit/s, to the station at 40 m. Its queue stays below the limit.
        let script = (0..7000).map(|number| Datagram {
            at: Instant::ZERO + Duration::from_micros(40) * number,
            from: HUB,
            to: NodeId(3),
            ip_bytes: 1500,
            codepoint,
        });
        let mut hosts = Hosts { script: script.collect(), ..Hosts::default() };
        schedule(&mut network, &hosts);
        network.run(&mut hosts, Instant::NEVER, Instant::NEVER);
        let marked = hosts.received.iter().filter(|(_, codepoint, _)| *codepoint == EcnCodepoint::Ce).count() as u64;
        let counters = network.link_counters(network.medium_link(0, MediumDirection::Downlink));
        let early = network.observer.drops.get(&DropReason::QueueDiscipline).copied().unwrap_or(0);
        assert_eq!((marked, network.observer.marks, counters.queue_drops), (counters.marks, counters.marks, early));
        assert_eq!(hosts.received.len() as u64 + early, 7000, "{:?}", network.observer);
        // The queue has 5 ms/s more than it can send; CoDel acts after 100 ms above 20 ms.
        let (marks, drops) = if codepoint == EcnCodepoint::Ect0 { (marked, early) } else { (early, marked) };
        assert!(marks > 5 && drops == 0, "{codepoint:?}: {marked} {early}");
    }
}

/// The header fields of a packet that a station sends from this port.
fn headers(port: u16) -> HeaderFields {
    let end = |node, port| Endpoint { node: NodeId(node), port };
    HeaderFields {
        ends: EndpointPair { source: end(1, port), destination: end(0, 9) },
        source: Ipv4Addr::new(10, 0, 0, 2).into(),
        destination: Ipv4Addr::new(10, 0, 0, 1).into(),
        translated: false,
        hop_limit: 64,
        identification: 0,
    }
}

/// Three packets of best effort wait at a station, one each in an own PPDU because the first occupies the medium. A packet
/// of voice that is offered after them is delivered before the last of them.
#[test]
fn the_rule_selects_the_access_category() {
    let deliveries = |mut medium: WifiMedium| {
        let offer = |medium: &mut WifiMedium, at, flow| {
            let (way, codepoint) = (MediumDirection::Uplink, EcnCodepoint::NotEct);
            let frame = MediumFrame {
                token: flow,
                way,
                station: 0,
                flow: FlowId(flow as u32),
                ip_bytes: 1500,
                codepoint,
                envelope: Some(headers(5000 + flow as u16)),
            };
            medium.offer(at, frame);
        };
        let start = Instant::from_nanos(1_000_000);
        offer(&mut medium, start, 0);
        medium.wake(medium.next_wakeup());
        for flow in [0, 0, 7] {
            offer(&mut medium, start + Duration::from_micros(20), flow);
        }
        let mut outcomes = VecDeque::new();
        while !medium.next_wakeup().is_never() {
            medium.wake(medium.next_wakeup());
        }
        medium.drain_outcomes(&mut outcomes);
        outcomes.into_iter().map(|outcome| outcome.token).collect::<Vec<_>>()
    };
    let config = Config { aggregate: AggregateLimits { mpdus: 1, ..config(4).aggregate }, ..config(4) };
    let network = || BasicServiceSet::new(config.clone()).unwrap();
    let plain = WifiMedium::new(network());
    assert!(!plain.reads_headers());
    assert_eq!(deliveries(plain), [0, 0, 0, 7]);
    let mut rule = CategoryRule::default();
    let filter = PacketFilter { local_ports: PortRange::one(5007), ..PacketFilter::ANY };
    rule.add(AccessCategory::Voice, [filter]);
    let voice = WifiMedium::with_categories(network(), rule);
    assert!(voice.reads_headers());
    let order = deliveries(voice);
    assert!(order[3] == 0 && order.contains(&7), "{order:?}");
}
