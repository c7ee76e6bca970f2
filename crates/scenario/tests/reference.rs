//! Tests that the reference page in docs/ matches the schema.

use std::path::Path;

#[test]
fn reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario-reference.md");
    let page = fullpipe_scenario::reference_markdown();
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/scenario-reference.md differs from the schema; write it anew with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-scenario --test all reference"
    );
}

#[test]
fn every_link_in_the_page_refers_to_a_heading() {
    let page = fullpipe_scenario::reference_markdown();
    let headings: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let targets: Vec<&str> = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(targets.len() > 10);
    for target in targets {
        assert!(headings.iter().any(|heading| heading == target), "{target} is not among {headings:?}");
    }
}

#[test]
fn each_probe_metric_is_listed_once_with_all_its_subjects() {
    let mut networks = fullpipe_scenario::access::ACCESS_NETWORKS.to_vec();
    let listed = fullpipe_scenario::probe_metrics(&networks);
    for (index, (metric, _)) in listed.iter().enumerate() {
        assert!(listed[..index].iter().all(|(other, _)| other.name != metric.name), "{} is listed twice", metric.name);
    }
    networks.retain(|network| network.declaration.name == "lte");
    let listed = fullpipe_scenario::probe_metrics(&networks);
    let text = |name: &str| &*listed.iter().find(|(metric, _)| metric.name == name).expect("the metric is declared").1;
    assert_eq!(text("throughput_bps"), "bits per second since the last sample (links, flows, segments, UEs).");
    assert!(text("queue_bytes").ends_with(" (links, UEs)."));
    assert!(text("queue_delay_s").ends_with(" (links, UEs)."));
    assert!(text("marks").ends_with(" (links, flows)."));
    assert_eq!(text("sinr_db"), "mean SINR over the last transport block (UEs).");
}
