//! `fullpipe list`: what scenarios can name.

use crate::exit::Failure;
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

/// Prints one list.
pub(crate) fn list(what: &str, json_wanted: bool) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let rows: Vec<Row> = match what {
        "congestion" => congestion::catalogue::ENTRIES
            .iter()
            .map(|entry| row(entry.name, entry.version, entry.source, entry.summary))
            .collect(),
        "queues" => vec![
            row("drop-tail", version, "", "first in, first out; drops what does not fit (packets, bytes or time)"),
            row("fifo", version, "", "the same above a device queue, which then holds packets back"),
            row(
                "red",
                "Floyd and Jacobson (1993)",
                "IEEE/ACM ToN 1(4), 1993",
                "random early detection by an average of the queue's length",
            ),
            row(
                "ared",
                "Floyd, Gummadi and Shenker (2001)",
                "Adaptive RED, ICIR, 2001",
                "RED that adapts its probability to a target delay",
            ),
            row("codel", "RFC 8289 (2018)", "RFC 8289", "drops by how long packets have waited"),
            row("fq-codel", "RFC 8290 (2018)", "RFC 8290, RFC 8289", "a queue per flow under CoDel, served in turn"),
            row("pie", "RFC 8033 (2017)", "RFC 8033", "a drop probability that a controller moves with the delay"),
            row("dualpi2", "RFC 9332 (2023)", "RFC 9332", "two coupled queues, one of low latency for ECT(1)"),
            row("step", "RFC 8257 (2017)", "RFC 8257", "drop-tail that marks above a step, the switch of DCTCP"),
            row("priority", version, "", "strict priority of bands, each with a discipline of its own"),
        ],
        "workloads" => workload::CATALOGUE.iter().map(|entry| row(entry.name, version, "", entry.summary)).collect(),
        "scenarios" => embedded::scenario_names()
            .map(|name| {
                let text = embedded::scenario(name).unwrap_or_default();
                let title = scenario::load(text, name, &[]).map(|loaded| loaded.scenario.title).unwrap_or_default();
                row(name, version, "", &title)
            })
            .collect(),
        "schedulers" => {
            let streams = scenario::stream_schedulers()
                .map(|(name, text)| Row { kind: "quic", ..row(name, version, "", text.trim_end_matches('.')) });
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
