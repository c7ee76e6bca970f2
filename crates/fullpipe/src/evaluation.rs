//! Evaluations of a congestion control by RFC 9743 (BCP 133): the study `bcp-133` with a control of the calling program.
//!
//! A control of a program has no name in scenario files. `ProgramControl` resolves a scenario with NewReno at the
//! flows under test and replaces their control when it runs the scenario. The name, the flows and a hash of the program
//! are part of the key of such a run. A changed program therefore makes its runs again, and shares those of the
//! references.

use crate::find;
use fullpipe_congestion::Controller;
use fullpipe_lab::{ConnectionContext, Plugins};
use fullpipe_report::{Options as ReportOptions, write_report_with};
use fullpipe_scenario::Override;
use fullpipe_scenario::schema::is_name;
use fullpipe_study::{
    FileSystem, ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource, StudyOptions, UserSettings,
    VirtualTimeRunner,
};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use fullpipe_archive::{Finding, FindingRow, MatrixRow};

/// The study that an evaluation runs.
const STUDY: &str = "bcp-133";
/// The control that the resolved scenario has in place of the program's control.
const BASE: &str = "newreno";
/// The first line of a resolved scenario whose flows have the program's control.
const MARK: &str = "# Control of the program at the flows: ";

type Factory = dyn Fn(&ConnectionContext<'_>) -> Box<dyn Controller> + Send + Sync;

/// The reason why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(String);

impl fmt::Display for EvaluationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for EvaluationError {}

fn failed(reason: impl fmt::Display) -> EvaluationError {
    EvaluationError(reason.to_string())
}

/// An evaluation before its runs; see [`evaluate`].
pub struct Evaluation {
    name: String,
    factory: Arc<Factory>,
    settings: UserSettings,
    folder: PathBuf,
    jobs: usize,
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Evaluation").field("name", &self.name).field("folder", &self.folder).finish()
    }
}

/// Creates an evaluation of a congestion control of the calling program by RFC 9743 (BCP 133), with Reno, CUBIC and
/// BBRv3 as references. `name` is the name of the control in the dossier. `factory` creates a controller for one end of
/// a connection. It should draw random numbers only from the context's streams.
///
/// ```
/// use fullpipe::congestion::cubic::Cubic;
///
/// let folder = std::env::temp_dir().join(format!("fullpipe-evaluate-{}", std::process::id()));
/// let evaluation = fullpipe::evaluate("mine", |_| Box::new(Cubic::default()));
/// let dossier = evaluation.quick().experiments(&["constrained"]).folder(&folder).run()?;
/// // Column 7.4 of rows 5.1.2 and 5.1.3: each cell has two metrics of the control and of three references.
/// assert_eq!(dossier.cells.iter().filter(|cell| !cell.metric.is_empty()).count(), 16);
/// // One run per point is too few for a finding.
/// assert!(dossier.findings.iter().all(|row| row.finding == Some(fullpipe::evaluation::Finding::Undecided)));
/// assert!(dossier.report.exists());
/// std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn evaluate(
    name: &str,
    factory: impl Fn(&ConnectionContext<'_>) -> Box<dyn Controller> + Send + Sync + 'static,
) -> Evaluation {
    Evaluation {
        name: name.to_owned(),
        factory: Arc::new(factory),
        settings: UserSettings::default(),
        folder: Path::new("fullpipe-out").join(format!("{STUDY}-{name}")),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

impl Evaluation {
    /// Shortens the study to one run of few points, without findings.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.settings.quick = true;
        self
    }

    /// Sets the number of runs per point.
    #[must_use]
    pub fn runs(mut self, runs: u64) -> Self {
        self.settings.runs = Some(runs);
        self
    }

    /// Runs only some experiments of the study `bcp-133`.
    #[must_use]
    pub fn experiments(mut self, names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        self.settings.set.push(Override { path: "experiments".to_owned(), value: format!("[{}]", names.join(", ")) });
        self
    }

    /// Sets the folder for the records, instead of `fullpipe-out/bcp-133-NAME`.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        folder.as_ref().clone_into(&mut self.folder);
        self
    }

    /// Runs the evaluation, and writes the records and the report.
    ///
    /// # Errors
    /// If the name is invalid or that of a built-in control, an experiment is unknown, a run failed, or the folder cannot
    /// be written.
    pub fn run(self) -> Result<Dossier, EvaluationError> {
        let Evaluation { name, factory, mut settings, folder, jobs } = self;
        if !is_name(&name) {
            return Err(failed(format!(
                "{name:?} is not a valid name; expected a letter, then letters, digits, - and _"
            )));
        }
        if fullpipe_congestion::catalogue::DECLARATIONS.iter().any(|control| control.name == name) {
            return Err(failed(format!("{name} is the name of a built-in control; expected another name")));
        }
        let laboratory = ProgramControl::new(&name, factory)?;
        let mut study = find::study(STUDY).map_err(failed)?;
        let axis = study.matrix.as_ref().map_or_else(String::new, |matrix| matrix.axis.clone());
        settings.set.push(Override { path: axis, value: format!("{name:?}") });
        study.apply(&settings, &laboratory).map_err(failed)?;
        let options = StudyOptions { jobs, ..StudyOptions::default() };
        let stop = AtomicBool::new(false);
        let outcome = fullpipe_study::run(&study, &laboratory, &folder, &FileSystem::new(), &options, &mut (), &stop)
            .map_err(failed)?;
        if let Some((run, reason)) = outcome.failed.first().or(outcome.untrusted.first()) {
            return Err(failed(format!("{run}: {reason}")));
        }
        let limitations = ReportOptions { limitations: Some(crate::embedded::LIMITATIONS), ..ReportOptions::default() };
        let report = write_report_with(&folder, limitations).map_err(failed)?.html;
        Ok(Dossier { cells: outcome.matrix, findings: outcome.findings, report })
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dossier {
    /// The rows of `matrix.csv`.
    pub cells: Vec<MatrixRow>,
    /// The rows of `findings.csv`.
    pub findings: Vec<FindingRow>,
    /// The report.
    pub report: PathBuf,
}

impl Dossier {
    /// Returns the findings of a cell, given by sections of RFC 9743, with this result.
    pub fn findings(&self, row: &str, column: &str, wanted: Finding) -> impl Iterator<Item = &FindingRow> {
        let (row, column) = (row.to_owned(), column.to_owned());
        let is_wanted = move |of: &&FindingRow| of.row == row && of.column == column && of.finding == Some(wanted);
        self.findings.iter().filter(is_wanted)
    }
}

/// Runs scenarios in virtual time, with the program's control at the flows whose `congestion` has its name.
struct ProgramControl {
    virtual_time: VirtualTimeRunner,
    name: String,
    factory: Arc<Factory>,
    /// The hash of the program, in hexadecimal digits.
    program: String,
}

impl ProgramControl {
    fn new(name: &str, factory: Arc<Factory>) -> Result<Self, EvaluationError> {
        let read = std::env::current_exe().and_then(std::fs::read);
        let program = read.map_err(|reason| failed(format!("cannot read the program to hash it: {reason}")))?;
        let program = Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { virtual_time: VirtualTimeRunner::new(crate::BUILD), name: name.to_owned(), factory, program })
    }
}

impl Runner for ProgramControl {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let is_ours = |set: &Override| set.value.trim_matches('"') == self.name;
        let flow_of = |set: &Override| set.path.strip_prefix("flow.")?.strip_suffix(".congestion").map(str::to_owned);
        let flows: Vec<String> = overrides.iter().filter(|set| is_ours(set)).filter_map(flow_of).collect();
        let replaced = |set: &Override| match is_ours(set) && flow_of(set).is_some() {
            true => Override { path: set.path.clone(), value: BASE.to_owned() },
            false => set.clone(),
        };
        let overrides: Vec<Override> = overrides.iter().map(replaced).collect();
        let mut resolved = self.virtual_time.resolve(scenario, &overrides)?;
        if !flows.is_empty() {
            let flows = flows.join(" ");
            resolved.text = format!("{MARK}{flows}\n{}", resolved.text);
            let control = format!("\ncontrol {} of the program {} at {flows}\n", self.name, self.program);
            resolved.content.extend(control.into_bytes());
        }
        Ok(resolved)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        let marked = scenario.text.strip_prefix(MARK).and_then(|text| text.lines().next());
        let mut plugins = Plugins::new();
        for flow in marked.into_iter().flat_map(str::split_whitespace) {
            let factory = self.factory.clone();
            plugins = plugins.control(flow, move |context| factory(context));
        }
        self.virtual_time.simulate(scenario, seed, options, plugins)?.records(scenario, options)
    }

    fn random_starts_override(&self) -> Option<Override> {
        self.virtual_time.random_starts_override()
    }

    fn build_identity(&self) -> String {
        self.virtual_time.build_identity()
    }
}
