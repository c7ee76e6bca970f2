//! The routes of a scenario: their transmitters, and the number of events that a packet costs on each route.
//!
//! The rules of [`fullpipe_network::chain`], applied to the scenario, determine which links are computed together with
//! the previous one.

use crate::world::ends;
use fullpipe_network::{Limit, LinkProfile, MediumDirection, NextHop, metrics};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Link, ProbeSubject};
use fullpipe_units::NodeId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Events of a frame on a segment (full duplex, half duplex): its arrival, the end of the interframe gap, and some
/// backoffs on a shared medium.
const SEGMENT_EVENTS: [f64; 2] = [2.0, 3.0];

/// A transmitter: a direction of a link, a shared segment, or a direction of an access network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmitter {
    pub(super) bits_per_s: f64,
    pub(super) delay_s: f64,
    pub(super) queue: Limit,
    pub(super) framing_bytes: f64,
    /// Whether the transmitter loses or delays frames at random.
    pub(super) is_impaired: bool,
    /// Whether the transmitter's rate depends on a radio channel.
    pub(super) is_radio: bool,
}

/// A route between two nodes.
#[derive(Clone, Debug)]
pub(super) struct Path {
    hops: Range<usize>,
    /// Propagation delay in seconds.
    pub(super) delay_s: f64,
    /// Number of events of a packet on this route.
    pub(super) events: f64,
    pub(super) is_impaired: bool,
    pub(super) is_radio: bool,
}

/// The routes between all pairs of nodes that exchange packets.
#[derive(Debug)]
pub(super) struct Paths {
    pub(super) transmitters: Vec<Transmitter>,
    hops: Vec<u32>,
    pub(super) paths: Vec<Path>,
    numbers: BTreeMap<(NodeId, NodeId), u32>,
}

/// The transmitter or node that precedes a link on the routes that use the link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Feeder {
    Unused,
    Only(u32),
    Several,
}

impl Feeder {
    fn add(&mut self, previous: Option<u32>) {
        *self = match (previous, *self) {
            (Some(before), Feeder::Unused) => Feeder::Only(before),
            (Some(before), Feeder::Only(same)) if same == before => Feeder::Only(same),
            _ => Feeder::Several,
        };
    }
}

impl Paths {
    pub(super) fn new(scenario: &Scenario) -> Paths {
        let mut paths = Paths {
            transmitters: transmitters(scenario),
            hops: Vec::new(),
            paths: Vec::new(),
            numbers: BTreeMap::new(),
        };
        paths.find(scenario);
        paths.count_events(scenario);
        paths
    }

    /// Returns the number of the route between two nodes whose flows exchange packets.
    pub(super) fn between(&self, from: NodeId, to: NodeId) -> u32 {
        self.numbers.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Returns the transmitters of a route, in order.
    pub(super) fn hops(&self, path: u32) -> &[u32] {
        self.paths.get(path as usize).map_or(&[], |path| &self.hops[path.hops.clone()])
    }

    fn find(&mut self, scenario: &Scenario) {
        let routing = scenario.routing();
        let mut last = None;
        for flow in 0..scenario.flows.len() {
            let (a, b) = ends(scenario, flow);
            // Flows of a group often have the same ends.
            if last.replace((a, b)) == Some((a, b)) || self.numbers.contains_key(&(a, b)) {
                continue;
            }
            for (from, to) in [(a, b), (b, a)] {
                let begin = self.hops.len();
                let mut at = from;
                // No route is longer than the number of nodes.
                for _ in 0..scenario.nodes.len() {
                    if at == to {
                        break;
                    }
                    let Some((transmitter, next)) = hop(scenario, routing.next_hop(at, to)) else { break };
                    self.hops.push(transmitter as u32);
                    at = next;
                }
                let hops = begin..self.hops.len();
                let on_route = || self.hops[hops.clone()].iter().map(|hop| &self.transmitters[*hop as usize]);
                let path = Path {
                    delay_s: on_route().map(|transmitter| transmitter.delay_s).sum(),
                    events: 0.0,
                    is_impaired: on_route().any(|transmitter| transmitter.is_impaired),
                    is_radio: on_route().any(|transmitter| transmitter.is_radio),
                    hops: hops.clone(),
                };
                self.numbers.insert((from, to), self.paths.len() as u32);
                self.paths.push(path);
            }
        }
    }

    fn count_events(&mut self, scenario: &Scenario) {
        let watched = watched_links(scenario);
        let feeders = self.feeders(scenario, &watched);
        let (links, segments) = (scenario.links.len(), scenario.ethernets.len());
        let waits = scenario.processing_jitter.map_or(scenario.flows.len() > 1, |jitter| !jitter.is_zero());
        for path in &mut self.paths {
            let hops = &self.hops[path.hops.clone()];
            let mut events = 0.0;
            for (place, hop) in hops.iter().map(|hop| *hop as usize).enumerate() {
                if hop >= links + segments {
                    continue;
                }
                if let Some(segment) = hop.checked_sub(links) {
                    events += SEGMENT_EVENTS[usize::from(scenario.ethernets[segment].half_duplex)];
                    continue;
                }
                let previous = place.checked_sub(1).map(|before| hops[before]);
                let is_booked_before = previous.is_some_and(|before| feeders.get(hop) == Some(&Feeder::Only(before)));
                let waits_for_medium = hops.get(place + 1).is_some_and(|next| {
                    feeders.get(*next as usize) == Some(&Feeder::Only(hop as u32)) && *next as usize >= links + segments
                });
                events += f64::from(u8::from(!is_booked_before)) - f64::from(u8::from(waits_for_medium));
                events += f64::from(u8::from(scenario.links[hop].discipline.is_some()));
            }
            // A host's link that is not computed ahead also needs an event for the processing time.
            let first = hops.first().map(|hop| *hop as usize);
            let is_ahead = first.and_then(|hop| scenario.links.get(hop).zip(watched.as_ref()?.get(hop)));
            let is_ahead = is_ahead.is_some_and(|(link, watched)| is_plain(link) && !watched);
            path.events = events.max(0.0) + f64::from(u8::from(waits && !is_ahead));
        }
    }

    /// Returns the feeder of each transmitter if the rules permit that both are computed together.
    fn feeders(&self, scenario: &Scenario, watched: &Option<Vec<bool>>) -> Vec<Feeder> {
        let Some(watched) = watched else { return Vec::new() };
        let (links, segments) = (scenario.links.len(), scenario.ethernets.len());
        let translates = |node: NodeId| scenario.nats.iter().any(|nat| nat.router == node);
        let mut feeders = vec![Feeder::Unused; self.transmitters.len()];
        for path in &self.paths {
            let mut previous: Option<u32> = None;
            for hop in &self.hops[path.hops.clone()] {
                let number = *hop as usize;
                feeders[number].add(previous);
                let link = scenario.links.get(number);
                let keeps = link.is_some_and(|link| {
                    link.discipline.is_none() && link.impairments.effects().permit_chains() && !translates(link.to)
                });
                previous = keeps.then_some(*hop);
            }
        }
        for (number, feeder) in feeders.iter_mut().enumerate() {
            let may_follow = match scenario.links.get(number) {
                Some(link) => is_plain(link) && !watched[number],
                // These are downlinks of access networks to stations, never segments.
                None => number >= links + segments && (number - links - segments).is_multiple_of(2),
            };
            if !may_follow {
                *feeder = Feeder::Several;
            }
        }
        feeders
    }
}

/// Returns whether the departure time of a frame is known at its arrival.
fn is_plain(link: &Link) -> bool {
    link.discipline.is_none() && !matches!(link.course, LinkProfile::Trace(_))
}

/// Returns which links are observed during the run; `None` if no link is computed ahead.
fn watched_links(scenario: &Scenario) -> Option<Vec<bool>> {
    let mut watched = vec![false; scenario.links.len()];
    for probe in &scenario.probes {
        match probe.subject {
            ProbeSubject::Flow(_) if probe.metrics.iter().any(|metric| metric == metrics::DROPS.name) => return None,
            ProbeSubject::Link(link) => watched[link] = true,
            _ => {}
        }
    }
    Some(watched)
}

/// Returns the number of a hop's transmitter, and the node at its end.
fn hop(scenario: &Scenario, hop: NextHop) -> Option<(usize, NodeId)> {
    let (links, segments) = (scenario.links.len(), scenario.ethernets.len());
    match hop {
        NextHop::Link(link) => Some((link.index(), scenario.links.get(link.index())?.to)),
        NextHop::Station { segment, station } => {
            let host = scenario.ethernets.get(segment as usize)?.hosts.get(station as usize)?;
            Some((links + segment as usize, *host))
        }
        NextHop::Medium { medium, way, station } => {
            let access = scenario.access.get(usize::from(medium))?;
            let end =
                if way == MediumDirection::Uplink { access.hub() } else { *access.stations().get(station as usize)? };
            Some((links + segments + 2 * usize::from(medium) + usize::from(way == MediumDirection::Uplink), end))
        }
        NextHop::Translation | NextHop::None => None,
    }
}

/// Returns the transmitters: links, then segments, then both directions of each access network.
fn transmitters(scenario: &Scenario) -> Vec<Transmitter> {
    let links = scenario.links.iter().map(|link| Transmitter {
        bits_per_s: link.course.mean_rate(link.rate, scenario.duration).bits_per_second() as f64,
        delay_s: link.delay.as_secs_f64(),
        queue: match link.discipline.as_ref().map(|discipline| discipline.capacity()) {
            Some(capacity) => match (capacity.bytes, capacity.packets) {
                (Some(bytes), _) => Limit::Bytes(bytes),
                (None, Some(packets)) => Limit::Packets(packets),
                (None, None) => Limit::Unlimited,
            },
            None => Limit::from_queue_limit(link.queue, link.rate),
        },
        framing_bytes: f64::from(link.framing_bytes),
        is_impaired: !link.impairments.list.is_empty(),
        is_radio: false,
    });
    let segments = scenario.ethernets.iter().map(|segment| {
        // Stations of a full-duplex segment do not share a medium.
        let media = if segment.half_duplex { 1.0 } else { segment.hosts.len() as f64 };
        Transmitter {
            bits_per_s: segment.rate.bits_per_second() as f64 * media,
            delay_s: segment.delay.as_secs_f64(),
            queue: segment.device_queue,
            framing_bytes: f64::from(segment.framing_bytes),
            is_impaired: false,
            is_radio: false,
        }
    });
    let ways = scenario.access.iter().flat_map(|access| {
        MediumDirection::ALL.map(|way| {
            let promise = access.bounds(way);
            Transmitter {
                bits_per_s: if promise.rate_bps == 0 { f64::INFINITY } else { promise.rate_bps as f64 },
                delay_s: promise.least_delay.as_secs_f64(),
                queue: Limit::Packets(0),
                framing_bytes: 0.0,
                is_impaired: false,
                is_radio: true,
            }
        })
    });
    links.chain(segments).chain(ways).collect()
}
