//! The values of single flows for `flow_summary.csv`: application metrics and percentiles of packet delay.

use crate::plan::Plan;
use crate::statistics::summarize;
use fullpipe_archive::{Columns, DELAY_COLUMNS, FigureRow, FlowRow, FlowSummaryRow};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of flows of a run with rows. A larger table would be too long to read, and the results of large
/// studies would exceed the memory.
const MOST_FLOWS: usize = 100;

/// A metric of a flow at a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    flow: String,
    host: String,
    metric: String,
}

/// The values of a run, in the order of its tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlowSummary(Vec<(Key, f64)>);

impl FlowSummary {
    /// Collects the values of a run from its tables.
    pub(crate) fn of(flows: &Columns, figures: &[FigureRow]) -> Self {
        let texts = |column: &str| flows.find_text_column(column).unwrap_or_default();
        let (names, hosts) = (texts(FlowRow::flow().name), texts(FlowRow::destination().name));
        // The limit applies to flows and their further connections, each of which has up to two rows.
        if names.iter().filter(|name| !name.ends_with(".reverse") && !name.contains('#')).count() > MOST_FLOWS {
            return FlowSummary::default();
        }
        let mut values = Vec::new();
        for row in figures {
            let key = Key { flow: row.flow.clone(), host: row.host.clone(), metric: row.figure.clone() };
            values.extend(row.value.map(|value| (key, value)));
        }
        // Percentiles of several connections cannot be combined into percentiles of their flow.
        let further: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.split_once('#')?.0)).collect();
        for (row, (flow, host)) in names.iter().zip(hosts).enumerate() {
            let of_flow = flow.strip_suffix(".reverse").unwrap_or(flow);
            if further.contains(of_flow.split_once('#').map_or(of_flow, |(name, _)| name)) {
                continue;
            }
            for metric in DELAY_COLUMNS {
                let value = flows.find_column(metric).ok().and_then(|column| column.get(row)).copied();
                let key = Key { flow: flow.clone(), host: host.clone(), metric: metric.to_owned() };
                values.extend(value.filter(|value| !value.is_nan()).map(|value| (key, value)));
            }
        }
        FlowSummary(values)
    }
}

/// Returns the unit of a metric: that of its declaration, or the suffix of the name if a program defines the metric.
fn unit_of(metric: &str) -> String {
    let declared = fullpipe_lab::metrics().flat_map(|(_, metrics)| metrics).find(|known| known.name == metric);
    let named = || match metric.rsplit_once('_') {
        Some((_, "s")) => "s",
        Some((_, "bps")) => "bit/s",
        Some((_, "bytes")) => "bytes",
        _ => "",
    };
    declared.map_or_else(named, |known| known.unit).to_owned()
}

/// Returns the rows of `flow_summary.csv`. `counting` returns the values of those runs of a point that count.
pub(crate) fn rows<'a>(plan: &Plan, counting: impl Fn(usize) -> Vec<&'a FlowSummary>) -> Vec<FlowSummaryRow> {
    let mut rows = Vec::new();
    for (index, point) in plan.points.iter().enumerate() {
        let mut order: Vec<&Key> = Vec::new();
        let mut values: BTreeMap<&Key, Vec<f64>> = BTreeMap::new();
        for experience in counting(index) {
            for (key, value) in &experience.0 {
                let of_key = values.entry(key).or_insert_with(|| {
                    order.push(key);
                    Vec::new()
                });
                of_key.push(*value);
            }
        }
        for key in order {
            let Some(summary) = values.get(key).and_then(|values| summarize(values)) else { continue };
            let ci95 = summary.ci95.filter(|ci95| *ci95 > 0.0);
            rows.push(FlowSummaryRow {
                point: point.place.clone(),
                flow: key.flow.clone(),
                host: key.host.clone(),
                metric: key.metric.clone(),
                unit: unit_of(&key.metric),
                n: summary.n as u64,
                mean: Some(summary.mean),
                ci95,
                low: ci95.map(|ci95| summary.mean - ci95),
                high: ci95.map(|ci95| summary.mean + ci95),
                min: Some(summary.min),
                median: Some(summary.median),
                max: Some(summary.max),
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_archive::FLOWS;
    use fullpipe_units::Duration;

    #[test]
    fn values_are_those_of_figures_and_delays_unless_there_are_too_many_flows() {
        let flow = |name: &str| FlowRow {
            flow: name.to_owned(),
            destination: "player".to_owned(),
            delay_p95_s: Some(Duration::from_millis(20)),
            ..FlowRow::default()
        };
        let figure = |value| FigureRow {
            flow: "web".to_owned(),
            host: "client".to_owned(),
            figure: "page_load_mean_s".to_owned(),
            value,
        };
        let figures = [figure(Some(1.5)), figure(None)];
        let rows = ["game", "web", "web.reverse", "web#2", "web#2.reverse"].map(flow);
        let experience = FlowSummary::of(&FLOWS.to_columns(rows), &figures);
        let found: Vec<(&str, &str, &str, f64)> = experience
            .0
            .iter()
            .map(|(key, value)| (key.flow.as_str(), key.host.as_str(), key.metric.as_str(), *value))
            .collect();
        assert_eq!(found, [("web", "client", "page_load_mean_s", 1.5), ("game", "player", "delay_p95_s", 0.02)]);
        let many = FLOWS.to_columns((0..101).map(|n| flow(&format!("game.{n}"))));
        assert_eq!(FlowSummary::of(&many, &figures), FlowSummary::default());
    }

    #[test]
    fn units_are_declared_or_at_the_end_of_the_name() {
        let units = ["page_load_mean_s", "pages", "my_rate_bps", "delay_p50_s", "score"].map(unit_of);
        assert_eq!(units, ["s", "", "bit/s", "s", ""]);
    }
}
