//! Routes compared with Floyd-Warshall on random graphs: fewest hops, and hosts do not forward.

#![allow(missing_docs, reason = "a test")]

use crate::common::segment::{add, resolved};
use crate::common::{Recorder, World, constant_rate};
use fullpipe_network::{Limit, LinkSpecification, Network, NextHop};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, Instant, LinkId, NodeId, Rate};
use proptest::prelude::*;

const FAR: u32 = 1_000_000;

fn link(from: usize, to: usize) -> LinkSpecification {
    LinkSpecification {
        from: NodeId(from as u32),
        to: NodeId(to as u32),
        rate: Rate::from_megabits_per_second(1),
        delay: Duration::ZERO,
        mtu_bytes: 1500,
        framing_bytes: 0,
        queue: Limit::Unlimited,
        discipline: None,
        loss: None,
        course: fullpipe_network::LinkProfile::Constant,
        impairments: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths_are_shortest(
        routers in prop::collection::vec(any::<bool>(), 2..14),
        links in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
        shared in prop::collection::btree_set(0usize..14, 0..5),
    ) {
        let count = routers.len();
        let mut network = Network::new(());
        for router in &routers {
            network.add_node(*router);
        }
        let mut hops = vec![vec![FAR; count]; count];
        for (node, row) in hops.iter_mut().enumerate() {
            row[node] = 0;
        }
        let mut ends = Vec::new();
        for (from, to) in links {
            let (from, to) = (from.index(count), to.index(count));
            if from != to {
                network.add_link(link(from, to));
                ends.push(to);
                hops[from][to] = 1;
            }
        }
        let stations: Vec<NodeId> = shared.into_iter().filter(|n| *n < count).map(|n| NodeId(n as u32)).collect();
        if !stations.is_empty() {
            add(&mut network, &resolved(&stations), 1);
            for a in &stations {
                for b in &stations {
                    if a != b {
                        hops[a.index()][b.index()] = 1;
                    }
                }
            }
        }
        network.finalize();
        for middle in (0..count).filter(|n| routers[*n]) {
            for from in 0..count {
                for to in 0..count {
                    hops[from][to] = hops[from][to].min(hops[from][middle] + hops[middle][to]);
                }
            }
        }
        for (from, row) in hops.iter().enumerate() {
            for (to, hops) in row.iter().enumerate().filter(|(to, _)| *to != from) {
                let path = network.path(NodeId(from as u32), NodeId(to as u32));
                // Follows the path hop by hop.
                let mut at = NodeId(from as u32);
                for hop in &path {
                    at = match hop {
                        NextHop::Link(link) => NodeId(ends[link.index()] as u32),
                        NextHop::Station { station, .. } => stations[*station as usize],
                        NextHop::Medium { .. } | NextHop::Translation | NextHop::None => at,
                    };
                }
                if *hops < FAR {
                    prop_assert_eq!(path.len() as u32, *hops);
                    prop_assert_eq!(at.index(), to);
                } else {
                    prop_assert_ne!(at.index(), to);
                }
            }
        }
    }
}

#[test]
fn of_equal_routes_the_one_declared_first_is_used() {
    // From 0 to 3 through 1 or 2, declared in either order.
    for (first, second) in [(1, 2), (2, 1)] {
        let mut network = Network::new(());
        for _ in 0..4 {
            network.add_node(true);
        }
        for (from, to) in [(0, first), (first, 3), (0, second), (second, 3)] {
            network.add_link(link(from, to));
        }
        network.finalize();
        assert_eq!(network.path(NodeId(0), NodeId(3)), [NextHop::Link(LinkId(0)), NextHop::Link(LinkId(1))]);
    }
}

#[test]
fn packets_to_unreachable_destinations_are_dropped_and_do_not_loop() {
    // Host 0 is connected to router 1; routers 1 and 2 have routes only to each other; node 3 is unreachable.
    let mut network = Network::new(Recorder::default());
    for router in [false, true, true, false] {
        network.add_node(router);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 1)] {
        network.add_link(link(from, to));
    }
    let mut world = World::new(constant_rate(NodeId(0), NodeId(3), 100, Duration::from_millis(1), 1));
    world.declare(&mut network);
    network.finalize();
    // 100 bytes take 0.8 ms per link: a loop would be visible within a second.
    let end = Instant::from_nanos(1_000_000_000);
    assert!(!network.run(&mut world, end, end), "no event may be left");
    assert!(world.received.is_empty());
    assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::Unreachable, 1)]);
    assert_eq!(network.arena.live_packets().count(), 0);
}
