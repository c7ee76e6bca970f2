//! Tests in which the emulator is killed or stopped during a run.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::ordinary::{download, serve};
use crate::world::World;
use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

/// A pseudorandom sequence: x(n+1) = 6364136223846793005 x(n) + 1442695040888963407 mod 2^64 (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn signal(run: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &run.id().to_string()]).status().expect("kill (util-linux or procps)");
    assert!(sent.success(), "{name}");
}

/// Kills the run at twenty times between its start and its end. The run takes about 0.6 s, of which the transfer of 1
/// MB at 20 Mbit/s takes 0.4 s.
fn killed_at_random_moments(user: User, seed: u64) {
    let bench = Bench::new("killed", user);
    let file = serve(&bench);
    bench.write_scenario(&download("client"));
    let call = ["run", "scenario.toml", "--real-time", "--out", "out"];
    let mut random = Random(seed);
    let mut at_work = 0;
    for round in 0..20 {
        // Some times are in the set-up, which takes 50 ms; most are while programs run.
        let bound = if round % 4 == 0 { 50_000 } else { 700_000 };
        let moment = Duration::from_micros(random.below(bound));
        let mut run = bench.start(&call);
        std::thread::sleep(moment);
        let namespaces = bench.namespaces();
        at_work += u32::from(bench.processes().len() > 2);
        run.kill().expect("SIGKILL");
        run.wait().expect("the process ends");
        bench.assert_nothing_left(&namespaces);
    }
    assert!(at_work >= 5, "programs ran at {at_work} of 20 moments");
    let _ = fs::remove_file(bench.path("fetched"));
    bench.call(&call).ended_with(0);
    assert_eq!(fs::read(bench.path("fetched")).expect("the file"), file);
    // Killed runs leave neither records nor partial records.
    bench.run_json();
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn run_of_nobody_killed_at_random_times_leaves_nothing() {
    killed_at_random_moments(User::Nobody, 20);
}

#[test]
fn run_of_the_caller_killed_at_random_times_leaves_nothing() {
    killed_at_random_moments(User::Caller, 21);
}

/// Starts a run whose program prints "ready" and waits. Sends a signal when it waits, and returns the end of the command.
fn interrupted(bench: &Bench, program: &str, name: &str) -> Called {
    let hosts = World::new("60s").hosts(&["left", "right"]).link("left", "right", "rate = '1Mbit/s', delay = '1ms'");
    bench.write_scenario(&hosts.shell("probe", "left", &format!("touch waits; {program}"), ""));
    let run = bench.start(&["run", "scenario.toml", "--real-time", "--out", "out"]);
    while !bench.path("waits").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let namespaces = bench.namespaces();
    signal(&run, name);
    let called = Called::new(bench, run.wait_with_output().expect("the process ends"));
    bench.assert_nothing_left(&namespaces);
    called
}

#[test]
fn interrupt_in_real_time_ends_programs_with_exit_status_130() {
    for (name, program) in
        [("-INT", "sleep 900"), ("-TERM", "sleep 900"), ("-TERM", "trap '' TERM; sleep 900; sleep 900")]
    {
        let bench = Bench::new("interrupted", User::Nobody);
        interrupted(&bench, program, name).ended_with(130).said("interrupted: 0 of 1 runs are finished");
        assert_eq!(fs::read_dir(bench.path("out/runs")).expect("the folder is readable").count(), 0);
    }
}

/// A run in which the emulator is stopped for 50 ms while packets are sent.
fn stopped(bench: &Bench, more: &str) -> Called {
    let whole = serve(bench).len() as u64;
    bench.write("scenario.toml", format!("{}{more}", download("client")));
    for _ in 0..20 {
        let _ = fs::remove_file(bench.path("fetched"));
        let run = bench.start(&["run", "scenario.toml", "--real-time", "--out", "out"]);
        // The file grows during the download.
        let fetched = || fs::metadata(bench.path("fetched")).map_or(0, |file| file.len());
        while fetched() == 0 && !bench.processes().is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        signal(&run, "-STOP");
        let in_time = fetched() < whole / 2;
        std::thread::sleep(Duration::from_millis(50));
        signal(&run, "-CONT");
        let called = Called::new(bench, run.wait_with_output().expect("the process ends"));
        // On a busy machine the signal may arrive after the end of the run.
        if in_time {
            return called;
        }
    }
    panic!("in twenty runs no signal came before half the file");
}

#[test]
fn stall_of_50_ms_is_reported_and_makes_the_run_late() {
    let bench = Bench::new("stopped", User::Nobody);
    stopped(&bench, "").ended_with(0).said("fell behind real time: ");
    let lateness = bench.run_json()["lateness"].clone();
    assert!(lateness["stall_count"].as_u64() >= Some(1), "{lateness}");
    // The emulator may have slept or spun for a part of the 50 ms: at most 5 ms, the longest sleep.
    let longest = lateness["longest_stall_s"].as_f64().expect("a time");
    assert!(longest >= 0.045, "{lateness}");
    assert_eq!(lateness["on_time"], false);
    let reasons = lateness["reasons"].to_string();
    assert!(reasons.contains("emulator stalled"), "{reasons}");
    bench.assert_nothing_left(&Namespaces::default());
}

#[test]
fn stall_with_a_hard_limit_has_exit_status_3() {
    let bench = Bench::new("hard-limit", User::Nobody);
    stopped(&bench, "[real_time]\npolicy = \"hard-limit\"").ended_with(3).said("late: ").said("emulator stalled");
    bench.assert_nothing_left(&Namespaces::default());
}
