//! Tests that virtual time builds on every platform. The manifests and sources of all crates must satisfy these rules:
//!
//! * only the feature `real-time` enables crates and items that require Linux;
//! * outside Linux the feature has no effect;
//! * crates and items that require Unix are used only under `cfg(unix)`, and only those parts that all Unix systems have;
//! * all other crates are in a list of portable crates ([`manifests::PORTABLE`]).
//!
//! Tests, benchmarks and development dependencies are exempt, because they run on Linux only. `.ci/platforms` compiles
//! the command for Windows and macOS.

mod manifests;
mod predicate;
#[path = "../circles/source.rs"]
#[allow(dead_code, reason = "these tests use the tokens, not the graph of modules")]
mod source;
mod sources;

use manifests::Manifest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The folders of all crates.
fn crates() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("{ROOT}/crates")).expect("a folder of crates");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders.sort();
    folders
}

/// The root files of a crate's targets, except tests and benchmarks.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let mut roots = vec![folder.join("build.rs"), folder.join("src/lib.rs"), folder.join("src/main.rs")];
    let examples = std::fs::read_dir(folder.join("examples"));
    roots.extend(examples.into_iter().flatten().map(|entry| entry.expect("the folder is readable").path()));
    roots.retain(|root| root.extension().is_some_and(|extension| extension == "rs") && root.exists());
    roots
}

#[test]
fn only_the_real_time_feature_requires_linux() {
    let workspace = text(&Path::new(ROOT).join("Cargo.toml")).expect("the workspace has a manifest");
    let manifests: BTreeMap<PathBuf, Manifest> = crates()
        .into_iter()
        .map(|folder| {
            let path = folder.join("Cargo.toml");
            let manifest = Manifest::read(&text(&path).expect("a crate has a manifest"));
            (folder, manifest.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    let mut wrong = manifests::check_workspace(&workspace, manifests.values());
    let (mut files, mut restricted) = (0, 0);
    for (folder, manifest) in &manifests {
        wrong.extend(manifest.check());
        for root in roots(folder) {
            let found = sources::read(&root, &text);
            files += found.files;
            let (uses, errors) = sources::check(&found, manifest);
            restricted += uses;
            wrong.extend(errors);
        }
    }
    wrong.extend(manifests::check_list(manifests.values()));
    // `emulate` alone has more than 100 uses of libc.
    assert!(manifests.len() > 20 && files > 300 && restricted > 100, "{files} files with {restricted} uses");
    assert!(wrong.is_empty(), "does not build, or may not build, on all platforms:\n{}", wrong.join("\n"));
}

/// A manifest with a feature `real-time` and these tables.
fn manifest(tables: &str) -> Manifest {
    Manifest::read(&format!("[package]\nname = \"example\"\n{tables}")).expect("a manifest")
}

#[test]
fn manifests_that_need_linux_without_the_feature_are_rejected() {
    let feature = "[features]\ndefault = [\"real-time\"]\nreal-time = [\"dep:libc\"]\n";
    let linux = "[target.'cfg(target_os = \"linux\")'.dependencies]\n";
    for (what, tables, expected) in [
        ("a portable crate", "[dependencies]\nbytes.workspace = true\n".to_owned(), None),
        ("an optional Linux crate", format!("{feature}{linux}libc = {{ version = \"1\", optional = true }}\n"), None),
        ("a Unix crate", "[target.'cfg(unix)'.dependencies]\nrustix.workspace = true\n".to_owned(), None),
        ("a Linux crate everywhere", "[dependencies]\nlibc = \"1\"\n".to_owned(), Some("`libc` is not in PORTABLE")),
        ("a Linux crate in a build script", "[build-dependencies]\nnix = \"1\"\n".to_owned(), Some("`nix` is not in")),
        ("a required Linux crate", format!("{feature}{linux}libc = \"1\"\n"), Some("`libc` is not optional")),
        (
            "a feature that does not enable it",
            format!(
                "[features]\ndefault = [\"real-time\"]\nreal-time = []\n{linux}libc = {{ version = \"1\", optional = true }}\n"
            ),
            Some("`real-time` does not enable `dep:libc`"),
        ),
        (
            "another feature that enables it",
            format!("{feature}fast = [\"dep:libc\"]\n{linux}libc = {{ version = \"1\", optional = true }}\n"),
            Some("feature `fast` enables `dep:libc`"),
        ),
        (
            "a feature that is off by default",
            "[features]\ndefault = []\nreal-time = []\n".to_owned(),
            Some("`real-time` is not a default feature"),
        ),
        (
            "another target",
            "[target.'cfg(windows)'.dependencies]\nwinapi = \"1\"\n".to_owned(),
            Some("dependencies for `cfg(windows)`"),
        ),
    ] {
        let errors = manifest(&tables).check();
        match expected {
            None => assert!(errors.is_empty(), "{what}: {errors:?}"),
            Some(expected) => {
                assert!(errors.len() == 1 && errors[0].contains(expected), "{what}: {errors:?}, not {expected:?}");
            }
        }
    }
    let crates = [manifest("[features]\ndefault = [\"real-time\"]\nreal-time = []\n")];
    let workspace = "[workspace.dependencies]\nexample = { path = \"example\" }\n";
    assert_eq!(manifests::check_workspace(workspace, &crates).len(), 1, "no command could turn the feature off");
    let workspace = "[workspace.dependencies]\nexample = { path = \"example\", default-features = false }\n";
    assert!(manifests::check_workspace(workspace, &crates).is_empty());
}

#[test]
fn sources_that_need_linux_without_the_feature_are_rejected() {
    let manifest = manifest(
        "[features]\ndefault = [\"real-time\"]\nreal-time = [\"dep:libc\"]\n\
         [target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n\
         [target.'cfg(target_os = \"linux\")'.dependencies]\nlibc = { version = \"1\", optional = true }\n",
    );
    let gate = "#[cfg(all(feature = \"real-time\", target_os = \"linux\"))]";
    for (what, root, expected) in [
        ("a module", format!("{gate} mod inner;"), 0),
        ("an item", format!("{gate} fn f() {{ libc::getpid(); }}"), 0),
        ("two attributes", "#[cfg(feature = \"real-time\")] #[cfg(target_os = \"linux\")] use libc::getpid;".into(), 1),
        ("a public group", format!("{gate} pub use libc::{{getpid, getuid}}; fn f() {{}}"), 0),
        ("a Unix item", "#[cfg(unix)] fn f() { rustix::time::clock_gettime(); } fn g() {}".into(), 0),
        ("a Unix import", "#[cfg(unix)] use std::os::unix::fs::FileExt; use std::fs;".into(), 0),
        ("a unit test", "#[cfg(test)] mod tests { use std::os::unix::fs::FileExt; }".into(), 0),
        ("a comment", "// libc::getpid()\n fn f() { g(\"libc::getpid\") }".into(), 0),
        ("a module without attribute", "mod inner;".into(), 1),
        ("a path", "fn f() { libc::getpid(); }".into(), 1),
        ("a path after an item", format!("{gate} fn f() {{}} fn g() {{ libc::getpid(); }}"), 1),
        ("a feature alone", "#[cfg(feature = \"real-time\")] use libc::getpid;".into(), 2),
        ("Linux alone", "#[cfg(target_os = \"linux\")] use libc::getpid;".into(), 1),
        ("Unix alone", "#[cfg(unix)] use libc::getpid;".into(), 1),
        ("one of two", "#[cfg(any(feature = \"real-time\", target_os = \"linux\"))] use libc::getpid;".into(), 2),
        ("the build without", "#[cfg(not(all(feature = \"real-time\", target_os = \"linux\")))] mod inner;".into(), 1),
        ("a group", "use std::{io, os::{linux::fs::MetadataExt, raw}};".into(), 2),
        ("the folder", "use std::os; fn f(_: os::unix::net::UnixStream) {}".into(), 1),
        ("a Unix item everywhere", "fn f() { rustix::time::clock_gettime(); }".into(), 1),
        ("a Linux part of a Unix crate", "#[cfg(unix)] fn f() { rustix::mount::mount(); }".into(), 1),
        ("a part of a portable crate", "use tokio::signal::unix::SignalKind;".into(), 1),
        ("a condition at run time", "fn f() { if cfg!(target_os = \"linux\") { libc::getpid(); } }".into(), 1),
        ("an effect elsewhere", "fn f() -> bool { cfg!(feature = \"real-time\") }".into(), 1),
        ("an effect of an attribute", "#[cfg_attr(feature = \"real-time\", allow(dead_code))] fn f() {}".into(), 1),
    ] {
        let files = |path: &Path| match path.to_str() {
            Some("src/lib.rs") => Some(root.clone()),
            Some("src/inner.rs") => Some("fn f() { libc::getpid(); }".to_owned()),
            _ => None,
        };
        let (_, errors) = sources::check(&sources::read(Path::new("src/lib.rs"), &files), &manifest);
        assert_eq!(errors.len(), expected, "{what}: {errors:?}");
    }
}
