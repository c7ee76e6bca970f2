//! The table of MUSTs, `requirements.csv`: each row a requirement of an RFC in our own words, with the tests that show
//! it, or why it is deviated from or does not apply. Here it is checked that the table holds together, and counted.
//!
//! Columns: `rfc` (a number), `section`, `level` (MUST; SHOULD where it is told beside), `requirement`, `verdict` (`test`,
//! `deviation`, `not-applicable`), `evidence`: for `test` the names of test functions of this crate, with semicolons
//! between; else the reason.
//!
//! `cargo test -p fullpipe-quic --test requirements -- --nocapture` prints the counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("requirements.csv");
const COLUMNS: [&str; 6] = ["rfc", "section", "level", "requirement", "verdict", "evidence"];
/// A reason has at least so many letters.
const SHORTEST_REASON: usize = 25;

/// The fields of a line (RFC 4180: quoted where they hold a comma, a quote in a quoted field twice).
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(letter),
        }
    }
    assert!(!quoted, "an open quote: {line}");
    fields
}

fn rows() -> Vec<Vec<String>> {
    let mut lines = TABLE.lines();
    assert_eq!(fields(lines.next().unwrap()), COLUMNS);
    lines.map(fields).collect()
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Names of functions that follow `#[test]` in the sources.
fn tests() -> BTreeSet<String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    files(&home.join("src"), "rs", &mut sources);
    files(&home.join("tests"), "rs", &mut sources);
    let mut names = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(source).unwrap();
        for after in text.split("#[test]").skip(1) {
            let name = after.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
            names.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    names
}

/// The table as a page.
fn page() -> String {
    let mut page = String::from(
        "# What the RFCs ask of QUIC\n\n*Each requirement in our own words: how it is shown, or why it is not met or does not \
         apply. Made from `crates/quic/tests/requirements.csv`.*\n\nThe model has no cryptography and writes no bytes: what \
         concerns keys, tokens' contents, encodings and versions is left out or named as not applicable. Names are test \
         functions of `crates/quic`.\n",
    );
    let mut last = String::new();
    for row in rows() {
        let [rfc, section, level, requirement, verdict, evidence] = <[String; 6]>::try_from(row).unwrap();
        if rfc != last {
            page += &format!("\n## RFC {rfc}\n\n| section | level | requirement | shown by |\n|---|---|---|---|\n");
        }
        last = rfc;
        let shown = match verdict.as_str() {
            "test" => evidence.split(';').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            "deviation" => format!("**Not met.** {evidence}"),
            _ => format!("Does not apply. {evidence}"),
        };
        page += &format!("| {section} | {level} | {requirement} | {shown} |\n");
    }
    page
}

#[test]
fn the_page_of_requirements_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quic-requirements.md");
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page(),
        "docs/quic-requirements.md differs from the table; write it anew with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-quic --test requirements"
    );
}

#[test]
fn the_table_of_requirements_holds_together() {
    let tests = tests();
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<u32, [usize; 3]> = BTreeMap::new();
    for row in rows() {
        let [rfc, section, level, requirement, verdict, evidence] = <[String; 6]>::try_from(row).unwrap();
        let row = format!("RFC {rfc} section {section} {level}: {requirement}");
        assert!(seen.insert((rfc.clone(), section, level.clone(), requirement.clone())), "twice: {row}");
        assert!(level.starts_with("MUST") || level.starts_with("SHOULD"), "{row}");
        assert!(requirement.len() >= 12, "{row}");
        let counts = counts.entry(rfc.parse().unwrap()).or_default();
        match verdict.as_str() {
            "test" => {
                for name in evidence.split(';') {
                    assert!(tests.contains(name), "no test is called {name}: {row}");
                }
                counts[0] += 1;
            }
            "deviation" | "not-applicable" => {
                assert!(evidence.len() >= SHORTEST_REASON, "hardly a reason: {row}: {evidence}");
                counts[if verdict == "deviation" { 1 } else { 2 }] += 1;
            }
            _ => panic!("{verdict}: no verdict: {row}"),
        }
    }
    let texts: Vec<_> = counts
        .iter()
        .map(|(rfc, [tested, deviations, others])| {
            format!("RFC {rfc}: {tested} tested, {deviations} deviations, {others} not applicable")
        })
        .collect();
    let total = counts.values().fold([0; 3], |sum, count| [sum[0] + count[0], sum[1] + count[1], sum[2] + count[2]]);
    let [tested, deviations, others] = total;
    // On a line of its own: the harness writes before it.
    println!("\nMUSTs: {}; all: {tested} tested, {deviations} deviations, {others} not applicable", texts.join("; "));
}
