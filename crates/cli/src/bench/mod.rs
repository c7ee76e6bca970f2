//! `fullpipe bench`: the fixed benchmark scenarios, through the same code as `fullpipe run`, counters and auditor on.
//!
//! Each scenario runs in a process of its own, so that its peak memory is its own. A measurement repeats the run until
//! a CPU second has passed, building the world excluded; the figure is the median of five measurements.

use crate::exit::Failure;
use crate::output::{self, print_line};
use crate::{masque, real_time};
use fullpipe::units::Instant;
use fullpipe::{embedded, lab, scenario};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The benchmarks of this version, in the order of the contract.
pub(crate) const NAMES: [&str; 18] = [
    "tcp-1",
    "tcp-10",
    "tcp-100",
    "tcp-10k",
    "tcp-idle",
    "udp-5hop",
    "quic-1",
    "quic-real-1-10m",
    "quic-real-1-100m",
    "masque-1-datagram",
    "masque-1-stream",
    MASQUE,
    "lte-1",
    "lte-50",
    "lte-500",
    "quic-10k",
    RELAY,
    LTE,
];

/// The one through the emulator, in real time.
pub(crate) const RELAY: &str = "relay";

/// The one of a cell in real time.
pub(crate) const LTE: &str = "lte-real-time";

/// The one of real programs on loopback.
pub(crate) const MASQUE: &str = "masque-loopback";

/// What that one measures; all others have a scenario with a title.
pub(crate) const PROXY_ON_LOOPBACK: &str = "100 MB through the real proxy, real sockets on loopback";

/// Whether a benchmark runs by the wall clock and has figures of its own.
fn is_real(name: &str) -> bool {
    [RELAY, MASQUE, LTE].contains(&name)
}

/// Whether a machine or a build may be unable to run a benchmark.
fn can_be_left_out(name: &str) -> bool {
    let text = embedded::scenario(&format!("bench/{name}"));
    let loaded = text.and_then(|text| scenario::load(text, name, &[]).ok());
    is_real(name) || loaded.is_some_and(|loaded| lab::unsupported(&loaded.scenario).is_some())
}

const MEASUREMENTS: usize = 5;
const CPU_SECONDS_PER_MEASUREMENT: f64 = 1.0;

/// The middle of an odd number of values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What every benchmark reports, and its further figures: `counts` are data packets and packet-hops.
pub(crate) fn row(
    name: &str,
    seconds: f64,
    counts: [Option<u64>; 2],
    cpu_seconds: f64,
    peak_rss_bytes: Option<u64>,
    mut further: Value,
) -> Value {
    let rates = counts.map(|count| count.map(|count| count as f64 / cpu_seconds));
    let mut row = json!({
        "name": name,
        "simulated_seconds": seconds,
        "packets": counts[0],
        "packet_hops": counts[1],
        "cpu_seconds": cpu_seconds,
        "packets_per_cpu_second": rates[0],
        "packet_hops_per_cpu_second": rates[1],
        "peak_rss_bytes": peak_rss_bytes,
    });
    if let (Some(row), Some(further)) = (row.as_object_mut(), further.as_object_mut()) {
        row.append(further);
    }
    row
}

/// What a clock of this machine shows, in seconds.
pub(crate) fn seconds_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub(crate) fn cpu_seconds() -> f64 {
    seconds_of(ClockId::ProcessCPUTime)
}

/// Most memory that this process has held, in bytes; `None` where the system does not tell.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    peak_rss_bytes_of("self")
}

pub(crate) fn peak_rss_bytes_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Runs the named benchmarks (all if none is named) and prints a table or JSON.
pub(crate) fn bench(names: &[String], json_wanted: bool, quiet: bool) -> Result<(), Failure> {
    for name in names {
        if !NAMES.contains(&name.as_str()) {
            let hint = scenario::schema::nearest(name, NAMES.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            return Err(Failure::usage(format!("unknown benchmark {name:?}{hint} (there are: {})", NAMES.join(", "))));
        }
    }
    let chosen: Vec<&str> =
        NAMES.iter().copied().filter(|name| names.is_empty() || names.iter().any(|n| n == name)).collect();
    let mut rows = Vec::new();
    for (index, name) in chosen.iter().enumerate() {
        let row = match measure_in_child(name) {
            // Machines without namespaces and builds without the QUIC stack still run the others.
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
    let program = std::env::current_exe().map_err(|error| Failure::machine(format!("cannot find myself: {error}")))?;
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

/// Measures one benchmark here and prints one JSON object.
pub(crate) fn measure(name: &str) -> Result<(), Failure> {
    if name == MASQUE {
        return masque::measure().map(|row| print_line!("{row}"));
    }
    if [RELAY, LTE].contains(&name) {
        return real_time::measure(name).map(|row| print_line!("{row}"));
    }
    let file = format!("bench/{name}");
    let text = embedded::scenario(&file).ok_or_else(|| Failure::usage(format!("no embedded scenario {file}")))?;
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
            // A tunnel lives on after the transfer that it was there for.
            let over = outcome.flow_rows().filter_map(|row| row.completion).max();
            last = Some((outcome.totals(), over.map_or(outcome.ended(), |over| Instant::ZERO.saturating_add(over))));
        }
        medians.push(spent / f64::from(runs));
    }
    let Some((totals, ended)) = last else { return Ok(()) };
    let counts = [Some(totals.data_packets), Some(totals.packet_hops)];
    let seconds = ended.as_nanos() as f64 / 1e9;
    print_line!("{}", row(name, seconds, counts, median(medians), peak_rss_bytes(), json!({})));
    Ok(())
}
