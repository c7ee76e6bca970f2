//! Invariants of a shared segment under any traffic: one frame at a time, gaps kept, frames and packets conserved, and the
//! same records in every run and for any order of insertion into the calendar.

#![allow(missing_docs, reason = "a test")]

use crate::common::segment::{add, study};
use crate::common::{Recorder, Send, World};
use fullpipe_network::discipline::fifo::FifoSpecification;
use fullpipe_network::{Limit, Network};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    stations: usize,
    half_duplex: bool,
    resolution: bool,
    fair: bool,
    device: u64,
    max_retries: u32,
    /// From, to (modulo), bytes, gap before it.
    packets: Vec<(usize, usize, u32, u64)>,
    echo_bytes: Option<u32>,
    end_ns: u64,
}

/// Returns the plan's packets; with `apart`, no two at one instant.
fn script(plan: &Plan, apart: bool) -> Vec<Send> {
    let mut at = 0;
    let packets = plan.packets.iter().enumerate().map(|(number, &(from, to, ip_bytes, gap_ns))| {
        at += gap_ns + u64::from(apart);
        let (from, to) = (from % plan.stations, to % plan.stations);
        let to = if from == to { (to + 1) % plan.stations } else { to };
        let (from, to) = (NodeId(from as u32), NodeId(to as u32));
        Send { at: Instant::from_nanos(at), flow: FlowId(2 * number as u32), from, to, ip_bytes, tcp: false }
    });
    packets.collect()
}

fn simulate(plan: &Plan, script: Vec<Send>) -> (Network<Recorder>, World) {
    let mut network = Network::new(Recorder::default());
    let hosts: Vec<NodeId> = (0..plan.stations).map(|_| network.add_node(false)).collect();
    let mut specification = study(&hosts, &[]);
    specification.half_duplex = plan.half_duplex;
    specification.arp.enabled = plan.resolution;
    specification.arp.request_jitter_step = Duration::from_micros(1);
    specification.max_retries = plan.max_retries;
    specification.device_queue = Limit::Packets(plan.device);
    if !plan.fair {
        specification.discipline = Some(Arc::new(FifoSpecification { limit: Limit::Packets(5) }));
    }
    add(&mut network, &specification, plan.seed);
    let mut world = World::new(script);
    world.echo_bytes = plan.echo_bytes;
    world.declare(&mut network);
    network.finalize();
    let end = Instant::from_nanos(plan.end_ns);
    network.run(&mut world, end, end);
    (network, world)
}

fn plan() -> impl Strategy<Value = Plan> {
    let packet = (
        0usize..5,
        0usize..5,
        prop_oneof![Just(28u32), Just(1500), 28u32..3100],
        prop_oneof![Just(0u64), Just(1_000), 0u64..40_000],
    );
    (
        any::<u64>(),
        2usize..6,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0u64..6,
        prop_oneof![Just(1000u32), 0u32..6],
        prop::collection::vec(packet, 1..150),
        prop::option::of(Just(48u32)),
        prop_oneof![2 => Just(1u64 << 62), 1 => 0u64..3_000_000],
    )
        .prop_map(
            |(seed, stations, half_duplex, resolution, fair, device, max_retries, packets, echo_bytes, end_ns)| Plan {
                seed,
                stations,
                half_duplex,
                resolution,
                fair,
                device,
                max_retries,
                packets,
                echo_bytes,
                end_ns,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_medium_keeps_its_laws(plan in plan()) {
        let (network, world) = simulate(&plan, script(&plan, false));
        network.observer.check_conservation(&network.remaining_packets());
        let mut free: BTreeMap<LinkId, u64> = BTreeMap::new();
        for (link, _, wire_bytes, offered, start, finish, arrival) in network.observer.transmissions() {
            prop_assert!((64..=1518).contains(&wire_bytes));
            prop_assert!(offered <= start);
            prop_assert_eq!((finish - start).as_nanos(), u64::from(wire_bytes) * 8, "1 Gbit/s: a bit per nanosecond");
            prop_assert_eq!((arrival - finish).as_nanos(), 2_000);
            let free = free.entry(link).or_default();
            prop_assert!(start.as_nanos() >= *free, "{} before {}", start, free);
            // Half duplex: until all stations have received it. Full duplex: until the station's gap is over.
            *free = if plan.half_duplex { arrival.as_nanos() } else { finish.as_nanos() + 96 };
            prop_assert_eq!(link.0 as usize / if plan.half_duplex { 1 } else { plan.stations }, 0);
        }
        for (_, _, at) in &world.received {
            prop_assert!(at.as_nanos() <= plan.end_ns);
        }
        if plan.end_ns > 1 << 60 {
            prop_assert_eq!(network.arena.live_packets().count(), 0);
            let roomy = plan.fair && plan.max_retries == 1000 && !plan.resolution;
            if roomy {
                let answers = if plan.echo_bytes.is_some() { 2 } else { 1 };
                prop_assert_eq!(world.received.len(), plan.packets.len() * answers);
            }
        }
        // The same run again gives the same records.
        let (again, _) = simulate(&plan, script(&plan, false));
        prop_assert_eq!(&again.observer.records, &network.observer.records);
    }

    /// The reversed script: its packets have other numbers in the calendar, and the events on the segment are the same.
    #[test]
    fn the_order_of_insertion_has_no_effect(plan in plan()) {
        let forward = script(&plan, true);
        let backward = forward.iter().rev().copied().collect();
        let (network, _) = simulate(&plan, forward);
        let (turned, _) = simulate(&plan, backward);
        prop_assert_eq!(&turned.observer.records, &network.observer.records);
    }
}
