//! Values of metrics of single flows in the records of a run: columns of `flows.csv`, values derived from several
//! columns, and application metrics of `figures.csv`.

use fullpipe_archive::{FIGURES, FLOWS, FigureRow, FlowRow, RecordError};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{EndpointBackend, Program, Transport};
use fullpipe_scenario::schema::matches;
use fullpipe_workload::{ApplicationMetric, WORKLOADS};
use std::path::Path;

/// The metrics of flows that are derived from several columns of `flows.csv`, with their units.
const DERIVED: [(&str, &str); 4] =
    [("throughput_bps", "bit/s"), ("loss_ratio", ""), ("mean_delay_s", "s"), ("mean_jitter_s", "s")];

/// Returns the names of all metrics of flows. Common names are first, because errors list only the first few.
pub(crate) fn flow_metrics() -> Vec<&'static str> {
    let mut names = vec!["goodput_bps", "completion_s"];
    names.extend(DERIVED.map(|(name, _)| name));
    let more = FLOWS.numeric_names().chain(fullpipe_lab::metric_names());
    more.for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}

/// Returns the unit of a metric of flows; `None` if there is no such metric.
pub(crate) fn flow_unit(metric: &str) -> Option<&'static str> {
    let derived = DERIVED.iter().find(|(name, _)| *name == metric).map(|(_, unit)| *unit);
    let column = || FLOWS.numeric_column(metric).map(|column| column.unit);
    let reported = || {
        let declared = fullpipe_lab::metrics().flat_map(|(_, metrics)| metrics).find(|known| known.name == metric);
        declared.map(|known| known.unit)
    };
    // The unit of a metric that a program defines is the last part of its name.
    let of_program = || {
        let (_, last) = metric.strip_prefix("program_")?.rsplit_once('_')?;
        Some(match last {
            "s" => "s",
            "bps" => "bit/s",
            "bytes" => "bytes",
            _ => "",
        })
    };
    derived.or_else(column).or_else(reported).or_else(of_program)
}

/// Returns the reason why a flow of a scenario can never have a value of a metric, and the flows or metrics that can.
/// Returns `None` if the flow can have a value.
pub(crate) fn never_has(
    metric: &str,
    is_reverse: bool,
    scenario: &Scenario,
    flow: usize,
) -> Option<(String, Vec<String>)> {
    let described = &scenario.flows[flow];
    let reports = |program: &Program| program.figures_of == Some(flow);
    let has_program = scenario.programs.iter().any(reports);
    // The data that real programs send is unknown before the run.
    if has_program || [described.from_by, described.to_by].contains(&EndpointBackend::Program) {
        return None;
    }
    let (name, workload) = (&described.name, described.workload.name());
    let is_udp = matches!(described.transport, Transport::Udp);
    if is_of_flows(metric) {
        if is_udp && is_reverse && !described.workload.senders()[1] {
            let message = format!("flow {name} sends no packets in its reverse direction");
            return Some((message, vec![format!("flow = \"{name}\"")]));
        }
        return match metric {
            "completion_s" if described.workload.is_unlimited() => Some((
                format!("flow {name} has no {metric}, because its workload {workload} has no end"),
                vec!["a flow with a limited amount of data, such as a size".to_owned()],
            )),
            "retransmitted_packets" if is_udp => Some((
                format!("flow {name} has no {metric}, because UDP retransmits nothing"),
                vec!["a flow with protocol = \"tcp\" or \"quic\"".to_owned()],
            )),
            _ => None,
        };
    }
    let declares = |metrics: &[&'static ApplicationMetric]| metrics.iter().any(|declared| declared.name == metric);
    let owners: Vec<&str> =
        fullpipe_lab::metrics().filter(|(_, metrics)| declares(metrics)).map(|(owner, _)| owner).collect();
    let protocol = described.transport.protocol().name();
    if owners.iter().any(|owner| *owner == workload || *owner == protocol) {
        return None;
    }
    let of = |owner: &&str| match WORKLOADS.iter().any(|workload| workload.declaration.name == *owner) {
        true => format!("a flow with workload = \"{owner}\""),
        false => format!("a flow with protocol = \"{owner}\""),
    };
    let mut expected: Vec<String> = owners.iter().map(of).collect();
    if expected.is_empty() {
        expected.push("a flow whose metrics a [[program]] reports (figures_of)".to_owned());
    }
    Some((format!("flow {name} has no {metric}: its workload is {workload}, its protocol {protocol}"), expected))
}

/// Returns whether a metric belongs to the directions of flows. Application metrics instead belong to the ends of
/// flows.
fn is_of_flows(metric: &str) -> bool {
    DERIVED.iter().any(|(name, _)| *name == metric) || FLOWS.numeric_column(metric).is_some()
}

/// The tables of a run that have metrics of flows.
pub(crate) struct RunTables {
    flows: Vec<FlowRow>,
    figures: Vec<FigureRow>,
}

impl RunTables {
    /// Reads `flows.csv` and, if it exists, `figures.csv`.
    pub(crate) fn read(folder: &Path) -> Result<Self, RecordError> {
        let flows = FLOWS.open(&folder.join(FLOWS.file))?.rows()?;
        let file = folder.join(FIGURES.file);
        let figures = if file.is_file() { FIGURES.open(&file)?.rows()? } else { Vec::new() };
        Ok(RunTables { flows, figures })
    }

    /// Returns the value of each selected flow. A flow without a value has an entry with `None`.
    pub(crate) fn values(&self, metric: &str, pattern: &str) -> Vec<(String, Option<f64>)> {
        let (flows, is_reverse) = match pattern.strip_suffix(".reverse") {
            Some(flows) => (flows, true),
            None => (pattern, false),
        };
        let base = |flow: &str| {
            let flow = flow.strip_suffix(".reverse").unwrap_or(flow);
            flow.split_once('#').map_or(flow, |(flow, _)| flow).to_owned()
        };
        let is_selected = |row: &&FlowRow| {
            let is_direction = if is_reverse { row.flow.ends_with(".reverse") } else { row.is_main() };
            is_direction && matches(flows, &base(&row.flow))
        };
        if is_of_flows(metric) {
            let rows = self.flows.iter().filter(is_selected);
            let values: Vec<_> = rows.map(|row| (row.flow.clone(), flow_value(metric, row))).collect();
            return if values.is_empty() { vec![(pattern.to_owned(), None)] } else { values };
        }
        // Both ends may report an application metric.
        let mut values: Vec<(String, Option<f64>)> = Vec::new();
        let mut without: Vec<String> = Vec::new();
        for flow in self.flows.iter().map(|row| base(&row.flow)).filter(|flow| matches(flows, flow)) {
            if without.contains(&flow) || values.iter().any(|(subject, _)| base_of_end(subject) == flow) {
                continue;
            }
            let reported = self.figures.iter().filter(|row| row.flow == flow && row.figure == metric);
            let reported = reported.filter(|row| row.value.is_some());
            let ends: Vec<_> = reported.map(|row| (format!("{flow}@{}", row.host), row.value)).collect();
            if ends.is_empty() {
                without.push(flow);
            }
            values.extend(ends);
        }
        values.extend(without.into_iter().map(|flow| (flow, None)));
        if values.is_empty() { vec![(pattern.to_owned(), None)] } else { values }
    }
}

/// Returns the flow of `FLOW@HOST`. Names cannot contain `@`.
fn base_of_end(subject: &str) -> &str {
    subject.split_once('@').map_or(subject, |(flow, _)| flow)
}

fn flow_value(metric: &str, row: &FlowRow) -> Option<f64> {
    match metric {
        "throughput_bps" => row.throughput_bps(),
        "mean_delay_s" => row.mean_delay_s(),
        "mean_jitter_s" => row.mean_jitter_s(),
        "loss_ratio" => {
            let sent = row.measured_tx_packets;
            (sent > 0).then(|| row.measured_lost_packets as f64 / sent as f64)
        }
        column => FLOWS.numeric_column(column).map(|column| column.number(row)).filter(|value| !value.is_nan()),
    }
}
