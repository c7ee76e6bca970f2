//! In the steady state a packet costs no allocation: twice the simulated time, the same number of allocations.

use fullpipe_lab::{Options, prepare};
use fullpipe_scenario::Override;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations (and reallocations) and data packets of a run, building the world excluded.
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
fn twice_the_packets_cost_no_more_allocations() {
    for (file, seconds) in [("tcp-1", 20), ("tcp-10", 5), ("udp-5hop", 2)] {
        let (once, packets) = allocations(file, seconds);
        let (twice, more_packets) = allocations(file, 2 * seconds);
        let extra = twice.saturating_sub(once) as u64;
        println!("{file}: {once} allocations for {packets} packets, {twice} for {more_packets}");
        // A ring may still grow once or twice in the second half; one allocation for 10 000 packets is not per packet.
        assert!(extra <= (more_packets - packets) / 10_000, "{file}: {extra} allocations more");
    }
}
