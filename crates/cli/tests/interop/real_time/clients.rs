//! Tests twenty clients behind ten UEs of an LTE cell, each with a download through a MASQUE proxy: all downloads are
//! complete and correct. If a program or the emulator is killed during the run, the error is reported and no process
//! remains.

use crate::bench::{Bench, Called, Namespaces, User};
use std::time::Duration;

const CLIENTS: &str = include_str!("../../../../../scenarios/lte-clients.toml");
const CALL: [&str; 5] = ["run", "scenario.toml", "--real-time", "--out", "out"];

/// The SHA-256 of the first two million bytes that `http3 serve --generate` sends. The clients' `--check` generates
/// these bytes with the same code, so this value is the result of `sha256sum` for a file from `http3 get --out`.
const DIGEST: &str = "3a986fa918cfb3d4014b0b94868643bddadbf5d54b5b9d0c71f83254cc53453d";

#[test]
fn twenty_clients_behind_ten_ues_complete_their_downloads() {
    let bench = Bench::new("clients", User::Nobody);
    bench.write("scenario.toml", CLIENTS);
    bench.call(&CALL).ended_with(0);
    for client in 1..=20 {
        let said = bench.said(&format!("get{client}"));
        assert!(said.contains("2000000 bytes") && said.contains(DIGEST), "client {client}: {said}");
    }
    bench.assert_nothing_left(&Namespaces::default());
}

/// Runs the scenario with an additional program. Two seconds after the start of the clients it kills the processes
/// whose command line contains this text.
fn with_one_killed(name: &str, text: &str) -> Called {
    let bench = Bench::new(name, User::Nobody);
    // With brackets, the pattern does not match its own process.
    let killer = format!(
        "sleep 2; for process in /proc/[0-9]*; do if tr '\\000' ' ' < $process/cmdline | grep -q '{text}'; then \
         kill -9 ${{process#/proc/}}; fi; done"
    );
    let program = format!(
        "\n[[program]]\nname = \"killer\"\nhost = \"server\"\ncommand = '''{killer}'''\nafter = [\"server\", \"proxy\"]\n\
         background = true\n"
    );
    // The URL identifies client 7.
    let (before, seventh) = CLIENTS.split_at(CLIENTS.find("name = \"get7\"").expect("the seventh client"));
    let seventh = seventh.replacen("bytes/2000000", "bytes/2000007", 1);
    bench.write("scenario.toml", format!("{before}{seventh}{program}"));
    let called = bench.call(&CALL);
    bench.assert_nothing_left(&Namespaces::default());
    called
}

#[test]
fn killed_client_is_named() {
    with_one_killed("killed-client", "bytes/200000[7]").ended_with(1).said("program \"get7\" ended with signal 9");
}

#[test]
fn killed_proxy_is_named() {
    with_one_killed("killed-proxy", "masque prox[y] ")
        .ended_with(1)
        .said("program \"proxy\" (background) was killed by signal 9 before the end of the run");
}

#[test]
fn killed_emulator_leaves_none_of_twenty_clients() {
    let bench = Bench::new("killed-emulator", User::Nobody);
    bench.write("scenario.toml", CLIENTS);
    let mut run = bench.start(&CALL);
    // All twenty clients, the proxy and the server are running after some tenths of a second.
    while bench.processes().len() < 22 {
        assert!(run.try_wait().expect("the process has a state").is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let namespaces = bench.namespaces();
    run.kill().expect("SIGKILL");
    run.wait().expect("the process ends");
    bench.assert_nothing_left(&namespaces);
}
