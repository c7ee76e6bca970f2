//! Tests of `fullpipe evaluate`: files, the report, reuse of runs, and errors.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit status, standard output and standard error.
fn fullpipe(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evaluate");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn an_evaluation_has_a_matrix_and_shares_the_runs_of_the_references() {
    let folder = folder();
    let evaluate = |control: &str| {
        let out = folder.join(format!("bcp-133-{control}"));
        let out = out.to_str().expect("text").to_owned();
        let set = "experiments=[\"constrained\"]";
        let result = fullpipe(&["evaluate", control, "--quick", "--runs", "10", "--set", set, "--out", &out]);
        assert_eq!(result.0, Some(0), "{}", result.2);
        (PathBuf::from(out), result)
    };
    let (vegas, (_, printed, errors)) = evaluate("vegas");
    // One point, four controls, ten runs.
    assert!(errors.contains("40 runs made, 0 reused"), "{errors}");
    // Two cells with two metrics each, against three references.
    assert!(printed.contains("\n12 comparisons: ") && printed.contains("118 cells not run"), "{printed}");
    let matrix = std::fs::read_to_string(vegas.join("matrix.csv")).expect("matrix.csv");
    assert!(matrix.starts_with("row,column,metric,control,n,worst,median,low,high,worst_point,note\n"), "{matrix}");
    assert!(matrix.contains("\n7.10,") || matrix.contains(",7.10,,,,,,,,,not run: no multipath transport"), "{matrix}");
    let report = std::fs::read_to_string(vegas.join("report.html")).expect("a report");
    for part in
        ["<h2 id=\"matrix\">Matrix</h2>", "5.1.2 Protection against bufferbloat", "not supplied", "than newreno"]
    {
        assert!(report.contains(part), "{part}");
    }
    // The runs of the references are copied from the folder of the first evaluation.
    let (_, (_, _, errors)) = evaluate("bbr1");
    assert!(errors.contains("10 runs made, 30 reused"), "{errors}");
}

#[test]
fn an_unknown_control_or_a_study_without_a_matrix_is_an_error() {
    let (status, _, errors) = fullpipe(&["evaluate", "vegs", "--quick", "--out", "/nonexistent/folder"]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("did you mean \"vegas\"?"), "{errors}");
    let (status, _, errors) = fullpipe(&["evaluate", "vegas", "--study", "controls"]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("the study controls has no [matrix]"), "{errors}");
}
