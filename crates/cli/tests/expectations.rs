//! Tests expectations in continuous integration: exit status, table, messages, JUnit XML.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/continuous-integration/uplink.toml");

fn fullpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts")
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("expectations-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs the example with additional arguments. Returns exit status, standard output, standard error and the JUnit file.
fn run(name: &str, arguments: &[&str]) -> (Option<i32>, String, String, String) {
    let folder = folder(name);
    let (out, junit) = (folder.join("out"), folder.join("junit.xml"));
    let (out, junit_text) = (out.to_str().expect("text"), junit.to_str().expect("text"));
    let output = fullpipe(&[&["run", EXAMPLE, "--quiet", "--out", out, "--junit", junit_text], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let xml = std::fs::read_to_string(&junit).unwrap_or_default();
    (output.status.code(), text(&output.stdout), text(&output.stderr), xml)
}

#[test]
fn example_meets_its_expectations() {
    let (status, printed, errors, xml) = run("met", &[]);
    assert_eq!(status, Some(0), "{errors}");
    let table = printed.split("\nExpectations:\n").nth(1).expect("a table of expectations");
    assert_eq!(table.matches(" met").count(), 4, "{table}");
    assert!(xml.contains("tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"0\""), "{xml}");
    assert!(
        xml.contains("<testcase classname=\"uplink.expectation\" name=\"goodput_bps of download, min 8 Mbit/s\""),
        "{xml}"
    );
    let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expectations-met/out/report.html");
    let report = std::fs::read_to_string(report).expect("a report");
    assert!(report.contains("0 of 4 failed") && report.contains("delay_p99_s of call"));
}

#[test]
fn failed_expectation_has_exit_status_4_and_a_message() {
    let (status, _, errors, xml) = run("failed", &["--json", "--set", "expect.0.min=20Mbit/s"]);
    assert_eq!(status, Some(4), "{errors}");
    assert!(errors.contains("1 of 4 expectations failed:\n  goodput_bps of download: "), "{errors}");
    assert!(errors.contains("Mbit/s is below the minimum 20 Mbit/s"), "{errors}");
    assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{xml}");
    let failure = xml.split("<failure message=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a failure");
    assert!(failure.starts_with("download: 9.") && failure.ends_with("is below the minimum 20 Mbit/s"), "{failure}");
    // Every element is closed.
    for element in ["testsuites", "testsuite", "testcase", "failure", "system-out"] {
        let opened = xml.matches(&format!("<{element} ")).count() + xml.matches(&format!("<{element}>")).count();
        assert_eq!(opened, xml.matches(&format!("</{element}>")).count(), "{element}: {xml}");
    }
}

#[test]
fn invalid_result_has_exit_status_3_even_if_an_expectation_fails() {
    let sabotage = ["--sabotage", "fast-link:bottleneck", "--set", "expect.0.min=20Mbit/s"];
    let (status, _, errors, xml) = run("invalid", &sabotage);
    assert_eq!(status, Some(3), "{errors}");
    assert!(xml.contains("failures=\"0\"") && !xml.contains("errors=\"0\""), "{xml}");
    assert!(xml.contains("classname=\"uplink.validity\""), "{xml}");
}

#[test]
fn unknown_metric_or_flow_is_reported_with_the_nearest_name() {
    for (set, says) in [
        ("expect.0.metric=goodput_pbs", "unknown metric goodput_pbs"),
        ("expect.0.flow=downlaod", "unknown flow \"downlaod\""),
    ] {
        let (status, _, errors, xml) = run("unknown", &["--set", set]);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(says) && errors.contains("did you mean"), "{errors}");
        assert_eq!(xml, "");
    }
    let file = folder("check").join("wrong.toml");
    let text = std::fs::read_to_string(EXAMPLE).expect("the example").replace("\"loss_ratio\"", "\"loss_ration\"");
    std::fs::write(&file, text).expect("a file");
    let output = fullpipe(&["check", file.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("did you mean \"loss_ratio\"?"), "{errors}");
}

#[test]
fn junit_file_in_a_missing_folder_is_an_error_before_the_run() {
    let out = folder("missing").join("out");
    let output = fullpipe(&["run", EXAMPLE, "--out", out.to_str().expect("text"), "--junit", "/nowhere/at/all.xml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("its folder does not exist"));
    assert!(!out.exists());
}

#[test]
fn junit_replaces_only_its_own_files() {
    let folder = folder("own");
    let (scenario, out, earlier) = (folder.join("uplink.toml"), folder.join("out"), folder.join("earlier.xml"));
    let text = std::fs::read_to_string(EXAMPLE).expect("the example");
    std::fs::write(&scenario, &text).expect("a file");
    std::fs::create_dir(&out).expect("a folder");
    std::fs::write(&earlier, "<testsuites name=\"earlier\"/>").expect("a file");
    let path = |path: &PathBuf| path.to_str().expect("text").to_owned();
    let run = |junit: &PathBuf| {
        let output = fullpipe(&["run", &path(&scenario), "--quiet", "--out", &path(&out), "--junit", &path(junit)]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // The scenario is unchanged, and records cannot be replaced.
    let (status, errors) = run(&scenario);
    assert_eq!((status, errors.contains("is not JUnit XML")), (Some(2), true), "{errors}");
    assert_eq!(std::fs::read_to_string(&scenario).expect("a file"), text);
    let (status, errors) = run(&out.join("results.csv"));
    assert_eq!((status, errors.contains("an empty or new folder")), (Some(2), true), "{errors}");
    assert_eq!(run(&earlier).0, Some(0));
    let (status, errors) = run(&out.join("results.csv"));
    assert_eq!((status, errors.contains("is not JUnit XML")), (Some(2), true), "{errors}");
    assert!(!std::fs::read_to_string(&earlier).expect("a file").contains("earlier"));
    let parts = |folder: &PathBuf| std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok).count();
    assert_eq!(parts(&folder), 3, "no .part file remains");
}

#[test]
fn study_has_a_test_case_for_each_expectation_and_claim() {
    let folder = folder("study");
    let plain = std::fs::read_to_string(EXAMPLE).expect("the example");
    let (plain, _) = plain.split_once("# The download uses").expect("expectations");
    std::fs::write(folder.join("uplink.toml"), plain).expect("a file");
    let study = r#"
title = "Rates"
[scenarios]
uplink = "uplink.toml"
[[experiment]]
name = "rates"
scenario = "uplink"
[[experiment.axis]]
name = "rate"
paths = ["topology.bottleneck.rate"]
values = ["5Mbit/s", "10Mbit/s"]
[[metric]]
name = "goodput_mbps"
unit = "Mbit/s"
expression = 'goodput_bps["download"] / 1e6'
[[claim]]
name = "faster"
text = "A rate < 10 Mbit/s has less goodput."
expression = 'metric("rates", "goodput_mbps", rate = "5Mbit/s") < metric("rates", "goodput_mbps", rate = "10Mbit/s")'
[[expect]]
metric = "goodput_mbps"
where = { rate = "10Mbit/s" }
min = "8Mbit/s"
[[expect]]
metric = "goodput_mbps"
min = "8Mbit/s"
"#;
    let (file, out, junit) = (folder.join("study.toml"), folder.join("out"), folder.join("junit.xml"));
    std::fs::write(&file, study).expect("a file");
    let text = |path: &PathBuf| path.to_str().expect("text").to_owned();
    let arguments = ["study", "run", &text(&file), "--quiet", "--json", "--out", &text(&out), "--junit", &text(&junit)];
    let output = fullpipe(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("1 of 2 expectations failed:\n  goodput_mbps at all points: rate=5Mbit/s: "), "{errors}");
    // Standard output contains only the summary rows.
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(rows.as_array().map(Vec::len), Some(3));
    let xml = std::fs::read_to_string(&junit).expect("a file");
    assert!(xml.contains("tests=\"3\" failures=\"1\""), "{xml}");
    assert!(xml.contains(".claim\" name=\"faster\"") && xml.contains("A rate &lt; 10 Mbit/s"), "{xml}");
}
