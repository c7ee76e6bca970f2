//! Checks that the claims, experiments, plots and keys in the pages of publications exist: `docs/publications/*.md` against the
//! study files, the embedded scenarios and the scenario reference.

use std::fs;
use std::path::{Path, PathBuf};

/// The names in backticks that have the form of a name in a study: words joined by hyphens or underscores.
fn names(page: &str) -> impl Iterator<Item = &str> {
    let code = page.split('`').skip(1).step_by(2);
    code.filter(|name| {
        let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        name.contains(['-', '_']) && name.split(['-', '_']).all(word)
    })
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn names_in_pages_of_publications_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let studies: String = fs::read_dir(root.join("studies"))
        .expect("the studies")
        .flat_map(|entry| files(&entry.expect("an entry").path(), "toml"))
        .map(|path| fs::read_to_string(path).expect("a file of a study"))
        .collect();
    let reference = fs::read_to_string(root.join("docs/scenario-reference.md")).expect("the reference");
    let (mut checked, mut unknown) = (0, Vec::new());
    for path in files(&root.join("docs/publications"), "md") {
        let page = fs::read_to_string(&path).expect("a page");
        for name in names(&page) {
            let exists = studies.contains(&format!("\"{name}\""))
                || root.join("studies").join(name).is_dir()
                || root.join(format!("scenarios/{name}.toml")).is_file()
                || reference.contains(&format!("`{name}`"))
                || reference.contains(&format!("\"{name}\""));
            checked += 1;
            if !exists {
                unknown.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "no claim, experiment, plot, study, scenario or key has these names: {unknown:#?}");
    assert!(checked > 50, "{checked} names found");
}
