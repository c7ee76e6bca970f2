//! Shared Ethernet compared with values computed by hand from the rules in `src/ethernet.rs` and `src/arp.rs`.

#![allow(missing_docs, reason = "a test")]

use crate::common::segment::{add, resolved, study};
use crate::common::{Record, Recorder, Send, World, constant_rate};
use fullpipe_network::discipline::fifo::FifoSpecification;
use fullpipe_network::{EthernetSpecification, Fault, Limit, LinkSpecification, Network};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use std::sync::Arc;

const NEVER: Instant = Instant::NEVER;

fn send(at_ns: u64, flow: u32, from: NodeId, to: NodeId, ip_bytes: u32) -> Send {
    Send { at: Instant::from_nanos(at_ns), flow: FlowId(flow), from, to, ip_bytes, tcp: false }
}

/// Returns a network with `count` hosts, numbered from 0.
fn hosts(count: usize) -> (Network<Recorder>, Vec<NodeId>) {
    let mut network = Network::new(Recorder::default());
    let nodes = (0..count).map(|_| network.add_node(false)).collect();
    (network, nodes)
}

/// Runs to the end; no packet may be left.
fn run(network: &mut Network<Recorder>, world: &mut World) {
    world.declare(network);
    network.finalize();
    network.run(world, NEVER, NEVER);
    assert_eq!(network.arena.live_packets().count(), 0, "no packet may be left");
    network.observer.check_conservation(&network.remaining_packets());
}

/// Returns the start of each frame, by flow.
fn starts(network: &Network<Recorder>) -> Vec<(u32, u64)> {
    network.observer.transmissions().map(|t| (t.1.0, t.4.as_nanos())).collect()
}

#[test]
fn the_first_packets_of_the_published_run_arrive_at_their_nanosecond() {
    // A sends 56 bytes at 0; B answers with 56 bytes upon reception. Delays of requests: 7 ms at A, 2 ms at B.
    //   7 000 000  A's request, 64 bytes = 512 ns, received 2 us later at 7 002 512
    //              B replies, medium occupied: one slot: 7 003 512 to 7 004 024, received 7 006 024
    //              A's packet of 74 bytes: one slot: 7 007 024 to 7 007 616, received 7 009 616.
    //   B's answer waits for B's own request, because B learned no address from A's request: 2 ms later, 9 009 616, by the same steps
    //   + 512 + 2000 + 1000 + 512 + 2000 + 1000 + 592 + 2000 = 9616: 9 019 232.
    let (mut network, nodes) = hosts(2);
    add(&mut network, &study(&nodes, &[7, 2]), 1);
    let mut world = World::new(vec![send(0, 0, nodes[0], nodes[1], 56)]);
    world.echo_bytes = Some(56);
    run(&mut network, &mut world);
    assert_eq!(world.received_of(0), [7_009_616]);
    assert_eq!(world.received_of(1), [9_019_232]);
}

#[test]
fn a_single_sender_needs_14_74_us_per_packet() {
    // Service time of 1500 bytes = 1518 on the medium: 12.144 us, gap 0.096, first back-off 1 us (1.096 us after the end:
    // still occupied), second 1 or 2 us, equally likely: at 2.096 or 3.096 us the medium is idle. So 14.24 or 15.24 us, mean
    // 14.74, standard deviation 0.5. The address is known from 7.006024 ms on (see above): packets 0, 1, 2 waited, packets from number
    // 3504 (7.008 ms) on arrive, 3 to 3503 are dropped.
    let (mut network, nodes) = hosts(2);
    add(&mut network, &study(&nodes, &[7]), 5321);
    let mut world = World::new(constant_rate(nodes[0], nodes[1], 1500, Duration::from_micros(2), 10_000));
    run(&mut network, &mut world);
    assert_eq!(world.received.len(), 3 + 6496);
    assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::AddressResolution, 3501)]);
    let starts: Vec<u64> = network.observer.transmissions().filter(|t| t.2 == 1518).map(|t| t.4.as_nanos()).collect();
    let mut long = 0;
    for pair in starts.windows(2) {
        match pair[1] - pair[0] {
            14_240 => (),
            15_240 => long += 1,
            other => panic!("service of {other} ns"),
        }
    }
    // Binomial(6498, 1/2): mean 3249, standard deviation 40.3; the bounds are four standard deviations.
    assert!((3088..=3410).contains(&long), "{long}");
}

#[test]
fn when_the_queues_overflow_the_medium_limits_the_throughput() {
    // 50 000 packets of 14.74 us, one every 2 us: from 7.0 ms to the last at 100 ms the medium transmits 93.0 / 0.01474,
    // and 10 340 wait then, which gives 16 649 (standard deviation of the first number: 0.5 us x sqrt(6309) / 14.74 us = 2.7;
    // four of them, and one for each end).
    let (mut network, nodes) = hosts(2);
    let mut specification = study(&nodes, &[7]);
    specification.discipline = Some(Arc::new(FifoSpecification { limit: Limit::Packets(10_240) }));
    add(&mut network, &specification, 3);
    let mut world = World::new(constant_rate(nodes[0], nodes[1], 1500, Duration::from_micros(2), 50_000));
    run(&mut network, &mut world);
    let received = world.received.len();
    assert!((16_649 - 13..=16_649 + 13).contains(&received), "{received}");
}

#[test]
fn a_station_that_senses_when_the_medium_becomes_idle_finds_it_idle() {
    // A's 28 bytes are padded to 64: 512 ns, received at 2512. B senses at 1512, waits one slot, and starts at 2512. C's
    // answer to A upon reception at 2512 precedes that and finds the medium occupied: one slot, 3512. The medium is
    // then occupied by B until 2512 + 2512 = 5024, so C backs off again and starts no earlier.
    let (mut network, nodes) = hosts(3);
    add(&mut network, &resolved(&nodes), 1);
    let (a, b, c) = (nodes[0], nodes[1], nodes[2]);
    let mut world = World::new(vec![send(0, 0, a, c, 28), send(1512, 3, b, a, 28)]);
    world.echo_bytes = Some(28);
    run(&mut network, &mut world);
    let starts = starts(&network);
    assert_eq!(starts[..2], [(0, 0), (3, 2512)]);
    assert!(starts[2].0 == 1 && starts[2].1 >= 5024, "{starts:?}");
}

#[test]
fn stations_that_sense_together_transmit_in_the_order_of_their_numbers() {
    // 0's first frame occupies the medium until 2512. All three sense at 500 and back off one slot, sense at 1500 and
    // wait one or two slots. Those that wait one find it still occupied; those that wait two sense together at 3500, and so
    // on. The order of insertion in the calendar has no effect; of two stations that sense together the lower number transmits.
    let outcome = |order: [usize; 3]| {
        let (mut network, nodes) = hosts(3);
        add(&mut network, &resolved(&nodes), 9);
        let mut script: Vec<Send> =
            order.iter().map(|&n| send(500, 2 * n as u32, nodes[n], nodes[(n + 1) % 3], 28)).collect();
        script.push(send(0, 8, nodes[0], nodes[1], 28));
        let mut world = World::new(script);
        run(&mut network, &mut world);
        starts(&network)
    };
    let first = outcome([0, 1, 2]);
    assert_eq!(first.len(), 4);
    for order in [[2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        assert_eq!(outcome(order), first);
    }
    // Without random numbers: two stations with a slot of 3 us both sense at 3500.
    let (mut network, nodes) = hosts(3);
    add(&mut network, &EthernetSpecification { slot: Duration::from_micros(3), ..resolved(&nodes) }, 9);
    let mut world = World::new(vec![
        send(0, 0, nodes[0], nodes[1], 28),
        send(500, 4, nodes[2], nodes[0], 28),
        send(500, 2, nodes[1], nodes[0], 28),
    ]);
    run(&mut network, &mut world);
    assert_eq!(starts(&network)[..2], [(0, 0), (2, 3500)]);
}

#[test]
fn a_frame_is_dropped_after_the_last_retry_and_the_next_one_is_tried() {
    // A's 1518 bytes occupy the medium from 0 to 14 144. B tries at 1000, waits one slot, and tries for the last time at 2000.
    let (mut network, nodes) = hosts(2);
    let specification = EthernetSpecification { max_retries: 1, ..resolved(&nodes) };
    let segment = add(&mut network, &specification, 1);
    let (a, b) = (nodes[0], nodes[1]);
    let mut world = World::new(vec![
        send(0, 0, a, b, 1500),
        send(1000, 2, b, a, 100),
        send(1500, 2, b, a, 101),
        send(14_144, 2, b, a, 102),
    ]);
    run(&mut network, &mut world);
    let drops: Vec<_> = network.observer.records.iter().filter(|r| matches!(r, Record::Dropped(..))).copied().collect();
    let medium = network.ethernet_link(segment);
    let dropped = |at: u64, bytes| {
        Record::Dropped(Instant::from_nanos(at), FlowId(2), bytes, Some(medium), DropReason::Collision)
    };
    // The second frame, tried at 2000, is dropped at 3000. The third arrives at the instant at which the medium
    // becomes idle.
    assert_eq!(drops, [dropped(2000, 100), dropped(3000, 101)]);
    assert_eq!(network.station_counters(segment, 1).collision_drops, 2);
    assert_eq!(network.station_counters(segment, 1).backoffs, 2);
    assert_eq!(world.received_of(2).len(), 1);
}

#[test]
fn full_duplex_stations_do_not_wait_for_each_other() {
    // 1518 bytes: 12 144 ns and a gap of 96: one frame every 12 240 ns, in both directions at once, received 2 us after its end.
    let (mut network, nodes) = hosts(2);
    let segment = add(&mut network, &EthernetSpecification { half_duplex: false, ..resolved(&nodes) }, 1);
    let (a, b) = (nodes[0], nodes[1]);
    let mut script = Vec::new();
    for _ in 0..5 {
        script.push(send(0, 0, a, b, 1500));
        script.push(send(0, 3, b, a, 1500));
    }
    let mut world = World::new(script);
    run(&mut network, &mut world);
    let expected: Vec<u64> = (0..5).map(|n| n * 12_240 + 12_144 + 2_000).collect();
    assert_eq!(world.received_of(0), expected);
    assert_eq!(world.received_of(3), expected);
    // Each station's frames have their own link identity.
    let (of_a, of_b) = (network.station_link(segment, 0), network.station_link(segment, 1));
    assert_eq!((of_a, of_b), (LinkId(0), LinkId(1)));
    assert!(network.observer.transmissions().all(|t| t.0 == if t.1.0 == 0 { of_a } else { of_b }));
    assert_eq!(network.link_counters(of_a).frames, 5);
}

#[test]
fn the_interframe_gap_is_exact_to_the_bit() {
    // 100 bits at 3 Mbit/s: 33 333.3 ns, rounded up. 64 bytes: 512 bits = 170 666.67 ns. Fractions are carried over: frames start
    // at 0, then 170 666 + 33 334, then + 170 667 + 33 334.
    let (mut network, nodes) = hosts(2);
    add(
        &mut network,
        &EthernetSpecification {
            half_duplex: false,
            interframe_gap_bits: 100,
            rate: Rate::from_megabits_per_second(3),
            ..resolved(&nodes)
        },
        1,
    );
    let mut world = World::new(vec![send(0, 0, nodes[0], nodes[1], 28); 3]);
    run(&mut network, &mut world);
    assert_eq!(starts(&network), [(0, 0), (0, 204_000), (0, 408_001)]);
}

#[test]
fn request_delays_are_drawn_from_the_stations_own_stream() {
    for step_ms in [0, 1, 4] {
        let (mut network, nodes) = hosts(3);
        let mut specification = study(&nodes, &[3]);
        specification.arp.request_jitter_step = Duration::from_millis(step_ms);
        add(&mut network, &specification, 77);
        let mut world = World::new(vec![send(0, 2, nodes[1], nodes[2], 100), send(0, 4, nodes[0], nodes[1], 100)]);
        run(&mut network, &mut world);
        // Station 0 has a fixed delay; station 1 draws a time below 10 ms and rounds it down to the step.
        let drawn = RandomStream::new(77, "host-1", "address-resolution").uniform_below(10_000_000);
        let step = (step_ms * 1_000_000).max(1);
        let requests: Vec<u64> = network
            .observer
            .transmissions()
            .filter(|t| t.1 == fullpipe_network::ethernet::ARP_FLOW && t.2 == 64)
            .map(|t| t.3.as_nanos())
            .collect();
        assert!(requests.contains(&(drawn / step * step)), "{requests:?}");
        assert!(requests.contains(&3_000_000), "{requests:?}");
        assert_eq!(requests.len(), 4, "two requests, two replies");
    }
}

#[test]
fn packets_that_waited_for_an_address_leave_in_order() {
    let (mut network, nodes) = hosts(3);
    add(&mut network, &study(&nodes, &[4]), 1);
    let flows = [6, 2, 4];
    let mut world = World::new(flows.map(|flow| send(u64::from(flow), flow, nodes[0], nodes[2], 100)).to_vec());
    world.script.sort_by_key(|send| send.at);
    run(&mut network, &mut world);
    assert_eq!(world.received.iter().map(|(flow, ..)| flow.0).collect::<Vec<_>>(), [2, 4, 6]);
}

#[test]
fn without_a_reply_requests_are_repeated_and_the_packets_dropped() {
    // The device queues accept no frame: requests at 5 ms, 1.005 s and 2.005 s, the end at 3.005 s. Three packets waited, the
    // fourth was refused at once; a fifth, later, starts a new resolution.
    let (mut network, nodes) = hosts(2);
    let mut specification = study(&nodes, &[5]);
    specification.device_queue = Limit::Packets(0);
    specification.discipline = None;
    let segment = add(&mut network, &specification, 1);
    let (a, b) = (nodes[0], nodes[1]);
    let mut script = vec![send(0, 0, a, b, 100); 4];
    script.push(send(10_000_000_000, 0, a, b, 100));
    let mut world = World::new(script);
    run(&mut network, &mut world);
    assert!(world.received.is_empty());
    let times: Vec<u64> = network
        .observer
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Dropped(at, _, 100, None, DropReason::AddressResolution) => Some(at.as_nanos() / 1_000_000),
            _ => None,
        })
        .collect();
    assert_eq!(times, [0, 3005, 3005, 3005, 13_005]);
    assert_eq!(network.observer.count(|r| matches!(r, Record::LinkDropped(_, 64, DropReason::QueueFull))), 6);
    assert_eq!(network.station_counters(segment, 0).resolution_drops, 5);
}

#[test]
fn a_router_on_a_segment_is_resolved_like_any_station() {
    // host 0 -- segment -- router 1 -- link -- host 2. No address is known, requests have no delay: 0 sends a request at 0 (received
    // 2512), the reply is received at 6024, 28 + 18 padded to 64 bytes start one slot later at 7024 and are received at 9536;
    // the link adds 30 bytes at 1 Mbit/s = 240 us and 1 ms.
    let mut network = Network::new(Recorder::default());
    let nodes = [network.add_node(false), network.add_node(true), network.add_node(false)];
    let segment = add(&mut network, &study(&nodes[..2], &[0, 0]), 1);
    for (from, to) in [(1, 2), (2, 1)] {
        network.add_link(LinkSpecification {
            from: nodes[from],
            to: nodes[to],
            rate: Rate::from_megabits_per_second(1),
            delay: Duration::from_millis(1),
            mtu_bytes: 1500,
            framing_bytes: 2,
            queue: Limit::Packets(10),
            discipline: None,
            loss: None,
            course: fullpipe_network::LinkProfile::Constant,
            impairments: None,
        });
    }
    let mut world = World::new(vec![send(0, 0, nodes[0], nodes[2], 28)]);
    world.echo_bytes = Some(28);
    run(&mut network, &mut world);
    assert_eq!(network.ethernet_link(segment), LinkId(2));
    assert_eq!(world.received_of(0), [9_536 + 240_000 + 1_000_000]);
    assert_eq!(world.received_of(1).len(), 1);
    // 2 us and 18 bytes at 8 ns; 1 ms and 2 bytes at 8 us; 8 + 8000 ns per byte.
    let (fixed, per_byte) = network.minimum_delay(nodes[0], nodes[2]);
    assert_eq!((fixed.as_nanos(), per_byte), (2_000 + 144 + 1_000_000 + 16_000, 8_008.0));
}

#[test]
fn faults_can_be_injected_into_a_medium() {
    let (mut network, nodes) = hosts(2);
    let segment = add(&mut network, &resolved(&nodes), 1);
    network.inject_fault(Fault::FastLink(network.ethernet_link(segment)));
    let mut world = World::new(vec![send(0, 0, nodes[0], nodes[1], 1500)]);
    run(&mut network, &mut world);
    // 12 144 bits at 1.01 Gbit/s: 12 023.8 ns.
    assert_eq!(world.received_of(0), [12_023 + 2_000]);

    let (mut network, nodes) = hosts(2);
    let segment = add(&mut network, &resolved(&nodes), 1);
    network.inject_fault(Fault::SilentDrop { link: network.ethernet_link(segment), every: 3 });
    let mut world = World::new(constant_rate(nodes[0], nodes[1], 3000, Duration::from_millis(1), 10));
    world.declare(&mut network);
    network.finalize();
    network.run(&mut world, NEVER, NEVER);
    // Every third of 30 fragments (1480 + 1480 + 20) is dropped, so no packet arrives; no report and no memory leak.
    assert!(world.received.is_empty());
    assert!(network.observer.drops().is_empty());
    assert_eq!(network.arena.live_packets().count(), 0);
    assert_eq!(network.observer.transmissions().count(), 20);
}
