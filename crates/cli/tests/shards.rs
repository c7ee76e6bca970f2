//! Tests `fullpipe study run --shard` and `fullpipe study merge`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shards-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn fullpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Four runs.
const STUDY: [&str; 6] = ["study", "run", "known-results", "--quick", "--set", "experiments=[\"loss\"]"];

#[test]
fn merged_shards_have_the_files_of_the_whole_study() {
    let [whole, merged] = ["whole", "merged"].map(folder);
    let output = fullpipe(&[&STUDY[..], &["--quiet", "--out", text(&whole)]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let shards = [3, 1, 2].map(|index| {
        let out = folder(&format!("{index}"));
        let output = fullpipe(&[&STUDY[..], &["--shard", &format!("{index}/3"), "--out", text(&out)]].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let runs = if index == 1 { "2 runs made" } else { "1 run made" };
        assert!(errors.contains(&format!("shard {index}/3: {runs}, 0 reused, of 4")), "{errors}");
        assert!(output.stdout.is_empty());
        assert!(!out.join("summary.csv").exists() && !out.join("report.html").exists());
        out
    });
    let arguments = ["study", "merge", text(&shards[0]), text(&shards[1]), "--out", text(&merged)];
    let output = fullpipe(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("1 of 4 runs are missing") && errors.contains("shard 2/3 (1 run): no folder is given"),
        "{errors}"
    );
    let output = fullpipe(&[&arguments[..], &[text(&shards[2]), "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for file in ["study.toml", "results.csv", "summary.csv", "flow_summary.csv", "report.html"] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).expect(file);
        assert!(read(&merged) == read(&whole), "{file}");
    }
}

#[test]
fn wrong_shards_are_usage_errors() {
    for (arguments, expected) in [
        (&[&STUDY[..], &["--shard", "4/3"]].concat()[..], "expected I/N with I from 1 to N"),
        (&[&STUDY[..], &["--shard", "1/3", "--json"]].concat(), "cannot be used with"),
        (&["study", "merge", "--out", "x"], "required"),
        (&["study", "merge", "no-such-folder", "--out", text(&folder("none"))], "expected the folder of a shard"),
    ] {
        let output = fullpipe(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}
