//! Embeds the scenarios and studies of the workspace, and gives the build an identity: the package's version and a hash
//! over the workspace's sources and Cargo.lock.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // Asked when it runs: several clones may share a target folder, and with it this program.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let workspace = Path::new(&package).join("../..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut code = String::new();
    for (name, folder) in [("SCENARIO_FILES", "scenarios"), ("STUDY_FILES", "studies")] {
        let root = workspace.join(folder);
        println!("cargo:rerun-if-changed={}", root.display());
        let _ = writeln!(code, "/// Every file below `{folder}/`, by its path there.");
        let _ = writeln!(code, "pub(crate) const {name}: &[(&str, &str)] = &[");
        for file in files(&root, &["toml", "csv", "md"]) {
            let relative = relative(&root, &file);
            let absolute = fs::canonicalize(&file).expect("a listed file exists");
            let _ = writeln!(code, "    ({relative:?}, include_str!({:?})),", absolute.display().to_string());
        }
        code.push_str("];\n");
    }
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR is writable");

    let mut hash = Sha256::new();
    let crates = workspace.join("crates");
    println!("cargo:rerun-if-changed={}", crates.display());
    let mut sources = files(&crates, &["rs", "toml"]);
    sources.extend([workspace.join("Cargo.lock"), workspace.join("Cargo.toml")]);
    for file in sources {
        // An installed package has no workspace around it; then the version alone must do.
        let Ok(content) = fs::read(&file) else { continue };
        hash.update(relative(&workspace, &file).as_bytes());
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    let digest: String = hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    println!("cargo:rustc-env=FULLPIPE_BUILD={}+{digest}", env!("CARGO_PKG_VERSION"));
}

fn relative(root: &Path, file: &Path) -> String {
    let parts: Vec<_> =
        file.strip_prefix(root).unwrap_or(file).components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// Files below a folder with one of these endings, sorted. Tests and build products do not make a build.
fn files(root: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                if !["target", "tests", "benches", "examples"].iter().any(|skipped| name == *skipped) {
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
