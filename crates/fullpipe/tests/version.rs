//! Tests that the pages of a release have the version of the package.

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rest of the first line that begins with `begin`.
fn value(text: &str, begin: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(begin));
    line.unwrap_or_else(|| panic!("no line begins with {begin:?}")).trim_matches('"').to_owned()
}

#[test]
fn changelog_and_citation_have_the_version_of_the_package() {
    let version = env!("CARGO_PKG_VERSION");
    let citation = file("CITATION.cff");
    assert_eq!(value(&citation, "version: "), version, "CITATION.cff");
    let date = value(&citation, "date-released: ");
    assert_eq!(value(&file("CHANGELOG.md"), "## "), format!("{version} ({date})"), "the first section of CHANGELOG.md");
    let outside = value(&file(".ci/package-program/Cargo.toml"), "fullpipe = \"");
    assert_eq!(outside, version, ".ci/package-program/Cargo.toml");
}
