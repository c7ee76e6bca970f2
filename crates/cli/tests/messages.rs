//! Tests properties of all messages of the command: readable quantities, and no control characters.

#[path = "../../scenario/tests/raw_quantity.rs"]
mod raw_quantity;

use fullpipe::embedded;
use raw_quantity::raw_quantity;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fullpipe(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("messages-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn messages_of_check_and_run_have_readable_quantities() {
    let wrong = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/wrong");
    let files = std::fs::read_dir(wrong).expect("the folder").map(|file| file.expect("a file").path());
    let mut names: Vec<String> = files.map(|file| file.display().to_string()).collect();
    names.extend(embedded::scenario_names().map(str::to_owned));
    let mut arguments = vec!["check"];
    arguments.extend(names.iter().map(String::as_str));
    let (_, _, errors) = fullpipe(&arguments);
    assert!(errors.lines().count() > 200, "{errors}");
    assert_eq!(raw_quantity(&errors), None, "{errors}");
    let out = folder("run").display().to_string();
    for more in [
        &["--set", "expect=[{ metric = 'goodput_bps', min = '1Tbit/s' }]"][..],
        &["--set", "expect=[{ metric = 'completion_s', max = '1ns' }]"],
        &["--set", "topology.bottleneck.queue=1400B"],
    ] {
        let (_, _, errors) = fullpipe(&[&["run", "quick-start", "--out", &out][..], more].concat());
        assert_eq!(raw_quantity(&errors), None, "{errors}");
    }
}

/// ESC in a unit, a label and a file name must not reach the terminal.
#[test]
fn control_characters_in_files_are_escaped() {
    let folder = folder("control");
    let scenario = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n[[flow]]\nfrom = 'source'\n\
                    to = 'sink'\nsize = '10kB'\n";
    std::fs::write(folder.join("scenario.toml"), scenario).expect("a file");
    let study = "title = 'S'\n[scenarios]\npart = 'scenario.toml'\n[[experiment]]\nname = 'e'\nscenario = 'part'\n\
                 [[experiment.axis]]\nname = 'size'\nvalues = [{ label = \"\\u001B[31mred\", set = { 'flow.0.size' = '20kB' } }]\n\
                 [[metric]]\nname = 'g'\nunit = \"\\u001B[32m\"\nexpression = 'sum(goodput_bps[\"*.main\"])'\n\
                 [[expect]]\nmetric = 'g'\nmin = 1e15\n";
    let file = folder.join("study.toml").display().to_string();
    std::fs::write(&file, study).expect("a file");
    let out = folder.join("out").display().to_string();
    let (status, printed, errors) = fullpipe(&["study", "run", &file, "--out", &out]);
    assert_eq!(status, Some(4), "{errors}");
    assert!(printed.contains("\\u{1b}[31mred") && printed.contains("\\u{1b}[32m"), "{printed}");
    for text in [&printed, &errors] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    let (status, _, errors) = fullpipe(&["check", "no\u{1b}such"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("u{1b}") && !errors.contains('\u{1b}'), "{errors:?}");
}

/// The failures of the auditor concern single nanoseconds and bytes. They have exact values in readable units.
#[test]
fn messages_of_the_auditor_have_readable_quantities() {
    let out = folder("auditor").display().to_string();
    for (fault, words) in [
        ("fast-link:bottleneck", "or later at 10 Mbit/s"),
        ("silent-drop:bottleneck:100", "in flight (sent minus delivered and dropped)"),
        ("premature-ack:500", "the highest sequence number delivered"),
    ] {
        let arguments = ["run", "quick-start", "--quiet", "--audit", "--sabotage", fault, "--out", &out];
        let (status, _, errors) = fullpipe(&arguments);
        assert_eq!(status, Some(3), "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert_eq!(raw_quantity(&errors), None, "{errors}");
    }
}

#[test]
fn experiments_below_expect_do_not_make_a_study() {
    let folder = folder("expect");
    let file = folder.join("scenario.toml").display().to_string();
    let text = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n[[flow]]\nname = 'f'\nfrom = 'source'\n\
                to = 'sink'\n[[expect]]\nmetric = 'goodput_bps'\nexperiments = ['e']\nmin = 1\n";
    std::fs::write(&file, text).expect("a file");
    for command in ["check", "run"] {
        let (status, _, errors) = fullpipe(&[command, &file]);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains("scenario.toml:10:1: experiments is not a key of an expectation"), "{errors}");
    }
}

#[test]
fn empty_names_and_files_instead_of_folders_are_reported() {
    for name in ["", " "] {
        let (status, _, errors) = fullpipe(&["explain", name]);
        assert_eq!((status, errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains("the name is empty; expected a key"), "{errors}");
    }
    let (status, printed, _) = fullpipe(&["help", ""]);
    assert!(status == Some(0) && printed.contains("Usage: fullpipe <COMMAND>"), "{printed}");
    let file = folder("man").join("file");
    std::fs::write(&file, "").expect("a file");
    let file = file.display().to_string();
    let (status, _, errors) = fullpipe(&["man", "--out", &file]);
    let expected = format!("fullpipe: --out {file} is a file; expected a folder for the pages\n");
    assert_eq!((status, errors), (Some(2), expected));
    let (status, _, errors) = fullpipe(&["man", "--out", &format!("{file}/below")]);
    assert_eq!(status, Some(1));
    assert!(errors.starts_with(&format!("fullpipe: cannot create the folder {file}/below: ")), "{errors}");
}

/// A number has no misspelling, so another value of the axis is not a suggestion.
#[test]
fn number_outside_an_axis_has_no_suggestion() {
    let folder = folder("where");
    let scenario = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n[[flow]]\nfrom = 'source'\nto = 'sink'\n";
    std::fs::write(folder.join("scenario.toml"), scenario).expect("a file");
    let study = "title = 'S'\n[scenarios]\npart = 'scenario.toml'\n[[experiment]]\nname = 'e'\nscenario = 'part'\n\
                 [[experiment.axis]]\nname = 'seeds'\npaths = ['seed']\nvalues = [10, 20]\n\
                 [[metric]]\nname = 'g'\nunit = ''\nexpression = 'sum(goodput_bps[\"*.main\"])'\n\
                 [[expect]]\nmetric = 'g'\nwhere = { seeds = 30 }\nmin = 1\n";
    let file = folder.join("study.toml").display().to_string();
    std::fs::write(&file, study).expect("a file");
    let (status, _, errors) = fullpipe(&["check", &file]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("30 is not a value of the axis seeds; expected 10 or 20"), "{errors}");
}
