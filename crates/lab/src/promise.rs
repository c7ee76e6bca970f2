//! The properties of links that a scenario declares, in the auditor's types.

use fullpipe_audit::{Course, DeclaredLink, Medium, QueuePromise, Variation};
use fullpipe_network::access::{AccessNetworkSettings, WayPromise};
use fullpipe_network::discipline::settings::Capacity;
use fullpipe_network::{self as network, Limit, Way, mahimahi};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Discipline, Link};

/// Point-to-point links in the order of the scenario, then shared media (half duplex) or stations' paths (full duplex), then the
/// directions of access networks. This is the order in which the network numbers them.
pub(crate) fn declared_links(scenario: &Scenario) -> Vec<DeclaredLink> {
    let mut declared: Vec<DeclaredLink> = scenario.links.iter().map(declared_link).collect();
    for ethernet in &scenario.ethernets {
        let shared = DeclaredLink {
            name: ethernet.name.clone(),
            medium: Medium::HalfDuplex,
            rate_bps: ethernet.rate.bits_per_second(),
            delay_ns: ethernet.delay.as_nanos(),
            delay_varies: false,
            varies: Variation::default(),
            framing_bytes: ethernet.framing_bytes,
            min_frame_bytes: ethernet.min_frame_bytes,
            mtu_bytes: ethernet.mtu_bytes,
            queue: None,
        };
        if ethernet.half_duplex {
            declared.push(shared);
        } else {
            declared.extend(ethernet.hosts.iter().map(|host| DeclaredLink {
                name: format!("{} {}", ethernet.name, scenario.nodes[host.index()].name),
                medium: Medium::PointToPoint,
                queue: queue_promise(ethernet.device_queue, &ethernet.discipline),
                ..shared.clone()
            }));
        }
    }
    declared.extend(scenario.access.iter().flat_map(|access| Way::ALL.map(|way| declared_way(&**access, way))));
    declared
}

fn declared_way(access: &dyn AccessNetworkSettings, way: Way) -> DeclaredLink {
    let WayPromise { rate_bps, least_delay } = access.promise(way);
    DeclaredLink {
        name: access.link_name(way),
        medium: Medium::Scheduled,
        rate_bps,
        delay_ns: least_delay.as_nanos(),
        delay_varies: true,
        varies: Variation::default(),
        framing_bytes: 0,
        min_frame_bytes: 0,
        mtu_bytes: access.mtu_bytes(),
        queue: None,
    }
}

fn declared_link(link: &Link) -> DeclaredLink {
    let (course, rate_bps) = course(link);
    let steps = match &link.course {
        network::Course::Steps(schedule) => schedule.steps(),
        network::Course::Constant | network::Course::Trace(_) => &[],
    };
    let delays = steps.iter().filter_map(|step| step.delay);
    let least = delays.clone().fold(link.delay, std::cmp::Ord::min);
    let effects = link.impairments.effects();
    DeclaredLink {
        name: link.name.clone(),
        medium: Medium::PointToPoint,
        rate_bps,
        delay_ns: least.as_nanos(),
        delay_varies: delays.count() > 0 || effects.delays,
        varies: Variation { course, reorders: effects.reorders, duplicates: effects.duplicates },
        framing_bytes: link.framing_bytes,
        min_frame_bytes: 0,
        mtu_bytes: link.mtu_bytes,
        queue: link_queue_promise(link),
    }
}

/// The queue limits of a link.
pub(crate) fn link_queue_promise(link: &Link) -> Option<QueuePromise> {
    queue_promise(Limit::at(link.queue, link.rate), &link.discipline)
}

/// The rate over time, and the highest rate; 0 if the link transmits at given times and no rate limits a frame.
fn course(link: &Link) -> (Course, u64) {
    let first_bps = link.rate.bits_per_second();
    match &link.course {
        network::Course::Constant => (Course::Constant, first_bps),
        network::Course::Steps(schedule) => {
            let rates =
                schedule.steps().iter().filter_map(|step| Some((step.at.as_nanos(), step.rate?.bits_per_second())));
            let steps: Vec<(u64, u64)> = rates.collect();
            let highest = steps.iter().map(|(_, rate)| *rate).fold(first_bps, u64::max);
            let repeat_ns = schedule.repeat().map(|round| round.as_nanos());
            (Course::Steps { first_bps, steps, repeat_ns }, highest)
        }
        network::Course::Trace(trace) => {
            let at_ns = trace.opportunities().iter().map(|ms| ms * 1_000_000).collect();
            (Course::Opportunities { at_ns, bytes: mahimahi::OPPORTUNITY_BYTES }, 0)
        }
    }
}

/// The limits of the device queue, and of the discipline if there is one.
fn queue_promise(device: Limit, above: &Option<Discipline>) -> Option<QueuePromise> {
    let above = above.as_ref().map_or(Capacity::NOTHING, |discipline| discipline.capacity());
    let Capacity { packets, bytes } = Capacity::of(device).plus(above);
    Some(QueuePromise { packets, bytes })
}
