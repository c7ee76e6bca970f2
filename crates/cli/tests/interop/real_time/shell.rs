//! `fullpipe shell` and `fullpipe doctor`.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::ordinary::{download, serve};
use std::fs;

#[test]
fn a_command_at_a_host_has_the_scenarios_servers() {
    let bench = Bench::new("shell", User::Nobody);
    let file = serve(&bench);
    bench.write_scenario(&download("client"));
    let fetch = ["--", "curl", "-sS", "-o", "by-hand", "http://server:8000/file"];
    let call = [&["shell", "scenario.toml", "client"][..], &fetch].concat();
    bench.call(&call).ended_with(0);
    assert_eq!(fs::read(bench.path("by-hand")).expect("the file"), file);
    assert!(!bench.path("fetched").exists(), "the scenario's own client is left out");
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn what_a_shell_prints_is_its_own_and_its_status_is_nobody_elses() {
    let bench = Bench::new("shell-words", User::Nobody);
    serve(&bench);
    bench.write_scenario(&download("client"));
    let run = bench.start(&["shell", "scenario.toml", "client", "--", "sh", "-c", "hostname; exit 3"]);
    let output = run.wait_with_output().expect("its end");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "client\n");
    Called::new(&bench, output).ended_with(0);
    bench.call(&["shell", "scenario.toml", "clint"]).ended_with(2).said("did you mean \"client\"");
    bench.call(&["shell", "scenario.toml", "client", "--", "no-such-program"]).ended_with(1).said("cannot be started");
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn doctor_says_what_there_is_and_measures() {
    let bench = Bench::new("doctor", User::Nobody);
    let run = bench.start(&["doctor", "--json"]);
    let output = run.wait_with_output().expect("its end");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    Called::new(&bench, output).ended_with(0);
    assert_eq!(answer["real_time"], true);
    let findings = answer["findings"].as_array().expect("findings");
    for subject in ["processors", "clock source", "timer slack", "user namespaces", "veth", "packet sockets", "TUN"] {
        assert!(findings.iter().any(|finding| finding["subject"] == subject), "{subject}");
    }
    // Three seconds of 10 000 packets a second were asked for; what arrives is the machine's matter.
    assert!(answer["calibration"]["packets_arrived"].as_u64() > Some(0), "{answer}");
    bench.assert_nothing_left(&Namespaces::default());
}
