//! Tests `fullpipe shell` and `fullpipe doctor`.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::ordinary::{download, serve};
use crate::world::World;
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

/// Two hosts and a fast link, without programs.
fn hosts() -> World {
    World::new("3s").hosts(&["left", "right"]).link("left", "right", "rate = '100Mbit/s', delay = '1ms'")
}

/// A program without readiness is ready when it starts, so its exit does not fail the run.
#[test]
fn shell_reports_a_background_program_that_fails() {
    let bench = Bench::new("shell-background", User::Nobody);
    bench.write_scenario(
        &hosts().shell("server", "left", "echo no such port >&2; exit 3", ", background = true").shell(
            "setup",
            "right",
            "echo done >&2",
            ", background = true",
        ),
    );
    let shell = ["shell", "scenario.toml", "left", "--", "sleep", "1"];
    let output = bench.start(&shell).wait_with_output().expect("the process ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "fullpipe: program \"server\" (background) ended with exit status 3\n    no such port\n";
    assert!(said.contains(expected) && !said.contains("setup"), "{said}");
    Called::new(&bench, output).ended_with(0);
    // A program that ends before it is ready fails the run, which ends the shell.
    let ready = ", background = true, ready = { kind = 'tcp-port', port = 80 }";
    bench.write_scenario(&hosts().shell("server", "left", "echo no such port >&2; exit 3", ready));
    bench
        .call(&shell)
        .ended_with(1)
        .said("program \"server\" ended with exit status 3 before it was ready")
        .said("no such port");
    bench.assert_nothing_left(&Namespaces::default());
}

/// A raw socket requires CAP_NET_RAW (raw(7)) in the user namespace of the host's network.
#[test]
fn programs_keep_the_user_id_and_have_the_privileges_of_their_host() {
    const RAW: &str = "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)";
    for (user, id) in [(User::Nobody, Some("65534\n65534\n")), (User::Caller, None)] {
        let bench = Bench::new("shell-user", user);
        bench.write_scenario(&hosts().shell("idle", "right", "sleep 60", ", background = true"));
        // The exit status of the shell is ignored, so a line shows that of the last command.
        let command = format!("id -u; id -g; python3 -c '{RAW}' && echo raw");
        let run = bench.start(&["shell", "scenario.toml", "left", "--", "sh", "-c", &command]);
        let output = run.wait_with_output().expect("the process ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.ends_with("raw\n"), "{said}");
        assert!(id.is_none_or(|id| said.starts_with(id)), "{said}");
        Called::new(&bench, output).ended_with(0);
    }
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
