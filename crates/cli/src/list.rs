//! `fullpipe list`: what scenarios can name.

use crate::exit::Failure;
use fullpipe::network::discipline::table::DISCIPLINES;
use fullpipe::quic::scheduler::SCHEDULERS;
use fullpipe::scenario::schema::component::Declaration;
use fullpipe::{congestion, embedded, lte, scenario, workload};
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

/// Prints one list.
pub(crate) fn list(what: &str, json_wanted: bool) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let rows: Vec<Row> = match what {
        "congestion" => congestion::catalogue::ENTRIES.iter().map(|component| declared(component, version)).collect(),
        "queues" => DISCIPLINES.declarations().map(|component| declared(component, version)).collect(),
        "workloads" => workload::CATALOGUE.iter().map(|entry| row(entry.name, version, "", entry.summary)).collect(),
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
            let cells = lte::scheduler::catalogue::ENTRIES.iter();
            let cells = cells.map(|e| Row { kind: "lte", ..row(e.name, version, e.source, e.summary) });
            streams.chain(cells).collect()
        }
        "channels" => {
            let of =
                |kind, (name, text): (&str, &str)| Row { kind, ..row(name, version, "", text.trim_end_matches('.')) };
            let path_loss = scenario::path_loss_models().map(|model| of("path-loss", model));
            path_loss.chain(scenario::fading_kinds().map(|kind| of("fading", kind))).collect()
        }
        _ => {
            return Err(Failure::usage(format!(
                "cannot list {what:?}; expected one of congestion, queues, schedulers, workloads, channels, scenarios"
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
