//! Compares the verdicts in pages with the committed summaries of studies. A table after `<!-- claims of NAME -->` has a row for
//! each claim of `docs/results/NAME.csv`, with its verdict. `docs/robustness.md` has the verdicts of `docs/results/seeds`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The claims of a summary that have verdicts. A run of some experiments has none for claims about others.
fn committed(folder: &Path, study: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join(format!("results/{study}.csv"))).expect("the summary is committed");
    let column = |line: &str, name: &str| {
        let header = text.lines().next().expect("a header");
        let place = header.split(',').position(|column| column == name).expect("the column");
        line.split(',').nth(place).unwrap_or_default().to_owned()
    };
    let claims = text.lines().filter(|line| line.starts_with(",claim:"));
    let verdicts = claims.map(|line| (column(line, "metric").replacen("claim:", "", 1), column(line, "verdict")));
    verdicts.filter(|(_, verdict)| !verdict.is_empty()).collect()
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

/// The page contains the verdict, the number of agreeing seeds and the CPU time of each claim of each repeated study, and all
/// other pages quote the same verdict.
#[test]
fn the_page_of_seeds_has_the_verdicts_of_all_repeated_studies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(folder.join("robustness.md")).expect("the page");
    let by_study: BTreeMap<&str, &str> =
        page.split("\n### ").skip(1).filter_map(|part| part.split_once('\n')).collect();
    let mut studies = Vec::new();
    for entry in fs::read_dir(folder.join("results/seeds")).expect("the folder of seeds") {
        let path = entry.expect("an entry").path();
        let study = path.file_stem().and_then(|stem| stem.to_str()).expect("the name of a study").to_owned();
        let verdicts = committed(&folder, &study);
        let text = fs::read_to_string(&path).expect("the verdicts by seed");
        let rows = text.lines().filter_map(|line| line.strip_prefix("claim:"));
        let mut claims = 0;
        for row in rows {
            // name,verdicts,pooled,seeds,agreeing,contradicting,cpu_s
            let cells: Vec<&str> = row.split(',').collect();
            let [name, _, pooled, seeds, agreeing, _, cpu] = cells[..] else { panic!("{row}") };
            assert_eq!(verdicts.get(name).map(String::as_str), Some(pooled), "{study}: claim {name}");
            let begin = format!("| `{name}` | {pooled} | {agreeing} of {seeds} |");
            let plain = by_study[study.as_str()].replace(" (exploratory)", "");
            let found = plain.lines().find(|line| line.starts_with(&begin));
            assert!(
                found.is_some_and(|line| line.ends_with(&format!(" {cpu} |"))),
                "{study}: {begin} is not in the page"
            );
            claims += 1;
        }
        assert!(claims > 0, "{study} has no claims");
        studies.push(study);
    }
    studies.sort();
    assert_eq!(studies, by_study.into_keys().collect::<Vec<_>>(), "studies in the page");
}
