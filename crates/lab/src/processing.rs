//! Random processing times of hosts. By default, hosts have them if their flows share a queue or a medium.
//!
//! Several deterministic flows through one queue have phase effects (Floyd and Jacobson 1991): differences of
//! nanoseconds determine which flow has losses, or which flow waits. A random processing time of at most one packet's
//! transmission time at the bottleneck removes these effects. A flow's bottleneck is the slowest link, segment or
//! medium on its route that at least two flows use, with any queue discipline. If a host's flows have several
//! bottlenecks, the shortest time applies. A single flow remains deterministic.

use crate::witness::RunObserver;
use crate::world::ends;
use fullpipe_network::{MediumDirection, Network, NextHop};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Transport;
use fullpipe_units::{Duration, NodeId, RandomStream};
use std::collections::{BTreeMap, BTreeSet};

/// A resource that flows can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// One direction of a link, with its queue.
    Link(usize),
    /// A half-duplex segment, by its number.
    Hub(u32),
    /// The traffic of a station of a full-duplex segment: the segment and the sending node.
    Station(u32, NodeId),
    /// One direction of an access network.
    Medium(u16, MediumDirection),
}

impl Shared {
    /// Returns all shared resources on the route from one node to another.
    fn on_route(scenario: &Scenario, network: &Network<RunObserver>, from: NodeId, to: NodeId) -> Vec<Shared> {
        let mut at = from;
        let hops = network.path(from, to).into_iter();
        let shared = hops.filter_map(|hop| {
            let sender = at;
            at = network.hop_destination(hop)?;
            match hop {
                NextHop::Link(link) => Some(Shared::Link(link.index())),
                NextHop::Station { segment, .. } if scenario.ethernets[segment as usize].half_duplex => {
                    Some(Shared::Hub(segment))
                }
                NextHop::Station { segment, .. } => Some(Shared::Station(segment, sender)),
                NextHop::Medium { medium, way, .. } => Some(Shared::Medium(medium, way)),
                NextHop::Translation | NextHop::None => None,
            }
        });
        shared.collect()
    }

    /// Returns the transmission time of a full packet. In an access network, this is the time at its highest rate.
    fn packet_time(self, scenario: &Scenario) -> Duration {
        let (bytes, bits_per_second) = match self {
            Shared::Link(link) => {
                let link = &scenario.links[link];
                (link.mtu_bytes + link.framing_bytes, link.rate.bits_per_second())
            }
            Shared::Hub(segment) | Shared::Station(segment, _) => {
                let segment = &scenario.ethernets[segment as usize];
                (segment.mtu_bytes + segment.framing_bytes, segment.rate.bits_per_second())
            }
            Shared::Medium(medium, way) => {
                let access = &scenario.access[usize::from(medium)];
                (access.mtu_bytes(), access.bounds(way).rate_bps)
            }
        };
        let nanoseconds = u128::from(bytes) * 8_000_000_000 / u128::from(bits_per_second).max(1);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// Returns the pairs of nodes between which a flow's data is sent: those of the flow itself and those of the tunnels
/// that carry it. A tunnel itself has no data.
pub(crate) fn legs(scenario: &Scenario, number: usize) -> Vec<(NodeId, NodeId)> {
    if matches!(scenario.flows[number].transport, Transport::Masque(_)) {
        return Vec::new();
    }
    let [forward, back] = scenario.flows[number].workload.senders();
    let mut legs = Vec::new();
    let mut carrier = Some(number);
    while let Some(flow) = carrier {
        let (from, to) = ends(scenario, flow);
        legs.extend(forward.then_some((from, to)));
        legs.extend(back.then_some((to, from)));
        carrier = scenario.flows[flow].via;
    }
    legs
}

/// Returns the maximum processing time of each host that has one.
fn limits(scenario: &Scenario, network: &Network<RunObserver>) -> BTreeMap<NodeId, Duration> {
    let legs_of_flows = || (0..scenario.flows.len()).map(|flow| legs(scenario, flow));
    if let Some(fixed) = scenario.processing_jitter {
        let hosts: BTreeSet<NodeId> = legs_of_flows().flatten().map(|(from, _)| from).collect();
        return hosts.into_iter().filter(|_| !fixed.is_zero()).map(|host| (host, fixed)).collect();
    }
    if scenario.flows.len() < 2 {
        return BTreeMap::new();
    }
    // Flows between the same two nodes have the same route, which is computed once.
    let mut routes: BTreeMap<(NodeId, NodeId), Vec<Shared>> = BTreeMap::new();
    let mut users: BTreeMap<Shared, u32> = BTreeMap::new();
    for legs in legs_of_flows() {
        let mut used = BTreeSet::new();
        for (from, to) in legs {
            let route = routes.entry((from, to)).or_insert_with(|| Shared::on_route(scenario, network, from, to));
            used.extend(route.iter().copied());
        }
        used.into_iter().for_each(|shared| *users.entry(shared).or_default() += 1);
    }
    let mut limits: BTreeMap<NodeId, Duration> = BTreeMap::new();
    for ((from, _), route) in &routes {
        let shared = route.iter().filter(|shared| users[shared] > 1).map(|shared| shared.packet_time(scenario));
        if let Some(time) = shared.max() {
            limits.entry(*from).and_modify(|limit| *limit = time.min(*limit)).or_insert(time);
        }
    }
    limits
}

/// Sets the processing times of hosts, except those for which `except` holds. Routes must be computed first.
pub(crate) fn set(scenario: &Scenario, network: &mut Network<RunObserver>, except: impl Fn(NodeId) -> bool) {
    for (host, limit) in limits(scenario, network).into_iter().filter(|(host, _)| !except(*host)) {
        let stream = RandomStream::new(scenario.seed, &scenario.nodes[host.index()].name, "processing");
        network.set_processing_jitter(host, limit, stream);
    }
}
