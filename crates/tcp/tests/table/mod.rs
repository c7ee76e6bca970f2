//! A table of requirements: each row is a requirement of an RFC in our own words, with the tests that verify it, or the reason for a
//! deviation or for not applying it. This module checks the consistency of the table, counts its rows, and generates the page of `docs`.
//! The crates `tcp` and `quic` have one table each.
//!
//! Columns: `rfc` (a number), `section`, `level` (MUST, or MUST-n as numbered in an appendix; SHOULD if listed with a MUST),
//! `requirement`, `verdict` (`test`, `deviation`, `not-applicable`), `evidence`. For `test`, the evidence is the names of test functions
//! of the crate, or of scripts in its `tests/scripts` (`rfc9293/three_way_handshake`), separated by semicolons; otherwise it is the
//! reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const COLUMNS: [&str; 6] = ["rfc", "section", "level", "requirement", "verdict", "evidence"];
/// Minimum length of a reason in bytes.
const SHORTEST_REASON: usize = 25;

/// The table of a crate.
pub(crate) struct Requirements {
    /// Content of `requirements.csv`.
    pub(crate) table: &'static str,
    /// Folder of the crate.
    pub(crate) home: &'static str,
    /// Short name of the crate.
    pub(crate) name: &'static str,
    /// Text at the start of the page, after its title.
    pub(crate) about: &'static str,
}

/// The fields of a line (RFC 4180: quoted if they contain a comma; a quote in a quoted field is doubled).
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

impl Requirements {
    /// All rows.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let mut lines = self.table.lines();
        assert_eq!(fields(lines.next().unwrap()), COLUMNS);
        lines.map(fields).collect()
    }

    /// Names of functions that follow `#[test]` in the sources, and of scripts.
    fn tests(&self) -> BTreeSet<String> {
        let home = Path::new(self.home);
        let (mut sources, mut scripts) = (Vec::new(), Vec::new());
        files(&home.join("src"), "rs", &mut sources);
        files(&home.join("tests"), "rs", &mut sources);
        if home.join("tests/scripts").is_dir() {
            files(&home.join("tests/scripts"), "script", &mut scripts);
        }
        let mut names = BTreeSet::new();
        for source in sources {
            let text = std::fs::read_to_string(source).unwrap();
            for after in text.split("#[test]").skip(1) {
                let name = after.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
                names.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
        for script in scripts {
            let path = script.strip_prefix(home.join("tests/scripts")).unwrap().with_extension("");
            names.insert(path.to_str().unwrap().to_owned());
        }
        names
    }

    /// Formats the table as a page.
    fn page(&self) -> String {
        let Requirements { name, about, .. } = self;
        let mut page = format!(
            "# Requirements of the {} RFCs\n\n*The requirements are in our own words. Each row names the tests that verify the requirement, or states why it is not met or does not apply. This page is generated from `crates/{name}/tests/requirements.csv`.*\n\n{about}\n",
            name.to_uppercase()
        );
        let mut last = String::new();
        for row in self.rows() {
            let [rfc, section, level, requirement, verdict, evidence] = <[String; 6]>::try_from(row).unwrap();
            if rfc != last {
                page += &format!(
                    "\n## RFC {rfc}\n\n| section | level | requirement | tests or reason |\n|---|---|---|---|\n"
                );
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

    /// Asserts that the page in `docs` matches the table.
    pub(crate) fn check_page(&self) {
        let name = self.name;
        let path = Path::new(self.home).join(format!("../../docs/{name}-requirements.md"));
        if std::env::var_os("FULLPIPE_UPDATE").is_some() {
            std::fs::write(&path, self.page()).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == self.page(),
            "docs/{name}-requirements.md differs from the table; regenerate it with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-{name} --test all requirements"
        );
    }

    /// Asserts that the table is consistent; prints the counts.
    pub(crate) fn check(&self) {
        let tests = self.tests();
        let mut seen = BTreeSet::new();
        let mut counts: BTreeMap<u32, [usize; 3]> = BTreeMap::new();
        for row in self.rows() {
            let [rfc, section, level, requirement, verdict, evidence] = <[String; 6]>::try_from(row).unwrap();
            let row = format!("RFC {rfc} section {section} {level}: {requirement}");
            assert!(seen.insert((rfc.clone(), section, level.clone(), requirement.clone())), "duplicate row: {row}");
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
                    assert!(evidence.len() >= SHORTEST_REASON, "the reason is too short: {row}: {evidence}");
                    counts[if verdict == "deviation" { 1 } else { 2 }] += 1;
                }
                _ => panic!("unknown verdict {verdict}: {row}"),
            }
        }
        let texts: Vec<_> = counts
            .iter()
            .map(|(rfc, [tested, deviations, others])| {
                format!("RFC {rfc}: {tested} tested, {deviations} deviations, {others} not applicable")
            })
            .collect();
        let total =
            counts.values().fold([0; 3], |sum, count| [sum[0] + count[0], sum[1] + count[1], sum[2] + count[2]]);
        let [tested, deviations, others] = total;
        // On a separate line, because the test harness writes before it.
        println!(
            "\nMUSTs: {}; all: {tested} tested, {deviations} deviations, {others} not applicable",
            texts.join("; ")
        );
    }
}
