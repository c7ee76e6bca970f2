//! Tests `fullpipe shell` and `fullpipe doctor`.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::ordinary::{download, serve};
use std::fs;

#[test]
fn shell_command_can_use_the_scenarios_servers() {
    let bench = Bench::new("shell", User::Nobody);
    let file = serve(&bench);
    bench.write_scenario(&download("client"));
    let fetch = ["--", "curl", "-sS", "-o", "by-hand", "http://server:8000/file"];
    let call = [&["shell", "scenario.toml", "client"][..], &fetch].concat();
    bench.call(&call).ended_with(0);
    assert_eq!(fs::read(bench.path("by-hand")).expect("the file"), file);
    assert!(!bench.path("fetched").exists(), "the scenario's own client is not started");
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn shell_output_is_unchanged_and_its_status_is_ignored() {
    let bench = Bench::new("shell-words", User::Nobody);
    serve(&bench);
    bench.write_scenario(&download("client"));
    let run = bench.start(&["shell", "scenario.toml", "client", "--", "sh", "-c", "hostname; exit 3"]);
    let output = run.wait_with_output().expect("the process ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "client\n");
    Called::new(&bench, output).ended_with(0);
    bench.call(&["shell", "scenario.toml", "clint"]).ended_with(2).said("did you mean \"client\"");
    bench
        .call(&["shell", "scenario.toml", "client", "--", "no-such-program"])
        .ended_with(1)
        .said("cannot start \"no-such-program\"");
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn doctor_reports_findings_and_a_calibration() {
    let bench = Bench::new("doctor", User::Nobody);
    let run = bench.start(&["doctor", "--json"]);
    let output = run.wait_with_output().expect("the process ends");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    Called::new(&bench, output).ended_with(0);
    assert_eq!(answer["real_time"], true);
    let findings = answer["findings"].as_array().expect("findings");
    for subject in ["processors", "clock source", "timer slack", "user namespaces", "veth", "packet sockets", "TUN"] {
        assert!(findings.iter().any(|finding| finding["subject"] == subject), "{subject}");
    }
    // Three seconds of 10 000 packets per second are requested; the number of arrivals depends on the machine.
    assert!(answer["calibration"]["packets_arrived"].as_u64() > Some(0), "{answer}");
    bench.assert_nothing_left(&Namespaces::default());
}
