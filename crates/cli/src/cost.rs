//! `fullpipe check --cost`: the estimated cost of runs, without running them.

use crate::exit::Failure;
use crate::measurement::{memory_bytes, thread_cpu_seconds};
use crate::output::{self, print_line};
use crate::records::{failure_of, find_scenario, find_study, is_study};
use fullpipe::find::FoundScenario;
use fullpipe::lab::cost::{Cost, PROCESS_BYTES};
use fullpipe::scenario::{self, Override};
use fullpipe::study::cost::{self, ExperimentCost, format_bytes, format_memory_part};
use fullpipe::study::{self, VirtualTimeRunner};
use fullpipe::{BUILD, embedded, lab};
use serde_json::{Value, json};
use std::path::Path;

/// The scenario that calibrates the CPU speed, and its duration. A run takes about 10 ms.
const CALIBRATION: (&str, &str) = ("bench/tcp-1", "4s");
/// Number of calibration runs. The fastest one counts, because other programs can only slow a run down.
const CALIBRATIONS: usize = 3;

/// Measures the events of the benchmark `tcp-1` per CPU second.
fn events_per_cpu_second() -> Result<f64, Failure> {
    let (name, duration) = CALIBRATION;
    let failed = |reason: String| Failure::machine(format!("{name} does not run: {reason}"));
    let text = embedded::scenario_text(name).ok_or_else(|| failed("it is not embedded".into()))?;
    let set = Override { path: "duration".to_owned(), value: format!("\"{duration}\"") };
    let loaded = scenario::load(text, name, &[set]).map_err(|errors| failed(errors.to_string()))?;
    let mut best = 0.0_f64;
    for _ in 0..CALIBRATIONS {
        let prepared =
            lab::prepare(&loaded.scenario, &Default::default()).map_err(|error| failed(error.to_string()))?;
        let begun = thread_cpu_seconds();
        let outcome = prepared.run();
        let took = thread_cpu_seconds() - begun;
        best = best.max(outcome.totals().events as f64 / took.max(1e-9));
    }
    Ok(best)
}

/// A row of the table.
struct Row {
    name: String,
    experiment: Option<String>,
    runs: usize,
    in_real_time: usize,
    events: f64,
    cpu_seconds: f64,
    largest: Cost,
    bounds: Vec<&'static str>,
}

impl Row {
    fn of(name: &str, cost: ExperimentCost, has_several: bool, rate: f64) -> Row {
        Row {
            name: name.to_owned(),
            experiment: has_several.then_some(cost.experiment),
            runs: cost.runs,
            in_real_time: cost.in_real_time,
            events: cost.events,
            cpu_seconds: cost.work / rate,
            largest: cost.largest,
            bounds: cost.bounds,
        }
    }

    fn is_bound(&self) -> bool {
        !self.bounds.is_empty()
    }

    fn json(&self) -> Value {
        let parts = self.largest.memory.iter().map(|part| {
            json!({
                "what": part.what,
                "count": part.count.round(),
                "bytes_each": part.bytes_each.round(),
                "upper_bound": part.is_bound,
            })
        });
        let program = json!({
            "what": "program", "count": 1, "bytes_each": PROCESS_BYTES, "upper_bound": false,
        });
        json!({
            "name": self.name,
            "experiment": self.experiment,
            "runs": self.runs,
            "runs_in_real_time": self.in_real_time,
            "events": self.events.round(),
            "cpu_seconds": self.cpu_seconds,
            "peak_rss_bytes": self.largest.peak_bytes().round(),
            "memory": parts.chain([program]).collect::<Vec<_>>(),
            "upper_bound": self.is_bound(),
            "reasons": self.bounds,
        })
    }

    fn cells(&self) -> Vec<String> {
        let at_most = if self.is_bound() { "<= " } else { "" };
        vec![
            self.experiment
                .as_ref()
                .map_or_else(|| self.name.clone(), |experiment| format!("{}: {experiment}", self.name)),
            self.runs.to_string(),
            format!("{at_most}{}", count_in_words(self.events)),
            format!("{at_most}{}", time_in_words(self.cpu_seconds)),
            format!("{at_most}{}", format_bytes(self.largest.peak_bytes())),
            self.largest.largest_part().map(format_memory_part).unwrap_or_default(),
        ]
    }
}

const HEADINGS: [(&str, bool); 6] = [
    ("name", false),
    ("runs", true),
    ("events", true),
    ("CPU time", true),
    ("peak memory of a run", true),
    ("largest part of it", false),
];

/// Runs `fullpipe check --cost`.
pub(crate) fn check(names: &[String], json_wanted: bool, quick: bool) -> Result<(), Failure> {
    let rate = events_per_cpu_second()?;
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for name in names {
        match costs(name, quick) {
            Ok(costs) => {
                let has_several = costs.len() > 1;
                let mut of_name: Vec<Row> =
                    costs.into_iter().map(|cost| Row::of(name, cost, has_several, rate)).collect();
                if has_several {
                    of_name.push(sum(name, &of_name));
                }
                rows.extend(of_name);
            }
            Err(failure) => wrong.push(failure.message),
        }
    }
    if json_wanted {
        output::json(&rows.iter().map(Row::json).collect());
    } else if !rows.is_empty() {
        let mut cells = vec![HEADINGS.map(|(heading, _)| heading.to_owned()).to_vec()];
        cells.extend(rows.iter().map(Row::cells));
        let is_numeric = HEADINGS.map(|(_, is_numeric)| is_numeric);
        print_line!("{}", output::aligned(&cells, &is_numeric).trim_end_matches('\n'));
        let mut reasons: Vec<&str> = rows.iter().flat_map(|row| row.bounds.iter().copied()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons.iter().for_each(|reason| print_line!("<= upper bound: {reason}"));
        if rows.iter().any(|row| row.in_real_time > 0) {
            print_line!(
                "Runs in real time take the time of the clock; their events and CPU time are not in the table."
            );
        }
    }
    eprintln!(
        "CPU time: at {} million events of {} per CPU second, measured now",
        (rate / 1e5).round() / 10.0,
        CALIBRATION.0
    );
    if let Some(memory) = memory_bytes() {
        eprintln!("Memory of this machine: {}", format_bytes(memory as f64));
        for row in &rows {
            if let Some(reason) = cost::memory_shortage(&row.largest, memory) {
                eprintln!("warning: {}: {reason}", row.name);
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::usage(wrong.join("\n"))) }
}

/// Returns the sum over the experiments of a study.
fn sum(name: &str, rows: &[Row]) -> Row {
    let most = rows.iter().max_by(|a, b| a.largest.peak_bytes().total_cmp(&b.largest.peak_bytes()));
    let mut bounds: Vec<&'static str> = rows.iter().flat_map(|row| row.bounds.iter().copied()).collect();
    bounds.sort_unstable();
    bounds.dedup();
    Row {
        name: name.to_owned(),
        experiment: None,
        runs: rows.iter().map(|row| row.runs).sum(),
        in_real_time: rows.iter().map(|row| row.in_real_time).sum(),
        events: rows.iter().map(|row| row.events).sum(),
        cpu_seconds: rows.iter().map(|row| row.cpu_seconds).sum(),
        largest: most.map(|row| row.largest.clone()).unwrap_or_default(),
        bounds,
    }
}

/// Returns the costs of a scenario, or of each experiment of a study.
fn costs(name: &str, quick: bool) -> Result<Vec<ExperimentCost>, Failure> {
    let is_of_study = || -> Result<bool, Failure> {
        if Path::new(name).is_dir() || embedded::study_names().any(|study| study == name) {
            return Ok(true);
        }
        Ok(is_study(&find_scenario(name)?.text))
    };
    if is_of_study()? {
        let mut study = find_study(name)?;
        let laboratory = VirtualTimeRunner::new(BUILD);
        let settings = study::UserSettings { quick, ..study::UserSettings::default() };
        study.apply(&settings, &laboratory).map_err(failure_of)?;
        let plan = study::plan::make_plan(&study, &laboratory).map_err(failure_of)?;
        return Ok(cost::estimate_experiments(&plan));
    }
    let FoundScenario { text, name, .. } = find_scenario(name)?;
    let loaded = scenario::load(&text, &name, &[]).map_err(Failure::usage)?;
    Ok(vec![ExperimentCost::from_run(Cost::estimate(&loaded.scenario))])
}

/// Returns a number with three significant digits: `12.3 million`.
fn count_in_words(count: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, " billion"), (1e6, " million"), (1e3, " thousand")];
    let (divisor, unit) = UNITS.into_iter().find(|(from, _)| count >= *from).unwrap_or((1.0, ""));
    let value = count / divisor;
    let decimals = if unit.is_empty() || value >= 99.95 { 0 } else { 1 };
    format!("{value:.decimals$}{unit}")
}

/// Returns a time with two significant digits: `25 ms`, `3.1 s`, `12 min`, `5.0 h`.
fn time_in_words(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s => (s / 3600.0, "h"),
    };
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_readable_units() {
        let counts = [(12.0, "12"), (1234.0, "1.2 thousand"), (6_400_000.0, "6.4 million"), (2.5e10, "25.0 billion")];
        counts.iter().for_each(|(count, text)| assert_eq!(count_in_words(*count), *text));
        let times = [(0.025, "25 ms"), (0.0031, "3.1 ms"), (3.1, "3.1 s"), (720.0, "12 min"), (18_000.0, "5.0 h")];
        times.iter().for_each(|(time, text)| assert_eq!(time_in_words(*time), *text));
    }
}
