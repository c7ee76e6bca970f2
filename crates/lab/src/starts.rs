//! Random start times of flows, and random offsets of traces.
//!
//! With `start_jitter`, a flow is delayed by a random time. With `phase_jitter`, each flow is delayed by a random
//! fraction of its base round-trip time. Runs then show whether a result depends on the phase between flows (Floyd and
//! Jacobson 1991).

use crate::witness::RunObserver;
use crate::world::ends;
use fullpipe_network::Network;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Link;
use fullpipe_units::{Duration, RandomStream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// IP bytes of a full packet.
const FULL_BYTES: f64 = 1500.0;
/// End of the name of a link's second direction.
const REVERSE: &str = ".reverse";
const NANOSECONDS_PER_MS: u64 = 1_000_000;
/// IP bytes of an acknowledgment.
const SMALL_BYTES: f64 = 40.0;

/// Returns the scenario with start times and offsets of traces drawn from its seed. Each flow and each link has its own
/// random stream. The result has no `start_jitter` and no random offsets, so a second call has no effect.
pub(crate) fn drawn(scenario: Arc<Scenario>) -> Arc<Scenario> {
    let fixed_starts = scenario.flows.iter().all(|flow| flow.start_jitter.is_zero());
    if fixed_starts && !scenario.links.iter().any(|link| link.random_trace_offset) {
        return scenario;
    }
    let mut drawn = Scenario::clone(&scenario);
    draw_trace_offsets(&mut drawn);
    for flow in drawn.flows.iter_mut().filter(|flow| !flow.start_jitter.is_zero()) {
        let later = RandomStream::new(scenario.seed, &flow.name, "start").uniform_below(flow.start_jitter.as_nanos());
        flow.start = flow.start.saturating_add(Duration::from_nanos(later));
        flow.start_jitter = Duration::ZERO;
    }
    Arc::new(drawn)
}

/// Starts traces at random times. Both directions of a link start at the same time, because their traces were usually
/// recorded together.
fn draw_trace_offsets(scenario: &mut Scenario) {
    let pair = |link: &Link| link.name.strip_suffix(REVERSE).unwrap_or(&link.name).to_owned();
    let mut longest_ms = BTreeMap::<String, u64>::new();
    for link in scenario.links.iter().filter(|link| link.random_trace_offset) {
        let period_ms = link.trace_period().as_nanos() / NANOSECONDS_PER_MS;
        let longest = longest_ms.entry(pair(link)).or_default();
        *longest = period_ms.max(*longest);
    }
    for link in scenario.links.iter_mut().filter(|link| link.random_trace_offset) {
        let name = pair(link);
        let offset_ms = RandomStream::new(scenario.seed, &name, "trace offset").uniform_below(longest_ms[&name]);
        link.start_trace_at(Duration::from_millis(offset_ms));
    }
}

/// Returns the round-trip time of a full packet and a small response in an empty network. It covers the route between
/// the ends of a flow, including the ends of the tunnels that carry it.
fn base_round_trip(scenario: &Scenario, network: &Network<RunObserver>, flow: usize) -> Duration {
    let mut carrier = Some(flow);
    let mut time = Duration::ZERO;
    while let Some(flow) = carrier {
        let (from, to) = ends(scenario, flow);
        for (from, to, bytes) in [(from, to, FULL_BYTES), (to, from, SMALL_BYTES)] {
            let (fixed, per_byte_ns) = network.minimum_delay(from, to);
            time = time.saturating_add(fixed).saturating_add(Duration::from_nanos((bytes * per_byte_ns) as u64));
        }
        carrier = scenario.flows[flow].via;
    }
    time
}

/// Returns the scenario with delayed starts and without `phase_jitter`. Routes must be computed first. A flow in a
/// tunnel is delayed by the same time as the tunnel, so that it does not start earlier.
pub(crate) fn moved(scenario: &Scenario, network: &Network<RunObserver>) -> Scenario {
    let own = |flow: usize| {
        let longest = base_round_trip(scenario, network, flow).as_secs_f64() * scenario.phase_jitter;
        let mut stream = RandomStream::new(scenario.seed, &scenario.flows[flow].name, "phase");
        stream.uniform_duration(Duration::from_secs_f64(longest))
    };
    let own: Vec<Duration> = (0..scenario.flows.len()).map(own).collect();
    let mut moved = scenario.clone();
    moved.phase_jitter = 0.0;
    for (flow, described) in moved.flows.iter_mut().enumerate() {
        let mut carrier = Some(flow);
        while let Some(number) = carrier {
            described.start = described.start.saturating_add(own[number]);
            carrier = scenario.flows[number].via;
        }
    }
    moved
}
