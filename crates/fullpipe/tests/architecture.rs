//! Tests that every path in ARCHITECTURE.md exists.
//!
//! A path is the target of a link, or a text in backquotes that contains a slash or ends in `.rs`. Paths are relative to the
//! root of the repository or to `crates/`.

use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Whether a text in backquotes is a path of the repository. Code with spaces is not, nor are folders of records.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    text.chars().all(is_plain) && (text.contains('/') || text.ends_with(".rs")) && !text.starts_with("runs/")
}

/// The texts between each opening and closing delimiter.
fn between<'a>(page: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(text, _)| text)
}

fn exists(path: &str) -> bool {
    [ROOT.to_owned(), format!("{ROOT}/crates")].iter().any(|folder| Path::new(folder).join(path).exists())
}

#[test]
fn every_path_of_the_architecture_page_exists() {
    let page = std::fs::read_to_string(format!("{ROOT}/ARCHITECTURE.md")).expect("the page is in the repository");
    let outside_of_code: String =
        page.split("```").enumerate().filter(|(part, _)| part % 2 == 0).map(|(_, text)| text).collect();
    let quoted = outside_of_code.split('`').skip(1).step_by(2).filter(|text| is_path(text));
    let linked = between(&page, "](", ")").filter(|target| !target.contains("://"));
    let linked = linked.map(|target| target.split('#').next().unwrap_or(target)).filter(|path| !path.is_empty());
    let paths: Vec<&str> = quoted.chain(linked).collect();
    assert!(paths.len() > 20, "only {} paths found: {paths:?}", paths.len());
    let missing: Vec<&&str> = paths.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names paths that do not exist: {missing:?}");
}

#[test]
fn paths_are_recognized_and_checked_for_existence() {
    assert!(is_path("crates/fullpipe/src/lib.rs") && exists("crates/fullpipe/src/lib.rs"));
    assert!(is_path("lab/src/no_such_file.rs") && !exists("lab/src/no_such_file.rs"));
    assert!(!is_path("Network::send") && !is_path("cargo fullpipe") && !is_path("runs/KEY"));
}
