//! Embeds scenarios, studies and documentation pages, and sets the identity of the build: the version of the package
//! and a hash of its sources.
//!
//! In the workspace these are the sources of all crates, Cargo.lock and the manifest of the workspace. In a package
//! they are the sources of the package and of its Fullpipe dependencies: cargo unpacks packages into sibling folders,
//! and Fullpipe packages depend on each other by exact versions. If there is a Cargo.lock above the target folder, it
//! adds the versions and checksums of all other packages.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // Read at run time, because several clones can share a target folder and therefore this executable.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let workspace = workspace(&package);
    // The package has these folders as symbolic links, which some checkouts do not support.
    let data = workspace.as_deref().unwrap_or(&package);
    let mut code = String::new();
    for (name, folder) in [("SCENARIO_FILES", "scenarios"), ("STUDY_FILES", "studies")] {
        let root = data.join(folder);
        println!("cargo:rerun-if-changed={}", root.display());
        let _ = writeln!(code, "/// Every file below `{folder}/`, by its path there.");
        let _ = writeln!(code, "pub(crate) const {name}: &[(&str, &str)] = &[");
        let found = files(&root, &["toml", "csv", "md"]);
        assert!(!found.is_empty(), "no files in {}", root.display());
        for file in found {
            let _ = writeln!(code, "    ({:?}, include_str!({:?})),", relative(&root, &file), absolute(&file));
        }
        code.push_str("];\n");
    }
    let docs = absolute(&data.join("docs"));
    let _ = writeln!(code, "/// The page of limitations.");
    let _ = writeln!(code, "pub const LIMITATIONS: &str = include_str!({:?});", format!("{docs}/limitations.md"));
    println!("cargo:rerun-if-changed={docs}");
    let _ = writeln!(code, "/// The pages of the documentation, by file name.");
    let _ = writeln!(code, "#[doc(hidden)]\npub const PAGES: &[(&str, &str)] = &[");
    for entry in files(Path::new(&docs), &["md"]).iter().filter(|file| file.parent() == Some(Path::new(&docs))) {
        let _ = writeln!(code, "    ({:?}, include_str!({:?})),", relative(Path::new(&docs), entry), absolute(entry));
    }
    code.push_str("];\n");
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR is writable");
    println!("cargo:rustc-env=FULLPIPE_DOCS={docs}");

    let digest = match &workspace {
        Some(workspace) => {
            let crates = workspace.join("crates");
            println!("cargo:rerun-if-changed={}", crates.display());
            let mut sources = files(&crates, &["rs", "toml"]);
            sources.extend([workspace.join("Cargo.lock"), workspace.join("Cargo.toml")]);
            digest(sources.iter().map(|file| (relative(workspace, file), file.clone())))
        }
        None => {
            let mut sources = Vec::new();
            for (name, folder) in packages(&package) {
                println!("cargo:rerun-if-changed={}", folder.display());
                let named = |file: PathBuf| (format!("{name}/{}", relative(&folder, &file)), file);
                // A package also contains the original manifest, and its Cargo.lock has no effect on builds that depend
                // on it.
                sources.extend(files(&folder, &["rs", "toml", "csv"]).into_iter().map(named));
            }
            let lock = out.ancestors().map(|folder| folder.join("Cargo.lock")).find(|lock| lock.exists());
            if let Some(lock) = lock {
                println!("cargo:rerun-if-changed={}", lock.display());
                sources.push(("Cargo.lock".into(), lock));
            }
            digest(sources.into_iter())
        }
    };
    println!("cargo:rustc-env=FULLPIPE_BUILD={}+{digest}", env!("CARGO_PKG_VERSION"));
}

/// The root of the workspace; `None` if this package is built alone.
fn workspace(package: &Path) -> Option<PathBuf> {
    let root = package.join("../..");
    let inside = fs::canonicalize(root.join("crates/fullpipe")).ok()?;
    (inside == fs::canonicalize(package).ok()?).then_some(root)
}

/// This package and the Fullpipe packages that it depends on, by name.
fn packages(package: &Path) -> BTreeSet<(String, PathBuf)> {
    let beside = package.parent().expect("a package is in a folder");
    let version = env!("CARGO_PKG_VERSION");
    let mut found = BTreeSet::from([(String::from("fullpipe"), package.to_path_buf())]);
    let mut next = vec![package.to_path_buf()];
    while let Some(folder) = next.pop() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a package has a manifest");
        let names = manifest.lines().filter_map(|line| line.strip_prefix("[dependencies.")?.strip_suffix(']'));
        for name in names.filter(|name| name.starts_with("fullpipe-")) {
            // `cargo vendor` omits the version.
            let places = [format!("{name}-{version}"), name.to_owned()].map(|place| beside.join(place));
            let Some(folder) = places.into_iter().find(|place| place.join("Cargo.toml").exists()) else { continue };
            if found.insert((name.to_owned(), folder.clone())) {
                next.push(folder);
            }
        }
    }
    found
}

/// The hash of the names and contents of files.
fn digest(files: impl Iterator<Item = (String, PathBuf)>) -> String {
    let mut hash = Sha256::new();
    for (name, file) in files {
        let Ok(content) = fs::read(&file) else { continue };
        hash.update(name.as_bytes());
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn absolute(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let path = path.display().to_string();
    // On Windows, canonical paths have a prefix, after which `/` does not separate names.
    path.strip_prefix(r"\\?\").unwrap_or(&path).to_owned()
}

fn relative(root: &Path, file: &Path) -> String {
    let parts: Vec<_> =
        file.strip_prefix(root).unwrap_or(file).components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// The files below a folder that have one of these extensions, sorted. Tests and build products do not affect the build.
fn files(root: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                // Symbolic links to folders of the workspace are not sources.
                let is_link = path.is_symlink();
                if !is_link && !["target", "tests", "benches", "examples"].iter().any(|skipped| name == *skipped) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
