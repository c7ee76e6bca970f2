//! One point-to-point link compared with a model without events, which computes for each packet when transmission starts and ends.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Record, Recorder, Send, World};
use fullpipe_network::{Fault, Fifo, Limit, LinkSpecification, LossModel, Network, QueueDiscipline};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, RandomStream, Rate};
use proptest::prelude::*;

const NEVER: Instant = Instant::NEVER;
const FRAMING: u32 = 2;

#[derive(Clone, Debug)]
struct Setting {
    rate_bps: u64,
    delay_ns: u64,
    limit: Limit,
    /// Limit of a discipline above the device queue, in packets.
    discipline: Option<u64>,
    /// (instant, IP bytes), in order of time.
    packets: Vec<(u64, u32)>,
}

fn simulate(setting: &Setting, fault: Option<Fault>, loss: Option<LossModel>) -> (Network<Recorder>, World) {
    let mut network = Network::new(Recorder::default());
    let (a, b) = (network.add_node(false), network.add_node(false));
    let discipline =
        setting.discipline.map(|packets| Box::new(Fifo::new(Limit::Packets(packets))) as Box<dyn QueueDiscipline>);
    network.add_link(LinkSpecification {
        from: a,
        to: b,
        rate: Rate::from_bits_per_second(setting.rate_bps),
        delay: Duration::from_nanos(setting.delay_ns),
        mtu_bytes: 9000,
        framing_bytes: FRAMING,
        queue: setting.limit,
        discipline,
        loss,
        course: fullpipe_network::LinkProfile::Constant,
        impairments: None,
    });
    if let Some(fault) = fault {
        network.inject_fault(fault);
    }
    let script = setting.packets.iter().map(|&(at, ip_bytes)| Send {
        at: Instant::from_nanos(at),
        flow: FlowId(0),
        from: a,
        to: b,
        ip_bytes,
        tcp: false,
    });
    let mut world = World::new(script.collect());
    world.declare(&mut network);
    network.finalize();
    network.run(&mut world, NEVER, NEVER);
    (network, world)
}

/// Returns the expected start and end of transmission of each packet, or `None` if it is dropped.
///
/// The result is exact: within a busy period that starts at s, the n-th packet ends at s + (bits of the first n) / rate, rounded down to
/// whole nanoseconds; the period continues if a packet arrives no later than it ends. Packets that have not started wait.
fn expected(setting: &Setting) -> Vec<Option<(u64, u64)>> {
    struct Accepted {
        start: u64,
        finish: u64,
        wire_bytes: u32,
    }
    let limit = match (setting.limit, setting.discipline) {
        // A discipline of d packets above a device queue of n: d + n in all.
        (Limit::Packets(n), Some(d)) => Limit::Packets(n + d),
        (limit, _) => limit,
    };
    let mut accepted: Vec<Accepted> = Vec::new();
    let mut period = (0u64, 0u128);
    let mut outcome = Vec::new();
    for &(at, ip_bytes) in &setting.packets {
        let wire_bytes = ip_bytes + FRAMING;
        let free = accepted.last().map(|packet| packet.finish);
        let busy = free.is_some_and(|free| free > at);
        let waiting = accepted.iter().filter(|packet| packet.start > at);
        let (packets, bytes) =
            waiting.fold((0u64, 0u64), |(n, bytes), packet| (n + 1, bytes + u64::from(packet.wire_bytes)));
        let admitted = match limit {
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes + u64::from(wire_bytes) <= limit,
            Limit::Unlimited => true,
        };
        if busy && !admitted {
            outcome.push(None);
            continue;
        }
        let start = free.unwrap_or(0).max(at);
        if free.is_none_or(|free| free < at) {
            period = (start, 0);
        }
        period.1 += u128::from(wire_bytes) * 8;
        let finish = period.0 + (period.1 * 1_000_000_000 / u128::from(setting.rate_bps)) as u64;
        accepted.push(Accepted { start, finish, wire_bytes });
        outcome.push(Some((start, finish)));
    }
    outcome
}

fn check(setting: &Setting) {
    let (network, world) = simulate(setting, None, None);
    let expected = expected(setting);
    let through: Vec<(u64, u64, u64, u64)> = setting
        .packets
        .iter()
        .zip(&expected)
        .filter_map(|((at, _), times)| times.map(|(start, finish)| (*at, start, finish, finish + setting.delay_ns)))
        .collect();
    let found: Vec<(u64, u64, u64, u64)> = network
        .observer
        .transmissions()
        .map(|t| (t.3.as_nanos(), t.4.as_nanos(), t.5.as_nanos(), t.6.as_nanos()))
        .collect();
    assert_eq!(found, through);
    assert_eq!(world.received_of(0), through.iter().map(|packet| packet.3).collect::<Vec<_>>());
    let drops: Vec<u64> = network
        .observer
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Dropped(at, _, _, Some(LinkId(0)), DropReason::QueueFull) => Some(at.as_nanos()),
            _ => None,
        })
        .collect();
    let dropped = setting.packets.iter().zip(&expected).filter(|(_, times)| times.is_none());
    assert_eq!(drops, dropped.map(|((at, _), _)| *at).collect::<Vec<_>>());
    assert_eq!(network.arena.live_packets().count(), 0);
    network.observer.check_conservation(&network.remaining_packets());
    let counters = network.link_counters(LinkId(0));
    assert_eq!((counters.frames, counters.queue_drops), (through.len() as u64, drops.len() as u64));
    let waited: u64 = through.iter().map(|(at, start, ..)| start - at).sum();
    assert_eq!(counters.queue_delay_sum.as_nanos(), waited);
}

fn setting() -> impl Strategy<Value = Setting> {
    let rate = prop_oneof![
        // Rates at which packets take whole microseconds, so that instants coincide.
        Just(8_000_000u64),
        Just(1_000_000_000),
        1_000u64..200_000_000_000,
    ];
    let limit = prop_oneof![
        (0u64..12).prop_map(Limit::Packets),
        (0u64..20_000).prop_map(Limit::Bytes),
        (1u64..50)
            .prop_map(|ms| Limit::from_duration(Duration::from_millis(ms), Rate::from_bits_per_second(8_000_000))),
        Just(Limit::Unlimited),
    ];
    let discipline = prop::option::of(1u64..12);
    let packets = prop::collection::vec((0u64..4, prop_oneof![28u32..1500, Just(998)]), 1..120);
    (rate, 0u64..1_000_000, limit, discipline, packets, prop::sample::select(vec![1u64, 1000, 250_000, 1_000_000]))
        .prop_map(|(rate_bps, delay_ns, limit, discipline, gaps, unit)| {
            let mut at = 0;
            let packets = gaps
                .into_iter()
                .map(|(gap, ip_bytes)| {
                    at += gap * unit;
                    (at, ip_bytes)
                })
                .collect();
            let limit = if discipline.is_some() { Limit::Packets(3) } else { limit };
            Setting { rate_bps, delay_ns, limit, discipline, packets }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_begins_and_ends_when_it_must(setting in setting()) {
        check(&setting);
    }
}

#[test]
fn a_queue_matches_a_calculation_by_hand() {
    // 1000 bytes on the wire at 8 Mbit/s: 1 ms each. Two may wait. At 0 one starts, two wait, two are dropped. At 1 ms
    // the second starts and has left the queue, so a sixth fits and a seventh does not.
    let packets = vec![(0, 998), (0, 998), (0, 998), (0, 998), (0, 998), (1_000_000, 998), (1_000_000, 998)];
    let limit = Limit::Packets(2);
    let setting = Setting { rate_bps: 8_000_000, delay_ns: 5, limit, discipline: None, packets };
    let (network, world) = simulate(&setting, None, None);
    assert_eq!(world.received_of(0), [1_000_005, 2_000_005, 3_000_005, 4_000_005]);
    assert_eq!(network.observer.drops()[&DropReason::QueueFull], 3);
}

#[test]
fn a_continued_busy_period_carries_its_fraction_over() {
    // 30 bytes at 7 Mbit/s: 34 285.714 ns. The second packet arrives when the first ends, and the others have to wait.
    let packets = (0..4u64).map(|n| (n * 34_285, 28)).collect();
    let setting = Setting { rate_bps: 7_000_000, delay_ns: 0, limit: Limit::Unlimited, discipline: None, packets };
    let (_, world) = simulate(&setting, None, None);
    // n x 240 bits / 7e6 bit/s: 34 285.7, 68 571.4, 102 857.1, 137 142.9.
    assert_eq!(world.received_of(0), [34_285, 68_571, 102_857, 137_142]);
}

fn steady(count: u64) -> Setting {
    let packets = (0..count).map(|n| (n * 1_000_000, 998)).collect();
    Setting { rate_bps: 8_000_000, delay_ns: 7, limit: Limit::Packets(5), discipline: None, packets }
}

#[test]
fn losses_occur_at_the_far_end_and_are_not_queue_drops() {
    let loss = LossModel::Periodic { every: 10, next: 3 };
    let (network, world) = simulate(&steady(30), None, Some(loss));
    let lost: Vec<Record> =
        network.observer.records.iter().filter(|r| matches!(r, Record::Dropped(..))).copied().collect();
    // Transmission of packets 3, 13 and 23 ends at 3, 13 and 23 ms.
    let expected = [3u64, 13, 23].map(|ms| {
        let at = Instant::from_nanos(ms * 1_000_000 + 7);
        Record::Dropped(at, FlowId(0), 998, Some(LinkId(0)), DropReason::Loss)
    });
    assert_eq!(lost, expected);
    assert_eq!((world.received.len(), network.link_counters(LinkId(0)).losses), (27, 3));
    network.observer.check_conservation(&network.remaining_packets());

    let stream = RandomStream::new(1, "link", "loss");
    let (_, world) = simulate(&steady(10_000), None, Some(LossModel::Bernoulli { probability: 0.1, stream }));
    // Binomial(10 000, 0.9): mean 9000, standard deviation 30; the bounds are four standard deviations.
    assert!((8880..=9120).contains(&world.received.len()), "{}", world.received.len());
}

#[test]
fn injected_faults_have_their_effect() {
    for discipline in [None, Some(10)] {
        let setting = Setting { discipline, ..steady(100) };
        // One percent too fast: 1000 bytes at 8.08 Mbit/s in 990 099 ns.
        let (network, _) = simulate(&setting, Some(Fault::FastLink(LinkId(0))), None);
        assert!(network.observer.transmissions().all(|t| (t.5 - t.4).as_nanos() == 990_099));
        // Every seventh of a hundred packets is dropped: 14, without a report.
        let fault = Fault::SilentDrop { link: LinkId(0), every: 7 };
        let (network, world) = simulate(&setting, Some(fault), None);
        assert_eq!(world.received.len(), 86);
        assert!(network.observer.drops().is_empty());
        assert_eq!(network.arena.live_packets().count(), 0);
    }
}
