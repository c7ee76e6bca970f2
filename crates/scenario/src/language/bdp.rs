//! Queue limits as multiples of a bandwidth-delay product: the rate of the link times `bdp_rtt`.
//!
//! The default of `bdp_rtt` depends on the flows, so these limits are resolved when links and flows are known. The base
//! round-trip time of a flow is the propagation delay over all hops in both directions, without transmission and
//! queueing. A flow uses both directions of the links on its path, because its acknowledgments or responses return on
//! the same links.

use super::Diagnostics;
use super::network::{Network, discipline};
use crate::description::{BdpLimit, Flow, QueueLimit, routing};
use crate::schema::{SourceLocation, Tree, Value, ValueData};
use fullpipe_network::discipline::settings::{LIMIT_KEY, LinkParameters};
use fullpipe_network::routing::RoutingTables;
use fullpipe_network::{Limit, MediumDirection, NextHop};
use fullpipe_units::{BdpMultiple, Duration, LinkQueueLimit, NodeId};
use std::collections::BTreeMap;

/// The transmitter of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transmitter {
    /// A direction of a link.
    Link(usize),
    /// The stations of a shared segment.
    Ethernet(usize),
}

/// A queue whose limit is a multiple of a bandwidth-delay product and cannot be resolved before the flows are known.
pub(crate) struct PendingBdpLimit {
    of: Transmitter,
    name: String,
    device: LinkParameters,
    queue: LinkQueueLimit,
    discipline: Tree,
    round_trip: Option<Duration>,
    path: String,
    /// The keys that state a multiple, with their places and multiples.
    keys: Vec<(String, SourceLocation, BdpMultiple)>,
}

/// Returns the limit of the device queue. Under `kind = "none"` it is the limit of the discipline if there is one,
/// otherwise `queue`.
pub(super) fn device_limit(tree: &Tree) -> Option<(&'static str, &Value)> {
    let discipline = tree.table("discipline");
    match discipline.get(LIMIT_KEY).filter(|_| is_none(discipline)) {
        Some(limit) => Some(("discipline.limit", limit)),
        None => tree.get("queue").map(|queue| ("queue", queue)),
    }
}

/// Returns whether a `discipline` table means the device queue alone.
pub(super) fn is_none(discipline: &Tree) -> bool {
    discipline.choice("kind") == "none"
}

/// Returns the queue of a link or segment if a key limits it by a bandwidth-delay product.
pub(super) fn pending(
    of: Transmitter,
    name: &str,
    tree: &Tree,
    device: LinkParameters,
    path: &str,
) -> Option<PendingBdpLimit> {
    let mut keys = Vec::new();
    let limit = device_limit(tree);
    if let Some((key, value)) = limit.filter(|(key, _)| *key == "queue") {
        multiples(value, key, &mut keys);
    }
    let discipline = tree.table("discipline");
    discipline.iter().for_each(|(key, value)| multiples(value, &format!("discipline.{key}"), &mut keys));
    let queue = limit.map_or(QueueLimit::Packets(0).into(), |(_, value)| value.link_queue_limit());
    (!keys.is_empty()).then(|| PendingBdpLimit {
        of,
        name: name.to_owned(),
        device,
        queue,
        discipline: discipline.clone(),
        round_trip: tree.get("bdp_rtt").map(Value::duration),
        path: path.to_owned(),
        keys,
    })
}

/// Collects the multiples of a bandwidth-delay product in a value.
fn multiples(value: &Value, path: &str, keys: &mut Vec<(String, SourceLocation, BdpMultiple)>) {
    match &value.data {
        ValueData::LinkQueueLimit(LinkQueueLimit::Bdp(multiple)) => {
            keys.push((path.to_owned(), value.place, *multiple))
        }
        ValueData::Table(tree) => tree.iter().for_each(|(key, value)| multiples(value, &format!("{path}.{key}"), keys)),
        ValueData::Tables(trees) => {
            for (index, tree) in trees.iter().enumerate() {
                tree.iter().for_each(|(key, value)| multiples(value, &format!("{path}.{index}.{key}"), keys));
            }
        }
        _ => {}
    }
}

/// Sets the limits of the pending queues and returns these limits.
pub(super) fn resolve(
    network: &mut Network,
    flows: &[Flow],
    duration: Duration,
    check: &mut Diagnostics,
) -> Vec<BdpLimit> {
    let waiting = std::mem::take(&mut network.pending);
    if waiting.is_empty() {
        return Vec::new();
    }
    let longest = match waiting.iter().any(|pending| pending.round_trip.is_none()) {
        true => longest_round_trips(network, flows),
        false => BTreeMap::new(),
    };
    let mut limits = Vec::new();
    for pending in waiting {
        if check.is_full() {
            break;
        }
        let Some(round_trip) = pending.round_trip.or_else(|| longest.get(&pending.of).copied()) else {
            let (key, place, _) = &pending.keys[0];
            let message = format!("no flow uses {}, so its bandwidth-delay product is unknown", pending.name);
            let expected = vec!["a flow through it, or bdp_rtt".to_owned()];
            check.add_error(*place, &format!("{}.{key}", pending.path), message, expected);
            continue;
        };
        let rate = match pending.of {
            Transmitter::Link(link) => network.links[link].course.mean_rate(pending.device.rate, duration),
            Transmitter::Ethernet(_) => pending.device.rate,
        };
        let device = LinkParameters { bdp: (rate, round_trip), ..pending.device };
        let queue = device.resolve_limit(pending.queue);
        let discipline = discipline(&pending.discipline, device, &pending.path, check);
        match pending.of {
            Transmitter::Link(link) => {
                let link = &mut network.links[link];
                (link.queue, link.discipline) = (queue, discipline);
            }
            Transmitter::Ethernet(segment) => {
                let segment = &mut network.ethernets[segment];
                (segment.device_queue, segment.discipline) = (Limit::from_queue_limit(queue, device.rate), discipline);
            }
        }
        limits.extend(pending.keys.into_iter().map(|(key, _, multiple)| BdpLimit {
            link: pending.name.clone(),
            key,
            multiple,
            rate,
            round_trip,
            bytes: multiple.bytes(rate, round_trip),
        }));
    }
    limits
}

/// Returns the largest base round-trip time of the flows through each link and segment.
fn longest_round_trips(network: &Network, flows: &[Flow]) -> BTreeMap<Transmitter, Duration> {
    let routing = routing(&network.nodes, &network.links, &network.ethernets, &network.access);
    let mut longest = BTreeMap::new();
    for flow in flows {
        let via = flow.via.map(|tunnel| (flows[tunnel].from, flows[tunnel].to));
        let legs = match via {
            Some((client, proxy)) => vec![(client, proxy), (proxy, flow.to)],
            None => vec![(flow.from, flow.to)],
        };
        let mut round_trip = Duration::ZERO;
        let mut passed = Vec::new();
        for (a, b) in legs {
            for (from, to) in [(a, b), (b, a)] {
                round_trip = round_trip.saturating_add(walk(network, &routing, from, to, &mut passed));
            }
        }
        for transmitter in passed {
            let known: &mut Duration = longest.entry(transmitter).or_insert(round_trip);
            *known = (*known).max(round_trip);
        }
    }
    longest
}

/// Returns the propagation delay from one node to another. Appends the transmitters on the path.
fn walk(
    network: &Network,
    routing: &RoutingTables,
    from: NodeId,
    to: NodeId,
    passed: &mut Vec<Transmitter>,
) -> Duration {
    let mut propagation = Duration::ZERO;
    let mut at = from;
    // A route has fewer hops than there are nodes.
    for _ in 0..network.nodes.len() {
        if at == to {
            break;
        }
        let (next, delay) = match routing.next_hop(at, to) {
            NextHop::Link(link) => {
                let number = link.index();
                passed.push(Transmitter::Link(number));
                (network.links[number].to, network.links[number].delay)
            }
            NextHop::Station { segment, station } => {
                let number = segment as usize;
                passed.push(Transmitter::Ethernet(number));
                (network.ethernets[number].hosts[station as usize], network.ethernets[number].delay)
            }
            NextHop::Medium { medium, way, station } => {
                let access = &network.access[usize::from(medium)];
                let next =
                    if way == MediumDirection::Uplink { access.hub() } else { access.stations()[station as usize] };
                (next, access.bounds(way).least_delay)
            }
            NextHop::Translation | NextHop::None => break,
        };
        propagation = propagation.saturating_add(delay);
        at = next;
    }
    propagation
}
