//! Tests of allocations. In the steady state a packet causes no allocation: twice the simulated time needs the same number of
//! allocations. The estimated memory of a run is within a factor of two of its allocated memory.

use fullpipe_lab::cost::{Cost, PROCESS_BYTES};
use fullpipe_lab::{Options, prepare, prepare_shared};
use fullpipe_scenario::Override;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::{Arc, Mutex, PoisonError};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocator counts the allocations of all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// Number of allocations and reallocations, and of data packets, of a run without building the world.
fn allocations(file: &str, seconds: u32) -> (usize, u64) {
    let path = format!("{}/../../scenarios/bench/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a scenario of the workspace");
    let duration = Override { path: "duration".to_string(), value: format!("\"{seconds}s\"") };
    let scenario = fullpipe_scenario::load(&text, file, &[duration]).expect("it is right").scenario;
    let prepared = prepare(&scenario, &Options::default()).expect("it can be built");
    let region = Region::new(GLOBAL);
    let outcome = prepared.run();
    let change = region.change();
    (change.allocations + change.reallocations, outcome.totals().data_packets)
}

#[test]
fn run_of_twice_the_duration_has_no_more_allocations() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (file, seconds) in [("tcp-1", 20), ("tcp-10", 5), ("udp-5hop", 2)] {
        let (once, packets) = allocations(file, seconds);
        let (twice, more_packets) = allocations(file, 2 * seconds);
        let extra = twice.saturating_sub(once) as u64;
        println!("{file}: {once} allocations for {packets} packets, {twice} for {more_packets}");
        // A ring may still grow once or twice in the second half. One allocation per 10 000 packets is not one per packet.
        assert!(extra <= (more_packets - packets) / 10_000, "{file}: {extra} allocations more");
    }
}

/// Bytes of a scenario, of its run and of its records; and the estimated cost.
fn bytes(file: &str, set: &[(&str, &str)]) -> (f64, Cost) {
    let path = format!("{}/../../scenarios/bench/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a scenario of the workspace");
    let set = set.iter().map(|(path, value)| Override { path: (*path).to_owned(), value: (*value).to_owned() });
    let set: Vec<Override> = set.collect();
    let region = Region::new(GLOBAL);
    let scenario = Arc::new(fullpipe_scenario::load(&text, file, &set).expect("it is right").scenario);
    let outcome = prepare_shared(scenario.clone(), &Options::default()).expect("it can be built").run();
    let tables = outcome.tables();
    let change = region.change();
    drop((outcome, tables));
    ((change.bytes_allocated - change.bytes_deallocated) as f64, Cost::estimate(&scenario))
}

#[test]
fn estimated_memory_is_within_a_factor_of_two_of_the_allocated_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The dumbbell of ten thousand flows, at a tenth of its size.
    let tenth = [
        ("topology.pairs", "1000"),
        ("topology.bottleneck.rate", "\"1Gbit/s\""),
        ("topology.bottleneck.queue", "\"5MB\""),
        ("duration", "\"1s\""),
    ];
    let mut wrong = Vec::new();
    for (file, set) in [("tcp-idle", &[("flow.idle.count", "20000")][..]), ("tcp-10k", &tenth), ("quic-10k", &tenth)] {
        let (allocated, cost) = bytes(file, set);
        let estimated = cost.peak_bytes() - PROCESS_BYTES;
        println!("{file}: {estimated:.0} bytes estimated, {allocated:.0} allocated; {:?}", cost.memory);
        if !(0.5..=2.0).contains(&(estimated / allocated)) {
            wrong.push(format!("{file}: {estimated:.0} bytes estimated, {allocated:.0} allocated"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
