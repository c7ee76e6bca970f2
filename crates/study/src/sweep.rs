//! Runs a plan on a pool of threads. Each result is stored at its position in the plan. Results therefore do not depend
//! on the assignment of runs to threads or on the order in which runs finish.

use crate::archive::{Archive, StoredRun};
use crate::error::StudyError;
use crate::evaluate;
use crate::experience::FlowSummary;
use crate::plan::{Plan, PlannedRun};
use crate::port::{RunError, RunOptions, Runner};
use crate::study::{SeedSource, Study};
use crate::tables::{HalfContext, PointContext, WantedRows, half_tolerance};
use fullpipe_archive::Warning;
use fullpipe_archive::json::JsonValue;
use fullpipe_units::RandomStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Receives the progress of a study. All methods are called from the same thread.
pub trait StudyObserver {
    /// Called when the study begins; `total` is the number of runs.
    fn on_planned(&mut self, _total: usize) {}
    /// Called when a run is finished.
    fn on_run_finished(&mut self, _run: &FinishedRun<'_>) {}
    /// Receives a message for the user.
    fn on_message(&mut self, _text: &str) {}
}

impl StudyObserver for () {}

/// A finished run and the progress of the study.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRun<'a> {
    /// The number of finished runs so far.
    pub finished: usize,
    /// The total number of runs.
    pub total: usize,
    /// The label of the first point that uses the run, and the number of the run at this point.
    pub label: &'a str,
    /// The key of the run.
    pub key: &'a str,
    /// The seed of the run.
    pub seed: u64,
    /// Whether the run is an earlier one that was reused.
    pub reused: bool,
    /// The reason for the failure; `None` if the run did not fail.
    pub failure: Option<&'a str>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunResult {
    /// The values of all metrics, for each of the run's points.
    Values {
        values: Vec<Vec<Option<f64>>>,
        /// The values of metrics in the halves of the measured interval, if there are any.
        halves: Vec<Vec<Option<[f64; 2]>>>,
        /// Whether a flow had a time-out or the run had a stall.
        interrupted: bool,
        distrust: Vec<String>,
        late: bool,
        /// Whether the run drew no random numbers.
        deterministic: bool,
        /// Conditions that make the run's results suspicious.
        warnings: Vec<Warning>,
        /// The values of the run's flows.
        experience: FlowSummary,
        /// The CPU time in seconds, if known.
        cpu_s: Option<f64>,
        reused: bool,
    },
    /// The run failed.
    Failed(String),
}

/// The reason why a worker ended without a result.
enum Ended {
    Machine(String),
    Wrong(String),
    Interrupted,
}

/// Returns the order in which runs are made. Runs in virtual time are first. The longest of them start first, so that
/// no long run starts when the others are complete. Runs of equal length are in the order of the plan. Runs in real
/// time are last, and no other run is made at the same time. Their order is random over the points, so that a slow
/// change of the machine does not cause differences between points.
fn order(seed: u64, runs: &[PlannedRun]) -> Vec<usize> {
    let (mut real, mut order): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(|index| runs[*index].real);
    order.sort_by(|a, b| runs[*b].scenario.cost.work.total_cmp(&runs[*a].scenario.cost.work));
    let mut stream = RandomStream::new(seed, "study", "order of real-time runs");
    for last in (1..real.len()).rev() {
        real.swap(last, stream.uniform_below(last as u64 + 1) as usize);
    }
    order.append(&mut real);
    order
}

/// Computation permits, one for each job. A worker returns its permit while it waits for the disk. For example, a run
/// of 20 ms waits 10 ms until its files are synced.
struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A computation permit, which is returned when this value is dropped.
struct Permit<'a>(&'a Permits);

impl Permits {
    fn new(count: usize) -> Self {
        Permits { free: Mutex::new(count), returned: Condvar::new() }
    }

    /// Waits for a permit. The lock guards a number, which a panic cannot corrupt.
    fn take(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.returned.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

/// The number of threads that store records while other processes make the runs. Each waits mostly for the disk, which
/// syncs files of several threads at the same time.
const DISK_WORKERS: usize = 32;

/// The state that all workers share.
pub(crate) struct Sweep<'a> {
    pub(crate) study: &'a Study,
    pub(crate) plan: &'a Plan,
    pub(crate) laboratory: &'a dyn Runner,
    pub(crate) archive: &'a Archive,
    pub(crate) build: &'a str,
    pub(crate) options: RunOptions,
    /// The rows of long tables that metrics need.
    pub(crate) wanted: WantedRows,
    /// Whether every run exists, even if it fell behind real time, and none may be made.
    pub(crate) only_reuse: bool,
}

impl Sweep<'_> {
    /// Makes every run, or finds it in the archive. `stop` ends it early.
    pub(crate) fn run(
        &self,
        jobs: usize,
        progress: &mut dyn StudyObserver,
        stop: &AtomicBool,
    ) -> Result<Vec<RunResult>, StudyError> {
        let total = self.plan.runs.len();
        let halt = Arc::new(AtomicBool::new(stop.load(Ordering::Relaxed)));
        let options = RunOptions { stop: halt.clone(), ..self.options.clone() };
        progress.on_planned(total);
        let mut results: Vec<Option<RunResult>> = vec![None; total];
        let mut problem: Option<StudyError> = None;
        let next = AtomicUsize::new(0);
        let order = order(self.study.seeds.base(), &self.plan.runs);
        let machine = RwLock::new(());
        // With one job, runs are made one after another, and nothing else is done at the same time. Otherwise, workers
        // wait for the disk: a run of 15 ms waits for 12 ms. With four workers for each job, the jobs are busy for 97 %
        // of the time, and with two for 90 %. A waiting worker has only its records in memory.
        // If other processes make the runs, a permit is a run in another process, and only a few runs wait for the disk.
        let workers = match jobs {
            0 | 1 => 1,
            _ if self.laboratory.runs_elsewhere() => jobs.saturating_add(DISK_WORKERS),
            _ => jobs.saturating_mul(4),
        };
        let permits = Permits::new(jobs.max(1));
        let (sweep, options) = (self, &options);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for number in 0..workers.clamp(1, total.max(1)) {
                let (sender, next, halt, order, machine) = (sender.clone(), &next, &halt, &order, &machine);
                let permits = &permits;
                let work = move || {
                    while !halt.load(Ordering::Relaxed) {
                        let permit = permits.take();
                        let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                        let run = &sweep.plan.runs[index];
                        // The lock guards no data that a panic could corrupt.
                        let _alone = run.real.then(|| machine.write().unwrap_or_else(PoisonError::into_inner));
                        let _shared = (!run.real).then(|| machine.read().unwrap_or_else(PoisonError::into_inner));
                        if halt.load(Ordering::Relaxed) {
                            break;
                        }
                        if sender.send((index, sweep.one(run, options, permit))).is_err() {
                            break;
                        }
                    }
                };
                // The threads that exist make all runs if the system has no more threads.
                if let Err(reason) = std::thread::Builder::new().spawn_scoped(scope, work) {
                    if number == 0 {
                        problem = Some(StudyError::System(format!("cannot start a thread: {reason}")));
                    }
                    break;
                }
            }
            drop(sender);
            let mut finished = 0;
            loop {
                let (index, outcome) = match receiver.recv_timeout(std::time::Duration::from_millis(20)) {
                    Ok(received) => received,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        if stop.load(Ordering::Relaxed) {
                            halt.store(true, Ordering::Relaxed);
                        }
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                };
                let run = &sweep.plan.runs[index];
                match outcome {
                    Ok(result) => {
                        finished += 1;
                        let (reused, failure) = match &result {
                            RunResult::Values { reused, .. } => (*reused, None),
                            RunResult::Failed(reason) => (false, Some(reason.as_str())),
                        };
                        let (label, key) = (run.label.as_str(), run.key.as_str());
                        progress.on_run_finished(&FinishedRun {
                            finished,
                            total,
                            label,
                            key,
                            seed: run.seed,
                            reused,
                            failure,
                        });
                        results[index] = Some(result);
                    }
                    Err(Ended::Interrupted) => {}
                    Err(Ended::Machine(reason)) => {
                        problem.get_or_insert(StudyError::System(reason));
                        halt.store(true, Ordering::Relaxed);
                    }
                    Err(Ended::Wrong(reason)) => {
                        problem.get_or_insert(StudyError::Usage(reason));
                        halt.store(true, Ordering::Relaxed);
                    }
                }
                if stop.load(Ordering::Relaxed) {
                    halt.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        let finished = results.iter().flatten().count();
        results.into_iter().collect::<Option<Vec<_>>>().ok_or(StudyError::Interrupted { finished, total })
    }

    fn one(&self, run: &PlannedRun, options: &RunOptions, permit: Permit<'_>) -> Result<RunResult, Ended> {
        let machine = |refused: crate::files::FileOperationError| Ended::Machine(refused.to_string());
        let by_clock = if run.real { self.laboratory.real_time_runner() } else { Some(self.laboratory) };
        let laboratory = by_clock.or(self.only_reuse.then_some(self.laboratory));
        let Some(laboratory) = laboratory else {
            return Ok(RunResult::Failed("it requires real time, which this runner does not support".to_owned()));
        };
        // A run of the same scenario with another seed is kept.
        let is_kept = matches!(self.study.seeds, SeedSource::Fixed(seed) if seed != run.seed);
        let found = if is_kept || self.only_reuse {
            self.archive.find(&run.key, &RunOptions::default()).map_err(machine)?
        } else if options.resume || laboratory.is_repeatable() {
            self.archive.find(&run.key, options).map_err(machine)?
        } else {
            None
        };
        // A run that fell behind supports no result, unless the experiment counts such runs. In a repetition, the
        // machine may be fast enough.
        let enough = |finished: &StoredRun| {
            is_kept || self.only_reuse || laboratory.is_repeatable() || !finished.is_late() || self.counts_late(run)
        };
        if let Some(finished) = found.filter(enough)
            && let Ok(result) = self.values(run, &finished, true)
        {
            return Ok(result);
        }
        if self.only_reuse {
            return Err(Ended::Wrong(format!("the run {} ({}) is missing", run.key, run.label)));
        }
        if run.real {
            self.archive.discard(&run.key).map_err(machine)?;
        }
        let place = self.archive.begin(&run.key);
        let attached = RunOptions { attach: place.attach.clone(), ..options.clone() };
        let attempt = catch_unwind(AssertUnwindSafe(|| laboratory.run(&run.scenario, run.seed, &attached)));
        if !matches!(attempt, Ok(Ok(_))) {
            self.archive.discard(&run.key).map_err(machine)?;
        }
        let records = match attempt {
            Ok(Ok(records)) => records,
            Ok(Err(RunError::Failed(reason))) => return Ok(RunResult::Failed(reason)),
            Ok(Err(RunError::System(reason))) => return Err(Ended::Machine(reason)),
            Ok(Err(RunError::Interrupted)) => return Err(Ended::Interrupted),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
                return Ok(RunResult::Failed(format!("internal error (please report it): {words}")));
            }
        };
        // The following steps mostly wait for the disk, so another run can be computed in the meantime.
        drop(permit);
        let stored = self.archive.store(&run.key, self.build, run.seed, options, records, &place).map_err(machine)?;
        self.values(run, &stored, false)
    }

    /// Returns whether all points of a run count it even if it is late.
    fn counts_late(&self, run: &PlannedRun) -> bool {
        let mut points = run.points.iter().filter_map(|index| self.plan.points.get(*index));
        points.all(|point| self.study.counts_late_runs(&point.experiment))
    }

    fn values(&self, run: &PlannedRun, finished: &StoredRun, reused: bool) -> Result<RunResult, Ended> {
        let tables = self
            .archive
            .tables(finished, &self.wanted)
            .map_err(|reason| Ended::Wrong(format!("the run {} ({}): {reason}", run.key, run.label)))?;
        let lateness = finished.run.lateness.as_ref().and_then(JsonValue::to_json);
        let (mut values, mut halves) = (Vec::new(), Vec::new());
        for point in run.points.iter().filter_map(|index| self.plan.points.get(*index)) {
            let environment = PointContext { tables: &tables, numbers: &point.numbers, lateness: lateness.as_ref() };
            let half = |half| HalfContext { tables: &tables, numbers: &point.numbers, half };
            let (mut of_point, mut halves_of_point) = (Vec::new(), Vec::new());
            for metric in &self.study.metrics {
                if !metric.applies_to(&point.experiment) {
                    of_point.push(None);
                    halves_of_point.push(None);
                    continue;
                }
                let value = evaluate::evaluate_number(&metric.expression, &environment).map_err(|error| {
                    Ended::Wrong(format!("study {}, metric {}: {error}", self.study.name, metric.name))
                })?;
                of_point.push(value);
                // This expression has no errors, because they would have occurred for the complete interval.
                let at = |number| evaluate::evaluate_number(&metric.expression, &half(number)).ok().flatten();
                let both = half_tolerance(metric).and_then(|_| Some([at(1)?, at(2)?]));
                halves_of_point.push(both);
            }
            values.push(of_point);
            halves.push(halves_of_point);
        }
        let deterministic = finished.run.random_streams.as_ref().is_some_and(|streams| streams.0.is_empty());
        let stalled = finished.run.lateness.as_ref().is_some_and(|lateness| lateness.stall_count > 0);
        let interrupted = stalled || finished.run.timeouts.as_ref().is_some_and(|timeouts| !timeouts.0.is_empty());
        let distrust = finished.run.distrust.clone();
        let warnings = finished.run.warnings.clone().unwrap_or_default();
        let (late, experience) = (finished.is_late(), tables.experience());
        let cpu_s = self.archive.cpu_s(&run.key);
        Ok(RunResult::Values {
            values,
            halves,
            interrupted,
            distrust,
            late,
            deterministic,
            warnings,
            experience,
            cpu_s,
            reused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::ResolvedScenario;
    use fullpipe_lab::cost::Cost;
    use std::collections::BTreeSet;

    fn scenario(work: f64) -> Arc<ResolvedScenario> {
        let mut cost = Cost::default();
        cost.work = work;
        Arc::new(ResolvedScenario {
            text: String::new(),
            content: Vec::new(),
            flows: Vec::new(),
            main_flows: BTreeSet::new(),
            events: Vec::new(),
            series: Vec::new(),
            measured_interval: Default::default(),
            cost,
            links: Vec::new(),
            hosts: Vec::new(),
            folder: None,
            unsupported: None,
        })
    }

    fn run(number: usize, work: f64, real: bool) -> PlannedRun {
        let (key, scenario) = (number.to_string(), scenario(work));
        PlannedRun { key, seed: 0, real, scenario, points: vec![number], label: String::new() }
    }

    #[test]
    fn the_longest_run_is_first_and_equal_ones_are_in_the_order_of_the_plan() {
        let costs = [5.0, 7.0, 5.0, 1.0, 7.0, 9.0];
        let runs: Vec<PlannedRun> = costs.into_iter().enumerate().map(|(n, cost)| run(n, cost, n == 5)).collect();
        // Runs in real time are last, regardless of their length.
        assert_eq!(order(1, &runs), [1, 4, 0, 2, 3, 5]);
    }

    #[test]
    fn runs_in_real_time_come_last_and_in_random_order_over_the_points() {
        let runs: Vec<PlannedRun> = (0..40).map(|number| run(number, 0.0, number % 2 == 1)).collect();
        let made = order(1, &runs);
        let (first, last) = made.split_at(20);
        assert!(first.iter().copied().eq((0..40).step_by(2)));
        let mut sorted = last.to_vec();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq((1..40).step_by(2)));
        // One of 20! orders is sorted.
        assert_ne!(sorted, last);
        assert_eq!(order(1, &runs), made);
        assert_ne!(order(2, &runs), made);
    }
}
