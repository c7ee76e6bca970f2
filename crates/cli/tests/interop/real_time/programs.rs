//! Tests programs that fail: the message, the exit status, and that nothing remains.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::world::World;

/// Two hosts and a fast link, without programs.
fn hosts() -> World {
    World::new("3s").hosts(&["left", "right"]).link("left", "right", "rate = '100Mbit/s', delay = '1ms'")
}

/// The hosts with the program `probe`, which is this shell command on the left host. Additional keys begin with a comma.
fn probe(command: &str, keys: &str) -> World {
    hosts().shell("probe", "left", command, keys)
}

/// Runs a scenario, asserts that nothing of its programs remains, and returns the result.
fn run(bench: &Bench, world: &World) -> Called {
    let called = bench.run(world);
    bench.assert_nothing_left(&Namespaces::default());
    called
}

#[test]
fn failed_program_fails_the_run_with_its_last_output() {
    let bench = Bench::new("fails", User::Nobody);
    run(&bench, &probe("echo this is wrong >&2; exit 7", ""))
        .ended_with(1)
        .said("program \"probe\" ended with exit status 7; expected exit status 0")
        .said("this is wrong");
}

#[test]
fn nonzero_exit_status_can_be_expected() {
    let bench = Bench::new("expected", User::Nobody);
    run(&bench, &probe("exit 7", ", exit_status = 7")).ended_with(0);
    run(&bench, &probe("exit 0", ", exit_status = 7")).ended_with(1).said("expected exit status 7");
}

#[test]
fn program_ended_by_a_signal_fails_the_run() {
    let bench = Bench::new("signal", User::Nobody);
    run(&bench, &probe("kill -SEGV $$", "")).ended_with(1).said("ended with signal 11");
}

#[test]
fn missing_program_is_named() {
    let bench = Bench::new("missing", User::Nobody);
    run(&bench, &hosts().entry("program", "name = 'probe', host = 'left', command = ['no-such-program']"))
        .ended_with(1)
        .said("program \"probe\": cannot start \"no-such-program\": it is not in PATH");
}

#[test]
fn missing_folder_is_named() {
    let bench = Bench::new("folder", User::Nobody);
    run(&bench, &probe("true", ", directory = 'no-such-folder'")).ended_with(1).said("no-such-folder");
}

#[test]
fn program_not_ready_in_time_fails_the_run_early() {
    let bench = Bench::new("not-ready", User::Nobody);
    for ready in [
        "{ kind = 'tcp-port', port = 80, timeout = '300ms' }",
        "{ kind = 'udp-port', port = 80, timeout = '300ms' }",
        "{ kind = 'output', text = 'here I am', timeout = '300ms' }",
    ] {
        run(&bench, &probe("sleep 60", &format!(", ready = {ready}, background = true")))
            .ended_with(1)
            .said("program \"probe\" was not ready within 300ms");
    }
}

#[test]
fn server_that_ends_before_it_is_ready_fails_the_run() {
    let bench = Bench::new("early", User::Nobody);
    run(&bench, &probe("exit 0", ", ready = { kind = 'tcp-port', port = 80 }, background = true"))
        .ended_with(1)
        .said("before it was ready");
}

#[test]
fn program_that_waits_for_an_unready_program_fails_with_the_run() {
    let bench = Bench::new("waits", User::Nobody);
    let server = probe("sleep 60", ", background = true, ready = { kind = 'tcp-port', port = 80, timeout = '60s' }");
    let client = "name = 'client', host = 'right', command = ['true'], after = ['probe']";
    run(&bench, &server.entry("program", client))
        .ended_with(1)
        .said("program \"client\" was not started before the end of the run, because \"probe\" was not ready");
}

#[test]
fn program_is_ended_at_its_timeout() {
    let bench = Bench::new("endless", User::Nobody);
    run(&bench, &probe("sleep 60", ", timeout = '500ms'"))
        .ended_with(1)
        .said("did not end within its timeout of 500ms");
    // It never listens, and the run fails before its end.
    run(&bench, &probe("trap '' TERM; while true; do sleep 1; done", ", timeout = '60s'"))
        .ended_with(1)
        .said("program \"probe\" was still running at the end of the run");
}

#[test]
fn long_output_keeps_its_beginning_and_end() {
    let bench = Bench::new("talkative", User::Nobody);
    // 20 million bytes.
    run(&bench, &probe("echo first; seq 1000000 3500000 | head -c 20000000; echo; echo last", "")).ended_with(0);
    let text = bench.said("probe");
    assert!(text.starts_with("first\n1000000\n") && text.ends_with("\nlast\n"), "{} bytes", text.len());
    assert!(text.len() < 3 << 20, "{} bytes", text.len());
    let left_out = 20_000_000 + "first\n\nlast\n".len() - (2 << 20);
    assert!(text.contains(&format!("[fullpipe: {left_out} bytes omitted]")));
}

/// Independently of the file name of the executable, and of another program `fullpipe` in `PATH`.
#[test]
fn fullpipe_is_the_executable_that_runs_the_scenario() {
    let mut bench = Bench::new("own-name", User::Nobody);
    bench.rename_executable("network-laboratory");
    let world = hosts()
        .shell("by-shell", "left", "fullpipe --version && exec fullpipe --version", "")
        .entry("program", "name = 'by-name', host = 'right', command = ['fullpipe', '--version']")
        .entry(
            "program",
            "name = 'own-path', host = 'right', command = ['fullpipe', '--version'], environment = ['PATH=/no-such-folder']",
        );
    run(&bench, &world).ended_with(0);
    let version = bench.said("by-name");
    assert!(version.starts_with("fullpipe "), "{version}");
    assert_eq!(bench.said("by-shell"), version.repeat(2));
    assert_eq!(bench.said("own-path"), version);
}

#[test]
fn program_with_endless_output_ends_with_the_run() {
    let bench = Bench::new("chatter", User::Nobody);
    run(&bench, &probe("yes", ", background = true")).ended_with(0);
}

/// The last of two lines with metrics counts, and text is ignored. `fullpipe` is the executable that runs the scenario.
#[test]
fn program_reports_metrics_of_a_flow() {
    let bench = Bench::new("figures", User::Nobody);
    let lines =
        r#"echo '{"goodput_bps": 1}'; fullpipe --version; echo '{"quic_mean_rtt_s": 0.25, "text": "x"}'; echo bye"#;
    let world = probe(lines, ", figures_of = 'data'")
        .shell("silent", "right", "echo '{\"a\": 1}'", "")
        .entry("flow", "name = 'data', from = 'left', to = 'right', from_by = 'program', to_by = 'program'");
    // These programs send nothing, and the run reports this.
    run(&bench, &world).ended_with(3).said("no packet was sent");
    assert!(
        bench.said("probe").contains(&format!("\nfullpipe {}", env!("CARGO_PKG_VERSION"))),
        "{}",
        bench.said("probe")
    );
    let figures = std::fs::read_to_string(bench.run_folder().join("figures.csv")).expect("there are figures");
    assert_eq!(figures, "flow,host,figure,value\ndata,left,quic_mean_rtt_s,0.25\n");
}

/// Two model hosts in the same network exchange 100 bytes over a link of 1 ms. The run and its replay report this
/// exchange as in virtual time.
#[test]
fn model_flows_beside_programs_are_reported_as_in_virtual_time() {
    let bench = Bench::new("beside", User::Nobody);
    let question = "name = 'question', from = 'near', to = 'far', workload = 'request-response'";
    let world = probe("sleep 0.2; echo '{\"quic_packets_sent\": 3}'", ", figures_of = 'question'")
        .hosts(&["near", "far"])
        .link("near", "far", "rate = '100Mbit/s', delay = '1ms'")
        .entry("flow", format!("{question}, request = '100B', response = '100B', exchanges = 1"));
    bench.write_scenario(&world);
    bench.call(&["run", "scenario.toml", "--real-time", "--record", "--out", "out"]).ended_with(0);
    let folder = bench.run_folder();
    let figures = || std::fs::read_to_string(bench.run_folder().join("figures.csv")).expect("there are figures");
    let told = figures();
    assert!(told.contains("\nquestion,near,exchanges,1\n"), "{told}");
    assert!(told.ends_with("\nquestion,left,quic_packets_sent,3\n"), "{told}");
    std::fs::copy(folder.join("arrivals.pcapng"), bench.path("arrivals.pcapng")).expect("a copy");
    std::fs::remove_dir_all(bench.path("out")).expect("the folder");
    bench.call(&["run", "scenario.toml", "--replay", "arrivals.pcapng", "--out", "out"]).ended_with(0);
    // A replay does not contain the output of programs.
    assert_eq!(figures(), told.replace("question,left,quic_packets_sent,3\n", ""));
}

/// The daemon is in its own session, closes inherited descriptors, and ignores all signals that can be ignored.
#[test]
fn daemon_of_a_program_ends_with_the_run() {
    for user in [User::Nobody, User::Caller] {
        let bench = Bench::new("daemon", user);
        let daemon = "trap '' TERM HUP INT; exec <&- >&- 2>&-; touch daemon-runs; while true; do sleep 0.1; done";
        let program = probe(
            &format!("setsid sh -c \"{daemon}\" & while ! test -e daemon-runs; do sleep 0.01; done"),
            ", timeout = '3s'",
        );
        run(&bench, &program).ended_with(0);
        assert!(bench.path("daemon-runs").exists());
    }
}

/// Its pipes remain open after its end, and the run does not wait for them.
#[test]
fn child_with_open_output_does_not_delay_the_program_end() {
    let bench = Bench::new("open", User::Nobody);
    run(&bench, &probe("sleep 60 & echo done", "")).ended_with(0);
    let run = bench.run_json();
    let ended = run["programs"][0]["ended_s"].as_f64().expect("when it ended");
    assert!(ended < 2.5, "it ended at {ended} s, not with the run or its child");
}

#[test]
fn programs_resolve_the_names_of_all_hosts() {
    let bench = Bench::new("names", User::Nobody);
    let command =
        "test \"$(hostname)\" = left && getent hosts right && getent hosts left && ! getent hosts example.org";
    run(&bench, &probe(command, "")).ended_with(0);
}

#[test]
fn programs_see_only_processes_of_the_run() {
    let bench = Bench::new("processes", User::Nobody);
    // Process numbers begin again at 1, which is Fullpipe's process.
    run(&bench, &probe("test $$ -gt 1 && test $$ -lt 20", "")).ended_with(0);
}
