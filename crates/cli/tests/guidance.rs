//! Tests the guidance for users: templates, explanations, searches, messages about the wrong command, completions,
//! manual pages, opened reports and closed pipes.

use fullpipe::scenario::{self, Override};
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

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guidance-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The names of the templates, with the options that their runs need.
const TEMPLATES: [(&str, &[&str]); 5] =
    [("dumbbell", &[]), ("home-link", &[]), ("lte", &[]), ("masque", &[]), ("real-programs", &["--real-time"])];

#[test]
fn each_template_is_written_once_and_passes_check_and_run() {
    let folder = folder("templates");
    for (name, options) in TEMPLATES {
        let init = |more: &[&str]| {
            told(&command(&[&["init", name], more].concat()).current_dir(&folder).output().expect("it starts"))
        };
        let (status, output, errors) = init(&[]);
        assert_eq!((status, output.as_str()), (Some(0), ""), "{errors}");
        let file = format!("{name}.toml");
        assert!(errors.contains(&format!("fullpipe run {file}")), "{errors}");
        let text = fs::read_to_string(folder.join(&file)).expect("it is written");
        // An existing file is not overwritten.
        fs::write(folder.join(&file), format!("{text}# mine\n")).expect("a file");
        let (status, _, errors) = init(&[]);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(&format!("{file} already exists")), "{errors}");
        assert!(fs::read_to_string(folder.join(&file)).expect("a file").ends_with("# mine\n"));
        // The comments contain another file name too.
        let (status, _, errors) = init(&["other.toml"]);
        assert_eq!(status, Some(0), "{errors}");
        let other = fs::read_to_string(folder.join("other.toml")).expect("it is written");
        assert!(other.contains("fullpipe run other.toml") && !other.contains(&file), "{other}");
        fs::remove_file(folder.join("other.toml")).expect("it can be removed");

        each_command_of_the_comments_is_accepted(&text, &file);
        // A tunnel needs the real QUIC stack, which some builds lack.
        if name == "masque" && !cfg!(feature = "stack") {
            continue;
        }
        let (status, _, errors) = told(&command(&["check", &file]).current_dir(&folder).output().expect("it starts"));
        assert_eq!(status, Some(0), "{name}: {errors}");
        assert!(!errors.contains("warning") && !errors.contains("hint"), "{name}: {errors}");
        // The tests in `interop` run the templates with real programs.
        if !options.is_empty() {
            continue;
        }
        let (status, output, errors) =
            told(&command(&["run", &file, "--out", name]).current_dir(&folder).output().expect("it starts"));
        assert_eq!(status, Some(0), "{name}: {errors}");
        assert!(!errors.contains("warning"), "{name}: {errors}");
        // Each flow of the file has a row with a rate.
        for flow in text.split("[[flow]]").skip(1).filter(|flow| !flow.contains("\"tunnel\"\nfrom")) {
            let flow = flow.split('"').nth(1).expect("a name");
            let row = output.lines().find(|line| {
                let first = line.split_whitespace().next().unwrap_or_default();
                first.trim_end_matches(".reverse") == flow && line.contains(" main ")
            });
            assert!(row.is_some_and(|row| row.contains("bit/s")), "{name}, {flow}: {output}");
        }
        let report = fs::read_to_string(folder.join(name).join("report.html")).expect("a report");
        assert!(report.matches("<svg").count() >= 4, "{name} has few plots");
    }
    let (status, _, errors) = told(&fullpipe(&["init", "dumbell"]));
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("unknown template `dumbell`; did you mean `dumbbell`?"), "{errors}");
}

/// Checks the commands in the comments of a template: keys of `--set` must exist, and names must have explanations.
fn each_command_of_the_comments_is_accepted(text: &str, file: &str) {
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#     fullpipe ")).collect();
    assert!(commands.len() >= 3, "{file}: {commands:?}");
    for line in commands {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        match words[0] {
            "run" => {
                assert_eq!(words[1], file);
                let set = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair[1]);
                let set: Vec<Override> = set.map(|set| Override::parse(set).expect("an override")).collect();
                scenario::load(text, file, &set).unwrap_or_else(|errors| panic!("{line}: {errors}"));
            }
            "explain" | "list" => {
                let (status, _, errors) = told(&fullpipe(&words));
                assert_eq!(status, Some(0), "{line}: {errors}");
            }
            "doctor" | "shell" => {}
            other => panic!("{file}: unknown command {other}"),
        }
    }
}

#[test]
fn explain_prints_text_unit_default_values_and_use_of_a_name() {
    for (name, parts) in [
        ("cwnd_bytes", &["metric of probes", "ongestion window", "unit: B", "series.csv"][..]),
        ("completion_s", &["column of flows.csv", "unit: s", "expressions of studies"]),
        ("page_load_mean_s", &["application metric of `web`", "figures.csv"]),
        ("flow.bulk.tcp.ecn", &["key of TCP", "RFC 3168", "\"active\"", "flow.NAME.tcp.ecn"]),
        ("measurement.from", &["default: \"0s\"", "type: duration"]),
        ("cubic", &["congestion control", "RFC 9438", "`congestion` of a [[flow]]"]),
        ("fq-codel", &["queue discipline", "RFC 8290", "target = ..."]),
        ("flows.csv", &["file of records", "goodput_bps "]),
        ("on_time", &["key of run.json", "lateness.on_time"]),
        ("tcp-vs-udp", &["embedded study", "fullpipe study run tcp-vs-udp"]),
    ] {
        let (status, output, errors) = told(&fullpipe(&["explain", name]));
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{name}");
        parts.iter().for_each(|part| assert!(output.contains(part), "{name}, {part:?}: {output}"));
    }
    for (name, hint) in [("cwnd", "cwnd_bytes"), ("cubci", "did you mean cubic?"), ("flow.0.sise", "size")] {
        let (status, output, errors) = told(&fullpipe(&["explain", name]));
        assert_eq!((status, output.as_str()), (Some(2), ""), "{name}");
        assert!(errors.contains(hint) && errors.lines().count() == 1, "{name}: {errors}");
    }
}

#[test]
fn help_shows_a_command_or_search_results() {
    for (topic, parts) in [
        (&[][..], &["Usage: fullpipe <COMMAND>"][..]),
        (&["study", "run"], &["Usage: fullpipe study run", "--runs"]),
        (&["ecn"], &["keys:", "marks  (metric of probes)", "pages:", "docs/"]),
        (&["report"], &["Usage: fullpipe report"]),
        (&["one-way", "delay"], &["metrics:", "delay_s"]),
        (&["seed"], &["commands:", "fullpipe run --seed"]),
    ] {
        let (status, output, errors) = told(&fullpipe(&[&["help"], topic].concat()));
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{topic:?}");
        parts.iter().for_each(|part| assert!(output.contains(part), "{topic:?}, {part:?}: {output}"));
    }
    let (status, output, errors) = told(&fullpipe(&["help", "xyzzy"]));
    assert_eq!((status, output.as_str()), (Some(2), ""));
    assert_eq!(errors, "fullpipe: nothing is found for `xyzzy`\n");
}

#[test]
fn wrong_arguments_suggest_the_intended_command() {
    for (arguments, hint) in [
        (&["run", "quick-start", "--duration", "10"][..], "use `--set duration=10s`"),
        (&["study", "run", "buffer-sizes", "--duration=10s"], "use `--set scenario.duration=10s`"),
        (&["study", "buffer-sizes"], "did you mean `fullpipe study run buffer-sizes`?"),
        (&["study", "lst"], "did you mean `fullpipe study list`?"),
        (&["init"], "home-link"),
        (&["init", "my.toml"], "`fullpipe init dumbbell my.toml`"),
        (&["list"], "congestion, queues"),
        (&["list", "queue"], "did you mean `queues`?"),
        (&["explain"], "cwnd_bytes"),
        (&["run", "quick-start", "--set", "bottleneck.rate=1Mbit/s"], "did you mean topology.bottleneck.rate?"),
        (&["run", "quick-start", "--set", "link.bottleneck.rate=1Mbit/s"], "did you mean topology.bottleneck.rate?"),
        (&["run", "quick-start", "--set", "topology.bottleneck.queue=10M"], "did you mean \"10MB\"?"),
        (&["run", "quick-start", "--set", "topology.bottleneck.queue=100p"], "did you mean \"100packets\"?"),
        (
            &["run", "quick-start", "--set", "topology.bottleneck.loss=0.01"],
            "did you mean { kind = \"bernoulli\", probability = 0.01 }?",
        ),
        (
            &["run", "quick-start", "--set", "topology.bottleneck.loss=7%"],
            "did you mean { kind = \"bernoulli\", probability = 0.07 }?",
        ),
    ] {
        let (status, output, errors) = told(&fullpipe(arguments));
        assert_eq!((status, output.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(errors.contains(hint), "{arguments:?}: {errors}");
    }
}

#[test]
fn template_of_a_study_is_accepted_and_has_two_axes() {
    let folder = folder("sweep");
    let run = |arguments: &[&str]| told(&command(arguments).current_dir(&folder).output().expect("it starts"));
    let (status, _, errors) = run(&["init", "sweep", "mine.toml"]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("fullpipe study run mine.toml --quick --open"), "{errors}");
    let (status, output, errors) = run(&["study", "run", "mine.toml", "--quick"]);
    assert_eq!(status, Some(0), "{errors}");
    // Three controls with four queues.
    assert_eq!(output.lines().filter(|line| line.contains("goodput_bps")).count(), 12, "{output}");
    assert!(folder.join("fullpipe-out/mine/plots/goodput.svg").exists());
}

#[test]
fn run_and_study_run_suggest_each_other_for_the_wrong_file() {
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
fn syntax_error_has_one_message() {
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
            // A study adds a line with the name of the experiment.
            let is_study = arguments.contains(&study.as_str());
            assert_eq!(errors.lines().count(), 1 + usize::from(is_study), "{arguments:?}: {errors}");
            let places = errors.matches("scenario.toml:").count();
            assert_eq!(places, 1, "{to}, {arguments:?}: {errors}");
            assert!(errors.contains(&format!("scenario.toml:{line}:")), "{to}, {arguments:?}: {errors}");
        }
    }
}

#[test]
fn completions_and_manual_pages_contain_all_commands() {
    let (_, help, _) = told(&fullpipe(&["--help"]));
    let commands = help.split("Commands:\n").nth(1).expect("commands").split("\n\n").next().expect("lines");
    let names: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"run") && names.contains(&"man") && names.len() > 12, "{names:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, errors) = told(&fullpipe(&["completions", shell]));
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{shell}");
        names.iter().for_each(|name| assert!(script.contains(name), "{shell}: {name}"));
    }
    let (status, _, errors) = told(&fullpipe(&["completions", "bsh"]));
    assert_eq!(status, Some(2), "{errors}");
    let (_, page, _) = told(&fullpipe(&["man"]));
    assert!(page.contains(".TH fullpipe 1") && page.contains("fullpipe\\-run(1)"), "{page}");
    let (_, page, _) = told(&fullpipe(&["man", "study", "run"]));
    assert!(page.contains(".TH fullpipe-study-run 1") && page.contains("\\-\\-runs"), "{page}");
    let (status, _, errors) = told(&fullpipe(&["man", "studdy"]));
    assert_eq!(status, Some(2));
    assert!(errors.contains("did you mean `study`?"), "{errors}");
    let folder = folder("man");
    let (status, _, errors) = told(&fullpipe(&["man", "--out", folder.to_str().expect("text")]));
    assert_eq!(status, Some(0), "{errors}");
    for name in names.into_iter().filter(|name| *name != "help").chain(["study-run", "tmix-stats"]) {
        assert!(folder.join(format!("fullpipe-{name}.1")).is_file(), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn open_calls_the_desktop_command_or_reports_that_there_is_none() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder("open");
    let out = folder.join("out").display().to_string();
    let run = |path: &Path| {
        told(
            &command(&["run", "quick-start", "--open", "--quiet", "--out", &out])
                .env("PATH", path)
                .output()
                .expect("it starts"),
        )
    };
    let (status, _, errors) = run(&folder.join("nothing"));
    assert_eq!(status, Some(0), "{errors}");
    let expected =
        format!("warning: --open: the command `xdg-open` is not installed; open {out}/report.html in a browser\n");
    assert_eq!(errors, expected);
    let desktop = folder.join("bin");
    fs::create_dir_all(&desktop).expect("a folder");
    let opener = |script: &str| {
        let file = desktop.join("xdg-open");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    opener(&format!("echo \"$1\" > {}/opened", folder.display()));
    let (status, _, errors) = run(&desktop);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let opened = fs::read_to_string(folder.join("opened")).expect("it was called");
    assert_eq!(opened.trim_end(), format!("{out}/report.html"));
    opener("exit 3");
    let (status, _, errors) = run(&desktop);
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("`xdg-open` could not open a browser (exit status: 3)"), "{errors}");
}

#[cfg(unix)]
#[test]
fn closed_pipe_ends_the_command_by_sigpipe_without_a_message() {
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
    let commands: [&[&str]; 6] =
        [&["list", "channels"], &["--help"], &["explain", "queue"], &["completions", "bash"], &run, &study];
    for arguments in commands {
        let output = command(arguments).stdout(closed()).stderr(Stdio::piped()).output().expect("it starts");
        assert_eq!(output.status.signal(), Some(SIGPIPE), "{arguments:?}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
    // The records are complete.
    assert!(Path::new(&out).join("report.html").is_file());
    // Messages can also be written to a closed pipe: `fullpipe check ... 2>&1 | head`.
    let output = command(&["check", "quick-start"]).stderr(closed()).output().expect("it starts");
    assert_eq!(output.status.signal(), Some(SIGPIPE), "{:?}", output.status);
}

#[test]
fn study_without_a_terminal_prints_few_lines_and_the_last_one() {
    let out = folder("progress").join("out").display().to_string();
    let output = fullpipe(&["study", "run", "tcp-vs-udp", "--quick", "--out", &out]);
    let (status, _, errors) = told(&output);
    assert_eq!(status, Some(0), "{errors}");
    let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with('[')).collect();
    let total: usize = lines.last().and_then(|line| line[1..].split(['/', ']']).nth(1)?.parse().ok()).expect("a total");
    assert!(total > 100, "{errors}");
    assert!(lines.last().expect("a line").starts_with(&format!("[{total}/{total}]")), "{errors}");
    // One line every five seconds. A slow machine prints more lines, but never one for each run.
    assert!(lines.len() < total / 2, "{errors}");
}

/// Arguments on Unix are bytes, for example file names of another system in Latin-1.
#[cfg(unix)]
#[test]
fn arguments_that_are_not_unicode_are_rejected_with_a_message() {
    use std::os::unix::ffi::OsStrExt;
    let not_unicode = std::ffi::OsStr::from_bytes(b"\xff");
    for option in ["--set", "--unknown"] {
        let output = command(&["run", "quick-start", option]).arg(not_unicode).output().expect("it starts");
        let (status, _, errors) = told(&output);
        assert_eq!(status, Some(2), "{errors}");
        // For options that exist, the message is clap's.
        assert!(errors.contains(option) || errors.contains("invalid UTF-8"), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}
