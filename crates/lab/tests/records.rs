//! Tests that docs/records.md matches the declarations, and that an outcome has their columns.

use fullpipe_archive::reference::{ColumnReference, TableReference, render_records_page};
use fullpipe_lab::{Options, SampleOutput, run};
use fullpipe_scenario::access::ACCESS_NETWORKS;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The metrics of `figures.csv`, by the component that reports them.
fn metrics() -> Vec<TableReference> {
    let column = |metric: &&fullpipe_workload::ApplicationMetric| ColumnReference {
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
    render_records_page(&access, &metrics())
}

#[test]
fn every_metric_has_the_unit_of_its_suffix() {
    let tables = metrics();
    for table in &tables {
        assert_eq!(table.declaration_errors(), Vec::<String>::new());
    }
    // A metric name in an expression of a study must be unique.
    let mut names: Vec<&str> = fullpipe_lab::metric_names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn records_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/records.md");
    let page = expected();
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/records.md differs from the declarations; write it anew with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-lab --test all records"
    );
}

#[test]
fn columns_of_an_outcome_are_those_of_its_files() {
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
    assert_eq!(flows.text_column("flow"), ["web", "web.reverse"]);
    assert_eq!(flows.column("tx_packets")[0], outcome.flow("web").unwrap().counters.tx_packets as f64);
    assert_eq!(outcome.samples().len(), outcome.series_rows().count());
    assert_eq!(outcome.links().text_column("link"), ["link1"]);
}

/// `series.csv` of a run whose samples are written to a file: the written pieces, and the outcome's table.
fn sampled(duration: &str, broken: impl FnMut(usize) -> io::Result<()> + Send + 'static) -> (Sampled, Vec<u8>) {
    let text = format!(
        r#"
        duration = "{duration}"
        [topology]
        kind = "chain"
        link = [{{ rate = "1Mbit/s", delay = "5ms" }}]
        [[flow]]
        name = "data"
        from = "source"
        to = "sink"
        workload = "bulk"
        [[probe]]
        flow = "data"
        interval = "1ms"
        metrics = ["cwnd_bytes", "srtt_s", "throughput_bps", "inflight_bytes"]
        [[probe]]
        link = "link1"
        interval = "1ms"
        metrics = ["queue_bytes", "queue_delay_s", "drops"]
        "#
    );
    let scenario = fullpipe_scenario::load(&text, "example.toml", &[]).unwrap().scenario;
    let kept = run(&scenario, &Options::default()).unwrap();
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let to = pieces.clone();
    let broken = Mutex::new(broken);
    let append = move |name: &str, bytes: &[u8]| {
        assert_eq!(name, "series.csv");
        let mut pieces = to.lock().unwrap();
        pieces.push(bytes.to_vec());
        (broken.lock().unwrap())(pieces.len())
    };
    let options = Options { samples: Some(SampleOutput { append: Arc::new(append) }), ..Options::default() };
    let outcome = run(&scenario, &options).unwrap();
    assert_eq!(outcome.series_rows().count(), 0, "samples are stored twice");
    let table = |outcome: &fullpipe_lab::Outcome| {
        outcome.tables().into_iter().find(|(name, _)| *name == "series.csv").map(|(_, content)| content)
    };
    let written = outcome.capture_result().map_err(ToString::to_string);
    let (pieces, whole) = (pieces.lock().unwrap().clone(), table(&outcome));
    (Sampled { pieces, whole, written }, table(&kept).expect("a scenario with probes"))
}

struct Sampled {
    pieces: Vec<Vec<u8>>,
    whole: Option<Vec<u8>>,
    written: Result<(), String>,
}

#[test]
fn samples_in_a_file_equal_those_of_the_outcome_in_bounded_pieces() {
    // Seven series of 20 000 samples, about 30 bytes each.
    let (long, expected) = sampled("20s", |_| Ok(()));
    assert!(expected.len() > 3 << 20, "{} bytes", expected.len());
    assert_eq!(long.pieces.concat(), expected);
    assert_eq!((long.whole, long.written), (None, Ok(())));
    // A piece ends with the row that fills it.
    assert!(long.pieces.iter().all(|piece| piece.len() < (1 << 20) + 100));
    assert_eq!(long.pieces.len(), expected.len().div_ceil(1 << 20));
    // A short run writes nothing.
    let (short, expected) = sampled("1s", |_| Ok(()));
    assert_eq!((short.pieces.len(), short.whole), (0, Some(expected)));
}

#[test]
fn samples_that_cannot_be_written_are_an_error() {
    let fails = |number| if number == 2 { Err(io::Error::other("the disk is full")) } else { Ok(()) };
    let (sampled, _) = sampled("20s", fails);
    assert_eq!(sampled.written, Err("the disk is full".to_owned()));
    assert_eq!(sampled.pieces.len(), 2, "a piece was written after one that failed");
}
