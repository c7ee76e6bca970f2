//! Queues compared with queueing theory: mean waiting times, Little's law, and scaling laws.
//!
//! **Number of packets.** The mean of n waiting times of an M/M/1 queue has the asymptotic variance
//! S^2 rho (2 + 5 rho - 4 rho^2 + rho^3) / (1 - rho)^4 / n (Daley 1968), where S is the mean service time. Relative to the mean
//! waiting time rho S / (1 - rho), the standard deviation is 5.4, 11.1 and 21.1 / sqrt(n) at loads 0.5, 0.8 and 0.9. For 2 % to be four
//! standard deviations, n must be 1.2, 4.9 and 17.8 million. With constant service times half of these are sufficient: in heavy traffic the
//! number grows with the sum of the squared coefficients of variation, 1 + 0 instead of 1 + 1.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Record, Recorder, Send, World};
use fullpipe_engine::{EventClass, EventId};
use fullpipe_network::{
    HostEndpoints, Limit, LinkProfile, LinkSchedule, LinkSpecification, Network, Packet, PacketContent, PacketHandle,
    ScheduleStep,
};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};

/// Mean size of a packet; it takes 1 ms at the link's rate.
const MEAN_BYTES: f64 = 4000.0;

fn link(from: u32, to: u32, rate_bps: u64, queue: Limit, course: LinkProfile) -> LinkSpecification {
    LinkSpecification {
        from: NodeId(from),
        to: NodeId(to),
        rate: Rate::from_bits_per_second(rate_bps),
        delay: Duration::ZERO,
        mtu_bytes: 65_535,
        framing_bytes: 0,
        queue,
        discipline: None,
        loss: None,
        course,
        impairments: None,
    }
}

/// Poisson arrivals with constant or exponential sizes.
struct Source {
    arrivals: RandomStream,
    sizes: Option<RandomStream>,
    gap: f64,
    left: u64,
    at: f64,
}

impl HostEndpoints<()> for Source {
    fn receive(&mut self, network: &mut Network<()>, _node: NodeId, packet: PacketHandle) {
        network.arena.release(packet);
    }

    fn on_timer(&mut self, network: &mut Network<()>, event: EventId) {
        let bytes = self.sizes.as_mut().map_or(MEAN_BYTES, |sizes| sizes.exponential(MEAN_BYTES));
        // A fraction e^-16 of the sizes exceeds 65 535 bytes.
        let ip_bytes = bytes.round().clamp(1.0, 65_535.0) as u32;
        network.send(NodeId(0), &Packet::new(FlowId(0), NodeId(1), ip_bytes, PacketContent::Udp { payload_bytes: 0 }));
        self.left -= 1;
        if self.left > 0 {
            self.at += self.arrivals.exponential(self.gap);
            network.calendar.schedule(Instant::from_nanos(self.at as u64), event);
        }
    }
}

/// Returns the mean waiting time in milliseconds.
fn wait(load: f64, exponential: bool, count: u64) -> f64 {
    let mut network = Network::new(());
    network.add_node(false);
    network.add_node(false);
    network.add_link(link(0, 1, 32_000_000, Limit::Unlimited, LinkProfile::Constant));
    network.declare_conversation(NodeId(0), NodeId(1));
    network.finalize();
    let mut source = Source {
        arrivals: RandomStream::new(11, "source", "arrivals"),
        sizes: exponential.then(|| RandomStream::new(11, "source", "sizes")),
        gap: 1e6 / load,
        left: count,
        at: 0.0,
    };
    network.calendar.schedule(Instant::ZERO, EventId::new(EventClass::Application, 0));
    network.run(&mut source, Instant::NEVER, Instant::NEVER);
    let counters = network.link_counters(LinkId(0));
    assert_eq!(counters.frames, count);
    counters.queue_delay_sum.as_nanos() as f64 / count as f64 / 1e6
}

fn within_two_per_cent(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.02, "expected {expected} ms, found {found} ms");
}

// Pollaczek and Khinchine: W = rho S (1 + c^2) / 2 / (1 - rho); S is 1 ms, c^2 is 0 or 1.
#[test]
fn waiting_times_of_m_d_1_match_theory() {
    for (load, count, expected) in [(0.5, 600_000, 0.5), (0.8, 2_500_000, 2.0), (0.9, 9_000_000, 4.5)] {
        within_two_per_cent(wait(load, false, count), expected);
    }
}

#[test]
fn waiting_times_of_m_m_1_match_theory() {
    for (load, count, expected) in [(0.5, 1_200_000, 1.0), (0.8, 5_000_000, 4.0), (0.9, 18_000_000, 9.0)] {
        within_two_per_cent(wait(load, true, count), expected);
    }
}

/// A chain of four nodes and three links, `k` times as fast in its instants and rates.
fn chain(k: u64, idle_hosts: u32, seed: u64) -> (Network<Recorder>, World) {
    let mut network = Network::new(Recorder::default());
    for router in [false, true, true, false] {
        network.add_node(router);
    }
    let time = |us: u64| Duration::from_nanos(us * 1000 / k);
    // A byte takes 1000, 2000 and 500 ns / k; steps double the rate for some time.
    let step = |us, rate: u64| ScheduleStep {
        at: time(us),
        rate: Some(Rate::from_bits_per_second(rate * k)),
        delay: Some(time(us)),
    };
    let steps = vec![step(2000, 8_000_000), step(5000, 4_000_000), step(6000, 0)];
    let schedule = LinkSchedule::new(steps, Some(time(7000))).unwrap();
    let courses = [
        (8_000_000, LinkProfile::Constant),
        (4_000_000, LinkProfile::Steps(schedule)),
        (16_000_000, LinkProfile::Constant),
    ];
    for (from, (rate, course)) in (0..).zip(courses) {
        let mut link = link(from, from + 1, rate * k, Limit::Packets(8), course);
        link.delay = time(700);
        network.add_link(link);
    }
    for host in 4..4 + idle_hosts {
        network.add_node(false);
        network.add_link(link(host, 1, 8_000_000 * k, Limit::Packets(8), LinkProfile::Constant));
        network.add_link(link(1, host, 8_000_000 * k, Limit::Packets(8), LinkProfile::Constant));
        network.declare_conversation(NodeId(0), NodeId(host));
    }
    let mut stream = RandomStream::new(seed, "script", "test");
    let mut us = 0;
    let script = (0..2000u32).map(|n| {
        us += stream.uniform_below(2000);
        let ip_bytes = 28 + stream.uniform_below(1400) as u32;
        let at = Instant::ZERO + time(us);
        Send { at, flow: FlowId(2 * (n % 3)), from: NodeId(0), to: NodeId(3), ip_bytes, tcp: false }
    });
    let mut world = World::new(script.collect());
    world.declare(&mut network);
    network.finalize();
    let end = Instant::from_nanos(1 << 60);
    network.run(&mut world, end, end);
    (network, world)
}

/// Multiplies every time of a record by k.
fn slower(record: Record, k: u64) -> Record {
    let slow = |at: Instant| Instant::from_nanos(at.as_nanos() * k);
    match record {
        Record::Sent(at, flow, bytes) => Record::Sent(slow(at), flow, bytes),
        Record::Delivered(at, flow, bytes, sent) => Record::Delivered(slow(at), flow, bytes, slow(sent)),
        Record::Dropped(at, flow, bytes, link, reason) => Record::Dropped(slow(at), flow, bytes, link, reason),
        Record::Duplicated(at, flow, bytes, link) => Record::Duplicated(slow(at), flow, bytes, link),
        Record::Transmitted(link, flow, bytes, a, b, c, d) => {
            Record::Transmitted(link, flow, bytes, slow(a), slow(b), slow(c), slow(d))
        }
        Record::Offered(..) | Record::LinkDropped(..) => record,
    }
}

#[test]
fn rates_times_k_and_times_by_k_give_the_same_records() {
    for seed in 0..20 {
        let base = chain(1, 0, seed).0.observer.records;
        assert!(base.iter().any(|record| matches!(record, Record::Dropped(..))));
        for k in [2, 10] {
            let fast = chain(k, 0, seed).0.observer.records;
            assert!(fast.into_iter().map(|record| slower(record, k)).eq(base.iter().copied()), "seed {seed}, k {k}");
        }
    }
}

#[test]
fn idle_hosts_do_not_change_the_records() {
    let base = chain(1, 0, 3).0.observer.records;
    assert_eq!(base, chain(1, 3, 3).0.observer.records);
}

#[test]
fn littles_law_holds_to_the_nanosecond() {
    for seed in 0..20 {
        let (network, _) = chain(1, 0, seed);
        for link in 0..3 {
            // The number of packets in the queue over time, and how long each one was in it.
            let mut events: Vec<(u64, i64)> = Vec::new();
            let mut transmission = 0;
            for t in network.observer.transmissions().filter(|t| t.0 == LinkId(link)) {
                events.extend([(t.3.as_nanos(), 1), (t.5.as_nanos(), -1)]);
                transmission += (t.5 - t.4).as_nanos();
            }
            events.sort_unstable();
            let (mut integral, mut inside, mut before) = (0, 0, 0);
            for (at, change) in events {
                integral += inside * (at - before) as i64;
                (inside, before) = (inside + change, at);
            }
            let waited = network.link_counters(LinkId(link)).queue_delay_sum.as_nanos();
            assert_eq!((integral as u64, inside), (waited + transmission, 0), "link {link}, seed {seed}");
        }
    }
}
