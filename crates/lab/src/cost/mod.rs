//! The estimated cost of a run: events, CPU time relative to that of a TCP segment, and peak memory. From the description alone,
//! in microseconds for a scenario of a few flows: no world is built.
//!
//! **Events.** Each flow sends what its workload states, at most its fair share of the links on its way (`traffic.rs`). Each packet
//! costs an event for each chain of links that are computed at once (`paths.rs`), and acknowledgements cost the same on the way
//! back. To these come the timers of applications and connections, and the subframes of access networks.
//!
//! **Memory.** What stands at the end of the run or at its busiest: flows with their endpoints, packets on links and in queues,
//! samples of probes (`memory.rs`).
//!
//! **Bounds.** Where the dynamics of a run make an estimate meaningless, such as few periods of an on-off source or flows that
//! random losses limit, the figures are upper bounds, and [`Cost::bounds`] says why. `tests/cost.rs` holds the estimate within a
//! factor of two for the benchmarks; `docs/command-line.md` says what to expect of it.

mod memory;
mod paths;
mod traffic;

pub use memory::{MemoryPart, PROGRAM_BYTES};

use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Stack, Transport};
use paths::Paths;
use traffic::{Direction, NO_PATH, Traffic};

/// Timers of a connection in a second: delayed acknowledgements at one end, retransmission at the other. Fitted to runs that the
/// tests use again: 27 to 43 in `tcp-1` to `tcp-10k`, 72 in `quic-1`.
const TIMERS_PER_S: f64 = 40.0;

/// CPU time of an event, over that of an event of the benchmark `tcp-1`. Measured at commit e524fd4 from the user time of single runs
/// (`tcp-1`: 0.14 s for 753 000 events), each with the scenario that it names, while other work ran on the machine: a rough guide.
mod weight {
    /// A datagram of UDP, without a connection at its ends: `udp-5hop`, 0.11 s for 1 600 000.
    pub(super) const UDP: f64 = 0.35;
    /// A packet of the QUIC model: `quic-1`, 0.36 s for 752 000.
    pub(super) const QUIC_MODEL: f64 = 2.5;
    /// A packet of the real QUIC stack: `quic-real-1-10m` and `-100m`, 0.03 s and 0.06 s for 11 000, the start of the program
    /// included.
    pub(super) const QUIC_STACK: f64 = 18.0;
    /// A packet through a tunnel: `masque-1-datagram`, 0.30 s for 49 000.
    pub(super) const TUNNEL: f64 = 30.0;
    /// State of flows, links and packets that fits into the caches of a core: none of `tcp-100` is slower for its 5 MB.
    pub(super) const CACHE_BYTES: f64 = 8e6;
    /// Beyond that an event costs more with this power of the state: `tcp-10k`, 9.1 s for 6 400 000 with 110 MB; `quic-10k`, 20 s for
    /// 6 600 000 with 150 MB.
    pub(super) const CACHE_EXPONENT: f64 = 0.8;
}

/// The estimated cost of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Events of the calendar, as in `run.json`.
    pub events: f64,
    /// CPU time of these, in events of the benchmark `tcp-1`.
    pub work: f64,
    /// What needs memory at the run's busiest, the largest part first.
    pub memory: Vec<MemoryPart>,
    /// Why the figures are upper bounds; empty: they are estimates.
    pub bounds: Vec<&'static str>,
}

impl Cost {
    /// The estimate for a scenario.
    pub fn of(scenario: &Scenario) -> Cost {
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

    /// Whether the figures are upper bounds.
    pub fn is_bound(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Peak memory of the process.
    pub fn peak_bytes(&self) -> f64 {
        PROGRAM_BYTES + self.memory.iter().map(MemoryPart::bytes).sum::<f64>()
    }

    /// The part of it that is an estimate and not an upper bound.
    pub fn certain_bytes(&self) -> f64 {
        let certain = self.memory.iter().filter(|part| !part.is_bound);
        PROGRAM_BYTES + certain.map(MemoryPart::bytes).sum::<f64>()
    }

    /// What needs most of the memory.
    pub fn largest(&self) -> Option<&MemoryPart> {
        self.memory.first()
    }
}

/// Events of a flow, and the weight of one.
fn events_of(scenario: &Scenario, paths: &Paths, traffic: &Traffic) -> (f64, f64) {
    let transport = &scenario.flows[traffic.flow].transport;
    let weight = match (transport, traffic.via) {
        (_, Some(_)) => weight::TUNNEL,
        (Transport::Udp, None) => weight::UDP,
        (Transport::Tcp(_), None) => 1.0,
        (Transport::Quic(quic), None) if quic.stack == Stack::Model => weight::QUIC_MODEL,
        (Transport::Quic(_) | Transport::Masque(_), None) => weight::QUIC_STACK,
    };
    // The flow starts.
    let mut events = 1.0 + traffic.timers;
    let mut packets = 0.0;
    for direction in &traffic.directions {
        let acks = direction.packets / traffic.packets.per_ack;
        let sent = direction.packets * survival(paths, traffic, direction);
        events += sent * events_on(paths, direction.paths[0]) + acks * events_on(paths, direction.back[0]);
        if traffic.via.is_some() {
            // The tunnel carries both, and acknowledges the packets that carry data.
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

/// Events of a packet on a route.
fn events_on(paths: &Paths, path: u32) -> f64 {
    if path == NO_PATH { 0.0 } else { paths.paths.get(path as usize).map_or(0.0, |path| path.events) }
}

/// The part of the packets of a direction that costs all events of its route: datagrams that exceed the rate of its first link
/// are dropped before that. Dropped later, they cost an event or two all the same.
fn survival(paths: &Paths, traffic: &Traffic, direction: &Direction) -> f64 {
    if traffic.packets.per_ack.is_finite() || direction.packets <= 0.0 || traffic.time_s <= 0.0 {
        return 1.0;
    }
    let bits = 8.0 * direction.packets * traffic.packets.ip_bytes(direction.bytes / direction.packets);
    let first = traffic::hops(paths, direction).next();
    let rate = first.map_or(f64::INFINITY, |hop| paths.transmitters[hop].bits_per_s);
    (rate * traffic.time_s / bits).min(1.0)
}
