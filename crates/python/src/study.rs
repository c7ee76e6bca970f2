//! Studies: on the threads of this process, or on the workers of an executor.

use crate::errors;
use crate::interrupt;
use crate::request::{files_of, hex, records_of, request};
use crate::scenario::write_report;
use crate::values::overrides;
use fullpipe::scenario::Override;
use fullpipe::study::{
    self, FileSystem, FinishedRun, ResolvedScenario, RunError as RunFailure, RunOptions, RunRecords, Runner,
    ScenarioSource, Shard, Study, StudyFolder, StudyObserver, StudyOptions, UserSettings, VirtualTimeRunner,
};
use fullpipe::{BUILD, find};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The axes of an experiment with the labels of their values.
type AxisLabels = Vec<(String, Vec<String>)>;

/// A study with its settings.
#[pyclass(module = "fullpipe._native")]
pub(crate) struct NativeStudy(Study);

#[pymethods]
impl NativeStudy {
    /// Finds the study in a file or folder, or the embedded study with this name.
    #[staticmethod]
    fn find(name: &str) -> PyResult<Self> {
        find::study(name).map(NativeStudy).map_err(errors::of_study)
    }

    /// Creates a study from its text. The names of files in it are relative to `folder`.
    #[staticmethod]
    fn from_text(text: &str, name: &str, folder: PathBuf) -> PyResult<Self> {
        let loaded = study::load(text, name, name, &StudyFolder(folder));
        loaded.map(NativeStudy).map_err(|error| errors::of_study(error.into()))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    /// The axes of each selected experiment, with the labels of their values.
    #[getter]
    fn axes(&self) -> Vec<(String, AxisLabels)> {
        let selected = self.0.experiments.iter().filter(|experiment| self.0.selected.contains(&experiment.name));
        selected
            .map(|experiment| {
                let axes = experiment
                    .axes
                    .iter()
                    .map(|axis| (axis.name.clone(), axis.levels.iter().map(|level| level.label.clone()).collect()));
                (experiment.name.clone(), axes.collect())
            })
            .collect()
    }

    /// The names of the metrics.
    #[getter]
    fn metrics(&self) -> Vec<String> {
        self.0.metrics.iter().map(|metric| metric.name.clone()).collect()
    }

    /// The name, the unit and the description of each metric.
    #[getter]
    fn metric_texts(&self) -> Vec<(String, String, String)> {
        let metrics = self.0.metrics.iter();
        metrics.map(|metric| (metric.name.clone(), metric.unit.clone(), metric.text.clone())).collect()
    }

    /// Returns the study with the user's settings.
    fn apply(
        &self,
        set: Option<&Bound<'_, PyDict>>,
        runs: Option<u64>,
        seeds: Option<u64>,
        seed: Option<u64>,
        quick: bool,
    ) -> PyResult<(Self, Vec<String>)> {
        let mut study = self.0.clone();
        let settings = UserSettings { set: overrides(set)?, runs, seeds, seed, quick };
        let messages = study.apply(&settings, &VirtualTimeRunner::new(BUILD)).map_err(errors::of_study)?;
        Ok((NativeStudy(study), messages))
    }

    /// Checks the first point of each experiment, and the points that differ from it in one axis. Of each axis it checks
    /// at most `most` values.
    fn check(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        py.detach(|| {
            let mut study = self.0.clone();
            for experiment in study.experiments.iter_mut().filter(|experiment| experiment.points.is_none()) {
                let axes = &experiment.axes;
                let mut points = vec![vec![0; axes.len()]];
                for (index, axis) in axes.iter().enumerate() {
                    points.extend((1..axis.levels.len().min(most)).map(|level| {
                        let mut point = vec![0; axes.len()];
                        point[index] = level;
                        point
                    }));
                }
                experiment.points = Some(points);
                experiment.runs = 1;
            }
            study::plan::make_plan(&study, &VirtualTimeRunner::new(BUILD)).map(drop).map_err(errors::of_study)
        })
    }

    /// Runs the study and writes its records to `folder`. `submit` submits a request to an executor and returns its
    /// future; without it, the runs are executed on `jobs` threads. `shard` is the index of the shard and the number of
    /// shards. `observe` is called with the finished and total number of runs and the label of a run.
    #[pyo3(signature = (folder, *, jobs, audit, resume, report, shard, submit, observe))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        jobs: usize,
        audit: bool,
        resume: bool,
        report: bool,
        shard: Option<(u64, u64)>,
        submit: Option<Py<PyAny>>,
        observe: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let shard = match shard {
            None => None,
            Some((index, count)) => {
                let text = format!("{index}/{count}");
                Some(text.parse::<Shard>().map_err(|error| errors::StudyError::new_err(error.to_string()))?)
            }
        };
        let run = RunOptions { audit, resume, ..RunOptions::default() };
        let options = StudyOptions { jobs: jobs.max(1), run, ..StudyOptions::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let executor = submit.map(|submit| ExecutorLink { submit, recent: Mutex::new(BTreeMap::new()) });
        let runner = StudyRunner { inner: VirtualTimeRunner::new(BUILD), stop: Arc::clone(&stop), executor };
        let on_message = |py: Python<'_>, (finished, total, label): (usize, usize, String)| match &observe {
            None => Ok(()),
            Some(observe) => observe.call1(py, (finished, total, label)).map(drop),
        };
        let (study, folder_here, stop_here, runner_here) = (&self.0, &folder, &*stop, &runner);
        let work = move |sender: mpsc::Sender<(usize, usize, String)>| {
            let mut observer = Observer { sender, total: 0 };
            let files = FileSystem::new();
            match shard {
                None => study::run(study, runner_here, folder_here, &files, &options, &mut observer, stop_here).map(
                    |outcome| Summary {
                        status: outcome.exit_status(),
                        made: outcome.made,
                        reused: outcome.reused,
                        failed: outcome.failed,
                        untrusted: outcome.untrusted,
                        warnings: outcome.warnings.iter().map(ToString::to_string).collect(),
                        cpu_s: Some(outcome.cpu_s),
                    },
                ),
                Some(shard) => {
                    study::run_shard(study, shard, runner_here, folder_here, &files, &options, &mut observer, stop_here)
                        .map(|outcome| Summary {
                            status: outcome.exit_status(),
                            made: outcome.made,
                            reused: outcome.reused,
                            failed: outcome.failed,
                            untrusted: outcome.untrusted,
                            warnings: Vec::new(),
                            cpu_s: None,
                        })
                }
            }
        };
        let outcome = interrupt::run(py, &stop, on_message, work)?;
        let outcome = outcome.map_err(errors::of_study)?;
        if report && shard.is_none() && outcome.failed.is_empty() {
            py.detach(|| write_report(&folder))?;
        }
        let summary = PyDict::new(py);
        summary.set_item("exit_status", outcome.status)?;
        summary.set_item("made", outcome.made)?;
        summary.set_item("reused", outcome.reused)?;
        summary.set_item("failed", outcome.failed)?;
        summary.set_item("untrusted", outcome.untrusted)?;
        summary.set_item("warnings", outcome.warnings)?;
        summary.set_item("cpu_s", outcome.cpu_s)?;
        Ok(summary)
    }
}

/// The parts of an outcome that Python receives.
struct Summary {
    status: u8,
    made: usize,
    reused: usize,
    failed: Vec<(String, String)>,
    untrusted: Vec<(String, String)>,
    warnings: Vec<String>,
    cpu_s: Option<f64>,
}

/// Combines the folders of all shards of a study.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, folders: Vec<PathBuf>, out: PathBuf, report: bool) -> PyResult<()> {
    py.detach(|| {
        let first =
            folders.first().ok_or_else(|| errors::StudyError::new_err("expected the folder of at least one shard"))?;
        let study = find::study(&first.join("study.toml").display().to_string()).map_err(errors::of_study)?;
        let (runner, files) = (VirtualTimeRunner::new(BUILD), FileSystem::new());
        study::merge(&study, &runner, &folders, &out, &files).map_err(errors::of_study)?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let run = RunOptions { resume: true, ..RunOptions::default() };
        let options = StudyOptions { jobs, run, only_reuse: true, ..StudyOptions::default() };
        let stop = AtomicBool::new(false);
        study::run(&study, &runner, &out, &files, &options, &mut (), &stop).map_err(errors::of_study)?;
        if report { write_report(&out) } else { Ok(()) }
    })
}

/// Sends the progress to the thread that calls Python.
struct Observer {
    sender: mpsc::Sender<(usize, usize, String)>,
    total: usize,
}

impl StudyObserver for Observer {
    fn on_planned(&mut self, total: usize) {
        self.total = total;
        // Sending cannot fail: the receiver exists until this thread has ended.
        let _ = self.sender.send((0, total, String::new()));
    }

    fn on_run_finished(&mut self, run: &FinishedRun<'_>) {
        let _ = self.sender.send((run.finished, run.total, run.label.to_owned()));
    }
}

/// Executes runs on the threads of the study, or on the workers of an executor.
struct StudyRunner {
    inner: VirtualTimeRunner,
    /// The flag that ends the study.
    stop: Arc<AtomicBool>,
    executor: Option<ExecutorLink>,
}

/// An executor of Python's `concurrent.futures`.
struct ExecutorLink {
    /// Submits a request and the contents of files by hash, and returns a future.
    submit: Py<PyAny>,
    /// The files of the scenarios that were run last, by text.
    recent: Mutex<BTreeMap<String, Arc<Files>>>,
}

/// The files to which a scenario refers: name, location and hash.
type Files = Vec<(String, PathBuf, String)>;

/// The callback that a future calls when it is done.
#[pyclass(frozen)]
struct Done(mpsc::SyncSender<()>);

#[pymethods]
impl Done {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        // After an interruption, no thread waits for the run.
        let _ = self.0.try_send(());
    }
}

/// The result of a request.
enum Response {
    Records(Box<RunRecords>),
    Missing(Vec<String>),
}

/// The number of scenarios whose files are cached. More scenarios are in flight only with more workers than this.
const RECENT: usize = 1024;

/// The longest time until a waiting thread detects that the study ends. There may be thousands of these threads.
const POLL: Duration = Duration::from_millis(500);

/// Returns the reason why there are no records. `otherwise` is the prefix of all errors that this function does not know.
fn reason(py: Python<'_>, error: &PyErr, otherwise: &str) -> String {
    let class_is = |module: &str, name: &str| {
        py.import(module)
            .and_then(|module| module.getattr(name))
            .is_ok_and(|class| error.matches(py, class).unwrap_or(false))
    };
    if error.is_instance_of::<errors::Error>(py) {
        // The message is complete without the name of the class.
        error.value(py).to_string()
    } else if class_is("concurrent.futures", "CancelledError") || class_is("asyncio", "CancelledError") {
        "the executor canceled the run; it may have been shut down".to_owned()
    } else if class_is("concurrent.futures", "BrokenExecutor") {
        format!("a worker process of the executor ended, and the executor accepts no more runs ({error})")
    } else {
        format!("{otherwise} {error}")
    }
}

impl ExecutorLink {
    /// Returns the files of a scenario; those of the last scenarios are cached.
    fn files(&self, scenario: &ResolvedScenario) -> Result<Arc<Files>, String> {
        if scenario.file_hashes().next().is_none() {
            return Ok(Arc::default());
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = recent.get(&scenario.text) {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(files_of(scenario)?);
        let mut pairs = files.iter().zip(scenario.file_hashes());
        if let Some(((_, path, _), _)) = pairs.find(|((_, _, hash), planned)| *hash != hex(planned)) {
            return Err(study::changed_file_reason(path));
        }
        if recent.len() >= RECENT {
            recent.clear();
        }
        recent.insert(scenario.text.clone(), Arc::clone(&files));
        Ok(files)
    }

    /// Sends a request and waits for its response.
    fn exchange(
        &self,
        scenario: &ResolvedScenario,
        seed: u64,
        options: &RunOptions,
        files: &Files,
        contents: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Response, RunFailure> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let future = Python::attach(|py| {
            let sent = PyDict::new(py);
            for (hash, content) in contents {
                sent.set_item(hash, PyBytes::new(py, content))?;
            }
            let future = self.submit.call1(py, (request(py, scenario, seed, options, files)?, sent))?;
            future.call_method1(py, intern!(py, "add_done_callback"), (Done(sender),))?;
            Ok(future)
        })
        .map_err(|error: PyErr| {
            RunFailure::Failed(Python::attach(|py| reason(py, &error, "the executor did not accept the run:")))
        })?;
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if options.stop.load(Ordering::Relaxed) => {
                    // The study ends in any case; the result of a run that cannot be canceled is discarded.
                    let _ = Python::attach(|py| future.call_method0(py, intern!(py, "cancel")).map(drop));
                    return Err(RunFailure::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunFailure::Failed("the executor discarded the run".to_owned()));
                }
            }
        }
        Python::attach(|py| {
            let response = future.call_method0(py, intern!(py, "result"))?;
            let Ok(response) = response.bind(py).cast::<PyDict>() else {
                let kind = response.bind(py).get_type().name()?;
                return Err(errors::RunError::new_err(format!(
                    "the executor returned a value of type {kind} instead of records; expected an executor of \
                     concurrent.futures, whose workers have Fullpipe {BUILD}"
                )));
            };
            match response.get_item("missing")? {
                Some(missing) => Ok(Response::Missing(missing.extract()?)),
                None => Ok(Response::Records(Box::new(records_of(response, options)?))),
            }
        })
        .map_err(|error| RunFailure::Failed(Python::attach(|py| reason(py, &error, "the worker raised"))))
    }

    /// Executes a run on a worker, and sends it the contents of the files that it does not have.
    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunFailure> {
        let files = self.files(scenario).map_err(RunFailure::Failed)?;
        let mut contents = BTreeMap::new();
        loop {
            match self.exchange(scenario, seed, options, &files, &contents)? {
                Response::Records(records) => return Ok(*records),
                Response::Missing(missing) => {
                    let before = contents.len();
                    for (_, path, hash) in files.iter().filter(|(_, _, hash)| missing.contains(hash)) {
                        let content = std::fs::read(path)
                            .map_err(|error| RunFailure::Failed(format!("cannot read {}: {error}", path.display())))?;
                        contents.insert(hash.clone(), content);
                    }
                    if contents.len() == before {
                        return Err(RunFailure::Failed(format!(
                            "the worker cannot store the files of the scenario: {}",
                            missing.join(", ")
                        )));
                    }
                }
            }
        }
    }
}

impl Runner for StudyRunner {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        // A study with many points resolves scenarios for minutes before the first run.
        if self.stop.load(Ordering::Relaxed) {
            return Err("the study was interrupted".to_owned());
        }
        self.inner.resolve(scenario, overrides)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunFailure> {
        match &self.executor {
            None => self.inner.run(scenario, seed, options),
            Some(executor) => executor.run(scenario, seed, options),
        }
    }

    fn runs_elsewhere(&self) -> bool {
        self.executor.is_some()
    }

    fn random_starts_override(&self) -> Option<Override> {
        self.inner.random_starts_override()
    }

    fn build_identity(&self) -> String {
        self.inner.build_identity()
    }
}
