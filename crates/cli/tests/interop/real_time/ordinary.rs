//! A run with a real server and a real client.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::world::World;
use std::fs;
use std::time::Duration;

/// A file from Python's server to curl at a host of this name, over 20 Mbit/s and 2 times 5 ms.
pub(crate) fn download(client: &str) -> World {
    World::new("20s").hosts(&[client, "server"]).link(client, "server", PATH).web_server().download(
        client,
        "server",
        &[],
    )
}

/// The path of the download.
pub(crate) const PATH: &str = "rate = '20Mbit/s', delay = '5ms', queue = '100packets'";

/// Bytes of the file.
pub(crate) const FILE_BYTES: usize = 1_000_000;

/// Puts the file where the server looks for it.
pub(crate) fn serve(bench: &Bench) -> Vec<u8> {
    let file: Vec<u8> = (0..FILE_BYTES as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::create_dir_all(bench.path("served")).expect("a folder");
    bench.write("served/file", &file);
    file
}

fn downloads(user: User) {
    let bench = Bench::new("download", user);
    let file = serve(&bench);
    bench.write_scenario(&download("client"));
    let run = bench.start(&["run", "scenario.toml", "--real-time", "--out", "out"]);
    // What it makes of namespaces is seen while it runs.
    let mut namespaces = Namespaces::default();
    let mut most_processes = 0;
    while !bench.path("fetched").exists() && most_processes < 1000 {
        namespaces.extend(bench.namespaces());
        most_processes = most_processes.max(bench.processes().len());
        std::thread::sleep(Duration::from_millis(5));
        if bench.processes().is_empty() && !namespaces.is_empty() {
            break;
        }
    }
    let output = run.wait_with_output().expect("its end");
    Called::new(&bench, output).ended_with(0);
    assert_eq!(fs::read(bench.path("fetched")).expect("the file"), file);
    // The emulator, its process 1, server and client; networks of the emulator and of two hosts.
    assert!(most_processes >= 3, "{most_processes} processes");
    assert!(namespaces.count("net:") >= 2 && namespaces.count("pid:") == 1, "{namespaces:?}");
    bench.assert_nothing_left(&namespaces);
    let record = bench.run_json();
    // 1 MB in segments of at most 1460 bytes, with a request and acknowledgements.
    let packets = record["lateness"]["packets"]["count"].as_u64().expect("packets");
    assert!(packets > (FILE_BYTES / 1460) as u64, "{}", record["lateness"]);
    assert_eq!(record["lateness"]["own_drops"], 0);
    assert_eq!(record["programs"][1]["ended"], "exit status 0");
}

#[test]
fn nobody_downloads_a_file_and_leaves_nothing() {
    downloads(User::Nobody);
}

#[test]
fn whoever_runs_the_tests_downloads_a_file_and_leaves_nothing() {
    downloads(User::Caller);
}

#[test]
fn the_template_of_real_programs_runs_as_it_is() {
    let bench = Bench::new("template", User::Caller);
    bench.call(&["init", "real-programs"]).ended_with(0);
    bench.call(&["run", "real-programs.toml", "--real-time", "--out", "out"]).ended_with(0);
    assert!(bench.said("client").starts_with("4000000 bytes in "), "{}", bench.said("client"));
}
