//! The estimated cost of a run: events, CPU time relative to that of a TCP segment, and peak memory. The estimate uses
//! only the scenario and does not build a world. It takes microseconds for a few flows.
//!
//! **Events.** Each flow sends the data that its workload states, but at most its fair share of the links on its path
//! (`traffic.rs`). Each packet costs one event per chain of links that are computed at once (`paths.rs`).
//! Acknowledgments cost the same in the reverse direction. The estimate also includes timers of applications and
//! connections, and subframes of access networks.
//!
//! **Memory.** The estimate covers the state at the end of the run or at its peak: flows with their endpoints, packets
//! on links and in queues, samples of probes (`memory.rs`).
//!
//! **Bounds.** Some dynamics make an estimate meaningless, for example an on-off source with few periods, or flows that
//! random losses limit. The values are then upper bounds, and [`Cost::bounds`] contains the reasons. `tests/cost.rs`
//! tests that the estimate is within a factor of two for the benchmarks. `docs/command-line.md` describes its accuracy.

mod memory;
mod paths;
mod traffic;

pub use memory::{MemoryPart, PROCESS_BYTES};

use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{QuicStack, Transport};
use paths::Paths;
use traffic::{Direction, NO_PATH, Traffic};

/// Timer events of a connection per second: delayed acknowledgments at one end, retransmission at the other. Fitted to
/// runs that the tests repeat: 27 to 43 in `tcp-1` to `tcp-10k`, 72 in `quic-1`.
const TIMERS_PER_S: f64 = 40.0;

/// CPU time of an event relative to that of an event of the benchmark `tcp-1`. The values are only a rough guide. They
/// were measured at commit e524fd4, on a loaded machine, as the user time of single runs of the named scenarios
/// (`tcp-1`: 0.14 s for 753 000 events).
mod weight {
    /// A UDP datagram, without a connection: `udp-5hop`, 0.11 s for 1 600 000 events.
    pub(super) const UDP: f64 = 0.35;
    /// A packet of a flow with many TCP connections: three runs of the access link of `tcp-eval`, 29.4 s for 74 200 000
    /// events, while `tcp-1` executed 11.9 million events per second (development build, loaded machine).
    pub(super) const TCP_CONNECTIONS: f64 = 4.7;
    /// A packet of the QUIC model: `quic-1`, 0.36 s for 752 000 events.
    pub(super) const QUIC_MODEL: f64 = 2.5;
    /// A packet of the real QUIC stack: `quic-real-1-10m` and `-100m`, 0.03 s and 0.06 s for 11 000 events, including
    /// program start.
    pub(super) const QUIC_STACK: f64 = 18.0;
    /// A packet through a tunnel: `masque-1-datagram`, 0.30 s for 49 000 events.
    pub(super) const TUNNEL: f64 = 30.0;
    /// Bytes of state of flows, links and packets that fit into a core's caches: `tcp-100` with 5 MB is not slower than
    /// `tcp-1`.
    pub(super) const CACHE_BYTES: f64 = 8e6;
    /// Above that size, the cost of an event grows with this power of the size: `tcp-10k`, 9.1 s for 6 400 000 events
    /// with 110 MB; `quic-10k`, 20 s for 6 600 000 with 150 MB.
    pub(super) const CACHE_EXPONENT: f64 = 0.8;
}

/// The estimated cost of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Number of events that the calendar executes, as in `run.json`.
    pub events: f64,
    /// CPU time of the events. The unit is the CPU time of one event of the benchmark `tcp-1`.
    pub work: f64,
    /// The parts of the peak memory, the largest first.
    pub memory: Vec<MemoryPart>,
    /// The reasons why the values are upper bounds; empty if they are estimates.
    pub bounds: Vec<&'static str>,
}

impl Cost {
    /// Estimates the cost of a scenario.
    pub fn estimate(scenario: &Scenario) -> Cost {
        let paths = Paths::new(scenario);
        let all = traffic::of(scenario, &paths);
        let mut cost = Cost { memory: memory::parts(scenario, &paths, &all), ..Cost::default() };
        let state = cost.memory.iter().filter(|part| part.is_visited).map(MemoryPart::bytes).sum::<f64>();
        let beyond_caches = (state / weight::CACHE_BYTES).max(1.0);
        let crowded = fullpipe_units::math::pow(beyond_caches, weight::CACHE_EXPONENT);
        for traffic in &all {
            let (events, weight) = events_of(scenario, &paths, traffic);
            cost.events += events;
            cost.work += events * weight * crowded;
            cost.note(traffic.bound);
        }
        for access in &scenario.access {
            let medium = access.cost(scenario.duration);
            cost.events += medium.events;
            cost.work += medium.events * medium.weight;
            cost.note(medium.bound);
        }
        cost
    }

    fn note(&mut self, bound: Option<&'static str>) {
        if let Some(reason) = bound.filter(|reason| !self.bounds.contains(reason)) {
            self.bounds.push(reason);
        }
    }

    /// Returns whether the values are upper bounds.
    pub fn is_upper_bound(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Returns the peak memory of the process in bytes.
    pub fn peak_bytes(&self) -> f64 {
        PROCESS_BYTES + self.memory.iter().map(MemoryPart::bytes).sum::<f64>()
    }

    /// Returns the peak memory in bytes, without the parts for which only an upper bound is known.
    pub fn estimated_bytes(&self) -> f64 {
        let certain = self.memory.iter().filter(|part| !part.is_bound);
        PROCESS_BYTES + certain.map(MemoryPart::bytes).sum::<f64>()
    }

    /// Returns the largest part of the memory; `None` if there are no parts.
    pub fn largest_part(&self) -> Option<&MemoryPart> {
        self.memory.first()
    }
}

/// Returns the number of events of a flow, and the weight of each.
fn events_of(scenario: &Scenario, paths: &Paths, traffic: &Traffic) -> (f64, f64) {
    let transport = &scenario.flows[traffic.flow].transport;
    let weight = match (transport, traffic.via) {
        (_, Some(_)) => weight::TUNNEL,
        (Transport::Udp, None) => weight::UDP,
        (Transport::Tcp(_), None) if traffic.connections > 1.0 => weight::TCP_CONNECTIONS,
        (Transport::Tcp(_), None) => 1.0,
        (Transport::Quic(quic), None) if quic.stack == QuicStack::Model => weight::QUIC_MODEL,
        (Transport::Quic(_) | Transport::Masque(_), None) => weight::QUIC_STACK,
    };
    // The start of the flow is an event.
    let mut events = 1.0 + traffic.timers;
    let mut packets = 0.0;
    for direction in &traffic.directions {
        let acks = direction.packets / traffic.packets.per_ack;
        let sent = direction.packets * survival(paths, traffic, direction);
        events += sent * events_on(paths, direction.paths[0]) + acks * events_on(paths, direction.back[0]);
        if traffic.via.is_some() {
            // The tunnel carries data and acknowledgments, and acknowledges the packets that contain them.
            events +=
                (sent + acks) * events_on(paths, direction.paths[1]) + 2.0 * acks * events_on(paths, direction.back[1]);
        }
        packets += direction.packets;
    }
    let closing = if traffic.is_unlimited { 0.0 } else { traffic.packets.closing };
    let opening = traffic.connections * (traffic.packets.opening + closing);
    let both_ways = traffic.directions.map(|direction| events_on(paths, direction.paths[0]));
    events += opening * (both_ways[0] + both_ways[1]) / 2.0;
    if traffic.packets.per_ack.is_finite() {
        let time_s = traffic.lifetime_s.map_or(traffic.time_s, |lifetime_s| lifetime_s.min(traffic.time_s));
        events += (TIMERS_PER_S * time_s * traffic.connections).min(packets);
    }
    (events, weight)
}

/// Returns the number of events of a packet on a route.
fn events_on(paths: &Paths, path: u32) -> f64 {
    if path == NO_PATH { 0.0 } else { paths.paths.get(path as usize).map_or(0.0, |path| path.events) }
}

/// Returns the fraction of a direction's packets that cost all events of the route. Excess datagrams are dropped before
/// the first link and cost fewer. Datagrams that are dropped later still cost one or two events.
fn survival(paths: &Paths, traffic: &Traffic, direction: &Direction) -> f64 {
    if traffic.packets.per_ack.is_finite() || direction.packets <= 0.0 || traffic.time_s <= 0.0 {
        return 1.0;
    }
    let bits = 8.0 * direction.packets * traffic.packets.ip_bytes(direction.bytes / direction.packets);
    let first = traffic::hops(paths, direction).next();
    let rate = first.map_or(f64::INFINITY, |hop| paths.transmitters[hop].bits_per_s);
    (rate * traffic.time_s / bits).min(1.0)
}
