//! Who takes a random time before sending: by default hosts whose flows share a drop-tail queue with others.
//!
//! Several deterministic flows through one drop-tail queue have phase effects (Floyd and Jacobson 1991): which of them
//! loses hangs on nanoseconds. A random processing time of at most one packet's transmission time at the bottleneck
//! removes them. A flow's bottleneck is the slowest drop-tail link on its way that others share; a host whose flows have
//! several takes the shortest of their times.

use crate::witness::Witness;
use crate::world::ends;
use fullpipe_network::{Attachment, Network};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Link;
use fullpipe_units::{Duration, NodeId, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// The time that a full packet takes on a link.
fn packet_time(link: &Link) -> Duration {
    let bits = u128::from(link.mtu_bytes + link.framing_bytes) * 8_000_000_000;
    let rate = u128::from(link.rate.bits_per_second()).max(1);
    Duration::from_nanos(u64::try_from(bits / rate).unwrap_or(u64::MAX))
}

/// The longest processing time of each host that has one.
fn limits(scenario: &Scenario, network: &Network<Witness>) -> BTreeMap<NodeId, Duration> {
    let mut ways: Vec<(NodeId, NodeId)> = Vec::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let [forward, back] = flow.workload.senders();
        let (from, to) = ends(scenario, number);
        ways.extend(forward.then_some((from, to)));
        ways.extend(back.then_some((to, from)));
    }
    if let Some(fixed) = scenario.processing_jitter {
        let hosts: BTreeSet<NodeId> = ways.into_iter().map(|(from, _)| from).collect();
        return hosts.into_iter().filter(|_| !fixed.is_zero()).map(|host| (host, fixed)).collect();
    }
    if ways.len() < 2 {
        return BTreeMap::new();
    }
    let drop_tail = |hop: &Attachment| match hop {
        Attachment::Link(link) if scenario.links[link.index()].discipline.is_none() => Some(link.index()),
        _ => None,
    };
    // Flows between the same two hosts take the same way: its links are found once.
    let mut counts: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
    ways.iter().for_each(|way| *counts.entry(*way).or_default() += 1);
    let paths: Vec<(NodeId, u32, Vec<usize>)> = counts
        .into_iter()
        .map(|((from, to), flows)| (from, flows, network.path(from, to).iter().filter_map(drop_tail).collect()))
        .collect();
    let mut sharing = vec![0u32; scenario.links.len()];
    for (_, flows, path) in &paths {
        path.iter().for_each(|link| sharing[*link] += flows);
    }
    let mut limits: BTreeMap<NodeId, Duration> = BTreeMap::new();
    for (from, _, path) in &paths {
        let shared = path.iter().filter(|link| sharing[**link] > 1).map(|link| packet_time(&scenario.links[*link]));
        if let Some(time) = shared.max() {
            limits.entry(*from).and_modify(|limit| *limit = time.min(*limit)).or_insert(time);
        }
    }
    limits
}

/// Gives hosts their processing times, except those that have their own; routes must be known.
pub(crate) fn set(scenario: &Scenario, network: &mut Network<Witness>, except: impl Fn(NodeId) -> bool) {
    for (host, limit) in limits(scenario, network).into_iter().filter(|(host, _)| !except(*host)) {
        let stream = Stream::new(scenario.seed, &scenario.nodes[host.index()].name, "processing");
        network.set_processing_jitter(host, limit, stream);
    }
}
