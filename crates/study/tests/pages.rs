//! Verdicts that pages quote agree with the committed summaries of studies: a table after `<!-- claims of NAME -->` has a row for
//! each claim of `docs/results/NAME.csv`, with its verdict.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The claims of a summary with their verdicts.
fn committed(folder: &Path, study: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join(format!("results/{study}.csv"))).expect("the summary is committed");
    let column = |line: &str, name: &str| {
        let header = text.lines().next().expect("a header");
        let place = header.split(',').position(|column| column == name).expect("the column");
        line.split(',').nth(place).unwrap_or_default().to_owned()
    };
    let claims = text.lines().filter(|line| line.starts_with(",claim:"));
    claims.map(|line| (column(line, "metric").replacen("claim:", "", 1), column(line, "verdict"))).collect()
}

#[test]
fn verdicts_in_pages_are_those_of_the_committed_summaries() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut tables = 0;
    for entry in fs::read_dir(&folder).expect("the folder of pages") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).expect("a page");
        for table in page.split("<!-- claims of ").skip(1) {
            let (study, table) = table.split_once(" -->").expect("the end of the marker");
            let table = table.split("<!-- end of claims -->").next().unwrap_or_default();
            let rows = table.lines().filter(|line| line.starts_with("| `"));
            let quoted: BTreeMap<String, String> = rows
                .map(|row| {
                    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
                    let verdict = cells.last().expect("a verdict").trim_end_matches(" (exploratory)");
                    (cells[0].trim_matches('`').to_owned(), verdict.to_owned())
                })
                .collect();
            assert_eq!(quoted, committed(&folder, study), "{} quotes other verdicts than {study}.csv", path.display());
            tables += 1;
        }
    }
    assert!(tables > 0, "no page has a table of claims");
}
