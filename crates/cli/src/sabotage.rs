//! Deliberate faults, by their names on the command line.

use crate::exit::Failure;
use fullpipe::lab::InjectedFault;
use fullpipe::network::{Fault, MediumDirection};
use fullpipe::scenario::Scenario;
use fullpipe::units::LinkId;

const FORMS: &str = "fast-link:LINK, silent-drop:LINK:EVERY or premature-ack:FROM";

/// Parses the faults and resolves the links in them by name. Indices of shared segments follow those of links, and
/// paths of access networks follow the segments.
pub(crate) fn faults(texts: &[String], scenario: &Scenario) -> Result<Vec<InjectedFault>, Failure> {
    let link = |name: &str| {
        let links = scenario.links.iter().map(|link| link.name.as_str());
        // If stations have separate paths, the name of the segment selects the path of the first station.
        let segments = scenario.ethernets.iter().flat_map(|ethernet| {
            let paths = if ethernet.half_duplex { 1 } else { ethernet.hosts.len() };
            (0..paths).map(|path| if path == 0 { ethernet.name.as_str() } else { "" })
        });
        let radio = scenario.access.iter().flat_map(|access| MediumDirection::ALL.map(|way| access.link_name(way)));
        let names: Vec<String> = links.chain(segments).map(str::to_owned).chain(radio).collect();
        names.iter().position(|known| known == name).map(|index| LinkId(index as u32)).ok_or_else(|| {
            let some: Vec<&str> = names.iter().filter(|name| !name.is_empty()).take(10).map(String::as_str).collect();
            Failure::usage(format!("--sabotage: unknown link {name:?} (one of: {})", some.join(", ")))
        })
    };
    let number = |text: &str| {
        text.parse::<u64>()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| Failure::usage(format!("--sabotage: expected a number from 1, found {text:?}")))
    };
    texts
        .iter()
        .map(|text| {
            let parts: Vec<&str> = text.split(':').collect();
            Ok(match parts.as_slice() {
                ["fast-link", name] => InjectedFault::Network(Fault::FastLink(link(name)?)),
                ["silent-drop", name, every] => {
                    InjectedFault::Network(Fault::SilentDrop { link: link(name)?, every: number(every)? })
                }
                ["premature-ack", from] => InjectedFault::PrematureAcknowledgement { from: number(from)? },
                _ => return Err(Failure::usage(format!("--sabotage: expected {FORMS}, found {text:?}"))),
            })
        })
        .collect()
}
