//! A medium with a hub in a network: the decisions of a simple model take effect at their times and are fully reported.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Recorder, Send, World};
use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, DeclaredLink, FinalFlowState, FinalLinkState, FinalState, LinkVariation,
    MediumAccess as Kind, PacketAuditor, PublishedCounters, Rule,
};
use fullpipe_network::network::RemainingPackets;
use fullpipe_network::{
    CompletedFrame, Fault, Limit, LinkSpecification, Medium, MediumDirection, MediumFrame, MediumOutcome,
    MediumSpecification, Network, NextHop,
};
use fullpipe_record::{DropReason, FlowMonitor, Observer};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use proptest::prelude::*;
use std::collections::VecDeque;

const MS: u64 = 1_000_000;

/// At the start of every millisecond each direction takes up to `bytes_per_ms` of the frames that arrived before it, in
/// order. They arrive 3 ms later; every `lost`-th frame is lost instead. At most `room` frames wait.
#[derive(Debug)]
struct Toy {
    bytes_per_ms: u32,
    lost: u64,
    room: usize,
    /// Whether frames may be offered as late as the start of the next millisecond.
    patient: bool,
    queues: [VecDeque<MediumFrame>; 2],
    next: Instant,
    count: u64,
    fates: VecDeque<CompletedFrame>,
}

impl Toy {
    fn new(bytes_per_ms: u32, lost: u64, room: usize) -> Box<Toy> {
        let (queues, fates) = Default::default();
        Box::new(Toy { bytes_per_ms, lost, room, patient: false, queues, next: Instant::NEVER, count: 0, fates })
    }
}

fn boundary_after(at: Instant) -> Instant {
    Instant::from_nanos((at.as_nanos() / MS + 1) * MS)
}

impl Medium for Toy {
    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        let queue = &mut self.queues[frame.way as usize];
        if queue.len() == self.room {
            return self.fates.push_back(CompletedFrame {
                token: frame.token,
                at: now,
                fate: MediumOutcome::BufferFull,
            });
        }
        queue.push_back(frame);
        // A frame exactly at a boundary is too late for it.
        self.next = self.next.min(boundary_after(now));
    }

    fn offer_deadline(&self, at: Instant) -> Instant {
        if self.patient { boundary_after(at) } else { at }
    }

    fn next_wakeup(&self) -> Instant {
        self.next
    }

    fn wake(&mut self, now: Instant) {
        assert_eq!(now, self.next, "the medium must be woken at the requested time");
        for queue in &mut self.queues {
            let mut room = self.bytes_per_ms;
            while let Some(frame) = queue.front().copied().filter(|frame| frame.ip_bytes <= room) {
                queue.pop_front();
                room -= frame.ip_bytes;
                self.count += 1;
                let fate =
                    if self.count.is_multiple_of(self.lost) { MediumOutcome::Lost } else { MediumOutcome::Delivered };
                self.fates.push_back(CompletedFrame { token: frame.token, at: now + Duration::from_millis(3), fate });
            }
        }
        let empty = self.queues.iter().all(VecDeque::is_empty);
        self.next = if empty { Instant::NEVER } else { now + Duration::from_millis(1) };
    }

    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>) {
        fates.append(&mut self.fates);
    }
}

const NEVER: u64 = u64::MAX;

fn link(from: NodeId, to: NodeId) -> LinkSpecification {
    LinkSpecification {
        from,
        to,
        rate: Rate::from_bits_per_second(100_000_000),
        delay: Duration::from_micros(1_100),
        mtu_bytes: 1500,
        framing_bytes: 0,
        queue: Limit::Packets(1000),
        discipline: None,
        loss: None,
        course: Default::default(),
        impairments: None,
    }
}

const SERVER: NodeId = NodeId(0);
const GATEWAY: NodeId = NodeId(2);
const STATIONS: [NodeId; 3] = [NodeId(3), NodeId(4), NodeId(5)];

/// A server, a router, the gateway (a router) at the hub, and three stations; links connect the first three nodes in a chain.
fn world<O: Observer>(observer: O, machine: Box<dyn Medium>) -> Network<O> {
    let mut network = Network::new(observer);
    for router in [false, true, true, false, false, false] {
        network.add_node(router);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 1), (1, 0)] {
        network.add_link(link(NodeId(from), NodeId(to)));
    }
    network.add_medium(MediumSpecification {
        hub: GATEWAY,
        stations: STATIONS.to_vec(),
        mtu_bytes: 1500,
        least_delays: [Duration::from_millis(3); 2],
        machine,
    });
    network
}

fn send(at_ns: u64, flow: u32, from: NodeId, to: NodeId, ip_bytes: u32) -> Send {
    Send { at: Instant::from_nanos(at_ns), flow: FlowId(flow), from, to, ip_bytes, tcp: false }
}

fn run(network: &mut Network<Recorder>, world: &mut World) {
    world.declare(network);
    network.finalize();
    network.run(world, Instant::NEVER, Instant::NEVER);
    assert_eq!(network.arena.live_packets().count(), 0, "no packet may be left");
    network.observer.check_conservation(&network.remaining_packets());
}

#[test]
fn a_packet_that_arrives_at_the_boundary_misses_it() {
    // A station's packet just before 3 ms makes the medium request a wakeup at 3 ms. At that instant a packet arrives from the
    // server, after 2 x (100 + 1100) us, by an event that precedes the medium's event.
    let mut network = world(Recorder::default(), Toy::new(10_000, NEVER, 100));
    let (last, boundary) = (3 * MS - 1, 600_000);
    let mut hosts =
        World::new(vec![send(boundary, 0, SERVER, STATIONS[0], 1250), send(last, 2, STATIONS[0], STATIONS[2], 100)]);
    run(&mut network, &mut hosts);
    // Taken at 4 ms.
    assert_eq!(hosts.received_of(0), [7 * MS]);
    // Taken at 3 ms, at the hub at 6 ms, which is a boundary: taken at 7 ms.
    assert_eq!(hosts.received_of(2), [10 * MS]);
}

#[test]
fn links_before_and_after_a_medium_are_unaffected_by_it() {
    // 1250 bytes at 100 Mbit/s: 100 us and 1100 us of delay each: at the gateway at 2.4 ms, taken at 3, arrives at 6 ms. The
    // answer of 125 bytes is sent at 6 ms, is taken at 7 ms, and is at the gateway at 10 ms; 2 x (10 + 1100) us later it is at the server.
    let mut network = world(Recorder::default(), Toy::new(10_000, NEVER, 100));
    let mut hosts = World::new(vec![send(0, 0, SERVER, STATIONS[1], 1250)]);
    hosts.echo_bytes = Some(125);
    run(&mut network, &mut hosts);
    assert_eq!(hosts.received_of(0), [6 * MS]);
    assert_eq!(hosts.received_of(1), [12_220_000]);
    let down = network.medium_link(0, MediumDirection::Downlink);
    assert_eq!(
        (down, network.medium_link(0, MediumDirection::Uplink), network.link_count()),
        (LinkId(4), LinkId(5), 6)
    );
    assert_eq!(network.link_counters(down).bytes, 1250);
    assert_eq!(network.link_counters(down).queue_delay_sum, Duration::from_micros(3_600));
    let hops = network.path(SERVER, STATIONS[1]);
    let last = NextHop::Medium { medium: 0, way: MediumDirection::Downlink, station: 1 };
    assert_eq!(hops, [NextHop::Link(LinkId(0)), NextHop::Link(LinkId(1)), last]);
    // Two links of 80 ns per byte and 1.1 ms; 3 ms.
    assert_eq!(network.minimum_delay(SERVER, STATIONS[1]), (Duration::from_micros(5_200), 160.0));
}

#[test]
fn refused_and_lost_frames_are_reported_with_their_reasons() {
    // Ten frames at once, room for four, of which the third is lost.
    let mut network = world(Recorder::default(), Toy::new(10_000, 3, 4));
    let script = (0..10).map(|_| send(0, 0, STATIONS[0], SERVER, 500)).collect();
    let mut hosts = World::new(script);
    run(&mut network, &mut hosts);
    assert_eq!(hosts.received.len(), 3);
    let drops: Vec<_> = network.observer.drops().into_iter().collect();
    assert_eq!(drops, [(DropReason::QueueFull, 6), (DropReason::Radio, 1)]);
    let counters = network.link_counters(network.medium_link(0, MediumDirection::Uplink));
    assert_eq!((counters.frames, counters.queue_drops, counters.losses), (3, 6, 1));
}

#[test]
fn packets_that_exceed_the_mtu_are_fragmented() {
    let mut network = Network::new(Recorder::default());
    for router in [false, false] {
        network.add_node(router);
    }
    let (hub, station) = (NodeId(0), NodeId(1));
    let (mtu_bytes, least_delays) = (600, [Duration::from_millis(3); 2]);
    let machine = Toy::new(1200, NEVER, 100);
    network.add_medium(MediumSpecification { hub, stations: vec![station], mtu_bytes, least_delays, machine });
    let mut hosts = World::new(vec![send(0, 0, hub, station, 1220)]);
    run(&mut network, &mut hosts);
    // 1200 bytes of payload are 576 + 576 + 48, each with a header of 20: 596 + 596 within 1200 bytes at 1 ms, the last at 2 ms.
    assert_eq!(hosts.received_of(0), [5 * MS]);
    let sizes: Vec<u32> = network.observer.transmissions().map(|t| t.2).collect();
    assert_eq!(sizes, [596, 596, 68]);
}

struct End<'a>(&'a RemainingPackets, &'a FlowMonitor);

impl FinalState for End<'_> {
    fn link(&self, link: LinkId) -> FinalLinkState {
        let (queued_frames, queued_bytes) = self.0.queued_per_link[link.index()];
        FinalLinkState { queued_frames, queued_bytes }
    }
    fn flow(&self, flow: FlowId) -> FinalFlowState {
        let (in_flight_packets, in_flight_bytes) = self.0.packets_per_flow.get(&flow).copied().unwrap_or_default();
        FinalFlowState {
            in_flight_packets,
            in_flight_bytes,
            published: Some(PublishedCounters::from(&self.1.flow(flow))),
        }
    }
}

/// Random traffic between all pairs, each as its own flow, for `end_ms`.
fn script(seed: u64, count: u64) -> Vec<Send> {
    let mut stream = RandomStream::new(seed, "script", "test");
    let ends = [SERVER, STATIONS[0], STATIONS[1], STATIONS[2]];
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += stream.uniform_below(200_000);
            // Often exactly at a boundary.
            let at = if stream.uniform_below(4) == 0 { at / MS * MS + MS } else { at };
            let (from, other) = (stream.uniform_below(4), 1 + stream.uniform_below(3));
            let to = (from + other) % 4;
            let flow = 2 * (4 * from + to) as u32;
            send(at, flow, ends[from as usize], ends[to as usize], 28 + stream.uniform_below(1473) as u32)
        })
        .collect()
}

fn audited(seed: u64, fault: Option<Fault>, bytes_per_ms: u32, promised_bytes_per_ms: u32) -> AuditReport {
    let declare = |medium, rate_bps, delay_ns| DeclaredLink {
        name: "link".into(),
        medium,
        rate_bps,
        delay_ns,
        delay_varies: medium == Kind::Scheduled,
        varies: LinkVariation::default(),
        framing_bytes: 0,
        min_frame_bytes: 0,
        mtu_bytes: 1500,
        queue: None,
    };
    let mut links = vec![declare(Kind::PointToPoint, 100_000_000, 1_100_000); 4];
    links.extend(vec![declare(Kind::Scheduled, u64::from(promised_bytes_per_ms) * 8_000, 3 * MS); 2]);
    let script = script(seed, 4000);
    let mut monitor = FlowMonitor::new();
    monitor.reserve_flows(32);
    let observer = (monitor, (Auditor::new(links.clone()), PacketAuditor::new(links)));
    let mut network = world(observer, Toy::new(bytes_per_ms, 17, 20));
    let mut hosts = World::new(script);
    hosts.declare(&mut network);
    if let Some(fault) = fault {
        network.inject_fault(fault);
    }
    network.finalize();
    for flow in 0..32 {
        let of = hosts.script.iter().find(|send| send.flow.0 == flow);
        let hops = of.map_or(vec![], |send| network.path(send.from, send.to));
        let path = hops.into_iter().map(|hop| match hop {
            NextHop::Link(link) => link,
            NextHop::Medium { medium, way, .. } => network.medium_link(medium, way),
            other => panic!("{other:?}"),
        });
        let declared = DeclaredFlow { path: path.collect(), ipv6: false };
        network.observer.1.0.add_flow(FlowId(flow), &declared);
        network.observer.1.1.add_flow(FlowId(flow), &declared);
    }
    // The run ends while frames are in the medium.
    let end = Instant::from_nanos(300 * MS + 1);
    network.run(&mut hosts, end, end);
    let remaining = network.remaining_packets();
    assert!(remaining.queued_per_link[4].0 > 0 && remaining.queued_per_link[5].0 > 0);
    let (monitor, (auditor, packets)) = &mut network.observer;
    let end = End(&remaining, monitor);
    auditor.finish(&end).merge(packets.finish(&end))
}

#[test]
fn the_auditor_passes_a_correct_medium_and_reports_the_faults_of_others() {
    for seed in 0..20 {
        let verdict = audited(seed, None, 8_000, 8_000);
        assert!(verdict.passed(), "{verdict}");
        assert!(verdict.checks.iter().any(|(rule, count)| *rule == Rule::Hops && *count > 1000));
    }
    let rules = |verdict: AuditReport| verdict.failures.iter().map(|failure| failure.rule).collect::<Vec<_>>();
    for link in [LinkId(4), LinkId(5)] {
        let silent = audited(1, Some(Fault::SilentDrop { link, every: 100 }), 8_000, 8_000);
        assert!(rules(silent).contains(&Rule::FlowConservation));
        let fast = rules(audited(1, Some(Fault::FastLink(link)), 8_000, 8_000));
        assert!(fast.contains(&Rule::Propagation), "{fast:?}");
        assert!(fast.contains(&Rule::PathTime), "{fast:?}");
    }
    // A medium that transmits 50 % more than declared, where that rate is the limit.
    let rules = rules(audited(1, None, 3_000, 2_000));
    assert_eq!(rules, [Rule::LinkRate, Rule::LinkRate]);
}

proptest! {
    #[test]
    fn computing_links_ahead_changes_nothing(seed in any::<u64>(), echo in any::<bool>()) {
        let histories = |fuse| {
            let mut network = world(Recorder::default(), Toy::new(4_000, 11, 15));
            network.set_chaining(fuse);
            let mut hosts = World::new(script(seed, 300));
            hosts.echo_bytes = echo.then_some(200);
            hosts.declare(&mut network);
            network.finalize();
            let end = Instant::from_nanos(30 * MS);
            network.run(&mut hosts, end, end);
            network.observer.check_conservation(&network.remaining_packets());
            (network.observer.histories(), network.events())
        };
        let (ahead, fewer) = histories(true);
        let (plain, more) = histories(false);
        prop_assert_eq!(ahead, plain);
        prop_assert!(fewer < more);
    }

    /// Stations exchange packets with the server only, so one link feeds the downlink. The run stops at any time and continues.
    #[test]
    fn deferred_offers_do_not_change_results(
        seed in any::<u64>(),
        echo in any::<bool>(),
        patient in any::<bool>(),
        mut stops_ns in prop::collection::vec(0..30 * MS, 0..5),
    ) {
        stops_ns.sort_unstable();
        let histories = |fuse, observed| {
            let toy = Toy::new(4_000, 11, if patient { usize::MAX } else { 15 });
            let mut network = world(Recorder::default(), Box::new(Toy { patient, ..*toy }));
            network.set_chaining(fuse);
            if observed {
                network.observe_link(network.medium_link(0, MediumDirection::Downlink));
            }
            let mut script = script(seed, 300);
            script.retain(|send| send.from == SERVER || send.to == SERVER);
            let mut hosts = World::new(script);
            hosts.echo_bytes = echo.then_some(200);
            hosts.declare(&mut network);
            network.finalize();
            let end = Instant::from_nanos(30 * MS);
            for stop in stops_ns.iter().map(|&ns| Instant::from_nanos(ns)).chain([end]) {
                network.run(&mut hosts, stop, end);
            }
            network.observer.check_conservation(&network.remaining_packets());
            let ways = [MediumDirection::Downlink, MediumDirection::Uplink].map(|way| network.link_counters(network.medium_link(0, way)));
            (network.observer.histories(), network.remaining_packets().queued_per_link, format!("{ways:?}"), network.events())
        };
        let (waiting, plain, observed) = (histories(true, false), histories(false, false), histories(true, true));
        prop_assert_eq!(waiting.0, plain.0);
        prop_assert_eq!(waiting.1, plain.1);
        prop_assert_eq!(waiting.2, plain.2);
        prop_assert!(observed.3 < plain.3);
        prop_assert!(!patient || waiting.3 < observed.3, "{} {}", waiting.3, observed.3);
    }
}
