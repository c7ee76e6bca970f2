//! Tests `fullpipe report`: comparisons and formats.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fullpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command runs")
}

/// Runs a short transfer over a bottleneck with this rate. Returns the folder of the records.
fn records(name: &str, rate: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let (rate, out) = (format!("topology.bottleneck.rate={rate}"), folder.to_str().expect("text"));
    let set = ["--set", "flow.download.size=200kB", "--set", &rate];
    let output = fullpipe(&[&["run", "quick-start", "--quiet", "--out", out], &set[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn report_compares_two_folders_by_pairs_of_runs() {
    let (here, there) = (records("slow", "5Mbit/s"), records("fast", "10Mbit/s"));
    let output = fullpipe(&["report", here.to_str().expect("text"), "--compare", there.to_str().expect("text")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).expect("text");
    let goodput: Vec<&str> =
        printed.lines().find(|line| line.starts_with("goodput_bps")).expect("a row").split_whitespace().collect();
    // A single pair has no interval. Half of the rate gives a lower goodput. The total says what it is.
    assert_eq!(goodput[1..6], ["mean", "over", "flows", "bit/s", "1"], "{printed}");
    assert!(goodput[8].starts_with('-') && goodput.len() == 9, "{printed}");
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("completion_s") && line.split_whitespace().nth(1) == Some("download")),
        "{printed}"
    );
    assert!(
        printed.contains("Settings that differ: topology.bottleneck.rate: 5Mbit/s here, 10Mbit/s there; "),
        "{printed}"
    );
    let differences = std::fs::read_to_string(here.join("comparison.csv")).expect("a file");
    assert!(differences.lines().any(|line| line.starts_with(",,goodput_bps,bit/s,1,")), "{differences}");
    assert!(
        std::fs::read_to_string(here.join("report.html"))
            .expect("a page")
            .contains("Differences from the other folder")
    );
    let output = fullpipe(&["report", here.to_str().expect("text"), "--compare", "/nowhere"]);
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), message.as_str()), (Some(2), "fullpipe: /nowhere is not a folder of records\n"));
}

#[cfg(feature = "plots")]
#[test]
fn report_writes_plots_in_other_formats() {
    let folder = records("formats", "10Mbit/s");
    let report = |arguments: &[&str]| {
        let output = fullpipe(&[&["report", folder.to_str().expect("text")], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    report(&["--format", "svg,pdf,png"]);
    let begins = |ending: &str| {
        let file = std::fs::read(folder.join("plots/throughput-bps").with_extension(ending));
        file.map(|bytes| bytes.get(..4).map(<[u8]>::to_vec).unwrap_or_default()).unwrap_or_default()
    };
    assert_eq!(
        (begins("svg"), begins("pdf"), begins("png")),
        (b"<svg".to_vec(), b"%PDF".to_vec(), b"\x89PNG".to_vec())
    );
    // A report without these formats removes the files of an earlier one.
    report(&[]);
    assert_eq!((begins("svg"), begins("pdf"), begins("png")), (b"<svg".to_vec(), Vec::new(), Vec::new()));
}

#[cfg(not(feature = "plots"))]
#[test]
fn report_says_which_build_writes_other_formats() {
    let output = fullpipe(&["report", ".", "--format", "png"]);
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.contains("PDF and PNG plots (feature `plots`)") && message.contains("cargo fullpipe-all"),
        "{message}"
    );
}
