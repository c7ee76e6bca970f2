//! From the scenario's queue disciplines to the network's.

use fullpipe_network::discipline::{Classifier, CoDel, DualPi2, FairQueue, Pie, Red, StepMarker, StrictPriority};
use fullpipe_network::{Fifo, Limit, QueueDiscipline};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Bands, Discipline};
use fullpipe_units::{FlowId, Stream};

/// The discipline of an interface. `name` is the interface's: that of a link, or of a segment and its host.
pub(crate) fn discipline(described: &Discipline, scenario: &Scenario, name: &str) -> Box<dyn QueueDiscipline> {
    let random = || Stream::new(scenario.seed, name, "queue");
    match described {
        Discipline::Fifo { limit } => Box::new(Fifo::new(*limit)),
        Discipline::Red(settings) => Box::new(Red::new(*settings, random())),
        Discipline::CoDel { limit, settings } => Box::new(CoDel::new(*limit, *settings)),
        Discipline::FqCodel(settings) => Box::new(FairQueue::new(*settings)),
        Discipline::Pie(settings) => Box::new(Pie::new(*settings, random())),
        Discipline::DualPi2(settings) => Box::new(DualPi2::new(*settings)),
        Discipline::Step(settings) => Box::new(StepMarker::new(*settings)),
        Discipline::Priority { by, bands } => {
            let inner =
                |(index, band): (usize, &Discipline)| discipline(band, scenario, &format!("{name} band {index}"));
            let inner = bands.iter().enumerate().map(inner).collect();
            Box::new(StrictPriority::new(classifier(by, bands.len() - 1, scenario), inner))
        }
    }
}

fn classifier(by: &Bands, last: usize, scenario: &Scenario) -> Classifier {
    match by {
        Bands::Protocol => Classifier::Protocol { tcp: 1, udp: 0 },
        Bands::Codepoint => Classifier::Codepoint { not_ect: 1, ect0: 1, ect1: 0, ce: 0 },
        Bands::Size { largest_bytes } => Classifier::Size { largest_bytes: largest_bytes.clone() },
        Bands::Flow => {
            let named =
                scenario.flows.iter().enumerate().filter_map(|(flow, described)| Some((flow, described.priority?)));
            let bands = named.flat_map(|(flow, band)| [0, 1].map(|end| (FlowId(2 * flow as u32 + end), band as usize)));
            Classifier::Flow { bands: bands.collect(), others: last }
        }
    }
}

/// Whether the order of coming does not tell which packet leaves next: because others may overtake it, or because
/// packets are dropped from the front, where an observer of sizes cannot tell which one it was.
pub(crate) fn reorders(described: &Discipline) -> bool {
    match described {
        Discipline::CoDel { .. } | Discipline::FqCodel(_) | Discipline::DualPi2(_) | Discipline::Priority { .. } => {
            true
        }
        Discipline::Fifo { .. } | Discipline::Red(_) | Discipline::Pie(_) | Discipline::Step(_) => false,
    }
}

/// How much a discipline may hold: packets and bytes on the wire, where it promises either.
pub(crate) fn capacity(described: &Discipline) -> (Option<u64>, Option<u64>) {
    let of = |limit: Limit| match limit {
        Limit::Packets(packets) => (Some(packets), None),
        Limit::Bytes(bytes) => (None, Some(bytes)),
        Limit::Unlimited => (None, None),
    };
    match described {
        Discipline::Fifo { limit } | Discipline::CoDel { limit, .. } => of(*limit),
        Discipline::Red(settings) => of(settings.limit),
        Discipline::FqCodel(settings) => (Some(settings.limit_packets), settings.limit_bytes),
        Discipline::Pie(settings) => of(settings.limit),
        Discipline::DualPi2(settings) => of(settings.limit),
        Discipline::Step(settings) => of(settings.limit),
        Discipline::Priority { bands, .. } => {
            bands.iter().map(capacity).fold((Some(0), Some(0)), |sum, band| (add(sum.0, band.0), add(sum.1, band.1)))
        }
    }
}

/// Limits in the same unit add up; in different ones they promise nothing about the sum.
pub(crate) fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}
