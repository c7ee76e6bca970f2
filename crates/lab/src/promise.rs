//! The properties of links that a scenario declares, in the auditor's types.

use fullpipe_audit::{DeclaredLink, DeclaredQueueLimit, LinkVariation, MediumAccess, RateProfile};
use fullpipe_network::access::{AccessNetworkSettings, DirectionBounds};
use fullpipe_network::discipline::settings::QueueCapacity;
use fullpipe_network::{self as network, Limit, MediumDirection, mahimahi};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Discipline, Link};

/// Returns the declared links: point-to-point links in the order of the scenario, then shared media (half duplex) or
/// stations' paths (full duplex), then the directions of access networks. The network numbers them in this order.
pub(crate) fn declared_links(scenario: &Scenario) -> Vec<DeclaredLink> {
    let mut declared: Vec<DeclaredLink> = scenario.links.iter().map(declared_link).collect();
    for ethernet in &scenario.ethernets {
        let shared = DeclaredLink {
            name: ethernet.name.clone(),
            medium: MediumAccess::HalfDuplex,
            rate_bps: ethernet.rate.bits_per_second(),
            delay_ns: ethernet.delay.as_nanos(),
            delay_varies: false,
            varies: LinkVariation::default(),
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
                medium: MediumAccess::PointToPoint,
                queue: queue_promise(ethernet.device_queue, &ethernet.discipline),
                ..shared.clone()
            }));
        }
    }
    declared
        .extend(scenario.access.iter().flat_map(|access| MediumDirection::ALL.map(|way| declared_way(&**access, way))));
    declared
}

fn declared_way(access: &dyn AccessNetworkSettings, way: MediumDirection) -> DeclaredLink {
    let DirectionBounds { rate_bps, least_delay } = access.bounds(way);
    DeclaredLink {
        name: access.link_name(way),
        medium: MediumAccess::Scheduled,
        rate_bps,
        delay_ns: least_delay.as_nanos(),
        delay_varies: true,
        varies: LinkVariation::default(),
        framing_bytes: 0,
        min_frame_bytes: 0,
        mtu_bytes: access.mtu_bytes(),
        queue: None,
    }
}

fn declared_link(link: &Link) -> DeclaredLink {
    let (course, rate_bps) = course(link);
    let steps = match &link.course {
        network::LinkProfile::Steps(schedule) => schedule.steps(),
        network::LinkProfile::Constant | network::LinkProfile::Trace(_) => &[],
    };
    let delays = steps.iter().filter_map(|step| step.delay);
    let least = delays.clone().fold(link.delay, std::cmp::Ord::min);
    let effects = link.impairments.effects();
    DeclaredLink {
        name: link.name.clone(),
        medium: MediumAccess::PointToPoint,
        rate_bps,
        delay_ns: least.as_nanos(),
        delay_varies: delays.count() > 0 || effects.delays,
        varies: LinkVariation { course, reorders: effects.reorders, duplicates: effects.duplicates },
        framing_bytes: link.framing_bytes,
        min_frame_bytes: 0,
        mtu_bytes: link.mtu_bytes,
        queue: link_queue_promise(link),
    }
}

/// Changes the declaration of a link whose rate and delay the program changes during the run. Future values are unknown,
/// so no minimum delay is declared.
pub(crate) fn declare_adjustable(link: &mut DeclaredLink) {
    link.varies.course = RateProfile::Steps { first_bps: link.rate_bps, steps: Vec::new(), repeat_ns: None };
    link.rate_bps = 0;
    link.delay_ns = 0;
    link.delay_varies = true;
}

/// Returns the declared queue limits of a link.
pub(crate) fn link_queue_promise(link: &Link) -> Option<DeclaredQueueLimit> {
    queue_promise(Limit::from_queue_limit(link.queue, link.rate), &link.discipline)
}

/// Returns the rate over time and the highest rate. The highest rate is 0 if the link transmits at given times, so that
/// no rate limits a frame.
fn course(link: &Link) -> (RateProfile, u64) {
    let first_bps = link.rate.bits_per_second();
    match &link.course {
        network::LinkProfile::Constant => (RateProfile::Constant, first_bps),
        network::LinkProfile::Steps(schedule) => {
            let rates =
                schedule.steps().iter().filter_map(|step| Some((step.at.as_nanos(), step.rate?.bits_per_second())));
            let steps: Vec<(u64, u64)> = rates.collect();
            let highest = steps.iter().map(|(_, rate)| *rate).fold(first_bps, u64::max);
            let repeat_ns = schedule.period().map(|round| round.as_nanos());
            (RateProfile::Steps { first_bps, steps, repeat_ns }, highest)
        }
        network::LinkProfile::Trace(trace) => {
            let at_ns = trace.opportunities().iter().map(|ms| ms * 1_000_000).collect();
            let period_ns = trace.period().as_nanos();
            (RateProfile::Opportunities { at_ns, period_ns, bytes: mahimahi::OPPORTUNITY_BYTES }, 0)
        }
    }
}

/// Returns the declared limits of the device queue, and of the discipline if there is one.
fn queue_promise(device: Limit, above: &Option<Discipline>) -> Option<DeclaredQueueLimit> {
    let above = above.as_ref().map_or(QueueCapacity::NOTHING, |discipline| discipline.capacity());
    let QueueCapacity { packets, bytes } = QueueCapacity::from_limit(device).combine(above);
    Some(DeclaredQueueLimit { packets, bytes })
}
