//! Tests the interface of `fullpipe tmix` for scripts.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ORIGINAL: &str = "SEQ 6851 1 21217 555382\nw 64800 6432\nr 1176194\nl 0 0\n> 245\nt 51257\n< 510\nt 6304943\n";
const ALTERNATE: &str =
    "S 6851 1 21217 555382\nw 64800 6432\nr 1176194\nl 0 0\nI 0 0 245\nA 0 51257 510\nA 6304943 0 0\n";

fn tmix(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fullpipe")).arg("tmix").args(arguments).output().expect("the command starts")
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tmix-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn good(arguments: &[&str]) -> Output {
    let output = tmix(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", errors(&output));
    output
}

fn json(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).expect("an array and nothing else")
}

#[test]
fn convert_works_in_both_directions() {
    let folder = folder("convert");
    let (original, alternate, back) = (folder.join("x.org"), folder.join("x.alt"), folder.join("back.org"));
    std::fs::write(&original, ORIGINAL).expect("a file");
    let output = good(&["convert", "--to", "alternate", text(&original), text(&alternate)]);
    assert!(errors(&output).contains("1 connections written to"), "{}", errors(&output));
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&alternate).expect("it is there"), ALTERNATE);
    let output = good(&["convert", "--quiet", "--to", "original", text(&alternate), text(&back)]);
    assert_eq!(errors(&output), "");
    assert_eq!(std::fs::read_to_string(&back).expect("it is there"), ORIGINAL);
}

#[test]
fn invalid_trace_has_exit_status_2_and_its_line_and_writes_nothing() {
    let folder = folder("bad");
    let (bad, out) = (folder.join("bad.org"), folder.join("out.alt"));
    std::fs::write(&bad, format!("{ORIGINAL}SEQ -1 1 1 1\n> 5\n{ORIGINAL}")).expect("a file");
    let output = tmix(&["convert", "--to", "alternate", text(&bad), text(&out)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).contains("bad.org:9: start (microseconds): expected a whole number"),
        "{}",
        errors(&output)
    );
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1);
    // With --skip-bad the malformed connection is skipped and counted.
    let output = good(&["convert", "--skip-bad", "--to", "alternate", text(&bad), text(&out)]);
    assert!(errors(&output).contains("1 malformed connections left out, the first: "), "{}", errors(&output));
    assert_eq!(std::fs::read_to_string(&out).expect("it is there"), ALTERNATE.repeat(2));
    let rows = json(&good(&["stats", "--json", "--skip-bad", text(&bad)]));
    assert_eq!((&rows[0]["connections"], &rows[0]["skipped"]), (&2.into(), &1.into()));
}

#[test]
fn stats_prints_a_table_or_json() {
    let file = folder("stats").join("x.org");
    std::fs::write(&file, ORIGINAL).expect("a file");
    let rows = json(&good(&["stats", "--json", text(&file)]));
    assert_eq!(rows[0]["sequential"], 1);
    assert_eq!(rows[0]["acceptor_adu"]["p50"], 510.0);
    assert_eq!(rows[0]["rtt"]["max"], 1176.194);
    assert_eq!(rows[0]["send_wait"]["unit"], "s");
    let output = good(&["stats", text(&file), text(&file)]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(table.matches("1 connections: 1 sequential, 0 concurrent").count(), 2, "{table}");
    assert!(table.contains("acceptor adu (bytes)"), "{table}");
}

#[test]
fn invalid_usage_has_exit_status_2_and_a_message() {
    let folder = folder("usage");
    let file = folder.join("x.org");
    std::fs::write(&file, ORIGINAL).expect("a file");
    let (file, empty) = (text(&file), folder.join("none"));
    std::fs::create_dir(&empty).expect("a folder");
    let find = ["find-target", "--max-rtt", "408ms", "--capacity", "100Mbit/s", "--load"];
    for (arguments, said) in [
        (vec![], "Usage"),
        (vec!["stats"], "FILES"),
        (vec!["stats", "/nowhere"], "cannot read /nowhere"),
        (vec!["stats", text(&empty)], "is a folder"),
        (vec!["convert", "--to", "neither", file, "out"], "possible values: original, alternate"),
        (vec!["convert", "--to", "original", file, file], "are the same"),
        (vec!["generate", "--seconds", "0", "--out", "x"], "0 is not in 1..=1000000"),
        (vec!["generate", "--seconds", "1", "--out", text(&folder)], "contains \""),
        (vec!["shuffle", text(&empty), "--scale", "1", "--duration", "1s", "--out", "x"], "has no traces (.org, .orig"),
        (vec!["shuffle", file, "--scale", "0", "--duration", "1s", "--out", "x"], "both must be above 0"),
        (vec!["shuffle", file, file, "--scale", "1", "--duration", "1s", "--out", "x"], "duplicate trace name x"),
        (vec!["shuffle", file, "--scale", "1", "--duration", "1", "--out", "x"], "a duration such as"),
        ([&find[..], &["60"]].concat(), "expected a fraction"),
        ([&find[..], &["0.6", file]].concat(), "no scale gives a steady load"),
        (vec!["find-target", "--load", "0.6", "--max-rtt", "1s", "--capacity", "12MB/s"], "it counts bytes"),
    ] {
        let output = tmix(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(said), "{arguments:?} says {:?}, not {said:?}", errors(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn synthetic_traces_are_shuffled_with_the_scale_of_find_target() {
    let folder = folder("whole");
    let traces = folder.join("traces");
    let generate = |out: &Path, seconds: &str, seed: &str| {
        good(&["generate", "--seconds", seconds, "--seed", seed, "--quiet", "--out", text(out)]);
        std::fs::read(out.join("r5s1.org")).expect("it is there")
    };
    let long = generate(&traces, "60", "1");
    // A shorter trace is the beginning of a longer one; another seed gives another trace.
    let short = generate(&folder.join("short"), "3", "1");
    assert!(long.starts_with(&short) && !short.is_empty());
    assert!(!long.starts_with(&generate(&folder.join("other"), "3", "2")));
    assert_eq!(std::fs::read_dir(&traces).expect("a folder").count(), 9);
    // The same folder can be used again, because it contains no other files.
    assert_eq!(generate(&folder.join("short"), "3", "1"), short);

    let target = |more: &[&str]| {
        let common = [
            "find-target",
            "--capacity",
            "100Mbit/s",
            "--load",
            "0.6",
            "--max-rtt",
            "100ms",
            "--bin",
            "500ms",
            "--json",
        ];
        json(&good(&[&common[..], more].concat())).remove(0)
    };
    let found = target(&[text(&traces), "--seed", "1"]);
    let number = |row: &Value, field: &str| row[field].as_f64().expect("a number");
    // 320 Mbit/s for a target of 60.
    assert!((number(&found, "scale") / 5.33 - 1.0).abs() < 0.1, "{found}");
    assert!((number(&found, "load") / 0.6 - 1.0).abs() <= 0.02, "{found}");
    assert_ne!(target(&[text(&traces), "--seed", "2"]), found);

    let total = number(&found, "prefill_t_s") + number(&found, "warmup_s") + number(&found, "test_s");
    let shuffle = |out: &Path, seed: &str, more: &[&str]| {
        let (scale, duration) = (number(&found, "scale").to_string(), format!("{}ms", (total * 1e3).round()));
        let common =
            ["shuffle", text(&traces), "--bin", "500ms", "--scale", &scale, "--duration", &duration, "--quiet"];
        good(&[&common[..], &["--seed", seed, "--out", text(out)], more].concat());
        json(&good(&["stats", "--json", "--quiet", text(&out.join("r5s1.org"))])).remove(0)
    };
    let prefill = ["--capacity", "100Mbit/s", "--load", "0.6", "--max-rtt", "100ms"];
    let one = shuffle(&folder.join("one"), "1", &prefill);
    assert!(number(&one, "last_start_s") < total && number(&one, "last_start_s") > 0.95 * total, "{one}");
    // No connection starts before the interval of the prefill.
    assert!(number(&one, "first_start_s") >= number(&found, "prefill_t_s") - number(&found, "prefill_si_s"), "{one}");
    assert_eq!(one["out_of_order"], 0);
    let all = shuffle(&folder.join("all"), "1", &[]);
    assert!(number(&all, "connections") > number(&one, "connections"));
    assert!(number(&all, "first_start_s") < 0.5, "{all}");
    assert_ne!(shuffle(&folder.join("two"), "2", &[]), all);
}
