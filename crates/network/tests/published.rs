//! The UDP rows of the TCP-UDP study with the published random delay of address resolution (7.0 ms), without tuning.
//!
//! Published values: github.com/alfredtso/ns-3-project, commit 3981f081, doc/*.txt (ns-3.33). Throughput is defined as in the study:
//! IP bytes x 8 / (last - first reception) / 2^20. With payloads of 1480 and 1500 bytes packets are fragmented. Only a
//! fair queue lets the small second fragments overtake the large first ones. The queue then does not overflow, and one
//! packet is dropped by CoDel.

#![allow(missing_docs, reason = "a test")]

use crate::common::segment::{add, study};
use crate::common::{World, constant_rate};
use fullpipe_network::Network;
use fullpipe_record::{FlowCounters, FlowMonitor};
use fullpipe_units::{Duration, FlowId, Instant};

/// Payload, count, received, throughput, mean delay in s, mean jitter in us.
type Row = (u32, u64, f64, f64, f64, Option<f64>);

const ROWS: [Row; 12] = [
    (1472, 10_000, 6499.0, 776.938, 0.0413737, Some(13.8037)),
    (1472, 20_000, 12581.0, 776.568, 0.0799198, Some(12.7146)),
    (1472, 30_000, 13939.0, 776.498, 0.0869851, Some(11.5666)),
    (1472, 40_000, 15295.0, 776.493, 0.0927892, Some(10.6232)),
    (1472, 50_000, 16650.0, 776.527, 0.0976426, Some(9.83543)),
    (1472, 60_000, 18008.0, 776.5, 0.101773, Some(9.16752)),
    (1472, 70_000, 19366.0, 776.526, 0.105326, Some(8.58843)),
    (1472, 80_000, 20720.0, 776.487, 0.108405, Some(8.08826)),
    (1472, 90_000, 22075.0, 776.509, 0.111105, Some(7.64968)),
    (1472, 100_000, 23432.0, 776.532, 0.113494, Some(7.26116)),
    (1480, 10_000, 6496.0, 644.712, 0.0611994, None),
    (1500, 10_000, 6496.0, 652.677, 0.0611686, Some(16.9)),
];

fn simulate(payload_bytes: u32, count: u64) -> FlowCounters {
    let mut monitor = FlowMonitor::new();
    monitor.reserve_flows(1);
    let mut network = Network::new(monitor);
    let nodes = [network.add_node(false), network.add_node(false)];
    add(&mut network, &study(&nodes, &[7]), 5321);
    let mut world = World::new(constant_rate(nodes[0], nodes[1], payload_bytes + 28, Duration::from_micros(2), count));
    world.declare(&mut network);
    network.finalize();
    network.run(&mut world, Instant::NEVER, Instant::NEVER);
    assert_eq!(network.arena.live_packets().count(), 0);
    network.observer.flow(FlowId(0))
}

#[test]
fn the_udp_rows_match_the_published_values() {
    for (payload_bytes, count, received, throughput, delay, jitter) in ROWS {
        let flow = simulate(payload_bytes, count);
        assert_eq!(flow.rx_packets + flow.lost_packets, count);
        let packets = flow.rx_packets as f64;
        let near = |what: &str, found: f64, published: f64, tolerance: f64| {
            let off = (found / published - 1.0).abs();
            assert!(off < tolerance, "{payload_bytes} B x {count}: {what} {found}, published {published}");
        };
        near("received", packets, received, 0.002);
        let time = (flow.last_rx - flow.first_rx).as_secs_f64();
        near("throughput", flow.rx_bytes as f64 * 8.0 / time / f64::from(1 << 20), throughput, 0.005);
        near("delay", flow.delay_sum.as_secs_f64() / packets, delay, 0.01);
        if let Some(jitter) = jitter {
            near("jitter", flow.jitter_sum.as_secs_f64() * 1e6 / packets, jitter, 0.05);
        }
    }
}
