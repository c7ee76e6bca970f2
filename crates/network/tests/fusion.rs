//! Chains computed at once give the same records as hop-by-hop simulation: per link in its order, per flow in
//! its order, and in the state at the end.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Recorder, Send, World};
use fullpipe_network::{
    Blackhole, Corruption, DeliveryTrace, Droplist, Duplication, ErrorRate, Fifo, FrameFilter, GilbertElliott,
    Impairments, Jitter, JitterDistribution, Limit, LinkProfile, LinkSchedule, LinkSpecification, LossModel, Network,
    QueueDiscipline, Reordering, ScheduleStep,
};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use proptest::prelude::*;

/// Properties of one link (of either direction).
#[derive(Clone, Debug)]
struct Properties {
    rate_bps: u64,
    delay_ns: u64,
    mtu_bytes: u32,
    queue: Limit,
    loss: f64,
    discipline: bool,
    observed: bool,
    course: LinkProfile,
    impairments: Impairments,
}

/// A tree of routers with hosts: a chain if there are two hosts, a dumbbell or a larger tree if there are several.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    /// The router to which router n + 1 is connected (modulo n + 1).
    parents: Vec<usize>,
    /// The router to which host n is connected (modulo their number).
    hosts: Vec<usize>,
    /// One entry for each link of the tree.
    links: Vec<Properties>,
    /// From, to (modulo the number of hosts), bytes, gap before it.
    packets: Vec<(usize, usize, u32, u64)>,
    echo_bytes: Option<u32>,
    /// Maximum processing jitter of hosts.
    processing_ns: Option<u64>,
    end_ns: u64,
}

fn simulate(plan: &Plan, fuse: bool) -> (Network<Recorder>, World) {
    let mut network = Network::new(Recorder::default());
    network.set_chaining(fuse);
    let routers: Vec<NodeId> = (0..=plan.parents.len()).map(|_| network.add_node(true)).collect();
    let hosts: Vec<NodeId> = plan.hosts.iter().map(|_| network.add_node(false)).collect();
    let trunks = plan.parents.iter().enumerate().map(|(n, parent)| (routers[n + 1], routers[parent % (n + 1)]));
    let access = plan.hosts.iter().zip(&hosts).map(|(router, host)| (*host, routers[router % routers.len()]));
    for (number, (a, b)) in trunks.chain(access).enumerate() {
        let properties = &plan.links[number % plan.links.len()];
        for (from, to) in [(a, b), (b, a)] {
            let stream = RandomStream::new(plan.seed, &format!("{from}-{to}"), "loss");
            let link = network.add_link(LinkSpecification {
                from,
                to,
                rate: Rate::from_bits_per_second(properties.rate_bps),
                delay: Duration::from_nanos(properties.delay_ns),
                mtu_bytes: properties.mtu_bytes,
                framing_bytes: 2,
                queue: properties.queue,
                discipline: properties
                    .discipline
                    .then(|| Box::new(Fifo::new(Limit::Packets(3))) as Box<dyn QueueDiscipline>),
                loss: (properties.loss > 0.0)
                    .then(|| LossModel::Bernoulli { probability: properties.loss, stream: stream.clone() }),
                course: properties.course.clone(),
                impairments: properties.impairments.build(plan.seed, &format!("{from}-{to}")).1,
            });
            if properties.observed {
                network.observe_link(link);
            }
        }
    }
    let mut at = 0;
    let script = plan.packets.iter().enumerate().map(|(number, &(from, to, ip_bytes, gap_ns))| {
        at += gap_ns;
        let (from, to) = (from % hosts.len(), to % hosts.len());
        let to = if from == to { (to + 1) % hosts.len() } else { to };
        let (from, to) = (hosts[from], hosts[to]);
        Send { at: Instant::from_nanos(at), flow: FlowId(2 * number as u32), from, to, ip_bytes, tcp: number % 3 == 0 }
    });
    let mut world = World::new(script.collect());
    world.echo_bytes = plan.echo_bytes;
    world.declare(&mut network);
    network.finalize();
    for (limit, host) in plan.processing_ns.into_iter().flat_map(|limit| hosts.iter().map(move |host| (limit, host))) {
        let stream = RandomStream::new(plan.seed, &format!("{host}"), "processing");
        network.set_processing_jitter(*host, Duration::from_nanos(limit), stream);
    }
    let end = Instant::from_nanos(plan.end_ns);
    network.run(&mut world, end, end);
    (network, world)
}

fn course() -> impl Strategy<Value = LinkProfile> {
    let rate = prop::option::of(prop_oneof![Just(0u64), 1_000_000u64..100_000_000]);
    let delay = prop::option::of(0u64..3_000_000);
    let steps = (prop::collection::vec((1u64..2_000_000, rate, delay), 1..5), prop::option::of(1u64..3_000_000));
    let steps = steps.prop_map(|(steps, rest_ns)| {
        let mut at = 0;
        let step = |(gap, rate, delay): (u64, Option<u64>, Option<u64>)| {
            at += gap;
            let rate = rate.map(Rate::from_bits_per_second);
            ScheduleStep { at: Duration::from_nanos(at), rate, delay: delay.map(Duration::from_nanos) }
        };
        let steps: Vec<ScheduleStep> = steps.into_iter().map(step).collect();
        LinkProfile::Steps(LinkSchedule::new(steps, rest_ns.map(|rest| Duration::from_nanos(at + rest))).unwrap())
    });
    let trace = prop::collection::vec(0u64..4, 1..6).prop_map(|gaps| {
        let mut at = 0;
        let line = |gap: u64| {
            at += gap;
            format!("{at}\n")
        };
        let lines: String = gaps.into_iter().map(line).collect();
        LinkProfile::Trace(DeliveryTrace::parse(&format!("{lines}{}\n", at + 1)).unwrap())
    });
    prop_oneof![3 => Just(LinkProfile::Constant), 1 => steps, 1 => trace]
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let some = |probability| prop::bool::weighted(probability);
    let nanoseconds = Duration::from_nanos;
    let jitter = prop::option::weighted(0.3, (0u8..3, 0u64..2_000_000, any::<bool>())).prop_map(move |jitter| {
        let (kind, ns, in_order) = jitter?;
        let distribution = match kind {
            0 => JitterDistribution::Uniform { max: nanoseconds(ns) },
            1 => JitterDistribution::Normal { mean: nanoseconds(ns), deviation: nanoseconds(ns / 2) },
            _ => JitterDistribution::Exponential { mean: nanoseconds(ns) },
        };
        Some(Jitter { distribution, in_order })
    });
    let reordering =
        prop::option::weighted(0.2, (any::<bool>(), 0u64..2_000_000, 0u64..4)).prop_map(move |reordering| {
            let (late, ns, gap) = reordering?;
            let extra = nanoseconds(ns);
            Some(match late {
                true => Reordering::Late { probability: 0.3, extra },
                false => Reordering::Early { probability: 0.5, gap, extra },
            })
        });
    let corruption = prop::option::weighted(0.2, any::<bool>())
        .prop_map(|delivered| Some(Corruption { errors: ErrorRate::PerBit(2e-5), delivered: delivered? }));
    (some(0.2), some(0.2), some(0.2), corruption, some(0.2), jitter, reordering).prop_map(
        move |(bursts, listed, hole, corruption, copies, jitter, reordering)| {
            let model = GilbertElliott { good_to_bad: 0.1, bad_to_good: 0.4, loss_good: 0.01, loss_bad: 0.7 };
            let droplist = Droplist { data_only: hole, frames: FrameFilter::All, numbers: vec![5, 2, 9] };
            let hole_until_3_ms =
                Blackhole { from: nanoseconds(1_000_000), until: nanoseconds(3_000_000), ..Blackhole::default() };
            let none = Impairments::default();
            let impairments = if bursts { none.with(model) } else { none };
            let impairments = if listed { impairments.with(droplist) } else { impairments };
            let impairments = if hole { impairments.with(hole_until_3_ms) } else { impairments };
            let impairments = if copies { impairments.with(Duplication { probability: 0.3 }) } else { impairments };
            let impairments = corruption.into_iter().fold(impairments, Impairments::with);
            let impairments = jitter.into_iter().fold(impairments, Impairments::with);
            reordering.into_iter().fold(impairments, Impairments::with)
        },
    )
}

fn plan() -> impl Strategy<Value = Plan> {
    let queue =
        prop_oneof![(1u64..6).prop_map(Limit::Packets), (1500u64..9000).prop_map(Limit::Bytes), Just(Limit::Unlimited)];
    let rate = prop_oneof![Just(8_000_000u64), Just(1_000_000_000), 1_000_000u64..2_000_000_000];
    let delay = prop_oneof![Just(0u64), Just(1_000_000), 0u64..3_000_000];
    let mtu = prop_oneof![4 => Just(1500u32), 1 => 100u32..1500];
    let loss = prop_oneof![3 => Just(0.0), 1 => Just(0.05), 1 => Just(0.3)];
    let often = prop::bool::weighted(0.15);
    let properties = (rate, delay, mtu, queue, loss, often, often, course(), impairments()).prop_map(
        |(rate_bps, delay_ns, mtu_bytes, queue, loss, discipline, observed, course, impairments)| Properties {
            rate_bps,
            delay_ns,
            mtu_bytes,
            queue,
            loss,
            discipline,
            observed,
            course,
            impairments,
        },
    );
    let gap = prop_oneof![Just(0u64), Just(1_000_000), 0u64..2_000_000];
    let packet = (any::<usize>(), any::<usize>(), prop_oneof![Just(998u32), Just(1500), 41u32..3000], gap);
    (
        any::<u64>(),
        prop::collection::vec(any::<usize>(), 0..5),
        prop::collection::vec(any::<usize>(), 2..5),
        prop::collection::vec(properties, 1..6),
        prop::collection::vec(packet, 1..80),
        prop::option::of(Just(48u32)),
        prop::option::weighted(0.4, prop_oneof![Just(0u64), 0u64..3_000_000]),
        prop_oneof![Just(1u64 << 62), 0u64..60_000_000],
    )
        .prop_map(|(seed, parents, hosts, links, packets, echo_bytes, processing_ns, end_ns)| Plan {
            seed,
            parents,
            hosts,
            links,
            packets,
            echo_bytes,
            processing_ns,
            end_ns,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_are_the_same_with_and_without(plan in plan()) {
        let (fused, fused_world) = simulate(&plan, true);
        let (plain, plain_world) = simulate(&plan, false);
        let (mut expected, mut found) = (plain.observer.histories(), fused.observer.histories());
        for (subject, records) in &expected {
            prop_assert_eq!(found.get(subject), Some(records), "{}", subject);
        }
        prop_assert_eq!(found.len(), expected.len());
        expected.clear();
        found.clear();
        prop_assert_eq!(fused_world.received, plain_world.received);
        prop_assert!(fused.events() <= plain.events());
        let (fused_left, plain_left) = (fused.remaining_packets(), plain.remaining_packets());
        fused.observer.check_conservation(&fused_left);
        plain.observer.check_conservation(&plain_left);
        prop_assert_eq!(fused_left.packets_per_flow, plain_left.packets_per_flow);
        prop_assert_eq!(fused_left.queued_per_link, plain_left.queued_per_link);
        for link in 0..2 * (plan.parents.len() + plan.hosts.len()) as u32 {
            prop_assert_eq!(fused.link_counters(LinkId(link)), plain.link_counters(LinkId(link)));
        }
    }
}

fn chain(routers: usize) -> Plan {
    Plan {
        seed: 1,
        parents: (0..routers - 1).collect(),
        hosts: vec![0, routers - 1],
        links: vec![Properties {
            rate_bps: 8_000_000,
            delay_ns: 1_000_000,
            mtu_bytes: 1500,
            queue: Limit::Unlimited,
            loss: 0.0,
            discipline: false,
            observed: false,
            course: LinkProfile::Constant,
            impairments: Impairments::default(),
        }],
        packets: vec![(0, 1, 998, 0); 10],
        echo_bytes: None,
        processing_ns: None,
        end_ns: 1 << 62,
    }
}

#[test]
fn a_chain_costs_one_event_per_packet_if_computed_at_once_and_one_per_hop_otherwise() {
    // Four routers, five links, ten packets, ten events of the script.
    let plan = chain(4);
    assert_eq!(simulate(&plan, true).0.events(), 10 + 10);
    assert_eq!(simulate(&plan, false).0.events(), 10 + 50);
    // The last packet: nine before it on the first link, then 1 ms of transmission and 1 ms of propagation on each of five links.
    let times = simulate(&plan, true).1.received.into_iter().map(|(_, _, at)| at.as_nanos()).max();
    assert_eq!(times, Some(19_000_000));
}

#[test]
fn processing_jitter_costs_no_event_if_computed_at_once() {
    // As above; hop by hop each packet also waits for an event of its host.
    let plan = Plan { processing_ns: Some(1_000_000), ..chain(4) };
    assert_eq!(simulate(&plan, true).0.events(), 10 + 10);
    assert_eq!(simulate(&plan, false).0.events(), 10 + 10 + 50);
    let (observed, _) =
        simulate(&Plan { links: vec![Properties { observed: true, ..plan.links[0].clone() }], ..plan }, true);
    assert_eq!(observed.events(), 10 + 10 + 50);
}

#[test]
fn an_observed_link_is_not_computed_ahead() {
    let mut plan = chain(2);
    plan.links[0].observed = true;
    let (mut network, _) = simulate(&Plan { end_ns: 0, ..plan.clone() }, true);
    // At 0 all ten packets are at the first link, one in transmission.
    let first = network.path(NodeId(2), NodeId(3));
    let fullpipe_network::NextHop::Link(first) = first[0] else { panic!("{first:?}") };
    assert_eq!(network.link_queue(first), (9, 9000));
    // Observed links report their current state: 1.5 ms later the second packet is in transmission, and eight wait.
    let (mut network, _) = simulate(&Plan { end_ns: 1_500_000, ..plan }, true);
    assert_eq!(network.link_queue(first), (8, 8000));
}
