//! Tests the replay of a real-time run in virtual time.

use crate::bench::{Bench, User};
use crate::ordinary::{PATH, download, serve};
use crate::world::World;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The download, and a transfer between model hosts that shares its path. The path loses packets at random, and probes
/// take samples.
fn scenario() -> World {
    let fast = "rate = '100Mbit/s', delay = '1ms'";
    World::new("20s")
        .hosts(&["client", "server", "left", "right"])
        .routers(&["near", "far"])
        .link("near", "far", &format!("{PATH}, loss = {{ kind = 'bernoulli', probability = 0.01 }}"))
        .link("left", "near", fast)
        .link("client", "near", fast)
        .link("far", "right", fast)
        .link("far", "server", fast)
        .entry("flow", "name = 'beside', from = 'left', to = 'right', workload = 'bulk'")
        .entry("probe", "flow = 'beside', metrics = ['cwnd_bytes', 'srtt_s'], interval = '10ms'")
        .web_server()
        .download("client", "server", &[])
}

/// The only run in a folder of records.
fn run_folder(bench: &Bench, out: &str) -> PathBuf {
    let runs: Vec<PathBuf> =
        fs::read_dir(bench.path(out).join("runs")).expect("runs").flatten().map(|entry| entry.path()).collect();
    let [run] = runs.as_slice() else { panic!("one run, not {runs:?}") };
    run.clone()
}

#[test]
fn replay_of_a_recorded_run_gives_the_same_records() {
    let bench = Bench::new("replay", User::Caller);
    serve(&bench);
    bench.write_scenario(&scenario());
    bench.call(&["run", "scenario.toml", "--real-time", "--record", "--out", "out"]).ended_with(0);
    let arrivals = run_folder(&bench, "out").join("arrivals.pcapng");
    fs::copy(&arrivals, bench.path("arrivals.pcapng")).expect("a copy");
    bench.call(&["run", "scenario.toml", "--replay", "arrivals.pcapng", "--out", "again"]).ended_with(0);
    for table in ["flows.csv", "series.csv"] {
        let [first, again] = ["out", "again"].map(|out| fs::read(run_folder(&bench, out).join(table)).expect(table));
        assert!(first.len() > 500, "{}", String::from_utf8_lossy(&first));
        assert!(first == again, "{table} differs");
    }
    // The download is among the flows, with more packets than 1 MB in packets of 1460 bytes.
    let flows = fs::read_to_string(run_folder(&bench, "again").join("flows.csv")).expect("flows.csv");
    let most = flows.lines().filter(|line| line.contains("server,client")).flat_map(|line| line.split(','));
    assert!(most.filter_map(|cell| cell.parse::<u64>().ok()).any(|number| number > 1_000_000 / 1460), "{flows}");

    // Other programs can read the file: it has as many frames as arrived, all from the interfaces of the two hosts.
    let listed = Command::new("tshark")
        .args(["-r", "arrivals.pcapng", "-T", "fields", "-e", "frame.interface_name"])
        .current_dir(bench.path("."))
        .output()
        .expect("tshark");
    let names = String::from_utf8(listed.stdout).expect("text");
    let again: serde_json::Value =
        serde_json::from_slice(&fs::read(run_folder(&bench, "again").join("run.json")).expect("run.json"))
            .expect("JSON");
    assert_eq!(names.lines().count() as u64, again["arrivals"].as_u64().expect("a number"));
    assert!(names.lines().all(|name| ["client", "server"].contains(&name)));

    // A damaged file, an incomplete file, and a file of other hosts give a message and exit status 1.
    let file = fs::read(&arrivals).expect("the file");
    let end_bytes = 2 * 28;
    for (name, bytes, said) in [
        ("cut", &file[..file.len() - 3], "truncated block"),
        ("endless", &file[..file.len() - end_bytes], "the file is incomplete"),
        ("empty", &file[..0], "the file is empty"),
        ("other", &b"not a capture at all"[..], "not a pcapng file"),
    ] {
        let damaged = format!("{name}.pcapng");
        bench.write(&damaged, bytes);
        bench.call(&["run", "scenario.toml", "--replay", &damaged, "--out", name]).ended_with(1).said(said);
    }
    bench.write("renamed.toml", download("customer").to_string());
    let other = bench.call(&["run", "renamed.toml", "--replay", "arrivals.pcapng", "--out", "renamed"]);
    other
        .ended_with(1)
        .said("the file has arrivals of client, server, but the real hosts of the scenario are customer, server");
}
