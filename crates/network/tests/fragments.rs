//! Fragments: sizes and offsets computed by hand, and conservation under loss and overflow.

#![allow(missing_docs, reason = "a test")]

use crate::common::segment::{add, resolved, study};
use crate::common::{Record, Recorder, Send, World, constant_rate};
use fullpipe_network::{Fifo, Limit, LinkSpecification, LossModel, Network, Packet, PacketContent, QueueDiscipline};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use fullpipe_wire::{IpVersion, TcpHeader};
use proptest::prelude::*;

const NEVER: Instant = Instant::NEVER;

fn link(from: NodeId, to: NodeId, mtu_bytes: u32) -> LinkSpecification {
    LinkSpecification {
        from,
        to,
        rate: Rate::from_megabits_per_second(10),
        delay: Duration::from_millis(20),
        mtu_bytes,
        framing_bytes: 0,
        queue: Limit::Unlimited,
        discipline: None,
        loss: None,
        course: fullpipe_network::LinkProfile::Constant,
        impairments: None,
    }
}

/// A host, routers, and a host, with one link for each MTU.
fn chain(mtus: &[u32]) -> (Network<Recorder>, NodeId, NodeId) {
    let mut network = Network::new(Recorder::default());
    let nodes: Vec<NodeId> = (0..=mtus.len()).map(|n| network.add_node(n > 0 && n < mtus.len())).collect();
    for (number, mtu_bytes) in mtus.iter().enumerate() {
        network.add_link(link(nodes[number], nodes[number + 1], *mtu_bytes));
    }
    (network, nodes[0], nodes[mtus.len()])
}

fn one(from: NodeId, to: NodeId, ip_bytes: u32, tcp: bool) -> Vec<Send> {
    vec![Send { at: Instant::ZERO, flow: FlowId(0), from, to, ip_bytes, tcp }]
}

fn run(network: &mut Network<Recorder>, world: &mut World) {
    world.declare(network);
    network.finalize();
    network.run(world, NEVER, NEVER);
    assert_eq!(network.arena.live_packets().count(), 0, "no packet may be left");
    network.observer.check_conservation(&network.remaining_packets());
}

fn sizes_on(network: &Network<Recorder>, link: u32) -> Vec<u32> {
    network.observer.transmissions().filter(|t| t.0 == LinkId(link)).map(|t| t.2).collect()
}

#[test]
fn fragment_sizes_match_hand_computed_values() {
    // MTU 1500 leaves 1480 = 185 x 8 bytes of payload after the header.
    for (ip_bytes, mtu_bytes, expected) in [
        (1500, 1500, vec![1500]),
        (1501, 1500, vec![1500, 21]),
        (1508, 1500, vec![1500, 28]),
        (1528, 1500, vec![1500, 48]),
        (2980, 1500, vec![1500, 1500]),
        // MTU 1006 leaves 986, of which 984 is a multiple of eight; the last fragment may use all 986.
        (20 + 984 + 986, 1006, vec![1004, 1006]),
        (20 + 984 + 987, 1006, vec![1004, 1004, 23]),
        (100, 28, vec![28; 10]),
    ] {
        let (mut network, a, b) = chain(&[mtu_bytes]);
        let mut world = World::new(one(a, b, ip_bytes, false));
        run(&mut network, &mut world);
        assert_eq!(sizes_on(&network, 0), expected, "{ip_bytes} at {mtu_bytes}");
        // The packet is complete when the last bit of the last fragment arrives: 0.8 us per byte and 20 ms.
        let bytes: u64 = expected.iter().map(|bytes| u64::from(*bytes)).sum();
        assert_eq!(world.received_of(0), [bytes * 800 + 20_000_000]);
    }
}

/// Sends one IPv6 packet of `ip_bytes`, including the header, and runs to the end.
fn run_v6(mtus: &[u32], ip_bytes: u32, tcp: bool) -> (Network<Recorder>, World) {
    let (mut network, a, b) = chain(mtus);
    network.declare_conversation(a, b);
    network.finalize();
    let content = match tcp {
        true => PacketContent::Tcp(TcpHeader { payload_bytes: (ip_bytes - 60) as u16, ..TcpHeader::default() }),
        false => PacketContent::Udp { payload_bytes: ip_bytes - 48 },
    };
    network.send(a, &Packet { version: IpVersion::V6, ..Packet::new(FlowId(0), b, ip_bytes, content) });
    let mut world = World::default();
    network.run(&mut world, NEVER, NEVER);
    assert_eq!(network.arena.live_packets().count(), 0, "no packet may be left");
    network.observer.check_conservation(&network.remaining_packets());
    (network, world)
}

/// RFC 8200 section 4.5: header of 40 bytes and extension of 8 before each fragment; multiples of eight except the last.
#[test]
fn ipv6_fragment_sizes_match_hand_computed_values() {
    for (ip_bytes, mtu_bytes, expected) in [
        (1500, 1500, vec![1500]),
        // 1461 bytes; MTU 1500 leaves 1452 of them, of which 1448 is a multiple of eight.
        (1501, 1500, vec![1496, 61]),
        (40 + 1448 + 1452, 1500, vec![1496, 1500]),
        (40 + 1448 + 1453, 1500, vec![1496, 1496, 53]),
        // 4008 = 1448 + 1448 + 1112.
        (4048, 1500, vec![1496, 1496, 1160]),
        // The minimum MTU of IPv6 leaves 1232, 154 units of eight bytes.
        (40 + 2464, 1280, vec![1280, 1280]),
        (40 + 17, 56, vec![56, 56, 49]),
    ] {
        let (network, world) = run_v6(&[mtu_bytes], ip_bytes, false);
        assert_eq!(sizes_on(&network, 0), expected, "{ip_bytes} at {mtu_bytes}");
        let bytes: u64 = expected.iter().map(|bytes| u64::from(*bytes)).sum();
        assert_eq!(world.received_of(0), [bytes * 800 + 20_000_000]);
        let delivered =
            network.observer.count(|record| matches!(record, Record::Delivered(_, _, b, _) if *b == ip_bytes));
        assert_eq!(delivered, 1);
    }
}

#[test]
fn routers_do_not_fragment_ipv6_packets() {
    // A whole packet, and fragments of 1496, 1496 and 1160 bytes of which the last would fit: one packet is dropped.
    for (ip_bytes, second) in [(1500, vec![]), (4048, vec![1160])] {
        let (network, world) = run_v6(&[1500, 1280, 1500], ip_bytes, false);
        assert!(world.received.is_empty());
        assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::PacketTooBig, 1)]);
        assert_eq!(sizes_on(&network, 1), second);
    }
    // The same packet over IPv4 arrives.
    let (mut network, a, b) = chain(&[1500, 1280, 1500]);
    let mut world = World::new(one(a, b, 1500, false));
    run(&mut network, &mut world);
    assert_eq!(world.received.len(), 1);
}

#[test]
fn tcp_over_ipv6_is_not_fragmented_and_eight_bytes_must_fit() {
    for (mtu_bytes, tcp) in [(1500, true), (55, false), (20, false)] {
        let (network, world) = run_v6(&[mtu_bytes], 1501, tcp);
        assert!(world.received.is_empty());
        assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::PacketTooBig, 1)]);
    }
}

#[test]
fn a_fragment_is_fragmented_again_with_offsets_into_the_whole_packet() {
    // 4000 - 20 = 3980 bytes. MTU 1500: 1480 + 1480 + 1020. MTU 620 leaves 600: 1480 = 600 + 600 + 280, 1020 = 600 + 420.
    let (mut network, a, b) = chain(&[1500, 620, 1500]);
    let mut world = World::new(one(a, b, 4000, false));
    world.declare(&mut network);
    network.finalize();
    // 4060 bytes at 10 Mbit/s take 3.2 ms: at 50 ms all fragments are on the last link, from which they arrive from 60 ms on.
    let stop = Instant::from_nanos(50_000_000);
    network.run(&mut world, stop, stop);
    let mut pieces: Vec<(u32, u32, bool)> = network
        .arena
        .live_packets()
        .filter_map(|packet| match packet.content {
            PacketContent::Fragment { offset_bytes, last, .. } => Some((offset_bytes, packet.ip_bytes - 20, last)),
            _ => None,
        })
        .collect();
    pieces.sort();
    let all = [
        (0, 600, false),
        (600, 600, false),
        (1200, 280, false),
        (1480, 600, false),
        (2080, 600, false),
        (2680, 280, false),
        (2960, 600, false),
        (3560, 420, true),
    ];
    assert_eq!(pieces, all);
    assert_eq!(network.remaining_packets().packets_per_flow[&FlowId(0)], (1, 4000));
    network.run(&mut world, NEVER, NEVER);
    assert_eq!(sizes_on(&network, 2), [620, 620, 300, 620, 620, 300, 620, 440]);
    assert_eq!(world.received.len(), 1);
    assert_eq!(network.arena.live_packets().count(), 0);
    // Reported as one packet of 4000 bytes.
    assert_eq!(
        network.observer.count(|r| matches!(r, Record::Delivered(_, _, 4000, sent) if *sent == Instant::ZERO)),
        1
    );
}

#[test]
fn tcp_segments_and_impossible_mtus_cause_drops_as_too_big() {
    // TCP sets "don't fragment"; and MTU 27 has no room for a header and eight bytes.
    for (tcp, ip_bytes, mtus, link) in
        [(true, 1501, [1500, 1500], 0), (true, 1500, [1500, 1499], 1), (false, 100, [1500, 27], 1)]
    {
        let (mut network, a, b) = chain(&mtus);
        let mut world = World::new(one(a, b, ip_bytes, tcp));
        run(&mut network, &mut world);
        assert!(world.received.is_empty());
        assert_eq!(
            network.observer.count(
                |r| matches!(r, Record::Dropped(_, _, bytes, Some(at), DropReason::PacketTooBig) if *bytes == ip_bytes && *at == LinkId(link))
            ),
            1
        );
    }
}

#[test]
fn one_lost_fragment_ends_the_packet_once_with_its_reason() {
    // Droplist: every second frame with payload, from the first on: the first and third of the fragments of 1480 + 1480 + 40 bytes.
    let (mut network, a, b) = chain(&[1500, 1500]);
    let nodes = [a, b];
    let mut lossy = link(nodes[0], nodes[1], 1500);
    lossy.loss = Some(LossModel::Periodic { every: 2, next: 1 });
    let direct = network.add_link(lossy);
    let mut world = World::new(one(a, b, 3020, false));
    run(&mut network, &mut world);
    // 1500 bytes at 10 Mbit/s take 1.2 ms; lost at the far end, 20 ms later.
    let drops: Vec<Record> =
        network.observer.records.iter().filter(|r| matches!(r, Record::Dropped(..))).copied().collect();
    let expected = Record::Dropped(Instant::from_nanos(21_200_000), FlowId(0), 3020, Some(direct), DropReason::Loss);
    assert_eq!(drops, [expected]);
    assert_eq!(sizes_on(&network, direct.0), [1500, 1500, 60], "the other fragments are still forwarded");
}

#[test]
fn fragments_wait_for_an_address_one_by_one() {
    // Three may wait: both of the first packet, the first of the second. The second packet ends with its second fragment.
    let mut network = Network::new(Recorder::default());
    let nodes = [network.add_node(false), network.add_node(false)];
    add(&mut network, &study(&nodes, &[7]), 1);
    let mut world = World::new(constant_rate(nodes[0], nodes[1], 1508, Duration::from_micros(2), 3));
    run(&mut network, &mut world);
    assert_eq!(world.received.len(), 1);
    assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::AddressResolution, 2)]);
    let data: Vec<u32> = network.observer.transmissions().filter(|t| t.1 == FlowId(0)).map(|t| t.2).collect();
    // A fair queue serves the flows of both fragments; three frames in all, 28 + 18 padded to 64.
    assert_eq!(data.iter().filter(|bytes| **bytes == 1518).count(), 2);
    assert_eq!(data.iter().filter(|bytes| **bytes == 64).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sizes over any MTUs with loss and short queues: every frame fits, packets are conserved, no packet leaks, and a
    /// packet arrives whole or not at all.
    #[test]
    fn fragments_are_conserved(
        seed in any::<u64>(),
        mtus in prop::collection::vec(60u32..2000, 1..4),
        sizes in prop::collection::vec(29u32..9000, 1..60),
        loss in prop::sample::select(vec![0.0, 0.02, 0.2]),
        queue in prop::sample::select(vec![Limit::Packets(4), Limit::Bytes(5000), Limit::Unlimited]),
        with_discipline in any::<bool>(),
        interval_us in 1u64..3000,
        fuse in any::<bool>(),
        shared in any::<bool>(),
        end_ms in prop::option::of(1u64..200),
    ) {
        let mut network = Network::new(Recorder::default());
        network.set_chaining(fuse);
        let hops = mtus.len();
        let mut nodes: Vec<NodeId> = (0..=hops).map(|n| network.add_node(n > 0 && (shared || n < hops))).collect();
        for (number, mtu_bytes) in mtus.iter().enumerate() {
            let mut specification = link(nodes[number], nodes[number + 1], *mtu_bytes);
            specification.queue = queue;
            if loss > 0.0 {
                let stream = RandomStream::new(seed, &format!("link-{number}"), "loss");
                specification.loss = Some(LossModel::Bernoulli { probability: loss, stream });
            }
            if with_discipline {
                specification.discipline = Some(Box::new(Fifo::new(Limit::Packets(3))) as Box<dyn QueueDiscipline>);
            }
            network.add_link(specification);
        }
        if shared {
            nodes.push(network.add_node(false));
            let mut specification = resolved(&nodes[hops..]);
            specification.mtu_bytes = 577;
            add(&mut network, &specification, seed);
        }
        let (from, to) = (nodes[0], nodes[nodes.len() - 1]);
        let script = sizes.iter().enumerate().map(|(n, ip_bytes)| Send {
            at: Instant::from_nanos(n as u64 * interval_us * 1000),
            flow: FlowId(2 * n as u32),
            from,
            to,
            ip_bytes: *ip_bytes,
            tcp: false,
        });
        let mut world = World::new(script.collect());
        world.declare(&mut network);
        network.finalize();
        let end = end_ms.map_or(NEVER, |ms| Instant::ZERO + Duration::from_millis(ms));
        network.run(&mut world, end, end);
        let remaining = network.remaining_packets();
        network.observer.check_conservation(&remaining);
        for t in network.observer.transmissions() {
            let largest = mtus.get(t.0.index()).copied().unwrap_or(577 + 18);
            prop_assert!(t.2 <= largest);
        }
        // Each flow is one packet and has one end.
        for n in 0..sizes.len() as u32 {
            let flow = FlowId(2 * n);
            let ends = network.observer.count(
                |r| matches!(r, Record::Delivered(_, f, ..) | Record::Dropped(_, f, ..) if *f == flow)
            );
            prop_assert!(ends <= 1);
        }
        if end_ms.is_none() {
            prop_assert_eq!(network.arena.live_packets().count(), 0);
            let lossless = loss == 0.0 && queue == Limit::Unlimited && !with_discipline;
            if lossless {
                prop_assert_eq!(world.received.len(), sizes.len());
            }
        }
    }
}
