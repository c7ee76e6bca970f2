//! Tests the interface of the command for scripts: exit status, standard output, standard error, records.

use fullpipe::scenario::Override;
use fullpipe::{embedded, scenario};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fullpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts")
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("the process was not killed")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All files below a folder by relative path, except the report and CPU times. The report is built from the other
/// files, and CPU times differ between runs.
fn records(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("the path is below the root").display().to_string();
                if name == "cpu.csv" {
                    continue;
                }
                found.insert(name, std::fs::read(&path).expect("the file is readable"));
            }
        }
    }
    found
}

#[test]
fn run_writes_records_a_report_and_a_table() {
    let out = folder("run");
    let output = fullpipe(&["run", "quick-start", "--json", "--out", out.to_str().expect("text")]);
    assert_eq!(status(&output), 0, "{}", errors(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON only");
    let rows = rows.as_array().expect("the JSON is an array");
    let goodput = rows.iter().find(|row| row["metric"] == "goodput_bps").expect("there is a row for goodput");
    // A 10 Mbit/s link carries at most 10 x 1448/1502 = 9.64 Mbit/s of payload.
    let goodput = goodput["mean"].as_f64().expect("a number");
    assert!((8.0e6..9.64e6).contains(&goodput), "{goodput}");
    let files = records(&out);
    for wanted in ["study.toml", "results.csv", "summary.csv", "report.html"] {
        assert!(files.contains_key(wanted), "{wanted}");
    }
    assert!(files.keys().any(|name| name.ends_with("flows.csv")));
    assert!(errors(&output).contains("report.html"));
    // A repeated call reuses the run and changes no record.
    let again = fullpipe(&["run", "quick-start", "--out", out.to_str().expect("text")]);
    assert!(errors(&again).contains("0 runs made, 1 reused"), "{}", errors(&again));
    assert_eq!(records(&out), files);
}

#[test]
fn run_prints_both_directions_of_each_flow_with_the_main_one_first() {
    let out = folder("directions");
    let file = out.with_extension("toml");
    let text = "duration = '30s'\n[topology]\nkind = 'chain'\nlink = [{ rate = '10Mbit/s', delay = '10ms' }]\n[[flow]]\n\
                name = 'video'\nfrom = 'source'\nto = 'sink'\nworkload = 'video-abr'\nladder = ['2Mbit/s']\nsegments = 3\n";
    std::fs::write(&file, text).expect("a file");
    let output = fullpipe(&["run", file.to_str().expect("text"), "--out", out.to_str().expect("text")]);
    assert_eq!(status(&output), 0, "{}", errors(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    let line = |start: &str| {
        let line = printed.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {printed}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let place = |name: &str| printed.lines().position(|line| line.split_whitespace().next() == Some(name));
    assert!(place("video.reverse") < place("video") && place("flow") < place("video.reverse"), "{printed}");
    // Three segments of 1 MB are at least 2072 packets.
    let main = line("video.reverse ");
    assert_eq!(main[1..4], ["sink", "source", "main"]);
    assert!(main[5..].contains(&"Mbit/s".to_owned()), "{main:?}");
    assert_eq!(line("video ")[1..4], ["source", "sink", "opposite"]);
    let sent = line("tx_packets ");
    assert!(sent.iter().any(|word| word.parse().is_ok_and(|packets: u64| (2072..2200).contains(&packets))), "{sent:?}");
}

#[test]
fn check_prints_the_measured_interval() {
    let out = folder("interval");
    std::fs::create_dir_all(&out).expect("a folder");
    let scenario = "duration = '30s'\n[topology]\nkind = 'chain'\nlink = [{ rate = '10Mbit/s', delay = '10ms' }]\n[[flow]]\n\
                    name = 'data'\nfrom = 'source'\nto = 'sink'\n";
    let study = "title = 'One'\n[scenarios]\npart = 'part.toml'\n[[experiment]]\nname = 'late'\nscenario = 'part'\nruns = 1\nset = { 'measurement.from' = \
                 '20s' }\n[[metric]]\nname = 'goodput_bps'\nunit = 'bit/s'\ntext = 'Goodput'\nexpression = 'goodput_bps[\"data\"]'\n";
    let files = [
        ("whole.toml", scenario.to_owned()),
        ("part.toml", format!("{scenario}[measurement]\nfrom = '5s'\n")),
        ("study.toml", study.to_owned()),
    ];
    let paths = files.map(|(name, text)| {
        std::fs::write(out.join(name), text).expect("a file");
        out.join(name).display().to_string()
    });
    let printed = |file: &str| {
        let output = fullpipe(&["check", file]);
        assert_eq!(status(&output), 0, "{}", errors(&output));
        errors(&output)
    };
    let run = |file: &str| {
        let output = fullpipe(&["run", file, "--out", &format!("{file}-out")]);
        assert_eq!(status(&output), 0, "{}", errors(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let interval = "Rates, delays and ratios: from 5s (`[measurement]`) to the end of the run at 30s at most. Counts of packets: the whole run.";
    assert!(run(&paths[1]).contains(interval), "{}", run(&paths[1]));
    assert!(!run(&paths[0]).contains("Counts of packets"));
    let [whole, part, study] = paths.each_ref().map(|path| printed(path));
    assert!(whole.contains("whole.toml: OK\n  measured: the whole run, from 0s to 30s at most"), "{whole}");
    assert!(part.contains("measured: from 5s (`[measurement]`) to the end of the run at 30s at most"), "{part}");
    assert!(
        study.contains("measured: from 20s (`[measurement]`) to the end of the run at 30s at most (late)"),
        "{study}"
    );
}

#[test]
fn quiet_run_prints_no_messages() {
    let out = folder("quiet");
    let output = fullpipe(&["run", "quick-start", "--quiet", "--out", out.to_str().expect("text")]);
    assert_eq!((status(&output), errors(&output).as_str()), (0, ""));
}

#[test]
fn qlog_is_written_without_a_change_of_the_records() {
    let (with, without) = (folder("with-qlog"), folder("without-qlog"));
    for (out, more) in [(&with, &["--qlog"][..]), (&without, &[])] {
        let arguments = [&["run", "quick-start", "--quiet", "--out", out.to_str().expect("text")], more].concat();
        let output = fullpipe(&arguments);
        assert_eq!(status(&output), 0, "{}", errors(&output));
    }
    let (mut with, without) = (records(&with), records(&without));
    let log = with.keys().find(|name| name.ends_with("run.sqlog")).expect("the file").clone();
    let log = with.remove(&log).expect("the file");
    assert!(log.starts_with(b"\x1e{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\""));
    assert!(log.iter().filter(|byte| **byte == 0x1e).count() > 1000);
    assert_eq!(with.len(), without.len());
    let tables = with.keys().filter(|name| name.ends_with("flows.csv") || name.ends_with("series.csv"));
    assert!(tables.clone().count() >= 1);
    tables.for_each(|name| assert_eq!(with[name], without[name], "{name}"));
}

#[test]
fn invalid_usage_or_file_has_exit_status_2_and_a_message() {
    for (arguments, said) in [
        (vec!["run", "quik-start"], "did you mean \"quick-start\""),
        (vec!["run", "quick-start", "--set", "flow.0.sise=1"], "did you mean size"),
        (vec!["run", "quick-start", "--set", "flow.0.size=much"], "flow.0.size"),
        (vec!["run", "quick-start", "--pcap=much"], "expected 1 to 65535, or all"),
        (vec!["run", "quick-start", "--qlog", "--real-time"], "--qlog requires virtual time"),
        (vec!["run", "quick-start", "--qlog", "--replay", "a.pcapng"], "--qlog requires virtual time"),
        (vec!["study", "run", "tcp-vs-udp", "--pcap"], "unexpected argument"),
        (vec!["run", "quick-start", "--real-time", "--sabotage", "premature-ack:1"], "requires virtual time"),
        (vec!["rnu"], "did you mean `run`"),
        (vec!["masque"], "Usage"),
        (vec!["masqe"], "did you mean `masque`"),
        (vec!["masque", "proxy", "--listen", "[::1]:0", "--cert", "/nowhere", "--key", "/nowhere"], "/nowhere"),
        (vec!["http3", "get", "http://a.example/"], "is not an https URL"),
        (vec!["http3", "get", "https://127.0.0.1/", "--congestion", "dctcp"], "counts of congestion marks"),
        (vec!["http3", "get", "https://127.0.0.1/", "--congestion", "none"], "unknown congestion control `none`"),
        (vec!["http3", "get", "https://127.0.0.1/", "--check"], "/bytes/N"),
        (vec!["http3", "serve", "--listen", "[::1]:0", "--self-signed"], "--generate"),
        (vec!["http3", "serve", "--listen", "[::1]:0", "--generate"], "--self-signed to generate a certificate"),
        (vec!["http3", "serve", "--listen", "[::1]:0", "--generate", "--cert", "a.pem"], "require each other"),
        (vec!["masque", "proxy", "--listen", "[::1]:0", "--self-signed", "--key", "a.pem"], "only one certificate"),
        (vec!["study", "run", "tcp-vs-upd"], "did you mean \"tcp-vs-udp\""),
        (vec!["study", "run", "tcp-vs-udp", "--set", "runz=3"], "runz"),
        (vec!["bench", "tcp-2"], "did you mean \"tcp-1\""),
        (vec!["bench", "lte-realtime"], "did you mean \"lte-real-time\""),
        (vec!["list", "things"], "expected one of"),
        (vec!["report", "/nowhere"], "not a folder"),
        (vec!["check", "/nowhere.toml"], "neither a file nor an embedded scenario"),
        (vec!["run"], "Usage"),
    ] {
        let output = fullpipe(&arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(said), "{arguments:?} says {:?}, not {said:?}", errors(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn output_folder_with_other_files_is_rejected_and_unchanged() {
    let out = folder("foreign");
    std::fs::create_dir_all(&out).expect("a folder");
    std::fs::write(out.join("thesis.tex"), "mine").expect("a file");
    let output = fullpipe(&["run", "quick-start", "--out", out.to_str().expect("text")]);
    assert_eq!(status(&output), 2, "{}", errors(&output));
    assert_eq!(records(&out).len(), 1);
}

#[test]
fn unwritable_output_folder_has_exit_status_1() {
    // Files cannot be created below a file or in /proc.
    let file = folder("file");
    std::fs::write(&file, "").expect("a file");
    for out in [file.join("below").display().to_string(), "/proc/fullpipe".to_string()] {
        let output = fullpipe(&["run", "quick-start", "--quiet", "--out", &out]);
        assert_eq!(status(&output), 1, "{out}: {}", errors(&output));
        assert!(errors(&output).contains(&out), "{}", errors(&output));
    }
}

#[test]
fn sabotage_has_exit_status_3_and_a_reason() {
    for (fault, rule) in [
        ("fast-link:bottleneck", "link-rate"),
        ("silent-drop:bottleneck:100", "flow-conservation"),
        ("premature-ack:500", "acknowledgement"),
    ] {
        let out = folder(&format!("sabotage-{rule}"));
        let output =
            fullpipe(&["run", "quick-start", "--quiet", "--sabotage", fault, "--out", out.to_str().expect("text")]);
        assert_eq!(status(&output), 3, "{fault}: {}", errors(&output));
        assert!(errors(&output).contains(rule), "{fault}: {}", errors(&output));
    }
}

#[test]
fn study_gives_equal_bytes_for_any_number_of_jobs() {
    let make = |name: &str, jobs: &str| {
        let out = folder(name);
        let output = fullpipe(&[
            "study",
            "run",
            "tcp-vs-udp",
            "--quick",
            "--quiet",
            "--jobs",
            jobs,
            "--out",
            out.to_str().expect("text"),
        ]);
        assert_eq!(status(&output), 0, "{}", errors(&output));
        (output.stdout, records(&out))
    };
    let one = make("jobs-1", "1");
    assert!(one.1.len() > 100);
    assert_eq!(one, make("jobs-2", "2"));
    assert_eq!(one, make("jobs-2-again", "2"));
}

#[test]
fn study_runs_missing_runs_and_reuses_the_others() {
    let out = folder("resume");
    let study = |more: &[&str]| {
        let given = ["study", "run", "tcp-vs-udp", "--quick", "--set", "experiments=[\"udp_draws\"]", "--out"];
        let output = fullpipe(&[&given, &[out.to_str().expect("text")][..], more].concat());
        assert_eq!(status(&output), 0, "{}", errors(&output));
        output
    };
    // Two sets of delays with two runs each. The runs with fixed delays draw no random numbers and are therefore one run.
    let first = study(&[]);
    // No claim of the study is on this experiment.
    let table = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(table.contains("claims on experiments that were not selected\n") && !table.contains("claim:"), "{table}");
    let files = records(&out);
    let mut runs: Vec<PathBuf> =
        std::fs::read_dir(out.join("runs")).expect("runs").flatten().map(|entry| entry.path()).collect();
    runs.sort();
    let count = runs.len();
    assert!(count > 2, "{count}");
    assert!(errors(&first).contains(&format!("{count} runs made, 0 reused")), "{}", errors(&first));
    std::fs::remove_dir_all(&runs[1]).expect("the folder exists");
    // An interrupted run has no such file yet.
    std::fs::remove_file(runs[2].join("run.json")).expect("it is there");
    let again = study(&["--resume"]);
    assert!(errors(&again).contains(&format!("2 runs made, {} reused", count - 2)), "{}", errors(&again));
    assert_eq!(first.stdout, again.stdout);
    assert_eq!(records(&out), files);
}

#[test]
fn bench_and_run_have_equal_counts() {
    let output = fullpipe(&["bench", "tcp-1", "--json", "--quiet"]);
    assert_eq!(status(&output), 0, "{}", errors(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let out = folder("bench-run");
    let run = fullpipe(&["run", "bench/tcp-1", "--quiet", "--out", out.to_str().expect("text")]);
    assert_eq!(status(&run), 0, "{}", errors(&run));
    let files = records(&out);
    let (_, json) = files.iter().find(|(name, _)| name.ends_with("run.json")).expect("run.json");
    let json: Value = serde_json::from_slice(json).expect("JSON");
    assert_eq!(rows[0]["name"], "tcp-1");
    assert_eq!(rows[0]["packets"], json["packets"]["received_with_data"]);
    assert_eq!(rows[0]["packet_hops"], json["packets"]["hops"]);
    assert_eq!(rows[0]["simulated_seconds"].as_f64(), json["duration_s"].as_f64());
}

#[cfg(target_os = "linux")]
#[test]
fn interrupt_has_exit_status_130_and_the_same_call_continues() {
    let out = folder("interrupt");
    let arguments = [
        "study",
        "run",
        "tcp-vs-udp",
        "--quiet",
        "--jobs",
        "1",
        "--set",
        "experiments=[\"udp_draws\"]",
        "--set",
        "runs=400",
        "--out",
    ];
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).arg(&out).spawn().expect("the command starts");
    let finished = |out: &Path| std::fs::read_dir(out.join("runs")).map_or(0, |entries| entries.count());
    while finished(&out) < 3 {
        assert!(child.try_wait().expect("the process has a state").is_none(), "the run ended before the interrupt");
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("the process runs");
    assert_eq!(child.wait().expect("the process ends").code(), Some(130));
    let before = finished(&out);
    let again =
        Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).arg(&out).output().expect("the command starts");
    assert_eq!(status(&again), 0, "{}", errors(&again));
    assert!(before >= 3 && finished(&out) > before);
}

#[test]
fn commands_in_the_readme_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README is readable");
    let runs: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    cargo fullpipe run ")).collect();
    assert!(runs.len() >= 2, "{runs:?}");
    for run in runs {
        let mut words = run.split_whitespace();
        let file = words.next().expect("the command contains a scenario");
        let text = std::fs::read_to_string(root.join(file)).ok().or(embedded::scenario_text(file).map(str::to_owned));
        let mut overrides = Vec::new();
        while let Some(word) = words.next() {
            if word == "--out" {
                assert!(words.next().is_some_and(|folder| folder.starts_with("fullpipe-out/")), "{run}");
                continue;
            }
            assert_eq!(word, "--set", "{run}");
            overrides.push(Override::parse(words.next().expect("a key and a value")).expect("an override"));
        }
        scenario::load(&text.expect(run), file, &overrides).unwrap_or_else(|errors| panic!("{run}: {errors}"));
    }
}

/// The output of `check` for a scenario of 60 s without `[measurement]`.
const MEASURED: &str = "  measured: the whole run, from 0s to 60s at most (no `[measurement]` with `from`)\n";

/// Two access links of 1 ms and a bottleneck of 18 ms: a round-trip time of 40 ms at 10 Mbit/s is 50 000 bytes.
#[test]
fn check_prints_bdp_limits_and_the_current_spelling_of_former_keys() {
    let folder = folder("hints");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("former.toml").display().to_string();
    let text = "[topology]
kind = 'dumbbell'
access = { rate = '100Mbit/s', delay = '1ms' }
[topology.bottleneck]
rate = '10Mbit/s'
delay = '18ms'
reverse = { queue = '100packets', discipline = { kind = 'none' } }
[topology.bottleneck.discipline]
kind = 'fq-codel'
limit_packets = 600
[[flow]]
from = 'left1'
to = 'right1'
size = '10kB'
";
    std::fs::write(&file, text).expect("a file");
    let hint = format!(
        "hint: {file}:10: limit_packets is now called limit: write limit = \"600packets\" (limit_packets is accepted until \
         the next version)\n"
    );
    let checked = fullpipe(&["check", &file]);
    assert_eq!((status(&checked), errors(&checked)), (0, format!("{hint}{file}: OK\n{MEASURED}")));
    let out = folder.join("out").display().to_string();
    let run = fullpipe(&["run", &file, "--quiet", "--out", &out]);
    assert_eq!((status(&run), errors(&run)), (0, hint));
    std::fs::write(&file, text.replace("limit_packets = 600", "limit = '2BDP'")).expect("a file");
    let checked = errors(&fullpipe(&["check", &file]));
    assert_eq!(
        checked,
        format!("bottleneck: discipline.limit = 2BDP is 100 kB (10Mbit/s x 40ms)\n{file}: OK\n{MEASURED}")
    );
}

#[test]
fn run_prints_application_metrics() {
    let out = folder("web");
    let shorter = ["--set", "flow.browser.pages=2", "--set", "duration=60s"];
    let output =
        fullpipe(&[&["run", "web-page", "--quiet", "--out", out.to_str().expect("text")], &shorter[..]].concat());
    assert_eq!(status(&output), 0, "{}", errors(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row =
        |words: &[&str]| text.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned);
    let printed = row(&["browser", "left1", "page_load_mean_s"]).unwrap_or_else(|| panic!("{text}"));
    // Each page has its own connection, so the flow has no percentiles.
    assert!(!text.contains("delay_p95_s"), "{text}");
    // The number equals that in figures.csv.
    let run = std::fs::read_dir(out.join("runs")).expect("a folder").next().expect("a run").expect("a run").path();
    let figures = std::fs::read_to_string(run.join("figures.csv")).expect("a table");
    let figure = figures.lines().find(|line| line.contains("page_load_mean_s")).expect("a row");
    let exact: f64 = figure.rsplit(',').next().and_then(|value| value.parse().ok()).expect("a number");
    let shown: f64 = printed.split_whitespace().last().and_then(|value| value.parse().ok()).expect("a number");
    assert!((shown / exact - 1.0).abs() < 1e-5, "{printed} {figure}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Page load mean") && page.contains("plots/completion-times.svg"));
}

#[test]
fn run_prints_percentiles_of_packet_delay() {
    let out = folder("delays");
    let output = fullpipe(&["run", "two-flows", "--quiet", "--out", out.to_str().expect("text")]);
    assert_eq!(status(&output), 0, "{}", errors(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("One-way delay"));
    let headings: Vec<&str> = lines.nth(1).expect("headings").split_whitespace().collect();
    assert_eq!(headings, ["flow", "received", "by", "delay_p50_s", "delay_p95_s", "delay_p99_s"]);
    let first: Vec<&str> = lines.next().expect("a flow").split_whitespace().collect();
    let delays: Vec<f64> = first[2..].iter().map(|value| value.parse().expect("a number")).collect();
    assert!(delays.len() == 3 && delays[0] > 0.0 && delays[0] <= delays[1] && delays[1] <= delays[2], "{first:?}");
}

#[test]
fn run_without_delivery_has_exit_status_3_and_check_warns() {
    let out = folder("nothing");
    let file = folder("late.toml");
    let text = "duration = '2s'\n[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '5ms' }]\n[[flow]]\nname = 'data'\n\
                from = 'source'\nto = 'sink'\nworkload = 'bulk'\nstart = '3s'\n";
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(&file, text).expect("a file");
    let name = file.to_str().expect("text");
    let checked = fullpipe(&["check", name]);
    assert_eq!(status(&checked), 0, "{}", errors(&checked));
    assert!(
        errors(&checked).contains("warning: data: starts at 3s, but the run ends after 2s"),
        "{}",
        errors(&checked)
    );
    let output = fullpipe(&["run", name, "--quiet", "--out", out.to_str().expect("text")]);
    assert_eq!(status(&output), 3, "{}", errors(&output));
    let printed = errors(&output);
    assert!(
        printed.contains("warning: data: starts at 3s") && printed.contains("no application received any payload"),
        "{printed}"
    );
    let report = fullpipe(&["report", out.to_str().expect("text")]);
    assert_eq!(status(&report), 3, "{}", errors(&report));
}
