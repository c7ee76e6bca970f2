//! The memory of a run. The types of the models determine the sizes of their state. The sizes of state in other
//! libraries were fitted to runs of the named benchmarks.

use super::paths::Paths;
use super::traffic::{self, Traffic};
use crate::world::footprint;
use fullpipe_network::Limit;
use fullpipe_network::footprint::{
    IN_FLIGHT_PACKET_BYTES, LINK_BYTES, NODE_BYTES, PACKET_BYTES, QUEUED_PACKET_BYTES, ROUTE_BYTES,
};
use fullpipe_record::FlowMonitor;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, QuicStack, Transport};
use std::collections::BTreeMap;

/// Memory of the program itself, in bytes: the peak memory of a run of the scenario `quick-start`.
pub const PROCESS_BYTES: f64 = 13e6;

/// Mean ratio of the capacity of a vector to its length. A full vector doubles its capacity.
const GROWTH: f64 = 1.5;
/// Minimum number of entries of a ring buffer in use.
const SMALLEST_RING: f64 = 4.0;
/// Bytes of a small allocation, such as an application or a congestion controller, including the overhead of the
/// allocator.
const BOX_BYTES: f64 = 112.0;
/// Ratio of the peak of outstanding data in slow start to its mean. Fitted to the peak memory of `tcp-10k` and
/// `quic-10k`.
const OVERSHOOT: f64 = 4.0;
/// Bytes of a row of `flows.csv` in memory, when it is written, reported and printed. Fitted to `tcp-idle`.
const ROW_BYTES: f64 = 300.0;
/// Bytes of a sample that the report reads: time and value, in a growing vector. The run itself writes samples to the
/// file.
const SAMPLE_BYTES: f64 = 2.0 * size_of::<(f64, f64)>() as f64;
/// Bytes of an endpoint of the real QUIC stack, without data. Fitted to the peak memory of `masque-1-*`.
const STACK_BYTES: f64 = 150e3;
/// Bytes of both ends of a tunnel: their QUIC and HTTP/3 connections and tasks. Fitted in the same way.
const TUNNEL_BYTES: f64 = 1.2e6;

/// The memory of all objects of one kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemoryPart {
    /// Name of the kind of objects, in the plural, such as "flows".
    pub what: &'static str,
    /// Number of objects.
    pub count: f64,
    /// Memory of each object in bytes.
    pub bytes_each: f64,
    /// Whether the values are upper bounds rather than estimates.
    pub is_bound: bool,
    /// Whether events access all of this memory in turn, so that it competes for the caches.
    pub(super) is_visited: bool,
}

impl MemoryPart {
    fn new(what: &'static str, count: f64, bytes: f64) -> MemoryPart {
        let bytes_each = if count > 0.0 { bytes / count } else { 0.0 };
        MemoryPart { what, count, bytes_each, is_bound: false, is_visited: false }
    }

    /// Returns the memory of all objects in bytes.
    pub fn bytes(&self) -> f64 {
        self.count * self.bytes_each
    }
}

/// Returns all parts of the memory, the largest first.
pub(super) fn parts(scenario: &Scenario, paths: &Paths, all: &[Traffic]) -> Vec<MemoryPart> {
    let nodes = scenario.nodes.len() as f64;
    let routers = scenario.nodes.iter().filter(|node| node.router).count() as f64;
    let links = scenario.links.len() as f64;
    let described = nodes * size_of::<description::Node>() as f64 + links * size_of::<description::Link>() as f64;
    let built = nodes * NODE_BYTES as f64
        + links * (LINK_BYTES + fullpipe_audit::LINK_BYTES) as f64
        + routers * nodes * ROUTE_BYTES as f64;
    let names = (nodes + links) * 2.0 * BOX_BYTES;
    let network = MemoryPart { is_visited: true, ..MemoryPart::new("links", links, described + built + names) };
    let mut flows = 0.0;
    let mut further = [0.0, 0.0];
    for traffic in all {
        let (first, rest) = flow_bytes(scenario, traffic);
        flows += first;
        further[0] += (traffic.connections - 1.0).max(0.0);
        further[1] += rest;
    }
    let flows = MemoryPart { is_visited: true, ..MemoryPart::new("flows", all.len() as f64, flows) };
    let further = MemoryPart::new("further connections", further[0], further[1]);
    let samples = most_samples(scenario);
    let samples = MemoryPart::new("samples of a metric", samples, samples * SAMPLE_BYTES);
    let media: f64 = scenario.access.iter().map(|access| access.cost(scenario.duration).bytes).sum();
    let stations: usize = scenario.access.iter().map(|access| access.stations().len()).sum();
    let media = MemoryPart::new("stations of access networks", stations as f64, media);
    let [packets, excess, windows] = packets(scenario, paths, all);
    let mut parts = vec![network, flows, further, samples, media, packets, excess, windows];
    parts.retain(|part| part.count > 0.0);
    parts.sort_by(|a, b| b.bytes().total_cmp(&a.bytes()));
    parts
}

/// Returns the largest number of samples of any metric, because the report reads one metric at a time.
fn most_samples(scenario: &Scenario) -> f64 {
    let mut by_metric: BTreeMap<&str, f64> = BTreeMap::new();
    for probe in &scenario.probes {
        let samples = scenario.duration.as_secs_f64() / probe.interval.as_secs_f64().max(1e-9);
        for metric in &probe.metrics {
            *by_metric.entry(metric).or_default() += samples;
        }
    }
    by_metric.into_values().fold(0.0, f64::max)
}

/// Returns the memory of a flow with its first connection, and the memory of all its further connections.
fn flow_bytes(scenario: &Scenario, traffic: &Traffic) -> (f64, f64) {
    let flow = &scenario.flows[traffic.flow];
    // The description exists twice: for the caller, and for the run with its drawn start times.
    let described = 2.0 * size_of::<description::Flow>() as f64 + 2.0 * BOX_BYTES;
    let records = 2.0 * (FlowMonitor::BYTES_PER_FLOW + fullpipe_audit::DIRECTION_BYTES) as f64;
    let conversation = records + footprint::CONVERSATION_BYTES as f64;
    let rows = 2.0 * ROW_BYTES;
    let end = match &flow.transport {
        Transport::Udp => 0.0,
        Transport::Tcp(_) => footprint::TCP_BYTES as f64 + BOX_BYTES,
        Transport::Quic(quic) if quic.stack == QuicStack::Model => {
            (footprint::QUIC_MODEL_BYTES + fullpipe_quic::STREAM_BYTES) as f64 + 4.0 * BOX_BYTES
        }
        Transport::Quic(_) => footprint::QUIC_STACK_BYTES as f64 + STACK_BYTES,
        Transport::Masque(_) => TUNNEL_BYTES / 2.0,
    };
    let maker = match &flow.transport {
        Transport::Quic(quic) if quic.stack == QuicStack::Model => footprint::QUIC_MAKER_BYTES as f64,
        _ => 0.0,
    };
    let first = described + footprint::FLOW_BYTES as f64 + 2.0 * BOX_BYTES + conversation + rows + maker;
    let rings: f64 = [0, 1].map(|end| ring_bytes(scenario, traffic, end)).iter().sum();
    let further = (traffic.connections - 1.0).max(0.0);
    // Closed connections keep their counters, and one end also keeps its state for a time.
    let open = match (traffic.lifetime_s, &flow.transport) {
        (None, _) => further,
        (Some(lifetime_s), transport) => {
            let waits_s = match transport {
                Transport::Tcp(tcp) => tcp.connection.time_wait.as_secs_f64() / 2.0,
                _ => 0.0,
            };
            further * ((lifetime_s + waits_s + 4.0 * traffic.round_trip_s) / traffic.time_s.max(1e-9)).min(1.0)
        }
    };
    (first + 2.0 * end + rings, GROWTH * further * conversation + open * (2.0 * end + 2.0 * BOX_BYTES))
}

/// Returns the bytes of the records of outstanding packets at one end of a flow, over all its connections.
fn ring_bytes(scenario: &Scenario, traffic: &Traffic, end: usize) -> f64 {
    let direction = &traffic.directions[end];
    let (record, data) = match &scenario.flows[traffic.flow].transport {
        Transport::Udp | Transport::Masque(_) => return 0.0,
        Transport::Tcp(_) => (fullpipe_tcp::SEGMENT_RECORD_BYTES as f64, 0.0),
        Transport::Quic(quic) if quic.stack == QuicStack::Model => (fullpipe_quic::PACKET_RECORD_BYTES as f64, 0.0),
        // The real stack stores real bytes: those written, and those in packets.
        Transport::Quic(_) => (200.0, 2.0 * traffic.packets.payload_bytes),
    };
    let outstanding = (OVERSHOOT * traffic.outstanding[end]).min(direction.packets);
    if outstanding <= 0.0 {
        return 0.0;
    }
    let room = fullpipe_units::math::pow(2.0, fullpipe_units::math::log2(outstanding.max(SMALLEST_RING)).ceil());
    room * record + outstanding * data
}

/// Returns the number of packets from one end that are on links and in queues.
fn in_flight(traffic: &Traffic, end: usize) -> f64 {
    if traffic.packets.per_ack.is_finite() || traffic.time_s <= 0.0 {
        return traffic.outstanding[end];
    }
    // Datagrams arrive half a round-trip time after they are sent.
    traffic.directions[end].packets * (traffic.round_trip_s / 2.0 / traffic.time_s).min(1.0)
}

/// Returns the memory of packets on links and in queues, of excess datagrams in unlimited queues, and of the maximum
/// that windows permit in such queues.
fn packets(scenario: &Scenario, paths: &Paths, all: &[Traffic]) -> [MemoryPart; 3] {
    let on_links: f64 = all.iter().flat_map(|traffic| [0, 1].map(|end| in_flight(traffic, end))).sum();
    let run_s = scenario.duration.as_secs_f64().max(1e-9);
    // If a queue is unlimited, datagrams that exceed its link's rate accumulate without bound. Datagrams that wait at
    // an earlier link do not reach the next.
    let datagrams = || {
        let flows = all.iter().filter(|traffic| traffic.packets.per_ack.is_infinite());
        let directions = flows.flat_map(|traffic| traffic.directions.iter().map(move |direction| (traffic, direction)));
        directions.filter(|(_, direction)| direction.packets > 0.0)
    };
    let mut offered_bits = vec![0.0; paths.transmitters.len()];
    for (traffic, direction) in datagrams() {
        let bytes = traffic.packets.ip_bytes(direction.bytes / direction.packets);
        for hop in traffic::hops(paths, direction) {
            offered_bits[hop] += 8.0 * direction.packets * (bytes + paths.transmitters[hop].framing_bytes);
        }
    }
    let mut excess = 0.0;
    for (_, direction) in datagrams() {
        let mut passing = 1.0_f64;
        for hop in traffic::hops(paths, direction) {
            let transmitter = &paths.transmitters[hop];
            let passes = passing.min(transmitter.bits_per_s * run_s / offered_bits[hop]);
            if matches!(transmitter.queue, Limit::Unlimited) {
                excess += direction.packets * (passing - passes);
            }
            passing = passes;
        }
    }
    let windows: f64 = all.iter().flat_map(|traffic| traffic.unlimited).sum();
    let each = GROWTH * (PACKET_BYTES + IN_FLIGHT_PACKET_BYTES + QUEUED_PACKET_BYTES) as f64;
    let part = |what, count: f64| MemoryPart::new(what, count, count * each);
    [
        MemoryPart { is_visited: true, ..part("packets in flight", on_links) },
        part("packets in queues without limit", excess),
        MemoryPart { is_bound: true, ..part("packets that windows let wait in queues without limit", windows) },
    ]
}
