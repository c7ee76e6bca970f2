//! Tests that lists, pages and error messages match the declarations: names, metrics in studies, benchmarks.

use fullpipe::congestion::catalogue::DECLARATIONS;
use fullpipe::network::discipline::table::DISCIPLINES;
use fullpipe::quic::scheduler::SCHEDULERS;
use fullpipe::scenario::access::ACCESS_NETWORKS;
use fullpipe::scenario::probe_metrics;
use fullpipe::workload::WORKLOADS;
use fullpipe::{embedded, lab};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Exit status, standard output and standard error.
fn fullpipe(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The names in an error message between these words and the end of the line or a bracket.
fn names_of_error(arguments: &[&str], before: &str) -> Vec<String> {
    let (status, _, errors) = fullpipe(arguments);
    assert_eq!(status, Some(2), "{errors}");
    let list = errors.split_once(before).unwrap_or_else(|| panic!("{errors}")).1;
    list.split([')', '\n']).next().unwrap_or_default().split(", ").map(str::to_owned).collect()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).expect("the page")
}

/// The names in one of the lists to which access networks add choices.
fn choices(list: &str) -> impl Iterator<Item = &'static str> {
    let choices = ACCESS_NETWORKS.iter().flat_map(|component| component.choices);
    choices.filter(move |choices| choices.list == list).flat_map(|choices| (choices.declarations)()).map(|one| one.name)
}

fn reported_metrics() -> impl Iterator<Item = (&'static str, &'static str)> {
    lab::metrics().flat_map(|(of, metrics)| metrics.into_iter().map(move |metric| (of, metric.name)))
}

fn sampled_metrics() -> impl Iterator<Item = &'static str> {
    probe_metrics(ACCESS_NETWORKS).into_iter().map(|(metric, _)| metric.name)
}

/// Every list with its declared names.
fn declared() -> BTreeMap<&'static str, Vec<&'static str>> {
    let streams = SCHEDULERS.declarations().map(|scheduler| scheduler.name);
    let metrics = sampled_metrics().chain(reported_metrics().map(|(_, name)| name));
    BTreeMap::from([
        ("congestion", DECLARATIONS.iter().map(|control| control.name).collect()),
        ("queues", DISCIPLINES.declarations().map(|discipline| discipline.name).collect()),
        ("schedulers", streams.chain(choices("schedulers")).collect()),
        ("workloads", WORKLOADS.declarations().map(|workload| workload.name).collect()),
        ("channels", choices("channels").collect()),
        ("metrics", metrics.collect()),
        ("access-networks", ACCESS_NETWORKS.iter().map(|component| component.declaration.name).collect()),
        ("scenarios", embedded::scenario_names().collect()),
        ("studies", embedded::study_names().collect()),
        ("templates", vec!["dumbbell", "home-link", "lte", "masque", "sweep", "real-programs"]),
    ])
}

#[test]
fn each_list_has_the_declared_names() {
    let declared = declared();
    let mut lists = names_of_error(&["list", "things"], "expected one of ");
    lists.retain(|list| list != "benchmarks");
    lists.sort_unstable();
    assert_eq!(lists, declared.keys().copied().collect::<Vec<_>>());
    // Each choice of an access network is in a list.
    let in_lists = choices("schedulers").chain(choices("channels")).count();
    let all = ACCESS_NETWORKS.iter().flat_map(|component| component.choices).map(|list| (list.declarations)().len());
    assert_eq!(in_lists, all.sum::<usize>());
    for (list, names) in declared {
        let (status, rows, errors) = fullpipe(&["list", list, "--json"]);
        assert_eq!(status, Some(0), "{errors}");
        let rows: Vec<Value> = serde_json::from_str(&rows).expect("JSON");
        let listed: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(listed, names, "{list}");
        for row in &rows {
            let is_told = |key: &str| row[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_told("version") && is_told("summary") && row["source"].is_string(), "{list}: {row}");
        }
        // Without --json there is one line for each name, with its summary.
        let (_, text, _) = fullpipe(&["list", list]);
        assert_eq!(text.lines().count(), names.len(), "{text}");
        for (line, row) in text.lines().zip(&rows) {
            let has = |key: &str| line.contains(row[key].as_str().unwrap_or_default());
            assert!(has("name") && has("summary") && has("source"), "{line}");
        }
    }
}

#[test]
fn each_metric_and_column_is_documented_and_usable_in_a_study() {
    let (reference, records) = (page("scenario-reference.md"), page("records.md"));
    for name in sampled_metrics() {
        assert!(reference.contains(&format!("\n- `\"{name}\"`: ")), "{name}");
    }
    for (of, name) in reported_metrics() {
        assert!(records.contains(&format!("\n| `{of}` | `{name}` | ")), "{name}");
    }
    let of_table = |file: &str, prefix: &str| -> Vec<String> {
        let section = records.split("\n## ").find(|section| section.starts_with(file)).expect("the table");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let numbers = rows.filter(|(_, kind)| !kind.starts_with("text"));
        numbers.map(|(column, _)| format!("sum({prefix}{column}[\"*\"])")).collect()
    };
    let mut expressions = [of_table("flows.csv", ""), of_table("links.csv", "link_")].concat();
    assert!(expressions.len() > 30, "{expressions:?}");
    expressions.extend(reported_metrics().map(|(_, name)| format!("sum(figure_{name}[\"*\"])")));
    // Of sampled metrics, one that a probe of this scenario samples. `lab/tests/declared.rs` samples each metric.
    expressions.push("mean(series(\"download\", \"cwnd_bytes\"))".to_owned());
    let study = |expressions: &[String]| {
        let metrics = expressions.iter().enumerate().map(|(number, expression)| {
            format!("[[metric]]\nname = 'm{number}'\nunit = ''\nexpression = '{expression}'\n")
        });
        let metrics: String = metrics.collect();
        format!(
            "title = 'All'\n[scenarios]\nplain = 'plain.toml'\n[[experiment]]\nname = 'one'\nscenario = 'plain'\n{metrics}"
        )
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("declared");
    std::fs::create_dir_all(&folder).expect("a folder");
    let scenario = embedded::scenario_text("quick-start").expect("it is embedded");
    let scenario = format!("{scenario}\n[measurement]\nlinks = ['*']\n");
    std::fs::write(folder.join("plain.toml"), scenario).expect("a file");
    let file = folder.join("study.toml");
    let check = |expressions: &[String]| {
        std::fs::write(&file, study(expressions)).expect("a file");
        fullpipe(&["check", file.to_str().expect("text")])
    };
    let (status, _, errors) = check(&expressions);
    assert_eq!(status, Some(0), "{errors}");
    for wrong in [
        "sum(figure_nothing[\"*\"])",
        "sum(nothing_s[\"*\"])",
        "sum(link_nothing[\"*\"])",
        "mean(series(\"download\", \"nothing\"))",
    ] {
        assert_eq!(check(&[wrong.to_owned()]).0, Some(2), "{wrong}");
    }
}

#[test]
fn each_benchmark_is_listed_documented_and_accepted() {
    let (_, rows, _) = fullpipe(&["list", "benchmarks", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("JSON");
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let names: Vec<String> = rows.iter().map(|row| text(row, "name")).collect();
    // Each scenario of `bench/` is a benchmark; one benchmark has no scenario.
    let mut scenarios: Vec<&str> = embedded::scenario_names().filter_map(|name| name.strip_prefix("bench/")).collect();
    scenarios.push("masque-loopback");
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    scenarios.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(sorted, scenarios);
    let page = page("command-line.md");
    for row in &rows {
        let line = format!("\n| `{}` | {} |\n", text(row, "name"), text(row, "summary"));
        assert!(page.contains(&line), "docs/command-line.md has no row {line}");
    }
    // Only the last of these names is an error, and the message contains all others.
    let given: Vec<&str> = ["bench"].into_iter().chain(names.iter().map(String::as_str)).chain(["nothing"]).collect();
    assert_eq!(names_of_error(&given, "unknown benchmark \"nothing\" (there are: "), names);
}

#[test]
fn each_template_and_command_is_documented() {
    let page = page("command-line.md");
    let (_, rows, _) = fullpipe(&["list", "templates", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("JSON");
    for row in &rows {
        let text = |key: &str| row[key].as_str().expect("a text");
        let line = format!("\n| `{}` | {} |\n", text("name"), text("summary"));
        assert!(page.contains(&line), "docs/command-line.md has no row {line}");
    }
    let (_, help, _) = fullpipe(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).expect("commands").split("\n\n").next().expect("lines");
    for name in commands.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(page.contains(&format!("\n    fullpipe {name} ")), "docs/command-line.md has no call of {name}");
    }
}
