//! Faults on purpose, by their names on the command line.

use crate::exit::Failure;
use fullpipe::lab::Sabotage;
use fullpipe::network::Fault;
use fullpipe::scenario::Scenario;
use fullpipe::units::LinkId;

const FORMS: &str = "fast-link:LINK, silent-drop:LINK:EVERY or premature-ack:FROM";

/// The faults, with links found by their names in the scenario (shared segments count after the links).
pub(crate) fn faults(texts: &[String], scenario: &Scenario) -> Result<Vec<Sabotage>, Failure> {
    let link = |name: &str| {
        let links = scenario.links.iter().map(|link| link.name.as_str());
        let names: Vec<&str> = links.chain(scenario.ethernets.iter().map(|ethernet| ethernet.name.as_str())).collect();
        names.iter().position(|known| *known == name).map(|index| LinkId(index as u32)).ok_or_else(|| {
            let some: Vec<&str> = names.iter().take(10).copied().collect();
            Failure::usage(format!("--sabotage: there is no link {name:?}; there are: {}", some.join(", ")))
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
                ["fast-link", name] => Sabotage::Network(Fault::FastLink(link(name)?)),
                ["silent-drop", name, every] => {
                    Sabotage::Network(Fault::SilentDrop { link: link(name)?, every: number(every)? })
                }
                ["premature-ack", from] => Sabotage::PrematureAcknowledgement { from: number(from)? },
                _ => return Err(Failure::usage(format!("--sabotage: expected {FORMS}, found {text:?}"))),
            })
        })
        .collect()
}
