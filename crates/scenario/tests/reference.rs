//! The reference page in docs/ is the schema's.

use std::path::Path;

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario-reference.md");
    let page = fullpipe_scenario::reference_markdown();
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/scenario-reference.md differs from the schema; write it anew with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-scenario --test reference"
    );
}

#[test]
fn every_link_of_the_page_leads_to_a_heading() {
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
