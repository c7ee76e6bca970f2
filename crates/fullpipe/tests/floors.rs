//! The house's rule: a crate imports only from lower floors (ARCHITECTURE.md), and only `fullpipe` sees everything.

use std::collections::BTreeMap;
use std::process::Command;

/// The floor of each room, as ARCHITECTURE.md has it.
const FLOORS: [(&str, u32); 26] = [
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
    ("fullpipe-workload", 4),
    ("fullpipe-network", 3),
    ("fullpipe-transport", 3),
    ("fullpipe-control", 3),
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
fn imports_run_only_downstairs() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let floors: BTreeMap<&str, u32> = FLOORS.into_iter().collect();
    let packages = metadata["packages"].as_array().expect("there are packages");
    let mut seen = 0;
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let floor = floors.get(name).unwrap_or_else(|| panic!("{name} has no floor: give it one here"));
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("a list") {
            // Tests may look at the house from anywhere.
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let other = dependency["name"].as_str().expect("a dependency has a name");
            if let Some(below) = floors.get(other) {
                assert!(below < floor, "{name} (floor {floor}) imports {other} (floor {below})");
            }
        }
    }
    assert_eq!(seen, FLOORS.len(), "a room of the list is gone");
}

#[test]
fn the_auditor_shares_no_code_with_what_it_audits() {
    let manifest = include_str!("../../audit/Cargo.toml");
    for forbidden in ["network", "engine", "tcp", "transport", "workload", "congestion", "lab", "scenario"] {
        assert!(!manifest.contains(&format!("fullpipe-{forbidden}")), "audit imports {forbidden}");
    }
}
