//! Tests runs with a real server and a real client.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::world::World;
use std::fs;
use std::time::Duration;

/// A download from Python's web server by curl on the host `client`, over 20 Mbit/s and two links of 5 ms.
pub(crate) fn download(client: &str) -> World {
    World::new("20s").hosts(&[client, "server"]).link(client, "server", PATH).web_server().download(
        client,
        "server",
        &[],
    )
}

/// The keys of the links of the download.
pub(crate) const PATH: &str = "rate = '20Mbit/s', delay = '5ms', queue = '100packets'";

/// Size of the file in bytes.
pub(crate) const FILE_BYTES: usize = 1_000_000;

/// Writes the file into the server's folder.
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
    // The namespaces are inspected while the run is active.
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
    let output = run.wait_with_output().expect("the process ends");
    Called::new(&bench, output).ended_with(0);
    assert_eq!(fs::read(bench.path("fetched")).expect("the file"), file);
    // The emulator, its process 1, server and client; network namespaces of the emulator and of two hosts.
    assert!(most_processes >= 3, "{most_processes} processes");
    assert!(namespaces.count("net:") >= 2 && namespaces.count("pid:") == 1, "{namespaces:?}");
    bench.assert_nothing_left(&namespaces);
    let record = bench.run_json();
    // 1 MB in segments of at most 1460 bytes, plus a request and acknowledgments.
    let packets = record["lateness"]["packets"]["count"].as_u64().expect("packets");
    assert!(packets > (FILE_BYTES / 1460) as u64, "{}", record["lateness"]);
    assert_eq!(record["lateness"]["own_drops"], 0);
    assert_eq!(record["programs"][1]["ended"], "exit status 0");
}

#[test]
fn run_of_nobody_downloads_a_file_and_leaves_nothing() {
    downloads(User::Nobody);
}

#[test]
fn run_of_the_caller_downloads_a_file_and_leaves_nothing() {
    downloads(User::Caller);
}

#[test]
fn real_programs_template_runs_unchanged() {
    let bench = Bench::new("template", User::Caller);
    bench.call(&["init", "real-programs"]).ended_with(0);
    bench.call(&["run", "real-programs.toml", "--real-time", "--out", "out"]).ended_with(0);
    assert!(bench.said("client").starts_with("4000000 bytes in "), "{}", bench.said("client"));
}
