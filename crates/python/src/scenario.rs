//! Scenarios and the results of their runs.

use crate::arrow::{self, ArrowTable};
use crate::control::{self, Failure};
use crate::environments::{EnvironmentSettings, NativeEnvironments};
use crate::errors::{self, FolderError, RunError, ScenarioError};
use crate::interrupt;
use crate::steps::{self, NativeSimulation};
use crate::values::overrides;
use fullpipe::find::{self, FoundScenario};
use fullpipe::report::{self, Options as ReportOptions};
use fullpipe::scenario::Override;
use fullpipe::study::{
    self, FileSystem, ResolvedScenario, RunError as RunFailure, RunOptions, RunRecords, Runner, ScenarioSource,
    ScenarioStudy, SimulatedRun, Study, StudyOptions, VirtualTimeRunner,
};
use fullpipe::{BUILD, Outcome, Plugins, embedded};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A scenario: its text and its origin.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct NativeScenario(FoundScenario);

#[pymethods]
impl NativeScenario {
    /// Finds the scenario in a file, or the embedded scenario with this name.
    #[staticmethod]
    fn find(name: &str) -> PyResult<Self> {
        find::scenario(name).map(NativeScenario).map_err(errors::of_scenario)
    }

    /// Creates a scenario from its text. The paths of files in it are relative to `folder`.
    #[staticmethod]
    fn from_text(text: String, name: String, folder: PathBuf) -> Self {
        NativeScenario(FoundScenario { text, stem: name.clone(), name, folder: Some(folder) })
    }

    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    #[getter]
    #[expect(clippy::misnamed_getters, reason = "the name in messages includes the path")]
    fn name(&self) -> &str {
        &self.0.stem
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.0.folder.clone()
    }

    /// Returns the scenario with all defaults, and hints about it.
    fn resolved(&self, set: Option<&Bound<'_, PyDict>>) -> PyResult<(String, Vec<String>)> {
        let ScenarioStudy { loaded, .. } = self.study(&overrides(set)?, None)?;
        Ok((loaded.resolved, loaded.hints.iter().map(ToString::to_string).collect()))
    }

    /// Runs the scenario. `controls` are pairs of a pattern of flows and a subclass of `CongestionControl`.
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        set: Option<&Bound<'_, PyDict>>,
        audit: bool,
        controls: Vec<(String, Py<PyAny>)>,
    ) -> PyResult<NativeResult> {
        let ScenarioStudy { study, loaded } = self.study(&overrides(set)?, seed)?;
        if let Some(reason) = loaded.scenario.real_time_reason() {
            return Err(ScenarioError::new_err(format!("{} cannot run in virtual time: {reason}", self.0.name)));
        }
        let runner = VirtualTimeRunner::new(BUILD);
        let (_, source) = study.scenarios.first().expect("the study has one scenario");
        let resolved = runner.resolve(source, &[]).map_err(errors::of_scenario)?;
        if let Some(reason) = &resolved.unsupported {
            return Err(ScenarioError::new_err(reason.clone()));
        }
        let seed = study.seeds.base();
        let options = RunOptions { audit, ..RunOptions::default() };
        let failure = Failure::new(options.stop.clone());
        let own_controls = controls.len();
        let plugins = controls.into_iter().fold(Plugins::new(), |plugins, (flows, class)| {
            plugins.control(&flows, control::factory(class, failure.clone()))
        });
        let (resolved_here, options_here) = (&resolved, &options);
        let simulated = interrupt::run(
            py,
            &options.stop,
            |_, ()| Ok(()),
            move |_| {
                let simulate = || runner.simulate(resolved_here, seed, options_here, plugins);
                if own_controls == 0 { simulate() } else { control::with_thread_state(simulate) }
            },
        );
        if let Some(error) = failure.take() {
            return Err(error);
        }
        let run = Mutex::new(Finished::Run(simulated?.map_err(errors::of_run)?));
        let hints = loaded.hints.iter().map(ToString::to_string).collect();
        Ok(NativeResult { study, hints, resolved, options, own_controls, run })
    }

    /// Starts the scenario in steps.
    fn start(
        &self,
        seed: Option<u64>,
        set: Option<&Bound<'_, PyDict>>,
        controlled_flows: Vec<String>,
        adjustable_links: Vec<String>,
    ) -> PyResult<NativeSimulation> {
        NativeSimulation::start(self.study(&overrides(set)?, seed)?, controlled_flows, adjustable_links)
    }

    /// Creates environments for reinforcement learning.
    #[expect(clippy::too_many_arguments, reason = "the settings of an environment")]
    fn environments(
        &self,
        set: Option<&Bound<'_, PyDict>>,
        flow: String,
        count: usize,
        action: String,
        interval_s: Option<f64>,
        rates_bps: [f64; 3],
        highest_action: f64,
        observed: Vec<(String, f32)>,
        history: usize,
        threads: usize,
    ) -> PyResult<NativeEnvironments> {
        let settings =
            EnvironmentSettings { action, interval_s, rates_bps, highest_action, observed, history, threads };
        NativeEnvironments::new(self.study(&overrides(set)?, None)?, flow, count, &settings)
    }
}

impl NativeScenario {
    fn study(&self, set: &[Override], seed: Option<u64>) -> PyResult<ScenarioStudy> {
        steps::study_of(&self.0, set, seed)
    }
}

/// The result of a run, in memory.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct NativeResult {
    study: Study,
    /// Hints about the scenario.
    hints: Vec<String>,
    resolved: ResolvedScenario,
    options: RunOptions,
    /// The number of controls that the calling program defines.
    own_controls: usize,
    run: Mutex<Finished>,
}

/// A finished simulation.
enum Finished {
    /// It ran without interruption.
    Run(SimulatedRun),
    /// It ran in steps, between which the program may have changed it.
    Steps(Outcome),
}

impl Finished {
    fn outcome(&self) -> &Outcome {
        match self {
            Finished::Run(run) => run.outcome(),
            Finished::Steps(outcome) => outcome,
        }
    }
}

#[pymethods]
impl NativeResult {
    /// Ends a simulation in steps, at its end or now.
    #[staticmethod]
    fn of_steps(
        scenario: &NativeScenario,
        simulation: &mut NativeSimulation,
        set: Option<&Bound<'_, PyDict>>,
        seed: Option<u64>,
        now: bool,
    ) -> PyResult<Self> {
        let ScenarioStudy { study, loaded } = scenario.study(&overrides(set)?, seed)?;
        let hints = loaded.hints.iter().map(ToString::to_string).collect();
        let (_, source) = study.scenarios.first().expect("the study has one scenario");
        let resolved = VirtualTimeRunner::new(BUILD).resolve(source, &[]).map_err(errors::of_scenario)?;
        let run = Mutex::new(Finished::Steps(simulation.outcome(now)?));
        Ok(NativeResult { study, hints, resolved, options: RunOptions::default(), own_controls: 0, run })
    }

    #[getter]
    fn title(&self) -> &str {
        &self.study.title
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.study.seeds.base()
    }

    /// The resolved scenario.
    #[getter]
    fn scenario(&self) -> &str {
        &self.resolved.text
    }

    /// Hints about the scenario, such as former names of keys.
    #[getter]
    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }

    /// Whether the auditor found no error, and its failures.
    #[getter]
    fn audit(&self) -> (bool, Vec<String>) {
        let run = self.run();
        let verdict = run.outcome().verdict();
        (verdict.passed(), verdict.failures.iter().map(ToString::to_string).collect())
    }

    /// Conditions that make the results suspicious although no check failed.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.run().outcome().warnings().iter().map(ToString::to_string).collect()
    }

    /// Returns the files of the run's records, as the command writes them, without `run.json`.
    fn files(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyBytes>)>> {
        let tables = py.detach(|| self.run().outcome().tables());
        Ok(tables.iter().map(|(name, bytes)| ((*name).to_owned(), PyBytes::new(py, bytes).unbind())).collect())
    }

    /// Returns the table in a file of the records, such as `flows.csv`.
    fn table(&self, py: Python<'_>, file: &str) -> PyResult<ArrowTable> {
        py.detach(|| {
            let run = self.run();
            if file == "series.csv" {
                return arrow::of_series(run.outcome());
            }
            let mut tables = run.outcome().tables();
            match tables.iter().position(|(name, _)| *name == file) {
                Some(place) => arrow::of_csv(file, &tables.swap_remove(place).1),
                None => {
                    // The samples are not in the text of a file.
                    let names = tables.iter().map(|(name, _)| *name).filter(|name| *name != "series.csv");
                    let known: Vec<&str> = names.chain(["series.csv"]).collect();
                    Err(FolderError::new_err(format!("the run has no {file} (one of: {})", known.join(", "))))
                }
            }
        })
    }

    /// Returns the names of the sampled series: subject and metric.
    fn series_names(&self) -> Vec<(String, String)> {
        self.resolved.series.clone()
    }

    /// Returns the samples of one series.
    fn series(&self, subject: &str, metric: &str) -> PyResult<ArrowTable> {
        let run = self.run();
        match run.outcome().find_series(subject, metric) {
            Ok(samples) => arrow::of_one_series(samples),
            Err(error) => Err(pyo3::exceptions::PyKeyError::new_err(error.to_string())),
        }
    }

    /// Writes the folder of records, as `fullpipe run --out` does, with the report if `with_report`.
    fn save(&self, py: Python<'_>, folder: PathBuf, with_report: bool) -> PyResult<()> {
        if self.own_controls > 0 || matches!(*self.run(), Finished::Steps(_)) {
            return Err(RunError::new_err(
                "a run in steps or with a control in Python has no key, so its records cannot be saved; use `files`, \
                 `table` or `arrow`",
            ));
        }
        py.detach(|| {
            let runner = FinishedRunner { inner: VirtualTimeRunner::new(BUILD), result: self };
            let options = StudyOptions { run: self.options.clone(), ..StudyOptions::default() };
            let (files, stop) = (FileSystem::new(), AtomicBool::new(false));
            study::run(&self.study, &runner, &folder, &files, &options, &mut (), &stop).map_err(errors::of_study)?;
            if with_report {
                write_report(&folder)?;
            }
            Ok(())
        })
    }
}

/// Writes the report of a folder of records.
pub(crate) fn write_report(folder: &std::path::Path) -> PyResult<()> {
    let options = ReportOptions { limitations: Some(embedded::LIMITATIONS), ..ReportOptions::default() };
    match report::write_report_with(folder, options) {
        Ok(_) => Ok(()),
        Err(error) => Err(errors::SystemError::new_err(error.to_string())),
    }
}

impl NativeResult {
    fn run(&self) -> MutexGuard<'_, Finished> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self, scenario: &ResolvedScenario, options: &RunOptions) -> Result<RunRecords, RunFailure> {
        match &*self.run() {
            Finished::Run(run) => run.records(scenario, options),
            Finished::Steps(_) => Err(RunFailure::Failed("a run in steps has no records".to_owned())),
        }
    }
}

/// A runner whose only run is already finished.
struct FinishedRunner<'a> {
    inner: VirtualTimeRunner,
    result: &'a NativeResult,
}

impl Runner for FinishedRunner<'_> {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        self.inner.resolve(scenario, overrides)
    }

    fn run(&self, scenario: &ResolvedScenario, _seed: u64, options: &RunOptions) -> Result<RunRecords, RunFailure> {
        self.result.records(scenario, options)
    }

    fn build_identity(&self) -> String {
        self.inner.build_identity()
    }
}
