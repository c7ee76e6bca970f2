//! Random start times of flows.
//!
//! With `start_jitter`, a flow is delayed by a random time. With `phase_jitter`, each flow is delayed by a random
//! fraction of its base round-trip time. Runs then show whether a result depends on the phase between flows (Floyd and
//! Jacobson 1991).

use crate::witness::RunObserver;
use crate::world::ends;
use fullpipe_network::Network;
use fullpipe_scenario::Scenario;
use fullpipe_units::{Duration, RandomStream};
use std::sync::Arc;

/// IP bytes of a full packet.
const FULL_BYTES: f64 = 1500.0;
/// IP bytes of an acknowledgment.
const SMALL_BYTES: f64 = 40.0;

/// Returns the scenario with start times drawn from its seed. Each flow has its own random stream. The result has no
/// `start_jitter`, so a second call has no effect.
pub(crate) fn drawn(scenario: Arc<Scenario>) -> Arc<Scenario> {
    if scenario.flows.iter().all(|flow| flow.start_jitter.is_zero()) {
        return scenario;
    }
    let mut drawn = Scenario::clone(&scenario);
    for flow in drawn.flows.iter_mut().filter(|flow| !flow.start_jitter.is_zero()) {
        let later = RandomStream::new(scenario.seed, &flow.name, "start").uniform_below(flow.start_jitter.as_nanos());
        flow.start = flow.start.saturating_add(Duration::from_nanos(later));
        flow.start_jitter = Duration::ZERO;
    }
    Arc::new(drawn)
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
