//! `fullpipe list`: what scenarios can name.

use crate::exit::Failure;
use fullpipe::network::access::ChoiceList;
use fullpipe::network::discipline::table::DISCIPLINES;
use fullpipe::quic::scheduler::SCHEDULERS;
use fullpipe::scenario::access::ACCESS_NETWORKS;
use fullpipe::scenario::schema::component::Declaration;
use fullpipe::workload::WORKLOADS;
use fullpipe::{congestion, embedded, scenario};
use serde_json::{Value, json};

struct Row {
    /// Where a list has several kinds of things.
    kind: &'static str,
    name: String,
    version: String,
    source: String,
    summary: String,
}

fn row(name: &str, version: &str, source: &str, summary: &str) -> Row {
    Row { kind: "", name: name.into(), version: version.into(), source: source.into(), summary: summary.into() }
}

fn declared(component: &Declaration, version: &str) -> Row {
    let version = if component.version.is_empty() { version } else { component.version };
    row(component.name, version, component.source, component.summary())
}

/// What the keys of access networks choose by name, in one of the lists.
fn of_access_networks(list: &str, version: &'static str) -> impl Iterator<Item = Row> {
    let choices = ACCESS_NETWORKS.iter().flat_map(|component| component.choices);
    let choices = choices.filter(move |choices| choices.list == list);
    choices.flat_map(move |ChoiceList { kind, declarations, .. }| {
        declarations().into_iter().map(move |declaration| Row { kind, ..declared(declaration, version) })
    })
}

/// Prints one list.
pub(crate) fn list(what: &str, json_wanted: bool) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let rows: Vec<Row> = match what {
        "congestion" => congestion::catalogue::ENTRIES.iter().map(|component| declared(component, version)).collect(),
        "queues" => DISCIPLINES.declarations().map(|component| declared(component, version)).collect(),
        "metrics" => {
            let metrics = scenario::probe_metrics().into_iter().map(|metric| (metric.name, metric.text));
            let stations = ACCESS_NETWORKS.iter().flat_map(|component| component.metrics);
            let metrics = metrics.chain(stations.map(|metric| (metric.name, metric.text)));
            metrics.map(|(name, text)| row(name, version, "", text.trim_end_matches('.'))).collect()
        }
        "workloads" => WORKLOADS.declarations().map(|component| declared(component, version)).collect(),
        "scenarios" => embedded::scenario_names()
            .map(|name| {
                let text = embedded::scenario(name).unwrap_or_default();
                let title = scenario::load(text, name, &[]).map(|loaded| loaded.scenario.title).unwrap_or_default();
                row(name, version, "", &title)
            })
            .collect(),
        "schedulers" => {
            let streams = SCHEDULERS.declarations();
            let streams = streams.map(|component| Row { kind: "quic", ..declared(component, version) });
            streams.chain(of_access_networks(what, version)).collect()
        }
        "channels" => of_access_networks(what, version).collect(),
        "access-networks" => {
            ACCESS_NETWORKS.iter().map(|component| declared(&component.declaration, version)).collect()
        }
        _ => {
            return Err(Failure::usage(format!(
                "cannot list {what:?}; expected one of congestion, queues, schedulers, workloads, channels, metrics, access-networks, scenarios"
            )));
        }
    };
    if json_wanted {
        let rows: Vec<Value> = rows
            .iter()
            .map(|r| {
                let mut row = json!({"name": r.name, "version": r.version, "source": r.source, "summary": r.summary});
                if !r.kind.is_empty() {
                    row["kind"] = r.kind.into();
                }
                row
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&Value::Array(rows)).unwrap_or_default());
    } else {
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let kinds = rows.iter().map(|row| row.kind.len() + 2).filter(|width| *width > 2).max().unwrap_or(0);
        for row in rows {
            let source = if row.source.is_empty() { String::new() } else { format!("  [{}]", row.source) };
            println!("{:kinds$}{:width$}  {}{source}", row.kind, row.name, row.summary);
        }
    }
    Ok(())
}
