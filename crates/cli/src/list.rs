//! `fullpipe list`: the names that scenarios and the command accept.

use crate::exit::Failure;
use crate::init::{TEMPLATES, Template};
use crate::measurement;
use crate::names::embedded_study_title;
use crate::output::{self, print_line};
use fullpipe::network::access::ChoiceList;
use fullpipe::network::discipline::table::DISCIPLINES;
use fullpipe::quic::scheduler::SCHEDULERS;
use fullpipe::scenario::access::ACCESS_NETWORKS;
use fullpipe::scenario::schema::component::Declaration;
use fullpipe::scenario::schema::nearest_name;
use fullpipe::workload::WORKLOADS;
use fullpipe::{congestion, embedded, lab, scenario};
use serde_json::{Value, json};

#[derive(Default)]
struct Row {
    /// The kind of the row, if the list contains several kinds.
    kind: &'static str,
    name: &'static str,
    version: &'static str,
    source: &'static str,
    summary: String,
}

/// The name of a list, and a function that returns its rows.
type List = (&'static str, fn() -> Vec<Row>);

static LISTS: [List; 11] = [
    ("congestion", || congestion::catalogue::DECLARATIONS.iter().map(declared).collect()),
    ("queues", || DISCIPLINES.declarations().map(declared).collect()),
    ("schedulers", || {
        let streams = SCHEDULERS.declarations().map(|component| Row { kind: "quic", ..declared(component) });
        streams.chain(of_access_networks("schedulers")).collect()
    }),
    ("workloads", || WORKLOADS.declarations().map(declared).collect()),
    ("channels", || of_access_networks("channels").collect()),
    ("metrics", metrics),
    ("access-networks", || ACCESS_NETWORKS.iter().map(|component| declared(&component.declaration)).collect()),
    ("scenarios", || embedded::scenario_names().map(|name| titled(name, name)).collect()),
    ("studies", || {
        let row = |name| Row { name, summary: embedded_study_title(name).to_owned(), ..Row::default() };
        embedded::study_names().map(row).collect()
    }),
    ("templates", || {
        let row = |template: &Template| Row { name: template.name, summary: template.summary.into(), ..Row::default() };
        TEMPLATES.iter().map(row).collect()
    }),
    ("benchmarks", || measurement::NAMES.iter().map(|name| benchmark(name)).collect()),
];

/// Returns the names of the lists, for messages.
pub(crate) fn names() -> String {
    LISTS.map(|(name, _)| name).join(", ")
}

fn declared(component: &Declaration) -> Row {
    let Declaration { name, version, source, .. } = *component;
    Row { name, version, source, summary: component.summary().into(), ..Row::default() }
}

/// Returns the names in one of the lists that keys of access networks accept.
fn of_access_networks(list: &str) -> impl Iterator<Item = Row> {
    let choices = ACCESS_NETWORKS.iter().flat_map(|component| component.choices);
    let choices = choices.filter(move |choices| choices.list == list);
    choices.flat_map(move |ChoiceList { kind, declarations, .. }| {
        declarations().into_iter().map(move |declaration| Row { kind, ..declared(declaration) })
    })
}

/// Returns the metrics of probes, and the metrics of `figures.csv` by the component that reports them.
fn metrics() -> Vec<Row> {
    let row = |kind, name, text: &str| Row { kind, name, summary: text.trim_end_matches('.').into(), ..Row::default() };
    let probes = scenario::probe_metrics(ACCESS_NETWORKS).into_iter();
    let probes = probes.map(|(metric, text)| row("probe", metric.name, &text));
    let reported = lab::metrics().flat_map(|(of, metrics)| metrics.into_iter().map(move |metric| (of, metric)));
    probes.chain(reported.map(|(of, metric)| row(of, metric.name, metric.text))).collect()
}

/// Returns a name with the title of an embedded scenario.
fn titled(name: &'static str, file: &str) -> Row {
    let loaded = embedded::scenario_text(file).and_then(|text| scenario::load(text, file, &[]).ok());
    Row { name, summary: loaded.map(|loaded| loaded.scenario.title).unwrap_or_default(), ..Row::default() }
}

fn benchmark(name: &'static str) -> Row {
    let row = titled(name, &format!("bench/{name}"));
    // The title of its scenario begins with its name.
    let summary = row.summary.split_once(": ").map_or(measurement::PROXY_ON_LOOPBACK, |(_, summary)| summary);
    Row { summary: summary.into(), ..row }
}

/// Prints one list.
pub(crate) fn list(what: Option<&str>, json_wanted: bool) -> Result<(), Failure> {
    let what = what.ok_or_else(|| Failure::usage(format!("name a list: one of {}", names())))?;
    let Some((_, rows)) = LISTS.iter().find(|(name, _)| *name == what) else {
        let hint = nearest_name(what, LISTS.iter().map(|(name, _)| *name))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(Failure::usage(format!("cannot list {what:?}{hint} (expected one of {})", names())));
    };
    let rows = rows();
    if json_wanted {
        let rows: Vec<Value> = rows
            .iter()
            .map(|r| {
                let version = if r.version.is_empty() { env!("CARGO_PKG_VERSION") } else { r.version };
                let mut row = json!({"name": r.name, "version": version, "source": r.source, "summary": r.summary});
                if !r.kind.is_empty() {
                    row["kind"] = r.kind.into();
                }
                row
            })
            .collect();
        output::json(&Value::Array(rows));
    } else {
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let kinds = rows.iter().map(|row| row.kind.len() + 2).filter(|width| *width > 2).max().unwrap_or(0);
        for row in rows {
            let source = if row.source.is_empty() { String::new() } else { format!("  [{}]", row.source) };
            print_line!("{:kinds$}{:width$}  {}{source}", row.kind, row.name, row.summary);
        }
    }
    Ok(())
}
