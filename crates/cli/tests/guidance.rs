//! Closed pipes, progress without a terminal, and messages about the wrong command and about syntax errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.args(arguments);
    command
}

fn fullpipe(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command starts")
}

/// Exit status, standard output and standard error.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// An empty folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guidance-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn run_names_the_command_for_studies_and_study_run_the_one_for_scenarios() {
    let folder = folder("kinds");
    let scenario = folder.join("scenario.toml").display().to_string();
    let text = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n[[flow]]\nfrom = 'source'\nto = 'sink'\n";
    fs::write(&scenario, text).expect("a file");
    let study = folder.join("study.toml").display().to_string();
    let text = "title = 'S'\n[scenarios]\npart = 'scenario.toml'\n[[experiment]]\nname = 'e'\nscenario = 'part'\n";
    fs::write(&study, text).expect("a file");
    let folder = folder.display().to_string();
    for name in ["tcp-vs-udp", study.as_str(), folder.as_str()] {
        let (status, _, errors) = told(&fullpipe(&["run", name]));
        let expected = format!("fullpipe: {name} is a study: run it by `fullpipe study run {name}`\n");
        assert_eq!((status, errors), (Some(2), expected));
    }
    for name in ["quick-start", scenario.as_str()] {
        let (status, _, errors) = told(&fullpipe(&["study", "run", name]));
        let expected = format!("fullpipe: {name} is a scenario: run it by `fullpipe run {name}`\n");
        assert_eq!((status, errors), (Some(2), expected));
    }
    // `check` accepts both.
    for name in ["quick-start", "quic-setup"] {
        let (status, _, errors) = told(&fullpipe(&["check", name]));
        assert_eq!(status, Some(0), "{errors}");
        assert!(errors.contains(": OK"), "{errors}");
    }
}

#[test]
fn a_syntax_error_has_one_message() {
    let folder = folder("syntax");
    let scenario = folder.join("scenario.toml");
    let study = folder.join("study.toml").display().to_string();
    let text = "title = 'S'\n[scenarios]\npart = 'scenario.toml'\n[[experiment]]\nname = 'e'\nscenario = 'part'\n\
                [[experiment.axis]]\nname = 'rate'\npaths = ['topology.link.0.rate']\nvalues = ['1Mbit/s', '2Mbit/s']\n\
                [[metric]]\nname = 'g'\nunit = ''\nexpression = 'sum(goodput_bps[\"*\"])'\n";
    fs::write(&study, text).expect("a file");
    let correct = "title = 'T'\n[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n[[flow]]\nfrom = 'source'\nto = 'sink'\n";
    for (from, to, line) in [
        ("title = 'T'", "title = T", 1),
        ("title = 'T'", "title = 'T", 1),
        ("[topology]", "[topology", 2),
        ("[[flow]]", "[[flow]", 5),
        ("delay = '1ms' }]", "delay = '1ms' ]", 4),
        ("kind = 'chain'", "kind 'chain'", 3),
        ("to = 'sink'", "to = 'sink'\nto = 'sink'", 8),
    ] {
        fs::write(&scenario, correct.replace(from, to)).expect("a file");
        let file = scenario.display().to_string();
        for arguments in [&["check", &file][..], &["run", &file], &["check", &study], &["study", "run", &study]] {
            let (status, _, errors) = told(&fullpipe(arguments));
            assert_eq!(status, Some(2), "{arguments:?}: {errors}");
            // A study adds a line that names the experiment.
            let is_study = arguments.contains(&study.as_str());
            assert_eq!(errors.lines().count(), 1 + usize::from(is_study), "{arguments:?}: {errors}");
            let places = errors.matches("scenario.toml:").count();
            assert_eq!(places, 1, "{to}, {arguments:?}: {errors}");
            assert!(errors.contains(&format!("scenario.toml:{line}:")), "{to}, {arguments:?}: {errors}");
        }
    }
}

#[test]
fn a_closed_pipe_ends_the_command_by_its_signal_and_without_a_message() {
    use std::os::unix::process::ExitStatusExt;

    const SIGPIPE: i32 = 13;
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let out = folder("pipe").join("out").display().to_string();
    let run = ["run", "quick-start", "--quiet", "--out", &out];
    let study = ["study", "run", "tcp-vs-udp", "--quick", "--set", "experiments=[\"udp_draws\"]", "--quiet", "--out"];
    let out_of_study = format!("{out}-study");
    let study = [&study[..], &[&out_of_study]].concat();
    let commands: [&[&str]; 4] = [&["list", "channels"], &["--help"], &run, &study];
    for arguments in commands {
        let output = command(arguments).stdout(closed()).stderr(Stdio::piped()).output().expect("it starts");
        assert_eq!(output.status.signal(), Some(SIGPIPE), "{arguments:?}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
    // The records are complete.
    assert!(Path::new(&out).join("report.html").is_file());
    // Messages go into a closed pipe, too: `fullpipe check ... 2>&1 | head`.
    let output = command(&["check", "quick-start"]).stderr(closed()).output().expect("it starts");
    assert_eq!(output.status.signal(), Some(SIGPIPE), "{:?}", output.status);
}

#[test]
fn a_study_without_a_terminal_prints_few_lines_and_the_last_one() {
    let out = folder("progress").join("out").display().to_string();
    let output = fullpipe(&["study", "run", "tcp-vs-udp", "--quick", "--out", &out]);
    let (status, _, errors) = told(&output);
    assert_eq!(status, Some(0), "{errors}");
    let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with('[')).collect();
    let total: usize = lines.last().and_then(|line| line[1..].split(['/', ']']).nth(1)?.parse().ok()).expect("a total");
    assert!(total > 100, "{errors}");
    assert!(lines.last().expect("a line").starts_with(&format!("[{total}/{total}]")), "{errors}");
    // One line in five seconds: a slow machine prints more, but never one for each run.
    assert!(lines.len() < total / 2, "{errors}");
}
