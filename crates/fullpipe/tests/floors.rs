//! Tests the layers of the workspace: a crate depends only on crates of lower layers. ARCHITECTURE.md lists the layers in
//! the column "layer". Development dependencies are exempt.

use std::collections::BTreeMap;
use std::process::Command;

/// The layer of each crate, as in ARCHITECTURE.md.
const LAYERS: [(&str, u32); 28] = [
    ("fullpipe-cli", 9),
    ("fullpipe", 8),
    ("fullpipe-study", 7),
    ("fullpipe-report", 7),
    ("fullpipe-lab", 6),
    ("fullpipe-scenario", 5),
    ("fullpipe-audit", 5),
    ("fullpipe-emulate", 5),
    ("fullpipe-stack", 5),
    ("fullpipe-sockets", 5),
    ("fullpipe-masque", 4),
    ("fullpipe-tcp", 4),
    ("fullpipe-quic", 4),
    ("fullpipe-lte", 4),
    ("fullpipe-wifi", 4),
    ("fullpipe-workload", 4),
    ("fullpipe-network", 3),
    ("fullpipe-transport", 3),
    ("fullpipe-control", 3),
    ("fullpipe-verdict", 3),
    ("fullpipe-archive", 2),
    ("fullpipe-engine", 2),
    ("fullpipe-congestion", 2),
    ("fullpipe-record", 2),
    ("fullpipe-tmix", 2),
    ("fullpipe-wire", 2),
    ("fullpipe-schema", 1),
    ("fullpipe-units", 0),
];

#[test]
fn crates_depend_only_on_lower_layers() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("the metadata contain packages");
    let mut layers: BTreeMap<&str, u32> = LAYERS.into_iter().collect();
    // A crate that a user adds, such as an access network, states its layer in its manifest.
    layers.extend(packages.iter().filter_map(|package| {
        let layer = package["metadata"]["fullpipe"]["layer"].as_u64()?;
        Some((package["name"].as_str()?, layer as u32))
    }));
    let mut seen = 0;
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let layer = layers.get(name).unwrap_or_else(|| {
            panic!("{name} has no layer: add it to LAYERS, or package.metadata.fullpipe.layer to its manifest")
        });
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("the dependencies are a list") {
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let other = dependency["name"].as_str().expect("a dependency has a name");
            if let Some(other_layer) = layers.get(other) {
                assert!(other_layer < layer, "{name} (layer {layer}) depends on {other} (layer {other_layer})");
            }
        }
    }
    assert_eq!(seen, layers.len(), "LAYERS lists a crate that does not exist");
}

#[test]
fn the_auditor_depends_on_no_crate_that_it_audits() {
    let manifest = include_str!("../../audit/Cargo.toml");
    for forbidden in ["network", "engine", "tcp", "transport", "workload", "congestion", "lab", "scenario"] {
        assert!(!manifest.contains(&format!("fullpipe-{forbidden}")), "fullpipe-audit depends on fullpipe-{forbidden}");
    }
}
