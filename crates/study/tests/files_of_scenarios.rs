//! Tests of files to which a scenario refers: their content is part of a run's key, and they are found beside the scenario from
//! any working directory.

use crate::common::Temporary;
use fullpipe_study::{RunError, RunOptions, Runner, ScenarioSource, VirtualTimeRunner};
use std::path::Path;

const SCENARIO: &str = "duration = '1s'
[topology]
kind = 'dumbbell'
access = { rate = '100Mbit/s', delay = '1ms' }
bottleneck = { rate = '10Mbit/s', delay = '5ms' }
[[flow]]
name = 'r5s2'
from = 'left1'
to = 'right1'
workload = 'tmix'
";

fn source(folder: &Path, key: &str) -> ScenarioSource {
    let text = format!("{SCENARIO}{key}\n");
    let name = folder.join("scenario.toml").display().to_string();
    ScenarioSource { name, origin: "scenario.toml".into(), text, folder: Some(folder.to_owned()) }
}

/// A trace of one connection with a request of this number of bytes.
fn trace(bytes: u32) -> String {
    format!("S 1000 1 1 1\nw 65535 65535\nI 0 0 {bytes}\nA 0 2000 510\nI 3000 0 0\n")
}

#[test]
fn the_content_of_a_trace_is_part_of_the_key() {
    let folder = Temporary::new("trace-content");
    std::fs::create_dir(folder.join("traces")).unwrap();
    for key in ["file = 'traces/r5s2.alt'", "folder = 'traces'"] {
        let source = source(&folder.0, key);
        let content = |bytes| {
            std::fs::write(folder.join("traces/r5s2.alt"), trace(bytes)).unwrap();
            VirtualTimeRunner::new("test").resolve(&source, &[]).unwrap().content
        };
        assert_eq!(content(245), content(245));
        assert_ne!(content(245), content(246));
        // The trace is used: a request of 246 bytes.
        let laboratory = VirtualTimeRunner::new("test");
        let resolved = laboratory.resolve(&source, &[]).unwrap();
        let records = laboratory.run(&resolved, 1, &RunOptions::default()).unwrap();
        let flows = records.files.into_iter().find(|(name, _)| name == "flows.csv").unwrap().1;
        let flows = String::from_utf8(flows).unwrap();
        assert!(flows.lines().count() == 3, "{flows}");
        let row: Vec<&str> = flows.lines().nth(1).unwrap().split(',').collect();
        // Forward: SYN with its options, request, acknowledgements, FIN: at least 40 bytes each, and 246 bytes of payload once.
        let (packets, bytes): (u64, u64) = (row[7].parse().unwrap(), row[8].parse().unwrap());
        assert!((246 + 40 * packets..246 + 60 * packets).contains(&bytes), "{flows}");
    }
}

#[test]
fn a_trace_that_is_missing_is_told_by_name() {
    let folder = Temporary::new("trace-missing");
    let missing = |key| VirtualTimeRunner::new("test").resolve(&source(&folder.0, key), &[]).unwrap_err();
    assert!(
        missing("file = 'nothing.org'").contains("nothing.org: No such file"),
        "{}",
        missing("file = 'nothing.org'")
    );
    assert!(missing("folder = 'nowhere'").contains("nowhere/r5s2.org: No such file"));
}

#[test]
fn a_trace_that_changes_after_it_was_read_fails_the_run() {
    let folder = Temporary::new("trace-changes");
    let path = folder.0.join("r5s2.alt");
    std::fs::write(&path, trace(245)).unwrap();
    let laboratory = VirtualTimeRunner::new("test");
    let resolved = laboratory.resolve(&source(&folder.0, "file = 'r5s2.alt'"), &[]).unwrap();
    assert_eq!(resolved.file_hashes().map(<[u8]>::len).collect::<Vec<_>>(), [32], "one SHA-256");
    let run = || laboratory.run(&resolved, 1, &RunOptions::default());
    run().unwrap();
    // A longer request: the key of the run has the hash of the shorter one.
    std::fs::write(&path, trace(1245)).unwrap();
    let Err(RunError::Failed(reason)) = run() else { panic!("the run succeeded") };
    assert!(reason.contains("r5s2.alt changed after the scenario was read"), "{reason}");
    // A new time of modification alone is no change.
    std::fs::write(&path, trace(245)).unwrap();
    run().unwrap();
}
