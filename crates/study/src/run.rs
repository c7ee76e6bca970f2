//! Runs a study: from its plan to its tables.

use crate::archive::{Archive, ROBUSTNESS_PAGE};
use crate::cost;
use crate::error::StudyError;
use crate::expect;
use crate::experience;
use crate::expression::{ExpressionPurpose, parse};
use crate::files::FileSystem;
use crate::matrix;
use crate::plan::{Plan, make_plan, with_random_starts};
use crate::port::{RunOptions, Runner, ScenarioSource};
use crate::resolved::resolved_text;
use crate::single_metrics;
use crate::study::{Experiment, Metric, SeedSource, Study};
use crate::summary::{MeasuredValues, SeedVerdicts, cpu_of, row_to_json};
use crate::sweep::{RunResult, StudyObserver, Sweep};
use crate::tables::WantedRows;
use fullpipe_archive::{
    EXPECTATIONS, ExpectationRow, FINDINGS, FLOW_SUMMARY, FindingRow, FlowSummaryRow, MATRIX, MatrixRow, MetricRecord,
    ROBUSTNESS, Results, RunRecord, SUMMARY, SummaryRow, Verdict, Warning, WarningKind,
};
use fullpipe_scenario::LoadedScenario;
use fullpipe_scenario::schema::{Errors, Override};
use fullpipe_units::Duration;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The options for the execution of a study.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// The number of simultaneous runs; results do not depend on it.
    pub jobs: usize,
    /// The options of each run. The study sets [`RunOptions::attach`] and [`RunOptions::stop`] itself.
    pub run: RunOptions,
    /// The memory of the machine in bytes; `None` disables the following checks. If a run needs more memory, the study
    /// is rejected before the first run. If the memory is not sufficient for `jobs` simultaneous runs, fewer are
    /// executed at a time.
    pub memory_bytes: Option<u64>,
    /// Whether to use only existing runs of the plan, as after [`merge`](crate::merge). Claims over deterministic
    /// points also need runs with random starts, which are not part of the plan. These are still executed.
    pub only_reuse: bool,
    /// Other folders of records. Finished runs of the plan that `folder` does not contain are copied from them.
    pub reuse_from: Vec<PathBuf>,
}

impl Default for StudyOptions {
    fn default() -> Self {
        StudyOptions {
            jobs: 1,
            run: RunOptions::default(),
            memory_bytes: None,
            only_reuse: false,
            reuse_from: Vec::new(),
        }
    }
}

/// The result of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyOutcome {
    /// The rows of `summary.csv`.
    pub rows: Vec<SummaryRow>,
    /// The number of runs that were executed.
    pub made: usize,
    /// The number of existing runs that were reused.
    pub reused: usize,
    /// The runs that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// The runs that are not trusted, and the values and claims that have no verdict because of such runs. Each has a
    /// reason.
    pub untrusted: Vec<(String, String)>,
    /// Whether the study was shortened.
    pub quick: bool,
    /// The verdicts under each study seed; empty unless the study was repeated under several seeds.
    pub seeds: Vec<SeedVerdicts>,
    /// Conditions that make results suspicious although no check failed. A warning that several runs share is listed
    /// once.
    pub warnings: Vec<Warning>,
    /// The rows of `flow_summary.csv`.
    pub flows: Vec<FlowSummaryRow>,
    /// The CPU time of all runs in seconds, including reused runs. Runs with unknown CPU time are excluded.
    pub cpu_s: f64,
    /// The rows of `expectations.csv`.
    pub expectations: Vec<ExpectationRow>,
    /// The rows of `matrix.csv`.
    pub matrix: Vec<MatrixRow>,
    /// The rows of `findings.csv`.
    pub findings: Vec<FindingRow>,
    /// The distinct measured intervals of the runs: the start, and the end in a run of the full duration.
    pub intervals: Vec<(Duration, Duration)>,
}

impl StudyOutcome {
    /// Returns the exit status: 1 if a run failed, 3 if a run or a verdict is not trusted, 4 if an expectation failed,
    /// otherwise 0. A result that is not trusted neither meets nor fails an expectation, so 3 has precedence over 4.
    pub fn exit_status(&self) -> u8 {
        if !self.failed.is_empty() {
            1
        } else if !self.untrusted.is_empty() {
            3
        } else if self.expectations.iter().any(ExpectationRow::has_failed) {
            4
        } else {
            0
        }
    }

    /// Returns the rows of `summary.csv` as a JSON array of objects.
    pub fn to_json(&self) -> serde_json::Value {
        self.rows.iter().map(|row| row_to_json(row, self.quick)).collect()
    }
}

/// Runs a study: executes the runs that `folder` does not contain, stores their records in it, and then writes the
/// tables. If the caller sets `stop`, the study ends early; finished runs are kept.
///
/// # Errors
/// The errors that [`StudyError`] describes. A failed run does not cause an error; the outcome contains it.
pub fn run(
    study: &Study,
    laboratory: &dyn Runner,
    folder: &Path,
    files: &FileSystem,
    options: &StudyOptions,
    progress: &mut dyn StudyObserver,
    stop: &AtomicBool,
) -> Result<StudyOutcome, StudyError> {
    let mut plan = make_plan(study, laboratory)?;
    let of_more_seeds = with_more_seeds(study, &plan, folder, files, &laboratory.build_identity())?;
    let study = of_more_seeds.as_ref().unwrap_or(study);
    if of_more_seeds.is_some() {
        plan = crate::plan::make_plan(study, laboratory)?;
    }
    let jobs = jobs_of(&plan, options, progress)?;
    let build = laboratory.build_identity();
    let archive = Archive::open(folder, &resolved_text(study, &build), files.clone())?;
    copy_finished_runs(&plan, &options.reuse_from, &archive, files)?;
    let sweep = Sweep {
        study,
        plan: &plan,
        laboratory,
        archive: &archive,
        build: &build,
        options: options.run.clone(),
        wanted: wanted_rows(study),
        only_reuse: options.only_reuse,
    };
    let results = sweep.run(jobs, progress, stop)?;
    let mut measured = MeasuredValues::new(study, &plan, &results, |key| archive.digest(key));
    let deterministic = measured.points_of_deterministic_claims();
    let random_starts = laboratory.random_starts_override().filter(|_| !deterministic.is_empty());
    if random_starts.is_some() && study.quick {
        progress.on_message("--quick: claims over deterministic points are not tested with random starts");
    }
    let starts = match random_starts.filter(|_| !study.quick) {
        None => None,
        Some(random_starts) => {
            let plan = with_random_starts(study, laboratory, &plan, &deterministic, &random_starts)?;
            let (options, wanted) = (options.run.clone(), sweep.wanted.clone());
            let sweep = Sweep { plan: &plan, options, wanted, only_reuse: false, ..sweep };
            let results = sweep.run(jobs, progress, stop)?;
            Some((plan, results))
        }
    };
    if let Some((plan, results)) = &starts {
        measured = measured.with_random_starts(&deterministic, plan, results);
    }
    let (rows, seeds) = measured.rows();
    let mut tables = vec![(Results::FILE, measured.results().to_bytes()), (SUMMARY.file, SUMMARY.to_bytes(&rows))];
    if !seeds.is_empty() {
        tables.push((ROBUSTNESS.file, ROBUSTNESS.to_bytes(seeds.iter().map(SeedVerdicts::to_row))));
        tables.push((ROBUSTNESS_PAGE, SeedVerdicts::markdown_table(&study.name, &seeds).into_bytes()));
    }
    let flows = experience::rows(&plan, |point| {
        let experienced = |run: usize| match results.get(run)? {
            RunResult::Values { experience, .. } => Some(experience),
            RunResult::Failed(_) => None,
        };
        measured.counting(point).into_iter().filter_map(experienced).collect()
    });
    tables.push((FLOW_SUMMARY.file, FLOW_SUMMARY.to_bytes(&flows)));
    let expectations = expect::rows(study, &plan, &rows, folder);
    if !expectations.is_empty() {
        tables.push((EXPECTATIONS.file, EXPECTATIONS.to_bytes(&expectations)));
    }
    let (matrix, findings) = matrix::rows(&measured, study);
    if study.matrix.is_some() {
        tables.push((MATRIX.file, MATRIX.to_bytes(&matrix)));
        tables.push((FINDINGS.file, FINDINGS.to_bytes(&findings)));
    }
    archive.write(&tables)?;
    let mut warnings = measured.equal_records();
    warnings.extend(of_runs(&plan, &results));
    let mut outcome = StudyOutcome {
        quick: study.quick,
        seeds,
        warnings,
        flows,
        expectations,
        matrix,
        findings,
        ..StudyOutcome::default()
    };
    outcome.untrusted.extend(nothing_delivered(&results));
    let of_starts = starts.iter().flat_map(|(plan, results)| plan.runs.iter().zip(results));
    // There are few different intervals in a study: one, or one per experiment.
    for run in &plan.runs {
        if !outcome.intervals.contains(&run.scenario.measured_interval) {
            outcome.intervals.push(run.scenario.measured_interval);
        }
    }
    for (run, result) in plan.runs.iter().zip(&results).chain(of_starts) {
        outcome.cpu_s += cpu_of(result).unwrap_or(0.0);
        match result {
            RunResult::Failed(reason) => outcome.failed.push((run.label.clone(), reason.clone())),
            RunResult::Values { distrust, reused, .. } => {
                *(if *reused { &mut outcome.reused } else { &mut outcome.made }) += 1;
                let reasons = distrust.iter().map(|reason| (run.label.clone(), reason.clone()));
                outcome.untrusted.extend(reasons);
            }
        }
    }
    let untrusted = rows.iter().filter(|row| row.verdict == Some(Verdict::Untrusted));
    outcome.untrusted.extend(untrusted.map(|row| (row.name(), row.note.clone())));
    outcome.rows = rows;
    Ok(outcome)
}

/// Copies the finished runs in virtual time that the archive lacks from other folders of records.
fn copy_finished_runs(
    plan: &Plan,
    folders: &[PathBuf],
    archive: &Archive,
    files: &FileSystem,
) -> Result<(), StudyError> {
    let any = RunOptions::default();
    let sources: Vec<Archive> = folders.iter().map(|folder| Archive::to_read(folder, files.clone())).collect();
    for run in plan.runs.iter().filter(|run| !run.real && !sources.is_empty()) {
        if archive.find(&run.key, &any)?.is_some() {
            continue;
        }
        for source in &sources {
            if source.find(&run.key, &any)?.is_some() {
                archive.copy_run(&run.key, source)?;
                break;
            }
        }
    }
    Ok(())
}

/// Returns the number of simultaneous runs. Fails if this version does not support a scenario of the plan, or a run needs
/// more memory than the machine has.
pub(crate) fn jobs_of(
    plan: &Plan,
    options: &StudyOptions,
    progress: &mut dyn StudyObserver,
) -> Result<usize, StudyError> {
    if let Some(reason) = plan.runs.iter().find_map(|run| run.scenario.unsupported.clone()) {
        return Err(StudyError::Usage(reason));
    }
    let jobs = match options.memory_bytes {
        Some(bytes) => cost::jobs_within(plan, bytes, options.jobs)?,
        None => options.jobs,
    };
    if jobs < options.jobs && plan.runs.len() > jobs {
        progress.on_message(&format!(
            "{jobs} instead of {} runs in parallel, because of the memory of this machine",
            options.jobs
        ));
    }
    Ok(jobs)
}

/// Returns the rows of long tables that the metrics of a study need.
pub(crate) fn wanted_rows(study: &Study) -> WantedRows {
    let expressions = || study.metrics.iter().map(|metric| &metric.expression);
    let series = expressions().flat_map(|expression| expression.series());
    let completions = expressions().flat_map(|expression| expression.completions());
    WantedRows {
        series: series.map(|(subject, metric)| (subject.to_owned(), metric.to_owned())).collect(),
        completions: completions.map(|(flow, number)| (flow.to_owned(), number)).collect(),
    }
}

/// Returns the study with the seeds of the runs that the folder already has. This applies if a scenario is run on its
/// own and the folder has runs of it with other seeds: a run with another seed adds a row to the tables. Runs with
/// other content or of another build are excluded.
fn with_more_seeds(
    study: &Study,
    plan: &Plan,
    folder: &Path,
    files: &FileSystem,
    build: &str,
) -> Result<Option<Study>, StudyError> {
    let (SeedSource::Fixed(own), [run]) = (study.seeds, plan.runs.as_slice()) else { return Ok(None) };
    let runs = folder.join("runs");
    // A folder with other content is rejected later, with the reason.
    if !runs.is_dir() {
        return Ok(None);
    }
    let mut seeds = Vec::new();
    for key in files.names_in(&runs)? {
        let file = runs.join(&key).join(RunRecord::FILE);
        let Some(record) = files.read(&file)?.and_then(|bytes| RunRecord::parse(&file, &bytes).ok()) else { continue };
        let is_same = record.key == key && key == crate::plan::run_key(&run.scenario.content, record.seed, build);
        if is_same && record.seed != own {
            seeds.push(record.seed);
        }
    }
    seeds.sort_unstable();
    Ok((!seeds.is_empty()).then(|| Study { more_seeds: seeds, ..study.clone() }))
}

/// Returns the warnings of all runs. A warning that several runs share occurs once, with the number of these runs.
fn of_runs(plan: &Plan, results: &[RunResult]) -> Vec<Warning> {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found: Vec<(&str, &Warning, usize)> = Vec::new();
    for (run, result) in plan.runs.iter().zip(results) {
        let RunResult::Values { warnings, .. } = result else { continue };
        for warning in warnings {
            let place = *places.entry((&warning.name, &warning.place)).or_insert_with(|| {
                found.push((&run.label, warning, 0));
                found.len() - 1
            });
            found[place].2 += 1;
        }
    }
    let merged = found.into_iter().map(|(label, warning, count)| {
        let text = if plan.runs.len() > 1 {
            format!("{} ({count} of {} runs; first in {label})", warning.text, plan.runs.len())
        } else {
            warning.text.clone()
        };
        Warning { text, ..warning.clone() }
    });
    merged.collect()
}

/// Returns the reason why no result is trusted if no run delivered data: the runs, and the text of the first warning.
fn nothing_delivered(results: &[RunResult]) -> Option<(String, String)> {
    let mut texts = Vec::new();
    for result in results {
        match result {
            RunResult::Values { warnings, .. } => {
                texts.push(&warnings.iter().find(|warning| warning.has_kind(WarningKind::NothingDelivered))?.text);
            }
            RunResult::Failed(_) => {}
        }
    }
    let runs = if texts.len() == 1 { "the run".to_owned() } else { format!("all {} runs", texts.len()) };
    Some((runs, (*texts.first()?).clone()))
}

/// Returns a study that runs one scenario: one point with one run, which has exactly this seed.
pub fn single_run_study(name: &str, title: &str, scenario: ScenarioSource, seed: u64) -> Study {
    let metrics = single_metrics::SINGLE_METRICS.iter().map(|metric| metric.map(str::to_owned));
    let metrics = metrics.filter_map(|[name, unit, text, expression]| {
        let parsed = parse(&expression, ExpressionPurpose::Metric).ok()?;
        let record = MetricRecord { name, unit, text, expression, experiments: Vec::new() };
        Some(Metric { record, expression: parsed })
    });
    Study {
        name: name.to_owned(),
        title: title.to_owned(),
        source: String::new(),
        description: String::new(),
        seeds: SeedSource::Fixed(seed),
        more_seeds: Vec::new(),
        study_seeds: 1,
        raised: 0,
        robust: Vec::new(),
        quick: false,
        selected: vec!["run".to_owned()],
        scenarios: vec![("scenario".to_owned(), scenario)],
        replications: Vec::new(),
        parameters: Vec::new(),
        experiments: vec![Experiment {
            name: "run".to_owned(),
            scenario: "scenario".to_owned(),
            runs: 1,
            ..Experiment::default()
        }],
        metrics: metrics.collect(),
        plots: Vec::new(),
        claims: Vec::new(),
        expectations: Vec::new(),
        matrix: None,
        published: Vec::new(),
        scenario_settings: Vec::new(),
        left_out: Vec::new(),
    }
}

/// A study of one run of one scenario, and the scenario as it was loaded.
#[derive(Clone, Debug)]
pub struct ScenarioStudy {
    /// The study: one point with one run.
    pub study: Study,
    /// The scenario, with its hints.
    pub loaded: LoadedScenario,
}

/// Loads a scenario and returns the study with its run, as `fullpipe run` makes it. `stem` is the scenario's file name
/// without its extension, or the name of an embedded scenario. `name` is its name in messages, and `folder` contains
/// the files to which it refers. Without `seed`, the run has the scenario's own seed.
///
/// # Errors
/// All errors in the scenario, its overrides and its expectations.
pub fn scenario_study(
    stem: &str,
    text: &str,
    name: &str,
    folder: Option<PathBuf>,
    overrides: &[Override],
    seed: Option<u64>,
) -> Result<ScenarioStudy, Errors> {
    let loaded = fullpipe_scenario::load(text, name, overrides)?;
    let expectations = expect::scenario_expectations(&loaded)?;
    let seed = seed.unwrap_or(loaded.scenario.seed);
    let title = if loaded.scenario.title.is_empty() { stem } else { &loaded.scenario.title };
    let (origin, text) = ("scenario.toml".to_owned(), loaded.resolved.clone());
    let source = ScenarioSource { name: name.to_owned(), origin, text, folder };
    // A folder name contains no slashes: "bench/tcp-1" is the folder "bench-tcp-1".
    let study = Study { expectations, ..single_run_study(&stem.replace('/', "-"), title, source, seed) };
    Ok(ScenarioStudy { study, loaded })
}
