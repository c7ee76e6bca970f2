//! The page docs/records.md is that of the declarations, and an outcome has their columns.

use fullpipe_archive::reference::{ColumnReference, TableReference, page};
use fullpipe_lab::{Options, run};
use fullpipe_scenario::access::ACCESS_NETWORKS;
use std::path::Path;

/// The metrics of `figures.csv`, by what reports them.
fn metrics() -> Vec<TableReference> {
    let column = |metric: &&fullpipe_workload::Metric| ColumnReference {
        name: metric.name,
        kind: "number",
        unit: metric.unit,
        text: metric.text,
        is_optional: true,
    };
    fullpipe_lab::metrics()
        .map(|(file, metrics)| TableReference { file, text: "", columns: metrics.iter().map(column).collect() })
        .collect()
}

fn expected() -> String {
    let access: Vec<TableReference> = ACCESS_NETWORKS.iter().flat_map(|component| (component.tables)()).collect();
    page(&access, &metrics())
}

#[test]
fn every_metric_has_the_unit_that_its_name_ends_with() {
    let tables = metrics();
    for table in &tables {
        assert_eq!(table.faults(), Vec::<String>::new());
    }
    // A name in an expression of a study means one metric.
    let mut names: Vec<&str> = fullpipe_lab::metric_names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/records.md");
    let page = expected();
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/records.md differs from the declarations; write it anew with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-lab --test records"
    );
}

#[test]
fn the_columns_of_an_outcome_are_those_of_its_files() {
    let text = r#"
        duration = "1s"
        [topology]
        kind = "chain"
        link = [{ rate = "10Mbit/s", delay = "5ms" }]
        [measurement]
        from = "100ms"
        links = ["link1"]
        [[flow]]
        name = "web"
        from = "source"
        to = "sink"
        workload = "request-response"
        request = "1kB"
        response = "10kB"
        [[probe]]
        flow = "web"
        metrics = ["cwnd_bytes"]
    "#;
    let scenario = fullpipe_scenario::load(text, "example.toml", &[]).unwrap().scenario;
    let outcome = run(&scenario, &Options::default()).unwrap();
    let files: Vec<&str> = outcome.tables().iter().map(|(file, _)| *file).collect();
    assert_eq!(files, ["flows.csv", "series.csv", "links.csv", "halves.csv", "completions.csv", "figures.csv"]);
    // The columns of the outcome are those of the file.
    let flows = outcome.flows();
    assert_eq!(flows.texts("flow"), ["web", "web.reverse"]);
    assert_eq!(flows.column("tx_packets")[0], outcome.flow("web").unwrap().counters.tx_packets as f64);
    assert_eq!(outcome.samples().len(), outcome.series_rows().count());
    assert_eq!(outcome.links().texts("link"), ["link1"]);
}
