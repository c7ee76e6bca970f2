//! The rules for manifests.

use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{DocumentMut, Item, Table, TableLike};

/// Third-party crates that build on Linux, macOS and Windows. Add a crate only if it does; `.ci/platforms` tests this
/// for the build without features.
pub(crate) const PORTABLE: &[&str] = &[
    "arrow-array",
    "arrow-schema",
    "base64",
    "bytes",
    "clap",
    "clap_complete",
    "clap_mangen",
    "csv",
    "epaint_default_fonts",
    "futures-util",
    "h2",
    "h3",
    "hdrhistogram",
    "http",
    "http-body-util",
    "hyper",
    "hyper-util",
    "indicatif",
    "libm",
    "memchr",
    "noq",
    "noq-proto",
    "pyo3",
    "rand_core",
    "rand_xoshiro",
    "rcgen",
    "resvg",
    "ring",
    "rustls",
    "serde_json",
    "sha2",
    "signal-hook",
    "socket2",
    "strsim",
    "subtle",
    "svg2pdf",
    "tempfile",
    "tokio",
    "tokio-rustls",
    "toml_edit",
    "x25519-dalek",
];

/// The builds to which a dependency table of a manifest applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Systems {
    All,
    Unix,
    Linux,
}

/// The parts of a manifest that the rules check.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    /// Dependencies, except development dependencies: name, systems, and whether the dependency is optional.
    pub(crate) dependencies: Vec<(String, Systems, bool)>,
    features: BTreeMap<String, Vec<String>>,
    /// Dependencies for other systems.
    unknown: Vec<String>,
}

impl Manifest {
    pub(crate) fn read(text: &str) -> Result<Manifest, String> {
        let document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
        let table = |table: &dyn TableLike, key: &str| table.get(key).and_then(Item::as_table_like).map(entries);
        let root: &Table = document.as_table();
        let name = document["package"]["name"].as_str().ok_or("a package without name")?.to_owned();
        let (mut dependencies, mut unknown) = (Vec::new(), Vec::new());
        let mut add = |from: &dyn TableLike, systems: Option<Systems>, target: &str| {
            for (dependency, item) in
                ["dependencies", "build-dependencies"].iter().filter_map(|key| table(from, key)).flatten()
            {
                let optional = item.get("optional").and_then(Item::as_bool) == Some(true);
                match systems {
                    Some(systems) => dependencies.push((dependency, systems, optional)),
                    None => unknown.push(format!("`{dependency}` is among dependencies for `{target}`")),
                }
            }
        };
        add(root, Some(Systems::All), "");
        for (target, item) in table(root, "target").unwrap_or_default() {
            let systems = match target.as_str() {
                "cfg(unix)" => Some(Systems::Unix),
                "cfg(target_os = \"linux\")" => Some(Systems::Linux),
                _ => None,
            };
            add(item.as_table_like().ok_or("a target that is no table")?, systems, &target);
        }
        let names = |item: &Item| {
            let names = item.as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let features = table(root, "features").unwrap_or_default();
        let features = features.iter().map(|(feature, item)| (feature.clone(), names(item))).collect();
        Ok(Manifest { name, dependencies, features, unknown })
    }

    /// Returns the violations of the rules in this manifest.
    pub(crate) fn check(&self) -> Vec<String> {
        let mut wrong = self.unknown.clone();
        for (name, systems, is_optional) in &self.dependencies {
            let others = self.features.iter().filter(|(feature, _)| *feature != "real-time");
            let enable = format!("dep:{name}");
            match systems {
                Systems::All => {
                    if !name.starts_with("fullpipe") && !PORTABLE.contains(&name.as_str()) {
                        wrong.push(format!(
                            "`{name}` is not in PORTABLE: add it there if it builds on all platforms; otherwise use it for \
                             `cfg(unix)`, or for `cfg(target_os = \"linux\")` with the feature `real-time`"
                        ));
                    }
                }
                Systems::Unix => {}
                Systems::Linux if !is_optional => wrong.push(format!("`{name}` is not optional")),
                Systems::Linux => {
                    if !self.features.get("real-time").is_some_and(|enables| enables.contains(&enable)) {
                        wrong.push(format!("the feature `real-time` does not enable `{enable}`"));
                    }
                    let others = others.filter(|(_, enables)| enables.contains(&enable));
                    wrong.extend(others.map(|(feature, _)| format!("the feature `{feature}` enables `{enable}`")));
                }
            }
        }
        let default = self.features.get("default");
        if self.has_real_time() && !default.is_some_and(|default| default.iter().any(|name| name == "real-time")) {
            wrong.push("`real-time` is not a default feature".to_owned());
        }
        wrong.into_iter().map(|error| format!("{}: Cargo.toml: {error}", self.name)).collect()
    }

    fn has_real_time(&self) -> bool {
        self.features.contains_key("real-time")
    }
}

fn entries(table: &dyn TableLike) -> Vec<(String, Item)> {
    table.iter().map(|(key, item)| (key.to_owned(), item.clone())).collect()
}

/// Checks that crates with the feature are used without default features. Otherwise no build could disable the feature.
pub(crate) fn check_workspace<'a>(text: &str, manifests: impl IntoIterator<Item = &'a Manifest>) -> Vec<String> {
    let document: DocumentMut = text.parse().expect("the workspace's manifest is TOML");
    let turns_off = |name: &str| {
        let dependency = document["workspace"]["dependencies"].get(name);
        dependency.is_none_or(|dependency| dependency.get("default-features").and_then(Item::as_bool) == Some(false))
    };
    let with = manifests.into_iter().filter(|manifest| manifest.has_real_time() && !turns_off(&manifest.name));
    with.map(|manifest| format!("Cargo.toml: `{}` needs `default-features = false`", manifest.name)).collect()
}

/// Checks that every name in the list of portable crates is a dependency of a crate.
pub(crate) fn check_list<'a>(manifests: impl IntoIterator<Item = &'a Manifest>) -> Vec<String> {
    let used: BTreeSet<&str> = manifests
        .into_iter()
        .flat_map(|manifest| &manifest.dependencies)
        .filter(|(_, systems, _)| *systems == Systems::All)
        .map(|(name, ..)| name.as_str())
        .collect();
    let unused = PORTABLE.iter().filter(|name| !used.contains(**name));
    unused.map(|name| format!("no crate depends on `{name}`: remove it from PORTABLE")).collect()
}
