//! The benchmark `lte-real-time`: a saturated cell with 100 resource blocks in real time, with one and with fifty UEs.
//!
//! The server and the UEs are network namespaces. Kernel sockets send 90 Mbit/s of datagrams in total for ten seconds,
//! more than the cell can carry. The benchmark reports:
//!
//! * the delay from the start of each subframe until its work was done;
//! * the lateness of packets to the UEs;
//! * the losses of the emulator;
//! * the CPU time of its thread, including spinning before deadlines;
//! * the ratio of time in which the thread was busy.

use super::relay::micros;
use crate::exit::Failure;
use crate::measurement;
use fullpipe::embedded;
use fullpipe::lab;
use fullpipe::lab::real_time::{self, Lateness, LatenessSummary, RealTimeOptions};
use fullpipe::scenario::{self, Override, Scenario};
use fullpipe::units::{Duration, Instant};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The numbers of UEs.
const UES: [u32; 2] = [1, 50];
/// The total offered load, in bits of payload per second.
const OFFERED_BPS: u32 = 90_000_000;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::machine(format!("lte-real-time: {error}"))
}

/// The result for one of [`UES`].
struct Saturated {
    row: Value,
    seconds: f64,
    packets: u64,
    hops: u64,
}

fn spread(name: &str, spread: LatenessSummary, row: &mut Map<String, Value>) {
    let quantiles =
        [("p50", spread.p50_nanos), ("p90", spread.p90_nanos), ("p99", spread.p99_nanos), ("max", spread.max_nanos)];
    for (quantile, nanos) in quantiles {
        row.insert(format!("{name}_{quantile}_us"), micros(Duration::from_nanos(nanos)).into());
    }
}

/// Returns the scenario with this number of UEs, which share the rate.
fn scenario(ues: u32) -> Result<Scenario, Failure> {
    let text = embedded::scenario_text("bench/lte-real-time").ok_or_else(|| failed("no embedded scenario"))?;
    let set = [format!("host.ue.count={ues}"), format!("flow.datagrams.rate={}bit/s", OFFERED_BPS / ues)];
    let set: Vec<Override> = set.iter().map(|text| Override::parse(text).map_err(failed)).collect::<Result<_, _>>()?;
    Ok(scenario::load(text, "scenarios/bench/lte-real-time.toml", &set).map_err(failed)?.scenario)
}

fn saturate(home: &real_time::EmulatorNamespace, ues: u32) -> Result<Saturated, Failure> {
    let (options, mut each) = (lab::Options::default(), |_: Instant, _: &Lateness| false);
    let asked = RealTimeOptions::new(&options, home, &mut each);
    let ran = real_time::run(Arc::new(scenario(ues)?), asked).map_err(failed)?;
    let verdict = ran.outcome.verdict();
    if !verdict.passed() {
        return Err(Failure::untrusted(verdict.to_string()));
    }
    if let Some(end) = ran.kernel.iter().find(|end| end.report.failure.is_some()) {
        return Err(failed(format!("flow {}: {}", end.flow, end.report.failure.as_deref().unwrap_or_default())));
    }
    let seconds = ran.ran.as_secs_f64();
    let delivered: u64 = ran.kernel.iter().filter(|end| !end.sender).map(|end| end.report.received_bytes).sum();
    let totals = ran.outcome.totals();
    let mut row = Map::new();
    row.insert("ues".into(), ues.into());
    row.insert("subframes".into(), ran.lateness.subframes().count.into());
    spread("subframe", ran.lateness.subframes(), &mut row);
    spread("packet", ran.lateness.packets(), &mut row);
    row.insert(
        "own_losses".into(),
        (ran.lateness.drops() + ran.refused.malformed + ran.refused.too_many_conversations).into(),
    );
    row.insert("on_time".into(), ran.lateness.result().is_on_time().into());
    row.insert("delivered_bps".into(), (delivered as f64 * 8.0 / seconds).into());
    row.insert("processor_share".into(), (ran.processor.as_secs_f64() / seconds).into());
    row.insert("busy_share".into(), (ran.lateness.busy_time().as_secs_f64() / seconds).into());
    Ok(Saturated { row: Value::Object(row), seconds, packets: totals.data_packets, hops: totals.packet_hops })
}

/// Runs the measurement and returns the benchmark's row. The process must have a single thread.
pub(super) fn measure() -> Result<Value, Failure> {
    real_time::enter_user_namespace().map_err(failed)?;
    let home = real_time::EmulatorNamespace::new().map_err(failed)?;
    let begin = measurement::cpu_seconds();
    let runs: Vec<Saturated> = UES.iter().map(|ues| saturate(&home, *ues)).collect::<Result<_, _>>()?;
    let cpu_seconds = measurement::cpu_seconds() - begin;
    let (packets, hops): (u64, u64) = runs.iter().fold((0, 0), |(p, h), run| (p + run.packets, h + run.hops));
    let seconds = runs.iter().map(|run| run.seconds).sum::<f64>();
    let counts = [Some(packets), Some(hops)];
    let cells: Value = runs.into_iter().map(|run| run.row).collect();
    Ok(measurement::row(
        measurement::LTE,
        seconds,
        counts,
        cpu_seconds,
        measurement::peak_rss_bytes(),
        json!({ "cells": cells }),
    ))
}

/// Returns the row in words, with a line for each number of UEs.
pub(super) fn describe(row: &Value) -> String {
    let cell = |cell: &Value| {
        let number = |key: &str| cell[key].as_f64().unwrap_or(f64::NAN);
        format!(
            "lte-real-time, {} UEs: subframes done {:.0} us (p50), {:.0} us (p90), {:.0} us (p99), {:.0} us at most after they \
             began; packets late by {:.0} us (p50), {:.0} us (p99); own losses {}; {:.1} Mbit/s delivered; {:.2} CPU seconds per \
             second, busy for {:.0} %; {}",
            number("ues"),
            number("subframe_p50_us"),
            number("subframe_p90_us"),
            number("subframe_p99_us"),
            number("subframe_max_us"),
            number("packet_p50_us"),
            number("packet_p99_us"),
            number("own_losses"),
            number("delivered_bps") / 1e6,
            number("processor_share"),
            number("busy_share") * 100.0,
            if cell["on_time"] == true { "on time" } else { "fell behind" },
        )
    };
    let cells = row["cells"].as_array().map(Vec::as_slice).unwrap_or_default();
    cells.iter().map(cell).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe::scenario::description::EndpointBackend;
    use fullpipe::workload::ConstantRateSpec;

    /// The largest transport block with 100 resource blocks has 75 376 bits (3GPP TS 36.213), and there is one per
    /// millisecond. The offered load exceeds this rate, and is equal for all UEs.
    #[test]
    fn cell_is_saturated_with_any_number_of_ues() {
        for ues in UES {
            let scenario = scenario(ues).unwrap_or_else(|_| panic!("the scenario with {ues} UEs is valid"));
            let access = &scenario.access[0];
            assert_eq!((scenario.flows.len(), access.stations().len()), (ues as usize, ues as usize));
            // 97 896 bits in the transport block with the highest code rate for its size, of all that 100 resource
            // blocks can carry.
            assert!(access.bounds(fullpipe::network::MediumDirection::Downlink).rate_bps >= 75_376_000);
            for flow in &scenario.flows {
                assert_eq!([flow.from_by, flow.to_by], [EndpointBackend::Kernel; 2]);
                let datagrams: &ConstantRateSpec = flow.workload.downcast_ref().expect("the workload is constant-rate");
                let ConstantRateSpec { payload_bytes: 1400, interval, count: None } = *datagrams else { panic!() };
                // 11 200 bits at 90 Mbit/s are 124 444.4 ns: the interval between datagrams of all UEs, rounded to
                // nanoseconds.
                let expected_nanos = f64::from(ues) * 11_200.0 / 0.09;
                assert!((interval.as_nanos() as f64 - expected_nanos).abs() <= 0.5, "{interval}");
            }
        }
    }
}
