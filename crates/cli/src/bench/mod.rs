//! `fullpipe bench`: the fixed benchmark scenarios, with the same code as `fullpipe run`, including counters and
//! auditor.
//!
//! Each scenario runs in its own process, so that its peak memory is measured separately. A measurement repeats the run
//! until one CPU second has passed, without the time to build the network. The result is the median of five
//! measurements.

use crate::exit::Failure;
use crate::measurement::{LTE, MASQUE, NAMES, RELAY, cpu_seconds, median, peak_rss_bytes, row};
use crate::output::{self, print_line};
use crate::{masque, real_time};
use fullpipe::units::Instant;
use fullpipe::{embedded, lab, scenario};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Returns whether a benchmark runs in real time and reports its own metrics.
fn is_real(name: &str) -> bool {
    [RELAY, MASQUE, LTE].contains(&name)
}

/// Returns whether some machines or builds cannot run the benchmark.
fn can_be_left_out(name: &str) -> bool {
    let text = embedded::scenario_text(&format!("bench/{name}"));
    let loaded = text.and_then(|text| scenario::load(text, name, &[]).ok());
    is_real(name) || loaded.is_some_and(|loaded| lab::unsupported_reason(&loaded.scenario).is_some())
}

const MEASUREMENTS: usize = 5;
const CPU_SECONDS_PER_MEASUREMENT: f64 = 1.0;

/// Runs the benchmarks with these names (all if empty) and prints a table or JSON.
pub(crate) fn bench(names: &[String], json_wanted: bool, quiet: bool) -> Result<(), Failure> {
    for name in names {
        if !NAMES.contains(&name.as_str()) {
            let hint = scenario::schema::nearest_name(name, NAMES.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            return Err(Failure::usage(format!("unknown benchmark {name:?}{hint} (there are: {})", NAMES.join(", "))));
        }
    }
    let chosen: Vec<&str> =
        NAMES.iter().copied().filter(|name| names.is_empty() || names.iter().any(|n| n == name)).collect();
    let mut rows = Vec::new();
    for (index, name) in chosen.iter().enumerate() {
        let row = match measure_in_child(name) {
            // Machines without namespaces and builds without the QUIC stack can run the other benchmarks.
            Err(failure) if names.is_empty() && can_be_left_out(name) => {
                eprintln!("{failure}");
                continue;
            }
            row => row?,
        };
        if !quiet {
            eprintln!("[{}/{}] {}", index + 1, chosen.len(), describe(&row));
        }
        rows.push(row);
    }
    if json_wanted {
        output::json(&Value::Array(rows));
    } else {
        let (real, simulated): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row["name"].as_str().is_some_and(is_real));
        let heading = "name             simulated_s     packets  packet_hops    cpu_s  Mpackets/cpu_s    Mhops/cpu_s  peak_rss_MB";
        (!simulated.is_empty()).then(|| print_line!("{heading}"));
        for row in simulated {
            let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
            print_line!(
                "{:<16} {:>11.3} {:>11} {:>12} {:>8.4} {:>15.3} {:>14.2} {:>12.1}",
                row["name"].as_str().unwrap_or(""),
                number("simulated_seconds"),
                number("packets"),
                number("packet_hops"),
                number("cpu_seconds"),
                number("packets_per_cpu_second") / 1e6,
                number("packet_hops_per_cpu_second") / 1e6,
                number("peak_rss_bytes") / 1e6,
            );
        }
        for row in real {
            print_line!("{}", describe(row));
        }
    }
    Ok(())
}

fn describe(row: &Value) -> String {
    match row["name"].as_str() {
        Some(name @ (RELAY | LTE)) => return real_time::describe(name, row),
        Some(MASQUE) => return masque::describe(row),
        _ => {}
    }
    format!(
        "{}: {:.2} million packets and {:.1} million packet-hops per CPU second",
        row["name"].as_str().unwrap_or(""),
        row["packets_per_cpu_second"].as_f64().unwrap_or(f64::NAN) / 1e6,
        row["packet_hops_per_cpu_second"].as_f64().unwrap_or(f64::NAN) / 1e6
    )
}

fn measure_in_child(name: &str) -> Result<Value, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::machine(format!("cannot find the executable of fullpipe: {error}")))?;
    let output = Command::new(program)
        .args(["bench", "--in-this-process", name])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::machine(format!("cannot start a process for {name}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::machine(format!("the process for {name} ended with {}", output.status)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::machine(format!("the process for {name} printed no result: {error}")))
}

/// Measures one benchmark in this process and prints one JSON object.
pub(crate) fn measure(name: &str) -> Result<(), Failure> {
    if name == MASQUE {
        return masque::measure().map(|row| print_line!("{row}"));
    }
    if [RELAY, LTE].contains(&name) {
        return real_time::measure(name).map(|row| print_line!("{row}"));
    }
    let file = format!("bench/{name}");
    let text = embedded::scenario_text(&file).ok_or_else(|| Failure::usage(format!("no embedded scenario {file}")))?;
    let loaded = scenario::load(text, &format!("scenarios/{file}.toml"), &[]).map_err(Failure::usage)?;
    let shared = Arc::new(loaded.scenario);
    let mut medians = Vec::new();
    let mut last = None;
    for _ in 0..MEASUREMENTS {
        let (mut spent, mut runs) = (0.0, 0u32);
        while spent < CPU_SECONDS_PER_MEASUREMENT {
            let prepared = lab::prepare_shared(Arc::clone(&shared), &lab::Options::default()).map_err(Failure::run)?;
            let begin = cpu_seconds();
            let outcome = prepared.run();
            spent += cpu_seconds() - begin;
            runs += 1;
            if !outcome.verdict().passed() {
                return Err(Failure::untrusted(outcome.verdict()));
            }
            // A tunnel remains open after the transfer that it carries.
            let over = outcome.flow_rows().filter_map(|row| row.completion).max();
            last = Some((outcome.totals(), over.map_or(outcome.end_time(), |over| Instant::ZERO.saturating_add(over))));
        }
        medians.push(spent / f64::from(runs));
    }
    let Some((totals, ended)) = last else { return Ok(()) };
    let counts = [Some(totals.data_packets), Some(totals.packet_hops)];
    let seconds = ended.as_nanos() as f64 / 1e9;
    print_line!("{}", row(name, seconds, counts, median(medians), peak_rss_bytes(), json!({})));
    Ok(())
}
