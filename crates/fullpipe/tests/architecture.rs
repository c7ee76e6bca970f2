//! Tests that every path in ARCHITECTURE.md exists, and that every test file is built.
//!
//! A path is the target of a link, or a text in backquotes that contains a slash or ends with `.rs`. Paths are relative
//! to the root of the repository or to `crates/`.

use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Whether a text in backquotes is a path in the repository. Code with spaces and folders of records are not paths.
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
fn every_path_in_the_architecture_page_exists() {
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

/// Crates with `autotests = false` build only the tests that their manifest lists.
#[test]
fn every_test_file_is_a_module_of_the_test_binary_or_a_target() {
    let folders = |path: &Path| -> Vec<_> {
        std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.expect("a readable folder").path()).collect()
    };
    let mut modules = 0;
    for krate in folders(&Path::new(ROOT).join("crates")) {
        let Ok(all) = std::fs::read_to_string(krate.join("tests/all.rs")) else { continue };
        let manifest = std::fs::read_to_string(krate.join("Cargo.toml")).expect("a crate has a manifest");
        for file in folders(&krate.join("tests")) {
            let file = if file.join("main.rs").exists() { file.join("main.rs") } else { file };
            if file.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let name = file.file_stem().expect("a file has a name").to_string_lossy();
            let path = file.strip_prefix(&krate).expect("the test file is in the crate").display().to_string();
            let is_module = all.lines().any(|line| line == format!("mod {name};"));
            modules += usize::from(is_module);
            assert!(
                is_module || manifest.contains(&format!("path = {path:?}")),
                "{} is never built: add `mod {name};` to tests/all.rs",
                file.display()
            );
        }
    }
    assert!(modules > 50, "only {modules} modules found");
}
