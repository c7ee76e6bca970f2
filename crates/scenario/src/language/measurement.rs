//! The keys of `[measurement]`: what is summed up over a run, and from when on.

use super::network::Network;
use super::{COMPARED, Check, some_of};
use crate::description::Measurement;
use crate::schema::{Field, Kind, Table, Tree, Value, nearest};
use crate::schema::{is_pattern, matches};
use fullpipe_units::Duration;

pub(super) static MEASUREMENT: Table = Table {
    name: "measurement",
    text: "What `links.csv` sums up: a row for each named direction of a link, from an instant on until the end of the run. \
           Whatever happens at an instant before is left out, as the run warms up. Observing changes nothing of the run.",
    fields: &[&[
        Field::default("from", Kind::DURATION, "0s", "When the measurement begins; before the end of the run."),
        Field::default(
            "links",
            Kind::List(&Kind::Text),
            "[]",
            "Directions of links, by name or pattern: `bottleneck`, `bottleneck.reverse`, `access-*`.",
        ),
    ]],
    ..Table::EMPTY
};

/// What is measured; nothing if the file does not say.
pub(super) fn measurement(root: &Tree, network: &Network, duration: Duration, check: &mut Check) -> Measurement {
    let Some(tree) = root.get("measurement").map(Value::table) else { return Measurement::default() };
    let from = tree.duration("from");
    if from >= duration {
        let message = "the measurement begins when the run is over".to_string();
        check.error(tree.place_of("from"), "measurement.from", message, vec!["less than duration".into()]);
    }
    let mut links = Vec::new();
    for (index, element) in tree.list("links").iter().enumerate() {
        let wanted = element.text();
        let is = |name: &str| if is_pattern(wanted) { matches(wanted, name) } else { wanted == name };
        let found: Vec<usize> = (0..network.links.len()).filter(|link| is(&network.links[*link].name)).collect();
        if found.is_empty() {
            let names: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
            let message = format!("no link of this scenario is {}", check.sources.found(element.place));
            let path = format!("measurement.links.{index}");
            let mut error = check.sources.error(element.place, &path, message, some_of(names.iter().copied()));
            error.suggestion = nearest(wanted, names.into_iter().take(COMPARED)).map(|name| format!("\"{name}\""));
            check.push(error);
        }
        links.extend(found);
    }
    links.sort_unstable();
    links.dedup();
    Measurement { from, links }
}
