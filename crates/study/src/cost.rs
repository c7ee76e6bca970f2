//! The estimated cost of a study's runs, and whether the memory of the machine is sufficient for them.

use crate::error::StudyError;
use crate::plan::{Plan, PlannedRun};
use fullpipe_lab::cost::{Cost, MemoryPart};

/// The estimated cost of the runs of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExperimentCost {
    /// The name of the experiment.
    pub experiment: String,
    /// The number of runs of the experiment, without those that it shares with an earlier experiment.
    pub runs: usize,
    /// The number of these runs that are in real time. Their CPU time depends on the clock, so `events` and `work`
    /// exclude them.
    pub in_real_time: usize,
    /// The number of events of all runs in virtual time.
    pub events: f64,
    /// The CPU time of all runs in virtual time. The unit is the CPU time of one event of the benchmark `tcp-1`.
    pub work: f64,
    /// The cost of the run that needs the most memory.
    pub largest: Cost,
    /// The reasons why the values are upper bounds; empty if they are estimates.
    pub bounds: Vec<&'static str>,
}

impl ExperimentCost {
    /// Creates the cost of an experiment with a single run in virtual time and no name.
    pub fn from_run(cost: Cost) -> ExperimentCost {
        let (events, work, bounds) = (cost.events, cost.work, cost.bounds.clone());
        ExperimentCost { runs: 1, events, work, bounds, largest: cost, ..ExperimentCost::default() }
    }

    fn add(&mut self, run: &PlannedRun) {
        let cost = &run.scenario.cost;
        self.runs += 1;
        if run.real {
            self.in_real_time += 1;
        } else {
            self.events += cost.events;
            self.work += cost.work;
        }
        if cost.peak_bytes() > self.largest.peak_bytes() || self.runs == 1 {
            self.largest = cost.clone();
        }
        for reason in &cost.bounds {
            if !self.bounds.contains(reason) {
                self.bounds.push(reason);
            }
        }
    }
}

/// Returns the estimated cost of each experiment of a plan, in the order of the study. Claims over deterministic points
/// also need runs with random starts. The cost excludes these runs, because deterministic points are known only after a
/// run.
pub fn estimate_experiments(plan: &Plan) -> Vec<ExperimentCost> {
    let mut costs: Vec<ExperimentCost> = Vec::new();
    for run in &plan.runs {
        let Some(point) = run.points.first().and_then(|point| plan.points.get(*point)) else { continue };
        let known = costs.iter().position(|cost| cost.experiment == point.experiment);
        let index = known.unwrap_or_else(|| {
            costs.push(ExperimentCost { experiment: point.experiment.clone(), ..ExperimentCost::default() });
            costs.len() - 1
        });
        costs[index].add(run);
    }
    costs
}

/// Returns the number of simultaneous runs for which the memory is sufficient, but at most `jobs`.
///
/// # Errors
/// If a run needs more than all of the memory. Upper bounds are ignored, because such a run may need less.
pub(crate) fn jobs_within(plan: &Plan, memory_bytes: u64, jobs: usize) -> Result<usize, StudyError> {
    let largest = plan.runs.iter().max_by(|a, b| {
        let bytes = |run: &PlannedRun| run.scenario.cost.estimated_bytes();
        bytes(a).total_cmp(&bytes(b))
    });
    let Some(run) = largest else { return Ok(jobs) };
    match memory_shortage(&run.scenario.cost, memory_bytes) {
        Some(reason) => Err(StudyError::System(format!("{}: {reason}", run.label))),
        None => {
            let at_a_time = memory_bytes as f64 / run.scenario.cost.estimated_bytes().max(1.0);
            Ok((at_a_time as usize).clamp(1, jobs.max(1)))
        }
    }
}

/// Returns the reason why a machine with `memory_bytes` of memory cannot execute a run; `None` if the memory is
/// sufficient.
pub fn memory_shortage(cost: &Cost, memory_bytes: u64) -> Option<String> {
    let needed = cost.estimated_bytes();
    (needed > memory_bytes as f64).then(|| {
        let dominates = cost.memory.iter().find(|part| !part.is_bound).map_or_else(String::new, |part| {
            format!(", {} for {}", format_bytes(part.bytes()), format_memory_part(part))
        });
        format!(
            "the run needs about {} of memory{dominates}, but this machine has {}; use --ignore-memory to run it anyway",
            format_bytes(needed),
            format_bytes(memory_bytes as f64)
        )
    })
}

/// Formats a part of the memory as the number of objects and the size of each: `10 000 000 flows × 3.0 kB`.
pub fn format_memory_part(part: &MemoryPart) -> String {
    let digits = format!("{:.0}", part.count);
    let mut count = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            count.push(' ');
        }
        count.push(digit);
    }
    let what = if digits == "1" { singular(part.what) } else { part.what.to_owned() };
    format!("{count} {what} × {}", format_bytes(part.bytes_each))
}

/// Returns the singular of the kind of objects: of its first word if that is a plural, otherwise of its last word.
fn singular(what: &str) -> String {
    let (first, rest) = what.split_once(' ').map_or((what, String::new()), |(first, rest)| (first, format!(" {rest}")));
    match first.strip_suffix('s') {
        Some(one) => format!("{one}{rest}"),
        None => what.strip_suffix('s').unwrap_or(what).to_owned(),
    }
}

/// Formats bytes with two or three significant digits and their unit: `3.0 kB`.
pub fn format_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1e3, unit + 1);
    }
    let decimals = usize::from(value < 9.95 && unit > 0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::VirtualTimeRunner;
    use crate::plan::make_plan;
    use crate::port::ScenarioSource;
    use crate::run::single_run_study;

    fn idle() -> Plan {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/tcp-idle.toml");
        let text = std::fs::read_to_string(file).expect("a scenario of the workspace");
        let source = ScenarioSource { name: "tcp-idle".into(), origin: "scenario.toml".into(), text, folder: None };
        make_plan(&single_run_study("tcp-idle", "", source, 1), &VirtualTimeRunner::new("test")).expect("it is right")
    }

    #[test]
    fn a_run_that_exceeds_the_memory_is_refused_and_names_what_needs_most() {
        match jobs_within(&idle(), 50_000_000, 4) {
            Err(StudyError::System(reason)) => {
                assert!(reason.contains("100 000 flows × ") && reason.contains("has 50 MB"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn as_many_runs_are_made_at_once_as_the_memory_is_sufficient_for() {
        let plan = idle();
        let needed = plan.runs[0].scenario.cost.estimated_bytes();
        for (times, jobs) in [(1.1, 1), (2.5, 2), (100.0, 4)] {
            assert_eq!(jobs_within(&plan, (times * needed) as u64, 4).expect("one fits"), jobs);
        }
    }

    #[test]
    fn a_single_part_is_in_the_singular() {
        let cases = [
            ("flows", "flow"),
            ("further connections", "further connection"),
            ("packets in queues without limit", "packet in queues without limit"),
        ];
        cases.iter().for_each(|(many, one)| assert_eq!(singular(many), *one));
    }

    #[test]
    fn sizes_have_few_digits_and_a_unit() {
        let cases = [(3040.0, "3.0 kB"), (999_700.0, "1.0 MB"), (24.4e9, "24 GB"), (12.0, "12 B"), (162e6, "162 MB")];
        cases.iter().for_each(|(bytes, text)| assert_eq!(format_bytes(*bytes), *text));
    }
}
