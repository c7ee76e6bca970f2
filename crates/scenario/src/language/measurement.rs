//! The keys of `[measurement]`: the measured links and the start of the measured interval.

use super::Diagnostics;
use super::network::Network;
use crate::description::Measurement;
use crate::schema::{FieldKind, Table, Tree, Value, keys};
use crate::schema::{is_pattern, matches};
use fullpipe_units::Duration;

pub(super) static MEASUREMENT: Table = Table {
    name: "measurement",
    text: "The measured interval, and the links in `links.csv`: a row for each named direction of a link. \
           Earlier events are not counted, because the run warms up. A measurement does not change the run.",
    fields: &[keys! {
        /// Start of the measured interval; it ends with the run.
        "from": FieldKind::DURATION, default "0s";
        /// Directions of links, by name or pattern: `bottleneck`, `bottleneck.reverse`, `access-*`.
        "links": FieldKind::List(&FieldKind::Text), default "[]";
    }],
    ..Table::EMPTY
};

/// Returns the measurement of a file; empty if the file has no `[measurement]`.
pub(super) fn measurement(root: &Tree, network: &Network, duration: Duration, check: &mut Diagnostics) -> Measurement {
    let Some(tree) = root.get("measurement").map(Value::table) else { return Measurement::default() };
    let from = tree.duration("from");
    if from >= duration {
        let message = format!("measurement.from = {from} is not before the end of the run (duration = {duration})");
        check.add_error_at(tree, "measurement", "from", message, "a time before the end of the run");
    }
    let mut links = Vec::new();
    for (index, element) in tree.list("links").iter().enumerate() {
        let wanted = element.text();
        let is = |name: &str| if is_pattern(wanted) { matches(wanted, name) } else { wanted == name };
        let found: Vec<usize> = (0..network.links.len()).filter(|link| is(&network.links[*link].name)).collect();
        if found.is_empty() {
            let names = network.links.iter().map(|link| link.name.as_str());
            let message = format!(
                "{} {}",
                if is_pattern(wanted) { "no link matches" } else { "unknown link" },
                check.sources.excerpt(element.place)
            );
            let path = format!("measurement.links.{index}");
            check.add_unknown_name(element.place, &path, message, wanted, names);
        }
        links.extend(found);
    }
    links.sort_unstable();
    links.dedup();
    Measurement { from, links }
}
