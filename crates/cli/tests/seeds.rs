//! Tests `fullpipe run` with several seeds and one folder of records.

use fullpipe::archive::Results;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("seeds-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Runs the quick start into a folder. Returns the rows of its summary and standard error.
fn run(out: &Path, more: &[&str]) -> (Vec<Value>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["run", "quick-start", "--json", "--out"])
        .arg(out)
        .args(more)
        .output()
        .expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    (serde_json::from_slice(&output.stdout).expect("an array"), errors)
}

/// The seeds and the numbers of sent packets of all rows in results.csv.
fn rows(out: &Path) -> Vec<(u64, Option<f64>)> {
    let results = Results::read(&out.join(Results::FILE)).expect("results.csv");
    let sent = results.metrics.iter().position(|metric| metric == "tx_packets").expect("a metric");
    results.rows.iter().map(|row| (row.seed, row.values[sent])).collect()
}

fn n(rows: &[Value]) -> Option<u64> {
    rows.iter().find(|row| row["metric"] == "tx_packets")?["n"].as_u64()
}

/// The quick start has random loss or jitter, so seeds give different results. A run does not depend on other runs in
/// the folder.
#[test]
fn additional_seed_adds_a_row_and_keeps_the_others() {
    let (out, alone) = (folder("several"), folder("alone"));
    let random = ["--set", "processing_jitter=1ms"];
    let with = |seed: &'static str| [&["--seed", seed][..], &random].concat();
    let (first, _) = run(&out, &with("1"));
    assert_eq!(n(&first), Some(1));
    let (second, errors) = run(&out, &with("2"));
    assert_eq!(n(&second), Some(2));
    assert!(errors.contains("1 run made, 1 reused"), "{errors}");
    let both = rows(&out);
    assert_eq!(both.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), [2, 1]);
    run(&alone, &with("2"));
    assert_eq!(rows(&alone)[0], both[0]);
    // The first seed again: nothing is run, and all rows remain.
    let (_, errors) = run(&out, &with("1"));
    assert!(errors.contains("0 runs made, 2 reused"), "{errors}");
    assert_eq!(rows(&out), [both[1], both[0]]);
    // Runs of another scenario are not added to these runs.
    let (other, _) = run(&out, &["--seed", "3", "--set", "processing_jitter=2ms"]);
    assert_eq!((n(&other), rows(&out).len()), (Some(1), 1));
}

#[test]
fn report_and_study_file_contain_all_seeds() {
    let out = folder("report");
    run(&out, &["--seed", "7"]);
    run(&out, &["--seed", "5"]);
    let report = std::fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("</html>"));
    let study = std::fs::read_to_string(out.join("study.toml")).expect("a study");
    assert!(study.contains("seed = 5\n") && study.contains("more_seeds = [7]\n"), "{study}");
    let again = folder("again");
    let file = out.join("study.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["study", "run", file.to_str().expect("text"), "--quiet", "--out", again.to_str().expect("text")])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&again), rows(&out));
}
